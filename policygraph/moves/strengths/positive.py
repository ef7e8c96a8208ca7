"""Positive moves: a removed and an added record that no shorter change exchanges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import ConstraintError, InputError, RefusedError
from policygraph.moves.graver.minimal import find_smaller
from policygraph.moves.strengths.bracket import Occurrence, removed_part
from policygraph.moves.strengths.columns import (
    Ints,
    read_capacity,
    read_matrix,
    read_vector,
)
from policygraph.moves.strengths.markov import is_markov
from policygraph.moves.strengths.points import Points, Status
from policygraph.moves.values.presolve import presolve_values, read_values, told_rows


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
        Published values the table must have; None where not told.
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
    told = None if values is None else read_values(values, read.shape[0])
    answers = []
    for step in (change, -change):
        answer = _somewhere(read, step, room, told, effort)
        if answer.status == "yes" and answer.table is not None:
            start = np.array(answer.table, dtype=np.int64)
            return Occurrence("yes", plain(start if step is change else start + step), answer.reason)
        answers.append(answer)
    return next((a for a in answers if a.status == "unknown"), answers[0])


def _somewhere(
    matrix: Ints,
    change: Ints,
    capacity: int | None,
    told: tuple[int | None, ...] | None,
    effort: Effort | None,
) -> Occurrence:
    if capacity is None and told is None:
        table = removed_part(change)
        reason = simple_reason(change) or from_table(matrix, table, change, None, effort)
        if reason.alternative is not None:
            return Occurrence("no", None, reason.text)
        return Occurrence("yes" if reason.proved else "unknown", plain(table), reason.text)
    given = told if told is not None else (None,) * len(matrix)
    try:
        bounds = presolve_values(matrix, given, capacity)
    except ConstraintError as error:
        return Occurrence("no", None, str(error))
    rows, wanted = told_rows(matrix, given)
    lower = [max(a, b) for a, b in zip(bounds.lower, removed_part(change).tolist())]
    upper = [None if u is None else u - max(int(g), 0) for u, g in zip(bounds.upper, change)]
    if capacity is None:
        # where no told row limits a cell, fewer records only mean fewer alternatives
        upper = [low if not rows[:, j].any() else u for j, (low, u) in enumerate(zip(lower, upper))]
    simple = simple_reason(change)
    pairs: list[tuple[int, int]] = [(-1, -1)] if simple is not None else list(_pairs(change))
    shorter = int(np.abs(change).sum()) - 1
    open_pairs = False
    for t, u in pairs:
        tables = Points(rows, wanted, lower, upper)
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
