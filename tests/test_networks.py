"""From a network to a synthetic graph in one call: what is met, what is approached, what is charged, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.cli import main
from policygraph.estimation.networks import (
    PublicDegrees,
    close_triangles,
    compare_graphs,
    summarise,
    synthetic_graph,
)
from policygraph.estimation.networks.comparison import _mutual
from policygraph.model.queries.network_statistics import Clustering, triangles_at
from policygraph.networks import _graphical, _leasts, _Piece, _split, _worth, synthesise
from tests.paths import DATA

quick = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def clustered() -> networkx.Graph:
    """A network of many triangles, whose degrees alone would give few."""
    return networkx.Graph(networkx.connected_caveman_graph(20, 8))


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)


def public(graph: networkx.Graph, **strength: object) -> pg.Policy:
    network = pg.Network.from_networkx(graph)
    return pg.Policy(network, constraints=[pg.Degrees(graph.degree())], **strength)


@quick
@given(st.integers(0, 2**32 - 1), st.integers(6, 20), st.floats(0.1, 0.7), st.integers(1, 3), st.booleans())
def test_switches_keep_degrees_and_counts_and_sums_are_those_of_the_graph(
    seed: int, nodes: int, density: float, groups: int, fewer: bool
) -> None:
    graph = networkx.gnp_random_graph(nodes, density, seed=seed)
    network = pg.Network(nodes)
    query = pg.queries.mixing(network, [v % groups for v in range(nodes)])
    degree = [graph.degree(v) for v in range(nodes)]
    ends = np.array(graph.edges(), dtype=np.int64).reshape(-1, 2)
    counts = np.bincount(query.row_of(ends[:, 0], ends[:, 1]), minlength=query.height)
    start = synthetic_graph(counts, query, PublicDegrees.of(network, degree), seed=seed, switches=2)
    asked = Clustering(network, 2, (3, 5))
    before = asked.of_edges(start.tail, start.head, np.ones_like(start.tail))
    triangles = int(triangles_at(start.tail, start.head, nodes).sum()) // 3
    aim = (0 if fewer else 3 * triangles + 3, before * float(asked.unit) * (0.2 if fewer else 2.0))
    made = close_triangles(start, query, triangles=aim[0], clustering=asked, sums=aim[1], seed=seed)
    found = made.to_networkx()
    assert [found.degree(v) for v in network.nodes] == degree
    assert networkx.number_of_selfloops(found) == 0
    assert (
        query.answer_sparse(
            np.sort(network.pair_index(made.tail, made.head)), np.ones_like(made.tail)
        ).tolist()
        == counts.tolist()
    )
    reached = [one.reached for one in made.approached]
    assert reached[0] == sum(networkx.triangles(found).values()) // 3
    whole = asked.of_edges(made.tail, made.head, np.ones_like(made.tail)) * float(asked.unit)
    assert reached[1:] == pytest.approx(whole.tolist())
    # No switch takes the graph farther from its targets, which no graph with these degrees exceeds.
    pairs = np.array(degree) * (np.array(degree) - 1) // 2
    most = np.zeros(4)
    most[0] = pairs.sum() / 3
    np.add.at(most, 1 + asked.class_of(degree), pairs * asked.weight(degree) * float(asked.unit))
    target = np.minimum(np.array([aim[0], *aim[1]]), most)
    scale = 1 / np.maximum([target[0], *[target[1:].sum()] * 3], [1, *[float(asked.unit)] * 3])
    gaps = [
        float((((np.array(each) - target) * scale) ** 2).sum())
        for each in ([triangles, *before * float(asked.unit)], reached)
    ]
    assert gaps[1] <= gaps[0] * (1 + 1e-6) + 1e-9


def test_degrees_are_met_and_clustering_is_approached(clustered: networkx.Graph) -> None:
    policy = public(clustered, strength="markov")
    made = synthesise(policy, clustered, epsilon=20, seed=1, rng=pg.SeededRng(1))
    found = made.to_networkx()
    assert dict(found.degree()) == dict(clustered.degree())
    true, ours = summarise(clustered), summarise(made)
    plain = summarise(
        synthetic_graph(
            [len(made.tail)],
            pg.queries.mixing(policy.domain, [0] * 160),
            PublicDegrees.from_policy(policy),
            seed=1,
        )
    )
    assert plain.transitivity < 0.1
    assert ours.transitivity == pytest.approx(true.transitivity, rel=0.1)
    assert ours.clustering == pytest.approx(true.clustering, rel=0.15)
    assert [one.name for one in made.approached] == ["triangles", "sum of local clustering"]
    assert sum(one.loss.value for one in made.releases) == 20
    assert made.notes[1].startswith("NOT PRIVATE")


def test_secret_degrees_are_released_first(clustered: networkx.Graph) -> None:
    network = pg.Network.from_networkx(clustered)
    for loss in ({"epsilon": 30}, {"rho": 100}):
        made = synthesise(pg.Policy(network), clustered, seed=1, rng=pg.SeededRng(1), **loss)
        assert len(made.releases) == 3
        assert summarise(made).transitivity == pytest.approx(summarise(clustered).transitivity, rel=0.15)
        assert len(made.tail) == pytest.approx(clustered.number_of_edges(), rel=0.05)
        assert any("Names of nodes mean nothing" in note for note in made.notes)


def test_a_sparse_network_with_secret_degrees_has_its_edges_capped_first(tmp_path: Path) -> None:
    """One edge could be in a thousand triangles by its bound, and is in five: without a cap nothing could be said at this loss."""
    graph = networkx.watts_strogatz_graph(1000, 10, 0.1, seed=1)
    book = pg.Ledger(tmp_path / "budget.db")
    policy = pg.Policy(pg.Network(1000))
    made = synthesise(policy, graph, epsilon=1, ledger=book, dataset="friends", seed=1, rng=pg.SeededRng(1))
    triangles = made.releases[1].query
    assert triangles.cap is not None
    assert 10 <= triangles.cap <= 40
    assert any("kept its first" in note for note in made.notes)
    assert str(book.spent("friends")) == "epsilon = 1"
    assert summarise(made).transitivity == pytest.approx(summarise(graph).transitivity, rel=0.2)
    # Few wedges, and little loss for them: noise would drown the triangles.
    tail = np.array([1000, 20, *[0] * 997])
    given = [_Piece(made.releases[1].query, 0.0), _Piece(Clustering(policy.domain, 2), 0.0)]
    worth = {loss: _worth(given, policy, tail, pg.Epsilon(loss)) for loss in ("0.001", "100")}
    assert [type(piece.query) for piece in worth["0.001"]] == [Clustering]
    assert [type(piece.query) for piece in worth["100"]] == [type(piece.query) for piece in given]
    with pytest.raises(pg.InputError, match="at least two nodes"):
        synthesise(pg.Policy(pg.Network(1)), networkx.empty_graph(1), epsilon=1)


def test_the_choice_does_not_look_at_the_edges(clustered: networkx.Graph) -> None:
    """Another graph with the same degrees: the same queries, losses and mechanisms."""
    other = networkx.Graph(clustered)
    networkx.double_edge_swap(other, 40, seed=3)
    policy = public(clustered, strength="markov")
    one, two = (
        synthesise(policy, graph, epsilon=1, seed=1, rng=pg.SeededRng(1)) for graph in (clustered, other)
    )
    for ours, theirs in zip(one.releases, two.releases, strict=True):
        assert ours.query == theirs.query
        assert ours.loss == theirs.loss
        assert ours.record["noise"] == theirs.record["noise"]


def test_public_groups_are_kept(clustered: networkx.Graph) -> None:
    groups = {v: "left" if v < 80 else "right" for v in clustered}
    made = synthesise(
        public(clustered, strength="markov"),
        clustered,
        epsilon=50,
        groups=groups,
        seed=1,
        rng=pg.SeededRng(1),
    )
    across = sum(groups[u] != groups[v] for u, v in made.edges())
    assert across == sum(groups[u] != groups[v] for u, v in clustered.edges())


def test_a_repeated_request_costs_nothing_and_one_that_does_not_fit_is_not_begun(
    clustered: networkx.Graph, tmp_path: Path
) -> None:
    policy = public(clustered, strength="markov")
    book = pg.Ledger(tmp_path / "budget.db")
    first = synthesise(policy, clustered, epsilon=1, ledger=book, dataset="friends", seed=1)
    book.set_limit("friends", pg.Epsilon("1.5"))
    again = synthesise(policy, clustered, epsilon=1, ledger=book, dataset="friends", seed=1)
    assert again.edges() == first.edges()
    assert str(book.spent("friends")) == "epsilon = 1"
    with pytest.raises(pg.BudgetError, match="Nothing was charged"):
        synthesise(policy, clustered, epsilon="0.6", ledger=book, dataset="friends")
    assert str(book.spent("friends")) == "epsilon = 1"


def test_what_says_nothing_is_not_released(clustered: networkx.Graph) -> None:
    """In the worst case the bound of triangles is larger than all wedges: the loss goes to what can be said."""
    made = synthesise(public(clustered), clustered, epsilon=1, seed=1, rng=pg.SeededRng(1))
    assert [one.name for one in made.approached] == ["sum of local clustering"]
    assert len(made.releases) == 2
    nothing = synthesise(public(clustered), clustered, epsilon="0.0001", seed=1, rng=pg.SeededRng(1))
    assert [one.loss for one in nothing.releases] == [pg.Epsilon("0.0001")]
    assert "not released" in nothing.notes[-1]


def test_directed_networks_get_counts_and_no_triangles() -> None:
    graph = networkx.gnp_random_graph(40, 0.2, seed=1, directed=True)
    network = pg.Network.from_networkx(graph)
    policy = pg.Policy(
        network,
        constraints=[
            pg.Degrees(dict(graph.out_degree()), side="out"),
            pg.Degrees(dict(graph.in_degree()), side="in"),
        ],
        strength="markov",
    )
    made = synthesise(policy, graph, epsilon=5, seed=1, rng=pg.SeededRng(1))
    found = made.to_networkx()
    assert dict(found.out_degree()) == dict(graph.out_degree())
    assert dict(found.in_degree()) == dict(graph.in_degree())
    assert "directed" in made.notes[-1]


def test_odd_networks_get_a_graph_or_a_sentence() -> None:
    empty = networkx.empty_graph(5)
    assert synthesise(public(empty), empty, epsilon=1, rng=pg.SeededRng(1)).edges() == []
    pair = networkx.path_graph(2)
    assert synthesise(public(pair), pair, epsilon=1, rng=pg.SeededRng(1)).edges() == [(0, 1)]
    tiny = synthesise(pg.Policy(pg.Network(3)), networkx.path_graph(3), epsilon="0.01", rng=pg.SeededRng(1))
    assert tiny.network.order == 3
    path = networkx.path_graph(5)
    network = pg.Network(5)
    for policy, code in (
        (pg.Policy(network, constraints=[pg.Degrees([0, 1])]), "networks.partial"),
        (pg.Policy(network, constraints=[pg.Degrees()]), "networks.partial"),
        (pg.Policy(network, constraints=[pg.Total()]), "networks.partial"),
        (pg.Policy(pg.Network(5, directed=True)), "networks.partial"),
        (pg.Policy(pg.Network(5, multiple=True)), "networks.kind"),
        (pg.Policy(pg.Network(5, loops=True)), "networks.kind"),
        (pg.Policy(pg.Domain({"a": 2})), "networks.domain"),
    ):
        with pytest.raises(pg.InputError) as caught:
            synthesise(policy, path, epsilon=1)
        assert caught.value.code == code
    with pytest.raises(pg.InputError) as caught:
        synthesise(pg.Policy(network), path, epsilon=1, groups=[0, 0, 1, 1, 1])
    assert caught.value.code == "networks.partial"


@quick
@given(st.lists(st.integers(0, 9), min_size=1, max_size=10))
def test_noisy_degrees_are_made_those_of_a_graph(given: list[int]) -> None:
    degrees = np.array(sorted(given, reverse=True), dtype=np.int64)
    made = _graphical(degrees)
    assert networkx.is_graphical(made.tolist())
    assert np.all(made <= degrees)
    if networkx.is_graphical(given):
        assert made.tolist() == degrees.tolist()


def test_shares_of_the_loss_add_up_to_all_of_it() -> None:
    for errors in ([1.0, 1.0], [0.0, 0.0], [1e-9, 5.0, 0.3], [0.0, 1.0]):
        for loss in (pg.Epsilon(1), pg.Rho(1)):
            shares = _split(errors, loss)
            assert sum(shares) == 1
            assert min(shares) > 0
    assert _leasts()[:5] == [2, 3, 4, 5, 6]


def test_the_command_releases_and_makes_the_graph(
    clustered: networkx.Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("".join(f"{u} {v}\n" for u, v in clustered.edges()))
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[network]\nnodes = 160\n[[release]]\nstatistic = "clustering"\nleast = 4\nclasses = [5]\n'
    )
    assert pg.load(policy).query == Clustering(pg.Network(160), 4, (5,))
    target = tmp_path / "made.csv"
    said = ["--data", str(edges), "--epsilon", "40", "--to", str(target), "--seed", "1"]
    book = ["--ledger", str(tmp_path / "budget.db"), "--dataset", "friends", "--json"]
    assert run("synthetic", policy, *said, *book) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["counts_met"] is True
    assert set(told["approached"]) == {"triangles", "sum of local clustering"}
    assert len(told["releases"]) == 3
    assert target.read_text().startswith('"from","to"')
    groups = ", ".join(f'"{int(v >= 80)}"' for v in range(160))
    mixed = tmp_path / "mixed.toml"
    degrees = ", ".join(str(clustered.degree(v)) for v in range(160))
    mixed.write_text(
        f'[network]\nnodes = 160\n[neighbours]\nstrength = "markov"\n[[public]]\ndegrees = "all"\nequals = [{degrees}]\n'
        f"[[release]]\nmixing = [{groups}]\n"
    )
    assert run("synthetic", mixed, *said[:2], "--epsilon", "200", "--to", target, "--seed", "1") == 0
    capsys.readouterr()
    made = [line.replace('"', "").split(",") for line in target.read_text().splitlines()[1:]]
    across = sum((int(u) >= 80) != (int(v) >= 80) for u, v in made)
    assert across == sum((u >= 80) != (v >= 80) for u, v in clustered.edges())
    for wrong in (
        ["synthetic", str(mixed), *said[:-3], str(tmp_path / "x.csv"), "--communities", "3"],
        ["synthetic", str(tmp_path), "--to", str(tmp_path / "x.csv"), "--communities", "3"],
        ["synthetic", str(policy), *said, "--records", "3"],
        ["synthetic", str(tmp_path), "--to", str(tmp_path / "x.csv"), "--epsilon", "1"],
        ["synthetic", str(policy), "--data", str(edges), "--to", str(tmp_path / "x.csv")],
    ):
        assert run(*wrong) == 2
        assert "Traceback" not in capsys.readouterr().err
    assert not (tmp_path / "x.csv").exists()


def test_graphs_are_compared_with_the_original(
    clustered: networkx.Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = compare_graphs(clustered, {"same": clustered, "none": networkx.empty_graph(160)}, model=True)
    assert max(made.errors("same").values()) < 1e-9
    nothing = made.errors("none")
    assert [nothing[key] for key in ("edges", "triangles", "path length")] == [1.0, 1.0, 1.0]
    assert nothing["degrees"] == pytest.approx(1)
    assert made.errors(made.names[-1])["degrees"] == 0.0
    assert made.errors(made.names[-1])["triangles"] > 0.5
    lengths = dict(networkx.all_pairs_shortest_path_length(clustered))
    pairs = [n for ends in lengths.values() for n in ends.values() if n]
    assert made.values["original"]["path length"] == pytest.approx(sum(pairs) / len(pairs))
    with pytest.raises(pg.InputError):
        compare_graphs(clustered, {"fewer": networkx.path_graph(3)})
    for name in ("edges.csv", "made.csv"):
        (tmp_path / name).write_text("from,to\n" + "".join(f"{u},{v}\n" for u, v in clustered.edges()))
    policy = tmp_path / "policy.toml"
    policy.write_text("[network]\nnodes = 160\n")
    words = ["compare", policy, "--data", tmp_path / "edges.csv", "--synthetic", tmp_path / "made.csv"]
    assert run(*words, "--plot", tmp_path / "errors.png", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["errors"]["made"]["transitivity"] == 0
    assert (tmp_path / "errors.png").stat().st_size > 10_000
    assert run("compare", policy, "--synthetic", tmp_path / "made.csv") == 2


def test_published_errors_stand_beside_the_others(clustered: networkx.Graph, tmp_path: Path) -> None:
    made = compare_graphs(clustered, {"same": clustered}, published={"theirs": {"triangles": 0.5}})
    assert made.names == ["same", "theirs"]
    assert made.errors("theirs")["triangles"] == 0.5
    assert made.to_dict()["errors"]["theirs"]["edges"] is None
    assert "theirs" in str(made)
    made.plot(tmp_path / "errors.png")
    for wrong in ({"same": {}}, {"original": {}}, {"theirs": {"speed": 1.0}}):
        with pytest.raises(pg.InputError) as caught:
            compare_graphs(clustered, {"same": clustered}, published=wrong)
        assert caught.value.code == "networks.published"


def test_communities_are_found_and_kept(tmp_path: Path) -> None:
    """Three groups that nobody names: with a large loss the nodes of each come together, and edges stay inside."""
    graph = networkx.random_partition_graph([20, 20, 20], 0.5, 0.02, seed=1)
    graph = networkx.Graph(graph.edges())
    true = np.arange(60) // 20
    network = pg.Network.from_networkx(graph)
    for policy, loss in (
        (pg.Policy(network), {"epsilon": 60}),
        (public(graph, strength="markov"), {"rho": 400}),
    ):
        book = pg.Ledger(tmp_path / f"{policy.strength}.db")
        made = synthesise(
            policy, graph, communities=3, ledger=book, dataset="friends", seed=1, rng=pg.SeededRng(1), **loss
        )
        inside = np.mean([true[u] == true[v] for u, v in made.edges()])
        assert inside > 0.8
        assert "Communities of" in made.notes[-1]
        assert sum(one.loss.value for one in made.releases) == next(iter(loss.values()))
        names = [one.query.parts[0].name for one in made.releases]
        assert names.count("edges to groups") == (4 if policy.constraints else 5)
        spent = book.spent("friends")
        again = synthesise(
            policy, graph, communities=3, ledger=book, dataset="friends", seed=1, rng=pg.SeededRng(1), **loss
        )
        assert again.edges() == made.edges()
        assert book.spent("friends") == spent


def test_communities_that_cannot_be_are_refused_and_nothing_is_charged(tmp_path: Path) -> None:
    graph = networkx.path_graph(5)
    book = pg.Ledger(tmp_path / "budget.db")
    policy = pg.Policy(pg.Network(5))
    for settings_ in (
        {"communities": 1},
        {"communities": 5},
        {"communities": True},
        {"communities": 2, "groups": [0, 0, 1, 1, 1]},
    ):
        with pytest.raises(pg.InputError) as caught:
            synthesise(policy, graph, epsilon=1, ledger=book, dataset="friends", **settings_)
        assert caught.value.code == "networks.communities"
    arcs = pg.Network(5, directed=True)
    facts = [pg.Degrees(equals=[1] * 5, side="out"), pg.Degrees(equals=[1] * 5, side="in")]
    with pytest.raises(pg.InputError) as caught:
        synthesise(pg.Policy(arcs, constraints=facts), networkx.DiGraph(graph), epsilon=1, communities=2)
    assert caught.value.code == "networks.communities"
    assert book.datasets() == []
    # All of the loss has to fit before the first part of it is spent.
    pg.release(pg.queries.DegreeTail(policy.domain), policy, graph, epsilon=1, ledger=book, dataset="friends")
    book.set_limit("friends", pg.Epsilon("1.9"))
    with pytest.raises(pg.BudgetError, match="Nothing was charged"):
        synthesise(policy, graph, epsilon=1, communities=2, ledger=book, dataset="friends")
    assert str(book.spent("friends")) == "epsilon = 1"


def test_node_privacy_gives_noisy_degrees_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    graph = networkx.barabasi_albert_graph(300, 3, seed=1)
    network = pg.Network.from_networkx(graph)
    for nodes, cap in ((pg.NodePrivacy(network), 75), (pg.NodePrivacy(network, together=3), 25)):
        book, name = pg.Ledger(tmp_path / f"{cap}.db"), "friends"
        made = synthesise(nodes, graph, epsilon=10, seed=1, ledger=book, dataset=name, rng=pg.SeededRng(1))
        assert made.releases[0].query == pg.queries.ProjectedDegreeTail(network, cap)
        assert int(made.degrees()[0].max()) <= cap
        assert len(made.tail) == pytest.approx(graph.number_of_edges(), rel=0.2)
        assert "node privacy" in made.notes[-1]
    for settings_, code in (
        ({"communities": 2}, "networks.communities"),
        ({"groups": [0] * 300}, "networks.partial"),
    ):
        with pytest.raises(pg.InputError) as caught:
            synthesise(pg.NodePrivacy(network), graph, epsilon=1, **settings_)
        assert caught.value.code == code
    with pytest.raises(pg.InputError):
        synthesise(pg.NodePrivacy(pg.Network(1)), networkx.empty_graph(1), epsilon=1)


def test_public_edges_and_empty_pairs_are_not_forgotten() -> None:
    """A bipartite network: a graph with the same degrees would have edges where everybody knows there are none."""
    graph = networkx.complete_bipartite_graph(2, 3)
    network = pg.Network.from_networkx(graph)
    degrees = pg.Degrees(graph.degree())
    for fact in (pg.KnownEdges([0, 0, 1, 1, 1], inside=True), pg.StructuralZero([(0, 1)])):
        with pytest.raises(pg.InputError, match="bipartite") as caught:
            synthesise(pg.Policy(network, constraints=[degrees, fact]), graph, epsilon=1)
        assert caught.value.code == "networks.partial"
    whole = pg.Policy(network, constraints=[degrees, pg.Total()])
    assert len(synthesise(whole, graph, epsilon=1, rng=pg.SeededRng(1)).tail) == 6


def test_many_values_given_as_nodes_are_not_all_printed() -> None:
    with pytest.raises(pg.InputError, match="equals=") as caught:
        pg.Degrees([3, 3] * 10_000)
    assert len(str(caught.value)) < 300


def test_partitions_share_information() -> None:
    one = np.array([0, 0, 1, 1])
    assert _mutual(one, np.array([1, 1, 0, 0])) == pytest.approx(1)
    assert _mutual(one, np.array([0, 1, 0, 1])) == pytest.approx(0)
    assert _mutual(np.zeros(3, dtype=int), np.zeros(3, dtype=int)) == 1


@pytest.mark.shared_data
@pytest.mark.skipif(not (DATA / "graphs").exists(), reason="needs the shared data")
def test_a_real_network_keeps_its_shape() -> None:
    graph = networkx.Graph()
    with open(DATA / "graphs" / "email-Eu-core.txt") as lines:
        graph.add_edges_from(tuple(map(int, line.split())) for line in lines if line.strip())
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    made = summarise(
        synthesise(public(graph, strength="markov"), graph, epsilon=1, seed=1, rng=pg.SeededRng(1))
    )
    true = summarise(graph)
    assert made.transitivity == pytest.approx(true.transitivity, rel=0.2)
    assert made.assortativity == pytest.approx(true.assortativity, abs=0.1)
