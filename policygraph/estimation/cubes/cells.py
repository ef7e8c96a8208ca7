"""Sums and spreads of one table over a lattice. Owns :func:`summed`, :func:`spread`, :func:`all_sums`, :func:`from_tables`.

What has to be non-negative or whole is made on one finest table; all published ones are its sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import RefusedError
from policygraph.transforms.cuboids.blocks import project, sum_axis
from policygraph.transforms.cuboids.lattice import Floats, Lattice

__all__ = ["MOST_BASE", "all_sums", "finest", "from_tables", "spread", "summed", "union"]

MOST_BASE = 20_000_000
"""Cells of the finest table up to which non-negative or whole tables are made."""


def union(masks: Iterable[int]) -> int:
    """The smallest cuboid above all given ones."""
    made = 0
    for mask in masks:
        made |= mask
    return made


def finest(lattice: Lattice, masks: Iterable[int]) -> int:
    """The smallest cuboid above all given ones, if it can be held.

    Raises
    ------
    RefusedError
        When it has too many cells to be held.
    """
    top = union(masks)
    if lattice.size(top) > MOST_BASE:
        raise RefusedError(
            f"non-negative or whole tables need the finest table of all their attributes, which has {lattice.size(top):,} cells: "
            f"expected at most {MOST_BASE:,}. Publish fewer attributes together, or leave out nonnegative and whole.",
            code="cubes.finest",
            value=lattice.size(top),
        )
    return top


def summed(lattice: Lattice, table: npt.NDArray[Any], at: int, mask: int) -> npt.NDArray[Any]:
    """The table of a cuboid as a sum of the table of a larger one.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> summed(Lattice(Domain({"a": 2, "b": 3})), np.arange(6.0).reshape(2, 3), 0b11, 0b10).tolist()
    [3.0, 5.0, 7.0]
    """
    shape = lattice.domain.shape
    # The longest axes first: each makes the rest of the work smaller by its length.
    for axis in sorted(lattice.axes(at & ~mask), key=lambda a: (-shape[a], a)):
        table = sum_axis(table, Lattice.level(at & ((1 << axis) - 1)))
        at ^= 1 << axis
    return table


def spread(lattice: Lattice, table: npt.NDArray[Any], mask: int, at: int) -> npt.NDArray[Any]:
    """The table of a cuboid in the shape that repeats it over the attributes of a larger one."""
    return table.reshape([lattice.domain.shape[axis] if mask >> axis & 1 else 1 for axis in lattice.axes(at)])


def all_sums(
    lattice: Lattice, table: npt.NDArray[Any], at: int, masks: Iterable[int]
) -> dict[int, npt.NDArray[Any]]:
    """Tables of several cuboids, each summed from the smallest one that is there."""
    made = {at: table}
    for mask, source in lattice.route(masks, at):
        made[mask] = summed(lattice, made[source], source, mask)
    return made


def from_tables(lattice: Lattice, tables: Mapping[int, Floats], top: int) -> Floats:
    """The finest table with given sums and no interactions beyond them.

    Parameters
    ----------
    tables
        Tables that agree with each other, with all tables below them.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 2}))
    >>> tables = {0: np.array(10.0), 1: np.array([6.0, 4.0]), 2: np.array([7.0, 3.0])}
    >>> from_tables(lattice, tables, 0b11).tolist()
    [[4.0, 2.0], [3.0, 1.0]]
    """
    if top in tables:
        return np.array(tables[top])
    made = np.zeros(lattice.shape(top))
    for mask, table in tables.items():
        made += spread(lattice, project(table) / lattice.size(top & ~mask), mask, top)
    return made
