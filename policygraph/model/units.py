"""Everything that one person, household or firm contributed, as one secret. Owns :class:`Unit`.

The definitions and theorems are in ``docs/explanation/proofs/units.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from policygraph.errors import ConstraintError, InputError, RefusedError
from policygraph.model.constraints.tables import StructuralZero, Total
from policygraph.model.domain import Domain
from policygraph.model.families import Families
from policygraph.model.graphs import BOTTOM, PolicyGraph
from policygraph.model.graphs.rules import Empty
from policygraph.model.graphs.stretch import stretch
from policygraph.model.grouped import Grouped
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy, Verdict

__all__ = ["Unit", "any_policy", "other_terms", "steps_between"]

MOST_CELLS = 1_000_000
"""Most cells for which it is looked up whether every edge keeps the public facts."""
FORMS = {
    "column": {"column", "at_most", "per_cell", "within"},
    "family": {"family", "exactly"},
    "tables": {"tables", "totals"},
}
"""What the plain form of a unit or of families may have, by what tells them apart."""
DELTA = Fraction(1, 10**6)
"""At which a loss in rho is said in epsilon as well."""
MOST_EDGES = 200_000
"""Most edges of a policy graph among which the changes of one unit are looked for."""


@dataclass(frozen=True)
class Unit(Grouped):
    """Everything that one unit contributed is hidden: whether it is there at all, or how its records change along the policy graph.

    Parameters
    ----------
    policy
        What a single record may hide: policy graph and public facts.
    column
        The column of the data that says whose record it is.
    at_most
        How many records of one unit count. The engine keeps so many of each, by an order that depends on the unit's own records only.
    per_cell
        How many of them count in one cell; None: any number.
    within
        The column of a larger unit that this one is inside of, such as a household; explanations, plans and releases then show its price.

    Notes
    -----
    Without a policy graph a unit appears or vanishes with all its records. With one, each of its records stays or changes along an edge. Which records are kept of a
    unit that has too many then depends on what they are, and only under the full graph that does no harm; under other graphs data with such a unit are refused
    (:attr:`enforced`).

    Examples
    --------
    Up to five visits of one person:

    >>> import policygraph as pg
    >>> domain = pg.Domain({"shop": 20, "hour": 24})
    >>> people = Unit(pg.Policy(domain), "person", at_most=5, per_cell=1)
    >>> visits = pg.queries.identity(domain)
    >>> int(pg.sensitivity(visits, people).value), int(pg.sensitivity(visits, people, norm="l2").power)
    (5, 5)
    """

    records: Policy
    column: str
    at_most: int
    per_cell: int | None = None
    within: str | None = None

    def __init__(
        self,
        policy: Policy,
        column: str,
        at_most: int,
        per_cell: int | None = None,
        within: str | None = None,
    ) -> None:
        if not isinstance(policy, Policy) or not isinstance(policy.domain, Domain):
            raise InputError(
                f"a unit under {policy!r}: expected a Policy over tables of records. For networks there is NodePrivacy(network, together), whose unit is a node with its edges, or a household of nodes.",
                code="unit.policy",
                value=policy,
            )
        self._check_columns(policy.domain, column, within)
        for name, value in (("at_most", at_most), ("per_cell", per_cell)):
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if not whole and not (name == "per_cell" and value is None):
                raise InputError(
                    f"{name}={value!r}: expected how many records of one unit count{' in one cell' if name == 'per_cell' else ''}, a whole number >= 1.",
                    code="unit.bound",
                    value=value,
                )
        if per_cell is not None and per_cell > at_most:
            raise InputError(
                f"per_cell={per_cell} is more than at_most={at_most}: expected at most as many in one cell as there are in all, or none.",
                code="unit.bound",
                value=per_cell,
            )
        if policy.at_most_records is not None or policy.strength != "worst-case":
            raise RefusedError(
                "a unit beside at_most_records or a weaker strength: what these mean for all records of a unit is not settled. Leave them out.",
                code="unit.facts",
            )
        made = {
            "records": policy,
            "column": column,
            "at_most": at_most,
            "per_cell": per_cell,
            "within": within,
        }
        for name, part in made.items():
            object.__setattr__(self, name, part)
        self._check_facts()

    @staticmethod
    def _check_columns(domain: Domain, column: Any, within: Any) -> None:
        for name, value in (("column", column), ("within", within)):
            if name == "within" and value is None:
                continue
            if not isinstance(value, str) or not value or "\0" in value:
                raise InputError(
                    f"{name}={value!r}: expected the name of a column of the data.",
                    code="unit.column",
                    value=value,
                )
            if value in domain.names:
                raise InputError(
                    f"{name}={value!r} is also an attribute: expected a column that says whose record it is, and is not counted. Leave it out of the domain.",
                    code="unit.column",
                    value=value,
                )
        if column == within:
            raise InputError(
                f"within={within!r} is the unit itself: expected the column of a larger unit, or none.",
                code="unit.column",
                value=within,
            )

    def _check_facts(self) -> None:
        """Refuse public facts that the change of a single record can break: others must then make up for it, of other units."""
        policy = self.records
        facts = [fact for fact in policy.constraints if not isinstance(fact, StructuralZero)]
        if not facts or (policy.graph is not None and self._edges_keep(facts)):
            return
        raise RefusedError(
            "a unit beside public facts that the records of one unit can break: records of other units must then make up for it, in changes that no bound is proved for. Leave the "
            "facts out; where only the number of records is public, state the full policy graph instead of the total, which it keeps.",
            code="unit.facts",
        )

    def _edges_keep(self, facts: list[Any]) -> bool:
        graph = self.records.graph
        if graph is None:
            return False
        if all(isinstance(fact, Total) for fact in facts):
            return graph.bottom == "none"
        if graph.size > MOST_CELLS:
            raise RefusedError(
                f"a unit beside public facts over {graph.size:,} cells: expected at most {MOST_CELLS:,}, so that it can be looked up whether every edge keeps the facts. Leave the facts out.",
                code="unit.facts",
            )
        labels = graph.components()
        first = np.unique(labels, return_index=True)[1]
        rows = self.records.system.full_rows()[0].tocsc()
        moved = rows - rows[:, first[labels]]
        moved.eliminate_zeros()
        lost = (
            rows[:, np.flatnonzero(labels == graph.component_of(BOTTOM))] if graph.bottom != "none" else None
        )
        return not moved.nnz and (lost is None or not lost.nnz)

    @property
    def members(self) -> int:
        """The most records of a unit."""
        return self.at_most

    @property
    def kind(self) -> str:
        """The column of the unit."""
        return self.column

    @property
    def cap(self) -> int:
        """The most records of a unit in one cell."""
        return self.at_most if self.per_cell is None else self.per_cell

    @property
    def words(self) -> str:
        """How many records of a unit count."""
        cell = "" if self.per_cell is None else f", at most {self.per_cell} in one cell"
        return f"up to {self.at_most} record{'s' * (self.at_most != 1)}{cell}"

    @property
    def step_words(self) -> str:
        """What a step of a unit is."""
        if self.records.graph is None:
            return f"all records of one {self.column} ({self.words}) appear or vanish together"
        return f"each record of one {self.column} ({self.words}) stays or takes such a step"

    @cached_property
    def complete(self) -> bool:
        """Whether the policy graph joins every two cells."""
        graph = self.records.graph
        if graph is None:
            return False
        inner = graph.n_edges - len(graph.bottom_cells)
        return bool(inner == graph.size * (graph.size - 1) // 2)

    @property
    def enforced(self) -> bool:
        """Whether the engine leaves out records beyond the bounds; otherwise data with such a unit are refused.

        Notes
        -----
        Without a graph a unit is there or not. Where all cells are joined, and bottom to all of them, a unit may become any other. Where they are joined without bottom, only the number of its records must
        stay, which ``at_most`` alone keeps. In all other cases what is left out would depend on cells in a way that is no step along edges.
        """
        graph = self.records.graph
        if graph is None:
            return True
        if not self.complete or self.system.sums:
            return False
        return graph.bottom == "all" or (graph.bottom == "none" and self.per_cell is None)

    @cached_property
    def moves_of_records(self) -> Policy:
        """The policy whose moves the records of a unit make: without facts that every move keeps."""
        policy = self.records
        zeros = [fact for fact in policy.constraints if isinstance(fact, StructuralZero)]
        return Policy(policy.domain, policy.graph, zeros, unknown=policy.unknown)

    def refused(self) -> RefusedError:
        """What is said where units are not known."""
        return RefusedError(
            f"this looks at single records, and the policy hides everything of one {self.column} ({self.words}). Ask for a release with pg.release, a sensitivity, an "
            "explanation, a plan or an audit, which know units.",
            code="unit.records",
        )

    def unit_spec(self) -> dict[str, Any]:
        """Plain form of what is beside the policy for records."""
        more = {"per_cell": self.per_cell, "within": self.within}
        return {"column": self.column, "at_most": self.at_most} | {
            key: value for key, value in more.items() if value is not None
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Unit | None:
        """Make it from its plain form; None where that is of another policy.

        Examples
        --------
        >>> unit = Unit(Policy(Domain({"a": 2})), "person", 3)
        >>> Unit.from_spec(unit.to_spec()) == unit, Unit.from_spec({"domain": {"a": 2}})
        (True, None)
        """
        unit = spec.get("unit")
        if unit is None or "column" not in unit:
            return None
        records = Policy.from_spec({key: value for key, value in spec.items() if key != "unit"})
        return cls(records, unit["column"], unit["at_most"], unit.get("per_cell"), unit.get("within"))

    def over(self, policy: Policy) -> Unit:
        """The same unit under another policy for records."""
        return Unit(policy, self.column, self.at_most, self.per_cell, self.within)

    @property
    def larger_words(self) -> str | None:
        """What several units of one larger unit lose together; None where none is named."""
        if self.within is None:
            return None
        return (
            f"a {self.within} of n {self.column}s is hidden at n times epsilon, or n^2 times rho: of 2 at 2 epsilon (4 rho), of 3 at 3 epsilon (9 rho), of 5 at 5 epsilon (25 rho). "
            f"To hide every {self.within} at epsilon, make it the unit."
        )

    def priced(self, loss: Loss) -> dict[str, Any]:
        """What a release says of the unit: its bounds and loss, and those of a larger one by how many units it has."""
        spec = {**self.unit_spec(), "loss": loss.to_json(), "loss_in_other_terms": other_terms(loss)}
        if self.within is None:
            return spec
        several = {str(n): loss.for_group(n) for n in (2, 3, 5)}
        return {
            **spec,
            "loss_of_several": {n: each.to_json() for n, each in several.items()},
            "loss_of_several_in_other_terms": {n: other_terms(each) for n, each in several.items()},
        }

    def check_table(self, table: Any) -> None:
        """Raise when a vector of counts does not fit the domain or the published values."""
        self.system.check(self._table(table))

    def are_neighbours(self, a: Any, b: Any) -> Verdict:
        """Whether two tables of counts differ by what one unit hides, with the reason.

        Raises
        ------
        RefusedError
            When the policy graph has too many edges to look for the changes.
        """
        one, two = self._table(a), self._table(b)
        for table in (one, two):
            try:
                self.system.check(table)
            except ConstraintError as cause:
                return Verdict(False, f"a table breaks the public facts: {cause}")
        change = two - one
        if not change.any():
            return Verdict(False, "the tables are equal")
        if np.abs(change).max() > self.cap:
            return Verdict(False, f"a cell changes by more than {self.cap}, which no unit does")
        up, down = int(np.maximum(change, 0).sum()), int(np.maximum(-change, 0).sum())
        graph = self.records.graph
        if graph is None:
            good = min(up, down) == 0 and max(up, down) <= self.at_most
            return Verdict(good, "one unit appears or vanishes" if good else "no unit has such records")
        if self.complete and graph.bottom in ("all", "none"):
            good = max(up, down) <= self.at_most and (up == down or graph.bottom == "all")
            return Verdict(good, "records of one unit change" if good else "no unit has such records")
        slots = self._slots(one, change)
        good = slots is not None and slots <= self.at_most
        why = f"{slots} records of one unit go along edges" if slots is not None else "edges cannot do that"
        return Verdict(good, why if good or slots is None else f"{why}, and a unit has {self.at_most}")

    def _slots(self, table: Any, change: Any) -> int | None:
        """The fewest records of one unit that make a change, each along an edge: a flow of least cost from cells that lose to cells that gain.

        A record may go to where another one leaves, so that cells are passed on the way; no more leave or enter a cell than a unit may have there, nor
        leave than there are.
        """
        import networkx as nx

        graph = self.records.graph
        if graph is None or graph.n_edges > MOST_EDGES:
            raise RefusedError(
                f"the policy graph has too many edges to look for the changes of one {self.column}: expected at most {MOST_EDGES:,}.",
                code="unit.too-large",
            )
        zeros = set(self.system.zeros.tolist())
        net: Any = nx.DiGraph()
        gone = -int(change.sum())
        net.add_node(("before", BOTTOM), demand=min(0, gone))
        net.add_node(("after", BOTTOM), demand=max(0, gone))
        net.add_edge(("after", BOTTOM), ("before", BOTTOM), weight=0)
        for cell in range(graph.size):
            if cell in zeros:
                continue
            lost = int(change[cell])
            net.add_node(("has", cell), demand=min(0, lost))
            net.add_node(("gets", cell), demand=max(0, lost))
            net.add_edge(("has", cell), ("before", cell), capacity=min(self.cap, int(table[cell])), weight=0)
            net.add_edge(("after", cell), ("gets", cell), capacity=self.cap, weight=0)
            net.add_edge(("gets", cell), ("has", cell), weight=0)
        for u, v in graph.edges():
            if u in zeros or v in zeros:
                continue
            for here, there in ((u, v), (v, u)):
                net.add_edge(("before", here), ("after", there), weight=1)
        try:
            return int(nx.min_cost_flow_cost(net))
        except nx.NetworkXUnfeasible:
            return None


def other_terms(loss: Loss) -> dict[str, str]:
    """What a loss implies in the other kind: rho for an epsilon; for a rho, from which no pure epsilon follows, epsilon with delta.

    Examples
    --------
    >>> import policygraph as pg
    >>> other_terms(pg.Epsilon(1))
    {'kind': 'rho', 'value': '1/2'}
    >>> other_terms(pg.Rho("1/2"))
    {'kind': 'epsilon-delta', 'epsilon': '522153446959/100000000000', 'delta': '1/1000000'}
    """
    if isinstance(loss, Epsilon):
        return loss.to_rho().to_json()
    return loss.to_epsilon_delta(DELTA).to_json()


def steps_between(first: Policy | Grouped, second: Policy | Grouped) -> int | None:
    """The most steps of the second policy between neighbours of the first, over one domain but for two units; None where nothing is proved.

    Notes
    -----
    A unit that vanishes does so under every bound and over every domain, so that one step leads there under each policy for the same unit without a graph. A release for records counts all
    records of a unit, those beyond its bound as well, and may be of data, or of columns, in which nobody looked at the bound: no number of steps is proved.

    Examples
    --------
    >>> records = Policy(Domain({"a": 3}))
    >>> five, two = Unit(records, "person", 5), Unit(records, "person", 2)
    >>> steps_between(five, two), steps_between(records, five), steps_between(five, records)
    (1, 2, None)
    """
    if isinstance(first, Unit) and isinstance(second, Unit):
        # Whatever is counted of a unit, and whatever is left out before: it vanishes, and nothing else changes.
        plain = first.records.graph is None and second.records.graph is None
        return 1 if plain and first.column == second.column and not first.system.sums else None
    if isinstance(first, Families) or isinstance(second, Families) or first.unknown != second.unknown:
        return None
    if isinstance(second, Unit):
        if not isinstance(first, Policy) or not _plain(first) or second.system.constraints:
            return None
        graph = second.records.graph
        if graph is None:
            return 2  # the unit of the record vanishes, and comes back with other records
        return 1 if second.complete and graph.bottom == "all" else None
    if (
        not isinstance(first, Policy)
        or not isinstance(second, Policy)
        or not (_plain(first) and _plain(second))
    ):
        return None
    graphs = [
        each.graph or PolicyGraph(each.domain, Empty(each.domain.size), range(each.domain.size))
        for each in (first, second)
    ]
    return stretch(*graphs)


def _plain(policy: Policy) -> bool:
    """Whether a policy over a table has no public facts, cap or weaker strength."""
    said = (policy.constraints, policy.strength, policy.at_most_records)
    return said == ((), "worst-case", None) and isinstance(policy.domain, Domain)


def any_policy(spec: dict[str, Any]) -> Policy | Families | Unit | LinkedUnit:
    """The policy of a plain form, for records, families or units.

    Examples
    --------
    >>> type(any_policy({"domain": {"a": 2}, "unit": {"column": "person", "at_most": 3}})).__name__
    'Unit'
    """
    unit = spec.get("unit")
    if unit is not None and not any(set(unit) <= keys and needed in unit for needed, keys in FORMS.items()):
        raise InputError(
            f"unit={unit!r}: expected column and at_most, perhaps with per_cell and within, family, perhaps with exactly, or tables, perhaps with totals. "
            "What is not known is not taken for a policy of single records.",
            code="unit.form",
            value=unit,
        )
    made = Families.from_spec(spec) or Unit.from_spec(spec) or LinkedUnit.from_spec(spec)
    return made or Policy.from_spec(spec)
