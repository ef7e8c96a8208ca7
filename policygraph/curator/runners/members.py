"""Runs a mechanism for single records under a policy that hides all records of a unit: on the same counts, at the loss of one record."""

from __future__ import annotations

from policygraph.curator.gate import Outputs, rows_at_most, sample
from policygraph.curator.histogram import Histogram
from policygraph.curator.noise import Rng
from policygraph.mechanisms.members import OnMembers


def draw(ready: OnMembers, data: Histogram, rng: Rng, n: int) -> Outputs:
    """Return n outputs of the mechanism itself."""
    return sample(ready.inner, data, rng, n)


def most_rows(ready: OnMembers, data: Histogram) -> int:
    """The most rows of a release of the mechanism itself."""
    return rows_at_most(ready.inner, data)
