"""How large a sum of independent discrete noises is. Owns :func:`sum_within`, :func:`combination_within` and :func:`linear_within`.

For reports only: floats, rounded towards the larger error; no privacy depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.distributions.moments import (
    computable,
    gaussian_quantile,
    laplace_quantile,
    laplace_variance,
)

Floats = npt.NDArray[np.float64]

SHARE = Fraction(95, 100)
FINE = 64
"""Laplace scales and Gaussian deviations up to this are summed value by value; larger ones on a coarser grid."""
LONGEST = 1 << 20
BEYOND = 0.05
SQRT2 = math.sqrt(2)
COUPLED, DISTANCE = 3.0, 0.6
"""From this deviation on a discrete Gaussian variable is within this distance of a normal one that is coupled to it."""
SMOOTH, PERIOD = 80.0, 40.0
"""Of the inversion of a characteristic function: a deviation over that of the added normal variable, and the length of the circle in deviations."""
NOTHING = 1e-13


def sum_within(weights: Sequence[int], parameter: Fraction, *, laplace: bool) -> int:
    """Find t such that sum_j weights[j] * Z_j is within t with probability 0.95 at least, Z_j independent.

    Parameters
    ----------
    weights
        Whole numbers; their signs do not matter.
    parameter
        Scale of the discrete Laplace distribution, or variance parameter of the discrete Gaussian distribution.
    laplace
        Which of the two.

    Examples
    --------
    >>> sum_within([2], Fraction(1), laplace=True), sum_within([1, 1, 1, 1], Fraction(1), laplace=True)
    (6, 5)

    Notes
    -----
    The distribution of the sum is the inverse transform of the product of the characteristic functions. A Laplace variable is a
    difference of two geometric ones, each the floor of an exponential one, so that on a grid of step h it moves by less
    than h: |sum| <= h |sum on the grid| + (h - 1) sum |w|. A wide Gaussian sum is as good as normal.
    """
    sizes = sorted(abs(int(w)) for w in weights if w)
    if not sizes:
        return 0
    computable(parameter, "scale" if laplace else "sigma_squared")
    if len(sizes) == 1:
        one = laplace_quantile(parameter, SHARE) if laplace else gaussian_quantile(parameter, SHARE)
        return sizes[0] * int(one)
    if not laplace and parameter > FINE**2:
        return math.ceil(1.96 * math.sqrt(float(parameter) * sum(w * w for w in sizes))) + sum(sizes)
    step = max(1, math.ceil(parameter / FINE)) if laplace else 1
    scale = float(parameter) / step
    spread = math.sqrt((2 * scale**2 if laplace else scale) * sum(w * w for w in sizes))
    length = 1 << math.ceil(
        math.log2(12 * spread + 40 * sizes[-1] * (scale if laplace else math.sqrt(scale)) + 64)
    )
    if length > LONGEST:
        bound: float = linear_within(sum(w * w for w in sizes), float(parameter), laplace=laplace)
        return math.ceil(bound)
    angles = 2 * np.pi * np.arange(length // 2 + 1) / length
    transform = np.ones_like(angles)
    for size, count in zip(*np.unique(sizes, return_counts=True), strict=True):
        transform *= _characteristic(angles * float(size), scale, laplace=laplace) ** int(count)
    chances = np.maximum(np.fft.irfft(transform, length)[: length // 2], 0.0)
    inside = chances[0] + 2 * np.concatenate([[0.0], np.cumsum(chances[1:])])
    # A quantile that float errors could miss is taken one step larger.
    at = int(np.searchsorted(inside, float(SHARE) + 1e-9))
    return step * at + (step - 1) * sum(sizes)


def linear_within(square: float | Floats, parameter: float, *, laplace: bool, chance: float = BEYOND) -> Any:
    """Bound what sum_i c_i Z_i stays within but for a probability, knowing only sum_i c_i^2; Z_i independent discrete noises.

    Parameters
    ----------
    square
        sum_i c_i^2, one number or an array of them.
    parameter
        Scale of the discrete Laplace distribution, or variance parameter of the discrete Gaussian distribution.
    laplace
        Which of the two.
    chance
        The probability of more, 0.05 by default.

    Notes
    -----
    Discrete Laplace noise plus an independent variable V of density ~ sinh((1 - |x|) / scale) on [-1, 1] is continuous Laplace noise. Sums of that are symmetric and
    log-concave, and of all such variables of one variance a truncated exponential has the largest tail (Fradelizi and Guedon 2004): :func:`_log_concave`. The sum of
    the c_i V_i is sub-Gaussian with sum c_i^2 / 6. Narrow noise, which is hardly ever more than 0, is bounded by Chebyshev's inequality. Discrete Gaussian noise is within 0.6 of a normal variable that is coupled to it, from a deviation of 3 on, and
    sub-Gaussian in any case (``docs/explanation/proofs/stated-errors.md``).

    Examples
    --------
    >>> round(linear_within(1.0, 100.0, laplace=True), 1), round(linear_within(4.0, 100.0, laplace=False), 1)
    (311.9, 44.0)
    """
    length = np.sqrt(np.asarray(square, dtype=np.float64))
    share = chance / 25
    if laplace:
        each = SQRT2 * parameter * _log_concave(chance - share) + math.sqrt(math.log(2 / share) / 3)
        if 0 < parameter < 1:
            each = min(each, math.sqrt(laplace_variance(Fraction(parameter)) / chance))
    else:
        from scipy.special import ndtri

        sigma = math.sqrt(parameter)
        each = sigma * math.sqrt(2 * math.log(2 / chance))
        if sigma >= COUPLED:
            near = -float(ndtri((chance - share) / 2)) * sigma + DISTANCE * math.sqrt(2 * math.log(2 / share))
            each = min(each, near)
    made = length * (each if parameter else 0.0) * (1 + 1e-12)
    return made if made.ndim else float(made)


@cache
def _log_concave(chance: float) -> float:
    """Deviations that a symmetric variable with a log-concave density exceeds with at most this probability.

    Notes
    -----
    The largest tails have densities exp(-|x|) on [-M, M], over all M; the whole Laplace distribution is the limit.
    """
    ends = np.concatenate([np.linspace(0.01, 60.0, 6000), [700.0]])
    rest = np.exp(-ends)
    mass = 1 - rest
    roots = np.sqrt((2 - (ends * ends + 2 * ends + 2) * rest) / mass)
    low, high = 0.0, 2 + math.log(1 / chance)
    while high - low > 1e-9:
        middle = (low + high) / 2
        beyond = np.maximum(np.exp(-middle * roots) - rest, 0.0) / mass
        low, high = (middle, high) if beyond.max() > chance else (low, middle)
    # The grid of ends misses the largest tail by less than this.
    return high + 1e-5


@dataclass(frozen=True)
class Terms:
    """Independent draws of one noise distribution that enter a sum: their coefficients, and how often each occurs."""

    sizes: Floats
    counts: Floats
    parameter: float
    laplace: bool

    @cached_property
    def square(self) -> float:
        """Sum of the squared coefficients."""
        return float(self.counts @ self.sizes**2)

    @property
    def variance(self) -> float:
        """A bound on the variance of the sum, that of continuous noise."""
        return self.square * (2 * self.parameter**2 if self.laplace else self.parameter)


def combination_within(terms: Sequence[Terms]) -> float:
    """Find r such that a sum of independent discrete noises with any coefficients is within r with probability 0.95 at least.

    Parameters
    ----------
    terms
        The noises by distribution, with their coefficients.

    Notes
    -----
    The characteristic function is the product of those of the terms. A normal variable G of deviation g is added, which makes it vanish beyond a finite frequency; on a
    circle of length L its Fourier series then gives P(|X + G| <= s) up to P(|X + G| > L - s), and P(|X| <= s + 4 g) is at least this less P(|G| > 4 g). With g the
    eightieth part of a deviation the result is at most 0.06 deviations larger than it needs to be. What is cut off is bounded, and added.

    Examples
    --------
    >>> one = Terms(np.array([1.0]), np.array([1.0]), 10.0, True)
    >>> 29.9 < combination_within([one]) < 31.0
    True
    """
    deviation = math.sqrt(sum(each.variance for each in terms))
    if deviation == 0:
        return 0.0
    smooth = deviation / SMOOTH
    length = PERIOD * deviation
    count = math.ceil(6.6 / smooth * length / (2 * math.pi))
    angles = 2 * np.pi * np.arange(1, count + 1) / length
    values = np.exp(-((smooth * angles) ** 2) / 2)
    for each in terms:
        order = np.argsort(-each.counts * each.sizes**2)
        for size, many in zip(each.sizes[order].tolist(), each.counts[order].tolist(), strict=True):
            if not len(values):
                break
            values = values * _characteristic(angles * size, each.parameter, laplace=each.laplace) ** many
            # Every factor is at most 1, so that what is next to nothing stays so: the frequencies that are left out are counted below.
            kept = np.abs(values) > NOTHING
            if 2 * np.count_nonzero(kept) < len(kept):
                angles, values = angles[kept], values[kept]
    missed = 2 * NOTHING * (1 + math.log(count)) + 1e-8 + 1e-9
    missed += 2 * float(_far(length / 2, deviation, smooth)) + 6.4e-5

    def inside(s: float) -> float:
        return 2 * s / length + 4 / length * float(np.sum(values * np.sin(angles * s) / angles)) - missed

    # Between lattice points the smoothed probability only rises, so that the least s is found by bisection.
    low, high = 0.0, length / 2
    wanted = 1 - BEYOND
    for _ in range(48):
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) >= wanted else (middle, high)
    return high + 4 * smooth


def _far(reach: float, deviation: float, smooth: float) -> float:
    """A bound on P(|X + G| > reach): exponential moments of a Laplace sum are at most those of one Laplace variable of its variance."""
    rate = 1.25 / deviation
    return 2 * math.exp(-rate * reach + (rate * smooth) ** 2 / 2) / (1 - (rate * deviation) ** 2 / 2)


def _characteristic(angles: Floats, parameter: float, *, laplace: bool) -> Floats:
    """Characteristic function of one discrete noise."""
    if not parameter:
        return np.ones_like(angles)
    if laplace:
        q = math.exp(-1 / parameter)
        made: Floats = (1 - q) ** 2 / ((1 - q) ** 2 + 4 * q * np.sin(angles / 2) ** 2)
        return made
    turned = np.remainder(angles + np.pi, 2 * np.pi) - np.pi
    total, normal = np.zeros_like(turned), 0.0
    if parameter >= 1:
        # Poisson summation: by copies of the continuous one, of which the nearest matter.
        for copy in (-2, -1, 0, 1, 2):
            total = total + np.exp(-parameter * (turned + 2 * np.pi * copy) ** 2 / 2)
            normal += math.exp(-parameter * (2 * math.pi * copy) ** 2 / 2)
    else:
        for value in range(25):
            weight = math.exp(-(value**2) / (2 * parameter)) * (2 if value else 1)
            total, normal = total + weight * np.cos(turned * value), normal + weight
    summed: Floats = total / normal
    return summed


def gathered(sizes: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Coefficients up to their sign, those that differ in the tenth digit taken together."""
    held = np.abs(np.asarray(sizes, dtype=np.float64))
    kept = held > 0
    held, many = held[kept], np.broadcast_to(counts, kept.shape)[kept]
    if not len(held):
        return np.zeros(0), np.zeros(0)
    # To a relative 2^-33: far below what is added for safety.
    mantissa, exponent = np.frexp(held)
    rounded = np.ldexp(np.ceil(mantissa * 2.0**33), exponent - 33)
    found, where = np.unique(rounded, return_inverse=True)
    return found, np.bincount(where, weights=many).astype(np.float64)
