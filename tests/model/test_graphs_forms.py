"""Plain forms, sentences, pictures and networks of policy graphs."""

from __future__ import annotations

import tomllib

import networkx as nx
import numpy as np
import pytest

import policygraph as pg
from policygraph.model.domain import Domain, Network
from policygraph.model.graphs import BOTTOM, PolicyGraph


def test_the_same_graph_written_otherwise_is_the_same_object():
    d = Domain({"age": 4, "sex": ["F", "M"]})
    one = Domain({"age": 4})
    assert PolicyGraph.line(one) == PolicyGraph.grid(one) == PolicyGraph.threshold(one, 1)
    assert PolicyGraph.full(one) == PolicyGraph.attribute(one)
    assert PolicyGraph.threshold(d, 1) == PolicyGraph.grid(d)
    assert PolicyGraph.product(d, {"age": "full", "sex": "full"}) == PolicyGraph.attribute(d)
    assert PolicyGraph.partition(d, {"age": 2}) == PolicyGraph.partition(d, 2, attribute="age")
    assert PolicyGraph.partition(d, [[3, 2], [1, 0]], "age") == PolicyGraph.partition(d, 2, "age")
    assert PolicyGraph.partition(d, {"age": 2, "sex": 1}) == PolicyGraph.partition(d, 2, "age")
    assert PolicyGraph.from_edges(d, [(0, 1), (3, 2)]) == PolicyGraph.from_edges(d, [(2, 3), (1, 0), (0, 1)])
    star = PolicyGraph.from_edges(one, [(u, BOTTOM) for u in range(4)])
    assert star.bottom == "all"
    assert star == PolicyGraph.from_edges(one, []).with_bottom()
    assert star.without_bottom().bottom == "none"
    assert PolicyGraph.line(one) != PolicyGraph.line(Domain({"height": 4}))
    assert PolicyGraph.line(one) != PolicyGraph.line(one).with_bottom()


def test_a_network_takes_full_blocks_and_edges():
    net = Network(4)
    assert PolicyGraph.full(net).n_edges == 15
    edges = PolicyGraph.from_edges(net, [((0, 1), (3, 2)), (1, 2), ((0, 1), BOTTOM)])
    assert sorted((u, v) for u, v in edges.edges() if v is not BOTTOM) == [(0, 5), (1, 2)]
    assert edges.bottom_cells == (0,)
    assert PolicyGraph.from_spec(net, edges.to_spec()) == edges
    blocks = PolicyGraph.partition(net, [[(0, 1), (0, 2)]], rest="singletons")
    assert blocks.n_edges == 1
    assert PolicyGraph.from_spec(net, blocks.to_spec()) == blocks
    assert edges.translations() is None
    assert "node pairs" in blocks.describe()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda d: PolicyGraph.threshold(d, 2, "age"),
            "Two values of age must not be told apart when they differ by at most 2; other attributes are the same.",
        ),
        (lambda d: PolicyGraph.full(d), "No two records may be told apart."),
        (
            lambda d: PolicyGraph.full(d).with_bottom(),
            "No two records may be told apart; nor may it be told whether a record is there at all.",
        ),
        (
            lambda d: PolicyGraph.from_edges(d, []).with_bottom(),
            "It may not be told whether a record is there at all.",
        ),
        (
            lambda d: PolicyGraph.attribute(d),
            "Two records that differ in one attribute must not be told apart.",
        ),
        (lambda d: PolicyGraph.from_edges(d, []), "All records may be told apart."),
        (
            lambda d: PolicyGraph.full(d, "sex"),
            "Two values of sex must not be told apart; other attributes are the same.",
        ),
        (
            lambda d: PolicyGraph.from_edges(d, [(0, 1), (2, BOTTOM)]),
            "1 listed pair of records must not be told apart; nor may it be told, for 1 of the 14 cells, "
            "whether a record is there at all.",
        ),
        (
            lambda d: PolicyGraph.partition(d, {"age": 3, "sex": 2}),
            "Two records must not be told apart when their values of sex and age lie in the same blocks.",
        ),
    ],
)
def test_sentences(make, sentence):
    assert make(Domain({"sex": ["F", "M"], "age": 7})).describe() == sentence


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_small_graphs_draw_themselves(tmp_path, suffix):
    d = Domain({"sex": ["F", "M"], "age": 4})
    graphs = {
        "grid": PolicyGraph.grid(d).with_bottom(),
        "line": PolicyGraph.threshold(Domain({"age": 6}), 2),
        "ring": PolicyGraph.from_edges(Domain({"x": 5}), [(0, 1), (1, 2), (4, BOTTOM)]),
        "cube": PolicyGraph.grid(Domain({"x": 2, "y": 2, "z": 3})),
        "net": PolicyGraph.full(Network(4)),
    }
    for name, graph in graphs.items():
        path = tmp_path / f"{name}.{suffix}"
        axes = graph.draw(path)
        assert path.stat().st_size > 1000
        texts = [t.get_text() for t in axes.texts]
        assert len(texts) == graph.size + (graph.bottom != "none")
        assert ("⊥" in texts) == (graph.bottom != "none")
        between = graph.without_bottom().n_edges
        assert len(axes.patches) == between
        assert len(axes.lines) == graph.n_edges - between


def test_drawing_into_given_axes():
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    assert PolicyGraph.line(Domain({"x": 3})).draw(axes) is axes
    assert len(axes.texts) == 3


