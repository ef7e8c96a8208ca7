"""Cheapest covers by pairs and singles, proved optimal. Owns :func:`cheapest_cover` and :func:`maximum_weight_matching`.

The fractional problem first (an assignment of the vertices to themselves), then alternating trees with blossoms on few
pairs and more where the dual solution asks for them, then one fixed choice among all optima.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.matching.canonical import first_optimum
from policygraph.mechanisms.matching.certificate import SCALE, Certificate, Cover, cover_cost, listed, slacks

__all__ = ["LARGEST", "Cover", "cheapest_cover", "maximum_weight_matching"]

Ints = npt.NDArray[np.int64]

LARGEST = 1 << 54
"""Costs stay below this, so that potentials in quarters, at most three times their range, fit 64 bits."""
NEAR = 12
"""Pairs kept of each vertex at first, about."""
ADDED = 8
"""Pairs added at each vertex where the dual solution exceeds their cost."""
SAMPLED = 128
ROOM = 1 << 60
"""Differences of costs times the squared number of vertices stay below this for OR-Tools, whose prices grow so far."""


def cheapest_cover(pairs: npt.ArrayLike, singles: npt.ArrayLike) -> Cover:
    """Cover every vertex by a pair or as a single at least total cost.

    Parameters
    ----------
    pairs
        Symmetric matrix of whole numbers: the cost of each pair; the diagonal is not used.
    singles
        The cost of each vertex as a single.

    Returns
    -------
    Cover
        One fixed choice among all cheapest covers: the order among them (see ``canonical``) depends on no cost.

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
    matrix, alone = _read(pairs, singles)
    if not len(alone):
        nothing = np.zeros(0, dtype=np.int64)
        return Cover(nothing, 0, Certificate(nothing, ()), nothing, 0, 0)
    some = solved(matrix, alone)
    partner = first_optimum(matrix, alone, some, solved)
    cost = some.certificate.verify(matrix, alone, partner)
    return replace(some, partner=partner, cost=cost)


def maximum_weight_matching(weights: npt.ArrayLike) -> Cover:
    """Pairs of largest total weight; vertices may stay single.

    Parameters
    ----------
    weights
        Symmetric matrix of whole numbers; the diagonal is not used.

    Returns
    -------
    Cover
        Its cost is minus the total weight.

    Examples
    --------
    >>> maximum_weight_matching([[0, 5, 1], [5, 0, 6], [1, 6, 0]]).pairs
    ((1, 2),)
    """
    matrix = np.asarray(weights)
    if matrix.dtype.kind not in "iu" or matrix.ndim != 2:
        raise InputError(
            f"weights of type {matrix.dtype} and shape {matrix.shape}: expected a square matrix of whole numbers.",
            code="matching.costs",
        )
    return cheapest_cover(-matrix.astype(np.int64), np.zeros(len(matrix), dtype=np.int64))


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
