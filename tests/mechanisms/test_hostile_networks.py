"""What a hostile reader tries on networks: secret edges with public degrees, pairs that cannot change, node privacy, the budget."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, combinations_with_replacement, product
from pathlib import Path

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.audit import audit
from policygraph.curator.counting import read_edges
from policygraph.mechanisms.statistics import StatisticNoise
from policygraph.model.queries.network_statistics import (
    Clustering,
    DegreeTail,
    EdgesToGroups,
    JointDegrees,
    ProjectedDegreeTail,
    ProjectedMixing,
    Triangles,
    Wedges,
    first_edges,
    fixed_order,
    projected_edges,
)
from policygraph.sensitivity.rungs.degrees import _of_degrees
from policygraph.sensitivity.statistics import statistic_bound
from tests.oracles import networks as oracle

Sums = tuple[tuple[str, int], ...]


def largest(moves: np.ndarray, query: pg.queries.Query, norm: str) -> int:
    answers = moves @ query.columns(np.arange(query.domain.size)).toarray().T
    sizes = np.abs(answers).sum(axis=1) if norm == "l1" else (answers**2).sum(axis=1)
    return int(sizes.max(initial=0))


def vectors(changes: list[tuple[int, int]], size: int) -> np.ndarray:
    return np.array([oracle.change_vector(c, size) for c in changes], dtype=np.int64).reshape(-1, size)


def facts_of(sums: Sums) -> list[pg.Degrees]:
    sides = {side: [v for s, v in sums if s == side] for side in ("both", "out", "in")}
    return [pg.Degrees(known, side=side) for side, known in sides.items() if known]


def cases(nodes: int, directed: bool) -> list[Sums]:
    states = ((), ("out",), ("in",), ("out", "in")) if directed else ((), ("both",))
    return [
        tuple((side, v) for v, sides in enumerate(chosen) for side in sides)
        for chosen in combinations_with_replacement(states, nodes)
        if any(chosen)
    ]


# Secret edges with public degrees -------------------------------------------------------------------------------------


def check_secret(nodes: int, directed: bool, sums: Sums, groups: list[int], inside: bool) -> None:
    network = pg.Network(nodes, directed=directed)
    graph = pg.secret_edges(network, groups, inside=inside, between=not inside)
    secret = list(graph.bottom_cells)
    pairs = oracle.all_pairs(nodes, directed)
    literal = oracle.secret_neighbours(pairs, sums, secret)
    policy = pg.Policy(network, graph, constraints=facts_of(sums))
    moves = vectors([(x & ~y, y & ~x) for x, y in literal], len(pairs))
    for query in (pg.queries.adjacency(network), pg.queries.mixing(network, groups)):
        for norm in ("l1", "l2"):
            found = pg.sensitivity(query, policy, norm=norm)
            assert found.lower_power <= largest(moves, query, norm) <= found.power
            assert not found.verify().failed
    rng = np.random.default_rng(len(literal))
    tried = [*list(literal)[:6], *map(tuple, rng.integers(0, 1 << len(pairs), (6, 2)).tolist())]
    for x, y in tried:
        one, other = ([g >> at & 1 for at in range(len(pairs))] for g in (x, y))
        assert bool(policy.are_neighbours(one, other)) == ((x, y) in literal)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("groups", [[0, 0, 1, 1], [0, 0, 0, 1]])
def test_secret_edges_with_every_set_of_public_degrees(groups: list[int], inside: bool) -> None:
    for sums in cases(4, False):
        check_secret(4, False, sums, groups, inside)


@pytest.mark.parametrize("inside", [True, False])
def test_secret_edges_of_directed_networks(inside: bool) -> None:
    for sums in cases(3, True):
        check_secret(3, True, sums, [0, 0, 1], inside)


def test_secret_edges_on_five_nodes() -> None:
    check_secret(5, False, tuple(("both", v) for v in range(5)), [0, 0, 1, 1, 1], True)


def test_the_moves_inside_the_secret_pairs_are_too_few() -> None:
    """One secret pair, all degrees public: it changes only together with three edges that are not secret."""
    network = pg.Network(4)
    graph = pg.PolicyGraph.from_edges(network, [(0, pg.BOTTOM)])
    policy = pg.Policy(network, graph, constraints=[pg.Degrees()])
    found = pg.sensitivity(pg.queries.adjacency(network), policy)
    assert (found.power, found.kind) == (4, "exact")
    assert found.verify().complete
    assert "node pair" in found.definition
    assert len({move.change for move in policy.moves()}) == 2
    assert not replace(found, power=found.power - 1, lower_power=found.lower_power - 1).verify().ok


def test_large_secret_networks_have_the_bound_of_all_minimal_moves() -> None:
    network = pg.Network(60)
    groups = [v % 3 for v in range(60)]
    secret = pg.Policy(network, pg.secret_edges(network, groups, inside=True), constraints=[pg.Degrees()])
    alone = pg.Policy(network, constraints=[pg.Degrees()])
    query = pg.queries.adjacency(network)
    found = pg.sensitivity(query, secret)
    assert found.power == pg.sensitivity(query, alone).power == 88
    assert not found.verify().failed
    capped = pg.Policy(network, secret.graph, constraints=[pg.Degrees()], at_most_records=2)
    assert pg.sensitivity(query, capped).power <= 4
    degrees = [2] * 60
    valued = pg.Policy(network, secret.graph, constraints=[pg.Degrees(equals=degrees)])
    made = pg.release(
        pg.queries.mixing(network, groups),
        valued,
        networkx.cycle_graph(60),
        epsilon=1,
        source=pg.SeededRng(1),
    )
    assert len(made.values()) == 6


@pytest.mark.parametrize("directed", [False, True])
def test_a_cap_is_attained_by_a_cycle(directed: bool) -> None:
    nodes = 4 if directed else 6
    network = pg.Network(nodes, directed=directed)
    sums = tuple((side, v) for v in range(nodes) for side in (("out", "in") if directed else ("both",)))
    pairs = oracle.all_pairs(nodes, directed)
    listed = vectors(oracle.neighbour_changes(pairs, sums), len(pairs))
    for cap in (1, 2, 3):
        policy = pg.Policy(network, constraints=facts_of(sums), at_most_records=cap)
        kept = listed[np.maximum((listed > 0).sum(axis=1), (listed < 0).sum(axis=1)) <= cap]
        for query in (
            pg.queries.adjacency(network),
            pg.queries.mixing(network, [v // 2 for v in range(nodes)]),
        ):
            for norm in ("l1", "l2"):
                found = pg.sensitivity(query, policy, norm=norm)
                assert found.exact
                assert found.power == largest(kept, query, norm)
        assert not found.verify().failed
    far = pg.Policy(pg.Network(60), constraints=[pg.Degrees()], at_most_records=4)
    for query in (
        pg.queries.adjacency(far.domain),
        pg.queries.mixing(far.domain, [v % 3 for v in range(60)]),
    ):
        wide = pg.sensitivity(query, far)
        assert (wide.power, wide.method) == (8, "closed form, capped cycle")
        assert not wide.verify().failed


# Pairs that cannot change ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "directed"), [(4, False), (5, False), (6, False), (3, True), (4, True)])
def test_moves_that_stay_off_public_edges(nodes: int, directed: bool) -> None:
    network = pg.Network(nodes, directed=directed)
    pairs = oracle.all_pairs(nodes, directed)
    rng = np.random.default_rng(nodes)
    listed = cases(nodes, directed)
    chosen = [
        listed[-1],
        *(listed[at] for at in rng.choice(len(listed), size=2, replace=False)),
    ]
    for sums, inside in product(chosen, (True, False)):
        groups = rng.integers(0, 2, nodes).tolist()
        known = pg.KnownEdges(groups, inside=inside, between=not inside)
        zeros = rng.choice(len(pairs), size=len(pairs) // 3, replace=False)
        for fact, fixed in (
            (known, [at for at, (u, v) in enumerate(pairs) if (groups[u] == groups[v]) == inside]),
            (pg.StructuralZero([network.cell(int(c)) for c in zeros]), zeros.tolist()),
        ):
            policy = pg.Policy(network, constraints=[*facts_of(sums), fact])
            moves = vectors(oracle.neighbour_changes(pairs, sums, fixed), len(pairs))
            for query in (pg.queries.adjacency(network), pg.queries.mixing(network, groups)):
                for norm in ("l1", "l2"):
                    true = largest(moves, query, norm)
                    found = pg.sensitivity(query, policy, norm=norm, effort=20_000_000)
                    assert found.lower_power <= true <= found.power
                    bound = _of_degrees(query, policy, norm)
                    assert bound is not None
                    assert bound.lower <= true <= bound.upper
            assert not found.verify().failed


@pytest.mark.parametrize(
    ("sizes", "inside", "value"), [((30, 20), True, 40), ((30, 20), False, 42), ((25, 25), True, 50)]
)
def test_closed_forms_of_public_edges(sizes: tuple[int, int], inside: bool, value: int) -> None:
    """Between two groups a cycle of twice the smaller one; inside groups the longest move of the largest one (30 = 4 * 7 + 2)."""
    network = pg.Network(sum(sizes))
    groups = [0] * sizes[0] + [1] * sizes[1]
    policy = pg.Policy(
        network, constraints=[pg.Degrees(), pg.KnownEdges(groups, inside=inside, between=not inside)]
    )
    found = pg.sensitivity(pg.queries.adjacency(network), policy)
    assert (found.power, found.kind) == (value, "exact")
    assert not found.verify().failed
    assert pg.Policy.from_spec(policy.to_spec()) == policy


def test_a_bipartite_network_is_one_with_structural_zeros() -> None:
    network = pg.Network(12)
    side = [int(v < 5) for v in range(12)]
    empty = [
        network.cell(c) for c in range(network.size) if side[network.cell(c)[0]] == side[network.cell(c)[1]]
    ]
    for known in ("all", [0, 1, 2, 6, 7]):
        policy = pg.Policy(network, constraints=[pg.Degrees(known), pg.StructuralZero(empty)])
        found = pg.sensitivity(pg.queries.adjacency(network), policy)
        assert found.exact
        # Five and seven nodes, all known: 10. Three and two of them known, others not: 2 min + 2.
        assert found.power == (10 if known == "all" else 6)


def test_public_edges_of_a_huge_network_are_not_listed() -> None:
    network = pg.Network(100_000)
    groups = [v % 2 for v in range(100_000)]
    policy = pg.Policy(network, constraints=[pg.Degrees(), pg.KnownEdges(groups, inside=True)])
    assert pg.sensitivity(pg.queries.mixing(network, groups), policy).power <= 149_998


def test_public_edges_in_policy_files() -> None:
    from policygraph.files import dumps, loads

    network = pg.Network(4)
    for fact in (
        pg.KnownEdges([0, 0, 1, 1], inside=True),
        pg.KnownEdges({v: v % 2 for v in range(4)}, between=True),
    ):
        policy = pg.Policy(network, constraints=[pg.Degrees(), fact])
        assert loads(dumps(policy)).policy == policy
    for wrong in (
        {"groups": [0, 0, 1, 1]},
        {"groups": [0, 0, 1, 1], "inside": True, "between": True},
        {"groups": []},
    ):
        with pytest.raises(pg.InputError) as caught:
            pg.KnownEdges(**wrong)
        assert caught.value.code == "constraint.edges"
    for groups in ([0, 1], {0: 1, 1: 1, 2: 1, 9: 1}):
        with pytest.raises(pg.InputError) as caught:
            pg.Policy(network, constraints=[pg.KnownEdges(groups, inside=True)])
        assert caught.value.code == "constraint.edges"


# Node privacy ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [3, 4, 5])
@pytest.mark.parametrize("groups", [[0, 0, 0, 0, 0], [0, 1, 0, 2, 1]])
def test_projected_counts_under_node_privacy_are_bounded_and_attain_it(nodes: int, groups: list[int]) -> None:
    network, mine = pg.Network(nodes), groups[:nodes]
    policy = pg.NodePrivacy(network)
    k = len(set(mine))
    for caps in (1, 2, [1 + at % 2 for at in range(k * (k + 1) // 2)]):
        statistic = ProjectedMixing(network, mine, caps)
        for norm in ("l1", "l2"):
            bound = statistic_bound(statistic, policy, norm)
            report = bound.verify()
            assert report.complete
            assert f"the largest change is {bound.power}, claimed {bound.power}" in str(report)
            assert not replace(bound, power=bound.power - 1).verify().ok
    assert pg.queries.from_spec(network, statistic.to_spec()) == statistic


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 9), st.integers(0, 10**6), st.integers(1, 3))
def test_projections_are_the_literal_ones_and_stable_at_one_node(nodes: int, seed: int, cap: int) -> None:
    rng = np.random.default_rng(seed)
    network = pg.Network(nodes)
    pairs = oracle.all_pairs(nodes, False)
    order = fixed_order(np.arange(network.size)).tolist()
    groups = rng.integers(0, 3, nodes).tolist()
    statistic = ProjectedMixing(network, groups, cap)
    names = list(dict.fromkeys(groups))
    blocks = [(a, b) for i, a in enumerate(names) for b in names[i:]]
    graph = (rng.random(network.size) < rng.choice([0.2, 0.5, 0.9])).astype(np.int64)
    node = int(rng.integers(nodes))
    other = graph.copy()
    for at, pair in enumerate(pairs):
        if node in pair:
            other[at] = rng.integers(2) * int(rng.integers(3) > 0)
    for each in (graph, other):
        wanted = []
        for block in blocks:
            mine = [at for at in order if {groups[pairs[at][0]], groups[pairs[at][1]]} == set(block)]
            wanted.append(len(oracle.project_block(mine, pairs, each, cap)))
        assert statistic.answer(each).tolist() == wanted
    change = int(np.abs(statistic.answer(graph) - statistic.answer(other)).sum())
    assert change <= statistic_bound(statistic, pg.NodePrivacy(network)).power
    whole = projected_edges(network, cap)
    assert abs(int(whole.answer(graph)[0]) - int(whole.answer(other)[0])) <= cap
    if cap < nodes:
        tail = ProjectedDegreeTail(network, cap)
        assert np.abs(tail.answer(graph) - tail.answer(other)).sum() <= 2 * cap


def test_projected_mixing_is_released_under_node_privacy_only() -> None:
    network = pg.Network(34)
    graph = networkx.Graph(networkx.karate_club_graph().edges())
    statistic = ProjectedMixing(network, [v % 2 for v in range(34)], 4)
    made = pg.release(
        statistic,
        pg.NodePrivacy(network),
        graph,
        epsilon=1,
        mechanism=StatisticNoise(),
        source=pg.SeededRng(1),
    )
    assert made.record["noise"]["parameter"] == "8"
    assert made.record["bound"]["query_fingerprint"] == statistic.fingerprint
    with pytest.raises(pg.RefusedError) as caught:
        statistic_bound(statistic, pg.Policy(network))
    assert caught.value.code == "statistic.policy"
    for cap in (0, True, [1, 2], 1.5):
        with pytest.raises((pg.InputError, TypeError)):
            ProjectedMixing(network, [v % 2 for v in range(34)], cap)


def test_node_privacy_is_not_read_back_as_edge_privacy() -> None:
    with pytest.raises(pg.InputError) as caught:
        pg.Policy.from_spec(pg.NodePrivacy(pg.Network(3)).to_spec())
    assert caught.value.code == "policy.nodes"


# Statistics -----------------------------------------------------------------------------------------------------------


def test_wedges_with_some_degrees_change_as_by_one_edge() -> None:
    network = pg.Network(5)
    for known in ([0], [0, 1, 2]):
        for more in ([], [pg.KnownEdges([0, 0, 1, 1, 1], inside=True)]):
            policy = pg.Policy(network, constraints=[pg.Degrees(known), *more])
            bound = statistic_bound(Wedges(network), policy)
            assert bound.power <= 6
            assert bound.verify().complete


@pytest.mark.parametrize("kind", [DegreeTail, Wedges, Triangles])
def test_bounds_of_statistics_are_verified_under_every_kind_of_policy(kind: type) -> None:
    network = pg.Network(4)
    secret = pg.secret_edges(network, [0, 0, 1, 1], between=True)
    for policy in (
        pg.Policy(network),
        pg.Policy(network, secret),
        pg.Policy(network, secret, constraints=[pg.Degrees([0, 1])]),
        pg.Policy(network, constraints=[pg.Degrees([0, 1, 2])], strength="markov"),
        pg.Policy(network, constraints=[pg.Degrees(equals=[2, 2, 1, 1])]),
        pg.Policy(network, constraints=[pg.Degrees([0]), pg.Total()], at_most_records=1),
    ):
        bound = statistic_bound(kind(network), policy)
        assert bound.verify().ok
    larger = statistic_bound(kind(pg.Network(9)), pg.Policy(pg.Network(9))).verify()
    assert not larger.failed
    assert not larger.ok  # too many networks to list, so that nothing was confirmed


@pytest.mark.parametrize("classes", [(), (3,), (3, 4)])
@pytest.mark.parametrize("least", [2, 3])
def test_clustering_is_bounded(least: int, classes: tuple[int, ...]) -> None:
    network = pg.Network(5)
    pairs = oracle.all_pairs(5, False)
    statistic = Clustering(network, least, classes)
    assert pg.queries.from_spec(network, statistic.to_spec()) == statistic
    for graph in oracle.graphs(5, False)[::37]:
        edges = [pair for pair, there in zip(pairs, graph, strict=True) if there]
        sums = oracle.clustering(edges, 5, least, classes)
        for found, wanted in zip(statistic.answer(graph).tolist(), sums, strict=True):
            # Each weight is rounded down by less than one unit, for each triangle.
            assert 0 <= wanted / statistic.unit - found <= 30
    for policy in (
        pg.Policy(network),
        pg.Policy(network, constraints=[pg.Degrees([0, 1])]),
        pg.Policy(network, constraints=[pg.Degrees()]),
        pg.Policy(network, constraints=[pg.Degrees(equals=[2, 2, 2, 2, 2])]),
        pg.Policy(network, constraints=[pg.Degrees(equals=[3, 3, 2, 2, 2])], strength="markov"),
        pg.Policy(
            network,
            constraints=[
                pg.Degrees(equals=[3, 3, 2, 2, 2]),
                pg.KnownEdges([0, 0, 0, 0, 1], inside=False, between=True),
            ],
        ),
        pg.Policy(network, constraints=[pg.Degrees(equals=[4, 3, 3, 3, 3])], at_most_records=2),
    ):
        for norm in ("l1", "l2"):
            assert statistic_bound(statistic, policy, norm).verify().ok, policy


def test_one_switch_takes_triangles_from_different_nodes() -> None:
    """Two pairs of hubs, joined to nodes of their own: all of them lose a triangle at once, and that is the bound but for the hubs themselves."""
    graph = networkx.Graph([(0, 1), (2, 3)])
    graph.add_edges_from((hub, x) for x in range(4, 9) for hub in ((0, 1) if x < 7 else (2, 3)))
    network = pg.Network(9)
    public = [pg.Degrees(equals=[graph.degree(v) for v in range(9)])]
    other = networkx.Graph(graph)
    other.remove_edges_from([(0, 1), (2, 3)])
    other.add_edges_from([(1, 2), (0, 3)])
    for statistic, share in ((Clustering(network, 2), 0.7), (Clustering(network, 2, (3,)), 0.35)):
        counts = [
            statistic.answer_sparse(
                np.sort(network.pair_index(*np.sort(np.array(each.edges()), axis=1).T)), np.ones(12, int)
            )
            for each in (graph, other)
        ]
        change = int(np.abs(counts[0] - counts[1]).sum())
        for settings_ in ({"strength": "markov"}, {"at_most_records": 2}):
            bound = statistic_bound(statistic, pg.Policy(network, constraints=public, **settings_))
            assert share * bound.power < change <= bound.power
            assert "Theorems 13 and 17" in bound.reason


@pytest.mark.parametrize("nodes", [4, 5])
def test_a_cap_on_the_edges_of_each_node_bounds_triangles_and_clustering(nodes: int) -> None:
    """Every graph, with the kept edges found literally; every pair of neighbours under each policy."""
    network = pg.Network(nodes)
    order = fixed_order(np.arange(network.size)).tolist()
    places = [tuple(int(end) for end in network.pairs(cell)) for cell in range(network.size)]
    for cap in (1, 2, 3) if nodes == 4 else (2,):
        triangles, sums = Triangles(network, cap), Clustering(network, 2, (3,), cap)
        for graph in oracle.graphs(nodes, False)[:: 1 if nodes == 4 else 29]:
            there = [cell for cell in order if graph[cell]]
            first = {v: [cell for cell in there if v in places[cell]][:cap] for v in range(nodes)}
            kept = [cell for cell in there if all(cell in first[v] for v in places[cell])]
            assert first_edges(network, np.flatnonzero(graph), cap).tolist() == sorted(kept)
            left = np.zeros(network.size, dtype=np.int64)
            left[kept] = 1
            assert triangles.answer(graph).tolist() == Triangles(network).answer(left).tolist()
            assert sums.answer(graph).tolist() == Clustering(network, 2, (3,)).answer(left).tolist()
        for policy in (
            pg.Policy(network),
            pg.Policy(network, constraints=[pg.Degrees([0, 1])]),
            pg.Policy(network, constraints=[pg.Degrees(equals=[2] * nodes)]),
            pg.Policy(network, constraints=[pg.Degrees(equals=[2] * nodes)], strength="markov"),
        ):
            for statistic in (triangles, sums, Clustering(network, 3, cap=cap)):
                assert pg.queries.from_spec(network, statistic.to_spec()) == statistic
                assert statistic_bound(statistic, policy).verify().ok, (cap, policy)
    with pytest.raises(pg.RefusedError):
        statistic_bound(Triangles(network, 2), pg.NodePrivacy(network))
    for wrong in (0, nodes, True, 2.5):
        with pytest.raises(pg.InputError):
            Triangles(network, wrong)


def test_a_cap_is_worth_its_edges_in_a_sparse_network() -> None:
    network = pg.Network(100_000)
    assert statistic_bound(Triangles(network), pg.Policy(network)).power == 99_998
    assert statistic_bound(Triangles(network, 30), pg.Policy(network)).power == 58
    assert statistic_bound(Triangles(network, 30), pg.Policy(network), "l2").power == 58**2


def test_clustering_of_six_nodes_with_public_degrees() -> None:
    """Every two graphs that differ by one switch; every degree sequence."""
    network = pg.Network(6)
    tables = oracle.graphs(6, False)
    sums = oracle.degree_sums(tables, 6)
    statistics = [Clustering(network, 2), Clustering(network, 3, (4,))]
    for degrees in np.unique(np.sort(sums, axis=1), axis=0):
        same = tables[(sums == degrees).all(axis=1)]
        if len(same) < 2:
            continue
        policy = pg.Policy(network, constraints=[pg.Degrees(equals=degrees.tolist())], strength="markov")
        switched = (same[:, None, :] != same[None, :, :]).sum(axis=2) == 4
        for statistic in statistics:
            answers = np.array([statistic.answer(graph) for graph in same])
            change = np.abs(answers[:, None, :] - answers[None, :, :]).sum(axis=2)
            assert statistic_bound(statistic, policy).power >= int(change[switched].max(initial=0))


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("groups", [["x", "y", "z", "x"], ["x", None, None, "y"], {0: "x"}])
def test_edges_to_groups_are_bounded(groups: object, others: bool) -> None:
    network = pg.Network(4)
    if others and groups == ["x", "y", "z", "x"]:
        with pytest.raises(pg.InputError, match="no node has a count"):
            EdgesToGroups(network, groups, others=True)
        return
    statistic = EdgesToGroups(network, groups, others=others)
    assert pg.queries.from_spec(network, statistic.to_spec()) == statistic
    pairs, own = oracle.all_pairs(4, False), statistic.groups
    for graph in oracle.graphs(4, False):
        edges = {frozenset(pair) for pair, there in zip(pairs, graph, strict=True) if there}
        wanted = [
            sum(frozenset((u, v)) in edges for v in range(4) if own[v] == name)
            for u in range(4)
            if not others or own[u] is None
            for name in statistic.names
        ]
        assert statistic.answer(graph).tolist() == wanted
    found = {}
    for name, policy in {
        "edge": pg.Policy(network),
        "some": pg.Policy(network, constraints=[pg.Degrees([0, 1])]),
        "all": pg.Policy(network, constraints=[pg.Degrees()]),
        "markov": pg.Policy(network, constraints=[pg.Degrees()], strength="markov"),
        "cap": pg.Policy(network, constraints=[pg.Total()], at_most_records=2),
    }.items():
        for norm in ("l1", "l2"):
            bound = statistic_bound(statistic, policy, norm)
            assert bound.verify().complete
            found[name, norm] = bound.power
    ends = 1 if others else 2
    assert [found["edge", "l1"], found["edge", "l2"]] == [ends, ends]
    assert [found["markov", "l1"], found["markov", "l2"]] == [4 * ends, 4 * ends]


def test_edges_to_groups_of_six_nodes_with_public_degrees() -> None:
    """Every two graphs that differ by one switch; the bound is attained."""
    network = pg.Network(6)
    tables = oracle.graphs(6, False)
    statistic = EdgesToGroups(network, ["x", "y", "x", "y", "x", "y"])
    answers = tables @ np.array([statistic.answer(row) for row in np.eye(15, dtype=np.int64)])
    sums = oracle.degree_sums(tables, 6)
    policy = pg.Policy(network, constraints=[pg.Degrees()], strength="markov")
    largest_l1 = largest_l2 = 0
    for degrees in np.unique(np.sort(sums, axis=1), axis=0):
        chosen = (sums == degrees).all(axis=1)
        same, own = tables[chosen], answers[chosen]
        switched = (same[:, None, :] != same[None, :, :]).sum(axis=2) == 4
        change = np.abs(own[:, None, :] - own[None, :, :])
        largest_l1 = max(largest_l1, int(change.sum(axis=2)[switched].max(initial=0)))
        largest_l2 = max(largest_l2, int((change**2).sum(axis=2)[switched].max(initial=0)))
    assert (largest_l1, largest_l2) == (8, 8)
    assert statistic_bound(statistic, policy).power == 8
    assert statistic_bound(statistic, policy, "l2").power == 8


@pytest.mark.parametrize("nodes", [4, 5, 6])
def test_edges_to_groups_under_every_minimal_move(nodes: int) -> None:
    """The counts are linear, so that a move changes them alike in every network: all moves, worst case and caps."""
    network = pg.Network(nodes)
    pairs = oracle.all_pairs(nodes, False)
    everything = oracle.neighbour_changes(pairs, [("both", v) for v in range(nodes)])
    statistics = [
        EdgesToGroups(network, [v % 2 for v in range(nodes)]),
        EdgesToGroups(network, [0, 1, 2, *[0] * (nodes - 3)]),
        EdgesToGroups(network, {0: "x", 1: "y"}, others=True),
    ]
    for statistic in statistics:
        matrix = np.array([statistic.answer(row) for row in np.eye(len(pairs), dtype=np.int64)])
        for cap in (None, 2, 3):
            policy = pg.Policy(network, constraints=[pg.Degrees()], at_most_records=cap)
            chosen = [m for m in everything if cap is None or max(part.bit_count() for part in m) <= cap]
            change = np.abs(vectors(chosen, len(pairs)) @ matrix)
            assert statistic_bound(statistic, policy).power >= int(change.sum(axis=1).max())
            assert statistic_bound(statistic, policy, "l2").power >= int((change**2).sum(axis=1).max())


def test_edges_to_groups_refuse_what_is_no_group_of_nodes() -> None:
    network = pg.Network(3)
    for groups in (["x", "y"], {7: "x"}, {}, [None, None, None]):
        with pytest.raises(pg.InputError) as caught:
            EdgesToGroups(network, groups)
        assert caught.value.code == "query.groups"
    with pytest.raises(pg.RefusedError):
        statistic_bound(EdgesToGroups(network, ["x", "x", "y"]), pg.NodePrivacy(network))


@pytest.mark.parametrize("nodes", [3, 4, 5])
def test_joint_degree_counts_are_bounded(nodes: int) -> None:
    network = pg.Network(nodes)
    pairs = oracle.all_pairs(nodes, False)
    for top in range(1, nodes):
        statistic = JointDegrees(network, top)
        assert pg.queries.from_spec(network, statistic.to_spec()) == statistic
        for graph in oracle.graphs(nodes, False)[:: 1 if nodes < 5 else 37]:
            degree = [
                min(top, sum(v in p for p, there in zip(pairs, graph, strict=True) if there))
                for v in range(nodes)
            ]
            ends = [
                tuple(sorted((degree[u], degree[v])))
                for (u, v), there in zip(pairs, graph, strict=True)
                if there
            ]
            wanted = [ends.count((a, b)) for a in range(1, top + 1) for b in range(a, top + 1)]
            assert statistic.answer(graph).tolist() == wanted
        for policy in (
            pg.Policy(network),
            pg.Policy(network, constraints=[pg.Degrees([0])]),
            pg.Policy(network, constraints=[pg.Degrees(range(nodes - 1))], at_most_records=2),
            pg.Policy(network, constraints=[pg.Degrees()]),
        ):
            assert statistic_bound(statistic, policy).verify().complete
    found = statistic_bound(JointDegrees(pg.Network(4), 2), pg.Policy(pg.Network(4)))
    assert found.power == 5
    assert not replace(found, power=3).verify().ok


def test_assortativity_from_joint_degree_counts() -> None:
    graph = networkx.Graph(networkx.karate_club_graph().edges())
    network = pg.Network(34)
    counts = JointDegrees(network, 33).answer(read_edges(graph, network).vector())
    true = networkx.degree_assortativity_coefficient(graph)
    assert pg.networks.joint_assortativity(counts, 33) == pytest.approx(true)
    with pytest.raises(pg.InputError) as caught:
        pg.networks.joint_assortativity(counts[1:], 33)
    assert caught.value.code == "networks.counts"
    from policygraph.files import loads

    asked = '[network]\nnodes = 34\n[[release]]\nstatistic = "joint degrees"\n'
    assert loads(asked + "largest = 5\n").query == JointDegrees(network, 5)
    with pytest.raises(pg.PolicyGraphError, match="largest"):
        loads(asked)
    for largest in (0, 34, True, 1.5):
        with pytest.raises(pg.InputError):
            JointDegrees(network, largest)


# The budget -----------------------------------------------------------------------------------------------------------


def test_nothing_is_charged_when_degrees_nodes_or_noise_do_not_fit(tmp_path: Path) -> None:
    network = pg.Network(6)
    ring, names = networkx.cycle_graph(6), [v % 2 for v in range(6)]
    book = pg.Ledger(tmp_path / "budget.db")
    mixing = pg.queries.mixing(network, names)
    public = pg.Policy(network, constraints=[pg.Degrees(equals=[2] * 6)])
    partial = pg.Policy(network, constraints=[pg.Degrees([0, 1], equals=[2, 1])])
    stranger = networkx.Graph([*ring.edges(), (0, 77)])
    far = networkx.Graph([*ring.edges(), (0, 3)])
    for query, policy, data, loss in (
        (mixing, public, far, {"epsilon": 1}),
        (mixing, partial, ring, {"epsilon": 1}),
        (mixing, public, stranger, {"epsilon": 1}),
        (mixing, public, networkx.DiGraph(ring), {"epsilon": 1}),
        (projected_edges(network, 2), pg.NodePrivacy(network), stranger, {"epsilon": 1}),
        (mixing, pg.Policy(network), ring, {"epsilon": "1e-20"}),
        (Triangles(network), pg.Policy(network), ring, {"epsilon": "1e-20"}),
        (Triangles(network), pg.Policy(network), ring, {"rho": "1e-40"}),
        (Triangles(network), pg.NodePrivacy(network), ring, {"epsilon": 1}),
    ):
        with pytest.raises(pg.PolicyGraphError):
            pg.release(query, policy, data, ledger=book, dataset="friends", **loss)
        assert book.datasets() == []


def test_more_answers_than_fit_are_refused_before_data() -> None:
    network = pg.Network(5, multiple=True)
    with pytest.raises(pg.RefusedError) as caught:
        StatisticNoise().calibrate(DegreeTail(network, 10**9), pg.Policy(network), pg.Epsilon(1))
    assert caught.value.code == "mechanism.answers"


# Audits ---------------------------------------------------------------------------------------------------------------


def test_audits_pass_the_new_releases_and_catch_a_third_of_their_noise() -> None:
    network = pg.Network(5)
    groups = [0, 0, 1, 1, 1]
    nodes = StatisticNoise().calibrate(
        ProjectedMixing(network, groups, 2), pg.NodePrivacy(network), pg.Epsilon(2)
    )
    secret = pg.Policy(
        network, pg.secret_edges(network, groups, between=True), constraints=[pg.Degrees([0, 1, 2])]
    )
    edges = pg.Laplace().calibrate(pg.queries.adjacency(network), secret, pg.Epsilon(2))
    for ready in (nodes, edges):
        assert audit(ready, samples=20_000, source=pg.SeededRng(1)).passed
        # Sound noise for a loss of 2 is a third of the noise for a loss of 2/3.
        assert not audit(ready, epsilon="2/3", samples=20_000, source=pg.SeededRng(1)).passed


def test_households_of_nodes_change_no_more_than_node_by_node() -> None:
    """All networks of four nodes against the definition: a set of nodes covers every pair that differs."""
    network = pg.Network(4)
    pairs = [network.cell(cell) for cell in range(network.size)]
    tables = list(product((0, 1), repeat=network.size))
    for together in (1, 2, 3):
        policy = pg.NodePrivacy(network, together)
        assert pg.NodePrivacy.from_spec(policy.to_spec()) == policy
        statistics = (ProjectedDegreeTail(network, 2), projected_edges(network, 2))
        answers = [[statistic.answer(table) for table in tables] for statistic in statistics]
        largest = [0, 0]
        for (one, a), (two, b) in combinations(enumerate(tables), 2):
            changed = [set(pair) for pair, x, y in zip(pairs, a, b, strict=True) if x != y]
            covers = combinations(range(4), together)
            hidden = any(all(pair & set(cover) for pair in changed) for cover in covers)
            if one % 7 == 0:
                assert policy.are_neighbours(a, b) == hidden
            if hidden:
                for at in (0, 1):
                    largest[at] = max(largest[at], int(np.abs(answers[at][one] - answers[at][two]).sum()))
        for statistic, most in zip(statistics, largest, strict=True):
            bound = statistic_bound(statistic, policy)
            assert most <= bound.power
            assert bound.verify().ok
            assert bound.power == together * statistic_bound(statistic, pg.NodePrivacy(network)).power
        assert statistic_bound(statistics[0], policy, "l2").power == together**2 * 16
    with pytest.raises(pg.InputError) as refusal:
        pg.NodePrivacy(network, 0)
    assert refusal.value.code == "nodes.together"
    made = pg.release(
        projected_edges(network, 2),
        pg.NodePrivacy(network, 2),
        [1, 0, 0, 1, 1, 0],
        epsilon=1,
        rng=pg.SeededRng(1),
    )
    assert made.policy == pg.NodePrivacy(network, 2)
    assert made.record["noise"]["parameter"] == "4"
    assert pg.audit(
        pg.StatisticNoise().calibrate(projected_edges(network, 2), made.policy, pg.Epsilon(1)),
        made.policy,
        projected_edges(network, 2),
        rng=pg.SeededRng(1),
    ).passed
