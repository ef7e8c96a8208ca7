"""Partitions, merged graphs, cheapest runs and the three-step mechanism, against their literal definitions."""

from __future__ import annotations

import io
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.audit import audit
from policygraph.audit.bounds import binomial_bounds
from policygraph.mechanisms import Laplace, TransformedConsistent, TransformedLaplace
from policygraph.mechanisms.partitioned import Partition, merge_graph, merge_policy, z_order
from policygraph.mechanisms.partitioned.mechanism import Partitioned
from policygraph.mechanisms.partitioned.partitioners import Intervals
from policygraph.mechanisms.partitioned.partitioners.cheapest import (
    aligned_deviations,
    cheapest_runs,
    cheapest_trees,
    sliding_deviations,
)
from policygraph.model.graphs import BOTTOM
from tests.broken import dawa
from tests.gate import chosen, chosen_many
from tests.oracles import partition as oracle

LINE = pg.Domain({"age": 6})
CROSS = pg.Domain({"a": 2, "b": 3})


def test_labels_are_numbered_by_first_appearance():
    assert Partition([9, 2, 9, 4]) == Partition([0, 1, 0, 2])
    assert Partition([0, 1]) != Partition([0, 0])
    assert len({Partition([5, 5, 1]), Partition([0, 0, 1])}) == 1


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Partition([]), "partition.labels"),
        (lambda: Partition([0.5, 1.0]), "partition.labels"),
        (lambda: Partition([[0, 1]]), "partition.labels"),
        (lambda: Partition.of(LINE, [[0, 1, 2], [2, 3, 4, 5]]), "graph.blocks-overlap"),
        (lambda: Partition.of(LINE, [[0, 1, 2], [3, 4]]), "graph.blocks-missing"),
        (lambda: Partition.intervals([0, 3, 3, 6]), "partition.cuts"),
        (lambda: Partition.intervals([1, 6]), "partition.cuts"),
        (lambda: Partition.intervals([0, 2, 3], order=[0, 0, 1]), "partition.order"),
        (lambda: Partition([0, 1]).sums([1, 2, 3]), "partition.shape"),
        (lambda: merge_graph(pg.PolicyGraph.line(LINE), Partition([0, 1])), "partition.graph"),
        (lambda: z_order(pg.Domain({str(i): 2 for i in range(1, 13)} | {"long": 100})), "partition.z-order"),
        (lambda: Intervals("nested"), "partition.family"),
        (lambda: Intervals(bias=-1), "partition.bias"),
        (lambda: Intervals("all").calibrate(5000, Fraction(1), pg.Epsilon(1), 1.0), "partition.family"),
        (lambda: Intervals(order=[0, 1]).calibrate(3, Fraction(1), pg.Epsilon(1), 1.0), "partition.order"),
        (lambda: Partitioned(partitioner="dawa"), "partition.partitioner"),
        (lambda: Partitioned(share=1), "partition.share"),
        (lambda: Partitioned(share=0), "partition.share"),
    ],
)
def test_what_does_not_fit_is_an_error(make, code):
    with pytest.raises(pg.PolicyGraphError) as caught:
        make()
    assert caught.value.code == code


def test_missing_values_may_be_told_to_stand_alone():
    assert Partition.of(LINE, [[0, 5]], rest="singletons").n_buckets == 5


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 5))
def test_sums_and_shares(labels, seed):
    partition = Partition(labels)
    counts = np.random.default_rng(seed).integers(0, 9, len(labels))
    for bucket, members in enumerate(partition.buckets()):
        assert partition.sums(counts)[bucket] == sum(int(counts[cell]) for cell in members)
        assert all(partition.labels[cell] == bucket for cell in members)
    spread = partition.spread(partition.sums(counts))
    assert math.isclose(float(spread.sum()), float(counts.sum()))
    assert all(len({float(spread[cell]) for cell in members}) == 1 for members in partition.buckets())


