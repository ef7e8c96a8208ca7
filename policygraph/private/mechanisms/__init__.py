"""Mechanisms: ``calibrate`` without data, ``run`` with data; start at ``base``."""

from policygraph.private.mechanisms.additive import Gaussian, Laplace, for_loss
from policygraph.private.mechanisms.base import Calibrated, Mechanism, Noise
from policygraph.private.mechanisms.choose import choose
from policygraph.private.mechanisms.compare import Comparison, compare
from policygraph.private.mechanisms.cube import Cube, CubeNoise
from policygraph.private.mechanisms.exponential import Exponential
from policygraph.private.mechanisms.kernel import Fitted, Kernel
from policygraph.private.mechanisms.measured import Measured, MeasuredNoise
from policygraph.private.mechanisms.partitioned import Partitioned
from policygraph.private.mechanisms.sparse import Sparse, SparseNoise
from policygraph.private.mechanisms.strategy import MatrixMechanism
from policygraph.private.mechanisms.transformed import (
    TransformedConsistent,
    TransformedGaussian,
    TransformedLaplace,
)
from policygraph.private.mechanisms.transformed_any import Transformed

__all__ = [
    "Calibrated",
    "Comparison",
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
    "compare",
    "for_loss",
]
