"""Comparisons and the automatic choice: figures are those of the mechanisms, data are looked at only when they are given."""

from __future__ import annotations

import json

import numpy as np
import pytest

import policygraph as pg
from policygraph.cli.app import run
from policygraph.compare import PUBLIC_ONLY, standard_methods
from policygraph.errors import DataError, InputError, RefusedError
from policygraph.mechanisms.auto import choose
from policygraph.ties import digits

AGES = pg.Domain({"age": 64})
LINE = pg.Policy(AGES, pg.PolicyGraph.line(AGES))
COUNTS = np.random.default_rng(1).poisson(20, 64)
FILE = """
[domain]
age = 16

[neighbours]
graph = {threshold = 1, attribute = "age"}

[[release]]
cuboid = ["age"]
"""


def test_expected_errors_are_those_of_the_mechanisms_and_the_best_comes_first():
    query = pg.queries.random_boxes(AGES, 40, seed=2)
    found = pg.compare(query, LINE, pg.Epsilon("1/2"))
    known = [m.expected for m in found.methods if m.expected is not None]
    assert known == sorted(known)
    for name, mechanism in standard_methods(query, LINE, pg.Epsilon("1/2")).items():
        method = found[name]
        assert method.applies
        if method.expected is not None:
            ready = mechanism.calibrate(query, LINE, pg.Epsilon("1/2"))
            errors = np.broadcast_to(np.square(ready.deviation(0)), (40,))
            assert method.expected == pytest.approx(errors.mean())
    assert found["edges, consistent"].expected is None
    assert found["partition"].expected is None
    assert found.best.expected == pytest.approx(found["auto"].expected)
    assert found.runs == 0
    assert PUBLIC_ONLY not in str(found)


def test_measured_errors_agree_with_expected_ones_and_carry_a_warning(tmp_path):
    query = pg.queries.cuboids(AGES, [["age"], []], weights=[2, 1])
    names = ["every answer", "edges", "tree", "edges, consistent"]
    found = pg.compare(query, LINE, pg.Epsilon("1/2"), names, COUNTS, runs=60)
    for method in found.methods:
        assert method.measured is not None
        assert method.spread is not None
        if method.expected is not None:
            assert abs(method.measured - method.expected) < 6 * method.spread
    assert [m.measured for m in found.methods] == sorted(m.measured for m in found.methods)
    assert str(found).startswith("PUBLIC OR SIMULATED DATA ONLY")
    assert found.to_dict()["warning"] == PUBLIC_ONLY
    assert json.loads(json.dumps(found.to_dict()))["best"] == found.best.name
    table = found.table()
    assert table.column("name").to_pylist() == [m.name for m in found.methods]
    found.plot(tmp_path / "errors.png")
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")
    again = pg.compare(query, LINE, pg.Epsilon("1/2"), names, COUNTS, runs=60)
    assert [m.measured for m in again.methods] == [m.measured for m in found.methods]


def test_methods_that_do_not_apply_come_last_and_say_why():
    domain = pg.Domain({"a": 2, "b": 3})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    found = pg.compare(pg.queries.identity(domain), policy, pg.Epsilon(1))
    assert found.best.name == "free numbers"
    assert [m.applies for m in found.methods] == sorted((m.applies for m in found.methods), reverse=True)
    assert "public facts" in found["edges"].note
    with pytest.raises(RefusedError, match="none of the methods applies"):
        pg.compare(pg.queries.identity(domain), policy, pg.Epsilon(1), ["edges"])


def test_given_mechanisms_are_compared_by_their_names():
    mine = {"mine": pg.Laplace(), "two": pg.MatrixMechanism("tree", over="cells", branching=2)}
    found = pg.compare(pg.queries.all_ranges(AGES), pg.Policy(AGES), pg.Epsilon(1), mine)
    assert [m.name for m in found.methods] == ["two", "mine"]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"methods": ["best"]}, "compare.method"),
        ({"methods": {"x": "Laplace"}}, "compare.method"),
        ({"methods": []}, "compare.method"),
        ({"runs": 0}, "compare.runs"),
        ({"runs": True}, "compare.runs"),
        ({"data": [1, 2]}, "counts.size"),
        ({"data": [0.5] * AGES.size}, "counts.value"),
        ({"data": "nowhere.csv"}, "data.no-file"),
        ({"epsilon": 1}, "release.loss"),
    ],
)
def test_what_cannot_be_compared_is_an_error(given, code):
    with pytest.raises((InputError, DataError)) as caught:
        pg.compare(pg.queries.identity(AGES), LINE, pg.Epsilon(1), **given)
    assert caught.value.code == code
    with pytest.raises(InputError):
        pg.compare(pg.queries.identity(AGES), LINE, pg.Epsilon(1), ["edges"])["tree"]


