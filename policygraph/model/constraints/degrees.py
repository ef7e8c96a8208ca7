"""Public degrees of a network. Owns ``Degrees``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.model.constraints.base import (
    AnyDomain,
    Constraint,
    Ints,
    Rows,
    freeze,
    listable,
    thaw,
    wholes,
)
from policygraph.model.domain import Label, Network


def _pairs(given: Any) -> dict[Label, Any] | None:
    """Nodes with values, if that is what was given; a node is never a pair, so that this is no guess."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str) or not isinstance(given, Iterable) or iter(given) is given:
        return None
    listed = list(given)
    if listed and all(isinstance(each, tuple) and len(each) == 2 for each in listed):
        found = dict(listed)
        return found if len(found) == len(listed) else None
    return None


def _together(nodes: Any, equals: Any) -> tuple[Any, Any]:
    """Nodes and their degrees as two lists, whichever way they were given."""
    if isinstance(nodes, Iterable) and not isinstance(nodes, (str, Mapping)):
        nodes = [node.item() if isinstance(node, np.generic) else node for node in nodes]
    told = _pairs(nodes)
    if _pairs(equals) is not None or (told is not None and equals is not None):
        # Beside "all" a mapping that lacks a node would quietly make fewer degrees public than was meant.
        raise InputError(
            "degrees: equals has nodes in it: expected a list of values in the order of the nodes. A mapping from nodes to "
            "degrees goes alone, and first: pg.Degrees(dict(graph.degree())).",
            code="constraint.degrees",
        )
    return (nodes, equals) if told is None else (list(told), list(told.values()))


@dataclass(frozen=True, init=False)
class Degrees(Constraint):
    """The degrees of some nodes, or of all, are public.

    Parameters
    ----------
    nodes
        The nodes, or ``"all"``; or nodes with their published degrees, as a mapping or as ``graph.degree`` of networkx gives them.
    side
        ``"both"`` in an undirected network; ``"in"`` or ``"out"`` in a directed one.
    equals
        The published degrees, one for each node in the order of ``nodes`` (of the network for ``"all"``).

    Examples
    --------
    >>> Degrees([0]).rows(Network(3)).cell.tolist()
    [0, 1]
    >>> Degrees({"ann": 2, "bob": 1}) == Degrees(["ann", "bob"], equals=[2, 1])
    True
    """

    nodes: tuple[Label, ...] | str
    side: str
    equals: Any

    def __init__(
        self,
        nodes: Sequence[Label] | Mapping[Label, int] | str = "all",
        *,
        side: str = "both",
        equals: Any = None,
    ) -> None:
        nodes, equals = _together(nodes, equals)
        if not isinstance(nodes, (str, list)):
            raise InputError(
                f"degrees = {nodes!r}: expected a list of nodes or 'all'.",
                code="constraint.degrees",
                value=nodes,
            )
        if isinstance(nodes, str) and nodes != "all":
            raise InputError(
                f"degrees = {nodes!r}: expected a list of nodes or 'all'.", code="constraint.degrees"
            )
        if side not in ("both", "in", "out"):
            raise InputError(
                f"side={side!r}: expected 'both', 'in' or 'out'.", code="constraint.degrees", value=side
            )
        listed: tuple[Label, ...] | str = nodes if isinstance(nodes, str) else tuple(nodes)
        if not isinstance(listed, str) and (not listed or len(set(listed)) != len(listed)):
            raise InputError(
                f"degrees = {list(listed)!r}: expected at least one node, each once.",
                code="constraint.degrees",
            )
        object.__setattr__(self, "nodes", listed)
        object.__setattr__(self, "side", side)
        object.__setattr__(self, "equals", freeze(equals))

    def positions(self, domain: AnyDomain) -> Ints:
        """Positions of the nodes whose degree is public."""
        if not isinstance(domain, Network):
            raise InputError(
                "degrees: expected a network, but the policy is over a table.",
                code="constraint.domain",
                value="degrees",
            )
        if domain.directed == (self.side == "both"):
            raise InputError(
                "degrees: expected in_degrees or out_degrees in a directed network."
                if domain.directed
                else f"{self.side}_degrees: expected degrees, since the network has no directions.",
                code="constraint.degrees",
                value=self.side,
            )
        if isinstance(self.nodes, str):
            return np.arange(domain.order, dtype=np.int64)
        return np.array([domain.code(node) for node in self.nodes], dtype=np.int64)

    def n_rows(self, domain: AnyDomain) -> int:
        return len(self.positions(domain))

    def rows(self, domain: AnyDomain) -> Rows:
        listable(2 * domain.size, "the degrees")
        return self.rows_on(domain, np.arange(domain.size, dtype=np.int64))

    def rows_on(self, domain: AnyDomain, cells: Ints) -> Rows:
        known = self.positions(domain)
        if not isinstance(domain, Network):  # positions() has refused it already
            raise InputError("degrees need a network.", code="constraint.domain")
        row_of = np.full(domain.order, -1, dtype=np.int64)
        row_of[known] = np.arange(len(known))
        tail, head = domain.pairs(cells)
        ends = {"both": [tail, head], "out": [tail], "in": [head]}[self.side]
        row = np.concatenate([row_of[end] for end in ends])
        place = np.concatenate([np.arange(len(cells), dtype=np.int64) for _ in ends])
        keep = row >= 0
        # A loop meets its node twice: the two unit entries of one (row, cell) become one entry of 2.
        width = max(len(cells), 1)
        keys, times = np.unique(row[keep] * width + place[keep], return_counts=True)
        return Rows(len(known), keys // width, keys % width, times.astype(np.int64))

    def values(self, domain: AnyDomain) -> tuple[int, ...] | None:
        return wholes(thaw(self.equals), self.n_rows(domain), "degrees")

    def row_name(self, domain: AnyDomain, row: int) -> str:
        if not isinstance(domain, Network):
            return f"degree {row}"
        kind = {"both": "degree", "in": "in-degree", "out": "out-degree"}[self.side]
        return f"{kind} of node {domain.nodes[int(self.positions(domain)[row])]}"

    def to_spec(self) -> dict[str, Any]:
        key = {"both": "degrees", "in": "in_degrees", "out": "out_degrees"}[self.side]
        spec: dict[str, Any] = {key: self.nodes if isinstance(self.nodes, str) else list(self.nodes)}
        return spec | ({} if self.equals is None else {"equals": thaw(self.equals)})
