"""Mechanisms: ``calibrate`` without data, ``run`` with data; start at ``base``."""

from policygraph.private.mechanisms.additive import Gaussian, Laplace, for_loss
from policygraph.private.mechanisms.base import Calibrated, Mechanism, Noise

__all__ = ["Calibrated", "Gaussian", "Laplace", "Mechanism", "Noise", "for_loss"]
