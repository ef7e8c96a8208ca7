"""An exact search for whole points in a box, every closed branch of which is closed by whole-number arithmetic.

Owns the check of duals, and the search. A linear program guides it: its point says where to branch,
its duals are rounded to whole numbers, and whatever they are, the inequality that they make of the rows is evaluated
exactly; so that no answer rests on a solver (docs/explanation/proofs/solvers.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from policygraph.effort import Effort
from policygraph.solver import layers as solver_layers
from policygraph.solver.layers import Array, Compiled

__all__ = ["dual_bound", "objective_bound", "search"]

SCALES = (1, 2, 12, 2520, 2**20, 2**40)
"""Denominators to which duals are rounded, one after the other."""


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
