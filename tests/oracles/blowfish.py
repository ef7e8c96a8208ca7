"""The literal neighbours of He, Machanavajjhala & Ding (2014), Def. 4.1, by listing all data sets of n records.

Slow on purpose, and free of any argument about which changes can matter: every ordered pair (D1, D2) of data
sets with the same constraint values is compared with every third one. Only the names of the records are used as
a symmetry (D1 is listed in sorted order; renaming records renames D2 and D3 alike).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product

Values = tuple[int, ...]


def columns_of(matrix: Sequence[Sequence[int]], cells: int, bottom: bool) -> list[Values]:
    """The constraint column of every value; bottom, if there is one, is the last value and counts nowhere."""
    columns = [tuple(int(row[cell]) for row in matrix) for cell in range(cells)]
    return [*columns, tuple(0 for _ in matrix)] if bottom else columns


def image(columns: list[Values], data: Values) -> Values:
    return tuple(sum(parts) for parts in zip(*(columns[v] for v in data))) if columns[0] else ()


def secrets(adjacency: Sequence[Sequence[bool]], d1: Values, d2: Values) -> frozenset[tuple[int, int, int]]:
    """T(D1, D2): the secret pairs in which the two data sets differ."""
    return frozenset((i, x, y) for i, (x, y) in enumerate(zip(d1, d2)) if x != y and adjacency[x][y])


def changes(d1: Values, d2: Values) -> frozenset[tuple[int, int]]:
    """Records that differ with their new values: the part of the symmetric difference that is not in D1."""
    return frozenset((i, y) for i, (x, y) in enumerate(zip(d1, d2)) if x != y)


def neighbours(
    matrix: Sequence[Sequence[int]], adjacency: Sequence[Sequence[bool]], n: int, *, bottom: bool = False
) -> Iterator[tuple[Values, Values]]:
    """All ordered neighbour pairs (D1, D2) with n records, D1 sorted."""
    size = len(adjacency)
    columns = columns_of(matrix, size - bottom, bottom)
    groups: dict[Values, list[Values]] = defaultdict(list)
    for data in product(range(size), repeat=n):
        groups[image(columns, data)].append(data)
    for d1 in combinations_with_replacement(range(size), n):
        others = groups[image(columns, d1)]
        by_secrets: dict[frozenset[tuple[int, int, int]], list[frozenset[tuple[int, int]]]] = defaultdict(
            list
        )
        for d3 in others:
            by_secrets[secrets(adjacency, d1, d3)].append(changes(d1, d3))
        by_secrets.pop(frozenset(), None)
        for d2 in others:
            pairs = secrets(adjacency, d1, d2)
            if not pairs:
                continue
            if any(smaller < pairs for smaller in by_secrets):
                continue
            changed = changes(d1, d2)
            if any(fewer < changed for fewer in by_secrets[pairs]):
                continue
            yield d1, d2


def change(d1: Values, d2: Values, cells: int) -> Values:
    """Histogram of D2 minus histogram of D1."""
    delta = [0] * cells
    for x, y in zip(d1, d2):
        if y < cells:
            delta[y] += 1
        if x < cells:
            delta[x] -= 1
    return tuple(delta)


def moves(
    matrix: Sequence[Sequence[int]], adjacency: Sequence[Sequence[bool]], n: int, *, bottom: bool = False
) -> set[Values]:
    """All histogram changes between neighbours with n records, the zero change left out."""
    cells = len(adjacency) - bottom
    found = {change(d1, d2, cells) for d1, d2 in neighbours(matrix, adjacency, n, bottom=bottom)}
    return found - {(0,) * cells}


def within(delta: Values, cap: int | None) -> bool:
    """A cap counts records added to the histogram and records removed from it, each side by itself."""
    added, removed = sum(v for v in delta if v > 0), -sum(v for v in delta if v < 0)
    return cap is None or (added <= cap and removed <= cap)


def sensitivity(
    matrix: Sequence[Sequence[int]],
    adjacency: Sequence[Sequence[bool]],
    n: int,
    *,
    bottom: bool = False,
    query: Sequence[Sequence[int]] | None = None,
    norm: str = "l1",
    cap: int | None = None,
) -> int:
    """Largest L1 norm, or squared L2 norm, of the query over neighbours with exactly n records, within a cap."""
    best = 0
    for delta in moves(matrix, adjacency, n, bottom=bottom):
        if not within(delta, cap):
            continue
        answer = delta if query is None else tuple(sum(a * b for a, b in zip(row, delta)) for row in query)
        best = max(best, sum(abs(v) for v in answer) if norm == "l1" else sum(v * v for v in answer))
    return best
