"""Undirected graphs with known degrees: longest moves, sub-moves and decompositions against literal oracles."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.errors import InputError
from policygraph.moves.degrees.closed_form import longest_degree_move
from tests.moves import walks
from tests.oracles import move_graphs as oracle

needs_4ti2 = pytest.mark.skipif(not oracle.have_4ti2(), reason="4ti2-graver is not installed")


def as_change(move: list[tuple[int, int, int]]) -> tuple[list[int], list[int], list[int]]:
    return [m[0] for m in move], [m[1] for m in move], [m[2] for m in move]


@pytest.mark.parametrize(
    ("nodes", "known", "value"),
    [
        pytest.param(*case, id=f"theory-3.2-V{case[0]}-n{case[1]}")
        for case in [
            *[(4, 2, 3), (4, 3, 4), (4, 4, 4), (5, 3, 5), (5, 4, 6), (5, 5, 6), (6, 3, 5), (6, 4, 6)],
            *[(6, 5, 7), (6, 6, 6), (7, 5, 7), (7, 7, 8), (9, 9, 12), (10, 10, 12), (11, 11, 14)],
            *[(12, 12, 16), (3, 3, 0), (2, 1, 0), (1, 0, 0), (2, 0, 1), (20, 6, 9), (20, 7, 11), (20, 9, 13)],
        ]
    ],
)
def test_values(nodes: int, known: int, value: int) -> None:
    assert longest_degree_move(nodes, known)[0] == value


@needs_4ti2
@pytest.mark.parametrize(
    ("nodes", "loops"),
    [(v, False) for v in range(1, 7)]
    + [(v, True) for v in range(1, 6)]
    + [pytest.param(7, False, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("capacity", [1, 2, None])
def test_every_small_graph(nodes: int, loops: bool, capacity: int | None) -> None:
    cells = oracle.node_pairs(nodes, loops)
    for known in range(nodes + 1):
        moves = oracle.graver(oracle.degree_rows(cells, range(known)), len(cells))
        value, witness = longest_degree_move(nodes, known, loops=loops, capacity=capacity)
        assert value == oracle.longest(moves, capacity)
        if value:
            entries = {(u, v): x for u, v, x in witness}
            vector = tuple(entries.get(cell, 0) for cell in cells)
            assert set(entries) <= set(cells)
            assert sum(map(abs, vector)) == value
            assert vector in moves or tuple(-x for x in vector) in moves


@pytest.mark.parametrize("known", range(5))
@pytest.mark.parametrize("loops", [False, True])
def test_listing_every_vector(known: int, loops: bool) -> None:
    """Without any other program: all 0/1 graphs on four nodes (three with loops)."""
    nodes = 3 if loops else 4
    known = min(known, nodes)
    cells = oracle.node_pairs(nodes, loops)
    moves = oracle.capped_moves(oracle.degree_rows(cells, range(known)), len(cells), 1)
    assert longest_degree_move(nodes, known, loops=loops)[0] == oracle.longest(moves)


@given(st.integers(1, 80), st.data(), st.booleans(), st.sampled_from([1, None]))
def test_large_witnesses_are_minimal(
    nodes: int, data: st.DataObject, loops: bool, capacity: int | None
) -> None:
    known = data.draw(
        st.one_of(st.just(set(range(nodes))), st.sets(st.integers(0, nodes - 1), min_size=max(0, nodes - 3)))
    )
    value, witness = longest_degree_move(nodes, known, loops=loops, capacity=capacity)
    assert len({(u, v) for u, v, _ in witness}) == len(witness)
    assert sum(abs(x) for _, _, x in witness) == value
    assert all(0 <= u <= v < nodes and (loops or u < v) for u, v, _ in witness)
    assert all(abs(x) <= (1 if capacity == 1 else 2) for _, _, x in witness)
    assert not witness or walks.is_minimal(walks.degrees, as_change(witness), known)


def test_knowing_the_last_degree_can_help() -> None:
    """With one unknown node left the walk may start and end there; with none, parity costs an edge."""
    values = [longest_degree_move(6, n)[0] for n in range(7)]
    assert values == [1, 2, 3, 5, 6, 7, 6]


def test_large_graphs_take_no_time() -> None:
    """A search over five billion pairs would not end."""
    value, witness = longest_degree_move(10**5, 10**5)
    assert value == len(witness) == 6 * 24_999 + 4


# One given change


@st.composite
def balanced_changes(draw: st.DrawFn) -> tuple[dict[tuple[int, int], int], set[int]]:
    """Sums of random alternating walks that end where degrees are unknown or close with balance."""
    nodes = draw(st.integers(2, 7))
    known = draw(st.sets(st.integers(0, nodes - 1), min_size=draw(st.sampled_from([0, nodes // 2, nodes]))))
    loops = draw(st.booleans())
    change: Counter[tuple[int, int]] = Counter()
    for _ in range(draw(st.integers(1, 3))):
        start = here = draw(st.integers(0, nodes - 1))
        first = sign = draw(st.sampled_from([1, -1]))
        walk: Counter[tuple[int, int]] = Counter()
        for step in draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=16)):
            if step == here and not loops:
                continue
            walk[min(here, step), max(here, step)] += sign
            here, sign = step, -sign
            free = here not in known and start not in known
            if free or (here == start and (sign == first or here not in known)):
                change.update(walk)
                break
    return {pair: x for pair, x in change.items() if x}, known


@given(balanced_changes())
@settings(deadline=None, max_examples=300)
def test_parts_of_a_change(case: tuple[dict[tuple[int, int], int], set[int]]) -> None:
    by_pair, known = case
    pairs = sorted(by_pair)
    change = as_change([(u, v, by_pair[u, v]) for u, v in pairs])
    rows = oracle.degree_rows(pairs, known)
    if np.prod([abs(x) + 1.0 for x in by_pair.values()]) <= 5000:
        truth = oracle.is_move(rows, [by_pair[p] for p in pairs])
        assert walks.is_minimal(walks.degrees, change, known) == truth
        assert (walks.find_submove(walks.degrees, change, known) is None) == (truth or not by_pair)
    total: Counter[tuple[int, int]] = Counter()
    for times, move in walks.decompose(walks.degrees, change, known):
        assert times >= 1
        vector = {(u, v): x for u, v, x in move}
        assert oracle.is_move(rows, [vector.get(p, 0) for p in pairs])
        assert all(x * by_pair[p] > 0 for p, x in vector.items())
        for pair, x in vector.items():
            total[pair] += times * x
    assert dict(total) == by_pair


@needs_4ti2
@pytest.mark.parametrize("known", [4, 5])
def test_every_minimal_move_is_recognised(known: int) -> None:
    """On five nodes with loops: the basis of another program, and all sums of two of its moves."""
    cells = oracle.node_pairs(5, True)
    rows = oracle.degree_rows(cells, range(known))
    moves = oracle.graver(rows, len(cells))
    basis = set(moves) | {tuple(-x for x in m) for m in moves}
    rng = np.random.default_rng(known)
    vectors = [*moves, *(tuple(np.add(*rng.choice(moves, 2, replace=False)).tolist()) for _ in range(500))]
    for vector in vectors:
        entries = [(*cell, x) for cell, x in zip(cells, vector) if x]
        assert walks.is_minimal(walks.degrees, as_change(entries), known) == (vector in basis)


def test_crossing_walks_are_taken_apart() -> None:
    """v and u of a closed walk v..u..v..u: all four closed parts are odd, and the walk is not minimal."""
    # v = 0 and u = 1, joined by parts of lengths 3, 2, 3, 4 through nodes of their own.
    walk = [0, 2, 3, 1, 4, 0, 5, 6, 1, 7, 8, 9, 0]
    change = [(a, b, 1 if i % 2 == 0 else -1) for i, (a, b) in enumerate(pairwise(walk))]
    parts = walks.decompose(walks.degrees, as_change(change), 10)
    assert sorted(len(move) for _, move in parts) == [6, 6]
    assert not walks.is_minimal(walks.degrees, as_change(change), 10)


def test_random_switches_on_many_nodes() -> None:
    rng = np.random.default_rng(0)
    a, b, c, d = rng.integers(0, 2000, size=(4, 20_000))
    ones = np.ones(20_000, dtype=np.int64)
    change = (np.r_[a, c, a, c], np.r_[b, d, d, b], np.r_[ones, ones, -ones, -ones])
    parts = walks.decompose(walks.degrees, change, 2000)
    total: Counter[tuple[int, int]] = Counter()
    for u, v, x in zip(*change):
        total[min(u, v), max(u, v)] += int(x)
    for times, move in parts:
        for u, v, x in move:
            total[u, v] -= times * x
    assert not any(total.values())
    assert all(walks.is_minimal(walks.degrees, as_change(move), 2000) for _, move in parts[:50])


@pytest.mark.parametrize(
    ("run", "code"),
    [
        pytest.param(lambda: longest_degree_move(0, 0), "moves.count", id="no-node"),
        pytest.param(lambda: longest_degree_move(3, 4), "moves.known", id="too-many-known"),
        pytest.param(lambda: longest_degree_move(3, 3, capacity=0), "moves.count", id="no-capacity"),
        pytest.param(
            lambda: longest_degree_move(3, 3, loops="no"),  # type: ignore[arg-type]
            "moves.loops",
            id="loops-not-a-flag",
        ),
    ],
)
def test_bad_input(run: object, code: str) -> None:
    with pytest.raises(InputError) as caught:
        run()  # type: ignore[operator]
    assert caught.value.code == code
