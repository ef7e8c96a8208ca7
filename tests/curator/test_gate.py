"""The gate: truth meets noise in one place, and what mechanisms of others leave out or get wrong does not pass it."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import policygraph as pg
from policygraph.curator import gate
from policygraph.curator.histogram import Histogram, MeasuredCounts
from policygraph.curator.noise import discrete_laplace
from policygraph.curator.runners import partitioned
from policygraph.distributions.noise import laplace_noise
from policygraph.mechanisms.adaptive.mechanism import AdaptiveCube
from policygraph.mechanisms.additive import Additive
from policygraph.mechanisms.base import Calibrated

ROOT = Path(pg.__file__).parent
AGES = pg.Domain({"age": 4})
QUERY = pg.queries.identity(AGES)
LINE = pg.Policy(AGES, pg.PolicyGraph.line(AGES))
COUNTS = np.array([5, 0, 2, 9])
DATA, RNG = {"Histogram", "MeasuredCounts", "Data"}, {"Rng", "SecureRng", "SeededRng", "KeyedRng"}


def names_of(annotation, aliases):
    """All names in an annotation, quoted ones included, as they are called where they are defined."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name):
            yield aliases.get(node.id, node.id)
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            with suppress(SyntaxError):
                yield from names_of(ast.parse(node.value), aliases)


@cache
def functions(root):
    """Every function and every class with fields, with the names in the annotations of parameters and fields; a method has its own class too."""
    return list(_functions(root))


def _functions(root):
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if (DATA | RNG).isdisjoint(re.findall(r"\w+", text)):
            continue  # whatever a type is called here, it has its own name where it is imported
        nodes = list(ast.walk(ast.parse(text)))
        aliases = {
            each.asname: each.name
            for node in nodes
            if isinstance(node, ast.ImportFrom)
            for each in node.names
            if each.asname
        }
        owners = {id(inner): node for node in nodes if isinstance(node, ast.ClassDef) for inner in node.body}
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                every = node.args
                given = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
                named = [
                    each.annotation for each in given if each is not None and each.annotation is not None
                ]
                owner = owners.get(id(node))
                words = set() if owner is None else {owner.name}
            elif isinstance(node, ast.ClassDef):
                named, words = (
                    [each.annotation for each in node.body if isinstance(each, ast.AnnAssign)],
                    set(),
                )
            else:
                continue
            words |= {word for each in named for word in names_of(each, aliases)}
            yield path.relative_to(root).as_posix(), node.name, words


def meeting(root=ROOT):
    """Places that have true counts and randomness at hand, by the types that they name."""
    return {(path, name) for path, name, words in functions(root) if words & DATA and words & RNG}


@pytest.mark.parametrize(
    "text",
    [
        "def f(data: Histogram, rng: Rng): ...",
        "async def f(data: Histogram, rng: Rng): ...",
        "def f(*data: Histogram, **rng: Rng): ...",
        "def f(data: 'Histogram | None', rng: 'list[Rng]'): ...",
        "from x import Histogram as H, Rng as R\ndef f(data: H, *, rng: R): ...",
        "import policygraph as pg\ndef f(data: pg.Histogram, rng: pg.SeededRng, /): ...",
        "class f:\n    data: Histogram\n    rng: Rng",
        "class Histogram:\n    def f(self, rng: Rng): ...",
        "class Rng:\n    def f(self, data: Histogram): ...",
        "def g():\n    def f(data: MeasuredCounts, rng: KeyedRng): ...",
    ],
)
def test_a_place_that_takes_both_is_seen_however_it_is_written(tmp_path, text):
    (tmp_path / "peeks.py").write_text(text)
    assert meeting(tmp_path) == {("peeks.py", "f")}


def test_only_the_gate_and_its_runners_take_true_counts_and_randomness():
    both = meeting()
    outside = {
        (path, name) for path, name in both if not path.startswith(("curator/gate.py", "curator/runners/"))
    }
    assert outside == set()
    assert {
        ("curator/gate.py", "draw"),
        ("curator/gate.py", "_outputs"),
        ("curator/gate.py", "sample"),
        ("curator/runners/sparse.py", "draw"),
    } <= both


