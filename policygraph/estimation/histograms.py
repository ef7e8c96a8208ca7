"""The nearest histogram to noisy cells, for every transform. Owns :func:`consistent`, :func:`projection` and :func:`rounded`.

Lines are isotonic regressions; forests and other graphs solve min |w|^2 subject to x + P w >= 0 exactly but for the errors of floats, by a set
of cells that only grows; ``docs/explanation/proofs/isotonic.md`` proves that it ends at the optimum. Graphs of many cells start from a set
that is almost right, and their rounds are counted. Sees noisy cells only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.transforms.incidence import (
    EdgeTransform,
    ForestTransform,
    GridTransform,
    LineTransform,
    Reduction,
)
from policygraph.transforms.incidence.base import graph_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
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


def round_in_order(values: Any, order: Ints, pieces: Ints | None = None, totals: Ints | None = None) -> Ints:
    """Round non-negative numbers so that every sum over a stretch of the order is off by less than 1.

    Parameters
    ----------
    values
        Numbers >= 0, up to the errors of a solver.
    order
        All positions, in the order in which sums are kept.
    pieces
        For each position of the order the number of its piece: 0, 1, ... without gaps, ascending. One piece by default.
    totals
        Known sum of each piece, which is then kept exactly; -1 where it is not known.

    Notes
    -----
    The running sums of a piece are rounded to the nearest whole number, which keeps them non-decreasing, and their
    differences are the result. A subtree is a stretch of the post-order, so that its sum is off by less than 1 as well.
    Where a solver missed a known total, its piece is first scaled to it.

    Examples
    --------
    >>> zero = np.zeros(4, dtype=np.int64)
    >>> round_in_order([0.4, 0.4, 0.4, 1.8], np.arange(4), zero, np.array([3])).tolist()
    [0, 1, 0, 2]
    """
    laid = np.maximum(np.asarray(values, dtype=np.float64)[order], 0.0)
    if not len(laid):
        return np.zeros(0, dtype=np.int64)
    of = np.zeros(len(laid), dtype=np.int64) if pieces is None else pieces
    first = np.flatnonzero(np.diff(of, prepend=-1))
    last = np.append(first[1:], len(laid)) - 1
    sizes = last - first + 1
    found = np.add.reduceat(laid, first)
    wanted = np.full(len(first), -1, dtype=np.int64) if totals is None else totals
    known = wanted >= 0
    scale = np.where(known & (found > 0), wanted / np.where(found > 0, found, 1.0), 1.0)
    laid = laid * np.repeat(scale, sizes)
    whole = np.where(known, wanted, np.floor(found + 0.5).astype(np.int64))
    running = np.cumsum(laid)
    before = np.repeat(running[first] - laid[first], sizes)
    steps = np.clip(np.floor(running - before + 0.5).astype(np.int64), 0, np.repeat(whole, sizes))
    steps[last] = whole
    starts = np.diff(steps, prepend=0)
    starts[first] = steps[first]
    out = np.empty(len(laid), dtype=np.int64)
    out[order] = starts
    return out


def isotonic_lines(cells: Any, shape: tuple[int, int, int], *, exact_total: bool) -> Ints:
    """Make noisy cells non-negative by the nearest non-decreasing prefix sums, line by line.

    Parameters
    ----------
    cells
        Noisy cells whose prefix sums have independent noise of equal variance.
    shape
        Lines outside, length of a line, lines inside.
    exact_total
        Whether the last prefix sum of each line is known; then it is kept, and no other exceeds it.

    Returns
    -------
    numpy.ndarray
        Whole cells >= 0.

    Notes
    -----
    The projection on 0 <= f_1 <= ... <= f_(n-1) <= N is the isotonic regression clipped to [0, N] (``docs/explanation/proofs/isotonic.md``),
    found by pooling adjacent violators in linear time. Rounding to the nearest whole number keeps the order and the ends.

    Examples
    --------
    >>> isotonic_lines([3, -2, 4, -1, 2], (1, 5, 1), exact_total=True).tolist()
    [2, 0, 3, 0, 1]
    """
    lines = lines_of(cells, shape)
    measured = shape[1] - 1 if exact_total else shape[1]
    out = np.empty_like(lines)
    if measured:
        fitted = np.floor(_isotonic(lines[:, :measured]) + 0.5).astype(np.int64)
        top = np.maximum(lines[:, -1:], 0) if exact_total else None
        out[:, :measured] = np.clip(fitted, 0, top)
    if exact_total:
        out[:, -1] = np.maximum(lines[:, -1], 0)
    fitted_sums = np.moveaxis(out.reshape(shape[0], shape[2], shape[1]), 2, 1)
    return np.diff(fitted_sums, axis=1, prepend=0).reshape(-1)


def lines_of(cells: Any, shape: tuple[int, int, int]) -> Ints:
    """Prefix sums of noisy cells, a row for each line."""
    sums = np.cumsum(np.asarray(cells, dtype=np.int64).reshape(shape), axis=1)
    return np.moveaxis(sums, 1, 2).reshape(-1, shape[1])


def nearest_lines(sums: Floats, reduction: LineTransform) -> Floats:
    """Cells of the nearest non-decreasing prefix sums >= 0, which stay below known totals; not rounded.

    Parameters
    ----------
    sums
        Prefix sums, a row for each line; totals that are known are the last of them.
    """
    outer, length, inner = reduction.shape
    out = np.empty_like(sums)
    measured = length - 1 if reduction.exact_totals else length
    if measured:
        top = np.maximum(sums[:, -1:], 0.0) if reduction.exact_totals else None
        out[:, :measured] = np.clip(_isotonic(sums[:, :measured]), 0.0, top)
    if reduction.exact_totals:
        out[:, -1] = np.maximum(sums[:, -1], 0.0)
    cells = np.diff(out, axis=1, prepend=0.0).reshape(outer, inner, length)
    return np.moveaxis(cells, 2, 1).reshape(-1)


def _isotonic(lines: Ints | Floats) -> Floats:
    """Isotonic regression of each row: scipy's for one, compiled pooling for many."""
    if len(lines) == 1:
        from scipy.optimize import isotonic_regression

        return np.asarray(isotonic_regression(lines[0]).x)[None, :]
    from policygraph.estimation._compiled_histograms import pool_lines

    return np.asarray(pool_lines(lines.astype(np.float64)))


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
    from policygraph.transforms.incidence.grid import graph_laplacian, solve_system

    x = np.asarray(cells, dtype=np.float64)
    laplacian = graph_laplacian(len(x), u, v, lone).tocsr()
    guess = np.zeros(len(x))

    def solve(inside: Bools) -> Floats:
        at = np.flatnonzero(inside)
        part = laplacian[at, :][:, at]
        found = solve_system(part, -x[at], guess[at], direct=planar)
        guess[:] = 0
        guess[at] = found
        return guess.copy()

    def residual(mu: Floats) -> Floats:
        return np.asarray(x + laplacian @ mu)

    if len(x) <= LARGE:
        return _grow(x, solve, residual)
    from policygraph.estimation._compiled_histograms import relaxed

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


