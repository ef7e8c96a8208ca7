"""Public edges of a network. Owns ``KnownEdges``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.model.constraints.base import AnyDomain, Constraint, Ints, Rows, listable
from policygraph.model.domain import Label, Network


def _plain(group: Any) -> Any:
    return group.item() if isinstance(group, np.generic) else group


@dataclass(frozen=True, init=False)
class KnownEdges(Constraint):
    """Which nodes are joined inside groups, or between groups, is public.

    Parameters
    ----------
    groups
        The public group of each node: a list in node order, or a mapping from node to group.
    inside
        Whether the edges within groups are public.
    between
        Whether the edges between two groups are public.

    Examples
    --------
    >>> fact = KnownEdges([0, 0, 1], inside=True)
    >>> fact.rows(Network(3)).cell.tolist(), fact.n_rows(Network(3))
    ([0], 1)

    Notes
    -----
    Together with public degrees what may change are the other edges: the moves are the minimal ones that touch no public pair. A policy
    graph that makes only some edges secret promises more: other edges, which are not public, may change with them.
    """

    groups: tuple[Any, ...]
    inside: bool
    between: bool

    def __init__(
        self, groups: Sequence[Label] | Mapping[Any, Label], *, inside: bool = False, between: bool = False
    ) -> None:
        if not (isinstance(inside, bool) and isinstance(between, bool)) or inside == between:
            raise InputError(
                f"known edges (inside={inside!r}, between={between!r}): expected one of the two to be true.",
                code="constraint.edges",
            )
        # Keys of a TOML table are text, so nodes are named by their text.
        pairs = groups.items() if isinstance(groups, Mapping) else ((None, group) for group in groups)
        listed = tuple((None if node is None else str(node), _plain(group)) for node, group in pairs)
        if not listed:
            raise InputError(
                "known edges: expected the group of each node.", code="constraint.edges", value=groups
            )
        object.__setattr__(self, "groups", listed)
        object.__setattr__(self, "inside", inside)
        object.__setattr__(self, "between", between)

    def _given(self) -> list[Any] | dict[Any, Any]:
        named = self.groups[0][0] is not None
        return dict(self.groups) if named else [group for _, group in self.groups]

    def codes(self, domain: AnyDomain) -> Ints:
        """Number of the group of each node."""
        if not isinstance(domain, Network):
            raise InputError(
                "known edges: expected a network, but the policy is over a table.",
                code="constraint.domain",
                value="edges",
            )
        given = self._given()
        if isinstance(given, dict):
            if wrong := set(given) ^ {str(node) for node in domain.nodes}:
                raise InputError(
                    f"known edges: {min(wrong)!r} is no node, or has no group: expected one group for each node.",
                    code="constraint.edges",
                )
            given = [given[str(node)] for node in domain.nodes]
        if len(given) != domain.order:
            raise InputError(
                f"known edges: {len(given)} groups for {domain.order} nodes: expected one for each node.",
                code="constraint.edges",
                value=len(given),
            )
        at = {name: position for position, name in enumerate(dict.fromkeys(given))}
        return np.array([at[group] for group in given], dtype=np.int64)

    def covers(self, domain: AnyDomain, cells: Ints) -> Any:
        """Whether each of some node pairs is public."""
        codes = self.codes(domain)
        if not isinstance(domain, Network):  # codes() has refused it already
            raise InputError("known edges need a network.", code="constraint.domain")
        tail, head = domain.pairs(cells)
        return (codes[tail] == codes[head]) == self.inside

    def is_public(self, domain: AnyDomain, pair: Sequence[Label]) -> bool:
        """Whether one pair of nodes is public, by the names of the nodes."""
        given = self._given()
        of: dict[str, Any] = given if isinstance(given, dict) else {}
        if not of and isinstance(domain, Network):
            of = dict(zip(map(str, domain.nodes), given, strict=True))
        return bool(of[str(pair[0])] == of[str(pair[1])]) == self.inside

    def cells(self, domain: AnyDomain) -> Ints:
        """The node pairs whose edge is public."""
        listable(domain.size, "the public edges")
        every = np.arange(domain.size, dtype=np.int64)
        chosen: Ints = every[self.covers(domain, every)]
        return chosen

    def n_rows(self, domain: AnyDomain) -> int:
        sizes = np.bincount(self.codes(domain)).tolist()
        if not isinstance(domain, Network):
            raise InputError("known edges need a network.", code="constraint.domain")
        own = [Network(size, directed=domain.directed, loops=domain.loops).size for size in sizes]
        return sum(own) if self.inside else domain.size - sum(own)

    def rows(self, domain: AnyDomain) -> Rows:
        cells = self.cells(domain)
        return Rows(len(cells), np.arange(len(cells), dtype=np.int64), cells, np.ones_like(cells))

    def rows_on(self, domain: AnyDomain, cells: Ints) -> Rows:
        # One row a pair: its number is that of the pair, so that nothing else has to be listed.
        at = np.flatnonzero(self.covers(domain, cells))
        return Rows(domain.size, cells[at], at, np.ones_like(at))

    def values(self, domain: AnyDomain) -> None:
        return None

    def row_name(self, domain: AnyDomain, row: int) -> str:
        return f"the edges {'inside' if self.inside else 'between'} groups of nodes"

    def to_spec(self) -> dict[str, Any]:
        return {"edges": {"groups": self._given(), "inside" if self.inside else "between": True}}
