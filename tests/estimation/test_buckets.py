"""Estimates from noisy cells and buckets: against dense projections, and never worse than the noisy cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.estimation import buckets
from policygraph.estimation.buckets import least_risk, outlying, pooled
from policygraph.mechanisms import Laplace, Partitioned, TransformedConsistent, TransformedLaplace
from policygraph.mechanisms.partitioned import Partition
from policygraph.mechanisms.partitioned.levels import apart, nested
from tests.oracles import partition as oracle


@settings(deadline=None, max_examples=60)
@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=24),
    seed=st.integers(0, 999),
    height=st.sampled_from([0, 5, 500]),
    aimed=st.booleans(),
    line=st.booleans(),
)
def test_the_estimate_is_that_of_dense_projections(labels, seed, height, aimed, line):
    rng = np.random.default_rng(seed)
    size = len(labels)
    noisy = height * rng.random(size) + rng.laplace(0, 3, size)
    step = np.eye(size) - np.eye(size, k=1) if line else np.eye(size)
    covariance = 18.0 * step @ step.T
    levels = list(nested([Partition(labels)], None))
    target = Partition(labels).spread(rng.integers(0, 50, len(set(labels)))) if aimed else None

    def variances(given):
        sums = (np.arange(given.max() + 1)[:, None] == given).astype(float)
        return np.diag(sums @ covariance @ sums.T)

    for fewest in (1, buckets.fewest(size, 6.0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(buckets, "fewest", lambda cells, spread, least=fewest: least)
            found = pooled(noisy, levels, variances, spread=6.0, target=target)
        wanted = oracle.shrunk(noisy, levels, covariance, fewest, 6.0, target)
        assert np.allclose(found, wanted)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 99))
def test_levels_are_nested_and_end_with_the_buckets(labels, seed):
    partition = Partition(labels)
    order = np.random.default_rng(seed).permutation(len(labels))
    before = np.arange(len(labels))
    for length, found in enumerate(nested([partition], order), start=1):
        assert len(set(zip(before.tolist(), found.tolist(), strict=True))) == before.max() + 1
        assert np.bincount(found).max() <= 2**length
        before = found
    assert Partition(before) == partition
    aside = np.random.default_rng(seed).random(len(labels)) < 0.3
    left = apart(before, aside)
    assert sorted(set(left.tolist())) == list(range(left.max() + 1))
    assert all((left == left[cell]).sum() == 1 for cell in np.flatnonzero(aside))
    assert Partition(left[~aside]) == Partition(before[~aside]) if (~aside).any() else True


def test_few_cells_of_equal_counts_stand_out_and_tall_ones_do():
    rng = np.random.default_rng(3)
    labels, edges = np.repeat(np.arange(100), 100), np.full(10_000, 2.0)
    noise = rng.laplace(0, 7, 10_000) - rng.laplace(0, 7, 10_000)
    assert outlying(noise, labels, edges, 7.0).sum() <= 4
    noise[5] += 400
    assert outlying(noise, labels, edges, 7.0)[5]


def test_the_better_of_two_estimates_is_taken():
    rng = np.random.default_rng(1)
    noise = np.rint(rng.laplace(0, 20, (2, 4000))).astype(np.int64)
    flat = lambda cells: np.full(cells.shape, np.mean(cells))  # noqa: E731
    for truth, wanted in ((np.full(4000, 30), 1), (rng.integers(0, 5000, 4000), 0)):
        found = least_risk([np.copy, flat], truth + noise[0], noise[1:])
        assert np.array_equal(found, [np.copy, flat][wanted](truth + noise[0]))


SIZE = 1024
RNG = np.random.default_rng(11)
SHAPES = {
    "empty": np.zeros(SIZE, dtype=np.int64),
    "one cell": np.eye(1, SIZE, 300, dtype=np.int64)[0] * 90_000,
    "uniform": np.full(SIZE, 40),
    "steps": np.repeat(RNG.integers(0, 900, 16), SIZE // 16),
    "spikes": np.where(RNG.random(SIZE) < 0.05, RNG.integers(0, 9000, SIZE), 0),
    "heavy tail": np.minimum(RNG.pareto(0.7, SIZE), 10**5).astype(np.int64),
    "dense": RNG.integers(0, 5000, SIZE),
    "alternating": np.tile([0, 700], SIZE // 2),
}
POLICIES = {"line": pg.PolicyGraph.line, "one record more or less": lambda domain: None}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_buckets_cost_no_more_than_their_share(policy, shape):
    domain = pg.Domain({"cell": SIZE})
    asked = pg.Policy(domain, POLICIES[policy](domain))
    cells = SHAPES[shape]
    for epsilon in ("1/10", "1/100"):
        ready = Partitioned().calibrate(pg.queries.identity(domain), asked, pg.Epsilon(epsilon))
        plain = np.mean(np.square(np.broadcast_to(ready.deviation(0), (SIZE,))))
        values = [ready.run(cells, pg.SeededRng(f"{shape} {seed}")).values() for seed in range(3)]
        assert np.mean([np.mean((value - cells) ** 2) for value in values]) < 1.12 * plain


def test_the_guard_is_what_keeps_the_error_down():
    """Buckets taken at their word are far worse on the same table."""
    domain = pg.Domain({"cell": SIZE})
    cells = SHAPES["dense"]
    policy, query = pg.Policy(domain, pg.PolicyGraph.line(domain)), pg.queries.identity(domain)
    trusted = Partitioned(Partition(np.arange(SIZE) // 8)).calibrate(query, policy, pg.Epsilon("1/10"))
    guarded = Partitioned().calibrate(query, policy, pg.Epsilon("1/10"))
    history = (Partition(np.arange(SIZE) // 8),)
    noisy = cells + np.rint(np.random.default_rng(0).laplace(0, 15, SIZE)).astype(np.int64)
    kept = guarded.after(history).estimate(noisy, None)
    flat = trusted.run(cells, pg.SeededRng(1)).values()
    assert np.mean((flat - cells) ** 2) > 100 * np.mean((kept - cells) ** 2)


def test_variances_of_sums_are_those_of_the_noise():
    domain = pg.Domain({"x": 3, "y": 4})
    labels = np.array([0, 0, 1, 1, 0, 2, 2, 1, 3, 3, 2, 1])
    for graph in (pg.PolicyGraph.grid(domain), pg.PolicyGraph.full(domain), None):
        for then in (None, Laplace(), TransformedLaplace()):
            policy = pg.Policy(domain, graph)
            ready = Partitioned(then=then).calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
            guarded = ready.after((Partition(labels),))
            source = pg.SeededRng("sums")
            from policygraph.curator.gate import sample
            from policygraph.curator.histogram import Histogram

            drawn = sample(guarded.cells, Histogram.of(domain, np.zeros(12, dtype=np.int64)), source, 4000)
            sums = np.stack([drawn[:, labels == bucket].sum(axis=1) for bucket in range(4)])
            assert np.allclose(sums.var(axis=1), guarded._variances(labels), rtol=0.2)


def test_consistent_cells_keep_the_total():
    domain = pg.Domain({"cell": 64})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    cells = np.repeat([0, 9, 0, 1], 16)
    ready = Partitioned(then=TransformedConsistent()).calibrate(
        pg.queries.identity(domain), policy, pg.Epsilon("1/5")
    )
    made = ready.run(cells, pg.SeededRng(4)).values()
    assert made.dtype.kind == "i"
    assert made.min() >= 0
    assert made.sum() == cells.sum()
