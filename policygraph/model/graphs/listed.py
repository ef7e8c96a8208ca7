"""Rules that are given by a list: blocks of values, and explicit edges.

Both are held in a canonical order, so that the same graph written in another order is the same object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from policygraph.model.graphs.rule import Bools, Cells, EdgeArrays, Rule, triangle

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Blocks", "Edges"]

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
        self.labels: Cells = rank[inverse.reshape(-1)]
        self.labels.setflags(write=False)

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
        return np.bincount(self.labels).astype(np.int64)

    @cached_property
    def _order(self) -> tuple[Cells, Cells]:
        """Vertices sorted by block, and where each block starts among them."""
        starts = np.concatenate(([0], np.cumsum(self.block_sizes)))
        return np.argsort(self.labels, kind="stable"), starts.astype(np.int64)

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
        self.u: Cells = low
        self.v: Cells = high
        self.u.setflags(write=False)
        self.v.setflags(write=False)

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
