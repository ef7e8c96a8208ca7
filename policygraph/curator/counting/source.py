"""Where records come from, seen by the engine. Owns :class:`Source`, and the locked DuckDB behind it.

Every source becomes one table in SQL, so that counting is one statement whatever the user hands in. Nothing about a record is guessed from the
rows: reading is a part of the mechanism, and one record more may change one count only.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from policygraph.arrow import to_numpy
from policygraph.curator.counting import sql
from policygraph.curator.counting.dialect import DUCKDB, Dialect
from policygraph.curator.counting.reading import suffix_of
from policygraph.curator.counting.values import family, told_apart
from policygraph.curator.histogram import digest
from policygraph.errors import DataError

TABLE = "policygraph_source"
"""Name under which a source is read in SQL."""

BATCH = 1 << 18
Stamp = tuple[str, int, int, int]
Ask = Callable[[str], Any]
Explain = Callable[[Exception], DataError | None]


class Engine(Protocol):
    """Where records lie and are counted. It answers SELECTs over ``TABLE``, written in its dialect; the answers are all that leaves it.

    Attributes
    ----------
    dialect
        Its words.
    """

    @property
    def dialect(self) -> Dialect:
        """Its words."""

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The exceptions by which it says that a statement failed."""

    def batches(self, statement: str) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Answer a SELECT of whole numbers with arrays by name, batch by batch; NULL becomes -1."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Answer with a few rows."""


def arrays_of(batch: Any) -> dict[str, npt.NDArray[Any]]:
    """The columns of an Arrow record batch by name; NULL becomes -1."""
    return {
        name: to_numpy(column.fill_null(-1) if column.null_count else column)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }


@dataclass(frozen=True)
class Embedded:
    """DuckDB in this process: ``ask`` gives the relation of a SELECT over ``TABLE``."""

    ask: Ask
    dialect: Dialect = DUCKDB

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors of DuckDB."""
        import duckdb

        return (duckdb.Error,)

    def arrow(self, statement: str) -> Iterator[Any]:
        """Answer with Arrow record batches, of columns of any type."""
        answer = self.ask(statement)
        # to_arrow_reader is the successor of fetch_record_batch, which DuckDB 2 gave up.
        yield from (getattr(answer, "to_arrow_reader", None) or answer.fetch_record_batch)(BATCH)

    def batches(self, statement: str) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Answer with arrays by name, batch by batch."""
        yield from map(arrays_of, self.arrow(statement))

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Answer with a few rows."""
        found: list[tuple[Any, ...]] = self.ask(statement).fetchall()
        return found


@dataclass(frozen=True, eq=False, repr=False)
class Source:
    """Records that an engine can read, as often as needed.

    Attributes
    ----------
    label
        How errors name it.
    engine
        What counts them.
    columns
        For each column its name as the user knows it, its name in the engine and its kind (``counting.values``).
    textual
        Whether every value is text because the format has no types (CSV).
    stamps
        Name, size, time of change and inode of the files behind it; empty for anything else.
    keep
        Objects that must live as long as the source.
    records
        How many records there are, where that was counted when the source was opened.
    explain
        Finds the place of what the engine could not read.
    folders
        For each file what its folders say, where they are columns.
    loose
        Whether the names of the columns come from the records (JSON), so that one record more may add some.
    guessed
        Whether its first line was taken for names of columns because it names no nodes; it may be a record.
    failure
        What is wrong with the records; raised when they are first asked for, so that a wrong column is told before.
    times
        Names in the engine of columns that are texts here, and times of a day there.
    """

    label: str
    engine: Engine
    columns: tuple[tuple[str, str, str], ...]
    textual: bool = False
    stamps: tuple[Stamp, ...] = ()
    keep: tuple[Any, ...] = ()
    records: int | None = None
    explain: Explain | None = None
    failure: DataError | None = None
    folders: tuple[str, ...] = ()
    loose: bool = False
    guessed: bool = False
    times: frozenset[str] = frozenset()

    def run(self, statement: str) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Answer an SQL statement over ``TABLE`` whose columns are integers, batch by batch; NULL becomes -1."""
        self.check_readable()
        try:
            yield from self.engine.batches(statement)
        except self.engine.failures as cause:
            raise self._unreadable(cause) from cause
        self.check_unchanged()

    def explained(self, function: Callable[[], Any]) -> Any:
        """Call a function of the engine; what the engine cannot do is told as for a statement."""
        self.check_readable()
        try:
            made = function()
        except self.engine.failures as cause:
            raise self._unreadable(cause) from cause
        self.check_unchanged()
        return made

    def _unreadable(self, cause: Exception) -> DataError:
        return (self.explain(cause) if self.explain is not None else None) or unreadable(self.label, cause)

    def rows_of(self, statement: str) -> list[tuple[Any, ...]]:
        """Answer an SQL statement with a small result, as a list of rows."""
        self.check_readable()
        try:
            rows = self.engine.rows(statement)
        except self.engine.failures as cause:
            raise self._unreadable(cause) from cause
        self.check_unchanged()
        return rows

    def check_readable(self) -> None:
        """Raise when the records are known to be malformed."""
        if self.failure is not None:
            raise self.failure

    def check_unchanged(self) -> None:
        """Raise when a file was written to since the source was opened: its fingerprint would be another's."""
        if self.stamps != stamps_of([path for path, *_ in self.stamps]):
            raise DataError(
                f"{self.label} changed while it was being counted: expected a file at rest. Count it again.",
                code="data.changed",
                value=self.label,
            )

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """SHA-256 of each file behind it, in the order of its stamps."""
        found = []
        for path, *_ in self.stamps:
            with Path(path).open("rb") as file:
                found.append(hashlib.file_digest(file, "sha256").hexdigest())
        self.check_unchanged()
        return tuple(found)

    def details(self) -> list[str]:
        """What the records depend on beside :meth:`fingerprint`, which is for accounts: the same for the same records, wherever they lie.

        Notes
        -----
        Folders that are columns are records too: ``sex=F`` may become ``sex=M`` while no byte of a file changes. And 1.0 in a column of
        numbers is the label 1, where the text "1.0" is not.
        """
        if not self.stamps:
            return ["columns", *(f"{name!r}: {family(kind)}" for name, _, kind in sorted(self.columns))]
        kinds = sorted({suffix_of(path) for path, *_ in self.stamps})
        folders = self.folders or ("",) * len(self.stamps)
        return [
            "files",
            *kinds,
            *sorted(f"{each} {at}" for each, at in zip(self.digests, folders, strict=True)),
        ]

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
            return digest("files", *sorted(self.digests))
        listed = sorted(self.columns)
        dialect = self.engine.dialect
        texts = [told_apart(sql.name(column), kind, dialect) for _, column, kind in listed]
        statement = f"SELECT count(*), {dialect.digest_total(' || '.join(texts))} FROM {TABLE}"
        [(count, total)] = self.rows_of(statement)
        return digest("rows, told apart", *(given for given, _, _ in listed), str(count), str(total))


