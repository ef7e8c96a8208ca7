"""Marginals by prefixes and ranges from residuals: against dense least squares, published figures, and simulation."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.mechanisms.residuals.basis import Fit, ResidualBasis, asked_gram, fit, fitted_basis, whole
from policygraph.mechanisms.residuals.plan import plan
from policygraph.model.queries.products import AxisRows, ProductQuery
from tests.oracles import products as oracle

KINDS = ("values", "prefix", "ranges")


@st.composite
def marginal_requests(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    domain = pg.Domain({f"a{at}": n for at, n in enumerate(sizes)})
    every = [s for k in range(len(sizes) + 1) for s in itertools.combinations(domain.names, k)]
    sets = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    asked = {name: draw(st.sampled_from(KINDS)) for name in domain.names}
    policies = [
        pg.Policy(domain),
        pg.Policy(domain, pg.PolicyGraph.attribute(domain)),
        pg.Policy(domain, pg.PolicyGraph.full(domain).with_bottom()),
        pg.Policy(domain, constraints=[pg.Total()]),
        pg.Policy(domain, constraints=[pg.Cuboid(domain.names[0])]),
    ]
    return ProductQuery(domain, sets, asked), draw(st.sampled_from(policies))


def dense(query):
    return oracle.rows(query.domain, query.sets, query.asked).astype(float)


@given(marginal_requests(), st.sampled_from([pg.Rho("1/2"), pg.Epsilon(1)]))
@settings(max_examples=60)
def test_estimates_and_errors_are_those_of_dense_least_squares(request, loss):
    """Whatever was measured: the best linear unbiased estimate from it and the known tables, with the variance that is stated."""
    query, policy = request
    ready = pg.Residuals().calibrate(query, policy, loss)
    measured = np.zeros((0, query.domain.size))
    if ready.measured is not None:
        plain = ready.measured
        measured = oracle.rows(plain.domain, plain.sets, plain.asked, plain.weights).astype(float)
        assert np.array_equal(measured, plain.columns(np.arange(query.domain.size)).toarray())
    known = [oracle.rows(query.domain, other.sets, {}).astype(float) for other in ready.exact]
    exact = np.concatenate([np.zeros((0, query.domain.size)), *known])
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 9, query.domain.size)
    noise = rng.normal(size=len(measured)) * 5
    points = np.concatenate([measured @ truth + noise, exact @ truth])
    found = ready.to_answers(points)
    # Exact rows weigh so much more that they are met.
    heavy = np.concatenate([measured, exact * 1e7 * max(1.0, np.abs(measured).max(initial=1.0))])
    target = np.concatenate([measured @ truth + noise, heavy[len(measured) :] @ truth])
    want = dense(query)
    estimate = want @ np.linalg.lstsq(heavy, target, rcond=1e-13)[0]
    assert np.allclose(found, estimate, atol=1e-4 * (1 + np.abs(estimate).max()))
    free = _null_space(exact)
    inside = want @ free
    back = (
        inside @ np.linalg.pinv(measured @ free, rcond=1e-10) if len(measured) else np.zeros((len(want), 0))
    )
    stated = np.concatenate(ready.factors)
    assert np.allclose(stated, np.square(back).sum(axis=1), rtol=1e-6, atol=1e-12 * stated.max(initial=1.0))


def _null_space(rows):
    if not len(rows):
        return np.eye(rows.shape[1])
    _, sizes, vectors = np.linalg.svd(rows)
    return vectors[int((sizes > 1e-9).sum()) :].T


@given(marginal_requests())
@settings(max_examples=40)
def test_published_tables_agree_exactly(request):
    """Prefixes end in the sums, ranges are differences of them, and known tables are met to the last bit."""
    query, policy = request
    ready = pg.Residuals().calibrate(query, policy, pg.Rho("1/2"))
    counts = np.arange(query.domain.size) * 3 % 7
    made = ready.run(counts, pg.SeededRng(1))
    for at, (names, table) in enumerate(zip(query.sets, made.tables, strict=True)):
        shape = [query.factors[name].height for name in names]
        values = np.asarray(table.values).reshape(shape)
        exact = query.answer(counts)[sum(p.height for p in query.parts[:at]) :][: query.parts[at].height]
        certain = np.broadcast_to(ready.deviation(at), (query.parts[at].height,)) == 0
        assert np.array_equal(np.asarray(table.values)[certain], exact[certain])
        for other, rest in zip(query.sets, made.tables, strict=True):
            if set(other) == set(names[1:]) and len(names) == len(other) + 1:
                whole_row = {"values": values.sum(axis=0), "prefix": values[-1]}.get(
                    query.factors[names[0]].kind, values[query.factors[names[0]].n - 1]
                )
                assert np.array_equal(np.ravel(whole_row), np.asarray(rest.values))


@pytest.mark.parametrize("n", [2, 3, 5, 9])
@pytest.mark.parametrize("kind", ["prefix", "ranges"])
@pytest.mark.parametrize("weight", [0.0, 4.0])
def test_fits_reach_what_no_measurement_beats(n, kind, weight):
    """The bound holds for random measurements of the attribute, and the fit is at it."""
    made = fit(n, kind, weight)
    assert isinstance(made, Fit)
    assert made.value <= made.bound * (1 + 1e-6)
    asked = asked_gram(AxisRows(n, kind)) + weight
    rng = np.random.default_rng(n)
    for _ in range(30):
        rows = rng.normal(size=(n + 1, n))
        rows /= np.sqrt(np.square(rows).sum(axis=0).max())
        assert np.trace(asked @ np.linalg.inv(rows.T @ rows)) >= made.bound * (1 - 1e-9)
    # The parts of the residual and the sum make up the whole.
    assert np.isclose((np.sqrt(made.total + weight) + np.sqrt(made.residual)) ** 2, made.value, rtol=1e-4)
    assert np.allclose(made.gram @ made.even, 0, atol=1e-9)
    assert np.isclose(made.even.sum(), 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 3, 7])
def test_a_table_is_its_sum_and_its_residual(n, kind):
    made = fitted_basis(AxisRows(n, kind), 1.0, 8)
    counts = np.arange(n) ** 2 + 1.0
    again = made.even * counts.sum() + made.back @ (made.rows @ counts)
    assert np.allclose(again, counts)
    assert made.rows.dtype == np.int64
    assert made.longest <= 1 << 16
    assert isinstance(made, ResidualBasis)


def test_columns_of_rounded_rows_are_not_longer():
    rows = np.random.default_rng(0).normal(size=(9, 10))
    rows /= np.sqrt(np.square(rows).sum(axis=0).max())
    for bits in (3, 6, 10):
        made = whole(rows, bits)
        assert (made**2).sum(axis=0).max() <= 1 << (2 * bits)
        assert np.abs(made - rows * (1 << bits)).max() <= 1.5


PUBLISHED = {
    "CPS": ([100, 50, 7, 4, 2], 2, [3.081, 5.823, 7.302, 7.570]),
    "Loans": ([101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15], 4, [4.681, 14.502, 34.168, 34.144]),
}
"""ResidualPlanner+ (Xiao, He, Zhang, Kifer): sizes, how many of the first attributes are asked by prefixes, RMSE at rho = 1/2."""


@pytest.mark.parametrize("name", sorted(PUBLISHED))
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_published_errors_are_met_or_beaten(name, at):
    sizes, ordered, figures = PUBLISHED[name]
    domain = pg.Domain({f"a{k}": n for k, n in enumerate(sizes)})
    ways = [at + 1] if at < 3 else [0, 1, 2, 3]
    sets = [s for k in ways for s in itertools.combinations(domain.names, k)]
    query = pg.queries.marginals(domain, sets, prefix=domain.names[:ordered])
    made = plan(query, pg.Policy(domain), pg.Rho("1/2"))
    measured = made.query(query)
    proof = pg.sensitivity(measured, pg.Policy(domain), norm="l2")
    assert proof.exact
    rmse = (made.objective / query.height) ** 0.5
    assert rmse <= figures[at] * 1.001
    assert rmse <= (made.bound / query.height) ** 0.5 * 1.0005


def test_the_stated_error_is_that_of_the_noise_that_is_drawn():
    domain = pg.Domain({"sex": 2, "age": 30})
    query = pg.queries.marginals(domain, [["sex", "age"], ["age"]], prefix="age")
    ready = pg.Residuals().calibrate(query, pg.Policy(domain), pg.Rho("1/2"))
    assert np.isclose(ready.total_error, ready.plan.objective, rtol=1e-3)
    counts = np.arange(60)
    truth = query.answer(counts)
    runs = [
        np.concatenate([t.values for t in ready.run(counts, pg.SeededRng(seed)).tables]) - truth
        for seed in range(300)
    ]
    assert np.isclose(np.square(runs).sum(axis=1).mean(), ready.total_error, rtol=0.1)
    deviations = np.concatenate([ready.deviation(0), ready.deviation(1)])
    assert np.abs(np.mean(runs, axis=0) / deviations).max() < 5 / 300**0.5
    within = np.concatenate([ready.within_95(0), ready.within_95(1)])
    assert 0.94 <= (np.abs(runs) <= within).mean() <= 0.99


def test_auto_takes_residuals_and_a_ledger_knows_them_again(tmp_path):
    domain = pg.Domain({"sex": 2, "age": 30})
    query = pg.queries.marginals(domain, 2, prefix="age")
    ledger = pg.Ledger(tmp_path / "ledger.db")
    options = {"rho": "1/2", "ledger": ledger, "rng": pg.SeededRng(1)}
    one = pg.release(query, pg.Policy(domain), np.arange(60), **options)
    two = pg.release(query, pg.Policy(domain), np.arange(60), **options)
    assert one.to_json().count("Residuals")
    assert np.array_equal(one.values(), two.values())
    one.to_parquet(tmp_path / "made.parquet")
    again = pg.Release.from_parquet(tmp_path / "made.parquet")
    assert np.array_equal(again.values(), one.values())
    assert again.query == query


def test_other_queries_are_refused():
    domain = pg.Domain({"age": 3})
    with pytest.raises(pg.InputError) as caught:
        pg.Residuals().calibrate(pg.queries.prefix(domain), pg.Policy(domain), pg.Rho(1))
    assert caught.value.code == "residuals.query"
    with pytest.raises(pg.RefusedError) as refused:
        fit(5000, "prefix")
    assert refused.value.code == "residuals.values"
    wide = pg.Domain({f"a{k}": 3 for k in range(12)})
    with pytest.raises(pg.RefusedError) as refused:
        pg.Residuals().calibrate(
            pg.queries.marginals(wide, 12, prefix=wide.names), pg.Policy(wide), pg.Rho(1)
        )
    assert refused.value.code == "query.overflow"


def test_tables_by_value_are_those_of_the_cube():
    domain = pg.Domain({"a": 4, "b": 3, "c": 2})
    query = pg.queries.all_cuboids(domain, up_to=2)
    ready = pg.Residuals().calibrate(query, pg.Policy(domain), pg.Rho("1/2"))
    cube = pg.Cube(pg.cubes.Unequal(cells=True)).calibrate(query, pg.Policy(domain), pg.Rho("1/2"))
    assert np.isclose(ready.total_error, cube.total_error, rtol=1e-4)
