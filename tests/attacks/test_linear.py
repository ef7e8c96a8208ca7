"""Linear reconstruction against pseudo-inverses, closed forms and simulation."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, diags_array

import policygraph as pg
from policygraph.attacks import parts, reconstruct
from tests.oracles.attacks import best_estimates
from tests.strategies import SHAPES, facts, queries


def chain(k: int) -> pg.Policy:
    domain = pg.Domain({"r": k})
    return pg.Policy(domain, constraints=[pg.count({"r": [i, i + 1]}) for i in range(k - 1)])


def rows_of(policy: pg.Policy) -> np.ndarray:
    out = []
    for fact in policy.constraints:
        if isinstance(fact, pg.StructuralZero):
            for cell in fact.forbidden(policy.domain):
                out.append(np.eye(policy.domain.size)[cell])
            continue
        listed = fact.rows(policy.domain)
        made = np.zeros((listed.height, policy.domain.size))
        np.add.at(made, (listed.row, listed.cell), listed.coefficient)
        out += list(made)
    return np.array(out).reshape(-1, policy.domain.size)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_estimates_and_variances_are_those_of_the_book(seed: int) -> None:
    rng = random.Random(seed)
    domain = pg.Domain(rng.choice(SHAPES))
    policy = pg.Policy(domain, constraints=rng.choice(facts(domain, rng)))
    picked = [query for query in queries(domain, rng) if rng.random() < 0.6] or [pg.queries.identity(domain)]
    variances = [rng.choice([0.5, 2.0, 8.0]) for _ in picked]
    truth = np.array([rng.randint(0, 9) for _ in range(domain.size)], dtype=np.int64)
    for fact in policy.constraints:
        if isinstance(fact, pg.StructuralZero):
            truth[fact.forbidden(domain)] = 0
    rows = rows_of(policy)
    matrix = np.concatenate([query.columns(np.arange(domain.size)).toarray() for query in picked])
    noisy = [np.asarray(query.answer(truth)) + rng.random() for query in picked]
    spread = np.concatenate([np.full(q.height, v) for q, v in zip(picked, variances, strict=True)])
    estimate, variance = best_estimates(rows, rows @ truth, matrix, np.concatenate(noisy), spread)
    attack = reconstruct(policy, picked, variances)
    found = attack.variance()
    assert np.array_equal(np.isinf(found), np.isinf(variance))
    sure = np.isfinite(variance)
    np.testing.assert_allclose(found[sure], variance[sure], rtol=1e-8, atol=1e-9)
    guess = attack.estimate(noisy, facts=rows @ truth)
    np.testing.assert_allclose(guess[sure], estimate[sure], rtol=1e-7, atol=1e-7)
    assert np.allclose(rows @ guess, rows @ truth)
    assert attack.unknowns == domain.size - np.linalg.matrix_rank(rows)


def around(k: int) -> pg.Policy:
    """Sums of neighbours around a circle: no row determines a cell, and a circle of odd length leaves nothing open."""
    domain = pg.Domain({"r": k})
    return pg.Policy(domain, constraints=[pg.count({"r": [i, (i + 1) % k]}) for i in range(k)])


def degrees(k: int) -> pg.Policy:
    return pg.Policy(pg.Network(k), constraints=[pg.Degrees("all")])


@pytest.mark.parametrize("policy", [around(5), around(6), degrees(3), degrees(5)], ids=str)
def test_estimates_have_the_public_sums_where_no_row_determines_a_cell(policy: pg.Policy) -> None:
    rng = np.random.default_rng(3)
    size = policy.domain.size
    truth = rng.integers(0, 9, size)
    rows, noisy = rows_of(policy), truth + rng.random(size)
    attack = reconstruct(policy, pg.queries.identity(policy.domain), 2.0)
    estimate, variance = best_estimates(rows, rows @ truth, np.eye(size), noisy, np.full(size, 2.0))
    np.testing.assert_allclose(attack.variance(), variance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(attack.estimate([noisy], facts=rows @ truth), estimate, atol=1e-9)
    np.testing.assert_allclose(rows @ attack.estimate([noisy], facts=rows @ truth), rows @ truth, atol=1e-9)


def test_public_sums_that_contradict_each_other_get_a_sentence() -> None:
    attack = reconstruct(around(5), pg.queries.identity(pg.Domain({"r": 5})), 2.0)
    assert attack.estimate([[0] * 5], facts=[1, 0, 0, 0, 0]).round(9).tolist() == [0.5, 0.5, -0.5, 0.5, -0.5]
    even = reconstruct(around(4), pg.queries.identity(pg.Domain({"r": 4})), 2.0)
    with pytest.raises(pg.InputError, match="contradict") as caught:
        even.estimate([[0] * 4], facts=[1, 0, 0, 0])
    assert caught.value.code == "attacks.facts"


@pytest.mark.parametrize("k", [2, 3, 17, 256])
def test_the_chain_of_no_free_lunch_section_4_1(k: int) -> None:
    epsilon = 0.5
    attack = reconstruct(chain(k), pg.queries.identity(pg.Domain({"r": k})), 2 / epsilon**2)
    np.testing.assert_allclose(attack.variance(), 2 / (k * epsilon**2), rtol=1e-9)


def test_a_chain_of_a_million_values() -> None:
    k = 10**6
    facts = diags_array([np.ones(k - 1), np.ones(k - 1)], offsets=[0, 1], shape=(k - 1, k))
    attack = reconstruct(facts, pg.queries.identity(pg.Domain({"r": k})), 2.0)
    np.testing.assert_allclose(attack.variance([0, 1, k // 2, k - 1]), 2 / k, rtol=1e-9)


def test_the_table_is_rebuilt_from_plain_noise_and_not_from_noise_for_the_policy() -> None:
    k = 1024
    policy, query = chain(k), pg.queries.identity(pg.Domain({"r": k}))
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 30, k)
    facts = truth[:-1] + truth[1:]
    plain = reconstruct(policy, query, 2.0)
    noisy = truth + rng.laplace(size=k)
    assert np.array_equal(np.rint(plain.estimate([noisy], facts)), truth)
    # One unit of the only free number changes all 1,024 counts: noise of scale 1,024 hides it, by the sensitivity of the policy.
    safe = reconstruct(policy, query, 2.0 * k**2)
    assert float(safe.deviation([0])[0]) > 40


def test_margins_have_the_closed_form_and_the_general_way_agrees() -> None:
    domain = pg.Domain({"a": 4, "b": 3, "c": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a", "b"), pg.Cuboid("b", "c")])
    query = pg.queries.cuboid(domain, "a", "b", "c")
    short = reconstruct(policy, query, 8.0)
    long = reconstruct(policy, [query], [np.full(query.height, 8.0)])
    assert short._closed
    assert not long._closed
    assert short.unknowns == long.unknowns == 3 * 3 * 1
    np.testing.assert_allclose(short.variance(), long.variance(), rtol=1e-9)


def test_simulated_errors_have_the_stated_variance() -> None:
    domain = pg.Domain({"a": 3, "b": 3})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    query = pg.queries.cuboid(domain, "a", "b")
    attack = reconstruct(policy, query, 8.0)
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 50, 9)
    facts = np.concatenate([truth.reshape(3, 3).sum(axis=1), truth.reshape(3, 3).sum(axis=0)])
    errors = np.array(
        [attack.estimate([truth + rng.laplace(scale=2, size=9)], facts) - truth for _ in range(4000)]
    )
    squares = np.square(errors)
    error = squares.std(axis=0) / np.sqrt(len(squares))
    assert np.all(np.abs(squares.mean(axis=0) - attack.variance()) < 4.5 * error)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda p, q: reconstruct(p, q, 0.0), "attacks.noise"),
        (lambda p, q: reconstruct(p, q, "loud"), "attacks.noise"),
        (lambda p, q: reconstruct(p, q, [1.0, 2.0]), "attacks.noise"),
        (lambda p, q: reconstruct(p, [q, q], [1.0]), "attacks.noise"),
        (lambda p, q: reconstruct(p, [], 1.0), "attacks.queries"),
        (lambda p, q: reconstruct(np.ones((2, 3)), q, 1.0), "attacks.facts"),
        (lambda p, q: reconstruct(p, q, 1.0).estimate([]), "attacks.answers"),
        (lambda p, q: reconstruct(p, q, 1.0).estimate([[1.0]], facts=[1, 2, 3]), "attacks.answers"),
        (lambda p, q: reconstruct(p, q, 1.0).estimate([[1, 2, 3, 4]]), "attacks.facts"),
        (lambda p, q: reconstruct(p, q, 1.0).estimate([[1, 2, 3, 4]], facts=[1]), "attacks.facts"),
        (lambda p, q: reconstruct(np.ones((1, 4)), q, 1.0).estimate([[1, 2, 3, 4]]), "attacks.facts"),
    ],
)
def test_bad_input_gets_a_sentence(change, code: str) -> None:
    with pytest.raises(pg.InputError) as raised:
        change(chain(4), pg.queries.identity(pg.Domain({"r": 4})))
    assert raised.value.code == code


def test_too_many_unknowns_that_hang_together_are_refused() -> None:
    domain = pg.Domain({"r": 5000})
    with pytest.raises(pg.RefusedError) as raised:
        reconstruct(
            pg.Policy(domain, constraints=[pg.count({"r": [0, 1]})]), pg.queries.prefix(domain, "r"), 1.0
        ).variance()
    assert raised.value.code == "attacks.size"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_both_sides_of_a_part_give_the_same(seed: int) -> None:
    """From the unknowns and from the sums, against the pseudo-inverses of the book."""
    rng = np.random.default_rng(seed)
    cells, sums, others = int(rng.integers(2, 9)), int(rng.integers(1, 6)), int(rng.integers(0, 3))
    facts = rng.integers(-1, 3, (sums, cells)) * (rng.random((sums, cells)) < 0.6)
    matrix = np.concatenate([np.diag(rng.integers(1, 4, cells)), rng.integers(-1, 2, (others, cells))])
    spread = rng.choice([0.5, 2.0, 8.0], cells + others)
    truth = rng.integers(0, 9, cells)
    noisy = matrix @ truth + rng.random(cells + others)
    estimate, variance = best_estimates(facts, facts @ truth, matrix, noisy, spread)
    rows, values = np.concatenate([facts, matrix]), np.concatenate([facts @ truth, noisy])
    with pytest.MonkeyPatch.context() as patch:
        for few, entries in ((10**6, parts.MOST_ENTRIES), (0, 0)):
            patch.setattr(parts, "FEW_CELLS", few)
            patch.setattr(parts, "MOST_ENTRIES", entries)
            found = parts.Parts(rows, np.concatenate([np.zeros(sums), spread]))
            np.testing.assert_allclose(found.variance(), variance, rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(found.estimate(values), estimate, rtol=1e-7, atol=1e-7)
            assert found.unknowns == cells - np.linalg.matrix_rank(facts)


def test_networks_and_tables_with_thousands_of_open_cells() -> None:
    """Closed forms by symmetry: of n cells that all look alike, with facts of rank r, the variance is that of the noise times 1 - r / n."""
    network = degrees(120)
    found = reconstruct(network, pg.queries.identity(network.domain), 2.0)
    np.testing.assert_allclose(found.variance(), 2 * (1 - 2 / 119), rtol=1e-9)
    assert found.unknowns == 120 * 119 // 2 - 120
    domain = pg.Domain({"a": 70, "b": 80})
    table = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    apart = reconstruct(rows_of(table), pg.queries.identity(domain), 2.0)
    short = reconstruct(table, pg.queries.cuboid(domain, "a", "b"), 2.0)
    assert short.uniform
    assert not apart.uniform
    np.testing.assert_allclose(apart.variance(), short.variance(), rtol=1e-9)
    assert apart.unknowns == short.unknowns == 69 * 79
    truth = np.random.default_rng(1).integers(0, 50, domain.size)
    guess = apart.estimate([truth + 0.25], rows_of(table) @ truth)
    np.testing.assert_allclose(guess, truth, atol=1e-8)


def test_many_parts_that_share_nothing() -> None:
    """Chains of 100 values, and zeros: unknowns of one part are no burden to another."""
    k = 100_000
    at = np.arange(k - 1)
    at = at[(at + 1) % 100 != 0]
    where = np.concatenate([np.arange(len(at))] * 2), np.concatenate([at, at + 1])
    facts = csr_array((np.ones(2 * len(at)), where), shape=(len(at), k))
    found = reconstruct(facts, pg.queries.identity(pg.Domain({"r": k})), 2.0)
    assert found.unknowns == k // 100
    np.testing.assert_allclose(found.variance(), 2 / 100, rtol=1e-9)


def test_cells_that_nothing_tells_apart_and_cells_that_are_empty() -> None:
    domain = pg.Domain({"a": 3, "b": 2})
    policy = pg.Policy(domain, constraints=[pg.StructuralZero([(0, 0), (1, 0)]), pg.count({"a": 0})])
    found = reconstruct(policy, pg.queries.cuboid(domain, "a"), 2.0)
    # (0, 1) is all of a = 0, which is public; (1, 1) is all of a = 1; the two cells of a = 2 are seen together only.
    assert found.variance().round(9).tolist() == [0.0, 0.0, 0.0, 2.0, np.inf, np.inf]
    assert found.unknowns == 3
    assert found.estimate([[4.5, 7.0, 9.0]], facts=[0, 0, 5]).round(9).tolist() == [0, 5, 0, 7, 4.5, 4.5]


def test_an_answer_that_is_seen_much_better_does_not_hide_another() -> None:
    """One number a million times as large as the other: both cells are known, each as well as its own answer says."""
    domain = pg.Domain({"a": 3})
    query = pg.queries.matrix(domain, [[10**6, 0, 0], [0, 1, 0]])
    found = reconstruct(pg.Policy(domain), query, 2.0)
    np.testing.assert_allclose(found.variance(), [2e-12, 2.0, np.inf], rtol=1e-9)
    np.testing.assert_allclose(found.estimate([[3e6, 5.0]]), [3.0, 5.0, 0.0], atol=1e-9)
    public = pg.Policy(domain, constraints=[pg.Total()])
    np.testing.assert_allclose(reconstruct(public, query, 2.0).variance(), [2e-12, 2.0, 2.0], rtol=1e-9)


@pytest.mark.parametrize(
    ("sums", "variances", "unknowns"),
    [
        (np.eye(3), [0, 0, 0], 0),
        (np.zeros((1, 3)), [2, 2, 2], 3),
        (np.zeros((0, 3)), [2, 2, 2], 3),
        (np.array([[2, 0, 0], [0, 0, 3], [1, 1, 1]]), [0, 0, 0], 0),
        (np.array([[1, 0, 0], [2, 0, 0]]), [0, 2, 2], 2),
    ],
)
def test_sums_that_leave_all_or_nothing_open(sums, variances: list[float], unknowns: int) -> None:
    found = reconstruct(sums, pg.queries.identity(pg.Domain({"a": 3})), 2.0)
    assert found.variance().round(9).tolist() == variances
    assert found.unknowns == unknowns
    truth = np.array([1, 2, 3])
    assert found.estimate([truth], sums @ truth).round(9).tolist() == [1, 2, 3]
