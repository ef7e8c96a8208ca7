"""Moves that the published values allow: a move counts only if some table with these values contains what it removes.

Owns :class:`Fibre`, the tables with these values, and :func:`longest_with_values`; ``presolve`` bounds the cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from typing import Any, Literal, get_args

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import ConstraintError, InputError, RefusedError
from policygraph.moves.bracket import Bracket
from policygraph.moves.graver.basis import graver_basis
from policygraph.moves.strengths.capped import capped_moves
from policygraph.moves.strengths.columns import (
    Ints,
    Norm,
    Occurrence,
    Pair,
    lengths,
    read_capacity,
    read_matrix,
    read_norm,
    read_query,
    read_vector,
    record_total,
    removed_part,
    within_cap,
    witness_of,
)
from policygraph.moves.strengths.markov import is_markov, markov_moves
from policygraph.moves.strengths.positive import Points, plain, positive_table
from policygraph.moves.values.presolve import CellBounds, presolve_values, published_rows, read_values

__all__ = [
    "Bracket",
    "CellBounds",
    "Occurrence",
    "listed_directly",
    "longest_with_values",
    "moves_with_values",
    "occurs",
    "presolve_values",
]


def occurs(
    matrix: Any,
    values: Sequence[int | None],
    move: Any,
    capacity: int | None = None,
    *,
    effort: Effort | None = None,
) -> Occurrence:
    """Decide whether some table with the published values allows a move.

    Parameters
    ----------
    matrix
        Integer constraint matrix, one column for each cell.
    values
        Published value of each row; None where it is not published, and any value is then possible.
    move
        Change of the cells that keeps all rows.
    capacity
        Most records of a cell; None for no limit.
    effort
        Work after which the answer is "unknown", which counts as possible.

    Returns
    -------
    Occurrence
        "yes" with a table that contains the removed part, "no" when that is proved, or "unknown".

    Raises
    ------
    InputError
        When the move breaks a row.
    ConstraintError
        When the values contradict each other already cell by cell.

    Examples
    --------
    >>> rows = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    >>> occurs(rows, [1, 1, 1, 1], [1, -1, -1, 1]).table
    (0, 1, 1, 0)
    >>> occurs(rows, [0, 2, 1, 1], [1, -1, -1, 1]).status
    'no'

    Notes
    -----
    T and T + g are tables with these values exactly when T - g^- is a table with the values b - A g^- and, with a
    capacity c, at most c - |g| in each cell. A found table is re-checked with integers; "no" rests on no
    single solver, within bounds that hold for every table (docs/explanation/proofs/published-values.md, section 3).
    """
    read = read_matrix(matrix)
    change = read_vector(move, read.shape[1], "move")
    if (read @ change).any():
        raise InputError(
            "The move breaks a constraint: matrix @ move is not zero. Give a change between two valid tables.",
            code="moves.not-in-kernel",
            value=plain(change),
        )
    return Fibre.of(read, values, capacity).allows(change, effort)


@dataclass
class Fibre:
    """The tables with published values; answers are kept by what is left after the removed part.

    Examples
    --------
    >>> fibre = Fibre.of(read_matrix([[1, 1]]), [1], None)
    >>> fibre.allows(np.array([1, -1]), None).table, fibre.allows(np.array([2, -2]), None).status
    ((0, 1), 'no')
    """

    matrix: Ints
    values: tuple[int | None, ...]
    capacity: int | None
    bounds: CellBounds
    rows: Ints
    row_values: list[int]
    answers: dict[bytes, Occurrence] = field(default_factory=dict)

    @staticmethod
    def of(matrix: Ints, values: Sequence[int | None], capacity: int | None) -> Fibre:
        """Read values and capacity, and bound the cells."""
        published = read_values(values, matrix.shape[0])
        room = read_capacity(capacity)
        rows, row_values = published_rows(matrix, published)
        return Fibre(matrix, published, room, presolve_values(matrix, published, room), rows, row_values)

    def within_bounds(self, moves: Ints) -> Ints:
        """Drop the moves that a cell's bounds or a row of counts already forbid."""
        limit = np.array([-1 if c is None else min(c, 2**62) for c in self.bounds.change], dtype=np.int64)
        good = ((np.abs(moves) <= limit) | (limit < 0)).all(axis=1)
        counts = np.all(self.rows >= 0, axis=1).tolist()
        lowest = np.array(self.bounds.lower, dtype=object)
        asked = [(r, b) for r, b, c in zip(self.rows, self.row_values, counts) if c]
        room = np.array([b - int(r.astype(object) @ lowest) for r, b in asked])
        taken = np.maximum(-moves, 0) @ self.rows[counts].T
        if room.size:
            good &= (taken <= room).all(axis=1)
        kept: Ints = moves[good]
        return kept

    def allows(self, change: Ints, effort: Effort | None) -> Occurrence:
        """Whether some table contains the removed part of a move, other cells permitting."""
        if not len(self.within_bounds(change[None, :])):
            return Occurrence("no", None, "the values bound a cell or a sum below what the move needs")
        removed = removed_part(change)
        key = (
            (self.rows @ removed).tobytes()
            if self.capacity is None
            else np.abs(change).tobytes() + removed.tobytes()
        )
        known = self.answers.get(key)
        if known is None or known.status == "unknown":
            known = self._solve(change, removed, effort)
            self.answers[key] = known
        if known.table is None:
            return known
        table = np.array(known.table, dtype=np.int64) + removed
        return Occurrence("yes", plain(table), "a table with these values contains the removed part")

    def _solve(self, change: Ints, removed: Ints, effort: Effort | None) -> Occurrence:
        """The rest of the table after the removed part; only the rows decide it when cells have no capacity."""
        free = (~np.any(self.rows, axis=0)).tolist()
        upper: list[int | None] = []
        for j, high in enumerate(self.bounds.upper):
            if free[j]:
                upper.append(0)
            elif self.capacity is not None and high is not None:
                upper.append(high - abs(int(change[j])))
            else:
                # any bound of a table also bounds the rest of it
                upper.append(high)
        rest = [b - int(r @ removed) for r, b in zip(self.rows, self.row_values)]
        status, point = Points(self.rows, rest, [0] * len(upper), upper).find(effort)
        if status == "none":
            return Occurrence("no", None, "proved: no table with these values contains the removed part")
        if point is None:
            return Occurrence("unknown", None, "the effort was spent, or the values leave a cell unlimited")
        return Occurrence("yes", point, "found")


