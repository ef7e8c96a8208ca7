"""Rows of vectors for the lifting step: distinct rows, signs, orbits, and a store with bit masks.

Owns the bookkeeping of ``graver_lift``.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

__all__ = ["NOT_UNIT", "Ints", "Longs", "Store", "representatives", "signed", "unique_rows"]

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
