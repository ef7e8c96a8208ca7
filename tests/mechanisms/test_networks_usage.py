"""Networks as a newcomer uses them: short ways in, clear refusals, and ways out to networkx."""

from __future__ import annotations

from pathlib import Path

import networkx
import numpy as np
import pytest

import policygraph as pg
from policygraph.cli.app import run
from policygraph.curator.counting import read_edges
from policygraph.explain import explain, summary
from policygraph.files import dumps
from policygraph.files import loads as load


@pytest.fixture
def club() -> networkx.Graph:
    return networkx.karate_club_graph()


def test_the_nodes_of_a_graph_are_sorted_so_that_their_order_tells_no_edge() -> None:
    one = networkx.Graph([("cyd", "ann"), ("bob", "cyd")])
    other = networkx.Graph([("ann", "bob"), ("bob", "cyd")])
    assert (
        pg.Network.from_networkx(one) == pg.Network.from_networkx(other) == pg.Network(["ann", "bob", "cyd"])
    )
    assert pg.Network.from_networkx(networkx.Graph([(2, 1), (0, 2)])) == pg.Network(3)
    mixed = networkx.Graph([("b", 2), (1, "a")])
    assert pg.Network.from_networkx(mixed).nodes == (1, 2, "a", "b")


def test_the_kind_of_a_graph_is_taken_from_its_class_and_never_from_its_edges() -> None:
    for kind, directed, multiple in (
        (networkx.Graph, False, False),
        (networkx.DiGraph, True, False),
        (networkx.MultiGraph, False, True),
        (networkx.MultiDiGraph, True, True),
    ):
        graph = kind([(0, 1), (0, 0)])
        found = pg.Network.from_networkx(graph)
        assert (found.directed, found.multiple, found.loops) == (directed, multiple, False)
        assert pg.Network.from_networkx(graph, loops=True).loops


def test_a_graph_is_not_taken_for_a_list_of_nodes() -> None:
    with pytest.raises(pg.InputError, match="from_networkx") as caught:
        pg.Network(networkx.DiGraph([(0, 1)]))  # type: ignore[arg-type]
    assert caught.value.code == "network.graph"


def test_nodes_that_are_pairs_are_refused_with_a_way_out() -> None:
    with pytest.raises(pg.InputError, match="convert_node_labels_to_integers"):
        pg.Network.from_networkx(networkx.grid_2d_graph(2, 2))


def test_numbers_of_numpy_are_nodes() -> None:
    assert pg.Network(np.arange(3)) == pg.Network(3)  # type: ignore[arg-type]
    assert pg.Network(np.array(["a", "b"])) == pg.Network(["a", "b"])  # type: ignore[arg-type]
    assert pg.Network(4).code(np.int64(2)) == 2
    fact = pg.Degrees(np.arange(2))  # type: ignore[arg-type]
    assert fact == pg.Degrees([0, 1])
    assert fact.to_spec() == {"degrees": [0, 1]}


def test_degrees_come_as_mapping_or_as_networkx_gives_them(club: networkx.Graph) -> None:
    network = pg.Network.from_networkx(club)
    listed = pg.Policy(network, constraints=[pg.Degrees(equals=[club.degree(v) for v in network.nodes])])
    query = pg.queries.mixing(network, networkx.get_node_attributes(club, "club"))
    for given in (dict(club.degree()), club.degree(), club.degree):
        fact = pg.Degrees(given)
        assert fact.values(network) == tuple(club.degree(v) for v in fact.nodes)
        one = pg.sensitivity(query, pg.Policy(network, constraints=[fact], strength="markov"))
        assert one.power == pg.sensitivity(query, listed.with_strength("markov")).power
    some = pg.Degrees({33: 17, 0: 16})
    assert some.positions(network).tolist() == [33, 0]
    assert some.values(network) == (17, 16)


def test_a_mapping_beside_all_is_refused_since_it_may_lack_a_node() -> None:
    for wrong in ({0: 1}, [(0, 1), (1, 1)]):
        with pytest.raises(pg.InputError, match="goes alone") as caught:
            pg.Degrees(equals=wrong)
        assert caught.value.code == "constraint.degrees"
    with pytest.raises(pg.InputError):
        pg.Degrees({0: 1}, equals=[1])
    with pytest.raises(pg.InputError, match="list of nodes"):
        pg.Degrees(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("nodes", "node", "hint"),
    [
        (4, 7, "0 to 3"),
        (4, "2", "Did you mean 2?"),
        (["Valjean", "Javert"], "Valjan", "Did you mean 'Valjean'?"),
        (["1", "2"], 1, "Did you mean '1'?"),
    ],
)
def test_an_unknown_node_is_named_with_what_was_probably_meant(
    nodes: object, node: object, hint: str
) -> None:
    with pytest.raises(pg.InputError) as caught:
        pg.Policy(pg.Network(nodes), constraints=[pg.Degrees([node])])  # type: ignore[arg-type, list-item]
    assert caught.value.code == "network.unknown-node"
    assert hint in str(caught.value)


