"""How much each level of a strategy changes along a move, by types of moves. Owns :class:`Profiles`.

For the search over weights only: many moves change the levels alike, and very many are sampled, so that the largest sum found here
may be too small. Certificates come from ``sensitivity``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.mechanisms.strategy.bases import AxisBase
from policygraph.mechanisms.strategy.factors import Factor
from policygraph.mechanisms.strategy.strategy import Strategy, column_norms
from policygraph.model.graphs import Complete, PolicyGraph
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Norm
from policygraph.transforms.incidence.base import graph_of

__all__ = ["Profiles"]

Ints = npt.NDArray[np.int64]
SAMPLED = 50_000


@dataclass(frozen=True, eq=False)
class Profiles:
    """Types of moves: for each axis, by how much the rows of each level with weight 1 change.

    Attributes
    ----------
    axes
        One array for each axis: types of moves x levels.
    norm
        Of the changes; squared for l2.

    Examples
    --------
    >>> import policygraph as pg
    >>> from policygraph.mechanisms.strategy.factors import Tree
    >>> domain = pg.Domain({"age": 4})
    >>> tree = Strategy("tree", AxisBase(domain), [Tree.plain(4, 2)])
    >>> Profiles.of(tree, pg.Policy(domain, pg.PolicyGraph.line(domain)), "l1").axes[0].tolist()
    [[0, 0, 2], [0, 2, 2]]
    """

    axes: tuple[Ints, ...]
    norm: Norm

    @classmethod
    def of(cls, strategy: Strategy, policy: Policy, norm: Norm) -> Profiles:
        """Look at all edges of a policy, or at many of them."""
        graph = graph_of(policy)
        u, v = _edges(graph)
        lone = np.fromiter(graph.bottom_cells, dtype=np.int64, count=-1) if graph.bottom != "none" else u[:0]
        types = [_along(strategy, u, v, norm)] if len(u) else []
        if len(lone):
            types.append(_alone(strategy, lone[:SAMPLED], norm))
        kinds = np.unique(np.concatenate(types), axis=0)
        cuts = np.cumsum([0, *(len(f.weights) for f in strategy.factors)])
        return cls(tuple(kinds[:, a:b] for a, b in pairwise(cuts.tolist())), norm)

    def largest(self, weights: Sequence[Sequence[int]]) -> int:
        """Largest change for these weights of the levels."""
        product = np.ones(len(self.axes[0]), dtype=np.int64)
        for axis, given in zip(self.axes, weights, strict=True):
            level = np.array(given, dtype=np.int64)
            product = product * (axis @ (level if self.norm == "l1" else level**2))
        return int(product.max())


def _edges(graph: PolicyGraph) -> tuple[Ints, Ints]:
    if isinstance(graph.rule, Complete) and graph.n_edges > SAMPLED:
        ends = np.random.default_rng(0).integers(0, graph.size, size=(2, SAMPLED))
        apart = ends[:, ends[0] != ends[1]]
        return apart[0], apart[1]
    found: list[tuple[Ints, Ints]] = []
    for u, v in graph.edge_chunks(1 << 16):
        found.append((u, v))
        if sum(len(a) for a, _ in found) >= SAMPLED:
            break
    nothing = np.zeros(0, dtype=np.int64)
    return np.concatenate([nothing, *(a for a, _ in found)]), np.concatenate(
        [nothing, *(b for _, b in found)]
    )


def _levels(factor: Factor, change: Any, norm: Norm) -> Ints:
    """Norm of the change of each level, one row for each column of the change."""
    rows = [column_norms(factor.level_rows(level) @ change, norm) for level in range(len(factor.weights))]
    return np.stack(rows, axis=1)


def _along(strategy: Strategy, u: Ints, v: Ints, norm: Norm) -> Ints:
    base = strategy.base
    if not isinstance(base, AxisBase):
        return np.unique(_levels(strategy.factors[0], base.difference(u, v), norm), axis=0)
    first, second = strategy.domain.codes(u), strategy.domain.codes(v)
    apart = np.stack([a != b for a, b in zip(first, second, strict=True)])
    many = apart.sum(axis=0) > 1
    out = []
    for axis in range(len(first)):
        mine = np.flatnonzero(apart[axis] & ~many)
        if len(mine):
            parts = [
                _at(strategy, k, first[k][mine], second[k][mine] if k == axis else None, norm)
                for k in range(len(first))
            ]
            out.append(np.unique(np.concatenate(parts, axis=1), axis=0))
    if many.any():
        both = [_alone(strategy, ends[many], norm) for ends in (u, v)]
        joined = np.concatenate(both)
        # Two columns differ by at most the sum of their norms; four times in squares.
        joined[:, : len(strategy.factors[0].weights)] *= 2 if norm == "l1" else 4
        out.append(joined)
    return np.concatenate(out)


def _alone(strategy: Strategy, cells: Ints, norm: Norm) -> Ints:
    base = strategy.base
    if not isinstance(base, AxisBase):
        return _levels(strategy.factors[0], base.difference(cells, np.full(len(cells), -1)), norm)
    codes = strategy.domain.codes(cells)
    parts = [_at(strategy, k, code, None, norm) for k, code in enumerate(codes)]
    return np.unique(np.concatenate(parts, axis=1), axis=0)


def _at(strategy: Strategy, axis: int, u: Any, v: Any | None, norm: Norm) -> Ints:
    n = strategy.domain.shape[axis]
    keys = np.asarray(u, dtype=np.int64) * (n + 1) + (n if v is None else np.asarray(v, dtype=np.int64))
    found, back = np.unique(keys, return_inverse=True)
    change = strategy.axis_change(axis, found // (n + 1), None if v is None else found % (n + 1))
    return _levels(strategy.factors[axis], change, norm)[back]
