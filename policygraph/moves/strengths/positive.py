"""Positive moves: a removed and an added record that no shorter change exchanges. Owns deciding, listing and the longest of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from policygraph.effort import Effort
from policygraph.errors import ConstraintError, InputError, RefusedError
from policygraph.moves.bracket import Bracket
from policygraph.moves.graver.minimal import find_smaller
from policygraph.moves.strengths.columns import (
    Ints,
    Occurrence,
    Pair,
    lengths,
    read_capacity,
    read_matrix,
    read_norm,
    read_query,
    read_vector,
    removed_part,
    witness_of,
)
from policygraph.moves.strengths.markov import is_markov
from policygraph.moves.values.presolve import presolve_values, published_rows, read_values
from policygraph.solver.program import Program

Status = Literal["found", "none", "unknown"]


@dataclass
class Points:
    """Integer points with A x = b between bounds, with further clauses added as a search goes on.

    Examples
    --------
    >>> Points(np.array([[1, 2]]), [3], [0, 0], [3, 3], clauses=[[(0, "<=", 1)]]).find()
    ('found', (1, 1))
    >>> Points(np.array([[2, 2]]), [3], [0, 0], [3, 3]).find()
    ('none', None)
    """

    matrix: Ints
    values: Sequence[int]
    lower: Sequence[int]
    upper: Sequence[int | None]
    clauses: list[list[tuple[int, Literal["<=", ">="], int]]] = field(default_factory=list)
    at_most: tuple[Sequence[int], int] | None = None

    def find(self, effort: Effort | None = None) -> tuple[Status, tuple[int, ...] | None]:
        """Find a point, prove that there is none, or give up when the effort is spent (None: no end)."""
        if any(u is not None and u < low for low, u in zip(self.lower, self.upper)):
            return "none", None
        work = Effort.of(effort)
        if work.done:
            return "unknown", None
        work.spend(200 + self.matrix.size // 5 + 10 * sum(map(len, self.clauses)))
        program = Program(self.lower, self.upper)
        for row, value in zip(self.matrix, self.values):
            cells = np.flatnonzero(row)
            program.add(zip(cells.tolist(), row[cells].tolist()), value, value)
        if self.at_most is not None:
            program.add(enumerate(self.at_most[0]), None, self.at_most[1])
        for clause in self.clauses:
            program.require(clause)
        answer = program.find(work)
        return answer.status, answer.point


@dataclass(frozen=True)
class Reason:
    """Why a move is positive or not; prints as a sentence.

    Attributes
    ----------
    text
        The sentence.
    pair
        Removed and added cell that no shorter change exchanges.
    alternative
        A shorter change that exchanges a removed and an added record of the move.
    proved
        False when the effort was spent; the move then counts as positive.

    Examples
    --------
    >>> str(Reason("a Markov move"))
    'a Markov move'
    """

    text: str
    pair: tuple[int, int] | None = None
    alternative: tuple[int, ...] | None = None
    proved: bool = True

    def __str__(self) -> str:
        return self.text


def is_positive(
    matrix: Any, table: Any, move: Any, *, capacity: int | None = None, effort: Effort | None = None
) -> tuple[bool, Reason]:
    """Decide whether a table and the table after a move are positive neighbours.

    Parameters
    ----------
    matrix
        Integer constraint matrix, one column for each cell.
    table
        The table before the move.
    move
        Change of the cells.
    capacity
        Most records of a cell; None for no limit.
    effort
        Work after which an open question counts as positive; None for no end.

    Returns
    -------
    tuple of bool and Reason
        The answer, and the exchanged pair or the shorter change behind it.

    Raises
    ------
    InputError
        When the move breaks a constraint, or a table has a cell below zero or above the capacity.

    Examples
    --------
    >>> rows = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    >>> positive, reason = is_positive(rows, [0, 1, 1, 0], [1, -1, -1, 1])
    >>> positive, str(reason)
    (True, 'a minimal move of at most four single changes (Markov) is positive')

    Notes
    -----
    The pair counts when the definition holds from either of the two tables, since neighbours are symmetric, and
    Markov moves always count: both only add neighbours. With a known total the definition itself gives the
    second (docs/explanation/proofs/strengths.md, section 3). A change that exchanges the pair but splits into smaller moves
    is an alternative too; the search is over all kernel vectors, minimal or not.
    """
    read = read_matrix(matrix)
    before = read_vector(table, read.shape[1], "table")
    change = read_vector(move, read.shape[1], "move")
    room = read_capacity(capacity)
    _check_pair(read, before, change, room)
    if not change.any():
        return False, Reason("the tables are equal")
    try:
        smaller = find_smaller(read, change, effort=effort)
    except RefusedError:
        if effort is None or not effort.done:
            raise
        return True, Reason(
            "the effort was spent before the move was tested; counted as positive", proved=False
        )
    if smaller is not None:
        return False, Reason("a smaller change keeps the constraints", alternative=plain(smaller))
    simple = simple_reason(change)
    if simple is not None:
        return True, simple
    forth = from_table(read, before, change, room, effort)
    if forth.alternative is None:
        return True, forth
    back = from_table(read, before + change, -change, room, effort)
    return (True, back) if back.alternative is None else (False, forth)


def plain(vector: Ints | Sequence[int]) -> tuple[int, ...]:
    """Write a vector as plain integers.

    Examples
    --------
    >>> plain(np.array([1, -1]))
    (1, -1)
    """
    return tuple(int(v) for v in vector)


def _check_pair(matrix: Ints, before: Ints, change: Ints, capacity: int | None) -> None:
    if (matrix @ change).any():
        raise InputError(
            "The move breaks a constraint: matrix @ move is not zero. Give a change between two valid tables.",
            code="moves.not-in-kernel",
            value=plain(change),
        )
    for name, table in (("before", before), ("after", before + change)):
        low, high = int(table.min(initial=0)), int(table.max(initial=0))
        if low < 0 or (capacity is not None and high > capacity):
            raise InputError(
                f"The table {name} the move has cells from {low} to {high}: expected 0 .. "
                f"{'any' if capacity is None else capacity}. The move removes only records that exist.",
                code="moves.table",
                value=plain(table),
            )


def simple_reason(change: Ints) -> Reason | None:
    """Reason why a minimal move is positive on every table, if there is one.

    Examples
    --------
    >>> simple_reason(np.array([2, -1, -1])) is None
    True
    """
    if is_markov(change):
        return Reason("a minimal move of at most four single changes (Markov) is positive")
    if not (change < 0).any() or not (change > 0).any():
        return Reason("a minimal move that only adds or only removes records is positive")
    return None


def _pairs(change: Ints) -> Iterator[tuple[int, int]]:
    added = np.flatnonzero(change > 0).tolist()
    for t in np.flatnonzero(change < 0).tolist():
        yield from ((t, u) for u in added)


def from_table(
    matrix: Ints, table: Ints, change: Ints, capacity: int | None, effort: Effort | None
) -> Reason:
    """Literal definition from one table: a pair without alternative, or the last alternative met.

    Examples
    --------
    >>> rows = np.array([[1, 1, 1], [0, 1, 2]])
    >>> from_table(rows, np.array([0, 2, 0]), np.array([1, -2, 1]), None, None).pair
    (1, 0)
    """
    shorter = int(np.abs(change).sum()) - 1
    known: list[tuple[int, ...]] = []
    for t, u in _pairs(change):
        if any(m[t] < 0 < m[u] for m in known):
            continue
        status, found = alternative(matrix, table, t, u, shorter, capacity, effort)
        if found is None:
            text = f"no shorter change removes a record of cell {t} and adds one to cell {u}"
            if status == "unknown":
                text = "the effort was spent before a shorter exchange was found or excluded; counted as positive"
            return Reason(text, (t, u), proved=status == "none")
        known.append(found)
    return Reason(
        "every removed and added record of the move can be exchanged by a shorter change",
        alternative=known[-1],
    )


def alternative(
    matrix: Ints,
    table: Ints,
    removed: int,
    added: int,
    most: int,
    capacity: int | None,
    effort: Effort | None = None,
) -> tuple[Status, tuple[int, ...] | None]:
    """Find a valid change of at most ``most`` records that removes and adds a record of the given cells.

    Examples
    --------
    >>> alternative(np.array([[1, 1, 1]]), np.array([1, 0, 0]), 0, 1, 2, None)
    ('found', (-1, 1, 0))
    """
    cells = matrix.shape[1]
    below = np.minimum(table, most)
    above = np.full(cells, most) if capacity is None else np.minimum(capacity - table, most)
    # one variable for the records added to each cell, one for those removed where there are any
    taken = np.flatnonzero(below)
    low = np.zeros(cells + len(taken), dtype=np.int64)
    low[added] = 1
    low[cells + int(np.searchsorted(taken, removed))] = 1
    high = np.concatenate([above, below[taken]])
    high[removed] = 0
    high[cells:][taken == added] = 0
    both = np.hstack([matrix, -matrix[:, taken]])
    status, point = Points(
        both, [0] * len(matrix), low.tolist(), high.tolist(), at_most=([1] * len(low), most)
    ).find(effort)
    if point is None:
        return status, None
    change = np.array(point[:cells], dtype=np.int64)
    change[taken] -= np.array(point[cells:], dtype=np.int64)
    return status, plain(change)


def positive_table(
    matrix: Any,
    move: Any,
    *,
    capacity: int | None = None,
    values: Sequence[int | None] | None = None,
    effort: Effort | None = None,
) -> Occurrence:
    """Look for a table on which a minimal move is positive.

    Parameters
    ----------
    matrix
        Integer constraint matrix, one column for each cell.
    move
        A minimal move; this is not checked.
    capacity
        Most records of a cell; None for no limit.
    values
        Published values the table must have; None where not published.
    effort
        Work after which the answer is "unknown"; None for no end.

    Returns
    -------
    Occurrence
        "yes" with a table (before the move), "no" when proved, or "unknown".

    Examples
    --------
    >>> positive_table([[1, 1, -2]], [1, 1, 1]).table
    (0, 0, 0)

    Notes
    -----
    Without capacity and values the removed part alone is the table with the fewest alternatives, because a larger
    table only allows more. Otherwise tables and alternatives are searched in turn: each alternative met is
    forbidden for the next table, until a table has none or no table is left
    (docs/explanation/proofs/strengths.md, section 4).
    """
    read = read_matrix(matrix)
    change = read_vector(move, read.shape[1], "move")
    room = read_capacity(capacity)
    published = None if values is None else read_values(values, read.shape[0])
    answers = []
    for step in (change, -change):
        answer = _somewhere(read, step, room, published, effort)
        if answer.status == "yes" and answer.table is not None:
            start = np.array(answer.table, dtype=np.int64)
            return Occurrence("yes", plain(start if step is change else start + step), answer.reason)
        answers.append(answer)
    return next((a for a in answers if a.status == "unknown"), answers[0])


def _somewhere(
    matrix: Ints,
    change: Ints,
    capacity: int | None,
    published: tuple[int | None, ...] | None,
    effort: Effort | None,
) -> Occurrence:
    if capacity is None and published is None:
        table = removed_part(change)
        reason = simple_reason(change) or from_table(matrix, table, change, None, effort)
        if reason.alternative is not None:
            return Occurrence("no", None, reason.text)
        return Occurrence("yes" if reason.proved else "unknown", plain(table), reason.text)
    given = published if published is not None else (None,) * len(matrix)
    try:
        bounds = presolve_values(matrix, given, capacity)
    except ConstraintError as error:
        return Occurrence("no", None, str(error))
    rows, totals = published_rows(matrix, given)
    lower = [max(a, b) for a, b in zip(bounds.lower, removed_part(change).tolist())]
    upper = [None if u is None else u - max(int(g), 0) for u, g in zip(bounds.upper, change)]
    if capacity is None:
        # where no published row limits a cell, fewer records only mean fewer alternatives
        upper = [low if not rows[:, j].any() else u for j, (low, u) in enumerate(zip(lower, upper))]
    simple = simple_reason(change)
    pairs: list[tuple[int, int]] = [(-1, -1)] if simple is not None else list(_pairs(change))
    shorter = int(np.abs(change).sum()) - 1
    open_pairs = False
    for t, u in pairs:
        tables = Points(rows, totals, lower, upper)
        while True:
            status, point = tables.find(effort)
            if point is None:
                open_pairs |= status == "unknown"
                break
            if simple is not None:
                return Occurrence("yes", point, simple.text)
            status, met = alternative(matrix, np.array(point), t, u, shorter, capacity, effort)
            if met is None and status == "none":
                text = (
                    f"on this table no shorter change removes a record of cell {t} and adds one to cell {u}"
                )
                return Occurrence("yes", point, text)
            if met is None:
                open_pairs = True
                break
            tables.clauses.append(_blocked(met, capacity))
    if open_pairs:
        return Occurrence("unknown", None, "the effort was spent, or the values leave a cell unlimited")
    return Occurrence("no", None, "on every table each exchange of the move is made by a shorter change")


def _blocked(change: tuple[int, ...], capacity: int | None) -> list[tuple[int, Any, int]]:
    """Clause on tables: the change removes a missing record or overfills a cell."""
    missing: list[tuple[int, Any, int]] = [(j, "<=", -v - 1) for j, v in enumerate(change) if v < 0]
    if capacity is None:
        return missing
    return missing + [(j, ">=", capacity - v + 1) for j, v in enumerate(change) if v > 0]


def positive_moves(
    matrix: Any,
    moves: Any,
    *,
    capacity: int | None = None,
    basis: Any = None,
    effort: Effort | None = None,
) -> Ints:
    """Keep the minimal moves that are positive on some table.

    Parameters
    ----------
    matrix
        Integer constraint matrix, one column for each cell.
    moves
        Minimal moves, one per row.
    capacity
        Most records of a cell; None for no limit.
    basis
        All minimal moves (one of each pair of signs), when known; makes the answer fast without a solver.
        It must hold every minimal move shorter than those asked for.
    effort
        Work after which undecided moves are kept, which is the safe side; None for no end.

    Returns
    -------
    int64 array
        The rows kept, in their order.

    Examples
    --------
    >>> rows = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    >>> positive_moves(rows, [[1, -1, -1, 1]]).tolist()
    [[1, -1, -1, 1]]

    Notes
    -----
    A move is kept when it or its reverse is positive on some table. A shortest alternative is a minimal move that
    holds both records, or a sum of two minimal moves without cancellation, one with each record; so a complete
    basis decides (docs/explanation/proofs/strengths.md, section 4).
    """
    read = read_matrix(matrix)
    listed = read_matrix(moves, "moves", read.shape[1])
    room = read_capacity(capacity)
    known = _Known(listed if basis is None else read_matrix(basis, "basis", read.shape[1]))
    work = Effort.of(effort)
    kept = [
        i for i, g in enumerate(listed) if _decide(read, g, known, room, basis is not None, work).possible
    ]
    return listed[kept]


def _decide(
    matrix: Ints, change: Ints, known: _Known, capacity: int | None, complete: bool, effort: Effort
) -> Occurrence:
    """Positive on some table, in one direction or the other."""
    if capacity is not None:
        return positive_table(matrix, change, capacity=capacity, effort=effort)
    simple = simple_reason(change)
    if simple is not None:
        return Occurrence("yes", plain(removed_part(change)), simple.text)
    answer = Occurrence("no", None, "each exchange of the move is made by a shorter change")
    for step in (change, -change):
        table = removed_part(step)
        if effort.done:
            return Occurrence("unknown", None, "the effort was spent")
        effort.spend(30 + len(known.moves) // 400)
        open_pairs = _uncovered(step, table, known)
        if not open_pairs:
            continue
        start = plain(table if step is change else table + step)
        if complete:
            return Occurrence(
                "yes", start, f"no shorter change exchanges the records of cells {open_pairs[0]}"
            )
        reason = from_table(matrix, table, step, None, effort)
        if reason.alternative is None:
            if reason.proved:
                return Occurrence("yes", start, reason.text)
            answer = Occurrence("unknown", None, reason.text)
    return answer


class _Known:
    """Known moves of both signs, short ones first, with the sets of cells they take records from as bits."""

    def __init__(self, moves: Ints) -> None:
        both = np.vstack([moves, -moves])
        sizes = np.abs(both).sum(axis=1)
        order = np.argsort(sizes, kind="stable")
        self.moves, self.sizes = both[order], sizes[order]
        self.takes = _bits(self.moves < 0)

    def usable(self, table: Ints, most: int) -> Ints:
        """Moves of at most ``most`` records that the table allows."""
        end = int(np.searchsorted(self.sizes, most, side="right"))
        empty = _bits(table[None, :] == 0)[0]
        short = self.moves[:end][~(self.takes[:end] & empty).any(axis=1)]
        allowed: Ints = short[(short + table >= 0).all(axis=1)]
        return allowed


def _bits(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    words = -(-flags.shape[1] // 64)
    padded = np.zeros((flags.shape[0], 64 * words), dtype=bool)
    padded[:, : flags.shape[1]] = flags
    return np.packbits(padded, axis=1).view(np.uint64)


def _uncovered(change: Ints, table: Ints, known: _Known) -> list[tuple[int, int]]:
    """Pairs of removed and added cells that the known moves, alone or two together, do not exchange."""
    shorter = int(np.abs(change).sum()) - 1
    usable = known.usable(table, shorter)
    removed, added = np.flatnonzero(change < 0), np.flatnonzero(change > 0)
    covered = (usable[:, removed] < 0).T.astype(np.int64) @ (usable[:, added] > 0).astype(np.int64)
    left = []
    for a, b in np.argwhere(covered == 0).tolist():
        t, u = int(removed[a]), int(added[b])
        if not _two_together(usable, table, t, u, shorter):
            left.append((t, u))
    return left


def _two_together(usable: Ints, table: Ints, removed: int, added: int, most: int) -> bool:
    takes = usable[usable[:, removed] < 0]
    gives = usable[usable[:, added] > 0]
    for h in takes:
        sums: npt.NDArray[np.int64] = gives + h
        fit = (sums + table >= 0).all(axis=1) & (np.abs(sums).sum(axis=1) <= most)
        if (fit & (sums[:, removed] < 0) & (sums[:, added] > 0)).any():
            return True
    return False


def longest_positive(
    matrix: Any,
    moves: Any,
    query: Any = None,
    norm: str = "l1",
    *,
    capacity: int | None = None,
    basis: Any = None,
    effort: Effort | None = None,
) -> Bracket[Pair]:
    """Find the positive move that changes a query's answer the most.

    Parameters
    ----------
    matrix, moves, capacity, basis, effort
        As for :func:`positive_moves`; ``moves`` must hold all minimal moves, one of each pair of signs.
    query
        Integer matrix of the query; None is the table itself.
    norm
        "l1", or "l2" for the squared Euclidean norm.

    Returns
    -------
    Bracket
        Exact unless the effort was spent.

    Examples
    --------
    >>> longest_positive([[1, 1]], [[1, -1]]).upper
    2
    """
    read = read_matrix(matrix)
    listed = read_matrix(moves, "moves", read.shape[1])
    query_rows = read_query(query, read.shape[1])
    kind = read_norm(norm)
    room = read_capacity(capacity)
    known = _Known(listed if basis is None else read_matrix(basis, "basis", read.shape[1]))
    work = Effort.of(effort)
    values = lengths(query_rows, listed, kind)
    upper: int | None = None
    reason = "moves were taken from the longest down; every longer one is positive on no table"
    for i in np.argsort(-values, kind="stable").tolist():
        answer = _decide(read, listed[i], known, room, basis is not None, work)
        if not answer.possible:
            continue
        if upper is None:
            upper = int(values[i])
        if answer.status == "yes" and answer.table is not None:
            if upper > values[i]:
                reason = f"undecided moves count as positive; {work.ended_by}"
            witness = witness_of(np.array(answer.table), listed[i])
            return Bracket(upper, int(values[i]), witness, "descent", reason)
    if upper is None:
        return Bracket(0, 0, None, "descent", "no move is positive")
    return Bracket(upper, 0, None, "descent", f"undecided moves count as positive; {work.ended_by}")