UNTYPED = {
    ("api.py", "release"),
    ("audit/draws.py", "noisy_many"),
    ("audit/draws.py", "outputs"),
    ("audit/harness.py", "audit"),
    ("curator/online.py", "OnlineCube"),
    ("curator/requests.py", "request_of"),
    ("demo.py", "_values"),
    ("networks.py", "_Curator"),
    ("networks.py", "_synthesise"),
    ("networks.py", "synthesise"),
}
"""Take randomness beside something of any type: data that are handed on to the curator, tables that an audit made up, labels of made-up records."""


def test_who_takes_randomness_beside_something_of_any_type_is_listed():
    found = {(path, name) for path, name, words in functions(ROOT) if words & RNG and "Any" in words}
    trusted = ("curator/gate.py", "curator/runners/", "curator/noise/")
    assert {(path, name) for path, name in found if not path.startswith(trusted)} == UNTYPED


def test_mechanisms_name_neither():
    rooms = (
        "mechanisms",
        "estimation",
        "release",
        "transforms",
        "sensitivity",
        "moves",
        "model",
        "distributions",
    )
    seen = {
        (path, name)
        for path, name, words in functions(ROOT)
        if path.startswith(rooms) and words & (DATA | RNG)
    }
    assert seen == set()


def laplace(policy=LINE, loss=None):
    return pg.Laplace().calibrate(QUERY, policy, loss or pg.Epsilon(1))


def test_a_release_is_one_of_the_outputs_that_an_audit_sees():
    data = Histogram.of(AGES, COUNTS)
    one = gate.run(laplace(), data, pg.SeededRng(3)).values()
    assert one.tolist() == gate.draw(laplace(), data, pg.SeededRng(3), 1)[0].tolist()
    assert one.tolist() == laplace().run(COUNTS, pg.SeededRng(3)).values().tolist()


def test_noise_free_answers_do_not_alias_the_counts():
    ready = laplace(pg.Policy(AGES, pg.PolicyGraph.from_edges(AGES, [])))
    data = Histogram.of(AGES, COUNTS)
    [made] = gate.draw(ready, data, pg.SeededRng(1))
    assert made.tolist() == COUNTS.tolist()
    made[0] = 99
    assert data.vector()[0] == 5


class Bare(Calibrated):
    """The least that a mechanism of others has to say: the total as it is, and noisy cells."""

    mechanism, query, policy, loss, sensitivity = "bare", QUERY, LINE, pg.Epsilon(1), None

    @property
    def noise(self):
        return laplace_noise(Fraction(2))

    @property
    def exact(self):
        return (pg.queries.total(AGES),)

    def stages(self):
        return ["noise of scale 2"]


def test_a_mechanism_of_others_gets_draws_and_noisy_numbers_and_cannot_change_the_counts():
    """All that the gate hands to its methods, and what its own query may do with true counts."""
    seen = {}

    class Rude(pg.queries.cuboid(AGES, "age").__class__):
        def from_tables(self, tables):
            seen["writeable"] = any(
                table.flags.writeable and np.shares_memory(table, data.vector()) for table in tables
            )
            return super().from_tables(tables)

    class Spy(Bare):
        measure = Rude(AGES, (("age",),), (1,))
        exact = ()

        def spread(self, draws):
            seen["spread"] = draws.copy()
            return draws

        def decode(self, noisy, exact):
            seen["decode"] = noisy.copy(), exact
            return noisy

    data = Histogram.of(AGES, COUNTS)
    made = gate.draw(Spy(), data, pg.SeededRng(4), 3)
    noise = discrete_laplace(Fraction(2), (3, 4), pg.SeededRng(4))
    assert seen["spread"].tolist() == noise.tolist()
    assert seen["decode"][0].tolist() == made.tolist() == (noise + COUNTS).tolist()
    assert seen["decode"][1].size == 0
    assert not seen["writeable"]
    with pytest.raises(ValueError, match="read-only"):
        data.vector()[0] = 1


def test_what_others_answer_exactly_must_be_proved_to_be_public():
    """Under a line no record vanishes, so that the total is public; without a policy graph it is not."""
    [made] = gate.draw(Bare(), Histogram.of(AGES, COUNTS), pg.SeededRng(1))
    assert made[-1] == COUNTS.sum()
    open_ = Bare()
    open_.policy = pg.Policy(AGES)
    with pytest.raises(pg.RefusedError) as caught:
        gate.draw(open_, Histogram.of(AGES, COUNTS), pg.SeededRng(1))
    assert caught.value.code == "gate.exact"


