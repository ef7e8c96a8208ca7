"""Project and lift: the minimal integer vectors of a null space, one coordinate at a time.

Owns the lifting step and its rows of vectors: distinct rows, signs, orbits, and a store with bit masks.
``docs/explanation/proofs/graver.md`` has the argument for every line that leaves something out.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND, Effort
from policygraph.errors import RefusedError
from policygraph.linalg import Objects, elimination, pivoted_kernel

__all__ = [
    "NOT_UNIT",
    "IncompleteBasisError",
    "Ints",
    "Limits",
    "Longs",
    "Store",
    "graver_vectors",
    "representatives",
    "signed",
    "unique_rows",
]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

NOT_UNIT = 2
"""Stands for the height of a vector with an entry beyond 1, as in the compiled loop."""


def unique_rows(rows: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """Return the distinct rows, in an order that depends on the set of rows only."""
    if rows.shape[0] < 2:
        return rows
    keys = rows.astype(np.int64) @ _weights(rows.shape[1])
    order = np.argsort(keys, kind="stable")
    rows, keys = rows[order], keys[order]
    repeated = keys[1:] == keys[:-1]
    if np.all(rows[1:][repeated] == rows[:-1][repeated]):
        return rows[np.concatenate(([True], ~repeated))]
    return np.unique(rows, axis=0)


@cache
def _weights(columns: int) -> Longs:
    """Return fixed 64-bit weights; they only spread hash keys, equality is always checked on rows."""
    generator = np.random.Generator(np.random.PCG64(20140622))
    weights: Longs = generator.integers(-(2**62), 2**62, size=columns, dtype=np.int64)
    return weights


def _masks(rows: Ints, coordinates: list[int]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return bit masks of the positive and of the negative entries on the coordinates, 64 of them to a word."""
    count = rows.shape[0]
    words = max(1, -(-len(coordinates) // 64))
    part = rows[:, coordinates]
    masks = []
    for side in (part > 0, part < 0):
        padded = np.zeros((count, 64 * words), dtype=np.bool_)
        padded[:, : len(coordinates)] = side
        masks.append(np.packbits(padded, axis=1).view(np.uint64).reshape(count, words))
    return masks[0], masks[1]


def signed(rows: Ints, coordinate: int) -> Ints:
    """Turn each row so that its entry at the coordinate, or else its first entry, is positive."""
    first = rows[np.arange(rows.shape[0]), np.argmax(rows != 0, axis=1)]
    height = rows[:, coordinate]
    sign = np.where(height != 0, np.sign(height), np.sign(first))
    turned: Ints = rows * sign[:, None].astype(np.int32)
    return turned


def representatives(rows: Ints, permutations: Longs) -> npt.NDArray[np.bool_]:
    """Mark one row of each orbit; all rows when the hash keys of two orbits happen to meet."""
    everything = np.ones(rows.shape[0], dtype=np.bool_)
    if permutations.shape[0] < 2 or rows.shape[0] < 2:
        return everything
    weights = _weights(rows.shape[1])
    table = np.empty((rows.shape[1], permutations.shape[0]), dtype=np.int64)
    for column, permutation in enumerate(permutations):
        table[permutation, column] = weights
    keys = np.sort(rows.astype(np.int64) @ table, axis=1)
    label = keys[:, 0]
    order = np.argsort(label, kind="stable")
    starts = np.flatnonzero(np.concatenate(([True], label[order][1:] != label[order][:-1])))
    sizes = np.diff(np.append(starts, rows.shape[0]))
    chosen = order[starts]
    distinct = 1 + np.count_nonzero(keys[chosen][:, 1:] != keys[chosen][:, :-1], axis=1)
    if not np.array_equal(distinct, sizes):
        return everything
    marks = np.zeros(rows.shape[0], dtype=np.bool_)
    marks[chosen] = True
    return marks


class Store:
    """Vectors that only ever grow in number, with their masks on the old coordinates."""

    def __init__(self, old: list[int], coordinate: int, columns: int) -> None:
        self.old = old
        self.coordinate = coordinate
        self.weights = _weights(columns)
        words = max(1, -(-len(old) // 64))
        self.count = 0
        self.vectors: Ints = np.empty((16, columns), dtype=np.int32)
        self.positive = np.empty((16, words), dtype=np.uint64)
        self.negative = np.empty((16, words), dtype=np.uint64)
        self.keys = np.empty(16, dtype=np.uint64)
        self.heights = np.empty(16, dtype=np.int8)
        # What the compiled loop has learnt about partners, and from how many reducers.
        self.forbid = np.zeros((16, 3, 2 * words), dtype=np.uint64)
        self.forbidden = np.zeros(16, dtype=np.int64)

    def append(self, block: Ints) -> None:
        """Add the vectors of a block at the end."""
        need = self.count + block.shape[0]
        if need > self.vectors.shape[0]:
            size = max(need, 2 * self.vectors.shape[0])
            for name in ("vectors", "positive", "negative", "keys", "heights", "forbid", "forbidden"):
                array = getattr(self, name)
                grown = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
                grown[: self.count] = array[: self.count]
                setattr(self, name, grown)
        here = slice(self.count, need)
        self.vectors[here] = block
        self.positive[here], self.negative[here] = _masks(block, self.old)
        self.keys[here] = (block.astype(np.int64) @ self.weights).view(np.uint64)
        height = block[:, self.coordinate]
        unit = (np.abs(block[:, self.old]).max(axis=1, initial=0) <= 1) & (np.abs(height) <= 1)
        self.heights[here] = np.where(unit, height, NOT_UNIT)
        self.count = need


ENTRY_LIMIT = 2**28
"""Entries stay far enough from 2^31 that the difference of two of them cannot overflow."""

COMPILED = "policygraph.moves.graver._compiled_lift"

COMPILED_FROM = 3_000_000
"""Pairs times reducers in one level from which the compiled loop pays for its loading."""

PATIENCE = SECOND
"""Work on small levels after which the compiled loop is loaded all the same."""

LEVEL, PAIRS, TESTS, ENTRIES = 60, 300, 350, 10
"""The work of a level: so many units, and one for so many pairs, meetings of a vector with a reducer, and new entries."""

_EMPTY = np.zeros(0, dtype=np.int64)


class IncompleteBasisError(RefusedError):
    """The search for all minimal moves ran out of its limits; no part of the basis is given.

    The error carries ``reason`` (``"effort"``, ``"max_moves"`` or ``"entries"``) and nothing that could be taken
    for a basis: what was found before the stop belongs to a projection of the problem.
    """


@dataclass
class Limits:
    """What a search may use up.

    Parameters
    ----------
    max_moves
        The most moves that may be held, or None.
    effort
        Work that may be spent.
    max_norm
        The largest L1 norm of a move that is asked for, or None. Larger ones are left out, and that is no failure.
    """

    max_moves: int | None = None
    effort: Effort = field(default_factory=Effort)
    max_norm: int | None = None

    def check(self, moves: int) -> None:
        """Raise when the limits are reached."""
        if self.max_moves is not None and moves > self.max_moves:
            raise IncompleteBasisError(
                f"max_moves={self.max_moves}: the basis, or a step on the way, has more minimal moves. "
                "Raise the limit, or ask for a bound (longest_move).",
                code="graver.incomplete",
                reason="max_moves",
            )
        if self.effort.done:
            self.effort.drain()
            raise IncompleteBasisError(
                f"Not all minimal moves were found: {self.effort.ended_by}. Allow more effort, or ask for a bound "
                "(longest_move).",
                code="graver.incomplete",
                reason="effort",
            )

    def spend(self, work: int, moves: int = 0) -> None:
        """Count work, then check."""
        self.effort.spend(work)
        self.check(moves)


class _Step:
    """One lifting step: the vectors of the old projection, and the coordinate that comes in."""

    waited: ClassVar[int] = 0
    """Work of this process on small levels, of which there can be many; it decides how, never what, is computed."""

    def __init__(
        self, old: list[int], coordinate: int, upper: Longs, permutations: Longs, limits: Limits
    ) -> None:
        self.old = old
        self.coordinate = coordinate
        self.upper = upper
        self.permutations = permutations
        self.limits = limits
        self.blocks: dict[int, list[Ints]] = {}
        self.pool = Store(old, coordinate, upper.size)
        self.reducers = Store(old, coordinate, upper.size)
        self.spans: dict[int, tuple[int, int, Longs]] = {}

    def run(self, vectors: Ints) -> Ints:
        """Return the minimal vectors of the larger projection."""
        norms = np.abs(vectors[:, self.old]).sum(axis=1)
        vectors = signed(vectors, self.coordinate)
        for norm in np.unique(norms).tolist():
            self.blocks[norm] = [vectors[norms == norm]]
        count = vectors.shape[0]
        # The largest norm of a vector that can be part of a pair; pairs reach twice as far.
        longest = int(norms[vectors[:, self.coordinate] != 0].max(initial=0))
        level = 1
        for block in self.blocks.get(0, []):
            self.reducers.append(block)
        last = self.limits.max_norm
        while level < 2 * longest and (last is None or level < last):
            level += 1
            self._pairable(level - 1)
            if level % 2 == 0:
                for block in self.blocks.get(level // 2, []):
                    self.reducers.append(block)
            fresh = self._level(level)
            if fresh.shape[0]:
                count += fresh.shape[0]
                self.limits.check(count)
                self.blocks.setdefault(level, []).append(fresh)
                if np.any(fresh[:, self.coordinate]):
                    longest = max(longest, level)
        return np.concatenate(
            [vectors[:0], *(block for norm in sorted(self.blocks) for block in self.blocks[norm])]
        )

    def _pairable(self, norm: int) -> None:
        """Make the vectors of a norm that change at the new coordinate ready for pairing."""
        for block in self.blocks.get(norm, []):
            start, _, _ = self.spans.get(norm, (self.pool.count, 0, None))
            self.pool.append(block[block[:, self.coordinate] != 0])
            self.spans[norm] = (start, self.pool.count, _EMPTY)
        if norm in self.spans:
            start, stop, _ = self.spans[norm]
            marks = representatives(self.pool.vectors[start:stop], self.permutations)
            self.spans[norm] = (start, stop, start + np.flatnonzero(marks))

    def _level(self, level: int) -> Ints:
        """Return the irreducible differences whose norm on the old coordinates is ``level``."""
        rows: list[Longs] = []
        starts: list[Longs] = []
        stops: list[Longs] = []
        for small, (start, stop, chosen) in self.spans.items():
            if 2 * small > level or level - small not in self.spans or start == stop:
                continue
            start_other, stop_other, chosen_other = self.spans[level - small]
            work = 0
            if chosen_other.size * (stop - start + work) < chosen.size * (stop_other - start_other + work):
                chosen, start_other, stop_other = chosen_other, start, stop
            all_with_all = 2 * small == level and chosen.size == stop - start
            rows.append(chosen)
            starts.append(chosen + 1 if all_with_all else np.full(chosen.size, start_other, dtype=np.int64))
            stops.append(np.full(chosen.size, stop_other, dtype=np.int64))
        nothing = np.zeros((0, self.upper.size), dtype=np.int32)
        pairs = sum(int((b - a).sum()) for a, b in zip(starts, stops))
        if not pairs:
            return nothing
        tasks = (np.concatenate(rows), np.concatenate(starts), np.concatenate(stops))
        # The work is counted from numbers that both ways of doing a level share: which one is taken depends on what
        # the process has loaded, what is found and what is spent do not.
        self.limits.spend(LEVEL + pairs // PAIRS + tasks[0].size * self.reducers.count // TESTS)
        effort = pairs * (50 + self.reducers.count)
        known = COMPILED in sys.modules or _Step.waited > PATIENCE
        compiled = effort >= (COMPILED_FROM // 3000 if known else COMPILED_FROM)
        found = self._compiled(*tasks) if compiled else self._plain(*tasks)
        _Step.waited += 0 if compiled else 300 + 5 * self.reducers.count + effort // 400
        self.limits.spend(found.shape[0] * self.reducers.count // TESTS)
        if not found.shape[0]:
            return nothing
        if int(np.abs(found).max()) >= ENTRY_LIMIT:
            raise IncompleteBasisError(
                f"An entry of a minimal move passed {ENTRY_LIMIT}: the search stops before it could overflow.",
                code="graver.incomplete",
                reason="entries",
            )
        self.limits.spend(found.size * len(self.permutations) // ENTRIES)
        found = np.concatenate([found[:, permutation] for permutation in self.permutations])
        return unique_rows(signed(found, self.coordinate)).astype(np.int32, copy=False)

    def _plain(self, rows: Longs, starts: Longs, stops: Longs) -> Ints:
        """Do a small level with numpy."""
        pool = self.pool.vectors[: self.pool.count]
        positive, negative = (
            (pool[:, self.old] > 0).astype(np.float32),
            (pool[:, self.old] < 0).astype(np.float32),
        )
        index = np.arange(pool.shape[0])
        clash = positive[rows] @ positive.T + negative[rows] @ negative.T
        allowed = (
            (clash == 0) & (index >= starts[:, None]) & (index < stops[:, None]) & (index != rows[:, None])
        )
        first, second = np.nonzero(allowed)
        sums = unique_rows(signed(pool[rows[first]] - pool[second], self.coordinate))
        caps = self.upper[self.old]
        sums = sums[np.all((caps < 0) | (np.abs(sums[:, self.old]) <= caps), axis=1)]
        coordinates = np.array([*self.old, self.coordinate])
        for reducer in self.reducers.vectors[: self.reducers.count, coordinates]:
            if not sums.shape[0]:
                break
            support = np.flatnonzero(reducer)
            part = sums[:, coordinates[support]] * np.sign(reducer[support])
            size = np.abs(reducer[support])
            sums = sums[~(np.all(part >= size, axis=1) | np.all(-part >= size, axis=1))]
        return sums.astype(np.int32, copy=False)

    def _compiled(self, rows: Longs, starts: Longs, stops: Longs) -> Ints:
        """Do a large level with the compiled loop, growing its buffers and looking at the limits between calls."""
        from policygraph.moves.graver._compiled_lift import fill_table, pair_rows

        pool, reducers, total = self.pool, self.reducers, self.reducers.count
        coordinates = np.array([*self.old, self.coordinate], dtype=np.int64)
        span = int((stops - starts).max())
        size = 1 << max(10, (2 * span).bit_length())
        table = np.full(2 * size, -1, dtype=np.int64)
        seen = np.empty((size, 2), dtype=np.int64)
        seen_keys = np.empty(size, dtype=np.uint64)
        out = np.empty((size, 2), dtype=np.int64)
        row = seen_count = out_count = 0
        step = max(1, 20_000_000 // max(1, span))
        while row < rows.size:
            row, seen_count, out_count, full = pair_rows(
                pool.vectors, pool.positive, pool.negative, pool.keys, pool.forbid, pool.forbidden,
                rows, row, min(rows.size, row + step), starts, stops,
                reducers.vectors[:total], reducers.positive[:total], reducers.negative[:total], reducers.heights[:total],
                coordinates, self.coordinate, self.upper,
                table, seen, seen_keys, seen_count, out, out_count,
            )  # fmt: skip
            self._foresee(out_count)
            if full:
                seen, seen_keys, out = (np.concatenate([a, np.empty_like(a)]) for a in (seen, seen_keys, out))
                table = np.full(2 * seen.shape[0], -1, dtype=np.int64)
                fill_table(table, seen_keys, seen_count)
        return pool.vectors[out[:out_count, 0]] - pool.vectors[out[:out_count, 1]]

    def _foresee(self, found: int) -> None:
        """Give up in the middle of a level when what it has found so far already costs more than is left."""
        left = self.limits.effort.left
        if left is not None and found * self.reducers.count // TESTS >= left:
            self.limits.effort.drain()
        self.limits.check(found)


def graver_vectors(matrix: Objects, upper: Longs, permutations: Longs, limits: Limits) -> Longs:
    """Return the conformally minimal kernel vectors of a matrix, one of each pair g, -g.

    Parameters
    ----------
    matrix
        Integer matrix, Python integers.
    upper
        The largest allowed absolute entry for each column; -1 for no limit.
    permutations
        A group of column permutations that keep the kernel and ``upper``; the identity alone is a group.
    limits
        What the search may use up.

    Returns
    -------
    numpy.ndarray
        One vector per row, dtype int64.

    Raises
    ------
    IncompleteBasisError
        If a limit was reached.

    Examples
    --------
    >>> from policygraph.linalg import as_integer_matrix
    >>> free = np.array([-1, -1, -1])
    >>> same = np.array([[0, 1, 2]])
    >>> abs(graver_vectors(as_integer_matrix([[1, 1, 1]]), free, same, Limits())).sum(axis=1).tolist()
    [2, 2, 2]
    """
    limits.spend(elimination(*matrix.shape))
    exact, pivots = pivoted_kernel(matrix)
    d, n = exact.shape
    if d == 0:
        return np.zeros((0, n), dtype=np.int64)
    if max(abs(value) for value in exact.reshape(-1).tolist()) >= ENTRY_LIMIT:
        raise IncompleteBasisError(
            f"The kernel basis has entries of {ENTRY_LIMIT} and more. Divide rows by common factors.",
            code="graver.incomplete",
            reason="entries",
        )
    basis: Ints = exact.astype(np.int32)
    identity = np.arange(n, dtype=np.int64)[None, :]
    if np.array_equal(basis[:, pivots], np.eye(d, dtype=np.int32)):
        vectors = basis
    else:
        vectors = np.zeros((0, n), dtype=np.int32)
        for i, c in enumerate(pivots):
            pivot = basis[i, c]
            wide = vectors.astype(np.int64)
            wide = wide - (wide[:, c] // pivot)[:, None] * basis[i].astype(np.int64)
            wide = np.concatenate([wide, wide[wide[:, c] > 0] - basis[i], basis[i : i + 1]])
            if int(np.abs(wide).max()) >= ENTRY_LIMIT:
                raise IncompleteBasisError(
                    f"An entry passed {ENTRY_LIMIT} while the free cells were lifted.",
                    code="graver.incomplete",
                    reason="entries",
                )
            vectors = _Step(pivots[:i], c, upper, identity, limits).run(wide.astype(np.int32))
            vectors = _capped(vectors, pivots[: i + 1], upper, limits)
    vectors = _capped(vectors, pivots, upper, limits)
    done = list(pivots)
    while len(done) < n:
        limits.check(vectors.shape[0])
        group = permutations[np.all(np.isin(permutations[:, done], done), axis=1)]
        rest = [c for c in range(n) if c not in done]
        fixing = {c: group[group[:, c] == c] for c in rest}
        busy = np.count_nonzero(vectors, axis=0)
        c = min(rest, key=lambda c: (int(busy[c]) ** 2 / fixing[c].shape[0], c))
        vectors = _capped(_Step(done, c, upper, fixing[c], limits).run(vectors), [*done, c], upper, limits)
        done.append(c)
    return vectors.astype(np.int64)


def _capped(vectors: Ints, done: list[int], upper: Longs, limits: Limits) -> Ints:
    """Drop the vectors above a capacity or above the norm on the coordinates that have come in."""
    sizes = np.abs(vectors[:, done])
    caps = upper[done]
    kept = np.all((caps < 0) | (sizes <= caps), axis=1)
    if limits.max_norm is not None:
        kept &= sizes.sum(axis=1) <= limits.max_norm
    within: Ints = vectors[kept]
    return within
