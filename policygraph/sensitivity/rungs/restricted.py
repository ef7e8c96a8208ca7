"""Public degrees where some node pairs cannot change: structural zeros and public edges. Owns :func:`restricted_length`.

The moves are the minimal ones of the degrees alone that stay off these pairs, and each lies in one connected part of the
others (``docs/explanation/proofs/networks.md``, Theorem 9).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from policygraph.model.constraints.networks import KnownEdges
from policygraph.model.constraints.tables import LinearCount
from policygraph.model.domain import Network
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Ints
from policygraph.moves.degrees.closed_form import longest_degree_move
from policygraph.moves.two_way.closed_form import longest_bipartite_move

__all__ = ["LISTED_PAIRS", "fixed_pairs", "is_fixing", "restricted_length"]

LISTED_PAIRS = 4_000_000
"""Most node pairs that are looked at one by one; beyond, the bound for all pairs is used."""

Edges = list[tuple[int, int, int]]


def is_fixing(fact: object, policy: Policy) -> bool:
    """Whether a fact makes single node pairs public and says nothing else."""
    if isinstance(fact, KnownEdges):
        return True
    return isinstance(fact, LinearCount) and len(fact.rows(policy.domain).cell) == 1


def fixed_pairs(policy: Policy) -> Ints:
    """The node pairs that no move touches: structural zeros, and edges that are public by themselves.

    Examples
    --------
    >>> policy = Policy(Network(3), constraints=[KnownEdges([0, 0, 1], between=True)])
    >>> fixed_pairs(policy).tolist()
    [1, 2]
    """
    found = [policy.system.zeros]
    for fact in policy.system.needed:
        if isinstance(fact, KnownEdges):
            found.append(fact.cells(policy.domain))
        elif is_fixing(fact, policy):
            found.append(fact.rows(policy.domain).cell)
    return np.unique(np.concatenate(found))


def restricted_length(network: Network, fixed: Ints, known: dict[str, Ints]) -> tuple[int, Edges]:
    """Bound the number of edges of a minimal move that stays off some pairs.

    Parameters
    ----------
    network
        The network.
    fixed
        Pairs that do not change.
    known
        Whether the degree of each node is public, for the side ``"both"``, or for ``"out"`` and ``"in"``.

    Returns
    -------
    tuple
        The bound, and the longest move found (perhaps shorter, perhaps none).

    Examples
    --------
    >>> network, everybody = Network(6), {"both": np.ones(6, dtype=bool)}
    >>> inside = KnownEdges([0, 0, 0, 0, 1, 1], inside=True).cells(network)
    >>> restricted_length(network, inside, everybody)[0]
    4
    """
    closed = np.zeros(network.size, dtype=bool)
    closed[fixed] = True
    tail, head = network.pairs(np.flatnonzero(~closed))
    parts = _directed(network, tail, head, known) if network.directed else _both(network, tail, head, known)
    most, longest, best = 0, 0, []
    for length, edges in parts:
        most = max(most, length)
        if length <= longest:
            continue
        ends = np.array(edges, dtype=np.int64)
        if not network.loops and np.any(ends[:, 0] == ends[:, 1]):
            continue
        if not closed[network.pair_index(ends[:, 0], ends[:, 1])].any():
            longest, best = length, edges
    return most, best


def _labels(n: int, one: Ints, other: Ints) -> Ints:
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    joined = sparse.coo_array((np.ones(len(one), dtype=np.int8), (one, other)), shape=(n, n))
    found: Ints = connected_components(joined, directed=False)[1].astype(np.int64)
    return found


def _named(edges: Edges, left: Ints, right: Ints) -> Edges:
    return [(int(left[u]), int(right[v]), x) for u, v, x in edges]


def _both(network: Network, tail: Ints, head: Ints, known: dict[str, Ints]) -> Iterator[tuple[int, Edges]]:
    """Undirected: each connected part as if all its pairs were open, or all between its two sides if it has sides."""
    n, mask = network.order, known["both"]
    part = _labels(n, tail, head)
    # Two copies of each node, an edge changing the copy: a part has two sides if its copies are not connected.
    copy = _labels(2 * n, np.concatenate([tail, head]), np.concatenate([head + n, tail + n]))
    looped = np.zeros(n, dtype=bool)
    looped[tail[tail == head]] = True
    for nodes in _groups(part, np.unique(part[tail])):
        length, edges = longest_degree_move(
            len(nodes), mask[nodes], loops=bool(looped[nodes].any()), capacity=network.capacity
        )
        found = length, _named(edges, nodes, nodes)
        if copy[nodes[0]] != copy[nodes[0] + n]:
            side = copy[nodes] == copy[nodes[0]]
            left, right = nodes[side], nodes[~side]
            length, edges = longest_bipartite_move(len(left), len(right), mask[left], mask[right])
            # Of two bounds the smaller one counts; its move is more likely to stay off the fixed pairs.
            found = min(found, (length, _named(edges, left, right)), key=lambda bound: bound[0])
        yield found


def _directed(
    network: Network, tail: Ints, head: Ints, known: dict[str, Ints]
) -> Iterator[tuple[int, Edges]]:
    """Directed: connected parts of the graph of tails and heads."""
    n = network.order
    part = _labels(2 * n, tail, head + n)
    for nodes in _groups(part, np.unique(part[tail])):
        left, right = nodes[nodes < n], nodes[nodes >= n] - n
        length, edges = longest_bipartite_move(len(left), len(right), known["out"][left], known["in"][right])
        found = length, _named(edges, left, right)
        if not network.loops and np.array_equal(left, right) and len(left) > 1:
            length, edges = longest_bipartite_move(
                len(left), len(right), known["out"][left], known["in"][right], loops_forbidden=True
            )
            found = min((length, _named(edges, left, right)), found, key=lambda bound: bound[0])
        yield found


def _groups(part: Ints, wanted: Ints) -> Iterator[Ints]:
    """Members of each wanted part."""
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], [wanted, wanted + 1])
    for start, stop in ends.T.tolist():
        yield order[start:stop]
