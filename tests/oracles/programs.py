"""All whole points of a small program, by trying every point of its box."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from policygraph.solver.program import Program


@dataclass
class Small:
    """A program in plain lists."""

    lower: list[int]
    upper: list[int]
    rows: list[tuple[dict[int, int], int | None, int | None]] = field(default_factory=list)
    clauses: list[list[tuple[int, str, int]]] = field(default_factory=list)
    objective: dict[int, int] = field(default_factory=dict)

    def program(self) -> Program:
        made = Program(self.lower, self.upper)
        for terms, low, high in self.rows:
            made.add(terms, low, high)
        for clause in self.clauses:
            made.require(clause)
        return made

    def points(self) -> set[tuple[int, ...]]:
        boxes = product(*(range(a, b + 1) for a, b in zip(self.lower, self.upper)))
        return {x for x in boxes if self._keeps(x)}

    def value(self, x: tuple[int, ...]) -> int:
        return sum(w * x[j] for j, w in self.objective.items())

    def _keeps(self, x: tuple[int, ...]) -> bool:
        for terms, low, high in self.rows:
            total = sum(a * x[j] for j, a in terms.items())
            if (low is not None and total < low) or (high is not None and total > high):
                return False
        return all(
            any(x[j] <= bound if side == "<=" else x[j] >= bound for j, side, bound in clause)
            for clause in self.clauses
        )
