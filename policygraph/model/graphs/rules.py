"""What a policy graph is on the numbers 0 .. size-1: :class:`Rule` and its kinds, and :data:`BOTTOM`.

A rule knows nothing of attributes or labels: :class:`~policygraph.model.graphs.PolicyGraph` joins a rule to a
domain, adds bottom, checks what users hand in and refuses what would be too long to list. Rules may
therefore trust their arguments. On one row of values: complete, empty, path with a threshold, bit flips, each answered by a
formula in the number of values. Listed: blocks and edges. On a product of rows: one coordinate at a time, blocks of boxes, and
the balls of the L1 and the Euclidean distance; vertices are then numbered in C order, the last coordinate running fastest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from math import isqrt, prod
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import numpy.typing as npt

from policygraph.errors import RefusedError
from policygraph.linalg import read_only

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@final
class Bottom:
    """The vertex for "no record"; there is one object of this class, :data:`BOTTOM`.

    It is no index, so that it cannot be mistaken for a cell.

    Examples
    --------
    >>> import pickle
    >>> BOTTOM, Bottom() is BOTTOM, pickle.loads(pickle.dumps(BOTTOM)) is BOTTOM
    (BOTTOM, True, True)
    """

    __slots__ = ()

    def __new__(cls) -> Bottom:
        return BOTTOM

    def __reduce__(self) -> str:
        return "BOTTOM"

    def __repr__(self) -> str:
        return "BOTTOM"


BOTTOM: Final[Bottom] = object.__new__(Bottom)
"""The vertex for "no record": an edge to it says that a record may appear or vanish."""

Vertex = int | Bottom


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


@dataclass(frozen=True)
class _Row(Rule):
    """A connected rule on one row of values."""

    n: int

    @property
    def size(self) -> int:
        """Number of vertices."""
        return self.n

    @property
    def n_components(self) -> int:
        """One, unless there is no vertex."""
        return min(self.n, 1)

    def component_of(self, u: int) -> int:
        """Always 0."""
        return 0

    def components(self) -> Cells:
        """All zero."""
        return np.zeros(self.n, dtype=np.int64)


@dataclass(frozen=True)
class Complete(_Row):
    """Every two vertices are joined.

    Examples
    --------
    >>> Complete(10**6).n_edges
    499999500000
    """

    @property
    def n_edges(self) -> int:
        """n(n-1)/2."""
        return self.n * (self.n - 1) // 2

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

    def chunks(self, chunk: int) -> Iterator[EdgeArrays]:
        """Pairs in the order of :func:`triangle`."""
        for start in range(0, self.n_edges, chunk):
            yield triangle(np.arange(start, min(start + chunk, self.n_edges), dtype=np.int64))

    def steps(self) -> Iterator[int]:
        """Every difference."""
        return iter(range(1, self.n))


@dataclass(frozen=True)
class Empty(_Row):
    """No two vertices are joined: the attribute does not change."""

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
class Path(_Row):
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

    theta: int = 1

    @property
    def n_edges(self) -> int:
        """Sum of n - d over the differences d = 1 .. theta that fit."""
        reach = min(self.theta, self.n - 1)
        return reach * self.n - reach * (reach + 1) // 2

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
class Bit(_Row):
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

    @property
    def n_edges(self) -> int:
        """Sum of the bit counts of 0 .. n-1, bit by bit."""
        total = 0
        for b in range(self.n.bit_length()):
            period = 2 << b
            total += (self.n // period) * (period // 2) + max(0, self.n % period - period // 2)
        return total

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

    def chunks(self, chunk: int) -> Iterator[EdgeArrays]:
        """One bit after the other."""
        for start in range(0, self.n, chunk):
            v = np.arange(start, min(start + chunk, self.n), dtype=np.int64)
            for b in range(self.n.bit_length()):
                high = v[((v >> b) & 1) == 1]
                if high.size:
                    yield high ^ (1 << b), high


MANY = 100_000
"""Above so many edges the components are searched by a compiled loop, whose first call costs half a second."""


def _changes(ordered: Cells) -> Bools:
    """Where a number differs from the one before it; true at the first."""
    new = np.ones(ordered.size, dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


class _Listed(Rule):
    """Equality and hash by the bytes of the arrays."""

    def _key(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, _Listed) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class Blocks(_Listed):
    """Vertices of one block are all joined, those of different blocks never.

    Parameters
    ----------
    labels
        The block of each vertex, as any numbers; renumbered in the order of first appearance.

    Examples
    --------
    >>> blocks = Blocks(np.array([7, 7, 3, 7]))
    >>> blocks.labels.tolist(), blocks.n_edges, blocks.distance(0, 2)
    ([0, 0, 1, 0], 3, None)
    """

    def __init__(self, labels: Cells) -> None:
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        rank = np.empty(first.size, dtype=np.int64)
        rank[np.argsort(first)] = np.arange(first.size)
        self.labels: Cells = read_only(rank[inverse.reshape(-1)])

    def _key(self) -> tuple[Any, ...]:
        return (self.labels.tobytes(),)

    def __repr__(self) -> str:
        return f"Blocks({self.size} values in {self.n_components} blocks)"

    @property
    def size(self) -> int:
        """Number of vertices."""
        return self.labels.size

    @cached_property
    def block_sizes(self) -> Cells:
        """Number of vertices of each block."""
        sizes: Cells = read_only(np.bincount(self.labels).astype(np.int64))
        return sizes

    @cached_property
    def _order(self) -> tuple[Cells, Cells]:
        """Vertices sorted by block, and where each block starts among them."""
        starts = np.concatenate(([0], np.cumsum(self.block_sizes))).astype(np.int64)
        return read_only(np.argsort(self.labels, kind="stable")), read_only(starts)

    def members(self, block: int) -> Cells:
        """Vertices of one block, ascending."""
        order, starts = self._order
        return order[starts[block] : starts[block + 1]]

    @cached_property
    def n_edges(self) -> int:
        """Sum of m(m-1)/2 over the blocks."""
        sizes, times = np.unique(self.block_sizes, return_counts=True)
        return sum(m * (m - 1) // 2 * t for m, t in zip(sizes.tolist(), times.tolist()))

    @property
    def n_components(self) -> int:
        """Number of blocks."""
        return self.block_sizes.size

    def has_edge(self, u: int, v: int) -> bool:
        """Whether u and v differ and share a block."""
        return u != v and bool(self.labels[u] == self.labels[v])

    def adjacent(self, u: Cells, v: Cells) -> Bools:
        """Whether u and v differ and share a block."""
        joined: Bools = (u != v) & (self.labels[u] == self.labels[v])
        return joined

    def neighbours(self, u: int) -> Iterator[int]:
        """The rest of the block."""
        return (int(v) for v in self.members(int(self.labels[u])) if v != u)

    def distance(self, u: int, v: int) -> int | None:
        """0, 1, or None across blocks."""
        return int(u != v) if self.labels[u] == self.labels[v] else None

    def component_of(self, u: int) -> int:
        """Number of the block."""
        return int(self.labels[u])

    def components(self) -> Cells:
        """Number of the block of each vertex."""
        return self.labels.copy()

    def chunks(self, chunk: int) -> Iterator[EdgeArrays]:
        """All blocks of one size together, so that many small blocks cost no more than one large one."""
        order, starts = self._order
        for m in np.unique(self.block_sizes).tolist():
            pairs = m * (m - 1) // 2
            if not pairs:
                continue
            first = starts[np.flatnonzero(self.block_sizes == m)]
            for at in range(0, pairs * first.size, chunk):
                rank = np.arange(at, min(at + chunk, pairs * first.size), dtype=np.int64)
                block, pair = np.divmod(rank, pairs)
                i, j = triangle(pair)
                yield order[first[block] + i], order[first[block] + j]


class Edges(_Listed):
    """The listed pairs are joined.

    Parameters
    ----------
    n
        Number of vertices, below 2**63.
    u, v
        Ends of the edges, without loops; order, direction and duplicates do not matter.

    Examples
    --------
    >>> edges = Edges(6, np.array([4, 1, 0]), np.array([1, 4, 1]))
    >>> edges.n_edges, edges.distance(0, 4), edges.components().tolist()
    (2, 2, [0, 0, 1, 2, 0, 3])
    """

    def __init__(self, n: int, u: Cells, v: Cells) -> None:
        self.n = n
        low, high = np.minimum(u, v).astype(np.int64), np.maximum(u, v).astype(np.int64)
        bits = max(n - 1, 1).bit_length()
        if 2 * bits < 64:
            # Both ends in one word are sorted many times faster than two arrays.
            keys = np.sort((low << bits) | high)
            keys = keys[_changes(keys)]
            low, high = keys >> bits, keys & ((1 << bits) - 1)
        else:
            order = np.lexsort((high, low))
            low, high = low[order], high[order]
            new = _changes(low) | _changes(high)
            low, high = low[new], high[new]
        self.u: Cells = read_only(low)
        self.v: Cells = read_only(high)

    def _key(self) -> tuple[Any, ...]:
        return self.n, self.u.tobytes(), self.v.tobytes()

    def __repr__(self) -> str:
        return f"Edges({self.n_edges} on {self.n} values)"

    @property
    def size(self) -> int:
        """Number of vertices."""
        return self.n

    @property
    def n_edges(self) -> int:
        """Number of distinct listed pairs."""
        return self.u.size

    @cached_property
    def _nodes(self) -> Cells:
        """Vertices with an edge, ascending. Only these enter the searches, however many others there are."""
        if self._dense:
            met = np.zeros(self.n, dtype=np.bool_)
            met[self.u] = met[self.v] = True
            return np.flatnonzero(met)
        ends = np.sort(np.concatenate([self.u, self.v]))
        return ends[_changes(ends)]

    @property
    def _dense(self) -> bool:
        """Whether a table over all vertices is no larger than a few lists of the edges."""
        return self.n <= 4 * self.u.size

    def _places(self, vertices: Cells) -> Cells:
        """Positions of vertices, which must have an edge, among those that have one."""
        if self._nodes.size == self.n:
            return vertices
        if not self._dense:
            return np.searchsorted(self._nodes, vertices)
        at = np.zeros(self.n, dtype=np.int64)
        at[self._nodes] = np.arange(self._nodes.size)
        found: Cells = at[vertices]
        return found

    @cached_property
    def _sparse(self) -> csr_array:
        from scipy.sparse import csr_array

        m = self._nodes.size
        a, b = self._places(self.u), self._places(self.v)
        ones = np.ones(2 * a.size, dtype=np.int8)
        return csr_array((ones, (np.concatenate([a, b]), np.concatenate([b, a]))), shape=(m, m))

    def _at(self, u: int) -> int | None:
        """Position of u among the vertices with an edge."""
        at = int(np.searchsorted(self._nodes, u))
        return at if at < self._nodes.size and self._nodes[at] == u else None

    def has_edge(self, u: int, v: int) -> bool:
        """Whether the pair is listed."""
        return bool(self.adjacent(np.array([u], dtype=np.int64), np.array([v], dtype=np.int64))[0])

    def adjacent(self, u: Cells, v: Cells) -> Bools:
        """Whether the pairs are listed."""
        nodes, m = self._nodes, self._nodes.size
        if m == 0:
            return np.zeros(u.shape, dtype=np.bool_)
        low, high = np.minimum(u, v), np.maximum(u, v)
        a = np.minimum(np.searchsorted(nodes, low), m - 1)
        b = np.minimum(np.searchsorted(nodes, high), m - 1)
        known = (nodes[a] == low) & (nodes[b] == high)
        keys = self._keys
        at = np.minimum(np.searchsorted(keys, a * m + b), keys.size - 1)
        found: Bools = known & (keys[at] == a * m + b)
        return found

    @cached_property
    def _keys(self) -> Cells:
        return self._places(self.u) * self._nodes.size + self._places(self.v)

    def neighbours(self, u: int) -> Iterator[int]:
        """Other ends of the listed pairs of u."""
        at = self._at(u)
        if at is None:
            return iter(())
        start, stop = self._sparse.indptr[at : at + 2]
        return (int(v) for v in self._nodes[self._sparse.indices[start:stop]])

    def distance(self, u: int, v: int) -> int | None:
        """By breadth-first search over the vertices that have an edge."""
        return self.distance_to_any(u, (v,))

    def distance_to_any(self, u: int, targets: Iterable[int]) -> int | None:
        """Distance to the nearest target, from one search."""
        wanted = set(targets)
        if u in wanted:
            return 0
        start, goals = self._at(u), [g for g in map(self._at, wanted) if g is not None]
        if start is None or not goals:
            return None
        from scipy.sparse.csgraph import breadth_first_order

        order, before = breadth_first_order(self._sparse, start, directed=True, return_predecessors=True)
        met = np.flatnonzero(np.isin(order, goals))
        if not met.size:
            return None
        # The search meets vertices by distance, so the first goal it meets is a nearest one.
        at, steps = int(order[met[0]]), 0
        while at != start:
            at, steps = int(before[at]), steps + 1
        return steps

    @cached_property
    def _joined(self) -> tuple[int, Cells]:
        """Number of components of the vertices with an edge, and the component of each of them."""
        if self.u.size > MANY:
            from policygraph.model.graphs._compiled_joining import joined

            count, labels = joined(self._nodes.size, self._places(self.u), self._places(self.v))
        else:
            from scipy.sparse.csgraph import connected_components

            if not self.u.size:
                return 0, self._nodes
            count, labels = connected_components(self._sparse, directed=False)
        return int(count), labels.astype(np.int64)

    @cached_property
    def _roots(self) -> tuple[Cells, Cells]:
        """Smallest member of the component of each vertex with an edge; sorted vertices that are no root."""
        count, labels = self._joined
        first = np.full(count, self._nodes.size, dtype=np.int64)
        # Vertices ascend, so the first appearance of a label is at its smallest member.
        np.minimum.at(first, labels, np.arange(labels.size))
        roots = self._nodes[first[labels]]
        return roots, self._nodes[roots != self._nodes]

    @property
    def n_components(self) -> int:
        """Those of the vertices with an edge, and every other vertex."""
        return self.n - int(self._nodes.size) + self._joined[0]

    def component_of(self, u: int) -> int:
        """How many components start before the one of u."""
        roots, others = self._roots
        at = self._at(u)
        root = u if at is None else int(roots[at])
        return root - int(np.searchsorted(others, root))

    def components(self) -> Cells:
        """Components in the order of their smallest members."""
        roots, others = self._roots
        start = np.arange(self.n, dtype=np.int64)
        start[self._nodes] = roots
        return start - np.searchsorted(others, start)

    def chunks(self, chunk: int) -> Iterator[EdgeArrays]:
        """The list itself."""
        for at in range(0, self.u.size, chunk):
            yield self.u[at : at + chunk], self.v[at : at + chunk]


COUNT_LIMIT = 20_000_000


def decode(index: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Coordinates of a vertex; exact beyond 64 bits.

    Examples
    --------
    >>> decode(10, (2, 7)), encode((1, 3), (2, 7))
    ((1, 3), 10)
    """
    codes = []
    for n in reversed(shape):
        index, code = divmod(index, n)
        codes.append(code)
    return tuple(reversed(codes))


