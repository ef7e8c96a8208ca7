"""Compiled loops of consistent histograms; imported when first used, since numba compiles them."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.signedinteger]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def pool_lines(lines: Floats) -> Floats:
    """Nearest non-decreasing values of each row, by pooling adjacent violators; linear time."""
    rows, n = lines.shape
    out = np.empty((rows, n), dtype=np.float64)
    mean = np.empty(n, dtype=np.float64)
    size = np.empty(n, dtype=np.int64)
    for row in range(rows):
        pools = 0
        for i in range(n):
            mean[pools] = lines[row, i]
            size[pools] = 1
            pools += 1
            while pools > 1 and mean[pools - 2] >= mean[pools - 1]:
                total = size[pools - 2] + size[pools - 1]
                mean[pools - 2] = (
                    size[pools - 2] * mean[pools - 2] + size[pools - 1] * mean[pools - 1]
                ) / total
                size[pools - 2] = total
                pools -= 1
        at = 0
        for pool in range(pools):
            for _ in range(size[pool]):
                out[row, at] = mean[pool]
                at += 1
    return out


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def relaxed(
    cells: Floats, starts: Places, others: Places, entries: Floats, sweeps: int, factor: float
) -> Floats:
    """Potentials >= 0 after some projected sweeps of successive over-relaxation on the rows of a Laplacian, forth and back."""
    n = cells.size
    found = np.zeros(n, dtype=np.float64)
    for sweep in range(sweeps):
        for k in range(n):
            i = k if sweep % 2 == 0 else n - 1 - k
            right, diagonal = -cells[i], 0.0
            for e in range(starts[i], starts[i + 1]):
                if others[e] == i:
                    diagonal = entries[e]
                else:
                    right -= entries[e] * found[others[e]]
            if diagonal > 0.0:
                found[i] = max(0.0, found[i] + factor * (right / diagonal - found[i]))
    return found
