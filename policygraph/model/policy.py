"""What a data owner promises. Owns :class:`Policy` and :class:`Verdict`.

A policy is a domain, a policy graph (which values of a record must not be told apart), exact public facts, and the
strength of the neighbours that the facts induce.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from policygraph.errors import InputError
from policygraph.model.constraints.base import AnyDomain, Constraint
from policygraph.model.domain import Domain, Network
from policygraph.model.queries.base import Query, fingerprint, order_of
from policygraph.model.system import System

if TYPE_CHECKING:
    import networkx

    from policygraph.model.graphs import PolicyGraph

__all__ = ["DEFINITIONS", "Policy", "Strength", "Verdict"]

Strength = Literal["worst-case", "positive", "markov"]
STRENGTHS: tuple[Strength, ...] = ("worst-case", "positive", "markov")

DEFINITIONS = {
    "edges": "neighbours along the edges of the policy graph",
    "induced": "induced neighbours under exact public facts (Kifer and Machanavajjhala 2011, Definition 4.4)",
    "blowfish": "Blowfish neighbours under constraints (He, Machanavajjhala and Ding 2014, Definition 4.1)",
}


NEIGHBOURS = "policygraph.moves.neighbours"
"""Where the questions about moves are answered that :class:`Policy` passes on. The model itself knows no moves."""


DRAWING = "policygraph.model.drawing"
"""Where policies are drawn; it imports this module."""


@dataclass(frozen=True)
class Verdict:
    """Whether two tables are neighbours, and why; usable as a condition.

    Attributes
    ----------
    neighbours
        The answer.
    reason
        The answer in words.
    smaller
        A smaller legal :class:`~policygraph.moves.move.Move`, where there is one and it speaks against the pair.
    """

    neighbours: bool
    reason: str
    smaller: Any = None

    def __bool__(self) -> bool:
        return self.neighbours


@dataclass(frozen=True, init=False)
class Policy:
    """Who must not be told apart, given what everybody knows.

    Parameters
    ----------
    domain
        What a record can be: a :class:`Domain` or a :class:`Network`.
    graph
        The secret pairs: a :class:`PolicyGraph`, or a networkx graph on cells and BOTTOM. None: the neighbours are those that the public facts induce, records being added and
        removed one by one; without public facts that is one record more or less.
    constraints
        Exact public facts.
    strength
        Which induced neighbours are protected: ``worst-case`` (all minimal moves), ``positive`` or ``markov``.
    at_most_records
        Protect only moves that add at most so many records to the histogram and remove at most so many from it, as counted in
        the difference of the two histograms. Records that exchange their values count for nothing.
    unknown
        What to do with labels outside the domain: ``error``, ``drop``, or a label for each attribute that takes
        them in.

    Examples
    --------
    >>> from policygraph.model.constraints import Cuboid
    >>> policy = Policy(Domain({"sex": ["F", "M"], "age": 3}), constraints=[Cuboid("sex")])
    >>> policy.definition
    'induced'
    >>> bool(policy.are_neighbours([1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]))
    True
    >>> bool(policy.are_neighbours([1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]))
    False
    """

    domain: AnyDomain
    graph: PolicyGraph | None = None
    constraints: tuple[Constraint, ...] = ()
    strength: Strength = "worst-case"
    at_most_records: int | None = None
    unknown: Any = "error"

    def __init__(
        self,
        domain: AnyDomain,
        graph: PolicyGraph | networkx.Graph[Any] | None = None,
        constraints: Iterable[Constraint] = (),
        strength: str = "worst-case",
        at_most_records: int | None = None,
        unknown: Any = "error",
    ) -> None:
        if not isinstance(domain, (Domain, Network)):
            raise InputError(
                f"domain={domain!r}: expected a Domain or a Network.", code="policy.domain", value=domain
            )
        if graph is not None:
            graph = _read_graph(domain, graph)
        if graph is not None and graph.domain != domain:
            raise InputError(
                f"the policy graph is over {graph.domain!r}, the policy over {domain!r}: expected one domain.",
                code="policy.graph-domain",
            )
        listed = tuple(constraints) if not isinstance(constraints, Constraint) else (constraints,)
        for constraint in listed:
            if not isinstance(constraint, Constraint):
                raise InputError(
                    f"constraint {constraint!r}: expected a public fact such as Cuboid('sex').",
                    code="policy.constraint",
                    value=constraint,
                )
        if strength not in STRENGTHS:
            raise InputError(
                f"strength={strength!r}: expected one of {', '.join(STRENGTHS)}.",
                code="policy.strength",
                value=strength,
            )
        if at_most_records is not None and (
            isinstance(at_most_records, bool) or not isinstance(at_most_records, int) or at_most_records < 1
        ):
            raise InputError(
                f"at_most_records={at_most_records!r}: expected an integer >= 1. A cap of 0 protects nothing.",
                code="policy.cap",
                value=at_most_records,
            )
        if graph is not None and listed and strength != "worst-case":
            raise InputError(
                f"strength={strength!r} is about induced neighbours: with a policy graph and public facts together "
                "expected strength='worst-case', or no graph.",
                code="policy.strength",
                value=strength,
            )
        for name, value in (
            ("domain", domain),
            ("graph", graph),
            ("constraints", listed),
            ("strength", strength),
            ("at_most_records", at_most_records),
            ("unknown", self._read_unknown(domain, unknown)),
        ):
            object.__setattr__(self, name, value)
        _ = self.system  # contradictions are an error of the policy, found when it is made

    @staticmethod
    def _read_unknown(domain: AnyDomain, unknown: Any) -> Any:
        if unknown in ("error", "drop"):
            return unknown
        if isinstance(unknown, tuple):
            unknown = dict(unknown)
        if isinstance(unknown, dict) and isinstance(domain, Domain):
            for name, label in unknown.items():
                domain.code(name, label)
            return tuple(sorted(unknown.items()))
        raise InputError(
            f"unknown={unknown!r}: expected 'error', 'drop', or a label of the domain for each attribute.",
            code="policy.unknown",
            value=unknown,
        )

    @cached_property
    def system(self) -> System:
        """The public facts taken together."""
        return System(self.domain, self.constraints)

    @property
    def definition(self) -> str:
        """Which definition of neighbours applies: ``edges``, ``induced`` or ``blowfish``."""
        if self.graph is None:
            return "induced"
        return "blowfish" if self.constraints else "edges"

    @cached_property
    def fingerprint(self) -> str:
        """Stable name of the policy: equal policies have equal fingerprints."""
        spec = self.to_spec()
        return fingerprint({**spec, **order_of(self.domain, by_name=_by_name(spec))})

    def to_spec(self) -> dict[str, Any]:
        """Plain form for policy files, certificates and fingerprints."""
        spec: dict[str, Any] = {
            "network" if isinstance(self.domain, Network) else "domain": self.domain.to_spec()
        }
        neighbours: dict[str, Any] = {}
        if self.graph is not None:
            form = self.graph.to_spec()
            neighbours["graph"] = form["graph"]
            if form["bottom"]:
                neighbours["bottom"] = True
        if self.strength != "worst-case":
            neighbours["strength"] = self.strength
        if self.at_most_records is not None:
            neighbours["at_most_records"] = self.at_most_records
        if neighbours:
            spec["neighbours"] = neighbours
        if self.constraints:
            spec["public"] = [constraint.to_spec() for constraint in self.constraints]
        if self.unknown != "error":
            spec["data"] = {
                "unknown": self.unknown if self.unknown == "drop" else {"other": dict(self.unknown)}
            }
        return spec

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Policy:
        """Make a policy from its plain form (the inverse of :meth:`to_spec`).

        Examples
        --------
        >>> policy = Policy(Domain({"a": 2}), strength="markov")
        >>> Policy.from_spec(policy.to_spec()) == policy
        True
        """
        from policygraph.model.constraints import from_spec
        from policygraph.model.graphs import PolicyGraph

        domain: AnyDomain
        if "network" in spec:
            network = dict(spec["network"])
            domain = Network(network.pop("nodes"), **network)
        else:
            domain = Domain(spec["domain"])
        neighbours = spec.get("neighbours", {})
        if neighbours.get("nodes"):
            raise InputError(
                "this is node privacy, which is no Policy: expected neighbours that differ in single edges or records. Make "
                "NodePrivacy(network) instead.",
                code="policy.nodes",
                value=spec,
            )
        if spec.get("unit"):
            raise InputError(
                "this hides families or units of records, which is no Policy: expected neighbours that differ in single edges or records. Make "
                "Families(policy, size) or Unit(policy, column, at_most) instead.",
                code="policy.unit",
                value=spec,
            )
        graph = None
        if neighbours.get("graph", "none") != "none":
            graph = PolicyGraph.from_spec(domain, neighbours["graph"], neighbours.get("bottom", False))
        unknown = spec.get("data", {}).get("unknown", "error")
        return cls(
            domain,
            graph,
            [from_spec(fact) for fact in spec.get("public", ())],
            neighbours.get("strength", "worst-case"),
            neighbours.get("at_most_records"),
            unknown["other"] if isinstance(unknown, dict) else unknown,
        )

    def are_neighbours(self, a: Any, b: Any) -> Verdict:
        """Whether two tables of counts are neighbours, with the reason.

        Returns
        -------
        Verdict
            True or false as a condition; ``reason`` in words, and a smaller legal change when there is one.

        Notes
        -----
        For two cuboids (with parts of their margins, totals, structural zeros) and for degrees an Eulerian walk with
        detection of sub-cycles decides, in time linear in the number of changed cells.
        """
        found: Verdict = import_module(NEIGHBOURS).verdict(self, self._table(a), self._table(b))
        return found

    def decompose(self, a: Any, b: Any) -> list[Any]:
        """Minimal moves (:class:`~policygraph.moves.move.Move`) that lead from one table to another and never undo each other.

        These are minimal moves of the public facts; policy graph, strength and the cap on records are left aside, so that under
        these a part need not lead to a neighbour (:meth:`are_neighbours` says whether it does).

        Raises
        ------
        InputError
            When the tables differ in a public fact.

        Examples
        --------
        >>> from policygraph.model.constraints import Total
        >>> policy = Policy(Domain({"a": 3}), constraints=[Total()])
        >>> [str(move) for move in policy.decompose([2, 0, 0], [0, 1, 1])]
        ['-(0) +(1)', '-(0) +(2)']
        """
        found: list[Any] = import_module(NEIGHBOURS).decompose(self, self._table(a), self._table(b))
        return found

    def moves(self, *, limit: int | None = None) -> Iterator[Any]:
        """List the moves (:class:`~policygraph.moves.move.Move`) of the policy lazily, one of each pair of opposite moves.

        Parameters
        ----------
        limit
            Stop after so many.
        """
        found: Iterator[Any] = import_module(NEIGHBOURS).moves(self, limit=limit)
        return found

    def move_graph(self, *, draw: Any = None) -> networkx.Graph[Any]:
        """The move graph of the policy, as a networkx graph; minimal moves are closed alternating walks in it.

        Parameters
        ----------
        draw
            A picture file or matplotlib axes to draw a small one into.

        Returns
        -------
        networkx.Graph
            Without public facts the policy graph itself. Over a network its nodes (``public`` says whose degree is) and the
            pairs that may be edges. For two cuboids a bipartite multigraph, public sums as vertices and cells as edges. For
            other facts a bipartite graph of cells and the public sums that count them.

        Raises
        ------
        RefusedError
            When the domain is too large to list its cells.

        Examples
        --------
        >>> from policygraph.model.constraints import Cuboid
        >>> policy = Policy(Domain({"a": 2, "b": 3}), constraints=[Cuboid("a"), Cuboid("b")])
        >>> print(policy.move_graph())
        MultiGraph with 5 nodes and 6 edges
        """
        found: networkx.Graph[Any] = import_module(NEIGHBOURS).move_graph(self, draw=draw)
        return found

    def neighbour_graph(self, tables: Any = None, *, draw: Any = None) -> networkx.Graph[Any]:
        """The tables that fit what is public, joined where they are neighbours, as a networkx graph.

        Parameters
        ----------
        tables
            The tables to join, or None for all tables with the published values (which must leave finitely many, and few).
        draw
            A picture file or matplotlib axes to draw a small one into.

        Returns
        -------
        networkx.Graph
            Tables as tuples of counts; edges with the ``move`` that leads from the smaller tuple to the larger one.

        Raises
        ------
        RefusedError
            When there are too many tables.

        Examples
        --------
        >>> from policygraph.model.constraints import Total
        >>> print(Policy(Domain({"a": 3}), constraints=[Total(equals=2)]).neighbour_graph())
        Graph with 6 nodes and 9 edges
        """
        found: networkx.Graph[Any] = import_module(NEIGHBOURS).neighbour_graph(self, tables, draw=draw)
        return found

    def __repr__(self) -> str:
        said = [repr(self.domain)]
        said += [] if self.graph is None else [str(self.graph.to_spec()["graph"])[:60]]
        said += [f"{len(self.constraints)} public fact{'s' * (len(self.constraints) != 1)}"]
        said += [] if self.strength == "worst-case" else [self.strength]
        said += [] if self.at_most_records is None else [f"at most {self.at_most_records} records"]
        return f"Policy({', '.join(said)})"

    def _repr_html_(self) -> str:
        from policygraph.markup import notebook, table
        from policygraph.model.system import describe

        facts = [describe(fact, self.domain) for fact in self.constraints]
        shown = ", ".join(facts[:8]) + (f" and {len(facts) - 8} more" if len(facts) > 8 else "")
        rows = [
            ["data", repr(self.domain)],
            ["public", shown or "nothing but the domain"],
            ["secret pairs", "none named" if self.graph is None else self.graph.describe()],
            ["neighbours", DEFINITIONS[self.definition]],
        ]
        if self.strength != "worst-case" or self.at_most_records is not None:
            most = "" if self.at_most_records is None else f", at most {self.at_most_records} records"
            rows.append(["strength", self.strength + most])
        return notebook("Policy", table(["", ""], rows))

    def draw(self, target: Any = None) -> Any:
        """Draw the policy graph (a large one by the same rule on fewer values), or which attributes the public facts tell of.

        Parameters
        ----------
        target
            A picture file; None only returns the figure, which notebooks show.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return import_module(DRAWING).draw_policy(self, target)

    def without(self, constraint: Constraint) -> Policy:
        """Return the policy in which one public fact is not public."""
        rest = [c for c in self.constraints if c is not constraint]
        return Policy(self.domain, self.graph, rest, self.strength, self.at_most_records, self.unknown)

    def with_strength(self, strength: str, at_most_records: int | None = None) -> Policy:
        """Return the policy with another strength of induced neighbours."""
        return Policy(self.domain, self.graph, self.constraints, strength, at_most_records, self.unknown)

    def check_table(self, table: Any) -> None:
        """Raise when a vector of counts does not fit the domain, its capacity or the published values."""
        self.system.check(self._table(table))

    def _table(self, values: Any) -> Any:
        flat = np.asarray(values).ravel()
        if flat.dtype.kind not in "iu" and not (flat.dtype.kind == "f" and np.all(flat == np.floor(flat))):
            raise InputError("a table of counts has whole numbers only.", code="policy.table")
        flat = flat.astype(np.int64)
        if len(flat) != self.domain.size:
            raise InputError(
                f"a table of {len(flat)} cells: expected {self.domain.size}, one for each cell of {self.domain!r}.",
                code="policy.table",
                value=len(flat),
            )
        top = self.domain.capacity
        if np.any(flat < 0) or (top is not None and np.any(flat > top)):
            raise InputError(
                f"a table of counts has values from 0{'' if top is None else f' to {top}'} only.",
                code="policy.table",
            )
        return flat


