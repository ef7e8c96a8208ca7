"""What every private partitioner is. Owns :class:`Partitioner` (configuration) and :class:`Chooser` (ready to run).

``calibrate`` sees no data; ``choose`` looks at the counts, and what it returns is private at its loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.curator.noise import Rng
from policygraph.distributions.noise import check_scale
from policygraph.errors import InputError
from policygraph.mechanisms.partitioned import Partition
from policygraph.model.loss import Epsilon

__all__ = ["Chooser", "Ints", "Partitioner", "check_costs", "read_counts"]

Ints = npt.NDArray[np.int64]

LARGEST = 1 << 50
"""No table has so many records; below it the cost of every bucket fits 64 bits with room for its noise."""

MOST_CHARGED = 1 << 51
"""Most steps of cost that a bucket is charged, so that costs with deviations and noise stay within 64 bits."""


class Chooser(ABC):
    """A partitioner with its noise fixed; it has seen no data."""

    loss: Epsilon

    @abstractmethod
    def choose(self, counts: Any, source: Rng) -> Partition:
        """Return a partition of the cells that is private at the loss.

        Parameters
        ----------
        counts
            Counts of the cells.
        source
            Where the randomness comes from.
        """

    def choose_many(self, counts: Any, n: int, source: Rng) -> list[Partition]:
        """Return n independent choices; one that can draw them at once has :meth:`choose` as its case n = 1."""
        return [self.choose(counts, source) for _ in range(n)]

    @abstractmethod
    def stages(self) -> Sequence[str]:
        """Return one sentence for each stage, for people who read the release."""


class Partitioner(ABC):
    """Configuration of a partitioner; no data, no budget."""

    name: str
    weight: float
    """How much a partitioner misses for lack of budget, against the noise of one bucket; for the split of epsilon."""

    @property
    def settings(self) -> str:
        """All that tells two of a kind apart, for the ledger."""
        return repr(self)

    @abstractmethod
    def calibrate(self, size: int, changes: Fraction, loss: Epsilon, noise: float) -> Chooser:
        """Fix the noise for a number of cells, without data.

        Parameters
        ----------
        size
            Number of cells.
        changes
            Most records that one neighbour step adds and removes together: the L1 sensitivity of the cells under the
            policy, or an upper bound of it. 0: nothing changes, and no noise is needed.
        loss
            What the choice may spend.
        noise
            Mean absolute noise that the next step will put on the count of a bucket.
        """


def read_counts(counts: Any, size: int) -> Ints:
    """Check a table of counts: whole numbers, one for each cell, not absurdly large."""
    given = np.asarray(counts.vector() if hasattr(counts, "vector") else counts).reshape(-1)
    if given.size != size or given.dtype.kind not in "iu":
        raise InputError(
            f"a table of {given.size} cells of type {given.dtype}: expected {size} whole numbers.",
            code="partition.table",
        )
    flat = given.astype(np.int64)
    if float(np.abs(flat.astype(np.float64)).sum()) >= LARGEST:
        raise InputError("a table of more than 2**50 records: expected fewer.", code="partition.table")
    return flat


def check_costs(scale: Fraction, charged: int) -> None:
    """Refuse noise or charges on which a run could fail, or wrap, after data were read.

    Parameters
    ----------
    scale
        Largest scale of the noise, in steps of its lattice; 0 for none.
    charged
        Most steps of cost that a bucket is charged.
    """
    if scale:
        check_scale(scale)
    if charged > MOST_CHARGED:
        raise InputError(
            f"a charge of {charged} steps for a bucket: expected at most 2**51. Use a smaller bias.",
            code="partition.bias",
            value=charged,
        )
