"""Sums and averages from records to releases: counting, noise, consistency, intervals, files, ledger."""

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.cli.app import run
from policygraph.curator.counting.tables import count_measure
from policygraph.curator.histogram import MeasuredCounts
from policygraph.errors import DataError, InputError, RefusedError
from policygraph.estimation.measures import UNDEFINED, MeasureRelease, ratio_intervals
from policygraph.files import dumps, loads
from tests.gate import noisy_many

SEX = pg.Domain({"sex": ["F", "M"], "age": 3})
INCOME = pg.Measure("income", 0, 1000, unit=10)
SETS = [["sex"], ["sex", "age"], []]
COUNTS = np.array([40, 7, 0, 300, 12, 90])
MEANS = np.array([20, 50, 0, 77, 100, 3])
PEOPLE = MeasuredCounts.from_vectors(SEX, INCOME, COUNTS, COUNTS * MEANS)


def level_of(value, measure):
    """The level in units by the words of the documentation, in exact numbers; None where there is no number."""
    if value is None or value != value:
        return None if isinstance(measure.missing, str) else int(measure.missing / measure.unit)
    if value in (float("inf"), float("-inf")):
        return measure.highest if value > 0 else measure.lowest
    clipped = min(max(Fraction(value), measure.low), measure.high) / measure.unit
    return int((clipped + Fraction(1, 2)) // 1)


NUMBERS = st.one_of(
    st.none(),
    st.integers(-50, 50),
    st.sampled_from([0.25, -0.75, 9.9, 1e300, -1e300, float("inf"), float("-inf"), float("nan")]),
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["F", "M"]), st.integers(0, 2), NUMBERS), min_size=1, max_size=12),
    st.sampled_from(["float", "text", "int"]),
    st.sampled_from([("drop", 1), (3, 1), ("drop", "1/2"), (-4, 2)]),
)
def test_values_are_clipped_and_rounded_record_by_record(records, kind, rule):
    missing, unit = rule
    measure = pg.Measure("income", -10, 20, unit=unit, missing=missing)
    values = [value for *_, value in records]
    if kind == "int":
        values = [None if v is None or v != v or abs(v) > 100 else int(v) for v in values]
        column = pa.array(values, pa.int32())
    elif kind == "float":
        column = pa.array(values, pa.float64())
    else:
        column = pa.array([None if v is None else f" {v}" for v in values], pa.string())
    table = pa.table({"sex": [r[0] for r in records], "age": [r[1] for r in records], "income": column})
    made = count_measure(table, SEX, measure)
    counts, sums = np.zeros((2, 3), dtype=int), np.zeros((2, 3), dtype=int)
    for (sex, age, _), value in zip(records, values, strict=True):
        level = level_of(value, measure)
        if level is not None:
            counts["FM".index(sex), age] += 1
            sums["FM".index(sex), age] += level
    assert made.vector().tolist() == counts.ravel().tolist()
    assert made.sums(["sex", "age"]).tolist() == sums.ravel().tolist()
    assert made.sums(["age"]).tolist() == sums.sum(axis=0).tolist()
    assert made.counts.dropped == len(records) - counts.sum()


