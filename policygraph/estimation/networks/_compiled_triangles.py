"""Compiled switches that bring triangles and clustering to given numbers; imported when first used, since numba compiles it.

Degrees never change, so that the neighbours of a node stay in the same places of one array. Sums are whole numbers. Works on plain arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from policygraph.estimation.networks._compiled_graphs import _add, _below, _key, _mix, _times

TRIES = 4
"""So many neighbours are looked at for one whose switch keeps the counts between groups."""


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _count(
    u: Any,
    v: Any,
    sign: Any,
    start: Any,
    near: Any,
    weight: Any,
    kind: Any,
    n: Any,
    keys: Any,
    times: Any,
    change: Any,
) -> Any:
    """Add the triangles that the pair u, v makes with the edges there are, and what they count at their nodes."""
    if start[u + 1] - start[u] > start[v + 1] - start[v]:
        u, v = v, u
    found = 0
    for at in range(start[u], start[u + 1]):
        x = near[at]
        if x >= 0 and x != v and _times(keys, times, _key(x, v, n, False)) > 0:
            found += 1
            change[1 + kind[x]] += sign * weight[x]
    change[0] += sign * found
    change[1 + kind[u]] += sign * found * weight[u]
    change[1 + kind[v]] += sign * found * weight[v]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _replace(start: Any, near: Any, u: Any, old: Any, new: Any) -> Any:
    for at in range(start[u], start[u + 1]):
        if near[at] == old:
            near[at] = new
            return


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _unlink(start: Any, near: Any, u: Any, v: Any, n: Any, keys: Any, times: Any) -> Any:
    _replace(start, near, u, v, -1)
    _replace(start, near, v, u, -1)
    return _add(keys, times, _key(u, v, n, False), -1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _link(start: Any, near: Any, u: Any, v: Any, n: Any, keys: Any, times: Any) -> Any:
    _replace(start, near, u, -1, v)
    _replace(start, near, v, -1, u)
    return _add(keys, times, _key(u, v, n, False), 1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _fill(owner: Any, near: Any, n: Any, keys: Any, times: Any) -> Any:
    """Put the edges there are into the table; return how many places they use."""
    keys[:] = -1
    times[:] = 0
    used = 0
    for at in range(len(near)):
        if owner[at] < near[at]:
            used += _add(keys, times, owner[at] * n + near[at], 1)
    return used


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _distance(sums: Any, target: Any, scale: Any) -> Any:
    # Squares: near a target that is met, a little of it is given up for much of one that is not.
    found = 0.0
    for at in range(len(sums)):
        found += ((sums[at] - target[at]) * scale[at]) ** 2
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def close_wedges(
    start: Any,
    near: Any,
    weight: Any,
    kind: Any,
    codes: Any,
    sums: Any,
    target: Any,
    scale: Any,
    enough: Any,
    proposals: Any,
    state: Any,
    keys: Any,
    times: Any,
) -> Any:
    """Switch u x, w y to u w, x y as long as that brings the sums nearer to their targets; degrees and group counts never change.

    ``sums`` are the triangles and, for each kind of node, what they count there; ``near`` has the neighbours of node v from ``start[v]`` on. u and w have a
    common neighbour, which stays, so that u w closes a wedge; where there are too many triangles, every second pair of edges is any pair.
    Returns proposals and switches made.
    """
    n = len(start) - 1
    places = len(near)
    owner = np.empty(places, np.int64)
    for v in range(n):
        for at in range(start[v], start[v + 1]):
            owner[at] = v
    used = _fill(owner, near, n, keys, times)
    change = np.zeros(len(sums), np.int64)
    after = np.zeros(len(sums), np.int64)
    distance = _distance(sums, target, scale)
    made = 0
    if places < 4:
        return 0, 0
    for step in range(proposals):
        if distance <= enough:
            return step, made
        if used * 4 > len(keys) * 3:
            used = _fill(owner, near, n, keys, times)
        word = _mix(state)
        if sums[0] > target[0] and word & np.uint64(1):
            v = -1
            u = owner[_below(state, places)]
            w = owner[_below(state, places)]
        else:
            # Every second wedge is at a random node, the others at a random end of an edge: small degrees have their share.
            v = owner[_below(state, places)]
            if word & np.uint64(2):
                v = _below(state, n)
            room = start[v + 1] - start[v]
            if room < 2:
                continue
            u = near[start[v] + _below(state, room)]
            w = near[start[v] + _below(state, room)]
        if u == w or _times(keys, times, _key(u, w, n, False)) > 0:
            continue
        x = y = -1
        for _ in range(TRIES):
            x = near[start[u] + _below(state, start[u + 1] - start[u])]
            y = near[start[w] + _below(state, start[w + 1] - start[w])]
            if codes[x] == codes[w] or codes[u] == codes[y]:
                break
        if codes[x] != codes[w] and codes[u] != codes[y]:
            continue
        if v in (x, y) or x == y or _times(keys, times, _key(x, y, n, False)) > 0:
            continue
        change[:] = 0
        used += _unlink(start, near, u, x, n, keys, times)
        _count(u, x, -1, start, near, weight, kind, n, keys, times, change)
        used += _unlink(start, near, w, y, n, keys, times)
        _count(w, y, -1, start, near, weight, kind, n, keys, times, change)
        _count(u, w, 1, start, near, weight, kind, n, keys, times, change)
        used += _link(start, near, u, w, n, keys, times)
        _count(x, y, 1, start, near, weight, kind, n, keys, times, change)
        for at in range(len(sums)):
            after[at] = sums[at] + change[at]
        found = _distance(after, target, scale)
        if found <= distance:
            used += _link(start, near, x, y, n, keys, times)
            distance = found
            sums[:] = after
            made += 1
        else:
            used += _unlink(start, near, u, w, n, keys, times)
            used += _link(start, near, u, x, n, keys, times)
            used += _link(start, near, w, y, n, keys, times)
    return proposals, made
