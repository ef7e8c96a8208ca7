"""Statistics of graphs and of released counts. Owns :func:`summarise`, :func:`degree_counts` and the assortativities.

For released and synthetic graphs: on private data these numbers are as private as the data. Works on edges as positions of
nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.estimation.networks.degrees import PublicDegrees
from policygraph.estimation.networks.synthetic import ends_of
from policygraph.model.queries.networks import MixingQuery

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DegreeCounts:
    """How many nodes have each degree.

    Attributes
    ----------
    at_least
        Number of nodes with a degree of at least 1, 2, ...
    exactly
        Number of nodes with degree 0, 1, 2, ...; the last stands for it and all larger ones.
    """

    at_least: Ints
    exactly: Ints


def degree_counts(noisy: Any, nodes: int) -> DegreeCounts:
    """The nearest falling sequence to noisy counts of nodes by least degree, in whole numbers from 0 to the number of nodes.

    Parameters
    ----------
    noisy
        Noisy numbers of nodes with degree at least 1, 2, ..., as a release of ``DegreeTail`` has them.
    nodes
        The public number of nodes.

    Examples
    --------
    >>> made = degree_counts([9, 4, 6, -1], 8)
    >>> made.at_least.tolist(), made.exactly.tolist()
    ([8, 5, 5, 0], [0, 3, 0, 5, 0])

    Notes
    -----
    Isotonic regression (least squares among falling sequences) by pooling neighbours, then cut to the limits, which keeps it the
    least-squares solution, and rounded, which keeps it falling.
    """
    values = np.asarray(noisy, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.all(np.isfinite(values)) or nodes < 0:
        raise InputError(
            f"noisy counts of shape {values.shape}: expected a row of numbers, and a number of nodes >= 0.",
            code="networks.counts",
        )
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] < means[-1]:
            total = means[-2] * sizes[-2] + means[-1] * sizes[-1]
            size = sizes[-2] + sizes[-1]
            means[-2:], sizes[-2:] = [total / size], [size]
    falling = np.clip(np.repeat(means, sizes), 0, nodes)
    at_least = np.rint(falling).astype(np.int64)
    exactly = -np.diff(np.concatenate([[nodes], at_least, [0]]))
    return DegreeCounts(at_least, exactly.astype(np.int64))


@dataclass(frozen=True)
class Summary:
    """Statistics of one undirected simple graph.

    Attributes
    ----------
    edges, triangles, wedges
        Counts; a wedge is a path of two edges.
    assortativity
        Correlation of the degrees at the two ends of an edge; nan if all are equal.
    transitivity
        Share of wedges that are closed.
    clustering
        Mean over nodes of the share of pairs of neighbours that are joined; 0 for nodes with less than two.
    """

    edges: int
    triangles: int
    wedges: int
    assortativity: float
    transitivity: float
    clustering: float


def degree_assortativity(tail: Any, head: Any, nodes: int) -> float:
    """Correlation of the degrees at the two ends of an edge of an undirected graph.

    Examples
    --------
    >>> degree_assortativity([0, 0, 0], [1, 2, 3], 4)
    -1.0
    """
    one, other = np.asarray(tail, dtype=np.int64), np.asarray(head, dtype=np.int64)
    degree = np.bincount(np.concatenate([one, other]), minlength=nodes).astype(np.float64)
    return _correlation(degree[one], degree[other], np.ones(len(one)))


def _correlation(x: Any, y: Any, weight: Any) -> float:
    """Correlation over both orders of weighted pairs."""
    total = 2 * float(np.sum(weight))
    if total == 0:
        return float("nan")
    mean = float(np.sum(weight * (x + y))) / total
    spread = float(np.sum(weight * ((x - mean) ** 2 + (y - mean) ** 2))) / total
    if spread <= 1e-12 * max(mean * mean, 1.0):
        return float("nan")
    return 2 * float(np.sum(weight * (x - mean) * (y - mean))) / total / spread


def class_assortativity(counts: Any, query: MixingQuery, degrees: PublicDegrees) -> float:
    """Degree assortativity from counts of edges between classes of nodes and public degrees, no edge being known.

    Examples
    --------
    >>> from policygraph.model.domain import Network
    >>> star = Network(4)
    >>> query = MixingQuery(star, [3, 1, 1, 1])
    >>> class_assortativity([0, 3, 0], query, PublicDegrees.of(star, [3, 1, 1, 1]))
    -1.0

    Notes
    -----
    Exact if all nodes of a class have one degree. Otherwise an edge end in a class stands for the mean degree over the edge ends
    of the class, while the spread, which is public, is taken over all nodes.
    """
    if query.domain.directed:
        raise InputError("degree assortativity is for undirected networks.", code="networks.kind")
    degrees.need_all()
    degree = degrees.out.astype(np.float64)
    ends = np.bincount(query.codes, degree, len(query.names))
    squares = np.bincount(query.codes, degree**2, len(query.names))
    typical = np.divide(squares, ends, out=np.zeros_like(ends), where=ends > 0)
    low, high = np.triu_indices(len(query.names))
    weight = np.asarray(counts, dtype=np.float64)
    total = float(degree.sum())
    if total == 0:
        return float("nan")
    mean = float((degree**2).sum()) / total
    spread = float((degree * (degree - mean) ** 2).sum()) / total
    if spread <= 1e-12 * max(mean * mean, 1.0):
        return float("nan")
    return 2 * float(np.sum(weight * (typical[low] - mean) * (typical[high] - mean))) / total / spread


def joint_assortativity(counts: Any, largest: int) -> float:
    """Degree assortativity from joint degree counts, also noisy ones; degrees from ``largest`` on are taken as ``largest``.

    Parameters
    ----------
    counts
        As a release of ``JointDegrees`` has them; counts below 0 are taken as 0.
    largest
        The last degree that they tell apart.

    Examples
    --------
    >>> joint_assortativity([0, 0, 3, 0, 0, 0], 3)
    -1.0
    """
    low, high = np.triu_indices(largest)
    weight = np.maximum(np.asarray(counts, dtype=np.float64), 0.0)
    if weight.shape != low.shape:
        raise InputError(
            f"joint degree counts of shape {weight.shape}: expected {len(low)} numbers for degrees up to {largest}.",
            code="networks.counts",
        )
    return _correlation((low + 1).astype(np.float64), (high + 1).astype(np.float64), weight)


def summarise(tail: Any, head: Any = None, nodes: int | None = None) -> Summary:
    """Compute the statistics of an undirected simple graph.

    Parameters
    ----------
    tail
        A networkx graph or a synthetic one; or one end of each edge, as positions of nodes.
    head, nodes
        The other ends and the number of nodes, where the first is no graph.

    Examples
    --------
    >>> summarise([0, 0, 1, 2], [1, 2, 2, 3], 4)
    Summary(edges=4, triangles=1, wedges=5, assortativity=-0.7142857142857143, transitivity=0.6, clustering=0.5833333333333334)
    """
    from scipy import sparse

    if head is None or nodes is None:
        graph = tail.to_networkx() if hasattr(tail, "to_networkx") else tail
        if not hasattr(graph, "is_directed"):
            raise InputError(
                f"summarise of a {type(tail).__name__}: expected a graph, or the two ends of its edges and the number of nodes.",
                code="networks.kind",
            )
        tail, head, nodes = ends_of(graph)
    one, other = np.asarray(tail, dtype=np.int64), np.asarray(head, dtype=np.int64)
    ones = np.ones(len(one), dtype=np.int64)
    half = sparse.coo_array((ones, (one, other)), shape=(nodes, nodes))
    matrix = sparse.csr_array(half + half.T)
    if matrix.nnz != 2 * len(one) or np.any(one == other):
        raise InputError("the graph has loops or double edges: expected a simple one.", code="networks.kind")
    closed = np.asarray((matrix @ matrix).multiply(matrix).sum(axis=1), dtype=np.int64).ravel() // 2
    degree = np.bincount(np.concatenate([one, other]), minlength=nodes)
    pairs = degree * (degree - 1) // 2
    wedges, triangles = int(pairs.sum()), int(closed.sum()) // 3
    local = np.divide(closed, pairs, out=np.zeros(nodes), where=pairs > 0)
    return Summary(
        len(one),
        triangles,
        wedges,
        degree_assortativity(one, other, nodes),
        3 * triangles / wedges if wedges else 0.0,
        float(local.mean()) if nodes else 0.0,
    )
