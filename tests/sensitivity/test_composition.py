"""Parallel composition decided on the moves, against listings of all moves; stretches between policy graphs."""

import random
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.curator.ledger.rules import tally
from policygraph.curator.ledger.statement import state
from policygraph.errors import InputError, RefusedError
from policygraph.sensitivity.composition import Parallel, parallel
from policygraph.sensitivity.composition_matroid import Circuits
from policygraph.sensitivity.composition_stretch import stretch
from tests.oracles import blowfish as blowfish_oracle
from tests.oracles.fibres import neighbour_pairs, tables
from tests.oracles.graver import minimal_moves
from tests.strategies import literal_moves, small_policies

MATRICES = st.integers(2, 5).flatmap(
    lambda n: st.lists(st.lists(st.integers(-1, 2), min_size=n, max_size=n), min_size=1, max_size=3)
)


def labels_of(parts, size):
    labels = [-1] * size
    for number, part in enumerate(parts):
        for cell in part:
            labels[cell] = number
    return labels


def crosses(labels, change):
    return len({labels[c] for c, x in enumerate(change) if x and labels[c] >= 0}) > 1


def policy_of(matrix, values=None, **more):
    domain = pg.Domain({"a": len(matrix[0])})
    facts = []
    for at, row in enumerate(matrix):
        terms = [((cell,), x) for cell, x in enumerate(row) if x]
        if terms:
            facts.append(pg.LinearCount(terms, equals=None if values is None else values[at]))
    return pg.Policy(domain, constraints=facts or [pg.StructuralZero([(0,)])], **more)


@st.composite
def split(draw, size):
    labels = draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size))
    return [[c for c in range(size) if labels[c] == part] for part in range(3)]


@settings(max_examples=120, deadline=None)
@given(MATRICES, st.data())
def test_circuits_couple_exactly_when_minimal_moves_do(matrix, data):
    size = len(matrix[0])
    labels = labels_of(data.draw(split(size)), size)
    circuit = Circuits.of(matrix).between(np.array(labels))
    if circuit is None:
        assert not any(crosses(labels, move) for move in minimal_moves(matrix, 4 if size > 4 else 6))
        return
    dense = [circuit.get(c, 0) for c in range(size)]
    assert crosses(labels, dense)
    assert not np.any(np.array(matrix, dtype=object) @ np.array(dense, dtype=object))
    largest = max(map(abs, dense))
    if (2 * largest + 1) ** size <= 200_000:
        found = minimal_moves(matrix, largest)
        assert tuple(dense) in found or tuple(-x for x in dense) in found


@settings(max_examples=60, deadline=None)
@given(MATRICES, st.data())
def test_parallel_agrees_with_all_minimal_moves(matrix, data):
    policy = policy_of(matrix)
    size = policy.domain.size
    parts = data.draw(split(size))
    verdict = parallel(policy, parts)
    labels = labels_of(parts, size)
    assert verdict.decided
    moves = list(policy.moves())
    zeros = set(policy.system.zeros.tolist())
    listed = [m for m in moves if len({labels[c] for c in m.cells.tolist() if labels[c] >= 0}) > 1]
    assert bool(verdict) == (not listed)
    if not verdict:
        assert verdict.move.is_minimal
        assert not zeros & set(verdict.move.cells.tolist())
        before, after = (np.zeros(size, dtype=np.int64) for _ in range(2))
        for table, rows in ((before, verdict.witness.before), (after, verdict.witness.after)):
            for cell, amount in rows:
                table[cell] = amount
        assert policy.are_neighbours(before, after)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_published_values_only_count_what_can_occur(data):
    size = data.draw(st.integers(2, 4))
    matrix = data.draw(
        st.lists(st.lists(st.integers(0, 2), min_size=size, max_size=size), min_size=1, max_size=2)
    )
    matrix = [[1] * size, *matrix]
    table = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    values = [sum(a * x for a, x in zip(row, table, strict=True)) for row in matrix]
    policy = policy_of(matrix, values)
    parts = data.draw(split(size))
    labels = labels_of(parts, size)
    verdict = parallel(policy, parts)
    assert verdict.decided
    pairs = neighbour_pairs(matrix, tables(matrix, values, max(values), size))
    coupled = any(crosses(labels, [y - x for x, y in zip(a, b, strict=True)]) for a, b in pairs)
    assert bool(verdict) == (not coupled)
    if not verdict:
        before = [dict(verdict.witness.before).get(c, 0) for c in range(size)]
        after = [dict(verdict.witness.after).get(c, 0) for c in range(size)]
        assert policy.are_neighbours(before, after)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_edges_against_all_pairs(data):
    size = data.draw(st.integers(2, 7))
    domain = pg.Domain({"a": size})
    pairs = data.draw(st.lists(st.sampled_from(list(combinations(range(size), 2))), max_size=6))
    graph = pg.PolicyGraph.from_edges(domain, pairs)
    if data.draw(st.booleans()):
        graph = graph.with_bottom()
    parts = data.draw(split(size))
    labels = labels_of(parts, size)
    verdict = parallel(pg.Policy(domain, graph), parts)
    assert bool(verdict) == (not any(-1 < labels[u] != labels[v] > -1 for u, v in pairs))
    if not verdict:
        (u, _), (v, _) = verdict.move.change
        assert graph.has_edge(u, v)


