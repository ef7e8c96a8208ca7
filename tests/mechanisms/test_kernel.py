"""Noise that keeps the public facts: lattice, privacy by listing, errors, the choice between mechanisms."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.distributions import laplace_variance
from policygraph.distributions.moments import gaussian_pmf, laplace_pmf
from policygraph.distributions.sums import sum_within
from policygraph.errors import ConstraintError, InputError, RefusedError
from policygraph.mechanisms import Fitted, Kernel, choose
from policygraph.mechanisms.constrained.free_lattice import (
    free_lattice,
    kernel_pair,
    left_inverse,
    open_cells,
)
from policygraph.release import Release
from policygraph.ties import digits
from tests.gate import noisy_many
from tests.oracles.fibres import neighbour_pairs, tables

E = pg.Epsilon


def table_policy(shape, known, **more):
    domain = pg.Domain(dict(zip("abcd", shape, strict=False)))
    return pg.Policy(domain, constraints=[pg.Cuboid(*names) for names in known], **more)


SHAPES = st.sampled_from([(2,), (3,), (2, 2), (2, 3), (3, 2), (2, 1), (2, 2, 2)])


@st.composite
def policies(draw):
    """Small tables with margins, weighted counts and structural zeros."""
    shape = draw(SHAPES)
    domain = pg.Domain(dict(zip("abc", shape, strict=False)))
    names = domain.names
    margins = draw(st.lists(st.sets(st.sampled_from(names)), max_size=3))
    facts = [pg.Cuboid(*sorted(margin)) for margin in {frozenset(m) for m in margins}]
    if draw(st.booleans()):
        weights = draw(st.lists(st.integers(-1, 3), min_size=domain.size, max_size=domain.size))
        terms = [(domain.cell(at), w) for at, w in enumerate(weights) if w]
        facts += [pg.LinearCount(terms)] if terms else []
    if draw(st.booleans()) and domain.size > 2:
        facts.append(pg.StructuralZero([domain.cell(draw(st.integers(0, domain.size - 1)))]))
    if not facts:
        facts = [pg.Total()]
    return pg.Policy(domain, constraints=facts)


def fitting(policy, table):
    """A table without records in structural zeros."""
    out = np.array(table)
    out[policy.system.zeros] = 0
    return out


@settings(max_examples=60, deadline=None)
@given(policies(), st.data())
def test_the_lattice_is_what_the_facts_leave_free(policy, data):
    cells, basis, inverse = kernel_pair(policy)
    rows = np.asarray(policy.system.matrix().toarray(), dtype=object)[:, cells]
    d = basis.shape[1]
    assert not np.any(rows @ basis)
    assert (inverse @ basis == np.eye(d, dtype=object)).all()
    # Every short integer vector that keeps the facts is a whole combination of the basis.
    n = len(cells)
    for vector in product((-1, 0, 1), repeat=n) if n <= 6 else ():
        g = np.array(vector, dtype=object)
        if not np.any(rows @ g):
            assert (basis @ (inverse @ g) == g).all()


@settings(max_examples=40, deadline=None)
@given(policies(), st.data())
def test_answers_of_tables_with_the_same_facts_differ_by_lattice_points_and_share_one_origin(policy, data):
    domain = policy.domain
    weights = data.draw(
        st.lists(
            st.lists(st.integers(-2, 2), min_size=domain.size, max_size=domain.size), min_size=1, max_size=3
        )
    )
    queries = [pg.queries.identity(domain), pg.queries.matrix(domain, weights)]
    rows = policy.system.matrix().toarray()
    for query in queries:
        for stepwise in (False, True):
            free = free_lattice(query, policy, stepwise=stepwise)
            origins = {}
            for table in product(range(2), repeat=domain.size):
                x = np.array(table)
                if np.any(x[policy.system.zeros]):
                    continue
                key = tuple((rows @ x).tolist())
                share = free.coordinates @ x.astype(object)
                origin = tuple((query.answer(x) - free.basis @ share).tolist())
                assert origins.setdefault(key, origin) == origin


@settings(max_examples=40, deadline=None)
@given(policies(), st.data())
def test_releases_keep_the_facts_exactly(policy, data):
    domain = policy.domain
    query = pg.queries.identity(domain)
    counts = data.draw(st.lists(st.integers(0, 9), min_size=domain.size, max_size=domain.size))
    table = fitting(policy, counts)
    if free_lattice(query, policy).rank == 0:
        with pytest.raises(InputError, match="determine all answers"):
            Kernel().calibrate(query, policy, E(1))
        return
    rows = policy.system.matrix().toarray()
    for mechanism in (Kernel(), Fitted()):
        ready = mechanism.calibrate(query, policy, E("1/2"))
        for made in noisy_many(ready, table, 20, pg.SeededRng(data.draw(st.integers(0, 99)))):
            assert (rows @ made == rows @ table).all()
            assert not np.any(made[policy.system.zeros])


LISTED = [
    ((2, 2), ["a", "b"], [[2, 2], [2, 2]]),
    ((2, 3), ["a", "b"], [[2, 2], [1, 2, 1]]),
    ((3, 3), ["a", "b"], [[1, 1, 1], [1, 1, 1]]),
    ((2, 2, 2), ["a", "b", "c"], [[2, 1], [1, 2], [2, 1]]),
    ((2, 2, 2), ["ab", "bc", "ac"], [[1, 1, 1, 1]] * 3),
    ((2, 3), ["a"], [[2, 1]]),
]


@pytest.mark.parametrize(("shape", "known", "values"), LISTED)
@pytest.mark.parametrize("published", [True, False])
def test_neighbours_are_indistinguishable_by_listing_them(shape, known, values, published):
    """The scale covers the coordinates of every neighbour pair that a literal listing finds; and some pair needs it."""
    domain = pg.Domain(dict(zip("abc", shape, strict=False)))
    facts = [pg.Cuboid(*n, equals=v if published else None) for n, v in zip(known, values, strict=True)]
    policy = pg.Policy(domain, constraints=facts)
    system = pg.Policy(
        domain, constraints=[pg.Cuboid(*n, equals=v) for n, v in zip(known, values, strict=True)]
    ).system
    rows, told = system.full_rows()
    fibre = tables(rows.toarray().tolist(), told, max(max(v) for v in values), domain.size)
    assert fibre
    pairs = neighbour_pairs(rows.toarray().tolist(), fibre)
    for query in (pg.queries.identity(domain), pg.queries.cuboid(domain, "b")):
        if free_lattice(query, policy).rank == 0:
            continue
        ready = Kernel().calibrate(query, policy, E("1/3"))
        norms = []
        for a, b in pairs:
            change = np.array(b, dtype=object) - np.array(a, dtype=object)
            share = ready.free.coordinates @ change
            moved = query.answer(np.array(b)) - query.answer(np.array(a))
            assert (ready.free.basis @ share == moved).all()
            norms.append(sum(abs(s) for s in share))
        # log of the ratio of any output's probabilities is at most norm / scale
        assert Fraction(max(norms)) / ready.parameter <= Fraction(1, 3)
        if published and ready.sensitivity.exact:
            assert Fraction(max(norms)) / ready.parameter == Fraction(1, 3)


def test_two_by_two_needs_one_number_and_a_quarter_of_the_variance():
    policy = table_policy((2, 2), ["a", "b"])
    query = pg.queries.identity(policy.domain)
    ready = Kernel().calibrate(query, policy, E(Fraction(1, 50)))
    assert (ready.free.rank, ready.sensitivity.value) == (1, 1)
    assert ready.deviation(0) == pytest.approx(np.sqrt(laplace_variance(50)))
    assert Fitted().calibrate(query, policy, E(Fraction(1, 50))).sensitivity.value == 4
    # noise on four cells, projected: 16 times the variance over a quarter of the dimensions
    projected = 4 * laplace_variance(4 * 50) / 4
    assert projected / ready.total_error == pytest.approx(4, rel=1e-3)


def test_margins_of_larger_tables_use_only_what_is_free():
    policy = table_policy((2, 2, 2), ["ab", "bc", "ac"])
    ready = Kernel().calibrate(pg.queries.identity(policy.domain), policy, E(1))
    assert (ready.free.rank, ready.sensitivity.value) == (1, 1)
    policy = table_policy((4, 5, 2), ["a"])
    ready = Kernel().calibrate(pg.queries.cuboid(policy.domain, "c"), policy, E(1))
    assert (ready.free.rank, ready.sensitivity.value) == (1, 1)


def test_a_zero_margin_leaves_its_cells_empty():
    domain = pg.Domain({"a": 3, "b": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a", equals=[0, 4, 3]), pg.Cuboid("b", equals=[3, 4])])
    assert open_cells(policy)[0].tolist() == [2, 3, 4, 5]
    ready = Kernel().calibrate(pg.queries.identity(domain), policy, E("1/10"))
    for made in noisy_many(ready, [0, 0, 2, 2, 1, 2], 50, pg.SeededRng(3)):
        assert made[:2].tolist() == [0, 0]
        assert made.reshape(3, 2).sum(axis=0).tolist() == [3, 4]
    with pytest.raises(ConstraintError):
        ready.run([1, 0, 1, 2, 1, 2], pg.SeededRng(3))


@pytest.mark.parametrize("loss", [E("1/5"), pg.Rho("1/50")])
@pytest.mark.parametrize("mechanism", [Kernel(), Fitted()])
def test_stated_errors_are_those_of_the_noise(loss, mechanism):
    policy = table_policy((2, 3), ["a", "b"])
    ready = mechanism.calibrate(pg.queries.identity(policy.domain), policy, loss)
    table = np.array([5, 4, 3, 2, 1, 0])
    draws = noisy_many(ready, table, 20_000, pg.SeededRng(5)) - table
    stated = np.broadcast_to(ready.deviation(0), 6)
    found = draws.std(axis=0)
    assert np.all(np.abs(draws.mean(axis=0)) < 5 * stated / np.sqrt(20_000))
    assert np.allclose(found, stated, rtol=0.05)
    within = np.broadcast_to(ready.within_95(0), 6)
    inside = (np.abs(draws) <= within).mean(axis=0)
    assert np.all(inside > 0.945)
    assert np.all((np.abs(draws) <= 0.8 * within).mean(axis=0) < 0.95)


@pytest.mark.parametrize("laplace", [True, False])
@pytest.mark.parametrize("weights", [(1, 1), (1, 2), (1, 1, 1, 1), (3, 1, 1)])
@pytest.mark.parametrize("parameter", [Fraction(1, 3), Fraction(2), Fraction(150)])
def test_quantiles_of_sums_against_convolution(laplace, weights, parameter):
    pmf = laplace_pmf if laplace else gaussian_pmf
    reach = int(12 * parameter) + 30 if laplace else int(10 * float(parameter) ** 0.5) + 12
    one = np.array([pmf(k, parameter) for k in range(-reach, reach + 1)])
    law = np.ones(1)
    for weight in weights:
        spread = np.zeros(2 * reach * weight + 1)
        spread[::weight] = one
        law = np.convolve(law, spread)
    middle = len(law) // 2
    t = sum_within(weights, parameter, laplace=laplace)
    assert law[middle - t : middle + t + 1].sum() >= 0.95 - 1e-9
    smaller = t - 1 if parameter <= 64 else int(0.9 * t)
    assert law[middle - smaller : middle + smaller + 1].sum() < 0.95 + 1e-9


def test_wide_sums_are_scaled_not_listed():
    narrow = sum_within((1, 1, 2), Fraction(64), laplace=True)
    wide = sum_within((1, 1, 2), Fraction(64_000_000), laplace=True)
    assert wide / 1e6 == pytest.approx(narrow, rel=0.05)
    normal = sum_within((3, 4), Fraction(10**10), laplace=False)
    assert normal == pytest.approx(1.96 * 5 * 10**5, rel=1e-4)


def test_the_choice_is_the_smallest_error_and_says_so():
    for shape, known, kind in (
        ((2, 2), ["a", "b"], "Kernel"),
        ((3, 3), ["a", "b"], "Fitted"),
        ((2, 2, 2), ["ab", "bc", "ac"], "Kernel"),
    ):
        policy = table_policy(shape, known)
        query = pg.queries.identity(policy.domain)
        ready = choose(query, policy, E("1/10"))
        rivals = [m.calibrate(query, policy, E("1/10")) for m in (pg.Laplace(), Kernel(), Fitted())]
        assert ready.mechanism == kind
        assert ready.total_error == pytest.approx(min(rival.total_error for rival in rivals))
        for rival in rivals:
            assert digits(rival.total_error) in ready.why or "'free numbers' (a known pair" in ready.why


def test_the_choice_stays_additive_where_nothing_is_gained():
    domain = pg.Domain({"a": 3})
    query = pg.queries.identity(domain)
    assert choose(query, pg.Policy(domain), E(1)).mechanism == "Laplace"
    wide = pg.Domain({"a": 9})
    full = pg.Policy(wide, pg.PolicyGraph.full(wide))
    assert choose(pg.queries.identity(wide), full, E(1)).mechanism == "Laplace"
    known = pg.Policy(domain, constraints=[pg.Cuboid("a")])
    ready = choose(query, known, pg.Rho(1))
    assert (ready.mechanism, ready.noise.distribution) == ("Gaussian", "none")


def test_tables_of_any_size_keep_the_facts():
    """Where exact linear algebra would be too large, a table is fitted by its interactions."""
    big = pg.Policy(pg.Domain({"a": 500}), constraints=[pg.Total()])
    ready = choose(pg.queries.identity(big.domain), big, E(1))
    assert ready.keeps_facts
    assert "'fitted to the facts', 'free numbers' (tried for at most 400 cells" in ready.why
    made = ready.run(np.arange(500), pg.SeededRng(1)).values()
    assert made.sum() == pytest.approx(np.arange(500).sum(), abs=1e-6)


@pytest.mark.parametrize("loss", [E(4), E(1), E("1/10"), pg.Rho("1/2")], ids=str)
def test_the_policy_of_the_readme_keeps_its_facts_at_less_error(loss):
    domain = pg.Domain({"sex": ["F", "M"], "age": ["0-17", "18-64", "65+"], "salary": 5})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")])
    query = pg.queries.cuboid(domain, "sex", "age", "salary")
    ready = choose(query, policy, loss)
    plain = (pg.Laplace() if isinstance(loss, pg.Epsilon) else pg.Gaussian()).calibrate(query, policy, loss)
    assert ready.keeps_facts
    assert ready.total_error < 0.95 * plain.total_error
    counts = np.arange(30)
    made = ready.run(counts, pg.SeededRng(3)).values().reshape(2, 3, 5)
    assert np.allclose(made.sum(axis=(1, 2)), counts.reshape(2, 3, 5).sum(axis=(1, 2)), atol=1e-6)
    assert np.allclose(made.sum(axis=(0, 2)), counts.reshape(2, 3, 5).sum(axis=(0, 2)), atol=1e-6)


FITS = [
    ((2, 3, 5), ["a", "b"], None, "answers"),
    ((2, 2), ["a", "b"], None, "answers"),
    ((3, 4), ["a"], None, "answers"),
    ((2, 3, 4), ["ab"], [[1, 0, 2, 1] * 6, [0, 1] * 12], "cells"),
]


@pytest.mark.parametrize("fit", FITS, ids=str)
@pytest.mark.parametrize("loss", [E("1/2"), E(5), pg.Rho("1/2"), pg.Rho(6)], ids=str)
def test_the_expected_error_of_a_fit_is_that_of_its_releases(fit, loss):
    """Also where the noise is so small that rounding is most of the error, whatever the parity of the free numbers."""
    shape, known, rows, over = fit
    policy = table_policy(shape, known)
    domain = policy.domain
    query = pg.queries.identity(domain) if rows is None else pg.queries.matrix(domain, rows)
    ready = Fitted(over).calibrate(query, policy, loss)
    for table in (np.zeros(domain.size, dtype=np.int64), np.arange(domain.size)):
        errors = noisy_many(ready, table, 3_000, pg.SeededRng(7)) - query.answer(table)
        sums = (errors.astype(np.float64) ** 2).sum(axis=1)
        spread = sums.std() / np.sqrt(len(sums)) + 0.02 * ready.total_error
        assert abs(sums.mean() - ready.total_error) < 5 * spread
        inside = (np.abs(errors) <= ready.within_95(0)).mean(axis=0)
        assert np.all(inside > 0.935)
    assert ready.rests_on == "simulated"


@settings(max_examples=30, deadline=None)
@given(policies(), st.integers(0, 99))
def test_the_nearest_plane_moves_with_the_lattice(policy, seed):
    """So that errors depend on the noise alone, ties included."""
    query = pg.queries.identity(policy.domain)
    if free_lattice(query, policy).rank == 0:
        return
    ready = Fitted().calibrate(query, policy, E(1))
    rng = np.random.default_rng(seed)
    noise = rng.integers(-4, 5, (20, query.height)).astype(np.float64)
    steps = rng.integers(-5, 6, (20, ready.free.rank))
    moved = ready.nearest(noise + steps @ ready.basis.T)
    assert (moved == ready.nearest(noise) + steps).all()


def test_blowfish_neighbours_have_their_own_sensitivity():
    domain = pg.Domain({"a": 2, "b": 2})
    policy = pg.Policy(domain, pg.PolicyGraph.full(domain), [pg.Cuboid("a"), pg.Cuboid("b")])
    ready = choose(pg.queries.identity(domain), policy, E(1))
    assert (ready.mechanism, ready.sensitivity.value) == ("Kernel", 1)
    made = ready.run([3, 1, 4, 1], pg.SeededRng(2)).values().reshape(2, 2)
    assert (made.sum(axis=0).tolist(), made.sum(axis=1).tolist()) == ([7, 2], [4, 5])


def test_a_release_by_default_keeps_the_facts_and_states_each_error(tmp_path):
    domain = pg.Domain({"a": 2, "b": 3})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a", equals=[6, 3]), pg.Cuboid("b", equals=[4, 3, 2])])
    query = pg.queries.identity(domain)
    made = pg.release(query, policy, [3, 2, 1, 1, 1, 1], epsilon="1/2", source=pg.SeededRng(4))
    values = made.values().reshape(2, 3)
    assert (values.sum(axis=1).tolist(), values.sum(axis=0).tolist()) == ([6, 3], [4, 3, 2])
    assert any("may be negative" in line for line in made.sentences)
    basis = np.array(made.record["free_basis"])
    assert not np.any(policy.system.matrix().toarray() @ basis.T)
    made.to_parquet(tmp_path / "r.parquet")
    again = Release.from_parquet(tmp_path / "r.parquet")
    assert (again.values() == made.values()).all()
    assert np.array_equal(again.tables[0].deviation, made.tables[0].deviation)
    error = pg.expected_error(query, policy, epsilon="1/2")["a x b"]
    assert error == pytest.approx(float(np.sqrt(np.mean(np.square(made.tables[0].deviation)))))


def test_errors_that_differ_within_a_table_survive_every_format(tmp_path):
    policy = table_policy((2, 3), ["a", "b"])
    ready = Kernel().calibrate(pg.queries.identity(policy.domain), policy, E(1))
    stated = ready.deviation(0)
    assert len(set(stated.tolist())) == 2
    made = ready.run([3, 2, 1, 1, 1, 1], pg.SeededRng(4))
    assert made.table().column("standard_deviation").to_pylist() == stated.tolist()
    again = Release.from_parquet(made.to_bytes())
    assert np.array_equal(again.tables[0].within_95, made.tables[0].within_95)
    assert f"{stated.min():.4g} to {stated.max():.4g}" in str(made)
    assert '"standard_deviation": [' in made.to_json(tmp_path / "r.json")


def test_what_cannot_be_kept_is_refused():
    domain = pg.Domain({"a": 2, "b": 2})
    query = pg.queries.identity(domain)
    with pytest.raises(InputError) as edges:
        Kernel().calibrate(query, pg.Policy(domain, pg.PolicyGraph.full(domain)), E(1))
    assert edges.value.code == "kernel.facts"
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a")])
    foreign = pg.sensitivity(query, policy)
    with pytest.raises(InputError) as other:
        Kernel().calibrate(query, policy, E(1), foreign)
    assert other.value.code == "sensitivity.foreign"
    own = Kernel().calibrate(query, policy, E(1)).sensitivity
    assert Kernel().calibrate(query, policy, E(2), own).parameter == own.value / 2
    with pytest.raises(InputError) as norm:
        Kernel().calibrate(query, policy, pg.Rho(1), own)
    assert norm.value.code in ("mechanism.norm", "sensitivity.foreign")
    wide = pg.Policy(pg.Domain({"a": 3000}), constraints=[pg.Total()])
    with pytest.raises(RefusedError) as size:
        Kernel().calibrate(pg.queries.identity(wide.domain), wide, E(1))
    assert size.value.code == "kernel.size"
    with pytest.raises(RefusedError) as basis:
        left_inverse(np.array([[2], [4]], dtype=object))
    assert basis.value.code == "kernel.basis"
    huge = Kernel().calibrate(query, policy, E(1))
    with pytest.raises(RefusedError) as overflow:
        huge.run(np.array([2**62, 0, 0, 0]), pg.SeededRng(1))
    assert overflow.value.code == "query.overflow"
