"""Certificates: they serialise, they are checked by another path, and a wrong one is caught."""

import dataclasses
import json
from fractions import Fraction

import pytest

import policygraph as pg
from policygraph.sensitivity.certificate import Sensitivity, Witness


def margins(*sizes, facts="A B", **options):
    domain = pg.Domain({"ABCD"[i]: n for i, n in enumerate(sizes)})
    return pg.Policy(domain, constraints=[pg.Cuboid(*word) for word in facts.split()], **options)


def line(n, facts=()):
    domain = pg.Domain({"x": n})
    return pg.Policy(domain, graph=pg.PolicyGraph.line(domain), constraints=list(facts))


POLICIES = {
    "edges": line(4),
    "bottom": pg.Policy(pg.Domain({"x": 3}), graph=pg.PolicyGraph.full(pg.Domain({"x": 3})).with_bottom()),
    "single": pg.Policy(pg.Domain({"x": 3})),
    "margins": margins(3, 3),
    "markov": margins(3, 3, strength="markov"),
    "positive": margins(3, 3, strength="positive"),
    "capped": margins(3, 3, at_most_records=2),
    "values": pg.Policy(
        pg.Domain({"a": 2, "b": 2}),
        constraints=[pg.Cuboid("a", equals=[2, 1]), pg.Cuboid("b", equals=[1, 2])],
    ),
    "zeros": pg.Policy(
        pg.Domain({"a": 2, "b": 3}), constraints=[pg.Cuboid("a"), pg.Cuboid("b"), pg.StructuralZero([(0, 0)])]
    ),
    "count": pg.Policy(
        pg.Domain({"a": 4}), constraints=[pg.LinearCount([({"a": [0, 1]}, 1), ({"a": 2}, 2)])]
    ),
    "cells": pg.Policy(pg.Domain({"a": 3, "b": 2}), constraints=[pg.Cells(["a"], [0]), pg.Total()]),
    "blowfish": line(4, [pg.count({"x": [0, 1]})]),
    "degrees": pg.Policy(pg.Network(5), constraints=[pg.Degrees([0, 1, 2])]),
    "directed": pg.Policy(
        pg.Network(["a", "b", "c"], directed=True), constraints=[pg.Degrees(["a"], side="in")]
    ),
    "determined": margins(2, 2, facts="AB"),
}
CASES = [(name, norm) for name in POLICIES for norm in ("l1", "l2")]


@pytest.mark.parametrize(("name", "norm"), CASES)
def test_round_trip_and_independent_check(name, norm):
    policy = POLICIES[name]
    made = pg.sensitivity(pg.queries.identity(policy.domain), policy, norm=norm)
    again = Sensitivity.from_json(made.to_json())
    assert again == made
    assert again.to_dict() == made.to_dict()
    report = again.verify()
    assert not report.failed, str(report)
    assert [c.passed for c in report.checks if c.name != "bound"] == [True] * (len(report.checks) - 1), str(
        report
    )
    for key in ("value", "kind", "lower", "norm", "definition", "method", "witness"):
        assert key in made.to_dict()
    assert str(made).startswith("sensitivity =")


@pytest.mark.parametrize("name", [n for n in POLICIES if n != "determined"])
def test_the_witness_is_a_pair_of_neighbours_by_definition(name):
    policy = POLICIES[name]
    made = pg.sensitivity(pg.queries.identity(policy.domain), policy)
    answer = policy.are_neighbours(made.table("before"), made.table("after"))
    assert answer, answer.reason


def test_a_value_that_is_too_small_is_caught():
    policy = margins(3, 3)
    made = pg.sensitivity(pg.queries.identity(policy.domain), policy)
    small = dataclasses.replace(
        made,
        power=Fraction(4),
        lower_power=Fraction(4),
        witness=Witness.of_change({0: 1, 1: -1, 3: -1, 4: 1}),
    )
    assert not small.verify().ok
    assert "largest change is 6, claimed 4" in str(small.verify())


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        ({0: 1, 1: -1}, "public facts"),
        ({0: 1, 1: -1, 3: -1, 4: 1, 2: 1, 5: -1, 8: 1, 7: -1}, "public facts"),
        ({0: 2, 1: -2, 3: -2, 4: 2}, "neighbours"),
        ({0: 1, 1: -1, 3: -1, 4: 1}, "attained"),
    ],
)
def test_a_wrong_witness_is_caught(change, fails):
    policy = margins(3, 3)
    made = pg.sensitivity(pg.queries.identity(policy.domain), policy)
    wrong = dataclasses.replace(made, witness=Witness.of_change(change))
    failed = [check.name for check in wrong.verify().checks if check.passed is False]
    assert fails in failed


