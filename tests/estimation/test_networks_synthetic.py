"""Consistent counts, synthetic graphs and nearest graphs against lists of all of them."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import networkx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.estimation.networks import (
    PublicDegrees,
    consistent_mixing,
    mixing,
    mixing_limits,
    nearest_network,
    synthetic_graph,
)
from policygraph.estimation.networks.mixing import symmetric_transport, transport, violated
from policygraph.estimation.networks.nearest import nearest_counts
from policygraph.estimation.networks.realise import any_graph, first_graph
from policygraph.model.constraints.networks import digraphical, graphical
from tests.oracles import networks as oracle
from tests.paths import DATA, ROOT

FACEBOOK = DATA / "graphs" / "facebook_combined.txt"
quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def networks(draw: st.DrawFn, most: int = 9) -> tuple[pg.Network, np.ndarray, list[int], np.ndarray]:
    """A network, a graph on it, groups of its nodes, and noise for each count."""
    directed = draw(st.booleans())
    loops = directed and draw(st.booleans())
    nodes = draw(st.integers(1, most))
    network = pg.Network(nodes, directed=directed, loops=loops)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    density = draw(st.sampled_from([0.1, 0.4, 0.7, 0.95]))
    table = (rng.random(network.size) < density).astype(np.int64)
    groups = rng.integers(0, draw(st.integers(1, 4)), nodes).tolist()
    k = len(set(groups))
    scale = draw(st.sampled_from([0, 1, 5, 200]))
    noise = rng.integers(-scale, scale + 1, k * k if directed else k * (k + 1) // 2)
    return network, table, groups, noise


def degrees_of(network: pg.Network, table: np.ndarray) -> PublicDegrees:
    pairs = oracle.cell_pairs(network.order, network.directed, network.loops)
    out, into = oracle.degrees_of(table, pairs, network.order)
    if network.directed:
        return PublicDegrees.of(network, out=out, into=into)
    return PublicDegrees.of(network, [a + b for a, b in zip(out, into, strict=True)])


def check_sums(query: pg.queries.MixingQuery, degrees: PublicDegrees, values: np.ndarray) -> None:
    k = len(query.names)
    sums = [[0] * k, [0] * k]
    labels = query.part_labels(0)
    at = {name: position for position, name in enumerate(query.names)}
    for one, other, value in zip(*labels, values.tolist(), strict=True):
        assert value >= 0
        sums[0][at[one]] += value
        sums[1][at[other]] += value
    out = [int(degrees.out[query.codes == g].sum()) for g in range(k)]
    into = [int(degrees.into[query.codes == g].sum()) for g in range(k)]
    if query.domain.directed:
        assert sums == [out, into]
    else:
        assert [a + b for a, b in zip(*sums, strict=True)] == out


# Degree sequences -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5])
def test_graphical_is_what_some_graph_has(nodes: int) -> None:
    pairs = oracle.cell_pairs(nodes, False)
    real = set()
    for graph in oracle.graphs(nodes, False):
        out, into = oracle.degrees_of(graph, pairs, nodes)
        real.add(tuple(a + b for a, b in zip(out, into, strict=True)))
    for degrees in product(range(-1, nodes + 1), repeat=nodes):
        assert graphical(degrees) == (degrees in real)


@pytest.mark.parametrize(
    ("nodes", "loops"), [(1, False), (1, True), (2, False), (2, True), (3, False), (3, True), (4, False)]
)
def test_digraphical_is_what_some_graph_has(nodes: int, loops: bool) -> None:
    pairs = oracle.cell_pairs(nodes, True, loops)
    real = set()
    for graph in oracle.graphs(nodes, True, loops):
        out, into = oracle.degrees_of(graph, pairs, nodes)
        real.add((tuple(out), tuple(into)))
    for out in product(range(min(nodes, 3) + 1), repeat=nodes):
        for into in product(range(min(nodes, 3) + 1), repeat=nodes):
            assert digraphical(out, into, loops=loops) == ((out, into) in real)


@quick
@given(networks())
def test_any_graph_has_the_degrees_and_is_simple(case: tuple) -> None:
    network, table, _, _ = case
    degrees = degrees_of(network, table)
    tail, head = any_graph(degrees.out, degrees.into, directed=network.directed, loops=network.loops)
    cells = network.pair_index(tail, head)
    assert len(set(cells.tolist())) == len(cells) == int(table.sum())
    made = np.zeros(network.size, dtype=np.int64)
    made[cells] = 1
    again = degrees_of(network, made)
    assert np.array_equal(again.out, degrees.out)
    assert np.array_equal(again.into, degrees.into)


# Consistent counts ----------------------------------------------------------------------------------------------------


@quick
@given(networks(), st.sampled_from(["l1", "l2"]))
def test_consistent_counts_have_the_public_sums(case: tuple, norm: str) -> None:
    network, table, groups, noise = case
    query = pg.queries.mixing(network, groups)
    degrees = degrees_of(network, table)
    true = query.answer(table)
    low, high = mixing_limits(query, degrees)
    assert np.all(low <= true)
    assert np.all(true <= high)
    assert violated(query, degrees, true) == []
    made = consistent_mixing(true + noise, query, degrees, norm=norm)
    check_sums(query, degrees, made.values)
    assert np.all(low <= made.values)
    assert np.all(made.values <= high)
    again = consistent_mixing(made.values, query, degrees, norm=norm)
    assert np.array_equal(again.values, made.values)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(most=5))
def test_consistent_counts_are_the_nearest(case: tuple) -> None:
    network, table, groups, noise = case
    query = pg.queries.mixing(network, groups)
    if query.height > 6 or table.sum() > 8:
        return
    degrees = degrees_of(network, table)
    noisy = query.answer(table) + noise
    made = consistent_mixing(noisy, query, degrees, norm="l1")
    low, high = mixing_limits(query, degrees)
    k = len(query.names)
    sums = [[int(side[query.codes == g].sum()) for g in range(k)] for side in (degrees.out, degrees.into)]
    tables = np.array(oracle.consistent_tables(k, network.directed, *sums, int(high.max(initial=0))))
    sides = (degrees.out.tolist(), degrees.into.tolist())
    kinds = (query.codes.tolist(), network.directed, network.loops)
    fits = tables[np.all((tables >= low) & (tables <= high), axis=1)]
    room = np.array([oracle.leaves_room(table, sides, *kinds) for table in fits.tolist()], dtype=bool)
    assert [not violated(query, degrees, table) for table in fits] == room.tolist()
    fits = fits[room]
    best = int(np.abs(fits - noisy).sum(axis=1).min())
    assert made.nearest
    assert int(np.abs(made.values - noisy).sum()) == best


def test_with_some_degrees_only_the_sums_of_full_groups_are_exact() -> None:
    network = pg.Network(6)
    query = pg.queries.mixing(network, ["x", "x", "x", "y", "y", "y"])
    degrees = PublicDegrees.of(network, {0: 2, 1: 2, 2: 2, 3: 4})
    made = consistent_mixing([-3, 1, 0], query, degrees)
    inside, between, other = made.values.tolist()
    assert 2 * inside + between == 6
    assert 2 * other + between >= 4
    with pytest.raises(pg.InputError) as caught:
        synthetic_graph(made.values, query, degrees)
    assert caught.value.code == "networks.partial"


def test_multigraph_counts_have_no_limit_but_the_degrees() -> None:
    network = pg.Network(4, multiple=True)
    query = pg.queries.mixing(network, ["x", "x", "y", "y"])
    made = consistent_mixing([9, 9, 9], query, PublicDegrees.of(network, [7, 5, 3, 3]))
    check_sums(query, PublicDegrees.of(network, [7, 5, 3, 3]), made.values)


@pytest.mark.parametrize("seed", range(6))
def test_many_groups_go_by_flow_and_fit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(mixing, "PROGRAM_COUNTS", 0)
    network = pg.Network(120)
    table = (rng.random(network.size) < 0.1).astype(np.int64)
    query = pg.queries.mixing(network, rng.integers(0, 9, 120).tolist())
    degrees = degrees_of(network, table)
    true = query.answer(table)
    noisy = true + rng.integers(-9, 10, query.height)
    made = consistent_mixing(noisy, query, degrees)
    check_sums(query, degrees, made.values)
    monkeypatch.setattr(mixing, "PROGRAM_COUNTS", 400)
    best = consistent_mixing(noisy, query, degrees)
    far, near = (float(np.abs(found.values - found.target).sum()) for found in (made, best))
    assert near <= far + 1e-6 <= near + 20


@quick
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 3))
def test_transport_is_the_nearest_table(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 3, (n, m))
    target = np.round(true + rng.normal(0, 1, (n, m)), 3)
    low, high = np.maximum(true - rng.integers(0, 2, (n, m)), 0), true + rng.integers(0, 3, (n, m))
    made = transport(target, true.sum(axis=1), true.sum(axis=0), low, high)
    assert made is not None
    best = min(
        float(np.abs(np.reshape(values, (n, m)) - target).sum())
        for values in product(*(range(a, b + 1) for a, b in zip(low.ravel(), high.ravel(), strict=True)))
        if np.array_equal(np.reshape(values, (n, m)).sum(axis=0), true.sum(axis=0))
        and np.array_equal(np.reshape(values, (n, m)).sum(axis=1), true.sum(axis=1))
    )
    assert float(np.abs(made - target).sum()) == pytest.approx(best, abs=1e-6)
    assert np.all((made >= low) & (made <= high))


def test_transport_without_a_solution() -> None:
    zero, one = np.zeros((2, 2), dtype=np.int64), np.ones((2, 2), dtype=np.int64)
    assert transport(zero, [3, 0], [1, 2], zero, one) is None
    assert transport(zero, [1, 0], [1, 1], zero, one) is None
    assert transport(zero, [1, 1], [1, 1], one * 2, one) is None
    assert (
        symmetric_transport(
            [0, 0, 0], np.array([9, 9]), np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64)
        )
        is None
    )


# Synthetic graphs -----------------------------------------------------------------------------------------------------


def check_synthetic(
    query: pg.queries.MixingQuery, degrees: PublicDegrees, asked: np.ndarray, seed: int = 1
) -> int:
    network = query.domain
    made = synthetic_graph(asked, query, degrees, seed=seed, switches=10)
    cells = network.pair_index(made.tail, made.head)
    assert len(set(cells.tolist())) == len(cells)
    table = np.zeros(network.size, dtype=np.int64)
    table[cells] = 1
    again = degrees_of(network, table)
    assert np.array_equal(again.out, degrees.out)
    assert np.array_equal(again.into, degrees.into)
    assert np.array_equal(query.answer(table), made.counts)
    assert made.exact == np.array_equal(made.counts, asked)
    return int(np.abs(made.counts - asked).sum())


@quick
@given(networks(most=12))
def test_counts_of_a_graph_are_met_exactly(case: tuple) -> None:
    network, table, groups, _ = case
    query = pg.queries.mixing(network, groups)
    assert check_synthetic(query, degrees_of(network, table), query.answer(table)) == 0


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(most=4))
def test_counts_of_no_graph_are_met_as_nearly_as_possible(case: tuple) -> None:
    network, table, groups, noise = case
    query = pg.queries.mixing(network, groups)
    degrees = degrees_of(network, table)
    asked = consistent_mixing(query.answer(table) + noise, query, degrees).values
    pairs = oracle.cell_pairs(network.order, network.directed, network.loops)
    wanted = oracle.degrees_of(table, pairs, network.order)
    if not network.directed:
        wanted = [a + b for a, b in zip(*wanted, strict=True)]
    best = None
    for graph in oracle.graphs(network.order, network.directed, network.loops):
        found = oracle.degrees_of(graph, pairs, network.order)
        if not network.directed:
            found = [a + b for a, b in zip(*found, strict=True)]
        if found == wanted:
            off = int(np.abs(query.answer(graph) - asked).sum())
            best = off if best is None else min(best, off)
    assert best is not None
    assert check_synthetic(query, degrees, asked) == best


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_middle_sized_graphs(directed: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = pg.Network(150, directed=directed)
    weight = rng.pareto(1.5, 150) + 0.3
    tail, head = network.pairs(np.arange(network.size))
    groups = rng.integers(0, 5, 150)
    chance = np.minimum(
        0.03 * weight[tail] * weight[head] * np.where(groups[tail] == groups[head], 4, 1), 0.9
    )
    table = (rng.random(network.size) < chance).astype(np.int64)
    query = pg.queries.mixing(network, groups.tolist())
    degrees = degrees_of(network, table)
    noisy = query.answer(table) + rng.integers(-6, 7, query.height)
    asked = consistent_mixing(noisy, query, degrees)
    check_sums(query, degrees, asked.values)
    assert check_synthetic(query, degrees, asked.values, seed) == 0


def test_switches_change_the_graph_and_a_seed_repeats_it() -> None:
    rng = np.random.default_rng(4)
    network = pg.Network(60)
    table = (rng.random(network.size) < 0.15).astype(np.int64)
    query = pg.queries.mixing(network, (np.arange(60) % 3).tolist())
    degrees = degrees_of(network, table)
    one, same, other = (synthetic_graph(query.answer(table), query, degrees, seed=s) for s in (1, 1, 2))
    still = synthetic_graph(query.answer(table), query, degrees, seed=1, switches=0)
    assert one.edges() == same.edges()
    assert len(set(one.edges()) & set(other.edges())) < 0.6 * len(one.edges())
    assert len(set(one.edges()) & set(still.edges())) < 0.6 * len(one.edges())


def test_the_graph_goes_out_as_networkx_and_csv(tmp_path: Path) -> None:
    network = pg.Network(["a", "b", "c", "d"])
    query = pg.queries.mixing(network, ["x", "x", "y", "y"])
    made = synthetic_graph([0, 2, 0], query, PublicDegrees.of(network, [1, 1, 1, 1]), seed=3)
    graph = made.to_networkx()
    assert dict(graph.degree()) == {"a": 1, "b": 1, "c": 1, "d": 1}
    made.to_csv(tmp_path / "edges.csv")
    from policygraph.curator.counting import read_edges

    back = read_edges(tmp_path / "edges.csv", network)
    assert back.vector().tolist() == read_edges(graph, network).vector().tolist()


def test_an_empty_graph() -> None:
    network = pg.Network(3)
    query = pg.queries.mixing(network, [0, 0, 1])
    made = synthetic_graph([0, 0, 0], query, PublicDegrees.of(network, [0, 0, 0]))
    assert made.edges() == []
    assert made.exact


def test_a_first_graph_has_degrees_and_counts_even_where_no_simple_one_has_them() -> None:
    degrees = np.array([2, 2, 2, 2])
    codes = np.array([0, 0, 1, 1])
    counts = np.array([[2, 0], [0, 2]])
    tail, head = first_graph(degrees, degrees, codes, counts, directed=False, loops=False)
    assert np.array_equal(np.bincount(tail, minlength=4) + np.bincount(head, minlength=4), degrees)
    assert np.array_equal(codes[tail], codes[head])
    query = pg.queries.mixing(pg.Network(4), [0, 0, 1, 1])
    assert check_synthetic(query, PublicDegrees.of(pg.Network(4), degrees), np.array([2, 0, 2])) == 4


# Nearest graphs -------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(most=4), st.integers(0, 10**6), st.integers(0, 4))
def test_the_nearest_graph_is_the_nearest(case: tuple, seed: int, known: int) -> None:
    network, table, _, _ = case
    rng = np.random.default_rng(seed)
    noisy = table + rng.integers(-4, 5, network.size)
    full = degrees_of(network, table)
    few = dict(enumerate(full.out.tolist()[:known]))
    degrees = full
    if known < network.order:
        degrees = PublicDegrees.of(network, out=few) if network.directed else PublicDegrees.of(network, few)
    made = nearest_network(noisy, network, degrees)
    pairs = oracle.cell_pairs(network.order, network.directed, network.loops)
    best = None
    for graph in oracle.graphs(network.order, network.directed, network.loops):
        out, into = oracle.degrees_of(graph, pairs, network.order)
        if not network.directed:
            out = into = [a + b for a, b in zip(out, into, strict=True)]
        fits = all(
            want in (-1, have)
            for side, found in ((degrees.out, out), (degrees.into, into))
            for want, have in zip(side.tolist(), found, strict=True)
        )
        if fits:
            off = int(((graph - noisy) ** 2).sum())
            best = off if best is None else min(best, off)
    assert int(((made - noisy) ** 2).sum()) == best


def test_a_noisy_adjacency_of_a_small_network_end_to_end() -> None:
    graph = networkx.karate_club_graph()
    network = pg.Network(34)
    degrees = [graph.degree(v) for v in range(34)]
    policy = pg.Policy(network, constraints=[pg.Degrees(equals=degrees)])
    plain = networkx.Graph(graph.edges())
    noise = pg.release(
        pg.queries.adjacency(network),
        policy.with_strength("markov"),
        plain,
        epsilon=20,
        mechanism=pg.Laplace(),
        source=pg.SeededRng(1),
    )
    made = nearest_network(noise.values(), network, PublicDegrees.from_policy(policy))
    tail, head = network.pairs(np.flatnonzero(made))
    assert (np.bincount(tail, minlength=34) + np.bincount(head, minlength=34)).tolist() == degrees
    from policygraph.curator.counting import read_edges

    true = read_edges(plain, network).vector()
    assert int(np.abs(made - true).sum()) < 20


def test_the_exponential_mechanism_draws_graphs_with_the_public_degrees() -> None:
    from policygraph.mechanisms.exponential.mechanism import Exponential

    network = pg.Network(5)
    policy = pg.Policy(network, constraints=[pg.Degrees(equals=[2] * 5)])
    pairs = oracle.cell_pairs(5, False)
    fitting = [
        graph.tolist()
        for graph in oracle.graphs(5, False)
        if [a + b for a, b in zip(*oracle.degrees_of(graph, pairs, 5), strict=True)] == [2] * 5
    ]
    ready = Exponential().calibrate(pg.queries.adjacency(network), policy, pg.Epsilon(2))
    assert sorted(ready.graph.tables.tolist()) == sorted(fitting)
    assert len(fitting) == 12
    made = pg.release(
        pg.queries.adjacency(network),
        policy,
        networkx.cycle_graph(5),
        epsilon=2,
        mechanism=Exponential(),
        source=pg.SeededRng(3),
    )
    assert made.values().tolist() in fitting


# Errors ---------------------------------------------------------------------------------------------------------------


def query3() -> pg.queries.MixingQuery:
    return pg.queries.mixing(pg.Network(3), [0, 0, 1])


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: PublicDegrees.of(pg.Network(3), [1, 1, 1]), "networks.infeasible"),
        (lambda: PublicDegrees.of(pg.Network(3), [3, 1, 0]), "networks.infeasible"),
        (lambda: PublicDegrees.of(pg.Network(4), [3, 3, 1, 1]), "networks.infeasible"),
        (
            lambda: PublicDegrees.of(pg.Network(2, directed=True), out=[1, 1], into=[1, 0]),
            "networks.infeasible",
        ),
        (
            lambda: PublicDegrees.of(pg.Network(3, directed=True), out=[2, 2, 0], into=[2, 2, 0]),
            "networks.infeasible",
        ),
        (lambda: PublicDegrees.of(pg.Network(3), {7: 1}), "network.unknown-node"),
        (lambda: PublicDegrees.of(pg.Network(3), [1, 1]), "networks.degrees"),
        (lambda: PublicDegrees.of(pg.Network(3), [1, -1, 0]), "networks.degrees"),
        (lambda: PublicDegrees.of(pg.Network(3), [1, 0.5, 0]), "networks.degrees"),
        (lambda: PublicDegrees.of(pg.Network(3), out=[1, 1, 0]), "networks.side"),
        (lambda: PublicDegrees.of(pg.Network(3, directed=True), [1, 1, 0]), "networks.side"),
        (lambda: PublicDegrees.from_policy(pg.Policy(pg.Domain({"a": 2}))), "networks.domain"),
        (
            lambda: consistent_mixing([1, 2], query3(), PublicDegrees.of(pg.Network(3), [1, 1, 0])),
            "networks.counts",
        ),
        (
            lambda: consistent_mixing(
                [1, 2, 3], query3(), PublicDegrees.of(pg.Network(3), [1, 1, 0]), norm="l3"
            ),
            "networks.norm",
        ),
        (
            lambda: consistent_mixing([1, 2, 3], query3(), PublicDegrees.of(pg.Network(2), [1, 1])),
            "networks.domain",
        ),
        (
            lambda: synthetic_graph([1, 0, 0], query3(), PublicDegrees.of(pg.Network(2), [1, 1])),
            "networks.domain",
        ),
        (
            lambda: synthetic_graph([0, 1, 0], query3(), PublicDegrees.of(pg.Network(3), [1, 1, 0])),
            "networks.sums",
        ),
        (
            lambda: synthetic_graph([1, -1, 0], query3(), PublicDegrees.of(pg.Network(3), [1, 1, 0])),
            "networks.counts",
        ),
        (
            lambda: synthetic_graph(
                [1],
                pg.queries.mixing(pg.Network(2, multiple=True), [0, 0]),
                PublicDegrees.of(pg.Network(2, multiple=True), [1, 1]),
            ),
            "networks.kind",
        ),
        (
            lambda: nearest_network(
                [1], pg.Network(2, multiple=True), PublicDegrees.of(pg.Network(2, multiple=True), [1, 1])
            ),
            "networks.kind",
        ),
        (
            lambda: nearest_network([1], pg.Network(3), PublicDegrees.of(pg.Network(3), [1, 1, 0])),
            "networks.adjacency",
        ),
        (
            lambda: nearest_network([1], pg.Network(2), PublicDegrees.of(pg.Network(3), [1, 1, 0])),
            "networks.domain",
        ),
        (
            lambda: nearest_counts(
                pg.queries.mixing(pg.Network(400), [0] * 400),
                PublicDegrees.of(pg.Network(400), [0] * 400),
                [0],
            ),
            "networks.size",
        ),
    ],
)
def test_errors(make: object, code: str) -> None:
    with pytest.raises(pg.PolicyGraphError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.code == code


def test_wrong_degrees_are_found_before_any_budget_is_spent(tmp_path: Path) -> None:
    network = pg.Network(4)
    with pytest.raises(pg.ConstraintError, match="no simple graph has these degrees"):
        pg.Policy(network, constraints=[pg.Degrees(equals=[3, 3, 1, 1])])
    large = pg.Network(200, directed=True)
    star = [199] + [0] * 199
    with pytest.raises(pg.ConstraintError, match="no directed graph has these degrees"):
        pg.Policy(
            large, constraints=[pg.Degrees(side="out", equals=star), pg.Degrees(side="in", equals=star)]
        )
    with pytest.raises(pg.InputError, match="not in the network"):
        pg.Policy(network, constraints=[pg.Degrees([0, 9])])
    book = pg.Ledger(tmp_path / "budget.db")
    policy = pg.Policy(network, constraints=[pg.Degrees(equals=[1, 1, 1, 1])])
    with pytest.raises(pg.ConstraintError) as caught:
        pg.release(
            pg.queries.mixing(network, [0, 0, 1, 1]),
            policy,
            networkx.path_graph(4),
            epsilon=1,
            ledger=book,
            dataset="friends",
        )
    assert caught.value.code == "constraint.data"
    with pytest.raises(pg.InputError):
        book.spent("friends")


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.skipif(not FACEBOOK.exists(), reason="the network is not here")
def test_facebook() -> None:
    ends = np.loadtxt(FACEBOOK, dtype=np.int64)
    nodes = 4039
    centres = [107, 348, 414, 686, 698, 1684, 1912, 3437, 3980]
    network = pg.Network(nodes)
    groups = np.searchsorted(centres, np.arange(nodes), side="right")
    degrees = np.bincount(ends.ravel(), minlength=nodes)
    policy = pg.Policy(network, constraints=[pg.Degrees(equals=degrees.tolist())], strength="markov")
    query = pg.queries.mixing(network, groups.tolist())
    noisy = pg.release(query, policy, FACEBOOK, epsilon=1, source=pg.SeededRng(1))
    public = PublicDegrees.from_policy(policy)
    asked = consistent_mixing(noisy.values(), query, public)
    made = synthetic_graph(asked.values, query, public, seed=1)
    check_sums(query, public, asked.values)
    assert made.exact
    assert np.array_equal(made.counts, asked.values)
    assert np.array_equal(np.bincount(np.concatenate([made.tail, made.head]), minlength=nodes), degrees)
    assert np.all(made.tail < made.head)
    assert len(np.unique(made.tail * nodes + made.head)) == 88_234


def test_the_example_runs(tmp_path: Path) -> None:
    import subprocess
    import sys

    example = ROOT / "examples" / "social_graph.py"
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "every degree met: True - counts met: True" in done.stdout
