"""Mechanisms on the edges of the policy graph: exact privacy, exact deviations, refusals, records."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import policygraph as pg
from policygraph.distributions import laplace_variance
from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms import (
    Transformed,
    TransformedConsistent,
    TransformedGaussian,
    TransformedLaplace,
)
from policygraph.model.graphs import BOTTOM, PolicyGraph
from policygraph.transforms.incidence import transform
from tests.gate import noisy, noisy_many
from tests.oracles import transform as oracle

ROW = pg.Domain({"x": 3})
TINY = {
    "line": PolicyGraph.line(ROW),
    "star": PolicyGraph.from_edges(ROW, [(1, 0), (1, 2)]),
    "star of bottom": PolicyGraph.from_edges(ROW, []).with_bottom(),
    "bottom at one end": PolicyGraph.from_edges(ROW, [(0, 1), (1, 2), (0, BOTTOM)]),
    "two components": PolicyGraph.from_edges(ROW, [(0, 1)]),
    "triangle": PolicyGraph.full(ROW),
    "cycle through bottom": PolicyGraph.from_edges(ROW, [(0, 1), (0, BOTTOM), (1, BOTTOM)]),
}


@pytest.mark.parametrize("graph", TINY.values(), ids=TINY)
@pytest.mark.parametrize("spanning", [False, True])
def test_the_log_ratio_of_every_output_is_at_most_epsilon_by_enumeration(graph, spanning):
    epsilon = Fraction(2)
    reduction = transform(pg.Policy(ROW, graph), totals="exact", spanning=spanning)
    matrix = reduction.matrix().toarray()
    scale = reduction.stretch / epsilon
    worst = max(oracle.additive_log_ratio(matrix, reduction.fixed, scale, m) for m in oracle.moves(graph))
    assert worst <= float(epsilon) + 1e-3
    if reduction.valid_for == "any":
        assert worst >= float(epsilon) - 1e-3  # nothing is wasted on a forest
        half = max(
            oracle.additive_log_ratio(matrix, reduction.fixed, scale / 2, m) for m in oracle.moves(graph)
        )
        assert half > float(epsilon) + 0.5  # half of the noise would be seen


LINE = pg.Domain({"x": 6})
ON_LINE = pg.Policy(LINE, PolicyGraph.line(LINE))


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_the_deviation_on_a_line_is_that_of_two_edges_and_of_one_at_the_ends(epsilon):
    ready = TransformedLaplace().calibrate(pg.queries.identity(LINE), ON_LINE, pg.Epsilon(epsilon))
    one = laplace_variance(1 / Fraction(epsilon))
    assert np.allclose(ready.deviation(0) ** 2, np.array([1, 2, 2, 2, 2, 1]) * one)
    ranges = TransformedLaplace().calibrate(pg.queries.all_ranges(LINE), ON_LINE, pg.Epsilon(epsilon))
    assert ranges.variances.max() <= 4 / float(Fraction(epsilon)) ** 2
    whole = (ranges.query.low[:, 0] == 0) & (ranges.query.high[:, 0] == 5)
    assert ranges.variances[whole].tolist() == [0.0]


@pytest.mark.parametrize(
    ("mechanism", "loss"),
    [
        (TransformedLaplace(), pg.Epsilon(1)),
        (TransformedGaussian(), pg.Rho("1/2")),
        (TransformedLaplace("noisy"), pg.Epsilon(1)),
    ],
)
@pytest.mark.parametrize(
    "graph",
    [
        PolicyGraph.line(LINE),
        PolicyGraph.from_edges(LINE, [(0, 1), (0, 2), (3, 4)]),
        PolicyGraph.full(LINE),
        PolicyGraph.threshold(LINE, 2),
        PolicyGraph.line(LINE).with_bottom(),
    ],
    ids=["line", "forest", "full", "threshold", "bottom"],
)
def test_stated_errors_are_those_of_the_noise_drawn(graph, mechanism, loss):
    query = pg.queries.matrix(
        LINE, np.array([[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1, 0, 2, 0, -1, 0], [1, 1, 1, 1, 1, 1]])
    )
    ready = mechanism.calibrate(query, pg.Policy(LINE, graph), loss)
    table = np.array([5, 0, 3, 100, 2, 7])
    runs = 4000
    error = noisy_many(ready, table, runs, pg.SeededRng(1)) - query.answer(table)
    stated = np.broadcast_to(ready.deviation(0), 4) ** 2
    found = (error.astype(float) ** 2).mean(axis=0)
    assert np.all(np.abs(found - stated) <= 0.15 * stated)
    within = np.broadcast_to(ready.within_95(0), 4)
    assert np.all((np.abs(error) <= within).mean(axis=0) >= 0.94)
    single = np.array([noisy(ready, table, pg.SeededRng(s)) for s in range(300)]) - query.answer(table)
    assert np.all(np.abs((single.astype(float) ** 2).mean(axis=0) - stated) <= 0.5 * stated)


def test_exact_totals_are_kept_and_noisy_ones_are_not():
    domain = pg.Domain({"s": 2, "x": 4})
    policy = pg.Policy(domain, PolicyGraph.line(domain, "x"))
    query = pg.queries.cuboid(domain, "s")
    table = np.arange(8)
    exact = TransformedLaplace("exact").calibrate(query, policy, pg.Epsilon(1))
    assert noisy(exact, table, pg.SeededRng(1)).tolist() == [6, 22]
    assert "released exactly" in " ".join(exact.stages())
    for totals in ("auto", "noisy"):
        ready = TransformedLaplace(totals).calibrate(query, policy, pg.Epsilon(1))
        assert np.allclose(np.asarray(ready.deviation(0)) ** 2, laplace_variance(1))
        assert "released exactly" not in " ".join(ready.stages())
        found = noisy_many(ready, table, 200, pg.SeededRng(1))
        assert len(np.unique(found[:, 0])) > 3


def test_the_route_with_the_smaller_expected_error_is_taken():
    domain = pg.Domain({"x": 40})
    query = pg.queries.identity(domain)
    full = TransformedLaplace().calibrate(query, pg.Policy(domain, PolicyGraph.full(domain)), pg.Epsilon(1))
    assert full.reduction.stretch == 2
    threshold = pg.Policy(domain, PolicyGraph.threshold(domain, 2))
    auto, edges, spanning = (
        TransformedLaplace(route=route).calibrate(query, threshold, pg.Epsilon(1))
        for route in ("auto", "edges", "spanning")
    )
    assert auto.variances.sum() == min(edges.variances.sum(), spanning.variances.sum())
    assert (edges.reduction.stretch, spanning.reduction.stretch) == (1, 3)
    assert edges.parameter == 1
    assert spanning.parameter == 3
    huge = pg.Domain({"x": 10_000})
    star = TransformedLaplace().calibrate(
        pg.queries.identity(huge), pg.Policy(huge, PolicyGraph.full(huge)), pg.Epsilon(1)
    )
    assert star.reduction.stretch == 2


def test_a_mechanism_on_the_edges_pays_the_stretch_and_refuses_a_cycle():
    domain = pg.Domain({"x": 3, "y": 3})
    grid = pg.Policy(domain, PolicyGraph.grid(domain))
    query = pg.queries.identity(domain)
    with pytest.raises(RefusedError) as error:
        Transformed(pg.Laplace()).calibrate(query, grid, pg.Epsilon(1))
    assert error.value.code == "reduction.data-dependent"
    ready = Transformed(pg.Laplace(), spanning=True).calibrate(query, grid, pg.Epsilon(1))
    assert ready.inner.loss == pg.Epsilon(Fraction(1, 3))
    assert ready.inner.parameter == 3
    gauss = Transformed(pg.Gaussian(), spanning=True).calibrate(query, grid, pg.Rho(1))
    assert gauss.inner.loss == pg.Rho(Fraction(1, 9))
    made = ready.run(np.arange(9), pg.SeededRng(1))
    assert made.values().sum() == 36
    found = np.array([noisy(ready, np.arange(9), pg.SeededRng(s)) for s in range(400)]) - np.arange(9)
    stated = np.asarray(ready.deviation(0)) ** 2
    assert np.all(np.abs((found.astype(float) ** 2).mean(axis=0) - stated) <= 0.5 * stated)
    assert np.all((np.abs(found) <= ready.within_95(0)).mean(axis=0) >= 0.95)


def test_the_inner_mechanism_sees_counts_of_edges():
    class Spy(pg.Laplace):
        def calibrate(self, query, policy, loss, sensitivity=None):
            assert policy.graph is None
            assert policy.constraints == ()
            assert query.is_identity
            self.seen.append(query.domain.size)
            return super().calibrate(query, policy, loss, sensitivity)

    object.__setattr__(spy := Spy(), "seen", [])
    ready = Transformed(spy).calibrate(pg.queries.identity(LINE), ON_LINE, pg.Epsilon(1))
    assert spy.seen == [5]
    assert noisy(ready, np.array([4, 0, 0, 1, 0, 2]), pg.SeededRng(2)).sum() == 7


@pytest.mark.parametrize(
    "mechanism", [TransformedLaplace(), TransformedConsistent(), Transformed(pg.Laplace())]
)
def test_release_with_ledger_and_files(mechanism, tmp_path):
    query = pg.queries.identity(LINE)
    ledger = pg.Ledger(tmp_path / "budget.db")
    given = {"epsilon": 1, "mechanism": mechanism, "ledger": ledger, "dataset": "ages"}
    made = pg.release(query, ON_LINE, [1, 2, 3, 4, 5, 6], **given)
    again = pg.release(query, ON_LINE, [1, 2, 3, 4, 5, 6], **given)
    assert np.array_equal(again.values(), made.values())
    assert ledger.spent("ages") == pg.Epsilon(1)
    assert made.private
    assert made.values().sum() == 21
    back = pg.Release.from_parquet(made.to_bytes())
    assert np.array_equal(back.values(), made.values())
    assert np.allclose(back.tables[0].deviation, made.tables[0].deviation)
    assert any("prefix sums" in line for line in made.sentences)


def test_options_are_part_of_the_name_that_the_ledger_keeps():
    query = pg.queries.identity(LINE)
    names = {
        mechanism.calibrate(query, ON_LINE, pg.Epsilon(1)).mechanism
        for mechanism in (
            TransformedLaplace(),
            TransformedLaplace("noisy"),
            TransformedConsistent(),
            Transformed(pg.Laplace()),
        )
    }
    assert len(names) == 4


def test_wrong_arguments_are_errors():
    query = pg.queries.identity(LINE)
    with pytest.raises(InputError, match="spends epsilon"):
        TransformedLaplace().calibrate(query, ON_LINE, pg.Rho(1))
    with pytest.raises(InputError, match="spends rho"):
        TransformedGaussian().calibrate(query, ON_LINE, pg.Epsilon(1))
    with pytest.raises(InputError, match="route"):
        TransformedLaplace(route="best").calibrate(query, ON_LINE, pg.Epsilon(1))
    proof = pg.sensitivity(query, ON_LINE)
    for mechanism in (TransformedLaplace(), Transformed(pg.Laplace())):
        with pytest.raises(InputError, match="expected none"):
            mechanism.calibrate(query, ON_LINE, pg.Epsilon(1), proof)
    nothing = pg.Policy(LINE, PolicyGraph.from_edges(LINE, []))
    with pytest.raises(InputError, match="no edge"):
        Transformed(pg.Laplace(), totals="exact").calibrate(query, nothing, pg.Epsilon(1))
    other = pg.queries.identity(pg.Domain({"y": 6}))
    with pytest.raises(InputError):
        TransformedLaplace().calibrate(other, ON_LINE, pg.Epsilon(1))


@pytest.mark.parametrize(("epsilon", "most"), [("1", 140), ("0.1", 1_400), ("10", 2), ("1000", 1)])
def test_ranges_of_long_sums_fit_the_noise(epsilon, most):
    """A total over 2,400 noisy cells: 1.96 deviations are 130 at epsilon 1, and next to nothing is left at a large epsilon."""
    domain = pg.Domain({"town": 40, "age": 60})
    policy, query = pg.Policy(domain), pg.queries.cuboids(domain, [(), ("town",)])
    ready = pg.TransformedLaplace().calibrate(query, policy, pg.Epsilon(epsilon))
    within, deviation = float(ready.within_95(0)), float(ready.deviation(0))
    assert 1.9 * deviation <= within <= most
    scale = float(ready.parameter)
    q = np.exp(-1 / scale)
    # A discrete Laplace variable is the difference of two geometric ones, whose sums are negative binomial.
    draws = np.random.default_rng(5).negative_binomial(2_400, 1 - q, (2, 20_000))
    assert (np.abs(draws[0] - draws[1]) <= within).mean() >= 0.945
