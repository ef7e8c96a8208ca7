"""Consistent histograms: the projection against a general solver, whole numbers, kept totals, less error."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import isotonic_regression

import policygraph as pg
from policygraph.errors import InputError
from policygraph.estimation.histograms import (
    consistent,
    isotonic_lines,
    nearest_forest,
    nearest_graph,
    round_in_order,
)
from policygraph.mechanisms import TransformedConsistent, TransformedLaplace
from policygraph.model.graphs import BOTTOM, PolicyGraph
from policygraph.transforms.incidence import transform
from tests.gate import noisy
from tests.oracles import transform as oracle
from tests.paths import DATA


def noisy_columns(reduction):
    keep = np.setdiff1d(np.arange(reduction.width), reduction.fixed)
    return reduction.matrix().toarray()[:, keep].astype(float)


def projected(reduction, cells):
    """What the fast solvers find, before rounding."""
    if hasattr(reduction, "order"):
        return nearest_forest(cells, reduction.order, reduction.above, reduction.fixed)
    u, v = (reduction.u, reduction.v) if hasattr(reduction, "u") else reduction.edges()
    lone = getattr(reduction, "lone", np.zeros(0, dtype=np.int64))
    loose = reduction.roots[:0] if reduction.exact_totals else reduction.roots
    return nearest_graph(cells, u, v, np.concatenate([lone, loose]))


@st.composite
def noisy_graphs(draw):
    n = draw(st.integers(2, 7))
    domain = pg.Domain({"x": n})
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    lone = draw(st.lists(st.integers(0, n - 1), max_size=2))
    edges = [*draw(st.lists(pairs, max_size=9)), *((u, BOTTOM) for u in lone)]
    graph = draw(
        st.sampled_from(
            [
                PolicyGraph.from_edges(domain, edges),
                PolicyGraph.line(domain),
                PolicyGraph.grid(pg.Domain({"x": min(n, 4), "y": 2})),
                PolicyGraph.from_edges(domain, [(0, v) for v in range(1, n)]),
            ]
        )
    )
    reduction = transform(pg.Policy(graph.domain, graph), totals=draw(st.sampled_from(["exact", "noisy"])))
    cells = np.array(draw(st.lists(st.integers(0, 4), min_size=graph.size, max_size=graph.size)))
    seed = draw(st.integers(0, 10**6))
    noise = np.random.default_rng(seed).integers(-6, 7, reduction.width)
    noise[reduction.fixed] = 0
    return reduction, cells + reduction.invert(noise)


@settings(max_examples=120, deadline=None)
@given(noisy_graphs())
def test_the_projection_is_that_of_a_general_solver_and_rounding_keeps_sums(case):
    reduction, noisy = case
    wanted = oracle.nearest_nonnegative(noisy.astype(float), noisy_columns(reduction))
    whole = consistent(reduction, noisy)
    assert whole.dtype == np.int64
    assert (whole >= 0).all()
    assert np.array_equal(consistent(reduction, whole), whole)
    kept = reduction.matrix().toarray()[:, reduction.fixed]
    if not type(reduction).__name__.startswith("Line"):
        assert np.allclose(projected(reduction, noisy), wanted, atol=2e-4)
    else:
        sums = np.cumsum(wanted.reshape(reduction.shape), axis=1)
        found = np.cumsum(whole.reshape(reduction.shape), axis=1)
        assert np.all(np.abs(sums - found) <= 0.5 + 2e-4)
    labels = reduction.policy.graph.components()
    if kept.shape[1]:
        for root in np.flatnonzero(kept.any(axis=1)):
            mine = labels == labels[root]
            assert whole[mine].sum() == noisy[mine].sum()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-30, 60), min_size=2, max_size=30), st.booleans())
def test_a_line_is_isotonic_regression_clipped_to_the_public_total(cells, exact):
    noisy = np.array(cells)
    if exact and noisy.sum() < 0:
        noisy[-1] -= noisy.sum()
    found = isotonic_lines(noisy, (1, len(noisy), 1), exact_total=exact)
    sums = np.cumsum(noisy)
    top = sums[-1] if exact else None
    fitted = np.clip(isotonic_regression(sums[:-1] if exact else sums).x, 0, top)
    if exact:
        fitted = np.append(fitted, top)
        assert found.sum() == noisy.sum()
    assert np.all(np.abs(np.cumsum(found) - fitted) <= 0.5)
    assert (found >= 0).all()


@pytest.mark.parametrize("shape", [(1, 40, 1), (3, 8, 1), (1, 8, 5), (2, 5, 3), (4, 1, 2)])
def test_lines_are_fitted_one_by_one_and_like_the_forest(shape):
    rng = np.random.default_rng(1)
    domain = pg.Domain({"a": shape[0], "x": shape[1], "b": shape[2]})
    reduction = transform(pg.Policy(domain, PolicyGraph.line(domain, "x")), totals="exact")
    noise = rng.integers(-9, 10, reduction.width)
    noise[reduction.fixed] = 0
    noisy = rng.integers(0, 3, domain.size) + reduction.invert(noise)
    found = isotonic_lines(noisy, shape, exact_total=True).reshape(shape)
    cube = noisy.reshape(shape)
    for a in range(shape[0]):
        for b in range(shape[2]):
            alone = isotonic_lines(cube[a, :, b], (1, shape[1], 1), exact_total=True)
            assert np.array_equal(found[a, :, b], alone)


def test_pooling_and_the_growing_set_agree_on_a_long_line():
    rng = np.random.default_rng(2)
    n = 3000
    cells = np.where(rng.random(n) < 0.03, rng.integers(0, 500, n), 0)
    noise = np.rint(rng.laplace(0, 20, n)).astype(np.int64)
    noise[-1] = 0
    noisy = cells + np.diff(noise, prepend=0)
    order = np.arange(n)[::-1].copy()
    above = np.arange(-1, n - 1)
    found = nearest_forest(noisy, order, above, np.array([n - 1]))
    fitted = np.append(np.clip(isotonic_regression(np.cumsum(noisy)[:-1]).x, 0, noisy.sum()), noisy.sum())
    assert np.allclose(np.cumsum(found), fitted, atol=1e-3)


def test_nothing_to_do_and_an_empty_table():
    domain = pg.Domain({"x": 5})
    line = transform(pg.Policy(domain, PolicyGraph.line(domain)))
    tree = transform(pg.Policy(domain, PolicyGraph.from_edges(domain, [(0, 1), (0, 2), (2, 3), (2, 4)])))
    for reduction in (line, tree):
        assert consistent(reduction, [3, 0, 2, 0, 9]).tolist() == [3, 0, 2, 0, 9]
        assert consistent(reduction, [3, -3, 2, -2, 0]).tolist() == [0, 0, 0, 0, 0]


def test_rounding_keeps_stretches_and_pieces():
    rng = np.random.default_rng(3)
    for _ in range(50):
        n = 30
        pieces = np.sort(rng.integers(0, 4, n))
        order = rng.permutation(n)
        values = np.empty(n)
        values[order] = rng.random(n) * 3
        _, pieces = np.unique(pieces, return_inverse=True)
        known = np.full(pieces.max() + 1, -1)
        for piece in range(len(known)):
            mine = order[pieces == piece]
            if rng.random() < 0.7:
                known[piece] = int(np.floor(values[mine].sum()))
                values[mine] *= known[piece] / values[mine].sum()
        found = round_in_order(values, order, pieces, known)
        assert (found >= 0).all()
        for piece in range(len(known)):
            mine = order[pieces == piece]
            assert known[piece] in (-1, found[mine].sum())
            assert np.all(np.abs(np.cumsum(found[mine]) - np.cumsum(values[mine])) <= 0.5 + 1e-9)
        off = round_in_order(values * 1.2, order, pieces, known)
        for piece in np.flatnonzero(known >= 0):
            assert off[order[pieces == piece]].sum() == known[piece]


def test_too_many_rounds_still_give_a_histogram_with_its_total(monkeypatch):
    from policygraph.estimation import histograms

    monkeypatch.setattr(histograms, "ROUNDS", 1)
    domain = pg.Domain({"x": 60, "y": 2})
    reduction = transform(pg.Policy(domain, PolicyGraph.grid(domain)))
    noise = np.random.default_rng(6).integers(-30, 31, reduction.width)
    noise[reduction.fixed] = 0
    noisy = np.full(120, 2) + reduction.invert(noise)
    found = consistent(reduction, noisy)
    assert (found >= 0).all()
    assert found.sum() == 240


@given(noisy_graphs())
@settings(max_examples=60, deadline=None)
def test_the_way_of_large_graphs_ends_at_the_same_cells(case):
    from policygraph.estimation import histograms

    reduction, noisy = case
    if reduction.valid_for == "any":  # lines and forests have ways of their own
        return
    want = projected(reduction, noisy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histograms, "LARGE", 0)
        assert np.allclose(projected(reduction, noisy), want, atol=1e-4)


def test_large_grids_are_projected_and_keep_their_total(monkeypatch):
    from policygraph.estimation import histograms

    domain = pg.Domain({"x": 60, "y": 50})
    reduction = transform(pg.Policy(domain, PolicyGraph.grid(domain)))
    rng = np.random.default_rng(6)
    for cells in (np.zeros(3000, dtype=np.int64), rng.poisson(0.02, 3000), rng.poisson(3, 3000)):
        noise = np.rint(rng.laplace(0, 30, reduction.width)).astype(np.int64)
        noise[reduction.fixed] = 0
        noisy = cells + reduction.invert(noise)
        slow = consistent(reduction, noisy)
        monkeypatch.setattr(histograms, "LARGE", 0)
        fast = consistent(reduction, noisy)
        monkeypatch.undo()
        assert (fast >= 0).all()
        assert fast.sum() == cells.sum()
        assert np.abs(np.cumsum(fast) - np.cumsum(slow)).max() <= 1


def test_another_reduction_is_an_error():
    with pytest.raises(InputError):
        consistent(object(), [1, 2])  # type: ignore[arg-type]


def test_consistency_lowers_the_error_on_sparse_trees_and_grids():
    rng = np.random.default_rng(4)
    domain = pg.Domain({"x": 20, "y": 20})
    cells = np.where(rng.random(400) < 0.1, rng.integers(0, 50, 400), 0)
    parents = (np.arange(1, 400) * rng.random(399)).astype(np.int64)
    tree = PolicyGraph.from_edges(domain, np.stack([np.arange(1, 400), parents], axis=1))
    for graph in (PolicyGraph.grid(domain), tree):
        policy, query = pg.Policy(domain, graph), pg.queries.identity(domain)
        errors = []
        for mechanism in (TransformedLaplace(route="edges"), TransformedConsistent(route="edges")):
            ready = mechanism.calibrate(query, policy, pg.Epsilon("0.1"))
            made = [ready.to_answers(noisy(ready, cells, pg.SeededRng(s))) for s in range(5)]
            errors.append(np.mean([((m - cells) ** 2).mean() for m in made]))
        assert errors[1] < 0.3 * errors[0]


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.skipif(not (DATA / "dpbench1d").is_dir(), reason="the benchmark data sets are not here")
@pytest.mark.parametrize("name", ["INCOME", "MEDCOST", "NETTRACE", "PATENT"])
@pytest.mark.parametrize("epsilon", ["0.1", "0.01"])
def test_the_promised_errors_on_the_benchmark_sets(name, epsilon):
    cells = np.load(DATA / "dpbench1d" / f"{name}.npy").astype(np.int64)
    domain = pg.Domain({"x": len(cells)})
    policy, query = pg.Policy(domain, PolicyGraph.line(domain)), pg.queries.identity(domain)
    errors = {}
    for mechanism in (TransformedLaplace(), TransformedConsistent()):
        ready = mechanism.calibrate(query, policy, pg.Epsilon(epsilon))
        made = [ready.to_answers(noisy(ready, cells, pg.SeededRng(seed))) for seed in range(20)]
        errors[mechanism.name] = float(np.mean([((m - cells) ** 2).mean() for m in made]))
    promised = 4 / float(epsilon) ** 2
    assert abs(errors["TransformedLaplace"] / promised - 1) < 0.05
    ratio = errors["TransformedConsistent"] / errors["TransformedLaplace"]
    assert ratio <= 0.95
    if epsilon == "0.01" and (cells == 0).mean() > 0.5:
        assert ratio <= 0.5
