"""Chooses buckets from the counts with noise on every score, then releases the counts of the buckets through the gate."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from policygraph.curator.gate import sample
from policygraph.curator.histogram import Histogram, Ints
from policygraph.curator.noise import Rng, discrete_laplace
from policygraph.errors import DataError, RefusedError
from policygraph.mechanisms.partitioned import Partition
from policygraph.mechanisms.partitioned.mechanism import CountedBuckets, PartitionedNoise
from policygraph.mechanisms.partitioned.partitioners.base import Chooser

LARGEST = 1 << 50
"""No table has so many records; below it the score of every bucket fits 64 bits with room for its noise."""

Key = TypeVar("Key", bound=Hashable)


def draw(ready: PartitionedNoise, data: Histogram, rng: Rng, n: int) -> npt.NDArray[Any]:
    """Return n outputs: step 1 chooses partitions, and counts of cells and buckets go through the gate with mechanisms of their own."""
    if isinstance(ready.chooser, Partition):
        found = sample(ready.given(), data, rng, n)
        return ready.outputs([CountedBuckets((ready.chooser,), None, counts) for counts in found])
    histories = choose_rounds(ready.chooser, data, rng, n)
    runs: list[Any] = [None] * n
    for history, places in _alike(histories).items():
        guarded, times = ready.after(history), len(places)
        cells = sample(guarded.cells, data, rng, times)
        buckets = None if guarded.buckets is None else sample(guarded.buckets, data, rng, times)
        for at, place in enumerate(places):
            runs[place] = CountedBuckets(history, cells[at], None if buckets is None else buckets[at])
    return ready.outputs(runs)


def choose(chooser: Chooser, data: Histogram, rng: Rng, n: int = 1) -> list[Partition]:
    """Return n independent partitions, each private at the loss of the chooser.

    Examples
    --------
    >>> import policygraph as pg
    >>> ready = pg.Intervals().calibrate(8, Fraction(1), pg.Epsilon(100), 0.01)
    >>> data = Histogram.of(pg.Domain({"age": 8}), [9, 9, 9, 9, 0, 0, 5, 5])
    >>> choose(ready, data, pg.SeededRng(1))[0].buckets()
    ((0, 1, 2, 3), (4, 5), (6, 7))
    """
    return [history[-1] for history in choose_rounds(chooser, data, rng, n)]


def choose_rounds(chooser: Chooser, data: Histogram, rng: Rng, n: int = 1) -> list[tuple[Partition, ...]]:
    """Return n independent choices: the partition after each round. Rounds that are not run repeat the last one, and cost nothing."""
    if data.domain.size != chooser.size or data.rows >= LARGEST:
        raise DataError(
            f"a table of {data.domain.size:,} cells: expected {chooser.size:,}, and fewer than 2**50 records.",
            code="partition.table",
        )
    alone = Partition.singletons(chooser.size)
    made: list[tuple[Partition, ...]] = [()] * n
    over = [alone.n_buckets == 1] * n
    for _ in range(chooser.rounds):
        for history, runs in _alike(made).items():
            before = history[-1] if history else alone
            if over[runs[0]]:
                for at in runs:
                    made[at] = (*history, before)
                continue
            scores = chooser.scores(data.vector(), before)
            scales = chooser.scales(before)
            noisy = [_noisy(chooser, *block, len(runs), rng) for block in zip(scores, scales, strict=True)]
            for at, found in zip(runs, chooser.select(noisy, before), strict=True):
                made[at], over[at] = (*history, found), chooser.ends(before, found)
    return made


def _noisy(chooser: Chooser, scores: Ints, scale: Fraction, n: int, rng: Rng) -> Ints:
    """Add noise to a block of scores, n times independently; without noise only what no neighbour step changes."""
    if not scale and not chooser.changes:
        return np.tile(scores, (n, 1))
    noise = discrete_laplace(scale, (n, scores.size), rng)
    if noise.size and max(int(noise.max()), -int(noise.min())) >= chooser.most_noise:
        raise RefusedError("a draw of noise does not fit.", code="partition.noise")
    noise += scores
    return noise


def _alike(keys: Sequence[Key]) -> dict[Key, list[int]]:
    """Positions of equal keys."""
    out: dict[Key, list[int]] = {}
    for at, key in enumerate(keys):
        out.setdefault(key, []).append(at)
    return out
