"""JSON files as sources: one object is one record, and each value has the type that it is written with. Owns ``json_source``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from policygraph.curator.counting import sql
from policygraph.curator.counting.files import folder_columns, folders_of, united
from policygraph.curator.counting.reading import Files, suffix_of
from policygraph.curator.counting.source import (
    Source,
    connect,
    escaped,
    locked,
    selected,
    stamps_of,
    unreadable,
)
from policygraph.curator.counting.text import blocks, packing_of
from policygraph.curator.counting.values import JSON
from policygraph.errors import DataError

__all__ = ["json_source"]


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
            raise explain(None) or unreadable(label, ValueError("a record is no object, or has a key twice."))
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


def _first_wrong(path: str, array: bool) -> str | None:
    """Find the first record of a JSON file that is none, the slow way; None if all are well."""
    for name, text in _records(path, array):
        if isinstance(text, Exception):
            return f"{name} is no JSON: {text}."
        try:
            if not isinstance(text, str):
                record: Any = text
            else:
                record = json.loads(text, object_pairs_hook=_once)
            if not isinstance(record, dict):
                return f'{name} is {"no object" if record is not None else "null"}: expected a record such as {{"age": 7}}.'
            json.dumps(record, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as cause:
            return f"{name} is no JSON object: {cause}."
    return None


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
                    yield f"line {lines}", cause
                    return
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
            yield f"record {count}", broken or cause
            return
        yield f"record {count}", value
        at = _blank(whole, at)
        if whole[at : at + 1] == "]":
            break
        if whole[at : at + 1] != ",":
            yield f"what follows record {count}", broken or ValueError("expected , or ]")
            return
        at += 1
    if broken or _blank(whole, at + 1) < len(whole):
        yield f"what follows record {count} and the array", broken or ValueError("expected nothing")


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
