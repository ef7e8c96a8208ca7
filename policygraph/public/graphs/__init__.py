"""Policy graphs: which two records may not be told apart.

Read ``base`` (:class:`PolicyGraph`) first, then ``answers`` (what it answers), then the rules: ``simple``, ``listed``
and ``composed``.
"""

from policygraph.public.graphs.base import PolicyGraph
from policygraph.public.graphs.bottom import BOTTOM, Bottom, Vertex
from policygraph.public.graphs.composed import BlockGrid, L1Ball, Product
from policygraph.public.graphs.listed import Blocks, Edges
from policygraph.public.graphs.rule import Rule
from policygraph.public.graphs.simple import Bit, Complete, Empty, Path

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
