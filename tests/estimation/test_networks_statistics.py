"""Statistics of networks that are not linear: every bound against a list of all neighbours, releases, node privacy."""

from __future__ import annotations

from itertools import combinations, pairwise, product
from pathlib import Path

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.curator.counting import read_edges
from policygraph.estimation.networks import (
    PublicDegrees,
    class_assortativity,
    degree_assortativity,
    summarise,
    synthetic_from_release,
)
from policygraph.estimation.networks.statistics import degree_counts
from policygraph.mechanisms.statistics import StatisticNoise
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.queries.network_statistics import (
    DegreeTail,
    ProjectedDegreeTail,
    Triangles,
    Wedges,
    project_edges,
)
from policygraph.sensitivity.statistics import statistic_bound
from tests.oracles import networks as oracle


def answers(statistic: object, nodes: int) -> np.ndarray:
    """The statistic of every graph, in the order of the oracle's list."""
    return np.array([statistic.answer(graph) for graph in oracle.graphs(nodes, False)])  # type: ignore[attr-defined]


def edge_sets(nodes: int) -> list[list[tuple[int, int]]]:
    pairs = oracle.cell_pairs(nodes, False)
    return [
        [p for p, there in zip(pairs, graph.tolist(), strict=True) if there]
        for graph in oracle.graphs(nodes, False)
    ]


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_statistics_are_what_they_say(nodes: int) -> None:
    network = pg.Network(nodes)
    listed = edge_sets(nodes)
    tails, wedges, triangles = (answers(s(network), nodes) for s in (DegreeTail, Wedges, Triangles))
    for at, edges in enumerate(listed):
        degree = [sum(v in edge for edge in edges) for v in range(nodes)]
        assert tails[at].tolist() == [sum(d >= t for d in degree) for t in range(1, nodes)]
        assert wedges[at].tolist() == [oracle.wedges(edges, nodes)]
        assert triangles[at].tolist() == [oracle.triangles(edges)]


def pair_changes(values: np.ndarray, nodes: int, moves: list[tuple[int, int]]) -> tuple[int, int]:
    """Largest change in l1 and squared l2 over all graphs and moves that they allow."""
    size = len(oracle.cell_pairs(nodes, False))
    codes = np.arange(1 << size)
    # The oracle lists graphs with the last pair running fastest; bit i of a move is pair i.
    bits = [1 << (size - 1 - i) for i in range(size)]
    best1 = best2 = 0
    for removed, added in moves:
        r = sum(bits[i] for i in range(size) if removed >> i & 1)
        a = sum(bits[i] for i in range(size) if added >> i & 1)
        fits = codes[((codes & r) == r) & ((codes & a) == 0)]
        change = values[fits - r + a] - values[fits]
        best1 = max(best1, int(np.abs(change).sum(axis=1).max(initial=0)))
        best2 = max(best2, int((change**2).sum(axis=1).max(initial=0)))
    return best1, best2


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", [DegreeTail, Wedges, Triangles])
def test_edge_privacy_bounds_are_attained(nodes: int, kind: type) -> None:
    statistic = kind(pg.Network(nodes))
    policy = pg.Policy(pg.Network(nodes))
    moves = oracle.neighbour_changes(oracle.all_pairs(nodes, False), [])
    found = pair_changes(answers(statistic, nodes), nodes, moves)
    assert found == tuple(statistic_bound(statistic, policy, norm).power for norm in ("l1", "l2"))


@pytest.mark.parametrize("nodes", [3, 4, 5])
@pytest.mark.parametrize("kind", [DegreeTail, Wedges, Triangles])
@pytest.mark.parametrize("strength", ["worst-case", "markov"])
def test_bounds_hold_for_every_number_of_known_degrees(nodes: int, kind: type, strength: str) -> None:
    statistic = kind(pg.Network(nodes))
    values = answers(statistic, nodes)
    for known in range(1, nodes + 1):
        policy = pg.Policy(pg.Network(nodes), constraints=[pg.Degrees(range(known))], strength=strength)
        moves = oracle.neighbour_changes(oracle.all_pairs(nodes, False), [("both", v) for v in range(known)])
        if strength == "markov":
            moves = [m for m in moves if (m[0] | m[1]).bit_count() <= 4]
        found = pair_changes(values, nodes, moves)
        for largest, norm in zip(found, ("l1", "l2"), strict=True):
            assert largest <= statistic_bound(statistic, policy, norm).power


