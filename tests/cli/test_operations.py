"""Logs, quiet commands, and the recipe for cron: no log and no error has a true value in it."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import policygraph as pg
from policygraph.cli.app import run
from policygraph.errors import PolicyGraphError
from policygraph.logs import LOGGER, JsonLines
from policygraph.mechanisms.candidates import CANDIDATES
from tests.paths import ROOT

TRUE = (48611, 71993, 60493, 93719, 82457, 55837)
"""Counts that occur nowhere else."""
SHOWN = re.compile("|".join(rf"(?<![0-9a-f]){count}(?![0-9a-f])|{count:,}" for count in (*TRUE, sum(TRUE))))


@pytest.fixture
def told():
    """Everything that the library tells a log, at the lowest level."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonLines())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    yield out
    LOGGER.removeHandler(handler)
    LOGGER.setLevel(logging.NOTSET)


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def without_times(text):
    return [
        {key: value for key, value in line.items() if key not in ("time", "process")} for line in lines(text)
    ]


def test_no_mechanism_shows_a_true_count(told, tmp_path):
    """Every mechanism that is known by name, both losses, with and without public facts; refusals are read as well."""
    table = pg.Domain({"a": 2, "b": 3})
    line = pg.Domain({"age": 6})
    policies = [
        pg.Policy(table),
        pg.Policy(table, constraints=[pg.Cuboid("a")]),
        pg.Policy(line, pg.PolicyGraph.line(line)),
    ]
    refusals, made = [], set()
    ledger = pg.Ledger(tmp_path / "budget.db")
    for number, policy in enumerate(policies):
        queries = [pg.queries.identity(policy.domain)]
        queries += [pg.queries.ranges(line, [(0, 2), (1, 5)])] if policy.domain == line else []
        for query in queries:
            for candidate in CANDIDATES:
                for loss in ({"epsilon": "1/1000"}, {"rho": "1/1000000"})[: 1 if number else 2]:
                    try:
                        pg.release(
                            query,
                            policy,
                            list(TRUE),
                            mechanism=candidate.name,
                            ledger=ledger,
                            dataset=f"people {number}",
                            **loss,
                        )
                    except PolicyGraphError as refusal:
                        refusals.append(f"{refusal} {refusal.details!r}")
                    else:
                        made.add(candidate.name)
    assert len(made) >= 8
    assert not [text for text in refusals if SHOWN.search(text)]
    assert not [line for line in without_times(told.getvalue()) if SHOWN.search(json.dumps(line))]
    names = {line["event"] for line in lines(told.getvalue())}
    assert {"charged", "released", "drawing the noise", "counting the records"} <= names


def test_data_that_cannot_be_released_are_refused_without_their_counts(told):
    domain = pg.Domain({"age": 6})
    fact = pg.Cuboid("age", equals=[1, 2, 3, 4, 5, 6])
    for policy, data in (
        (pg.Policy(domain, constraints=[fact]), list(TRUE)),
        (pg.Policy(domain), [*TRUE, 1]),
        (pg.Policy(domain), [-count for count in TRUE]),
    ):
        with pytest.raises(PolicyGraphError) as refusal:
            pg.release(pg.queries.identity(domain), policy, data, epsilon=1)
        assert not SHOWN.search(f"{refusal.value} {refusal.value.details!r}")
    assert not SHOWN.search(json.dumps(without_times(told.getvalue())))


COUNTS = {"x": 7919, "y": 6271, "z": 104}
SHOWN_OF_RECORDS = re.compile(
    "|".join(
        rf"(?<![0-9a-f]){count}(?![0-9a-f])|{count:,}" for count in (*COUNTS.values(), sum(COUNTS.values()))
    )
)


def as_file(folder, request):
    data = folder / "people.csv"
    data.write_text("kind\n" + "".join(f"{kind}\n" * count for kind, count in COUNTS.items()))
    return data


def as_parquet(folder, request):
    request.getfixturevalue("spark")
    kinds = [kind for kind, count in COUNTS.items() for _ in range(count)]
    pq.write_table(pa.table({"kind": kinds}), folder / "people.parquet")
    return folder / "people.parquet"


def as_table(folder, request):
    server = request.getfixturevalue("postgres_server")
    with server.connect() as db:
        db.execute("DROP TABLE IF EXISTS distinctive")
        db.execute("CREATE TABLE distinctive (kind text)")
        for kind, count in COUNTS.items():
            db.execute("INSERT INTO distinctive SELECT %s FROM generate_series(1, %s)", (kind, count))
    return server.address("distinctive")


