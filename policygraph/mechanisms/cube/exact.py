"""Best covers and proved bounds. Owns :func:`least_maximum` and :func:`most_covered`.

At every ratio the question is a set cover (or maximum coverage) with integer costs. Linear programs give a bound for each
ratio and discard most; CP-SAT decides the rest while the effort lasts, which is counted in its deterministic time, and what it
leaves open keeps the bound of its linear program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor
from typing import Any, Protocol

import numpy as np

from policygraph.effort import SECOND, Effort
from policygraph.transforms.cuboids.lattice import Floats

__all__ = ["least_maximum", "most_covered"]

WIDEN = 1e-7
"""Linear programs are solved in floats; their bounds are weakened by this share before they are used."""
LARGEST = 1 << 30
STARTING = SECOND // 100
"""Units of work to build a model and start the solver."""


class CoverProblem(Protocol):
    """What is asked of the cuboids that may be measured: their costs, and the noise of a choice."""

    forms: Floats
    squared: bool

    @property
    def ratios(self) -> Floats:
        """Cells of each candidate that make one of each published cuboid."""

    def noise(self, chosen: Sequence[int]) -> float:
        """Variance of the noise when these candidates are measured alike."""

    def least_power(self, noise: float) -> float:
        """Largest sensitivity (squared for l2) whose noise is at most this."""


def least_maximum(
    covering: CoverProblem,
    weighted: Floats,
    thresholds: Sequence[float],
    best: float,
    chosen: list[int],
    effort: Effort,
) -> tuple[float, list[int], float]:
    """Improve a choice of least maximal variance, and bound what is possible.

    Returns
    -------
    tuple
        The value, the chosen candidates, and a value below which no choice of equal weights comes.
    """
    bounding = effort.share(3, 4)
    forms = covering.forms
    whole = bool(np.all(forms == np.rint(forms)))
    asked = []
    for ratio in thresholds:
        within = weighted <= ratio * (1 + 1e-12)
        if within.any(axis=0).all():
            # Each measured cuboid costs at least this much of the mean form, and covers at most so many.
            share = float((forms.mean(axis=0) / np.maximum(within.sum(axis=1), 1e-9)).min())
            asked.append(
                (_value(covering, share * within.shape[1] * (1 - WIDEN), whole) * ratio, ratio, within)
            )
    bounded = []
    for value, ratio, within in sorted(asked, key=lambda item: item[0]):
        if value < best * (1 - 1e-9):
            if not bounding.done:
                bounding.spend(_program_work(within.shape[1] + len(forms), within.shape[0]))
                value = max(value, _value(covering, _cover_bound(forms, within), whole) * ratio)
            bounded.append((value, ratio, within))
    bound = best
    patience = effort.share(1, 2).work
    for value, ratio, within in sorted(bounded, key=lambda item: item[0]):
        while value < best * (1 - 1e-9):
            # A better choice has a sensitivity below this one.
            room = ceil(covering.least_power(best / ratio) * (1 - 1e-9)) - 1 if whole else 0
            found, open_ = _cover(forms, within, room, _some(effort, patience)) if whole else (None, True)
            if found is None:
                bound = min(bound, value) if open_ else bound
                break
            chosen, best = found, covering.noise(found) * ratio
    return best, chosen, min(bound, best)


def _value(covering: CoverProblem, power: float, whole: bool) -> float:
    """Noise of a sensitivity that is at least this (squared for l2), and an integer if all costs are."""
    least = float(ceil(power - WIDEN)) if whole else power
    return least**2 if covering.squared else least


def most_covered(
    covering: CoverProblem,
    gains: Floats,
    thresholds: Sequence[float],
    limit: float,
    chosen: list[int],
    tops: Sequence[int],
    score_of: Callable[[Sequence[int]], tuple[float, float, float]],
    effort: Effort,
) -> tuple[list[int], float]:
    """Improve a choice that covers most, and bound what is possible.

    Returns
    -------
    tuple
        The chosen candidates, and a weight above which no choice of equal weights comes.
    """
    bounding = effort.share(1, 2)
    forms, ratios = covering.forms, covering.ratios
    whole = bool(np.all(forms == np.rint(forms)) and np.all(gains == np.rint(gains)))
    score = score_of(chosen)
    bounds = []
    for ratio in thresholds:
        room = covering.least_power(limit / ratio) * (1 + 1e-12)
        if whole:
            room = float(floor(room + 1e-9))
        within = ratios <= ratio * (1 + 1e-12)
        if not bounding.done:
            bounding.spend(_program_work(within.shape[1] + len(forms) + len(tops), sum(within.shape)))
            upper = _coverage_bound(forms, within, gains, room, np.isfinite(ratios[:, list(tops)]))
        else:
            widest = np.sort(within @ gains / np.maximum(forms.mean(axis=0), 1e-9))[-1]
            upper = float(min(gains.sum(), widest * room))
        if upper is not None:
            bounds.append(
                (float(floor(upper + WIDEN)) if whole else upper * (1 + WIDEN), ratio, room, within)
            )
    proved = score[0]
    patience = effort.share(1, 2).work
    for upper, _, room, within in sorted(bounds, key=lambda item: -item[0]):
        if upper <= score[0] * (1 + 1e-9):
            break
        if not whole or effort.done:
            proved = max(proved, upper)
            continue
        found, top = _coverage(
            forms,
            within,
            gains,
            int(room),
            np.isfinite(ratios[:, list(tops)]),
            _some(effort, patience),
        )
        if found is not None:
            new = score_of(found)
            if new > score:
                score, chosen = new, found
        proved = max(proved, min(upper, top))
    return chosen, max(proved, score[0])


def _linear_program(goal: Floats, matrix: Any, right: Floats, upper: Floats) -> tuple[int, float]:
    """Least value of a linear form over matrix x <= right, 0 <= x <= upper; status 0 solved, 2 infeasible."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    bounds: Any = [(0.0, float(most)) for most in upper]
    rows: Any = csr_matrix(matrix)
    done: Any = linprog(goal, A_ub=rows, b_ub=right, bounds=bounds, method="highs")
    return int(done.status), float(done.fun) if done.status == 0 else 0.0