@pytest.mark.parametrize(("nodes", "every"), [(4, 1), (5, 7), (6, 900)])
@pytest.mark.parametrize("strength", ["worst-case", "markov"])
def test_triangles_with_published_degrees(nodes: int, every: int, strength: str) -> None:
    network = pg.Network(nodes)
    pairs = oracle.cell_pairs(nodes, False)
    moves = oracle.neighbour_changes(oracle.all_pairs(nodes, False), [("both", v) for v in range(nodes)])
    if strength == "markov":
        moves = [m for m in moves if (m[0] | m[1]).bit_count() <= 4]
    graphs = oracle.graphs(nodes, False)
    statistic = Triangles(network)
    bounds: dict[tuple[int, ...], int] = {}
    attained = False
    for graph in graphs[::every]:
        degree = tuple(a + b for a, b in zip(*oracle.degrees_of(graph, pairs, nodes), strict=True))
        key = tuple(sorted(degree))
        if key not in bounds:
            policy = pg.Policy(network, constraints=[pg.Degrees(equals=list(degree))], strength=strength)
            bounds[key] = statistic_bound(statistic, policy).power
        before = int(statistic.answer(graph)[0])
        code = sum(1 << i for i, there in enumerate(graph.tolist()) if there)
        for removed, added in moves:
            if code & removed == removed and code & added == 0:
                change = np.array(oracle.change_vector((removed, added), len(pairs)))
                off = abs(int(statistic.answer(graph + change)[0]) - before)
                assert off <= bounds[key]
                attained |= off > 0
    assert attained or nodes == 4


def test_the_bound_for_markov_triangles_is_the_second_and_fourth_largest_degree() -> None:
    degrees = [9, 7, 6, 5, 4, 4, 4, 3, 2, 2, 1, 1]
    network = pg.Network(12)
    policy = pg.Policy(network, constraints=[pg.Degrees(equals=degrees)], strength="markov")
    assert statistic_bound(Triangles(network), policy).power == 7 + 5 - 2
    capped = pg.Policy(network, constraints=[pg.Degrees(equals=degrees)], at_most_records=2)
    assert statistic_bound(Triangles(network), capped).power >= 10
    total = pg.Policy(network, constraints=[pg.Degrees(equals=degrees), pg.count([0, 1])], at_most_records=2)
    assert statistic_bound(Triangles(network), total).power == 2 * 6
    without = pg.Policy(network, constraints=[pg.Degrees()], strength="markov")
    assert statistic_bound(Triangles(network), without).power == 4 * 10


def test_directed_degree_tails() -> None:
    network = pg.Network(3, directed=True)
    pairs = oracle.cell_pairs(3, True)
    for side, end in (("out", 0), ("in", 1)):
        statistic = DegreeTail(network, side=side)
        for graph in oracle.graphs(3, True):
            degree = oracle.degrees_of(graph, pairs, 3)[end]
            assert statistic.answer(graph).tolist() == [sum(d >= t for d in degree) for t in (1, 2)]
        assert statistic_bound(statistic, pg.Policy(network)).power == 1
    both = [pg.Degrees(side="out"), pg.Degrees(side="in")]
    assert statistic_bound(statistic, pg.Policy(network, constraints=both)).power == 0
    assert statistic_bound(statistic, pg.Policy(network, constraints=both[:1])).power == 2


# Node privacy ---------------------------------------------------------------------------------------------------------


def literal_projection(
    edges: list[tuple[int, int]], network: pg.Network, cap: int, order: list[int]
) -> list[int]:
    """Degrees after keeping edges in an order of all pairs, one by one."""
    degree = [0] * network.order
    for cell in order:
        u, v = (int(x) for x in network.cell(cell))
        if (u, v) in edges and degree[u] < cap and degree[v] < cap:
            degree[u] += 1
            degree[v] += 1
    return degree


