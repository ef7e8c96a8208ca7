"""Plans: the epsilon is the least of its grid, by the errors that a release states."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import policygraph as pg
from policygraph.cli.app import run as main
from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms import choose
from policygraph.model.loss import Epsilon
from policygraph.plan import LAST, _at, _grid

DOMAIN = pg.Domain({"sex": ["F", "M"], "age": 4})
TABLES = pg.queries.cuboids(DOMAIN, [["sex"], ["age"], ["sex", "age"]])
FACTS = pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")])


def test_the_grid_rises_and_is_found_again() -> None:
    points = [_grid(at) for at in range(LAST + 1)]
    assert points == sorted(set(points))
    assert points[0] == Fraction(1, 10_000)
    assert points[-1] == 1000
    assert [_at(float(point)) for point in points] == list(range(LAST + 1))
    assert (_at(0.0), _at(1e9)) == (0, LAST)


@pytest.mark.parametrize("measure", ["within_95", "deviation"])
@pytest.mark.parametrize("policy", [pg.Policy(DOMAIN), FACTS], ids=["plain", "facts"])
def test_the_epsilon_is_the_least_that_reaches_the_error(policy: pg.Policy, measure: str) -> None:
    for query in (
        pg.queries.identity(DOMAIN),
        *([TABLES] if measure == "deviation" and not policy.constraints else []),
    ):
        made = pg.plan(query, policy, error=12, measure=measure, alternatives=False)
        assert made.before is not None

        def worst(epsilon: Fraction, query: pg.Query = query) -> float:
            ready = choose(query, policy, Epsilon(epsilon))
            stated = [
                ready.within_95(at) if measure == "within_95" else ready.deviation(at)
                for at in range(len(query.parts))
            ]
            return max(float(np.max(each)) for each in stated)

        assert worst(made.epsilon) == made.best.worst <= 12 < worst(made.before.epsilon)
        # Every smaller epsilon of the grid has a larger error: the search is right to stop.
        at = _at(float(made.epsilon))
        errors = [worst(_grid(each)) for each in range(at - 40, at, 20)]
        assert min(errors) > 12


def test_errors_by_table_and_by_share() -> None:
    made = pg.plan(TABLES, pg.Policy(DOMAIN), tables={"sex": 3}, alternatives=False)
    assert made.per_table["sex"] <= 3
    assert made.targets["age"] == float("inf")
    whole = pg.queries.identity(DOMAIN)
    shares = pg.plan(whole, pg.Policy(DOMAIN), relative="0.1", records=800, alternatives=False)
    assert shares.targets == {"sex x age": 10.0}
    told = pg.Policy(DOMAIN, constraints=[pg.Total(equals=800)])
    assert pg.plan(whole, told, relative="0.1", alternatives=False).targets == shares.targets


def test_what_is_public_costs_nothing() -> None:
    made = pg.plan(pg.queries.cuboid(DOMAIN, "sex"), FACTS, error=1, alternatives=False)
    assert made.per_table == {"sex": 0.0}
    assert made.epsilon == _grid(0)


def test_options_are_plans_of_their_own() -> None:
    domain = pg.Domain({"a": 3, "b": 3, "c": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    made = pg.plan(pg.queries.identity(domain), policy, error=40)
    found = {each.change: each for each in made.options}
    weaker = pg.plan(
        pg.queries.identity(domain), policy.with_strength("markov"), error=40, alternatives=False
    )
    assert found["strength = 'markov'"].epsilon == weaker.epsilon < made.epsilon
    assert found["if cuboid a were not public"].epsilon < made.epsilon  # type: ignore[operator]
    text = str(made)
    for words in (
        "Who is protected against whom: every group of people",
        "Two data sets that must look alike",
        "two people who swap",
        "Recommendation:",
    ):
        assert words in text


def test_wrong_questions_are_refused() -> None:
    policy = pg.Policy(DOMAIN)
    for more, code in [
        ({}, "plan.error"),
        ({"error": 5, "relative": 0.1}, "plan.error"),
        ({"error": 0}, "plan.error"),
        ({"relative": "0.1"}, "plan.error"),
        ({"relative": "0.1", "records": 0}, "plan.error"),
        ({"tables": {"x": 3}}, "plan.table"),
        ({"error": 5, "measure": "variance"}, "plan.measure"),
    ]:
        with pytest.raises(InputError) as refusal:
            pg.plan(TABLES, policy, **more)  # type: ignore[arg-type]
        assert refusal.value.code == code
    with pytest.raises(RefusedError) as none:
        pg.plan(TABLES, pg.Families(policy, 10**7), error=5, alternatives=False)
    assert none.value.code == "plan.none"
    network = pg.Network(4)
    with pytest.raises(RefusedError) as statistic:
        pg.plan(pg.queries.from_spec(network, {"statistic": "triangles"}), pg.Policy(network), error=5)
    assert statistic.value.code == "plan.statistic"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.toml"
    path.write_text(
        '[domain]\nsex = ["F", "M"]\nage = {bins = [0, 18, 65]}\n[[public]]\ncuboid = ["sex"]\n[[release]]\nup_to = 2\n'
    )
    picture = tmp_path / "p.png"
    assert main(["plan", str(path), "--error", "50", "--json", "--plot", str(picture)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert max(said["per_table"].values()) <= 50
    assert 0 < said["epsilon"] < 1
    assert picture.stat().st_size > 5000
    assert main(["plan", str(path), "--error", "50", "--table", "sex x age=20", "--brief"]) == 0
    assert "(asked: 20)" in capsys.readouterr().out
    assert main(["plan", str(path), "--table", "sex x age"]) == 2
    assert main(["plan", str(path)]) == 2


def test_of_a_long_pair_of_data_sets_only_what_differs_is_shown() -> None:
    domain = pg.Domain({"place": 20, "age": 3})
    facts = [pg.Cuboid("place", equals=[30] * 20), pg.Cuboid("age", equals=[200] * 3)]
    found = pg.sensitivity(pg.queries.identity(domain), pg.Policy(domain, constraints=facts))
    [before, after] = str(found).splitlines()[-2:]
    for line in (before, after):
        assert "the same in both" in line
        assert line.count("(") <= 6


@pytest.mark.parametrize("records", [0, -1, 10**400, float("nan"), "many", True, 1.5])
def test_a_number_of_records_that_is_none_is_refused(records):
    domain = pg.Domain({"age": 3})
    with pytest.raises(pg.InputError, match=r"records = .*whole number"):
        pg.plan(pg.queries.identity(domain), pg.Policy(domain), relative=0.05, records=records)
