"""Policy graphs: which two records may not be told apart.

Read ``base`` (:class:`PolicyGraph`) first, then ``answers`` (what it answers), then the rules: ``simple``, ``listed``
and ``composed``.
"""

from policygraph.model.graphs.base import PolicyGraph
from policygraph.model.graphs.bottom import BOTTOM, Bottom, Vertex
from policygraph.model.graphs.composed import BlockGrid, L1Ball, Product
from policygraph.model.graphs.listed import Blocks, Edges
from policygraph.model.graphs.rule import Rule
from policygraph.model.graphs.simple import Bit, Complete, Empty, Path

__all__ = [
    "BOTTOM",
    "Bit",
    "BlockGrid",
    "Blocks",
    "Bottom",
    "Complete",
    "Edges",
    "Empty",
    "L1Ball",
    "Path",
    "PolicyGraph",
    "Product",
    "Rule",
    "Vertex",
]
