"""Where records come from: files, frames, DuckDB relations. Owns :class:`Source` and ``open_source``.

Every source becomes one table in SQL, so that counting is one statement whatever the user hands in. Nothing about a record is guessed from the
rows: reading is a part of the mechanism, and one record more may change one count only.
Imports ``errors`` and its own folder; duckdb is imported when a source is opened.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy.typing as npt

from policygraph.errors import DataError, InputError
from policygraph.private.counting import sql
from policygraph.private.counting.reading import Files, local_path, suffix_of
from policygraph.private.counting.text import Sheet, as_utf8, packing_of, read_head, scan_csv
from policygraph.private.counting.values import SPLIT, WHOLE, mixed, told_apart

__all__ = ["TABLE", "Source", "connect", "locked", "named", "open_source"]

TABLE = "policygraph_source"
"""Name under which a source is read in SQL."""

BATCH = 1 << 18
CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
RECORDS = (".json", ".ndjson", ".jsonl")
NETWORK = ("http", "https", "s3", "s3a", "s3n", "gs", "gcs", "r2", "hf")
"""Addresses that the extension httpfs of the engine reads."""

Stamp = tuple[str, int, int]
Ask = Callable[[str], Any]
Explain = Callable[[Exception], DataError | None]


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
        For each column its name as the user knows it, its name in the engine and its kind (``counting.values``).
    textual
        Whether every value is text because the format has no types (CSV).
    stamps
        Name, size and time of change of the files behind it; empty for anything else.
    keep
        Objects that must live as long as the source.
    records
        How many records there are, where that was counted when the source was opened.
    explain
        Finds the place of what the engine could not read.
    failure
        What is wrong with the records; raised when they are first asked for, so that a wrong column is told before.
    """

    label: str
    ask: Ask
    columns: tuple[tuple[str, str, str], ...]
    textual: bool = False
    stamps: tuple[Stamp, ...] = ()
    keep: tuple[Any, ...] = ()
    records: int | None = None
    explain: Explain | None = None
    failure: DataError | None = None

    def run(self, statement: str) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Answer an SQL statement over ``TABLE`` whose columns are integers, batch by batch; NULL becomes -1."""
        import duckdb

        self.check_readable()
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
            raise self._unreadable(cause) from cause
        self.check_unchanged()

    def _unreadable(self, cause: Exception) -> DataError:
        return (self.explain(cause) if self.explain is not None else None) or unreadable(self.label, cause)

    def rows_of(self, statement: str) -> list[tuple[Any, ...]]:
        """Answer an SQL statement with a small result, as a list of rows."""
        import duckdb

        self.check_readable()
        try:
            rows: list[tuple[Any, ...]] = self.ask(statement).fetchall()
        except duckdb.Error as cause:
            raise self._unreadable(cause) from cause
        self.check_unchanged()
        return rows

    def check_readable(self) -> None:
        """Raise when the records are known to be malformed."""
        if self.failure is not None:
            raise self.failure

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
        of all columns as text, each after its length and with a sign of its own for no value, columns sorted by name, so that the order of
        rows and columns, and the width of number types, do not matter. MD5 rather than the engine's own hash, since that one changes between versions
        of the engine, and an upgrade would look like new data. It guards against mistakes: who
        wants to pass one data set off as two can always copy it, so the ledger trusts its curator in this.
        """
        self.check_readable()
        if self.stamps:
            digests = []
            for path, _, _ in self.stamps:
                with Path(path).open("rb") as file:
                    digests.append(hashlib.file_digest(file, "sha256").hexdigest())
            self.check_unchanged()
            return _digest("files", *sorted(digests))
        listed = sorted(self.columns)
        texts = [told_apart(sql.name(column), kind) for _, column, kind in listed]
        row = f"md5_number_lower(concat({', '.join(texts)}))"
        statement = f"SELECT count(*), CAST(coalesce(sum(CAST({row} AS HUGEINT)), 0) AS VARCHAR) FROM {TABLE}"
        [(count, total)] = self.rows_of(statement)
        return _digest("rows, told apart", *(given for given, _, _ in listed), str(count), str(total))


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
    """Open a private DuckDB in memory that need not keep rows in order and never loads code from elsewhere."""
    import duckdb

    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    connection.execute("SET preserve_insertion_order = false")
    return connection


