"""Public degrees and edges of a network. Owns ``Degrees``, ``KnownEdges``, and which degree sequences are those of a graph."""

from __future__ import annotations

import reprlib
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


def _capped_sums(values: Ints) -> Ints:
    """Sum of min(value, k) over all values, for k = 0 to the number of values."""
    n = len(values)
    at_least = np.zeros(n + 1, dtype=np.int64)
    counts = np.bincount(np.minimum(values, n), minlength=n + 1)
    at_least[1:] = counts[::-1].cumsum()[::-1][1:]
    return np.cumsum(at_least)


def _inside(values: Ints) -> Ints:
    """For k = 1 to n, how many of the first k values are at least k."""
    n = len(values)
    steps = np.zeros(n + 2, dtype=np.int64)
    first = np.arange(1, n + 1, dtype=np.int64)
    last = np.minimum(values, n)
    fits = last >= first
    np.add.at(steps, first[fits], 1)
    np.add.at(steps, last[fits] + 1, -1)
    return np.cumsum(steps)[1 : n + 1]


def graphical(degrees: Any) -> bool:
    """Whether a simple undirected graph without loops has these degrees.

    Examples
    --------
    >>> graphical([2, 2, 2]), graphical([3, 1, 1, 1]), graphical([3, 3, 1, 1]), graphical([1])
    (True, True, False, False)

    Notes
    -----
    Erdős and Gallai: even sum, and for each k the k largest degrees are at most k (k - 1) plus the sum of min(d, k) over the
    others. In descending order the first k values that are at least k are a prefix, so all k are checked in linear time.
    """
    d = np.sort(np.asarray(degrees, dtype=np.int64))[::-1]
    n = len(d)
    if n == 0:
        return True
    if int(d[-1]) < 0 or int(d[0]) >= n or int(d.sum()) % 2:
        return False
    k = np.arange(1, n + 1, dtype=np.int64)
    # Over the first k: min(d, k) is d unless d >= k; the sum over the others is the rest of the sum over all.
    first = np.cumsum(np.minimum(d, n))
    prefix_capped = _prefix_capped(d)
    rest = _capped_sums(d)[1:] - prefix_capped
    return bool(np.all(first <= k * (k - 1) + rest))


def _prefix_capped(d: Ints) -> Ints:
    """For k = 1 to n, the sum of min(d, k) over the first k values of a descending sequence."""
    n = len(d)
    k = np.arange(1, n + 1, dtype=np.int64)
    large = np.minimum(np.searchsorted(-d, -k, side="right"), k)
    sums = np.concatenate([[0], np.cumsum(d)])
    out: Ints = large * k + sums[k] - sums[large]
    return out


def digraphical(out: Any, into: Any, *, loops: bool = False) -> bool:
    """Whether a directed graph without multiple edges has these out- and in-degrees.

    Examples
    --------
    >>> digraphical([1, 1], [1, 1]), digraphical([2, 0], [1, 1]), digraphical([2, 0], [1, 1], loops=True)
    (True, False, True)

    Notes
    -----
    With loops the condition is that of Gale and Ryser; without loops that of Fulkerson, Chen and Anstee, for which the
    nodes are put in descending lexicographic order of (out, in).
    """
    a, b = np.asarray(out, dtype=np.int64), np.asarray(into, dtype=np.int64)
    n = len(a)
    if len(b) != n or int(a.sum()) != int(b.sum()):
        return False
    if n == 0:
        return True
    most = n if loops else n - 1
    if int(min(a.min(), b.min())) < 0 or int(max(a.max(), b.max())) > most:
        return False
    order = np.lexsort((-b, -a))
    a, b = a[order], b[order]
    room = _capped_sums(b)[1:]
    if not loops:
        room = room - _inside(b)
    return bool(np.all(np.cumsum(a) <= room))


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
    named = _pairs(nodes)
    if _pairs(equals) is not None or (named is not None and equals is not None):
        # Beside "all" a mapping that lacks a node would quietly make fewer degrees public than was meant.
        raise InputError(
            "degrees: equals has nodes in it: expected a list of values in the order of the nodes. A mapping from nodes to "
            "degrees goes alone, and first: pg.Degrees(dict(graph.degree())).",
            code="constraint.degrees",
        )
    return (nodes, equals) if named is None else (list(named), list(named.values()))


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
                f"degrees = {reprlib.repr(nodes)}: expected a list of nodes or 'all'.",
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
                f"degrees = {reprlib.repr(listed)}: expected at least one node, each once. Values go into equals=, in the order of the nodes.",
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
                    f"known edges: {min(wrong)!r} is not a node, or has no group: expected one group for each node.",
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
