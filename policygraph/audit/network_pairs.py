"""Neighbouring networks that change a statistic most. Owns :func:`statistic_pairs`.

A statistic that is not linear changes by an amount that depends on the whole network, and node privacy has no moves to list, so
that the pairs of :mod:`.pairs` would miss the worst. Small networks are searched in full.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from policygraph.audit.pairs import KINDS, Ints, Pair, candidate_moves, listed_moves, on_base
from policygraph.model.domain import Network
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query

__all__ = ["statistic_pairs"]

SEARCHED_CELLS = 10
"""Networks of up to so many node pairs (five nodes) are searched in full."""
SEARCHED_PAIRS = 500_000


def statistic_pairs(policy: Policy | NodePrivacy, query: Query, most: int) -> list[Pair]:
    """Make pairs of neighbouring networks, those that change the statistic most first.

    Parameters
    ----------
    policy
        Who may not be told apart.
    query
        The statistic.
    most
        How many pairs at most.

    Returns
    -------
    list of Pair
        On networks of up to five nodes the largest changes over all pairs of neighbours, each change of the answers once;
        on others the largest among moves on empty, sparse and dense networks.

    Examples
    --------
    >>> from policygraph.model.queries.network_statistics import Triangles
    >>> network = Network(4)
    >>> for pair in statistic_pairs(Policy(network), Triangles(network), 2):
    ...     print(int((Triangles(network).answer(pair.after) - Triangles(network).answer(pair.before))[0]))
    2
    1
    """
    network = policy.domain
    if isinstance(network, Network) and network.capacity == 1 and network.size <= SEARCHED_CELLS:
        found = _searched(policy, query, most)
        if found is not None:
            return found
    pairs = [pair for change in _changes(policy) for kind in KINDS for pair in on_base(policy, change, kind)]
    sizes = [int(np.abs(query.answer(pair.after) - query.answer(pair.before)).sum()) for pair in pairs]
    order = sorted(range(len(pairs)), key=lambda at: -sizes[at])
    return [pairs[at] for at in order[:most] if sizes[at]]


def _changes(policy: Policy | NodePrivacy) -> list[dict[int, int]]:
    """Some moves; of node privacy all edges of a node, or half of them for the others."""
    if isinstance(policy, Policy):
        from policygraph.model.queries import identity

        return candidate_moves(policy, identity(policy.domain), 6)
    out = []
    for node in (0, policy.domain.order - 1):
        at = _cells_of(policy.domain, node).tolist()
        out += [dict.fromkeys(at, 1), {cell: 1 if place % 2 else -1 for place, cell in enumerate(at)}]
    return out


def _cells_of(network: Network, node: int) -> Ints:
    tail, head = network.pairs(np.arange(network.size))
    cells: Ints = np.flatnonzero((tail == node) | (head == node)).astype(np.int64)
    return cells


def _searched(policy: Policy | NodePrivacy, query: Query, most: int) -> list[Pair] | None:
    """The pairs of largest change over all networks; None when they are too many or cannot be listed."""
    size = policy.domain.size
    steps = list(_steps(policy))
    if not steps or len(steps) << size > SEARCHED_PAIRS:
        return None
    numbers = np.arange(1 << size, dtype=np.int64)
    tables: Ints = (numbers[:, None] >> np.arange(size)) & 1
    answers = np.stack([query.answer(table) for table in tables])
    best: dict[bytes, tuple[int, int, int]] = {}
    for plus, minus in steps:
        before = numbers[(numbers & minus == minus) & (numbers & plus == 0)]
        after = before ^ (plus | minus)
        moved = answers[after] - answers[before]
        changes, first = np.unique(moved, axis=0, return_index=True)
        for change, at in zip(changes, first.tolist(), strict=True):
            item = (int(np.abs(change).sum()), int(before[at]), int(after[at]))
            if item[0] > 0:
                best.setdefault(change.tobytes(), item)
    ranked = sorted(best.values(), key=lambda item: (-item[0], item[1], item[2]))
    made = (
        Pair(tables[a].copy(), tables[b].copy(), "largest change over all networks", policy.domain)
        for _, a, b in ranked
    )
    kept = [pair for pair in made if policy.are_neighbours(pair.before, pair.after)]
    return kept[:most]


def _steps(policy: Policy | NodePrivacy) -> Iterator[tuple[int, int]]:
    """Edges that appear and edges that vanish, as sets of bits; of a step and its reverse one is enough."""
    if isinstance(policy, Policy):
        for change in listed_moves(policy):
            yield (
                sum(1 << cell for cell, amount in change.items() if amount > 0),
                sum(1 << cell for cell, amount in change.items() if amount < 0),
            )
        return
    for node in range(policy.domain.order):
        at = _cells_of(policy.domain, node).tolist()
        for signs in range(1, 3 ** len(at)):
            digits = [signs // 3**place % 3 for place in range(len(at))]
            yield (
                sum(1 << cell for cell, digit in zip(at, digits, strict=True) if digit == 1),
                sum(1 << cell for cell, digit in zip(at, digits, strict=True) if digit == 2),
            )
