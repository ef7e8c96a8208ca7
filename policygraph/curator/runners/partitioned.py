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
from policygraph.mechanisms.partitioned.mechanism import PartitionedNoise
from policygraph.mechanisms.partitioned.partitioners.base import Chooser

LARGEST = 1 << 50
"""No table has so many records; below it the score of every bucket fits 64 bits with room for its noise."""

Key = TypeVar("Key", bound=Hashable)


def draw(ready: PartitionedNoise, data: Histogram, rng: Rng, n: int) -> npt.NDArray[Any]:
    """Return n outputs: step 1 chooses partitions, step 2 goes through the gate with the mechanism for the counts of the buckets."""
    given = ready.chooser
    chosen = [given] * n if isinstance(given, Partition) else choose(given, data, rng, n)
    counts: list[Any] = [None] * n
    for partition, runs in _alike(chosen).items():
        for at, found in zip(runs, sample(ready.on(partition), data, rng, len(runs)), strict=True):
            counts[at] = found
    return ready.outputs(chosen, counts)


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
    if data.domain.size != chooser.size or data.rows >= LARGEST:
        raise DataError(
            f"a table of {data.domain.size:,} cells: expected {chooser.size:,}, and fewer than 2**50 records.",
            code="partition.table",
        )
    made = [Partition.singletons(chooser.size)] * n
    for _ in range(chooser.rounds):
        for partition, runs in _alike(made).items():
            if partition.n_buckets == 1:
                continue
            scores = chooser.scores(data.vector(), partition)
            scales = chooser.scales(partition)
            noisy = [_noisy(chooser, *block, len(runs), rng) for block in zip(scores, scales, strict=True)]
            for at, found in zip(runs, chooser.select(noisy, partition), strict=True):
                made[at] = found
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