def test_no_noise_at_all_is_refused_where_something_is_hidden():
    class Silent(Bare):
        exact = ()

        @property
        def noise(self):
            return laplace_noise(Fraction(0))

    with pytest.raises(pg.RefusedError) as caught:
        gate.draw(Silent(), Histogram.of(AGES, COUNTS), pg.SeededRng(1))
    assert caught.value.code == "gate.exact"


def test_unknown_noise_shared_noise_and_unknown_runners_are_refused():
    class Uniform(Bare):
        @property
        def noise(self):
            return replace(super().noise, distribution="uniform")

    class Shared(Bare):
        def spread(self, draws):
            return draws[:, :1]

    class Real(Bare):
        def spread(self, draws):
            return draws / 2

    class Lost(Bare):
        runner = "nobody"

    for ready, code in (
        (Uniform(), "gate.noise"),
        (Shared(), "gate.spread"),
        (Real(), "gate.spread"),
        (Lost(), "gate.runner"),
    ):
        with pytest.raises(pg.PolicyGraphError) as caught:
            gate.draw(ready, Histogram.of(AGES, COUNTS), pg.SeededRng(1))
        assert caught.value.code == code


def test_a_runner_of_others_is_registered_by_name(monkeypatch):
    class Constant:
        def draw(self, ready, data, rng, n):
            return np.zeros((n, ready.query.height), dtype=np.int64)

    class Ours(Bare):
        exact, runner = (), "constant"

    monkeypatch.setattr(gate, "RUNNERS", dict(gate.RUNNERS))
    gate.register_runner("constant", Constant())
    assert Ours().run(COUNTS, pg.SeededRng(1)).values().tolist() == [0] * 4
    for name, runner in (
        ("constant", Constant()),
        ("sparse", Constant()),
        ("", Constant()),
        ("new", object()),
    ):
        with pytest.raises(pg.InputError) as caught:
            gate.register_runner(name, runner)
        assert caught.value.code == "gate.runner"


def test_data_are_checked_before_anything_is_drawn():
    class Never(pg.SeededRng):
        def words(self, n):
            raise AssertionError("drawn")

    facts = pg.Policy(AGES, constraints=[pg.count({"age": [0, 1]}, equals=3)])
    other = pg.Domain({"year": 4})
    for ready, data, code in (
        (laplace(), Histogram.of(other, COUNTS), "query.domain"),
        (laplace(), Histogram.of(AGES, COUNTS << 58), "query.overflow"),
        (laplace(facts), Histogram.of(AGES, COUNTS), "constraint.data"),
        (laplace(loss=pg.Epsilon(Fraction(1, 1 << 50))), Histogram.of(AGES, COUNTS), "mechanism.scale"),
    ):
        with pytest.raises(pg.PolicyGraphError) as caught:
            gate.draw(ready, data, Never(1))
        assert caught.value.code == code


def test_a_mechanism_is_asked_for_a_limit_and_not_told_the_number_of_records():
    @dataclass(frozen=True)
    class Asked(Additive):
        def reach(self, records):
            assert records != COUNTS.sum()
            return super().reach(records)

    plain = laplace()
    ready = Asked(plain.mechanism, plain.query, plain.policy, plain.loss, plain.sensitivity)
    gate.check(ready, Histogram.of(AGES, COUNTS))
    assert ready.reach(ready.most_records) < ready.most_reach <= ready.reach(ready.most_records + 1)


def test_rng_and_source_are_one_argument():
    made = [
        pg.release(QUERY, LINE, COUNTS, epsilon=1, **{name: pg.SeededRng(1)}) for name in ("rng", "source")
    ]
    assert made[0].values().tolist() == made[1].values().tolist()
    with pytest.raises(pg.InputError) as caught:
        pg.release(QUERY, LINE, COUNTS, epsilon=1, rng=pg.SeededRng(1), source=pg.SeededRng(1))
    assert caught.value.code == "noise.rng"


def test_a_histogram_shows_no_number():
    assert repr(Histogram.of(AGES, COUNTS)) == f"Histogram({AGES!r}, private)"
    with pytest.raises(ValueError, match="read-only"):
        Histogram.of(AGES, COUNTS).vector()[0] = 1


