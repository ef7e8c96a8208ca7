"""Probability distributions on integers, given by weights that integers enclose. Owns :class:`Distribution`, :class:`Tail` and :func:`thresholds`.

Pure mathematics: nothing here draws. ``curator.noise`` turns the thresholds into samplers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import exp, isqrt, log, log2

from policygraph.distributions.enclosure import Weights, exp_neg, gaussian_weights, geometric_weights
from policygraph.errors import InputError, RefusedError

LISTED = 4096
"""Blocks of at most so many cells have all their weights listed."""
MOST_SIGMA_SQUARED = 1 << 28
"""Largest variance parameter of a Gaussian tail, whose weights are listed one by one."""
_MOST_WEIGHTS = 1 << 24
NOTHING = Weights([], [], 0, 0)


class Distribution(ABC):
    """A probability distribution on integers, by weights that need not add up to one.

    The right side gives 0, 1, 2, ... their weights; the left side, of ``two_sided`` ones only, gives
    -1, -2, -3, ... theirs.  ``endless`` ones have no largest value.
    """

    two_sided: bool
    endless: bool

    @abstractmethod
    def reach(self, window: int, bits: int) -> int:
        """Return a number of weights after which about 2**-window of the mass is left."""

    @abstractmethod
    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the left and the right weights: about ``count`` of them, and the sum of the others."""


@dataclass(frozen=True)
class TwoSidedGeometric(Distribution):
    """k >= 0 weighs exp(-rate * k), and -1 - k weighs exp(-rate * k - lean).

    With lean = rate this is the discrete Laplace distribution of scale 1 / rate.
    """

    rate: Fraction
    lean: Fraction
    two_sided: bool = field(default=True, init=False)
    endless: bool = field(default=True, init=False)

    def reach(self, window: int, bits: int) -> int:
        """Return a number of weights after which about 2**-window of the mass is left."""
        # ln 2 < 7/10
        return int(window * 7 / (10 * self.rate)) + 2

    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the left and the right weights."""
        right = geometric_weights(self.rate, count, bits, endless=True)
        return right.times(*exp_neg(self.lean, bits), bits), right


@dataclass(frozen=True)
class TruncatedGeometric(Distribution):
    """h in 0, ..., base - 1 weighs exp(-rate * h): a digit of a geometric variable."""

    rate: Fraction
    base: int
    two_sided: bool = field(default=False, init=False)
    endless: bool = field(default=False, init=False)

    def reach(self, window: int, bits: int) -> int:
        """Return the number of weights."""
        return self.base

    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the weights; the left side is empty."""
        return NOTHING, geometric_weights(self.rate, count, bits, endless=False)


