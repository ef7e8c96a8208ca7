"""Figure 5: all five algorithms on half of INCOME and on simulated data of very high frequency."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.papers import data
from benchmarks.papers._blowfish import COLOURS, METHODS, error
from benchmarks.papers.registry import Result, Row, Script, show

SCRIPT = Script(
    "blowfish-data-dependent", "Figure 5: matching", "policygraph/mechanisms/matching/", 30, needs_data=True
)
EPSILON = "0.01"


def run(small: bool) -> Result:
    tables, what = data.lines(small, 128 if small else 4096)
    income = tables["INCOME"]
    half = income[: len(income) // 2]
    cells = 64 if small else 512
    simulated = np.random.default_rng(5).integers(10**5, 10**6, cells)
    runs = 1 if small else 3
    found = {
        title: {m: error(m, counts, Fraction(EPSILON), runs, title) for m in METHODS}
        for title, counts in (("half of INCOME", half), ("simulated, high frequency", simulated))
    }
    rows = [
        Row(
            "Figure 5",
            f"{title}, epsilon {EPSILON}: " + ", ".join(METHODS),
            "",
            ", ".join(show(d[m]) for m in METHODS),
            fixed=False,
        )
        for title, d in found.items()
    ]
    matching = "Matching+Transformed"
    real, made = found.values()
    beaten = [m for m in METHODS if real[m] > real[matching]]
    rows.append(
        Row(
            "Section 6",
            "half of INCOME: algorithms with a larger error than Matching+Transformed",
            "Laplace",
            ", ".join(beaten) or "none",
            fixed=False,
            reason="the loss that the matching takes from the counts is not won back by pairs; the paper's argument leaves single cells without noise, which is not private, and so pays less",
        )
    )
    beaten = [m for m in METHODS if made[m] > made[matching]]
    rows.append(
        Row(
            "Section 6",
            "simulated data: number of algorithms with a larger error than Matching+Transformed; Transformed+Laplace is better",
            "3; yes",
            f"{len(beaten)}; {'yes' if made['Transformed+Laplace'] < made[matching] else 'no'}",
            fixed=False,
            reason="the simulated set is not described; ours has counts between 10^5 and 10^6 and no two alike, so that every bucket stays a single cell",
        )
    )
    return Result(
        rows,
        found,
        f"{what}: {len(half):,} cells of INCOME; {cells} simulated cells (seed 5); {runs} runs. The paper does not print its epsilon here.",
    )


def plot(values: dict[str, Any]) -> Any:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.5))
    for axis, (title, found) in zip(axes, values.items()):
        axis.barh(list(found), list(found.values()), color=[COLOURS[m] for m in found])
        axis.set(xscale="log", title=f"{title}, epsilon {EPSILON}", xlabel="mean squared error of a cell")
        axis.invert_yaxis()
    figure.tight_layout()
    return figure
