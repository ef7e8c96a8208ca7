"""Frames in memory as sources. Owns ``from_frame``; imports ``errors`` and its own folder.

A column of Python objects has no type, and one value may be of any. Each is taken for itself (``counting.values``): a list among numbers does not turn the numbers into text.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np

from policygraph.errors import DataError, InputError
from policygraph.private.counting.source import TABLE, Source, connect, locked, selected, unreadable
from policygraph.private.counting.values import KINDS, MIXED

__all__ = ["from_frame"]

Column = tuple[str, Any]
FIELDS = tuple(field for field, _ in KINDS)


def from_frame(data: Any) -> Source:
    """Make a source of a pandas, polars or Arrow frame, or of anything with their interfaces.

    Examples
    --------
    >>> import pyarrow
    >>> from_frame(pyarrow.table({"age": [1, 2]})).columns
    (('age', 'c0', 'BIGINT'),)
    """
    import duckdb
    import pyarrow

    connection = connect()
    label = f"the {type(data).__module__.partition('.')[0]} frame"
    try:
        frame, names = _readable(data)
        connection.register(f"{TABLE}_frame", frame)
        if names is None:
            # A stream can be read once only; the engine keeps its rows.
            connection.execute(f"CREATE TEMP TABLE {TABLE}_rows AS SELECT * FROM {TABLE}_frame")
        locked(connection)
    except (duckdb.Error, pyarrow.ArrowException, TypeError) as cause:
        raise unreadable(label, cause) from cause
    where = f"{TABLE}_{'rows' if names is None else 'frame'}"
    source = selected(label, connection, f"SELECT * FROM {where}")
    if names is None:
        return source
    # Columns go by their number in the engine, which tells names apart by case no more than it must.
    columns = tuple(
        (shown, at, MIXED if wild else kind)
        for (shown, wild), (_, at, kind) in zip(names, source.columns, strict=True)
    )
    return Source(label, source.ask, columns, keep=(*source.keep, frame))


def _readable(data: Any) -> tuple[Any, list[tuple[str, bool]] | None]:
    """Return an object that DuckDB scans; and its column names, each with whether it is of mixed values, when it can be scanned more than once."""
    import pyarrow

    module = type(data).__module__.partition(".")[0]
    if module == "pandas" and hasattr(data, "columns"):
        return _numbered(
            [(str(name), _pandas_column(data.iloc[:, i], str(name))) for i, name in enumerate(data.columns)]
        )
    if module == "polars":
        frame = data.collect() if hasattr(data, "collect") else data
        if hasattr(frame, "columns"):
            return _numbered([(name, _polars_column(frame.get_column(name), name)) for name in frame.columns])
    if module == "pyarrow" and type(data).__name__ == "Table":
        return _numbered(list(zip(data.column_names, data.columns, strict=True)))
    if isinstance(data, pyarrow.RecordBatchReader):
        return data, None
    if hasattr(data, "__arrow_c_stream__"):
        return pyarrow.RecordBatchReader.from_stream(data), None
    if isinstance(data, pyarrow.RecordBatch):
        return _readable(pyarrow.Table.from_batches([data]))
    if hasattr(data, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return _readable(from_dataframe(data))
    if module == "pyarrow" and hasattr(data, "scanner"):
        return data, [(name, False) for name in data.schema.names]
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


def _numbered(columns: list[Column]) -> tuple[Any, list[tuple[str, bool]]]:
    import pyarrow

    arrays = [array for _, array in columns]
    if not arrays:
        raise DataError("the frame has no columns: expected one for each attribute.", code="data.empty")
    table = pyarrow.table(arrays, names=[f"c{i}" for i in range(len(arrays))])
    return table, [(name, _is_mixed(array.type)) for name, array in columns]


def _is_mixed(kind: Any) -> bool:
    import pyarrow

    if not pyarrow.types.is_struct(kind):
        return False
    return tuple(kind.field(i).name for i in range(kind.num_fields)) == FIELDS


def _pandas_column(column: Any, name: str) -> Any:
    """Arrow array of a column of pandas; numbers as they are, objects one by one."""
    import pandas
    import pyarrow

    kind = column.dtype
    if isinstance(kind, pandas.CategoricalDtype):
        labels = _pandas_column(pandas.Series(kind.categories), name)
        codes = column.cat.codes.to_numpy()
        return labels.take(pyarrow.array(np.maximum(codes, 0), mask=codes < 0))
    if isinstance(kind, np.dtype):
        if kind.kind in "biuMm":
            return pyarrow.array(column.to_numpy(), from_pandas=kind.kind in "Mm")
        if kind.kind == "f":
            values = column.to_numpy()
            return pyarrow.array(
                values.astype(np.float32) if values.dtype == np.float16 else values, from_pandas=False
            )
    elif isinstance(kind, pandas.SparseDtype):
        return _pandas_column(pandas.Series(np.asarray(column)), name)
    elif not isinstance(kind, (pandas.PeriodDtype, pandas.IntervalDtype)):
        try:
            made = pyarrow.array(column.array, from_pandas=True)
            return made.combine_chunks() if isinstance(made, pyarrow.ChunkedArray) else made
        except (pyarrow.ArrowException, TypeError, ValueError):
            pass
    values = column.astype(object)
    if pandas.api.types.infer_dtype(values, skipna=True) == "string":
        try:
            return pyarrow.array(values, type=pyarrow.large_string(), from_pandas=True)
        except (pyarrow.ArrowException, UnicodeError):
            pass
    return mixed_array(values, name)


def _polars_column(column: Any, name: str) -> Any:
    return mixed_array(column.to_list(), name) if str(column.dtype) == "Object" else column.to_arrow()


def mixed_array(values: Iterable[Any], name: str) -> Any:
    """Arrow array of mixed values, each by what it is.

    Raises
    ------
    DataError
        For a value that cannot be written as text, with its row.

    Examples
    --------
    >>> mixed_array(["7", 7, 7.5, True, None], "x").to_pylist()[1]
    {'t': None, 'w': 7, 'f': None, 'b': None}
    """
    import pyarrow

    texts: list[str | None] = []
    wholes: list[int | None] = []
    floats: list[float | None] = []
    truths: list[bool | None] = []
    for row, value in enumerate(values):
        made = _sorted_out(value, name, row)
        texts.append(made if isinstance(made, str) else None)
        truths.append(made if isinstance(made, bool) else None)
        wholes.append(made if isinstance(made, int) and not isinstance(made, bool) else None)
        floats.append(made if isinstance(made, float) else None)
    arrays = [
        pyarrow.array(texts, pyarrow.large_string()),
        pyarrow.array(wholes, pyarrow.int64()),
        pyarrow.array(floats, pyarrow.float64()),
        pyarrow.array(truths, pyarrow.bool_()),
    ]
    return pyarrow.StructArray.from_arrays(arrays, names=FIELDS)


def _sorted_out(value: Any, name: str, row: int) -> str | int | float | bool | None:
    """A value of Python as a text, a whole number of 64 bits, a float, a truth value, or None."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        whole = int(value)
        return whole if -(2**63) <= whole < 2**63 else _big(whole)
    if isinstance(value, (float, np.floating)):
        # A float of 32 bits means the number that it prints.
        return float(value) if isinstance(value, float) else float(str(value))
    if isinstance(value, (complex, np.complexfloating)) and value.imag == 0:
        # One complex number makes the others of a column complex as well.
        return float(value.real)
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        if value.is_finite() and abs(value) < 2**63 and value == int(value):
            return int(value)
        return float(value)
    try:
        text = _text(value)
        text.encode()
    except Exception as cause:
        raise DataError(
            f"row {row + 1:,} has a value in {name!r} that cannot be written as text ({type(value).__name__}): expected text or a number.",
            code="data.unreadable",
            row=row + 1,
        ) from cause
    return text


def _big(whole: int) -> str | float:
    # Beyond 64 bits it is no label, and a float is near enough for the ends of a range.
    return float(whole) if abs(whole) < 10**300 else (np.inf if whole > 0 else -np.inf)


def _text(value: Any) -> str:
    """Text of a value, as the engine would print it where it knows the type."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, np.generic) and value.dtype.kind in "Mm":
        value = value.item() if value.dtype.kind == "m" else value.astype("datetime64[us]").item()
    if isinstance(value, datetime.datetime):
        shown = value.isoformat(" ")
        head, dot, rest = shown.partition(".")
        return (
            head
            if not dot
            else f"{head}.{rest[:6].rstrip('0')}{rest[6:]}".rstrip(".")
            if value.tzinfo is None
            else shown
        )
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return "".join(chr(b) if 32 <= b < 127 and b not in b"\\'\"" else f"\\x{b:02X}" for b in value)
    return str(value)
