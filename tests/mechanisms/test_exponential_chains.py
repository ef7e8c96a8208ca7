"""Tables drawn count by count: their probabilities are those of the listed tables, and draws follow them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import policygraph as pg
from policygraph.curator.histogram import Histogram
from policygraph.curator.runners.exponential import draw
from policygraph.mechanisms.exponential import mechanism
from policygraph.mechanisms.exponential.mechanism import table_graph
from policygraph.mechanisms.exponential.transfer import ChainNoise, TableChain, transfer_of
from tests.gate import noisy_many


def policies() -> st.SearchStrategy[pg.Policy]:
    def made(kind: str, size: int, records: int, seed: int) -> pg.Policy:
        domain = pg.Domain({"r": size})
        told = [pg.Total(equals=records)]
        if kind == "line":
            return pg.Policy(domain, pg.PolicyGraph.line(domain), told)
        if kind == "full":
            return pg.Policy(domain, pg.PolicyGraph.full(domain), told)
        if kind == "total":
            return pg.Policy(domain, constraints=told)
        rng = np.random.default_rng(seed)
        table = rng.integers(0, 3, (2, size))
        wide = pg.Domain({"a": 2, "b": size} if kind == "rows" else {"b": size, "a": 2})
        facts = [
            pg.Cuboid("a", equals=table.sum(axis=1).tolist()),
            pg.Cuboid("b", equals=table.sum(axis=0).tolist()),
        ]
        return pg.Policy(wide, constraints=facts, strength="markov" if seed % 2 else "worst-case")

    return st.builds(
        made,
        st.sampled_from(["line", "full", "total", "rows", "columns"]),
        st.integers(2, 4),
        st.integers(0, 4),
        st.integers(0, 999),
    )


@settings(max_examples=60, deadline=None)
@given(policies(), st.sampled_from([Fraction(1, 2), Fraction(3)]))
def test_probabilities_are_those_of_the_listed_tables(policy: pg.Policy, rate: Fraction) -> None:
    chain = transfer_of(policy)
    assert chain is not None
    listed = table_graph(policy, 1000)
    for at, table in enumerate(listed.tables):
        steps = TableChain(chain, tuple(chain.counts(table)), rate)
        found = []
        for other in listed.tables:
            counts, before, chance = chain.counts(other), 0, 1.0
            assert chain.tables(np.array([counts])).tolist() == [other.tolist()]
            for step, count in enumerate(counts):
                low, high = steps.weigh(step, before, 64)
                assert all(0 <= a <= b for a, b in zip(low, high, strict=True))
                chance *= low[count] / sum(low)
                before += count
            found.append(chance)
        weights = np.exp(-float(rate) * listed.distances[at].astype(float))
        np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-12)


def test_draws_follow_the_probabilities() -> None:
    domain = pg.Domain({"r": 3})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain), [pg.Total(equals=3)])
    query = pg.queries.identity(domain)
    ready = pg.Exponential(limit=2).calibrate(query, policy, pg.Epsilon(1))
    assert isinstance(ready, ChainNoise)
    listed = table_graph(policy, 100)
    truth = np.array([2, 0, 1])
    at = {table.tobytes(): place for place, table in enumerate(listed.tables)}
    drawn = noisy_many(ready, truth, 4000, pg.SeededRng(5))
    seen = np.bincount([at[np.ascontiguousarray(row).tobytes()] for row in drawn], minlength=len(at))
    weights = np.exp(-0.5 * listed.distances[at[truth.tobytes()]].astype(float))
    with pytest.raises(pg.InputError) as raised:
        draw(ready, Histogram.from_vector(domain, [1, 0, 0]), pg.SeededRng(1), 1)
    assert raised.value.code == "exponential.table"
    assert chisquare(seen, 4000 * weights / weights.sum()).pvalue > 1e-4


def test_beyond_what_can_be_listed() -> None:
    domain = pg.Domain({"sex": ["F", "M"], "age": 12})
    table = np.random.default_rng(2).integers(0, 12, (2, 12))
    facts = [
        pg.Cuboid("sex", equals=table.sum(axis=1).tolist()),
        pg.Cuboid("age", equals=table.sum(axis=0).tolist()),
    ]
    policy = pg.Policy(domain, constraints=facts)
    made = pg.release(
        pg.queries.identity(domain),
        policy,
        table.ravel(),
        epsilon=2,
        mechanism=pg.Exponential(),
        rng=pg.SeededRng(1),
    )
    policy.check_table(made.values())
    ready = pg.Exponential().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(2))
    assert any("count by count" in stage for stage in ready.stages())
    assert np.max(ready.deviation(0)) >= np.abs(made.values() - table.ravel()).max()
    line = pg.Domain({"r": 20})
    along = pg.Policy(line, pg.PolicyGraph.line(line), [pg.Total(equals=40)])
    counts = np.full(20, 2)
    other = pg.release(
        pg.queries.prefix(line), along, counts, epsilon=4, mechanism=pg.Exponential(), rng=pg.SeededRng(1)
    )
    values = other.values()
    assert values[-1] == 40
    assert all(a <= b for a, b in pairwise(values.tolist()))
    with pytest.raises(pg.ConstraintError):
        pg.release(pg.queries.identity(line), along, counts + 1, epsilon=4, mechanism=pg.Exponential())


def test_what_has_no_chain_is_refused() -> None:
    grid = pg.Domain({"a": 3, "b": 3})
    facts = [pg.Cuboid("a", equals=[9, 9, 9]), pg.Cuboid("b", equals=[9, 9, 9])]
    ring = pg.Domain({"r": 6})
    edges = [(i, (i + 1) % 6) for i in range(6)]
    for policy in (
        pg.Policy(grid, constraints=facts),
        pg.Policy(ring, pg.PolicyGraph.from_edges(ring, edges), [pg.Total(equals=12)]),
        pg.Policy(ring, constraints=[pg.Total(equals=12)]),
    ):
        with patch.object(mechanism, "WORK", 100), pytest.raises(pg.RefusedError) as refused:
            pg.Exponential(limit=5).calibrate(pg.queries.identity(policy.domain), policy, pg.Epsilon(1))
        assert refused.value.code == "exponential.size"
    assert transfer_of(pg.Policy(ring, constraints=[pg.Total()])) is None
    assert transfer_of(pg.Policy(ring, constraints=[pg.Total(equals=3)], at_most_records=1)) is None
