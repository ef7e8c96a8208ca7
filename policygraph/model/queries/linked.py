"""Counts of both of two linked tables. Owns :class:`LinkedQuery` and :func:`linked`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.model.linked import LinkedTables
from policygraph.model.queries.base import Ints, Part, Query, fingerprint, whole_weights


class LinkedQuery(Query):
    """Tables of counts of the rows of two linked tables.

    Parameters
    ----------
    tables
        The tables and the key between them.
    asked
        For each published table whose rows are counted, and by which attributes. Rows of the first table can also be counted by the name of the second, which is
        how many of its rows each has.
    weights
        A positive integer for each: weight 2 means half the noise of weight 1.

    Examples
    --------
    >>> homes = LinkedTables({
    ...     "dwellings": {"key": "id", "attributes": {"area": ["north", "south"]}},
    ...     "persons": {"in": "dwellings", "foreign_key": "dwelling", "at_most": 2, "attributes": {"age": ["child", "adult"]}},
    ... })
    >>> query = LinkedQuery(homes, [("dwellings", ["persons"]), ("persons", ["area", "age"])])
    >>> [part.name for part in query.parts], query.height
    (['dwellings by persons', 'persons by area x age'], 7)
    """

    def __init__(
        self,
        tables: LinkedTables,
        asked: Iterable[tuple[str, Sequence[str]]],
        weights: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(tables, LinkedTables):
            raise InputError(f"tables={tables!r}: expected LinkedTables.", code="linked.tables", value=tables)
        super().__init__(tables.domain)
        self.tables = tables
        self.asked = tuple((str(table), self._names(table, names)) for table, names in asked)
        if not self.asked:
            raise InputError("no tables: expected at least one.", code="query.empty")
        if len(set(self.asked)) < len(self.asked):
            raise InputError(
                f"{list(self.asked)}: a table is asked for twice: expected each once.",
                code="linked.twice",
                value=self.asked,
            )
        self.weights = whole_weights([1] * len(self.asked) if weights is None else weights, len(self.asked))
        self._parts, self._rows = [], []
        for (table, names), weight in zip(self.asked, self.weights, strict=True):
            shape = [len(tables.labels(name)) for name in names]
            name = f"{table} by {' x '.join(names)}" if names else table
            self._parts.append(Part(name, names, prod(shape), weight))
            codes = tables.codes(table)
            first = next(iter(codes.values()))
            rows = np.zeros(len(first), dtype=np.int64)
            for attribute, size in zip(names, shape, strict=True):
                rows = rows * size + codes[attribute]
            self._rows.append(rows)

    def _names(self, table: str, names: Sequence[str]) -> tuple[str, ...]:
        known = self.tables.attributes(table)
        given = tuple(names) if not isinstance(names, str) else (names,)
        strange = [name for name in given if name not in known]
        if strange or len(set(given)) < len(given):
            raise InputError(
                f"{table} by {list(given)}: expected some of {', '.join(known)}, each once.",
                code="linked.attribute",
                value=given,
            )
        return tuple(name for name in known if name in given)

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(self._parts)

    def part_labels(self, part: int) -> list[Any]:
        names = self.asked[part][1]
        shape = [len(self.tables.labels(name)) for name in names]
        codes = np.unravel_index(np.arange(self._parts[part].height), shape) if names else ()
        out: list[Any] = []
        for name, own in zip(names, codes, strict=True):
            labels = self.tables.labels(name)
            out.append(own if isinstance(labels, range) else np.array(labels, dtype=object)[own])
        return out

    @property
    def largest_entry(self) -> int:
        return max(self.weights)

    def answer(self, table: Any) -> Ints:
        counts = np.asarray(table, dtype=np.int64).ravel()
        self.check_fits(counts)
        blocks = []
        for (name, _), part, rows in zip(self.asked, self._parts, self._rows, strict=True):
            own = counts[: self.tables.rows] if name == self.tables.parent else counts[self.tables.rows :]
            block = np.zeros(part.height, dtype=np.int64)
            np.add.at(block, rows, own)
            blocks.append(block * part.weight)
        return np.concatenate(blocks)

    def columns(self, cells: Any) -> Any:
        from scipy import sparse

        at = np.asarray(cells, dtype=np.int64)
        rows, columns, entries, begin = [], [], [], 0
        for (name, _), part, own in zip(self.asked, self._parts, self._rows, strict=True):
            first = name == self.tables.parent
            here = np.flatnonzero((at < self.tables.rows) == first)
            rows.append(begin + own[at[here] - (0 if first else self.tables.rows)])
            columns.append(here)
            entries.append(np.full(len(here), part.weight, dtype=np.int64))
            begin += part.height
        made = (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns)))
        return sparse.csc_matrix(made, shape=(self.height, len(at)), dtype=np.int64)

    @property
    def fingerprint(self) -> str:
        """Stable name of the query; the same attributes in another order are another query, since its cells are numbered otherwise."""
        return fingerprint({"query": self.to_spec(), "order": self.tables.order()})

    def to_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "linked": self.tables.to_spec(),
            "asked": [[table, list(names)] for table, names in self.asked],
        }
        return spec if set(self.weights) == {1} else {**spec, "weights": list(self.weights)}

    def __repr__(self) -> str:
        return f"LinkedQuery({', '.join(part.name for part in self._parts)})"


def linked(
    tables: LinkedTables, asked: Iterable[tuple[str, Sequence[str]]], weights: Sequence[int] | None = None
) -> LinkedQuery:
    """Counts of the rows of two linked tables; see :class:`LinkedQuery`."""
    return LinkedQuery(tables, asked, weights)
