"""The definitions of the literature side by side; how many records Semi-DP changes, by going through all labelled data sets."""

import json
import subprocess
import sys
from fractions import Fraction
from itertools import product

import pytest

import policygraph as pg
from policygraph.definitions import definitions, definitions_text, semi_adjacent
from tests.paths import ROOT


def records_needed(policy, size, records):
    """Literally: over all data sets, records and values that are possible, the fewest records that change."""
    matrix = policy.system.matrix().toarray()
    groups = {}
    for data in product(range(size), repeat=records):
        groups.setdefault(tuple(matrix[:, list(data)].sum(axis=1)), []).append(data)
    worst = 0
    for group in groups.values():
        for data in group:
            for at in range(records):
                for value in {other[at] for other in group}:
                    changed = (
                        sum(x != y for x, y in zip(data, other, strict=True))
                        for other in group
                        if other[at] == value
                    )
                    worst = max(worst, min(changed))
    return worst


@pytest.mark.parametrize(
    ("shape", "facts", "records", "most"),
    [
        ({"a": 2, "b": 2}, [pg.Cuboid("a"), pg.Cuboid("b")], 3, 3),
        ({"a": 3, "b": 2}, [pg.Cuboid("a")], 3, 2),
        ({"x": 3}, [pg.Total()], 3, 1),
        ({"x": 3}, [], 2, 1),
        ({"x": 4}, [pg.LinearCount([((c,), c) for c in range(4)])], 4, None),
        ({"a": 2, "b": 2, "c": 2}, [pg.Cuboid("a"), pg.Cuboid("b"), pg.Cuboid("c")], 3, None),
    ],
    ids=["two", "one", "total", "none", "weights", "three"],
)
def test_semi_dp_changes_no_more_records_than_said(shape, facts, records, most):
    domain = pg.Domain(shape)
    policy = pg.Policy(domain, constraints=facts)
    said, why = semi_adjacent(policy)
    true = records_needed(policy, domain.size, records)
    assert true <= said, why
    if most is not None:
        assert said == most == true


def test_the_values_of_two_margins():
    domain = pg.Domain({"a": 5, "b": 6})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    made = {one.name: one for one in definitions(pg.queries.identity(domain), policy, effort=100_000)}
    assert (made["induced neighbours"].value, made["induced neighbours"].exact) == (10, True)
    assert made["induced neighbours"].used
    assert (made["Semi-DP"].value, made["Semi-DP"].exact) == (6, False)
    assert made["subspace differential privacy"].value == 1
    text = definitions_text(tuple(made.values()), Fraction(1, 2))
    assert "scale 20" in text
    assert "used here" in text


def test_what_is_not_proved_is_said():
    domain = pg.Domain({"a": 30, "b": 30})
    policy = pg.Policy(domain, pg.PolicyGraph.grid(domain), [pg.Cuboid("a"), pg.Cuboid("b")])
    made = {one.name: one for one in definitions(pg.queries.identity(domain), policy, effort=100_000)}
    assert made["Blowfish neighbours"].value is None
    assert "at_most_records" in made["Blowfish neighbours"].note
    assert made["Blowfish neighbours"].used
    assert "not proved" in definitions_text(tuple(made.values()), Fraction(1))
    network = pg.Policy(pg.Network(4), constraints=[pg.Degrees("all")])
    assert len(definitions(pg.queries.identity(network.domain), network)) == 2


def test_the_command():
    command = [sys.executable, "-m", "policygraph", "explain", "--definitions"]
    ran = subprocess.run(
        [*command, str(ROOT / "policies" / "census-margins.toml"), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    made = json.loads(ran.stdout)["definitions"]
    assert [one["noise_scale"] for one in made if one["used"]] == ["4"]
    refused = subprocess.run(
        [*command, str(ROOT / "policies" / "families.toml")], capture_output=True, text=True, check=False
    )
    assert refused.returncode != 0
    assert "single records" in refused.stderr + refused.stdout
