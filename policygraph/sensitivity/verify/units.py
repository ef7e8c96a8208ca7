"""Certificates about units checked again: steps of a unit listed one by one. Owns :func:`of_unit`; shares no code with the search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement
from math import comb
from typing import Any

from policygraph.model.graphs import BOTTOM
from policygraph.sensitivity.verify.claims import CertifiedBound
from policygraph.sensitivity.verify.tables import (
    CheckResult,
    Table,
    Verification,
    check_facts,
    check_tables,
    difference,
    is_zero,
    power,
)

STEPS = 60_000
"""Most steps of one unit that are listed."""


def of_unit(claim: CertifiedBound) -> Verification:
    """Check witness and bound of a certificate about units.

    Notes
    -----
    The pair is matched record by record; the bound is recomputed over all steps where they can be listed. Otherwise k times the largest
    step of a record is a bound that needs no more than its own list.
    """
    checks: list[CheckResult] = []
    if claim.witness is None:
        good = claim.lower_power == 0
        text = (
            "nothing is claimed to be attained"
            if good
            else f"there is none, but {claim.lower_power} is claimed"
        )
        checks.append(CheckResult("witness", good, text))
    else:
        before, after = claim.witness
        checks.append(check_tables(claim.policy, before, after))
        if checks[0].passed:
            checks.append(check_facts(claim.policy, before, after))
            checks.append(_neighbours(claim, before, after))
            made = power(claim.query, difference(before, after), claim.norm)
            text = f"the answers of the two data sets differ by {made}, claimed {claim.lower_power}"
            checks.append(CheckResult("attained", made == claim.lower_power, text))
    checks.append(_bound(claim))
    return Verification(tuple(checks))


def _neighbours(claim: CertifiedBound, before: Table, after: Table) -> CheckResult:
    """Whether one unit can have what is in the first data set, and then what is in the second."""
    k, cap = claim.members, claim.cap or claim.members
    graph = claim.policy.graph
    sizes = [sum(table.values()) for table in (before, after)]
    if max(sizes) > k or any(n > cap for table in (before, after) for n in table.values()):
        return CheckResult(
            "neighbours", False, f"a unit would have more than {k} records, or more than {cap} in one cell"
        )
    if graph is None:
        good = min(sizes) == 0
        return CheckResult(
            "neighbours", good, "one unit appears or vanishes" if good else "no unit appears or vanishes"
        )
    here = [cell for cell, n in before.items() for _ in range(n)]
    there = [cell for cell, n in after.items() for _ in range(n)]
    good = _matched(graph, here + [BOTTOM] * (k - len(here)), there + [BOTTOM] * (k - len(there)))
    text = (
        "each record of one unit stays or goes along an edge"
        if good
        else "no records of one unit go along edges like this"
    )
    return CheckResult("neighbours", good, text)


def _matched(graph: Any, here: list[Any], there: list[Any]) -> bool:
    """Whether records can be paired so that each stays or goes along an edge: a matching, by paths that add one more pair."""

    def joined(u: Any, v: Any) -> bool:
        if u is BOTTOM and v is BOTTOM:
            return True
        return u == v or bool(graph.has_edge(v, u) if u is BOTTOM else graph.has_edge(u, v))

    options = [[at for at, v in enumerate(there) if joined(u, v)] for u in here]
    taken: dict[int, int] = {}

    def place(at: int, seen: set[int]) -> bool:
        for other in options[at]:
            if other not in seen:
                seen.add(other)
                if other not in taken or place(taken[other], seen):
                    taken[other] = at
                    return True
        return False

    return all(place(at, set()) for at in range(len(here)))


def _bound(claim: CertifiedBound) -> CheckResult:
    steps = _record_steps(claim)
    if steps is None:
        return CheckResult("bound", None, f"not recomputed here; it rests on: {claim.reason}")
    k, times = claim.members, claim.members if claim.norm == "l1" else claim.members**2
    alone = max((power(claim.query, _change([step]), claim.norm) for step in steps), default=claim.power * 0)
    if times * alone <= claim.power:
        return CheckResult(
            "bound",
            True,
            f"{k} times the largest of {len(steps)} steps of a record is {times * alone}, claimed {claim.power}",
        )
    if comb(len(steps) + k, k) > STEPS:
        return CheckResult("bound", None, f"not recomputed here; it rests on: {claim.reason}")
    largest = max(
        (power(claim.query, change, claim.norm) for change in _steps(claim, steps)), default=claim.power * 0
    )
    text = f"all sums of up to {k} steps of a record were gone through: the largest change is {largest}, claimed {claim.power}"
    return CheckResult("bound", largest <= claim.power, text)


def _record_steps(claim: CertifiedBound) -> list[tuple[Any, Any]] | None:
    """What a record of a unit can do: appear in a cell, or go along an edge in either direction."""
    policy = claim.policy
    if policy.domain.size > STEPS or (policy.graph is not None and policy.graph.n_edges > STEPS):
        return None
    zeros = {c for c in range(policy.domain.size) if any(is_zero(f, policy, c) for f in policy.constraints)}
    if policy.graph is None:
        return [(BOTTOM, c) for c in range(policy.domain.size) if c not in zeros]
    pairs = [(u, v) for u, v in policy.graph.edges() if u not in zeros and v not in zeros]
    return pairs + [(v, u) for u, v in pairs]


def _steps(claim: CertifiedBound, steps: list[tuple[Any, Any]]) -> Iterator[Table]:
    cap = claim.cap or claim.members
    for size in range(1, claim.members + 1):
        for chosen in combinations_with_replacement(steps, size):
            ends = [Counter(pair[side] for pair in chosen if pair[side] is not BOTTOM) for side in (0, 1)]
            if all(n <= cap for table in ends for n in table.values()):
                yield _change(chosen)


def _change(chosen: Any) -> Table:
    out: Table = {}
    for here, there in chosen:
        for cell, amount in ((here, -1), (there, 1)):
            if cell is not BOTTOM:
                out[cell] = out.get(cell, 0) + amount
    return {cell: n for cell, n in out.items() if n}
