"""Draws one of the tables that fit the public facts, those close to the true one more often."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

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
    """Return the answers of n tables: first the distance from the true table is drawn, then one of the tables at this distance, count by count."""
    truth = ready.transfer.counts(data.vector())
    if not ready.transfer.fits(truth):
        raise InputError("the table is none of those that fit the public facts.", code="exponential.table")
    chain = TableChain(ready.transfer, tuple(truth))
    left = InversionTable(ready.distances_from(chain), limit=len(chain.layers)).draw(n, rng).tolist()
    counts, states = np.zeros((n, len(truth)), dtype=np.int64), [0] * n
    for step in range(len(truth)):
        places: dict[tuple[int, int], list[int]] = {}
        for at, place in enumerate(zip(states, left, strict=True)):
            places.setdefault(place, []).append(at)
        for (state, rest), mine in places.items():
            ways = chain.ways(step, state, rest)
            ends = list(accumulate(number for *_, number in ways))
            for at, ticket in zip(mine, below(ends[-1], len(mine), rng), strict=True):
                counts[at, step], states[at], left[at], _ = ways[bisect_right(ends, ticket)]
    return np.stack([ready.query.answer(table) for table in ready.transfer.tables(counts)])


def below(limit: int, n: int, rng: Rng) -> list[int]:
    """Return n exactly uniform integers from 0 to limit - 1, of any size."""
    if limit <= 1 << 63:
        found: list[int] = uniform(limit, n, rng).tolist()
        return found
    words = -(-limit.bit_length() // 64) + 1
    last = (1 << 64 * words) // limit * limit
    out: list[int] = []
    while len(out) < n:
        made = int.from_bytes(fetch(rng, words).astype("<u8").tobytes(), "little")
        if made < last:
            out.append(made % limit)
    return out


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