def test_records_with_values_and_counts_of_cells_are_told_apart():
    measure = pg.Measure("income", 0, 9)
    valued = MeasuredCounts.from_vectors(AGES, measure, COUNTS, COUNTS * 2)
    sums = pg.Measured().calibrate(pg.queries.sums(AGES, [["age"]], measure), pg.Policy(AGES), pg.Epsilon(1))
    other = pg.Measured().calibrate(
        pg.queries.sums(AGES, [["age"]], pg.Measure("age", 0, 9)), pg.Policy(AGES), pg.Epsilon(1)
    )
    for ready, data in ((sums, Histogram.of(AGES, COUNTS)), (other, valued)):
        with pytest.raises(pg.InputError) as caught:
            gate.draw(ready, data, pg.SeededRng(1))
        assert caught.value.code == "measure.data"
    sparse = pg.Sparse(threshold=3).calibrate(QUERY, pg.Policy(AGES), pg.Epsilon(1))
    with pytest.raises(pg.InputError) as caught:
        gate.draw(sparse, valued, pg.SeededRng(1))
    assert caught.value.code == "measure.data"
    assert valued.answers([QUERY])[0].tolist() == COUNTS.tolist()


def test_what_is_too_large_to_count_is_refused_before_the_charge():
    large = pg.Domain({"a": 10**5, "b": 10**5})
    data = Histogram(large, "x", 7, _tally=lambda sets: [])
    for query in (pg.queries.identity(large), pg.queries.cuboids(large, [["a"], ["a", "b"]])):
        ready = Additive("plain", query, pg.Policy(large), pg.Epsilon(1), laplace().sensitivity)
        with pytest.raises(pg.PolicyGraphError) as caught:
            gate.check(ready, data)
        assert caught.value.code == "counts.too-large"
    rows = Additive(
        "rows",
        pg.queries.boxes(large, [((0, 0), (1, 1))]),
        pg.Policy(large),
        pg.Epsilon(1),
        laplace().sensitivity,
    )
    with pytest.raises(pg.PolicyGraphError) as caught:
        gate.check(rows, data)
    assert caught.value.code == "counts.too-large"
    with pytest.raises(pg.DataError) as caught:
        Histogram.derived(AGES, np.full(4, 1 << 61))
    assert caught.value.code == "counts.size"


def test_values_of_a_measure_must_fit_the_published_facts():
    """Published values limit the moves that noise is scaled to; data with other values have no neighbours."""
    measure = pg.Measure("income", low=0, high=10)
    data = MeasuredCounts.from_vectors(AGES, measure, COUNTS, 2 * COUNTS)
    for facts in ([pg.Total(equals=int(COUNTS.sum()) + 1)], [pg.StructuralZero([(0,)])]):
        policy = pg.Policy(AGES, constraints=facts)
        with pytest.raises(pg.ConstraintError) as caught:
            pg.release(pg.queries.sums(AGES, [["age"]], measure), policy, data, epsilon=1)
        assert caught.value.code == "constraint.data"


def test_mechanisms_of_others_do_not_get_true_counts_from_the_runners_of_the_library():
    class Peeking(Bare):
        exact, runner = (), "transformed"

        @property
        def inner(self):
            return laplace()

        def transform(self, cells):
            return cells, cells

        def decode(self, noisy, exact):
            return exact[None, :]

    for name in gate.OWN_RUNNERS:
        made = Peeking()
        made.__class__.runner = name
        with pytest.raises(pg.RefusedError) as caught:
            gate.draw(made, Histogram.of(AGES, COUNTS), pg.SeededRng(1))
        assert caught.value.code == "gate.runner"


def test_what_the_gate_refuses_is_not_charged(tmp_path):
    class Open(Bare):
        policy = pg.Policy(AGES)

    class Uniform(Bare):
        exact = ()

        @property
        def noise(self):
            return replace(super().noise, distribution="uniform")

    class Shared(Bare):
        exact = ()

        def spread(self, draws):
            return draws[:, :1]

    book = pg.Ledger(tmp_path / "ledger.sqlite")
    for ready, code in ((Open(), "gate.exact"), (Uniform(), "gate.noise"), (Shared(), "gate.spread")):
        with pytest.raises(pg.RefusedError) as caught:
            pg.release(QUERY, ready.policy, COUNTS, epsilon=1, mechanism=ready, ledger=book)
        assert caught.value.code == code
    assert book.history() == []


