"""Released networks made usable: consistent group counts, synthetic graphs, statistics; start at ``synthetic``."""

from policygraph.published.networks.consistent import ConsistentMixing, consistent_mixing, mixing_limits
from policygraph.published.networks.degrees import PublicDegrees
from policygraph.published.networks.distribution import DegreeCounts, degree_counts
from policygraph.published.networks.from_release import synthetic_from_release
from policygraph.published.networks.graphs import to_networkx
from policygraph.published.networks.nearest import nearest_network
from policygraph.published.networks.statistics import (
    Summary,
    class_assortativity,
    degree_assortativity,
    joint_assortativity,
    summarise,
)
from policygraph.published.networks.synthetic import SyntheticGraph, synthetic_graph

__all__ = [
    "ConsistentMixing",
    "DegreeCounts",
    "PublicDegrees",
    "Summary",
    "SyntheticGraph",
    "class_assortativity",
    "consistent_mixing",
    "degree_assortativity",
    "degree_counts",
    "joint_assortativity",
    "mixing_limits",
    "nearest_network",
    "summarise",
    "synthetic_from_release",
    "synthetic_graph",
    "to_networkx",
]
