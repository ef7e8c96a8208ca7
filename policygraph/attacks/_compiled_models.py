"""Compiled network models: one run of each, as an adjacency matrix whose entry (u, v) is 1 for a link from u to v."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def geometric(share):  # type: ignore[no-untyped-def]
    """A geometric number 0, 1, 2, ... with mean share / (1 - share)."""
    if share <= 0.0:
        return 0
    return int(np.floor(np.log(1.0 - np.random.random()) / np.log(share)))


@numba.njit(cache=True, nogil=True)
def communities(links, groups, start, outlinks):  # type: ignore[no-untyped-def]
    """Give each of the first nodes random links inside its half."""
    half = start // 2
    for u in range(start):
        groups[u] = 0 if u < half else 1
        first = 0 if u < half else half
        made = 0
        while made < outlinks:
            v = first + np.random.randint(half)
            if v != u and links[u, v] == 0:
                links[u, v] = 1
                made += 1


@numba.njit(cache=True, nogil=True)
def grow_fire(links, groups, start, forward, backward, jump):  # type: ignore[no-untyped-def]
    """Let new nodes burn through the network from an ambassador on (Leskovec, Kleinberg and Faloutsos 2007)."""
    nodes = len(groups)
    queue, found = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    for n in range(start, nodes):
        ambassador = np.random.randint(n)
        groups[n] = groups[ambassador]
        links[n, ambassador] = 1
        queue[0], head, tail = ambassador, 0, 1
        while head < tail:
            w = queue[head]
            head += 1
            for way in range(2):
                count = geometric(forward if way == 0 else backward)
                if count == 0:
                    continue
                most = 0
                for v in range(n):
                    linked = links[w, v] if way == 0 else links[v, w]
                    if linked and not links[n, v]:
                        found[most] = v
                        most += 1
                for i in range(min(count, most)):
                    j = i + np.random.randint(most - i)
                    v = found[j]
                    found[j] = found[i]
                    links[n, v] = 1
                    queue[tail] = v
                    tail += 1
        if np.random.random() < jump:
            links[n, np.random.randint(n)] = 1


@numba.njit(cache=True, nogil=True)
def grow_copies(links, groups, start, random_link):  # type: ignore[no-untyped-def]
    """Let new nodes copy the links of a prototype, each replaced by a random one with some probability (Kumar et al. 2000)."""
    for n in range(start, len(groups)):
        prototype = np.random.randint(n)
        groups[n] = groups[prototype]
        for v in range(n):
            if links[prototype, v]:
                if np.random.random() < random_link:
                    links[n, np.random.randint(n)] = 1
                else:
                    links[n, v] = 1


@numba.njit(cache=True, nogil=True)
def join(links, ends, count, u, v):  # type: ignore[no-untyped-def]
    """Link two nodes unless they are linked; the number of links afterwards."""
    if links[u, v]:
        return count
    links[u, v] = links[v, u] = 1
    ends[count, 0], ends[count, 1] = u, v
    return count + 1


@numba.njit(cache=True, nogil=True)
def evolve(links, steps, random_link, introduction, decay):  # type: ignore[no-untyped-def]
    """Add random links and introductions by friends, and delete links at random (Marsili, Vega-Redondo and Slanina 2004); symmetric."""
    nodes = len(links)
    # All links as a list, so that a random one is found and taken out at once: the last takes its place.
    ends = np.empty((nodes * nodes // 2 + 1, 2), dtype=np.int64)
    found = np.empty(nodes, dtype=np.int64)
    count = 0
    for u in range(nodes):
        for v in range(u):
            if links[u, v]:
                links[u, v] = 0
                count = join(links, ends, count, u, v)
    for _ in range(steps):
        if np.random.random() < random_link:
            u = np.random.randint(nodes)
            v = np.random.randint(nodes - 1)
            v += v >= u
            count = join(links, ends, count, u, v)
        if np.random.random() < introduction:
            u = np.random.randint(nodes)
            friend = pick(links, u, -1, found)
            if friend >= 0:
                v = pick(links, friend, u, found)
                if v >= 0:
                    count = join(links, ends, count, u, v)
        for _ in range(min(np.random.poisson(decay), count)):
            at = np.random.randint(count)
            u, v = ends[at, 0], ends[at, 1]
            links[u, v] = links[v, u] = 0
            count -= 1
            ends[at, 0], ends[at, 1] = ends[count, 0], ends[count, 1]


@numba.njit(cache=True, nogil=True)
def pick(links, u, other, found):  # type: ignore[no-untyped-def]
    """A random neighbour of a node but for one; -1 where there is none."""
    count = 0
    for v in range(len(links)):
        if links[u, v] and v != other:
            found[count] = v
            count += 1
    return found[np.random.randint(count)] if count else -1


@numba.njit(cache=True, nogil=True)
def crossing(links, groups):  # type: ignore[no-untyped-def]
    """Number of links between the two communities."""
    made = 0
    for u in range(len(groups)):
        for v in range(len(groups)):
            if links[u, v] and groups[u] != groups[v]:
                made += 1
    return made


FIRE, COPY, MVS = 0, 1, 2


@numba.njit(cache=True, nogil=True)
def one_run(kind, nodes, start, outlinks, linked, settings, links, groups):  # type: ignore[no-untyped-def]
    """Make one network in place."""
    links[:] = 0
    communities(links, groups, start, outlinks)
    half = start // 2
    if kind == MVS:
        for u in range(nodes):
            for v in range(nodes):
                if links[u, v]:
                    links[v, u] = 1
    if linked:
        links[0, half] = 1
        if kind == MVS:
            links[half, 0] = 1
    if kind == FIRE:
        grow_fire(links, groups, start, settings[0], settings[1], settings[2])
    elif kind == COPY:
        grow_copies(links, groups, start, settings[0])
    else:
        evolve(links, int(settings[3]), settings[0], settings[1], settings[2])


@numba.njit(cache=True, nogil=True)
def many_runs(kind, nodes, start, outlinks, linked, settings, runs, seed):  # type: ignore[no-untyped-def]
    """Number of links between the communities in each of many runs."""
    np.random.seed(seed)
    out = np.empty(runs, dtype=np.int64)
    links, groups = np.empty((nodes, nodes), dtype=np.uint8), np.empty(nodes, dtype=np.int64)
    for run in range(runs):
        one_run(kind, nodes, start, outlinks, linked, settings, links, groups)
        made = crossing(links, groups)
        out[run] = made // 2 if kind == MVS else made
    return out


@numba.njit(cache=True, nogil=True)
def seeded_run(kind, nodes, start, outlinks, linked, settings, seed):  # type: ignore[no-untyped-def]
    """One network, and the community of each node."""
    np.random.seed(seed)
    links, groups = np.empty((nodes, nodes), dtype=np.uint8), np.empty(nodes, dtype=np.int64)
    one_run(kind, nodes, start, outlinks, linked, settings, links, groups)
    return links, groups
