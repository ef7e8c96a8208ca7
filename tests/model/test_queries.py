from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.errors import InputError
from policygraph.model import queries
from policygraph.model.domain import Domain, Network
from policygraph.model.queries import workloads
from policygraph.model.queries.base import Query
from tests.oracles.sensitivity import query_rows

DOMAIN = Domain({"a": ["x", "y"], "b": 3, "c": 1, "d": 2})
NETWORK = Network(["p", "q", "r", "s"])
DIRECTED = Network(3, directed=True, loops=True)

CASES = [
    queries.identity(DOMAIN),
    queries.cuboid(DOMAIN, "b", "a"),
    queries.cuboids(DOMAIN, [["a"], ["b", "d"], []], [1, 3, 2]),
    queries.all_cuboids(DOMAIN, up_to=2),
    queries.total(DOMAIN),
    queries.matrix(DOMAIN, np.arange(24).reshape(2, 12) - 7),
    queries.matrix(DOMAIN, [[Fraction(1, 2)] * 12, [Fraction(i, 3) for i in range(12)]]),
    queries.ranges(DOMAIN, [(0, 1), (2, 2)], "b"),
    queries.prefix(DOMAIN, "b"),
    queries.adjacency(NETWORK),
    queries.mixing(NETWORK, ["g", "h", "g", "h"]),
    queries.mixing(NETWORK, {"p": 1, "q": 1, "r": 2, "s": 3}),
    queries.mixing(DIRECTED, [0, 1, 0]),
]


@pytest.mark.parametrize("query", CASES, ids=repr)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_every_way_to_ask_agrees_with_the_matrix(query, data):
    size = query.domain.size
    matrix = query.columns(np.arange(size)).toarray()
    table = np.array(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)))
    assert (query.answer(table) == matrix @ table).all()
    assert matrix.shape == (query.height, size)
    u = np.array(data.draw(st.lists(st.integers(0, size - 1), min_size=3, max_size=3)))
    v = np.array(data.draw(st.lists(st.integers(0, size - 1), min_size=3, max_size=3)))
    gap = matrix[:, u] - matrix[:, v]
    assert query.pair_norms(u, v, "l1").tolist() == np.abs(gap).sum(axis=0).tolist()
    assert query.pair_norms(u, v, "l2").tolist() == (gap**2).sum(axis=0).tolist()
    assert query.column_norms(u, "l1").tolist() == np.abs(matrix[:, u]).sum(axis=0).tolist()
    assert query.column_norms(u, "l2").tolist() == (matrix[:, u] ** 2).sum(axis=0).tolist()
    change = {int(c): int(x) for c, x in zip(range(size), table - 4) if x}
    if change:
        moved = matrix[:, list(change)] @ np.array(list(change.values()))
        assert query.change_norm(change, "l1") == np.abs(moved).sum()
        assert query.change_norm(change, "l2") == (moved**2).sum()


@pytest.mark.parametrize("query", CASES, ids=repr)
def test_queries_round_trip_and_label_their_rows(query):
    again = queries.from_spec(query.domain, query.to_spec())
    assert isinstance(again, Query)
    assert again == query
    assert hash(again) == hash(query)
    for at, part in enumerate(query.parts):
        labels = query.part_labels(at)
        assert len(labels) == len(part.columns)
        assert all(len(column) == part.height for column in labels)


def test_cuboids_are_the_literal_ones():
    query = CASES[2]
    assert (
        query.columns(np.arange(12)).toarray().tolist()
        == query_rows(DOMAIN, [("a",), ("b", "d"), ()], [1, 3, 2]).tolist()
    )


def test_label_columns_name_the_cells():
    a, b = queries.cuboid(DOMAIN, "a", "b").part_labels(0)
    assert list(zip(a, b)) == [("x", 0), ("x", 1), ("x", 2), ("y", 0), ("y", 1), ("y", 2)]


