"""Arcs with values that sum to zero: how long a sequence without a smaller zero sum can be. Owns :func:`longest_arcs` and :func:`arc_sequence`.

A record that changes its value of one attribute is an arc between the values, and what it does to one more public number is the value of the arc. Proof:
``docs/explanation/proofs/valued-arcs.md``.
"""

from __future__ import annotations

__all__ = ["LONGEST_SWAPS", "SWAPS", "arc_sequence", "longest_arcs"]

LONGEST_SWAPS = 15
"""Most pairs of a removed and an added record between 3 x 3 cells, of which no part keeps both margins (``docs/explanation/proofs/valued-arcs.md``, Theorem 3)."""
SWAPS = [(1, 0, 1, 0, 2), (0, 1, 2, 0, 3), (2, 0, 0, 1, 5), (0, 2, 1, 2, 4), (1, 2, 2, 1, 1)]
"""So many pairs: from and to a cell of the first margin, from and to one of the second, times."""

Arc = tuple[int, int, int, int]


def longest_arcs(vertices: int, low: int, high: int) -> int:
    """Return the most arcs of a sequence that sums to zero and has no smaller zero-sum part.

    Parameters
    ----------
    vertices
        Number of vertices. An arc from x to y is ``e_y - e_x``; loops are zero, and count by their values.
    low, high
        Smallest and largest value of an arc, ``low <= 0 <= high``. Values of a zero-sum part sum to zero.

    Returns
    -------
    int
        A proved bound, attained for ``low, high = -1, 1`` and any number of vertices.

    Examples
    --------
    >>> longest_arcs(5, -1, 1), longest_arcs(7, 0, 0), longest_arcs(1, -2, 3)
    (18, 7, 5)
    """
    if not low or not high:
        return vertices  # values of one sign are all zero, and what is left is one cycle
    return max(vertices, (high - low) * ((vertices + 1) ** 2 // 4))


def arc_sequence(vertices: int) -> list[Arc]:
    """Return a longest sequence with the values -1 and 1, as (from, to, value, times).

    Examples
    --------
    >>> arc_sequence(2)
    [(0, 1, 1, 1), (1, 0, 1, 1), (0, 0, -1, 2)]
    >>> [sum(times for *_, times in arc_sequence(c)) for c in range(1, 7)]
    [2, 4, 8, 12, 18, 24]

    Notes
    -----
    A cycle of p arcs of value 1, q times, and one of q arcs of value -1, p times, that share one vertex; with an odd number of vertices they share an arc of
    value 1 instead, so that their values have no common divisor.
    """
    half = (vertices + 1) // 2
    if vertices == 1:
        return [(0, 0, 1, 1), (0, 0, -1, 1)]
    if vertices % 2 == 0:
        one, two = list(range(half + 1)), [0, *range(half + 1, vertices)]
        arcs = [(a, b, 1, half) for a, b in zip(one, [*one[1:], 0])]
        return arcs + [(a, b, -1, half + 1) for a, b in zip(two, [*two[1:], 0])]
    one, two = list(range(1, half)), [1, *range(half, vertices)]
    arcs = [(0, 1, 1, vertices)] + [(a, b, 1, half - 1) for a, b in zip(one, [*one[1:], 0])]
    return arcs + [(a, b, -1, half) for a, b in zip(two, [*two[1:], 0])]
