"""Cubes: variances, least squares and exact margins against dense matrices."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.cubes.least_squares import below_known, best_sums, fit
from policygraph.transforms.cuboids.blocks import join, project, settle, split, sum_axis
from policygraph.transforms.cuboids.choose import Choice, fitted_of
from policygraph.transforms.cuboids.costs import fitted_factors, known_cuboids, plain_factors
from policygraph.transforms.cuboids.lattice import Family, Lattice
from tests.oracles import cubes as oracle

SHAPES = [(1,), (3,), (2, 2), (2, 3), (1, 4), (3, 1, 2), (2, 3, 2), (2, 2, 2, 2)]


def domain_of(shape):
    return pg.Domain({f"a{at}": n for at, n in enumerate(shape)})


@st.composite
def cubes(draw, kind="cuboids"):
    shape = draw(st.sampled_from(SHAPES))
    lattice = Lattice(domain_of(shape))
    masks = list(range(lattice.base + 1))
    if kind == "interactions":
        masks = [m for m in masks if all(n > 1 for n in lattice.shape(m))]
    chosen = draw(st.lists(st.sampled_from(masks), unique=True, min_size=1, max_size=6))
    weights = {mask: draw(st.integers(1, 4)) for mask in chosen}
    known = lattice.maximal(draw(st.lists(st.sampled_from(range(lattice.base + 1)), unique=True, max_size=2)))
    return shape, lattice, weights, known, draw(st.integers(0, 2**32 - 1))


def choice_of(lattice, weights, kind="cuboids"):
    return Choice(tuple(lattice.names(m) for m in weights), tuple(weights.values()), kind)


def reachable(lattice, factors, family):
    return [int(mask) for mask, factor in zip(family.masks, factors, strict=True) if np.isfinite(factor)]


@given(cubes())
@settings(max_examples=120, deadline=None)
def test_variances_are_those_of_dense_least_squares(case):
    shape, lattice, weights, known, _ = case
    family = Family(lattice, [lattice.base])
    precisions = family.spread(list(weights), np.square(list(weights.values())))
    dense = oracle.variances(shape, weights, dict.fromkeys(known), family.masks.tolist())
    fitted = fitted_factors(family, precisions, known)
    free = fitted_factors(family, precisions)
    plain = plain_factors(family, precisions)
    for at, mask in enumerate(family.masks.tolist()):
        expected = np.unique(dense[mask].round(9))
        assert np.allclose(fitted[at], expected, rtol=1e-9, atol=1e-9), (mask, fitted[at], expected)
        assert plain[at] == pytest.approx(oracle.plain_variance(shape, weights, mask))
        assert fitted[at] <= free[at] * (1 + 1e-12)
        assert free[at] <= plain[at] * (1 + 1e-12)


@given(cubes("interactions"))
@settings(max_examples=60, deadline=None)
def test_variances_of_interactions_are_those_of_dense_least_squares(case):
    shape, lattice, weights, known, _ = case
    family = Family(lattice, [lattice.base])
    made = fitted_of(choice_of(lattice, weights, "interactions"), family, known)
    dense = oracle.variances(
        shape, weights, dict.fromkeys(known), family.masks.tolist(), oracle.interaction_matrix
    )
    for at, mask in enumerate(family.masks.tolist()):
        assert np.allclose(made[at], dense[mask], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["cuboids", "interactions"])
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_least_squares_agrees_with_a_dense_solve_and_keeps_known_tables(kind, data):
    shape, lattice, weights, known, seed = data.draw(cubes(kind))
    draws = np.random.default_rng(seed)
    base = draws.integers(0, 50, shape)
    make = oracle.cuboid_matrix if kind == "cuboids" else oracle.interaction_matrix
    noisy = {
        mask: np.rint(weight * make(shape, mask) @ base.ravel()).astype(int)
        + draws.integers(-30, 31, make(shape, mask).shape[0])
        for mask, weight in weights.items()
    }
    exact = {mask: oracle.cuboid_matrix(shape, mask) @ base.ravel() for mask in known}
    choice = choice_of(lattice, weights, kind)
    family = Family(lattice, [lattice.base])
    wanted = reachable(lattice, fitted_of(choice, family, known), family)
    # A cuboid can be told while one below it is not only where an attribute has one value.
    made = fit(lattice, choice, noisy, wanted, exact)
    dense = oracle.least_squares(shape, weights, noisy.values(), exact, wanted, make)
    for mask in wanted:
        assert np.allclose(
            made[mask].ravel(), dense[mask], rtol=0, atol=1e-9 * (1 + np.abs(dense[mask]).max())
        )
    for high, low in product(made, made):
        if low & ~high == 0:
            gone = tuple(at for at, axis in enumerate(lattice.axes(high)) if not low >> axis & 1)
            assert np.array_equal(made[high].sum(axis=gone), made[low]), "equal to the last bit"
    for mask, table in below_known(lattice, exact).items():
        if mask in made:
            assert np.array_equal(made[mask], table)


def test_least_squares_twice_is_once():
    lattice = Lattice(domain_of((2, 3, 2)))
    draws = np.random.default_rng(1)
    choice = choice_of(lattice, {7: 2, 3: 1, 4: 3})
    noisy = {mask: draws.integers(-9, 90, lattice.size(mask)) for mask in (7, 3, 4)}
    once = fit(lattice, choice, noisy, [7])
    again = fit(
        lattice,
        choice,
        {m: w * once[m].ravel() for m, w in zip((7, 3, 4), choice.weights, strict=True)},
        [7],
    )
    assert all(np.allclose(once[mask], again[mask], atol=1e-8) for mask in once)


def test_nothing_is_made_up_where_nothing_was_measured():
    lattice = Lattice(domain_of((2, 3)))
    with pytest.raises(InputError, match="cannot be estimated") as caught:
        fit(lattice, choice_of(lattice, {1: 1, 2: 1}), {1: [1, 2], 2: [1, 1, 1]}, [3])
    assert caught.value.code == "cubes.not-computable"
    with pytest.raises(InputError, match="cannot be computed"):
        best_sums(lattice, choice_of(lattice, {1: 1}), {1: [1, 2]}, [2])
    with pytest.raises(InputError, match="disagree"):
        below_known(lattice, {1: [1, 2], 2: [1, 1, 2]})


def test_numbers_too_large_for_exact_sums_are_refused():
    lattice = Lattice(domain_of((2,)))
    with pytest.raises(RefusedError) as caught:
        fit(lattice, choice_of(lattice, {1: 1}), {1: [2**52, 0]}, [1])
    assert caught.value.code == "cubes.overflow"


@given(st.sampled_from([(2, 3), (5,), (1, 3), (2, 2, 3), (3, 70), (60, 2)]), st.integers(0, 1000))
@settings(deadline=None)
def test_split_and_join_are_inverse_on_one_table(shape, seed):
    lattice = Lattice(domain_of(shape))
    family = Family(lattice, [lattice.base])
    table = np.random.default_rng(seed).normal(size=shape)
    tables = {lattice.base: table.copy()}
    split(family, tables)
    for mask in family.masks.tolist():
        for position in range(tables[mask].ndim):
            assert np.allclose(tables[mask].sum(axis=position), 0)
        # One source: the block of S enters with one over the cells of C without S.
        tables[mask] *= lattice.size(lattice.base & ~mask)
    assert np.allclose(tables[lattice.base], project(table))
    join(family, tables)
    assert np.allclose(tables[lattice.base], table)
    for mask in family.masks.tolist():
        gone = tuple(axis for axis in range(len(shape)) if not mask >> axis & 1)
        assert np.allclose(tables[mask], table.sum(axis=gone))
    assert all(np.allclose(sum_axis(table, p), table.sum(axis=p)) for p in range(len(shape)))
    assert settle(family, tables, {}) >= 30


def test_lattice_answers():
    lattice = Lattice(pg.Domain({"sex": 2, "age": 7, "salary": 5}))
    assert lattice.names(lattice.mask(["salary", "sex"])) == ("sex", "salary")
    assert [lattice.level(m) for m in range(8)] == [0, 1, 1, 2, 1, 2, 2, 3]
    assert list(lattice.below(0b101)) == [0, 1, 4, 5]
    assert lattice.maximal([1, 3, 4, 0]) == [3, 4]
    assert lattice.parent(1, [7, 5, 3]) == 5
    assert lattice.parent(2, [5]) is None
    with pytest.raises(InputError) as caught:
        lattice.route([7], 3)
    assert caught.value.code == "cubes.not-computable"
    with pytest.raises(RefusedError):
        Family(Lattice(pg.Domain({f"a{i}": 2 for i in range(30)})), [(1 << 30) - 1])
    low = Family(Lattice(pg.Domain({f"a{i}": 2 for i in range(40)})), [0b11, 0b110])
    assert low.masks.tolist() == [0, 1, 2, 3, 4, 6]


def policies(domain):
    first = domain.names[0]
    return {
        "add or remove": pg.Policy(domain),
        "full": pg.Policy(domain, pg.PolicyGraph.full(domain)),
        "full with bottom": pg.Policy(domain, pg.PolicyGraph.full(domain).with_bottom()),
        "attribute": pg.Policy(domain, pg.PolicyGraph.attribute(domain)),
        "threshold": pg.Policy(domain, pg.PolicyGraph.threshold(domain, 1, attribute=first)),
        "l1 ball": pg.Policy(domain, pg.PolicyGraph.threshold(domain, 2)),
        "listed edges": pg.Policy(domain, pg.PolicyGraph.from_edges(domain, [(0, domain.size - 1), (0, 1)])),
    }


@pytest.mark.parametrize("name", list(policies(domain_of((2, 2)))))
@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3), (3, 4), (2, 3, 3)])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_sensitivity_of_interactions_is_that_of_their_matrix(name, shape, norm):
    domain = domain_of(shape)
    policy = policies(domain)[name]
    masks = [0, 1, 2, 3, *([5, 7] if len(shape) == 3 else [])]
    weights = [3, 1, 2, 1, 4, 1][: len(masks)]
    lattice = Lattice(domain)
    query = pg.queries.BlockQuery(domain, [lattice.names(m) for m in masks], weights)
    rows = oracle.stacked(shape, dict(zip(masks, weights, strict=True)), oracle.interaction_matrix)
    assert np.array_equal(query.columns(np.arange(domain.size)).toarray(), rows)
    table = np.random.default_rng(0).integers(0, 9, domain.size)
    assert np.array_equal(query.answer(table), rows @ table)
    plain = pg.queries.matrix(domain, rows.astype(int))
    ours, theirs = (pg.sensitivity(q, policy, norm=norm) for q in (query, plain))
    assert theirs.exact
    assert ours.exact
    assert ours.power == theirs.power
    assert not ours.verify().failed
    assert pg.Sensitivity.from_dict(ours.to_dict()).power == ours.power


@pytest.mark.parametrize(
    ("name", "expected"),
    [("add or remove", []), ("full", [0]), ("full with bottom", []), ("attribute", [0]), ("threshold", [6])],
)
def test_what_no_step_changes_is_known(name, expected):
    domain = domain_of((2, 3, 2))
    assert known_cuboids(Lattice(domain), policies(domain)[name]) == expected


def test_public_margins_are_known():
    domain = domain_of((2, 3, 2))
    facts = [pg.Cuboid("a0", "a1"), pg.Cuboid("a1", "a2"), pg.Cuboid("a1"), pg.Total()]
    assert known_cuboids(Lattice(domain), pg.Policy(domain, constraints=facts)) == [3, 6]


@pytest.mark.parametrize("shape", [(2, 3), (3, 2, 2)])
def test_block_query_refuses_what_it_cannot_do(shape):
    domain = domain_of((*shape, 1))
    with pytest.raises(InputError) as caught:
        pg.queries.BlockQuery(domain, [domain.names])
    assert caught.value.code == "query.one-value"
    with pytest.raises(InputError):
        pg.queries.BlockQuery(domain, [])
    with pytest.raises(InputError):
        pg.queries.BlockQuery(domain, [["a0"], ["a0"]])
    with pytest.raises(InputError):
        pg.queries.BlockQuery(domain, [["a0"]], [0])
    huge = pg.queries.BlockQuery(domain, [["a0"]], [2**40])
    with pytest.raises(RefusedError) as refused:
        huge.answer(np.full(domain.size, 2**30))
    assert refused.value.code == "query.overflow"
    query = pg.queries.BlockQuery(domain, [[], ["a0", "a1"]])
    assert pg.queries.from_spec(domain, query.to_spec()) == query
    assert prod(p.height for p in query.parts) == len(query.answer(np.zeros(domain.size))) - 1
