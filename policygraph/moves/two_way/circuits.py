"""Long simple cycles in an explicit graph: a quick lower bound, blocks, and an exact search within an effort.

Owns the longest-cycle problem that structural zeros lead to; knows nothing of tables and imports ``effort`` and ``solver``.
ortools and networkx are imported when a search needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import cast

from policygraph.effort import Effort
from policygraph.solver import layers as solver_layers
from policygraph.solver.program import Program

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
    """Longest cycle of one block; returns a cycle longer than ``lower`` or none, and a proved upper bound."""
    count = sum(map(len, graph.values()))
    if count > _ARCS or not effort.affords(10 * count):
        return [], limit
    effort.spend(10 * count)
    cycle: list[int] = []
    if (best := lower) < limit:
        asked = solver_layers.ask_circuit(graph, lower + 1, limit, effort.share(1, 2))
        if _is_cycle(graph, asked) and len(asked) > lower:
            cycle, best = asked, len(asked)
    # what the solver finds is checked; that nothing is longer is proved apart from it
    rivals = _Rivals(graph, best + 1)
    while best < limit:
        found = rivals.longer(effort)
        if found is None:
            return cycle, min(limit, max(best, rivals.bound(limit, effort)))
        if not found:
            return cycle, best
        cycle, best = found, len(found)
        rivals = _Rivals(graph, best + 1)
    return cycle, limit


def _is_cycle(graph: Graph, cycle: Sequence[int]) -> bool:
    around = zip(cycle, [*cycle[1:], *cycle[:1]], strict=True)
    return len(cycle) >= 3 and len(set(cycle)) == len(cycle) and all(v in graph.get(u, ()) for u, v in around)


class _Rivals:
    """Disjoint cycles with at least so many vertices in all, of which those that are too short are ruled out one by one.

    Notes
    -----
    A variable for each edge and each vertex; a vertex that is used has two edges. A cycle of ``least`` vertices or more
    keeps these rows, and every set S of fewer vertices is left by it if it is met at all: the edges inside S are fewer than
    the vertices used there, by 1 if a vertex v of S is used. When these rows have no point, no such cycle exists.
    """

    def __init__(self, graph: Graph, least: int) -> None:
        import networkx as nx

        self.graph = graph
        whole: nx.Graph[int] = nx.Graph((u, v) for u, near in graph.items() for v in near)
        # cycles of a bipartite graph are even
        self.least = least + least % 2 if nx.is_bipartite(whole) else least
        self.vertex = {v: i for i, v in enumerate(graph)}
        pairs = sorted((u, v) for u, near in graph.items() for v in near if u < v)
        self.edge = {pair: len(graph) + i for i, pair in enumerate(pairs)}
        size = len(graph) + len(pairs)
        self.program = Program([0] * size, [1] * size)
        for v, at in self.vertex.items():
            here = {self.edge[min(u, v), max(u, v)]: 1 for u in graph[v]}
            self.program.add({**here, at: -2}, 0, 0)
        self.length = dict.fromkeys(self.vertex.values(), 1)
        self.program.add(self.length, self.least, None)

    def longer(self, effort: Effort) -> list[int] | None:
        """A cycle of the length that is asked for; an empty list when it is proved that there is none; None when open."""
        while not effort.done:
            answer = self.program.find(effort.share(1, 2))
            if answer.point is None:
                return [] if answer.status == "none" else None
            used = {v: [] for v, at in self.vertex.items() if answer.point[at]}  # type: dict[int, list[int]]
            for (u, v), at in self.edge.items():
                if answer.point[at]:
                    used[u].append(v)
                    used[v].append(u)
            for cycle in _cycles(used):
                if len(cycle) >= self.least:
                    return cycle
                self._leave(cycle)
        return None

    def _leave(self, cycle: list[int]) -> None:
        members = set(cycle)
        inside = {at: 1 for (u, v), at in self.edge.items() if u in members and v in members}
        for v in cycle:
            others = {self.vertex[u]: -1 for u in cycle if u != v}
            self.program.add({**inside, **others}, None, 0)

    def bound(self, limit: int, effort: Effort) -> int:
        """A proved bound on the length of cycles, at most ``limit``; what is shorter than asked for counts as one less."""
        proved = self.program.bound(self.length, effort, self.least - 1)
        return limit if proved is None else min(limit, max(self.least - 1, proved))


def _cycles(used: dict[int, list[int]]) -> Iterator[list[int]]:
    """The cycles of a graph in which every vertex has two neighbours."""
    seen: set[int] = set()
    for start in used:
        if start in seen:
            continue
        cycle = [start]
        seen.add(start)
        while following := [v for v in used[cycle[-1]] if v not in seen]:
            cycle.append(following[0])
            seen.add(following[0])
        yield cycle