@pytest.mark.parametrize(("nodes", "cap"), [(3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (5, 2)])
def test_projected_degrees_change_by_at_most_twice_the_cap(nodes: int, cap: int) -> None:
    network = pg.Network(nodes)
    policy = NodePrivacy(network)
    statistic = ProjectedDegreeTail(network, cap)
    graphs = oracle.graphs(nodes, False)
    values = np.array([statistic.answer(graph) for graph in graphs])
    pairs = oracle.cell_pairs(nodes, False)
    bound = statistic_bound(statistic, policy).power
    best = 0
    for node in range(nodes):
        here = np.array([node in pair for pair in pairs])
        groups: dict[bytes, list[int]] = {}
        for at, graph in enumerate(graphs):
            groups.setdefault(graph[~here].tobytes(), []).append(at)
        for alike in groups.values():
            block = values[alike]
            best = max(best, int(np.abs(block[:, None, :] - block[None, :, :]).sum(axis=2).max()))
    assert best <= bound == 2 * cap
    if nodes > cap:
        assert best == bound


@pytest.mark.parametrize("seed", range(4))
def test_projection_keeps_edges_in_one_order_for_all_graphs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = pg.Network(7)
    # The order shows when every edge is kept one at a time: a pair is before another if it survives with it at a shared node.
    before = [
        (a, b) for a, b in combinations(range(network.size), 2) if set(network.cell(a)) & set(network.cell(b))
    ]
    first = {(a, b): int(project_edges(network, [a, b], 1)[0]) for a, b in before}
    ranked = networkx.DiGraph((w, b if w == a else a) for (a, b), w in first.items())
    order = list(networkx.topological_sort(ranked))
    for cap in (1, 2, 3):
        table = (rng.random(network.size) < 0.6).astype(np.int64)
        edges = [tuple(int(x) for x in network.cell(c)) for c in np.flatnonzero(table)]
        degree = literal_projection(edges, network, cap, order)
        expected = [sum(d >= t for d in degree) for t in range(1, cap + 1)]
        assert ProjectedDegreeTail(network, cap).answer(table).tolist() == expected


def test_a_node_private_release_with_a_ledger(tmp_path: Path) -> None:
    graph = networkx.barabasi_albert_graph(200, 3, seed=1)
    network = pg.Network(200)
    policy = NodePrivacy(network)
    statistic = ProjectedDegreeTail(network, 10)
    book = pg.Ledger(tmp_path / "budget.db")
    made = pg.release(
        statistic,
        policy,  # type: ignore[arg-type]
        graph,
        epsilon=2,
        mechanism=StatisticNoise(),
        ledger=book,
        dataset="friends",
        source=pg.SeededRng(5),
    )
    assert made.record["bound"]["power"] == "20"
    assert made.record["noise"]["parameter"] == "10"
    assert "Theorem 6" in made.sentences[1]
    assert float(np.asarray(made.tables[0].deviation)) == pytest.approx(np.sqrt(2) * 10, rel=0.01)
    true = statistic.answer(read_edges(graph, network).vector())
    assert np.abs(made.values() - true).max() < 100
    assert book.spent("friends") is not None


def test_linear_queries_are_refused_under_node_privacy() -> None:
    network = pg.Network(4)
    query = pg.queries.mixing(network, [0, 0, 1, 1])
    with pytest.raises(pg.InputError) as caught:
        pg.sensitivity(query, NodePrivacy(network))  # type: ignore[arg-type]
    assert caught.value.code == "sensitivity.arguments"
    with pytest.raises(pg.PolicyGraphError):
        pg.release(query, NodePrivacy(network), [0] * 6, epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(pg.PolicyGraphError):
        pg.release(query, NodePrivacy(network), [0] * 6, epsilon=1, mechanism=pg.Laplace())  # type: ignore[arg-type]
    with pytest.raises(pg.RefusedError) as linear:
        _ = NodePrivacy(network).definition
    assert linear.value.code == "nodes.linear"
    for statistic in (DegreeTail(network), Triangles(network), Wedges(network)):
        with pytest.raises(pg.RefusedError) as refused:
            statistic_bound(statistic, NodePrivacy(network))
        assert refused.value.code == "statistic.policy"
    with pytest.raises(pg.RefusedError):
        statistic_bound(ProjectedDegreeTail(network, 2), pg.Policy(network))


def test_node_neighbours_share_all_edges_away_from_one_node() -> None:
    policy = NodePrivacy(pg.Network(4))
    pairs = oracle.cell_pairs(4, False)
    rng = np.random.default_rng(1)
    graphs = oracle.graphs(4, False)
    for one, other in product(rng.choice(64, 12), rng.choice(64, 12)):
        a, b = graphs[one], graphs[other]
        changed = [set(p) for p, x, y in zip(pairs, a, b, strict=True) if x != y]
        expected = bool(changed) and any(all(v in pair for pair in changed) for v in range(4))
        assert policy.are_neighbours(a, b) == expected


# Statistics are never treated as linear -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DegreeTail, Wedges, Triangles])
def test_a_statistic_has_no_linear_sensitivity(kind: type) -> None:
    network = pg.Network(5)
    statistic = kind(network)
    graph = pg.PolicyGraph.full(network)
    for policy in (
        pg.Policy(network),
        pg.Policy(network, graph),
        pg.Policy(network, graph.with_bottom()),
        pg.Policy(network, constraints=[pg.Degrees([0])]),
        pg.Policy(network, constraints=[pg.Degrees()], strength="markov"),
        pg.Policy(network, constraints=[pg.Degrees(equals=[2] * 5)]),
        pg.Policy(network, constraints=[pg.Total()]),
        pg.Policy(network, graph, constraints=[pg.Total()], at_most_records=2),
    ):
        with pytest.raises(pg.RefusedError):
            pg.sensitivity(statistic, policy)
        with pytest.raises(pg.RefusedError):
            pg.release(statistic, policy, [0] * 10, epsilon=1, mechanism=pg.Laplace())


def test_a_statistic_of_a_large_network_has_no_linear_sensitivity_either() -> None:
    network = pg.Network(20_000)
    for policy in (pg.Policy(network), pg.Policy(network, constraints=[pg.Degrees([0])])):
        with pytest.raises(pg.RefusedError):
            pg.sensitivity(Triangles(network), policy, effort=5_000_000)


@pytest.mark.parametrize("loss", [{"epsilon": 1}, {"rho": "1/2"}])
def test_releases_under_edge_privacy(loss: dict) -> None:
    graph = networkx.karate_club_graph()
    network = pg.Network(34)
    policy = pg.Policy(network)
    for statistic in (DegreeTail(network, 20), Wedges(network), Triangles(network)):
        made = pg.release(
            statistic,
            policy,
            networkx.Graph(graph.edges()),
            mechanism=StatisticNoise(),
            source=pg.SeededRng(2),
            **loss,
        )
        bound = statistic_bound(statistic, policy, "l1" if "epsilon" in loss else "l2").power
        assert made.record["noise"]["parameter"] == str(bound)
        assert len(made.values()) == statistic.height
    wrong = pg.queries.mixing(network, [0] * 34)
    with pytest.raises(pg.InputError) as caught:
        StatisticNoise().calibrate(wrong, policy, pg.Epsilon(1))
    assert caught.value.code == "statistic.linear"


def test_public_degrees_make_wedges_exact() -> None:
    graph = networkx.karate_club_graph()
    network = pg.Network(34)
    policy = pg.Policy(network, constraints=[pg.Degrees(equals=[graph.degree(v) for v in range(34)])])
    made = pg.release(
        Wedges(network), policy, networkx.Graph(graph.edges()), epsilon=1, mechanism=StatisticNoise()
    )
    assert made.values().tolist() == [sum(d * (d - 1) // 2 for _, d in graph.degree())]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-20, 60), min_size=1, max_size=12), st.integers(0, 40))
def test_degree_counts_are_whole_and_falling_and_near(noisy: list[int], nodes: int) -> None:
    made = degree_counts(noisy, nodes)
    assert np.all(np.diff(made.at_least) <= 0)
    assert np.all((made.at_least >= 0) & (made.at_least <= nodes))
    assert made.exactly.sum() == nodes
    assert np.all(made.exactly >= 0)
    falling = sorted(noisy, reverse=True)
    if noisy == falling:
        assert made.at_least.tolist() == np.clip(noisy, 0, nodes).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_degree_counts_are_the_nearest_falling_sequence(seed: int) -> None:
    rng = np.random.default_rng(seed)
    noisy = rng.integers(-2, 7, 4)
    made = degree_counts(noisy, 4)
    best = min(
        sum((a - b) ** 2 for a, b in zip(s, noisy, strict=True))
        for s in product(np.arange(0, 4.01, 0.25), repeat=4)
        if all(x >= y for x, y in pairwise(s))
    )
    # Rounding moves each number by at most one half from the least-squares solution.
    assert float(((made.at_least - noisy) ** 2).sum()) <= (np.sqrt(best) + 1.0) ** 2 + 1e-9


# Comparisons ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_summaries_are_those_of_networkx(seed: int) -> None:
    graph = networkx.gnp_random_graph(30, 0.15, seed=seed)
    edges = np.array(graph.edges()).reshape(-1, 2)
    found = summarise(edges[:, 0], edges[:, 1], 30)
    assert found.triangles == sum(networkx.triangles(graph).values()) // 3
    assert found.transitivity == pytest.approx(networkx.transitivity(graph))
    assert found.clustering == pytest.approx(networkx.average_clustering(graph))
    assert found.assortativity == pytest.approx(networkx.degree_assortativity_coefficient(graph))
    degrees = [graph.degree(v) for v in range(30)]
    network = pg.Network(30)
    query = pg.queries.mixing(network, degrees)
    counts = query.answer(read_edges(graph, network).vector())
    public = PublicDegrees.of(network, degrees)
    assert class_assortativity(counts, query, public) == pytest.approx(found.assortativity)
    assert degree_assortativity(edges[:, 0], edges[:, 1], 30) == pytest.approx(found.assortativity)


def test_joint_degree_counts_are_mixing_counts_of_public_degrees() -> None:
    graph = networkx.karate_club_graph()
    degrees = [graph.degree(v) for v in range(34)]
    network = pg.Network(34)
    query = pg.queries.mixing(network, degrees)
    policy = pg.Policy(network, constraints=[pg.Degrees(equals=degrees)], strength="markov")
    made = pg.release(
        query,
        policy,
        networkx.Graph(graph.edges()),
        epsilon=4,
        mechanism=pg.Laplace(),
        source=pg.SeededRng(1),
    )
    synthetic = synthetic_from_release(made, seed=1)
    assert synthetic.degrees()[0].tolist() == degrees
    true = networkx.degree_assortativity_coefficient(networkx.Graph(graph.edges()))
    assert degree_assortativity(synthetic.tail, synthetic.head, 34) == pytest.approx(true, abs=0.25)


def test_what_is_no_release_of_mixing_counts_is_refused() -> None:
    network = pg.Network(4)
    policy = pg.Policy(network, constraints=[pg.Degrees(equals=[1, 1, 1, 1])])
    made = pg.release(
        pg.queries.adjacency(network),
        policy,
        [1, 0, 0, 0, 0, 1],
        epsilon=1,
        mechanism=pg.Laplace(),
        source=pg.SeededRng(1),
    )
    with pytest.raises(pg.InputError) as caught:
        synthetic_from_release(made)
    assert caught.value.code == "networks.release"
    with pytest.raises(pg.InputError) as loops:
        summarise([0, 1], [1, 0], 2)
    assert loops.value.code == "networks.kind"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: DegreeTail(pg.Network(4), 9), "query.degree"),
        (lambda: DegreeTail(pg.Network(4), 0), "query.degree"),
        (lambda: DegreeTail(pg.Network(4), side="in"), "query.degree"),
        (lambda: DegreeTail(pg.Network(4, multiple=True)), "query.degree"),
        (lambda: Triangles(pg.Network(4, directed=True)), "query.domain"),
        (lambda: Wedges(pg.Domain({"a": 2})), "query.domain"),
        (lambda: ProjectedDegreeTail(pg.Network(4), 4), "query.degree"),
        (lambda: NodePrivacy(pg.Network(4, directed=True)), "nodes.domain"),
        (lambda: degree_counts([], 3), "networks.counts"),
        (lambda: statistic_bound(Triangles(pg.Network(4)), pg.Policy(pg.Network(5))), "query.domain"),
        (
            lambda: statistic_bound(Triangles(pg.Network(4)), pg.Policy(pg.Network(4)), "l3"),
            "sensitivity.norm",
        ),
    ],
)
def test_errors(make: object, code: str) -> None:
    with pytest.raises(pg.PolicyGraphError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.code == code
