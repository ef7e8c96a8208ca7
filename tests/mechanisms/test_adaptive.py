"""Adaptive cubes: exact choices, a loss that is kept, consistent tables."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.audit import neighbour_pairs
from policygraph.curator import gate
from policygraph.curator.counting import read_data
from policygraph.curator.histogram import Histogram
from policygraph.curator.runners.adaptive import apart, choose
from policygraph.distributions.integers import thresholds
from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.adaptive.mechanism import ALL_ONES, CHOICE, Levels
from policygraph.mechanisms.adaptive.plan import UNITS, Choosing
from policygraph.release import Release
from tests.broken.adaptive import choosing, half_sensitivity, tables_of
from tests.gate import noisy
from tests.oracles import graphical, wide

DOMAIN = pg.Domain({"a": 2, "b": 3, "c": 2, "d": 2})
PAIRS = pg.queries.cuboids(DOMAIN, list(combinations(DOMAIN.names, 2)))
TABLE = np.random.default_rng(5).integers(0, 40, DOMAIN.size)
POLICIES = {
    "one record more or less": pg.Policy(DOMAIN),
    "one record changed": pg.Policy(DOMAIN, pg.PolicyGraph.full(DOMAIN)),
    "one attribute changed": pg.Policy(DOMAIN, pg.PolicyGraph.attribute(DOMAIN)),
    "a table known": pg.Policy(DOMAIN, constraints=[pg.Cuboid("a", "b")]),
    "two tables known": pg.Policy(DOMAIN, constraints=[pg.Cuboid("a", "b"), pg.Cuboid("c")]),
}
LOSSES = [pg.Epsilon(2), pg.Rho("1/10")]


def spent(ready, points):
    return sum(share for _, share, _ in ready.read(points))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("name", POLICIES)
def test_tables_agree_and_keep_what_is_known_under_every_policy(name, loss):
    policy = POLICIES[name]
    ready = pg.AdaptiveCube().calibrate(PAIRS, policy, loss)
    made = ready.run(TABLE, pg.SeededRng(1))
    tables = {table.columns: np.asarray(table.values) for table in made.tables}
    assert all((values >= 0).all() for values in tables.values())
    cube = TABLE.reshape(DOMAIN.shape)
    sums = {}
    for names, values in tables.items():
        shape = tuple(len(DOMAIN.labels(each)) for each in names)
        for at, each in enumerate(names):
            sums.setdefault(each, []).append(values.reshape(shape).sum(axis=1 - at))
    for found in sums.values():
        assert all(np.allclose(found[0], other, atol=1e-4) for other in found)
    for mask in ready.known:
        names = ready.lattice.names(mask)
        if names in tables:
            rest = tuple(axis for axis in range(4) if DOMAIN.names[axis] not in names)
            assert tables[names].tolist() == cube.sum(axis=rest).ravel().tolist()
    json.dumps(made.record, allow_nan=False)
    again = Release.from_parquet(made.to_bytes())
    assert np.allclose(again.values(0), made.values(0))
    assert len(made.record["adaptive"]["measured"]) >= 3


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_steps_spend_at_most_the_loss_and_nearly_all_of_it(loss):
    ready = pg.AdaptiveCube().calibrate(PAIRS, pg.Policy(DOMAIN), loss)
    for seed in range(3):
        points = noisy(ready, TABLE, pg.SeededRng(seed))
        assert 0.97 * UNITS <= spent(ready, points) <= UNITS
        assert points[0] == ALL_ONES
        assert {code for code, _, _ in ready.read(points)} <= {
            ALL_ONES,
            CHOICE,
            *ready.candidates,
        }


def test_a_plan_that_asks_for_more_than_the_loss_is_cut_off(monkeypatch):
    ready = pg.AdaptiveCube().calibrate(PAIRS, pg.Policy(DOMAIN), pg.Epsilon(1))
    sound = type(ready).steps

    def greedy(self, exact):
        step = next(sound(self, exact))
        yield step
        yield type(step)(step.query, UNITS - step.share)
        yield type(step)(step.query, 1)

    monkeypatch.setattr(type(ready), "steps", greedy)
    points = noisy(ready, TABLE, pg.SeededRng(1))
    assert spent(ready, points) == UNITS
    assert len(ready.read(points)) == 2


@given(st.lists(st.integers(-40, 40), min_size=2, max_size=6), st.fractions(Fraction(1, 50), Fraction(1)))
@settings(max_examples=60)
def test_levels_have_the_chances_of_the_exponential_mechanism(scores, rate):
    below = [max(scores) - score for score in scores]
    levels = sorted(set(below))
    if len(levels) == 1:
        return
    counts = tuple(below.count(d) for d in levels)
    first, lows, highs = thresholds(Levels(rate, tuple(levels), counts), 64, 80)
    literal = graphical.chances(scores, rate)
    wanted = np.cumsum(
        [sum(p for p, d in zip(literal, below, strict=True) if d == level) for level in levels]
    )
    assert first == 1
    for low, high, cumulated in zip(lows, highs, wanted[:-1], strict=True):
        assert low / 2**80 <= cumulated + 1e-12
        assert cumulated - 1e-12 <= high / 2**80


def test_choices_follow_their_literal_chances():
    query = pg.queries.cuboids(pg.Domain({"a": 2, "b": 2}), [["a"], ["b"], ["a", "b"]])
    ready = pg.AdaptiveCube().calibrate(query, pg.Policy(query.domain), pg.Epsilon(1))
    step = choosing(ready)
    found = np.bincount(
        [choose(ready, step, tables_of([2, 0, 1, 0]), rng) for rng in [pg.SeededRng(3)] for _ in range(4000)]
    )
    literal = graphical.chances([3, -3], Fraction(1, 2))
    assert abs(found[0] / 4000 - literal[0]) < 4 * np.sqrt(literal[0] * literal[1] / 4000)


def test_ties_are_broken_evenly():
    query = pg.queries.cuboids(pg.Domain({"a": 2, "b": 2}), [["a"], ["b"], ["a", "b"]])
    ready = pg.AdaptiveCube().calibrate(query, pg.Policy(query.domain), pg.Epsilon(1))
    flat = (np.zeros(2, dtype=np.int64),) * 2
    step = Choosing((1, 2), flat, (0, 0), (1, 1), UNITS)
    rng = pg.SeededRng(1)
    found = np.bincount([choose(ready, step, tables_of([1, 1, 1, 1]), rng) for _ in range(2000)])
    assert abs(found[0] - 1000) < 100


def test_the_rate_for_zcdp_costs_at_most_its_share():
    ready = pg.AdaptiveCube().calibrate(PAIRS, pg.Policy(DOMAIN), pg.Rho("1/3"))
    for share in (1, 12345, UNITS):
        epsilon = 2 * 7 * ready.rate_of(Fraction(7), share)
        asked = ready.loss.value * share / UNITS
        assert epsilon**2 / 8 <= asked < (epsilon + Fraction(1, 2**60)) ** 2 / 8


@pytest.mark.parametrize("name", POLICIES)
def test_scores_change_by_at_most_their_certificates(name):
    policy = POLICIES[name]
    ready = pg.AdaptiveCube().calibrate(PAIRS, policy, pg.Epsilon(1))
    rng = np.random.default_rng(2)
    for pair in neighbour_pairs(policy, PAIRS, most=4):
        before, after = Histogram.of(DOMAIN, pair.before), Histogram.of(DOMAIN, pair.after)
        for mask in ready.candidates:
            names = ready.lattice.names(mask)
            one, other = before.cuboid(names), after.cuboid(names)
            estimate = rng.integers(0, 5, one.size)
            change = abs(int(np.abs(one - estimate).sum()) - int(np.abs(other - estimate).sum()))
            assert change <= ready.score_proofs[mask].power


def test_the_broken_choice_has_twice_the_rate():
    runs, _, _ = half_sensitivity()
    found = np.bincount(runs(np.array([1, 0, 0, 0]), 2000, pg.SeededRng(1)).ravel())
    literal = graphical.chances([1, -1], Fraction(2))
    assert abs(found[0] / 2000 - literal[0]) < 0.05


def test_scores_are_exact_for_all_numbers_and_for_whole_ones_alone():
    table = np.array([2**47, 0, 5], dtype=np.int64)
    estimate = np.array([7, 11, 0], dtype=np.int64)
    assert apart(table, estimate) == 2**47 - 7 + 11 + 5
    huge = np.full(3, np.iinfo(np.int64).max)
    assert apart(table, huge) == sum(2**61 // 3 - int(x) for x in table)
    assert apart(table, -huge) == sum(2**61 // 3 + int(x) for x in table)
    for wrong in (estimate.astype(float), estimate[:1]):
        with pytest.raises(RefusedError) as caught:
            apart(table, wrong)
        assert caught.value.code == "adaptive.estimate"


def test_a_score_changes_by_the_size_of_its_weight(monkeypatch):
    ready = pg.AdaptiveCube().calibrate(PAIRS, pg.Policy(DOMAIN), pg.Epsilon(1))
    used = []
    kept = type(ready).rate_of
    monkeypatch.setattr(
        type(ready), "rate_of", lambda self, moved, share: used.append(moved) or kept(self, moved, share)
    )
    masks = tuple(ready.candidates[:2])
    tables = {mask: np.ones(ready.size(mask), dtype=np.int64) for mask in masks}
    choose(ready, Choosing(masks, tuple(tables.values()), (0, 0), (-3, 1), UNITS), tables, pg.SeededRng(1))
    assert used == [3 * max(ready.score_proofs[mask].power for mask in masks[:1])]


def test_weighted_counts_are_counted_in_the_limit_of_records():
    ready = pg.AdaptiveCube().calibrate(PAIRS, pg.Policy(DOMAIN), pg.Epsilon(1))
    assert max(ready.first.weights) == 64
    assert 64 * ready.most_records < ready.most_reach <= 64 * (ready.most_records + 1) + ready.most_noise()


def test_stated_ranges_cover_the_truth():
    """Of measured tables 95 to 99 % and no more than a little above, of others nearly all."""
    domain, rows = wide.records("chain", [4, 3, 5, 3, 4], 5000, 1)
    sets = list(combinations(domain.names, 2))
    table = np.bincount(np.ravel_multi_index(rows.T, domain.shape), minlength=domain.size)
    inside, ratios = {"simulated": [], "bound": []}, []
    for loss in (pg.Rho("1/100"), pg.Epsilon(1)):
        ready = pg.AdaptiveCube().calibrate(pg.queries.cuboids(domain, sets), pg.Policy(domain), loss)
        for seed in range(3):
            made = ready.run(table, pg.SeededRng(seed))
            for names, each in zip(sets, made.tables, strict=True):
                off = np.abs(each.values - len(rows) * wide.true_table(rows, domain, names))
                inside[each.errors].append(np.mean(off <= each.within_95))
                if each.errors == "simulated":
                    ratios.append(np.sqrt(np.mean(np.square(each.deviation)) / np.mean(off**2)))
    assert len(inside["simulated"]) >= 15
    assert 0.94 < np.mean(inside["simulated"]) < 0.998
    assert 0.8 < np.median(ratios) < 2
    assert np.mean(inside["bound"]) > 0.99


@pytest.mark.parametrize("kind", wide.KINDS)
def test_generated_tables_are_never_much_worse_than_independence_or_a_plain_cube(kind):
    """The product of noisy single attributes at all of the loss, and least squares projected on the right total, are what an adaptive cube must not lose to."""
    domain, rows = wide.records(kind, [3, 6, 2, 4, 5, 3], 4000, 3)
    sets = list(combinations(domain.names, 2))
    table = np.bincount(np.ravel_multi_index(rows.T, domain.shape), minlength=domain.size)
    query, policy, loss = pg.queries.cuboids(domain, sets), pg.Policy(domain), pg.Rho("1/100")

    def off(mechanism, asked=query):
        made = mechanism.calibrate(asked, policy, loss).run(table, pg.SeededRng(5))
        values = {each.columns: np.asarray(each.values, dtype=float) for each in made.tables}
        return wide.distance(rows, domain, sets, lambda names: values[tuple(names)])

    found = off(pg.AdaptiveCube())
    plain = off(pg.Cube("unequal", nonnegative=True))
    ones = pg.queries.cuboids(domain, [[name] for name in domain.names])
    made = pg.AdaptiveCube().calibrate(ones, policy, loss).run(table, pg.SeededRng(5))
    single = {each.columns[0]: np.asarray(each.values, dtype=float) for each in made.tables}
    product = wide.distance(
        rows, domain, sets, lambda names: np.multiply.outer(single[names[0]], single[names[1]])
    )
    assert found < 1.5 * plain
    assert found < 1.6 * product if kind == "independent" else found < product


@pytest.mark.parametrize(("attributes", "most"), [(60, 4), (12, 100)])
def test_wide_and_large_tables_are_better_than_independence(attributes, most):
    import pandas as pd

    domain, rows = wide.records("tree", wide.mixed_sizes(attributes, most, 2), 20_000, 2)
    near = [(a, b) for a, b in combinations(range(attributes), 2) if b - a <= 3]
    sets = [(domain.names[a], domain.names[b]) for a, b in near]
    ready = pg.AdaptiveCube(rounds=12).calibrate(
        pg.queries.cuboids(domain, sets), pg.Policy(domain), pg.Rho("1/10")
    )
    data = read_data(pd.DataFrame(rows, columns=list(domain.names)), ready.policy)
    model = ready.model(gate.draw(ready, data, pg.SeededRng(1))[0])
    found = wide.distance(rows, domain, sets, lambda names: model.table(ready.lattice.mask(names)))
    assert found < 0.9 * wide.independent(rows, domain, sets)


def test_a_dependence_is_found():
    """Two attributes that are equal, among others that are independent: the model of the release shows it."""
    domain = pg.Domain(dict.fromkeys("abcdef", 3))
    rng = np.random.default_rng(1)
    records = rng.integers(0, 3, (20_000, 6))
    records[:, 4] = records[:, 1]
    table = np.bincount(np.ravel_multi_index(records.T, domain.shape), minlength=domain.size)
    query = pg.queries.cuboids(domain, list(combinations(domain.names, 2)))
    made = pg.release(
        query, pg.Policy(domain), table, rho="1/100", mechanism=pg.AdaptiveCube(), rng=pg.SeededRng(1)
    )
    assert ["b", "e"] in [each["table"] for each in made.record["adaptive"]["measured"]]
    values = np.asarray(made.values("b x e")).reshape(3, 3)
    assert values.trace() > 0.97 * values.sum()


def test_only_tables_of_one_attribute_take_all_of_the_loss_at_once():
    query = pg.queries.cuboids(DOMAIN, [["a"], ["b"]])
    ready = pg.AdaptiveCube().calibrate(query, pg.Policy(DOMAIN), pg.Epsilon(1))
    points = noisy(ready, TABLE, pg.SeededRng(1))
    assert [(code, share) for code, share, _ in ready.read(points)] == [(ALL_ONES, UNITS)]


def test_the_name_tells_options_apart_and_the_command_knows_it():
    one, other = (pg.AdaptiveCube(cells=n).calibrate(PAIRS, pg.Policy(DOMAIN), pg.Rho(1)) for n in (100, 200))
    assert one.mechanism != other.mechanism
    found = pg.compare(PAIRS, pg.Policy(DOMAIN), epsilon=1, methods=["adaptive-cube"])
    assert found.best.expected is None
    assert "depends on the data" in found.best.note


def test_what_it_cannot_do_is_refused_in_a_sentence():
    for wrong in ({"cells": 0}, {"rounds": True}, {"cells": 2.5}):
        with pytest.raises(InputError) as caught:
            pg.AdaptiveCube(**wrong)
        assert caught.value.code == "adaptive.option"
    cube = pg.AdaptiveCube()
    with pytest.raises(InputError) as caught:
        cube.calibrate(pg.queries.prefix(pg.Domain({"a": 3})), pg.Policy(pg.Domain({"a": 3})), pg.Rho(1))
    assert caught.value.code == "cubes.query"
    with pytest.raises(InputError) as caught:
        cube.calibrate(PAIRS, pg.Policy(DOMAIN), pg.Rho(1), pg.sensitivity(PAIRS, pg.Policy(DOMAIN)))
    assert caught.value.code == "mechanism.sensitivity"
    known = pg.Policy(DOMAIN, constraints=[pg.Cuboid("a", "b")])
    for policy in (known, pg.Policy(DOMAIN)):
        with pytest.raises(RefusedError) as caught:
            pg.AdaptiveCube(cells=2).calibrate(PAIRS, policy, pg.Rho(1))
        assert caught.value.code == "adaptive.known"
    with pytest.raises(RefusedError) as caught:
        cube.calibrate(PAIRS, pg.Policy(DOMAIN), pg.Epsilon("1e-9"))
    assert caught.value.code == "mechanism.scale"
