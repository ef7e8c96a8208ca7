"""P_G of lines and forests, and spanning forests of low stretch. Owns :class:`LineTransform`, :class:`ForestTransform`, :func:`spanning_transform`.

The coordinate of a cell is the number of records below it, the value of the edge to its parent: one sweep there, one sweep back. The stretch of a
spanning forest is computed over all edges of the policy graph, never estimated; where these are too many to list it is the proved bound of
the construction.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.model.graphs import Complete, Path, PolicyGraph
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.workloads import BoxQuery
from policygraph.transforms.incidence.base import (
    Floats,
    Ints,
    Reduction,
    Totals,
    ValidFor,
    bounded_roots,
    check_cells,
    graph_of,
    is_line,
    line_axes,
    one_axis,
    totals_are_exact,
)

LISTED = 50_000_000
"""Most edges over which a stretch is computed."""
MANY = 2_000_000
"""Above this many edges a construction with a proved stretch is taken as it is."""
Forest = tuple[Ints, Ints]
"""Parent of each cell (-1 for roots) and an order with parents first."""


class LineTransform(Reduction):
    """Prefix sums along one ordered attribute: the coordinate of an edge is the count of the cells up to it.

    Parameters
    ----------
    policy
        A policy whose graph is a line along one attribute, without bottom.
    totals
        What to do with the last prefix sum of each line, which no move changes; see
        :func:`~policygraph.transforms.incidence.base.totals_are_exact`.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> domain = Domain({"age": 4})
    >>> line = LineTransform(Policy(domain, PolicyGraph.line(domain)))
    >>> line.apply([5, 0, 2, 1]).tolist(), line.fixed.tolist()
    ([5, 5, 7, 8], [3])
    >>> line.invert([5, 5, 7, 8]).tolist()
    [5, 0, 2, 1]
    """

    valid_for: ValidFor = "any"
    stretch = 1

    def __init__(self, policy: Policy, totals: Totals = "auto") -> None:
        graph = graph_of(policy)
        found = one_axis(graph)
        if found is None or not self.accepts(policy):
            raise InputError(
                "the policy graph is not a line along one attribute: expected PolicyGraph.line without bottom.",
                code="reduction.line",
            )
        check_cells(policy.domain.size)
        outer, rule, inner = found
        self.policy = policy
        self.shape = (outer, rule.size, inner)
        """Lines outside, length of a line, lines inside."""
        self.width = policy.domain.size
        self.exact_totals = totals_are_exact(policy, graph, totals)
        last = np.arange(self.width, dtype=np.int64).reshape(self.shape)[:, -1, :].ravel()
        self.fixed = last if self.exact_totals else last[:0]

    @classmethod
    def accepts(cls, policy: Policy) -> bool:
        graph = graph_of(policy)
        found = one_axis(graph)
        return graph.bottom == "none" and found is not None and is_line(found[1])

    def apply(self, cells: Any) -> Ints:
        lines = np.asarray(cells, dtype=np.int64).reshape(self.shape)
        return np.cumsum(lines, axis=1).reshape(-1)

    def invert(self, coordinates: Any) -> npt.NDArray[Any]:
        given = np.asarray(coordinates).reshape(self.shape)
        out = given.copy()
        out[:, 1:, :] -= given[:, :-1, :]
        return out.reshape(-1)

    def matrix(self) -> Any:
        from scipy import sparse

        at = np.arange(self.width, dtype=np.int64)
        first = (at // self.shape[2]) % self.shape[1] == 0
        rows = np.concatenate([at, at[~first]])
        columns = np.concatenate([at, at[~first] - self.shape[2]])
        data = np.concatenate(
            [np.ones(self.width, dtype=np.int64), -np.ones(int((~first).sum()), dtype=np.int64)]
        )
        return sparse.csr_array((data, (rows, columns)), shape=(self.width, self.width))

    def squares(self, query: Query) -> Floats:
        outer, n, inner = self.shape
        if query.is_identity:
            ends = np.ones(n) + (np.arange(n) > 0) - (self.exact_totals & (np.arange(n) == n - 1))
            return np.broadcast_to(ends[None, :, None], self.shape).reshape(-1).astype(np.float64)
        if isinstance(query, BoxQuery) and outer == inner == 1 and n in query.domain.shape:
            # The attributes beside the line have one value; a line across several attributes has no box of its own.
            axis = query.domain.shape.index(n)
            low, high = query.low[:, axis], query.high[:, axis]
            return np.asarray((low > 0) + 1.0 - (self.exact_totals & (high == n - 1)))
        return super().squares(query)

    def describe(self) -> str:
        lines = self.shape[0] * self.shape[2]
        many = "" if lines == 1 else f" of each of {lines:,} lines"
        return f"The {self.shape[1] - 1:,} prefix sums{many} along the policy graph were measured; one move changes one by 1."


class ForestTransform(Reduction):
    """Subtree sums of a rooted forest, each the value of the edge from a cell to its parent or to bottom.

    Parameters
    ----------
    policy
        Whose moves are protected.
    parent
        Parent of each cell; -1 for a root.
    order
        All cells, parents before children.
    fixed
        Roots whose subtree sums no move changes and that are released as they are.
    stretch
        Most edges of the forest on the path between the two ends of a policy edge; 1 when the policy graph is the forest.

    Notes
    -----
    x_v is the subtree sum of v minus those of its children, so M is triangular with ones on the diagonal and both ways
    are one sweep in linear time. A record that moves along an edge of the forest changes the one subtree that holds only
    one of its ends.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> domain = Domain({"x": 4})
    >>> star = PolicyGraph.from_edges(domain, [(0, 1), (0, 2), (0, 3)])
    >>> forest = ForestTransform.of(Policy(domain, star))
    >>> forest.apply([5, 1, 2, 3]).tolist(), forest.fixed.tolist()
    ([11, 1, 2, 3], [0])
    """

    valid_for: ValidFor = "any"

    def __init__(self, policy: Policy, parent: Ints, order: Ints, fixed: Ints, stretch: int = 1) -> None:
        self.policy = policy
        self.parent, self.order, self.fixed = parent, order, fixed
        self.stretch = stretch
        self.width = len(parent)

    @classmethod
    def accepts(cls, policy: Policy) -> bool:
        return is_forest(graph_of(policy))

    @classmethod
    def of(cls, policy: Policy, totals: Totals = "auto") -> ForestTransform:
        """Root the forest of a policy and make its transform."""
        graph = graph_of(policy)
        if not is_forest(graph):
            raise InputError(
                "the policy graph has a cycle: expected a forest. Use transform(policy), which takes any graph.",
                code="reduction.forest",
            )
        u, v = graph.edge_arrays(limit=100_000_000)
        roots = bounded_roots(graph)
        lone = np.fromiter(graph.bottom_cells, dtype=np.int64)
        parent, order = rooted(graph.size, u, v, np.concatenate([lone, roots]))
        exact = totals_are_exact(policy, graph, totals)
        return cls(policy, parent, order, roots if exact else roots[:0])

    @cached_property
    def above(self) -> Ints:
        """Place in ``order`` of the parent of each cell of ``order``; -1 for roots."""
        place = np.empty(self.width + 1, dtype=np.int64)
        place[self.order] = np.arange(self.width)
        place[-1] = -1
        return place[self.parent[self.order]]

    @cached_property
    def _short(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Cells from the leaves up, their parents, and the parent of each cell, in as few bytes as they need."""
        from policygraph.transforms.incidence._compiled_sweeps import by_height

        kind = np.int32 if self.width < 2**31 else np.int64
        parent = self.parent.astype(kind)
        order = by_height(self.order.astype(kind), parent)
        return order, parent[order], parent

    @cached_property
    def post_order(self) -> Ints:
        """All cells, such that every subtree is one piece and a parent comes after its children."""
        from policygraph.transforms.incidence._compiled_sweeps import preorder

        out = np.empty(self.width, dtype=np.int64)
        out[preorder(self.order, self.above)] = self.order
        return out

    def apply(self, cells: Any) -> Ints:
        from policygraph.transforms.incidence._compiled_sweeps import subtree_sums

        out = np.array(cells, dtype=np.int64).reshape(-1)
        subtree_sums(out, *self._short[:2])
        return out

    def invert(self, coordinates: Any) -> npt.NDArray[Any]:
        given = np.asarray(coordinates)
        if given.dtype.kind == "f":
            inner = self.parent >= 0
            taken = np.bincount(self.parent[inner], given[inner], minlength=self.width)
            return np.asarray(given - taken)
        from policygraph.transforms.incidence._compiled_sweeps import children_apart

        whole = np.ascontiguousarray(given, dtype=np.int64)
        out = whole.copy()
        children_apart(whole, self._short[2], out)
        return out

    def matrix(self) -> Any:
        from scipy import sparse

        at = np.arange(self.width, dtype=np.int64)
        inner = self.parent >= 0
        rows = np.concatenate([at, self.parent[inner]])
        columns = np.concatenate([at, at[inner]])
        data = np.concatenate(
            [np.ones(self.width, dtype=np.int64), -np.ones(int(inner.sum()), dtype=np.int64)]
        )
        return sparse.csr_array((data, (rows, columns)), shape=(self.width, self.width))

    def squares(self, query: Query) -> Floats:
        if not query.is_identity:
            return super().squares(query)
        kept = np.ones(self.width)
        kept[self.fixed] = 0
        inner = self.parent >= 0
        return np.asarray(kept + np.bincount(self.parent[inner], kept[inner], minlength=self.width))

    def describe(self) -> str:
        count = self.width - len(self.fixed)
        if self.stretch == 1:
            return f"The {count:,} subtree sums of the policy graph, a forest, were measured; one move changes one by 1."
        return (
            f"The {count:,} subtree sums of a spanning forest of the policy graph were measured; one move changes at most "
            f"{self.stretch} of them by 1 each (the stretch)."
        )


