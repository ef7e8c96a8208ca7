"""Records that change between two Blowfish neighbours. Owns :class:`BlowfishMove`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

__all__ = ["BlowfishMove"]


@dataclass(frozen=True)
class BlowfishMove:
    """Records that change between two neighbours, and what the histogram shows of it.

    Parameters
    ----------
    transitions
        One pair (old vertex, new vertex) for every record that changes; all other records are absent.
    change
        New histogram minus old one, as (cell, difference) pairs without zeros.
    """

    transitions: tuple[tuple[Hashable, Hashable], ...]
    change: tuple[tuple[Hashable, int], ...]

    def dense(self, cells: int) -> tuple[int, ...]:
        """Write the change with one entry for every one of the cells 0 .. ``cells`` - 1.

        Examples
        --------
        >>> BlowfishMove(((0, 2),), ((0, -1), (2, 1))).dense(3)
        (-1, 0, 1)
        """
        entries = dict(self.change)
        return tuple(entries.get(cell, 0) for cell in range(cells))
