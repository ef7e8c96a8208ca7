"""The P_G transform against its definition: every shape of graph, both ways, its stretch and its refusals."""

from __future__ import annotations

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

import policygraph as pg
from policygraph.errors import InputError, RefusedError
from policygraph.model.graphs import BOTTOM, PolicyGraph
from policygraph.transforms.incidence import (
    EdgeTransform,
    ForestTransform,
    GridTransform,
    LineTransform,
    spanning_transform,
    transform,
)
from policygraph.transforms.incidence.grid import graph_laplacian, solve_system
from policygraph.transforms.incidence.tree import is_forest
from tests.oracles import transform as oracle


def over(n, edges):
    domain = pg.Domain({"x": n})
    return PolicyGraph.from_edges(domain, edges)


PAIR = pg.Domain({"x": 3, "y": 4})
ROW = pg.Domain({"x": 7})

CASES = {
    "line": PolicyGraph.line(ROW),
    "line of two": PolicyGraph.line(pg.Domain({"x": 2})),
    "one cell": PolicyGraph.line(pg.Domain({"x": 1})),
    "lines inside": PolicyGraph.line(PAIR, "x"),
    "lines outside": PolicyGraph.line(PAIR, "y"),
    "line and bottom at one end": over(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, BOTTOM)]),
    "star": over(5, [(0, 1), (0, 2), (0, 3), (0, 4)]),
    "tree": over(8, [(3, 1), (3, 7), (1, 0), (7, 5), (5, 2), (5, 6), (6, 4)]),
    "star of bottom": PolicyGraph.from_edges(ROW, []).with_bottom(),
    "no edge": PolicyGraph.from_edges(ROW, []),
    "forest": over(7, [(0, 3), (3, 5), (1, 2), (6, BOTTOM)]),
    "two trees on bottom": over(6, [(0, 1), (2, 3), (1, BOTTOM), (3, BOTTOM)]),
    "cycle": over(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]),
    "cycle through bottom": over(3, [(0, 1), (0, BOTTOM), (1, BOTTOM)]),
    "cycle and tree": over(7, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5)]),
    "grid": PolicyGraph.grid(PAIR),
    "grids inside": PolicyGraph.product(pg.Domain({"x": 2, "y": 3, "z": 3}), {"x": "line", "z": "line"}),
    "cube": PolicyGraph.grid(pg.Domain({"x": 2, "y": 3, "z": 2})),
    "full": PolicyGraph.full(pg.Domain({"x": 5})),
    "full on one attribute": PolicyGraph.full(PAIR, "y"),
    "threshold": PolicyGraph.threshold(pg.Domain({"x": 11}), 3),
    "threshold, several lines": PolicyGraph.threshold(pg.Domain({"s": 2, "x": 7}), 2, "x"),
    "threshold beyond the end": PolicyGraph.threshold(pg.Domain({"x": 4}), 9),
    "partition": PolicyGraph.partition(ROW, [[0, 1, 2], [3, 4], [5], [6]]),
    "line and bottom": PolicyGraph.line(ROW).with_bottom(),
}
EVERY = pytest.mark.parametrize("graph", CASES.values(), ids=CASES)


def made(graph, **options):
    return transform(pg.Policy(graph.domain, graph), **options)


def check(reduction, graph, rng):
    """M is what invert does, apply is a preimage, and every move changes at most ``stretch`` free coordinates by 1."""
    matrix = reduction.matrix().toarray()
    for _ in range(3):
        cells = rng.integers(0, 9, graph.size)
        assert np.array_equal(reduction.invert(reduction.apply(cells)), cells)
        y = rng.integers(-5, 6, reduction.width)
        assert np.array_equal(reduction.invert(y), matrix @ y)
        assert np.allclose(reduction.invert(y.astype(float)), matrix @ y)
    worst = 0
    for move in oracle.moves(graph):
        if reduction.valid_for == "any":
            change = oracle.coordinate_change(matrix, move)
        else:
            hits = [
                np.all(matrix[:, e] == move) or np.all(matrix[:, e] == -move) for e in range(reduction.width)
            ]
            change = np.array(hits, dtype=np.int64)
            assert change.sum() == 1
        assert np.abs(change).max() == 1
        assert not change[reduction.fixed].any()
        worst = max(worst, int(np.abs(change).sum()))
    assert worst <= reduction.stretch
    if graph.n_edges:
        assert worst == reduction.stretch


