"""The P_G transform by its definitions, in dense exact arithmetic. Slow on purpose."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import networkx as nx
import numpy as np

from policygraph.model.graphs import BOTTOM, PolicyGraph


def moves(graph: PolicyGraph) -> list[np.ndarray]:
    """One of each pair of opposite moves: the columns of P_G."""
    out = []
    for u, v in graph.edges():
        move = np.zeros(graph.size, dtype=np.int64)
        move[u] -= 1
        if v is not BOTTOM:
            move[v] += 1
        out.append(move)
    return out


def coordinate_change(matrix: np.ndarray, move: np.ndarray) -> np.ndarray:
    """The change y of coordinates with M y = move, for an invertible M."""
    found = np.rint(np.linalg.solve(matrix.astype(float), move.astype(float))).astype(np.int64)
    assert np.array_equal(matrix @ found, move)
    return found


def tree_stretch(graph: PolicyGraph, parent: np.ndarray) -> int:
    """Longest tree path between the ends of a policy edge, bottom being joined to the roots."""
    tree = nx.Graph()
    for child, above in enumerate(parent.tolist()):
        tree.add_edge(child, BOTTOM if above < 0 else above)
    return max((nx.shortest_path_length(tree, u, v) for u, v in graph.edges()), default=0)


def additive_log_ratio(matrix: np.ndarray, fixed: np.ndarray, scale: Fraction, move: np.ndarray) -> float:
    """Largest log-ratio of P(x + M z = o) and P(x + move + M z = o), z independent discrete Laplace.

    The sum over all z with M z = w is cut off where |z| exceeds 6; outputs are those of noise within 2.
    """
    width = matrix.shape[1]
    free = [c for c in range(width) if c not in set(fixed.tolist())]
    reach = range(-6, 7)
    q = math.exp(-1 / float(scale))
    mass: dict[tuple[int, ...], float] = {}
    for z in product(reach, repeat=len(free)):
        w = tuple((matrix[:, free] @ np.array(z)).tolist())
        mass[w] = mass.get(w, 0.0) + q ** sum(map(abs, z))
    worst = 0.0
    for z in product(range(-2, 3), repeat=len(free)):
        w = tuple((matrix[:, free] @ np.array(z)).tolist())
        other = tuple(a - int(b) for a, b in zip(w, move))
        worst = max(worst, abs(math.log(mass[w] / mass[other])))
    return worst


def nearest_nonnegative(cells: np.ndarray, noisy_columns: np.ndarray) -> np.ndarray:
    """Cells x + P w >= 0 of least |w|^2: every set of cells pushed up to 0 is tried until the optimality conditions hold.

    With w = P^T m they are m >= 0, x + P P^T m >= 0, and one of the two is 0 at every cell.
    """
    laplacian = noisy_columns @ noisy_columns.T
    for chosen in product((False, True), repeat=len(cells)):
        at = np.flatnonzero(chosen)
        m = np.zeros(len(cells))
        if len(at):
            m[at] = np.linalg.lstsq(laplacian[np.ix_(at, at)], -cells[at], rcond=None)[0]
        found = cells + laplacian @ m
        if np.all(m >= -1e-9) and np.all(found >= -1e-9) and np.abs(found[at]).max(initial=0) <= 1e-9:
            return found
    raise ValueError("no optimum: the fixed totals are negative")
