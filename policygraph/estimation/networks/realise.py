"""A first graph with given degrees and group counts. Owns :func:`first_graph`.

Degrees are split over groups by flow, then blocks are filled with the largest first. What does not fit is left as double
edges or loops for the switches to repair. Works on plain arrays.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from policygraph.estimation.optimise import flow_between

Ints = npt.NDArray[np.int64]
STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Beyond a proportional share a node's edges to a group cost 1, 2, 3, ... for steps of these sizes."""
OVERFULL = 1000
"""Cost of an edge more than the group has nodes."""


def split_degrees(degrees: Ints, room: Ints, wanted: Ints) -> Ints:
    """Split the degree of each node over groups so that the groups get what they want.

    Parameters
    ----------
    degrees
        One for each node.
    room
        For each node and group, how many neighbours the node can have there.
    wanted
        For each group how many edge ends the nodes have there together; sums to the sum of the degrees.

    Returns
    -------
    array
        Whole numbers, nodes x groups, near proportional; above ``room`` only where nothing else fits.

    Examples
    --------
    >>> split_degrees(np.array([3, 1]), np.array([[1, 4], [1, 4]]), np.array([2, 2])).tolist()
    [[1, 2], [1, 0]]
    """
    share = degrees[:, None] * wanted[None, :] // max(int(degrees.sum()), 1)
    share = np.minimum(share, room)
    # With the shares settled only what rounding left over has to flow, which is little and fast; where room is scarce that can
    # fail, and then the shares are free again.
    rest = _flow(degrees - share.sum(axis=1), room - share, wanted - share.sum(axis=0))
    if rest is not None:
        rest += share
        return rest
    whole = _flow(degrees, room, wanted, share)
    if whole is None:
        raise ValueError("degrees and wanted ends have different sums")
    return whole


def _flow(degrees: Ints, room: Ints, wanted: Ints, share: Ints | None = None) -> Ints | None:
    """Split degrees at least cost, up to ``share`` for nothing and then above ``room``; without shares never, which may fail."""
    n, k = room.shape
    node, group = (side.ravel() for side in np.indices((n, k)))
    live = (degrees[node] > 0) & (wanted[group] > 0)
    node, group = node[live], group[live]
    arcs: list[tuple[Ints, int]] = []
    left = np.minimum(room[node, group], degrees[node])
    if share is not None:
        arcs = [(share[node, group], 0), (degrees[node], OVERFULL)]
        left = room[node, group] - share[node, group]
    for cost, size in enumerate(STEPS, start=1):
        step = np.minimum(left, size)
        arcs.append((step, cost))
        left = left - step
    arcs.append((left, len(STEPS) + 1))
    widths = np.concatenate([width for width, _ in arcs])
    prices = np.repeat([price for _, price in arcs], len(node))
    open_ = np.flatnonzero(widths > 0)
    at = open_ % max(len(node), 1)
    flow = flow_between(node[at], group[at], widths[open_], prices[open_], degrees, wanted)
    if flow is None:
        return None
    out = np.zeros((n, k), dtype=np.int64)
    np.add.at(out, (node[at], group[at]), flow)
    return out


def first_graph(
    out: Ints, into: Ints, codes: Ints, counts: Ints, *, directed: bool, loops: bool
) -> tuple[Ints, Ints]:
    """Edges with exactly the given degrees and group counts, mostly simple.

    Parameters
    ----------
    out, into
        Degrees of the nodes; the same twice if undirected.
    codes
        Group of each node.
    counts
        Matrix of groups: edges from group to group; symmetric if undirected, with the edges inside on the diagonal.
    directed, loops
        Kind of the network.

    Returns
    -------
    tuple
        Tails and heads.

    Examples
    --------
    >>> degrees = np.array([2, 2, 2])
    >>> first_graph(degrees, degrees, np.zeros(3, dtype=int), np.array([[3]]), directed=False, loops=False)
    (array([0, 0, 1]), array([1, 2, 2]))
    """
    k = len(counts)
    members = [np.flatnonzero(codes == group) for group in range(k)]
    sizes = np.array([len(nodes) for nodes in members], dtype=np.int64)
    away = np.zeros((len(codes), k), dtype=np.int64)
    back = np.zeros((len(codes), k), dtype=np.int64)
    sides = ((out, away, counts), (into, back, counts.T)) if directed else ((out, away, counts),)
    for degrees, split, wanted in sides:
        for group, nodes in enumerate(members):
            room = np.broadcast_to(sizes - (np.arange(k) == group) * (not loops), (len(nodes), k))
            ends = wanted[group] * (1 if directed else 1 + (np.arange(k) == group))
            split[nodes] = split_degrees(degrees[nodes], np.ascontiguousarray(room), ends)
    edges: list[tuple[Ints, Ints]] = []
    for g in range(k):
        for h in range(k if directed else g + 1):
            if not counts[g, h]:
                continue
            if g == h and not directed:
                edges.append(_inside(members[g], away[members[g], g]))
            else:
                right = (back if directed else away)[members[h], g]
                bar = g == h and not loops
                edges.append(_between(members[g], away[members[g], h], members[h], right, bar=bar))
    if not edges:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing
    tails, heads = (np.concatenate(parts) for parts in zip(*edges, strict=True))
    return tails, heads


