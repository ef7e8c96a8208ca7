"""Literal oracles for losses: the printed formulas, in 100 digits, and exact privacy curves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from math import exp, log, sqrt

from scipy.special import log_ndtr


def decimal(value: Fraction) -> Decimal:
    with localcontext(prec=100):
        return Decimal(value.numerator) / Decimal(value.denominator)


def zcdp_delta(rho: Fraction, epsilon: Fraction, order: Fraction) -> Decimal:
    """The delta of Canonne, Kamath and Steinke, Prop. 12, at one order, as it is printed."""
    with localcontext(prec=100):
        a, r, e = decimal(order), decimal(rho), decimal(epsilon)
        return ((a - 1) * (a * r - e)).exp() / (a - 1) * ((1 - 1 / a).ln() * a).exp()


def zcdp_epsilon_by_grid(rho: float, delta: float) -> float:
    """The least epsilon of that proposition over a dense grid of orders from 1.02 on, in floating point."""
    orders = [1 + 0.02 * 10 ** (k / 400) for k in range(4700)]
    return min(rho * a + log((a - 1) / a) + log(1 / (delta * a)) / (a - 1) for a in orders)


def gaussian_delta(rho: float, epsilon: float) -> float:
    """The exact delta of the Gaussian mechanism whose zCDP loss is rho (sensitivity 1)."""
    mu = sqrt(2 * rho)
    first = log_ndtr(mu / 2 - epsilon / mu)
    second = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return exp(first) - exp(second)


def delta_of_randomised_responses(losses: Sequence[Fraction], epsilon: Fraction) -> Decimal:
    """The delta at which randomised responses of some losses keep an epsilon: the sum of p - e^epsilon q over all answers where it is positive."""
    with localcontext(prec=100):
        total, grown = Decimal(0), decimal(epsilon).exp()
        for answers in itertools.product((False, True), repeat=len(losses)):
            p = q = Decimal(1)
            for loss, turned in zip(losses, answers, strict=True):
                odds = decimal(loss).exp()
                p *= 1 / (1 + odds) if turned else odds / (1 + odds)
                q *= odds / (1 + odds) if turned else 1 / (1 + odds)
            total += max(p - grown * q, Decimal(0))
        return total