@pytest.mark.parametrize("ledger", ["file", "server"])
@pytest.mark.parametrize("engine", ["duckdb", "spark", "postgres"])
def test_no_engine_shows_a_true_count(told, tmp_path, request, engine, ledger):
    """Records in files and in a table, the ledger in a file and on a server; a count is as distinctive as 20,000 records allow."""
    domain = pg.Domain({"kind": ["x", "y", "z"]})
    data = {"duckdb": as_file, "spark": as_parquet, "postgres": as_table}[engine](tmp_path, request)
    if ledger == "server":
        place = request.getfixturevalue("postgres_server").url(ledger=f"told_{engine}")
    else:
        place = tmp_path / "b.db"
    query, policy = pg.queries.identity(domain), pg.Policy(domain)
    pg.release(query, policy, data, epsilon="1/1000", ledger=pg.Ledger(place), engine=engine)
    small = pg.Domain({"kind": ["x", "y"]})
    with pytest.raises(PolicyGraphError, match="104 of 14,294 rows"):
        # The curator is told how many rows do not fit, on the error output; the log is not.
        pg.release(pg.queries.identity(small), pg.Policy(small), data, epsilon=1, engine=engine)
    events = {line["event"] for line in lines(told.getvalue())}
    assert {"charged", "released", "counting the records"} <= events
    assert not SHOWN_OF_RECORDS.search(json.dumps(without_times(told.getvalue())))
    assert str(data) not in told.getvalue()


def test_no_worker_of_spark_shows_a_true_count(told, tmp_path, request):
    """A table in parts, whose noise the workers draw."""
    data = as_parquet(tmp_path, request)
    domain = pg.Domain({"kind": ["x", "y", "z"]})
    made = pg.release(
        pg.queries.identity(domain),
        pg.Policy(domain),
        data,
        epsilon="1/1000",
        mechanism=pg.Laplace(),
        ledger=tmp_path / "b.db",
        engine="spark",
        parts=tmp_path / "table",
    )
    # The release lists the blocks and how many cells each has; the noisy values are in the files that the workers wrote.
    assert made.values().tolist() == [3]
    assert pq.read_table(tmp_path / "table").num_rows == 3
    assert not SHOWN_OF_RECORDS.search(json.dumps(without_times(told.getvalue())))


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text("[domain]\nage = 5\n")
    (tmp_path / "people.csv").write_text("age\n1\n2\n3\n3\n")
    return tmp_path


def release(*more):
    return run(
        [
            "release",
            "policy.toml",
            "--data",
            "people.csv",
            "--epsilon",
            "1",
            "--ledger",
            "b.db",
            "--out",
            "out",
            *more,
        ]
    )


def test_a_log_has_one_object_a_line_and_quiet_prints_nothing(place, capsys):
    assert release("--quiet", "--log", "run.jsonl", "--dataset", "people") == 0
    assert capsys.readouterr() == ("", "")
    assert release("--log=run.jsonl", "--quiet", "--dataset", "people") == 0
    assert run(["--quiet", "--log", "run.jsonl", "check", "missing.toml"]) == 2
    out, err = capsys.readouterr()
    assert (out, "missing.toml" in err) == ("", True)
    found = lines((place / "run.jsonl").read_text())
    events = [line["event"] for line in found if line["level"] == "info"]
    assert events == ["charged", "released", "ended", "repeated", "ended", "ended"]
    charged = found[[line["event"] for line in found].index("charged")]
    assert (charged["charge"], charged["account"], charged["loss"]) == (1, "people", "epsilon = 1")
    (failed,) = [line for line in found if line["level"] == "error"]
    assert (failed["event"], "missing.toml" in json.dumps(failed)) == ("failed", False), (
        "the text of an error may quote data"
    )
    assert [line["status"] for line in found if line["event"] == "ended"] == [0, 0, 2]
    assert [line["command"] for line in found if line["event"] == "ended"] == ["release", "release", "check"]
    assert LOGGER.level == logging.NOTSET


def test_quiet_keeps_json_and_help(place, capsys):
    assert release("--quiet", "--json") == 0
    assert json.loads(capsys.readouterr().out)["repeated"] is False
    assert run(["budget", "--quiet", "--help"]) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize("target", [".", "missing/run.jsonl", "https://x/y"])
def test_a_log_that_cannot_be_written_is_refused_before_anything_is_done(place, capsys, target):
    assert release("--log", target) == 2
    assert not (place / "b.db").exists()


def test_the_recipe_for_cron_runs_as_written(place):
    """The script of docs/how-to/operations.md, saved and run twice: it charges once, and tells what it did."""
    page = (ROOT / "docs" / "how-to" / "operations.md").read_text()
    (script,) = re.findall(r"```sh\n(#!/bin/sh.*?)```", page, re.DOTALL)
    (place / "bin").mkdir()
    command = place / "bin" / "policygraph"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m policygraph "$@"\n')
    command.chmod(0o755)
    (place / "nightly.sh").write_text(script)
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    assert run(["budget", "set", "budget.db", "people", "--epsilon", "1", "--quiet"]) == 0
    statuses = []
    for _ in range(2):
        done = subprocess.run(
            ["sh", "nightly.sh"], capture_output=True, text=True, env=environment, check=False
        )
        statuses.append(done.returncode)
        assert done.returncode in (0, 5), done.stderr
    assert statuses == [0, 0]
    events = [line["event"] for line in lines(Path("policygraph.jsonl").read_text())]
    assert (events.count("charged"), events.count("repeated")) == (1, 1)