def test_what_has_no_number_is_an_error_unless_there_is_a_rule(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("sex,age,income\nF,0,12\nM,1,\nM,2,abc\n")
    with pytest.raises(DataError, match="2 of 3 records have no number in 'income'") as caught:
        count_measure(path, SEX, INCOME)
    assert caught.value.code == "measure.no-value"
    made = count_measure(path, SEX, pg.Measure("income", 0, 1000, missing=7))
    assert made.sums([]).tolist() == [26]
    with pytest.raises(DataError, match="do not fit the domain"):
        count_measure(path, pg.Domain({"sex": ["F"], "age": 3}), INCOME)
    with pytest.raises(DataError) as caught:
        count_measure(path, SEX, pg.Measure("wage", 0, 1))
    assert caught.value.code == "data.missing-column"


def test_a_domain_too_large_for_one_vector_is_summed_table_by_table():
    wide = pg.Domain({"a": 10_000, "b": 10_000, "c": 2})
    table = pa.table({"a": [5, 5, 9], "b": [1, 2, 3], "c": [0, 1, 1], "x": [2.0, 30.0, -5.0]})
    made = count_measure(table, wide, pg.Measure("x", 0, 20))
    assert made.sums(["c"]).tolist() == [2, 20]
    assert made.cuboid(["c"]).tolist() == [1, 2]
    query = pg.queries.averages(wide, [["c"], []], made.measure)
    release = pg.release(query, pg.Policy(wide), made, epsilon=10_000)
    assert release.average("c").values.tolist() == pytest.approx([2, 10], abs=0.01)


def test_sums_that_no_records_have_are_refused():
    for counts, sums in (
        ([1] * 6, [101] * 6),
        ([0] * 6, [1] + [0] * 5),
        ([1] * 6, [0.5] * 6),
        ([1] * 6, [1]),
    ):
        with pytest.raises(DataError) as caught:
            MeasuredCounts.from_vectors(SEX, INCOME, counts, sums)
        assert caught.value.code == "measure.sums"
    with pytest.raises(DataError) as caught:
        MeasuredCounts.from_vectors(SEX, pg.Measure("x", 0, 10**9), [2**35] * 6, [0] * 6)
    assert caught.value.code == "measure.reach"
    other = MeasuredCounts.from_vectors(SEX, INCOME, COUNTS, COUNTS * MEANS - (COUNTS > 0))
    assert other.fingerprint != PEOPLE.fingerprint


POLICIES = {
    "one record more or less": pg.Policy(SEX),
    "full": pg.Policy(SEX, pg.PolicyGraph.full(SEX)),
    "attribute and bottom": pg.Policy(SEX, pg.PolicyGraph.attribute(SEX).with_bottom()),
    "a margin known": pg.Policy(SEX, constraints=[pg.Cuboid("sex")]),
    "a graph and a margin": pg.Policy(SEX, pg.PolicyGraph.attribute(SEX), [pg.Cuboid("age")]),
}


@pytest.mark.parametrize("loss", [pg.Epsilon(1), pg.Rho("1/2")], ids=str)
@pytest.mark.parametrize("kind", ["sums", "averages"])
@pytest.mark.parametrize("name", list(POLICIES))
def test_stated_deviations_are_those_of_the_noise_and_tables_agree(name, kind, loss):
    policy = POLICIES[name]
    query = getattr(pg.queries, kind)(SEX, SETS, INCOME)
    ready = pg.Measured().calibrate(query, policy, loss)
    source = pg.SeededRng(f"{name} {kind} {loss}")
    points = noisy_many(ready, PEOPLE, 4000, source)
    exact = points.shape[1] - sum(part.height for part in ready.rows.parts)
    true = ready.rows.answer_from(*truths(ready.rows))
    noise = points[:, : points.shape[1] - exact] - true
    assert np.square(noise).mean() / ready.noise.variance == pytest.approx(1, abs=0.06)
    # What is published is linear in the noise: one noise after the other gives every coefficient.
    start = points[0].copy()
    start[: len(true)] = true
    still = ready.publish(start, source.randomness)
    moved = []
    for at in range(len(true)):
        shifted = start.copy()
        shifted[at] += 1 << 20
        moved.append(ready.publish(shifted, source.randomness))
    for names in SETS:
        tables = [("sum", PEOPLE.sums(names) * 10)] + [("count", PEOPLE.cuboid(names))] * (kind == "averages")
        for what, truth in tables:
            table = getattr(still, what)(*names)
            assert table.values == pytest.approx(truth, abs=1e-6)
            rows = np.array([getattr(m, what)(*names).values - table.values for m in moved]) / (1 << 20)
            errors = np.sqrt(np.square(rows).sum(axis=0) * ready.noise.variance)
            assert errors == pytest.approx(np.full(len(errors), table.deviation), rel=1e-6, abs=1e-9)
    whole = moved[0].sum("sex", "age").values.reshape(2, 3)
    assert whole.sum(axis=1) == pytest.approx(moved[0].sum("sex").values, rel=1e-12)
    assert whole.sum() == pytest.approx(moved[0].sum().values[0], rel=1e-12)


def truths(rows):
    """Counts and sums of the measured tables, by their position."""
    return (
        {at: PEOPLE.cuboid(names) for at, names in enumerate(rows.sets)},
        {at: PEOPLE.sums(names) for at, names in enumerate(rows.sets)},
    )


def test_counts_that_the_policy_fixes_are_exact_and_lower_the_noise_of_sums():
    policy = pg.Policy(SEX, constraints=[pg.Cuboid("sex")])
    query = pg.queries.averages(SEX, [["sex"]], INCOME)
    made = pg.release(query, policy, PEOPLE, epsilon=1, source=pg.SeededRng(1))
    assert made.count("sex").values.tolist() == PEOPLE.cuboid(["sex"]).tolist()
    assert made.count("sex").deviation == 0
    alone = pg.Measured().calibrate(pg.queries.sums(SEX, [["sex"]], INCOME), policy, pg.Epsilon(1))
    # Two values of one record, or one record for another in the same row: the range, however it lies.
    assert alone.rows.centred
    assert float(alone.sensitivity.value * alone.rows.sum_unit) == 1000
    far = pg.Measure("income", 100_000, 101_000, unit=10)
    there = pg.Measured().calibrate(pg.queries.sums(SEX, [["sex"]], far), policy, pg.Epsilon(1))
    assert there.deviation(0) == alone.deviation(0)
    table = MeasuredCounts.from_vectors(SEX, far, COUNTS, COUNTS * (10_000 + MEANS))
    sums = there.run(table, pg.SeededRng(2)).sum("sex")
    assert np.abs(sums.values - table.sums(["sex"]) * 10).max() < 12 * there.deviation(0)


@pytest.mark.parametrize("loss", [pg.Epsilon(1), pg.Rho("1/8")], ids=str)
def test_intervals_cover_the_true_average(loss):
    """Over counts from nothing to plenty and averages all over the range; half the reach would not do at the Gaussian."""
    domain = pg.Domain({"g": 12})
    measure = pg.Measure("x", -50, 50)
    counts = np.array([0, 1, 3, 8, 15, 25, 40, 60, 100, 200, 500, 5000])
    means = np.array([0, 50, -50, 10, 0, 50, -50, 30, -20, 50, 0, -49])
    data = MeasuredCounts.from_vectors(domain, measure, counts, counts * means)
    ready = pg.Measured().calibrate(pg.queries.averages(domain, [["g"]], measure), pg.Policy(domain), loss)
    runs = 500
    missed, short, defined = np.zeros(12), np.zeros(12), np.zeros(12)
    for row in noisy_many(ready, data, runs, pg.SeededRng(f"cover {loss}")):
        made = ready.publish(row, pg.SeededRng(1).randomness)
        table = made.average("g")
        covered = (table.low_95 - 1e-9 <= means) & (means <= table.high_95 + 1e-9)
        missed += table.defined & ~covered
        defined += table.defined
        assert np.all(table.low_95[table.defined] <= table.values[table.defined])
        assert np.all(table.values[table.defined] <= table.high_95[table.defined])
        part = made.record["parts"][2]
        low, high, sure = ratio_intervals(
            made.sum("g").values, made.count("g").values, part["reach"][0] / 3, part["reach"][1] / 3
        )
        short += sure & ~((low <= means) & (means <= high))
    # The first cell is empty: it has no average, and is given one at most as rarely as an interval may miss.
    assert defined[0] / runs <= 0.05
    assert np.all(missed[1:] / runs <= 0.05 + 5 * np.sqrt(0.95 * 0.05 / runs))
    assert missed[1:].mean() / runs <= 0.05
    assert defined[-1] == runs
    assert short[1:].max() / runs > 0.05


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e4, 1e4), st.floats(-50, 1e3), st.floats(0.1, 100), st.floats(0, 30))
@example(0.0, 5e-214, 1.0, 0.0)
@example(0.0, 8.5e-41, 1.0, 0.0)
@example(1.0, float(np.nextafter(3.0, 4.0)), 1.0, 3.0)
def test_the_ends_of_an_interval_are_where_the_combination_reaches_its_bound(total, count, one, two):
    low, high, defined = ratio_intervals([total], [count], one, two)
    # Next to nothing is not clearly positive, and the square of the count decides.
    assert bool(defined[0]) == (count > two) or 0 <= (count - two) * (count + two) < 1e-60
    assert not defined[0] or bool(low[0] <= high[0])
    if defined[0] and count - two > 1e-3:
        for end in (low[0], high[0]):
            assert abs(total - end * count) == pytest.approx(np.hypot(one, end * two), rel=1e-5, abs=1e-5)
        assert low[0] <= total / count <= high[0]


