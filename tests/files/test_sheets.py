"""Label lists and published tables in files beside a policy file."""

from __future__ import annotations

import datetime
from pathlib import Path

import jsonschema
import pytest

from policygraph.files import PolicyFileError, dumps, json_schema, load
from policygraph.model.bins import Bins
from policygraph.model.constraints import Cuboid
from policygraph.model.domain import Domain
from policygraph.workbooks import write_workbook

TOWNS = "Aarau,Bern,Zürich"


def policy(folder: Path, text: str, name: str = "policy.toml") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def problem(path: Path) -> str:
    with pytest.raises(PolicyFileError) as caught:
        load(path)
    [found] = caught.value.problems
    assert found.line is not None
    return str(found)


def test_bins_of_numbers_and_dates(tmp_path: Path) -> None:
    text = '[domain]\nage = {bins = [0, 15, 65]}\nborn = {bins = [1950-01-01, 2000-01-01], open = false, also = ["?"]}\n'
    file = load(policy(tmp_path, text))
    expected = {
        "age": Bins([0, 15, 65]),
        "born": Bins([datetime.date(1950, 1, 1), "2000-01-01"], False, ["?"]),
    }
    assert file.policy.domain == Domain(expected)
    again = load(policy(tmp_path, dumps(file.policy, file.releases), "again.toml"))
    assert again.policy.fingerprint == file.policy.fingerprint


@pytest.mark.parametrize("kind", ["txt", "csv", "named", "latin-1", "xlsx"])
def test_labels_from_a_file_are_the_labels(kind: str, tmp_path: Path) -> None:
    towns = TOWNS.split(",")
    given = {
        "txt": '{labels = "lists/towns.txt"}',
        "csv": '{labels = "lists/towns.csv"}',
        "named": '{labels = "lists/towns.csv", column = "name"}',
        "latin-1": '{labels = "lists/towns.csv", encoding = "latin-1"}',
        "xlsx": '{labels = "lists/towns.xlsx", sheet = "2024", also = ["other"]}',
    }[kind]
    folder = tmp_path / "lists"
    folder.mkdir()
    if kind == "txt":
        (folder / "towns.txt").write_text("\n".join(towns) + "\n\n", encoding="utf-8-sig")
    elif kind == "named":
        (folder / "towns.csv").write_text("code;name\r\n" + "\r\n".join(f'01;"{t}"' for t in towns))
    elif kind == "xlsx":
        write_workbook(
            folder / "towns.xlsx", {"2024": (["town"], [[t] for t in towns]), "notes": (["x"], [])}
        )
    else:
        encoding = "latin-1" if kind == "latin-1" else "utf-8"
        (folder / "towns.csv").write_text("town\n" + "\n".join(towns) + "\n", encoding=encoding)
    file = load(policy(tmp_path, f"[domain]\ntown = {given}\n"))
    assert file.policy.domain.labels("town") == (*towns, *(["other"] if kind == "xlsx" else []))
    # What counts is the labels: written out, it is the same policy.
    listed = load(policy(tmp_path, f"[domain]\ntown = {list(file.policy.domain.labels('town'))}\n", "x.toml"))
    assert listed.policy.fingerprint == file.policy.fingerprint


def test_published_tables_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "pop.csv").write_text("age;sex;persons\n65+;M;4\n0-64;F;1\n0-64;M;2\n65+;F;003\n")
    head = '[domain]\nsex = ["F", "M"]\nage = {bins = [0, 65]}\n[[public]]\ncuboid = ["age", "sex"]\n'
    file = load(policy(tmp_path, head + 'equals = "pop.csv"\n'))
    assert file.policy.constraints == (Cuboid("age", "sex", equals=[1, 3, 2, 4]),)
    write_workbook(tmp_path / "pop.xlsx", {"p": (["Alter", "sex", "n", "share"], [["65+", "M", 4.0, 0.5]])})
    more = 'equals = {file = "pop.xlsx", missing = 0, count = "n", columns = {age = "Alter"}}\n'
    file = load(policy(tmp_path, head + more))
    assert file.policy.constraints == (Cuboid("age", "sex", equals=[0, 0, 0, 4]),)


