"""Non-negative tables near least squares, at scale. Owns :func:`nonnegative_cells`.

The finest table is fitted by proximal steps in relative entropy: it stays positive by itself, exactly known tables are met by
scaling, and nothing but sums and products over its cells is ever computed. ``docs/explanation/proofs/cubes-consistency.md``, section 2.
Sees noisy numbers only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from policygraph.estimation.cubes.cells import spread, summed
from policygraph.estimation.cubes.facts import Fact
from policygraph.transforms.cuboids.lattice import Floats, Lattice

__all__ = ["ROUNDS", "SWEEPS", "nonnegative_cells", "scale_to"]

ROUNDS = 8
"""Proximal steps. More of them come nearer to the noisy numbers, noise included."""
SWEEPS = 2
"""Passes over the measured tables in each step."""
SCALINGS = 500
SETTLED = 1e-11
STEEPEST = 50.0


def nonnegative_cells(
    lattice: Lattice,
    top: int,
    fitted: Mapping[int, Floats],
    measured: Mapping[int, float],
    known: Mapping[int, Any],
    facts: Sequence[Fact] = (),
    *,
    rounds: int = ROUNDS,
    sweeps: int = SWEEPS,
) -> Floats:
    """A non-negative finest table whose sums are near the least-squares estimates of what was measured.

    Parameters
    ----------
    top
        The finest cuboid.
    fitted
        Least-squares tables: of all measured cuboids, of single attributes, and the total.
    measured
        Measured cuboids with the variance of one of their noisy cells.
    known, facts
        What is known exactly.
    rounds, sweeps
        How long to fit: without end, the non-negative least-squares tables with the fitted total are approached.

    Notes
    -----
    A step goes from x to the least of ``sum_C |sums_C(x') - fitted_C|^2 / (2 variance_C) + KL(x' | x)``, found table by table:
    the multiplier of each cell solves ``s exp(d) + variance (l + d) = fitted`` alone. The first x has independent attributes
    with the fitted margins. Large cells follow in few steps, and noise in small ones is taken up slowly.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 2}))
    >>> fitted = {3: np.array([[9.0, -2.0], [1.0, 4.0]]), 1: np.array([7.0, 5.0]), 2: np.array([10.0, 2.0]), 0: np.array(12.0)}
    >>> nonnegative_cells(lattice, 3, fitted, {3: 1.0}, {}).round(1).tolist()
    [[7.9, 0.0], [0.7, 3.4]]
    """
    exact = {mask: np.asarray(table, dtype=np.float64) for mask, table in known.items()}
    total = max([0.0, float(fitted[0]), *(fact.least_total for fact in facts)])
    x = np.full(lattice.shape(top), total)
    for axis in lattice.axes(top):
        if 1 << axis not in fitted:
            x /= lattice.size(1 << axis)
            continue
        single = np.maximum(fitted[1 << axis], min(1.0, total / lattice.size(1 << axis)))
        x *= spread(lattice, single / max(float(single.sum()), 1e-300), 1 << axis, top)
    for fact in facts:
        if fact.empty:
            view = x.reshape(-1)
            view[fact.cells_in(lattice, top)] = 0.0
    if total == 0.0:
        return x
    scale_to(lattice, top, x, exact, facts, 1)
    for _ in range(rounds):
        multipliers = {mask: np.zeros(lattice.shape(mask)) for mask in measured}
        for _ in range(sweeps):
            for mask, variance in measured.items():
                sums = summed(lattice, x, top, mask)
                step = _step(sums, multipliers[mask], variance, fitted[mask])
                multipliers[mask] += step
                factors = np.exp(step)
                if not exact and not facts:
                    factors *= total / max(float((sums * factors).sum()), 1e-300)
                x *= spread(lattice, factors, mask, top)
            scale_to(lattice, top, x, exact, facts, 1)
    scale_to(lattice, top, x, exact, facts, SCALINGS)
    return x


def _step(sums: Floats, multipliers: Floats, variance: float, target: Floats) -> Floats:
    """Solve ``sums exp(d) + variance (multipliers + d) = target`` in every cell, by Newton's method from the right.

    The left side grows and is convex in d, so that the method falls to the root from any point to the right of it; these
    are where one of the two terms alone reaches the target.
    """
    left = target / variance - multipliers
    rest = target - variance * multipliers
    with np.errstate(divide="ignore", invalid="ignore"):
        by_sums = np.where(rest >= sums, np.log(np.maximum(rest, 1e-300) / np.maximum(sums, 1e-300)), 0.0)
    d: Floats = np.minimum(np.minimum(left, by_sums), STEEPEST)
    for _ in range(30):
        grown = sums * np.exp(d)
        change = (grown + variance * (multipliers + d) - target) / (grown + variance)
        d -= change
        if float(np.abs(change).max(initial=0.0)) < 1e-10:
            break
    return np.minimum(d, STEEPEST)


def scale_to(
    lattice: Lattice,
    top: int,
    x: Floats,
    known: Mapping[int, Floats],
    facts: Sequence[Fact],
    rounds: int,
) -> None:
    """Scale a table, in place, until exactly known sums are met as well as floats can."""
    for _ in range(rounds):
        worst = 0.0
        for mask, table in known.items():
            sums = summed(lattice, x, top, mask)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(sums > 0, table / sums, 0.0)
            x *= spread(lattice, ratio, mask, top)
            worst = max(worst, float(np.abs(np.where(sums > 0, ratio - 1.0, 0.0)).max(initial=0.0)))
        for fact in facts:
            if not fact.empty:
                worst = max(worst, fact.scale(lattice, top, x))
        if worst < SETTLED:
            return
