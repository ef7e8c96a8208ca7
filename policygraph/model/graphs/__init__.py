"""Policy graphs: which two records must not be told apart.

Read ``base`` (:class:`PolicyGraph`) first, then ``answers`` (what it answers), then ``rules`` (the kinds of graphs).
``forms`` reads and writes what people see of them.
"""

from policygraph.model.graphs.base import PolicyGraph
from policygraph.model.graphs.rules import (
    BOTTOM,
    Bit,
    BlockGrid,
    Blocks,
    Bottom,
    Complete,
    Edges,
    Empty,
    EuclideanBall,
    L1Ball,
    Path,
    Product,
    Rule,
    Vertex,
)

__all__ = [
    "BOTTOM",
    "Bit",
    "BlockGrid",
    "Blocks",
    "Bottom",
    "Complete",
    "Edges",
    "Empty",
    "EuclideanBall",
    "L1Ball",
    "Path",
    "PolicyGraph",
    "Product",
    "Rule",
    "Vertex",
]
