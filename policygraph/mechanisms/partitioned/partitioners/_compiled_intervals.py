"""Compiled sweeps of the interval partition; imported only when one is asked for.

Owns ``deviations`` (distances from the median over all windows of one length) and ``cheapest`` (the dynamic program).
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
# A de Bruijn sequence: the top six bits of (1 << i) * _BRUIJN are different for each i.
_BRUIJN = np.uint64(0x03F79D71B4CB0A89)


def _bit_places() -> npt.NDArray[np.int64]:
    places = np.zeros(64, dtype=np.int64)
    for i in range(64):
        places[((1 << i) * int(_BRUIJN) & int(_ALL)) >> 58] = i
    return places


_PLACES = _bit_places()


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _lowest(word: np.uint64) -> np.int64:
    """Return the place of the lowest bit of a word that is not zero."""
    alone = word & (~word + _ONE)
    return np.int64(_PLACES[np.int64((alone * _BRUIJN) >> np.uint64(58))])


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _highest(word: np.uint64) -> np.int64:
    """Return the place of the highest bit of a word that is not zero."""
    filled = word
    filled |= filled >> np.uint64(1)
    filled |= filled >> np.uint64(2)
    filled |= filled >> np.uint64(4)
    filled |= filled >> np.uint64(8)
    filled |= filled >> np.uint64(16)
    filled |= filled >> np.uint64(32)
    alone = filled ^ (filled >> _ONE)
    return np.int64(_PLACES[np.int64((alone * _BRUIJN) >> np.uint64(58))])


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _insert(bits: Words, starts: Ints, at: np.int64) -> None:
    """Put a number into the set: one word for 64 numbers, one bit above for each word that is not empty."""
    for level in range(starts.size - 1):
        word = starts[level] + (at >> 6)
        before = bits[word]
        bits[word] = before | (_ONE << np.uint64(at & 63))
        if before:
            return
        at >>= 6


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _remove(bits: Words, starts: Ints, at: np.int64) -> None:
    for level in range(starts.size - 1):
        word = starts[level] + (at >> 6)
        bits[word] &= ~(_ONE << np.uint64(at & 63))
        if bits[word]:
            return
        at >>= 6


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _next(bits: Words, starts: Ints, member: np.int64) -> np.int64:
    """Return the smallest member above a number; there must be one."""
    at, level = np.int64(member), 0
    above = np.uint64(0)
    while above == 0:
        above = bits[starts[level] + (at >> 6)] & ((_ALL << np.uint64(at & 63)) << _ONE)
        at >>= 6
        level += 1
    at = (at << 6) + _lowest(above)
    for down in range(level - 2, -1, -1):
        at = (at << 6) + _lowest(bits[starts[down] + at])
    return np.int64(at)


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _previous(bits: Words, starts: Ints, member: np.int64) -> np.int64:
    """Return the largest member below a number; there must be one."""
    at, level = np.int64(member), 0
    below = np.uint64(0)
    while below == 0:
        below = bits[starts[level] + (at >> 6)] & ((_ONE << np.uint64(at & 63)) - _ONE)
        at >>= 6
        level += 1
    at = (at << 6) + _highest(below)
    for down in range(level - 2, -1, -1):
        at = (at << 6) + _highest(bits[starts[down] + at])
    return np.int64(at)


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def deviations(rank: Ints, ascending: Ints, length: int, out: Ints) -> None:
    """Fill ``out[s]`` with the least sum of distances of the values s, ..., s + length - 1 from one number.

    Parameters
    ----------
    rank
        Place of each value among all of them in ascending order, each place once.
    ascending
        The values in that order.
    length
        Length of the window, at least 2.
    out
        One entry for each start.

    Notes
    -----
    The least sum is that of the upper half minus that of the lower half. A step of the window puts one value in and one
    out, which moves the border of the lower half by at most one member each; the members of the window stand in a set of
    bits by rank, so that the next and the previous one are found in a few words.
    """
    n = rank.size
    starts = np.zeros(13, dtype=np.int64)
    levels, width = 0, n
    while True:
        width = (width + 63) >> 6
        starts[levels + 1] = starts[levels] + width
        levels += 1
        if width == 1:
            break
    starts = starts[: levels + 1]
    bits = np.zeros(starts[levels], dtype=np.uint64)
    half = length // 2
    first = np.sort(rank[:length])
    total, low = np.int64(0), np.int64(0)
    for i in range(length):
        _insert(bits, starts, first[i])
        total += ascending[first[i]]
        if i < half:
            low += ascending[first[i]]
    border = first[half - 1]
    odd = length & 1
    middle = ascending[first[half]] if odd else np.int64(0)
    out[0] = total - 2 * low - middle
    for s in range(1, n - length + 1):
        new, old = rank[s + length - 1], rank[s - 1]
        total += ascending[new] - ascending[old]
        _insert(bits, starts, new)
        if new < border:
            low += ascending[new] - ascending[border]
            border = _previous(bits, starts, border)
        if old <= border:
            up = _next(bits, starts, border)
            low += ascending[up] - ascending[old]
            border = up
        _remove(bits, starts, old)
        if odd:
            middle = ascending[_next(bits, starts, border)]
        out[s] = total - 2 * low - middle


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def cheapest(costs: Ints, lengths: Ints, came: Ints) -> None:
    """Fill ``came[t]`` with the number of the last length of the cheapest partition of the first t cells.

    ``costs[j, s]`` is the cost of the ``lengths[j]`` cells from s on; of equal costs the first length wins.
    """
    n = came.size - 1
    best = np.empty(n + 1, dtype=np.int64)
    best[0] = 0
    for t in range(1, n + 1):
        found = False
        least, chosen = np.int64(0), 0
        for j in range(lengths.size):
            s = t - lengths[j]
            if s < 0:
                continue
            value = best[s] + costs[j, s]
            if not found or value < least:
                found, least, chosen = True, value, j
        best[t], came[t] = least, chosen
