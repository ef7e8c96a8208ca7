"""A local page to work on: from a data file to a release and its report. Start at ``server``; ``work`` is what it does, ``pages`` what it shows."""

from policygraph.studio.server import Studio

__all__ = ["Studio"]
