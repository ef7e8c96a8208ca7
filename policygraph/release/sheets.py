"""Released tables as people open them: one CSV for each, or one workbook. Owns ``table_files``, ``write_excel`` and :func:`rounded`.

Values are rounded to a tenth of the leading digit of their error: what is cut off is noise. The exact tables that a policy states are files of their own.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.arrow import to_arrow
from policygraph.errors import InputError
from policygraph.model.constraints import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.grouped import records_of
from policygraph.workbooks import check_excel, write_workbook

BOM = b"\xef\xbb\xbf"
EXCEL_ROWS = 1_048_575
FORMULA = re.compile("(^|[;\t\r\n])(?=[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20])")
"""Where a formula begins, for one spreadsheet program or another: some split cells at semicolons, whatever the quotes say."""
NUMERAL = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
Floats = npt.NDArray[np.float64]


def rounded(values: Any, deviation: Any, within: Any) -> tuple[Any, Any]:
    """Values rounded to a tenth of the leading digit of their standard deviation, and their 95 % ranges, rounded up with what rounding adds.

    Notes
    -----
    The step is at most a tenth of the deviation, so that rounding adds at most a twentieth of it. Exact values stay as they are.

    Examples
    --------
    >>> rounded(np.array([1234.5678, 7.0]), np.array([18.9, 0.0]), np.array([41.54, 0.0]))
    (array([1235,    7]), array([42,  0]))
    >>> rounded(np.array([1234.5678]), 2500.0, 6000.0)
    (array([1200]), array([6100]))
    >>> rounded(np.array([0.123456]), 0.02, 0.05)
    (array([0.123]), array([0.051]))
    """
    shown = np.asarray(values, dtype=np.float64)
    spread = np.broadcast_to(np.asarray(deviation, dtype=np.float64), shown.shape)
    ranges = np.broadcast_to(np.asarray(within, dtype=np.float64), shown.shape)
    noisy = np.isfinite(spread) & (spread > 0)
    digits = np.zeros(shown.shape, dtype=np.int64)
    digits[noisy] = np.floor(np.log10(spread[noisy])).astype(np.int64) - 1
    made, errors = shown.copy(), ranges.copy()
    for digit in np.unique(digits[noisy]).tolist():
        at = noisy & (digits == digit)
        # Divided by a power of ten that is whole, so that 0.1 is the float that is written 0.1.
        many = 10.0 ** abs(digit)
        if digit >= 0:
            made[at] = np.round(shown[at] / many) * many
            errors[at] = np.ceil((ranges[at] + np.abs(made[at] - shown[at])) / many) * many
        else:
            made[at] = np.round(shown[at] * many) / many
            errors[at] = np.ceil((ranges[at] + np.abs(made[at] - shown[at])) * many) / many
    # What is below zero by less than half a step is 0, and not -0.
    return _whole(made + 0.0), _whole(errors)


def _whole(values: Floats) -> Any:
    """Whole numbers as integers, if all are."""
    good = np.isfinite(values).all() and (np.abs(values) < 2**53).all() and (values == np.floor(values)).all()
    return values.astype(np.int64) if good else values


def free(wanted: str, taken: Sequence[str]) -> str:
    """A column name that no attribute has."""
    while wanted in taken:
        wanted = "_" + wanted
    return wanted


def harmless(text: str) -> str:
    """The text as a cell of a CSV file that no spreadsheet program takes for a formula: with an apostrophe wherever one could begin.

    Examples
    --------
    >>> harmless("=cmd|' /C calc'!A0"), harmless("@SUM(A1)"), harmless("-20--11"), harmless("-5"), harmless("65+")
    ("'=cmd|' /C calc'!A0", "'@SUM(A1)", "'-20--11", '-5', '65+')
    >>> harmless("town;=2+3;")
    "town;'=2+3;"
    """
    return text if NUMERAL.fullmatch(text) else FORMULA.sub(r"\1'", text)


def _harmless_column(values: Any) -> Any:
    """A column for a CSV file."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return to_arrow(values)
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    changed = {text: harmless(text) for text in set(listed) if isinstance(text, str)}
    if all(text == same for text, same in changed.items()):
        return to_arrow(values)
    return to_arrow([changed.get(text, text) for text in listed])


def _columns(table: Any, warning: str | None) -> dict[str, Any]:
    """The columns of a table for people: labels, value, 95 % range."""
    values, within = rounded(table.values, table.deviation, table.within_95)
    columns = dict(zip(table.columns, table.labels, strict=True))
    columns[free("value", table.columns)] = values
    columns[free("within_95", table.columns)] = within
    if warning:
        columns[free("warning", table.columns)] = [warning] * len(values)
    return columns


