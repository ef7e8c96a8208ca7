"""Reductions of a table with public margins to the part of it that matters. Owns :class:`Reduced`.

Each step keeps the sensitivity of the query over the minimal moves unchanged (``docs/explanation/proofs/reductions.md``), so that
the size that matters is the size of the reduced problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from policygraph.model.constraints.base import Constraint
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.queries.base import Ints, Norm
from policygraph.model.queries.cuboids import CuboidQuery

__all__ = ["Axis", "Reduced", "reduce_margins"]


@dataclass(frozen=True)
class Axis:
    """A reduced attribute: some attributes of the domain taken together, perhaps with fewer values.

    Attributes
    ----------
    names
        Attributes of the domain, first one slowest.
    size
        Number of values that are kept: the first ``size`` combinations.
    """

    names: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class Reduced:
    """A table over reduced attributes, whole margins that are public, and margins that are asked for.

    Attributes
    ----------
    axes
        The reduced attributes.
    known
        Public margins, as sets of axis numbers; empty: nothing is public; the empty set: the total is public.
    asked
        Margins of the query with their weights, in no order; repeated ones count each time.
    steps
        What was done, in words.
    """

    domain: Domain
    axes: tuple[Axis, ...]
    known: tuple[frozenset[int], ...]
    asked: tuple[tuple[frozenset[int], int], ...]
    steps: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the reduced attributes."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of reduced cells."""
        return prod(self.shape)

    @property
    def asks_cells(self) -> bool:
        """Whether the one thing asked for is every reduced cell, once."""
        return [names for names, _ in self.asked] == [frozenset(range(len(self.axes)))]

    def lift(self, cell: Sequence[int]) -> int:
        """Index of a cell of the domain that stands for a reduced cell; attributes reduced away are at 0."""
        codes = dict.fromkeys(self.domain.names, 0)
        for axis, value in zip(self.axes, cell, strict=True):
            rest = int(value)
            for name in reversed(axis.names):
                rest, codes[name] = divmod(rest, self.domain.shape[self.domain.axis(name)])
        at = 0
        for name, size in zip(self.domain.names, self.domain.shape, strict=True):
            at = at * size + codes[name]
        return at

    def margin_rows(self, names: frozenset[int]) -> Ints:
        """Row number of each reduced cell in the margin over some axes."""
        grid = (
            np.indices(self.shape).reshape(len(self.shape), -1)
            if self.shape
            else np.zeros((0, 1), dtype=np.int64)
        )
        row = np.zeros(grid.shape[1], dtype=np.int64)
        for axis in sorted(names):
            row = row * self.shape[axis] + grid[axis]
        return row

    def matrix(self) -> Ints:
        """Public margins as dense rows over the reduced cells."""
        return _stack([(self.margin_rows(names), 1) for names in self.known], self.size)

    def query_matrix(self) -> Ints:
        """The query as dense rows over the reduced cells."""
        return _stack([(self.margin_rows(names), weight) for names, weight in self.asked], self.size)

    def value_of(self, norm: Norm, per_margin: int) -> int:
        """Weighted sum when every margin that is asked for changes by ``per_margin``."""
        return sum((w if norm == "l1" else w * w) * per_margin for _, w in self.asked)

    def symmetries(self) -> Ints | None:
        """Generators of the cell permutations that keep margins and query: values of an axis, equal axes."""
        if self.size > 4096 or not self.axes:
            return None
        cells = np.arange(self.size).reshape(self.shape)
        out = []
        for axis, size in enumerate(self.shape):
            for value in range(size - 1):
                order = np.arange(size)
                order[[value, value + 1]] = order[[value + 1, value]]
                out.append(np.take(cells, order, axis=axis).ravel())
        for i in range(len(self.axes)):
            for j in range(i):
                if self.shape[i] == self.shape[j] and self._swappable(i, j):
                    out.append(np.swapaxes(cells, i, j).ravel())
        return np.array(out, dtype=np.int64) if out else None

    def _swappable(self, i: int, j: int) -> bool:
        turn = {i: j, j: i}
        known = sorted(sorted(turn.get(a, a) for a in names) for names in self.known)
        asked = sorted((sorted(turn.get(a, a) for a in names), w) for names, w in self.asked)
        return known == sorted(sorted(names) for names in self.known) and asked == sorted(
            (sorted(names), w) for names, w in self.asked
        )

    def shrink(self, records: int) -> Reduced:
        """Keep only as many values of each axis as moves of few records can touch (whole margins only)."""
        axes = []
        for at, axis in enumerate(self.axes):
            # Added and removed records have the same multiset of values on an axis inside a public margin.
            most = records if any(at in names for names in self.known) else 2 * records
            axes.append(replace(axis, size=min(axis.size, most)))
        if tuple(axes) == self.axes:
            return self
        step = f"a move of at most {records} records touches few values of an attribute, and values are alike"
        return replace(self, axes=tuple(axes), steps=(*self.steps, step))


