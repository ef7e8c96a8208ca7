"""Cubes from noisy numbers: start at ``fit``, then ``release``."""

from policygraph.published.cubes.release import CubeRelease

__all__ = ["CubeRelease"]
