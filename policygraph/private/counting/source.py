"""Where records come from: files, frames, DuckDB relations. Owns :class:`Source` and ``open_source``.

Every source becomes one table in SQL, so that counting is one statement whatever the user hands in.
Imports ``errors`` and ``private.counting.sql``; duckdb is imported when a source is opened.
"""

from __future__ import annotations

import csv
import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy.typing as npt

from policygraph.errors import DataError, InputError
from policygraph.private.counting import sql

__all__ = ["TABLE", "Source", "connect", "named", "open_source"]

TABLE = "policygraph_source"
"""Name under which a source is read in SQL."""

BATCH = 1 << 18
CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
PACKED = (".gz", ".zst")

Stamp = tuple[str, int, int]
Ask = Callable[[str], Any]


@dataclass(frozen=True, eq=False, repr=False)
class Source:
    """Records that DuckDB can read, as often as needed.

    Attributes
    ----------
    label
        How errors name it.
    ask
        Gives the DuckDB relation of a SELECT over ``TABLE``.
    columns
        For each column its name as the user knows it, its name in the engine and its type there.
    textual
        Whether every value is text because the format has no types (CSV).
    stamps
        Name, size and time of change of the files behind it; empty for anything else.
    keep
        Objects that must live as long as the source.
    """

    label: str
    ask: Ask
    columns: tuple[tuple[str, str, str], ...]
    textual: bool = False
    stamps: tuple[Stamp, ...] = ()
    keep: tuple[Any, ...] = ()

    def run(self, statement: str) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Answer an SQL statement over ``TABLE`` whose columns are integers, batch by batch; NULL becomes -1."""
        import duckdb

        try:
            answer = self.ask(statement)
            # to_arrow_reader is the successor of fetch_record_batch, which DuckDB 2 gave up.
            read = getattr(answer, "to_arrow_reader", None) or answer.fetch_record_batch
            for batch in read(BATCH):
                yield {
                    name: (column.fill_null(-1) if column.null_count else column).to_numpy(
                        zero_copy_only=False
                    )
                    for name, column in zip(batch.schema.names, batch.columns, strict=True)
                }
        except duckdb.Error as cause:
            raise unreadable(self.label, cause) from cause
        self.check_unchanged()

    def rows_of(self, statement: str) -> list[tuple[Any, ...]]:
        """Answer an SQL statement with a small result, as a list of rows."""
        import duckdb

        try:
            rows: list[tuple[Any, ...]] = self.ask(statement).fetchall()
        except duckdb.Error as cause:
            raise unreadable(self.label, cause) from cause
        self.check_unchanged()
        return rows

    def check_unchanged(self) -> None:
        """Raise when a file was written to since the source was opened: its fingerprint would be another's."""
        if self.stamps != stamps_of([path for path, _, _ in self.stamps]):
            raise DataError(
                f"{self.label} changed while it was being counted: expected a file at rest. Count it again.",
                code="data.changed",
                value=self.label,
            )

    def fingerprint(self) -> str:
        """Name the data set by its content.

        Notes
        -----
        Files: SHA-256 of their bytes (of the sorted list of digests, so that neither the names nor the order of several
        files matter). It covers every column, also those that no policy reads: two policies over one file
        then charge one budget. Anything else: the row count and the sum over rows of a 64-bit half of the MD5
        of all columns as text, columns sorted by name, so that the order of rows and columns, and the width
        of number types, do not matter. MD5 rather than the engine's own hash, since that one changes between versions
        of the engine, and an upgrade would look like new data. It guards against mistakes: who
        wants to pass one data set off as two can always copy it, so the ledger trusts its curator in this.
        """
        if self.stamps:
            digests = []
            for path, _, _ in self.stamps:
                with Path(path).open("rb") as file:
                    digests.append(hashlib.file_digest(file, "sha256").hexdigest())
            self.check_unchanged()
            return _digest("files", *sorted(digests))
        listed = sorted(self.columns)
        texts = [f"coalesce(CAST({sql.name(column)} AS VARCHAR), chr(30))" for _, column, _ in listed]
        row = f"md5_number_lower(concat_ws(chr(31), {', '.join(texts)}))"
        statement = f"SELECT count(*), CAST(coalesce(sum(CAST({row} AS HUGEINT)), 0) AS VARCHAR) FROM {TABLE}"
        [(count, total)] = self.rows_of(statement)
        return _digest("rows", *(given for given, _, _ in listed), str(count), str(total))


