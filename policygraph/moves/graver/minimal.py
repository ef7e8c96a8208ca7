"""Single moves without a basis: is this one minimal, what lies below it, what is it made of.

Owns ``find_smaller``, ``is_minimal`` and ``decompose``, each exact for any integer matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError, RefusedError
from policygraph.linalg import Objects, as_integer_matrix, independent_rows
from policygraph.solver.program import Program

__all__ = ["decompose", "find_smaller", "is_minimal"]

Longs = npt.NDArray[np.int64]

HALF_LIMIT = 2**17
"""The most parts of a half of the move that are listed; beyond it a solver searches."""

SOLVER = 60 * SECOND
"""Work of the solver on one question."""


def is_minimal(
    matrix: npt.ArrayLike, move: npt.ArrayLike, capacity: int | None = None, *, effort: Effort | None = None
) -> bool:
    """Tell whether a vector is a minimal move of the matrix.

    Parameters
    ----------
    matrix
        m x n integers.
    move
        n integers.
    capacity
        When given, a vector with a larger absolute entry is no move.
    effort
        Work that may be spent, of which a question that needs a solver takes a minute's worth at most; None for no end.

    Returns
    -------
    bool
        True if the vector is non-zero, in the kernel, within the capacity, and nothing smaller lies below it.

    Raises
    ------
    RefusedError
        If the question could not be settled.

    Examples
    --------
    >>> is_minimal([[1, 1, 1]], [1, -1, 0]), is_minimal([[1, 1, 1]], [2, -1, -1])
    (True, False)
    """
    rows, vector = _checked(matrix, move)
    if not np.any(vector) or np.any(rows @ vector != 0):
        return False
    if capacity is not None and max(abs(value) for value in vector.tolist()) > capacity:
        return False
    return _search(rows, vector, Effort.of(effort)) is None


def find_smaller(matrix: npt.ArrayLike, move: npt.ArrayLike, *, effort: Effort | None = None) -> Longs | None:
    """Return a move that lies strictly and conformally below the given one, or None if it is minimal.

    Parameters
    ----------
    matrix
        m x n integers.
    move
        n integers with ``matrix @ move = 0``.
    effort
        Work that may be spent, of which a question that needs a solver takes a minute's worth at most; None for no end.

    Returns
    -------
    numpy.ndarray or None
        h with ``matrix @ h = 0``, h neither 0 nor the move, each entry between 0 and that of the move.

    Raises
    ------
    InputError
        If the vector is not in the kernel.
    RefusedError
        If the question could not be settled.

    Examples
    --------
    >>> find_smaller([[1, 1]], [2, -2]).tolist()
    [1, -1]

    Notes
    -----
    With ``c_x = sign(g_x) A_x`` the question is whether ``sum of t_x c_x = 0`` has a solution with ``0 <= t <= |g|``
    other than the two ends. The support is cut into two halves, the sums of each half are listed, and equal sums are
    looked up; when the halves are too long, an integer program decides, whose answer rests on no single solver.
    """
    rows, vector = _checked_move(matrix, move)
    return _search(rows, vector, Effort.of(effort))


def decompose(matrix: npt.ArrayLike, move: npt.ArrayLike, *, effort: Effort | None = None) -> list[Longs]:
    """Write a move as a sum of minimal moves that never cancel each other.

    Parameters
    ----------
    matrix
        m x n integers.
    move
        n integers with ``matrix @ move = 0``.
    effort
        Work that may be spent, of which a question that needs a solver takes a minute's worth at most; None for no end.

    Returns
    -------
    list of numpy.ndarray
        Minimal moves, each conformally below the given one; their sum is the given one. Empty for the zero vector.

    Raises
    ------
    InputError
        If the vector is not in the kernel.
    RefusedError
        If minimality of a part could not be settled.

    Examples
    --------
    >>> [part.tolist() for part in decompose([[1, 1, 1]], [2, -1, -1])]
    [[1, -1, 0], [1, 0, -1]]
    """
    rows, vector = _checked_move(matrix, move)
    parts: list[Longs] = []
    work = Effort.of(effort)
    pending = [vector] if np.any(vector) else []
    while pending:
        whole = pending.pop()
        part = _search(rows, whole, work)
        if part is None:
            parts.append(whole.astype(np.int64))
            continue
        # What was found is taken as often as it fits, so that a long multiple costs one search only.
        times = min(int(whole[x]) // int(part[x]) for x in np.flatnonzero(part))
        small = part.astype(object)
        rest = whole - times * small
        pieces = _pieces(rows, small, work)
        parts.extend(piece for _ in range(times) for piece in pieces)
        if np.any(rest):
            pending.append(rest)
    return sorted(parts, key=lambda part: [-value for value in np.abs(part).tolist()])


def _pieces(rows: Objects, whole: Objects, effort: Effort) -> list[Longs]:
    """Split a move down to minimal ones."""
    part = _search(rows, whole, effort)
    if part is None:
        return [whole.astype(np.int64)]
    return _pieces(rows, part.astype(object), effort) + _pieces(rows, whole - part.astype(object), effort)


def _checked(matrix: npt.ArrayLike, move: npt.ArrayLike) -> tuple[Objects, Objects]:
    """Return matrix and move as Python integers of matching sizes."""
    line = np.asarray(move)
    if line.ndim != 1:
        raise InputError(
            f"move of shape {line.shape}: expected one integer for each cell.", code="moves.move-shape"
        )
    vector = as_integer_matrix(line[None, :])[0]
    if any(abs(value) >= 2**62 for value in vector.tolist()):
        raise InputError("A move has an entry of 2**62 or more.", code="moves.move-entry")
    return as_integer_matrix(matrix, columns=line.size), vector


def _checked_move(matrix: npt.ArrayLike, move: npt.ArrayLike) -> tuple[Objects, Objects]:
    """The same, of a vector that keeps all rows."""
    rows, vector = _checked(matrix, move)
    if np.any(rows @ vector != 0):
        raise InputError(
            "The vector is not a move: matrix @ move is not zero. Give a change that keeps all constraints.",
            code="moves.not-in-kernel",
        )
    return rows, vector


def _search(rows: Objects, vector: Objects, effort: Effort) -> Longs | None:
    """Find a move strictly below a kernel vector, or None."""
    support = np.flatnonzero(vector != 0)
    if support.size == 0:
        return None
    sign = np.where(vector[support] > 0, 1, -1).astype(object)
    size = np.abs(vector[support])
    columns = rows[:, support] * sign
    columns = columns[independent_rows(columns)]
    halves = _halves(size)
    effort.spend(100 + columns.size)
    most = max(_count(size[half]) for half in halves)
    if most <= HALF_LIMIT:
        effort.spend(most * (10 + columns.shape[0]) // 50)
        times = _by_halves(columns, size, halves)
    else:
        times = _by_solver(columns, size, effort)
    if times is None:
        return None
    smaller = np.zeros(vector.size, dtype=object)
    smaller[support] = times * sign
    if np.any(rows @ smaller != 0) or not np.any(smaller) or not np.any(smaller != vector):
        raise RefusedError(
            "The search below a move returned a vector that is not a move.",
            code="moves.search-failed",
            found=smaller,
        )
    return smaller.astype(np.int64)


def _count(size: Objects) -> int:
    """Count the parts of a half."""
    count = 1
    for value in size.tolist():
        count *= value + 1
    return count


def _halves(size: Objects) -> tuple[list[int], list[int]]:
    """Cut the support in two so that both halves have about equally many parts."""
    halves: tuple[list[int], list[int]] = ([], [])
    counts = [1, 1]
    for position in sorted(range(size.size), key=lambda i: -int(size[i])):
        side = 0 if counts[0] <= counts[1] else 1
        halves[side].append(position)
        counts[side] *= int(size[position]) + 1
    return halves


def _sums(columns: Objects, size: Objects, half: list[int]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """List the sums of all parts of a half, and how often each part takes each cell."""
    bound = max((abs(value) for value in columns.reshape(-1).tolist()), default=0) * sum(size.tolist())
    kind: Any = np.int64 if bound < 2**62 else object
    sums = np.zeros((1, columns.shape[0]), dtype=kind)
    times = np.zeros((1, 0), dtype=np.int64)
    for position in half:
        steps = np.arange(int(size[position]) + 1)
        column = columns[:, position].astype(kind)
        grid = sums[:, None, :] + steps.astype(kind)[:, None] * column
        sums = grid.reshape(sums.shape[0] * steps.size, columns.shape[0])
        times = np.concatenate(
            [np.repeat(times, steps.size, axis=0), np.tile(steps, times.shape[0])[:, None]], axis=1
        )
    return sums, times


def _by_halves(columns: Objects, size: Objects, halves: tuple[list[int], list[int]]) -> Objects | None:
    """Search by listing the sums of two halves; exact, every match of hash keys is checked on the sums."""
    left, left_times = _sums(columns, size, halves[0])
    right, right_times = _sums(columns, size, halves[1])
    weights = np.random.Generator(np.random.PCG64(1)).integers(
        1, 2**62, size=columns.shape[0], dtype=np.int64
    )
    if left.dtype == object:
        keys = [
            np.array([hash(tuple(row)) for row in side.tolist()], dtype=np.int64) for side in (left, -right)
        ]
    else:
        keys = [left @ weights, -right @ weights]
    order = np.argsort(keys[1], kind="stable")
    ordered = keys[1][order]
    first = np.searchsorted(ordered, keys[0], side="left")
    last = np.searchsorted(ordered, keys[0], side="right")
    total = sum(size.tolist())
    for i in np.flatnonzero(last > first):
        for k in order[first[i] : last[i]]:
            taken = int(left_times[i].sum() + right_times[k].sum())
            if 0 < taken < total and np.all(left[i] + right[k] == 0):
                times = np.zeros(size.size, dtype=object)
                times[halves[0]] = left_times[i].tolist()
                times[halves[1]] = right_times[k].tolist()
                return times
    return None


def _by_solver(columns: Objects, size: Objects, effort: Effort) -> Objects | None:
    """Search as a whole-number program, which answers "none" only on a proof."""
    total = sum(size.tolist())
    program = Program([0] * len(size), size.tolist())
    for row in columns.tolist():
        program.add(enumerate(row), 0, 0)
    # One of a part and its complement has at most half of the entries.
    program.add(dict.fromkeys(range(len(size)), 1), 1, total // 2)
    answer = program.find(effort.at_most(SOLVER))
    if answer.status == "unknown":
        raise RefusedError(
            "Whether the move is minimal was not settled by the work that was allowed. Test a move with fewer cells.",
            code="moves.unsettled",
        )
    return None if answer.point is None else np.array(answer.point, dtype=object)
