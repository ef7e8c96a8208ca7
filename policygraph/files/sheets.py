"""Files that a policy file names: lists of labels and published tables. Owns ``read_labels``, ``read_published``, ``read_head`` and ``summed``.

Both are public, and small enough to be read here. The policy holds what they say, not where they are: a file that moves changes no fingerprint.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from policygraph.documents import read_bytes
from policygraph.model.domain import Domain, Label
from policygraph.workbooks import read_sheet

DELIMITERS = (",", ";", "\t", "|")
COUNT = "count"
KINDS = (".csv", ".tsv", ".txt", ".xlsx")


class SheetError(ValueError):
    """What is wrong with a file that a policy file names."""


def _rows(given: Mapping[str, Any], key: str, folder: Path) -> tuple[list[str] | None, list[list[Any]]]:
    """Names of the columns (None for a plain list) and rows of a file."""
    name = given[key]
    path = folder / name
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise SheetError(f"{name}: expected a file that ends in {', '.join(KINDS)}.")
    try:
        if kind == ".xlsx":
            return read_sheet(path, given.get("sheet"))
        text = read_bytes(path).decode(given.get("encoding", "utf-8-sig"))
    except OSError as cause:
        raise SheetError(
            f"{name} cannot be read: {cause.strerror}. Paths are relative to the policy file ({path})."
        ) from cause
    except UnicodeDecodeError as cause:
        raise SheetError(
            f"{name} is not {given.get('encoding', 'UTF-8')} text (byte {cause.start}): say its encoding, such as "
            f'{{{key} = "{name}", encoding = "latin-1"}}.'
        ) from cause
    except ValueError as cause:
        raise SheetError(f"{name} cannot be read: {cause}.") from cause
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    if kind == ".txt":
        return None, [[line.strip()] for line in lines.split("\n") if line.strip()]
    head = lines.split("\n", 1)[0]
    met = [sign for sign in DELIMITERS if sign in head]
    if len(met) > 1:
        raise SheetError(
            f"{name}: its first line contains {' and '.join(map(repr, met))}: expected one of them."
        )
    try:
        rows = [
            row
            for row in csv.reader(io.StringIO(lines), delimiter=met[0] if met else ",", strict=True)
            if row
        ]
    except csv.Error as cause:
        raise SheetError(f"{name} is no CSV: {cause}.") from cause
    names = [column.strip() for column in rows[0]] if rows else []
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(names):
            raise SheetError(
                f"{name}, record {number}: {len(row)} values: expected {len(names)}, as in its first line."
            )
    return names, rows[1:]


def read_head(file: str, columns: Sequence[str], encoding: str | None = None) -> dict[str, list[str]]:
    """Attributes of a published table and their labels, each once and in the order of the file.

    Parameters
    ----------
    file
        A CSV or Excel file.
    columns
        Names that attributes may have; what is left is the column of counts.
    encoding
        Encoding of a text file; None for UTF-8.

    Raises
    ------
    SheetError
        For a file that cannot be read, has no such column, or more than one that may be the counts.
    """
    given = {"file": file} if encoding is None else {"file": file, "encoding": encoding}
    names, rows = _rows(given, "file", Path())
    found = [name for name in names or () if name in columns and name != COUNT]
    rest = [name for name in names or () if name not in found]
    if not found or (len(rest) != 1 and COUNT not in rest):
        raise SheetError(
            f"{file}: its columns are {', '.join(map(repr, names or ()))}: expected columns of the data ({', '.join(map(repr, columns))}), and one of counts."
        )
    place = [(name, (names or []).index(name)) for name in found]
    return {name: list(dict.fromkeys(_key(row[at]) for row in rows)) for name, at in place}


def summed(file: str, columns: Sequence[str], kept: Sequence[str], encoding: str | None = None) -> str:
    """A published table added up over the attributes that are not kept, as the text of a CSV file.

    What is published of all attributes is published of some: leaving out an attribute leaves these sums public.

    Parameters
    ----------
    file
        A CSV or Excel file, such as :func:`read_head` reads.
    columns
        The attributes of the table.
    kept
        Those that stay, in order; without any it is the total.
    encoding
        Encoding of a text file; None for UTF-8.

    Raises
    ------
    SheetError
        For a cell that is missing or there twice, and counts that are no whole numbers.
    """
    given = {"file": file} if encoding is None else {"file": file, "encoding": encoding}
    names, rows = _rows(given, "file", Path())
    head = names or []
    rest = [name for name in head if name not in columns]
    counts = COUNT if COUNT in rest else rest[0]
    where, at = _column(file, head, counts), [_column(file, head, name) for name in columns]
    cells = {tuple(_key(row[column]) for column in at): row[where] for row in rows}
    if len(cells) != len(rows):
        raise SheetError(f"{file}: a cell is there twice.")
    if len(cells) != prod(len(set(labels)) for labels in zip(*cells, strict=True)):
        raise SheetError(f"{file} has no count for some of its cells: add them.")
    sums: Counter[tuple[str, ...]] = Counter()
    for number, (cell, value) in enumerate(cells.items(), 2):
        sums[tuple(cell[columns.index(name)] for name in kept)] += _count(file, number, counts, value)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [[*kept, COUNT], *([*cell, total] for cell, total in sums.items())]
    )
    return out.getvalue()


def _column(name: str, names: list[str], wanted: str) -> int:
    if names.count(wanted) != 1:
        what = "no column" if wanted not in names else "several columns"
        raise SheetError(f"{name} has {what} {wanted!r}: its columns are {', '.join(map(repr, names))}.")
    return names.index(wanted)


def read_labels(given: Mapping[str, Any], folder: Path) -> list[Label]:
    """Read the labels of an attribute: a list of lines (.txt), or a column of a table (.csv, .tsv, .xlsx).

    Parameters
    ----------
    given
        ``labels``, and optionally ``column``, ``encoding``, ``sheet``, ``also``.
    folder
        What paths are relative to.

    Raises
    ------
    SheetError
        With what is wrong.
    """
    names, rows = _rows(given, "labels", folder)
    name = given["labels"]
    at = 0
    if names is None:
        if "column" in given:
            raise SheetError(f"{name} is a plain list without columns: leave out column, or give a .csv.")
    elif "column" in given:
        at = _column(name, names, given["column"])
    elif len(names) != 1:
        raise SheetError(
            f"{name} has the columns {', '.join(map(repr, names))}: say which one holds the labels, such as "
            f'{{labels = "{name}", column = "{names[0] if names else "name"}"}}.'
        )
    found: list[Label] = []
    for number, row in enumerate(rows, 1 if names is None else 2):
        label = row[at]
        if label is None or label == "":
            raise SheetError(f"{name}, record {number}: no label.")
        if not isinstance(label, (str, int, float)):
            label = str(label)
        found.append(label)
    if not found:
        raise SheetError(f"{name} has no labels.")
    return [*found, *given.get("also", ())]


def read_published(given: Mapping[str, Any], names: list[str], domain: Domain, folder: Path) -> list[int]:
    """Read the values of a published table of counts, in the order of the cells.

    Parameters
    ----------
    given
        ``file``, and optionally ``count`` (the column of counts), ``missing`` (0 for cells that are left out), ``columns``, ``encoding``, ``sheet``.
    names
        Attributes of the table.
    domain
        What they can be.
    folder
        What paths are relative to.

    Raises
    ------
    SheetError
        For a cell that is missing or there twice, labels that are none, counts that are no whole numbers.
    """
    file = given["file"]
    head, rows = _rows(given, "file", folder)
    if head is None:
        raise SheetError(
            f"{file} is a plain list: expected a table with the columns {', '.join([*names, COUNT])}."
        )
    renamed = given.get("columns") or {}
    part = domain.project(names) if names else None
    order = list(part.names) if part is not None else []
    size = 1 if part is None else part.size
    if size > 10_000_000:
        raise SheetError(f"a published table of {size:,} cells: expected at most 10,000,000.")
    at = [_column(file, head, renamed.get(name, name)) for name in order]
    rest = [column for number, column in enumerate(head) if number not in at]
    counts = given.get("count") or (COUNT if COUNT in rest or len(rest) != 1 else rest[0])
    where = _column(file, head, counts)
    looked = [_lookup(domain, name) for name in order]
    found: list[int | None] = [None] * size
    for number, row in enumerate(rows, 2):
        cell = 0
        for name, column, lookup in zip(order, at, looked, strict=True):
            code = lookup.get(_key(row[column]))
            if code is None:
                raise SheetError(
                    f"{file}, record {number}: {name} has no value {row[column]!r}: expected one of {_some(domain, name)}."
                )
            cell = cell * len(domain.labels(name)) + code
        if found[cell] is not None:
            raise SheetError(f"{file}, record {number}: the cell {[row[c] for c in at]} is there twice.")
        found[cell] = _count(file, number, counts, row[where])
    empty = [cell for cell, value in enumerate(found) if value is None]
    if empty and given.get("missing") != 0:
        shown = "the total" if part is None else ", ".join(map(str, part.cell(empty[0])))
        raise SheetError(
            f"{file} has no count for {len(empty):,} of {size:,} cells, the first of which is {shown}: add them, or say that what is left out is 0: "
            f'equals = {{file = "{file}", missing = 0}}.'
        )
    return [value or 0 for value in found]


def _some(domain: Domain, name: str) -> str:
    labels = domain.labels(name)
    return ", ".join(repr(label) for label in labels[:6]) + (", ..." if len(labels) > 6 else "")


def _key(value: Any) -> str:
    """A value as labels are looked up: 7, 7.0 and "7" are one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _lookup(domain: Domain, name: str) -> dict[str, int]:
    # Labels that look alike here, such as 1 and "1", are refused by the domain.
    return {_key(label): at for at, label in enumerate(domain.labels(name))}


def _count(file: str, number: int, column: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer() and 0 <= value < 2**53:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value.strip()):
        return int(value)
    raise SheetError(
        f"{file}, record {number}: {column} is {value!r}: expected a whole number, written with digits only."
    )
