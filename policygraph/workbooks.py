"""Excel workbooks, cell by cell. Owns :func:`read_sheet` and :func:`write_workbook`; openpyxl is imported when one is met.

A cell has a type of its own in the file: text, number, truth value or date. Nothing is guessed from the cells around it.
"""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from policygraph.errors import InputError


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError as cause:
        raise InputError(
            "Excel files need openpyxl, which is not installed: pip install 'policygraph[excel]', or save the sheet as CSV.",
            code="excel.missing",
        ) from cause
    return openpyxl


def check_excel() -> None:
    """Refuse Excel where openpyxl is not installed, before any work is done."""
    _openpyxl()


def read_sheet(path: str | os.PathLike[str], sheet: str | None = None) -> tuple[list[str], list[list[Any]]]:
    """Read one sheet of a workbook: the names in its first row, and the other rows; rows without any value are none.

    Parameters
    ----------
    path
        An ``.xlsx`` file.
    sheet
        Name of the sheet; None: the only one.

    Raises
    ------
    ValueError
        For what is no workbook, several sheets without a name, a formula (which may look at other rows), and values without a column.
    InputError
        If openpyxl is not installed.

    Examples
    --------
    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "a.xlsx")
    >>> write_workbook(path, {"people": (["sex", "age"], [["F", 7], ["M", None]])})
    >>> read_sheet(path)
    (['sex', 'age'], [['F', 7], ['M', None]])
    """
    openpyxl = _openpyxl()
    with warnings.catch_warnings():
        # What it does not support are pictures, styles and checks of input.
        warnings.simplefilter("ignore")
        try:
            book = openpyxl.load_workbook(path, read_only=True)
        except OSError:
            raise
        except Exception as cause:
            raise ValueError(f"it is no Excel workbook (.xlsx): {cause}") from cause
        try:
            return _rows_of(book, sheet)
        finally:
            book.close()


def _rows_of(book: Any, sheet: str | None) -> tuple[list[str], list[list[Any]]]:
    names = [each.title for each in book.worksheets]
    if sheet is None and len(names) != 1:
        raise ValueError(f"it has the sheets {', '.join(map(repr, names))}: say which one is meant (sheet)")
    if sheet is not None and sheet not in names:
        raise ValueError(f"it has no sheet {sheet!r}: its sheets are {', '.join(map(repr, names))}")
    found = book[names[0] if sheet is None else sheet]
    # The size that is written down in the file need not be right.
    found.reset_dimensions()
    rows = found.iter_rows()
    head = [_value(cell) for cell in next(rows, ())]
    while head and head[-1] is None:
        head.pop()
    if not head or not all(isinstance(name, str) and name.strip() for name in head):
        raise ValueError("its first row is not a row of names of columns")
    out = []
    for cells in rows:
        row = [_value(cell) for cell in cells]
        extra = next((at for at, value in enumerate(row[len(head) :], len(head)) if value is not None), None)
        if extra is not None:
            raise ValueError(f"cell {cells[extra].coordinate} has a value, and its column has no name")
        if any(value is not None for value in row):
            out.append([*row, *[None] * len(head)][: len(head)])
    return [name.strip() for name in head], out


def _value(cell: Any) -> Any:
    value = cell.value
    if value is None:
        return None
    if cell.data_type == "f":
        raise ValueError(
            f"cell {cell.coordinate} is a formula, which may depend on other rows: replace formulas by their values (copy, paste as values)"
        )
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        # Excel has no dates without a time.
        return value.date()
    return value


def write_workbook(
    path: str | os.PathLike[str], sheets: Mapping[str, tuple[Sequence[str], Iterable[Sequence[Any]]]]
) -> None:
    """Write a workbook with one sheet for each table: names of columns in bold, then rows.

    Parameters
    ----------
    path
        Where to write.
    sheets
        For each sheet its columns and its rows; names are shortened to what Excel allows, and told apart by numbers.
    """
    openpyxl = _openpyxl()
    book = openpyxl.Workbook(write_only=True)
    used: set[str] = set()
    for title, (columns, rows) in sheets.items():
        sheet = book.create_sheet(_title(title, used))
        sheet.freeze_panes = "A2"
        head = []
        for name in columns:
            cell = _cell(openpyxl, sheet, str(name))
            cell.font = openpyxl.styles.Font(bold=True)
            head.append(cell)
        sheet.append(head)
        for row in rows:
            sheet.append([_cell(openpyxl, sheet, value) for value in row])
    book.save(os.fspath(path))


def _cell(openpyxl: Any, sheet: Any, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    cell = openpyxl.cell.WriteOnlyCell(sheet, value=_plain(value))
    # A label that starts with = is no formula.
    cell.data_type = "s"
    return cell


def _plain(text: str) -> str:
    """A text without the characters that a workbook cannot hold."""
    return "".join(sign if sign >= " " or sign in "\t\n\r" else "\ufffd" for sign in text)


def _title(wanted: str, used: set[str]) -> str:
    plain = "".join(" " if sign in "[]:*?/\\" else sign for sign in _plain(wanted)).strip("' ") or "table"
    made, number = plain[:31], 1
    while made.lower() in used:
        number += 1
        made = f"{plain[: 30 - len(str(number))]} {number}"
    used.add(made.lower())
    return made
