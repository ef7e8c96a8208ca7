"""What is refused, and in which words; and that nothing large is listed by accident."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from policygraph.errors import InputError, RefusedError
from policygraph.model.domain import Domain, Network
from policygraph.model.graphs import BOTTOM, Path, PolicyGraph

D = Domain({"sex": ["F", "M"], "age": 4})
ONE = Domain({"age": 4})
TENS = Domain({"x": [10, 20, 30]})
G = PolicyGraph

BAD = {
    "theta zero": (
        lambda: G.threshold(D, 0),
        "graph.theta",
        "theta=0: expected an integer >= 1. A threshold of 0 has no",
    ),
    "theta negative": (lambda: G.threshold(D, -1, "age"), "graph.theta", "theta=-1"),
    "theta float": (lambda: G.threshold(ONE, 1.5), "graph.theta", "theta=1.5"),
    "theta bool": (lambda: G.threshold(ONE, True), "graph.theta", "theta=True"),
    "unknown attribute": (lambda: G.threshold(D, 1, "wage"), "domain.unknown-attribute", "'wage'"),
    "line of several": (lambda: G.line(D), "graph.attribute", "expected attribute="),
    "overlap": (
        lambda: G.partition(ONE, [[0, 1], [1, 2, 3]]),
        "graph.blocks-overlap",
        "value of age 1 is in two",
    ),
    "missing": (
        lambda: G.partition(ONE, [[0, 1], [2]]),
        "graph.blocks-missing",
        "value of age 3 is in no block",
    ),
    "missing cell": (lambda: G.partition(D, [[0, 1, 2, 3, 4, 5, 6]]), "graph.blocks-missing", "('M', 3)"),
    "unknown value": (lambda: G.partition(D, [["F", "X"]], "sex"), "domain.unknown-label", "'X'"),
    "blocks of text": (lambda: G.partition(D, ["FM"], "sex"), "graph.blocks", "'FM'"),
    "blocks no list": (lambda: G.partition(D, 3), "graph.blocks", "expected a list of blocks"),
    "width zero": (lambda: G.partition(ONE, 0), "graph.blocks", "per block >= 1"),
    "rest": (lambda: G.partition(ONE, [[0]], rest="drop"), "graph.rest", "'drop'"),
    "no blocks": (lambda: G.partition(D, {}), "graph.blocks", "at least one attribute"),
    "block array": (lambda: G.partition(ONE, np.zeros(3, dtype=int)), "graph.array", "(3,)"),
    "block floats": (lambda: G.partition(ONE, np.zeros(4)), "graph.array", "float64"),
    "edge beyond": (
        lambda: G.from_edges(ONE, [(0, 4)]),
        "graph.cell",
        "cell 4: expected an index from 0 to 3",
    ),
    "edge negative": (lambda: G.from_edges(ONE, [(0, -1)]), "graph.cell", "cell -1"),
    "array beyond": (lambda: G.from_edges(ONE, np.array([[0, 4]])), "graph.cell", "[0, 4]"),
    "array loop": (lambda: G.from_edges(ONE, np.array([[2, 2]])), "graph.loop", "[2, 2]"),
    "array floats": (lambda: G.from_edges(ONE, np.array([[0.0, 1.0]])), "graph.array", "float64"),
    "array columns": (lambda: G.from_edges(ONE, np.array([[0, 1, 2]])), "graph.array", "(1, 3)"),
    "loop": (lambda: G.from_edges(ONE, [(2, 2)]), "graph.loop", "joins a cell to itself"),
    "loop by names": (lambda: G.from_edges(D, [(("F", 0), 0)]), "graph.loop", "joins a cell to itself"),
    "loop at bottom": (lambda: G.from_edges(ONE, [(BOTTOM, BOTTOM)]), "graph.loop", "joins a cell to itself"),
    "triple": (lambda: G.from_edges(ONE, [(0, 1, 2)]), "graph.edges", "expected a pair"),
    "text edge": (lambda: G.from_edges(ONE, ["01"]), "graph.edges", "'01'"),
    "text edges": (lambda: G.from_edges(ONE, "01"), "graph.edges", "list of pairs"),
    "cell of another kind": (lambda: G.from_edges(D, [(0, "M")]), "graph.cell", "'M'"),
    "cell too short": (lambda: G.from_edges(D, [(0, ["M"])]), "domain.cell", "one label for each"),
    "number or label": (lambda: G.from_edges(TENS, [(10, 20)]), "graph.ambiguous", "Write [10]"),
    "bottom of a value": (lambda: G.from_edges(D, [(0, BOTTOM)], "age"), "graph.bottom", "whole record"),
    "directed": (lambda: G.from_networkx(ONE, nx.DiGraph([(0, 1)])), "graph.directed", "to_undirected"),
    "lone stranger": (lambda: G.from_networkx(ONE, nx.empty_graph(5)), "graph.cell", "cell 4"),
    "product of nothing": (lambda: G.product(D, {}), "graph.product", "at least one attribute"),
    "product elsewhere": (
        lambda: G.product(D, {"age": G.line(TENS)}),
        "graph.product",
        "expected Domain(age: 4)",
    ),
    "product with bottom": (
        lambda: G.product(D, {"age": G.line(ONE).with_bottom()}),
        "graph.product",
        "with_bottom",
    ),
    "product form bottom": (
        lambda: G.from_spec(D, {"product": {"age": {"edges": [], "bottom": [0]}}}),
        "graph.bottom",
        "whole record",
    ),
    "network": (lambda: G.grid(Network(3)), "graph.network", "a network has none"),
    "network attribute": (lambda: G.partition(Network(3), [[0]], "a"), "graph.network", "a network has none"),
    "network sets": (lambda: G.full(Network(3)).difference_sets(), "graph.network", "a network has none"),
    "word": (lambda: G.from_spec(D, "star"), "graph.spec", "expected one of full"),
    "none": (lambda: G.from_spec(D, "none"), "graph.spec", "leave the graph out"),
    "metric": (lambda: G.threshold(D, 2, metric="l2"), "graph.metric", "'l1' or 'euclidean'"),
    "radius": (lambda: G.threshold(D, "1/2", metric="euclidean"), "graph.theta", "a number >= 1"),
    "no radius": (lambda: G.threshold(D, "far", metric="euclidean"), "graph.theta", "a number >= 1"),
    "two kinds": (lambda: G.from_spec(D, {"threshold": 1, "edges": []}), "graph.spec", "exactly one of"),
    "no kind": (lambda: G.from_spec(D, {"attribute": "age"}), "graph.spec", "exactly one of"),
    "beside": (
        lambda: G.from_spec(D, {"threshold": 1, "rest": "x"}),
        "graph.spec",
        "'rest' beside 'threshold'",
    ),
    "no form": (lambda: G.from_spec(D, 3), "graph.spec", "expected a word"),
    "attribute no name": (
        lambda: G.from_spec(D, {"threshold": 1, "attribute": 0}),
        "graph.spec",
        "attribute = 0",
    ),
    "flag": (lambda: G.from_spec(D, {"line": 1, "attribute": "age"}), "graph.spec", "expected true"),
    "bottom flag": (lambda: G.from_spec(D, "full", bottom="yes"), "graph.bottom", "true or false"),
    "edges form": (lambda: G.from_spec(D, {"edges": 3}), "graph.edges", "list of pairs"),
    "has_edge beyond": (lambda: G.full(D).has_edge(0, 8), "graph.cell", "0 to 7"),
    "has_edge bool": (lambda: G.full(D).has_edge(False, 1), "graph.cell", "False"),
    "has_edge text": (lambda: G.full(D).has_edge("F", 1), "graph.cell", "'F'"),
    "adjacent beyond": (lambda: G.full(D).adjacent([0], [8]), "graph.cell", "0 to 7"),
    "adjacent floats": (lambda: G.full(D).adjacent([0.0], [1]), "graph.cell", "float64"),
    "component of bottom": (lambda: G.full(D).component_of(BOTTOM), "graph.bottom", "no bottom"),
    "chunk": (lambda: G.full(D).edge_chunks(0), "graph.chunk", "at least 1"),
    "rule of another size": (lambda: G(D, Path(7)), "graph.size", "8 cells"),
    "part of a range": (lambda: G(D, Path(8), range(3)), "graph.bottom", "all cells, none"),
    "bottom beyond": (lambda: G(D, Path(8), (8,)), "graph.cell", "0 to 7"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_an_error_that_says_why(name):
    make, code, words = BAD[name]
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.code == code
    assert words in str(caught.value)


def test_numbers_as_labels_are_read_as_labels_where_that_is_said():
    by_label = G.from_edges(TENS, [(10, 20)], attribute="x")
    assert list(by_label.edges()) == [(0, 1)]
    assert list(G.from_edges(TENS, [([10], [20])]).edges()) == [(0, 1)]
    assert list(G.from_edges(TENS, np.array([[0, 1]])).edges()) == [(0, 1)]
    inside = G.from_spec(Domain({"x": [10, 20, 30], "y": 2}), {"product": {"x": {"edges": [[20, 30]]}}})
    assert sorted(inside.edges()) == [(2, 4), (3, 5)]


WIDE = Domain({"lat": 1000, "lon": 1000})
HUGE = Domain({f"a{i}": 10 for i in range(40)})

TOO_LARGE = {
    "edges of full": lambda: G.full(WIDE).edges(),
    "arrays of full": lambda: G.full(WIDE).edge_arrays(),
    "chunks of full": lambda: G.full(WIDE).edge_chunks(),
    "incidence of full": lambda: G.full(WIDE).incidence(),
    "incidence of bottom": lambda: G.from_edges(Domain({"x": 10**8}), []).with_bottom().incidence(),
    "neighbours in full": lambda: G.full(Domain({"x": 10**8})).neighbours(0),
    "neighbours of bottom": lambda: G.line(Domain({"x": 10**8})).with_bottom().neighbours(BOTTOM),
    "networkx": lambda: G.grid(WIDE).to_networkx(),
    "drawing": lambda: G.grid(WIDE).draw("never.png"),
    "drawing many edges": lambda: G.full(Domain({"x": 100})).draw("never.png"),
    "components": lambda: G.attribute(HUGE).components(),
    "chunks of huge": lambda: G.line(HUGE, "a0").edge_chunks(),
    "few edges among huge": lambda: G.from_edges(HUGE, [(0, 1)]),
    "blocks of huge": lambda: G.partition(HUGE, [[0, 1]], rest="singletons"),
    "boxes of huge": lambda: G.partition(HUGE, {"a0": 2, "a1": 2}).edge_arrays(limit=10**60),
    "sets": lambda: G.threshold(Domain({f"a{i}": 2 for i in range(40)}), 20).difference_sets(),
    "counting": lambda: G.threshold(Domain({"x": 10**9, "y": 10**9}), 10**9).n_edges,
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_nothing_large_is_listed_by_accident(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError) as caught:
        TOO_LARGE[name]()
    assert caught.value.code == "graph.too-large"
    assert not list(tmp_path.iterdir())


def test_huge_domains_are_answered_by_formula():
    n = 10**40
    graph = G.attribute(HUGE)
    assert graph.n_edges == 40 * 45 * 10**39
    assert graph.distance(0, n - 1) == 40
    assert graph.has_edge(0, 10**39)
    assert not graph.has_edge(0, 11)
    assert graph.with_bottom().n_edges == 40 * 45 * 10**39 + n
    assert graph.with_bottom().distance(0, n - 1) == 2
    assert graph.with_bottom().distance(0, BOTTOM) == 1
    assert len(graph.neighbours(n - 1)) == 360
    assert G.full(HUGE).n_edges == n * (n - 1) // 2
    assert G.line(HUGE, "a39").n_components == 10**39
    assert G.line(HUGE, "a39").component_of(n - 1) == 10**39 - 1
    assert G.threshold(HUGE, 3).distance(0, n - 1) == 120
    assert len(G.threshold(HUGE, 3).difference_sets()) == 9880
    assert G.partition(HUGE, {"a0": 5, "a1": 2}).n_components == 2 * 5 * 10**38
    assert G.partition(HUGE, {"a0": 5, "a1": 2}).distance(0, 4 * 10**39 + 10**38) == 1
    assert G.from_spec(HUGE, G.threshold(HUGE, 3).to_spec()) == G.threshold(HUGE, 3)


def test_a_million_cells():
    grid = G.grid(WIDE)
    assert grid.n_edges == 2 * 1000 * 999
    assert grid.distance(0, 10**6 - 1) == 1998
    assert not grid.is_tree
    matrix = grid.incidence()
    assert matrix.shape == (10**6, grid.n_edges)
    assert abs(matrix).sum() == 2 * grid.n_edges
    assert matrix.sum(axis=0).any() == np.False_
    assert G.full(WIDE).n_edges == 499_999_500_000
    assert G.full(WIDE).difference_sets() == (frozenset({"lat", "lon"}),)
    line = G.threshold(Domain({"x": 10**6}), 4)
    u, v = line.edge_arrays()
    assert len(u) == line.n_edges == 4 * 10**6 - 10
    assert set(np.unique(v - u)) == {1, 2, 3, 4}
    assert line.distance(0, 999_999) == 250_000
    ball = G.threshold(WIDE, 2)
    u, v = ball.edge_arrays()
    assert len(u) == ball.n_edges == 5_990_002
    assert ball.adjacent(u, v).all()
    assert G.line(Domain({"x": 10**6})).is_tree


def test_a_million_cells_in_lists():
    edges = np.stack(G.grid(WIDE).edge_arrays(), axis=1)
    graph = G.from_edges(WIDE, edges)
    assert graph.n_edges == 1_998_000
    assert graph.is_connected
    assert graph.distance(0, 999_999) == 1998
    assert graph.difference_sets() == (frozenset({"lat"}), frozenset({"lon"}))
    columns = G.partition(WIDE, np.arange(10**6) % 1000)
    assert columns.difference_sets() == (frozenset({"lat"}),)
    assert columns.n_edges == 1000 * 499_500
    assert G.partition(WIDE, np.arange(10**6) // 1500).difference_sets() == (frozenset({"lat", "lon"}),)
