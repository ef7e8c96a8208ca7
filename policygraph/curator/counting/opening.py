"""Any data as a source: files, databases, relations, frames. Owns :func:`open_source`."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from policygraph.curator.counting import sql
from policygraph.curator.counting.files import from_files
from policygraph.curator.counting.frames import from_frame
from policygraph.curator.counting.reading import Files, are_paths, is_database
from policygraph.curator.counting.source import (
    TABLE,
    Source,
    check_plain,
    connect,
    locked,
    selected,
    source_of,
    stamps_of,
    unreadable,
)
from policygraph.errors import DataError, InputError


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
    if isinstance(data, Source):
        return data
    if are_paths(data):
        data = Files(data)
    if isinstance(data, Files):
        if is_database(data):
            if data.options():
                raise InputError(
                    f"{data.data}: {', '.join(data.options())} are about text files: expected none for a DuckDB table.",
                    code="data.options",
                    value=data.options(),
                )
            return _from_database(str(data.data))
        return from_files(data)
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], str) and hasattr(data[0], "sql"):
        return selected("the query", data[0], data[1].strip().rstrip(";"))
    if hasattr(data, "query") and hasattr(data, "fetchall") and hasattr(data, "types"):
        return source_of("the relation", lambda statement: data.query(TABLE, statement), keep=(data,))
    return from_frame(data)


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
    check_plain(path)
    label = f"{path}, table {tables[0]}"
    connection = connect()
    try:
        connection.execute(f"ATTACH {sql.literal(path)} AS given (TYPE duckdb, READ_ONLY)")
        locked(connection)
        table = sql.literal(tables[0])
        where = f"database_name = 'given' AND schema_name = 'main' AND lower({{}}) = lower({table})"
        found = connection.execute(
            f"SELECT 'table' FROM duckdb_tables() WHERE {where.format('table_name')} UNION ALL "
            f"SELECT 'view' FROM duckdb_views() WHERE {where.format('view_name')}"
        ).fetchall()
        others = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = 'given' AND schema_name = 'main' ORDER BY 1 LIMIT 13"
        ).fetchall()
    except duckdb.Error as cause:
        raise unreadable(label, cause) from cause
    if found != [("table",)]:
        names = ", ".join(repr(name) for (name,) in others[:12]) + (", ..." if len(others) > 12 else "")
        raise DataError(
            f"{address}: {'a view' if found else 'no table'} {tables[0]!r}: expected a base table. "
            + (
                "A view runs a query, which may read anything: make a table of it, or give a DuckDB connection and a SELECT."
                if found
                else f"Its tables are {names}."
                if others
                else "It has no table."
            ),
            code="data.view" if found else "data.unreadable",
            value=tables[0],
        )
    return selected(label, connection, f"SELECT * FROM given.main.{sql.name(tables[0])}")
