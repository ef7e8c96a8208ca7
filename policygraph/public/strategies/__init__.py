"""Strategies: what to measure so that a workload can be answered well; start at ``strategy``."""

from policygraph.public.strategies.bases import AxisBase, Base, ForestBase
from policygraph.public.strategies.factors import Factor, Haar, Tree
from policygraph.public.strategies.optimise import Candidate, Optimised, optimise, weigh
from policygraph.public.strategies.plain import plain_strategies
from policygraph.public.strategies.strategy import Strategy, strategy_from_spec
from policygraph.public.strategies.workload import Workload

__all__ = [
    "AxisBase",
    "Base",
    "Candidate",
    "Factor",
    "ForestBase",
    "Haar",
    "Optimised",
    "Strategy",
    "Tree",
    "Workload",
    "optimise",
    "plain_strategies",
    "strategy_from_spec",
    "weigh",
]