def _read_graph(domain: AnyDomain, graph: Any) -> PolicyGraph:
    from policygraph.model.graphs.base import PolicyGraph, is_networkx

    if is_networkx(graph):
        return PolicyGraph.from_networkx(domain, graph)
    if not isinstance(graph, PolicyGraph):
        word = graph if isinstance(graph, str) and hasattr(PolicyGraph, graph) else "full"
        raise InputError(
            f"graph={graph!r}: expected a PolicyGraph, such as PolicyGraph.{word}(domain), a networkx graph on cells, or None.",
            code="policy.graph",
            value=graph,
        )
    return graph


def check_kinds(query: Any, policy: Any, *, released: bool, kinds: tuple[type, ...] = ()) -> None:
    """Refuse arguments of other kinds, such as a query and a policy that are swapped.

    ``released`` says whether a release or its comparison is asked for, or a sensitivity; ``kinds`` are further types that will do as a policy.
    """
    if isinstance(query, Query) and isinstance(policy, (Policy, *kinds)):
        return
    if hasattr(type(policy), "refused"):
        raise policy.refused()
    raise InputError(
        "query and policy are swapped: expected the query first, then the policy."
        if isinstance(query, Policy) and isinstance(policy, Query)
        else f"query={query!r}, policy={policy!r}: expected a query such as pg.queries.identity(domain), then a Policy.",
        code="release.arguments" if released else "sensitivity.arguments",
    )


def _by_name(spec: dict[str, Any]) -> bool:
    """Whether a plain form names attributes wherever their order could matter: no cell by its number or position, no table of values."""
    graph = spec.get("neighbours", {}).get("graph", "full")
    form = {} if isinstance(graph, str) else graph
    lists = [value for value in form.values() if isinstance(value, list)]
    return not lists and all(map(_fact_by_name, spec.get("public", ())))


def _fact_by_name(fact: dict[str, Any]) -> bool:
    if "cuboid" in fact:
        return "equals" not in fact or len(fact["cuboid"]) < 2
    if "count" in fact:
        return all("where" in term for term in fact["count"].get("terms", [fact["count"]]))
    if "zeros" in fact:
        return all(isinstance(zero, dict) for zero in fact["zeros"])
    return "total" in fact or "cells" in fact
