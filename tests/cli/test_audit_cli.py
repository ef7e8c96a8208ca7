"""The command audit: exit status, JSON, what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module

import pytest

import policygraph as pg
from policygraph.cli.app import run
from policygraph.mechanisms import choose
from policygraph.mechanisms.constrained import mechanism as kernel

DOMAIN = pg.Domain({"sex": ["F", "M"], "age": 2})
POLICY = pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")])


@pytest.fixture
def policy_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "margins.toml").write_text(
        '[domain]\nsex = ["F", "M"]\nage = 2\n\n[[public]]\ncuboid = ["sex"]\n\n[[public]]\ncuboid = ["age"]\n\n'
        '[[release]]\ncuboid = ["sex", "age"]\n'
    )
    return "margins.toml"


@pytest.fixture
def broken(monkeypatch):
    """Noise for a quarter of the sensitivity, as a mistake in the engine would make it."""
    exact = kernel.certified

    def quarter(*arguments):
        proof = exact(*arguments)
        return replace(proof, power=proof.power / 4, lower_power=proof.lower_power / 4)

    monkeypatch.setattr(kernel, "certified", quarter)


def test_a_policy_file_is_read_and_audited(tmp_path, capsys):
    path = tmp_path / "margins.toml"
    path.write_text(
        '[domain]\nsex = ["F", "M"]\nage = 3\n\n[[public]]\ncuboid = ["sex"]\n\n[[release]]\ncuboid = ["sex", "age"]\n'
    )
    assert run(["audit", str(path), "--samples", "400"]) == 0
    assert "8 pairs of neighbours" in capsys.readouterr().out


def test_a_sound_release_passes_with_status_0(policy_file, capsys):
    assert run(["audit", policy_file, "--samples", "2000", "--seed", "1"]) == 0
    assert capsys.readouterr().out.startswith("passed: no event refutes epsilon = 1;")


def test_what_is_audited_is_what_a_release_would_use(policy_file, monkeypatch):
    """Both margins are public, so that a release measures the one number that is free."""
    seen = []

    def spy(ready, **options):
        seen.append(ready)
        return real(ready, **options)

    package = import_module("policygraph.audit")  # pg.audit is the function
    real = package.audit
    monkeypatch.setattr(package, "audit", spy)
    assert run(["audit", policy_file, "--samples", "400", "--seed", "1"]) == 0
    [ready] = seen
    assert ready.parameter == 1
    assert (
        type(ready) is type(choose(pg.queries.identity(DOMAIN), POLICY, pg.Epsilon(1))) is kernel.KernelNoise
    )


def test_leaks_are_told_with_labels(policy_file, broken, capsys):
    assert run(["audit", policy_file, "--samples", "4000", "--seed", "1"]) == 4
    said = capsys.readouterr().out
    assert said.startswith("LEAK: epsilon >= ")
    assert "(sex=F, age=0): " in said


def test_a_leak_has_a_status_of_its_own(policy_file, broken, capsys):
    assert run(["audit", policy_file, "--samples", "4000", "--seed", "1", "--json"]) == 4
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] is False
    assert report["claim"] == {"kind": "epsilon", "value": "1"}
    assert report["lower_bound"] > 1
    assert report["findings"][0]["pair"]["origin"]


@pytest.mark.parametrize(
    ("options", "claim"),
    [
        (["--rho", "1/2"], {"kind": "rho", "value": "1/2"}),
        (["--epsilon", "1/2", "--confidence", "0.99"], {"kind": "epsilon", "value": "1/2"}),
    ],
)
def test_losses_are_read(policy_file, capsys, options, claim):
    assert run(["audit", policy_file, "--samples", "400", "--pairs", "2", "--json", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["claim"] == claim
    assert report["pairs"] == 2


@pytest.mark.parametrize(
    "options",
    [["--samples", "3"], ["--confidence", "2"], ["--epsilon", "0"], ["--rho", "1", "--epsilon", "1"]],
)
def test_bad_options_are_status_2_with_a_reason(policy_file, capsys, options):
    assert run(["audit", policy_file, *options]) == 2
    assert "expected" in capsys.readouterr().err
