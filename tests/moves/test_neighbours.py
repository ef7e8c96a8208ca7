"""Neighbours and decompositions by the Eulerian walk, against the literal definitions, for policies of every shape."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import policygraph as pg
from policygraph.moves.graver.basis import find_smaller
from policygraph.moves.walk import MoveGraph
from tests.oracles import move_graphs as oracle

A3, A4 = pg.Domain({"a": 3, "b": 3}), pg.Domain({"a": 2, "b": 4})
CUBE = pg.Domain({"a": 2, "b": 2, "c": 2})
ROWS, COLUMNS = pg.Cells("a", [0, 1]), pg.Cells("b", [0])

WALKED: dict[str, pg.Policy] = {
    "nothing public": pg.Policy(pg.Domain({"a": 5})),
    "total": pg.Policy(A4, constraints=[pg.Total()]),
    "one margin": pg.Policy(A4, constraints=[pg.Cuboid("a")]),
    "two margins": pg.Policy(A3, constraints=[pg.Cuboid("a"), pg.Cuboid("b")]),
    "two margins and the total": pg.Policy(A4, constraints=[pg.Cuboid("a"), pg.Cuboid("b"), pg.Total()]),
    "a margin and a part": pg.Policy(A3, constraints=[pg.Cuboid("a"), COLUMNS]),
    "parts": pg.Policy(A3, constraints=[ROWS, COLUMNS]),
    "parts and the total": pg.Policy(A3, constraints=[ROWS, COLUMNS, pg.Total()]),
    "single sums": pg.Policy(
        A3, constraints=[pg.Cell(a=0), pg.Cell(b=0), pg.Cell(a=1), pg.Cell(b=2), pg.Total()]
    ),
    "zeros": pg.Policy(A3, constraints=[pg.Cuboid("a"), pg.Cuboid("b"), pg.StructuralZero([(0, 0), (1, 2)])]),
    "values": pg.Policy(A3, constraints=[pg.Cuboid("a", equals=[2, 2, 2]), pg.Cuboid("b")]),
    "a cell of the table": pg.Policy(A3, constraints=[pg.Cuboid("a"), pg.Cell(a=0, b=0)]),
    "shared attribute": pg.Policy(CUBE, constraints=[pg.Cuboid("a", "b"), pg.Cuboid("b", "c")]),
    "shared attribute in parts": pg.Policy(
        CUBE,
        constraints=[pg.Cells(["a", "b"], [(0, 0), (0, 1)]), pg.Cells(["b", "c"], [(0, 0), (1, 1)])],
    ),
    "shared attribute in parts and its margin": pg.Policy(
        CUBE,
        constraints=[
            pg.Cells(["a", "b"], [(0, 0), (0, 1)]),
            pg.Cells(["b", "c"], [(0, 0), (1, 1)]),
            pg.Cuboid("b"),
        ],
    ),
    "wide against narrow": pg.Policy(CUBE, constraints=[pg.Cuboid("a", "b"), pg.Cuboid("c")]),
    "at most two records": pg.Policy(A3, constraints=[pg.Cuboid("a"), pg.Cuboid("b")], at_most_records=2),
    "markov": pg.Policy(A3, constraints=[pg.Cuboid("a"), pg.Cuboid("b")], strength="markov"),
    "weights": pg.Policy(
        pg.Domain({"a": 4}), constraints=[pg.LinearCount([((0,), 2), ((1,), 1), ((2,), 1)])]
    ),
    "directed": pg.Policy(
        pg.Network(3, directed=True), constraints=[pg.Degrees(side="in"), pg.Degrees(side="out")]
    ),
    "directed in parts": pg.Policy(
        pg.Network(3, directed=True, loops=True),
        constraints=[pg.Degrees([0, 1], side="in"), pg.Degrees([2], side="out"), pg.Total()],
    ),
    "degrees": pg.Policy(pg.Network(5), constraints=[pg.Degrees()]),
    "some degrees": pg.Policy(pg.Network(4), constraints=[pg.Degrees([0, 1, 2])]),
    "some degrees one by one": pg.Policy(
        pg.Network(4), constraints=[pg.Degrees([0]), pg.Degrees([3]), pg.Degrees([1])]
    ),
    "some degrees and the edges": pg.Policy(pg.Network(5), constraints=[pg.Degrees([0, 1]), pg.Total()]),
    "loops": pg.Policy(pg.Network(4, loops=True), constraints=[pg.Degrees()]),
    "loops and the edges": pg.Policy(pg.Network(4, loops=True), constraints=[pg.Degrees([0, 2]), pg.Total()]),
    "multigraph": pg.Policy(pg.Network(4, multiple=True), constraints=[pg.Degrees()]),
    "multigraph with loops": pg.Policy(
        pg.Network(3, multiple=True, loops=True), constraints=[pg.Degrees([0, 1])]
    ),
    "pairs that cannot join": pg.Policy(
        pg.Network(5), constraints=[pg.Degrees(), pg.StructuralZero([(0, 1), (2, 3)])]
    ),
}
SEARCHED: dict[str, pg.Policy] = {
    "three margins": pg.Policy(CUBE, constraints=[pg.Cuboid("a"), pg.Cuboid("b"), pg.Cuboid("c")]),
    "three faces": pg.Policy(
        CUBE, constraints=[pg.Cuboid("a", "b"), pg.Cuboid("b", "c"), pg.Cuboid("a", "c")]
    ),
    "overlapping counts": pg.Policy(
        A4,
        constraints=[pg.Cuboid("a"), pg.Cuboid("b"), pg.LinearCount([((0, 0), 1), ((1, 1), 1), ((1, 2), 1)])],
    ),
    "large weights": pg.Policy(
        pg.Domain({"a": 4}), constraints=[pg.LinearCount([((0,), 3), ((1,), 2), ((2,), 1)])]
    ),
}
POLICIES = WALKED | SEARCHED


def rows_of(policy: pg.Policy) -> list[list[int]]:
    """All public sums and structural zeros, as the constraints themselves write them."""
    domain = policy.domain
    out = []
    for constraint in policy.constraints:
        rows = constraint.rows(domain)
        block = np.zeros((rows.height, domain.size), dtype=int)
        block[rows.row, rows.cell] += rows.coefficient
        out += block.tolist()
    return out


@lru_cache
def small_changes(name: str) -> Any:
    """Changes by at most 1 (2 in few cells) that keep everything public."""
    policy = POLICIES[name]
    top = 1 if policy.domain.size > 6 or policy.domain.capacity == 1 else 2
    every = np.array(list(product(range(-top, top + 1), repeat=policy.domain.size)), dtype=np.int64)
    rows = np.array(rows_of(policy), dtype=np.int64).reshape(-1, policy.domain.size)
    return every[~np.any(every @ rows.T, axis=1)]


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, tuple[int, ...]]:
    """A policy and a change that keeps its public facts: one or two small ones added up."""
    name = draw(st.sampled_from(sorted(POLICIES)))
    kernel = small_changes(name)
    picks = draw(st.lists(st.integers(0, len(kernel) - 1), min_size=1, max_size=2))
    change = kernel[picks].sum(axis=0)
    if POLICIES[name].domain.capacity == 1:
        change = np.clip(change, -1, 1) if not _broken(name, np.clip(change, -1, 1)) else kernel[picks[0]]
    return name, tuple(change.tolist())


def _broken(name: str, change: Any) -> bool:
    rows = np.array(rows_of(POLICIES[name]), dtype=np.int64).reshape(-1, len(change))
    return bool(np.any(rows @ change))


def literal(policy: pg.Policy, change: tuple[int, ...]) -> bool:
    """The definition: a minimal move, within the cap and the strength."""
    if not oracle.is_move(rows_of(policy), change):
        return False
    cap = policy.at_most_records
    sides = (sum(x for x in change if x > 0), -sum(x for x in change if x < 0))
    if cap is not None and max(sides) > cap:
        return False
    return policy.strength != "markov" or (sum(map(bool, change)) <= 4 and max(abs(x) for x in change) <= 1)


def few(change: tuple[int, ...]) -> bool:
    return bool(np.prod([abs(x) + 1.0 for x in change]) <= 5000)


def check_parts(policy: pg.Policy, change: tuple[int, ...], parts: list[pg.Move]) -> None:
    """Every part is a minimal move, has the signs of the change, and together they are the change."""
    total = np.zeros(len(change), dtype=np.int64)
    for part in parts:
        vector = np.zeros(len(change), dtype=np.int64)
        vector[part.cells] = part.amounts
        assert not few(tuple(vector.tolist())) or oracle.is_move(rows_of(policy), vector.tolist())
        assert np.all(vector * change >= 0)
        assert np.all(np.abs(vector) <= np.abs(change))
        total += vector
    assert total.tolist() == list(change)


@given(changes())
def test_walk_and_literal_definition_agree(case: tuple[str, tuple[int, ...]]) -> None:
    name, change = case
    policy = POLICIES[name]
    move = pg.Move.of(policy, dict(enumerate(change)))
    assert move.keeps_facts
    check_parts(policy, change, move.decompose())
    if few(change):
        assert move.is_minimal == oracle.is_move(rows_of(policy), change)
    smaller = move.smaller()
    if smaller is not None:
        assert smaller.keeps_facts
        assert 0 < smaller.size < move.size
        assert all(x * change[cell] > 0 and abs(x) <= abs(change[cell]) for cell, x in smaller.change)
    general = find_smaller(policy.system.matrix_on(move.cells), move.amounts) if any(change) else None
    assert (smaller is None) == (general is None)


@given(changes())
def test_are_neighbours_is_the_definition(case: tuple[str, tuple[int, ...]]) -> None:
    name, change = case
    policy = POLICIES[name]
    if not few(change) or name == "values":
        return
    before = np.maximum(-np.array(change), 0)
    after = before + change
    answer = policy.are_neighbours(before, after)
    assert bool(answer) == literal(policy, change), answer.reason
    if answer.smaller is not None:
        assert answer.smaller.keeps_facts
        assert answer.smaller.is_minimal or name in SEARCHED
        assert str(answer.smaller) in answer.reason
    assert policy.decompose(before, after) == pg.Move.of(policy, dict(enumerate(change))).decompose()


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_which_facts_are_walked(name: str) -> None:
    policy = POLICIES[name]
    graph = MoveGraph.of(policy.system, np.arange(policy.domain.size))
    assert (graph is None) == (name in SEARCHED)
    # Whatever the facts, the graph must hold what their rows hold: a change keeps one exactly if it keeps the other.
    if graph is not None:
        keep = np.setdiff1d(np.arange(policy.domain.size), policy.system.zeros)
        matrix = np.zeros((graph.ground + 1, policy.domain.size), dtype=np.int64)
        for ends in (graph.tail, graph.head):
            np.add.at(matrix, (ends, np.arange(policy.domain.size)), 1)
        rows = np.array(rows_of(policy), dtype=np.int64).reshape(-1, policy.domain.size)
        both = np.concatenate([matrix[: graph.ground], rows])[:, keep]
        rank = np.linalg.matrix_rank
        assert rank(matrix[: graph.ground][:, keep]) == rank(rows[:, keep]) == rank(both)


def test_published_values_and_zeros_are_checked_first() -> None:
    policy = POLICIES["values"]
    answer = policy.are_neighbours(np.eye(3, dtype=int), np.eye(3, dtype=int)[[1, 0, 2]])
    assert not answer
    assert "first table breaks the public facts" in answer.reason
    doubled = 2 * np.eye(3, dtype=int)
    assert policy.are_neighbours(doubled, doubled + np.array([[-1, 1, 0], [1, -1, 0], [0, 0, 0]]))
    zeros = POLICIES["zeros"]
    filled = zeros.are_neighbours(np.eye(3, dtype=int), np.eye(3, dtype=int)[[1, 0, 2]])
    assert "first table breaks the public facts" in filled.reason


def test_dense_change_of_a_large_table() -> None:
    """90,000 changed cells; the general method would not end."""
    domain = pg.Domain({"a": 300, "b": 300})
    sign = np.where(np.arange(300) % 2, 1, -1)
    before = np.ones((300, 300), dtype=np.int64)
    after = before + np.outer(sign, sign)
    for facts in (
        [pg.Cuboid("a"), pg.Cuboid("b")],
        [pg.Cells("a", range(250)), pg.Cells("b", range(200)), pg.Total()],
    ):
        policy = pg.Policy(domain, constraints=facts)
        answer = policy.are_neighbours(before, after)
        assert not answer
        assert answer.smaller.size <= 4
        moved = np.zeros(domain.size, dtype=np.int64)
        for part in policy.decompose(before, after):
            moved[part.cells] += part.amounts
        assert np.array_equal(moved, (after - before).ravel())
    cycle = np.eye(300, dtype=np.int64)
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    assert policy.are_neighbours(cycle, np.roll(cycle, 1, axis=1))
    assert not policy.are_neighbours(cycle, np.roll(cycle, 2, axis=1))


def test_large_multiples_are_counted_and_not_listed() -> None:
    policy = pg.Policy(pg.Domain({"a": 2}), constraints=[pg.Total()])
    move = pg.Move.of(policy, {0: -(10**12), 1: 10**12})
    assert [times for times, _ in move.parts()] == [10**12]
    with pytest.raises(pg.RefusedError) as caught:
        move.decompose()
    assert caught.value.code == "move.too-large"


def test_sums_beyond_64_bits_are_exact() -> None:
    policy = pg.Policy(pg.Domain({"a": 5}), constraints=[pg.Total()])
    huge = 1 << 62
    assert not pg.Move.of(policy, {0: huge, 1: huge, 2: huge, 3: huge}).keeps_facts
    assert pg.Move.of(policy, {0: huge, 1: -huge}).keeps_facts


def test_a_change_that_breaks_facts_has_no_parts() -> None:
    policy = POLICIES["two margins"]
    move = pg.Move.of(policy, {0: 1})
    assert not move.keeps_facts
    assert not move.is_minimal
    for ask in (move.smaller, move.parts, move.decompose):
        with pytest.raises(pg.InputError) as caught:
            ask()
        assert caught.value.code == "move.facts"


def test_triangles_at_a_cut_vertex_are_one_move() -> None:
    """Two triangles that share a node, signs alternating along the closed walk: splitting them into cycles would be wrong."""
    network = pg.Network(5)
    policy = pg.Policy(network, constraints=[pg.Degrees()])
    signs = {(0, 2): 1, (1, 2): 1, (0, 1): -1, (2, 3): -1, (3, 4): 1, (2, 4): -1}
    change = {int(network.pair_index(*pair)): sign for pair, sign in signs.items()}
    assert pg.Move.of(policy, change).is_minimal
    before, after = np.zeros((2, network.size), dtype=np.int64)
    for cell, sign in change.items():
        (after if sign > 0 else before)[cell] = 1
    assert policy.are_neighbours(before, after)


def test_long_reasons_are_cut_and_the_move_is_whole() -> None:
    policy = pg.Policy(pg.Domain({"a": 60, "b": 60}), constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    before = np.eye(60, dtype=np.int64)
    after = np.roll(before, 2, axis=1)
    answer = policy.are_neighbours(before, after)
    assert answer.smaller.size == 60
    assert answer.reason.endswith("and 48 more")