def is_forest(graph: PolicyGraph) -> bool:
    """Whether a policy graph has no cycle; bottom counts as a vertex where it has an edge; by formula.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> is_forest(PolicyGraph.line(Domain({"x": 5, "y": 5}), "x")), is_forest(PolicyGraph.grid(Domain({"x": 2, "y": 2})))
    (True, False)
    """
    return graph.n_edges == graph.size + (graph.bottom != "none") - graph.n_components


def rooted(size: int, u: Ints, v: Ints, roots: Ints) -> tuple[Ints, Ints]:
    """Parents (-1 for roots) and an order with parents first, breadth first from some roots.

    Parameters
    ----------
    size
        Number of cells.
    u, v
        Ends of the edges; where there is a cycle a spanning forest is made.
    roots
        At least one cell of each component; all of them get parent -1.
    """
    from scipy import sparse
    from scipy.sparse.csgraph import breadth_first_order

    top = np.full(len(roots), size, dtype=np.int64)
    rows, columns = np.concatenate([u, top]), np.concatenate([v, roots])
    ones = np.ones(len(rows), dtype=np.int8)
    joined = sparse.csr_array((ones, (rows, columns)), shape=(size + 1, size + 1))
    order, above = breadth_first_order(joined, size, directed=False)
    parent = above[:size].astype(np.int64)
    parent[parent == size] = -1
    if len(order) != size + 1:
        raise InputError("a component without root: expected one in each.", code="reduction.roots")
    return parent, order[1:].astype(np.int64)


