"""Two-way tables and directed graphs: longest moves, sub-moves and decompositions against literal oracles."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError
from policygraph.moves.two_way.closed_form import longest_bipartite_move, longest_cycle
from policygraph.moves.two_way.forbidden import longest_with_forbidden
from tests.moves import walks
from tests.oracles import move_graphs as oracle

needs_4ti2 = pytest.mark.skipif(not oracle.have_4ti2(), reason="4ti2-graver is not installed")


def as_change(move: list[tuple[int, int, int]]) -> tuple[list[int], list[int], list[int]]:
    return [m[0] for m in move], [m[1] for m in move], [m[2] for m in move]


def assert_attained(
    value: int,
    witness: list[tuple[int, int, int]],
    cells: list[tuple[int, int]],
    known_left: set[int],
    known_right: set[int],
    total: bool,
) -> None:
    """The witness lies on the cells, is minimal by definition, and has the norm that is claimed."""
    by_cell = {(a, b): sign for a, b, sign in witness}
    assert len(by_cell) == len(witness) == value
    assert set(by_cell) <= set(cells)
    if witness:
        support = sorted(by_cell)
        rows = oracle.table_rows(support, known_left, known_right, total)
        assert oracle.is_move(rows, [by_cell[c] for c in support])


def check_against_graver(
    r: int, c: int, left: set[int], right: set[int], total: bool, no_loops: bool
) -> None:
    cells = oracle.table_cells(r, c, lambda a, b: not no_loops or a != b)
    moves = oracle.graver(oracle.table_rows(cells, left, right, total), len(cells))
    value, witness = longest_bipartite_move(r, c, left, right, total_known=total, loops_forbidden=no_loops)
    # Capacity does not matter: the uncapped basis has entries +1 and -1 only.
    assert all(max(map(abs, move)) == 1 for move in moves)
    assert value == oracle.longest(moves) == oracle.longest(moves, cap=1)
    assert_attained(value, witness, cells, left, right, total)


@pytest.mark.parametrize(
    ("sizes", "known", "total", "value"),
    [
        pytest.param((2, 2), (2, 0), False, 2, id="theory-2-one-marginal"),
        pytest.param((3, 4), (3, 4), False, 6, id="theory-2-both-marginals"),
        pytest.param((2, 2), (2, 2), False, 4, id="theory-2-AB-BC-per-value"),
        pytest.param((3, 3), (1, 1), False, 3, id="theory-3.1-partial"),
        pytest.param((3, 3), (1, 1), True, 4, id="theory-3.1-partial-with-total"),
        pytest.param((5, 6), (4, 4), False, 9, id="theory-3.1-2n+1"),
        pytest.param((5, 6), (4, 4), True, 10, id="theory-3.1-2n+2"),
        pytest.param((5, 6), (4, 2), False, 6, id="theory-3.1-2min+2"),
        pytest.param((5, 9), (5, 7), False, 10, id="theory-3.1-fewer-side-all-known"),
        pytest.param((5, 9), (5, 4), False, 10, id="theory-3.1-more-side-all-known"),
        pytest.param((4, 1), (4, 0), False, 0, id="one-value-right-side-all-known"),
        pytest.param((4, 1), (3, 0), False, 1, id="one-value-right-side-one-unknown"),
        pytest.param((4, 1), (3, 0), True, 0, id="one-value-right-side-total-determines"),
        pytest.param((4, 1), (2, 0), True, 2, id="one-value-right-side-total"),
        pytest.param((1, 1), (0, 0), False, 1, id="one-cell-nothing-known"),
        pytest.param((1, 1), (0, 0), True, 0, id="one-cell-total"),
        pytest.param((1, 5), (1, 0), False, 2, id="one-row-known"),
        pytest.param((6, 7), (0, 0), False, 1, id="nothing-known"),
        pytest.param((6, 7), (0, 0), True, 2, id="only-the-total"),
    ],
)
def test_values(sizes: tuple[int, int], known: tuple[int, int], total: bool, value: int) -> None:
    for (r, c), (n1, n2) in ((sizes, known), (sizes[::-1], known[::-1])):
        assert longest_bipartite_move(r, c, n1, n2, total_known=total)[0] == value


def test_directed_values() -> None:
    """theory 3.3: one known in-degree and nothing else already moves two edges."""
    value = longest_bipartite_move(5, 5, 0, {2}, loops_forbidden=True)[0]
    assert value == 2
    assert longest_bipartite_move(2, 2, 2, 2, loops_forbidden=True)[0] == 0
    assert longest_bipartite_move(3, 3, 3, 3, loops_forbidden=True)[0] == 6


@needs_4ti2
@pytest.mark.parametrize("r", [1, 2, 3])
@pytest.mark.parametrize("c", [1, 2, 3, 4])
def test_every_small_table(r: int, c: int) -> None:
    for n1, n2, total in itertools.product(range(r + 1), range(c + 1), (False, True)):
        check_against_graver(r, c, set(range(n1)), set(range(n2)), total, False)


@needs_4ti2
@pytest.mark.slow
@pytest.mark.parametrize("r", [4])
@pytest.mark.parametrize("c", [1, 2, 3, 4])
def test_every_larger_table(r: int, c: int) -> None:
    for n1, n2, total in itertools.product(range(r + 1), range(c + 1), (False, True)):
        check_against_graver(r, c, set(range(n1)), set(range(n2)), total, False)


@needs_4ti2
@pytest.mark.parametrize("nodes", [1, 2, 3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_every_small_directed_graph(nodes: int) -> None:
    """All choices of known in- and out-degrees, up to renaming the nodes."""
    for kinds in itertools.combinations_with_replacement(range(4), nodes):
        left = {i for i, kind in enumerate(kinds) if kind & 1}
        right = {i for i, kind in enumerate(kinds) if kind & 2}
        for total in (False, True):
            check_against_graver(nodes, nodes, left, right, total, True)


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("n1", [0, 1, 2])
@pytest.mark.parametrize("n2", [0, 1, 2, 3])
def test_listing_every_vector(n1: int, n2: int, total: bool) -> None:
    """Without any other program: all vectors with entries up to 2 on 2 x 3 cells."""
    cells = oracle.table_cells(2, 3)
    moves = oracle.capped_moves(oracle.table_rows(cells, range(n1), range(n2), total), len(cells), 2)
    value = longest_bipartite_move(2, 3, n1, n2, total_known=total)[0]
    assert value == oracle.longest(moves)


subsets = st.integers(1, 6).flatmap(lambda size: st.tuples(st.just(size), st.sets(st.integers(0, size - 1))))


@given(subsets, subsets, st.booleans())
def test_longest_on_any_labels(left: tuple[int, set[int]], right: tuple[int, set[int]], total: bool) -> None:
    (r, known_left), (c, known_right) = left, right
    cells = oracle.table_cells(r, c)
    value, witness = longest_bipartite_move(r, c, known_left, known_right, total_known=total)
    assert_attained(value, witness, cells, known_left, known_right, total)
    if r * c <= 20:
        assert value == len(longest_cycle(cells, known_left, known_right, total))


@given(st.integers(1, 6), st.data(), st.booleans())
def test_longest_without_loops_on_any_labels(nodes: int, data: st.DataObject, total: bool) -> None:
    known_left = data.draw(st.sets(st.integers(0, nodes - 1)))
    known_right = data.draw(st.sets(st.integers(0, nodes - 1)))
    cells = oracle.table_cells(nodes, nodes, lambda a, b: a != b)
    value, witness = longest_bipartite_move(
        nodes, nodes, known_left, known_right, total_known=total, loops_forbidden=True
    )
    assert_attained(value, witness, cells, known_left, known_right, total)
    if nodes <= 5:
        assert value == len(longest_cycle(cells, known_left, known_right, total))


@given(st.integers(7, 60), st.integers(0, 60), st.integers(0, 60), st.booleans(), st.booleans(), st.randoms())
def test_large_witnesses_are_minimal(
    size: int, n1: int, n2: int, total: bool, no_loops: bool, random: object
) -> None:
    left = set(random.sample(range(size), min(n1, size)))  # type: ignore[attr-defined]
    right = set(random.sample(range(size), min(n2, size)))  # type: ignore[attr-defined]
    value, witness = longest_bipartite_move(
        size, size, left, right, total_known=total, loops_forbidden=no_loops
    )
    assert len({(a, b) for a, b, _ in witness}) == len(witness) == value
    assert not no_loops or all(a != b for a, b, _ in witness)
    assert not witness or walks.is_minimal(walks.table, as_change(witness), left, right, total)


def test_flags_counts_and_indices_agree() -> None:
    flags = np.array([True, True, False, False])
    spellings: list[tuple[Any, Any]] = [
        (2, 2),
        (flags, flags),
        ([0, 1], {0, 1}),
        (np.array([0, 1]), (1, 0)),
        (flags.tolist(), 2),
    ]
    assert len({longest_bipartite_move(4, 4, *s)[0] for s in spellings}) == 1
    change = ([0, 0], [2, 3], [1, -1])
    assert all(walks.is_minimal(walks.table, change, *s) for s in spellings)


def test_large_tables_take_no_time() -> None:
    """A search over 10^10 cells would not end."""
    assert longest_bipartite_move(10**5, 10**5, 10**5, 10**5 - 1, loops_forbidden=True)[0] == 2 * 10**5
    assert longest_bipartite_move(1000, 1000, 700, 700)[0] == 1401


# Structural zeros


tables_with_zeros = st.integers(1, 5).flatmap(
    lambda r: st.integers(1, 5).flatmap(
        lambda c: st.tuples(
            st.just(r),
            st.just(c),
            st.sets(st.integers(0, r - 1)),
            st.sets(st.integers(0, c - 1)),
            st.sets(st.tuples(st.integers(0, r - 1), st.integers(0, c - 1))),
            st.booleans(),
        )
    )
)


@given(tables_with_zeros)
@settings(deadline=None)
def test_forbidden_cells(table: tuple[int, int, set[int], set[int], set[tuple[int, int]], bool]) -> None:
    r, c, left, right, zeros, total = table
    cells = oracle.table_cells(r, c, lambda a, b: (a, b) not in zeros)
    result = longest_with_forbidden(r, c, left, right, zeros, total_known=total)
    assert result.exact
    assert result.lower == len(longest_cycle(cells, left, right, total))
    assert_attained(result.lower, result.witness, cells, left, right, total)


@needs_4ti2
def test_forbidden_cells_against_graver() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        zeros = {(a, b) for a in range(3) for b in range(4) if rng.random() < 0.3}
        left, right = set(range(rng.integers(0, 4))), set(range(rng.integers(0, 5)))
        total = bool(rng.integers(0, 2))
        cells = sorted(set(oracle.table_cells(3, 4)) - zeros)
        moves = oracle.graver(oracle.table_rows(cells, left, right, total), len(cells))
        result = longest_with_forbidden(3, 4, left, right, zeros, total_known=total)
        assert result.lower == result.upper == oracle.longest(moves)


def test_no_effort_leaves_a_valid_bracket() -> None:
    rng = np.random.default_rng(5)
    zeros = np.argwhere(rng.random((40, 40)) < 0.9).tolist()
    hurried = longest_with_forbidden(40, 40, 40, 40, zeros, effort=Effort(0))
    patient = longest_with_forbidden(40, 40, 40, 40, zeros, effort=Effort(60 * SECOND))
    assert patient.exact
    assert hurried.lower <= patient.lower <= hurried.upper
    assert not hurried.exact
    for bracket in (hurried, patient):
        assert len(bracket.witness) == bracket.lower
        assert walks.is_minimal(walks.table, as_change(bracket.witness), 40, 40)


def test_huge_table_with_few_zeros() -> None:
    n = 10**4
    result = longest_with_forbidden(n, n, n, n, [(i, i) for i in range(n)])
    assert result.lower == result.upper == 2 * n


# One given change


@st.composite
def balanced_changes(draw: st.DrawFn) -> tuple[dict[tuple[int, int], int], set[int], set[int], bool]:
    """Sums of short closed or open alternating walks, so that known sums are kept."""
    r, c = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    left, right = draw(st.sets(st.integers(0, r - 1))), draw(st.sets(st.integers(0, c - 1)))
    total = draw(st.booleans())
    cells = oracle.table_cells(r, c)
    change: Counter[tuple[int, int]] = Counter()
    for _ in range(draw(st.integers(0, 3))):
        rows = oracle.table_rows(cells, left, right, total)
        vector = draw(st.sampled_from(_moves(tuple(map(tuple, rows)), len(cells)) or [(0,) * len(cells)]))
        factor = draw(st.sampled_from([-2, -1, 1, 1, 2]))
        for cell, x in zip(cells, vector):
            change[cell] += factor * x
    return {cell: x for cell, x in change.items() if x}, left, right, total


_cache: dict[tuple[tuple[tuple[int, ...], ...], int], list[tuple[int, ...]]] = {}


def _moves(rows: tuple[tuple[int, ...], ...], cells: int) -> list[tuple[int, ...]]:
    """Kernel vectors to build changes from: all differences of matching pairs of cells, without any solver."""
    if (rows, cells) not in _cache:
        small = [
            v
            for size in (1, 2, 3, 4)
            for support in itertools.combinations(range(cells), size)
            for signs in itertools.product((1, -1), repeat=size)
            for v in [tuple(dict(zip(support, signs)).get(i, 0) for i in range(cells))]
            if oracle.in_kernel([list(r) for r in rows], v)
        ]
        _cache[rows, cells] = small
    return _cache[rows, cells]


@given(balanced_changes())
@settings(deadline=None, max_examples=150)
def test_parts_of_a_change(case: tuple[dict[tuple[int, int], int], set[int], set[int], bool]) -> None:
    by_cell, left, right, total = case
    cells = sorted(by_cell)
    change = as_change([(a, b, by_cell[a, b]) for a, b in cells])
    rows = oracle.table_rows(cells, left, right, total)
    if np.prod([abs(x) + 1.0 for x in by_cell.values()]) <= 5000:
        truth = oracle.is_move(rows, [by_cell[c] for c in cells])
        assert walks.is_minimal(walks.table, change, left, right, total) == truth
        assert (walks.find_submove(walks.table, change, left, right, total) is None) == (truth or not by_cell)
    total_of_parts: Counter[tuple[int, int]] = Counter()
    for times, move in walks.decompose(walks.table, change, left, right, total):
        assert times >= 1
        vector = {(a, b): x for a, b, x in move}
        assert oracle.is_move(rows, [vector.get(c, 0) for c in cells])
        assert all(x * by_cell[c] > 0 for c, x in vector.items())
        for cell, x in vector.items():
            total_of_parts[cell] += times * x
    assert dict(total_of_parts) == by_cell


def test_submove_is_smaller_and_minimal() -> None:
    swaps = ([0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 0, 1, 2, 3, 2, 3], [1, -1, -1, 1, 1, -1, -1, 1])
    part = walks.find_submove(walks.table, swaps, 4, 4)
    assert part in (
        [(0, 0, 1), (0, 1, -1), (1, 0, -1), (1, 1, 1)],
        [(2, 2, 1), (2, 3, -1), (3, 2, -1), (3, 3, 1)],
    )


def test_duplicate_cells_are_added_up() -> None:
    assert walks.is_minimal(walks.table, ([0, 0, 0], [0, 0, 1], [2, -1, -1]), 1, 0)
    assert walks.decompose(walks.table, ([0, 0], [0, 0], [1, -1]), 1, 1) == []


def test_values_are_not_expanded() -> None:
    big = 10**12
    change = ([0, 0, 1, 1], [0, 1, 0, 1], [big, -big, -big, big])
    assert [times for times, _ in walks.decompose(walks.table, change, 2, 2)] == [big]


@pytest.mark.parametrize(
    ("run", "code"),
    [
        pytest.param(lambda: longest_bipartite_move(0, 3, 0, 0), "moves.count", id="empty-side"),
        pytest.param(lambda: longest_bipartite_move(2, 3, 3, 0), "moves.known", id="too-many-known"),
        pytest.param(lambda: longest_bipartite_move(2, 3, {2}, 0), "moves.known", id="no-such-vertex"),
        pytest.param(lambda: longest_bipartite_move(2, 3, [-1], 0), "moves.known", id="negative-vertex"),
        pytest.param(
            lambda: longest_bipartite_move(2, 3, np.array([0.5]), 0),
            "moves.known",
            id="float-vertex",
        ),
        pytest.param(lambda: longest_bipartite_move(2, 3, [True], 0), "moves.known", id="flags-missing"),
        pytest.param(lambda: longest_bipartite_move(2, 3, True, 0), "moves.count", id="bool-count"),
        pytest.param(
            lambda: longest_bipartite_move(2, 3, 0, 0, loops_forbidden=True),
            "moves.loops",
            id="not-square",
        ),
        pytest.param(
            lambda: longest_with_forbidden(2, 2, 2, 2, [(2, 0)]),
            "moves.forbidden",
            id="zero-outside",
        ),
        pytest.param(
            lambda: longest_with_forbidden(2, 2, 2, 2, [(1, 0, 1)]),
            "moves.forbidden",
            id="zero-no-pair",
        ),
    ],
)
def test_bad_input(run: object, code: str) -> None:
    with pytest.raises(InputError) as caught:
        run()  # type: ignore[operator]
    assert caught.value.code == code
