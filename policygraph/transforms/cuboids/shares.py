"""How measured cuboids tell blocks, and blocks make cells, as matrices. Owns :func:`shares` and :func:`cell_shares`.

The formulas of Theorems 1 and 2 of ``docs/explanation/proofs/cubes.md`` entry by entry, without listing what lies between: dense for some hundred
cuboids, sparse for thousands of low order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from policygraph.transforms.cuboids.lattice import Family, Floats, Ints, Lattice

__all__ = ["cell_shares", "shares"]

THIN = 0.1
"""Below this share of entries that are not 0 a large matrix is held sparse."""
LARGE = 1 << 20


def shares(lattice: Lattice, blocks: Ints, candidates: Ints) -> Any:
    """What a unit of precision of each candidate C (column) is worth for each block S (row): 1 / cells of C without S, for S below C.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 3}))
    >>> shares(lattice, np.array([0, 1]), np.array([1, 3])).round(3).tolist()
    [[0.5, 0.167], [1.0, 0.333]]
    """
    low = _sizes(lattice, blocks)
    high = _sizes(lattice, candidates)
    rows, columns = [], []
    for at, mask in enumerate(blocks.tolist()):
        above = np.flatnonzero((candidates & mask) == mask)
        rows.append(np.full(len(above), at))
        columns.append(above)
    at_rows, at_columns = np.concatenate(rows), np.concatenate(columns)
    return _held(at_rows, at_columns, low[at_rows] / high[at_columns], (len(blocks), len(candidates)))


def cell_shares(family: Family, blocks: Ints, wanted: Ints, importance: Floats) -> Any:
    """Variance of a cell of each wanted cuboid (row), times its importance, for a unit of variance of each block (column).

    Parameters
    ----------
    family
        Everything below the wanted cuboids.
    blocks
        Masks of the blocks of the columns; others are left out.
    wanted
        Positions of the wanted cuboids in the family.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> family = Family(Lattice(Domain({"a": 2})), [1])
    >>> cell_shares(family, family.masks, np.array([1]), np.array([4.0])).tolist()
    [[1.0, 2.0]]
    """
    shape = family.lattice.domain.shape
    place = {int(mask): at for at, mask in enumerate(blocks)}
    rows, columns, values = [], [], []
    for row, (mask, weight) in enumerate(
        zip(family.masks[wanted].tolist(), importance.tolist(), strict=True)
    ):
        entries = [(0, float(weight))]
        for axis in family.lattice.axes(mask):
            n = shape[axis]
            entries = [
                piece
                for low, value in entries
                for piece in ((low, value / n**2), (low | 1 << axis, value * (n - 1) / n))
            ]
        for low, value in entries:
            if low in place and value > 0:
                rows.append(row)
                columns.append(place[low])
                values.append(value)
    return _held(np.array(rows), np.array(columns), np.array(values), (len(wanted), len(blocks)))


def _sizes(lattice: Lattice, masks: Ints) -> Floats:
    return np.array([float(lattice.size(mask)) for mask in masks.tolist()], dtype=np.float64)


def _held(rows: Any, columns: Any, values: Floats, shape: tuple[int, int]) -> Any:
    cells = shape[0] * shape[1]
    if cells > LARGE and len(values) < THIN * cells:
        from scipy.sparse import csr_array

        return csr_array((values, (rows, columns)), shape=shape)
    made = np.zeros(shape)
    made[rows.astype(np.int64), columns.astype(np.int64)] = values
    return made
