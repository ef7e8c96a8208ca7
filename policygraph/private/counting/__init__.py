"""Tables in: records are counted into cells inside DuckDB; start at ``tables``, then ``counts``."""

from policygraph.private.counting.counts import Counts
from policygraph.private.counting.edges import read_edges
from policygraph.private.counting.tables import count_cells

__all__ = ["Counts", "count_cells", "read_edges"]
