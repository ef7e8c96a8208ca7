"""Counting the records of a table into cells, and summing a measure by cell. Owns :func:`count_cells` and :func:`count_measure`.

One GROUP BY inside DuckDB does the work, clipping and rounding of a measure included; only cells, their counts and their sums come out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from policygraph.curator.counting import sql
from policygraph.curator.counting.dialect import DUCKDB, Dialect
from policygraph.curator.counting.held import HeldHere
from policygraph.curator.counting.labels import EXACT, Coder, bin_coder, coder
from policygraph.curator.counting.opening import open_source
from policygraph.curator.counting.source import TABLE, Source
from policygraph.curator.counting.values import OTHER, WHOLE, is_number, number, parts, plain, printed
from policygraph.curator.histogram import DENSE, Held, Histogram, Ints, MeasuredCounts, check_sums, named
from policygraph.errors import DataError, InputError
from policygraph.model.domain import Domain, Label
from policygraph.model.measure import Measure

Unknown = str | Mapping[str, Label]
SHOWN = 5
TOGETHER = 1 << 18
"""Up to so many cells, a batch of positions is counted into a table of its own; beyond, into the table itself."""
STREAMED = 1 << 20
"""Up to so many cells, DuckDB hands over the cell of each record, batch by batch inside this process: adding them up here takes a fraction of a GROUP BY."""
SMALL = 100_000
"""Up to so many cells, text is grouped before it is looked up, so that a label is looked up once and not per row."""


def count_cells(
    data: Any,
    domain: Domain,
    *,
    unknown: Unknown = "error",
    columns: Mapping[str, str] | None = None,
    name: str | None = None,
    engine: Any = None,
) -> Histogram:
    """Count the records of a table into the cells of a domain.

    Parameters
    ----------
    data
        A path, a pattern or a folder (CSV, Parquet, JSON), :class:`Files` with it and how it is read, ``duckdb://file.db?table=name``,
        ``postgresql://host/database/table``, a frame (pandas, polars, Arrow, Spark), a DuckDB relation, or a pair of a DuckDB connection and a SELECT.
    domain
        The domain; each attribute is read from the column of its name.
    unknown
        What to do with a record that has no value, or one outside the domain: ``"error"``, ``"drop"`` (leave it
        out), or for some attributes the label it counts under.
    columns
        Column of an attribute where it has another name.
    name
        Name of the data set in the budget ledger; by default it is known by its content.
    engine
        What counts: ``"duckdb"``, ``"spark"`` or a session of Spark, ``"postgres"``; by default what the data are, DuckDB for files.

    Returns
    -------
    Histogram
        Private.

    Raises
    ------
    DataError
        For a missing column, and for values outside the domain, with the values and how many rows carry each.

    Examples
    --------
    >>> import pyarrow
    >>> people = pyarrow.table({"sex": ["F", "M", "F"], "age": [0, 1, 0]})
    >>> count_cells(people, Domain({"sex": ["F", "M"], "age": 2})).vector().tolist()
    [2, 0, 0, 1]
    """
    if not isinstance(domain, Domain):
        raise InputError(
            f"domain={domain!r}: expected a Domain. Edges of a network are read by read_edges.",
            code="data.domain",
            value=domain,
        )
    others = read_rule(domain, unknown)
    if name is not None:
        named(name)
    source = open_source(data, engine)
    tally = Tally(source, domain, find_columns(source, domain, columns), others)
    fingerprint = source.fingerprint() if name is None else named(name)
    if domain.size <= DENSE:
        whole, missed = tally.cells(domain.names)
        rows = int(whole.sum())
    else:
        rows, missed = tally.fitting()
    if missed and unknown != "drop":
        raise tally.misfit(rows + missed, missed)
    tally.check_none_lost(rows + missed)
    if domain.size <= DENSE:
        counts = Histogram.checked(domain, whole, fingerprint, missed)
        return replace(counts, _held=partial(tally.held, rows, clean=not missed))
    # Once every record is known to fit, a reading needs the columns it counts and no others.
    return Histogram(
        domain,
        fingerprint,
        rows,
        missed,
        _tally=partial(tally.many, clean=not missed),
        _filled=partial(tally.filled, clean=not missed),
        _held=partial(tally.held, rows, clean=not missed),
    )


def read_rule(domain: Domain, unknown: Unknown) -> dict[str, int]:
    """Check the rule for unknown values; return the position of the label they count under, by attribute."""
    if isinstance(unknown, Mapping):
        return {name: domain.code(name, label) for name, label in unknown.items()}
    if unknown not in ("error", "drop"):
        raise InputError(
            f'unknown={unknown!r}: expected "error", "drop", or a label for some attributes such as '
            '{"age": "other"}.',
            code="data.unknown-rule",
            value=unknown,
        )
    return {}


def find_columns(
    source: Source, domain: Domain, columns: Mapping[str, str] | None
) -> dict[str, tuple[str, str]]:
    """Engine name and type of the column of each attribute."""
    for attribute in columns or {}:
        domain.axis(attribute)
    given = [shown for shown, _, _ in source.columns]
    found: dict[str, tuple[str, str]] = {}
    problems = []
    for attribute in domain.names:
        column = (columns or {}).get(attribute, attribute)
        matches = [(at, kind) for shown, at, kind in source.columns if shown == column]
        if len(matches) == 1:
            found[attribute] = matches[0]
            continue
        what = (
            f"{attribute}: no column {column!r}"
            if not matches
            else f"{attribute}: {len(matches)} columns {column!r}"
        )
        lowered = {shown.strip().lower(): shown for shown in given}
        near = get_close_matches(column.lower(), list(lowered), n=1)
        problems.append(what + (f" (did you mean {lowered[near[0]]!r}?)" if near and not matches else ""))
    if not problems:
        check_kinds_of(source, found)
        return found
    shown_names = ", ".join(repr(column) for column in given[:12]) + (", ..." if len(given) > 12 else "")
    labels = {str(label) for attribute in domain.names for label in domain.labels(attribute)[:1000]}
    headless = source.textual and len(problems) == len(domain.names) and any(x in labels for x in given)
    advice = (
        "Its first line looks like a record: put a line with the names of the columns before it."
        if headless
        else 'Its header line has none of , ; | and tab: say what stands between the values, [data] delimiter = "^" in the policy file, say, '
        'or pg.Files(path, delimiter="^") in Python.'
        if source.textual and len(given) == 1 and any(name in given[0] for name in domain.names)
        else 'Rename the columns, or say which column an attribute is read from: [data] columns = {age = "age in years"} in the policy '
        "file, say, or columns in Python."
    )
    raise DataError(
        f"{source.label}: {'; '.join(problems)}. Its columns are {shown_names}. {advice}",
        code="data.no-header" if headless else "data.missing-column",
        problems=problems,
        columns=given,
    )


def check_kinds_of(source: Source, columns: Mapping[str, tuple[str, str]]) -> None:
    """Refuse columns whose values an engine prints in a way of its own: no label could match them on all engines."""
    for attribute, (_, kind) in columns.items():
        if kind.startswith(OTHER):
            raise DataError(
                f"{source.label}: the column for {attribute!r} is of the type {kind.removeprefix(OTHER)}: expected texts, numbers, truth values, dates or times. "
                "Make a column of one of these, for example a text.",
                code="engine.type",
                value=attribute,
            )


class Tally:
    """A source together with the way from its columns to cells."""

    def __init__(
        self, source: Source, domain: Domain, columns: dict[str, tuple[str, str]], others: dict[str, int]
    ) -> None:
        self.source, self.domain, self.columns, self.others = source, domain, columns, others
        self.dialect = source.engine.dialect
        self.integer = "INTEGER" if domain.size < 2**31 else "BIGINT"
        self.coders: dict[str, Coder] = {}
        for i, name in enumerate(domain.names):
            where = (f"r.v{i}", plain("", columns[name][1])[1])
            how: dict[str, Any] = {
                "textual": source.textual,
                "integer": self.integer,
                "dialect": self.dialect,
            }
            bins = domain.bins(name)
            self.coders[name] = (
                coder(*where, domain.labels(name), f"labels{i}_", **how)
                if bins is None
                else bin_coder(*where, bins, f"labels{i}_", **how)
            )

    def value(self, name: str) -> str:
        """SQL of what is looked up for an attribute."""
        column, kind = self.columns[name]
        return plain(sql.name(column), kind)[0]

    def coded(
        self,
        *,
        group: bool,
        values: bool = False,
        names: tuple[str, ...] | None = None,
        beside: str = "",
        level: str = "",
    ) -> str:
        """SELECT of n (how many rows), c0, c1, ... (positions of labels, NULL for none) and, if asked, v0, v1, ..., ``beside`` as u and ``level`` as y."""
        used = [(i, name) for i, name in enumerate(self.domain.names) if names is None or name in names]
        raw = [f"{self.value(name)} AS v{i}" for i, name in used]
        raw += [f"{beside} AS u"] if beside else []
        raw += [f"{level} AS y"] if level else []
        inner = f"SELECT {', '.join(raw)} FROM {TABLE}"
        many = "r.n AS n, "
        if group:
            keys = ", ".join(f"v{i}" for i, _ in used)
            inner = f"SELECT {keys}, count(*) AS n FROM ({inner}) AS q GROUP BY {keys}"
        else:
            many = ""
        codes = []
        for i, name in used:
            code = self.coders[name].code
            codes.append(
                f"coalesce({code}, {self.others[name]}) AS c{i}" if name in self.others else f"{code} AS c{i}"
            )
        joins = [join for _, name in used for join in self.coders[name].joins]
        inner = self._with_made(inner, [name for _, name in used])
        also = "".join(f", r.v{i} AS v{i}" for i, _ in used) if values else ""
        also += ", r.u AS u" if beside else ""
        also += ", r.y AS y" if level else ""
        return f"SELECT {many}{', '.join(codes)}{also} FROM ({inner}) AS r {' '.join(joins)}"

    def _with_made(self, inner: str, names: Sequence[str]) -> str:
        """A SELECT with what the codes of some attributes need beside its columns."""
        made = [each for name in names for each in self.coders[name].made]
        return f"SELECT r.*, {', '.join(made)} FROM ({inner}) AS r" if made else inner

    def cells(self, names: tuple[str, ...], *, clean: bool = False) -> tuple[Ints, int]:
        """Counts over some attributes, and how many records have a value outside the domain.

        ``clean``: every record is known to fit the domain, so that the columns of other attributes are not read.
        """
        part = self.domain.project(names)
        read = part if clean else self.domain
        group = read.size <= SMALL and any(self.coders[name].by_text for name in read.names)
        index = position(self.domain, part)
        others = [f"c{i} IS NULL" for i, name in enumerate(self.domain.names) if name not in part.names]
        if others and not clean:
            index = f"CASE WHEN {' OR '.join(others)} THEN NULL ELSE {index} END"
        coded = self.coded(group=group, names=part.names if clean else None)
        out = np.zeros(part.size, dtype=np.int64)
        missed = 0
        if self.dialect.embedded and not group and part.size <= STREAMED:
            for batch in self.source.run(f"SELECT {index} AS cell FROM ({coded}) AS s"):
                at = batch["cell"]
                if len(at) and int(at.min()) < 0:
                    missed += int((at < 0).sum())
                    at = at[at >= 0]
                out += np.bincount(at, minlength=part.size)
            return out, missed
        many = "CAST(sum(n) AS BIGINT)" if group else "count(*)"
        cells = f"SELECT {index} AS cell{', n' if group else ''} FROM ({coded}) AS s"
        statement = f"SELECT cell, {many} AS n FROM ({cells}) AS t GROUP BY cell"
        for batch in self.source.run(statement):
            at, n = batch["cell"], batch["n"]
            fits = at >= 0
            out[at[fits]] += n[fits]
            missed += int(n[~fits].sum())
        return out, missed

    def many(self, sets: Sequence[tuple[str, ...]], *, clean: bool = False) -> list[Ints]:
        """Counts over several sets of attributes, all in one reading of the records."""
        parts = [self.domain.project(names) for names in sets]
        if len(parts) == 1:
            return [self.cells(sets[0], clean=clean)[0]]
        needed = {name for names in sets for name in names} if clean else set(self.domain.names)
        coded = self.coded(group=False, names=tuple(needed))
        out: list[Ints] = [np.zeros(part.size, dtype=np.int64) for part in parts]
        (self._many_here if self.dialect.embedded else self._many_there)(parts, needed, coded, out)
        return out

    def _many_here(self, parts: list[Domain], needed: set[str], coded: str, out: list[Ints]) -> None:
        """Add up the positions of each record, batch by batch inside this process."""
        axes = [
            [(f"c{self.domain.axis(name)}", len(part.labels(name))) for name in part.names] for part in parts
        ]
        columns = {f"c{self.domain.axis(name)}" for name in needed}
        for batch in self.source.run(f"SELECT {', '.join(sorted(columns))} FROM ({coded}) AS s"):
            # Positions in a table of at most DENSE cells fit 32 bits, which halves the traffic of the memory.
            codes = {column: batch[column].astype(np.int32) for column in columns}
            fits = np.logical_and.reduce([code >= 0 for code in codes.values()])
            if not fits.all():
                codes = {column: code[fits] for column, code in codes.items()}
            for listed, table in zip(axes, out, strict=True):
                index = codes[listed[0][0]]
                for column, size in listed[1:]:
                    index = index * np.int32(size) + codes[column]
                if len(table) <= TOGETHER:
                    table += np.bincount(index, minlength=len(table))
                else:
                    # Only with indices of this type it is fast.
                    np.add.at(table, index.astype(np.intp), 1)

    def _many_there(self, parts: list[Domain], needed: set[str], coded: str, out: list[Ints]) -> None:
        """Count in one statement; the cells of all tables are numbered one after the other."""
        starts = np.cumsum([0, *(part.size for part in parts)])
        strange = " OR ".join(f"c{self.domain.axis(name)} IS NULL" for name in sorted(needed))
        keys = [
            f"CASE WHEN {strange} THEN NULL ELSE {position(self.domain, part)} + {start} END"
            for part, start in zip(parts, starts[:-1].tolist(), strict=True)
        ]
        whole = np.zeros(int(starts[-1]), dtype=np.int64)
        for batch in self.source.run(self.dialect.counted_together(keys, coded)):
            fits = batch["cell"] >= 0
            whole[batch["cell"][fits]] += batch["n"][fits]
        for table, start in zip(out, starts.tolist(), strict=False):
            table += whole[start : start + len(table)]

    def filled(self, names: tuple[str, ...], *, clean: bool = False) -> tuple[Ints, Ints]:
        """Positions of the cells over some attributes that hold a record, one row each, and their counts."""
        coded = self.coded(group=False, names=names if clean else None)
        kept = [f"c{self.domain.axis(name)}" for name in names]
        others = [] if clean else [f"c{i} IS NOT NULL" for i in range(len(self.domain.names))]
        where = f" WHERE {' AND '.join(others)}" if others else ""
        keys = ", ".join(kept)
        statement = f"SELECT {keys}, count(*) AS n FROM ({coded}) AS s{where} GROUP BY {keys}"
        cells, counts = [np.zeros((0, len(names)), dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for batch in self.source.run(statement):
            rows = np.stack([batch[column].astype(np.int64) for column in kept], axis=1)
            fits = (rows >= 0).all(axis=1)
            cells.append(rows[fits])
            counts.append(batch["n"][fits].astype(np.int64))
        return np.concatenate(cells), np.concatenate(counts)

    def held(self, rows: int, names: tuple[str, ...], *, clean: bool = False) -> Held:
        """The counts over some attributes, however many cells they have, held where they are counted."""
        part = self.domain.project(names)
        needed = names if clean else self.domain.names
        strange = " OR ".join(f"c{self.domain.axis(name)} IS NULL" for name in needed)
        coded = self.coded(group=False, names=names if clean else None)
        cells = f"SELECT CASE WHEN {strange} THEN NULL ELSE {position(self.domain, part, wide=True)} END AS cell FROM ({coded}) AS s"
        statement = f"SELECT cell, count(*) AS n FROM ({cells}) AS t GROUP BY cell"
        there = getattr(self.source.engine, "held", None)
        if there is not None:
            made: Held = self.source.explained(lambda: there(statement, part, rows))
            return made
        return HeldHere(part, self.source.run(statement), rows)

    def fitting(self) -> tuple[int, int]:
        """How many records fit the domain, and how many do not."""
        bad = " OR ".join(f"c{i} IS NULL" for i in range(len(self.domain.names)))
        statement = (
            f"SELECT count(*), count(CASE WHEN {bad} THEN 1 END) FROM ({self.coded(group=False)}) AS s"
        )
        [(rows, missed)] = self.source.rows_of(statement)
        return int(rows) - int(missed), int(missed)

    def check_none_lost(self, counted: int) -> None:
        """Compare with how many records there are, counted without any look-up: none may be lost or doubled on the way."""
        there = self.source.records
        if there is None:
            [(there,)] = self.source.rows_of(f"SELECT count(*) FROM {TABLE}")
        if counted != there:
            raise DataError(
                f"{self.source.label}: {there} rows, but {counted} were counted. The data changed meanwhile, or the "
                "engine has a fault; nothing was released.",
                code="data.lost",
            )

    def misfit(self, rows: int, missed: int) -> DataError:
        """Return the error that names the values outside the domain, attribute by attribute."""
        coded = self.coded(group=False, values=True)
        lines, found = [], {}
        for i, name in enumerate(self.domain.names):
            shown = printed(f"v{i}", plain("", self.columns[name][1])[1], self.dialect)
            texts = f"SELECT {shown} AS v FROM ({coded}) AS s WHERE c{i} IS NULL"
            counted = f"SELECT v, count(*) AS n FROM ({texts}) AS t GROUP BY v"
            worst = self.source.rows_of(
                f"SELECT v, n, count(*) OVER () AS values FROM ({counted}) AS u ORDER BY n DESC, v LIMIT {SHOWN}"
            )
            if not worst:
                continue
            found[name] = [(value, int(n)) for value, n, _ in worst]
            parts = [
                f"{'no value' if value is None else repr(value)} in {n:,} row{'s' if n != 1 else ''}"
                for value, n in found[name]
            ]
            more = int(worst[0][2]) - len(worst)
            lines.append(
                f"  {name}: {', '.join(parts)}"
                + (f", and {more:,} more values" if more else "")
                + _hint(self.domain, name, [value for value, _ in found[name] if value is not None])
            )
        first = next(iter(found), self.domain.names[0])
        name = first if re.fullmatch(r"[A-Za-z0-9_-]+", first) else f'"{first}"'
        return DataError(
            f"{self.source.label}: {missed:,} of {rows:,} rows do not fit the domain.\n"
            + "\n".join(lines)
            + "\nCorrect the data or the domain, or let the policy say what to do: in the table [data] of the policy file, "
            f'unknown = "drop" leaves such rows out, unknown = {{other = {{{name} = ...}}}} counts them under the label that '
            "is given, which the domain should have for this. In Python: Policy(..., unknown=...).",
            code="data.unknown-value",
            problems=found,
            rows=missed,
        )


def position(domain: Domain, part: Domain, *, wide: bool = False) -> str:
    """SQL of the number of a cell of a part of the domain, from the positions c0, c1, ... of its labels."""
    index = ""
    for name, size in zip(part.names, part.shape, strict=True):
        code = f"CAST(c{domain.axis(name)} AS BIGINT)" if wide else f"c{domain.axis(name)}"
        index = f"({index} * {size} + {code})" if index else code
    return index


def _hint(domain: Domain, name: str, values: list[str]) -> str:
    labels = domain.labels(name)
    bins = domain.bins(name)
    if bins is not None:
        return f" (expected {bins.expected()})"
    if isinstance(labels, range):
        return f" (expected 0 to {len(labels) - 1})"
    texts = {str(label).lower(): str(label) for label in labels[:1000]}
    for value in values:
        near = get_close_matches(value.strip().lower(), list(texts), n=1)
        if near:
            return f" (did you mean {texts[near[0]]!r} for {value!r}?)"
    return f" (expected one of {', '.join(map(repr, labels[:8]))}{', ...' if len(labels) > 8 else ''})"


def count_measure(
    data: Any,
    domain: Domain,
    measure: Measure,
    *,
    unknown: Unknown = "error",
    columns: Mapping[str, str] | None = None,
    name: str | None = None,
    engine: Any = None,
) -> MeasuredCounts:
    """Count the records of a table into cells, and sum a measure over them.

    Parameters
    ----------
    data, domain, unknown, columns, name, engine
        As in :func:`~policygraph.curator.counting.tables.count_cells`.
    measure
        Which column is summed; it says how its values are clipped and rounded, and what happens where there is none.

    Raises
    ------
    DataError
        For a missing column, values outside the domain, and records without a number where the measure has no rule for them.

    Examples
    --------
    >>> import pyarrow
    >>> people = pyarrow.table({"sex": ["F", "M", "F"], "income": [120.0, 70.4, -3.0]})
    >>> made = count_measure(people, Domain({"sex": ["F", "M"]}), Measure("income", 0, 100))
    >>> made.vector().tolist(), made.sums(["sex"]).tolist()
    ([2, 1], [100, 70])
    """
    others = read_rule(domain, unknown)
    if name is not None:
        named(name)
    source = open_source(data, engine)
    tally = _SumTally(source, domain, find_columns(source, domain, columns), others)
    column, kind = find_measure(source, measure)
    tally.level = level_sql(sql.name(column), kind, measure, tally.dialect)
    fingerprint = source.fingerprint() if name is None else named(name)
    whole, totals, missed, empty = tally.both(domain.names if domain.size <= DENSE else ())
    rows = int(whole.sum())
    if missed and unknown != "drop":
        raise tally.misfit(rows + missed + empty, missed)
    if empty and measure.missing != "drop":
        raise no_value(source, measure, empty, rows + missed + empty)
    tally.check_none_lost(rows + missed + empty)
    check_sums(rows, measure)
    dropped = missed + empty
    if domain.size <= DENSE:
        counts = Histogram.checked(domain, whole, fingerprint, dropped)
        return MeasuredCounts(counts, measure, totals)
    counts = Histogram(
        domain, fingerprint, rows, dropped, _tally=lambda sets: [tally.both(some)[0] for some in sets]
    )
    return MeasuredCounts(counts, measure, None, lambda some: tally.both(some)[1])


def no_value(source: Source, measure: Measure, empty: int, rows: int) -> DataError:
    """The error for records without a number, where the measure has no rule for them."""
    return DataError(
        f"{source.label}: {empty:,} of {rows:,} records have no number in {measure.column!r}. Give the measure a rule: "
        "missing='drop' leaves such records out, missing=0 counts them with 0.",
        code="measure.no-value",
        rows=empty,
    )


class _SumTally(Tally):
    """A source with the way from its columns to cells, and to the level of a measure."""

    level: str

    def both(self, names: tuple[str, ...]) -> tuple[Ints, Ints, int, int]:
        """Counts and sums over some attributes; how many records are outside the domain, and how many more have no value."""
        raw = ", ".join(f"{self.value(name)} AS v{i}" for i, name in enumerate(self.domain.names))
        codes = []
        for i, name in enumerate(self.domain.names):
            code = self.coders[name].code
            codes.append(
                f"coalesce({code}, {self.others[name]}) AS c{i}" if name in self.others else f"{code} AS c{i}"
            )
        joins = [join for plan in self.coders.values() for join in plan.joins]
        inner = self._with_made(f"SELECT {raw}, {self.level} AS y FROM {TABLE}", self.domain.names)
        coded = f"SELECT r.y AS y, {', '.join(codes)} FROM ({inner}) AS r {' '.join(joins)}"
        kept = self.domain.project(names) if names else None
        index = "0"
        for name, size in () if kept is None else zip(kept.names, kept.shape, strict=True):
            index = f"({index} * {size} + c{self.domain.axis(name)})"
        strange = " OR ".join(f"c{i} IS NULL" for i in range(len(self.domain.names)))
        cells = f"SELECT CASE WHEN {strange} THEN NULL ELSE {index} END AS cell, CASE WHEN y IS NULL THEN 1 ELSE 0 END AS empty, y FROM ({coded}) AS s"
        statement = (
            "SELECT cell, empty, count(*) AS n, CAST(coalesce(sum(y), 0) AS BIGINT) AS total "
            f"FROM ({cells}) AS t GROUP BY cell, empty"
        )
        size = 1 if kept is None else kept.size
        if size > DENSE:
            raise InputError(
                f"a table of {size:,} cells: expected at most {DENSE:,}. Ask for fewer attributes.",
                code="counts.too-large",
                value=names,
            )
        many, totals = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        missed = empty = 0
        for batch in self.source.run(statement):
            fits = (batch["cell"] >= 0) & (batch["empty"] == 0)
            many[batch["cell"][fits]] += batch["n"][fits]
            totals[batch["cell"][fits]] += batch["total"][fits]
            missed += int(batch["n"][batch["cell"] < 0].sum())
            empty += int(batch["n"][(batch["cell"] >= 0) & (batch["empty"] == 1)].sum())
        return many, totals, missed, empty


def find_measure(source: Source, measure: Measure) -> tuple[str, str]:
    """Engine name and type of the column of a measure."""
    matches = [(at, kind) for shown, at, kind in source.columns if shown == measure.column]
    if len(matches) != 1:
        given = ", ".join(repr(shown) for shown, _, _ in source.columns[:12])
        raise DataError(
            f"{source.label}: {'no' if not matches else len(matches)} column {measure.column!r} for the measure. Its columns are {given}.",
            code="data.missing-column",
            columns=[shown for shown, _, _ in source.columns],
        )
    check_kinds_of(source, {measure.column: matches[0]})
    return matches[0]


def level_sql(value: str, kind: str, measure: Measure, dialect: Dialect = DUCKDB) -> str:
    """SQL of the value in units, clipped and rounded; NULL where there is no number.

    Notes
    -----
    Whole numbers with a whole unit of 1 stay whole. Everything else goes through double precision, where a value exactly between
    two units may go to either. Whatever the arithmetic does, the last step keeps the result within the range, and it
    depends on this one value only: up to 2^53 a number is the same as an integer, as a float and as text.

    Raises
    ------
    DataError
        When a range beyond 2^53 meets a column that is not of integers.

    Examples
    --------
    >>> level_sql("x", "INTEGER", Measure("x", 0, 9))
    'CASE WHEN x IS NOT NULL THEN CAST(least(greatest(CAST(x AS HUGEINT), 0), 9) AS BIGINT) END'
    """
    if measure.unit == 1 and kind not in WHOLE and max(abs(measure.lowest), abs(measure.highest)) > EXACT:
        raise DataError(
            f"the column {measure.column!r} is not of integers, and the range of {measure.column} goes beyond 2^53, where other numbers are rounded: expected a column of "
            "integers, or a coarser unit.",
            code="data.inexact",
        )
    levels = [_level(one, its, measure, dialect) for one, its in parts(value, kind)]
    made = levels[0] if len(levels) == 1 else f"coalesce({', '.join(levels)})"
    if isinstance(measure.missing, Fraction):
        made = f"coalesce({made}, {int(measure.missing / measure.unit)})"
    return made


def _level(value: str, kind: str, measure: Measure, dialect: Dialect) -> str:
    low, high, unit = measure.lowest, measure.highest, measure.unit
    # Unsigned 128-bit numbers do not all fit a signed one, and the engine would say which one does not.
    if kind in WHOLE and kind != "UHUGEINT" and unit == 1:
        wide = f"CAST({value} AS HUGEINT)" if dialect.embedded else value
        met, made = value, f"CAST(least(greatest({wide}, {low}), {high}) AS BIGINT)"
    else:
        shown = f"TRY_CAST({value} AS DOUBLE)"
        if kind == "VARCHAR":
            shown = dialect.number_of_text(value)
        elif is_number(kind) and kind != "FLOAT":
            shown = number(value, kind, dialect)
        elif not dialect.embedded:
            bit = f"(CASE WHEN {value} THEN 1 WHEN NOT {value} THEN 0 END)"
            shown = f"CAST({bit if kind == 'BOOLEAN' else value} AS DOUBLE)"
        met = f"(CASE WHEN {dialect.is_nan(shown)} THEN NULL ELSE {shown} END)"
        ends = [sql.literal(float(end)) for end in (measure.low, measure.high)]
        clipped = f"least(greatest({met}, {ends[0]}), {ends[1]})"
        scaled = dialect.scaled(clipped, float(1 / unit))
        rounded = f"CAST(floor({scaled} + {sql.literal(0.5)}) AS BIGINT)"
        made = f"least(greatest({rounded}, {low}), {high})"
    # greatest and least pass over NULL, so that a missing number would become an end of the range.
    return f"CASE WHEN {met} IS NOT NULL THEN {made} END"
