"""Counts and entries of any size: answers are those of Python's integers, or the request is refused before anything is charged."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.curator.histogram import MeasuredCounts
from policygraph.mechanisms import Fitted, Kernel
from policygraph.model.queries.cuboids import BlockQuery
from policygraph.model.queries.network_statistics import DegreeTail, Triangles, Wedges

TABLE = pg.Domain({"a": 2, "b": 3})
LINE = pg.Domain({"age": 6})
REFUSALS = (pg.InputError, pg.RefusedError, pg.DataError)
POWERS = (26, 40, 47, 48, 49, 52, 53, 57, 60, 61, 62)


def matrix(domain):
    rows = [[1, 0, 1 << 39, 0, 0, 3], [-(1 << 39), 1, 0, 0, 5, 0]]
    return pg.queries.matrix(domain, np.array(rows, dtype=np.int64))


def queries(domain):
    """Every kind of linear query over six cells."""
    yield pg.queries.identity(domain)
    yield pg.queries.total(domain)
    yield matrix(domain)
    yield pg.queries.matrix(domain, [[Fraction(1, 3), 0, 0, 0, 0, 5], [0, 0, 0, 2, 0, 0]])
    yield pg.queries.matrix(domain, np.ones((1, 6), dtype=np.int64), unit=Fraction(1 << 40))
    if domain is TABLE:
        yield pg.queries.cuboids(domain, [["a"], ["b"]], [1, 1 << 20])
        yield pg.queries.cuboids(domain, [["a"], ["b"], ["a", "b"], []])
    else:
        yield pg.queries.prefix(domain)
        yield pg.queries.ranges(domain, [(0, 2), (1, 5)])
        yield pg.queries.all_ranges(domain)


def exact(query, counts):
    """The answers in Python's integers, in the units users see."""
    rows = query.columns(np.arange(query.domain.size)).toarray().tolist()
    weights = [part.weight for part in query.parts for _ in range(part.height)]
    sums = [sum(int(x) * int(n) for x, n in zip(row, counts, strict=True)) for row in rows]
    return [Fraction(value) * query.unit / weight for value, weight in zip(sums, weights, strict=True)]


