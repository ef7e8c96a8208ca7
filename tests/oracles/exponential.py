"""The exponential mechanism over neighbouring tables, straight from its definition; shares no code with the library."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from math import factorial

from tests.oracles.fibres import Table, neighbour_pairs, tables

Interval = tuple[Fraction, Fraction]


def exp_bounds(x: Fraction, terms: int = 60) -> Interval:
    """Enclose exp(x) for x >= 0: a partial sum, and that plus a geometric tail."""
    assert x < terms / 2
    low = sum((x**k / factorial(k) for k in range(terms)), Fraction(0))
    return low, low + 2 * x**terms / factorial(terms)


def graph(
    matrix: Sequence[Sequence[int]], values: Sequence[int | None], largest: int, cells: int
) -> tuple[list[Table], list[tuple[Table, Table]], dict[Table, dict[Table, int]]]:
    """All tables, all neighbour pairs, and the distances between tables."""
    listed = tables(matrix, values, largest, cells)
    pairs = neighbour_pairs(matrix, listed)
    joined: dict[Table, list[Table]] = {table: [] for table in listed}
    for a, b in pairs:
        joined[a].append(b)
        joined[b].append(a)
    distances = {}
    for start in listed:
        seen = {start: 0}
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for there in joined[here]:
                if there not in seen:
                    seen[there] = seen[here] + 1
                    queue.append(there)
        distances[start] = seen
    return listed, pairs, distances


def law(rate: Fraction, distances: dict[Table, int]) -> dict[Table, Interval]:
    """Enclose the probability of each table, drawn with weight exp(-rate * distance)."""
    weights = {}
    for table, d in distances.items():
        low, high = exp_bounds(rate * d)
        weights[table] = (1 / high, 1 / low)
    least = sum(w[0] for w in weights.values())
    most = sum(w[1] for w in weights.values())
    return {table: (low / most, high / least) for table, (low, high) in weights.items()}
