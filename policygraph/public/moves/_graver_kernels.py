"""Compiled inner loop of the lifting step; imported only when a step is large enough to pay for numba.

Owns ``pair_rows`` and the hash table it fills. Imports numpy and numba only. ``docs/proofs/graver.md`` names each test made here.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["fill_table", "pair_rows"]

Ints = npt.NDArray[np.int32]
Masks = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]


@numba.njit(cache=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _slot(key: np.uint64, mask: np.uint64) -> np.uint64:
    """Return where the search for a key starts."""
    mixed = (key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(17)) & mask


@numba.njit(cache=True, boundscheck=False)  # type: ignore[untyped-decorator]
def fill_table(table: Longs, keys: Masks, count: int) -> None:
    """Enter the first ``count`` keys into an empty table."""
    mask = np.uint64(table.size - 1)
    for entry in range(count):
        slot = _slot(keys[entry], mask)
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = entry


@numba.njit(cache=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _below(small: Ints, large: Ints, sign: int, coordinates: Longs) -> bool:
    """Tell whether sign * small is conformally below large on the coordinates."""
    for position in range(coordinates.size):
        c = coordinates[position]
        value = sign * small[c]
        if value > 0:
            if value > large[c]:
                return False
        elif value < 0 and value < large[c]:
            return False
    return True


@numba.njit(cache=True, boundscheck=False)  # type: ignore[untyped-decorator]
def pair_rows(
    vectors: Ints,
    positive: Masks,
    negative: Masks,
    keys: Masks,
    rows: Longs,
    row: int,
    last_row: int,
    starts: Longs,
    stops: Longs,
    reducers: Ints,
    reducer_positive: Masks,
    reducer_negative: Masks,
    coordinates: Longs,
    new_word: int,
    new_bit: np.uint64,
    new_coordinate: int,
    upper: Longs,
    table: Longs,
    seen: Longs,
    seen_keys: Masks,
    seen_count: int,
    out: Longs,
    out_count: int,
) -> tuple[int, int, int, int]:
    """Test the differences of rows[row:last_row] with their ranges; stop early when a buffer could overflow.

    ``rows[i]`` is paired with the vectors ``starts[i]`` to ``stops[i]``. A difference that is conformal on the old
    coordinates, within the capacities, new and irreducible is noted in ``out`` as a pair of indices. Returns the
    next row to do, the number of differences seen and of those kept, and 1 if a buffer has to grow.
    """
    words = positive.shape[1]
    columns = vectors.shape[1]
    difference = np.empty(columns, dtype=np.int32)
    pos = np.zeros(words, dtype=np.uint64)
    neg = np.zeros(words, dtype=np.uint64)
    table_mask = np.uint64(table.size - 1)
    total = reducers.shape[0]
    recent = -1
    recent_sign = 1
    while row < last_row:
        f = rows[row]
        span = stops[row] - starts[row]
        if seen_count + span > seen.shape[0] or out_count + span > out.shape[0]:
            return row, seen_count, out_count, 1
        for g in range(starts[row], stops[row]):
            clash = np.uint64(0)
            for w in range(words):
                clash |= (positive[f, w] & positive[g, w]) | (negative[f, w] & negative[g, w])
            if clash != np.uint64(0) or f == g:
                continue
            for w in range(words):
                pos[w] = positive[f, w] | negative[g, w]
                neg[w] = negative[f, w] | positive[g, w]
            height = vectors[f, new_coordinate] - vectors[g, new_coordinate]
            if height > 0:
                pos[new_word] |= new_bit
            elif height < 0:
                neg[new_word] |= new_bit
            for c in range(columns):
                difference[c] = vectors[f, c] - vectors[g, c]
            if recent >= 0 and _below(reducers[recent], difference, recent_sign, coordinates):
                continue
            fits = True
            for position in range(coordinates.size):
                c = coordinates[position]
                if c != new_coordinate and upper[c] >= 0 and abs(difference[c]) > upper[c]:
                    fits = False
                    break
            if not fits:
                continue
            # A difference and its negative are one move: the key is made symmetric, the comparison tries both signs.
            key = keys[f] - keys[g]
            other = keys[g] - keys[f]
            if other < key:
                key = other
            slot = _slot(key, table_mask)
            known = False
            while table[slot] >= 0:
                entry = table[slot]
                if seen_keys[entry] == key:
                    a = seen[entry, 0]
                    b = seen[entry, 1]
                    same = True
                    opposite = True
                    for c in range(columns):
                        value = vectors[a, c] - vectors[b, c]
                        if value != difference[c]:
                            same = False
                        if value != -difference[c]:
                            opposite = False
                    if same or opposite:
                        known = True
                        break
                slot = (slot + np.uint64(1)) & table_mask
            if known:
                continue
            table[slot] = seen_count
            seen_keys[seen_count] = key
            seen[seen_count, 0] = f
            seen[seen_count, 1] = g
            seen_count += 1
            reducible = False
            for u in range(total):
                outside = np.uint64(0)
                mirrored = np.uint64(0)
                for w in range(words):
                    outside |= (reducer_positive[u, w] & ~pos[w]) | (reducer_negative[u, w] & ~neg[w])
                    mirrored |= (reducer_positive[u, w] & ~neg[w]) | (reducer_negative[u, w] & ~pos[w])
                if outside == np.uint64(0) and _below(reducers[u], difference, 1, coordinates):
                    reducible = True
                    recent = u
                    recent_sign = 1
                    break
                if mirrored == np.uint64(0) and _below(reducers[u], difference, -1, coordinates):
                    reducible = True
                    recent = u
                    recent_sign = -1
                    break
            if not reducible:
                out[out_count, 0] = f
                out[out_count, 1] = g
                out_count += 1
        row += 1
    return row, seen_count, out_count, 0