DOMAIN = '[domain]\nage = {bins = [0, 65]}\nflag = [true, false]\n[[public]]\ncuboid = ["age"]\n'


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("age,count\n0-64,1\n", "no count for 1 of 2 cells, the first of which is 65+"),
        ("age,count\n0-64,1\n65+,2\n65+,2\n", "record 4: the cell ['65+'] is there twice"),
        ("age,count\n0-64,1\n65,2\n", "record 3: age has no value '65'"),
        ("age,count\n0-64,1.0\n65+,2\n", "record 2: count is '1.0'"),
        ("age,count\n0-64,-1\n65+,2\n", "count is '-1'"),
        ("age,count\n0-64,\n65+,2\n", "count is ''"),
        ("age,count\n0-64,1,1\n65+,2\n", "record 2: 3 values"),
        ("age;count,x\n0-64,1\n", "contains ',' and ';'"),
        ("ages,count\n0-64,1\n", "no column 'age'"),
        ("age,a,b\n0-64,1,2\n", "no column 'count'"),
        ('age,count\n"0-64,1\n', "no CSV"),
        ("", "no column 'age'"),
    ],
)
def test_wrong_published_tables_are_refused(rows: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "pop.csv").write_text(rows)
    assert words in problem(policy(tmp_path, DOMAIN + 'equals = "pop.csv"\n'))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('town = {labels = "no.csv"}', "cannot be read: No such file"),
        ('town = {labels = "towns.parquet"}', "ends in .csv"),
        ('town = {labels = "two.csv"}', "say which one holds the labels"),
        ('town = {labels = "two.csv", column = "c"}', "no column 'c'"),
        ('town = {labels = "two.csv", column = "b"}', "record 3: no label"),
        ('town = {labels = "plain.txt", column = "b"}', "plain list"),
        ('town = {labels = "latin.csv"}', 'encoding = "latin-1"'),
        ('town = {labels = "empty.csv"}', "has no labels"),
        ('town = {labels = "broken.xlsx"}', "no Excel workbook"),
        ('town = {labels = "twice.txt"}', "twice"),
        ('town = {labels = 3}', "labels as text"),
        ('town = {labels = "two.csv", colum = "a"}', "not 'colum'"),
        ('town = {labels = "two.csv", bins = [1]}', "a table such as"),
        ('town = {labels = "two.csv", also = "x"}', "also as a list"),
        ('town = {labels = "two.csv", encoding = "hz"}', "for encoding"),
        ("town = {bins = [0, 0]}", "rising order"),
        ("town = {bins = [0, 5], als = []}", "not 'als'"),
        ('town = 3\n[[public]]\ntotal = true\nequals = "two.csv"', "only beside a cuboid"),
        ('town = 3\n[[public]]\ncuboid = ["town"]\nequals = "plain.txt"', "plain list"),
        ('town = 3\n[[public]]\ncuboid = ["town"]\nequals = {fil = "two.csv"}', "not 'fil'"),
        ('town = 3\n[[public]]\ncuboid = ["town"]\nequals = {count = "two.csv"}', "the key file"),
        ('town = 3\n[[public]]\ncuboid = ["town"]\nequals = {file = "two.csv", missing = 1}', "missing = 'error'"),
        ('town = 3\n[[public]]\ncuboid = ["town"]\nequals = {file = "two.csv", columns = 1}', "columns such as"),
        ('town = 3\n[[public]]\ncuboid = ["town"]\nequals = {file = "two.csv", columns = {x = "a"}}', "not an attribute"),
        ('town = 100000000\n[[public]]\ncuboid = ["town"]\nequals = {file = "named.csv"}', "at most 10,000,000"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused_with_the_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("a,b\n1,2\n1,\n")
    (tmp_path / "named.csv").write_text("town,count\n1,2\n")
    (tmp_path / "plain.txt").write_text("a\nb\n")
    (tmp_path / "twice.txt").write_text("a\na\n")
    (tmp_path / "latin.csv").write_bytes("town\nZürich\n".encode("latin-1"))
    (tmp_path / "empty.csv").write_text("town\n")
    (tmp_path / "broken.xlsx").write_text("town\n")
    assert words in problem(policy(tmp_path, f"[domain]\n{text}\n"))


def test_the_schema_for_editors_knows_them() -> None:
    check = jsonschema.Draft202012Validator(json_schema())
    good = {
        "domain": {"age": {"bins": [0, 65], "also": ["?"]}, "town": {"labels": "t.csv", "column": "a"}},
        "public": [
            {"cuboid": ["age"], "equals": {"file": "p.csv", "missing": 0}},
            {"cuboid": ["town"], "equals": "q.csv"},
        ],
    }
    assert check.is_valid(good)
    for wrong in ({"bins": [0], "labels": "x"}, {"bin": [0]}, {"labels": 3}):
        assert not check.is_valid({"domain": {"age": wrong}})
