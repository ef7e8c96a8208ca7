"""Outputs of mechanisms as the gate draws them, for tests."""

from __future__ import annotations

from policygraph.audit import noisy_many
from policygraph.curator.gate import draw, histogram
from policygraph.curator.histogram import Histogram
from policygraph.curator.runners.partitioned import choose
from policygraph.model.domain import Domain

__all__ = ["chosen", "chosen_many", "noisy", "noisy_many"]


def noisy(ready, table, rng):
    """One output of a calibrated mechanism."""
    return draw(ready, histogram(ready, table), rng)[0]


def chosen(chooser, counts, rng):
    """One partition of a chooser."""
    return chosen_many(chooser, counts, 1, rng)[0]


def chosen_many(chooser, counts, n, rng):
    """Independent partitions of a chooser, whose scores are computed once."""
    return choose(chooser, Histogram.of(Domain({"cell": chooser.size}), counts), rng, n)
