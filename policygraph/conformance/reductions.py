"""The contract of reductions. Owns :func:`check_reduction`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from policygraph.conformance.report import Conformance, Trial, tried
from policygraph.transforms.incidence import Reduction

__all__ = ["check_reduction"]


def check_reduction(reduction: Reduction, *, tables: int = 5) -> Conformance:
    """Try whether a reduction is the exact linear map that it says, and whether each edge changes as few coordinates as it says.

    Parameters
    ----------
    reduction
        The plug-in, made for a small policy whose moves are the edges of its graph.
    tables
        How many random tables to try.

    Examples
    --------
    >>> import policygraph as pg
    >>> from policygraph.transforms.incidence import transform
    >>> line = pg.Domain({"age": 5})
    >>> check_reduction(transform(pg.Policy(line, pg.PolicyGraph.line(line)))).passed
    True
    """
    size = reduction.policy.domain.size
    rng = np.random.default_rng(0)
    matrix = np.asarray(reduction.matrix().toarray())

    def round_trip() -> str | None:
        for _ in range(tables):
            cells = rng.integers(0, 50, size)
            if not np.array_equal(reduction.invert(reduction.apply(cells)), cells):
                return f"invert(apply(x)) is not x for {cells.tolist()}"
        return None

    def linear() -> str | None:
        if matrix.dtype.kind != "i" or matrix.shape != (size, reduction.width):
            return f"a matrix of {matrix.shape} and {matrix.dtype}: expected integers of {(size, reduction.width)}"
        for _ in range(tables):
            y = rng.integers(-9, 10, reduction.width)
            if not np.array_equal(reduction.invert(y), matrix @ y):
                return f"invert(y) is not the matrix times y for {y.tolist()}"
        return None

    def unique() -> str | None:
        if reduction.valid_for == "any" and np.linalg.matrix_rank(matrix) < reduction.width:
            return "said to be valid for any mechanism, but the coordinates are not unique"
        return None

    def trials() -> Iterator[tuple[str, Trial]]:
        yield (
            "accepts the policy it was made for",
            lambda: None if type(reduction).accepts(reduction.policy) else "accepts says no",
        )
        yield "apply and invert fit exactly", round_trip
        yield "invert is its integer matrix", linear
        yield "coordinates are unique where any mechanism may run", unique
        yield "an edge changes at most stretch coordinates, by 1", lambda: _stretch(reduction, matrix)

    return tried(type(reduction).__name__, trials())


def _stretch(reduction: Reduction, matrix: Any) -> str | None:
    from policygraph.transforms.incidence.base import graph_of

    graph = graph_of(reduction.policy)
    size = reduction.policy.domain.size
    for u, v in graph.edges():
        move = np.zeros(size, dtype=np.int64)
        for end, amount in ((u, 1), (v, -1)):
            if isinstance(end, int):
                move[end] = amount
        if reduction.valid_for == "any":
            changed = reduction.apply(move)
        else:
            changed = np.array([np.array_equal(c, move) or np.array_equal(c, -move) for c in matrix.T], int)
            changed = changed * (np.cumsum(changed) == 1)
        if not changed.any() or np.abs(changed).sum() > reduction.stretch or np.abs(changed).max() > 1:
            return f"the edge {(u, v)} changes the coordinates by {changed[changed != 0].tolist()}, stretch {reduction.stretch}"
        if changed[reduction.fixed].any():
            return f"the edge {(u, v)} changes a coordinate that is said to be fixed"
    return None
