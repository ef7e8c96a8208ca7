"""What is given away; start at ``release``."""

from policygraph.release.release import Release, Table

__all__ = ["Release", "Table"]
