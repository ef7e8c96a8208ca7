"""What every reduction is. Owns :class:`Reduction`, and which policies the P_G transform is proved for.

A reduction writes the cells as x = M y with an integer matrix M, so that one neighbour step changes few of the
coordinates y, and those by 1. Lines and grids are recognised here, so that no edge of them is listed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.model.graphs import Complete, Empty, Path, PolicyGraph, Product, Rule
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Totals = Literal["auto", "exact", "noisy"]
ValidFor = Literal["any", "data-independent"]

MOST_CELLS = 100_000_000
"""Most cells over which a transform or a partition is made."""


class Reduction(ABC):
    """Cells x = M y, y being one coordinate for each edge of a policy graph and for each total that no move changes.

    Attributes
    ----------
    policy
        Whose moves it was made for.
    width
        Number of coordinates.
    stretch
        Most coordinates that one neighbour step changes; each of them changes by 1.
    valid_for
        ``"any"``: M is invertible, and any mechanism may run on y at its loss divided by the stretch.
        ``"data-independent"``: y is not unique, and only noise that does not depend on y may be added.
    fixed
        Coordinates that no move changes and that are released as they are.
    """

    policy: Policy
    width: int
    stretch: int
    valid_for: ValidFor
    fixed: Ints

    @classmethod
    @abstractmethod
    def accepts(cls, policy: Policy) -> bool:
        """Whether the reduction is proved for a policy."""

    @abstractmethod
    def apply(self, cells: Any) -> Ints:
        """Return coordinates y of a vector of cells: the only ones where M is invertible, some otherwise."""

    @abstractmethod
    def invert(self, coordinates: Any) -> npt.NDArray[Any]:
        """Return M y: the cells of coordinates, noisy or not; linear."""

    @abstractmethod
    def matrix(self) -> Any:
        """Return M as a sparse integer matrix, for small cases and checks."""

    @abstractmethod
    def describe(self) -> str:
        """Say in one sentence what the coordinates are."""

    def require(self, *, data_dependent: bool) -> None:
        """Refuse a mechanism that looks at the coordinates where these are not unique.

        Raises
        ------
        RefusedError
            When the mechanism depends on the data and the policy graph has a cycle.
        """
        if data_dependent and self.valid_for != "any":
            raise RefusedError(
                "the policy graph has a cycle: its coordinates are not unique, and a mechanism that depends on them is "
                "not private under this policy. Expected a forest. Pass spanning=True to run on a spanning forest and "
                "pay its stretch, or partition before the transform.",
                code="reduction.data-dependent",
                stretch=None,
            )

    def squares(self, query: Query) -> Floats:
        """Sum over the coordinates that are not fixed of the squared coefficient, for each answer of a query.

        Independent noise of variance s on them gives the answer a variance of s times this. Integers as floats.
        """
        return np.asarray(
            self.coefficients(query).astype(np.float64).power(2).sum(axis=1), dtype=np.float64
        ).ravel()

    def coefficients(self, query: Query) -> Any:
        """Return the rows of W M without the fixed coordinates, as a sparse matrix in row order."""
        from scipy import sparse

        rows = self.matrix() if query.is_identity else _cells_of(query) @ self.matrix()
        rows = sparse.csr_array(rows)
        if len(self.fixed):
            gone = np.zeros(self.width, dtype=bool)
            gone[self.fixed] = True
            rows.data[gone[rows.indices]] = 0
        rows.eliminate_zeros()
        return rows


def _cells_of(query: Query) -> Any:
    from scipy import sparse

    return sparse.csr_array(query.columns(np.arange(query.domain.size, dtype=np.int64)))


def graph_of(policy: Policy) -> PolicyGraph:
    """The graph whose edges are all moves of a policy, or a refusal.

    Raises
    ------
    RefusedError
        When public facts make moves that are no edges.

    Notes
    -----
    Without public facts the moves are the edges; without a graph as well they are one record more or less: the star of
    bottom. Facts that are constant on each component and zero on those joined to bottom hold along every edge. Under
    them a minimal change (He, Machanavajjhala and Ding 2014, Definition 4.1) is one edge: of a change that holds more,
    one of its secret pairs alone is a smaller valid change.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> graph_of(Policy(Domain({"x": 3}))).is_tree
    True
    """
    graph = policy.graph
    if graph is None and not policy.constraints:
        return PolicyGraph(policy.domain, Empty(policy.domain.size)).with_bottom()
    if graph is not None and (not policy.constraints or _kept_by_edges(policy, graph)):
        return graph
    what = (
        "public facts without a policy graph: neighbours are all minimal changes that keep the facts"
        if graph is None
        else "public facts that an edge of the policy graph can break: their neighbours are not single edges"
    )
    raise RefusedError(
        f"{what}, and the transform is not proved for them. Use Laplace, or drop the facts from the policy.",
        code="reduction.facts",
        policy=policy,
    )


def _kept_by_edges(policy: Policy, graph: PolicyGraph) -> bool:
    """Whether every edge keeps every public fact."""
    if len(policy.system.zeros):
        return False
    rows = policy.system.matrix().tocsc()
    labels = graph.components()
    _, first = np.unique(labels, return_index=True)
    apart = abs(rows - rows[:, first[labels]]).sum()
    lone = np.fromiter(graph.bottom_cells, dtype=np.int64)
    return bool(apart == 0 and abs(rows[:, lone]).sum() == 0)


def bounded_roots(graph: PolicyGraph) -> Ints:
    """The first cell of each component without bottom, whose total no move changes."""
    if graph.bottom == "all":
        return np.zeros(0, dtype=np.int64)
    labels = graph.components()
    first = np.full(int(labels.max(initial=-1)) + 1, labels.size, dtype=np.int64)
    np.minimum.at(first, labels, np.arange(labels.size))
    if graph.bottom == "some":
        protected = graph.component_of(graph.bottom_cells[0])
        first = first[labels[first] != protected]
    return first


def check_cells(size: int) -> None:
    """Refuse a domain of which not even one vector fits, before one is made."""
    if size > MOST_CELLS:
        raise RefusedError(
            f"a policy over {size:,} cells: expected at most {MOST_CELLS:,}, since this mechanism holds a number for each. Use fewer "
            "or coarser values, or pg.Laplace() for a query of few answers.",
            code="reduction.cells",
            value=size,
        )


def check_totals(totals: object) -> None:
    """Refuse what says nothing about totals."""
    if totals not in ("auto", "exact", "noisy"):
        raise InputError(
            f"totals={totals!r}: expected 'auto', 'exact' or 'noisy'.", code="reduction.totals", value=totals
        )


def totals_are_exact(policy: Policy, graph: PolicyGraph, totals: Totals) -> bool:
    """Whether the totals of components without bottom are released as they are.

    Notes
    -----
    No move changes them, so that neither choice costs privacy under the policy. ``auto`` releases the number of all
    records of a connected graph, and totals that are public facts; the totals of several components, which an owner may
    not have thought of, get noise.
    """
    check_totals(totals)
    if totals != "auto":
        return totals == "exact"
    if graph.is_connected:
        return True
    if not policy.constraints:
        return False
    roots = bounded_roots(graph)
    rows = policy.system.matrix().tocsr()[:, roots]
    alone = rows[np.diff(rows.indptr) == 1]
    return len(np.unique(alone.indices)) == len(roots)


def _factors(graph: PolicyGraph) -> tuple[tuple[int, ...], tuple[Rule, ...]]:
    if isinstance(graph.rule, Product):
        return graph.rule.shape, graph.rule.factors
    return (graph.size,), (graph.rule,)


def is_line(rule: Rule) -> bool:
    """Whether a rule joins exactly the neighbouring values."""
    if isinstance(rule, Path):
        return rule.theta == 1 or rule.n <= 2
    return isinstance(rule, Complete) and rule.n == 2


def _still(rule: Rule) -> bool:
    return isinstance(rule, Empty) or rule.size == 1


def one_axis(graph: PolicyGraph) -> tuple[int, Rule, int] | None:
    """The only rule along which values change, with the number of cells outside and inside its axis; None if several.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> one_axis(PolicyGraph.line(Domain({"sex": 2, "age": 5, "place": 3}), "age"))
    (2, Path(n=5, theta=1), 3)
    """
    shape, factors = _factors(graph)
    moving = [axis for axis, rule in enumerate(factors) if not _still(rule)]
    if len(moving) != 1:
        return None
    axis = moving[0]
    return prod(shape[:axis]), factors[axis], prod(shape[axis + 1 :])


def line_axes(graph: PolicyGraph) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Shape and moving axes of a grid: every axis is a line or does not change; None for other graphs.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> line_axes(PolicyGraph.grid(Domain({"x": 3, "y": 4})))
    ((3, 4), (0, 1))
    """
    shape, factors = _factors(graph)
    if not all(_still(rule) or is_line(rule) for rule in factors):
        return None
    return shape, tuple(axis for axis, rule in enumerate(factors) if not _still(rule))
