"""Tables in: records are counted into cells inside DuckDB; start at ``tables``."""

from policygraph.curator.counting.edges import read_edges
from policygraph.curator.counting.tables import count_cells

__all__ = ["count_cells", "read_edges"]