def encode(codes: Sequence[int], shape: Sequence[int]) -> int:
    """Vertex with these coordinates."""
    index = 0
    for code, n in zip(codes, shape, strict=True):
        index = index * n + code
    return index


def decode_arrays(index: Cells, shape: Sequence[int]) -> list[Cells]:
    """Vectorised :func:`decode`, for any number of coordinates."""
    codes = []
    for n in reversed(shape):
        index, code = np.divmod(index, n)
        codes.append(code)
    return codes[::-1]


class _OfFactors(Rule):
    """A rule over several coordinates, each with a rule of its own."""

    factors: tuple[Rule, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each coordinate."""
        return tuple(factor.size for factor in self.factors)

    @cached_property
    def size(self) -> int:
        """Product of the factors' sizes."""
        return prod(self.shape)


@dataclass(frozen=True)
class Product(_OfFactors):
    """Exactly one coordinate changes, along its own rule (the Cartesian product of graphs).

    Examples
    --------
    >>> from policygraph.model.graphs.rules import Path
    >>> grid = Product((Path(1000), Path(1000)))
    >>> grid.n_edges, grid.distance(0, 999_999)
    (1998000, 1998)

    Notes
    -----
    A path in the product projects to a walk in each factor and every step serves one factor, so distances add
    up; components are the products of components.
    """

    factors: tuple[Rule, ...]

    @cached_property
    def n_edges(self) -> int:
        """Edges of each factor, once for every choice of the other coordinates."""
        return sum(factor.n_edges * (self.size // factor.size) for factor in self.factors)

    @property
    def n_components(self) -> int:
        """Product of the factors' numbers of components."""
        return prod(factor.n_components for factor in self.factors)

    def has_edge(self, u: int, v: int) -> bool:
        """Whether one coordinate differs, by an edge of its rule."""
        ends = zip(self.factors, decode(u, self.shape), decode(v, self.shape), strict=True)
        differing = [(factor, a, b) for factor, a, b in ends if a != b]
        return len(differing) == 1 and differing[0][0].has_edge(*differing[0][1:])

    def adjacent(self, u: Cells, v: Cells) -> Bools:
        """Whether one coordinate differs, by an edge of its rule."""
        differing = np.zeros(u.shape, dtype=np.int64)
        joined = np.zeros(u.shape, dtype=np.bool_)
        codes = zip(self.factors, decode_arrays(u, self.shape), decode_arrays(v, self.shape), strict=True)
        for factor, a, b in codes:
            differing += a != b
            joined |= factor.adjacent(a, b)
        joined &= differing == 1
        return joined

    def neighbours(self, u: int) -> Iterator[int]:
        """Neighbours along each coordinate in turn."""
        stride = self.size
        for factor, code in zip(self.factors, decode(u, self.shape), strict=True):
            stride //= factor.size
            for other in factor.neighbours(code):
                yield u + (other - code) * stride

    def distance(self, u: int, v: int) -> int | None:
        """Sum of the distances of the coordinates."""
        total = 0
        for factor, a, b in zip(self.factors, decode(u, self.shape), decode(v, self.shape), strict=True):
            d = factor.distance(a, b)
            if d is None:
                return None
            total += d
        return total

    def component_of(self, u: int) -> int:
        """Components of the coordinates, numbered in C order."""
        parts = zip(self.factors, decode(u, self.shape), strict=True)
        return encode([f.component_of(code) for f, code in parts], [f.n_components for f in self.factors])

    def components(self) -> Cells:
        """Components of the coordinates, numbered in C order."""
        labels = np.zeros(1, dtype=np.int64)
        for factor in self.factors:
            labels = (labels[:, None] * factor.n_components + factor.components()[None, :]).reshape(-1)
        return labels

    def chunks(self, chunk: int) -> Iterator[EdgeArrays]:
        """One coordinate after the other."""
        inner = self.size
        for factor in self.factors:
            inner //= factor.size
            rest = self.size // factor.size
            for a, b in factor.chunks(chunk):
                for at in range(0, a.size * rest, chunk):
                    edge, place = np.divmod(np.arange(at, min(at + chunk, a.size * rest)), rest)
                    base = place // inner * (inner * factor.size) + place % inner
                    yield base + a[edge] * inner, base + b[edge] * inner


@dataclass(frozen=True)
class BlockGrid(_OfFactors):
    """Blocks that are products of blocks of each coordinate; all inside one of them are joined.

    Examples
    --------
    >>> halves = Blocks(np.array([0, 0, 1, 1]))
    >>> BlockGrid((halves, halves)).n_edges
    24

    Notes
    -----
    Sum of m^2 over the product blocks is the product over coordinates of the sums of m^2, which gives the number
    of edges without listing the blocks.
    """

    factors: tuple[Blocks, ...]

    @cached_property
    def n_edges(self) -> int:
        """Half of the ordered pairs inside a block."""
        # A block of m values has m^2 ordered pairs, m of them equal: m^2 = 2 m(m-1)/2 + m.
        return (prod(2 * f.n_edges + f.size for f in self.factors) - self.size) // 2

    @property
    def n_components(self) -> int:
        """Number of product blocks."""
        return prod(factor.n_components for factor in self.factors)

    def has_edge(self, u: int, v: int) -> bool:
        """Whether u and v differ and share a block."""
        return self.distance(u, v) == 1

    def adjacent(self, u: Cells, v: Cells) -> Bools:
        """Whether u and v differ and share a block."""
        joined: Bools = u != v
        codes = zip(self.factors, decode_arrays(u, self.shape), decode_arrays(v, self.shape), strict=True)
        for factor, a, b in codes:
            joined &= factor.labels[a] == factor.labels[b]
        return joined

    def neighbours(self, u: int) -> Iterator[int]:
        """The rest of the block."""
        codes = zip(self.factors, decode(u, self.shape), strict=True)
        sides = [factor.members(int(factor.labels[code])).tolist() for factor, code in codes]
        return (v for v in (encode(cell, self.shape) for cell in product(*sides)) if v != u)

    def distance(self, u: int, v: int) -> int | None:
        """0, 1, or None across blocks."""
        codes = zip(self.factors, decode(u, self.shape), decode(v, self.shape), strict=True)
        return int(u != v) if all(f.labels[a] == f.labels[b] for f, a, b in codes) else None

    def component_of(self, u: int) -> int:
        """Blocks of the coordinates, numbered in C order."""
        codes = zip(self.factors, decode(u, self.shape), strict=True)
        return encode([f.component_of(code) for f, code in codes], [f.n_components for f in self.factors])

    def components(self) -> Cells:
        """Blocks of the coordinates, numbered in C order."""
        return Product(self.factors).components()

    def chunks(self, chunk: int) -> Iterator[EdgeArrays]:
        """Blocks of one size together."""
        return Blocks(self.components()).chunks(chunk)


@dataclass(frozen=True)
class Ball(Rule):
    """Vertices of a box that are near each other by some distance of their coordinates; near ones differ by 1 on one coordinate at least."""

    shape: tuple[int, ...]

    @property
    @abstractmethod
    def together(self) -> int:
        """Most coordinates on which two joined vertices differ at once, were there so many."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """Most by which one coordinate of two joined vertices differs."""

    @abstractmethod
    def offsets(self) -> Iterator[tuple[int, ...]]:
        """Differences v - u of edges u < v, coordinate by coordinate; the first non-zero entry is positive."""

    @cached_property
    def size(self) -> int:
        """Product of the sides."""
        return prod(self.shape)

    @property
    def n_components(self) -> int:
        """One."""
        return 1

    def component_of(self, u: int) -> int:
        """Always 0."""
        return 0

    def components(self) -> Cells:
        """All zero."""
        return np.zeros(self.size, dtype=np.int64)

    def chunks(self, chunk: int) -> Iterator[EdgeArrays]:
        """One offset after the other: its lower ends fill a box."""
        for offset in self.offsets():
            box = [n - abs(d) for n, d in zip(self.shape, offset, strict=True)]
            step = 0
            for n, d in zip(self.shape, offset, strict=True):
                step = step * n + d
            for at in range(0, prod(box), chunk):
                codes = decode_arrays(np.arange(at, min(at + chunk, prod(box)), dtype=np.int64), box)
                u = np.zeros(codes[0].shape, dtype=np.int64)
                for n, d, code in zip(self.shape, offset, codes, strict=True):
                    u = u * n + code + max(0, -d)
                yield u, u + step


@dataclass(frozen=True)
class L1Ball(Ball):
    """Vertices whose coordinates differ by at most ``theta`` in all (L1 distance) are joined.

    Examples
    --------
    >>> L1Ball((1000, 1000), theta=2).n_edges
    5990002

    Notes
    -----
    Distance: a monotone lattice path from u to v stays inside the box and may be cut into pieces of length theta,
    hence ceil(L1 / theta).
    Number of edges: ordered pairs of one coordinate at distance d number n for d = 0 and 2(n - d) otherwise;
    multiply these polynomials and add the coefficients up to theta. With Q(x) = sum of (n - d) x^d the factor
    is 2Q - n, and Q (1 - x)^2 = n - (n + 1) x + x^(n+1), so one product costs a few running sums.
    """

    theta: int

    @property
    def together(self) -> int:
        """theta: one step on each."""
        return self.theta

    @property
    def reach(self) -> int:
        """theta: all steps on one."""
        return self.theta

    @cached_property
    def n_edges(self) -> int:
        """Half of the ordered pairs at distances 1 .. theta."""
        reach = sum(n - 1 for n in self.shape)
        if self.theta >= reach:
            return self.size * (self.size - 1) // 2
        reach = self.theta
        if reach * len(self.shape) > COUNT_LIMIT:
            raise RefusedError(
                f"threshold {self.theta} on {len(self.shape)} attributes: counting the pairs would take more than "
                f"{COUNT_LIMIT:,} steps. Use a smaller threshold, or the full graph if all may change.",
                code="graph.too-large",
                theta=self.theta,
            )
        counts = [1] + [0] * reach
        for n in self.shape:
            shifted = [
                n * c - (n + 1) * (counts[d - 1] if d else 0) + (counts[d - n - 1] if d > n else 0)
                for d, c in enumerate(counts)
            ]
            counts = [2 * q - n * c for q, c in zip(accumulate(accumulate(shifted)), counts)]
        return (sum(counts) - self.size) // 2

    def has_edge(self, u: int, v: int) -> bool:
        """Whether 1 <= L1 distance <= theta."""
        return u != v and self._apart(u, v) <= self.theta

    def _apart(self, u: int, v: int) -> int:
        return sum(abs(a - b) for a, b in zip(decode(u, self.shape), decode(v, self.shape), strict=True))

    def adjacent(self, u: Cells, v: Cells) -> Bools:
        """Whether 1 <= L1 distance <= theta."""
        apart = np.zeros(u.shape, dtype=np.int64)
        for a, b in zip(decode_arrays(u, self.shape), decode_arrays(v, self.shape), strict=True):
            apart += np.abs(a - b)
        return (apart > 0) & (apart <= min(self.theta, sum(self.shape)))

    def neighbours(self, u: int) -> Iterator[int]:
        """Vertices of the ball around u that lie inside the box."""
        centre = decode(u, self.shape)

        def walk(axis: int, index: int, left: int) -> Iterator[int]:
            if axis == len(self.shape):
                yield index
                return
            n, c = self.shape[axis], centre[axis]
            for code in range(max(0, c - left), min(n - 1, c + left) + 1):
                yield from walk(axis + 1, index * n + code, left - abs(code - c))

        return (v for v in walk(0, 0, self.theta) if v != u)

    def distance(self, u: int, v: int) -> int | None:
        """ceil(L1 distance / theta)."""
        return -(-self._apart(u, v) // self.theta)

    def offsets(self) -> Iterator[tuple[int, ...]]:
        """Differences v - u of edges u < v, coordinate by coordinate; the first non-zero entry is positive."""

        def walk(axis: int, left: int, signed: bool) -> Iterator[tuple[int, ...]]:
            if axis == len(self.shape):
                if signed:
                    yield ()
                return
            reach = min(left, self.shape[axis] - 1)
            for d in range(-reach if signed else 0, reach + 1):
                for rest in walk(axis + 1, left - abs(d), signed or d > 0):
                    yield (d, *rest)

        return walk(0, self.theta, False)


DISTANCE_WORK = 200_000
"""Steps of the search for a shortest path in :class:`EuclideanBall`."""


@dataclass(frozen=True)
class EuclideanBall(Ball):
    """Vertices whose Euclidean distance squared is at most ``square`` are joined.

    Examples
    --------
    >>> ball = EuclideanBall((10, 10), square=5)
    >>> ball.has_edge(0, 12), ball.has_edge(0, 22), ball.n_edges, ball.distance(0, 99)
    (True, False, 790, 6)

    Notes
    -----
    Number of edges: ordered pairs of one coordinate at distance d number n for d = 0 and 2(n - d) otherwise; multiply these polynomials in the square
    of d and add the coefficients up to ``square``.
    Distance: of the steps of a path, coordinate by coordinate, those against the goal can be left out and as much taken off the others, which makes no step
    longer and keeps the path between the ends, inside the box. So it is the least number of vectors of whole numbers >= 0, no longer
    than the radius, that add up to the differences; k of them reach at most k radii (``docs/explanation/proofs/policy-graph-rules.md``).
    """

    square: int

    @property
    def together(self) -> int:
        """``square``: each coordinate that differs adds 1 at least."""
        return self.square

    @property
    def reach(self) -> int:
        """The root of ``square``, rounded down."""
        return isqrt(self.square)

    @cached_property
    def n_edges(self) -> int:
        """Half of the ordered pairs at squared distances 1 .. square."""
        if self.square >= sum((n - 1) ** 2 for n in self.shape):
            return self.size * (self.size - 1) // 2
        if self.square * (self.reach + 1) * len(self.shape) > COUNT_LIMIT:
            raise RefusedError(
                f"a Euclidean threshold of {self.square} squared on {len(self.shape)} attributes: counting the pairs would take more than "
                f"{COUNT_LIMIT:,} steps. Use a smaller threshold, or the full graph if all may change.",
                code="graph.too-large",
                theta=self.square,
            )
        counts = [1] + [0] * self.square
        for n in self.shape:
            made = [n * c for c in counts]
            for d in range(1, min(self.reach, n - 1) + 1):
                times, shift = 2 * (n - d), d * d
                for at in range(self.square + 1 - shift):
                    made[at + shift] += times * counts[at]
            counts = made
        return (sum(counts) - self.size) // 2

    def has_edge(self, u: int, v: int) -> bool:
        """Whether 1 <= squared distance <= square."""
        return u != v and sum(d * d for d in self._apart(u, v)) <= self.square

    def _apart(self, u: int, v: int) -> tuple[int, ...]:
        return tuple(abs(a - b) for a, b in zip(decode(u, self.shape), decode(v, self.shape), strict=True))

    def adjacent(self, u: Cells, v: Cells) -> Bools:
        """Whether 1 <= squared distance <= square."""
        near = np.ones(u.shape, dtype=np.bool_)
        apart = np.zeros(u.shape, dtype=np.int64)
        limit = min(self.square, sum((n - 1) ** 2 for n in self.shape))
        for a, b in zip(decode_arrays(u, self.shape), decode_arrays(v, self.shape), strict=True):
            d = np.abs(a - b)
            near &= d <= self.reach
            # Farther ones are not near already, and their squares could leave 64 bits.
            d = np.minimum(d, self.reach)
            apart += d * d
        return near & (apart > 0) & (apart <= limit)

    def neighbours(self, u: int) -> Iterator[int]:
        """Vertices of the ball around u that lie inside the box."""
        centre = decode(u, self.shape)

        def walk(axis: int, index: int, left: int) -> Iterator[int]:
            if axis == len(self.shape):
                yield index
                return
            n, c, reach = self.shape[axis], centre[axis], isqrt(left)
            for code in range(max(0, c - reach), min(n - 1, c + reach) + 1):
                yield from walk(axis + 1, index * n + code, left - (code - c) ** 2)

        return (v for v in walk(0, 0, self.square) if v != u)

    def offsets(self) -> Iterator[tuple[int, ...]]:
        """Differences v - u of edges u < v, coordinate by coordinate; the first non-zero entry is positive."""

        def walk(axis: int, left: int, signed: bool) -> Iterator[tuple[int, ...]]:
            if axis == len(self.shape):
                if signed:
                    yield ()
                return
            reach = min(isqrt(left), self.shape[axis] - 1)
            for d in range(-reach if signed else 0, reach + 1):
                for rest in walk(axis + 1, left - d * d, signed or d > 0):
                    yield (d, *rest)

        return walk(0, self.square, False)

    def distance(self, u: int, v: int) -> int | None:
        """The least number of steps, by search; straight ones first.

        Raises
        ------
        RefusedError
            When the search takes too long.
        """
        goal = tuple(sorted(d for d in self._apart(u, v) if d))
        if not goal:
            return 0
        far = sum(d * d for d in goal)
        steps = max(1, isqrt(far // self.square))
        steps += steps * steps * self.square < far
        work = [DISTANCE_WORK]
        while not self._reaches(goal, steps, set(), work):
            steps += 1
        return steps

    def _reaches(
        self, goal: tuple[int, ...], steps: int, failed: set[tuple[tuple[int, ...], int]], work: list[int]
    ) -> bool:
        """Whether so many vectors no longer than the radius add up to a goal of sorted positive numbers."""
        far = sum(d * d for d in goal)
        if far <= self.square:
            return steps > 0 or not goal
        if steps * steps * self.square < far or (goal, steps) in failed:
            return False
        work[0] -= 1
        if work[0] < 0:
            raise RefusedError(
                f"a Euclidean threshold of {self.square} squared: a shortest path over such distances takes too long to find.",
                code="graph.too-large",
                theta=self.square,
            )
        for step in sorted(self._largest(goal, self.square), key=lambda d: self._aside(goal, d)):
            rest = tuple(sorted(g - d for g, d in zip(goal, step, strict=True) if g > d))
            if self._reaches(rest, steps - 1, failed, work):
                return True
        failed.add((goal, steps))
        return False

    @staticmethod
    def _aside(goal: tuple[int, ...], step: tuple[int, ...]) -> int:
        """What is left squared after a step."""
        return sum((g - d) ** 2 for g, d in zip(goal, step, strict=True))

    def _largest(self, goal: tuple[int, ...], left: int) -> Iterator[tuple[int, ...]]:
        """Steps inside a goal of which no entry can grow, and some others."""
        if len(goal) == 1:
            yield (min(goal[0], isqrt(left)),)
            return
        for d in range(min(goal[0], isqrt(left)), -1, -1):
            for rest in self._largest(goal[1:], left - d * d):
                yield (d, *rest)
