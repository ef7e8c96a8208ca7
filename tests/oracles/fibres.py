"""Lists every table with the published values and compares them pair by pair; shares no code with the library."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

Table = tuple[int, ...]


def tables(
    matrix: Sequence[Sequence[int]], values: Sequence[int | None], largest: int, cells: int
) -> list[Table]:
    """All tables with entries 0..largest that have the told values."""
    told = [(row, b) for row, b in zip(matrix, values, strict=True) if b is not None]
    return [
        x
        for x in product(range(largest + 1), repeat=cells)
        if all(sum(int(a) * v for a, v in zip(row, x, strict=True)) == b for row, b in told)
    ]


def neighbour_pairs(matrix: Sequence[Sequence[int]], fibre: list[Table]) -> list[tuple[Table, Table]]:
    """Pairs with the same margins and no third table between them, cell by cell."""
    by_margin: dict[Table, list[Table]] = {}
    for x in fibre:
        margin = tuple(sum(int(a) * v for a, v in zip(row, x, strict=True)) for row in matrix)
        by_margin.setdefault(margin, []).append(x)
    found = []
    for members in by_margin.values():
        for a, b in combinations(members, 2):
            between = (
                c
                for c in members
                if c not in (a, b)
                and all(min(p, q) <= r <= max(p, q) for p, q, r in zip(a, b, c, strict=True))
            )
            if next(between, None) is None:
                found.append((a, b))
    return found
