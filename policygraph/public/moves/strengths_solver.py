"""Integer points by OR-Tools CP-SAT: found points are re-checked exactly, "none" only on a proof.

Imports only :mod:`policygraph.effort`, :mod:`policygraph.errors` and ``strengths_columns``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.public.moves.strengths_columns import Ints

Status = Literal["found", "none", "unknown"]

WIDEST = 2**40
"""Domain that stands for "no limit"; a "none" that rests on it is reported as unknown."""


@dataclass
class Points:
    """Integer points with A x = b between bounds, with further clauses added as a search goes on.

    Examples
    --------
    >>> Points(np.array([[1, 2]]), [3], [0, 0], [3, 3], clauses=[[(0, "<=", 1)]]).find()
    ('found', (1, 1))
    >>> Points(np.array([[2, 2]]), [3], [0, 0], [3, 3]).find()
    ('none', None)
    """

    matrix: Ints
    values: Sequence[int]
    lower: Sequence[int]
    upper: Sequence[int | None]
    clauses: list[list[tuple[int, Literal["<=", ">="], int]]] = field(default_factory=list)
    at_most: tuple[Sequence[int], int] | None = None

    def find(self, effort: Effort | None = None) -> tuple[Status, tuple[int, ...] | None]:
        """Find a point, prove that there is none, or give up when the effort is spent (None: no end)."""
        if any(u is not None and u < low for low, u in zip(self.lower, self.upper)):
            return "none", None
        work = Effort() if effort is None else effort
        if work.done:
            return "unknown", None
        work.spend(200 + self.matrix.size // 5 + 10 * sum(map(len, self.clauses)))
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        x = [
            model.new_int_var(low, low + WIDEST if u is None else u, "")
            for low, u in zip(self.lower, self.upper)
        ]
        for row, value in zip(self.matrix, self.values):
            cells = np.flatnonzero(row).tolist()
            model.add(cp_model.LinearExpr.weighted_sum([x[j] for j in cells], row[cells].tolist()) == value)
        if self.at_most is not None:
            model.add(cp_model.LinearExpr.weighted_sum(x, list(self.at_most[0])) <= self.at_most[1])
        for clause in self.clauses:
            self._add(model, x, clause)
        solver = cp_model.CpSolver()
        status = work.solve(solver, model)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            point = tuple(int(solver.value(v)) for v in x)
            self._check(point)
            return "found", point
        if status == cp_model.INFEASIBLE and all(u is not None for u in self.upper):
            return "none", None
        return "unknown", None

    def _add(self, model: Any, x: list[Any], clause: list[tuple[int, Literal["<=", ">="], int]]) -> None:
        literals = []
        for j, side, bound in clause:
            literal = model.new_bool_var("")
            model.add(x[j] <= bound if side == "<=" else x[j] >= bound).only_enforce_if(literal)
            literals.append(literal)
        model.add_bool_or(literals)

    def _check(self, point: tuple[int, ...]) -> None:
        sums = [sum(int(a) * p for a, p in zip(row, point) if a) for row in self.matrix]
        inside = all(low <= p and (u is None or p <= u) for low, p, u in zip(self.lower, point, self.upper))
        held = all(
            any(point[j] <= c if side == "<=" else point[j] >= c for j, side, c in clause)
            for clause in self.clauses
        )
        short = (
            self.at_most is None or sum(int(w) * p for w, p in zip(self.at_most[0], point)) <= self.at_most[1]
        )
        if sums != [int(v) for v in self.values] or not (inside and held and short):
            raise RefusedError(
                "The solver returned a point that breaks its constraints; nothing is concluded from it. "
                "Report this with the matrix.",
                code="moves.solver",
                point=point,
            )
