"""Neighbours of a simple network with secret edges and public facts, word for word. Owns :func:`pair_neighbours`.

Used by the verification of certificates; shares no code with the search.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

from policygraph.model.policy import Policy

__all__ = ["is_pairwise", "pair_neighbours", "secret_pairs_of"]

SUBSETS = 1 << 16
"""Most other networks that are tried one by one."""

Table = dict[int, int]
Facts = Callable[[Table], Any]


def is_pairwise(policy: Policy) -> bool:
    """Whether node pairs are the records: a simple network, and a graph with edges to bottom only."""
    graph = policy.graph
    return (
        graph is not None
        and policy.domain.capacity == 1
        and graph.bottom != "none"
        and graph.without_bottom().n_edges == 0
    )


def secret_pairs_of(policy: Policy) -> set[int]:
    """The pairs whose edge is secret."""
    return set() if policy.graph is None else set(policy.graph.bottom_cells)


def pair_neighbours(policy: Policy, before: Table, change: Table, facts: Facts) -> bool | None:
    """Whether no third network changes fewer secret edges, or the same ones with fewer others; None when too many are to be tried.

    ``change`` is assumed minimal, which settles the second part.
    """
    secret = secret_pairs_of(policy)
    changed = sorted(set(change) & secret)
    if not changed:
        return False
    if len(changed) == 1:
        return True
    others = [cell for cell in range(policy.domain.size) if cell not in secret]
    if 2 ** (len(others) + len(changed)) > SUBSETS:
        return None
    goal = facts(before)
    for some in range(1, len(changed)):
        for part in combinations(changed, some):
            for many in range(len(others) + 1):
                for repair in combinations(others, many):
                    third = dict(before)
                    for cell in (*part, *repair):
                        third[cell] = 1 - third.get(cell, 0)
                    if facts({c: x for c, x in third.items() if x}) == goal:
                        return False
    return True
