"""Compiled primal-dual matching with blossoms; imported only when a matching is asked for.

Owns :func:`cover`: from potentials that respect every cost, and pairs that are tight under them, to a cheapest cover of all
vertices by pairs and singles, one tree at a time (Edmonds 1965). All numbers are whole.

A *node* is a vertex or a blossom (an odd cycle of nodes, with numbers from n on). The nodes of the tree are outer (label 1,
potentials rise) or inner (label 2, potentials fall). Potentials are kept lazily: ``since[v]`` is the time from which
``y[v]`` moves with its label. What can happen next (an edge or a single becomes tight, an inner blossom reaches zero) waits
in a heap by its time, and is looked at again when its time comes.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_EDGE, _SINGLE, _EXPAND = 0, 1, 2
_FREE, _OUTER, _INNER = 0, 1, 2


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def shared(u: Ints, v: Ints, innermost: Ints, around: Ints, depth: Ints, total: Ints, out: Ints) -> None:
    """Add to ``out`` the values of all nested sets that hold both ends of a pair.

    ``innermost[v]`` is the smallest set that holds v or -1, ``around[s]`` the next larger one, ``depth[s]`` their number, and
    ``total[s]`` the sum of the values from s outwards.
    """
    for i in range(u.size):
        a, b = innermost[u[i]], innermost[v[i]]
        while a != b:
            if a >= 0 and (b < 0 or depth[a] >= depth[b]):
                a = around[a]
            else:
                b = around[b]
        if a >= 0:
            out[i] += total[a]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _members(node: int, n: int, first: Ints, following: Ints, out: Ints, stack: Ints) -> int:
    """Write the vertices of a node into ``out`` and return how many there are."""
    count, depth = 0, 1
    stack[0] = node
    while depth:
        depth -= 1
        at = stack[depth]
        if at < n:
            out[count] = at
            count += 1
        else:
            child = first[at]
            while True:
                stack[depth] = child
                depth += 1
                child = following[child]
                if child == first[at]:
                    break
    return count


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _rebase(
    node: int,
    vertex: int,
    n: int,
    parent: Ints,
    first: Ints,
    following: Ints,
    tail: Ints,
    head: Ints,
    base: Ints,
    mate: Ints,
) -> None:
    """Pair the vertices of a node among each other, all but one."""
    todo = [(np.int64(node), np.int64(vertex))]
    while len(todo):
        at, left = todo.pop()
        if at < n:
            continue
        child = left
        while parent[child] != at:
            child = parent[child]
        base[at] = left
        first[at] = child
        todo.append((child, left))
        one = following[child]
        while one != child:
            two = following[one]
            a, b = tail[one], head[one]
            mate[a] = b
            mate[b] = a
            todo.append((one, a))
            todo.append((two, b))
            one = following[two]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def cover(
    starts: Ints,
    ends: Ints,
    costs: Ints,
    single: Ints,
    y: Ints,
    mate: Ints,
    z: Ints,
    parent: Ints,
    first: Ints,
    following: Ints,
) -> int:
    """Cover every vertex at least cost; return the number of trees grown.

    Parameters
    ----------
    starts, ends, costs
        The edges at each vertex, both ways: ``ends[starts[v]:starts[v + 1]]`` and their costs, all even.
    single
        Cost of leaving a vertex single.
    y
        Potentials with y[u] + y[v] <= cost and y[v] <= single[v]; changed in place.
    mate
        The other end of a pair, the vertex itself for a single, -1 for one that is not covered yet; pairs and singles
        are tight. Changed in place.
    z, parent, first, following
        Room for the blossoms: z of each node (0 for vertices), the blossom that a node lies in or -1, the first node of
        a blossom, and the next node on its cycle.
    """
    n = single.size
    nodes = z.size
    tail, head = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    base, top = np.arange(nodes), np.arange(n)
    label = np.zeros(nodes, dtype=np.int64)
    above, entry = np.full(nodes, -1, dtype=np.int64), np.full(nodes, -1, dtype=np.int64)
    since, grown = np.zeros(n, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    unused = np.arange(nodes - 1, n - 1, -1)
    spare = nodes - n
    inside, stack = np.empty(n, dtype=np.int64), np.empty(2 * nodes + 2, dtype=np.int64)
    marked = np.zeros(nodes, dtype=np.bool_)
    unseen = np.zeros(n, dtype=np.bool_)
    cycle = np.empty(nodes, dtype=np.int64)
    fresh = np.empty(nodes, dtype=np.int64)
    trees = 0
    for root in range(n):
        if mate[root] != -1:
            continue
        trees += 1
        now = np.int64(0)
        heap = [(np.int64(0), np.int64(0), np.int64(0), np.int64(0))]
        heap.pop()
        n_fresh = 1
        fresh[0] = top[root]
        a = b = np.int64(root)
        finished = False
        while not finished:
            # Nodes that have just become outer: their singles and edges are looked at.
            while n_fresh:
                n_fresh -= 1
                node = fresh[n_fresh]
                if label[node] != _OUTER:
                    label[node] = _OUTER
                    grown[node] = now
                    count = _members(node, n, first, following, inside, stack)
                    for k in range(count):
                        since[inside[k]] = now
                        unseen[inside[k]] = True
                else:
                    count = _members(node, n, first, following, inside, stack)
                for k in range(count):
                    v = inside[k]
                    if not unseen[v]:
                        continue
                    unseen[v] = False
                    heappush(heap, (now + single[v] - y[v], np.int64(_SINGLE), v, v))
                    for e in range(starts[v], starts[v + 1]):
                        w = ends[e]
                        there = label[top[w]]
                        if top[w] == node or there == _INNER:
                            continue
                        if there == _OUTER:
                            gap = (costs[e] - y[v] - y[w] - (now - since[w])) >> 1
                        else:
                            gap = costs[e] - y[v] - y[w]
                        heappush(heap, (now + gap, np.int64(_EDGE), v, np.int64(e)))
            now, kind, v, edge = heappop(heap)
            if kind == _SINGLE:
                if y[v] + now - since[v] != single[v]:
                    heappush(heap, (now + single[v] - y[v] - (now - since[v]), kind, v, edge))
                    continue
                a, b = v, v
                finished = True
            elif kind == _EXPAND:
                # Here v is the blossom; it may have been taken into another one, or be gone and made anew.
                if parent[v] != -1 or label[v] != _INNER or z[v] - 2 * (now - grown[v]) != 0 or first[v] < 0:
                    continue
                count = _members(v, n, first, following, inside, stack)
                for k in range(count):
                    y[inside[k]] -= now - since[inside[k]]
                    since[inside[k]] = now
                length = 0
                child = first[v]
                place = 0
                goal = entry[v]
                while parent[goal] != v:
                    goal = parent[goal]
                while True:
                    cycle[length] = child
                    if child == goal:
                        place = length
                    length += 1
                    child = following[child]
                    if child == first[v]:
                        break
                for k in range(length):
                    child = cycle[k]
                    parent[child] = -1
                    label[child] = _FREE
                    grown[child] = now
                    count = _members(child, n, first, following, inside, stack)
                    for i in range(count):
                        top[inside[i]] = child
                label[goal] = _INNER
                above[goal], entry[goal] = above[v], entry[v]
                k = place
                while k % length != 0:
                    if place % 2:
                        outer, inner = cycle[k + 1], cycle[(k + 2) % length]
                        label[inner] = _INNER
                        above[inner], entry[inner] = tail[outer], head[outer]
                        k += 2
                    else:
                        outer, inner = cycle[k - 1], cycle[k - 2]
                        label[inner] = _INNER
                        above[inner], entry[inner] = head[inner], tail[inner]
                        k -= 2
                    fresh[n_fresh] = outer
                    n_fresh += 1
                for k in range(length):
                    child = cycle[k]
                    if label[child] == _INNER and child >= n:
                        heappush(heap, (now + (z[child] >> 1), np.int64(_EXPAND), child, np.int64(0)))
                # The other children leave the tree: their edges to outer nodes are looked at again.
                for k in range(n_fresh):
                    marked[fresh[k]] = True
                for k in range(length):
                    child = cycle[k]
                    if label[child] != _FREE or marked[child]:
                        continue
                    count = _members(child, n, first, following, inside, stack)
                    for i in range(count):
                        w = inside[i]
                        for f in range(starts[w], starts[w + 1]):
                            x = ends[f]
                            if label[top[x]] == _OUTER:
                                gap = costs[f] - y[w] - y[x] - (now - since[x])
                                heappush(heap, (now + gap, np.int64(_EDGE), w, np.int64(f)))
                for k in range(n_fresh):
                    marked[fresh[k]] = False
                first[v] = -1
                label[v] = _FREE
                z[v] = 0
                unused[spare] = v
                spare += 1
                continue
            else:
                w = ends[edge]
                if label[top[v]] != _OUTER:
                    v, w = w, v
                node, other = top[v], top[w]
                if node == other or label[node] != _OUTER or label[other] == _INNER:
                    continue
                slack = costs[edge] - y[v] - y[w] - (now - since[v])
                if label[other] == _OUTER:
                    slack -= now - since[w]
                if slack:
                    later = now + (slack >> 1 if label[other] == _OUTER else slack)
                    heappush(heap, (later, kind, v if ends[edge] == w else w, edge))
                    continue
                if label[other] == _FREE:
                    partner = mate[base[other]]
                    if partner == -1 or partner == base[other]:
                        _rebase(other, w, n, parent, first, following, tail, head, base, mate)
                        mate[w] = v
                        a, b = v, w
                        finished = True
                    else:
                        label[other] = _INNER
                        above[other], entry[other] = v, w
                        grown[other] = now
                        count = _members(other, n, first, following, inside, stack)
                        for k in range(count):
                            since[inside[k]] = now
                        if other >= n:
                            heappush(heap, (now + (z[other] >> 1), np.int64(_EXPAND), other, np.int64(0)))
                        fresh[0] = top[partner]
                        n_fresh = 1
                        continue
                else:
                    # Two outer nodes of the tree: the cycle through their lowest common ancestor becomes a blossom.
                    at = node
                    while True:
                        marked[at] = True
                        if mate[base[at]] == -1:
                            break
                        at = top[above[top[mate[base[at]]]]]
                    join = other
                    while not marked[join]:
                        join = top[above[top[mate[base[join]]]]]
                    at = node
                    while True:
                        marked[at] = False
                        if mate[base[at]] == -1:
                            break
                        at = top[above[top[mate[base[at]]]]]
                    made = unused[spare - 1]
                    spare -= 1
                    length = 0
                    # From v up to the ancestor, the links turned round; then from w up to it.
                    at = node
                    follower, to_tail, to_head = other, v, w
                    while True:
                        following[at], tail[at], head[at] = follower, to_tail, to_head
                        cycle[length] = at
                        length += 1
                        if at == join:
                            break
                        up = top[mate[base[at]]]
                        following[up], tail[up], head[up] = at, mate[base[at]], base[at]
                        cycle[length] = up
                        length += 1
                        follower, to_tail, to_head = up, above[up], entry[up]
                        at = top[above[up]]
                    at = other
                    while at != join:
                        up = top[mate[base[at]]]
                        following[at], tail[at], head[at] = up, base[at], mate[base[at]]
                        following[up], tail[up], head[up] = top[above[up]], entry[up], above[up]
                        cycle[length] = at
                        cycle[length + 1] = up
                        length += 2
                        at = top[above[up]]
                    base[made] = base[join]
                    first[made] = join
                    z[made] = 0
                    parent[made] = -1
                    for k in range(length):
                        child = cycle[k]
                        rising = label[child] == _OUTER
                        if child >= n:
                            z[child] += 2 * (now - grown[child]) if rising else -2 * (now - grown[child])
                        parent[child] = made
                        label[child] = _FREE
                        count = _members(child, n, first, following, inside, stack)
                        for i in range(count):
                            x = inside[i]
                            top[x] = made
                            # What was outer goes on rising; what was inner turns, and has edges to look at.
                            if not rising:
                                y[x] -= now - since[x]
                                since[x] = now
                                unseen[x] = True
                    label[made] = _OUTER
                    grown[made] = now
                    fresh[0] = made
                    n_fresh = 1
                    continue
            # The path from a to the root changes sides: a is now paired with b (or single, if b is a).
            while True:
                node = top[a]
                partner = mate[base[node]]
                _rebase(node, a, n, parent, first, following, tail, head, base, mate)
                mate[a] = b
                if partner == -1:
                    break
                inner = top[partner]
                a, b = above[inner], entry[inner]
                _rebase(inner, b, n, parent, first, following, tail, head, base, mate)
                mate[b] = a
            for v in range(n):
                if label[top[v]] == _OUTER:
                    y[v] += now - since[v]
                elif label[top[v]] == _INNER:
                    y[v] -= now - since[v]
            for v in range(n):
                node = top[v]
                if label[node] != _FREE:
                    if node >= n:
                        z[node] += (
                            2 * (now - grown[node]) if label[node] == _OUTER else -2 * (now - grown[node])
                        )
                    label[node] = _FREE
    return trees
