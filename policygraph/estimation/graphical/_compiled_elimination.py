"""Compiled elimination of attributes from a graph of at most 62; imported only when a junction tree is made."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["cells_with", "eliminated"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def eliminated(adjacent: Ints, sizes: Floats, cliques: Ints) -> float:
    """Eliminate attribute after attribute, the one with the smallest table first; return the cells of all maximal cliques.

    ``adjacent[v]`` has a bit for each neighbour of v. The clique of each step is written into ``cliques``, 0 where an earlier one contains it.
    """
    n = adjacent.size
    graph = adjacent.copy()
    left = np.ones(n, dtype=np.bool_)
    total = 0.0
    for step in range(n):
        best, least = -1, np.inf
        for v in range(n):
            if not left[v]:
                continue
            cells = sizes[v]
            for u in range(n):
                if graph[v] >> u & 1:
                    cells *= sizes[u]
            if cells < least:
                best, least = v, cells
        around = graph[best]
        clique = around | (np.int64(1) << best)
        left[best] = False
        for u in range(n):
            if around >> u & 1:
                graph[u] = (graph[u] | around) & ~(np.int64(1) << best) & ~(np.int64(1) << u)
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
