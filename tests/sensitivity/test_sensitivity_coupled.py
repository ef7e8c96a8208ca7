"""A policy graph and public facts together: the values of the theory, through the whole engine."""

import itertools
import random

import numpy as np
import pytest

import policygraph as pg
from policygraph.moves.blowfish.problem import dense_problem
from tests.strategies import SHAPES, literal_moves, power, queries, small_policies

LINE4, LINE6 = pg.Domain({"x": 4}), pg.Domain({"x": 6})
TWO, THREE, SIX = (
    pg.Domain({"a": 2, "b": 2}),
    pg.Domain({"a": 2, "b": 2, "c": 2}),
    pg.Domain({"a": 3, "b": 2}),
)
A, B = pg.Cuboid("a"), pg.Cuboid("b")

SECTION_1 = [
    ("line of 4", LINE4, pg.PolicyGraph.line(LINE4), [pg.count({"x": [0, 1]})], None, 4),
    (
        "line of 6",
        LINE6,
        pg.PolicyGraph.line(LINE6),
        [pg.count({"x": [0, 1]}), pg.count({"x": [2, 3]})],
        None,
        6,
    ),
    ("full 3x2", SIX, pg.PolicyGraph.full(SIX), [A], None, 6),
    ("full 2x2", TWO, pg.PolicyGraph.full(TWO), [A], None, 4),
    ("attribute, one", TWO, pg.PolicyGraph.attribute(TWO), [A], None, 2),
    ("attribute, both", TWO, pg.PolicyGraph.attribute(TWO), [A, B], None, 4),
    ("two records", THREE, pg.PolicyGraph.attribute(THREE), [A, B], 2, 4),
    ("three records", THREE, pg.PolicyGraph.attribute(THREE), [A, B], 3, 6),
    ("four records", THREE, pg.PolicyGraph.attribute(THREE), [A, B], 4, 8),
    ("all sizes", THREE, pg.PolicyGraph.attribute(THREE), [A, B], None, 8),
    ("total only", LINE4, pg.PolicyGraph.line(LINE4), [pg.Total()], None, 2),
    ("no edge", LINE4, pg.PolicyGraph.from_edges(LINE4, []), [pg.Total()], None, 0),
]


@pytest.mark.parametrize(
    ("name", "domain", "graph", "facts", "cap", "value"), SECTION_1, ids=[c[0] for c in SECTION_1]
)
def test_theory_section_1(name, domain, graph, facts, cap, value):
    policy = pg.Policy(domain, graph=graph, constraints=facts, at_most_records=cap)
    found = pg.sensitivity(pg.queries.identity(domain), policy)
    assert (found.value, found.kind) == (value, "exact")
    report = found.verify()
    assert not report.failed, str(report)
    assert all(c.passed for c in report.checks if c.name != "bound"), str(report)


def test_the_two_definitions_are_told_apart():
    query = pg.queries.identity(TWO)
    blowfish = pg.sensitivity(query, pg.Policy(TWO, graph=pg.PolicyGraph.full(TWO), constraints=[A]))
    induced = pg.sensitivity(query, pg.Policy(TWO, constraints=[A]))
    assert (blowfish.value, induced.value) == (4, 2)
    assert "Blowfish" in blowfish.definition
    assert "induced" in induced.definition


def test_one_margin_on_a_million_cells():
    domain = pg.Domain({"a": 1000, "b": 1000})
    policy = pg.Policy(domain, graph=pg.PolicyGraph.full(domain), constraints=[pg.Cuboid("a")])
    found = pg.sensitivity(pg.queries.identity(domain), policy)
    assert (found.value, found.kind) == (2000, "exact")


def test_large_problems_are_bounded_by_the_cap_or_refused():
    domain = pg.Domain({"a": 30, "b": 30})
    facts = [pg.Cuboid("a"), pg.Cuboid("b")]
    with pytest.raises(pg.RefusedError):
        pg.sensitivity(
            pg.queries.identity(domain),
            pg.Policy(domain, graph=pg.PolicyGraph.grid(domain), constraints=facts),
        )
    policy = pg.Policy(domain, graph=pg.PolicyGraph.grid(domain), constraints=facts, at_most_records=3)
    found = pg.sensitivity(pg.queries.identity(domain), policy)
    assert (found.value, found.kind) == (6, "upper")


