"""Buckets of cells and the policy graph of the buckets; start at ``base``."""

from policygraph.mechanisms.partitioned.merge import merge_graph, merge_policy
from policygraph.mechanisms.partitioned.partition import Partition, z_order

__all__ = ["Partition", "merge_graph", "merge_policy", "z_order"]
