"""What every graph on the numbers 0 .. size-1 must answer. Owns :class:`Rule`.

A rule knows nothing of attributes or labels: :class:`~policygraph.model.graphs.PolicyGraph` joins a rule to a
domain, adds bottom, checks what users hand in and refuses what would be too long to list. Rules may
therefore trust their arguments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Cells", "EdgeArrays", "Rule", "triangle"]

Cells = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
EdgeArrays = tuple[Cells, Cells]


class Rule(ABC):
    """An undirected graph without loops on the numbers 0 .. ``size``-1, given by a rule or by its edges.

    Components are numbered in the order of their smallest members, so that two ways to write one graph
    number them alike.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of vertices; may exceed 64 bits."""

    @property
    @abstractmethod
    def n_edges(self) -> int:
        """Number of edges, by formula."""

    @property
    @abstractmethod
    def n_components(self) -> int:
        """Number of connected components."""

    @abstractmethod
    def has_edge(self, u: int, v: int) -> bool:
        """Whether u and v are joined."""

    @abstractmethod
    def adjacent(self, u: Cells, v: Cells) -> Bools:
        """Vectorised :meth:`has_edge` for arrays of one shape."""

    @abstractmethod
    def neighbours(self, u: int) -> Iterator[int]:
        """Neighbours of u, lazily, in no promised order."""

    @abstractmethod
    def distance(self, u: int, v: int) -> int | None:
        """Length of a shortest path, or None."""

    @abstractmethod
    def component_of(self, u: int) -> int:
        """Number of the component of u."""

    @abstractmethod
    def components(self) -> Cells:
        """Number of the component of every vertex."""

    @abstractmethod
    def chunks(self, chunk: int) -> Iterator[EdgeArrays]:
        """Every edge once, as arrays u < v of at most ``chunk`` entries."""

    def distance_to_any(self, u: int, targets: Iterable[int]) -> int | None:
        """Distance from u to the nearest of some vertices, or None."""
        found = [d for d in (self.distance(u, v) for v in targets) if d is not None]
        return min(found) if found else None

    def steps(self) -> Iterator[int] | None:
        """Differences d >= 1 such that the edges are all pairs x, x+d inside 0 .. size-1; None if not so."""
        return None


def triangle(rank: Cells) -> EdgeArrays:
    """Pair i < j with the given rank in the order 01, 02, 12, 03, 13, 23, ...

    Examples
    --------
    >>> [(int(i), int(j)) for i, j in zip(*triangle(np.arange(4)))]
    [(0, 1), (0, 2), (1, 2), (0, 3)]

    Notes
    -----
    j is the largest integer with j(j-1)/2 <= rank. The float root is within one of it for ranks below 2**60,
    and is corrected in integers.
    """
    j = ((1.0 + np.sqrt(1.0 + 8.0 * rank)) / 2.0).astype(np.int64)
    j = np.where(j * (j - 1) // 2 > rank, j - 1, j)
    j = np.where((j + 1) * j // 2 <= rank, j + 1, j)
    return rank - j * (j - 1) // 2, j