def test_published_values_give_an_upper_bound_only():
    policy = pg.Policy(TWO, graph=pg.PolicyGraph.full(TWO), constraints=[pg.Cuboid("a", equals=[1, 0])])
    found = pg.sensitivity(pg.queries.identity(TWO), policy)
    assert (found.value, found.kind, found.lower) == (4, "upper", 0)


def test_moves_and_verdicts():
    policy = pg.Policy(LINE4, graph=pg.PolicyGraph.line(LINE4), constraints=[pg.count({"x": [0, 1]})])
    moves = list(policy.moves())
    assert max(move.size for move in moves) == 4
    assert policy.are_neighbours([0, 1, 0, 1], [1, 0, 1, 0])
    assert not policy.are_neighbours([0, 1, 0, 1], [0, 1, 0, 1])
    assert not policy.are_neighbours([0, 1, 0, 1], [0, 0, 1, 1])
    with pytest.raises(pg.RefusedError):
        policy.are_neighbours(np.array([9, 9, 9, 9]), np.array([8, 10, 9, 9]))


def literal(policy, most):
    """The largest histogram change over all data sets of up to so many records, straight from the definition."""
    from policygraph.moves.blowfish.problem import dense_problem
    from tests.oracles.blowfish import moves

    matrix, adjacency, _ = dense_problem(policy)
    bottom = policy.graph.bottom != "none"
    found = [
        sum(map(abs, change))
        for n in range(1, most + 1)
        for change in moves(matrix.tolist(), adjacency.tolist(), n, bottom=bottom)
    ]
    return max(found, default=0)


@pytest.mark.parametrize(
    ("graph", "facts"),
    [
        (pg.PolicyGraph.line(LINE4).with_bottom(), [pg.Total()]),
        (pg.PolicyGraph.line(LINE4).with_bottom(), [pg.count({"x": [0, 1]})]),
        (pg.PolicyGraph.full(LINE4).with_bottom(), [pg.count({"x": 0})]),
        (pg.PolicyGraph.from_edges(LINE4, [(0, 1), (1, pg.BOTTOM)]), [pg.Total()]),
        (pg.PolicyGraph.from_edges(LINE4, [(0, pg.BOTTOM), (2, 3)]), [pg.count({"x": [0, 2]})]),
        (pg.PolicyGraph.line(LINE4), [pg.count({"x": [0, 1]}), pg.StructuralZero([[3]])]),
        (pg.PolicyGraph.line(LINE4), [pg.LinearCount([({"x": [0, 1]}, 1), ({"x": 3}, 2)])]),
    ],
)
def test_small_policies_against_the_definition(graph, facts):
    policy = pg.Policy(LINE4, graph=graph, constraints=facts)
    found = pg.sensitivity(pg.queries.identity(LINE4), policy, effort=20_000_000)
    assert found.exact
    assert found.value == literal(policy, 4)
    assert not found.verify().failed


def test_verdicts_agree_with_the_definition_on_every_pair_of_small_tables():
    from itertools import combinations_with_replacement

    from policygraph.moves.blowfish.problem import dense_problem
    from tests.oracles.blowfish import change, neighbours

    policy = pg.Policy(LINE4, graph=pg.PolicyGraph.line(LINE4), constraints=[pg.count({"x": [0, 1]})])
    matrix, adjacency, _ = dense_problem(policy)
    tables = {}
    for records in combinations_with_replacement(range(4), 3):
        tables[records] = np.bincount(records, minlength=4)
    expected = {
        (
            tuple(np.bincount(one, minlength=4)),
            tuple(np.bincount(one, minlength=4) + np.array(change(one, two, 4))),
        )
        for one, two in neighbours(matrix.tolist(), adjacency.tolist(), 3)
    }
    for a in tables.values():
        for b in tables.values():
            if (a != b).any():
                assert bool(policy.are_neighbours(a, b)) == ((tuple(a), tuple(b)) in expected), (a, b)