@dataclass(frozen=True)
class DiscreteGaussian(Distribution):
    """k weighs exp(-rate * k**2): the discrete Gaussian distribution with sigma**2 = 1 / (2 rate), or its half k >= 0."""

    rate: Fraction
    two_sided: bool = True
    endless: bool = field(default=True, init=False)

    def reach(self, window: int, bits: int) -> int:
        """Return a number of weights after which about 2**-window of the mass is left."""
        # The two ends of the tail's enclosure differ, so it must vanish at the working precision.
        return isqrt(int((bits + 8) * 7 / (10 * self.rate))) + 2

    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the left and the right weights."""
        right = gaussian_weights(self.rate, count, bits)
        return right.without_first() if self.two_sided else NOTHING, right


def thresholds(distribution: Distribution, window: int, bits: int) -> tuple[int, list[int], list[int]]:
    """Enclose the cumulative distribution function where it is not within 2**-window of 0 or 1.

    Parameters
    ----------
    distribution
        The distribution.
    window
        Thresholds that are not listed are at most 2**-window or at least 1 - 2**-window.
    bits
        The scale of the enclosures.

    Returns
    -------
    first, lows, highs
        lows[i] <= 2**bits * P(X < first + i) <= highs[i], both lists rising.

    Notes
    -----
    With A the mass below a value and B the mass from it on, P = A / (A + B) rises in A and falls in B, so
    A_low / (A_low + B_high) and A_high / (A_high + B_low), rounded outwards, enclose it.

    Examples
    --------
    >>> first, lows, highs = thresholds(TruncatedGeometric(Fraction(1), base=3), 64, 64)
    >>> first, [round(x / 2**64, 6) for x in lows]
    (1, [0.665241, 0.909969])
    """
    count = distribution.reach(window, bits)
    left, right = distribution.weigh(count, bits)
    while (max(left.tail_high, right.tail_high) << window) > sum(left.lows) + sum(right.lows):
        count += count // 2
        if count > _MOST_WEIGHTS:
            raise RefusedError(
                f"{distribution}: more than {_MOST_WEIGHTS} values carry weight. Split its scale into digits first.",
                code="noise.threshold",
                distribution=distribution,
            )
        left, right = distribution.weigh(count, bits)
    below_low, from_low = _sums(left.lows, right.lows, left.tail_low, right.tail_low)
    below_high, from_high = _sums(left.highs, right.highs, left.tail_high, right.tail_high)
    lows = [(a << bits) // (a + b) for a, b in zip(below_low, from_high)]
    highs = [-(-(a << bits) // (a + b)) for a, b in zip(below_high, from_low)]
    # P(X < 0) = 0 and P(X < base) = 1 are no thresholds.
    kept = slice(0 if distribution.two_sided else 1, None if distribution.endless else -1)
    return -len(left.lows) + (kept.start or 0), lows[kept], highs[kept]


def _sums(left: list[int], right: list[int], tail_left: int, tail_right: int) -> tuple[list[int], list[int]]:
    """Return the sums of the weights below each value, and those from it on."""
    row = [*reversed(left), *right]
    return list(accumulate(row, initial=tail_left)), list(accumulate(reversed(row), initial=tail_right))[::-1]


@dataclass(frozen=True)
class Tail(ABC):
    """The part of a discrete noise distribution from a threshold on.

    Attributes
    ----------
    parameter
        Scale, or variance parameter, of the noise.
    start
        The threshold, an integer >= 1.
    """

    parameter: Fraction
    start: int

    def __post_init__(self) -> None:
        if self.start < 1:
            raise InputError(
                f"threshold={self.start}: expected an integer >= 1. Below, most empty cells would pass.",
                code="noise.tail",
                value=self.start,
            )

    @abstractmethod
    def odds(self, bits: int) -> tuple[int, int]:
        """Enclose 2**bits * p / (1 - p), with p = P(Z >= start), to within a few units."""

    @cached_property
    def log2_chance(self) -> float:
        """Binary logarithm of p, for reports and for cutting work into pieces."""
        bits = 64
        while True:
            low, _ = self.odds(bits)
            if low >> 40:
                ratio = log2(low >> max(0, low.bit_length() - 53)) + max(0, low.bit_length() - 53) - bits
                return ratio - (log2(1 + 2.0**ratio) if ratio > -60 else 0.0)
            bits *= 2


@dataclass(frozen=True)
class LaplaceTail(Tail):
    """The tail of the discrete Laplace distribution of a scale.

    Notes
    -----
    With q = exp(-1/scale), p = q**start / (1 + q), so p / (1 - p) = q**start / (1 + q - q**start); and Z - start given Z >= start is geometric.

    Examples
    --------
    >>> tail = LaplaceTail(Fraction(1), 3)
    >>> round(2**tail.log2_chance, 6)
    0.036397
    """

    def odds(self, bits: int) -> tuple[int, int]:
        """Enclose the odds of passing."""
        far_low, far_high = exp_neg(self.start / self.parameter, bits + 4)
        near_low, near_high = exp_neg(1 / self.parameter, bits + 4)
        one = 1 << bits + 4
        low = (far_low << bits) // (one + near_high - far_low)
        return low, -(-(far_high << bits) // (one + near_low - far_high))


@dataclass(frozen=True)
class GaussianTail(Tail):
    """The tail of the discrete Gaussian distribution of a variance parameter.

    Examples
    --------
    >>> round(2 ** GaussianTail(Fraction(4), 3).log2_chance, 6)
    0.103246
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parameter > MOST_SIGMA_SQUARED:
            raise RefusedError(
                f"variance {float(self.parameter):.4g}: expected at most {MOST_SIGMA_SQUARED:,} for noise above a threshold. Use a "
                "larger loss, or Laplace noise.",
                code="noise.tail-too-large",
                value=self.parameter,
            )

    def odds(self, bits: int) -> tuple[int, int]:
        """Enclose the odds of passing."""
        rate = 1 / (2 * self.parameter)
        # Every weight before the threshold adds a unit of rounding to the sum.
        work = bits + 8 + 2 * self.start.bit_length()
        count = max(DiscreteGaussian(rate).reach(work, work), self.start + 1)
        weights = gaussian_weights(rate, count, work)
        far_low = sum(weights.lows[self.start :]) + weights.tail_low
        far_high = sum(weights.highs[self.start :]) + weights.tail_high
        # Below the threshold: 0, the values 1 to start - 1, and all negative ones.
        near_low = 2 * sum(weights.lows[1 : self.start]) + weights.lows[0] + far_low
        near_high = 2 * sum(weights.highs[1 : self.start]) + weights.highs[0] + far_high
        return (far_low << bits) // near_high, -(-(far_high << bits) // near_low)


