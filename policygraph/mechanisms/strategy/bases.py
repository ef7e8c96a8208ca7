"""On which numbers a strategy counts: cells, prefix sums along one attribute, or subtree sums of a policy graph.

Owns :class:`AxisBase` and :class:`ForestBase`. Cells x = M y with whole coordinates y; some of them may be *fixed*: no move
changes them, so that they are released without noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.model.domain import Domain
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.transforms.incidence.tree import ForestTransform, rooted

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Coordinates(ABC):
    """Coordinates in which the rows of a strategy are written.

    Attributes
    ----------
    domain
        The domain of the cells.
    shape
        How many coordinates are measured, along each axis.
    """

    domain: Domain
    shape: tuple[int, ...]

    @property
    @abstractmethod
    def fixed(self) -> Query | None:
        """What is released without noise, as a query; None when all is measured."""

    @abstractmethod
    def coordinates(self, cells: Ints) -> Ints:
        """Return the coordinates that are measured, as an array of the shape."""

    @abstractmethod
    def cells(self, coordinates: Floats, fixed: Ints) -> Floats:
        """Return M y for estimated coordinates and exact fixed ones."""

    @abstractmethod
    def difference(self, u: Ints, v: Ints) -> Any:
        """Return the coordinates of one record in u less one in v (-1 for none), pair by pair, as sparse columns."""

    @abstractmethod
    def workload(self, columns: Any) -> Any:
        """Return W M without fixed coordinates, as a sparse matrix, for the sparse matrix W over the cells."""

    @abstractmethod
    def describe(self) -> str:
        """Say in a few words what the coordinates are."""

    @abstractmethod
    def to_spec(self) -> dict[str, Any]:
        """Return the plain form."""


class AxisBase(Coordinates):
    """The cells themselves, or prefix sums along one attribute.

    Parameters
    ----------
    domain
        The domain of the cells.
    axis
        The attribute along which prefix sums are taken, by number; None for the cells.
    exact
        Whether the last prefix sum, the total along the attribute, is fixed.

    Examples
    --------
    >>> base = AxisBase(Domain({"age": 4}), 0, exact=True)
    >>> base.coordinates(np.array([5, 0, 2, 1])).tolist(), base.fixed.answer([5, 0, 2, 1]).tolist()
    ([5, 5, 7], [8])
    >>> base.cells(np.array([5.0, 5.0, 7.0]), np.array([8])).tolist()
    [5.0, 0.0, 2.0, 1.0]
    """

    def __init__(self, domain: Domain, axis: int | None = None, *, exact: bool = False) -> None:
        if not isinstance(domain, Domain):
            raise InputError("strategies need a table, not a network.", code="strategy.domain", value=domain)
        if axis is None and exact:
            raise InputError("exact totals without prefix sums: expected an axis.", code="strategy.base")
        self.domain, self.axis, self.exact = domain, axis, exact
        shape = list(domain.shape)
        if axis is not None:
            if not 0 <= axis < len(shape) or (exact and shape[axis] < 2):
                raise InputError(
                    f"axis={axis}: expected the number of an attribute with two values at least.",
                    code="strategy.base",
                    value=axis,
                )
            shape[axis] -= exact
        self.shape = tuple(shape)

    @cached_property
    def fixed(self) -> Query | None:
        if self.axis is None or not self.exact:
            return None
        return CuboidQuery(self.domain, [[n for at, n in enumerate(self.domain.names) if at != self.axis]])

    def coordinates(self, cells: Ints) -> Ints:
        cube = np.asarray(cells, dtype=np.int64).reshape(self.domain.shape)
        if self.axis is None:
            return cube
        sums = np.cumsum(cube, axis=self.axis)
        return np.take(sums, np.arange(self.shape[self.axis]), axis=self.axis)

    def cells(self, coordinates: Floats, fixed: Ints) -> Floats:
        sums = coordinates.reshape(self.shape)
        if self.axis is None:
            return sums.reshape(-1)
        if self.exact:
            last = np.expand_dims(
                np.asarray(fixed, dtype=np.float64).reshape(
                    [n for at, n in enumerate(self.shape) if at != self.axis]
                ),
                self.axis,
            )
            sums = np.concatenate([sums, last], axis=self.axis)
        return np.diff(sums, axis=self.axis, prepend=0.0).reshape(-1)

    def difference(self, u: Ints, v: Ints) -> Any:
        return self._records(u) - self._records(v)

    def _records(self, cells: Ints) -> Any:
        """Coordinates of one record in each cell; of none for -1."""
        from scipy import sparse

        there = np.flatnonzero(cells >= 0)
        codes = [np.asarray(c, dtype=np.int64) for c in self.domain.codes(cells[there])]
        if self.axis is None:
            rows, columns = np.ravel_multi_index(codes, self.shape), there
        else:
            counts = self.shape[self.axis] - codes[self.axis]
            counts = np.maximum(counts, 0)
            which = np.repeat(np.arange(len(there)), counts)
            within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
            spread = [c[which] for c in codes]
            spread[self.axis] = spread[self.axis] + within
            rows, columns = np.ravel_multi_index(spread, self.shape), there[which]
        data = np.ones(len(rows), dtype=np.int64)
        return sparse.csc_array((data, (rows, columns)), shape=(prod(self.shape), len(cells)))

    def workload(self, columns: Any) -> Any:
        from scipy import sparse

        if self.axis is None:
            return sparse.csr_array(columns)
        n, free = self.domain.shape[self.axis], self.shape[self.axis]
        steps: Any = sparse.csr_array(np.eye(n, free, dtype=np.int64) - np.eye(n, free, k=-1, dtype=np.int64))
        for count, before in (
            (prod(self.shape[: self.axis]), True),
            (prod(self.shape[self.axis + 1 :]), False),
        ):
            same: Any = sparse.identity(count, dtype=np.int64, format="csr")
            steps = (
                sparse.kron(same, steps, format="csr") if before else sparse.kron(steps, same, format="csr")
            )
        return sparse.csr_array(columns @ steps)

    def describe(self) -> str:
        if self.axis is None:
            return "cells"
        return f"prefix sums along {self.domain.names[self.axis]}"

    def to_spec(self) -> dict[str, Any]:
        return {"axis": self.axis, "exact": self.exact}


class ForestBase(Coordinates):
    """Subtree sums of a forest: the values of its edges.

    Parameters
    ----------
    domain
        The domain of the cells.
    forest
        The transform to subtree sums; its fixed coordinates are fixed here.

    Examples
    --------
    >>> from policygraph.model.graphs import PolicyGraph
    >>> domain = Domain({"x": 4})
    >>> star = PolicyGraph.from_edges(domain, [(0, 1), (0, 2), (0, 3)])
    >>> base = ForestBase(domain, ForestTransform.of(Policy(domain, star)))
    >>> base.coordinates(np.array([5, 1, 2, 3])).tolist(), base.fixed.answer([5, 1, 2, 3]).tolist()
    ([3, 2, 1], [11])
    """

    def __init__(self, domain: Domain, forest: ForestTransform) -> None:
        self.domain = domain
        self._depth = _depths(forest)
        # The order of the coordinates is part of the strategy, and must follow from the parents alone.
        order = np.lexsort((np.arange(forest.width), self._depth[:-1]))
        self.forest = ForestTransform(
            forest.policy, forest.parent, order, np.sort(forest.fixed), forest.stretch
        )
        forest = self.forest
        kept = np.ones(forest.width, dtype=bool)
        kept[forest.fixed] = False
        # Neighbouring coordinates share subtrees, so that the blocks of a strategy lie together in the graph.
        self.free: Ints = forest.post_order[kept[forest.post_order]]
        if not len(self.free):
            raise InputError("the forest has no edge: expected one at least.", code="strategy.base")
        self.shape = (len(self.free),)
        self._place: Ints = np.full(forest.width, -1, dtype=np.int64)
        self._place[self.free] = np.arange(len(self.free))

    @cached_property
    def fixed(self) -> Query | None:
        if not len(self.forest.fixed):
            return None
        root = np.empty(self.forest.width, dtype=np.int64)
        for cell in self.forest.order.tolist():
            above = self.forest.parent[cell]
            root[cell] = cell if above < 0 else root[above]
        from scipy import sparse

        place = np.full(self.forest.width, -1, dtype=np.int64)
        place[self.forest.fixed] = np.arange(len(self.forest.fixed))
        cells = np.flatnonzero(place[root] >= 0)
        rows = sparse.csc_array(
            (np.ones(len(cells), dtype=np.int64), (place[root[cells]], cells)),
            shape=(len(self.forest.fixed), self.forest.width),
        )
        return MatrixQuery(self.domain, rows, name="totals of components")

    def coordinates(self, cells: Ints) -> Ints:
        return self.forest.apply(cells)[self.free]

    def cells(self, coordinates: Floats, fixed: Ints) -> Floats:
        whole = np.zeros(self.forest.width)
        whole[self.free] = coordinates.reshape(-1)
        whole[self.forest.fixed] = fixed
        return np.asarray(self.forest.invert(whole), dtype=np.float64)

    def difference(self, u: Ints, v: Ints) -> Any:
        """Walk up from both ends until they meet: the subtrees that hold only one of them."""
        from scipy import sparse

        ends = [np.array(u, dtype=np.int64), np.array(v, dtype=np.int64)]
        rows, columns, data = [], [], []
        while True:
            apart = np.flatnonzero(ends[0] != ends[1])
            if not len(apart):
                break
            upper = self._depth[ends[0][apart]] < self._depth[ends[1][apart]]
            for side, sign in ((0, 1), (1, -1)):
                mine = apart[upper == bool(side)]
                here = ends[side][mine]
                place = self._place[here]
                rows.append(place[place >= 0])
                columns.append(mine[place >= 0])
                data.append(np.full(int((place >= 0).sum()), sign, dtype=np.int64))
                ends[side][mine] = self.forest.parent[here]
        joined = [np.concatenate([np.zeros(0, dtype=np.int64), *many]) for many in (data, rows, columns)]
        return sparse.csc_array((joined[0], (joined[1], joined[2])), shape=(self.shape[0], len(u)))

    def workload(self, columns: Any) -> Any:
        from scipy import sparse

        return sparse.csr_array(sparse.csc_array(columns @ self.forest.matrix())[:, self.free])

    def describe(self) -> str:
        return "subtree sums of the policy graph" + (
            "" if self.forest.stretch == 1 else f" (a spanning forest of stretch {self.forest.stretch})"
        )

    def to_spec(self) -> dict[str, Any]:
        return {
            "parent": self.forest.parent.tolist(),
            "fixed": self.forest.fixed.tolist(),
            "stretch": self.forest.stretch,
        }


def _depths(forest: ForestTransform) -> Ints:
    """Edges between each cell and its root; -1 at the end, for what is above the roots."""
    deep = np.zeros(forest.width + 1, dtype=np.int64)
    deep[-1] = -1
    for cell in forest.order.tolist():
        deep[cell] = deep[forest.parent[cell]] + 1
    return deep


def base_from_spec(domain: Domain, spec: dict[str, Any]) -> Coordinates:
    """Make a base from its plain form.

    Examples
    --------
    >>> base_from_spec(Domain({"age": 4}), {"axis": 0, "exact": True}).shape
    (3,)
    """
    if "axis" in spec:
        return AxisBase(domain, spec["axis"], exact=bool(spec.get("exact", False)))
    parent = np.array(spec.get("parent", []), dtype=np.int64)
    if len(parent) != domain.size or len(parent) == 0 or parent.max() >= len(parent) or parent.min() < -1:
        raise InputError(
            f"a base with {len(parent)} parents: expected an axis, or one parent for each of {domain.size} cells.",
            code="strategy.base",
        )
    inner, roots = np.flatnonzero(parent >= 0), np.flatnonzero(parent < 0)
    try:
        found, order = rooted(len(parent), parent[inner], inner, roots)
    except InputError as cause:
        raise InputError("the parents of a base form no forest.", code="strategy.base") from cause
    if not np.array_equal(found, parent):
        raise InputError("the parents of a base form no forest.", code="strategy.base")
    fixed = np.array(spec.get("fixed", []), dtype=np.int64)
    return ForestBase(
        domain, ForestTransform(Policy(domain), parent, order, fixed, int(spec.get("stretch", 1)))
    )