Strength = Literal["worst", "positive", "markov"]

FEW_SUMS, FEW_RECORDS = 100_000, 5
"""Up to so many sums of columns and records, moves are listed directly instead of by a Graver basis."""
LISTED_ENTRIES = 40_000_000
"""Most entries of a list of Markov moves."""


def listed_directly(cells: int, records: int | None) -> bool:
    """Whether moves of so many records over so many cells are few enough to be listed by sums of columns.

    Examples
    --------
    >>> listed_directly(100, 2), listed_directly(1000, 2), listed_directly(10, None)
    (True, False, False)
    """
    return records is not None and records <= FEW_RECORDS and comb(cells + records - 1, records) <= FEW_SUMS


def moves_with_values(
    matrix: Any,
    values: Sequence[int | None],
    capacity: int | None = None,
    *,
    at_most_records: int | None = None,
    max_moves: int | None = None,
    effort: Effort | None = None,
) -> Ints:
    """List the minimal moves that the bounds of the cells allow, one of each pair of signs.

    Parameters
    ----------
    matrix, values, capacity
        As for :func:`occurs`.
    at_most_records
        Cap on the records added and on those removed; None for no cap.
    max_moves, effort
        Limits after which the listing is refused.

    Returns
    -------
    int64 array
        Moves over all cells, one per row. Every move between two tables with these values is among them, up to
        its sign; some of them may still not occur.

    Raises
    ------
    RefusedError
        When the listing does not finish within the limits.

    Examples
    --------
    >>> rows = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    >>> moves_with_values(rows, [1, 2, 2, 1]).tolist(), moves_with_values(rows, [0, 3, 2, 1]).tolist()
    ([[-1, 1, 1, -1]], [])

    Notes
    -----
    Cells that are the same in every table are dropped before any move is computed. When the values tell the
    number of records, no move removes or adds more of them; a small number is listed by sums of columns.
    """
    read = read_matrix(matrix)
    fibre = Fibre.of(read, values, capacity)
    kept = list(fibre.bounds.kept)
    if not kept:
        return np.zeros((0, read.shape[1]), dtype=np.int64)
    small = np.ascontiguousarray(read[:, kept])
    ranges = fibre.bounds.change
    change = [ranges[j] for j in kept]
    known = [c for c in change if c is not None]
    largest = max(known) if len(known) == len(change) else None
    cap = _records(fibre)
    if at_most_records is not None:
        cap = at_most_records if cap is None else min(cap, at_most_records)
    if listed_directly(len(kept), cap):
        found = capped_moves(small, int(cap or 0), largest, max_moves=max_moves, effort=effort)
    else:
        found = graver_basis(small, capacity=largest, max_moves=max_moves, effort=effort)
    found = within_cap(found, at_most_records)
    whole = np.zeros((len(found), read.shape[1]), dtype=np.int64)
    whole[:, kept] = found
    return fibre.within_bounds(whole)


