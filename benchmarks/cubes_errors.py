"""Measured errors of cubes of Adult: every method at every epsilon as table and plot; and stated variances against measured ones.

    python benchmarks/cubes_errors.py [--runs 5] [--only All BMaxC ...] [--epsilons 1 ...] [--table FILE.md] [--plot FILE.png]
    python benchmarks/cubes_errors.py --variances [--runs 1000]

Reads ``adult/adult.data`` in the folder ``POLICYGRAPH_DATA`` (default: ``../shared/data`` beside the repository).
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import record
from cubes import adult_counts, adult_domain

import policygraph as pg
from policygraph.mechanisms.cube.strategies import All, Base, BMax, PMost, Unequal

EPSILONS = ("1/4", "1/2", "1", "2")
STYLES = {
    "All": "tab:grey",
    "Base": "tab:brown",
    "BMax": "tab:blue",
    "PMost": "tab:orange",
    "Unequal": "tab:green",
    "UnequalMax": "tab:red",
}


def methods(half):
    """Name, strategy and consistency of each method; strategies judge by what is published."""
    yield "All", All(), None
    yield "AllC", All(), "least-squares"
    yield "Base", Base(), None
    yield "BMax", BMax(work=0), None
    yield "BMaxC", BMax(work=0), "least-squares"
    yield "PMost", PMost(bound=half, work=0), None
    yield "PMost, then C", PMost(bound=half, fitted=False, work=0), "least-squares"
    yield "PMostC", PMost(bound=half, work=0), "least-squares"
    yield "UnequalC", Unequal(), "least-squares"
    yield "UnequalMaxC", Unequal("max"), "least-squares"


def errors(
    runs: int, only: list[str], epsilons: list[str]
) -> dict[str, list[tuple[float, float, float, float, float]]]:
    """For each method and epsilon: largest and mean measured error over cuboids, and both expected standard deviations."""
    counts = adult_counts()
    if counts is None:
        raise SystemExit("adult.data not found: set POLICYGRAPH_DATA.")
    domain = adult_domain()
    policy, query = pg.Policy(domain), pg.queries.all_cuboids(domain)
    answers = query.answer(counts)
    starts = np.cumsum([0, *(part.height for part in query.parts)])
    ones = [1.0] * len(query.sets)
    plain = BMax(fitted=False, work=0).choose(domain, query.sets, ones, policy, pg.Epsilon(1))
    half = Fraction(plain.objective) / 2
    results: dict[str, list[tuple[float, float, float, float, float]]] = {}
    for name, strategy, consistency in methods(half):
        if only and name not in only:
            continue
        # Choices do not depend on epsilon when the bound is scaled with it.
        choice = pg.Cube(strategy, consistency=consistency).calibrate(query, policy, pg.Epsilon(1)).choice
        for epsilon in epsilons:
            loss = pg.Epsilon(epsilon)
            ready = pg.Cube(consistency=consistency).on(choice, query, policy, loss)
            highest, means, start = [], [], time.perf_counter()
            for _ in range(runs):
                made = ready.run(counts, pg.SecureRng())
                each = [
                    float(np.abs(t.values - answers[a:b]).mean())
                    for t, a, b in zip(made.tables, starts[:-1], starts[1:], strict=True)
                ]
                highest.append(max(each))
                means.append(float(np.mean(each)))
            deviations = np.array([ready.deviation(at) for at in range(len(query.sets))])
            row = (
                float(loss.value),
                float(np.mean(highest)),
                float(np.mean(means)),
                float(deviations.max()),
                float(deviations.mean()),
            )
            results.setdefault(name, []).append(row)
            record.ratio(f"{name}, epsilon {epsilon}, largest error", row[1])
            record.ratio(f"{name}, epsilon {epsilon}, mean error", row[2])
            print(
                f"{name:14} epsilon {epsilon:>4}: {row[1]:9.2f} /{row[2]:9.2f}   expected deviation {row[3]:9.2f} /{row[4]:9.2f}   "
                f"{(time.perf_counter() - start) / runs:.1f} s a run",
                flush=True,
            )
    return results


def table(results) -> str:
    """The measured errors as Markdown, each with its share of All."""
    lines = [
        "| | "
        + " | ".join(f"epsilon = {row[0]:g}" for row in results["All"])
        + " | of All | deviation, of All |",
        "|---|" + "---|" * (len(results["All"]) + 2),
    ]
    base = results["All"]
    for name, rows in results.items():
        shown = " | ".join(f"{row[1]:,.1f} / {row[2]:,.1f}" for row in rows)
        # Errors fall as epsilon grows, so that epsilon times error is averaged before the ratio is taken.
        of = [
            sum(row[0] * row[k] for row in rows) / sum(row[0] * row[k] for row in base) for k in (1, 2, 3, 4)
        ]
        lines.append(f"| {name} | {shown} | {of[0]:.2f} / {of[1]:.2f} | {of[2]:.2f} / {of[3]:.2f} |")
    return "\n".join(lines)


def plot(results, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 5), sharey=True)
    for axis, column, title in zip(axes, (1, 2), ("largest over cuboids", "mean over cuboids"), strict=True):
        for name, rows in results.items():
            if name == "PMost, then C":
                continue
            plainly = name[:-1] if name.endswith("C") else name
            axis.plot(
                [row[0] for row in rows],
                [row[column] for row in rows],
                marker="o" if name.endswith("C") else "x",
                linestyle="-" if name.endswith("C") else "--",
                color=STYLES[plainly],
                label=name,
            )
        axis.set(xscale="log", yscale="log", xlabel="epsilon", title=title)
        axis.set_xticks([0.25, 0.5, 1, 2], ["1/4", "1/2", "1", "2"])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mean absolute error of a cell")
    axes[0].set_yticks([10, 30, 100, 300, 1000, 3000], ["10", "30", "100", "300", "1,000", "3,000"])
    figure.suptitle("All 256 cuboids of Adult; C (solid): made consistent")
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="center right", frameon=False)
    figure.tight_layout(rect=(0, 0, 0.87, 1))
    figure.savefig(path, dpi=90)
    print(f"wrote {path}")


def variances(runs: int) -> None:
    """Stated against measured variances, cuboid by cuboid, on five attributes of Adult; pooled over cells and runs on all of it."""
    counts = adult_counts()
    if counts is None:
        raise SystemExit("adult.data not found: set POLICYGRAPH_DATA.")
    whole = adult_domain()
    names = ("workclass", "marital", "relationship", "race", "sex")
    domain = whole.project(names)
    kept = tuple(whole.axis(name) for name in whole.names if name not in names)
    small = counts.reshape(whole.shape).sum(axis=kept).ravel()
    print(
        f"{'x'.join(map(str, domain.shape))}: {runs} runs; measured / stated variance over cuboids, cells pooled"
    )
    for policy, known in (
        (pg.Policy(domain), "nothing known"),
        (pg.Policy(domain, constraints=[pg.Cuboid("sex"), pg.Cuboid("race")]), "sex and race known"),
    ):
        for loss in (pg.Epsilon(1), pg.Rho("1/2")):
            for strategy in ("all", "base", "bmax", "unequal"):
                for consistency in (None, "least-squares"):
                    if consistency is None and strategy == "unequal":
                        continue
                    _compare(domain, policy, known, loss, strategy, consistency, small, runs)
    query = pg.queries.all_cuboids(whole)
    print("all 256 cuboids of Adult, 10 runs")
    for strategy, consistency in (
        ("all", "least-squares"),
        ("bmax", None),
        ("bmax", "least-squares"),
        ("unequal", "least-squares"),
    ):
        _compare(
            whole, pg.Policy(whole), "nothing known", pg.Epsilon(1), strategy, consistency, counts, 10, query
        )


def _compare(domain, policy, known, loss, strategy, consistency, counts, runs, query=None) -> None:
    query = pg.queries.all_cuboids(domain) if query is None else query
    ready = pg.Cube(strategy, consistency=consistency).calibrate(query, policy, loss)
    answers = query.answer(counts)
    starts = np.cumsum([0, *(part.height for part in query.parts)])
    square = np.zeros(len(query.sets))
    each_run = np.zeros((runs, len(query.sets)))
    for run in range(runs):
        made = ready.run(counts, pg.SecureRng())
        for at, (a, b) in enumerate(pairwise(starts.tolist())):
            each_run[run, at] = np.square(made.tables[at].values - answers[a:b]).mean()
    square = each_run.mean(axis=0)
    stated = np.array([ready.deviation(at) ** 2 for at in range(len(query.sets))])
    noisy = stated > 0
    assert np.all(square[~noisy] == 0)
    ratio = square[noisy] / stated[noisy]
    record.ratio(
        f"{'x'.join(map(str, domain.shape))}, {known}, {loss}, {strategy}, {consistency}: measured / stated variance",
        square[noisy].sum() / stated[noisy].sum(),
    )
    error = each_run[:, noisy].std(axis=0, ddof=1) / np.sqrt(runs) / stated[noisy]
    outside = np.abs(ratio - 1) / np.maximum(error, 1e-12)
    large = error < 0.01
    shown = f"{ratio[large].min():.3f} to {ratio[large].max():.3f}" if large.any() else "-"
    print(
        f"  {known:20} {loss!s:14} {strategy:8} {consistency or 'single sources':15}: all {square[noisy].sum() / stated[noisy].sum():.4f}, mean ratio "
        f"{ratio.mean():.4f}; {int(large.sum()):3} cuboids whose own error is below 1 %: {shown}; largest deviation of a cuboid "
        f"{outside.max():.1f} standard errors",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--only", nargs="*", help="some of the methods, All among them")
    parser.add_argument("--epsilons", nargs="*")
    parser.add_argument("--table")
    parser.add_argument("--plot")
    parser.add_argument("--variances", action="store_true")
    chosen = parser.parse_args()
    if chosen.variances:
        variances(chosen.runs or 1000)
        record.save("cubes_variances")
        return
    results = errors(chosen.runs or 5, chosen.only or [], chosen.epsilons or list(EPSILONS))
    print(table(results))
    record.save("cubes_errors")
    if chosen.table:
        Path(chosen.table).write_text(table(results) + "\n", encoding="utf-8")
    if chosen.plot:
        plot(results, chosen.plot)


if __name__ == "__main__":
    main()
