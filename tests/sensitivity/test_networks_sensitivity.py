"""Sensitivities of networks against a list of all graphs: every set of known degrees, adjacency and mixing counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

import policygraph as pg
from policygraph.sensitivity.rungs.degrees import mixing_bound, mixing_witness
from tests.oracles import networks as oracle

Sums = tuple[tuple[str, int], ...]


@cache
def moves(nodes: int, directed: bool, sums: Sums) -> np.ndarray:
    pairs = oracle.all_pairs(nodes, directed)
    found = [oracle.change_vector(m, len(pairs)) for m in oracle.neighbour_changes(pairs, sums)]
    return np.array(found, dtype=np.int64).reshape(len(found), len(pairs))


def policy_of(nodes: int, directed: bool, sums: Sums) -> pg.Policy:
    facts = []
    for side in ("both", "out", "in"):
        known = [node for where, node in sums if where == side]
        if known:
            facts.append(pg.Degrees(known, side=side))
    return pg.Policy(pg.Network(nodes, directed=directed), constraints=facts)


def largest(answers: np.ndarray, norm: str) -> int:
    sizes = np.abs(answers).sum(axis=1) if norm == "l1" else (answers**2).sum(axis=1)
    return int(sizes.max(initial=0))


def undirected() -> Iterator[tuple[int, Sums]]:
    for nodes in range(1, 7):
        for known in range(nodes + 1):
            yield nodes, tuple(("both", v) for v in range(known))


def directed() -> Iterator[tuple[int, Sums]]:
    """Which sides of each node are known, up to renaming the nodes."""
    for nodes in range(1, 5):
        for states in combinations_with_replacement(((), ("out",), ("in",), ("out", "in")), nodes):
            yield nodes, tuple((side, v) for v, sides in enumerate(states) for side in sides)


def groupings(nodes: int) -> list[tuple[int, ...]]:
    """All ways to put the nodes into at most three groups, named in order of appearance."""
    out = []
    for groups in product(range(3), repeat=nodes):
        if all(g <= max(groups[:at], default=-1) + 1 for at, g in enumerate(groups)):
            out.append(groups)
    return out


@pytest.mark.parametrize(("nodes", "sums"), list(undirected()))
def test_adjacency_under_every_set_of_known_degrees(nodes: int, sums: Sums) -> None:
    network_moves = moves(nodes, False, sums)
    policy = policy_of(nodes, False, sums)
    for norm in ("l1", "l2"):
        found = pg.sensitivity(pg.queries.adjacency(policy.domain), policy, norm=norm)
        assert found.exact
        assert found.power == largest(network_moves, norm)
    assert not found.verify().failed


@pytest.mark.parametrize("nodes", [4, 5, 6])
def test_which_nodes_are_known_does_not_matter_only_how_many(nodes: int) -> None:
    for known in range(1, nodes + 1):
        expected = largest(moves(nodes, False, tuple(("both", v) for v in range(known))), "l1")
        for names in combinations(range(nodes), known):
            policy = pg.Policy(pg.Network(nodes), constraints=[pg.Degrees(names)])
            assert pg.sensitivity(pg.queries.adjacency(policy.domain), policy).power == expected


@pytest.mark.parametrize(("nodes", "sums"), list(directed()))
def test_directed_adjacency_under_every_set_of_known_degrees(nodes: int, sums: Sums) -> None:
    policy = policy_of(nodes, True, sums)
    if policy.domain.size == 0:
        return
    found = pg.sensitivity(pg.queries.adjacency(policy.domain), policy)
    assert found.exact
    assert found.power == largest(moves(nodes, True, sums), "l1")


def check_mixing(nodes: int, directed_: bool, sums: Sums, groups: Sequence[int]) -> None:
    policy = policy_of(nodes, directed_, sums)
    query = pg.queries.mixing(policy.domain, list(groups))
    network_moves = moves(nodes, directed_, sums)
    rows = oracle.mixing_rows(oracle.all_pairs(nodes, directed_), groups, directed_)
    for norm in ("l1", "l2"):
        true = largest(network_moves @ rows.T, norm)
        found = pg.sensitivity(query, policy, norm=norm, effort=10_000_000)
        assert found.lower_power <= true <= found.power
        assert found.exact, (nodes, sums, groups, norm)
        if sums:
            bound = mixing_bound(query, policy, largest(network_moves, "l1"), norm)
            assert bound is None or bound[0] >= true


@pytest.mark.parametrize(("nodes", "sums"), [case for case in undirected() if 2 <= case[0] <= 4])
def test_mixing_under_every_set_of_known_degrees_and_all_groups(nodes: int, sums: Sums) -> None:
    for groups in groupings(nodes):
        check_mixing(nodes, False, sums, groups)


@pytest.mark.parametrize(("nodes", "sums"), [case for case in undirected() if case[0] >= 5])
def test_mixing_on_five_and_six_nodes(nodes: int, sums: Sums) -> None:
    listed = groupings(nodes)
    rng = np.random.default_rng(nodes * 10 + len(sums))
    for at in rng.choice(len(listed), size=3, replace=False):
        check_mixing(nodes, False, sums, listed[at])


@pytest.mark.parametrize(("nodes", "sums"), list(undirected()))
def test_the_bound_by_groups_holds_for_every_grouping(nodes: int, sums: Sums) -> None:
    if not sums:
        return
    network_moves = moves(nodes, False, sums)
    policy = policy_of(nodes, False, sums)
    length = largest(network_moves, "l1")
    for groups in groupings(nodes):
        query = pg.queries.mixing(policy.domain, list(groups))
        rows = oracle.mixing_rows(oracle.all_pairs(nodes, False), groups, False)
        for norm in ("l1", "l2"):
            bound = mixing_bound(query, policy, length, norm)
            assert bound is not None
            assert largest(network_moves @ rows.T, norm) <= bound[0]


@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_the_directed_bound_by_groups_holds_for_every_grouping(nodes: int) -> None:
    sums = tuple((side, v) for v in range(nodes) for side in ("out", "in"))
    network_moves = moves(nodes, True, sums)
    policy = policy_of(nodes, True, sums)
    for groups in groupings(nodes):
        query = pg.queries.mixing(policy.domain, list(groups))
        rows = oracle.mixing_rows(oracle.all_pairs(nodes, True), groups, True)
        for norm in ("l1", "l2"):
            bound = mixing_bound(query, policy, largest(network_moves, "l1"), norm)
            assert bound is not None
            assert largest(network_moves @ rows.T, norm) <= bound[0]


@pytest.mark.parametrize(("nodes", "sums"), [case for case in directed() if case[0] in (2, 3)])
def test_directed_mixing(nodes: int, sums: Sums) -> None:
    for groups in groupings(nodes):
        check_mixing(nodes, True, sums, groups)


@pytest.mark.parametrize("directed_", [False, True])
@pytest.mark.parametrize("sizes", [(4, 4), (3, 3, 3), (9, 4), (2, 2, 2, 1), (5, 1, 1), (6, 5, 5, 1)])
def test_the_witness_is_minimal_and_changes_the_counts_by_its_length(
    directed_: bool, sizes: tuple[int, ...]
) -> None:
    nodes = sum(sizes)
    network = pg.Network(nodes, directed=directed_)
    facts = [pg.Degrees(side="out"), pg.Degrees(side="in")] if directed_ else [pg.Degrees()]
    policy = pg.Policy(network, constraints=facts)
    query = pg.queries.mixing(network, [g for g, size in enumerate(sizes) for _ in range(size)])
    cycle = mixing_witness(query, policy)
    pairs = sizes if directed_ else tuple(size // 2 for size in sizes)
    usable = [p for p, size in zip(pairs, sizes, strict=True) if p and size > 1]
    rest = sum(usable) - max(usable)
    assert len(cycle) == 2 * min(sum(usable), 2 * rest)
    if not cycle:
        return
    table = np.zeros(network.size, dtype=np.int64)
    before = np.zeros(network.size, dtype=np.int64)
    for tail, head, sign in cycle:
        at = int(network.pair_index(tail, head))
        assert table[at] == 0
        table[at] = sign
        before[at] = int(sign < 0)
    assert np.abs(query.answer(np.maximum(table, 0)) - query.answer(np.maximum(-table, 0))).sum() == len(
        cycle
    )
    assert policy.are_neighbours(before, before + table)


@pytest.mark.parametrize(
    ("sizes", "value", "lower"),
    [
        ((2020, 2019), 6056, 4036),
        ((4000, 39), 156, 76),
        ((4038, 1), 4, 0),
        ((1000, 1000, 1000, 1039), 6056, 4038),
    ],
)
def test_large_networks_have_a_bound_within_a_factor(sizes: tuple[int, ...], value: int, lower: int) -> None:
    network = pg.Network(sum(sizes))
    policy = pg.Policy(network, constraints=[pg.Degrees()])
    groups = [g for g, size in enumerate(sizes) for _ in range(size)]
    found = pg.sensitivity(pg.queries.mixing(network, groups), policy)
    assert (found.power, found.lower_power) == (value, lower)
    assert found.kind == "upper"


def test_one_group_of_all_nodes_needs_no_noise() -> None:
    network = pg.Network(2000)
    policy = pg.Policy(network, constraints=[pg.Degrees()])
    assert pg.sensitivity(pg.queries.mixing(network, ["x"] * 2000), policy).power == 0


@pytest.mark.parametrize(("nodes", "directed_"), [(4, False), (5, False), (6, False), (4, True)])
def test_one_switch_is_the_longest_markov_move(nodes: int, directed_: bool) -> None:
    sides = ("out", "in") if directed_ else ("both",)
    sums = tuple((side, v) for v in range(nodes) for side in sides)
    listed = moves(nodes, directed_, sums)
    listed = listed[np.abs(listed).sum(axis=1) <= 4]
    policy = policy_of(nodes, directed_, sums).with_strength("markov")
    for groups in groupings(nodes):
        query = pg.queries.mixing(policy.domain, list(groups))
        rows = oracle.mixing_rows(oracle.all_pairs(nodes, directed_), groups, directed_)
        for norm in ("l1", "l2"):
            found = pg.sensitivity(query, policy, norm=norm)
            assert found.exact
            assert found.power == largest(listed @ rows.T, norm)
    for norm in ("l1", "l2"):
        found = pg.sensitivity(pg.queries.adjacency(policy.domain), policy, norm=norm)
        assert found.power == largest(listed, norm) == 4
        assert not found.verify().failed


def test_one_switch_is_not_used_where_other_facts_are_public() -> None:
    network = pg.Network(6)
    groups = [0, 0, 0, 1, 1, 1]
    query = pg.queries.mixing(network, groups)
    facts = [pg.Degrees(), pg.count([0, 1])]
    found = pg.sensitivity(query, pg.Policy(network, constraints=facts, strength="markov"))
    assert found.method != "closed form, one switch"
    few = pg.Policy(network, constraints=[pg.Degrees()], strength="markov", at_most_records=1)
    assert pg.sensitivity(query, few).power == 0
    part = pg.Policy(network, constraints=[pg.Degrees([0, 1])], strength="markov")
    assert pg.sensitivity(query, part).method != "closed form, one switch"
