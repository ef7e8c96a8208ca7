"""Orthonormal coordinates of tables that agree with each other. Owns :class:`TableCoordinates`.

A discrete cosine transform along each attribute has a constant first vector, and its other vectors sum to 0: the coefficients of a table that are not the first along the attributes
of S, and the first along all others, are coordinates of its interaction block S. Tables of one shape are transformed together, so that a pass over all tables of a family takes a
few calls, however many blocks it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.transforms.cuboids.blocks import Tables
from policygraph.transforms.cuboids.lattice import Family, Floats

Ints = npt.NDArray[np.int64]

MERGED = 32
"""Neighbouring attributes with so few values together are transformed by one product."""


class TableCoordinates:
    """Tables that agree as one vector, in which the length of a block is the length of its part.

    Parameters
    ----------
    family
        All cuboids; what is not below another one is a *largest* table.

    Notes
    -----
    The cells of all largest tables, one table after the other, form one flat vector; ``places`` says where the table of a mask begins and ends. With
    N the number of cells of C without S, coordinates of the block of S are sqrt(N) times the coefficients of any table C above S.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> from policygraph.transforms.cuboids.lattice import Lattice
    >>> family = Family(Lattice(Domain({"a": 2, "b": 3})), [0b11])
    >>> coordinates = TableCoordinates(family)
    >>> table = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1.0])
    >>> vector = coordinates.of_cells(table)
    >>> round(float(vector[0]), 9), coordinates.cells(vector).round(12).tolist()
    (16.0, [1.0, 2.0, 3.0, 4.0, 5.0, 1.0])
    """

    def __init__(self, family: Family) -> None:
        self.family, lattice = family, family.lattice
        counts = np.array([np.prod([n - 1 for n in lattice.shape(m)], dtype=np.int64) for m in family.masks])
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.size = int(starts[-1])
        self.block: Ints = np.repeat(np.arange(len(family)), counts)
        self.largest = sorted(lattice.maximal(family.masks.tolist()), key=lambda m: (lattice.shape(m), m))
        self.places: dict[int, slice] = {}
        self.groups: list[tuple[slice, tuple[int, ...]]] = []
        at, rows, scales = 0, [], []
        begin = 0
        while begin < len(self.largest):
            shape = lattice.shape(self.largest[begin])
            end = begin
            while end < len(self.largest) and lattice.shape(self.largest[end]) == shape:
                end += 1
            pattern, position, scale = _inside(shape)
            cells = pattern.size
            for mask in self.largest[begin:end]:
                listed = sorted(lattice.below(mask), key=lambda s: self._local(s, mask))
                offsets = starts[[family.index[s] for s in listed]]
                rows.append(offsets[pattern] + position)
                self.places[mask] = slice(at, at + cells)
                at += cells
            scales.append(np.tile(scale, end - begin))
            self.groups.append((slice(at - cells * (end - begin), at), (end - begin, *shape)))
            begin = end
        self.rows: Ints = np.concatenate(rows)
        self.scales: Floats = np.concatenate(scales)

    def _local(self, mask: int, top: int) -> int:
        """The attributes of a cuboid as bits among those of another one, the first attribute highest."""
        made = 0
        for axis in self.family.lattice.axes(top):
            made = 2 * made + ((mask >> axis) & 1)
        return made

    def _transformed(self, cells: Floats, *, back: bool = False) -> Floats:
        out = np.empty_like(cells)
        for part, shape in self.groups:
            made = cells[part]
            # Each product turns its attributes to the end, so that the order is the old one after the last.
            for turn in _turns(shape[1:]):
                rows = np.matmul(turn.T if back else turn, made.reshape(shape[0], len(turn), -1))
                made = rows.swapaxes(1, 2).reshape(-1)
            out[part] = made
        return out

    def cells(self, vector: Floats) -> Floats:
        """The cells of all largest tables."""
        return self._transformed(self.scales * vector[self.rows], back=True)

    def pulled(self, cells: Floats) -> Floats:
        """The transposed map: sums over all largest tables above each block."""
        return self.gathered(self.scales * self._transformed(cells))

    def gathered(self, coefficients: Floats) -> Floats:
        """Sums of numbers of all coefficients over the tables that share a coordinate."""
        return np.asarray(np.bincount(self.rows, weights=coefficients, minlength=self.size), dtype=np.float64)

    def of_cells(self, cells: Floats) -> Floats:
        """The coordinates of largest tables that agree."""
        made = np.zeros(self.size)
        made[self.rows] = self._transformed(np.asarray(cells, dtype=np.float64)) / self.scales
        return made

    def flat(self, tables: Mapping[int, Any]) -> Floats:
        """The cells of largest tables, in order."""
        made: Floats = np.concatenate(
            [np.asarray(tables[mask], dtype=np.float64).ravel() for mask in self.largest]
        )
        return made

    def table(self, cells: Any, mask: int) -> Any:
        """One of the largest tables."""
        return cells[self.places[mask]].reshape(self.family.lattice.shape(mask))

    @cached_property
    def above(self) -> tuple[tuple[int, int, int], ...]:
        """For every other cuboid, larger ones first: the smallest one with one attribute more, and the place of that attribute."""
        lattice, known = self.family.lattice, self.family.index
        out = []
        for mask in sorted(known, key=lambda m: (-lattice.level(m), m)):
            if mask in self.places:
                continue
            axis = min(
                (
                    a
                    for a in range(len(lattice.domain.shape))
                    if not (mask >> a) & 1 and mask | 1 << a in known
                ),
                key=lambda a: (lattice.domain.shape[a], a),
            )
            out.append((mask, mask | 1 << axis, lattice.level(mask & ((1 << axis) - 1))))
        return tuple(out)

    def tables(self, vector: Floats) -> Tables:
        """The table of every cuboid of the family."""
        return self.sums(self.cells(vector))

    def sums(self, cells: Floats) -> Tables:
        """The table of every cuboid of the family, from the cells of the largest ones."""
        made: Tables = {mask: self.table(cells, mask) for mask in self.largest}
        for mask, larger, position in self.above:
            made[mask] = np.asarray(made[larger].sum(axis=position))
        return made


@cache
def _turns(shape: tuple[int, ...]) -> tuple[Floats, ...]:
    """Orthonormal matrices that transform a table, for one or several neighbouring attributes each: few products of matrices that are not small are fastest."""
    from scipy import fft

    made: list[Floats] = []
    for n in shape:
        turn = np.asarray(fft.dct(np.eye(n), axis=0, norm="ortho"))
        if made and len(made[-1]) * n <= MERGED:
            made[-1] = np.asarray(np.kron(made[-1], turn), dtype=np.float64)
        else:
            made.append(turn)
    return tuple(made)


def _inside(shape: tuple[int, ...]) -> tuple[Ints, Ints, Floats]:
    """Of every coefficient of a table: its block as bits, its place in the block, and one over the root of the number of cells that a cell of the block sums."""
    pattern, position, scale = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.ones(1)
    for n in shape:
        inner = np.arange(n)
        pattern = (2 * pattern[:, None] + (inner > 0)).ravel()
        position = np.where(inner > 0, position[:, None] * (n - 1) + inner - 1, position[:, None]).ravel()
        scale = (scale[:, None] * np.where(inner > 0, 1.0, n**-0.5)).ravel()
    return pattern, position, scale
