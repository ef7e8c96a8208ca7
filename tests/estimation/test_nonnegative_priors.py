"""Non-negative cubes with a prior: the optimum is reached, the bound holds, and no constant of the rule matters much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.estimation.cubes import nonnegative as room
from policygraph.estimation.cubes.cells import all_sums
from policygraph.estimation.cubes.nonnegative import Prior, Projection, nonnegative_tables
from policygraph.transforms.cuboids.blocks import join, project
from policygraph.transforms.cuboids.lattice import Family, Lattice


def case(sizes, seed, mean, deviation):
    """A family of one finest table, its truth, least-squares tables with noise of one precision for every block."""
    lattice = Lattice(pg.Domain({f"a{i}": n for i, n in enumerate(sizes)}))
    rng = np.random.default_rng(seed)
    shares = np.ones(())
    for n in sizes:
        shares = np.multiply.outer(shares, rng.dirichlet(np.full(n, 0.7)))
    family = Family(lattice, [lattice.base])
    masks = family.masks.tolist()
    true = all_sums(lattice, rng.poisson(mean * shares.size * shares).astype(float), lattice.base, masks)
    precisions = np.array([lattice.size(m) / lattice.size(lattice.base) for m in masks]) / deviation**2
    blocks = {
        m: project(true[m]) + project(rng.normal(0, 1, lattice.shape(m))) / q**0.5
        for m, q in zip(masks, precisions, strict=True)
    }
    join(family, blocks)
    return family, true, precisions, blocks


def error(family, precisions, one, other):
    pairs = zip(family.masks.tolist(), precisions, strict=True)
    return sum(q * float((project(one[m] - other[m]) ** 2).sum()) for m, q in pairs)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([2.0**-40, 2.0**-8, 1.0, 64.0]),
    st.sampled_from([1.0, 16.0, 4096.0]),
    st.sampled_from([1e-6, 1e-2, 10.0]),
    st.sampled_from([1e-3, 1.0, 1e6, 1e15]),
)
@settings(max_examples=60, deadline=None)
def test_a_step_solves_its_equation_and_the_bound_is_the_least(seed, b, a, penalty, size):
    rng = np.random.default_rng(seed)
    p = size * rng.exponential(1.0, 40) + 1e-9
    aim = size * rng.normal(0.0, 2.0, 40)
    prior = Prior(p, np.full(40, a), np.full(40, b))
    z = prior.near(aim, np.full(40, penalty), np.abs(aim))
    assert np.all(z > 0)
    # Minus the slope of the deviance is the pull of the quadratic, to float accuracy of its largest term.
    slopes = prior.slopes(z)
    inside = z > 1e-290
    assert np.allclose(
        slopes[inside],
        (penalty * (z - aim))[inside],
        rtol=1e-6,
        atol=1e-7 * (1 + penalty * np.abs(aim).max()),
    )
    least = prior.conjugate(z)
    for factor in (0.5, 0.99, 1.01, 2.0):
        other = z * factor
        assert prior.deviance(other) + float((slopes * other).sum()) >= least - 1e-7 * (abs(least) + size)


@pytest.mark.parametrize("mean", [0.3, 30.0])
def test_a_fit_with_a_prior_is_the_optimum_of_its_program(mean):
    from scipy.optimize import minimize

    family, _, precisions, tables = case((3, 4), 5, mean, 3.0)
    program = Projection(family, precisions, np.zeros(len(family), dtype=bool), tables)
    prior = program.prior(program.below(1).solve().tables)
    made = program.solve(prior)
    lattice = family.lattice

    def value(logs):
        cells = np.exp(logs).reshape(3, 4)
        return program.objective(program.coordinates.of_cells(cells.ravel()), prior)

    start = np.log(np.maximum(made.tables[lattice.base], 1e-6)).ravel()
    best = minimize(value, start, method="L-BFGS-B", options={"maxiter": 2000}).fun
    assert made.bound <= best + 1e-6 * abs(best) + 1e-9
    assert made.value <= best + 2e-3 * made.scale


def test_tables_without_negative_counts_stay_as_they_are():
    family, true, precisions, _ = case((3, 4), 1, 50.0, 1.0)
    made = nonnegative_tables(
        family, precisions, np.zeros(len(family), dtype=bool), true, [family.lattice.base]
    )
    assert all(np.array_equal(made.tables[m], true[m]) for m in true)
    assert made.gap == 0


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(3,), (4, 3), (3, 3, 2)]),
    st.sampled_from([0.0, 0.1, 3.0, 1000.0]),
    st.sampled_from([0.1, 2.0, 50.0]),
)
@settings(max_examples=60, deadline=None)
def test_the_nearest_tables_are_never_farther_from_the_truth_than_least_squares(seed, sizes, mean, deviation):
    """Theorem 1a for every draw, not on average: the norm of the noise falls but for what the stated gap allows."""
    family, true, precisions, tables = case(sizes, seed, mean, deviation)
    fixed = np.zeros(len(family), dtype=bool)
    made = nonnegative_tables(family, precisions, fixed, tables, [family.lattice.base], nearest=True)
    assert made.passes == 0
    assert min(float(made.tables[m].min()) for m in true) >= 0
    before, after = (error(family, precisions, t, true) ** 0.5 for t in (tables, made.tables))
    assert after <= before + (2 * made.gap * made.scale) ** 0.5 + 1e-9 * (1 + before)


@pytest.mark.parametrize("deviation", [0.3, 3.0, 30.0])
def test_a_sparse_finest_table_reaches_its_optimum_in_few_steps(deviation):
    """Mixing with an even table until the last cell is non-negative left a gap of 40 where most of many cells are empty: the copy of the table is used instead."""
    family, true, _, _ = case((9, 8, 7, 6, 5), 3, 0.2, deviation)
    lattice, rng = family.lattice, np.random.default_rng(4)
    masks = family.masks.tolist()
    # All tables are measured alike, so that sums of many cells are known far better than the cells.
    precisions = np.array([sum(lattice.size(c & ~m) ** -1.0 for c in masks if m & ~c == 0) for m in masks])
    precisions /= deviation**2
    tables = {
        m: project(true[m]) + project(rng.normal(0, 1, lattice.shape(m))) / q**0.5
        for m, q in zip(masks, precisions, strict=True)
    }
    join(family, tables)
    fixed = np.zeros(len(family), dtype=bool)
    made = nonnegative_tables(family, precisions, fixed, tables, masks, smoothing=0)
    assert made.gap <= room.GAP
    assert made.steps <= 60
    assert min(float(table.min()) for table in made.tables.values()) >= 0
    assert error(family, precisions, made.tables, true) < 0.5 * error(family, precisions, tables, true)


def test_a_cube_of_nearest_tables_says_so_and_keeps_what_is_public():
    domain = pg.Domain({"a": 4, "b": 3, "c": 2})
    query = pg.queries.cuboids(domain, [["a", "b"], ["b", "c"]])
    policy = pg.Policy(domain, constraints=[pg.Cuboid("b")])
    counts = np.random.default_rng(1).poisson(0.5, domain.size)
    cubes = [pg.Cube(nonnegative=wish, whole=wish == "nearest") for wish in (True, "nearest")]
    one, two = (cube.calibrate(query, policy, pg.Epsilon("1/4")) for cube in cubes)
    assert one.mechanism != two.mechanism
    made = two.run(counts, pg.SeededRng(2))
    assert made.record["cube"]["smoothing"] == 0
    assert made.record["cube"]["gap"] >= 0
    assert any(
        "nearest to the least-squares estimates in the norm of the noise" in s for s in made.record["stages"]
    )
    values = made.cuboid("a", "b").values.reshape(4, 3)
    assert np.array_equal(values, values.astype(int))
    assert values.min() >= 0
    assert np.array_equal(values.sum(axis=0), counts.reshape(4, 3, 2).sum(axis=(0, 2)))
    with pytest.raises(pg.InputError) as caught:
        pg.Cube(nonnegative="nearest", consistency="least-absolute").calibrate(query, policy, pg.Epsilon(1))
    assert caught.value.code == "cubes.consistency"
    with pytest.raises(pg.InputError) as caught:
        pg.Cube(nonnegative="near").calibrate(query, policy, pg.Epsilon(1))
    assert caught.value.code == "cubes.wish"


def means(monkeypatch=None, **changed):
    """Squared errors over generated tables, of least squares, the nearest tables and what is chosen."""
    for name, value in changed.items():
        monkeypatch.setattr(room, name, value)
    found = np.zeros(3)
    for seed in range(12):
        for sizes, mean in (((6, 5), 1.0), ((4, 4, 3), 0.5), ((5, 4), 20.0)):
            family, true, precisions, tables = case(sizes, seed, mean, 4.0)
            fixed = np.zeros(len(family), dtype=bool)
            top = [family.lattice.base]
            nearest = nonnegative_tables(family, precisions, fixed, tables, top, smoothing=0)
            chosen = nonnegative_tables(family, precisions, fixed, tables, top)
            each = [error(family, precisions, t, true) for t in (tables, nearest.tables, chosen.tables)]
            found += np.array(each) / each[0]
    return found / found[0]


@pytest.fixture(scope="module")
def plain():
    return means()


def test_what_is_chosen_is_no_worse_than_the_nearest_tables(plain):
    assert plain[1] < 1.0
    assert plain[2] < plain[1]


@pytest.mark.parametrize(
    "changed",
    [
        {"RELAXED": 1.5},
        {"GAP": 1e-4},
        {"CHECKED": 10},
        {"TRACE": 0.1},
        {"BINS": 4},
        {"SCALINGS": 30},
        {"PASSES": 2},
        {"SHARE": 0.7},
        {"MULTIPLES": 4.0 ** np.arange(7), "SQUARES": np.concatenate([[2.0**-40], 4.0 ** np.arange(-6, 4)])},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_the_constants_change_little(plain, changed, monkeypatch):
    assert means(monkeypatch, **changed)[2] == pytest.approx(plain[2], rel=0.12)


def test_the_same_numbers_give_the_same_tables():
    family, _, precisions, tables = case((4, 4, 3), 3, 0.5, 4.0)
    fixed = np.zeros(len(family), dtype=bool)
    one, two = (nonnegative_tables(family, precisions, fixed, tables, [7]) for _ in range(2))
    assert one.passes == two.passes
    assert all(np.array_equal(one.tables[m], two.tables[m]) for m in one.tables)