def test_different_queries_have_different_fingerprints():
    prints = [query.fingerprint for query in CASES]
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize(
    "make",
    [
        lambda: queries.cuboids(DOMAIN, []),
        lambda: queries.cuboids(DOMAIN, [["a"], ["a"]]),
        lambda: queries.cuboids(DOMAIN, [["a"]], [0]),
        lambda: queries.cuboid(DOMAIN, "z"),
        lambda: queries.matrix(DOMAIN, [[1, 2]]),
        lambda: queries.matrix(DOMAIN, np.ones((1, 12))),
        lambda: queries.matrix(DOMAIN, [[0.5] * 12]),
        lambda: queries.matrix(DOMAIN, np.full((1, 12), 2**50)),
        lambda: queries.ranges(DOMAIN, [(0, 3)], "b"),
        lambda: queries.prefix(DOMAIN),
        lambda: queries.mixing(NETWORK, [1, 2]),
        lambda: queries.mixing(NETWORK, {"p": 1}),
        lambda: queries.from_spec(DOMAIN, {"adjacency": True}),
        lambda: CASES[0].check_domain(Domain({"a": 2})),
    ],
)
def test_bad_queries_are_errors(make):
    with pytest.raises(InputError):
        make()


AB, BA = Domain({"a": 2, "b": 3}), Domain({"b": 3, "a": 2})


@pytest.mark.parametrize(
    "make",
    [
        lambda d: pg.queries.matrix(d, [[1, 1, 0, 0, 0, 0]]),
        lambda d: pg.queries.boxes(d, [((0, 0), (1, 1))]),
        lambda d: pg.Policy(d, pg.PolicyGraph.from_edges(d, [(0, 1)])),
        lambda d: pg.Policy(d, pg.PolicyGraph.partition(d, [[0, 1], [2, 3, 4, 5]])),
        lambda d: pg.Policy(d, constraints=[pg.Cuboid("a", "b", equals=[1, 2, 3, 4, 5, 6])]),
    ],
    ids=["matrix", "boxes", "edges", "partition", "published table"],
)
def test_fingerprints_tell_numbered_cells_in_another_order_apart(make):
    assert make(AB).fingerprint != make(BA).fingerprint


@pytest.mark.parametrize(
    "make",
    [
        lambda d: pg.queries.cuboid(d, "a"),
        pg.Policy,
        lambda d: pg.Policy(d, pg.PolicyGraph.attribute(d)),
        lambda d: pg.Policy(d, pg.PolicyGraph.threshold(d, 1, "b")),
        lambda d: pg.Policy(d, pg.PolicyGraph.partition(d, {"a": [[0], [1]]})),
        lambda d: pg.Policy(
            d, constraints=[pg.Cuboid("b", equals=[1, 2, 3]), pg.Total(), pg.count({"a": [0]})]
        ),
        lambda d: pg.Policy(d, constraints=[pg.Cells(["a", "b"], [[0, 1]])]),
    ],
    ids=["cuboid", "no graph", "attribute", "threshold", "partition by name", "facts", "cells"],
)
def test_what_is_said_by_name_has_one_fingerprint_in_every_order(make):
    assert make(AB).fingerprint == make(BA).fingerprint


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_boxes_are_counted_by_running_sums_as_one_by_one(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    domain = pg.Domain({f"a{at}": n for at, n in enumerate(shape)})
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    ends = np.sort(rng.integers(0, shape, (2, data.draw(st.integers(1, 6)), len(shape))), axis=0)
    query = pg.queries.boxes(domain, ends.swapaxes(0, 1).tolist())
    # Enough pairs that running sums are less work than looking at each box.
    u, v = rng.integers(0, domain.size, (2, 10_000 * (domain.size + 1)))
    matrix = query.columns(np.arange(domain.size)).toarray()
    for norm in ("l1", "l2"):
        assert (query.pair_norms(u, v, norm) == np.abs(matrix[:, u] - matrix[:, v]).sum(axis=0)).all()
        assert (query.column_norms(u, norm) == matrix[:, u].sum(axis=0)).all()
        assert (query.pair_norms(u[:2], v[:2], norm) == query.pair_norms(u, v, norm)[:2]).all()


def test_boxes_on_a_large_grid_along_a_threshold_graph(monkeypatch):
    domain = pg.Domain({"x": 48, "y": 48})
    query = pg.queries.random_boxes(domain, 3_000)
    policy = pg.Policy(domain, pg.PolicyGraph.threshold(domain, 2))
    quick = pg.sensitivity(query, policy)
    monkeypatch.setattr(workloads, "MOST_SUMS", 0)
    slow = pg.sensitivity(query, policy)
    assert quick.exact
    assert (quick.value, quick.lower, quick.witness) == (slow.value, slow.lower, slow.witness)
