"""Junction trees, belief propagation and fits, against all cells listed."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.estimation.graphical.model import Evidence, Propagation, fit, total_of
from policygraph.estimation.graphical.tree import JunctionTree, axes_of, cells_with
from tests.oracles import graphical


@st.composite
def problems(draw, most=5):
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=most)))
    masks = draw(st.lists(st.integers(1, (1 << len(shape)) - 1), min_size=1, max_size=6, unique=True))
    return shape, [mask for mask in masks if mask.bit_count() <= 3] or [1], draw(st.integers(0, 999))


@given(problems(most=8))
@settings(max_examples=60)
def test_a_junction_tree_holds_every_table_and_has_the_running_intersection(problem):
    shape, masks, _ = problem
    tree = JunctionTree.of(shape, masks)
    assert all(any(mask & ~clique == 0 for clique in tree.cliques) for mask in masks)
    together = 0
    for at, clique in enumerate(tree.cliques):
        # What a clique shares with all before it, it shares with its parent.
        if at:
            assert clique & together == tree.separators[at]
            assert tree.separators[at] & ~tree.cliques[tree.parents[at]] == 0
        together |= clique
    assert together == (1 << len(shape)) - 1
    assert cells_with(shape, masks, [masks[0]])[0] == tree.cells
    assert not any(a != b and a & ~b == 0 for a in tree.cliques for b in tree.cliques)


@given(problems())
@settings(max_examples=40)
def test_every_table_of_a_model_is_that_of_all_cells(problem):
    shape, masks, seed = problem
    rng = np.random.default_rng(seed)
    pieces = [
        Evidence(m, rng.uniform(-3, 30, int(np.prod([shape[a] for a in axes_of(m)]))), 4.0) for m in masks
    ]
    model = fit(shape, pieces, strength=0.1, steps=20)
    cells = graphical.joint(shape, model.factors)
    masks = list(range(1 << len(shape)))
    rng.shuffle(masks)
    # All of them share what subtrees give, in any order.
    for mask, table in zip(masks, model.each(masks), strict=True):
        assert np.allclose(table, model.total * graphical.marginal(cells, mask), atol=1e-8)
        assert np.array_equal(table, model.table(mask))


@given(problems(most=4))
@settings(max_examples=25)
def test_a_fit_reaches_the_optimum(problem):
    shape, masks, seed = problem
    rng = np.random.default_rng(seed)
    truth = rng.multinomial(500, rng.dirichlet(np.full(int(np.prod(shape)), 0.5))).reshape(shape)
    pieces = []
    for mask in masks:
        table = graphical.marginal(truth, mask).ravel()
        pieces.append(Evidence(mask, table + rng.normal(0, 5, table.size), 25.0))
    model = fit(shape, pieces, strength=0.2, steps=500, accuracy=1e-7)
    assert model.gap < 1e-3
    cells = model.total * graphical.joint(shape, model.factors)
    best = graphical.objective(cells, pieces, 0.2)
    for _ in range(20):
        other = np.maximum(cells * np.exp(rng.normal(0, 0.05, shape)), 1e-12)
        other *= model.total / other.sum()
        assert graphical.objective(other, pieces, 0.2) >= best - 1e-3


def test_exact_tables_are_met_with_their_zeros():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 9, (3, 4, 2)) * (rng.uniform(size=(3, 4, 2)) < 0.5)
    exact = [Evidence(m, graphical.marginal(truth, m).ravel(), 0.0) for m in (0b011, 0b100)]
    noisy = Evidence(0b110, graphical.marginal(truth, 0b110).ravel() + rng.normal(0, 2, 8), 4.0)
    model = fit((3, 4, 2), [*exact, noisy], strength=0.01, steps=300)
    for piece in exact:
        assert np.allclose(model.table(piece.mask).ravel(), piece.counts, atol=1e-6 * truth.sum())
    assert np.all(model.table(0b011)[graphical.marginal(truth, 0b011) == 0] == 0)


def test_propagation_of_many_attributes_needs_no_joint_table():
    shape = (2,) * 60
    masks = [0b11 << at for at in range(59)]
    rng = np.random.default_rng(1)
    factors = [rng.normal(size=(2, 2)) for _ in masks]
    walk = Propagation(JunctionTree.of(shape, masks), masks)
    size, _, tables = walk.run(factors)
    # A chain: the product of its matrices.
    product = np.ones(2)
    for factor in factors[::-1]:
        product = np.exp(factor) @ product
    assert np.isclose(size, np.log(product.sum()))
    assert all(np.isclose(table.sum(), 1) for table in tables)


def test_the_total_of_nothing_is_one_record():
    assert total_of([]) == 1.0
