"""Chi-squared with public margins against literal definitions, and statistics of released tables: values, errors, coverage."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import permutations, product
from math import isqrt

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import policygraph as pg
from policygraph.cli.app import app
from policygraph.distributions.replay import Replay
from policygraph.estimation import statistics
from policygraph.files import dumps, loads
from policygraph.model.queries.statistics import ChiSquaredRoot
from policygraph.sensitivity.statistics import _cycles, statistic_bound


def policy_of(rows, columns, **options):
    domain = pg.Domain({"a": len(rows), "b": len(columns)})
    facts = [pg.Cuboid("a", equals=list(rows)), pg.Cuboid("b", equals=list(columns))]
    return pg.Policy(domain, constraints=facts, **options)


def literal_square(table, rows, columns) -> Fraction:
    """Chi-squared in fractions, by its definition."""
    n = sum(rows)
    cells = iter(np.asarray(table).ravel().tolist())
    out = Fraction(0)
    for r, c in product(rows, columns):
        x, e = next(cells), Fraction(r * c, n)
        out += (x - e) ** 2 / e if e else 0
    return out


def literal_cycle(rows, columns, half) -> Fraction:
    """The largest sum of 1 / e over all cycles through so many rows and columns."""
    n, best = sum(rows), Fraction(0)
    for some in permutations([r for r in rows if r], half):
        for others in permutations([c for c in columns if c], half):
            cells = [(some[i], others[j]) for i in range(half) for j in (i, (i + 1) % half)]
            best = max(best, sum((Fraction(n, r * c) for r, c in cells), Fraction(0)))
    return best


margins = st.lists(st.integers(0, 4), min_size=2, max_size=3)


def same_total(rows, columns):
    rows, columns = list(rows), list(columns)
    short = rows if sum(rows) < sum(columns) else columns
    short[0] += abs(sum(rows) - sum(columns))
    return rows, columns


@settings(max_examples=60, deadline=None)
@given(margins, margins, st.integers(0, 10**6))
def test_the_answer_is_the_floor_of_the_root_or_one_less(rows, columns, seed):
    rows, columns = same_total(rows, columns)
    if not sum(rows):
        return
    query = ChiSquaredRoot(pg.Domain({"a": len(rows), "b": len(columns)}), {"a": rows, "b": columns})
    records = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(columns)), columns))
    table = np.zeros((len(rows), len(columns)), dtype=np.int64)
    np.add.at(table, (np.repeat(np.arange(len(rows)), rows), records), 1)
    square = literal_square(table, rows, columns) * 4**query.bits
    exact = isqrt(square.numerator // square.denominator)
    assert exact - 1 <= int(query.answer(table)[0]) <= exact
    cells = np.flatnonzero(table.ravel())
    assert query.answer_sparse(cells, table.ravel()[cells]) == query.answer(table)
    assert statistics.roots(query, [table.ravel()])[0] ** 2 == pytest.approx(
        float(literal_square(table, rows, columns)), abs=1e-9
    )


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=4),
    st.lists(st.integers(1, 9), min_size=2, max_size=4),
)
def test_the_longest_cycle_is_found_among_all(rows, columns):
    rows, columns = same_total(rows, columns)
    query = ChiSquaredRoot(pg.Domain({"a": len(rows), "b": len(columns)}), {"a": rows, "b": columns})
    for half in range(2, query.longest + 1):
        assert query.cycle(half) == literal_cycle(rows, columns, half)


@settings(max_examples=25, deadline=None)
@given(margins, margins, st.sampled_from(["worst-case", "markov"]))
def test_no_pair_of_neighbours_changes_more_than_the_bound(rows, columns, strength):
    rows, columns = same_total(rows, columns)
    if not sum(rows):
        return
    policy = policy_of(rows, columns, strength=strength)
    bound = statistic_bound(pg.queries.chi_squared_root(policy, "a", "b"), policy)
    found = bound.verify()
    assert not found.failed
    assert found.complete


def test_a_short_cycle_among_small_sums_can_change_more_than_a_long_one():
    policy = policy_of([10, 10, 80], [10, 10, 80])
    query = pg.queries.chi_squared_root(policy, "a", "b")
    assert query.cycle(3) < query.cycle(2)
    expected, after = [1, 1, 8, 1, 1, 8, 8, 8, 64], [2, 0, 8, 0, 2, 8, 8, 8, 64]
    change = abs(int(query.answer(expected)[0]) - int(query.answer(after)[0]))
    assert statistic_bound(query, policy).power >= change == 2 * 2**query.bits


def test_without_the_values_of_a_fact_no_tables_are_listed():
    domain = pg.Domain({"a": 2, "b": 2, "c": 2})
    facts = [pg.Cuboid("a", equals=[2, 2]), pg.Cuboid("b", equals=[2, 2]), pg.Cuboid("c")]
    policy = pg.Policy(domain, constraints=facts)
    found = statistic_bound(pg.queries.chi_squared_root(policy, "a", "b"), policy).verify()
    assert not found.failed
    assert not found.complete


def test_the_bound_is_nearly_attained_and_a_smaller_one_is_refuted():
    policy = policy_of([5, 5], [5, 5])
    query = pg.queries.chi_squared_root(policy, "a", "b")
    bound = statistic_bound(query, policy)
    assert bound.power <= query.cycle(2) ** 0.5 * 2**query.bits + 3
    from dataclasses import replace

    assert replace(bound, power=bound.power - 3).verify().failed
    assert statistic_bound(query, policy, "l2").power == bound.power**2


def test_further_attributes_and_graphs_take_sums_of_cycles():
    domain = pg.Domain({"a": 2, "b": 2, "c": 2})
    facts = [pg.Cuboid(name, equals=[3, 3]) for name in "abc"]
    policy = pg.Policy(domain, constraints=facts)
    query = pg.queries.chi_squared_root(policy, "a", "b")
    bound = statistic_bound(query, policy)
    assert not bound.verify().failed
    tables = [
        np.array(t)
        for t in product(range(4), repeat=8)
        if all(
            np.array(t).reshape(2, 2, 2).sum(axis=axes).tolist() == [3, 3]
            for axes in ((1, 2), (0, 2), (0, 1))
        )
    ]
    answers = [int(query.answer(table)[0]) for table in tables]
    largest = max(
        abs(answers[i] - answers[j])
        for i in range(0, len(tables), 5)
        for j in range(i)
        if np.abs(tables[i] - tables[j]).sum() <= 6 and policy.are_neighbours(tables[i], tables[j])
    )
    assert 0 < largest <= bound.power
    assert _cycles([0, 0, 5, 7], 7) == 5 + 5 + 7
    assert _cycles([0, 0, 5, 7], 3) == 7
    assert _cycles([0, 0, 5, 7], 10_000) >= 5 * 5_000


def test_margins_that_determine_the_table_need_no_noise():
    policy = policy_of([4, 0], [1, 3])
    query = pg.queries.chi_squared_root(policy, "a", "b")
    assert statistic_bound(query, policy).power == 0
    made = pg.release(query, policy, [1, 3, 0, 0], epsilon=1, rng=pg.SeededRng(1))
    assert made.values()[0] == 0
    assert statistics.chi_squared(made, runs=99).p_value == 1.0


SKEWED = policy_of([60, 140], [100, 60, 40])
LAW = [[60 * c / 200 for c in (100, 60, 40)], [140 * c / 200 for c in (100, 60, 40)]]


@pytest.mark.parametrize("kind", ["root", "root, rho", "table", "table, rho"])
def test_p_values_hold_their_level_and_find_dependence(kind):
    query = pg.queries.chi_squared_root(SKEWED, "a", "b")
    loss = {"rho": "1/2"} if "rho" in kind else {"epsilon": 1}
    if kind.startswith("root"):
        asked, mechanism = query, None
    else:
        asked = pg.queries.identity(SKEWED.domain)
        mechanism = pg.Gaussian() if "rho" in kind else pg.Laplace()
    tables = next(statistics.null_tables(query, 100, Replay("tables", kind)))
    found = []
    for at, table in enumerate(tables):
        made = pg.release(asked, SKEWED, table.astype(int), mechanism=mechanism, rng=pg.SeededRng(at), **loss)
        found.append(statistics.chi_squared(made, runs=199).p_value)
    below = np.array(found) <= 0.2
    # Twenty of 100 are expected; four standard deviations are sixteen.
    assert abs(int(below.sum()) - 20) < 16
    strong = [50, 5, 5, 50, 55, 35]
    made = pg.release(asked, SKEWED, strong, mechanism=mechanism, rng=pg.SeededRng(5), **loss)
    test = statistics.chi_squared(made)
    assert test.p_value < 0.01
    assert test.degrees == 2
    assert "p = " in str(test)
    assert test == statistics.chi_squared(pg.Release.from_parquet(made.to_bytes()))


def test_without_noise_the_quadratic_form_is_chi_squared():
    query = pg.queries.chi_squared_root(SKEWED, "a", "b")
    table = np.array([[50.0, 5, 5, 50, 55, 35]])
    form = statistics.quadratic_form(query, 0.0)(table)[0]
    assert form == pytest.approx(statistics.roots(query, table)[0] ** 2 * 199 / 200)


def test_null_tables_have_the_moments_of_the_hypergeometric_distribution():
    query = pg.queries.chi_squared_root(SKEWED, "a", "b")
    tables = np.concatenate(list(statistics.null_tables(query, 20_000, Replay("moments"))))
    assert np.allclose(tables.mean(axis=0), np.ravel(LAW), atol=0.2)
    variance = 60 * 140 * 100 * 100 / (200 * 200 * 199)
    assert tables[:, 0].var() == pytest.approx(variance, rel=0.05)


AGES = pg.Domain({"age": [20, 30, 40, 50], "pay": [1, 2, 3], "vote": ["no", "yes"]})
COUNTS = np.random.default_rng(3).poisson(
    [
        40 + 25 * (i - 1.5) * (j - 1) * 0.8 + 20 * k * (j == 2)
        for i in range(4)
        for j in range(3)
        for k in range(2)
    ]
)
SCORES = {"vote": {"no": 0, "yes": 1}}


def literal_statistics(counts):
    """The same from the records themselves."""
    codes = np.repeat(np.arange(AGES.size), counts)
    age, pay, vote = np.unravel_index(codes, AGES.shape)
    age, pay = np.array([20, 30, 40, 50])[age], np.array([1, 2, 3])[pay]
    slopes = np.linalg.lstsq(np.stack([age, vote, np.ones(len(age))], axis=1), pay, rcond=None)[0]
    return {
        "total": len(age),
        "mean": age.mean(),
        "variance": age.var(),
        "covariance": np.cov(age, pay, bias=True)[0, 1],
        "correlation": np.corrcoef(age, pay)[0, 1],
        "slope": slopes[0],
        "other slope": slopes[1],
        "intercept": slopes[2],
    }


def from_release(made, **options):
    found = statistics.moments(made, scores=SCORES, **options)
    line = found.regression("pay", ["age", "vote"])
    return {
        "total": found.total(),
        "mean": found.mean("age"),
        "variance": found.variance("age"),
        "covariance": found.covariance("age", "pay"),
        "correlation": found.correlation("age", "pay"),
        "slope": line["age"],
        "other slope": line["vote"],
        "intercept": line["intercept"],
    }


def test_without_noise_statistics_are_those_of_the_records():
    policy = pg.Policy(AGES)
    made = pg.release(
        pg.queries.identity(AGES), policy, COUNTS, epsilon=1000, mechanism=pg.Laplace(), rng=pg.SeededRng(1)
    )
    truth = literal_statistics(COUNTS)
    for name, estimate in from_release(made).items():
        assert estimate.value == pytest.approx(truth[name], rel=1e-9)
        assert estimate.deviation < 1e-6 * max(1, abs(estimate.value))


@pytest.mark.parametrize("mechanism", [pg.Laplace(), pg.Gaussian()], ids=["Laplace", "Gaussian"])
def test_ranges_cover_the_statistics_of_the_records(mechanism):
    truth, runs = literal_statistics(COUNTS), 30
    loss = {"epsilon": "1/4"} if isinstance(mechanism, pg.Laplace) else {"rho": "1/20"}
    hits = dict.fromkeys(truth, 0)
    for seed in range(runs):
        made = pg.release(
            pg.queries.identity(AGES),
            pg.Policy(AGES),
            COUNTS,
            mechanism=mechanism,
            rng=pg.SeededRng(seed),
            **loss,
        )
        for name, estimate in from_release(made).items():
            hits[name] += estimate.low <= truth[name] <= estimate.high
    share = sum(hits.values()) / (runs * len(hits))
    assert 0.95 <= share <= 0.99
    assert min(hits.values()) / runs > 0.85


def test_ranges_for_a_population_cover_its_statistics():
    law = (COUNTS + 1) / (COUNTS + 1).sum()
    truth = literal_statistics(np.rint(law * 10**6).astype(int))
    rng, runs = np.random.default_rng(8), 30
    hits = dict.fromkeys((name for name in truth if name != "total"), 0)
    for seed in range(runs):
        made = pg.release(
            pg.queries.identity(AGES),
            pg.Policy(AGES),
            rng.multinomial(1200, law),
            epsilon="1/4",
            mechanism=pg.Laplace(),
            rng=pg.SeededRng(seed),
        )
        for name, estimate in from_release(made, population=True).items():
            if name in hits:
                hits[name] += estimate.low <= truth[name] <= estimate.high
    share = sum(hits.values()) / (runs * len(hits))
    assert 0.95 <= share <= 0.99


def test_public_margins_are_used():
    table = COUNTS.reshape(AGES.shape)
    facts = [
        pg.Cuboid("age", equals=table.sum(axis=(1, 2)).tolist()),
        pg.Cuboid("pay", equals=table.sum(axis=(0, 2)).tolist()),
    ]
    policy = pg.Policy(AGES, constraints=facts)
    made = pg.release(
        pg.queries.identity(AGES), policy, COUNTS, epsilon=1, mechanism=pg.Laplace(), rng=pg.SeededRng(1)
    )
    found, truth = statistics.moments(made, scores=SCORES), literal_statistics(COUNTS)
    for name in ("total", "mean", "variance"):
        exact = {
            "total": found.total,
            "mean": lambda: found.mean("age"),
            "variance": lambda: found.variance("age"),
        }[name]()
        assert exact.value == pytest.approx(truth[name])
        assert exact.deviation < 1e-6
    noisy = found.covariance("age", "pay")
    assert noisy.low <= truth["covariance"] <= noisy.high
    assert noisy.deviation > 0.01


DOMAIN = pg.Domain({"age": [20, 40], "sex": ["F", "M"]})


def made_by(mechanism, query=None, counts=(50, 60, 70, 80)):
    return pg.release(
        query or pg.queries.identity(DOMAIN),
        pg.Policy(DOMAIN),
        list(counts),
        epsilon=1,
        mechanism=mechanism,
        rng=pg.SeededRng(1),
    )


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: statistics.moments(made_by(pg.Cube()), "age"), "statistics.mechanism"),
        (lambda: statistics.moments(made_by(pg.Laplace()), "sex"), "statistics.scores"),
        (lambda: statistics.moments(made_by(pg.Laplace()), "age", scores={"age": [1]}), "statistics.scores"),
        (lambda: statistics.moments(made_by(pg.Laplace()), "pay"), "statistics.attribute"),
        (lambda: statistics.moments(made_by(pg.Laplace()), "age").mean("sex"), "statistics.attribute"),
        (
            lambda: statistics.moments(made_by(pg.Laplace()), "age").regression("age", "age"),
            "statistics.attribute",
        ),
        (
            lambda: statistics.moments(made_by(pg.Laplace(), counts=(0, 0, 1, 0)), "age").mean("age"),
            "statistics.noise",
        ),
        (lambda: statistics.chi_squared(made_by(pg.Laplace())), "query.margins"),
        (
            lambda: statistics.chi_squared(made_by(pg.Laplace(), pg.queries.cuboid(DOMAIN, "age"))),
            "statistics.release",
        ),
        (lambda: statistics.chi_squared(made_by(pg.Laplace()), runs=0), "statistics.runs"),
        (lambda: pg.queries.chi_squared_root(pg.Policy(DOMAIN), "age", "sex"), "query.margins"),
        (lambda: pg.queries.chi_squared_root(policy_of([2, 2], [2, 2]), "a", "a"), "query.margins"),
        (lambda: ChiSquaredRoot(DOMAIN, {"age": [1, 2], "sex": [1, 1]}), "query.margins"),
        (lambda: ChiSquaredRoot(DOMAIN, {"age": [1, 2], "sex": [1.5, 1.5]}), "query.margins"),
        (lambda: ChiSquaredRoot(pg.Network(3), {}), "query.domain"),
        (
            lambda: ChiSquaredRoot(
                pg.Domain({"a": 1025, "b": 1024}), {"a": [1] + [0] * 1024, "b": [1] + [0] * 1023}
            ),
            "query.size",
        ),
        (
            lambda: statistic_bound(
                ChiSquaredRoot(DOMAIN, {"age": [1, 1], "sex": [1, 1]}), pg.Policy(DOMAIN)
            ),
            "statistic.policy",
        ),
        (
            lambda: pg.sensitivity(ChiSquaredRoot(DOMAIN, {"age": [1, 1], "sex": [1, 1]}), pg.Policy(DOMAIN)),
            "query.not-linear",
        ),
    ],
)
def test_what_cannot_be_computed_gets_a_sentence(make, code):
    with pytest.raises(pg.PolicyGraphError) as raised:
        make()
    assert raised.value.code == code


def test_plain_forms_are_read_back():
    policy = policy_of([3, 4], [2, 5])
    query = pg.queries.chi_squared_root(policy, "b", "a")
    assert pg.queries.from_spec(policy.domain, query.to_spec()) == query
    assert query.attributes == ("a", "b")
    assert "chi-squared" in query.parts[0].name


CHI = (
    '[domain]\nsex = ["F", "M"]\npay = ["low", "high"]\n[[public]]\ncuboid = ["sex"]\nequals = [3, 2]\n'
    '[[public]]\ncuboid = ["pay"]\nequals = [3, 2]\n[[release]]\nstatistic = "chi-squared"\n'
)


def test_chi_squared_from_a_policy_file_and_the_command(tmp_path):
    text = CHI + 'attributes = ["sex", "pay"]\n'
    read = loads(text)
    assert read.query == pg.queries.chi_squared_root(read.policy, "sex", "pay")
    assert loads(dumps(read.policy, read.query)).query == read.query
    (tmp_path / "p.toml").write_text(text)
    (tmp_path / "d.csv").write_text("sex,pay\nF,low\nF,low\nF,high\nM,low\nM,high\n")
    run = CliRunner()
    out = str(tmp_path / "out")
    made = run.invoke(
        app,
        [
            "release",
            str(tmp_path / "p.toml"),
            "--data",
            str(tmp_path / "d.csv"),
            "--epsilon",
            "1",
            "--out",
            out,
        ],
    )
    assert made.exit_code == 0, made.output
    found = json.loads(run.invoke(app, ["independence", out, "--runs", "99", "--json"]).stdout)
    assert (found["degrees"], found["runs"], 0 < found["p_value"] <= 1) == (1, 99, True)
    told = run.invoke(app, ["sensitivity", str(tmp_path / "p.toml"), "--json"])
    assert json.loads(told.stdout)["unit"] == str(read.query.unit)
    for words in ("sensitivity", "explain"):
        assert "sensitivity <= 1.86" in run.invoke(app, [words, str(tmp_path / "p.toml")]).stdout


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (CHI, "expected attributes"),
        (CHI + 'attributes = ["sex"]\n', "attributes"),
        (CHI + 'attributes = ["sex", "age"]\n', "age"),
        (CHI + 'attributes = ["sex", "pay"]\nlargest = 3\n', "does not belong beside chi-squared"),
        (
            CHI.replace("equals = [3, 2]\n[[public]]", "[[public]]") + 'attributes = ["sex", "pay"]\n',
            "not published",
        ),
        (
            '[network]\nnodes = 4\n[[release]]\nstatistic = "triangles"\nattributes = ["a", "b"]\n',
            "needs a table",
        ),
        (
            '[network]\nnodes = 4\n[[release]]\nstatistic = "chi-squared"\nattributes = ["a", "b"]\n',
            "a network has no",
        ),
    ],
)
def test_a_file_that_asks_for_chi_squared_wrongly_says_how(text, word):
    with pytest.raises(pg.InputError, match=word):
        loads(text)


def income(seed, policy=None, **options):
    """Averages of a measure by age, and the records behind them."""
    rng = np.random.default_rng(3)
    age = rng.choice([20, 40, 60], 3000)
    pay = np.clip(300 + 5 * age + rng.normal(0, 60, 3000), 0, 1000).round().astype(int)
    domain = pg.Domain({"age": [20, 40, 60]})
    asked = pg.queries.averages(domain, [["age"]], pg.Measure("income", 0, 1000))
    made = pg.release(
        asked,
        policy or pg.Policy(domain),
        pyarrow.table({"age": age, "income": pay}),
        rng=pg.SeededRng(seed),
        **options,
    )
    return made, age, pay


@pytest.mark.parametrize("loss", [{"epsilon": 1}, {"rho": "1/4"}], ids=str)
def test_moments_of_measured_sums_cover_those_of_the_records(loss):
    runs, hits = 15, np.zeros(4)
    for seed in range(runs):
        made, age, pay = income(seed, **loss)
        found = pg.statistics.moments(made)
        line = found.regression("income", "age")
        slope, start = np.polyfit(age, pay, 1)
        pairs = [
            (line["age"], slope),
            (line["intercept"], start),
            (found.mean("income"), pay.mean()),
            (found.covariance("age", "income"), np.cov(age, pay, bias=True)[0, 1]),
        ]
        hits += [each.low <= true <= each.high for each, true in pairs]
    assert (hits >= 12).all(), hits
    again = pg.statistics.moments(made)
    assert again.mean("income") == found.mean("income")
    assert abs(found.mean("age").value - age.mean()) < 1


def test_moments_of_measured_sums_are_exact_without_noise():
    made, age, pay = income(1, epsilon=10**6)
    found = pg.statistics.moments(made).regression("income", "age")
    np.testing.assert_allclose(
        [found["age"].value, found["intercept"].value], np.polyfit(age, pay, 1), rtol=1e-4
    )


@pytest.mark.parametrize(
    "ask",
    [
        lambda found: found.variance("income"),
        lambda found: found.correlation("age", "income"),
        lambda found: found.regression("age", "income"),
    ],
)
def test_squares_of_a_measure_are_not_known(ask):
    with pytest.raises(pg.RefusedError) as refusal:
        ask(pg.statistics.moments(income(1, epsilon=1)[0]))
    assert refusal.value.code == "statistics.measure"


def test_sums_without_counts_and_samples_are_refused():
    domain = pg.Domain({"age": [20, 40, 60]})
    asked = pg.queries.sums(domain, [["age"]], pg.Measure("income", 0, 9))
    made = pg.release(
        asked,
        pg.Policy(domain),
        pyarrow.table({"age": [20, 40], "income": [1, 2]}),
        epsilon=1,
        rng=pg.SeededRng(1),
    )
    for attempt in (
        lambda: pg.statistics.moments(made),
        lambda: pg.statistics.moments(income(1, epsilon=1)[0], population=True),
    ):
        with pytest.raises(pg.RefusedError) as refusal:
            attempt()
        assert refusal.value.code == "statistics.measure"
