"""How large the noise of a published cell is. Owns :func:`factors_at` and :func:`within_95`.

For reports: floats, rounded towards the larger error. Imports ``public.cubes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

from policygraph.public.cubes.choose import Choice, fitted_of, measured_precisions
from policygraph.public.cubes.lattice import Family, Floats, Lattice
from policygraph.public.cubes.variances import plain_factors

__all__ = ["factors_at", "within_95"]

ROUNDING = 0.005
"""Share of the 5 % that is kept for the distance of discrete and continuous Laplace noise."""


def factors_at(
    lattice: Lattice, choice: Choice, known: Sequence[int], masks: Sequence[int], *, consistent: bool
) -> Floats:
    """Variance of a cell of some cuboids in units of the noise variance.

    Examples
    --------
    >>> from policygraph.public.domain import Domain
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
        The law of one noise: its scale, or its variance parameter.

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
