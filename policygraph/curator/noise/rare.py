"""How many of very many noises pass a threshold, and what they are. Owns :class:`Tail` and its two laws.

Noise on each of N cells passes a threshold in Binomial(N, p) of them, and what passes has the law of the noise given that it does. Both are drawn
without the N noises, exactly: p is irrational and enclosed in integers, as finely as a draw needs. ``docs/explanation/proofs/sparse-release.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from math import exp, log, log2

import numpy as np
import numpy.typing as npt

from policygraph.curator.noise.enclosure import Weights, exp_neg, gaussian_weights
from policygraph.curator.noise.inversion import Gaussian, Law, Table
from policygraph.curator.noise.laplace import NOISE_BITS, discrete_laplace, fill
from policygraph.curator.noise.rng import Rng, fetch
from policygraph.errors import InputError, RefusedError

__all__ = ["GaussianTail", "LaplaceTail", "Passing", "Tail", "draw_passing", "expected_passing"]

Ints = npt.NDArray[np.int64]

LISTED = 4096
"""Blocks of at most so many cells have all their weights listed."""
MOST_SIGMA_SQUARED = 1 << 28
"""Largest variance parameter of a Gaussian tail, whose weights are listed one by one."""
_PER_BLOCK = 8
_NOTHING = Weights([], [], 0, 0)


@dataclass(frozen=True)
class Tail(ABC):
    """The part of a discrete law of noise Z from a threshold on.

    Attributes
    ----------
    parameter
        Scale, or variance parameter, of the noise.
    start
        The threshold, an integer >= 1.
    """

    parameter: Fraction
    start: int

    def __post_init__(self) -> None:
        if self.start < 1:
            raise InputError(
                f"threshold={self.start}: expected an integer >= 1. Below, most empty cells would pass.",
                code="noise.tail",
                value=self.start,
            )

    @abstractmethod
    def odds(self, bits: int) -> tuple[int, int]:
        """Enclose 2**bits * p / (1 - p), with p = P(Z >= start), to within a few units."""

    @abstractmethod
    def values(self, n: int, source: Rng) -> Ints:
        """Draw n independent values of Z given that Z >= start."""

    @cached_property
    def log2_chance(self) -> float:
        """Binary logarithm of p, for reports and for cutting work into pieces."""
        bits = 64
        while True:
            low, _ = self.odds(bits)
            if low >> 40:
                ratio = log2(low >> max(0, low.bit_length() - 53)) + max(0, low.bit_length() - 53) - bits
                return ratio - (log2(1 + 2.0**ratio) if ratio > -60 else 0.0)
            bits *= 2

    def count(self, cells: int, source: Rng) -> int:
        """Draw how many of so many independent noises pass: Binomial(cells, p), exactly."""
        block = 1 << max(0, int(log2(_PER_BLOCK) - self.log2_chance))
        blocks, rest = divmod(cells, block)
        total = 0
        if blocks:
            table = _table(self, block)
            for begin in range(0, blocks, 1 << 20):
                many = min(1 << 20, blocks - begin)
                total += int(fill(many, source, table.draw).sum())
        if rest:
            total += int(_table(self, rest).draw(1, source)[0])
        return total


@dataclass(frozen=True)
class LaplaceTail(Tail):
    """The tail of the discrete Laplace law of a scale.

    Notes
    -----
    With q = exp(-1/scale), p = q**start / (1 + q), so p / (1 - p) = q**start / (1 + q - q**start); and Z - start given Z >= start is geometric.

    Examples
    --------
    >>> tail = LaplaceTail(Fraction(1), 3)
    >>> round(2**tail.log2_chance, 6)
    0.036397
    """

    def odds(self, bits: int) -> tuple[int, int]:
        """Enclose the odds of passing."""
        far_low, far_high = exp_neg(self.start / self.parameter, bits + 4)
        near_low, near_high = exp_neg(1 / self.parameter, bits + 4)
        one = 1 << bits + 4
        low = (far_low << bits) // (one + near_high - far_low)
        return low, -(-(far_high << bits) // (one + near_low - far_high))

    def values(self, n: int, source: Rng) -> Ints:
        """Draw values given that they pass."""
        drawn = discrete_laplace(self.parameter, n, source)
        # X is G or -1 - G with G geometric, so that turning the bits of a negative one gives G back.
        drawn ^= drawn >> 63
        drawn += self.start
        return drawn


@dataclass(frozen=True)
class GaussianTail(Tail):
    """The tail of the discrete Gaussian law of a variance parameter.

    Examples
    --------
    >>> round(2 ** GaussianTail(Fraction(4), 3).log2_chance, 6)
    0.103246
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parameter > MOST_SIGMA_SQUARED:
            raise RefusedError(
                f"variance {float(self.parameter):.4g}: expected at most {MOST_SIGMA_SQUARED:,} for noise above a threshold. Use a "
                "larger loss, or Laplace noise.",
                code="noise.tail-too-large",
                value=self.parameter,
            )

    def odds(self, bits: int) -> tuple[int, int]:
        """Enclose the odds of passing."""
        rate = 1 / (2 * self.parameter)
        # Every weight before the threshold adds a unit of rounding to the sum.
        work = bits + 8 + 2 * self.start.bit_length()
        count = max(Gaussian(rate).reach(work, work), self.start + 1)
        weights = gaussian_weights(rate, count, work)
        far_low = sum(weights.lows[self.start :]) + weights.tail_low
        far_high = sum(weights.highs[self.start :]) + weights.tail_high
        # Below the threshold: 0, the values 1 to start - 1, and all negative ones.
        near_low = 2 * sum(weights.lows[1 : self.start]) + weights.lows[0] + far_low
        near_high = 2 * sum(weights.highs[1 : self.start]) + weights.highs[0] + far_high
        return (far_low << bits) // near_high, -(-(far_high << bits) // near_low)

    def values(self, n: int, source: Rng) -> Ints:
        """Draw values given that they pass."""
        drawn = fill(n, source, _gaussian_table(self).draw)
        drawn += self.start
        return drawn


