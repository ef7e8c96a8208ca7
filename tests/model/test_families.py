"""Families of records that change together: neighbours, sensitivities, certificates, and what knows nothing of them."""

from __future__ import annotations

import copy
import json
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.files import dumps, load, loads
from policygraph.mechanisms import choose
from policygraph.model.units import any_policy
from policygraph.sensitivity import Sensitivity
from tests.oracles import families as oracle
from tests.oracles.sensitivity import margin_rows
from tests.paths import ROOT

SICK = pg.Domain({"sick": ["no", "yes"]})
SQUARE = pg.Domain({"a": 2, "b": 2})
LINE = pg.Domain({"r": 3})


@st.composite
def queries(draw, domain):
    rows = draw(st.integers(1, 3))
    entry = st.integers(-2, 2)
    made = draw(
        st.lists(st.lists(entry, min_size=domain.size, max_size=domain.size), min_size=rows, max_size=rows)
    )
    return made if any(map(any, made)) else [[1] * domain.size]


@given(data=st.data(), size=st.integers(1, 4), norm=st.sampled_from(["l1", "l2"]))
@settings(max_examples=40)
def test_without_facts_a_family_is_worth_its_size_in_records(data, size, norm):
    kind = data.draw(st.sampled_from(["open", "full", "line", "bottom"]))
    edges = {"open": None, "full": [(0, 1), (0, 2), (1, 2)], "line": [(0, 1), (1, 2)]}.get(kind)
    graph = {
        "open": None,
        "full": pg.PolicyGraph.full(LINE),
        "line": pg.PolicyGraph.line(LINE),
        "bottom": pg.PolicyGraph.line(LINE).with_bottom(),
    }[kind]
    if kind == "bottom":
        edges = [(0, 1), (1, 2), (0, None), (1, None), (2, None)]
    rows = data.draw(queries(LINE))
    policy = pg.Families(pg.Policy(LINE, graph), size)
    found = pg.sensitivity(pg.queries.matrix(LINE, rows), policy, norm=norm)
    pairs = list(oracle.neighbours(3, range(1, size + 1), 2, edges))
    assert found.power == oracle.largest(iter(pairs), rows, norm)
    assert found.exact
    assert found.verify().ok
    assert not found.verify().failed
    for a, b in pairs[:: max(1, len(pairs) // 25)]:
        assert policy.are_neighbours(a, b)
        assert not policy.are_neighbours(a, a)


@given(data=st.data(), size=st.integers(1, 3), norm=st.sampled_from(["l1", "l2"]))
@settings(max_examples=25)
def test_families_of_one_size_beside_public_facts(data, size, norm):
    names = data.draw(st.sampled_from([["a"], ["a", "b"], [""]]))
    facts = [pg.Cuboid(name) if name else pg.Total() for name in names]
    facts_rows = [row for name in names for row in margin_rows(SQUARE, (name,) if name else ())]
    rows = data.draw(queries(SQUARE))
    policy = pg.Families(pg.Policy(SQUARE, constraints=facts), size, exactly=True)
    found = pg.sensitivity(pg.queries.matrix(SQUARE, rows), policy, norm=norm)
    pairs = list(oracle.under_facts(4, size, 2, facts_rows))
    assert found.power == oracle.largest(iter(pairs), rows, norm)
    assert found.exact
    assert found.verify().ok
    for a, b in pairs:
        assert policy.are_neighbours(a, b)


def test_smaller_families_can_make_up_for_a_larger_one_under_facts_and_are_refused():
    """Two families of three against three of two: 12 records change, more than a family of three times 2."""
    both = np.array([6, 0]), np.array([0, 6])
    assert np.abs(both[0] - both[1]).sum() > 3 * 2
    with pytest.raises(pg.RefusedError) as refusal:
        pg.Families(pg.Policy(SICK, constraints=[pg.Total()]), 3)
    assert refusal.value.code == "families.facts"
    assert pg.Families(pg.Policy(SQUARE, constraints=[pg.StructuralZero([[0, 1]])]), 3).size == 3


def test_published_values_give_a_bound_without_a_pair():
    facts = [pg.Cuboid("a", equals=[4, 4]), pg.Cuboid("b", equals=[4, 4])]
    policy = pg.Families(pg.Policy(SQUARE, constraints=facts), 2, exactly=True)
    found = pg.sensitivity(pg.queries.identity(SQUARE), policy)
    assert (found.power, found.kind, found.witness) == (8, "upper", None)
    ready = pg.Laplace().calibrate(found.query, policy, pg.Epsilon(1))
    ready.run([4, 0, 0, 4], pg.SeededRng(1))
    with pytest.raises(pg.ConstraintError) as refusal:
        ready.run([3, 1, 1, 3], pg.SeededRng(1))
    assert refusal.value.code == "families.counts"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: pg.Families(pg.Policy(SICK), 0), "families.size"),
        (lambda: pg.Families(pg.Policy(SICK), True), "families.size"),
        (lambda: pg.Families(pg.Policy(SICK), 2, exactly=1), "families.size"),
        (lambda: pg.Families(SICK, 2), "families.policy"),
        (lambda: pg.Families(pg.Policy(pg.Network(4)), 2), "families.policy"),
        (lambda: pg.Families(pg.Policy(SICK, at_most_records=2), 2), "families.facts"),
        (lambda: pg.Families(pg.Policy(SICK), 2).graph, "families.records"),
        (lambda: pg.Policy.from_spec(pg.Families(pg.Policy(SICK), 2).to_spec()), "policy.unit"),
        (
            lambda: pg.compare(pg.queries.identity(SICK), pg.Families(pg.Policy(SICK), 2), pg.Epsilon(1)),
            "families.records",
        ),
        (
            lambda: pg.sensitivity(
                pg.queries.sums(SICK, [["sick"]], pg.Measure("income", 0, 9)), pg.Families(pg.Policy(SICK), 2)
            ),
            "families.values",
        ),
    ],
)
def test_what_families_are_not_gets_a_sentence(make, code):
    with pytest.raises(pg.PolicyGraphError) as refusal:
        make()
    assert refusal.value.code == code


