"""What several noisy tables say together. Owns :class:`Measurement`, :func:`combine`, :func:`variance_of`, :func:`reach_95`.

Tables that were measured one after the other, each with noise of its own, are averaged interaction by interaction with
their precisions: least squares over everything released so far (``docs/explanation/proofs/online.md``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.distributions.sums import linear_within
from policygraph.estimation.cubes.least_squares import below_known
from policygraph.transforms.cuboids.blocks import Tables, join, project, settle, split
from policygraph.transforms.cuboids.costs import block_variances, fitted_factors
from policygraph.transforms.cuboids.lattice import Family, Lattice


@dataclass(frozen=True, eq=False)
class Measurement:
    """One table that was released with independent noise on every cell.

    Attributes
    ----------
    mask
        The cuboid.
    values
        Its noisy cells.
    variance
        Variance of the noise of a cell.
    step
        The lattice that the noise is on: 1 over the weight of the table.
    scale
        Scale of the Laplace distribution, or root of the variance parameter of the Gaussian one, in the same units as the values.
    """

    mask: int
    values: npt.NDArray[Any]
    variance: float
    step: float = 1.0
    scale: float = 0.0


def _precisions(measured: Iterable[tuple[int, float]]) -> dict[int, float]:
    out: dict[int, float] = {}
    for mask, variance in measured:
        out[mask] = out.get(mask, 0.0) + 1.0 / variance
    return out


def variance_of(
    lattice: Lattice, mask: int, measured: Iterable[tuple[int, float]], known: Sequence[int] = ()
) -> float:
    """Variance of a cell of a cuboid after least squares; infinite where it cannot be computed. No data are needed.

    Parameters
    ----------
    measured
        Cuboids with the variance of their noise; a cuboid may occur several times.
    known
        Cuboids that are known exactly.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 3}))
    >>> variance_of(lattice, 0b01, [(0b11, 2.0)]), variance_of(lattice, 0b01, [(0b11, 2.0), (0b01, 3.0)])
    (6.0, 2.0)
    >>> variance_of(lattice, 0b11, [(0b01, 2.0), (0b10, 2.0)]), variance_of(lattice, 0b00, [], [0b01])
    (inf, 0.0)
    """
    precisions = _precisions(measured)
    tops = [*precisions, *known]
    if not any(lattice.computable(mask, of=top) for top in tops):
        return inf
    family = Family(lattice, tops)
    factors = fitted_factors(family, family.spread(list(precisions), list(precisions.values())), known)
    return float(factors[family.index[mask]])


def combine(
    lattice: Lattice, measured: Sequence[Measurement], known: Mapping[int, Any] | None = None
) -> Tables:
    """Least-squares estimates of every cuboid below a measured or a known one.

    Returns
    -------
    dict
        Tables by mask. They agree with each other and with the known ones to the last bit.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 2}))
    >>> joint = Measurement(3, np.array([4, 1, 2, 3]), 1.0)
    >>> made = combine(lattice, [joint, Measurement(1, np.array([8, 5]), 2.0)])
    >>> made[1].tolist(), made[3].sum(axis=1).tolist()
    ([6.5, 5.0], [6.5, 5.0])
    """
    exact = below_known(lattice, known or {})
    precisions = _precisions((each.mask, each.variance) for each in measured)
    family = Family(lattice, [*precisions, *(known or {})])
    tables: Tables = {}
    for each in measured:
        table = np.asarray(each.values, dtype=np.float64).reshape(lattice.shape(each.mask)) / each.variance
        # np.array, since a table of no attribute would become a bare number.
        tables[each.mask] = np.array(tables[each.mask] + table if each.mask in tables else table)
    split(family, tables)
    variances = block_variances(family, family.spread(list(precisions), list(precisions.values())))
    for mask, variance in zip(family.masks.tolist(), variances.tolist(), strict=True):
        if mask in exact:
            tables[mask] = project(exact[mask])
        else:
            tables[mask] *= variance
    join(family, tables)
    settle(family, tables, exact)
    return tables


def reach_95(variance: float, measured: Sequence[Measurement], distribution: str) -> float:
    """What 95 % of the noise of an estimate stays within, at least.

    Parameters
    ----------
    variance
        Variance of the estimate, a combination of the noises of the measurements.
    distribution
        ``discrete Laplace`` or ``discrete Gaussian``, for all of them.

    Notes
    -----
    As for a single release (:func:`~policygraph.distributions.sums.linear_within`), with noises of several scales: a combination of continuous Laplace
    variables is log-concave, whatever their scales. The combination itself is known by its variance only, so that ratios are taken at their largest.

    Examples
    --------
    >>> round(reach_95(4.0, [Measurement(0, np.zeros(1), 4.0, 1.0, 2.0)], "discrete Gaussian"), 2)
    5.43
    """
    if variance == 0:
        return 0.0
    laplace = distribution == "discrete Laplace"
    # In the units of each measurement the combination is one of noises of the least scale, with at most this squared length.
    scale = min(each.scale / each.step for each in measured)
    if laplace:
        square = variance * max(each.scale**2 / each.variance for each in measured) / scale**2
        steps = variance * max(each.step**2 / each.variance for each in measured)
        return float(linear_within(max(square, steps), scale, laplace=True))
    worst = max(each.scale**2 / each.variance for each in measured)
    return float(linear_within(variance * worst / scale**2, scale**2, laplace=False))