def test_a_pair_that_is_no_edge_is_caught():
    policy = line(4)
    made = pg.sensitivity(pg.queries.identity(policy.domain), policy)
    wrong = dataclasses.replace(made, witness=Witness.of_change({0: -1, 3: 1}))
    assert [c.name for c in wrong.verify().checks if c.passed is False] == ["neighbours"]


def test_garbled_certificates_are_errors():
    policy = margins(2, 2)
    made = pg.sensitivity(pg.queries.identity(policy.domain), policy).to_dict()
    for spoil in (
        lambda d: d.pop("witness"),
        lambda d: d.update(format=99),
        lambda d: d.update(policy_fingerprint="00"),
        lambda d: d["policy"]["domain"].update(A=3),
        lambda d: d["exact_value"].update(lower="9"),
        lambda d: d.update(kind="guess"),
    ):
        data = json.loads(json.dumps(made))
        spoil(data)
        with pytest.raises(pg.InputError):
            Sensitivity.from_dict(data)
    with pytest.raises(pg.InputError):
        Sensitivity.from_json("{")


def test_a_mechanism_refuses_a_certificate_made_for_something_else():
    policy = margins(2, 2)
    query = pg.queries.identity(policy.domain)
    other = pg.sensitivity(query, pg.Policy(policy.domain))
    with pytest.raises(pg.InputError, match="another query or policy"):
        pg.Laplace().calibrate(query, policy, pg.Epsilon(1), other)
    with pytest.raises(pg.InputError, match="l2"):
        pg.Laplace().calibrate(query, policy, pg.Epsilon(1), pg.sensitivity(query, policy, norm="l2"))
    with pytest.raises(pg.InputError, match="never a bare number"):
        pg.Laplace().calibrate(query, policy, pg.Epsilon(1), 4.0)
    with pytest.raises(pg.InputError):
        pg.Laplace().calibrate(query, policy, pg.Rho(1))
    with pytest.raises(pg.InputError):
        pg.Gaussian().calibrate(query, policy, pg.Epsilon(1))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("value", 1),
        ("lower", 1),
        ("definition", "other"),
        ("method", {"x": [1]}),
        ("reason", 3),
        ("strength", "markov"),
        ("neighbours", "edges"),
        ("norm", "l2"),
        ("norm", "l9"),
        ("at_most_records", 7),
    ],
)
def test_a_changed_headline_is_caught(key, text):
    policy = margins(2, 2)
    data = pg.sensitivity(pg.queries.identity(policy.domain), policy).to_dict()
    data[key] = text
    with pytest.raises(pg.InputError):
        Sensitivity.from_dict(data)


def test_a_witness_whose_labels_and_indices_disagree_is_caught():
    policy = margins(2, 2)
    data = pg.sensitivity(pg.queries.identity(policy.domain), policy).to_dict()
    data["witness"]["before"][0]["index"] += 1
    with pytest.raises(pg.InputError):
        Sensitivity.from_dict(data)


def test_a_certificate_is_for_one_order_of_the_attributes() -> None:
    """Rows over the cells count other records when the cells are numbered in another order."""
    made = {}
    for names in (("age", "sex"), ("sex", "age")):
        domain = pg.Domain(dict.fromkeys(names, 2))
        query, policy = (
            pg.queries.matrix(domain, [[1, 1, 0, 0]]),
            pg.Policy(domain, pg.PolicyGraph.full(domain, "age")),
        )
        made[names[0]] = query, policy, pg.sensitivity(query, policy)
    (by_age, protected, proof), (by_sex, _, nothing) = made["age"], made["sex"]
    assert (proof.value, nothing.value) == (1, 0)
    assert by_age != by_sex
    with pytest.raises(pg.InputError) as caught:
        pg.Laplace().calibrate(by_age, protected, pg.Epsilon(1), nothing)
    assert caught.value.code == "sensitivity.foreign"
