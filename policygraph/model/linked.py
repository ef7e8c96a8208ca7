"""Two tables that a foreign key joins, such as dwellings and the persons in them. Owns :class:`LinkedTables`.

The key is declared, and never guessed from the data. One domain has the cells of both tables: a row of the first with how many rows of the second it has, and a
row of the second with the attributes of the row that it belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.model.domain import Domain, Label

__all__ = ["LinkedTables"]

Ints = npt.NDArray[np.int64]
MOST_CELLS = 1_000_000
"""Most cells of both tables together: their labels are held."""
OF_PARENT = {"key", "attributes"}
OF_CHILD = {"in", "foreign_key", "at_most", "attributes"}


def _wrong(message: str, value: Any) -> InputError:
    return InputError(message, code="linked.tables", value=value)


class LinkedTables:
    """Two tables and the foreign key between them.

    Parameters
    ----------
    tables
        By name, as in a policy file: ``{"key": ..., "attributes": ...}`` for the table that is pointed at, and
        ``{"in": ..., "foreign_key": ..., "at_most": ..., "attributes": ...}`` for the one whose rows belong to it. ``key`` and ``foreign_key`` are columns of
        the data, and ``at_most`` is how many rows of the second table count for one row of the first.

    Examples
    --------
    >>> homes = LinkedTables({
    ...     "dwellings": {"key": "id", "attributes": {"area": ["north", "south"]}},
    ...     "persons": {"in": "dwellings", "foreign_key": "dwelling", "at_most": 3, "attributes": {"age": ["child", "adult"]}},
    ... })
    >>> homes.parent, homes.child, homes.attributes("dwellings"), homes.attributes("persons")
    ('dwellings', 'persons', ('area', 'persons'), ('area', 'age'))
    >>> homes.domain.size
    12
    """

    def __init__(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        given = tables if isinstance(tables, Mapping) else {}
        inner = [name for name, table in given.items() if isinstance(table, Mapping) and "in" in table]
        outer = [name for name in given if name not in inner]
        if len(given) != 2 or len(inner) != 1 or not all(isinstance(t, Mapping) for t in given.values()):
            raise _wrong(
                f"tables={list(given) if given else tables!r}: expected two tables, one of which says in = the name of the other, whose rows its own belong to.",
                tables,
            )
        self.parent, self.child = outer[0], inner[0]
        above, below = given[self.parent], given[self.child]
        for name, table, keys in ((self.parent, above, OF_PARENT), (self.child, below, OF_CHILD)):
            if not isinstance(name, str) or not name or set(table) != keys:
                raise _wrong(
                    f"the table {name!r} has {', '.join(map(str, table)) or 'nothing'}: expected {', '.join(sorted(keys))}.",
                    dict(table),
                )
        if below["in"] != self.parent:
            raise _wrong(
                f"in = {below['in']!r} of the table {self.child!r} points nowhere: expected {self.parent!r}, the name of the other table.",
                below["in"],
            )
        self.key, self.foreign_key, self.at_most = above["key"], below["foreign_key"], below["at_most"]
        for name, column in (("key", self.key), ("foreign_key", self.foreign_key)):
            if not isinstance(column, str) or not column or "\0" in column:
                raise _wrong(f"{name} = {column!r}: expected the name of a column of the data.", column)
        if isinstance(self.at_most, bool) or not isinstance(self.at_most, int) or self.at_most < 1:
            raise _wrong(
                f"at_most = {self.at_most!r}: expected how many {self.child} of one row of {self.parent} count, a whole number >= 1.",
                self.at_most,
            )
        self.of_parent, self.of_child = Domain(above["attributes"]), Domain(below["attributes"])
        self._check_names()
        size = self.of_parent.size * (self.at_most + 1 + self.of_child.size)
        if size > MOST_CELLS:
            raise _wrong(
                f"the two tables have {size:,} cells together: expected at most {MOST_CELLS:,}. Leave out attributes, or lower at_most.",
                size,
            )

    def _check_names(self) -> None:
        for column, domain, table in (
            (self.key, self.of_parent, self.parent),
            (self.foreign_key, self.of_child, self.child),
        ):
            if column in domain.names:
                raise InputError(
                    f"the column {column!r} of the table {table!r} is also an attribute: expected a column that says whose row it is, and is not counted.",
                    code="unit.column",
                    value=column,
                )
        named = [*self.of_parent.names, *self.of_child.names, self.child]
        twice = sorted({name for name in named if named.count(name) > 1})
        if twice:
            raise _wrong(
                f"{twice[0]!r} names two things: expected another name for each attribute of either table, and none called {self.child!r}, which is how many {self.child} a row of {self.parent} has.",
                twice[0],
            )

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> LinkedTables:
        """Make them from their plain form (the inverse of :meth:`to_spec`)."""
        return cls(spec)

    def to_spec(self) -> dict[str, Any]:
        """Plain form for policy files and fingerprints."""
        return {
            self.parent: {"key": self.key, "attributes": self.of_parent.to_spec()},
            self.child: {
                "in": self.parent,
                "foreign_key": self.foreign_key,
                "at_most": self.at_most,
                "attributes": self.of_child.to_spec(),
            },
        }

    def order(self) -> list[list[str]]:
        """The attributes of both tables in their order, in which cells are numbered; plain forms are known without it."""
        return [list(self.of_parent.names), list(self.of_child.names)]

    def attributes(self, table: str) -> tuple[str, ...]:
        """What a table can be counted by.

        Raises
        ------
        InputError
            For a name that is that of neither table.
        """
        if table == self.parent:
            return (*self.of_parent.names, self.child)
        if table == self.child:
            return (*self.of_parent.names, *self.of_child.names)
        raise InputError(
            f"table {table!r}: expected {self.parent!r} or {self.child!r}.", code="linked.table", value=table
        )

    def labels(self, name: str) -> Sequence[Label]:
        """Labels of an attribute of either table."""
        if name == self.child:
            return range(self.at_most + 1)
        home = self.of_parent if name in self.of_parent.names else self.of_child
        return home.labels(name)

    @property
    def rows(self) -> int:
        """How many cells the first table has; those of the second follow."""
        return int(self.of_parent.size) * (int(self.at_most) + 1)

    def cell_of_parent(self, group: Any, members: Any) -> Any:
        """Cells of rows of the first table: where they are, and how many rows of the second they have."""
        return group * (self.at_most + 1) + members

    def cell_of_child(self, group: Any, own: Any) -> Any:
        """Cells of rows of the second table: where the row that they belong to is, and their own values."""
        return self.rows + group * self.of_child.size + own

    def codes(self, table: str) -> dict[str, Ints]:
        """For each attribute of a table the positions of its values, cell by cell."""
        inner = self.at_most + 1 if table == self.parent else self.of_child.size
        group, own = np.divmod(np.arange(self.of_parent.size * inner, dtype=np.int64), inner)
        out = dict(zip(self.of_parent.names, self.of_parent.codes(group), strict=True))
        if table == self.parent:
            return {**out, self.child: own}
        return {**out, **dict(zip(self.of_child.names, self.of_child.codes(own), strict=True))}

    @cached_property
    def domain(self) -> Domain:
        """The cells of both tables; the label of each is JSON of the table and its values."""
        labels = []
        for table in (self.parent, self.child):
            codes = self.codes(table)
            values = [[self.labels(name)[code] for code in codes[name].tolist()] for name in codes]
            labels += [json.dumps([table, *row], ensure_ascii=False) for row in zip(*values, strict=True)]
        return Domain({"row": labels})

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LinkedTables)
            and (self.of_parent, self.of_child) == (other.of_parent, other.of_child)
            and self.to_spec() == other.to_spec()
        )

    def __hash__(self) -> int:
        return hash((self.parent, self.child, self.of_parent, self.of_child, self.at_most))

    def __repr__(self) -> str:
        return f"LinkedTables({self.parent}: {self.of_parent!r}, {self.child}: {self.of_child!r})"
