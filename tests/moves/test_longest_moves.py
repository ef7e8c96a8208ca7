"""The longest minimal move: exact against lists, brackets that hold, bounds that are never too small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError
from policygraph.moves.graver import longest
from policygraph.moves.graver.basis import graver_basis, is_minimal
from policygraph.moves.graver.longest import cheap_bound, cycle_bound, longest_move, swap_problem
from tests.oracles import cycles
from tests.oracles import graver as oracle

ONE_WAY = [(0,), (1,), (2,)]
TWO_WAY = [(0, 1), (1, 2), (0, 2)]

matrices = st.integers(1, 6).flatmap(
    lambda n: st.lists(st.lists(st.integers(-1, 2), min_size=n, max_size=n), min_size=0, max_size=3).map(
        lambda rows: np.array(rows, dtype=np.int64).reshape(len(rows), n)
    )
)
binary = st.integers(2, 7).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 1), min_size=n, max_size=n), min_size=1, max_size=4).map(
        lambda rows: np.array([*rows, [1] * n], dtype=np.int64)
    )
)


@settings(max_examples=120, deadline=None)
@given(st.one_of(matrices, binary), st.sampled_from([None, 0, 1, 2]))
def test_longest_is_the_longest_of_the_list(matrix, capacity):
    moves = graver_basis(matrix, capacity=capacity)
    expected = int(np.abs(moves).sum(axis=1).max(initial=0))
    bracket = longest_move(matrix, capacity=capacity)
    assert (bracket.lower, bracket.upper, bracket.exact) == (expected, expected, True)
    assert np.abs(bracket.witness).sum() == expected
    assert expected == 0 or is_minimal(matrix, bracket.witness, capacity)


@settings(max_examples=80, deadline=None)
@given(st.one_of(matrices, binary), st.integers(0, 2**32), st.sampled_from(["l1", "l2squared"]))
def test_longest_image_under_a_query(matrix, seed, norm):
    query = np.random.default_rng(seed).integers(-2, 3, size=(2, matrix.shape[1]))
    images = graver_basis(matrix) @ query.T
    sizes = (np.abs(images) if norm == "l1" else images**2).sum(axis=1)
    bracket = longest_move(matrix, query=query, norm=norm)
    assert bracket.exact
    assert bracket.lower == sizes.max(initial=0)


@settings(max_examples=120, deadline=None)
@given(st.one_of(matrices, binary), st.integers(0, 2**32))
def test_bounds_hold(matrix, seed):
    moves = graver_basis(matrix)
    longest = int(np.abs(moves).sum(axis=1).max(initial=0))
    assert cheap_bound(matrix) >= longest
    assert cheap_bound(matrix, capacity=1) >= np.abs(graver_basis(matrix, capacity=1)).sum(axis=1).max(
        initial=0
    )
    swaps = swap_problem(matrix)
    if swaps is not None:
        sequences = graver_basis(swaps.matrix)
        assert 2 * max(2, int(np.abs(sequences).sum(axis=1).max(initial=0))) >= longest
        for column, places in zip(swaps.matrix.T, swaps.places):
            for x, y in places:
                assert swaps.owner[x] == swaps.owner[y]
                assert np.array_equal(matrix[:, y] - matrix[:, x], column)


@settings(max_examples=40, deadline=None)
@given(st.one_of(matrices, binary), st.integers(0, 2**32))
def test_brackets_without_effort_hold(matrix, seed):
    query = np.random.default_rng(seed).integers(-2, 3, size=(2, matrix.shape[1]))
    for measure, norm in ((None, "l1"), (query, "l1"), (query, "l2squared")):
        truth = longest_move(matrix, query=measure, norm=norm)
        bracket = longest_move(matrix, query=measure, norm=norm, effort=Effort(0))
        assert bracket.lower <= truth.lower
        assert bracket.upper is None or bracket.upper >= truth.lower
        assert not np.any(bracket.witness) or is_minimal(matrix, bracket.witness)


@pytest.mark.parametrize(
    ("shape", "cuboids", "value"),
    [
        ((2, 2), [(0,)], 2),
        ((3, 4), [(0,), (1,)], 6),
        ((2, 3, 2), [(0, 1), (1, 2)], 4),
        ((2, 2, 2), ONE_WAY, 6),
        ((2, 2, 3), ONE_WAY, 8),
        ((2, 2, 5), ONE_WAY, 8),
        ((2, 2, 40), ONE_WAY, 8),
        ((2, 3, 3), ONE_WAY, 12),
        ((2, 3, 4), ONE_WAY, 16),
        ((2, 3, 12), ONE_WAY, 16),
        ((2, 2, 2), TWO_WAY, 8),
        ((3, 3, 2), TWO_WAY, 12),
        ((3, 3, 3), TWO_WAY, 24),
        ((2, 2, 2, 2), [(0,), (1,), (2,), (3,)], 10),
        ((2, 2, 2, 2), [(0, 1), (2, 3)], 8),
        ((2, 2, 2, 2), [(0, 1), (1, 2), (2, 3)], 10),
        ((2, 1, 3), ONE_WAY, 4),
        ((1, 1), [(0,)], 0),
        ((2, 2), [], 1),
    ],
    ids=lambda value: str(value).replace(" ", ""),
)
def test_checked_sensitivities(shape, cuboids, value):
    matrix = oracle.margins(shape, cuboids)
    bracket = longest_move(matrix)
    assert bracket.exact
    assert bracket.lower == value
    assert value == 0 or is_minimal(matrix, bracket.witness)


@pytest.mark.slow
def test_three_ternary_attributes_with_one_way_margins():
    matrix = oracle.margins((3, 3, 3), ONE_WAY)
    bracket = longest_move(matrix)
    assert (bracket.lower, bracket.upper) == (18, 18)
    assert is_minimal(matrix, bracket.witness)


@pytest.mark.slow
def test_an_effort_is_kept_and_the_bracket_holds():
    matrix = oracle.margins((4, 4, 4), TWO_WAY)
    effort = Effort(3 * SECOND)
    bracket = longest_move(matrix, effort=effort)
    assert effort.spent < 4 * SECOND
    assert bracket.lower >= 8  # a swap of two records inside the table
    again = longest_move(matrix, effort=Effort(3 * SECOND))
    assert np.array_equal(again.witness, bracket.witness)
    assert (again.lower, again.upper) == (bracket.lower, bracket.upper)
    assert is_minimal(matrix, bracket.witness)


def test_weights_and_bad_input():
    bracket = longest_move([[1, 1, 1]], weights=[1, 5, 7])
    assert (bracket.lower, bracket.upper) == (12, 12)
    with pytest.raises(InputError):
        longest_move([[1, 1]], weights=[1, 1], query=[[1, 1]])
    with pytest.raises(InputError):
        longest_move([[1, 1]], query=[[1, 1, 1]])
    with pytest.raises(InputError):
        longest_move([[1, 1]], norm="l3")


@pytest.mark.parametrize(("c", "longest"), [(1, 2), (2, 4), (3, 8), (4, 12)])
def test_cycle_bound_beside_all_valued_arcs(c, longest):
    matrix = np.array(cycles.valued_arcs(c), dtype=np.int64).T
    found = max(2, int(np.abs(graver_basis(matrix)).sum(axis=1).max(initial=0)))
    assert found == longest == cycle_bound(matrix)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 5).flatmap(
        lambda c: st.lists(st.sampled_from(cycles.valued_arcs(c)), min_size=2, max_size=11)
    )
)
def test_cycle_bound_holds_for_some_valued_arcs(columns):
    matrix = np.array(columns, dtype=np.int64).T
    assert cycle_bound(matrix) >= np.abs(graver_basis(matrix)).sum(axis=1).max(initial=0)


@pytest.mark.parametrize(
    "matrix", [[[2, -2, 0], [1, 1, 2]], [[1, 1, 1], [1, -1, 0], [0, 1, 1]], [[1, 0], [1, -1], [1, -1]]]
)
def test_other_matrices_have_no_cycle_bound(matrix):
    assert cycle_bound(matrix) is None


def test_one_way_margins_beside_a_binary_attribute():
    """2 x 7 x 5: swaps of sex and one of five values, inside seven classes."""
    bracket = longest_move(oracle.margins((2, 7, 5), ONE_WAY), effort=Effort(SECOND))
    assert (bracket.upper, bracket.method) == (36, "cycles")
    assert 4 <= bracket.lower <= 36


@pytest.mark.parametrize("top", [3, 2**40, 2**70])
@pytest.mark.parametrize("norm", ["l1", "l2squared"])
def test_sizes_of_moves_are_the_norms_of_their_images(top, norm):
    rng = np.random.default_rng(5)
    query = rng.integers(-3, 4, (4, 7)).astype(object) * top
    moves = rng.integers(-2, 3, (9, 7))
    moves[:, 3] = 0
    measure = longest._measure(7, None, query, norm)
    of = (lambda v: sum(map(abs, v))) if norm == "l1" else (lambda v: sum(x * x for x in v))
    expected = [of([sum(q * int(g) for q, g in zip(row, move)) for row in query.tolist()]) for move in moves]
    assert [int(size) for size in measure._sizes(moves)] == expected
    assert int(measure.largest(moves)) == expected.index(max(expected))
    steps = max(of(column) for column in query.T.tolist())
    assert measure.bound(5, None, 7) == (5 * steps if norm == "l1" else 25 * steps)
