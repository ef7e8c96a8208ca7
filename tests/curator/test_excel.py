"""Excel in: each cell by its own type, and nothing that another row may change."""

from __future__ import annotations

import datetime
import random
import warnings
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest

import policygraph as pg
from policygraph.curator.counting import count_cells
from policygraph.curator.counting.opening import open_source
from policygraph.curator.requests import files_by_bytes
from policygraph.errors import DataError, InputError
from policygraph.model.bins import Bins
from policygraph.model.domain import Domain
from policygraph.workbooks import read_sheet, write_workbook
from tests.oracles import counting as oracle

CELLS: list[Any] = [
    *(None, 0, 1, 2, 15, -9, 0.5, 15.0, 14.999, True, False, "F", "M", "1", "01", " 1 ", "unknown", "NaN", "#N/A", "é"),
    *(datetime.date(2024, 1, 31), datetime.datetime(2024, 1, 31, 10, 30), datetime.time(10, 30), "2024-01-31", 1e300, 2**53 + 1),
]  # fmt: skip


def write(path: Path, rows: list[list[Any]], head: tuple[str, ...] = ("a", "b")) -> Path:
    write_workbook(path, {"people": (list(head), rows)})
    return path


def meant(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def test_cells_are_counted_by_their_own_type(tmp_path: Path) -> None:
    rng = random.Random(5)
    domain = Domain({"a": ["F", "M", 1, 0.5, "2024-01-31"], "b": Bins([0, 1, 15], also=["unknown"])})
    rows = [[rng.choice(CELLS), rng.choice(CELLS)] for _ in range(300)]
    path = write(tmp_path / "p.xlsx", rows)
    records = [{"a": meant(a), "b": meant(b)} for a, b in rows if (a, b) != (None, None)]
    cells, missed = oracle.count(domain, records, "drop")
    made = count_cells(path, domain, unknown="drop")
    assert made.dropped == missed
    assert {domain.cell(at): int(n) for at, n in enumerate(made.vector()) if n} == cells


def test_one_row_more_changes_one_count_by_one(tmp_path: Path) -> None:
    rng = random.Random(6)
    domain = Domain({"a": ["F", "M", 1], "b": 3})
    rows = [["F", 1], ["M", 2.0], [1, "0"], ["x", None]]
    before = count_cells(write(tmp_path / "p.xlsx", rows), domain, unknown="drop").vector()
    for _ in range(30):
        more = [*rows, [rng.choice(CELLS), rng.choice(CELLS)]]
        change = count_cells(write(tmp_path / "p.xlsx", more), domain, unknown="drop").vector() - before
        assert abs(change).sum() in (0, 1)
        assert change.min() >= 0


def test_what_may_depend_on_other_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])
    book.active.append(["F", "=AVERAGE(B3:B9)"])
    book.create_sheet("notes")
    book.save(path)
    domain = Domain({"a": ["F", "M"], "b": 2})
    with pytest.raises(DataError, match=r"the sheets 'Sheet', 'notes'"):
        count_cells(path, domain)
    with pytest.raises(DataError, match="cell B2 is a formula"):
        count_cells(pg.Files(path, sheet="Sheet"), domain)
    with pytest.raises(DataError, match="no sheet 'people'"):
        count_cells(pg.Files(path, sheet="people"), domain)
    with pytest.raises(DataError, match="not a row of names"):
        count_cells(pg.Files(path, sheet="notes"), domain)
    with pytest.raises(InputError, match="delimiter is about"):
        count_cells(pg.Files(path, delimiter=";"), domain)
    with pytest.raises(InputError, match="sheet is about Excel"):
        count_cells(pg.Files(_csv(tmp_path), sheet="people"), domain)
    (tmp_path / "no.xlsx").write_text("a,b\n")
    with pytest.raises(DataError, match="no Excel workbook"):
        count_cells(tmp_path / "no.xlsx", domain)
    book["Sheet"]["B2"] = 1
    book["Sheet"]["D2"] = 1
    book.save(path)
    with pytest.raises(DataError, match="cell D2 has a value, and its column has no name"):
        count_cells(pg.Files(path, sheet="Sheet"), domain)


def _csv(folder: Path) -> Path:
    path = folder / "p.csv"
    path.write_text("a,b\nF,1\n")
    return path


def test_several_workbooks_and_empty_rows(tmp_path: Path) -> None:
    one = write(tmp_path / "1.xlsx", [["F", 1], [None, None], ["M", 0]])
    two = write(tmp_path / "2.xlsx", [[1, "F"]], ("b", "a"))
    domain = Domain({"a": ["F", "M"], "b": 2})
    made = count_cells([str(one), str(two)], domain)
    assert made.vector().tolist() == [0, 2, 1, 0]
    # Known by its bytes, as any file.
    assert made.fingerprint == count_cells([str(two), str(one)], domain).fingerprint
    write(two, [[1, "F"]], ("b", "c"))
    with pytest.raises(DataError, match="'a', 'c'"):
        count_cells([str(one), str(two)], domain)


def test_a_workbook_is_known_by_its_bytes_and_must_not_change_meanwhile(tmp_path: Path) -> None:
    path = write(tmp_path / "1.xlsx", [["F", 1], ["M", 0]])
    source = open_source(str(path))
    assert source.records == 2
    assert source.fingerprint() == files_by_bytes(str(path)).fingerprint()
    assert source.fingerprint() != open_source(pa.table({"a": ["F", "M"], "b": [1, 0]})).fingerprint()
    source = open_source(str(path))
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(DataError) as caught:
        source.fingerprint()
    assert caught.value.code == "data.changed"


def test_a_name_that_comes_twice_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the columns 'b' are") as caught:
        count_cells(str(write(tmp_path / "1.xlsx", [["F", 1, 2]], ("a", "b", "b"))), Domain({"a": ["F"]}))
    assert caught.value.details["value"] == ["b"]


def test_workbooks_are_written_as_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    rows: list[list[Any]] = [["=1+1", 3, 0.25, True], ["é\x01", None, -1, False]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_workbook(path, {"a/b: [x]" * 9: (["w", "x", "y", "z"], rows), "A b   x " * 9: (["v"], [])})
    assert openpyxl.load_workbook(path).sheetnames[0] == "a b   x a b   x a b   x a b   x"[:31].strip()
    title = openpyxl.load_workbook(path).sheetnames[0]
    assert read_sheet(path, title) == (
        ["w", "x", "y", "z"],
        [["=1+1", 3, 0.25, True], ["é\ufffd", None, -1, False]],
    )


def test_release_of_a_workbook_is_that_of_the_frame(tmp_path: Path) -> None:
    domain = Domain({"a": ["F", "M"], "b": 2})
    path = write(tmp_path / "p.xlsx", [["F", 1], ["M", 0], ["M", 1]])
    table = pa.table({"a": ["F", "M", "M"], "b": [1, 0, 1]})
    made = [
        pg.release(pg.queries.identity(domain), pg.Policy(domain), data, epsilon=1, rng=pg.SeededRng(3))
        for data in (path, table)
    ]
    assert made[0].values().tolist() == made[1].values().tolist()
