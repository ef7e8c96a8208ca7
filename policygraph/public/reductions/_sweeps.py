"""Compiled sweeps over forests; imported only when a forest is no line. Owns them; imports numpy and numba only."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["children_apart", "forest_solve", "preorder", "subtree_sums", "tree_distances"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def subtree_sums(values: Ints, order: Ints, above: Ints, out: Ints) -> None:
    """Fill ``out`` with the sum of the values below each cell; ``above[i]`` is the place of the parent of ``order[i]``."""
    n = order.size
    work = np.empty(n, dtype=np.int64)
    for i in range(n):
        work[i] = values[order[i]]
    for i in range(n - 1, -1, -1):
        if above[i] >= 0:
            work[above[i]] += work[i]
    for i in range(n):
        out[order[i]] = work[i]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def children_apart(sums: Ints, order: Ints, above: Ints, out: Ints) -> None:
    """Undo :func:`subtree_sums`: what a cell holds besides its children."""
    n = order.size
    work = np.zeros(n, dtype=np.int64)
    for i in range(n):
        value = sums[order[i]]
        work[i] += value
        if above[i] >= 0:
            work[above[i]] -= value
    for i in range(n):
        out[order[i]] = work[i]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def preorder(order: Ints, above: Ints) -> Ints:
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
def tree_distances(u: Ints, v: Ints, parent: Ints, depth: Ints) -> Ints:
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
def forest_solve(right: Floats, diagonal: Floats, above: Ints, inside: Bools) -> Floats:
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
