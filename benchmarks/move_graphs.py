"""Times of the move graphs with polynomial structure: two cuboids, directed and undirected degrees.

Run as ``python benchmarks/move_graphs.py``; prints one line a case and fails when a promise is not kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import record

from policygraph.moves.degrees import changes as alternating
from policygraph.moves.two_way import changes as bipartite

LIMIT = 1.0


def timed(name: str, run: Callable[[], Any], limit: float | None = LIMIT) -> Any:
    start = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - start
    record.figure(f"{name}, s", seconds)
    print(f"{name:<72}{seconds:8.3f} s" + ("" if limit is None else f"   (promised {limit} s)"))
    assert limit is None or seconds < limit, name
    return result


def longest() -> None:
    for known in ((1000, 1000), (999, 500), (500, 500)):
        timed(
            f"two cuboids, 10^6 cells, {known} sums known",
            partial(bipartite.longest_bipartite_move, 1000, 1000, *known),
        )
    timed(
        "two cuboids, 10^5 x 10^5, 60,000 sums a side and the total known",
        lambda: bipartite.longest_bipartite_move(10**5, 10**5, 60_000, 60_000, total_known=True),
    )
    timed(
        "directed graph without loops, 10^5 nodes, all in- and out-degrees known",
        lambda: bipartite.longest_bipartite_move(10**5, 10**5, 10**5, 10**5, loops_forbidden=True),
    )
    for n in (10**5, 10**5 - 1, 10**5 // 2):
        timed(
            f"undirected graph, 10^5 nodes, {n} degrees known",
            partial(alternating.longest_degree_move, 10**5, n),
        )


def parts() -> None:
    rng = np.random.default_rng(0)
    size = 10**5
    order = rng.permutation(size)
    cycle = (
        np.concatenate([order, np.roll(order, 1)]),
        np.concatenate([np.arange(size), np.arange(size)]),
        np.concatenate([np.ones(size, dtype=np.int64), -np.ones(size, dtype=np.int64)]),
    )
    timed("one cycle through 10^5 rows: is it minimal", lambda: bipartite.is_minimal(cycle, size, size), None)
    rows, columns = (rng.integers(0, 1000, size=(2, size)) for _ in range(2))
    squares = (
        np.concatenate([rows[0], rows[0], rows[1], rows[1]]),
        np.concatenate([columns[0], columns[1], columns[0], columns[1]]),
        np.repeat(np.array([1, -1, -1, 1]), size),
    )
    timed(
        "10^5 random swaps in a table of 10^6 cells: decompose",
        lambda: bipartite.decompose(squares, 1000, 1000),
        None,
    )
    nodes = rng.integers(0, 10**4, size=(4, size))
    switches = (
        np.concatenate([nodes[0], nodes[2], nodes[0], nodes[2]]),
        np.concatenate([nodes[1], nodes[3], nodes[3], nodes[1]]),
        np.repeat(np.array([1, 1, -1, -1]), size),
    )
    timed(
        "10^5 random switches on 10^4 nodes: find a sub-move",
        lambda: alternating.find_submove(switches, 10**4),
        None,
    )
    moves = timed(
        "10^5 random switches on 10^4 nodes: decompose",
        lambda: alternating.decompose(switches, 10**4),
        None,
    )
    record.ratio("minimal moves of the switches", len(moves))
    print(f"    {len(moves)} minimal moves")


def forbidden() -> None:
    rng = np.random.default_rng(1)
    for n, density in ((12, 0.5), (30, 0.85), (60, 0.95), (1000, 0.01)):
        cells = np.argwhere(rng.random((n, n)) < density).tolist()
        result = timed(
            f"{n} x {n}, {density:.0%} of the cells forbidden, all sums known",
            partial(bipartite.longest_with_forbidden, n, n, n, n, cells),
            None,
        )
        record.ratio(f"{n} x {n} with forbidden cells, upper bound", result.upper)
        print(f"    between {result.lower} and {result.upper}")


if __name__ == "__main__":
    longest()
    parts()
    forbidden()
    record.save("move_graphs")
