"""Compiled elimination of attributes from a graph of at most 62; imported only when a junction tree is made."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["cells_with", "eliminated"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _cells(mask: int, sizes: Floats) -> float:
    """The cells of a table, in the order of its attributes."""
    made = 1.0
    for u in range(sizes.size):
        if mask >> u & 1:
            made *= sizes[u]
    return made


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def eliminated(adjacent: Ints, sizes: Floats, cliques: Ints) -> float:
    """Eliminate attribute after attribute, the one with the smallest table first; return the cells of all maximal cliques.

    ``adjacent[v]`` has a bit for each neighbour of v. The clique of each step is written into ``cliques``, 0 where an earlier one contains it.
    """
    n = adjacent.size
    graph = adjacent.copy()
    left = np.ones(n, dtype=np.bool_)
    cells = np.empty(n)
    for v in range(n):
        cells[v] = _cells(graph[v], sizes) * sizes[v]
    total = 0.0
    for step in range(n):
        best, least = -1, np.inf
        for v in range(n):
            if left[v] and cells[v] < least:
                best, least = v, cells[v]
        around = graph[best]
        clique = around | (np.int64(1) << best)
        left[best] = False
        for u in range(n):
            if around >> u & 1:
                graph[u] = (graph[u] | around) & ~(np.int64(1) << best) & ~(np.int64(1) << u)
                # Only neighbours of what is gone have another table now.
                cells[u] = _cells(graph[u], sizes) * sizes[u]
        inside = False
        for earlier in range(step):
            if clique & ~cliques[earlier] == 0:
                inside = True
        if inside:
            cliques[step] = 0
        else:
            cliques[step] = clique
            total += least
    return total


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def cells_with(adjacent: Ints, sizes: Floats, candidates: Ints, out: Floats) -> None:
    """Fill ``out`` with the cells of the cliques when each candidate becomes a clique beside the graph."""
    n = adjacent.size
    cliques = np.zeros(n, dtype=np.int64)
    graph = adjacent.copy()
    for at in range(candidates.size):
        mask = candidates[at]
        for v in range(n):
            graph[v] = adjacent[v]
            if mask >> v & 1:
                graph[v] |= mask & ~(np.int64(1) << v)
        out[at] = eliminated(graph, sizes, cliques)
