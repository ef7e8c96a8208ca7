"""Families straight from the definition: data sets are lists of families, each with a value and a size; shares no code with the library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product

Family = tuple[int, int]
"""A cell, and how many members are in it."""
Table = tuple[int, ...]


def data_sets(cells: int, sizes: Sequence[int], most: int) -> list[tuple[Family, ...]]:
    """All data sets of at most so many families."""
    every = list(product(range(cells), sizes))
    return [data for n in range(most + 1) for data in combinations_with_replacement(every, n)]


def counted(data: Sequence[Family], cells: int) -> Table:
    """Records in each cell."""
    return tuple(sum(size for cell, size in data if cell == at) for at in range(cells))


def neighbours(
    cells: int, sizes: Sequence[int], most: int, edges: Sequence[tuple[int, int | None]] | None
) -> Iterator[tuple[Table, Table]]:
    """Pairs of tables of which one family goes along an edge with all its members (None: it vanishes); without edges it appears or vanishes."""
    steps = [(u, None) for u in range(cells)] if edges is None else list(edges)
    for data in data_sets(cells, sizes, most):
        for at, (cell, size) in enumerate(data):
            rest = data[:at] + data[at + 1 :]
            for u, v in steps:
                for one, two in ((u, v), (v, u)):
                    if one != cell:
                        continue
                    after = rest if two is None else (*rest, (two, size))
                    yield counted(data, cells), counted(after, cells)


def under_facts(
    cells: int, size: int, most: int, rows: Sequence[Sequence[int]]
) -> Iterator[tuple[Table, Table]]:
    """Pairs of tables of families of one size that have the same public sums and no third such table between them."""
    fitting: dict[tuple[int, ...], list[Table]] = {}
    for counts in product(range(most + 1), repeat=cells):
        table = tuple(size * x for x in counts)
        fitting.setdefault(tuple(sum(a * x for a, x in zip(row, table)) for row in rows), []).append(table)
    for members in fitting.values():
        for a, b in product(members, repeat=2):
            if a < b and not any(
                c not in (a, b) and all(min(p, q) <= r <= max(p, q) for p, q, r in zip(a, b, c))
                for c in members
            ):
                yield a, b


def largest(pairs: Iterator[tuple[Table, Table]], query: Sequence[Sequence[int]], norm: str) -> int:
    """Largest change of a query over pairs, squared for l2."""
    best = 0
    for a, b in pairs:
        moved = [sum(w * (y - x) for w, x, y in zip(row, a, b)) for row in query]
        best = max(best, sum(abs(m) if norm == "l1" else m * m for m in moved))
    return best
