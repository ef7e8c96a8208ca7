"""Moves of undirected graphs whose degrees are known at some nodes: sub-moves, minimality, decomposition.

Owns the questions about one given change; :mod:`alternating_closed_form` owns the longest move.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from policygraph.errors import InputError
from policygraph.moves.degrees.closed_form import longest_degree_move
from policygraph.moves.degrees.reading import Change, Known, Move, Part, known_among, read_change
from policygraph.moves.degrees.walk import peel

__all__ = ["decompose", "find_submove", "is_minimal", "longest_degree_move"]


def _parts(change: Change, known: Known) -> tuple[int, Iterator[Part]]:
    """Size of the checked change (its L1 norm) and its minimal moves, lazily."""
    u, v, value = read_change(change, undirected=True)
    nodes, ends = np.unique(np.concatenate([u, v]), return_inverse=True)
    tail, head = ends[: len(u)], ends[len(u) :]
    bound = known_among(known, nodes, "known")
    degree = np.zeros(len(nodes), dtype=np.int64)
    np.add.at(degree, tail, value)
    np.add.at(degree, head, value)
    wrong = np.flatnonzero(bound & (degree != 0))
    if wrong.size:
        node = int(nodes[wrong[0]])
        raise InputError(
            f"change: the degree of node {node} changes by {degree[wrong[0]]} but is known; expected 0. "
            "Only changes that keep every known degree are moves.",
            code="moves.unbalanced",
            node=node,
        )
    names = list(zip(u.tolist(), v.tolist(), np.sign(value).tolist()))

    def parts() -> Iterator[Part]:
        for times, units in peel(tail.tolist(), head.tolist(), value.tolist(), (~bound).tolist()):
            yield times, [(*names[edge][:2], names[edge][2] * count) for edge, count in sorted(units.items())]

    return int(np.abs(value).sum()), parts()


def _size(move: Move) -> int:
    return sum(abs(value) for _, _, value in move)


def find_submove(change: Change, known: Known) -> Move | None:
    """Find a minimal move inside a change that keeps the known degrees.

    Parameters
    ----------
    change
        Arrays (u, v, value) of node pairs and the integer change of each; a pair u = u is a loop, which
        changes the degree of u by twice its value.
    known
        The nodes whose degrees are known: a count (the first ones), a boolean array or indices.

    Returns
    -------
    list or None
        A minimal move (u, v, value) that is smaller than the change, pair by pair and with its signs; None when
        the change is 0 or itself minimal.

    Raises
    ------
    InputError
        When the change alters a known degree.

    Examples
    --------
    Two triangles that share node 2, with alternating signs, hold nothing smaller; a doubled square does.

    >>> find_submove(([0, 1, 0, 2, 3, 2], [2, 2, 1, 3, 4, 4], [1, 1, -1, -1, 1, -1]), known=5) is None
    True
    >>> find_submove(([0, 1, 2, 3], [1, 2, 3, 0], [2, -2, 2, -2]), known=4)
    [(0, 1, 1), (0, 3, -1), (1, 2, -1), (2, 3, 1)]

    Notes
    -----
    Linear in the number of changed pairs: ``docs/explanation/proofs/degrees.md``, Theorem 2.
    """
    size, parts = _parts(change, known)
    times, move = next(parts, (0, []))
    if not times or (times == 1 and _size(move) == size):
        return None
    return move


def is_minimal(change: Change, known: Known) -> bool:
    """Whether a change that keeps the known degrees is a minimal move, so that its two graphs are neighbours.

    Parameters
    ----------
    change, known
        As for :func:`find_submove`.

    Returns
    -------
    bool
        False for the zero change, which is no move.

    Examples
    --------
    >>> is_minimal(([0, 1, 2, 3], [1, 2, 3, 0], [1, -1, 1, -1]), known=4)
    True
    >>> is_minimal(([0, 0], [1, 2], [1, 1]), known=0)
    False
    """
    size, parts = _parts(change, known)
    times, move = next(parts, (0, []))
    return times == 1 and _size(move) == size


def decompose(change: Change, known: Known) -> list[Part]:
    """Write a change as a sum of minimal moves without cancellation.

    Parameters
    ----------
    change, known
        As for :func:`find_submove`.

    Returns
    -------
    list of (int, list)
        Multiplicities and minimal moves (u, v, value); every move has the signs of the change.

    Examples
    --------
    >>> decompose(([0, 1, 0], [1, 2, 2], [1, -1, 7]), known={1})
    [(7, [(0, 2, 1)]), (1, [(0, 1, 1), (1, 2, -1)])]
    """
    return list(_parts(change, known)[1])
