"""What the columns of a data set hold, for the curator who writes a policy. Owns :class:`ColumnProfile` and :func:`profile_columns`.

What it says has no noise. Labels that go from here into a policy file are published with it, which is for the curator to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from policygraph.curator.counting import sql
from policygraph.curator.counting.opening import open_source
from policygraph.curator.counting.source import TABLE, Source
from policygraph.curator.counting.values import plain, printed
from policygraph.errors import DataError

RARE = 10
"""Values of fewer records than this are named to the curator as rare."""
LISTED = 2000
"""Values of a column are listed up to so many different ones."""
SHARES = (0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True)
class ColumnProfile:
    """What one column holds.

    Attributes
    ----------
    name
        Its name.
    records
        How many records there are.
    missing
        How many of them have no value.
    distinct
        How many different values there are.
    numbers, wholes, days
        How many values are numbers, whole numbers, or days of the calendar.
    low, high
        Smallest and largest number, or day as 20240131; None if there is none.
    shares
        Numbers below which a fifth, two fifths, ... of the numbers lie.
    values
        All different values, in alphabetical order (numbers by size); None if they are too many.
    padded
        Whether a value is a numeral with a zero in front, such as 0101, which is a code and no number.
    rare
        The values that fewer than 10 records have; for the curator only.
    """

    name: str
    records: int
    missing: int
    distinct: int
    numbers: int = 0
    wholes: int = 0
    days: int = 0
    low: float | None = None
    high: float | None = None
    shares: tuple[float, ...] = ()
    values: tuple[str, ...] | None = None
    padded: bool = False
    rare: tuple[str, ...] = ()

    @property
    def present(self) -> int:
        """How many records have a value."""
        return self.records - self.missing


def columns_of(data: Any) -> tuple[Source, list[str]]:
    """Open data and name their columns; of a file with a header no record is looked at for this."""
    source = open_source(data)
    if not source.engine.dialect.embedded:
        raise DataError(
            "a policy is proposed from files and frames: expected a CSV, Parquet, JSON or Excel file. Save an extract of the table, for example as Parquet.",
            code="engine.data",
        )
    return source, [shown for shown, _, _ in source.columns]


def profile_columns(source: Source, names: Sequence[str]) -> list[ColumnProfile]:
    """Look at some columns, and at no others.

    Examples
    --------
    >>> import pyarrow
    >>> source, names = columns_of(pyarrow.table({"sex": ["F", "M", "F", None], "age": [7, 70, 31, 31]}))
    >>> [made] = profile_columns(source, ["age"])
    >>> made.distinct, made.wholes, made.low, made.high, made.values
    (3, 4, 7.0, 70.0, ('7', '31', '70'))
    """
    return [_profile(source, name) for name in names]


def _profile(source: Source, name: str) -> ColumnProfile:
    [(column, kind), *more] = [(at, kind) for shown, at, kind in source.columns if shown == name]
    if more:
        raise DataError(
            f"{source.label}: {len(more) + 1} columns {name!r}: expected each name once. Rename all but one.",
            code="data.columns-differ",
            value=name,
        )
    dialect = source.engine.dialect
    value, its = plain(sql.name(column), kind)
    whole = dialect.whole_of_text("v")
    grouped = f"SELECT v, count(*) AS n FROM (SELECT {printed(value, its, dialect)} AS v FROM {TABLE}) AS q GROUP BY v"
    spelled = f"SELECT v, n, {whole} AS w, {dialect.number_of_text('v')} AS x, {dialect.day_of_text('v')} AS d FROM ({grouped}) AS g"
    finite = "x > '-inf'::DOUBLE AND x < 'inf'::DOUBLE"
    [row] = source.rows_of(
        "SELECT CAST(sum(n) AS BIGINT), CAST(sum(CASE WHEN v IS NULL THEN n ELSE 0 END) AS BIGINT), count(v), "
        f"CAST(sum(CASE WHEN {finite} THEN n ELSE 0 END) AS BIGINT), CAST(sum(CASE WHEN w IS NOT NULL THEN n ELSE 0 END) AS BIGINT), "
        f"CAST(sum(CASE WHEN d IS NOT NULL THEN n ELSE 0 END) AS BIGINT), min(CASE WHEN {finite} THEN x END), max(CASE WHEN {finite} THEN x END), "
        f"min(d), max(d), coalesce(bool_or(regexp_matches(v, '^0[0-9]+$')), false) FROM ({spelled}) AS s"
    )
    records, missing, distinct, numbers, wholes, days = (int(each or 0) for each in row[:6])
    low, high = (row[8], row[9]) if days and not numbers else (row[6], row[7])
    shares: tuple[float, ...] = ()
    if numbers:
        [(found,)] = source.rows_of(
            f"SELECT quantile_disc(x, {list(SHARES)}) FROM (SELECT {dialect.number_of_text('v')} AS x FROM "
            f"(SELECT {printed(value, its, dialect)} AS v FROM {TABLE}) AS q) AS s WHERE {finite}"
        )
        shares = tuple(float(each) for each in found)
    values, rare = None, tuple[str, ...]()
    if distinct <= LISTED:
        rows = source.rows_of(f"SELECT v, n FROM ({spelled}) AS s WHERE v IS NOT NULL ORDER BY x, v")
        values = tuple(str(each) for each, _ in rows)
        rare = tuple(str(each) for each, many in rows if many < RARE)
    return ColumnProfile(
        name,
        records,
        missing,
        distinct,
        numbers,
        wholes,
        days,
        None if low is None else float(low),
        None if high is None else float(high),
        shares,
        values,
        bool(row[10]),
        rare,
    )


def each_once(source: Source, names: Sequence[str]) -> bool:
    """Whether no two records have the same values in some columns, as the rows of a table of counts.

    Examples
    --------
    >>> import pyarrow
    >>> source, _ = columns_of(pyarrow.table({"sex": ["F", "M", "F"], "age": [7, 7, 9]}))
    >>> each_once(source, ["sex", "age"]), each_once(source, ["sex"])
    (True, False)
    """
    columns = [sql.name(at) for shown, at, kind in source.columns if shown in names]
    listed = ", ".join(columns)
    return not source.rows_of(f"SELECT 1 FROM {TABLE} GROUP BY {listed} HAVING count(*) > 1 LIMIT 1")


def encoding_of(path: str) -> str | None:
    r"""Encoding to declare for a text file: None for UTF-8, else cp1252 if it has signs that Latin-1 lacks, else latin-1.

    A guess, for a proposal only: it is written into the policy file, where the curator sees it.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "a.csv")
    >>> with open(path, "wb") as file:
    ...     _ = file.write("town\nZürich\n".encode("latin-1"))
    >>> encoding_of(path)
    'latin-1'
    """
    import codecs

    from policygraph.curator.counting.text import blocks

    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    good, windows = True, False
    for block in blocks(path):
        try:
            if good:
                decoder.decode(block)
        except UnicodeDecodeError:
            good = False
        windows = windows or any(0x80 <= byte < 0xA0 for byte in set(block))
    return None if good else "cp1252" if windows else "latin-1"
