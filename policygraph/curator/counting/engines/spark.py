"""Tables of Spark, counted by its workers. Owns :func:`open_spark`.

Records never come to the driver: what is collected are cells and their counts. Spark reads no CSV and no JSON here, since it guesses types from rows.
"""

from __future__ import annotations

import os
import re
import struct
import weakref
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import numpy.typing as npt

from policygraph.curator.counting.dialect import Dialect
from policygraph.curator.counting.engines.compiled import Portable, compiled
from policygraph.curator.counting.files import PARQUET, from_files, resolve_all
from policygraph.curator.counting.reading import Files, suffix_of
from policygraph.curator.counting.source import TABLE, Source, arrays_of
from policygraph.curator.counting.values import MIXED, OTHER, SPLIT
from policygraph.errors import DataError, InputError

WHOLE = ("byte", "short", "integer", "long")
LOCAL = {
    "spark.master": "local[*]",
    "spark.app.name": "policygraph",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Settings of a session that is started here; one that is given is used as it is."""


def is_frame(data: Any) -> bool:
    """Whether data are a data frame of Spark."""
    return type(data).__module__.startswith("pyspark.") and hasattr(data, "sparkSession")


def open_spark(data: Any, session: Any = None) -> Source:
    """Make a source of Parquet files or of a data frame of Spark.

    Parameters
    ----------
    data
        Parquet files, as paths or :class:`Files`; or a data frame, which has a session.
    session
        The session; None: the active one, or a local one.

    Raises
    ------
    InputError
        When PySpark or Java is not installed.
    DataError
        For data that Spark cannot read without guessing.
    """
    if is_frame(data):
        return _source("the Spark frame", data, data.sparkSession)
    files = data if isinstance(data, Files) else Files(data)
    given = [files.data] if isinstance(files.data, (str, os.PathLike)) else files.data
    listed = [os.fspath(path) for path in given]
    away = [
        path
        for path in listed
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path) and not path.lower().startswith("file:")
    ]
    if files.options() or (away and {suffix_of(path) for path in listed} - {*PARQUET, ""}):
        raise _only_parquet(", ".join(listed))
    if away:
        return _away(listed, session)
    label, paths = resolve_all(files)
    if not {suffix_of(path) for path in paths} <= set(PARQUET):
        raise _only_parquet(label)
    known = from_files(files)
    if any(kind in (MIXED, SPLIT) for _, _, kind in known.columns):
        raise DataError(
            f"{known.label}: a column has other types in other files: expected the same in all of them. Count such files with DuckDB.",
            code="engine.data",
            value=known.label,
        )
    odd = [path for path in paths if re.search(r"[*?\[\]{}\\]", path) or os.path.basename(path)[:1] in "._"]
    if odd:
        raise DataError(
            f"{odd[0]}: Spark takes such a name for a pattern, or passes over it: expected another name. Rename the file, or count it with DuckDB.",
            code="engine.data",
            value=odd[0],
        )
    session = session or local_session()
    try:
        frame = session.read.parquet(*(f"file://{os.path.abspath(path)}" for path in paths))
    except _failures() as cause:
        raise unreadable_by_spark(label, cause) from cause
    made = _source(label, frame, session)
    # The footers say how many records there are, whatever Spark reads of them.
    [(records,)] = known.rows_of(f"SELECT count(*) FROM {TABLE}")
    return Source(
        label, made.engine, made.columns, stamps=known.stamps, keep=known.keep, records=int(records),
        explain=made.explain, folders=known.folders,
    )  # fmt: skip


def _away(paths: list[str], session: Any) -> Source:
    """Files that this machine need not reach, such as s3a:// and hdfs://; their records are told apart by content."""
    session = session or local_session()
    label = ", ".join(paths)
    try:
        frame = session.read.option("mergeSchema", "true").parquet(*paths)
    except _failures() as cause:
        raise unreadable_by_spark(label, cause) from cause
    return _source(label, frame, session)


def _only_parquet(label: str) -> DataError:
    return DataError(
        f"{label}: Spark counts Parquet files without options, and tables: expected one of them, since Spark reads other files by rules of its own. "
        "Write the data as Parquet, or count them with DuckDB.",
        code="engine.data",
        value=label,
    )


def local_session() -> Any:
    """The active session, or a new one on all cores of this machine."""
    pyspark = _pyspark()
    active = pyspark.SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = pyspark.SparkSession.builder
    for name, value in LOCAL.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as cause:
        raise InputError(
            f"Spark cannot be started on this machine ({_first_line(cause)}): expected Java 17 or later. Install it (Debian: openjdk-17-jre-headless), "
            "and let JAVA_HOME name its folder.",
            code="engine.missing",
            value="spark",
        ) from cause


def _pyspark() -> Any:
    try:
        import pyspark.sql
    except ImportError as cause:
        raise InputError(
            'the engine spark is not installed: expected PySpark 4. Install it: pip install "policygraph[spark]".',
            code="engine.missing",
            value="spark",
        ) from cause
    return pyspark.sql


def _failures() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError)