def test_groups_given_as_sets_are_refused_and_the_reason_is_said(club: networkx.Graph) -> None:
    with pytest.raises(pg.InputError, match="must be public"):
        pg.queries.mixing(pg.Network(34), [set(range(17)), set(range(17, 34))])  # type: ignore[list-item]


def test_the_number_of_edges_is_a_query() -> None:
    for network in (pg.Network(4), pg.Network(4, directed=True)):
        query = pg.queries.total(network)
        assert query.answer([1] * network.size).tolist() == [network.size]
        assert pg.sensitivity(query, pg.Policy(network)).power == 1
    with pytest.raises(pg.InputError, match="mixing"):
        pg.queries.total(pg.Network(5000))


@pytest.mark.parametrize("statistic", ["DegreeTail", "Wedges", "Triangles"])
def test_a_statistic_needs_no_named_mechanism_and_gets_its_own_bound(
    club: networkx.Graph, statistic: str
) -> None:
    network = pg.Network.from_networkx(club)
    query = getattr(pg.queries, statistic)(network)
    policy = pg.Policy(network)
    auto = pg.release(query, policy, club, epsilon=1, source=pg.SeededRng(1))
    named = pg.release(query, policy, club, epsilon=1, mechanism=pg.StatisticNoise(), source=pg.SeededRng(1))
    assert auto.values().tolist() == named.values().tolist()
    assert auto.record["bound"] == named.record["bound"]
    assert pg.queries.from_spec(network, auto.record["query"]) == query
    assert set(pg.expected_error(query, policy, epsilon=1)) == {query.parts[0].name}


def test_node_privacy_needs_no_named_mechanism_either(club: networkx.Graph) -> None:
    network = pg.Network.from_networkx(club)
    query = pg.queries.ProjectedDegreeTail(network, 6)
    made = pg.release(query, pg.NodePrivacy(network), club, epsilon=1, source=pg.SeededRng(1))
    assert made.record["bound"]["power"] == "12"
    assert pg.queries.from_spec(network, made.record["query"]) == query
    with pytest.raises(pg.RefusedError):
        pg.release(pg.queries.DegreeTail(network), pg.NodePrivacy(network), club, epsilon=1)
    with pytest.raises(pg.RefusedError, match="ProjectedDegreeTail"):
        pg.release(pg.queries.total(network), pg.NodePrivacy(network), club, epsilon=1)
    with pytest.raises(pg.InputError):
        pg.queries.from_spec(network, {"statistic": "hexagons"})


def _picture(policy: pg.Policy, query: pg.Query) -> tuple[str, ...]:
    """All words of the drawing of the worst pair."""
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    pg.sensitivity(query, policy).move().draw(axes)
    _, legend = axes.get_legend_handles_labels()
    return (axes.get_title(), *legend, *(text.get_text() for text in axes.texts))


def test_the_drawing_says_which_edges_differ_and_what_public_nodes_keep() -> None:
    network = pg.Network(7)
    groups = ["old"] * 4 + ["new"] * 3
    query = pg.queries.mixing(network, groups)
    words = _picture(pg.Policy(network, constraints=[pg.Degrees([0, 1])]), query)
    assert "only in the first network: 2" in words
    assert "only in the second network: 1" in words
    assert any(word.startswith("public degree") for word in words)
    assert any(word.startswith("degree is not public") for word in words)
    assert [word for word in words if "\N{MINUS SIGN}" in word].count("\N{MINUS SIGN}1 +1") == 2
    assert "\N{MINUS SIGN}2" in words
    assert any("4 other nodes" in word for word in words)
    alone = _picture(pg.Policy(network), query)
    assert not any(word.startswith("public degree") for word in alone)


