"""Exact samplers and random sources: start with :mod:`.laplace`, then :mod:`.inversion` for how it is exact.

May import ``policygraph.errors``, ``policygraph.exact`` and its own modules.  Nothing here sees a record:
the noise is drawn from a scale and a source alone.  The argument for exactness is
``docs/explanation/proofs/discrete-noise.md``.
"""

from policygraph.curator.noise.gaussian import discrete_gaussian
from policygraph.curator.noise.laplace import discrete_laplace
from policygraph.curator.noise.lattice import gaussian_on_lattice, laplace_on_lattice, round_to_lattice
from policygraph.curator.noise.moments import (
    gaussian_pmf,
    gaussian_quantile,
    gaussian_variance,
    laplace_pmf,
    laplace_quantile,
    laplace_variance,
)
from policygraph.curator.noise.rng import KeyedRng, Rng, SecureRng, SeededRng

__all__ = [
    "KeyedRng",
    "Rng",
    "SecureRng",
    "SeededRng",
    "discrete_gaussian",
    "discrete_laplace",
    "gaussian_on_lattice",
    "gaussian_pmf",
    "gaussian_quantile",
    "gaussian_variance",
    "laplace_on_lattice",
    "laplace_pmf",
    "laplace_quantile",
    "laplace_variance",
    "round_to_lattice",
]
