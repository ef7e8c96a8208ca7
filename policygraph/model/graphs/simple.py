"""Rules on one row of values: complete, empty, path with a threshold, bit flips.

Each answer is a formula in the number of values, so that none of these graphs is ever listed unless asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from policygraph.model.graphs.rule import Bools, Cells, EdgeArrays, Rule, triangle

__all__ = ["Bit", "Complete", "Empty", "Path"]


@dataclass(frozen=True)
class Complete(Rule):
    """Every two vertices are joined.

    Examples
    --------
    >>> Complete(10**6).n_edges
    499999500000
    """

    n: int

    @property
    def size(self) -> int:
        """Number of vertices."""
        return self.n

    @property
    def n_edges(self) -> int:
        """n(n-1)/2."""
        return self.n * (self.n - 1) // 2

    @property
    def n_components(self) -> int:
        """One, unless there is no vertex."""
        return min(self.n, 1)

    def has_edge(self, u: int, v: int) -> bool:
        """Whether u and v differ."""
        return u != v

    def adjacent(self, u: Cells, v: Cells) -> Bools:
        """Whether u and v differ."""
        joined: Bools = u != v
        return joined

    def neighbours(self, u: int) -> Iterator[int]:
        """All others."""
        return (v for v in range(self.n) if v != u)

    def distance(self, u: int, v: int) -> int | None:
        """0 or 1."""
        return int(u != v)

    def component_of(self, u: int) -> int:
        """Always 0."""
        return 0

    def components(self) -> Cells:
        """All zero."""
        return np.zeros(self.n, dtype=np.int64)

    def chunks(self, chunk: int) -> Iterator[EdgeArrays]:
        """Pairs in the order of :func:`triangle`."""
        for start in range(0, self.n_edges, chunk):
            yield triangle(np.arange(start, min(start + chunk, self.n_edges), dtype=np.int64))

    def steps(self) -> Iterator[int]:
        """Every difference."""
        return iter(range(1, self.n))


@dataclass(frozen=True)
class Empty(Rule):
    """No two vertices are joined: the attribute does not change."""

    n: int

    @property
    def size(self) -> int:
        """Number of vertices."""
        return self.n

    @property
    def n_edges(self) -> int:
        """Zero."""
        return 0

    @property
    def n_components(self) -> int:
        """Every vertex is one."""
        return self.n

    def has_edge(self, u: int, v: int) -> bool:
        """Never."""
        return False

    def adjacent(self, u: Cells, v: Cells) -> Bools:
        """Never."""
        return np.zeros(u.shape, dtype=np.bool_)

    def neighbours(self, u: int) -> Iterator[int]:
        """None."""
        return iter(())

    def distance(self, u: int, v: int) -> int | None:
        """0 to itself, None otherwise."""
        return 0 if u == v else None

    def component_of(self, u: int) -> int:
        """Itself."""
        return u

    def components(self) -> Cells:
        """0, 1, 2, ..."""
        return np.arange(self.n, dtype=np.int64)

    def chunks(self, chunk: int) -> Iterator[EdgeArrays]:
        """Nothing."""
        return iter(())

    def steps(self) -> Iterator[int]:
        """No difference."""
        return iter(())


@dataclass(frozen=True)
class Path(Rule):
    """Values in order; those at most ``theta`` apart are joined. theta = 1 is the line.

    Examples
    --------
    >>> Path(10, theta=3).n_edges, Path(10, theta=3).distance(0, 9)
    (24, 3)

    Notes
    -----
    Distance: each step covers at most theta, and steps of exactly theta towards the goal stay inside, hence
    ceil(|u - v| / theta).
    """

    n: int
    theta: int = 1

    @property
    def size(self) -> int:
        """Number of vertices."""
        return self.n

    @property
    def n_edges(self) -> int:
        """Sum of n - d over the differences d = 1 .. theta that fit."""
        reach = min(self.theta, self.n - 1)
        return reach * self.n - reach * (reach + 1) // 2

    @property
    def n_components(self) -> int:
        """One."""
        return 1

    def has_edge(self, u: int, v: int) -> bool:
        """Whether 1 <= |u - v| <= theta."""
        return 1 <= abs(u - v) <= self.theta

    def adjacent(self, u: Cells, v: Cells) -> Bools:
        """Whether 1 <= |u - v| <= theta."""
        joined: Bools = (u != v) & (np.abs(u - v) <= min(self.theta, self.n))
        return joined

    def neighbours(self, u: int) -> Iterator[int]:
        """Values within theta."""
        low, high = max(0, u - self.theta), min(self.n - 1, u + self.theta)
        return (v for v in range(low, high + 1) if v != u)

    def distance(self, u: int, v: int) -> int | None:
        """ceil(|u - v| / theta)."""
        return -(-abs(u - v) // self.theta)

    def component_of(self, u: int) -> int:
        """Always 0."""
        return 0

    def components(self) -> Cells:
        """All zero."""
        return np.zeros(self.n, dtype=np.int64)

    def chunks(self, chunk: int) -> Iterator[EdgeArrays]:
        """One difference after the other."""
        for d in self.steps():
            for start in range(0, self.n - d, chunk):
                u = np.arange(start, min(start + chunk, self.n - d), dtype=np.int64)
                yield u, u + d

    def steps(self) -> Iterator[int]:
        """1 .. theta."""
        return iter(range(1, min(self.theta, self.n - 1) + 1))


@dataclass(frozen=True)
class Bit(Rule):
    """Values as binary numbers; those that differ in one bit are joined.

    Examples
    --------
    >>> sorted(Bit(6).neighbours(5)), Bit(6).distance(3, 4)
    ([1, 4], 3)

    Notes
    -----
    Distance is the number of differing bits also when n is no power of two: first clear the bits that only u
    has, then set those that only v has; the numbers on the way are at most u, then at most v.
    The number of edges counts each edge at its larger end: the sum of the bit counts of 0 .. n-1.
    """

    n: int

    @property
    def size(self) -> int:
        """Number of vertices."""
        return self.n

    @property
    def n_edges(self) -> int:
        """Sum of the bit counts of 0 .. n-1, bit by bit."""
        total = 0
        for b in range(self.n.bit_length()):
            period = 2 << b
            total += (self.n // period) * (period // 2) + max(0, self.n % period - period // 2)
        return total

    @property
    def n_components(self) -> int:
        """One."""
        return 1

    def has_edge(self, u: int, v: int) -> bool:
        """Whether exactly one bit differs."""
        return (u ^ v).bit_count() == 1

    def adjacent(self, u: Cells, v: Cells) -> Bools:
        """Whether exactly one bit differs."""
        x = u ^ v
        joined: Bools = (x != 0) & ((x & (x - 1)) == 0)
        return joined

    def neighbours(self, u: int) -> Iterator[int]:
        """Flips of one bit that stay inside."""
        return (u ^ (1 << b) for b in range(self.n.bit_length()) if u ^ (1 << b) < self.n)

    def distance(self, u: int, v: int) -> int | None:
        """Number of differing bits."""
        return (u ^ v).bit_count()

    def component_of(self, u: int) -> int:
        """Always 0."""
        return 0

    def components(self) -> Cells:
        """All zero."""
        return np.zeros(self.n, dtype=np.int64)

    def chunks(self, chunk: int) -> Iterator[EdgeArrays]:
        """One bit after the other."""
        for start in range(0, self.n, chunk):
            v = np.arange(start, min(start + chunk, self.n), dtype=np.int64)
            for b in range(self.n.bit_length()):
                high = v[((v >> b) & 1) == 1]
                if high.size:
                    yield high ^ (1 << b), high
