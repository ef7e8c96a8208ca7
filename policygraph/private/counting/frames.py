"""Frames in memory as sources. Owns ``from_frame``; imports ``errors`` and ``private.counting.source``."""

from __future__ import annotations

from typing import Any

from policygraph.errors import DataError, InputError
from policygraph.private.counting.source import TABLE, Source, connect, selected, unreadable

__all__ = ["from_frame"]


def from_frame(data: Any) -> Source:
    """Make a source of a pandas, polars or Arrow frame, or of anything with their interfaces.

    Examples
    --------
    >>> import pyarrow
    >>> from_frame(pyarrow.table({"age": [1, 2]})).columns
    (('age', 'age', 'BIGINT'),)
    """
    import duckdb
    import pyarrow

    connection = connect()
    label = f"the {type(data).__module__.partition('.')[0]} frame"
    try:
        frame, names = _readable(data)
        # Without this, the engine guesses the type of a column of Python objects from a sample.
        connection.execute("SET pandas_analyze_sample = 0")
        connection.register(f"{TABLE}_frame", frame)
        if names is None:
            # A stream can be read once only; the engine keeps its rows.
            connection.execute(f"CREATE TEMP TABLE {TABLE}_rows AS SELECT * FROM {TABLE}_frame")
    except (duckdb.Error, pyarrow.ArrowException, TypeError) as cause:
        raise unreadable(label, cause) from cause
    where = f"{TABLE}_{'rows' if names is None else 'frame'}"
    source = selected(label, connection, f"SELECT * FROM {where}")
    if names is None:
        return source
    # The engine renames columns that differ by case only; their names in the frame are kept beside.
    columns = tuple((shown, at, kind) for shown, (_, at, kind) in zip(names, source.columns, strict=True))
    return Source(label, source.ask, columns, keep=(*source.keep, frame))


def _readable(data: Any) -> tuple[Any, list[str] | None]:
    """Return an object that DuckDB scans, with its column names when it can be scanned more than once."""
    module = type(data).__module__.partition(".")[0]
    if module == "pandas" and hasattr(data, "columns"):
        return data, [str(name) for name in data.columns]
    if module == "polars":
        frame = data.collect() if hasattr(data, "collect") else data
        if hasattr(frame, "columns"):
            return frame, list(frame.columns)
    if module == "pyarrow" and type(data).__name__ == "Table":
        return data, list(data.column_names)
    import pyarrow

    if isinstance(data, pyarrow.RecordBatchReader):
        return data, None
    if hasattr(data, "__arrow_c_stream__"):
        return pyarrow.RecordBatchReader.from_stream(data), None
    if isinstance(data, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([data]), list(data.schema.names)
    if hasattr(data, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        table = from_dataframe(data)
        return table, list(table.column_names)
    if module == "pyarrow" and hasattr(data, "scanner"):
        return data, list(data.schema.names)
    if isinstance(data, dict):
        raise InputError(
            "data is a dict: expected a file or a frame, for example pyarrow.table(data).", code="data.kind"
        )
    raise DataError(
        f"data is a {type(data).__name__}: expected the path of a CSV or Parquet file, a frame (pandas, polars, Arrow), "
        "a DuckDB relation, or a pair of a DuckDB connection and a SELECT.",
        code="data.kind",
        value=type(data).__name__,
    )
