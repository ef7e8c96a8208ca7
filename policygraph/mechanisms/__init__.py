"""Mechanisms: ``calibrate`` without data, ``run`` with data; start at ``base``."""

from policygraph.mechanisms.additive import Gaussian, Laplace, for_loss
from policygraph.mechanisms.auto import choose
from policygraph.mechanisms.base import Calibrated, Mechanism, Noise
from policygraph.mechanisms.constrained.mechanism import Fitted, Kernel
from policygraph.mechanisms.cube.mechanism import Cube, CubeNoise
from policygraph.mechanisms.exponential.mechanism import Exponential
from policygraph.mechanisms.measured import Measured, MeasuredNoise
from policygraph.mechanisms.partitioned.mechanism import Partitioned
from policygraph.mechanisms.sparse import Sparse, SparseNoise
from policygraph.mechanisms.strategy.mechanism import MatrixMechanism
from policygraph.mechanisms.transformed.mechanism import (
    Transformed,
    TransformedConsistent,
    TransformedGaussian,
    TransformedLaplace,
)

__all__ = [
    "Calibrated",
    "Cube",
    "CubeNoise",
    "Exponential",
    "Fitted",
    "Gaussian",
    "Kernel",
    "Laplace",
    "MatrixMechanism",
    "Measured",
    "MeasuredNoise",
    "Mechanism",
    "Noise",
    "Partitioned",
    "Sparse",
    "SparseNoise",
    "Transformed",
    "TransformedConsistent",
    "TransformedGaussian",
    "TransformedLaplace",
    "choose",
    "for_loss",
]
