"""Variances of ranges and differences without listing them. Owns the quadratic forms of one axis.

w (A^T A)^-1 w^T is a sum over the blocks of each level of kappa_v (w . g_v)^2. A range has at most two blocks of a level that
it cuts, and the others enter through a running sum; a difference of two positions has two blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.mechanisms.strategy.factors import Factor, Form

__all__ = ["of_all_differences", "of_all_pairs", "of_all_ranges", "of_pairs", "of_ranges", "of_rows"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def of_ranges(factor: Factor, low: Ints, high: Ints) -> Floats:
    """Forms of the indicators of ranges of positions, both ends included.

    Examples
    --------
    >>> from policygraph.mechanisms.strategy.factors import Tree
    >>> of_ranges(Tree.identity(5), np.array([1, 0]), np.array([1, 4])).tolist()
    [1.0, 5.0]
    """
    out = np.zeros(len(low))
    for form in factor.forms:
        sums = np.concatenate([[0.0], np.cumsum(form.g)])
        first, last = form.block[low], form.block[high]
        whole = np.diff(sums[form.starts])
        run = np.concatenate([[0.0], np.cumsum(form.kappa * whole**2)])
        left = sums[np.minimum(form.starts[first + 1], high + 1)] - sums[low]
        right = sums[high + 1] - sums[form.starts[last]]
        apart = first < last
        between = np.where(apart, run[last] - run[np.minimum(first + 1, last)], 0.0)
        out += form.kappa[first] * left**2 + np.where(apart, form.kappa[last] * right**2, 0.0) + between
    return np.maximum(out, 0.0)


def of_pairs(factor: Factor, minus: Ints, plus: Ints) -> Floats:
    """Forms of differences of two positions; -1 stands for none.

    Examples
    --------
    >>> from policygraph.mechanisms.strategy.factors import Tree
    >>> of_pairs(Tree.identity(5), np.array([-1, 2, -1]), np.array([0, 4, -1])).tolist()
    [1.0, 2.0, 0.0]
    """
    out = np.zeros(len(minus))
    for form in factor.forms:
        a = np.where(minus >= 0, form.g[minus], 0.0)
        b = np.where(plus >= 0, form.g[plus], 0.0)
        p, q = form.block[minus], form.block[plus]
        same = (p == q) & (minus >= 0) & (plus >= 0)
        cross = np.where(same, 2 * form.kappa[p] * a * b, 0.0)
        out += form.kappa[p] * a**2 + form.kappa[q] * b**2 - cross
    return np.maximum(out, 0.0)


def of_rows(factor: Factor, rows: Any) -> Floats:
    """Forms of the rows of a sparse matrix over the positions."""
    from scipy import sparse

    given = sparse.csr_array(rows)
    out = np.zeros(given.shape[0])
    for form in factor.forms:
        spread = sparse.csr_array(
            (form.g, form.block, np.arange(factor.n + 1)), shape=(factor.n, len(form.kappa))
        )
        sums = sparse.csr_array(given @ spread)
        out += np.asarray(sums.multiply(sums) @ form.kappa).ravel()
    return np.maximum(out, 0.0)


def of_all_ranges(factor: Factor) -> float:
    """Sum of the forms of all ranges of positions.

    Notes
    -----
    A range is a difference of two of the n + 1 running sums P_0..P_n, and the sum of (P_j - P_i)^2 over i < j is
    (n + 1) sum P^2 - (sum P)^2.

    Examples
    --------
    >>> from policygraph.mechanisms.strategy.factors import Tree
    >>> of_all_ranges(Tree.identity(3))
    10.0
    """
    total = 0.0
    for form in factor.forms:
        starts, ends = form.starts[:-1], form.starts[1:]
        running = np.cumsum(form.g)
        before = np.concatenate([[0.0], running])[starts]
        inside = running - before[form.block]
        whole = running[ends - 1] - before
        after = factor.n - ends
        squares = np.add.reduceat(inside**2, starts) + after * whole**2
        sums = np.add.reduceat(inside, starts) + after * whole
        total += _weighed(form, (factor.n + 1) * squares - sums**2)
    return total


def of_all_pairs(factor: Factor, zeros: int) -> float:
    """Sum of the forms of all differences of two among the positions and some positions that are known.

    Examples
    --------
    >>> from policygraph.mechanisms.strategy.factors import Tree
    >>> of_all_pairs(Tree.identity(2), 1)
    4.0
    """
    total = 0.0
    for form in factor.forms:
        starts = form.starts[:-1]
        squares = np.add.reduceat(form.g**2, starts)
        sums = np.add.reduceat(form.g, starts)
        total += _weighed(form, (factor.n + zeros) * squares - sums**2)
    return total


def of_all_differences(factor: Factor, points: Any) -> float:
    """Sum of the forms of all differences of two rows of a sparse matrix."""
    from scipy import sparse

    given = sparse.csr_array(points)
    total = 0.0
    for form in factor.forms:
        spread = sparse.csr_array(
            (form.g, form.block, np.arange(factor.n + 1)), shape=(factor.n, len(form.kappa))
        )
        values = sparse.csc_array(given @ spread)
        squares = np.asarray(values.multiply(values).sum(axis=0)).ravel()
        total += _weighed(form, given.shape[0] * squares - np.asarray(values.sum(axis=0)).ravel() ** 2)
    return total


def _weighed(form: Form, values: Floats) -> float:
    return float(form.kappa @ values)