def test_row_sums_split_and_column_sums_couple():
    domain = pg.Domain({"row": 3, "column": 4})
    rows, columns = (pg.Policy(domain, constraints=[pg.Cuboid(name)]) for name in domain.names)
    assert parallel(rows, "row").loss([pg.Epsilon(1)] * 3) == pg.Epsilon(1)
    verdict = parallel(columns, "row")
    assert not verdict
    assert verdict.loss([pg.Epsilon(1)] * 3) == pg.Epsilon(3)
    assert verdict.move.size == 2
    both = pg.Policy(domain, constraints=[pg.Cuboid("row"), pg.Cuboid("column")])
    assert parallel(both, "row").move.size == 4
    # The known row sums lie across the two parts, but two columns of zeros leave nothing to couple.
    zeros = pg.StructuralZero([{"column": [1, 2, 3]}])
    assert parallel(pg.Policy(domain, constraints=[pg.Cuboid("row"), zeros]), [[0, 1], [4, 5]])


def test_a_sum_across_parts_need_not_couple_them():
    """Two public sums across the parts fix both cells, so that nothing moves between them."""
    policy = policy_of([[1, 1, 0], [1, -1, 0]])
    assert parallel(policy, [[0], [1], [2]])


def test_cells_in_no_part_can_carry_the_coupling():
    policy = policy_of([[1, 1, 0], [0, 1, 1]])
    verdict = parallel(policy, [[0], [2]])
    assert str(verdict.move) in ("+(0) -(1) +(2)", "-(0) +(1) -(2)")
    assert parallel(policy_of([[1, 1, 0, 0], [0, 0, 1, 1]]), [[0], [2]])


def test_structure_decides_huge_tables():
    domain = pg.Domain({"place": 10**6, "age": 10**6, "sex": 2})
    facts = [pg.Cuboid("place", "age"), pg.Cuboid("place", "sex")]
    assert parallel(pg.Policy(domain, constraints=facts), "place")
    line = pg.Policy(domain, pg.PolicyGraph.line(domain, "age"))
    assert parallel(line, "sex")
    with pytest.raises(RefusedError) as refused:
        parallel(line, "age")
    assert refused.value.code == "composition.size"


def test_capacity_and_strength_limit_the_moves():
    # The one minimal change is (1, 2, ...): more than a simple graph or a Markov step allows.
    policy = policy_of([[2, -1]])
    assert not parallel(policy, [[0], [1]])
    assert parallel(policy_of([[2, -1]], strength="markov"), [[0], [1]])
    assert parallel(policy_of([[2, -1]], at_most_records=2), [[0], [1]])
    assert not parallel(policy_of([[2, -1]], at_most_records=3), [[0], [1]])
    network = pg.Network(3)
    facts = [pg.LinearCount([(network.cell(0), 2), (network.cell(1), -1)])]
    assert parallel(pg.Policy(network, constraints=facts), [[0], [1]])
    with pytest.raises(InputError):
        parallel(pg.Policy(network), "a")