def test_the_drawing_of_a_directed_network_names_the_side_and_long_names_stand_beside() -> None:
    network = pg.Network(["Catherine", "Eve Miller", "ann", "bob"], directed=True)
    facts = [pg.Degrees(side="in"), pg.Degrees(side="out")]
    words = _picture(pg.Policy(network, constraints=facts), pg.queries.adjacency(network))
    assert any(word.startswith("public in- or out-degree") for word in words)
    assert any(word.startswith("Catherine\n") and "(public)" in word for word in words)
    only = _picture(pg.Policy(network, constraints=facts[:1]), pg.queries.adjacency(network))
    assert any(word.startswith("public in-degree") for word in only)


def test_loops_multiple_edges_and_many_nodes_are_drawn(tmp_path: Path) -> None:
    for network in (pg.Network(4, loops=True), pg.Network(30), pg.Network(4, multiple=True)):
        policy = pg.Policy(network, constraints=[pg.Degrees()])
        pg.sensitivity(pg.queries.adjacency(network), policy).move().draw(tmp_path / "pair.png")
        assert (tmp_path / "pair.png").stat().st_size > 5000
        (tmp_path / "pair.png").unlink()


def test_a_pair_that_is_too_large_to_draw_leaves_the_explanation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policygraph.moves.drawing.MOST", 2)
    file = tmp_path / "large.toml"
    file.write_text("[network]\nnodes = 6\n[[public]]\ndegrees = [0, 1]\n[[release]]\nadjacency = true\n")
    picture = tmp_path / "pair.png"
    assert run(["explain", str(file), "--draw", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "not drawn: a move of " in said
    assert "If a single edge could appear" in said
    assert not picture.exists()


def test_explain_tells_what_it_is_doing() -> None:
    network = pg.Network(6)
    policy = pg.Policy(network, constraints=[pg.Degrees([0, 1])])
    told: list[str] = []
    explain(pg.queries.adjacency(network), policy, progress=told.append)
    assert told[0] == "computing the sensitivity"
    assert "computing the sensitivity: at most 2 edges change" in told


def _edges_of(data: object, network: pg.Network, **rules: str) -> list[int]:
    return read_edges(data, network, **rules).sparse()[0].tolist()  # type: ignore[arg-type]


def test_edges_come_as_pairs_too(club: networkx.Graph) -> None:
    network = pg.Network(34)
    wanted = _edges_of(club, network)
    assert len(wanted) == 78
    assert _edges_of(list(club.edges()), network) == wanted
    assert _edges_of(club.edges, network) == wanted
    policy = pg.Policy(network)
    one = pg.release(pg.queries.total(network), policy, list(club.edges()), epsilon=1, source=pg.SeededRng(1))
    two = pg.release(pg.queries.total(network), policy, club, epsilon=1, source=pg.SeededRng(1))
    assert one.values().tolist() == two.values().tolist()


def test_further_columns_of_a_list_without_names_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("0,1,0.5\n1,2,0.25\n")
    assert _edges_of(tmp_path / "edges.csv", pg.Network(3)) == [0, 2]


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("a.txt", "from to\n0 1\n", "put # before it"),
        ("b.txt", "0,1\n1,2\n", "name the file .csv"),
        ("c.txt", "0 1\n1 9\n", 'pg.Policy(..., unknown="drop")'),
        ("d.txt", "0 1\n1 0\n", '"duplicates": "merge"'),
        ("e.txt", "0 1\n1 1\n", '"loops": "drop"'),
    ],
)
def test_a_list_that_does_not_fit_is_refused_with_what_to_do(
    tmp_path: Path, name: str, text: str, hint: str
) -> None:
    (tmp_path / name).write_text(text)
    network = pg.Network(3)
    ledger = pg.Ledger(tmp_path / "budget.db")
    with pytest.raises(pg.DataError) as caught:
        pg.release(
            pg.queries.total(network),
            pg.Policy(network),
            tmp_path / name,
            epsilon=1,
            ledger=ledger,
            dataset="d",
        )
    assert hint in str(caught.value)
    assert not ledger.datasets()


def test_a_graph_with_strangers_names_them_all_even_those_without_an_edge(club: networkx.Graph) -> None:
    club.add_edge(3, "zed")
    club.add_node("lonely")
    with pytest.raises(pg.DataError, match="'zed' 1 time, 'lonely' 0 times"):
        read_edges(club, pg.Network(34))


