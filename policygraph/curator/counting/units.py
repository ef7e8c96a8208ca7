"""Records of units, bounded before they are counted. Owns :func:`count_units`.

Of each unit so many records are kept, by an order that depends on its own records and on a key that knows no data: what is kept of one unit can never
depend on another. Records that a rule for unknown values leaves out are gone before. How many are left out here is told to nobody. ``docs/explanation/proofs/units.md``
says why any such order will do, and why a key that came from the data would not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from policygraph.arrow import to_numpy
from policygraph.curator.counting import sql
from policygraph.curator.counting.opening import open_source
from policygraph.curator.counting.parts import CountedPart, histogram_of
from policygraph.curator.counting.source import TABLE, Source
from policygraph.curator.counting.tables import (
    Tally,
    count_cells,
    find_columns,
    find_measure,
    level_sql,
    no_value,
    position,
    read_rule,
)
from policygraph.curator.counting.values import WHOLE, family, plain
from policygraph.curator.histogram import DENSE, Histogram, Ints, MeasuredCounts, check_sums
from policygraph.errors import DataError, RefusedError
from policygraph.model.domain import Domain
from policygraph.model.measure import Measure
from policygraph.model.units import Unit

PRIME = 2**31 - 1
AT_ONCE = 1 << 24
"""Most records that are held at once; more are read in several passes, each with other units."""
NARROW = WHOLE - {"HUGEINT", "UHUGEINT", "UBIGINT"}
PRINTED = ("VARCHAR", "UUID", "DATE")
TALLIED = 1 << 24
"""Up to so many cells, what is kept is added up in a table."""
MOST = 100_000
"""Most records of one unit in one cell that can be told apart by number."""


def count_units(
    data: Any, policy: Unit, columns: Mapping[str, str] | None = None, engine: Any = None
) -> Histogram:
    """Count the records of a table into cells, of each unit at most so many.

    Parameters
    ----------
    data, columns, engine
        As in :func:`~policygraph.curator.counting.tables.count_cells`.
    policy
        The unit and its bounds.

    Raises
    ------
    DataError
        For a column of the unit that is not there, has no value in some record or is of numbers that need not be whole; for records that do not fit the domain; and
        where the policy graph does not allow records to be left out, for a unit that has too many.

    Examples
    --------
    >>> import pyarrow
    >>> visits = pyarrow.table({"person": [1, 1, 1, 2], "shop": [0, 0, 1, 1]})
    >>> from policygraph.model.policy import Policy
    >>> shops = Unit(Policy(Domain({"shop": 2})), "person", at_most=2, per_cell=1)
    >>> count_units(visits, shops).vector().tolist()
    [1, 2]
    """
    domain = policy.domain
    if not isinstance(domain, Domain) or domain.size >= 1 << 62 or policy.cap > MOST:
        raise RefusedError(
            f"a unit over {domain.size:,} cells with up to {policy.cap:,} records in one of them: expected fewer than 2**62 cells, and at most {MOST:,} records in one. Lower at_most or per_cell.",
            code="unit.too-large",
        )
    unknown = dict(policy.unknown) if isinstance(policy.unknown, tuple) else policy.unknown
    source = open_source(data, engine)
    found = find_columns(source, domain, columns)
    tally = Tally(source, domain, found, read_rule(domain, unknown))
    column, kind = unit_column(source, policy.column, found)
    value, kind = plain(sql.name(column), kind)
    if source.textual:
        value = f"nullif({value}, '')"
    bounded = Bounded(tally, policy, value, kind)
    if not policy.enforced:
        bounded.check_bounds()
        return count_cells(source, domain, unknown=unknown, columns=columns)
    fingerprint = source.fingerprint()
    cells, counts, missed = bounded.here() if tally.dialect.embedded else bounded.there()
    if missed and unknown != "drop":
        raise tally.misfit(bounded.records(), missed)
    rows = np.stack(np.unravel_index(cells, domain.shape), axis=1).astype(np.int64)
    part = CountedPart({}, {"files": [], "tables": [fingerprint]}, rows, counts, None, missed)
    made: Any = histogram_of(part, domain, None, source.label)
    bounded_counts: Histogram = replace(made, fingerprint=fingerprint)
    return bounded_counts


def sum_units(
    data: Any,
    policy: Unit,
    measure: Measure,
    columns: Mapping[str, str] | None = None,
    engine: Any = None,
) -> MeasuredCounts:
    """Count the records of a table into cells and sum a measure over them, of each unit at most so many records.

    Raises
    ------
    DataError
        As :func:`count_units` and :func:`~policygraph.curator.counting.tables.count_measure`.

    Examples
    --------
    >>> import pyarrow
    >>> from policygraph.model.policy import Policy
    >>> visits = pyarrow.table({"person": [1, 1, 1, 2], "shop": [0, 0, 0, 1], "paid": [7, 7, 7, 99]})
    >>> shops = Unit(Policy(Domain({"shop": 2})), "person", at_most=2)
    >>> sum_units(visits, shops, Measure("paid", 0, 50)).sums(["shop"]).tolist()
    [14, 50]
    """
    domain = policy.domain
    if not isinstance(domain, Domain) or domain.size > DENSE or policy.cap > MOST:
        raise RefusedError(
            f"sums of a unit over {domain.size:,} cells with up to {policy.cap:,} records in one of them: expected at most {DENSE:,} cells, and {MOST:,} records in one. Lower at_most or per_cell.",
            code="unit.too-large",
        )
    unknown = dict(policy.unknown) if isinstance(policy.unknown, tuple) else policy.unknown
    source = open_source(data, engine)
    found = find_columns(source, domain, columns)
    tally = Tally(source, domain, found, read_rule(domain, unknown))
    amount, kind = find_measure(source, measure)
    level = level_sql(sql.name(amount), kind, measure, tally.dialect)
    column, kind = unit_column(source, policy.column, found)
    value, kind = plain(sql.name(column), kind)
    if source.textual:
        value = f"nullif({value}, '')"
    bounded = Bounded(tally, policy, value, kind, level)
    bounded.check_present()
    if not policy.enforced:
        bounded.check_bounds()
    [(rows, missed, empty)] = source.rows_of(
        "SELECT count(*), count(CASE WHEN cell IS NULL THEN 1 END), count(CASE WHEN NOT cell IS NULL AND y IS NULL THEN 1 END) "
        f"FROM ({bounded.cells()}) AS s"
    )
    tally.check_none_lost(int(rows))
    if missed and unknown != "drop":
        raise tally.misfit(int(rows), int(missed))
    if empty and measure.missing != "drop":
        raise no_value(source, measure, int(empty), int(rows))
    fingerprint = source.fingerprint()
    whole, totals = (np.zeros(domain.size, dtype=np.int64) for _ in range(2))
    for batch in source.run(bounded.sums(measure)):
        np.add.at(whole, batch["cell"].astype(np.int64), batch["n"].astype(np.int64))
        np.add.at(totals, batch["cell"].astype(np.int64), batch["total"].astype(np.int64))
    check_sums(int(whole.sum()), measure)
    # What drops records before the bound is a rule for each by itself; how many the bound leaves out is computed nowhere.
    counts = Histogram.checked(domain, whole, fingerprint, int(missed) + int(empty))
    return MeasuredCounts(counts, measure, totals)


def unit_column(source: Source, name: str, attributes: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """Engine name and type of the column of the unit."""
    matches = [(at, kind) for shown, at, kind in source.columns if shown == name]
    given = ", ".join(repr(shown) for shown, _, _ in source.columns[:12])
    if len(matches) != 1:
        raise DataError(
            f"{source.label}: {'no' if not matches else len(matches)} column {name!r} for the unit. Its columns are {given}. Nothing was charged.",
            code="data.missing-column",
            value=name,
        )
    [(at, kind)] = matches
    counted = [attribute for attribute, (column, _) in attributes.items() if column == at]
    if counted:
        raise DataError(
            f"{source.label}: the column {name!r} is the unit and is read as the attribute {counted[0]!r}: expected two columns. Nothing was charged.",
            code="unit.column",
            value=name,
        )
    known = kind in WHOLE or kind in PRINTED or (kind.startswith("ENUM(") and kind.endswith(")"))
    if not known or at in source.times:
        raise DataError(
            f"{source.label}: the column {name!r} of the unit is of the kind {family(kind)}, or of times or lists: expected texts, dates or whole numbers, which are equal or not on every engine. A missing value makes "
            "numbers of a frame of pandas ones that need not be whole. Nothing was charged.",
            code="unit.type",
            value=name,
        )
    return at, kind


class Bounded:
    """A source, the way from its columns to cells, and whose each record is."""

    def __init__(self, tally: Tally, policy: Unit, value: str, kind: str, level: str = "") -> None:
        self.tally, self.policy, self.value, self.kind = tally, policy, value, kind
        self.level = level
        self.source, self.dialect = tally.source, tally.dialect
        self.key = hashlib.sha256(f"policygraph unit {policy.fingerprint}".encode()).hexdigest()

    def cells(self) -> str:
        """SELECT of u, whose record it is, cell, NULL where it does not fit the domain, and of a measure its level y."""
        domain = self.tally.domain
        strange = " OR ".join(f"c{i} IS NULL" for i in range(len(domain.names)))
        coded = self.tally.coded(group=False, beside=self.value, level=self.level)
        return f"SELECT u, {'y, ' if self.level else ''}CASE WHEN {strange} THEN NULL ELSE {position(domain, domain, wide=domain.size >= 1 << 31)} END AS cell FROM ({coded}) AS s"

    def check_present(self) -> None:
        """Refuse records of which nobody can say whose they are."""
        [(missing,)] = self.source.rows_of(
            f"SELECT count(*) FROM (SELECT {self.value} AS u FROM {TABLE}) AS s WHERE u IS NULL"
        )
        if missing:
            raise self._missing(int(missing))

    def _missing(self, records: int) -> DataError:
        return DataError(
            f"{self.source.label}: the column {self.policy.column!r} of the unit has no value in {records:,} record{'s' * (records != 1)}: expected one in each, since nobody can say whose "
            "such a record is. Leave them out of the data, or name their units. Nothing was charged.",
            code="unit.missing",
            rows=records,
        )

    def _counted(self) -> str:
        here = " AND NOT y IS NULL" if self.level else ""
        kept = f"SELECT u, cell FROM ({self.cells()}) AS s WHERE NOT cell IS NULL{here}"
        return f"SELECT u, cell, count(*) AS n FROM ({kept}) AS t GROUP BY u, cell"

    def check_bounds(self) -> None:
        """Refuse data with a unit that has too many records, where the policy graph does not allow to leave some out."""
        self.check_present()
        totals = f"SELECT u, sum(n) AS records, max(n) AS most FROM ({self._counted()}) AS c GROUP BY u"
        [(records, most)] = self.source.rows_of(
            f"SELECT coalesce(max(records), 0), coalesce(max(most), 0) FROM ({totals}) AS d"
        )
        policy = self.policy
        if int(records) > policy.at_most or int(most) > policy.cap:
            raise DataError(
                f"{self.source.label}: one {policy.column} has more than {policy.words}, and under this policy graph none can be left out: which are kept would depend on what they are, and change by more "
                "than steps along edges. Raise the bounds, leave records out of the data, or leave out the graph. Nothing was charged.",
                code="unit.too-many",
            )

    def records(self) -> int:
        """How many records there are."""
        there = self.source.records
        if there is None:
            [(there,)] = self.source.rows_of(f"SELECT count(*) FROM {TABLE}")
        return int(there)

    def there(self) -> tuple[Ints, Ints, int]:
        """Cells, counts and how many records do not fit, by statements that the engine answers."""
        self.check_present()
        fits, missed = self.tally.fitting()
        self.tally.check_none_lost(fits + missed)
        out: list[Ints] = [np.zeros(0, dtype=np.int64)]
        many: list[Ints] = [np.zeros(0, dtype=np.int64)]
        for batch in self.source.run(self.statement()):
            out.append(batch["cell"].astype(np.int64))
            many.append(batch["n"].astype(np.int64))
        return np.concatenate(out), np.concatenate(many), missed

    def _words(self) -> str:
        """Four numbers of each unit, w0 to w3, from the key and its name."""
        text = f"{sql.literal(self.key + ':')} || {self.dialect.text('u', self.kind)}"
        return ", ".join(
            f"{self.dialect.digest_word(text, 1 + 8 * at)} % {PRIME} AS w{at}" for at in range(4)
        )

    def sums(self, measure: Measure) -> str:
        """SELECT of cell, n and total, the records that are kept and the sums of their levels.

        What a unit adds is cut off where the measure says so, record by record in the order in which they are kept. Records of one cell are numbered in an order that mixes their levels, so that small values are kept no more often than large ones; those of one level are alike.
        """
        cap, most = self.policy.cap, self.policy.at_most
        fit = f"SELECT u, cell, y FROM ({self.cells()}) AS s WHERE NOT cell IS NULL AND NOT y IS NULL"
        made = f"SELECT u, cell, y, (y - {sql.literal(measure.lowest)}) % {PRIME} AS z, {self._words()} FROM ({fit}) AS c"
        mixed = f"SELECT u, cell, y, w0, w1, w2, w3, (((w1 * z + w3) % {PRIME}) * z + w2) % {PRIME} AS m FROM ({made}) AS d"
        numbered = f"SELECT u, cell, y, w0, w1, w2, w3, row_number() OVER (PARTITION BY u, cell ORDER BY m, y) - 1 AS j FROM ({mixed}) AS e"
        x = f"((CAST(cell AS BIGINT) % {PRIME}) * {cap % PRIME} + j) % {PRIME} AS x"
        few = f"SELECT u, cell, y, j, w0, w1, w2, w3, {x} FROM ({numbered}) AS f WHERE j < {cap}"
        valued = f"SELECT u, cell, y, j, {self._place()} AS v FROM ({few}) AS g"
        placed = f"SELECT u, cell, y, row_number() OVER (PARTITION BY u ORDER BY v, cell, j) AS place FROM ({valued}) AS h"
        counting = f"SELECT u, cell, y, place FROM ({placed}) AS i WHERE place <= {most}"
        if measure.together is not None:
            counting = self._cut_off(counting, measure.together)
        return f"SELECT cell, count(*) AS n, CAST(sum(y) AS BIGINT) AS total FROM ({counting}) AS k GROUP BY cell"

    @staticmethod
    def _cut_off(counting: str, most: int) -> str:
        """The records that count, their levels cut off where those before them in the order of the unit leave no room."""
        size = "CASE WHEN y < 0 THEN -y ELSE y END"
        used = f"SELECT cell, y, place, {size} AS size, sum({size}) OVER (PARTITION BY u ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS used FROM ({counting}) AS i"
        room = f"{most} - (used - size)"
        return (
            f"SELECT cell, CASE WHEN used <= {most} THEN y WHEN used - size >= {most} THEN 0 WHEN y < 0 THEN -({room}) ELSE {room} END AS y "
            f"FROM ({used}) AS l"
        )

    def _place(self) -> str:
        """SQL of the place of a record in the order of its unit: a polynomial of degree 3 at x."""
        value = "w0"
        for at in (1, 2, 3):
            value = f"(({value} * x + w{at}) % {PRIME})"
        return value

    def statement(self) -> str:
        """SELECT of cell and n, the records that are kept."""
        policy, dialect = self.policy, self.dialect
        cap, most = policy.cap, policy.at_most
        numbers = dialect.labels(range(cap), "BIGINT", range(cap))
        copies = f"SELECT s.u AS u, s.cell AS cell, numbers.code AS j FROM ({self._counted()}) AS s JOIN ({numbers}) AS numbers ON numbers.code < s.n"
        words = self._words()
        x = f"((CAST(cell AS BIGINT) % {PRIME}) * {cap % PRIME} + j) % {PRIME} AS x"
        made = f"SELECT u, cell, j, {x}, {words} FROM ({copies}) AS c"
        valued = f"SELECT u, cell, j, {self._place()} AS v FROM ({made}) AS d"
        placed = f"SELECT cell, row_number() OVER (PARTITION BY u ORDER BY v, cell, j) AS place FROM ({valued}) AS e"
        return f"SELECT cell, count(*) AS n FROM ({placed}) AS f WHERE place <= {most} GROUP BY cell"

    def here(self) -> tuple[Ints, Ints, int]:
        """The same inside this process: cells and units come batch by batch, and are put in order here, which takes a fraction of a statement."""
        there, size = self.records(), self.tally.domain.size
        passes = max(1, -(-there // AT_ONCE))
        missed, seen, kept = 0, 0, [np.zeros(0, dtype=np.int64)]
        whole = np.zeros(size if size <= TALLIED else 0, dtype=np.int64)
        for one in range(passes):
            units, texts, cells = self._read(one, passes)
            for batch, some in enumerate(cells):
                seen += len(some)
                if len(some) and int(some.min()) < 0:
                    fits = some >= 0
                    missed += int((~fits).sum())
                    units[batch], cells[batch] = units[batch][fits], some[fits]
            some = self._keep(units, texts, cells)
            if len(whole):
                whole += np.bincount(some, minlength=size)
            else:
                kept.append(some)
        if seen != there:
            self.tally.check_none_lost(seen)
        if len(whole):
            at = np.flatnonzero(whole)
            return at, whole[at], missed
        found, counts = np.unique(np.concatenate(kept), return_counts=True)
        return found, counts.astype(np.int64), missed

    def _read(self, one: int, passes: int) -> tuple[list[Any], Any, list[Any]]:
        """Batch by batch units as numbers and cells, -1 for none; between them the texts of the units by number, None where the number is the text."""
        import pyarrow

        narrow = self.kind in NARROW
        shown = "u" if narrow else self.dialect.text("u", self.kind)
        where = "" if passes == 1 else f" WHERE hash(u) % {passes} = {one}"
        statement = f"SELECT {shown} AS u, cell FROM ({self.cells()}) AS t{where}"
        units, cells, missing = self.source.explained(lambda: self._arrays(statement, narrow))
        if missing:
            raise self._missing(missing)
        if narrow:
            return units, None, cells
        made = pyarrow.chunked_array(units, type=pyarrow.string()).dictionary_encode().unify_dictionaries()
        codes = [chunk.indices.to_numpy() for chunk in made.chunks]
        return codes, made.chunk(0).dictionary if codes else None, cells

    def _arrays(self, statement: str, narrow: bool) -> tuple[list[Any], list[Any], int]:
        """Units, cells and how many records have no unit, batch by batch."""
        engine: Any = self.source.engine
        units, cells, missing = [], [], 0
        for batch in engine.arrow(statement):
            whose, at = batch.columns
            missing += whose.null_count
            units.append(to_numpy(whose.fill_null(0) if whose.null_count else whose) if narrow else whose)
            cells.append(to_numpy(at.fill_null(-1) if at.null_count else at))
        return units, cells, missing

    def _keep(self, units: list[Any], texts: Any, cells: list[Any]) -> Any:
        """The cells of the records that are kept."""
        total = sum(map(len, cells))
        if not total:
            return np.zeros(0, dtype=np.int64)
        from policygraph.curator.counting._compiled_units import add_numbers, kept, place_by_unit

        names = None
        low = min(int(some.min()) for some in units if len(some))
        high = max(int(some.max()) for some in units if len(some))
        if high - low > 4 * total + (1 << 16):
            names, units = _numbered(units)
            low, high = 0, len(names) - 1
        many = np.zeros(high - low + 1, dtype=np.int64)
        for some in units:
            add_numbers(some, low, many)
        ends = np.cumsum(many)
        records = np.empty(total, dtype=np.result_type(*cells))
        for some, at in zip(units, cells, strict=True):
            place_by_unit(some, low, at, ends, records)
        starts = np.append(ends, total)
        several = np.flatnonzero(many > self.policy.at_most)
        named = (several + low if names is None else names[several]).tolist()
        whose = map(str, named) if texts is None else texts.take(_indices(named)).to_pylist()
        return kept(records, starts, words_of(self.key, whose), self.policy.cap, self.policy.at_most)


def _numbered(units: list[Any]) -> tuple[Any, list[Any]]:
    """The units, each once, and for each record which of them it is."""
    from policygraph.curator.counting._compiled_units import coded

    known, names = 0, np.empty(1 << 12, dtype=np.result_type(*units))
    slots, out = np.zeros(2 * len(names), dtype=np.int64), []
    for some in units:
        codes, done = np.empty(len(some), dtype=np.int64), 0
        while True:
            made, known = coded(some[done:], names, known, slots, codes[done:])
            done += made
            if done == len(some):
                break
            names = np.concatenate([names, np.empty_like(names)])
            slots = np.zeros(2 * len(names), dtype=np.int64)
            coded(names[:known].copy(), names, 0, slots, np.empty(known, dtype=np.int64))
        out.append(codes)
    return names[:known], out


def _indices(numbers: list[int]) -> Any:
    import pyarrow

    return pyarrow.array(numbers, type=pyarrow.int64())


def words_of(key: str, units: Iterable[str]) -> Ints:
    """Four numbers from the key and each unit, as the statements of all engines make them."""
    begun = hashlib.md5(f"{key}:".encode(), usedforsecurity=False)
    made = []
    for unit in units:
        one = begun.copy()
        one.update(unit.encode())
        made.append(one.digest())
    return np.frombuffer(b"".join(made), dtype=">u4").astype(np.int64).reshape(-1, 4) % PRIME
