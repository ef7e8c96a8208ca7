"""A policy graph and public facts together: the values of the theory, through the whole engine."""

import numpy as np
import pytest

import policygraph as pg

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
    assert report.ok, str(report)
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
    from policygraph.public.sensitivity.coupled import dense_problem
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
    found = pg.sensitivity(pg.queries.identity(LINE4), policy, time_limit=20)
    assert found.exact
    assert found.value == literal(policy, 4)
    assert found.verify().ok


def test_verdicts_agree_with_the_definition_on_every_pair_of_small_tables():
    from itertools import combinations_with_replacement

    from policygraph.public.sensitivity.coupled import dense_problem
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
