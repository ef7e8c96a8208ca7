"""Whole numbers that keep sums. Owns :func:`round_in_order`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["round_in_order"]

Ints = npt.NDArray[np.int64]


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
