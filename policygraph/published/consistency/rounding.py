"""Whole numbers that keep sums. Owns :func:`round_in_order`; imports numpy only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["round_in_order"]

Ints = npt.NDArray[np.int64]


def round_in_order(values: Any, noisy: Any, order: Ints, pieces: Ints | None = None) -> Ints:
    """Round non-negative numbers so that every sum over a stretch of the order is off by less than 1.

    Parameters
    ----------
    values
        Numbers >= 0, up to the errors of a solver.
    noisy
        Whole numbers with the same sum over each piece, where pieces are given.
    order
        All positions, in the order in which sums are kept.
    pieces
        For each position of the order the number of its piece; the sums of these are kept exactly when they are
        non-negative.

    Notes
    -----
    The running sums are rounded to the nearest whole number, which keeps them non-decreasing, and their differences are
    the result. A subtree is a stretch of the post-order, so that its sum is off by less than 1 as well.

    Examples
    --------
    >>> round_in_order([0.4, 0.4, 0.4, 1.8], [0, 1, 0, 2], np.arange(4), np.zeros(4, dtype=np.int64)).tolist()
    [0, 1, 0, 2]
    """
    laid = np.maximum(np.asarray(values, dtype=np.float64)[order], 0.0)
    if pieces is None:
        running = np.floor(np.cumsum(laid) + 0.5).astype(np.int64)
    else:
        last = np.flatnonzero(np.append(np.diff(pieces) != 0, True))
        first = np.concatenate([[0], last[:-1] + 1])
        known = np.add.reduceat(np.asarray(noisy, dtype=np.int64)[order], first)
        found = np.add.reduceat(laid, first)
        # A total that got noise may be below zero; its piece then keeps what the solver found.
        kept = np.where(
            np.abs(known - found) < 0.5 + 1e-9 * np.abs(found), known, np.floor(found + 0.5)
        ).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(kept)[:-1]])
        sizes = last - first + 1
        inside = np.cumsum(laid) - np.repeat(np.cumsum(found) - found, sizes)
        running = np.clip(np.floor(inside + 0.5), 0, np.repeat(kept, sizes)).astype(np.int64)
        running[last] = kept
        running = np.maximum.accumulate(running + np.repeat(starts, sizes))
    out = np.empty(len(laid), dtype=np.int64)
    out[order] = np.diff(running, prepend=0)
    return out
