"""Lists the cells whose noisy count reaches a threshold: noise on those that hold records, and a draw of which empty ones pass."""

from __future__ import annotations

from math import ceil, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.curator.histogram import Histogram, Ints
from policygraph.curator.noise import Rng, discrete_gaussian, discrete_laplace
from policygraph.curator.noise.rare import draw_passing
from policygraph.mechanisms.sparse import SparseNoise
from policygraph.model.loss import Epsilon

MIXER = 0x9E3779B97F4A7C15


def draw(ready: SparseNoise, data: Histogram, rng: Rng, n: int) -> list[Ints]:
    """Return the lists of n independent runs, cells ascending: one row of positions for each listed cell, its noisy count last."""
    filled, true = data.filled(ready.names)
    cells = np.concatenate([np.repeat(np.arange(n), len(true))[:, None], np.tile(filled, (n, 1))], axis=1)
    counts = np.tile(true, n)
    if ready.tail is not None:
        noise = discrete_laplace if isinstance(ready.loss, Epsilon) else discrete_gaussian
        counts += noise(ready.inner.parameter, len(counts), rng)
        # n runs over N cells are one run over n N cells; hits on filled cells are dropped, these have noise of their own.
        others, values = draw_passing(ready.tail, (n, *ready.shape), rng)
        free = ~_among(others[:, 1:], filled)
        cells = np.concatenate([cells, others[free]])
        counts = np.concatenate([counts, values[free]])
    kept = counts >= ready.threshold
    rows = np.concatenate([cells[kept], counts[kept, None]], axis=1)
    rows = rows[np.lexsort(rows[:, -2::-1].T)]
    return np.split(rows[:, 1:], np.searchsorted(rows[:, 0], np.arange(1, n)))


def most_rows(ready: SparseNoise, data: Histogram) -> int:
    """The most rows that a release can have, for the room that it takes in the ledger; not published."""
    # Cells that hold records, and those that noise alone lists: twice as many as expected is beyond belief for many, and 1,000 for few.
    return min(prod(ready.shape), len(data.filled(ready.names)[1]) + 2 * ceil(ready.spurious) + 1000)


def _among(rows: Ints, others: Ints) -> npt.NDArray[Any]:
    """Which rows occur among others; words that two equal rows share find the few that may, and these are compared."""
    if not len(rows) or not len(others):
        return np.zeros(len(rows), dtype=np.bool_)
    ours, theirs = _words(rows), _words(others)
    found = np.isin(ours, theirs)
    there = set(map(tuple, others[np.isin(theirs, ours[found])].tolist()))
    found[found] = [tuple(row) in there for row in rows[found].tolist()]
    return found


def _words(rows: Ints) -> npt.NDArray[Any]:
    """One word for each row, the same for equal rows."""
    made = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        made = made * np.uint64(MIXER) + column.astype(np.uint64)
    return made
