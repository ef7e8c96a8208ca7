"""Moves that the published values allow, against listing every table with these values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from policygraph.effort import Effort
from policygraph.errors import ConstraintError, InputError, RefusedError
from policygraph.moves.graver.basis import graver_basis
from policygraph.moves.values.longest import longest_with_values, moves_with_values, occurs, presolve_values
from tests.oracles import fibres, strengths


def margins(shape, cuboids):
    cells = list(product(*map(range, shape)))
    return np.array(
        [
            [int(tuple(x[i] for i in c) == v) for x in cells]
            for c in cuboids
            for v in product(*(range(shape[i]) for i in c))
        ]
    )


TABLES = [
    margins((2, 2), [(0,)]),
    margins((2, 2), [(0,), (1,)]),
    margins((2, 3), [(0,), (1,)]),
    margins((2, 2, 2), [(0,), (1,), (2,)]),
    margins((2, 2, 2), [(0, 1), (1, 2)]),
    margins((2, 2, 2), [(0, 1), (1, 2), (0, 2)]),
    np.array([[1, 1, 1, 1], [0, 1, 2, 3]]),
    np.array([[1, 2, 3, 1], [2, 1, 0, 1]]),
    np.array([[1, -1, 0, 1], [1, 1, 1, 1]]),
    np.array([[2, 3, 5]]),
]


@st.composite
def published(draw):
    """A matrix, values of a small table (some not told), a capacity, and a complete list of the tables."""
    matrix = draw(st.sampled_from(TABLES))
    cells = matrix.shape[1]
    capacity = draw(st.sampled_from([None, None, 1, 2]))
    largest = capacity or (2 if cells > 6 else 4)
    table = draw(st.lists(st.sampled_from([0, 0, 0, 1, min(2, largest)]), min_size=cells, max_size=cells))
    hidden = draw(st.sets(st.integers(0, len(matrix) - 1), max_size=1))
    values = [None if i in hidden else int(b) for i, b in enumerate(matrix @ np.array(table))]
    bounds = presolve_values(matrix, values, capacity)
    # the listing is complete only when the values bound every cell
    assume(all(u is not None and u <= largest for u in bounds.upper))
    return matrix, values, capacity, table, fibres.tables(matrix.tolist(), values, largest, cells)


def differences(matrix, listed):
    return [(a, [q - p for p, q in zip(a, b)]) for a, b in fibres.neighbour_pairs(matrix.tolist(), listed)]


@settings(max_examples=120, deadline=None)
@given(published())
def test_presolve_bounds_every_table(case):
    matrix, values, capacity, table, listed = case
    bounds = presolve_values(matrix, values, capacity)
    assert tuple(table) in listed
    for x in listed:
        assert all(low <= v <= u for low, v, u in zip(bounds.lower, x, bounds.upper))
    moving = {j for a in listed[:1] for b in listed for j in range(len(a)) if a[j] != b[j]}
    assert moving <= set(bounds.kept)


@settings(max_examples=60, deadline=None)
@given(published())
def test_a_move_occurs_exactly_when_a_listed_table_allows_it(case):
    matrix, values, capacity, _, listed = case
    members = set(listed)
    for g in graver_basis(matrix).tolist():
        wanted = any(tuple(x + v for x, v in zip(table, g)) in members for table in listed)
        found = occurs(matrix, values, g, capacity)
        assert found.status == ("yes" if wanted else "no")
        if found.table is not None:
            assert found.table in members
            assert tuple(x + v for x, v in zip(found.table, g)) in members


@settings(max_examples=80, deadline=None)
@given(published(), st.lists(st.integers(-1, 2), min_size=16, max_size=16))
def test_longest_is_that_of_all_neighbouring_tables(case, weights):
    matrix, values, capacity, _, listed = case
    cells = matrix.shape[1]
    pairs = differences(matrix, listed)
    members = set(listed)
    for query, norm in ((None, "l1"), (None, "l2"), ([weights[:cells], weights[-cells:]], "l1")):
        wanted = max((strengths.weight(query, g, norm) for _, g in pairs), default=0)
        for moves in (None, graver_basis(matrix)):
            found = longest_with_values(matrix, values, moves, query, norm, capacity=capacity)
            assert (found.lower, found.upper) == (wanted, wanted)
            if found.witness is not None:
                table, move = found.witness
                assert table in members
                assert tuple(x + v for x, v in zip(table, move)) in members
                assert strengths.weight(query, move, norm) == wanted


@settings(max_examples=40, deadline=None)
@given(published(), st.sampled_from(["markov", "positive"]), st.sampled_from([None, 1, 2]))
def test_weaker_strengths_and_a_cap_on_listed_tables(case, strength, cap):
    matrix, values, capacity, _, listed = case
    assume(len(listed) <= 40)
    rows = matrix.tolist()
    wanted = 0
    for table, g in differences(matrix, listed):
        if cap is not None and max(sum(max(v, 0) for v in g), sum(max(-v, 0) for v in g)) > cap:
            continue
        holds = (
            strengths.is_markov(rows, g)
            if strength == "markov"
            else strengths.is_positive_pair(rows, table, g, capacity)
        )
        wanted = max(wanted, strengths.size(g) if holds else 0)
    found = longest_with_values(matrix, values, capacity=capacity, strength=strength, at_most_records=cap)
    assert (found.lower, found.upper) == (wanted, wanted)


@settings(max_examples=60, deadline=None)
@given(published())
@example(
    (TABLES[3], [0, 2, 1, 1, 2, 0], None, None, fibres.tables(TABLES[3].tolist(), [0, 2, 1, 1, 2, 0], 2, 8))
)
def test_listed_moves_are_minimal_and_hold_every_neighbour_pair(case):
    matrix, values, capacity, _, listed = case
    found = {tuple(g) for g in moves_with_values(matrix, values, capacity).tolist()}
    assert all(strengths.is_minimal(matrix.tolist(), g) for g in found)
    for _, g in differences(matrix, listed):
        assert tuple(g) in found or tuple(-v for v in g) in found


def test_large_values_change_nothing_and_small_ones_lower_the_answer():
    matrix = margins((2, 2, 2), [(0,), (1,), (2,)])
    enough = (matrix @ np.full(8, 5)).tolist()
    assert longest_with_values(matrix, enough).upper == 6
    assert longest_with_values(matrix, [1, 1, 1, 1, 1, 1]).upper == 4
    assert longest_with_values(matrix, [0, 2, 1, 1, 1, 1]).upper == 4
    assert longest_with_values(matrix, [0, 2, 0, 2, 1, 1]).upper == 0


def test_zero_margin_of_a_3x3_table_leaves_a_2x3_table():
    matrix = margins((3, 3), [(0,), (1,)])
    assert longest_with_values(matrix, [3, 3, 3, 3, 3, 3]).upper == 6
    bounds = presolve_values(matrix, [0, 4, 5, 3, 3, 3])
    assert bounds.kept == (3, 4, 5, 6, 7, 8)
    assert bounds.upper[:3] == (0, 0, 0)
    assert longest_with_values(matrix, [0, 4, 5, 3, 3, 3]).upper == 4


def test_an_untold_value_may_be_anything():
    matrix = margins((2, 3), [(0,), (1,)])
    assert longest_with_values(matrix, [0, 3, 1, 1, 1]).upper == 0
    assert longest_with_values(matrix, [None, 3, 1, 1, 1]).upper == 0
    assert longest_with_values(matrix, [None, None, 1, 1, 1]).upper == 4


def test_values_that_no_table_has_are_refused():
    matrix = margins((2, 2), [(0,), (1,)])
    with pytest.raises(ConstraintError) as error:
        longest_with_values(matrix, [1, 1, 5, 0])
    assert error.value.code == "values.infeasible"
    with pytest.raises(ConstraintError):
        longest_with_values([[2, 2, 2], [1, 1, 0]], [3, None])
    with pytest.raises(ConstraintError):
        longest_with_values(matrix, [3, 1, 2, 2], capacity=1)
    # parity: no bound of a single cell shows it, only the search does
    with pytest.raises(ConstraintError, match="No table"):
        longest_with_values([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [1, 1, 1])


def test_unlimited_cells_are_undecided_and_count():
    # x0 - x1 = 0 bounds nothing; the parity rows make the move impossible, which no bound proves
    matrix = [[1, -1, 0, 0], [0, 0, 1, 1]]
    found = occurs(matrix, [0, 1], [0, 0, 1, -1])
    assert found.status == "yes"
    odd = [[1, -1, 0], [1, 1, -2]]
    answer = occurs(odd, [1, 0], [1, 1, 1])
    assert answer.status == "unknown"
    assert answer.possible
    bracket = longest_with_values(odd, [1, 0], [[1, 1, 1]])
    assert (bracket.lower, bracket.upper, bracket.exact) == (0, 3, False)
    # one row alone shows it
    assert occurs([[2, -2, 0], [0, 0, 1]], [1, 0], [1, 1, 0]).status == "no"


def test_without_effort_the_bracket_stays_valid():
    matrix = margins((2, 3), [(0,), (1,)])
    values = [2, 2, 2, 1, 1]
    values = (matrix @ np.array([1, 1, 0, 1, 0, 1])).tolist()
    exact = longest_with_values(matrix, values)
    hurried = longest_with_values(matrix, values, graver_basis(matrix), effort=Effort(0))
    assert hurried.lower <= exact.lower == exact.upper <= hurried.upper
    refused = longest_with_values(matrix, values, effort=Effort(0))
    assert refused.method == "bound"
    assert exact.upper <= refused.upper


def test_no_limit_at_all_is_a_refusal():
    with pytest.raises(RefusedError):
        longest_with_values([[1, -1, 2]], [0], max_moves=0, effort=Effort(0))


def test_a_move_must_keep_the_rows_and_values_must_fit():
    with pytest.raises(InputError, match="not zero"):
        occurs([[1, 1]], [1], [1, 0])
    with pytest.raises(InputError, match="one for each row"):
        occurs([[1, 1]], [1, 1], [1, -1])
    with pytest.raises(InputError, match="expected an integer"):
        occurs([[1, 1]], [0.5], [1, -1])
    with pytest.raises(InputError, match="strength"):
        longest_with_values([[1, 1]], [1], strength="strong")


def test_moves_of_a_large_table_with_few_records_are_listed_without_a_graver_basis():
    # one-way margins of a 4x4x4 table: its Graver basis is out of reach, three records are not
    matrix = margins((4, 4, 4), [(0,), (1,), (2,)])
    table = np.zeros(64, dtype=int)
    table[[0, 21, 42]] = 1
    found = longest_with_values(matrix, (matrix @ table).tolist())
    assert (found.lower, found.upper) == (6, 6)
