"""Post-processing: sees noisy values only; start at ``release``."""

from policygraph.published.release import Release, Table

__all__ = ["Release", "Table"]
