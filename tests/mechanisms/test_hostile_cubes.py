"""Attempts to break cubes, measures, questions one by one and sparse lists: each test is an attack that once worked, or should never."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import policygraph as pg
from policygraph.errors import BudgetError, InputError, RefusedError
from policygraph.model.queries.cuboids import BlockQuery, CuboidQuery
from policygraph.transforms.cuboids.choose import Choice

DOMAIN = pg.Domain({"a": 3, "b": 2, "c": 2})
SETS = [("a", "b"), ("c",), ("a", "b", "c")]


@pytest.mark.parametrize(
    "weights", [(1.99, 1), (1.0, 1), (Fraction(3, 2), 1), (True, 1), (0, 1), (1,), (1, 1, 1)]
)
def test_weights_of_a_choice_are_never_cut_to_whole_numbers(weights):
    """Noise was scaled to int(1.99) = 1 while 1.99 times the counts were measured: half of what was promised."""
    sets = (("a", "b"), ("a",))
    with pytest.raises(InputError) as caught:
        Choice(sets, weights)
    assert caught.value.code == "query.weights"
    for query in (CuboidQuery, BlockQuery):
        with pytest.raises(InputError):
            query(DOMAIN, sets, weights)


def test_a_choice_takes_whole_numbers_of_numpy():
    assert Choice((("a",),), (np.int64(3),)).weights == (3,)
    with pytest.raises(InputError):
        Choice((("a",),), (1,), "cells")


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_sensitivities_of_interactions_grow_with_their_weights(norm):
    """Entries beyond 64 bits wrapped around, and a certificate called a ninth of the sensitivity exact."""
    policies = [
        pg.Policy(DOMAIN, constraints=[pg.Cuboid("a"), pg.Cuboid("b")]),
        pg.Policy(DOMAIN, pg.PolicyGraph.attribute(DOMAIN), [pg.Cuboid("a")]),
        pg.Policy(DOMAIN, pg.PolicyGraph.full(DOMAIN)),
        pg.Policy(DOMAIN),
    ]
    for policy in policies:
        small = pg.sensitivity(BlockQuery(DOMAIN, SETS, [1, 2, 3]), policy, norm=norm)
        for factor in (2**20, 2**47):
            large = pg.sensitivity(
                BlockQuery(DOMAIN, SETS, [factor, 2 * factor, 3 * factor]), policy, norm=norm
            )
            assert large.power == small.power * (factor if norm == "l1" else factor**2)
    with pytest.raises(InputError) as caught:
        BlockQuery(DOMAIN, SETS, [2**61, 2**62, 3])
    assert caught.value.code == "query.weights"


def test_counts_beyond_64_bits_are_refused_before_the_charge(tmp_path):
    """The refusal depends on the number of records, and came after the charge."""
    ledger = pg.Ledger(tmp_path / "budget.db")
    query = pg.queries.cuboids(DOMAIN, [["a"]])
    for choice in (
        Choice(((), ("a",)), (1, 2**47), "interactions"),
        Choice((("a",),), (2**30,)),
    ):
        ready = pg.Cube().on(choice, query, pg.Policy(DOMAIN), pg.Epsilon(2**20))
        table = [2**40] + [0] * 11
        with pytest.raises(RefusedError) as caught:
            pg.release(query, pg.Policy(DOMAIN), table, epsilon=2**20, mechanism=ready, ledger=ledger)
        assert caught.value.code == "query.overflow"
    assert ledger.history() == []


def test_exact_tables_of_one_policy_do_not_escape_the_ledger(tmp_path):
    """The total is exact under a bounded policy and secret under another: it was given out without a line in the ledger."""
    bounded, unbounded = pg.Policy(DOMAIN, pg.PolicyGraph.full(DOMAIN)), pg.Policy(DOMAIN)
    counts = np.arange(12)
    first = tmp_path / "first.db"
    pg.release(pg.queries.cuboid(DOMAIN, "a"), unbounded, counts, epsilon=1, ledger=first)
    with pytest.raises(BudgetError) as caught:
        pg.OnlineCube(bounded, counts, first).ask(deviation=1)
    assert caught.value.code == "budget.further-policy"
    allowed = pg.OnlineCube(bounded, counts, first, compose_policies=True)
    assert allowed.ask(deviation=1).values.tolist() == [66]
    second = tmp_path / "second.db"
    assert pg.OnlineCube(bounded, counts, second).ask(deviation=1).values.tolist() == [66]
    with pytest.raises(BudgetError) as caught:
        pg.release(pg.queries.cuboid(DOMAIN, "a"), unbounded, counts, epsilon=1, ledger=second)
    assert caught.value.code == "budget.further-policy"


def test_no_value_of_a_record_stops_a_sum_or_is_told():
    """An unsigned 128-bit value was no signed one: one record ended the release, and the error had its value."""
    import duckdb

    from policygraph.curator.counting.tables import count_measure

    domain, measure = pg.Domain({"s": ["x"]}), pg.Measure("v", 0, 10, missing=3)
    values = [
        "340282366920938463463374607431768211455::UHUGEINT",
        "'170141183460469231731687303715884105727'::HUGEINT",
    ]
    values += [
        "'inf'::DOUBLE",
        "'-inf'::DOUBLE",
        "'nan'::DOUBLE",
        "NULL::INTEGER",
        "'1e999'",
        "'-'",
        "TRUE",
        "DATE '2020-01-01'",
    ]
    levels = [10, 10, 10, 0, 3, 3, 10, 3, 1, 3]
    for value, level in zip(values, levels, strict=True):
        made = count_measure(duckdb.sql(f"SELECT 'x' AS s, {value} AS v"), domain, measure)
        assert (value, made.vector().tolist(), made.sums(["s"]).tolist()) == (value, [1], [level])
    with pytest.raises(InputError) as caught:
        pg.Measure("v", 0, Fraction(1, 10**300), Fraction(1, 10**309))
    assert caught.value.code == "measure.unit"


def test_what_no_data_allow_is_refused_before_the_charge(tmp_path):
    """Limits of programs and of exact sums were met after the charge, which bought nothing."""
    large = pg.Domain({"a": 200, "b": 100})
    mixed = pg.Policy(DOMAIN, constraints=[pg.LinearCount([({"a": [0]}, 2), ({"b": [1]}, 3)])])
    cases = [
        (pg.Policy(large), pg.Cube("base", consistency="least-absolute"), "cubes.program-size"),
        (mixed, pg.Cube("all"), "cubes.public-sums"),
        (mixed, pg.Cube("all", whole=True), "cubes.public-sums"),
        (mixed, pg.Cube("all", offset="1/100"), "cubes.public-sums"),
    ]
    ledger = pg.Ledger(tmp_path / "budget.db")
    for policy, mechanism, code in cases:
        query = pg.queries.all_cuboids(policy.domain)
        table = np.ones(policy.domain.size, dtype=int)
        with pytest.raises(RefusedError) as caught:
            pg.release(query, policy, table, epsilon=1, mechanism=mechanism, ledger=ledger)
        assert caught.value.code == code
    assert ledger.history() == []


@pytest.mark.parametrize("strategy", ["all", "base", "bmax", "unequal", "unequal-max"])
def test_tables_that_differ_from_known_ones_by_one_value_only(strategy):
    """The logarithm of no variance at all was taken."""
    domain = pg.Domain({"a": 1, "b": 2, "c": 3})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("c")])
    query = pg.queries.cuboids(domain, [["c"], ["a", "c"], ["a"]])
    made = pg.release(
        query, policy, np.arange(6), epsilon=1, mechanism=pg.Cube(strategy), source=pg.SeededRng(1)
    )
    assert [table.values.tolist() for table in made.tables] == [[3, 5, 7], [3, 5, 7], [15]]
    assert [table.deviation for table in made.tables] == [0, 0, 0]


def test_noise_that_was_paid_for_is_released_even_if_a_program_fails(tmp_path, monkeypatch):
    """A program that was not solved in time came after the charge: the noisy numbers were lost."""
    from policygraph.estimation.cubes import finish

    policy = pg.Policy(DOMAIN, constraints=[pg.Cuboid("a")])
    query = pg.queries.all_cuboids(DOMAIN)
    ready = pg.Cube("all", consistency="least-absolute", nonnegative=True).calibrate(
        query, policy, pg.Epsilon(1)
    )

    def fails(*_, **__):
        raise RefusedError("not solved in time.", code="cubes.program")

    monkeypatch.setattr(finish, "program_cells", fails)
    ledger = pg.Ledger(tmp_path / "budget.db")
    made = pg.release(query, policy, np.arange(12), epsilon=1, mechanism=ready, ledger=ledger)
    assert any("not solved in time" in line for line in made.record["stages"])
    assert made.record["cube"]["consistency"] == "least-squares"
    assert made.record["cube"]["nonnegative"] is False
    assert made.cuboid("a").values.tolist() == [6, 22, 38]
    assert made.cuboid("a", "b", "c").values.reshape(3, 4).sum(axis=1).tolist() == [6, 22, 38]
    again = pg.release(query, policy, np.arange(12), epsilon=1, mechanism=ready, ledger=ledger)
    assert again.values().tolist() == made.values().tolist()
    assert len(ledger.history()) == 1
    back = pg.Release.from_parquet(made.to_bytes())
    assert back.values().tolist() == made.values().tolist()