def test_a_loss_is_a_number_or_an_object_and_never_a_guess():
    query = pg.queries.identity(AGES)
    by_number = pg.compare(query, LINE, epsilon="1/2", methods=["edges"])
    assert by_number.loss == pg.Epsilon("1/2")
    assert by_number["edges"].expected == pg.compare(query, LINE, pg.Epsilon("1/2"), ["edges"]).best.expected
    assert pg.compare(query, LINE, epsilon=1, delta="1e-6", methods=["edges"]).loss.norm == "l2"
    for wrong in (
        (query, LINE, 0.1),
        (query, LINE),
        (LINE, query, pg.Epsilon(1)),
        (query, AGES, pg.Epsilon(1)),
    ):
        with pytest.raises(InputError) as caught:
            pg.compare(*wrong)
        assert caught.value.code in ("release.loss", "release.arguments")


def test_progress_names_each_method():
    said = []
    pg.compare(pg.queries.identity(AGES), LINE, epsilon=1, methods=["edges", "cells"], progress=said.append)
    assert said == ["edges (1 of 2)", "cells (2 of 2)"]


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: pg.TransformedLaplace(route="tree"), "mechanism.route"),
        (lambda: pg.TransformedConsistent(totals="yes"), "reduction.totals"),
        (lambda: pg.Transformed("Laplace"), "release.mechanism"),
        (lambda: pg.Partitioned([[0, 1]]), "partition.partitioner"),
        (lambda: pg.Partitioned(then="consistent"), "release.mechanism"),
        (lambda: pg.MatrixMechanism("tree", over="edge"), "strategy.over"),
        (lambda: pg.MatrixMechanism("tree", branching="2"), "strategy.setting"),
        (lambda: pg.MatrixMechanism("tree", branching=1), "strategy.setting"),
        (lambda: pg.MatrixMechanism(evaluations=0), "strategy.setting"),
        (
            lambda: pg.release(pg.queries.identity(AGES), LINE, COUNTS, epsilon=1, mechanism=pg.Laplace),
            "release.mechanism",
        ),
    ],
)
def test_settings_are_checked_when_a_mechanism_is_built(make, code):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.code == code


def test_facts_that_every_edge_keeps_cost_no_accuracy():
    query = pg.queries.identity(AGES)
    known = pg.Policy(AGES, pg.PolicyGraph.line(AGES), constraints=[pg.Total()])
    auto, plain = (pg.compare(query, policy, epsilon=1, methods=["auto"]).best for policy in (known, LINE))
    assert auto.expected == plain.expected
    made = pg.release(query, known, COUNTS, epsilon=1, source=pg.SeededRng(2))
    assert int(made.values().sum()) == int(np.sum(COUNTS))


GRAPHS = {
    "none": lambda d: None,
    "line": pg.PolicyGraph.line,
    "threshold": lambda d: pg.PolicyGraph.threshold(d, 4),
    "full": pg.PolicyGraph.full,
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    "make", [pg.queries.identity, pg.queries.all_ranges, pg.queries.prefix], ids=["cells", "ranges", "prefix"]
)
@pytest.mark.parametrize("loss", [pg.Epsilon("1/10"), pg.Rho("1/100")], ids=str)
def test_the_choice_has_the_least_expected_error_and_says_the_figures(name, make, loss):
    domain = pg.Domain({"x": 24})
    policy, query = pg.Policy(domain, GRAPHS[name](domain)), make(domain)
    ready = choose(query, policy, loss)
    plain = (pg.Laplace() if isinstance(loss, pg.Epsilon) else pg.Gaussian()).calibrate(query, policy, loss)
    rivals = [plain]
    if name != "none":
        edges = pg.TransformedLaplace() if isinstance(loss, pg.Epsilon) else pg.TransformedGaussian()
        rivals.append(edges.calibrate(query, policy, loss))
    least = min(rival.total_error for rival in rivals)
    assert ready.total_error <= least / 0.99
    if name != "none" or make is not pg.queries.identity:
        said = ready.why
        assert said.startswith("Chosen by the expected sum of squared errors, without looking at the data")
        for rival in rivals:
            assert digits(rival.total_error) in said
    else:
        assert ready.mechanism == "Laplace" if isinstance(loss, pg.Epsilon) else "Gaussian"
    again = choose(query, policy, loss)
    assert (again.mechanism, again.noise.parameter) == (ready.mechanism, ready.noise.parameter)


