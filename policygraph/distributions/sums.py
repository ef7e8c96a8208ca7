"""How large a sum of independent discrete noises is. Owns :func:`sum_within`.

For reports only: floats, rounded towards the larger error; no privacy depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from policygraph.distributions.moments import gaussian_quantile, laplace_quantile

Floats = npt.NDArray[np.float64]

SHARE = Fraction(95, 100)
FINE = 64
"""Laplace scales and Gaussian deviations up to this are summed value by value; larger ones on a coarser grid."""
LONGEST = 1 << 20


def sum_within(weights: Sequence[int], parameter: Fraction, *, laplace: bool) -> int:
    """Find t such that sum_j weights[j] * Z_j is within t with probability 0.95 at least, Z_j independent.

    Parameters
    ----------
    weights
        Whole numbers; their signs do not matter.
    parameter
        Scale of the discrete Laplace distribution, or variance parameter of the discrete Gaussian distribution.
    laplace
        Which of the two.

    Examples
    --------
    >>> sum_within([2], Fraction(1), laplace=True), sum_within([1, 1, 1, 1], Fraction(1), laplace=True)
    (6, 5)

    Notes
    -----
    The distribution of the sum is the inverse transform of the product of the characteristic functions. A Laplace variable is a
    difference of two geometric ones, each the floor of an exponential one, so that on a grid of step h it moves by less
    than h: |sum| <= h |sum on the grid| + (h - 1) sum |w|. A wide Gaussian sum is as good as normal.
    """
    sizes = sorted(abs(int(w)) for w in weights if w)
    if not sizes:
        return 0
    if len(sizes) == 1:
        one = laplace_quantile(parameter, SHARE) if laplace else gaussian_quantile(parameter, SHARE)
        return sizes[0] * int(one)
    if not laplace and parameter > FINE**2:
        return math.ceil(1.96 * math.sqrt(float(parameter) * sum(w * w for w in sizes))) + sum(sizes)
    step = max(1, math.ceil(parameter / FINE)) if laplace else 1
    scale = float(parameter) / step
    spread = math.sqrt((2 * scale**2 if laplace else scale) * sum(w * w for w in sizes))
    length = 1 << math.ceil(
        math.log2(12 * spread + 40 * sizes[-1] * (scale if laplace else math.sqrt(scale)) + 64)
    )
    if length > LONGEST:
        return math.ceil(real_within(spread * step, laplace=laplace)) + 2 * step * sum(sizes)
    angles = 2 * np.pi * np.arange(length // 2 + 1) / length
    transform = np.ones_like(angles)
    for size, count in zip(*np.unique(sizes, return_counts=True), strict=True):
        transform *= _transform(angles * float(size), scale, laplace=laplace) ** int(count)
    chances = np.maximum(np.fft.irfft(transform, length)[: length // 2], 0.0)
    inside = chances[0] + 2 * np.concatenate([[0.0], np.cumsum(chances[1:])])
    # A quantile that float errors could miss is taken one step larger.
    at = int(np.searchsorted(inside, float(SHARE) + 1e-9))
    return step * at + (step - 1) * sum(sizes)


def real_within(deviation: float, *, laplace: bool) -> float:
    """Bound the 95 % quantile of a weighted sum of continuous Laplace variables, or of sub-Gaussian ones.

    Notes
    -----
    Sums of symmetric Laplace variables are unimodal, so that P(|X| > k s) <= 4 / (9 k^2) for k^2 >= 8/3 (Vysochanskij and
    Petunin 1980); a sub-Gaussian variable has P(|X| > k s) <= 2 exp(-k^2 / 2).
    """
    return deviation * (math.sqrt(4 / (9 * 0.05)) if laplace else math.sqrt(2 * math.log(40)))


def _transform(angles: Floats, scale: float, *, laplace: bool) -> Floats:
    """Characteristic function of one variable."""
    if laplace:
        q = math.exp(-1 / scale) if scale > 0 else 0.0
        made: Floats = (1 - q) ** 2 / (1 - 2 * q * np.cos(angles) + q * q)
        return made
    most = math.ceil(12 * math.sqrt(scale)) + 12
    values = np.arange(1, most + 1)
    weights = np.exp(-(values.astype(float) ** 2) / (2 * scale))
    total = np.ones_like(angles)
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        total = total + 2 * weight * np.cos(angles * value)
    normed: Floats = total / total_at_zero(weights)
    return normed


def total_at_zero(weights: Floats) -> float:
    """Sum of the weights of all values, the middle one being 1."""
    return 1.0 + 2.0 * float(weights.sum())
