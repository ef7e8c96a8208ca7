"""What is given away. Owns :class:`Release`: noisy tables, what was asked, the certificate, the loss; never a true value.

A release can be written as table, Parquet, CSV and JSON, each with its provenance; one made with seeded randomness says
NOT PRIVATE in all of them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt

from policygraph.arrow import frame_library, to_arrow, to_numpy
from policygraph.distributions import gaussian_quantile, laplace_quantile
from policygraph.documents import MALFORMED, parse_json
from policygraph.errors import InputError, PolicyGraphError, RefusedError
from policygraph.exact import as_fraction
from policygraph.model.grouped import Grouped
from policygraph.model.loss import Loss, loss_from_json
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.policy import Policy
from policygraph.model.queries import from_spec
from policygraph.model.queries.base import Query
from policygraph.model.units import any_policy
from policygraph.output import replacing, write_all
from policygraph.release.sheets import free, table_files, write_excel
from policygraph.sensitivity.certificate import Sensitivity

NOT_PRIVATE = "NOT PRIVATE: the noise came from a seeded generator and can be recomputed"
METADATA = b"policygraph"
UNBIASED, ERRORS = "unbiased", "errors"
"""Columns of files that have them only where some value is biased, and where some stated error is not exact."""
Floats = npt.NDArray[np.float64]
Basis = Literal["exact", "bound", "simulated"]
"""What stated errors rest on: the exact distribution of the noise, a proved bound, or simulation from published numbers."""
Part = TypeVar("Part")
SHOWN_ROWS, SHOWN_TABLES = 12, 9
"""Rows of the first table, and tables, that a notebook shows of a release."""
JSON_VALUES = 100_000
"""Tables with more numbers than this are left out of release.json and stand in the Parquet file only."""
CONTENTS = "contents.txt"
"""The list of the files of tables that a release wrote."""
KINDS = {
    "measure": "policygraph.estimation.measures:MeasureRelease",
    "cube": "policygraph.estimation.cubes.release:CubeRelease",
}
"""Releases that rooms above define, by the key of the record that marks them; loaded when one is read back."""


@dataclass(frozen=True)
class Randomness:
    """What a release says about where its noise came from.

    Attributes
    ----------
    private
        Whether nobody can predict or repeat the noise.
    description
        One sentence about the random words.
    """

    private: bool
    description: str


@dataclass(frozen=True)
class Errors:
    """What is stated of the errors of the published values of one table.

    Attributes
    ----------
    deviation
        Root of the mean squared error of a published value, its bias included; one number, or an array with one for each.
    within_95
        With 95 % the truth is within this of the published value.
    basis
        ``"exact"``: both follow from the distribution of the noise, and ranges are rounded up. ``"bound"``: ranges are proved to hold, and are wider than they
        need to be. ``"simulated"``: noise was drawn again around the published numbers, and the estimator was run again.
    """

    deviation: float | Floats
    within_95: float | Floats
    basis: Basis = "exact"

    def to_json(self) -> dict[str, Any]:
        """The errors as the record of a release holds them; of those that depend on published values, and have columns of their own, the largest."""
        if self.basis != "exact":
            largest = [float(np.max(e, initial=0.0)) for e in (self.deviation, self.within_95)]
            return {"standard_deviation": largest[0], "within_95": largest[1], "errors": self.basis}
        return {
            "standard_deviation": plain(self.deviation),
            "within_95": plain(self.within_95),
            "errors": self.basis,
        }


@dataclass(frozen=True, repr=False)
class Table:
    """One released table.

    Attributes
    ----------
    name
        What it counts.
    columns
        Names of its label columns.
    labels
        The label columns.
    values
        The noisy values: integers, or floats where the query has a unit or weight other than 1.
    deviation
        Standard deviation of one value, or an array with one for each; of biased values the root of the mean squared error.
    within_95
        With 95 % the truth is within this of the value; one number, or an array with one for each value.
    unbiased
        Unbiased estimates, where the values are biased; None where they are not, or where there are none.
    errors
        What ``deviation`` and ``within_95`` rest on: ``"exact"``, ``"bound"`` or ``"simulated"`` (:class:`Errors`); None in releases that were
        stored before this was said.
    """

    name: str
    columns: tuple[str, ...]
    labels: tuple[Any, ...]
    values: Any
    deviation: float | Floats
    within_95: float | Floats
    unbiased: Any = None
    errors: Basis | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain form, as JSON holds it."""
        labels = zip(self.columns, self.labels, strict=True)
        return {
            "name": self.name,
            "columns": {column: np.asarray(listed).tolist() for column, listed in labels},
            "values": np.asarray(self.values).tolist(),
            **({} if self.unbiased is None else {"unbiased": np.asarray(self.unbiased).tolist()}),
            "standard_deviation": plain(self.deviation),
            "within_95": plain(self.within_95),
            **({} if self.errors is None else {"errors": self.errors}),
        }

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {len(self.values):,} values)"

    def summary(self) -> str:
        """One line for people: how many values, and how noisy they are."""
        many = f"{self.name}: {len(self.values):,} value{'s' * (len(self.values) != 1)}"
        if not np.any(self.within_95):
            return f"{many}, exact"
        word = "standard deviation" if self.unbiased is None else "root mean squared error"
        basis = "" if self.errors in (None, "exact") else f" ({self.errors})"
        return (
            f"{many}, {word} {_range(self.deviation, '.4g')}, "
            f"95 % within {_range(self.within_95, '.4g')}{basis}"
        )


