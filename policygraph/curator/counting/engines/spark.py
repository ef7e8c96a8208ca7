"""Tables of Spark, counted by its workers. Owns :func:`open_spark`.

Records never come to the driver: what is collected are cells and their counts. Each task adds up its own records by cell before any of them moves (Spark plans
every count so), and what moves then is at most a row for each cell and task: one cell with most of the records is no bottleneck. Spark reads no CSV and no JSON here, since it guesses types from rows.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from policygraph.curator.counting.dialect import Dialect
from policygraph.curator.counting.engines.compiled import Clustered, compiled
from policygraph.curator.counting.files import PARQUET, from_files, resolve_all
from policygraph.curator.counting.held import rows_of_block
from policygraph.curator.counting.reading import Files, suffix_of
from policygraph.curator.counting.source import TABLE, Source, arrays_of
from policygraph.curator.counting.values import MIXED, OTHER, SPLIT
from policygraph.curator.histogram import changed
from policygraph.curator.noise.blocks import BLOCK
from policygraph.errors import DataError, InputError
from policygraph.model.domain import Domain
from policygraph.version import __version__

WHOLE = ("byte", "short", "integer", "long")
DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Where the schema of a frame says that a text is a char(n)."""
LOCAL = {
    "spark.master": "local[*]",
    "spark.app.name": "policygraph",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    # This process and Java wait for each other's answer; after the usual 15 seconds a busy machine would fail.
    "spark.python.authenticate.socketTimeout": "600s",
    # What is collected are counts, of at most 10^8 cells.
    "spark.driver.maxResultSize": "0",
    # Nothing is stored there, and Spark would make the folder where the command was started.
    "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "policygraph-spark"),
}
"""Settings of a session that is started here; one that is given is used as it is."""
FIXED = {
    # What SQL means.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    # A label may have a dollar sign and a brace.
    "spark.sql.variable.substitute": "false",
    # What is in a file: all of it, and nothing that is guessed.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""Settings under which statements run, whatever the given session has: they could change what is counted."""
HEAP = 6 << 30
"""Most memory of a session that is started here; half of the machine if that is less."""


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
        return _source("the Spark frame", data, own_session(data.sparkSession))
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
    session = own_session(session or local_session())
    try:
        frame = session.read.parquet(*(f"file://{os.path.abspath(path)}" for path in paths))
    except _failures() as cause:
        raise unreadable_by_spark(label, cause) from cause
    made = _source(label, frame, session)
    # The footers say how many records there are, whatever Spark reads of them.
    [(records,)] = known.rows_of(f"SELECT count(*) FROM {TABLE}")
    return Source(
        label, made.engine, made.columns, stamps=known.stamps, keep=known.keep, records=int(records),
        explain=made.explain, folders=known.folders, times=made.times,
    )  # fmt: skip


def _away(paths: list[str], session: Any) -> Source:
    """Files that this machine need not reach, such as s3a:// and hdfs://; their records are told apart by content."""
    session = own_session(session or local_session())
    label = ", ".join(paths)
    try:
        # Names of folders are no columns: their types would be guessed.
        reader = session.read.option("mergeSchema", "true").option("recursiveFileLookup", "true")
        frame = reader.parquet(*paths)
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
    home = os.environ.get("JAVA_HOME")
    if shutil.which(os.path.join(home, "bin", "java") if home else "java") is None:
        # Otherwise the script that starts Java adds lines of its own to the error output.
        raise _no_java(f"there is no {os.path.join(home, 'bin', 'java')}" if home else "there is no java")
    builder = pyspark.SparkSession.builder
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    # Workers run this very Python, unless somebody said otherwise; PySpark looks nowhere else.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    own = {"spark.driver.memory": f"{min(HEAP, half) >> 20}m"}
    for name, value in {**LOCAL, **own}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as cause:
        raise _no_java(_first_line(cause)) from cause


def _no_java(why: str) -> InputError:
    return InputError(
        f"Spark cannot be started on this machine ({why}): expected Java 17 or later. Install it (Debian: openjdk-17-jre-headless), "
        "and let JAVA_HOME name its folder.",
        code="engine.missing",
        value="spark",
    )


def own_session(session: Any) -> Any:
    """A session beside a given one, with its settings but for those that could change what is counted; what is registered in it is seen nowhere else."""
    made = session.newSession()
    for name, value in {**session.conf.getAll, **FIXED}.items():
        if made.conf.isModifiable(name):
            made.conf.set(name, value)
    made.udf.register("policygraph_repr", printer())
    return made


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
    engine = _Session(session, plain, [_normal(f"c{at}", one) for at, one in enumerate(fields)])
    columns = tuple(
        (one.name, f"c{at}", kind)
        for at, (one, (_, kind)) in enumerate(zip(fields, engine.normal, strict=True))
    )
    times = frozenset(
        f"c{at}" for at, one in enumerate(fields) if one.dataType.typeName() in ("timestamp", "timestamp_ntz")
    )
    return Source(
        label, engine, columns, explain=lambda cause: unreadable_by_spark(label, cause), times=times
    )


class _Session:
    """A frame under a name of its own in a session of its own."""

    dialect: Dialect = Clustered()

    def __init__(self, session: Any, frame: Any, normal: list[tuple[str, str]]) -> None:
        self.session, self.normal = session, normal
        view = f"policygraph_{uuid4().hex}"
        # The frame is of the given session; only such a view is seen from another one.
        frame.createGlobalTempView(view)
        self.view = f"{session.conf.get('spark.sql.globalTempDatabase', 'global_temp')}.{view}"
        weakref.finalize(self, _forget, session, view)

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

    def held(self, statement: str, part: Domain, rows: int) -> HeldThere:
        """Count, and hold the counts on the workers."""
        # Cut off from the records: what is lost is an error then, and never counted a second time from records that may have changed.
        frame = self._asked(
            f"SELECT * FROM ({statement}) AS counted WHERE NOT cell IS NULL"
        ).localCheckpoint()
        [(total,)] = frame.selectExpr("coalesce(sum(n), 0)").collect()
        if int(total) != rows:
            raise changed()
        return HeldThere(self.session, frame, part)


class HeldThere:
    """Counts on the workers, which make the noisy values of each block."""

    def __init__(self, session: Any, frame: Any, part: Domain) -> None:
        self.session, self.frame, self.part = session, frame, part

    def check(self, make: Any, folder: str) -> None:
        """Rehearse on the workers what they will have to do: they must have this package, and draw what this machine draws."""
        _schema(self.part)
        tasks = min(64, 2 * self.session.sparkContext.defaultParallelism)
        told = self.session.range(0, tasks, 1, tasks).mapInArrow(
            _rehearse(make), "version string, noise bigint"
        )
        try:
            found = {tuple(row) for row in told.distinct().collect()}
        except _failures() as cause:
            raise _not_there(_first_line(cause)) from cause
        if found != {(__version__, make.rehearsal())}:
            raise _not_there("they have another version of it, or draw other noise")

    def write(self, make: Any, folder: str) -> None:
        """Write the blocks from the workers."""
        block = f"CAST(cell DIV {BLOCK} AS BIGINT) AS block"
        counted = self.frame.selectExpr(block, f"CAST(cell % {BLOCK} AS BIGINT) AS at", "n").groupBy("block")
        every = self.session.range(make.blocks).selectExpr("id AS block").groupBy("block")
        made = counted.cogroup(every).applyInArrow(_blocks(make, self.part), _schema(self.part))
        try:
            made.write.mode("error").parquet(folder)
        except _failures() as cause:
            raise unreadable_by_spark(folder, cause) from cause


def _rehearse(make: Any) -> Callable[[Any], Any]:
    def told(batches: Any) -> Any:
        import pyarrow

        # Of the package that is there; the name outside would come along with its value here.
        from policygraph.version import __version__ as there

        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"version": [there], "noise": [make.rehearsal()]})

    return told


