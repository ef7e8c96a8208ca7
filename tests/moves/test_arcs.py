"""Sequences of valued arcs without a smaller zero sum: the bound, and what attains it, against lists of all of them."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph import queries
from policygraph.effort import SECOND, Effort
from policygraph.moves.arcs import LONGEST_SWAPS, SWAPS, arc_sequence, longest_arcs
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


def longest_of(first, allowed, useful):
    """Most vectors of a zero sum without a smaller one that holds a vector; the branching of blowfish-constraints.md, Theorem 2."""
    best = steps = 0
    stack = [(first, 1, frozenset(allowed), frozenset([first]))]
    while stack:
        total, length, left, parts = stack.pop()
        steps += 1
        for vector in useful(total):
            if vector not in left:
                continue
            left -= {vector}
            if total + vector == 0:
                best = max(best, length + 1)
            elif -vector not in parts:
                grown = parts | {vector} | {part + vector for part in parts}
                stack.append((total + vector, length + 1, left | {vector}, grown))
    return best, steps


def test_all_swaps_between_three_by_three_cells():
    """Theorem 3: swaps are numbers to the base 64, with the third coordinate of each half left out."""
    halves = [(0, 0), (1, -1), (-1, 1), (1, 0), (-1, 0), (0, 1), (0, -1)]
    vectors = {
        sum(x * 64**k for k, x in enumerate(one + two)): (one, two)
        for one in halves
        for two in halves
        if one != (0, 0) or two != (0, 0)
    }
    assert len(vectors) == 48

    def full(number):
        coordinates = []
        for _ in range(4):
            low = (number + 32) % 64 - 32
            coordinates.append(low)
            number = (number - low) // 64
        a, b, c, d = coordinates
        return np.array([a, b, -a - b, c, d, -c - d])

    @cache
    def useful(total):
        return [vector for vector in vectors if full(total) @ full(vector) < 0]

    mixed = [number for number, (one, two) in vectors.items() if one != (0, 0) != two]
    first = next(number for number in vectors if number not in mixed)
    assert longest_of(first, vectors, useful)[0] == 14
    assert longest_of(mixed[0], mixed, useful)[0] == LONGEST_SWAPS == 15


def test_the_longest_swaps_are_one_minimal_move():
    """Five cells of the third margin hold them; with fewer the bound stands."""
    columns = np.array([[x, y, u, v] for x, y, u, v, _ in SWAPS])
    times = np.array([number for *_, number in SWAPS])
    matrix = np.zeros((6, len(SWAPS)), dtype=np.int64)
    for at, (x, y, u, v) in enumerate(columns):
        for place, sign in ((x, -1), (y, 1), (3 + u, -1), (3 + v, 1)):
            matrix[place, at] += sign
    assert int(times.sum()) == LONGEST_SWAPS
    assert is_minimal(matrix, times)
    for shape, exact in (((3, 3, 5), True), ((9, 3, 3), True), ((3, 40, 3), True), ((3, 3, 4), False)):
        domain = pg.Domain(dict(zip("abc", shape, strict=True)))
        policy = pg.Policy(domain, None, [pg.Cuboid(name) for name in "abc"])
        found = pg.sensitivity(queries.identity(domain), policy, effort=100_000)
        assert (found.power, found.exact) == (30, exact)
        assert found.lower_power == 30 if exact else found.lower_power >= 16
        assert found.proof == {"kind": "theorem", "theorem": "ternary-margins"}
        assert found.verify().ok


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_margins_of_three_values_beside_other_tables(norm):
    domain = pg.Domain({"a": 3, "b": 3, "c": 5, "d": 2})
    policy = pg.Policy(domain, None, [pg.Cuboid(name) for name in "abc"])
    query = queries.cuboids(domain, [["a", "b"], ["c", "d"], ["a"]], [2, 1, 1])
    found = pg.sensitivity(query, policy, norm=norm, effort=100_000)
    assert found.power == (90 if norm == "l1" else 2 * 225 * 5)
    assert 0 < found.lower_power <= found.power
    assert found.verify().ok
