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

import policygraph as pg
from policygraph.cli.app import run
from tests.paths import ROOT
from tests.sensitivity.test_sensitivity_induced import DEGREES, SECTION_2

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
        "budget open",
        "budget join",
        "budget reserve",
        "budget free",
        "budget reservations",
        "budget forecast",
        "budget check",
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


def start(census, *more):
    """A release of the census with these further options."""
    return ["release", census / "census.toml", "--data", census / "people.csv", "--epsilon", "1", *more]


@pytest.mark.parametrize("text", ["pp.csv", "nothing/people", "people.parqet", "parts/*.csv"])
def test_a_limit_for_a_file_that_is_not_there_is_refused(census, capsys, monkeypatch, text):
    monkeypatch.chdir(census)
    status, _, err = call(capsys, "budget", "set", "b.db", text, "--epsilon", "1")
    assert status == 2
    assert "no such file" in err
    assert not (census / "b.db").exists()


def test_a_new_name_says_which_releases_it_is_for(census, capsys, monkeypatch):
    monkeypatch.chdir(census)
    status, out, _ = call(capsys, "budget", "set", "b.db", "town", "--epsilon", "1")
    assert (status, out) == (0, "town: limit epsilon = 1, for releases with --dataset town\n")
    status, out, _ = call(capsys, "budget", "set", "b.db", "people.csv", "--epsilon", "1")
    assert (status, out) == (0, "people.csv: limit epsilon = 1\n")
    status, out, _ = call(capsys, "budget", "set", "b.db", "v1.csv", "--epsilon", "1")
    assert status == 2
    status, out, _ = call(capsys, "budget", "set", "b.db", "town", "--rho", "1", "--json")
    told = json.loads(out)
    assert told["limit"] == {"kind": "rho", "value": "1"}
    assert told["dataset"]["name"] == "town"
    assert len(json.loads(call(capsys, "budget", "show", "b.db", "--json")[1])["datasets"]) == 2


def test_a_file_and_its_name_are_one_account(census, capsys, monkeypatch):
    monkeypatch.chdir(census)
    call(capsys, "budget", "set", "b.db", "people.csv", "--name", "people", "--epsilon", "2")
    status, _, err = call(capsys, *start(census, "--ledger", "b.db", "--dataset", "people", "--out", "o1"))
    assert status == 0, err
    assert "limit" not in err
    # without the name it is the same account, and so is changed data under the name
    assert call(capsys, *start(census, "--ledger", "b.db", "--out", "o2", "--again"))[0] == 0
    changed = census / "more.csv"
    changed.write_text((census / "people.csv").read_text() + "F,0,0\n")
    release = ["release", "census.toml", "--data", changed, "--epsilon", "1", "--ledger", "b.db"]
    status, _, err = call(capsys, *release, "--dataset", "people", "--out", "o3")
    assert status == 3
    assert "people" in err
    status, _, err = call(capsys, *release, "--out", "o4")
    assert status == 0
    assert "none for this one" in err, "a new account without a limit, beside one with"
    status, _, err = call(capsys, *release, "--dataset", "people", "--out", "o5", "--again")
    assert status == 2
    assert "knows other data by this name" in err
    # a new name for data that has an account labels it
    status, _, err = call(capsys, *release, "--dataset", "new", "--again", "--out", "o6")
    assert status == 0, err
    found = json.loads(call(capsys, "budget", "show", "b.db", "--json")[1])["datasets"]
    assert [(a["name"], a["charges"]) for a in found] == [("new", 2), ("people", 2)]
    status, _, err = call(capsys, *release, "--dataset", "newer", "--again", "--out", "o7")
    assert status == 2
    assert "named 'new'" in err


def test_a_repeated_release_says_so_and_costs_nothing(census, capsys, monkeypatch):
    monkeypatch.chdir(census)
    told = json.loads(call(capsys, *start(census, "--ledger", "b.db", "--out", "o", "--json"))[1])
    assert (told["repeated"], told["spent"]) == (False, {"kind": "epsilon", "value": "1"})
    # into the folder that holds it, and under another name
    again = json.loads(
        call(capsys, *start(census, "--ledger", "b.db", "--out", "o", "--dataset", "x", "--json"))[1]
    )
    assert (again["repeated"], again["spent"], again["loss"]) == (True, None, told["spent"])
    status, out, _ = call(capsys, *start(census, "--ledger", "b.db", "--out", "o2"))
    assert status == 0
    assert "on record already (epsilon = 1): nothing was spent" in out
    [account] = json.loads(call(capsys, "budget", "show", "b.db", "--json")[1])["datasets"]
    assert account["charges"] == 1


