"""Upper bounds on the size of a minimal move that need no list of moves.

Owns the determinant and box bounds of any matrix, and the swap problem, whose longest sequence bounds the moves of
every table with the same classes, however many classes there are. Proofs:
``docs/explanation/proofs/graver.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np
import numpy.typing as npt

from policygraph.linalg import Objects, as_integer_matrix, independent_rows

__all__ = ["SwapProblem", "cheap_bound", "swap_problem"]

SWAP_LIMIT = 400
"""The most distinct swaps of a swap problem that is worth building."""

PAIR_LIMIT = 5_000_000
"""The most matrix entries that are looked at to gather swaps."""


def cheap_bound(matrix: npt.ArrayLike, capacity: int | None = None) -> int:
    """Return a number that the L1 norm of no minimal move exceeds.

    Parameters
    ----------
    matrix
        m x n integers.
    capacity
        Largest absolute entry of a move, or None.

    Returns
    -------
    int
        The smallest of the determinant bound, the box bound and, with a capacity, capacity times n. Always valid,
        often far too large.

    Examples
    --------
    >>> cheap_bound([[1, 1, 1]])
    3
    >>> cheap_bound([[1, 0], [0, 1]])
    0

    Notes
    -----
    With r the rank and d = n - r: a minimal move is a circuit, or a conformal combination of at most d circuits with
    coefficients below 1; a circuit has at most r + 1 entries, each at most a minor of order r, which Hadamard's
    inequality bounds. Second, the columns that a move uses can be ordered so that partial sums stay in a box of
    half-width r times the largest entry of each row (Steinitz); minimality makes partial sums distinct.
    """
    rows = as_integer_matrix(matrix)
    rows = rows[independent_rows(rows)]
    r, n = rows.shape
    d = n - r
    if d == 0:
        return 0
    if r == 0:
        return 1
    squares = rows * rows
    by_column = 1
    for value in sorted((int(v) for v in squares.sum(axis=0)), reverse=True)[:r]:
        by_column *= max(1, value)
    by_row = 1
    box = 1
    for row in squares.tolist():
        by_row *= max(1, sum(sorted(row, reverse=True)[:r]))
        box *= 2 * r * isqrt(max(row)) + 1
    minor = isqrt(min(by_column, by_row))
    bounds = [d * (r + 1) * minor, box]
    if capacity is not None:
        bounds.append(capacity * n)
    return int(min(bounds))


@dataclass(frozen=True)
class SwapProblem:
    """The swaps inside classes of cells whose totals are known, as columns of a matrix of their own.

    Parameters
    ----------
    matrix
        One column for each swap, up to sign.
    places
        For each column, the pairs (x, y) of cells, one or more for each class, whose swap x -> y it is.
    owner
        For each cell, the index of its class.
    """

    matrix: Objects
    places: tuple[tuple[tuple[int, int], ...], ...]
    owner: tuple[int, ...]


def swap_problem(matrix: npt.ArrayLike) -> SwapProblem | None:
    """Return the swap problem with the fewest distinct swaps, or None when no rows of the matrix form a partition.

    Parameters
    ----------
    matrix
        m x n integers.

    Returns
    -------
    SwapProblem or None
        None as well when there are too many distinct swaps for the problem to be of use.

    Examples
    --------
    A 2 x 2 table with both margins: the only swap changes the row within a column, or back.

    >>> swap_problem([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]).matrix.tolist()
    [[0], [0], [-1], [1]]

    Notes
    -----
    If the total of every class is known, a move takes as many records out of a class as it puts in; pairing them
    gives half as many swaps as the L1 norm, with swap vectors that sum to zero. A part of the swaps that sums to zero
    is a smaller move, so in a minimal move there is none: twice the largest L1 norm of a minimal move of the swap
    matrix bounds that of the given one.
    """
    rows = as_integer_matrix(matrix)
    best: SwapProblem | None = None
    for owner in _partitions(rows):
        problem = _swaps(rows, owner)
        if problem is not None and (best is None or problem.matrix.shape[1] < best.matrix.shape[1]):
            best = problem
    return best


def _partitions(rows: Objects) -> list[tuple[int, ...]]:
    """List partitions of the cells into supports of 0/1 rows, found greedily from each row on."""
    n = rows.shape[1]
    supports = [np.flatnonzero(row != 0) for row in rows]
    plain = [k for k, row in enumerate(rows) if supports[k].size and np.all((row == 0) | (row == 1))]
    found: set[tuple[int, ...]] = set()
    for first in plain:
        owner = np.full(n, -1, dtype=np.int64)
        for label, k in enumerate([first, *(k for k in plain if k > first)]):
            if np.all(owner[supports[k]] < 0):
                owner[supports[k]] = label
        if np.all(owner >= 0):
            _, index = np.unique(owner, return_inverse=True)
            found.add(tuple(int(i) for i in index))
    return sorted(found, key=lambda owner: (-max(owner), owner))[:8]


def _swaps(rows: Objects, owner: tuple[int, ...]) -> SwapProblem | None:
    """Gather the swaps of a partition, or None when there are too many."""
    cells: dict[int, list[int]] = {}
    for cell, label in enumerate(owner):
        cells.setdefault(label, []).append(cell)
    columns = [tuple(column) for column in rows.T.tolist()]
    found: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    if sum(len(members) ** 2 for members in cells.values()) * max(1, rows.shape[0]) > PAIR_LIMIT:
        return None
    for members in cells.values():
        for x in members:
            for y in members:
                vector = tuple(b - a for a, b in zip(columns[x], columns[y]))
                first = next((value for value in vector if value), 0)
                if first < 0:
                    found.setdefault(vector, []).append((x, y))
        if len(found) > SWAP_LIMIT:
            return None
    ordered = sorted(found)
    swaps = np.zeros((rows.shape[0], len(ordered)), dtype=object)
    for index, vector in enumerate(ordered):
        swaps[:, index] = vector
    return SwapProblem(swaps, tuple(tuple(found[vector]) for vector in ordered), owner)