def _stack(blocks: list[tuple[Ints, int]], width: int) -> Ints:
    height = sum(int(rows.max(initial=-1)) + 1 for rows, _ in blocks)
    out = np.zeros((height, width), dtype=np.int64)
    start = 0
    for rows, weight in blocks:
        out[start + rows, np.arange(width)] = weight
        start += int(rows.max(initial=-1)) + 1
    return out


def reduce_margins(domain: Domain, constraints: Sequence[Constraint], query: CuboidQuery) -> Reduced | None:
    """Reduce public whole margins and a query of cuboids; None when a fact is of another kind.

    Examples
    --------
    >>> domain = Domain({"a": 2, "b": 3, "c": 4, "d": 5})
    >>> facts = [Cuboid("a", "b", "d"), Cuboid("b", "c", "d")]
    >>> reduced = reduce_margins(domain, facts, CuboidQuery(domain, [domain.names]))
    >>> reduced.shape, [sorted(k) for k in reduced.known]
    ((2, 4), [[0], [1]])
    """
    sets: list[frozenset[str]] = []
    for constraint in constraints:
        if isinstance(constraint, Total):
            sets.append(frozenset())
        elif isinstance(constraint, Cuboid):
            sets.append(frozenset(constraint.names))
        else:
            return None
    steps: list[str] = []
    single = {name for name, size in zip(domain.names, domain.shape, strict=True) if size == 1}
    if single:
        steps.append(f"attributes with one value dropped: {', '.join(sorted(single))}")
    known = {names - single for names in sets}
    inside = {names for names in known if any(names < other for other in known)}
    if inside:
        steps.append("public margins inside other public margins dropped")
    known -= inside
    asked = [
        (frozenset(names) - single, weight) for names, weight in zip(query.sets, query.weights, strict=True)
    ]
    free = [(names, w) for names, w in asked if not any(names <= k for k in known)]
    if len(free) < len(asked):
        steps.append(f"{len(asked) - len(free)} asked tables follow from the public ones and cannot change")
    common = frozenset.intersection(*known) if known else frozenset()
    if common:
        steps.append(f"attributes in every public margin split the table: {', '.join(sorted(common))}")
        known = {names - common for names in known}
        free = [(names - common, w) for names, w in free]
    used = frozenset().union(*known, *(names for names, _ in free))
    groups: dict[tuple[bool, ...], list[str]] = {}
    for name in domain.names:
        if name in used:
            signature = tuple(name in k for k in sorted(known, key=sorted)) + tuple(
                name in q for q, _ in free
            )
            groups.setdefault(signature, []).append(name)
    merged = [names for names in groups.values() if len(names) > 1]
    if merged:
        steps.append(
            "attributes that always occur together merged: " + "; ".join(" x ".join(n) for n in merged)
        )
    axes = tuple(
        Axis(tuple(names), prod(domain.shape[domain.axis(n)] for n in names)) for names in groups.values()
    )
    place = {name: at for at, axis in enumerate(axes) for name in axis.names}
    return Reduced(
        domain,
        axes,
        tuple(frozenset(place[n] for n in names) for names in sorted(known, key=sorted)),
        tuple((frozenset(place[n] for n in names), w) for names, w in free),
        tuple(steps),
    )
