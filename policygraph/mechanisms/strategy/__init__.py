"""Strategies: what to measure so that a workload can be answered well; start at ``strategy``."""

from policygraph.mechanisms.strategy.bases import AxisBase, Coordinates, ForestBase
from policygraph.mechanisms.strategy.factors import Factor, Haar, Tree
from policygraph.mechanisms.strategy.optimise import Optimised, WeighedStrategy, optimise, weigh
from policygraph.mechanisms.strategy.plain import plain_strategies
from policygraph.mechanisms.strategy.strategy import Strategy, strategy_from_spec
from policygraph.mechanisms.strategy.workload import Workload

__all__ = [
    "AxisBase",
    "Coordinates",
    "Factor",
    "ForestBase",
    "Haar",
    "Optimised",
    "Strategy",
    "Tree",
    "WeighedStrategy",
    "Workload",
    "optimise",
    "plain_strategies",
    "strategy_from_spec",
    "weigh",
]
