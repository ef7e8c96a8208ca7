"""Cheapest covers by pairs and singles, proved optimal. Owns :func:`cheapest_cover` and :func:`maximum_weight_matching`.

The fractional problem first (an assignment of the vertices to themselves), then alternating trees with blossoms on few
pairs and more where the dual solution asks for them, then one fixed choice among all optima (:func:`first_optimum`).

Privacy wants ties to be broken by an order of the covers that depends on no cost. The order here: by the sum of fixed marks
of the pairs; if these are equal by the sum of other fixed marks; after ``LEVELS`` of them, by the first pair that only one
of two covers has. Marks are numbers below 4,096 that are computed from the two vertices alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.matching.certificate import SCALE, Certificate, Cover, cover_cost, listed, slacks
from policygraph.model.graphs.base import is_networkx

if TYPE_CHECKING:
    import networkx

__all__ = [
    "LARGEST",
    "LEVELS",
    "Cover",
    "cheapest_cover",
    "first_optimum",
    "marks",
    "maximum_weight_matching",
]

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Solver = Callable[[Ints, Ints], Cover]

LARGEST = 1 << 54
"""Costs stay below this, so that potentials in quarters, at most three times their range, fit 64 bits."""
NEAR = 12
"""Pairs kept of each vertex at first, about."""
ADDED = 8
"""Pairs added at each vertex where the dual solution exceeds their cost."""
SAMPLED = 128
ROOM = 1 << 60
"""Differences of costs times the squared number of vertices stay below this for OR-Tools, whose prices grow so far."""
LEVELS = 8
MARK_BITS = 12
MARK_ROOM = 1 << 52

# Large odd numbers: multiplication and shifts by them spread the bits of the two vertices.
_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB],
    dtype=np.uint64,
)


def cheapest_cover(pairs: npt.ArrayLike | networkx.Graph[Any], singles: Any) -> Cover:
    """Cover every vertex by a pair or as a single at least total cost.

    Parameters
    ----------
    pairs
        Symmetric matrix of whole numbers: the cost of each pair; the diagonal is not used. Or an undirected networkx graph
        whose edges have a whole number as ``weight`` (1 where there is none); other pairs are not allowed.
    singles
        The cost of each vertex as a single; beside a networkx graph a mapping from its nodes.

    Returns
    -------
    Cover
        One fixed choice among all cheapest covers: the order among them (see :func:`first_optimum`) depends on no cost.

    Raises
    ------
    InputError
        When the costs are no whole numbers, not symmetric or too large.
    RefusedError
        When the solution is not proved optimal, which would be a fault.

    Notes
    -----
    A cover read twice is a permutation made of fixed points and swaps, so half of a cheapest permutation is a lower bound, and
    its potentials, averaged over rows and columns, are a feasible dual. Its cycles of even length fall apart into pairs; from
    each odd one a vertex is left over, which an alternating tree with blossoms covers. Dense assignment takes O(n^3) at
    worst and about n^2 log n on noisy costs; each tree takes O(m log m) in the m pairs that it is grown on.

    Examples
    --------
    >>> found = cheapest_cover([[0, 1, 5], [1, 0, 2], [5, 2, 0]], [3, 3, 0])
    >>> found.pairs, found.cost
    (((0, 1),), 1)
    """
    costs: Any = pairs
    nodes: tuple[Any, ...] | None = None
    if is_networkx(costs):
        costs, singles, nodes = _read_graph(costs, singles)
    matrix, alone = _read(costs, singles)
    if not len(alone):
        nothing = np.zeros(0, dtype=np.int64)
        return Cover(nothing, 0, Certificate(nothing, ()), nothing, 0, 0, nodes)
    some = solved(matrix, alone)
    partner = first_optimum(matrix, alone, some, solved)
    cost = some.certificate.verify(matrix, alone, partner)
    return replace(some, partner=partner, cost=cost, nodes=nodes)


def maximum_weight_matching(weights: npt.ArrayLike | networkx.Graph[Any]) -> Cover:
    """Pairs of largest total weight; vertices may stay single.

    Parameters
    ----------
    weights
        Symmetric matrix of whole numbers; the diagonal is not used. Or an undirected networkx graph whose edges have a whole
        number as ``weight`` (1 where there is none).

    Returns
    -------
    Cover
        Its cost is minus the total weight.

    Examples
    --------
    >>> maximum_weight_matching([[0, 5, 1], [5, 0, 6], [1, 6, 0]]).pairs
    ((1, 2),)
    >>> import networkx
    >>> graph = networkx.Graph()
    >>> graph.add_weighted_edges_from([("ann", "bob", 5), ("bob", "cid", 6)])
    >>> maximum_weight_matching(graph).pairs
    (('bob', 'cid'),)
    """
    given: Any = weights
    if is_networkx(given):
        return cheapest_cover(_negated(given), dict.fromkeys(given.nodes, 0))
    matrix = np.asarray(given)
    if matrix.dtype.kind not in "iu" or matrix.ndim != 2:
        raise InputError(
            f"weights of type {matrix.dtype} and shape {matrix.shape}: expected a square matrix of whole numbers.",
            code="matching.costs",
        )
    return cheapest_cover(-matrix.astype(np.int64), np.zeros(len(matrix), dtype=np.int64))


def _read_graph(graph: networkx.Graph[Any], singles: Any) -> tuple[Ints, Ints, tuple[Any, ...]]:
    """Costs of pairs and singles of a networkx graph. A pair without an edge costs more than its two ends as singles."""
    nodes = tuple(graph.nodes)
    if graph.is_directed() or graph.is_multigraph() or any(u == v for u, v in graph.edges()):
        raise InputError(
            "a matching is of an undirected graph without loops and parallel edges: expected networkx.Graph.",
            code="matching.graph",
        )
    if not isinstance(singles, Mapping) or set(singles) != set(nodes):
        raise InputError(
            "the costs of singles: expected a mapping with one whole number for each node.",
            code="matching.graph",
        )
    alone = _wholes([singles[node] for node in nodes])
    matrix = alone[:, None] + alone[None, :] + 1
    place = {node: at for at, node in enumerate(nodes)}
    ends = [(place[u], place[v]) for u, v in graph.edges()]
    for (u, v), cost in zip(
        ends, _wholes([w for *_, w in graph.edges(data="weight", default=1)]).tolist(), strict=True
    ):
        matrix[u, v] = matrix[v, u] = cost
    return matrix, alone, nodes


def _negated(graph: networkx.Graph[Any]) -> networkx.Graph[Any]:
    """The same graph with weights as costs."""
    turned = graph.copy()
    weights = _wholes([weight for *_, weight in graph.edges(data="weight", default=1)]).tolist()
    for (u, v, *_), weight in zip(graph.edges(), weights, strict=True):
        turned.add_edge(u, v, weight=-weight)
    return turned


def _wholes(weights: Sequence[Any]) -> Ints:
    for weight in weights:
        if (
            isinstance(weight, bool)
            or not isinstance(weight, (int, np.integer))
            or abs(int(weight)) >= LARGEST
        ):
            raise InputError(
                f"a weight of {weight!r}: expected a whole number below 2**54, so that the optimum is exact. "
                "Multiply all weights by a common denominator.",
                code="matching.costs",
                value=weight,
            )
    return np.array([int(weight) for weight in weights], dtype=np.int64)


def _read(pairs: npt.ArrayLike, singles: npt.ArrayLike) -> tuple[Ints, Ints]:
    matrix, alone = np.asarray(pairs), np.asarray(singles)
    if not alone.size:
        return np.zeros((0, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
    whole = matrix.dtype.kind in "iu" and alone.dtype.kind in "iu"
    if not whole or alone.ndim != 1 or matrix.shape != (alone.size, alone.size):
        raise InputError(
            f"costs of types {matrix.dtype}, {alone.dtype} and shapes {matrix.shape}, {alone.shape}: expected a square "
            "matrix and a vector of whole numbers.",
            code="matching.costs",
        )
    matrix, alone = matrix.astype(np.int64, copy=False), alone.astype(np.int64, copy=False)
    largest = max(abs(int(x)) for a in (matrix, alone) for x in (a.max(), a.min()))
    if largest >= LARGEST:
        raise InputError(f"a cost of {largest}: expected less than 2**54.", code="matching.costs")
    if not np.array_equal(matrix, matrix.T):
        raise InputError("the costs of pairs are not symmetric.", code="matching.costs")
    return matrix, alone


def _fractional(matrix: Ints, alone: Ints) -> tuple[Ints, Ints]:
    """Potentials of the fractional problem, and a partial cover that is tight under them (-1: not covered)."""
    n = len(alone)
    doubled = SCALE * matrix
    np.fill_diagonal(doubled, 2 * SCALE * alone)
    target, rows, columns = _assignment(doubled)
    y = (rows + columns) // 2
    partner = np.full(n, -1, dtype=np.int64)
    seen = np.zeros(n, dtype=bool)
    for first in range(n):
        if seen[first]:
            continue
        cycle = [first]
        seen[first] = True
        while (at := int(target[cycle[-1]])) != first:
            cycle.append(at)
            seen[at] = True
        if len(cycle) == 1:
            partner[first] = first
            continue
        if len(cycle) % 2:
            # The vertex that is left over is single if that is tight, and waits otherwise.
            tight = next((k for k, v in enumerate(cycle) if y[v] == SCALE * alone[v]), 0)
            cycle = cycle[tight:] + cycle[:tight]
            left = cycle.pop(0)
            partner[left] = left if y[left] == SCALE * alone[left] else -1
        for a, b in zip(cycle[::2], cycle[1::2], strict=True):
            partner[a], partner[b] = b, a
    return y, partner


def _assignment(costs: Ints) -> tuple[Ints, Ints, Ints]:
    """A cheapest assignment of rows to columns, and potentials of both that prove it.

    Notes
    -----
    OR-Tools finds the assignment, as long as its prices stay in 64 bits, and tells no potentials; these are shortest paths. Which of several cheapest ones it finds does not matter: the cover is chosen by an order of its own in the end.
    """
    from policygraph.mechanisms.matching._compiled_assignment import assign, potentials_of

    n = len(costs)
    target, rows, columns = (np.zeros(n, dtype=np.int64) for _ in range(3))
    least = costs.min(axis=1)
    if int((costs - least[:, None]).max()) * (n + 1) ** 2 < ROOM:
        from ortools.graph.python import linear_sum_assignment

        solver = linear_sum_assignment.SimpleLinearSumAssignment()
        at = np.arange(n, dtype=np.int32)
        solver.add_arcs_with_cost(np.repeat(at, n), np.tile(at, n), (costs - least[:, None]).ravel())
        if solver.solve() == solver.OPTIMAL:
            target[:] = [solver.right_mate(vertex) for vertex in range(n)]
            if potentials_of(costs, target, rows, columns):
                return target, rows, columns
    assign(costs, target, rows, columns)
    return target, rows, columns


def solved(matrix: Ints, alone: Ints) -> Cover:
    """Some cheapest cover, with a dual solution that fits all pairs.

    Notes
    -----
    The trees use few pairs at first, those of small slack under the fractional potentials. If the dual solution that comes
    out exceeds the cost of others, these are added, and the trees are grown anew.
    """
    y, start = _fractional(matrix, alone)
    u, v = listed(matrix, y, _reach(matrix, y))
    while True:
        certificate, partner, trees = _with_blossoms(matrix, alone, u, v, y, start)
        more_u, more_v = listed(matrix, certificate.potentials, -1)
        slack = slacks(matrix, certificate.potentials, certificate.blossoms, more_u, more_v)
        wrong = _worst(more_u, more_v, slack)
        if not len(wrong):
            return Cover(partner, cover_cost(matrix, alone, partner), certificate, y, trees, len(u))
        u, v = np.concatenate([u, more_u[wrong]]), np.concatenate([v, more_v[wrong]])


def _worst(u: Ints, v: Ints, slack: Ints) -> Ints:
    """Places of pairs of negative slack: for each vertex the few lowest ones."""
    below = np.flatnonzero(slack < 0)
    kept = []
    for ends in (u[below], v[below]):
        order = np.lexsort((slack[below], ends))
        sorted_ends = ends[order]
        new = np.flatnonzero(np.diff(sorted_ends, prepend=-1))
        rank = np.arange(len(order)) - np.repeat(new, np.diff(new, append=len(order)))
        kept.append(below[order[rank < ADDED]])
    return np.unique(np.concatenate(kept))


def _reach(matrix: Ints, y: Ints) -> int:
    """A slack that about ``NEAR`` pairs of a vertex stay below."""
    n = len(y)
    rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLED)).astype(np.int64))
    slack = SCALE * matrix[rows] - y[rows, None] - y[None, :]
    slack[np.arange(len(rows)), rows] = slack.max(initial=0)
    return int(np.median(np.partition(slack, min(NEAR, n - 1), axis=1)[:, min(NEAR, n - 1)]))


def _with_blossoms(
    matrix: Ints, alone: Ints, u: Ints, v: Ints, y: Ints, start: Ints
) -> tuple[Certificate, Ints, int]:
    """Cover the vertices that are left, by the listed pairs."""
    from policygraph.mechanisms.matching._compiled_blossoms import cover

    n = len(alone)
    ends = np.concatenate([v, u])
    origin = np.concatenate([u, v])
    order = np.argsort(origin, kind="stable")
    starts = np.zeros(n + 1, dtype=np.int64)
    starts[1:] = np.cumsum(np.bincount(origin, minlength=n))
    costs = SCALE * matrix[origin, ends][order]
    potentials, partner = y.copy(), start.copy()
    nodes = n + n // 2 + 1
    z = np.zeros(nodes, dtype=np.int64)
    parent, first, following = (np.full(nodes, -1, dtype=np.int64) for _ in range(3))
    trees = cover(starts, ends[order], costs, SCALE * alone, potentials, partner, z, parent, first, following)
    if np.any(partner < 0):
        raise RefusedError("a vertex was left uncovered: a fault of the solver.", code="matching.certificate")
    members: dict[int, list[int]] = {}
    for vertex in range(n):
        node = int(parent[vertex])
        while node >= 0:
            if z[node] > 0:
                members.setdefault(node, []).append(vertex)
            node = int(parent[node])
    blossoms = tuple((tuple(found), int(z[node])) for node, found in sorted(members.items()))
    return Certificate(potentials, blossoms), partner, int(trees)


def marks(n: int, level: int) -> Ints:
    """Symmetric matrix of fixed numbers below 4,096, one for each pair of vertices.

    Examples
    --------
    >>> bool(np.array_equal(marks(3, 0), marks(5, 0)[:3, :3]))
    True
    """
    at = np.arange(n, dtype=np.uint64)
    low, high = np.minimum(at[:, None], at[None, :]), np.maximum(at[:, None], at[None, :])
    mixed: Words = np.asarray(low * _FACTORS[0] + high * _FACTORS[1], dtype=np.uint64)
    mixed = np.asarray(mixed + _FACTORS[2] * np.uint64(level + 1), dtype=np.uint64)
    for factor in _FACTORS[3:]:
        mixed ^= mixed >> np.uint64(31)
        mixed *= factor
    top: Ints = (mixed >> np.uint64(64 - MARK_BITS)).astype(np.int64)
    return top


def first_optimum(pairs: Ints, singles: Ints, some: Cover, solve: Solver) -> Ints:
    """The first of all cheapest covers, as partners.

    Parameters
    ----------
    pairs, singles
        The costs.
    some
        A cheapest cover with its dual solution.
    solve
        Finds some cheapest cover of other costs.

    Notes
    -----
    Let y be feasible fractional potentials and g = 4 cost - sum(y) for a cheapest cover. Every cheapest cover uses slacks of
    at most g, and its slacks sum up to g, while any other cover has a sum of at least g + 1. Hence with costs
    K min(slack, g + 1) + mark, K above any sum of marks, the cheapest covers are those of the old costs with the least sum
    of marks. With the mark 1 on exactly the pairs and singles of a cover, it is the only cheapest one if and only if no
    cover is cheaper than itself.
    """
    n = len(singles)
    best, level = some, 0
    while (room := _reduced(pairs, singles, best)) is not None:
        if _alone(*room, best.partner, solve):
            return best.partner
        slack_pairs, slack_singles = room
        factor = n << MARK_BITS
        if level == LEVELS or factor * (int(slack_singles.max()) + int(slack_pairs.max()) + 1) >= MARK_ROOM:
            break
        pairs, singles = factor * slack_pairs + marks(n, level), factor * slack_singles
        best, level = solve(pairs, singles), level + 1
    return _exactly(pairs, singles, best.certificate, level)


def _reduced(pairs: Ints, singles: Ints, best: Cover) -> tuple[Ints, Ints] | None:
    """Slacks, cut off where no cheapest cover can be; None if they are too large to be multiplied."""
    y = best.fractional
    gap = SCALE * best.cost - int(y.sum())
    if (gap + 2) * 2 * len(singles) >= MARK_ROOM:
        return None
    cut = SCALE * pairs
    cut -= y[:, None] + y[None, :]
    np.minimum(cut, gap + 1, out=cut)
    np.fill_diagonal(cut, gap + 1)
    return cut, np.minimum(SCALE * singles - y, gap + 1)


def _alone(slack_pairs: Ints, slack_singles: Ints, partner: Ints, solve: Solver) -> bool:
    """Whether a cheapest cover is the only one."""
    n = len(partner)
    at = np.arange(n)
    pairs, singles = 2 * n * slack_pairs, 2 * n * slack_singles
    single = partner == at
    singles[single] += 1
    pairs[at[~single], partner[~single]] += 1
    lower = partner > at
    own = int(singles[single].sum()) + int(pairs[at[lower], partner[lower]].sum())
    return solve(pairs, singles).cost == own


def _exactly(pairs: Ints, singles: Ints, certificate: Certificate, level: int) -> Ints:
    """The first of the cheapest covers by all marks from a level on and then by pairs: for what would not fit 64 bits.

    Notes
    -----
    Only pairs and singles that are tight under an optimal dual are in a cheapest cover, and their components are solved one
    by one. The weight of a pair is its gain, followed by the marks that are left, each with room for any sum of them, and by
    2^(k-1-r), r being the rank of the pair among the k tight ones: integers of any size.
    """
    import networkx

    n, y = len(singles), certificate.potentials
    u, v = listed(pairs, y, sum(z for _, z in certificate.blossoms))
    tight = slacks(pairs, y, certificate.blossoms, u, v) == 0
    graph: networkx.Graph[int] = networkx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(zip(u[tight].tolist(), v[tight].tolist(), strict=True))
    left = [marks(n, at) for at in range(level, LEVELS)]
    digits = MARK_BITS + n.bit_length() + 1
    out = np.arange(n)
    for component in networkx.connected_components(graph):
        edges = sorted((min(e), max(e)) for e in graph.subgraph(component).edges)
        weighed: networkx.Graph[int] = networkx.Graph()
        for rank, (a, b) in enumerate(edges):
            weight = int(singles[a]) + int(singles[b]) - int(pairs[a, b])
            for mark in left:
                weight = (weight << digits) - int(mark[a, b])
            weighed.add_edge(a, b, weight=(weight << (len(edges) + 1)) + (1 << (len(edges) - 1 - rank)))
        for a, b in networkx.max_weight_matching(weighed):
            out[a], out[b] = b, a
    return out
