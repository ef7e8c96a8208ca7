"""Tables that agree, are non-negative, whole, near in other senses, and meet every public sum to the last integer."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import policygraph as pg
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.cubes import columns, finest, rounding
from policygraph.estimation.cubes.cells import Fact, all_sums, facts_of, spread, summed
from policygraph.estimation.cubes.errors import factors_at, lower_tail, published_errors
from policygraph.estimation.cubes.finest import program_cells
from policygraph.estimation.cubes.finish import Finish
from policygraph.estimation.cubes.least_squares import Conditions, fit, fit_with_facts, usable
from policygraph.estimation.cubes.nonnegative import Projection
from policygraph.estimation.cubes.rounding import controlled
from policygraph.model.constraints.base import freeze_where
from policygraph.release.release import Randomness
from policygraph.transforms.cuboids.blocks import project
from policygraph.transforms.cuboids.choose import Choice
from policygraph.transforms.cuboids.costs import block_precisions, known_blocks
from policygraph.transforms.cuboids.lattice import Family, Lattice
from tests.gate import noisy
from tests.oracles.cube_consistency import dense_fit, fact_row, local_nonnegative, roundings, rows_of

DOMAIN = pg.Domain({"sex": ["F", "M"], "age": 3, "work": 2})
LATTICE = Lattice(DOMAIN)
QUERY = pg.queries.all_cuboids(DOMAIN)
TABLE = np.array([5, 0, 2, 4, 1, 9, 0, 3, 7, 0, 0, 6])


@st.composite
def cubes(draw):
    """A small cube with noisy measured tables, whole known tables and other true public sums."""
    sizes = draw(st.lists(st.integers(2, 3), min_size=2, max_size=3))
    lattice = Lattice(pg.Domain({f"a{i}": n for i, n in enumerate(sizes)}))
    top = lattice.base
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    true = rng.poisson(rng.choice([0.5, 3, 40]), lattice.shape(top))
    masks = sorted({top, *draw(st.lists(st.integers(0, top), max_size=3))}, reverse=True)
    weights = tuple(draw(st.integers(1, 3)) for _ in masks)
    choice = Choice(tuple(lattice.names(m) for m in masks), weights)
    sums = all_sums(lattice, true, top, range(top + 1))
    measured = {
        m: (w * sums[m] + rng.integers(-9, 10, lattice.shape(m))).ravel()
        for m, w in zip(masks, weights, strict=True)
    }
    known = {m: sums[m] for m in draw(st.lists(st.integers(0, top - 1), max_size=2, unique=True))}
    facts = []
    for mask in draw(st.lists(st.integers(1, top), max_size=3)):
        cells = np.array(
            sorted(draw(st.sets(st.integers(0, lattice.size(mask) - 1), min_size=1, max_size=3)))
        )
        ones = np.ones(len(cells), dtype=np.int64)
        value = int(Fact(mask, cells, ones).of(sums[mask]))
        facts.append(Fact(mask, cells, ones, value, value == 0 and draw(st.booleans())))
    return lattice, true, choice, measured, known, facts


@given(cubes())
@settings(max_examples=120, deadline=None)
def test_least_squares_with_public_sums_is_the_dense_solution(cube):
    lattice, _, choice, measured, known, facts = cube
    top = lattice.base
    wanted = list(range(top + 1))
    made = fit_with_facts(lattice, choice, measured, wanted, known, facts)
    used = usable(lattice, choice, list(known), wanted, facts)
    dense, covariance = dense_fit(lattice, top, choice, measured, known, used)
    for mask in wanted:
        np.testing.assert_allclose(made[mask], summed(lattice, dense, top, mask), atol=1e-9)
        for low in (mask ^ (1 << axis) for axis in lattice.axes(mask)):
            assert np.array_equal(summed(lattice, made[mask], mask, low), made[low])
    for mask, table in known.items():
        assert np.array_equal(made[mask], table)
    for fact in facts:
        assert fact.of(made[fact.mask]) == fact.value
    plain = factors_at(lattice, choice, list(known), wanted, consistent=True)
    taken = Conditions(lattice, choice, list(known), wanted, used).corrections(wanted)
    for mask, before in zip(wanted, plain, strict=True):
        rows = rows_of(lattice, mask, top)
        after = np.einsum("ij,jk,ik->i", rows, covariance, rows)
        assert np.all(after <= before + 1e-9)
        np.testing.assert_allclose(before - taken[mask], after, atol=1e-9)


@given(cubes())
@settings(max_examples=40, deadline=None)
def test_many_public_sums_go_the_other_way_to_the_same_result(cube):
    lattice, _, choice, measured, known, facts = cube
    wanted = list(range(lattice.base + 1))
    used = usable(lattice, choice, list(known), wanted, facts)
    conditions = Conditions(lattice, choice, list(known), wanted, used)
    tables = fit(lattice, choice, measured, wanted, known)
    missing = np.array([float(f.value) for f in used]) - conditions.values(tables)
    dense = conditions.covariance(dict(enumerate(conditions.weights(missing))))
    conditions.__dict__["inverse"] = None
    gradients = conditions.covariance(dict(enumerate(conditions.weights(missing))))
    for mask in wanted:
        np.testing.assert_allclose(gradients[mask], dense[mask], atol=1e-7)
    assert conditions.corrections(wanted) is None


def test_facts_of_a_policy_are_rows_of_small_tables():
    facts = facts_of(
        LATTICE,
        pg.Policy(
            DOMAIN,
            constraints=[
                pg.Cuboid("sex"),
                pg.Cell(sex="M", age=1),
                pg.LinearCount([({"age": [0, 2]}, 2), ({"work": 1}, 3)]),
                pg.StructuralZero([{"age": 2, "work": 0}, ["F", 0, 1]]),
            ],
        ),
    )
    assert [f.mask for f in facts] == [0b011, 0b110, 0b110, 0b111]
    assert freeze_where({"age": 2}) == (("age", (2,)),)
    rows = [fact_row(LATTICE, f, 7) for f in facts]
    cells = [DOMAIN.cell(i) for i in range(12)]
    assert rows[0].tolist() == [float(c[:2] == ("M", 1)) for c in cells]
    assert rows[1].tolist() == [2.0 * (c[1] in (0, 2)) + 3.0 * (c[2] == 1) for c in cells]
    assert rows[2].tolist() == [float(c[1:] == (2, 0)) for c in cells]
    assert rows[3].tolist() == [float(c == ("F", 0, 1)) for c in cells]
    assert [f.empty for f in facts] == [False, False, True, True]


FACTS = [pg.Cuboid("age"), pg.Cell(sex="F", work=0), pg.StructuralZero([["F", 0, 1]])]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"nonnegative": True},
        {"whole": True},
        {"nonnegative": True, "whole": True},
        {"consistency": "least-absolute"},
        {"consistency": "least-maximum", "nonnegative": True},
        {"consistency": "least-absolute", "nonnegative": True, "whole": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("loss", [pg.Epsilon("1/4"), pg.Rho("1/9")], ids=str)
def test_every_public_fact_is_met_to_the_last_integer(options, loss):
    policy = pg.Policy(DOMAIN, constraints=FACTS)
    ready = pg.Cube("bmax", **options).calibrate(QUERY, policy, loss)
    made = ready.run(TABLE, pg.SeededRng(5))
    base = made.cuboid("sex", "age", "work").values.reshape(2, 3, 2)
    assert base.sum(axis=(0, 2)).tolist() == TABLE.reshape(2, 3, 2).sum(axis=(0, 2)).tolist()
    assert made.cuboid("sex", "work").values[0] == TABLE.reshape(2, 3, 2)[0, :, 0].sum()
    assert base[0, 0, 1] == 0
    assert made.cell(sex="F", work=0)[0] == 8
    for table in made.tables:
        mask = LATTICE.mask(table.columns)
        assert np.array_equal(summed(LATTICE, base, 7, mask).ravel(), table.values)
        if "nonnegative" in options:
            assert table.values.min() >= 0
        if "whole" in options:
            assert np.array_equal(table.values, np.rint(table.values))
    if not options:
        assert made.cell(sex="F", work=0)[1] == pytest.approx(0, abs=1e-6)
        assert np.ndim(made.variance("sex", "work")) == 1


@given(
    st.lists(st.integers(2, 4), min_size=2, max_size=3),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["base", "pairs", "all"]),
    st.sampled_from([0.3, 4.0, 60.0]),
    st.sampled_from([1.0, 5.0, 40.0]),
    st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_non_negative_tables_are_the_nearest_and_never_farther_from_the_truth(
    sizes, seed, kind, dense, noise, known
):
    lattice = Lattice(pg.Domain({f"a{i}": n for i, n in enumerate(sizes)}))
    top = lattice.base
    rng = np.random.default_rng(seed)
    low = [m for m in range(1, top) if lattice.level(m) == max(1, len(sizes) - 1)]
    masks = {"base": [top], "pairs": low, "all": [top, *low]}[kind]
    choice = Choice(tuple(lattice.names(m) for m in masks), (1,) * len(masks))
    true = rng.poisson(dense, lattice.shape(top))
    measured = {
        m: np.rint(summed(lattice, true, top, m) + rng.normal(0, noise, lattice.shape(m))) for m in masks
    }
    exact = {0: true.sum()} if known else {}
    family = Family(lattice, masks)
    fitted = fit(lattice, choice, measured, masks, exact)
    precisions = block_precisions(family, family.spread(masks, 1.0)) / noise**2
    program = Projection(family, precisions, known_blocks(family, exact), fitted)
    made = program.solve()
    truth = all_sums(lattice, true.astype(float), top, family.masks.tolist())

    def far(one, other):
        return sum(
            precisions[at] * float((project(one[m] - other[m]) ** 2).sum())
            for at, m in enumerate(family.masks.tolist())
        )

    assert min(float(made.tables[m].min()) for m in masks) >= 0
    if known:
        assert float(made.tables[0]) == pytest.approx(true.sum())
    assert made.gap <= 1e-3
    # The projection theorem, up to the gap that was reached.
    slack = 2 * (made.value - made.bound)
    assert far(made.tables, truth) ** 0.5 <= far(fitted, truth) ** 0.5 + slack**0.5 + 1e-9
    best = local_nonnegative(
        lattice, family, precisions, fitted, lattice.maximal(masks), true.sum() if known else None
    )
    assert made.bound <= best * (1 + 1e-6) + 1e-6
    assert made.value >= best * (1 - 1e-6) - 1e-6


def test_non_negative_tables_of_sparse_data_are_far_nearer_and_of_large_counts_the_same():
    domain = pg.Domain({"a": 6, "b": 5, "c": 4, "d": 3})
    query = pg.queries.cuboids(domain, [["a", "b"], ["b", "c"], ["c", "d"], ["a", "d"]])
    rng = np.random.default_rng(1)
    ready = pg.Cube("all", nonnegative=True).calibrate(query, pg.Policy(domain), pg.Epsilon("1/2"))
    plain = pg.Cube("all").on(ready.choice, query, pg.Policy(domain), pg.Epsilon("1/2"))
    lattice = Lattice(domain)
    for size, ratio in ((60, 0.6), (2_000_000, 1.02)):
        shares = rng.dirichlet(np.full(domain.size, 0.3 if size < 1000 else 50.0))
        table = rng.multinomial(size, shares)
        errors = np.zeros(2)
        for seed in range(12):
            points = noisy(ready, table, pg.SeededRng(seed))
            for at, made in enumerate((plain, ready)):
                for mask, found in made.tables(points).items():
                    if mask in made.published:
                        errors[at] += float(
                            (
                                (found - summed(lattice, table.reshape(domain.shape), lattice.base, mask))
                                ** 2
                            ).sum()
                        )
        assert errors[1] <= ratio * errors[0], (size, errors)


def test_sums_of_many_empty_cells_do_not_drift_when_only_the_finest_table_is_measured():
    domain = pg.Domain({"a": 16, "b": 16, "c": 16, "d": 4})
    query = pg.queries.cuboids(domain, [["a"], ["b"], ["c", "d"], list(domain.names)])
    lattice = Lattice(domain)
    shares = np.ones(())
    for n in domain.shape:
        falling = 0.5 ** np.arange(n) + 1e-3
        shares = np.multiply.outer(shares, falling / falling.sum())
    table = np.random.default_rng(2).multinomial(3000, shares.ravel())
    plain = pg.Cube("base").calibrate(query, pg.Policy(domain), pg.Epsilon(1))
    ready = pg.Cube("base", nonnegative=True).on(plain.choice, query, pg.Policy(domain), pg.Epsilon(1))
    true = all_sums(lattice, table.reshape(domain.shape), lattice.base, ready.published)
    errors = np.zeros((2, 4))
    for seed in range(4):
        points = noisy(plain, table, pg.SeededRng(seed))
        for at, made in enumerate((plain.tables(points), ready.tables(points))):
            errors[at] += [float(((made[m] - true[m]) ** 2).sum()) for m in ready.published]
    # Fitted to the finest table alone the errors of the first three are 6.5, 5 and 3 times those of least squares.
    assert np.all(errors[1] <= errors[0] * [1.2, 1.1, 0.6, 0.2]), errors[1] / errors[0]


def test_ranges_hold_for_tables_that_are_not_linear_in_the_noise():
    held, count = 0, 0
    options = {"nonnegative": True, "whole": True}
    ready = pg.Cube("bmax", **options).calibrate(QUERY, pg.Policy(DOMAIN), pg.Epsilon("1/2"))
    true = np.concatenate([summed(LATTICE, TABLE.reshape(2, 3, 2), 7, m).ravel() for m in ready.published])
    for seed in range(60):
        made = ready.run(TABLE, pg.SeededRng(seed))
        values = np.concatenate([t.values for t in made.tables])
        within = np.concatenate([np.asarray(t.within_95) for t in made.tables])
        held += int((np.abs(values - true) <= within + 1e-9).sum())
        count += len(values)
    assert held / count >= 0.95
    made = published_errors(np.array([2.0]), np.array([1.0]), 3.0, 4.0)
    assert (made.deviation.tolist(), made.within_95.tolist()) == ([10.0**0.5], [3.0])


@pytest.mark.parametrize("method", ["least-absolute", "least-maximum"])
@pytest.mark.parametrize(("nonnegative", "most"), [(False, 1 << 14), (True, 1 << 14), (True, 0)])
@given(cube=cubes())
@settings(max_examples=25, deadline=None)
def test_programs_reach_the_least_deviation(method, nonnegative, most, cube):
    lattice, _, choice, measured, known, facts = cube
    top = lattice.base
    inside = dict(known)
    with pytest.MonkeyPatch.context() as patch:
        # Without room for any, cells are generated.
        patch.setattr(finest, "PROGRAM_BASE", most)
        x = program_cells(method, lattice, top, choice, measured, inside, facts, nonnegative=nonnegative)
    rows = np.concatenate(
        [w * rows_of(lattice, lattice.mask(s), top) for s, w in zip(choice.sets, choice.weights, strict=True)]
    )
    targets = np.concatenate([measured[lattice.mask(s)] for s in choice.sets]).astype(float)
    equal = [rows_of(lattice, m, top) for m in known]
    values = [np.ravel(t).astype(float) for t in known.values()]
    for fact in facts:
        cells = fact.cells_in(lattice, top)
        equal.append(np.eye(lattice.size(top))[cells] if fact.empty else fact_row(lattice, fact, top)[None])
        values.append(np.zeros(len(cells)) if fact.empty else np.array([float(fact.value)]))
    off = np.abs(rows @ x.ravel() - targets)
    found = off.sum() if method == "least-absolute" else off.max()
    for e, v in zip(equal, values, strict=True):
        np.testing.assert_allclose(e @ x.ravel(), v, atol=1e-6)
    n, height = x.size, len(targets)
    slack = np.eye(height) if method == "least-absolute" else np.ones((height, 1))
    cost = np.concatenate([np.zeros(n), np.ones(slack.shape[1])])
    best = linprog(
        cost,
        A_ub=np.block([[rows, -slack], [-rows, -slack]]),
        b_ub=np.concatenate([targets, -targets]),
        A_eq=np.hstack([np.concatenate(equal), np.zeros((len(np.concatenate(values)), slack.shape[1]))])
        if equal
        else None,
        b_eq=np.concatenate(values) if equal else None,
        bounds=[(0, None) if nonnegative else (None, None)] * n + [(0, None)] * slack.shape[1],
        method="highs-ipm",
    )
    assert found == pytest.approx(best.fun, rel=1e-6, abs=1e-5)
    if nonnegative:
        assert x.min() >= 0
    support = np.flatnonzero(np.abs(x.ravel()) > 1e-7)
    everything = np.concatenate([rows, *equal]) if equal else rows
    assert np.linalg.matrix_rank(everything[:, support]) == len(support)


@pytest.mark.parametrize("kind", ["cuboids", "interactions"])
@pytest.mark.parametrize("method", ["least-absolute", "least-maximum"])
@pytest.mark.parametrize("known", [(), (1,), (1, 6)])
def test_generated_cells_are_as_good_as_all_of_them(kind, method, known, monkeypatch):
    lattice = Lattice(pg.Domain({"a": 2, "b": 3, "c": 2, "d": 2, "e": 3}))
    top = lattice.base
    masks = [m for m in range(top + 1) if lattice.level(m) <= 2]
    choice = Choice(tuple(lattice.names(m) for m in masks), tuple(1 + m % 3 for m in masks), kind)
    rng = np.random.default_rng(5)
    true = rng.multinomial(60, rng.dirichlet(np.full(lattice.size(top), 0.2)))
    query = choice.query(lattice.domain)
    noisy = query.answer(true) + rng.integers(-9, 10, query.height)
    cuts = np.cumsum([part.height for part in query.parts])[:-1]
    measured = dict(zip(masks, np.split(noisy, cuts), strict=True))
    tables = {m: summed(lattice, true.reshape(lattice.shape(top)), top, m) for m in known}

    def missed(x):
        off = np.abs(query.columns(np.arange(lattice.size(top))) @ x.ravel() - noisy)
        return off.sum() if method == "least-absolute" else off.max()

    whole = program_cells(method, lattice, top, choice, measured, tables, nonnegative=True)
    monkeypatch.setattr(finest, "PROGRAM_BASE", 0)
    monkeypatch.setattr(columns, "ADDED", 5)
    made = program_cells(method, lattice, top, choice, measured, tables, nonnegative=True)
    assert missed(made) == pytest.approx(missed(whole), rel=1e-6)
    assert made.min() >= 0
    for mask, table in tables.items():
        np.testing.assert_allclose(summed(lattice, made, top, mask), table, atol=1e-6)
    monkeypatch.setattr(columns, "MOST_ENTRIES", 1)
    with pytest.raises(RefusedError, match="coefficients"):
        program_cells(method, lattice, top, choice, measured, tables, nonnegative=True)
    monkeypatch.setattr(columns, "MOST_ENTRIES", 1 << 20)
    monkeypatch.setattr(columns, "ROUNDS", 1)
    with pytest.raises(RefusedError, match="rounds of new cells") as refused:
        program_cells(method, lattice, top, choice, measured, tables, nonnegative=True)
    assert refused.value.code == "cubes.program"


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=8), st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_any_dual_values_give_a_bound(duals, absolute, total):
    """The optimum of the doctest of program_cells is known: cells (3, 0), off by 2 at most, by 4 in all."""
    from scipy import sparse

    lattice = Lattice(pg.Domain({"a": 2, "b": 2}))
    choice = Choice((("a",), ("b",), *([()] if total else [])), (1, 1, *([1] if total else [])))
    targets = np.array([4.0, -2.0, 3.0, 9.0, *([5.0] if total else [])])
    program = columns.Columns(
        lattice,
        3,
        choice,
        choice.query(lattice.domain),
        targets,
        np.arange(4),
        sparse.csr_matrix((0, 4)),
        np.zeros(0),
        absolute,
    )
    given_duals = np.array(duals[: len(targets)])
    scaled = given_duals / max(1.0, np.abs(given_duals).max() if absolute else np.abs(given_duals).sum())
    bound = program.bound(scaled, np.zeros(0))
    value = program.solved(np.arange(4), 1.0)[3]
    assert float(bound) <= value + 1e-9


def test_what_no_table_has_is_refused_by_generated_cells(monkeypatch):
    monkeypatch.setattr(finest, "PROGRAM_BASE", 0)
    lattice = Lattice(pg.Domain({"a": 2, "b": 2}))
    choice = Choice((("a",),), (1,))
    with pytest.raises(RefusedError) as refused:
        program_cells(
            "least-maximum", lattice, 3, choice, {1: [1, 1]}, {1: [5, 5], 2: [3, 3]}, nonnegative=True
        )
    assert refused.value.code == "cubes.program"


def test_a_vertex_is_rounded_within_the_rank_and_an_inner_optimum_is_not():
    domain = pg.Domain({f"a{i}": 2 for i in range(9)})
    lattice = Lattice(domain)
    top = lattice.base
    pairs = [m for m in range(top + 1) if lattice.level(m) <= 2]
    choice = Choice(tuple(lattice.names(m) for m in pairs), (1,) * len(pairs), "interactions")
    rng = np.random.default_rng(3)
    true = rng.multinomial(200, np.full(domain.size, 1 / domain.size))
    query = choice.query(domain)
    noisy = query.answer(true) + rng.integers(-8, 9, query.height)
    measured, start = {}, 0
    for mask, part in zip(pairs, query.parts, strict=True):
        measured[mask] = noisy[start : start + part.height]
        start += part.height
    x = program_cells("least-maximum", lattice, top, choice, measured, {}, nonnegative=True)
    rank = len(pairs)
    assert (x > 0).sum() <= rank
    margin = [m for m in range(top + 1) if lattice.level(m) <= 2]

    def moved(table):
        whole = np.rint(table)
        return max(float(np.abs(summed(lattice, whole - table, top, m)).max()) for m in margin)

    # The same optimum seen from inside: as near to the even table as the sums of the vertex allow.
    inner = np.full(lattice.shape(top), x.sum() / x.size)
    for _ in range(150):
        for mask in margin[1:]:
            have, want = summed(lattice, inner, top, mask), summed(lattice, x, top, mask)
            inner = inner * spread(
                lattice, np.where(have > 0, want / np.maximum(have, 1e-300), 0.0), mask, top
            )
    rows = query.columns(np.arange(domain.size)).toarray()
    best = np.abs(rows @ x.ravel() - noisy).max()
    assert np.abs(rows @ inner.ravel() - noisy).max() == pytest.approx(best, rel=1e-2)
    assert moved(x) <= rank
    assert moved(inner) > rank


@given(
    st.lists(st.integers(2, 3), min_size=2, max_size=3),
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 7), max_size=3),
)
@settings(max_examples=120, deadline=None)
def test_rounding_keeps_known_sums_and_takes_floors_and_ceilings_where_that_is_possible(sizes, seed, masks):
    lattice = Lattice(pg.Domain({f"a{i}": n for i, n in enumerate(sizes)}))
    top = lattice.base
    rng = np.random.default_rng(seed)
    true = rng.poisson(2.0, lattice.shape(top)).astype(float)
    known = {m & top: summed(lattice, true, top, m & top) for m in masks}
    # Fractional cells with whole known sums: an average of tables that have them.
    values = true.copy()
    e = np.concatenate([rows_of(lattice, m, top) for m in known] or [np.zeros((0, true.size))])
    free = np.linalg.svd(e)[2][np.linalg.matrix_rank(e) :] if len(e) else np.eye(true.size)
    for _ in range(3):
        move = (rng.normal(size=len(free)) @ free).reshape(values.shape)
        shrink = np.min(np.where(move < 0, values / np.maximum(-move, 1e-12), 1.0))
        values = np.maximum(values + min(1.0, 0.9 * float(shrink)) * move, 0.0)
    made = controlled(lattice, top, values, known)
    assert made.min() >= 0
    for mask, goal in known.items():
        assert np.array_equal(summed(lattice, made, top, mask), goal)
    close = np.all((made >= np.floor(values + 1e-6)) & (made <= np.ceil(values - 1e-6)))
    possible = len(lattice.maximal(known)) <= 2
    if not possible and values.size <= 12:
        possible = next(roundings(lattice, top, np.round(values, 7), known), None) is not None
    assert close or not possible


def test_three_cuboids_without_a_chain_are_searched_and_a_chain_is_not():
    lattice = Lattice(pg.Domain({"a": 3, "b": 3, "c": 3}))
    assert rounding.chain([3, 6, 5]) is None
    rng = np.random.default_rng(0)
    values = rng.poisson(3.0, (3, 3, 3)).astype(float)
    corner = np.zeros((3, 3, 3))
    for i in range(2):
        for j in range(2):
            for k in range(2):
                corner[i, j, k] = 0.5 * (-1) ** (i + j + k)
    values += 1 + corner
    known = {m: summed(lattice, values, 7, m) for m in (3, 6, 5)}
    made = controlled(lattice, 7, values, known)
    for mask, goal in known.items():
        assert np.array_equal(summed(lattice, made, 7, mask), goal)
    assert np.all(np.abs(made - values) < 1)
    wide = Lattice(pg.Domain({"a": 30, "b": 30, "c": 30}))
    with pytest.raises(RefusedError, match="no chain") as refused:
        controlled(wide, 7, np.ones((30, 30, 30)), {m: np.full((30, 30), 30) for m in (3, 6, 5)})
    assert refused.value.code == "cubes.search"
    closed = [Fact(1, np.array([0]), np.array([1]), 0, empty=True)]
    for known in (
        {1: [1, 0, 0]},
        {1: [1, 0, 0], 2: [1, 0, 0]},
        {m: np.eye(3, dtype=int) for m in (3, 6, 5)},
    ):
        with pytest.raises(RefusedError) as none:
            controlled(lattice, 7, np.zeros((3, 3, 3)), known, closed)
        assert none.value.code == "cubes.no-whole-table"
        made = controlled(lattice, 7, np.zeros((3, 3, 3)), known)
        for mask, goal in known.items():
            assert np.array_equal(summed(lattice, made, 7, mask), goal)


@pytest.mark.parametrize("loss", [pg.Epsilon(1), pg.Rho("1/2")], ids=str)
def test_the_offset_is_fixed_before_the_noise_and_keeps_counts_above_zero(loss):
    ready = pg.Cube("fourier" if isinstance(loss, pg.Rho) else "bmax", offset="1/20").calibrate(
        QUERY, pg.Policy(DOMAIN), loss
    )
    shift = ready.shift
    below = 0
    for seed in range(100):
        made = ready.run(np.zeros(12, dtype=int), pg.SeededRng(seed))
        assert made.record["cube"]["shift"] == shift > 0
        below += min(float(t.values.min()) for t in made.tables) < 0
        base = made.cuboid("sex", "age", "work").values.reshape(2, 3, 2)
        assert np.array_equal(base.sum(axis=(1, 2)), made.cuboid("sex").values)
    assert below <= 5
    plain = pg.Cube().on(ready.choice, QUERY, pg.Policy(DOMAIN), loss)
    points = noisy(ready, TABLE, pg.SeededRng(1))
    shifted, straight = ready.tables(points), plain.tables(points)
    for mask in ready.published:
        np.testing.assert_allclose(shifted[mask] - straight[mask], shift * LATTICE.size(7 & ~mask), atol=1e-9)
    assert "Every count is shifted" in " ".join(ready.stages())
    assert lower_tail(0.0, "discrete Laplace", 3.0, 0.1) == 0.0


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=5),
    st.sampled_from([0.7, 2.0, 5.0]),
    st.sampled_from([0.2, 0.01, 1e-4]),
)
@settings(max_examples=60, deadline=None)
def test_tails_of_listed_noises_are_bounds(weights, scale, chance):
    """Against the distribution of the sum, noise by noise."""
    reach = int(40 * scale) + 10
    values = np.arange(-reach, reach + 1)
    one = np.exp(-np.abs(values) / scale)
    one /= one.sum()
    total = np.ones(1)
    for weight in weights:
        spaced = np.zeros(2 * reach * weight + 1)
        spaced[::weight] = one
        total = np.convolve(total, spaced)
    middle = (len(total) - 1) // 2
    t = lower_tail(
        float(np.square(weights).sum()),
        "discrete Laplace",
        scale,
        chance,
        (np.array(weights, dtype=float), np.ones(len(weights))),
    )
    assert total[: max(0, middle - int(np.floor(t)))].sum() <= chance
    assert t <= lower_tail(float(np.square(weights).sum()), "discrete Laplace", scale, chance)


def test_the_offset_of_pairs_of_twenty_attributes():
    """A Laplace variable of the deviation of a count would need 1,056."""
    domain = pg.Domain({f"a{at}": 2 for at in range(20)})
    query = pg.queries.cuboids(domain, list(combinations(domain.names, 2)))
    ready = pg.Cube("all", offset="1/100").calibrate(query, pg.Policy(domain), pg.Epsilon(1))
    assert ready.shift * 2**18 == 938
    spread = max(ready.factors) * ready.noise.variance
    assert ready.shift * 2**18 > 4.2 * np.sqrt(spread)


@pytest.mark.parametrize("count", [4, 12])
def test_the_offset_of_coarse_tables_is_what_they_need_and_no_more(count):
    """One whole count for each finest cell would shift two-way tables of 12 attributes by 1,024."""
    domain = pg.Domain({f"a{at}": 2 for at in range(count)})
    pairs = [[f"a{at}", f"a{at + 1}"] for at in range(count - 1)]
    ready = pg.Cube("all", offset="1/100").calibrate(
        pg.queries.cuboids(domain, pairs), pg.Policy(domain), pg.Rho("1/2")
    )
    added = ready.shift * 2 ** (count - 2)
    chance = 0.01 / (4 * len(pairs))
    needed = max(
        lower_tail(f, ready.noise.distribution, float(ready.parameter), chance)
        for f in ready.factors.tolist()
    )
    assert needed <= added <= needed + 1 + 1e-6
    assert ready.record(Randomness(True, "none"), [])["cube"]["shift"] == ready.shift


def test_the_tail_of_the_offset_holds_for_one_noise_of_any_scale():
    for scale in (0.2, 1.0, 7.5):
        for chance in (0.3, 0.01, 1e-6):
            t = lower_tail(1.0, "discrete Laplace", scale, chance)
            q = np.exp(-1 / scale)
            tail = q ** np.floor(t + 1) / (1 + q)
            assert tail <= chance


def test_what_cannot_be_asked_together_is_said():
    for options, code in [
        ({"consistency": "nearest"}, "cubes.consistency"),
        ({"consistency": None, "whole": True}, "cubes.consistency"),
        ({"offset": "1/10", "whole": True}, "cubes.offset"),
        ({"offset": 2}, "cubes.offset"),
    ]:
        with pytest.raises(InputError) as wrong:
            pg.Cube("all", **options).calibrate(QUERY, pg.Policy(DOMAIN), pg.Epsilon(1))
        assert wrong.value.code == code
    assert Finish.from_json(Finish(offset=Fraction(1, 7)).to_json()) == Finish(offset=Fraction(1, 7))


def test_what_is_too_large_is_refused_with_the_way_out(monkeypatch):
    wide = pg.Domain({f"a{i}": 10 for i in range(9)})
    query = pg.queries.cuboids(wide, [["a0", "a1", "a2"], ["a3", "a4", "a5"], ["a6", "a7", "a8"]])
    with pytest.raises(RefusedError, match="leave out nonnegative and whole") as refused:
        pg.Cube("all", nonnegative=True, whole=True).calibrate(query, pg.Policy(wide), pg.Epsilon(1))
    assert refused.value.code == "cubes.finest"
    large = pg.Domain({"a": 200, "b": 100})
    pair = pg.queries.cuboids(large, [["a", "b"]])
    with pytest.raises(RefusedError, match=r"16,384.*least-squares") as refused:
        pg.Cube("all", consistency="least-maximum").calibrate(pair, pg.Policy(large), pg.Epsilon(1))
    assert refused.value.code == "cubes.program-size"
    monkeypatch.setattr(finest, "PROGRAM_ENTRIES", 10)
    with pytest.raises(RefusedError, match="least-squares"):
        program_cells(
            "least-absolute", LATTICE, 7, Choice((("sex",),), (1,)), {1: [0, 0]}, {}, nonnegative=True
        )


def test_too_many_zeros_for_least_squares_are_refused_before_data_are_read():
    large = pg.Domain({"a": 100, "b": 100, "c": 2})
    query = pg.queries.cuboids(large, [["a", "b", "c"]])
    policy = pg.Policy(large, constraints=[pg.StructuralZero([{"a": list(range(30))}])])
    with pytest.raises(RefusedError) as refused:
        pg.Cube("base").calibrate(query, policy, pg.Epsilon(1))
    assert refused.value.code == "cubes.public-sums"
    ready = pg.Cube("base", nonnegative=True).calibrate(query, policy, pg.Epsilon(1))
    table = np.zeros(large.size, dtype=int)
    table[-50:] = 3
    made = ready.run(table, pg.SeededRng(1))
    assert made.cuboid("a", "b", "c").values.reshape(100, 200)[:30].max() == 0


@pytest.mark.parametrize("options", [{"nonnegative": True}, {"whole": True}, {}], ids=str)
def test_files_give_everything_back(tmp_path, options):
    facts = [pg.Cell(sex="F", work=0)]
    ready = pg.Cube("bmax", **options).calibrate(QUERY, pg.Policy(DOMAIN, constraints=facts), pg.Epsilon(1))
    made = ready.run(TABLE, pg.SeededRng(5))
    made.to_parquet(tmp_path / "cube.parquet")
    for back in (
        pg.Release.from_parquet(tmp_path / "cube.parquet"),
        pg.Release.from_parquet(made.to_bytes()),
    ):
        assert back.record["cube"] == made.record["cube"]
        for one, other in zip(made.tables, back.tables, strict=True):
            assert np.array_equal(one.values, other.values)
            np.testing.assert_allclose(one.within_95, other.within_95, atol=1e-9)
            np.testing.assert_allclose(one.deviation, other.deviation, atol=1e-9)
        assert np.array_equal(made.least_squares("age").values, back.least_squares("age").values)
    few = pg.queries.cuboids(DOMAIN, [["sex", "age"]])
    part = (
        pg.Cube("all", **options).calibrate(few, pg.Policy(DOMAIN), pg.Epsilon(1)).run(TABLE, pg.SeededRng(1))
    )
    assert (
        part.cuboid("sex").values.tolist()
        == part.cuboid("sex", "age").values.reshape(2, 3).sum(axis=1).tolist()
    )
    value, deviation = part.cell(sex="M")
    assert value == part.cuboid("sex").values[1]
    assert deviation > 0
    assert np.all(np.asarray(part.cuboid("sex").within_95) > 0)


def test_names_of_different_wishes_differ_so_that_a_ledger_tells_them_apart():
    names = {
        pg.Cube("all", **options).calibrate(QUERY, pg.Policy(DOMAIN), pg.Epsilon(1)).mechanism
        for options in (
            {},
            {"whole": True},
            {"nonnegative": True},
            {"consistency": "least-absolute"},
            {"offset": "1/9"},
        )
    }
    assert len(names) == 5


ALL = [
    {"nonnegative": True},
    {"whole": True},
    {"nonnegative": True, "whole": True},
    {"consistency": "least-absolute", "nonnegative": True},
    {"consistency": "least-maximum", "whole": True},
]


@pytest.mark.parametrize("options", ALL, ids=str)
@pytest.mark.parametrize("strategy", ["all", "base", "unequal", "fourier"])
def test_small_and_empty_cubes(options, strategy):
    one = pg.Domain({"a": 1, "b": 2})
    cases = [
        (DOMAIN, pg.queries.total(DOMAIN), {}),
        (one, pg.queries.all_cuboids(one), {}),
        (DOMAIN, QUERY, {}),
        (DOMAIN, QUERY, {"graph": pg.PolicyGraph.attribute(DOMAIN)}),
    ]
    for domain, query, policy in cases:
        ready = pg.Cube(strategy, **options).calibrate(query, pg.Policy(domain, **policy), pg.Rho("1/50"))
        for seed in range(3):
            made = ready.run(np.zeros(domain.size, dtype=int), pg.SeededRng(seed))
            total = [t.values.sum() for t in made.tables]
            assert total == [total[0]] * len(total)
            if "nonnegative" in options:
                assert min(t.values.min() for t in made.tables) >= 0
            for mask in ready.known:
                assert made.cuboid(*ready.lattice.names(mask)).values.tolist() == [0] * ready.lattice.size(
                    mask
                )


@pytest.mark.parametrize("options", ALL, ids=str)
def test_everything_known_is_published_as_it_is(options):
    policy = pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex", "age"), pg.Cuboid("work")])
    query = pg.queries.cuboids(DOMAIN, [["sex"], ["age", "sex"], ["work"]])
    made = pg.Cube("all", **options).calibrate(query, policy, pg.Epsilon(1)).run(TABLE, pg.SeededRng(1))
    assert made.cuboid("sex", "age").values.tolist() == TABLE.reshape(6, 2).sum(axis=1).tolist()
    assert made.cuboid("work").values.tolist() == TABLE.reshape(6, 2).sum(axis=0).tolist()


@pytest.mark.parametrize("options", ALL, ids=str)
def test_a_cube_without_a_possible_record_is_empty(options):
    domain = pg.Domain({"a": 2})
    policy = pg.Policy(domain, constraints=[pg.StructuralZero([{"a": [0, 1]}])])
    ready = pg.Cube("all", **options).calibrate(pg.queries.all_cuboids(domain), policy, pg.Epsilon(1))
    made = ready.run([0, 0], pg.SeededRng(1))
    assert [t.values.tolist() for t in made.tables] == [[0.0], [0.0, 0.0]]


def test_weighted_counts_of_any_sign_are_met():
    fact = pg.LinearCount([({"sex": "F"}, 2), ({"age": 1}, -1), ({"work": 1, "age": 2}, 3)])
    policy = pg.Policy(DOMAIN, constraints=[fact])
    true = int(fact.sums(DOMAIN, TABLE)[0])
    for options in ({}, *ALL):
        made = (
            pg.Cube("all", **options).calibrate(QUERY, policy, pg.Epsilon("1/2")).run(TABLE, pg.SeededRng(1))
        )
        base = made.cuboid("sex", "age", "work").values
        rows = fact.rows(DOMAIN)
        assert float((base[rows.cell] * rows.coefficient).sum()) == true