def test_undefined_averages_are_said_in_every_output(tmp_path):
    query = pg.queries.averages(SEX, [["sex", "age"]], INCOME)
    made = pg.release(query, pg.Policy(SEX), PEOPLE, epsilon=1, source=pg.SeededRng(3))
    table = made.average("sex", "age")
    assert not table.defined[2]
    assert table.defined[3]
    assert np.isnan(table.values[2])
    gone = int((~table.defined).sum())
    assert f"{gone} undefined, since the count is not clearly positive" in str(made)
    written = made.write(tmp_path / "out")
    back = pg.Release.from_parquet(written["release.parquet"])
    assert isinstance(back, MeasureRelease)
    assert back.table().equals(made.table())
    for at, averages in ((made.table(), "all"), (made.table("average of income by sex x age"), "one")):
        columns = at.to_pydict()
        assert columns["note"].count(UNDEFINED) == gone, averages
        assert all(
            (n == UNDEFINED) == (v is None) for n, v in zip(columns["note"], columns["value"], strict=True)
        )
    shown = json.loads(made.to_json())["tables"][2]
    assert shown["note"].count(UNDEFINED) == gone
    assert shown["values"].count(None) == gone
    assert "NaN" not in made.to_json()
    assert "NaN" not in (tmp_path / "out" / "release.json").read_text()
    assert (tmp_path / "out" / "release.csv").read_text().count(UNDEFINED) == gone


