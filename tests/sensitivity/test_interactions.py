"""Interactions of many attributes: closed forms for exchangeable attributes, bounds for others, and public facts beside them."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.mechanisms.cube import unequal
from policygraph.mechanisms.cube.strategies import Fourier
from policygraph.model.queries.cuboids import BlockQuery
from policygraph.sensitivity.problem import Problem
from policygraph.sensitivity.rungs import interactions
from policygraph.sensitivity.rungs.interactions import Steps, largest_difference
from policygraph.sensitivity.rungs.margins import beside_margins
from policygraph.transforms.cuboids.choose import Task
from tests.oracles.interactions import largest_change
from tests.oracles.sensitivity import longest, margin_rows

NORMS = st.sampled_from(["l1", "l2"])


def binary(k):
    return pg.Domain({f"a{at}": 2 for at in range(k)})


def up_to(domain, order, least=0):
    return [some for size in range(least, order + 1) for some in combinations(domain.names, size)]


@st.composite
def questions(draw):
    shape = draw(st.lists(st.sampled_from([2, 2, 2, 3]), min_size=1, max_size=4))
    every = [s for size in range(len(shape) + 1) for s in combinations(range(len(shape)), size)]
    if draw(st.booleans()):
        sets = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
        weights = draw(st.lists(st.integers(1, 3), min_size=len(sets), max_size=len(sets)))
    else:
        orders = draw(st.sets(st.integers(0, len(shape)), min_size=1))
        sets = [s for s in every if len(s) in orders]
        weights = [draw(st.integers(1, 3))] * len(sets)
    free = draw(st.lists(st.sampled_from(range(len(shape))), min_size=1, unique=True))
    return shape, sets, weights, free, draw(st.integers(1, len(shape)))


def asked(shape, sets, weights):
    domain = pg.Domain({f"a{at}": n for at, n in enumerate(shape)})
    return BlockQuery(domain, [[f"a{at}" for at in axes] for axes in sets], weights)


@given(questions(), NORMS)
@settings(max_examples=120, deadline=None)
def test_every_pair_of_cells_says_the_same(question, norm):
    shape, sets, weights, free, most = question
    truth = largest_change(shape, sets, weights, free, most, norm)
    query, steps = asked(shape, sets, weights), Steps(tuple(f"a{at}" for at in free), most)
    found = largest_difference(query, steps, norm)
    assert found.upper == found.lower == truth
    assert found.differing <= set(steps.names)
    assert len(found.differing) <= most
    assert query.difference_norm(found.differing, norm) == truth


@pytest.mark.parametrize("bucket", [4, 16])
@given(question=questions(), norm=NORMS)
@settings(max_examples=60, deadline=None)
def test_elimination_is_a_bound(bucket, question, norm):
    shape, sets, weights, free, most = question
    held = interactions.MOST_CASES, interactions.MOST_LONG, interactions.BUCKET
    interactions.MOST_CASES, interactions.MOST_LONG, interactions.BUCKET = 0, 0, bucket
    try:
        steps = Steps(tuple(f"a{at}" for at in free), most)
        found = largest_difference(asked(shape, sets, weights), steps, norm)
    finally:
        interactions.MOST_CASES, interactions.MOST_LONG, interactions.BUCKET = held
    truth = largest_change(shape, sets, weights, free, most, norm)
    assert found.lower <= truth <= found.upper
    if most >= len(free):
        # Few attributes fit one group, where the elimination is exact.
        assert found.upper == truth


def test_large_weights_are_summed_in_long_integers():
    query = asked([2] * 3, [(0, 1), (0, 2), (1, 2), (0,)], [1 << 40] * 4)
    assert largest_difference(query, Steps(query.domain.names, 3), "l2").upper == 12 << 80


def test_too_many_different_attributes_are_bounded_and_a_wide_interaction_by_columns():
    domain = binary(40)
    pairs = list(combinations(domain.names, 2))
    query = BlockQuery(domain, pairs, [1 + at % 97 for at in range(len(pairs))])
    found = largest_difference(query, Steps(domain.names, 40), "l1")
    assert found.lower < found.upper < 1.6 * sum(query.weights) < 2 * sum(query.weights)
    assert query.difference_norm(found.differing, "l1") == found.lower > sum(query.weights)
    certificate = pg.sensitivity(query, pg.Policy(domain, pg.PolicyGraph.full(domain)))
    assert (certificate.kind, certificate.power, certificate.lower_power) == (
        "upper",
        found.upper,
        found.lower,
    )
    wide = BlockQuery(domain, [*pairs, domain.names[:20]], [*query.weights, 5])
    assert largest_difference(wide, Steps(domain.names, 40), "l1").upper == 2 * sum(wide.weights)


@pytest.mark.parametrize("k", [20, 40, 60])
@pytest.mark.parametrize("order", [1, 2])
def test_all_up_to_an_order_by_krawtchouk_polynomials(k, order):
    domain = binary(k)
    query = BlockQuery(domain, up_to(domain, order))

    def changed(d):
        odd = sum(
            comb(d, j) * comb(k - d, s - j) for s in range(order + 1) for j in range(1, s + 1, 2) if j <= d
        )
        return 2 * odd

    policies = {
        "full": (pg.Policy(domain, pg.PolicyGraph.full(domain)), range(k + 1)),
        "attribute": (pg.Policy(domain, pg.PolicyGraph.attribute(domain)), [1]),
        "total": (pg.Policy(domain, constraints=[pg.Total()]), range(k + 1)),
    }
    for policy, distances in policies.values():
        certificate = pg.sensitivity(query, policy)
        assert certificate.kind == "exact"
        assert certificate.power == max(map(changed, distances))
        assert pg.sensitivity(query, policy, norm="l2").power == 2 * certificate.power
    assert pg.sensitivity(query, pg.Policy(domain)).power == sum(comb(k, s) for s in range(order + 1))


def test_a_public_margin_of_many_attributes_leaves_the_others():
    domain = binary(30)
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a0", "a1")])
    query = BlockQuery(domain, up_to(domain, 2))
    # d of 28 attributes differ: they change alone, with the 28 - d others, and with the two of the margin.
    assert pg.sensitivity(query, policy).power == max(2 * (d + d * (28 - d) + 2 * d) for d in range(29))
    inside = BlockQuery(domain, [["a0"], ["a0", "a1"]])
    assert pg.sensitivity(inside, policy).power == 0
    both = pg.Policy(domain, constraints=[pg.Cuboid("a0"), pg.Cuboid("a1")])
    assert pg.sensitivity(BlockQuery(domain, [["a0"], ["a1"]]), both).power == 0


@st.composite
def facts(draw):
    shape = draw(st.lists(st.sampled_from([2, 2, 3]), min_size=2, max_size=3))
    domain = pg.Domain({f"a{at}": n for at, n in enumerate(shape)})
    inside = [s for k in range(len(shape)) for s in combinations(domain.names, k)]
    public = draw(st.lists(st.sampled_from(inside), min_size=2, max_size=3, unique=True))
    sets = draw(st.lists(st.sampled_from([*inside, domain.names]), min_size=1, max_size=4, unique=True))
    weights = draw(st.lists(st.integers(1, 3), min_size=len(sets), max_size=len(sets)))
    return domain, public, BlockQuery(domain, sets, weights)


@given(facts(), NORMS, st.sampled_from([None, 1, 2, 3]), st.sampled_from(["worst-case", "markov"]))
@settings(max_examples=100, deadline=None)
def test_pairs_of_records_bound_every_minimal_move(case, norm, cap, strength):
    domain, public, query = case
    named = [pg.Cuboid(*names) if names else pg.Total() for names in public]
    policy = pg.Policy(domain, None, named, strength, cap)
    problem = Problem(query, policy, norm, Effort(10**6), ())
    found = beside_margins(problem) or problem.notes.get("bound")
    rows = np.asarray(query.columns(np.arange(domain.size)).toarray())
    matrix = np.array([row for names in public for row in margin_rows(domain, names)])
    if found is None:
        assert cap is None
        assert strength == "worst-case"
        return
    if cap is None and strength == "worst-case":
        truth = longest(matrix, rows, norm)
        assert found.lower <= truth
    else:
        truth = pg.sensitivity(query, policy, norm=norm).lower_power
    assert truth <= found.upper


def test_facts_that_are_no_margins_need_a_cap():
    domain = binary(30)
    query = BlockQuery(domain, up_to(domain, 1))
    cell = dict.fromkeys(domain.names, 0)
    capped = pg.Policy(domain, constraints=[pg.Cell(**cell)], at_most_records=3)
    # Three records may appear, each of which changes 31 numbers by 1; replacing one changes up to 30 by 2.
    assert pg.sensitivity(query, capped).power == 3 * 60
    ones = [pg.Cuboid(name) for name in domain.names]
    pairs = BlockQuery(domain, up_to(domain, 2))
    with pytest.raises(RefusedError) as caught:
        pg.sensitivity(pairs, pg.Policy(domain, constraints=ones))
    assert "at_most_records" in str(caught.value)
    certificate = pg.sensitivity(pairs, pg.Policy(domain, constraints=ones, at_most_records=2))
    assert certificate.power == 2 * max(2 * d * (30 - d) for d in range(30))


def truth_of(records, columns):
    return np.bincount(records[:, columns] @ [2, 1], minlength=4)


@pytest.mark.parametrize(
    "policy",
    [
        lambda d: pg.Policy(d, pg.PolicyGraph.full(d)),
        lambda d: pg.Policy(d, constraints=[pg.Cuboid("a0"), pg.Cuboid("a1", "a2")]),
        lambda d: pg.Policy(d, constraints=[pg.Cuboid(n) for n in d.names], at_most_records=1),
    ],
)
def test_cubes_of_twenty_attributes_end_to_end(policy):
    import pyarrow as pa

    domain = binary(20)
    records = np.random.default_rng(1).integers(0, 2, (500, 20))
    data = pa.table({name: records[:, at] for at, name in enumerate(domain.names)})
    query = pg.queries.cuboids(domain, list(combinations(domain.names, 2)))
    made = pg.release(
        query, policy(domain), data, rho=10**6, mechanism=pg.Cube(Fourier()), source=pg.SeededRng(1)
    )
    truth = truth_of(records, [1, 2])
    assert (
        np.abs(made.cuboid("a1", "a2").values - truth).max()
        < 5 * float(made.cuboid("a1", "a2").deviation) + 0.5
    )
    assert np.abs(made.cuboid("a3", "a17").values - truth_of(records, [3, 17])).max() < 1


@pytest.mark.parametrize("goal", ["total", "max"])
@pytest.mark.parametrize("graph", ["full", "attribute", "none", "margin"])
def test_exchangeable_interactions_share_the_best_precision(goal, graph, monkeypatch):
    domain = binary(5)
    policy = {
        "full": pg.Policy(domain, pg.PolicyGraph.full(domain)),
        "attribute": pg.Policy(domain, pg.PolicyGraph.attribute(domain)),
        "none": pg.Policy(domain),
        "margin": pg.Policy(domain, constraints=[pg.Cuboid("a0")]),
    }[graph]
    task = Task(domain, up_to(domain, 2, 1), [1.0] * 15, policy, pg.Rho("1/2"))
    alone = unequal.optimal_blocks(task, goal)
    monkeypatch.setattr(unequal, "MOST_ALONE", 0)
    kinds = unequal.block_problem(task, goal)[1].shape[1]
    assert kinds <= 5
    together = unequal.optimal_blocks(task, goal)
    assert together.objective == pytest.approx(alone.objective, rel=1e-4)
    assert together.gap < 1e-3


def test_the_best_precisions_of_forty_attributes():
    domain = binary(40)
    query = pg.queries.cuboids(domain, list(combinations(domain.names, 2)))
    for strategy, least in ((Fourier(), 315.0), (Fourier(even=False), 176.3)):
        ready = pg.Cube(strategy).calibrate(
            query, pg.Policy(domain, pg.PolicyGraph.full(domain)), pg.Rho("1/2")
        )
        assert float(ready.factors.max() * ready.noise.variance) == pytest.approx(least, rel=1e-3)
    assert ready.choice.gap < 1e-4
    uneven = [pg.Cuboid(name) for name in domain.names]
    with pytest.raises(pg.errors.InputError) as caught:
        pg.Cube(Fourier(even=False)).calibrate(query, pg.Policy(domain, constraints=uneven), pg.Rho(1))
    assert caught.value.code == "cubes.facts"
