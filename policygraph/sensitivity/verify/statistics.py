"""Bounds of statistics checked again by listing. Owns :func:`verify_statistic`.

Small networks, and tables with small public margins, are listed with all their neighbours by the definition, and the statistic is taken of each; of the rest it uses
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
from policygraph.model.queries.statistics import NonlinearQuery
from policygraph.sensitivity.verify.neighbours import listed_moves
from policygraph.sensitivity.verify.tables import CheckResult, Verification

LISTED_PAIRS = 10
"""Up to so many node pairs every network is listed: five nodes, or three if directed."""
LISTED_TABLES = 20_000
"""Most tables with the published values that are listed."""


def verify_statistic(
    statistic: NonlinearQuery, policy: Policy | NodePrivacy, norm: str, power: int, reason: str
) -> Verification:
    """Compare a bound with the largest change over all pairs of neighbours, where these can be listed."""
    rests = CheckResult("bound", None, f"not recomputed here; it rests on: {reason}")
    if not isinstance(statistic, NetworkStatistic):
        found = _of_tables(statistic, policy, norm) if isinstance(policy, Policy) else None
        return Verification((rests if found is None else _compared(*found, power, policy),))
    network = statistic.domain
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
    return Verification((_compared(largest, seen, power, policy),))


def _compared(largest: int, seen: int, power: int, policy: Policy | NodePrivacy) -> CheckResult:
    passed: bool | None = largest <= power
    if not passed and isinstance(policy, Policy) and policy.strength == "positive":
        passed = None  # more pairs were tried than are positive neighbours
    text = f"{seen} pairs of neighbours were listed: the largest change is {largest}, claimed {power}"
    return CheckResult("bound", passed, text)


def _of_tables(statistic: NonlinearQuery, policy: Policy, norm: str) -> tuple[int, int] | None:
    """Largest change over all neighbours with the published values, and how many pairs there are; None when these cannot be listed."""
    moves, tables = listed_moves(policy), _tables(policy)
    if moves is None or tables is None:
        return None
    answers = {table: statistic.answer(np.array(table)).tolist() for table in tables}
    largest, seen = 0, 0
    for table, answer in answers.items():
        for move in moves:
            other = answers.get(tuple(x + move.get(cell, 0) for cell, x in enumerate(table)))
            if other is not None:
                changes = [abs(a - b) for a, b in zip(answer, other, strict=True)]
                largest = max(largest, sum(x if norm == "l1" else x * x for x in changes))
                seen += 1
    return largest, seen


def _tables(policy: Policy) -> list[tuple[int, ...]] | None:
    """All tables with the published values, cell by cell; None when they are too many, a value is not published, or a cell is in no public sum."""
    system = policy.system
    if not system.has_values or policy.domain.size > LISTED_PAIRS:
        return None
    rows, values = system.full_rows()
    matrix = rows.toarray().astype(np.int64)
    if any(value is None for value in values):
        return None
    if (matrix < 0).any() or not (matrix > 0).any(axis=0).all():
        return None
    last = np.array([np.flatnonzero(row).max(initial=-1) for row in matrix])
    partial: list[tuple[tuple[int, ...], Any]] = [((), np.array(values, dtype=np.int64))]
    for cell in range(policy.domain.size):
        column, made = matrix[:, cell], []
        for table, left in partial:
            most = int((left[column > 0] // column[column > 0]).min())
            for count in range(most + 1):
                rest = left - count * column
                # A sum whose last cell this is must be used up.
                if not rest[last == cell].any():
                    made.append(((*table, count), rest))
        if len(made) > LISTED_TABLES:
            return None
        partial = made
    return [table for table, _ in partial]


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
    """Pairs of networks, as bit sets, that differ only at one node, or at so many as are hidden together; some come up several times."""
    network = policy.domain
    everything = (1 << network.size) - 1
    for nodes in combinations(range(network.order), min(policy.together, network.order)):
        own = sum(
            1 << c
            for c in range(network.size)
            if not {int(end) for end in network.pairs(c)}.isdisjoint(nodes)
        )
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
