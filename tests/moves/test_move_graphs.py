"""Moves, move graphs and neighbouring tables as networkx graphs, and their pictures."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import policygraph as pg
from policygraph.moves.graver.basis import graver_basis
from tests.moves.test_neighbours import POLICIES, rows_of
from tests.oracles import move_graphs as oracle


def first_moves(name: str, most: int = 6) -> list[pg.Move]:
    policy = POLICIES[name]
    return list(policy.moves(limit=most))


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_cell_of_a_move_is_in_its_graph(name: str) -> None:
    policy = POLICIES[name]
    for move in first_moves(name):
        graph = move.to_networkx()
        kind = graph.graph["kind"]
        if kind == "incidence":
            assert {d["index"]: d["amount"] for _, d in graph.nodes(data=True) if "index" in d} == dict(
                move.change
            )
            assert nx.is_bipartite(graph)
            continue
        signs = sorted(d["amount"] for _, _, d in graph.edges(data=True))
        assert signs == sorted(move.amounts.tolist())
        if kind == "sums":
            assert {key: d["amount"] for _, _, key, d in graph.edges(keys=True, data=True)} == dict(
                move.change
            )
            assert all(
                policy.domain.index(d["cell"]) == key for _, _, key, d in graph.edges(keys=True, data=True)
            )


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_public_vertices_are_balanced(name: str) -> None:
    """What the graph calls public gains as much as it loses; loops count twice."""
    for move in first_moves(name):
        graph = move.to_networkx()
        if graph.graph["kind"] == "incidence":
            for node, data in graph.nodes(data=True):
                if data["bipartite"] == 1:
                    weighted = [graph.nodes[c]["amount"] * d["times"] for c, d in graph[node].items()]
                    assert sum(weighted) == 0
            continue
        for node, data in graph.nodes(data=True):
            if graph.is_directed():
                out = sum(d["amount"] for _, _, d in graph.out_edges(node, data=True))
                into = sum(d["amount"] for _, _, d in graph.in_edges(node, data=True))
                assert not (data["public_out"] and out)
                assert not (data["public_in"] and into)
            elif data["public"]:
                assert sum(d["amount"] * (1 + (u == v)) for u, v, d in graph.edges(node, data=True)) == 0


@pytest.mark.parametrize(
    "name", ["two margins", "parts", "parts and the total", "shared attribute in parts", "one margin"]
)
def test_tables_give_bipartite_graphs(name: str) -> None:
    graph = POLICIES[name].move_graph()
    part = nx.get_node_attributes(graph, "bipartite")
    assert graph.is_multigraph()
    assert graph.number_of_edges() == POLICIES[name].domain.size
    assert all(part[u] != part[v] for u, v in graph.edges())


def test_minimal_moves_of_two_margins_are_the_cycles() -> None:
    policy = POLICIES["two margins"]
    graph = nx.Graph(policy.move_graph())
    cycles = sum(1 for _ in nx.simple_cycles(graph))
    assert cycles == len(list(policy.moves())) == len(graver_basis(policy.system.matrix().toarray()))


def test_kinds_of_move_graphs() -> None:
    assert POLICIES["three margins"].move_graph().graph["kind"] == "incidence"
    assert POLICIES["degrees"].move_graph().number_of_edges() == 10
    some = POLICIES["some degrees"].move_graph()
    assert [node for node, public in some.nodes(data="public") if public] == [0, 1, 2]
    zeros = POLICIES["pairs that cannot join"]
    assert not zeros.move_graph().has_edge(0, 1)
    line = pg.Policy(pg.Domain({"x": 4}), pg.PolicyGraph.line(pg.Domain({"x": 4})))
    assert nx.is_isomorphic(line.move_graph(), nx.path_graph(4))
    assert POLICIES["directed"].move_graph().is_directed()


FIBRES: dict[str, pg.Policy] = {
    "margins": pg.Policy(
        pg.Domain({"a": 2, "b": 3}),
        constraints=[pg.Cuboid("a", equals=[2, 2]), pg.Cuboid("b", equals=[1, 2, 1])],
    ),
    "total": pg.Policy(pg.Domain({"a": 3}), constraints=[pg.Total(equals=3)]),
    "positive": pg.Policy(
        pg.Domain({"a": 2, "b": 2}),
        constraints=[pg.Cuboid("a", equals=[2, 1]), pg.Cuboid("b", equals=[1, 2])],
        strength="positive",
    ),
    "degrees": pg.Policy(pg.Network(4), constraints=[pg.Degrees(equals=[2, 2, 2, 2])]),
    "every graph on three nodes": pg.Policy(pg.Network(3)),
    "zeros": pg.Policy(
        pg.Domain({"a": 2, "b": 2}), constraints=[pg.Total(equals=2), pg.StructuralZero([(0, 0)])]
    ),
    "secret pairs": pg.Policy(
        pg.Domain({"x": 3}),
        pg.PolicyGraph.line(pg.Domain({"x": 3})),
        [pg.count({"x": [0]}, equals=1), pg.Total(equals=2)],
    ),
    "edges": pg.Policy(pg.Domain({"x": 3}), pg.PolicyGraph.line(pg.Domain({"x": 3})), at_most_records=1),
}


def all_tables(policy: pg.Policy, top: int) -> list[tuple[int, ...]]:
    found = []
    for table in product(range(top + 1), repeat=policy.domain.size):
        try:
            policy.check_table(table)
        except pg.PolicyGraphError:
            continue
        found.append(table)
    return found


@pytest.mark.parametrize("name", sorted(set(FIBRES) - {"edges"}))
def test_graph_of_all_tables_with_published_values(name: str) -> None:
    policy = FIBRES[name]
    tables = all_tables(policy, policy.domain.capacity or 3)
    graph = policy.neighbour_graph()
    assert sorted(graph.nodes) == sorted(tables)
    for a, b in combinations(tables, 2):
        joined = bool(policy.are_neighbours(a, b) or policy.are_neighbours(b, a))
        assert graph.has_edge(a, b) == joined
        if joined and policy.definition == "induced" and policy.strength == "worst-case":
            assert oracle.is_move(rows_of(policy), np.subtract(b, a).tolist())


def test_given_tables_are_joined() -> None:
    graph = FIBRES["edges"].neighbour_graph([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert sorted(graph.edges()) == [((0, 0, 1), (0, 1, 0)), ((0, 1, 0), (1, 0, 0))]
    assert str(graph.edges[(0, 0, 1), (0, 1, 0)]["move"]) == "+(1) -(2)"


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda: pg.Policy(pg.Domain({"a": 3})).neighbour_graph(), "move.tables"),
        (
            lambda: pg.Policy(pg.Domain({"a": 9}), constraints=[pg.Total(equals=40)]).neighbour_graph(),
            "move.too-large",
        ),
        (
            lambda: pg.Policy(pg.Domain({"a": 200_000}), constraints=[pg.Total()]).move_graph(),
            "move.too-large",
        ),
        (lambda: FIBRES["total"].neighbour_graph([[3, 1, 0]]), "constraint.data"),
        (
            lambda: POLICIES["two margins"].neighbour_graph([(i, *[0] * 8) for i in range(201)]),
            "move.too-large",
        ),
    ],
)
def test_what_cannot_be_written_out_is_refused(ask: Any, code: str) -> None:
    with pytest.raises(pg.PolicyGraphError) as caught:
        ask()
    assert caught.value.code == code


@pytest.mark.parametrize(
    "name",
    [
        "two margins",
        "parts and the total",
        "three margins",
        "some degrees",
        "loops",
        "directed",
        "weights",
        "nothing public",
    ],
)
def test_small_move_graphs_are_drawn(name: str, tmp_path: Path) -> None:
    target = tmp_path / "graph.png"
    POLICIES[name].move_graph(draw=target)
    assert target.stat().st_size > 5000


def test_small_graphs_of_tables_are_drawn(tmp_path: Path) -> None:
    for name in ("margins", "degrees", "total", "every graph on three nodes"):
        target = tmp_path / f"{name}.png"
        FIBRES[name].neighbour_graph(draw=str(target))
        assert target.stat().st_size > 5000
    line = pg.Policy(pg.Domain({"x": 4}), pg.PolicyGraph.line(pg.Domain({"x": 4})))
    line.move_graph(draw=tmp_path / "line.svg")
    assert (tmp_path / "line.svg").exists()


def test_large_graphs_are_not_drawn(tmp_path: Path) -> None:
    wide = pg.Policy(pg.Domain({"a": 40, "b": 40}), constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    with pytest.raises(pg.RefusedError) as caught:
        wide.move_graph(draw=tmp_path / "wide.png")
    assert caught.value.code == "move.too-large"
    assert not (tmp_path / "wide.png").exists()
