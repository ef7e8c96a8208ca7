"""Sequences of valued arcs without a smaller zero sum: the bound, and what attains it, against lists of all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph import queries
from policygraph.effort import SECOND, Effort
from policygraph.moves.arcs import arc_sequence, longest_arcs
from policygraph.moves.blowfish.minimal import block_bound, differences, length_bound
from policygraph.moves.graver.basis import graver_basis
from policygraph.moves.graver.minimal import is_minimal
from tests.oracles import cycles


def matrix_of(vertices, arcs):
    """One column for each arc: a row of values, and a row for each vertex."""
    matrix = np.zeros((vertices + 1, len(arcs)), dtype=np.int64)
    for at, (tail, head, value) in enumerate(arcs):
        matrix[0, at] = value
        matrix[1 + tail, at] -= 1
        matrix[1 + head, at] += 1
    return matrix


@pytest.mark.parametrize(("vertices", "most"), [(1, 1), (1, 4), (2, 1), (2, 2), (2, 3), (3, 1), (4, 1)])
def test_all_sequences(vertices, most):
    matrix = np.array(cycles.valued_arcs(vertices, most), dtype=np.int64).T
    found = max(2, int(np.abs(graver_basis(matrix)).sum(axis=1).max(initial=0)))
    assert found <= longest_arcs(vertices, -most, most)
    if most == 1:
        assert found == longest_arcs(vertices, -1, 1)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 6), st.integers(0, 3), st.integers(1, 3), st.data())
def test_some_directed_arcs(vertices, low, high, data):
    """Values from -low to high, each arc in one direction only: what is listed has no opposite arcs."""
    arc = st.tuples(
        st.integers(0, vertices - 1), st.integers(0, vertices - 1), st.integers(-low, high)
    ).filter(lambda a: a[0] != a[1] or a[2])
    chosen = data.draw(st.lists(arc, min_size=1, max_size=vertices + 3, unique=True))
    moves = graver_basis(matrix_of(vertices, chosen))
    one_way = moves[np.all(moves >= 0, axis=1) | np.all(moves <= 0, axis=1)]
    assert np.abs(one_way).sum(axis=1).max(initial=0) <= longest_arcs(vertices, -low, high)


@pytest.mark.parametrize("vertices", range(1, 10))
def test_the_longest_sequence(vertices):
    arcs = arc_sequence(vertices)
    times = np.array([number for *_, number in arcs])
    matrix = matrix_of(vertices, [arc[:3] for arc in arcs])
    assert int(times.sum()) == longest_arcs(vertices, -1, 1)
    assert len(arcs) == vertices + 1 == len(set(arcs))
    assert not np.any(matrix @ times)
    assert is_minimal(matrix, times)


@pytest.mark.parametrize("shape", [(2, 2, 3), (2, 3, 4), (4, 2, 3), (5, 6, 2), (2, 7, 5), (2, 30, 40)])
def test_one_way_margins_beside_a_binary_one(shape):
    domain = pg.Domain(dict(zip("abc", shape, strict=True)))
    policy = pg.Policy(domain, None, [pg.Cuboid(name) for name in "abc"])
    found = pg.sensitivity(queries.identity(domain), policy)
    c = sorted(shape)[1]
    assert (found.power, found.exact) == (4 * ((c + 1) ** 2 // 4), True)
    if domain.size < 100:
        report = found.verify()
        assert report.ok, str(report)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3, 2), (4, 2, 2)])
@pytest.mark.parametrize("asked", [["ab"], ["abc"], ["ab", "bc", "abc"]])
def test_margins_beside_a_binary_one_against_all_moves(shape, norm, asked):
    """Attributes merged, or outside the margins, and other tables: the closed form is never below the list of moves."""
    domain = pg.Domain(dict(zip("abc", shape, strict=True)))
    policy = pg.Policy(domain, None, [pg.Cuboid(name) for name in "abc"])
    query = queries.cuboids(domain, [list(names) for names in asked])
    grid = np.indices(shape).reshape(3, -1)
    rows = np.concatenate([grid[axis] == np.arange(n)[:, None] for axis, n in enumerate(shape)]).astype(int)
    images = graver_basis(rows) @ query.columns(np.arange(domain.size)).toarray().T
    truth = (np.abs(images) if norm == "l1" else images**2).sum(axis=1).max()
    found = pg.sensitivity(query, policy, norm=norm)
    assert found.lower_power <= truth <= found.power
    assert not found.verify().failed


def test_the_binary_margin_may_be_merged_and_attributes_may_be_free():
    domain = pg.Domain({"a": 2, "b": 2, "c": 2, "d": 2, "e": 3})
    policy = pg.Policy(domain, None, [pg.Cuboid("a"), pg.Cuboid("b", "c"), pg.Cuboid("d")])
    found = pg.sensitivity(queries.identity(domain), policy)
    assert (found.power, found.exact) == (8, True)
    assert not found.verify().failed


def steps_of(*sizes):
    """Differences between the cells of a table in its one-way margins."""
    cells = np.indices(sizes).reshape(len(sizes), -1).T.tolist()
    return differences(
        [tuple(int(v == i) for v, n in zip(cell, sizes) for i in range(n - 1)) for cell in cells]
    )


@pytest.mark.parametrize(
    ("sizes", "longest"), [((2, 2), 4), ((2, 3), 8), ((2, 4), 12), ((2, 6), 24), ((2, 2, 2), 10)]
)
def test_length_of_minimal_multisets(sizes, longest):
    assert block_bound(steps_of(*sizes), Effort(SECOND))[0] == longest


def test_full_graph_beside_two_margins():
    """3 x 3: at most 15 records change (all 112,574 minimal multisets up to sign), where one coordinate after the other says 128."""
    assert length_bound(steps_of(3, 3))[0] == 128
    domain = pg.Domain({"a": 2, "b": 5})
    policy = pg.Policy(domain, pg.PolicyGraph.full(domain), [pg.Cuboid("a"), pg.Cuboid("b")])
    found = pg.sensitivity(queries.identity(domain), policy, effort=SECOND)
    assert found.lower_power <= found.power <= 36
