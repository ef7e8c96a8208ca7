"""Probabilities of discrete noise, enclosed in rationals."""

from __future__ import annotations

from fractions import Fraction

from policygraph.distributions.enclosure import exp_neg, gaussian_weights
from policygraph.distributions.integers import DiscreteGaussian


def laplace_pmf_bounds(k: int, scale: Fraction | int, bits: int = 128) -> tuple[Fraction, Fraction]:
    """Enclose P(X = k) = (1 - q) / (1 + q) * q**abs(k), q = exp(-1/scale), in rationals."""
    rate = 1 / Fraction(scale)
    one = 1 << bits
    q_low, q_high = exp_neg(rate, bits)
    low, high = exp_neg(rate * abs(k), bits)
    return Fraction((one - q_high) * low, (one + q_high) * one), Fraction(
        (one - q_low) * high, (one + q_low) * one
    )


def gaussian_pmf_bounds(k: int, sigma_squared: Fraction | int, bits: int = 128) -> tuple[Fraction, Fraction]:
    """Enclose P(X = k) of the discrete Gaussian distribution in rationals; the work grows with sigma."""
    rate = 1 / (2 * Fraction(sigma_squared))
    weights = gaussian_weights(rate, DiscreteGaussian(rate).reach(bits, bits), bits)
    total_low = 2 * (sum(weights.lows) + weights.tail_low) - weights.highs[0]
    total_high = 2 * (sum(weights.highs) + weights.tail_high) - weights.lows[0]
    low, high = exp_neg(rate * k * k, bits)
    return Fraction(low, total_high), Fraction(high, total_low)