def _records(fibre: Fibre) -> int | None:
    """Records that are not fixed by the lower bounds, when the published values determine their number."""
    kept = list(fibre.bounds.kept)
    total = record_total(np.ascontiguousarray(fibre.rows[:, kept]))
    if total is None:
        return None
    lowest = np.array(fibre.bounds.lower, dtype=object)
    rest = [b - int(r.astype(object) @ lowest) for r, b in zip(fibre.rows, fibre.row_values)]
    return max(0, int(sum((y * b for y, b in zip(total, rest)), Fraction(0))))


def longest_with_values(
    matrix: Any,
    values: Sequence[int | None],
    moves: Any = None,
    query: Any = None,
    norm: str = "l1",
    *,
    capacity: int | None = None,
    strength: Strength = "worst",
    at_most_records: int | None = None,
    max_moves: int | None = None,
    effort: Effort | None = None,
) -> Bracket[Pair]:
    """Find the largest change of a query between neighbouring tables with the published values.

    Parameters
    ----------
    matrix, values, capacity
        As for :func:`occurs`.
    moves
        All minimal moves of the matrix (one of each pair of signs), when known; else they are computed on the cells
        that can change.
    query
        Integer matrix of the query; None is the table itself.
    norm
        "l1", or "l2" for the squared Euclidean norm.
    strength
        "worst", "positive" or "markov".
    at_most_records
        Cap on the records added and on those removed; None for no cap.
    max_moves, effort
        Limits; beyond them a bracket is returned.

    Returns
    -------
    Bracket
        The witness is a table with these values and a move it allows.

    Raises
    ------
    ConstraintError
        When no table has these values.
    RefusedError
        When the moves cannot be listed and the values bound nothing.

    Examples
    --------
    >>> rows = [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1]]
    >>> longest_with_values(rows, [1, 1, 1, 0, 1]).upper
    4
    >>> longest_with_values(rows, [0, 2, 1, 0, 1]).upper
    0

    Notes
    -----
    Two tables with the same values are neighbours exactly when their difference is a minimal move of the matrix,
    since every table between them has these values too. Moves are taken from the longest down; the first that
    occurs is the answer, and an undecided one raises the upper bound.
    """
    if strength not in get_args(Strength):
        raise InputError(
            f"strength={strength!r}: expected 'worst', 'positive' or 'markov'.",
            code="moves.strength",
            value=strength,
        )
    read = read_matrix(matrix)
    query_rows = read_query(query, read.shape[1])
    kind = read_norm(norm)
    work = Effort.of(effort)
    fibre = Fibre.of(read, values, capacity)
    if fibre.allows(np.zeros(read.shape[1], dtype=np.int64), work).status == "no":
        raise ConstraintError(
            "No table has these values; check the published numbers.", code="values.infeasible"
        )
    try:
        listed = _candidates(fibre, moves, strength, at_most_records, max_moves, work)
    except RefusedError as refusal:
        return _bound(fibre, query_rows, kind, at_most_records, refusal)
    return _descend(fibre, listed, query_rows, kind, strength, work)