def test_the_same_file_read_otherwise_is_another_request(census, capsys, monkeypatch):
    monkeypatch.chdir(census)
    text = CENSUS.replace("salary = 2", "salary = 3")
    (census / "a.toml").write_text(text)
    (census / "b.toml").write_text(text + '[data]\ncolumns = {salary = "age"}\n')
    common = ["--data", "people.csv", "--epsilon", "1", "--ledger", "b.db", "--json", "--out"]
    one, two = (json.loads(call(capsys, "release", f"{n}.toml", *common, f"o{n}")[1]) for n in ("a", "b"))
    assert (one["repeated"], two["repeated"]) == (False, False)


@pytest.mark.parametrize("out", ["people.csv", "people.csv/x", "/proc/nope/x"])
def test_a_folder_that_cannot_be_written_costs_nothing(census, capsys, monkeypatch, out):
    monkeypatch.chdir(census)
    status, _, err = call(capsys, *start(census, "--ledger", "b.db", "--out", out))
    assert status == 2
    assert "Nothing was charged" in err
    assert not (census / "b.db").exists()


def test_a_folder_in_the_place_of_a_file_costs_nothing(census, capsys):
    (census / "o" / "release.csv").mkdir(parents=True)
    status, _, err = call(capsys, *start(census, "--out", census / "o"))
    assert status == 2
    assert "release.csv is a folder" in err


def test_a_failure_of_writing_says_what_was_charged(census, capsys, monkeypatch):
    from policygraph.release.release import Release

    def full(self, path):
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(census)
    with monkeypatch.context() as broken:
        broken.setattr(Release, "to_csv", full)
        status, _, err = call(capsys, *start(census, "--ledger", "b.db", "--out", "o"))
    assert status == 2
    assert "epsilon = 1 was charged" in err
    assert "the same command with another --out costs nothing" in err
    again = json.loads(call(capsys, *start(census, "--ledger", "b.db", "--out", "o2", "--json"))[1])
    assert again["repeated"]


def test_another_release_is_not_overwritten(census, capsys, monkeypatch):
    monkeypatch.chdir(census)
    assert call(capsys, *start(census, "--out", "o"))[0] == 0
    before = (census / "o" / "release.csv").read_text()
    status, _, err = call(capsys, *start(census, "--ledger", "b.db", "--out", "o"))
    assert status == 2
    assert "--overwrite" in err
    assert (census / "o" / "release.csv").read_text() == before
    assert call(capsys, "budget", "show", "b.db")[1] == "nothing is recorded yet\n"
    assert call(capsys, *start(census, "--ledger", "b.db", "--out", "o", "--overwrite"))[0] == 0
    # a repeat does not replace another release either
    call(capsys, "release", "census.toml", "--data", "people.csv", "--epsilon", "2", "--out", "p")
    assert call(capsys, *start(census, "--ledger", "b.db", "--out", "p"))[0] == 2


def test_a_large_epsilon_is_warned_of(census, capsys):
    arguments = ["release", census / "census.toml", "--data", census / "people.csv", "--out", census / "o"]
    assert "almost no protection" in call(capsys, *arguments, "--epsilon", "21")[2]
    assert "protection" not in call(capsys, *arguments, "--epsilon", "20", "--overwrite")[2]


def test_epsilon_and_delta_are_told_as_they_were_asked(census, capsys):
    arguments = ["--delta", "1e-6", "--out", census / "o", "--json"]
    told = json.loads(call(capsys, *start(census, *arguments))[1])
    assert told["asked"] == {"kind": "epsilon-delta", "epsilon": "1", "delta": "1/1000000"}
    assert told["spent"]["kind"] == "rho"
    record = json.loads((census / "o" / "release.json").read_text())
    assert record["asked"] == told["asked"]
    assert any("epsilon = 1, delta = 0.000001; kept by rho = " in line for line in record["stages"])


