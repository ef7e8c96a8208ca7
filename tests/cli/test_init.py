"""From a data file to a policy file that works at once, without typing a label."""

from __future__ import annotations

import csv
import datetime
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from policygraph.cli.app import app
from policygraph.cli.app import run as main
from policygraph.curator.profiling import ColumnProfile, columns_of, profile_columns
from policygraph.files import load
from policygraph.files.proposal import decide
from policygraph.model.bins import Bins
from policygraph.workbooks import write_workbook

TOWNS = [f"Gemeinde {at:02} Zürich" for at in range(40)]
HEAD = ["person_id", "town", "sex", "age", "born", "income", "plz", "note", "empty"]


def people(count: int = 400) -> list[list[Any]]:
    rng = random.Random(4)
    rows = []
    for at in range(count):
        age = rng.randrange(100)
        rows.append(
            [
                at + 1,
                TOWNS[at % 40],
                rng.choice("FM"),
                None if rng.random() < 0.05 else age,
                datetime.date(2024 - age, rng.randint(1, 12), 1),
                round(rng.lognormvariate(10, 1), 2),
                f"{rng.randrange(5) * 100 + 100:04}",
                f"free text {rng.random()}",
                None,
            ]
        )
    return rows


def write(folder: Path, kind: str) -> Path:
    rows = people()
    path = folder / {"csv": "p.csv", "latin-1": "p.csv", "parquet": "p.parquet", "xlsx": "p.xlsx"}[kind]
    if kind == "xlsx":
        write_workbook(path, {"people": (HEAD, rows)})
    elif kind == "parquet":
        pq.write_table(pa.table({name: [row[at] for row in rows] for at, name in enumerate(HEAD)}), path)
    else:
        with open(path, "w", newline="", encoding="latin-1" if kind == "latin-1" else "utf-8") as file:
            made = csv.writer(file, delimiter=";" if kind == "latin-1" else ",")
            made.writerows([HEAD, *rows])
    return path


