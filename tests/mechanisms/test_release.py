"""From data to release: noise of the right size, provenance in every format, the ledger before the noise."""

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from scipy import stats

import policygraph as pg
from policygraph.distributions import laplace_variance
from policygraph.release.release import Release
from tests.gate import noisy

DOMAIN = pg.Domain({"sex": ["F", "M"], "age": 3})
QUERY = pg.queries.cuboids(DOMAIN, [["sex", "age"], ["sex"], []])
POLICY = pg.Policy(DOMAIN, graph=pg.PolicyGraph.full(DOMAIN))
COUNTS = [5, 0, 2, 1, 1, 9]


def people():
    rows = [cell for cell, n in zip(range(6), COUNTS) for _ in range(n)]
    return pa.table({"sex": ["FM"[c // 3] for c in rows], "age": [c % 3 for c in rows]})


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.3])
def test_noise_has_the_scale_of_the_certificate(factor):
    ready = pg.Laplace().calibrate(QUERY, POLICY, pg.Epsilon(1))
    assert ready.parameter == 4  # two tables change in two cells each; the total never does
    n = 4000
    source = pg.SeededRng(11)
    draws = np.concatenate([noisy(ready, np.array(COUNTS), source) - QUERY.answer(COUNTS) for _ in range(n)])
    variance = laplace_variance(ready.parameter * Fraction(factor).limit_denominator(100))
    # The fourth moment of a Laplace law is 6 times the squared variance, so the mean square has this deviation.
    z = (np.mean(draws.astype(float) ** 2) - variance) / (variance * np.sqrt(5 / len(draws)))
    accepted = abs(z) < stats.norm.isf(1e-4)
    assert accepted == (factor == 1.0)


def test_gaussian_noise_has_the_variance_of_the_certificate():
    ready = pg.Gaussian().calibrate(QUERY, POLICY, pg.Rho("1/8"))
    assert ready.parameter == 4 / (2 * Fraction(1, 8))
    source = pg.SeededRng(12)
    draws = np.concatenate(
        [noisy(ready, np.array(COUNTS), source) - QUERY.answer(COUNTS) for _ in range(2000)]
    )
    assert abs(draws.var() / 16 - 1) < 0.05


def test_weights_are_divided_out_again():
    query = pg.queries.cuboids(DOMAIN, [["sex"], ["age"]], [1, 4])
    ready = pg.Laplace().calibrate(query, POLICY, pg.Epsilon(1))
    assert ready.parameter == 10
    assert ready.deviation(0) == pytest.approx(4 * ready.deviation(1))
    made = ready.run(np.array(COUNTS), pg.SeededRng(1))
    assert made.values("sex").dtype == np.int64
    assert made.values("age").dtype == np.float64
    assert abs(made.values("age") - [6, 1, 11]).max() < 40


def test_every_output_tells_its_provenance_and_that_it_is_not_private(tmp_path):
    made = pg.release(QUERY, POLICY, people(), epsilon="1/2", mechanism=pg.Laplace(), source=pg.SeededRng(3))
    written = made.write(tmp_path / "out")
    assert set(written) == {"release.parquet", "release.csv", "release.json", "certificate.json"}
    record = json.loads((tmp_path / "out" / "release.json").read_text())
    assert record["private"] is False
    assert "NOT PRIVATE" in record["warning"]
    assert record["policy_fingerprint"] == POLICY.fingerprint
    assert record["loss"] == pg.Epsilon("1/2").to_json()
    assert record["certificate"]["value"] == 4
    assert len(record["tables"]) == 3
    table = pq.read_table(tmp_path / "out" / "release.parquet")
    assert "NOT PRIVATE" in table.column("warning")[0].as_py()
    assert table.num_rows == 9
    assert table.column("table").to_pylist() == ["sex x age"] * 6 + ["sex"] * 2 + ["total"]
    assert table.column("age").to_pylist() == [0, 1, 2, 0, 1, 2, None, None, None]
    assert json.loads(table.schema.metadata[b"policygraph"])["query_fingerprint"] == QUERY.fingerprint
    lines = pa_csv.read_csv(tmp_path / "out" / "release.csv")
    assert lines.column("value").to_pylist() == table.column("value").to_pylist()
    assert "NOT PRIVATE" in lines.column("warning")[8].as_py()
    assert "NOT PRIVATE" in str(made)
    again = Release.from_parquet(tmp_path / "out" / "release.parquet")
    assert [t.values.tolist() for t in again.tables] == [t.values.tolist() for t in made.tables]
    assert again.record == made.record
    assert not made.certificate.verify().failed


def test_a_secure_release_has_no_warning_and_no_true_value(tmp_path):
    made = pg.release(QUERY, POLICY, people(), epsilon=1)
    assert made.private
    assert "warning" not in made.table().column_names
    assert made.record["warning"] is None
    differing = [pg.release(QUERY, POLICY, people(), epsilon=1).values().tolist() for _ in range(6)]
    assert len({tuple(d) for d in differing}) > 1
    text = made.to_json()
    assert pg.release(QUERY, POLICY, people(), epsilon=1).record == made.record, (
        "the record does not depend on noise"
    )
    assert "fingerprint" in text


def test_the_record_does_not_depend_on_the_data():
    one = pg.release(QUERY, POLICY, COUNTS, epsilon=1)
    two = pg.release(QUERY, POLICY, [0, 0, 0, 0, 0, 0], epsilon=1)
    assert one.record == two.record


def test_the_ledger_is_charged_and_the_same_request_is_free(tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    one = pg.release(QUERY, POLICY, people(), epsilon=1, ledger=ledger, dataset="town")
    assert ledger.spent("town") == pg.Epsilon(1)
    again = pg.release(QUERY, POLICY, people(), epsilon=1, ledger=ledger, dataset="town")
    assert again.values().tolist() == one.values().tolist()
    assert again.record == one.record
    assert ledger.spent("town") == pg.Epsilon(1)
    pg.release(QUERY, POLICY, people(), epsilon=1, ledger=ledger, dataset="town", reuse=False)
    assert ledger.spent("town") == pg.Epsilon(2)
    more = pa.concat_tables([people(), people()])
    pg.release(QUERY, POLICY, more, epsilon=1, ledger=ledger, dataset="town")
    assert ledger.spent("town") == pg.Epsilon(3), "other data under one name is another request"


def test_the_limit_is_kept_and_another_policy_is_refused(tmp_path):
    path = tmp_path / "budget.db"
    first = pg.release(QUERY, POLICY, people(), epsilon=1, ledger=path, dataset="town")
    assert first.private
    pg.Ledger(path).set_limit("town", pg.Epsilon("1.5"))
    with pytest.raises(pg.BudgetError):
        pg.release(QUERY, POLICY, people(), epsilon="0.6", ledger=path, dataset="town")
    with pytest.raises(pg.BudgetError):
        pg.release(QUERY, pg.Policy(DOMAIN), people(), epsilon="0.1", ledger=path, dataset="town")
    pg.release(
        QUERY, pg.Policy(DOMAIN), people(), epsilon="0.1", ledger=path, dataset="town", compose_policies=True
    )
    assert pg.Ledger(path).spent("town") == pg.Epsilon("1.1")


class Broken:
    """A source that fails in the middle of the noise."""

    private = True

    def words(self, n):
        raise RuntimeError("no entropy")

    def describe(self):
        return "broken"


def test_a_failure_after_the_charge_loses_the_release_not_the_charge(tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    with pytest.raises(RuntimeError):
        pg.release(QUERY, POLICY, people(), epsilon=1, ledger=ledger, dataset="town", source=Broken())
    assert ledger.spent("town") == pg.Epsilon(1)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda ledger: pg.release(
            QUERY, POLICY, pa.table({"sex": ["X"], "age": [0]}), epsilon=1, ledger=ledger
        ),
        lambda ledger: pg.release(QUERY, POLICY, [1, 2], epsilon=1, ledger=ledger),
        lambda ledger: pg.release(QUERY, POLICY, [-1, 0, 0, 0, 0, 0], epsilon=1, ledger=ledger),
        lambda ledger: pg.release(QUERY, POLICY, COUNTS, ledger=ledger),
        lambda ledger: pg.release(QUERY, POLICY, COUNTS, epsilon=0, ledger=ledger),
        lambda ledger: pg.release(QUERY, POLICY, COUNTS, epsilon=1, rho=1, ledger=ledger),
        lambda ledger: pg.release(
            pg.queries.identity(DOMAIN),
            pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex", equals=[1, 1])]),
            COUNTS,
            epsilon=1,
            ledger=ledger,
        ),
    ],
)
def test_bad_input_spends_nothing(spoil, tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    with pytest.raises(pg.InputError):
        spoil(ledger)
    assert ledger.history() == []


def test_epsilon_and_delta_are_spent_as_rho():
    made = pg.release(QUERY, POLICY, COUNTS, epsilon=1, delta="1e-6", source=pg.SeededRng(1))
    assert made.record["noise"]["distribution"] == "discrete Gaussian"


def test_public_facts_that_determine_everything_need_no_noise():
    policy = pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex", "age")])
    made = pg.release(pg.queries.identity(DOMAIN), policy, COUNTS, epsilon=1)
    assert made.values().tolist() == COUNTS


def test_cubes_too_large_to_build_are_counted_table_by_table():
    names = [f"a{i}" for i in range(30)]
    domain = pg.Domain(dict.fromkeys(names, 4))
    rng = np.random.default_rng(1)
    data = pa.table({name: rng.integers(0, 4, 200) for name in names})
    query = pg.queries.cuboids(domain, [["a0"], ["a3", "a29"]])
    policy = pg.Policy(domain, graph=pg.PolicyGraph.attribute(domain))
    made = pg.release(query, policy, data, epsilon=10_000, source=pg.SeededRng(1))
    assert made.values("a0").tolist() == np.bincount(data["a0"].to_numpy(), minlength=4).tolist()
    assert int(made.values("a3 x a29").sum()) == 200


def test_data_can_come_from_a_database_a_list_of_files_or_a_graph(tmp_path):
    import duckdb
    import networkx as nx

    table = people()
    pq.write_table(table.slice(0, 10), tmp_path / "a.parquet")
    pq.write_table(table.slice(10), tmp_path / "b.parquet")
    database = duckdb.connect()
    database.register("people", table)
    sources = [
        (database, "SELECT * FROM people"),
        [tmp_path / "a.parquet", tmp_path / "b.parquet"],
        table.to_pandas(),
    ]
    for data in sources:
        made = pg.release(QUERY, POLICY, data, epsilon=10_000, source=pg.SeededRng(1))
        assert made.values().tolist() == COUNTS
    network = pg.Network(4)
    graph = nx.path_graph(4)
    for data in (graph, nx.to_numpy_array(graph, dtype=int)):
        made = pg.release(
            pg.queries.adjacency(network), pg.Policy(network), data, epsilon=10_000, source=pg.SeededRng(1)
        )
        assert made.values().tolist() == [1, 0, 0, 1, 0, 1]
