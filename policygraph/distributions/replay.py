"""Noise drawn again in public, to see how far an estimator errs. Owns :class:`Replay`.

NEVER used to hide anything: the words come from the published numbers themselves, so that everybody can draw the same ones. Noise that hides is drawn in
``policygraph.curator.noise`` alone. Floats will do here, since no privacy depends on these draws.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.distributions.noise import GAUSSIAN, NONE, Noise

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LISTED = 1 << 12
"""Deviations up to this have the values of a Gaussian draw listed; wider ones are rounded normal draws."""


class Replay:
    """Public draws of noise that repeat on every machine.

    Parameters
    ----------
    numbers
        What the draws are named after: published (noisy) numbers, or names. The same numbers give the same draws.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from policygraph.distributions.noise import laplace_noise
    >>> noise = laplace_noise(Fraction(2))
    >>> one, other = Replay([3, 1, 4]).draws(noise, (2, 3)), Replay([3, 1, 4]).draws(noise, (2, 3))
    >>> bool((one == other).all())
    True
    >>> abs(float(np.var(Replay([3]).draws(noise, (100_000,)))) / noise.variance - 1) < 0.05
    True
    """

    def __init__(self, *numbers: Any) -> None:
        digest = sha256()
        for each in numbers:
            text = each if isinstance(each, str) else np.ascontiguousarray(each, dtype=np.float64).tobytes()
            digest.update(text.encode() if isinstance(text, str) else text)
        self._bits = np.random.Philox(key=int.from_bytes(digest.digest()[:16], "big"))

    def uniform(self, shape: tuple[int, ...]) -> Floats:
        """Numbers between 0 and 1, both excluded."""
        words = self._bits.random_raw(int(np.prod(shape)))
        return ((words >> np.uint64(11)).astype(np.float64).reshape(shape) + 0.5) * 2.0**-53

    def draws(self, noise: Noise, shape: tuple[int, ...]) -> Ints:
        """Independent draws of a noise distribution."""
        if noise.distribution == NONE:
            return np.zeros(shape, dtype=np.int64)
        uniform = self.uniform(shape)
        if noise.distribution == GAUSSIAN:
            return _gaussian(uniform, float(noise.parameter))
        return _laplace(uniform, float(noise.parameter))


def _laplace(uniform: Floats, scale: float) -> Ints:
    """Discrete Laplace draws by inversion: P(X > k) = q^(k+1) / (1 + q) for k >= 0, and the same on the other side."""
    high = uniform >= 0.5
    tail = np.where(high, 1.0 - uniform, uniform)
    steps = np.ceil(-scale * (np.log(tail) + np.log1p(np.exp(-1.0 / scale)))) - 1.0
    size = np.maximum(steps, 0.0).astype(np.int64)
    made: Ints = np.where(high, size, -size)
    return made


def _gaussian(uniform: Floats, square: float) -> Ints:
    """Discrete Gaussian draws by inversion of the listed distribution; wide ones are rounded normal draws."""
    from scipy.special import ndtri

    sigma = square**0.5
    if sigma > LISTED:
        wide: Ints = np.rint(ndtri(uniform) * sigma).astype(np.int64)
        return wide
    reach = int(np.ceil(9 * sigma)) + 9
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values.astype(np.float64) ** 2) / (2 * square))
    made = np.searchsorted(np.cumsum(weights) / weights.sum(), uniform)
    return np.asarray(np.minimum(made, 2 * reach) - reach, dtype=np.int64)
