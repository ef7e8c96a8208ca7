"""Minimal moves that add and remove at most so many records. Owns their listing and the longest of them.

Listing by sums of columns; where the sums are too many, a search in which null-space vectors that are not minimal are cut off one by one.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, combinations_with_replacement, product
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError, RefusedError
from policygraph.exact import brief
from policygraph.moves.bracket import Bracket
from policygraph.moves.graver.minimal import decompose
from policygraph.moves.strengths.columns import (
    Classes,
    Ints,
    Norm,
    Pair,
    classes_of,
    lengths,
    linear_hash,
    read_capacity,
    read_matrix,
    read_norm,
    read_query,
    record_total,
    removed_part,
    representatives,
    witness_of,
)
from policygraph.solver.program import Program

MOST_SUMS = 2_000_000
"""Multisets of columns that are held at once."""


MOST_MATCHES = 20_000_000
"""Pairs of multisets with equal sums that are looked at."""

FEW_RECORDS = 10
"""Up to so many records the parts of a move are compared directly; beyond it smaller moves are looked for in it."""

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class ListingLimits:
    """Most moves and most work of a listing.

    Examples
    --------
    >>> ListingLimits(10).check(10)
    """

    moves: int | None = None
    effort: Effort = field(default_factory=Effort)

    def check(self, found: int, work: int = 0) -> None:
        """Count work, and refuse to go on when a limit is passed."""
        self.effort.spend(work)
        if self.effort.done:
            raise RefusedError(
                f"Not all moves under the cap were listed: {self.effort.ended_by}. Allow more effort, lower the cap, "
                "or ask for a bound.",
                code="moves.cap-deadline",
                found=found,
            )
        if self.moves is not None and found > self.moves:
            raise RefusedError(
                f"More than {self.moves} moves under the cap. Raise max_moves, lower the cap, or ask for a bound.",
                code="moves.cap-moves",
                found=found,
            )


def sums_under(columns: int, cap: int, most: int = MOST_SUMS) -> int:
    """Count the multisets of at most ``cap`` columns, at least one; beyond ``most`` some number above it.

    Examples
    --------
    >>> sums_under(3, 2)
    9
    >>> sums_under(20_000, 10**9) > MOST_SUMS
    True
    """
    count = 1
    for i in range(1, min(columns, cap) + 1):
        # (a + 1) (a + 2) ... (a + i) / i! with a the larger of both is whole and grows with i
        count = count * (max(columns, cap) + i) // i
        if count - 1 > most:
            break
    return count - 1


def too_many_sums(columns: int, cap: int) -> RefusedError:
    """Say that a listing is not begun."""
    return RefusedError(
        f"{columns:,} distinct columns and a cap of {brief(cap)} make more than {MOST_SUMS:,} sums, too many to list. "
        "Lower the cap, reduce the table, or ask for a bound.",
        code="moves.cap-sums",
    )


def class_moves(
    columns: Ints, cap: int, balanced: bool, limits: ListingLimits
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """List minimal moves of distinct non-zero columns as (removed, added) multisets, fewer records first.

    Examples
    --------
    >>> list(class_moves(np.array([[1, 0], [1, 1], [1, 2]]), 3, True, ListingLimits()))
    [((0, 2), (1, 1))]

    Raises
    ------
    RefusedError
        When there are too many sums or pairs of equal sums, or a limit is passed.
    """
    count = len(columns)
    if count == 0:
        return
    if sums_under(count, cap) > MOST_SUMS:
        raise too_many_sums(count, cap)
    hashes = linear_hash(columns)
    sides = []
    for s in range(cap + 1):
        limits.check(0, comb(count + s - 1, s) * (s + 2) // 4)
        listed = list(combinations_with_replacement(range(count), s))
        picked = np.array(listed, dtype=np.int32).reshape(len(listed), s)
        sides.append(_Multisets(picked, hashes))
    compared = 0
    found: list[tuple[list[int], list[int]]] = []
    for b in range(1, cap + 1):
        for a in range(b + 1):
            if balanced and a != b:
                continue
            for left, right, looked in _matches(sides[a], sides[b], a == b):
                compared += looked
                limits.check(0, 50 + looked * (a + b + 1) // 20)
                if compared > MOST_MATCHES:
                    raise RefusedError(
                        f"More than {MOST_MATCHES} pairs of equal sums under a cap of {cap}. Lower the cap, reduce "
                        "the table, or ask for a bound.",
                        code="moves.cap-matches",
                    )
                first, second = sides[a].picked[left], sides[b].picked[right]
                if a + b <= FEW_RECORDS:
                    limits.check(0, 10 * (1 << (a + b)) + len(first) * (1 << (a + b)) // 100)
                    good = _minimal(columns, hashes, first, second)
                else:
                    good = _holds_none(columns, first, second, found, limits)
                for r, s in zip(first[good].tolist(), second[good].tolist()):
                    found.append((r, s))
                    limits.effort.spend(3)
                    yield tuple(r), tuple(s)


class _Multisets:
    """Multisets of one size, in the order of the hashes of their sums."""

    def __init__(self, picked: npt.NDArray[np.int32], hashes: npt.NDArray[np.uint64]) -> None:
        sums: npt.NDArray[np.uint64] = hashes[picked].sum(axis=1, dtype=np.uint64)
        order = np.argsort(sums, kind="stable")  # the order of equal sums must not depend on the machine
        self.picked = picked[order]
        self.sums = sums[order]


def _matches(
    left: _Multisets, right: _Multisets, same: bool, most: int = 1 << 16
) -> Iterator[tuple[Indices, Indices, int]]:
    """Positions with equal hashes and no common column, in chunks; each unordered pair once when both sides are one."""
    start = np.searchsorted(right.sums, left.sums, side="left")
    if same:
        start = np.arange(1, len(left.sums) + 1)
    end = np.searchsorted(right.sums, left.sums, side="right")
    many = np.maximum(end - start, 0)
    ends = np.cumsum(many)
    position = 0
    while position < len(many):
        stop = int(np.searchsorted(ends, (ends[position - 1] if position else 0) + most, side="right"))
        stop = max(stop, position + 1)
        here = np.repeat(np.arange(position, stop), many[position:stop])
        offset = np.arange(len(here)) - np.repeat(
            np.concatenate([[0], np.cumsum(many[position:stop])[:-1]]), many[position:stop]
        )
        there = start[here] + offset
        apart = np.ones(len(here), dtype=bool)
        for x in range(left.picked.shape[1]):
            for y in range(right.picked.shape[1]):
                apart &= left.picked[here, x] != right.picked[there, y]
        yield here[apart], there[apart], len(here)
        position = stop


def _minimal(
    columns: Ints, hashes: npt.NDArray[np.uint64], first: npt.NDArray[np.int32], second: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Rows where both sides have equal sums and no other parts do; hashes decide "no", sums decide "yes"."""
    good: npt.NDArray[np.bool_] = (columns[first].sum(axis=1) == columns[second].sum(axis=1)).all(axis=1)
    parts = [_part_sums(hashes, side) for side in (first, second)]
    whole = [p.shape[1] - 1 for p in parts]
    for i in range(whole[0] + 1):
        for j in range(whole[1] + 1):
            if (i, j) in ((0, 0), (whole[0], whole[1])):
                continue
            suspect = np.flatnonzero(good & (parts[0][:, i] == parts[1][:, j]))
            if len(suspect):
                a = columns[first[suspect][:, _bits(i, first.shape[1])]].sum(axis=1)
                b = columns[second[suspect][:, _bits(j, second.shape[1])]].sum(axis=1)
                good[suspect[(a == b).all(axis=1)]] = False
    return good