@dataclass(frozen=True)
class PassingCount(Distribution):
    """How many of so many noises pass: k weighs binomial(cells, k) * odds**k.

    Attributes
    ----------
    tail
        What one noise must pass.
    cells
        How many noises there are.
    """

    tail: Tail
    cells: int
    two_sided: bool = field(default=False, init=False)

    @property
    def endless(self) -> bool:  # type: ignore[override]
        """Whether more values are possible than can be listed."""
        return self.cells > LISTED

    def reach(self, window: int, bits: int) -> int:
        """Return a number of weights after which about 2**-window of the mass is left."""
        return 32 + window // 2 if self.endless else self.cells + 1

    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the weights; the left side is empty."""
        fine = bits + self.cells.bit_length() + 4
        odds_low, odds_high = self.tail.odds(fine)
        low = high = 1 << bits
        lows, highs = [], []
        for k in range(count):
            lows.append(low)
            highs.append(high)
            left = max(0, self.cells - k)
            low = low * left * odds_low // (k + 1) >> fine
            high = -(-high * left * odds_high // (k + 1) >> fine)
        if not self.endless:
            return NOTHING, Weights(lows, highs, 0, 0)
        # Ratios of successive weights fall, so that a geometric series bounds what is left.
        fall = Fraction(max(0, self.cells - count) * odds_high, (count + 1) << fine)
        rest = (
            -(-high * fall.denominator // (fall.denominator - fall.numerator)) if fall < 1 else 1 << 2 * bits
        )
        return NOTHING, Weights(lows, highs, low, rest)


@dataclass(frozen=True)
class GaussianBeyond(Distribution):
    """g >= 0 weighs exp(-rate * (g**2 + 2 * start * g)): the Gaussian distribution beyond a threshold."""

    rate: Fraction
    start: int
    two_sided: bool = field(default=False, init=False)
    endless: bool = field(default=True, init=False)

    def reach(self, window: int, bits: int) -> int:
        """Return a number of weights after which about 2**-window of the mass is left."""
        return DiscreteGaussian(self.rate).reach(window, bits)

    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the weights; the left side is empty."""
        return NOTHING, gaussian_weights(self.rate, count, bits, self.start)


def expected_passing(tail: Tail, cells: int) -> float:
    """Expected number of cells that pass, as a float for reports.

    Examples
    --------
    >>> round(expected_passing(LaplaceTail(Fraction(1), 3), 100), 4)
    3.6397
    """
    power = tail.log2_chance * log(2) + log(cells)
    return exp(power) if power < 700 else float("inf")
