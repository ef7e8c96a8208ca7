"""Compiled filling of blocks, largest first. Owns :func:`fill_between`, :func:`fill_inside`; imported when first used.

Nodes are held in descending order of what they still need. Taking the first so many, and of those that tie with the last one taken the
hindmost, leaves the order descending when each need falls by one; so no step sorts. Works on plain arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["fill_between", "fill_inside"]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _first_at_most(needs: Any, low: Any, value: Any) -> Any:
    """First position from ``low`` on whose need is at most ``value``; needs descend."""
    high = len(needs)
    while low < high:
        middle = (low + high) // 2
        if needs[middle] <= value:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _take(needs: Any, order: Any, low: Any, count: Any, skipped: Any, out: Any, used: Any) -> Any:
    """Lower the ``count`` largest needs from ``low`` on by one and note whose they are.

    ``skipped`` is a position that is left alone, the first of those with its need, or -1.
    """
    if count == 0:
        return used
    last = low + count - 1
    held = skipped >= 0 and skipped <= last
    if held:
        last += 1
    value = needs[last]
    start = _first_at_most(needs, low, value)
    end = _first_at_most(needs, last, value - 1)
    before = start - low - (1 if held and skipped < start else 0)
    for at in range(low, start):
        if at != skipped:
            needs[at] -= 1
            out[used] = order[at]
            used += 1
    for at in range(end - (count - before), end):
        needs[at] -= 1
        out[used] = order[at]
        used += 1
    return used


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def fill_between(ends: Any, turns: Any, needs: Any, order: Any, own: Any, tails: Any, heads: Any) -> Any:
    """Join each node on the left, in turn, to the nodes on the right that need most; return the number of edges.

    ``needs`` descend and belong to the nodes ``order`` on the right. ``own`` is for each node on the left its place on the right, to
    which it is not joined, or -1. ``ends`` and ``needs`` are left with what did not fit.
    """
    place = np.empty(len(order), np.int64)
    for at in range(len(order)):
        place[order[at]] = at
    used = 0
    for turn in turns:
        if ends[turn] == 0:
            break
        open_ = _first_at_most(needs, 0, 0)
        skipped = -1
        if own[turn] >= 0 and place[own[turn]] < open_:
            at = place[own[turn]]
            skipped = _first_at_most(needs, 0, needs[at])
            other = order[skipped]
            order[skipped], order[at] = own[turn], other
            place[other], place[own[turn]] = at, skipped
            open_ -= 1
        count = min(ends[turn], open_)
        last = _take(needs, order, 0, count, skipped, heads, used)
        tails[used:last] = turn
        ends[turn] -= count
        used = last
    return used


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def fill_inside(needs: Any, order: Any, tails: Any, heads: Any) -> Any:
    """Join the node that needs most to those that need most after it, and so on; return the number of edges.

    ``needs`` descend and belong to the nodes ``order``; they are left with what did not fit.
    """
    used = 0
    for low in range(len(order)):
        wanted = needs[low]
        if wanted <= 0:
            break
        count = min(wanted, _first_at_most(needs, low + 1, 0) - (low + 1))
        last = _take(needs, order, low + 1, count, -1, heads, used)
        tails[used:last] = order[low]
        needs[low] = wanted - count
        used = last
    return used
