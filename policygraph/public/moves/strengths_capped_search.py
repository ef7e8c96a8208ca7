"""Longest move under a cap by CP-SAT: kernel vectors that are not minimal are cut off one by one.

Imports :mod:`policygraph.effort`, :mod:`policygraph.errors`, :mod:`policygraph.exact`, ``graver_minimal`` and the ``strengths_*`` modules beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.exact import brief
from policygraph.public.moves.graver_minimal import decompose
from policygraph.public.moves.strengths_bracket import Bracket, lengths, removed_part, witness_of
from policygraph.public.moves.strengths_columns import Ints

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
) -> Bracket:
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
        return Bracket(0, ceiling, None, "bound", reason, "l1")
    best, move, upper = 0, None, ceiling
    reason = "the search over all kernel vectors under the cap was completed"
    while upper > best:
        if work.done or search.cuts > most_cuts:
            reason = "the search was stopped; the solver's bound over all kernel vectors under the cap holds"
            break
        point, bound = search.solve(best + 1, upper, work)
        if bound is not None:
            upper = max(best, min(upper, bound))
        if point is None:
            if bound is None:
                reason = (
                    "the search was stopped; the solver's bound over all kernel vectors under the cap holds"
                )
                break
            continue
        try:
            held = np.flatnonzero(point)
            pieces = decompose(matrix[:, held], point[held], effort=work)
        except RefusedError:
            reason = "a long move could not be split; the solver's bound over all kernel vectors holds"
            break
        parts = np.zeros((len(pieces), len(point)), dtype=np.int64)
        parts[:, held] = pieces
        for part, value in zip(parts, lengths(query, parts, "l1").tolist()):
            if move is None or value > best:
                best, move = int(value), part
            search.forbid(part)
            search.forbid(-part)
    witness = None if move is None else witness_of(removed_part(move), move)
    return Bracket(best, upper, witness, "search", reason, "l1")


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
        from ortools.sat.python import cp_model

        self.cp = cp_model
        self.model = cp_model.CpModel()
        self.cuts = 0
        self.query = query
        most = cap if capacity is None else min(cap, capacity)
        cells = range(matrix.shape[1])
        self.plus = [self.model.new_int_var(0, most, "") for _ in cells]
        self.minus = [self.model.new_int_var(0, most, "") for _ in cells]
        for p, n in zip(self.plus, self.minus):
            side = self.model.new_bool_var("")
            self.model.add(p <= most * side)
            self.model.add(n <= most * (1 - side))
        for row in matrix:
            self.model.add(self._answer(row) == 0)
        self.model.add(sum(self.plus) <= cap)
        self.model.add(sum(self.minus) <= cap)
        if query is None:
            self.length: Any = sum(self.plus) + sum(self.minus)
        else:
            self.length = sum((self._absolute(row, cap) for row in query if row.any()), 0)
        self.model.maximize(self.length)

    def _answer(self, row: Ints) -> Any:
        where = np.flatnonzero(row).tolist()
        weights = row[where].tolist()
        terms = [*(self.plus[j] for j in where), *(self.minus[j] for j in where)]
        return self.cp.LinearExpr.weighted_sum(terms, [*weights, *(-w for w in weights)])

    def _absolute(self, row: Ints, cap: int) -> Any:
        most = 2 * cap * int(np.abs(row).max())
        size, side = self.model.new_int_var(0, most, ""), self.model.new_bool_var("")
        answer = self._answer(row)
        self.model.add(size <= answer + 2 * most * side)
        self.model.add(size <= 2 * most * (1 - side) - answer)
        return size

    def forbid(self, part: Ints) -> None:
        """Cut off every vector that contains the part."""
        literals = []
        for j in np.flatnonzero(part).tolist():
            literal = self.model.new_bool_var("")
            side = self.plus[j] if part[j] > 0 else self.minus[j]
            self.model.add(side <= abs(int(part[j])) - 1).only_enforce_if(literal)
            literals.append(literal)
        self.model.add_bool_or(literals)
        self.cuts += 1

    def solve(self, least: int, most: int, effort: Effort) -> tuple[Ints | None, int | None]:
        """A vector of length ``least`` or more and a proved bound; (None, bound) when none is left."""
        solver = self.cp.CpSolver()
        self.model.add(self.length >= least)
        status = effort.solve(solver, self.model)
        if status == self.cp.INFEASIBLE:
            return None, least - 1
        if status not in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            return None, None
        point = np.array(
            [solver.value(p) - solver.value(n) for p, n in zip(self.plus, self.minus)], dtype=np.int64
        )
        if status == self.cp.OPTIMAL:
            return point, min(most, int(lengths(self.query, point[None, :], "l1")[0]))
        # the solver's bound is a float near an integer: one more is safe, and a huge one is left alone
        bound = solver.best_objective_bound
        return point, min(most, int(bound) + 1) if bound < 2**50 else most
