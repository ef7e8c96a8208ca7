"""The command as people and scripts meet it: forms, exit statuses, no tracebacks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from policygraph.cli.app import run
from tests.test_sensitivity_induced import DEGREES, SECTION_2

ROOT = Path(__file__).resolve().parents[1]

CENSUS = """
[domain]
sex = ["F", "M"]
age = 3
salary = 2

[[public]]
cuboid = ["sex"]

[[public]]
cuboid = ["age"]

[[release]]
cuboid = ["sex", "age", "salary"]
"""


@pytest.fixture
def census(tmp_path):
    path = tmp_path / "census.toml"
    path.write_text(CENSUS)
    rng = np.random.default_rng(3)
    rows = {
        "sex": np.array(["F", "M"])[rng.integers(0, 2, 500)],
        "age": rng.integers(0, 3, 500),
        "salary": rng.integers(0, 2, 500),
    }
    pq.write_table(pa.table(rows), tmp_path / "people.parquet")
    from pyarrow import csv

    csv.write_csv(pa.table(rows), tmp_path / "people.csv")
    return tmp_path


def call(capsys, *arguments):
    status = run([str(a) for a in arguments])
    out = capsys.readouterr()
    assert "Traceback" not in out.err
    return status, out.out, out.err


def value_of(tmp_path, capsys, text, *options):
    path = tmp_path / "policy.toml"
    path.write_text(text)
    status, out, err = call(capsys, "sensitivity", path, "--json", *options)
    assert status == 0, err
    return json.loads(out)


@pytest.mark.parametrize(("sizes", "facts", "value"), SECTION_2, ids=str)
def test_sensitivity_of_margins_from_a_file(tmp_path, capsys, sizes, facts, value):
    lines = ["[domain]", *(f"{'ABCD'[i]} = {n}" for i, n in enumerate(sizes))]
    for word in facts.split():
        lines += ["[[public]]", f"cuboid = {json.dumps(list(word))}"]
    found = value_of(tmp_path, capsys, "\n".join(lines))
    assert (found["value"], found["kind"], found["lower"]) == (value, "exact", value)
    assert {"value", "kind", "lower", "norm", "definition", "method", "witness"} <= set(found)


@pytest.mark.parametrize(("nodes", "known"), DEGREES, ids=str)
def test_sensitivity_of_degrees_from_a_file(tmp_path, capsys, nodes, known):
    text = f"[network]\nnodes = {nodes}\n[[public]]\ndegrees = {list(range(known))}\n[[release]]\nadjacency = true\n"
    assert value_of(tmp_path, capsys, text)["value"] == DEGREES[nodes, known]


@pytest.mark.parametrize(
    ("domain", "neighbours", "public", "value"),
    [
        ("x = 4", 'graph = "line"', ["count = {where = {x = [0, 1]}}"], 4),
        ("x = 4", "graph = {threshold = 1}", ["count = {where = {x = [0, 1]}}"], 4),
        (
            "x = 6",
            "graph = {threshold = 1, attribute = 'x'}",
            ["count = {where = {x = [0, 1]}}", "count = {where = {x = [2, 3]}}"],
            6,
        ),
        ("a = 3\nb = 2", 'graph = "full"', ['cuboid = ["a"]'], 6),
        ("a = 2\nb = 2", 'graph = "full"', ['cuboid = ["a"]'], 4),
        ("a = 2\nb = 2", 'graph = "none"', ['cuboid = ["a"]'], 2),
        ("a = 2\nb = 2", 'graph = "attribute"', ['cuboid = ["a"]'], 2),
        ("a = 2\nb = 2", 'graph = "attribute"', ['cuboid = ["a"]', 'cuboid = ["b"]'], 4),
        (
            "a = 2\nb = 2\nc = 2",
            'graph = "attribute"\nat_most_records = 2',
            ['cuboid = ["a"]', 'cuboid = ["b"]'],
            4,
        ),
        (
            "a = 2\nb = 2\nc = 2",
            'graph = "attribute"\nat_most_records = 3',
            ['cuboid = ["a"]', 'cuboid = ["b"]'],
            6,
        ),
        ("a = 2\nb = 2\nc = 2", 'graph = "attribute"', ['cuboid = ["a"]', 'cuboid = ["b"]'], 8),
        (
            "a = 3\nb = 3",
            "",
            ["cells = {of = ['a'], values = [[0]]}", "cells = {of = ['b'], values = [[2]]}"],
            3,
        ),
        (
            "a = 3\nb = 3",
            "",
            ["cells = {of = ['a'], values = [[0]]}", "cells = {of = ['b'], values = [[2]]}", "total = true"],
            4,
        ),
        ("a = 3\nb = 3", 'strength = "markov"', ['cuboid = ["a"]', 'cuboid = ["b"]'], 4),
        ("a = 3\nb = 3", "at_most_records = 2", ['cuboid = ["a"]', 'cuboid = ["b"]'], 4),
        ("a = 3\nb = 3", "", ['cuboid = ["a"]', 'cuboid = ["b"]', "zeros = [[0, 0], [0, 1]]"], 4),
        ("a = 5", 'graph = "full"', [], 2),
        ("a = 5", 'graph = "full"\nbottom = true', [], 2),
        ("a = 5", "", [], 1),
        ("a = 5", "graph = {edges = [[0, 1], [1, 2]]}", [], 2),
        ("a = 4\nb = 2", "graph = {partition = [[0, 1], [2, 3]], attribute = 'a'}", [], 2),
    ],
)
def test_sensitivity_of_other_forms(tmp_path, capsys, domain, neighbours, public, value):
    text = f"[domain]\n{domain}\n[neighbours]\n{neighbours}\n" + "".join(
        f"[[public]]\n{line}\n" for line in public
    )
    found = value_of(tmp_path, capsys, text)
    assert (found["value"], found["kind"]) == (value, "exact")


def test_the_way_of_a_user(census, capsys):
    policy, ledger = census / "census.toml", census / "budget.db"
    assert call(capsys, "check", policy)[0] == 0
    status, out, _ = call(capsys, "sensitivity", policy, "--out", census / "c.json")
    assert status == 0
    assert out.startswith("sensitivity = 4")
    status, out, _ = call(capsys, "verify", census / "c.json")
    assert status == 0
    assert "FAILED" not in out
    assert call(capsys, "budget", "set", ledger, "town", "--epsilon", "1.5")[0] == 0
    release = [
        "release",
        policy,
        "--data",
        census / "people.csv",
        "--epsilon",
        "1",
        "--ledger",
        ledger,
        "--dataset",
        "town",
    ]
    status, out, err = call(capsys, *release, "--out", census / "out", "--json")
    assert status == 0, err
    told = json.loads(out)
    assert told["spent"] == {"kind": "epsilon", "epsilon": "1"} or "1" in json.dumps(told["spent"])
    for path in told["written"].values():
        assert Path(path).exists()
    assert pq.read_table(told["written"]["release.parquet"]).num_rows == 12
    again = call(capsys, *release, "--out", census / "out2", "--json")
    assert again[0] == 0
    assert (census / "out2" / "release.csv").read_text() == (census / "out" / "release.csv").read_text()
    status, _, err = call(capsys, *release, "--out", census / "out3", "--again")
    assert status == 3
    assert "left" in err or "limit" in err
    assert not (census / "out3").exists()
    status, out, _ = call(capsys, "budget", "show", ledger)
    assert status == 0
    assert "town" in out
    assert call(capsys, "budget", "history", ledger)[0] == 0
    status, out, _ = call(capsys, "budget", "export", ledger)
    assert json.loads(out)["format"] == "policygraph-ledger"
    assert call(capsys, "explain", policy, "--epsilon", "0.5", "--draw", census / "pair.png")[0] == 0
    assert (census / "pair.png").stat().st_size > 1000
    assert call(capsys, "schema")[0] == 0


def test_seeded_releases_say_so(census, capsys):
    status, out, _ = call(
        capsys,
        "release",
        census / "census.toml",
        "--data",
        census / "people.parquet",
        "--epsilon",
        1,
        "--out",
        census / "o",
        "--seed",
        "7",
    )
    assert status == 0
    assert "NOT PRIVATE" in out
    assert "NOT PRIVATE" in (census / "o" / "release.csv").read_text()


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["check", "nothing.toml"], 2),
        (["sensitivity"], 2),
        (["sensitivity", "census.toml", "--norm", "l3"], 2),
        (["nonsense"], 2),
        (["release", "census.toml", "--data", "missing.csv", "--epsilon", "1", "--out", "o"], 2),
        (["release", "census.toml", "--data", "people.csv", "--epsilon", "-1", "--out", "o"], 2),
        (["release", "census.toml", "--data", "people.csv", "--epsilon", "x", "--out", "o"], 2),
        (["release", "census.toml", "--data", "people.csv", "--out", "o"], 2),
        (
            [
                "release",
                "census.toml",
                "--data",
                "people.csv",
                "--epsilon",
                "1",
                "--out",
                "o",
                "--ledger",
                "people.csv",
            ],
            2,
        ),
        (["release", "census.toml", "--data", "census.toml", "--epsilon", "1", "--out", "o"], 2),
        (["verify", "people.csv"], 2),
        (["verify", "missing.json"], 2),
        (["budget", "show", "missing.db"], 2),
        (["budget", "set", "budget.db", "town"], 2),
        (["--help"], 0),
        (["--version"], 0),
        ([], 2),
    ],
)
def test_exit_statuses(census, capsys, monkeypatch, arguments, status):
    monkeypatch.chdir(census)
    found, out, err = call(capsys, *arguments)
    assert found == status, (out, err)
    assert out or err


def test_all_errors_of_a_file_at_once(tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_text(
        '[domain]\nsex = ["F", "F"]\nage = 0\n[neighbours]\nstrength = "weak"\n[[public]]\ncuboid = ["height"]\n'
    )
    status, _, err = call(capsys, "check", path)
    assert status == 2
    for word in ("sex", "age", "strength"):
        assert word in err


@pytest.mark.parametrize(
    "command",
    [
        "check",
        "sensitivity",
        "verify",
        "explain",
        "release",
        "audit",
        "schema",
        "budget show",
        "budget set",
        "budget history",
        "budget export",
    ],
)
def test_each_command_explains_itself_with_an_example(capsys, command):
    status, out, _ = call(capsys, *command.split(), "--help")
    assert status == 0
    assert "Example: policygraph" in " ".join(out.split())


def test_python_m_is_the_same_command_and_pipes_are_quiet(census):
    environment = {k: v for k, v in os.environ.items() if k != "POLICYGRAPH_DEBUG"}
    done = subprocess.run(
        [sys.executable, "-m", "policygraph", "sensitivity", str(census / "census.toml"), "--json"],
        capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["value"] == 4
    assert done.stderr == ""


@pytest.mark.parametrize("path", sorted((ROOT / "policies").glob("*.toml")), ids=lambda p: p.stem)
def test_policies_that_come_with_the_project_are_usable(capsys, path):
    status, out, err = call(capsys, "check", path)
    assert status == 0, err
    status, out, err = call(capsys, "sensitivity", path, "--json", "--time-limit", "5")
    assert status == 0, err
    assert json.loads(out)["value"] > 0
