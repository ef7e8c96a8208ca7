"""Linked tables straight from the definition: data sets are lists of units, each a group and the values of its rows; shares no code with the library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations_with_replacement, product

Unit = tuple[int, tuple[int, ...]]
"""Where a unit is, and the values of its rows of the second table, ascending."""


def units(groups: int, values: int, most: int) -> list[Unit]:
    """All that one unit can be."""
    rows = chain(*(combinations_with_replacement(range(values), n) for n in range(most + 1)))
    return list(product(range(groups), list(rows)))


def counted(data: Sequence[Unit], groups: int, values: int, most: int) -> list[int]:
    """Counts of the first table by group and number of rows, then of the second by group and value."""
    out = [0] * (groups * (most + 1) + groups * values)
    for group, rows in data:
        out[group * (most + 1) + len(rows)] += 1
        for value in rows:
            out[groups * (most + 1) + group * values + value] += 1
    return out


def _parts(items: Sequence[Unit]) -> Iterator[tuple[Unit, ...]]:
    for mask in range(1 << len(items)):
        yield tuple(item for at, item in enumerate(items) if mask >> at & 1)


def _same(gone: Sequence[Unit], come: Sequence[Unit], known: frozenset[str]) -> bool:
    outer = len(gone) == len(come) or "outer" not in known
    return outer and (sum(len(r) for _, r in gone) == sum(len(r) for _, r in come) or "inner" not in known)


def exchanges(
    every: Sequence[Unit], known: frozenset[str], most_units: int
) -> Iterator[tuple[tuple[Unit, ...], tuple[Unit, ...]]]:
    """All minimal changes: units that go and units that come, of which no part but none and all keeps what is known."""
    sides = [side for n in range(most_units + 1) for side in combinations_with_replacement(every, n)]
    for gone, come in product(sides, repeat=2):
        if set(gone) & set(come) or not (gone or come) or not _same(gone, come, known):
            continue
        smaller = any(
            _same(a, b, known)
            for a in _parts(gone)
            for b in _parts(come)
            if 0 < len(a) + len(b) < len(gone) + len(come)
        )
        if not smaller:
            yield gone, come


def bounded(rows: Sequence[int], most: int, order: dict[tuple[int, int], int]) -> tuple[int, ...]:
    """The rows of a unit that count: the first in an order of (value, number among those of the value)."""
    copies = [(value, j) for value in sorted(set(rows)) for j in range(rows.count(value))]
    return tuple(sorted(value for value, _ in sorted(copies, key=lambda each: (order[each], each))[:most]))