def test_matrices_that_are_no_adjacency_say_how_to_make_one() -> None:
    matrix = np.array([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    for wrong, hint in ((matrix, "as weights are"), (matrix / 2.0, "!= 0"), (np.triu(matrix), "matrix.T")):
        with pytest.raises(pg.DataError, match=hint):
            read_edges(wrong, pg.Network(3))


def test_five_lines_from_a_networkx_graph_to_a_synthetic_one(club: networkx.Graph) -> None:
    network = pg.Network.from_networkx(club)
    policy = pg.Policy(network, constraints=[pg.Degrees(club.degree())], strength="markov")
    query = pg.queries.mixing(network, networkx.get_node_attributes(club, "club"))
    noisy = pg.release(query, policy, club, epsilon=1)
    synthetic = pg.networks.synthetic_from_release(noisy).to_networkx()
    assert dict(synthetic.degree()) == dict(club.degree())
    assert type(synthetic) is networkx.Graph


def test_the_same_for_named_nodes_in_another_order() -> None:
    graph = networkx.les_miserables_graph()
    network = pg.Network.from_networkx(graph)
    assert network.nodes != tuple(graph)
    policy = pg.Policy(network, constraints=[pg.Degrees(dict(graph.degree()))], strength="markov")
    query = pg.queries.mixing(network, {node: node < "M" for node in graph})
    noisy = pg.release(query, policy, graph, epsilon=1)
    made = pg.networks.synthetic_from_release(noisy, seed=1)
    assert dict(made.to_networkx().degree()) == dict(graph.degree())
    assert repr(made).startswith("SyntheticGraph(Network(77 nodes, undirected), 254 edges, counts")
    assert str(made).splitlines()[1:] == list(made.notes)


def test_the_same_for_a_directed_graph() -> None:
    graph = networkx.gnp_random_graph(20, 0.2, directed=True, seed=1)
    network = pg.Network.from_networkx(graph)
    facts = [pg.Degrees(graph.out_degree(), side="out"), pg.Degrees(graph.in_degree(), side="in")]
    policy = pg.Policy(network, constraints=facts, strength="markov")
    query = pg.queries.mixing(network, [node % 2 for node in range(20)])
    noisy = pg.release(query, policy, graph, epsilon=1)
    made = pg.networks.synthetic_from_release(noisy).to_networkx()
    assert type(made) is networkx.DiGraph
    assert dict(made.in_degree()) == dict(graph.in_degree())
    assert dict(made.out_degree()) == dict(graph.out_degree())


def test_degrees_that_the_policy_does_not_publish_can_be_given_and_are_told_of(club: networkx.Graph) -> None:
    network = pg.Network.from_networkx(club)
    query = pg.queries.mixing(network, networkx.get_node_attributes(club, "club"))
    told = dict(club.degree())
    public = pg.release(
        query, pg.Policy(network, constraints=[pg.Degrees()], strength="markov"), club, epsilon=1
    )
    with pytest.raises(pg.InputError, match="or as an argument here"):
        pg.networks.synthetic_from_release(public)
    made = pg.networks.synthetic_from_release(public, told)
    assert not any("NOT PROTECTED" in note for note in made.notes)
    some = pg.release(query, pg.Policy(network, constraints=[pg.Degrees([0, 1])]), club, epsilon=1)
    assert "NOT PROTECTED: 32 degrees" in pg.networks.synthetic_from_release(some, told).notes[0]


def test_a_nearest_and_a_drawn_graph_come_out_as_networkx_graphs() -> None:
    five = networkx.cycle_graph(5)
    network = pg.Network.from_networkx(five)
    policy = pg.Policy(network, constraints=[pg.Degrees(five.degree())])
    query = pg.queries.adjacency(network)
    noisy = pg.release(query, policy, five, epsilon=1, mechanism=pg.Laplace(), source=pg.SeededRng(1))
    near = pg.networks.nearest_network(noisy.values(), network, pg.networks.PublicDegrees.from_policy(policy))
    drawn = pg.release(query, policy, five, epsilon=1, mechanism=pg.Exponential())
    for values in (near, drawn.values()):
        assert dict(pg.networks.to_networkx(values, network).degree()) == dict(five.degree())
    with pytest.raises(pg.InputError, match="nearest_network"):
        pg.networks.to_networkx(noisy.values() + 2, network)
    double = pg.networks.to_networkx([2, 0, 0], pg.Network(3, multiple=True))
    assert double.number_of_edges(0, 1) == 2


def test_graphs_are_summarised_as_they_are(club: networkx.Graph) -> None:
    found = pg.networks.summarise(club)
    assert found.triangles == sum(networkx.triangles(club).values()) // 3
    assert found.assortativity == pytest.approx(networkx.degree_assortativity_coefficient(club))
    assert found.transitivity == pytest.approx(networkx.transitivity(club))
    assert found.clustering == pytest.approx(networkx.average_clustering(club))
    with pytest.raises(pg.InputError, match="to_undirected"):
        pg.networks.summarise(networkx.DiGraph(club))
    with pytest.raises(pg.InputError, match="expected a graph"):
        pg.networks.summarise([1, 2])


FILE = """
[network]
nodes = ["ann", "bob", "cyd", "dan", "eve", "fay"]
directed = {directed}
[neighbours]
strength = "markov"
{public}
[[release]]
mixing = {{ann = "x", bob = "x", cyd = "x", dan = "y", eve = "y", fay = "y"}}
"""


def _released(folder: Path, directed: bool) -> networkx.Graph:
    nodes = ["ann", "bob", "cyd", "dan", "eve", "fay"]
    graph = networkx.relabel_nodes(
        networkx.gnp_random_graph(6, 0.5, seed=4, directed=directed), dict(enumerate(nodes))
    )
    keys = ("in_degrees", "out_degrees") if directed else ("degrees",)
    public = "\n".join(f'[[public]]\n{key} = "all"' for key in keys)
    (folder / "policy.toml").write_text(FILE.format(directed=str(directed).lower(), public=public))
    (folder / "edges.txt").write_text("\n".join(f"{u} {v}" for u, v in graph.edges()))
    command = ["release", str(folder / "policy.toml"), "--data", str(folder / "edges.txt")]
    assert run([*command, "--epsilon", "1", "--out", str(folder / "out")]) == 0
    return graph


@pytest.mark.parametrize("directed", [False, True])
def test_the_command_makes_a_graph_of_a_release_and_public_degrees(tmp_path: Path, directed: bool) -> None:
    graph = _released(tmp_path, directed)
    sides = (graph.out_degree, graph.in_degree) if directed else (graph.degree,)
    head = "node,out,in" if directed else "node,degree"
    rows = [",".join([node, *(str(side[node]) for side in sides)]) for node in graph]
    (tmp_path / "degrees.csv").write_text("\n".join([head, *rows]))
    command = ["synthetic", str(tmp_path / "out"), "--to", str(tmp_path / "made.csv")]
    assert run([*command, "--degrees", str(tmp_path / "degrees.csv"), "--seed", "1"]) == 0
    lines = (tmp_path / "made.csv").read_text().replace('"', "").splitlines()
    assert lines[0] == "from,to"
    made = type(graph)([tuple(line.split(",")) for line in lines[1:]])
    made.add_nodes_from(graph)
    mine = (made.out_degree, made.in_degree) if directed else (made.degree,)
    assert [dict(side()) for side in mine] == [dict(side()) for side in sides]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (None, "--degrees on the command line"),
        ("name,degree\nann,1\n", "expected node, degree"),
        ("node,degree\nzed,1\n", "line 2"),
        ("node,degree\nann,1\nann,1\n", "line 3"),
        ("node,degree\nann,x\n", "line 2"),
        ("node,degree\nann,1\n", "not given (5 in all)"),
        ("node,degree\nann,1\nbob,0\ncyd,0\ndan,0\neve,0\nfay,0\n", "odd sum"),
    ],
)
def test_the_command_refuses_degrees_that_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, hint: str
) -> None:
    _released(tmp_path, directed=False)
    command = ["synthetic", str(tmp_path / "out"), "--to", str(tmp_path / "made.csv")]
    if text is not None:
        (tmp_path / "degrees.csv").write_text(text)
        command += ["--degrees", str(tmp_path / "degrees.csv")]
    assert run(command) == 2
    assert hint in capsys.readouterr().err
    assert not (tmp_path / "made.csv").exists()