def named(name: str) -> str:
    """Fingerprint of a data set that its curator has named.

    Examples
    --------
    >>> named("survey 2024") == named("survey 2024") != named("survey 2025")
    True
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(
            f"name={name!r}: expected the name of the data set as text.", code="data.name", value=name
        )
    return _digest("name", name)


def _digest(*parts: str) -> str:
    whole = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        whole.update(len(raw).to_bytes(8, "big") + raw)
    return whole.hexdigest()


def connect() -> Any:
    """Open a private DuckDB in memory that need not keep rows in order."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = false")
    return connection


def unreadable(label: str, cause: Exception) -> DataError:
    """Return the error for what the engine could not read, without the options of the engine that nobody here can set."""
    text = str(cause)
    found = re.search(r"Line: (\d+)", text)
    near = f" near line {found.group(1)}" if found else ""
    if "utf-8" in text.lower() or "unicode" in text.lower():
        text = f"it is not UTF-8 text{near}. Save it as UTF-8."
    elif "Expected Number of Columns" in text:
        text = f"its lines are of unequal length{near}. Give every line a value for each column."
    elif "CSV Error" in text or "sniffing" in text:
        text = f"the engine cannot make out its lines and columns{near}. Look for quotes that are not closed, and for lines "
        text += "with more or fewer values than there are columns."
    return DataError(f"{label} cannot be read: {text}", code="data.unreadable", value=label)


def uneven_line(path: str, delimiter: str) -> int | None:
    """Find the first line of a CSV file that has another number of values than the first; None if there is none."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            lines = csv.reader(file, delimiter=delimiter)
            width = len(next(lines, []))
            return next((lines.line_num for fields in lines if fields and len(fields) != width), None)
    except (OSError, UnicodeDecodeError, csv.Error):
        return None


def stamps_of(paths: list[str]) -> tuple[Stamp, ...]:
    """Name, size and time of change of files."""
    out = []
    for path in paths:
        try:
            found = os.stat(path)
        except OSError as cause:
            raise DataError(
                f"{path}: no such file, or not readable.", code="data.no-file", value=path
            ) from cause
        out.append((path, found.st_size, found.st_mtime_ns))
    return tuple(out)


def open_source(data: Any) -> Source:
    """Make a source of anything that can be counted.

    Parameters
    ----------
    data
        A path, a pattern or a list of paths (CSV, Parquet, or another file that DuckDB reads);
        ``duckdb://file.db?table=name``; a pair of a DuckDB connection and a SELECT; a DuckDB relation; or a frame
        (pandas, polars, Arrow, or any object with the Arrow stream or the dataframe interchange interface).

    Raises
    ------
    DataError
        When there is nothing to read.
    """
    if isinstance(data, str) and data.startswith("duckdb://"):
        return _from_database(data)
    if isinstance(data, (str, os.PathLike)):
        return _from_files(*resolve(os.fspath(data)))
    if isinstance(data, list) and data and all(isinstance(item, (str, os.PathLike)) for item in data):
        paths = [path for item in data for path in resolve(os.fspath(item))[1]]
        return _from_files(f"{len(paths)} files", paths)
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], str) and hasattr(data[0], "sql"):
        return selected("the query", data[0], data[1].strip().rstrip(";"))
    if hasattr(data, "query") and hasattr(data, "fetchall") and hasattr(data, "types"):
        return source_of("the relation", lambda statement: data.query(TABLE, statement), keep=(data,))
    from policygraph.private.counting.frames import from_frame

    return from_frame(data)


def selected(label: str, connection: Any, select: str, **more: Any) -> Source:
    """Make a source of a SELECT; as part of each statement, so that nothing is created in the user's database."""

    def ask(statement: str) -> Any:
        return connection.sql(f"WITH {TABLE} AS NOT MATERIALIZED ({select}) {statement}")

    return source_of(label, ask, keep=(connection,), **more)


def source_of(label: str, ask: Ask, **more: Any) -> Source:
    """Make a source of the way to ask it."""
    import duckdb

    try:
        relation = ask(f"SELECT * FROM {TABLE}")
        columns = tuple(
            (name, name, str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)
        )
    except duckdb.Error as cause:
        raise unreadable(label, cause) from cause
    return Source(label, ask, columns, **more)


def _from_database(address: str) -> Source:
    import duckdb

    parts = urlsplit(address)
    path = unquote(parts.netloc + parts.path)
    tables = parse_qs(parts.query).get("table", [])
    if len(tables) != 1 or not path:
        raise DataError(
            f"{address}: expected duckdb://file.db?table=name.", code="data.address", value=address
        )
    stamps_of([path])
    label = f"{path}, table {tables[0]}"
    connection = connect()
    try:
        connection.execute(f"ATTACH {sql.literal(path)} AS given (READ_ONLY)")
    except duckdb.Error as cause:
        raise unreadable(label, cause) from cause
    return selected(label, connection, f"SELECT * FROM given.{sql.name(tables[0])}")


