"""The Blowfish definition over indexed records, word for word. Owns :func:`match_records`; small cases only.

Used by the verification of certificates; shares no code with the search. Imports ``public.policy``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations, product
from typing import Any

from policygraph.public.policy import Policy

__all__ = ["match_records"]

RECORDS = 5
TRIALS = 3_000_000

Facts = Callable[[dict[int, int]], Any]
Value = int | None


def match_records(policy: Policy, before: dict[int, int], after: dict[int, int], facts: Facts) -> bool | None:
    """Whether some matching of the records of two data sets makes them neighbours; None when too large.

    A record that is in neither data set (bottom) is None. Records that stay as they are give other data sets more ways to be closer,
    so the matchings are tried on the records that are given.
    """
    graph = policy.graph
    if graph is None:
        return False
    one = [cell for cell, count in before.items() for _ in range(count)]
    two = [cell for cell, count in after.items() for _ in range(count)]
    longest = max(len(one), len(two))
    bottom = graph.bottom != "none"
    if len(one) != len(two) and not bottom:
        return False
    values: list[Value] = list(range(policy.domain.size)) + ([None] if bottom else [])
    if longest > RECORDS or len(values) ** longest > TRIALS:
        return None
    first: list[Value] = [*one, *[None] * (longest - len(one))]
    second: list[Value] = [*two, *[None] * (longest - len(two))]
    goal = facts(_histogram(first))
    for order in set(permutations(second)):
        if _are_neighbours(policy, first, list(order), values, goal, facts):
            return True
    return False


def _histogram(records: list[Value] | tuple[Value, ...]) -> dict[int, int]:
    out: dict[int, int] = {}
    for value in records:
        if value is not None:
            out[value] = out.get(value, 0) + 1
    return out


def _secret(policy: Policy, x: Value, y: Value) -> bool:
    from policygraph.public.graphs import BOTTOM

    if x == y or policy.graph is None:
        return False
    return policy.graph.has_edge(BOTTOM if x is None else x, BOTTOM if y is None else y)


def _pairs(policy: Policy, one: list[Value], two: list[Value] | tuple[Value, ...]) -> frozenset[int]:
    return frozenset(i for i, (x, y) in enumerate(zip(one, two, strict=True)) if _secret(policy, x, y))


def _are_neighbours(
    policy: Policy, first: list[Value], second: list[Value], values: list[Value], goal: Any, facts: Facts
) -> bool:
    changed = _pairs(policy, first, second)
    if not changed or facts(_histogram(second)) != goal:
        return False
    moved = [i for i, (x, y) in enumerate(zip(first, second, strict=True)) if x != y]
    for size in range(1, len(moved)):
        for some in combinations(moved, size):
            third = [second[i] if i in some else x for i, x in enumerate(first)]
            if changed <= set(some) and facts(_histogram(third)) == goal:
                return False
    for size in range(1, len(changed)):
        for kept in combinations(sorted(changed), size):
            choices = [
                [second[i]] if i in kept else [y for y in values if not _secret(policy, x, y)]
                for i, x in enumerate(first)
            ]
            for third_ in product(*choices):
                if facts(_histogram(third_)) == goal:
                    return False
    return True
