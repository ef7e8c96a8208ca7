"""Runs of neighbouring cells, chosen by least noisy cost. Owns :class:`Intervals`.

The argument is ``docs/explanation/proofs/interval-partition.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

import numpy as np

from policygraph.errors import InputError
from policygraph.exact import Exact, as_fraction, show
from policygraph.mechanisms.partitioned import Partition
from policygraph.mechanisms.partitioned.partition import check_order
from policygraph.mechanisms.partitioned.partitioners.base import (
    Chooser,
    Ints,
    Partitioner,
    check_costs,
)
from policygraph.mechanisms.partitioned.partitioners.cheapest import (
    aligned_deviations,
    cheapest_runs,
    cheapest_trees,
    sliding_deviations,
)
from policygraph.model.loss import Epsilon

Family = Literal["aligned", "sliding", "all"]

BIAS: dict[str, Fraction] = {"aligned": Fraction(5, 2), "sliding": Fraction(4), "all": Fraction(8)}
"""Charge for a bucket against lucky noise, in scales of the noise: the least for which equal counts do not fall apart, see the notes of Intervals."""
STEP = 16
"""Costs are held in sixteenths, so that the charge for a bucket, which is no whole number, is met closely."""
MOST_LENGTHS = 4096
"""Cells up to which every length is tried."""


@dataclass(frozen=True, eq=False)
class IntervalChooser(Chooser):
    """Noise on the cost of every run, fixed for a number of cells."""

    loss: Epsilon
    size: int
    changes: Fraction
    family: Family
    charge: Fraction
    """What each bucket costs besides its deviation."""
    order: Ints | None

    rounds = 1

    @cached_property
    def lengths(self) -> list[int]:
        """The lengths that are tried, longest first."""
        if self.family == "all":
            return list(range(self.size, 0, -1))
        return [1 << j for j in range(self.size.bit_length() - 1, -1, -1)]

    def scale(self, length: int) -> Fraction:
        """Scale of the noise on the deviation of a run.

        Notes
        -----
        For one record more or less the deviation of the chosen run that holds it changes by at most 1 (by 0 if it is a
        single cell), and so does that of the run that holds it in any other partition (0 if all runs are single).
        """
        if self.size == 1:
            return Fraction(0)
        return (2 if length > 1 else 1) * self.changes / self.loss.value

    @property
    def _tried(self) -> list[int]:
        """The lengths in the order of the blocks of scores."""
        return self.lengths[::-1] if self.family == "aligned" else self.lengths

    def scores(self, counts: Ints, partition: Partition) -> list[Ints]:
        along = counts if self.order is None else counts[self.order]
        if self.family == "aligned":
            return [aligned_deviations(along, length) for length in self._tried]
        return sliding_deviations(along, self._tried)

    def scales(self, partition: Partition) -> list[Fraction]:
        return [self.scale(length) for length in self._tried]

    def select(self, noisy: Sequence[Ints], partition: Partition) -> list[Partition]:
        costs = [self._costs(block) for block in noisy]
        if self.family == "aligned":
            starts = cheapest_trees(costs, self.size)
            cuts = [[*np.flatnonzero(row).tolist(), self.size] for row in starts]
        else:
            cuts = [
                cheapest_runs([rows[at] for rows in costs], self._tried, self.size)
                for at in range(len(costs[0]))
            ]
        if len(cuts) == 1:
            return [Partition.intervals(cuts[0], self.order)]
        each = [tuple(found) for found in cuts]
        made = {found: Partition.intervals(found, self.order) for found in set(each)}
        return [made[found] for found in each]

    def _costs(self, noisy: Ints) -> Ints:
        """Costs in sixteenths; exact, and of any size where 64 bits would not do."""
        # Deviations are below 2**50 and noise is below 2**62; charges are at most 2**51.
        if noisy.size and max(int(noisy.max()), -int(noisy.min())) >= 1 << 56:
            noisy = noisy.astype(object)
        costs: Ints = STEP * noisy + self._charged
        return costs

    @cached_property
    def _charged(self) -> int:
        return round(STEP * self.charge)

    def stages(self) -> Sequence[str]:
        what = {
            "aligned": "runs of 1, 2, 4, ... cells that start at multiples of their length",
            "sliding": "runs of 1, 2, 4, ... cells",
            "all": "runs of cells",
        }[self.family]
        along = "" if self.order is None else " in the given order"
        if not self.changes:
            return [
                f"The cells were partitioned into {what}{along} of least cost; no neighbour step changes a cell."
            ]
        return [
            f"The cells were partitioned into {what}{along}, those of least total cost: deviation from the median plus "
            f"{float(self.charge):.4g} for each bucket, plus discrete Laplace noise of scale {show(self.scale(1))} for single "
            f"cells and {show(self.scale(2))} for longer runs, for a loss of {self.loss}.",
        ]


@dataclass(frozen=True, eq=False)
class Intervals(Partitioner):
    """Partition cells into runs of least noisy cost: deviation from the median, and the noise that a bucket will get.

    Parameters
    ----------
    family
        Which runs may be buckets: ``"aligned"`` runs of 2**j cells at multiples of 2**j, ``"sliding"`` runs of 2**j
        cells anywhere, or ``"all"`` runs (up to 4,096 cells). The fewer runs there are, the less is lost to lucky noise.
    order
        The cells in the order in which neighbours are alike; by index when absent. It must not depend on the data.
        :func:`~policygraph.mechanisms.partitioned.z_order` suits grids.
    bias
        What a bucket is charged beyond the noise of its count, in scales of the noise on its cost. By default 5/2 for
        aligned runs, 4 for sliding ones and 8 for all.

    Raises
    ------
    InputError
        When an argument does not fit.

    Notes
    -----
    Privacy: ``docs/explanation/proofs/interval-partition.md``. Noise of scale 2 k / epsilon goes on the cost of every run of two or
    more cells and k / epsilon on that of every single cell, k being the most records that a neighbour step changes
    (1 for adding or removing a record, 2 for moving one). No cost is spared or clamped, sums are exact, and ties are
    broken by a fixed order.

    Accuracy: the cheapest of many noisy costs is a lucky one, and short runs offer more of them. Without a further charge
    a table of zeros falls into thousands of buckets. The default charge for aligned runs is the least, in halves of a scale, for which the number of
    buckets of a table of equal counts does not grow with its length: about two, where 2 scales would give ten and 3/2 a hundred of 4,096 cells. The same for sliding runs.
    Of all runs of 4,096 cells there are so many that the best noise is worth about 8 scales, the logarithm of their number of cells. No data were used.

    Examples
    --------
    >>> ready = Intervals().calibrate(8, Fraction(1), Epsilon(100), 0.01)
    >>> [scale for scale in ready.scales(Partition.singletons(8))]
    [Fraction(1, 100), Fraction(1, 50), Fraction(1, 50), Fraction(1, 50)]
    >>> scores = ready.scores(np.array([9, 9, 9, 9, 0, 0, 5, 5]), Partition.singletons(8))
    >>> [chosen] = ready.select([score[None, :] for score in scores], Partition.singletons(8))
    >>> chosen.buckets()
    ((0, 1, 2, 3), (4, 5), (6, 7))
    """

    family: Family = "aligned"
    order: Any = None
    bias: Exact | None = None
    name: str = "Intervals"

    def __post_init__(self) -> None:
        if self.family not in BIAS:
            raise InputError(
                f"family={self.family!r}: expected 'aligned', 'sliding' or 'all'.",
                code="partition.family",
                value=self.family,
            )
        if self.bias is not None and as_fraction(self.bias, "bias") < 0:
            raise InputError(f"bias={self.bias!r}: expected a number >= 0.", code="partition.bias")

    @property
    def settings(self) -> str:
        """All that tells two of a kind apart; an order by its hash, since long arrays print short."""
        order = (
            "" if self.order is None else sha256(np.asarray(self.order, dtype=np.int64).tobytes()).hexdigest()
        )
        return f"{self.name} {self.family} {self._bias} {order}".strip()

    @property
    def _bias(self) -> Fraction:
        return BIAS[self.family] if self.bias is None else as_fraction(self.bias, "bias")

    def calibrate(self, size: int, changes: Fraction, loss: Epsilon, noise: float) -> IntervalChooser:
        order = None if self.order is None else check_order(self.order, size)
        if self.family == "all" and size > MOST_LENGTHS:
            raise InputError(
                f"all runs of {size:,} cells: expected at most {MOST_LENGTHS:,} cells. Use family='sliding'.",
                code="partition.family",
                value=size,
            )
        charge = Fraction(noise) + self._bias * 2 * changes / loss.value
        ready = IntervalChooser(loss, size, Fraction(changes), self.family, charge, order)
        check_costs(ready.scale(2), ready._charged)
        return ready