# Every shape of small policy against the literal definition -------------------------------------------------------------


@pytest.mark.parametrize("shape", range(len(SHAPES)), ids=[str(s) for s in SHAPES])
@pytest.mark.parametrize("cap", [None, 1, 2, 3])
def test_values_and_moves_are_those_of_the_definition(shape, cap):
    """The cap counts records added to and removed from the histogram, in values and in the list of moves."""
    rng = random.Random(shape)
    for plain in small_policies(shape, [SHAPES[shape]]):
        policy = pg.Policy(plain.domain, plain.graph, plain.constraints, at_most_records=cap)
        moves, settled = literal_moves(
            policy
        )  # a public table of all cells is the one that does not settle with four
        listed = {tuple(dict(m.change).get(c, 0) for c in range(policy.domain.size)) for m in policy.moves()}
        opposite = {tuple(-x for x in m) for m in listed}
        assert moves <= listed | opposite, policy.to_spec()
        assert not settled or listed <= moves | {tuple(-x for x in m) for m in moves}, policy.to_spec()
        for query in rng.sample(queries(policy.domain, rng), 2):
            for norm in ("l1", "l2"):
                found = pg.sensitivity(query, policy, norm=norm)
                true = max((power(query, move, norm) for move in moves), default=0)
                unit = query.unit if norm == "l1" else query.unit**2
                assert found.power >= true * unit, (policy.to_spec(), query.to_spec())
                assert found.exact, (policy.to_spec(), query.to_spec())
                assert not settled or found.power == true * unit, (policy.to_spec(), query.to_spec())
                assert (found.witness is None) == (found.power == 0)
                if found.witness is not None:
                    before, after = found.table("before"), found.table("after")
                    answer = policy.are_neighbours(before, after)
                    assert answer, (policy.to_spec(), answer.reason)


def test_the_cap_of_the_issue():
    """Line of 3, the middle count public, at most one record: 2, although two records change."""
    domain = pg.Domain({"x": 3})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain), [pg.Cells(["x"], [1])], at_most_records=1)
    found = pg.sensitivity(pg.queries.identity(domain), policy)
    assert (found.value, found.kind) == (2, "exact")
    assert policy.are_neighbours(found.table("before"), found.table("after"))
    assert [{c: abs(x) for c, x in move.change} for move in policy.moves()] == [{0: 1, 2: 1}]


@pytest.mark.parametrize("shape", [{"x": 3}, {"x": 2}, {"a": 2, "b": 2}], ids=str)
def test_neighbours_with_absent_records_are_those_of_the_definition(shape):
    """All pairs of tables with at most four records together: none is lost where a record vanishes as another appears."""
    from tests.oracles.blowfish import change, neighbours, within

    records = 4
    for plain in small_policies(7, [shape])[:: 1 if shape == {"x": 2} else 3]:
        if plain.graph.bottom == "none":
            continue
        matrix, adjacency, keep = dense_problem(plain)
        if not len(keep):
            continue
        expected = set()
        for n in range(1, records + 1):
            for one, two in neighbours(matrix.tolist(), adjacency.tolist(), n, bottom=True):
                a = np.bincount(one, minlength=len(keep) + 1)[:-1]
                expected.add((tuple(a), tuple(a + np.array(change(one, two, len(keep))))))
        tables = [
            np.array(t) for t in itertools.product(range(records + 1), repeat=len(keep)) if sum(t) <= records
        ]
        for cap in (None, 1):
            policy = pg.Policy(plain.domain, plain.graph, plain.constraints, at_most_records=cap)
            for a in tables:
                for b in tables:
                    if a.sum() + b.sum() > records or (a == b).all():
                        continue
                    true = (tuple(a), tuple(b)) in expected and within(tuple(b - a), cap)
                    wide = np.zeros((2, policy.domain.size), dtype=np.int64)
                    wide[:, keep] = a, b
                    assert bool(policy.are_neighbours(*wide)) == true, (policy.to_spec(), a, b)
