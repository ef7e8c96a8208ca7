"""Cubes by explicit matrices: cuboids as rows, least squares by pseudo-inverses, choices by trying all of them."""

from __future__ import annotations

from itertools import chain, combinations
from math import prod

import numpy as np


def cuboid_matrix(shape, mask):
    """Rows that sum the base cells into the cells of a cuboid."""
    made = np.ones((1, 1))
    for axis, n in enumerate(shape):
        made = np.kron(made, np.eye(n) if mask >> axis & 1 else np.ones((1, n)))
    return made


def interaction_matrix(shape, mask):
    """Integer contrasts on the attributes of a set, sums over the others."""
    made = np.ones((1, 1))
    for axis, n in enumerate(shape):
        if not mask >> axis & 1:
            part = np.ones((1, n))
        elif n == 2:
            part = np.array([[1.0, -1.0]])
        else:
            part = n * np.eye(n) - 1
        made = np.kron(made, part)
    return made


def stacked(shape, measured, make=cuboid_matrix):
    """All measured rows, divided by nothing: weight times row."""
    return np.concatenate([weight * make(shape, mask) for mask, weight in measured.items()])


def kernel(shape, known):
    """An orthonormal basis of the changes of the base that keep the known cuboids."""
    if not known:
        return np.eye(prod(shape))
    rows = np.concatenate([cuboid_matrix(shape, mask) for mask in known])
    _, sizes, vectors = np.linalg.svd(rows)
    return vectors[int((sizes > 1e-9).sum()) :].T


def inverse(matrix):
    """Pseudo-inverse; entries that are rounding errors count as 0."""
    clean = np.where(np.abs(matrix) < 1e-9, 0.0, matrix)
    return np.linalg.pinv(clean, rcond=1e-9)


def least_squares(shape, measured, answers, known, wanted, make=cuboid_matrix):
    """Tables of wanted cuboids from the base that fits the noisy answers best among those with the known tables.

    ``measured`` maps a mask to its weight, ``answers`` lists the noisy numbers in that order, ``known`` maps a mask to a table.
    """
    a = stacked(shape, measured, make) if measured else np.zeros((0, prod(shape)))
    y = np.concatenate([np.ravel(x) for x in answers]) if measured else np.zeros(0)
    start, free = np.zeros(prod(shape)), kernel(shape, known)
    if known:
        k = np.concatenate([cuboid_matrix(shape, mask) for mask in known])
        values = np.concatenate([np.ravel(table) for table in known.values()]).astype(float)
        start = np.linalg.pinv(k) @ values
    x = start + free @ inverse(a @ free) @ (y - a @ start)
    return {mask: cuboid_matrix(shape, mask) @ x for mask in wanted}


def variances(shape, measured, known, wanted, make=cuboid_matrix):
    """Variance of the cells of wanted cuboids after that least squares, for noise of variance 1."""
    a = stacked(shape, measured, make) if measured else np.zeros((0, prod(shape)))
    free = kernel(shape, known)
    seen = a @ free
    estimate = free @ inverse(seen)
    out = {}
    for mask in wanted:
        rows = cuboid_matrix(shape, mask)
        estimable = np.allclose(rows @ free @ (np.eye(free.shape[1]) - inverse(seen) @ seen), 0, atol=1e-8)
        out[mask] = np.square(rows @ estimate).sum(axis=1) if estimable else np.full(len(rows), np.inf)
    return out


def plain_variance(shape, measured, mask):
    """Least variance of a cell as a sum of cells of one measured cuboid."""
    found = [
        prod(n for axis, n in enumerate(shape) if (c & ~mask) >> axis & 1) / weight**2
        for c, weight in measured.items()
        if mask & ~c == 0
    ]
    return min(found, default=np.inf)


def choices(masks):
    """All non-empty sets of cuboids."""
    return chain.from_iterable(combinations(masks, k) for k in range(1, len(masks) + 1))


def sensitivity(chosen, changes):
    """Equal weights: the largest number of changed cells; a change is a set of attributes, or None for a new record."""
    return max(
        len(chosen) if change is None else 2 * sum(1 for c in chosen if c & change) for change in changes
    )


def best_maximum(shape, published, candidates, changes):
    """Least maximal variance over all choices of equal weights, in units of 2 / epsilon^2."""
    return min(
        sensitivity(chosen, changes) ** 2
        * max(plain_variance(shape, dict.fromkeys(chosen, 1), mask) for mask in published)
        for chosen in choices(candidates)
    )


def best_coverage(shape, published, candidates, changes, limit):
    """Most published cuboids with a variance of at most a limit, all of them computable."""
    best = 0
    for chosen in choices(candidates):
        noise = sensitivity(chosen, changes) ** 2
        found = [noise * plain_variance(shape, dict.fromkeys(chosen, 1), mask) for mask in published]
        if np.all(np.isfinite(found)):
            best = max(best, sum(1 for v in found if v <= limit * (1 + 1e-9)))
    return best