@EVERY
@pytest.mark.parametrize("totals", ["auto", "exact", "noisy"])
def test_moves_change_one_coordinate_and_both_ways_agree(graph, totals):
    reduction = made(graph, totals=totals)
    check(reduction, graph, np.random.default_rng(0))
    assert reduction.valid_for == ("any" if is_forest(graph) else "data-independent")
    if totals == "noisy":
        assert len(reduction.fixed) == 0
    if totals == "exact":
        bounded = graph.n_components - (graph.bottom != "none")
        assert len(reduction.fixed) == bounded


@EVERY
def test_spanning_forests_span_and_account_for_their_stretch(graph):
    reduction = spanning_transform(pg.Policy(graph.domain, graph), "exact")
    check(reduction, graph, np.random.default_rng(1))
    assert reduction.valid_for == "any"
    for child, above in enumerate(reduction.parent.tolist()):
        if above >= 0:
            assert graph.has_edge(child, above)
    assert reduction.stretch == max(1, oracle.tree_stretch(graph, reduction.parent))


def test_the_stretch_of_known_graphs():
    for n in (3, 10, 50):
        assert made(PolicyGraph.full(pg.Domain({"x": n})), spanning=True).stretch == 2
    for theta in (2, 3, 7):
        assert made(PolicyGraph.threshold(pg.Domain({"x": 40}), theta), spanning=True).stretch <= 3
    assert made(PolicyGraph.grid(pg.Domain({"x": 9, "y": 5})), spanning=True).stretch == 5
    assert made(PolicyGraph.line(ROW).with_bottom(), spanning=True).stretch == 2
    huge = made(PolicyGraph.full(pg.Domain({"x": 100_000})), spanning=True)
    assert huge.stretch == 2
    assert made(PolicyGraph.threshold(pg.Domain({"x": 100_000}), 1000), spanning=True).stretch == 3


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 8))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    edges = draw(st.lists(pairs, max_size=12)) if n > 1 else []
    lone = draw(st.lists(st.integers(0, n - 1), max_size=3))
    return over(n, [*edges, *((u, BOTTOM) for u in lone)])


@settings(max_examples=150, deadline=None)
@given(graphs(), st.sampled_from(["auto", "exact", "noisy"]), st.booleans(), st.integers(0, 99))
def test_any_small_graph(graph, totals, spanning, seed):
    check(made(graph, totals=totals, spanning=spanning), graph, np.random.default_rng(seed))


@EVERY
@pytest.mark.parametrize("kind", ["identity", "prefix", "boxes", "random matrix"])
def test_squares_are_those_of_the_dense_product(graph, kind):
    domain = graph.domain
    rng = np.random.default_rng(4)
    if kind == "prefix":
        query = pg.queries.prefix(domain, domain.names[0])
    elif kind == "boxes":
        query = pg.queries.random_boxes(domain, 40, seed=1)
    elif kind == "identity":
        query = pg.queries.identity(domain)
    else:
        query = pg.queries.matrix(domain, rng.integers(-2, 3, (6, domain.size)))
    for totals in ("exact", "noisy"):
        reduction = made(graph, totals=totals)
        dense = query.columns(np.arange(domain.size)).toarray() @ reduction.matrix().toarray()
        dense[:, reduction.fixed] = 0
        assert np.array_equal(reduction.squares(query), (dense**2).sum(axis=1))


def test_the_transform_that_is_chosen():
    assert isinstance(made(CASES["lines inside"]), LineTransform)
    assert isinstance(made(CASES["tree"]), ForestTransform)
    assert isinstance(made(CASES["grids inside"]), GridTransform)
    assert isinstance(made(CASES["cycle through bottom"]), EdgeTransform)
    assert isinstance(made(CASES["grid"], spanning=True), ForestTransform)
    assert isinstance(transform(pg.Policy(ROW)), ForestTransform)


