"""The tables with published values: which of them allow a move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import InputError
from policygraph.moves.strengths.bracket import Occurrence, removed_part
from policygraph.moves.strengths.columns import Ints, read_capacity, read_matrix, read_vector
from policygraph.moves.strengths.points import Points
from policygraph.moves.strengths.positive import plain
from policygraph.moves.values.presolve import CellBounds, presolve_values, read_values, told_rows


def occurs(
    matrix: Any,
    values: Sequence[int | None],
    move: Any,
    capacity: int | None = None,
    *,
    effort: Effort | None = None,
) -> Occurrence:
    """Decide whether some table with the published values allows a move.

    Parameters
    ----------
    matrix
        Integer constraint matrix, one column for each cell.
    values
        Published value of each row; None where it is not told, and any value is then possible.
    move
        Change of the cells that keeps all rows.
    capacity
        Most records of a cell; None for no limit.
    effort
        Work after which the answer is "unknown", which counts as possible.

    Returns
    -------
    Occurrence
        "yes" with a table that contains the removed part, "no" when that is proved, or "unknown".

    Raises
    ------
    InputError
        When the move breaks a row.
    ConstraintError
        When the values contradict each other already cell by cell.

    Examples
    --------
    >>> rows = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    >>> occurs(rows, [1, 1, 1, 1], [1, -1, -1, 1]).table
    (0, 1, 1, 0)
    >>> occurs(rows, [0, 2, 1, 1], [1, -1, -1, 1]).status
    'no'

    Notes
    -----
    T and T + g are tables with these values exactly when T - g^- is a table with the values b - A g^- and, with a
    capacity c, at most c - |g| in each cell. A found table is re-checked with integers; "no" rests on no
    single solver, within bounds that hold for every table (docs/explanation/proofs/published-values.md, section 3).
    """
    read = read_matrix(matrix)
    change = read_vector(move, read.shape[1], "move")
    if (read @ change).any():
        raise InputError(
            "The move breaks a constraint: matrix @ move is not zero. Give a change between two valid tables.",
            code="moves.not-in-kernel",
            value=plain(change),
        )
    return Fibre.of(read, values, capacity).allows(change, effort)


@dataclass
class Fibre:
    """The tables with told values; answers are kept by what is left after the removed part.

    Examples
    --------
    >>> fibre = Fibre.of(read_matrix([[1, 1]]), [1], None)
    >>> fibre.allows(np.array([1, -1]), None).table, fibre.allows(np.array([2, -2]), None).status
    ((0, 1), 'no')
    """

    matrix: Ints
    told: tuple[int | None, ...]
    capacity: int | None
    bounds: CellBounds
    rows: Ints
    wanted: list[int]
    answers: dict[bytes, Occurrence] = field(default_factory=dict)

    @staticmethod
    def of(matrix: Ints, values: Sequence[int | None], capacity: int | None) -> Fibre:
        """Read values and capacity, and bound the cells."""
        told = read_values(values, matrix.shape[0])
        room = read_capacity(capacity)
        rows, wanted = told_rows(matrix, told)
        return Fibre(matrix, told, room, presolve_values(matrix, told, room), rows, wanted)

    def within_bounds(self, moves: Ints) -> Ints:
        """Drop the moves that a cell's bounds or a row of counts already forbid."""
        limit = np.array([-1 if c is None else min(c, 2**62) for c in self.bounds.change], dtype=np.int64)
        good = ((np.abs(moves) <= limit) | (limit < 0)).all(axis=1)
        counts = np.all(self.rows >= 0, axis=1).tolist()
        lowest = np.array(self.bounds.lower, dtype=object)
        asked = [(r, b) for r, b, c in zip(self.rows, self.wanted, counts) if c]
        room = np.array([b - int(r.astype(object) @ lowest) for r, b in asked])
        taken = np.maximum(-moves, 0) @ self.rows[counts].T
        if room.size:
            good &= (taken <= room).all(axis=1)
        kept: Ints = moves[good]
        return kept

    def allows(self, change: Ints, effort: Effort | None) -> Occurrence:
        """Whether some table contains the removed part of a move, other cells permitting."""
        if not len(self.within_bounds(change[None, :])):
            return Occurrence("no", None, "the values bound a cell or a sum below what the move needs")
        removed = removed_part(change)
        key = (
            (self.rows @ removed).tobytes()
            if self.capacity is None
            else np.abs(change).tobytes() + removed.tobytes()
        )
        known = self.answers.get(key)
        if known is None or known.status == "unknown":
            known = self._solve(change, removed, effort)
            self.answers[key] = known
        if known.table is None:
            return known
        table = np.array(known.table, dtype=np.int64) + removed
        return Occurrence("yes", plain(table), "a table with these values contains the removed part")

    def _solve(self, change: Ints, removed: Ints, effort: Effort | None) -> Occurrence:
        """The rest of the table after the removed part; only the rows decide it when cells have no capacity."""
        free = (~np.any(self.rows, axis=0)).tolist()
        upper: list[int | None] = []
        for j, high in enumerate(self.bounds.upper):
            if free[j]:
                upper.append(0)
            elif self.capacity is not None and high is not None:
                upper.append(high - abs(int(change[j])))
            else:
                # any bound of a table also bounds the rest of it
                upper.append(high)
        rest = [b - int(r @ removed) for r, b in zip(self.rows, self.wanted)]
        status, point = Points(self.rows, rest, [0] * len(upper), upper).find(effort)
        if status == "none":
            return Occurrence("no", None, "proved: no table with these values contains the removed part")
        if point is None:
            return Occurrence("unknown", None, "the effort was spent, or the values leave a cell unlimited")
        return Occurrence("yes", point, "found")
