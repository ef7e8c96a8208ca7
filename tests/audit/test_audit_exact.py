"""Exact checks: closed form against listing, and enumeration of any finite mechanism."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.audit import exact_audit, exact_check, exact_epsilon, exact_loss
from policygraph.audit.exact import small_tables
from tests.broken import additive
from tests.oracles import audits as oracle
from tests.oracles.probabilities import gaussian_pmf_bounds, laplace_pmf_bounds

AGES = pg.Domain({"age": 3})
CELLS = pg.queries.identity(AGES)
UNBOUNDED = pg.Policy(AGES)
BINARY = pg.Domain({"bit": 2})
SWAP = pg.Policy(BINARY, pg.PolicyGraph.full(BINARY))


def laplace(query, policy, epsilon):
    return pg.Laplace().calibrate(query, policy, pg.Epsilon(epsilon))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=3, max_size=3),
    st.fractions("1/5", 4, max_denominator=9),
)
def test_the_closed_form_is_the_largest_log_ratio_of_any_output(counts, epsilon):
    a, b = (list(side) for side in zip(*counts, strict=True))
    ready = laplace(CELLS, UNBOUNDED, epsilon)
    assert exact_epsilon(ready, (a, b)) == oracle.laplace_log_ratio(a, b, ready.parameter, 1)


def test_gaussian_noise_attains_its_rho_at_an_integer_order():
    """The divergence of order 2 by summing the enclosed probabilities: exp(D_2) = sum p^2 / q."""
    ready = pg.Gaussian().calibrate(CELLS, UNBOUNDED, pg.Rho("1/8"))
    rho = exact_loss(ready, ([0, 0, 0], [1, 0, 0]))
    assert rho == Fraction(1, 8)
    mass = {k: gaussian_pmf_bounds(k, ready.parameter)[0] for k in range(-18, 19)}
    power = float(sum(mass[k] ** 2 / mass[k - 1] for k in range(-17, 19)))
    from math import log

    assert log(power) / 2 == pytest.approx(float(rho), rel=1e-9)
    with pytest.raises(pg.InputError, match="no pure epsilon"):
        exact_epsilon(ready, ([0, 0, 0], [1, 0, 0]))


POLICIES = {
    "unbounded": (AGES, {}),
    "bounded": (AGES, {"graph": pg.PolicyGraph.full(AGES)}),
    "line": (AGES, {"graph": pg.PolicyGraph.line(AGES)}),
    "margins": (
        pg.Domain({"a": 3, "b": 3}),
        {"constraints": [pg.Cuboid("a"), pg.Cuboid("b")]},
    ),
    "three margins": (
        pg.Domain({"a": 2, "b": 2, "c": 2}),
        {"constraints": [pg.Cuboid("a"), pg.Cuboid("b"), pg.Cuboid("c")]},
    ),
    "degrees": (pg.Network(5), {"constraints": [pg.Degrees()]}),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("loss", [pg.Epsilon("1/3"), pg.Rho("1/7")], ids=str)
def test_exact_noise_spends_exactly_what_it_claims(name, loss):
    domain, rest = POLICIES[name]
    mechanism = pg.Laplace() if isinstance(loss, pg.Epsilon) else pg.Gaussian()
    ready = mechanism.calibrate(pg.queries.identity(domain), pg.Policy(domain, **rest), loss)
    report = exact_check(ready)
    assert report.passed is True
    assert report.value == loss.value
    proof = ready.sensitivity
    smaller = replace(
        proof, power=proof.power * Fraction(99, 100), lower_power=proof.lower_power * Fraction(99, 100)
    )
    caught = exact_check(replace(ready, sensitivity=smaller))
    assert caught.passed is False
    assert "LEAK" in str(caught)
    assert caught.to_dict()["passed"] is False


def test_noise_for_one_record_is_caught_under_margins():
    ready, policy, _ = additive.one_record_under_margins()
    report = exact_check(ready, policy)
    assert report.passed is False
    assert report.value == 2


def test_edges_only_loses_twice_the_claim_on_the_pair_of_the_definition():
    ready, _, _ = additive.edges_only()
    assert exact_epsilon(ready, ([0, 1, 0, 1], [1, 0, 1, 0])) == 2


def test_too_many_moves_are_refused():
    with pytest.raises(pg.RefusedError, match="more than 2 moves"):
        exact_check(laplace(CELLS, UNBOUNDED, 1), limit=2)


def test_no_noise_on_answers_that_differ_is_an_error():
    known = pg.Policy(AGES, constraints=[pg.Cuboid("age")])
    ready = laplace(CELLS, known, 1)
    assert exact_check(ready).passed is True
    with pytest.raises(pg.InputError, match="infinite"):
        exact_loss(ready, ([0, 0, 0], [1, 0, 0]))


def response(lie):
    def law(table):
        yes = (lie * int(table[0]) + (1 - lie) * int(table[1])) / Fraction(int(table.sum()))
        return {"yes": yes, "no": 1 - yes}

    return law


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3).filter(any), min_size=2, max_size=3))
def test_single_outputs_attain_the_largest_ratio_over_all_events(weights):
    """Tables 0, 1, 2 of one cell under 'one record more or less' with arbitrary laws on three outputs."""
    domain = pg.Domain({"only": 1})
    laws = [dict(zip("xyz", (Fraction(w, sum(row)) for w in row), strict=True)) for row in weights]
    report = exact_audit(
        lambda table: laws[int(table[0])],
        pg.Policy(domain),
        epsilon=1,
        tables=[[n] for n in range(len(laws))],
    )
    wanted = [oracle.largest_ratio(laws[i : i + 2]) for i in range(len(laws) - 1)]
    assert report.pairs == len(laws) - 1
    assert report.value == (None if None in wanted else max(wanted))
    assert report.passed is (None not in wanted and max(wanted) < Fraction(2718281828, 10**9))


def test_randomised_response_is_decided_on_both_sides_of_its_epsilon():
    tables = [[1, 0], [0, 1]]
    assert exact_audit(response(Fraction(1, 4)), SWAP, epsilon="1.0987", tables=tables).passed is True
    caught = exact_audit(response(Fraction(1, 4)), SWAP, epsilon="1.0986", tables=tables)
    assert caught.passed is False
    assert caught.value == 3
    assert "3 times as likely" in str(caught)


def test_an_output_that_only_one_table_can_have_is_an_infinite_loss():
    report = exact_audit(response(Fraction(0)), SWAP, epsilon=50, tables=[[1, 0], [0, 1]])
    assert report.passed is False
    assert report.value is None
    assert "possible only on" in str(report)


def test_delta_allows_what_a_pure_epsilon_does_not():
    tables = [[1, 0], [0, 1]]

    def law(table):
        told = Fraction(1, 100)
        half = (1 - told) / 2
        return {"told 0": told * int(table[0]), "told 1": told * int(table[1]), "x": half, "y": half}

    assert exact_audit(law, SWAP, epsilon="0.1", tables=tables).passed is False
    assert exact_audit(law, SWAP, epsilon="0.1", delta="0.01", tables=tables).passed is True
    caught = exact_audit(law, SWAP, epsilon="0.1", delta="0.0099", tables=tables)
    assert caught.passed is False
    assert caught.value == Fraction(1, 100)


def clamped_noise(scale, bits):
    """Discrete Laplace noise on the first count, clamped to -4 ... 6, with enclosed probabilities."""

    def law(table):
        at = int(table[0])
        out = {}
        for value in range(-3, 6):
            out[value] = laplace_pmf_bounds(value - at, scale, bits)
        for edge, inside in ((-4, range(-4 - at, -60 - at, -1)), (6, range(6 - at, 60 - at))):
            masses = [laplace_pmf_bounds(k, scale, bits) for k in inside]
            rest = Fraction(1, 10**20)
            out[edge] = (sum(m[0] for m in masses), sum(m[1] for m in masses) + rest)
        return out

    return law


def test_enclosed_probabilities_are_decided_when_they_are_narrow_enough():
    policy = pg.Policy(pg.Domain({"only": 1}))
    tables = [[0], [1], [2]]
    fine = clamped_noise(1, 128)
    assert exact_audit(fine, policy, epsilon="1.0001", tables=tables).passed is True
    assert exact_audit(fine, policy, epsilon="0.9999", tables=tables).passed is False
    # At its very epsilon the ratio is exp(1) itself, and no enclosure of both sides can tell.
    assert exact_audit(fine, policy, epsilon=1, tables=tables).passed is None


def test_all_small_tables_are_listed_when_none_are_given():
    policy = pg.Policy(pg.Domain({"a": 2, "b": 2}), constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    listed = small_tables(policy, 1)
    assert len(listed) == 16
    pairs = sum(bool(policy.are_neighbours(a, b)) for a, b in combinations(listed, 2))
    constant = exact_audit(lambda table: {"same": 1}, policy, epsilon="0.001", largest=1)
    assert constant.passed is True
    assert constant.pairs == pairs == 1
    told = exact_audit(lambda table: {tuple(table.tolist()): 1}, policy, epsilon=9, largest=1)
    assert told.passed is False
    with pytest.raises(pg.RefusedError, match="tables"):
        small_tables(policy, 20)


@pytest.mark.parametrize(
    ("law", "code"),
    [
        ({"x": Fraction(1, 2)}, "audit.probabilities"),
        ({"x": Fraction(3, 2), "y": Fraction(-1, 2)}, "audit.probability"),
        ({"x": 0.5, "y": 0.5}, "audit.probability"),
        ({"x": (Fraction(2, 3), Fraction(1, 3))}, "audit.probability"),
    ],
)
def test_laws_that_are_none_are_refused(law, code):
    with pytest.raises(pg.InputError) as error:
        exact_audit(lambda table: law, SWAP, epsilon=1, tables=[[1, 0], [0, 1]])
    assert error.value.code == code
