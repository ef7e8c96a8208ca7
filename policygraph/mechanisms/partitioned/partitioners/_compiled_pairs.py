"""Compiled deviations of unions of two buckets; imported only when buckets have several cells."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def union_deviations(values: Ints, starts: Ints, out: Ints) -> None:
    """Fill ``out[a, b]`` with the deviation of the union of two buckets, and ``out[a, a]`` with that of one.

    ``values[starts[a]:starts[a + 1]]`` are the counts of a bucket in ascending order.
    """
    n = starts.size - 1
    for a in range(n):
        for b in range(a, n):
            i, j = starts[a], starts[b]
            end_i, end_j = starts[a + 1], starts[b + 1]
            if a == b:
                j = end_j
            size = (end_i - i) + (end_j - j)
            half = size // 2
            found = np.int64(0)
            for k in range(size):
                if j == end_j or (i < end_i and values[i] <= values[j]):
                    value = values[i]
                    i += 1
                else:
                    value = values[j]
                    j += 1
                if k < half:
                    found -= value
                elif k >= size - half:
                    found += value
            out[a, b] = found
            out[b, a] = found
