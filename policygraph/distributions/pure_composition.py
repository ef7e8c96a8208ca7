"""The exact loss of many pure mechanisms of few sizes: owns :func:`delta_up`, :func:`delta_up_of` and :func:`most_charges`.

Every bound is an integer that was rounded towards safety; no float occurs. The theorem and its proof are in ``docs/explanation/proofs/many-charges.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil, comb, prod

from policygraph.distributions.enclosure import exp_neg

MOST = 20_000
"""Most charges that are counted; a limit that would allow more allows so many."""
OUTCOMES = 2_000
"""Most outcomes of the larger mechanisms; each of them takes a sum over the small ones."""
GUARD = 192
"""Bits beyond those that the smallest term needs."""


def delta_up(each: Fraction, times: int, epsilon: Fraction) -> Fraction:
    """Bound from above the delta at which ``times`` mechanisms of pure loss ``each`` keep an epsilon.

    Parameters
    ----------
    each
        The loss of one mechanism.
    times
        How many mechanisms; which ones may depend on earlier answers.
    epsilon
        The loss that all together are to keep.

    Examples
    --------
    >>> float(delta_up(Fraction(1, 10), 100, Fraction(4))) < 1e-3, delta_up(Fraction(1, 10), 40, Fraction(4))
    (True, Fraction(0, 1))

    Notes
    -----
    With r = exp(-each), delta is the sum over i of C(times, i) r^i (1 - exp(epsilon - (times - 2 i) each)) / (1 + r)^times, over those i for
    which the exponent is negative (Kairouz, Oh and Viswanath 2015).
    """
    terms = _terms(each, times, epsilon)
    if terms == 0:
        return Fraction(0)
    bits = GUARD + ceil(3 * times * each / 2)
    low, high = exp_neg(each, bits)
    one = 1 << bits
    # exp(epsilon - (times - 2 i) each) for the last i, and then by factors r^2 for those before it: rounded down.
    shortfall, _ = exp_neg((times - 2 * (terms - 1)) * each - epsilon, bits)
    square = low * low >> bits
    lows = [shortfall]
    for _ in range(terms - 1):
        lows.append(lows[-1] * square >> bits)
    total, ways, power = 0, 1, one
    for i, missing in enumerate(reversed(lows)):
        total += ways * (-(-power * (one - missing) >> bits))
        ways = ways * (times - i) // (i + 1)
        power = -(-power * high >> bits)
    whole = one
    for bit in bin(times)[2:]:
        whole = whole * whole >> bits
        if bit == "1":
            whole = whole * (one + low) >> bits
    return Fraction(total, whole)


def _terms(each: Fraction, times: int, epsilon: Fraction) -> int:
    """How many i from 0 on have (times - 2 i) each > epsilon."""
    room = (times - epsilon / each) / 2
    return max(0, min(ceil(room), times + 1))


Sizes = tuple[tuple[Fraction, int], ...]
"""Losses of pure mechanisms, and how many there are of each."""


def outcomes(sizes: Sizes) -> int:
    """In how many ways the answers of some mechanisms can fall, counted by size."""
    return prod(times + 1 for _, times in sizes)


def delta_up_of(each: Fraction, times: int, larger: Sizes, epsilon: Fraction) -> Fraction:
    """Bound from above the delta at which ``times`` mechanisms of pure loss ``each`` and some larger ones keep an epsilon together.

    Examples
    --------
    >>> one, two = Fraction(1, 10), Fraction(1, 5)
    >>> delta_up_of(one, 30, ((one, 10),), Fraction(2)) >= delta_up(one, 40, Fraction(2))
    True
    >>> delta_up_of(one, 10, ((two, 5),), Fraction(2))
    Fraction(0, 1)

    Notes
    -----
    Given which of the larger mechanisms answer against the truth, their privacy loss is a number, and what is left for the small ones is epsilon
    without it. So delta is the mean of :func:`delta_up` over these outcomes.
    """
    return sum(
        (
            chance * delta_up(each, times, epsilon - lost)
            for chance, lost in _falls(larger)
            if lost + times * each > epsilon
        ),
        Fraction(0),
    )


def _falls(larger: Sizes) -> Iterator[tuple[Fraction, Fraction]]:
    """Every outcome of some mechanisms: a bound of its probability from above, and its privacy loss."""
    chances: list[list[tuple[Fraction, Fraction]]] = []
    for size, times in larger:
        bits = GUARD + ceil(2 * times * size)
        low, high = exp_neg(size, bits)
        one = 1 << bits
        whole = Fraction(one + low, one) ** times
        chances.append(
            [
                (comb(times, i) * Fraction(high, one) ** i / whole, (times - 2 * i) * size)
                for i in range(times + 1)
            ]
        )
    for fallen in product(*chances):
        yield (
            prod((chance for chance, _ in fallen), start=Fraction(1)),
            sum((lost for _, lost in fallen), Fraction(0)),
        )


@lru_cache(maxsize=64)
def most_charges(each: Fraction, epsilon: Fraction, delta: Fraction, larger: Sizes = ()) -> int:
    """The most mechanisms of pure loss ``each`` that are certified to keep (epsilon, delta) together, beside some larger ones, up to :data:`MOST`.

    Returns
    -------
    int
        -1 if the larger ones alone do not keep it.

    Examples
    --------
    >>> most_charges(Fraction(1, 10), Fraction(2), Fraction(1, 10**6))
    24
    >>> most_charges(Fraction(1, 100), Fraction(1), Fraction(1, 10**6), ((Fraction(1, 10), 2),))
    426
    """

    def kept(times: int) -> bool:
        return delta_up_of(each, times, larger, epsilon) <= delta

    room = epsilon - sum(size * times for size, times in larger)
    if room < 0 and not kept(0):
        return -1
    good = min(max(int(room / each), 0), MOST)
    step = 1
    while good + step <= MOST and kept(good + step):
        good, step = good + step, 2 * step
    while step:
        if good + step <= MOST and kept(good + step):
            good += step
        step //= 2
    return good
