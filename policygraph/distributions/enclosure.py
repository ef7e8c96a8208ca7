"""Integer enclosures of exponentials: owns the interval arithmetic under the tables.

A real number x >= 0 is held at ``bits`` bits as a pair of integers (low, high) with
low <= x * 2**bits <= high.  Every operation rounds the low end down and the high end up, so that the
enclosure is a theorem about the integers computed and not an estimate.  No float occurs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Weights:
    """Enclosures of the weights w(0), w(1), ..., w(n-1) and of the sum of all later ones.

    ``lows[h] <= w(h) * 2**bits <= highs[h]``, and likewise ``tail_low`` and ``tail_high``.
    """

    lows: list[int]
    highs: list[int]
    tail_low: int
    tail_high: int

    def times(self, low: int, high: int, bits: int) -> Weights:
        """Multiply every weight by a factor enclosed by (low, high)."""
        return Weights(
            [w * low >> bits for w in self.lows],
            [-(-w * high >> bits) for w in self.highs],
            self.tail_low * low >> bits,
            -(-self.tail_high * high >> bits),
        )

    def without_first(self) -> Weights:
        """Drop w(0), so that w(1) becomes the first weight."""
        return Weights(self.lows[1:], self.highs[1:], self.tail_low, self.tail_high)


def exp_neg(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose exp(-x) for a rational x >= 0.

    Parameters
    ----------
    x
        Any rational >= 0.
    bits
        The scale: the pair encloses exp(-x) * 2**bits.

    Returns
    -------
    low, high
        With high - low <= 2.

    Notes
    -----
    x is halved j times to y <= 2**-8.  The Taylor series of exp(-y) alternates with falling terms, so the
    sum lies between any two successive partial sums.  j squarings undo the halvings; each at most doubles the width
    and adds 2 units, which the j guard bits absorb.

    Examples
    --------
    >>> low, high = exp_neg(Fraction(1), 64)
    >>> low / 2**64, high - low <= 2
    (0.36787944117144233, True)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x >= bits:
        # exp(-x) < 2**-x <= 2**-bits
        return 0, 1
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 9)
    work = bits + halvings + bits.bit_length() + 5
    top, bottom = x.numerator, x.denominator << halvings
    term_low = term_high = low = high = 1 << work
    n = 0
    while term_high > 1:
        n += 1
        term_low = term_low * top // (bottom * n)
        term_high = -(-term_high * top // (bottom * n))
        low, high = (low - term_high, high - term_low) if n % 2 else (low + term_low, high + term_high)
    # The terms left out alternate and fall, so they add up to less than the last one, which is <= 1 unit.
    low, high = low - 1, min(high + 1, 1 << work)
    for _ in range(halvings):
        low = low * low >> work
        high = -(-high * high >> work)
    return low >> (work - bits), min(-(-high >> (work - bits)), 1 << bits)


def geometric_weights(rate: Fraction, count: int, bits: int, *, endless: bool) -> Weights:
    """Enclose exp(-rate * h) for h < count and, if ``endless``, the sum over h >= count.

    Notes
    -----
    The tail of a geometric series is w(count) / (1 - exp(-rate)).  The caller keeps bits so large
    that exp(-rate) is told apart from 1.

    Examples
    --------
    >>> w = geometric_weights(Fraction(1), 2, 64, endless=True)
    >>> [round(x / 2**64, 6) for x in (*w.lows, w.tail_low)]
    [1.0, 0.367879, 0.214097]
    """
    one = 1 << bits
    ratio_low, ratio_high = exp_neg(rate, bits)
    low = high = one
    lows, highs = [], []
    for _ in range(count):
        lows.append(low)
        highs.append(high)
        low = low * ratio_low >> bits
        high = -(-high * ratio_high >> bits)
    if not endless:
        return Weights(lows, highs, 0, 0)
    return Weights(lows, highs, (low << bits) // (one - ratio_low), -(-(high << bits) // (one - ratio_high)))


def gaussian_weights(rate: Fraction, count: int, bits: int, start: int = 0) -> Weights:
    """Enclose exp(-rate * (h**2 + 2 * start * h)) for h < count and the sum over h >= count.

    Notes
    -----
    w(h+1) / w(h) = exp(-rate * (2h+1 + 2 start)), and this ratio itself falls by the factor exp(-2 rate) at each step.  So
    w(h + j) <= w(h) * r**j with r = w(h+1) / w(h), and the tail lies between w(count) and
    w(count) / (1 - r) at h = count.

    Examples
    --------
    >>> w = gaussian_weights(Fraction(1, 2), 3, 64)
    >>> [round(x / 2**64, 6) for x in (*w.lows, w.tail_low, w.tail_high)]
    [1.0, 0.606531, 0.135335, 0.011109, 0.011455]
    """
    one = 1 << bits
    ratio_low, ratio_high = exp_neg(rate * (1 + 2 * start), bits)
    fall_low, fall_high = exp_neg(2 * rate, bits)
    low = high = one
    lows, highs = [], []
    for _ in range(count):
        lows.append(low)
        highs.append(high)
        low = low * ratio_low >> bits
        high = -(-high * ratio_high >> bits)
        ratio_low = ratio_low * fall_low >> bits
        ratio_high = -(-ratio_high * fall_high >> bits)
    return Weights(lows, highs, low, -(-(high << bits) // (one - ratio_high)))
