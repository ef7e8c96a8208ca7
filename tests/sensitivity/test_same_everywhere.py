"""The same request gives the same certificate, noise and choice on every machine and under every load.

The clock jumps wildly, the linear algebra has other last digits, and nothing may change. Only a limit in seconds that the caller asks
for may cut a search short, and the result says so in its first line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from itertools import combinations

import pytest

import policygraph as pg
from policygraph.compare import compare
from policygraph.explain import explain
from policygraph.mechanisms import choose
from policygraph.mechanisms.cube.strategies import BMax, PMost, Unequal
from policygraph.release.release import Release
from policygraph.sensitivity.proofs import CUT_SHORT, proved, shared_proofs
from tests.paths import ROOT

LINE = pg.Domain({"age": 24})
TABLE = pg.Domain({"a": 2, "b": 3})
THREE = pg.Domain({"sex": 2, "age": 4, "pay": 3})
FOUR = pg.Domain({"a": 2, "b": 3, "c": 2, "d": 2})
CUBE = pg.Domain({"a": 3, "b": 3, "c": 3})


def level(domain, most):
    sets = [list(s) for k in range(most + 1) for s in combinations(domain.names, k)]
    return pg.queries.cuboids(domain, sets)


def facts(*sets):
    return [pg.Cuboid(*([names] if isinstance(names, str) else names)) for names in sets]


REQUESTS = {
    "cells": (pg.queries.identity(TABLE), pg.Policy(TABLE)),
    "line": (pg.queries.identity(LINE), pg.Policy(LINE, pg.PolicyGraph.line(LINE))),
    "ranges": (pg.queries.all_ranges(LINE), pg.Policy(LINE)),
    "ranges on a line": (pg.queries.all_ranges(LINE), pg.Policy(LINE, pg.PolicyGraph.line(LINE))),
    "prefixes": (pg.queries.prefix(LINE), pg.Policy(LINE)),
    "one margin": (pg.queries.identity(TABLE), pg.Policy(TABLE, constraints=facts("a"))),
    "two margins": (pg.queries.identity(TABLE), pg.Policy(TABLE, constraints=facts("a", "b"))),
    "two margins, sums": (level(THREE, 1), pg.Policy(THREE, constraints=facts("sex", "age"))),
    "three tables": (
        pg.queries.identity(CUBE),
        pg.Policy(CUBE, constraints=facts(("a", "b"), ("a", "c"), ("b", "c"))),
    ),
    "three tables, markov": (
        pg.queries.identity(CUBE),
        pg.Policy(CUBE, constraints=facts(("a", "b"), ("a", "c"), ("b", "c")), strength="markov"),
    ),
    "a chain": (
        pg.queries.identity(FOUR),
        pg.Policy(FOUR, constraints=facts(("a", "b"), ("b", "c"), ("c", "d"))),
    ),
    "two records": (
        pg.queries.identity(CUBE),
        pg.Policy(CUBE, constraints=facts(("a", "b"), ("b", "c"), ("a", "c")), at_most_records=2),
    ),
    "a zero, markov": (
        level(THREE, 2),
        pg.Policy(
            THREE,
            constraints=[*facts("sex", "age"), pg.StructuralZero([{"sex": 0, "pay": 1}])],
            strength="markov",
        ),
    ),
    "graph and facts": (
        pg.queries.identity(TABLE),
        pg.Policy(TABLE, pg.PolicyGraph.attribute(TABLE), constraints=facts("a")),
    ),
    "all tables": (level(THREE, 3), pg.Policy(THREE)),
    "all tables, attributes": (level(THREE, 3), pg.Policy(THREE, pg.PolicyGraph.attribute(THREE))),
    "pairs of four": (level(FOUR, 2), pg.Policy(FOUR)),
    "pairs of four, full": (level(FOUR, 2), pg.Policy(FOUR, pg.PolicyGraph.full(FOUR))),
}


def chosen(name, loss):
    query, policy = REQUESTS[name]
    ready = choose(query, policy, loss)
    record = ready.record(pg.SeededRng(1).randomness, [])
    return json.dumps([record, str(ready.noise)], sort_keys=True)


def of_cube(strategy):
    def make(loss):
        query = level(FOUR, 3)
        made = pg.Cube(strategy).calibrate(query, pg.Policy(FOUR), loss)
        return json.dumps([made.choice.sets, made.choice.weights, made.choice.bound, str(made.noise)])

    return make


def compared(loss):
    query, policy = REQUESTS["two margins, sums"]
    made = compare(query, policy, loss).to_dict()
    for method in made["methods"]:
        del method["seconds"]
    return json.dumps(made)


def explained(loss):
    query, policy = REQUESTS["two margins"]
    made = explain(query, policy)
    return json.dumps([str(made), made.to_dict()])


OTHERS = {
    "Cube": of_cube("unequal"),
    "Cube, largest": of_cube("unequal-max"),
    "BMax": of_cube(BMax(fitted=False)),
    "PMost": of_cube(PMost(bound=60, fitted=False)),
    "compare": compared,
    "explain": explained,
}
ASKED = [*((name, kind) for name in REQUESTS for kind in ("epsilon", "rho"))]


def different(one, other):
    """Where two answers in JSON differ, in few words."""

    def walk(a, b, at):
        if isinstance(a, dict) and isinstance(b, dict):
            for key in sorted({*a, *b}):
                yield from walk(a.get(key), b.get(key), f"{at}.{key}")
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for k, (x, y) in enumerate(zip(a, b, strict=True)):
                yield from walk(x, y, f"{at}[{k}]")
        elif a != b:
            start = next((k for k, (x, y) in enumerate(zip(str(a), str(b), strict=False)) if x != y), 0)
            yield at, str(a)[max(0, start - 40) : start + 40], str(b)[max(0, start - 40) : start + 40]

    return list(walk(json.loads(one), json.loads(other), ""))[:5]


class WildClock:
    """Every look at it is some hours, days or years after the last one; some looks go back."""

    def __init__(self):
        self.now, self.looks = 1e9, 0

    def __call__(self):
        self.looks += 1
        self.now += (3.0, 40_000.0, -7_000.0, 1e8, 0.0)[self.looks % 5]
        return self.now


@pytest.fixture
def wild(monkeypatch):
    clock = WildClock()

    def start():
        for name in ("monotonic", "perf_counter", "time", "process_time"):
            monkeypatch.setattr(time, name, clock)

    yield start
    monkeypatch.undo()


def loss_of(kind):
    return pg.Epsilon("1/2") if kind == "epsilon" else pg.Rho("1/8")


@pytest.mark.parametrize(("name", "kind"), ASKED)
def test_no_clock_changes_what_is_chosen(name, kind, wild):
    before = chosen(name, loss_of(kind))
    wild()
    assert different(before, chosen(name, loss_of(kind))) == []


@pytest.mark.parametrize("name", OTHERS)
def test_no_clock_changes_a_cube_a_comparison_or_an_explanation(name, wild):
    before = OTHERS[name](pg.Epsilon(1))
    wild()
    assert different(before, OTHERS[name](pg.Epsilon(1))) == []


@pytest.mark.parametrize("name", ["all tables", "pairs of four", "three tables"])
def test_no_clock_changes_a_release(name, wild):
    query, policy = REQUESTS[name]
    table = [3] * query.domain.size

    def made():
        found = pg.release(query, policy, table, epsilon=1, source=pg.SeededRng(3))
        return json.dumps([found.record, [t.values.tolist() for t in found.tables]], sort_keys=True)

    before = made()
    wild()
    assert different(before, made()) == []


PROGRAM = """
import json, sys
sys.path.insert(0, {root!r})
from tests.sensitivity.test_same_everywhere import OTHERS, REQUESTS, chosen, loss_of
out = {{name: chosen(name, loss_of("epsilon")) for name in REQUESTS if "three" not in name}}
out |= {{name: make(loss_of("rho" if "largest" in name else "epsilon")) for name, make in OTHERS.items() if name != "explain"}}
print(json.dumps(out))
"""
MACHINES = [
    {},
    {
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "1",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
    },
    {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "3", "NPY_DISABLE_CPU_FEATURES": "X86_V4"},
]


def test_other_processors_choose_the_same():
    """Linear algebra as on processors of 2004, 2013 and now, with other numbers of threads."""
    root = ROOT
    outcomes = []
    for machine in MACHINES:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM.format(root=str(root))],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **machine},
        )
        outcomes.append(json.loads(done.stdout))
    for other in outcomes[1:]:
        assert [
            (name, different(found, other[name]))
            for name, found in outcomes[0].items()
            if other[name] != found
        ] == []


@pytest.fixture
def counted(monkeypatch):
    from importlib import import_module

    room = import_module("policygraph.sensitivity")

    calls = Counter()
    compute = room.sensitivity

    def counting(query, policy, *, norm="l1", effort=None, time_limit=None):
        work = effort if effort is None or isinstance(effort, int) else effort.work
        calls[(query.fingerprint, policy.fingerprint, norm, work)] += 1
        return compute(query, policy, norm=norm, effort=effort, time_limit=time_limit)

    monkeypatch.setattr(room, "sensitivity", counting)
    return calls


ONCE = ["a zero, markov", "two margins, sums", "all tables", "line", "one margin"]


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [*((name, "auto") for name in [*ONCE, "ranges"]), *((name, pg.Cube()) for name in ONCE)],
)
def test_a_release_computes_each_sensitivity_once(name, mechanism, counted):
    query, policy = REQUESTS[name]
    table = [0] * query.domain.size
    pg.release(query, policy, table, epsilon=1, mechanism=mechanism, source=pg.SeededRng(3))
    assert counted
    assert set(counted.values()) == {1}, counted


def test_a_comparison_and_an_explanation_compute_each_sensitivity_once(counted):
    query, policy = REQUESTS["two margins, sums"]
    compare(query, policy, pg.Epsilon(1))
    assert set(counted.values()) == {1}
    counted.clear()
    explain(query, policy)
    assert set(counted.values()) == {1}


def test_nothing_outlives_a_request(counted):
    query, policy = REQUESTS["cells"]
    for _ in range(2):
        with shared_proofs():
            assert proved(query, policy) is proved(query, policy)
    assert set(counted.values()) == {2}
    proved(query, policy)
    proved(query, policy)
    assert set(counted.values()) == {4}


def test_a_refusal_is_found_once_too(counted):
    domain = pg.Domain(dict.fromkeys("abcdef", 4))
    query, policy = pg.queries.identity(domain), pg.Policy(domain, constraints=facts(*"abcdef"))
    with shared_proofs():
        for _ in range(2):
            with pytest.raises(pg.RefusedError):
                proved(query, policy)
    assert set(counted.values()) == {1}


def test_a_clock_that_was_asked_for_cuts_short_and_says_so():
    query, policy = REQUESTS["pairs of four"]
    table = [3] * query.domain.size
    made = pg.release(
        query, policy, table, epsilon=1, mechanism=pg.Cube(), time_limit=0, source=pg.SeededRng(3)
    )
    assert made.sentences[0] == CUT_SHORT
    assert made.record["cut_short"] is True
    assert Release.from_parquet(made.to_bytes()).sentences[0] == CUT_SHORT
    whole = pg.release(query, policy, table, epsilon=1, mechanism=pg.Cube(), source=pg.SeededRng(3))
    assert CUT_SHORT not in whole.sentences
    assert "cut_short" not in whole.record
    for strategy in (Unequal(seconds=1e-9), BMax(fitted=False, exact_seconds=1e-9)):
        ready = pg.Cube(strategy).calibrate(query, policy, pg.Epsilon(1))
        assert ready.choice.cut_short
        assert ready.record(pg.SeededRng(1).randomness, [])["stages"][0] == CUT_SHORT
    ready = pg.MatrixMechanism(time_limit=0).calibrate(*REQUESTS["ranges"], pg.Epsilon(1))
    assert ready.record(pg.SeededRng(1).randomness, [])["stages"][0] == CUT_SHORT


def test_a_comparison_that_was_cut_short_says_so():
    made = compare(*REQUESTS["pairs of four"], pg.Epsilon(1), methods=["every answer", "cube"], time_limit=0)
    assert str(made).splitlines()[0] == CUT_SHORT
    assert made.to_dict()["cut_short"] is True
    assert "cut_short" not in compare(*REQUESTS["cells"], pg.Epsilon(1), methods=["every answer"]).to_dict()


POLICY = """
[domain]
a = 3
b = 3
c = 3

