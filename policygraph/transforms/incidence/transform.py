"""P_G of any graph, and the choice of a transform. Owns :class:`EdgeTransform` and :func:`transform`.

x = P_G x_G after Haney, Machanavajjhala and Ding (2015); the argument is ``docs/explanation/proofs/transform.md``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.transforms.incidence.base import (
    Floats,
    Ints,
    Reduction,
    Totals,
    ValidFor,
    bounded_roots,
    graph_of,
    totals_are_exact,
)
from policygraph.transforms.incidence.grid import GridTransform
from policygraph.transforms.incidence.tree import ForestTransform, LineTransform, rooted, spanning_transform

EDGES = 20_000_000
"""Most edges that get a coordinate each."""


class EdgeTransform(Reduction):
    """One coordinate for each edge of any policy graph, then one for the total of each component without bottom.

    Parameters
    ----------
    policy
        A policy whose moves are the edges of its graph.
    totals
        See :func:`~policygraph.transforms.incidence.base.totals_are_exact`.

    Notes
    -----
    M = [P_G | unit vectors of the roots]. On a cycle the coordinates are not unique, so that only noise that does not
    depend on them may be added: M (y + z) = x + M z whichever y was taken.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> from policygraph.model.graphs import PolicyGraph
    >>> domain = Domain({"x": 3})
    >>> triangle = EdgeTransform(Policy(domain, PolicyGraph.full(domain)))
    >>> triangle.width, triangle.fixed.tolist(), triangle.invert(triangle.apply([5, 0, 2])).tolist()
    (4, [3], [5, 0, 2])
    """

    valid_for: ValidFor = "data-independent"
    stretch = 1

    def __init__(self, policy: Policy, totals: Totals = "auto") -> None:
        graph = graph_of(policy)
        self.policy = policy
        self.size = graph.size
        self.u, self.v = graph.edge_arrays(limit=EDGES)
        self.lone: Ints = np.fromiter(graph.bottom_cells, dtype=np.int64)
        self.roots = bounded_roots(graph)
        self.exact_totals = totals_are_exact(policy, graph, totals)
        edges = len(self.u) + len(self.lone)
        self.width = edges + len(self.roots)
        last = np.arange(edges, self.width, dtype=np.int64)
        self.fixed = last if self.exact_totals else last[:0]

    @classmethod
    def accepts(cls, policy: Policy) -> bool:
        return graph_of(policy).n_edges <= EDGES

    def apply(self, cells: Any) -> Ints:
        """Return coordinates that are zero outside one spanning forest."""
        single = np.concatenate([self.lone, self.roots])
        parent, order = rooted(self.size, self.u, self.v, single)
        below = ForestTransform(self.policy, parent, order, self.fixed[:0]).apply(cells)
        out = np.zeros(self.width, dtype=np.int64)
        inner = np.flatnonzero(parent >= 0)
        above = parent[inner]
        keys = self.u * self.size + self.v
        by_key = np.argsort(keys)
        wanted = np.minimum(inner, above) * self.size + np.maximum(inner, above)
        at = by_key[np.searchsorted(keys, wanted, sorter=by_key)]
        out[at] = np.where(self.v[at] == inner, below[inner], -below[inner])
        out[len(self.u) :] = below[single]
        return out

    def invert(self, coordinates: Any) -> npt.NDArray[Any]:
        given = np.asarray(coordinates)
        out = np.zeros(self.size, dtype=given.dtype)
        m = len(self.u)
        np.subtract.at(out, self.u, given[:m])
        np.add.at(out, self.v, given[:m])
        out[self.lone] += given[m : m + len(self.lone)]
        out[self.roots] += given[m + len(self.lone) :]
        return out

    def matrix(self) -> Any:
        from scipy import sparse

        m = len(self.u)
        at = np.arange(self.width, dtype=np.int64)
        rows = np.concatenate([self.u, self.v, self.lone, self.roots])
        columns = np.concatenate([at[:m], at[:m], at[m:]])
        data = np.ones(len(rows), dtype=np.int64)
        data[:m] = -1
        return sparse.csr_array((data, (rows, columns)), shape=(self.size, self.width))

    def squares(self, query: Query) -> Floats:
        if not query.is_identity:
            return super().squares(query)
        ends = [self.u, self.v, self.lone, *([] if self.exact_totals else [self.roots])]
        return np.bincount(np.concatenate(ends), minlength=self.size).astype(np.float64)

    def describe(self) -> str:
        return (
            f"Each of the {len(self.u) + len(self.lone):,} edges of the policy graph got noise of its own that leaves one "
            "cell and enters the other; one move changes one edge by 1."
        )


def transform(
    policy: Policy, *, totals: Totals = "auto", spanning: bool = False, data_dependent: bool = False
) -> Reduction:
    """Choose the P_G transform of a policy.

    Parameters
    ----------
    policy
        A policy whose moves are the edges of its graph.
    totals
        Totals of components without bottom, which no move changes: ``"exact"``, ``"noisy"``, or ``"auto"`` (exact for a
        connected graph and for public facts, noisy otherwise).
    spanning
        Replace a graph with cycles by a spanning forest and account for its stretch.
    data_dependent
        Whether the mechanism looks at the coordinates.

    Raises
    ------
    RefusedError
        When public facts make moves that are no edges, or a data-dependent mechanism is given a cycle.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> from policygraph.model.graphs import PolicyGraph
    >>> domain = Domain({"x": 3, "y": 3})
    >>> transform(Policy(domain, PolicyGraph.grid(domain))).valid_for
    'data-independent'
    >>> transform(Policy(domain, PolicyGraph.grid(domain)), spanning=True).stretch
    3
    """
    found: Reduction
    if not isinstance(policy, Policy):
        raise InputError(f"{policy!r}: expected a Policy.", code="reduction.policy")
    if LineTransform.accepts(policy):
        found = LineTransform(policy, totals)
    elif ForestTransform.accepts(policy):
        found = ForestTransform.of(policy, totals)
    elif spanning:
        found = spanning_transform(policy, totals)
    elif GridTransform.accepts(policy):
        found = GridTransform(policy, totals)
    else:
        found = EdgeTransform(policy, totals)
    found.require(data_dependent=data_dependent)
    return found
