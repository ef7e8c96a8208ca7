"""Units straight from the definition: data sets are lists of units, each a list of cells; shares no code with the library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import md5
from itertools import combinations_with_replacement, product

Records = tuple[int, ...]
"""The cells of the records of one unit, ascending."""
Edge = tuple[int, int | None]
Table = tuple[int, ...]


def possible(cells: Sequence[int], most: int, per_cell: int) -> list[Records]:
    """All that one unit can have."""
    every = (made for n in range(most + 1) for made in combinations_with_replacement(cells, n))
    return [made for made in every if all(n <= per_cell for n in Counter(made).values())]


def data_sets(
    cells: Sequence[int], most: int, per_cell: int, units: int, records: int
) -> list[tuple[Records, ...]]:
    """All data sets of so many units with so many records in all; a unit may have none."""
    every = possible(cells, most, per_cell)
    return [data for data in combinations_with_replacement(every, units) if sum(map(len, data)) <= records]


def counted(data: Sequence[Records], size: int) -> Table:
    """Records in each cell."""
    return tuple(sum(unit.count(cell) for unit in data) for cell in range(size))


def changes(unit: Records, most: int, per_cell: int, edges: Sequence[Edge] | None) -> set[Records]:
    """All that one unit can become: nothing without edges; else each of its places, filled or not, stays or goes along an edge."""
    if edges is None:
        return {()}
    ways: dict[int | None, set[int | None]] = {}
    for u, v in edges:
        ways.setdefault(u, set()).add(v)
        ways.setdefault(v, set()).add(u)
    places: list[int | None] = [*unit, *[None] * (most - len(unit))]
    out = set()
    for made in product(*({at} | ways.get(at, set()) for at in places)):
        kept = tuple(sorted(cell for cell in made if cell is not None))
        if all(n <= per_cell for n in Counter(kept).values()):
            out.add(kept)
    return out


def neighbours(
    cells: Sequence[int],
    size: int,
    most: int,
    per_cell: int,
    edges: Sequence[Edge] | None,
    units: int = 3,
    records: int = 4,
) -> Iterator[tuple[Table, Table]]:
    """Pairs of tables of data sets that differ in one unit."""
    for data in data_sets(cells, most, per_cell, units, records):
        for at, unit in enumerate(data):
            for after in changes(unit, most, per_cell, edges):
                if after != unit:
                    yield counted(data, size), counted((*data[:at], after, *data[at + 1 :]), size)


def bounded(records: Sequence[int], most: int, per_cell: int, order: dict[tuple[int, int], int]) -> Records:
    """What is kept of a unit: of each cell so many, then of all the first in an order of (cell, number among those of the cell)."""
    copies = [(cell, j) for cell in set(records) for j in range(min(records.count(cell), per_cell))]
    return tuple(sorted(cell for cell, j in sorted(copies, key=lambda each: (order[each], each))[:most]))


PRIME = 2**31 - 1


def place(key: str, unit: str, cell: int, j: int, per_cell: int) -> int:
    """Where a record of a unit stands in its order: a polynomial with four numbers from the MD5 of key and unit, at the cell and the number among its like."""
    made = md5(f"{key}:{unit}".encode()).hexdigest()
    words = [int(made[at : at + 8], 16) for at in (0, 8, 16, 24)]
    x = cell * per_cell + j
    return sum(word * x**power for word, power in zip(words, (3, 2, 1, 0))) % PRIME
