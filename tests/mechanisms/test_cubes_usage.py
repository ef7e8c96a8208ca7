"""Cubes as an office uses them: from a policy file with the command alone, without naming a mechanism, and again from the ledger."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import policygraph as pg
from policygraph.cli.app import run as command
from policygraph.compare import standard_methods
from policygraph.files import PolicyFileError, dumps, loads
from policygraph.mechanisms import choose
from policygraph.mechanisms.candidates import CUBE_ATTRIBUTES, CUBE_TABLES
from policygraph.mechanisms.cube.mechanism import CubeNoise
from policygraph.mechanisms.cube.strategies import All
from tests.paths import ROOT

OFFICE = (ROOT / "policies" / "two-way-tables.toml").read_text()
DOMAIN = pg.Domain({"sex": ["F", "M"], "age": 4, "work": 3})
PAIRS = list(combinations(DOMAIN.names, 2))
COUNTS = np.arange(24) % 7


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    domain = loads(OFFICE).policy.domain
    path = tmp_path / "survey.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(domain.names)
        for _ in range(500):
            rows.writerow([rng.choice([str(x) for x in domain.labels(name)]) for name in domain.names])
    return path


def run(*words: object) -> int:
    return command([str(word) for word in words])


def of_table(rows: list[dict[str, str]], name: str) -> list[dict[str, str]]:
    return [row for row in rows if row["table"] == name]


def test_an_office_publishes_from_a_file_with_the_command_alone(survey, tmp_path, capsys):
    policy, out, book = tmp_path / "office.toml", tmp_path / "out", tmp_path / "budget.db"
    policy.write_text(OFFICE)
    words = ("release", policy, "--data", survey, "--epsilon", 1, "--ledger", book, "--out")
    assert run(*words, out) == 0
    with (out / "release.csv").open() as file:
        rows = list(csv.DictReader(file))
    values = [float(row["value"]) for row in rows]
    assert min(values) >= 0
    assert all(value == round(value) for value in values)
    with survey.open() as file:
        records = list(csv.DictReader(file))
    for row in of_table(rows, "sex x age"):
        true = sum(r["sex"] == row["sex"] and r["age"] == row["age"] for r in records)
        assert (float(row["value"]), float(row["standard_deviation"])) == (true, 0)
    for one in of_table(rows, "work"):
        for other in ("sex", "age", "region"):
            parts = [r for r in of_table(rows, f"{other} x work") if r["work"] == one["work"]]
            assert sum(float(r["value"]) for r in parts) == float(one["value"])
    capsys.readouterr()
    assert run(*words, tmp_path / "again") == 0
    assert "nothing was spent" in capsys.readouterr().out
    assert (tmp_path / "again" / "release.csv").read_text() == (out / "release.csv").read_text()


def test_the_command_line_overrules_the_file(survey, tmp_path, capsys):
    policy = tmp_path / "office.toml"
    policy.write_text(OFFICE)
    base = ("release", policy, "--data", survey, "--epsilon", 1, "--seed", 1)
    for at, (more, wanted) in enumerate(
        [
            ((), "non-negative whole"),
            (("--mechanism", "cube"), "non-negative whole"),
            (("--mechanism", "auto"), ""),
        ]
    ):
        assert run(*base, "--out", tmp_path / str(at), *more) == 0
        said = json.loads((tmp_path / str(at) / "release.json").read_text())["mechanism"]
        assert said.endswith(wanted)
        assert ("whole" in said) == bool(wanted)
    assert run(*base, "--out", tmp_path / "x", "--mechanism", "cub") == 2
    assert "Did you mean 'cube'?" in capsys.readouterr().err


def test_comparisons_and_audits_know_the_cube_of_a_file(tmp_path, capsys):
    policy = tmp_path / "office.toml"
    policy.write_text(OFFICE)
    assert run("compare", policy, "--json") == 0
    found = {line["name"]: line for line in json.loads(capsys.readouterr().out)["methods"]}
    assert found["cube"]["mechanism"].endswith("non-negative whole")
    assert "least-squares estimates" in found["cube"]["note"]
    assert found["cube"]["expected"] < found["every answer"]["expected"]
    assert run("audit", policy, "--samples", 300, "--pairs", 1, "--seed", 1) == 0


def test_a_cube_survives_writing_and_reading():
    file = loads(OFFICE)
    assert file.cube == {"nonnegative": True, "whole": True}
    assert pg.Cube(**file.cube) == pg.Cube(nonnegative=True, whole=True)
    assert loads(dumps(file.policy, file.query, cube=file.cube)).cube == file.cube
    for cube in ({"consistency": None}, {"strategy": "bmax", "offset": "1/100"}, {}):
        again = loads(dumps(file.policy, file.query, cube=cube)).cube
        assert again == cube
        assert pg.Cube(**again) == pg.Cube(**cube)
    assert loads("[domain]\na = 2\n").cube is None


@pytest.mark.parametrize(
    ("cube", "path", "words"),
    [
        ('strategy = "bmx"', "cube.strategy", "Did you mean 'bmax'?"),
        ('consistency = "least squares"', "cube.consistency", "Did you mean 'least-squares'?"),
        ("non_negative = true", "cube.non_negative", "Did you mean 'nonnegative'?"),
        ("whole = 1", "cube.whole", "expected true or false"),
        ("offset = 2", "cube.offset", "a probability between 0 and 1"),
        ('offset = "often"', "cube.offset", "a probability between 0 and 1"),
        ("offset = 0.1\nwhole = true", "cube", "expected offset alone"),
        ('consistency = "none"\nwhole = true', "cube", "expected a consistency other than none"),
    ],
)
def test_mistakes_in_a_cube_are_told_with_their_place(cube, path, words):
    text = f"[domain]\na = 2\nb = 2\n[[release]]\nup_to = 1\n[cube]\n{cube}\n"
    with pytest.raises(PolicyFileError) as caught:
        loads(text)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert words in problem.message
    assert problem.line is not None


def test_a_cube_needs_tables_of_counts():
    with pytest.raises(PolicyFileError, match="a cube is made of tables of counts"):
        loads('[domain]\nage = 4\n[[release]]\nprefix = "age"\n[cube]\n')


@pytest.mark.parametrize(
    "policy",
    [
        pg.Policy(DOMAIN),
        pg.Policy(DOMAIN, pg.PolicyGraph.full(DOMAIN)),
        pg.Policy(DOMAIN, pg.PolicyGraph.attribute(DOMAIN)),
        pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex", "age")]),
        pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")]),
    ],
    ids=["one record", "full", "attribute", "a margin", "two margins"],
)
@pytest.mark.parametrize("loss", [pg.Epsilon(1), pg.Rho("1/2")], ids=str)
def test_nothing_named_is_never_worse_than_noise_on_every_answer(policy, loss):
    query = pg.queries.all_cuboids(DOMAIN, up_to=2)
    ready, again = choose(query, policy, loss), choose(query, policy, loss)
    plain = (pg.Laplace() if loss.norm == "l1" else pg.Gaussian()).calibrate(query, policy, loss)
    total = [
        sum(
            np.broadcast_to(np.square(m.deviation(at)), part.height).sum()
            for at, part in enumerate(query.parts)
        )
        for m in (ready, plain)
    ]
    assert total[0] <= total[1]
    assert ready.mechanism == again.mechanism
    assert ready.noise == again.noise
    if isinstance(ready, CubeNoise):
        assert ready.choice == again.choice
        assert "a cube of tables that agree" in ready.why
        assert "noise" in ready.why


def test_public_tables_are_exact_when_nothing_is_named():
    policy = pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex", "age")])
    query = pg.queries.cuboids(DOMAIN, PAIRS)
    assert isinstance(choose(query, policy, pg.Epsilon(1)), CubeNoise)
    made = pg.release(query, policy, COUNTS, epsilon=1)
    assert (made.cuboid("sex", "age").values == COUNTS.reshape(2, 4, 3).sum(axis=2).ravel()).all()


def test_what_is_no_cube_by_itself():
    few = pg.queries.cuboids(DOMAIN, PAIRS, weights=[3, 1, 1])
    assert not isinstance(choose(few, pg.Policy(DOMAIN), pg.Epsilon(1)), CubeNoise), (
        "weights promise shares of noise"
    )
    assert not isinstance(
        choose(pg.queries.cuboid(DOMAIN, "sex"), pg.Policy(DOMAIN), pg.Epsilon(1)), CubeNoise
    )
    wide = pg.Domain({f"a{at}": 2 for at in range(CUBE_ATTRIBUTES + 1)})
    ready = choose(pg.queries.all_cuboids(wide, up_to=1), pg.Policy(wide), pg.Epsilon(1))
    assert not isinstance(ready, CubeNoise)
    assert 1 << CUBE_ATTRIBUTES <= CUBE_TABLES


def test_comparisons_of_tables_leave_out_what_is_made_for_ranges():
    policy = pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex", "age")])
    names = standard_methods(pg.queries.cuboids(DOMAIN, PAIRS), policy, pg.Epsilon(1))
    assert "cube" in names
    assert not {"tree", "wavelet", "optimised strategy"} & set(names)


def test_the_same_request_costs_nothing_although_the_search_ends_otherwise(tmp_path, monkeypatch):
    """A search that is limited in time may choose otherwise on a busy day: the request is the same, and is on record."""
    query, policy, book = pg.queries.cuboids(DOMAIN, PAIRS), pg.Policy(DOMAIN), tmp_path / "budget.db"
    first = pg.release(query, policy, COUNTS, epsilon=1, mechanism=pg.Cube("all"), ledger=book)
    choice = All.choose

    def otherwise(self, *given):
        made = choice(self, *given)
        return type(made)(made.sets, tuple(2 + at for at in range(len(made.sets))), made.kind)

    monkeypatch.setattr(All, "choose", otherwise)
    again = pg.release(query, policy, COUNTS, epsilon=1, mechanism=pg.Cube("all"), ledger=book)
    assert (again.values() == first.values()).all()
    other = pg.release(query, policy, COUNTS, epsilon=1, mechanism=pg.Cube("all", whole=True), ledger=book)
    assert "whole" in other.record["mechanism"]
    assert pg.Ledger(book).datasets()[0].charges == 2


def test_strategies_of_others_are_told_apart_by_what_they_choose(tmp_path):
    @dataclass(frozen=True)
    class Mine(All):
        factor: int = 1

        def choose(self, *given):
            made = super().choose(*given)
            return type(made)(made.sets, tuple(self.factor + at for at in range(len(made.sets))), made.kind)

        def __repr__(self) -> str:
            return "Mine()"

    query, book = pg.queries.cuboids(DOMAIN, PAIRS), tmp_path / "budget.db"
    for factor in (1, 2):
        pg.release(query, pg.Policy(DOMAIN), COUNTS, epsilon=1, mechanism=pg.Cube(Mine(factor)), ledger=book)
    assert pg.Ledger(book).datasets()[0].charges == 2


def test_weights_are_explained_beside_the_scale_of_the_noise():
    query = pg.queries.cuboids(DOMAIN, PAIRS)
    ready = pg.Cube("all").calibrate(query, pg.Policy(DOMAIN), pg.Epsilon(1))
    assert not any("times the weight" in line for line in ready.stages())
    heavy = pg.Cube().on(type(ready.choice)(tuple(PAIRS), (5, 6, 9)), query, pg.Policy(DOMAIN), pg.Epsilon(1))
    (line,) = [line for line in heavy.stages() if "times the weight" in line]
    assert "5 to 9" in line


@pytest.mark.parametrize(
    ("cube", "code", "words"),
    [
        ({"strategy": "bmx"}, "cubes.strategy", "Did you mean 'bmax'?"),
        ({"strategy": pg.cubes.BMax}, "cubes.strategy", "brackets: BMax()"),
        ({"strategy": None}, "cubes.strategy", "expected one of all, base"),
        ({"strategy": ["bmax"]}, "cubes.strategy", "expected one of all, base"),
        ({"nonnegative": "yes"}, "cubes.wish", "expected True or False"),
        ({"whole": 1}, "cubes.wish", "expected True or False"),
    ],
)
def test_wrong_arguments_of_a_cube_are_told(cube, code, words):
    with pytest.raises(pg.InputError) as caught:
        pg.Cube(**cube).calibrate(pg.queries.cuboids(DOMAIN, PAIRS), pg.Policy(DOMAIN), pg.Epsilon(1))
    assert caught.value.code == code
    assert words in str(caught.value)


def test_millions_of_tables_are_refused_and_not_listed():
    wide = pg.Domain({f"a{at}": 2 for at in range(40)})
    with pytest.raises(pg.InputError, match="1,099,511,627,776 tables of 40 attributes are too many"):
        pg.queries.all_cuboids(wide)
    assert len(pg.queries.all_cuboids(wide, up_to=2).sets) == 1 + 40 + 780
    for wrong in (-1, 1.5, True, "2"):
        with pytest.raises(pg.InputError, match="up_to="):
            pg.queries.all_cuboids(wide, up_to=wrong)


def test_an_explanation_of_several_tables_tells_of_cubes(tmp_path, capsys):
    policy = tmp_path / "office.toml"
    policy.write_text(OFFICE)
    assert run("explain", policy) == 0
    assert f"policygraph compare {policy}" in capsys.readouterr().out
    policy.write_text("[domain]\na = 2\n")
    assert run("explain", policy) == 0
    assert "policygraph compare" not in capsys.readouterr().out
