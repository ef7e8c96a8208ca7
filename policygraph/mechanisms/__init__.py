"""Mechanisms: ``calibrate`` without data, ``run`` with data; start at ``base``."""

from policygraph.mechanisms.adaptive.mechanism import AdaptiveCube
from policygraph.mechanisms.additive import Gaussian, Laplace, for_loss
from policygraph.mechanisms.auto import choose
from policygraph.mechanisms.base import Calibrated, Mechanism, Noise
from policygraph.mechanisms.constrained.mechanism import Fitted, Kernel
from policygraph.mechanisms.cube.mechanism import Cube, CubeNoise
from policygraph.mechanisms.exponential.mechanism import Exponential, FreeLunch
from policygraph.mechanisms.measured import Measured, MeasuredNoise
from policygraph.mechanisms.partitioned.mechanism import Partitioned
from policygraph.mechanisms.residuals.mechanism import ResidualNoise, Residuals
from policygraph.mechanisms.sparse import Sparse, SparseNoise
from policygraph.mechanisms.strategy.mechanism import MatrixMechanism
from policygraph.mechanisms.transformed.adaptive import Adaptive
from policygraph.mechanisms.transformed.mechanism import (
    Transformed,
    TransformedConsistent,
    TransformedGaussian,
    TransformedLaplace,
)

__all__ = [
    "Adaptive",
    "AdaptiveCube",
    "Calibrated",
    "Cube",
    "CubeNoise",
    "Exponential",
    "Fitted",
    "FreeLunch",
    "Gaussian",
    "Kernel",
    "Laplace",
    "MatrixMechanism",
    "Measured",
    "MeasuredNoise",
    "Mechanism",
    "Noise",
    "Partitioned",
    "ResidualNoise",
    "Residuals",
    "Sparse",
    "SparseNoise",
    "Transformed",
    "TransformedConsistent",
    "TransformedGaussian",
    "TransformedLaplace",
    "choose",
    "for_loss",
]
