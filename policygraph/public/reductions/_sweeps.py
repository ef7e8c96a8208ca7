"""Compiled sweeps over forests; imported only when a forest is no line. Owns them; imports numpy and numba only."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["children_apart", "forest_solve", "preorder", "subtree_sums", "tree_distances"]

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.signedinteger]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def subtree_sums(out: Ints, order: Places, parents: Places) -> None:
    """Replace the value of each cell by the sum below it; ``parents[i]`` is the parent of ``order[i]``, -1 for a root.

    Siblings follow each other in breadth-first order, so that a parent is fetched once for all of them. The array comes
    from numpy, which asks for large memory pages; the sweep waits for memory and for nothing else.
    """
    i = order.size - 1
    while i >= 0:
        parent = parents[i]
        total = 0
        while i >= 0 and parents[i] == parent:
            total += out[order[i]]
            i -= 1
        if parent >= 0:
            out[parent] += total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def children_apart(sums: Ints, parent: Places, out: Ints) -> None:
    """Undo :func:`subtree_sums`: take from ``out``, a copy of the sums, those of the children of each cell."""
    for v in range(sums.size):
        if parent[v] >= 0:
            out[parent[v]] -= sums[v]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
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


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
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


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
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
