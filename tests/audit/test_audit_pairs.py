"""Pairs made from a policy are pairs of neighbours, the worst first."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import policygraph as pg
from policygraph.audit import neighbour_pairs
from policygraph.audit.pairs import Pair, read_pairs
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.queries.network_statistics import DegreeTail, ProjectedDegreeTail, Triangles, Wedges
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
    with pytest.raises(pg.InputError, match="not neighbours") as error:
        read_pairs([([1, 0, 0, 0, 0], [0, 0, 1, 0, 0])], policy)
    assert error.value.code == "audit.not-neighbours"


def test_cells_are_called_by_their_labels():
    before, after = np.zeros((2, 4), dtype=np.int64)
    after[[0, 3]] = 1
    domain = pg.Domain({"sex": ["F", "M"], "town": ["Bonn", "Ulm"]})
    assert str(Pair(before, after, "x", domain)) == (
        "{(sex=F, town=Bonn): 0, (sex=M, town=Ulm): 0} against {(sex=F, town=Bonn): 1, (sex=M, town=Ulm): 1} (x)"
    )
    network = pg.Network(["ann", "bob", "eve"])
    edge = np.array([0, 0, 1])
    assert str(Pair(edge, 0 * edge, "x", network)) == "{(bob, eve): 1} against {(bob, eve): 0} (x)"


def test_pairs_say_what_they_are():
    domain = pg.Domain({"cell": 40})
    before = np.zeros(40, dtype=np.int64)
    before[:8] = 1
    after = before.copy()
    after[0] = 2
    [pair] = read_pairs([(before, after)], pg.Policy(domain))
    rest = ", ".join(f"cell={at}: 1" for at in range(1, 8))
    assert str(pair) == f"{{cell=0: 1, {rest}}} against {{cell=0: 2, {rest}}} (given)"
    assert pair.to_dict()["after"]["0"] == 2
    assert pair.to_dict()["cells"]["7"] == "cell=7"
    before[:] += 1
    after[:] += 1
    [pair] = read_pairs([Pair(before, after, "mine")], pg.Policy(domain))
    assert str(pair) == "{cell=0: 2} against {cell=0: 3}, with 46 records elsewhere in both (mine)"
    assert str(Pair(before, after, "mine")).startswith("{cell 0: 2} against {cell 0: 3},")
    with pytest.raises(pg.InputError):
        neighbour_pairs(pg.Policy(domain), most=0)


def changed(query, pair):
    return int(np.abs(query.answer(pair.after) - query.answer(pair.before)).sum())


@pytest.mark.parametrize("nodes", [3, 4])
def test_the_first_pair_of_a_statistic_changes_it_most(nodes):
    """Against all pairs of networks, by the definition of neighbours."""
    network = pg.Network(nodes)
    everything = [np.array(bits) for bits in product([0, 1], repeat=network.size)]
    statistics = [DegreeTail(network), Wedges(network), Triangles(network), ProjectedDegreeTail(network, 2)]
    for policy in (
        pg.Policy(network),
        NodePrivacy(network),
        pg.Policy(network, constraints=[pg.Degrees()]),
    ):
        pairs = [(a, b) for a, b in combinations(everything, 2) if policy.are_neighbours(a, b)]
        for query in statistics:
            found = neighbour_pairs(policy, query, most=4)
            assert all(policy.are_neighbours(pair.before, pair.after) for pair in found)
            sizes = [changed(query, pair) for pair in found]
            assert sizes == sorted(sizes, reverse=True)
            worst = max((int(np.abs(query.answer(a) - query.answer(b)).sum()) for a, b in pairs), default=0)
            assert max(sizes, default=0) == worst


def test_larger_networks_have_pairs_that_change_a_statistic_much():
    network = pg.Network(9)
    [pair] = neighbour_pairs(pg.Policy(network), Triangles(network), most=1)
    assert changed(Triangles(network), pair) == 7
    tail = ProjectedDegreeTail(network, 3)
    found = neighbour_pairs(NodePrivacy(network), tail, most=3)
    assert len(found) == 3
    assert changed(tail, found[0]) >= 3
    far = np.ones(network.size, dtype=np.int64)
    with pytest.raises(pg.InputError, match="more than one node"):
        read_pairs([(0 * far, far)], NodePrivacy(network))
