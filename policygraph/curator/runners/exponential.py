"""Draws one of the tables that fit the public facts, those close to the true one more often."""

from __future__ import annotations

import numpy as np

from policygraph.curator.histogram import Histogram, Ints
from policygraph.curator.noise.inversion import InversionTable
from policygraph.curator.noise.rng import Rng, fetch
from policygraph.errors import InputError
from policygraph.mechanisms.exponential.mechanism import TableNoise
from policygraph.mechanisms.exponential.transfer import ChainNoise, TableChain


def draw(ready: TableNoise | ChainNoise, data: Histogram, rng: Rng, n: int) -> Ints:
    """Return the answers of n tables: first the distance from the true table is drawn, then one of the tables at this distance."""
    if isinstance(ready, ChainNoise):
        return along_chain(ready, data, rng, n)
    at = ready.places.get(data.vector().tobytes())
    if at is None:
        raise InputError("the table is none of those that fit the public facts.", code="exponential.table")
    steps = InversionTable(ready.distances_from(at), limit=len(ready.graph.layers(at))).draw(n, rng)
    chosen = np.empty(n, dtype=np.int64)
    for step in np.unique(steps).tolist():
        mine = np.flatnonzero(steps == step)
        members = np.flatnonzero(ready.graph.distances[at] == step)
        chosen[mine] = members[uniform(len(members), mine.size, rng)]
    made: Ints = ready.answers[chosen]
    return made


def along_chain(ready: ChainNoise, data: Histogram, rng: Rng, n: int) -> Ints:
    """Return the answers of n tables that are drawn count by count, each given the sum of those before it."""
    truth = ready.transfer.counts(data.vector())
    if sum(truth) != ready.transfer.total:
        raise InputError("the table is none of those that fit the public facts.", code="exponential.table")
    steps = TableChain(ready.transfer, tuple(truth), ready.rate)
    counts, before = np.zeros((n, len(truth)), dtype=np.int64), np.zeros(n, dtype=np.int64)
    for step in range(len(truth)):
        for state in np.unique(before).tolist():
            mine = np.flatnonzero(before == state)
            most = steps.most(step, state)
            counts[mine, step] = InversionTable(steps.next(step, state), limit=most + 1).draw(mine.size, rng)
        before += counts[:, step]
    return np.stack([ready.query.answer(table) for table in ready.transfer.tables(counts)])


def uniform(below: int, n: int, rng: Rng) -> Ints:
    """Return n exactly uniform integers from 0 to below - 1: words past the last whole multiple are drawn again."""
    out = np.zeros(n, dtype=np.int64)
    last = np.uint64((1 << 64) // below * below - 1)
    open_places = np.arange(n)
    while open_places.size and below > 1:
        words = fetch(rng, open_places.size)
        good = words <= last
        out[open_places[good]] = (words[good] % np.uint64(below)).astype(np.int64)
        open_places = open_places[~good]
    return out
