"""Buckets of one or two values that need not be neighbours, then of four, eight, ... Owns :class:`Matchings`.

The argument is ``docs/explanation/proofs/matching-partition.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from policygraph.errors import InputError
from policygraph.exact import Exact, as_fraction, show
from policygraph.mechanisms.matching import cheapest_cover
from policygraph.mechanisms.partitioned import Partition
from policygraph.mechanisms.partitioned.partitioners.base import (
    Chooser,
    Ints,
    Partitioner,
    check_costs,
)
from policygraph.model.loss import Epsilon

MOST_CELLS = 5000
"""Cells up to which all pairs are tried: twelve and a half million."""
MOST_ROUNDS = 7
FEWEST_MATCHED = 8
"""A round in which fewer than one bucket in so many found a partner is the last."""
FINE = 1 << 20
"""Costs are held so finely that the scale of the noise has this many steps, which makes ties rare; they are broken anyway."""
TALLEST = 1 << 26
"""Counts beyond this are taken for it when buckets are chosen; that changes a count by no more than the count changes."""
ROOM = 1 << 53
"""At scales of at most 2**40 a draw reaches this with a probability below exp(-8000), like the limit of the sampler itself."""


@dataclass(frozen=True, eq=False)
class MatchingChooser(Chooser):
    """Noise on the cost of every bucket and of every union of two, fixed for a number of cells."""

    loss: Epsilon
    size: int
    changes: Fraction
    rounds: int
    noise: Fraction
    """What each bucket costs besides its deviation."""
    bias: Fraction

    most_noise: ClassVar[int] = ROOM

    def scale(self, cells: int) -> Fraction:
        """Scale of the noise on the deviation of a bucket of so many cells, in each round.

        Notes
        -----
        As for runs: the deviation of the bucket that holds a changed cell changes by at most 1 (by 0 if it is that cell
        alone), and so does that of the bucket that holds it in any other partition.
        """
        return (2 if cells > 1 else 1) * self.changes * self.rounds / self.loss.value

    @cached_property
    def step(self) -> int:
        """Steps of cost in one record: a power of two."""
        step, scale = 1, max(self.scale(2), Fraction(1, FINE))
        while step * scale < FINE and step < FINE:
            step *= 2
        return step

    def ends(self, before: Partition, after: Partition) -> bool:
        """Whether too few buckets found a partner for another round to be worth its loss."""
        merged = 2 * (before.n_buckets - after.n_buckets)
        return after.n_buckets == 1 or merged * FEWEST_MATCHED < before.n_buckets

    def spent(self, history: Sequence[Partition]) -> Fraction:
        """As many parts of the loss as rounds were run: up to the first one that was the last."""
        before, run = Partition.singletons(self.size), 0
        for after in history:
            run += 1
            if self.ends(before, after):
                break
            before = after
        return self.loss.value * run / self.rounds

    def scores(self, counts: Ints, partition: Partition) -> list[Ints]:
        """Deviations of all unions of two buckets, of single cells, and of all other buckets, in steps."""
        deviations = self.step * _deviations(np.clip(counts, -TALLEST, TALLEST), partition)
        own = np.diagonal(deviations)
        alone = partition.sizes == 1
        return [deviations[np.triu_indices(partition.n_buckets, 1)], own[alone], own[~alone]]

    def scales(self, partition: Partition) -> list[Fraction]:
        return [self.scale(cells) * self.step for cells in (2, 1, 2)]

    def select(self, noisy: Sequence[Ints], partition: Partition) -> list[Partition]:
        unions, lone, others = noisy
        alone = partition.sizes == 1
        shape = (partition.n_buckets, partition.n_buckets)
        upper = np.triu_indices(partition.n_buckets, 1)
        out = []
        for at in range(len(unions)):
            pairs = np.zeros(shape, dtype=np.int64)
            pairs[upper] = unions[at] + self._charged(self.bias)
            singles = np.empty(partition.n_buckets, dtype=np.int64)
            singles[alone], singles[~alone] = lone[at], others[at]
            partner = cheapest_cover(pairs + pairs.T, singles + self._charged(Fraction(0))).partner
            out.append(partition.coarsen(Partition(np.minimum(partner, np.arange(len(partner))))))
        return out

    def _charged(self, bias: Fraction) -> int:
        return round(self.step * (self.noise + bias * self.scale(2)))

    def stages(self) -> Sequence[str]:
        how = "once" if self.rounds == 1 else f"in {self.rounds} rounds, buckets being matched again"
        out = [
            f"Cells were matched {how}: a bucket is one or the union of two, chosen for the least total cost, which was found "
            "exactly and proved by its dual."
        ]
        if self.changes:
            out.append(
                f"The cost of a bucket is its deviation from the median plus {float(self.noise):.4g}, for a union "
                f"{float(self.bias * self.scale(2)):.4g} more; to it came discrete Laplace noise of scale {show(self.scale(1))} for "
                f"single cells and {show(self.scale(2))} for others, for a loss of {self.loss} in all."
            )
        return out


def _deviations(counts: Ints, partition: Partition) -> Ints:
    """Deviation of every union of two buckets, and on the diagonal of every bucket."""
    if partition.n_buckets == partition.size:
        apart: Ints = np.abs(counts[:, None] - counts[None, :])
        return apart
    from policygraph.mechanisms.partitioned.partitioners._compiled_pairs import union_deviations

    order = np.lexsort((counts, partition.labels))
    starts = np.concatenate([[0], np.cumsum(partition.sizes)]).astype(np.int64)
    out = np.zeros((partition.n_buckets, partition.n_buckets), dtype=np.int64)
    union_deviations(np.ascontiguousarray(counts[order]), starts, out)
    return out


@dataclass(frozen=True)
class Matchings(Partitioner):
    """Merge values that need not be neighbours: an exact matching of least noisy cost, in one or more rounds.

    Parameters
    ----------
    rounds
        How often buckets are matched: buckets have at most 2**rounds cells. Every round gets the same part of the budget.
    bias
        What a union is charged beyond the noise of its count, in scales of the noise on its cost, against lucky noise.

    Raises
    ------
    InputError
        When an argument does not fit, or there are too many cells to try all pairs.

    Notes
    -----
    Privacy: ``docs/explanation/proofs/matching-partition.md``. The pairs are all pairs, so that they depend on no data. Noise goes on the
    cost of single cells too: with noise on the pairs alone the event that a cell stays single is not private. The
    optimum is exact and certified, and ties are broken by a fixed order.

    Accuracy: each cell has as many partners as there are others, and the best of so many noises is a lucky one. A pair
    halves the noise of two cells at best, so that one round pays only where many cells are equal up to a few times the
    scale; more rounds pay where there are few levels and a large budget.

    Examples
    --------
    >>> ready, apart = Matchings().calibrate(5, Fraction(1), Epsilon(200), 1.0), Partition.singletons(5)
    >>> scores = ready.scores(np.array([7, 0, 30, 7, 0]), apart)
    >>> [chosen] = ready.select([score[None, :] for score in scores], apart)
    >>> chosen.buckets()
    ((0, 3), (1, 4), (2,))
    """

    rounds: int = 1
    bias: Exact = 2
    name: str = "Matchings"

    def __post_init__(self) -> None:
        if (
            isinstance(self.rounds, bool)
            or not isinstance(self.rounds, int)
            or not 1 <= self.rounds <= MOST_ROUNDS
        ):
            raise InputError(
                f"rounds={self.rounds!r}: expected an integer from 1 to {MOST_ROUNDS}.",
                code="partition.rounds",
            )
        if as_fraction(self.bias, "bias") < 0:
            raise InputError(f"bias={self.bias!r}: expected a number >= 0.", code="partition.bias")

    def calibrate(self, size: int, changes: Fraction, loss: Epsilon, noise: float) -> MatchingChooser:
        if size > MOST_CELLS:
            raise InputError(
                f"all pairs of {size:,} cells: expected at most {MOST_CELLS:,} cells. Use Intervals.",
                code="partition.cells",
                value=size,
            )
        bias = as_fraction(self.bias, "bias")
        ready = MatchingChooser(loss, size, Fraction(changes), self.rounds, Fraction(noise), bias)
        check_costs(ready.scale(2) * ready.step, ready._charged(bias))
        return ready
