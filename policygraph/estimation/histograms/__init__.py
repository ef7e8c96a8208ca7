"""Noisy histograms made to fit what every histogram fits: whole, non-negative, with its known totals; start at ``fit``."""

from policygraph.estimation.histograms.fit import consistent
from policygraph.estimation.histograms.line import isotonic_lines
from policygraph.estimation.histograms.obstacle import nearest_forest, nearest_graph
from policygraph.estimation.histograms.rounding import round_in_order

__all__ = ["consistent", "isotonic_lines", "nearest_forest", "nearest_graph", "round_in_order"]
