"""The noise laws and inversion, literally: slow, in decimals of many digits, sharing no code with the product."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from policygraph.curator.noise.rng import Rng

DIGITS = 220
"""Decimal digits of every value below; an error of 10**-200 is far below any bit the tests look at."""

Below = Callable[[int], Fraction]


def exp_neg(x: Fraction) -> Fraction:
    """exp(-x), correct to DIGITS digits (the decimal module rounds exp correctly)."""
    if x > 700:
        return Fraction(0)  # exp(-700) < 2**-1000
    with localcontext() as context:
        context.prec = DIGITS
        return _cut(Fraction((-Decimal(x.numerator) / Decimal(x.denominator)).exp()))


def laplace_weights(scale: Fraction, reach: int) -> dict[int, Fraction]:
    """exp(-|k| / scale) for |k| <= reach."""
    return {k: exp_neg(abs(k) / scale) for k in range(-reach, reach + 1)}


def gaussian_weights(sigma_squared: Fraction, reach: int) -> dict[int, Fraction]:
    """exp(-k**2 / (2 sigma**2)) for |k| <= reach."""
    return {k: exp_neg(k * k / (2 * sigma_squared)) for k in range(-reach, reach + 1)}


def normalised(weights: dict[int, Fraction]) -> dict[int, Fraction]:
    """Weights over their sum: the caller takes so many that what is missing does not show."""
    total = sum(weights.values())
    return {k: _cut(w / total) for k, w in weights.items()}


def _cut(x: Fraction) -> Fraction:
    """Cut to 700 bits, which is as good as DIGITS digits and keeps the fractions small."""
    return Fraction((x.numerator << 700) // x.denominator, 1 << 700)


def below(probabilities: dict[int, Fraction]) -> Below:
    """The distribution function P(X < k) by adding up."""
    sums: dict[int, Fraction] = {}
    total = Fraction(0)
    for k in sorted(probabilities):
        sums[k] = total
        total += probabilities[k]
    first, last = min(sums), max(sums)

    def value(k: int) -> Fraction:
        return sums[k] if first <= k <= last else Fraction(int(k > last))

    return value


def invert(words: Iterable[int], distribution: Below, first: int, last: int) -> int | None:
    """The k with P(X < k) <= U < P(X < k + 1) for every U that begins with these words, or None if there are more."""
    u, scale = 0, 1
    for word in words:
        u, scale = (u << 64) + word, scale << 64
    low, high = Fraction(u, scale), Fraction(u + 1, scale)
    at = max(k for k in range(first, last + 1) if distribution(k) <= low)
    return at if high <= distribution(at + 1) else None


class ScriptedSource(Rng):
    """Hands out given words, and fails when it is asked for one more."""

    private = False

    def __init__(self, words: Iterable[int]) -> None:
        self.script = list(words)
        self.used = 0

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        part = self.script[self.used : self.used + n]
        if len(part) < n:
            raise LookupError("the script is over")
        self.used += n
        return np.array(part, np.uint64)

    def describe(self) -> str:
        return "NOT PRIVATE: scripted words"
