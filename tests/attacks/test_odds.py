"""Log-odds, posteriors and effective losses against literal sums, and the values of No Free Lunch in Data Privacy."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.attacks import effective_epsilon, fibre, log_odds, posterior
from policygraph.distributions import gaussian_pmf, laplace_pmf


def chain(k: int) -> pg.Policy:
    return pg.Policy(pg.Domain({"r": k}), constraints=[pg.count({"r": [i, i + 1]}) for i in range(k - 1)])


def literal(pmf, moved: list[int], window: int) -> dict[float, float]:
    """Sum over all noises in a window, one by one."""
    out: dict[float, float] = {}
    for noise in product(range(-window, window + 1), repeat=len(moved)):
        one = np.prod([pmf(z) for z in noise])
        two = np.prod([pmf(z + m) for z, m in zip(noise, moved, strict=True)])
        key = round(log(one / two), 6)
        out[key] = out.get(key, 0.0) + one
    return out


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=2), st.sampled_from([Fraction(1), Fraction(3, 4)]))
def test_log_odds_are_those_of_literal_sums(moved: list[int], epsilon: Fraction) -> None:
    domain = pg.Domain({"a": len(moved)})
    query = pg.queries.identity(domain)
    for mechanism, loss, pmf in (
        (pg.Laplace(), pg.Epsilon(epsilon), lambda z: laplace_pmf(z, 1 / epsilon)),
        (pg.Gaussian(), pg.Rho(epsilon), lambda z: gaussian_pmf(z, 1 / (2 * epsilon))),
    ):
        ready = mechanism.calibrate(query, pg.Policy(domain), loss)
        found = log_odds(ready, [0] * len(moved), moved)
        window = 25 if loss == pg.Epsilon(epsilon) else 7
        expected = literal(pmf, moved, window)
        made: dict[float, float] = {}
        for value, chance in zip(found.values, found.probabilities, strict=True):
            if chance > 1e-7:
                made[round(float(value), 6)] = chance
        for key, chance in expected.items():
            if chance > 1e-6:
                assert made[min(made, key=lambda x: abs(x - key))] == pytest.approx(chance, abs=1e-6)
        # what is the likelier one with equal priors: sum of max(p, q) / 2
        best = sum(chance * max(1.0, exp(-key)) / 2 for key, chance in expected.items())
        low, high = found.success
        assert float(low) == pytest.approx(best, abs=1e-5)
        assert 0 <= high - low < Fraction(1, 2**60)


def test_the_largest_log_odds_are_the_change_over_the_scale() -> None:
    policy = chain(9)
    ready = pg.Laplace().calibrate(
        pg.queries.identity(policy.domain), pg.Policy(policy.domain), pg.Epsilon("1/3")
    )
    pair = pg.sensitivity(pg.queries.identity(policy.domain), policy)
    found = log_odds(ready, pair.table("before"), pair.table("after"))
    assert found.largest == Fraction(9, 3)
    assert sum(found.lows) <= 1 << 128 <= sum(found.highs)
    low, high = found.above(3)
    q = exp(-1 / 3)
    assert float(low) == pytest.approx((1 / (1 + q)) ** 9, rel=1e-12)
    assert high - low < Fraction(1, 2**100)
    assert "at most 3" in str(found)


def test_mechanisms_without_such_noise_are_refused() -> None:
    domain = pg.Domain({"a": 2, "b": 2})
    facts = [pg.Cuboid("a", equals=[3, 2]), pg.Cuboid("b", equals=[4, 1])]
    ready = pg.Exponential().calibrate(
        pg.queries.identity(domain), pg.Policy(domain, constraints=facts), pg.Epsilon(1)
    )
    with pytest.raises(pg.InputError) as raised:
        log_odds(ready, [2, 1, 2, 0], [3, 0, 1, 1])
    assert raised.value.code == "attacks.mechanism"
    with pytest.raises(pg.InputError, match="expected independent"):
        posterior(ready, [2, 1, 2, 0])
    plain = pg.Laplace().calibrate(pg.queries.identity(domain), pg.Policy(domain), pg.Epsilon(1))
    with pytest.raises(pg.RefusedError, match="values"):
        log_odds(plain, [0, 0, 0, 0], [30_000, 0, 0, 0])
    for output, tables, prior, code in (
        ([1, 2], None, None, "attacks.answers"),
        ([1, 2, 3, 4], [[1, 0, 0, 0]], [1, 1], "attacks.prior"),
        ([1, 2, 3, 4], None, None, "attacks.no-facts"),
    ):
        with pytest.raises(pg.InputError) as raised:
            posterior(plain, output, tables, prior)
        assert raised.value.code == code
    with pytest.raises(pg.InputError) as raised:
        fibre(pg.Policy(domain, constraints=[pg.Cuboid("a")]))
    assert raised.value.code == "attacks.values"


@pytest.mark.parametrize("mechanism", [pg.Cube(), pg.Residuals()])
def test_tables_with_other_published_values_are_no_secret(mechanism: pg.Mechanism) -> None:
    """A mechanism that repeats public facts without noise tells such tables apart, so that no log-odds of its noise are those of the release."""
    domain = pg.Domain({"a": 2, "b": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a")])
    ready = mechanism.calibrate(pg.queries.cuboids(domain, [("a",), ("a", "b")]), policy, pg.Epsilon(1))
    assert log_odds(ready, [2, 0, 1, 1], [1, 1, 1, 1]).largest == 1
    for ask in (
        lambda: log_odds(ready, [2, 0, 1, 1], [2, 1, 1, 0]),
        lambda: posterior(ready, [0] * ready.measure.height, [[2, 0, 1, 1], [2, 1, 1, 0]]),
        lambda: pg.attacks.game(ready, [[2, 0, 1, 1], [2, 1, 1, 0]], [0, 1], runs=10),
        lambda: pg.attacks.discriminant(ready, 2, tables=[[2, 0, 1, 1], [2, 1, 1, 0]]),
    ):
        with pytest.raises(pg.InputError, match="told apart with certainty") as raised:
            ask()
        assert raised.value.code == "attacks.tables"


def test_tables_of_families_of_one_size_are_multiples() -> None:
    domain = pg.Domain({"a": 2})
    families = pg.Families(pg.Policy(domain, constraints=[pg.Total(equals=6)]), 3, exactly=True)
    assert fibre(families).tolist() == [[0, 6], [3, 3], [6, 0]]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_posteriors_are_by_the_rule_of_bayes(data: st.DataObject) -> None:
    domain = pg.Domain({"a": 2, "b": 2})
    rows = [data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))]
    first = data.draw(st.integers(0, sum(rows)))
    policy = pg.Policy(
        domain, constraints=[pg.Cuboid("a", equals=rows), pg.Cuboid("b", equals=[first, sum(rows) - first])]
    )
    ready = pg.Laplace().calibrate(pg.queries.identity(domain), pg.Policy(domain), pg.Epsilon("1/2"))
    output = data.draw(st.lists(st.integers(-3, 6), min_size=4, max_size=4))
    tables = fibre(policy)
    prior = data.draw(st.lists(st.integers(1, 5), min_size=len(tables), max_size=len(tables)))
    weights = np.array(
        [p * exp(-0.5 * np.abs(np.array(output) - t).sum()) for p, t in zip(prior, tables, strict=True)]
    )
    found = posterior(ready, output, tables, prior)
    np.testing.assert_allclose(found.probabilities, weights / weights.sum(), rtol=1e-12)
    low, high = found.chance(lambda table: table[0] >= 1)
    assert float(low) == pytest.approx((weights / weights.sum())[tables[:, 0] >= 1].sum(), abs=1e-12)
    assert 0 <= high - low < Fraction(1, 2**100)
    brute = [
        t
        for t in product(range(sum(rows) + 1), repeat=4)
        if t[0] + t[1] == rows[0] and t[2] + t[3] == rows[1] and t[0] + t[2] == first
    ]
    assert sorted(map(tuple, tables.tolist())) == sorted(brute)


@pytest.mark.parametrize("k", [2, 5, 64])
def test_effective_losses(k: int) -> None:
    policy = chain(k)
    found = effective_epsilon(pg.queries.identity(policy.domain), policy, "0.25")
    assert (found.without_facts, found.without_facts_lower, found.with_facts) == (
        Fraction(k, 4),
        Fraction(k, 4),
        Fraction(1, 4),
    )
    assert found.exact
    bounded = pg.Policy(policy.domain, constraints=[pg.Total()])
    assert effective_epsilon(pg.queries.identity(policy.domain), bounded, 1).without_facts == 2
    graph = pg.Policy(policy.domain, pg.PolicyGraph.full(policy.domain))
    with pytest.raises(pg.InputError) as raised:
        effective_epsilon(pg.queries.identity(policy.domain), graph, 1)
    assert raised.value.code == "attacks.no-facts"
    with pytest.raises(pg.InputError) as raised:
        effective_epsilon(pg.queries.identity(policy.domain), None, 1)  # type: ignore[arg-type]
    assert raised.value.code == "attacks.policy"


def _facts(k: int = 6) -> pg.Policy:
    domain = pg.Domain({"r": k})
    return pg.Policy(domain, constraints=[pg.count({"r": [i, i + 1]}) for i in range(k - 1)])


def test_the_loss_of_plain_noise_is_bounded_as_it_is() -> None:
    """The bound of independent noise is the effective epsilon, and the exact log-odds of the pair attain it."""
    policy = _facts()
    for query in (
        pg.queries.identity(policy.domain),
        pg.queries.prefix(policy.domain, "r"),
        pg.queries.matrix(policy.domain, [[2, 0, 0, 0, 0, 0], [0, 0, 3, 0, 0, 0]]),
    ):
        ready = pg.Laplace().calibrate(query, pg.Policy(policy.domain), pg.Epsilon("1/3"))
        bound = pg.attacks.loss_bound(ready, policy)
        found = pg.attacks.effective_epsilon(query, policy, "1/3")
        assert bound.value == found.without_facts
        pair = pg.attacks.log_odds(ready, bound.sensitivity.table("before"), bound.sensitivity.table("after"))
        assert pair.largest == bound.value


def test_the_loss_of_other_mechanisms_is_bounded_by_their_steps() -> None:
    policy = _facts()
    query = pg.queries.identity(policy.domain)
    ready = pg.Partitioned().calibrate(query, pg.Policy(policy.domain), pg.Epsilon("1/4"))
    bound = pg.attacks.loss_bound(ready, policy)
    assert bound.value == Fraction(6, 4)
    report = pg.audit(ready, policy, samples=4000, rng=pg.SeededRng(3))
    assert not report.passed
    assert report.lower_bound <= float(bound.value)
    full = pg.PolicyGraph.full(policy.domain)
    moved = pg.Partitioned().calibrate(query, pg.Policy(policy.domain, full), pg.Epsilon("1/4"))
    known = pg.Policy(policy.domain, full, [pg.count({"r": [0, 1]}), pg.count({"r": [2, 3]})])
    steps = pg.sensitivity(query, known).value / 2
    assert pg.attacks.loss_bound(moved, known).value == steps / 4
    # A cap hides small changes only, and the plain release knows nothing of it.
    capped = pg.Policy(policy.domain, None, policy.constraints, at_most_records=1)
    assert pg.attacks.loss_bound(ready, capped).value == bound.value


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda f, q: (pg.Laplace().calibrate(q, f, pg.Epsilon(1)), f), "attacks.mechanism"),
        (lambda f, q: (pg.Gaussian().calibrate(q, pg.Policy(f.domain), pg.Rho(1)), f), "attacks.mechanism"),
        (
            lambda f, q: (pg.Laplace().calibrate(q, pg.Policy(f.domain), pg.Epsilon(1)), pg.Policy(f.domain)),
            "attacks.no-facts",
        ),
        (
            lambda f, q: (
                pg.Laplace().calibrate(q, pg.Policy(f.domain), pg.Epsilon(1)),
                pg.Policy(f.domain, pg.PolicyGraph.full(f.domain), f.constraints),
            ),
            "attacks.mechanism",
        ),
        (
            lambda f, q: (
                pg.Partitioned().calibrate(
                    q, pg.Policy(f.domain, pg.PolicyGraph.line(f.domain)), pg.Epsilon(1)
                ),
                pg.Policy(f.domain, pg.PolicyGraph.line(f.domain), [pg.Total()]),
            ),
            "attacks.plain",
        ),
    ],
)
def test_a_bound_that_cannot_be_told_gets_a_sentence(make, code: str) -> None:
    policy = _facts()
    with pytest.raises(pg.PolicyGraphError) as raised:
        pg.attacks.loss_bound(*make(policy, pg.queries.identity(policy.domain)))
    assert raised.value.code == code
