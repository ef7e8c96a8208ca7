"""Errors of the methods for histograms under a line policy, on the 4,096-cell sets, as a Markdown table; and their speed.

    python benchmarks/histograms.py [runs]

The sets are read from the folder ``dpbench1d`` of ``POLICYGRAPH_DATA`` (default: ``../shared/data`` beside the
project). Errors are mean squared errors per cell and per random range, over the runs. The exit status is 1 if a
figure misses what it is held to.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import policygraph as pg
from policygraph.private.mechanisms import TransformedConsistent, TransformedLaplace
from policygraph.private.noise import discrete_laplace
from policygraph.public.reductions import ForestTransform, GridTransform, transform
from policygraph.public.reductions.tree import rooted

DATA = Path(os.environ.get("POLICYGRAPH_DATA", Path(__file__).parents[2] / "shared" / "data"))
EPSILONS = ("0.1", "0.01")
METHODS = {
    "Laplace at eps/2": pg.Laplace(),
    "transformed Laplace": TransformedLaplace(),
    "transformed + consistency": TransformedConsistent(),
}
LARGE = 10**7
GRID = 1024


def sets() -> dict[str, np.ndarray]:
    """The histograms, by name."""
    found = sorted((DATA / "dpbench1d").glob("*.npy"))
    return {path.stem: np.load(path).astype(np.int64) for path in found}


def errors(of: str, cells: np.ndarray, epsilon: str, runs: int) -> dict[str, tuple[float, float]]:
    """Mean squared error per cell and per random range of each method."""
    domain = pg.Domain({"x": len(cells)})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    query, ranges = pg.queries.identity(domain), pg.queries.random_boxes(domain, 2000, seed=1)
    truth = ranges.answer(cells)
    out = {}
    for name, mechanism in METHODS.items():
        ready = mechanism.calibrate(query, policy, pg.Epsilon(epsilon))
        source = pg.SeededSource(f"{of} {name} {epsilon}")
        made = [ready.noisy(cells, source) for _ in range(runs)]
        per_cell = float(np.mean([((m - cells) ** 2).mean() for m in made]))
        per_range = float(np.mean([((ranges.answer(m) - truth) ** 2).mean() for m in made]))
        out[name] = (per_cell, per_range)
    return out


def longest(epsilon: str) -> float:
    """Largest expected error of a range of any length, exactly."""
    domain = pg.Domain({"x": 4096})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    ready = TransformedLaplace().calibrate(pg.queries.all_ranges(domain), policy, pg.Epsilon(epsilon))
    return float(ready.variances.max())


def best(work: Callable[[], object], rounds: int = 5) -> float:
    """Least seconds of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def random_tree(domain: pg.Domain) -> ForestTransform:
    """The transform of a random recursive tree in random numbering, made from its edges."""
    rng = np.random.default_rng(1)
    names = rng.permutation(domain.size)
    above = (np.arange(1, domain.size) * rng.random(domain.size - 1)).astype(np.int64)
    parent, order = rooted(domain.size, names[1:], names[above], names[:1])
    return ForestTransform(pg.Policy(domain), parent, order, names[:1])


def speed() -> bool:
    """Print seconds for large lines, trees and grids; whether they meet what they are held to."""
    domain = pg.Domain({"x": LARGE})
    cells = np.random.default_rng(0).integers(0, 100, LARGE)
    draw = best(lambda: discrete_laplace(10, LARGE, pg.SecureSource()))
    print(f"\n| what | seconds | held to |\n|---|---|---|\n| noise of 10^7 edges | {draw:.2f} | |")
    fine = True
    line = transform(pg.Policy(domain, pg.PolicyGraph.line(domain)))
    for name, reduction in (("line", line), ("random tree", random_tree(domain))):
        sums = reduction.apply(cells)
        for what, work in (
            ("transform", lambda r=reduction: r.apply(cells)),
            ("inverse", lambda r=reduction, s=sums: r.invert(s)),
        ):
            took = best(work)
            fine &= took <= 3 * draw
            print(f"| {name} of 10^7 cells, {what} | {took:.2f} | {3 * draw:.2f} |")
    square = pg.Domain({"x": GRID, "y": GRID})
    grid = GridTransform(pg.Policy(square, pg.PolicyGraph.grid(square)))
    flat = np.random.default_rng(0).integers(0, 100, GRID * GRID)
    took = best(lambda: grid.least_flow(flat), 1)
    fine &= took <= 10
    print(f"| {GRID} x {GRID} grid, least-squares (Laplacian) solve | {took:.2f} | 10 |")
    ready = TransformedLaplace(route="edges").calibrate(
        pg.queries.identity(square), grid.policy, pg.Epsilon(1)
    )
    took = best(lambda: ready.noisy(flat, pg.SecureSource()), 1)
    print(f"| {GRID} x {GRID} grid, noise on all edges | {took:.2f} | |")
    return fine


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    found = sets()
    if not found:
        print(f"no sets in {DATA / 'dpbench1d'}: set POLICYGRAPH_DATA to the folder of the benchmark data.")
        return 2
    fine = True
    print("Line policy, number of records public; mean squared error per cell / per random range.\n")
    print("| epsilon | method | " + " | ".join(found) + " | held to (cells) |\n|" + "---|" * (len(found) + 3))
    for epsilon in EPSILONS:
        table = {name: errors(name, cells, epsilon, runs) for name, cells in found.items()}
        unit = 1 / float(epsilon) ** 2
        held = {
            "Laplace at eps/2": f"{8 * unit:,.0f} within noise",
            "transformed Laplace": f"{4 * unit:,.0f} within noise",
            "transformed + consistency": "0.95 of transformed Laplace"
            + ("; 0.5 where most cells are 0" if epsilon == "0.01" else ""),
        }
        for method in METHODS:
            numbers = " | ".join("{:,.4g} / {:,.4g}".format(*table[name][method]) for name in found)
            print(f"| {epsilon} | {method} | {numbers} | {held[method]} |")
        for name, cells in found.items():
            plain, moved, fitted = (table[name][method][0] for method in METHODS)
            zeros = epsilon == "0.01" and (cells == 0).mean() > 0.5
            fine &= abs(plain / (8 * unit) - 1) < 0.05 and abs(moved / (4 * unit) - 1) < 0.05
            fine &= fitted <= (0.5 if zeros else 0.95) * moved
    print(
        "\n| epsilon | largest expected error of a range of any length, transformed Laplace | held to |\n|---|---|---|"
    )
    for epsilon in EPSILONS:
        most = longest(epsilon)
        fine &= most <= 4 / float(epsilon) ** 2
        print(f"| {epsilon} | {most:,.6g} | {4 / float(epsilon) ** 2:,.6g} |")
    fine &= speed()
    print("\nAll figures are met." if fine else "\nA figure is missed.")
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
