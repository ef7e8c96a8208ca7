"""Exact inversion on integer thresholds. Owns :class:`InversionTable`.

A distribution over integers cuts [0, 1) at the values of its cumulative distribution function. A uniform real number U, of which only the
first 64 bits are drawn at once, falls into one piece; in the rare case that 64 bits do not tell which, more bits of the same U are drawn until
they do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
import numpy.typing as npt

from policygraph.curator.noise.rng import Rng, fetch
from policygraph.distributions.integers import Distribution, thresholds
from policygraph.errors import RefusedError

Ints = npt.NDArray[np.int64]

CHUNK = 1 << 16
"""Draws per step: large enough to hide Python, small enough to stay in the processor's cache."""

_GUIDE_BITS = 16
_SHIFT = np.uint64(64 - _GUIDE_BITS)
_UNDECIDED = np.iinfo(np.int16).min
_REFINE_GUARD = 32


class InversionTable:
    """A distribution as 64-bit thresholds with a guide, ready to turn words into draws.

    Parameters
    ----------
    distribution
        The distribution to draw from.
    limit
        Largest absolute value to hand out; beyond it a draw is refused instead of wrapped.

    Notes
    -----
    ``words[i]`` is an integer t with t <= 2**64 * P(X < first + i) <= t + 1.  Let u be the first 64 bits of
    U.  If u < t then U < P; if u > t then U >= P; only u == t leaves it open, and then ``refine`` draws on.
    On an endless side one more threshold stands for all the unlisted ones, which share the word 0 or 2**64 - 1.
    So P(X = k) and the difference of its two words, over 2**64, differ by at most 2**-64 before any
    refinement, and the draws have exactly the distribution after it.

    Examples
    --------
    >>> from policygraph.curator.noise.rng import SeededRng
    >>> from policygraph.distributions.integers import TwoSidedGeometric
    >>> from fractions import Fraction
    >>> table = InversionTable(TwoSidedGeometric(Fraction(1, 2), Fraction(1, 2)), limit=2**62)
    >>> table.draw(6, SeededRng(1)).dtype
    dtype('int64')
    """

    def __init__(self, distribution: Distribution, limit: int) -> None:
        self.distribution = distribution
        self.limit = limit
        first, words = _decided_words(distribution)
        if distribution.endless:
            words.append((1 << 64) - 1)
            if distribution.two_sided:
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

    def draw(self, n: int, rng: Rng) -> Ints:
        """Return ``n`` independent draws.

        Raises
        ------
        RefusedError
            If a draw exceeds the limit; its probability is bounded where the limit is set.
        """
        u = fetch(rng, n)
        short = self._guide.take((u >> _SHIFT).view(np.int64))
        values = short.astype(np.int64)
        rest = np.flatnonzero(short == _UNDECIDED)
        if rest.size:
            left = u[rest]
            place = np.searchsorted(self.words, left, "left")
            values[rest] = place + (self.first - 1)
            tie = self.words[np.minimum(place, self.words.size - 1)] == left
            for i in rest[tie]:
                values[i] = self.refine(int(u[i]), rng)
        return values

    def refine(self, u: int, rng: Rng) -> int:
        """Decide the value for a U that begins with the 64 bits ``u``, drawing as many more as it takes."""
        bits = 64
        while True:
            u = u << 64 | int(fetch(rng, 1)[0])
            bits += 64
            if self.distribution.endless and (
                u == (1 << bits) - 1 or (self.distribution.two_sided and u == 0)
            ):
                continue
            first, lows, highs = thresholds(self.distribution, bits, bits + _REFINE_GUARD)
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


def _decided_words(distribution: Distribution) -> tuple[int, list[int]]:
    """Return first and the words t with t <= 2**64 P(X < first + i) <= t + 1, at whatever precision that takes."""
    extra = 32
    while extra <= 4096:
        first, lows, highs = thresholds(distribution, 64, 64 + extra)
        words = [low >> extra for low in lows]
        if all(high <= (word + 1) << extra for word, high in zip(words, highs)):
            return first, words
        extra *= 2
    raise RefusedError(
        f"{distribution}: a threshold could not be told from a 64-bit number at 4,096 further bits. Use another scale.",
        code="noise.threshold",
        distribution=distribution,
    )
