"""A request is known by what was asked: mechanisms by their settings, data by their content and how they are read."""

from __future__ import annotations

import copy
import itertools
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from fractions import Fraction

import duckdb
import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import policygraph as pg
from policygraph.curator import releasing
from policygraph.curator.counting import count_cells
from policygraph.curator.histogram import Histogram, MeasuredCounts
from policygraph.curator.releasing import perform
from policygraph.curator.requests import Request, cells_looked_at, identify, mechanism_form, request_of
from policygraph.mechanisms import Fitted, Kernel, Mechanism
from policygraph.mechanisms.adaptive.mechanism import AdaptiveCube
from policygraph.mechanisms.auto import choose
from policygraph.mechanisms.candidates import PlugIn
from policygraph.mechanisms.cube.strategies import All, BMax, PMost, Unequal
from policygraph.mechanisms.partitioned.partitioners.matching import Matchings
from policygraph.mechanisms.residuals.mechanism import Residuals
from policygraph.mechanisms.statistics import StatisticNoise
from policygraph.mechanisms.transformed.adaptive import Adaptive
from policygraph.sensitivity.proofs import CUT_SHORT
from tests.paths import in_library

DOMAIN = pg.Domain({"sex": ["F", "M"], "age": 3})
POLICY = pg.Policy(DOMAIN)
QUERY = pg.queries.identity(DOMAIN)


def variants() -> list[Mechanism]:
    """Many settings of every mechanism of the library, no two alike."""
    strategy = pg.MatrixMechanism("identity").calibrate(QUERY, POLICY, pg.Epsilon(1)).strategy
    made: list[Mechanism] = [
        pg.Laplace(), pg.Laplace(name="mine"), pg.Gaussian(), pg.Gaussian(name="mine"),
        pg.Exponential(), pg.Exponential(limit=7), pg.FreeLunch(), pg.FreeLunch(limit=7), Fitted(), Fitted(name="x"), Kernel(), Kernel(name="x"),
        StatisticNoise(), StatisticNoise(name="x"), pg.Measured(), pg.Measured("cells"), pg.Sparse(), pg.Sparse(threshold=3),
        pg.Sparse(spurious=5), pg.Sparse(spurious=Fraction(1, 2)), pg.Cube(), pg.Cube(nonnegative=True), pg.Cube(whole=True),
        pg.Cube(consistency=None), pg.Cube(offset=Fraction(1, 10)), pg.Cube(All()), pg.Cube(Unequal()), pg.Cube(BMax()), pg.Cube(PMost(3)), pg.Cube(PMost(4)),
        pg.MatrixMechanism(), pg.MatrixMechanism(evaluations=5), pg.MatrixMechanism("identity"), pg.MatrixMechanism(branching=3),
        pg.MatrixMechanism(over="cells"), pg.MatrixMechanism(strategy), pg.Partitioned(), pg.Partitioned(share=Fraction(1, 3)),
        pg.Partitioned(share="1/5"), pg.Partitioned(Matchings()), pg.Partitioned(pg.Partition(np.array([0, 0, 1, 1, 2, 2]))),
        pg.Partitioned(pg.Partition(np.array([0, 1, 1, 1, 2, 2]))), pg.Partitioned(then=pg.TransformedLaplace()),
        AdaptiveCube(), AdaptiveCube(cells=99), AdaptiveCube(rounds=2), Residuals(), Residuals(per_answer=False), Adaptive(), Adaptive(totals="exact"), Adaptive(route="spanning"),
        PlugIn("x", pg.Laplace()), PlugIn("y", pg.Laplace()), PlugIn("x", pg.Laplace(name="mine")), PlugIn("x", pg.Laplace(), "", "of another"),
        pg.Transformed(pg.Laplace()), pg.Transformed(pg.MatrixMechanism()), pg.Transformed(pg.Laplace(), spanning=True),
    ]  # fmt: skip
    for kind in (pg.TransformedLaplace, pg.TransformedGaussian, pg.TransformedConsistent):
        made += [kind(), kind(totals="exact"), kind(route="spanning"), kind(name="x")]
    return made


