"""The longest minimal move of a two-way table with arbitrary forbidden cells (structural zeros).

Owns the reduction to a longest cycle and the search for one. The proof is section 5 of ``docs/explanation/proofs/two-cuboids.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import cast

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError
from policygraph.moves.bracket import Bracket
from policygraph.moves.degrees.reading import Known, Move, as_count, known_mask
from policygraph.solver import layers as solver_layers
from policygraph.solver.program import Program

__all__ = ["arrange", "deep_cycle", "longest_circuit", "longest_with_forbidden"]

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
    work = Effort.of(effort)
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


_EXPLICIT = 2_000_000
"""Most edges of the move graph that are ever listed; above, only the arrangement and the bound are tried."""
SEARCH = 10 * SECOND
"""Work of a search when none is named."""


class _MoveGraph:
    """Known vertices and ground vertices; which of them share a cell, and which cell.

    Left vertices come first, then right ones, then the ground: one for both sides, or one each when the total is
    known (``grounds`` holds the vertex of each side, -1 when all its sums are known).
    """

    def __init__(
        self,
        left: npt.NDArray[np.bool_],
        right: npt.NDArray[np.bool_],
        cells: set[tuple[int, int]],
        split: bool,
    ) -> None:
        self.lefts, self.rights = np.flatnonzero(left).tolist(), np.flatnonzero(right).tolist()
        self.unknown = np.flatnonzero(~left).tolist(), np.flatnonzero(~right).tolist()
        n1, n2 = len(self.lefts), len(self.rights)
        base = n1 + n2
        self.grounds = (
            base if self.unknown[0] else -1,
            (base + (split and bool(self.unknown[0]))) if self.unknown[1] else -1,
        )
        self.shared = self.grounds[0] >= 0 and self.grounds[0] == self.grounds[1]
        self.size = max(base, self.grounds[0] + 1, self.grounds[1] + 1)
        self.forbidden = cells
        self._left = {node: i for i, node in enumerate(self.lefts)}
        self._right = {node: n1 + i for i, node in enumerate(self.rights)}
        counts: dict[tuple[int, int], int] = {}
        for a, b in cells:
            pair = self._left.get(a, self.grounds[0]), self._right.get(b, self.grounds[1])
            counts[pair] = counts.get(pair, 0) + 1
        self.absent: Graph = {v: set() for v in range(self.size)}
        for (u, v), count in counts.items():
            if u != v and count == self._width(u, 0) * self._width(v, 1):
                self.absent[u].add(v)
                self.absent[v].add(u)

    def _width(self, vertex: int, side: int) -> int:
        return len(self.unknown[side]) if vertex == self.grounds[side] else 1

    def sides(self, vertex: int) -> tuple[bool, bool]:
        """Whether a vertex acts on the left and on the right."""
        n1, base = len(self.lefts), len(self.lefts) + len(self.rights)
        return (
            vertex < n1 or vertex == self.grounds[0],
            n1 <= vertex < base or vertex == self.grounds[1],
        )

    def adjacent(self, u: int, v: int) -> bool:
        """Whether some cell that is not forbidden joins two different vertices."""
        (ul, ur), (vl, vr) = self.sides(u), self.sides(v)
        return ((ul and vr) or (ur and vl)) and v not in self.absent[u]

    def cells(self, u: int, v: int, most: int) -> list[tuple[int, int]]:
        """Up to ``most`` cells between two vertices (or at the shared ground vertex)."""
        if not (self.sides(u)[0] and self.sides(v)[1]):
            u, v = v, u
        n1 = len(self.lefts)
        rows = self.unknown[0] if u == self.grounds[0] else [self.lefts[u]]
        columns = self.unknown[1] if v == self.grounds[1] else [self.rights[v - n1]]
        found = []
        for a in rows:
            for b in columns:
                if (a, b) not in self.forbidden:
                    found.append((a, b))
                    if len(found) == most:
                        return found
        return found

    def bound(self, vertices: set[int]) -> int:
        """Longest cycle if every pair of these vertices on different sides were joined, at least three long."""
        p = sum(1 for v in vertices if self.sides(v) == (True, False))
        q = sum(1 for v in vertices if self.sides(v) == (False, True))
        if self.shared and self.grounds[0] in vertices:
            return 2 * p + 1 if p == q else 2 * min(p, q) + 2
        return 2 * min(p, q)

    def short(self) -> Move:
        """A longest move among those that touch at most one vertex beside the ground."""
        g0, g1 = self.grounds
        pairs = [(u, g1) for u in range(len(self.lefts)) if g1 >= 0]
        pairs += [(g0, v) for v in range(len(self.lefts), len(self.lefts) + len(self.rights)) if g0 >= 0]
        if g0 >= 0 and g1 >= 0 and not self.shared:
            pairs.append((g0, g1))
        for u, v in pairs:
            two = self.cells(u, v, 2)
            if len(two) == 2:
                return [(*two[0], 1), (*two[1], -1)]
        return [(*cell, 1) for cell in (self.cells(g0, g1, 1) if self.shared else [])]

    def move(self, cycle: list[int]) -> Move:
        """Cells and signs of a cycle with at least three vertices."""
        if self.shared and self.grounds[0] in cycle:
            # Signs alternate at known vertices and are free at a shared ground vertex.
            at = cycle.index(self.grounds[0])
            cycle = cycle[at:] + cycle[:at]
        ends = zip(cycle, cycle[1:] + cycle[:1])
        return [(*self.cells(u, v, 1)[0], 1 if i % 2 == 0 else -1) for i, (u, v) in enumerate(ends)]


def _core(graph: _MoveGraph) -> list[int]:
    """Vertices left after taking away, again and again, those with fewer than two neighbours."""
    sides = [graph.sides(v) for v in range(graph.size)]
    count = [sum(s[0] for s in sides), sum(s[1] for s in sides)]
    degree = []
    for v, (is_left, is_right) in enumerate(sides):
        # The shared ground vertex is on both sides and no neighbour of its own.
        possible = graph.size - 1 if is_left and is_right else count[1] if is_left else count[0]
        degree.append(possible - len(graph.absent[v]))
    gone: set[int] = set()
    weak = [v for v in range(graph.size) if degree[v] < 2]
    # Taking away fewer vertices only loosens the bound, so a huge sparse graph may stop early.
    work = Effort(_EXPLICIT)
    while weak and not work.done:
        v = weak.pop()
        if v in gone:
            continue
        gone.add(v)
        work.spend(graph.size)
        for u in range(graph.size):
            if u != v and u not in gone and graph.adjacent(u, v):
                degree[u] -= 1
                if degree[u] < 2:
                    weak.append(u)
    return [v for v in range(graph.size) if v not in gone]


def _arranged(graph: _MoveGraph, core: list[int]) -> list[int]:
    """A cycle that attains the bound of the core, or a shorter one, or none; quick where few cells are forbidden."""
    ground = graph.grounds[0] if graph.shared and graph.grounds[0] in core else -1
    few = [v for v in core if graph.sides(v)[0] and v != ground]
    many = [v for v in core if graph.sides(v)[1] and v != ground]
    if len(few) > len(many):
        few, many = many, few
    rng = Random(0)
    odd = ground >= 0 and len(few) == len(many)
    if odd:
        first = next((v for v in few if graph.adjacent(v, ground)), None)
        if first is not None:
            slots = [first, *(v for v in few if v != first), ground]
            between = arrange(slots, many, graph.adjacent, rng)
            if between:
                return [v for pair in zip(slots, between) for v in pair] + [ground]
    elif ground >= 0:
        few = [ground, *few]
    while len(few) >= 2:
        slots = [*few, few[0]]
        between = arrange(slots, many, graph.adjacent, rng)
        if between:
            return [v for pair in zip(slots, between) for v in pair]
        few.sort(key=lambda v: len(graph.absent[v]))
        del few[-max(1, len(few) // 16) :]
    return []


def longest_with_forbidden(
    left: int,
    right: int,
    known_left: Known,
    known_right: Known,
    forbidden: Iterable[Sequence[int]],
    *,
    total_known: bool = False,
    effort: Effort | None = None,
) -> Bracket[Move]:
    """Most cells that two neighbouring tables can differ in when sums are known and some cells are always 0.

    Parameters
    ----------
    left, right, known_left, known_right, total_known
        As for :func:`~policygraph.moves.two_way.closed_form.longest_bipartite_move`.
    forbidden
        The cells (left, right) that do not exist; pairs or the rows of an integer array.
    effort
        Work after which a search stops; what is returned then is a proved interval. None for ten million units.

    Returns
    -------
    Bracket
        Lower and upper bound of the largest L1 norm of a minimal move, and a move that attains the lower one;
        ``exact`` when they meet.

    Raises
    ------
    InputError
        When a forbidden cell lies outside the table or the other arguments do not fit.

    Examples
    --------
    >>> found = longest_with_forbidden(3, 3, 3, 3, [(0, 0), (1, 1), (2, 2)])
    >>> found.upper, found.exact
    (6, True)
    >>> longest_with_forbidden(3, 3, 3, 3, [(0, 0), (0, 1)]).upper
    4

    Notes
    -----
    Minimal moves are the cycles of the move graph without the forbidden cells. The longest cycle is a hard problem
    in general: a quick arrangement attains the bound of the complete graph when few cells are forbidden; otherwise
    the blocks of the graph are searched by CP-SAT with a proof of optimality.
    """
    r, c = as_count(left, "left", 1), as_count(right, "right", 1)
    masks = known_mask(known_left, r, "known_left"), known_mask(known_right, c, "known_right")
    cells = set()
    for pair in forbidden:
        if len(pair) != 2:
            raise InputError(
                f"forbidden cell {pair!r}: expected a pair (left, right).", code="moves.forbidden", cell=pair
            )
        cells.add((as_count(pair[0], "forbidden left end"), as_count(pair[1], "forbidden right end")))
    outside = [cell for cell in cells if cell[0] >= r or cell[1] >= c]
    if outside:
        raise InputError(
            f"forbidden cell {min(outside)}: expected left ends below {r} and right ends below {c}.",
            code="moves.forbidden",
            cell=min(outside),
        )
    graph = _MoveGraph(*masks, cells, total_known)
    best = graph.short()
    core = _core(graph)
    upper = max(graph.bound(set(core)) if len(core) >= 3 else 0, len(best))
    cycle = _arranged(graph, core) if upper > len(best) else []
    if len(cycle) > max(2, len(best)):
        best = graph.move(cycle)
    if len(best) < upper and len(core) ** 2 // 4 <= _EXPLICIT:
        members = set(core)
        explicit = {u: {v for v in members if v != u and graph.adjacent(u, v)} for u in core}
        longer, upper = longest_circuit(explicit, len(best), graph.bound, Effort.of(effort, usual=SEARCH))
        if longer:
            best = graph.move(longer)
    return Bracket(
        upper,
        len(best),
        best,
        "longest cycle without the structural zeros",
        "a minimal move is a cycle of the bipartite graph of margin cells from which the structural zeros are deleted; "
        "no longer cycle exists (docs/explanation/proofs/two-cuboids.md)",
    )