def consistent(reduction: Reduction, noisy: Any) -> Ints:
    """Find whole non-negative cells near noisy ones, measured by the least change of the noisy coordinates.

    Parameters
    ----------
    reduction
        The transform whose coordinates got the noise.
    noisy
        Noisy cells; where totals are fixed they sum to them.

    Returns
    -------
    numpy.ndarray
        Cells >= 0 with the same fixed totals.

    Notes
    -----
    With independent noise z of equal variance on the coordinates, the noisy cells are x + M z. Returned is the rounding
    of the projection: the cells x + M (z + w) >= 0 with the least sum of squares of w over the coordinates that got noise.
    On a line that is isotonic regression of the prefix sums, clipped to 0 and the known total.

    Examples
    --------
    >>> import policygraph as pg
    >>> from policygraph.transforms.incidence import transform
    >>> domain = pg.Domain({"age": 5})
    >>> line = transform(pg.Policy(domain, pg.PolicyGraph.line(domain)))
    >>> consistent(line, [3, -2, 4, -1, 2]).tolist()
    [2, 0, 3, 0, 1]
    """
    cells = np.asarray(noisy, dtype=np.int64).reshape(-1)
    if isinstance(reduction, LineTransform):
        return isotonic_lines(cells, reduction.shape, exact_total=reduction.exact_totals)
    return rounded(reduction, projection(reduction, cells), cells)


def projection(reduction: Reduction, noisy: Any) -> Floats:
    """The nearest non-negative cells, not rounded; see :func:`consistent`.

    Raises
    ------
    InputError
        When the reduction is no transform of a policy graph.
    """
    if isinstance(reduction, LineTransform):
        return nearest_lines(lines_of(noisy, reduction.shape).astype(np.float64), reduction)
    if isinstance(reduction, ForestTransform):
        return nearest_forest(noisy, reduction.order, reduction.above, reduction.fixed)
    if isinstance(reduction, (EdgeTransform, GridTransform)):
        u, v = (reduction.u, reduction.v) if isinstance(reduction, EdgeTransform) else reduction.edges()
        lone = reduction.lone if isinstance(reduction, EdgeTransform) else reduction.roots[:0]
        loose = reduction.roots[:0] if reduction.exact_totals else reduction.roots
        planar = isinstance(reduction, GridTransform) and len(reduction.axes) == 2
        return nearest_graph(noisy, u, v, np.concatenate([lone, loose]), planar=planar)
    raise InputError(
        f"{type(reduction).__name__}: expected a transform of a policy graph.", code="consistency.reduction"
    )


def rounded(reduction: Reduction, found: Floats, noisy: Ints) -> Ints:
    """Whole cells near non-negative ones, with the totals of the noisy cells where these are known.

    Parameters
    ----------
    found
        Cells >= 0, up to the errors of a solver.
    noisy
        Noisy cells, which sum to known totals.
    """
    if isinstance(reduction, LineTransform):
        outer, length, inner = reduction.shape
        order = np.moveaxis(np.arange(found.size).reshape(reduction.shape), 1, 2).reshape(-1)
        pieces = np.repeat(np.arange(outer * inner), length)
        kept = np.full(outer * inner, reduction.exact_totals)
    elif isinstance(reduction, ForestTransform):
        order = reduction.post_order
        ends = reduction.parent[order] < 0
        pieces = np.concatenate([[0], np.cumsum(ends)[:-1]])
        kept = np.isin(order[ends], reduction.fixed)
    elif isinstance(reduction, (EdgeTransform, GridTransform)):
        labels = graph_of(reduction.policy).components()
        order = np.argsort(labels, kind="stable")
        pieces = labels[order]
        kept = np.isin(np.arange(labels.max() + 1), labels[reduction.roots]) & reduction.exact_totals
    else:
        raise InputError(
            f"{type(reduction).__name__}: expected a transform of a policy graph.",
            code="consistency.reduction",
        )
    return round_in_order(found, order, pieces, _totals(noisy[order], pieces, kept))


def _totals(laid: Ints, pieces: Ints, kept: npt.NDArray[np.bool_]) -> Ints:
    """Exact totals of the pieces that have one, -1 for the others."""
    sums = np.add.reduceat(laid, np.flatnonzero(np.diff(pieces, prepend=-1)))
    return np.where(kept, np.maximum(sums, 0), -1)