def _first_line(cause: Exception) -> str:
    return (str(cause).strip().splitlines() or [type(cause).__name__])[0].rstrip(".")


def unreadable_by_spark(label: str, cause: Exception) -> DataError:
    """What Spark could not do, in its first line."""
    return DataError(f"{label} cannot be read: {_first_line(cause)}.", code="data.unreadable", value=label)


def _source(label: str, frame: Any, session: Any) -> Source:
    fields = frame.schema.fields
    # Columns go by their number: Spark does not tell names apart by case.
    plain = frame.toDF(*(f"c{at}" for at in range(len(fields))))
    engine = _Session(session, plain, [_normal(f"c{at}", one.dataType) for at, one in enumerate(fields)])
    columns = tuple(
        (one.name, f"c{at}", kind)
        for at, (one, (_, kind)) in enumerate(zip(fields, engine.normal, strict=True))
    )
    return Source(label, engine, columns, explain=lambda cause: unreadable_by_spark(label, cause))


class _Session:
    """A frame under a name of its own in its session."""

    dialect: Dialect = Portable(salted=True)

    def __init__(self, session: Any, frame: Any, normal: list[tuple[str, str]]) -> None:
        self.session, self.normal = session, normal
        self.view = f"policygraph_{uuid4().hex}"
        frame.createOrReplaceTempView(self.view)
        session.udf.register("policygraph_repr", _repr)
        weakref.finalize(self, _forget, session, self.view)

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors of Spark and of the way to it."""
        return _failures()

    def _asked(self, statement: str) -> Any:
        fields = ", ".join(f"{value} AS c{at}" for at, (value, _) in enumerate(self.normal)) or "1 AS nothing"
        return self.session.sql(
            f"WITH {TABLE} AS (SELECT {fields} FROM {self.view}) {compiled(statement, 'spark')}"
        )

    def batches(self, statement: str) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Answer a SELECT of whole numbers: the counts, which the driver collects."""
        for batch in self._asked(statement).toArrow().to_batches():
            yield arrays_of(batch)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Answer with a few rows."""
        return [tuple(row) for row in self._asked(statement).collect()]


def _forget(session: Any, view: str) -> None:
    # The session may have ended meanwhile.
    if session.sparkContext._jsc is not None:
        session.catalog.dropTempView(view)


def _repr(value: float | None, narrow: bool) -> str | None:
    """A float as Python and DuckDB print it, one of 32 bits by its own digits; Java prints other digits, and not always the shortest."""
    if value is None or not narrow or value - value != 0:
        return None if value is None else repr(value)
    digits = (f"{value:.{count}g}" for count in range(1, 18))
    return repr(
        float(next(text for text in digits if struct.pack("f", float(text)) == struct.pack("f", value)))
    )


def _normal(column: str, kind: Any) -> tuple[str, str]:
    """A column as one of the kinds that all engines know; times as the text that DuckDB prints."""
    name = kind.typeName()
    if name in WHOLE:
        return f"CAST({column} AS BIGINT)", "BIGINT"
    if name in ("float", "double", "boolean"):
        return column, name.upper()
    if name == "decimal":
        return column, "DECIMAL"
    if name in ("string", "char", "varchar"):
        return f"collate({column}, 'UTF8_BINARY')", "VARCHAR"
    if name == "date":
        return _dated(column, column), "VARCHAR"
    if name == "timestamp":
        # Without a look at the time zone of the session.
        seconds = f"CAST(CAST(unix_micros({column}) AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(18, 6))"
        at = f"(TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, {seconds}))"
        return f"({_dated(at, at)} || '+00')", "VARCHAR"
    if name == "timestamp_ntz":
        return _dated(column, column), "VARCHAR"
    return (
        f"hex({column})" if name == "binary" else f"CAST({column} AS STRING)"
    ), f"{OTHER}{kind.simpleString()}"


def _dated(moment: str, day: str) -> str:
    """SQL of a date or time, with the years that DuckDB writes: those before 1 with (BC), those after 9999 without a sign."""
    text = f"CAST({moment} AS STRING)"
    before = f"lpad(CAST(1 - year({day}) AS STRING), 4, '0') || regexp_replace({text}, '^-?[0-9]+(-[0-9]+-[0-9]+)', '$1 (BC)')"
    return f"(CASE WHEN year({day}) < 1 THEN {before} ELSE ltrim('+', {text}) END)"