def test_a_further_policy_names_the_option_of_the_command(census, capsys):
    (census / "other.toml").write_text(CENSUS.replace('[[public]]\ncuboid = ["age"]\n', ""))
    assert call(capsys, *start(census, "--ledger", census / "b.db", "--out", census / "o"))[0] == 0
    arguments = ["--data", census / "people.csv", "--epsilon", "1", "--ledger", census / "b.db"]
    status, _, err = call(capsys, "release", census / "other.toml", *arguments, "--out", census / "p")
    assert status == 3
    assert "--compose-policies" in err
    assert "compose_policies" not in err


def test_the_history_is_for_people(census, capsys):
    call(capsys, "budget", "set", census / "b.db", "town", "--epsilon", "5")
    call(capsys, *start(census, "--ledger", census / "b.db", "--dataset", "town", "--out", census / "o"))
    limit, charge = call(capsys, "budget", "history", census / "b.db")[1].splitlines()
    assert limit.endswith("town  limit   epsilon = 5")
    assert "town  charge  epsilon = 1" in charge
    assert "CuboidQuery" in charge
    assert "Entry(" not in charge
    told = json.loads(call(capsys, "budget", "history", census / "b.db", "--json")[1])
    assert [entry["what"] for entry in told["entries"]] == ["limit", "charge"]


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["check", "nothing.toml", "--json"], 2, "file.missing"),
        (["budget", "show", "nothing.db", "--json"], 2, "ledger.unreadable"),
        (["sensitivity", "census.toml", "--json", "--norm", "l3"], 2, "cli.norm"),
        (["sensitivity", "census.toml", "--json", "--nonsense"], 2, "cli.usage"),
    ],
)
def test_failures_in_json(census, capsys, monkeypatch, arguments, status, code):
    monkeypatch.chdir(census)
    found, out, err = call(capsys, *arguments)
    assert found == status
    told = json.loads(out)["error"]
    assert told["code"] == code
    assert told["message"]
    assert err


def test_mistakes_of_a_file_in_json(tmp_path, capsys):
    (tmp_path / "bad.toml").write_text('[domain]\nage = 0\nsex = ["F", "F"]\n')
    status, out, _ = call(capsys, "check", tmp_path / "bad.toml", "--json")
    assert status == 2
    problems = json.loads(out)["error"]["problems"]
    assert [(p["path"], p["line"]) for p in problems] == [("domain.age", 2), ("domain.sex", 3)]


@pytest.mark.parametrize(
    "arguments",
    [
        ["sensitivity", "census.toml", "--out", "nodir/x.json"],
        ["sensitivity", "census.toml", "--out", "folder"],
        ["explain", "census.toml", "--draw", "nodir/x.png"],
        ["explain", "census.toml", "--draw", "x.docx"],
        ["verify", "people.parquet"],
        ["verify", "folder"],
        ["check", "big.toml"],
    ],
)
def test_bad_input_is_no_fault_of_ours(census, capsys, monkeypatch, arguments):
    monkeypatch.chdir(census)
    (census / "folder").mkdir()
    (census / "big.toml").write_text("[domain]\na = 100000000000000000000\n")
    status, _, err = call(capsys, *arguments)
    assert status == 2
    assert "internal error" not in err


def test_edge_lists_have_rules_in_the_file(tmp_path, capsys):
    (tmp_path / "edges.csv").write_text("a,b,w\n0,1,x\n1,0,x\n2,2,x\n9,1,x\n1,2,x\n")
    policy = tmp_path / "net.toml"
    network = "[network]\nnodes = 3\n[[release]]\nadjacency = true\n"
    release = [
        "release",
        policy,
        "--data",
        tmp_path / "edges.csv",
        "--epsilon",
        "1000",
        "--seed",
        "1",
        "--out",
    ]
    policy.write_text(network + '[data]\ncolumns = {from = "a", to = "b"}\n')
    status, _, err = call(capsys, *release, tmp_path / "o")
    assert status == 2
    for key in ('duplicates = "merge"', 'loops = "drop"', 'unknown = "drop"'):
        assert key in err
    policy.write_text(
        network
        + '[data]\nduplicates = "merge"\nloops = "drop"\nunknown = "drop"\ncolumns = {from = "a", to = "b"}\n'
    )
    status, _, err = call(capsys, *release, tmp_path / "o")
    assert status == 0, err
    assert pq.read_table(tmp_path / "o" / "release.parquet")["value"].to_pylist() == [1, 0, 1]


