"""Any data as a source: files, databases, relations, frames. Owns :func:`open_source`."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from policygraph.curator.counting import sql
from policygraph.curator.counting.files import from_files
from policygraph.curator.counting.frames import from_frame
from policygraph.curator.counting.reading import Files, are_paths, is_database, is_server, shown_data
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

ENGINES = ("duckdb", "spark", "postgres")
COLLATION = "SELECT current_setting('default_collation')"


def open_source(data: Any, engine: Any = None) -> Source:
    """Make a source of anything that can be counted.

    Parameters
    ----------
    data
        A path, a pattern, a folder or a list of paths (CSV, Parquet or JSON), or :class:`Files` with them; ``duckdb://file.db?table=name``;
        a pair of a DuckDB connection and a SELECT; a DuckDB relation; or a frame (pandas, polars, Arrow, or any object with the Arrow stream or the
        dataframe interchange interface); ``postgresql://host/database/table``; or a data frame of Spark.
    engine
        What counts: ``"duckdb"``, ``"spark"`` or a session of Spark, ``"postgres"``. None: Postgres for its tables, Spark for its frames, DuckDB for all else.

    Raises
    ------
    DataError
        When there is nothing to read, and for data that the engine cannot count.
    """
    if isinstance(data, Source):
        return data
    name = _engine_of(data, engine)
    if name == "postgres":
        from policygraph.curator.counting.engines.postgres import open_postgres

        _no_options(data)
        return open_postgres(str(data.data if isinstance(data, Files) else data))
    if name == "spark":
        from policygraph.curator.counting.engines.spark import open_spark

        return open_spark(data, None if isinstance(engine, str) else engine)
    if are_paths(data):
        data = Files(data)
    if isinstance(data, Files):
        if is_database(data):
            _no_options(data)
            return _from_database(str(data.data))
        return from_files(data)
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], str) and hasattr(data[0], "sql"):
        return _selected_exactly("the query", data[0], data[1].strip().rstrip(";"))
    if hasattr(data, "query") and hasattr(data, "fetchall") and hasattr(data, "types"):
        return _relation(data)
    return from_frame(data)


def _engine_of(data: Any, engine: Any) -> str:
    """Name of the engine that counts some data."""
    if engine is not None and engine not in ENGINES and not _is_spark(engine):
        raise InputError(
            f"engine={engine!r}: expected {', '.join(ENGINES)}, or a session of Spark.",
            code="engine.name",
            value=str(engine),
        )
    lies = "postgres" if is_server(data) else "spark" if _is_spark(data) else None
    if engine is None:
        return lies or "duckdb"
    name = "spark" if _is_spark(engine) else str(engine)
    good = {
        "duckdb": lies is None,
        "postgres": lies == "postgres",
        "spark": lies == "spark" or (lies is None and _can_move(data)),
    }
    if not good[name]:
        what = {
            "duckdb": "files, frames in memory or a table of DuckDB",
            "postgres": "postgresql://host/database/table",
            "spark": "Parquet files or a frame of Spark",
        }[name]
        raise DataError(
            f"the engine {name} cannot count these data: expected {what}. Leave the engine out, or bring the data there.",
            code="engine.data",
            value=name,
        )
    return name


def _is_spark(given: Any) -> bool:
    return type(given).__module__.startswith("pyspark.")


def _can_move(data: Any) -> bool:
    """Whether data are files, which any engine may read."""
    return (isinstance(data, Files) or are_paths(data)) and not is_database(data)


def _no_options(data: Any) -> None:
    if isinstance(data, Files) and data.options():
        raise InputError(
            f"{shown_data(str(data.data))}: {', '.join(data.options())} are about text files: expected none for a table of a database.",
            code="data.options",
            value=data.options(),
        )


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
    return _selected_exactly(label, connection, f"SELECT * FROM given.main.{sql.name(tables[0])}")


def _selected_exactly(label: str, connection: Any, select: str) -> Source:
    """A SELECT whose texts are compared byte by byte, whatever collation a column has."""
    import duckdb

    try:
        _check_collation(label, connection.execute(COLLATION).fetchall())
        select = _exact_texts(connection.sql(select), f"({select})")
    except duckdb.Error as cause:
        raise unreadable(label, cause) from cause
    return selected(label, connection, select)


def _relation(data: Any) -> Source:
    label = "the relation"
    _check_collation(label, data.query(TABLE, COLLATION).fetchall())
    exact = data.query(TABLE, _exact_texts(data, TABLE))
    return source_of(label, lambda statement: exact.query(TABLE, statement), keep=(data, exact))


def _exact_texts(relation: Any, where: str) -> str:
    """SELECT of the columns of a relation; texts that differ in case only are one value where a column has such a collation, and which one depends on other records."""
    columns = [f"c{at}" for at in range(len(relation.columns))]
    fields = [
        f"{column}{' COLLATE C' if str(kind) == 'VARCHAR' else ''} AS {sql.name(name)}"
        for column, name, kind in zip(columns, relation.columns, relation.types, strict=True)
    ]
    return f"SELECT {', '.join(fields)} FROM {where} AS given({', '.join(columns)})"


def _check_collation(label: str, found: list[tuple[Any, ...]]) -> None:
    if str(found[0][0]).lower() not in ("", "binary", "c", "posix"):
        raise DataError(
            f"{label}: the connection has default_collation = {found[0][0]!r}: expected none, since texts that differ would be equal. "
            "Say RESET default_collation there.",
            code="data.collation",
            value=found[0][0],
        )
