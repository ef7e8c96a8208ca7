"""Cases that an attack on histograms under a policy graph found; each was a wrong number, a leak or a late failure."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import policygraph as pg
from policygraph.mechanisms.partitioned import Partition
from policygraph.model.graphs import Path, Product
from policygraph.transforms.incidence.base import Reduction


def graphs_with_boxes():
    thin = pg.Domain({"one": 1, "x": 5})
    yield thin, pg.PolicyGraph.line(thin, "x")
    flat = pg.Domain({"x": 2, "y": 3})
    yield flat, pg.PolicyGraph(flat, Path(6, 1))
    folded = pg.Domain({"x": 12})
    yield folded, pg.PolicyGraph(folded, Product((Path(3, 1), Path(4, 1))))
    grid = pg.Domain({"x": 3, "one": 1, "y": 4})
    yield grid, pg.PolicyGraph.grid(grid)


@pytest.mark.parametrize(("domain", "graph"), list(graphs_with_boxes()))
def test_errors_of_boxes_where_attributes_and_graph_do_not_match(domain, graph):
    """The shortcut for boxes took the first attribute for the line."""
    query = pg.queries.random_boxes(domain, 30, seed=1)
    ready = pg.TransformedLaplace(route="edges").calibrate(query, pg.Policy(domain, graph), pg.Epsilon(1))
    assert np.array_equal(ready.squares, Reduction.squares(ready.reduction, query))


@pytest.mark.parametrize("partitioner", [pg.Intervals(bias=144 * 10**15), pg.Matchings(bias=10**12)])
def test_charges_near_64_bits_are_refused_before_data(partitioner):
    """They wrapped, or failed for some data and not for others."""
    with pytest.raises(pg.InputError, match="smaller bias"):
        partitioner.calibrate(4, Fraction(2), pg.Epsilon(1), 1.0)


@pytest.mark.parametrize("partitioner", [pg.Intervals(), pg.Matchings()])
def test_noise_that_cannot_be_drawn_is_refused_before_data(partitioner):
    domain = pg.Domain({"x": 4})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    with pytest.raises(pg.RefusedError, match="at most 2"):
        pg.Partitioned(partitioner).calibrate(pg.queries.identity(domain), policy, pg.Epsilon("1e-12"))


AGES = pg.Domain({"age": 4})
CELLS = pg.queries.identity(AGES)
LINE = pg.Policy(AGES, pg.PolicyGraph.line(AGES))
APART = pg.Policy(AGES, pg.PolicyGraph.partition(AGES, [[0, 1], [2, 3]]))
TABLE = [50, 60, 100, 200]


@pytest.mark.parametrize("then", [None, pg.Laplace(), pg.TransformedLaplace(), pg.TransformedConsistent()])
@pytest.mark.parametrize("buckets", [[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 2, 2]])
def test_partitions_do_not_publish_totals_of_components(buckets, then):
    """Buckets that are whole components had sensitivity 0, and their counts came out as they are."""
    ready = pg.Partitioned(Partition(buckets), then=then).calibrate(CELLS, APART, pg.Epsilon("0.1"))
    source = pg.SeededRng("totals")
    sums = {tuple(np.bincount(buckets, ready.run(TABLE, source).values())) for _ in range(12)}
    assert all(len({made[at] for made in sums}) > 3 for at in set(buckets))


def test_totals_that_are_public_stay_exact_in_partitions():
    facts = [pg.LinearCount([({"age": [0, 1]}, 1)]), pg.LinearCount([({"age": [2, 3]}, 1)])]
    policy = pg.Policy(AGES, APART.graph, facts)
    ready = pg.Partitioned(Partition([0, 0, 1, 1])).calibrate(CELLS, policy, pg.Epsilon("0.1"))
    assert ready.run(TABLE, pg.SeededRng(1)).values().tolist() == [55, 55, 150, 150]


MEASURED = [
    pg.MatrixMechanism(kind, over=over)
    for kind in ("identity", "tree", "wavelet")
    for over in ("cells", "edges")
]


@pytest.mark.parametrize("mechanism", [*MEASURED, pg.Partitioned()])
def test_mechanisms_on_mechanisms_answer_what_was_asked(mechanism):
    """Wavelet coefficients and prefix sums were taken for counts."""
    loss = pg.Epsilon(80)
    for built in (pg.Partitioned(Partition([0, 1, 2, 3]), then=mechanism), pg.Transformed(mechanism)):
        for query in (CELLS, pg.queries.prefix(AGES)):
            made = built.calibrate(query, LINE, loss).run(TABLE, pg.SeededRng(1)).values()
            assert np.allclose(made, query.answer(TABLE), atol=1.5)
    chosen = pg.Partitioned(then=mechanism).calibrate(CELLS, LINE, loss)
    for table in ([0, 0, 0, 0], [0, 0, 9, 9], [0, 0, 9, 40]):
        assert np.allclose(chosen.run(table, pg.SeededRng(1)).values(), table, atol=1)


@pytest.mark.parametrize("kind", ["identity", "tree", "wavelet", "optimised"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_strategies_of_few_cells(kind, size):
    """A tree of two cells was refused, after step 1 of a partition had been paid."""
    domain = pg.Domain({"x": size})
    for policy in (pg.Policy(domain), pg.Policy(domain, pg.PolicyGraph.line(domain))):
        ready = pg.MatrixMechanism(kind).calibrate(pg.queries.identity(domain), policy, pg.Epsilon(90))
        assert np.allclose(ready.run([7] * size, pg.SeededRng(1)).values(), 7, atol=0.5)


def test_a_mechanism_without_answers_is_no_part_of_another():
    for built in (pg.Partitioned(then=pg.Cube()), pg.Transformed(pg.Cube())):
        with pytest.raises(pg.InputError, match="publishes more"):
            built.calibrate(CELLS, LINE, pg.Epsilon(1))


def test_cycles_that_a_partition_may_close_are_refused_before_data():
    """Whether a run failed depended on the buckets, after the budget was spent."""
    mechanism = pg.Transformed(pg.Laplace())
    tree = pg.Policy(AGES, pg.PolicyGraph.from_edges(AGES, [(0, 1), (0, 2), (1, 3)]))
    for partitioner, policy in (
        (pg.Matchings(), LINE),
        (pg.Intervals(order=[0, 2, 1, 3]), LINE),
        (pg.Intervals(), tree),
    ):
        with pytest.raises(pg.RefusedError, match="cycle"):
            pg.Partitioned(partitioner, then=mechanism).calibrate(CELLS, policy, pg.Epsilon(1))
        pg.Partitioned(partitioner, then=pg.Transformed(pg.Laplace(), spanning=True)).calibrate(
            CELLS, policy, pg.Epsilon(1)
        )
    for policy in (LINE, pg.Policy(AGES)):
        ready = pg.Partitioned(then=mechanism).calibrate(CELLS, policy, pg.Epsilon(1))
        for seed in range(20):
            ready.run([0, 0, 3, 9], pg.SeededRng(seed))


def test_another_partition_is_another_request(tmp_path):
    """The ledger returned the release of other buckets."""

    def labels(mechanism):
        made = pg.release(CELLS, LINE, TABLE, epsilon=1, ledger=tmp_path / "book.db", mechanism=mechanism)
        return made.record["partition"]["labels"], made.to_bytes()

    assert labels(pg.Partitioned(Partition([0, 0, 1, 1])))[0] == [0, 0, 1, 1]
    assert labels(pg.Partitioned(Partition([0, 1, 1, 0])))[0] == [0, 1, 1, 0]
    orders = [pg.Intervals(order=order) for order in (None, [0, 2, 1, 3], [3, 1, 2, 0])]
    asked = [*orders, pg.Intervals("sliding"), pg.Intervals(bias=9), pg.Matchings(), pg.Matchings(rounds=2)]
    made = [labels(pg.Partitioned(each))[1] for each in asked]
    made += [
        labels(pg.Partitioned(then=each))[1]
        for each in (pg.TransformedConsistent(), pg.Transformed(pg.Laplace()))
    ]
    assert len(set(made)) == len(made)
    assert labels(pg.Partitioned())[1] == made[0]


@pytest.mark.parametrize("table", [[-5, 1, 1, 1], [1.5, 2, 3, 4], [1, 2, 3]])
def test_partitions_check_their_table(table):
    ready = pg.Partitioned().calibrate(CELLS, LINE, pg.Epsilon(1))
    with pytest.raises(pg.InputError):
        ready.run(np.array(table), pg.SeededRng(1))


def test_what_is_exact_is_called_by_its_name():
    graph = pg.PolicyGraph.from_edges(AGES, [(0, 1), (2, pg.BOTTOM), (3, pg.BOTTOM)])
    exact = pg.TransformedLaplace("exact").calibrate(CELLS, pg.Policy(AGES, graph), pg.Epsilon(1))
    assert any(line.startswith("The total of 1 component of the policy graph") for line in exact.stages())
    whole = pg.Partitioned(Partition([0, 0, 0, 0])).calibrate(CELLS, LINE, pg.Epsilon(1))
    said = " ".join(whole.run(TABLE, pg.SeededRng(1)).sentences)
    assert "The number of records was released exactly" in said
    assert "none noise" not in said
    block = pg.queries.matrix(AGES, [[1, 1, 0, 0]])
    silent = pg.Laplace().calibrate(block, APART, pg.Epsilon(1))
    assert silent.stages()[1] == "The policy does not hide the answers, so no noise was added."


def test_the_automatic_choice_is_no_worse_than_noise_on_the_cells():
    """Sums of many cells got noise on every answer, ten thousand times the error of noise on the cells."""
    domain = pg.Domain({"a": 4, "b": 4, "c": 4})
    rows = np.random.default_rng(0).integers(0, 2, (300, 64))
    for query in (pg.queries.matrix(domain, rows), pg.queries.all_cuboids(domain)):
        for graph in (None, pg.PolicyGraph.full(domain), pg.PolicyGraph.grid(domain)):
            found = pg.compare(
                query,
                pg.Policy(domain, graph),
                pg.Epsilon(1),
                ["every answer", "cells", "edges", "auto"],
            )
            assert found["auto"].expected <= 1.02 * found.best.expected
