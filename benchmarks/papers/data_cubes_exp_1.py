"""Experiment I, Figure 3: largest and mean cuboid error of the seven methods on Adult as epsilon varies."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import policygraph as pg
from benchmarks.papers._cubes import METHODS, Measured, adult, bars, errors, improved, legend, plans
from benchmarks.papers.data import adult as adult_counts
from benchmarks.papers.data import stand_in_table
from benchmarks.papers.registry import Result, Row, Script, show, span
from policygraph.mechanisms.cube.strategies import All

SCRIPT = Script(
    "data-cubes-2011", "Experiment I: varying epsilon", "policygraph/mechanisms/cube/", 20, needs_data=True
)
EPSILONS = (0.25, 0.5, 1.0, 2.0)


def measured(small: bool) -> tuple[dict[str, float], str]:
    """Mean measured over mean expected cuboid error, from one release of each of three methods at epsilon 1."""
    domain = adult(5 if small else 8)
    counts, what = (stand_in_table(domain.shape, 5000), "generated stand-in") if small else adult_counts()
    expected = errors(plans(domain))
    query = pg.queries.all_cuboids(domain)
    truth = query.answer(counts)
    starts = np.cumsum([0, *(part.height for part in query.parts)]).tolist()
    out = {}
    best = Measured(plans(domain)["BMax"].choice)
    for name, strategy, consistency in (
        ("All", All(), None),
        ("BMax", best, None),
        ("BMaxC", best, "least-squares"),
    ):
        ready = pg.Cube(strategy, consistency=consistency).calibrate(query, pg.Policy(domain), pg.Epsilon(1))
        made = ready.run(counts, pg.SeededRng(f"experiment I {name}"))
        error = [
            np.abs(made.tables[i].values - truth[a:b]).mean() for i, (a, b) in enumerate(pairwise(starts))
        ]
        out[name] = float(np.mean(error) / expected[name].mean())
    return out, what


def run(small: bool) -> Result:
    found = errors(plans(adult()))
    top = {name: float(found[name].max()) for name in METHODS}
    mean = {name: float(found[name].mean()) for name in METHODS}
    ratio, what = measured(small)
    better = improved(adult())
    saved = [1 - f(found[f"{n}C"]) / f(found[n]) for n in ("All", "BMax", "PMost") for f in (np.max, np.mean)]
    place = "Figure 3, text of Exp-I"
    rows = [
        Row(
            place,
            "largest cuboid error at epsilon 1: " + ", ".join(METHODS),
            "",
            ", ".join(show(top[n]) for n in METHODS),
        ),
        Row(
            place,
            "mean cuboid error at epsilon 1: " + ", ".join(METHODS),
            "",
            ", ".join(show(mean[n]) for n in METHODS),
        ),
        Row(
            place,
            "worst largest error; worst mean error",
            "Base; All",
            f"{max(top, key=top.__getitem__)}; {max(mean, key=mean.__getitem__)}",
        ),
        Row(
            place,
            "better of BMax and PMost by largest error; by mean error",
            "BMax; PMost",
            "; ".join(min(("BMax", "PMost"), key=d.__getitem__) for d in (top, mean)),
        ),
        Row(
            place,
            "BMax and PMost over the better of All and Base: largest error; mean error",
            "less",
            f"{span([top[n] / min(top['All'], top['Base']) for n in ('BMax', 'PMost')])}; {span([mean[n] / min(mean['All'], mean['Base']) for n in ('BMax', 'PMost')])}",
            holds=all(d[n] < min(d["All"], d["Base"]) for n in ("BMax", "PMost") for d in (top, mean)),
        ),
        Row(
            place,
            "share of the error that consistency removes, All, BMax, PMost, by largest and by mean error",
            "0.3 to 0.5",
            span(saved, 2),
            holds=min(saved) >= 0.25 and max(saved) <= 0.55,
            reason="met by All; expectations for BMax and PMost are about a quarter, and a measured release agrees with them (below); the paper lists neither its measured cuboids nor the numbers behind the figure, so that the difference stays unexplained",
        ),
        Row(
            "Section 6, Summary",
            "error of BMaxC and PMostC over All: largest; mean",
            "0.05 to 0.3",
            "; ".join(span([d[n] / d["All"] for n in ("BMaxC", "PMostC")], 2) for d in (top, mean)),
            holds=all(0.05 <= d[n] / d["All"] <= 0.3 for n in ("BMaxC", "PMostC") for d in (top, mean)),
            reason="met by the mean error; the largest error of All is exactly 256, and that of the others, measured alike, cannot be as small",
        ),
        Row(
            "Section 6, Summary",
            "error of BMaxC and PMostC over AllC, mean",
            "0.2 to 0.5",
            span([mean[n] / mean["AllC"] for n in ("BMaxC", "PMostC")], 2),
            holds=all(0.2 <= mean[n] / mean["AllC"] <= 0.5 for n in ("BMaxC", "PMostC")),
            reason="met by PMostC; Algorithm 1 measures 64 cuboids for the least largest error, and the mean is not its aim",
        ),
        Row(
            place,
            "largest / mean error of BMaxC and PMostC with the library's covers instead of Algorithms 1 and 2",
            "",
            ", ".join(
                f"{show(one.consistent.max())} / {show(one.consistent.mean())}" for one in better.values()
            ),
        ),
        Row(
            place,
            "measured over expected mean error, one release: " + ", ".join(ratio),
            "",
            ", ".join(map(show, ratio.values())),
            holds=all(0.85 < r < 1.15 for r in ratio.values()),
            fixed=False,
        ),
    ]
    values = {"top": top, "mean": mean, "epsilons": EPSILONS, "measured": ratio}
    return Result(
        rows,
        values,
        f"expected errors of all 256 cuboids, exact from the attributes; one release measured on: {what}.",
    )


def plot(values: dict[str, Any]) -> Any:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(12, 4.5), sharey=True)
    for axis, key, title in zip(axes, ("top", "mean"), ("largest cuboid error", "mean cuboid error")):
        made = {name: [value / e for e in values["epsilons"]] for name, value in values[key].items()}
        bars(axis, [f"{e:g}" for e in values["epsilons"]], made, f"Adult, 256 cuboids: {title}", "epsilon")
    axes[0].set_ylabel("mean absolute error of a cell")
    legend(figure, axes[0])
    return figure
