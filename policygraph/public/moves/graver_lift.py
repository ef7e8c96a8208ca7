"""Project and lift: the minimal vectors of a kernel lattice, one coordinate at a time.

Owns the lifting step and its bookkeeping (levels of equal norm, orbits). Imports ``errors``, ``lattice`` and, for
large steps only, the compiled kernel. ``docs/proofs/graver.md`` has the argument for every line that leaves
something out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from policygraph.errors import RefusedError
from policygraph.public.moves.lattice import Objects, pivoted_kernel

__all__ = ["IncompleteBasisError", "Limits", "lattice_graver", "unique_rows"]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

ENTRY_LIMIT = 2**28
"""Entries stay far enough from 2^31 that the difference of two of them cannot overflow."""

COMPILED_FROM = 30_000
"""Pairs in one level from which the compiled loop pays for its loading."""


class IncompleteBasisError(RefusedError):
    """The search for all minimal moves ran out of its limits; no part of the basis is given.

    The error carries ``reason`` (``"deadline"``, ``"max_moves"`` or ``"entries"``) and nothing that could be taken
    for a basis: what was found before the stop belongs to a projection of the problem.
    """


@dataclass
class Limits:
    """What a search may use up.

    Parameters
    ----------
    max_moves
        The most moves that may be held, or None.
    stop_at
        The reading of ``time.monotonic`` at which the search gives up, or None.
    """

    max_moves: int | None = None
    stop_at: float | None = None

    def check(self, moves: int) -> None:
        """Raise when the limits are reached."""
        if self.max_moves is not None and moves > self.max_moves:
            raise IncompleteBasisError(
                f"max_moves={self.max_moves}: the basis, or a step on the way, has more minimal moves. "
                "Raise the limit, or ask for a bound (longest_move).",
                code="graver.incomplete",
                reason="max_moves",
            )
        if self.stop_at is not None and time.monotonic() > self.stop_at:
            raise IncompleteBasisError(
                "The deadline passed before all minimal moves were found. Allow more time, or ask for a bound "
                "(longest_move).",
                code="graver.incomplete",
                reason="deadline",
            )


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


def _weights(columns: int) -> Longs:
    """Return fixed odd-looking 64-bit weights; they only spread hash keys, equality is always checked on rows."""
    generator = np.random.Generator(np.random.PCG64(20140622))
    weights: Longs = generator.integers(-(2**62), 2**62, size=columns, dtype=np.int64)
    return weights


def _masks(rows: Ints, coordinates: list[int]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return bit masks of the positive and of the negative entries on the coordinates, 64 columns to a word."""
    words = max(1, -(-rows.shape[1] // 64))
    positive = np.zeros((rows.shape[0], words), dtype=np.uint64)
    negative = np.zeros((rows.shape[0], words), dtype=np.uint64)
    for c in coordinates:
        bit = np.uint64(1 << (c % 64))
        positive[:, c // 64] |= np.where(rows[:, c] > 0, bit, np.uint64(0))
        negative[:, c // 64] |= np.where(rows[:, c] < 0, bit, np.uint64(0))
    return positive, negative


def _signed(rows: Ints, coordinate: int) -> Ints:
    """Turn each row so that its entry at the coordinate, or else its first entry, is positive."""
    first = rows[np.arange(rows.shape[0]), np.argmax(rows != 0, axis=1)]
    height = rows[:, coordinate]
    sign = np.where(height != 0, np.sign(height), np.sign(first))
    turned: Ints = rows * sign[:, None].astype(np.int32)
    return turned


def _representatives(rows: Ints, permutations: Longs) -> npt.NDArray[np.bool_]:
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


@dataclass
class _Step:
    """One lifting step: the vectors of the old projection, and the coordinate that comes in."""

    old: list[int]
    coordinate: int
    upper: Longs
    permutations: Longs
    limits: Limits
    all_by_norm: dict[int, list[Ints]] = field(default_factory=dict)
    pairs_by_norm: dict[int, Ints] = field(default_factory=dict)
    marks: dict[int, npt.NDArray[np.bool_]] = field(default_factory=dict)

    def run(self, vectors: Ints) -> Ints:
        """Return the minimal vectors of the larger projection."""
        norms = np.abs(vectors[:, self.old]).sum(axis=1)
        vectors = _signed(vectors, self.coordinate)
        for norm in np.unique(norms):
            self.all_by_norm[int(norm)] = [vectors[norms == norm]]
        count = vectors.shape[0]
        for norm, blocks in self.all_by_norm.items():
            if norm > 0:
                self._open(norm, blocks)
        level = 1
        while self.pairs_by_norm and level < 2 * max(self.pairs_by_norm):
            level += 1
            fresh = self._level(level)
            if fresh.shape[0]:
                count += fresh.shape[0]
                self.limits.check(count)
                self.all_by_norm.setdefault(level, []).append(fresh)
                self._open(level, self.all_by_norm[level])
        return np.concatenate(
            [vectors[:0], *(block for norm in sorted(self.all_by_norm) for block in self.all_by_norm[norm])]
        )

    def _open(self, norm: int, blocks: list[Ints]) -> None:
        """Make the vectors of a norm that change at the new coordinate ready for pairing."""
        block = np.concatenate(blocks)
        block = block[block[:, self.coordinate] != 0]
        if block.shape[0]:
            self.pairs_by_norm[norm] = block
            self.marks[norm] = _representatives(block, self.permutations)

    def _level(self, level: int) -> Ints:
        """Return the irreducible differences whose norm on the old coordinates is ``level``."""
        norms = [norm for norm in sorted(self.pairs_by_norm) if norm < level]
        tasks = [(a, level - a) for a in norms if 2 * a <= level and level - a in self.pairs_by_norm]
        width = self.upper.size
        nothing = np.zeros((0, width), dtype=np.int32)
        if not tasks:
            return nothing
        reducers = np.concatenate(
            [nothing]
            + [
                block
                for norm in sorted(self.all_by_norm)
                if 2 * norm <= level
                for block in self.all_by_norm[norm]
            ]
        )
        used = sorted({norm for task in tasks for norm in task})
        offset = dict(
            zip(used, np.cumsum([0] + [self.pairs_by_norm[norm].shape[0] for norm in used]).tolist())
        )
        pool = np.concatenate([self.pairs_by_norm[norm] for norm in used])
        rows: list[Longs] = []
        starts: list[Longs] = []
        stops: list[Longs] = []
        for small, large in tasks:
            sides = [(small, large), (large, small)]
            row_norm, other = min(
                sides, key=lambda s: int(self.marks[s[0]].sum()) * self.pairs_by_norm[s[1]].shape[0]
            )
            chosen = np.flatnonzero(self.marks[row_norm]) + offset[row_norm]
            end = offset[other] + self.pairs_by_norm[other].shape[0]
            plain = small == large and chosen.size == self.pairs_by_norm[small].shape[0]
            rows.append(chosen)
            starts.append(chosen + 1 if plain else np.full(chosen.size, offset[other], dtype=np.int64))
            stops.append(np.full(chosen.size, end, dtype=np.int64))
        work = (pool, np.concatenate(rows), np.concatenate(starts), np.concatenate(stops), reducers)
        pairs = int((work[3] - work[2]).sum())
        found = self._compiled(*work) if pairs >= COMPILED_FROM else self._plain(*work)
        if not found.shape[0]:
            return nothing
        if int(np.abs(found).max()) >= ENTRY_LIMIT:
            raise IncompleteBasisError(
                f"An entry of a minimal move passed {ENTRY_LIMIT}: the search stops before it could overflow.",
                code="graver.incomplete",
                reason="entries",
            )
        found = np.concatenate([found[:, permutation] for permutation in self.permutations])
        return unique_rows(_signed(found, self.coordinate)).astype(np.int32, copy=False)

    def _plain(self, pool: Ints, rows: Longs, starts: Longs, stops: Longs, reducers: Ints) -> Ints:
        """Do a small level with numpy."""
        self.limits.check(0)
        old = pool[:, self.old]
        positive, negative = (old > 0).astype(np.float32), (old < 0).astype(np.float32)
        index = np.arange(pool.shape[0])
        clash = positive[rows] @ positive.T + negative[rows] @ negative.T
        allowed = (
            (clash == 0) & (index >= starts[:, None]) & (index < stops[:, None]) & (index != rows[:, None])
        )
        first, second = np.nonzero(allowed)
        sums = unique_rows(_signed(pool[rows[first]] - pool[second], self.coordinate))
        within = self.old
        caps = self.upper[within]
        sums = sums[np.all((caps < 0) | (np.abs(sums[:, within]) <= caps), axis=1)]
        coordinates = [*self.old, self.coordinate]
        for reducer in reducers[:, coordinates]:
            for sign in (1, -1):
                support = np.flatnonzero(reducer)
                values = sign * reducer[support]
                part = sums[:, [coordinates[i] for i in support]] * np.sign(values)
                sums = sums[~np.all(part >= np.abs(values), axis=1)]
        return sums.astype(np.int32, copy=False)

    def _compiled(self, pool: Ints, rows: Longs, starts: Longs, stops: Longs, reducers: Ints) -> Ints:
        """Do a large level with the compiled loop, growing its buffers and watching the clock between calls."""
        from policygraph.public.moves._graver_kernels import pair_rows

        coordinates = [*self.old, self.coordinate]
        positive, negative = _masks(pool, self.old)
        reducer_masks = _masks(reducers, coordinates)
        keys = (pool.astype(np.int64) @ _weights(pool.shape[1])).view(np.uint64)
        span = int((stops - starts).max())
        size = 1 << max(16, (4 * span).bit_length())
        table = np.full(2 * size, -1, dtype=np.int64)
        seen = np.empty((size, 2), dtype=np.int64)
        seen_keys = np.empty(size, dtype=np.uint64)
        out = np.empty((size, 2), dtype=np.int64)
        row = seen_count = out_count = 0
        step = max(1, 20_000_000 // max(1, span))
        while row < rows.size:
            row, seen_count, out_count, full = pair_rows(
                pool, positive, negative, keys, rows, row, min(rows.size, row + step), starts, stops,
                reducers, reducer_masks[0], reducer_masks[1], np.array(coordinates, dtype=np.int64),
                self.coordinate // 64, np.uint64(1 << (self.coordinate % 64)), self.coordinate, self.upper,
                table, seen, seen_keys, seen_count, out, out_count,
            )  # fmt: skip
            self.limits.check(out_count)
            if full:
                seen, seen_keys, out = (np.concatenate([a, np.empty_like(a)]) for a in (seen, seen_keys, out))
                table = _rehash(seen_keys, seen_count, 2 * seen.shape[0])
        pairs = out[:out_count]
        return pool[pairs[:, 0]] - pool[pairs[:, 1]]


def _rehash(keys: npt.NDArray[np.uint64], count: int, size: int) -> Longs:
    """Build the hash table of the compiled loop anew for more entries."""
    from policygraph.public.moves._graver_kernels import fill_table

    table = np.full(size, -1, dtype=np.int64)
    fill_table(table, keys, count)
    return table


def lattice_graver(matrix: Objects, upper: Longs, permutations: Longs, limits: Limits) -> Longs:
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
    >>> from policygraph.public.moves.lattice import as_integer_matrix
    >>> free = np.array([-1, -1, -1])
    >>> same = np.array([[0, 1, 2]])
    >>> abs(lattice_graver(as_integer_matrix([[1, 1, 1]]), free, same, Limits())).sum(axis=1).tolist()
    [2, 2, 2]
    """
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
            vectors = _capped(vectors, c, upper)
    for c in pivots:
        vectors = _capped(vectors, c, upper)
    done = list(pivots)
    while len(done) < n:
        limits.check(vectors.shape[0])
        group = permutations[np.all(np.isin(permutations[:, done], done), axis=1)]
        rest = [c for c in range(n) if c not in done]
        fixing = {c: group[group[:, c] == c] for c in rest}
        busy = np.count_nonzero(vectors, axis=0)
        c = min(rest, key=lambda c: (int(busy[c]) ** 2 / fixing[c].shape[0], c))
        vectors = _capped(_Step(done, c, upper, fixing[c], limits).run(vectors), c, upper)
        done.append(c)
    return vectors.astype(np.int64)


def _capped(vectors: Ints, coordinate: int, upper: Longs) -> Ints:
    """Drop the vectors above the capacity of a coordinate that has come in."""
    if upper[coordinate] < 0:
        return vectors
    kept: Ints = vectors[np.abs(vectors[:, coordinate]) <= upper[coordinate]]
    return kept