PLAIN = Domain({"sex": ["F", "M"], "age": 7, "salary": 5})
FORMS = {
    '"full"': PolicyGraph.full(PLAIN),
    '{full = true, attribute = "age"}': PolicyGraph.full(PLAIN, "age"),
    '"attribute"': PolicyGraph.attribute(PLAIN),
    '"bit"': PolicyGraph.bit(PLAIN),
    '{bit = true, attribute = "age"}': PolicyGraph.bit(PLAIN, "age"),
    '{line = true, attribute = "age"}': PolicyGraph.line(PLAIN, "age"),
    '"grid"': PolicyGraph.grid(PLAIN),
    '{threshold = 2, attribute = "age"}': PolicyGraph.threshold(PLAIN, 2, "age"),
    "{threshold = 2}": PolicyGraph.threshold(PLAIN, 2),
    '{partition = [[0, 1, 2], [3, 4, 5, 6]], attribute = "age"}': PolicyGraph.partition(
        PLAIN, [[4, 3, 6, 5], [2, 1, 0]], "age"
    ),
    '{partition = [["F", "M"]], attribute = "sex"}': PolicyGraph.full(PLAIN, "sex"),
    "{partition = {age = 2, salary = 5}}": PolicyGraph.partition(PLAIN, {"age": 2, "salary": 5}),
    '{partition = [[0, ["M", 6, 4]], [1, 2]], rest = "singletons"}': PolicyGraph.partition(
        PLAIN, [[69, 0], [1, 2]], rest="singletons"
    ),
    '{product = {age = "line", salary = {threshold = 2}}}': PolicyGraph.product(
        PLAIN,
        {
            "age": PolicyGraph.line(PLAIN.project(["age"])),
            "salary": PolicyGraph.threshold(PLAIN.project(["salary"]), 2),
        },
    ),
    '{edges = [[0, 1], [["F", 0, 0], ["M", 6, 4]]]}': PolicyGraph.from_edges(PLAIN, [(69, 0), (1, 0)]),
    '{edges = [[0, 1], [3, 6]], attribute = "age"}': PolicyGraph.from_edges(PLAIN, [(0, 1), (3, 6)], "age"),
    "{edges = [[0, 1]], bottom = [2]}": PolicyGraph.from_edges(PLAIN, [(0, 1), (2, BOTTOM)]),
}


@pytest.mark.parametrize("text", FORMS)
def test_the_forms_of_policy_files(text):
    read = PolicyGraph.from_spec(PLAIN, tomllib.loads(f"graph = {text}")["graph"])
    assert set(read.edges()) == set(FORMS[text].edges())
    assert read == FORMS[text] or "partition" in text
    both = PolicyGraph.from_spec(PLAIN, {"graph": FORMS[text].to_spec()["graph"], "bottom": True})
    assert both == FORMS[text].with_bottom() or FORMS[text].bottom == "some"
    assert both.bottom == "all"


def test_policies_take_networkx_graphs():
    domain = Domain({"age": ["young", "middle", "old"]})
    graph = nx.path_graph(["young", "middle", "old"])
    graph.add_edge("old", pg.BOTTOM)
    policy = pg.Policy(domain, graph)
    assert policy.graph == PolicyGraph.from_edges(domain, [(0, 1), (1, 2), (2, pg.BOTTOM)])
    assert policy.are_neighbours([1, 0, 0], [0, 1, 0])
    assert not policy.are_neighbours([1, 0, 0], [0, 0, 1])
    assert pg.Policy.from_spec(policy.to_spec()) == policy
    wide = Domain({"a": 2, "b": 2})
    cells = pg.Policy(wide, nx.Graph([((0, 0), (1, 1))]))
    assert cells.graph is not None
    assert cells.graph.has_edge(0, 3)


def test_directed_networkx_graphs_must_be_symmetric():
    domain = Domain({"x": 3})
    both = nx.DiGraph([(0, 1), (1, 0)])
    assert pg.Policy(domain, both).graph == PolicyGraph.from_edges(domain, [(0, 1)])
    with pytest.raises(pg.InputError) as caught:
        pg.Policy(domain, nx.DiGraph([(0, 1), (1, 0), (1, 2)]))
    assert caught.value.code == "graph.directed"


@pytest.mark.parametrize("weight", [2, 0.5, 0, -1, "1", None])
def test_weights_of_networkx_graphs_are_never_dropped(weight):
    domain = Domain({"x": 3})
    for make in (nx.Graph, nx.MultiGraph):
        graph = make([(0, 1)])
        graph.add_edge(1, 2, weight=weight)
        with pytest.raises(pg.InputError) as caught:
            pg.Policy(domain, graph)
        assert caught.value.code == "graph.weights"
    with pytest.raises(pg.InputError) as caught:
        PolicyGraph.product(Domain({"x": 3, "y": 2}), {"x": graph})
    assert caught.value.code == "graph.weights"


def test_weights_of_one_and_parallel_edges_say_nothing():
    domain = Domain({"x": 3})
    graph = nx.MultiGraph([(0, 1), (0, 1)])
    graph.add_edge(1, 2, weight=1.0)
    assert pg.Policy(domain, graph).graph == PolicyGraph.from_edges(domain, [(0, 1), (1, 2)])
    product = PolicyGraph.product(Domain({"x": 3, "y": 2}), {"x": nx.path_graph(3)})
    assert product.n_edges == 4


def test_lists_of_edges_with_weights_are_refused():
    for edges in ([(0, 1, 2)], [[0, 1, {"weight": 2}]], np.array([[0, 1, 2]])):
        with pytest.raises(pg.InputError) as caught:
            PolicyGraph.from_edges(Domain({"x": 3}), edges)
        assert caught.value.code in ("graph.edges", "graph.array")
    with pytest.raises(pg.InputError) as caught:
        PolicyGraph.from_spec(Domain({"x": 3}), {"edges": [[0, 1]], "weights": [2]})
    assert caught.value.code == "graph.spec"
