"""Every rule against its definition over all pairs of cells, on small domains of every shape."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from math import prod

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from policygraph.model.domain import Domain
from policygraph.model.graphs import BOTTOM, PolicyGraph
from policygraph.model.graphs._compiled_joining import joined
from policygraph.model.graphs.rules import Edges
from tests.oracles import graphs as oracle


@dataclass
class Case:
    graph: PolicyGraph
    edges: set
    bottom: set

    @property
    def literal(self) -> nx.Graph:
        return oracle.graph(self.graph.size, self.edges, self.bottom)


LABELS = {1: ["only"], 2: ["F", "M"], 3: [10, 20, 30], 4: ["a", "b", "c", "d"]}


@st.composite
def domains(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda sizes: prod(sizes) <= 36))
    if draw(st.booleans()) and len(sizes) == 1:
        sizes = [draw(st.integers(1, 11))]
    return Domain(
        {f"x{i}": LABELS[n] if n in LABELS and draw(st.booleans()) else n for i, n in enumerate(sizes)}
    )


@st.composite
def value_rules(draw, domain, name):
    """A plain form of a graph on one attribute, and its predicate on codes."""
    values = domain.labels(name)
    n = len(values)
    kind = draw(st.sampled_from(["full", "line", "bit", "threshold", "partition", "width", "edges"]))
    if kind in ("full", "line", "bit"):
        return kind, {"full": oracle.full, "line": oracle.grid, "bit": oracle.bit}[kind]
    if kind == "threshold":
        theta = draw(st.integers(1, n + 1))
        return {"threshold": theta}, oracle.threshold(theta)
    if kind == "edges":
        pairs = [] if n == 1 else draw(st.lists(st.permutations(range(n)).map(lambda p: p[:2]), max_size=5))
        form = {"edges": [[values[u], values[v]] for u, v in pairs]}
        return form, oracle.listed([((u,), (v,)) for u, v in pairs])
    if kind == "width":
        width = draw(st.integers(1, n + 1))
        owner = [u // width for u in range(n)]
        form = {"partition": width}
    else:
        owner = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
        form = {"partition": [[values[u] for u in range(n) if owner[u] == b] for b in (2, 0, 1)]}
    return form, oracle.same_block([[(u,) for u in range(n) if owner[u] == b] for b in set(owner)])


@st.composite
def cell_names(draw, domain, cell):
    """One of the ways to name a cell."""
    labels = domain.cell(cell)
    ways = [labels, list(labels)]
    if len(domain.names) == 1 and isinstance(labels[0], str):
        ways += [labels[0], cell]
    if len(domain.names) > 1 or isinstance(domain.labels(domain.names[0]), range):
        ways += [cell, np.int64(cell)]
    return draw(st.sampled_from(ways))


@st.composite
def cases(draw):
    domain = draw(domains())
    kinds = [
        "full",
        "attribute",
        "bit",
        "grid",
        "threshold",
        "euclidean",
        "one",
        "product",
        "cells",
        "boxes",
        "edges",
        "array",
    ]
    kind = draw(st.sampled_from(kinds))
    bottom: set[int] = set()
    size, shape, names = domain.size, domain.shape, domain.names
    if kind in ("full", "attribute", "bit", "grid"):
        graph, predicate = getattr(PolicyGraph, kind)(domain), getattr(oracle, kind)
    elif kind == "threshold":
        theta = draw(st.integers(1, 7))
        graph, predicate = PolicyGraph.threshold(domain, theta), oracle.threshold(theta)
    elif kind == "euclidean":
        theta = draw(st.fractions(1, 5, max_denominator=8))
        graph = PolicyGraph.threshold(domain, theta, metric="euclidean")
        predicate = oracle.euclidean(theta)
    elif kind == "one":
        name = draw(st.sampled_from(names))
        form, inner = draw(value_rules(domain, name))
        table = {form: True, "attribute": name} if isinstance(form, str) else {**form, "attribute": name}
        graph, predicate = PolicyGraph.from_spec(domain, table), oracle.only(domain.axis(name), inner)
    elif kind == "product":
        chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        rules = {name: draw(value_rules(domain, name)) for name in chosen}
        parts = {
            name: PolicyGraph.product(domain.project([name]), {name: form}) if draw(st.booleans()) else form
            for name, (form, _) in rules.items()
        }
        graph = PolicyGraph.product(domain, parts)
        predicate = oracle.either(oracle.only(domain.axis(n), inner) for n, (_, inner) in rules.items())
    elif kind == "cells":
        owner = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
        blocks = [[u for u in range(size) if owner[u] == b] for b in range(4)]
        at = oracle.cells(shape)
        predicate = oracle.same_block([[at[u] for u in block] for block in blocks])
        if draw(st.booleans()):
            graph = PolicyGraph.partition(domain, np.array(owner))
        elif len(names) > 1:
            named = [[draw(cell_names(domain, u)) for u in block] for block in blocks if len(block) > 1]
            graph = PolicyGraph.partition(domain, named, rest="singletons")
        else:
            labels = domain.labels(names[0])
            graph = PolicyGraph.partition(domain, [[labels[u] for u in block] for block in blocks])
    elif kind == "boxes":
        chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        owners = {n: draw(st.lists(st.integers(0, 1), min_size=k, max_size=k)) for n, k in zip(names, shape)}
        form = {
            n: [[x for x, o in zip(domain.labels(n), owners[n]) if o == b] for b in (1, 0)] for n in chosen
        }
        graph = PolicyGraph.partition(domain, form)

        def predicate(a, b):
            together = (
                owners[n][x] == owners[n][y] if n in chosen else x == y for n, x, y in zip(names, a, b)
            )
            return a != b and all(together)
    else:
        pairs = st.tuples(st.integers(0, size - 1), st.integers(-1, size - 1)).filter(lambda p: p[0] != p[1])
        listed = draw(st.lists(pairs, max_size=8)) if size > 1 or kind == "edges" else []
        if kind == "array":
            listed = [pair for pair in listed if pair[1] >= 0]
            graph = PolicyGraph.from_edges(domain, np.array(listed, dtype=np.int64).reshape(-1, 2))
        else:
            bottom = {u for u, v in listed if v < 0}
            ends = [
                tuple(BOTTOM if c < 0 else draw(cell_names(domain, c)) for c in draw(st.permutations(pair)))
                for pair in listed
            ]
            graph = PolicyGraph.from_edges(domain, ends)
        at = oracle.cells(shape)
        predicate = oracle.listed([(at[u], at[v]) for u, v in listed if v >= 0])
    if draw(st.sampled_from([False, False, True])):
        graph, bottom = graph.with_bottom(), set(range(size))
    return Case(graph, oracle.edges_of(shape, predicate), bottom)


def check_edges(case):
    graph, size = case.graph, case.graph.size
    listed = list(graph.edges())
    assert len(listed) == graph.n_edges
    assert {frozenset(e) for e in listed if e[1] is not BOTTOM} == case.edges
    assert {u for u, v in listed if v is BOTTOM} == case.bottom == set(graph.bottom_cells)
    assert all(v is BOTTOM or u < v for u, v in listed)
    for chunk in (1, 3):
        parts = list(graph.edge_chunks(chunk))
        assert all(0 < len(u) == len(v) <= chunk and u.dtype == v.dtype == np.int64 for u, v in parts)
        assert sorted((int(a), int(b)) for u, v in parts for a, b in zip(u, v)) == sorted(
            map(tuple, map(sorted, case.edges))
        )
    u, v = np.meshgrid(np.arange(size), np.arange(size))
    expected = np.array(
        [[frozenset((a, b)) in case.edges for a in range(size)] for b in range(size)], dtype=bool
    )
    assert (graph.adjacent(u, v) == expected).all()
    assert all(graph.has_edge(a, b) == expected[a, b] for a in range(size) for b in range(size))
    assert all(
        graph.has_edge(a, BOTTOM) == graph.has_edge(BOTTOM, a) == (a in case.bottom) for a in range(size)
    )
    for a in [*range(size), BOTTOM]:
        there = (
            case.literal.neighbors(oracle.NONE if a is BOTTOM else a)
            if a is not BOTTOM or case.bottom
            else ()
        )
        around = graph.neighbours(a)
        assert {oracle.NONE if b is BOTTOM else b for b in around} == set(there)
        assert list(around) == sorted(around, key=lambda b: size if b is BOTTOM else b)


def check_distances(case):
    graph, literal = case.graph, case.literal
    lengths = dict(nx.all_pairs_shortest_path_length(literal))
    names = {u: BOTTOM if u == oracle.NONE else u for u in literal}
    for u in literal:
        for v in literal:
            assert graph.distance(names[u], names[v]) == lengths[u].get(v)
    labels = oracle.labels(literal)
    assert graph.components().tolist() == [labels[u] for u in range(graph.size)]
    assert all(graph.component_of(names[u]) == labels[u] for u in literal)
    assert graph.n_components == len(set(labels.values()))
    assert graph.is_connected == nx.is_connected(literal)
    assert graph.is_tree == nx.is_tree(literal)


def check_incidence(case):
    graph = case.graph
    matrix = graph.incidence()
    columns = matrix.toarray().T.tolist()
    assert matrix.shape == (graph.size, graph.n_edges)
    assert matrix.has_canonical_format
    assert len(columns) == len({tuple(c) for c in columns})
    assert {tuple(c) for c in columns} == oracle.incidence_columns(graph.size, case.edges, case.bottom)
    u, v = graph.edge_arrays()
    assert [int(c.argmin()) for c in matrix.toarray().T[: len(u)]] == u.tolist()
    assert [int(c.argmax()) for c in matrix.toarray().T] == [*v.tolist(), *graph.bottom_cells]
    sets = graph.difference_sets()
    assert len(sets) == len(set(sets))
    assert set(sets) == oracle.difference_sets(graph.domain.shape, graph.domain.names, case.edges)
    moves = graph.translations()
    if moves is not None:
        moves = list(moves)
        assert all(next(d for d in move if d) > 0 for move in moves)
        at = oracle.cells(graph.domain.shape)
        by_moves = {frozenset((a, tuple(x + d for x, d in zip(a, move)))) for move in moves for a in at}
        assert {e for e in by_moves if e <= set(at)} == {frozenset(at[u] for u in e) for e in case.edges}


def check_forms(case):
    graph = case.graph
    form = graph.to_spec()
    back = PolicyGraph.from_spec(graph.domain, form)
    assert back == graph
    assert hash(back) == hash(graph)
    assert back.to_spec() == form
    assert _plain(form)
    assert pickle.loads(pickle.dumps(graph)) == graph
    drawn = graph.to_networkx()
    assert nx.is_isomorphic(drawn, case.literal)
    assert {frozenset(e) for e in drawn.edges if BOTTOM not in e} == case.edges
    relabelled = nx.relabel_nodes(drawn, {u: graph.domain.cell(u) for u in range(graph.size)})
    again = PolicyGraph.from_networkx(graph.domain, relabelled)
    assert set(again.edges()) == set(graph.edges())
    assert graph.describe().endswith(".")
    assert repr(graph)


CHECKS = {
    "edges": check_edges,
    "distances": check_distances,
    "incidence": check_incidence,
    "forms": check_forms,
}


@given(cases())
@settings(max_examples=200, deadline=None)
def test_edges_are_those_of_the_definition(case):
    check_edges(case)


@given(cases())
@settings(max_examples=150, deadline=None)
def test_distances_and_components_are_those_of_networkx(case):
    check_distances(case)


@given(cases())
@settings(max_examples=150, deadline=None)
def test_incidence_differences_and_translations(case):
    check_incidence(case)


@given(cases())
@settings(max_examples=150, deadline=None)
def test_plain_forms_and_networkx_give_the_graph_back(case):
    check_forms(case)


def _listed(domain, pairs, bottom=()):
    at = oracle.cells(domain.shape)
    graph = PolicyGraph.from_edges(domain, [*pairs, *((u, BOTTOM) for u in bottom)])
    predicate = oracle.listed([(at[u], at[v]) for u, v in pairs])
    return Case(graph, oracle.edges_of(domain.shape, predicate), set(bottom))


def _ruled(graph, predicate):
    return Case(graph, oracle.edges_of(graph.domain.shape, predicate), set())


SEVEN, BOX, FLAT = (
    Domain({"x": 7}),
    Domain({"a": 2, "b": 3, "c": 2}),
    Domain({"a": 2, "one": 1, "b": 3, "c": 2}),
)
NAMED = {
    "single cell": _ruled(PolicyGraph.full(Domain({"x": 1})), oracle.full),
    "empty": _listed(SEVEN, []),
    "tree": _listed(SEVEN, [(0, 3), (1, 3), (3, 5), (5, 2), (2, 4), (4, 6)]),
    "tree with a leaf at bottom": _listed(SEVEN, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)], [6]),
    "cycle through bottom": _listed(SEVEN, [(0, 1), (1, 2), (2, 3), (4, 5)], [0, 3]),
    "two trees and bottom": _listed(SEVEN, [(0, 4), (4, 2), (1, 6), (6, 3)], [2, 3]),
    "cycle": _listed(SEVEN, [(u, (u + 1) % 7) for u in range(7)]),
    "disconnected": _listed(SEVEN, [(5, 6), (0, 3), (1, 5)]),
    "duplicates": _listed(SEVEN, [(0, 1), (1, 0), (0, 1), (2, 1)]),
    "threshold 2 of three attributes": _ruled(PolicyGraph.threshold(BOX, 2), oracle.threshold(2)),
    "threshold 2, one value": _ruled(PolicyGraph.threshold(FLAT, 2), oracle.threshold(2)),
    "threshold beyond all": _ruled(PolicyGraph.threshold(FLAT, 9), oracle.threshold(9)),
    "full, one value": _ruled(PolicyGraph.full(FLAT), oracle.full),
    "attribute, one value": _ruled(PolicyGraph.attribute(FLAT), oracle.attribute),
    "bit, one value": _ruled(PolicyGraph.bit(FLAT), oracle.bit),
    "bits of eleven": _ruled(PolicyGraph.bit(Domain({"x": 11})), oracle.bit),
}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", NAMED)
def test_named_cases(name, check):
    CHECKS[check](NAMED[name])


def _plain(value):
    if isinstance(value, dict):
        return all(type(k) is str and _plain(v) for k, v in value.items())
    if isinstance(value, list):
        return all(map(_plain, value))
    return type(value) in (str, int, bool, float)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_blocks_of_cells_by_counting_give_the_same_difference_sets(data):
    """The counting way is taken only for large blocks; here it is called on small ones."""
    from policygraph.model.graphs import differences
    from policygraph.model.graphs.rules import Blocks

    domain = data.draw(domains())
    several = [n for n, k in zip(domain.names, domain.shape) if k > 1]
    owner = data.draw(st.lists(st.integers(0, 2), min_size=domain.size, max_size=domain.size))
    rule = Blocks(np.array(owner))
    by_counting = differences.by_counting(domain, rule, several)
    by_pairs = differences.by_edges(domain, rule)
    assert set(differences.maximal(by_counting)) == set(differences.maximal(by_pairs))


@given(st.integers(0, 9), st.data())
@settings(max_examples=150, deadline=None)
def test_long_lists_of_edges_have_the_components_of_short_ones(spread, data):
    """Positions by a table or by search, ends in one word or in two, components compiled or not: all the same."""
    few = data.draw(st.integers(2, 12))
    pair = st.lists(st.integers(0, few - 1), min_size=2, max_size=2, unique=True)
    pairs = np.array(data.draw(st.lists(pair, max_size=14)), dtype=np.int64).reshape(-1, 2) << 6 * spread
    listed = [Edges((few << 6 * spread) + extra, pairs[:, 0], pairs[:, 1]) for extra in (0, 3)]
    literal = nx.Graph(pairs.tolist())
    want = sorted({(min(p), max(p)) for p in pairs.tolist()})
    for rule in listed:
        assert list(zip(rule.u.tolist(), rule.v.tolist(), strict=True)) == want
        assert rule.n_components == rule.n - len(literal) + nx.number_connected_components(literal)
        count, labels = joined(rule._nodes.size, rule._places(rule.u), rule._places(rule.v))
        plain, same = rule._joined
        assert (count, labels.tolist()) == (plain, same.tolist())
        assert all(rule.has_edge(u, v) and v in set(rule.neighbours(u)) for u, v in want)
