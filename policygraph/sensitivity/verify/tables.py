"""Data sets of a certificate by labels: what they hold, their public sums, their answers; and what a verification reports.

Small and literal. Used by the verification of certificates; shares no code with the search. Of ``model`` it uses the definitions only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from policygraph.model.constraints.networks import Degrees, KnownEdges
from policygraph.model.constraints.sums import Sums
from policygraph.model.constraints.tables import Cells, Cuboid, LinearCount, StructuralZero, Total
from policygraph.model.domain import Domain, Network
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.model.queries.networks import AdjacencyQuery, MixingQuery
from policygraph.model.queries.products import ProductQuery

Table = dict[int, int]


@dataclass(frozen=True)
class CheckResult:
    """One thing that was looked at: True passed, False failed, None not decided here."""

    name: str
    passed: bool | None
    text: str


@dataclass(frozen=True)
class Verification:
    """The report on a certificate: it holds, it fails, or something was not decided.

    Examples
    --------
    >>> report = Verification((CheckResult("witness", True, ""), CheckResult("bound", None, "")))
    >>> report.ok, report.failed, report.complete
    (False, False, False)
    """

    checks: tuple[CheckResult, ...]

    @property
    def ok(self) -> bool:
        """Whether everything was decided and holds. What was not decided is not ok."""
        return all(check.passed is True for check in self.checks)

    @property
    def failed(self) -> bool:
        """Whether something was found to be wrong."""
        return any(check.passed is False for check in self.checks)

    @property
    def complete(self) -> bool:
        """Whether everything was decided, the bound included."""
        return all(check.passed is not None for check in self.checks)

    def __bool__(self) -> bool:
        return self.ok

    def beside(self, others: list[dict[str, Any]]) -> Verification:
        """The report together with that of ``policygraph.check``: what either found wrong is wrong, and what either decided is decided.

        Examples
        --------
        >>> mine = Verification((CheckResult("bound", True, "listed"),))
        >>> mine.beside([{"name": "bound", "passed": None, "text": "no proof"}]).ok
        True
        >>> mine.beside([{"name": "bound", "passed": False, "text": "too small"}]).failed
        True
        """
        mine = {check.name: check for check in self.checks}
        made = []
        for other in others:
            known = mine.pop(other["name"], None)
            passed, text = other["passed"], other["text"]
            if (
                known is not None
                and passed is not False
                and known.passed is not None
                and known.passed is not passed
            ):
                passed, text = known.passed, known.text
            if other["name"] == "document" and passed is None:
                continue  # what the checker does not know yet is decided by the rest
            made.append(CheckResult(other["name"], passed, text))
        return Verification((*made, *mine.values()))

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "holds": self.ok,
            "ok": self.ok,
            "failed": self.failed,
            "complete": self.complete,
            "checks": [{"name": c.name, "passed": c.passed, "text": c.text} for c in self.checks],
        }

    def __str__(self) -> str:
        mark = {True: "passed", False: "FAILED", None: "open  "}
        lines = [f"{mark[c.passed]}  {c.name}: {c.text}" for c in self.checks]
        if self.failed:
            end = "the certificate does NOT hold"
        elif self.ok:
            end = "the certificate holds"
        else:
            open_ = " and ".join(c.name for c in self.checks if c.passed is None)
            end = f"nothing failed, but not everything could be checked again here: {open_} undecided"
        return "\n".join([*lines, end])


def check_tables(policy: Policy, before: Table, after: Table) -> CheckResult:
    """Whether two data sets are over the domain, with counts that a cell can hold."""
    top = policy.domain.capacity
    for table in (before, after):
        for cell, amount in table.items():
            if not 0 <= cell < policy.domain.size or amount < 0 or (top is not None and amount > top):
                return CheckResult("tables", False, f"cell {cell} cannot hold {amount}")
    return CheckResult("tables", True, "both data sets are over the domain, with counts that a cell can hold")


def public_sums(fact: Any, policy: Policy, table: Table) -> dict[Any, int]:
    """The public sums of a data set, keyed by what they are sums of."""
    domain = policy.domain
    out: dict[Any, int] = {}

    def add(key: Any, amount: int) -> None:
        out[key] = out.get(key, 0) + amount

    for cell, amount in table.items():
        labels = domain.cell(cell)
        if isinstance(fact, Total):
            add("total", amount)
        elif isinstance(fact, Degrees) and isinstance(domain, Network):
            known = set(domain.nodes) if isinstance(fact.nodes, str) else set(fact.nodes)
            ends = {"both": labels, "out": labels[:1], "in": labels[1:]}[fact.side]
            for end in ends:
                if end in known:
                    add(end, amount)
        elif isinstance(fact, KnownEdges) and fact.is_public(domain, labels):
            add(labels, amount)
        elif isinstance(domain, Domain):
            record = dict(zip(domain.names, labels, strict=True))
            if isinstance(fact, Cuboid):
                add(tuple(record[name] for name in sorted(fact.names, key=domain.axis)), amount)
            elif isinstance(fact, Cells):
                place = tuple(record[name] for name in fact.of)
                if place in fact.cells:
                    add(place, amount)
        if isinstance(fact, LinearCount):
            add("count", amount * sum(c for where, c in fact.terms if _matches(domain, labels, where)))
        elif isinstance(fact, Sums):
            column = fact.matrix[:, [cell]].tocoo()
            for row, times in zip(column.row.tolist(), column.data.tolist(), strict=True):
                add(row, times * amount)
        elif isinstance(fact, StructuralZero) and any(
            _matches(domain, labels, where) for where in fact.cells
        ):
            add("zero", amount)
    return {key: value for key, value in out.items() if value}


def _matches(domain: Any, labels: tuple[Any, ...], where: tuple[str, Any]) -> bool:
    kind, what = where
    if kind == "cell":
        same = tuple(labels) == tuple(what)
        if isinstance(domain, Network) and not domain.directed:
            return same or tuple(labels) == tuple(reversed(what))
        return same
    record = dict(zip(domain.names, labels, strict=True))
    return all(record[name] in allowed for name, allowed in what)


def check_facts(policy: Policy, before: Table, after: Table) -> CheckResult:
    """Whether two data sets have the same public sums, the published ones where there are any."""
    for fact in policy.constraints:
        one, two = public_sums(fact, policy, before), public_sums(fact, policy, after)
        if one != two:
            return CheckResult("public facts", False, f"{fact.to_spec()} differs between the two data sets")
        if isinstance(fact, StructuralZero) and one:
            return CheckResult("public facts", False, "a structural zero is filled")
        published = None if isinstance(fact, StructuralZero) else fact.values(policy.domain)
        if published is not None:
            keys = list(_keys(fact, policy))
            if any(one.get(key, 0) != value for key, value in zip(keys, published, strict=True)):
                return CheckResult(
                    "public facts", False, f"{fact.to_spec()} does not have the published values"
                )
    return CheckResult(
        "public facts", True, f"all {len(policy.constraints)} public facts are the same in both"
    )


def _keys(fact: Any, policy: Policy) -> Iterator[Any]:
    domain = policy.domain
    if isinstance(fact, Total):
        yield "total"
    elif isinstance(fact, LinearCount):
        yield "count"
    elif isinstance(fact, Sums):
        yield from range(fact.n_rows(domain))
    elif isinstance(fact, Cells):
        yield from fact.cells
    elif isinstance(fact, Degrees) and isinstance(domain, Network):
        yield from domain.nodes if isinstance(fact.nodes, str) else fact.nodes
    elif isinstance(fact, Cuboid) and isinstance(domain, Domain):
        yield from product(*(domain.labels(name) for name in sorted(fact.names, key=domain.axis)))


def answer(query: Query, table: Table) -> dict[Any, int]:
    """Integer answers of a data set, keyed by row; rows that are 0 are left out."""
    out: dict[Any, int] = {}
    domain = query.domain
    for cell, amount in table.items():
        labels = domain.cell(cell)
        rows: list[tuple[Any, int]] = []
        if isinstance(query, CuboidQuery) and isinstance(domain, Domain):
            record = dict(zip(domain.names, labels, strict=True))
            for names, weight in zip(query.sets, query.weights, strict=True):
                rows.append(((names, tuple(record[name] for name in names)), weight))
        elif isinstance(query, ProductQuery) and isinstance(domain, Domain):
            record = dict(zip(domain.names, labels, strict=True))
            for names, weight in zip(query.sets, query.weights, strict=True):
                rows += _asked(query, domain, record, names, weight)
        elif isinstance(query, AdjacencyQuery):
            rows.append((labels, 1))
        elif isinstance(query, MixingQuery) and isinstance(domain, Network):
            groups = [query.groups[domain.code(node)] for node in labels]
            rows.append((tuple(groups if domain.directed else sorted(groups, key=str)), 1))
        elif isinstance(query, MatrixQuery):
            column = query.matrix[:, [cell]].tocoo()
            rows.extend((int(r), int(x)) for r, x in zip(column.row, column.data, strict=True))
        else:
            column = query.columns([cell]).tocoo()
            rows.extend((int(r), int(x)) for r, x in zip(column.row, column.data, strict=True))
        for row, entry in rows:
            out[row] = out.get(row, 0) + entry * amount
    return {row: value for row, value in out.items() if value}


def _asked(
    query: ProductQuery, domain: Domain, record: dict[str, Any], names: tuple[str, ...], weight: int
) -> list[tuple[Any, int]]:
    """The rows of one table that a record is in, attribute by attribute: its value, all prefixes and ranges around it, rows of a matrix."""
    made: list[tuple[Any, int]] = [((names,), weight)]
    for name in names:
        labels = list(domain.labels(name))
        at, how = labels.index(record[name]), query.asked.get(name, "values")
        here: list[tuple[Any, int]]
        if how == "values":
            here = [(at, 1)]
        elif how == "prefix":
            here = [(last, 1) for last in range(at, len(labels))]
        elif how == "ranges":
            here = [((first, last), 1) for first in range(at + 1) for last in range(at, len(labels))]
        else:
            here = [(row, entries[at]) for row, entries in enumerate(how) if entries[at]]
        made = [((*key, place), entry * times) for key, entry in made for place, times in here]
    return made


def power(query: Query, change: Table, norm: str) -> Fraction:
    """L1 norm, or squared L2 norm, of the answers to a change."""
    values = answer(query, change).values()
    if norm == "l1":
        return query.unit * sum(abs(x) for x in values)
    return query.unit**2 * sum(x * x for x in values)


def difference(before: Table, after: Table) -> Table:
    """The change from one data set to the other; cells that stay are left out."""
    out = dict(after)
    for cell, amount in before.items():
        out[cell] = out.get(cell, 0) - amount
    return {cell: amount for cell, amount in out.items() if amount}


def is_zero(fact: Any, policy: Policy, cell: int) -> bool:
    """Whether a fact says that a cell is structurally empty."""
    return isinstance(fact, StructuralZero) and bool(public_sums(fact, policy, {cell: 1}))