def spanning_transform(policy: Policy, totals: Totals = "auto") -> ForestTransform:
    """Transform of the spanning forest of least stretch among those tried.

    Parameters
    ----------
    policy
        A policy whose moves are the edges of its graph.
    totals
        See :func:`~policygraph.transforms.incidence.base.totals_are_exact`.

    Raises
    ------
    RefusedError
        When the graph has too many edges to list and no construction with a proved stretch fits.

    Notes
    -----
    Tried are: the star of bottom; the star of a complete graph (stretch 2); for a threshold of t on a line, centres t
    apart joined in a row, every other value joined to the centre of its block (stretch 3); combs of a grid; and
    breadth-first trees from the first cell and from the middle of a longest path found by two searches. A record that moves along a policy edge
    moves along the tree path between its ends, and changes one coordinate by 1 for each of its edges.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> domain = Domain({"age": 1000})
    >>> spanning_transform(Policy(domain, PolicyGraph.threshold(domain, 10))).stretch
    3
    """
    graph = graph_of(policy)
    roots = bounded_roots(graph)
    proved = _proved(graph)
    best: tuple[int, Forest] | None = None
    if graph.n_edges > (MANY if proved else LISTED):
        best = min(((bound, forest) for forest, bound in proved), key=lambda pair: pair[0], default=None)
    else:
        for forest in [*(forest for forest, _ in proved), *_searched(graph, roots)]:
            stretch = stretch_of(graph, forest)
            if best is None or stretch < best[0]:
                best = stretch, forest
    if best is None:
        raise RefusedError(
            f"a policy graph of {graph.n_edges:,} edges: expected at most {LISTED:,}, a complete graph, a threshold on one "
            "attribute, or bottom joined to every cell.",
            code="reduction.spanning",
        )
    stretch, (parent, order) = best
    tops = _tops(graph, best[1], roots)
    exact = totals_are_exact(policy, graph, totals)
    return ForestTransform(policy, parent, order, tops if exact else tops[:0], max(stretch, 1))


def stretch_of(graph: PolicyGraph, forest: Forest) -> int:
    """Largest number of forest edges between the ends of an edge of the policy graph; exact."""
    from policygraph.transforms.incidence._compiled_sweeps import tree_distances

    parent, _ = forest
    depth = _depths(parent)
    most = 0
    for u, v in graph.edge_chunks(limit=LISTED):
        most = max(most, int(tree_distances(u, v, parent, depth).max()))
    lone = np.fromiter(graph.bottom_cells, dtype=np.int64)
    return max(most, int(depth[lone].max(initial=0)))


def _depths(parent: Ints) -> Ints:
    """Edges from each cell to the vertex on which all roots hang, by doubling: log(depth) passes."""
    size = len(parent)
    jump = np.append(np.where(parent < 0, size, parent), size)
    depth = np.append(np.ones(size, dtype=np.int64), 0)
    while (jump != size).any():
        depth = depth + depth[jump]
        jump = jump[jump]
    return depth[:size]


