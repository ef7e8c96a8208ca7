"""Sparse releases: the law of the whole noisy table cut at a threshold, without the whole table."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import policygraph as pg
from policygraph.audit import audit
from policygraph.curator.noise import rare
from policygraph.curator.noise.rare import draw_count, draw_passing, draw_values
from policygraph.curator.requests import mechanism_form
from policygraph.curator.runners import sparse as runner
from policygraph.distributions.integers import (
    GaussianTail,
    LaplaceTail,
    PassingCount,
    expected_passing,
    thresholds,
)
from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms import sparse as module
from tests.gate import noisy, noisy_many
from tests.oracles import sparse as oracle
from tests.oracles.probabilities import gaussian_pmf_bounds, laplace_pmf_bounds

SMALL = pg.Domain({"a": 2, "b": ["x", "y"]})
TAILS = [
    LaplaceTail(Fraction(1), 1),
    LaplaceTail(Fraction(5, 2), 6),
    GaussianTail(Fraction(1), 1),
    GaussianTail(Fraction(9, 2), 4),
]


def chance_bounds(tail):
    """P(Z >= start) between rationals, summed value by value; what is beyond the last value is below 2^-100."""
    bounds = laplace_pmf_bounds if isinstance(tail, LaplaceTail) else gaussian_pmf_bounds
    each = [
        bounds(k, tail.parameter, 160) for k in range(tail.start, tail.start + 80 * (1 + int(tail.parameter)))
    ]
    return sum(low for low, _ in each), sum(high for _, high in each) + Fraction(1, 2**100)


tails = st.one_of(
    st.builds(LaplaceTail, st.fractions("1/8", 6, max_denominator=9), st.integers(1, 12)),
    st.builds(GaussianTail, st.fractions("1/4", 9, max_denominator=9), st.integers(1, 7)),
)


@given(tails, st.integers(8, 90))
@settings(max_examples=80, deadline=None)
def test_odds_enclose_those_summed_value_by_value(tail, bits):
    low, high = chance_bounds(tail)
    odds_low, odds_high = tail.odds(bits)
    assert Fraction(odds_low, 2**bits) <= high / (1 - high)
    assert Fraction(odds_high, 2**bits) >= low / (1 - low)
    assert odds_high - odds_low <= 3
    assert 2**tail.log2_chance == pytest.approx(float(low), rel=1e-9)
    assert expected_passing(tail, 1000) == pytest.approx(1000 * float(low), rel=1e-9)


@given(tails, st.sampled_from([1, 2, 3, 7, 30, 5000, 100_000]))
@settings(max_examples=60, deadline=None)
def test_numbers_of_passing_cells_are_binomial(tail, cells):
    low, high = chance_bounds(tail)
    if cells * high > 40:
        return
    first, lows, highs = thresholds(PassingCount(tail, cells), 64, 96)
    below_low = below_high = Fraction(0)
    for k in range(min(cells, len(lows) + first - 1)):
        if k >= first:
            assert Fraction(lows[k - first], 2**96) <= below_high + Fraction(1, 2**60)
            assert Fraction(highs[k - first], 2**96) >= below_low - Fraction(1, 2**60)
        # (1 - p)^m falls in p, so that its bounds are taken at the other end.
        below_low += comb(cells, k) * low**k * _power(1 - high, cells - k)[0]
        below_high += comb(cells, k) * high**k * _power(1 - low, cells - k)[1]


def _power(base, exponent, bits=200):
    """A power of a rational between rationals of few digits."""
    low = high = Fraction(1)
    square_low = Fraction(int(base * 2**bits), 2**bits)
    square_high = square_low + Fraction(1, 2**bits)
    while exponent:
        if exponent & 1:
            low = Fraction(int(low * square_low * 2**bits), 2**bits)
            high = Fraction(int(high * square_high * 2**bits) + 1, 2**bits)
        square_low = Fraction(int(square_low * square_low * 2**bits), 2**bits)
        square_high = Fraction(int(square_high * square_high * 2**bits) + 1, 2**bits)
        exponent >>= 1
    return low, high


def fits(observed, expected):
    """p-value of counts against probabilities, rare outcomes together."""
    n = sum(observed)
    pairs = sorted(zip(expected, observed, strict=True))
    merged, p, o = [], 0.0, 0
    for share, count in pairs:
        p, o = p + share, o + count
        if p * n >= 8:
            merged.append((p, o))
            p, o = 0.0, 0
    merged[-1] = (merged[-1][0] + p, merged[-1][1] + o)
    shares = np.array([m[0] for m in merged])
    return stats.chisquare([m[1] for m in merged], shares / shares.sum() * n).pvalue


@pytest.mark.parametrize("per_block", [8, 2])
@pytest.mark.parametrize("tail", TAILS, ids=str)
def test_counts_over_several_blocks_and_a_rest(monkeypatch, per_block, tail):
    monkeypatch.setattr(rare, "_PER_BLOCK", per_block)
    p = 2**tail.log2_chance
    cells = 3 * 2 ** max(0, int(np.log2(per_block) - tail.log2_chance)) + 5
    source = pg.SeededRng(f"counts {per_block}")
    drawn = [draw_count(tail, cells, source) for _ in range(6000)]
    assert max(drawn) <= cells
    observed = np.bincount(drawn, minlength=cells + 1)
    assert fits(observed, stats.binom.pmf(np.arange(cells + 1), cells, p)) > 1e-4
    assert fits(observed, stats.binom.pmf(np.arange(cells + 1), cells, 0.9 * p)) < 1e-6


@pytest.mark.parametrize("tail", TAILS, ids=str)
def test_what_passes_has_the_law_of_the_noise_given_that(tail):
    values = draw_values(tail, 20_000, pg.SeededRng(2))
    assert values.min() == tail.start
    pmf = oracle.laplace_pmf if isinstance(tail, LaplaceTail) else oracle.gaussian_pmf
    top = tail.start + 60
    shares = np.array([pmf(k, tail.parameter) for k in range(tail.start, top + 1)])
    observed = np.bincount(np.minimum(values, top) - tail.start, minlength=61)
    assert fits(observed, shares / shares.sum()) > 1e-4


def test_every_set_of_cells_is_equally_likely():
    source, seen = pg.SeededRng(4), {}
    tail = LaplaceTail(Fraction(2), 1)
    for _ in range(12_000):
        cells, _ = draw_passing(tail, (3, 1, 2), source)
        key = tuple(map(tuple, cells.tolist()))
        assert len(set(key)) == len(key)
        seen[key] = seen.get(key, 0) + 1
    assert len(seen) == 2**6
    p = 2**tail.log2_chance
    shares = [p ** len(key) * (1 - p) ** (6 - len(key)) for key in seen]
    assert fits(list(seen.values()), shares) > 1e-4


LOSSES = [("laplace", pg.Epsilon(1)), ("gaussian", pg.Rho("1/8"))]


@pytest.mark.parametrize("table", [[0, 0, 0, 0], [2, 0, 0, 5]])
@pytest.mark.parametrize(("law", "loss"), LOSSES)
def test_the_law_is_that_of_the_dense_table_cut_at_the_threshold(law, loss, table):
    ready = pg.Sparse(threshold=2).calibrate(pg.queries.identity(SMALL), pg.Policy(SMALL), loss)
    top = 6
    expected = oracle.joint_law(table, law, ready.inner.parameter, 2, top)
    assert sum(expected.values()) == pytest.approx(1)
    runs = 12_000
    outputs = noisy_many(ready, np.array(table), runs, pg.SeededRng("sparse"))
    literal = oracle.dense(table, law, ready.inner.parameter, 2, runs, pg.SeededRng("dense"))
    for made in (outputs, literal):
        rows, counts = np.unique(np.minimum(made, top), axis=0, return_counts=True)
        found = {tuple(row): int(count) for row, count in zip(rows.tolist(), counts, strict=True)}
        assert fits([found.get(key, 0) for key in expected], list(expected.values())) > 1e-4
    for wrong in (Fraction(7, 10), Fraction(13, 10)):
        other = oracle.joint_law(table, law, ready.inner.parameter * wrong, 2, top)
        assert fits([found.get(key, 0) for key in other], list(other.values())) < 1e-6


@pytest.mark.parametrize("loss", [pg.Epsilon(2), pg.Rho("1/2")])
@pytest.mark.parametrize(
    "policy", [pg.Policy(SMALL), pg.Policy(SMALL, pg.PolicyGraph.full(SMALL))], ids=["free", "full"]
)
def test_it_passes_the_audit_which_has_power(policy, loss):
    ready = pg.Sparse(threshold=1).calibrate(pg.queries.identity(SMALL), policy, loss)
    assert audit(ready, samples=4000, source=pg.SeededRng(1)).passed
    boast = type(loss)(loss.value / 4)
    assert not audit(ready, loss=boast, samples=4000, source=pg.SeededRng(2)).passed


def test_listing_only_cells_that_hold_a_record_is_caught():
    ready = pg.Sparse(threshold=1).calibrate(pg.queries.identity(SMALL), pg.Policy(SMALL), pg.Epsilon(1))

    def broken(table, source):
        at = np.flatnonzero(table)
        reached = (
            table[at]
            + noisy(pg.Laplace().calibrate(ready.query, ready.policy, ready.loss), table, source)[at]
        )
        return tuple(at[reached >= 1].tolist())

    assert not audit(broken, ready.policy, epsilon=1, samples=1200, source=pg.SeededRng(3)).passed


def test_a_base_beyond_64_bits_end_to_end(tmp_path):
    domain = pg.Domain({f"a{at}": 16 for at in range(20)} | {"b": ["no", "yes"]})
    draws = np.random.default_rng(1)
    rows = 3000
    common = draws.random(rows) < 0.1
    columns = {name: np.where(common, 3, draws.integers(0, 16, rows)) for name in domain.names[:-1]}
    columns["b"] = np.where(common, "yes", "no")
    path = tmp_path / "wide.parquet"
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)
    made = pg.release(
        pg.queries.identity(domain),
        pg.Policy(domain),
        str(path),
        epsilon=1,
        mechanism=pg.Sparse(spurious=5),
        source=pg.SeededRng(3),
    )
    [table] = made.tables
    labels = list(zip(*(column.tolist() for column in map(np.asarray, table.labels)), strict=True))
    at = labels.index((*[3] * 20, "yes"))
    assert abs(int(table.values[at]) - int(common.sum())) < 40
    assert 0 < len(labels) < 40
    assert table.values.min() >= made.record["sparse"]["threshold"]
    assert made.record["sparse"]["cells"] == str(2 * 16**20)
    made.to_parquet(tmp_path / "out.parquet")
    again = pg.Release.from_parquet(tmp_path / "out.parquet")
    assert again.tables[0].values.tolist() == table.values.tolist()
    assert "empty ones included" in str(made)


def test_the_default_threshold_is_the_least_with_few_empty_cells():
    query, policy = pg.queries.identity(pg.Domain({"a": 10**6})), pg.Policy(pg.Domain({"a": 10**6}))
    for loss in (pg.Epsilon("1/3"), pg.Rho("1/20")):
        ready = pg.Sparse(spurious=10).calibrate(query, policy, loss)
        below = pg.Sparse(threshold=ready.threshold - 1).calibrate(query, policy, loss)
        assert ready.spurious <= 10 < below.spurious


def test_without_noise_the_list_is_exact():
    policy = pg.Policy(SMALL, constraints=[pg.Cuboid("a", "b")])
    ready = pg.Sparse(threshold=3).calibrate(pg.queries.identity(SMALL), policy, pg.Epsilon(1))
    assert ready.spurious == 0
    made = ready.run([5, 0, 2, 3], pg.SeededRng(1))
    assert made.values().tolist() == [5, 3]
    assert [list(column) for column in made.tables[0].labels] == [[0, 1], ["x", "y"]]
    assert len(ready.run([1, 0, 2, 0], pg.SeededRng(1)).values()) == 0


def test_two_thresholds_are_two_requests():
    query, policy = pg.queries.identity(SMALL), pg.Policy(SMALL)
    mechanisms = [pg.Sparse(threshold=t) for t in (2, 3)]
    ready = [each.calibrate(query, policy, pg.Epsilon(1)) for each in mechanisms]
    for a, b in (mechanisms, ready):
        assert mechanism_form(a) != mechanism_form(b)


def test_refusals():
    query, policy, loss = pg.queries.identity(SMALL), pg.Policy(SMALL), pg.Epsilon(1)
    for bad in (0, -3, True, 1.5):
        with pytest.raises(InputError) as caught:
            pg.Sparse(threshold=bad)
        assert caught.value.code == "sparse.threshold"
    with pytest.raises(InputError) as caught:
        pg.Sparse(spurious=0)
    assert caught.value.code == "sparse.spurious"
    for other in (pg.queries.all_cuboids(SMALL), pg.queries.cuboids(SMALL, [()])):
        with pytest.raises(InputError) as caught:
            pg.Sparse().calibrate(other, policy, loss)
        assert caught.value.code == "sparse.query"
    large = pg.Domain({"a": 10**12})
    with pytest.raises(RefusedError) as caught:
        pg.Sparse(threshold=1).calibrate(pg.queries.identity(large), pg.Policy(large), loss)
    assert caught.value.code == "sparse.too-many"
    with pytest.raises(RefusedError) as caught:
        pg.Sparse(threshold=50).calibrate(pg.queries.identity(large), pg.Policy(large), loss).comparable([])
    assert caught.value.code == "sparse.audit"
    with pytest.raises(RefusedError) as caught:
        pg.Sparse(threshold=50).calibrate(query, policy, pg.Rho("1/1000000000"))
    assert caught.value.code == "noise.tail-too-large"
    with pytest.raises(InputError) as caught:
        LaplaceTail(Fraction(1), 0)
    assert caught.value.code == "noise.tail"
    assert module.MOST_SHOWN == 10**7


@given(st.integers(0, 2**32), st.integers(0, 60), st.integers(0, 60), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_rows_among_others(seed, n, m, width):
    draws = np.random.default_rng(seed)
    rows, others = draws.integers(0, 4, (n, width)), draws.integers(0, 4, (m, width))
    there = {tuple(row) for row in others.tolist()}
    assert runner._among(rows, others).tolist() == [tuple(row) in there for row in rows.tolist()]
    held = runner.MIXER
    try:
        runner.MIXER = 0  # every word is the last column, so that unequal rows share words
        assert runner._among(rows, others).tolist() == [tuple(row) in there for row in rows.tolist()]
    finally:
        runner.MIXER = held


def test_the_list_is_in_the_order_of_the_cells_whatever_the_number_of_attributes():
    """Cells with records come first before they are sorted: an order by some attributes alone would tell them from empty ones."""
    domain = pg.Domain(dict.fromkeys("abcd", 3))
    ready = pg.Sparse(threshold=1).calibrate(
        pg.queries.identity(domain), pg.Policy(domain), pg.Epsilon("1/2")
    )
    table = np.zeros(81, dtype=np.int64)
    table[[80, 40, 44, 5]] = 9
    for seed in range(3):
        cells = [tuple(row) for row in noisy(ready, table, pg.SeededRng(seed))[:, :-1].tolist()]
        assert len(cells) > 20
        assert cells == sorted(set(cells))
