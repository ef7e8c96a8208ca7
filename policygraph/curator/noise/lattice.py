"""Real-valued queries on a lattice: owns rounding a matrix without data and adding noise in lattice steps.

A lattice is the set of multiples of a positive
rational ``unit``; a value on it is held as the integer that multiplies the unit.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from policygraph.curator.noise.gaussian import discrete_gaussian
from policygraph.curator.noise.laplace import discrete_laplace
from policygraph.curator.noise.rng import Rng
from policygraph.errors import InputError, RefusedError
from policygraph.exact import Exact, as_fraction, show

__all__ = ["gaussian_on_lattice", "laplace_on_lattice", "round_to_lattice"]

Ints = npt.NDArray[np.int64]

_MOST = 1 << 62


def round_to_lattice(matrix: npt.ArrayLike, granularity: Exact) -> tuple[Ints, Fraction]:
    """Round every entry of a query matrix to the nearest multiple of a rational step.

    Parameters
    ----------
    matrix
        Finite real numbers.  It is public and must not have been computed from the records.
    granularity
        The step, a positive rational.

    Returns
    -------
    rounded, unit
        Integers and the step, with |rounded * unit - matrix| <= unit / 2 entry by entry; ties go to even.

    Raises
    ------
    InputError
        If an entry is not finite or the step is not positive.
    RefusedError
        If an entry needs more than 62 bits in this step.

    Notes
    -----
    Privacy is kept because the rounding comes before the data: the mechanism answers V x for the integer
    matrix V returned here, V x is an integer vector for every integer table x, and the sensitivity is
    max ||V m|| over the moves m, an integer maximum of V itself and not of the real matrix that it stands
    for.  Noise on the integers with that sensitivity makes V x private; multiplying by the unit is
    post-processing.  The price is accuracy only: |(V * unit - W) x| <= unit / 2 * ||x||_1 for every answer.
    Rounding the *answers* W x instead would need the sensitivity of the rounded answers, which can exceed
    that of W, and floating-point products would not be on the lattice at all.

    Examples
    --------
    >>> round_to_lattice([[0.70710678, -0.70710678]], "1/1000")[0].tolist()
    [[707, -707]]
    """
    unit = _unit(granularity, "granularity")
    array = np.asarray(matrix)
    if array.dtype.kind not in "iuf":
        raise InputError(
            f"A matrix of {array.dtype} cannot be rounded: expected real numbers.", code="lattice.not-real"
        )
    if not np.isfinite(array).all():
        raise InputError(
            "The matrix holds an entry that is not finite: expected real numbers only.",
            code="lattice.not-real",
        )
    # Matrices of contrasts and averages repeat few numbers, so each is rounded once, as the fraction it is.
    distinct, where = np.unique(array, return_inverse=True)
    rounded = [round(Fraction(number) / unit) for number in distinct.tolist()]
    largest = max((abs(n) for n in rounded), default=0)
    if largest > _MOST:
        raise RefusedError(
            f"granularity={show(unit)}: an entry becomes {largest} steps, more than 2**62. Use a coarser step.",
            code="lattice.too-fine",
            granularity=unit,
        )
    return np.array(rounded, np.int64)[where].reshape(array.shape), unit


def laplace_on_lattice(values: Ints, unit: Exact, scale: Exact, source: Rng | None = None) -> Ints:
    """Add discrete Laplace noise to values on a lattice.

    Parameters
    ----------
    values
        Integers; the value meant is the integer times the unit.
    unit
        The step of the lattice, a positive rational.
    scale
        The scale of the noise in the units of the query, that is sensitivity / epsilon; the steps have
        scale / unit.
    source
        Where the random words come from; the secure source of the process by default.

    Returns
    -------
    numpy.ndarray
        Noisy integers, again in steps of the unit.

    Raises
    ------
    InputError
        If the values are not integers of at most 62 bits.

    Notes
    -----
    Values of at most 2**62 and noise below 2**62 cannot wrap.

    Examples
    --------
    >>> from policygraph.curator.noise.rng import SeededRng
    >>> laplace_on_lattice(np.array([3000, 0]), "1/1000", 2, SeededRng(1)).shape
    (2,)
    """
    step = _unit(unit, "unit")
    checked = _values(values)
    noise = discrete_laplace(as_fraction(scale, "scale") / step, checked.shape, source)
    return checked + noise


def gaussian_on_lattice(values: Ints, unit: Exact, sigma_squared: Exact, source: Rng | None = None) -> Ints:
    """Add discrete Gaussian noise to values on a lattice.

    Parameters
    ----------
    values
        Integers; the value meant is the integer times the unit.
    unit
        The step of the lattice, a positive rational.
    sigma_squared
        The variance parameter in the squared units of the query; the steps have sigma_squared / unit**2.
    source
        Where the random words come from; the secure source of the process by default.

    Returns
    -------
    numpy.ndarray
        Noisy integers, again in steps of the unit.

    Raises
    ------
    InputError
        If the values are not integers of at most 62 bits.

    Examples
    --------
    >>> from policygraph.curator.noise.rng import SeededRng
    >>> gaussian_on_lattice(np.array([3000, 0]), "1/1000", 2, SeededRng(1)).shape
    (2,)
    """
    step = _unit(unit, "unit")
    checked = _values(values)
    noise = discrete_gaussian(as_fraction(sigma_squared, "sigma_squared") / step**2, checked.shape, source)
    return checked + noise


def _unit(unit: Exact, name: str) -> Fraction:
    step = as_fraction(unit, name)
    if step <= 0:
        raise InputError(f"{name}={show(step)}: expected a step > 0.", code="lattice.unit", value=step)
    return step


def _values(values: Ints) -> Ints:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise InputError(
            f"Values of {array.dtype} are not on a lattice: expected integers. Round the query first, not its answer.",
            code="lattice.values",
        )
    if array.size and (int(array.max()) > _MOST or int(array.min()) < -_MOST):
        raise InputError("A value has more than 62 bits: expected at most 2**62.", code="lattice.values")
    return array.astype(np.int64)
