"""Networks as data: large ones without a dense matrix, from every kind of source; policies over their edges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import policygraph as pg
from policygraph.curator.counting import read_edges
from policygraph.mechanisms.base import MOST_ANSWERS
from policygraph.model.graphs.secret_edges import secret_edges

NODES = 100_000


def edges(n: int, directed: bool = False, seed: int = 5) -> np.ndarray:
    """Different pairs of different nodes."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, NODES, (n + n // 5, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    return np.unique(ends if directed else np.sort(ends, axis=1), axis=0)[:n]


def counted(ends: np.ndarray, groups: np.ndarray, directed: bool) -> list[int]:
    """Mixing counts by a plain histogram of pairs of groups."""
    k = int(groups.max()) + 1
    whole = np.zeros((k, k), dtype=np.int64)
    np.add.at(whole, (groups[ends[:, 0]], groups[ends[:, 1]]), 1)
    if directed:
        return whole.ravel().tolist()
    both = whole + whole.T - np.diag(np.diag(whole))
    return both[np.triu_indices(k)].tolist()


def sources(ends: np.ndarray, folder: Path) -> dict[str, Any]:
    np.savetxt(folder / "edges.txt", ends, fmt="%d")
    np.savetxt(folder / "edges.csv", ends, fmt="%d", delimiter=",", header="from,to", comments="")
    pq.write_table(pa.table({"from": ends[:, 0], "to": ends[:, 1]}), folder / "edges.parquet")
    graph = networkx.Graph(ends.tolist())
    ones = np.ones(len(ends), dtype=np.int64)
    half = sparse.coo_array((ones, (ends[:, 0], ends[:, 1])), shape=(NODES, NODES))
    return {
        "text": folder / "edges.txt",
        "csv": folder / "edges.csv",
        "parquet": folder / "edges.parquet",
        "networkx": graph,
        "sparse": sparse.csr_array(half + half.T),
    }


def groups_of(n: int = 7) -> np.ndarray:
    return np.arange(NODES) * n // NODES


def test_a_hundred_thousand_nodes_from_every_source(tmp_path: Path) -> None:
    ends, groups = edges(50_000), groups_of()
    network = pg.Network(NODES)
    query = pg.queries.mixing(network, groups.tolist())
    expected = counted(ends, groups, False)
    for name, source in sources(ends, tmp_path).items():
        counts = read_edges(source, network)
        assert counts.answers([query])[0].tolist() == expected, name


def test_a_large_directed_network_with_public_degrees_is_released_without_a_dense_vector() -> None:
    ends, groups = edges(60_000, directed=True), groups_of(3)
    network = pg.Network(NODES, directed=True)
    out = np.bincount(ends[:, 0], minlength=NODES)
    policy = pg.Policy(network, constraints=[pg.Degrees(side="out", equals=out.tolist())])
    matrix = sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(NODES, NODES))
    query = pg.queries.mixing(network, groups.tolist())
    made = pg.release(query, policy, matrix, epsilon=1, source=pg.SeededRng(3))
    assert np.abs(made.values() - counted(ends, groups, True)).max() < 60
    assert made.certificate.power == 2
    wrong = out.copy()
    wrong[17] += 1
    with pytest.raises(pg.ConstraintError) as caught:
        pg.release(
            query,
            pg.Policy(network, constraints=[pg.Degrees(side="out", equals=wrong.tolist())]),
            matrix,
            epsilon=1,
        )
    assert caught.value.code == "constraint.data"
    assert "out-degree of node 17" in str(caught.value)


@pytest.mark.slow
def test_a_million_edges(tmp_path: Path) -> None:
    ends, groups = edges(1_000_000), groups_of(10)
    np.savetxt(tmp_path / "edges.txt", ends, fmt="%d")
    network = pg.Network(NODES)
    degrees = np.bincount(ends.ravel(), minlength=NODES)
    policy = pg.Policy(network, constraints=[pg.Degrees(equals=degrees.tolist())])
    made = pg.release(
        pg.queries.mixing(network, groups.tolist()),
        policy.with_strength("markov"),
        tmp_path / "edges.txt",
        epsilon=1,
        source=pg.SeededRng(1),
    )
    assert made.certificate.power == 4
    assert np.abs(made.values() - counted(ends, groups, False)).max() < 80


