"""What searches for the longest move share: exact norms of answers, and whether a table allows a move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.moves.strengths.columns import Ints, read_matrix

Norm = Literal["l1", "l2"]
Pair = tuple[tuple[int, ...], tuple[int, ...]]
"""Two neighbouring tables, as a table and a move that leads from it to another valid one."""


MOST_ANSWERS = 1 << 23
"""Answers of moves that are held at once."""


@dataclass(frozen=True)
class Occurrence:
    """Whether some valid table allows a move.

    Attributes
    ----------
    status
        "yes" with a table, "no" when that is proved, "unknown" otherwise.
    table
        A table on which the move happens.
    reason
        Why.

    Examples
    --------
    >>> Occurrence("unknown", None, "the effort was spent").possible
    True
    """

    status: Literal["yes", "no", "unknown"]
    table: tuple[int, ...] | None
    reason: str

    @property
    def possible(self) -> bool:
        """Whether the move must be reckoned with: what is unknown counts."""
        return self.status != "no"


def read_norm(norm: str) -> Norm:
    """Read the name of a norm.

    Examples
    --------
    >>> read_norm("l2")
    'l2'
    """
    for known in get_args(Norm):
        if norm == known:
            return "l1" if known == "l1" else "l2"
    raise InputError(f"norm={norm!r}: expected 'l1' or 'l2'.", code="moves.norm", value=norm)


def read_query(query: Any, cells: int) -> Ints | None:
    """Read an integer query matrix, one column for each cell; None is the table itself.

    Examples
    --------
    >>> read_query([[1, 1]], 2).tolist()
    [[1, 1]]
    """
    return None if query is None else read_matrix(query, "query", cells)


def lengths(query: Ints | None, moves: Ints, norm: Norm) -> npt.NDArray[Any]:
    """Exact L1 norms, or squared L2 norms, of the query's answers to moves given as rows.

    Examples
    --------
    >>> lengths(None, np.array([[1, -2]]), "l2").tolist()
    [5]

    Notes
    -----
    Sums that could leave 64 bits are taken with Python integers.
    """
    if moves.shape[0] == 0:
        return np.zeros(0, dtype=np.int64)
    largest = int(np.abs(moves).max())
    if query is None:
        bound, rows = largest, moves.shape[1]
    else:
        bound = largest * max((int(np.abs(query).max()) if query.size else 0), 1) * moves.shape[1]
        rows = query.shape[0]
    wide = (bound if norm == "l1" else bound * bound) * max(rows, 1) >= 2**62 or bound >= 2**62
    onto = None if query is None else query.T.astype(object) if wide else query.T
    # Answers can be many more than cells, so that only some moves have theirs at a time.
    chunk = max(1, MOST_ANSWERS // max(1, rows))
    parts: list[npt.NDArray[Any]] = []
    for start in range(0, moves.shape[0], chunk):
        steps = moves[start : start + chunk]
        steps = steps.astype(object) if wide else steps
        answers = steps if onto is None else steps @ onto
        parts.append((np.abs(answers) if norm == "l1" else answers * answers).sum(axis=1))
    result: npt.NDArray[Any] = np.concatenate(parts)
    return result


def removed_part(move: Ints) -> Ints:
    """The records a move removes; the smallest table on which it can happen.

    Examples
    --------
    >>> removed_part(np.array([2, -1])).tolist()
    [0, 1]
    """
    part: Ints = np.maximum(-move, 0)
    return part


def witness_of(table: Ints, move: Ints) -> Pair:
    """Write a table and a move as plain integers.

    Examples
    --------
    >>> witness_of(np.array([0, 1]), np.array([1, -1]))
    ((0, 1), (1, -1))
    """
    return tuple(int(v) for v in table), tuple(int(v) for v in move)
