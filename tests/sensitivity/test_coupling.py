"""Which parts of a table a move can touch together, against listings of all moves, and what charges on parts come to."""

import json
import random
import sys
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.curator.ledger.rules import ChargedPart, Posted, compose
from policygraph.errors import RefusedError
from policygraph.sensitivity.coupling import Circuits, MoveCover
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


def inside(cover, change):
    """Whether the cells of a change lie in one set of the cover."""
    cells = [c for c, x in enumerate(change) if x]
    return bool(np.any(np.asarray(cover.sets[:, cells].sum(axis=1)).ravel() == len(cells)))


def check_shown(policy, found, one, other):
    """A move that is shown touches both parts, and the two data sets that are shown are neighbours that differ by it."""
    assert found
    assert found.reason
    if found.move is not None:
        touched = set(found.move.cells.tolist())
        assert touched & set(one)
        assert touched & set(other)
        assert found.look_alikes
    if found.witness is not None:
        size = policy.domain.size
        before, after = (np.zeros(size, dtype=np.int64) for _ in range(2))
        for table, rows in ((before, found.witness.before), (after, found.witness.after)):
            for cell, amount in rows:
                table[cell] = amount
        assert policy.are_neighbours(before, after)
        assert np.array_equal(after - before, [dict(found.move.change).get(c, 0) for c in range(size)])


def worst_case(moves, charges):
    """The literal sum: over all moves, the largest sum of the charges whose cells the move changes."""
    return max(
        (
            sum((loss for loss, cells in charges if any(move[c] for c in cells)), Fraction(0))
            for move in moves
        ),
        default=Fraction(0),
    )


def composed(policy, charges, kind=pg.Epsilon):
    posted = [Posted(kind(loss), 1, ChargedPart.of("data", cells)) for loss, cells in charges]
    total = compose(posted, policy.fingerprint, json.dumps(policy.to_spec()))
    return total.pure if kind is pg.Epsilon else total.rho


@st.composite
def charges_on(draw, size):
    losses = st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(3, 4)])
    cells = st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True)
    return draw(st.lists(st.tuples(losses, cells), min_size=1, max_size=4))


@settings(max_examples=60, deadline=None)
@given(MATRICES, st.data())
def test_induced_moves_lie_in_one_set_and_two_parts_are_decided_exactly(matrix, data):
    policy = policy_of(matrix)
    size = policy.domain.size
    parts = [part for part in data.draw(split(size)) if part]
    cover = MoveCover.of(policy)
    moves = [[dict(m.change).get(c, 0) for c in range(size)] for m in policy.moves()]
    assert all(inside(cover, move) for move in moves)
    for one, other in combinations(parts, 2):
        listed = [move for move in moves if crosses(labels_of([one, other], size), move)]
        found = cover.coupling(one, other)
        assert bool(found) == bool(listed) == cover.meet(one, other)
        if found:
            assert found.move.is_minimal
            assert found.witness is not None
            check_shown(policy, found, one, other)
    charges = data.draw(charges_on(size))
    for kind in (pg.Epsilon, pg.Rho):
        assert worst_case(moves, charges) <= composed(policy, charges, kind) <= sum(c for c, _ in charges)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_published_values_only_take_moves_away(data):
    size = data.draw(st.integers(2, 4))
    matrix = data.draw(
        st.lists(st.lists(st.integers(0, 2), min_size=size, max_size=size), min_size=1, max_size=2)
    )
    matrix = [[1] * size, *matrix]
    table = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    values = [sum(a * x for a, x in zip(row, table, strict=True)) for row in matrix]
    policy = policy_of(matrix, values)
    cover = MoveCover.of(policy)
    pairs = neighbour_pairs(matrix, tables(matrix, values, max(values), size))
    moves = [[y - x for x, y in zip(a, b, strict=True)] for a, b in pairs]
    assert all(inside(cover, move) for move in moves)
    charges = data.draw(charges_on(size))
    assert worst_case(moves, charges) <= composed(policy, charges)
    for one, other in combinations([part for part in data.draw(split(size)) if part], 2):
        found = cover.coupling(one, other)
        if found:
            check_shown(policy, found, one, other)
        else:
            assert not any(crosses(labels_of([one, other], size), move) for move in moves)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_edges_give_the_exact_sum(data):
    size = data.draw(st.integers(2, 7))
    domain = pg.Domain({"a": size})
    pairs = data.draw(st.lists(st.sampled_from(list(combinations(range(size), 2))), max_size=6))
    graph = pg.PolicyGraph.from_edges(domain, pairs)
    if data.draw(st.booleans()):
        graph = graph.with_bottom()
    policy = pg.Policy(domain, graph)
    moves = [[int(c == v) - int(c == u) for c in range(size)] for u, v in pairs]
    moves += [[int(c == v) for c in range(size)] for v in range(size)]
    charges = data.draw(charges_on(size))
    assert composed(policy, charges) == worst_case(moves, charges)
    cover = MoveCover.of(policy)
    for one, other in combinations([part for part in data.draw(split(size)) if part], 2):
        found = cover.coupling(one, other)
        assert bool(found) == any(crosses(labels_of([one, other], size), move) for move in moves)
        if found:
            assert graph.has_edge(*(cell for cell, _ in found.move.change))
            check_shown(policy, found, one, other)


