"""The longest minimal move of a two-way table with some known sums, in closed form with a witness.

What is too small for a formula is settled by listing all cycles of the move graph. No matrix of cells is ever built.

Proofs: ``docs/explanation/proofs/two-cuboids.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.moves.degrees.reading import Known, Move, as_count, known_mask

__all__ = ["longest_bipartite_move", "longest_cycle"]


def longest_cycle(
    cells: Sequence[tuple[int, int]],
    known_left: Collection[int],
    known_right: Collection[int],
    total_known: bool,
) -> Move:
    """Longest cycle of the move graph on the given cells; its time is exponential in the number of known vertices.

    Parameters
    ----------
    cells
        The cells (left, right) that may change.
    known_left, known_right
        Vertices with a known sum.
    total_known
        Whether the sum of all cells is known.

    Returns
    -------
    list of (left, right, +1 or -1)
        A longest minimal move, empty when there is none.

    Examples
    --------
    >>> longest_cycle([(0, 1), (0, 2)], {0}, set(), False)
    [(0, 1, 1), (0, 2, -1)]
    """
    ground_left = ("ground", 0)
    ground_right = ("ground", 1) if total_known else ground_left
    graph: dict[tuple[str, int], dict[tuple[str, int], list[tuple[int, int]]]] = {}
    for a, b in cells:
        u = ("left", a) if a in known_left else ground_left
        v = ("right", b) if b in known_right else ground_right
        # A cycle uses one cell between two vertices, or two when it has no other vertex.
        for x, y in dict.fromkeys([(u, v), (v, u)]):
            parallel = graph.setdefault(x, {}).setdefault(y, [])
            if len(parallel) < 2:
                parallel.append((a, b))

    best: list[tuple[int, int]] = []
    path: list[tuple[int, int]] = []
    seen: set[tuple[str, int]] = set()

    def walk(start: tuple[str, int], here: tuple[str, int]) -> None:
        nonlocal best
        for there, parallel in graph[here].items():
            if there == start:
                cell = next((c for c in parallel if c not in path), None)
                if cell is not None and len(path) + 1 > len(best):
                    best = [*path, cell]
            elif there > start and there not in seen:
                seen.add(there)
                path.append(parallel[0])
                walk(start, there)
                path.pop()
                seen.remove(there)

    for start in sorted(graph):
        walk(start, start)
    # A shared ground vertex comes first in the order, so it can only be the start, where signs are free; at every
    # other vertex the two cells of the cycle cancel.
    return [(a, b, 1 if i % 2 == 0 else -1) for i, (a, b) in enumerate(best)]


Integers = npt.NDArray[np.int64]

_FEW = 10
"""Nodes of one kind kept for a search: a move of at most five cells touches no more."""


class _Side(NamedTuple):
    """The known vertices of one side, and one or two of the unknown ones (enough for any move)."""

    known: Integers
    unknown: list[int]


def _side(mask: npt.NDArray[np.bool_]) -> _Side:
    return _Side(np.flatnonzero(mask), np.flatnonzero(~mask)[:2].tolist())


def _other_than(vertices: list[int], node: int, loops_forbidden: bool) -> int:
    """A vertex of the list that forms a cell with ``node``."""
    return vertices[1] if loops_forbidden and vertices[0] == node else vertices[0]


def _zigzag(left: list[int], right: list[int], closed: bool) -> Move:
    """Cycle (or path) left_0 right_0 left_1 right_1 ... with alternating signs."""
    cells = [(a, b, 1) for a, b in zip(left, right)]
    cells += [(a, b, -1) for a, b in zip(left[1:], right)]
    if closed:
        cells.append((left[0], right[-1], -1))
    return cells


def _aligned(left: Integers, right: Integers) -> tuple[list[int], list[int]]:
    """Order two lists of distinct labels so that a label on both sides has one index, then shift one by 2.

    After the shift no index of a zigzag joins equal labels, for three labels a side or more.
    """
    both = np.intersect1d(left, right, assume_unique=True)
    left = np.concatenate([both, np.setdiff1d(left, both, assume_unique=True)])
    right = np.concatenate([both, np.setdiff1d(right, both, assume_unique=True)])
    return left.tolist(), np.roll(right, -2).tolist()


def _cycle(left: _Side, right: _Side, ground: tuple[bool, bool], size: int, loops_forbidden: bool) -> Move:
    """Cycle through ``size`` vertices a side; ``ground`` says which sides count their unknown ones as a vertex."""

    def labels(side: _Side, grounded: bool, nobody: int) -> Integers:
        # A ground vertex of one node forbids what that node forbids, a larger one nothing: it gets a label that
        # no node has. It comes first, so that it is kept when the longer side is cut.
        if not grounded:
            return side.known[:size]
        label = side.unknown[0] if len(side.unknown) == 1 else nobody
        return np.concatenate([np.array([label], dtype=np.int64), side.known[: size - 1]])

    lefts, rights = labels(left, ground[0], -1), labels(right, ground[1], -2)
    if loops_forbidden:
        ordered = _aligned(lefts, rights)
    else:
        ordered = lefts.tolist(), rights.tolist()

    def cell(a: int, b: int, sign: int) -> tuple[int, int, int]:
        if a == -1 and b == -2:
            a = left.unknown[0]
        if a == -1:
            a = _other_than(left.unknown, b, loops_forbidden)
        if b == -2:
            b = _other_than(right.unknown, a, loops_forbidden)
        return a, b, sign

    cells = _zigzag(*ordered, closed=True)
    if ground == (False, False):
        return cells
    return [cell(*c) for c in cells]


def _odd_cycle(left: _Side, right: _Side, loops_forbidden: bool) -> Move:
    """Path through all known vertices, equally many a side, closed through an unknown one at each end."""
    lefts, rights = left.known.tolist(), right.known.tolist()
    if loops_forbidden:
        lefts, rights = _aligned(left.known, right.known)
        n = len(lefts)
        # The ends must form cells with unknown nodes; an only unknown node forbids one end, so a turn is free.
        turn = next(
            t for t in range(n) if right.unknown != [lefts[t]] and left.unknown != [rights[(t - 1) % n]]
        )
        lefts, rights = lefts[turn:] + lefts[:turn], rights[turn:] + rights[:turn]
    cells = _zigzag(lefts, rights, closed=False)
    cells.append((lefts[0], _other_than(right.unknown, lefts[0], loops_forbidden), -1))
    cells.append((_other_than(left.unknown, rights[-1], loops_forbidden), rights[-1], -1))
    return cells


def _few_of_each_kind(
    known_left: npt.NDArray[np.bool_], known_right: npt.NDArray[np.bool_], loops_forbidden: bool
) -> tuple[list[int], list[int]]:
    """Enough left and right vertices to hold a copy of every move of at most five cells."""
    if loops_forbidden:
        kind = 2 * known_left + known_right
        nodes = np.concatenate([np.flatnonzero(kind == k)[:_FEW] for k in range(4)]).tolist()
        return nodes, nodes
    left, right = (
        np.concatenate([np.flatnonzero(mask)[:_FEW], np.flatnonzero(~mask)[:_FEW]]).tolist()
        for mask in (known_left, known_right)
    )
    return left, right


def longest_bipartite_move(
    left: int,
    right: int,
    known_left: Known,
    known_right: Known,
    *,
    total_known: bool = False,
    loops_forbidden: bool = False,
) -> tuple[int, Move]:
    """Most cells that two neighbouring tables can differ in when some of their sums are known exactly.

    Parameters
    ----------
    left, right
        Number of vertices of each side: rows and columns, or tails and heads of a directed graph.
    known_left, known_right
        The vertices whose sums are known: a count (the first ones), a boolean array or indices.
    total_known
        Whether the sum of all cells is known as well.
    loops_forbidden
        Whether the cells (i, i) do not exist, as in a directed graph without loops.

    Returns
    -------
    value : int
        Largest L1 norm of a minimal move, 0 when the sums determine the table.
    witness : list of (left, right, +1 or -1)
        A minimal move of that norm.

    Raises
    ------
    InputError
        When a side is empty, ``known_left`` or ``known_right`` does not fit, or loops are forbidden on a table with
        sides of different length.

    Examples
    --------
    >>> longest_bipartite_move(3, 3, 1, 1)
    (3, [(0, 0, 1), (0, 1, -1), (1, 0, -1)])
    >>> [longest_bipartite_move(3, 4, n1, n2)[0] for n1, n2 in [(3, 4), (2, 1), (2, 2), (0, 0)]]
    [6, 4, 5, 1]
    >>> longest_bipartite_move(1000, 1000, 600, 600, total_known=True)[0]
    1202

    Notes
    -----
    A minimal move is a cycle in the graph of known vertices and one ground vertex for the unknown ones (one a
    side when the total is known), its entries are +1 and -1, and so the answer is the same for tables of any
    cell capacity (``docs/explanation/proofs/two-cuboids.md``, Theorems 1 to 3). Time linear in the number of vertices.
    """
    r, c = as_count(left, "left", 1), as_count(right, "right", 1)
    if loops_forbidden and r != c:
        raise InputError(
            f"left={r}, right={c}: expected as many tails as heads in a directed graph without loops.",
            code="moves.loops",
        )
    masks = known_mask(known_left, r, "known_left"), known_mask(known_right, c, "known_right")
    sides = _side(masks[0]), _side(masks[1])
    n1, n2 = len(sides[0].known), len(sides[1].known)
    ground = n1 < r, n2 < c
    least = 3 if loops_forbidden else 1
    if all(ground) and not total_known:
        if n1 == n2 >= least:
            return 2 * n1 + 1, _odd_cycle(*sides, loops_forbidden)
        # One shared ground vertex: it serves the side that has fewer known ones.
        ground = n1 < n2, n2 < n1
    size = min(n1 + ground[0], n2 + ground[1])
    if size >= max(least, 2):
        return 2 * size, _cycle(*sides, ground, size, loops_forbidden)
    lefts, rights = _few_of_each_kind(*masks, loops_forbidden)
    cells = [(a, b) for a in lefts for b in rights if not (loops_forbidden and a == b)]
    move = longest_cycle(cells, set(sides[0].known.tolist()), set(sides[1].known.tolist()), total_known)
    return len(move), move
