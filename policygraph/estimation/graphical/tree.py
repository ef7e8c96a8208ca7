"""Junction trees. Owns :class:`JunctionTree`, and :func:`cells_with`: how large a tree would be with one more table.

A set of attributes is a mask, with one bit for each attribute, as for cuboids. The tree of some tables is made by eliminating attributes, the one with the
smallest table first; its size is the number of cells of all its cliques.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each comes after its parent.

    Attributes
    ----------
    shape
        Number of values of each attribute.
    cliques
        The attributes of each clique; every attribute is in one.
    parents
        Position of the parent of each clique, -1 for the first.
    separators
        What each clique shares with its parent, and so with all cliques outside its subtree.

    Examples
    --------
    >>> tree = JunctionTree.of((2, 3, 4, 5), [0b0011, 0b0110])
    >>> [bin(clique) for clique in tree.cliques], tree.parents, [bin(mask) for mask in tree.separators], tree.cells
    (['0b1000', '0b11', '0b110'], (-1, 0, 1), ['0b0', '0b0', '0b10'], 23)
    """

    shape: tuple[int, ...]
    cliques: tuple[int, ...]
    parents: tuple[int, ...]
    separators: tuple[int, ...]

    @classmethod
    def of(cls, shape: Sequence[int], masks: Iterable[int]) -> JunctionTree:
        """The tree of some tables: each of them is inside one clique."""
        from policygraph.estimation.graphical._compiled_elimination import eliminated

        found = np.zeros(len(shape), dtype=np.int64)
        eliminated(adjacency(len(shape), masks), np.array(shape, dtype=np.float64), found)
        cliques = sorted((int(mask) for mask in found if mask), key=lambda mask: (mask.bit_count(), mask))
        order, parents, separators = [0], [-1], [0]
        # A spanning tree with the largest separators is a junction tree (the cliques come from a triangulated graph).
        best = {at: (0, cliques[at] & cliques[0]) for at in range(1, len(cliques))}
        while best:
            at = max(best, key=lambda i: (best[i][1].bit_count(), -i))
            parent, shared = best.pop(at)
            parents.append(parent)
            separators.append(shared)
            order.append(at)
            for other, (_, known) in best.items():
                with_new = cliques[other] & cliques[at]
                if with_new.bit_count() > known.bit_count():
                    best[other] = len(order) - 1, with_new
        return cls(tuple(shape), tuple(cliques[at] for at in order), tuple(parents), tuple(separators))

    @property
    def cells(self) -> int:
        """Cells of all cliques together: the size of a model."""
        return sum(self.size(mask) for mask in self.cliques)

    def axes(self, mask: int) -> tuple[int, ...]:
        """Positions of the attributes of a mask, ascending."""
        return axes_of(mask)

    def size(self, mask: int) -> int:
        """Number of cells of a table."""
        return prod(self.dims(mask))

    def dims(self, mask: int) -> tuple[int, ...]:
        """Shape of a table."""
        return tuple(self.shape[axis] for axis in axes_of(mask))

    def holder(self, mask: int) -> int | None:
        """The smallest clique that contains a table; None when none does."""
        return next((at for at, clique in self._by_size if mask & ~clique == 0), None)

    @cached_property
    def _by_size(self) -> tuple[tuple[int, int], ...]:
        """Position and attributes of each clique, small tables first."""
        return tuple(sorted(enumerate(self.cliques), key=lambda pair: (self.size(pair[1]), pair[0])))

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Positions of the children of each clique."""
        return tuple(
            tuple(child for child, parent in enumerate(self.parents) if parent == at)
            for at in range(len(self.cliques))
        )

    @cached_property
    def below(self) -> tuple[int, ...]:
        """All attributes of the subtree of each clique."""
        out = list(self.cliques)
        for at in range(len(out) - 1, 0, -1):
            out[self.parents[at]] |= out[at]
        return tuple(out)


@lru_cache(maxsize=1 << 16)
def axes_of(mask: int) -> tuple[int, ...]:
    """Positions of the bits of a mask, ascending.

    Examples
    --------
    >>> axes_of(0b1010)
    (1, 3)
    """
    return tuple(axis for axis in range(mask.bit_length()) if mask >> axis & 1)


def adjacency(order: int, masks: Iterable[int]) -> Ints:
    """For each attribute the others that share a table with it."""
    out = np.zeros(order, dtype=np.int64)
    for mask in masks:
        for axis in axes_of(mask):
            out[axis] |= mask & ~(1 << axis)
    return out


def cells_with(shape: Sequence[int], masks: Iterable[int], candidates: Sequence[int]) -> Floats:
    """How many cells the tree of some tables has with each of some candidates as one more table.

    Examples
    --------
    >>> cells_with((2, 3, 4), [0b011], [0b001, 0b110, 0b101]).tolist()
    [10.0, 18.0, 14.0]
    """
    from policygraph.estimation.graphical import _compiled_elimination as compiled

    out = np.zeros(len(candidates))
    listed = np.array(candidates, dtype=np.int64)
    compiled.cells_with(adjacency(len(shape), masks), np.array(shape, dtype=np.float64), listed, out)
    return out
