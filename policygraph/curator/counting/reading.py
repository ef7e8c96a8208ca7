"""How data are read: what is declared about files, and its plain form. Owns :class:`Files` and :func:`how_read`.

Everything that decides what a record is must be fixed before the rows are seen: the options here, the names of the files, and the header
line of a CSV file.
"""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from policygraph.errors import DataError, InputError
from policygraph.model.file_options import OPTIONS, expected_option

PACKED = (".gz", ".zst")
DATABASE = "duckdb://"
SERVER = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class Files:
    """Files and how they are read, wherever data are expected.

    Parameters
    ----------
    data
        A path, a pattern or a list of paths.
    delimiter
        What separates the values of a CSV line. None: the one of ``,``, ``;``, ``|`` and tab that the header line contains.
    quote
        What encloses a value of CSV that contains delimiters, quotes or line breaks; ``""`` for files without quotes.
    encoding
        Encoding of text files, by its Python name.
    header
        Whether a CSV edge list starts with the names of its columns; None: it does unless its first line names two nodes. Tables always do.
    hive
        Whether folders named ``column=value`` are columns.
    sheet
        Which sheet of an Excel workbook; None: the only one.

    Examples
    --------
    >>> Files("people.csv", delimiter=";", encoding="latin-1").options()
    {'delimiter': ';', 'encoding': 'iso8859-1'}
    """

    data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
    delimiter: str | None = None
    quote: str = '"'
    encoding: str = "utf-8"
    header: bool | None = None
    hive: bool = False
    sheet: str | None = None

    def __post_init__(self) -> None:
        listed = list(self.data) if isinstance(self.data, tuple) else self.data
        if not are_paths(listed):
            raise InputError(
                f"Files({self.data!r}): expected a path, a pattern or a list of paths.",
                code="data.options",
                value=self.data,
            )
        _check_options(self)
        object.__setattr__(self, "encoding", codecs.lookup(self.encoding).name)

    def options(self) -> dict[str, Any]:
        """What is declared, without what is so by default."""
        return {name: getattr(self, name) for name in OPTIONS if getattr(self, name) != getattr(Files, name)}


def _check_options(files: Files) -> None:
    for name in OPTIONS:
        value = getattr(files, name)
        expected = None if value is None else expected_option(name, value)
        if value is None and name not in ("delimiter", "header", "sheet"):
            expected = expected_option(name, value)
        if expected is not None:
            raise InputError(f"{name}={value!r}: expected {expected}.", code="data.options", value=value)
    if files.delimiter == files.quote:
        raise InputError(
            f"delimiter and quote are both {files.quote!r}: expected two characters.",
            code="data.options",
            value=files.quote,
        )


def are_paths(data: Any) -> bool:
    """Whether data are a path, a pattern or a list of them; not whether anything is there.

    Examples
    --------
    >>> are_paths("people.csv"), are_paths(["a.csv", "b.csv"]), are_paths([1, 2])
    (True, True, False)
    """
    if isinstance(data, (str, os.PathLike)):
        return True
    return (
        isinstance(data, list) and bool(data) and all(isinstance(item, (str, os.PathLike)) for item in data)
    )


def is_database(data: Any) -> bool:
    """Whether data are the address of a table in a database, of a DuckDB file or of Postgres, as such or in :class:`Files`.

    Examples
    --------
    >>> is_database("DuckDB://a.db?table=t"), is_database(Files("postgresql://host/db/t")), is_database("a.db")
    (True, True, False)
    """
    data = data.data if isinstance(data, Files) else data
    return is_server(data) or (isinstance(data, str) and data[: len(DATABASE)].lower() == DATABASE)


def is_server(data: Any) -> bool:
    """Whether data are the address of a table in Postgres.

    Examples
    --------
    >>> is_server("postgresql://host/db/people"), is_server("people.csv")
    (True, False)
    """
    data = data.data if isinstance(data, Files) else data
    return isinstance(data, str) and data.lower().startswith(SERVER)


def shown_data(data: str) -> str:
    """Data of the command line as they may be shown: an address of a server without user, password and settings.

    Examples
    --------
    >>> shown_data("postgresql://me:secret@host:5433/db/people?sslmode=require"), shown_data("a@b.csv")
    ('postgresql://host:5433/db/people', 'a@b.csv')
    """
    if not is_server(data):
        return data
    rest = data.partition("://")[2].partition("#")[0].partition("?")[0]
    host, slash, path = rest.rpartition("@")[2].partition("/")
    return f"postgresql://{host}{slash}{path}"


def local_path(given: str) -> str:
    """Path behind an address: ``file://`` is the path that it names, anything else is left as it is.

    Examples
    --------
    >>> local_path("file:///data/my%20people.csv"), local_path("FILE://localhost/a.csv"), local_path("a%20b.csv")
    ('/data/my people.csv', '/a.csv', 'a%20b.csv')
    """
    if given[:7].lower() != "file://":
        return given
    # Signs such as # and ? are part of a path here; urlsplit would cut them off.
    host, slash, rest = given[7:].partition("/")
    if host.lower() not in ("", "localhost"):
        raise DataError(
            f"{given}: expected a file of this machine, such as file:///data/people.csv.",
            code="data.address",
            value=given,
        )
    return unquote(slash + rest)


def suffix_of(path: str) -> str:
    """Kind of a file by its name, compression aside.

    Examples
    --------
    >>> suffix_of("people.CSV.gz"), suffix_of("s3://data/people.parquet?version=2")
    ('.csv', '.parquet')
    """
    plain = Path(urlsplit(path).path if "://" in path and not os.path.exists(path) else path)
    return plain.with_suffix("").suffix.lower() if plain.suffix.lower() in PACKED else plain.suffix.lower()


def how_read(
    data: Any, columns: Mapping[str, str] | None = None, edges: Mapping[str, str] | None = None
) -> str:
    """How data are read, as a text: with the content, the policy and what a source tells of itself, all that the counts depend on.

    Two requests are the same only if this is the same: the same bytes under another name of column or another delimiter are other records.
    It is known before anything is opened, and stays the same from one version to the next.

    Returns
    -------
    str
        JSON with sorted keys: ``columns``, ``edges`` and ``options`` (:meth:`Files.options`), each only where there is something to say.

    Examples
    --------
    >>> how_read(Files("people.csv", delimiter=";"), columns={"sex": "Sex"})
    '{"columns": {"sex": "Sex"}, "options": {"delimiter": ";"}}'
    >>> how_read("people.csv")
    '{}'
    """
    said = {
        "columns": dict(columns or {}),
        "edges": dict(edges or {}),
        "options": data.options() if isinstance(data, Files) else {},
    }
    return json.dumps({key: value for key, value in said.items() if value}, sort_keys=True)