[[public]]
cuboid = ["a", "b"]

[[public]]
cuboid = ["a", "c"]

[[public]]
cuboid = ["b", "c"]

[[release]]
cuboid = ["a", "b", "c"]
"""
COMMANDS = {
    "sensitivity": [],
    "explain": [],
    "compare": ["--epsilon", "1"],
    "audit": ["--epsilon", "1", "--samples", "200"],
    "release": ["--epsilon", "1", "--data", "data.csv", "--out", "out", "--seed", "1", "--overwrite"],
    "ask": ["--epsilon", "1", "--data", "data.csv", "--ledger", "ask.db", "--cuboid", "a,b,c"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_first_that_its_time_limit_cut_it_short(command, tmp_path, monkeypatch, capsys):
    from policygraph.cli.app import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "data.csv").write_text("a,b,c\n" + "".join(f"{n % 3},{n % 2},{n % 3}\n" for n in range(20)))
    asked = [command, "policy.toml", *COMMANDS[command]]
    assert run([*asked, "--time-limit", "0"]) == 0, capsys.readouterr().err
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("NOT PRIVATE")]
    assert "cut short" in lines[0].lower()
    if command != "ask":  # the same question is on record by now
        run([*asked, "--time-limit", "0", "--json"])
        assert json.loads(capsys.readouterr().out)["cut_short"] is True
        run([*asked, "--json"])
        assert "cut_short" not in json.loads(capsys.readouterr().out)
