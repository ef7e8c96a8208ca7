"""Theorems 8 and 9 as bounds on the total error of a consistent cube, beside exact ones and measured errors."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

import policygraph as pg
from benchmarks.papers._cubes import Measured
from benchmarks.papers.registry import Result, Row, Script, show
from policygraph.transforms.cuboids.choose import Choice

SCRIPT = Script(
    "data-cubes-2011", "Theorems 8 and 9: bounds on the error", "policygraph/estimation/cubes/finest.py", 15
)
DOMAIN = pg.Domain({"Sex": 2, "Age": 7, "Salary": 5})
MEASURED = (("Sex", "Age", "Salary"), ("Sex", "Age"), ("Sex", "Salary"), ("Sex",))
DELTA = 0.05
METHODS = {"least-maximum": "program (6)", "least-absolute": "program (7)", "least-squares": "program (8)"}


def eta(cells: int) -> float:
    """The eta of Theorem 9 for delta, by bisection: (eta / (2 e^(eta/2 - 1)))^cells = delta."""
    low, high = 2.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        above = cells * (log(middle / 2) - middle / 2 + 1) > log(DELTA)
        low, high = (middle, high) if above else (low, middle)
    return high


def totals(method: str, runs: int) -> list[float]:
    """Sum of absolute errors over the measured cells, in each run."""
    query = pg.queries.CuboidQuery(DOMAIN, MEASURED)
    cube = pg.Cube(Measured(Choice(MEASURED, (1,) * len(MEASURED))), consistency=method)
    ready = cube.calibrate(query, pg.Policy(DOMAIN), pg.Epsilon(1))
    counts = np.random.default_rng(1).integers(0, 60, DOMAIN.size)
    truth, rng = query.answer(counts), pg.SeededRng(f"theorems 8 and 9 {method}")
    return [
        float(np.abs(np.concatenate([t.values for t in ready.run(counts, rng).tables]) - truth).sum())
        for _ in range(runs)
    ]


def run(small: bool) -> Result:
    from scipy.stats import gamma

    runs = 5 if small else 400
    query = pg.queries.CuboidQuery(DOMAIN, MEASURED)
    cells, tables = query.height, len(MEASURED)
    eight = cells * tables * 2 * log(cells / DELTA)
    nine = cells * tables * eta(cells)
    exact = 2 * tables * float(gamma.ppf(1 - DELTA, cells))
    ready = pg.Cube(Measured(Choice(MEASURED, (1,) * tables))).calibrate(
        query, pg.Policy(DOMAIN), pg.Epsilon(1)
    )
    joint = sum(
        float(np.broadcast_to(b, part.height).sum())
        for b, part in zip(ready.joint_bound(str(DELTA)), query.parts)
    )
    found = {name: totals(name, runs) for name in METHODS}
    quantile = {name: float(np.quantile(v, 1 - DELTA)) for name, v in found.items()}
    where = "total error of the 96 cells of C111, C110, C101, C100 but for 5 %, epsilon 1"
    rows = [
        Row(
            "Theorem 8",
            f"bound: {where}; measured by program (6)",
            f"at most {show(eight)}",
            show(quantile["least-maximum"]),
            holds=quantile["least-maximum"] <= eight,
            fixed=False,
        ),
        Row(
            "Theorem 9",
            f"bound: {where}; measured by program (7)",
            f"at most {show(nine)}",
            show(quantile["least-absolute"]),
            holds=quantile["least-absolute"] <= nine,
            fixed=False,
        ),
        Row(
            "Theorem 9",
            "the same bound with the exact quantile of the sum of exponentials instead of Lemma 2",
            f"at most {show(nine)}",
            show(exact),
            holds=exact <= nine,
        ),
        Row(
            "Theorem 8",
            "sum of the library's joint bounds on every cell, least squares, program (8)",
            f"at most {show(eight)}",
            show(joint),
            holds=joint <= eight,
            code="policygraph/estimation/cubes/errors.py",
        ),
        Row(
            "Theorem 10",
            "measured by program (8), 95 % quantile; of program (7)",
            "",
            f"{show(quantile['least-squares'])}; {show(quantile['least-squares'] / quantile['least-absolute'])}",
            fixed=False,
        ),
        Row(
            "Proof of Theorem 8",
            "bound on the noise of one cell: factor before log(|E| / delta), epsilon 1",
            show(cells),
            show(tables),
            reason="a slip in print: the proof writes |E_pre| for |L_pre| twice; the statement of the theorem is right",
        ),
    ]
    values = {
        "found": found,
        "bounds": {"Theorem 8": eight, "Theorem 9": nine, "exact quantile": exact, "joint bounds": joint},
    }
    return Result(rows, values, f"2 x 7 x 5, four cuboids measured; {runs} releases of each program.")


def plot(values: dict[str, Any]) -> Any:
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(9, 4.5))
    names = list(values["found"])
    axis.boxplot([values["found"][n] for n in names], orientation="horizontal", whis=(5, 95))
    axis.set_yticks(range(1, 4), [f"{n}\n{METHODS[n]}" for n in names])
    for (label, bound), style in zip(values["bounds"].items(), ("-", "--", "-.", ":")):
        axis.axvline(bound, color="tab:red", linestyle=style, label=label)
    axis.set(
        xscale="log",
        xlabel="total absolute error of the 96 cells",
        title="Bounds that hold but for 5 %, and measured errors",
    )
    axis.set_xticks([200, 500, 1000, 2000, 5000], ["200", "500", "1,000", "2,000", "5,000"])
    axis.minorticks_off()
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    return figure
