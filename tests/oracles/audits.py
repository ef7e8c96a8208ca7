"""Literal definitions under the audits, in rationals; shares no code with the library."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import comb


def at_least(hits: int, runs: int, p: Fraction) -> Fraction:
    """Probability that an event of probability p happens ``hits`` times or more in ``runs`` independent runs."""
    return sum((comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(hits, runs + 1)), Fraction(0))


def renyi_power(p: Fraction, q: Fraction, order: int) -> Fraction:
    """exp((a - 1) D_a) of Bernoulli(p) from Bernoulli(q) for an integer order a."""
    return p**order / q ** (order - 1) + (1 - p) ** order / (1 - q) ** (order - 1)


def lowest_bit(value: float) -> int | None:
    """Largest e such that the value is a multiple of 2**e; None for zero."""
    exact = Fraction(value)
    if exact == 0:
        return None
    e = -(exact.denominator.bit_length() - 1)
    top = abs(exact.numerator)
    while top % 2 == 0:
        top //= 2
        e += 1
    return e


def laplace_log_ratio(a: Sequence[int], b: Sequence[int], scale: Fraction, reach: int) -> Fraction:
    """Largest log-ratio of the probabilities of one output, by listing the outputs near both answers.

    P(o | a) is proportional to exp(-sum |o_i - a_i| / scale) with the same constant for every a.
    """
    low, high = min(*a, *b) - reach, max(*a, *b) + reach
    return max(
        sum(
            (Fraction(abs(o - y) - abs(o - x)) / scale for o, x, y in zip(out, a, b, strict=True)),
            Fraction(0),
        )
        for out in product(range(low, high + 1), repeat=len(a))
    )


def largest_ratio(laws: Sequence[dict[object, Fraction]]) -> Fraction | None:
    """Largest P(E | one) / P(E | other) over all events E of two of the laws, both ways; None when infinite."""
    worst = Fraction(0)
    for i, p in enumerate(laws):
        for j, q in enumerate(laws):
            if i == j:
                continue
            outputs = sorted(set(p) | set(q), key=repr)
            for mask in range(1, 1 << len(outputs)):
                event = [o for at, o in enumerate(outputs) if mask >> at & 1]
                here = sum((p.get(o, Fraction(0)) for o in event), Fraction(0))
                there = sum((q.get(o, Fraction(0)) for o in event), Fraction(0))
                if here > 0 and there == 0:
                    return None
                if there > 0:
                    worst = max(worst, here / there)
    return worst
