"""Columns of an integer constraint matrix, and exact norms of moves: what the strengths of neighbours share.

Owns reading, classes of equal columns, sums by hash, the record total, and whether a table allows a move.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.linalg import combined, modular_echelon, read_integers, small_fraction

Ints = npt.NDArray[np.int64]

LARGEST_ENTRY = 2**31
"""Entries stay below this so that sums over a move are exact in 64 bits."""


def read_matrix(matrix: Any, name: str = "matrix", cells: int | None = None) -> Ints:
    """Read an integer matrix and refuse anything that is not one.

    Examples
    --------
    >>> read_matrix([[1, 1], [0, 1]]).shape
    (2, 2)
    """
    given = matrix if isinstance(matrix, np.ndarray) else np.array(matrix, dtype=object)
    if given.ndim == 2 and cells is not None and given.shape[1] != cells:
        raise InputError(
            f"{name} has {given.shape[1]} columns: expected {cells}, one for each cell.",
            code="moves.cells",
            value=given.shape,
        )
    array = read_integers(given, cells, name=name, code="moves.matrix")
    if array.size and max(abs(int(array.max())), abs(int(array.min()))) >= LARGEST_ENTRY:
        raise InputError(
            f"{name} has an entry of 2^31 or more: expected smaller integers. Divide the row by a common factor.",
            code="moves.entry",
            value=int(max(array.max(), -array.min())),
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def read_vector(vector: Any, cells: int, name: str) -> Ints:
    """Read one integer for each cell.

    Examples
    --------
    >>> read_vector([0, 1], 2, "move").tolist()
    [0, 1]
    """
    row: Ints = read_matrix(np.asarray(vector).reshape(1, -1), name, cells)[0]
    return row


def read_capacity(capacity: int | None) -> int | None:
    """Read the capacity of a cell: None, or an integer >= 0.

    Examples
    --------
    >>> read_capacity(1)
    1
    """
    if capacity is None:
        return None
    try:
        value = operator.index(capacity)
    except TypeError:
        value = -1
    if value < 0:
        raise InputError(
            f"capacity={capacity!r}: expected None or an integer >= 0, the most records a cell can hold.",
            code="moves.capacity",
            value=capacity,
        )
    return value


@dataclass(frozen=True)
class Classes:
    """Cells grouped by equal columns, those without any constraint kept apart.

    Attributes
    ----------
    columns
        One distinct non-zero column per row (classes by constraints).
    members
        The cells of each class, ascending.
    free
        Cells whose column is zero: each is a move of its own.
    """

    columns: Ints
    members: tuple[tuple[int, ...], ...]
    free: tuple[int, ...]


def classes_of(matrix: Ints) -> Classes:
    """Group the cells by equal columns.

    Examples
    --------
    >>> classes_of(read_matrix([[1, 1, 0], [0, 0, 0]]))
    Classes(columns=array([[1, 0]]), members=((0, 1),), free=(2,))
    """
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        empty = np.zeros((0, matrix.shape[0]), dtype=np.int64)
        return Classes(empty, (), tuple(range(matrix.shape[1])))
    # as bytes, most significant first and the sign turned round, columns have the order of their entries
    keys = (np.ascontiguousarray(matrix.T).view(np.uint64) ^ np.uint64(1 << 63)).astype(">u8")
    found: dict[bytes, list[int]] = {}
    for j, key in enumerate(keys):
        found.setdefault(key.tobytes(), []).append(j)
    groups = [found[key] for key in sorted(found)]
    distinct = matrix.T[[members[0] for members in groups]]
    constrained = np.any(distinct, axis=1)
    return Classes(
        np.ascontiguousarray(distinct[constrained]),
        tuple(tuple(members) for members, kept in zip(groups, constrained.tolist()) if kept),
        tuple(j for members, kept in zip(groups, constrained.tolist()) if not kept for j in members),
    )


def representatives(matrix: Ints, query: Ints | None, copies: int) -> list[int]:
    """Cells that stand for all: at most ``copies`` of those with equal columns in matrix and query.

    Cells with equal columns can be exchanged without changing which vectors are moves or what the query
    answers, so a move of largest answer can be found among moves on as many copies as it can touch. Without
    a query (each cell is its own answer) norms do not change under the exchange either.

    Examples
    --------
    >>> representatives(read_matrix([[1, 1, 1, 2]]), None, 2)
    [0, 1, 3]
    """
    stacked = matrix if query is None else np.vstack([matrix, query])
    seen: dict[bytes, int] = {}
    kept = []
    for j, column in enumerate(np.ascontiguousarray(stacked.T)):
        key = column.tobytes()
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= copies:
            kept.append(j)
    return kept


def linear_hash(columns: Ints) -> npt.NDArray[np.uint64]:
    """Hash each row so that equal sums of rows have equal sums of hashes (modulo 2^64).

    Being linear, it never separates equal sums: a search by hash misses nothing, and what it finds is
    checked exactly. The multipliers are fixed, so results do not depend on the run.

    Examples
    --------
    >>> h = linear_hash(read_matrix([[1, 2], [3, 4], [4, 6]]))
    >>> bool(h[0] + h[1] == h[2])
    True
    """
    generator = np.random.Generator(np.random.PCG64(20110612))
    multipliers = generator.integers(0, 2**64, size=columns.shape[1], dtype=np.uint64) | np.uint64(1)
    total: npt.NDArray[np.uint64] = (columns.astype(np.uint64) * multipliers).sum(axis=1, dtype=np.uint64)
    return total


def record_total(matrix: Ints) -> tuple[Fraction, ...] | None:
    """Multipliers of the rows that add up to one for every cell, or None if none were found.

    When they exist, the number of records is known and every move removes as many records as it adds.

    Examples
    --------
    >>> record_total(read_matrix([[1, 1, 0], [0, 0, 2]]))
    (Fraction(1, 1), Fraction(1, 2))
    >>> record_total(read_matrix([[1, 1, 0]])) is None
    True

    Notes
    -----
    Independent columns are picked and the multipliers solved on them modulo a prime, read as fractions of small
    numbers, and checked exactly on every column; an unlucky prime, large multipliers, or more than 200 rows of which
    no consecutive 0/1 rows cover every cell once and whose sums differ, can only turn an answer into None.
    """
    rows, cells = matrix.shape
    if cells == 0 or rows == 0 or not matrix.any(axis=0).all():
        return None
    cover = _partition_of_cells(matrix)
    if cover is not None:
        return tuple(Fraction(int(i in cover)) for i in range(rows))
    sums = matrix.sum(axis=0)
    if sums[0] and (sums == sums[0]).all():
        # the degrees of both ends of an edge, say
        return tuple([Fraction(1, int(sums[0]))] * rows)
    if rows > 200:
        return None
    # multipliers on independent columns modulo a prime; unknowns that are free are 0
    picked = modular_echelon(matrix)[1]
    _, pivots, (ones,) = modular_echelon(matrix[:, picked].T, np.ones((len(picked), 1), dtype=np.int64))
    answer = [Fraction(0)] * rows
    for row, column in enumerate(pivots):
        small = small_fraction(int(ones[row, 0]))
        if small is None:
            return None
        answer[column] = small
    made, bottom = combined(matrix, answer)
    return tuple(answer) if all(entry == bottom for entry in made) else None


def _partition_of_cells(matrix: Ints) -> set[int] | None:
    """Consecutive 0/1 rows that cover every cell exactly once, as the cells of a cuboid do."""
    counted = ((matrix == 0) | (matrix == 1)).all(axis=1)
    for start in range(min(matrix.shape[0], 64)):
        covered = np.zeros(matrix.shape[1], dtype=bool)
        used: set[int] = set()
        for i in range(start, matrix.shape[0]):
            row = matrix[i].astype(bool)
            if not counted[i] or (covered & row).any():
                break
            covered |= row
            used.add(i)
        if covered.all():
            return used
    return None


def change_vector(cells: int, removed: Sequence[int], added: Sequence[int]) -> Ints:
    """Write a change of records as a vector over cells.

    Examples
    --------
    >>> change_vector(3, [0, 0], [2]).tolist()
    [-2, 0, 1]
    """
    vector = np.zeros(cells, dtype=np.int64)
    np.add.at(vector, list(removed), -1)
    np.add.at(vector, list(added), 1)
    return vector


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


def within_cap(moves: Ints, cap: int | None) -> Ints:
    """The moves, one per row, that add at most ``cap`` records and remove at most ``cap``.

    Examples
    --------
    >>> within_cap(np.array([[1, -1, 0], [1, 1, -2]]), 1).tolist()
    [[1, -1, 0]]
    """
    if cap is None:
        return moves
    added, removed = np.maximum(moves, 0).sum(axis=1), np.maximum(-moves, 0).sum(axis=1)
    kept: Ints = moves[np.maximum(added, removed) <= cap]
    return kept


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
