"""Exact inversion on integer thresholds: owns :class:`Table` and the laws it can hold.

A law over integers cuts [0, 1) at the values of its
distribution function.  A uniform real number U, of which only the first 64 bits are drawn at once, falls
into one piece; in the rare case that 64 bits do not tell which, more bits of the same U are drawn until they do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from math import isqrt

import numpy as np
import numpy.typing as npt

from policygraph.curator.noise.enclosure import Weights, exp_neg, gaussian_weights, geometric_weights
from policygraph.curator.noise.rng import Rng, fetch
from policygraph.errors import RefusedError

__all__ = ["CHUNK", "Digit", "Gaussian", "Geometric", "Law", "Table", "thresholds"]

Ints = npt.NDArray[np.int64]

CHUNK = 1 << 16
"""Draws per step: large enough to hide Python, small enough to stay in the processor's cache."""

_GUIDE_BITS = 16
_SHIFT = np.uint64(64 - _GUIDE_BITS)
_UNDECIDED = np.iinfo(np.int16).min
_REFINE_GUARD = 32
_MOST_WEIGHTS = 1 << 24


class Law(ABC):
    """A probability law on integers, by weights that need not add up to one.

    The right side gives 0, 1, 2, ... their weights; the left side, of ``two_sided`` laws only, gives
    -1, -2, -3, ... theirs.  ``endless`` laws have no largest value.
    """

    two_sided: bool
    endless: bool

    @abstractmethod
    def reach(self, window: int, bits: int) -> int:
        """Return a number of weights after which about 2**-window of the mass is left."""

    @abstractmethod
    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the left and the right weights: about ``count`` of them, and the sum of the others."""


_NOTHING = Weights([], [], 0, 0)


@dataclass(frozen=True)
class Geometric(Law):
    """k >= 0 weighs exp(-rate * k), and -1 - k weighs exp(-rate * k - lean).

    With lean = rate this is the discrete Laplace law of scale 1 / rate.
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
class Digit(Law):
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
        return _NOTHING, geometric_weights(self.rate, count, bits, endless=False)


@dataclass(frozen=True)
class Gaussian(Law):
    """k weighs exp(-rate * k**2): the discrete Gaussian law with sigma**2 = 1 / (2 rate), or its half k >= 0."""

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
        return right.without_first() if self.two_sided else _NOTHING, right


