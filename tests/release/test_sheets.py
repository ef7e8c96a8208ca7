"""Released tables as files for people: one CSV each, a workbook, values rounded to their error."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import policygraph as pg
from policygraph.cli.app import run as main
from policygraph.errors import InputError
from policygraph.release.sheets import EXCEL_ROWS, check_workbook, rounded
from policygraph.workbooks import read_sheet

POLICY = """
[domain]
sex = ["F", "M"]
town = ["Bern", "Zürich"]
[[public]]
cuboid = ["town"]
equals = [3, 2]
[[public]]
total = true
[[release]]
up_to = 2
"""
PEOPLE = "sex,town\nF,Bern\nM,Bern\nF,Bern\nM,Zürich\nM,Zürich\n"


@given(
    st.floats(-1e9, 1e9),
    st.floats(1e-3, 1e6),
    st.floats(1e-3, 1e7),
)
def test_rounding_adds_a_twentieth_of_the_deviation_at_most(
    value: float, deviation: float, within: float
) -> None:
    values, ranges = rounded(np.array([value]), deviation, within)
    step = 10.0 ** (math.floor(math.log10(deviation)) - 1)
    slack = 1e-9 * max(1.0, abs(value))
    assert abs(float(values[0]) - value) <= step / 2 + slack <= deviation / 20 + 2 * slack
    # The truth is as surely within the range of the rounded value.
    assert float(ranges[0]) >= within + abs(float(values[0]) - value) - slack
    assert float(ranges[0]) <= within + 2 * step + slack


def test_exact_and_odd_values_are_left_alone() -> None:
    values, ranges = rounded(np.array([5, 7]), 0.0, 0.0)
    assert (values.tolist(), ranges.tolist()) == ([5, 7], [0, 0])
    values, _ = rounded(np.array([-0.2, np.nan, np.inf]), np.array([30.0, 3.0, np.nan]), 5.0)
    assert str(values[0]) == "0.0"
    assert np.isnan(values[1])
    assert np.isinf(values[2])


def read(path: Path) -> list[list[str]]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.reader(file))


def test_a_release_writes_one_file_for_each_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.toml").write_text(POLICY)
    (tmp_path / "p.csv").write_text(PEOPLE)
    out = tmp_path / "out"
    start = [
        "release",
        str(tmp_path / "p.toml"),
        "--data",
        str(tmp_path / "p.csv"),
        "--epsilon",
        "1",
        "--out",
        str(out),
    ]
    assert main([*start, "--excel", "--bom", "--seed", "3"]) == 0
    names = {path.name for path in (out / "tables").glob("*.csv")}
    assert names == {"total.csv", "sex.csv", "town.csv", "sex-x-town.csv", "public-town.csv"}
    assert (out / "tables" / "sex.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert read(out / "tables" / "public-town.csv") == [["town", "value"], ["Bern", "3"], ["Zürich", "2"]]
    [head, *rows] = read(out / "tables" / "sex-x-town.csv")
    assert head == ["sex", "town", "value", "within_95", "warning"]
    assert len(rows) == 4
    assert "NOT PRIVATE" in rows[0][4]
    made = pg.Release.from_parquet(out / "release.parquet")
    for row, value, spread in zip(
        rows, made.values("sex x town"), np.broadcast_to(made.tables[-1].deviation, 4), strict=True
    ):
        assert abs(float(row[2]) - float(value)) <= float(spread) / 20 + 1e-9
    assert read_sheet(out / "release.xlsx", "public town")[1] == [["Bern", 3], ["Zürich", 2]]
    about = read_sheet(out / "release.xlsx", "about")[1]
    assert ["private", "NOT PRIVATE"] in about
    # Another release in the same folder leaves none of these behind, and what is not of a release where it is.
    (out / "tables" / "notes.csv").write_text("mine")
    (tmp_path / "p.toml").write_text(POLICY.replace("up_to = 2", 'cuboid = ["sex"]'))
    assert main(start) == 2
    assert "release.xlsx" in capsys.readouterr().err
    assert main([*start, "--overwrite"]) == 0
    left = {"sex.csv", "public-town.csv", "contents.txt", "notes.csv"}
    assert {path.name for path in (out / "tables").iterdir()} == left
    assert "sex x town" not in (out / "release.xlsx").read_bytes().decode("latin-1")
    assert not (out / "tables" / "sex.csv").read_bytes().startswith(b"\xef\xbb\xbf")


def test_what_could_not_be_written_is_refused_before_the_charge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="a sheet of Excel") as refusal:
        check_workbook({"big": EXCEL_ROWS + 1})
    assert refusal.value.code == "release.excel"
    (tmp_path / "p.toml").write_text(POLICY)
    (tmp_path / "p.csv").write_text(PEOPLE)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tables").write_text("mine")
    command = ["release", str(tmp_path / "p.toml"), "--data", str(tmp_path / "p.csv"), "--epsilon", "1"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    assert "tables is not a folder there" in capsys.readouterr().err
