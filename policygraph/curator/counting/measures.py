"""Records with a measure, counted and summed by cell. Owns :func:`count_measure`.

Clipping and rounding happen inside DuckDB, record by record; only cells, their counts and their sums come out.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from policygraph.curator.counting import sql
from policygraph.curator.counting.labels import EXACT
from policygraph.curator.counting.source import TABLE, Source, open_source
from policygraph.curator.counting.tables import Unknown, _find_columns, _read_rule, _Tally
from policygraph.curator.counting.values import WHOLE, is_number, number, parts
from policygraph.curator.histogram import DENSE, Histogram, Ints, MeasuredCounts, check_sums, named
from policygraph.errors import DataError, InputError
from policygraph.model.domain import Domain
from policygraph.model.measure import Measure

__all__ = ["count_measure"]


def count_measure(
    data: Any,
    domain: Domain,
    measure: Measure,
    *,
    unknown: Unknown = "error",
    columns: Mapping[str, str] | None = None,
    name: str | None = None,
) -> MeasuredCounts:
    """Count the records of a table into cells, and sum a measure over them.

    Parameters
    ----------
    data, domain, unknown, columns, name
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
    others = _read_rule(domain, unknown)
    if name is not None:
        named(name)
    source = open_source(data)
    tally = _Sums(source, domain, _find_columns(source, domain, columns), others)
    column, kind = _find_measure(source, measure)
    tally.level = level_sql(sql.name(column), kind, measure)
    fingerprint = source.fingerprint() if name is None else named(name)
    whole, totals, missed, empty = tally.both(domain.names if domain.size <= DENSE else ())
    rows = int(whole.sum())
    if missed and unknown != "drop":
        raise tally.misfit(rows + missed + empty, missed)
    if empty and measure.missing != "drop":
        raise DataError(
            f"{source.label}: {empty:,} of {rows + missed + empty:,} records have no number in {measure.column!r}. Give the measure a rule: "
            "missing='drop' leaves such records out, missing=0 counts them with 0.",
            code="measure.no-value",
            rows=empty,
        )
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


class _Sums(_Tally):
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
        joins = " ".join(join for plan in self.coders.values() for join in plan.joins)
        coded = f"SELECT r.y AS y, {', '.join(codes)} FROM (SELECT {raw}, {self.level} AS y FROM {TABLE}) AS r {joins}"
        kept = self.domain.project(names) if names else None
        index = "0"
        for name, size in () if kept is None else zip(kept.names, kept.shape, strict=True):
            index = f"({index} * {size} + c{self.domain.axis(name)})"
        strange = " OR ".join(f"c{i} IS NULL" for i in range(len(self.domain.names)))
        statement = (
            f"SELECT CASE WHEN {strange} THEN NULL ELSE {index} END AS cell, CAST(y IS NULL AS INTEGER) AS empty, count(*) AS n, "
            f"CAST(coalesce(sum(y), 0) AS BIGINT) AS total FROM ({coded}) GROUP BY 1, 2"
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


def _find_measure(source: Source, measure: Measure) -> tuple[str, str]:
    matches = [(at, kind) for shown, at, kind in source.columns if shown == measure.column]
    if len(matches) != 1:
        given = ", ".join(repr(shown) for shown, _, _ in source.columns[:12])
        raise DataError(
            f"{source.label}: {'no' if not matches else len(matches)} column {measure.column!r} for the measure. Its columns are {given}.",
            code="data.missing-column",
            columns=[shown for shown, _, _ in source.columns],
        )
    return matches[0]


def level_sql(value: str, kind: str, measure: Measure) -> str:
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
    'CASE WHEN x IS NOT NULL THEN least(greatest(CAST(x AS HUGEINT), 0), 9)::BIGINT END'
    """
    if measure.unit == 1 and kind not in WHOLE and max(abs(measure.lowest), abs(measure.highest)) > EXACT:
        raise DataError(
            f"the column {measure.column!r} is not of integers, and the range of {measure.column} goes beyond 2^53, where other numbers are rounded: expected a column of "
            "integers, or a coarser unit.",
            code="data.inexact",
        )
    levels = [_level(one, its, measure) for one, its in parts(value, kind)]
    made = levels[0] if len(levels) == 1 else f"coalesce({', '.join(levels)})"
    if isinstance(measure.missing, Fraction):
        made = f"coalesce({made}, {int(measure.missing / measure.unit)})"
    return made


def _level(value: str, kind: str, measure: Measure) -> str:
    low, high, unit = measure.lowest, measure.highest, measure.unit
    # Unsigned 128-bit numbers do not all fit a signed one, and the engine would say which one does not.
    if kind in WHOLE and kind != "UHUGEINT" and unit == 1:
        met, made = value, f"least(greatest(CAST({value} AS HUGEINT), {low}), {high})::BIGINT"
    else:
        shown = f"TRY_CAST({value} AS DOUBLE)"
        if kind == "VARCHAR":
            shown = f"TRY_CAST(trim({value}) AS DOUBLE)"
        elif is_number(kind) and kind != "FLOAT":
            shown = number(value, kind)
        met = f"(CASE WHEN isnan({shown}) THEN NULL ELSE {shown} END)"
        ends = [sql.literal(float(end)) for end in (measure.low, measure.high)]
        clipped = f"least(greatest({met}, {ends[0]}), {ends[1]})"
        factor = sql.literal(float(1 / unit))
        rounded = f"CAST(floor({clipped} * {factor} + {sql.literal(0.5)}) AS BIGINT)"
        made = f"least(greatest({rounded}, {low}), {high})"
    # greatest and least pass over NULL, so that a missing number would become an end of the range.
    return f"CASE WHEN {met} IS NOT NULL THEN {made} END"
