"""The minimal moves (Graver basis) of any integer constraint matrix.

Start here: ``graver_basis`` lists all minimal moves. ``graver_lift`` holds the search, ``graver_minimal`` tests and
decomposes single moves without a basis, ``linalg`` has the exact linear algebra.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb, prod

import numpy as np
import numpy.typing as npt

from policygraph.effort import Effort
from policygraph.errors import InputError
from policygraph.linalg import (
    ColumnClasses,
    Objects,
    as_integer_matrix,
    column_classes,
    elimination,
)
from policygraph.moves.graver.lift import IncompleteBasisError, Limits, graver_vectors
from policygraph.moves.graver.minimal import decompose, find_smaller, is_minimal
from policygraph.moves.graver.symmetries import check_symmetries, find_symmetries, list_group

__all__ = ["IncompleteBasisError", "decompose", "find_smaller", "graver_basis", "is_minimal"]

Longs = npt.NDArray[np.int64]

GROUP_LIMIT = 5_000
"""The most symmetries that are listed; of a larger group a subgroup is used."""

SEARCH_SYMMETRIES = (10, 100)
"""Symmetries are searched for when the merged problem has a number of columns in this range."""

MOST_ENTRIES = 1 << 25
"""Most moves times cells that are held as one list, a quarter of a gigabyte."""


def graver_basis(
    matrix: npt.ArrayLike,
    *,
    capacity: int | None = None,
    max_moves: int | None = None,
    effort: Effort | None = None,
    symmetries: npt.ArrayLike | None = None,
    max_norm: int | None = None,
) -> Longs:
    """List all minimal moves of a constraint matrix, one of each pair g, -g.

    Parameters
    ----------
    matrix
        m x n integers; a move is an integer vector g with ``matrix @ g = 0``. m may be 0 (shape ``(0, n)``).
    capacity
        Keep only the moves with all entries between -capacity and capacity; None keeps all.
    max_moves
        Give up when more moves than this have to be held.
    effort
        Give up when this work is spent; None for no end.
    symmetries
        Permutations of the cells that map the row space of the matrix to itself, one per row (``symmetries[k][x]``
        is the image of cell x); generators are enough. They only make the search faster; None looks for them.
    max_norm
        List only the minimal moves of at most this L1 norm, all of them.

    Returns
    -------
    numpy.ndarray
        One move per row, dtype int64, first non-zero entry positive, ordered by L1 norm, then by cells.

    Raises
    ------
    InputError
        If the matrix is not one of integers, or a symmetry does not keep its row space.
    IncompleteBasisError
        If a limit was reached; no partial list is given.

    Examples
    --------
    The four cells of a 2 x 2 table with both margins known:

    >>> graver_basis([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]).tolist()
    [[1, -1, -1, 1]]
    >>> graver_basis([[1, 2]], capacity=1).tolist()
    []

    Notes
    -----
    A non-zero g in the kernel is minimal when no other non-zero kernel vector h has the same signs and no larger
    entries. Cells with equal columns are merged first, the merged problem is solved by project and lift, and the
    merged moves are spread over the cells of each class. Proofs: ``docs/explanation/proofs/graver.md``.
    """
    rows = as_integer_matrix(matrix)
    limits = Limits(max_moves, Effort.of(effort), max_norm)
    merged, classes = merged_basis(rows, capacity, limits, symmetries)
    return _ordered(_spread(merged, classes, rows.shape[1], capacity, limits))


def merged_basis(
    rows: Objects, capacity: int | None, limits: Limits, symmetries: npt.ArrayLike | None
) -> tuple[Longs, ColumnClasses]:
    """List the minimal moves of the problem in which cells with equal or opposite columns are one cell.

    Parameters
    ----------
    rows
        The matrix, Python integers.
    capacity
        As for ``graver_basis``; a class of k cells takes k times as much.
    limits
        What the search may use up.
    symmetries
        As for ``graver_basis``.

    Returns
    -------
    moves : numpy.ndarray
        One merged move per row, in no particular order.
    classes : ColumnClasses
        The classes that its columns stand for.
    """
    if capacity is not None and capacity < 0:
        raise InputError(
            f"capacity={capacity}: expected an integer >= 0, or None for no limit.", code="graver.capacity"
        )
    classes = column_classes(rows)
    sizes = [len(cells) for cells in classes.members]
    upper = np.array(
        [-1 if capacity is None else min(capacity * size, 2**40) for size in sizes], dtype=np.int64
    )
    limits.spend(rows.size // 20)
    group = _class_group(rows, classes, symmetries, limits)
    return graver_vectors(classes.matrix, upper, group, limits), classes


def spread_first(move: Longs, classes: ColumnClasses, n: int, capacity: int | None) -> Longs:
    """Spread one merged move over the cells of its classes in one way, filling the first cells first.

    Parameters
    ----------
    move
        A merged move within ``capacity`` times the class sizes.
    classes
        The classes its entries stand for.
    n
        Number of cells.
    capacity
        Largest absolute entry of a cell, or None.

    Returns
    -------
    numpy.ndarray
        A minimal move of the cells with the same L1 norm.

    Examples
    --------
    >>> spread_first(np.array([2, -2]), column_classes([[1, 1, 2, 2], [1, 1, 1, 1]]), 4, 1).tolist()
    [1, 1, -1, -1]
    """
    spread = np.zeros(n, dtype=np.int64)
    for value, cells, signs in zip(move.tolist(), classes.members, classes.signs):
        rest = abs(value)
        for cell, sign in zip(cells, signs):
            share = rest if capacity is None else min(rest, capacity)
            spread[cell] = share * sign * (1 if value > 0 else -1)
            rest -= share
    return spread


def _ordered(moves: Longs) -> Longs:
    """Turn each move so that its first non-zero entry is positive; order by norm, then by cells."""
    if not moves.shape[0]:
        return moves
    first = moves[np.arange(moves.shape[0]), np.argmax(moves != 0, axis=1)]
    moves = moves * np.sign(first)[:, None]
    norms = np.abs(moves).sum(axis=1)
    return moves[np.lexsort([*(-moves.T[::-1]), norms])]


def _spread(merged: Longs, classes: ColumnClasses, n: int, capacity: int | None, limits: Limits) -> Longs:
    """Turn the moves of the merged problem into moves of the cells, and add those inside a class."""
    _check_room(merged, classes, n, capacity, limits)
    top = n if capacity is None else capacity
    blocks: list[Longs] = []
    if top >= 1:
        inside = []
        for cell in classes.zero:
            inside.append(_vector(n, [cell], [1]))
        for cells, signs in zip(classes.members, classes.signs):
            for i in range(len(cells)):
                for k in range(i):
                    inside.append(_vector(n, [cells[i], cells[k]], [signs[i], -signs[k]]))
        if inside:
            within = np.array(inside, dtype=np.int64)
            largest = 2 if limits.max_norm is None else limits.max_norm
            blocks.append(within[np.abs(within).sum(axis=1) <= largest])
    if all(len(cells) == 1 for cells in classes.members):
        spread = np.zeros((merged.shape[0], n), dtype=np.int64)
        spread[:, [cells[0] for cells in classes.members]] = merged * np.array(
            [signs[0] for signs in classes.signs], dtype=np.int64
        )
        blocks.append(spread)
    else:
        if capacity is None and limits.max_moves is not None:
            limits.check(sum(_spread_count(move, classes) for move in merged.tolist()))
        held = 0
        for move in merged:
            block = _spread_one(move, classes, n, capacity)
            held += block.shape[0]
            limits.spend(20 + block.size // 100, held)
            blocks.append(block)
    result = np.concatenate(blocks) if blocks else np.zeros((0, n), dtype=np.int64)
    limits.check(result.shape[0])
    return result


def _check_room(merged: Longs, classes: ColumnClasses, n: int, capacity: int | None, limits: Limits) -> None:
    """Refuse a list that would be too large before any of it is built: two cells of a class of k are k (k - 1) / 2 moves."""
    sizes = [len(cells) for cells in classes.members]
    held = len(classes.zero) + sum(size * (size - 1) // 2 for size in sizes)
    if all(size == 1 for size in sizes):
        held += merged.shape[0]
    else:
        limits.check(held)
        for move in merged:
            held += prod(
                _share_count(abs(int(move[at])), sizes[at], capacity) for at in np.flatnonzero(move).tolist()
            )
            if held * n > MOST_ENTRIES:
                break
    limits.check(held)
    if held * n > MOST_ENTRIES:
        raise IncompleteBasisError(
            f"more than {MOST_ENTRIES // n:,} minimal moves over {n:,} cells: too many to hold. Ask for a bound (longest_move), "
            "or coarsen the domain.",
            code="graver.incomplete",
            reason="entries",
        )


@lru_cache(maxsize=1 << 12)
def _share_count(total: int, cells: int, capacity: int | None) -> int:
    """Count the non-negative integer vectors of a given length and sum, entries at most ``capacity``."""
    if capacity is None:
        return comb(total + cells - 1, cells - 1)
    return sum(
        (-1) ** k * comb(cells, k) * comb(total - k * (capacity + 1) + cells - 1, cells - 1)
        for k in range(min(cells, total // (capacity + 1)) + 1)
    )


def _vector(n: int, cells: list[int], values: list[int]) -> Longs:
    vector = np.zeros(n, dtype=np.int64)
    vector[cells] = values
    return vector


def _spread_count(move: list[int], classes: ColumnClasses) -> int:
    """Count the ways to spread a merged move without capacities."""
    count = 1
    for value, cells in zip(move, classes.members):
        count *= comb(abs(value) + len(cells) - 1, len(cells) - 1)
    return count


def _spread_one(move: Longs, classes: ColumnClasses, n: int, capacity: int | None) -> Longs:
    """Spread one merged move over the cells of its classes in all ways."""
    block = np.zeros((1, n), dtype=np.int64)
    for value, cells, signs in zip(move.tolist(), classes.members, classes.signs):
        if value == 0:
            continue
        shares = np.array(_shares(abs(value), len(cells), capacity), dtype=np.int64).reshape(-1, len(cells))
        shares = shares * np.array(signs, dtype=np.int64) * (1 if value > 0 else -1)
        count = block.shape[0]
        block = np.repeat(block, shares.shape[0], axis=0)
        block[:, list(cells)] = np.tile(shares, (count, 1))
    return block


def _shares(total: int, cells: int, capacity: int | None) -> list[tuple[int, ...]]:
    """List the non-negative integer vectors of a given length and sum, entries at most ``capacity``."""
    top = total if capacity is None else min(total, capacity)
    if cells == 1:
        return [(total,)] if total <= top else []
    return [
        (value, *rest) for value in range(top, -1, -1) for rest in _shares(total - value, cells - 1, capacity)
    ]


def _class_group(
    rows: Objects, classes: ColumnClasses, symmetries: npt.ArrayLike | None, limits: Limits
) -> Longs:
    """Return a group of permutations of the classes that keep the merged kernel and the class sizes."""
    count = len(classes.members)
    identity = np.arange(count, dtype=np.int64)[None, :]
    sizes = np.array([len(cells) for cells in classes.members], dtype=np.int64)
    if symmetries is None:
        if not SEARCH_SYMMETRIES[0] <= count <= SEARCH_SYMMETRIES[1]:
            return identity
        limits.spend(10 * count * count + 2 * elimination(*classes.matrix.shape))
        images = find_symmetries(classes.matrix)
    else:
        owner = {
            cell: (index, sign)
            for index, group in enumerate(zip(classes.members, classes.signs))
            for cell, sign in zip(*group)
        }
        limits.spend(elimination(*rows.shape) + len(np.asarray(symmetries)) * (20 + rows.size // 20))
        generators = []
        for permutation in check_symmetries(rows, symmetries):
            pairs = [owner[int(permutation[cells[0]])] for cells in classes.members]
            # A permutation that turns the sign of a merged column is no permutation of the merged problem.
            if all(sign == signs[0] for (_, sign), signs in zip(pairs, classes.signs)):
                generators.append([index for index, _ in pairs])
        images = np.array(generators, dtype=np.int64).reshape(len(generators), count)
    images = images[np.all(sizes[images] == sizes, axis=1)]
    return list_group(images, GROUP_LIMIT, limits.effort) if images.size else identity
