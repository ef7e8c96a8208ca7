"""One page about a release that a director reads; start at ``page``."""

from policygraph.report.page import report

__all__ = ["report"]
