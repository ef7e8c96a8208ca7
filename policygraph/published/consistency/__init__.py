"""Noisy histograms made to fit what every histogram fits: whole, non-negative, with its known totals; start at ``fit``."""

from policygraph.published.consistency.fit import consistent
from policygraph.published.consistency.line import isotonic_lines
from policygraph.published.consistency.obstacle import nearest_forest, nearest_graph
from policygraph.published.consistency.rounding import round_in_order

__all__ = ["consistent", "isotonic_lines", "nearest_forest", "nearest_graph", "round_in_order"]
