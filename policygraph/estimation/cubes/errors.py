"""How large the noise of a published cell is. Owns :func:`factors_at`, :func:`ranges_at`, :func:`shift_for`.

For reports: floats, rounded towards the larger error. The shift that makes counts non-negative with a stated probability is fixed before any
noise is drawn: one that looked at the noise would let the noise be computed back from it
(``docs/explanation/proofs/cubes-consistency.md``, section 5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil, log, sqrt
from typing import Any

import numpy as np

from policygraph.distributions.sums import Terms, combination_within, gathered, linear_within
from policygraph.errors import RefusedError
from policygraph.estimation.cubes.cells import summed, union
from policygraph.estimation.errors import Seen, bounded
from policygraph.release.release import Errors
from policygraph.transforms.cuboids.choose import Choice, fitted_of, measured_precisions
from policygraph.transforms.cuboids.costs import plain_factors
from policygraph.transforms.cuboids.lattice import Family, Floats, Ints, Lattice

WIDE = 16.0
"""Laplace noise of this scale, and Gaussian noise of half this deviation, is wide: it is as good as continuous."""
MOST_LISTED = 1 << 20
"""Most pairs of a block and a measured cuboid that are listed for one published cuboid."""
MOST_TAILS = 4096
"""Most published tables whose combinations of noises are listed for an offset; the others are judged by their variances."""
MOST_INVERTED, MOST_DIFFERENT = 256, 4096
"""Most distributions of combinations that are computed for one cube, and most coefficients of one; beyond, ranges follow from variances."""


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


def coefficients_at(
    lattice: Lattice, choice: Choice, known: Sequence[int], mask: int, *, consistent: bool
) -> tuple[Floats, Floats] | None:
    """The combination of noises behind a cell of a cuboid: absolute coefficients, and how often each occurs; the same for all its cells.

    Returns
    -------
    tuple or None
        None where there are too many to list.

    Notes
    -----
    The coefficient of a measured number is its weight times the covariance of its own estimate with that of the cell, and depends on which attributes of the two
    cells agree: with v_S the variance of block S and I the common attributes, it is weight / (cells of T times cells of C) times the sum over S in I of
    v_S |S| prod over i in S of (n_i - 1 where they agree, -1 where they do not).

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 3}))
    >>> sizes, counts = coefficients_at(lattice, Choice((("a", "b"),), (2,)), [], 1, consistent=True)
    >>> sizes.tolist(), counts.tolist()
    ([0.5], [3.0])
    """
    if any(lattice.computable(mask, of=other) for other in known):
        return np.zeros(0), np.zeros(0)
    masks = np.array([lattice.mask(names) for names in choice.sets], dtype=np.int64)
    weights = np.array(choice.weights, dtype=np.float64)
    axes, shape = lattice.axes(mask), lattice.domain.shape
    sizes = np.array([float(lattice.size(m)) for m in masks.tolist()])
    if not consistent:
        above = np.flatnonzero((masks & mask) == mask)
        best = above[np.argmin(sizes[above] / weights[above] ** 2)]
        return np.array([1 / weights[best]]), np.array([sizes[best] / lattice.size(mask)])
    if choice.kind == "interactions":
        return _of_blocks(lattice, masks, weights, known, mask)
    if (1 << len(axes)) * len(masks) > MOST_LISTED:
        return None
    below = np.array(list(lattice.below(mask)), dtype=np.int64)
    inside = (masks[None, :] & below[:, None]) == below[:, None]
    cells = np.array([float(lattice.size(m)) for m in below.tolist()])
    with np.errstate(divide="ignore"):
        variances = 1 / ((inside * (weights**2 / sizes)[None, :]).sum(axis=1) * cells)
    for other in known:
        variances[(below & ~np.int64(other)) == 0] = 0.0
    # Attributes of one value have empty blocks, which need no estimate.
    single = sum(1 << axis for axis in axes if shape[axis] == 1)
    variances[(below & single) != 0] = 0.0
    weighed = dict(zip(below.tolist(), (variances * cells).tolist(), strict=True))
    found, many = [], []
    for common in np.unique(masks & mask).tolist():
        shared = lattice.axes(common)
        here = np.array([weighed[m] for m in lattice.below(common)]).reshape((2,) * len(shared))
        times = np.ones((2,) * len(shared))
        for place, axis in enumerate(reversed(shared)):
            apart, equal = np.take(here, 0, place), np.take(here, 1, place)
            here = np.stack([apart - equal, apart + (shape[axis] - 1) * equal], axis=place)
            times = times * np.array([shape[axis] - 1.0, 1.0]).reshape(
                [2 if at == place else 1 for at in range(len(shared))]
            )
        mine = (masks & mask) == common
        found.append(np.outer(weights[mine] / sizes[mine], np.abs(here).ravel()).ravel())
        many.append(np.outer(sizes[mine] / lattice.size(common), times.ravel()).ravel())
    return gathered(np.concatenate(found) / lattice.size(mask), np.concatenate(many))


def _of_blocks(
    lattice: Lattice, masks: Any, weights: Floats, known: Sequence[int], mask: int
) -> tuple[Floats, Floats]:
    """Coefficients where interactions are measured: each block has one measurement."""
    shape, found, many = lattice.domain.shape, [np.zeros(0)], [np.zeros(0)]
    for block, weight in zip(masks.tolist(), weights.tolist(), strict=True):
        if block & ~mask or any(lattice.computable(block, of=other) for other in known):
            continue
        sizes, counts = np.array([1 / (weight * lattice.size(mask & ~block))]), np.ones(1)
        for axis in lattice.axes(block):
            n = shape[axis]
            each = [0.5] if n == 2 else [(n - 1) / n**2, 1 / n**2]
            times = [1.0] if n == 2 else [1.0, n - 1.0]
            sizes, counts = np.outer(sizes, each).ravel(), np.outer(counts, times).ravel()
        found.append(sizes)
        many.append(counts)
    return gathered(np.concatenate(found), np.concatenate(many))


def measured_numbers(lattice: Lattice, choice: Choice, tables: Mapping[int, Floats]) -> Ints:
    """What would be measured without noise if some tables were true, to the nearest whole number.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 2}))
    >>> measured_numbers(lattice, Choice((("a",), ("b",)), (1, 3)), {3: np.array([[1.0, 2.0], [3.0, 4.0]])}).tolist()
    [3, 7, 12, 18]
    """
    shape, made = lattice.domain.shape, [np.zeros(0, dtype=np.int64)]
    for names, weight in zip(choice.sets, choice.weights, strict=True):
        mask = lattice.mask(names)
        parent = lattice.parent(mask, tables)
        if parent is None:
            raise RefusedError("a measured table is not there.", code="cubes.not-computable")
        table = np.asarray(tables[parent], dtype=np.float64).reshape(lattice.shape(parent))
        table = np.asarray(summed(lattice, table, parent, mask), dtype=np.float64)
        for axis, place in zip(lattice.axes(mask), range(table.ndim)):
            if choice.kind == "cuboids":
                break
            n = shape[axis]
            table = (
                table.take([0], place) - table.take([1], place)
                if n == 2
                else n * table - table.sum(axis=place, keepdims=True)
            )
        made.append(np.rint(table.ravel() * weight).astype(np.int64))
    return np.concatenate(made)


def ranges_at(
    lattice: Lattice,
    choice: Choice,
    known: Sequence[int],
    masks: Sequence[int],
    factors: Sequence[float | Floats],
    distribution: str,
    parameter: float,
    *,
    consistent: bool,
) -> list[float | Floats]:
    """What 95 % of the noise of the cells of some cuboids stays within, at least.

    Parameters
    ----------
    factors
        Variance of the cells of each cuboid in units of the noise variance: arrays where public sums of cells make them differ.
    distribution, parameter
        The noise distribution, and its scale (Laplace) or variance parameter (Gaussian).

    Notes
    -----
    A cell is a combination of independent noises. Of wide noise (and where coefficients differ from cell to cell) its variance says enough: ranges are
    at most 11 % wider than they need to be. Of narrow noise the coefficients are listed, and the distribution of the combination is computed.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice, choice = Lattice(Domain({"a": 2, "b": 3})), Choice((("a", "b"),), (1,))
    >>> [round(float(r), 1) for r in ranges_at(lattice, choice, [], [1, 3], [3.0, 1.0], "discrete Laplace", 2.0, consistent=True)]
    [10.2, 6.1]
    """
    if distribution == "none":
        return [0.0 * np.asarray(f) if np.ndim(f) else 0.0 for f in factors]
    laplace = distribution == "discrete Laplace"
    made: list[float | Floats] = []
    known_already: dict[Any, float] = {}
    for mask, factor in zip(masks, factors, strict=True):
        bound = linear_within(factor, parameter, laplace=laplace)
        narrow = parameter < (WIDE if laplace else WIDE**2 / 4)
        if np.ndim(factor) or not factor or not narrow or len(known_already) >= MOST_INVERTED:
            made.append(bound)
            continue
        listed = coefficients_at(lattice, choice, known, mask, consistent=consistent)
        if listed is None or len(listed[0]) > MOST_DIFFERENT:
            made.append(bound)
            continue
        key = (listed[0].tobytes(), listed[1].tobytes())
        if key not in known_already:
            known_already[key] = combination_within([Terms(*listed, parameter, laplace)])
        made.append(min(bound, known_already[key]))
    return made


def joint_ranges(
    lattice: Lattice,
    choice: Choice,
    known: Sequence[int],
    masks: Sequence[int],
    factors: Sequence[float | Floats],
    distribution: str,
    parameter: float,
    chance: float,
    *,
    consistent: bool,
) -> list[float | Floats]:
    """What the noise of each cell of some cuboids stays within but for a small probability.

    Notes
    -----
    The smaller of two bounds: by the variance (:func:`~policygraph.distributions.sums.linear_within`), and, where the coefficients are listed,
    Chernoff's with the exponential moments of continuous noise, which are larger than those of discrete noise.
    """
    if distribution == "none":
        return [0.0 * np.asarray(f) if np.ndim(f) else 0.0 for f in factors]
    laplace = distribution == "discrete Laplace"
    made: list[float | Floats] = []
    for mask, factor in zip(masks, factors, strict=True):
        bound = linear_within(factor, parameter, laplace=laplace, chance=chance)
        listed = None
        if laplace and not np.ndim(factor) and factor and len(masks) <= MOST_INVERTED:
            listed = coefficients_at(lattice, choice, known, mask, consistent=consistent)
        if listed is not None and len(listed[0]):
            bound = min(bound, chernoff(listed, parameter, chance / 2))
        made.append(bound)
    return made


def published_errors(
    values: Floats, estimate: Floats | None, deviation: float | Floats, width: float | Floats
) -> Errors:
    """Errors of published values without simulation.

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
    With 95 % the true count is within ``width`` of the estimate, and it is never negative; an estimate below 0 counts as 0. The range of a
    published value is its largest distance to a count of which both holds.

    Examples
    --------
    >>> published_errors(np.array([0.0, 7.0]), np.array([-4.0, 6.0]), 2.0, 5.0).within_95.tolist()
    [5.0, 6.0]
    """
    if estimate is None:
        return Errors(deviation, width)
    return bounded(Seen.of(values, estimate, deviation, width))


def lower_tail(
    factor: float,
    distribution: str,
    parameter: float,
    chance: float,
    listed: tuple[Floats, Floats] | None = None,
) -> float:
    """What the noise of a cell stays above minus, but for a small probability.

    Parameters
    ----------
    factor
        Squared length of the combination of noises.
    distribution, parameter
        The noise distribution and its parameter.
    chance
        The probability, below 1.
    listed
        The absolute coefficients of the combination, and how often each occurs, where they are known.

    Notes
    -----
    Noise is symmetric, so that half of what two-sided bounds leave is below. The least of the bounds of section 5 of ``docs/explanation/proofs/cubes-consistency.md``.

    Examples
    --------
    >>> round(lower_tail(1.0, "discrete Laplace", 10.0, 0.001), 1), round(lower_tail(4.0, "discrete Gaussian", 25.0, 0.001), 1)
    (64.4, 36.4)
    >>> round(lower_tail(1.0, "discrete Laplace", 10.0, 0.001, (np.array([0.1]), np.array([100.0]))), 1)
    53.5
    """
    if factor == 0 or distribution == "none":
        return 0.0
    laplace = distribution == "discrete Laplace"
    bound = linear_within(factor, parameter, laplace=laplace, chance=min(2 * chance, 0.5))
    if laplace:
        bound = min(bound, sqrt(2 * factor) * parameter * (1 + log(1 / chance)))
        if listed is not None and len(listed[0]):
            bound = min(bound, chernoff(listed, parameter, chance))
    return float(bound)


def chernoff(listed: tuple[Floats, Floats], parameter: float, chance: float) -> float:
    """What a combination of Laplace noises exceeds with at most a small probability, by Markov's inequality for its exponential.

    Parameters
    ----------
    listed
        The absolute coefficients, and how often each occurs.
    parameter
        The scale.
    chance
        The probability.

    Notes
    -----
    The exponential moments are those of continuous noise, which are larger than those of discrete noise.

    Examples
    --------
    >>> round(chernoff((np.array([1.0]), np.array([1.0])), 10.0, 0.001), 1)
    95.2
    """
    sizes, counts = listed
    rates = np.linspace(0.02, 0.98, 49) / (parameter * sizes.max())
    moments = -(counts * np.log1p(-((parameter * rates[:, None] * sizes) ** 2))).sum(axis=1)
    return float(np.min((moments + log(1 / chance)) / rates)) * (1 + 1e-9)


def shift_for(
    lattice: Lattice,
    published: Sequence[int],
    factors: Sequence[float],
    distribution: str,
    parameter: float,
    offset: Fraction,
    listed: Callable[[int], tuple[Floats, Floats] | None] | None = None,
) -> float:
    """What to add to every cell of the finest table of all published attributes: a fraction, so that coarse tables are shifted by no more than they need.

    Parameters
    ----------
    factors
        Largest variance of a cell of each published cuboid in units of the noise variance.
    offset
        The probability with which some published count may be negative still.
    listed
        Gives the coefficients of the noises behind a cell of a cuboid, where they are the same for all its cells.

    Notes
    -----
    A cell of the table of T sums N of the finest cells, and so is shifted by N times the result. The probability is shared out evenly
    over all published cells (union bound). The result is a multiple of a power of two that is so fine that rounding it up adds at most 1 to any published
    count; it is known before the noise, and tables that agreed before agree after it.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({name: 2 for name in "abcdefghij"}))
    >>> pairs = [3 << at for at in range(9)]
    >>> shift = shift_for(lattice, pairs, [1.0] * 9, "discrete Gaussian", 100.0, Fraction(1, 100))
    >>> shift, shift * 256
    (0.1484375, 38.0)
    """
    top = union(published)
    cells = sum(lattice.size(mask) for mask in published)
    chance = float(offset) / cells
    noise = distribution, parameter, chance
    sums = [lattice.size(top & ~mask) for mask in published]
    needs = [lower_tail(factor, *noise) / many for factor, many in zip(factors, sums, strict=True)]
    need = 0.0
    # From the largest one on, each is looked at more closely, while it would decide.
    for tried, at in enumerate(sorted(range(len(needs)), key=lambda at: -needs[at])):
        if needs[at] <= need:
            break
        closer = listed(published[at]) if listed is not None and tried < MOST_TAILS else None
        need = max(need, lower_tail(factors[at], *noise, closer) / sums[at])
    fine = 2.0 ** (max(sums, default=1) - 1).bit_length()
    return ceil(need * fine * (1 + 1e-9)) / fine
