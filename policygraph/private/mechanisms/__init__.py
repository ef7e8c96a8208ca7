"""Mechanisms: ``calibrate`` without data, ``run`` with data; start at ``base``."""

from policygraph.private.mechanisms.additive import Gaussian, Laplace, for_loss
from policygraph.private.mechanisms.base import Calibrated, Mechanism, Noise
from policygraph.private.mechanisms.cube import Cube, CubeNoise
from policygraph.private.mechanisms.exponential import Exponential
from policygraph.private.mechanisms.kernel import Fitted, Kernel
from policygraph.private.mechanisms.kernel_choice import choose
from policygraph.private.mechanisms.transformed import (
    TransformedConsistent,
    TransformedGaussian,
    TransformedLaplace,
)
from policygraph.private.mechanisms.transformed_any import Transformed

__all__ = [
    "Calibrated",
    "Cube",
    "CubeNoise",
    "Exponential",
    "Fitted",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Mechanism",
    "Noise",
    "Transformed",
    "TransformedConsistent",
    "TransformedGaussian",
    "TransformedLaplace",
    "choose",
    "for_loss",
]
