"""Which of very many cells have noise that passes a threshold, and that noise. Owns :func:`draw_passing`.

Noise on each of N cells passes a threshold in Binomial(N, p) of them, and what passes has the distribution of the noise given that it does.
Both are drawn without the N noises, exactly: ``docs/explanation/proofs/sparse-release.md``.
"""

from __future__ import annotations

from functools import lru_cache
from math import log2, prod

import numpy as np
import numpy.typing as npt

from policygraph.curator.noise.discrete import discrete_laplace, fill
from policygraph.curator.noise.inversion import InversionTable
from policygraph.curator.noise.rng import Rng, fetch
from policygraph.distributions.integers import GaussianBeyond, GaussianTail, PassingCount, Tail
from policygraph.distributions.noise import NOISE_BITS

Ints = npt.NDArray[np.int64]
_PER_BLOCK = 8


@lru_cache(maxsize=64)
def _table(tail: Tail, cells: int) -> InversionTable:
    return InversionTable(PassingCount(tail, cells), limit=1 << NOISE_BITS)


@lru_cache(maxsize=16)
def _gaussian_table(tail: GaussianTail) -> InversionTable:
    return InversionTable(GaussianBeyond(1 / (2 * tail.parameter), tail.start), limit=1 << NOISE_BITS)


def draw_count(tail: Tail, cells: int, rng: Rng) -> int:
    """Draw how many of so many independent noises pass: Binomial(cells, p), exactly."""
    block = 1 << max(0, int(log2(_PER_BLOCK) - tail.log2_chance))
    blocks, rest = divmod(cells, block)
    total = 0
    if blocks:
        table = _table(tail, block)
        for begin in range(0, blocks, 1 << 20):
            many = min(1 << 20, blocks - begin)
            total += int(fill(many, rng, table.draw).sum())
    if rest:
        total += int(_table(tail, rest).draw(1, rng)[0])
    return total


def draw_values(tail: Tail, n: int, rng: Rng) -> Ints:
    """Draw n independent values of the noise Z given that Z >= start."""
    if isinstance(tail, GaussianTail):
        drawn = fill(n, rng, _gaussian_table(tail).draw)
    else:
        drawn = discrete_laplace(tail.parameter, n, rng)
        # X is G or -1 - G with G geometric, so that turning the bits of a negative one gives G back.
        drawn ^= drawn >> 63
    drawn += tail.start
    return drawn


def draw_passing(tail: Tail, shape: tuple[int, ...], rng: Rng) -> tuple[Ints, Ints]:
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
    >>> from fractions import Fraction
    >>> from policygraph.curator.noise.rng import SeededRng
    >>> from policygraph.distributions.integers import LaplaceTail
    >>> cells, values = draw_passing(LaplaceTail(Fraction(1), 20), (10**6, 10**6), SeededRng(1))
    >>> cells.shape == (len(values), 2), bool((values >= 20).all())
    (True, True)
    """
    passing = draw_count(tail, prod(shape), rng)
    cells = _uniform(shape, passing, rng)
    while True:
        _, first = np.unique(cells, axis=0, return_index=True)
        if len(first) == passing:
            break
        # Keep the first of equal ones, in the order in which they were drawn, and draw on.
        cells = np.concatenate([cells[np.sort(first)], _uniform(shape, passing - len(first), rng)])
    cells = cells[first]
    return cells, draw_values(tail, passing, rng)


def _uniform(shape: tuple[int, ...], n: int, rng: Rng) -> Ints:
    """Draw n independent uniform cells, attribute by attribute."""
    return np.stack([_below(size, n, rng) for size in shape], axis=1)


def _below(size: int, n: int, rng: Rng) -> Ints:
    """Draw n independent uniform integers below a size, by rejection of words."""
    bits = max(1, (size - 1).bit_length())
    out = np.zeros(n, dtype=np.int64)
    open_ = np.arange(n if size > 1 else 0)
    while len(open_):
        words = (fetch(rng, len(open_)) >> np.uint64(64 - bits)).astype(np.int64)
        fits = words < size
        out[open_[fits]] = words[fits]
        open_ = open_[~fits]
    return out