def test_making_a_graph_tells_its_stages(club: networkx.Graph) -> None:
    network = pg.Network.from_networkx(club)
    policy = pg.Policy(network, constraints=[pg.Degrees(club.degree())], strength="markov")
    query = pg.queries.mixing(network, networkx.get_node_attributes(club, "club"))
    told: list[str] = []
    pg.networks.synthetic_from_release(pg.release(query, policy, club, epsilon=1), progress=told.append)
    assert [words.split()[0] for words in told][:3] == ["making", "building", "switching"]
    assert told[-1] == "randomising the graph"


STATISTIC = '[network]\nnodes = 34\n{facts}[[release]]\nstatistic = "{kind}"\n'
ALL = '[[public]]\ndegrees = "all"\n'


@pytest.mark.parametrize(
    ("kind", "facts", "bound"),
    [("triangles", "", 32), ("wedges", "", 64), ("degree tail", "", 2), ("wedges", ALL, 0)],
)
def test_a_statistic_in_a_policy_file_goes_through_all_commands(
    tmp_path: Path,
    club: networkx.Graph,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    facts: str,
    bound: int,
) -> None:
    file, edges, out = tmp_path / "p.toml", tmp_path / "club.txt", tmp_path / "out"
    file.write_text(STATISTIC.format(kind=kind, facts=facts))
    networkx.write_edgelist(club, edges, data=False)
    read = pg.load(file)
    assert read.query == load(dumps(read.policy, read.releases)).query
    for command in ("check", "sensitivity", "explain"):
        assert run([command, str(file)]) == 0
        assert command == "check" or f"sensitivity <= {bound} (L1" in capsys.readouterr().out
    assert run(["release", str(file), "--data", str(edges), "--epsilon", "1", "--out", str(out)]) == 0
    assert pg.Release.from_parquet(out / "release.parquet").record["bound"]["power"] == str(bound)