def public_tables(release: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The exact tables whose values the policy states: a name, and columns."""
    policy = records_of(release.policy)
    domain = policy.domain
    if not isinstance(domain, Domain):
        return
    for fact in policy.constraints:
        values = fact.values(domain) if isinstance(fact, (Cuboid, Total)) else None
        if values is None:
            continue
        names = domain.project(fact.names).names if isinstance(fact, Cuboid) and fact.names else ()
        columns: dict[str, Any] = {}
        if names:
            part = domain.project(names)
            codes = part.codes(np.arange(part.size))
            columns = {
                name: np.array(list(part.labels(name)), dtype=object)[code]
                for name, code in zip(names, codes, strict=True)
            }
        columns[free("value", names)] = np.array(values, dtype=np.int64)
        yield "public " + (" x ".join(names) or "total"), columns


def named_tables(release: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """All tables of a release and the exact ones of its policy, for people."""
    warning = None if release.private else str(release.record.get("warning") or "NOT PRIVATE")
    for table in release.tables:
        yield table.name, _columns(table, warning)
    yield from public_tables(release)


def file_name(name: str, used: set[str]) -> str:
    """A name of a file for a table; each once.

    Examples
    --------
    >>> used = set()
    >>> file_name("sex x age", used), file_name("Sex x Age!", used), file_name("", used)
    ('sex-x-age.csv', 'Sex-x-Age-2.csv', 'table.csv')
    """
    plain = re.sub(r"[^\w-]+", "-", name).strip("-")[:100] or "table"
    made, number = plain, 1
    while made.lower() in used:
        number += 1
        made = f"{plain}-{number}"
    used.add(made.lower())
    return f"{made}.csv"


def table_files(release: Any, *, bom: bool = False) -> dict[str, bytes]:
    """One CSV file for each table of a release, and for each exact table that its policy states.

    Parameters
    ----------
    release
        The release.
    bom
        Whether each file starts with a byte order mark, by which Excel knows UTF-8.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> made = pg.release(pg.queries.identity(domain), pg.Policy(domain), [5, 0, 2], epsilon=1, rng=pg.SeededRng(7))
    >>> list(table_files(made))
    ['age.csv']
    """
    import pyarrow
    from pyarrow import csv

    used: set[str] = set()
    out = {}
    for name, columns in named_tables(release):
        sink = io.BytesIO()
        arrays = [_harmless_column(values) for values in columns.values()]
        csv.write_csv(pyarrow.Table.from_arrays(arrays, [harmless(column) for column in columns]), sink)
        out[file_name(name, used)] = (BOM if bom else b"") + sink.getvalue()
    return out


def check_workbook(heights: dict[str, int]) -> None:
    """Refuse a workbook that could not be written, before anything is charged.

    Raises
    ------
    InputError
        If openpyxl is not installed, or a table has more rows than a sheet.
    """
    check_excel()
    for name, height in heights.items():
        if height > EXCEL_ROWS:
            raise InputError(
                f"{name} has {height:,} rows, and a sheet of Excel at most {EXCEL_ROWS:,}: leave out --excel, and use the CSV or Parquet files.",
                code="release.excel",
                value=height,
            )


def write_excel(release: Any, path: Any) -> None:
    """Write a workbook: a sheet that says what it is, and one for each table."""
    about = [
        ["policygraph release", ""],
        ["privacy loss", str(release.loss)],
        ["private", "yes" if release.private else "NOT PRIVATE"],
    ]
    about += [["what was done" if not at else "", sentence] for at, sentence in enumerate(release.sentences)]
    about += [
        ["value", "rounded to its error; release.parquet has all digits"],
        ["within_95", "the truth is within this of the value, with probability 95 %"],
    ]
    sheets: dict[str, Any] = {"about": (["what", "says"], about)}
    for name, columns in named_tables(release):
        lists = [
            [_shown(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]
            for values in columns.values()
        ]
        sheets[_unused(name, sheets)] = (list(columns), zip(*lists, strict=True))
    write_workbook(path, sheets)


def _shown(value: Any) -> Any:
    """A value as a cell holds it: nothing where there is no number."""
    return None if isinstance(value, float) and not isfinite(value) else value


def _unused(name: str, taken: dict[str, Any]) -> str:
    made, number = name, 1
    while made in taken:
        number += 1
        made = f"{name} {number}"
    return made
