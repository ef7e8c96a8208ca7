"""Sensitivity for secret edges of a simple network under public facts: minimal moves that touch a secret pair.

Every neighbour pair differs by such a move (``docs/explanation/proofs/networks.md``, Theorem 8), so that what is proved for all minimal
moves is a bound. Few node pairs are decided by listing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Ints, Norm, Query
from policygraph.moves.bracket import Bracket, Witness
from policygraph.moves.degrees.secret_pairs import find_repair, touches
from policygraph.moves.graver.lift import IncompleteBasisError

__all__ = ["secret_pairs"]

LISTED_PAIRS = 15
"""Up to so many node pairs all minimal moves are listed."""
TRIED = 40
"""Most moves for which it is tried to show that they lead to a neighbour."""
WHY = "two networks that must look alike differ by a minimal move that touches a secret pair (docs/explanation/proofs/networks.md, Theorem 8)"


def secret_pairs(query: Query, policy: Policy, norm: Norm, effort: Effort, secret: Ints) -> Bracket[Witness]:
    """Largest change of a query over the minimal moves that touch a secret pair, or a bound on it.

    Parameters
    ----------
    secret
        The secret node pairs.
    """
    if policy.domain.size <= LISTED_PAIRS and not policy.system.has_values:
        with suppress(IncompleteBasisError):
            return _listed(query, policy, norm, effort.share(1, 2), secret)
    from policygraph.sensitivity.rungs.induced import induced

    alone = Policy(policy.domain, None, policy.constraints, at_most_records=policy.at_most_records)
    found = induced(query, alone, norm, effort)
    if found.witness is not None:
        found = _keep_witness(found, policy, secret, effort)
    return replace(found, reason=f"{WHY}; {found.reason}")


def _keep_witness(found: Bracket[Witness], policy: Policy, secret: Ints, effort: Effort) -> Bracket[Witness]:
    """The bracket with its witness, if that is a pair of neighbours under the policy graph as well."""
    witness = found.witness
    if witness is None:
        return found
    changed = touches(witness.change, secret)
    try:
        good = bool(changed) and not find_repair(policy, dict(witness.before), changed, secret, effort=effort)
    except RefusedError:
        good = False
    if good:
        return found
    return replace(
        found,
        lower=0,
        witness=None,
        method="bound by the minimal moves",
        steps=(*found.steps, "the longest move found does not lead to a neighbour, or that was not decided"),
    )


def _listed(query: Query, policy: Policy, norm: Norm, effort: Effort, secret: Ints) -> Bracket[Witness]:
    from policygraph.moves.graver.basis import graver_basis

    cells = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
    matrix = policy.system.matrix()[:, cells].toarray()
    cap = policy.at_most_records
    ranked: list[tuple[int, dict[int, int]]] = []
    for row in graver_basis(matrix, capacity=1, effort=effort):
        change = {int(cells[at]): int(row[at]) for at in np.flatnonzero(row)}
        added = sum(x > 0 for x in change.values())
        if touches(change, secret) and (cap is None or max(added, len(change) - added) <= cap):
            ranked.append((query.change_norm(change, norm), change))
    ranked.sort(key=lambda pair: -pair[0])
    upper = ranked[0][0] if ranked else 0
    reason = f"{WHY}; all {len(ranked)} of them were listed"
    for value, change in ranked[:TRIED]:
        if not value:
            break
        for table in _tables(policy, change):
            if effort.done:
                return Bracket(upper, 0, None, "enumeration of minimal moves", f"{reason}; {effort.ended_by}")
            try:
                repaired = find_repair(policy, table, touches(change, secret), secret, effort=effort)
            except RefusedError:
                continue  # not decided: no witness, and the bound stands
            if not repaired:
                pair = Witness.of_change(change, table)
                return Bracket(upper, value, pair, "enumeration of minimal moves", reason)
    return Bracket(upper, 0, None, "enumeration of minimal moves", reason)


def _tables(policy: Policy, change: dict[int, int]) -> list[dict[int, int]]:
    """Networks that allow a change: with its removed edges alone, and with all other edges as well."""
    zeros = set(policy.system.zeros.tolist())
    others = {c: 1 for c in range(policy.domain.size) if c not in change and c not in zeros}
    removed = {c: 1 for c, x in change.items() if x < 0}
    return [removed, removed | others]
