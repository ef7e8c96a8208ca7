"""Private partitions: how fast, and their errors beside plain noise at what they leave of the loss.

    python benchmarks/partition.py [--write] [--no-speed]

Speed is held to 0.5 s for 4,096 cells and 60 s for 10^6 cells. Errors are held to those of plain noise at the part of epsilon that a partition leaves for the cells, on every
set of ``dpbench1d`` and ``grid2d`` in ``POLICYGRAPH_DATA`` (default: ``../shared/data`` beside the project) and on generated shapes. With ``--write`` the tables go into
``docs/benchmarks.md``. The exit status is 1 if a figure misses what it is held to.
"""

from __future__ import annotations

import os
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import record

import policygraph as pg
from policygraph.curator.histogram import Histogram
from policygraph.curator.runners.partitioned import choose
from policygraph.mechanisms import TransformedConsistent
from policygraph.mechanisms.partitioned import z_order
from policygraph.mechanisms.partitioned.mechanism import Partitioned
from policygraph.mechanisms.partitioned.partitioners import Intervals, Matchings

DATA = Path(os.environ.get("POLICYGRAPH_DATA", Path(__file__).parents[2] / "shared" / "data"))
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- partitions: begin -->", "<!-- partitions: end -->"
LIMITS = {4096: 0.5, 10**6: 60.0}
ROUNDS = 3
RUNS = 3
OUT: list[str] = []


def say(text: str = "") -> None:
    print(text, flush=True)
    OUT.append(text)


def sets(folder: str) -> dict[str, np.ndarray]:
    """The histograms, by name."""
    return {path.stem: np.load(path).astype(np.int64) for path in sorted((DATA / folder).glob("*.npy"))}


def speed() -> bool:
    """Print the seconds of one choice, noise included, and say whether the limits are met."""
    rng = np.random.default_rng(0)
    met = True
    print(f"{'cells':>10} {'runs':>8} {'first':>8} {'best':>8} {'limit':>8}")
    for size, limit in LIMITS.items():
        counts = rng.poisson(rng.gamma(0.1, 1000, size))
        data = Histogram.of(pg.Domain({"cell": size}), counts)
        for family in ("aligned", "sliding"):
            ready = Intervals(family).calibrate(size, Fraction(2), pg.Epsilon("1/20"), 30.0)
            times = []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                choose(ready, data, pg.SecureRng())
                times.append(time.perf_counter() - start)
            met &= min(times) <= limit
            record.figure(f"{size} cells, {family}, s", min(times))
            print(f"{size:10,} {family:>8} {times[0]:8.3f} {min(times):8.3f} {limit:8.1f}", flush=True)
    return met


