"""An exact search for whole points in a box, every closed branch of which is closed by whole-number arithmetic.

Owns propagation of bounds, the check of duals, and the search. A linear program guides it: its point says where to branch,
its duals are rounded to whole numbers, and whatever they are, the inequality that they make of the rows is evaluated
exactly; so that no answer rests on a solver (docs/explanation/proofs/solvers.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, lcm
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from policygraph.effort import Effort
from policygraph.solver import layers as solver_layers

__all__ = ["Compiled", "Literals", "dual_bound", "objective_bound", "search"]

Array = npt.NDArray[Any]
Literals = tuple[tuple[int, Literal["<=", ">="], int], ...]
ROOM = 2**61
"""Sums that stay below it are taken in 64 bits, others by Python integers."""
SCALES = (1, 2, 12, 2520, 2**20, 2**40)
"""Denominators to which duals are rounded, one after the other."""
PASSES = 30
"""Rounds of propagation in one box; fewer tighten less and are as sound."""
WIDE_CLAUSE = 2**20
"""A clause becomes a row of the linear program while its weights stay below."""


class Compiled:
    """Rows ``low <= sum of a x <= high`` over a finite box, as arrays. Built once for each question.

    Attributes
    ----------
    lower, upper
        The box.
    possible
        False when a row alone shows that there is no point.
    reach
        A bound on the absolute value of every partial sum of a row.
    """

    def __init__(
        self,
        lower: Sequence[int],
        upper: Sequence[int],
        rows: Sequence[tuple[dict[int, int], int | None, int | None]],
        clauses: Sequence[Literals],
    ) -> None:
        self.size = len(lower)
        self.possible = all(a <= b for a, b in zip(lower, upper))
        self.clauses = list(clauses)
        kept: list[tuple[list[int], list[int], int | None, int | None]] = []
        widest = [max(abs(a), abs(b)) for a, b in zip(lower, upper)]
        self.reach = max(widest, default=0)
        for terms, low, high in [*rows, *self._relaxed(lower, upper, clauses)]:
            used = {j: a for j, a in terms.items() if a}
            common = gcd(*used.values()) if used else 1
            low = None if low is None else -(-low // common)
            high = None if high is None else high // common
            if low is not None and high is not None and low > high:
                self.possible = False
            if not used:
                self.possible = self.possible and (low is None or low <= 0) and (high is None or high >= 0)
                continue
            weights = [a // common for a in used.values()]
            kept.append((list(used), weights, low, high))
            sums = sum(abs(a) * widest[j] for j, a in zip(used, weights))
            self.reach = max(self.reach, sums + abs(low or 0) + abs(high or 0))
        self._kept = kept
        kind: Any = np.int64 if self.reach < ROOM else object
        self.lower, self.upper = np.array(lower, dtype=kind), np.array(upper, dtype=kind)
        self.entries = sum(len(cells) for cells, _, _, _ in kept)
        self._index(kind)

    @staticmethod
    def _relaxed(
        lower: Sequence[int], upper: Sequence[int], clauses: Sequence[Literals]
    ) -> Iterator[tuple[dict[int, int], int | None, int | None]]:
        """A row that each clause implies: a literal that holds contributes 1 or more to the sum, others 0 or more."""
        for clause in clauses:
            spans = [upper[j] - bound if side == "<=" else bound - lower[j] for j, side, bound in clause]
            if any(span <= 0 for span in spans) or len({j for j, _, _ in clause}) < len(clause):
                continue
            if (whole := lcm(*spans)) > WIDE_CLAUSE or not clause:
                continue
            terms, least = {}, whole
            for (j, side, _), span in zip(clause, spans):
                step = whole // span
                terms[j] = -step if side == "<=" else step
                least -= step * upper[j] if side == "<=" else -step * lower[j]
            yield terms, least, None

    def _index(self, kind: Any) -> None:
        self.cells = np.array([j for cells, _, _, _ in self._kept for j in cells], dtype=np.int64)
        self.weights = np.array([a for _, weights, _, _ in self._kept for a in weights], dtype=kind)
        lengths = np.array([len(cells) for cells, _, _, _ in self._kept], dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
        self.row = np.repeat(np.arange(len(self._kept)), lengths)
        self.positive = self.weights > 0
        self.sizes = np.abs(self.weights)
        self.has_low = np.array([low is not None for _, _, low, _ in self._kept], dtype=bool)
        self.has_high = np.array([high is not None for _, _, _, high in self._kept], dtype=bool)
        self.low = np.array([low or 0 for _, _, low, _ in self._kept], dtype=kind)
        self.high = np.array([high or 0 for _, _, _, high in self._kept], dtype=kind)
        # entries by column, for the least and largest of what the rows say of a variable
        self.by_cell = np.argsort(self.cells, kind="stable")
        self.used, self.cell_starts = np.unique(self.cells[self.by_cell], return_index=True)

    def rows(self) -> Iterator[tuple[list[int], list[int], int | None, int | None]]:
        """Variables, weights and both sides of each row."""
        return iter(self._kept)

    def tighten(self, lower: Array, upper: Array) -> bool:
        """Narrow a box in place by its rows and clauses; False when it holds no point."""
        for _ in range(PASSES):
            before = (lower.copy(), upper.copy())
            if self.entries and not self._by_rows(lower, upper):
                return False
            if not self._by_clauses(lower, upper):
                return False
            if bool(np.any(lower > upper)):
                return False
            if bool(np.all(before[0] == lower)) and bool(np.all(before[1] == upper)):
                break
        return True

    def _by_rows(self, lower: Array, upper: Array) -> bool:
        a, low, high = self.weights, lower[self.cells], upper[self.cells]
        near, far = a * low, a * high
        least = np.add.reduceat(np.where(self.positive, near, far), self.starts)
        most = np.add.reduceat(np.where(self.positive, far, near), self.starts)
        if bool(np.any(self.has_high & (least > self.high))) or bool(
            np.any(self.has_low & (most < self.low))
        ):
            return False
        # how far a variable may leave the end of its range that keeps the row smallest, or largest
        up = (self.high - least)[self.row] // self.sizes
        down = (most - self.low)[self.row] // self.sizes
        span = high - low
        up = np.where(self.has_high[self.row], np.minimum(up, span), span)
        down = np.where(self.has_low[self.row], np.minimum(down, span), span)
        new_high = low + np.where(self.positive, up, down)
        new_low = high - np.where(self.positive, down, up)
        order, starts = self.by_cell, self.cell_starts
        upper[self.used] = np.minimum(upper[self.used], np.minimum.reduceat(new_high[order], starts))
        lower[self.used] = np.maximum(lower[self.used], np.maximum.reduceat(new_low[order], starts))
        return True

    def _by_clauses(self, lower: Array, upper: Array) -> bool:
        for clause in self.clauses:
            open_ones: list[tuple[int, Literal["<=", ">="], int]] = []
            for j, side, bound in clause:
                if side == "<=":
                    if upper[j] <= bound:
                        break
                    if lower[j] <= bound:
                        open_ones.append((j, side, bound))
                else:
                    if lower[j] >= bound:
                        break
                    if upper[j] >= bound:
                        open_ones.append((j, side, bound))
            else:
                if not open_ones:
                    return False
                if len(open_ones) == 1:
                    j, side, bound = open_ones[0]
                    if side == "<=":
                        upper[j] = bound
                    else:
                        lower[j] = bound
        return True

    def holds(self, point: Sequence[int]) -> bool:
        """Whether a point is in the box and keeps every row and clause; in Python integers."""
        if len(point) != self.size or not self.possible:
            return False
        if not all(a <= p <= b for a, p, b in zip(self.lower.tolist(), point, self.upper.tolist())):
            return False
        for cells, weights, low, high in self._kept:
            total = sum(a * point[j] for j, a in zip(cells, weights))
            if (low is not None and total < low) or (high is not None and total > high):
                return False
        return all(
            any(point[j] <= bound if side == "<=" else point[j] >= bound for j, side, bound in clause)
            for clause in self.clauses
        )


def _whole(duals: npt.NDArray[np.float64], scale: int) -> list[int]:
    """Duals times a scale, rounded; what is no number or huge becomes 0, which is allowed like everything else."""
    return [round(d * scale) if -1e15 < d < 1e15 else 0 for d in duals.tolist()]


def dual_bound(
    program: Compiled, lower: Array, upper: Array, duals: Sequence[int], objective: dict[int, int], scale: int
) -> int:
    """The upper bound on ``objective`` in a box that whole-number duals over a common scale make of the rows.

    Notes
    -----
    For whole y: scale * c x = (scale * c - y A) x + y (A x), and y (A x) is at most the sum of y_i times the high side of
    row i for y_i > 0 and its low side for y_i < 0; duals that ask for a side which a row lacks count as 0. Both terms are
    evaluated with Python integers. Any y gives a bound that holds.

    Returns
    -------
    int
        The bound, rounded down; the largest value of c x in the box is no larger.

    Examples
    --------
    >>> program = Compiled([0, 0], [3, 3], [({0: 2, 1: 2}, None, 7)], [])
    >>> dual_bound(program, program.lower, program.upper, [1], {0: 1, 1: 1}, 1)
    3
    """
    rest = {j: scale * w for j, w in objective.items()}
    total = 0
    for y, (cells, weights, low, high) in zip(duals, program.rows()):
        side = high if y > 0 else low
        if y == 0 or side is None:
            continue
        total += y * side
        for j, a in zip(cells, weights):
            rest[j] = rest.get(j, 0) - y * a
    for j, w in rest.items():
        if w:
            total += w * int(upper[j]) if w > 0 else w * int(lower[j])
    return total // scale


def _closed(program: Compiled, lower: Array, upper: Array, duals: npt.NDArray[np.float64]) -> bool:
    """Whether some rounding of the duals shows that the box holds no point: 0 x would have to be less than 0."""
    size = float(np.abs(duals).max(initial=0.0))
    if not 0.0 < size < 1e15:
        return False
    for scale in SCALES:
        # the duals of a cost that is minimised bind the low sides where they are positive: -y is the multiplier
        bound = dual_bound(program, lower, upper, [-y for y in _whole(duals, scale)], {}, 1)
        if bound < 0:
            return True
    return False


def objective_bound(program: Compiled, objective: dict[int, int]) -> int:
    """A proved upper bound on an objective over the box of a program, from one linear program.

    Examples
    --------
    >>> objective_bound(Compiled([0, 0], [3, 3], [({0: 2, 1: 2}, None, 7)], []), {0: 1, 1: 1})
    3
    """
    lower, upper = program.lower.copy(), program.upper.copy()
    best = sum(w * int(upper[j] if w > 0 else lower[j]) for j, w in objective.items())
    solved = solver_layers.Relaxation(program, list(objective.items())).solve(lower, upper)
    if solved is None:
        return best
    for scale in SCALES:
        bound = dual_bound(program, lower, upper, [-y for y in _whole(solved[2], scale)], objective, scale)
        best = min(best, bound)
    return best


def search(
    program: Compiled, effort: Effort
) -> tuple[Literal["found", "none", "unknown"], tuple[int, ...] | None]:
    """Find a point or show that there is none, each box being closed by exact arithmetic, within an effort.

    Examples
    --------
    >>> search(Compiled([0, 0], [5, 5], [({0: 3, 1: -3}, 1, 2)], []), Effort(10_000))
    ('none', None)
    """
    if not program.possible:
        return "none", None
    relaxation: solver_layers.Relaxation | None = None
    boxes = [(program.lower.copy(), program.upper.copy())]
    while boxes:
        if effort.done:
            return "unknown", None
        lower, upper = boxes.pop()
        effort.spend(60 + (program.entries + 4 * len(program.clauses)) // 4)
        if not program.tighten(lower, upper):
            continue
        free = np.flatnonzero(lower < upper)
        if not len(free):
            point = tuple(int(v) for v in lower.tolist())
            if program.holds(point):
                return "found", point
            continue
        if relaxation is None:
            relaxation = solver_layers.Relaxation(program)
            effort.spend(500 + 5 * program.entries)
        solved = relaxation.solve(lower, upper)
        x: Array | None = None
        if solved is not None:
            cost, x, duals, steps = solved
            effort.spend(100 + program.size + len(duals) + steps * (5 + len(duals) // 4))
            if cost > 1e-7 and _closed(program, lower, upper, duals):
                continue
            if cost <= 1e-7:
                guess = _rounded(x, lower, upper)
                if program.holds(guess):
                    return "found", guess
        boxes.extend(_split(program, lower, upper, free, x))
    return "none", None


def _rounded(x: Array, lower: Array, upper: Array) -> tuple[int, ...]:
    return tuple(
        min(max(round(v), a), b) if abs(v) < 1e18 else a
        for v, a, b in zip(x.tolist(), lower.tolist(), upper.tolist())
    )


def _split(
    program: Compiled, lower: Array, upper: Array, free: Array, x: Array | None
) -> list[tuple[Array, Array]]:
    """Two boxes that share out the whole points of a box; the one that looks better comes last."""
    j, cut, first = -1, 0, "low"
    if x is not None and bool(np.all(np.abs(x) < 1e18)):
        part = x[free] - np.floor(x[free])
        score = np.minimum(part, 1 - part)
        at = int(np.argmax(score))
        if score[at] > 1e-6:
            j = int(free[at])
            cut, first = int(np.floor(x[j])), "low" if part[at] < 0.5 else "high"
        else:
            j, cut = _broken(program, lower, upper, x)
    if j < 0 or not lower[j] <= cut < upper[j]:
        j = int(free[int(np.argmax(upper[free] - lower[free]))])
        cut = (int(lower[j]) + int(upper[j])) // 2
    low, high = (lower.copy(), upper.copy()), (lower.copy(), upper.copy())
    low[1][j] = cut
    high[0][j] = cut + 1
    return [high, low] if first == "low" else [low, high]


def _broken(program: Compiled, lower: Array, upper: Array, x: Array) -> tuple[int, int]:
    """A variable and a cut that decide a literal of a clause that the point breaks."""
    for clause in program.clauses:
        if any(x[j] <= bound + 1e-6 if side == "<=" else x[j] >= bound - 1e-6 for j, side, bound in clause):
            continue
        for j, side, bound in clause:
            cut = bound if side == "<=" else bound - 1
            if lower[j] <= cut < upper[j]:
                return j, cut
    return -1, 0
