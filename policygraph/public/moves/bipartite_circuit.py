"""Long simple cycles in an explicit graph: a quick lower bound, blocks, and an exact search within an effort.

Owns the longest-cycle problem that structural zeros lead to; knows nothing of tables and imports ``effort`` only.
ortools and networkx are imported when a search needs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, cast

from policygraph.effort import Effort

__all__ = ["arrange", "deep_cycle", "longest_circuit"]

Graph = dict[int, set[int]]

_ARCS = 120_000
"""Most arcs handed to the solver; beyond, building its model alone takes seconds."""


def arrange(
    slots: Sequence[int], candidates: Sequence[int], adjacent: Callable[[int, int], bool], rng: Random
) -> list[int] | None:
    """Choose distinct candidates, one between each two consecutive slots and adjacent to both, by random swaps.

    Quick where most pairs are adjacent, which is where an exact search would have the most to do.

    Examples
    --------
    >>> arrange([0, 1, 0], [3, 4, 5], lambda a, b: (a, b) != (0, 3), Random(0)) in ([5, 4], [4, 5])
    True
    """
    m = len(slots) - 1
    order = list(candidates)
    if len(order) < m:
        return None

    def fits(vertex: int, i: int) -> bool:
        return i >= m or (adjacent(slots[i], vertex) and adjacent(slots[i + 1], vertex))

    bad = [i for i in range(m) if not fits(order[i], i)]
    for i in bad:
        for _ in range(50 + 4 * min(m, 100)):
            if fits(order[i], i):
                break
            j = rng.randrange(len(order))
            if fits(order[j], i) and (fits(order[i], j) or not fits(order[j], j)):
                order[i], order[j] = order[j], order[i]
        else:
            return None
    chosen = order[:m]
    return chosen if all(fits(vertex, i) for i, vertex in enumerate(chosen)) else None


def deep_cycle(graph: Graph) -> list[int]:
    """Longest of the cycles that a depth-first search closes; linear in the number of edges, a lower bound only.

    Examples
    --------
    >>> sorted(deep_cycle({0: {1, 2}, 1: {0, 2}, 2: {0, 1}, 3: {4}, 4: {3}}))
    [0, 1, 2]
    """
    best: list[int] = []
    depth: dict[int, int] = {}
    for root in graph:
        if root in depth:
            continue
        depth[root] = 0
        path, iterators = [root], [iter(sorted(graph[root], key=lambda v: (len(graph[v]), v)))]
        while path:
            here = path[-1]
            for there in iterators[-1]:
                if there not in depth:
                    depth[there] = len(path)
                    path.append(there)
                    iterators.append(iter(sorted(graph[there], key=lambda v: (len(graph[v]), v))))
                    break
                # An earlier vertex of depth d is on the path exactly if the path has it there.
                d = depth[there]
                length = depth[here] - d + 1
                if length >= 3 and length > len(best) and path[d] == there:
                    best = path[d:]
            else:
                path.pop()
                iterators.pop()
    return best


def longest_circuit(
    graph: Graph, lower: int, bound: Callable[[set[int]], int], effort: Effort | None = None
) -> tuple[list[int], int]:
    """Longest simple cycle with at least three vertices and more than ``lower``.

    Parameters
    ----------
    graph
        Neighbours of each vertex.
    lower
        Length that is known to be attained; cycles no longer than that are of no interest.
    bound
        Proved upper bound on a cycle inside a set of vertices.
    effort
        Work that may be spent; None for no end.

    Returns
    -------
    cycle : list of int
        A longer cycle in order, empty when none was found.
    upper : int
        Proved upper bound on the longest cycle, at least ``lower``; equal to the better of ``lower`` and the length
        of ``cycle`` when the search was finished.

    Examples
    --------
    >>> ring = {i: {(i - 1) % 5, (i + 1) % 5} for i in range(5)}
    >>> cycle, upper = longest_circuit(ring, 0, len, Effort(10_000_000))
    >>> len(cycle), upper
    (5, 5)
    """
    import networkx as nx

    # A cycle stays inside one block, so each block is a problem of its own.
    whole: nx.Graph[int] = nx.Graph()
    whole.add_edges_from((u, v) for u, neighbours in graph.items() for v in neighbours)
    blocks = list(cast(Iterator[set[int]], nx.biconnected_components(whole)))
    best: list[int] = []
    upper = lower
    work = Effort() if effort is None else effort
    for block in sorted((b for b in blocks if len(b) >= 3), key=lambda b: (-bound(b), min(b))):
        limit = bound(block)
        reached = max(lower, len(best))
        if limit <= reached:
            continue
        inside = {v: graph[v] & block for v in sorted(block)}
        quick = deep_cycle(inside)
        if len(quick) > reached:
            best, reached = quick, len(quick)
        if reached < limit:
            found, limit = _solve(inside, reached, limit, work)
            if len(found) > reached:
                best = found
        upper = max(upper, limit)
    return best, max(upper, len(best))


def _solve(graph: Graph, lower: int, limit: int, effort: Effort) -> tuple[list[int], int]:
    """Longest cycle of one block by CP-SAT; returns a cycle longer than ``lower`` or none, and an upper bound."""
    count = sum(map(len, graph.values()))
    if count > _ARCS or not effort.affords(10 * count):
        return [], limit
    effort.spend(10 * count)
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    index = {vertex: i for i, vertex in enumerate(graph)}
    arcs: dict[tuple[int, int], Any] = {}
    for u, neighbours in graph.items():
        for v in sorted(neighbours):
            arcs[u, v] = model.new_bool_var("")
    skip = [model.new_bool_var("") for _ in graph]
    for (u, v), arc in arcs.items():
        if u < v:
            model.add_at_most_one(arc, arcs[v, u])
    model.add_circuit(
        [(index[u], index[v], arc) for (u, v), arc in arcs.items()] + [(i, i, s) for i, s in enumerate(skip)]
    )
    length = sum(arcs.values())
    model.add(length >= lower + 1)
    model.add(length <= limit)
    model.maximize(length)
    solver = cp_model.CpSolver()
    solver.parameters.random_seed = 0
    status = effort.solve(solver, model)
    if status == cp_model.INFEASIBLE:
        return [], lower
    cycle: list[int] = []
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        after = {u: v for (u, v), arc in arcs.items() if solver.boolean_value(arc)}
        cycle = [min(after)]
        while after[cycle[-1]] != cycle[0]:
            cycle.append(after[cycle[-1]])
        if status == cp_model.OPTIMAL:
            return cycle, len(cycle)
    # The objective counts arcs, so its bound is an integer up to the rounding of a float.
    proved = math.ceil(solver.best_objective_bound - 1e-6)
    return cycle, min(limit, max(proved, lower, len(cycle)))
