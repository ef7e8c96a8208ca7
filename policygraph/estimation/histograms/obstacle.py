"""Non-negative cells at the least change of noisy edges. Owns :func:`nearest_forest` and :func:`nearest_graph`.

Both solve min |w|^2 subject to x + P w >= 0 exactly but for the errors of floats, by a set of cells that only grows;
``docs/explanation/proofs/isotonic.md`` proves that it ends at the optimum. Graphs of many cells start from a set that is almost right, and
their rounds are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["nearest_forest", "nearest_graph"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

ROUNDS = 1_000
"""Most rounds; a round costs one solve, and a few dozen are usual. Beyond them negative cells are cut off."""
SLACK = 1e-6
"""A cell this much below 0 counts as 0."""
LARGE = 150_000
"""Cells of a general graph above which the first set is found by sweeps and the rounds are few."""
LARGE_ROUNDS = 12
SWEEPS = 200
FACTOR = 1.9
UNSOLVED = 0.5
"""A solution that leaves more than this in a cell that should be 0 is none."""


def nearest_forest(cells: Any, order: Ints, above: Ints, fixed: Ints) -> Floats:
    """Project noisy cells of a forest; each round is two sweeps in linear time.

    Parameters
    ----------
    cells
        Noisy cells.
    order, above
        All cells, parents first, and the place of the parent of each (-1 for roots).
    fixed
        Roots whose total is known, so that the edge above them has no noise.

    Examples
    --------
    >>> order, above = np.arange(3), np.array([-1, 0, 1])
    >>> np.round(nearest_forest([3, -2, 4], order, above, np.array([0])), 6).tolist()
    [2.0, 0.0, 3.0]
    """
    from policygraph.transforms.incidence._compiled_sweeps import forest_solve

    x = np.asarray(cells, dtype=np.float64)
    noisy_top = np.ones(len(x), dtype=bool)
    noisy_top[fixed] = False
    edge = (above >= 0) | noisy_top[order]
    diagonal = edge.astype(np.float64) + np.bincount(above[above >= 0], minlength=len(x))
    laid = x[order]
    inner = above >= 0

    def solve(inside: Bools) -> Floats:
        return np.asarray(forest_solve(-laid, diagonal, above, inside))

    def residual(mu: Floats) -> Floats:
        out = laid + diagonal * mu
        out[inner] -= mu[above[inner]]
        return np.asarray(out - np.bincount(above[inner], mu[inner], minlength=len(x)))

    found = np.empty(len(x))
    found[order] = _grow(laid, solve, residual)
    return found


def nearest_graph(cells: Any, u: Ints, v: Ints, lone: Ints, *, planar: bool = False) -> Floats:
    """Project noisy cells of any graph; each round is one sparse solve.

    Parameters
    ----------
    cells
        Noisy cells.
    u, v
        Ends of the edges that got noise.
    lone
        Cells with a noisy edge to bottom, or a noisy total.
    planar
        Whether the graph can be drawn without crossings, so that factorisations stay sparse at any size.

    Notes
    -----
    Up to 150,000 cells the rounds go on until the optimum. Above, projected sweeps find most of the set first; cells may leave
    it again when their potential turns negative, and twelve rounds are the most. What is below 0 then is cut off.

    Examples
    --------
    >>> u, v = np.array([0, 1]), np.array([1, 2])
    >>> np.round(nearest_graph([3, -2, 4], u, v, np.array([], dtype=np.int64)), 6).tolist()
    [2.0, 0.0, 3.0]
    """
    from policygraph.transforms.incidence.laplacian import graph_laplacian, solve_system

    x = np.asarray(cells, dtype=np.float64)
    laplacian = graph_laplacian(len(x), u, v, lone).tocsr()
    guess = np.zeros(len(x))

    def solve(inside: Bools) -> Floats:
        at = np.flatnonzero(inside)
        part = laplacian[at, :][:, at]
        found = solve_system(part, -x[at], guess[at], strict=False, direct=True if planar else None)
        guess[:] = 0
        guess[at] = found
        return guess.copy()

    def residual(mu: Floats) -> Floats:
        return np.asarray(x + laplacian @ mu)

    if len(x) <= LARGE:
        return _grow(x, solve, residual)
    from policygraph.estimation.histograms._compiled_relaxed import relaxed

    guess = relaxed(x, laplacian.indptr, laplacian.indices, laplacian.data, SWEEPS, FACTOR)
    return _settle(x, guess > 0, solve, residual)


def _settle(
    x: Floats, start: Bools, solve: Callable[[Bools], Floats], residual: Callable[[Floats], Floats]
) -> Floats:
    """Cells of the optimum or, after some rounds, near it: from a first set that need not be a part of the last one."""
    inside, out = start, x
    for _ in range(LARGE_ROUNDS):
        if not inside.any():
            break
        try:
            mu = solve(inside)
            found = residual(mu)
            solved = bool(np.abs(found[inside]).max() < UNSOLVED)
        except RuntimeError:  # scipy's word for a singular system
            solved = False
        if not solved:
            # A set that holds a whole component has no solution; the negative cells alone always have one.
            if inside is not start:
                break
            inside = x < -SLACK
            continue
        out = found
        wrong = inside & (mu < -SLACK)
        fresh = ~inside & (out < -SLACK)
        if not wrong.any() and not fresh.any():
            return np.where(inside, 0.0, np.maximum(out, 0.0))
        inside = (inside & ~wrong) | fresh
    return np.maximum(out, 0.0)


def _grow(x: Floats, solve: Callable[[Bools], Floats], residual: Callable[[Floats], Floats]) -> Floats:
    """Cells of the optimum: those pushed up to 0 form a set that grows until no other cell is negative."""
    inside = x < -SLACK
    out = x
    for _ in range(ROUNDS):
        if not inside.any():
            return np.maximum(out, 0.0)
        out = residual(solve(inside))
        fresh = ~inside & (out < -SLACK)
        if not fresh.any():
            return np.where(inside, 0.0, np.maximum(out, 0.0))
        inside |= fresh
    # Post-processing must not fail once the loss is paid: what is left below 0 is cut off, and totals are restored later.
    return np.maximum(out, 0.0)