@settings(max_examples=40, deadline=None)
@given(
    MATRICES, st.sampled_from(["worst-case", "positive", "markov"]), st.sampled_from([None, 1, 2]), st.data()
)
def test_every_strength_and_cap_stays_inside_the_cover(matrix, strength, cap, data):
    policy = policy_of(matrix, strength=strength, at_most_records=cap)
    size = policy.domain.size
    cover = MoveCover.of(policy)
    moves = [[dict(m.change).get(c, 0) for c in range(size)] for m in policy.moves()]
    assert all(inside(cover, move) for move in moves)
    charges = data.draw(charges_on(size))
    assert worst_case(moves, charges) <= composed(policy, charges)
    for one, other in combinations([part for part in data.draw(split(size)) if part], 2):
        found = cover.coupling(one, other)
        if found:
            check_shown(policy, found, one, other)


def test_row_sums_split_and_column_sums_couple():
    domain = pg.Domain({"row": 3, "column": 4})
    rows = [list(range(4 * r, 4 * r + 4)) for r in range(3)]
    by_row, by_column = (MoveCover.of(pg.Policy(domain, constraints=[pg.Cuboid(n)])) for n in domain.names)
    assert by_row.together(rows) == [(0,), (1,), (2,)]
    assert by_column.together(rows) == [(0, 1, 2)]
    assert by_column.coupling(rows[0], rows[1]).move.size == 2
    both = MoveCover.of(pg.Policy(domain, constraints=[pg.Cuboid("row"), pg.Cuboid("column")]))
    assert both.coupling(rows[0], rows[1]).move.size == 4
    # The known row sums lie across the two parts, but two columns of zeros leave nothing to couple.
    zeros = pg.StructuralZero([{"column": [1, 2, 3]}])
    alone = MoveCover.of(pg.Policy(domain, constraints=[pg.Cuboid("row"), zeros]))
    assert not alone.coupling([0, 1], [4, 5])


def test_a_sum_across_parts_need_not_couple_them():
    """Two public sums across the parts fix both cells, so that nothing moves between them."""
    assert MoveCover.of(policy_of([[1, 1, 0], [1, -1, 0]])).together([[0], [1], [2]]) == [(0,), (1,), (2,)]


def test_cells_in_no_part_can_carry_the_coupling():
    found = MoveCover.of(policy_of([[1, 1, 0], [0, 1, 1]])).coupling([0], [2])
    assert str(found.move) in ("+(0) -(1) +(2)", "-(0) +(1) -(2)")
    assert not MoveCover.of(policy_of([[1, 1, 0, 0], [0, 0, 1, 1]])).coupling([0], [2])


