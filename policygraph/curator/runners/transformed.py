"""Runs a mechanism on numbers that are computed from the counts: edge values of a forest, or counts of buckets."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from policygraph.curator.gate import sample
from policygraph.curator.histogram import Histogram
from policygraph.curator.noise import Rng
from policygraph.mechanisms.base import answers_of
from policygraph.mechanisms.transformed.mechanism import OnTransformed


def draw(ready: OnTransformed, data: Histogram, rng: Rng, n: int) -> npt.NDArray[Any]:
    """Return n outputs: the inner mechanism goes through the gate by itself, and numbers that no move changes are added."""
    values, exact = ready.transform(data.vector())
    inner = Histogram.derived(ready.inner.query.domain, values)
    return ready.decode(answers_of(ready.inner, sample(ready.inner, inner, rng, n)), exact)
