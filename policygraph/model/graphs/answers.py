"""What a policy graph answers: edges, distances, components, incidence. Owns :class:`Answers`.

The first half of :class:`~policygraph.model.graphs.PolicyGraph`: it joins a rule on cells to bottom, checks
arguments and refuses lists that would not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from operator import index
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.model.domain import Domain, Network
from policygraph.model.graphs.differences import difference_sets
from policygraph.model.graphs.forms import LARGEST, table
from policygraph.model.graphs.rules import (
    BOTTOM,
    Ball,
    BlockGrid,
    Bools,
    Bottom,
    Cells,
    Complete,
    EdgeArrays,
    L1Ball,
    Product,
    Rule,
    Vertex,
)

if TYPE_CHECKING:
    from scipy.sparse import csc_array

__all__ = ["Answers"]


@dataclass(frozen=True)
class Answers:
    """A rule on the cells of a domain, and the cells that are joined to bottom."""

    domain: Domain | Network
    rule: Rule
    bottom_cells: range | tuple[int, ...] = range(0)
    """Cells whose records may appear or vanish; a range over all of them for ``with_bottom()``."""

    def __post_init__(self) -> None:
        if self.rule.size != self.domain.size:
            raise InputError(
                f"{self.rule!r} has {self.rule.size} vertices: expected one for each of {self.domain.size} cells.",
                code="graph.size",
            )
        cells = self.bottom_cells
        if not isinstance(cells, range):
            kept = tuple(sorted({self._cell(cell) for cell in cells}))
            object.__setattr__(
                self, "bottom_cells", range(len(kept)) if len(kept) in (0, self.domain.size) else kept
            )
        elif cells not in (range(0), range(self.domain.size)):
            raise InputError(
                f"bottom_cells={cells!r}: expected all cells, none, or a tuple of some.", code="graph.bottom"
            )

    @property
    def size(self) -> int:
        """Number of cells, bottom not counted."""
        return self.domain.size

    @property
    def bottom(self) -> Literal["none", "all", "some"]:
        """Whether records of no, all or some cells may appear and vanish."""
        if isinstance(self.bottom_cells, range):
            return "all" if self.bottom_cells.stop else "none"
        return "some"

    @property
    def _n_bottom(self) -> int:
        # len() of a range fails beyond 64 bits.
        return self.bottom_cells.stop if isinstance(self.bottom_cells, range) else len(self.bottom_cells)

    @property
    def n_edges(self) -> int:
        """Number of edges, those to bottom included; by formula."""
        return self.rule.n_edges + self._n_bottom

    def _cell(self, u: Any) -> int:
        if isinstance(u, int) and not isinstance(u, bool):
            at = u
        else:
            try:
                at = -1 if isinstance(u, bool) else index(u)
            except TypeError:
                at = -1
        if not 0 <= at < self.domain.size:
            raise InputError(
                f"cell {u!r}: expected an index from 0 to {self.domain.size - 1}, or BOTTOM. "
                "domain.index(labels) gives the index of a cell.",
                code="graph.cell",
                value=u,
            )
        return at

    def _vertex(self, u: Vertex) -> Vertex:
        return u if isinstance(u, Bottom) else self._cell(u)

    def _refuse(self, what: str, count: int, limit: int) -> None:
        if count > limit:
            raise RefusedError(
                f"{what}: {count:,} is more than the limit of {limit:,}. Ask has_edge, distance, n_edges or "
                "difference_sets, which need no list, or raise limit=.",
                code="graph.too-large",
                count=count,
                limit=limit,
            )

    def edges(self, limit: int = 1_000_000) -> Iterator[tuple[int, Vertex]]:
        """Every edge once, as cell indices u < v, then those to bottom.

        Raises
        ------
        RefusedError
            If there are more than ``limit`` edges; nothing is listed then.
        """
        self._refuse("edges", self.n_edges, limit)
        between = (zip(u.tolist(), v.tolist()) for u, v in self.edge_chunks(limit=limit))
        return chain(chain.from_iterable(between), ((u, BOTTOM) for u in self.bottom_cells))

    def edge_chunks(self, chunk: int = 1 << 20, limit: int = 1_000_000_000) -> Iterator[EdgeArrays]:
        """Edges between cells as arrays u < v of at most ``chunk`` entries, lazily; without bottom.

        Raises
        ------
        RefusedError
            If there are more than ``limit`` edges, as in the full graph of a large domain.
        """
        self._refuse("edges between cells", self.rule.n_edges, limit)
        if self.rule.n_edges and (self.size > LARGEST or isinstance(self.rule, BlockGrid)):
            self._refuse("cells to list edges over", self.size, min(limit, LARGEST))
        if chunk < 1:
            raise InputError(f"chunk={chunk}: expected at least 1.", code="graph.chunk", value=chunk)
        return self.rule.chunks(chunk) if self.rule.n_edges else iter(())

    def edge_arrays(self, limit: int = 20_000_000) -> EdgeArrays:
        """Ends u < v of all edges between cells; bottom edges are in :attr:`bottom_cells`."""
        chunks = self.edge_chunks(limit=limit)
        u, v = (np.empty(self.rule.n_edges, dtype=np.int64) for _ in range(2))
        at = 0
        for a, b in chunks:
            u[at : at + a.size], v[at : at + a.size] = a, b
            at += a.size
        return u, v

    def has_edge(self, u: Vertex, v: Vertex) -> bool:
        """Whether two vertices (cell indices or BOTTOM) are a secret pair."""
        a, b = self._vertex(u), self._vertex(v)
        if isinstance(a, Bottom) or isinstance(b, Bottom):
            return a is not b and (b if isinstance(a, Bottom) else a) in self.bottom_cells
        return self.rule.has_edge(a, b)

    def adjacent(self, u: npt.ArrayLike, v: npt.ArrayLike) -> Bools:
        """Vectorised :meth:`has_edge` for arrays of cell indices; shapes are broadcast."""
        a, b = np.broadcast_arrays(np.asarray(u), np.asarray(v))
        for ends in (a, b):
            if ends.dtype.kind not in "iu" or (ends.size and (ends.min() < 0 or ends.max() >= self.size)):
                raise InputError(
                    f"cells of type {ends.dtype}: expected integer indices from 0 to {self.size - 1}.",
                    code="graph.cell",
                )
        return self.rule.adjacent(a.astype(np.int64), b.astype(np.int64))

    def neighbours(self, u: Vertex, limit: int = 1_000_000) -> tuple[Vertex, ...]:
        """Vertices joined to u: cells in order, then BOTTOM."""
        at = self._vertex(u)
        if isinstance(at, Bottom):
            self._refuse("neighbours of bottom", self._n_bottom, limit)
            return tuple(self.bottom_cells)
        found = list(islice(self.rule.neighbours(at), limit + 1))
        self._refuse(f"neighbours of cell {at} (at least)", len(found), limit)
        return (*sorted(found), *([BOTTOM] if at in self.bottom_cells else []))

    def distance(self, u: Vertex, v: Vertex) -> int | None:
        """Length of a shortest path between two vertices, or None if there is none.

        Notes
        -----
        A shortest path either avoids bottom or passes it once, from the cell next to bottom that is nearest to
        u to the one nearest to v.
        """
        a, b = self._vertex(u), self._vertex(v)
        if isinstance(b, Bottom):
            return 0 if isinstance(a, Bottom) else self._to_bottom(a)
        if isinstance(a, Bottom):
            return self._to_bottom(b)
        if self.bottom == "all":
            return 0 if a == b else 1 if self.rule.has_edge(a, b) else 2
        direct = self.rule.distance(a, b)
        if self.bottom == "none" or direct in (0, 1):
            return direct
        down, up = self._to_bottom(a), self._to_bottom(b)
        ways = [direct, None if down is None or up is None else down + up]
        return min((way for way in ways if way is not None), default=None)

    def _to_bottom(self, u: int) -> int | None:
        if u in self.bottom_cells:
            return 1
        if self.bottom != "some":
            return None
        d = self.rule.distance_to_any(u, self.bottom_cells)
        return None if d is None else d + 1

    @cached_property
    def _at_bottom(self) -> list[int]:
        """Numbers of the rule's components that bottom joins together, ascending (some cells only)."""
        return sorted({self.rule.component_of(u) for u in self.bottom_cells})

    @property
    def n_components(self) -> int:
        """Number of connected components; bottom counts as a vertex where it has an edge."""
        if self.bottom == "some":
            return self.rule.n_components - len(self._at_bottom) + 1
        return 1 if self.bottom == "all" else self.rule.n_components

    def component_of(self, u: Vertex) -> int:
        """Number of the component of a vertex, in the order of their smallest cells."""
        at = self._vertex(u)
        if isinstance(at, Bottom):
            if self.bottom == "none":
                raise InputError(
                    "component_of(BOTTOM): this graph has no bottom. with_bottom() adds it.",
                    code="graph.bottom",
                )
            return 0 if self.bottom == "all" else self._at_bottom[0]
        if self.bottom == "all":
            return 0
        label = self.rule.component_of(at)
        if self.bottom == "none":
            return label
        first, *others = self._at_bottom
        return first if label in others else label - sum(other < label for other in others)

    def components(self, limit: int = 100_000_000) -> Cells:
        """Number of the component of every cell (the same numbers as :meth:`component_of`)."""
        self._refuse("cells to label", self.size, limit)
        if self.bottom == "all":
            return np.zeros(self.size, dtype=np.int64)
        labels = self.rule.components()
        if self.bottom == "none":
            return labels
        first, *others = self._at_bottom
        return np.where(np.isin(labels, others), first, labels - np.searchsorted(others, labels))

    @property
    def is_connected(self) -> bool:
        """Whether there is a path between any two vertices."""
        return self.n_components == 1

    @property
    def is_tree(self) -> bool:
        """Whether the graph is connected without a cycle; bottom counts as a vertex where it has an edge."""
        return self.is_connected and self.n_edges == self.size + (self.bottom != "none") - 1

    def incidence(self, limit: int = 20_000_000) -> csc_array:
        """The matrix P_G: one row for each cell, one column for each edge.

        Returns
        -------
        scipy.sparse.csc_array
            int64. Columns in the order of :meth:`edge_arrays`, -1 at u and +1 at v; then one column with a single +1
            for each of :attr:`bottom_cells`.
        """
        from scipy.sparse import csc_array

        self._refuse("columns of the incidence matrix", self.n_edges, limit)
        self._refuse("rows of the incidence matrix", self.size, LARGEST)
        u, v = self.edge_arrays(limit)
        lone = np.fromiter(self.bottom_cells, dtype=np.int64)
        rows = np.concatenate([np.stack([u, v], axis=1).reshape(-1), lone])
        data = np.ones(rows.size, dtype=np.int64)
        data[0 : 2 * u.size : 2] = -1
        starts = np.concatenate([2 * np.arange(u.size + 1), 2 * u.size + 1 + np.arange(lone.size)])
        return csc_array((data, rows, starts), shape=(self.size, u.size + lone.size))

    @cached_property
    def _difference_sets(self) -> tuple[frozenset[str], ...]:
        return difference_sets(table(self.domain, "difference_sets"), self.rule)

    def difference_sets(self) -> tuple[frozenset[str], ...]:
        """Inclusion-maximal sets of attributes on which the two cells of an edge can differ at once.

        Exact; edges to bottom are not counted. See :mod:`policygraph.model.graphs.differences`.
        """
        return self._difference_sets

    def translations(self) -> Iterator[tuple[int, ...]] | None:
        """Differences d, one code for each attribute, such that the edges are all pairs of cells x, x + d.

        Returns
        -------
        iterator or None
            Each difference once up to sign, its first non-zero entry positive, lazily; None when the graph is not
            of this kind (bits, blocks, listed edges, networks).
        """
        if not isinstance(self.domain, Domain):
            return None
        shape = self.domain.shape
        if isinstance(self.rule, Complete):
            return L1Ball(shape, sum(shape)).offsets()
        if isinstance(self.rule, Ball):
            return self.rule.offsets()
        factors = self.rule.factors if isinstance(self.rule, Product) else (self.rule,)
        moves = [factor.steps() for factor in factors]
        if any(move is None for move in moves):
            return None
        return (
            tuple(d if axis == at else 0 for axis in range(len(shape)))
            for at, move in enumerate(moves)
            if move is not None
            for d in move
        )
