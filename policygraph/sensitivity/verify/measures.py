"""Certificates about a measure checked again. Owns :func:`measure_checks`; shares no code with the search.

Records are taken apart into cell and value with plain integers, answers are worked out record by record, and the two data
sets are compared by the definition: one value within a cell, or neighbours of the policy with any values.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

from policygraph.model.policy import Policy
from policygraph.model.queries.measures import MeasureQuery

__all__ = ["Answered", "cells_only", "measure_checks"]

Table = dict[int, int]
Answered = tuple[str, bool | None, str]
EDGES = 50_000


def cells_only(query: MeasureQuery, table: Table) -> Table:
    """How many records are in each cell, whatever their values."""
    out: Table = {}
    for index, amount in table.items():
        out[index // query.measure.levels] = out.get(index // query.measure.levels, 0) + amount
    return out


def measure_checks(
    query: MeasureQuery,
    policy: Policy,
    norm: str,
    claimed: tuple[Fraction, Fraction],
    tables: tuple[Table, Table] | None,
    neighbours: Callable[[Table, Table], Answered],
) -> list[Answered]:
    """Check the witness and, where that is possible, the bound.

    Parameters
    ----------
    claimed
        What the witness attains, and the bound.
    tables
        The two data sets of the witness.
    neighbours
        Whether two tables of counts are neighbours under the policy.

    Returns
    -------
    list
        Name, verdict (None: not decided here) and text of each check.
    """
    out: list[Answered] = []
    if tables is not None:
        before, after = tables
        out.append(_neighbours(query, policy, before, after, neighbours))
        change = {c: after.get(c, 0) - before.get(c, 0) for c in {*before, *after}}
        found = _power(query, change, norm)
        out.append(("attained", found == claimed[0], f"the answers change by {found}, claimed {claimed[0]}"))
    largest = _largest(query, policy, norm)
    if largest is None:
        out.append(("bound", None, "not recomputed here; it rests on docs/explanation/proofs/measures.md"))
    else:
        text = f"over all edges and ends of the range the largest change is {largest}, claimed {claimed[1]}"
        out.append(("bound", largest <= claimed[1], text))
    return out


def _neighbours(
    query: MeasureQuery,
    policy: Policy,
    before: Table,
    after: Table,
    neighbours: Callable[[Table, Table], Answered],
) -> Answered:
    here, there = cells_only(query, before), cells_only(query, after)
    change = {c: after.get(c, 0) - before.get(c, 0) for c in {*before, *after}}
    change = {c: x for c, x in change.items() if x}
    if here == there:
        alone = policy.graph is None and not policy.constraints
        one = sorted(change.values()) == [-1, 1] and len({c // query.measure.levels for c in change}) == 1
        if one and not alone:
            return "neighbours", True, "one record changes its value within its cell"
    if policy.definition == "blowfish":
        return "neighbours", None, "records that change their cells under public facts were not matched here"
    signs: dict[int, set[bool]] = {}
    for index, amount in change.items():
        signs.setdefault(index // query.measure.levels, set()).add(amount > 0)
    if any(len(both) == 2 for both in signs.values()):
        return "neighbours", False, "a cell loses one value and gains another, which is a step of its own"
    return neighbours(here, there)


def _power(query: MeasureQuery, change: Table, norm: str) -> Fraction:
    measure = query.measure
    out: dict[Any, Fraction] = {}
    for index, amount in change.items():
        cell, level = divmod(index, measure.levels)
        record = dict(zip(query.domain.names, query.domain.cell(cell), strict=True))
        value = (measure.low + level * measure.unit) / measure.unit
        if query.centred:
            value = 2 * value - (measure.low + measure.high) / measure.unit
        for names, weight in zip(query.sets, query.weights, strict=True):
            place = tuple(record[name] for name in names)
            for kind, entry in (
                ("sum", query.sum_weight * value),
                ("count", Fraction(query.count_weight)),
            ):
                key = (names, kind, place)
                out[key] = out.get(key, Fraction(0)) + weight * entry * amount
    return sum((abs(x) if norm == "l1" else x * x for x in out.values()), Fraction(0))


def _largest(query: MeasureQuery, policy: Policy, norm: str) -> Fraction | None:
    """The largest change over all neighbours, where they can be gone through: no facts, and few edges."""
    levels, span = query.measure.levels, query.measure.span
    if policy.constraints or policy.domain.size > EDGES:
        return None
    best = Fraction(0)
    ends = (0, span)
    if policy.graph is None:
        for cell, level in product(range(policy.domain.size), ends):
            best = max(best, _power(query, {cell * levels + level: 1}, norm))
        return best
    if policy.graph.n_edges > EDGES:
        return None
    from policygraph.model.graphs import BOTTOM

    for u, v in policy.graph.edges():
        for one, two in product(ends, repeat=2):
            change = {u * levels + one: -1}
            if not isinstance(v, type(BOTTOM)):
                change[v * levels + two] = 1
            best = max(best, _power(query, change, norm))
    return max(best, _power(query, {0: -1, span: 1}, norm))
