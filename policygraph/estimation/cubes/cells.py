"""Tables of a cuboid lattice, and public sums of their cells. Owns :func:`summed`, :func:`spread`, :class:`Fact`.

Counts that have to be non-negative or whole are made on one finest table, and all published tables are its sums. Public facts that are
less than a whole table (public cells of a margin, counts with conditions, structural zeros) are sums of cells of one small table
each, so that the base is never listed. Nothing here sees data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import RefusedError
from policygraph.model.constraints.base import select
from policygraph.model.constraints.sums import Sums
from policygraph.model.constraints.tables import Cells, LinearCount, StructuralZero
from policygraph.model.policy import Policy
from policygraph.transforms.cuboids.blocks import project, sum_axis
from policygraph.transforms.cuboids.lattice import Floats, Ints, Lattice

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


def places(lattice: Lattice, at: int, mask: int) -> Ints:
    """For each cell of a cuboid the cell of a smaller one that it belongs to."""
    grid = spread(lattice, np.arange(lattice.size(mask), dtype=np.int64), mask, at)
    return np.broadcast_to(grid, lattice.shape(at)).reshape(-1)


def all_sums(
    lattice: Lattice, table: npt.NDArray[Any], at: int, masks: Iterable[int]
) -> dict[int, npt.NDArray[Any]]:
    """Tables of several cuboids, each summed from the smallest one that is there."""
    made = {at: table}
    for mask, parent in lattice.route(masks, at):
        made[mask] = summed(lattice, made[parent], parent, mask)
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


@dataclass(frozen=True, eq=False)
class Fact:
    """One public sum of cells of a cuboid.

    Attributes
    ----------
    mask
        The cuboid.
    cells, coefficients
        Positions in its table, and what they count.
    value
        The published value; None when only the data have it.
    empty
        Whether the policy says that no record is in its cells.
    """

    mask: int
    cells: Ints
    coefficients: Ints
    value: int | None = None
    empty: bool = False

    def with_value(self, value: int) -> Fact:
        """The same fact with its value."""
        return Fact(self.mask, self.cells, self.coefficients, int(value), self.empty)

    @property
    def least_total(self) -> float:
        """A number of records below which no counts have the value."""
        return abs(self.value or 0) / float(np.abs(self.coefficients).max())

    def of(self, table: Any) -> Any:
        """The sum in a table of the cuboid."""
        return (np.asarray(table).reshape(-1)[self.cells] * self.coefficients).sum()

    def row(self, lattice: Lattice) -> Floats:
        """The coefficients as a table."""
        made = np.zeros(lattice.size(self.mask))
        made[self.cells] = self.coefficients
        return made.reshape(lattice.shape(self.mask))

    def cells_in(self, lattice: Lattice, top: int) -> Ints:
        """Positions of its cells in the table of a larger cuboid."""
        named = spread(lattice, self.row(lattice) != 0, self.mask, top)
        return np.flatnonzero(np.broadcast_to(named, lattice.shape(top))).astype(np.int64)

    def scale(self, lattice: Lattice, top: int, x: Floats) -> float:
        """Move a positive table to the fact by the least relative entropy, in place; returns how far off it was."""
        goal = float(self.value or 0)
        sums = summed(lattice, x, top, self.mask).reshape(-1)[self.cells]
        have = float((sums * self.coefficients).sum())
        if have == goal or not np.any(sums > 0):
            return 0.0
        d = 0.0 if goal != 0.0 or np.any(self.coefficients < 0) else -np.inf
        for _ in range(60 if np.isfinite(d) else 0):
            grown = self.coefficients * sums * np.exp(np.clip(self.coefficients * d, -700, 700))
            slope = float((self.coefficients * grown).sum())
            step = float(np.clip((float(grown.sum()) - goal) / max(slope, 1e-300), -1.0, 1.0))
            d -= step
            if abs(step) < 1e-15:
                break
        factors = np.ones(lattice.size(self.mask))
        factors[self.cells] = np.exp(np.clip(self.coefficients * d, -700, 700))
        x *= spread(lattice, factors.reshape(lattice.shape(self.mask)), self.mask, top)
        return abs(have - goal) / max(abs(goal), 1.0)


def facts_of(lattice: Lattice, policy: Policy) -> list[Fact]:
    """The partial facts of a policy: all that are not whole tables.

    Examples
    --------
    >>> from policygraph.model.constraints import Cell, Cuboid
    >>> from policygraph.model.domain import Domain
    >>> domain = Domain({"sex": 2, "age": 3, "job": 2})
    >>> policy = Policy(domain, constraints=[Cuboid("sex"), Cell(sex=0, age=2)])
    >>> [(fact.mask, fact.cells.tolist(), fact.value) for fact in facts_of(Lattice(domain), policy)]
    [(3, [2], None)]
    """
    out: list[Fact] = []
    for fact in policy.constraints:
        if isinstance(fact, Cells):
            values = fact.values(lattice.domain) or (None,) * len(fact.cells)
            for cell, value in zip(fact.cells, values, strict=True):
                at = _select(lattice, dict(zip(fact.of, cell, strict=True)))
                out.append(_fact(at[0], [(at[1], 1)], value))
        elif isinstance(fact, LinearCount):
            parts = [(_condition(lattice, kind, what), times) for (kind, what), times in fact.terms]
            names = {name for where, _ in parts for name in where}
            mask = lattice.mask(names)
            sums = [(_select(lattice, where, mask)[1], times) for where, times in parts]
            out.append(_fact(mask, sums, fact.equals))
        elif isinstance(fact, Sums):
            published = fact.values(lattice.domain) or (None,) * fact.n_rows(lattice.domain)
            base = lattice.mask(lattice.domain.names)
            for row, value in enumerate(published):
                held = slice(fact.matrix.indptr[row], fact.matrix.indptr[row + 1])
                parts_of = zip(fact.matrix.indices[held], fact.matrix.data[held].tolist(), strict=True)
                out.append(
                    _fact(
                        base, [(np.array([cell], dtype=np.int64), times) for cell, times in parts_of], value
                    )
                )
        elif isinstance(fact, StructuralZero):
            for kind, what in fact.cells:
                at = _select(lattice, _condition(lattice, kind, what))
                out.append(_fact(at[0], [(at[1], 1)], 0))
    return [fact for fact in out if len(fact.cells)]


def _condition(lattice: Lattice, kind: str, what: Any) -> dict[str, Any]:
    if kind == "where":
        return {name: list(labels) for name, labels in what}
    return {name: [label] for name, label in zip(lattice.domain.names, what, strict=True)}


def _select(lattice: Lattice, where: dict[str, Any], mask: int | None = None) -> tuple[int, Ints]:
    at = lattice.mask(where) if mask is None else mask
    if not at:
        return 0, np.zeros(1, dtype=np.int64)
    return at, select(lattice.domain.project(list(lattice.names(at))), where)


def _fact(mask: int, sums: Sequence[tuple[Ints, int]], value: int | None) -> Fact:
    cells = np.concatenate([at for at, _ in sums])
    times = np.concatenate([np.full(len(at), coefficient, dtype=np.int64) for at, coefficient in sums])
    unique, inverse = np.unique(cells, return_inverse=True)
    added = np.zeros(len(unique), dtype=np.int64)
    np.add.at(added, inverse, times)
    kept = added != 0
    return Fact(mask, unique[kept], added[kept], value, value == 0 and bool(np.all(added > 0)))


def zeros_below(lattice: Lattice, facts: Iterable[Fact], tops: Iterable[int], most: int) -> list[Fact]:
    """Facts about the largest tables that follow because empty cells stay empty when they are split.

    A few more than ``most`` are listed at most, so that the caller sees that there are too many.
    """
    listed = list(facts)
    out = [fact for fact in listed if not fact.empty]
    tables = list(tops)
    for fact in listed:
        if not fact.empty:
            continue
        above = [top for top in tables if lattice.computable(fact.mask, of=top)]
        for top in above:
            out += [
                Fact(top, np.array([cell]), np.ones(1, dtype=np.int64), 0, empty=True)
                for cell in fact.cells_in(lattice, top)[: most + 1 - len(out)].tolist()
            ]
            if len(out) > most:
                return out
        if not above:
            out.append(fact)
    return out


def visible(lattice: Lattice, facts: Iterable[Fact], masks: Sequence[int], *, together: bool) -> list[Fact]:
    """The facts about tables that are made: below one of some cuboids, or below all of them together."""
    tops = [union(masks)] if together else lattice.maximal(masks)
    return [fact for fact in facts if any(lattice.computable(fact.mask, of=top) for top in tops)]
