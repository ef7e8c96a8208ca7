"""Compiled search for the components of a long list of edges; imported only for one."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["joined"]

Cells = npt.NDArray[np.int64]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def joined(n: int, u: Cells, v: Cells) -> tuple[int, Cells]:
    """Return the number of components, and that of each vertex in the order of their smallest members.

    The smaller of two roots becomes the root of both, so that a root is the smallest member of its component.
    """
    root = np.arange(n)
    count = n
    for i in range(u.size):
        a, b = u[i], v[i]
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        if a != b:
            count -= 1
            if a < b:
                root[b] = a
            else:
                root[a] = b
    label = np.empty(n, dtype=np.int64)
    number = 0
    for w in range(n):
        # What a vertex points to is smaller and of its component, so that it has its label by now.
        if root[w] == w:
            label[w] = number
            number += 1
        else:
            label[w] = label[root[w]]
    return count, label
