"""Cubes from noisy numbers: start at ``finish``, then ``fit`` and ``release``."""

from policygraph.published.cubes.release import CubeRelease

__all__ = ["CubeRelease"]