def told() -> list[str]:
    return [json.dumps(mechanism_form(each), sort_keys=True) for each in [None, *variants()]]


def kinds(kind: type = Mechanism) -> set[type]:
    below = {each for each in kind.__subclasses__() if in_library(each)}
    return below | {more for each in below for more in kinds(each)}


def test_every_mechanism_of_the_library_is_among_them():
    assert kinds() == {type(each) for each in variants()}


def test_other_settings_are_other_requests_and_equal_ones_the_same_in_every_process():
    first = told()
    assert "null" not in first, "every mechanism of the library can be told"
    assert len(set(first)) == len(first)
    assert told() == first
    for seed in ("1", "2"):
        code = "from tests.curator.test_requests import told\nprint(*told(), sep='\\n')"
        outcome = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert outcome.stdout.splitlines() == first
    assert not any(" at 0x" in each for each in first)


def test_every_field_of_every_mechanism_counts():
    """A field that is set to anything else tells, whether the value makes sense or not."""
    for mechanism in variants():
        for each in fields(mechanism):
            other = replace(mechanism)
            object.__setattr__(other, each.name, "something else")
            assert mechanism_form(other) != mechanism_form(mechanism), each.name


class Own(pg.Laplace):
    """A subclass that keeps more than its fields."""

    def __init__(self, strength):
        super().__init__()
        object.__setattr__(self, "strength", strength)


@dataclass(frozen=True)
class WithFunction(pg.Laplace):
    function: object = None


class Says(Own):
    def as_asked(self):
        return {"strength": self.strength}


class Plain(Mechanism):
    name = "plain"

    def __init__(self, noise):
        self.noise = noise

    def calibrate(self, query, policy, loss, sensitivity=None):
        return pg.Laplace().calibrate(query, policy, loss, sensitivity)


def test_what_cannot_be_told_is_never_taken_for_another(tmp_path):
    for mechanism in (Own(1), WithFunction(function=lambda: 1), WithFunction(function=object()), Plain(3)):
        assert mechanism_form(mechanism) is None
    assert mechanism_form(Says(1)) == mechanism_form(Says(1)) != mechanism_form(Says(2))

    class Local(pg.Laplace):
        pass

    assert mechanism_form(Local()) is None
    ledger = pg.Ledger(tmp_path / "budget.db")
    for _ in range(2):
        pg.release(QUERY, POLICY, [1] * 6, epsilon=1, ledger=ledger, mechanism=Plain(3))
    assert [entry.status for entry in ledger.history()] == ["completed"] * 2


def test_a_calibrated_mechanism_is_known_by_what_it_is_made_of(tmp_path):
    line = pg.Policy(DOMAIN, graph=pg.PolicyGraph.full(DOMAIN))
    some = [
        mechanism.calibrate(QUERY, policy, pg.Epsilon(epsilon))
        for mechanism, policy, epsilon in itertools.product(
            (pg.Laplace(), pg.TransformedLaplace(), pg.MatrixMechanism("identity")), (POLICY, line), (1, 2)
        )
    ]
    forms = [json.dumps(mechanism_form(each), sort_keys=True) for each in some]
    assert "null" not in forms
    assert len(set(forms)) == len(forms)
    _ = [each.noise for each in some]
    assert [json.dumps(mechanism_form(each), sort_keys=True) for each in some] == forms
    ledger = pg.Ledger(tmp_path / "budget.db")
    for _ in range(2):
        pg.release(QUERY, POLICY, [1] * 6, epsilon=1, ledger=ledger, mechanism=some[0])
    assert len(ledger.history()) == 1


def test_the_request_is_found_before_any_search_or_counting(tmp_path, monkeypatch):
    people = tmp_path / "people.csv"
    people.write_text("sex,age\nF,1\nM,2\n")
    ledger = pg.Ledger(tmp_path / "budget.db")
    first = pg.release(QUERY, POLICY, people, epsilon=1, ledger=ledger)

    def never(*_args, **_more):
        raise AssertionError("a repetition needs none of this")

    for name in ("releasing.choose", "requests.read", "releasing.check_drawable", "gate.check"):
        monkeypatch.setattr(f"policygraph.curator.{name}", never)
    again = pg.release(QUERY, POLICY, people, epsilon=1, ledger=ledger)
    assert again.values().tolist() == first.values().tolist()


