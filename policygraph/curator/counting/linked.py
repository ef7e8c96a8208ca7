"""Rows of two linked tables, counted together. Owns :func:`count_linked` and :class:`LinkedSources`.

Every row of the second table belongs to the row of the first that its foreign key names; one that points nowhere is an error, and so is a key that two rows share. Of each
unit so many rows of the second table are kept, by the order of ``counting/units.py``, which depends on the unit's own rows and on a key that knows no data.
``docs/explanation/proofs/linked-tables.md`` says why that suffices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from policygraph.curator.counting import sql
from policygraph.curator.counting.opening import open_source
from policygraph.curator.counting.source import Source
from policygraph.curator.counting.tables import Tally, find_columns
from policygraph.curator.counting.units import Bounded, unit_column, words_of
from policygraph.curator.counting.values import plain
from policygraph.curator.histogram import Histogram, Ints, digest
from policygraph.errors import DataError, InputError
from policygraph.model.domain import Domain
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.policy import Policy
from policygraph.model.units import Unit


@dataclass(frozen=True)
class LinkedSources:
    """The two tables, opened."""

    parent: Source
    child: Source

    @classmethod
    def of(cls, data: Any, policy: LinkedUnit, engine: Any = None) -> LinkedSources:
        """Open the data of both tables, given by name.

        Raises
        ------
        InputError
            For anything but one source for each table.
        """
        if isinstance(data, LinkedSources):
            return data
        tables = policy.tables
        if not isinstance(data, Mapping) or set(data) != {tables.parent, tables.child}:
            given = (
                f"data for {', '.join(map(repr, data))}" if isinstance(data, Mapping) else type(data).__name__
            )
            raise InputError(
                f"{given} under linked tables: expected the records of each by name, {{{tables.parent!r}: ..., {tables.child!r}: ...}}, as files or frames. Nothing was charged.",
                code="linked.data",
            )
        return cls(open_source(data[tables.parent], engine), open_source(data[tables.child], engine))

    def fingerprint(self) -> str:
        """Name the two tables together by their content."""
        return digest("linked tables", self.parent.fingerprint(), self.child.fingerprint())

    def details(self) -> list[str]:
        """What the records depend on beside :meth:`fingerprint`."""
        return ["linked tables", *self.parent.details(), "and", *self.child.details()]


def count_linked(
    data: Any, policy: LinkedUnit, columns: Mapping[str, str] | None = None, engine: Any = None
) -> Histogram:
    """Count the rows of two linked tables into their cells, of each unit at most so many of the second.

    Raises
    ------
    DataError
        For columns that are not there or have no value in some row, keys that two rows share, foreign keys that point nowhere, and rows that do not fit.

    Examples
    --------
    >>> import pyarrow
    >>> from policygraph.model.linked import LinkedTables
    >>> homes = LinkedTables({
    ...     "dwellings": {"key": "id", "attributes": {"area": 2}},
    ...     "persons": {"in": "dwellings", "foreign_key": "dwelling", "at_most": 2, "attributes": {"age": 2}},
    ... })
    >>> counts = count_linked({
    ...     "dwellings": pyarrow.table({"id": [7, 8], "area": [0, 1]}),
    ...     "persons": pyarrow.table({"dwelling": [7, 7, 7], "age": [1, 1, 1]}),
    ... }, LinkedUnit(homes))
    >>> counts.vector().tolist()
    [0, 0, 1, 1, 0, 0, 0, 2, 0, 0]
    """
    import pyarrow
    import pyarrow.compute as pc

    from policygraph.curator.counting._compiled_units import kept

    tables = policy.tables
    sources = LinkedSources.of(data, policy, engine)
    fingerprint = sources.fingerprint()
    keys, above, lost_above = _read(sources.parent, tables.of_parent, tables.key, policy, columns)
    whose, below, lost_below = _read(sources.child, tables.of_child, tables.foreign_key, policy, columns)
    if pc.count_distinct(keys).as_py() != len(keys):
        raise DataError(
            f"{sources.parent.label}: two rows have the same value in the key {tables.key!r}: expected one row for each. Nothing was charged.",
            code="linked.key",
            value=tables.key,
        )
    found = pc.index_in(whose, value_set=keys)
    if found.null_count:
        raise DataError(
            f"{sources.child.label}: the foreign key {tables.foreign_key!r} points nowhere in {found.null_count:,} row{'s' * (found.null_count != 1)}: expected a value of {tables.key!r} of {tables.parent} in each. Nothing was charged.",
            code="linked.foreign-key",
            value=tables.foreign_key,
        )
    unit = found.to_numpy(zero_copy_only=False).astype(np.int64)
    fits = below >= 0
    if len(above):
        fits &= above[unit] >= 0
    unit, below = unit[fits], below[fits]
    many = np.bincount(unit, minlength=len(above)).astype(np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(many)])
    records = below[np.argsort(unit, kind="stable")]
    several = np.flatnonzero(many > tables.at_most)
    key = hashlib.sha256(f"policygraph linked tables {policy.fingerprint}".encode()).hexdigest()
    words = words_of(key, keys.take(pyarrow.array(several)).to_pylist())
    if len(records):
        records = kept(records, starts, words, tables.at_most, tables.at_most)
    left = np.minimum(many, tables.at_most)
    good = above >= 0
    whole = np.zeros(policy.domain.size, dtype=np.int64)
    np.add.at(whole, tables.cell_of_parent(above[good], left[good]), 1)
    np.add.at(whole, tables.cell_of_child(np.repeat(above, left), records), 1)
    return Histogram.checked(policy.domain, whole, fingerprint, lost_above + lost_below)


def _read(
    source: Source, domain: Domain, column: str, policy: LinkedUnit, columns: Mapping[str, str] | None
) -> tuple[Any, Ints, int]:
    """The key of each row as text, its cell or -1, and how many have none."""
    import pyarrow

    named = {name: at for name, at in (columns or {}).items() if name in domain.names}
    found = find_columns(source, domain, named)
    tally = Tally(source, domain, found, {})
    _, kind = at = unit_column(source, column, found)
    value, kind = plain(sql.name(at[0]), kind)
    if source.textual:
        value = f"nullif({value}, '')"
    bounded = Bounded(tally, Unit(Policy(domain), column, 1), value, kind)
    bounded.check_present()
    statement = f"SELECT {tally.dialect.text('u', kind)} AS u, cell FROM ({bounded.cells()}) AS t"
    if tally.dialect.embedded:
        engine: Any = source.engine
        batches = source.explained(lambda: list(engine.arrow(statement)))
        keys = pyarrow.chunked_array([batch.columns[0] for batch in batches], type=pyarrow.string())
        cells = [batch.columns[1].fill_null(-1).to_numpy(zero_copy_only=False) for batch in batches]
        at_cell = np.concatenate([np.zeros(0, dtype=np.int64), *cells]).astype(np.int64)
    else:
        rows = source.rows_of(statement)
        keys = pyarrow.chunked_array([pyarrow.array([str(u) for u, _ in rows], type=pyarrow.string())])
        at_cell = np.array([-1 if cell is None else int(cell) for _, cell in rows], dtype=np.int64)
    tally.check_none_lost(len(at_cell))
    missed = int((at_cell < 0).sum())
    if missed and policy.unknown != "drop":
        raise tally.misfit(len(at_cell), missed)
    return keys.combine_chunks(), at_cell, missed