def connect() -> Any:
    """Open a private DuckDB in memory that need not keep rows in order and never loads code from elsewhere."""
    import duckdb

    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    connection.execute("SET preserve_insertion_order = false")
    # Times with a zone are printed in this one, on every machine.
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def locked(connection: Any, paths: Sequence[str] = ()) -> Any:
    """Shut a private DuckDB off from all files but some, for good."""
    # The engine expands patterns, and looks whether a pattern is allowed before it does.
    whole = [os.path.abspath(path) for path in paths]
    given = [*whole, *(glob.escape(path) for path in whole)]
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
    return DataError(f"{label} cannot be read: {text}", code="data.unreadable", value=label)


def check_plain(path: str) -> None:
    """Refuse a pipe or a device: data are read more than once, which neither can give."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "no ordinary file"
        raise DataError(
            f"{path} is {what}: expected a file, since data are read more than once. Write the data into a file, and give its path.",
            code="data.no-file",
            value=path,
        )


def stamps_of(paths: list[str]) -> tuple[Stamp, ...]:
    """Name, size, time of change and inode of files."""
    out = []
    for path in paths:
        try:
            found = os.stat(path)
        except (OSError, ValueError) as cause:
            raise DataError(
                f"{path}: no such file, or not readable.", code="data.no-file", value=path
            ) from cause
        out.append((path, found.st_size, found.st_mtime_ns, found.st_ino))
    return tuple(out)


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
    return Source(label, Embedded(ask), tuple(columns), **more)


def escaped(paths: list[str]) -> str:
    """Write paths as an SQL list; the engine expands patterns and ~ itself and knows addresses, so [ and * in names are escaped and paths are made whole."""
    return sql.listing([glob.escape(os.path.abspath(path)) for path in paths])