@pytest.mark.parametrize(
    "mechanism",
    [
        pg.Cube(),
        pg.Adaptive(),
        pg.AdaptiveCube(),
        pg.Exponential(),
        pg.MatrixMechanism(),
        pg.Partitioned(),
        pg.Residuals(),
        pg.Sparse(),
        pg.Transformed(pg.Laplace()),
        pg.TransformedConsistent(),
        pg.TransformedLaplace(),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_a_mechanism_that_knows_no_families_never_runs(mechanism):
    policy = pg.Families(pg.Policy(LINE, pg.PolicyGraph.line(LINE)), 5)
    with pytest.raises(pg.PolicyGraphError):
        pg.release(
            pg.queries.identity(LINE), policy, [1, 2, 3], epsilon=1, mechanism=mechanism, rng=pg.SeededRng(1)
        )


@pytest.mark.parametrize(
    "policy", [pg.Families(pg.Policy(pg.Domain({"a": 3})), 2), pg.NodePrivacy(pg.Network(3))]
)
def test_a_default_does_not_make_up_for_what_is_refused(policy):
    """Code that asks for a graph and goes on without one would protect single records, or single edges."""
    for name in ("graph", "constraints", "moves", "strength"):
        with pytest.raises(pg.RefusedError):
            getattr(policy, name, None)
    # Whatever Python and others look for on any object is just not there.
    assert getattr(policy, "__array__", None) is None
    assert not hasattr(policy, "tocsr")
    assert copy.deepcopy(policy) == pickle.loads(pickle.dumps(policy)) == policy


def test_plain_noise_loses_the_size_of_the_family_and_noise_under_the_policy_does_not():
    """Example 2.1 of No Free Lunch in Data Privacy."""
    query = pg.queries.matrix(SICK, [[0, 1]])
    policy = pg.Families(pg.Policy(SICK), 10)
    page = pg.attack(query, policy, "1/2")
    assert (page.losses.without_facts, page.losses.with_facts) == (5, Fraction(1, 2))
    assert "families of up to 10 records change together" in str(page)
    plain = pg.Laplace().calibrate(query, pg.Policy(SICK), pg.Epsilon("1/2"))
    ready = choose(query, policy, pg.Epsilon("1/2"))
    odds = [pg.attacks.log_odds(each, [0, 10], [10, 0]).largest for each in (plain, ready)]
    assert odds == [5, Fraction(1, 2)]


def test_files_certificates_and_releases_keep_the_unit(tmp_path):
    read = load(ROOT / "policies" / "families.toml")
    assert isinstance(read.policy, pg.Families)
    assert any_policy(read.policy.to_spec()) == read.policy
    assert loads(dumps(read.policy, read.query)).policy == read.policy
    assert read.policy.fingerprint != read.policy.records.fingerprint
    found = pg.sensitivity(read.query, read.policy)
    plain = found.to_dict()
    assert (plain["unit"], plain["at_most"], plain["value"]) == ("family", 10, 20)
    assert Sensitivity.from_json(json.dumps(plain)) == found
    forged = json.loads(json.dumps(plain))
    forged["policy"]["unit"]["family"] = 5
    with pytest.raises(pg.PolicyGraphError):
        Sensitivity.from_dict(forged)
    ledger = tmp_path / "budget.db"
    made = [pg.release(read.query, read.policy, [3, 4, 0, 1], epsilon=1, ledger=ledger) for _ in range(2)]
    assert made[0].policy == read.policy
    assert list(made[0].values()) == list(made[1].values())
    assert made[0].record["noise"]["parameter"] == "20"


def test_a_unit_that_does_not_fit_is_a_problem_of_the_file():
    text = "[domain]\na = 2\n[unit]\nfamily = 3\n[[public]]\ntotal = true\n"
    with pytest.raises(pg.InputError, match="made up for by others"):
        loads(text)
    with pytest.raises(pg.InputError, match="family"):
        loads("[domain]\na = 2\n[unit]\nfamily = 0\n")


def test_the_page_of_a_release_says_families(tmp_path):
    policy = pg.Families(pg.Policy(SICK, constraints=[pg.Total()]), 2, exactly=True)
    made = pg.release(pg.queries.identity(SICK), policy, [4, 2], epsilon=1, rng=pg.SeededRng(1))
    page = tmp_path / "page.html"
    pg.report(made, page)
    assert "hole family of exactly 2 records" in page.read_text(encoding="utf-8")


def test_published_values_are_of_records_and_not_of_families():
    domain = pg.Domain({"a": 2, "b": 2})
    facts = [pg.Cuboid("a", equals=[4, 4]), pg.Cuboid("b", equals=[4, 4])]
    families = pg.Families(pg.Policy(domain, constraints=facts), 2, exactly=True)
    assert families.are_neighbours([4, 0, 0, 4], [2, 2, 2, 2])
    # Twice a minimal step is none, and values other than the published ones are none either.
    assert not families.are_neighbours([4, 0, 0, 4], [0, 4, 4, 0])
    assert "public facts" in families.are_neighbours([2, 0, 0, 2], [0, 2, 2, 0]).reason
    assert pg.Families.from_spec(families.to_spec()) == families
