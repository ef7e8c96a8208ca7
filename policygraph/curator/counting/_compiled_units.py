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
def _reduced(value: int) -> int:
    """A number below 2^63 modulo 2^31 - 1, by the rule that 2^31 is 1."""
    value = (value & PRIME) + (value >> 31)
    value = (value & PRIME) + (value >> 31)
    return value - PRIME if value >= PRIME else value


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def numbers_of(units: npt.NDArray[Any], low: int, size: int) -> Ints:
    """How many records each unit has."""
    out = np.zeros(size, dtype=np.int64)
    for at in range(units.size):
        out[units[at] - low] += 1
    return out


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def by_unit(units: npt.NDArray[Any], low: int, cells: npt.NDArray[Any], ends: Ints) -> Ints:
    """The cells of all records, unit by unit; ``ends`` are where each unit ends, and become where it begins."""
    out = np.empty(cells.size, dtype=np.int64)
    for at in range(cells.size):
        unit = units[at] - low
        ends[unit] -= 1
        out[ends[unit]] = cells[at]
    return out


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def kept(cells: Ints, starts: Ints, words: Ints, cap: int, most: int) -> Ints:
    """Of each unit the cells of the records that count: ``cap`` of each cell, and of these the ``most`` that are first in the order of the unit.

    ``starts`` is where each unit begins, and the end of the last one; ``words`` are four numbers for each unit with more than ``most`` records, in turn. The order is that of a
    polynomial of degree 3 of the cell and the number of the record among those of the cell, then of both themselves.
    """
    largest = np.diff(starts).max()
    room = 2
    while room < 2 * largest:
        room *= 2
    keys, seen = np.empty(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
    values, number = np.empty(largest, dtype=np.int64), np.empty(largest, dtype=np.int64)
    out = np.empty(cells.size, dtype=np.int64)
    filled, word = 0, 0
    for at in range(starts.size - 1):
        begin, end = starts[at], starts[at + 1]
        bits, size = 1, 2
        while size < 2 * (end - begin):
            size *= 2
            bits += 1
        seen[:size] = 0
        first = filled
        for place in range(begin, end):
            cell = cells[place]
            slot = np.int64((np.uint64(cell) * MIXER) >> np.uint64(64 - bits))
            while seen[slot] and keys[slot] != cell:
                slot = (slot + 1) & (size - 1)
            keys[slot] = cell
            if seen[slot] < cap:
                number[filled - first] = seen[slot]
                out[filled] = cell
                filled += 1
            seen[slot] += 1
        count = filled - first
        if end - begin > most:
            a, b, c, d = words[word, 0], words[word, 1], words[word, 2], words[word, 3]
            word += 1
            if count > most:
                for i in range(count):
                    x = _reduced(_reduced(out[first + i]) * cap + number[i])
                    values[i] = _reduced(_reduced(_reduced(a * x + b) * x + c) * x + d)
                bound = np.partition(values[:count], most - 1)[most - 1]
                less = 0
                for i in range(count):
                    less += values[i] < bound
                # Of those at the bound the first by cell and number.
                for _ in range(most - less):
                    best = -1
                    for i in range(count):
                        if values[i] == bound and (
                            best < 0
                            or out[first + i] < out[first + best]
                            or (out[first + i] == out[first + best] and number[i] < number[best])
                        ):
                            best = i
                    values[best] = -1
                filled = first
                for i in range(count):
                    if values[i] < bound:
                        out[filled] = out[first + i]
                        filled += 1
    return out[:filled]
