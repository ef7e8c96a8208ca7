"""Interaction blocks of tables by one orthogonal transform. Owns :func:`split`, :func:`join` and :func:`settle`.

Along each attribute a table is its mean and the deviations from it. Done for all attributes of all cuboids of a
family, in place and without any matrix, this takes one pass over the cells for each attribute. Theorem 2 of
``docs/explanation/proofs/cubes.md``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from policygraph.errors import RefusedError
from policygraph.transforms.cuboids.lattice import Family, Floats, Lattice

Tables = dict[int, Floats]
"""Tables of cuboids by mask; each in the shape of its attributes."""

FEW = 48
"""An axis of so many values is summed value by value, which is faster when the axes behind it are short."""
BITS = 52


def sum_axis(table: Floats, position: int) -> Floats:
    """Sums along one axis.

    Examples
    --------
    >>> sum_axis(np.arange(6.0).reshape(2, 3), 1).tolist()
    [3.0, 12.0]
    """
    n = table.shape[position]
    behind = int(np.prod(table.shape[position + 1 :]))
    if n > FEW or behind >= 64 or table.ndim == 1:
        made: Floats = np.asarray(table.sum(axis=position))
        return made
    total: Floats = np.array(_slice(table, position, 0))
    for value in range(1, n):
        total += _slice(table, position, value)
    return total


def _slice(table: Floats, position: int, value: int) -> Floats:
    return table[(slice(None),) * position + (value,)]


def _along(family: Family) -> Iterator[tuple[int, int, int, int]]:
    """Attribute by attribute, all pairs of a cuboid without and with it: n, masks, position of the axis."""
    masks = family.masks.tolist()
    for axis, n, low, high in family.pairs:
        for a, b in zip(low.tolist(), high.tolist(), strict=True):
            mask = masks[b]
            yield n, masks[a], mask, Lattice.level(mask & ((1 << axis) - 1))


def split(family: Family, tables: Tables) -> None:
    """Turn weighted tables into interaction blocks, in place.

    Parameters
    ----------
    tables
        Tables of some cuboids of the family; absent ones are 0.

    Notes
    -----
    Afterwards the entry of S is the sum over all C above S of the table of C, summed to S and divided by the
    number of cells of C without S, with every mean along an attribute of S removed.
    """
    for n, low, high, position in _along(family):
        table = tables.get(high)
        if table is None:
            continue
        means = sum_axis(table, position)
        means /= n
        _subtract(table, means, position)
        if low in tables:
            tables[low] += means
        else:
            tables[low] = np.array(means)


def join(family: Family, tables: Tables) -> None:
    """Turn interaction blocks (as deviations of the table of their attributes) into tables, in place.

    Notes
    -----
    The table of T is the sum over all S below T of the block of S, spread evenly over the attributes of T without S.
    """
    for n, low, high, position in _along(family):
        if low in tables and high in tables:
            _subtract(tables[high], tables[low] * (-1.0 / n), position)


def project(table: Floats) -> Floats:
    """Remove the mean along every axis."""
    made = np.array(table, dtype=np.float64)
    for position in range(made.ndim):
        _subtract(made, sum_axis(made, position) / made.shape[position], position)
    return made


def _subtract(table: Floats, values: Floats, position: int) -> None:
    n = table.shape[position]
    behind = int(np.prod(table.shape[position + 1 :]))
    if n > FEW or behind >= 64 or table.ndim == 1:
        table -= np.expand_dims(values, position)
        return
    for value in range(n):
        part = _slice(table, position, value)
        part -= values


def settle(family: Family, tables: Tables, exact: Tables) -> int:
    """Round tables to a binary grid on which they agree with each other, and with exact ones, to the last bit.

    Parameters
    ----------
    tables
        A table of every cuboid of the family; changed in place.
    exact
        Tables of whole numbers that are met as they are, with everything below them.

    Returns
    -------
    int
        Values are multiples of 2 to the minus this.

    Raises
    ------
    RefusedError
        When the numbers are too large for whole numbers in floats.

    Notes
    -----
    Total and all values but the first along each attribute determine a table, by an integer change of basis that is
    its own kind of inverse (Theorem 3). So the values away from the first label are rounded, and the first one is what is
    missing from the table with one attribute less. Sums of such floats are exact while they stay below 2^52 steps.
    """
    largest = max(
        (float(np.abs(table).max()) * max(table.shape, default=1) for table in tables.values()), default=0.0
    )
    bits = min(40, BITS - 1 - int(np.ceil(np.log2(max(largest, 1.0)))))
    if bits < 0:
        raise RefusedError(
            f"numbers as large as {largest:.3g} cannot be made consistent exactly: expected less than 2^51.",
            code="cubes.overflow",
        )
    scale = float(1 << bits)
    order = sorted(family.masks.tolist(), key=Lattice.level)
    for mask in order:
        table = tables[mask]
        if mask in exact:
            table[...] = exact[mask]
            continue
        table *= scale
        np.rint(table, out=table)
        table /= scale
        for position, axis in enumerate(family.lattice.axes(mask)):
            rest = tables[mask ^ (1 << axis)] - sum_axis(table, position)
            first = (slice(None),) * position + (0,)
            table[first] += rest
    return bits
