"""Moves of two-way tables and directed graphs of which some row and column sums are known.

Owns the questions about one given change (sub-moves, minimality, decomposition) and gathers the longest moves:
:mod:`bipartite_longest` (closed forms) and :mod:`bipartite_forbidden` (arbitrary structural zeros).

A table has left and right vertices (rows and columns, tails and heads, the cells of two cuboids within one value
of their shared attributes) and a cell for each pair of them. ``docs/explanation/proofs/two-cuboids.md`` holds the proofs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.moves.degrees.reading import Change, Known, Move, Part, known_among, read_change
from policygraph.moves.degrees.walk import peel
from policygraph.moves.two_way.closed_form import longest_bipartite_move
from policygraph.moves.two_way.forbidden import longest_with_forbidden

__all__ = [
    "decompose",
    "find_submove",
    "is_minimal",
    "longest_bipartite_move",
    "longest_with_forbidden",
]

Integers = npt.NDArray[np.int64]


def _check_balance(
    side: str, names: Integers, ends: Integers, bound: npt.NDArray[np.bool_], value: Integers
) -> None:
    sums = np.zeros(len(names), dtype=np.int64)
    np.add.at(sums, ends, value)
    wrong = np.flatnonzero(bound & (sums != 0))
    if wrong.size:
        vertex = int(names[wrong[0]])
        raise InputError(
            f"change: the sum of {side} vertex {vertex} changes by {sums[wrong[0]]} but is known; expected 0. "
            "Only changes that keep every known sum are moves.",
            code="moves.unbalanced",
            side=side,
            vertex=vertex,
        )


def _parts(
    change: Change, known_left: Known, known_right: Known, total_known: bool
) -> tuple[int, Iterator[Part]]:
    """Size of the checked change (its L1 norm) and its minimal moves, lazily."""
    left, right, value = read_change(change, undirected=False)
    lefts, tail = np.unique(left, return_inverse=True)
    rights, head = np.unique(right, return_inverse=True)
    bound_left = known_among(known_left, lefts, "known_left")
    bound_right = known_among(known_right, rights, "known_right")
    _check_balance("left", lefts, tail, bound_left, value)
    _check_balance("right", rights, head, bound_right, value)
    if total_known and value.sum() != 0:
        raise InputError(
            f"change: the total changes by {value.sum()} but is known; expected 0.", code="moves.unbalanced"
        )
    head = head + len(lefts)
    free = np.concatenate([~bound_left, ~bound_right])
    if total_known:
        # The unknown vertices of a side together are balanced: each side has one vertex more, and none is free.
        tail = np.where(bound_left[tail], tail, len(free))
        head = np.where(bound_right[head - len(lefts)], head, len(free) + 1)
        free = np.zeros(len(free) + 2, dtype=np.bool_)
    names = list(zip(left.tolist(), right.tolist(), np.sign(value).tolist()))

    def parts() -> Iterator[Part]:
        for times, units in peel(tail.tolist(), head.tolist(), value.tolist(), free.tolist()):
            yield times, [names[edge] for edge in sorted(units)]

    return int(np.abs(value).sum()), parts()


def find_submove(
    change: Change, known_left: Known, known_right: Known, total_known: bool = False
) -> Move | None:
    """Find a minimal move inside a change that keeps the known sums.

    Parameters
    ----------
    change
        Arrays (left, right, value): the changed cells and their integer changes.
    known_left, known_right
        The vertices whose sums are known: a count (the first ones), a boolean array or indices.
    total_known
        Whether the sum of all cells is known as well.

    Returns
    -------
    list or None
        A minimal move (left, right, +1 or -1) that is smaller than the change, cell by cell and with its signs;
        None when the change is 0 or itself minimal.

    Raises
    ------
    InputError
        When the change alters a known sum.

    Examples
    --------
    >>> square = ([0, 0, 1, 1], [0, 1, 0, 1], [1, -1, -1, 1])
    >>> find_submove(square, known_left=2, known_right=2) is None
    True
    >>> find_submove(square, known_left=1, known_right=1)
    [(1, 1, 1)]

    Notes
    -----
    The change as a directed multigraph (an added record goes left to right, a removed one right to left) is balanced
    at every known vertex. Walking it, the first vertex met twice closes a minimal move. Linear in the number of
    changed cells.
    """
    size, parts = _parts(change, known_left, known_right, total_known)
    times, move = next(parts, (0, []))
    if not times or (times == 1 and len(move) == size):
        return None
    return move


def is_minimal(change: Change, known_left: Known, known_right: Known, total_known: bool = False) -> bool:
    """Whether a change that keeps the known sums is a minimal move, so that its two tables are neighbours.

    Parameters
    ----------
    change, known_left, known_right, total_known
        As for :func:`find_submove`.

    Returns
    -------
    bool
        False for the zero change, which is no move.

    Examples
    --------
    >>> is_minimal(([0, 0], [0, 1], [1, -1]), known_left=1, known_right=0)
    True
    >>> is_minimal(([0, 0], [0, 1], [1, -1]), known_left=0, known_right=0)
    False
    >>> is_minimal(([0, 0], [0, 1], [1, -1]), known_left=0, known_right=0, total_known=True)
    True
    """
    size, parts = _parts(change, known_left, known_right, total_known)
    times, move = next(parts, (0, []))
    return times == 1 and len(move) == size


def decompose(change: Change, known_left: Known, known_right: Known, total_known: bool = False) -> list[Part]:
    """Write a change as a sum of minimal moves without cancellation.

    Parameters
    ----------
    change, known_left, known_right, total_known
        As for :func:`find_submove`.

    Returns
    -------
    list of (int, list)
        Multiplicities and minimal moves (left, right, +1 or -1); every move has the signs of the change.

    Examples
    --------
    >>> decompose(([0, 0, 1], [0, 1, 1], [3, -3, 2]), known_left=1, known_right=0)
    [(2, [(1, 1, 1)]), (3, [(0, 0, 1), (0, 1, -1)])]

    Notes
    -----
    Linear in the number of changed cells and the size of the result; each part uses up at least one cell.
    """
    return list(_parts(change, known_left, known_right, total_known)[1])
