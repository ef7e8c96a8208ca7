"""One fixed choice among all cheapest covers. Owns :func:`first_optimum`.

Privacy wants ties to be broken by an order of the covers that depends on no cost. The order here: by the sum of fixed marks
of the pairs; if these are equal by the sum of other fixed marks; after ``LEVELS`` of them, by the first pair that only one
of two covers has. Marks are numbers below 4,096 that are computed from the two vertices alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from policygraph.mechanisms.matching.certificate import SCALE, Certificate, Cover, listed, slacks

__all__ = ["LEVELS", "first_optimum", "marks"]

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Solver = Callable[[Ints, Ints], Cover]

LEVELS = 8
MARK_BITS = 12
ROOM = 1 << 52

# Large odd numbers: multiplication and shifts by them spread the bits of the two vertices.
_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB],
    dtype=np.uint64,
)


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
        if level == LEVELS or factor * (int(slack_singles.max()) + int(slack_pairs.max()) + 1) >= ROOM:
            break
        pairs, singles = factor * slack_pairs + marks(n, level), factor * slack_singles
        best, level = solve(pairs, singles), level + 1
    return _exactly(pairs, singles, best.certificate, level)


def _reduced(pairs: Ints, singles: Ints, best: Cover) -> tuple[Ints, Ints] | None:
    """Slacks, cut off where no cheapest cover can be; None if they are too large to be multiplied."""
    y = best.fractional
    gap = SCALE * best.cost - int(y.sum())
    if (gap + 2) * 2 * len(singles) >= ROOM:
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
