"""Compiled sweeps over forests; imported only when a forest is no line. Owns them."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.signedinteger]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def by_height(order: Places, parent: Places) -> Places:
    """All cells by their height above the leaves, cells of one height ascending; ``order`` has parents first.

    The sweep from the leaves waits for memory. In this order it reads the children, most of which are leaves, almost in
    the order in which they lie; only their parents are scattered.
    """
    n = order.size
    height = np.zeros(n, dtype=order.dtype)
    most = 0
    for i in range(n - 1, -1, -1):
        v = order[i]
        p = parent[v]
        if p >= 0 and height[p] <= height[v]:
            height[p] = height[v] + 1
            most = max(most, height[v] + 1)
    start = np.zeros(most + 2, dtype=np.int64)
    for v in range(n):
        start[height[v] + 1] += 1
    for h in range(most):
        start[h + 1] += start[h]
    out = np.empty(n, dtype=order.dtype)
    for v in range(n):
        out[start[height[v]]] = v
        start[height[v]] += 1
    return out


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def subtree_sums(out: Ints, order: Places, parents: Places) -> None:
    """Replace the value of each cell by the sum below it.

    ``order`` has children first, and ``parents[i]`` is the parent of ``order[i]``, -1 for a root.
    """
    for i in range(order.size):
        if parents[i] >= 0:
            out[parents[i]] += out[order[i]]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def children_apart(sums: Ints, parent: Places, out: Ints) -> None:
    """Undo :func:`subtree_sums`: take from ``out``, a copy of the sums, those of the children of each cell."""
    for v in range(sums.size):
        if parent[v] >= 0:
            out[parent[v]] -= sums[v]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def preorder(order: Places, above: Places) -> Ints:
    """Place of ``order[i]`` in an order in which every subtree is one piece and a parent comes last."""
    n = order.size
    size = np.ones(n, dtype=np.int64)
    for i in range(n - 1, -1, -1):
        if above[i] >= 0:
            size[above[i]] += size[i]
    place = np.empty(n, dtype=np.int64)
    used = np.zeros(n, dtype=np.int64)
    start = 0
    for i in range(n):
        p = above[i]
        if p < 0:
            place[i] = start
            start += size[i]
        else:
            place[i] = place[p] + 1 + used[p]
            used[p] += size[i]
    return n - 1 - place


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tree_distances(u: Ints, v: Ints, parent: Places, depth: Ints) -> Ints:
    """Edges on the path between two cells of a forest whose roots (parent -1) hang on one vertex of depth 0."""
    out = np.empty(u.size, dtype=np.int64)
    for i in range(u.size):
        a, b, steps = u[i], v[i], 0
        while a != b:
            if a >= 0 and (b < 0 or depth[a] >= depth[b]):
                a = parent[a]
            else:
                b = parent[b]
            steps += 1
        out[i] = steps
    return out


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def forest_solve(right: Floats, diagonal: Floats, above: Places, inside: Bools) -> Floats:
    """Solve L m = b on some cells of a forest, m = 0 elsewhere: elimination from the leaves, then back from the roots."""
    n = right.size
    pivot = diagonal.copy()
    value = np.zeros(n, dtype=np.float64)
    for i in range(n):
        if inside[i]:
            value[i] = right[i]
    for i in range(n - 1, -1, -1):
        p = above[i]
        if inside[i] and p >= 0 and inside[p]:
            pivot[p] -= 1.0 / pivot[i]
            value[p] += value[i] / pivot[i]
    for i in range(n):
        if inside[i]:
            p = above[i]
            if p >= 0 and inside[p]:
                value[i] += value[p]
            value[i] /= pivot[i]
    return value
