"""Few larger cuboids that contain many small ones. Owns :class:`Group`, :func:`grouped` and :func:`batches`.

Two uses. Looking at every record is what counting costs, so that small cuboids are counted together: a larger cuboid of at most ``ROOM``
cells is counted, and all wanted ones inside it are sums. And of more attributes than can be listed set by set, these larger cuboids are
worth measuring with noise, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

__all__ = ["ROOM", "Group", "batches", "grouped"]

ROOM = 1 << 16
"""Most cells of a cuboid that is counted only so that others can be summed from it."""
AT_ONCE = 1 << 26
"""Cells of cuboids that are counted in one reading (512 MB)."""


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