def test_the_adjacency_of_a_large_network_is_refused_before_anything_is_read_or_charged(
    tmp_path: Path,
) -> None:
    network = pg.Network(NODES)
    assert network.size > MOST_ANSWERS
    book = pg.Ledger(tmp_path / "budget.db")
    # Its bytes are looked at, to find the request in the ledger; read as edges it would be an error.
    (tmp_path / "edges.txt").write_text("no edge list at all")
    for policy in (pg.Policy(network), pg.Policy(network, constraints=[pg.Degrees()])):
        with pytest.raises(pg.RefusedError, match="4,999,950,000 answers") as caught:
            pg.release(
                pg.queries.adjacency(network),
                policy,
                tmp_path / "edges.txt",
                epsilon=1,
                ledger=book,
                dataset="x",
            )
        assert caught.value.code == "mechanism.answers"
    with pytest.raises(pg.InputError) as unknown:
        book.spent("x")
    assert unknown.value.code == "ledger.unknown-dataset"


def test_edge_privacy_of_a_large_network_needs_no_listing() -> None:
    network = pg.Network(NODES)
    query = pg.queries.mixing(network, groups_of().tolist())
    for norm in ("l1", "l2"):
        found = pg.sensitivity(query, pg.Policy(network), norm=norm)
        assert found.exact
        assert found.power == 1


@pytest.mark.parametrize("seed", range(5))
def test_sparse_answers_are_the_dense_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for network in (
        pg.Network(7),
        pg.Network(5, loops=True, multiple=True),
        pg.Network(5, directed=True),
        pg.Network(4, directed=True, loops=True),
    ):
        table = rng.integers(0, 2, network.size)
        cells = np.flatnonzero(table)
        groups = rng.integers(0, 3, network.order).tolist()
        matrix = rng.integers(-2, 3, (3, network.size))
        for query in (
            pg.queries.adjacency(network),
            pg.queries.mixing(network, groups),
            pg.queries.matrix(network, matrix),
        ):
            assert query.answer_sparse(cells, table[cells]).tolist() == query.answer(table).tolist()
        sides = ("in", "out") if network.directed else ("both",)
        for side in sides:
            fact = pg.Degrees(side=side)
            sums = fact.sums(network, table)
            valued = pg.Degrees(side=side, equals=sums.tolist())
            valued.check_sparse(network, cells, table[cells])
            off = pg.Degrees(side=side, equals=[*sums[:-1].tolist(), int(sums[-1]) + 1])
            with pytest.raises(pg.ConstraintError):
                off.check_sparse(network, cells, table[cells])


# Policies over the edges ----------------------------------------------------------------------------------------------


def test_only_edges_between_groups_are_secret() -> None:
    network = pg.Network(6)
    groups = ["x", "x", "x", "y", "y", "y"]
    policy = pg.Policy(network, secret_edges(network, groups, between=True))
    empty = np.zeros(network.size, dtype=np.int64)
    for cell in range(network.size):
        one = empty.copy()
        one[cell] = 1
        u, v = network.cell(cell)
        assert bool(policy.are_neighbours(empty, one)) == (groups[int(u)] != groups[int(v)])
    found = pg.sensitivity(pg.queries.mixing(network, groups), policy)
    assert found.power == 1
    assert found.verify().complete
    inside_only = pg.queries.matrix(network, np.array([[1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1]]))
    assert pg.sensitivity(inside_only, policy).power == 0
    assert pg.Policy.from_spec(policy.to_spec()) == policy
    made = pg.release(pg.queries.mixing(network, groups), policy, empty, epsilon=1, source=pg.SeededRng(1))
    assert len(made.values()) == 3


def test_secret_edges_with_public_degrees_couple() -> None:
    network = pg.Network(4)
    graph = secret_edges(network, [0, 0, 1, 1], between=True)
    policy = pg.Policy(network, graph, constraints=[pg.Degrees([0])])
    query = pg.queries.mixing(network, [0, 0, 1, 1])
    assert policy.definition == "blowfish"
    found = pg.sensitivity(query, policy)
    assert (found.power, found.kind) == (2, "exact")
    assert found.verify().complete
    capped = pg.Policy(network, graph, constraints=[pg.Degrees([0])], at_most_records=1)
    assert pg.sensitivity(query, capped).power == 2
    between_pairs = pg.Policy(network, pg.PolicyGraph.full(network), constraints=[pg.Degrees([0])])
    with pytest.raises(pg.RefusedError) as caught:
        pg.sensitivity(query, between_pairs)
    assert caught.value.code == "sensitivity.capacity"


def test_a_policy_in_which_nothing_is_secret_is_an_error() -> None:
    with pytest.raises(pg.InputError) as caught:
        secret_edges(pg.Network(3), ["a", "b", "c"], inside=True)
    assert caught.value.code == "graph.no-secret"
    with pytest.raises(pg.RefusedError) as refused:
        secret_edges(pg.Network(NODES), [0] * NODES, inside=True)
    assert refused.value.code == "graph.pairs"
    with pytest.raises(pg.InputError, match="has no group"):
        secret_edges(pg.Network(["a", "b"]), {"a": 1}, inside=True)
