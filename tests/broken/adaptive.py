"""Choices of a table that leak: the best one without noise, and one at half the sensitivity of the scores."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import policygraph as pg
from policygraph.curator.histogram import Histogram
from policygraph.curator.noise.inversion import InversionTable
from policygraph.curator.runners.exponential import uniform
from policygraph.mechanisms.adaptive.mechanism import Levels
from policygraph.mechanisms.adaptive.plan import UNITS, Choosing

__all__ = ["best_table", "choosing", "half_sensitivity", "tables_of"]

DOMAIN = pg.Domain({"a": 2, "b": 2})
QUERY = pg.queries.cuboids(DOMAIN, [["a"], ["b"], ["a", "b"]])


def choosing(ready, share=UNITS):
    """A choice between the tables of a and of b, against estimates that one more record misses in opposite directions."""
    estimates = (np.zeros(2, dtype=np.int64), np.full(2, 50, dtype=np.int64))
    # An empty table scores 0 in both; a record adds 1 to the first score and takes 1 from the second.
    return Choosing((1, 2), estimates, (0, 100), (1, 1), share)


def tables_of(table):
    data = Histogram.of(DOMAIN, table)
    return {1: data.cuboid(["a"]), 2: data.cuboid(["b"])}


def best_table():
    ready = pg.AdaptiveCube().calibrate(QUERY, pg.Policy(DOMAIN), pg.Epsilon(1))
    step = choosing(ready)

    def runs(table, n, rng):
        scores = _scores(step, table)
        return np.full((n, 1), int(np.argmax([scores[0], scores[1] + 1])))

    return runs, pg.Policy(DOMAIN), QUERY


def half_sensitivity():
    """Chances of the library at a rate for half of what a record changes in a score, many draws at once."""
    ready = pg.AdaptiveCube().calibrate(QUERY, pg.Policy(DOMAIN), pg.Epsilon(2))
    step = choosing(ready)
    rate = ready.rate_of(Fraction(1, 2), step.share)

    def runs(table, n, rng):
        scores = _scores(step, table)
        below = [max(scores) - score for score in scores]
        if below == [0, 0]:
            return uniform(2, n, rng)[:, None]
        levels = InversionTable(Levels(rate, tuple(sorted(below)), (1, 1)), limit=2).draw(n, rng)
        return np.where(levels == 0, int(np.argmin(below)), int(np.argmax(below)))[:, None]

    return runs, pg.Policy(DOMAIN), QUERY


def _scores(step, table):
    counts = tables_of(table)
    return [
        int(np.abs(counts[mask] - estimate).sum()) - penalty
        for mask, estimate, penalty in zip(step.masks, step.estimates, step.penalties, strict=True)
    ]