@dataclass(frozen=True)
class Passing(Law):
    """How many of so many noises pass: k weighs binomial(cells, k) * odds**k.

    Attributes
    ----------
    tail
        What one noise must pass.
    cells
        How many noises there are.
    """

    tail: Tail
    cells: int
    two_sided: bool = field(default=False, init=False)

    @property
    def endless(self) -> bool:  # type: ignore[override]
        """Whether more values are possible than can be listed."""
        return self.cells > LISTED

    def reach(self, window: int, bits: int) -> int:
        """Return a number of weights after which about 2**-window of the mass is left."""
        return 32 + window // 2 if self.endless else self.cells + 1

    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the weights; the left side is empty."""
        fine = bits + self.cells.bit_length() + 4
        odds_low, odds_high = self.tail.odds(fine)
        low = high = 1 << bits
        lows, highs = [], []
        for k in range(count):
            lows.append(low)
            highs.append(high)
            left = max(0, self.cells - k)
            low = low * left * odds_low // (k + 1) >> fine
            high = -(-high * left * odds_high // (k + 1) >> fine)
        if not self.endless:
            return _NOTHING, Weights(lows, highs, 0, 0)
        # Ratios of successive weights fall, so that a geometric series bounds what is left.
        fall = Fraction(max(0, self.cells - count) * odds_high, (count + 1) << fine)
        rest = (
            -(-high * fall.denominator // (fall.denominator - fall.numerator)) if fall < 1 else 1 << 2 * bits
        )
        return _NOTHING, Weights(lows, highs, low, rest)


@dataclass(frozen=True)
class _Beyond(Law):
    """g >= 0 weighs exp(-rate * (g**2 + 2 * start * g)): the Gaussian law beyond a threshold."""

    rate: Fraction
    start: int
    two_sided: bool = field(default=False, init=False)
    endless: bool = field(default=True, init=False)

    def reach(self, window: int, bits: int) -> int:
        """Return a number of weights after which about 2**-window of the mass is left."""
        return Gaussian(self.rate).reach(window, bits)

    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the weights; the left side is empty."""
        return _NOTHING, gaussian_weights(self.rate, count, bits, self.start)


@lru_cache(maxsize=64)
def _table(tail: Tail, cells: int) -> Table:
    return Table(Passing(tail, cells), limit=1 << NOISE_BITS)


@lru_cache(maxsize=16)
def _gaussian_table(tail: GaussianTail) -> Table:
    return Table(_Beyond(1 / (2 * tail.parameter), tail.start), limit=1 << NOISE_BITS)


def draw_passing(tail: Tail, shape: tuple[int, ...], source: Rng) -> tuple[Ints, Ints]:
    """Draw which of all cells have noise that passes, and that noise.

    Parameters
    ----------
    tail
        What the noise of a cell must pass.
    shape
        Number of values of each attribute; the product may exceed 64 bits, each of them not.

    Returns
    -------
    cells, values
        One row of positions for each cell that passes, in ascending order, and its noise.

    Notes
    -----
    The number is Binomial(N, p). Given it, every set of so many cells is equally likely: the first so many different cells of a sequence of
    independent uniform cells.

    Examples
    --------
    >>> from policygraph.curator.noise.rng import SeededRng
    >>> cells, values = draw_passing(LaplaceTail(Fraction(1), 20), (10**6, 10**6), SeededRng(1))
    >>> cells.shape == (len(values), 2), bool((values >= 20).all())
    (True, True)
    """
    total = 1
    for n in shape:
        total *= n
    wanted = tail.count(total, source)
    cells = _uniform(shape, wanted, source)
    while True:
        _, first = np.unique(cells, axis=0, return_index=True)
        if len(first) == wanted:
            break
        # Keep the first of equal ones, in the order in which they were drawn, and draw on.
        cells = np.concatenate([cells[np.sort(first)], _uniform(shape, wanted - len(first), source)])
    cells = cells[first]
    return cells, tail.values(wanted, source)


def _uniform(shape: tuple[int, ...], n: int, source: Rng) -> Ints:
    """Draw n independent uniform cells, attribute by attribute."""
    return np.stack([_below(size, n, source) for size in shape], axis=1)


def _below(size: int, n: int, source: Rng) -> Ints:
    """Draw n independent uniform integers below a size, by rejection of words."""
    bits = max(1, (size - 1).bit_length())
    out = np.zeros(n, dtype=np.int64)
    open_ = np.arange(n if size > 1 else 0)
    while len(open_):
        words = (fetch(source, len(open_)) >> np.uint64(64 - bits)).astype(np.int64)
        fits = words < size
        out[open_[fits]] = words[fits]
        open_ = open_[~fits]
    return out


def expected_passing(tail: Tail, cells: int) -> float:
    """Expected number of cells that pass, as a float for reports.

    Examples
    --------
    >>> round(expected_passing(LaplaceTail(Fraction(1), 3), 100), 4)
    3.6397
    """
    power = tail.log2_chance * log(2) + log(cells)
    return exp(power) if power < 700 else float("inf")
