"""Tables of Postgres, counted by the server. Owns :func:`open_postgres`.

One transaction, read only and with one snapshot, from opening a table to the last count; only base tables; nothing depends on the settings of the server, the role or the database.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np
import numpy.typing as npt

from policygraph.curator.counting import sql
from policygraph.curator.counting.dialect import Dialect
from policygraph.curator.counting.engines.compiled import Portable, tree_of
from policygraph.curator.counting.reading import shown_data
from policygraph.curator.counting.source import TABLE, Source
from policygraph.curator.counting.values import OTHER
from policygraph.errors import DataError, InputError

FORM = "postgresql://user@host:5432/database/table"
OWN = ("dbname", "client_encoding", "replication")
"""Settings of a connection that an address cannot make: they could change what is read."""
SETTINGS = (
    "search_path = pg_catalog",
    "timezone = 'UTC'",
    "datestyle = 'ISO, YMD'",
    "intervalstyle = 'postgres'",
    "extra_float_digits = 1",
    "bytea_output = 'hex'",
    "standard_conforming_strings = on",
    "row_security = off",
)
BLOCK, HEADER = 1 << 22, 19
TEXTS = ("text", "varchar", "bpchar", "name", "char")
TIMES_OF_DAY = ("time", "timestamp", "timestamptz")
TIMES = ("date", *TIMES_OF_DAY, "uuid")
_COLUMNS = """
WITH RECURSIVE resolved(number, name, type) AS (
  SELECT attnum, attname, atttypid FROM pg_attribute WHERE attrelid = %(table)s AND attnum > 0 AND NOT attisdropped
  UNION ALL
  SELECT number, name, typbasetype FROM resolved JOIN pg_type ON pg_type.oid = type WHERE typtype = 'd'
)
SELECT name, CASE WHEN typtype = 'e' THEN 'text' WHEN typnamespace = 'pg_catalog'::regnamespace THEN typname ELSE 'another' END, format_type(type, NULL)
FROM resolved JOIN pg_type ON pg_type.oid = type WHERE typtype <> 'd' ORDER BY number
"""
_BELOW = """
WITH RECURSIVE below(id) AS (
  SELECT inhrelid FROM pg_inherits WHERE inhparent = %(table)s
  UNION SELECT inhrelid FROM pg_inherits JOIN below ON inhparent = id
)
SELECT relkind FROM below JOIN pg_class ON oid = id
"""


def open_postgres(address: str) -> Source:
    """Make a source of a table in Postgres.

    Parameters
    ----------
    address
        ``postgresql://user@host:5432/database/table``, the table with its schema if that is not ``public``. A password is better kept in PGPASSWORD or ``~/.pgpass``; no message shows it.

    Raises
    ------
    DataError
        For an address that cannot be read, a server that refuses, and anything but a base table.
    InputError
        When psycopg is not installed.
    """
    psycopg = _psycopg()
    place = _place(address)
    try:
        connection = psycopg.connect(**place.settings)
    except (psycopg.Error, ValueError) as cause:
        raise DataError(
            f"{place.label}: no connection to the server ({_first_line(cause, place)}). Nothing was read, and nothing was charged.",
            code="engine.refused",
            value=place.label,
        ) from cause
    engine = _Server(connection, place)
    weakref.finalize(engine, connection.close)
    try:
        columns = engine.begin(psycopg)
    except psycopg.Error as cause:
        raise engine.failed(cause) from cause
    return Source(place.label, engine, tuple(columns), explain=engine.failed, times=engine.times)


@dataclass(frozen=True)
class _Place:
    label: str
    schema: str
    table: str
    settings: dict[str, Any] = field(repr=False)


def _place(address: str) -> _Place:
    """Take an address apart; what cannot be read is shown without its secrets."""
    label = shown_data(address)
    wrong = DataError(f"{label}: expected an address such as {FORM}.", code="data.address", value=label)
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise wrong from None
    names = [unquote(part) for part in parts.path.split("/")[1:]]
    if len(names) != 2 or not all(names):
        raise wrong
    more = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in OWN:
        if name in more:
            raise DataError(
                f"{label}: {name} cannot be set in the address of data: expected settings such as sslmode.",
                code="data.address",
                value=name,
            )
    given = {
        "host": parts.hostname,
        "port": port,
        "user": parts.username and unquote(parts.username),
        "password": parts.password and unquote(parts.password),
    }
    schema, dot, table = names[1].rpartition(".")
    settings = {
        "connect_timeout": "30",
        **{key: value for key, value in given.items() if value},
        **more,
        "dbname": names[0],
        "client_encoding": "utf8",
    }
    return _Place(label, schema if dot else "public", table, settings)


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as cause:
        raise InputError(
            'the engine postgres is not installed: expected psycopg 3. Install it: pip install "policygraph[postgres]".',
            code="engine.missing",
            value="postgres",
        ) from cause
    return psycopg


def _first_line(cause: Exception, place: _Place) -> str:
    text = (str(cause).strip().splitlines() or [type(cause).__name__])[0].rstrip(".")
    password = place.settings.get("password")
    return text.replace(password, "***") if password else text


class _Server:
    """A connection inside its one transaction."""

    dialect: Dialect = Portable()

    def __init__(self, connection: Any, place: _Place) -> None:
        self.connection, self.place = connection, place
        self.select = ""
        self.times: frozenset[str] = frozenset()

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors of psycopg."""
        return (_psycopg().Error,)

    def failed(self, cause: Exception) -> DataError:
        """What the server could not do, in its words."""
        return DataError(
            f"{self.place.label} cannot be read: {_first_line(cause, self.place)}.",
            code="data.unreadable",
            value=self.place.label,
        )

    def begin(self, psycopg: Any) -> list[tuple[str, str, str]]:
        """Open the transaction, hold the table, and say what its columns are."""
        connection, place = self.connection, self.place
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        for setting in SETTINGS:
            connection.execute(f"SET LOCAL {setting}")
        name = f"{sql.name(place.schema)}.{sql.name(place.table)}"
        # A lock needs no snapshot: the one that all statements share is taken when nobody can change the table any more.
        try:
            connection.execute(f"LOCK TABLE {name} IN ACCESS SHARE MODE")
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as cause:
            raise self._no_table(psycopg) from cause
        except psycopg.errors.WrongObjectType:
            # No table, and perhaps a view that is kept: what it is, is told below.
            connection.rollback()
        table, kind, secured, encoding = connection.execute(
            "SELECT c.oid, relkind, relkind IN ('r', 'p') AND row_security_active(c.oid), getdatabaseencoding() FROM pg_catalog.pg_class c WHERE c.oid = %s::regclass",
            [name],
        ).fetchone()
        if kind in ("v", "m"):
            raise DataError(
                f"{place.label} is a view: expected a base table. A view runs a query, which may read anything: make a table of it.",
                code="data.view",
                value=place.label,
            )
        below = {kind for (kind,) in connection.execute(_BELOW, {"table": table}).fetchall()}
        if kind not in ("r", "p") or not below <= {"r", "p"}:
            raise self._refuse("or a part of it is kept elsewhere", "Expected a base table of this server.")
        if kind == "r" and below:
            raise self._refuse(
                "has tables that inherit from it", "Give one that has none, or make one table of them."
            )
        if secured:
            raise self._refuse("shows this role some of its rows only", "Ask with a role that sees all rows.")
        if encoding != "UTF8":
            raise self._refuse(f"is in a database with the encoding {encoding}", "Expected UTF8.")
        found = connection.execute(_COLUMNS, {"table": table}).fetchall()
        columns, fields = [], []
        for at, (column, kind, shown) in enumerate(found):
            value, its = _normal(sql.name(column), kind, shown)
            columns.append((column, f"c{at}", its))
            fields.append(f"{value} AS c{at}")
        self.times = frozenset(f"c{at}" for at, (_, kind, _) in enumerate(found) if kind in TIMES_OF_DAY)
        self.select = f"SELECT {', '.join(fields) or '1 AS nothing'} FROM {name}"
        return columns

    def _refuse(self, what: str, advice: str) -> DataError:
        return DataError(
            f"{self.place.label} {what}: expected otherwise, since it is then unclear which records are counted. {advice}",
            code="engine.table",
            value=self.place.label,
        )

    def _no_table(self, psycopg: Any) -> DataError:
        self.connection.rollback()
        rows = self.connection.execute(
            "SELECT relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = relnamespace "
            "WHERE nspname = %s AND relkind IN ('r', 'p') ORDER BY 1 LIMIT 13",
            [self.place.schema],
        ).fetchall()
        names = ", ".join(repr(name) for (name,) in rows[:12]) + (", ..." if len(rows) > 12 else "")
        return DataError(
            f"{self.place.label}: no table {self.place.table!r} in the schema {self.place.schema!r}. "
            + (f"Its tables are {names}." if rows else "It has no table."),
            code="data.unreadable",
            value=self.place.table,
        )

    def _whole(self, text: str) -> str:
        return f"WITH {TABLE} AS NOT MATERIALIZED ({self.select}) {text}"

    def batches(self, statement: str) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Answer a SELECT of whole numbers; it comes in the binary format of COPY, all values as 64-bit integers."""
        tree = tree_of(statement, "postgres")
        names = tree.named_selects
        listed = ", ".join(f"coalesce(CAST({name} AS bigint), -1)" for name in names)
        text = f"SELECT {listed} FROM ({tree.sql(dialect='postgres')}) AS answer"
        row = np.dtype(
            [
                ("fields", ">i2"),
                *(
                    (part, kind)
                    for at, _ in enumerate(names)
                    for part, kind in ((f"length{at}", ">i4"), (f"value{at}", ">i8"))
                ),
            ]
        )
        rest, begun = bytearray(), False
        with (
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY ({self._whole(text)}) TO STDOUT (FORMAT binary)") as copy,
        ):
            for block in copy:
                # The header: a signature, flags, and the length of what extends it.
                rest += block if begun else bytes(block)[HEADER:]
                begun = True
                if len(rest) >= BLOCK:
                    count = len(rest) // row.itemsize
                    yield _columns(np.frombuffer(bytes(rest), dtype=row, count=count), names)
                    del rest[: count * row.itemsize]
        # The last row has -1 fields, and two bytes only.
        yield _columns(np.frombuffer(bytes(rest), dtype=row, count=len(rest) // row.itemsize), names)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Answer with a few rows."""
        text = tree_of(statement, "postgres").sql(dialect="postgres")
        with self.connection.cursor() as cursor:
            # Without parameters, so that a percent sign is one.
            found: list[tuple[Any, ...]] = cursor.execute(self._whole(text), None).fetchall()
        return found


def _columns(rows: Any, names: list[str]) -> dict[str, npt.NDArray[Any]]:
    return {name: rows[f"value{at}"].astype(np.int64) for at, name in enumerate(names)}


def _normal(column: str, kind: str, shown: str) -> tuple[str, str]:
    """A column as one of the kinds that all engines know; times as the text that DuckDB prints."""
    if kind == "bool":
        return column, "BOOLEAN"
    if kind in ("int2", "int4", "int8"):
        return f"CAST({column} AS bigint)", "BIGINT"
    if kind in ("numeric", "float4", "float8"):
        return column, {"numeric": "DECIMAL", "float4": "FLOAT", "float8": "DOUBLE"}[kind]
    text = f'(CAST({column} AS text) COLLATE "C")'
    if kind in ("date", "timestamp", "timestamptz"):
        return f"regexp_replace({text}, '^(\\S+)(.*) BC$', '\\1 (BC)\\2')", "VARCHAR"
    return text, "VARCHAR" if kind in (*TEXTS, *TIMES) else f"{OTHER}{shown}"
