"""From zCDP to (epsilon, delta) and back, on bare fractions, always rounded towards more privacy.

Owns the conversion.

Notes
-----
For every order a > 1 a mechanism of zCDP loss rho is (epsilon, delta)-private with
``epsilon = rho a + ln(1 - 1/a) - ln(delta a) / (a - 1)`` (Canonne, Kamath and Steinke 2020, Prop. 12; the proof
is in ``docs/explanation/proofs/composition.md``). ``dp_accounting`` finds a good order in floating point; the formula is then
evaluated at that order in fractions with every logarithm rounded up, so that a poor order costs tightness and
never soundness.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import ceil, exp2, floor, log, sqrt

__all__ = ["epsilon_up", "good_order", "ln_up", "rho_down"]

_DIGITS = 60
_COVER = Fraction(1, 10**58)
_SIGNIFICANT = 12


def epsilon_up(rho: Fraction, delta: Fraction) -> Fraction:
    """Bound from above the epsilon that a zCDP loss keeps at this delta, to 12 significant digits.

    Examples
    --------
    >>> float(epsilon_up(Fraction(1, 2), Fraction(1, 10**6)))
    5.22153446959

    Notes
    -----
    For rho <= 2 delta**2 Pinsker's inequality bounds the total variation by delta, and any epsilon does.
    """
    least = Fraction(1, 10**_SIGNIFICANT)
    if rho <= 2 * delta * delta:
        return least
    order = good_order(rho, delta)
    return _significant(max(rho * order + _offset_up(order, delta), least), up=True)


def rho_down(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Give the largest rho that is certified to keep (epsilon, delta), rounded down to 12 digits.

    Examples
    --------
    >>> float(rho_down(Fraction(1), Fraction(1, 10**6)))
    0.024355970351

    Notes
    -----
    At a fixed order the formula is linear in rho, so that the best rho for that order is a division. Order and
    rho are improved in turn: the best order for a rho lowers epsilon, which leaves room for a larger rho. Each
    rho on the way is certified; the last is kept.
    """
    best = 2 * delta * delta
    level = float(epsilon)
    guess = Fraction(min(level, level**2 / (1 - 4 * log(float(delta)))))
    for _ in range(40):
        order = good_order(max(guess, best), delta)
        rho = (epsilon - _offset_up(order, delta)) / order
        if rho <= best * (1 + Fraction(1, 10**14)):
            break
        guess = best = rho
    return _significant(best, up=False)


def _significant(value: Fraction, *, up: bool) -> Fraction:
    """Round a positive number to 12 significant decimal digits, in one direction."""
    exponent = len(str(floor(value))) if value >= 1 else 1 - len(str(floor(1 / value)))
    unit = Fraction(10) ** (exponent - _SIGNIFICANT)
    return (ceil(value / unit) if up else floor(value / unit)) * unit


def ln_up(value: Fraction) -> Fraction:
    """Bound a logarithm from above.

    Notes
    -----
    The quotient is rounded up to 60 digits, which only raises the logarithm; ``Decimal.ln`` is correctly
    rounded to 60 digits by its specification, and the added 1e-58 of the result covers that rounding a
    hundred times over. A result of 0 arises only for a quotient of exactly 1 and needs no cover.
    """
    context = Context(prec=_DIGITS, rounding=ROUND_CEILING)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    result = Fraction(context.ln(quotient))
    return result + abs(result) * _COVER


def _offset_up(order: Fraction, delta: Fraction) -> Fraction:
    """Bound ``ln(1 - 1/order) - ln(delta order) / (order - 1)`` from above."""
    return ln_up(1 - 1 / order) + ln_up(1 / (delta * order)) / (order - 1)


def good_order(rho: Fraction, delta: Fraction) -> Fraction:
    """Find a rational order of at least 1.02 at which the conversion is nearly tightest.

    Any order above 1 would be sound. Orders below 1.02, which ``dp_accounting`` shuns as well, would help only
    an epsilon in the hundreds.
    """
    from dp_accounting.rdp import compute_epsilon

    level, share = min(max(float(rho), 1e-300), 1e15), float(delta)
    above, width = max(sqrt(-log(share) / level), 0.02), 4.0
    for _ in range(4):
        orders = [1 + max(above * exp2(width * k / 16), 0.02) for k in range(-16, 17)]
        _, order = compute_epsilon(orders, [level * order for order in orders], share)
        above, width = float(order) - 1, width / 8
    closest = Fraction(above)
    return 1 + (closest.limit_denominator(10**6) if above < 10**6 else Fraction(floor(closest)))
