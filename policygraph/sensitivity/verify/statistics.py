"""Bounds of network statistics checked again by listing. Owns :func:`verify_statistic`.

Small networks are listed with all their neighbours by the definition, and the statistic is taken of each; of the rest it uses
the definitions (network, facts, graph, statistic) and the naive list of minimal moves, never the theorems.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from policygraph.errors import ConstraintError
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.policy import Policy
from policygraph.model.queries.network_statistics import NetworkStatistic
from policygraph.sensitivity.verify.neighbours import listed_moves
from policygraph.sensitivity.verify.tables import CheckResult, Verification

LISTED_PAIRS = 10
"""Up to so many node pairs every network is listed: five nodes, or three if directed."""


def verify_statistic(
    statistic: NetworkStatistic, policy: Policy | NodePrivacy, norm: str, power: int, reason: str
) -> Verification:
    """Compare a bound with the largest change over all pairs of neighbours, where these can be listed."""
    network = statistic.domain
    rests = CheckResult("bound", None, f"not recomputed here; it rests on: {reason}")
    if network.size > LISTED_PAIRS or network.multiple:
        return Verification((rests,))
    pairs = _node_pairs(policy) if isinstance(policy, NodePrivacy) else _policy_pairs(policy)
    if pairs is None:
        return Verification((rests,))
    size = network.size
    tables = (np.arange(1 << size)[:, None] >> np.arange(size)) & 1
    answers = [statistic.answer(table) for table in tables]
    fits = _fitting(policy, tables)
    largest, seen = 0, 0
    for one, other in pairs:
        if fits[one] and fits[other]:
            change = np.abs(answers[one] - answers[other])
            largest = max(largest, int((change if norm == "l1" else change * change).sum()))
            seen += 1
    passed: bool | None = largest <= power
    if not passed and isinstance(policy, Policy) and policy.strength == "positive":
        passed = None  # more pairs were tried than are positive neighbours
    text = f"{seen} pairs of neighbours were listed: the largest change is {largest}, claimed {power}"
    return Verification((CheckResult("bound", passed, text),))


def _fitting(policy: Any, tables: Any) -> list[bool]:
    """Which networks have the published values and no edge at a structural zero."""
    out = []
    for table in tables:
        try:
            policy.system.check(table)
            out.append(True)
        except ConstraintError:
            out.append(False)
    return out


def _node_pairs(policy: NodePrivacy) -> Iterator[tuple[int, int]]:
    """Pairs of networks, as bit sets, that differ only at one node."""
    network = policy.domain
    everything = (1 << network.size) - 1
    for node in range(network.order):
        own = sum(1 << c for c in range(network.size) if node in (int(end) for end in network.pairs(c)))
        at_node = [x for x in range(everything + 1) if x & ~own == 0]
        for rest in (x for x in range(everything + 1) if x & own == 0):
            yield from ((rest | a, rest | b) for a, b in combinations(at_node, 2))


def _policy_pairs(policy: Policy) -> Iterator[tuple[int, int]] | None:
    """The same for the neighbours of a policy; None when its moves are not listed here."""
    moves = listed_moves(policy)
    if moves is None:
        return None
    return _moved(policy, moves)


def _moved(policy: Policy, moves: list[dict[int, int]]) -> Iterator[tuple[int, int]]:
    for move in moves:
        added = sum(1 << c for c, x in move.items() if x > 0)
        removed = sum(1 << c for c, x in move.items() if x < 0)
        for start in range(1 << policy.domain.size):
            if start & added == 0 and start & removed == removed:
                yield start, start ^ added ^ removed
