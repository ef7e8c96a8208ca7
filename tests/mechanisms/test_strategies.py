"""Strategies against matrices written out: rows, pseudo-inverse, sensitivity over the moves, expected errors, the optimiser."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.strategy import (
    AxisBase,
    ForestBase,
    Haar,
    Strategy,
    Tree,
    Workload,
    optimise,
    plain_strategies,
)
from policygraph.mechanisms.strategy.factors import depth
from policygraph.mechanisms.strategy.mechanism import MatrixMechanism, noise_variance
from policygraph.mechanisms.strategy.workload import (
    Profiles,
    of_all_differences,
    of_all_pairs,
    of_all_ranges,
    of_pairs,
    of_ranges,
    of_rows,
)
from policygraph.model.queries import from_spec
from policygraph.transforms.incidence import ForestTransform, spanning_transform
from tests.gate import noisy_many
from tests.oracles import strategies as oracle

LINE8 = pg.Domain({"x": 8})
GRID = pg.Domain({"x": 4, "y": 5})


@st.composite
def factors(draw, n=None):
    """A factor and its rows written out."""
    n = draw(st.integers(1, 11)) if n is None else n
    if draw(st.booleans()):
        weights = tuple(draw(st.lists(st.integers(1, 4), min_size=depth(n, 2) + 1, max_size=depth(n, 2) + 1)))
        return Haar(n, 2, weights), oracle.haar_rows(n, weights)
    branching = draw(st.integers(2, 5))
    levels = depth(n, branching)
    weights = (*draw(st.lists(st.integers(0, 4), min_size=levels, max_size=levels)), draw(st.integers(1, 4)))
    return Tree(n, branching, weights), oracle.tree_rows(n, branching, weights)


def dense(strategy):
    """A over the cells, from its action on unit vectors."""
    return np.stack([strategy.answer(row) for row in np.eye(strategy.domain.size, dtype=np.int64)], axis=1)


def fixed_rows(strategy):
    known = strategy.base.fixed
    if known is None:
        return None
    return np.stack([known.answer(row) for row in np.eye(strategy.domain.size, dtype=np.int64)], axis=1)


def all_rows(query):
    return query.columns(np.arange(query.domain.size)).toarray()


@settings(max_examples=40, deadline=None)
@given(factors(), st.integers(0, 10**6))
def test_rows_inverse_and_forms_are_those_of_the_matrix_written_out(case, seed):
    factor, rows = case
    n = factor.n
    assert np.array_equal(factor.rows.toarray(), rows)
    inverse = np.linalg.pinv(rows.astype(float))
    assert np.allclose(factor.gram_inverse(np.eye(n)), inverse @ inverse.T)
    rng = np.random.default_rng(seed)
    measured = rng.normal(size=(3, len(rows)))
    assert np.allclose(factor.solve(measured), measured @ inverse.T)
    low, high = np.triu_indices(n)
    ranges = np.array([[float(a <= i <= b) for i in range(n)] for a, b in zip(low, high, strict=True)])
    expected = oracle.variances(ranges, rows)
    assert np.allclose(of_ranges(factor, low, high), expected)
    assert np.allclose(of_rows(factor, ranges), expected)
    assert np.isclose(of_all_ranges(factor), expected.sum())
    prefixes = np.vstack([np.zeros(n), np.tril(np.ones((n, n)))])
    assert np.isclose(of_all_differences(factor, prefixes), expected.sum())
    minus, plus = rng.integers(-1, n, (2, 9))
    unit = np.vstack([np.eye(n), np.zeros(n)])
    assert np.allclose(of_pairs(factor, minus, plus), oracle.variances(unit[plus] - unit[minus], rows))
    points = np.vstack([np.eye(n), np.zeros((2, n))])
    pairs = [points[i] - points[j] for i in range(n + 2) for j in range(i)]
    assert np.isclose(of_all_pairs(factor, 2), oracle.variances(np.array(pairs), rows).sum())


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_products_of_factors_are_kronecker_products(data):
    exact = data.draw(st.booleans())
    base = AxisBase(GRID, data.draw(st.sampled_from([None, 0, 1])), exact=False)
    if exact and base.axis is not None:
        base = AxisBase(GRID, base.axis, exact=True)
    made = [data.draw(factors(n)) for n in base.shape]
    strategy = Strategy("drawn", base, [f for f, _ in made])
    maps = [
        oracle.prefix_rows(n, free) if axis == base.axis else np.eye(n, dtype=np.int64)
        for axis, (n, free) in enumerate(zip(GRID.shape, base.shape, strict=True))
    ]
    written = np.kron(made[0][1] @ maps[0], made[1][1] @ maps[1])
    assert np.array_equal(dense(strategy), written)
    cells = np.arange(GRID.size)
    assert np.array_equal(strategy.columns(cells).toarray(), written)
    x = np.arange(GRID.size) ** 2
    known = [] if base.fixed is None else base.fixed.answer(x)
    assert np.allclose(strategy.estimate(strategy.answer(x), known), x)
    assert from_spec(GRID, strategy.to_spec()) == strategy
    u, v = np.triu_indices(GRID.size, 1)
    for norm in ("l1", "l2"):
        apart = written[:, u] - written[:, v]
        size = np.abs(apart).sum(axis=0) if norm == "l1" else (apart**2).sum(axis=0)
        assert np.array_equal(strategy.pair_norms(u, v, norm), size)
        alone = np.abs(written).sum(axis=0) if norm == "l1" else (written**2).sum(axis=0)
        assert np.array_equal(strategy.column_norms(cells, norm), alone)
    queries = [
        pg.queries.identity(GRID),
        pg.queries.cuboids(GRID, [["x"], ["y"], []]),
        pg.queries.random_boxes(GRID, 12, seed=3),
        pg.queries.ranges(GRID, [(0, 1), (1, 3)], "x"),
    ]
    for query in queries:
        expected = oracle.variances(all_rows(query), written, fixed_rows(strategy))
        work = Workload(query, base)
        assert np.allclose(work.variances(strategy), expected, atol=1e-9)
        assert np.isclose(work.total(strategy), expected.sum(), atol=1e-9)


GRAPHS = {
    "one record more or less": lambda d: None,
    "line": pg.PolicyGraph.line,
    "threshold": lambda d: pg.PolicyGraph.threshold(d, 3),
    "full": pg.PolicyGraph.full,
    "line and bottom": lambda d: pg.PolicyGraph.line(d).with_bottom(),
    "star": lambda d: pg.PolicyGraph.from_edges(d, [(2, v) for v in (0, 1, 3, 4, 5, 6, 7)]),
    "two trees": lambda d: pg.PolicyGraph.from_edges(d, [(0, 3), (3, 5), (5, 7), (1, 2), (2, 4), (2, 6)]),
    "cycle": lambda d: pg.PolicyGraph.from_edges(d, [(v, (v + 1) % 8) for v in range(8)]),
    "isolated": lambda d: pg.PolicyGraph.from_edges(d, [(0, 1), (4, 6)]),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_sensitivity_and_error_of_every_plain_strategy_are_those_of_the_matrix(name, norm):
    policy = pg.Policy(LINE8, GRAPHS[name](LINE8))
    graph = policy.graph
    edges = (
        []
        if graph is None
        else [(u, v) for us, vs in graph.edge_chunks() for u, v in zip(us, vs, strict=True)]
    )
    lone = range(8) if graph is None or graph.bottom == "all" else ()
    queries = [
        pg.queries.identity(LINE8),
        pg.queries.all_ranges(LINE8),
        pg.queries.prefix(LINE8),
        pg.queries.matrix(LINE8, [[1, 0, 2, 0, 0, -1, 0, 3], [0, 0, 0, 0, 0, 0, 0, 0]]),
    ]
    over = {s.base.describe() for s in plain_strategies(policy)}
    over |= {s.base.describe() for s in plain_strategies(policy, over="edges")}
    assert len(over) > 1 or name == "one record more or less"
    for strategy in [*plain_strategies(policy), *plain_strategies(policy, over="edges")]:
        written = dense(strategy)
        proof = pg.sensitivity(strategy, policy, norm=norm)
        expected = oracle.sensitivity(written, edges, lone, norm)
        assert proof.power >= expected
        assert proof.power == expected or not proof.exact
        assert proof.exact, f"{strategy.describe()} is small enough to be exact"
        profiles = Profiles.of(strategy, policy, norm)
        assert profiles.largest([f.weights for f in strategy.factors]) == expected
        known = fixed_rows(strategy)
        if known is not None:
            assert oracle.sensitivity(known, edges, lone, norm) == 0
        for query in queries:
            work = Workload(query, strategy.base)
            variances = oracle.variances(all_rows(query), written, known)
            assert np.allclose(work.variances(strategy), variances, atol=1e-9), strategy.describe()
            assert np.isclose(work.total(strategy), variances.sum(), atol=1e-9)


def test_spec_of_a_forest_comes_back_and_certificates_verify():
    policy = pg.Policy(LINE8, GRAPHS["two trees"](LINE8))
    base = ForestBase(LINE8, ForestTransform.of(policy))
    strategy = Strategy("tree", base, [Tree.plain(base.shape[0], 2)])
    assert from_spec(LINE8, strategy.to_spec()) == strategy
    assert np.array_equal(dense(from_spec(LINE8, strategy.to_spec())), dense(strategy))
    proof = pg.sensitivity(strategy, policy)
    assert proof.verify().complete
    assert pg.Sensitivity.from_dict(proof.to_dict()).query == strategy
    other = spanning_transform(pg.Policy(LINE8, GRAPHS["cycle"](LINE8)))
    assert (
        from_spec(
            LINE8, Strategy("s", ForestBase(LINE8, other), [Tree.identity(7)]).to_spec()
        ).base.forest.stretch
        == 7
    )


@pytest.mark.parametrize("name", ["one record more or less", "line", "threshold", "two trees"])
@pytest.mark.parametrize("loss", [pg.Epsilon("1/2"), pg.Epsilon(8), pg.Rho("1/8")], ids=str)
def test_the_optimiser_is_never_worse_than_any_plain_strategy_at_the_loss_of_the_release(name, loss):
    policy = pg.Policy(LINE8, GRAPHS[name](LINE8))
    query = pg.queries.all_ranges(LINE8)
    made = MatrixMechanism("optimised", evaluations=200).calibrate(query, policy, loss)
    for strategy in plain_strategies(policy):
        plain = MatrixMechanism(strategy).calibrate(query, policy, loss)
        assert made.total_error <= plain.total_error * (1 + 1e-9)
        known = fixed_rows(strategy)
        expected = oracle.variances(all_rows(query), dense(strategy), known).sum()
        assert np.isclose(plain.total_error, expected * noise_variance(plain.sensitivity.power, loss))


def test_the_optimiser_finds_weights_that_beat_all_plain_strategies():
    domain = pg.Domain({"x": 256})
    found = optimise(pg.queries.all_ranges(domain), pg.Policy(domain))
    assert found.refined
    assert found.best.error < 0.85 * min(each.error for each in found.plain)
    assert found.best.sensitivity.exact
    assert not found.best.sensitivity.verify().failed


def test_a_wider_threshold_costs_more_and_a_line_is_cheapest():
    domain = pg.Domain({"x": 64})
    query = pg.queries.all_ranges(domain)
    errors = [
        optimise(query, pg.Policy(domain, pg.PolicyGraph.threshold(domain, t))).best.error for t in (1, 4, 63)
    ]
    assert errors == sorted(errors)
    assert errors[0] < errors[2] / 10


@pytest.mark.parametrize("over", ["cells", "edges"])
@pytest.mark.parametrize("kind", ["identity", "tree", "wavelet"])
@pytest.mark.parametrize("loss", [pg.Epsilon(1), pg.Rho("1/2")], ids=str)
def test_measured_errors_are_the_expected_ones(kind, over, loss):
    domain = pg.Domain({"x": 13})
    policy = pg.Policy(domain, pg.PolicyGraph.threshold(domain, 2))
    query = pg.queries.random_boxes(domain, 6, seed=5)
    ready = MatrixMechanism(kind, over=over).calibrate(query, policy, loss)
    x = np.arange(13) * 3
    points = noisy_many(ready, x, 1500, pg.SeededRng(2))
    errors = np.stack([ready.answers(row) for row in points]) - query.answer(x)
    deviation = np.broadcast_to(ready.deviation(0), (6,))
    shown = np.sqrt((errors**2).mean(axis=0))
    assert np.allclose(shown[deviation > 0], deviation[deviation > 0], rtol=0.16)
    assert np.allclose(errors[:, deviation == 0], 0, atol=1e-6)
    assert np.abs(errors.mean(axis=0)).max() < 5 * deviation.max() / np.sqrt(1500)
    inside = (np.abs(errors) <= np.broadcast_to(ready.within_95(0), (6,)) + 1e-9).mean(axis=0)
    margin = 5 * np.sqrt(0.95 * 0.05 / len(errors))
    assert inside.min() > 0.95 - margin
    assert inside.mean() < 0.98 + margin


def test_a_release_says_what_was_measured_and_comes_back_from_a_file(tmp_path):
    domain = pg.Domain({"x": 16})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    query = pg.queries.cuboids(domain, [["x"], []], weights=[3, 1])
    made = MatrixMechanism("tree", over="edges", branching=4).calibrate(query, policy, pg.Epsilon(1))
    release = made.run(np.arange(16), pg.SeededRng(1))
    assert abs(release.values("x").sum() - 120) < 1e-6
    assert abs(release.values("total")[0] - 120) < 1e-6
    assert "other numbers were measured, tree of 4 over the prefix sums along x" in str(release)
    assert release.record["strategy"]["factors"][0]["branching"] == 4
    release.to_parquet(tmp_path / "r.parquet")
    again = pg.Release.from_parquet(tmp_path / "r.parquet")
    assert np.allclose(again.values(), release.values())
    assert again.certificate.query == made.strategy


def test_totals_that_the_policy_protects_are_never_released_exactly():
    domain = pg.Domain({"x": 8})
    exact = Strategy("prefix", AxisBase(domain, 0, exact=True), [Tree.identity(7)])
    query = pg.queries.identity(domain)
    for policy in (pg.Policy(domain), pg.Policy(domain, pg.PolicyGraph.line(domain).with_bottom())):
        with pytest.raises(RefusedError, match="protects them") as caught:
            MatrixMechanism(exact).calibrate(query, policy, pg.Epsilon(1))
        assert caught.value.code == "strategy.fixed"
    two = pg.Policy(domain, GRAPHS["two trees"](domain))
    assert all(s.base.fixed is None for s in plain_strategies(two)), "totals of several components get noise"


def test_strategies_serve_policies_with_public_facts_over_the_cells():
    domain = pg.Domain({"a": 2, "b": 3})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    ready = MatrixMechanism().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
    assert ready.strategy.base.describe() == "cells"
    assert ready.sensitivity.power >= 4
    with pytest.raises(RefusedError, match="minimal changes"):
        MatrixMechanism("tree", over="edges").calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Tree(4, 2, (1, 1, 0)), "strategy.factor"),
        (lambda: Tree(4, 2, (1, 1)), "strategy.factor"),
        (lambda: Tree(4, 1, (1, 1, 1)), "strategy.factor"),
        (lambda: Haar(4, 2, (1, 0, 1)), "strategy.factor"),
        (lambda: Haar(4, 3, (1, 1, 1)), "strategy.factor"),
        (lambda: Tree(4, 2, (1, 0.5, 1)), "strategy.factor"),
        (lambda: AxisBase(LINE8, 1), "strategy.base"),
        (lambda: AxisBase(LINE8, exact=True), "strategy.base"),
        (lambda: AxisBase(pg.Network(3)), "strategy.domain"),
        (lambda: Strategy("s", AxisBase(LINE8), [Tree.identity(7)]), "strategy.factors"),
        (lambda: MatrixMechanism("best"), "strategy.kind"),
        (lambda: list(plain_strategies(pg.Policy(LINE8), over="nodes")), "strategy.over"),
        (lambda: list(plain_strategies(pg.Policy(LINE8), kind="best")), "strategy.kind"),
        (lambda: list(plain_strategies(pg.Policy(pg.Network(3)))), "strategy.domain"),
        (lambda: optimise(pg.queries.identity(LINE8), pg.Policy(LINE8), norm="l3"), "sensitivity.norm"),
        (lambda: from_spec(LINE8, {"strategy": {"name": "s"}}), "strategy.spec"),
        (
            lambda: from_spec(
                LINE8, {"strategy": {"name": "s", "base": {"parent": [1, 0] + [-1] * 6}, "factors": []}}
            ),
            "strategy.base",
        ),
    ],
)
def test_what_makes_no_sense_is_an_error(make, code):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.code == code


def test_certificates_of_another_strategy_are_refused():
    policy = pg.Policy(LINE8, pg.PolicyGraph.line(LINE8))
    query = pg.queries.identity(LINE8)
    first, second, *_ = plain_strategies(policy, over="cells")
    proof = pg.sensitivity(first, policy)
    with pytest.raises(InputError, match="another query"):
        MatrixMechanism(second).calibrate(query, policy, pg.Epsilon(1), proof)
    with pytest.raises(InputError, match="without a strategy"):
        MatrixMechanism("tree").calibrate(query, policy, pg.Epsilon(1), proof)
    assert MatrixMechanism(first).calibrate(query, policy, pg.Epsilon(1), proof).parameter == Fraction(2)


def test_measurements_that_leave_64_bits_are_refused():
    strategy = Strategy("heavy", AxisBase(LINE8, 0), [Tree(8, 2, (1 << 20,) * 4)])
    with pytest.raises(RefusedError) as caught:
        strategy.answer(np.full(8, 2**40))
    assert caught.value.code == "query.overflow"


def test_a_workload_too_large_for_a_forest_is_refused_before_data_are_read():
    domain = pg.Domain({"x": 6000})
    edges = [(v, v // 2) for v in range(1, 6000)]
    policy = pg.Policy(domain, pg.PolicyGraph.from_edges(domain, edges))
    base = ForestBase(domain, ForestTransform.of(policy))
    with pytest.raises(RefusedError) as caught:
        Workload(pg.queries.random_boxes(domain, 50_000), base)
    assert caught.value.code == "strategy.workload"