def test_what_a_search_chooses_is_no_part_of_the_request(tmp_path, monkeypatch):
    """On a busy machine a search may end elsewhere: it is the same request all the same."""
    ledger = pg.Ledger(tmp_path / "budget.db")
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "settle", lambda charge, body: exec("raise KeyboardInterrupt"))
        with pytest.raises(KeyboardInterrupt):
            pg.release(QUERY, POLICY, [1] * 6, epsilon=1, ledger=ledger)
    monkeypatch.setattr(
        "policygraph.curator.releasing.choose",
        lambda *given: pg.MatrixMechanism("identity").calibrate(*given),
    )
    made = pg.release(QUERY, POLICY, [1] * 6, epsilon=1, ledger=ledger)
    assert made.record["mechanism"].startswith("MatrixMechanism")
    assert [entry.status for entry in ledger.history()] == ["completed"]


def charged(ledger, data, query=QUERY, policy=POLICY, **more):
    before = len(ledger.history())
    made = pg.release(query, policy, data, epsilon=1000, ledger=ledger, **more)
    return len(ledger.history()) - before, made


def test_counts_of_one_name_are_known_by_their_content(tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    for counts in ([5, 0, 2, 1, 1, 9], [5, 0, 2, 1, 1, 8]):
        times, made = charged(ledger, Histogram.from_vector(DOMAIN, counts, name="town"))
        assert times == 1
        assert made.values().tolist() == counts
        assert charged(ledger, Histogram.from_vector(DOMAIN, counts, name="town"))[0] == 0
    assert ledger.account(ledger.history()[0].dataset).charges == 2, "one name, one account"


def test_another_column_is_another_request(tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    domain = pg.Domain({"sex": ["F", "M"]})
    query, policy = pg.queries.identity(domain), pg.Policy(domain)
    people = pa.table({"a": ["F", "F", "M"], "b": ["M", "M", "M"]})
    path = tmp_path / "people.csv"
    path.write_text("a,b\nF,M\nF,M\nM,M\n")
    for data in (people, path):
        for column, expected in (("a", [2, 1]), ("b", [0, 3])):
            times, made = charged(ledger, data, query, policy, columns={"sex": column})
            assert times == 1
            assert made.values().tolist() == expected
            assert charged(ledger, data, query, policy, columns={"sex": column})[0] == 0
            counts = count_cells(data, domain, columns={"sex": column})
            times, made = charged(ledger, counts, query, policy)
            assert made.values().tolist() == expected, "counts that were made before are known by themselves"


def test_data_of_many_kinds_are_told_apart_and_recognised():
    network = pg.Network(4)
    graph, other = nx.path_graph(4), nx.cycle_graph(4)
    measure = pg.Measure("income", 0, 10)
    wide = pg.Domain({f"a{i}": 8 for i in range(10)})
    rng = np.random.default_rng(1)
    columns = {name: rng.integers(0, 8, 20) for name in wide.names}
    frame = pa.table(columns)
    shifted = pa.table({**columns, "a0": (columns["a0"] + 1) % 8})
    cases = [
        (POLICY, [1, 2, 3, 4, 5, 6]), (POLICY, [1, 2, 3, 4, 6, 5]), (POLICY, Histogram.from_vector(DOMAIN, [1] * 6, name="x")),
        (POLICY, Histogram.from_vector(DOMAIN, [2] * 6, name="x")), (POLICY, Histogram.from_vector(DOMAIN, [2] * 6, name="y")),
        (pg.Policy(network), graph), (pg.Policy(network), other), (pg.Policy(network), [(0, 1), (1, 3)]),
        (POLICY, MeasuredCounts.from_vectors(DOMAIN, measure, [1] * 6, [3] * 6, name="x")),
        (POLICY, MeasuredCounts.from_vectors(DOMAIN, measure, [1] * 6, [4] * 6, name="x")),
        (pg.Policy(wide), frame), (pg.Policy(wide), shifted),
        (pg.Policy(wide), count_cells(frame, wide, name="x")), (pg.Policy(wide), count_cells(shifted, wide, name="x")),
    ]  # fmt: skip
    found = [identify(data, None, policy).content for policy, data in cases]
    assert len(set(found)) == len(found)
    assert [identify(data, None, policy).content for policy, data in cases] == found


def test_every_part_of_a_request_counts():
    base = {
        "query": QUERY,
        "policy": POLICY,
        "loss": pg.Epsilon(1),
        "mechanism": None,
        "rng": pg.SecureRng(),
    }
    data = identify([1] * 6, None, POLICY)
    first = request_of(data=data, **base)
    others = [
        {"query": pg.queries.total(DOMAIN)}, {"policy": pg.Policy(DOMAIN, unknown="drop")}, {"loss": pg.Epsilon(2)},
        {"loss": pg.Rho(1)}, {"mechanism": pg.Laplace()}, {"rng": pg.SeededRng(1)}, {"rng": pg.SeededRng(2)},
    ]  # fmt: skip
    made = [request_of(data=data, **{**base, **other}) for other in others]
    assert len({first, *made}) == len(made) + 1
    assert request_of(data=data, **base) == first


def test_a_file_that_changes_before_it_is_counted_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    path.write_text("sex,age\nF,1\n")
    ledger = pg.Ledger(tmp_path / "budget.db")
    choose = releasing.choose

    def slow(*given):
        path.write_text("sex,age\nF,1\nM,1\n")
        return choose(*given)

    monkeypatch.setattr(releasing, "choose", slow)
    with pytest.raises(pg.DataError) as problem:
        pg.release(QUERY, POLICY, path, epsilon=1, ledger=ledger)
    assert problem.value.code == "data.changed"
    assert ledger.history() == []


def test_a_select_that_changes_before_it_is_counted_is_refused(tmp_path, monkeypatch):
    ledger = pg.Ledger(tmp_path / "budget.db")
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE people AS SELECT 'F' AS sex, 1 AS age")
        choose = releasing.choose

        def slow(*given):
            engine.execute("INSERT INTO people VALUES ('M', 1)")
            return choose(*given)

        monkeypatch.setattr(releasing, "choose", slow)
        with pytest.raises(
            pg.DataError, match=r"while they were being counted.*Nothing was charged"
        ) as problem:
            pg.release(QUERY, POLICY, (engine, "SELECT * FROM people"), epsilon=1, ledger=ledger)
    assert problem.value.code == "data.changed"
    assert ledger.history() == []


def test_a_request_that_another_process_completes_meanwhile_is_given_out_once(tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    request = Request.of(QUERY, POLICY, [1, 2, 3, 4, 5, 6], epsilon=1)
    met = []

    def other(stage):
        if stage == "charging the ledger" and not met:
            met.append(None)
            met.append(perform(request, ledger=ledger))

    mine = perform(request, ledger=ledger, progress=other)
    first = met[1]
    assert (first.repeated, mine.repeated, mine.completed) == (False, True, False)
    assert list(mine.release.values()) == list(first.release.values())
    assert ledger.datasets()[0].charges == 1


def test_edge_lists_are_recognised_by_their_bytes(tmp_path):
    network = pg.Network(4)
    ledger = pg.Ledger(tmp_path / "budget.db")
    query, policy = pg.queries.adjacency(network), pg.Policy(network)
    for name, text in (("a.txt", "0 1\n1 2\n"), ("a.csv", "from,to\n0,1\n"), ("b.edges", "0 1\n0 1\n")):
        path = tmp_path / name
        path.write_text(text)
        rules = {"duplicates": "merge"} if name == "b.edges" else None
        assert charged(ledger, path, query, policy, edges=rules)[0] == 1
        assert charged(ledger, str(path), query, policy, edges=rules)[0] == 0


def test_what_the_records_depend_on_is_part_of_the_request(tmp_path):
    """Folders that are columns, and types of columns: no byte of a file, and no printed value, need be different."""
    domain = pg.Domain({"sex": ["F", "M"], "age": 3})
    policy = pg.Policy(domain, unknown="drop")
    writers = {
        "csv": lambda ages: "age\n" + "".join(f"{age}\n" for age in ages),
        "ndjson": lambda ages: "".join(f'{{"age": {age}}}\n' for age in ages),
    }
    for kind, text in writers.items():
        found = []
        for turn, order in enumerate(("FM", "MF")):
            for sex, ages in zip(order, ((1, 2), (1, 1)), strict=True):
                folder = tmp_path / f"{kind}-{turn}" / f"sex={sex}"
                folder.mkdir(parents=True)
                (folder / f"x.{kind}").write_text(text(ages))
            given = pg.Files(str(tmp_path / f"{kind}-{turn}" / "*" / f"*.{kind}"), hive=True)
            counts = count_cells(given, domain, unknown="drop").vector().tolist()
            found.append((identify(given, None, policy).content, counts))
        assert found[0][1] != found[1][1]
        assert found[0][0] != found[1][0]
    frames = [
        pa.array([True, False]),
        pa.array(["true", "false"]),
        pa.array([1.0, 2.0]),
        pa.array(["1.0", "2.0"]),
    ]
    for labels in ([1, 2], ["1", "2"], ["true", "false"], [1.0, 2.5]):
        domain = pg.Domain({"a": labels})
        policy = pg.Policy(domain, unknown="drop")
        for one, other in itertools.combinations([pa.table({"a": column}) for column in frames], 2):
            counts = [count_cells(each, domain, unknown="drop").vector().tolist() for each in (one, other)]
            if counts[0] != counts[1]:
                assert identify(one, None, policy).content != identify(other, None, policy).content


def test_one_file_is_one_request_by_whatever_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "people"
    folder.mkdir()
    path = folder / "a.csv"
    path.write_text("age,sex\n1,F\n")
    names = [
        path, str(path), "people/a.csv", "./people/../people/a.csv", path.as_uri(), [path], ["people/a.csv"], "people", "people/*.csv",
        str(folder), "people/a*", pg.Files(path), pg.Files([str(path)]), pg.Files("people/*", encoding="UTF8"),
    ]  # fmt: skip
    assert len({identify(name, None, POLICY).content for name in names}) == 1
    assert (
        identify(path, None, POLICY, {"age": "age"})
        == identify(path, None, POLICY, {})
        == identify(path, None, POLICY)
    )
    assert identify(path, None, POLICY, {"age": "sex"}).content != identify(path, None, POLICY).content
    (folder / "b.csv").write_text("age,sex\n2,M\n")
    orders = [["people/a.csv", "people/b.csv"], ["people/b.csv", "people/a.csv"], "people", "people/?.csv"]
    assert len({identify(order, None, POLICY).content for order in orders}) == 1
    wide = pa.table({"age": pa.array([1, 2], pa.int8()), "sex": ["F", "M"]})
    same = [
        wide,
        pa.table({"sex": ["M", "F"], "age": [2, 1]}),
        wide.to_pandas(),
        wide.cast(pa.schema([("age", pa.uint32()), ("sex", pa.large_string())])),
    ]
    assert len({identify(frame, None, POLICY).content for frame in same}) == 1


def test_the_ends_of_edges_are_told_apart(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y,from,to\n0,1,2,3\n")
    policy = pg.Policy(pg.Network(4))
    plain, named = identify(path, None, policy), identify(path, None, policy, {})
    assert plain.content != named.content, "the first two columns, or those of these names"
    assert (
        named
        == identify(path, None, policy, {"from": "from"})
        == identify(path, None, policy, {"to": "to", "from": "from"})
    )
    assert plain == identify(path, None, policy, None, {"loops": "error"})
    assert plain.content != identify(path, None, policy, None, {"loops": "drop"}).content


@dataclass(frozen=True)
class Hidden(pg.Laplace):
    factor: int = field(default=1, compare=False, repr=False)


class Tuned(pg.Laplace):
    strength = 3


def test_settings_that_classes_of_others_hide_are_told(monkeypatch):
    assert mechanism_form(Hidden()) == mechanism_form(Hidden()) != mechanism_form(Hidden(factor=2))
    before = mechanism_form(Tuned())
    assert before == mechanism_form(Tuned()) != mechanism_form(pg.Laplace())
    monkeypatch.setattr(Tuned, "strength", 4)
    assert None is not mechanism_form(Tuned()) != before
    monkeypatch.setattr(Tuned, "strength", object())
    assert mechanism_form(Tuned()) is None
    monkeypatch.setattr(Tuned, "strength", 3)
    monkeypatch.setattr(Tuned, "__module__", "__main__")
    assert mechanism_form(Tuned()) is None, "another program may have another class of this name"


@dataclass(frozen=True, eq=False)
class EqualToAll(pg.Laplace):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


def test_a_mechanism_that_says_it_equals_everything_is_not_the_automatic_one():
    assert mechanism_form(EqualToAll()) != mechanism_form(None)


def test_numbers_of_arrays_are_numbers():
    for kind in (np.int8, np.uint64, np.int64):
        assert mechanism_form(pg.Exponential(limit=kind(7))) == mechanism_form(pg.Exponential(limit=7))
    assert mechanism_form(pg.Cube(offset=np.float64(0.1))) == mechanism_form(pg.Cube(offset=0.1))
    assert mechanism_form(pg.Exponential(limit=np.longdouble(7))) in (
        None,
        mechanism_form(pg.Exponential(limit=7.0)),
    )


FOUR = pg.Domain(dict.fromkeys("abcd", 4))
PAIRS = pg.queries.cuboids(FOUR, [["a", "b"], ["a", "c"], ["a", "d"], ["b", "c"], ["b", "d"], ["c", "d"]])


@pytest.mark.parametrize("mechanism", ["auto", pg.Cube(), pg.Laplace()], ids=str)
@pytest.mark.parametrize("limits", list(itertools.permutations([None, 0, 3600])), ids=str)
def test_a_limit_in_seconds_is_no_part_of_a_request(tmp_path, mechanism, limits):
    """Whoever asks the same with another limit gets what is on record, which says whether a clock cut it short."""
    ledger = pg.Ledger(tmp_path / "budget.db")
    made = [
        pg.release(
            PAIRS,
            pg.Policy(FOUR),
            [3] * FOUR.size,
            epsilon=1,
            mechanism=mechanism,
            ledger=ledger,
            time_limit=limit,
        )
        for limit in limits
    ]
    assert [entry.status for entry in ledger.history()] == ["completed"]
    assert made[1].record == made[2].record == made[0].record
    assert len({each.sentences[0] for each in made}) == 1
    assert ("cut_short" in made[0].record) == (CUT_SHORT in made[0].sentences)
    if isinstance(mechanism, pg.Cube):
        assert ("cut_short" in made[0].record) == (limits[0] == 0)


def test_a_calibrated_mechanism_that_was_cut_short_is_known_like_any_other(tmp_path):
    ready = choose(PAIRS, pg.Policy(FOUR), pg.Epsilon(1), time_limit=0)
    assert ready.cut_short
    assert mechanism_form(ready) is not None
    ledger = pg.Ledger(tmp_path / "budget.db")
    made = [
        pg.release(PAIRS, pg.Policy(FOUR), [3] * FOUR.size, epsilon=1, mechanism=ready, ledger=ledger)
        for _ in range(2)
    ]
    assert [entry.status for entry in ledger.history()] == ["completed"]
    assert {each.sentences[0] for each in made} == {CUT_SHORT}


def test_rows_over_attributes_in_another_order_are_another_request(tmp_path):
    """Fingerprints sort the attributes, and the second cell of (a, b) is the third one of (b, a)."""
    table = tmp_path / "records.csv"
    table.write_text("a,b\n" + "0,1\n" * 900 + "1,0\n" * 100)
    book = pg.Ledger(tmp_path / "ledger")
    made = []
    for names in (("a", "b"), ("b", "a")):
        domain = pg.Domain({name: [0, 1] for name in names})
        query = pg.queries.matrix(domain, [[0, 1, 0, 0]])
        for _ in range(2):
            made.append(
                pg.release(query, pg.Policy(domain), table, epsilon=50, ledger=book, mechanism=pg.Laplace())
            )
    assert [round(float(each.values()[0]), -2) for each in made] == [900, 900, 100, 100]
    assert len([each for each in book.history() if each.what == "charge"]) == 2


def test_edges_of_a_database_are_recognised_by_its_content(tmp_path):
    network = pg.Network(4)
    ledger = pg.Ledger(tmp_path / "budget.db")
    query, policy = pg.queries.adjacency(network), pg.Policy(network)
    for name, expected in (("a", 1), ("b", 0)):
        database = tmp_path / f"{name}.db"
        with duckdb.connect(str(database)) as engine:
            engine.execute('CREATE TABLE edges AS SELECT 0 AS "from", 1 AS "to"')
        assert charged(ledger, f"duckdb://{database}?table=edges", query, policy)[0] == expected


class Colour(Enum):
    RED = 1
    BLUE = 2


class Described:
    """Has a specification and no fingerprint."""

    def __init__(self, spec):
        self.spec = spec

    def to_spec(self):
        return self.spec


def nested(depth):
    return [nested(depth - 1)] if depth else []


MATRIX = sparse.csr_array([[0, 1], [2, 0]])
SETTINGS = [
    None, True, 1, 1.0, 1.5, "1", Fraction(1, 3), b"1", b"2", Colour.RED, Colour.BLUE, (1, 2), [1, 2], (2, 1), {1, 2}, frozenset({1, 2}), {1, 3},
    {"a": 1}, {"a": 2}, {"b": 1}, np.array([1, 2]), np.array([1, 2], dtype=np.int8), np.array([1, 2.0]), np.array([[1, 2]]), np.array([1, "a"], dtype=object),
    np.array([1, "b"], dtype=object), MATRIX, sparse.csr_array([[0, 1], [3, 0]]), sparse.csr_array([[0, 1, 0], [2, 0, 0]]),
    Described({"a": 1}), Described({"a": 2}), nested(3), nested(4),
]  # fmt: skip


def form(setting):
    return json.dumps(mechanism_form(WithFunction(function=setting)), sort_keys=True)


def test_settings_of_every_kind_are_told_apart_and_equal_ones_are_the_same():
    found = [form(each) for each in SETTINGS]
    assert "null" not in found
    assert len(set(found)) == len(found)
    assert [form(each) for each in copy.deepcopy(SETTINGS)] == found
    assert form({2, 1}) == form({1, 2})
    assert form(MATRIX.tocsc()) == form(MATRIX.tocoo()) == form(MATRIX)


def test_settings_that_are_nested_too_deeply_are_not_told():
    assert form(nested(20)) != "null"
    assert form(nested(60)) == "null"


def test_cells_of_a_table_that_is_too_wide_to_look_at_are_all_cells():
    wide = pg.Domain({"age": 4_000_001})
    query = pg.queries.ranges(wide, [(1, 2)])
    assert cells_looked_at(pg.Laplace().calibrate(query, pg.Policy(wide), pg.Epsilon(1))) is None


@pytest.mark.parametrize("with_ledger", [False, True])
def test_sums_need_records_and_are_not_charged_without(tmp_path, with_ledger):
    measure = pg.Measure("income", 0, 10)
    query = pg.queries.sums(DOMAIN, [()], measure)
    ledger = pg.Ledger(tmp_path / "budget.db") if with_ledger else None
    table = pa.table({"sex": ["F"], "age": [1], "income": [3]})
    for data, edges in (([1, 2, 3, 4, 5, 6], None), (table, {"loops": "drop"})):
        with pytest.raises(pg.InputError, match="need records with their values") as caught:
            pg.release(query, POLICY, data, epsilon=1, ledger=ledger, edges=edges)
        assert caught.value.code == "measure.data"
    for mechanism, met in ((pg.Laplace, "the class Laplace"), (7, "7")):
        with pytest.raises(pg.InputError, match=f"mechanism={met}: expected 'auto'") as caught:
            pg.release(query, POLICY, table, epsilon=1, ledger=ledger, mechanism=mechanism)
        assert caught.value.code == "release.mechanism"
    counts = pg.Laplace().calibrate(QUERY, POLICY, pg.Epsilon(1))
    with pytest.raises(pg.InputError, match=r"expected mechanism None or pg\.Measured") as caught:
        pg.release(query, POLICY, table, epsilon=1, ledger=ledger, mechanism=counts)
    assert caught.value.code == "release.mechanism"
    if ledger is not None:
        assert ledger.history() == []


def test_what_is_refused_at_the_last_moment_is_not_charged(tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    request = Request.of(QUERY, POLICY, [1, 2, 3, 4, 5, 6], epsilon=1)

    def refuse():
        raise pg.InputError("not into this folder.", code="cli.folder")

    for book in (ledger, None):
        with pytest.raises(pg.InputError, match="not into this folder"):
            perform(request, ledger=book, before=refuse)
    assert ledger.history() == []
    with pytest.raises(pg.InputError, match="expected the path of a ledger") as caught:
        pg.release(QUERY, POLICY, [1, 2, 3, 4, 5, 6], epsilon=1, ledger=7)
    assert caught.value.code == "release.ledger"


def test_a_request_on_record_is_charged_anew_without_reuse(tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    request = Request.of(QUERY, POLICY, [1, 2, 3, 4, 5, 6], epsilon=1)
    for number in (1, 2):
        done = perform(request, ledger=ledger, reuse=False, resume=True)
        assert (done.repeated, done.completed) == (False, False)
        assert ledger.datasets()[0].charges == number


def test_a_release_says_which_epsilon_and_delta_were_asked_for(tmp_path):
    made = pg.release(QUERY, POLICY, [1, 2, 3, 4, 5, 6], epsilon=1, delta="1e-6", rng=pg.SeededRng(1))
    assert made.record["asked"]["kind"] == "epsilon-delta"
    assert made.record["stages"][-1].endswith(f"kept by {made.loss}.")
    assert made.loss.kind == "rho"


def test_sparse_releases_hold_room_for_what_noise_alone_lists(tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    wide = pg.Domain({"a": 1000, "b": 1000})
    people = pa.table({"a": [1] * 90 + [2], "b": [5] * 90 + [7]})
    query, policy = pg.queries.identity(wide), pg.Policy(wide)
    for charges in (1, 1):
        made = pg.release(query, policy, people, epsilon=1, mechanism=pg.Sparse(), ledger=ledger)
        assert ledger.datasets()[0].charges == charges
    assert len(made.tables[0].values) >= 1


def test_a_charge_whose_release_was_never_stored_is_completed_at_no_cost(tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    request = Request.of(QUERY, POLICY, [1, 2, 3, 4, 5, 6], epsilon=1)

    def crash(stage):
        if stage == "recording the release":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform(request, ledger=ledger, progress=crash)
    done = perform(request, ledger=ledger, reuse=False, resume=True)
    assert (done.repeated, done.completed) == (True, True)
    assert ledger.datasets()[0].charges == 1


def test_the_first_release_without_a_limit_says_so_where_others_have_one(tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    assert not perform(Request.of(QUERY, POLICY, [0, 2, 3, 4, 5, 6], epsilon=1), ledger=ledger).unlimited
    ledger.set_limit("cd" * 32, pg.Epsilon(5), name="others")
    told = [
        perform(Request.of(QUERY, POLICY, [1, 2, 3, 4, 5, 6], epsilon=loss), ledger=ledger).unlimited
        for loss in (1, 2)
    ]
    assert told == [True, False]
