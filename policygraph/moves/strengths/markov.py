"""Markov moves: at most four non-zero cells, all +1 or -1, found directly by sums of columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.moves.bracket import Bracket
from policygraph.moves.strengths.columns import (
    Ints,
    Norm,
    Pair,
    change_vector,
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

FIRST_CELLS = 600
"""With more cells a longest Markov move is looked for among so many first."""
PAIRS_A_UNIT = 5
"""Sums of two columns that make a unit of work; they are not begun when what is left does not suffice."""
MOST_PAIRS = 50_000_000
"""Pairs of distinct columns that are held at once; 10,000 distinct columns."""

ClassMove = tuple[tuple[int, ...], tuple[int, ...]]
"""Classes of the removed and of the added records, with repetition."""


def is_markov(move: Any) -> bool:
    """Whether a minimal move has at most four non-zero cells, all +1 or -1.

    Minimality is not checked here.

    Examples
    --------
    >>> is_markov([1, -1, -1, 1]), is_markov([2, -1, -1])
    (True, False)
    """
    vector = np.asarray(move)
    return bool(np.abs(vector).max(initial=0) <= 1 and np.count_nonzero(vector) <= 4)


def markov_moves(matrix: Any, capacity: int | None = None) -> Iterator[Ints]:
    """List the Markov moves of an integer matrix, lazily, one of each pair of signs.

    Parameters
    ----------
    matrix
        Integer constraint matrix, one column for each cell.
    capacity
        Most records of a cell; None for no limit.

    Returns
    -------
    iterator of int64 vectors
        Shorter moves first.

    Raises
    ------
    RefusedError
        When the matrix has too many distinct columns to list the sums of two.

    Examples
    --------
    >>> [m.tolist() for m in markov_moves([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])]
    [[-1, 1, 1, -1]]

    Notes
    -----
    Cells with equal columns are one class. A sum of at most four signed columns vanishes only if two parts of
    at most two columns have equal sums; equal sums have equal linear hashes, so sorting the hashes of all sums
    of two columns finds every candidate, and each is checked exactly (docs/explanation/proofs/strengths.md, section 2).
    """
    read = read_matrix(matrix)
    room = read_capacity(capacity)
    return iter(()) if room == 0 else _all_moves(read)


def _all_moves(matrix: Ints) -> Iterator[Ints]:
    search = _MovesOfFour(matrix)
    for size in (1, 2, 3, 4):
        for removed, added in search.moves(size):
            yield change_vector(search.cells, removed, added)


class _MovesOfFour:
    """The Markov moves of one matrix, by size; sums of two columns are made once, when first needed."""

    def __init__(self, matrix: Ints) -> None:
        self.cells = matrix.shape[1]
        self.groups = classes_of(matrix)
        self.columns = self.groups.columns
        self.hashes = linear_hash(self.columns)
        self.balanced = record_total(matrix) is not None
        self.alone = all(len(members) == 1 for members in self.groups.members)
        self._pairs: _Pairs | None = None

    @property
    def pairs(self) -> _Pairs:
        if self._pairs is None:
            self._pairs = _Pairs(self.columns, self.hashes)
        return self._pairs

    def moves(self, size: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Cells of the removed and of the added records of the Markov moves with ``size`` records."""
        if size == 1:
            yield from (((), (j,)) for j in self.groups.free)
        if size == 2:
            for members in self.groups.members:
                yield from (((i,), (j,)) for i, j in combinations(members, 2))
        for removed, added in self._by_class(size):
            for before in self._choices(removed):
                for after in self._choices(added):
                    yield before, after

    def batches(self, size: int) -> Iterator[tuple[npt.NDArray[np.intp], int]]:
        """The same moves as rows of cells with the number of removed ones, which come first in a row."""
        if size == 4 and self.alone and self.balanced:
            cell = np.array([members[0] for members in self.groups.members], dtype=np.intp)
            for quads in self.pairs.quads():
                # a class of one cell cannot give two different records
                yield cell[quads[(quads[:, 0] != quads[:, 1]) & (quads[:, 2] != quads[:, 3])]], 2
            return
        held: dict[int, list[tuple[int, ...]]] = {}
        for removed, added in self.moves(size):
            rows = held.setdefault(len(removed), [])
            rows.append(removed + added)
            if len(rows) == 1024:
                yield np.array(held.pop(len(removed)), dtype=np.intp), len(removed)
        for count, rows in held.items():
            yield np.array(rows, dtype=np.intp), count

    def _choices(self, picked: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Different cells for each class of a multiset of classes."""
        options = [combinations(self.groups.members[c], times) for c, times in Counter(picked).items()]
        for parts in product(*options):
            yield tuple(j for part in parts for j in part)

    def _by_class(self, size: int) -> Iterator[ClassMove]:
        """Minimal zero sums of ``size`` signed distinct columns."""
        if size == 2 and not self.balanced:
            yield from _opposite(self.columns, self.hashes)
        if size == 3 and not self.balanced:
            yield from _threes(self.columns, self.hashes, self.pairs)
        if size == 4:
            for quads in self.pairs.quads():
                yield from (((i, j), (k, h)) for i, j, k, h in quads.tolist())
            if not self.balanced:
                yield from _unbalanced_fours(self.columns, self.hashes, self.pairs)


class _Pairs:
    """All sums of two columns (a column with itself included), in the order of their hashes."""

    def __init__(self, columns: Ints, hashes: npt.NDArray[np.uint64]) -> None:
        count = len(columns)
        if count * (count + 1) // 2 > MOST_PAIRS:
            raise RefusedError(
                f"{count} distinct columns: expected at most {int((2 * MOST_PAIRS) ** 0.5)} to list sums of two. "
                "Reduce the table first (merge attributes, drop implied cuboids) or use the bound 4.",
                code="moves.too-many-columns",
                columns=count,
            )
        first, second = np.triu_indices(count)
        self.columns = columns
        self.first = first.astype(np.int32)
        self.second = second.astype(np.int32)
        sums = hashes[self.first] + hashes[self.second]
        self.order = np.argsort(sums, kind="stable")  # equal sums in one order on every machine
        self.sums = sums[self.order]

    def quads(self, most: int = 1 << 12) -> Iterator[npt.NDArray[np.int32]]:
        """Rows (i, j, k, h): columns i and j together equal k and h together, and not zero.

        Different pairs of distinct columns with one sum share no column, no single column is zero and the sum
        is not zero; so no part vanishes and every row is minimal.
        """
        if not len(self.sums):
            return
        cuts = np.flatnonzero(np.diff(self.sums)) + 1
        starts = np.concatenate([[0], cuts])
        size = np.diff(np.concatenate([starts, [len(self.sums)]]))
        # large sets first: their moves differ most, so a search for the longest ends sooner
        for length in np.unique(size[size > 1]).tolist()[::-1]:
            here = starts[size == length]
            left, right = np.triu_indices(length, 1)
            for a in range(0, len(left), most):
                step = max(1, most // min(most, len(left)))
                for b in range(0, len(here), step):
                    base = here[b : b + step, None]
                    p = self.order[(base + left[a : a + most]).reshape(-1)]
                    q = self.order[(base + right[a : a + most]).reshape(-1)]
                    i, j, k, h = self.first[p], self.second[p], self.first[q], self.second[q]
                    total = self.columns[i] + self.columns[j]
                    same = (total == self.columns[k] + self.columns[h]).all(axis=1) & total.any(axis=1)
                    yield np.stack([i, j, k, h], axis=1)[same]

    def equal_to(self, hashes: npt.NDArray[np.uint64]) -> Iterator[tuple[int, int, int]]:
        """Triples (position in hashes, first, second) whose hashes agree."""
        left = np.searchsorted(self.sums, hashes, side="left")
        right = np.searchsorted(self.sums, hashes, side="right")
        for i in np.flatnonzero(right > left).tolist():
            for index in self.order[left[i] : right[i]].tolist():
                yield i, int(self.first[index]), int(self.second[index])


def _opposite(columns: Ints, hashes: npt.NDArray[np.uint64]) -> Iterator[ClassMove]:
    where: dict[int, list[int]] = {}
    for c, value in enumerate(hashes.tolist()):
        where.setdefault(value, []).append(c)
    for c, value in enumerate((np.uint64(0) - hashes).tolist()):
        for d in where.get(value, ()):
            if c < d and not (columns[c] + columns[d]).any():
                yield (), (c, d)


def _threes(columns: Ints, hashes: npt.NDArray[np.uint64], pairs: _Pairs) -> Iterator[ClassMove]:
    # no column is zero, so a part of two that vanished would leave a zero column: all found are minimal
    for t, i, j in pairs.equal_to(hashes):
        if not (columns[i] + columns[j] - columns[t]).any():
            yield (t,), (i, j)
    for t, i, j in pairs.equal_to(np.uint64(0) - hashes):
        if j <= t and not (columns[i] + columns[j] + columns[t]).any():
            yield (), (i, j, t)


def _unbalanced_fours(columns: Ints, hashes: npt.NDArray[np.uint64], pairs: _Pairs) -> Iterator[ClassMove]:
    for t in range(len(columns)):
        for u, i, j in pairs.equal_to(hashes[t] - hashes):
            if u <= i and t != u and _minimal_four(columns[t], columns[[u, i, j]], -1):
                yield (t,), (u, i, j)
    for s in range(len(columns)):
        for u, i, j in pairs.equal_to(np.uint64(0) - (hashes[s] + hashes[s:])):
            if s + u <= i and _minimal_four(columns[s], columns[[s + u, i, j]], 1):
                yield (), (s, s + u, i, j)


def _minimal_four(first: Ints, others: Ints, sign: int) -> bool:
    """Whether sign * first + others vanishes and no part of two does (every split holds ``first``)."""
    lead = sign * first
    return not (lead + others.sum(axis=0)).any() and bool((lead + others).any(axis=1).all())


def longest_markov(
    matrix: Any,
    query: Any = None,
    norm: str = "l1",
    *,
    capacity: int | None = None,
    effort: Effort | None = None,
) -> Bracket[Pair]:
    """Find the Markov move that changes a query's answer the most.

    Parameters
    ----------
    matrix
        Integer constraint matrix, one column for each cell.
    query
        Integer matrix of the query; None is the table itself.
    norm
        "l1", or "l2" for the squared Euclidean norm.
    capacity
        Most records of a cell; None for no limit.
    effort
        Work after which a bound is returned instead; None for no end.

    Returns
    -------
    Bracket
        Exact unless the effort was spent or there are too many distinct columns.

    Examples
    --------
    >>> longest_markov([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]).upper
    4

    Notes
    -----
    Cells with equal columns in matrix and query are exchangeable and four copies of each suffice. A Markov
    move touches at most four cells, so by the triangle inequality its answer is no longer than the four
    longest columns of the query together; this bound ends the search early and answers when the effort is spent.
    """
    read = read_matrix(matrix)
    query_rows = read_query(query, read.shape[1])
    kind = read_norm(norm)
    if read_capacity(capacity) == 0:
        return Bracket(0, 0, None, "capacity", "no cell can hold a record")
    kept = representatives(read, query_rows, 4)
    ceiling = _four_columns(query_rows, kept, kind)
    small = np.ascontiguousarray(read[:, kept])
    answer = None if query_rows is None else np.ascontiguousarray(query_rows[:, kept])
    work = Effort.of(effort)
    try:
        best, move, bound, complete = _longest(small, answer, kind, ceiling, work)
    except RefusedError as refusal:
        reason = f"a Markov move touches at most four cells, one record each ({refusal})"
        return Bracket(ceiling, 0, None, "bound", reason)
    if complete:
        method, reason = (
            "listing",
            "every longer candidate was listed, or excluded by the triangle inequality",
        )
    else:
        method = "bound"
        reason = f"the unlisted Markov moves touch at most four cells, one record each; {work.ended_by}"
    if move is None:
        return Bracket(bound, 0, None, method, reason)
    full = np.zeros(read.shape[1], dtype=np.int64)
    full[kept] = move
    return Bracket(bound, best, witness_of(removed_part(full), full), method, reason)


def _four_columns(query: Ints | None, kept: list[int], norm: Norm) -> int:
    """Upper bound of the answer to any change of at most four different cells by one record."""
    if query is None:
        return min(4, len(kept))
    if norm == "l1":
        return sum(sorted(np.abs(query[:, kept]).sum(axis=0).tolist(), reverse=True)[:4])
    # (a + b + c + d)^2 <= 4 (a^2 + b^2 + c^2 + d^2) keeps the bound an integer
    squares = sorted((int(sum(int(v) ** 2 for v in query[:, j])) for j in kept), reverse=True)
    return 4 * sum(squares[:4])


def _longest(
    matrix: Ints, query: Ints | None, norm: Norm, ceiling: int, effort: Effort
) -> tuple[int, Ints | None, int, bool]:
    best, move = 0, None
    cells = matrix.shape[1]
    if cells > FIRST_CELLS:
        # often a move among some of the cells reaches the ceiling already
        part = None if query is None else query[:, :FIRST_CELLS]
        best, short, _, _ = _longest(matrix[:, :FIRST_CELLS], part, norm, ceiling, effort)
        if short is not None:
            move = np.concatenate([short, np.zeros(cells - FIRST_CELLS, dtype=np.int64)])
        if best >= ceiling:
            return best, move, best, True
        if effort.done:
            return best, move, ceiling, False
    effort.spend(matrix.size // 100)
    search = _MovesOfFour(matrix)
    count = len(search.columns)
    sums = count * (count + 1) // 2 // PAIRS_A_UNIT
    if cells > FIRST_CELLS and not effort.affords(sums):
        return best, move, ceiling, False
    effort.spend(sums)
    width = matrix.shape[0] + (1 if query is None else query.shape[0])
    by_cell = None if query is None else np.ascontiguousarray(query.T)
    for size in (4, 3, 2, 1):
        if query is None and best >= size:
            break
        for rows, removed in search.batches(size):
            if len(rows):
                values = _lengths(by_cell, rows, removed, norm)
                top = int(np.argmax(values))
                if move is None or values[top] > best:
                    best = int(values[top])
                    move = change_vector(
                        search.cells, rows[top, :removed].tolist(), rows[top, removed:].tolist()
                    )
            if best >= ceiling or (query is None and best == size):
                break
            effort.spend(20 + len(rows) * (10 + width) // 50)
            if effort.done:
                return best, move, ceiling, False
        if best >= ceiling:
            break
    return best, move, best, True


def _lengths(by_cell: Ints | None, cells: npt.NDArray[np.intp], removed: int, norm: Norm) -> npt.NDArray[Any]:
    if by_cell is None:
        return np.full(len(cells), cells.shape[1], dtype=np.int64)
    answers = np.zeros((len(cells), by_cell.shape[1]), dtype=np.int64)
    for place in range(cells.shape[1]):
        answers += (-1 if place < removed else 1) * by_cell[cells[:, place]]
    return lengths(None, answers, norm)
