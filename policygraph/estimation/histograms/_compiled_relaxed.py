"""Compiled sweeps towards non-negative cells; imported only for large graphs."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["relaxed"]

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.signedinteger]


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