def _blocks(make: Any, part: Domain) -> Callable[[Any, Any], Any]:
    def made(counted: Any, block: Any) -> Any:
        number = int(block["block"][0].as_py())
        at, many = (counted[name].to_numpy().astype(np.int64) for name in ("at", "n"))
        return rows_of_block(part, number, make(number, at, many))

    return made


def _schema(part: Domain) -> Any:
    """The columns of a part for Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(rows_of_block(part, 0, np.zeros(1, dtype=np.int64)).schema)


def _not_there(why: str) -> InputError:
    return InputError(
        f"the workers of Spark cannot draw noise ({why}): expected policygraph {__version__} on each of them. Install it there. Nothing was charged.",
        code="engine.workers",
    )


def _forget(session: Any, view: str) -> None:
    # The session may have ended meanwhile.
    if session.sparkContext._jsc is not None:
        session.catalog.dropGlobalTempView(view)


def printer() -> Callable[[float | None, bool], str | None]:
    """How Python and DuckDB print a float, one of 32 bits by its own digits; Java prints other digits, and not always the shortest."""
    pack = struct.pack

    # Inside another function, so that it goes to the workers as it is: they need not have this package.
    def shown(value: float | None, narrow: bool) -> str | None:
        if value is None or not narrow or value - value != 0:
            return None if value is None else repr(value)
        digits = (f"{value:.{count}g}" for count in range(1, 18))
        return repr(float(next(text for text in digits if pack("f", float(text)) == pack("f", value))))

    return shown


def _normal(column: str, field: Any) -> tuple[str, str]:
    """A column as one of the kinds that all engines know; times as the text that DuckDB prints."""
    kind = field.dataType
    name = kind.typeName()
    if name == "char" or str(field.metadata.get(DECLARED, "")).startswith("char("):
        # The blanks that pad it are not part of a value.
        return f"rtrim(' ', collate({column}, 'UTF8_BINARY'))", "VARCHAR"
    if name in WHOLE:
        return f"CAST({column} AS BIGINT)", "BIGINT"
    if name in ("float", "double", "boolean"):
        return column, name.upper()
    if name == "decimal":
        return column, "DECIMAL"
    if name in ("string", "varchar"):
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
