"""Budgets of teams on the command line: accounts, reservations, forecasts, alerts, exports."""

from __future__ import annotations

import csv
import io
import json

import pytest

from policygraph.cli.app import run
from policygraph.curator.ledger.exports import _parameters
from policygraph.model.loss import EpsilonDelta

POLICY = "[domain]\nage = 5\n"
FIELDS = {
    "basic": {"name", "data_curators", "intended_use", "data_product_type", "data_product_region", "description", "publication_date"},
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"},
    "deployment_model": {"model_name", "release_type", "access_type"},
    "accounting": {"composition"},
    "implementation": {"mechanisms"},
    "administrative": {"registry_authors"},
}  # fmt: skip
"""Fields of schemas/deployments-schema.yaml (opendp/deployments-registry-data, July 2026) that a ledger can fill."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "people.csv").write_text("age\n1\n2\n3\n3\n")
    return tmp_path


@pytest.fixture
def call(capsys):
    def calling(*words):
        status = run([str(word) for word in words])
        told = capsys.readouterr()
        return status, told.out, told.err

    return calling


def release(call, *more, epsilon="1/2", dataset="people/research", out="out"):
    return call(
        "release", "policy.toml", "--data", "people.csv", "--dataset", dataset, "--epsilon", epsilon, "--ledger", "b.db",
        "--out", out, *more,
    )  # fmt: skip


def test_a_team_spends_its_share(place, call):
    assert call("budget", "set", "b.db", "people", "--epsilon", "2", "--until", "2099-12-31")[0] == 0
    assert call("budget", "open", "b.db", "people/research", "--epsilon", "1")[1] == (
        "people/research: limit epsilon = 1, spent nothing, left epsilon = 1\n"
    )
    status, out, _ = call(
        "budget", "reserve", "b.db", "people/research", "--epsilon", "3/4", "--purpose", "paper", "--json"
    )
    assert (status, json.loads(out)["reservation"]["number"]) == (0, 1)
    status, _, err = release(call)
    assert (status, "reserved is epsilon = 0.75" in err) == (3, True)
    assert release(call, "--reservation", "1", "--purpose", "paper", "--label", "a", "--label", "b")[0] == 0
    assert release(call, "--reservation", "1", epsilon="1/3", out="out2")[0] == 3
    assert "nothing was spent" in release(call)[1], "the same request again, whatever it is for"
    told = call("budget", "show", "b.db")[1].splitlines()
    assert told == [
        "people: limit epsilon = 2 until 2099-12-31, spent epsilon = 0.5, reserved epsilon = 0.25, left epsilon = 1.25",
        "people/research: limit epsilon = 1, spent epsilon = 0.5, reserved epsilon = 0.25, left epsilon = 0.25",
    ]
    (entry,) = [
        e
        for e in json.loads(call("budget", "history", "b.db", "--json")[1])["entries"]
        if e["what"] == "charge"
    ]
    assert (entry["purpose"], entry["labels"], entry["reservation"]) == ("paper", ["a", "b"], 1)
    assert "paper  a, b  from reservation 1" in call("budget", "history", "b.db")[1]
    assert "left epsilon = 0.25" in call("budget", "reservations", "b.db")[1]
    assert call("budget", "free", "b.db", "1") == (0, "reservation 1: given back\n", "")
    assert call("budget", "free", "b.db", "1")[0] == 2
    assert call("budget", "join", "b.db", "people", "acme") == (
        0,
        "acme: no limit, spent epsilon = 0.5\n",
        "",
    )
    assert "inside acme" in call("budget", "show", "b.db")[1]
    assert release(call, dataset="people/reserch", epsilon="1/9", out="out3")[0] == 2
    for words in (
        ("open", "b.db", "people"),
        ("open", "b.db", "people/x", "--until", "2099-01-01"),
        ("join", "b.db", "acme", "people"),
    ):
        assert call("budget", *words)[0] == 2


def test_forecasts_and_alerts(place, call):
    call("budget", "set", "b.db", "people", "--epsilon", "1")
    assert call("budget", "check", "b.db", "--below", "20%") == (0, "nothing to report\n", "")
    assert release(call, dataset="people", epsilon="0.9")[0] == 0
    status, out, _ = call("budget", "check", "b.db", "--below", "20%", "--json")
    assert (status, json.loads(out)["alerts"][0]["code"]) == (5, "low")
    assert call("budget", "check", "b.db", "--below", "0.05") == (0, "nothing to report\n", "")
    assert call("budget", "check", "b.db", "--below", "200%")[0] == 2
    (ahead,) = json.loads(call("budget", "forecast", "b.db", "--on", "2099-01-01", "--json")[1])["forecasts"]
    assert ahead["used"] == "9/10"
    assert "90 % of the budget is spent" in call("budget", "forecast", "b.db", "--dataset", "people")[1]


def test_exports_are_a_table_and_a_record_of_the_registry(place, call):
    call("budget", "set", "b.db", "people", "--epsilon", "1")
    assert call("budget", "export", "b.db", "--format", "opendp", "--dataset", "people")[0] == 2
    release(call, "--purpose", "=cmd()", dataset="people", epsilon="1/3")
    rows = list(csv.DictReader(io.StringIO(call("budget", "export", "b.db", "--format", "csv")[1])))
    assert [(row["what"], row["value"], row["purpose"]) for row in rows] == [
        ("limit", "1", ""),
        ("charge", "1/3", "'=cmd()"),
    ]
    yaml = pytest.importorskip("yaml")
    told = call(
        "budget", "export", "b.db", "--format", "opendp", "--dataset", "people", "--curator", 'A "B": c\n'
    )[1]
    record = yaml.safe_load(told)
    assert {"url_slug", "status", "tier", "deployment"} == set(record)
    assert {key: set(below) for key, below in record["deployment"].items()} == FIELDS
    assert record["deployment"]["basic"]["data_curators"] == ['A "B": c\n']
    loss = record["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 0.333333333334}
    assert record["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
    assert call("budget", "export", "b.db", "--format", "xml")[0] == 2
    assert call("budget", "export", "b.db", "--format", "opendp")[0] == 2


def test_a_policy_that_is_no_ordinary_privacy_is_registered_as_custom(place, call):
    (place / "policy.toml").write_text(POLICY + "[neighbours]\ngraph = {threshold = 2}\n")
    assert release(call, dataset="people")[0] == 0
    told = call("budget", "export", "b.db", "--format", "opendp", "--dataset", "people")[1]
    assert 'variant_name: "Custom"' in told
    assert "differ by at most 2" in told


def test_families_are_registered_as_what_they_are(place, call):
    (place / "policy.toml").write_text(POLICY + "[unit]\nfamily = 3\n")
    assert release(call, dataset="people")[0] == 0
    told = call("budget", "export", "b.db", "--format", "opendp", "--dataset", "people")[1]
    assert 'variant_name: "Custom"' in told
    assert "Families of up to 3 records that change together: One record more or less." in told


def test_a_limit_with_a_delta_is_exported_with_it(place, call):
    call("budget", "set", "b.db", "people", "--epsilon", "2", "--delta", "1e-6")
    release(call, dataset="people", epsilon="1/2")
    [limit, charge] = csv.DictReader(io.StringIO(call("budget", "export", "b.db", "--format", "csv")[1]))
    assert (limit["value"], limit["delta"], charge["delta"]) == ("2", "1/1000000", "")
    assert _parameters(EpsilonDelta("1/3", "1/3")) == {"epsilon": 0.333333333334, "delta": 0.333333333334}


def test_what_is_set_is_told_as_it_will_be_held_to(place, call):
    words = ("budget", "set", "b.db")
    assert (
        call(*words, "people", "--epsilon", "1")[1]
        == "people: limit epsilon = 1, for releases with --dataset people\n"
    )
    assert (
        "limit epsilon = 1 until 2999-12-31,"
        in call(*words, "people", "--epsilon", "1", "--until", "2999-12-31")[1]
    )
    assert (
        "limit epsilon = 1 that ended on 2020-12-31,"
        in call(*words, "people", "--epsilon", "1", "--until", "2020-12-31")[1]
    )
    assert (
        "for at most 24 charges"
        in call(*words, "people", "--epsilon", "2", "--delta", "1e-6", "--each", "0.1")[1]
    )
    call("budget", "join", "b.db", "people", "acme")
    assert call(*words, "acme", "--epsilon", "3")[1] == "acme: limit epsilon = 3\n", (
        "nobody releases with a group"
    )


def test_many_charges_of_one_size(place, call):
    status, out, _ = call(
        "budget", "set", "b.db", "people", "--epsilon", "2", "--delta", "1e-6", "--each", "0.1", "--json"
    )
    assert (status, json.loads(out)["dataset"]["most"]) == (0, 24)
    assert "for at most 24 charges of at most epsilon = 0.1" in call("budget", "show", "b.db")[1]
    assert call("budget", "set", "b.db", "people", "--epsilon", "2", "--each", "0.1")[0] == 2


def test_many_charges_and_a_few_larger_ones(place, call):
    words = ("budget", "set", "b.db", "people", "--epsilon", "1", "--delta", "1e-6")
    status, out, _ = call(*words, "--each", "0.01", "--larger", "2x0.1", "--larger", "1x1/8", "--json")
    account = json.loads(out)["dataset"]
    assert (status, account["most"], account["larger"]) == (0, 335, [["1/8", 1], ["1/10", 2]])
    shown = call("budget", "show", "b.db")[1]
    assert "335 charges of at most epsilon = 0.01 and 1 of at most epsilon = 0.125 and 2 of at most" in shown
    for wrong in ("0.1", "x0.1", "2x", "-1x0.1", "2x0.001", "9999x0.1", "0x0.1", "60x0.1"):
        status, _, err = call(*words, "--each", "0.01", "--larger", wrong)
        assert (status, "Traceback" in err) == (2, False), wrong
    assert call(*words, "--each", "0.01", "--larger", "1x0.1", "--larger", "2x1/10")[0] == 2
    assert call(*words, "--larger", "2x0.1")[0] == 2
