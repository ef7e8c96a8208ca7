"""The discrete Gaussian law: owns :func:`discrete_gaussian`.

P(k) is proportional to exp(-k**2 / (2 sigma**2)) on all integers, for any positive rational sigma**2.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from policygraph.curator.noise.enclosure import exp_neg
from policygraph.curator.noise.inversion import Gaussian, Table
from policygraph.curator.noise.laplace import NOISE_BITS, Size, fill
from policygraph.curator.noise.rng import Rng, fetch
from policygraph.errors import InputError, RefusedError
from policygraph.exact import Exact, as_fraction, show

__all__ = ["MAX_SIGMA_SQUARED", "discrete_gaussian"]

Ints = npt.NDArray[np.int64]

MAX_SIGMA_SQUARED = 1 << 80
"""Largest sigma**2: P(|X| >= 2**62) < exp(-2**42); a draw that does not fit is refused, never wrapped."""

_DIRECT = 1 << 14
"""sigma**2 up to which one table holds the whole law (sigma = 128)."""

_FINE = 24
_ONE = 1 << 32


def discrete_gaussian(sigma_squared: Exact, size: Size, source: Rng | None = None) -> Ints:
    """Draw independent integers k with probability proportional to exp(-k**2 / (2 sigma_squared)).

    Parameters
    ----------
    sigma_squared
        A positive rational, at most 2**80.  The variance is this number for all but small values, see
        :func:`~policygraph.curator.noise.moments.gaussian_variance`.
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
    value = as_fraction(sigma_squared, "sigma_squared")
    if value <= 0:
        raise InputError(
            f"sigma_squared={show(value)}: expected a number > 0. Noise of variance 0 would hide nothing.",
            code="noise.scale",
            sigma_squared=value,
        )
    if value > MAX_SIGMA_SQUARED:
        raise RefusedError(
            f"sigma_squared={show(value)}: expected at most 2**80, so that no draw can leave 64-bit integers. "
            "Use a coarser unit.",
            code="noise.scale-too-large",
            sigma_squared=value,
            bound=MAX_SIGMA_SQUARED,
        )
    plan = _plan(value)
    return fill(size, source, plan.draw)


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
        while sigma_squared > _DIRECT << (2 * self.bits):
            self.bits += 1
        # kappa = m**2 / (2 sigma**2), so that z = kappa * (2 H + r) * r with r = R / m in [0, 1].
        self.kappa = (1 << (2 * self.bits)) / (2 * sigma_squared)
        self.table = Table(Gaussian(self.kappa, two_sided=False), limit=(1 << (NOISE_BITS - self.bits)) - 2)
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

    def draw(self, n: int, source: Rng) -> Ints:
        """Return ``n`` draws."""
        kept: list[Ints] = []
        missing = n
        while missing > 0:
            found = self._propose(missing + missing // 64 + 8, source)[:missing]
            kept.append(found)
            missing -= found.size
        return np.concatenate(kept) if len(kept) != 1 else kept[0]

    def _propose(self, n: int, source: Rng) -> Ints:
        high = self.table.draw(n, source)
        word = fetch(source, n)
        minus = (word & np.uint64(1)).view(np.int64)
        rest = (word >> np.uint64(64 - self.bits)).view(np.int64) + minus
        kept = self.accept(high, rest, fetch(source, n), source)
        size = (high << self.bits) + rest
        return ((size ^ -minus) + minus)[kept]

    def below_z(self, high: Ints, rest: Ints) -> Ints:
        """Return integers with below_z <= 2**32 * z <= below_z + slack, for high digits of the table."""
        shift = self.bits - _FINE
        fine = rest >> shift if shift >= 0 else rest << -shift
        shown = np.minimum(high, self.high_most)
        z: Ints = (((shown << (_FINE + 1)) + fine) * fine >> 28) * self.kappa_44 >> 32
        return z

    def accept(
        self, high: Ints, rest: Ints, word: npt.NDArray[np.uint64], source: Rng
    ) -> npt.NDArray[np.bool_]:
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
            kept[i] = self.accept_one(int(high[i]), int(rest[i]), int(word[i]), source)
        return kept

    def accept_one(self, high: int, rest: int, u: int, source: Rng) -> bool:
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
            u = u << 64 | int(fetch(source, 1)[0])
            bits += 64


@lru_cache(maxsize=64)
def _plan(sigma_squared: Fraction) -> Table | GaussianPlan:
    if sigma_squared <= _DIRECT:
        return Table(Gaussian(1 / (2 * sigma_squared)), limit=(1 << NOISE_BITS) - 1)
    return GaussianPlan(sigma_squared)
