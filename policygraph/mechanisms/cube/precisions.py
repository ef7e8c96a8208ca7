"""The best precisions of interactions for Gaussian noise. Owns :func:`optimal_precisions`.

With precisions q_S the variances are sums of g_S / q_S and the cost is the largest of some sums of b_S q_S: a geometric
program, convex in the logarithms of q, with a concave dual (Theorem 4 of ``docs/explanation/proofs/cubes.md``).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from policygraph.mechanisms.cube.weighing import Goal, minimise, soft_max
from policygraph.transforms.cuboids.lattice import Floats

POLISH = 2000
SHARPNESS = (30.0, 300.0, 3000.0, 30000.0)
TINY = 1e-250


def optimal_precisions(cells: Any, forms: Floats, goal: Goal) -> tuple[float, Floats]:
    """Least (total or largest variance) times (largest cost), with a bound that no precisions beat.

    Parameters
    ----------
    cells
        One row for each published cuboid, dense or sparse: its variance is this row times one over the precisions.
    forms
        One row for each kind of neighbour step: its cost is this row times the precisions.
    goal
        ``"total"`` or ``"max"``.

    Returns
    -------
    tuple
        The bound, and precisions.

    Examples
    --------
    >>> bound, q = optimal_precisions(np.array([[1.0, 4.0]]), np.array([[1.0, 1.0]]), "total")
    >>> round(bound, 9), (q / q[0]).round(6).tolist()
    (9.0, [1.0, 2.0])

    Notes
    -----
    For shares c of the cuboids and l of the forms, each summing to 1, the bound is (sum_S sqrt(g_S(c) b_S(l)))^2, by
    Cauchy and Schwarz; its root is concave in (c, l), and where it is largest q_S = sqrt(g_S / b_S) attains it.
    """
    if goal == "total":
        cells = np.asarray(cells.sum(axis=0)).reshape(1, -1)
    bound, shares, prices = _dual(cells, forms)
    best, q = _primal(cells, forms, shares, prices)
    if best > bound * (1 + 1e-5):
        # Where a share is 0 the closed form leaves precisions open; the primal problem does not.
        for sharpness in SHARPNESS:
            smooth = partial(_smooth, cells=cells, forms=forms, sharpness=sharpness)
            _, logs = minimise(smooth, np.log(q), 600, 1e-13)
            made = np.exp(logs - logs.max())
            value = _value(cells, forms, made)
            if value < best:
                best, q = value, made
            c, l_ = _soft_shares(cells, forms, made, sharpness)
            bound = max(bound, float(np.sqrt((c @ cells) * (l_ @ forms)).sum()) ** 2)
    return bound, q


def _value(cells: Any, forms: Floats, q: Floats) -> float:
    return float((cells @ (1 / q)).max() * (forms @ q).max())


def _primal(cells: Any, forms: Floats, c: Floats, prices: Floats) -> tuple[float, Floats]:
    g, b = c @ cells, prices @ forms
    q = np.sqrt(np.maximum(g, 1e-12 * g.max()) / np.maximum(b, 1e-12 * b.max()))
    return _value(cells, forms, q), q


def _smooth(logs: Floats, cells: Any, forms: Floats, sharpness: float) -> tuple[float, Floats]:
    q = np.exp(np.clip(logs - logs.max(), -60.0, 0.0))
    parts, costs = cells @ (1 / q), forms @ q
    high, c = soft_max(np.log(np.maximum(parts, TINY)), sharpness)
    dear, l_ = soft_max(np.log(np.maximum(costs, TINY)), sharpness)
    slopes = -((c / np.maximum(parts, TINY)) @ cells) / q + ((l_ / np.maximum(costs, TINY)) @ forms) * q
    return high + dear, slopes


def _soft_shares(cells: Any, forms: Floats, q: Floats, sharpness: float) -> tuple[Floats, Floats]:
    parts, costs = cells @ (1 / q), forms @ q
    c = soft_max(np.log(np.maximum(parts, TINY)), sharpness)[1] / np.maximum(parts, TINY)
    l_ = soft_max(np.log(np.maximum(costs, TINY)), sharpness)[1] / np.maximum(costs, TINY)
    return c / c.sum(), l_ / l_.sum()


def _dual(cells: Any, forms: Floats) -> tuple[float, Floats, Floats]:
    """Shares that make the bound large: a descent in their logarithms, then multiplicative steps."""
    m, j = cells.shape[0], len(forms)

    def shares(point: Floats) -> tuple[Floats, Floats]:
        return _simplex(point[:m]), _simplex(point[m:])

    def negative(point: Floats) -> tuple[float, Floats]:
        c, l_ = shares(point)
        g, b = np.maximum(c @ cells, TINY), np.maximum(l_ @ forms, TINY)
        roots = np.sqrt(g * b)
        total = float(roots.sum())
        by_c, by_l = 0.5 * (cells @ (roots / g)), 0.5 * (forms @ (roots / b))
        slopes = np.concatenate([c * (by_c - float(c @ by_c)), l_ * (by_l - float(l_ @ by_l))])
        return -float(np.log(total)), -slopes / total

    start = np.zeros(m + j)
    c, l_ = shares(start if m == j == 1 else minimise(negative, start, 2000, 1e-13)[1])
    best = (0.0, c, l_)
    for _ in range(POLISH):
        g, b = np.maximum(c @ cells, TINY), np.maximum(l_ @ forms, TINY)
        bound = float(np.sqrt(g * b).sum()) ** 2
        if bound > best[0]:
            best = (bound, c, l_)
        q = np.sqrt(g / b)
        parts, costs = cells @ (1 / q), forms @ q
        if float(parts.max() * costs.max()) < bound * (1 + 1e-6):
            break
        c, l_ = _share(c * parts), _share(l_ * costs)
    return best


def _simplex(logs: Floats) -> Floats:
    return _share(np.exp(logs - logs.max()))


def _share(values: Floats) -> Floats:
    made: Floats = values / values.sum()
    return made
