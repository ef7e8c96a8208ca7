"""Certificates of the policies in the repository carry proofs that the checker accepts; releases can require them."""

import json
from pathlib import Path

import pytest

import policygraph as pg
from policygraph.check import check_text
from policygraph.cli.app import run
from policygraph.cli.common import one_query
from policygraph.mechanisms.additive import Additive
from tests.paths import ROOT

POLICIES = sorted((ROOT / "policies").glob("*.toml"))


@pytest.mark.parametrize("file", POLICIES, ids=lambda path: path.stem)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_every_policy_of_the_repository_has_a_complete_certificate(file: Path, norm: str) -> None:
    read, query = one_query(str(file))
    certificate = pg.sensitivity(query, read.policy, norm=norm)
    report = check_text(certificate.to_json())
    assert report["holds"], report
    assert report["complete"]
    assert certificate.verify().ok


def test_the_commands_name_the_kind_of_proof_and_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = str(ROOT / "policies" / "census-margins.toml"), tmp_path / "certificate.json"
    assert run(["sensitivity", file, "--json", "--out", str(out)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["proof"], shown["value"]) == ("theorem", 4)
    assert isinstance(shown["effort"], int)
    assert json.loads(out.read_text())["proof"] == {"kind": "theorem", "theorem": "two-margins"}
    assert run(["verify", str(out), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["holds"], report["complete"]) == (True, True)
    assert {one["name"] for one in report["checks"]} >= {
        "document",
        "tables",
        "neighbours",
        "attained",
        "bound",
    }
    # what is printed instead of written names the kind only, and is checked all the same
    out.write_text(json.dumps({key: value for key, value in shown.items() if key != "effort"}))
    assert check_text(out.read_text())["holds"]
    assert run(["verify", str(out)]) == 0


def test_a_release_can_require_a_proof(tmp_path: Path) -> None:
    domain = pg.Domain({"a": 2, "b": 2, "c": 2})
    facts = [pg.Cuboid("a"), pg.Cuboid("b"), pg.Cuboid("c")]
    query, counts = pg.queries.identity(domain), [3, 1, 4, 1, 5, 9, 2, 6]
    ledger = tmp_path / "ledger.db"
    noise = pg.Laplace()
    common = {"epsilon": 1, "ledger": str(ledger), "dataset": "town", "mechanism": noise}
    policy = pg.Policy(domain, constraints=facts)
    made = pg.release(query, policy, counts, require_proof=True, **common)
    assert made.certificate.proved
    assert (
        pg.release(query, policy, counts, require_proof=True, **common).values().tolist()
        == made.values().tolist()
    )
    # less than the worst case, because of published values that the checker does not use
    square = pg.Domain({"a": 3, "b": 3})
    valued = [pg.Cuboid("a", equals=[1, 0, 1]), pg.Cuboid("b", equals=[1, 1, 0])]
    asked, few = pg.queries.identity(square), [1, 0, 0, 0, 0, 0, 0, 1, 0]
    with pytest.raises(pg.RefusedError, match="Nothing was charged") as refused:
        pg.release(asked, pg.Policy(square, constraints=valued), few, require_proof=True, **common)
    assert refused.value.code == "release.proof"
    assert len(pg.Ledger(ledger).history("town")) == 1


def test_a_release_on_record_is_held_to_the_same_proof(tmp_path: Path) -> None:
    """Its record may hold a certificate of the query alone, which is proved, while the noise rests on something else."""
    domain = pg.Domain({"x": 4})
    policy, query, counts = (
        pg.Policy(domain, pg.PolicyGraph.line(domain)),
        pg.queries.identity(domain),
        [3, 1, 2, 5],
    )
    common = {
        "epsilon": 1,
        "ledger": str(tmp_path / "ledger.db"),
        "dataset": "town",
        "mechanism": pg.TransformedLaplace(),
    }
    made = pg.release(query, policy, counts, **common)
    assert made.certificate.proved
    with pytest.raises(pg.RefusedError, match="no certificate") as refused:
        pg.release(query, policy, counts, require_proof=True, **common)
    assert refused.value.code == "release.proof"
    assert pg.release(query, policy, counts, **common).values().tolist() == made.values().tolist()


class Borrowed(Additive):
    """A mechanism of others, scaled to whatever certificate it was given."""


def test_a_proof_of_something_else_is_none() -> None:
    domain = pg.Domain({"a": 3, "b": 3})
    query, loss = pg.queries.identity(domain), pg.Epsilon(1)
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    common = {"epsilon": 1, "require_proof": True}
    for other, right in ((pg.Policy(domain), False), (policy, True)):
        ready = Borrowed("borrowed", query, policy, loss, pg.sensitivity(query, other))
        assert ready.sensitivity.proved
        if right:
            assert (
                pg.release(query, policy, [1] * 9, mechanism=ready, **common).record["noise"]["parameter"]
                == "6"
            )
            continue
        with pytest.raises(pg.RefusedError) as refused:
            pg.release(query, policy, [1] * 9, mechanism=ready, **common)
        assert refused.value.code == "release.proof"
    # The certificate is of the query and policy, but bounds another distance than the noise hides.
    ready = Borrowed("borrowed", query, policy, loss, pg.sensitivity(query, policy, norm="l2"))
    with pytest.raises(pg.RefusedError) as refused:
        pg.release(query, policy, [1] * 9, mechanism=ready, **common)
    assert refused.value.code == "release.proof"


def test_the_command_refuses_before_any_charge(tmp_path: Path) -> None:
    file, data = tmp_path / "policy.toml", tmp_path / "data.csv"
    facts = '[[public]]\ncuboid = ["a"]\nequals = [1, 0, 1]\n[[public]]\ncuboid = ["b"]\nequals = [1, 1, 0]\n'
    file.write_text(f'[domain]\na = 3\nb = 3\n{facts}[[release]]\ncuboid = ["a", "b"]\n')
    data.write_text("a,b\n0,0\n2,1\n")
    ask = [
        "release",
        str(file),
        "--data",
        str(data),
        "--epsilon",
        "1",
        "--out",
        str(tmp_path / "out"),
        "--seed",
        "1",
    ]
    ask += ["--ledger", str(tmp_path / "ledger.db"), "--mechanism", "every answer"]
    assert run([*ask, "--require-proof"]) == 2
    assert not (tmp_path / "out" / "release.json").exists()
    assert run(ask) == 0
