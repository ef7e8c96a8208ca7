"""The same request gives the same certificate on every machine: work is counted, and no clock is looked at.

Certificates are computed while every clock of the process runs wild, in processes that hash strings differently, and with
every effort from none on; against literal oracles the bracket always holds.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import policygraph as pg
from policygraph.effort import SECOND, Effort
from policygraph.moves.blowfish.longest import longest_blowfish
from policygraph.moves.graver.basis import graver_basis
from policygraph.moves.graver.longest import longest_move
from policygraph.moves.strengths.capped import longest_capped
from policygraph.moves.strengths.markov import longest_markov
from policygraph.moves.strengths.positive import longest_positive
from policygraph.moves.values.longest import longest_with_values
from policygraph.sensitivity.rungs import determined
from tests.oracles import blowfish as blowfish_oracle
from tests.oracles import graver as graver_oracle
from tests.paths import ROOT, unrecorded

Request = tuple[pg.Query, pg.Policy]


def table(
    shape: tuple[int, ...],
    facts: list[str],
    *,
    asks: list[str] | None = None,
    graph: str | None = None,
    zeros: list[int] | None = None,
    values: int | None = None,
    **weaker: object,
) -> Callable[[], Request]:
    """A table of attributes a, b, ... with public cuboids, perhaps a graph, structural zeros and published values."""

    def make() -> Request:
        domain = pg.Domain({"abcdefgh"[at]: size for at, size in enumerate(shape)})
        known: list[pg.Constraint] = []
        cells = None if values is None else np.random.default_rng(values).poisson(0.7, shape)
        for names in facts:
            if cells is None:
                known.append(pg.Cuboid(*names))
            else:
                away = tuple(at for at in range(len(shape)) if "abcdefgh"[at] not in names)
                known.append(pg.Cuboid(*names, equals=cells.sum(axis=away).ravel().tolist()))
        if zeros:
            known.append(pg.StructuralZero([domain.cell(at) for at in zeros]))
        joined = None if graph is None else getattr(pg.PolicyGraph, graph)(domain)
        query = (
            pg.queries.identity(domain)
            if asks is None
            else pg.queries.cuboids(domain, [list(n) for n in asks])
        )
        return query, pg.Policy(domain, joined, constraints=known, **weaker)  # type: ignore[arg-type]

    return make


def network(
    nodes: int, directed: bool = False, mixing: bool = False, **weaker: object
) -> Callable[[], Request]:
    def make() -> Request:
        over = pg.Network(nodes, directed=directed)
        facts = [pg.Degrees("all", side=side) for side in (("out", "in") if directed else ("both",))]
        query = (
            pg.queries.mixing(over, [v % 3 for v in range(nodes)]) if mixing else pg.queries.identity(over)
        )
        return query, pg.Policy(over, constraints=facts, **weaker)  # type: ignore[arg-type]

    return make


REQUESTS: dict[str, Callable[[], Request]] = {
    "edges of a full graph": table((3, 4), [], graph="full", asks=["a", "ab"]),
    "edges of an attribute graph": table((3, 4), [], graph="attribute", asks=["a", "b"]),
    "one margin": table((3, 4), ["a"]),
    "two margins": table((4, 5), ["a", "b"]),
    "two margins, marginals asked": table((4, 5), ["a", "b"], asks=["a", "ab"]),
    "two margins with a zero": table((4, 4), ["a", "b"], zeros=[0]),
    "two margins with many zeros": table((5, 5), ["a", "b"], zeros=[0, 6, 7, 12, 18, 19, 24]),
    "three margins": table((3, 3, 3), ["ab", "bc", "ac"]),
    "three single margins": table((2, 2, 3), ["a", "b", "c"]),
    "three single margins, pairs asked": table((2, 3, 3), ["a", "b", "c"], asks=["ab", "bc"]),
    "four binary attributes": table((2, 2, 2, 2), ["ab", "cd", "ac"]),
    "unfinished": table((3, 3, 4), ["a", "b", "c"]),
    "a cap": table((3, 3, 3), ["ab", "bc", "ac"], at_most_records=4),
    "a larger cap": table((4, 4, 4), ["ab", "bc", "ac"], at_most_records=7),
    "a cap and a query": table((3, 3, 3), ["a", "b", "c"], asks=["ab"], at_most_records=3),
    "positive": table((3, 3), ["a", "b"], strength="positive"),
    "positive with a zero": table((3, 3), ["a", "b"], zeros=[4], strength="positive"),
    "positive of three margins": table((2, 3, 3), ["ab", "bc", "ac"], strength="positive"),
    "positive under a cap": table((2, 2, 3), ["a", "b", "c"], strength="positive", at_most_records=2),
    "Markov": table((4, 4, 3), ["a", "b", "c"], strength="markov"),
    "Markov, pairs asked": table((3, 3, 3), ["a", "b", "c"], asks=["ab", "bc"], strength="markov"),
    "Markov with a zero": table((5, 4, 3), ["ab", "bc", "c"], zeros=[7], strength="markov"),
    "Markov under a cap": table((3, 3, 3), ["a", "bc"], strength="markov", at_most_records=1),
    "published values": table((3, 3), ["a", "b"], values=1),
    "published values of three margins": table((2, 3, 3), ["ab", "bc", "ac"], values=2),
    "published values, positive": table((3, 3), ["a", "b"], values=3, strength="positive"),
    "published values, Markov": table((4, 4), ["a", "b"], values=4, strength="markov"),
    "a graph and a margin": table((3, 4), ["a"], graph="attribute"),
    "a graph and two margins": table((2, 3), ["a", "b"], graph="attribute"),
    "a full graph and two margins": table((2, 3), ["a", "b"], graph="full"),
    "a grid and three margins": table((2, 2, 2), ["a", "b", "c"], graph="grid"),
    "a graph, margins and a query": table((2, 3), ["a", "b"], graph="attribute", asks=["a", "ab"]),
    "a graph, margins and a cap": table((2, 5, 3), ["a", "b"], graph="attribute", at_most_records=2),
    "a large table and a margin": table((30, 30), ["a"], graph="attribute"),
    "degrees": network(6),
    "degrees, Markov": network(9, strength="markov"),
    "degrees under a cap": network(8, at_most_records=3),
    "degrees and groups": network(6, mixing=True),
    "directed degrees": network(4, directed=True),
    "directed degrees and groups": network(4, directed=True, mixing=True, at_most_records=2),
}
EFFORT = 300_000
"""Units for each of these: some end with a bound, which must be the same bound everywhere."""


def certificate(make: Callable[[], Request], norm: str) -> str:
    query, policy = make()
    try:
        return pg.sensitivity(query, policy, norm=norm, effort=EFFORT).to_json()  # type: ignore[arg-type]
    except pg.RefusedError as refusal:
        return f"{refusal.code}: {refusal}"


def certificates() -> Iterator[tuple[str, str]]:
    for (name, make), norm in product(REQUESTS.items(), ("l1", "l2")):
        yield f"{name}, {norm}", certificate(make, norm)


@pytest.fixture(scope="module")
def plain() -> dict[str, str]:
    return dict(certificates())


STANDS, RACES = 1e-9, 1e4


def certificates_under_a_wild_clock() -> dict[str, str]:
    """All certificates, while every clock of this process stands still for one norm of a request and races for the other."""
    now, step, factor, made = 1e9, 0, STANDS, {}

    def tick() -> float:
        nonlocal now, step
        step += 1
        now += factor * (1 + 7919 * step % 1000)
        return now

    with pytest.MonkeyPatch.context() as patched:
        for name in ("monotonic", "perf_counter", "time", "process_time"):
            patched.setattr(time, name, tick)
            patched.setattr(time, f"{name}_ns", lambda: int(tick() * 10**9))
        found = certificates()
        for number in range(2 * len(REQUESTS)):
            # Of two requests in a row, the first one has a racing clock for l1, the second one for l2.
            factor = RACES if (number + number // 2) % 2 == 0 else STANDS
            name, text = next(found)
            made[name] = text
    assert len(made) == 2 * len(REQUESTS)
    return made


@pytest.mark.slow
def test_certificates_depend_neither_on_the_clock_nor_on_the_hashing_of_strings(
    plain: dict[str, str],
) -> None:
    """In a process of its own, with other threads, whose lines ``plain`` has run."""
    program = (
        "import json; from tests.sensitivity.test_effort_engine import certificates_under_a_wild_clock as made; "
        "print(json.dumps(made()))"
    )
    environment = {**unrecorded(), "PYTHONHASHSEED": "77", "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT, env=environment
    )
    found = json.loads(done.stdout)
    assert found.keys() == plain.keys()
    assert {name for name in plain if found[name] != plain[name]} == set()


def test_some_of_them_end_with_a_bound_that_says_so(plain: dict[str, str]) -> None:
    bounded = [
        read
        for read in map(json.loads, (t for t in plain.values() if t[0] == "{"))
        if read["kind"] == "upper"
    ]
    assert len(bounded) >= 3
    told = [read for read in bounded if f"the effort of {EFFORT:,} units" in read["reason"] + read["method"]]
    assert len(told) >= 3
    assert not any("cut_short" in read for read in bounded)


# The caller's own clock ---------------------------------------------------------------------------------------------


def test_a_result_that_the_clock_cut_short_says_so_first() -> None:
    query, policy = REQUESTS["unfinished"]()
    found = pg.sensitivity(query, policy, time_limit=0)
    assert not found.exact
    assert found.cut_short
    assert "cut short by the time limit, another run may prove less or more" in str(found).splitlines()[0]
    assert found.to_dict()["cut_short"] is True
    again = pg.Sensitivity.from_json(found.to_json())
    assert again.cut_short
    assert str(again) == str(found)
    for wrong in ("yes", 2, None):
        with pytest.raises(pg.InputError):
            pg.Sensitivity.from_dict({**found.to_dict(), "cut_short": wrong})


def test_a_result_that_no_clock_cut_short_does_not() -> None:
    query, policy = REQUESTS["two margins"]()
    exact = pg.sensitivity(query, policy, time_limit=0)
    assert exact.exact
    assert not exact.cut_short
    query, policy = REQUESTS["unfinished"]()
    spent = pg.sensitivity(query, policy, effort=1_000)
    assert not spent.exact
    assert not spent.cut_short
    assert "cut short" not in str(spent)
    assert "cut_short" not in spent.to_dict()
    assert "the effort of 1,000 units" in str(spent)


# Nothing else looks at the clock ------------------------------------------------------------------------------------

CLOCKS = {"time", "timeit", "sched"}
ALLOWED = {
    "effort.py": "the caller's clock",
    "mechanisms/cube/cover.py": "hands the caller's clock to a solver",
    "compare.py": "shows how long the methods took",
    "cli/progress.py": "shows how long a stage has taken",
}
"""Modules that may name a clock, and what for; none of them decides on a sensitivity."""


def _modules() -> list[Path]:
    package = ROOT / "policygraph"
    return [
        path for path in sorted(package.rglob("*.py")) if path.relative_to(package).as_posix() not in ALLOWED
    ]


@pytest.mark.parametrize("path", _modules(), ids=lambda p: p.relative_to(ROOT / "policygraph").as_posix())
def test_no_other_module_looks_at_a_clock(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    engine = path.relative_to(ROOT / "policygraph").parts[0] in ("moves", "sensitivity")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            assert not CLOCKS & {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in CLOCKS
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("max_time_in_seconds", "perf_counter", "monotonic")
        if engine and isinstance(node, ast.arg):
            assert node.arg not in ("deadline", "until", "seconds")
        if engine and isinstance(node, ast.keyword):
            assert node.arg not in ("deadline", "seconds", "max_time_in_seconds")


# Work that is done once ---------------------------------------------------------------------------------------------


def test_the_facts_of_a_policy_are_reduced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _, policy = table((4, 3, 3), ["ab", "bc"], zeros=[5], strength="markov")()
    calls: list[int] = []
    real = determined._echelon

    def counted(matrix: determined.Ints) -> determined.Echelon:
        calls.append(1)
        return real(matrix)

    monkeypatch.setattr(determined, "_echelon", counted)
    for names in (["a"], [], ["b"], ["a", "b"], ["a", "b", "c"]):
        pg.sensitivity(pg.queries.cuboids(policy.domain, [names, ["a", "c"]]), policy)
    assert len(calls) == 1


def test_weaker_neighbours_do_not_wait_for_the_longest_cycle() -> None:
    """With structural zeros the longest cycle is a hard problem, of which Markov neighbours need only a bound."""
    zeros = np.flatnonzero(np.random.default_rng(3).random(900) < 0.9).tolist()
    effort = Effort()
    query, policy = table((30, 30), ["a", "b"], zeros=zeros, strength="markov")()
    assert pg.sensitivity(query, policy, effort=effort).exact
    assert effort.spent <= 3 * SECOND


# Small efforts ------------------------------------------------------------------------------------------------------

EFFORTS = [0, 1, 10, 100, 1_000, 10_000, 100_000]
SLACK = 60_000
"""A step that is under way is finished: the largest such steps are one level of a listing and one call of a solver."""


@cache
def _best(name: str) -> pg.Sensitivity | None:
    try:
        return pg.sensitivity(*REQUESTS[name](), effort=SECOND)
    except pg.RefusedError:
        return None


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("work", [0, 100, 10_000])
def test_a_small_effort_is_kept_and_its_bound_holds(name: str, work: int) -> None:
    query, policy = REQUESTS[name]()
    best = _best(name)
    effort = Effort(work)
    try:
        found = pg.sensitivity(query, policy, effort=effort)
    except pg.RefusedError:
        return
    finally:
        assert effort.spent <= 4 * work + SLACK
    assert found.exact or not effort.done or f"the effort of {work:,} units" in found.reason + found.method
    if best is not None:
        assert found.lower_power <= best.power
        assert found.power >= best.lower_power
    if policy.domain.size <= 100:
        assert not any(check.passed is False for check in found.verify().checks)


MATRICES = {
    "3x3": graver_oracle.margins((3, 3), [(0,), (1,)]),
    "2x2x2": graver_oracle.margins((2, 2, 2), [(0,), (1,), (2,)]),
    "2x2x3": graver_oracle.margins((2, 2, 3), [(0, 1), (1, 2), (0, 2)]),
    "a row": np.array([[1, 2, 3, 5]]),
    "two rows": np.array([[1, 1, 1, 1], [0, 1, 3, 4]]),
    "degrees": np.array([[1, 1, 1, 0, 0, 0], [1, 0, 0, 1, 1, 0], [0, 1, 0, 1, 0, 1], [0, 0, 1, 0, 1, 1]]),
}


def _norm(move: np.ndarray, query: np.ndarray | None) -> int:
    return int(np.abs(move if query is None else query @ move).sum())


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("asks", [False, True])
def test_every_effort_brackets_the_truth(name: str, asks: bool) -> None:
    matrix = MATRICES[name]
    cells = matrix.shape[1]
    query = np.random.default_rng(5).integers(-2, 3, (3, cells)) if asks else None
    basis = graver_basis(matrix)
    sides = np.maximum(np.maximum(basis, 0).sum(axis=1), np.maximum(-basis, 0).sum(axis=1))
    single = (np.abs(basis).max(axis=1) <= 1) & (np.count_nonzero(basis, axis=1) <= 4)

    def longest(moves: np.ndarray) -> int:
        return max((_norm(move, query) for move in moves), default=0)

    truth = {"all": longest(basis), "cap": longest(basis[sides <= 2]), "markov": longest(basis[single])}
    positive = longest_positive(matrix, basis, query, basis=basis)
    assert positive.exact
    for work in EFFORTS:
        whole = longest_move(matrix, query=query, effort=Effort(work))
        capped = longest_capped(matrix, 2, query, effort=Effort(work))
        markov = longest_markov(matrix, query, effort=Effort(work))
        some = longest_positive(matrix, basis, query, basis=basis, effort=Effort(work))
        for bracket, value in (
            (whole, truth["all"]),
            (capped, truth["cap"]),
            (markov, truth["markov"]),
            (some, positive.upper),
        ):
            assert bracket.lower <= value
            assert bracket.upper is None or value <= bracket.upper


@pytest.mark.parametrize("seed", range(4))
def test_every_effort_brackets_the_truth_with_values(seed: int) -> None:
    matrix = graver_oracle.margins((2, 3), [(0,), (1,)])
    values = (matrix @ np.random.default_rng(seed).integers(0, 3, 6)).tolist()
    exact = longest_with_values(matrix, values)
    assert exact.exact
    for work in EFFORTS:
        found = longest_with_values(matrix, values, effort=Effort(work))
        assert found.lower <= exact.upper <= found.upper


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("facts", [[[1, 1, 0, 0]], [[1, 1, 0, 0], [1, 0, 1, 0]], [[1, 2, 0, 0]]])
def test_every_effort_brackets_the_truth_with_a_graph(facts: list[list[int]], norm: str) -> None:
    line = [[abs(i - j) == 1 for j in range(4)] for i in range(4)]
    # data sets of few records attain no more than those of any size, and no effort proves less than they attain
    least = blowfish_oracle.sensitivity(facts, line, 3, norm=norm)
    exact = longest_blowfish(facts, line, norm=norm)
    assert exact.exact
    for work in EFFORTS:
        found = longest_blowfish(facts, line, norm=norm, effort=Effort(work))
        assert found.upper is not None
        assert found.lower <= exact.lower
        assert max(least, exact.lower) <= found.upper
