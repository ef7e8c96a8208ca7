"""Figures 4 and 5: what Bob's link changes in the MVS model, by the probability of introductions and by time."""

from __future__ import annotations

from typing import Any

from benchmarks.papers.registry import Result, Row, Script, show
from policygraph.attacks import participation

SCRIPT = Script(
    "no-free-lunch-2011", "Figures 4 and 5: the MVS model", "policygraph/attacks/participation.py", 32
)
INTRODUCTIONS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
STEPS = (0, 10, 20, 50, 100, 200, 500, 1000)
RATES = ((1.0, 1.0), (0.1, 0.3), (0.01, 0.1))
"""Probability of a random link (eta) and mean number of deleted links (lambda) in a step: the paper states neither."""
UNSTATED = "the paper does not state eta and lambda; the effect depends on them"


def run(small: bool) -> Result:
    runs = 300 if small else 100_000
    steps = STEPS[:-2] if small else STEPS
    by_share = {
        (eta, decay): [
            participation.mvs(introduction=xi, random_link=eta, decay=decay).effect(runs)
            for xi in INTRODUCTIONS
        ]
        for eta, decay in RATES
    }
    by_time = {
        (eta, decay): [
            participation.mvs(steps=n, random_link=eta, decay=decay).effect(runs if n <= 500 else runs // 10)
            for n in steps
        ]
        for eta, decay in RATES
    }
    rows = []
    for eta, decay in RATES:
        share, time = by_share[eta, decay], by_time[eta, decay]
        rows += [
            Row(
                "Figure 4",
                f"difference after 100 steps at eta = {eta:g}, lambda = {decay:g}: without introductions, with one in each step",
                "moderately large, depending on the parameters",
                f"{show(share[0].difference)}, {show(share[-1].difference)}",
                holds=True,
                reason=UNSTATED,
                fixed=False,
            ),
            Row(
                "Figure 5",
                f"largest difference, and that after the last step, at eta = {eta:g}, lambda = {decay:g}",
                "disappears in the steady state",
                f"{show(max(e.difference for e in time))}, {time[-1].interval[0]:.2f} to {time[-1].interval[1]:.2f} (95 %)",
                holds=small or time[-1].interval[0] < 0.2,
                reason=UNSTATED,
                fixed=False,
            ),
        ]
    values = {
        "introductions": INTRODUCTIONS,
        "steps": steps,
        "rates": RATES,
        "by_introduction": [[(e.difference, *e.interval) for e in by_share[rate]] for rate in RATES],
        "by_time": [[(e.difference, *e.interval) for e in by_time[rate]] for rate in RATES],
    }
    note = f"20 nodes, two links of each inside its community; {runs:,} runs for each point, seeded (a tenth for 1,000 steps)."
    return Result(rows, values, note)


def plot(values: dict[str, Any]) -> Any:
    from matplotlib import pyplot

    figure, both = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axes, x, y, label, title in (
        (
            both[0],
            "introductions",
            "by_introduction",
            "probability of an introduction in a step (xi)",
            "Figure 4: 100 steps",
        ),
        (both[1], "steps", "by_time", "steps", "Figure 5: xi = 1"),
    ):
        for (eta, decay), curve in zip(values["rates"], values[y]):
            middle, low, high = zip(*curve)
            axes.plot(values[x], middle, marker="o", ms=4, label=f"eta = {eta:g}, lambda = {decay:g}")
            axes.fill_between(values[x], low, high, alpha=0.3)
        axes.set(xlabel=label, ylabel="change of the expected number of links", title=title)
        axes.axhline(0.0, color="0.5", lw=1)
    both[1].set_xscale("symlog", linthresh=10)
    both[1].set_xlim(left=-0.5)
    both[0].legend()
    return figure
