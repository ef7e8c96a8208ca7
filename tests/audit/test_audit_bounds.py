"""Bounds from counts: exact binomial tails, and what each kind of claim allows."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.audit.bounds import Claim, binomial_bounds
from tests.oracles import audits as oracle


@settings(deadline=None)
@given(st.integers(1, 60), st.data(), st.sampled_from([0.2, 0.01, 1e-4]))
def test_bounds_are_the_points_where_the_tails_have_the_stated_probability(runs, data, error):
    hits = data.draw(st.integers(0, runs))
    low, high = (Fraction(x) for x in binomial_bounds(hits, runs, error))
    if hits:
        tail = oracle.at_least(hits, runs, low)
        assert tail <= Fraction(error)
        assert tail > Fraction(error) * Fraction(99, 100)
    else:
        assert low == 0
    if hits < runs:
        below = 1 - oracle.at_least(hits + 1, runs, high)
        assert below <= Fraction(error)
        assert below > Fraction(error) * Fraction(99, 100)
    else:
        assert high == 1


@pytest.mark.parametrize("p", [Fraction(1, 50), Fraction(3, 10), Fraction(1, 2), Fraction(9, 10)])
def test_each_bound_is_wrong_with_at_most_the_stated_probability(p):
    runs, error = 25, 0.05
    law = [oracle.at_least(k, runs, p) - oracle.at_least(k + 1, runs, p) for k in range(runs + 1)]
    bounds = [binomial_bounds(k, runs, error) for k in range(runs + 1)]
    assert sum(mass for mass, (low, _) in zip(law, bounds, strict=True) if Fraction(low) > p) <= Fraction(
        1, 20
    )
    assert sum(mass for mass, (_, high) in zip(law, bounds, strict=True) if Fraction(high) < p) <= Fraction(
        1, 20
    )


@pytest.mark.parametrize(
    ("hits", "runs", "error"), [(-1, 5, 0.1), (6, 5, 0.1), (0, 0, 0.1), (1, 5, 0.0), (1, 5, 1.0)]
)
def test_impossible_counts_are_refused(hits, runs, error):
    with pytest.raises(pg.InputError, match="expected 0 <= hits"):
        binomial_bounds(hits, runs, error)


def least(claim, p, q):
    return float(claim.least(np.array([float(p)]), np.array([float(q)]))[0])


def test_pure_epsilon_is_the_logarithm_of_the_ratio():
    claim = Claim.read(epsilon=1)
    assert least(claim, 0.6, 0.2) == pytest.approx(log(3), rel=1e-8)
    assert least(claim, 0.6, 0.2) <= log(3)
    assert least(claim, 0.2, 0.6) == 0


def test_delta_is_forgiven_before_the_ratio_is_taken():
    claim = Claim.read(loss=pg.EpsilonDelta(1, "0.1"))
    assert least(claim, 0.7, 0.2) == pytest.approx(log(3), rel=1e-8)
    assert least(claim, 0.15, 0.1) == 0


@settings(deadline=None)
@given(
    st.fractions(0, 1, max_denominator=10**9), st.fractions(0, 1, max_denominator=10**9), st.integers(2, 12)
)
def test_rho_is_at_least_every_integer_order_shows(p, q, order):
    if not 0 < q < p <= 1 or float(q) == float(p):
        return
    found = least(Claim.read(loss=pg.Rho(1)), p, q)
    shown = log(oracle.renyi_power(p, q, order)) / (order - 1) / order
    # The orders tried are a grid; between two of them D_a / a changes by less than a tenth.
    assert found >= 0.9 * shown - 1e-6


@given(st.fractions(0, 1), st.fractions(0, 1))
@settings(max_examples=60, deadline=None)
def test_rho_is_never_more_than_some_order_allows(p, q):
    """D_a / a is at most D_infinity / a, and at most the limit at order 1, so that a maximum over a fine grid bounds it."""
    if not 0 < q < p < 1 or float(q) == float(p) or float(p) == 1.0 or float(q) == 0.0:
        return
    found = least(Claim.read(loss=pg.Rho(1)), p, q)
    a, b = float(p), float(q)
    orders = np.concatenate([1 + np.geomspace(1e-4, 1, 400), np.geomspace(2, 500, 400)])
    power = np.logaddexp(
        orders * log(a) + (1 - orders) * log(b), orders * np.log1p(-a) + (1 - orders) * np.log1p(-b)
    )
    # Between two orders of the grid the maximum can be missed by some millionths.
    assert found <= float((power / (orders - 1) / orders).max()) * (1 + 1e-4) + 1e-9


def test_a_gaussian_never_shows_more_than_its_rho():
    """Events of the continuous Gaussian of rho = shift^2 / 2, at their true probabilities."""
    from scipy.stats import norm

    claim = Claim.read(loss=pg.Rho("1/2"))
    cuts = np.linspace(-6, 6, 97)
    shown = claim.least(norm.sf(cuts - 1), norm.sf(cuts))
    assert shown.max() <= 0.5
    assert shown.max() > 0.3


def test_claims_are_refuted_only_above_the_number_claimed():
    claim = Claim.read(epsilon="0.1")
    assert not claim.refuted_by(0.1)
    assert claim.refuted_by(0.1 + 1e-12)
    assert Claim.read(loss=pg.Rho(2)).quantity == "rho"
    assert exp(least(Claim.read(epsilon=1), 1.0, 0.5)) == pytest.approx(2)


@pytest.mark.parametrize("given", [{}, {"epsilon": 1, "loss": pg.Rho(1)}, {"loss": 1.0}])
def test_a_claim_is_one_loss(given):
    with pytest.raises(pg.InputError) as error:
        Claim.read(**given)
    assert error.value.code == "audit.claim"
