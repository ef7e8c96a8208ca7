"""Figures 2 and 3: what Bob's link changes in the copying model, by the random link probability and by the size of the network."""

from __future__ import annotations

from typing import Any

from benchmarks.papers.registry import Result, Row, Script, show
from policygraph.attacks import participation

SCRIPT = Script(
    "no-free-lunch-2011", "Figures 2 and 3: the copying model", "policygraph/attacks/participation.py", 31
)
PROBABILITIES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SIZES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


def run(small: bool) -> Result:
    runs = 2_000 if small else 100_000
    by_share = [participation.copying(random_link=p).effect(runs) for p in PROBABILITIES]
    by_size = [participation.copying(size, random_link=0.05).effect(runs) for size in SIZES]
    at = by_size[SIZES.index(50)]
    rows = [
        Row(
            "Figure 2",
            "the difference decreases with the random link probability (50 nodes): at 0, 0.5 and 1",
            "yes",
            ", ".join(show(by_share[PROBABILITIES.index(p)].difference) for p in (0.0, 0.5, 1.0)),
            holds=by_share[0].interval[0] > by_share[6].interval[1] > by_share[-1].interval[0],
            fixed=False,
        ),
        Row(
            "Figure 3",
            "the difference grows with the final size (probability 0.05): at 20, 50 and 100 nodes",
            "yes",
            ", ".join(show(by_size[SIZES.index(n)].difference) for n in (20, 50, 100)),
            holds=all(by_size[i].difference < by_size[i + 1].difference for i in range(len(SIZES) - 1)),
            fixed=False,
        ),
        Row(
            "Figure 3",
            "loss that participation needs where links get epsilon = 1: 95 % interval at 50 nodes",
            "",
            " to ".join(f"{e:.3f}" for e in at.epsilon_interval(1.0)),
            fixed=False,
        ),
    ]
    values = {
        "probabilities": PROBABILITIES,
        "by_probability": [(e.difference, *e.interval) for e in by_share],
        "sizes": SIZES,
        "by_size": [(e.difference, *e.interval) for e in by_size],
    }
    note = f"{runs:,} runs for each point, seeded; the paper has 1,000,000, and prints the curves without numbers."
    return Result(rows, values, note)


def plot(values: dict[str, Any]) -> Any:
    from matplotlib import pyplot

    figure, both = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axes, x, y, label, title in (
        (both[0], "probabilities", "by_probability", "random link probability", "Figure 2: 50 nodes"),
        (both[1], "sizes", "by_size", "nodes in the end", "Figure 3: random link probability 0.05"),
    ):
        middle, low, high = zip(*values[y])
        axes.plot(values[x], middle, marker="o", ms=4)
        axes.fill_between(values[x], low, high, alpha=0.3)
        axes.axhline(1.0, color="0.5", lw=1, ls="--")
        axes.annotate(
            "what noise for a single link hides", (values[x][-1], 1.0), ha="right", va="bottom", fontsize=8
        )
        axes.set(xlabel=label, ylabel="change of the expected number of links", title=title)
        axes.set_ylim(bottom=0)
    return figure
