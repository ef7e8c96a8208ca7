"""Pairs made from a policy are pairs of neighbours, the worst first."""

from __future__ import annotations

import numpy as np
import pytest

import policygraph as pg
from policygraph.private.audit import neighbour_pairs
from policygraph.private.audit.pairs import read_pairs
from tests.oracles import fibres

AGES = pg.Domain({"age": 5})
CROSS = pg.Domain({"a": 2, "b": 3})
MARGINS = [pg.Cuboid("a"), pg.Cuboid("b")]
TOLD = [pg.Cuboid("a", equals=[2, 2]), pg.Cuboid("b", equals=[1, 1, 2])]
FRIENDS = pg.Network(5)

POLICIES = {
    "unbounded": pg.Policy(AGES),
    "bounded": pg.Policy(AGES, pg.PolicyGraph.full(AGES)),
    "line": pg.Policy(AGES, pg.PolicyGraph.line(AGES)),
    "margins": pg.Policy(CROSS, constraints=MARGINS),
    "markov": pg.Policy(CROSS, constraints=MARGINS, strength="markov"),
    "capped": pg.Policy(CROSS, constraints=[pg.Cuboid("a")], at_most_records=1),
    "told margins": pg.Policy(CROSS, constraints=TOLD),
    "zeros": pg.Policy(CROSS, constraints=[*MARGINS, pg.StructuralZero([[0, 0]])]),
    "degrees": pg.Policy(FRIENDS, constraints=[pg.Degrees()]),
    "network": pg.Policy(FRIENDS),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_pairs_are_neighbours_and_differ(policy):
    pairs = neighbour_pairs(policy, most=12)
    assert pairs
    assert len({(p.before.tobytes(), p.after.tobytes()) for p in pairs}) == len(pairs)
    for pair in pairs:
        assert policy.are_neighbours(pair.before, pair.after), pair
        assert pair.change
        assert not pair.before[policy.system.zeros].any()


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_first_pair_attains_the_sensitivity(policy):
    query = pg.queries.identity(policy.domain)
    proof = pg.sensitivity(query, policy)
    first = neighbour_pairs(policy, query, proof, most=1)[0]
    assert first.origin == "worst witness"
    assert query.change_norm(first.change, "l1") == proof.lower_power


def test_pairs_of_known_margins_are_neighbours_by_listing_tables():
    matrix = pg.Policy(CROSS, constraints=MARGINS).system.matrix().toarray().tolist()
    wanted = pg.Policy(CROSS, constraints=TOLD).system.values()
    listed = fibres.neighbour_pairs(matrix, fibres.tables(matrix, wanted, 2, 6))
    found = neighbour_pairs(POLICIES["told margins"], most=12)
    assert len(found) > 1
    for pair in found:
        a, b = tuple(pair.before.tolist()), tuple(pair.after.tolist())
        assert (a, b) in listed or (b, a) in listed


def test_tables_of_every_kind_are_made():
    kinds = {pair.origin for pair in neighbour_pairs(POLICIES["unbounded"], most=12)}
    assert kinds == {
        "worst witness",
        "a move, one tall cell",
        "a move, sparse table",
        "a move, dense table",
        "a move, few records",
    }


def test_nothing_is_made_where_nothing_can_change():
    assert neighbour_pairs(pg.Policy(CROSS, constraints=[pg.Cuboid("a", "b")])) == []


def test_a_huge_domain_still_has_pairs():
    domain = pg.Domain({"x": 300, "y": 300})
    pairs = neighbour_pairs(pg.Policy(domain, constraints=[pg.Cuboid("x"), pg.Cuboid("y")]), most=3)
    assert pairs[0].origin == "worst witness"
    assert len(pairs) == 3


def test_given_pairs_must_be_neighbours():
    policy = POLICIES["line"]
    [pair] = read_pairs([([1, 0, 0, 0, 0], [0, 1, 0, 0, 0])], policy)
    assert pair.change == {0: -1, 1: 1}
    with pytest.raises(pg.InputError, match="no neighbours") as error:
        read_pairs([([1, 0, 0, 0, 0], [0, 0, 1, 0, 0])], policy)
    assert error.value.code == "audit.not-neighbours"


def test_pairs_say_what_they_are():
    domain = pg.Domain({"cell": 40})
    before = np.zeros(40, dtype=np.int64)
    before[:8] = 1
    after = before.copy()
    after[0] = 2
    [pair] = read_pairs([(before, after)], pg.Policy(domain))
    assert str(pair) == "{cell 0: 1} against {cell 0: 2}, with 7 records elsewhere in both (given)"
    assert pair.to_dict()["after"]["0"] == 2
    with pytest.raises(pg.InputError):
        neighbour_pairs(pg.Policy(domain), most=0)
