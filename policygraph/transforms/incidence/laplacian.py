"""Solves with the Laplacian L = P_G P_G^T of a policy graph. Owns :func:`solve_grid` and :func:`solve_graph`.

Needed for the least flow through a graph and for estimates that keep cells non-negative. Floats: nothing here decides
privacy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import RefusedError

__all__ = ["graph_laplacian", "grid_eigenvalues", "solve_graph", "solve_grid", "solve_system"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

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
