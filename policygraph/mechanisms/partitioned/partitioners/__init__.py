"""Buckets chosen from the data under a privacy budget; start at ``base``."""

from policygraph.mechanisms.partitioned.partitioners.base import Chooser, Partitioner
from policygraph.mechanisms.partitioned.partitioners.interval import Intervals
from policygraph.mechanisms.partitioned.partitioners.matching import Matchings

__all__ = ["Chooser", "Intervals", "Matchings", "Partitioner"]