def test_ranges_without_a_policy_graph_are_answered_from_a_strategy():
    domain = pg.Domain({"x": 200})
    query = pg.queries.random_boxes(domain, 100, seed=3)
    ready = choose(query, pg.Policy(domain), pg.Epsilon(1))
    assert ready.mechanism.startswith("MatrixMechanism")
    plain = pg.Laplace().calibrate(query, pg.Policy(domain), pg.Epsilon(1))
    assert ready.total_error < plain.total_error / 10


def test_the_choice_is_the_same_for_all_data():
    first, second = (
        pg.release(pg.queries.identity(AGES), LINE, x, epsilon=1, mechanism="auto", source=pg.SeededRng(1))
        for x in (COUNTS, np.zeros(64, dtype=np.int64))
    )
    assert first.record["stages"] == second.record["stages"]
    assert first.record["mechanism"] == "TransformedLaplace(totals exact)"
    errors = [
        pg.expected_error(pg.queries.identity(AGES), LINE, epsilon=1, mechanism=which)["age"]
        for which in ("auto", None)
    ]
    assert errors[0] == errors[1]
    with pytest.raises(InputError) as caught:
        pg.release(pg.queries.identity(AGES), LINE, COUNTS, epsilon=1, mechanism="best")
    assert caught.value.code == "release.mechanism"


def test_an_answer_that_no_move_changes_is_released_as_it_is():
    ready = choose(pg.queries.total(AGES), LINE, pg.Epsilon(1))
    assert ready.noise.distribution == "none"


@pytest.fixture
def policy_file(tmp_path):
    path = tmp_path / "ages.toml"
    path.write_text(FILE)
    return str(path)


def test_the_command_reads_no_data_unless_they_are_given(policy_file, capsys, tmp_path):
    assert run(["compare", policy_file, "--epsilon", "0.5"]) == 0
    shown = capsys.readouterr()
    assert "edges" in shown.out
    assert "PUBLIC" not in shown.out + shown.err
    people = tmp_path / "people.csv"
    people.write_text("age\n" + "\n".join(str(k % 16) for k in range(99)) + "\n")
    picture = tmp_path / "errors.svg"
    options = ["--rho", "0.1", "--data", str(people), "--runs", "2", "--plot", str(picture), "--json"]
    assert run(["compare", policy_file, *options]) == 0
    shown = capsys.readouterr()
    assert PUBLIC_ONLY in shown.err
    made = json.loads(shown.out)
    assert made["runs"] == 2
    assert made["warning"] == PUBLIC_ONLY
    assert made["plot"] == str(picture)
    assert picture.stat().st_size > 1000
    assert all(m["measured"] is not None for m in made["methods"] if m["applies"])
    assert run(["compare", policy_file, "--plot", str(tmp_path / "errors.nothing")]) == 2


def test_domains_of_which_no_vector_fits_are_refused_before_one_is_made():
    huge = pg.Domain({"x": 10**12})
    line = pg.Policy(huge, pg.PolicyGraph.line(huge))
    for mechanism in (pg.TransformedLaplace(), pg.TransformedConsistent(), pg.Partitioned()):
        with pytest.raises(RefusedError) as caught:
            mechanism.calibrate(pg.queries.identity(huge), line, pg.Epsilon(1))
        assert caught.value.code == "reduction.cells"


def test_the_command_releases_by_the_names_of_a_comparison(tmp_path, capsys):
    policy = tmp_path / "policy.toml"
    policy.write_text(FILE)
    data = tmp_path / "data.csv"
    data.write_text("age\n" + "3\n" * 40)
    asked = ["release", str(policy), "--data", str(data), "--epsilon", "1", "--seed", "1"]
    assert run([*asked, "--out", str(tmp_path / "out"), "--mechanism", "edges, consistent"]) == 0
    made = json.loads((tmp_path / "out" / "release.json").read_text())
    assert made["mechanism"].startswith("TransformedConsistent")
    capsys.readouterr()
    assert run([*asked, "--out", str(tmp_path / "other"), "--mechanism", "edge"]) == 2
    assert "Did you mean 'edges'?" in capsys.readouterr().err
