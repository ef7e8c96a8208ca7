"""Cuboids with unequal noise, optimised. Owns :class:`Weighing` (the objective, its slopes and the search) and :func:`minimise`, a small quasi-Newton method.

Weights w of the measured cuboids enter through precisions w^2 of the least-squares estimate, and through the sensitivity. The
product of noise and variances does not change when all weights are multiplied, so that logarithms of weights are free. In
L2 the problem is convex in the squares and one descent finds the optimum; in L1 it is not, and descents from several
starts are followed by exchanges of one measured cuboid. Floats throughout: the result is rounded to integer
weights, and only their certified sensitivity scales noise. Effort is counted by what descents may take, not by what they took, so
that it does not hang on last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.ties import SAME, least, order, ranked, settled
from policygraph.transforms.cuboids.choose import Task
from policygraph.transforms.cuboids.costs import cell_shares, known_blocks, shares
from policygraph.transforms.cuboids.lattice import Family, Floats, Ints

Goal = Literal["total", "max"]

LOWEST = -16.0
DROPPED = 1e-6
RANDOM_STARTS = 40
EXCHANGED = 12
MOST_CANDIDATES = 1 << 14
MOST_EXCHANGED = 4096
"""With more candidates single cuboids are not exchanged."""
SMALL = 1e-4
"""A weight below this share of the largest counts as not measured when cuboids are exchanged."""
SHARPNESS = (30.0, 300.0, 3000.0)
BATCH = 4_000_000
CALLS, ENTRIES = 60, 300
"""Units of work of one evaluation of the slopes: for its calls, and for how many entries of its matrices one unit is."""


class Weighing:
    """Noise of the weights times total or largest variance after least squares.

    Notes
    -----
    Precisions of blocks are ``from_weights @ w^2``, variances of published cuboids ``to_cells @ (1 / precisions)``: dense matrices
    for some hundred cuboids, sparse ones for thousands of low order; many trials are one matrix product.
    """

    def __init__(self, task: Task, goal: Goal) -> None:
        self.task, self.goal = task, goal
        self.effort = Effort()
        if len(task.candidates) > MOST_CANDIDATES:
            raise RefusedError(
                f"{len(task.candidates)} cuboids may be measured: expected at most {MOST_CANDIDATES} for unequal noise. "
                "Publish fewer, or measure all of them alike.",
                code="cubes.too-many",
            )
        # Only blocks of published cuboids that are not known need an estimate.
        family = Family(task.lattice, task.wanted)
        wanted = family.at(task.wanted)
        self.forms = task.costs.forms
        self.power = 1 if task.loss.norm == "l1" else 2
        needed = family.masks[~known_blocks(family, task.known)]
        self.from_weights = shares(task.lattice, needed, np.array(task.candidates, dtype=np.int64))
        self.to_cells = cell_shares(family, needed, wanted, task.wanted_importance)
        self.total: Floats = np.asarray(self.to_cells.sum(axis=0)).ravel()
        free = self.total > 0
        if not free.all():
            self.from_weights, self.to_cells = self.from_weights[free], self.to_cells[:, free]
            self.total = self.total[free]

    def value(self, weights: Floats) -> Floats:
        """Objectives of weights, one column for each trial."""
        q = self.from_weights @ np.square(weights)
        costs = (self.forms @ weights**self.power).max(axis=0) ** (2 / self.power)
        with np.errstate(divide="ignore"):
            blocks = 1.0 / q
        if self.goal == "total":
            made: Floats = costs * (self.total @ blocks)
            return made
        finite = np.isfinite(blocks).all(axis=0)
        worst = (self.to_cells @ np.where(np.isfinite(blocks), blocks, 0.0)).max(axis=0)
        return np.where(finite, costs * worst, np.inf)

    def smooth(
        self, theta: Floats, matrix: Any, forms: Floats, sharpness: float, norm: float
    ) -> tuple[float, Floats]:
        """Logarithm of the objective with soft maxima, and its slopes, at logarithms of some weights.

        ``norm`` replaces the L1 norm of the sensitivity on the way from the convex problem (2) to it (1).
        """
        weights = np.exp(theta - theta.max())
        squares = weights * weights
        blocks = 1.0 / np.maximum(matrix @ squares, 1e-140)
        if self.goal == "total":
            total = float(self.total @ blocks)
            value, by_blocks = np.log(total), self.total / total
        else:
            cells = np.maximum(self.to_cells @ blocks, 1e-250)
            value, soft = soft_max(np.log(cells), sharpness)
            by_blocks = (soft / cells) @ self.to_cells
        gradient = (-(by_blocks * blocks * blocks) @ matrix) * 2 * squares
        powers = weights**norm
        costs = np.maximum(forms @ powers, 1e-250)
        level, soft = soft_max(np.log(costs), sharpness)
        value += 2 / norm * level
        gradient += 2 * ((soft / costs) @ forms) * powers
        return float(value), gradient

    def descend(
        self, weights: Floats, steps: int, stages: Sequence[float] | None = None, norm: float | None = None
    ) -> Floats:
        """Follow the slopes from some weights, those that are 0 left out; soft maxima get sharper in stages."""
        on = np.flatnonzero(weights > DROPPED * weights.max())
        matrix, forms = self.from_weights[:, on], self.forms[:, on]
        soft = self.goal == "max" or len(self.forms) > 1
        stages = (stages or SHARPNESS) if soft else (1.0,)
        # Most descents end in half of the steps that they may take.
        self.effort.spend(len(stages) * steps // 2 * self.work_of(len(on)))
        theta = np.log(weights[on] / weights.max())
        for stage in stages:
            power = float(self.power) if norm is None else norm
            _, theta = minimise(
                partial(self.smooth, matrix=matrix, forms=forms, sharpness=stage, norm=power), theta, steps
            )
            theta = settled(np.maximum(theta - theta.max(), LOWEST))
        made = np.zeros(len(weights))
        made[on] = np.exp(theta)
        return made

    def work_of(self, columns: int) -> int:
        """Units of work of one evaluation of the objective with so many measured cuboids."""
        held, cells = self.from_weights, self.to_cells if self.goal == "max" else self.total
        share = columns / max(1, held.shape[1])
        return (
            CALLS
            + int(share * (getattr(held, "nnz", held.size)) + getattr(cells, "nnz", cells.size)) // ENTRIES
        )

    def best_of(self, weights: Floats) -> tuple[float, Floats]:
        """Objective and weights, small ones dropped where that does not hurt."""
        trials = np.stack([np.where(weights < cut, 0.0, weights) for cut in (0.0, 1e-5, SMALL, 1e-3)], axis=1)
        values = self.value(trials)
        at = int(np.flatnonzero(values <= values.min() * (1 + SAME))[-1])
        return float(values[at]), trials[:, at]

    def search(self, starts: Sequence[Floats], effort: Effort) -> tuple[float, Floats]:
        """Descend from starts and exchange measured cuboids; the best objective with its weights."""
        self.effort = effort
        found = [self.best_of(weights) for weights in starts]
        found += [self.best_of(self.descend(weights, 400)) for weights in starts]
        if self.power == 2:
            return least(found, key=_value)
        found.append(self._by_homotopy())
        draws = np.random.default_rng(20)  # a fixed seed: nothing here is private
        half = effort.share(1, 2)
        self.effort = half
        for at in range(RANDOM_STARTS):
            if half.done:
                break
            start = np.exp(settled(draws.normal(size=len(starts[0])) * (1.0 + at % 3)))
            found.append(self.best_of(self.descend(start, 60, stages=(100.0,))))
        self.effort = effort
        found = ranked(found, key=_value)
        best = found[0]
        few = len(starts[0]) <= MOST_EXCHANGED
        for value, weights in found[: EXCHANGED if few else 0]:
            if effort.done:
                break
            best = least([best, self._exchange(value, weights)], key=_value)
        polished = self.best_of(self.descend(best[1], 400))
        return least([best, polished], key=_value)

    def _by_homotopy(self) -> tuple[float, Floats]:
        """Start at the convex L2 problem and bend its norm to L1 in steps."""
        weights = np.ones(self.from_weights.shape[1])
        for norm in np.linspace(2.0, 1.0, 12):
            weights = self.descend(np.maximum(weights, 1e-5), 150, stages=(100.0,), norm=float(norm))
            if self.effort.done:
                break
        return self.best_of(weights)

    def _exchange(self, best: float, weights: Floats) -> tuple[float, Floats]:
        """Drop, add or replace one measured cuboid while that helps, descending after each."""
        improved = True
        while improved and not self.effort.done:
            improved = False
            trials = self._trials(weights)
            for at in order(self._values(trials))[:8]:
                value, made = self.best_of(self.descend(trials[:, at], 100, stages=(300.0,)))
                if value < best * (1 - 1e-5):
                    best, weights, improved = value, made, True
                    break
        return best, weights

    def _trials(self, weights: Floats) -> Floats:
        masks = self.task.candidates
        place = {mask: at for at, mask in enumerate(masks)}
        on = np.flatnonzero(weights > SMALL * weights.max())
        base = np.where(weights > SMALL * weights.max(), weights, 0.0)
        typical = float(base[on].mean())
        columns = [base]
        for at in range(len(masks)):
            if base[at] == 0:
                columns += [_with(base, {at: typical}), _with(base, {at: typical / 4})]
        for at in on.tolist():
            if len(on) > 1:
                columns.append(_with(base, {at: 0.0}))
            for other in _near(masks[at], self.task.top):
                to = place.get(other)
                if to is not None:
                    columns.append(_with(base, {at: 0.0, to: base[to] + base[at]}))
        return np.stack(columns, axis=1)

    def _values(self, trials: Floats) -> Floats:
        self.effort.spend(trials.shape[1] * self.work_of(len(trials)) // 8)
        width = max(1, BATCH // max(1, self.from_weights.shape[0]))
        parts = [self.value(trials[:, at : at + width]) for at in range(0, trials.shape[1], width)]
        return np.concatenate(parts)


def _value(found: tuple[float, Floats]) -> float:
    return found[0]


def _with(weights: Floats, changes: dict[int, float]) -> Floats:
    made = weights.copy()
    for at, value in changes.items():
        made[at] = value
    return made


def _near(mask: int, top: int) -> list[int]:
    """Cuboids with one attribute more, one less, or one exchanged."""
    inside = [1 << a for a in range(top.bit_length()) if mask >> a & 1]
    outside = [1 << a for a in range(top.bit_length()) if (top & ~mask) >> a & 1]
    return (
        [mask ^ a for a in inside]
        + [mask | b for b in outside]
        + [mask ^ a | b for a in inside for b in outside]
    )


def soft_max(logs: Floats, sharpness: float) -> tuple[float, Floats]:
    """Logarithm of a soft maximum, and the share of each in it."""
    if len(logs) == 1:
        return float(logs[0]), np.ones(1)
    top = float(logs.max())
    powers = np.exp(sharpness * (logs - top))
    total = float(powers.sum())
    return top + np.log(total) / sharpness, powers / total


def rounded(weights: Floats, largest: int) -> Ints:
    """Integer weights in proportion, the largest given, divided by what they share.

    Examples
    --------
    >>> rounded(np.array([0.5, 0.25, 0.0]), 1000).tolist()
    [2, 1, 0]
    """
    whole: Ints = np.rint(weights * (largest / weights.max())).astype(np.int64)
    made: Ints = whole // max(1, int(np.gcd.reduce(whole)))
    return made


MEMORY = 12


def minimise(
    function: Callable[[Floats], tuple[float, Floats]], start: Floats, steps: int, tolerance: float = 1e-10
) -> tuple[float, Floats]:
    """Walk down a smooth function by the limited-memory BFGS method.

    Parameters
    ----------
    function
        Gives the value and the slopes at a point.
    start
        Where to begin.
    steps
        Most steps.
    tolerance
        Stop when five steps together improve the value by less than this.

    Returns
    -------
    tuple
        The least value met, and its point.

    Examples
    --------
    >>> value, point = minimise(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), 50)
    >>> point.round(6).tolist()
    [3.0, 3.0]

    Notes
    -----
    Two-loop recursion (Nocedal 1980); a step is halved until it gains a ten-thousandth of what the slope promises, and is
    remembered only if the slopes turned the right way, so that every direction leads down.
    """
    point = np.array(start, dtype=np.float64)
    value, slope = function(point)
    changes: list[tuple[Floats, Floats, float]] = []
    recent = [value]
    for _ in range(steps):
        direction = _direction(slope, changes)
        promise = float(direction @ slope)
        if not promise < 0:
            changes.clear()
            direction, promise = -slope, -float(slope @ slope)
            if not promise < 0:
                break
        length = 1.0 if changes else min(1.0, 1.0 / max(float(np.abs(slope).max()), 1e-300))
        for _ in range(30):
            trial = point + length * direction
            reached, there = function(trial)
            if reached <= value + 1e-4 * length * promise:
                break
            length /= 2
        else:
            break
        moved, turned = trial - point, there - slope
        curve = float(moved @ turned)
        if curve > 1e-14 * float(np.sqrt((moved @ moved) * (turned @ turned))):
            changes.append((moved, turned, curve))
            del changes[:-MEMORY]
        point, value, slope = trial, reached, there
        recent.append(value)
        if len(recent) > 5 and recent[-6] - value < tolerance:
            break
    return value, point


def _direction(slope: Floats, changes: list[tuple[Floats, Floats, float]]) -> Floats:
    made = -slope
    parts = []
    for moved, turned, curve in reversed(changes):
        part = float(moved @ made) / curve
        parts.append(part)
        made = made - part * turned
    if changes:
        _, turned, curve = changes[-1]
        made = made * (curve / float(turned @ turned))
    for (moved, turned, curve), part in zip(changes, reversed(parts), strict=True):
        made = made + (part - float(turned @ made) / curve) * moved
    return made
