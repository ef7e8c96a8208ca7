"""Variances, probabilities and quantiles against literal sums."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.distributions import moments
from policygraph.errors import InputError
from tests.oracles import noise as oracle
from tests.oracles import probabilities

scales = st.fractions(min_value=Fraction(1, 50), max_value=5, max_denominator=60)


def laplace_law(scale):
    return oracle.normalised(oracle.laplace_weights(scale, int(scale * 150) + 5))


def gaussian_law(square):
    return oracle.normalised(oracle.gaussian_weights(square, int(18 * float(square) ** 0.5) + 5))


def variance(law):
    return float(sum(p * k * k for k, p in law.items()))


def smallest(law, confidence):
    t, inside = 0, law[0]
    while inside < confidence:
        t += 1
        inside += law[t] + law[-t]
    return t


@given(scales)
@settings(max_examples=15, deadline=None)
def test_variances_are_those_of_the_definition(scale):
    assert math.isclose(moments.laplace_variance(scale), variance(laplace_law(scale)), rel_tol=1e-11)
    assert math.isclose(moments.gaussian_variance(scale), variance(gaussian_law(scale)), rel_tol=1e-11)


def test_variances_of_extreme_scales():
    assert moments.laplace_variance(Fraction(1, 1000)) == 0
    assert math.isclose(moments.laplace_variance(Fraction(1, 701)), 2 * math.exp(-701), rel_tol=1e-9)
    assert math.isclose(moments.laplace_variance(10**12), 2e24)
    assert moments.gaussian_variance(Fraction(1, 10**6)) == 0
    assert moments.gaussian_variance(10**20) == 1e20


@given(scales, st.integers(-30, 30))
@settings(max_examples=15, deadline=None)
def test_probabilities_are_those_of_the_definition(scale, k):
    for law, value, bounds in (
        (laplace_law(scale), moments.laplace_pmf, probabilities.laplace_pmf_bounds),
        (gaussian_law(scale), moments.gaussian_pmf, probabilities.gaussian_pmf_bounds),
    ):
        exact = law.get(k, Fraction(0))
        assert math.isclose(value(k, scale), float(exact), rel_tol=1e-11, abs_tol=1e-60)
        low, high = bounds(k, scale)
        # The literal sum leaves out less than 10**-60.
        assert low - Fraction(1, 10**60) <= exact <= high + Fraction(1, 10**60)
        assert high - low < Fraction(1, 2**100)


@given(scales, st.fractions(min_value=0, max_value=Fraction(999999, 10**6)))
@settings(max_examples=25, deadline=None)
def test_quantiles_are_the_smallest(scale, confidence):
    assert moments.laplace_quantile(scale, confidence) == smallest(laplace_law(scale), confidence)
    assert moments.gaussian_quantile(scale, confidence) == smallest(gaussian_law(scale), confidence)


def test_quantiles_at_the_very_probability():
    """A confidence a hair below or above P(|X| <= 3) is told apart."""
    law = laplace_law(Fraction(2))
    inside = sum(law[k] for k in range(-3, 4))
    hair = Fraction(1, 10**40)
    assert moments.laplace_quantile(2, inside - hair) == 3
    assert moments.laplace_quantile(2, inside + hair) == 4
    law = gaussian_law(Fraction(2))
    inside = sum(law[k] for k in range(-3, 4))
    assert moments.gaussian_quantile(2, inside - hair) == 3
    assert moments.gaussian_quantile(2, inside + hair) == 4


def test_quantiles_of_large_scales():
    assert math.isclose(moments.laplace_quantile(10**12, "0.95"), -math.log(0.05) * 1e12, rel_tol=1e-9)
    assert math.isclose(moments.gaussian_quantile(10**14, "0.95"), 1.959963984540054e7, rel_tol=1e-6)
    # Just across the border between exact sums and the integral bound the answers agree to one step.
    below, above = moments.gaussian_quantile(2**20, "0.99"), moments.gaussian_quantile(2**20 + 1, "0.99")
    assert below <= above <= below + 1


@pytest.mark.parametrize("bad", [-0.1, 1, 2, float("nan")])
def test_bad_confidences_are_refused(bad):
    with pytest.raises(InputError):
        moments.laplace_quantile(1, bad)
    with pytest.raises(InputError):
        moments.gaussian_quantile(1, bad)


@pytest.mark.parametrize("bad", [0, -2, float("inf")])
def test_bad_scales_are_refused(bad):
    for function in (moments.laplace_variance, moments.gaussian_variance):
        with pytest.raises(InputError):
            function(bad)
