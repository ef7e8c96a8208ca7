"""Cells and the public facts that count them, as networkx graphs. Owns :func:`facts_graph`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from policygraph.model.constraints import Cells, Cuboid, Degrees, Total
from policygraph.model.domain import Network
from policygraph.model.policy import Policy
from policygraph.moves.walk import MoveGraph

if TYPE_CHECKING:
    import networkx

GROUND = "not public"
"""Vertex that stands for all sums that are not public."""


def facts_graph(policy: Policy, cells: Any, amounts: Any = None) -> networkx.Graph[Any]:
    """Give cells and the public facts that count them as a graph.

    Parameters
    ----------
    policy
        Whose public facts are meant.
    cells
        The cells, none twice.
    amounts
        The change of each cell, when the graph is that of a move.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> policy = Policy(Domain({"a": 2, "b": 2}), constraints=[Cuboid("a"), Cuboid("b")])
    >>> sorted(facts_graph(policy, [0, 1, 2, 3], [1, -1, -1, 1]).edges(data="sign"))
    [('a = 0', 'b = 0', 1), ('a = 0', 'b = 1', -1), ('a = 1', 'b = 0', -1), ('a = 1', 'b = 1', 1)]
    """
    if isinstance(policy.domain, Network) and all(
        isinstance(c, (Degrees, Total)) for c in policy.system.needed
    ):
        return _network(policy, policy.domain, cells, amounts)
    found = MoveGraph.of(policy.system, cells)
    return _incidence(policy, cells, amounts) if found is None else _sums(policy, cells, amounts, found)


def _amount(amounts: Any, at: int) -> dict[str, int]:
    if amounts is None:
        return {}
    return {"amount": int(amounts[at]), "sign": 1 if amounts[at] > 0 else -1}


def _network(policy: Policy, network: Network, cells: Any, amounts: Any) -> networkx.Graph[Any]:
    """Nodes of the network; an edge for each pair."""
    import networkx

    graph: networkx.Graph[Any] = networkx.DiGraph() if network.directed else networkx.Graph()
    graph.graph.update(kind="network", move=amounts is not None)
    public: dict[str, set[int]] = {}
    for fact in policy.system.needed:
        if isinstance(fact, Degrees):
            public.setdefault(fact.side, set()).update(fact.positions(network).tolist())
    tails, heads = (ends.tolist() for ends in network.pairs(cells))
    used = range(network.order) if amounts is None else sorted({*tails, *heads})
    for at in used:
        sides = (
            {f"public_{side}": at in public.get(side, ()) for side in ("in", "out")}
            if network.directed
            else {"public": at in public.get("both", ())}
        )
        graph.add_node(network.nodes[at], **sides)
    for at, (u, v) in enumerate(zip(tails, heads, strict=True)):
        graph.add_edge(network.nodes[u], network.nodes[v], **_amount(amounts, at))
    return graph


def _sums(policy: Policy, cells: Any, amounts: Any, found: MoveGraph) -> networkx.Graph[Any]:
    """Public sums as vertices, cells as edges; in two parts wherever the facts are."""
    import networkx

    graph: networkx.MultiGraph[Any] = networkx.MultiGraph(kind="sums", move=amounts is not None)
    names = _names(policy, found.sums)
    side = _sides(found)
    ends = list(zip(found.tail.tolist(), found.head.tolist(), strict=True))
    for vertex in sorted({v for pair in ends for v in pair} - {found.ground}):
        place = {} if side is None else {"bipartite": side[found.sums[vertex][0]]}
        graph.add_node(names[vertex], public=True, **place)
    grounds = [GROUND, GROUND] if side is None else [_other(policy, side, part) for part in (0, 1)]

    def vertex_of(vertex: int, beside: int, part: int) -> str:
        if vertex != found.ground:
            return names[vertex]
        if side is None:
            graph.add_node(GROUND, public=False)
            return GROUND
        place = part if beside == found.ground else 1 - side[found.sums[beside][0]]
        graph.add_node(grounds[place], public=False, bipartite=place)
        return grounds[place]

    for at, (u, v) in enumerate(ends):
        index = int(cells[at])
        one, other = vertex_of(u, v, 0), vertex_of(v, u, 1)
        label = policy.domain.cell(index)
        graph.add_edge(one, other, key=index, cell=label, **_amount(amounts, at))
    return graph


def _names(policy: Policy, sums: Sequence[tuple[int, int, bool]]) -> list[str]:
    """A readable name for each sum, no two alike."""
    names: list[str] = []
    seen: dict[str, int] = {}
    for which, row, rest in sums:
        plain = policy.system.needed[which].row_name(policy.domain, row)
        name = f"rest of {plain}" if rest else plain
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names


def _sides(found: MoveGraph) -> dict[int, int] | None:
    """Which of two parts the sums of each constraint belong to; None if there are no two such parts."""
    import networkx

    met: networkx.Graph[int] = networkx.Graph()
    met.add_nodes_from(which for which, _, _ in found.sums)
    both = (found.tail != found.ground) & (found.head != found.ground)
    which = np.array([number for number, _, _ in found.sums] + [-1], dtype=np.int64)
    pairs = np.unique(np.stack([which[found.tail[both]], which[found.head[both]]], axis=1), axis=0)
    met.add_edges_from(pairs.tolist())
    if not networkx.is_bipartite(met):
        return None
    side: dict[int, int] = {}
    for part in networkx.connected_components(met):
        from_first = networkx.single_source_shortest_path_length(met, min(part))
        side.update({number: steps % 2 for number, steps in from_first.items()})
    return side


def _other(policy: Policy, side: dict[int, int], part: int) -> str:
    """Name of the vertex for the sums of one part that are not public."""
    for which, place in sorted(side.items()):
        fact = policy.system.needed[which]
        if place == part and isinstance(fact, (Cells, Cuboid)):
            return f"other {' x '.join(fact.of if isinstance(fact, Cells) else fact.names)}"
    return GROUND if part else f"{GROUND} (first side)"


def _incidence(policy: Policy, cells: Any, amounts: Any) -> networkx.Graph[Any]:
    """Cells on one side, public sums on the other."""
    import networkx

    graph: networkx.Graph[Any] = networkx.Graph(kind="incidence", move=amounts is not None)
    labels = [policy.domain.cell(int(cell)) for cell in cells]
    for at, label in enumerate(labels):
        graph.add_node(label, bipartite=0, index=int(cells[at]), **_amount(amounts, at))
    sums: list[tuple[int, int, bool]] = []
    entries: list[tuple[int, int, int]] = []
    for which, constraint in enumerate(policy.system.needed):
        rows = constraint.rows_on(policy.domain, np.asarray(cells, dtype=np.int64))
        used, place = np.unique(rows.row, return_inverse=True)
        entries += zip(
            (place + len(sums)).tolist(), rows.cell.tolist(), rows.coefficient.tolist(), strict=True
        )
        sums += [(which, row, False) for row in used.tolist()]
    names = _names(policy, sums)
    graph.add_nodes_from(names, bipartite=1)
    graph.add_edges_from((labels[cell], names[vertex], {"times": times}) for vertex, cell, times in entries)
    return graph
