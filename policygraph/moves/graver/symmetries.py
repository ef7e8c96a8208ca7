"""Permutations of the cells that keep the kernel of a constraint matrix: finding, checking and listing them.

Symmetries only ever make a search shorter. Each one is checked exactly before it is used, so a search that overlooks
some of them costs time and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import Effort
from policygraph.errors import InputError
from policygraph.linalg import (
    PRIME,
    Objects,
    as_integer_matrix,
    independent_rows,
    modular_echelon,
    pivoted_kernel,
)

__all__ = ["check_symmetries", "find_symmetries", "list_group"]

Longs = npt.NDArray[np.int64]

SPARSE = 100_000
"""A kernel with more entries is held without its zeros, which are most of them."""
NODE_LIMIT = 2_000
"""Assignments tried for one image of one cell before that image is given up."""


def check_symmetries(matrix: npt.ArrayLike, permutations: npt.ArrayLike) -> Longs:
    """Return the permutations as an array after checking that each keeps the row space.

    Parameters
    ----------
    matrix
        m x n integers.
    permutations
        One permutation of the n cells per row; entry x is the image of cell x.

    Returns
    -------
    numpy.ndarray
        The same permutations, dtype int64.

    Raises
    ------
    InputError
        If a row is no permutation, or does not keep the row space of the matrix.

    Examples
    --------
    >>> check_symmetries([[1, 1, 2]], [[1, 0, 2]]).tolist()
    [[1, 0, 2]]
    """
    rows = as_integer_matrix(matrix)
    n = rows.shape[1]
    given = np.asarray(permutations, dtype=np.int64)
    if given.size == 0:
        return np.zeros((0, n), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != n or np.any(np.sort(given, axis=1) != np.arange(n)):
        raise InputError(
            f"symmetries of shape {given.shape}: expected permutations of {n} cells, one per row.",
            code="graver.symmetries",
        )
    rows, kernel = _narrow(rows, pivoted_kernel(rows)[0])
    for permutation in given:
        if not _keeps(rows, kernel, permutation):
            raise InputError(
                f"symmetry {permutation.tolist()}: it does not keep the row space of the matrix. Leave it out.",
                code="graver.symmetries",
            )
    return given


def _keeps(rows: Any, kernel: Any, permutation: Longs) -> bool:
    """Tell whether the permuted rows vanish on the kernel, that is, span the same space."""
    return not np.any(rows[:, permutation] @ kernel.T != 0)


def _narrow(rows: Objects, kernel: Objects) -> tuple[Any, Any]:
    """The same numbers in 64 bits where no sum of products can leave them, which is a hundred times faster; a large kernel without its zeros."""
    tops = [max((abs(v) for v in part.reshape(-1).tolist()), default=0) for part in (rows, kernel)]
    if tops[0] * tops[1] * max(1, rows.shape[1]) >= 2**62 or max(tops) >= 2**62:
        return rows, kernel
    small, vectors = rows.astype(np.int64), kernel.astype(np.int64)
    if vectors.size < SPARSE:
        return small, vectors
    from scipy import sparse

    return small, sparse.csr_array(vectors)


def find_symmetries(matrix: npt.ArrayLike) -> Longs:
    """Return permutations of the cells that generate a group of symmetries of the kernel.

    Parameters
    ----------
    matrix
        m x n integers.

    Returns
    -------
    numpy.ndarray
        One permutation per row; none when there is no symmetry but the identity, or none was found.

    Examples
    --------
    >>> find_symmetries([[1, 1, 2]]).tolist()
    [[1, 0, 2]]

    Notes
    -----
    A permutation keeps the row space if and only if it keeps the orthogonal projector on it, entry by entry. The
    projector is computed modulo a prime; permutations that keep it are found by assigning images cell by cell, with
    the cells before i fixed, for i = n, ..., 1 (a stabiliser chain), and each is then checked exactly.
    """
    rows = as_integer_matrix(matrix)
    rows = rows[independent_rows(rows)]
    n = rows.shape[1]
    colours = _projector(rows)
    if colours is None:
        return np.zeros((0, n), dtype=np.int64)
    rows, kernel = _narrow(rows, pivoted_kernel(rows)[0])
    profile = np.array([hash(tuple(sorted(line))) for line in colours.tolist()], dtype=np.int64)
    found: list[Longs] = []
    for fixed in range(n - 1, -1, -1):
        orbit = _orbit(fixed, [p for p in found if np.array_equal(p[:fixed], np.arange(fixed))])
        for image in range(fixed + 1, n):
            if image in orbit or profile[image] != profile[fixed]:
                continue
            permutation = _extend(colours, profile, fixed, image)
            if permutation is not None and _keeps(rows, kernel, permutation):
                found.append(permutation)
                orbit = _orbit(fixed, [p for p in found if np.array_equal(p[:fixed], np.arange(fixed))])
    return np.array(found, dtype=np.int64).reshape(-1, n)


def _projector(rows: Objects) -> Longs | None:
    """Return A^T (A A^T)^-1 A modulo the prime, or None when A A^T is singular there."""
    m = rows.shape[0]
    small: Longs = (rows % PRIME).astype(np.int64)
    left = np.zeros((m, m), dtype=np.int64)
    for k in range(small.shape[1]):
        left = (left + small[:, k : k + 1] * small[:, k]) % PRIME
    _, pivots, (solved,) = modular_echelon(left, small)
    if len(pivots) < m:
        return None
    result = np.zeros((small.shape[1], small.shape[1]), dtype=np.int64)
    for i in range(m):
        result = (result + small[i][:, None] * solved[i]) % PRIME
    return result


def _orbit(cell: int, generators: list[Longs]) -> set[int]:
    """Return the cells that the generators reach from a cell."""
    reached = {cell}
    queue = [cell]
    while queue:
        here = queue.pop()
        for generator in generators:
            image = int(generator[here])
            if image not in reached:
                reached.add(image)
                queue.append(image)
    return reached


def _extend(colours: Longs, profile: Longs, fixed: int, image: int) -> Longs | None:
    """Find a permutation that fixes the cells before ``fixed``, sends ``fixed`` to ``image`` and keeps the colours."""
    n = colours.shape[0]
    images = [*range(fixed), image]
    if profile[fixed] != profile[image] or np.any(colours[: fixed + 1, fixed] != colours[images, image]):
        return None
    choices: list[list[int]] = []
    nodes = 0
    while len(images) < n:
        here = len(images)
        if len(choices) < here - fixed:
            # Images of this cell that agree with all cells assigned so far.
            agree = np.all(colours[:, images] == colours[here, :here], axis=1) & (profile == profile[here])
            agree[images] = False
            agree &= np.diagonal(colours) == colours[here, here]
            choices.append(np.flatnonzero(agree).tolist()[::-1])
        if choices[-1]:
            images.append(choices[-1].pop())
            nodes += 1
            if nodes > NODE_LIMIT:
                return None
        else:
            choices.pop()
            if len(images) == fixed + 1:
                return None
            images.pop()
    return np.array(images, dtype=np.int64)


def list_group(generators: Longs, limit: int, effort: Effort | None = None) -> Longs:
    """List the group that permutations generate, or a subgroup when the whole one is too large.

    Parameters
    ----------
    generators
        Permutations of n cells, one per row.
    limit
        The most elements that are listed.
    effort
        Work after which only the identity is returned; None for no end.

    Returns
    -------
    numpy.ndarray
        All elements of the group; when there are more than ``limit``, of the subgroup that the generators fixing
        more and more of the first cells generate.

    Examples
    --------
    >>> list_group(np.array([[1, 0, 2], [0, 2, 1]]), 10).shape
    (6, 3)
    """
    n, work = generators.shape[1], Effort.of(effort)
    tried = len(generators) + 1
    for fixed in range(n + 1):
        kept = [p for p in generators if np.array_equal(p[:fixed], np.arange(fixed))]
        if len(kept) == tried:
            # fewer and fewer are kept, so that these are the ones that were too many
            continue
        tried = len(kept)
        elements = _closure(kept, n, limit, work)
        if elements is not None:
            return elements
    return np.arange(n, dtype=np.int64)[None, :]


def _closure(generators: list[Longs], n: int, limit: int, effort: Effort) -> Longs | None:
    """List all products of the permutations, or None when there are more than the limit or the effort ends."""
    start = np.arange(n, dtype=np.int64)
    known = {start.tobytes()}
    elements = [start]
    for element in elements:
        effort.spend(2 * len(generators))
        if generators and effort.done:
            return None
        for generator in generators:
            product = generator[element]
            key = product.tobytes()
            if key not in known:
                if len(known) >= limit:
                    return None
                known.add(key)
                elements.append(product)
    return np.array(elements, dtype=np.int64)
