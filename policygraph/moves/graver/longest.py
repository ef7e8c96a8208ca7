"""The longest minimal move of an integer constraint matrix: exact, or between two proved numbers.

Owns :func:`longest_move`, and upper bounds that need no list of moves: the determinant and box bounds of any matrix, the swap
problem, whose longest sequence bounds the moves of every table with the same classes, however many classes there are, and the
cycle bound, for swaps that are arcs between few vertices. Proofs: ``docs/explanation/proofs/graver.md``.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError, RefusedError
from policygraph.linalg import (
    Objects,
    as_integer_matrix,
    column_classes,
    independent_rows,
    kernel_basis,
    rank,
)
from policygraph.moves.arcs import longest_arcs
from policygraph.moves.bracket import Bracket
from policygraph.moves.graver.basis import IncompleteBasisError, graver_basis, merged_basis, spread_first
from policygraph.moves.graver.lift import Limits
from policygraph.moves.graver.minimal import decompose, is_minimal
from policygraph.moves.paired import longest_walk

__all__ = ["SwapProblem", "cheap_bound", "cycle_bound", "longest_move", "swap_problem"]

SWAP_LIMIT = 400
"""The most distinct swaps of a swap problem that is worth building."""

PAIR_LIMIT = 5_000_000
"""The most matrix entries that are looked at to gather swaps."""


def cheap_bound(matrix: npt.ArrayLike, capacity: int | None = None) -> int:
    """Return a number that the L1 norm of no minimal move exceeds.

    Parameters
    ----------
    matrix
        m x n integers.
    capacity
        Largest absolute entry of a move, or None.

    Returns
    -------
    int
        The smallest of the determinant bound, the box bound, the bound by walks where each column has two ends at most
        and, with a capacity, capacity times n. Always valid, often far too large.

    Examples
    --------
    >>> cheap_bound([[1, 1, 1]])
    2
    >>> cheap_bound([[1, 0], [0, 1]])
    0

    Notes
    -----
    With r the rank and d = n - r: a minimal move is a circuit, or a conformal combination of at most d circuits with
    coefficients below 1; a circuit has at most r + 1 entries, each at most a minor of order r, which Hadamard's
    inequality bounds. Second, the columns that a move uses can be ordered so that partial sums stay in a box of
    half-width r times the largest entry of each row (Steinitz); minimality makes partial sums distinct.
    """
    given = as_integer_matrix(matrix)
    rows = given[independent_rows(given)]
    r, n = rows.shape
    d = n - r
    if d == 0:
        return 0
    if r == 0:
        return 1
    squares = rows * rows
    by_column = 1
    for value in sorted((int(v) for v in squares.sum(axis=0)), reverse=True)[:r]:
        by_column *= max(1, value)
    by_row = 1
    box = 1
    for row in squares.tolist():
        by_row *= max(1, sum(sorted(row, reverse=True)[:r]))
        box *= 2 * r * isqrt(max(row)) + 1
    minor = isqrt(min(by_column, by_row))
    bounds = [d * (r + 1) * minor, box]
    if capacity is not None:
        bounds.append(capacity * n)
    for some in (given, rows):
        walk = longest_walk({at: int(x) for at, x in enumerate(column) if x} for column in some.T.tolist())
        if walk is not None:
            bounds.append(walk[0])
    return int(min(bounds))


def cycle_bound(swaps: npt.ArrayLike) -> int | None:
    """Return a number that the L1 norm of no minimal move of a matrix of valued arcs exceeds.

    Parameters
    ----------
    swaps
        m x n integers, the columns of a swap problem.

    Returns
    -------
    int or None
        None when the rows are not the incidences of arcs between vertices and at most one row of values.

    Examples
    --------
    Three vertices, an arc between each two, with values 1, 0 and 0:

    >>> cycle_bound([[1, 0, 0], [-1, 1, 0], [1, 0, -1], [0, -1, 1]])
    8

    Notes
    -----
    A minimal move of such a matrix is a sequence of arcs and values that sums to zero and has no smaller zero sum: see :func:`~policygraph.moves.arcs.longest_arcs`.
    """
    matrix = as_integer_matrix(swaps)
    rows = [row for row in matrix.tolist() if any(row)]
    found = []
    for index, value in enumerate([*rows, [0] * matrix.shape[1]]):
        others = rows[:index] + rows[index + 1 :]
        # A row that repeats the values follows from them, and may stand for them or for a vertex.
        for arcs in (others, [row for row in others if row not in (value, [-entry for entry in value])]):
            plain = all(abs(entry) <= 1 for row in arcs for entry in row)
            if plain and all(sum(column) == 0 and sum(map(abs, column)) <= 2 for column in zip(*arcs)):
                most = max(map(abs, value), default=0)  # a column and its opposite are one
                found.append(longest_arcs(max(1, len(arcs)), -most, most))
    return min(found, default=None)


@dataclass(frozen=True)
class SwapProblem:
    """The swaps inside classes of cells whose totals are known, as columns of a matrix of their own.

    Parameters
    ----------
    matrix
        One column for each swap, up to sign.
    places
        For each column, the pairs (x, y) of cells, one or more for each class, whose swap x -> y it is.
    owner
        For each cell, the index of its class.
    """

    matrix: Objects
    places: tuple[tuple[tuple[int, int], ...], ...]
    owner: tuple[int, ...]


def swap_problem(matrix: npt.ArrayLike) -> SwapProblem | None:
    """Return the swap problem with the fewest distinct swaps, or None when no rows of the matrix form a partition.

    Parameters
    ----------
    matrix
        m x n integers.

    Returns
    -------
    SwapProblem or None
        None as well when there are too many distinct swaps for the problem to be of use.

    Examples
    --------
    A 2 x 2 table with both margins: the only swap changes the row within a column, or back.

    >>> swap_problem([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]).matrix.tolist()
    [[0], [0], [-1], [1]]

    Notes
    -----
    If the total of every class is known, a move takes as many records out of a class as it puts in; pairing them
    gives half as many swaps as the L1 norm, with swap vectors that sum to zero. A part of the swaps that sums to zero
    is a smaller move, so in a minimal move there is none: twice the largest L1 norm of a minimal move of the swap
    matrix bounds that of the given one.
    """
    rows = as_integer_matrix(matrix)
    best: SwapProblem | None = None
    for owner in _partitions(rows):
        problem = _swaps(rows, owner)
        if problem is not None and (best is None or problem.matrix.shape[1] < best.matrix.shape[1]):
            best = problem
    return best


def _partitions(rows: Objects) -> list[tuple[int, ...]]:
    """List partitions of the cells into supports of 0/1 rows, found greedily from each row on."""
    n = rows.shape[1]
    supports = [np.flatnonzero(row != 0) for row in rows]
    plain = [k for k, row in enumerate(rows) if supports[k].size and np.all((row == 0) | (row == 1))]
    found: set[tuple[int, ...]] = set()
    for first in plain:
        owner = np.full(n, -1, dtype=np.int64)
        for label, k in enumerate([first, *(k for k in plain if k > first)]):
            if np.all(owner[supports[k]] < 0):
                owner[supports[k]] = label
        if np.all(owner >= 0):
            _, index = np.unique(owner, return_inverse=True)
            found.add(tuple(int(i) for i in index))
    return sorted(found, key=lambda owner: (-max(owner), owner))[:8]


def _swaps(rows: Objects, owner: tuple[int, ...]) -> SwapProblem | None:
    """Gather the swaps of a partition, or None when there are too many."""
    cells: dict[int, list[int]] = {}
    for cell, label in enumerate(owner):
        cells.setdefault(label, []).append(cell)
    columns = [tuple(column) for column in rows.T.tolist()]
    found: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    if sum(len(members) ** 2 for members in cells.values()) * max(1, rows.shape[0]) > PAIR_LIMIT:
        return None
    for members in cells.values():
        for x in members:
            for y in members:
                vector = tuple(b - a for a, b in zip(columns[x], columns[y]))
                first = next((value for value in vector if value), 0)
                if first < 0:
                    found.setdefault(vector, []).append((x, y))
        if len(found) > SWAP_LIMIT:
            return None
    ordered = sorted(found)
    swaps = np.zeros((rows.shape[0], len(ordered)), dtype=object)
    for index, vector in enumerate(ordered):
        swaps[:, index] = vector
    return SwapProblem(swaps, tuple(tuple(found[vector]) for vector in ordered), owner)


Longs = npt.NDArray[np.int64]

Norm = Literal["l1", "l2squared"]

MOST_MOVES = 1_500_000
"""The most moves that are held while searching for the longest one."""

FEW_CELLS, FEW_SWAPS, MORE_SWAPS = 30, 14, 24
"""Up to so many kinds of swaps are listed: few when the cells themselves are few enough to be listed."""

CLIMB = 10 * SECOND
"""Work on a better witness when there are too many moves to hold and no end was given."""


@dataclass(frozen=True)
class _Measure:
    """How large a move is: the norm of its image under an integer matrix, or its own norm."""

    query: Objects | None
    norm: Norm

    @property
    def plain(self) -> bool:
        """Whether moves are measured by their own L1 norm, which merging cells keeps."""
        return self.query is None and self.norm == "l1"

    def of(self, move: Longs) -> int:
        """Return the size of one move, exactly."""
        return int(self._sizes(move[None, :])[0])

    def largest(self, moves: Longs) -> int:
        """Return the index of the largest move."""
        return int(np.argmax(self._sizes(moves)))

    @cached_property
    def _top(self) -> int:
        """Largest entry of the matrix; it is read through once, since it may have a million entries."""
        return 1 if self.query is None else max((abs(v) for v in self.query.reshape(-1).tolist()), default=0)

    @cached_property
    def _columns(self) -> npt.NDArray[Any] | None:
        """What each cell contributes, a row for each, in 64 bits where the entries fit; None where moves measure themselves."""
        if self.query is None:
            return None
        return np.ascontiguousarray(self.query.T.astype(np.int64 if self._top < 2**62 else object))

    def _norms(self, images: npt.NDArray[Any]) -> npt.NDArray[Any]:
        sizes: npt.NDArray[Any] = (np.abs(images) if self.norm == "l1" else images * images).sum(axis=1)
        return sizes

    def _kind(self, most: int, height: int) -> Any:
        """Type in which no size of a move of L1 norm at most ``most`` can wrap."""
        return np.int64 if (self._top * most) ** 2 * max(1, height) < 2**62 else object

    def _sizes(self, moves: Longs) -> npt.NDArray[Any]:
        most, columns = int(np.abs(moves).sum(axis=1).max(initial=0)), self._columns
        if columns is None:
            return self._norms(moves.astype(self._kind(most, moves.shape[1])))
        kind = self._kind(most, columns.shape[1])
        met = np.flatnonzero(np.any(moves != 0, axis=0))
        return self._norms(moves[:, met].astype(kind) @ columns[met].astype(kind))

    def _of_cells(self, n: int) -> int:
        """The largest size of a step in one cell."""
        columns = self._columns
        if columns is None:
            return min(1, n)
        return int(self._norms(columns.astype(self._kind(1, columns.shape[1]))).max(initial=0))

    def bound(self, length: int, swaps: SwapProblem | None, n: int) -> int:
        """Return a bound on the size of a move of L1 norm at most ``length``, step by step or swap by swap."""
        if swaps is None:
            steps, largest = length, self._of_cells(n)
        else:
            pairs = [pair for places in swaps.places for pair in places]
            steps, parts = length // 2, np.zeros((len(pairs), n), dtype=np.int64)
            for row, (x, y) in zip(parts, pairs):
                row[x], row[y] = -1, 1
            largest = int(self._sizes(parts).max(initial=0))
        return steps * largest if self.norm == "l1" else steps * steps * largest


def longest_move(
    matrix: npt.ArrayLike,
    *,
    capacity: int | None = None,
    weights: npt.ArrayLike | None = None,
    effort: Effort | None = None,
    symmetries: npt.ArrayLike | None = None,
    query: npt.ArrayLike | None = None,
    norm: Norm = "l1",
) -> Bracket[Longs]:
    """Find the largest size of a minimal move, or bracket it.

    Parameters
    ----------
    matrix
        m x n integers; moves g have ``matrix @ g = 0``.
    capacity
        Only moves with entries between -capacity and capacity count.
    weights
        n integers: the size of a move is the sum of ``weights[x] * |g[x]|``. Not together with ``query``.
    effort
        Work that may be spent; None means until done (or too many moves to hold).
    symmetries
        As for ``graver_basis``.
    query
        k x n integers W: the size of a move is the norm of ``W g``. None measures the move itself.
    norm
        ``"l1"``, or ``"l2squared"`` for the square of the Euclidean norm.

    Returns
    -------
    Bracket
        A minimal move as witness of the lower end, and a proved upper end.

    Raises
    ------
    InputError
        If the arrays do not fit together.

    Examples
    --------
    >>> bracket = longest_move([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    >>> bracket.lower, bracket.exact, bracket.witness.tolist()
    (4, True, [1, -1, -1, 1])

    Notes
    -----
    The ladder: the swap problem when it is small (it may settle tables of any length along one attribute), listing
    all minimal moves, and otherwise the best minimal move found together with the smallest bound that holds.
    """
    rows = as_integer_matrix(matrix)
    n = rows.shape[1]
    measure = _measure(n, weights, query, norm)
    work = Effort.of(effort)
    ceiling = _ceiling(rows, capacity, measure, work)
    best, complete = ceiling.witness, False
    if not (measure.plain and measure.of(best) == ceiling.length):
        found, complete = _search(rows, capacity, symmetries, measure, ceiling.length, work)
        best = max(best, found, key=measure.of)
    if not complete and not np.any(best):
        best = _some_move(rows, capacity)
    if np.any(best):
        best = best * np.sign(best[np.flatnonzero(best)[0]])
    lower = measure.of(best)
    if complete:
        return Bracket(lower, lower, best, "enumeration", "All minimal moves were listed.")
    upper = max(
        lower, min(measure.bound(ceiling.length, None, n), measure.bound(ceiling.length, ceiling.swaps, n))
    )
    reason = ceiling.reason if work.endless or lower == upper else f"{ceiling.reason[:-1]}; {work.ended_by}."
    return Bracket(upper, lower, best, ceiling.method, reason)


@dataclass(frozen=True, eq=False)
class _Ceiling:
    """A bound on the L1 norm, why it holds, and a minimal move met on the way."""

    length: int
    method: str
    reason: str
    witness: Longs
    swaps: SwapProblem | None


def _ceiling(rows: Objects, capacity: int | None, measure: _Measure, effort: Effort) -> _Ceiling:
    """Bound the L1 norm of minimal moves without listing them."""
    n = rows.shape[1]
    nothing = np.zeros(n, dtype=np.int64)
    classes = column_classes(rows)
    merged = classes.matrix
    # A move inside a class of merged cells has norm 2 at most; all others are as long as a merged move.
    inside = 2 if any(len(cells) > 1 for cells in classes.members) else min(1, len(classes.zero))
    total = None if capacity is None else capacity * n
    length = max(inside, cheap_bound(merged))
    general = (
        "Determinants bound circuits, and a minimal move is a conformal sum of at most n - rank of them."
    )
    result = _Ceiling(length, "bounds", general, nothing, None)
    if total is not None and total < length:
        result = replace(result, length=total, reason="No cell changes by more than its capacity.")
    swaps = swap_problem(merged)
    if swaps is None:
        return result
    pairwise = "The swaps inside classes of known total form a sequence without a smaller zero sum"
    if not any(len(cells) > 1 for cells in classes.members) and not classes.zero:
        result = replace(result, swaps=swaps if np.array_equal(merged, rows) else None)
    cheap = max(inside, 2 * max(2, cheap_bound(swaps.matrix)))
    if cheap < result.length:
        result = replace(result, length=cheap, reason=f"{pairwise}, whose length determinants bound.")
    cycles = cycle_bound(swaps.matrix)
    if cycles is not None and max(inside, 2 * max(2, cycles)) < result.length:
        reason = f"{pairwise}; they are simple cycles whose values have sum zero."
        result = replace(result, length=max(inside, 2 * max(2, cycles)), method="cycles", reason=reason)
    if swaps.matrix.shape[1] > (FEW_SWAPS if merged.shape[1] <= FEW_CELLS else MORE_SWAPS):
        return result
    longest, move = _longest_swaps(merged, swaps, capacity, effort.share(2, 5))
    witness = nothing if move is None else spread_first(move, classes, n, capacity)
    if longest is not None and max(inside, 2 * longest) <= result.length:
        reason = f"{pairwise}; all such sequences were listed."
        return replace(
            result, length=max(inside, 2 * longest), method="swaps", reason=reason, witness=witness
        )
    return replace(result, witness=witness)


def _measure(n: int, weights: npt.ArrayLike | None, query: npt.ArrayLike | None, norm: Norm) -> _Measure:
    """Check and hold how moves are measured."""
    if norm not in ("l1", "l2squared"):
        raise InputError(f"norm={norm!r}: expected 'l1' or 'l2squared'.", code="moves.norm", norm=norm)
    if weights is not None and query is not None:
        raise InputError(
            "weights and query are both given: put the weights into the query.", code="moves.measure"
        )
    if weights is not None:
        line = as_integer_matrix(np.asarray(weights).reshape(1, -1), columns=n)[0]
        return _Measure(np.diag(line), norm)
    return _Measure(None if query is None else as_integer_matrix(query, columns=n), norm)


def _search(
    rows: Objects,
    capacity: int | None,
    symmetries: npt.ArrayLike | None,
    measure: _Measure,
    length: int,
    effort: Effort,
) -> tuple[Longs, bool]:
    """Return the best minimal move of a complete list, or else of complete lists of short moves."""
    best = np.zeros(rows.shape[1], dtype=np.int64)
    if effort.endless:
        try:
            return _best(rows, capacity, symmetries, measure, length, effort), True
        except IncompleteBasisError:
            return _climb(rows, capacity, measure, best, length, effort.at_most(CLIMB)), False
    # The whole list is tried once, with half of the work: a second try would begin anew.
    with suppress(IncompleteBasisError):
        return _best(rows, capacity, symmetries, measure, length, effort.share(1, 2)), True
    # Complete lists of moves of norm 2, 4, ...: each gives a proved lower end.
    short = effort.share(3, 10)
    size = 2
    while size <= length and not short.done:
        try:
            found = _best(rows, capacity, symmetries, measure, size, short)
        except IncompleteBasisError:
            break
        best = max(best, found, key=measure.of)
        size += 2
    return _climb(rows, capacity, measure, best, length, effort.share(9, 10)), False


def _climb(
    rows: Objects, capacity: int | None, measure: _Measure, best: Longs, length: int, effort: Effort
) -> Longs:
    """Improve a minimal move by listing all minimal moves on its cells and a few others, again and again.

    A minimal move of some of the columns, zero elsewhere, is a minimal move of all columns. The cells that join are
    drawn from a fixed pseudo-random sequence, so that the same call does the same search.
    """
    n = rows.shape[1]
    generator = np.random.Generator(np.random.PCG64(1))
    size = min(n, rank(rows) + 4)
    quick, most = 0, measure.bound(length, None, n)
    while not effort.done and measure.of(best) < most:
        inside = np.flatnonzero(best)
        outside = generator.permutation(np.setdiff1d(np.arange(n), inside))
        chosen = np.sort(np.concatenate([inside, outside[: max(2, size - inside.size)]]))
        part = effort.at_most(SECOND // 2)
        part.spend(1_000)
        try:
            moves = graver_basis(
                rows[:, chosen],
                capacity=capacity,
                max_moves=20_000,
                effort=part,
                symmetries=[],
            )
        except IncompleteBasisError:
            size = max(inside.size + 2, size - 1)
            quick = 0
            continue
        quick = quick + 1 if part.spent < SECOND // 10 else 0
        if quick >= 5:
            size, quick = min(n, size + 1), 0
        if len(moves):
            wide = np.zeros((len(moves), n), dtype=np.int64)
            wide[:, chosen] = moves
            best = max(best, wide[measure.largest(wide)], key=measure.of)
    return best


def _some_move(rows: Objects, capacity: int | None) -> Longs:
    """Return a minimal move below a short vector of the null space, so that a bound comes with a pair; zero when it is not found at once."""
    nothing = np.zeros(rows.shape[1], dtype=np.int64)
    kernel = kernel_basis(rows)
    if not len(kernel):
        return nothing
    short = min(kernel, key=lambda vector: int(np.abs(vector).sum()))
    try:
        move = decompose(rows, short, effort=Effort(SECOND))[0]
    except RefusedError:
        return nothing
    return move if capacity is None or int(np.abs(move).max()) <= capacity else nothing


def _best(
    rows: Objects,
    capacity: int | None,
    symmetries: npt.ArrayLike | None,
    measure: _Measure,
    length: int,
    effort: Effort,
) -> Longs:
    """Return the largest minimal move of L1 norm at most ``length``; zero when there is none."""
    n = rows.shape[1]
    nothing = np.zeros(n, dtype=np.int64)
    if not measure.plain:
        moves = graver_basis(
            rows,
            capacity=capacity,
            max_moves=MOST_MOVES,
            effort=effort,
            symmetries=symmetries,
            max_norm=length,
        )
        return moves[measure.largest(moves)] if len(moves) else nothing
    merged, classes = merged_basis(rows, capacity, Limits(MOST_MOVES, effort, length), symmetries)
    candidates = [nothing]
    if len(merged):
        candidates.append(spread_first(merged[measure.largest(merged)], classes, n, capacity))
    if capacity != 0:
        if classes.zero and length >= 1:
            candidates.append(np.eye(1, n, classes.zero[0], dtype=np.int64)[0])
        double = next((index for index, cells in enumerate(classes.members) if len(cells) > 1), None)
        if double is not None and length >= 2:
            pair = nothing.copy()
            cells, signs = classes.members[double], classes.signs[double]
            pair[[cells[0], cells[1]]] = (signs[0], -signs[1])
            candidates.append(pair)
    return max(candidates, key=measure.of)


def _longest_swaps(
    rows: Objects, swaps: SwapProblem, capacity: int | None, effort: Effort
) -> tuple[int | None, Longs | None]:
    """Return the length of the longest minimal sequence of swaps, and a minimal move made of a long one."""
    try:
        sequences = graver_basis(swaps.matrix, max_moves=MOST_MOVES, effort=effort)
    except IncompleteBasisError:
        return None, None
    lengths = np.abs(sequences).sum(axis=1)
    # A swap and its opposite, in two classes, are a minimal sequence as well; the matrix has one column for both.
    longest = max(2, int(lengths.max(initial=0)))
    for index in np.lexsort([np.count_nonzero(sequences, axis=1), -lengths])[:200]:
        move = _placed(sequences[index], swaps, rows.shape[1])
        if effort.done:
            break
        try:
            if move is not None and is_minimal(rows, move, capacity, effort=effort):
                return longest, move
        except RefusedError:
            continue
    return longest, None


def _placed(sequence: Longs, swaps: SwapProblem, n: int) -> Longs | None:
    """Put the swaps of a sequence into the cells, each kind into a class of its own, or None when classes run out."""
    used: set[int] = set()
    move = np.zeros(n, dtype=np.int64)
    kinds = sorted(np.flatnonzero(sequence).tolist(), key=lambda k: len(swaps.places[k]))
    for kind in kinds:
        place = next(((x, y) for x, y in swaps.places[kind] if swaps.owner[x] not in used), None)
        if place is None:
            return None
        used.add(swaps.owner[place[0]])
        move[place[0]] -= sequence[kind]
        move[place[1]] += sequence[kind]
    return move
