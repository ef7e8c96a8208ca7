"""Excel workbooks as sources. Owns ``excel_source``. Each cell has the type that it has in the file, and none is guessed from a column."""

from __future__ import annotations

from typing import Any

from policygraph.curator.counting.frames import mixed_array
from policygraph.curator.counting.reading import Files
from policygraph.curator.counting.source import TABLE, Source, connect, locked, selected, stamps_of
from policygraph.curator.counting.values import MIXED
from policygraph.errors import DataError
from policygraph.workbooks import read_sheet


def excel_source(files: Files, label: str, paths: list[str], keep: tuple[Any, ...] = ()) -> Source:
    """Make a source of workbooks, one sheet of each; rows without any value are no records."""
    import pyarrow

    stamps = stamps_of(paths)
    names: list[str] = []
    columns: dict[str, list[Any]] = {}
    records = 0
    for path in paths:
        try:
            head, rows = read_sheet(path, files.sheet)
        except (ValueError, OSError) as cause:
            raise DataError(f"{path} cannot be read: {cause}.", code="data.unreadable", value=path) from cause
        if len(set(head)) < len(head) or (names and sorted(names) != sorted(head)):
            odd = sorted(set(names) ^ set(head)) if names else sorted({n for n in head if head.count(n) > 1})
            raise DataError(
                f"{label}: the columns {', '.join(map(repr, odd[:8]))} are in one sheet and not in another, or twice: expected each name once, and the same "
                "names in every file.",
                code="data.columns-differ",
                value=odd,
            )
        names = names or head
        for at, name in enumerate(head):
            columns.setdefault(name, []).extend(row[at] for row in rows)
        records += len(rows)
    arrays = [mixed_array(columns[name], name) for name in names]
    connection = connect()
    table = pyarrow.table(arrays, names=[f"c{i}" for i in range(len(names))])
    connection.register(f"{TABLE}_frame", table)
    locked(connection)
    return selected(
        label,
        connection,
        f"SELECT * FROM {TABLE}_frame",
        columns=[(name, f"c{i}", MIXED) for i, name in enumerate(names)],
        stamps=stamps,
        keep=(*keep, table),
        records=records,
    )
