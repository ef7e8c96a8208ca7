"""Supervertices: the policy graph of the buckets. Owns :func:`merge_graph` and :func:`merge_policy`.

The argument is ``docs/explanation/proofs/supervertices.md``.
"""

from __future__ import annotations

import numpy as np

from policygraph.errors import InputError
from policygraph.mechanisms.partitioned.partition import Ints, Partition
from policygraph.model.domain import Domain
from policygraph.model.graphs import Blocks, Complete, Edges, Empty, Path, PolicyGraph, Rule
from policygraph.model.policy import Policy
from policygraph.transforms.incidence.base import graph_of

LISTED = 200_000_000
"""Most edges of a policy graph that are listed to merge them."""


def merge_graph(graph: PolicyGraph, partition: Partition) -> PolicyGraph:
    """Merge the cells of each bucket into one vertex.

    Parameters
    ----------
    graph
        A policy graph over cells.
    partition
        Buckets of these cells.

    Returns
    -------
    PolicyGraph
        Over a domain with one attribute ``bucket``. Two buckets are joined when an edge of the graph joins a cell of one
        to a cell of the other; a bucket is joined to bottom when one of its cells is.

    Raises
    ------
    InputError
        When the partition is of another number of cells.
    RefusedError
        When the graph has too many edges to list.

    Notes
    -----
    A record that moves along an edge of the graph moves along an edge of the merged graph, or stays in its bucket.
    Complete graphs, graphs without edges and blocks that contain whole buckets are merged by formula; a merged graph
    that joins neighbouring numbers is told to be a line, which has a transform of its own.

    Examples
    --------
    >>> line = PolicyGraph.line(Domain({"age": 6}))
    >>> merge_graph(line, Partition([0, 0, 1, 1, 1, 2])) == PolicyGraph.line(Domain({"bucket": 3}))
    True
    >>> merge_graph(line, Partition([0, 1, 0, 1, 0, 1])).n_edges
    1
    """
    if graph.size != partition.size:
        raise InputError(
            f"a graph over {graph.size} cells and a partition of {partition.size}: expected one for each.",
            code="partition.graph",
        )
    domain = Domain({"bucket": partition.n_buckets})
    if graph.bottom == "some":
        touched = np.unique(partition.labels[np.fromiter(graph.bottom_cells, dtype=np.int64)])
        lone: range | tuple[int, ...] = tuple(touched.tolist())
    else:
        lone = range(partition.n_buckets if graph.bottom == "all" else 0)
    return PolicyGraph(domain, _merged(graph, partition), lone)


def _merged(graph: PolicyGraph, partition: Partition) -> Rule:
    k, labels, rule = partition.n_buckets, partition.labels, graph.rule
    if isinstance(rule, Complete):
        return Complete(k)
    if rule.n_edges == 0:
        return Empty(k)
    if isinstance(rule, Path) and rule.theta == 1:
        return _listed(k, np.unique(_keys(labels[:-1], labels[1:], k)))
    if isinstance(rule, Blocks):
        first = np.empty(k, dtype=np.int64)
        first[labels[::-1]] = rule.labels[::-1]
        if np.array_equal(first[labels], rule.labels):
            return Blocks(first)
    kept: Ints = np.zeros(0, dtype=np.int64)
    for u, v in graph.edge_chunks(limit=LISTED):
        kept = np.union1d(kept, _keys(labels[u], labels[v], k))
    return _listed(k, kept)


def _keys(a: Ints, b: Ints, k: int) -> Ints:
    """Pairs of different buckets, each as one number."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    return np.asarray((low * k + high)[low != high], dtype=np.int64)


def _listed(k: int, keys: Ints) -> Rule:
    if not keys.size:
        return Empty(k)
    u, v = np.divmod(keys, k)
    if keys.size == k - 1 and np.array_equal(u, np.arange(k - 1)) and np.array_equal(v, u + 1):
        return Path(k, 1)
    return Edges(k, u, v)


def merge_policy(policy: Policy, partition: Partition) -> Policy:
    """Who must not be told apart in the bucket counts.

    Parameters
    ----------
    policy
        A policy whose moves are the edges of its graph.
    partition
        Buckets of its cells.

    Returns
    -------
    Policy
        Over a domain with one attribute ``bucket``, without public facts: bucket counts that are private under it are
        private under the given policy.

    Raises
    ------
    RefusedError
        When public facts make moves that are no edges.

    Examples
    --------
    >>> merge_policy(Policy(Domain({"age": 4})), Partition([0, 0, 1, 1])).graph.bottom
    'all'
    """
    merged = merge_graph(graph_of(policy), partition)
    return Policy(merged.domain, merged)