class Louder(pg.Laplace):
    """Spends more than it is asked for."""

    def calibrate(self, query, policy, loss, sensitivity=None):
        return super().calibrate(query, policy, pg.Epsilon(100 * loss.value))


class Careless(pg.Intervals):
    """Forgets that a neighbour step changes counts."""

    def calibrate(self, size, changes, loss, noise):
        return super().calibrate(size, Fraction(0), loss, noise)


@pytest.mark.parametrize(
    ("mechanism", "code"),
    [
        (pg.Transformed(Louder()), "mechanism.inner"),
        (pg.Partitioned(pg.Partition([0, 0, 1, 1]), then=Louder()), "mechanism.inner"),
        (pg.Partitioned(Careless()), "partition.partitioner"),
    ],
)
def test_what_others_put_inside_a_mechanism_must_be_for_the_request(mechanism, code):
    with pytest.raises(pg.InputError) as caught:
        mechanism.calibrate(QUERY, LINE, pg.Epsilon(1))
    assert caught.value.code == code


def test_a_copy_with_another_query_policy_or_loss_is_refused():
    """Its noise would be scaled to the certificate of something else."""
    total = pg.Laplace().calibrate(pg.queries.total(AGES), pg.Policy(AGES), pg.Epsilon(1))
    thousandfold = pg.queries.matrix(AGES, [[1000] * 4])
    data = Histogram.of(AGES, COUNTS)
    for ready, code in (
        (replace(total, query=thousandfold), "sensitivity.foreign"),
        (replace(laplace(), policy=pg.Policy(AGES, pg.PolicyGraph.full(AGES))), "sensitivity.foreign"),
        (replace(laplace(), loss=pg.Rho(1)), "mechanism.norm"),
    ):
        with pytest.raises(pg.InputError) as caught:
            gate.draw(ready, data, pg.SeededRng(1))
        assert caught.value.code == code


def test_the_draw_itself_refuses_what_the_check_refuses():
    """A runner may call ``sample`` on numbers that it computed, so that the checks of the gate do not stand alone."""
    domain = pg.Domain({"a": 2})
    facts = [pg.Total(equals=3)]
    ready = pg.Exponential().calibrate(
        pg.queries.identity(domain), pg.Policy(domain, constraints=facts), pg.Epsilon(1)
    )
    with pytest.raises(pg.InputError) as caught:
        gate.sample(ready, Histogram.of(domain, [9, 9]), pg.SeededRng(1), 1)
    assert caught.value.code == "exponential.table"
    values = MeasuredCounts.from_vectors(domain, pg.Measure("income", 0, 9), [1, 2], [3, 4])
    with pytest.raises(pg.InputError) as caught:
        gate.sample(ready, values, pg.SeededRng(1), 1)
    assert caught.value.code == "measure.data"
    odd = replace(laplace_noise(Fraction(1)), distribution="uniform")
    with pytest.raises(pg.RefusedError) as refused:
        gate.independent(odd, (1, 1), pg.SeededRng(1))
    assert refused.value.code == "gate.noise"


def test_a_mechanism_that_was_calibrated_for_another_loss_is_refused_and_not_charged(tmp_path):
    ready = pg.Laplace().calibrate(QUERY, LINE, pg.Epsilon(1))
    for ledger in (None, tmp_path / "budget.db"):
        with pytest.raises(pg.InputError) as caught:
            pg.release(QUERY, LINE, COUNTS, epsilon=2, mechanism=ready, ledger=ledger, dataset="ages")
        assert caught.value.code == "release.mechanism"
    assert not pg.Ledger(tmp_path / "budget.db").datasets()


def test_a_table_of_another_size_is_refused():
    ready = pg.Laplace().calibrate(QUERY, LINE, pg.Epsilon(1))
    with pytest.raises(pg.InputError, match="a table of 2 cells: expected 4") as caught:
        pg.SeededRng(1).run(ready, [1, 2])
    assert caught.value.code == "mechanism.table"


