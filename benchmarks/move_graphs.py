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

import policygraph as pg
from policygraph.moves.degrees.closed_form import longest_degree_move
from policygraph.moves.two_way.closed_form import longest_bipartite_move
from policygraph.moves.two_way.forbidden import longest_with_forbidden

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
            partial(longest_bipartite_move, 1000, 1000, *known),
        )
    timed(
        "two cuboids, 10^5 x 10^5, 60,000 sums a side and the total known",
        lambda: longest_bipartite_move(10**5, 10**5, 60_000, 60_000, total_known=True),
    )
    timed(
        "directed graph without loops, 10^5 nodes, all in- and out-degrees known",
        lambda: longest_bipartite_move(10**5, 10**5, 10**5, 10**5, loops_forbidden=True),
    )
    for n in (10**5, 10**5 - 1, 10**5 // 2):
        timed(
            f"undirected graph, 10^5 nodes, {n} degrees known",
            partial(longest_degree_move, 10**5, n),
        )


def neighbours() -> None:
    """What ``are_neighbours`` and ``decompose`` take, tables and policies included."""
    rng = np.random.default_rng(0)
    sign = np.where(np.arange(300) % 2, 1, -1)
    before = rng.integers(1, 9, (300, 300))
    dense = before + np.outer(sign, sign)
    domain = pg.Domain({"a": 300, "b": 300})
    some = [pg.Cells("a", range(250)), pg.Cells("b", range(200)), pg.Total()]
    for name, facts in (("both margins", [pg.Cuboid("a"), pg.Cuboid("b")]), ("parts and the total", some)):
        policy = pg.Policy(domain, constraints=facts)
        ask = partial(policy.are_neighbours, before, dense)
        timed(f"300 x 300, all 90,000 cells changed, {name}: are_neighbours", ask, 0.25)
        parts = timed(f"the same, {name}: decompose", partial(policy.decompose, before, dense), 10.0)
        print(f"    {len(parts)} minimal moves")
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    circle = np.eye(300, dtype=np.int64)
    timed(
        "300 x 300, one cycle through all rows: are_neighbours (yes)",
        partial(policy.are_neighbours, circle, np.roll(circle, 1, axis=1)),
        0.25,
    )
    network = pg.Network(1000)
    policy = pg.Policy(network, constraints=[pg.Degrees()])
    table, other = _switched(network, 10**5, rng)
    changed = int(np.count_nonzero(table != other))
    asked = partial(policy.are_neighbours, table, other)
    timed(f"1,000 nodes, all degrees, {changed:,} edges changed: are_neighbours", asked, 1.0)
    parts = timed("the same network: decompose", partial(policy.decompose, table, other), 30.0)
    record.ratio("minimal moves of the switches", len(parts))
    print(f"    {len(parts)} minimal moves")


def _switched(network: pg.Network, changed: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """A random graph, and one with the same degrees that many random switches of two edges lead to."""
    order = network.order
    base = rng.random((order, order)) < 0.5
    table = np.zeros(network.size, dtype=np.int64)
    table[:] = np.triu(base, 1)[np.triu_indices(order, 1)]
    other = table.copy()
    while np.count_nonzero(table != other) < changed:
        a, b, c, d = rng.integers(0, order, (4, 4 * changed))
        for w, x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), d.tolist()):
            if len({w, x, y, z}) < 4:
                continue
            one, two, three, four = (
                min(u, v) * (2 * order - min(u, v) - 1) // 2 + max(u, v) - min(u, v) - 1
                for u, v in ((w, x), (y, z), (w, z), (y, x))
            )
            if other[one] and other[two] and not other[three] and not other[four]:
                other[[one, two]], other[[three, four]] = 0, 1
    return table, other


def forbidden() -> None:
    rng = np.random.default_rng(1)
    for n, density in ((12, 0.5), (30, 0.85), (60, 0.95), (1000, 0.01)):
        cells = np.argwhere(rng.random((n, n)) < density).tolist()
        result = timed(
            f"{n} x {n}, {density:.0%} of the cells forbidden, all sums known",
            partial(longest_with_forbidden, n, n, n, n, cells),
            None,
        )
        record.ratio(f"{n} x {n} with forbidden cells, upper bound", result.upper)
        print(f"    between {result.lower} and {result.upper}")


if __name__ == "__main__":
    longest()
    neighbours()
    forbidden()
    record.save("move_graphs")
