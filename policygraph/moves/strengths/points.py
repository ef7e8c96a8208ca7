"""Integer points of A x = b between bounds, with clauses: found points are checked, "none" only on a proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from policygraph.effort import Effort
from policygraph.moves.strengths.columns import Ints
from policygraph.solver.program import Program

Status = Literal["found", "none", "unknown"]


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
        program = Program(self.lower, self.upper)
        for row, value in zip(self.matrix, self.values):
            cells = np.flatnonzero(row)
            program.add(zip(cells.tolist(), row[cells].tolist()), value, value)
        if self.at_most is not None:
            program.add(enumerate(self.at_most[0]), None, self.at_most[1])
        for clause in self.clauses:
            program.require(clause)
        answer = program.find(work)
        return answer.status, answer.point
