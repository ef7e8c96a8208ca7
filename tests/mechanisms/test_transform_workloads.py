"""Boxes as queries against their definition, and workloads through the transform."""

from __future__ import annotations

from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import policygraph as pg
from policygraph.errors import InputError
from policygraph.model.graphs import PolicyGraph
from tests.gate import noisy


def literal(query):
    """One row for each box, cell by cell."""
    rows = []
    for low, high in zip(query.low.tolist(), query.high.tolist()):
        cells = product(*(range(n) for n in query.domain.shape))
        rows.append([all(a <= c <= b for a, c, b in zip(low, cell, high)) for cell in cells])
    return np.array(rows, dtype=np.int64)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(0, 1000))
def test_boxes_are_sums_over_their_cells(shape, seed):
    domain = pg.Domain({f"x{i}": n for i, n in enumerate(shape)})
    query = pg.queries.random_boxes(domain, 7, seed=seed)
    rng = np.random.default_rng(seed)
    dense = literal(query)
    table = rng.integers(-9, 10, domain.size)
    assert np.array_equal(query.answer(table), dense @ table)
    cells = rng.integers(0, domain.size, 6)
    other = rng.integers(0, domain.size, 6)
    assert np.array_equal(query.columns(cells).toarray(), dense[:, cells])
    for norm in ("l1", "l2"):
        assert np.array_equal(query.column_norms(cells, norm), dense[:, cells].sum(axis=0))
        moved = np.abs(dense[:, cells] - dense[:, other]).sum(axis=0)
        assert np.array_equal(query.pair_norms(cells, other, norm), moved)
    assert pg.queries.from_spec(domain, query.to_spec()) == query
    assert len(query.part_labels(0)) == 2 * len(shape)


def test_all_ranges_are_implicit_and_named_shortly():
    domain = pg.Domain({"x": 6})
    query = pg.queries.all_ranges(domain)
    assert query.height == 21
    assert np.array_equal(query.answer(np.arange(6)), literal(query) @ np.arange(6))
    assert query.to_spec() == {"boxes": "all ranges", "name": "all ranges"}
    assert pg.queries.from_spec(domain, query.to_spec()) == query
    line = pg.Policy(domain, PolicyGraph.line(domain))
    steps = literal(query)
    assert pg.sensitivity(query, line).value == np.abs(np.diff(steps, axis=1)).sum(axis=0).max()


def test_labels_of_boxes_are_those_of_the_domain():
    query = pg.queries.rectangles(pg.Domain({"s": ["F", "M"], "x": 3}), [((0, 1), (1, 2))])
    assert [list(column) for column in query.part_labels(0)] == [["F"], ["M"], [1], [2]]
    assert query.parts[0].columns == ("first s", "last s", "first x", "last x")


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ([[0]], [[0]]),
        ([[0, 2]], [[0, 1]]),
        ([[0, 0]], [[0, 3]]),
        ([[-1, 0]], [[0, 0]]),
        ([[0.0, 0]], [[0, 0]]),
        ([], []),
    ],
)
def test_boxes_outside_the_domain_are_errors(low, high):
    with pytest.raises(InputError):
        pg.queries.BoxQuery(pg.Domain({"x": 2, "y": 3}), low, high)


def test_other_wrong_arguments_are_errors():
    square = pg.Domain({"x": 2, "y": 3})
    with pytest.raises(InputError):
        pg.queries.all_ranges(square)
    with pytest.raises(InputError):
        pg.queries.random_boxes(square, 0)
    with pytest.raises(InputError):
        pg.queries.boxes(square, [[0, 1]])
    with pytest.raises(InputError):
        pg.queries.BoxQuery(pg.Network(3), [[0]], [[0]])


def test_a_release_of_rectangles_has_the_noise_of_their_circumference():
    domain = pg.Domain({"x": 8, "y": 8})
    policy = pg.Policy(domain, PolicyGraph.grid(domain))
    query = pg.queries.rectangles(domain, [((2, 3), (4, 4)), ((0, 0), (7, 7)), ((0, 0), (0, 0))])
    ready = pg.TransformedLaplace(route="edges").calibrate(query, policy, pg.Epsilon(1))
    assert ready.squares.tolist() == [10, 0, 2]
    made = pg.release(query, policy, np.arange(64), epsilon=1, mechanism=pg.TransformedLaplace(route="edges"))
    assert made.values()[1] == np.arange(64).sum()


def test_node_pairs_of_a_network_have_a_transform_too():
    network = pg.Network(4)
    query = pg.queries.identity(network)
    policy = pg.Policy(network, PolicyGraph.from_edges(network, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]))
    ready = pg.TransformedLaplace().calibrate(query, policy, pg.Epsilon(1))
    assert noisy(ready, np.array([1, 0, 0, 1, 0, 0]), pg.SeededRng(1)).sum() == 2
    assert ready.squares.tolist() == [1, 2, 2, 2, 2, 1]
