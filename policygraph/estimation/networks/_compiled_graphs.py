"""Compiled construction of graphs: filling of blocks, and switches of edges; imported when first used, since numba compiles it.

Blocks are filled largest first. Nodes are held in descending order of what they still need. Taking the first so many, and of those that tie
with the last one taken the hindmost, leaves the order descending when each need falls by one; so no step sorts. Works on plain arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

EMPTY = -1


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


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _mix(state: Any) -> Any:
    """Splitmix64: one step of a small generator; post-processing needs no secret words."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _below(state: Any, n: Any) -> Any:
    return np.int64((_mix(state) >> np.uint64(1)) % np.uint64(n))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _slot(keys: Any, key: Any) -> Any:
    """Where a key is, or the free place where it would be."""
    mask = np.uint64(len(keys) - 1)
    z = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    at = (z ^ (z >> np.uint64(29))) & mask
    while keys[at] != EMPTY and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _key(u: Any, v: Any, n: Any, directed: Any) -> Any:
    if directed or u <= v:
        return u * n + v
    return v * n + u


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _build(tail: Any, head: Any, n: Any, directed: Any, keys: Any, times: Any) -> Any:
    keys[:] = EMPTY
    times[:] = 0
    used = 0
    for e in range(len(tail)):
        key = _key(tail[e], head[e], n, directed)
        at = _slot(keys, key)
        if keys[at] == EMPTY:
            keys[at] = key
            used += 1
        times[at] += 1
    return used


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _times(keys: Any, times: Any, key: Any) -> Any:
    at = _slot(keys, key)
    return times[at] if keys[at] == key else 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add(keys: Any, times: Any, key: Any, amount: Any) -> Any:
    """Change how often a pair is joined; 1 if a place was newly used."""
    at = _slot(keys, key)
    fresh = 0
    if keys[at] == EMPTY:
        keys[at] = key
        fresh = 1
    times[at] += amount
    return fresh


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _bad(tail: Any, head: Any, n: Any, directed: Any, loops: Any, keys: Any, times: Any, out: Any) -> Any:
    """List the edges that are loops or share their pair; return how many."""
    found = 0
    for e in range(len(tail)):
        looped = tail[e] == head[e] and not loops
        if looped or _times(keys, times, _key(tail[e], head[e], n, directed)) > 1:
            out[found] = e
            found += 1
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _faults(keys: Any, times: Any, key: Any, is_loop: Any, amount: Any) -> Any:
    """Change of the number of faults (surplus edges, loops) when a pair is joined once more or once less, which is done."""
    before = _times(keys, times, key)
    after = before + amount
    change = max(after - 1, 0) - max(before - 1, 0)
    return change + (amount if is_loop else 0)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def run_switches(
    tail: Any,
    head: Any,
    codes: Any,
    counts: Any,
    target: Any,
    n: Any,
    directed: Any,
    loops: Any,
    keep: Any,
    weight: Any,
    proposals: Any,
    state: Any,
    keys: Any,
    times: Any,
    goal: Any,
) -> Any:
    """Switch pairs of edges (a b), (c d) to (a d), (c b); degrees never change.

    ``keep`` allows only switches that keep the group counts. A switch is made if weight * (change of faults) + (change of the
    distance of ``counts`` from ``target``) <= 0. With ``goal`` it stops as soon as there is no fault and no distance. Returns
    faults, distance, switches made.
    """
    m = len(tail)
    used = _build(tail, head, n, directed, keys, times)
    broken = np.empty(m, np.int64)
    n_broken = _bad(tail, head, n, directed, loops, keys, times, broken)
    faults = 0
    for at in range(len(keys)):
        if times[at] > 1:
            faults += times[at] - 1
    for e in range(m):
        if tail[e] == head[e] and not loops:
            faults += 1
    k = len(counts)
    distance = 0
    for g in range(k):
        for h in range(k):
            if directed or g <= h:
                distance += abs(counts[g, h] - target[g, h])
    made = 0
    if m < 2:
        return faults, distance, made
    for step in range(proposals):
        if goal and faults == 0 and distance == 0:
            break
        if used * 4 > len(keys) * 3:
            used = _build(tail, head, n, directed, keys, times)
        if faults > 0 and step % 4096 == 4095:
            n_broken = _bad(tail, head, n, directed, loops, keys, times, broken)
        if faults > 0 and n_broken > 0 and step % 2 == 0:
            i = broken[_below(state, n_broken)]
        else:
            i = _below(state, m)
        j = _below(state, m)
        if i == j:
            continue
        a, b, c, d = tail[i], head[i], tail[j], head[j]
        if not directed:
            turn = _mix(state)
            if turn & np.uint64(1):
                a, b = b, a
            if turn & np.uint64(2):
                c, d = d, c
        if a == c or b == d:
            continue
        ga, gb, gc, gd = codes[a], codes[b], codes[c], codes[d]
        same = ga == gc or gb == gd
        if keep and not same:
            continue
        new_ad, new_cb = _key(a, d, n, directed), _key(c, b, n, directed)
        if faults == 0 and (
            (not loops and (a == d or c == b))
            or new_ad == new_cb
            or _times(keys, times, new_ad) > 0
            or _times(keys, times, new_cb) > 0
        ):
            continue
        # The four changes are made one after the other, so that pairs that coincide are counted right.
        old_ab, old_cd = _key(a, b, n, directed), _key(c, d, n, directed)
        change = _faults(keys, times, old_ab, a == b and not loops, -1)
        used += _add(keys, times, old_ab, -1)
        change += _faults(keys, times, old_cd, c == d and not loops, -1)
        used += _add(keys, times, old_cd, -1)
        change += _faults(keys, times, new_ad, a == d and not loops, 1)
        used += _add(keys, times, new_ad, 1)
        change += _faults(keys, times, new_cb, c == b and not loops, 1)
        used += _add(keys, times, new_cb, 1)
        moved = 0
        if not same:
            moved = _shift(counts, target, ga, gb, gc, gd, directed)
        if weight * change + moved <= 0 and (faults > 0 or change <= 0):
            tail[i], head[i], tail[j], head[j] = a, d, c, b
            faults += change
            distance += moved
            made += 1
        else:
            used += _add(keys, times, new_cb, -1)
            used += _add(keys, times, new_ad, -1)
            used += _add(keys, times, old_cd, 1)
            used += _add(keys, times, old_ab, 1)
            if not same:
                _shift(counts, target, ga, gd, gc, gb, directed)
    return faults, distance, made


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _bump(counts: Any, target: Any, g: Any, h: Any, amount: Any, directed: Any) -> Any:
    """Change one count; return the change of the distance."""
    if not directed and g > h:
        g, h = h, g
    before = abs(counts[g, h] - target[g, h])
    counts[g, h] += amount
    if not directed and g != h:
        counts[h, g] = counts[g, h]
    return abs(counts[g, h] - target[g, h]) - before


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _shift(counts: Any, target: Any, ga: Any, gb: Any, gc: Any, gd: Any, directed: Any) -> Any:
    """Change of the distance when edges between groups ga gb, gc gd become ga gd, gc gb; the counts are changed."""
    moved = _bump(counts, target, ga, gb, -1, directed)
    moved += _bump(counts, target, gc, gd, -1, directed)
    moved += _bump(counts, target, ga, gd, 1, directed)
    moved += _bump(counts, target, gc, gb, 1, directed)
    return moved
