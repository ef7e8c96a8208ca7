"""The independent check, by itself: it accepts true certificates and refuses each that claims too little."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import policygraph as pg
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.queries.network_statistics import Triangles
from policygraph.sensitivity.certificate import Witness
from policygraph.sensitivity.verify import statistics
from policygraph.sensitivity.verify.certificates import CertifiedBound, verify
from policygraph.sensitivity.verify.moves import naive_moves
from policygraph.sensitivity.verify.neighbours import (
    BASIS_CELLS,
    check_neighbours,
    minimal_moves,
    pair_neighbours,
)
from policygraph.sensitivity.verify.statistics import _moved, _tables, verify_statistic
from policygraph.sensitivity.verify.tables import (
    CheckResult,
    Verification,
    answer,
    check_facts,
    power,
    public_sums,
)

LINE = pg.Domain({"x": 3})
SQUARE = pg.Domain({"a": 2, "b": 2})
CUBE = pg.Domain({"a": 2, "b": 2, "c": 2})
WIDE = pg.Domain({"a": 3, "b": 2, "c": 2})
FOUR = pg.Domain({"r": 4})
NET = pg.Network(4)
INCOME = pg.Measure("income", -2, 5)
CELLS = pg.queries.identity(SQUARE)

TRUE = {
    "sums, unbounded": (pg.queries.sums(SQUARE, [["a"], []], INCOME), pg.Policy(SQUARE)),
    "sums, full graph": (
        pg.queries.sums(SQUARE, [["a"]], INCOME),
        pg.Policy(SQUARE, pg.PolicyGraph.full(SQUARE)),
    ),
    "sums, attribute graph": (
        pg.queries.sums(SQUARE, [["a"], ["b"]], INCOME),
        pg.Policy(SQUARE, pg.PolicyGraph.attribute(SQUARE)),
    ),
    "averages": (
        pg.queries.averages(SQUARE, [["a"]], INCOME),
        pg.Policy(SQUARE, pg.PolicyGraph.full(SQUARE)),
    ),
    "cells, one margin": (CELLS, pg.Policy(SQUARE, constraints=[pg.Cuboid("a")])),
    "cells, two margins": (CELLS, pg.Policy(SQUARE, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])),
    "cells, graph and margin": (
        CELLS,
        pg.Policy(SQUARE, pg.PolicyGraph.attribute(SQUARE), constraints=[pg.Cuboid("a")]),
    ),
    "cells, with bottom": (CELLS, pg.Policy(SQUARE, pg.PolicyGraph.full(SQUARE).with_bottom())),
    "cells, positive": (
        CELLS,
        pg.Policy(SQUARE, constraints=[pg.Cuboid("a"), pg.Cuboid("b")], strength="positive"),
    ),
    "two margins of a cube": (
        pg.queries.cuboids(CUBE, [["a", "c"], ["b", "c"]], [2, 1]),
        pg.Policy(CUBE, constraints=[pg.Cuboid("a"), pg.Cuboid("c")]),
    ),
    "two margins of three by two, swaps": (
        pg.queries.cuboids(WIDE, [["a", "c"], ["b", "c"]]),
        pg.Policy(WIDE, constraints=[pg.Cuboid("a"), pg.Cuboid("b")], strength="markov"),
    ),
    "rows, one margin": (
        pg.queries.matrix(SQUARE, [[1, 2, 0, -1], [0, 3, 1, 0]]),
        pg.Policy(SQUARE, constraints=[pg.Cuboid("a")]),
    ),
    "cells, positive beside longer moves": (
        pg.queries.identity(FOUR),
        pg.Policy(FOUR, constraints=[pg.Sums([[0, 1, 2, 1], [2, 2, 1, 1]])], strength="positive"),
    ),
    "families": (CELLS, pg.Families(pg.Policy(SQUARE, constraints=[pg.Cuboid("a")]), 3, exactly=True)),
    "degrees": (pg.queries.adjacency(NET), pg.Policy(NET, constraints=[pg.Degrees()])),
    "known degrees": (pg.queries.adjacency(NET), pg.Policy(NET, constraints=[pg.Degrees([0, 1])])),
}


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("name", TRUE)
def test_true_certificates_hold_and_smaller_ones_do_not(name, norm):
    query, policy = TRUE[name]
    made = pg.sensitivity(query, policy, norm=norm)
    report = made.verify()
    assert report.ok, str(report)
    less = made.power - Fraction(1, 2)
    forged = [
        replace(made, power=less, lower_power=less, kind="exact"),
        replace(made, power=less, lower_power=Fraction(0), kind="upper", witness=None),
        replace(made, power=made.power + 1, lower_power=made.power + 1, kind="exact"),
    ]
    for claim in forged:
        assert claim.verify().failed, str(claim.verify())


def test_a_witness_must_be_a_pair_of_neighbours_with_equal_facts():
    policy = pg.Policy(SQUARE, constraints=[pg.Cuboid("a")])
    made = pg.sensitivity(CELLS, policy)
    leaves = replace(made, witness=Witness.of_change({0: 1, 2: -1}))
    long = replace(
        made,
        witness=Witness.of_change({0: 1, 1: -1, 2: 1, 3: -1}),
        lower_power=Fraction(4),
        power=Fraction(4),
    )
    for claim in (leaves, long):
        assert claim.verify().failed
    assert not check_facts(policy, {2: 1}, {0: 1}).passed
    assert check_facts(policy, {1: 1}, {0: 1}).passed
    assert check_neighbours(policy, {1: 1}, {0: 1}).passed
    assert not check_neighbours(policy, {1: 1, 2: 1}, {0: 1, 3: 1}).passed
    assert not check_neighbours(policy, {1: 1}, {1: 1}).passed


def test_secret_edges_of_a_network_by_hand():
    """The three edges of a triangle, some of them secret; facts are a function of the network."""
    network = pg.Network(3)

    def neighbours(secret, before, change, facts):
        graph = pg.PolicyGraph.from_edges(network, [(cell, pg.BOTTOM) for cell in secret])
        return pair_neighbours(pg.Policy(network, graph), before, change, facts)

    def nothing(table):
        return 0

    def number(table):
        return sum(table.values())

    assert neighbours([0], {0: 1}, {0: -1}, nothing) is True
    assert neighbours([0], {1: 1}, {1: -1}, nothing) is False
    assert neighbours([0, 1], {0: 1, 1: 1}, {0: -1, 1: -1}, nothing) is False
    # One edge for another keeps their number. Edge 2 could repair the first alone, unless it is secret as well.
    assert neighbours([0, 1], {0: 1}, {0: -1, 1: 1}, number) is False
    assert neighbours([0, 1, 2], {0: 1}, {0: -1, 1: 1}, number) is True
    assert (
        neighbours([0, 1, 2], {0: 1, 1: 1}, {0: -1, 1: -1, 2: 1}, lambda t: (t.get(0, 0) + t.get(2, 0)) % 2)
        is False
    )


def test_statistics_are_listed_in_full_on_small_networks():
    """The number of triangles of four nodes changes by at most two with an edge and by three with a node."""
    for policy, largest in ((pg.Policy(NET), 2), (NodePrivacy(NET), 3)):
        holds = verify_statistic(Triangles(NET), policy, "l1", largest, "")
        fails = verify_statistic(Triangles(NET), policy, "l1", largest - 1, "")
        assert (holds.ok, fails.failed) == (True, True), str(fails)
        assert f"largest change is {largest}, claimed {largest - 1}" in str(fails)
        assert verify_statistic(Triangles(NET), policy, "l2", largest**2, "").ok
        assert verify_statistic(Triangles(NET), policy, "l2", largest**2 - 1, "").failed
    pairs = verify_statistic(Triangles(pg.Network(3)), NodePrivacy(pg.Network(3)), "l1", 1, "").checks[0].text
    # Of three nodes each has two edges, so 6 pairs at each of 2 networks of the rest.
    assert pairs.startswith(f"{3 * 2 * 6} pairs")
    wide = verify_statistic(Triangles(pg.Network(6)), NodePrivacy(pg.Network(6)), "l1", 1, "a theorem")
    assert not wide.complete
    assert "a theorem" in str(wide)
    degrees = pg.Policy(NET, constraints=[pg.Degrees(equals=[1, 1, 1, 1])])
    assert verify_statistic(Triangles(NET), degrees, "l1", 0, "").ok


def test_minimal_vectors_are_found_literally():
    for rows, width in (([[1, 1, 1]], 3), ([[1, 1, 0, 0], [0, 0, 1, 1]], 4), ([[1, -2, 0], [0, 1, 1]], 3)):
        box = range(-3, 4)
        kernel = [
            v
            for v in np.stack(np.meshgrid(*[box] * width), axis=-1).reshape(-1, width).tolist()
            if any(v) and not any(np.array(rows) @ v)
        ]

        def below(h, g):
            return all(0 <= a <= b or b <= a <= 0 for a, b in zip(h, g, strict=True))

        minimal = {tuple(v) for v in kernel if not any(h != v and below(h, v) for h in kernel)}
        found = naive_moves(rows, width)
        assert {tuple(v) for v in found} | {tuple(-x for x in v) for v in found} == minimal


def test_answers_and_sums_are_counted_by_labels():
    table = {0: 2, 3: 1}
    assert sum(answer(CELLS, table).values()) == 3
    assert power(CELLS, {0: 2, 3: -1}, "l1") == 3
    assert power(CELLS, {0: 2, 3: -1}, "l2") == 5
    policy = pg.Policy(SQUARE, constraints=[pg.Cuboid("a")])
    assert sorted(public_sums(pg.Cuboid("a"), policy, table).values()) == [1, 2]
    degrees = pg.Policy(NET, constraints=[pg.Degrees()])
    for one, other in combinations(range(4), 2):
        cell = int(NET.pair_index(one, other))
        assert sorted(public_sums(pg.Degrees(), degrees, {cell: 1}).values()) == [1, 1]


def test_a_report_says_what_is_open():
    held, wrong, left = (
        CheckResult(name, passed, "why") for name, passed in (("a", True), ("b", False), ("c", None))
    )
    assert str(Verification((held,))).endswith("\nthe certificate holds")
    assert str(Verification((held, wrong, left))).endswith("\nthe certificate does NOT hold")
    text = str(Verification((held, left, CheckResult("d", None, "why"))))
    assert text.endswith("not everything could be checked again here: c and d undecided")
    assert text.splitlines()[:2] == ["passed  a: why", "open    c: why"]


def test_large_changes_are_minimal_only_if_no_part_of_them_keeps_the_facts():
    """Twenty cells have more parts than are listed one by one."""
    domain = pg.Domain({"a": 10, "b": 10})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])

    def ring(places):
        turned = [*places[1:], places[0]]
        added = {10 * a + b: 1 for a, b in zip(places, places, strict=True)}
        return added, {10 * a + b: 1 for a, b in zip(places, turned, strict=True)}

    one, first, second = ring(list(range(10))), ring(list(range(5))), ring(list(range(5, 10)))
    assert check_neighbours(policy, *one).passed
    assert check_neighbours(policy, first[0] | second[0], first[1] | second[1]).passed is False


def test_a_pair_of_networks_with_one_secret_edge():
    network = pg.Network(4)
    policy = pg.Policy(
        network, pg.PolicyGraph.from_edges(network, [(0, pg.BOTTOM)]), constraints=[pg.Degrees()]
    )
    at = {pair: number for number, pair in enumerate(combinations(range(4), 2))}
    before, after = {at[0, 1]: 1, at[2, 3]: 1}, {at[0, 2]: 1, at[1, 3]: 1}
    assert check_neighbours(policy, before, after).passed
    assert check_neighbours(policy, {at[0, 2]: 1, at[1, 3]: 1}, {at[0, 3]: 1, at[1, 2]: 1}).passed is False


@pytest.mark.parametrize("size", [1, 2, 6])
def test_pairs_of_networks_are_neighbours_as_the_policy_says(size):
    network, facts = pg.Network(4), [pg.Degrees()]
    at = {pair: number for number, pair in enumerate(combinations(range(4), 2))}
    square, across = {at[0, 1]: 1, at[2, 3]: 1}, {at[0, 2]: 1, at[1, 3]: 1}
    found = set()
    for secret in combinations(range(6), size):
        graph = pg.PolicyGraph.from_edges(network, [(cell, pg.BOTTOM) for cell in secret])
        policy = pg.Policy(network, graph, constraints=facts)
        tables = [[table.get(cell, 0) for cell in range(6)] for table in (square, across)]
        expected = bool(policy.are_neighbours(*tables))
        assert check_neighbours(policy, square, across).passed is expected
        found.add(expected)
    assert found == ({True} if size == 6 else {True, False})


def test_moves_are_applied_wherever_the_edges_allow_it():
    network = pg.Network(3)
    pairs = set(_moved(pg.Policy(network), [{0: -1, 2: 1}]))
    assert pairs == {(0b001, 0b100), (0b011, 0b110)}


def test_a_published_zero_needs_no_record():
    policy = pg.Policy(LINE, constraints=[pg.Cuboid("x", equals=[1, 0, 2])])
    assert check_facts(policy, {0: 1, 2: 2}, {0: 1, 2: 2}).passed
    assert check_facts(policy, {0: 1, 1: 1, 2: 1}, {0: 1, 1: 1, 2: 1}).passed is False
    degrees = pg.Policy(NET, constraints=[pg.Degrees({1: 1, 3: 0})])
    joined, other = ({int(NET.pair_index(*pair)): 1} for pair in ((0, 1), (0, 2)))
    assert check_facts(degrees, joined, joined).passed
    assert check_facts(degrees, other, other).passed is False
    known = pg.Policy(LINE, constraints=[pg.StructuralZero([(1,)])])
    assert check_facts(known, {0: 1}, {0: 1}).passed
    filled = check_facts(known, {1: 1}, {1: 1})
    assert (filled.passed, filled.text) == (False, "a structural zero is filled")


def test_what_is_claimed_to_be_attained_needs_a_pair():
    made = pg.sensitivity(CELLS, pg.Policy(SQUARE, constraints=[pg.Cuboid("a")]))
    for query, policy in TRUE.values():
        if not isinstance(policy, pg.Families):
            claim = CertifiedBound(policy, query, "l1", Fraction(99), Fraction(1), None, "")
            [first, *_] = verify(claim).checks
            assert (first.name, first.passed) == ("witness", False)
    family = CertifiedBound(made.policy, CELLS, "l1", Fraction(6), Fraction(6), ({0: 3}, {1: 2, 0: 1}), "", 3)
    assert [(check.name, check.passed) for check in verify(family).checks] == [("families", False)]


def test_a_value_that_changes_within_a_cell_is_one_step_where_the_policy_says_so():
    """Without graph and facts it takes two steps: the record vanishes, and another one appears."""
    query, levels = pg.queries.sums(SQUARE, [["a"]], INCOME), INCOME.levels
    one, two = ({0: 1}, {levels - 1: 1}), ({0: 2}, {levels - 1: 2})
    alone, joined = pg.Policy(SQUARE), pg.Policy(SQUARE, pg.PolicyGraph.full(SQUARE))
    for policy, witness, passed in ((alone, one, False), (joined, one, True), (joined, two, False)):
        claim = CertifiedBound(policy, query, "l1", Fraction(99), Fraction(7), witness, "")
        [found] = [check.passed for check in verify(claim).checks if check.name == "neighbours"]
        assert found is passed


def test_answers_that_the_facts_determine_change_by_nothing():
    policy = pg.Policy(SQUARE, constraints=[pg.Cuboid("a")])
    cases = (
        (policy, [[1, 1, 0, 0], [2, 2, -1, -1]], True),
        (policy, [[1, 1, 0, 0], [2, 2, -1, 0]], False),
        (pg.Policy(SQUARE, pg.PolicyGraph.full(SQUARE), [pg.count({"a": 0})]), [[1, 1, 1, 1]], True),
        (pg.Policy(SQUARE, pg.PolicyGraph.full(SQUARE).with_bottom(), [pg.count({"a": 0})]), [[1, 1, 1, 1]], False),
    )  # fmt: skip
    for stated, rows, holds in cases:
        claim = CertifiedBound(
            stated, pg.queries.matrix(SQUARE, rows), "l1", Fraction(0), Fraction(0), None, ""
        )
        assert verify(claim).ok is holds
        assert verify(claim).failed is not holds


def test_tables_with_published_values_are_listed_where_each_cell_is_in_a_sum():
    both = [pg.Cuboid("a", equals=[2, 1]), pg.Cuboid("b", equals=[1, 2])]
    assert sorted(_tables(pg.Policy(SQUARE, constraints=both))) == [(0, 2, 1, 0), (1, 1, 0, 1)]
    twice = pg.Policy(LINE, constraints=[pg.Sums([[2, 3, 1]], equals=[5])])
    expected = [(x, y, z) for x in range(6) for y in range(6) for z in range(6) if 2 * x + 3 * y + z == 5]
    assert sorted(_tables(twice)) == expected
    for facts in (
        [pg.Sums([[2, 3, 0]], equals=[5])],
        [pg.Sums([[2, -3, 1]], equals=[5])],
        [pg.Sums([[2, 3, 1]], equals=[5]), pg.Sums([[1, 1, 0]])],
        [pg.Sums([[2, 3, 1]])],
    ):
        assert _tables(pg.Policy(LINE, constraints=facts)) is None


def test_lists_of_tables_end_at_their_limit(monkeypatch):
    policy = pg.Policy(LINE, constraints=[pg.Total(equals=3)])
    monkeypatch.setattr(statistics, "LISTED_TABLES", 10)
    assert len(_tables(policy)) == 10
    monkeypatch.setattr(statistics, "LISTED_TABLES", 9)
    assert _tables(policy) is None


@pytest.mark.parametrize(
    "query",
    [
        pg.queries.matrix(SQUARE, [[1, 2, 0, 0], [0, 0, 3, -1]]),
        pg.queries.marginals(SQUARE, [["a", "b"], ["b"]], prefix="b"),
        pg.queries.marginals(SQUARE, [["a", "b"]], ranges="a"),
    ],
)
def test_answers_are_those_of_the_query(query):
    for cell in range(4):
        expected = np.asarray(query.answer(np.eye(4, dtype=int)[cell])) * query.unit
        found = answer(query, {cell: 1})
        weighted = [x for part in query.parts for x in [part.weight] * part.height]
        assert sorted(found.values()) == sorted(
            round(x / w) for x, w in zip(expected, weighted, strict=True) if x
        )


def test_positive_changes_are_the_same_ones_beyond_the_cells_whose_moves_are_listed():
    """Further cells that are public by themselves change nothing, but that a solver decides in place of a list."""
    rows, cells = [[0, 1, 2, 1], [2, 2, 1, 1]], BASIS_CELLS + 1
    few = pg.Policy(FOUR, constraints=[pg.Sums(rows)], strength="positive")
    wide = np.eye(cells - 2, cells, 2, dtype=int)
    wide[:2] = 0
    wide[:2, :4] = rows
    many = pg.Policy(pg.Domain({"r": cells}), constraints=[pg.Sums(wide)], strength="positive")
    seen = set()
    for move in minimal_moves(few):
        for held in (0, 5):
            before, after = ({c: held + max(0, sign * move.get(c, 0)) for c in range(4)} for sign in (-1, 1))
            found = check_neighbours(few, before, after).passed
            assert check_neighbours(many, before, after).passed is found
            seen.add((held, found))
    assert seen == {(0, True), (0, False), (5, True), (5, False)}
