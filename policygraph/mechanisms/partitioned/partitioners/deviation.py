"""How far the counts of a bucket are from being equal. Owns :func:`aligned_deviations` and :func:`sliding_deviations`.

The measure is the least sum of distances from one number, which the median attains: the sum of the upper half minus that
of the lower half. One record more or less changes it by at most 1, and it is a whole number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["aligned_deviations", "sliding_deviations"]

Ints = npt.NDArray[np.int64]


def aligned_deviations(counts: Ints, length: int) -> Ints:
    """Deviation of each full run of ``length`` cells that starts at a multiple of ``length``.

    Examples
    --------
    >>> aligned_deviations(np.array([5, 5, 1, 9, 3]), 2).tolist()
    [0, 8]
    """
    full = counts.size // length
    if length == 1:
        return np.zeros(full, dtype=np.int64)
    rows = np.sort(counts[: full * length].reshape(full, length), axis=1)
    half = length // 2
    apart: Ints = rows[:, length - half :].sum(axis=1) - rows[:, :half].sum(axis=1)
    return apart


def sliding_deviations(counts: Ints, lengths: list[int]) -> list[Ints]:
    """Deviation of every run of each length, by its first cell.

    Examples
    --------
    >>> [found.tolist() for found in sliding_deviations(np.array([5, 5, 1, 9]), [1, 3])]
    [[0, 0, 0, 0], [4, 8]]

    Notes
    -----
    Each length takes one sweep of the window over the cells, in which a step costs a few words of a set of bits.
    """
    from policygraph.mechanisms.partitioned.partitioners._compiled_intervals import deviations

    order = np.argsort(counts, kind="stable")
    rank = np.empty(counts.size, dtype=np.int64)
    rank[order] = np.arange(counts.size)
    ascending = np.ascontiguousarray(counts[order])
    out = []
    for length in lengths:
        found = np.zeros(counts.size - length + 1, dtype=np.int64)
        if length > 1:
            deviations(rank, ascending, length, found)
        out.append(found)
    return out