def test_one_record_more_or_less_is_the_star_of_bottom():
    reduction = transform(pg.Policy(ROW))
    assert len(reduction.fixed) == 0
    assert np.array_equal(reduction.matrix().toarray(), np.eye(7, dtype=np.int64))


def test_automatic_totals_are_exact_only_for_one_component_or_public_facts():
    split = PolicyGraph.line(PAIR, "y")
    assert len(made(CASES["line"]).fixed) == 1
    assert len(made(split).fixed) == 0
    told = transform(pg.Policy(PAIR, split, [pg.Cuboid("x")]))
    assert told.fixed.tolist() == [3, 7, 11]
    only_total = transform(pg.Policy(PAIR, split, [pg.Total()]))
    assert len(only_total.fixed) == 0


def test_a_data_dependent_mechanism_is_refused_on_a_cycle():
    for name in ("cycle", "grid", "cycle through bottom", "full"):
        graph = CASES[name]
        with pytest.raises(RefusedError) as error:
            made(graph, data_dependent=True)
        assert error.value.code == "reduction.data-dependent"
        assert made(graph, spanning=True, data_dependent=True).stretch > 1
    assert made(CASES["tree"], data_dependent=True).stretch == 1


def test_public_facts_that_an_edge_breaks_are_refused():
    line = PolicyGraph.line(ROW)
    for facts in ([pg.count({"x": [0, 1]})], [pg.StructuralZero(cells=[(0,)])]):
        with pytest.raises(RefusedError) as error:
            transform(pg.Policy(ROW, line, facts))
        assert error.value.code == "reduction.facts"
    with pytest.raises(RefusedError):
        transform(pg.Policy(ROW, constraints=[pg.Total()]))
    with pytest.raises(RefusedError):
        transform(pg.Policy(ROW, line.with_bottom(), [pg.Total()]))
    assert isinstance(transform(pg.Policy(ROW, line, [pg.Total()])), LineTransform)


def test_wrong_arguments_are_errors():
    with pytest.raises(InputError, match="totals"):
        made(CASES["line"], totals="guess")
    with pytest.raises(InputError):
        transform(CASES["line"])
    for kind in (LineTransform, GridTransform, ForestTransform.of):
        with pytest.raises(InputError):
            kind(pg.Policy(CASES["full"].domain, CASES["full"]))


def test_laplacian_solvers_agree(monkeypatch):
    from policygraph.transforms.incidence import grid

    graph = PolicyGraph.grid(pg.Domain({"x": 6, "y": 5}))
    right = np.random.default_rng(3).normal(size=29)
    system = graph_laplacian(30, *graph.edge_arrays(), np.zeros(0, dtype=np.int64))[1:, :][:, 1:]
    direct = solve_system(system, right, np.zeros(29))
    monkeypatch.setattr(grid, "DIRECT", 0)
    assert np.allclose(solve_system(system, right, np.zeros(29)), direct, atol=1e-7)
    assert np.allclose(solve_system(system, right, np.zeros(29), direct=True), direct)
    dense = nx.laplacian_matrix(graph.to_networkx(), nodelist=range(30)).toarray()
    assert np.allclose(dense[1:, 1:] @ direct, right)


def test_a_long_random_tree_in_any_numbering():
    rng = np.random.default_rng(5)
    n = 20_000
    above = (np.arange(1, n) * rng.random(n - 1)).astype(np.int64)
    names = rng.permutation(n)
    graph = over(n, np.stack([names[1:], names[above]], axis=1))
    reduction = made(graph)
    cells = rng.integers(0, 10, n)
    sums = reduction.apply(cells)
    assert np.array_equal(reduction.invert(sums), cells)
    assert sums[reduction.fixed].tolist() == [cells.sum()]
    order = reduction.post_order
    assert np.array_equal(np.sort(order), np.arange(n))
    place = np.argsort(order)
    running = np.concatenate([[0], np.cumsum(cells[order])])
    sizes = reduction.apply(np.ones(n, dtype=np.int64))
    assert np.array_equal(running[place + 1] - running[place + 1 - sizes], sums)