def locked(connection: Any, paths: Sequence[str] = ()) -> Any:
    """Shut a private DuckDB off from all files but some, for good."""
    # The engine expands patterns, and looks whether a pattern is allowed before it does.
    given = [*paths, *(glob.escape(path) for path in paths)]
    connection.execute(f"SET allowed_paths = {sql.listing(given)}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def unreadable(label: str, cause: Exception) -> DataError:
    """Return the error for what the engine could not read, without the options of the engine that nobody here can set."""
    text = str(cause)
    found = re.search(r"Line: (\d+)", text)
    near = f" near line {found.group(1)}" if found else ""
    if "CSV Error" in text or "CSV Parser" in text or "sniffing" in text:
        text = f"the engine cannot make out its lines and columns{near}. Look for quotes that are not closed, and for lines "
        text += "with more or fewer values than there are columns."
    elif "utf-8" in text.lower() or "unicode" in text.lower():
        text = f"it is not UTF-8 text{near}. Save it as UTF-8."
    return DataError(f"{label} cannot be read: {text}", code="data.unreadable", value=label)


def stamps_of(paths: list[str]) -> tuple[Stamp, ...]:
    """Name, size and time of change of files."""
    out = []
    for path in paths:
        try:
            found = os.stat(path)
        except (OSError, ValueError) as cause:
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
        A path, a pattern, a folder or a list of paths (CSV, Parquet or JSON), or :class:`Files` with them; ``duckdb://file.db?table=name``;
        a pair of a DuckDB connection and a SELECT; a DuckDB relation; or a frame (pandas, polars, Arrow, or any object with the Arrow stream or the
        dataframe interchange interface).

    Raises
    ------
    DataError
        When there is nothing to read.
    """
    if isinstance(data, str) and data[:9].lower() == "duckdb://":
        return _from_database(data)
    if isinstance(data, (str, os.PathLike)) or _are_paths(data):
        data = Files(data)
    if isinstance(data, Files):
        if isinstance(data.data, str) and data.data[:9].lower() == "duckdb://":
            if data.options():
                raise InputError(
                    f"{data.data}: {', '.join(data.options())} are about text files: expected none for a DuckDB table.",
                    code="data.options",
                    value=data.options(),
                )
            return _from_database(data.data)
        return _from_files(data, *resolve_all(data))
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], str) and hasattr(data[0], "sql"):
        return selected("the query", data[0], data[1].strip().rstrip(";"))
    if hasattr(data, "query") and hasattr(data, "fetchall") and hasattr(data, "types"):
        return source_of("the relation", lambda statement: data.query(TABLE, statement), keep=(data,))
    from policygraph.private.counting.frames import from_frame

    return from_frame(data)


def _are_paths(data: Any) -> bool:
    return (
        isinstance(data, list) and bool(data) and all(isinstance(item, (str, os.PathLike)) for item in data)
    )


def selected(label: str, connection: Any, select: str, **more: Any) -> Source:
    """Make a source of a SELECT; as part of each statement, so that nothing is created in the user's database."""

    def ask(statement: str) -> Any:
        return connection.sql(f"WITH {TABLE} AS NOT MATERIALIZED ({select}) {statement}")

    more["keep"] = (connection, *more.get("keep", ()))
    return source_of(label, ask, **more)


def source_of(
    label: str, ask: Ask, columns: Sequence[tuple[str, str, str]] | None = None, **more: Any
) -> Source:
    """Make a source of the way to ask it."""
    import duckdb

    if columns is None:
        try:
            relation = ask(f"SELECT * FROM {TABLE}")
            columns = [
                (name, name, str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)
            ]
        except duckdb.Error as cause:
            raise unreadable(label, cause) from cause
    return Source(label, ask, tuple(columns), **more)


def _from_database(address: str) -> Source:
    """Read a base table of a DuckDB file; a view could run anything, and read other files."""
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
        connection.execute(f"ATTACH {sql.literal(path)} AS given (TYPE duckdb, READ_ONLY)")
        locked(connection)
        wanted = sql.literal(tables[0])
        where = f"database_name = 'given' AND schema_name = 'main' AND lower({{}}) = lower({wanted})"
        found = connection.execute(
            f"SELECT 'table' FROM duckdb_tables() WHERE {where.format('table_name')} UNION ALL "
            f"SELECT 'view' FROM duckdb_views() WHERE {where.format('view_name')}"
        ).fetchall()
    except duckdb.Error as cause:
        raise unreadable(label, cause) from cause
    if found != [("table",)]:
        raise DataError(
            f"{address}: {'a view' if found else 'no table'} {tables[0]!r}: expected a base table. "
            + (
                "A view runs a query, which may read anything: make a table of it, or give a DuckDB connection and a SELECT."
                if found
                else ""
            ),
            code="data.view" if found else "data.unreadable",
            value=tables[0],
        )
    return selected(label, connection, f"SELECT * FROM given.main.{sql.name(tables[0])}")


def resolve(given: str) -> tuple[str, list[str]]:
    """Find the files behind a path, a pattern, a folder or an address; return how to call them, and their paths."""
    path = local_path(given)
    if "://" in path and not os.path.exists(path):
        return given, [path]
    path = os.path.expanduser(path)
    if os.path.isdir(path):
        found = _inside(path)
    elif os.path.exists(path):
        return given, [path]
    else:
        found = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not found:
        raise DataError(
            f"{given}: no such file. Give the path of a CSV or Parquet file.",
            code="data.no-file",
            value=given,
        )
    return given, found


def _inside(folder: str) -> list[str]:
    """All files of a folder and of those in it, but for hidden ones and those whose name starts with a line, which are notes of programs."""
    found = []
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        linked = [name for name in folders if os.path.islink(os.path.join(here, name))]
        if linked:
            raise DataError(
                f"{os.path.join(here, linked[0])} is a link to a folder: expected its files in one place. Remove the link, or give a list of files.",
                code="data.linked",
                value=linked[0],
            )
        found += [os.path.join(here, name) for name in sorted(names) if not name.startswith((".", "_"))]
    return found


def resolve_all(files: Files) -> tuple[str, list[str]]:
    """Find all files; no file twice, be it under another name."""
    if isinstance(files.data, (str, os.PathLike)):
        label, paths = resolve(os.fspath(files.data))
    else:
        paths = [path for item in files.data for path in resolve(os.fspath(item))[1]]
        label = f"{len(paths)} files"
    met: dict[tuple[int, int] | str, str] = {}
    for path in paths:
        remote = "://" in path and not os.path.exists(path)
        if not remote:
            stamps_of([path])
            if os.path.isdir(path) or not os.path.isfile(path):
                raise DataError(
                    f"{path} is {'a folder' if os.path.isdir(path) else 'no plain file'}: expected a file, or a pattern such as "
                    f"{path.rstrip('/')}/*.parquet.",
                    code="data.no-file",
                    value=path,
                )
        at = os.stat(path) if not remote else None
        key = path if at is None else (at.st_dev, at.st_ino)
        if key in met:
            raise DataError(
                f"{path} and {met[key]} are one file: expected each file once, since its records would be counted twice. "
                + ("Leave one name out." if met[key] != path else "Name it once."),
                code="data.linked",
                value=path,
            )
        met[key] = path
    return label, paths


def _fetched(address: str) -> tuple[str, Any]:
    """Copy what an address of the network names into a file that lives as long as the second value."""
    import duckdb

    scheme = address.partition("://")[0].lower()
    connection = connect()
    try:
        if scheme not in NETWORK:
            raise duckdb.Error(f"addresses of kind {scheme}")
        connection.execute("LOAD httpfs")
    except duckdb.Error as cause:
        raise DataError(
            f"{address}: reading from the network needs the extension httpfs of DuckDB, which is not installed here, and nothing is installed by itself. "
            "Download the file and give its path, or give a DuckDB connection and a SELECT.",
            code="data.network",
            value=address,
        ) from cause
    try:
        [(content,)] = connection.execute(f"SELECT content FROM read_blob({escaped([address])})").fetchall()
    except (duckdb.Error, ValueError) as cause:
        raise unreadable(address, cause) from cause
    keep = tempfile.TemporaryDirectory(prefix="policygraph-")
    path = os.path.join(keep.name, "copy" + "".join(Path(urlsplit(address).path).suffixes[-2:]))
    Path(path).write_bytes(content)
    return path, keep


def _from_files(files: Files, label: str, paths: list[str]) -> Source:
    kinds = {suffix_of(path) for path in paths}
    if (
        len(kinds) > 1
        and isinstance(files.data, (str, os.PathLike))
        and os.path.isdir(local_path(os.fspath(files.data)))
    ):
        raise DataError(
            f"{label} is a folder with files of several kinds: expected a file, or a pattern such as {label.rstrip('/')}/*.parquet.",
            code="data.no-file",
            value=label,
        )
    if len(kinds) > 1:
        raise DataError(
            f"{label}: files of several kinds ({', '.join(sorted(kinds))}): expected one kind.",
            code="data.format",
            value=label,
        )
    kind = next(iter(kinds))
    if kind not in (*CSV, *PARQUET, *RECORDS):
        raise DataError(
            f"{label}: a file of kind {kind or 'without suffix'!r}: expected .csv, .tsv, .txt, .parquet, .pq, .json or "
            "duckdb://file.db?table=name. Other sources can be given as a DuckDB connection and a SELECT.",
            code="data.format",
            value=label,
        )
    if kind not in CSV:
        _only(files, label, ("hive",))
    paths, keep = fetched(paths)
    if kind in CSV:
        return csv_source(files, label, paths, keep=keep)
    if kind in PARQUET:
        return _parquet_source(files, label, paths, keep)
    from policygraph.private.counting.records import json_source

    return json_source(files, label, paths, keep)


def fetched(paths: list[str]) -> tuple[list[str], tuple[Any, ...]]:
    """Paths with those of the network replaced by copies, and what keeps the copies."""
    out, keep = [], []
    for path in paths:
        if "://" in path and not os.path.exists(path):
            path, held = _fetched(path)
            keep.append(held)
        out.append(path)
    return out, tuple(keep)


def _only(files: Files, label: str, names: tuple[str, ...]) -> None:
    wrong = [name for name in files.options() if name not in names]
    if wrong:
        raise InputError(
            f"{label}: {', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} about CSV: expected none for this kind of file.",
            code="data.options",
            value=wrong,
        )


def escaped(paths: list[str]) -> str:
    """Write paths as an SQL list; the engine expands patterns itself, so [ and * in names are escaped."""
    return sql.listing([path if "://" in path else glob.escape(path) for path in paths])


def folder_columns(files: Files, path: str) -> dict[str, str]:
    """Columns that the names of folders give, where that is declared: ``year=2024`` in the path."""
    if not files.hive:
        return {}
    pairs = [part.partition("=") for part in Path(path).parent.parts if "=" in part]
    return {unquote(name): unquote(value) for name, _, value in pairs}


def united(
    files: Files, label: str, parts: Sequence[tuple[str, str, Sequence[tuple[str, str, str]]]]
) -> tuple[str, list[tuple[str, str, str]]]:
    """Put files together: each with its path, its FROM clause and its columns. Return a SELECT and its columns.

    The columns of all files must have the same names. A column that has another type in another file is kept as mixed values, since a common type would
    change values.
    """
    whole: list[tuple[str, str, list[tuple[str, str, str]]]] = []
    for path, clause, columns in parts:
        more = [(name, sql.literal(value), "VARCHAR") for name, value in folder_columns(files, path).items()]
        whole.append((path, clause, [*((shown, sql.name(at), kind) for shown, at, kind in columns), *more]))
    first = sorted(shown for shown, _, _ in whole[0][2])
    for path, _, columns in whole[1:]:
        names = sorted(shown for shown, _, _ in columns)
        if names != first:
            odd = sorted(set(names) ^ set(first)) or names
            raise DataError(
                f"{label}: {whole[0][0]} and {path} have different columns ({', '.join(map(repr, odd[:8]))}): expected the same names in every file.",
                code="data.columns-differ",
                value=odd,
            )
    order = [shown for shown, _, _ in whole[0][2]]
    if len(set(order)) < len(order) and len(whole) > 1:
        raise DataError(
            f"{label}: a name of a column occurs twice: expected each name once where several files are read.",
            code="data.columns-differ",
            value=order,
        )
    kinds = [
        _common({kind for _, _, columns in whole for shown, _, kind in columns if shown == name})
        for name in order
    ]
    if len(set(order)) < len(order):
        kinds = [kind for _, _, kind in whole[0][2]]
    selects = []
    for _, clause, columns in whole:
        at = {shown: (place, kind) for shown, place, kind in columns} if len(whole) > 1 else None
        picked = (
            [at[shown] for shown in order]
            if at is not None
            else [(place, kind) for _, place, kind in columns]
        )
        fields = [
            f"{mixed(place, kind) if common == SPLIT else place} AS c{i}"
            for i, ((place, kind), common) in enumerate(zip(picked, kinds, strict=True))
        ]
        selects.append(f"SELECT {', '.join(fields) or '1 AS nothing'} FROM {clause}")
    return " UNION ALL ".join(selects), [
        (shown, f"c{i}", kind) for i, (shown, kind) in enumerate(zip(order, kinds, strict=True))
    ]


def _common(kinds: set[str]) -> str:
    """Kind of a column that has these in several files."""
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds <= WHOLE - {"UHUGEINT"}:
        return "HUGEINT"
    if all(kind == "VARCHAR" or kind.startswith("ENUM") for kind in kinds):
        return "VARCHAR"
    return SPLIT


def _parquet_source(files: Files, label: str, paths: list[str], keep: tuple[Any, ...]) -> Source:
    import duckdb

    connection = locked(connect(), paths)
    groups: dict[tuple[Any, ...], list[str]] = {}
    for path in paths:
        try:
            found = connection.sql(f"SELECT * FROM {_parquet([path])}")
            columns = tuple(
                (name, name, str(kind)) for name, kind in zip(found.columns, found.types, strict=True)
            )
        except duckdb.Error as cause:
            raise unreadable(path, cause) from cause
        groups.setdefault((columns, tuple(folder_columns(files, path).items())), []).append(path)
    parts = [(some[0], _parquet(some), columns) for (columns, _), some in groups.items()]
    select, columns = united(files, label, parts)
    return selected(label, connection, select, columns=columns, stamps=stamps_of(paths), keep=keep)


def _parquet(paths: list[str]) -> str:
    return (
        f"read_parquet({escaped(paths)}, hive_partitioning = false, union_by_name = false, filename = false)"
    )


def csv_source(
    files: Files, label: str, paths: list[str], *, header: bool = True, keep: tuple[Any, ...] = ()
) -> Source:
    """Make a source of CSV files, all of whose values are text."""
    stamps = stamps_of(paths)
    sheets: list[tuple[str, Sheet]] = []
    failure: DataError | None = None
    for path, (_, size, _) in zip(paths, stamps, strict=True):
        if size == 0:
            raise _empty(label if len(paths) == 1 else path)
        copy, held = as_utf8(files, path)
        keep = keep if held is None else (*keep, held)
        sheet = read_head(copy, files, path)
        if not sheet.names:
            raise _empty(label if len(paths) == 1 else path)
        try:
            sheet = scan_csv(sheet, path)
        except DataError as cause:
            failure = failure or cause
        sheets.append((path, sheet))
    connection = locked(connect(), [sheet.path for _, sheet in sheets])
    groups: dict[tuple[Any, ...], list[tuple[str, Sheet]]] = {}
    for path, sheet in sheets:
        form = (sheet.names, sheet.delimiter, sheet.inner, packing_of(sheet.path))
        groups.setdefault((*form, tuple(folder_columns(files, path).items())), []).append((path, sheet))
    parts = []
    for some in groups.values():
        # Files without a header have columns by their number.
        names = [name.strip() if header else f"column{i}" for i, name in enumerate(some[0][1].names)]
        columns = [(name, f"c{i}", "VARCHAR") for i, name in enumerate(names)]
        parts.append((some[0][0], _read_csv([sheet for _, sheet in some], header=header), columns))
    select, columns = united(files, label, parts)
    records = sum(sheet.records - header for _, sheet in sheets)
    return selected(
        label,
        connection,
        select,
        columns=columns,
        textual=True,
        stamps=stamps,
        keep=keep,
        records=records,
        failure=failure,
    )


def _empty(label: str) -> DataError:
    return DataError(
        f"{label} is empty: expected a line with the names of the columns.", code="data.empty", value=label
    )


def _read_csv(sheets: list[Sheet], *, header: bool) -> str:
    """Return the FROM clause that reads CSV files of one form as text, all of whose options are given."""
    one = sheets[0]
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(one.names)))
    return (
        f"read_csv({escaped([sheet.path for sheet in sheets])}, auto_detect = false, header = {str(header).lower()}, columns = {{{columns}}}, "
        f"delim = {sql.literal(one.delimiter)}, quote = {sql.literal(one.quote)}, escape = {sql.literal(one.quote)}, skip = 0, comment = '', "
        "null_padding = false, ignore_errors = false, strict_mode = true, hive_partitioning = false, filename = false, "
        # Inside quotes a line break is none; only a reader that starts at the beginning is sure to know.
        f"compression = '{packing_of(one.path)}', parallel = {str(not one.inner).lower()})"
    )
