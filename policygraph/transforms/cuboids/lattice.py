"""The cuboids of a domain and what can be computed from what. Owns :class:`Lattice`, :class:`Family`, :func:`grouped`, :func:`batches`.

A cuboid is a set of attributes, written as an integer with one bit for each attribute (bit i for attribute i). One can be
computed from another when its attributes are among the other's. Few larger cuboids contain many small ones, which serves twice: counting
looks at every record, so that small cuboids are counted together, as sums of one of at most ``ROOM`` cells; and of more attributes than can be
listed set by set, these larger cuboids are worth measuring with noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.model.domain import Domain

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_CUBOIDS = 1 << 20
"""Largest down-closed family that is listed."""
MOST_ATTRIBUTES = 62
"""A cuboid is held in one 64-bit integer."""
ROOM = 1 << 16
"""Most cells of a cuboid that is counted only so that others can be summed from it."""
AT_ONCE = 1 << 26
"""Cells of cuboids that are counted in one reading (512 MB)."""


class Lattice:
    """All cuboids of a domain.

    Parameters
    ----------
    domain
        The attributes.

    Examples
    --------
    >>> lattice = Lattice(Domain({"sex": 2, "age": 7, "salary": 5}))
    >>> lattice.mask(["age", "sex"]), lattice.names(0b101), lattice.size(0b110), lattice.level(0b110)
    (3, ('sex', 'salary'), 35, 2)
    >>> lattice.computable(0b001, of=0b011), lattice.computable(0b100, of=0b011)
    (True, False)
    >>> [lattice.names(mask) for mask in lattice.below(0b011)]
    [(), ('sex',), ('age',), ('sex', 'age')]
    """

    def __init__(self, domain: Domain) -> None:
        if not isinstance(domain, Domain):
            raise InputError("cuboids need a table, not a network.", code="cubes.domain", value=domain)
        if len(domain.names) > MOST_ATTRIBUTES:
            raise InputError(
                f"{len(domain.names)} attributes: expected at most {MOST_ATTRIBUTES} in a cube.",
                code="cubes.attributes",
            )
        self.domain = domain
        self.order = len(domain.names)
        self.base = (1 << self.order) - 1

    def mask(self, names: str | Iterable[str]) -> int:
        """The cuboid of some attributes."""
        listed = [names] if isinstance(names, str) else list(names)
        made = 0
        for name in listed:
            made |= 1 << self.domain.axis(name)
        return made

    @staticmethod
    def mask_of(axes: Iterable[int]) -> int:
        """The cuboid of some attributes, given by their positions."""
        return sum(1 << axis for axis in axes)

    def names(self, mask: int) -> tuple[str, ...]:
        """The attributes of a cuboid, in the order of the domain."""
        return tuple(name for axis, name in enumerate(self.domain.names) if mask >> axis & 1)

    def axes(self, mask: int) -> tuple[int, ...]:
        """Positions of the attributes of a cuboid, ascending."""
        return tuple(axis for axis in range(self.order) if mask >> axis & 1)

    def shape(self, mask: int) -> tuple[int, ...]:
        """Number of values of each attribute of a cuboid."""
        return tuple(self.domain.shape[axis] for axis in self.axes(mask))

    def size(self, mask: int) -> int:
        """Number of cells of a cuboid."""
        return prod(self.shape(mask))

    @staticmethod
    def level(mask: int) -> int:
        """Number of attributes of a cuboid."""
        return int(mask).bit_count()

    @staticmethod
    def computable(mask: int, *, of: int) -> bool:
        """Whether one cuboid is a sum over cells of another."""
        return mask & ~of == 0

    @staticmethod
    def below(mask: int) -> Iterator[int]:
        """All cuboids that can be computed from one, itself included, ascending."""
        low = 0
        while True:
            yield low
            if low == mask:
                return
            low = (low - mask) & mask

    def parent(self, mask: int, given: Iterable[int]) -> int | None:
        """The smallest of some cuboids from which one can be computed; None when there is none."""
        found = [c for c in given if self.computable(mask, of=c)]
        return min(found, key=lambda c: (self.size(c), c), default=None)

    def route(self, wanted: Iterable[int], start: int) -> list[tuple[int, int]]:
        """In which order to compute cuboids from one another, the larger ones first.

        Returns
        -------
        list
            Pairs of a cuboid and the cuboid it is summed from: the smallest already there, ``start`` at first.

        Examples
        --------
        >>> Lattice(Domain({"a": 9, "b": 2, "c": 3})).route([0b001, 0b011, 0b000], 0b111)
        [(3, 7), (1, 3), (0, 1)]
        """
        there, out = [start], []
        for mask in sorted(set(wanted), key=lambda c: (-self.level(c), -self.size(c), c)):
            parent = self.parent(mask, there)
            if parent is None:
                raise InputError(
                    f"cuboid {list(self.names(mask))} cannot be computed from {list(self.names(start))}.",
                    code="cubes.not-computable",
                    value=self.names(mask),
                )
            out.append((mask, parent))
            if mask != start:
                there.append(mask)
        return out

    def maximal(self, masks: Iterable[int]) -> list[int]:
        """Those of some cuboids that cannot be computed from another of them."""
        larger: list[int] = []
        kept: list[int] = []
        for _, level in groupby(sorted(set(masks), key=self.level, reverse=True), key=self.level):
            # Different cuboids with as many attributes cannot be computed from each other.
            here = [m for m in level if not any(self.computable(m, of=other) for other in larger)]
            kept += here
            larger = kept.copy()
        return sorted(kept)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lattice) and self.domain == other.domain

    def __hash__(self) -> int:
        return hash(("lattice", self.domain))


class Family:
    """Cuboids together with all that can be computed from them, as one vector of positions.

    Parameters
    ----------
    lattice
        The lattice of the domain.
    tops
        Cuboids; the family is everything below them.

    Notes
    -----
    A quantity of every cuboid is a vector along ``masks``. Sums over all cuboids above, or below, with factors that
    multiply over attributes, take one pass for each attribute: the pass of attribute i touches the pairs
    (S, S + i), so that a sum over 3^k pairs costs k 2^k.

    Examples
    --------
    >>> family = Family(Lattice(Domain({"a": 2, "b": 3})), [0b11])
    >>> family.masks.tolist(), family.sizes.tolist()
    ([0, 1, 2, 3], [1.0, 2.0, 3.0, 6.0])
    """

    def __init__(self, lattice: Lattice, tops: Iterable[int]) -> None:
        self.lattice = lattice
        found: set[int] = set()
        for top in lattice.maximal(tops):
            if 1 << lattice.level(top) > MOST_CUBOIDS:
                raise _too_many(lattice.level(top))
            found.update(lattice.below(top))
            if len(found) > MOST_CUBOIDS:
                raise _too_many(len(found))
        self.masks: Ints = np.array(sorted(found), dtype=np.int64)

    @cached_property
    def index(self) -> dict[int, int]:
        """Position of each cuboid."""
        return {int(mask): at for at, mask in enumerate(self.masks)}

    @cached_property
    def sizes(self) -> Floats:
        """Number of cells of each cuboid."""
        made: Floats = np.exp2(
            sum(
                (
                    np.log2(float(n)) * ((self.masks >> axis) & 1)
                    for axis, n in enumerate(self.lattice.domain.shape)
                ),
                np.zeros(len(self.masks)),
            )
        )
        return np.rint(made) if float(made.max(initial=1)) < 2.0**50 else made

    @cached_property
    def pairs(self) -> tuple[tuple[int, int, Ints, Ints], ...]:
        """For each attribute that occurs: its axis, its number of values, positions without it and with it."""
        out = []
        for axis, n in enumerate(self.lattice.domain.shape):
            high = np.flatnonzero((self.masks >> axis) & 1)
            if len(high):
                low = np.searchsorted(self.masks, self.masks[high] ^ (1 << axis))
                out.append((axis, n, low.astype(np.int64), high.astype(np.int64)))
        return tuple(out)

    def at(self, masks: Iterable[int]) -> Ints:
        """Positions of some cuboids of the family."""
        listed = list(masks)
        missing = [mask for mask in listed if mask not in self.index]
        if missing:
            raise InputError(
                f"cuboid {list(self.lattice.names(missing[0]))} is not computable from the given ones.",
                code="cubes.not-computable",
                value=self.lattice.names(missing[0]),
            )
        return np.array([self.index[mask] for mask in listed], dtype=np.int64)

    def spread(self, masks: Sequence[int], values: Any) -> Floats:
        """A vector that has the given values at some cuboids, and 0 elsewhere."""
        out = np.zeros(len(self.masks))
        out[self.at(masks)] = values
        return out

    def __len__(self) -> int:
        return len(self.masks)


def _too_many(count: int) -> RefusedError:
    return RefusedError(
        f"more than {MOST_CUBOIDS:,} cuboids would have to be listed ({count}). Publish cuboids of fewer attributes.",
        code="cubes.too-many",
        value=count,
    )


@dataclass(frozen=True)
class Group:
    """A cuboid, and those that are summed from it.

    Attributes
    ----------
    axes
        Attributes of the larger cuboid, ascending.
    wanted
        The wanted cuboids that are summed from it, as ascending attributes.
    """

    axes: tuple[int, ...]
    wanted: tuple[tuple[int, ...], ...]


def grouped(shape: Sequence[int], sets: Iterable[Sequence[int]], room: int = ROOM) -> list[Group]:
    """Group cuboids into few that are counted.

    Parameters
    ----------
    shape
        Number of values of each attribute; at most 62 attributes.
    sets
        The wanted cuboids, as positions of attributes.
    room
        Most cells of a group; a wanted cuboid with more is counted by itself.

    Returns
    -------
    list
        Groups; each wanted cuboid is in exactly one of them.

    Notes
    -----
    Greedy: the largest cuboid that is left opens a group, which grows by the attribute that brings in most of those
    left, the smallest attribute of equally good ones, while it has room. Number of groups times wanted cuboids, in numpy.

    Examples
    --------
    >>> grouped([2, 3, 4], [(0, 1), (1, 2), (0,)])
    [Group(axes=(0, 1, 2), wanted=((0,), (0, 1), (1, 2)))]
    >>> [made.axes for made in grouped([2, 3, 4], [(0, 1), (1, 2), (0,)], room=12)]
    [(1, 2), (0, 1)]
    """
    listed = sorted({tuple(sorted(set(axes))) for axes in sets})
    sizes = {axes: prod(shape[axis] for axis in axes) for axes in listed}
    order = sorted(listed, key=lambda axes: (-sizes[axes], axes))
    left = np.array([sum(1 << axis for axis in axes) for axes in order], dtype=np.int64)
    names = np.arange(len(order))
    out: list[Group] = []
    while len(left):
        mask, size = int(left[0]), sizes[order[int(names[0])]]
        while True:
            missing = left & ~np.int64(mask)
            # Those that lack one attribute of the group come in with it.
            single = missing[(missing != 0) & (missing & (missing - 1) == 0)]
            bits, gains = np.unique(single, return_counts=True)
            grown = [
                (int(gain), -shape[int(bit).bit_length() - 1], -int(bit))
                for bit, gain in zip(bits.tolist(), gains.tolist(), strict=True)
                if size * shape[int(bit).bit_length() - 1] <= room
            ]
            if not grown:
                break
            _, n, bit = max(grown)
            mask, size = mask | -bit, size * -n
        inside = (left & ~np.int64(mask)) == 0
        axes = tuple(axis for axis in range(len(shape)) if mask >> axis & 1)
        out.append(Group(axes, tuple(sorted(order[int(at)] for at in names[inside]))))
        left, names = left[~inside], names[~inside]
    return out


def batches(groups: Sequence[Group], shape: Sequence[int], most: int = AT_ONCE) -> Iterator[list[Group]]:
    """Cut a plan into readings of the records whose tables fit into memory together.

    Examples
    --------
    >>> plan = grouped([2, 3, 4], [(0, 1), (1, 2), (0,)], room=12)
    >>> [len(group) for group in batches(plan, [2, 3, 4], most=12)]
    [1, 1]
    """
    together: list[Group] = []
    cells = 0
    for made in groups:
        size = prod(shape[axis] for axis in made.axes)
        if together and cells + size > most:
            yield together
            together, cells = [], 0
        together.append(made)
        cells += size
    if together:
        yield together
