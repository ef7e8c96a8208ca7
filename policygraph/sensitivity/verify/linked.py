"""Certificates about linked tables checked again: units listed one by one. Owns :func:`of_linked`; shares no code with what made them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from policygraph.errors import PolicyGraphError
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.queries.base import Query
from policygraph.sensitivity.verify.tables import CheckResult, Table, Verification, difference, power

UNITS = 20_000
"""Most units that are listed."""
PAIRS = 200_000
"""Most pairs of them that are compared."""


def of_linked(
    policy: LinkedUnit,
    query: Query,
    norm: Any,
    claimed: Fraction,
    lower: Fraction,
    witness: tuple[Table, Table] | None,
    reason: str,
) -> Verification:
    """Check witness and bound of a certificate about linked tables."""
    checks = []
    if witness is None:
        text = "nothing is claimed to be attained" if not lower else f"there is none, but {lower} is claimed"
        checks.append(CheckResult("witness", lower == 0, text))
    else:
        checks.append(_neighbours(policy, *witness))
        made = power(query, difference(*witness), norm)
        text = f"the answers of the two data sets differ by {made}, claimed {lower}"
        checks.append(CheckResult("attained", made == lower, text))
    checks.append(_bound(policy, query, norm, claimed, reason))
    return Verification(tuple(checks))


def _dense(policy: LinkedUnit, table: Table) -> Any:
    out = np.zeros(policy.domain.size, dtype=np.int64)
    for cell, count in table.items():
        out[cell] = count
    return out


def _neighbours(policy: LinkedUnit, before: Table, after: Table) -> CheckResult:
    one, two = _dense(policy, before), _dense(policy, after)
    if policy.tables.child not in policy.known:
        verdict = policy.are_neighbours(one, two)
        return CheckResult("neighbours", bool(verdict), str(verdict.reason))
    try:
        policy.check_table(one)
        policy.check_table(two)
    except PolicyGraphError as cause:
        return CheckResult("neighbours", False, str(cause))
    change = two - one
    step = policy.tables.at_most + 1
    sides: list[dict[int, int]] = [{}, {}]
    for cell in np.flatnonzero(change[: policy.tables.rows]).tolist():
        side = sides[int(change[cell] > 0)]
        side[cell % step] = side.get(cell % step, 0) + abs(int(change[cell]))
    both = policy.tables.parent in policy.known
    parts = product(*(range(n + 1) for side in sides for n in side.values()))
    sizes = [list(side) for side in sides]
    whole = tuple(n for side in sides for n in side.values())
    for part in parts:
        if not any(part) or part == whole:
            continue
        left, right = part[: len(sizes[0])], part[len(sizes[0]) :]
        same = sum(n * s for n, s in zip(left, sizes[0], strict=True)) == sum(
            n * s for n, s in zip(right, sizes[1], strict=True)
        )
        if same and (not both or sum(left) == sum(right)):
            return CheckResult("neighbours", False, "a part of the exchange keeps the totals as well")
    return CheckResult("neighbours", True, "no part of the exchange keeps the totals")


def _units(policy: LinkedUnit) -> list[Table]:
    """All units whose rows of the second table are in one cell: by convexity, the worst is among them."""
    tables = policy.tables
    out: list[Table] = []
    for group, many in product(range(tables.of_parent.size), range(tables.at_most + 1)):
        cell = group * (tables.at_most + 1) + many
        for own in range(tables.of_child.size) if many else (None,):
            out.append(
                {cell: 1}
                if own is None
                else {cell: 1, tables.rows + group * tables.of_child.size + own: many}
            )
    return out


def _bound(policy: LinkedUnit, query: Query, norm: Any, claimed: Fraction, reason: str) -> CheckResult:
    open_ = CheckResult("bound", None, f"not recomputed here; it rests on: {reason}")
    tables = policy.tables
    count = tables.of_parent.size * (1 + tables.at_most * tables.of_child.size)
    if count > UNITS or tables.child in policy.known:
        return open_
    units = _units(policy)
    if not policy.totals:
        largest = max(power(query, unit, norm) for unit in units)
    elif len(units) ** 2 <= PAIRS:
        largest = max(power(query, difference(one, two), norm) for one in units for two in units)
    else:
        return open_
    text = f"all units with their rows in one cell were gone through: the largest change is {largest}, claimed {claimed}"
    return CheckResult("bound", largest <= claimed, text)
