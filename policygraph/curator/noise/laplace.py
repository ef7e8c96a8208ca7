"""The discrete Laplace law: owns :func:`discrete_laplace`.

P(k) is proportional to exp(-|k| / scale) on all integers, for any positive rational scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from policygraph.curator.noise.inversion import CHUNK, Digit, Geometric, Table
from policygraph.curator.noise.rng import Rng, default_source
from policygraph.errors import InputError, RefusedError
from policygraph.exact import Exact, as_fraction, show

__all__ = ["MAX_SCALE", "discrete_laplace"]

Ints = npt.NDArray[np.int64]
Size = int | tuple[int, ...]

MAX_SCALE = 1 << 40
"""Largest scale: P(|X| >= 2**62) < 2 exp(-2**22) < 2**-6000000; a draw that does not fit is refused, never wrapped."""

NOISE_BITS = 62
"""Every draw is below 2**62 in absolute value; a sum with a value of at most 2**62 cannot wrap."""

_DIRECT = 64
_DIGIT_BITS = 8


def discrete_laplace(scale: Exact, size: Size, source: Rng | None = None) -> Ints:
    """Draw independent integers k with probability proportional to exp(-|k| / scale).

    Parameters
    ----------
    scale
        A positive rational, at most 2**40.
    size
        A number of draws, or a shape.
    source
        Where the random words come from; the secure source of the process by default.

    Returns
    -------
    numpy.ndarray
        Integers of 64 bits.

    Raises
    ------
    InputError
        If the scale is not a positive number, or the size is not a shape.
    RefusedError
        If the scale is above 2**40, or a draw does not fit 62 bits (probability below 2 exp(-2**22)).

    Notes
    -----
    Let q = exp(-1/scale) and let G be geometric, P(G = g) = (1 - q) q**g.  X is G with probability
    1 / (1 + q) and -1 - G otherwise.  The binary digits of G are independent, so a scale above 64 is split
    as G = 2**b H + L: the signed H is a discrete law of scale / 2**b, the digits of L are truncated geometric.
    Each digit comes from one :class:`~policygraph.curator.noise.inversion.Table` and is exact.

    Examples
    --------
    >>> from policygraph.curator.noise.rng import SeededRng
    >>> discrete_laplace(Fraction(7, 2), (2, 3), SeededRng(5)).shape
    (2, 3)
    """
    plan = _plan(check_scale(scale))
    return fill(size, source, plan.draw)


def check_scale(scale: Exact) -> Fraction:
    """Return the scale as a fraction, or refuse it.

    Examples
    --------
    >>> check_scale("1/3")
    Fraction(1, 3)
    """
    value = as_fraction(scale, "scale")
    if value <= 0:
        raise InputError(
            f"scale={show(value)}: expected a number > 0. Noise of scale 0 would hide nothing.",
            code="noise.scale",
            scale=value,
        )
    if value > MAX_SCALE:
        raise RefusedError(
            f"scale={show(value)}: expected at most 2**40, so that no draw can leave 64-bit integers. "
            "Use a coarser unit.",
            code="noise.scale-too-large",
            scale=value,
            bound=MAX_SCALE,
        )
    return value


@dataclass(frozen=True)
class LaplacePlan:
    """The tables of one scale: a signed high digit, then low digits with their places, lowest first."""

    high: Table
    low: tuple[tuple[int, Table], ...]
    low_bits: int

    def draw(self, n: int, source: Rng) -> Ints:
        """Return ``n`` draws."""
        values = self.high.draw(n, source)
        if not self.low_bits:
            return values
        rest: Ints = np.zeros(n, np.int64)
        for place, table in self.low:
            rest |= table.draw(n, source) << place
        # A negative value is -1 - G, which is G with every bit turned: the low bits turn with the sign.
        rest ^= (values >> 63) & ((1 << self.low_bits) - 1)
        values <<= self.low_bits
        values |= rest
        return values


@lru_cache(maxsize=64)
def _plan(scale: Fraction) -> LaplacePlan:
    bits = 0
    while scale > _DIRECT << bits:
        bits += 1
    digits = -(-bits // _DIGIT_BITS)
    low = []
    for i in range(digits):
        place, following = bits * i // digits, bits * (i + 1) // digits
        base = 1 << (following - place)
        low.append((place, Table(Digit((1 << place) / scale, base), limit=base)))
    high = Table(Geometric((1 << bits) / scale, 1 / scale), limit=(1 << (NOISE_BITS - bits)) - 1)
    return LaplacePlan(high, tuple(low), bits)


def fill(size: Size, source: Rng | None, draw: Callable[[int, Rng], Ints]) -> Ints:
    """Fill an array of the given shape piece by piece, so that the memory beside it stays small."""
    shape = size if isinstance(size, tuple) else (size,)
    if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0 for n in shape):
        raise InputError(
            f"size={size!r}: expected an integer >= 0 or a tuple of them.", code="noise.size", size=size
        )
    total = prod(int(n) for n in shape)
    result = np.empty(total, np.int64)
    chosen = default_source() if source is None else source
    for start in range(0, total, CHUNK):
        stop = min(total, start + CHUNK)
        result[start:stop] = draw(stop - start, chosen)
    return result.reshape(shape)
