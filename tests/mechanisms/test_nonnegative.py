"""Asking for counts that are not negative: in Python, in policy files and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import policygraph as pg
from policygraph.cli.app import app
from policygraph.errors import InputError, RefusedError
from policygraph.files import dumps, loads
from policygraph.mechanisms import choose

DOMAIN = pg.Domain({"age": 30})
POLICY = pg.Policy(DOMAIN, pg.PolicyGraph.line(DOMAIN))
CELLS = pg.queries.identity(DOMAIN)
COUNTS = np.array([0] * 20 + [50] * 10)


def test_release_publishes_an_adaptive_histogram_with_unbiased_counts():
    made = pg.release(CELLS, POLICY, COUNTS, epsilon="0.1", nonnegative=True, rng=pg.SeededRng(1))
    table = made.tables[0]
    assert made.record["mechanism"].startswith("Adaptive")
    assert (table.values >= 0).all()
    assert table.values.sum() == 500
    assert (np.asarray(table.unbiased) < 0).any()
    assert table.errors == "simulated"
    assert np.asarray(table.unbiased).sum() == 500


def test_choose_says_why():
    ready = choose(CELLS, POLICY, pg.Rho(1), nonnegative=True)
    assert ready.sentences()[0] == "Chosen because counts should be non-negative."
    assert ready.mechanism.startswith("Adaptive")


def test_tables_are_a_cube():
    domain = pg.Domain({"a": 3, "b": 4})
    query = pg.queries.cuboids(domain, [["a"], ["b"]])
    made = pg.release(
        query, pg.Policy(domain), np.arange(12), epsilon=1, nonnegative=True, rng=pg.SeededRng(1)
    )
    assert all((np.asarray(table.values) >= 0).all() for table in made.tables)


def test_a_mechanism_beside_it_is_refused():
    with pytest.raises(InputError, match="nonnegative beside the mechanism") as caught:
        pg.release(CELLS, POLICY, COUNTS, epsilon=1, nonnegative=True, mechanism="edges")
    assert caught.value.code == "release.nonnegative"


def test_coupled_facts_without_tables_are_refused():
    policy = pg.Policy(DOMAIN, None, [pg.Total()])
    with pytest.raises(RefusedError) as caught:
        pg.release(pg.queries.prefix(DOMAIN), policy, COUNTS, epsilon=1, nonnegative=True)
    assert caught.value.code == "release.nonnegative"


def test_files_say_it_and_the_command_takes_it(tmp_path):
    text = dumps(POLICY, CELLS, nonnegative=True)
    assert loads(text).nonnegative
    assert not loads(dumps(POLICY, CELLS)).nonnegative
    (tmp_path / "asked.toml").write_text(text)
    (tmp_path / "plain.toml").write_text(dumps(POLICY, CELLS))
    (tmp_path / "data.csv").write_text("age\n" + "3\n" * 40)
    for name, more in (("asked", []), ("plain", ["--nonnegative"])):
        done = CliRunner().invoke(
            app,
            [
                "release",
                str(tmp_path / f"{name}.toml"),
                "--data",
                str(tmp_path / "data.csv"),
                "--epsilon",
                "1",
                "--out",
                str(tmp_path / name),
                "--seed",
                "1",
                *more,
            ],
        )
        assert done.exit_code == 0, done.output
        record = json.loads((tmp_path / name / "release.json").read_text())
        assert "Adaptive" in json.dumps(record)


def test_a_file_with_both_is_refused():
    text = dumps(POLICY, CELLS, nonnegative=True).replace(
        "nonnegative = true", 'nonnegative = true\nmechanism = "edges"'
    )
    with pytest.raises(pg.PolicyGraphError, match="beside a mechanism"):
        loads(text)
