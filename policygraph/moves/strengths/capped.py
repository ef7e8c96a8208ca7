"""Moves with at most m records added and m removed, listed by sums of columns without a Graver basis."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations, combinations_with_replacement, product
from typing import Any

import numpy as np

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError, RefusedError
from policygraph.moves.bracket import Bracket
from policygraph.moves.strengths.bracket import (
    Norm,
    Pair,
    lengths,
    read_norm,
    read_query,
    removed_part,
    witness_of,
)
from policygraph.moves.strengths.capped_list import Limits, class_moves, sums_under
from policygraph.moves.strengths.capped_search import longest_by_cuts
from policygraph.moves.strengths.columns import (
    Classes,
    Ints,
    classes_of,
    read_capacity,
    read_matrix,
    record_total,
    representatives,
)

MOST_ENTRIES = 1 << 25
"""Most moves times cells that are listed, a quarter of a gigabyte; beyond it a search answers."""
FEW_SUMS = 20_000
"""Up to so many multisets the listing is faster than starting a solver."""
QUICK = 3 * SECOND
"""Work on a first, short search."""


def read_cap(m: int) -> int:
    """Read a cap on records: an integer >= 0.

    Examples
    --------
    >>> read_cap(3)
    3
    """
    try:
        value = operator.index(m)
    except TypeError:
        value = -1
    if value < 0:
        raise InputError(
            f"m={m!r}: expected an integer >= 0, the most records a move adds and the most it removes.",
            code="moves.cap",
            value=m,
        )
    return value


def capped_moves(
    matrix: Any,
    m: int,
    capacity: int | None = None,
    *,
    max_moves: int | None = None,
    effort: Effort | None = None,
) -> Ints:
    """List all minimal moves with at most m records added and at most m removed, one of each pair of signs.

    Parameters
    ----------
    matrix
        Integer constraint matrix, one column for each cell.
    m
        The cap.
    capacity
        Most records of a cell; None for no limit.
    max_moves
        Give up beyond so many moves, or beyond as many as can be held.
    effort
        Give up when this work is spent; None for no end.

    Returns
    -------
    int64 array
        One move per row.

    Raises
    ------
    RefusedError
        When a limit is met or there are too many sums to list; no partial list is returned.

    Examples
    --------
    >>> capped_moves([[1, 1, 1], [0, 1, 2]], 2).tolist()
    [[-1, 2, -1]]
    >>> capped_moves([[1, 1, 1], [0, 1, 2]], 1).tolist()
    []

    Notes
    -----
    Removed and added part of a move are multisets of columns with equal sums, found by a linear hash that never
    separates equal sums. The move is minimal exactly when no part of the removed and no part of the added records,
    other than both empty or both whole, have equal sums (docs/explanation/proofs/strengths.md, section 5).
    """
    read = read_matrix(matrix)
    most = MOST_ENTRIES // max(1, read.shape[1])
    max_moves = most if max_moves is None else min(max_moves, most)
    cap = read_cap(m)
    room = read_capacity(capacity)
    if cap == 0 or room == 0:
        return np.zeros((0, read.shape[1]), dtype=np.int64)
    limits = Limits(max_moves, Effort() if effort is None else effort)
    groups = classes_of(read)
    limits.check(0, read.size // 100)
    rows = list(_simple_moves(groups, read.shape[1], limits))
    balanced = record_total(read) is not None
    for removed, added in class_moves(groups.columns, cap, balanced, limits):
        for row in _spread(removed, added, groups, read.shape[1], room):
            rows.append(row)
            limits.check(len(rows), 10)
    return np.array(rows, dtype=np.int64).reshape(-1, read.shape[1])


def _simple_moves(groups: Classes, cells: int, limits: Limits) -> Iterator[Ints]:
    within = (pair for members in groups.members for pair in combinations(members, 2))
    alone = ((None, j) for j in groups.free)
    for found, (removed, added) in enumerate(chain(alone, within), start=1):
        row = np.zeros(cells, dtype=np.int64)
        row[added] = 1
        if removed is not None:
            row[removed] = -1
        limits.check(found, 2)
        yield row


def _spread(
    removed: tuple[int, ...], added: tuple[int, ...], groups: Classes, cells: int, capacity: int | None
) -> Iterator[Ints]:
    """All ways to take the records of each class from its cells."""
    shares: list[list[tuple[int, tuple[int, ...]]]] = []
    for sign, side in ((-1, removed), (1, added)):
        for c, times in Counter(side).items():
            ways = combinations_with_replacement(groups.members[c], times)
            shares.append([(sign, way) for way in ways if _within(way, capacity)])
    for choice in product(*shares):
        row = np.zeros(cells, dtype=np.int64)
        for sign, way in choice:
            np.add.at(row, list(way), sign)
        yield row


def _within(way: tuple[int, ...], capacity: int | None) -> bool:
    return capacity is None or max(Counter(way).values()) <= capacity


def longest_capped(
    matrix: Any,
    m: int,
    query: Any = None,
    norm: str = "l1",
    *,
    capacity: int | None = None,
    max_moves: int | None = 500_000,
    effort: Effort | None = None,
) -> Bracket[Pair]:
    """Find the move of at most m added and m removed records that changes a query's answer the most.

    Parameters
    ----------
    matrix, m, capacity
        As for :func:`capped_moves`.
    query
        Integer matrix of the query; None is the table itself.
    norm
        "l1", or "l2" for the squared Euclidean norm.
    max_moves, effort
        Limits of the listing and of the search; beyond them a bracket is returned.

    Returns
    -------
    Bracket
        Exact when the listing or the search finished.

    Examples
    --------
    >>> longest_capped([[1, 1, 1], [0, 1, 2]], 5).upper
    4

    Notes
    -----
    Rungs: listing (for L1 and a large problem, a short search first); for L1, a search over all kernel vectors under the cap by CP-SAT, in which vectors that are
    not minimal are cut off one by one; else the bound 2m times the longest column of the query, by the triangle
    inequality.
    """
    read = read_matrix(matrix)
    cap = read_cap(m)
    wanted = read_query(query, read.shape[1])
    kind = read_norm(norm)
    room = read_capacity(capacity)
    work = Effort() if effort is None else effort
    copies = (1 if wanted is not None else 2) if room is None else max(2, -(-cap // max(room, 1)))
    kept = representatives(read, wanted, copies)
    small = np.ascontiguousarray(read[:, kept])
    answer = None if wanted is None else np.ascontiguousarray(wanted[:, kept])
    ceiling = _ceiling(answer, cap, room, kind)
    half = work.share(1, 2)
    quick: Bracket[Pair] | None = None
    if kind == "l1" and sums_under(len(kept), cap) > FEW_SUMS:
        # often the ceiling itself is reached, which a short search shows without any listing
        quick = longest_by_cuts(small, cap, answer, room, ceiling, half.at_most(QUICK), most_cuts=40)
        if quick.exact:
            return _grown(quick, kept, read.shape[1])
        ceiling = quick.upper
    try:
        listed = capped_moves(small, cap, room, max_moves=max_moves, effort=half)
    except RefusedError as refusal:
        if kind == "l1" and small.shape[1] and not work.done:
            found = longest_by_cuts(small, cap, answer, room, ceiling, work)
            if quick is not None and (found.method == "bound" or quick.lower > found.lower):
                # the short search may have met the longer move; the upper bound was handed on
                found = replace(quick, upper=min(quick.upper, found.upper))
            return _grown(found, kept, read.shape[1])
        if quick is not None:
            return _grown(quick, kept, read.shape[1])
        reason = (
            f"a move of {cap} added and {cap} removed records, each as long as the longest column ({refusal})"
        )
        return Bracket(ceiling, 0, None, "bound", reason)
    values = lengths(answer, listed, kind)
    if not len(values):
        return Bracket(0, 0, None, "listing", "no move stays under the cap")
    top = int(np.argmax(values))
    best = int(values[top])
    witness = witness_of(removed_part(listed[top]), listed[top])
    found = Bracket(best, best, witness, "listing", "every minimal move under the cap was listed")
    return _grown(found, kept, read.shape[1])


def _grown(found: Bracket[Pair], kept: list[int], cells: int) -> Bracket[Pair]:
    if found.witness is None:
        return found
    table, move = np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64)
    table[kept], move[kept] = found.witness
    return Bracket(found.upper, found.lower, witness_of(table, move), found.method, found.reason)


def _ceiling(query: Ints | None, cap: int, capacity: int | None, norm: Norm) -> int:
    if query is None:
        # squares: each side has cap records, at most capacity of them in one cell
        return 2 * cap if norm == "l1" else 2 * cap * min(cap, cap if capacity is None else capacity)
    if norm == "l1":
        return 2 * cap * int(np.abs(query).sum(axis=0).max(initial=0))
    squares = [sum(int(v) ** 2 for v in column) for column in query.T]
    return 4 * cap * cap * max(squares, default=0)