def test_scores_whose_noise_does_not_fit_are_refused(monkeypatch):
    ready = pg.Intervals().calibrate(AGES.size, Fraction(1), pg.Epsilon(1), 1.0)
    data = Histogram.of(AGES, COUNTS)
    assert partitioned.choose(ready, data, pg.SeededRng(1))
    monkeypatch.setattr(type(ready), "most_noise", 1)
    with pytest.raises(pg.RefusedError, match="a draw of noise does not fit") as caught:
        partitioned.choose(ready, data, pg.SeededRng(1))
    assert caught.value.code == "partition.noise"


class TellTale:
    """Chooses nothing and remembers what it was given."""

    size, rounds, changes, most_noise = 4, 2, True, 1 << 40

    def __init__(self, chosen):
        self.chosen, self.met = chosen, []

    def scores(self, counts, partition):
        self.met.append(("scores", partition))
        return [np.asarray(counts)]

    def scales(self, partition):
        self.met.append(("scales", partition))
        return [Fraction(partition.n_buckets)]

    def select(self, noisy, partition):
        return self.chosen[: len(noisy[0])]

    def ends(self, before, after):
        return False


def test_noise_on_scores_is_scaled_for_the_partition_of_the_round():
    halves = pg.Partition(np.array([0, 0, 1, 1]))
    chooser, data = TellTale([halves, halves]), Histogram.of(AGES, COUNTS)
    assert partitioned.choose(chooser, data, pg.SeededRng(1), 2) == [halves, halves]
    single = pg.Partition.singletons(4)
    assert chooser.met == [("scores", single), ("scales", single), ("scores", halves), ("scales", halves)]
    with pytest.raises(ValueError, match="shorter"):
        partitioned.choose(TellTale([halves]), data, pg.SeededRng(1), 2)
    ended = TellTale([halves, halves])
    ended.ends = lambda before, after: True
    assert partitioned.choose_rounds(ended, data, pg.SeededRng(1), 2) == [(halves, halves)] * 2
    assert ended.met == [("scores", single), ("scales", single)]
    chooser.changes = False
    chooser.scales = lambda partition: [Fraction(0)]
    assert partitioned.choose(chooser, data, pg.SeededRng(1), 2) == [halves, halves]
    chooser.changes = True
    with pytest.raises(pg.InputError, match="would hide nothing"):
        partitioned.choose(chooser, data, pg.SeededRng(1), 2)


def test_runners_draw_from_the_given_words_alone():
    """A release that is completed after a crash must get the noise that its key gives."""
    wide = pg.Domain({"a": 300, "b": 300})
    data = Histogram.from_vector(wide, np.arange(wide.size) % 997 == 0)
    ready = pg.Sparse().calibrate(pg.queries.identity(wide), pg.Policy(wide), pg.Epsilon(1))
    first, again, other = (gate.draw(ready, data, pg.SeededRng(seed))[0].tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert gate.most_bytes(ready, data, pg.SeededRng(1)) < ready.most_bytes(
        wide.size, pg.SeededRng(1).randomness
    )


def test_an_adaptive_cube_is_not_measured_with_a_certificate_of_another_norm():
    domain = pg.Domain({"a": 2, "b": 3})
    query, policy = pg.queries.cuboids(domain, [["a", "b"]]), pg.Policy(domain)
    ready = AdaptiveCube().calibrate(query, policy, pg.Rho(1))
    data = Histogram.of(domain, np.arange(6))
    assert len(gate.draw(ready, data, pg.SeededRng(1))) == 1
    others = {code: replace(proof, norm="l1") for code, proof in ready.proofs.items()}
    with pytest.raises(pg.RefusedError, match="a sensitivity in l1 does not fit rho") as caught:
        gate.draw(replace(ready, proofs=others), data, pg.SeededRng(1))
    assert caught.value.code == "mechanism.norm"


def test_derived_counts_may_be_negative_and_must_fit():
    made = Histogram.derived(AGES, np.array([10**6, -5, 0, 1]))
    assert (made.vector().tolist(), made.rows) == ([10**6, -5, 0, 1], 10**6 + 6)
    with pytest.raises(pg.DataError, match="do not fit 62 bits"):
        Histogram.derived(AGES, np.array([1 << 62, 1 << 62, 0, 0]))


def test_queries_of_every_kind_are_answered_together():
    data = Histogram.of(AGES, COUNTS)
    total, first = pg.queries.cuboids(AGES, [[]]), pg.queries.ranges(AGES, [(0, 1)])
    assert [found.tolist() for found in data.answers([first, total, first])] == [[5], [16], [5]]