def _tops(graph: PolicyGraph, forest: Forest, roots: Ints) -> Ints:
    """The roots of those trees that are not joined to bottom."""
    tops = np.flatnonzero(forest[0] < 0)
    if graph.bottom == "none":
        return tops
    labels = graph.components()
    return tops[np.isin(labels[tops], labels[roots])]


def _proved(graph: PolicyGraph) -> list[tuple[Forest, int]]:
    """Forests with a proved stretch."""
    size = graph.size
    if graph.bottom == "all":
        return [((np.full(size, -1, dtype=np.int64), np.arange(size, dtype=np.int64)), 2)]
    out: list[tuple[Forest, int]] = []
    found = one_axis(graph) if graph.bottom == "none" else None
    lines = line_axes(graph) if graph.bottom == "none" else None
    if found is not None:
        outer, rule, inner = found
        if isinstance(rule, Complete):
            out.append((_along(outer, np.where(np.arange(rule.n) == 0, -1, 0), inner), 2))
        elif isinstance(rule, Path):
            out.append((_along(outer, _centres(rule.n, rule.theta), inner), 3))
    if lines is not None:
        out.append(_comb(*lines))
    return out


def _searched(graph: PolicyGraph, roots: Ints) -> list[Forest]:
    """Breadth-first forests, from bottom where it has edges."""
    if graph.bottom == "all":
        return []
    u, v = graph.edge_arrays(limit=LISTED)
    lone = np.fromiter(graph.bottom_cells, dtype=np.int64)
    first = rooted(graph.size, u, v, np.concatenate([lone, roots]))
    middle = _middles(graph, first, (u, v), lone, roots)
    return [first, rooted(graph.size, u, v, np.concatenate([lone, middle]))]


def _centres(n: int, theta: int) -> Ints:
    """Parents on one line: the last value of each block of theta is its centre, centres hang on the next one."""
    at = np.arange(n, dtype=np.int64)
    last = n // theta * theta - 1
    if last < 0:
        return np.where(at == n - 1, -1, n - 1)
    centre = at // theta * theta + theta - 1
    above = np.where(at == centre, at + theta, centre)
    above = np.where(at > last, last, np.where(at == last, -1, above))
    return np.asarray(above, dtype=np.int64)


def _along(outer: int, parent: Ints, inner: int) -> Forest:
    """The forest of one line repeated over the cells outside and inside its axis."""
    n = len(parent)
    numbers = np.arange(outer * n * inner, dtype=np.int64).reshape(outer, n, inner)
    above = np.where(parent[None, :, None] < 0, -1, numbers[:, np.maximum(parent, 0), :]).reshape(-1)
    return above, np.argsort(_depths(above), kind="stable")


def _comb(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Forest, int]:
    """Forest of a grid in which a cell moves to the middle of the shortest axis first and of the longest axis last.

    The path between neighbours on one axis goes to the middles of all shorter axes and back: at most one edge more than
    twice the longest such way, at most n // 2 on each.
    """
    numbers = np.arange(prod(shape), dtype=np.int64).reshape(shape)
    parent = np.full(shape, -1, dtype=np.int64)
    for axis in sorted(axes, key=lambda a: -shape[a]):
        at = np.arange(shape[axis])
        middle = (shape[axis] - 1) // 2
        towards = numbers.take(at + np.sign(middle - at), axis=axis)
        moves = (at != middle).reshape([-1 if a == axis else 1 for a in range(len(shape))])
        parent = np.where(moves, towards, parent)
    above = parent.reshape(-1)
    teeth = sorted(shape[a] // 2 for a in axes)[:-1]
    return (above, np.argsort(_depths(above), kind="stable")), 2 * sum(teeth) + 1


def _middles(graph: PolicyGraph, first: Forest, edges: tuple[Ints, Ints], lone: Ints, roots: Ints) -> Ints:
    """A cell near the middle of a longest shortest path of each component without bottom."""
    if not len(roots):
        return roots
    labels = graph.components()
    mine = np.isin(labels, labels[roots])

    def farthest(forest: Forest) -> tuple[Ints, Ints]:
        depth = np.where(mine, _depths(forest[0]), -1)
        by_depth = np.argsort(depth, kind="stable")
        best = np.zeros(labels.max() + 1, dtype=np.int64)
        best[labels[by_depth]] = by_depth
        return best[labels[roots]], depth

    start, _ = farthest(first)
    again = rooted(graph.size, *edges, np.concatenate([lone, start]))
    end, depth = farthest(again)
    steps = (depth[end] - 1) // 2
    while (steps > 0).any():
        end = np.where(steps > 0, again[0][end], end)
        steps = steps - 1
    return end
