"""What the noise amounts to: owns variances, probabilities and quantiles of the two distributions.

Variances and probabilities are floats for
reports and tests; no privacy depends on them.  The ``_bounds`` functions enclose probabilities in rationals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from policygraph.distributions.enclosure import exp_neg, gaussian_weights
from policygraph.distributions.integers import DiscreteGaussian
from policygraph.errors import InputError, RefusedError
from policygraph.exact import Exact, as_fraction, brief, show

_DECIMALS = 120
_LARGEST = 10**_DECIMALS
"""The largest scale or variance of which anything is computed: sums and squares of it are still floats."""
_SUMMED = 1 << 20
"""sigma**2 up to which Gaussian quantiles are computed by exact sums."""


def laplace_variance(scale: Exact) -> float:
    """Return the variance of the discrete Laplace distribution, to the precision of a float.

    Notes
    -----
    With q = exp(-1/scale) it is 2 q / (1 - q)**2 = 1 / (2 sinh(1 / (2 scale))**2), which lies between
    2 scale**2 - 1/6 and 2 scale**2.

    Examples
    --------
    >>> round(laplace_variance(1), 6), laplace_variance(1000)
    (1.841347, 1999999.8333333...)
    """
    half = 1 / (2 * computable(scale, "scale"))
    if half > 350:
        return 2 * _exp(-2 * half)
    square = math.sinh(half) ** 2
    return 1 / (2 * square) if square else math.inf


def gaussian_variance(sigma_squared: Exact) -> float:
    """Return the variance of the discrete Gaussian distribution, to the precision of a float.

    Notes
    -----
    By Poisson summation it falls short of sigma**2 by a share of less than 16 pi**2 sigma**2
    exp(-2 pi**2 sigma**2); from sigma**2 = 4 on that is below 10**-30.

    Examples
    --------
    >>> round(gaussian_variance(Fraction(1, 4)), 6), gaussian_variance(9)
    (0.215013, 9.0)
    """
    square = computable(sigma_squared, "sigma_squared")
    if square >= 4:
        return float(square)
    rate = 1 / (2 * square)
    weights = [_exp(-rate * h * h) for h in range(1, 80)]
    total = math.fsum([1.0, *(2 * w for w in weights)])
    return math.fsum(2 * h * h * w for h, w in enumerate(weights, 1)) / total


def laplace_pmf(k: int, scale: Exact) -> float:
    """Return P(X = k) of the discrete Laplace distribution as a float.

    Examples
    --------
    >>> round(laplace_pmf(0, 1), 6), round(laplace_pmf(-2, 1), 6)
    (0.462117, 0.062541)
    """
    rate = 1 / computable(scale, "scale")
    zero = math.tanh(float(rate) / 2) if rate < 100 else 1.0
    return zero * _exp(-rate * abs(k))


def gaussian_pmf(k: int, sigma_squared: Exact) -> float:
    """Return P(X = k) of the discrete Gaussian distribution as a float.

    Examples
    --------
    >>> round(gaussian_pmf(0, 1), 6), round(gaussian_pmf(2, 1), 6)
    (0.398942, 0.053991)
    """
    square = computable(sigma_squared, "sigma_squared")
    rate = 1 / (2 * square)
    if square >= 4:
        total = math.sqrt(2 * math.pi * square)
    else:
        total = math.fsum([1.0, *(2 * _exp(-rate * h * h) for h in range(1, 80))])
    return _exp(-rate * k * k) / total


def laplace_quantile(scale: Exact, confidence: Exact) -> int:
    """Return the smallest t with P(|X| <= t) >= confidence under the discrete Laplace distribution.

    Parameters
    ----------
    scale
        A positive rational.
    confidence
        A number in [0, 1).

    Notes
    -----
    P(|X| > t) = 2 q**(t+1) / (1 + q).  A float guess is corrected by rational enclosures at rising precision;
    the two sides are never equal except at 0, since q is transcendental.

    Examples
    --------
    >>> laplace_quantile(10, "0.95"), laplace_quantile(1, 0)
    (30, 0)
    """
    value = computable(scale, "scale")
    wanted = 1 - _share(confidence)

    def enough(t: int) -> bool:
        bits = 64
        while True:
            q_low, q_high = exp_neg(1 / value, bits)
            low, high = exp_neg((t + 1) / value, bits)
            if 2 * high <= wanted * ((1 << bits) + q_low):
                return True
            if 2 * low > wanted * ((1 << bits) + q_high):
                return False
            bits *= 2

    guess = float(value) * (math.log(2) - _log(wanted) - math.log1p(_exp(-1 / value))) - 1
    return _smallest(enough, guess)


def gaussian_quantile(sigma_squared: Exact, confidence: Exact) -> int:
    """Return a t with P(|X| <= t) >= confidence under the discrete Gaussian distribution.

    Notes
    -----
    The smallest such t for sigma up to 1024, by enclosed sums.  Above, the smallest t with
    erfc(t / (sigma sqrt 2)) <= 1 - confidence, in floats: an integral over falling values exceeds the sum, and the
    normaliser is at least sigma sqrt(2 pi), so the true quantile is this t or t - 1.

    Examples
    --------
    >>> gaussian_quantile(100, "0.95"), gaussian_quantile(10**12, "0.95")
    (20, 1959964)
    """
    square = computable(sigma_squared, "sigma_squared")
    wanted = 1 - _share(confidence)
    if square > _SUMMED:
        sigma, beyond = math.sqrt(square), float(wanted)

        def enough(t: int) -> bool:
            return math.erfc(t / (sigma * math.sqrt(2))) <= beyond

        return _smallest(enough, sigma * math.sqrt(2 * max(0.0, -_log(wanted))) / 2)
    bits = 64 + max(0, wanted.denominator.bit_length())
    while True:
        rate = 1 / (2 * square)
        weights = gaussian_weights(rate, DiscreteGaussian(rate).reach(bits, bits), bits)
        total_low = 2 * (sum(weights.lows) + weights.tail_low) - weights.lows[0]
        total_high = 2 * (sum(weights.highs) + weights.tail_high) - weights.highs[0]
        beyond_low, beyond_high = 2 * weights.tail_low, 2 * weights.tail_high
        decided = beyond_high <= wanted * total_low
        t = len(weights.lows) - 1
        while decided and t > 0:
            beyond_low += 2 * weights.lows[t]
            beyond_high += 2 * weights.highs[t]
            if beyond_high > wanted * total_low:
                decided = beyond_low > wanted * total_high
                break
            t -= 1
        if decided:
            return t
        bits *= 2


def _smallest(enough: Callable[[int], bool], guess: float) -> int:
    """Return the smallest t >= 0 that is enough, for a rising predicate, searching around a guess."""
    top, step = max(0, int(guess)), 1
    while not enough(top):
        top, step = top + step, 2 * step
    low, step = top, 1
    while low > 0 and enough(low):
        top, low, step = low, max(0, low - step), 2 * step
    if enough(low):
        return low
    while top - low > 1:
        middle = (top + low) // 2
        low, top = (low, middle) if enough(middle) else (middle, top)
    return top


def computable(value: Exact, name: str) -> Fraction:
    """The scale or variance of noise as a fraction, or a refusal of one that is not positive or beyond the range of floats.

    Examples
    --------
    >>> computable("1/3", "scale")
    Fraction(1, 3)
    """
    number = as_fraction(value, name)
    if number <= 0:
        raise InputError(f"{name}={show(number)}: expected a number > 0.", code="noise.scale", value=number)
    if number > _LARGEST:
        raise RefusedError(
            f"{name}={brief(int(number))}: expected at most 10**{_DECIMALS}: nobody could use, or draw, noise of that size. Allow a larger loss.",
            code="noise.scale-too-large",
            value=number,
        )
    return number


def _share(confidence: Exact) -> Fraction:
    number = as_fraction(confidence, "confidence")
    if not 0 <= number < 1:
        raise InputError(
            f"confidence={show(number)}: expected a number in [0, 1). No bound holds with certainty.",
            code="noise.confidence",
            confidence=number,
        )
    return number


def _exp(x: Fraction) -> float:
    return math.exp(x) if x > -750 else 0.0


def _log(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator)
