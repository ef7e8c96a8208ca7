"""P_G of grids of any dimension, and solves with the Laplacian L = P_G P_G^T. Owns :class:`GridTransform`, :func:`solve_system`.

Grids go axis by axis, and no edge is ever listed. The Laplacian is needed for estimates that keep cells non-negative. Floats: nothing here
decides privacy.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.workloads import BoxQuery
from policygraph.transforms.incidence.base import (
    Floats,
    Ints,
    Reduction,
    Totals,
    ValidFor,
    check_cells,
    graph_of,
    line_axes,
    totals_are_exact,
)

DIRECT = 150_000
"""Up to this many cells a sparse factorisation is used, above it conjugate gradients."""
TOLERANCE = 1e-10
STEPS = 20_000


def graph_laplacian(size: int, u: Ints, v: Ints, lone: Ints) -> Any:
    """L = P P^T of edges u v and of edges from ``lone`` cells to bottom, as a sparse matrix of floats."""
    from scipy import sparse

    rows = np.concatenate([u, v, u, v, lone])
    columns = np.concatenate([u, v, v, u, lone])
    data = np.concatenate([np.ones(2 * len(u)), -np.ones(2 * len(u)), np.ones(len(lone))])
    return sparse.csc_array((data, (rows, columns)), shape=(size, size))


def solve_system(matrix: Any, right: Floats, start: Floats, *, direct: bool = False) -> Floats:
    """Solve with a symmetric M-matrix: a sparse factorisation, or conjugate gradients where it is large.

    Parameters
    ----------
    matrix, right
        The system.
    start
        Where conjugate gradients start.
    direct
        Whether to factorise at any size.

    Returns
    -------
    numpy.ndarray
        The solution; the last step where conjugate gradients do not converge.
    """
    from scipy.sparse.linalg import LinearOperator, cg, splu

    if direct or len(right) <= DIRECT:
        options = {"SymmetricMode": True}
        return np.asarray(splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", options=options).solve(right))
    diagonal = matrix.diagonal()
    scale = LinearOperator(matrix.shape, matvec=lambda x: x / diagonal, dtype=np.float64)
    found, _ = cg(matrix.tocsr(), right, x0=start, rtol=TOLERANCE, M=scale, maxiter=STEPS)
    return np.asarray(found)


class GridTransform(Reduction):
    """One coordinate for each edge of a grid, axis after axis, then the total of each component at its last cell.

    Parameters
    ----------
    policy
        A policy whose graph moves along lines on two or more attributes, without bottom.
    totals
        See :func:`~policygraph.transforms.incidence.base.totals_are_exact`.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> from policygraph.model.graphs import PolicyGraph
    >>> domain = Domain({"x": 2, "y": 2})
    >>> grid = GridTransform(Policy(domain, PolicyGraph.grid(domain)))
    >>> grid.width, grid.fixed.tolist(), grid.invert(grid.apply([5, 0, 2, 1])).tolist()
    (5, [4], [5, 0, 2, 1])
    """

    valid_for: ValidFor = "data-independent"
    stretch = 1

    def __init__(self, policy: Policy, totals: Totals = "auto") -> None:
        graph = graph_of(policy)
        found = line_axes(graph)
        if found is None or not self.accepts(policy):
            raise InputError(
                "the policy graph is not a grid: expected lines along two or more attributes, without bottom.",
                code="reduction.grid",
            )
        check_cells(policy.domain.size)
        self.policy = policy
        self.shape, self.axes = found
        size = prod(self.shape)
        self.exact_totals = totals_are_exact(policy, graph, totals)
        ends = tuple(slice(n - 1, None) if a in self.axes else slice(None) for a, n in enumerate(self.shape))
        self.roots: Ints = np.arange(size, dtype=np.int64).reshape(self.shape)[ends].ravel()
        self._edges = [size // self.shape[axis] * (self.shape[axis] - 1) for axis in self.axes]
        self.width = sum(self._edges) + len(self.roots)
        last = np.arange(sum(self._edges), self.width, dtype=np.int64)
        self.fixed = last if self.exact_totals else last[:0]

    @classmethod
    def accepts(cls, policy: Policy) -> bool:
        graph = graph_of(policy)
        found = line_axes(graph)
        return graph.bottom == "none" and found is not None and len(found[1]) >= 2

    def _cut(self, axis: int, part: slice) -> tuple[slice, ...]:
        return tuple(part if a == axis else slice(None) for a in range(len(self.shape)))

    def _edge_shape(self, axis: int) -> tuple[int, ...]:
        return tuple(n - (a == axis) for a, n in enumerate(self.shape))

    def apply(self, cells: Any) -> Ints:
        """Return coordinates that push all records of a component to its last cell, along one axis after the other."""
        rest = np.array(cells, dtype=np.int64).reshape(self.shape)
        found = {}
        for axis in reversed(self.axes):
            sums = np.cumsum(rest, axis=axis)
            found[axis] = -sums[self._cut(axis, slice(0, -1))].ravel()
            rest = np.zeros_like(rest)
            last = self._cut(axis, slice(-1, None))
            rest[last] = sums[last]
        return np.concatenate([*(found[axis] for axis in self.axes), rest.ravel()[self.roots]])

    def invert(self, coordinates: Any) -> npt.NDArray[Any]:
        given = np.asarray(coordinates)
        out = np.zeros(self.shape, dtype=given.dtype)
        start = 0
        for axis, count in zip(self.axes, self._edges, strict=True):
            flow = given[start : start + count].reshape(self._edge_shape(axis))
            out[self._cut(axis, slice(0, -1))] -= flow
            out[self._cut(axis, slice(1, None))] += flow
            start += count
        flat = out.reshape(-1)
        flat[self.roots] += given[start:]
        return flat

    def edges(self) -> tuple[Ints, Ints]:
        """Lower and upper cell of every edge, in the order of the coordinates."""
        numbers = np.arange(prod(self.shape), dtype=np.int64).reshape(self.shape)
        lower = [numbers[self._cut(axis, slice(0, -1))].ravel() for axis in self.axes]
        upper = [numbers[self._cut(axis, slice(1, None))].ravel() for axis in self.axes]
        return np.concatenate(lower), np.concatenate(upper)

    def matrix(self) -> Any:
        from scipy import sparse

        u, v = self.edges()
        at = np.arange(self.width, dtype=np.int64)
        m = len(u)
        rows = np.concatenate([u, v, self.roots])
        columns = np.concatenate([at[:m], at[:m], at[m:]])
        data = np.concatenate([-np.ones(m, dtype=np.int64), np.ones(m + len(self.roots), dtype=np.int64)])
        return sparse.csr_array((data, (rows, columns)), shape=(prod(self.shape), self.width))

    def squares(self, query: Query) -> Floats:
        if isinstance(query, BoxQuery) and len(self.roots) == 1 and query.domain.shape == self.shape:
            sides = query.high - query.low + 1
            out = np.zeros(len(sides))
            size = sides.astype(np.float64).prod(axis=1)
            for axis in self.axes:
                faces = (query.low[:, axis] > 0).astype(float) + (query.high[:, axis] < self.shape[axis] - 1)
                out += faces * size / sides[:, axis]
            held = (query.high == np.array(self.shape) - 1).all(axis=1)
            return out + (0 if self.exact_totals else held)
        if query.is_identity:
            degree = np.zeros(self.shape)
            for axis in self.axes:
                degree[self._cut(axis, slice(0, -1))] += 1
                degree[self._cut(axis, slice(1, None))] += 1
            flat = degree.reshape(-1)
            if not self.exact_totals:
                flat[self.roots] += 1
            return flat
        return super().squares(query)

    def describe(self) -> str:
        return (
            f"Each of the {sum(self._edges):,} edges of the policy graph, a grid, got noise of its own that leaves one cell "
            "and enters the other; one move changes one edge by 1."
        )