@dataclass(frozen=True, repr=False)
class Release:
    """Noisy answers with all that is needed to use and to check them.

    Attributes
    ----------
    tables
        The released tables.
    record
        The provenance as it is stored: policy, query, certificate, loss, noise, version, one sentence for each stage. The properties
        :attr:`policy`, :attr:`query`, :attr:`loss` and :attr:`certificate` are its parts as values of the library.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> made = pg.release(pg.queries.identity(domain), pg.Policy(domain), [5, 0, 2], epsilon=1, rng=pg.SeededRng(7))
    >>> made.policy == pg.Policy(domain), made.query == pg.queries.identity(domain), made.loss, made.certificate.power
    (True, True, Epsilon(value=Fraction(1, 1)), Fraction(1, 1))
    """

    tables: tuple[Table, ...]
    record: Mapping[str, Any] = field(repr=False)

    unbiased_column: ClassVar[str] = UNBIASED
    """Column of unbiased values in files; empty for releases that write them by themselves."""

    @property
    def private(self) -> bool:
        """False when the noise came from seeded randomness."""
        return bool(self.record["private"])

    @cached_property
    def policy(self) -> Policy | NodePrivacy | Grouped:
        """What the release hides."""
        return self._read("policy", lambda spec: NodePrivacy.from_spec(spec) or any_policy(spec))

    @cached_property
    def query(self) -> Query:
        """What was asked."""
        domain = self.policy.domain
        return self._read("query", lambda spec: from_spec(domain, spec))

    @cached_property
    def loss(self) -> Loss:
        """The privacy loss that was spent."""
        return cast("Loss", self._read("loss", loss_from_json))

    def _read(self, key: str, reader: Callable[[dict[str, Any]], Part]) -> Part:
        """A part of the record as a value of the library."""
        try:
            return reader(dict(self.record[key]))
        except PolicyGraphError:
            raise
        except MALFORMED as cause:
            raise InputError(
                f"the {key} of this release lacks or garbles {str(cause)[:200]}: it was changed after it was written.",
                code="release.file",
            ) from cause

    @property
    def certificate(self) -> Sensitivity:
        """The sensitivity that the noise was scaled to."""
        if self.record["certificate"] is None:
            raise InputError(
                f"{self.record['mechanism']} scales no noise to a sensitivity, so that this release has no certificate.",
                code="release.certificate",
            )
        return Sensitivity.from_dict(self.record["certificate"])

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was done, one sentence for each stage."""
        return tuple(self.record["stages"])

    def joint_bound(self, delta: Any) -> list[Any]:
        """What all published values are within of the truth at once, with probability at least 1 - delta.

        Parameters
        ----------
        delta
            A probability between 0 and 1.

        Returns
        -------
        list
            For each table one number, or an array with one for each value.

        Raises
        ------
        RefusedError
            For releases of which no joint bound is proved.

        Examples
        --------
        >>> import policygraph as pg
        >>> domain = pg.Domain({"age": 3})
        >>> made = pg.release(pg.queries.identity(domain), pg.Policy(domain), [5, 0, 2], epsilon=1, rng=pg.SeededRng(7))
        >>> made.joint_bound("0.05")
        [4.0]
        """
        chance = share_of(delta)
        noise = self.record["noise"]
        if self.record["mechanism"] not in ("Laplace", "Gaussian"):
            raise RefusedError(
                f"no joint bound is proved for a release by {self.record['mechanism']}: expected noise on the answers, or a cube.",
                code="release.joint",
                value=self.record["mechanism"],
            )
        count = sum(len(table.values) for table in self.tables)
        each = joint_quantile(noise["distribution"], Fraction(noise["parameter"]), chance / max(1, count))
        usual = float(Fraction(noise["variance"])) ** 0.5 or 1.0
        return [
            joint_range(each, float(np.max(table.deviation, initial=0.0)) / usual) for table in self.tables
        ]

    def values(self, table: int | str = 0) -> Any:
        """Noisy values of one table, by number or name."""
        return self._find(table).values

    def _find(self, table: int | str) -> Table:
        if isinstance(table, int):
            if not 0 <= table < len(self.tables):
                raise InputError(
                    f"table {table}: expected 0 to {len(self.tables) - 1}.", code="release.table"
                )
            return self.tables[table]
        for found in self.tables:
            if found.name == table:
                return found
        names = ", ".join(repr(t.name) for t in self.tables)
        raise InputError(f"table {table!r}: expected one of {names}.", code="release.table", value=table)

    def table(self, table: int | str | None = None) -> Any:
        """Return the released numbers as an Arrow table (``.to_pandas()`` makes a data frame).

        Parameters
        ----------
        table
            One table by number or name. None: all of them, one below the other; a column ``table`` names them when
            there are several, and attributes that a table does not have are null.
        """
        if table is not None:
            return self._arrow([self._find(table)], named=False)
        made = self._arrow(list(self.tables), named=len(self.tables) > 1)
        return made.replace_schema_metadata({METADATA: json.dumps(dict(self.record)).encode()})

    def _arrow(self, tables: list[Table], *, named: bool) -> Any:
        import pyarrow as pa

        names = list(dict.fromkeys(column for table in tables for column in table.columns))
        pieces = []
        # Whole numbers beside others become floats as they are: the engine would refuse those beyond 2^53.
        mixed = len({np.asarray(table.values).dtype.kind for table in tables}) > 1
        biased = self.unbiased_column and any(table.unbiased is not None for table in tables)
        told = any(table.errors not in (None, "exact") for table in tables)
        for table in tables:
            height = len(table.values)
            columns: dict[str, Any] = {}
            if named:
                columns["table"] = to_arrow([table.name] * height, text=True)
            for name in names:
                if name in table.columns:
                    columns[name] = to_arrow(table.labels[table.columns.index(name)])
                else:
                    columns[name] = pa.nulls(height)
            columns[free("value", names)] = to_arrow(
                np.asarray(table.values, dtype=np.float64) if mixed else np.asarray(table.values)
            )
            columns[free("standard_deviation", names)] = to_arrow(np.full(height, table.deviation))
            columns[free("within_95", names)] = to_arrow(np.full(height, table.within_95))
            if biased:
                own = table.values if table.unbiased is None else table.unbiased
                columns[free(self.unbiased_column, names)] = to_arrow(np.asarray(own, dtype=np.float64))
            if told:
                columns[free(ERRORS, names)] = to_arrow([table.errors or "exact"] * height, text=True)
            if not self.private:
                columns[free("warning", names)] = to_arrow([NOT_PRIVATE] * height, text=True)
            pieces.append(pa.table(columns))
        return pa.concat_tables(pieces, promote_options="permissive")

    def plot(self, target: str | Path | None = None, *, table: int | str | None = None) -> Any:
        """Draw the released tables, in counts, with the ranges that contain the truth with probability 95 %.

        Parameters
        ----------
        target
            A picture file; None only returns the figure, which notebooks show.
        table
            One table by number or name; None draws the first six.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from policygraph.release.plotting import plot

        return plot(self, target, table)

    def to_arrow(self, table: int | str | None = None) -> Any:
        """The released numbers as an Arrow table; the same as :meth:`table`."""
        return self.table(table)

    def to_pandas(self, table: int | str | None = None) -> Any:
        """The released numbers as a pandas data frame: one table, or all of them one below the other.

        Examples
        --------
        >>> import policygraph as pg
        >>> domain = pg.Domain({"age": 3})
        >>> made = pg.release(pg.queries.identity(domain), pg.Policy(domain), [5, 0, 2], epsilon=1, rng=pg.SeededRng(7))
        >>> list(made.to_pandas().columns)
        ['age', 'value', 'standard_deviation', 'within_95', 'warning']
        """
        frame_library("pandas")
        return self.table(table).to_pandas()

    def to_polars(self, table: int | str | None = None) -> Any:
        """The released numbers as a polars data frame: one table, or all of them one below the other."""
        return frame_library("polars").from_arrow(self.table(table))

    def to_latex(self, table: int | str = 0) -> str:
        r"""One table as LaTeX, for the package booktabs: counts rounded to their error, with the range that contains the truth with probability 95 %.

        Examples
        --------
        >>> import policygraph as pg
        >>> domain = pg.Domain({"pay_$": ["<1", "1&2"]})
        >>> made = pg.release(pg.queries.identity(domain), pg.Policy(domain), [5, 20], epsilon=1, rng=pg.SeededRng(7))
        >>> print(made.to_latex())
        % NOT PRIVATE: the noise came from a seeded generator and can be recomputed
        \begin{tabular}{lr}
        \toprule
        pay\_\$ & count (95 \%) \\
        \midrule
        \textless{}1 & $... \pm 3$ \\
        1\&2 & $... \pm 3$ \\
        \bottomrule
        \end{tabular}
        """
        from policygraph.release.latex import tabular

        return tabular(self._find(table), "" if self.private else f"% {NOT_PRIVATE}\n")

    def to_parquet(self, path: Any) -> None:
        """Write all tables into one Parquet file; the provenance is in its metadata (key ``policygraph``)."""
        from pyarrow.parquet import write_table

        self._save(path, write_table)

    def to_csv(self, path: Any) -> None:
        """Write all tables into one CSV file; the provenance goes beside it, see :meth:`to_json`."""
        from pyarrow.csv import write_csv

        self._save(path, write_csv)

    def _save(self, path: Any, write: Callable[[Any, Any], Any]) -> None:
        """Write all tables to an open file, or to a path: completely or not at all."""
        made = self.table()
        if hasattr(path, "write"):
            write(made, path)
            return
        with _writing(path), replacing(path) as draft:
            write(made, draft)

    def to_json(self, path: str | Path | None = None, *, values: bool = True) -> str:
        """Write the provenance, with the tables unless ``values`` is false; to a file when a path is given."""
        data = dict(self.record)
        if values:
            data["tables"] = [table.to_dict() for table in self.tables]
        text = json.dumps(data, indent=2, ensure_ascii=False)
        if path is not None:
            with _writing(path), replacing(path) as draft:
                draft.write_text(text + "\n", encoding="utf-8")
        return text

    def write(
        self, folder: str | Path, *, tables: bool = False, bom: bool = False, excel: bool = False
    ) -> dict[str, str]:
        """Write ``release.parquet``, ``release.csv``, ``release.json`` and ``certificate.json`` into a folder.

        All files are complete before the first one appears; what is not to be written through a link is refused.

        Parameters
        ----------
        folder
            Where to write.
        tables
            Whether to write one CSV file for each table into the folder ``tables`` as well, rounded to its error, and for each exact table that the policy states.
            Other CSV files there, of an earlier release, are removed.
        bom
            Whether these start with a byte order mark, by which Excel knows UTF-8.
        excel
            Whether to write ``release.xlsx`` with a sheet for each of these tables.

        Returns
        -------
        dict
            What was written where.
        """
        out = Path(folder)
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as cause:
            raise InputError(f"cannot write into {out}: {cause.strerror}.", code="release.folder") from cause
        small = sum(len(table.values) for table in self.tables) <= JSON_VALUES
        certificate = json.dumps(self.record["certificate"], indent=2, ensure_ascii=False) + "\n"
        writers: dict[str, Callable[[Path], Any]] = {
            "release.parquet": self.to_parquet,
            "release.csv": self.to_csv,
            "release.json": lambda path: self.to_json(path, values=small),
            "certificate.json": lambda path: path.write_text(certificate, encoding="utf-8"),
        }
        if excel:
            writers["release.xlsx"] = lambda path: write_excel(self, path)
        written = {name: str(out / name) for name in writers}
        with _writing(out):
            if tables:
                (out / "tables").mkdir(exist_ok=True)
                files = table_files(self, bom=bom)
                stale = _listed(out / "tables" / CONTENTS) - set(files)
                files[CONTENTS] = "".join(f"{name}\n" for name in files).encode()
                writers |= {f"tables/{name}": partial(_put, content) for name, content in files.items()}
                written["tables"] = str(out / "tables")
            write_all({out / name: write for name, write in writers.items()})
            if tables:
                for name in stale:
                    (out / "tables" / name).unlink(missing_ok=True)
        return written

    def to_bytes(self) -> bytes:
        """The whole release as the bytes of a Parquet file."""
        sink = io.BytesIO()
        self.to_parquet(sink)
        return sink.getvalue()

    @classmethod
    def from_parquet(cls, source: Any) -> Release:
        """Read a release back from a Parquet file or its bytes."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            # As one file and nothing else: a path such as a=1/release.parquet would add a column a. Without threads of Arrow: one that lets go of
            # our bytes while Python is ending is ended by it, and takes the process with it (std::terminate).
            given = pa.BufferReader(source) if isinstance(source, bytes) else source
            table = pq.ParquetFile(given, pre_buffer=False).read(use_threads=False)
        except (OSError, pa.ArrowException, TypeError) as cause:
            reason = getattr(cause, "strerror", None) or "it is no Parquet file"
            shown = "the bytes" if isinstance(source, bytes) else source
            raise InputError(
                f"{shown} cannot be read as a release: {reason}. Give the path of a release.parquet.",
                code="release.file",
            ) from cause
        found = (table.schema.metadata or {}).get(METADATA)
        if found is None:
            raise InputError("this Parquet file is not a release: it has no provenance.", code="release.file")
        try:
            return cls._of_table(table, parse_json(found))
        except PolicyGraphError:
            raise
        except (*MALFORMED, pa.ArrowException) as cause:
            raise InputError(
                f"this release lacks or garbles {str(cause)[:200] or type(cause).__name__}: it was changed after it was written. Give a "
                "release.parquet as policygraph wrote it.",
                code="release.file",
            ) from cause

    @classmethod
    def _of_table(cls, table: Any, record: Any) -> Release:
        if not isinstance(record, dict):
            raise ValueError("its provenance")
        # Whoever reads a release relies on these.
        for key in ("policy", "query"):
            if not isinstance(record[key], dict):
                raise ValueError(key)
        for key, home in KINDS.items():
            if key in record:
                module, _, name = home.partition(":")
                made: Release = getattr(import_module(module), name).of_table(table, record)
                return made
        tables, start = [], 0
        for part in record["parts"]:
            piece = table.slice(start, part["height"])
            start += part["height"]
            names = list(dict.fromkeys(c for p in record["parts"] for c in p["columns"]))
            values = to_numpy(piece.column(free("value", names)))
            labels = tuple(to_numpy(piece.column(c)) for c in part["columns"])
            kind = np.int64 if part["integer"] else np.float64
            errors = read_errors(piece, part, names)
            unbiased = to_numpy(piece.column(free(UNBIASED, names))) if part.get(UNBIASED) else None
            tables.append(
                Table(
                    part["name"],
                    tuple(part["columns"]),
                    labels,
                    values.astype(kind),
                    *errors,
                    unbiased=unbiased,
                    errors=part.get(ERRORS),
                )
            )
        return cls(tuple(tables), record)

    def __repr__(self) -> str:
        names = self.tables[0].name if len(self.tables) == 1 else f"{len(self.tables):,} tables"
        values = sum(len(table.values) for table in self.tables)
        warning = "" if self.private else ", NOT PRIVATE"
        return f"{type(self).__name__}({names}, {values:,} values, {self.loss}{warning})"

    def _repr_html_(self) -> str:
        from policygraph.markup import notebook, tag
        from policygraph.markup import table as drawn
        from policygraph.release.latex import rows_of

        values = sum(len(table.values) for table in self.tables)
        title = f"Release: {len(self.tables):,} table{'s' * (len(self.tables) != 1)}, {values:,} values, {self.loss}"
        warning = None if self.private else tag("p", NOT_PRIVATE, class_="warning")
        first = self.tables[0] if self.tables else None
        body = []
        if first is not None:
            columns = len(first.columns)
            rows = list(rows_of(first, SHOWN_ROWS))
            body.append(
                drawn(
                    [*first.columns, "count", "95 % within"],
                    rows,
                    caption=first.name,
                    numbers=[columns, columns + 1],
                )
            )
            if len(first.values) > SHOWN_ROWS:
                body.append(tag("p", f"and {len(first.values) - SHOWN_ROWS:,} more rows", class_="faint"))
        body += [tag("p", table.summary(), class_="faint") for table in self.tables[1:SHOWN_TABLES]]
        if len(self.tables) > SHOWN_TABLES:
            body.append(tag("p", f"and {len(self.tables) - SHOWN_TABLES:,} more tables", class_="faint"))
        return notebook(title, warning, body)

    def __str__(self) -> str:
        head = [] if self.private else [NOT_PRIVATE]
        return "\n".join([*head, *self.sentences, *(table.summary() for table in self.tables)])


def _put(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _listed(contents: Path) -> set[str]:
    """The tables that an earlier release wrote beside this list; other files in the folder are the user's own."""
    try:
        names = contents.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return set()
    return {name for name in names if name.endswith(".csv") and Path(name).name == name}


