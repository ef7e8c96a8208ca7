"""The conformance suite passes what is ours, and names the fault of plug-ins that break the contract."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

import policygraph as pg
from policygraph.conformance import check_mechanism, check_partitioner, check_reduction, check_strategy
from policygraph.mechanisms.additive import Additive
from policygraph.mechanisms.base import Mechanism, certified
from policygraph.mechanisms.partitioned import Partition
from policygraph.mechanisms.partitioned.partitioners.base import Chooser, Partitioner
from policygraph.model.queries.measures import MeasureQuery
from policygraph.transforms.cuboids.choose import Choice, CubeStrategy
from policygraph.transforms.incidence import transform
from tests.audit.audited import MECHANISMS

AGES = pg.Domain({"age": 4})
POLICY = pg.Policy(AGES)
QUERY = pg.queries.identity(AGES)


PLAIN = [
    case
    for case in MECHANISMS
    if case.mechanism is not None
    and isinstance(case.policy, pg.Policy)
    and not isinstance(case.query, MeasureQuery)
]


@pytest.mark.slow
@pytest.mark.parametrize("case", PLAIN, ids=[case.name for case in PLAIN])
def test_every_mechanism_on_tables_of_counts_conforms(case):
    # A release of these simulates its errors or fits a model, and others test what they state (test_stated_errors, test_coverage).
    runs = {"runs": 12} if case.name.startswith("adaptive") else {}
    found = check_mechanism(case.mechanism, case.query, case.policy, case.loss, samples=0, **runs)
    assert found.passed, str(found)


@dataclass(frozen=True)
class Plain(Mechanism):
    """A sound plug-in; the broken ones below change one thing each."""

    name: str = "plain"

    def calibrate(self, query, policy, loss, sensitivity=None):
        if not isinstance(loss, pg.Epsilon):
            raise pg.InputError("epsilon, please", code="plain.loss")
        return self.ready("plain", query, policy, loss, certified(query, policy, loss, sensitivity))

    ready = Additive


def broken(**changes):
    return type("Broken", (Plain,), changes)()


@dataclass(frozen=True)
class Forgetful(Additive):
    def decode(self, noisy, exact):
        return noisy + int(np.random.default_rng().integers(100))


@dataclass(frozen=True)
class Global(Additive):
    def decode(self, noisy, exact):
        return noisy + np.random.randint(100)


class Scribbling(type(QUERY)):
    def from_tables(self, tables):
        tables[0][:] += 1
        return super().from_tables(tables)


@dataclass(frozen=True)
class Writing(Additive):
    @property
    def measure(self):
        return Scribbling(AGES, [["age"]])


@dataclass(frozen=True)
class Fixed(Additive):
    def spread(self, draws):
        return np.full_like(draws, 5)


@dataclass(frozen=True)
class Loud(Additive):
    def spread(self, draws):
        return 3 * draws


@dataclass(frozen=True)
class Shared(Additive):
    """One draw for all answers, which numpy would spread over them."""

    def spread(self, draws):
        return draws[:, :1]


@dataclass(frozen=True)
class Open(Additive):
    """Answers the query a second time, without noise."""

    @property
    def exact(self):
        return (self.query,)

    def decode(self, noisy, exact):
        return noisy


@dataclass(frozen=True)
class Noiseless(Additive):
    @property
    def parameter(self):
        return Fraction(0)


@dataclass(frozen=True)
class Homemade(Additive):
    @property
    def noise(self):
        return replace(super().noise, distribution="uniform")


@dataclass(frozen=True)
class Leaking(Additive):
    @property
    def parameter(self):
        return super().parameter / 3


@dataclass(frozen=True)
class Silent(Additive):
    def record(self, randomness, parts):
        return {**super().record(randomness, parts), "private": True, "warning": None}


def trusting(self, query, policy, loss, sensitivity=None):
    return Additive("trusting", query, policy, loss, certified(query, policy, loss, None))


def generous(self, query, policy, loss, sensitivity=None):
    spent = loss if isinstance(loss, pg.Epsilon) else pg.Epsilon(1)
    return Additive("generous", query, policy, spent, certified(query, policy, spent, sensitivity))


def drifting(self, query, policy, loss, sensitivity=None):
    name = f"drifting {np.random.default_rng().integers(10**9)}"
    return replace(Plain().calibrate(query, policy, loss, sensitivity), mechanism=name)


FAULTS = {
    "draws from its rng alone: the same seed gave two": broken(ready=Forgetful),
    "draws from its rng alone: the global random state": broken(ready=Global),
    "draws from its rng alone: different seeds gave the same": broken(ready=Fixed),
    "runs on neighbouring tables of all kinds: ValueError": broken(ready=Writing),
    "runs on neighbouring tables of all kinds: RefusedError: plain spreads noise into": broken(ready=Shared),
    "answers without noise only what no move changes": broken(ready=Open),
    "answers without noise only what no move changes: ": broken(ready=Noiseless),
    "runs on neighbouring tables of all kinds: RefusedError: noise 'uniform'": broken(ready=Homemade),
    "its errors are as stated": broken(ready=Loud),
    "passes the audit": broken(ready=Leaking),
    "says what it did in a record without data": broken(ready=Silent),
    "refuses a bare number": broken(calibrate=trusting),
    "refuses a certificate of another query": broken(calibrate=trusting),
    "refuses a loss that no noise has": broken(calibrate=generous),
    "calibrates alike every time": broken(calibrate=drifting),
}


def test_a_sound_plug_in_passes():
    found = check_mechanism(Plain(), QUERY, POLICY, pg.Epsilon(2))
    assert found.passed, str(found)
    assert str(found).startswith("Plain on ")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_mechanism_is_told_its_fault(fault):
    found = check_mechanism(FAULTS[fault], QUERY, POLICY, pg.Epsilon(2))
    assert not found.passed
    assert any(line.startswith(fault) for line in found.faults), str(found)
    assert "FAIL" in str(found)


def test_only_mechanisms_are_checked_as_mechanisms():
    with pytest.raises(pg.InputError, match="expected a Mechanism"):
        check_mechanism("laplace", QUERY, POLICY, pg.Epsilon(1))


@dataclass(frozen=True)
class Both(CubeStrategy):
    """The base and the total, with given weights; the total alone, if the base is left out."""

    weights: tuple[int, ...] = (2, 1)
    base: bool = True
    name: str = "both"

    def choose(self, domain, published, weights, policy, loss):
        sets = (tuple(domain.names), ()) if self.base else ((),)
        return Choice(sets, self.weights[: len(sets)])


def test_a_strategy_of_a_user():
    assert check_strategy(Both()).passed, str(check_strategy(Both()))
    assert check_strategy(pg.cubes.PMost(bound=500), loss=pg.Rho(1), samples=0).passed
    for wrong, fault in [
        (Both(weights=(2,)), "weights are positive integers"),
        (Both(base=False), "every published cuboid can be computed"),
    ]:
        found = check_strategy(wrong, samples=0)
        assert any(line.startswith(fault) for line in found.faults), str(found)


def test_reductions_of_the_library_and_a_wrong_one():
    graphs = [
        pg.PolicyGraph.line(AGES),
        pg.PolicyGraph.full(AGES),
        pg.PolicyGraph.line(AGES).with_bottom(),
        pg.PolicyGraph.from_edges(AGES, [(0, 1), (2, 3)]),
    ]
    made = [transform(pg.Policy(AGES, graph)) for graph in graphs]
    for reduction in made:
        assert check_reduction(reduction).passed, str(check_reduction(reduction))

    class Boast(type(made[0])):
        stretch = 0

    boast = object.__new__(Boast)
    boast.__dict__.update({k: v for k, v in made[0].__dict__.items() if k != "stretch"})
    found = check_reduction(boast)
    assert any("stretch" in line for line in found.faults), str(found)


class Peeking(Partitioner):
    """A bucket for each value that has a record, with next to no noise, or none at all."""

    name, weight = "peeking", 1.0

    def __init__(self, scale):
        self.scale = scale

    def calibrate(self, size, changes, loss, noise):
        scale = self.scale

        class Ready(Chooser):
            def scores(self, counts, partition):
                return [(counts > 0).astype(np.int64)]

            def scales(self, partition):
                return [scale]

            def select(self, noisy, partition):
                return [Partition(row * np.arange(1, size + 1)) for row in noisy[0]]

            def stages(self):
                return ["looked"]

        made = Ready()
        made.loss, made.size, made.changes, made.rounds = loss, size, changes, 1
        return made


def test_partitioners():
    for sound in (pg.Intervals(), pg.Matchings()):
        found = check_partitioner(sound, samples=600)
        assert found.passed, str(found)
    found = check_partitioner(Peeking(Fraction(1, 20)))
    assert [line.split(":")[0] for line in found.faults] == ["passes the audit"]
    found = check_partitioner(Peeking(Fraction(0)), samples=0)
    assert any("Noise of scale 0 would hide nothing" in line for line in found.faults)


def test_fractions_only():
    @dataclass(frozen=True)
    class Floating(Additive):
        @property
        def noise(self):
            return replace(super().noise, parameter=float(super().parameter))

    found = check_mechanism(broken(ready=Floating), QUERY, POLICY, pg.Epsilon(Fraction(1, 2)), samples=0)
    assert any("expected a Fraction" in line for line in found.faults)
