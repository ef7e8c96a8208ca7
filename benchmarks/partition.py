"""Interval partitions: how fast, and how accurate beside other mechanisms on the same tables.

    python benchmarks/partition.py [folder with .npy tables of 4,096 counts]

Speed is held to 0.5 s for 4,096 cells and 60 s for 10^6 cells, and the exit status is 1 if a limit is missed. Accuracy is the
mean squared error per cell under a line policy; tables are the given ones (public benchmark data) and simulated ones.
"""

from __future__ import annotations

import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import record

import policygraph as pg
from policygraph.curator.histogram import Histogram
from policygraph.curator.runners.partitioned import choose
from policygraph.mechanisms import TransformedConsistent, TransformedLaplace
from policygraph.mechanisms.partitioned.mechanism import Partitioned
from policygraph.mechanisms.partitioned.partitioners import Intervals

LIMITS = {4096: 0.5, 10**6: 60.0}
ROUNDS = 3
RUNS = 3


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


def tables(folder: str | None) -> dict[str, np.ndarray]:
    """The given tables, then simulated ones: steps, spikes, a smooth curve."""
    rng = np.random.default_rng(3)
    out = {}
    for path in sorted(Path(folder).glob("*.npy")) if folder else ():
        out[path.stem] = np.load(path).astype(np.int64).ravel()
    size = 4096
    out["steps"] = np.repeat(rng.integers(0, 200, 32), size // 32)
    out["spikes"] = np.where(rng.random(size) < 0.02, rng.integers(0, 5000, size), 0)
    out["smooth"] = rng.poisson(300 * (1 + np.sin(np.arange(size) / 300)))
    return out


MECHANISMS = {
    "Laplace": pg.Laplace(),
    "transformed": TransformedLaplace(),
    "transformed, consistent": TransformedConsistent(),
    "aligned": Partitioned(),
    "aligned, consistent": Partitioned(then=TransformedConsistent()),
    "sliding": Partitioned(Intervals("sliding")),
    "sliding, consistent": Partitioned(Intervals("sliding"), then=TransformedConsistent()),
}


def accuracy(folder: str | None) -> None:
    """Print mean squared errors per cell."""
    found = tables(folder)
    for epsilon in ("0.1", "0.01"):
        print(f"\nepsilon {epsilon:25}" + "".join(f"{name:>12}" for name in found))
        for name, mechanism in MECHANISMS.items():
            row = []
            for counts in found.values():
                domain = pg.Domain({"cell": len(counts)})
                policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
                ready = mechanism.calibrate(pg.queries.identity(domain), policy, pg.Epsilon(epsilon))
                made = (ready.run(counts, pg.SeededRng(seed)).values() for seed in range(RUNS))
                row.append(np.mean([np.mean((values - counts) ** 2) for values in made]))
            for table, error in zip(found, row):
                record.ratio(f"epsilon {epsilon}, {table}, {name}, error per cell", error)
            print(f"{name:33}" + "".join(f"{error:12.4g}" for error in row), flush=True)


def main() -> int:
    """Print both tables and return 1 if a limit of speed is missed."""
    met = speed()
    accuracy(sys.argv[1] if len(sys.argv) > 1 else None)
    record.save("partition")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
