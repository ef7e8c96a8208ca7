"""What the noise of one number is, and which noise can be drawn. Owns :class:`Noise` and the limits of the samplers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from policygraph.distributions.moments import (
    gaussian_quantile,
    gaussian_variance,
    laplace_quantile,
    laplace_variance,
)
from policygraph.errors import InputError, RefusedError
from policygraph.exact import Exact, as_fraction, brief, show

LAPLACE, GAUSSIAN, NONE = "discrete Laplace", "discrete Gaussian", "none"
"""The distributions that are added to numbers, as records name them."""

MAX_SCALE = 1 << 40
"""Largest scale: P(|X| >= 2**62) < 2 exp(-2**22) < 2**-6000000; a draw that does not fit is refused, never wrapped."""

MAX_SIGMA_SQUARED = 1 << 80
"""Largest sigma**2: P(|X| >= 2**62) < exp(-2**42); a draw that does not fit is refused, never wrapped."""

NOISE_BITS = 62
"""Every draw is below 2**62 in absolute value; a sum with a value of at most 2**62 cannot wrap."""

CONFIDENCE = Fraction(95, 100)


@dataclass(frozen=True)
class Noise:
    """The distribution of one independent draw of noise.

    Attributes
    ----------
    distribution
        ``discrete Laplace``, ``discrete Gaussian`` or ``none``; a mechanism with a runner of its own may name another one.
    parameter
        Scale, or variance parameter, in units of the measured integers; exact.
    variance
        Variance of a draw.
    within_95
        Smallest t such that a draw is within t with probability 0.95.
    """

    distribution: str
    parameter: Fraction
    variance: float
    within_95: int


def laplace_noise(scale: Fraction) -> Noise:
    """Discrete Laplace noise of a scale; none for 0.

    Examples
    --------
    >>> laplace_noise(Fraction(2)).within_95, laplace_noise(Fraction(0)).distribution
    (6, 'none')
    """
    if scale == 0:
        return Noise(NONE, Fraction(0), 0.0, 0)
    return Noise(LAPLACE, scale, laplace_variance(scale), laplace_quantile(scale, CONFIDENCE))


def gaussian_noise(sigma_squared: Fraction) -> Noise:
    """Discrete Gaussian noise of a variance parameter; none for 0.

    Examples
    --------
    >>> gaussian_noise(Fraction(1, 2)).distribution
    'discrete Gaussian'
    """
    if sigma_squared == 0:
        return Noise(NONE, Fraction(0), 0.0, 0)
    return Noise(
        GAUSSIAN,
        sigma_squared,
        gaussian_variance(sigma_squared),
        gaussian_quantile(sigma_squared, CONFIDENCE),
    )


def check_scale(scale: Exact) -> Fraction:
    """Return the scale as a fraction, or refuse it.

    Examples
    --------
    >>> check_scale("1/3")
    Fraction(1, 3)
    """
    return _drawable(scale, "scale", "scale", MAX_SCALE)


def check_sigma_squared(sigma_squared: Exact) -> Fraction:
    """Return the variance parameter as a fraction, or refuse it.

    Examples
    --------
    >>> check_sigma_squared("7/2")
    Fraction(7, 2)
    """
    return _drawable(sigma_squared, "sigma_squared", "variance", MAX_SIGMA_SQUARED)


def _drawable(given: Exact, name: str, what: str, most: int) -> Fraction:
    value = as_fraction(given, name)
    if value <= 0:
        raise InputError(
            f"{name}={show(value)}: expected a number > 0. Noise of {what} 0 would hide nothing.",
            code="noise.scale",
            **{name: value},
        )
    if value > most:
        raise RefusedError(
            f"{name}={show(value) if value < 10**15 else brief(int(value))}: expected at most 2**{most.bit_length() - 1}, so that no draw can leave 64-bit integers. "
            "Use a coarser unit, or allow a larger loss.",
            code="noise.scale-too-large",
            **{name: value, "bound": most},
        )
    return value
