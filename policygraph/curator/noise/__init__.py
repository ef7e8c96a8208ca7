"""Random words and exact samplers: start with :mod:`.rng`, then :mod:`.inversion` and :mod:`.discrete`.

Nothing here sees a record: noise is drawn from a parameter and an rng alone. The distributions themselves are ``policygraph.distributions``.
"""

from policygraph.curator.noise.discrete import discrete_gaussian, discrete_laplace
from policygraph.curator.noise.rng import KeyedRng, Rng, SecureRng, SeededRng

__all__ = ["KeyedRng", "Rng", "SecureRng", "SeededRng", "discrete_gaussian", "discrete_laplace"]
