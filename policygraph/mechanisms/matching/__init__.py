"""Exact matching on dense graphs with whole-number costs; start at ``solve``. Plain arrays only."""

from policygraph.mechanisms.matching.certificate import Certificate
from policygraph.mechanisms.matching.solve import Cover, cheapest_cover, maximum_weight_matching

__all__ = ["Certificate", "Cover", "cheapest_cover", "maximum_weight_matching"]