def thresholds(law: Law, window: int, bits: int) -> tuple[int, list[int], list[int]]:
    """Enclose the distribution function of a law where it is not within 2**-window of 0 or 1.

    Parameters
    ----------
    law
        The law.
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
    >>> first, lows, highs = thresholds(Digit(Fraction(1), base=3), 64, 64)
    >>> first, [round(x / 2**64, 6) for x in lows]
    (1, [0.665241, 0.909969])
    """
    count = law.reach(window, bits)
    left, right = law.weigh(count, bits)
    while (max(left.tail_high, right.tail_high) << window) > sum(left.lows) + sum(right.lows):
        count += count // 2
        if count > _MOST_WEIGHTS:
            raise RefusedError(
                f"{law}: more than {_MOST_WEIGHTS} values carry weight. Split its scale into digits first.",
                code="noise.threshold",
                law=law,
            )
        left, right = law.weigh(count, bits)
    below_low, from_low = _sums(left.lows, right.lows, left.tail_low, right.tail_low)
    below_high, from_high = _sums(left.highs, right.highs, left.tail_high, right.tail_high)
    lows = [(a << bits) // (a + b) for a, b in zip(below_low, from_high)]
    highs = [-(-(a << bits) // (a + b)) for a, b in zip(below_high, from_low)]
    # P(X < 0) = 0 and P(X < base) = 1 are no thresholds.
    kept = slice(0 if law.two_sided else 1, None if law.endless else -1)
    return -len(left.lows) + (kept.start or 0), lows[kept], highs[kept]


def _sums(left: list[int], right: list[int], tail_left: int, tail_right: int) -> tuple[list[int], list[int]]:
    """Return the sums of the weights below each value, and those from it on."""
    row = [*reversed(left), *right]
    return list(accumulate(row, initial=tail_left)), list(accumulate(reversed(row), initial=tail_right))[::-1]


class Table:
    """A law as 64-bit thresholds with a guide, ready to turn words into draws.

    Parameters
    ----------
    law
        The law to draw from.
    limit
        Largest absolute value to hand out; beyond it a draw is refused instead of wrapped.

    Notes
    -----
    ``words[i]`` is an integer t with t <= 2**64 * P(X < first + i) <= t + 1.  Let u be the first 64 bits of
    U.  If u < t then U < P; if u > t then U >= P; only u == t leaves it open, and then ``refine`` draws on.
    On an endless side one more threshold stands for all the unlisted ones, which share the word 0 or 2**64 - 1.
    So P(X = k) and the difference of its two words, over 2**64, differ by at most 2**-64 before any
    refinement, and the draws have exactly the law after it.

    Examples
    --------
    >>> from policygraph.curator.noise.rng import SeededRng
    >>> table = Table(Geometric(Fraction(1, 2), Fraction(1, 2)), limit=2**62)
    >>> table.draw(6, SeededRng(1)).dtype
    dtype('int64')
    """

    def __init__(self, law: Law, limit: int) -> None:
        self.law = law
        self.limit = limit
        first, words = _decided_words(law)
        if law.endless:
            words.append((1 << 64) - 1)
            if law.two_sided:
                first -= 1
                words.insert(0, 0)
        self.first = first
        self.words = np.array(words, np.uint64)
        self.words.flags.writeable = False
        starts = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << _SHIFT
        below = np.searchsorted(self.words, starts, "left")
        through = np.searchsorted(self.words, starts | np.uint64((1 << int(_SHIFT)) - 1), "right")
        value = below + (first - 1)
        plain = (below == through) & (np.abs(value) < -_UNDECIDED)
        self._guide = np.where(plain, value, _UNDECIDED).astype(np.int16)

    def draw(self, n: int, source: Rng) -> Ints:
        """Return ``n`` independent draws.

        Raises
        ------
        RefusedError
            If a draw exceeds the limit; its probability is bounded where the limit is set.
        """
        u = fetch(source, n)
        short = self._guide.take((u >> _SHIFT).view(np.int64))
        values = short.astype(np.int64)
        rest = np.flatnonzero(short == _UNDECIDED)
        if rest.size:
            left = u[rest]
            place = np.searchsorted(self.words, left, "left")
            values[rest] = place + (self.first - 1)
            tie = self.words[np.minimum(place, self.words.size - 1)] == left
            for i in rest[tie]:
                values[i] = self.refine(int(u[i]), source)
        return values

    def refine(self, u: int, source: Rng) -> int:
        """Decide the value for a U that begins with the 64 bits ``u``, drawing as many more as it takes."""
        bits = 64
        while True:
            u = u << 64 | int(fetch(source, 1)[0])
            bits += 64
            if self.law.endless and (u == (1 << bits) - 1 or (self.law.two_sided and u == 0)):
                continue
            first, lows, highs = thresholds(self.law, bits, bits + _REFINE_GUARD)
            surely = bisect_right(highs, u << _REFINE_GUARD)
            possibly = bisect_left(lows, (u + 1) << _REFINE_GUARD)
            if surely == possibly:
                value = first - 1 + surely
                break
        if abs(value) > self.limit:
            raise RefusedError(
                f"A draw of {value.bit_length()} bits does not fit the integers that are used here "
                f"(at most {self.limit}). Nothing was released; draw again or use a smaller scale.",
                code="noise.overflow",
                limit=self.limit,
            )
        return value


def _decided_words(law: Law) -> tuple[int, list[int]]:
    """Return first and the words t with t <= 2**64 P(X < first + i) <= t + 1, at whatever precision that takes."""
    extra = 32
    while extra <= 4096:
        first, lows, highs = thresholds(law, 64, 64 + extra)
        words = [low >> extra for low in lows]
        if all(high <= (word + 1) << extra for word, high in zip(words, highs)):
            return first, words
        extra *= 2
    raise RefusedError(
        f"{law}: a threshold could not be told from a 64-bit number at 4,096 further bits. Use another scale.",
        code="noise.threshold",
        law=law,
    )