def test_the_record_states_the_rule_and_nothing_about_who_was_clipped(tmp_path):
    query = pg.queries.averages(SEX, [["sex"]], INCOME)
    records = []
    for value in (5.0, 10.0**9):
        table = pa.table({"sex": ["F"] * 50, "age": [0] * 50, "income": [value] * 50})
        made = pg.release(query, pg.Policy(SEX), table, epsilon=1, source=pg.SeededRng(1))
        records.append(made.record)
    assert records[0] == records[1]
    assert any("clipped to the declared range from 0 to 1000" in line for line in made.sentences)
    assert any("Secret are the cell of a record" in line for line in made.sentences)


def test_the_ledger_charges_once_and_counts_share_the_account(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("sex,age,income\n" + "F,0,100\nM,1,900\n" * 40)
    ledger = pg.Ledger(tmp_path / "budget.db")
    policy = pg.Policy(SEX)
    query = pg.queries.averages(SEX, [["sex"], ["age"]], INCOME)
    first = pg.release(query, policy, path, epsilon="1/2", ledger=ledger, dataset="people")
    again = pg.release(query, policy, path, epsilon="1/2", ledger=ledger, dataset="people")
    assert again.table().equals(first.table())
    assert ledger.account("people").charges == 1
    pg.release(pg.queries.cuboid(SEX, "sex"), policy, path, epsilon="1/4", ledger=ledger, dataset="people")
    assert ledger.spent("people") == pg.Epsilon("3/4")
    # What cannot run is refused before it is charged.
    for wrong in (
        lambda: pg.release(query, policy, list(COUNTS), epsilon=1, ledger=ledger, dataset="people"),
        lambda: pg.release(
            query, policy, path, epsilon=1, ledger=ledger, mechanism=pg.Laplace(), dataset="people"
        ),
        lambda: pg.release(
            pg.queries.averages(SEX, [["sex"]], pg.Measure("income", 0, 10)),
            policy,
            PEOPLE,
            epsilon=1,
            ledger=ledger,
        ),
    ):
        with pytest.raises(InputError):
            wrong()
    assert ledger.account("people").charges == 2
    assert len(ledger.datasets()) == 1


def test_what_is_not_offered_is_refused():
    query = pg.queries.averages(SEX, SETS, INCOME)
    policy = pg.Policy(SEX)
    for mechanism, loss in (
        (pg.Laplace(), pg.Epsilon(1)),
        (pg.Gaussian(), pg.Rho(1)),
    ):
        with pytest.raises(InputError) as caught:
            mechanism.calibrate(query, policy, loss)
        assert caught.value.code == "measure.cells"
    with pytest.raises(InputError) as caught:
        pg.Measured().calibrate(pg.queries.identity(SEX), policy, pg.Epsilon(1))
    assert caught.value.code == "measure.query"
    with pytest.raises(InputError) as caught:
        pg.Measured("unequal").calibrate(query, policy, pg.Rho(1))
    assert caught.value.code == "measure.strategy"
    dropping = pg.queries.averages(SEX, [["sex"]], pg.Measure("income", 0, 10, missing="drop"))
    pg.Measured().calibrate(dropping, policy, pg.Epsilon(1))
    for bounded in (pg.Policy(SEX, pg.PolicyGraph.full(SEX)), pg.Policy(SEX, constraints=[pg.Total()])):
        with pytest.raises(RefusedError) as refused:
            pg.Measured().calibrate(dropping, bounded, pg.Epsilon(1))
        assert refused.value.code == "measure.drop"
    fine = pg.queries.sums(SEX, [["sex"]], pg.Measure("income", 0, 10**9))
    with pytest.raises(RefusedError) as refused:
        pg.Measured().calibrate(fine, policy, pg.Epsilon("1/10000"))
    assert refused.value.code == "mechanism.scale"
    ready = pg.Measured().calibrate(pg.queries.sums(SEX, [["sex"]], INCOME), policy, pg.Epsilon(1))
    with pytest.raises(InputError) as caught:
        ready.run(COUNTS, pg.SeededRng(1))
    assert caught.value.code == "measure.data"


@pytest.mark.parametrize("strategy", ["all", "base", "bmax", "unequal"])
def test_every_strategy_that_measures_tables_is_consistent_and_certified(strategy):
    query = pg.queries.averages(SEX, SETS, INCOME)
    ready = pg.Measured(strategy).calibrate(query, pg.Policy(SEX), pg.Epsilon(1))
    assert ready.sensitivity.exact
    # One record more: its tables, each by (span + balance span) times its weight.
    assert ready.sensitivity.value == 2 * INCOME.span * sum(ready.rows.weights)
    assert max(ready.rows.weights) <= 256
    made = ready.run(PEOPLE, pg.SeededRng(strategy))
    assert made.sum("sex").values.sum() == pytest.approx(made.sum().values[0], rel=1e-12)
    assert made.count("sex", "age").values.sum() == made.count().values[0]


def test_the_default_balance_is_the_best_for_the_worst_average():
    """First-order variance of an average at an end of the range, over a grid of balances."""
    domain = pg.Domain({"g": 2})
    for policy in (pg.Policy(domain), pg.Policy(domain, pg.PolicyGraph.full(domain))):
        for loss in (pg.Epsilon(1), pg.Rho(1)):
            errors = {}
            for balance in ("1/2", "3/4", "1", "4/3", "2"):
                query = pg.queries.averages(domain, [["g"]], pg.Measure("x", 0, 1000), balance=balance)
                ready = pg.Measured().calibrate(query, policy, loss)
                # Of the measured numbers themselves: a public total makes counts of two groups better than that.
                sums = float(ready.rows.sum_unit / ready.rows.sum_weight) ** 2
                errors[balance] = (sums + (500 / ready.rows.count_weight) ** 2) * ready.noise.variance
            assert min(errors, key=errors.get) == "1"


def test_policy_files_and_the_command(tmp_path, capsys):
    file = tmp_path / "policy.toml"
    file.write_text(
        '[domain]\nsex = ["F", "M"]\nage = 3\n[[release]]\naverages = [["sex"], []]\n'
        'measure = {column = "income", low = 0, high = 1000, unit = "1/2", missing = 0}\nbalance = 0.5\n'
    )
    read = loads(file.read_text())
    assert read.query == pg.queries.averages(
        SEX, [["sex"], []], pg.Measure("income", 0, 1000, "1/2", missing=0), balance="1/2"
    )
    assert loads(dumps(read.policy, read.query)).query == read.query
    data = tmp_path / "people.csv"
    data.write_text("sex,age,income\n" + "F,0,100\nM,1,\n" * 200)
    out = tmp_path / "out"
    assert (
        run(["release", str(file), "--data", str(data), "--epsilon", "2", "--out", str(out), "--json"]) == 0
    )
    made = pg.Release.from_parquet(out / "release.parquet")
    assert made.average("sex").values == pytest.approx([100, 0], abs=60)
    assert run(["verify", str(out / "certificate.json")]) == 0
    assert run(["check", str(file)]) == 0
    assert "its values are secret, too" in capsys.readouterr().out
    assert run(["audit", str(file), "--epsilon", "1"]) == 2
    for text, message in (
        ("sums = [['sex']]", "sums need a measure"),
        ("sums = [['sex']]\nmeasure = {column = 'x', low = 3, high = 1}", "expected low < high"),
        ("sums = [['sex']]\nmeasure = {column = 'x', low = 3, hgh = 1}", "Did you mean 'high'"),
        ("sums = [['sx']]\nmeasure = {column = 'x', low = 3, high = 4}", "(?i)did you mean 'sex'"),
        ("sums = [['sex']]\nmeasure = {column = 'x', low = true, high = 4}", "expected a number"),
        (
            "sums = [['sex']]\nbalance = 2\nmeasure = {column = 'x', low = 3, high = 4}",
            "does not belong beside sums",
        ),
        (
            "sums = [['sex']]\nmeasure = {column = 'x', low = 3, high = 4}\n[[release]]\ntotal = true",
            "a release of their own",
        ),
    ):
        with pytest.raises(InputError, match=message):
            loads(f"[domain]\nsex = ['F', 'M']\nage = 3\n[[release]]\n{text}\n")
