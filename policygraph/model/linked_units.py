"""A row of one table with all rows of another that belong to it, as one secret. Owns :class:`LinkedUnit`.

The theorems are in ``docs/explanation/proofs/linked-tables.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from policygraph.errors import ConstraintError, InputError, RefusedError
from policygraph.model.grouped import Grouped
from policygraph.model.linked import LinkedTables
from policygraph.model.policy import Policy, Verdict
from policygraph.model.queries.base import fingerprint

__all__ = ["LinkedUnit", "listed_units"]


@dataclass(frozen=True)
class LinkedUnit(Grouped):
    """Everything of one dwelling is hidden, with the persons in it: one unit, one loss, and counts of both tables.

    Parameters
    ----------
    tables
        The two tables and the foreign key between them.
    totals
        How many rows one table, or each, has, where everybody knows it.
    unknown
        ``"error"`` or ``"drop"``: what is done with rows whose values are outside the attributes.

    Notes
    -----
    Without public totals neighbours differ in one unit that is there or not. With public totals they differ in as few units as keep the totals: a minimal exchange.

    Examples
    --------
    A dwelling with up to three persons is in two tables:

    >>> import policygraph as pg
    >>> homes = pg.LinkedTables({
    ...     "dwellings": {"key": "id", "attributes": {"area": ["north", "south"]}},
    ...     "persons": {"in": "dwellings", "foreign_key": "dwelling", "at_most": 3, "attributes": {"age": ["child", "adult"]}},
    ... })
    >>> query = pg.queries.linked(homes, [("dwellings", ["area"]), ("persons", ["area", "age"])])
    >>> unit = LinkedUnit(homes)
    >>> int(pg.sensitivity(query, unit).value), int(pg.sensitivity(query, unit, norm="l2").power)
    (4, 10)
    """

    tables: LinkedTables
    totals: tuple[tuple[str, int], ...]
    records: Policy

    def __init__(
        self, tables: LinkedTables, totals: Mapping[str, int] | None = None, unknown: str = "error"
    ) -> None:
        if not isinstance(tables, LinkedTables):
            raise InputError(f"tables={tables!r}: expected LinkedTables.", code="linked.tables", value=tables)
        if unknown not in ("error", "drop"):
            raise InputError(
                f"unknown={unknown!r}: expected 'error' or 'drop' for linked tables.",
                code="linked.unknown",
                value=unknown,
            )
        given = dict(totals or {})
        for name, value in given.items():
            tables.attributes(name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InputError(
                    f"the total of {name} is {value!r}: expected how many rows that count everybody knows, a whole number >= 0.",
                    code="linked.total",
                    value=value,
                )
        if len(given) == 2 and given[tables.child] > tables.at_most * given[tables.parent]:
            raise InputError(
                f"{given[tables.child]:,} {tables.child} in {given[tables.parent]:,} {tables.parent}: expected at most {tables.at_most} that count in each.",
                code="linked.total",
                value=given,
            )
        object.__setattr__(self, "tables", tables)
        object.__setattr__(
            self,
            "totals",
            tuple((name, given[name]) for name in (tables.parent, tables.child) if name in given),
        )
        object.__setattr__(self, "records", Policy(tables.domain, unknown=unknown))

    @property
    def members(self) -> int:
        """The most rows of a unit, of both tables."""
        return 1 + int(self.tables.at_most)

    @property
    def kind(self) -> str:
        """The table that the unit is a row of."""
        return self.tables.parent

    @property
    def known(self) -> frozenset[str]:
        """The tables whose number of rows is public."""
        return frozenset(name for name, _ in self.totals)

    @property
    def words(self) -> str:
        """What a unit is."""
        tables = self.tables
        return f"one row of {tables.parent} with up to {tables.at_most} rows of {tables.child}"

    @property
    def step_words(self) -> str:
        """What a step of a unit is."""
        if not self.totals:
            return f"{self.words} appears or vanishes as a whole"
        known = " and ".join(f"the number of {name}" for name, _ in self.totals)
        return f"rows of {self.tables.parent}, each with its {self.tables.child}, are exchanged, as few as keep {known}"

    def refused(self) -> RefusedError:
        """What is said where linked tables are not known."""
        return RefusedError(
            f"this looks at single records, and the policy hides {self.words}. Independent noise on every answer knows linked tables: ask pg.release for pg.queries.linked(...) without a "
            "mechanism, or with pg.Laplace() or pg.Gaussian(); and pg.sensitivity, pg.explain, pg.plan and pg.audit.",
            code="linked.records",
        )

    @cached_property
    def fingerprint(self) -> str:
        """Stable name of the policy, with the rule for unknown values and the order of the attributes, in which cells are numbered."""
        rule = {} if self.unknown == "error" else {"unknown": self.unknown}
        return fingerprint({"unit": self.unit_spec(), "order": self.tables.order(), **rule})

    def unit_spec(self) -> dict[str, Any]:
        """Plain form of what is beside the policy for records."""
        return {"tables": self.tables.to_spec()} | ({"totals": dict(self.totals)} if self.totals else {})

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> LinkedUnit | None:
        """Make it from its plain form; None where that is of another policy."""
        unit = spec.get("unit")
        if unit is None or "tables" not in unit:
            return None
        made = cls(
            LinkedTables.from_spec(unit["tables"]),
            unit.get("totals"),
            spec.get("data", {}).get("unknown", "error"),
        )
        if made.records.to_spec() != {key: value for key, value in spec.items() if key != "unit"}:
            raise InputError(
                "the domain, or what is beside it, does not follow from the linked tables: expected the plain form as LinkedUnit.to_spec wrote it.",
                code="linked.tables",
            )
        return made

    def over(self, policy: Policy) -> LinkedUnit:
        """Refused: what a record can be follows from the tables."""
        raise self.refused()

    def check_table(self, table: Any) -> None:
        """Raise when counts cannot be those of units, or have other totals than the public ones."""
        flat, tables = self._table(table), self.tables
        own = flat[: tables.rows].reshape(tables.of_parent.size, tables.at_most + 1)
        inner = flat[tables.rows :].reshape(tables.of_parent.size, tables.of_child.size)
        if not np.array_equal(own @ np.arange(tables.at_most + 1), inner.sum(axis=1)):
            raise ConstraintError(
                f"the {tables.child} are not as many as the {tables.parent} say: expected in every cell of {', '.join(tables.of_parent.names)} the sum of their numbers.",
                code="linked.counts",
            )
        sizes = {tables.parent: int(own.sum()), tables.child: int(inner.sum())}
        for name, value in self.totals:
            if sizes[name] != value:
                raise ConstraintError(
                    f"the number of {name} that count is not the public one, {value:,}: expected data with this total.",
                    code="linked.total",
                )

    def are_neighbours(self, a: Any, b: Any) -> Verdict:
        """Whether two tables of counts differ by what the policy hides, with the reason.

        Raises
        ------
        RefusedError
            Where the number of rows of the second table is public: which exchanges are minimal is not decided.
        """
        tables = self.tables
        if tables.child in self.known:
            raise RefusedError(
                f"whether an exchange of {tables.parent} that keeps the number of {tables.child} is minimal is not decided. Ask for the sensitivity, which is proved.",
                code="linked.undecided",
            )
        for table in (a, b):
            try:
                self.check_table(table)
            except ConstraintError as cause:
                return Verdict(False, f"a table is not one of this policy: {cause}")
        change = self._table(b) - self._table(a)
        if not change.any():
            return Verdict(False, "the tables are equal")
        outer, inner = change[: tables.rows], change[tables.rows :]
        gone, come = int(np.maximum(-outer, 0).sum()), int(np.maximum(outer, 0).sum())
        if not self.totals:
            # Counts of units agree, so that one row more brings all of its own rows, and no others change.
            alone = gone + come == 1 and bool(np.all(inner >= 0) if come else np.all(inner <= 0))
            return Verdict(
                alone, "one unit appears or vanishes" if alone else "no single unit makes this difference"
            )
        good = gone <= 1 and come <= 1 and self._exchanged(outer, inner, self._table(a))
        return Verdict(
            good,
            "one unit is in the place of another"
            if good
            else "no exchange of two units makes this difference",
        )

    def _exchanged(self, outer: Any, inner: Any, before: Any) -> bool:
        tables = self.tables
        by_group = inner.reshape(tables.of_parent.size, tables.of_child.size)
        lost = np.maximum(-by_group, 0).sum(axis=1)
        won = np.maximum(by_group, 0).sum(axis=1)
        left = [int(cell) for cell in np.flatnonzero(outer < 0)]
        if not left:
            # The same kind of row is there with other rows of its own: one that has so many must be there.
            groups = np.flatnonzero(lost + won)
            if len(groups) != 1:
                return False
            own = before[: tables.rows].reshape(tables.of_parent.size, tables.at_most + 1)[groups[0]]
            return bool(own[int(lost[groups[0]]) :].any())
        [entered] = [int(cell) for cell in np.flatnonzero(outer > 0)]
        (here, many), (there, more) = (divmod(cell, tables.at_most + 1) for cell in (left[0], entered))
        allowed_lost, allowed_won = np.zeros_like(lost), np.zeros_like(won)
        allowed_lost[here], allowed_won[there] = many, more
        return bool(np.all(lost <= allowed_lost) and np.all(won <= allowed_won))


def listed_units(policy: LinkedUnit, most: int) -> list[dict[int, int]]:
    """Up to so many units with all of their rows in one cell, as counts: those with most rows first. The worst change is among all of them.

    Examples
    --------
    >>> homes = LinkedTables({
    ...     "dwellings": {"key": "id", "attributes": {"area": 2}},
    ...     "persons": {"in": "dwellings", "foreign_key": "dwelling", "at_most": 1, "attributes": {"age": 2}},
    ... })
    >>> listed_units(LinkedUnit(homes), 3)
    [{1: 1, 4: 1}, {1: 1, 5: 1}, {3: 1, 6: 1}]
    """
    tables = policy.tables
    out: list[dict[int, int]] = []
    for many in range(tables.at_most, -1, -1):
        for group in range(tables.of_parent.size):
            for own in range(tables.of_child.size if many else 1):
                if len(out) == most:
                    return out
                inner = {int(tables.cell_of_child(group, own)): many} if many else {}
                out.append({int(tables.cell_of_parent(group, many)): 1, **inner})
    return out