def shapes(size: int) -> dict[str, np.ndarray]:
    """Tables that differ in kind: smooth, sparse, spiky, dense."""
    rng = np.random.default_rng(3)
    at = np.arange(size)
    one = np.zeros(size, dtype=np.int64)
    one[size // 3] = 100_000
    return {
        "empty": np.zeros(size, dtype=np.int64),
        "one cell": one,
        "uniform": np.full(size, 50),
        "steps": np.repeat(rng.integers(0, 200, 32), size // 32),
        "smooth": rng.poisson(300 * (1 + np.sin(at / 300))),
        "spikes": np.where(rng.random(size) < 0.02, rng.integers(0, 5000, size), 0),
        "heavy tail": np.minimum(rng.pareto(0.8, size), 10**6).astype(np.int64),
        "random dense": rng.integers(0, 2000, size),
        "alternating": np.where(at % 2, 600, 0),
        "two scales": np.where(at < size // 2, rng.integers(0, 3000, size), rng.poisson(2, size)),
    }


def ratio(mechanism: Partitioned, table: np.ndarray, epsilon: str) -> tuple[float, float]:
    """Mean squared error per cell, and the same over that of plain noise at what the partition leaves for the cells."""
    flat = table.ndim == 1
    domain = pg.Domain({"x": table.size} if flat else {"x": table.shape[0], "y": table.shape[1]})
    graph = pg.PolicyGraph.line(domain) if flat else pg.PolicyGraph.grid(domain)
    cells = table.ravel()
    ready = mechanism.calibrate(pg.queries.identity(domain), pg.Policy(domain, graph), pg.Epsilon(epsilon))
    counted = ready.counts(ready.chooser.loss.value)
    plain = float(np.mean(np.square(np.broadcast_to(counted.deviation(0), (cells.size,)))))
    named = int(cells.sum()) % 10**6
    made = (np.asarray(ready.run(cells, pg.SeededRng(f"{named} {seed}")).values()) for seed in range(RUNS))
    error = float(np.mean([np.mean((values - cells) ** 2) for values in made]))
    return error, error / plain


LINES = {
    "intervals": Partitioned(),
    "intervals, consistent": Partitioned(then=TransformedConsistent()),
    "sliding": Partitioned(Intervals("sliding")),
}
PAIRS = {
    "matching": Partitioned(Matchings()),
    "matching, up to 4 rounds": Partitioned(Matchings(rounds=4)),
}
GRIDS = {
    "intervals": Partitioned(),
    "intervals in Z-order": Partitioned(Intervals(order=z_order(pg.Domain({"x": 256, "y": 256})))),
}
COARSE = 512
"""Cells of the tables on which matchings are tried: a run with all pairs of 4,096 cells takes seconds."""
EPSILONS = ("0.1", "0.01", "0.001")
SHARES = ("1/16", "1/8", "1/4", "1/2")


def compare(found: dict[str, np.ndarray], methods: dict[str, Partitioned]) -> bool:
    """Say errors and ratios; whether every ratio is at most 1 but for noise."""
    fine = True
    say("| epsilon | set | " + " | ".join(methods) + " |\n|" + "---|" * (len(methods) + 2))
    for epsilon in EPSILONS:
        for name, table in found.items():
            row = []
            # A mean over the runs errs by about the root of 6 over all their cells; three times that is noise, and so are factors from 64 numbers.
            room = 1 + 3 * float(np.sqrt(6 / (RUNS * table.size))) + float(np.sqrt(16 / table.size))
            for method, mechanism in methods.items():
                error, to_plain = ratio(mechanism, table, epsilon)
                fine &= to_plain <= room
                record.ratio(f"epsilon {epsilon}, {name}, {method}, of plain noise", to_plain)
                row.append(f"{error:,.4g} ({to_plain:.2g})")
            say(f"| {epsilon} | {name} | " + " | ".join(row) + " |")
    return fine


def shares(found: dict[str, np.ndarray]) -> None:
    """Say what other shares of epsilon for the choice would give."""
    say("| share | price, at most | epsilon | largest | geometric mean |\n|---|---|---|---|---|")
    for share in SHARES:
        price = 1 / (1 - float(Fraction(share))) ** 2
        for epsilon in EPSILONS:
            each = [
                ratio(Partitioned(share=share), table, epsilon)[0] * float(epsilon) ** 2 / 4
                for table in found.values()
            ]
            mean = float(np.exp(np.mean(np.log(np.maximum(each, 1e-3)))))
            say(f"| {share} | {price:.2f} | {epsilon} | {max(each):.3g} | {mean:.3g} |")


def accuracy() -> bool:
    """Say all tables of errors; whether they meet what they are held to."""
    public = sets("dpbench1d")
    made = shapes(4096)
    say(
        "Line policy, 4,096 cells; mean squared error per cell, and in parentheses the ratio to plain noise at the part of epsilon that is left for the cells.\n"
    )
    fine = compare(public | made, LINES)
    say(
        f"\nMatchings, line policy, {COARSE} cells (of the public sets, sums of neighbouring cells); the same.\n"
    )
    sums = {name: table.reshape(COARSE, -1).sum(axis=1) for name, table in public.items()}
    fine &= compare(sums | shapes(COARSE), PAIRS)
    grids = sets("grid2d")
    if grids:
        say("\nGrid policy, 256 x 256 cells; the same.\n")
        fine &= compare(grids, GRIDS)
    say(
        "\nShares of epsilon for the choice of intervals: error in units of plain noise at the whole epsilon, over all tables of 4,096 cells.\n"
    )
    shares(public | made)
    return fine


def write() -> None:
    """Put the tables into their place in the page; what other benchmarks wrote there stays."""
    page = PAGE.read_text(encoding="utf-8")
    title = [
        BEGIN,
        "## Private partitions",
        "",
        "Made by `python benchmarks/partition.py --no-speed --write`.",
        "",
    ]
    text = "\n".join([*title, *OUT, END])
    if BEGIN in page and END in page:
        before, rest = page.split(BEGIN, 1)
        page = before + text + rest.split(END, 1)[1]
    else:
        page = page.rstrip("\n") + "\n\n" + text + "\n"
    PAGE.write_text(page, encoding="utf-8")


def main() -> int:
    """Print all tables and return 1 if a limit is missed."""
    met = "--no-speed" in sys.argv or speed()
    met &= accuracy()
    record.save("partition")
    say("\nAll figures are met." if met else "\nA figure is missed.")
    if "--write" in sys.argv:
        write()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
