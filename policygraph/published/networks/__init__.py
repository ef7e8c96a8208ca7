"""Released networks made usable: consistent group counts, synthetic graphs, statistics; start at ``synthetic``."""

from policygraph.published.networks.consistent import ConsistentMixing, consistent_mixing, mixing_limits
from policygraph.published.networks.degrees import PublicDegrees
from policygraph.published.networks.nearest import nearest_network
from policygraph.published.networks.synthetic import SyntheticGraph, synthetic_graph

__all__ = [
    "ConsistentMixing",
    "PublicDegrees",
    "SyntheticGraph",
    "consistent_mixing",
    "mixing_limits",
    "nearest_network",
    "synthetic_graph",
]
