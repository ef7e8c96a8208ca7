"""A partition into intervals whose costs are clamped, and a variant in which nothing is clamped.

Dynamic programming over all partitions of a line into buckets; the cost of a bucket is the sum of distances from its mean,
plus noise. The leak: a bucket of one cell gets no noise, and every noisy cost is clamped from below at 1 / epsilon_2, so
that many partitions of the empty cells cost the same for sure and the changed cell stands out.
"""

from __future__ import annotations

import numpy as np

import policygraph as pg

__all__ = ["CELLS", "EPSILON_1", "clamped", "unclamped"]

CELLS = 64
EPSILON_1 = "1/2"
EPSILON_2 = 0.5


def clamped():
    return _Partitioner(clamp=True), _policy(), None


def unclamped():
    """Noise on every bucket, nothing clamped: of the scale that hides one record."""
    return _Partitioner(clamp=False), _policy(), None


def _policy():
    return pg.Policy(pg.Domain({"cell": CELLS}))


class _Partitioner:
    def __init__(self, *, clamp):
        self.clamp = clamp

    def __call__(self, table, n, source):
        rng = np.random.default_rng(source.words(4).tolist())
        best = np.zeros((n, CELLS + 1), dtype=np.float32)
        came = np.zeros((n, CELLS + 1), dtype=np.int64)
        for stop in range(1, CELLS + 1):
            through = best[:, :stop] + self.costs(table, stop, n, rng)
            came[:, stop] = through.argmin(axis=1)
            best[:, stop] = through[np.arange(n), came[:, stop]]
        return [_buckets(row) for row in came.tolist()]

    def costs(self, table, stop, n, rng):
        """Noisy costs of the buckets that end at ``stop``, one column for each start."""
        plain = np.array([np.abs(table[i:stop] - table[i:stop].mean()).sum() for i in range(stop)])
        length = stop - np.arange(stop)
        noise = rng.standard_exponential((n, stop), dtype=np.float32)
        noise -= rng.standard_exponential((n, stop), dtype=np.float32)
        epsilon = float(pg.Epsilon(EPSILON_1).value)
        if self.clamp:
            noise *= ((length > 1) / epsilon).astype(np.float32)
            noise += plain.astype(np.float32)
            return np.maximum(noise, np.float32(1 / EPSILON_2))
        noise *= ((4 - 2 / length - 2 / CELLS) / epsilon).astype(np.float32)
        return noise + (plain + 1 / EPSILON_2).astype(np.float32)


def _buckets(came):
    """The chosen partition as a tuple of (start, stop) pairs."""
    out, stop = [], CELLS
    while stop:
        out.append((came[stop], stop))
        stop = came[stop]
    return tuple(out)
