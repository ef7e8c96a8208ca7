"""Policy graph and exact public facts together, against the literal definition."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.effort import Effort
from policygraph.errors import InputError, RefusedError
from policygraph.moves.blowfish.longest import (
    ClassFacts,
    are_neighbours_records,
    blowfish_moves,
    longest_blowfish,
    longest_disjoint,
)
from policygraph.moves.blowfish.minimal import (
    affinely_independent,
    block_bound,
    differences,
    length_bound,
    minimal_sums,
    simple_cycles,
)
from policygraph.moves.blowfish.problem import BlowfishMove, blowfish_problem
from policygraph.moves.blowfish.records import _useful, find_repair, is_minimal
from policygraph.moves.bracket import Bracket
from tests.oracles import blowfish as oracle
from tests.oracles.published_bound import published_bound

Matrix = list[list[int]]
Graph = list[list[bool]]


def line(k: int, theta: int = 1) -> Graph:
    return [[0 < abs(i - j) <= theta for j in range(k)] for i in range(k)]


def full(k: int) -> Graph:
    return [[i != j for j in range(k)] for i in range(k)]


def attribute(shape: Sequence[int]) -> Graph:
    cells = list(itertools.product(*map(range, shape)))
    return [[sum(a != b for a, b in zip(x, y)) == 1 for y in cells] for x in cells]


def margins(shape: Sequence[int], cuboids: Sequence[Sequence[int]]) -> Matrix:
    cells = list(itertools.product(*map(range, shape)))
    return [
        [int(all(cell[a] == v for a, v in zip(cuboid, values))) for cell in cells]
        for cuboid in cuboids
        for values in itertools.product(*(range(shape[a]) for a in cuboid))
    ]


CHECKED = {
    "theory-1-line4-one-count": ([[1, 1, 0, 0]], line(4), 4),
    "theory-1-line6-two-counts": ([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]], line(6), 6),
    "theory-1-full-3x2-first-margin": (margins((3, 2), [[0]]), full(6), 6),
    "theory-1-full-2x2-first-margin": (margins((2, 2), [[0]]), full(4), 4),
    "theory-1-attribute-2x2-first-margin": (margins((2, 2), [[0]]), attribute((2, 2)), 2),
    "theory-1-attribute-2x2-both-margins": (margins((2, 2), [[0], [1]]), attribute((2, 2)), 4),
    "theory-1-attribute-2x2x2-two-margins": (margins((2, 2, 2), [[0], [1]]), attribute((2, 2, 2)), 8),
}


@st.composite
def problems(draw: st.DrawFn, low: int = -1, high: int = 2) -> tuple[Matrix, Graph, bool]:
    bottom = draw(st.booleans())
    cells = draw(st.integers(1, 3 if bottom else 4))
    rows = draw(st.integers(0, 2))
    entry = st.integers(low, high)
    matrix = [[draw(entry) for _ in range(cells)] for _ in range(rows)]
    size = cells + bottom
    graph = [[False] * size for _ in range(size)]
    for i, j in itertools.combinations(range(size), 2):
        graph[i][j] = graph[j][i] = draw(st.booleans())
    return matrix, graph, bottom


def check_witness(bracket: Bracket[BlowfishMove], matrix: Matrix, graph: Graph, bottom: bool = False) -> None:
    """The witness is a neighbour pair by the literal test and attains the lower value (L1, histogram)."""
    if bracket.witness is None:
        assert bracket.lower == 0
        return
    old = [int(x) for x, _ in bracket.witness.transitions]  # type: ignore[call-overload]
    new = [int(y) for _, y in bracket.witness.transitions]  # type: ignore[call-overload]
    assert are_neighbours_records(old, new, matrix, graph, bottom=bottom).neighbours
    change = bracket.witness.dense(len(graph) - bottom)
    assert change == oracle.change(tuple(old), tuple(new), len(graph) - bottom)
    assert sum(map(abs, change)) == bracket.lower


@pytest.mark.parametrize("name", CHECKED)
def test_checked_values(name: str) -> None:
    matrix, graph, value = CHECKED[name]
    bracket = longest_blowfish(matrix, graph)
    assert (bracket.lower, bracket.upper) == (value, value)
    check_witness(bracket, matrix, graph)


@pytest.mark.parametrize("name", CHECKED)
def test_checked_values_by_the_literal_definition(name: str) -> None:
    matrix, graph, value = CHECKED[name]
    assert max(oracle.sensitivity(matrix, graph, n) for n in (1, 2, 3)) == min(value, 6)


@pytest.mark.slow
def test_the_value_8_needs_four_records() -> None:
    matrix, graph, _ = CHECKED["theory-1-attribute-2x2x2-two-margins"]
    by_records = [longest_blowfish(matrix, graph, at_most_records=n).upper for n in (1, 2, 3, 4, 5)]
    assert by_records == [2, 4, 6, 8, 8]
    assert oracle.sensitivity(matrix, graph, 4) == 8
    cells = {cell: i for i, cell in enumerate(itertools.product(range(2), repeat=3))}
    old = [cells[c] for c in ((0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1))]
    new = [cells[c] for c in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 1))]
    assert are_neighbours_records(old, new, matrix, graph).neighbours


@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(1, 3))
def test_neighbours_of_records(problem: tuple[Matrix, Graph, bool], n: int) -> None:
    matrix, graph, bottom = problem
    expected = set(oracle.neighbours(matrix, graph, n, bottom=bottom))
    columns = oracle.columns_of(matrix, len(graph) - bottom, bottom)
    for d1 in itertools.combinations_with_replacement(range(len(graph)), n):
        for d2 in itertools.product(range(len(graph)), repeat=n):
            verdict = are_neighbours_records(d1, d2, matrix, graph, bottom=bottom)
            assert verdict.neighbours == ((d1, d2) in expected), (d1, d2, verdict)
            if verdict.instead is not None:
                third, pairs = verdict.instead, oracle.secrets(graph, d1, d2)
                assert oracle.image(columns, third) == oracle.image(columns, d1)
                nearer = oracle.secrets(graph, d1, third)
                fewer = oracle.changes(d1, third) < oracle.changes(d1, d2)
                assert nearer
                assert nearer < pairs or (nearer == pairs and fewer)


def longest_multiset(matrix: Matrix, graph: Graph, bottom: bool) -> int:
    """Most records that change between neighbours, by listing the minimal zero-sum multisets."""
    points = blowfish_problem(matrix, graph, bottom=bottom).class_columns
    return max([1, *map(len, minimal_sums(differences(points)))])


@settings(max_examples=80, deadline=None)
@given(problems(low=0, high=1), st.none() | st.integers(1, 3))
def test_moves_within_a_cap_are_all_of_them(problem: tuple[Matrix, Graph, bool], cap: int | None) -> None:
    matrix, graph, bottom = problem
    cells = len(graph) - bottom
    listed = list(blowfish_moves(matrix, graph, bottom=bottom, at_most_records=cap))
    changes = [move.dense(cells) for move in listed]
    assert len(set(changes)) == len(changes)
    most = longest_multiset(matrix, graph, bottom)
    expected = set().union(*(oracle.moves(matrix, graph, n, bottom=bottom) for n in range(1, most + 1)))
    assert set(changes) == {move for move in expected if oracle.within(move, cap)}


queries = st.integers(1, 3).flatmap(
    lambda rows: st.lists(st.lists(st.integers(-2, 2), min_size=4, max_size=4), min_size=rows, max_size=rows)
)


@settings(max_examples=120, deadline=None)
@given(
    problems(low=0, high=1), st.none() | st.integers(1, 3), st.sampled_from(["l1", "l2"]), st.none() | queries
)
def test_sensitivity_of_a_query_under_a_cap(
    problem: tuple[Matrix, Graph, bool], cap: int | None, norm: str, rows: Matrix | None
) -> None:
    matrix, graph, bottom = problem
    cells = len(graph) - bottom
    query = None if rows is None else [row[:cells] for row in rows]
    bracket = longest_blowfish(matrix, graph, bottom=bottom, query=query, norm=norm, at_most_records=cap)
    expected = max(
        oracle.sensitivity(matrix, graph, n, bottom=bottom, query=query, norm=norm, cap=cap)
        for n in range(1, longest_multiset(matrix, graph, bottom) + 1)
    )
    assert (bracket.lower, bracket.upper) == (expected, expected)


@settings(max_examples=60, deadline=None)
@given(problems(low=-2, high=3), st.integers(1, 3), st.sampled_from(["l1", "l2"]), st.none() | queries)
def test_a_capped_value_is_never_too_small(
    problem: tuple[Matrix, Graph, bool], cap: int, norm: str, rows: Matrix | None
) -> None:
    matrix, graph, bottom = problem
    cells = len(graph) - bottom
    query = None if rows is None else [row[:cells] for row in rows]
    # no time at all: what stands is the bound by the cap and by the length of the sets of changes
    bracket = longest_blowfish(
        matrix, graph, bottom=bottom, query=query, norm=norm, at_most_records=cap, effort=Effort(0)
    )
    found = [
        oracle.sensitivity(matrix, graph, n, bottom=bottom, query=query, norm=norm, cap=cap)
        for n in range(1, 5)
    ]
    assert bracket.upper is not None
    assert bracket.upper >= max(found)
    if bracket.witness is None:
        assert bracket.lower == 0
        return
    old, new = zip(*bracket.witness.transitions)
    assert are_neighbours_records(old, new, matrix, graph, bottom=bottom).neighbours
    change = oracle.change(old, new, cells)
    assert change == bracket.witness.dense(cells)
    assert oracle.within(change, cap)
    answer = change if query is None else [sum(map(int.__mul__, row, change)) for row in query]
    assert bracket.lower == sum(abs(v) if norm == "l1" else v * v for v in answer)


def test_records_that_cancel_in_the_histogram_count_for_nothing_under_a_cap() -> None:
    """Line of 3, the middle count public: 0 -> 1 and 1 -> 2 show as one record from 0 to 2."""
    bracket = longest_blowfish([[0, 1, 0]], line(3), at_most_records=1)
    assert (bracket.lower, bracket.upper) == (2, 2)
    assert oracle.sensitivity([[0, 1, 0]], line(3), 2, cap=1) == 2
    assert bracket.witness is not None
    assert len(bracket.witness.transitions) == 2


@settings(max_examples=60, deadline=None)
@given(problems(low=0, high=1))
def test_the_value_settles_where_the_multisets_end(problem: tuple[Matrix, Graph, bool]) -> None:
    matrix, graph, bottom = problem
    checked = blowfish_problem(matrix, graph, bottom=bottom)
    found = list(minimal_sums(differences(checked.class_columns)))
    settled = max([1, *map(len, found)])
    assert settled <= 4
    bracket = longest_blowfish(matrix, graph, bottom=bottom)
    expected = [oracle.sensitivity(matrix, graph, n, bottom=bottom) for n in range(1, settled + 1)]
    assert (bracket.lower, bracket.upper) == (max(expected), max(expected))
    check_witness(bracket, matrix, graph, bottom)
    assert oracle.sensitivity(matrix, graph, min(5, settled + 1), bottom=bottom) <= max(expected)


def test_further_records_never_make_more_neighbours() -> None:
    # both records change along secret pairs; an idle third record can repair half of it along a non-edge
    matrix, graph = [[1, 1, 0, 0, 0]], full(5)
    graph[0][4] = graph[4][0] = False
    assert are_neighbours_records([1, 2], [2, 1], matrix, graph).neighbours
    verdict = are_neighbours_records([1, 2, 4], [2, 1, 4], matrix, graph)
    assert not verdict.neighbours
    assert verdict.instead == (2, 2, 0)


def test_the_relation_is_not_symmetric() -> None:
    matrix, graph = [[1, 1, 0, 0, 0]], full(5)
    graph[0][4] = graph[4][0] = False
    assert are_neighbours_records([1, 2], [3, 0], matrix, graph).neighbours
    assert are_neighbours_records([1, 2], [4, 0], matrix, graph).neighbours
    assert not are_neighbours_records([4, 0], [1, 2], matrix, graph).neighbours


def test_many_idle_records_are_quick() -> None:
    matrix, graph = margins((2, 2, 2), [[0], [1]]), attribute((2, 2, 2))
    idle = [i % 8 for i in range(4000)]
    # as many of each kind as a repair can need are looked at, however many there are
    assert len(_useful(blowfish_problem(matrix, graph), idle, 2)) <= 8 * 60
    verdict = are_neighbours_records([0, 4, *idle], [4, 0, *idle], matrix, graph)
    assert not verdict.neighbours
    assert verdict.instead is not None
    assert oracle.image(oracle.columns_of(matrix, 8, False), verdict.instead) == oracle.image(
        oracle.columns_of(matrix, 8, False), (0, 4, *idle)
    )


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 1)), min_size=1, max_size=5, unique=True).map(
        lambda vs: [v for v in vs if any(v)]
    )
)
def test_minimal_sums_and_their_length(vectors: list[tuple[int, int]]) -> None:
    found = list(minimal_sums(vectors))
    assert len(set(found)) == len(found)
    bound = length_bound(vectors)[0]
    assert all(len(multiset) <= bound for multiset in found)
    if vectors:
        sharper = block_bound(vectors, Effort())[0]
        assert max([0, *map(len, found)]) <= sharper <= bound
    sizes = range(1, 6)
    zero = {
        m
        for size in sizes
        for m in itertools.combinations_with_replacement(range(len(vectors)), size)
        if all(sum(vectors[j][i] for j in m) == 0 for i in (0, 1))
    }
    minimal = {
        m
        for m in zero
        if not any(tuple(p) in zero for size in range(1, len(m)) for p in itertools.combinations(m, size))
    }
    assert {m for m in found if len(m) <= 5} == minimal
    assert set(minimal_sums(vectors, longest=3)) == {m for m in minimal if len(m) <= 3}


@pytest.mark.parametrize(
    ("shape", "cuboids", "count", "longest"),
    [((2, 2), [[0], [1]], 12, 4), ((2, 3), [[0], [1]], 336, 8), ((2, 2, 2), [[0], [1], [2]], 2361, 10)],
)
def test_lengths_of_one_way_margins(
    shape: tuple[int, ...], cuboids: list[list[int]], count: int, longest: int
) -> None:
    points = sorted(set(zip(*margins(shape, cuboids))))
    found = list(minimal_sums(differences(points)))
    assert (len(found), max(map(len, found))) == (count, longest)
    bounds = length_bound(differences(points))[0], block_bound(differences(points), Effort())[0]
    assert longest <= bounds[1] <= bounds[0]


@pytest.mark.parametrize("r", [2, 3, 4, 5])
def test_affinely_independent_classes_give_cycles(r: int) -> None:
    points = [tuple(int(i == j) for j in range(r)) for i in range(r)]
    assert affinely_independent(points)
    assert length_bound(differences(points)) == (r, "affinely independent classes")
    steps = differences(points)
    by_search = {tuple(sorted(steps[j] for j in found)) for found in minimal_sums(steps)}
    by_cycles = {
        tuple(sorted(tuple(b - a for a, b in zip(points[c], points[e])) for c, e in cycle))
        for cycle in simple_cycles(r)
    }
    assert by_search == by_cycles


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.booleans(), st.data())
def test_disjoint_counts_agree_with_the_literal_definition(
    labels: list[int], bottom: bool, data: st.DataObject
) -> None:
    cells = len(labels)
    matrix = [[int(label == c) for label in labels] for c in range(3)]
    size = cells + bottom
    graph = [[False] * size for _ in range(size)]
    for i, j in itertools.combinations(range(size), 2):
        graph[i][j] = graph[j][i] = data.draw(st.booleans())
    bracket = longest_blowfish(matrix, graph, bottom=bottom)
    records = min(4, len(set(blowfish_problem(matrix, graph, bottom=bottom).labels)))
    expected = max(oracle.sensitivity(matrix, graph, n, bottom=bottom) for n in range(1, records + 1))
    assert (bracket.lower, bracket.upper) == (expected, expected)
    check_witness(bracket, matrix, graph, bottom)


def test_full_graph_one_margin_is_twice_the_classes_of_two_or_more() -> None:
    labels = [0, 0, 1, 1, 1, 2, 3, 3, 4]
    matrix = [[int(label == c) for label in labels] for c in range(5)]
    bracket = longest_blowfish(matrix, full(9))
    assert (bracket.lower, bracket.upper) == (6, 6)
    check_witness(bracket, matrix, full(9))
    capped = longest_blowfish(matrix, full(9), at_most_records=2)
    assert (capped.lower, capped.upper) == (4, 4)


def test_a_million_cells_from_class_facts() -> None:
    side = 1000
    facts = ClassFacts(
        sizes=(side,) * side,
        members=lambda c: ((c, j) for j in range(side)),
        is_edge=lambda x, y: (x[0] == y[0]) != (x[1] == y[1]),  # type: ignore[index]
        crossing=lambda: (((a, j), (a + 1, j)) for a in range(side - 1) for j in range(side)),
        inside=lambda: (((a, 0), (a, 1)) for a in range(side)),
        label=lambda x: x[0],  # type: ignore[index]
    )
    effort = Effort()
    bracket = longest_disjoint(facts, effort=effort)
    assert effort.spent < 100 * side  # a walk through the classes, not one over the cells
    assert (bracket.lower, bracket.upper) == (2 * side, 2 * side)
    assert bracket.witness is not None
    assert sum(facts.is_edge(x, y) for x, y in bracket.witness.transitions) == 1
    assert sorted(x[0] for x, _ in bracket.witness.transitions) == list(range(side))  # type: ignore[index]
    assert longest_disjoint(facts, at_most_records=7).lower == 14


def test_class_facts_without_crossing_pairs() -> None:
    facts = ClassFacts(
        sizes=(2, 2),
        members=lambda c: (2 * c, 2 * c + 1),
        is_edge=lambda x, y: {x, y} == {0, 1},
        crossing=lambda: (),
        inside=lambda: [(0, 1)],
        label=lambda x: x // 2,  # type: ignore[operator]
    )
    bracket = longest_disjoint(facts)
    assert (bracket.lower, bracket.upper, bracket.method) == (2, 2, "edges")


def test_a_search_without_effort_keeps_a_valid_bracket() -> None:
    matrix, graph = margins((3, 3), [[0], [1]]), attribute((3, 3))
    bracket = longest_blowfish(matrix, graph, effort=Effort(500_000))
    assert not bracket.exact
    assert bracket.upper is not None
    assert 10 <= bracket.lower <= bracket.upper
    check_witness(bracket, matrix, graph)
    # the capped search is exact, and the uncapped bound is above it (with caps of 3 and 4, a minute each: 6 and 8)
    capped = longest_blowfish(matrix, graph, at_most_records=2)
    assert capped.exact
    assert capped.lower <= bracket.upper


def test_without_constraints_the_edges_decide() -> None:
    assert longest_blowfish([], line(5)).upper == 2
    prefix = [[int(j <= i) for j in range(5)] for i in range(5)]
    assert longest_blowfish([], line(5), query=prefix).upper == 1
    assert longest_blowfish([], line(5, 3), query=prefix).upper == 3
    with_bottom = [[bool(x) for x in row] for row in np.pad(np.zeros((3, 3)), (0, 1), constant_values=1)]
    with_bottom[3][3] = False
    assert longest_blowfish([], with_bottom, bottom=True).upper == 1
    nothing = [[False] * 3 for _ in range(3)]
    assert longest_blowfish([], nothing) == Bracket(
        0, 0, None, "no secret pairs", "Without secret pairs no two data sets are neighbours."
    )


def test_published_bound_and_where_it_fails() -> None:
    # sparse for all pairs, but the graph of the secret pairs misses the repair 1 -> 4 along a non-edge
    matrix, graph, value = CHECKED["theory-1-line6-two-counts"]
    bound = published_bound(matrix, graph)
    assert (bound.published, bound.proved, value) == (4, 6, 6)
    assert not bound.safe
    # sparse for the secret pairs only: nothing is proved, and the published 4 is below 8
    matrix, graph, value = CHECKED["theory-1-attribute-2x2x2-two-margins"]
    bound = published_bound(matrix, graph)
    assert (bound.published, bound.proved, value) == (4, None, 8)
    assert not bound.safe
    # complete graph: the published statement is right
    bound = published_bound(margins((3, 2), [[0]]), full(6))
    assert bound.safe
    assert (bound.published, bound.proved) == (6, 6)
    # not sparse at all
    assert published_bound(margins((2, 2), [[0], [1]]), full(4)).published is None


@settings(max_examples=80, deadline=None)
@given(problems(low=0, high=1))
def test_the_proved_form_of_the_published_bound_is_a_bound(problem: tuple[Matrix, Graph, bool]) -> None:
    matrix, graph, bottom = problem
    bound = published_bound(matrix, graph, bottom=bottom)
    upper = longest_blowfish(matrix, graph, bottom=bottom).upper
    assert upper is not None
    if bound.proved is not None:
        assert upper <= bound.proved
    if bound.safe:
        assert bound.published is not None
        assert upper <= bound.published


def test_more_counts_than_the_exact_search_takes() -> None:
    k = 40
    matrix = [[int(j // 2 == c) for j in range(k)] for c in range(k // 2)]
    bound = published_bound(matrix, full(k))
    assert not bound.lengths_exact
    assert bound.proved == 2 * (k // 2)
    assert longest_blowfish(matrix, full(k)).upper == 2 * (k // 2)


def test_wrong_input_is_refused() -> None:
    for call, code in (
        (lambda: longest_blowfish([[1, 0]], line(3)), "blowfish.matrix"),
        (lambda: longest_blowfish([[1, 0.5]], line(2)), "blowfish.matrix"),
        (lambda: longest_blowfish([], [[True]]), "blowfish.adjacency"),
        (lambda: longest_blowfish([], [[False, True], [False, False]]), "blowfish.adjacency"),
        (lambda: longest_blowfish([], [[0, 2], [2, 0]]), "blowfish.adjacency"),
        (lambda: longest_blowfish([], line(2), norm="l3"), "blowfish.norm"),
        (lambda: longest_blowfish([], line(2), query=[[1, 2, 3]]), "blowfish.query"),
        (lambda: longest_blowfish([], line(2), at_most_records=0), "blowfish.cap"),
        (lambda: are_neighbours_records([0], [0, 1], [], line(2)), "blowfish.records"),
        (lambda: are_neighbours_records([0], [2], [], line(2)), "blowfish.records"),
        (lambda: published_bound([[2, 0]], line(2)), "blowfish.not-counts"),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code == code


def test_a_list_of_moves_is_never_silently_cut() -> None:
    with pytest.raises(RefusedError) as caught:
        list(blowfish_moves([[1, 1, 0, 0]], line(4), max_moves=3))
    assert caught.value.code == "blowfish.max-moves"
    with pytest.raises(RefusedError) as caught:
        list(blowfish_moves(margins((3, 3), [[0], [1]]), attribute((3, 3)), effort=Effort(200_000)))
    assert caught.value.code == "blowfish.deadline"
    with pytest.raises(RefusedError):
        list(minimal_sums(differences(sorted(set(zip(*margins((3, 3), [[0], [1]]))))), effort=Effort(0)))


def test_minimal_and_repair_on_a_known_pair() -> None:
    matrix, graph, _ = CHECKED["theory-1-attribute-2x2-first-margin"]
    problem = blowfish_problem(matrix, graph)
    swap = [(0, 2), (3, 1)]
    assert is_minimal(problem, swap)
    # both along secret pairs; either record may take the non-edge between 0 and 3 instead
    assert find_repair(problem, swap) in {(2, 0), (3, 1)}


@pytest.mark.parametrize("graph", [attribute((2, 2, 2)), full(8), line(8)])
def test_one_relation_is_the_only_change(graph: Graph) -> None:
    matrix = margins((2, 2, 2), [[0, 1], [1, 2], [0, 2]])
    bracket = longest_blowfish(matrix, graph)
    assert (bracket.lower, bracket.upper, bracket.method) == (8, 8, "single relation")
    check_witness(bracket, matrix, graph)
    assert longest_blowfish(matrix, graph, at_most_records=3).upper == 0
    assert longest_blowfish(matrix, graph, at_most_records=4).upper == 8


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-2, 3), min_size=3, max_size=3, unique=True), st.booleans(), st.data())
def test_one_relation_agrees_with_the_literal_definition(
    row: list[int], query: bool, data: st.DataObject
) -> None:
    graph = [[False] * 3 for _ in range(3)]
    for i, j in itertools.combinations(range(3), 2):
        graph[i][j] = graph[j][i] = data.draw(st.booleans())
    weights = [[1, 2, -1], [0, 1, 1]] if query else None
    low, middle, high = sorted(row)
    records = (high - low) // np.gcd(high - middle, middle - low)
    bracket = longest_blowfish([row], graph, query=weights)
    expected = max(oracle.sensitivity([row], graph, n, query=weights) for n in range(1, int(records) + 2))
    assert (bracket.lower, bracket.upper) == (expected, expected)


def test_values_beyond_the_literal_oracle() -> None:
    # settled by listing all minimal multisets; Def. 4.4 (no policy graph) gives 6 for the first and 4 for the last
    three, two = margins((2, 2, 2), [[0], [1], [2]]), margins((2, 3), [[0], [1]])
    for matrix, graph, value in (
        (three, attribute((2, 2, 2)), 14),
        (three, full(8), 14),
        (two, attribute((2, 3)), 8),
        (two, full(6), 8),
    ):
        bracket = longest_blowfish(matrix, graph)
        assert (bracket.lower, bracket.upper) == (value, value)
        check_witness(bracket, matrix, graph)


@pytest.mark.parametrize(("shape", "cuboids"), [((2, 3), [[0], [1]]), ((2, 2, 2), [[0], [1], [2]])])
def test_minimal_sums_against_4ti2(shape: tuple[int, ...], cuboids: list[list[int]], tmp_path: Path) -> None:
    vectors = differences(sorted(set(zip(*margins(shape, cuboids)))))
    half = [v for v in vectors if v > tuple(-a for a in v)]
    rows = list(zip(*half))
    text = "\n".join(" ".join(map(str, row)) for row in rows)
    (tmp_path / "m.mat").write_text(f"{len(rows)} {len(half)}\n{text}\n")
    subprocess.run(["4ti2-graver", "-q", str(tmp_path / "m")], check=True, timeout=600)
    graver = [tuple(map(int, row.split())) for row in (tmp_path / "m.gra").read_text().splitlines()[1:]]
    # besides the pairs {v, -v}, a minimal multiset is a Graver element read with either sign
    expected = {tuple(sorted([v, tuple(-a for a in v)])) for v in half}
    for element in (e for g in graver if any(g) for e in (g, tuple(-a for a in g))):
        expected.add(
            tuple(
                sorted(
                    v if n > 0 else tuple(-a for a in v) for n, v in zip(element, half) for _ in range(abs(n))
                )
            )
        )
    assert {tuple(sorted(vectors[j] for j in found)) for found in minimal_sums(vectors)} == expected
