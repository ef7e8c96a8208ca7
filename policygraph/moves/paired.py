"""Sums that count each cell twice at most, in all: minimal moves are walks that pass each sum twice. Owns :func:`longest_walk` and :func:`some_cycle`.

A cell is an edge between the sums that count it, and a minimal move is one closed walk along edges, or one walk between two cells that are counted once.
Proof: ``docs/explanation/proofs/single-moves.md``, section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["PairedSums", "longest_walk", "some_cycle", "walks_of"]

Column = Mapping[int, int]


@dataclass
class PairedSums:
    """A connected part of sums and cells.

    Attributes
    ----------
    cells
        Numbers of the cells of the part.
    sums
        Its sums with the side of each, 1 or -1: in a balanced part each cell is an arc once the sums of one side change their signs.
    balanced
        Whether there are such sides.
    open
        Whether a cell is counted once only, so that a walk may begin and end.
    """

    cells: list[int] = field(default_factory=list)
    sums: dict[int, int] = field(default_factory=dict)
    balanced: bool = True
    open: bool = False

    @property
    def length(self) -> int:
        """Most cells of a walk that passes each sum twice, or once in a balanced part."""
        passed = len(self.sums) * (1 if self.balanced else 2)
        return passed + 1 if self.open else passed if passed > 1 else 0


def walks_of(columns: Sequence[Column]) -> list[PairedSums] | None:
    """The connected parts; None where a cell is counted more than twice in all.

    Parameters
    ----------
    columns
        What a record in each cell adds to the sums, without zeros. Cells in no sum are in no part.

    Examples
    --------
    A triangle, whose three sums count two cells each:

    >>> [part.balanced for part in walks_of([{0: 1, 1: 1}, {1: 1, 2: 1}, {0: 1, 2: 1}])]
    [False]
    """
    if any(sum(map(abs, column.values())) > 2 for column in columns):
        return None
    of: dict[int, list[int]] = {}
    for cell, column in enumerate(columns):
        for row in column:
            of.setdefault(row, []).append(cell)
    parts: list[PairedSums] = []
    seen: set[int] = set()
    for start in of:
        if start in seen:
            continue
        part, queue = PairedSums(sums={start: 1}), [start]
        cells: dict[int, None] = {}
        while queue:
            row = queue.pop()
            seen.add(row)
            for cell in of[row]:
                cells[cell] = None
                ends = list(columns[cell].items())
                if len(ends) == 1:
                    part.open |= abs(ends[0][1]) == 1
                    part.balanced &= abs(ends[0][1]) == 1
                    continue
                (here, x), (there, y) = ends if ends[0][0] == row else ends[::-1]
                side = -x * y * part.sums[here]
                if there not in part.sums:
                    part.sums[there] = side
                    queue.append(there)
                part.balanced &= part.sums[there] == side
        part.cells = list(cells)
        parts.append(part)
    return parts


def longest_walk(columns: Iterable[Column]) -> tuple[int, int] | None:
    """No minimal move is longer, and none changes a cell by more; None where a cell is counted more than twice in all.

    Returns
    -------
    tuple of int or None
        Bounds on the L1 norm and on the entries.

    Examples
    --------
    Three rows and three columns of a table, of which the longest cycle meets all:

    >>> longest_walk([{row: 1, 3 + column: 1} for row in range(3) for column in range(3)])
    (6, 1)

    Notes
    -----
    Split the cells of a minimal move into their halves, one for each time that a sum counts them. At each sum as many halves add as remove; pairing them makes walks,
    each of which keeps all sums, so that there is one. Where it passed a sum twice in the same direction, exchanging the two pairs would cut it.
    """
    given = [{row: x for row, x in column.items() if x} for column in columns]
    parts = walks_of(given)
    if parts is None:
        return None
    alike = len({tuple(sorted(column.items())) for column in given}) < len(given)
    least = 1 if any(not column for column in given) else 0
    length = max([2 if alike else least, least, *(part.length for part in parts)])
    return length, 1 if all(part.balanced for part in parts) else 2


def some_cycle(columns: Sequence[Column]) -> dict[int, int]:
    """A long simple cycle whose cells cancel at each sum, which is a minimal move; empty where a search in depth meets none.

    Examples
    --------
    >>> some_cycle([{row: 1, 2 + column: 1} for row in range(2) for column in range(2)])
    {0: 1, 2: -1, 3: 1, 1: -1}
    """
    best: list[tuple[int, int]] = []
    for part in walks_of(columns) or []:
        if part.length <= len(best):
            continue
        at: dict[int, list[int]] = {}
        for edge in part.cells:
            if len(columns[edge]) == 2:
                for row in columns[edge]:
                    at.setdefault(row, []).append(edge)
        root = next(iter(part.sums))
        depth, path, way = {root: 0}, [root], list[int]()
        tries = [iter(at.get(root, ()))]
        while tries:
            cell = next(tries[-1], None)
            if cell is None:
                tries.pop()
                path.pop()
                if way:
                    way.pop()
                continue
            here = path[-1]
            there = next(row for row in columns[cell] if row != here)
            if there not in depth:
                depth[there] = len(path)
                path.append(there)
                way.append(cell)
                tries.append(iter(at[there]))
            elif (
                depth[there] < len(path) and path[depth[there]] == there and cell != (way[-1] if way else -1)
            ):
                cycle = [*way[depth[there] :], cell]
                if len(cycle) > len(best):
                    ends = [*path[depth[there] :], there]
                    made = _signed(columns, cycle, ends)
                    # the last cell takes away what the first one adds where they meet: an odd cycle of counts does not
                    if columns[cell][there] * made[-1][1] + columns[cycle[0]][there] == 0:
                        best = made
    return dict(best)


def _signed(columns: Sequence[Column], cycle: list[int], ends: list[int]) -> list[tuple[int, int]]:
    """Amounts along a cycle, so that what one cell adds to the sum between them the next one takes away."""
    made, amount = [(cycle[0], 1)], 1
    for before, cell, row in zip(cycle, cycle[1:], ends[1:], strict=False):
        amount = -amount * columns[before][row] * columns[cell][row]
        made.append((cell, amount))
    return made
