"""Rules on a product of rows: one coordinate at a time, blocks of boxes, and the L1 ball.

Vertices are numbered in C order, the last coordinate running fastest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from math import prod

import numpy as np

from policygraph.errors import RefusedError
from policygraph.model.graphs.listed import Blocks
from policygraph.model.graphs.rule import Bools, Cells, EdgeArrays, Rule

__all__ = ["BlockGrid", "L1Ball", "Product", "decode", "decode_arrays", "encode"]

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


@dataclass(frozen=True)
class Product(Rule):
    """Exactly one coordinate changes, along its own rule (the Cartesian product of graphs).

    Examples
    --------
    >>> from policygraph.model.graphs.simple import Path
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
    def shape(self) -> tuple[int, ...]:
        """Number of values of each coordinate."""
        return tuple(factor.size for factor in self.factors)

    @cached_property
    def size(self) -> int:
        """Product of the factors' sizes."""
        return prod(self.shape)

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
class BlockGrid(Rule):
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
    def shape(self) -> tuple[int, ...]:
        """Number of values of each coordinate."""
        return tuple(factor.size for factor in self.factors)

    @cached_property
    def size(self) -> int:
        """Product of the factors' sizes."""
        return prod(self.shape)

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
class L1Ball(Rule):
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

    shape: tuple[int, ...]
    theta: int

    @cached_property
    def size(self) -> int:
        """Product of the sides."""
        return prod(self.shape)

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

    @property
    def n_components(self) -> int:
        """One."""
        return 1

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

    def component_of(self, u: int) -> int:
        """Always 0."""
        return 0

    def components(self) -> Cells:
        """All zero."""
        return np.zeros(self.size, dtype=np.int64)

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
