"""What users get wrong in Python: an InputError that says what to do, never an error of another library."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import policygraph as pg

DOMAIN = pg.Domain({"sex": ["F", "M"], "age": 3})
QUERY = pg.queries.identity(DOMAIN)
POLICY = pg.Policy(DOMAIN)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pg.Policy(DOMAIN, graph="full"), r"PolicyGraph\.full\(domain\)"),
        (lambda: pg.Policy(DOMAIN, graph="line"), r"PolicyGraph\.line\(domain\)"),
        (lambda: pg.Policy(DOMAIN, graph="full"), r"expected a PolicyGraph"),
        (lambda: pg.sensitivity(POLICY, QUERY), "swapped"),
        (lambda: pg.sensitivity(QUERY, DOMAIN), "then a Policy"),
        (lambda: pg.release(POLICY, QUERY, [1] * 6, epsilon=1), "swapped"),
        (lambda: pg.release(QUERY, POLICY, [1] * 6, epsilon=1, ledger=5), "ledger=5: expected the path"),
        (lambda: pg.release(QUERY, POLICY, [1] * 6, epsilon=1, edges={"loops": "drop"}), "edge lists"),
        (lambda: pg.release(QUERY, POLICY, [1] * 6, rho=1, delta=1), "rho=1, delta=1: expected"),
        (lambda: pg.release(QUERY, POLICY, [1] * 6), "no loss: expected"),
        (lambda: pg.release(QUERY, POLICY, np.array([1, 2]), epsilon=1), "2 numbers for 6 cells"),
        (lambda: pg.release(QUERY, POLICY, np.array([1, 2, 3, 4, 5, np.nan]), epsilon=1), "nan in cell 5"),
        (
            lambda: pg.release(QUERY, POLICY, [1, 2, 3, 4, 5, 0.5], epsilon=1),
            "not whole or too large in cell 5",
        ),
        (lambda: pg.Domain({"sex": None}), "domain.sex = None"),
        (lambda: pg.Domain({"sex": 10**30}), r"at most 2\^62"),
        (lambda: pg.Domain({"sex": [1.5, float("nan")]}), "nan"),
        (lambda: pg.Domain({"sex": [True, 0, 2]}), "expected one kind"),
        (lambda: pg.load(5), "path=5"),
        (lambda: pg.PolicyGraph.full(DOMAIN).draw("missing/x.png"), "does not exist"),
        (lambda: pg.PolicyGraph.full(DOMAIN).draw("x.docx"), "ending of a picture"),
        (lambda: pg.sensitivity(QUERY, POLICY).move().draw("x.docx"), "ending of a picture"),
        (lambda: pg.Release.from_parquet("missing.parquet"), "missing.parquet cannot be read"),
        (lambda: pg.Release.from_parquet(b"no parquet"), "no Parquet file"),
    ],
)
def test_bad_arguments(call, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pg.InputError, match=words):
        call()


def test_a_release_is_written_where_there_is_a_folder(tmp_path):
    made = pg.release(QUERY, POLICY, [1] * 6, epsilon=1)
    for write in (made.to_parquet, made.to_csv, made.to_json):
        with pytest.raises(pg.InputError, match="cannot write"):
            write(tmp_path / "missing" / "x")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    (tmp_path / "text.parquet").write_text("text")
    for name in ("other.parquet", "text.parquet", "."):
        with pytest.raises(pg.InputError):
            pg.Release.from_parquet(tmp_path / name)


def test_networks_take_their_rules_from_policy_and_call(tmp_path):
    network = pg.Network(3)
    frame = pa.table({"a": [0, 1, 2, 9, 1], "b": [1, 0, 2, 1, 2], "c": [0] * 5})
    policy = pg.Policy(network, unknown="drop")
    made = pg.release(
        pg.queries.adjacency(network), policy, frame, epsilon=1000, source=pg.SeededRng(1),
        columns={"from": "a", "to": "b"}, edges={"duplicates": "merge", "loops": "drop"},
    )  # fmt: skip
    assert made.values().tolist() == [1, 0, 1]
    with pytest.raises(pg.InputError, match="duplicates"):
        pg.release(pg.queries.adjacency(network), policy, frame, epsilon=1, edges={"twice": "merge"})
    matrix = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    made = pg.release(pg.queries.adjacency(network), policy, matrix, epsilon=1000, source=pg.SeededRng(1))
    assert made.values().tolist() == [1, 0, 1]


def test_pictures_fit_their_frame_and_name_the_attributes(tmp_path):
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    pg.PolicyGraph.threshold(pg.Domain({"age": 8}), 3).draw(axes)
    low, high = axes.get_ylim()
    assert high - low < 2, "no room for what is not there"
    assert axes.get_title() == "age"
    axes = Figure().add_subplot()
    pg.PolicyGraph.grid(pg.Domain({"x": 2, "y": 2})).draw(axes)
    assert {text.get_text() for text in axes.texts} >= {"x = 0\ny = 1", "x = 1\ny = 1"}
    domain = pg.Domain({"town": ["a", "b"], "age": 3})
    policy = pg.Policy(domain, graph=pg.PolicyGraph.line(domain, "age"))
    axes = Figure().add_subplot()
    pg.sensitivity(pg.queries.identity(domain), policy).move().draw(axes)
    assert axes.get_xlabel() == "age"
    assert [text.get_text() for text in axes.get_yticklabels()] == ["records"]
    assert "all with town = a" in axes.get_title()


def test_what_was_asked_is_told_for_each_request(tmp_path):
    ledger = pg.Ledger(tmp_path / "b.db")
    rho = pg.EpsilonDelta(1, "1e-6").to_rho()
    made = pg.release(QUERY, POLICY, [1] * 6, epsilon=1, delta="1e-6", ledger=ledger)
    assert made.record["asked"] == pg.EpsilonDelta(1, "1e-6").to_json()
    same = pg.release(QUERY, POLICY, [1] * 6, rho=rho.value, ledger=ledger)
    assert same.values().tolist() == made.values().tolist()
    assert "asked" not in same.record
    assert not any("Asked" in line for line in same.sentences)
    again = pg.release(QUERY, POLICY, [1] * 6, epsilon=1, delta="1e-6", ledger=ledger)
    assert again.record == made.record


def test_data_without_the_published_values_say_what_to_do_and_no_count():
    policy = pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex", equals=[1, 1])])
    with pytest.raises(pg.ConstraintError) as caught:
        pg.release(QUERY, policy, [700, 20, 1, 1, 0, 0], epsilon=1)
    assert caught.value.code == "constraint.data"
    assert "Correct the data, or the published values" in str(caught.value)
    assert "721" not in str(caught.value)
