"""Published cubes: agreement, exact tables, stated and measured errors, files, the ledger."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import policygraph as pg
from policygraph.curator.histogram import Histogram
from policygraph.curator.noise import discrete_gaussian, discrete_laplace
from policygraph.distributions.sums import Terms, combination_within, linear_within
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.cubes import CubeRelease
from policygraph.estimation.cubes.errors import coefficients_at, factors_at
from policygraph.transforms.cuboids.choose import Choice
from policygraph.transforms.cuboids.lattice import Lattice
from tests.gate import noisy
from tests.paths import DATA

DOMAIN = pg.Domain({"sex": ["F", "M"], "age": 3, "work": ["no", "yes"]})
QUERY = pg.queries.all_cuboids(DOMAIN)
TABLE = np.arange(12) * 3 % 7
STRATEGIES = ["all", "base", "bmax", "unequal", "unequal-max", "fourier"]


def true(names):
    kept = [DOMAIN.axis(name) for name in names]
    gone = tuple(axis for axis in range(3) if axis not in kept)
    return TABLE.reshape(DOMAIN.shape).sum(axis=gone).ravel()


def agree(made):
    tables = {t.columns: np.asarray(t.values) for t in made.tables}
    for high, low in combinations(tables, 2):
        for big, little in ((high, low), (low, high)):
            if set(little) <= set(big):
                cube = tables[big].reshape([len(DOMAIN.labels(n)) for n in big])
                gone = tuple(at for at, name in enumerate(big) if name not in little)
                assert np.array_equal(cube.sum(axis=gone).ravel(), tables[little])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("loss", [pg.Epsilon(1), pg.Rho("1/2")])
def test_published_tables_agree_to_the_last_bit(strategy, loss):
    ready = pg.Cube(strategy).calibrate(QUERY, pg.Policy(DOMAIN), loss)
    assert ready.sensitivity == pg.sensitivity(ready.choice.query(DOMAIN), pg.Policy(DOMAIN), norm=loss.norm)
    power = ready.sensitivity.power
    assert ready.parameter == (power / loss.value if loss.norm == "l1" else power / (2 * loss.value))
    made = ready.run(TABLE, pg.SeededRng(5))
    assert isinstance(made, CubeRelease)
    assert len(made.tables) == 8
    agree(made)
    assert made.certificate.query == ready.choice.query(DOMAIN)
    for at, names in enumerate(QUERY.sets):
        assert made.variance(*names) == pytest.approx(ready.deviation(at) ** 2)
        assert made.tables[at].deviation == pytest.approx(ready.deviation(at))


@pytest.mark.parametrize("strategy", ["all", "bmax", "unequal", "fourier"])
def test_attribute_policy_keeps_the_total_exact(strategy):
    policy = pg.Policy(DOMAIN, pg.PolicyGraph.attribute(DOMAIN))
    ready = pg.Cube(strategy).calibrate(QUERY, policy, pg.Epsilon(1))
    made = ready.run(TABLE, pg.SeededRng(1))
    agree(made)
    assert made.cuboid().values.tolist() == [int(TABLE.sum())]
    assert made.variance() == 0
    assert made.cuboid().within_95 == 0
    assert "which are exact: the total" in made.sentences[1]


def test_a_threshold_on_one_attribute_leaves_the_others_exact():
    policy = pg.Policy(DOMAIN, pg.PolicyGraph.threshold(DOMAIN, 1, attribute="age"))
    made = pg.Cube("all").calibrate(QUERY, policy, pg.Epsilon("1/10")).run(TABLE, pg.SeededRng(2))
    agree(made)
    assert made.cuboid("sex", "work").values.tolist() == true(["sex", "work"]).tolist()
    assert made.cuboid("work").values.tolist() == true(["work"]).tolist()
    assert made.cuboid("age").values.tolist() != true(["age"]).tolist()


@pytest.mark.parametrize("loss", [pg.Epsilon("1/3"), pg.Rho("1/9")])
@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize("strategy", ["all", "base", "bmax", "unequal"])
def test_public_margins_are_met_to_the_last_integer(strategy, loss, consistent):
    policy = pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")])
    ready = pg.Cube(strategy, consistency="least-squares" if consistent else None).calibrate(
        QUERY, policy, loss
    )
    made = ready.run(TABLE, pg.SeededRng(3))
    for names in ((), ("sex",), ("age",)):
        assert made.cuboid(*names).values.tolist() == true(names).tolist()
    if consistent:
        agree(made)
        table = made.cuboid("sex", "age", "work").values.reshape(2, 3, 2)
        assert table.sum(axis=(1, 2)).tolist() == true(["sex"]).tolist()
        assert table.sum(axis=(0, 2)).tolist() == true(["age"]).tolist()
    free = pg.Cube(consistency="least-squares" if consistent else None).on(
        ready.choice, QUERY, pg.Policy(DOMAIN), loss
    )
    ratio = ready.noise.variance / free.noise.variance
    if np.all(np.isfinite(free.factors)):
        assert np.all(ready.factors <= free.factors * (1 + 1e-12)), ratio


def test_everything_known_is_released_as_it_is():
    policy = pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex", "age")])
    query = pg.queries.cuboids(DOMAIN, [["sex"], ["age"]])
    ready = pg.Cube("bmax").calibrate(query, policy, pg.Epsilon(1))
    assert ready.parameter == 0
    made = ready.run(TABLE, pg.SeededRng(1))
    assert [t.values.tolist() for t in made.tables] == [true(["sex"]).tolist(), true(["age"]).tolist()]


@pytest.mark.parametrize(
    ("strategy", "loss", "policy", "consistent"),
    [
        ("all", pg.Epsilon("1/2"), pg.Policy(DOMAIN), True),
        ("bmax", pg.Epsilon("1/2"), pg.Policy(DOMAIN), False),
        ("unequal", pg.Epsilon("1/2"), pg.Policy(DOMAIN, constraints=[pg.Cuboid("age")]), True),
        ("unequal", pg.Rho("1/50"), pg.Policy(DOMAIN, pg.PolicyGraph.attribute(DOMAIN)), True),
        ("fourier", pg.Epsilon("1/2"), pg.Policy(DOMAIN), True),
    ],
)
def test_measured_variances_are_the_stated_ones(strategy, loss, policy, consistent):
    ready = pg.Cube(strategy, consistency="least-squares" if consistent else None).calibrate(
        QUERY, policy, loss
    )
    height = ready.measured.height
    start = np.concatenate(
        [np.zeros(height, dtype=np.int64), *(np.zeros(ready.lattice.size(m), np.int64) for m in ready.known)]
    )
    # Post-processing is linear up to a rounding of about 2^-40: one row for each lattice point shows all of it.
    rows = []
    for at in range(height):
        start[at] = 1 << 12
        made = ready.tables(start)
        rows.append(np.concatenate([made[mask].ravel() for mask in ready.published]) / (1 << 12))
        start[at] = 0
    linear = np.array(rows)
    stated = np.concatenate(
        [np.full(part.height, ready.deviation(at) ** 2) for at, part in enumerate(QUERY.parts)]
    )
    assert np.allclose(np.square(linear).sum(axis=0) * ready.noise.variance, stated, rtol=1e-6, atol=1e-9)
    draw = discrete_laplace if isinstance(loss, pg.Epsilon) else discrete_gaussian
    noise = draw(ready.parameter, (30_000, height), pg.SeededRng(f"{strategy} {loss}"))
    errors = noise @ linear
    within = np.concatenate(
        [np.full(part.height, ready.within_95(at)) for at, part in enumerate(QUERY.parts)]
    )
    inside = (np.abs(errors) <= within + 1e-9).mean(axis=0)
    # Five standard errors of 30,000 runs.
    assert np.all(inside >= 0.95 - 5 * np.sqrt(0.95 * 0.05 / 30_000))
    assert np.mean(inside[within > 0]) <= 0.985
    start = 0
    for at, part in enumerate(QUERY.parts):
        measured = float(np.square(errors[:, start : start + part.height]).mean())
        start += part.height
        assert measured == pytest.approx(ready.deviation(at) ** 2, rel=0.03, abs=1e-9)


def test_runs_differ_by_the_stated_noise():
    ready = pg.Cube("bmax").calibrate(QUERY, pg.Policy(DOMAIN), pg.Epsilon(1))
    source = pg.SeededRng(8)
    squares = [
        np.square(ready.run(TABLE, source).cuboid("sex", "age", "work").values - TABLE).mean()
        for _ in range(400)
    ]
    assert float(np.mean(squares)) == pytest.approx(ready.deviation(7) ** 2, rel=0.1)


def test_the_noise_is_where_it_should_be_and_nowhere_else():
    policy = pg.Policy(DOMAIN, constraints=[pg.Cuboid("age")])
    ready = pg.Cube("all").calibrate(QUERY, policy, pg.Epsilon(1))
    sizes = [part.height for part in ready.measured.parts]
    draws = np.array([noisy(ready, TABLE, pg.SeededRng(i)) for i in range(300)])
    assert draws.shape[1] == sum(sizes) + 3
    assert np.all(draws[:, sum(sizes) :] == true(["age"]))
    exact = np.concatenate([true(names) for names in ready.choice.sets])
    spread = (draws[:, : sum(sizes)] - exact).astype(float)
    assert np.all(spread.std(axis=0) > 0.5 * np.sqrt(ready.noise.variance))
    assert spread.var() == pytest.approx(ready.noise.variance, rel=0.1)


@pytest.mark.parametrize("distribution", ["discrete Laplace", "discrete Gaussian"])
def test_stated_ranges_hold_for_few_and_many_noises(distribution):
    draws = np.random.default_rng(0)
    for scale in (0.4, 3.0, 50.0):
        for count in (1, 2, 40):
            coefficients = draws.normal(size=count)
            if distribution == "discrete Laplace":
                q = np.exp(-1 / scale)
                noise = draws.geometric(1 - q, (4000, count)) - draws.geometric(1 - q, (4000, count))
            else:
                values = np.arange(-int(9 * scale) - 9, int(9 * scale) + 10)
                weights = np.exp(-(values**2) / (2 * scale**2))
                noise = draws.choice(values, (4000, count), p=weights / weights.sum())
            laplace = distribution == "discrete Laplace"
            parameter = scale if laplace else scale**2
            limit = linear_within(float(coefficients @ coefficients), parameter, laplace=laplace)
            found = np.abs(noise @ coefficients)
            margin = 5 * np.sqrt(0.95 * 0.05 / 4000)
            assert (found <= limit).mean() >= 0.95 - margin
            exact = combination_within([Terms(np.abs(coefficients), np.ones(count), parameter, laplace)])
            assert (found <= exact).mean() >= 0.95 - margin
            assert (found <= 0.9 * exact).mean() <= 0.95 + margin or scale < 1
            assert exact <= limit * 1.01 or scale < 1


@pytest.mark.parametrize("kind", ["cuboids", "interactions"])
@pytest.mark.parametrize("known", [(), ("age",)])
def test_listed_coefficients_have_the_stated_squares(kind, known):
    domain = pg.Domain({"sex": 2, "age": 3, "work": 4, "one": 1})
    lattice = Lattice(domain)
    names = [("sex", "age"), ("age", "work"), ("sex", "work"), ("age",), ("sex",), ("work",), ()]
    choice = Choice(tuple(names), (3, 1, 2, 5, 4, 1, 7), kind)
    exact = [lattice.mask(known)] if known else []
    tables = [[], ["sex"], ["age"], ["sex", "age"], ["age", "work"]]
    for mask in map(lattice.mask, tables):
        sizes, counts = coefficients_at(lattice, choice, exact, mask, consistent=True)
        [wanted] = factors_at(lattice, choice, exact, [mask], consistent=True)
        assert float(counts @ sizes**2) == pytest.approx(float(wanted), rel=1e-6, abs=1e-12)
        if kind == "cuboids":
            [(size, count)] = [coefficients_at(lattice, choice, exact, mask, consistent=False)]
            [plain] = factors_at(lattice, choice, exact, [mask], consistent=False)
            assert float(count @ size**2) == pytest.approx(float(plain), abs=1e-12)


def test_any_cuboid_and_cell_on_demand():
    query = pg.queries.cuboids(DOMAIN, [["sex", "age"], ["work"]])
    made = pg.Cube("all").calibrate(query, pg.Policy(DOMAIN), pg.Epsilon(1)).run(TABLE, pg.SeededRng(4))
    age = made.cuboid("age")
    assert np.array_equal(age.values, made.values(0).reshape(2, 3).sum(axis=0))
    assert age.deviation == pytest.approx(np.sqrt(made.variance("age")))
    assert [list(column) for column in age.labels] == [[0, 1, 2]]
    assert made.cell(age=2) == (float(age.values[2]), pytest.approx(age.deviation))
    assert made.cell(age=2, sex="M")[0] == made.cuboid("sex", "age").values[5]
    assert made.cell()[0] == made.cuboid().values[0]
    with pytest.raises(InputError) as caught:
        made.cuboid("age", "work")
    assert caught.value.code == "cubes.not-computable"
    with pytest.raises(InputError):
        made.variance("age", "work")
    plain = pg.Cube("all", consistency=None).calibrate(query, pg.Policy(DOMAIN), pg.Epsilon(1))
    with pytest.raises(InputError) as caught:
        plain.run(TABLE, pg.SeededRng(4)).cuboid("age")
    assert caught.value.code == "cubes.not-released"


def test_without_consistency_tables_are_sums_of_whole_numbers():
    ready = pg.Cube("bmax", consistency=None).calibrate(QUERY, pg.Policy(DOMAIN), pg.Epsilon(1))
    made = ready.run(TABLE, pg.SeededRng(1))
    assert all(np.all(t.values == np.rint(t.values)) for t in made.tables)
    assert "without consistency" in ready.mechanism


def test_files_and_bytes_round_trip(tmp_path):
    ready = pg.Cube("unequal").calibrate(QUERY, pg.Policy(DOMAIN), pg.Rho(1))
    made = ready.run(TABLE, pg.SeededRng(9))
    made.write(tmp_path)
    for source in (made.to_bytes(), tmp_path / "release.parquet"):
        back = pg.Release.from_parquet(source)
        assert isinstance(back, CubeRelease)
        assert back.record == made.record
        for ours, theirs in zip(made.tables, back.tables, strict=True):
            assert np.array_equal(ours.values, theirs.values)
            assert (ours.name, ours.columns, ours.deviation) == (
                theirs.name,
                theirs.columns,
                theirs.deviation,
            )
            assert [list(c) for c in ours.labels] == [list(c) for c in theirs.labels]
        assert np.array_equal(back.cuboid("age").values, made.cuboid("age").values)
    frame = made.table().to_pandas()
    assert len(frame) == QUERY.height
    assert not made.certificate.verify().failed


def test_release_with_a_ledger_is_given_again_and_other_choices_are_other_requests(tmp_path):
    book = pg.Ledger(tmp_path / "ledger.db")
    counts = Histogram.from_vector(DOMAIN, TABLE)
    policy = pg.Policy(DOMAIN)

    def ask(mechanism):
        return pg.release(
            QUERY, policy, counts, epsilon=1, ledger=book, mechanism=mechanism, source=pg.SeededRng(1)
        )

    first, again = ask(pg.Cube("bmax")), ask(pg.Cube("bmax"))
    assert isinstance(again, CubeRelease)
    assert np.array_equal(first.cuboid("sex", "work").values, again.cuboid("sex", "work").values)
    other = ask(pg.Cube("all"))
    assert other.record["cube"]["measured"] != first.record["cube"]["measured"]


def test_weights_of_the_query_emphasise_tables():
    plain = pg.queries.cuboids(DOMAIN, [["sex"], ["age", "work"]])
    keen = pg.queries.cuboids(DOMAIN, [["sex"], ["age", "work"]], [9, 1])
    at = {
        name: pg.Cube("unequal").calibrate(query, pg.Policy(DOMAIN), pg.Rho(1)).deviation(0)
        for name, query in (("plain", plain), ("keen", keen))
    }
    assert at["keen"] < at["plain"]


def test_cuboids_are_summed_from_the_smallest_table_or_read_at_once():
    sets = [("sex", "age"), ("sex",), ("work",), ()]
    queries = [pg.queries.cuboids(DOMAIN, sets[:2], [1, 5]), pg.queries.cuboids(DOMAIN, sets[1:])]
    asked = []

    def tally(wanted):
        asked.append([tuple(names) for names in wanted])
        return [true(names) for names in wanted]

    records = Histogram(DOMAIN, "x", int(TABLE.sum()), _tally=tally)
    for data in (records, Histogram.from_vector(DOMAIN, TABLE)):
        first, second = data.answers(queries)
        assert first.tolist() == [*true(sets[0]), *(5 * true(sets[1]))]
        assert second.tolist() == [x for names in sets[1:] for x in true(names)]
    assert len(asked) == 1


def test_refusals():
    policy, loss = pg.Policy(DOMAIN), pg.Epsilon(1)
    with pytest.raises(InputError) as caught:
        pg.Cube().calibrate(pg.queries.prefix(pg.Domain({"a": 3})), policy, loss)
    assert caught.value.code == "cubes.query"
    few = Choice((("sex",),), (1,))
    with pytest.raises(InputError) as caught:
        pg.Cube().on(few, QUERY, policy, loss)
    assert caught.value.code == "cubes.not-computable"
    with pytest.raises(InputError) as caught:
        pg.Cube("fourier", consistency=None).calibrate(QUERY, policy, loss)
    assert caught.value.code == "cubes.interactions"
    ready = pg.Cube("all").calibrate(QUERY, policy, loss)
    other = pg.sensitivity(QUERY, pg.Policy(DOMAIN, pg.PolicyGraph.full(DOMAIN)))
    with pytest.raises(InputError):
        pg.Cube("all").calibrate(QUERY, policy, loss, other)
    same = pg.Cube("all").calibrate(QUERY, policy, loss, ready.sensitivity)
    assert same.parameter == ready.parameter == Fraction(8)
    heavy = Choice(((), ("age",)), (1, 2**47), "interactions")
    ready = pg.Cube().on(heavy, pg.queries.cuboids(DOMAIN, [["age"]]), policy, pg.Epsilon(2**20))
    with pytest.raises(RefusedError) as refused:
        ready.run(TABLE * 1000, pg.SeededRng(1))
    assert refused.value.code == "query.overflow"


@pytest.mark.shared_data
@pytest.mark.skipif(not (DATA / "adult" / "adult.data").exists(), reason="needs the benchmark data")
def test_adult_is_published_whole_and_consistent():
    columns = {"workclass": 1, "education": 3, "marital": 5, "occupation": 6, "relationship": 7, "race": 8}
    columns |= {"sex": 9, "salary": 14}
    text = (DATA / "adult" / "adult.data").read_text(encoding="utf-8")
    rows = [line.split(", ") for line in text.splitlines() if line.strip()]
    labels = {name: sorted({row[at] for row in rows}) for name, at in columns.items()}
    domain = pg.Domain(labels)
    place = {name: {label: at for at, label in enumerate(found)} for name, found in labels.items()}
    codes = [[place[name][row[at]] for row in rows] for name, at in columns.items()]
    counts = np.bincount(np.ravel_multi_index(codes, domain.shape), minlength=domain.size)
    query = pg.queries.all_cuboids(domain)
    policy = pg.Policy(domain, constraints=[pg.Cuboid("sex", "race"), pg.Cuboid("salary")])
    ready = pg.Cube("bmax").calibrate(query, policy, pg.Epsilon(1))
    made = ready.run(counts, pg.SecureRng())
    assert sum(len(t.values) for t in made.tables) == 8_225_280
    base = made.cuboid(*domain.names).values.reshape(domain.shape)
    true_base = counts.reshape(domain.shape)
    for names in (("sex", "race"), ("salary",), ("race",), ()):
        gone = tuple(at for at, name in enumerate(domain.names) if name not in names)
        assert np.array_equal(base.sum(axis=gone), true_base.sum(axis=gone))
    pair = base.sum(axis=tuple(at for at, n in enumerate(domain.names) if n not in ("education", "sex")))
    assert np.array_equal(pair.ravel(), made.cuboid("education", "sex").values)