@pytest.mark.parametrize("kind", ["csv", "latin-1", "parquet", "xlsx"])
def test_a_proposal_is_checked_and_released_at_once(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = write(tmp_path, kind), tmp_path / "policy.toml"
    assert main(["init", str(data), "--out", str(out), "--yes", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {each["name"] for each in said["attributes"] if each["unit"]} == {"person_id", "note"}
    file = load(out)
    domain = file.policy.domain
    assert domain.names == ("town", "sex", "age", "born", "income", "plz")
    assert domain.labels("town") == tuple(TOWNS)
    assert domain.bins("age") == Bins([0, 15, 25, 45, 65, 80], also=["unknown"], end=130)
    assert domain.labels("plz") == ("0100", "0200", "0300", "0400", "0500")
    assert domain.bins("born") is not None
    assert (file.reading or {}).get("encoding") == ("latin-1" if kind == "latin-1" else None)
    text = out.read_text()
    assert "FROM DATA: 40 labels" in text
    assert "# Units: person_id" in text
    assert "ages in years" in text
    assert "FROM DATA: ages" not in text
    assert main(["check", str(out)]) == 0
    folder = tmp_path / "out"
    assert main(["release", str(out), "--data", str(data), "--epsilon", "1", "--out", str(folder)]) == 0
    # What is there is not overwritten.
    assert main(["init", str(data), "--out", str(out), "--yes"]) == 2
    assert "[init.exists]" in capsys.readouterr().err
    assert main(["init", str(data), "--out", str(out), "--yes", "--overwrite"]) == 0


def test_only_confirmed_columns_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, out = write(tmp_path, "csv"), tmp_path / "policy.toml"
    read: list[str] = []

    def noted(source: Any, names: list[str]) -> list[ColumnProfile]:
        read.extend(names)
        return profile_columns(source, names)

    monkeypatch.setattr("policygraph.files.beginning.profile_columns", noted)
    answers = ["n", "y", "y", "y", "n", "y", "y", *["n"] * 5]
    made = CliRunner().invoke(app, ["init", str(data), "--out", str(out)], input="\n".join(answers) + "\n")
    assert made.exit_code == 0, made.output
    assert read == ["town", "sex", "age"]
    assert load(out).policy.domain.names == ("town", "age")
    assert "# born is left out: it was not read." in out.read_text()
    assert "# sex is left out: it is not wanted." in out.read_text()


def test_nothing_to_propose_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.csv"
    path.write_text("a,b\n,\n")
    assert main(["init", str(path), "--out", str(tmp_path / "p.toml"), "--yes"]) == 2
    assert "[init.nothing]" in capsys.readouterr().err
    assert not (tmp_path / "p.toml").exists()
    assert main(["init", str(tmp_path / "no.csv"), "--out", str(tmp_path / "p.toml"), "--yes"]) == 2


@pytest.mark.parametrize(
    ("values", "labels", "edges"),
    [
        ([1, 2, 3] * 40, (1, 2, 3), None),
        (["true", "false"] * 40, ("false", "true"), None),
        (["x", "", " "] * 40, ("", " ", "x"), None),
        ([0.5 * at for at in range(100)], None, (0, 10, 20, 30, 40)),
        ([-at for at in range(100)], None, (-99, -80, -60, -40, -20)),
        ([datetime.date(2024, 1 + at % 12, 1 + at % 28) for at in range(100)], None, ("2024-01-01", "2024-04-01", "2024-07-01", "2024-10-01")),
        ([datetime.date(2010 + at % 9, 1, 1 + at % 28) for at in range(200)], None, tuple(f"{year}-01-01" for year in range(2010, 2019))),
        ([f"x{at}" for at in range(3000)] * 3, None, None),
        ([None] * 5, None, None),
    ],
)  # fmt: skip
def test_columns_are_taken_for_what_they_are(values: list[Any], labels: Any, edges: Any) -> None:
    source, _ = columns_of(pa.table({"x": values}))
    [column] = profile_columns(source, ["x"])
    made = decide(column)
    assert (made.labels, made.edges) == (labels, edges)


def test_a_proposal_says_no_number_of_records_and_takes_no_orders(tmp_path: Path) -> None:
    """A policy file is public, and the names of columns come from whoever made the data."""
    evil = 'evil\n[neighbours]\ngraph = "full"\n#'
    days = ["2020-01-01", "2020-02-01", "2021-03-03"]
    columns: dict[str, list[Any]] = {
        "day": [days[at % 3] for at in range(211)],
        evil: [f"t{at}" for at in range(211)],
        "person_id": [max(at, 1) + 4 for at in range(211)],
        "age": [at % 97 or None for at in range(211)],
        "code": [9007199254740993 + at % 3 for at in range(211)],
    }
    data, out = tmp_path / "people.parquet", tmp_path / "policy.toml"
    pq.write_table(pa.table(columns), data)
    assert main(["init", str(data), "--out", str(out), "--yes"]) == 0
    policy = load(out).policy
    assert policy.graph is None
    assert policy.domain.names == ("day", "age", "code")
    assert policy.domain.labels("day") == tuple(days)
    assert policy.domain.labels("code") == tuple(9007199254740993 + at for at in range(3))
    text = out.read_text()
    assert "211" not in text
    assert "210" not in text
    assert "FROM DATA that values are missing: ages" in text


def test_questions_that_nobody_answers(tmp_path: Path) -> None:
    data = tmp_path / "people.csv"
    data.write_text("sex\nF\nM\n")
    found = CliRunner().invoke(app, ["init", str(data), "--out", str(tmp_path / "policy.toml")], input="")
    assert getattr(found.exception, "code", None) == "init.answer"
    assert not (tmp_path / "policy.toml").exists()


def test_an_age_of_300_is_an_error_and_not_one_of_the_oldest(tmp_path, capsys):
    data, out = tmp_path / "p.csv", tmp_path / "policy.toml"
    data.write_text("age\n" + "\n".join(str(at % 90) for at in range(200)) + "\n")
    assert main(["init", str(data), "--out", str(out), "--yes"]) == 0
    assert load(out).policy.domain.bins("age") == Bins([0, 15, 25, 45, 65, 80], end=130)
    data.write_text(data.read_text() + "300\n")
    capsys.readouterr()
    assert (
        main(["release", str(out), "--data", str(data), "--epsilon", "1", "--out", str(tmp_path / "o")]) == 2
    )
    assert "'300' in 1 row (expected a number from 0 to under 130)" in capsys.readouterr().err


def test_a_table_of_counts_is_no_file_of_people(tmp_path, capsys):
    data, out = tmp_path / "t.csv", tmp_path / "policy.toml"
    data.write_text("region,sex,count\nA,F,10\nA,M,12\nB,F,0\nB,M,7\n")
    assert main(["init", str(data), "--out", str(out), "--yes"]) == 2
    assert "[init.counts]" in capsys.readouterr().err
    assert not out.exists()
    # two rows agree on the rest: people with a number of something
    data.write_text("region,sex,count\nA,F,10\nA,F,12\nB,F,0\nB,M,7\n")
    assert main(["init", str(data), "--out", str(out), "--yes"]) == 0
    # and a column of this name alone counts nothing
    data.write_text("count\n1\n2\n")
    assert main(["init", str(data), "--out", str(out), "--yes", "--overwrite"]) == 0


@pytest.mark.parametrize("broken", ["\n", "\r\n"])
def test_a_header_with_a_line_break_is_one_name(tmp_path, broken):
    data, out = tmp_path / "t.csv", tmp_path / "policy.toml"
    data.write_bytes(f'"home{broken}town",sex{broken}X,F{broken}Y,M{broken}X,M{broken}'.encode())
    assert main(["init", str(data), "--out", str(out), "--yes"]) == 0
    assert load(out).policy.domain.shape == (2, 2)


def test_a_header_with_a_carriage_return_is_named(tmp_path, capsys):
    data = tmp_path / "t.csv"
    data.write_bytes(b'"a\rb",sex\nF,X\nM,Y\n')
    assert main(["init", str(data), "--out", str(tmp_path / "policy.toml"), "--yes"]) == 2
    assert "[data.header]" in capsys.readouterr().err


def test_published_tables_give_labels_and_groups(tmp_path, capsys):
    """No label is typed: the published tables have them."""
    rng = random.Random(1)
    rows = [(rng.choice(TOWNS), rng.choice("FM"), rng.randrange(96)) for _ in range(3000)]
    data, out = tmp_path / "people.csv", tmp_path / "policies" / "policy.toml"
    out.parent.mkdir()
    with open(data, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("town", "sex", "age"), *rows])
    towns, ages = tmp_path / "towns.csv", tmp_path / "ages.csv"
    groups = {"0-17": range(18), "18-64": range(18, 65), "65+": range(65, 200)}
    with open(towns, "w", newline="", encoding="utf-8") as file:
        counts = [(t, s, sum(r[:2] == (t, s) for r in rows)) for t in TOWNS for s in "FM"]
        csv.writer(file).writerows([("town", "sex", "persons"), *counts])
    with open(ages, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [("age", "count"), *((g, sum(r[2] in years for r in rows)) for g, years in groups.items())]
        )
    asked = ["init", str(data), "--out", str(out), "--yes"]
    assert main([*asked, "--published", str(towns), "--published", str(ages)]) == 0
    assert "FROM DATA:" not in out.read_text()
    file = load(out)
    assert file.policy.domain.bins("age") == Bins([0, 18, 65], end=130)
    assert [fact.names for fact in file.policy.constraints] == [("town", "sex"), ("age",)]
    assert file.policy.system.has_values
    result = tmp_path / "o"
    said = ["release", str(out), "--data", str(data), "--epsilon", "1", "--out", str(result), "--report"]
    assert main(said) == 0
    assert (result / "report.html").exists()
    certificate = json.loads((result / "certificate.json").read_text())
    assert certificate["kind"] == "exact"
    capsys.readouterr()
    for wrong, why in (
        ("age,count\n0-17,1\n20-64,1\n65+,1\n", "that follow each other"),
        ("age,count\nyoung,1\n", "that follow each other"),
        ("sex,count\nF,1\n", "'M', which the table lacks"),
        ("colour,count\nred,1\n", "expected columns of the data"),
        ("sex,age,a,b\nF,1,1,1\n", "one of counts"),
    ):
        ages.write_text(wrong)
        assert main([*asked, "--overwrite", "--published", str(ages)]) == 2
        printed = capsys.readouterr().err
        assert why in printed
        assert "[init.published]" in printed


def test_published_groups_may_end(tmp_path):
    data, out, ages = tmp_path / "p.csv", tmp_path / "policy.toml", tmp_path / "ages.csv"
    data.write_text("age\n" + "\n".join(str(at % 90) for at in range(200)) + "\n")
    ages.write_text("age,count\n0-17,40\n18-89,160\n")
    assert main(["init", str(data), "--out", str(out), "--yes", "--published", str(ages)]) == 0
    assert load(out).policy.domain.bins("age") == Bins([0, 18, 90], open=False)


def test_rare_labels_and_repeated_units_are_told_to_the_curator_and_to_no_file(tmp_path, capsys):
    data, out = tmp_path / "p.csv", tmp_path / "policy.toml"
    jobs = ["clerk"] * 600 + ["nurse"] * 300 + ["astronaut"]
    data.write_text("person_id,job\n" + "".join(f"{at // 2},{job}\n" for at, job in enumerate(jobs)))
    assert main(["init", str(data), "--out", str(out), "--yes", "--json"]) == 0
    said = capsys.readouterr()
    json.loads(said.out)
    assert "job has 1 label that fewer than 10 records have ('astronaut')" in said.err
    assert "SEVERAL RECORDS of one person_id" in said.err
    assert "[unit] with column = 'person_id'" in said.err
    text = out.read_text()
    assert "FROM DATA: 3 labels" in text
    assert "rare" not in text.lower()
    assert "901" not in text
    # Once a published table has the label, it is public.
    (tmp_path / "jobs.csv").write_text("job,count\nclerk,600\nnurse,300\nastronaut,1\nunknown,0\n")
    again = ["init", str(data), "--out", str(out), "--yes", "--overwrite"]
    assert main([*again, "--published", str(tmp_path / "jobs.csv")]) == 0
    assert "fewer than" not in capsys.readouterr().err
    assert "FROM DATA: " not in out.read_text()


def test_a_published_label_for_missing_values_is_not_from_the_data(tmp_path):
    data, out, ages = tmp_path / "p.csv", tmp_path / "policy.toml", tmp_path / "ages.csv"
    data.write_text("age\n" + "\n".join(str(at % 90) for at in range(200)) + '\n""\n')
    ages.write_text("age,count\n0-17,40\n18+,160\nunknown,1\n")
    assert main(["init", str(data), "--out", str(out), "--yes", "--published", str(ages)]) == 0
    assert "FROM DATA that" not in out.read_text()
    assert load(out).policy.domain.labels("age") == ("0-17", "18+", "unknown")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8"])
def test_published_tables_may_be_in_the_encoding_of_the_data(tmp_path, encoding):
    """An office has all its files from one program: each declares its own encoding."""
    dash = "\u2013" if encoding == "cp1252" else "-"
    towns = [f"Zürich{dash}Nord", "Genève"]
    data, out, published = tmp_path / "p.csv", tmp_path / "policy.toml", tmp_path / "towns.csv"
    rows = "".join(f"{towns[at % 2]};{'yes' if at % 3 else 'no'}\n" for at in range(60))
    data.write_bytes(f"town;work\n{rows}".encode(encoding))
    published.write_bytes(f"town;count\n{towns[0]};30\n{towns[1]};30\n".encode(encoding))
    assert main(["init", str(data), "--out", str(out), "--yes", "--published", str(published)]) == 0
    assert load(out).policy.domain.labels("town") == tuple(towns)
    assert (f'encoding = "{encoding}"' in out.read_text()) == (encoding != "utf-8")
    said = ["release", str(out), "--data", str(data), "--epsilon", "1", "--out", str(tmp_path / "o")]
    assert main(said) == 0
