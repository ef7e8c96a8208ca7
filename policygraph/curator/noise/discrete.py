"""Exact samplers of discrete Laplace and discrete Gaussian noise. Owns :func:`discrete_laplace` and :func:`discrete_gaussian`.

P(k) is proportional to exp(-|k| / scale), or to exp(-k**2 / (2 sigma**2)), on all integers, for any positive rational parameter.
The argument for exactness is ``docs/explanation/proofs/discrete-noise.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from policygraph.curator.noise.inversion import CHUNK, InversionTable
from policygraph.curator.noise.rng import Rng, default_rng, fetch
from policygraph.distributions.enclosure import exp_neg
from policygraph.distributions.integers import DiscreteGaussian, TruncatedGeometric, TwoSidedGeometric
from policygraph.distributions.noise import NOISE_BITS, check_scale, check_sigma_squared
from policygraph.errors import InputError, RefusedError
from policygraph.exact import Exact

Ints = npt.NDArray[np.int64]
Size = int | tuple[int, ...]

_DIRECT_SCALE = 64
"""Scale up to which one table holds the whole Laplace distribution."""
_DIGIT_BITS = 8
_DIRECT_VARIANCE = 1 << 14
"""sigma**2 up to which one table holds the whole Gaussian distribution (sigma = 128)."""
_FINE = 24
_ONE = 1 << 32


def discrete_laplace(scale: Exact, size: Size, rng: Rng | None = None) -> Ints:
    """Draw independent integers k with probability proportional to exp(-|k| / scale).

    Parameters
    ----------
    scale
        A positive rational, at most 2**40.
    size
        A number of draws, or a shape.
    rng
        Where the random words come from; the secure one of the process by default.

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
    as G = 2**b H + L: the signed H is a discrete distribution of scale / 2**b, the digits of L are truncated geometric.
    Each digit comes from one :class:`~policygraph.curator.noise.inversion.InversionTable` and is exact.

    Examples
    --------
    >>> from policygraph.curator.noise.rng import SeededRng
    >>> discrete_laplace(Fraction(7, 2), (2, 3), SeededRng(5)).shape
    (2, 3)
    """
    return fill(size, rng, _laplace_plan(check_scale(scale)).draw)


@dataclass(frozen=True)
class LaplacePlan:
    """The tables of one scale: a signed high digit, then low digits with their places, lowest first."""

    high: InversionTable
    low: tuple[tuple[int, InversionTable], ...]
    low_bits: int

    def draw(self, n: int, rng: Rng) -> Ints:
        """Return ``n`` draws."""
        values = self.high.draw(n, rng)
        if not self.low_bits:
            return values
        rest: Ints = np.zeros(n, np.int64)
        for place, table in self.low:
            rest |= table.draw(n, rng) << place
        # A negative value is -1 - G, which is G with every bit turned: the low bits turn with the sign.
        rest ^= (values >> 63) & ((1 << self.low_bits) - 1)
        values <<= self.low_bits
        values |= rest
        return values


@lru_cache(maxsize=64)
def _laplace_plan(scale: Fraction) -> LaplacePlan:
    bits = 0
    while scale > _DIRECT_SCALE << bits:
        bits += 1
    digits = -(-bits // _DIGIT_BITS)
    low = []
    for i in range(digits):
        place, following = bits * i // digits, bits * (i + 1) // digits
        base = 1 << (following - place)
        low.append((place, InversionTable(TruncatedGeometric((1 << place) / scale, base), limit=base)))
    high = InversionTable(
        TwoSidedGeometric((1 << bits) / scale, 1 / scale), limit=(1 << (NOISE_BITS - bits)) - 1
    )
    return LaplacePlan(high, tuple(low), bits)


def discrete_gaussian(sigma_squared: Exact, size: Size, rng: Rng | None = None) -> Ints:
    """Draw independent integers k with probability proportional to exp(-k**2 / (2 sigma_squared)).

    Parameters
    ----------
    sigma_squared
        A positive rational, at most 2**80.  The variance is this number for all but small values, see
        :func:`~policygraph.distributions.moments.gaussian_variance`.
    size
        A number of draws, or a shape.
    rng
        Where the random words come from; the secure one of the process by default.

    Returns
    -------
    numpy.ndarray
        Integers of 64 bits.

    Raises
    ------
    InputError
        If sigma_squared is not a positive number, or the size is not a shape.
    RefusedError
        If sigma_squared is above 2**80, or a draw does not fit 62 bits (probability below exp(-2**42)).

    Notes
    -----
    Up to sigma = 128 by inversion on one table.  Above, see :class:`GaussianPlan`.

    Examples
    --------
    >>> from policygraph.curator.noise.rng import SeededRng
    >>> discrete_gaussian(Fraction(7, 2), (2, 3), SeededRng(5)).shape
    (2, 3)
    """
    return fill(size, rng, _gaussian_plan(check_sigma_squared(sigma_squared)).draw)


class GaussianPlan:
    """Draws for a large sigma: a high digit from a table, uniform low bits, and an exact rejection.

    Notes
    -----
    Let m = 2**b with sigma / m between 64 and 128.  Propose H >= 0 with weight exp(-(m H)**2 / (2 sigma**2)),
    a sign, and R uniform on 0..m-1 (on 1..m if the sign is minus, so that 0 has one spelling).  Every integer
    is +-(m H + R) in exactly one way.  Accept with probability exp(-z), z = (2 m H R + R**2) / (2 sigma**2):
    proposal times acceptance is exp(-(m H + R)**2 / (2 sigma**2)) up to one constant.

    ``accept`` decides U < exp(-z) for the uniform U behind a word, in integers: first by
    1 - z <= exp(-z), then by 1 - z + z**2/2 - z**3/6 <= exp(-z) <= 1 - z + z**2/2 on an enclosure of z to
    about 2**-26; what is left goes to ``accept_one``, which encloses exp(-z) at as many bits as it takes.
    About one proposal in a hundred is rejected, and one in a million needs ``accept_one``.
    """

    def __init__(self, sigma_squared: Fraction) -> None:
        self.sigma_squared = sigma_squared
        self.bits = 0
        while sigma_squared > _DIRECT_VARIANCE << (2 * self.bits):
            self.bits += 1
        # kappa = m**2 / (2 sigma**2), so that z = kappa * (2 H + r) * r with r = R / m in [0, 1].
        self.kappa = (1 << (2 * self.bits)) / (2 * sigma_squared)
        self.table = InversionTable(
            DiscreteGaussian(self.kappa, two_sided=False), limit=(1 << (NOISE_BITS - self.bits)) - 2
        )
        self.kappa_44 = int(self.kappa * (1 << 44))
        self.high_most = self.table.first + self.table.words.size
        # The most by which z * 2**32 exceeds its lower end computed in accept; the proof names each term.
        slack = self.kappa * (2 * self.high_most + 3) * (1 << (32 - _FINE)) + self.kappa * (1 << 12)
        self.slack = int(slack + Fraction((2 * self.high_most + 1), 1 << 12)) + 3
        if (2 * self.high_most + 1) << (2 * _FINE) >= 1 << 62 or 2 * self.kappa * (
            2 * self.high_most + 1
        ) >= 1:
            raise RefusedError(
                f"sigma_squared={sigma_squared}: the enclosure of its rejection would leave 64-bit integers.",
                code="noise.threshold",
                sigma_squared=sigma_squared,
            )

    def draw(self, n: int, rng: Rng) -> Ints:
        """Return ``n`` draws."""
        kept: list[Ints] = []
        missing = n
        while missing > 0:
            found = self._propose(missing + missing // 64 + 8, rng)[:missing]
            kept.append(found)
            missing -= found.size
        return np.concatenate(kept) if len(kept) != 1 else kept[0]

    def _propose(self, n: int, rng: Rng) -> Ints:
        high = self.table.draw(n, rng)
        word = fetch(rng, n)
        minus = (word & np.uint64(1)).view(np.int64)
        rest = (word >> np.uint64(64 - self.bits)).view(np.int64) + minus
        kept = self.accept(high, rest, fetch(rng, n), rng)
        size = (high << self.bits) + rest
        return ((size ^ -minus) + minus)[kept]

    def below_z(self, high: Ints, rest: Ints) -> Ints:
        """Return integers with below_z <= 2**32 * z <= below_z + slack, for high digits of the table."""
        shift = self.bits - _FINE
        fine = rest >> shift if shift >= 0 else rest << -shift
        shown = np.minimum(high, self.high_most)
        z: Ints = (((shown << (_FINE + 1)) + fine) * fine >> 28) * self.kappa_44 >> 32
        return z

    def accept(self, high: Ints, rest: Ints, word: npt.NDArray[np.uint64], rng: Rng) -> npt.NDArray[np.bool_]:
        """Decide for each proposal whether the U that begins with ``word`` is below exp(-z)."""
        z = self.below_z(high, rest)
        u = (word >> np.uint64(32)).view(np.int64)
        # A high digit beyond the table comes from its refinement only, and is left to accept_one.
        kept: npt.NDArray[np.bool_] = (u < _ONE - z - self.slack) & (high <= self.high_most)
        open_ = np.flatnonzero(~kept)
        low, top, v = z[open_], z[open_] + self.slack, u[open_]
        half_square = top * top >> 33
        # 1 - t + t**2/2 - t**3/6 falls for t in [0, 1], so it is least at the upper end of z.
        least = _ONE - top + half_square - (half_square * top // 3 >> 32) - 2
        most = _ONE - low + (low * low >> 33) + 1
        within = high[open_] <= self.high_most
        yes, no = (v < least) & within, (v >= most) & within
        kept[open_] = yes
        for i in open_[~yes & ~no]:
            kept[i] = self.accept_one(int(high[i]), int(rest[i]), int(word[i]), rng)
        return kept

    def accept_one(self, high: int, rest: int, u: int, rng: Rng) -> bool:
        """Decide U < exp(-z) for a U that begins with the 64 bits ``u``, drawing as many more as it takes."""
        z = ((2 * high << self.bits) * rest + rest * rest) / (2 * self.sigma_squared)
        if z == 0:
            return True
        bits = 64
        while True:
            low, top = exp_neg(z, bits)
            if u < low:
                return True
            if u >= top:
                return False
            u = u << 64 | int(fetch(rng, 1)[0])
            bits += 64


@lru_cache(maxsize=64)
def _gaussian_plan(sigma_squared: Fraction) -> InversionTable | GaussianPlan:
    if sigma_squared <= _DIRECT_VARIANCE:
        return InversionTable(DiscreteGaussian(1 / (2 * sigma_squared)), limit=(1 << NOISE_BITS) - 1)
    return GaussianPlan(sigma_squared)


def fill(size: Size, rng: Rng | None, draw: Callable[[int, Rng], Ints]) -> Ints:
    """Fill an array of the given shape piece by piece, so that the memory beside it stays small."""
    shape = size if isinstance(size, tuple) else (size,)
    if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0 for n in shape):
        raise InputError(
            f"size={size!r}: expected an integer >= 0 or a tuple of them.", code="noise.size", size=size
        )
    total = prod(int(n) for n in shape)
    result = np.empty(total, np.int64)
    chosen = default_rng() if rng is None else rng
    for start in range(0, total, CHUNK):
        stop = min(total, start + CHUNK)
        result[start:stop] = draw(stop - start, chosen)
    return result.reshape(shape)
