"""Public sums of cells met to the last bit by consistent tables. Owns :func:`meet`.

Consistent tables are free in their cells away from the first labels, by an integer change of coordinates. Facts are integer
equations in these; solved for some of them, the others can be rounded. ``docs/explanation/proofs/cubes-consistency.md``, section 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np
import numpy.typing as npt

from policygraph.errors import RefusedError
from policygraph.estimation.cubes.facts import Fact
from policygraph.transforms.cuboids.blocks import Tables
from policygraph.transforms.cuboids.lattice import Family, Floats, Ints, Lattice

__all__ = ["coordinates", "meet"]

MOST_ENTRIES = 40_000_000
LARGEST = 1 << 31
BITS = 49


def coordinates(lattice: Lattice, fact: Fact) -> dict[int, Ints]:
    """A fact in terms of the cells away from the first labels of its table and all smaller ones.

    Examples
    --------
    The first cell of two by two is the total less the two other margins plus the last cell:

    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 2}))
    >>> made = coordinates(lattice, Fact(3, np.array([0]), np.array([1])))
    >>> {mask: table.tolist() for mask, table in sorted(made.items())}
    {0: 1, 1: [0, -1], 2: [0, -1], 3: [[0, 0], [0, 1]]}
    """
    row = np.zeros(lattice.size(fact.mask), dtype=np.int64)
    row[fact.cells] = fact.coefficients
    made = {fact.mask: row.reshape(lattice.shape(fact.mask))}
    for axis in lattice.axes(fact.mask):
        for mask in list(made):
            position = Lattice.level(mask & ((1 << axis) - 1))
            table = made[mask]
            first = table[(slice(None),) * position + (0,)].copy()
            # The cell at the first label is the table without the attribute less all other labels.
            table -= np.expand_dims(first, position)
            low = mask ^ (1 << axis)
            made[low] = made[low] + first if low in made else first
    return made


def meet(family: Family, tables: Tables, exact: Tables, facts: Sequence[Fact]) -> None:
    """Move tables, in place and by less than rounding, so that facts hold exactly once first labels are filled up.

    Parameters
    ----------
    tables
        Tables that meet the facts up to float errors.
    exact
        Known tables, whose cells do not move.

    Raises
    ------
    RefusedError
        When the facts contradict the known tables, or have no solution that pivots of 1 can reach.
    """
    lattice = family.lattice
    masks = family.masks.tolist()
    starts = dict(zip(masks, np.concatenate([[0], np.cumsum([lattice.size(m) for m in masks])]).tolist()))
    free = [mask for mask in masks if mask not in exact]
    rows: list[npt.NDArray[np.int64]] = []
    used: list[npt.NDArray[np.int64]] = []
    goals: list[int] = []
    for fact in facts:
        spread = coordinates(lattice, fact)
        goal = int(fact.value or 0)
        places, entries = [], []
        for mask, table in spread.items():
            if mask in exact:
                goal -= int((table * exact[mask].astype(np.int64)).sum())
                continue
            flat = table.reshape(-1)
            at = np.flatnonzero(flat)
            places.append(at + starts[mask])
            entries.append(flat[at])
        used.append(np.concatenate(places) if places else np.zeros(0, dtype=np.int64))
        rows.append(np.concatenate(entries) if entries else np.zeros(0, dtype=np.int64))
        goals.append(goal)
    columns = np.unique(np.concatenate(used)) if used else np.zeros(0, dtype=np.int64)
    if len(facts) * len(columns) > MOST_ENTRIES:
        raise RefusedError(
            f"{len(facts):,} public sums that meet {len(columns):,} cells are too many to be met exactly: expected a product of at most "
            f"{MOST_ENTRIES:,}. State fewer, or use nonnegative=True.",
            code="cubes.public-sums",
        )
    matrix = np.zeros((len(facts), len(columns)), dtype=np.int64)
    for index, (place, entry) in enumerate(zip(used, rows, strict=True)):
        matrix[index, np.searchsorted(columns, place)] = entry
    pivots = _eliminate(matrix, goals)
    laid = np.concatenate([tables[mask].reshape(-1) for mask in free]) if free else np.zeros(0)
    base = np.concatenate([[0], np.cumsum([lattice.size(m) for m in free])]).tolist()
    where = dict(zip(free, base, strict=False))
    owner = np.searchsorted(np.array([starts[m] for m in masks]), columns, side="right") - 1
    shift = np.array([where.get(m, 0) - starts[m] for m in masks])
    places_in = columns + shift[owner]
    top = float(np.abs(laid).max(initial=1.0)) * max(
        (max(lattice.shape(m), default=1) for m in masks), default=1
    )
    bits = min(38, BITS - int(np.ceil(np.log2(max(top, 1.0)))))
    if bits < 0:
        raise RefusedError("the counts are too large to meet public sums exactly.", code="cubes.overflow")
    scale = 1 << bits
    theta = np.rint(laid[places_in] * scale).astype(np.int64)
    for index, column in reversed(pivots):
        row = matrix[index]
        others = int((row.astype(object) * theta.astype(object)).sum()) - int(row[column]) * int(
            theta[column]
        )
        theta[column] = int(row[column]) * (goals[index] * scale - others)
    _write(tables, free, base, laid, places_in, theta, scale)


def _write(
    tables: Tables, free: list[int], base: list[int], laid: Floats, places: Ints, theta: Ints, scale: int
) -> None:
    laid[places] = theta.astype(np.float64) / scale
    for mask, start in zip(free, base, strict=False):
        table = tables[mask]
        table[...] = laid[start : start + table.size].reshape(table.shape)


def _eliminate(matrix: Ints, goals: list[int]) -> list[tuple[int, int]]:
    """Bring integer equations into echelon form with pivots 1 or -1, in place; rows and columns of the pivots."""
    pivots: list[tuple[int, int]] = []
    for at in range(len(matrix)):
        row = matrix[at]
        filled = np.flatnonzero(row)
        if not len(filled):
            if goals[at]:
                raise _contradiction()
            continue
        common = gcd(*(int(v) for v in row[filled]))
        if common > 1:
            if goals[at] % common:
                raise _contradiction()
            row //= common
            goals[at] //= common
        ones = filled[np.abs(row[filled]) == 1]
        if not len(ones):
            raise RefusedError(
                "the coefficients of the public counts leave no cell that could take up the rest: expected counts with coefficients 1. "
                "State them apart, or use nonnegative=True.",
                code="cubes.public-sums",
            )
        column = int(ones[-1])
        pivots.append((at, column))
        below = at + 1 + np.flatnonzero(matrix[at + 1 :, column])
        factors = matrix[below, column] * row[column]
        matrix[below] -= factors[:, None] * row[None, :]
        for index, factor in zip(below.tolist(), factors.tolist(), strict=True):
            goals[index] -= factor * goals[at]
        if len(below) and int(np.abs(matrix[below]).max()) > LARGEST:
            raise RefusedError(
                "the public counts are too entangled to be met exactly.", code="cubes.public-sums"
            )
    return pivots


def _contradiction() -> RefusedError:
    return RefusedError(
        "the public sums contradict each other or the known tables: no counts have all of them.",
        code="cubes.contradiction",
    )