def test_ctrl_c_says_whether_anything_was_charged(census, capsys, monkeypatch):
    def stop(*_args, **_more):
        raise KeyboardInterrupt

    monkeypatch.chdir(census)
    with monkeypatch.context() as broken:
        broken.setattr("policygraph.curator.requests.read", stop)
        status, _, err = call(capsys, *start(census, "--ledger", "b.db", "--out", "o"))
    assert status == 130
    assert "stopped before anything was charged" in err
    assert not (census / "o").exists()
    with monkeypatch.context() as broken:
        broken.setattr("policygraph.curator.ledger.Ledger.settle", stop)
        status, _, err = call(capsys, *start(census, "--ledger", "b.db", "--out", "o"))
    assert status == 130
    assert "budget history b.db" in err


def test_the_norm_is_read_in_any_case(census, capsys):
    assert call(capsys, "sensitivity", census / "census.toml", "--norm", "L2")[0] == 0


def test_data_released_under_a_name_stay_in_its_account_without_it(census, capsys, monkeypatch):
    monkeypatch.chdir(census)
    call(capsys, "budget", "set", "b.db", "town", "--epsilon", "2")
    assert call(capsys, *start(census, "--ledger", "b.db", "--dataset", "town", "--out", "o1"))[0] == 0
    assert call(capsys, *start(census, "--ledger", "b.db", "--again", "--out", "o2"))[0] == 0
    status, _, err = call(capsys, *start(census, "--ledger", "b.db", "--again", "--out", "o3"))
    assert status == 3
    assert "town" in err
    # nor by the way of another name
    call(capsys, "budget", "set", "b.db", "village", "--epsilon", "9")
    status, _, err = call(
        capsys, *start(census, "--ledger", "b.db", "--again", "--out", "o4", "--dataset", "village")
    )
    assert status == 2
    assert "these data by the account town" in err
    [town, village] = json.loads(call(capsys, "budget", "show", "b.db", "--json")[1])["datasets"]
    assert (town["charges"], village["charges"]) == (2, 0)


def test_verify_ends_with_0_only_when_everything_holds(tmp_path, capsys):
    """A true certificate: 0. A smaller value, or a bound that is not decided here: 2, with a sentence and in the JSON."""
    from dataclasses import replace
    from fractions import Fraction

    domain = pg.Domain({"x": 3})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain), [pg.Cells(["x"], [1])], at_most_records=1)
    made = pg.sensitivity(pg.queries.identity(domain), policy)
    path = tmp_path / "certificate.json"
    made.to_json(str(path))
    assert call(capsys, "verify", path)[0] == 0
    forged = replace(made, power=Fraction(0), lower_power=Fraction(0), kind="exact", witness=None)
    forged.to_json(str(path))
    status, out, _ = call(capsys, "verify", path, "--json")
    report = json.loads(out)
    assert (status, report["ok"], report["failed"], report["complete"]) == (2, False, True, True)
    wide = pg.Domain({"a": 5, "b": 5})
    hard = pg.Policy(wide, pg.PolicyGraph.full(wide), [pg.Cuboid("a"), pg.Cuboid("b")])
    undecided = pg.sensitivity(pg.queries.identity(wide), hard, effort=1000)
    undecided.to_json(str(path))
    status, out, _ = call(capsys, "verify", path)
    assert status == 2
    assert "nothing failed, but not everything could be checked again here" in out
    status, out, _ = call(capsys, "verify", path, "--json")
    report = json.loads(out)
    assert (status, report["ok"], report["failed"], report["complete"]) == (2, False, False, False)


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_pipe_is_read_or_refused_and_never_waited_for_in_silence(census, capsys):
    status, _, _ = call(capsys, "sensitivity", census / "census.toml", "--out", census / "certificate.json")
    assert status == 0
    idle = census / "idle.csv"
    os.mkfifo(idle)
    for command in ("check", "sensitivity", "explain", "verify"):
        status, _, err = call(capsys, command, idle)
        assert (status, "a pipe into which nobody writes" in err) == (2, True), command
    where = ["--epsilon", 1, "--out", census / "out"]
    for data in (idle, f"duckdb://{idle}?table=people"):
        status, _, err = call(capsys, "release", census / "census.toml", "--data", data, *where)
        assert (status, "is a pipe: expected a file, since data are read more than once" in err) == (2, True)
    status, _, err = call(capsys, "budget", "set", census / "b.db", idle, "--epsilon", 1)
    assert (status, "is a pipe" in err) == (2, True)
    assert not (census / "b.db").exists()
    for command, path in (("check", census / "census.toml"), ("verify", census / "certificate.json")):
        reader, writer = os.pipe()
        os.write(writer, path.read_bytes())
        os.close(writer)
        status, _, _ = call(capsys, command, f"/dev/fd/{reader}")
        os.close(reader)
        assert status == 0


