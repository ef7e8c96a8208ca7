"""What every private partitioner is. Owns :class:`Partitioner` (configuration) and :class:`Chooser` (its noise fixed).

Neither sees randomness: ``curator.runners.partitioned`` adds the noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from policygraph.distributions.noise import NOISE_BITS, check_scale
from policygraph.errors import InputError
from policygraph.mechanisms.partitioned import Partition
from policygraph.model.loss import Epsilon

Ints = npt.NDArray[np.int64]

MOST_CHARGED = 1 << 51
"""Most steps of cost that a bucket is charged, so that costs with deviations and noise stay within 64 bits."""


class Chooser(ABC):
    """A partitioner with its noise fixed; it draws nothing.

    Notes
    -----
    A choice is made in rounds. In each the counts are turned into whole numbers, the scores, given the partition so far, which is public by then;
    the runner of the curator adds Laplace noise to every score; and the next partition follows from the noisy scores alone.
    """

    loss: Epsilon
    size: int
    changes: Fraction
    """Most records that one neighbour step adds and removes together. Only where it is 0 may a score have no noise."""
    rounds: int
    """How often scores are made and a partition is selected."""
    order: Ints | None = None
    """The cells in the order in which neighbours are alike; by index when None."""
    most_noise: ClassVar[int] = 1 << NOISE_BITS
    """A draw of noise of this size is refused."""

    def ends(self, before: Partition, after: Partition) -> bool:
        """Whether no further round is run after one that led from one partition to another: a function of these alone."""
        return after.n_buckets == 1

    def spent(self, history: Sequence[Partition]) -> Fraction:
        """What the rounds behind a history cost together: a function of the history alone, at most the whole loss."""
        return self.loss.value

    @abstractmethod
    def scores(self, counts: Ints, partition: Partition) -> list[Ints]:
        """Return whole numbers in blocks, a fixed function of the counts and the partition so far."""

    @abstractmethod
    def scales(self, partition: Partition) -> list[Fraction]:
        """Return the scale of the discrete Laplace noise of each block of scores, which depends on no count."""

    @abstractmethod
    def select(self, noisy: Sequence[Ints], partition: Partition) -> list[Partition]:
        """Return the next partition for each run, from blocks of noisy scores with one row for each run."""

    @abstractmethod
    def stages(self) -> Sequence[str]:
        """Return one sentence for each stage, for people who read the release."""


class Partitioner(ABC):
    """Configuration of a partitioner; no data, no budget."""

    name: str

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
