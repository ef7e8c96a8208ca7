"""Files as sources: which ones, and what the engine is told about them. Owns ``from_files``, ``resolve_all``, ``csv_source``, ``json_source``.

Of JSON files one object is one record, and each value has the type that it is written with.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from policygraph.curator.counting import sql
from policygraph.curator.counting.reading import Files, local_path, suffix_of
from policygraph.curator.counting.source import (
    Source,
    check_plain,
    connect,
    escaped,
    locked,
    selected,
    stamps_of,
    unreadable,
)
from policygraph.curator.counting.text import Folder, Sheet, as_utf8, blocks, packing_of, read_head, scan_csv
from policygraph.curator.counting.values import JSON, SPLIT, WHOLE, mixed
from policygraph.errors import DataError, InputError

CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
RECORDS = (".json", ".ndjson", ".jsonl")
EXCEL = (".xlsx",)
NETWORK = ("http", "https", "s3", "s3a", "s3n", "gs", "gcs", "r2", "hf")
"""Addresses that the extension httpfs of the engine reads."""


def resolve(given: str) -> tuple[str, list[str]]:
    """Find the files behind a path, a pattern, a folder or an address; return how to call them, and their paths."""
    path = local_path(given)
    if "://" in path and not os.path.exists(path):
        return given, [path]
    path = os.path.expanduser(path)
    if os.path.isdir(path):
        found = _inside(path)
    elif os.path.exists(path):
        return given, [path]
    else:
        found = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not found:
        raise DataError(
            f"{given}: no such file. Give the path of a CSV or Parquet file.",
            code="data.no-file",
            value=given,
        )
    return given, found


def _inside(folder: str) -> list[str]:
    """All files of a folder and of those in it, but for hidden ones and those whose name starts with an underscore, which are notes of programs."""
    found = []
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        linked = [name for name in folders if os.path.islink(os.path.join(here, name))]
        if linked:
            raise DataError(
                f"{os.path.join(here, linked[0])} is a link to a folder: expected its files in one place. Remove the link, or give a list of files.",
                code="data.linked",
                value=linked[0],
            )
        found += [os.path.join(here, name) for name in sorted(names) if not name.startswith((".", "_"))]
    return found


def resolve_all(files: Files) -> tuple[str, list[str]]:
    """Find all files; no file twice, be it under another name."""
    if isinstance(files.data, (str, os.PathLike)):
        label, paths = resolve(os.fspath(files.data))
    else:
        paths = [path for item in files.data for path in resolve(os.fspath(item))[1]]
        label = f"{len(paths)} files"
    met: dict[tuple[int, int] | str, str] = {}
    for path in paths:
        remote = "://" in path and not os.path.exists(path)
        if not remote:
            stamps_of([path])
            if os.path.isdir(path):
                raise DataError(
                    f"{path} is a folder: expected a file, or a pattern such as {path.rstrip('/')}/*.parquet.",
                    code="data.no-file",
                    value=path,
                )
            check_plain(path)
        at = os.stat(path) if not remote else None
        key = path if at is None else (at.st_dev, at.st_ino)
        if key in met:
            raise DataError(
                f"{path} and {met[key]} are one file: expected each file once, since its records would be counted twice. "
                + ("Leave one name out." if met[key] != path else "Name it once."),
                code="data.linked",
                value=path,
            )
        met[key] = path
    return label, paths


def _fetched(address: str) -> tuple[str, Any]:
    """Copy what an address of the network names into a file that lives as long as the second value."""
    import duckdb

    scheme = address.partition("://")[0].lower()
    connection = connect()
    try:
        if scheme not in NETWORK:
            raise duckdb.Error(f"addresses of kind {scheme}")
        connection.execute("LOAD httpfs")
    except duckdb.Error as cause:
        raise DataError(
            f"{address}: reading from the network needs the extension httpfs of DuckDB, which is not installed here, and nothing is installed by itself. "
            "Download the file and give its path, or give a DuckDB connection and a SELECT.",
            code="data.network",
            value=address,
        ) from cause
    try:
        [(content,)] = connection.execute(
            f"SELECT content FROM read_blob({sql.listing([address])})"
        ).fetchall()
    except (duckdb.Error, ValueError) as cause:
        raise unreadable(address, cause) from cause
    keep = Folder()
    path = os.path.join(keep.name, "copy" + "".join(Path(urlsplit(address).path).suffixes[-2:]))
    Path(path).write_bytes(content)
    return path, keep


def from_files(files: Files) -> Source:
    """Make a source of files of one kind."""
    label, paths = resolve_all(files)
    kinds = {suffix_of(path) for path in paths}
    if (
        len(kinds) > 1
        and isinstance(files.data, (str, os.PathLike))
        and os.path.isdir(local_path(os.fspath(files.data)))
    ):
        raise DataError(
            f"{label} is a folder with files of several kinds: expected a file, or a pattern such as {label.rstrip('/')}/*.parquet.",
            code="data.no-file",
            value=label,
        )
    if len(kinds) > 1:
        raise DataError(
            f"{label}: files of several kinds ({', '.join(sorted(kinds))}): expected one kind.",
            code="data.format",
            value=label,
        )
    kind = next(iter(kinds))
    if kind not in (*CSV, *PARQUET, *RECORDS, *EXCEL):
        raise DataError(
            f"{label} {f'ends in {kind}' if kind else 'has no suffix'}: expected .csv, .tsv, .txt, .parquet, .pq, .json, .ndjson, .jsonl, .xlsx or "
            "duckdb://file.db?table=name. Other sources can be given in Python as a DuckDB connection and a SELECT.",
            code="data.format",
            value=label,
        )
    if kind not in CSV:
        _only(files, label, ("sheet",) if kind in EXCEL else ("hive",))
    elif files.sheet is not None:
        raise InputError(
            f"{label}: sheet is about Excel: expected none for this kind of file.",
            code="data.options",
            value=files.sheet,
        )
    paths, keep = fetched(paths)
    if kind in CSV:
        return csv_source(files, label, paths, keep=keep)
    if kind in PARQUET:
        return _parquet_source(files, label, paths, keep)
    if kind in EXCEL:
        from policygraph.curator.counting.excel import excel_source

        return excel_source(files, label, paths, keep)
    return json_source(files, label, paths, keep)


def fetched(paths: list[str]) -> tuple[list[str], tuple[Any, ...]]:
    """Paths with those of the network replaced by copies, and what keeps the copies."""
    out, keep = [], []
    for path in paths:
        if "://" in path and not os.path.exists(path):
            path, held = _fetched(path)
            keep.append(held)
        out.append(path)
    return out, tuple(keep)


def _only(files: Files, label: str, names: tuple[str, ...]) -> None:
    wrong = [name for name in files.options() if name not in names]
    if wrong:
        raise InputError(
            f"{label}: {', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} about other kinds of files: expected none for this kind of file.",
            code="data.options",
            value=wrong,
        )


def folder_columns(files: Files, path: str) -> dict[str, str]:
    """Columns that the names of folders give, where that is declared: ``year=2024`` in the path."""
    if not files.hive:
        return {}
    pairs = [part.partition("=") for part in Path(path).parent.parts if "=" in part]
    return {unquote(name): unquote(value) for name, _, value in pairs}


def folders_of(files: Files, paths: Sequence[str]) -> tuple[str, ...]:
    """What the folders of each file say, as texts; nothing where folders are no columns."""
    return (
        tuple(json.dumps(folder_columns(files, path), sort_keys=True) for path in paths) if files.hive else ()
    )


def united(
    files: Files, label: str, parts: Sequence[tuple[str, str, Sequence[tuple[str, str, str]]]]
) -> tuple[str, list[tuple[str, str, str]]]:
    """Put files together: each with its path, its FROM clause and its columns. Return a SELECT and its columns.

    The columns of all files must have the same names. A column that has another type in another file is kept as mixed values, since a common type would
    change values.
    """
    whole: list[tuple[str, str, list[tuple[str, str, str]]]] = []
    for path, clause, columns in parts:
        more = [(name, sql.literal(value), "VARCHAR") for name, value in folder_columns(files, path).items()]
        whole.append((path, clause, [*((shown, sql.name(at), kind) for shown, at, kind in columns), *more]))
    first = sorted(shown for shown, _, _ in whole[0][2])
    for path, _, columns in whole[1:]:
        names = sorted(shown for shown, _, _ in columns)
        if names != first:
            odd = sorted(set(names) ^ set(first)) or names
            raise DataError(
                f"{label}: {whole[0][0]} and {path} have different columns ({', '.join(map(repr, odd[:8]))}): expected the same names in every file.",
                code="data.columns-differ",
                value=odd,
            )
    order = [shown for shown, _, _ in whole[0][2]]
    if len(set(order)) < len(order) and len(whole) > 1:
        raise DataError(
            f"{label}: a name of a column occurs twice: expected each name once where several files are read.",
            code="data.columns-differ",
            value=order,
        )
    kinds = [
        _common({kind for _, _, columns in whole for shown, _, kind in columns if shown == name})
        for name in order
    ]
    if len(set(order)) < len(order):
        kinds = [kind for _, _, kind in whole[0][2]]
    selects = []
    for _, clause, columns in whole:
        at = {shown: (place, kind) for shown, place, kind in columns} if len(whole) > 1 else None
        picked = (
            [at[shown] for shown in order]
            if at is not None
            else [(place, kind) for _, place, kind in columns]
        )
        fields = [
            f"{mixed(place, kind) if common == SPLIT else place} AS c{i}"
            for i, ((place, kind), common) in enumerate(zip(picked, kinds, strict=True))
        ]
        selects.append(f"SELECT {', '.join(fields) or '1 AS nothing'} FROM {clause}")
    return " UNION ALL ".join(selects), [
        (shown, f"c{i}", kind) for i, (shown, kind) in enumerate(zip(order, kinds, strict=True))
    ]


def _common(kinds: set[str]) -> str:
    """Kind of a column that has these in several files."""
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds <= WHOLE - {"UHUGEINT"}:
        return "HUGEINT"
    return SPLIT


def _parquet_source(files: Files, label: str, paths: list[str], keep: tuple[Any, ...]) -> Source:
    import duckdb

    connection = locked(connect(), paths)
    groups: dict[tuple[Any, ...], list[str]] = {}
    for path in paths:
        try:
            found = connection.sql(f"SELECT * FROM {_parquet([path])}")
            columns = tuple(
                (name, name, str(kind)) for name, kind in zip(found.columns, found.types, strict=True)
            )
        except duckdb.Error as cause:
            raise unreadable(path, cause) from cause
        groups.setdefault((columns, tuple(folder_columns(files, path).items())), []).append(path)
    parts = [(some[0], _parquet(some), columns) for (columns, _), some in groups.items()]
    select, listed = united(files, label, parts)
    return selected(
        label,
        connection,
        select,
        columns=listed,
        stamps=stamps_of(paths),
        keep=keep,
        folders=folders_of(files, paths),
    )


def _parquet(paths: list[str]) -> str:
    return (
        f"read_parquet({escaped(paths)}, hive_partitioning = false, union_by_name = false, filename = false)"
    )


def csv_source(
    files: Files, label: str, paths: list[str], *, header: bool = True, keep: tuple[Any, ...] = ()
) -> Source:
    """Make a source of CSV files, all of whose values are text."""
    stamps = stamps_of(paths)
    sheets: list[tuple[str, Sheet]] = []
    failure: DataError | None = None
    for path, (_, size, *_) in zip(paths, stamps, strict=True):
        if size == 0:
            raise _empty(label if len(paths) == 1 else path)
        copy, held = as_utf8(files, path)
        keep = keep if held is None else (*keep, held)
        sheet = read_head(copy, files, path)
        if not sheet.names:
            raise _empty(label if len(paths) == 1 else path)
        for name in sheet.names:
            if "\r" in name.replace("\r\n", ""):
                # The engine would take it for the end of the header, and find no records.
                raise DataError(
                    f"{path}: the column {name!r} has a carriage return in its name: expected a name on one line, or a usual line break. Rename the column.",
                    code="data.header",
                    value=name,
                )
        try:
            sheet = scan_csv(sheet, path)
        except DataError as cause:
            failure = failure or cause
        sheets.append((path, sheet))
    connection = locked(connect(), [sheet.path for _, sheet in sheets])
    groups: dict[tuple[Any, ...], list[tuple[str, Sheet]]] = {}
    for path, sheet in sheets:
        form = (sheet.names, sheet.delimiter, sheet.inner, sheet.lead, packing_of(sheet.path))
        groups.setdefault((*form, tuple(folder_columns(files, path).items())), []).append((path, sheet))
    parts = []
    for some in groups.values():
        # Files without a header have columns by their number.
        names = [name.strip() if header else f"column{i}" for i, name in enumerate(some[0][1].names)]
        columns = [(name, f"c{i}", "VARCHAR") for i, name in enumerate(names)]
        parts.append((some[0][0], _read_csv([sheet for _, sheet in some], header=header), columns))
    select, columns = united(files, label, parts)
    records = sum(sheet.records - header for _, sheet in sheets)
    return selected(
        label,
        connection,
        select,
        columns=columns,
        textual=True,
        stamps=stamps,
        keep=keep,
        records=records,
        failure=failure,
        folders=folders_of(files, paths),
    )


def _empty(label: str) -> DataError:
    return DataError(
        f"{label} is empty: expected a line with the names of the columns.", code="data.empty", value=label
    )


def _read_csv(sheets: list[Sheet], *, header: bool) -> str:
    """Return the FROM clause that reads CSV files of one form as text, all of whose options are given."""
    one = sheets[0]
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(one.names)))
    return (
        f"read_csv({escaped([sheet.path for sheet in sheets])}, auto_detect = false, header = {str(header).lower()}, columns = {{{columns}}}, "
        f"delim = {sql.literal(one.delimiter)}, quote = {sql.literal(one.quote)}, escape = {sql.literal(one.quote)}, skip = {one.lead}, comment = '', "
        "null_padding = false, ignore_errors = false, strict_mode = true, hive_partitioning = false, filename = false, "
        # Inside quotes a line break is none; only a reader that starts at the beginning is sure to know.
        f"compression = '{packing_of(one.path)}', parallel = {str(not one.inner).lower()})"
    )


def json_source(files: Files, label: str, paths: list[str], keep: tuple[Any, ...] = ()) -> Source:
    """Make a source of JSON files: an array of objects, or one object on each line.

    The columns are the keys of any record. A value keeps the type that it is written with, so that no record says how another one is read.
    """
    import duckdb

    connection = locked(connect(), paths)
    arrays = {path: _is_array(path) for path in paths}
    columns: dict[tuple[Any, ...], tuple[str, list[str]]] = {}
    names: set[str] = set()

    def explain(cause: Exception | None) -> DataError | None:
        for path in paths:
            place = _first_wrong(path, arrays[path])
            if place is not None:
                return DataError(f"{path} cannot be read: {place}", code="data.unreadable", value=path)
        return None

    for path in paths:
        if arrays[path] and not _is_closed(path):
            # The engine takes an array that ends after a comma for whole.
            raise explain(None) or unreadable(label, ValueError("the array has no end."))
        form = (arrays[path], packing_of(path), tuple(folder_columns(files, path).items()))
        columns.setdefault(form, (path, []))[1].append(path)
    groups = [
        (first, _objects(some, array, packing)) for (array, packing, _), (first, some) in columns.items()
    ]
    for _, clause in groups:
        keys = "json_keys(json)"
        marked = (
            f"CASE WHEN json_type(json) <> 'OBJECT' OR len({keys}) <> len(list_distinct({keys})) THEN ['!'] "
            f"ELSE list_transform({keys}, lambda key: '=' || key) END"
        )
        try:
            found = {
                key
                for (key,) in connection.execute(f"SELECT DISTINCT unnest({marked}) FROM {clause}").fetchall()
            }
        except duckdb.Error as cause:
            raise explain(cause) or unreadable(label, cause) from cause
        if "!" in found:
            raise explain(None) or unreadable(
                label, ValueError("a record is not an object, or has a key twice.")
            )
        # A key with a zero byte is the name of no attribute, and no text for the engine.
        names |= {key[1:] for key in found if "\0" not in key}
    order = sorted(names)
    pointers = sql.listing("/" + name.replace("~", "~0").replace("/", "~1") for name in order)
    parts = []
    for first, clause in groups:
        picked = ", ".join(f"nullif(got[{i + 1}], 'null') AS k{i}" for i in range(len(order)))
        inner = f"(SELECT {picked} FROM (SELECT json_extract(json, {pointers}) AS got FROM {clause}))"
        if not order:
            inner = f"(SELECT 1 AS nothing FROM {clause})"
        parts.append((first, inner, [(name, f"k{i}", JSON) for i, name in enumerate(order)]))
    select, listed = united(files, label, parts)
    return selected(
        label, connection, select, columns=listed, stamps=stamps_of(paths), keep=keep, explain=explain,
        folders=folders_of(files, paths), loose=True,
    )  # fmt: skip


def _objects(paths: list[str], array: bool, packing: str) -> str:
    form = "array" if array else "newline_delimited"
    return f"read_json_objects({escaped(paths)}, format = '{form}', compression = '{packing}', hive_partitioning = false, filename = false)"


def _is_array(path: str) -> bool:
    """Whether a file is one array: by its first sign, which is no part of a record; files of lines are never."""
    if suffix_of(path) != ".json":
        return False
    for block in blocks(path):
        if text := block.lstrip(b" \t\r\n"):
            return text.startswith(b"[")
    return False


def _is_closed(path: str) -> bool:
    """Whether the last sign of a file ends an array."""
    last = b""
    for block in blocks(path):
        last = block.rstrip(b" \t\r\n")[-1:] or last
    return last == b"]"


def _first_wrong(path: str, array: bool) -> str | None:
    """Find the first record of a JSON file that is none, the slow way; None if all are well."""
    try:
        for name, text in _records(path, array):
            try:
                record = json.loads(text, object_pairs_hook=_once) if isinstance(text, str) else text
                if not isinstance(record, dict):
                    return f'{name} is {"no object" if record is not None else "null"}: expected a record such as {{"age": 7}}.'
                json.dumps(record, ensure_ascii=False).encode()
            except (ValueError, RecursionError) as cause:
                return f"{name} is no JSON object: {cause}."
    except _NoJsonError as cause:
        return f"{cause}."
    return None


class _NoJsonError(Exception):
    """A place of a file where no record begins or ends."""

    def __init__(self, name: str, cause: object) -> None:
        super().__init__(f"{name} is no JSON: {cause}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key occurs twice")
    return made


def _records(path: str, array: bool) -> Iterator[tuple[str, Any]]:
    if not array:
        lines = 0
        for block in blocks(path):
            for line in block.removesuffix(b"\n").split(b"\n"):
                lines += 1
                try:
                    text = line.decode().strip(" \t\r")
                except UnicodeDecodeError as cause:
                    raise _NoJsonError(f"line {lines}", cause) from cause
                if text:
                    yield f"line {lines}", text
        return
    raw, broken = b"".join(blocks(path)), None
    try:
        whole = raw.decode()
    except UnicodeDecodeError as cause:
        # The record that the last good byte belongs to is the place.
        whole, broken = raw[: cause.start].decode(), cause
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    at, count = whole.index("[") + 1, 0
    while True:
        at = _blank(whole, at)
        if whole[at : at + 1] == "]" and not count:
            break
        count += 1
        try:
            value, at = decoder.raw_decode(whole, at)
        except (ValueError, RecursionError) as cause:
            raise _NoJsonError(f"record {count}", broken or cause) from cause
        yield f"record {count}", value
        at = _blank(whole, at)
        if whole[at : at + 1] == "]":
            break
        if whole[at : at + 1] != ",":
            raise _NoJsonError(f"what follows record {count}", broken or "expected , or ]")
        at += 1
    if broken or _blank(whole, at + 1) < len(whole):
        raise _NoJsonError(f"what follows record {count} and the array", broken or "expected nothing")


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