@pytest.mark.parametrize("option", ["--data", "--epsilon", "--out", "--ledger", "--dataset"])
def test_an_option_given_twice_is_refused(census, capsys, option):
    given = {
        "--data": census / "people.csv",
        "--epsilon": 1,
        "--out": census / "out",
        "--ledger": census / "b.db",
    }
    given = {**given, "--dataset": "people"}
    words = [word for pair in given.items() for word in pair]
    status, out, err = call(capsys, "release", census / "census.toml", *words, option, 2, "--json")
    assert (status, json.loads(out)["error"]["code"]) == (2, "cli.twice")
    assert f"{option} was given 2 times" in err
    assert not (census / "b.db").exists()
    assert not (census / "out").exists()


def test_a_limit_for_a_file_whose_encoding_only_the_policy_knows(census, capsys):
    text = CENSUS.replace('"M"', '"männlich"') + '[data]\nencoding = "latin-1"\n'
    (census / "latin.toml").write_text(text, encoding="utf-8")
    (census / "latin.csv").write_bytes("sex;age;salary\nF;1;0\nmännlich;2;1\n".encode("latin-1"))
    ledger = census / "b.db"
    status, _, err = call(
        capsys,
        "release",
        census / "census.toml",
        "--data",
        census / "latin.csv",
        "--epsilon",
        1,
        "--out",
        census / "o",
    )
    assert (status, 'encoding = "latin-1"' in err) == (2, True)
    assert call(capsys, "budget", "set", ledger, census / "latin.csv", "--epsilon", 1)[0] == 0
    command = ["release", census / "latin.toml", "--data", census / "latin.csv", "--ledger", ledger, "--out"]
    assert call(capsys, *command, census / "o1", "--epsilon", 2)[0] == 3
    assert call(capsys, *command, census / "o2", "--epsilon", 1)[0] == 0


def test_a_charge_that_waited_is_said_to_be_completed(census, capsys, monkeypatch):
    from policygraph.curator.ledger import Ledger

    command = ["release", census / "census.toml", "--data", census / "people.csv", "--epsilon", 1, "--ledger"]
    command += [census / "b.db", "--out", census / "out"]
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "settle", lambda *_: (_ for _ in ()).throw(OSError(5, "the machine went away")))
        assert call(capsys, *command)[0] == 2
    status, out, _ = call(capsys, *command)
    assert (status, "it is completed now, and nothing was spent" in out) == (0, True)
    status, out, _ = call(capsys, *command, "--json")
    assert (status, json.loads(out)["repeated"], "completed" in json.loads(out)) == (0, True, False)
    status, out, _ = call(capsys, "budget", "show", census / "b.db", "--json")
    assert json.loads(out)["datasets"][0]["spent"]["value"] == "1"


def test_synthetic_records_of_released_tables_meet_the_public_ones(census, capsys):
    text = CENSUS.replace('cuboid = ["sex", "age", "salary"]', 'up_to = 2\nmechanism = "adaptive-cube"')
    (census / "wide.toml").write_text(text)
    out = census / "out"
    told = call(
        capsys,
        "release",
        census / "wide.toml",
        "--data",
        census / "people.csv",
        "--epsilon",
        "1",
        "--out",
        out,
    )
    assert told[0] == 0, told
    status, said, _ = call(capsys, "synthetic", out, "--to", census / "made.csv", "--json")
    assert status == 0
    assert json.loads(said)["records"] == 500
    rows = (census / "made.csv").read_text().splitlines()[1:]
    real = (census / "people.csv").read_text().splitlines()[1:]
    for column in (0, 1):
        assert sorted(row.split(",")[column] for row in rows) == sorted(
            row.split(",")[column] for row in real
        )
    status, _, errors = call(capsys, "synthetic", out, "--to", census / "made.csv", "--records", "3")
    assert status == 2
    assert "public" in errors
