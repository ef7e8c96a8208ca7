"""Buckets chosen from the data under a privacy budget; start at ``base``."""

from policygraph.private.partition.base import Chooser, Partitioner
from policygraph.private.partition.interval import Intervals
from policygraph.private.partition.matching import Matchings

__all__ = ["Chooser", "Intervals", "Matchings", "Partitioner"]
