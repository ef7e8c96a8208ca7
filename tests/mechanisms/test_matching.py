"""Exact matchings: every optimum against all covers and against networkx, certificates, and ties by a fixed order."""

from __future__ import annotations

from dataclasses import replace

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.mechanisms.matching import cheapest_cover, maximum_weight_matching
from policygraph.mechanisms.matching import solve as canonical
from tests.oracles import matching as oracle


def symmetric(rng, n, low, high):
    upper = np.triu(rng.integers(low, high, (n, n)), 1)
    return upper + upper.T


@settings(deadline=None, max_examples=150)
@given(
    n=st.integers(0, 7),
    seed=st.integers(0, 10**6),
    reach=st.sampled_from([2, 10, 10**9]),
    lift=st.sampled_from([0, 3]),
)
def test_all_covers(n, seed, reach, lift):
    """Small costs make many ties: the first cheapest cover in the fixed order is found."""
    rng = np.random.default_rng(seed)
    pairs, singles = symmetric(rng, n, -reach, reach), rng.integers(-reach // 2, reach, n) + lift * reach
    found = cheapest_cover(pairs, singles)
    key = oracle.order_of(canonical.marks, canonical.LEVELS)
    assert (found.cost, found.pairs) == oracle.first_by(pairs.tolist(), singles.tolist(), key)


@pytest.mark.parametrize(("name", "value"), [("MARK_ROOM", 0), ("LEVELS", 0), ("LEVELS", 1)])
@settings(deadline=None, max_examples=40)
@given(n=st.integers(2, 7), seed=st.integers(0, 10**6))
def test_ties_without_room_are_broken_in_the_same_order(name, value, n, seed):
    rng = np.random.default_rng(seed)
    pairs, singles = symmetric(rng, n, -2, 2), rng.integers(0, 2, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical, name, value)
        found = cheapest_cover(pairs, singles)
        key = oracle.order_of(canonical.marks, canonical.LEVELS)
    assert (found.cost, found.pairs) == oracle.first_by(pairs.tolist(), singles.tolist(), key)


def with_networkx(pairs, singles):
    graph = networkx.Graph()
    for a in range(len(singles)):
        for b in range(a + 1, len(singles)):
            graph.add_edge(a, b, weight=int(singles[a] + singles[b] - pairs[a, b]))
    chosen = networkx.max_weight_matching(graph)
    return int(singles.sum()) - sum(graph[a][b]["weight"] for a, b in chosen)


def plane(rng, n, side):
    points = rng.integers(0, side, (n, 2))
    return np.abs(points[:, None] - points[None]).max(-1), np.full(n, 10 * side)


def odd_groups(rng, n, size):
    group = np.arange(n) // size
    near, far = symmetric(rng, n, 0, 4), symmetric(rng, n, 50, 60)
    return np.where(group[:, None] == group[None], near, far), np.full(n, 100)


def noisy_values(rng, n, tall):
    values = rng.integers(0, 5, n)
    return np.abs(values[:, None] - values[None]) * tall + symmetric(rng, n, -9, 9), rng.integers(-5, 50, n)


FAMILIES = {
    "plane": lambda rng, n: plane(rng, n, 1000),
    "coarse plane": lambda rng, n: plane(rng, n, 12),
    "groups of 3": lambda rng, n: odd_groups(rng, n, 3),
    "groups of 5": lambda rng, n: odd_groups(rng, n, 5),
    "groups of 7": lambda rng, n: odd_groups(rng, n, 7),
    "values": lambda rng, n: noisy_values(rng, n, 100),
    "ties": lambda rng, n: (symmetric(rng, n, 0, 3), rng.integers(0, 3, n)),
    "wide": lambda rng, n: (symmetric(rng, n, 0, 10**12), rng.integers(0, 10**12, n)),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_larger_graphs_with_many_blossoms(family):
    rng = np.random.default_rng(1)
    blossoms = 0
    for n in (10, 17, 31, 44):
        pairs, singles = FAMILIES[family](rng, n)
        found = cheapest_cover(pairs, singles)
        assert found.cost == with_networkx(pairs, singles)
        assert found.certificate.verify(pairs, singles, found.partner) == found.cost
        blossoms += len(found.certificate.blossoms)
    if family in ("plane", "groups of 3", "groups of 5"):
        assert blossoms  # the case is of use only if the fractional problem does not settle it


@pytest.mark.slow
@pytest.mark.parametrize("family", ["plane", "groups of 5", "values", "ties"])
def test_hundreds_of_vertices(family):
    pairs, singles = FAMILIES[family](np.random.default_rng(2), 130)
    assert cheapest_cover(pairs, singles).cost == with_networkx(pairs, singles)


def test_weights():
    weights = symmetric(np.random.default_rng(3), 20, -30, 60)
    found = maximum_weight_matching(weights)
    assert all(weights[a, b] >= 0 for a, b in found.pairs)
    assert -found.cost == sum(int(weights[a, b]) for a, b in found.pairs)
    assert found.cost == with_networkx(-weights, np.zeros(20, dtype=int))


def tampered(found, **changes):
    return replace(found.certificate, **changes)


def test_a_certificate_that_does_not_hold_is_refused():
    pairs, singles = FAMILIES["groups of 3"](np.random.default_rng(1), 15)
    found = cheapest_cover(pairs, singles)
    y, blossoms = found.certificate.potentials, found.certificate.blossoms
    assert blossoms
    worse = np.arange(15)
    crossing = (*blossoms, ((0, 3, 6), 0), ((0, 1, 9), 0))
    for certificate, partner, why in [
        (found.certificate, worse, "dual value"),
        (tampered(found, blossoms=()), found.partner, "pair"),
        (tampered(found, potentials=y + 1), found.partner, "exceed"),
        (tampered(found, potentials=y - 1), found.partner, "dual value"),
        (tampered(found, blossoms=(((0, 1), 5),)), found.partner, "odd set"),
        (tampered(found, blossoms=(((0, 1, 2), -5),)), found.partner, "odd set"),
        (tampered(found, blossoms=crossing), found.partner, "cross"),
        (found.certificate, np.roll(found.partner, 1), "mutual"),
    ]:
        with pytest.raises(pg.RefusedError, match=why) as caught:
            certificate.verify(pairs, singles, partner)
        assert caught.value.code == "matching.certificate"
    low = singles.copy()
    low[0] = -1000
    with pytest.raises(pg.RefusedError, match="single"):
        found.certificate.verify(pairs, low, found.partner)


@pytest.mark.parametrize(
    "make",
    [
        lambda: cheapest_cover([[0, 1], [2, 0]], [0, 0]),
        lambda: cheapest_cover([[0, 1.5], [1.5, 0]], [0, 0]),
        lambda: cheapest_cover([[0, 1]], [0, 0]),
        lambda: cheapest_cover([[0, 1 << 55], [1 << 55, 0]], [0, 0]),
        lambda: maximum_weight_matching([1.0, 2.0]),
    ],
)
def test_costs_that_do_not_fit_are_an_error(make):
    with pytest.raises(pg.InputError) as caught:
        make()
    assert caught.value.code == "matching.costs"


def test_marks_are_fixed_and_symmetric():
    assert canonical.marks(3, 0).tolist() == canonical.marks(9, 0)[:3, :3].tolist()
    assert np.array_equal(canonical.marks(50, 3), canonical.marks(50, 3).T)
    assert canonical.marks(50, 0).max() < 4096
    assert not np.array_equal(canonical.marks(50, 0), canonical.marks(50, 1))


def _weighted(edges):
    graph = networkx.Graph()
    graph.add_weighted_edges_from(edges)
    return graph


def test_networkx_graphs_give_what_networkx_finds():
    rng = np.random.default_rng(5)
    for _ in range(40):
        n = int(rng.integers(1, 9))
        graph = networkx.gnp_random_graph(n, 0.5, seed=int(rng.integers(1 << 30)))
        for u, v in graph.edges():
            graph.edges[u, v]["weight"] = int(rng.integers(-3, 12))
        names = {v: f"node {v}" for v in graph}
        graph = networkx.relabel_nodes(graph, names)
        found = maximum_weight_matching(graph)
        best = sum(graph.edges[pair]["weight"] for pair in networkx.max_weight_matching(graph))
        assert -found.cost == best
        assert all(graph.has_edge(*pair) for pair in found.pairs)
        assert sum(graph.edges[pair]["weight"] for pair in found.pairs) == best


def test_pairs_without_an_edge_are_never_used():
    found = cheapest_cover(_weighted([("a", "b", 100), ("b", "c", 3)]), {"a": 50, "b": 10, "c": 0})
    assert found.pairs == (("b", "c"),)
    assert found.cost == 53
    assert cheapest_cover(networkx.Graph(), {}).pairs == ()


def test_missing_weights_are_one_and_whole_ones_stay_exact():
    assert maximum_weight_matching(networkx.path_graph(4)).cost == -2
    large = (1 << 54) - 1
    assert maximum_weight_matching(_weighted([(0, 1, large), (1, 2, large - 1)])).pairs == ((0, 1),)


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda: maximum_weight_matching(_weighted([(0, 1, 1.5)])), "matching.costs"),
        (lambda: maximum_weight_matching(_weighted([(0, 1, 2.0)])), "matching.costs"),
        (lambda: maximum_weight_matching(_weighted([(0, 1, "2")])), "matching.costs"),
        (lambda: maximum_weight_matching(_weighted([(0, 1, 1 << 54)])), "matching.costs"),
        (lambda: maximum_weight_matching(networkx.DiGraph([(0, 1)])), "matching.graph"),
        (lambda: maximum_weight_matching(networkx.MultiGraph([(0, 1)])), "matching.graph"),
        (lambda: maximum_weight_matching(networkx.Graph([(0, 0)])), "matching.graph"),
        (lambda: cheapest_cover(networkx.path_graph(2), {0: 1}), "matching.graph"),
        (lambda: cheapest_cover(networkx.path_graph(2), [1, 1]), "matching.graph"),
        (lambda: cheapest_cover(networkx.path_graph(2), {0: 1, 1: 0.5}), "matching.costs"),
    ],
)
def test_graphs_that_have_no_exact_matching_are_refused(ask, code):
    with pytest.raises(pg.InputError) as caught:
        ask()
    assert caught.value.code == code
