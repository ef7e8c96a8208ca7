"""Rewrites of a histogram under a policy graph into one whose moves change one coordinate each; start at ``base``."""

from policygraph.transforms.incidence.base import Reduction, Totals
from policygraph.transforms.incidence.grid import GridTransform
from policygraph.transforms.incidence.transform import EdgeTransform, transform
from policygraph.transforms.incidence.tree import ForestTransform, LineTransform, spanning_transform

__all__ = [
    "EdgeTransform",
    "ForestTransform",
    "GridTransform",
    "LineTransform",
    "Reduction",
    "Totals",
    "spanning_transform",
    "transform",
]