def test_one_record_more_or_less_touches_one_cell():
    domain = pg.Domain({"a": 5})
    assert MoveCover.of(pg.Policy(domain)).together([[0, 1], [1, 2], [4]]) == [(0,), (0, 1), (1,), (2,)]
    assert composed(pg.Policy(domain), [(1, [0, 1]), (1, [1, 2]), (1, [4])]) == 2


def test_large_tables_use_sums_and_components(monkeypatch):
    """What is too large to reduce is decided by which sums share cells, or by the components of the graph; huge domains are refused."""
    domain = pg.Domain({"place": 300, "age": 100, "sex": 2})
    cover = MoveCover.of(
        pg.Policy(domain, constraints=[pg.Cuboid("place", "age"), pg.Cuboid("place", "sex")])
    )
    place = np.arange(domain.size) // 200
    assert cover.rule == "sums"
    assert not cover.coupling(np.flatnonzero(place == 0), np.flatnonzero(place == 1))
    found = cover.coupling([0], [199])
    assert found
    assert found.move is None
    line = pg.Policy(domain, pg.PolicyGraph.line(domain, "age"))
    assert MoveCover.of(line).rule == "edges"
    monkeypatch.setattr(sys.modules[MoveCover.__module__], "EDGES", 1000)
    cover = MoveCover.of(line)
    assert cover.rule == "components"
    assert not cover.coupling([0], [1])
    assert cover.coupling([0], [198])
    with pytest.raises(RefusedError) as refused:
        MoveCover.of(pg.Policy(pg.Domain({"a": 10**6, "b": 10})))
    assert refused.value.code == "coupling.size"


def test_what_a_strength_rules_out_is_not_shown():
    """The one minimal change is (1, 2, ...): more than a simple graph or a Markov step allows. The charges add up all the same."""
    assert MoveCover.of(policy_of([[2, -1]])).coupling([0], [1]).move is not None
    for more in ({"strength": "markov"}, {"at_most_records": 1}):
        found = MoveCover.of(policy_of([[2, -1]], **more)).coupling([0], [1])
        assert found
        assert found.move is None
    network = pg.Network(3)
    facts = [pg.LinearCount([(network.cell(0), 2), (network.cell(1), -1)])]
    assert MoveCover.of(pg.Policy(network, constraints=facts)).coupling([0], [1]).move is None


def test_blowfish_repairs_couple_parts_that_no_edge_and_no_fact_joins():
    """The facts split over the parts and no edge crosses them, yet a repair leads from one part to the other."""
    domain = pg.Domain({"a": 4})
    graph = pg.PolicyGraph.from_edges(domain, [(0, 1)])
    policy = pg.Policy(domain, graph, [pg.LinearCount([((1,), 1), ((2,), 1)])])
    parts = [[0, 1, 2], [3]]
    adjacency = [[graph.has_edge(u, v) for v in range(4)] for u in range(4)]
    listed = blowfish_oracle.moves([[0, 1, 1, 0]], adjacency, 2)
    assert (-1, 1, -1, 1) in listed
    assert Circuits.of([[0, 1, 1, 0]]).between(np.array(labels_of(parts, 4))) is None
    found = MoveCover.of(policy).coupling(*parts)
    assert tuple(dict(found.move.change).get(c, 0) for c in range(4)) in listed
    check_shown(policy, found, *parts)


@pytest.mark.parametrize("shape", [{"x": 1}, {"x": 2}, {"x": 3}, {"a": 2, "b": 2}], ids=str)
def test_parts_under_every_small_graph_with_facts(shape):
    """Bottom everywhere, somewhere and nowhere; one cell, all cells; capped or not."""
    rng = random.Random(1)
    for plain in small_policies(3, [shape]):
        for cap in (None, 1):
            policy = pg.Policy(plain.domain, plain.graph, plain.constraints, at_most_records=cap)
            moves, settled = literal_moves(policy)
            size = policy.domain.size
            cover = MoveCover.of(policy)
            assert all(inside(cover, move) for move in moves), policy.to_spec()
            order = rng.sample(range(size), size)
            for cut in range(1, size):
                one, other = order[:cut], order[cut:]
                crossing = any(crosses(labels_of([one, other], size), move) for move in moves)
                found = cover.coupling(one, other)
                assert found or not crossing, (policy.to_spec(), one)
                assert not settled or bool(found) == crossing, (policy.to_spec(), one)
                if found:
                    check_shown(policy, found, one, other)
            charges = [(Fraction(1, 1 + n), rng.sample(range(size), rng.randint(1, size))) for n in range(3)]
            literal = worst_case([*moves, *np.eye(size, dtype=int).tolist()], charges)
            assert worst_case(moves, charges) <= composed(policy, charges)
            assert not settled or composed(policy, charges) == literal, (policy.to_spec(), charges)


