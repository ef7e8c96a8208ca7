"""How large the noise of a published cell is. Owns :func:`factors_at`, :func:`within_95`, :func:`shift_for`.

For reports: floats, rounded towards the larger error. The shift that makes counts non-negative with a stated probability is fixed before any
noise is drawn: one that looked at the noise would let the noise be computed back from it
(``docs/explanation/proofs/cubes-consistency.md``, section 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, log, sqrt

import numpy as np

from policygraph.estimation.cubes.cells import union
from policygraph.transforms.cuboids.choose import Choice, fitted_of, measured_precisions
from policygraph.transforms.cuboids.costs import plain_factors
from policygraph.transforms.cuboids.lattice import Family, Floats, Lattice

ROUNDING = 0.005
"""Share of the 5 % that is kept for the distance of discrete and continuous Laplace noise."""


def factors_at(
    lattice: Lattice, choice: Choice, known: Sequence[int], masks: Sequence[int], *, consistent: bool
) -> Floats:
    """Variance of a cell of some cuboids in units of the noise variance.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 3}))
    >>> factors_at(lattice, Choice((("a", "b"),), (2,)), [], [1, 3], consistent=True).tolist()
    [0.75, 0.25]
    """
    measured = [lattice.mask(names) for names in choice.sets]
    family = Family(lattice, [*measured, *masks])
    if consistent:
        return fitted_of(choice, family, known)[family.at(masks)]
    return plain_factors(family, measured_precisions(choice, family), known)[family.at(masks)]


def within_95(factor: float, distribution: str, parameter: float) -> float:
    """What 95 % of the noise of a cell stays within, at least.

    Parameters
    ----------
    factor
        Variance of the cell in units of the noise variance: the squared length of the combination of noises.
    distribution, parameter
        The noise distribution, and its scale (Laplace) or variance parameter (Gaussian).

    Notes
    -----
    A cell is a combination sum c_i X_i of independent noises with sum c_i^2 = factor. A discrete Laplace variable is within
    1 of a continuous one of the same scale, with independent differences of mean 0; the continuous part is symmetric and
    unimodal, so that it exceeds k deviations with probability at most 4 / (9 k^2) (Vysochanskij and Petunin 1980), and
    the differences by Hoeffding's inequality stay within sqrt(2 ln(2 / 0.005) factor) but for 0.5 %. A discrete
    Gaussian variable is sub-Gaussian with its variance parameter (Canonne, Kamath and Steinke 2020).

    Examples
    --------
    >>> round(within_95(1.0, "discrete Laplace", 100.0)), round(within_95(4.0, "discrete Gaussian", 25.0), 1)
    (448, 27.2)
    """
    if factor == 0 or distribution == "none":
        return 0.0
    if distribution == "discrete Gaussian":
        return sqrt(factor * parameter * 2 * log(40))
    real = sqrt(2) * parameter * sqrt(4 / (9 * (0.05 - ROUNDING)))
    return sqrt(factor) * (real + sqrt(2 * log(2 / ROUNDING)))


def within_all(factor: float | Floats, distribution: str, parameter: float) -> float | Floats:
    """:func:`within_95` for one factor or an array of them; it grows with the root of the factor."""
    if not np.ndim(factor):
        return within_95(float(factor), distribution, parameter)
    made: Floats = np.sqrt(factor) * within_95(1.0, distribution, parameter)
    return made


def published_errors(
    values: Floats, estimate: Floats | None, deviation: float | Floats, width: float | Floats
) -> tuple[float | Floats, float | Floats]:
    """Stated deviation and 95 % range of published values.

    Parameters
    ----------
    values
        What is published.
    estimate
        The least-squares estimate, where something else is published.
    deviation, width
        Deviation and 95 % range of the estimate.

    Notes
    -----
    With 95 % the true count is within ``width`` of the estimate, and it is never negative. The range of a published value is its
    largest distance to a count of which both holds.

    Examples
    --------
    >>> published_errors(np.array([0.0, 7.0]), np.array([-4.0, 6.0]), 2.0, 5.0)[1].tolist()
    [1.0, 6.0]
    """
    if estimate is None:
        return deviation, width
    low, high = np.maximum(estimate - width, 0.0), np.maximum(estimate + width, 0.0)
    return deviation, np.maximum(np.abs(values - low), np.abs(values - high))


def lower_tail(factor: float, distribution: str, parameter: float, chance: float) -> float:
    """What the noise of a cell stays above minus, but for a small probability.

    Parameters
    ----------
    factor
        Squared length of the combination of noises.
    distribution, parameter
        The noise distribution and its parameter.
    chance
        The probability, below 1.

    Examples
    --------
    >>> round(lower_tail(1.0, "discrete Laplace", 10.0, 0.001), 1), round(lower_tail(4.0, "discrete Gaussian", 25.0, 0.001), 1)
    (111.8, 37.2)
    """
    if factor == 0 or distribution == "none":
        return 0.0
    if distribution == "discrete Gaussian":
        return sqrt(2 * factor * parameter * log(1 / chance))
    return sqrt(2 * factor) * parameter * (1 + log(1 / chance))


def shift_for(
    lattice: Lattice,
    published: Sequence[int],
    factors: Sequence[float],
    distribution: str,
    parameter: float,
    offset: Fraction,
) -> int:
    """What to add to every cell of the finest published table.

    Parameters
    ----------
    factors
        Largest variance of a cell of each published cuboid in units of the noise variance.
    offset
        The probability with which some published count may be negative still.

    Notes
    -----
    A cell of the table of T sums N of the finest cells, and so is shifted by N times the result. The probability is shared out evenly
    over all published cells (union bound).
    """
    top = union(published)
    cells = sum(lattice.size(mask) for mask in published)
    chance = float(offset) / cells
    needs = [
        lower_tail(factor, distribution, parameter, chance) / lattice.size(top & ~mask)
        for mask, factor in zip(published, factors, strict=True)
    ]
    return ceil(max(needs, default=0.0) * (1 + 1e-9))
