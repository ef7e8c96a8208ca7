"""Counts of edges between groups under public degrees: bounds that use the groups, and pairs of networks that come close.

Owns the bound of ``docs/explanation/proofs/networks.md`` (Theorems 1 and 2) and its witness.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policygraph.model.constraints.networks import Degrees
from policygraph.model.domain import Network
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Ints, Norm, Query
from policygraph.model.queries.networks import MixingQuery

__all__ = ["capped_cycle", "markov_switch", "mixing_bound", "mixing_witness"]


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


def mixing_witness(query: MixingQuery, policy: Policy) -> list[tuple[int, int, int]]:
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
    out: list[tuple[int, int, int]] = []
    for at, (tail, head) in enumerate(chosen):
        onward = chosen[(at + 1) % len(chosen)][0]
        out.append((tail, head, 1))
        out.append((onward, head, -1) if network.directed else (head, onward, -1))
    return out


def markov_switch(query: Query, policy: Policy) -> list[tuple[int, int, int]] | None:
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


def capped_cycle(query: Query, policy: Policy) -> list[tuple[int, int, int]] | None:
    """A cycle that adds and removes as many edges as the policy's cap allows, as (tail, head, sign); None where there is none.

    Examples
    --------
    >>> from policygraph.model.queries.networks import AdjacencyQuery
    >>> network = Network(6)
    >>> policy = Policy(network, constraints=[Degrees("all")], at_most_records=3)
    >>> len(capped_cycle(AdjacencyQuery(network), policy))
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
    out: list[tuple[int, int, int]] = []
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
