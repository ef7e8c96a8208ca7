"""Frames in memory as sources. Owns ``from_frame``.

A column of Python objects has no type, and one value may be of any. Each is taken for itself (``counting.values``): a list among numbers does not turn the numbers into text.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np

from policygraph.curator.counting.source import TABLE, Source, connect, locked, selected, unreadable
from policygraph.curator.counting.values import KINDS, MIXED, SPLIT
from policygraph.errors import DataError, InputError

Column = tuple[str, Any, str | None]
"""Name of a column, its Arrow array, and its kind where that is not the type of the array."""
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
        names = [(name, None) for name in frame.schema.names]
    # Columns go by their number in the engine, which tells names apart by case no more than it must.
    columns = tuple(
        (shown, at, own or kind) for (shown, own), (_, at, kind) in zip(names, source.columns, strict=True)
    )
    return Source(label, source.engine, columns, keep=(*source.keep, frame))


def _readable(data: Any) -> tuple[Any, list[tuple[str, str | None]] | None]:
    """Return an object that DuckDB scans; and its column names, each with its kind if that is of mixed values, when it can be scanned more than once."""
    import pyarrow

    module = type(data).__module__.partition(".")[0]
    if module == "pandas" and hasattr(data, "columns"):
        return _numbered(
            [(str(name), *_pandas_column(data.iloc[:, i], str(name))) for i, name in enumerate(data.columns)]
        )
    if module == "polars":
        frame = data.collect() if hasattr(data, "collect") else data
        if hasattr(frame, "columns"):
            return _numbered(
                [(name, *_polars_column(frame.get_column(name), name)) for name in frame.columns]
            )
    if module == "pyarrow" and type(data).__name__ == "Table":
        return _numbered(
            [(name, array, None) for name, array in zip(data.column_names, data.columns, strict=True)]
        )
    if isinstance(data, pyarrow.RecordBatchReader):
        return data, None
    if hasattr(data, "__arrow_c_stream__"):
        return pyarrow.RecordBatchReader.from_stream(data), None
    if hasattr(data, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return _readable(from_dataframe(data))
    if module == "pyarrow" and hasattr(data, "scanner"):
        return data, [(name, None) for name in data.schema.names]
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


def _numbered(columns: list[Column]) -> tuple[Any, list[tuple[str, str | None]]]:
    import pyarrow

    arrays = [array for _, array, _ in columns]
    if not arrays:
        raise DataError("the frame has no columns: expected one for each attribute.", code="data.empty")
    table = pyarrow.table(arrays, names=[f"c{i}" for i in range(len(arrays))])
    return table, [(name, kind) for name, _, kind in columns]


def _pandas_column(column: Any, name: str) -> tuple[Any, str | None]:
    """Arrow array of a column of pandas, and its kind if that is of mixed values; numbers as they are, everything else one by one.

    A word among dates makes objects of them, and a complex number makes all numbers complex: what a value is must not depend on that.
    """
    import pandas
    import pyarrow

    kind = column.dtype
    if isinstance(kind, pandas.CategoricalDtype):
        # Categories of equal value are one to pandas: a record with true makes true of every 1, or the other way round. So truth values are numbers here.
        numbers = [int(one) if isinstance(one, (bool, np.bool_)) else one for one in kind.categories]
        plain = kind.categories if kind.categories.dtype not in (bool, object) else numbers
        labels, own = _pandas_column(pandas.Series(plain, dtype=None if len(plain) else object), name)
        codes = column.cat.codes.to_numpy()
        return labels.take(pyarrow.array(np.maximum(codes, 0), mask=codes < 0)), own
    if isinstance(kind, np.dtype):
        if kind.kind in "biu":
            return pyarrow.array(column.to_numpy()), None
        if kind.kind == "f":
            values = column.to_numpy()
            wide = values.astype(np.float32) if values.dtype == np.float16 else values
            return pyarrow.array(wide, from_pandas=False), None
        if kind.kind == "c":
            return mixed_array(column.astype(object), name), SPLIT
    elif isinstance(kind, pandas.SparseDtype):
        return _pandas_column(pandas.Series(np.asarray(column)), name)
    elif not isinstance(kind, (pandas.PeriodDtype, pandas.IntervalDtype, pandas.DatetimeTZDtype)):
        try:
            made = pyarrow.array(column.array, from_pandas=True)
            return (made.combine_chunks() if isinstance(made, pyarrow.ChunkedArray) else made), None
        except (pyarrow.ArrowException, TypeError, ValueError):
            pass
    values = column.astype(object)
    if pandas.api.types.infer_dtype(values, skipna=True) == "string":
        try:
            return pyarrow.array(values, type=pyarrow.large_string(), from_pandas=True), None
        except (pyarrow.ArrowException, UnicodeError):
            pass
    return mixed_array(values, name), MIXED


def _polars_column(column: Any, name: str) -> tuple[Any, str | None]:
    if str(column.dtype) == "Object":
        return mixed_array(column.to_list(), name), MIXED
    return column.to_arrow(), None


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
    if isinstance(value, (np.datetime64, np.timedelta64)) and np.isnat(value):
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    # A span of time is an integer for numpy, and none here.
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64):
        # What a class of its own says about itself is not its value.
        whole = int.__int__(value) if isinstance(value, int) else int(value)
        return whole if -(2**63) <= whole < 2**63 else _big(whole)
    if isinstance(value, (float, np.floating)):
        # A float of 32 bits means the number that it prints.
        return float.__float__(value) if isinstance(value, float) else float(str(value))
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


def _short(shown: str) -> str:
    """A time without the zeros at the end of its seconds."""
    head, dot, rest = shown.partition(".")
    return f"{head}.{rest.rstrip('0')}".rstrip(".") if dot else head


def _span(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 10**9)
    days, seconds = divmod(seconds, 86_400)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return _short(f"{days} days {clock}.{rest:09}")


def _time(value: np.datetime64 | np.timedelta64) -> str:
    """Text of a time of numpy: that of the same time in pandas."""
    fine = np.datetime_data(value.dtype)[0] in ("ns", "ps", "fs", "as")
    unit = "ns" if fine else "us"
    if isinstance(value, np.datetime64):
        return _short(str(np.datetime_as_string(value.astype(f"datetime64[{unit}]"))).replace("T", " "))
    return _span(int(value.astype(f"timedelta64[{unit}]").astype(np.int64)) * (1 if fine else 1000))


def _text(value: Any) -> str:
    """Text of a value, as the engine would print it where it knows the type."""
    if isinstance(value, str):
        # A member of an enumeration prints as its name.
        return str.__str__(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _time(value)
    if isinstance(value, datetime.timedelta):
        nanoseconds = getattr(value, "nanoseconds", 0)
        return _span((value // datetime.timedelta(microseconds=1)) * 1000 + nanoseconds)
    if isinstance(value, datetime.datetime):
        # As the engine prints times with a zone, which it does in UTC here.
        zone = "" if value.tzinfo is None else "+00"
        plain = value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
        return _short(plain.isoformat(" ")) + zone
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return "".join(chr(b) if 32 <= b < 127 and b not in b"\\'\"" else f"\\x{b:02X}" for b in value)
    return str(value)
