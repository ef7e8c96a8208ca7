"""Buckets of cells and the policy graph of the buckets; start at ``base``."""

from policygraph.public.partition.base import Partition
from policygraph.public.partition.merge import merge_graph, merge_policy
from policygraph.public.partition.orders import z_order

__all__ = ["Partition", "merge_graph", "merge_policy", "z_order"]