def _holds_none(
    columns: Ints,
    first: npt.NDArray[np.int32],
    second: npt.NDArray[np.int32],
    found: list[tuple[list[int], list[int]]],
    limits: ListingLimits,
) -> npt.NDArray[np.bool_]:
    """Rows with equal sums that contain none of the smaller minimal moves, which are all found already."""
    good: npt.NDArray[np.bool_] = (columns[first].sum(axis=1) == columns[second].sum(axis=1)).all(axis=1)
    size = first.shape[1] + second.shape[1]
    here = np.flatnonzero(good)
    counts = np.zeros((2, len(columns), len(here)), dtype=np.int16)
    for side, picked in enumerate((first[here], second[here])):
        for x in range(picked.shape[1]):
            np.add.at(counts[side], (picked[:, x], np.arange(len(here))), 1)
    clear = np.ones(len(here), dtype=bool)
    limits.check(0, len(found) * (10 + len(here) // 100))
    for r, s in found:
        if len(r) + len(s) < size:
            for one, other in ((r, s), (s, r)):
                inside = clear.copy()
                for side, part in enumerate((one, other)):
                    for c, times in Counter(part).items():
                        inside &= counts[side, c] >= times
                clear &= ~inside
    good[here] = clear
    return good


def _bits(mask: int, width: int) -> list[int]:
    return [x for x in range(width) if mask >> x & 1]


def _part_sums(hashes: npt.NDArray[np.uint64], side: npt.NDArray[np.int32]) -> npt.NDArray[np.uint64]:
    sums = np.zeros((len(side), 1), dtype=np.uint64)
    for x in range(side.shape[1]):
        sums = np.hstack([sums, sums + hashes[side[:, x]][:, None]])
    return sums


MOST_CUTS = 5_000
"""Vectors that are cut off before the bracket is returned as it stands."""
A_CELL = 100
"""Work of stating a cell to the solver: a search is not begun on more cells than what is left can state."""


def longest_by_cuts(
    matrix: Ints,
    cap: int,
    query: Ints | None,
    capacity: int | None,
    ceiling: int,
    effort: Effort | None = None,
    most_cuts: int = MOST_CUTS,
) -> Bracket[Pair]:
    """Bracket the largest L1 answer to a minimal move under a cap.

    Parameters
    ----------
    matrix, cap, query, capacity
        The problem; the query None is the table itself.
    ceiling
        A proved upper bound to start from.
    effort
        Work that may be spent; None for no end.
    most_cuts
        Vectors to cut off before stopping.

    Returns
    -------
    Bracket
        Closed when the longest vector left is minimal, or nothing longer is left.

    Examples
    --------
    >>> longest_by_cuts(np.array([[1, 1, 1], [0, 1, 2]]), 5, None, None, 10).upper
    4

    Notes
    -----
    All minimal moves under the cap are kernel vectors under the cap, so the solver's proved bound holds for them.
    When the longest vector is a sum of smaller moves, every vector that contains one of these parts is that part
    itself, which is weighed, or not minimal; cutting off the vectors that contain it loses nothing.
    """
    work = Effort.of(effort)
    try:
        search = _Cuts(matrix, cap, query, capacity, work)
    except RefusedError as late:
        reason = f"a move of {brief(cap)} added and {brief(cap)} removed records, each as long as the longest column ({late})"
        return Bracket(ceiling, 0, None, "bound", reason)
    best, move, upper = 0, None, ceiling
    reason = "the search over all kernel vectors under the cap was completed"
    stopped = "the search was stopped; a proved bound over all kernel vectors under the cap holds"
    while upper > best:
        if work.done or search.cuts > most_cuts:
            reason = stopped
            break
        # no value is believed to be the largest: the end comes when it is proved that nothing longer is left
        point, ended = search.longer(best + 1, work)
        if ended:
            upper = best
            break
        if point is None:
            reason = stopped
            break
        try:
            held = np.flatnonzero(point)
            pieces = decompose(matrix[:, held], point[held], effort=work)
        except RefusedError:
            reason = "a long move could not be split; a proved bound over all kernel vectors holds"
            break
        parts = np.zeros((len(pieces), len(point)), dtype=np.int64)
        parts[:, held] = pieces
        for part, value in zip(parts, lengths(query, parts, "l1").tolist()):
            if move is None or value > best:
                best, move = int(value), part
            search.forbid(part)
            search.forbid(-part)
    if upper > best:
        proved = search.bound(best, work)
        upper = upper if proved is None else min(upper, proved)
    if upper > best and work.done:
        reason = f"{reason}; {work.ended_by}"
    witness = None if move is None else witness_of(removed_part(move), move)
    return Bracket(upper, best, witness, "search", reason)


class _Cuts:
    """The model: added and removed records of each cell, and the length of the answer as objective."""

    def __init__(
        self, matrix: Ints, cap: int, query: Ints | None, capacity: int | None, effort: Effort
    ) -> None:
        # the constraints and the query, all of which are stated
        stated = A_CELL * matrix.shape[1] + (matrix.size + (0 if query is None else query.size)) // 5
        if not effort.affords(stated):
            raise RefusedError(
                f"{matrix.shape[1]:,} cells are too many to search with the effort that is left. Allow more effort.",
                code="moves.cap-deadline",
            )
        effort.spend(stated)
        self.cuts = 0
        self.query = query
        self.cells = cells = matrix.shape[1]
        most = cap if capacity is None else min(cap, capacity)
        asked = [] if query is None else [row for row in query if row.any()]
        # of each row of the query: the size of its answer, and on which side of 0 it lies
        sizes = [_reach(row, cap) for row in asked]
        self.program = Program(
            [0] * (2 * cells + 2 * len(asked)), [most] * (2 * cells) + sizes + [1] * len(asked)
        )
        for j in range(cells):
            self.program.require([(j, "<=", 0), (cells + j, "<=", 0)])
        for row in matrix:
            self.program.add(self._answer(row), 0, 0)
        self.program.add(dict.fromkeys(range(cells), 1), None, cap)
        self.program.add(dict.fromkeys(range(cells, 2 * cells), 1), None, cap)
        for at, (row, reach) in enumerate(zip(asked, sizes)):
            size, side = 2 * cells + at, 2 * cells + len(asked) + at
            answer = self._answer(row)
            self.program.add({**{j: -a for j, a in answer.items()}, size: 1, side: -2 * reach}, None, 0)
            self.program.add({**answer, size: 1, side: 2 * reach}, None, 2 * reach)
        counted = range(2 * cells) if query is None else range(2 * cells, 2 * cells + len(asked))
        self.length = dict.fromkeys(counted, 1)

    def _answer(self, row: Ints) -> dict[int, int]:
        where = np.flatnonzero(row).tolist()
        weights = row[where].tolist()
        return dict(
            zip([*where, *(self.cells + j for j in where)], [*weights, *(-w for w in weights)], strict=True)
        )

    def forbid(self, part: Ints) -> None:
        """Cut off every vector that contains the part."""
        self.program.require(
            (j if part[j] > 0 else self.cells + j, "<=", abs(int(part[j])) - 1)
            for j in np.flatnonzero(part).tolist()
        )
        self.cuts += 1

    def longer(self, least: int, effort: Effort) -> tuple[Ints | None, bool]:
        """A vector of length ``least`` or more, or whether it is proved that none is left."""
        answer = self.program.better(self.length, least, effort.share(1, 2))
        if answer.point is None:
            return None, answer.status == "none"
        both = np.array(answer.point[: 2 * self.cells], dtype=np.int64)
        return both[: self.cells] - both[self.cells :], False

    def bound(self, least: int, effort: Effort) -> int | None:
        """A proved bound on the length of what is left and of what was cut off, ``least`` being the longest of that."""
        return self.program.bound(self.length, effort, least)


def _reach(row: Ints, cap: int) -> int:
    """The largest answer of a row to so many records added and removed."""
    return cap * (max(int(row.max()), 0) - min(int(row.min()), 0))


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
    limits = ListingLimits(max_moves, Effort.of(effort))
    groups = classes_of(read)
    limits.check(0, read.size // 100)
    rows = list(_simple_moves(groups, read.shape[1], limits))
    balanced = record_total(read) is not None
    for removed, added in class_moves(groups.columns, cap, balanced, limits):
        for row in _spread(removed, added, groups, read.shape[1], room):
            rows.append(row)
            limits.check(len(rows), 10)
    return np.array(rows, dtype=np.int64).reshape(-1, read.shape[1])


def _simple_moves(groups: Classes, cells: int, limits: ListingLimits) -> Iterator[Ints]:
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
        ListingLimits of the listing and of the search; beyond them a bracket is returned.

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
    query_rows = read_query(query, read.shape[1])
    kind = read_norm(norm)
    room = read_capacity(capacity)
    work = Effort.of(effort)
    copies = (1 if query_rows is not None else 2) if room is None else max(2, -(-cap // max(room, 1)))
    kept = representatives(read, query_rows, copies)
    small = np.ascontiguousarray(read[:, kept])
    answer = None if query_rows is None else np.ascontiguousarray(query_rows[:, kept])
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
