"""Noise on a table that is too large for one machine: block by block, where its counts are. Owns :class:`NoisyBlocks`.

The same object makes the blocks in this process and on the workers of Spark. It is the one place where true counts of such a table meet noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from policygraph.curator.gate import independent
from policygraph.curator.histogram import Ints
from policygraph.curator.noise.blocks import BLOCK, block_rng
from policygraph.distributions.noise import Noise
from policygraph.errors import DataError

TEST_KEY = bytes(range(32))
"""For rehearsals, whose draws meet no counts."""


@dataclass(frozen=True)
class NoisyBlocks:
    """What makes the noisy values of a block from its counts.

    Attributes
    ----------
    noise
        The distribution of one draw.
    key
        Secret; every block has a key that is derived from it.
    cells
        Number of cells of the table.

    Examples
    --------
    >>> from policygraph.distributions.noise import laplace_noise
    >>> from fractions import Fraction
    >>> make = NoisyBlocks(laplace_noise(Fraction(1)), bytes(32), 5)
    >>> noise, noisy = make(0, np.array([], dtype=int), np.array([], dtype=int)), make(0, np.array([1, 4]), np.array([100, 7]))
    >>> (noisy - noise).tolist(), make
    ([0, 100, 0, 0, 7], NoisyBlocks(cells=5))
    """

    noise: Noise = field(repr=False)
    key: bytes = field(repr=False)
    cells: int

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return -(-self.cells // BLOCK)

    def __call__(self, number: int, at: Ints, counts: Ints) -> Ints:
        """Return the noisy values of a block: noise on every cell, and the counts of those that hold records added to it."""
        size = min(BLOCK, self.cells - number * BLOCK)
        inside = len(at) == len(counts) and bool(np.all((at >= 0) & (at < size)))
        if size <= 0 or not inside or len(np.unique(at)) != len(at):
            raise DataError(
                "a cell was counted twice, or is none of the table; nothing was written.", code="data.lost"
            )
        values: Ints = independent(self.noise, (1, size), block_rng(self.key, number))[0]
        values[at] += counts
        return values

    def rehearsal(self) -> int:
        """A number that is the same wherever the same noise is drawn from the same key."""
        made = NoisyBlocks(self.noise, TEST_KEY, 1000)
        none = np.zeros(0, dtype=np.int64)
        return int(made(0, none, none) @ np.arange(1, 1001))