def test_positive_neighbours_are_listed():
    domain = pg.Domain({"a": 2, "b": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")], strength="positive")
    assert parallel(policy, "a").move.size == 4
    told = [pg.Cuboid("a", equals=[1, 1]), pg.Cuboid("b", equals=[1, 1])]
    verdict = parallel(pg.Policy(domain, constraints=told, strength="positive"), "a")
    assert not verdict
    assert not verdict.decided


def test_blowfish_repairs_couple_parts_that_no_edge_and_no_fact_joins():
    """The facts split over the parts and no edge crosses them, yet a repair leads from one part to the other."""
    domain = pg.Domain({"a": 4})
    graph = pg.PolicyGraph.from_edges(domain, [(0, 1)])
    policy = pg.Policy(domain, graph, [pg.LinearCount([((1,), 1), ((2,), 1)])])
    parts = [[0, 1, 2], [3]]
    adjacency = [[graph.has_edge(u, v) for v in range(4)] for u in range(4)]
    listed = blowfish_oracle.moves([[0, 1, 1, 0]], adjacency, 2)
    labels = labels_of(parts, 4)
    assert (-1, 1, -1, 1) in listed
    assert Circuits.of([[0, 1, 1, 0]]).between(np.array(labels)) is None
    verdict = parallel(policy, parts)
    assert not verdict
    found = [dict(verdict.move.change).get(c, 0) for c in range(4)]
    assert tuple(found) in listed
    assert crosses(labels, found)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_blowfish_against_the_literal_definition(data):
    size = data.draw(st.integers(2, 4))
    domain = pg.Domain({"a": size})
    pairs = data.draw(st.lists(st.sampled_from(list(combinations(range(size), 2))), min_size=1, max_size=3))
    row = data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size).filter(any))
    graph = pg.PolicyGraph.from_edges(domain, pairs)
    fact = pg.LinearCount([((c,), x) for c, x in enumerate(row) if x])
    parts = data.draw(split(size))
    labels = labels_of(parts, size)
    verdict = parallel(pg.Policy(domain, graph, [fact]), parts)
    assert verdict.decided
    adjacency = [[graph.has_edge(u, v) for v in range(size)] for u in range(size)]
    # One public count of records: minimal zero-sum sets have at most two changes, so three records show all.
    listed = {m for n in (1, 2, 3) for m in blowfish_oracle.moves([row], adjacency, n)}
    assert bool(verdict) == (not any(crosses(labels, move) for move in listed))
    if not verdict:
        assert tuple(dict(verdict.move.change).get(c, 0) for c in range(size)) in listed


def test_blowfish_edges_that_keep_the_facts_are_the_only_moves():
    domain = pg.Domain({"a": 2, "b": 3})
    graph = pg.PolicyGraph.line(domain, "b")
    policy = pg.Policy(domain, graph, [pg.Cuboid("a")])
    assert parallel(policy, "a")
    assert str(parallel(policy, "b").move) == "-(0, 0) +(0, 1)"
    told = pg.Policy(domain, graph, [pg.Cuboid("a", equals=[1, 1])])
    assert not parallel(told, "b").decided
    big = pg.Domain({"a": 500})
    wide = pg.Policy(big, pg.PolicyGraph.line(big), [pg.Total()])
    assert not parallel(wide, [[0], [1]]).decided


def test_parallel_release_across_a_coupling_margin_leaks_what_the_verdict_says():
    """Two Laplace releases of loss 1 each, on rows coupled by column sums, lose 2 on the pair that is shown."""
    domain = pg.Domain({"row": 2, "column": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("column")])
    verdict = parallel(policy, "row")
    change = np.array([dict(verdict.move.change).get(c, 0) for c in range(4)])
    lost = Fraction(0)
    for part in ([[1, 0, 0, 0], [0, 1, 0, 0]], [[0, 0, 1, 0], [0, 0, 0, 1]]):
        query = pg.queries.matrix(domain, part)
        ready = pg.Laplace().calibrate(query, policy, pg.Epsilon(1))
        lost += Fraction(int(np.abs(query.answer(change)).sum())) / ready.parameter
    assert lost == 2
    assert verdict.loss([pg.Epsilon(1), pg.Epsilon(1)]) == pg.Epsilon(2)