def _cover_bound(forms: Floats, within: Any) -> float:
    """Least value of the largest cost form over fractional covers, rounded towards less."""
    n, m = within.shape
    matrix = np.zeros((m + len(forms), n + 1))
    matrix[:m, :n] = -within.T.astype(np.float64)
    matrix[m:, :n] = forms
    matrix[m:, n] = -1.0
    right = np.concatenate([-np.ones(m), np.zeros(len(forms))])
    goal = np.concatenate([np.zeros(n), [1.0]])
    status, value = _linear_program(goal, matrix, right, np.concatenate([np.ones(n), [np.inf]]))
    return value * (1 - WIDEN) if status == 0 else 0.0


def _coverage_bound(forms: Floats, within: Any, gains: Floats, room: float, above: Any) -> float | None:
    """Largest fractional coverage within a budget; None when no choice within it reaches the largest cuboids."""
    n, m = within.shape
    j, tops = len(forms), above.shape[1]
    matrix = np.zeros((m + j + tops, n + m))
    matrix[:m, :n] = -within.T.astype(np.float64)
    matrix[:m, n:] = np.eye(m)
    matrix[m : m + j, :n] = forms
    matrix[m + j :, :n] = -above.T.astype(np.float64)
    right = np.concatenate([np.zeros(m), np.full(j, room), -np.ones(tops)])
    goal = np.concatenate([np.zeros(n), -gains])
    status, value = _linear_program(goal, matrix, right, np.ones(n + m))
    if status == 2:
        return None
    return -value if status == 0 else float(gains.sum())


def _program_work(rows: int, columns: int) -> int:
    """Units of work of a linear program, from its size alone: about one pivot a row, each over all entries."""
    return 2_000 + rows * rows * columns // 200


def _some(effort: Effort, most: int | None) -> Effort:
    return effort.share(1) if most is None else effort.at_most(most)


def _solve(model: Any, effort: Effort) -> tuple[Any, Any]:
    """Run CP-SAT with a fixed seed within an effort."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.catch_sigint_signal = False  # a search that Ctrl-C stopped proves nothing
    solver.parameters.random_seed = 1
    status = effort.solve(solver, model)
    effort.spend(STARTING)
    return solver, status


def _cover(forms: Floats, within: Any, room: float, effort: Effort) -> tuple[list[int] | None, bool]:
    """A cover whose cost forms are all within some room; and whether the question stayed open."""
    from ortools.sat.python import cp_model

    if room < 1:
        return None, False
    if effort.done:
        return None, True
    model = cp_model.CpModel()
    take = [model.new_bool_var(f"c{at}") for at in range(within.shape[0])]
    for column in within.T:
        model.add_bool_or([take[at] for at in np.flatnonzero(column)])
    for row in forms:
        model.add(sum(int(a) * x for a, x in zip(row, take, strict=True) if a) <= int(room))
    solver, status = _solve(model, effort)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return [at for at, x in enumerate(take) if solver.boolean_value(x)], False
    return None, status != cp_model.INFEASIBLE


def _coverage(
    forms: Floats, within: Any, gains: Floats, room: int, above: Any, effort: Effort
) -> tuple[list[int] | None, float]:
    """A choice within a budget that covers most, and a bound on the coverage."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    take = [model.new_bool_var(f"c{at}") for at in range(within.shape[0])]
    got = [model.new_bool_var(f"t{at}") for at in range(within.shape[1])]
    for at, column in enumerate(within.T):
        model.add_bool_or([take[i] for i in np.flatnonzero(column)] + [got[at].negated()])
    for column in above.T:
        model.add_bool_or([take[i] for i in np.flatnonzero(column)])
    for row in forms:
        model.add(sum(int(a) * x for a, x in zip(row, take, strict=True) if a) <= min(room, LARGEST))
    model.maximize(sum(int(g) * x for g, x in zip(gains, got, strict=True)))
    solver, status = _solve(model, effort)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return [at for at, x in enumerate(take) if solver.boolean_value(x)], float(
            solver.best_objective_bound
        )
    return None, -np.inf if status == cp_model.INFEASIBLE else float(gains.sum())
