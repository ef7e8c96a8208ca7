"""Strategy matrices written out: rows by recursion, the inverse by singular values, the sensitivity by listing moves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def pieces(low, high, branching):
    """The children of a range of positions: as even as whole numbers allow."""
    many = min(branching, high - low)
    ends = [low + (high - low) * i // many for i in range(many + 1)]
    return list(pairwise(ends))


def tree_rows(n, branching, weights):
    """Sums over the nodes of a tree, level by level; a single cell is a row once, with the last weight."""
    rows = []
    level = [(0, n)]
    for weight in weights[:-1]:
        below = []
        for low, high in level:
            if high - low < 2:
                continue
            if weight:
                rows.append([weight * (low <= i < high) for i in range(n)])
            below += pieces(low, high, branching)
        level = below
    rows += [[weights[-1] * (i == j) for i in range(n)] for j in range(n)]
    return np.array(rows, dtype=np.int64)


def haar_rows(n, weights):
    """The total, then left minus right half of every node of a binary tree."""
    rows = [[weights[0]] * n]
    level = [(0, n)]
    for weight in weights[1:]:
        below = []
        for low, high in level:
            if high - low < 2:
                continue
            (_, middle), _ = pieces(low, high, 2)
            rows.append([weight * ((low <= i < middle) - (middle <= i < high)) for i in range(n)])
            below += [(low, middle), (middle, high)]
        level = below
    return np.array(rows, dtype=np.int64)


def prefix_rows(n, free):
    """The first prefix sums of n cells."""
    return np.tril(np.ones((n, n), dtype=np.int64))[:free]


def variances(workload, strategy, fixed=None):
    """Variance of each answer of W A^+ per unit of variance of the measurements; fixed rows are measured without noise.

    With exact rows F the best linear unbiased answer is found by giving them a weight without limit: it is computed here by
    restricting to the kernel of F.
    """
    w = np.asarray(workload, dtype=np.float64)
    a = np.asarray(strategy, dtype=np.float64)
    if fixed is not None and len(fixed):
        _, s, vt = np.linalg.svd(np.asarray(fixed, dtype=np.float64))
        kernel = vt[int((s > 1e-9).sum()) :].T
        w, a = w @ kernel, a @ kernel
    return ((w @ np.linalg.pinv(a)) ** 2).sum(axis=1)


def sensitivity(strategy, edges, lone, norm):
    """Largest norm of a column difference along an edge, or of a column at a cell joined to bottom."""
    columns = [strategy[:, u] - strategy[:, v] for u, v in edges] + [strategy[:, v] for v in lone]
    if norm == "l1":
        return max(int(np.abs(c).sum()) for c in columns)
    return max(int((c * c).sum()) for c in columns)
