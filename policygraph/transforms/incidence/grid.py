"""P_G of grids of any dimension, and solves with the Laplacian L = P_G P_G^T. Owns :class:`GridTransform`, :func:`solve_grid`, :func:`solve_graph`.

Grids go axis by axis, and no edge is ever listed. The Laplacian is needed for the least flow through a graph and for estimates that keep cells
non-negative. Floats: nothing here decides privacy.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
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


def grid_eigenvalues(shape: tuple[int, ...], axes: tuple[int, ...]) -> Floats:
    """Eigenvalues of the Laplacian of a grid that changes along some axes, in the order of the cosine transform.

    Notes
    -----
    The Laplacian of a path of n vertices has the eigenvectors cos(pi k (2j + 1) / 2n), which are those of the cosine
    transform of kind II, and the eigenvalues 2 - 2 cos(pi k / n); those of a Cartesian product add up.
    """
    total = np.zeros(shape)
    for axis in axes:
        n = shape[axis]
        values = 2 - 2 * np.cos(np.pi * np.arange(n) / n)
        total = total + values.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return total


def solve_grid(right: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Floats:
    """Return the least solution of L p = b - mean(b) for a grid by two cosine transforms, n log n steps.

    Examples
    --------
    >>> p = solve_grid([1.0, 0.0, -1.0], (3,), (0,))
    >>> np.round(p, 6).tolist()
    [1.0, 0.0, -1.0]
    """
    from scipy.fft import dctn, idctn

    cube = np.asarray(right, dtype=np.float64).reshape(shape)
    if not axes:
        return np.zeros(cube.size)
    spectrum = dctn(cube, axes=axes, norm="ortho")
    values = grid_eigenvalues(shape, axes)
    flat = values <= 1e-14
    values = np.where(flat, 1.0, values)
    spectrum = np.where(flat, 0.0, spectrum / values)
    return np.asarray(idctn(spectrum, axes=axes, norm="ortho")).reshape(-1)


def graph_laplacian(size: int, u: Ints, v: Ints, lone: Ints) -> Any:
    """L = P P^T of edges u v and of edges from ``lone`` cells to bottom, as a sparse matrix of floats."""
    from scipy import sparse

    rows = np.concatenate([u, v, u, v, lone])
    columns = np.concatenate([u, v, v, u, lone])
    data = np.concatenate([np.ones(2 * len(u)), -np.ones(2 * len(u)), np.ones(len(lone))])
    return sparse.csc_array((data, (rows, columns)), shape=(size, size))


def solve_graph(size: int, u: Ints, v: Ints, lone: Ints, grounded: Ints, right: Any) -> Floats:
    """Solve L p = b with p = 0 on the grounded cells, of which every component without bottom has one.

    Notes
    -----
    L without the grounded rows and columns is a nonsingular M-matrix. Where b sums to zero over a component the grounded
    equation holds as well, since the rows of the component sum to zero.
    """
    given = np.asarray(right, dtype=np.float64)
    out = np.zeros(size)
    free = np.ones(size, dtype=bool)
    free[grounded] = False
    at = np.flatnonzero(free)
    if len(at):
        out[at] = solve_system(graph_laplacian(size, u, v, lone)[at, :][:, at], given[at])
    return out


def solve_system(
    matrix: Any,
    right: Floats,
    start: Floats | None = None,
    *,
    strict: bool = True,
    direct: bool | None = None,
) -> Floats:
    """Solve with a symmetric M-matrix: a sparse factorisation, or conjugate gradients where it is large.

    Parameters
    ----------
    matrix, right
        The system.
    start
        Where conjugate gradients start.
    strict
        Whether to refuse a solution that did not converge.
    direct
        Whether to factorise at any size; None: where it is small.

    Raises
    ------
    RefusedError
        When conjugate gradients do not converge and ``strict`` is true; otherwise the last step is returned.
    """
    from scipy.sparse.linalg import LinearOperator, cg, splu

    if direct or (direct is None and len(right) <= DIRECT):
        options = {"SymmetricMode": True}
        return np.asarray(splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", options=options).solve(right))
    diagonal = matrix.diagonal()
    scale = LinearOperator(matrix.shape, matvec=lambda x: x / diagonal, dtype=np.float64)
    found, failed = cg(matrix.tocsr(), right, x0=start, rtol=TOLERANCE, M=scale, maxiter=STEPS)
    if failed and strict:
        raise RefusedError(
            f"a Laplacian of {len(right):,} cells was not solved in {STEPS:,} steps: expected a graph that is better "
            "connected.",
            code="reduction.laplacian",
        )
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
                "the policy graph is no grid: expected lines along two or more attributes, without bottom.",
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

    def least_flow(self, cells: Any) -> Floats:
        """Return the coordinates of least sum of squares over the edges (two cosine transforms).

        Notes
        -----
        With the totals b taken off their cells, P_G y = x - b has the least solution y = P_G^T L^+ (x - b): the
        differences of a potential.
        """
        cube = np.array(cells, dtype=np.float64).reshape(self.shape)
        totals = cube.sum(axis=self.axes).ravel()
        right = cube.reshape(-1)
        right[self.roots] -= totals
        potential = solve_grid(right, self.shape, self.axes).reshape(self.shape)
        flows = [np.diff(potential, axis=axis).ravel() for axis in self.axes]
        return np.concatenate([*flows, totals])

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
