"""The harness itself: what it may look at, how often it may be wrong, what it says."""

from __future__ import annotations

import doctest
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import policygraph as pg
from policygraph.audit import audit, noisy_many
from policygraph.audit.draws import Outputs, Subject
from policygraph.audit.events import Event
from policygraph.audit.statistics import ZERO_BIT, Statistic, lowest_bit
from tests.gate import noisy
from tests.oracles import audits as oracle
from tests.paths import ROOT

AGES = pg.Domain({"age": 4})
POLICY = pg.Policy(AGES)
CELLS = pg.queries.identity(AGES)


def laplace(epsilon=1, query=CELLS, policy=POLICY):
    return pg.Laplace().calibrate(query, policy, pg.Epsilon(epsilon))


class Chameleon:
    """Tells the table while events are chosen, and nothing once they are tested."""

    def __init__(self, choosing):
        self.choosing, self.calls = choosing, 0

    def __call__(self, table, n, source):
        self.calls += 1
        return np.tile(table, (n, 1)) * (self.calls <= self.choosing)


def test_no_bound_rests_on_the_outputs_that_chose_the_event():
    pairs = [([0, 0, 0, 0], [1, 0, 0, 0]), ([0, 0, 2, 0], [0, 0, 3, 0])]
    report = audit(Chameleon(4), POLICY, epsilon=1, pairs=pairs, batch=True)
    assert report.findings
    assert report.lower_bound == 0
    assert report.passed
    assert not audit(Chameleon(8), POLICY, epsilon=1, pairs=pairs, batch=True).passed


def test_false_alarms_are_rarer_than_the_confidence_allows():
    """A mechanism that loses exactly nothing, against a claim of next to nothing, at a confidence of one half."""
    pair = [([0, 0, 0, 0], [1, 0, 0, 0])]

    def noise(table, n, rng):
        return rng.integers(0, 50, size=(n, 4))

    alarms = sum(
        not audit(
            noise,
            POLICY,
            epsilon="1e-9",
            pairs=pair,
            samples=800,
            confidence="0.5",
            batch=True,
            randomness="numpy",
            source=pg.SeededRng(seed),
        ).passed
        for seed in range(40)
    )
    assert alarms <= 20


def test_both_directions_are_tested():
    """An output that is rare on the first table and impossible on the second, and the other way round."""

    def tells(table, n, rng):
        return (rng.random((n, 1)) < 0.1) * int(table[0] == 0)

    pairs = [([0, 0, 0, 0], [1, 0, 0, 0])]
    for asked in (pairs, [pairs[0][::-1]]):
        report = audit(
            tells, POLICY, epsilon=1, pairs=asked, batch=True, randomness="numpy", source=pg.SeededRng(1)
        )
        assert not report.passed
        assert report.worst.likelier == ("first" if asked is pairs else "second")


def test_the_report_says_what_was_found_and_can_be_written():
    report = audit(laplace(1), epsilon="1/4", samples=4000, source=pg.SeededRng(3), most_pairs=2)
    text = str(report)
    assert text.startswith("LEAK: epsilon >= 0.")
    assert (
        "where epsilon = 0.25 is claimed (confidence 99.9 %, 4000 runs of each table, 2 pairs of neighbours)"
        in text
    )
    assert (
        "tables:  {age=0: 0} against {age=0: 1}" in text or "tables:  {age=0: 4} against {age=0: 5}" in text
    )
    assert "of 2000 on the first table" in text
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["passed"] is False
    assert plain["lower_bound"] == report.lower_bound > 0.25
    assert plain["findings"][0]["runs"] == 2000
    assert plain["findings"][0]["pair"]["cells"] == {"0": "age=0"}
    assert plain["source"] == "NOT PRIVATE: seeded stream, seed 3"
    bounds = [finding["lower_bound"] for finding in plain["findings"]]
    assert bounds == sorted(bounds, reverse=True)


def test_a_pass_says_that_it_is_one():
    report = audit(laplace(1), samples=1000, source=pg.SeededRng(3), most_pairs=1)
    assert str(report).startswith("passed: no event refutes epsilon = 1; the strongest shows epsilon >= 0.")
    constant = audit(lambda table, source: 0, POLICY, epsilon=1, samples=200)
    assert str(constant).startswith("passed: no event differed")
    known = pg.Policy(AGES, constraints=[pg.Cuboid("age")])
    nothing = audit(laplace(1, CELLS, known), samples=200)
    assert nothing.passed
    assert "no neighbours that differ" in str(nothing)


