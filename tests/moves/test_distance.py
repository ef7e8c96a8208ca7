"""Distances between tables against breadth-first search over all tables with the facts, by the literal definition."""

import networkx
import numpy as np
import pytest

import policygraph as pg
from tests.oracles import fibres


def fibre(matrix, total, cells):
    """Tables of so many records, in groups with equal sums."""
    every = fibres.tables([[1] * cells], [total], total, cells)
    groups = {}
    for table in every:
        groups.setdefault(tuple(np.array(matrix) @ np.array(table)), []).append(table)
    return groups.values()


FACTS = [
    ({"a": 2, "b": 3}, [pg.Cuboid("a"), pg.Cuboid("b")], 4),
    ({"a": 2, "b": 2, "c": 2}, [pg.Cuboid("a"), pg.Cuboid("b"), pg.Cuboid("c")], 4),
    ({"x": 4}, [pg.LinearCount([((c,), c + 1) for c in range(4)]), pg.Total()], 4),
]


@pytest.mark.parametrize(("shape", "facts", "records"), FACTS, ids=["margins", "cube", "weights"])
def test_distances_under_facts(shape, facts, records):
    domain = pg.Domain(shape)
    policy = pg.Policy(domain, constraints=facts)
    matrix = policy.system.matrix().toarray()
    far = 0
    for group in fibre(matrix, records, domain.size):
        graph = networkx.Graph()
        graph.add_nodes_from(group)
        graph.add_edges_from(fibres.neighbour_pairs(matrix.tolist(), group))
        for a in group[:3]:
            lengths = networkx.single_source_shortest_path_length(graph, a)
            for b in group[-6:]:
                found = pg.distance(policy, a, b)
                assert found.exact, (a, b, found)
                assert found.lower == lengths[b], (a, b, found)
                far = max(far, found.lower)
                for one, two in zip(found.chain, found.chain[1:], strict=False):
                    assert policy.are_neighbours(one, two)
    assert far >= 2


def test_distances_along_edges_carry_records_over():
    domain = pg.Domain({"x": 4})
    for graph in (pg.PolicyGraph.line(domain), pg.PolicyGraph.line(domain).with_bottom()):
        policy = pg.Policy(domain, graph)
        tables = [t for n in range(4) for t in fibres.tables([[1] * 4], [n], 3, 4)]
        joined = networkx.Graph()
        joined.add_nodes_from(tables)
        joined.add_edges_from(
            (a, b) for i, a in enumerate(tables) for b in tables[:i] if policy.are_neighbours(a, b)
        )
        for a in tables[::5]:
            lengths = networkx.single_source_shortest_path_length(joined, a)
            for b in tables[::3]:
                found = pg.distance(policy, a, b)
                if b in lengths:
                    assert found.exact
                    # tables of more records than were listed may lie on a way, but none is shorter
                    assert found.lower == lengths[b], (a, b, found)
                else:
                    assert not found.connected


def test_graph_and_facts_are_searched_by_the_definition():
    domain = pg.Domain({"x": 4})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain), [pg.count({"x": [0, 1]})])
    group = [t for t in fibres.tables([[1] * 4], [2], 2, 4) if t[0] + t[1] == 1]
    joined = policy.neighbour_graph(group)
    for a in group:
        lengths = networkx.single_source_shortest_path_length(joined, a)
        for b in group:
            found = pg.distance(policy, a, b)
            assert found.exact
            assert found.lower == lengths[b], (a, b, found)


def test_bounds_and_tables_without_a_chain():
    domain = pg.Domain({"a": 5, "b": 5, "c": 5})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b"), pg.Cuboid("c")])
    rng = np.random.default_rng(2)
    a = rng.multinomial(12, [1 / 125] * 125)
    cells = np.argwhere(a.reshape(5, 5, 5))
    cells[:, 1] = np.roll(cells[:, 1], 1)
    b = np.zeros((5, 5, 5), dtype=np.int64)
    for (i, j, k), count in zip(cells, a[a > 0], strict=True):
        b[i, j, k] += count
    if np.array_equal(a.reshape(5, 5, 5).sum(axis=(0, 2)), b.sum(axis=(0, 2))):
        found = pg.distance(policy, a, b.ravel())
        assert found.upper is not None
        assert 1 <= found.lower <= found.upper
    line = pg.Domain({"x": 3})
    split = pg.Policy(line, pg.PolicyGraph.from_edges(line, [(0, 1)]))
    assert not pg.distance(split, [1, 0, 0], [0, 0, 1]).connected
    assert not pg.distance(split, [1, 0, 0], [2, 0, 0]).connected
    known = pg.Policy(line, constraints=[pg.Total()])
    assert "public fact" in str(pg.distance(known, [1, 0, 0], [2, 0, 0]))
    assert pg.distance(known, [1, 0, 0], [1, 0, 0]).upper == 0
    with pytest.raises(pg.RefusedError, match="records change"):
        pg.distance(split, [2000, 0, 0], [0, 2000, 0])
    with pytest.raises(pg.InputError):
        pg.distance(known, [1, 0], [0, 1])
