"""Cubes from noisy numbers: start at ``finish``, then ``fit`` and ``release``."""

from policygraph.estimation.cubes.release import CubeRelease

__all__ = ["CubeRelease"]
