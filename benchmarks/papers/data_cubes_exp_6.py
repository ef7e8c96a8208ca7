"""Experiment VI, Figures 8 and 9, and sections 7.1 and 7.2: times, relative errors, and unequal noise."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from typing import Any

import numpy as np

import policygraph as pg
from benchmarks.papers._cubes import COLOURS, Measured, Printed, adult, plan, plans
from benchmarks.papers.data import adult as adult_counts
from benchmarks.papers.data import stand_in_table
from benchmarks.papers.registry import Result, Row, Script, show
from policygraph.mechanisms.cube.strategies import Unequal

SCRIPT = Script(
    "data-cubes-2011",
    "Experiment VI: times; relative error; unequal noise",
    "policygraph/estimation/cubes/",
    60,
    needs_data=True,
)


def publish(domain: pg.Domain, counts: np.ndarray, small: bool) -> dict[str, float]:
    """Processor seconds of choosing and publishing with each method."""
    query, out = pg.queries.all_cuboids(domain), {}
    start = time.process_time()
    made = plans(domain)
    out["choosing"] = time.process_time() - start
    for name in ("All", "AllC", "Base", "BMax", "BMaxC", "PMost", "PMostC"):
        consistency = "least-squares" if name.endswith("C") else None
        cube = pg.Cube(Measured(made[name.removesuffix("C")].choice), consistency=consistency)
        ready = cube.calibrate(query, pg.Policy(domain), pg.Epsilon(1))
        start = time.process_time()
        ready.run(counts, pg.SeededRng(name))
        out[name] = time.process_time() - start
    return out


def relative(domain: pg.Domain, counts: np.ndarray) -> dict[str, float]:
    """Median relative error of the cells of a released cube, by their true count."""
    query = pg.queries.all_cuboids(domain)
    best = Printed(domain)
    ready = pg.Cube(Measured(best.choice(best.bound_max_variance()[1]))).calibrate(
        query, pg.Policy(domain), pg.Epsilon(1)
    )
    truth = query.answer(counts)
    values = np.concatenate([table.values for table in ready.run(counts, pg.SeededRng("section 7.1")).tables])
    out = {}
    for low, high in pairwise((1, 10, 100, 1000, 10_000, 10**9)):
        chosen = (truth >= low) & (truth < high)
        if chosen.any():
            out[f"{low:,} to {high - 1:,}" if high < 10**9 else f"{low:,} and more"] = float(
                np.median(np.abs(values - truth)[chosen] / truth[chosen])
            )
    return out


def run(small: bool) -> Result:
    dimensions = (3, 4) if small else (5, 6, 7, 8)
    whole, what = (None, "generated stand-in") if small else adult_counts()
    times = {}
    for d in dimensions:
        domain = adult(d)
        if whole is None:
            counts = stand_in_table(domain.shape, 5000)
        else:
            counts = whole.reshape(adult().shape).sum(axis=tuple(range(d, 8))).ravel()
        times[d] = publish(domain, counts, small)
    last = times[dimensions[-1]]
    chosen, errors = plans(domain), relative(domain, counts)
    falling = list(errors.values())
    made, best, mean = plans(adult()), plan(adult(), Unequal("max")), plan(adult(), Unequal("total"))
    top = 1 - np.sqrt(best.fitted.max() / made["BMax"].fitted.max())
    low = 1 - np.sqrt(mean.fitted).mean() / np.sqrt(made["PMost"].fitted).mean()
    rows = [
        Row(
            "Figure 9(a), text of Exp-VI",
            "processor time of Algorithms 1 and 2 over that of publishing by BMaxC, most dimensions",
            "very small",
            show(last["choosing"] / last["BMaxC"]),
            holds=last["choosing"] < 0.5 * last["BMaxC"],
            fixed=False,
            reason="Python for the algorithms as printed, compiled code for the rest; and the small setting has few cells",
        ),
        Row(
            "Figure 8, text of Exp-VI",
            "publishing time of AllC over BMaxC, most dimensions",
            "6 to 10",
            show(last["AllC"] / last["BMaxC"]),
            holds=6 <= last["AllC"] / last["BMaxC"] <= 10,
            fixed=False,
            reason="least squares here works in interaction blocks, linear in the cells and hardly dependent on the number of measured cuboids; what is left of the difference is drawing noise",
        ),
        Row(
            "Figure 8, text of Exp-VI",
            "publishing time of AllC over PMostC, most dimensions",
            "10 to 40",
            show(last["AllC"] / last["PMostC"]),
            holds=10 <= last["AllC"] / last["PMostC"] <= 40,
            fixed=False,
            reason="as above",
        ),
        Row(
            "Figure 9(b), text of Exp-VI",
            "processor seconds of publishing consistently by PMost, BMax, All: measured cuboids and seconds",
            "linear in the measured cuboids",
            ", ".join(
                f"{len(chosen[n].choice.sets)}: {show(last[f'{n}C'], 2)}" for n in ("PMost", "BMax", "All")
            ),
            # Seventeen times as many tables would take about so many times as long.
            holds=2 * last["AllC"] / last["PMostC"]
            >= len(chosen["All"].choice.sets) / len(chosen["PMost"].choice.sets),
            fixed=False,
            reason="does not grow with their number: least squares works in interaction blocks, whose cost is in the cells of the tables",
        ),
        Row(
            "Figure 9(b), text of Exp-VI",
            "processor seconds of noise and of adding up alone, PMost, BMax, All: measured cuboids and seconds",
            "decreases with the measured cuboids",
            ", ".join(f"{len(chosen[n].choice.sets)}: {show(last[n], 2)}" for n in ("PMost", "BMax", "All")),
            holds=last["PMost"] > last["BMax"] > last["All"],
            fixed=False,
            reason="drawing noise takes most of the time here: discrete noise, exactly, for every measured cell, of which All has the most; adding up is little beside it",
        ),
        Row(
            "Section 7.1",
            "median relative error of cells by their count, epsilon 1, BMaxC",
            "falls with the count",
            ", ".join(f"{k}: {show(v, 2)}" for k, v in errors.items()),
            holds=all(a > b for a, b in pairwise(falling)),
            fixed=False,
        ),
        Row(
            "Section 7.2",
            "largest deviation removed by unequal noise, of BMaxC; mean deviation removed, of PMostC",
            "0.1",
            f"{show(float(top), 2)}; {show(float(low), 2)}",
            holds=min(top, low) >= 0.1,
            fixed=False,  # the local search ends a percent or two from where it ends on another machine
            reason="more: precisions are chosen by convex optimisation for all cuboids at once",
            code="policygraph/mechanisms/cube/unequal.py",
        ),
    ]
    largest = math.prod(size + 1 for size in adult(10).shape)
    values = {"times": {str(d): t for d, t in times.items()}, "relative": errors}
    return Result(
        rows,
        values,
        f"{what}; processor seconds of one core, {dimensions[0]} to {dimensions[-1]} dimensions (5 to 10 in the paper; all cuboids of 10 have {largest:,} cells, more than fit into the memory of a small machine).",
    )


def plot(values: dict[str, Any]) -> Any:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(12, 4.6))
    sizes = [int(d) for d in values["times"]]
    for name in next(iter(values["times"].values())):
        colour = COLOURS.get(name.removesuffix("C"), "black")
        style = ":" if name == "choosing" else ("o-" if name.endswith("C") else "x--")
        series = [found[name] for found in values["times"].values()]
        axes[0].plot(sizes, series, style, color=colour, label=name)
    axes[0].set(
        yscale="log",
        xlabel="dimensions",
        ylabel="processor seconds",
        title="Publishing all cuboids",
        xticks=sizes,
    )
    axes[0].legend(frameon=False, ncols=2, fontsize=9)
    axes[1].bar(list(values["relative"]), list(values["relative"].values()), color="tab:blue")
    axes[1].set(
        yscale="log",
        xlabel="true count of the cell",
        ylabel="median relative error",
        title="Relative error, BMaxC, epsilon 1",
    )
    axes[1].tick_params(axis="x", labelsize=8, rotation=15)
    figure.tight_layout()
    return figure