def test_a_statistic_is_alone_in_its_file_and_says_so(tmp_path: Path) -> None:
    text = STATISTIC.format(kind="triangles", facts="") + "[[release]]\nadjacency = true\n"
    with pytest.raises(pg.InputError, match="a release of its own"):
        load(text)
    with pytest.raises(pg.InputError, match="does not belong beside"):
        load(STATISTIC.format(kind="triangles", facts="") + "weight = 2\n")
    with pytest.raises(pg.InputError, match="cap does not belong beside wedges"):
        load(STATISTIC.format(kind="wedges", facts="") + "cap = 5\n")
    capped = load(STATISTIC.format(kind="triangles", facts="") + "cap = 5\n").query
    assert capped == pg.queries.Triangles(pg.Network(34), 5)
    with pytest.raises(pg.InputError, match="Did you mean 'triangles'"):
        load(STATISTIC.format(kind="triangle", facts=""))
    tail = load(STATISTIC.format(kind="degree tail", facts="") + "largest = 5\n").query
    assert tail == pg.queries.DegreeTail(pg.Network(34), 5)


def test_a_missing_certificate_is_told_as_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "certificate.json").write_text("null\n")
    assert run(["verify", str(tmp_path / "certificate.json")]) == 2
    assert "rests on a theorem" in capsys.readouterr().err
    file = tmp_path / "p.toml"
    file.write_text(STATISTIC.format(kind="triangles", facts=""))
    assert run(["sensitivity", str(file), "--out", str(tmp_path / "c.json")]) == 2
    assert run(["sensitivity", str(file), "--norm", "l2"]) == 0
    assert "the root of 1024" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("degrees", "why"),
    [
        ([3, 3, 1, 1], "no simple graph has these degrees"),
        ([1, 1, 1, 2], "odd sum"),
        ({"ann": 1, "bob": 4, "cyd": 1, "dan": 0}, "the degree of node bob, 4, does not fit 4 nodes"),
    ],
)
def test_impossible_degrees_are_refused_when_the_policy_is_made(degrees: object, why: str) -> None:
    network = pg.Network(["ann", "bob", "cyd", "dan"])
    fact = pg.Degrees(degrees) if isinstance(degrees, dict) else pg.Degrees(equals=degrees)
    with pytest.raises(pg.ConstraintError, match="this public fact cannot hold") as caught:
        pg.Policy(network, constraints=[fact])
    assert caught.value.code == "constraint.contradiction"
    assert why in str(caught.value)


def test_degrees_of_another_graph_are_refused_before_anything_is_spent(
    club: networkx.Graph, tmp_path: Path
) -> None:
    network = pg.Network.from_networkx(club)
    other = networkx.random_regular_graph(4, 34, seed=1)
    policy = pg.Policy(network, constraints=[pg.Degrees(other.degree())], strength="markov")
    ledger = pg.Ledger(tmp_path / "budget.db")
    query = pg.queries.mixing(network, networkx.get_node_attributes(club, "club"))
    with pytest.raises(pg.ConstraintError, match="Nothing was charged") as caught:
        pg.release(query, policy, club, epsilon=1, ledger=ledger, dataset="club")
    assert caught.value.code == "constraint.data"
    assert not ledger.datasets()


def test_secret_edges_are_explained_as_edges() -> None:
    network = pg.Network(4)
    graph = pg.secret_edges(network, ["x", "x", "y", "y"], between=True)
    said = summary(pg.Policy(network, graph), pg.queries.adjacency(network))
    assert "for 4 of the 6 pairs of nodes, whether they are joined" in said
