"""What no unequal noise on cuboids can beat, for pure epsilon. Owns :func:`least_value`.

The problem is not convex, but a convex one lies below it: precisions, sums of squares of weights, are at most the squares of sums of weights. Its dual bound is a
closed form at given shares (Theorem 5 of ``docs/explanation/proofs/cubes.md``).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from policygraph.mechanisms.cube.descent import minimise
from policygraph.mechanisms.cube.weighing import Weighing, soft_max
from policygraph.ties import settled
from policygraph.transforms.cuboids.lattice import Floats

__all__ = ["bound_at", "least_value"]

SHARPNESS = (30.0, 300.0, 3000.0)
STEPS = 300
ROUNDING = 1 - 1e-9
TINY = 1e-250
COARSE = 1 << 8
"""Logarithms of weights at which the bound is computed are multiples of one over this."""


def least_value(weighing: Weighing, start: Floats) -> float:
    """A number that no weights of the candidates come below, in the units of :meth:`Weighing.value`, for the L1 norm.

    Parameters
    ----------
    weighing
        The problem.
    start
        Weights to begin at; the better they are, the sooner the bound is good. Any give a valid one.

    Notes
    -----
    The program walks down the convex problem; every point that it stops at gives a bound, and the largest is returned.
    """
    matrix = (
        weighing.from_weights.sqrt()
        if hasattr(weighing.from_weights, "sqrt")
        else np.sqrt(weighing.from_weights)
    )
    total = weighing.total.reshape(1, -1)
    best = _walked(matrix, total, weighing.forms, start)
    if weighing.goal == "max":
        # A maximum is at least the mean.
        best = max(
            best / weighing.to_cells.shape[0], _walked(matrix, weighing.to_cells, weighing.forms, start)
        )
    return best * ROUNDING


def _walked(matrix: Any, cells: Any, forms: Floats, start: Floats) -> float:
    """The best bound of the points where a descent of the convex problem stops."""
    theta = np.log(np.maximum(start / start.max(), 1e-3))
    best = 0.0
    for sharpness in SHARPNESS:
        step = partial(_smooth, matrix=matrix, cells=cells, forms=forms, sharpness=sharpness)
        _, theta = minimise(step, theta, STEPS, 1e-12)
        theta = np.maximum(theta - theta.max(), -40.0)
        # The bound is flat where it is best: a coarse grid costs little, and other last digits lead to the same point of it.
        weights = np.exp(settled(theta, COARSE))
        roots = np.maximum(matrix @ weights, TINY)
        parts, costs = np.maximum(cells @ roots**-2, TINY), np.maximum(forms @ weights, TINY)
        for c in (
            soft_max(np.log(parts), sharpness)[1] / parts,
            soft_max(np.log(parts), 10 * sharpness)[1] / parts,
        ):
            prices = soft_max(np.log(costs), sharpness)[1] / costs
            shares, prices = c / c.sum(), prices / prices.sum()
            with np.errstate(over="ignore"):
                y = np.asarray(shares @ cells) * roots**-3
            best = max(best, bound_at(matrix, cells, forms, shares, prices, y))
    return best


def bound_at(matrix: Any, cells: Any, forms: Floats, shares: Floats, prices: Floats, y: Floats) -> float:
    """The bound that some shares of cuboids, prices of forms and multipliers of blocks prove.

    Examples
    --------
    Two tables of one value each, wanted alike: equal weights are best, and reach 2 * (1 + 1)^2.

    >>> one, even = np.eye(2), np.array([1.0, 1.0])
    >>> round(bound_at(one, even.reshape(1, 2), even.reshape(1, 2), np.ones(1), np.ones(1), even), 9)
    8.0
    """
    if not np.all(np.isfinite(y)) or y.max() <= 0:
        return 0.0
    y = y / y.max()
    g, price = np.asarray(shares @ cells), prices @ forms
    worth = np.asarray(y @ matrix)
    largest = float((worth[price > 0] / price[price > 0]).max(initial=0.0))
    if np.any(worth[price <= 0] > 0) or largest <= 0:
        return 0.0
    return float((np.sum(np.cbrt(g * y * y)) ** 1.5 / largest) ** 2)


def _smooth(theta: Floats, matrix: Any, cells: Any, forms: Floats, sharpness: float) -> tuple[float, Floats]:
    """Logarithm of the convex objective with soft maxima, and its slopes, at logarithms of weights."""
    weights = np.exp(np.clip(theta - theta.max(), -40.0, 0.0))
    roots = np.maximum(matrix @ weights, 1e-100)
    parts = np.maximum(cells @ roots**-2, TINY)
    high, soft = soft_max(np.log(parts), sharpness)
    by_roots = -2 * np.asarray((soft / parts) @ cells) * roots**-3
    costs = np.maximum(forms @ weights, TINY)
    dear, paid = soft_max(np.log(costs), sharpness)
    slopes = (np.asarray(by_roots @ matrix) + 2 * ((paid / costs) @ forms)) * weights
    return float(high + 2 * dear), slopes
