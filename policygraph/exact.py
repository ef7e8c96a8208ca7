"""Exact numbers: what privacy depends on is an int or a Fraction, and roundings go towards safety.

Imported by every room.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from math import gcd, isqrt, lcm
from numbers import Rational

from policygraph.errors import InputError, shown

__all__ = ["Exact", "as_float", "as_fraction", "brief", "common_denominator", "show", "sqrt_down", "sqrt_up"]

Exact = int | Fraction | str | Decimal | float
"""What users may write for an exact number; a float is read by its shortest decimal form."""

MOST_DIGITS = 4000
"""Digits of a number that is given as text, and its largest power of ten: more would be built for minutes before it is refused."""
_MOST_BITS = 13_288
"""No integer with fewer bits has more digits than that."""

_WHOLE = r"\d(?:_?\d)*"
_NUMBER = re.compile(
    rf"[+-]?(?:(?P<top>{_WHOLE})/(?P<bottom>{_WHOLE})|(?:{_WHOLE}(?:\.(?:{_WHOLE})?)?|\.{_WHOLE})(?:[eE](?P<power>[+-]?{_WHOLE}))?)",
    re.ASCII,
)


def as_fraction(value: Exact, name: str = "value") -> Fraction:
    """Read a number exactly as it is written.

    A float is taken at its shortest decimal spelling, which is what its author typed: ``0.1`` becomes 1/10
    and not the binary number next to it.

    Examples
    --------
    >>> as_fraction(0.1), as_fraction("1/3"), as_fraction("0.25")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 4))
    >>> as_fraction("1e999999999", "epsilon")
    Traceback (most recent call last):
    ...
    policygraph.errors.InputError: epsilon='1e999999999': expected a number of at most 4,000 digits, and powers ...
    """
    if isinstance(value, bool):
        raise InputError(f"{name}={value!r}: expected a number.", code="number.not-exact", value=value)
    try:
        if isinstance(value, str):
            return _read(value, name)
        if isinstance(value, float):
            return Fraction(repr(float(value)))
        if isinstance(value, Decimal):
            _check_size(len(value.as_tuple().digits), value.adjusted(), value, name)
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            _check_size(value.bit_length() * 30103 // 100000, 0, value, name)
        if isinstance(value, (int, Fraction, Decimal, Rational)):
            return Fraction(value)
        return Fraction(int(value.__index__()))
    except (ValueError, OverflowError, ZeroDivisionError, AttributeError, TypeError) as cause:
        if isinstance(cause, InputError):
            raise
        raise InputError(
            f"{name}={shown(value)}: expected a finite number such as 1, 0.5 or '1/3'.",
            code="number.not-exact",
            value=value,
        ) from cause


def as_float(value: Exact, name: str = "value") -> float:
    """Read a number that only estimates and choices depend on: the nearest float, refused beyond the largest one.

    Examples
    --------
    >>> as_float("1/4")
    0.25
    >>> as_float("1e400", "error")
    Traceback (most recent call last):
    ...
    policygraph.errors.InputError: error='1e400': expected a number up to 1.8e308. Write a smaller one.
    """
    try:
        return float(as_fraction(value, name))
    except OverflowError:
        raise InputError(
            f"{name}={shown(value)}: expected a number up to 1.8e308. Write a smaller one.",
            code="number.size",
            value=value,
        ) from None


def _read(text: str, name: str) -> Fraction:
    """Read a number from text, after a look at its size: ``1e999999999`` has few characters and a billion digits."""
    stripped = text.strip()
    if len(stripped) > MOST_DIGITS:
        _check_size(len(stripped), 0, text, name)
    found = _NUMBER.fullmatch(stripped)
    if found is None:
        raise ValueError("no number")
    _check_size(len(stripped), int(found["power"] or 0), text, name)
    return Fraction(stripped.replace("_", ""))


def _check_size(digits: int, power: int, value: object, name: str) -> None:
    if digits > MOST_DIGITS or abs(power) > MOST_DIGITS:
        raise InputError(
            f"{name}={shown(value)}: expected a number of at most {MOST_DIGITS:,} digits, and powers of ten of that size. Write a "
            "shorter one.",
            code="number.size",
            value=value,
        )


def sqrt_up(value: Fraction, bits: int = 64) -> Fraction:
    """Least multiple of 2**-bits (or the exact root) that is not below the square root of ``value``.

    Examples
    --------
    >>> sqrt_up(Fraction(9, 4)), sqrt_up(Fraction(2), bits=4)
    (Fraction(3, 2), Fraction(23, 16))
    """
    root = sqrt_down(value, bits)
    return root if root * root == value else root + Fraction(1, 1 << bits)


def sqrt_down(value: Fraction, bits: int = 64) -> Fraction:
    """Greatest multiple of 2**-bits (or the exact root) that is not above the square root of ``value``.

    Examples
    --------
    >>> sqrt_down(Fraction(2), bits=4)
    Fraction(11, 8)
    """
    if value < 0:
        raise InputError(
            f"value={value}: expected a number >= 0 under a root.", code="number.negative", value=value
        )
    p, q = isqrt(value.numerator), isqrt(value.denominator)
    if p * p == value.numerator and q * q == value.denominator:
        return Fraction(p, q)
    return Fraction(isqrt((value.numerator << (2 * bits)) // value.denominator), 1 << bits)


def common_denominator(values: list[Fraction]) -> tuple[list[int], int]:
    """Write fractions as integers over their least common denominator.

    Examples
    --------
    >>> common_denominator([Fraction(1, 2), Fraction(2, 3)])
    ([3, 4], 6)
    """
    bottom = lcm(*(v.denominator for v in values)) if values else 1
    tops = [v.numerator * (bottom // v.denominator) for v in values]
    shared = gcd(bottom, *tops)
    return [t // shared for t in tops], bottom // shared


def brief(count: int) -> str:
    """Print a count for a sentence: whole while that can be read, and by its size beyond.

    Examples
    --------
    >>> brief(2_000_000), brief(-7), brief(3 * 10**119), brief(10**15)
    ('2,000,000', '-7', 'about 10^119', 'about 10^15')
    """
    if abs(count) < 10**15:
        return f"{count:,}"
    # bits times log10(2) in integers, since a huge count has no float and no decimal digits that Python prints
    power = (abs(count).bit_length() - 1) * 30103 // 100000
    power += abs(count) >= 10 ** (power + 1)
    return f"about {'-' * (count < 0)}10^{power}"


def show(value: Fraction | int) -> str:
    """Print a fraction as an integer, a short decimal or a quotient, never rounded.

    Examples
    --------
    >>> show(Fraction(4)), show(Fraction(1, 8)), show(Fraction(1, 3)), show(Fraction(-5, 2))
    ('4', '0.125', '1/3', '-2.5')
    """
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    rest, digits = value.denominator, 0
    while rest % 10 == 0:
        rest, digits = rest // 10, digits + 1
    for prime in (2, 5):
        while rest % prime == 0:
            rest, digits = rest // prime, digits + 1
    if rest == 1 and digits <= 9:
        whole, part = divmod(abs(value.numerator) * 10**digits // value.denominator, 10**digits)
        sign = "-" if value < 0 else ""
        return f"{sign}{whole}.{part:0{digits}d}".rstrip("0")
    return f"{value.numerator}/{value.denominator}"