@contextmanager
def _writing(path: Any) -> Iterator[None]:
    try:
        yield
    except OSError as cause:
        raise InputError(
            f"cannot write {path}: {cause.strerror or cause}.", code="release.folder", value=str(path)
        ) from cause


def share_of(delta: Any) -> Fraction:
    """A probability between 0 and 1, both excluded."""
    chance = as_fraction(delta, "delta")
    if not 0 < chance < 1:
        raise InputError(
            f"delta={chance}: expected a probability between 0 and 1.", code="release.delta", value=delta
        )
    return chance


def joint_quantile(distribution: str, parameter: Fraction, chance: Fraction) -> int:
    """The least t that a draw exceeds in size with at most this probability."""
    if distribution == "none":
        return 0
    find = laplace_quantile if distribution == "discrete Laplace" else gaussian_quantile
    return find(parameter, 1 - chance)


def joint_range(steps: int, size: float) -> float:
    """So many steps of noise, each of some size, never below the exact product.

    Notes
    -----
    Sizes are quotients of floating-point deviations. A noise of exactly so many steps has to be within the range, so that a fraction that is meant is restored, and other products are rounded up.

    Examples
    --------
    >>> joint_range(6, 1 - 2**-52), joint_range(6, 0.0)
    (6.0, 0.0)
    """
    meant = Fraction(size).limit_denominator(10**6)
    if abs(meant - Fraction(size)) <= meant * Fraction(1, 10**12):
        return float(steps * meant)
    return float(steps * size * (1 + 1e-12))


def read_errors(piece: Any, part: Mapping[str, Any], names: list[str]) -> tuple[Any, Any]:
    """Deviation and range of a table that is read back: from the record or, where they depend on published values, from their columns."""
    keys = ("standard_deviation", "within_95")
    if part.get(ERRORS, "exact") != "exact":
        columns = [to_numpy(piece.column(free(key, names))) for key in keys]
        return columns[0], columns[1]
    stated = [part[key] for key in keys]
    made = [np.array(e, dtype=np.float64) if isinstance(e, list) else e for e in stated]
    return made[0], made[1]


def plain(error: float | Floats) -> Any:
    """A stated error as JSON holds it: a number, or a list of them."""
    return error if isinstance(error, float) else np.asarray(error, dtype=np.float64).tolist()


def _range(error: float | Floats, form: str) -> str:
    """A stated error in words; of several the smallest and the largest."""
    low, high = (format(float(e), form) for e in (np.min(error), np.max(error)))
    return low if low == high else f"{low} to {high}"


def scaled(values: Any, factor: Fraction) -> Any:
    """Noisy integers times their unit: integers stay integers."""
    if factor == 1:
        return values
    if factor.denominator == 1:
        return values * factor.numerator
    return values * float(factor)
