"""Released networks made usable: consistent group counts, synthetic graphs, statistics; start at ``synthetic``."""

from policygraph.estimation.networks.closing import close_triangles
from policygraph.estimation.networks.comparison import GraphComparison, compare_graphs
from policygraph.estimation.networks.degrees import PublicDegrees
from policygraph.estimation.networks.mixing import ConsistentMixing, consistent_mixing, mixing_limits
from policygraph.estimation.networks.nearest import nearest_network
from policygraph.estimation.networks.statistics import (
    DegreeCounts,
    Summary,
    class_assortativity,
    degree_assortativity,
    degree_counts,
    joint_assortativity,
    summarise,
)
from policygraph.estimation.networks.synthetic import (
    Approached,
    SyntheticGraph,
    synthetic_from_release,
    synthetic_graph,
    to_networkx,
)

__all__ = [
    "Approached",
    "ConsistentMixing",
    "DegreeCounts",
    "GraphComparison",
    "PublicDegrees",
    "Summary",
    "SyntheticGraph",
    "class_assortativity",
    "close_triangles",
    "compare_graphs",
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