def resolve(given: str) -> tuple[str, list[str]]:
    """Find the files behind a path or a pattern; return how to call them, and their paths."""
    path = os.path.expanduser(given)
    if "://" in path or os.path.exists(path):
        return given, [path]
    found = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not found:
        raise DataError(
            f"{given}: no such file. Give the path of a CSV or Parquet file.",
            code="data.no-file",
            value=given,
        )
    return given, found


def suffix_of(path: str) -> str:
    """Kind of a file by its name, compression aside."""
    plain = Path(urlsplit(path).path if "://" in path else path)
    return plain.with_suffix("").suffix.lower() if plain.suffix.lower() in PACKED else plain.suffix.lower()


def _from_files(label: str, paths: list[str]) -> Source:
    kinds = {suffix_of(path) for path in paths}
    local = all("://" not in path for path in paths)
    stamps = stamps_of(paths) if local else ()
    for path in paths if local else []:
        if os.path.isdir(path):
            raise DataError(
                f"{path} is a folder: expected a file, or a pattern such as {path.rstrip('/')}/*.parquet.",
                code="data.no-file",
                value=path,
            )
    if len(kinds) > 1:
        raise DataError(
            f"{label}: files of several kinds ({', '.join(sorted(kinds))}): expected one kind.",
            code="data.format",
            value=label,
        )
    kind = next(iter(kinds))
    listed = escaped(paths)
    if kind in CSV:
        return csv_source(label, paths)
    if kind in PARQUET:
        text = f"SELECT * FROM read_parquet({listed}, union_by_name = {str(len(paths) > 1).lower()})"
    elif kind in (".json", ".ndjson", ".jsonl"):
        text = f"SELECT * FROM read_json({listed})"
    else:
        raise DataError(
            f"{label}: a file of kind {kind or 'without suffix'!r}: expected .csv, .tsv, .txt, .parquet, .pq, .json or "
            "duckdb://file.db?table=name. Other sources can be given as a DuckDB connection and a SELECT.",
            code="data.format",
            value=label,
        )
    return selected(label, connect(), text, stamps=stamps)


def escaped(paths: list[str]) -> str:
    """Write paths as an SQL list; the engine expands patterns itself, so [ and * in names are escaped."""
    return sql.listing([path if "://" in path else glob.escape(path) for path in paths])


def read_csv(listed: str, *, header: bool, alone: bool) -> str:
    """Return the SELECT that reads CSV files as text.

    Guessing is switched off where a wrong guess would lose or change records: comment lines, lines skipped at
    the start, types, short lines. The delimiter and the quote are still found by the engine.
    """
    return (
        f"SELECT * FROM read_csv({listed}, header = {str(header).lower()}, all_varchar = true, skip = 0, "
        "comment = '', null_padding = false, ignore_errors = false, strict_mode = true, "
        f"union_by_name = {str(not alone).lower()})"
    )


def first_line(paths: list[str]) -> tuple[Any, ...]:
    """Return the fields of the first line of a CSV file, () when it has none."""
    import duckdb

    # A connection of its own, since only one that keeps rows in order gives the first one first.
    try:
        with duckdb.connect() as connection:
            rows = connection.sql(read_csv(escaped(paths[:1]), header=False, alone=True)).limit(1).fetchall()
    except duckdb.Error as cause:
        raise unreadable(paths[0], cause) from cause
    return tuple(rows[0]) if rows else ()


def csv_source(label: str, paths: list[str], *, header: bool = True) -> Source:
    """Make a source of CSV files, all of whose values are text."""
    stamps = stamps_of(paths) if all("://" not in path for path in paths) else ()
    if stamps and all(size == 0 for _, size, _ in stamps):
        raise DataError(
            f"{label} is empty: expected a line with the names of the columns.",
            code="data.empty",
            value=label,
        )
    alone = len(paths) == 1
    text = read_csv(escaped(paths), header=header, alone=alone)
    source = selected(label, connect(), text, textual=True, stamps=stamps)
    if not alone or not header:
        return source
    # The engine renames a second column of the same name; the first line tells what stood in the file.
    names = [str(value).strip() for value in first_line(paths)]
    if len(names) != len(source.columns):
        return source
    columns = tuple((name, at, kind) for name, (_, at, kind) in zip(names, source.columns, strict=True))
    return Source(label, source.ask, columns, True, stamps, source.keep)
