"""Longest move under a cap by search: kernel vectors that are not minimal are cut off one by one."""

from __future__ import annotations

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.exact import brief
from policygraph.moves.bracket import Bracket
from policygraph.moves.graver.minimal import decompose
from policygraph.moves.strengths.bracket import Pair, lengths, removed_part, witness_of
from policygraph.moves.strengths.columns import Ints
from policygraph.solver.program import Program

MOST_CUTS = 5_000
"""Vectors that are cut off before the bracket is returned as it stands."""
A_CELL = 100
"""Work of stating a cell to the solver: a search is not begun on more cells than what is left can state."""


def longest_by_cuts(
    matrix: Ints,
    cap: int,
    query: Ints | None,
    capacity: int | None,
    ceiling: int,
    effort: Effort | None = None,
    most_cuts: int = MOST_CUTS,
) -> Bracket[Pair]:
    """Bracket the largest L1 answer to a minimal move under a cap.

    Parameters
    ----------
    matrix, cap, query, capacity
        The problem; the query None is the table itself.
    ceiling
        A proved upper bound to start from.
    effort
        Work that may be spent; None for no end.
    most_cuts
        Vectors to cut off before stopping.

    Returns
    -------
    Bracket
        Closed when the longest vector left is minimal, or nothing longer is left.

    Examples
    --------
    >>> longest_by_cuts(np.array([[1, 1, 1], [0, 1, 2]]), 5, None, None, 10).upper
    4

    Notes
    -----
    All minimal moves under the cap are kernel vectors under the cap, so the solver's proved bound holds for them.
    When the longest vector is a sum of smaller moves, every vector that contains one of these parts is that part
    itself, which is weighed, or not minimal; cutting off the vectors that contain it loses nothing.
    """
    work = Effort() if effort is None else effort
    try:
        search = _Cuts(matrix, cap, query, capacity, work)
    except RefusedError as late:
        reason = f"a move of {brief(cap)} added and {brief(cap)} removed records, each as long as the longest column ({late})"
        return Bracket(ceiling, 0, None, "bound", reason)
    best, move, upper = 0, None, ceiling
    reason = "the search over all kernel vectors under the cap was completed"
    stopped = "the search was stopped; a proved bound over all kernel vectors under the cap holds"
    while upper > best:
        if work.done or search.cuts > most_cuts:
            reason = stopped
            break
        # no value is believed to be the largest: the end comes when it is proved that nothing longer is left
        point, ended = search.longer(best + 1, work)
        if ended:
            upper = best
            break
        if point is None:
            reason = stopped
            break
        try:
            held = np.flatnonzero(point)
            pieces = decompose(matrix[:, held], point[held], effort=work)
        except RefusedError:
            reason = "a long move could not be split; a proved bound over all kernel vectors holds"
            break
        parts = np.zeros((len(pieces), len(point)), dtype=np.int64)
        parts[:, held] = pieces
        for part, value in zip(parts, lengths(query, parts, "l1").tolist()):
            if move is None or value > best:
                best, move = int(value), part
            search.forbid(part)
            search.forbid(-part)
    if upper > best:
        proved = search.bound(best, work)
        upper = upper if proved is None else min(upper, proved)
    if upper > best and work.done:
        reason = f"{reason}; {work.ended_by}"
    witness = None if move is None else witness_of(removed_part(move), move)
    return Bracket(upper, best, witness, "search", reason)


class _Cuts:
    """The model: added and removed records of each cell, and the length of the answer as objective."""

    def __init__(
        self, matrix: Ints, cap: int, query: Ints | None, capacity: int | None, effort: Effort
    ) -> None:
        # the constraints and the query, all of which are stated
        stated = A_CELL * matrix.shape[1] + (matrix.size + (0 if query is None else query.size)) // 5
        if not effort.affords(stated):
            raise RefusedError(
                f"{matrix.shape[1]:,} cells are too many to search with the effort that is left. Allow more effort.",
                code="moves.cap-deadline",
            )
        effort.spend(stated)
        self.cuts = 0
        self.query = query
        self.cells = cells = matrix.shape[1]
        most = cap if capacity is None else min(cap, capacity)
        asked = [] if query is None else [row for row in query if row.any()]
        # of each row of the query: the size of its answer, and on which side of 0 it lies
        sizes = [_reach(row, cap) for row in asked]
        self.program = Program(
            [0] * (2 * cells + 2 * len(asked)), [most] * (2 * cells) + sizes + [1] * len(asked)
        )
        for j in range(cells):
            self.program.require([(j, "<=", 0), (cells + j, "<=", 0)])
        for row in matrix:
            self.program.add(self._answer(row), 0, 0)
        self.program.add(dict.fromkeys(range(cells), 1), None, cap)
        self.program.add(dict.fromkeys(range(cells, 2 * cells), 1), None, cap)
        for at, (row, reach) in enumerate(zip(asked, sizes)):
            size, side = 2 * cells + at, 2 * cells + len(asked) + at
            answer = self._answer(row)
            self.program.add({**{j: -a for j, a in answer.items()}, size: 1, side: -2 * reach}, None, 0)
            self.program.add({**answer, size: 1, side: 2 * reach}, None, 2 * reach)
        counted = range(2 * cells) if query is None else range(2 * cells, 2 * cells + len(asked))
        self.length = dict.fromkeys(counted, 1)

    def _answer(self, row: Ints) -> dict[int, int]:
        where = np.flatnonzero(row).tolist()
        weights = row[where].tolist()
        return dict(
            zip([*where, *(self.cells + j for j in where)], [*weights, *(-w for w in weights)], strict=True)
        )

    def forbid(self, part: Ints) -> None:
        """Cut off every vector that contains the part."""
        self.program.require(
            (j if part[j] > 0 else self.cells + j, "<=", abs(int(part[j])) - 1)
            for j in np.flatnonzero(part).tolist()
        )
        self.cuts += 1

    def longer(self, least: int, effort: Effort) -> tuple[Ints | None, bool]:
        """A vector of length ``least`` or more, or whether it is proved that none is left."""
        answer = self.program.better(self.length, least, effort.share(1, 2))
        if answer.point is None:
            return None, answer.status == "none"
        both = np.array(answer.point[: 2 * self.cells], dtype=np.int64)
        return both[: self.cells] - both[self.cells :], False

    def bound(self, least: int, effort: Effort) -> int | None:
        """A proved bound on the length of what is left and of what was cut off, ``least`` being the longest of that."""
        return self.program.bound(self.length, effort, least)


def _reach(row: Ints, cap: int) -> int:
    """The largest answer of a row to so many records added and removed."""
    return cap * (max(int(row.max()), 0) - min(int(row.min()), 0))
