"""Compiled inner loop of the lifting step; imported only when a step is large enough to pay for numba.

Owns ``pair_rows`` and the hash table it fills.
``docs/explanation/proofs/graver.md`` names each test made here.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["NOT_UNIT", "fill_table", "pair_rows"]

Ints = npt.NDArray[np.int32]
Masks = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]

NEAR = 500
"""The reducers of smallest norm are tried first, by lists made for each vector; the few survivors meet all others."""

NOT_UNIT = 2
"""Stands for the height of a reducer whose masks do not tell all of it."""


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _slot(key: np.uint64, mask: np.uint64) -> np.uint64:
    """Return where the search for a key starts."""
    mixed = (key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(17)) & mask


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def fill_table(table: Longs, keys: Masks, count: int) -> None:
    """Enter the first ``count`` keys into an empty table."""
    mask = np.uint64(table.size - 1)
    for entry in range(count):
        slot = _slot(keys[entry], mask)
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = entry


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
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


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _forbid(
    f: int,
    positive: Masks,
    negative: Masks,
    reducer_positive: Masks,
    reducer_negative: Masks,
    heights: npt.NDArray[np.int8],
    first: int,
    last: int,
    forbid: npt.NDArray[np.uint64],
) -> None:
    """Add the cells that a partner of f must not touch, from reducers that f covers but for one cell.

    ``forbid[f, h]`` is for differences of height sign h - 1: the cells that must not become positive, then those
    that must not become negative. When f covers a reducer wholly, all cells are forbidden for that height.
    """
    words = positive.shape[1]
    one = np.uint64(1)
    none = np.uint64(0)
    for u in range(first, last):
        if heights[u] == NOT_UNIT:
            continue
        for side in range(2):
            touched = 0
            for w in range(words):
                ups = reducer_positive[u, w]
                downs = reducer_negative[u, w]
                if side == 1:
                    ups, downs = downs, ups
                up = ups & ~positive[f, w]
                down = downs & ~negative[f, w]
                # More than one bit in a word, or bits in both words, is more than one cell.
                if (up & (up - one)) | (down & (down - one)) != none or (up != none and down != none):
                    touched = 2
                    break
                if up | down != none:
                    touched += 1
            if touched > 1:
                continue
            height = heights[u] if side == 0 else -heights[u]
            for h in range(3):
                if height != 0 and height != h - 1:
                    continue
                for w in range(words):
                    if touched == 0:
                        forbid[f, h, w] = ~none
                        forbid[f, h, words + w] = ~none
                    else:
                        ups = reducer_positive[u, w] if side == 0 else reducer_negative[u, w]
                        downs = reducer_negative[u, w] if side == 0 else reducer_positive[u, w]
                        forbid[f, h, w] |= ups & ~positive[f, w]
                        forbid[f, h, words + w] |= downs & ~negative[f, w]


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _bits(word: np.uint64) -> int:
    """Count the bits of a word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _list_reducers(
    f: int,
    positive: Masks,
    negative: Masks,
    reducer_positive: Masks,
    reducer_negative: Masks,
    lacking: Masks,
    which: Longs,
    place: Longs,
) -> int:
    """List the reducers, and their negatives, whose signs agree with f, those that f covers best first.

    ``lacking`` gets the cells that f does not cover: a partner that covers them makes the difference reducible.
    """
    words = positive.shape[1]
    counts = np.zeros(16, dtype=np.int64)
    for side in range(2):
        ups = reducer_positive if side == 0 else reducer_negative
        downs = reducer_negative if side == 0 else reducer_positive
        for u in range(ups.shape[0]):
            clash = np.uint64(0)
            for w in range(words):
                clash |= (ups[u, w] & negative[f, w]) | (downs[u, w] & positive[f, w])
            if clash == np.uint64(0):
                missing = 0
                for w in range(words):
                    missing += _bits(ups[u, w] & ~positive[f, w]) + _bits(downs[u, w] & ~negative[f, w])
                missing = min(missing, 15)
                counts[missing] += 1
                place[2 * u + side] = missing
            else:
                place[2 * u + side] = -1
    total = 0
    for missing in range(16):
        total, counts[missing] = total + counts[missing], total
    for entry in range(place.size):
        if place[entry] >= 0:
            spot = counts[place[entry]]
            counts[place[entry]] += 1
            u = entry >> 1
            which[spot] = entry
            for w in range(words):
                up = reducer_positive[u, w] if entry & 1 == 0 else reducer_negative[u, w]
                down = reducer_negative[u, w] if entry & 1 == 0 else reducer_positive[u, w]
                lacking[spot, w] = up & ~positive[f, w]
                lacking[spot, words + w] = down & ~negative[f, w]
    return total


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def pair_rows(
    vectors: Ints,
    positive: Masks,
    negative: Masks,
    keys: Masks,
    forbid: npt.NDArray[np.uint64],
    forbidden: Longs,
    rows: Longs,
    row: int,
    last_row: int,
    starts: Longs,
    stops: Longs,
    reducers: Ints,
    reducer_positive: Masks,
    reducer_negative: Masks,
    reducer_heights: npt.NDArray[np.int8],
    coordinates: Longs,
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
    coordinates, within the capacities, new and irreducible is noted in ``out`` as a pair of indices. The masks are
    those of the old coordinates; the height of a reducer is ``NOT_UNIT`` when it has an entry beyond 1 on the old and
    new coordinates, else its entry at the new one. Returns the next row to do, the number of differences seen and of those kept, and 1 if a buffer has to grow.
    """
    words = positive.shape[1]
    columns = vectors.shape[1]
    total = reducers.shape[0]
    near = min(total, NEAR)
    difference = np.empty(columns, dtype=np.int32)
    free = np.empty(2 * words, dtype=np.uint64)
    lacking = np.empty((2 * near, 2 * words), dtype=np.uint64)
    which = np.empty(2 * near, dtype=np.int64)
    place = np.empty(2 * near, dtype=np.int64)
    table_mask = np.uint64(table.size - 1)
    recent = -1
    recent_sign = 1
    while row < last_row:
        f = rows[row]
        span = stops[row] - starts[row]
        if seen_count + span > seen.shape[0] or out_count + span > out.shape[0]:
            return row, seen_count, out_count, 1
        listed = -1
        _forbid(
            f,
            positive,
            negative,
            reducer_positive,
            reducer_negative,
            reducer_heights,
            forbidden[f],
            total,
            forbid,
        )
        forbidden[f] = total
        for g in range(starts[row], stops[row]):
            height = vectors[f, new_coordinate] - vectors[g, new_coordinate]
            h = 2 if height > 0 else (1 if height == 0 else 0)
            clash = np.uint64(0)
            for w in range(words):
                clash |= positive[g, w] & (positive[f, w] | forbid[f, h, words + w])
                clash |= negative[g, w] & (negative[f, w] | forbid[f, h, w])
            if clash != np.uint64(0) or f == g:
                continue
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
            # A difference and its negative are one move: the key is symmetric, the comparison tries both signs.
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
            if listed < 0:
                listed = _list_reducers(
                    f,
                    positive,
                    negative,
                    reducer_positive[:near],
                    reducer_negative[:near],
                    lacking,
                    which,
                    place,
                )
            reducible = False
            for entry in range(listed):
                outside = np.uint64(0)
                for w in range(words):
                    outside |= (lacking[entry, w] & ~negative[g, w]) | (
                        lacking[entry, words + w] & ~positive[g, w]
                    )
                if outside == np.uint64(0):
                    u = which[entry] >> 1
                    sign = 1 - 2 * (which[entry] & 1)
                    if _below(reducers[u], difference, sign, coordinates):
                        reducible = True
                        recent = u
                        recent_sign = sign
                        break
            if not reducible and near < total:
                for w in range(words):
                    free[w] = ~(positive[f, w] | negative[g, w])
                    free[words + w] = ~(negative[f, w] | positive[g, w])
                for u in range(near, total):
                    straight = np.uint64(0)
                    mirrored = np.uint64(0)
                    for w in range(words):
                        ups = reducer_positive[u, w]
                        downs = reducer_negative[u, w]
                        straight |= (ups & free[w]) | (downs & free[words + w])
                        mirrored |= (downs & free[w]) | (ups & free[words + w])
                    if straight == np.uint64(0) and _below(reducers[u], difference, 1, coordinates):
                        reducible = True
                        break
                    if mirrored == np.uint64(0) and _below(reducers[u], difference, -1, coordinates):
                        reducible = True
                        break
            if not reducible:
                out[out_count, 0] = f
                out[out_count, 1] = g
                out_count += 1
        row += 1
    return row, seen_count, out_count, 0