def _candidates(
    fibre: Fibre,
    moves: Any,
    strength: Strength,
    at_most: int | None,
    max_moves: int | None,
    effort: Effort,
) -> Ints:
    cells = fibre.matrix.shape[1]
    if moves is None and strength == "markov":
        kept = list(fibre.bounds.kept)
        most = LISTED_ENTRIES // max(1, cells)
        most = most if max_moves is None else min(most, max_moves)
        rows = [*_within(markov_moves(np.ascontiguousarray(fibre.matrix[:, kept])), most, effort)]
        listed = np.zeros((len(rows), cells), dtype=np.int64)
        if rows:
            listed[:, kept] = np.array(rows)
    elif moves is None:
        return moves_with_values(
            fibre.matrix,
            fibre.values,
            fibre.capacity,
            at_most_records=at_most,
            max_moves=max_moves,
            effort=effort.share(1, 2),
        )
    else:
        listed = read_matrix(moves, "moves", cells)
        if strength == "markov":
            listed = listed[[is_markov(g) for g in listed]]
    return fibre.within_bounds(within_cap(listed, at_most))


def _within(moves: Iterator[Ints], most: int, effort: Effort) -> Iterator[Ints]:
    for count, move in enumerate(moves):
        effort.spend(10)
        if count >= most or effort.done:
            raise RefusedError(
                f"{count:,} Markov moves and more, too many to list. Allow more effort or take the bound.",
                code="values.max-moves",
            )
        yield move


def _descend(
    fibre: Fibre, moves: Ints, query: Ints | None, norm: Norm, strength: Strength, effort: Effort
) -> Bracket[Pair]:
    sizes = lengths(query, moves, norm)
    upper: int | None = None
    reason = "moves were taken from the longest down; no longer one occurs on a table with these values"
    for i in np.argsort(-sizes, kind="stable").tolist():
        if upper is not None and effort.done:
            break  # all that is left could only raise the lower end
        effort.spend(20)
        answer = fibre.allows(moves[i], effort)
        if answer.possible and strength == "positive":
            answer = positive_table(
                fibre.matrix,
                moves[i],
                capacity=fibre.capacity,
                values=fibre.values,
                effort=effort,
            )
        if not answer.possible:
            continue
        upper = int(sizes[i]) if upper is None else upper
        if answer.status == "yes" and answer.table is not None:
            if upper > sizes[i]:
                reason = (
                    "undecided moves count as occurring; every move longer than the upper bound is excluded"
                )
            witness = witness_of(np.array(answer.table, dtype=np.int64), moves[i])
            return Bracket(upper, int(sizes[i]), witness, "descent", reason)
    if upper is None:
        return Bracket(
            0, 0, None, "descent", "no move occurs: the values determine the table up to equal answers"
        )
    return Bracket(upper, 0, None, "descent", "undecided moves count as occurring")


def _bound(
    fibre: Fibre, query: Ints | None, norm: Norm, at_most: int | None, refusal: RefusedError
) -> Bracket[Pair]:
    """Triangle inequality over the cells that can change, each by at most its range, and over the records."""
    one = np.eye(fibre.matrix.shape[1], dtype=np.int64)[list(fibre.bounds.kept)]
    sizes = lengths(query, one, "l1").tolist()
    ranges = fibre.bounds.change
    change = [ranges[j] for j in fibre.bounds.kept]
    bounds = []
    if all(c is not None for c in change):
        bounds.append(sum(c * s for c, s in zip(change, sizes) if c is not None))
    caps = [c for c in (_records(fibre), at_most) if c is not None]
    if caps:
        bounds.append(2 * min(caps) * max(sizes, default=0))
    if not bounds:
        raise refusal
    # the Euclidean norm is at most the L1 norm
    best = min(bounds) if norm == "l1" else min(bounds) ** 2
    return Bracket(
        best, 0, None, "bound", f"every cell changes within its bounds, or by all records ({refusal})"
    )
