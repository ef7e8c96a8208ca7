"""From released pairs to networkx, and back to plain edges. Owns :func:`to_networkx` and :func:`ends_of`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.model.domain import Network

__all__ = ["ends_of", "graph_of_edges", "to_networkx"]

Ints = npt.NDArray[np.int64]


def graph_of_edges(network: Network, edges: list[tuple[Any, Any]]) -> Any:
    """A networkx graph of the kind of a network, on all its nodes."""
    import networkx

    kinds = {
        (False, False): networkx.Graph,
        (True, False): networkx.DiGraph,
        (False, True): networkx.MultiGraph,
        (True, True): networkx.MultiDiGraph,
    }
    graph: Any = kinds[network.directed, network.multiple]()
    graph.add_nodes_from(network.nodes)
    graph.add_edges_from(edges)
    return graph


def to_networkx(values: Any, network: Network) -> Any:
    """The networkx graph of counts of the node pairs: of a nearest graph, or of one drawn by the exponential mechanism.

    Parameters
    ----------
    values
        How often each node pair is joined, in the order of an adjacency release.
    network
        The network.

    Raises
    ------
    InputError
        When the values are no graph, as noisy ones are not.

    Examples
    --------
    >>> sorted(to_networkx([1, 0, 1], Network(["a", "b", "c"])).edges())
    [('a', 'b'), ('b', 'c')]
    """
    given = np.asarray(values)
    most = int(given.max(initial=0)) if network.multiple else 1
    if given.shape != (network.size,) or given.dtype.kind not in "iu" or np.any((given < 0) | (given > most)):
        raise InputError(
            f"values of shape {given.shape} and type {given.dtype}: expected {network.size} "
            + ("whole numbers >= 0" if network.multiple else "values 0 or 1")
            + ", one for each node pair. A noisy adjacency is no graph; nearest_network makes one of it.",
            code="networks.adjacency",
        )
    tail, head = network.pairs(np.repeat(np.arange(network.size, dtype=np.int64), given))
    nodes = network.nodes
    return graph_of_edges(
        network, [(nodes[u], nodes[v]) for u, v in zip(tail.tolist(), head.tolist(), strict=True)]
    )


def ends_of(graph: Any) -> tuple[Ints, Ints, int]:
    """Ends of the edges of an undirected networkx graph as positions of its nodes, and the number of nodes."""
    if graph.is_directed():
        raise InputError(
            "the graph is directed: expected an undirected one. graph.to_undirected() forgets directions.",
            code="networks.kind",
        )
    at = {node: position for position, node in enumerate(graph.nodes)}
    ends = np.array([(at[u], at[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    return ends[:, 0], ends[:, 1], len(at)
