"""Spanning forests of low stretch. Owns :func:`spanning_transform` and :func:`stretch_of`.

The stretch is computed over all edges of the policy graph, never estimated; where these are too many to list it is the
proved bound of the construction.
"""

from __future__ import annotations

from math import prod

import numpy as np

from policygraph.errors import RefusedError
from policygraph.model.graphs import Complete, Path, PolicyGraph
from policygraph.model.policy import Policy
from policygraph.transforms.incidence.base import Ints, Totals, bounded_roots, graph_of, totals_are_exact
from policygraph.transforms.incidence.shapes import line_axes, one_axis
from policygraph.transforms.incidence.tree import ForestTransform, rooted

__all__ = ["LISTED", "spanning_transform", "stretch_of"]

LISTED = 50_000_000
"""Most edges over which a stretch is computed."""
MANY = 2_000_000
"""Above this many edges a construction with a proved stretch is taken as it is."""

Forest = tuple[Ints, Ints]
"""Parent of each cell (-1 for roots) and an order with parents first."""


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
