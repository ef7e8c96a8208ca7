"""Exact matching on all pairs: how fast, beside networkx on the sizes that it can do.

    python benchmarks/matching.py [largest number of vertices]

Noisy costs are those of the partitioner. "near ties" has noise a thousandth of the differences between counts, most of
which are equal; "ties" has noise of a few whole steps. Held to 10 s for 2,048 vertices, 60 s for 4,096, and ten times that
for (near) ties; the exit status is 1 if a limit is missed. Certificates are checked inside the measured time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from fractions import Fraction

import networkx
import numpy as np
import record

import policygraph as pg
from policygraph.mechanisms.matching import cheapest_cover
from policygraph.mechanisms.partitioned import Partition
from policygraph.mechanisms.partitioned.partitioners import Matchings

SIZES = (256, 512, 1024, 2048, 4096)
LIMITS = {2048: 10.0, 4096: 60.0}
PEER = 256
"""networkx takes minutes beyond this."""


def cases(n: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Costs of pairs and singles: noise as released, near ties, ties, and points in the plane."""
    rng = np.random.default_rng(n)
    counts = rng.poisson(rng.gamma(0.1, 1000, n)).astype(np.int64)
    apart = np.abs(counts[:, None] - counts[None, :])

    def noise(scale: float) -> np.ndarray:
        drawn = np.triu(np.rint(rng.laplace(0, scale, (n, n))).astype(np.int64), 1)
        return drawn + drawn.T

    ready = Matchings().calibrate(n, Fraction(2), pg.Epsilon("1/2"), 4.0)
    pairs, singles = ready.costs(counts, Partition.singletons(n), 1, pg.SeededRng(n))
    yield "noisy", pairs[0], singles[0]
    yield "near ties", (apart << 20) + noise(1 << 10), np.full(n, 1 << 23)
    yield "ties", apart + noise(3), np.full(n, 5)
    points = rng.integers(0, 10**6, (n, 2))
    yield "plane", np.abs(points[:, None] - points[None]).sum(-1), np.full(n, 10**7)


def peer(pairs: np.ndarray, singles: np.ndarray) -> tuple[int, float]:
    """Cost and seconds of networkx on the same problem."""
    graph: networkx.Graph = networkx.Graph()
    for a in range(len(singles)):
        for b in range(a + 1, len(singles)):
            gain = int(singles[a] + singles[b] - pairs[a, b])
            if gain > 0:
                graph.add_edge(a, b, weight=gain)
    start = time.perf_counter()
    chosen = networkx.max_weight_matching(graph)
    seconds = time.perf_counter() - start
    return int(singles.sum()) - sum(graph[a][b]["weight"] for a, b in chosen), seconds


def main() -> int:
    """Print the table and return 1 if a limit is missed or networkx finds another optimum."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else SIZES[-1]
    cheapest_cover(np.zeros((3, 3), dtype=np.int64), np.ones(3, dtype=np.int64))  # loads the compiled code
    good = True
    print(
        f"{'vertices':>8} {'costs':>10} {'seconds':>8} {'limit':>6} {'trees':>6} {'blossoms':>9} {'networkx':>9}"
    )
    for n in SIZES:
        if n > most:
            break
        for name, pairs, singles in cases(n):
            start = time.perf_counter()
            found = cheapest_cover(pairs, singles)
            seconds = time.perf_counter() - start
            limit = LIMITS.get(n, 0.0) * (10 if "ties" in name else 1)
            other = ""
            if n <= PEER:
                cost, took = peer(pairs, singles)
                good &= cost == found.cost
                record.ratio(f"{n} vertices, {name}, times as fast as networkx", took / seconds)
                other = f"{took:9.2f}" + ("" if cost == found.cost else " OTHER OPTIMUM")
            good &= not limit or seconds <= limit
            record.figure(f"{n} vertices, {name}, s", seconds)
            shown = f"{limit:6.0f}" if limit else " " * 6
            blossoms = len(found.certificate.blossoms)
            print(
                f"{n:8,} {name:>10} {seconds:8.2f} {shown} {found.trees:6} {blossoms:9} {other}", flush=True
            )
    record.save("matching")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