def test_blowfish_edges_that_keep_the_facts_are_the_only_moves():
    domain = pg.Domain({"a": 2, "b": 3})
    graph = pg.PolicyGraph.line(domain, "b")
    cover = MoveCover.of(pg.Policy(domain, graph, [pg.Cuboid("a")]))
    assert not cover.coupling([0, 1, 2], [3, 4, 5])
    assert str(cover.coupling([0, 3], [1, 4]).move) == "-(0, 0) +(0, 1)"
    valued = MoveCover.of(pg.Policy(domain, graph, [pg.Cuboid("a", equals=[1, 1])])).coupling([0, 3], [1, 4])
    assert valued.witness is None
    assert "unless the published values forbid it" in valued.reason
    big = pg.Domain({"a": 500})
    wide = MoveCover.of(pg.Policy(big, pg.PolicyGraph.line(big), [pg.Total()]))
    assert wide.rule == "all"
    assert wide.coupling([0], [400])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_loss_of_real_releases_is_at_most_what_is_composed(data):
    """Laplace noise on the answers of each part, calibrated to the policy: on every neighbouring pair the exact loss is within the account."""
    size = data.draw(st.integers(2, 5))
    domain = pg.Domain({"a": size})
    row = data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    facts = [pg.LinearCount([((c,), x) for c, x in enumerate(row) if x])] if any(row) else []
    pairs = data.draw(st.lists(st.sampled_from(list(combinations(range(size), 2))), min_size=1, max_size=4))
    graph = data.draw(st.sampled_from([None, pg.PolicyGraph.from_edges(domain, pairs)]))
    policy = pg.Policy(domain, graph, facts)
    if policy.definition == "blowfish":
        moves = list(literal_moves(policy)[0])
    else:
        moves = [[dict(m.change).get(c, 0) for c in range(size)] for m in policy.moves()]
    charges = data.draw(charges_on(size))
    ready = []
    for loss, cells in charges:
        query = pg.queries.matrix(domain, [[int(c == cell) for c in range(size)] for cell in cells])
        ready.append((query, pg.Laplace().calibrate(query, policy, pg.Epsilon(loss)).parameter))
    for move in moves:
        lost = sum(
            (
                Fraction(int(np.abs(query.answer(np.array(move))).sum())) / scale
                for query, scale in ready
                if scale
            ),
            Fraction(0),
        )
        assert lost <= composed(policy, charges)


def test_releases_across_a_coupling_margin_lose_the_sum():
    """Two Laplace releases of loss 1 each, on rows coupled by column sums, lose 2 on the pair that is shown."""
    domain = pg.Domain({"row": 2, "column": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("column")])
    found = MoveCover.of(policy).coupling([0, 1], [2, 3])
    change = np.array([dict(found.move.change).get(c, 0) for c in range(4)])
    lost = Fraction(0)
    for part in ([[1, 0, 0, 0], [0, 1, 0, 0]], [[0, 0, 1, 0], [0, 0, 0, 1]]):
        query = pg.queries.matrix(domain, part)
        ready = pg.Laplace().calibrate(query, policy, pg.Epsilon(1))
        lost += Fraction(int(np.abs(query.answer(change)).sum())) / ready.parameter
    assert lost == 2 == composed(policy, [(1, [0, 1]), (1, [2, 3])])
