"""Every policy that comes with the project runs, on data that its generator makes up."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pytest

import policygraph as pg
from policygraph.cli.app import run as main
from policygraph.compare import named_mechanism
from policygraph.demo import made_up
from policygraph.errors import InputError, RefusedError
from policygraph.files import load, loads

POLICIES = sorted((Path(__file__).resolve().parents[2] / "policies").glob("*.toml"))


def test_there_are_fifteen_and_each_says_who_would_use_it() -> None:
    assert len(POLICIES) >= 15
    for path in POLICIES:
        text = path.read_text(encoding="utf-8")
        for words in ("# For whom: ", "# Protects: ", "# Does not protect: "):
            assert words in text, path.name


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_policies_release_made_up_data(path: Path, tmp_path: Path) -> None:
    file = load(path)
    data = tmp_path / "people.csv"
    pyarrow.csv.write_csv(made_up(file, 300, seed=1), data)
    loss = pg.Epsilon(1)
    chosen = named_mechanism(
        file.mechanism, file.query, file.policy, loss, file.cube, nonnegative=file.nonnegative
    )
    made = pg.release(
        file.query,
        file.policy,
        data,
        epsilon=1,
        mechanism=chosen,
        columns=file.columns,
        edges=file.edges,
        rng=pg.SeededRng(1),
    )
    assert made.tables
    written = made.write(tmp_path / "out", tables=True)
    assert len(list(Path(written["tables"]).glob("*.csv"))) >= len(made.tables)


def test_the_command_and_what_it_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "people.csv"
    assert main(["demo", str(POLICIES[0]), "--out", str(out), "--rows", "20"]) == 0
    assert len(out.read_text().splitlines()) == 21
    assert main(["demo", str(POLICIES[0]), "--out", str(out), "--rows", "0"]) == 2
    file = loads("[domain]\nage = 3\n[[public]]\ntotal = true\nequals = 5\n")
    with pytest.raises(RefusedError, match="states published values"):
        made_up(file)
    with pytest.raises(InputError):
        made_up(loads("[domain]\nage = 3\n"), 0)
