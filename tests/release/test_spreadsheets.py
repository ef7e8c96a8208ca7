"""Tables that people open with a spreadsheet program: no label runs as a formula, and no other label changes."""

from __future__ import annotations

import csv
import io

import numpy as np
import openpyxl

import policygraph as pg
from policygraph.release.sheets import table_files, write_excel

LABELS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\uff1d1",
    "=cmd|' /C calc'!A0",
    "town;=2+3;@x",
    "-5",
    "+3.5",
    "65+",
    "'=",
]
AS_TEXT = [
    *("'" + label for label in LABELS[:4]),
    "'\t'=1",
    *("'" + label for label in LABELS[5:7]),
    "town;'=2+3;'@x",
    *LABELS[8:],
]


def made() -> pg.Release:
    domain = pg.Domain({"=label": LABELS, "'=label": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("=label", equals=[3] * len(LABELS))])
    query = pg.queries.identity(domain)
    counts = np.array([[1, 2]] * len(LABELS)).ravel()
    return pg.release(query, policy, counts, epsilon=1, rng=pg.SeededRng(1))


def rows(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def test_no_label_of_a_table_is_a_formula() -> None:
    release = made()
    [noisy, exact] = table_files(release, bom=True).values()
    assert rows(noisy)[0][:2] == ["'=label", "'=label"]
    assert list(dict.fromkeys(row[0] for row in rows(noisy)[1:])) == AS_TEXT
    assert [row[0] for row in rows(exact)[1:]] == AS_TEXT
    assert [row[1] for row in rows(exact)[1:]] == ["3"] * len(LABELS)


def test_a_workbook_has_the_labels_as_texts(tmp_path) -> None:
    write_excel(made(), tmp_path / "out.xlsx")
    book = openpyxl.load_workbook(tmp_path / "out.xlsx")
    cells = [cell for sheet in book.worksheets for row in sheet.iter_rows() for cell in row]
    assert "f" not in {cell.data_type for cell in cells}
    texts = {cell.value for cell in cells}
    assert set(LABELS) | {"=label", "'=label"} <= texts


def test_the_complete_table_has_the_labels_as_they_are(tmp_path) -> None:
    made().write(tmp_path / "out")
    table = pg.Release.from_parquet(tmp_path / "out" / "release.parquet").table()
    assert list(dict.fromkeys(table.column("=label").to_pylist())) == LABELS
