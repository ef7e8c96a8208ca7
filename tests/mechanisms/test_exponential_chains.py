"""Tables drawn count by count: their probabilities are those of the listed tables, and draws follow them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import policygraph as pg
from policygraph.curator.histogram import Histogram
from policygraph.curator.runners.exponential import below, draw
from policygraph.mechanisms.exponential import mechanism, sweep
from policygraph.mechanisms.exponential.mechanism import SweptNoise, table_graph
from policygraph.mechanisms.exponential.transfer import ChainNoise, TableChain, transfer_of
from tests.gate import noisy_many
from tests.oracles import fibres


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
@given(policies())
def test_probabilities_are_those_of_the_listed_tables(policy: pg.Policy) -> None:
    chain = transfer_of(policy)
    assert chain is not None
    listed = table_graph(policy, 1000)
    for at, table in enumerate(listed.tables):
        check_chain(TableChain(chain, tuple(chain.counts(table))), listed.tables, listed.distances[at])


def check_chain(chain: TableChain, tables: np.ndarray, distances: np.ndarray) -> None:
    """The numbers of tables at each distance, and that each of them is drawn with the same probability, in exact fractions."""
    layers = np.bincount(distances).tolist()
    assert list(chain.layers) == layers
    for other, distance in zip(tables, distances.tolist(), strict=True):
        counts = chain.walks.counts(other)
        assert chain.walks.fits(counts)
        assert chain.walks.tables(np.array([counts])).tolist() == [other.tolist()]
        state, left, chance = 0, distance, Fraction(1)
        for step, count in enumerate(counts):
            ways = {value: rest for value, *rest in chain.ways(step, state, left)}
            whole = sum(number for *_, number in ways.values())
            state, left, number = ways[count]
            chance *= Fraction(number, whole)
        assert (chance, left) == (Fraction(1, layers[distance]), 0)


def margins(seed: int, shape: tuple[int, ...], names: list[list[str]]) -> pg.Policy:
    table = np.random.default_rng(seed).integers(0, 3, shape)
    domain = pg.Domain(dict(zip("abc", shape)))
    axes = {name: at for at, name in enumerate(domain.names)}
    facts = [
        pg.Cuboid(
            *kept, equals=table.sum(axis=tuple(axes[n] for n in domain.names if n not in kept)).tolist()
        )
        for kept in names
    ]
    return pg.Policy(domain, constraints=facts)


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 999),
    st.sampled_from(
        [((3, 3), [["a"], ["b"]]), ((2, 2, 2), [["a"], ["b"], ["c"]]), ((2, 2, 3), [["a", "b"], ["c"]])]
    ),
)
def test_a_sweep_has_all_tables_and_their_differences(seed: int, made: Any) -> None:
    policy = margins(seed, *made)
    rows, values = policy.system.full_rows()
    most = max(value for value in values if value is not None)
    if (most + 1) ** policy.domain.size > 300_000:
        tables = table_graph(policy, 20_000, all_pairs=True).tables
    else:
        tables = np.array(fibres.tables(rows.toarray().tolist(), values, most, policy.domain.size))
    assume(len(tables) > 1)
    ready = pg.Exponential(limit=0).calibrate(pg.queries.identity(policy.domain), policy, pg.Epsilon(1))
    assume(isinstance(ready, SweptNoise))
    assert ready.rate * 2 * pg.sensitivity(pg.queries.identity(policy.domain), policy).power == 1
    truth = tables[seed % len(tables)]
    chain = TableChain(ready.transfer, tuple(ready.transfer.counts(truth)))
    off = np.abs(tables - truth).sum(axis=1)
    assert list(chain.layers) == np.bincount(off).tolist()
    if len(tables) <= 40:
        check_chain(chain, tables, off)
    assert np.max(np.abs(tables - truth)) <= np.max(ready.deviation(0))


def test_sweeps_are_private_and_their_draws_follow_the_weights() -> None:
    """3 x 3 with margins 2: the weights are exact, and no neighbour of the true table changes a probability by more than e."""
    domain = pg.Domain({"a": 3, "b": 3})
    facts = [pg.Cuboid("a", equals=[2, 2, 2]), pg.Cuboid("b", equals=[2, 2, 2])]
    policy = pg.Policy(domain, constraints=facts)
    ready = pg.Exponential(limit=5).calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
    assert isinstance(ready, SweptNoise)
    listed = table_graph(policy, 100)
    off = np.abs(listed.tables[:, None] - listed.tables[None]).sum(axis=2)
    weights = np.exp(-float(ready.rate) * off)
    law = weights / weights.sum(axis=1, keepdims=True)
    one, two = np.nonzero(listed.distances == 1)
    assert np.log(law[one] / law[two]).max() <= 1
    truth = listed.tables[0]
    drawn = noisy_many(ready, truth, 4000, pg.SeededRng(5))
    at = {table.tobytes(): place for place, table in enumerate(listed.tables)}
    seen = np.bincount([at[np.ascontiguousarray(row).tobytes()] for row in drawn], minlength=len(at))
    assert chisquare(seen, 4000 * law[0]).pvalue > 1e-4


def test_equal_weights_end_no_draw() -> None:
    """Two empty cells and one record left weigh the same: thresholds of exactly one half, which enclosures cannot tell from their neighbours."""
    domain = pg.Domain({"r": 12})
    policy = pg.Policy(domain, constraints=[pg.Total(equals=6)])
    ready = pg.Exponential().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(2))
    assert isinstance(ready, ChainNoise)
    drawn = noisy_many(ready, np.array([6] + [0] * 11), 300, pg.SeededRng(1))
    assert (drawn.sum(axis=1) == 6).all()


def test_numbers_of_any_size_are_uniform() -> None:
    limit = 3 << 100
    found = below(limit, 3000, pg.SeededRng(2))
    assert max(found) < limit
    assert chisquare(np.bincount([x * 3 // limit for x in found])).pvalue > 1e-4


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
        with (
            patch.object(mechanism, "WORK", 100),
            patch.object(sweep, "MOST_STEPS", 20),
            pytest.raises(pg.RefusedError) as refused,
        ):
            pg.Exponential(limit=5).calibrate(pg.queries.identity(policy.domain), policy, pg.Epsilon(1))
        assert refused.value.code == "exponential.size"
    assert transfer_of(pg.Policy(ring, constraints=[pg.Total()])) is None
    assert transfer_of(pg.Policy(ring, constraints=[pg.Total(equals=3)], at_most_records=1)) is None
