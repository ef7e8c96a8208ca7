"""What ``policygraph attack --json`` promises: its fields on generated policies of every kind, and losses against all pairs of neighbours."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import policygraph as pg
from policygraph.cli.app import run
from policygraph.files import dumps
from tests.oracles import fibres
from tests.oracles.audits import laplace_log_ratio

FIELDS = (
    "effective_epsilon_without_facts",
    "effective_epsilon_without_facts_lower",
    "effective_epsilon",
    "worst_cell_deviation",
    "pair",
)
FACTS = ([], [["a"]], [["a"], ["b"]], [[]])
GRAPHS = (None, "full", "line", "attribute")


def generated(seed: int) -> pg.Policy:
    """Tables with and without facts and a graph, and networks with and without degrees, in turn."""
    if seed % 5 == 4:
        nodes = 4 + seed % 3
        known = [pg.Degrees(list(range(seed % nodes)))] if seed % nodes else []
        return pg.Policy(pg.Network(nodes), constraints=known)
    domain = pg.Domain({"a": 2 + seed % 2, "b": 2 + seed % 3})
    facts = [pg.Cuboid(*names) if names else pg.Total() for names in FACTS[seed % 4]]
    kind = GRAPHS[seed // 4 % 4]
    if kind == "line":
        line = pg.Domain({"a": domain.size})
        facts = [pg.count({"a": [0, 1]})] if seed % 2 else []
        return pg.Policy(line, pg.PolicyGraph.line(line), facts)
    graph = None if kind is None else getattr(pg.PolicyGraph, kind)(domain)
    return pg.Policy(domain, graph, facts)


@pytest.mark.parametrize("seed", range(20))
def test_every_policy_gets_a_page_or_a_sentence(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.toml"
    policy = generated(seed)
    file.write_text(dumps(policy))
    code = run(["attack", str(file), "--epsilon", "1/2", "--json"])
    out, err = capsys.readouterr()
    said = json.loads(out)
    if code:
        # Only a policy without facts has nothing to compare.
        assert (code, said["error"]["code"], policy.constraints) == (2, "attacks.no-facts", ())
        assert "states no public facts" in err
        return
    assert set(FIELDS) <= set(said)
    assert said["effective_epsilon"] in (0, 0.5)
    assert said["effective_epsilon_without_facts_lower"] <= said["effective_epsilon_without_facts"]
    if said["pair"] is not None and said["exact"]:
        assert said["effective_epsilon_without_facts"] >= 0.5 * 0.5


CASES = [
    ({"a": 2, "b": 2}, [["a"]], None),
    ({"a": 2, "b": 2}, [["a"], ["b"]], None),
    ({"a": 4}, [[]], None),
    ({"a": 2, "b": 2}, [["a"], ["b"]], [[1, 0, 2, 0], [0, 1, 0, -1]]),
    ({"a": 3}, [[]], [[1, 1, 0], [0, 2, 1]]),
]


@pytest.mark.parametrize(("shape", "facts", "rows"), CASES)
def test_the_loss_is_the_largest_log_odds_of_all_pairs(shape, facts, rows) -> None:
    """Neighbours by the definition, plain noise for one record more or less, every output near both: no formula of the library."""
    domain = pg.Domain(shape)
    policy = pg.Policy(domain, constraints=[pg.Cuboid(*names) if names else pg.Total() for names in facts])
    query = pg.queries.identity(domain) if rows is None else pg.queries.matrix(domain, rows)
    weights = np.eye(domain.size, dtype=int) if rows is None else np.array(rows)
    epsilon = Fraction(1, 2)
    # Plain noise: scaled to one record more or less.
    plain = max(int(np.abs(weights[:, cell]).sum()) for cell in range(domain.size))
    matrix = policy.system.full_rows()[0].toarray().tolist()
    tables = list(product(range(3), repeat=domain.size))
    pairs = fibres.neighbour_pairs(matrix, tables)
    # The odds depend on the difference of the answers alone, so that each is tried once.
    moved = {tuple(int(x) for x in weights @ (np.array(b) - np.array(a))) for a, b in pairs}
    largest = max(
        laplace_log_ratio([0] * len(change), list(change), Fraction(plain) / epsilon, 1) for change in moved
    )
    found = pg.attacks.effective_epsilon(query, policy, epsilon)
    assert found.exact
    assert found.without_facts == largest
    # The same noise under the policy: scaled to what a neighbour step changes.
    step = max(sum(map(abs, change)) for change in moved)
    assert (
        max(laplace_log_ratio([0] * len(c), list(c), Fraction(step) / epsilon, 1) for c in moved)
        == found.with_facts
    )


@pytest.mark.parametrize("size", [2, 5])
def test_families_lose_their_size_over_all_pairs(size: int) -> None:
    domain = pg.Domain({"a": 3})
    query = pg.queries.identity(domain)
    found = pg.attacks.effective_epsilon(query, pg.Families(pg.Policy(domain), size), 1)
    steps = [
        tuple(members * (at == cell) for at in range(3))
        for cell in range(3)
        for members in range(1, size + 1)
    ]
    assert found.without_facts == max(laplace_log_ratio([0] * 3, step, Fraction(1), 1) for step in steps)


def worst(policy: pg.Policy, most: int = 2) -> int:
    """The largest L1 change of the counts between two data sets with the same facts and none between them."""
    matrix = policy.system.full_rows()[0].toarray().tolist()
    pairs = fibres.neighbour_pairs(matrix, list(product(range(most), repeat=policy.domain.size)))
    return max(sum(abs(x - y) for x, y in zip(a, b, strict=True)) for a, b in pairs)


WEAKER = [
    ({"a": 2, "b": 2}, {"at_most_records": 1}, 0),
    ({"a": 3, "b": 3}, {"at_most_records": 2}, 4),
    ({"a": 3, "b": 3}, {"at_most_records": 3}, 6),
    ({"a": 3, "b": 3}, {"strength": "markov"}, 4),
]


@pytest.mark.parametrize(("shape", "promise", "step"), WEAKER)
def test_a_weaker_promise_does_not_make_plain_noise_look_better(
    shape, promise, step, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who knows the facts does not care what the policy promises: the loss of a plain release is over all pairs with the same facts."""
    domain = pg.Domain(shape)
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")], **promise)
    largest = worst(policy)
    found = pg.attack(pg.queries.identity(domain), policy, 1)
    losses = found.losses
    assert losses.exact
    assert losses.known.value == step
    assert losses.without_facts == losses.without_facts_lower == largest
    assert losses.beyond_policy == (Fraction(largest, step) if step else None)
    before, after = (
        np.bincount(
            [row["index"] for row in found.pair[side]],
            [row["count"] for row in found.pair[side]],
            domain.size,
        )
        for side in ("before", "after")
    )
    assert np.abs(before - after).sum() == largest
    text, said = str(found), "It hides less than the facts leave open"
    assert (said in text) == (step < largest)
    assert ("nothing is hidden" in text) == (step == 0)
    file, picture = tmp_path / "policy.toml", tmp_path / "attack.png"
    file.write_text(dumps(policy))
    assert run(["attack", str(file), "--json", "--plot", str(picture)]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["effective_epsilon_without_facts"] == largest
    assert made["effective_epsilon_beyond_policy"] == (pytest.approx(largest / step) if step else None)
    assert made["effective_epsilon"] == (1 if step else 0)


def test_a_weaker_promise_of_which_no_bound_is_known_says_so() -> None:
    domain = pg.Domain({"a": 3, "b": 3})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")], at_most_records=2)
    query = pg.queries.identity(domain)
    found = pg.attack(query, policy, 1)
    blind = pg.attacks.EffectiveEpsilon(Fraction(1), found.losses.plain, found.losses.known)
    assert blind.without_facts is None
    assert blind.without_facts_lower == 4
    assert not blind.exact
    assert ">= 4" in str(blind)
    page = replace(found, losses=blind)
    assert "at least epsilon = 4; no bound" in str(page)
    assert page.to_dict()["effective_epsilon_without_facts"] is None