def _largest(ends: Ints, n: int) -> Ints:
    """Positions of the n largest values that are not 0."""
    if n < len(ends):
        picked = np.argpartition(-ends, n - 1)[:n] if n > 0 else np.zeros(0, dtype=np.int64)
    else:
        picked = np.arange(len(ends))
    return picked[ends[picked] > 0]


def _between(left: Ints, ends: Ints, right: Ints, others: Ints, *, bar: bool) -> tuple[Ints, Ints]:
    """Join two lists of nodes: each node on the left, largest first, to the right ones that need most (Gale and Ryser)."""
    from policygraph.estimation.networks._compiled_graphs import fill_between

    ends = ends.astype(np.int64)
    order = np.argsort(-others, kind="stable")
    needs = others[order].astype(np.int64)
    own = np.full(len(left), -1, dtype=np.int64)
    if bar:
        _, here, there = np.intersect1d(left, right, return_indices=True)
        own[here] = there
    tails, heads = np.empty((2, int(ends.sum())), dtype=np.int64)
    used = fill_between(ends, np.argsort(-ends, kind="stable"), needs, order, own, tails, heads)
    # Whatever is left over is joined as it comes.
    tails[used:] = np.repeat(np.arange(len(left)), ends)
    heads[used:] = np.repeat(order, needs)
    return left[tails], right[heads]


def _inside(nodes: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Join nodes of one list: the one that needs most to those that need most after it (Havel and Hakimi)."""
    from policygraph.estimation.networks._compiled_graphs import fill_inside

    order = np.argsort(-ends, kind="stable")
    needs = ends[order].astype(np.int64)
    tails, heads = np.empty((2, int(ends.sum()) // 2), dtype=np.int64)
    used = fill_inside(needs, order, tails, heads)
    rest = np.repeat(order, needs)
    half = len(rest) // 2
    tails[used:] = rest[:half]
    heads[used:] = rest[half:]
    return nodes[tails], nodes[heads]


def any_graph(out: Ints, into: Ints, *, directed: bool, loops: bool) -> tuple[Ints, Ints]:
    """A simple graph with the given degrees, whatever its group counts; the degrees must be those of a graph.

    Examples
    --------
    >>> any_graph(np.array([1, 1]), np.array([1, 1]), directed=True, loops=False)
    (array([0, 1]), array([1, 0]))

    Notes
    -----
    Undirected: Havel and Hakimi. Directed: each node is joined to the nodes with the largest in-degrees left, ties to
    the larger out-degree left (Kleitman and Wang); with loops, Gale and Ryser.
    """
    nodes = np.arange(len(out), dtype=np.int64)
    if not directed:
        return _inside(nodes, out)
    if loops:
        return _between(nodes, out, nodes, into, bar=False)
    away, back = out.copy(), into.copy()
    tails: list[Ints] = []
    heads: list[Ints] = []
    for at in range(len(out)):
        need = int(away[at])
        away[at] = 0
        key = np.where(back > 0, back * (len(out) + 1) + away, 0)
        key[at] = 0
        chosen = _largest(key, need)
        back[chosen] -= 1
        tails.append(np.full(len(chosen), at))
        heads.append(chosen)
    return np.concatenate(tails), np.concatenate(heads)
