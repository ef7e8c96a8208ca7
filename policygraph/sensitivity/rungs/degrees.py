"""Public degrees of a network: closed forms for its edges, bounds for counts of edges between groups.

A minimal move is a walk with alternating signs (``docs/explanation/proofs/degrees.md``; for directed networks a closed walk in a bipartite
graph, ``docs/explanation/proofs/two-cuboids.md``). Where some node pairs cannot change, structural zeros and public edges, the moves
are those that stay off these pairs, and each lies in one connected part of the others. ``docs/explanation/proofs/networks.md`` has the
bounds that use groups (Theorems 1 and 2) and the parts (Theorem 9).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from policygraph.model.constraints.networks import Degrees, KnownEdges
from policygraph.model.constraints.tables import LinearCount, Total
from policygraph.model.domain import Network
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Ints, Norm, Query
from policygraph.model.queries.networks import MixingQuery
from policygraph.moves.bracket import Bracket, Witness
from policygraph.moves.degrees.closed_form import longest_degree_move
from policygraph.moves.two_way.closed_form import longest_bipartite_move
from policygraph.sensitivity.problem import Problem

__all__ = ["capped_cycle", "fixed_pairs", "one_switch", "public_degrees", "restricted_length"]

LISTED_PAIRS = 4_000_000
"""Most node pairs that are looked at one by one; beyond, the bound for all pairs is used."""

Edges = list[tuple[int, int, int]]
"""Edges as (tail, head, sign), by the positions of the nodes."""
Longest = tuple[int, dict[int, int], str]
"""Edges of the longest minimal move, a move, and why."""


def one_switch(problem: Problem) -> Bracket[Witness] | None:
    """All degrees public and Markov moves: the switch of two edges that changes most."""
    query, policy = problem.query, problem.policy
    if (switch := markov_switch(query, policy)) is None:
        return None
    change = _pairs(policy.domain, switch)
    value = query.change_norm(change, problem.norm)
    reason = "with all degrees public a Markov move switches two edges; no switch changes more (docs/explanation/proofs/networks.md)"
    return Bracket(value, value, Witness.of_change(change), "closed form, one switch", reason)


def capped_cycle(problem: Problem) -> Bracket[Witness] | None:
    """All degrees public and a cap: a cycle that uses the cap up."""
    query, policy = problem.query, problem.policy
    cycle = longest_capped_cycle(query, policy)
    if cycle is None or not (problem.norm == "l1" or query.is_identity):
        return None
    change = _pairs(policy.domain, cycle)
    value, cap = query.change_norm(change, problem.norm), policy.at_most_records
    if value != 2 * (cap or 0):
        return None
    reason = f"at most {cap} edges are added and {cap} removed, and an alternating cycle does that"
    return Bracket(value, value, Witness.of_change(change), "closed form, capped cycle", reason)


def public_degrees(problem: Problem) -> Bracket[Witness] | None:
    """Public degrees, and pairs that cannot change: closed forms for the edges, a bound for counts of edges."""
    found = _of_degrees(problem.query, problem.policy, problem.norm)
    return None if found is None else problem.settle(found)


def _of_degrees(query: Query, policy: Policy, norm: Norm) -> Bracket[Witness] | None:
    network = policy.domain
    facts = [fact for fact in policy.system.needed if not is_fixing(fact, policy)]
    if not isinstance(network, Network) or not all(isinstance(fact, (Degrees, Total)) for fact in facts):
        return None
    if any(isinstance(fact, Total) for fact in facts) and not network.directed:
        return None
    found = _directed(policy, facts) if network.directed else _undirected(policy, facts)
    length, change, reason = found
    lower = query.change_norm(change, norm) if change else 0
    if query.is_identity:
        # Entries are +-1 in simple graphs and in directed ones, and at most 2 in undirected graphs with multiple edges
        # (docs/explanation/proofs/degrees.md), so that the squared l2 norm is at most once or twice the l1 norm.
        doubled = norm == "l2" and network.capacity is None and not network.directed
        upper = 2 * length if doubled else length
    elif isinstance(query, MixingQuery):
        upper = length if norm == "l1" else length * length
        if (by_groups := mixing_bound(query, policy, length, norm)) is not None and by_groups[0] < upper:
            upper, reason = by_groups[0], f"{reason}; {by_groups[1]}"
        other = _pairs(network, mixing_witness(query, policy))
        if other and query.change_norm(other, norm) > lower and _stays_off(policy, other):
            change, lower = other, query.change_norm(other, norm)
    else:
        return None
    return Bracket(
        upper,
        lower,
        Witness.of_change(change) if change else None,
        "closed form, public degrees" if upper == lower else "bound by public degrees",
        reason,
    )


def _fixing(policy: Policy) -> bool:
    return bool(len(policy.system.zeros)) or any(is_fixing(fact, policy) for fact in policy.system.needed)


def _stays_off(policy: Policy, change: dict[int, int]) -> bool:
    """Whether no pair of a change is structurally empty or public."""
    if not _fixing(policy):
        return True
    cells = np.array(sorted(change), dtype=np.int64)
    public = [fact for fact in policy.system.needed if is_fixing(fact, policy)]
    return not np.isin(cells, policy.system.zeros).any() and not any(
        len(fact.rows_on(policy.domain, cells).cell) for fact in public
    )


def _restricted(policy: Policy, known: dict[str, Any], found: Longest, *, joined: bool = False) -> Longest:
    """The same where some pairs cannot change; ``joined`` if a fact couples unconnected parts."""
    network = policy.domain
    if not isinstance(network, Network) or not _fixing(policy):
        return found
    length, change, reason = found
    if joined or network.size > LISTED_PAIRS:
        kept = change if _stays_off(policy, change) else {}
        return length, kept, f"{reason}; pairs that cannot change only rule moves out"
    bound, edges = restricted_length(network, fixed_pairs(policy), known)
    smaller = _pairs(network, edges)
    why = (
        "a minimal move lies in one connected part of the pairs that can change, and the largest part allows at most "
        f"{min(bound, length)} edges (docs/explanation/proofs/networks.md, Theorem 9)"
    )
    return min(bound, length), smaller, why


def _undirected(policy: Policy, facts: Sequence[Any]) -> Longest:
    network: Any = policy.domain
    mask = np.zeros(network.order, dtype=bool)
    for fact in facts:
        mask[fact.positions(network)] = True
    length, edges = longest_degree_move(network.order, mask, loops=network.loops, capacity=network.capacity)
    reason = (
        "a minimal move is an alternating walk whose repeated nodes hang odd cycles together; with "
        f"{int(mask.sum())} of {network.order} degrees public it has at most {length} edges (docs/explanation/proofs/degrees.md)"
    )
    return _restricted(policy, {"both": mask}, (length, _pairs(network, edges), reason))


def _directed(policy: Policy, facts: Sequence[Any]) -> Longest:
    network: Any = policy.domain
    masks = {side: np.zeros(network.order, dtype=bool) for side in ("out", "in")}
    total = False
    for fact in facts:
        if isinstance(fact, Degrees):
            masks[fact.side][fact.positions(network)] = True
        else:
            total = True
    if network.order == 1 and not network.loops:
        return 0, {}, "there is no pair of nodes"
    length, edges = longest_bipartite_move(
        network.order,
        network.order,
        masks["out"],
        masks["in"],
        total_known=total,
        loops_forbidden=not network.loops,
    )
    reason = (
        "a minimal move is a closed walk in the bipartite graph of tails and heads that visits each node with a public "
        f"degree once; it has at most {length} edges (docs/explanation/proofs/two-cuboids.md)"
    )
    return _restricted(policy, masks, (length, _pairs(network, edges), reason), joined=total)


def _pairs(network: Any, edges: Any) -> dict[int, int]:
    """A change of edges, given by the positions of their ends, as a change of cells."""
    if not len(edges):
        return {}
    listed = np.array(edges, dtype=np.int64)
    cells, inverse = np.unique(network.pair_index(listed[:, 0], listed[:, 1]), return_inverse=True)
    amounts = np.zeros(len(cells), dtype=np.int64)
    np.add.at(amounts, inverse, listed[:, 2])
    return {cell: x for cell, x in zip(cells.tolist(), amounts.tolist(), strict=True) if x}


# Pairs that cannot change ------------------------------------------------------------------------------------------------


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
    parts = (
        _directed_parts(network, tail, head, known)
        if network.directed
        else _undirected_parts(network, tail, head, known)
    )
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


def _undirected_parts(
    network: Network, tail: Ints, head: Ints, known: dict[str, Ints]
) -> Iterator[tuple[int, Edges]]:
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


def _directed_parts(
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


# Counts of edges between groups ------------------------------------------------------------------------------------------


def _known(policy: Policy, network: Network) -> dict[str, Ints]:
    """Whether the degree of each node is public, for each side that is used."""
    sides = ("out", "in") if network.directed else ("both",)
    masks = {side: np.zeros(network.order, dtype=bool) for side in sides}
    for fact in policy.system.needed:
        if isinstance(fact, Degrees):
            masks[fact.side][fact.positions(network)] = True
    return masks


def mixing_bound(query: MixingQuery, policy: Policy, length: int, norm: Norm) -> tuple[int, str] | None:
    """Bound the change of mixing counts (squared for l2) by the groups.

    Parameters
    ----------
    query
        The counts.
    policy
        A policy with public degrees and no other fact but the total.
    length
        Edges of the longest minimal move.

    Returns
    -------
    tuple or None
        The bound and its reason; None when the groups do not help.

    Examples
    --------
    >>> network = Network(100)
    >>> policy = Policy(network, constraints=[Degrees("all")])
    >>> mixing_bound(MixingQuery(network, ["x"] * 95 + ["y"] * 5), policy, 148, "l1")[0]
    20

    Notes
    -----
    Edges that are removed and do not lie inside the largest group G have an end outside it, where as many ends are added
    as removed, at most two of each. If the count inside G grows, all that shrinks is among these, and what grows is as
    much as what shrinks; if it does not grow, exchange the words.
    """
    network = query.domain
    masks = _known(policy, network)
    everything = all(bool(mask.all()) for mask in masks.values())
    if network.directed and not everything:
        return None
    sizes = np.bincount(query.codes, minlength=len(query.names))
    largest = int(np.argmax(sizes))
    outside = query.codes != largest
    if network.directed:
        bound = 4 * int(outside.sum())
    else:
        there = int((outside & masks["both"]).sum())
        simple = network.capacity == 1 and not network.loops
        cuts = min(there, max((network.order - 3) // 2, 0)) if simple else there
        bound = 2 * there + 2 * cuts + (0 if everything else 3)
    bound = min(bound, length)
    if everything:
        bound -= bound % 2
    reason = (
        f"outside the largest group a minimal move has few edges, and what the counts gain they lose elsewhere: at most {bound} "
        "in all (docs/explanation/proofs/networks.md)"
    )
    if norm == "l1":
        return bound, reason
    half = (bound + 1) // 2
    return half * half + (bound - half) * (bound - half), reason


def mixing_witness(query: MixingQuery, policy: Policy) -> Edges:
    """An alternating cycle that adds edges inside groups and removes edges between groups, as (tail, head, sign).

    Examples
    --------
    >>> network = Network(4)
    >>> policy = Policy(network, constraints=[Degrees("all")])
    >>> mixing_witness(MixingQuery(network, ["x", "x", "y", "y"]), policy)
    [(0, 1, 1), (1, 2, -1), (2, 3, 1), (3, 0, -1)]

    Notes
    -----
    All nodes of the cycle are different and have public degrees, so that it is a minimal move (degrees.md, Theorem 1;
    two-cuboids.md for directed networks). Nothing cancels, so that the counts change by its length.
    """
    network = query.domain
    masks = _known(policy, network)
    if network.directed:
        inner = _inner_arcs(query.codes, masks["out"], masks["in"])
    else:
        inner = _inner_pairs(query.codes, masks["both"])
    order = _alternate(query.codes[[tail for tail, _ in inner]] if inner else np.zeros(0, dtype=np.int64))
    chosen = [inner[at] for at in order]
    out: Edges = []
    for at, (tail, head) in enumerate(chosen):
        onward = chosen[(at + 1) % len(chosen)][0]
        out.append((tail, head, 1))
        out.append((onward, head, -1) if network.directed else (head, onward, -1))
    return out


def markov_switch(query: Query, policy: Policy) -> Edges | None:
    """A switch of two edges that no other Markov move exceeds, as (tail, head, sign); None where none is known to.

    Examples
    --------
    >>> network = Network(5)
    >>> policy = Policy(network, constraints=[Degrees("all")], strength="markov")
    >>> markov_switch(MixingQuery(network, ["x", "y", "x", "y", "x"]), policy)
    [(0, 2, 1), (2, 1, -1), (1, 3, 1), (3, 0, -1)]

    Notes
    -----
    With all degrees public (and nothing else) a minimal move with at most four edges is a cycle of four nodes, two edges added and
    two removed. Adding one edge in each of two groups and removing two between them changes the counts by 4, or 6 in squares (4 if
    directed), which is the most that four edges can do (``docs/explanation/proofs/networks.md``, Theorem 7).
    """
    network = policy.domain
    if policy.strength != "markov" or not isinstance(network, Network) or not _all_degrees(policy, network):
        return None
    if network.order < 4 or (policy.at_most_records or 2) < 2:
        return None
    if query.is_identity:
        a, b, c, d = 0, 1, 2, 3
    elif isinstance(query, MixingQuery):
        sizes = np.bincount(query.codes)
        large = np.flatnonzero(sizes >= 2)[:2]
        if len(large) < 2:
            return None
        (a, b), (c, d) = (np.flatnonzero(query.codes == group)[:2].tolist() for group in large)
    else:
        return None
    if network.directed:
        return [(a, b, 1), (c, b, -1), (c, d, 1), (a, d, -1)]
    return [(a, b, 1), (b, c, -1), (c, d, 1), (d, a, -1)]


def _all_degrees(policy: Policy, network: Network) -> bool:
    """Whether all degrees of a simple network without loops are public, and nothing else."""
    if network.capacity != 1 or network.loops or len(policy.system.zeros):
        return False
    if not all(isinstance(fact, Degrees) for fact in policy.system.needed):
        return False
    return all(bool(mask.all()) for mask in _known(policy, network).values())


def longest_capped_cycle(query: Query, policy: Policy) -> Edges | None:
    """A cycle that adds and removes as many edges as the policy's cap allows, as (tail, head, sign); None where there is none.

    Examples
    --------
    >>> from policygraph.model.queries.networks import AdjacencyQuery
    >>> network = Network(6)
    >>> policy = Policy(network, constraints=[Degrees("all")], at_most_records=3)
    >>> len(longest_capped_cycle(AdjacencyQuery(network), policy))
    6

    Notes
    -----
    A cycle of 2 r different nodes with alternating signs is a minimal move. For mixing counts (an even cap) edges inside two groups are added and
    edges between them removed, so that nothing cancels.
    """
    network, cap = policy.domain, policy.at_most_records
    if policy.strength != "worst-case" or cap is None or cap < 2:
        return None
    if not isinstance(network, Network) or 2 * cap > network.order or not _all_degrees(policy, network):
        return None
    if query.is_identity:
        nodes = list(range(2 * cap))
    elif isinstance(query, MixingQuery) and cap % 2 == 0:
        large = np.flatnonzero(np.bincount(query.codes) >= cap)[:2]
        if len(large) < 2:
            return None
        one, other = (np.flatnonzero(query.codes == group)[:cap].tolist() for group in large)
        nodes = [v for at in range(0, cap, 2) for v in (*one[at : at + 2], *other[at : at + 2])]
    else:
        return None
    out: Edges = []
    for at in range(0, 2 * cap, 2):
        tail, head, onward = nodes[at], nodes[at + 1], nodes[(at + 2) % (2 * cap)]
        out.append((tail, head, 1))
        out.append((onward, head, -1) if network.directed else (head, onward, -1))
    return out


def _inner_pairs(codes: Ints, known: Ints) -> list[tuple[int, int]]:
    """Pairs of nodes with public degrees in one group, each node once."""
    pairs: list[tuple[int, int]] = []
    for group in np.unique(codes):
        members = np.flatnonzero((codes == group) & known).tolist()
        pairs.extend(zip(members[0::2], members[1::2], strict=False))
    return pairs


def _inner_arcs(codes: Ints, out: Ints, into: Ints) -> list[tuple[int, int]]:
    """Arcs inside groups, each node once as tail and once as head, no loops."""
    arcs: list[tuple[int, int]] = []
    for group in np.unique(codes):
        members = np.flatnonzero((codes == group) & out & into).tolist()
        if len(members) > 1:
            arcs.extend(zip(members, [*members[1:], members[0]], strict=True))
    return arcs


def _alternate(groups: Ints) -> Sequence[int]:
    """Positions of a longest selection, in a circular order in which neighbours are of different groups."""
    if not len(groups):
        return []
    names, counts = np.unique(groups, return_counts=True)
    rest = len(groups) - int(counts.max())
    if rest == 0:
        return []
    kept: list[int] = []
    for at in np.argsort(-counts, kind="stable"):
        members = np.flatnonzero(groups == names[at])
        kept.extend(members[:rest].tolist() if counts[at] > rest else members.tolist())
    ordered = [0] * len(kept)
    places = [*range(0, len(kept), 2), *range(1, len(kept), 2)]
    for place, member in zip(places, kept, strict=True):
        ordered[place] = member
    return ordered