GRAPHS = {
    "line": pg.PolicyGraph.line(LINE),
    "threshold": pg.PolicyGraph.threshold(LINE, 2),
    "full": pg.PolicyGraph.full(LINE),
    "grid": pg.PolicyGraph.grid(CROSS),
    "attribute": pg.PolicyGraph.attribute(CROSS),
    "blocks": pg.PolicyGraph.partition(LINE, [[0, 2, 4], [1, 3], [5]]),
    "edges": pg.PolicyGraph.from_edges(LINE, [(0, 5), (1, 3)]),
    "none": pg.PolicyGraph.from_edges(LINE, []),
    "some bottom": pg.PolicyGraph.from_edges(LINE, [(0, 1), (2, BOTTOM)]),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("bottom", [False, True])
@settings(max_examples=30, deadline=None)
@given(labels=st.lists(st.integers(0, 5), min_size=6, max_size=6))
def test_merged_graphs_have_the_edges_that_leave_a_bucket(name, bottom, labels):
    graph = GRAPHS[name].with_bottom() if bottom else GRAPHS[name]
    partition = Partition(labels)
    merged = merge_graph(graph, partition)
    of = partition.labels.tolist()
    cells = [(u, v) for u, v in graph.edges() if v is not BOTTOM]
    assert {e for e in merged.edges() if e[1] is not BOTTOM} == oracle.merged_edges(cells, of)
    lone = {of[u] for u, v in graph.edges() if v is BOTTOM}
    assert {u for u, v in merged.edges() if v is BOTTOM} == lone


def test_a_line_cut_into_runs_stays_a_line():
    merged = merge_policy(pg.Policy(LINE, pg.PolicyGraph.line(LINE)), Partition([0, 0, 1, 2, 2, 2]))
    assert merged.graph == pg.PolicyGraph.line(pg.Domain({"bucket": 3}))
    assert merge_graph(GRAPHS["blocks"], Partition([0, 1, 0, 1, 2, 3])).n_components == 3


def test_every_neighbour_step_is_one_of_the_merged_policy_or_none():
    for graph in GRAPHS.values():
        policy = pg.Policy(graph.domain, graph)
        partition = Partition([0, 0, 1, 2, 1, 2])
        merged = merge_policy(policy, partition)
        for move in policy.moves():
            before = np.full(6, 3)
            after = before.copy()
            for cell, amount in move.change:
                after[cell] += amount
            a, b = partition.sums(before), partition.sums(after)
            assert np.array_equal(a, b) or bool(merged.are_neighbours(a, b))


def test_facts_that_an_edge_can_break_are_refused():
    policy = pg.Policy(CROSS, pg.PolicyGraph.grid(CROSS), [pg.Cuboid("a")])
    with pytest.raises(pg.RefusedError, match="facts"):
        Partitioned().calibrate(pg.queries.identity(CROSS), policy, pg.Epsilon(1))


def test_z_order_makes_boxes_of_aligned_runs():
    grid = pg.Domain({"x": 8, "y": 8})
    order = z_order(grid)
    for length in (1, 2, 4, 8, 16, 32):
        for start in range(0, 64, length):
            x, y = grid.codes(order[start : start + length])
            assert (np.ptp(x) + 1) * (np.ptp(y) + 1) == length


@settings(deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=90))
def test_deviations(counts):
    array = np.array(counts)
    lengths = [m for m in (1, 2, 3, 4, 5, 8, 17, 64, 65) if m <= len(counts)]
    for m, found in zip(lengths, sliding_deviations(array, lengths), strict=True):
        wanted = [oracle.deviation(counts[s : s + m]) for s in range(len(counts) - m + 1)]
        assert found.tolist() == wanted
        assert aligned_deviations(array, m).tolist() == wanted[::m][: len(counts) // m]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(0, 7), st.sampled_from([-1, 1]))
def test_one_record_changes_a_deviation_by_one_at_most(counts, cell, sign):
    other = list(counts)
    other[cell % len(counts)] += sign
    assert abs(oracle.deviation(other) - oracle.deviation(counts)) <= (1 if len(counts) > 1 else 0)


def costs_of(family, size, draw):
    """Small random costs, so that ties are frequent."""
    if family == "aligned":
        lengths = [1 << j for j in range(size.bit_length())]
        tables = [np.array([draw() for _ in range(size // m)]) for m in lengths]
        runs = {(k * m, k * m + m): int(t[k]) for m, t in zip(lengths, tables) for k in range(len(t))}
        return lengths, tables, runs
    lengths = list(range(size, 0, -1))
    if family == "sliding":
        lengths = [m for m in lengths if m & (m - 1) == 0]
    tables = [np.array([draw() for _ in range(size - m + 1)]) for m in lengths]
    return lengths, tables, {(s, s + m): int(t[s]) for m, t in zip(lengths, tables) for s in range(len(t))}


@pytest.mark.parametrize("family", ["aligned", "sliding", "all"])
@pytest.mark.parametrize("large", [False, True])
@settings(deadline=None, max_examples=60)
@given(size=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_the_cheapest_partition_is_found_and_ties_go_by_the_fixed_order(family, large, size, seed):
    rng = np.random.default_rng(seed)
    lengths, tables, runs = costs_of(family, size, lambda: int(rng.integers(-2, 4)))
    if large:  # beyond 64 bits: the same partitions in integers of any size
        tables = [np.array([int(v) << 62 for v in t], dtype=object) for t in tables]
    if family == "aligned":
        [starts] = cheapest_trees([costs[None, :] for costs in tables], size)
        cuts, rank = [*np.flatnonzero(starts).tolist(), size], oracle.rank_of_tree(size)
    else:
        cuts, rank = cheapest_runs(tables, lengths, size), oracle.rank_of_runs
    wanted = oracle.cheapest(runs, size, oracle.family(family), rank)
    assert tuple(itertools.pairwise(cuts)) == wanted


@pytest.mark.parametrize("family", ["aligned", "sliding", "all"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 100])
def test_without_noise_the_choice_is_the_cheapest_one(family, size):
    counts = np.random.default_rng(size).integers(0, 4, size)
    ready = Intervals(family, bias=0).calibrate(size, Fraction(0), pg.Epsilon(1), 1.5)
    partition = chosen(ready, counts, pg.SeededRng(1))
    labels = partition.labels
    assert np.all(np.diff(labels) >= 0)
    if size <= 7:
        allowed = oracle.family(family)
        cost = lambda p: sum(oracle.deviation(counts[a:b].tolist()) + 1.5 for a, b in p)  # noqa: E731
        mine = [(b[0], b[-1] + 1) for b in partition.buckets()]
        assert cost(mine) == min(cost(p) for p in oracle.run_partitions(size, allowed))


def test_an_order_of_the_cells_is_kept_to():
    order = np.array([5, 3, 1, 0, 2, 4])
    ready = Intervals("all", order=order, bias=0).calibrate(6, Fraction(0), pg.Epsilon(1), 0.5)
    assert chosen(ready, [0, 9, 0, 9, 0, 9], pg.SeededRng(1)).buckets() == ((0, 2, 4), (1, 3, 5))


def test_the_scale_of_every_run():
    ready = Intervals().calibrate(8, Fraction(2), pg.Epsilon("1/2"), 1.0)
    assert [ready.scale(m) for m in (1, 2, 8)] == [4, 8, 8]
    assert Intervals().calibrate(1, Fraction(2), pg.Epsilon(1), 1.0).scale(1) == 0


def tall(height):
    table = np.zeros(dawa.CELLS, dtype=np.int64)
    table[31] = height
    return table


@pytest.mark.parametrize("family", ["aligned", "sliding"])
def test_the_event_that_exposes_clamped_costs_stays_within_epsilon(family):
    """64 cells, one of 4 against 5, the rest empty; "that cell is a bucket of its own"."""
    epsilon, runs = Fraction(dawa.EPSILON_1), 2000
    hits = {}
    for height in (4, 5):
        ready = Intervals(family, bias=0).calibrate(64, Fraction(1), pg.Epsilon(epsilon), 2.0)
        source = pg.SeededRng(f"{family} {height}")
        made = (chosen(ready, tall(height), source) for _ in range(runs))
        hits[height] = sum(bool(p.sizes[p.labels[31]] == 1) for p in made)
    # The most that the counts allow with confidence 0.999 is still within epsilon: a margin, not a bare pass.
    for a, b in ((4, 5), (5, 4)):
        top = binomial_bounds(hits[a], runs, 0.0005)[1]
        low = binomial_bounds(hits[b], runs, 0.0005)[0]
        assert math.log(top / low) < float(epsilon), hits


@pytest.mark.slow
def test_the_same_event_refutes_clamped_costs():
    counts = {}
    for height in (4, 5):
        made = dawa.clamped()[0](tall(height), 3000, pg.SeededRng(height))
        counts[height] = sum((31, 32) in buckets for buckets in made)
    low = binomial_bounds(counts[5], 3000, 0.0005)[0]
    top = binomial_bounds(counts[4], 3000, 0.0005)[1]
    assert math.log(low / top) > 2 * float(Fraction(dawa.EPSILON_1))


def runs_of(ready):
    """The partitioner alone, for the audit: its output is the set of runs."""
    return lambda table, n, source: [made.buckets() for made in chosen_many(ready, table, n, source)]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["aligned", "sliding"])
def test_the_partitioner_passes_the_audit_and_a_boast_does_not(family):
    policy = pg.Policy(pg.Domain({"cell": 8}))
    # Three more buckets at 1/2 each are worth it at a height of 2, and not at 1.
    pairs = [([height, *[0] * 7], [height + 1, *[0] * 7]) for height in (0, 1)]
    for spent, passes in ((2, True), (8, False)):
        ready = Intervals(family, bias=0).calibrate(8, Fraction(1), pg.Epsilon(spent), 0.5)
        source = pg.SeededRng(spent)
        report = audit(
            runs_of(ready), policy, epsilon=2, samples=2000, pairs=pairs, batch=True, source=source
        )
        assert report.passed == passes, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["line", "full", "bottom"])
def test_the_mechanism_passes_the_audit_and_a_boast_does_not(graph):
    domain = pg.Domain({"age": 4})
    made = {"line": pg.PolicyGraph.line(domain), "full": pg.PolicyGraph.full(domain), "bottom": None}[graph]
    policy = pg.Policy(domain, made)
    ready = Partitioned(Intervals(bias=0)).calibrate(pg.queries.identity(domain), policy, pg.Epsilon(4))
    report = audit(ready, samples=1000, most_pairs=2, source=pg.SeededRng(1))
    assert report.passed, str(report)
    report = audit(ready, epsilon="1/2", samples=1000, most_pairs=2, source=pg.SeededRng(2))
    assert not report.passed, str(report)


def released(mechanism, table, domain=LINE, graph=None, epsilon=60, query=None, seed=1):
    policy = pg.Policy(domain, graph or pg.PolicyGraph.line(domain))
    ready = mechanism.calibrate(query or pg.queries.identity(domain), policy, pg.Epsilon(epsilon))
    return ready, ready.run(np.array(table), pg.SeededRng(seed))


def test_losses_add_up_and_totals_are_kept():
    ready, release = released(Partitioned(), [8, 8, 0, 0, 0, 1])
    assert math.isclose(
        release.values().sum(), 17
    )  # the number of records is exact on a connected bounded graph
    assert any("equal shares" in line for line in release.sentences)
    assert release.record["loss"] == pg.Epsilon(60).to_json()
    # On a line the noisy cells count every run as well as the merged line would.
    assert ready.bucket_loss is None
    assert ready.chooser.loss.value + ready.cell_loss.value == 60
    apart = Partitioned().calibrate(pg.queries.identity(LINE), pg.Policy(LINE), pg.Epsilon(60))
    assert apart.chooser.loss.value + apart.cell_loss.value + apart.bucket_loss.value == 60


def test_a_release_survives_parquet():
    _, release = released(Partitioned(), [8, 8, 0, 0, 0, 1], epsilon=2)
    again = pg.Release.from_parquet(io.BytesIO(release.to_bytes()))
    assert again.values().tolist() == release.values().tolist()
    assert np.allclose(again.tables[0].deviation, release.tables[0].deviation)


def test_given_buckets_cost_nothing_and_stated_deviations_are_right():
    halves = Partition([0, 0, 0, 1, 1, 1])
    for then in (None, Laplace(), TransformedLaplace(totals="noisy")):
        mechanism = Partitioned(halves, then=then)
        domain, graph = LINE, pg.PolicyGraph.line(LINE)
        ready = mechanism.calibrate(pg.queries.prefix(domain), pg.Policy(domain, graph), pg.Epsilon("1/2"))
        assert (ready.bucket_loss, ready.cell_loss) == (ready.loss, None)
        source = pg.SeededRng("spread")
        drawn = [ready.run(np.array([4, 4, 4, 1, 1, 1]), source).values() for _ in range(600)]
        stated = np.broadcast_to(ready.deviation(0), (6,))
        assert np.allclose(np.mean(drawn, axis=0), [4, 8, 12, 13, 14, 15], atol=1.2)
        assert np.allclose(np.std(drawn, axis=0), stated, rtol=0.17, atol=1e-6)


def test_other_queries_are_answered_from_the_cells():
    _, cells = released(Partitioned(), [8, 8, 0, 0, 0, 1], epsilon=3)
    _, sums = released(Partitioned(), [8, 8, 0, 0, 0, 1], epsilon=3, query=pg.queries.prefix(LINE))
    assert np.allclose(np.cumsum(cells.values()), sums.values(), atol=1e-6)


def test_consistency_on_the_merged_graph():
    _, release = released(Partitioned(then=TransformedConsistent()), [8, 8, 0, 0, 0, 1], epsilon=1)
    assert release.values().min() >= 0
    assert math.isclose(release.values().sum(), 17)


def test_records_that_move_count_twice_and_records_that_appear_once():
    query = pg.queries.identity(LINE)
    moving = Partitioned().calibrate(query, pg.Policy(LINE, pg.PolicyGraph.line(LINE)), pg.Epsilon(1))
    single = Partitioned().calibrate(query, pg.Policy(LINE), pg.Epsilon(1))
    assert (moving.chooser.changes, single.chooser.changes) == (2, 1)
    assert (moving.chooser.scale(2), single.chooser.scale(2)) == (32, 16)


def test_shares():
    query = pg.queries.identity(LINE)
    for graph, share, parts in (
        (pg.PolicyGraph.line(LINE), "auto", (Fraction(1, 8), 0)),
        (pg.PolicyGraph.line(LINE), "1/2", (Fraction(1, 2), 0)),
        (pg.PolicyGraph.full(LINE), "auto", (Fraction(1, 8), Fraction(1, 8))),
        (None, "1/2", (Fraction(1, 4), Fraction(1, 4))),
    ):
        ready = Partitioned(share=share).calibrate(query, pg.Policy(LINE, graph), pg.Epsilon("1/10"))
        buckets = 0 if ready.bucket_loss is None else ready.bucket_loss.value
        assert (10 * ready.chooser.loss.value, 10 * buckets) == parts
        assert ready.chooser.loss.value + buckets + ready.cell_loss.value == Fraction(1, 10)


def test_a_policy_that_protects_nothing_gets_no_noise():
    graph = pg.PolicyGraph.from_edges(LINE, [])
    ready, release = released(Partitioned(then=Laplace()), [3, 3, 3, 0, 0, 7], graph=graph, epsilon=1)
    assert ready.chooser.scale(2) == 0
    assert math.isclose(release.values().sum(), 16)


def test_a_disconnected_graph_keeps_the_totals_of_its_components_to_itself():
    graph = pg.PolicyGraph.partition(LINE, [[0, 1, 2], [3, 4, 5]])
    policy = pg.Policy(LINE, graph)
    ready = Partitioned(Partition([0, 0, 1, 2, 2, 3])).calibrate(
        pg.queries.identity(LINE), policy, pg.Epsilon("1/4")
    )
    totals = {
        round(float(ready.run([9, 0, 0, 1, 1, 1], pg.SeededRng(i)).values()[:3].sum()), 6) for i in range(9)
    }
    assert len(totals) > 1


def test_other_losses_and_large_queries_are_refused():
    policy = pg.Policy(LINE)
    with pytest.raises(pg.InputError) as caught:
        Partitioned().calibrate(pg.queries.identity(LINE), policy, pg.Rho(1))
    assert caught.value.code == "mechanism.loss"
    wide = pg.Domain({"x": 3000})
    with pytest.raises(pg.InputError) as caught:
        Partitioned().calibrate(pg.queries.ranges(wide, [(0, 5)] * 70_000), pg.Policy(wide), pg.Epsilon(1))
    assert caught.value.code == "partition.query"
    with pytest.raises(pg.InputError) as caught:
        Partitioned(Partition([0, 1])).calibrate(pg.queries.identity(LINE), policy, pg.Epsilon(1))
    assert caught.value.code == "partition.graph"
    ready = Partitioned().calibrate(pg.queries.identity(LINE), policy, pg.Epsilon(1))
    for table, code in (
        ([1, 2, 3], "mechanism.table"),
        ([1 << 60] * 6, "counts.size"),
        ([0.5] * 6, "counts.value"),
    ):
        with pytest.raises(pg.InputError) as caught:
            ready.run(table, pg.SeededRng(1))
        assert caught.value.code == code
    with pytest.raises(pg.InputError) as caught:
        chosen(ready.chooser, [1 << 48] * 6, pg.SeededRng(1))
    assert caught.value.code == "partition.table"


@pytest.mark.slow
def test_a_grid_in_z_order():
    grid = pg.Domain({"x": 32, "y": 32})
    table = np.zeros((32, 32), dtype=np.int64)
    table[:16, 16:] = 50
    _, release = released(
        Partitioned(Intervals(order=z_order(grid))), table.ravel(), grid, pg.PolicyGraph.grid(grid), epsilon=1
    )
    assert np.mean((release.values() - table.ravel()) ** 2) < 2
    assert release.record["partition"]["buckets"] < 60
