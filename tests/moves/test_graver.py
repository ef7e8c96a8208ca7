"""The minimal moves of integer matrices: definition, an independent program, known values, limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.effort import Effort
from policygraph.errors import InputError, RefusedError
from policygraph.linalg import (
    column_classes,
    independent_rows,
    kernel_basis,
    pivoted_kernel,
    rank,
)
from policygraph.moves.graver import lift as graver_lift
from policygraph.moves.graver import minimal as graver_minimal
from policygraph.moves.graver import symmetries
from policygraph.moves.graver.basis import (
    IncompleteBasisError,
    decompose,
    find_smaller,
    graver_basis,
    is_minimal,
)
from policygraph.moves.graver.symmetries import check_symmetries, find_symmetries, list_group
from tests.oracles import fourti2
from tests.oracles import graver as oracle

ONE_WAY = [(0,), (1,), (2,)]
TWO_WAY = [(0, 1), (1, 2), (0, 2)]


def tuples(moves):
    return [tuple(move) for move in moves.tolist()]


matrices = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(st.integers(-2, 2), min_size=n, max_size=n), min_size=0, max_size=3).map(
        lambda rows: np.array(rows, dtype=np.int64).reshape(len(rows), n)
    )
)


@settings(max_examples=150, deadline=None)
@given(matrices, st.integers(0, 3))
def test_capped_basis_is_the_definition(matrix, box):
    moves = tuples(graver_basis(matrix, capacity=box))
    assert len(moves) == len(set(moves))
    assert set(moves) == oracle.minimal_moves(matrix, box)


@settings(max_examples=80, deadline=None)
@given(matrices, st.integers(0, 6))
def test_norm_cut_is_a_part_of_the_whole(matrix, norm):
    moves = graver_basis(matrix)
    assert np.array_equal(graver_basis(matrix, max_norm=norm), moves[np.abs(moves).sum(axis=1) <= norm])


@settings(max_examples=60, deadline=None)
@given(matrices)
def test_whole_basis_holds_the_capped_one_and_is_minimal(matrix):
    moves = graver_basis(matrix)
    assert {g for g in tuples(moves) if max(map(abs, g)) <= 2} == oracle.minimal_moves(matrix, 2)
    assert all(is_minimal(matrix, move) for move in moves)


@pytest.mark.skipif(fourti2.PROGRAM is None, reason=fourti2.MISSING)
@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda n: st.lists(st.lists(st.integers(-2, 3), min_size=n, max_size=n), min_size=2, max_size=4)
    )
)
def test_whole_basis_against_4ti2(rows):
    matrix = np.array(rows, dtype=np.int64)
    theirs = fourti2.graver(matrix, timeout=2)
    if theirs is not None and len(theirs) < 400:
        assert set(tuples(graver_basis(matrix))) == fourti2.signed_set(theirs)


@pytest.mark.parametrize(
    ("shape", "cuboids", "norm", "count"),
    [
        ((2, 2), [(0,)], 2, None),
        ((3, 4), [(0,), (1,)], 6, None),
        ((2, 3, 2), [(0, 1), (1, 2)], 4, None),
        ((2, 2, 2), ONE_WAY, 6, None),
        ((2, 2, 3), ONE_WAY, 8, None),
        ((2, 2, 4), ONE_WAY, 8, None),
        ((2, 3, 3), ONE_WAY, 12, 2352),
        ((2, 2, 2, 2), [(0,), (1,), (2,), (3,)], 10, 1588),
        ((2, 2, 2), TWO_WAY, 8, 1),
        ((3, 3, 2), TWO_WAY, 12, None),
        ((3, 3, 3), TWO_WAY, 24, 795),
        ((2, 2, 2, 2), [(0, 1), (2, 3)], 8, None),
        ((2, 2, 2, 2), [(0, 1), (1, 2), (2, 3)], 10, None),
    ],
    ids=lambda value: str(value).replace(" ", ""),
)
def test_checked_values(shape, cuboids, norm, count):
    matrix = oracle.margins(shape, cuboids)
    moves = graver_basis(matrix, symmetries=oracle.table_symmetries(shape, cuboids))
    assert not np.any(matrix @ moves.T)
    assert np.abs(moves).sum(axis=1).max() == norm
    assert count is None or len(moves) == count


@pytest.mark.parametrize(
    ("shape", "cuboids"),
    [((2, 2, 2), ONE_WAY), ((2, 2, 3), ONE_WAY), ((3, 3, 2), TWO_WAY), ((3, 3), [(0,), (1,)])],
)
def test_symmetries_change_nothing(shape, cuboids):
    matrix = oracle.margins(shape, cuboids)
    plain = graver_basis(matrix, symmetries=[])
    assert np.array_equal(plain, graver_basis(matrix))
    assert np.array_equal(plain, graver_basis(matrix, symmetries=oracle.table_symmetries(shape, cuboids)))


@pytest.mark.skipif(fourti2.PROGRAM is None, reason=fourti2.MISSING)
@pytest.mark.parametrize(
    ("shape", "cuboids"),
    [
        ((2, 2, 3), []),
        ((2, 2, 3), [()]),
        ((2, 2, 3), [(0,), (1, 2)]),
        ((2, 3, 3), [(0, 1), (2,)]),
        ((2, 3, 3), [(0, 1), (1, 2)]),
        ((2, 2, 2, 2), [(0, 1), (1, 2), (2, 3), (0, 3)]),
        ((2, 2, 2, 2), [(0, 1, 2), (3,)]),
        ((2, 2, 2, 2), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
        ((2, 2, 2, 3), [(0, 1, 2), (2, 3)]),
    ],
    ids=lambda value: str(value).replace(" ", ""),
)
def test_sets_of_cuboids_against_4ti2(shape, cuboids):
    matrix = oracle.margins(shape, cuboids)
    theirs = fourti2.graver(matrix)
    assert theirs is not None
    assert set(tuples(graver_basis(matrix))) == fourti2.signed_set(theirs)


@pytest.mark.parametrize(
    ("shape", "cuboids", "order"),
    [
        ((2, 3, 3), ONE_WAY, 144),
        ((2, 2, 2), TWO_WAY, None),
        ((3, 3), [(0,), (1,)], 72),
        ((2, 2, 3), ONE_WAY, 48),
    ],
)
def test_found_symmetries_form_the_group_of_the_table(shape, cuboids, order):
    matrix = oracle.margins(shape, cuboids)
    found = find_symmetries(matrix)
    assert np.array_equal(check_symmetries(matrix, found), found)
    group = {tuple(p) for p in list_group(found, 10**5).tolist()}
    for generator in oracle.table_symmetries(shape, cuboids).tolist():
        assert tuple(generator) in group
    assert order is None or len(group) == order
    for p, q in itertools.product(list(group)[:20], repeat=2):
        assert tuple(p[x] for x in q) in group
    assert {tuple(p) for p in list_group(found, 10).tolist()} <= group


def test_symmetries_of_a_large_kernel_are_the_same(monkeypatch):
    matrix = oracle.margins((2, 3, 2), [(0,), (1, 2)])
    dense = find_symmetries(matrix)
    monkeypatch.setattr(symmetries, "SPARSE", 0)
    assert np.array_equal(find_symmetries(matrix), dense)
    assert np.array_equal(check_symmetries(matrix, dense), dense)
    with pytest.raises(InputError, match="does not keep the row space"):
        check_symmetries(matrix, [[1, 0, *range(2, 12)]])


def test_compiled_and_plain_levels_agree(monkeypatch):
    matrices = [
        oracle.margins((2, 2, 3), ONE_WAY),
        np.array([[1, 2, 3, 5, 7]]),
        np.array([[3, -2, 0, 4, 1], [1, 1, 2, 0, 5]]),
    ]
    for matrix in matrices:
        for capacity in (None, 1, 2):
            monkeypatch.setattr(graver_lift, "COMPILED_FROM", 10**9)
            plain = graver_basis(matrix, capacity=capacity)
            monkeypatch.setattr(graver_lift, "COMPILED_FROM", 0)
            assert np.array_equal(plain, graver_basis(matrix, capacity=capacity))


def test_more_than_64_columns(monkeypatch):
    # 70 distinct columns (1, k): differences of two pairs with equal sums; small entries by capacity.
    monkeypatch.setattr(graver_lift, "COMPILED_FROM", 0)
    path = np.zeros((35, 70), dtype=np.int64)
    for k in range(35):
        path[k, 2 * k : 2 * k + 2] = (1, -k - 1)
    moves = graver_basis(path)
    assert len(moves) == 35
    assert is_minimal(path, moves[-1])


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (np.zeros((0, 3), dtype=int), {(1, 0, 0), (0, 1, 0), (0, 0, 1)}),
        (np.zeros((2, 2), dtype=int), {(1, 0), (0, 1)}),
        (np.zeros((0, 0), dtype=int), set()),
        ([[1]], set()),
        ([[2, 3]], {(3, -2)}),
        ([[1, 1, 0]], {(0, 0, 1), (1, -1, 0)}),
        ([[1, -1]], {(1, 1)}),
        ([[2, 2, 1]], {(1, -1, 0), (1, 0, -2), (0, 1, -2)}),
    ],
)
def test_degenerate_matrices(matrix, expected):
    assert set(tuples(graver_basis(matrix))) == expected


def test_huge_entries_do_not_wrap():
    big = 2**70
    assert graver_basis(np.array([[big, 2 * big]], dtype=object)).tolist() == [[2, -1]]
    with pytest.raises(IncompleteBasisError) as caught:
        graver_basis(np.array([[2**40 + 1, 2**41 + 3, 5]], dtype=object))
    assert caught.value.details["reason"] == "entries"


def test_limits_raise_and_carry_no_moves():
    matrix = oracle.margins((2, 3, 3), ONE_WAY)
    with pytest.raises(IncompleteBasisError) as caught:
        graver_basis(matrix, max_moves=100)
    assert caught.value.details == {"reason": "max_moves"}
    with pytest.raises(RefusedError):
        graver_basis(matrix, effort=Effort(0))


def test_bad_input():
    with pytest.raises(InputError):
        graver_basis([[0.5, 1.0]])
    with pytest.raises(InputError):
        graver_basis([1, 2])
    with pytest.raises(InputError):
        graver_basis([[1, 2]], capacity=-1)
    with pytest.raises(InputError, match="row space"):
        graver_basis([[1, 2]], symmetries=[[1, 0]])
    with pytest.raises(InputError, match="permutations"):
        graver_basis([[1, 2]], symmetries=[[0, 0]])
    with pytest.raises(InputError):
        find_smaller([[1, 2]], [1, 0])
    with pytest.raises(InputError):
        is_minimal([[1, 2]], [1, 0, 0])


small_moves = matrices.filter(lambda m: m.shape[0] > 0 and rank(m) < m.shape[1]).flatmap(
    lambda m: st.lists(st.integers(-3, 3), min_size=m.shape[1], max_size=m.shape[1]).map(
        lambda c: (m, np.array(c[: len(kernel_basis(m))], dtype=object) @ kernel_basis(m))
    )
)


@settings(max_examples=150, deadline=None)
@given(small_moves, st.booleans())
def test_smaller_moves_and_decompositions(case, solver):
    matrix, move = case
    move = np.clip(move, -60, 60)
    if np.any(matrix.astype(object) @ move):
        return
    limit = graver_minimal.HALF_LIMIT
    try:
        graver_minimal.HALF_LIMIT = 0 if solver else limit
        smaller = find_smaller(matrix, move)
        target = tuple(int(x) for x in move)
        listed = (
            [
                h
                for h in itertools.product(*(range(min(0, x), max(0, x) + 1) for x in target))
                if any(h) and h != target and not np.any(matrix @ np.array(h))
            ]
            if np.prod([abs(x) + 1 for x in target], dtype=float) < 20_000
            else None
        )
        if listed is not None:
            assert (smaller is not None) == bool(listed)
            assert smaller is None or tuple(smaller.tolist()) in listed
            assert is_minimal(matrix, move) == (any(target) and not listed)
        parts = decompose(matrix, move)
    finally:
        graver_minimal.HALF_LIMIT = limit
    assert np.array_equal(sum(parts, np.zeros(len(target), dtype=np.int64)), move)
    for part in parts:
        assert oracle.below(tuple(part.tolist()), target)
        assert is_minimal(matrix, part)


def test_long_support_is_settled_by_the_solver():
    # An alternating cycle through all rows and columns of a 24 x 24 table: 48 cells, 2^48 parts.
    size = 24
    rows = np.zeros((2 * size, 2 * size), dtype=np.int64)
    for k in range(size):
        rows[k, [2 * k, 2 * k + 1]] = 1
        rows[size + k, [2 * k + 1, (2 * k + 2) % (2 * size)]] = 1
    cycle = np.array([1, -1] * size)
    assert is_minimal(rows, cycle)
    assert not is_minimal(rows, 2 * cycle)
    double = np.zeros((4 * size, 4 * size), dtype=np.int64)
    double[: 2 * size, : 2 * size] = double[2 * size :, 2 * size :] = rows
    parts = decompose(double, np.concatenate([cycle, -3 * cycle]))
    assert len(parts) == 4


@settings(max_examples=100, deadline=None)
@given(matrices)
def test_kernel_lattice(matrix):
    basis = kernel_basis(matrix)
    assert len(basis) == matrix.shape[1] - rank(matrix)
    assert rank(matrix) == (np.linalg.matrix_rank(matrix) if matrix.size else 0)
    assert not np.any(matrix.astype(object) @ basis.T)
    assert rank(matrix[independent_rows(matrix)]) == rank(matrix)
    # Saturated: every kernel vector of a box is an integer combination, which the triangular basis shows.
    triangular, pivots = pivoted_kernel(matrix)
    for g in itertools.product(range(-2, 3), repeat=matrix.shape[1]):
        vector = np.array(g, dtype=object)
        if not np.any(matrix.astype(object) @ vector):
            for row, pivot in zip(triangular, pivots):
                assert vector[pivot] % row[pivot] == 0
                vector = vector - (vector[pivot] // row[pivot]) * row
            assert not np.any(vector)


def test_column_classes_gather_signs_and_zeros():
    classes = column_classes([[1, 0, -1, 2], [1, 0, -1, 0]])
    assert (classes.zero, classes.members, classes.signs) == ((1,), ((0, 2), (3,)), ((1, -1), (1,)))
