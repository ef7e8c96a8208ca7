"""A shift that makes counts non-negative with a stated probability. Owns :func:`shift_for`.

The shift is fixed before any noise is drawn: one that looked at the noise would let the noise be computed back from it.
``docs/explanation/proofs/cubes-consistency.md``, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, log, sqrt

from policygraph.estimation.cubes.cells import union
from policygraph.transforms.cuboids.lattice import Lattice

__all__ = ["lower_tail", "shift_for"]


def lower_tail(factor: float, distribution: str, parameter: float, chance: float) -> float:
    """What the noise of a cell stays above minus, but for a small probability.

    Parameters
    ----------
    factor
        Squared length of the combination of noises.
    distribution, parameter
        The law of one noise.
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
