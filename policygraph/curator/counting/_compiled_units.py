"""Compiled selection of the records of units; imported only when records are bounded in this process."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
PRIME = 2147483647
"""2^31 - 1: products of two numbers below it fit 64 bits."""
MIXER = np.uint64(0x9E3779B97F4A7C15)


@numba.njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _folded(value: Any) -> Any:
    """A number below 2^63 as one below 2^32 with the same remainder modulo 2^31 - 1, by the rule that 2^31 is 1."""
    return (value & np.uint64(PRIME)) + (value >> np.uint64(31))


@numba.njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _reduced(value: Any) -> Any:
    """The remainder of a number below 2^63 modulo 2^31 - 1."""
    value = _folded(_folded(value))
    return value - np.uint64(PRIME) if value >= np.uint64(PRIME) else value


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def coded(
    units: npt.NDArray[Any], names: npt.NDArray[Any], known: int, slots: Ints, out: Ints
) -> tuple[int, int]:
    """Number units in the order in which they are met, in a table with open addresses of twice as many slots as there is room for names.

    Returns how many records are done, fewer than all when the room for names is used up, and how many units are known.
    """
    bits = 0
    while 1 << bits < slots.size:
        bits += 1
    for at in range(units.size):
        slot = np.int64((np.uint64(units[at]) * MIXER) >> np.uint64(64 - bits))
        while slots[slot] and names[slots[slot] - 1] != units[at]:
            slot = (slot + 1) & (slots.size - 1)
        if not slots[slot]:
            if known == names.size:
                return at, known
            names[known] = units[at]
            known += 1
            slots[slot] = known
        out[at] = slots[slot] - 1
    return units.size, known


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_numbers(units: npt.NDArray[Any], low: int, out: Ints) -> None:
    """Add how many records each unit has."""
    for at in range(units.size):
        out[units[at] - low] += 1


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def place_by_unit(
    units: npt.NDArray[Any], low: int, cells: npt.NDArray[Any], ends: Ints, out: npt.NDArray[Any]
) -> None:
    """Put the cells of some records to those of their units; ``ends`` are where each unit still has room, and go towards where it begins."""
    for at in range(cells.size):
        unit = units[at] - low
        ends[unit] -= 1
        out[ends[unit]] = cells[at]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _values(places: npt.NDArray[np.uint32], count: int, words: Ints, out: npt.NDArray[np.uint32]) -> None:
    """A polynomial of degree 3 modulo 2^31 - 1 at each place; operands below 2^32, so that several are multiplied at once."""
    a, b, c, d = np.uint64(words[0]), np.uint64(words[1]), np.uint64(words[2]), np.uint64(words[3])
    for i in range(count):
        x = np.uint64(places[i])
        out[i] = np.uint32(_reduced(_folded(_folded(a * x + b) * x + c) * x + d))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _bound(values: npt.NDArray[np.uint32], count: int, most: int, few: npt.NDArray[np.uint32]) -> Any:
    """A number that exactly ``most`` of the values are below; and if two are equal there, the smaller number that fewer are below, and False.

    The values are spread evenly, so that all but a few are beyond a first guess, and the interval around the bound is halved some seven times.
    """
    high = min(PRIME, PRIME * (most + 3 * int(most**0.5) + 4) // count)
    less = 0
    for i in range(count):
        few[less] = values[i]
        less += values[i] < high
    if less < most:
        few[:count] = values[:count]
        less, high = count, PRIME
    low, middle, under = 0, high, less
    while under != most and high - low > 1:
        middle = (low + high) >> 1
        under = 0
        for i in range(less):
            under += few[i] < middle
        if under < most:
            low = middle
        else:
            high = middle
    return (middle, True) if under == most else (low, False)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def kept(cells: npt.NDArray[Any], starts: Ints, words: Ints, cap: int, most: int) -> npt.NDArray[Any]:
    """Of each unit the cells of the records that count: ``cap`` of each cell, and of these the ``most`` that are first in the order of the unit.

    ``starts`` is where each unit begins, and the end of the last one; ``words`` are four numbers for each unit with more than ``most`` records, in turn. The order is that of a
    polynomial of degree 3 of the cell and the number of the record among those of the cell, then of both themselves.
    """
    largest = np.diff(starts).max()
    room = 2
    while room < 2 * largest:
        room *= 2
    keys, seen = np.empty(room, dtype=cells.dtype), np.zeros(room, dtype=np.int32)
    places, values, few = (
        np.empty(largest, dtype=np.uint32),
        np.empty(largest, dtype=np.uint32),
        np.empty(largest, dtype=np.uint32),
    )
    times = np.uint64(cap)
    out = np.empty(cells.size, dtype=cells.dtype)
    filled, word = 0, 0
    for at in range(starts.size - 1):
        begin, end = starts[at], starts[at + 1]
        first = filled
        if end - begin <= cap:
            filled += end - begin
            out[first:filled] = cells[begin:end]
            continue
        bits, size = 1, 2
        while size < 2 * (end - begin):
            size *= 2
            bits += 1
        seen[:size] = 0
        for place in range(begin, end):
            cell = cells[place]
            slot = np.int64((np.uint64(cell) * MIXER) >> np.uint64(64 - bits))
            while seen[slot] and keys[slot] != cell:
                slot = (slot + 1) & (size - 1)
            keys[slot] = cell
            number = seen[slot]
            seen[slot] = number + 1
            if number < cap:
                places[filled - first] = np.uint32(
                    _reduced(_folded(np.uint64(cell)) * times + np.uint64(number))
                )
                out[filled] = cell
                filled += 1
        count = filled - first
        if end - begin > most:
            own = words[word]
            word += 1
            if count > most:
                _values(places, count, own, values)
                bound, alone = _bound(values, count, most, few)
                if not alone:
                    less = 0
                    for i in range(count):
                        less += values[i] < bound
                        values[i] = 2 * (values[i] >= bound) + (values[i] > bound)
                    # Of those at the bound the first by cell, then by number, which is the order in which they stand here.
                    for _ in range(most - less):
                        best = -1
                        for i in range(count):
                            if values[i] == 2 and (best < 0 or out[first + i] < out[first + best]):
                                best = i
                        values[best] = 0
                    bound = 1
                filled = first
                for i in range(count):
                    out[filled] = out[first + i]
                    filled += values[i] < bound
    return out[:filled]
