"""Rewrites of a histogram under a policy graph into one whose moves change one coordinate each; start at ``base``."""

from policygraph.public.reductions.base import Reduction, Totals
from policygraph.public.reductions.grid import GridTransform
from policygraph.public.reductions.spanning import spanning_transform
from policygraph.public.reductions.transform import EdgeTransform, transform
from policygraph.public.reductions.tree import ForestTransform, LineTransform

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
