"""Discrete noise distributions as mathematics: enclosures, probabilities, variances, quantiles, limits. Nothing here draws or sees data.

Start at ``noise``; ``integers`` holds what the samplers of ``curator.noise`` invert.
"""

from policygraph.distributions.moments import (
    gaussian_pmf,
    gaussian_quantile,
    gaussian_variance,
    laplace_pmf,
    laplace_quantile,
    laplace_variance,
)
from policygraph.distributions.noise import Noise

__all__ = [
    "Noise",
    "gaussian_pmf",
    "gaussian_quantile",
    "gaussian_variance",
    "laplace_pmf",
    "laplace_quantile",
    "laplace_variance",
]
