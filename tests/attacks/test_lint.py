"""The page about a policy, its command, and facts that nobody stated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import policygraph as pg
from policygraph.attacks import unstated_facts
from policygraph.cli.app import run
from policygraph.curator.histogram import Histogram

CHAIN = "[domain]\nr = 8\n" + "".join(
    f"[[public]]\ncount = {{where = {{r = [{i}, {i + 1}]}}}}\n" for i in range(7)
)


def test_the_command_on_a_chain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, picture = tmp_path / "chain.toml", tmp_path / "chain.png"
    file.write_text(CHAIN)
    assert run(["attack", str(file), "--epsilon", "1/2", "--json", "--plot", str(picture)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["effective_epsilon_without_facts"] == 4.0
    assert found["effective_epsilon"] == 0.5
    assert found["worst_cell_deviation"] == pytest.approx((2 / 8 / 0.25) ** 0.5, rel=1e-9)
    assert found["worst_cell_deviation_under_policy"] == pytest.approx(8.0, rel=1e-9)
    before, after = (
        np.bincount(
            [row["index"] for row in found["pair"][side]], [row["count"] for row in found["pair"][side]], 8
        )
        for side in ("before", "after")
    )
    assert np.abs(before - after).sum() == 8
    assert np.array_equal(before[1:] + before[:-1], after[1:] + after[:-1])
    assert picture.stat().st_size > 10_000
    assert run(["attack", str(file)]) == 0
    text = capsys.readouterr().out
    assert "really loses epsilon = 8" in text
    assert "If one more table were published exactly" in text


def test_a_policy_without_facts_gets_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plain.toml"
    file.write_text("[domain]\nr = 8\n")
    assert run(["attack", str(file), "--epsilon", "1", "--json"]) == 2
    streams = capsys.readouterr()
    assert json.loads(streams.out)["error"]["code"] == "attacks.no-facts"
    assert "states no public facts" in streams.err
    file.write_text(CHAIN)
    assert run(["attack", str(file), "--epsilon", "-1"]) == 2
    assert run(["attack", str(file), "--epsilon", "1", "--plot", str(tmp_path / "x.unknown")]) == 2


def test_the_curator_is_told_what_nobody_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, data = tmp_path / "policy.toml", tmp_path / "data.csv"
    file.write_text('[domain]\nsex = ["F", "M"]\npregnant = ["no", "yes"]\n[[public]]\ncuboid = ["sex"]\n')
    data.write_text("sex,pregnant\n" + "F,no\n" * 300 + "F,yes\n" * 100 + "M,no\n" * 400)
    assert run(["attack", str(file), "--data", str(data), "--json"]) == 0
    streams = capsys.readouterr()
    assert "NOT TO BE PUBLISHED" in streams.err
    found = json.loads(streams.out)["unstated"]
    assert "NOT TO BE PUBLISHED" in found["warning"]
    assert found["facts"][0]["fact"] == {"zeros": [{"sex": ["M"], "pregnant": ["yes"]}]}
    assert run(["attack", str(file), "--data", str(data)]) == 0
    assert "sex = M always has pregnant = no" in capsys.readouterr().out
    # where nothing is found out, nothing is to be kept back
    assert run(["attack", str(file), "--data", str(tmp_path / "none.csv")]) == 2
    assert "NOT TO BE PUBLISHED" not in capsys.readouterr().err
    stated = pg.load(file)
    domain = stated.policy.domain
    known = pg.Policy(domain, constraints=[pg.StructuralZero([{"sex": "M", "pregnant": "yes"}])])
    assert not unstated_facts(known, Histogram.from_vector(domain, [300, 100, 400, 0]))


def test_counts_that_are_equal_or_rounded_are_seen_and_chance_is_not() -> None:
    domain = pg.Domain({"a": 8, "b": 3})
    policy = pg.Policy(domain)
    rng = np.random.default_rng(5)
    assert unstated_facts(policy, Histogram.from_vector(domain, rng.integers(20, 90, 24))) == []
    design = np.full((8, 3), 0)
    design[:, 0] = rng.integers(10, 40, 8)
    design[:, 1] = 60 - design[:, 0]
    design[:, 2] = 41
    found = unstated_facts(policy, Histogram.from_vector(domain, design.ravel()))
    assert [fact.kind for fact in found] == ["equal counts"]
    assert found[0].constraint == pg.Cuboid("a")
    rounded = unstated_facts(policy, Histogram.from_vector(domain, 10 * rng.integers(2, 9, 24)))
    assert {fact.kind for fact in rounded} == {"multiples"}
    assert not unstated_facts(policy, Histogram.from_vector(domain, np.zeros(24, dtype=np.int64)))


def test_a_table_without_attributes_is_the_number_of_records() -> None:
    domain = pg.Domain({"sex": ["F", "M"]})
    policy = pg.Policy(domain, constraints=[pg.Cuboid(equals=[60])])
    said = str(pg.attack(pg.queries.identity(domain), policy, 1))
    assert said.startswith("What somebody learns who knows: the exact number of records\n")


def test_regular_networks_are_seen() -> None:
    network = pg.Network(12)
    policy = pg.Policy(network, constraints=[pg.Total()])
    ring = np.zeros(network.size, dtype=np.int64)
    for node in range(12):
        ring[network.index((node, (node + 1) % 12))] = 1
    found = unstated_facts(policy, Histogram.from_vector(network, ring))
    assert [
        fact.words for fact in found
    ] == []  # one in three for each node: by chance in one of 10,000 rings
    big = pg.Network(40)
    ring = np.zeros(big.size, dtype=np.int64)
    for node in range(40):
        ring[big.index((node, (node + 1) % 40))] = 1
    found = unstated_facts(pg.Policy(big, constraints=[pg.Total()]), Histogram.from_vector(big, ring))
    assert [fact.kind for fact in found] == ["equal counts"]
    assert pg.attack(pg.queries.identity(network), policy, 1).losses.without_facts == 2


def test_facts_that_determine_everything_and_queries_that_say_nothing() -> None:
    domain = pg.Domain({"a": 2, "b": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a", "b")])
    found = pg.attack(pg.queries.identity(domain), policy, 1)
    assert found.losses.without_facts == 0
    assert found.known_cells == 4
    assert found.pair is None
    assert "determine every cell" in str(found)
    one = pg.Policy(domain, constraints=[pg.Cuboid("a")])
    margin = pg.attack(pg.queries.cuboid(domain, "b"), one, 1)
    assert margin.plain_deviation == float("inf")
    assert "No single cell" in str(margin)
    with pytest.raises(pg.InputError) as raised:
        pg.attack(pg.queries.sums(domain, [["a"]], pg.Measure("x", 0, 5)), one, 1)
    assert raised.value.code == "attacks.queries"


def test_a_loss_of_which_no_pair_is_known_is_told_as_at_most() -> None:
    domain = pg.Domain({"town": 4, "age": 3, "sex": 2, "income": 3})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("town"), pg.Cuboid("sex")])
    query = pg.queries.cuboids(domain, [("age",), ("income",), ("town", "age"), ("town", "income")])
    found = pg.attacks.attack(query, policy, epsilon=1)
    text, losses = str(found), found.losses
    assert "at least 0" not in text
    assert "50.0 % sure" not in text
    assert "needs 0 to" not in text
    if not losses.exact and not losses.without_facts_lower:
        assert "become at most" in text


def test_the_page_shows_only_what_two_data_sets_do_not_share() -> None:
    """With published values the data sets have many records in common, which say nothing."""
    domain = pg.Domain({"a": 2, "b": 2})
    facts = [pg.Cuboid("a", equals=[50, 70]), pg.Cuboid("b", equals=[60, 60])]
    found = pg.attack(pg.queries.identity(domain), pg.Policy(domain, constraints=facts), 1)
    lines = str(found).splitlines()
    at = next(
        i for i, line in enumerate(lines) if "that must look alike, all other records being the same" in line
    )
    assert sorted(lines[at + 1 : at + 3]) == ["  one with (0, 0) (1, 1)", "  one with (0, 1) (1, 0)"]
    assert {row["count"] for row in found.pair["before"]} != {1}


def test_a_policy_that_needs_the_same_noise_says_that_it_has_no_price() -> None:
    domain = pg.Domain({"a": 2, "b": 3})
    found = pg.attack(
        pg.queries.identity(domain), pg.Policy(domain, constraints=[pg.StructuralZero([{"a": 0, "b": 0}])]), 1
    )
    assert found.losses.without_facts == 1
    assert "The price: none, the noise is the same." in str(found)
    facts = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    assert "The price: 4 times the noise" in str(pg.attack(pg.queries.identity(domain), facts, 1))


def test_further_tables_can_be_left_out() -> None:
    domain = pg.Domain({"a": 2, "b": 3, "c": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    query = pg.queries.identity(domain)
    whole, short = (pg.attack(query, policy, 1, further=each) for each in (True, False))
    assert short.further == ()
    assert len(whole.further) > 3
    assert str(whole).startswith(str(short).partition("\n\nNo single cell")[0])
    assert short.losses.without_facts == whole.losses.without_facts


def test_tables_with_stated_counts_are_not_called_further() -> None:
    domain = pg.Domain({"a": 2, "b": 3, "c": 2})
    facts = [pg.Cuboid("a", "b", equals=[1, 2, 3, 4, 5, 6]), pg.Cuboid("c", equals=[10, 11])]
    found = pg.attack(pg.queries.identity(domain), pg.Policy(domain, constraints=facts), 1)
    assert [each.words for each in found.further] == [
        "the exact counts by a and c",
        "the exact counts by b and c",
    ]


def test_a_network_is_told_in_edges(tmp_path: Path) -> None:
    network = pg.Network(5)
    found = pg.attack(pg.queries.identity(network), pg.Policy(network, constraints=[pg.Degrees("all")]), 1)
    assert " edges (standard deviation)" in str(found)
    assert "record" not in str(found)
    found.plot(tmp_path / "network.png")
    assert (tmp_path / "network.png").stat().st_size > 10_000