@pytest.mark.parametrize(
    ("output", "event"),
    [
        (lambda table, rng: ("total", int(table.sum()) > 0), "the whole output"),
        (
            lambda table, rng: frozenset([*np.flatnonzero(table).tolist(), 9 + rng.integers(10**6)]),
            "the number of parts",
        ),
        (lambda table, rng: np.array([float("nan") if table.sum() else 1.0]), "finite"),
        (lambda table, rng: float(table.sum()) + rng.integers(0, 2), "answer 0"),
        (lambda table, rng: "filled" if table.any() else "empty", "the whole output is exactly 'empty'"),
        (lambda table, rng: [1] * (1 + int(table.sum())), ""),
    ],
)
def test_outputs_of_any_kind_are_looked_at(output, event):
    pairs = [([0, 0, 0, 0], [1, 0, 0, 0])]
    report = audit(
        output, POLICY, epsilon=1, samples=400, pairs=pairs, randomness="numpy", source=pg.SeededRng(0)
    )
    assert not report.passed
    assert event in report.worst.event


def test_a_statistic_of_the_user_finds_what_no_family_looks_at():
    """Two answers that are both even or both odd on one table only; each alone, and their sum, tell nothing more."""

    def coupled(table, n, rng):
        first = rng.integers(0, 1000, size=n)
        second = rng.integers(0, 1000, size=n)
        digit = (first // 7 + second // 11) % 5
        wanted = rng.integers(0, 5, size=n) if table[0] else np.zeros(n, dtype=int)
        return np.stack([first, second + 11 * ((wanted - digit) % 5)], axis=1)

    options = {
        "epsilon": 1,
        "samples": 2000,
        "batch": True,
        "randomness": "numpy",
        "pairs": [([0, 0, 0, 0], [1, 0, 0, 0])],
    }
    assert audit(coupled, POLICY, source=pg.SeededRng(2), **options).passed
    looks = {"the coupled digit": lambda rows: (rows[:, 0] // 7 + rows[:, 1] // 11) % 5}
    report = audit(coupled, POLICY, source=pg.SeededRng(2), looks=looks, **options)
    assert not report.passed
    assert report.worst.event.startswith("the coupled digit is at ")
    with pytest.raises(pg.InputError, match="one number for each"):
        audit(coupled, POLICY, looks={"bad": lambda rows: rows}, **options)


def test_claims_with_delta_and_rho_are_tested():
    ready = pg.Gaussian().calibrate(CELLS, POLICY, pg.Rho("1/2"))
    seeded = {"samples": 6000, "source": pg.SeededRng(5), "most_pairs": 2}
    assert audit(ready, **seeded).passed
    assert not audit(ready, loss=pg.Rho("1/10"), **seeded).passed
    assert audit(ready, loss=pg.Rho("1/2").to_epsilon_delta("0.001"), **seeded).passed
    caught = audit(ready, loss=pg.EpsilonDelta("1/10", "0.001"), **seeded)
    assert not caught.passed
    assert caught.claim.quantity == "epsilon"


def test_many_draws_at_once_have_the_law_of_single_runs():
    """Mean, spread and independence of answers, against the noise the certificate asks for."""
    ready = laplace("1/2")
    table = np.array([3, 0, 7, 1])
    rows = noisy_many(ready, table, 20_000, pg.SeededRng(1))
    assert rows.shape == (20_000, 4)
    deviation = ready.deviation(0)
    assert np.abs(rows.mean(axis=0) - table).max() < 5 * deviation / np.sqrt(20_000)
    assert np.abs(rows.std(axis=0) / deviation - 1).max() < 0.05
    off = np.corrcoef(rows.T) - np.eye(4)
    assert np.abs(off).max() < 0.05
    one = noisy_many(ready, table, 1, pg.SeededRng(9))
    assert one[0].tolist() == noisy(ready, table, pg.SeededRng(9)).tolist()
    kept = noisy_many(ready, table, 5, pg.SeededRng(9), np.array([2, 3]))
    assert kept.shape == (5, 2)


def test_what_a_mechanism_makes_of_noisy_answers_is_what_is_audited():
    class Offering(type(laplace())):
        def decode(self, noisy, exact):
            return np.full((len(noisy), 4), 7)

    plain = laplace()
    ready = Offering(plain.mechanism, plain.query, plain.policy, plain.loss, plain.sensitivity)
    assert noisy_many(ready, np.zeros(4, dtype=np.int64), 3, pg.SeededRng(1)).tolist() == [[7] * 4] * 3


def test_a_mechanism_that_is_not_additive_is_run_as_it_is():
    from policygraph.mechanisms import Calibrated

    class Loud(Calibrated):
        def __init__(self, inner):
            self.inner = inner
            self.mechanism, self.query, self.policy = "loud", inner.query, inner.policy
            self.loss, self.sensitivity = inner.loss, inner.sensitivity

        @property
        def noise(self):
            return self.inner.noise

        def decode(self, noisy, exact):
            return 2 * self.inner.decode(noisy, exact)

        def stages(self):
            return ["doubled"]

    rows = noisy_many(Loud(laplace()), np.array([3, 0, 7, 1]), 50, pg.SeededRng(4))
    assert rows.shape == (50, 4)
    assert not (rows % 2).any()
    assert len({tuple(row) for row in rows.tolist()}) > 40
    assert audit(Loud(laplace()), samples=400, most_pairs=1, source=pg.SeededRng(4)).passed


def test_long_answers_are_watched_where_they_change():
    domain = pg.Domain({"cell": 2000})
    cells = pg.queries.identity(domain)
    pair = np.zeros((2, 2000), dtype=np.int64)
    pair[1, 1234] = 1
    ready = laplace(3, cells, pg.Policy(domain))
    report = audit(ready, epsilon=1, pairs=[pair], samples=1000, source=pg.SeededRng(1))
    assert not report.passed

    def user(table, n, source):
        return (
            table + np.asarray(source.words(n * 3) % 3, dtype=np.int64).reshape(n, 3).sum(axis=1)[:, None] * 0
        )

    assert not audit(user, pg.Policy(domain), cells, epsilon=1, pairs=[pair], samples=200, batch=True).passed


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_lowest_bit_is_that_of_the_exact_binary_number(value):
    wanted = oracle.lowest_bit(value)
    assert lowest_bit(np.array([value]))[0] == (ZERO_BIT if wanted is None else wanted)


def test_events_say_what_they_count():
    outputs = Outputs(np.array([[1], [2], [3], [9]]), [])
    look = Statistic("answer 0", lambda out: out.rows[:, 0])
    cases = [
        (Event(look, low=2), 3, "answer 0 is at least 2"),
        (Event(look, high=2.5), 2, "answer 0 is at most 2.5"),
        (Event(look, among=np.array([9])), 1, "answer 0 is exactly 9"),
        (Event(look, among=np.array([1, 3])), 2, "answer 0 is one of 1, 3 (2 values)"),
    ]
    for event, hits, words in cases:
        assert (event.hits(outputs), str(event)) == (hits, words)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"samples": 10}, "audit.samples"),
        ({"samples": True}, "audit.samples"),
        ({"confidence": 1}, "audit.confidence"),
        ({"confidence": 0}, "audit.confidence"),
        ({"policy": None}, "audit.policy"),
        ({"mechanism": 3}, "audit.mechanism"),
        ({"mechanism": pg.Laplace()}, "audit.mechanism"),
        ({"randomness": "dice"}, "audit.randomness"),
        ({"query": pg.queries.identity(pg.Domain({"other": 2}))}, "query.domain"),
        ({"mechanism": lambda table, n, source: [1], "batch": True}, "audit.outputs"),
        ({"mechanism": lambda table, source: {"a": 1}}, "audit.output"),
        ({"epsilon": None}, "audit.claim"),
    ],
)
def test_what_does_not_fit_is_refused(change, code):
    given = {"mechanism": lambda table, source: 0, "policy": POLICY, "epsilon": 1, "samples": 200} | change
    with pytest.raises(pg.InputError) as error:
        audit(given.pop("mechanism"), given.pop("policy"), **given)
    assert error.value.code == code


def test_a_user_gets_the_randomness_asked_for():
    seen = []
    for kind in ("source", "numpy"):
        subject = Subject(lambda table, given: seen.append(given) or 0, kind)
        subject.outputs(np.zeros(2, dtype=np.int64), 1, pg.SeededRng(1), None)
    assert isinstance(seen[0], pg.SeededRng)
    assert isinstance(seen[1], np.random.Generator)


def test_the_page_on_audits_runs():
    page = ROOT / "docs" / "how-to" / "audits.md"
    failed, tried = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert tried > 10
    assert failed == 0
