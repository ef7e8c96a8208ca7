"""The three strengths and the cap, against literal readings of their definitions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.effort import Effort
from policygraph.errors import InputError, RefusedError
from policygraph.moves.graver.basis import graver_basis
from policygraph.moves.strengths import capped as strengths_capped
from policygraph.moves.strengths.capped import capped_moves, longest_by_cuts, longest_capped
from policygraph.moves.strengths.columns import read_matrix, record_total
from policygraph.moves.strengths.markov import is_markov, longest_markov, markov_moves
from policygraph.moves.strengths.positive import is_positive, longest_positive, positive_moves, positive_table
from tests.oracles import strengths as oracle


def margins(shape, cuboids):
    cells = list(product(*map(range, shape)))
    return np.array(
        [
            [int(tuple(x[i] for i in c) == v) for x in cells]
            for c in cuboids
            for v in product(*(range(shape[i]) for i in c))
        ]
    )


def cell(shape, *labels):
    return int(np.ravel_multi_index([v - 1 for v in labels], shape))


def change(cells, removed, added):
    vector = [0] * cells
    for j in removed:
        vector[j] -= 1
    for j in added:
        vector[j] += 1
    return vector


def both_signs(rows):
    listed = [tuple(int(v) for v in row) for row in rows]
    both = set(listed) | {tuple(-v for v in row) for row in listed}
    assert len(both) == 2 * len(listed), "a move is listed twice, or with both signs"
    return both


@st.composite
def matrices(draw, cells=5, rows=3, least=-2, most=2):
    k = draw(st.integers(1, cells))
    low = draw(st.sampled_from([0, least]))
    body = draw(
        st.lists(
            st.lists(st.integers(low, most), min_size=k, max_size=k),
            min_size=1,
            max_size=rows,
        )
    )
    return [[1] * k, *body[1:]] if draw(st.booleans()) else body


small_queries = st.lists(st.integers(-1, 2), min_size=10, max_size=10)

# ---------------------------------------------------------------- Markov


@settings(max_examples=150, deadline=None)
@given(matrices(cells=6))
@example([[0, 1, 1]])
@example([[1, -1, 1, -1]])
@example([[1, 1, 1, 3]])
@example([[1, 2, -3, 6], [0, 0, 0, 0]])
def test_markov_moves_are_those_of_the_definition(matrix):
    cells = len(matrix[0])
    wanted = {g for g in oracle.minimal_up_to(matrix, cells, 4) if oracle.is_markov(matrix, g)}
    assert both_signs(markov_moves(matrix)) == wanted


@settings(max_examples=80, deadline=None)
@given(matrices(cells=6), small_queries, st.sampled_from(["l1", "l2"]), st.booleans())
def test_longest_markov_is_the_largest_listed(matrix, weights, norm, table):
    cells = len(matrix[0])
    query = None if table else [weights[:cells], weights[-cells:]]
    found = longest_markov(matrix, query, norm)
    listed = [oracle.weight(query, g, norm) for g in both_signs(markov_moves(matrix))]
    assert found.exact
    assert found.upper == max(listed, default=0)
    if found.witness is not None:
        table, move = found.witness
        assert oracle.is_markov(matrix, move)
        assert oracle.fits(table, move, None)
        assert oracle.weight(query, move, norm) == found.lower


def test_a_zero_capacity_has_no_moves():
    assert list(markov_moves([[1, 1]], capacity=0)) == []
    assert longest_markov([[1, 1]], capacity=0).upper == 0
    assert capped_moves([[1, 1]], 2, 0).tolist() == []


def test_markov_moves_of_a_large_table_need_no_graver_basis():
    matrix = margins((12, 10, 10), [(0,), (1,), (2,)])
    assert longest_markov(matrix).upper == 4
    query = margins((12, 10, 10), [(0, 1)])
    assert longest_markov(matrix, query).upper == 4
    assert next(markov_moves(matrix)).sum() == 0


def test_equal_columns_do_not_multiply_the_work():
    # 4,000 cells with only the total known: exchanges of one record, nothing longer
    found = longest_markov(np.ones((1, 4000), dtype=int))
    assert (found.lower, found.upper) == (2, 2)


def test_markov_without_effort_gives_a_bound_that_says_so():
    matrix = margins((5, 5), [(0,), (1,)])
    query = np.eye(25, dtype=int)[:5]
    found = longest_markov(matrix, query, effort=Effort(0))
    assert found.method == "bound"
    assert found.lower <= longest_markov(matrix, query).upper <= found.upper


def test_too_many_columns_give_the_bound_four(monkeypatch):
    monkeypatch.setattr("policygraph.moves.strengths.markov.MOST_PAIRS", 3)
    matrix = margins((3, 3), [(0,), (1,)])
    found = longest_markov(matrix)
    assert (found.lower, found.upper, found.method) == (0, 4, "bound")
    with pytest.raises(RefusedError) as error:
        list(markov_moves(matrix))
    assert error.value.code == "moves.too-many-columns"


# ---------------------------------------------------------------- positive


def moves_up_to(matrix, changes, most=8):
    return [g for g in graver_basis(matrix).tolist() if oracle.size(g) <= changes][-most:]


@settings(max_examples=60, deadline=None)
@given(matrices(least=-1, most=3), st.lists(st.integers(0, 1), min_size=5, max_size=5), st.booleans())
def test_is_positive_is_the_definition(matrix, more, bounded):
    for move in moves_up_to(matrix, 7):
        table = [max(0, -v) + more[j] for j, v in enumerate(move)]
        capacity = max(max(x, x + v) for x, v in zip(table, move)) if bounded else None
        positive, reason = is_positive(matrix, table, move, capacity=capacity)
        assert reason.proved
        assert positive == oracle.is_positive_pair(matrix, table, move, capacity)
        if not positive:
            assert oracle.size(reason.alternative) < oracle.size(move)
            assert oracle.in_kernel(matrix, reason.alternative)


@settings(max_examples=40, deadline=None)
@given(matrices(least=-1, most=3))
def test_positive_moves_by_basis_and_by_solver_are_the_definition_on_the_smallest_table(matrix):
    moves = moves_up_to(matrix, 7)
    assume(moves)
    wanted = []
    for g in moves:
        before, after = [max(0, -v) for v in g], [max(0, v) for v in g]
        back = [-v for v in g]
        if oracle.is_positive_pair(matrix, before, g) or oracle.is_positive_from(matrix, after, back):
            wanted.append(g)
    assert positive_moves(matrix, moves).tolist() == wanted
    assert positive_moves(matrix, moves, basis=graver_basis(matrix)).tolist() == wanted


def test_four_cycles_of_a_4x4_table_are_not_positive():
    shape = (4, 4)
    matrix = margins(shape, [(0,), (1,)])
    basis = graver_basis(matrix)
    sizes = np.abs(basis).sum(axis=1)
    kept = positive_moves(matrix, basis, basis=basis)
    assert kept.tolist() == basis[sizes <= 6].tolist()
    four = basis[sizes == 8][0]
    before = np.maximum(-four, 0)
    assert not oracle.is_positive_from(matrix.tolist(), before.tolist(), four.tolist())
    positive, reason = is_positive(matrix, before, four)
    assert not positive
    assert oracle.fits(before.tolist(), reason.alternative, None)
    assert positive_table(matrix, four).status == "no"


def test_a_shortest_alternative_may_be_two_moves():
    # cycle of six rows and columns plus the chords that allow two exchanges of two records each, far apart
    shape = (6, 6)
    diagonal = [(i, i) for i in range(6)]
    beside = [(i, (i + 1) % 6) for i in range(6)]
    chords = [((i + 1) % 6, i) for i in range(6)]
    kept = sorted(i * 6 + j for i, j in {*diagonal, *beside, *chords})
    matrix = margins(shape, [(0,), (1,)])[:, kept]
    move = np.zeros(36, dtype=int)
    for i, j in diagonal:
        move[i * 6 + j] = -1
    for i, j in beside:
        move[i * 6 + j] = 1
    move = move[kept]
    table = np.maximum(-move, 0)
    far = (kept.index(0), kept.index(3 * 6 + 4))
    shorter = oracle.alternatives(matrix.tolist(), table.tolist(), 8, most_added=4)
    exchanging = [m for m in shorter if m[far[0]] < 0 < m[far[1]]]
    assert exchanging
    assert not any(oracle.is_minimal(matrix.tolist(), m) for m in exchanging)
    basis = graver_basis(matrix)
    assert positive_moves(matrix, [move]).tolist() == []
    assert positive_moves(matrix, [move], basis=basis).tolist() == []


@settings(max_examples=40, deadline=None)
@given(matrices(cells=4, least=-1), st.integers(1, 2))
def test_positive_somewhere_under_a_capacity_is_listing_all_tables(matrix, capacity):
    cells = len(matrix[0])
    for move in [g for g in moves_up_to(matrix, 6) if max(map(abs, g)) <= capacity]:
        wanted = any(
            oracle.is_positive_pair(matrix, table, move, capacity)
            for table in product(range(capacity + 1), repeat=cells)
            if oracle.fits(table, move, capacity)
        )
        found = positive_table(matrix, move, capacity=capacity)
        assert found.status == ("yes" if wanted else "no")
        if found.table is not None:
            assert oracle.is_positive_pair(matrix, found.table, move, capacity)


def test_capacity_decides_positivity_by_the_other_cells():
    # removing one of two records of type a may need a free place; a full cell blocks the only shorter change
    matrix = [[1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5]]
    moves = [g for g in graver_basis(matrix).tolist() if max(map(abs, g)) <= 1 and oracle.size(g) == 6]
    for move in moves:
        wanted = any(
            oracle.is_positive_pair(matrix, table, move, 1)
            for table in product(range(2), repeat=6)
            if oracle.fits(table, move, 1)
        )
        assert positive_table(matrix, move, capacity=1).possible == wanted


def test_a_larger_table_only_allows_more_alternatives():
    matrix = margins((2, 2, 2), [(0,), (1,), (2,)]).tolist()
    move = max(graver_basis(matrix).tolist(), key=oracle.size)
    small = [max(0, -v) for v in move]
    most = oracle.size(move) - 1
    few = set(oracle.alternatives(matrix, small, most))
    for j in range(8):
        larger = list(small)
        larger[j] += 1
        assert few <= set(oracle.alternatives(matrix, larger, most))


def test_positive_without_effort_counts_and_says_so():
    matrix = margins((4, 4), [(0,), (1,)])
    four = graver_basis(matrix)[-1]
    positive, reason = is_positive(matrix, np.maximum(-four, 0), four, effort=Effort(0))
    assert positive
    assert not reason.proved
    found = longest_positive(matrix, [four], effort=Effort(0), basis=None)
    assert (found.lower, found.upper) == (0, 8)
    assert positive_table(matrix, four, effort=Effort(0)).status == "unknown"


# ---------------------------------------------------------------- the chain, and the worked examples

SHAPES = [
    ((2, 2), [(0,)]),
    ((2, 2), [(0,), (1,)]),
    ((2, 3), [(0,), (1,)]),
    ((3, 3), [(0,), (1,)]),
    ((2, 2, 2), [(0,), (1,), (2,)]),
    ((2, 2, 2), [(0, 1), (1, 2)]),
    ((2, 2, 2), [(0, 1), (1, 2), (0, 2)]),
    ((1, 3, 2), [(0, 1), (2,)]),
    ((2, 2, 3), [(0,), (1,), (2,)]),
]


@pytest.mark.parametrize(("shape", "cuboids"), SHAPES)
def test_markov_within_positive_within_worst_case(shape, cuboids):
    matrix = margins(shape, cuboids)
    worst = graver_basis(matrix)
    positive = both_signs(positive_moves(matrix, worst, basis=worst))
    markov = both_signs(markov_moves(matrix))
    assert markov <= positive <= both_signs(worst)
    for g in markov:
        # the total is known, so the definition itself makes Markov moves positive on every table
        before = [max(0, -v) for v in g]
        assert oracle.is_positive_from(matrix.tolist(), before, g)
        assert oracle.is_positive_from(matrix.tolist(), [x + 1 for x in before], g)


@settings(max_examples=60, deadline=None)
@given(matrices(cells=5, least=-1))
def test_the_chain_holds_for_any_matrix(matrix):
    worst = graver_basis(matrix)
    positive = both_signs(positive_moves(matrix, worst, basis=worst))
    assert both_signs(markov_moves(matrix)) <= positive <= both_signs(worst)


def test_without_a_known_total_the_bare_definition_would_not_hold_markov_moves():
    # ones of three binary attributes are counted, the total is not: 111, 001 -> 011, 101
    cells = [v for v in product(range(2), repeat=3) if any(v)]
    matrix = [[v[i] for v in cells] for i in range(3)]
    at = {"".join(map(str, v)): j for j, v in enumerate(cells)}
    move = change(7, [at["111"], at["001"]], [at["011"], at["101"]])
    table = change(7, [], [at["111"], at["001"], at["010"], at["100"]])
    assert oracle.is_markov(matrix, move)
    assert not oracle.is_positive_from(matrix, table, move)
    after = [x + v for x, v in zip(table, move)]
    assert not oracle.is_positive_from(matrix, after, [-v for v in move])
    assert is_positive(matrix, table, move)[0]


def test_the_bare_definition_depends_on_the_direction():
    cells = [v for v in product(range(2), repeat=3) if any(v)]
    matrix = [[v[i] for v in cells] for i in range(3)]
    at = {"".join(map(str, v)): j for j, v in enumerate(cells)}
    whole, parts = [at["111"]], [at["100"], at["010"], at["001"]]
    assert not oracle.is_positive_from(matrix, change(7, [], whole), change(7, whole, parts))
    assert oracle.is_positive_from(matrix, change(7, [], parts), change(7, parts, whole))


def test_example_three_cycle_with_a_forbidden_cell_is_worst_case_and_positive_but_not_markov():
    shape = (3, 3)
    kept = [j for j in range(9) if j != cell(shape, 1, 3)]
    matrix = margins(shape, [(0,), (1,)])[:, kept]
    move = change(
        9,
        [cell(shape, 1, 1), cell(shape, 2, 2), cell(shape, 3, 3)],
        [cell(shape, 1, 2), cell(shape, 2, 3), cell(shape, 3, 1)],
    )
    move = [move[j] for j in kept]
    assert oracle.is_minimal(matrix.tolist(), move)
    assert not is_markov(move)
    for extra in (0, 1, 2):
        table = [max(0, -v) + extra for v in move]
        assert oracle.is_positive_from(matrix.tolist(), table, move)
        assert is_positive(matrix, table, move)[0]


def test_example_three_records_with_three_margins_are_positive():
    shape = (3, 3, 3)
    matrix = margins(shape, [(0,), (1,), (2,)])
    old = [cell(shape, i, i, i) for i in (1, 2, 3)]
    new = [cell(shape, *v) for v in ((1, 2, 3), (2, 3, 1), (3, 1, 2))]
    move = change(27, old, new)
    table = np.maximum(-np.array(move), 0)
    positive, reason = is_positive(matrix, table, move)
    assert positive
    assert reason.proved
    assert not is_markov(move)
    # it is a property of the pair: with one record of each kind every exchange has a shorter change
    assert not is_positive(matrix, np.ones(27, dtype=int), move)[0]


def test_example_swap_of_one_attribute_is_markov():
    shape = (2, 3, 2)
    matrix = margins(shape, [(0, 1), (1, 2)])
    move = change(
        12, [cell(shape, 1, 2, 1), cell(shape, 2, 2, 2)], [cell(shape, 2, 2, 1), cell(shape, 1, 2, 2)]
    )
    assert is_markov(move)
    assert tuple(move) in both_signs(markov_moves(matrix))


@pytest.mark.parametrize(
    ("shape", "cuboids", "strengths"),
    [
        ((3, 3), [(0,), (1,)], (4, 6, 6)),
        ((4, 4), [(0,), (1,)], (4, 6, 8)),
        ((2, 2, 2), [(0,), (1,), (2,)], (4, 6, 6)),
        ((2, 2, 3), [(0,), (1,), (2,)], (4, 6, 8)),
        ((3, 3, 2), [(0, 1), (1, 2), (0, 2)], (0, 12, 12)),
        ((3, 3, 3), [(0, 1), (1, 2), (0, 2)], (0, 20, 24)),
        ((2, 3, 3), [(0,), (1,), (2,)], (4, 8, 12)),
    ],
)
def test_sensitivities_of_the_three_strengths(shape, cuboids, strengths):
    matrix = margins(shape, cuboids)
    basis = graver_basis(matrix)
    positive = longest_positive(matrix, basis, basis=basis)
    found = (longest_markov(matrix), positive)
    assert all(f.exact for f in found)
    assert (*(f.upper for f in found), int(np.abs(basis).sum(axis=1).max())) == strengths
    table, move = positive.witness
    assert is_positive(matrix, table, move)[0]
    assert oracle.size(move) == positive.lower


# ---------------------------------------------------------------- the cap


@settings(max_examples=100, deadline=None)
@given(matrices(cells=4), st.integers(0, 3), st.sampled_from([None, None, 1, 2]))
@example([[1, -1, 1], [0, 0, 0]], 3, None)
def test_capped_moves_are_those_of_the_definition(matrix, cap, capacity):
    wanted = {
        g
        for g in oracle.minimal_up_to(matrix, len(matrix[0]), 2 * cap)
        if sum(max(v, 0) for v in g) <= cap
        and sum(max(-v, 0) for v in g) <= cap
        and (capacity is None or max(map(abs, g)) <= capacity)
    }
    assert both_signs(capped_moves(matrix, cap, capacity)) == wanted


@settings(max_examples=60, deadline=None)
@given(
    matrices(cells=4),
    st.integers(1, 3),
    st.sampled_from([None, 1, 2]),
    small_queries,
    st.booleans(),
)
def test_longest_capped_by_listing_and_by_search(matrix, cap, capacity, weights, table):
    cells = len(matrix[0])
    query = None if table else np.array([weights[:cells], weights[-cells:]])
    listed = both_signs(capped_moves(matrix, cap, capacity))
    for norm in ("l1", "l2"):
        wanted = max((oracle.weight(query, g, norm) for g in listed), default=0)
        found = longest_capped(matrix, cap, query, norm, capacity=capacity)
        assert (found.lower, found.upper) == (wanted, wanted)
    wanted = max((oracle.weight(query, g, "l1") for g in listed), default=0)
    found = longest_by_cuts(read_matrix(matrix), cap, query, capacity, 10**6, None)
    assert (found.lower, found.upper) == (wanted, wanted)
    if found.witness is not None:
        assert found.witness[1] in listed


@pytest.mark.parametrize("shape_and_cuboids", SHAPES)
def test_a_large_cap_gives_every_minimal_move(shape_and_cuboids):
    matrix = margins(*shape_and_cuboids)
    basis = graver_basis(matrix)
    cap = int(np.maximum(basis, 0).sum(axis=1).max())
    assert both_signs(capped_moves(matrix, cap)) == both_signs(basis)
    assert both_signs(capped_moves(matrix, cap - 1)) < both_signs(basis)


@settings(max_examples=60, deadline=None)
@given(matrices(cells=5), st.integers(1, 4), st.sampled_from([None, 2]))
def test_both_tests_of_minimality_under_a_cap_agree(matrix, cap, capacity):
    listed = both_signs(capped_moves(matrix, cap, capacity))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strengths_capped, "FEW_RECORDS", 0)
        assert both_signs(capped_moves(matrix, cap, capacity)) == listed


def test_moves_of_many_records_under_a_cap():
    matrix = [[1] * 5, [0, 1, 3, 7, 8]]
    basis = graver_basis(matrix)
    sides = np.maximum(basis, 0).sum(axis=1)
    for cap in (5, 6, 7, 8):
        assert both_signs(capped_moves(matrix, cap)) == both_signs(basis[sides <= cap])
    assert sides.max() >= 7


def test_cap_beyond_the_listing_is_searched_or_bounded(monkeypatch):
    matrix = margins((3, 3, 3), [(0,), (1,), (2,)])
    assert longest_capped(matrix, 3).upper == 6
    monkeypatch.setattr(strengths_capped, "MOST_SUMS", 100)
    with pytest.raises(RefusedError):
        capped_moves(matrix, 3)
    searched = longest_capped(matrix, 3)
    assert (searched.lower, searched.upper, searched.method) == (6, 6, "search")
    squared = longest_capped(matrix, 3, norm="l2")
    assert squared.method == "bound"
    assert squared.upper == 18
    monkeypatch.undo()
    assert longest_capped(matrix, 3, norm="l2").upper <= 18


def test_cap_limits_raise_and_never_give_a_partial_list():
    matrix = margins((3, 3), [(0,), (1,)])
    with pytest.raises(RefusedError) as error:
        capped_moves(matrix, 3, max_moves=5)
    assert error.value.code == "moves.cap-moves"
    with pytest.raises(RefusedError) as error:
        capped_moves(matrix, 3, effort=Effort(0))
    assert error.value.code == "moves.cap-deadline"


# ---------------------------------------------------------------- reading


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="expected an integer"):
        list(markov_moves([[0.5, 1.0]]))
    with pytest.raises(InputError, match="smaller integers"):
        list(markov_moves([[2**40, 1]]))
    with pytest.raises(InputError, match="one for each cell"):
        longest_markov([[1, 1]], [[1, 1, 1]])
    with pytest.raises(InputError, match="l1"):
        longest_markov([[1, 1]], norm="max")
    with pytest.raises(InputError, match="capacity"):
        capped_moves([[1, 1]], 1, -1)
    with pytest.raises(InputError, match="m=-1"):
        capped_moves([[1, 1]], -1)
    with pytest.raises(InputError, match="not zero"):
        is_positive([[1, 1]], [1, 1], [1, 0])
    with pytest.raises(InputError, match="records that exist"):
        is_positive([[1, 1]], [0, 0], [1, -1])
    with pytest.raises(InputError, match="records that exist"):
        is_positive([[1, 1]], [1, 1], [1, -1], capacity=1)


def test_equal_tables_and_sums_of_moves_are_not_positive():
    assert not is_positive([[1, 1]], [1, 1], [0, 0])[0]
    positive, reason = is_positive([[1, 1]], [2, 2], [2, -2])
    assert not positive
    assert reason.alternative == (1, -1)


@settings(max_examples=100, deadline=None)
@given(matrices(cells=6))
def test_record_total_is_right_when_given(matrix):
    read = read_matrix(matrix)
    total = record_total(read)
    sums = {sum(g) for g in oracle.kernel_up_to(matrix, len(matrix[0]), 3)}
    if total is not None:
        assert all(sum(y * int(a) for y, a in zip(total, column)) == 1 for column in read.T)
        assert sums <= {0}
    if sums - {0}:
        assert total is None


def test_positive_neighbours_of_large_tables():
    """How many records a cell holds beyond those that can change makes no difference to the test."""
    domain = pg.Domain({"a": 2, "b": 2, "c": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid(name) for name in "abc"], strength="positive")
    for move in policy.moves():
        change = np.zeros(8, dtype=np.int64)
        change[move.cells] = move.amounts
        for more in (0, 100, 2**31, 2**40):
            before = np.maximum(-change, 0)
            before[0] += more
            near = np.maximum(-change, 0)
            near[0] += min(more, 100)
            assert bool(policy.are_neighbours(before, before + change)) == bool(
                policy.are_neighbours(near, near + change)
            )


def test_loops_start_from_tables_of_their_own():
    """Four nodes with loops, all degrees public: 8, and not the 7 that the removed records alone as a table give."""
    network = pg.Network(4, loops=True)
    policy = pg.Policy(network, constraints=[pg.Degrees()], strength="positive")
    found = pg.sensitivity(pg.queries.identity(network), policy)
    assert (found.power, found.kind) == (8, "exact")
    assert found.verify().ok
    for lower, witness, kind in ((7, found.witness, "exact"), (0, None, "upper")):
        forged = replace(found, power=Fraction(7), lower_power=Fraction(lower), witness=witness, kind=kind)
        assert not forged.verify().ok