def test_losses_and_parts_are_checked():
    policy = policy_of([[1, 1, 1]])
    for parts in ([[0], [0]], [[5]], [[-1]], [[0.5]]):
        with pytest.raises(InputError) as wrong:
            parallel(policy, parts)
        assert wrong.value.code == "composition.parts"
    for losses in ([], [pg.Epsilon(1), pg.Rho(1)]):
        with pytest.raises(InputError) as kinds:
            Parallel(True, "").loss(losses)
        assert kinds.value.code == "composition.losses"
    assert Parallel(True, "").loss([pg.Rho(1), pg.Rho(2)]) == pg.Rho(2)
    assert parallel(policy, [])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_stretch_is_the_longest_shortest_path(data):
    import networkx

    size = data.draw(st.integers(2, 6))
    domain = pg.Domain({"a": size})
    graphs = []
    for _ in range(2):
        pairs = data.draw(
            st.lists(st.sampled_from(list(combinations(range(size), 2))), min_size=1, max_size=8)
        )
        graph = pg.PolicyGraph.from_edges(domain, pairs)
        graphs.append(graph.with_bottom() if data.draw(st.booleans()) else graph)
    one, other = (pg.Policy(domain, graph) for graph in graphs)
    plain = graphs[1].to_networkx()
    lengths = []
    for u, v in graphs[0].edges():
        reachable = u in plain and v in plain and networkx.has_path(plain, u, v)
        lengths.append(networkx.shortest_path_length(plain, u, v) if reachable else None)
    assert stretch(one, other) == (None if None in lengths else max(lengths))


def test_stretch_completes_the_statement_for_several_policies():
    domain = pg.Domain({"a": 4})
    line, full = (pg.Policy(domain, g(domain)) for g in (pg.PolicyGraph.line, pg.PolicyGraph.full))
    spent = {name: tally([(pg.Epsilon(1), 1)]) for name in ("line", "full")}
    steps = {("line", "full"): stretch(line, full), ("full", "line"): stretch(full, line)}
    made = state("d", None, None, spent, steps)
    assert (made.intersection, made.union) == (pg.Epsilon(2), pg.Epsilon(4))
    with pytest.raises(InputError) as facts:
        stretch(line, pg.Policy(domain, constraints=[pg.Total()]))
    assert facts.value.code == "composition.stretch"
    with pytest.raises(InputError):
        stretch(line, pg.Policy(pg.Domain({"b": 4}), pg.PolicyGraph.line(pg.Domain({"b": 4}))))


@pytest.mark.parametrize("shape", [{"x": 1}, {"x": 2}, {"x": 3}, {"a": 2, "b": 2}], ids=str)
def test_parts_under_every_small_graph_with_facts(shape):
    """Bottom everywhere, somewhere and nowhere; empty parts, one cell, all cells; capped or not."""
    rng = random.Random(1)
    for plain in small_policies(3, [shape]):
        for cap in (None, 1):
            policy = pg.Policy(plain.domain, plain.graph, plain.constraints, at_most_records=cap)
            moves, settled = literal_moves(policy)
            size = policy.domain.size
            order = rng.sample(range(size), size)
            cut = rng.randint(0, size)
            for parts in ([order[:cut], order[cut:]], [[c] for c in order], [order], [[]], [[], order[:1]]):
                labels = labels_of(parts, size)
                verdict = parallel(policy, parts)
                assert verdict.decided
                crossing = any(crosses(labels, move) for move in moves)
                assert not (crossing and verdict), (policy.to_spec(), parts)
                assert not settled or bool(verdict) == (not crossing), (policy.to_spec(), parts)
                if verdict.witness is not None:
                    before, after = (np.zeros(size, dtype=np.int64) for _ in range(2))
                    for table, rows in ((before, verdict.witness.before), (after, verdict.witness.after)):
                        for cell, count in rows:
                            table[cell] = count
                    assert policy.are_neighbours(before, after), (policy.to_spec(), parts)
