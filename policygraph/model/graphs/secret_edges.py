"""Policy graphs on the node pairs of a network. Owns :func:`secret_edges`: only edges inside or between groups are secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.model.domain import Label, Network
from policygraph.model.graphs import BOTTOM, PolicyGraph
from policygraph.model.queries.networks import MixingQuery

__all__ = ["MOST_PAIRS", "secret_edges"]

MOST_PAIRS = 2_000_000
"""Most node pairs of a network whose pairs are named one by one as secret."""


def secret_edges(
    network: Network,
    groups: Sequence[Label] | Mapping[Label, Label],
    *,
    inside: bool = False,
    between: bool = False,
) -> PolicyGraph:
    """Policy graph in which an edge may not be told from its absence inside groups, between them, or both.

    Parameters
    ----------
    network
        The network.
    groups
        The public group of each node, as in :func:`policygraph.queries.mixing`.
    inside
        Whether edges within a group are secret.
    between
        Whether edges between two groups are secret.

    Raises
    ------
    InputError
        When nothing would be secret.
    RefusedError
        When the network has too many pairs to name them; if all edges are secret, a policy without graph says so.

    Examples
    --------
    >>> graph = secret_edges(Network(4), ["x", "x", "y", "y"], between=True)
    >>> graph.n_edges, graph.has_edge(0, BOTTOM), graph.has_edge(1, BOTTOM)
    (4, False, True)

    Notes
    -----
    Edges that are not secret may be told apart by a release: it is made for them to be known, or unimportant.
    """
    codes = MixingQuery(network, groups).codes
    if network.size > MOST_PAIRS:
        raise RefusedError(
            f"{network!r} has {network.size:,} node pairs: expected at most {MOST_PAIRS:,} to name the secret ones. A policy "
            "without a graph makes every edge secret.",
            code="graph.pairs",
            value=network.size,
        )
    tail, head = network.pairs(np.arange(network.size, dtype=np.int64))
    same = codes[tail] == codes[head]
    chosen = np.flatnonzero((same & inside) | (~same & between))
    if not len(chosen):
        raise InputError(
            f"secret_edges(inside={inside}, between={between}): no node pair would be secret.",
            code="graph.no-secret",
        )
    return PolicyGraph.from_edges(network, [(int(cell), BOTTOM) for cell in chosen])