def tables(power):
    yield [0, 0, 1 << power, 0, 0, 0]
    yield [(1 << power) // 6] * 6
    yield [1 << (power - 1), 0, 0, 0, 0, 1 << (power - 1)]


MECHANISMS = [
    None, pg.Laplace(), pg.Gaussian(), pg.Cube(), pg.Cube(nonnegative=True), pg.Cube(whole=True), Kernel(), Fitted(),
    pg.MatrixMechanism(evaluations=5), pg.MatrixMechanism("identity"), pg.Partitioned(), pg.TransformedLaplace(),
    pg.TransformedConsistent(), pg.TransformedGaussian(), pg.Transformed(pg.Laplace()), pg.Sparse(), pg.Exponential(limit=50),
]  # fmt: skip


def policies():
    yield pg.Policy(TABLE)
    yield pg.Policy(TABLE, graph=pg.PolicyGraph.full(TABLE))
    yield pg.Policy(LINE, graph=pg.PolicyGraph.line(LINE))
    yield pg.Policy(TABLE, constraints=[pg.Cuboid("a")])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_every_mechanism_releases_what_is_right_or_charges_nothing(mechanism, tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    gaussian = isinstance(mechanism, (pg.Gaussian, pg.TransformedGaussian))
    loss = pg.Rho(1) if gaussian else pg.Epsilon(1)
    released = refused = 0
    for policy in policies():
        for query in queries(policy.domain):
            try:
                ready = mechanism.calibrate(query, policy, loss) if mechanism else None
            except REFUSALS:
                continue
            for power in POWERS[::2] if mechanism is None else POWERS:
                counts = next(itertools.islice(tables(power), power % 3, None))
                before = len(ledger.history())
                try:
                    made = pg.release(
                        query, policy, counts, rho=1 if gaussian else None, epsilon=None if gaussian else 1,
                        ledger=ledger, mechanism=ready, compose_policies=True, reuse=False,
                    )  # fmt: skip
                except REFUSALS:
                    refused += 1
                    assert len(ledger.history()) == before, (query, power)
                    continue
                released += 1
                assert ledger.history()[-1].status == "completed"
                if isinstance(mechanism, pg.Sparse):
                    continue
                found = np.concatenate([np.asarray(table.values, dtype=np.float64) for table in made.tables])
                spread = np.concatenate(
                    [
                        np.broadcast_to(np.asarray(t.deviation, dtype=np.float64), len(t.values))
                        for t in made.tables
                    ]
                )
                truth = np.array([float(x) for x in exact(query, counts)])
                loose = isinstance(mechanism, pg.Partitioned) or getattr(mechanism, "whole", False)
                room = 1e-9 * np.abs(truth).max() + 80 * spread + (float(max(counts)) if loose else 8)
                assert (np.abs(found - truth) <= room).all(), (query, power, found, truth)
    assert released > 0 or isinstance(mechanism, pg.Exponential)
    assert refused > 0 or isinstance(mechanism, pg.Exponential)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from([*queries(TABLE), *queries(LINE), BlockQuery(TABLE, [(), ("a",), ("b",), ("a", "b")], [1, 5, 1, 7])]),
    st.lists(st.integers(0, 1 << 62), min_size=6, max_size=6),
    st.integers(0, 62),
)  # fmt: skip
def test_answers_are_those_of_whole_numbers_or_refused(query, counts, shift):
    counts = [count >> shift for count in counts]
    expected = [x / query.unit for x in exact(query, counts)]
    weights = [part.weight for part in query.parts for _ in range(part.height)]
    expected = [x * weight for x, weight in zip(expected, weights, strict=True)]
    for answer in (
        lambda: query.answer(counts),
        lambda: query.answer_sparse(np.arange(6), np.array(counts, dtype=np.int64)),
    ):
        try:
            found = answer()
        except pg.RefusedError:
            assert query.largest_entry * sum(counts) >= 1 << 61
            continue
        assert [int(x) for x in found] == expected


@settings(deadline=None, max_examples=60)
@given(st.integers(20, 40), st.integers(0, 45), st.integers(1, (1 << 39) - 1))
def test_entries_times_records_never_wrap(entry, records, odd):
    rows = np.array([[1 << entry, odd, 0, 0, 0, -(1 << entry)]], dtype=np.int64)
    query = pg.queries.matrix(LINE, rows)
    counts = [1 << records, 3, 0, 0, 0, 1]
    truth = (1 << entry) * (1 << records) + 3 * odd - (1 << entry)
    try:
        made = pg.release(query, pg.Policy(LINE), counts, epsilon=1 << 41, mechanism=pg.Laplace())
    except pg.RefusedError:
        assert max(1 << entry, odd) * sum(counts) >= 1 << 60
        return
    assert abs(int(made.values()[0]) - truth) < 1000


def test_two_to_the_65_is_refused_and_not_zero(tmp_path):
    """An entry of 2^39 times 2^26 records was released as 0."""
    query = pg.queries.matrix(pg.Domain({"a": 2}), np.array([[1 << 39, 0]], dtype=np.int64))
    ledger = pg.Ledger(tmp_path / "budget.db")
    with pytest.raises(pg.RefusedError) as problem:
        pg.release(query, pg.Policy(query.domain), [1 << 26, 0], epsilon=1, ledger=ledger)
    assert problem.value.code == "query.overflow"
    assert ledger.history() == []


@pytest.mark.parametrize("power", [20, 40, 45, 50, 55, 59])
def test_measures_of_many_records(power, tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    measure = pg.Measure("income", 0, 4)
    query = pg.queries.sums(TABLE, [["a"], ["b"]], measure)
    try:
        counts = MeasuredCounts.from_vectors(TABLE, measure, [1 << power] * 6, np.array([3 << power] * 6))
        made = pg.release(query, pg.Policy(TABLE), counts, epsilon=1, ledger=ledger)
    except REFUSALS:
        assert power > 40
        assert ledger.history() == []
        return
    assert made.values(0) == pytest.approx(float(9 << power), rel=1e-9, abs=1000)
    assert ledger.history()[-1].status == "completed"


@pytest.mark.parametrize("multiplicity", [1, 1 << 20, 1 << 31, 1 << 33, 1 << 60])
def test_networks_with_many_edges_between_two_nodes(multiplicity, tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    network = pg.Network(4, multiple=True)
    counts = [multiplicity, 0, 1, 0, 0, 0]
    for query in (pg.queries.adjacency(network), pg.queries.mixing(network, ["x", "x", "y", "y"])):
        before = len(ledger.history())
        try:
            made = pg.release(
                query, pg.Policy(network), counts, epsilon=1, ledger=ledger, mechanism=pg.Laplace()
            )
        except REFUSALS:
            assert multiplicity >= 1 << 60
            assert len(ledger.history()) == before
            continue
        assert abs(int(made.values()[0]) - multiplicity) < 1000


@pytest.mark.parametrize("statistic", [Wedges, Triangles, DegreeTail])
@pytest.mark.parametrize("edges", [2, 1 << 33, 1 << 61])
def test_statistics_of_simple_networks_refuse_more_edges_than_pairs(statistic, edges, tmp_path):
    """Degrees are squared on the way: 2^33 edges between two nodes would wrap, and no bound of theirs is about such tables."""
    query, ledger = statistic(pg.Network(4)), pg.Ledger(tmp_path / "budget.db")
    table = [edges, 1, 0, 1, 0, 0]
    with pytest.raises(REFUSALS):
        query.answer(table)
    with pytest.raises(pg.DataError):
        pg.release(query, pg.Policy(query.domain), table, epsilon=1, ledger=ledger)
    assert ledger.history() == []
