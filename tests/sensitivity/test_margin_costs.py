"""What tables, interactions and prefixes cost beside one and two public margins, against all minimal moves."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.model.queries.cuboids import BlockQuery
from policygraph.model.queries.products import ProductQuery
from policygraph.sensitivity.rungs.margins import closed_form, reduce_margins, table_costs
from policygraph.transforms.cuboids.costs import changed_sets, costs_of
from policygraph.transforms.cuboids.lattice import Lattice
from tests.oracles.sensitivity import longest, margin_rows, query_rows

NORMS = st.sampled_from(["l1", "l2"])


@st.composite
def tables_beside(draw, margins):
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=3))
    domain = pg.Domain({f"a{at}": n for at, n in enumerate(sizes)})
    inside = [s for k in range(len(sizes)) for s in itertools.combinations(domain.names, k)]
    public = draw(st.lists(st.sampled_from(inside), min_size=margins, max_size=margins, unique=True))
    every = [*inside, domain.names]
    sets = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    weights = draw(st.lists(st.integers(1, 3), min_size=len(sets), max_size=len(sets)))
    return domain, public, sets, weights


def facts(public):
    return [pg.Cuboid(*names) if names else pg.Total() for names in public]


def matrix(domain, public):
    return np.array([row for names in public for row in margin_rows(domain, names)])


@given(tables_beside(2), NORMS)
@settings(max_examples=80)
def test_two_margins_bound_every_minimal_move(given_tables, norm):
    domain, public, sets, weights = given_tables
    query = pg.queries.cuboids(domain, sets, weights)
    rows = query_rows(domain, list(query.sets), weights)
    truth = longest(matrix(domain, public), rows, norm)
    reduced = reduce_margins(domain, facts(public), query)
    found = closed_form(reduced, norm)
    assert found.lower <= truth <= found.upper
    certificate = pg.sensitivity(query, pg.Policy(domain, constraints=facts(public)), norm=norm)
    assert certificate.power == truth
    assert len(table_costs(reduced, norm)) == len(reduced.asked)


@given(tables_beside(2), NORMS)
@settings(max_examples=60)
def test_exact_costs_are_sensitivities_for_all_weights(given_tables, norm):
    """Where the forms are called exact, they are: for the weights drawn, and for each table by itself."""
    domain, public, sets, weights = given_tables
    lattice, policy = Lattice(domain), pg.Policy(domain, constraints=facts(public))
    known = [set(names) for names in public]
    masks = [lattice.mask(names) for names in sets if not any(set(names) <= k for k in known)]
    chosen = [w for w, names in zip(weights, sets, strict=True) if not any(set(names) <= k for k in known)]
    if not masks:
        return
    costs = costs_of(lattice, masks, policy, norm)
    named = [lattice.names(mask) for mask in masks]
    truth = longest(matrix(domain, public), query_rows(domain, named, chosen), norm)
    stated = costs.power(np.array(chosen, dtype=np.float64))
    if costs.exact:
        assert stated == pytest.approx(truth)
        for names, cost in zip(named, costs.forms.max(axis=0), strict=True):
            assert longest(matrix(domain, public), query_rows(domain, [names]), norm) == cost


def test_a_table_that_lacks_both_sides_costs_more():
    domain = pg.Domain({"a": 3, "b": 3, "c": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    costs = costs_of(Lattice(domain), [0b011, 0b100, 0b101, 0b111], policy, "l2")
    assert costs.forms.tolist() == [[6.0, 18.0, 6.0, 6.0]]
    assert costs.exact
    rows = query_rows(domain, [("c",)])
    assert longest(matrix(domain, [("a",), ("b",)]), rows, "l2") == 18


@given(tables_beside(1), NORMS, st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_interactions_and_prefixes_beside_one_margin(given_tables, norm, rng):
    domain, public, sets, weights = given_tables
    policy = pg.Policy(domain, constraints=facts(public))
    kinds = {name: rng.choice(["values", "prefix", "ranges"]) for name in domain.names}
    queries = [ProductQuery(domain, sets, kinds, weights)]
    several = [s for s in sets if all(domain.shape[domain.axis(name)] > 1 for name in s)]
    if several:
        queries.append(BlockQuery(domain, several))
    for query in queries:
        rows = query.columns(np.arange(domain.size)).toarray()
        truth = longest(matrix(domain, public), rows, norm)
        found = pg.sensitivity(query, policy, norm=norm)
        assert found.lower_power <= truth <= found.power
        assert not found.verify().failed
        if isinstance(query, BlockQuery):
            assert found.power == truth


def test_one_margin_is_a_policy_without_facts_for_the_choice():
    domain = pg.Domain({"a": 3, "b": 2, "c": 4})
    lattice = Lattice(domain)
    assert changed_sets(lattice, pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Total()])) == [0b110]
    assert changed_sets(lattice, pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])) is None
    assert changed_sets(lattice, pg.Policy(domain, constraints=[pg.Cells(["a"], [0])])) is None


@pytest.mark.parametrize("public", [["a"], []])
def test_interactions_are_best_beside_one_margin(public):
    """The stated bound holds for cuboids as well, and what is measured is at it."""
    domain = pg.Domain({"a": 3, "b": 3, "c": 3, "d": 3})
    query = pg.queries.all_cuboids(domain, up_to=2)
    policy = pg.Policy(domain, constraints=facts([tuple(public)]))
    ready = pg.Cube().calibrate(query, policy, pg.Rho("1/2"))
    assert ready.choice.kind == "interactions"
    assert ready.choice.gap < 1e-4
    assert ready.sensitivity.exact
    spread = sum(float(np.max(np.square(ready.deviation(at)))) for at in range(len(query.parts)))
    assert spread == pytest.approx(ready.choice.objective, rel=1e-3)
    others = pg.Cube("bmax").calibrate(query, policy, pg.Rho("1/2"))
    assert ready.total_error <= others.total_error * (1 + 1e-9)
