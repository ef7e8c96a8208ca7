"""Whole-number programs: answers equal listing, and no solver that lies makes a wrong one."""

from __future__ import annotations

import ast
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model
from scipy import optimize

import policygraph as pg
from policygraph.effort import SECOND, Effort
from policygraph.solver import layers as solver_layers
from policygraph.solver import program as solver
from policygraph.solver.layers import Compiled
from policygraph.solver.program import Program
from policygraph.solver.search import dual_bound
from tests.broken.solvers import LIARS, AlwaysInfeasible, GarbageRelaxation, infeasible_milp, zero_milp
from tests.oracles.programs import Small
from tests.paths import ROOT

PACKAGE = ROOT / "policygraph"
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@st.composite
def general(draw):
    """Any rows and clauses over a small box, empty rows and boxes included."""
    n = draw(st.integers(1, 4))
    lower = draw(st.lists(st.integers(-3, 2), min_size=n, max_size=n))
    upper = [a + draw(st.integers(0, 3)) for a in lower]
    weights = st.dictionaries(st.integers(0, n - 1), st.integers(-5, 5), max_size=n)
    sides = st.one_of(
        st.integers(-8, 8).map(lambda b: (b, b)),
        st.integers(-8, 8).map(lambda b: (None, b)),
        st.integers(-8, 8).map(lambda b: (b, None)),
        st.tuples(st.integers(-8, 8), st.integers(-8, 8)),
    )
    rows = [(terms, *side) for terms, side in draw(st.lists(st.tuples(weights, sides), max_size=4))]
    literal = st.tuples(st.integers(0, n - 1), st.sampled_from(["<=", ">="]), st.integers(-3, 5))
    clauses = draw(st.lists(st.lists(literal, max_size=3), max_size=3))
    return Small(lower, upper, rows, clauses, draw(weights))


@st.composite
def reported(draw):
    """Shapes of the public reports: groups of which at most one is chosen, inside rows with large and equal weights."""
    n = draw(st.integers(4, 9))
    rows = []
    places = st.sets(st.integers(0, n - 1), min_size=2, max_size=n)
    for group in draw(st.lists(places, min_size=1, max_size=3)):
        rows.append((dict.fromkeys(group, 1), draw(st.sampled_from([None, 1])), 1))
        # a row that contains the group, as the faulty presolve looks for
        heavy = {j: draw(st.sampled_from([1, 7, 1000, 1001, 34_567])) for j in group | draw(places)}
        total = sum(heavy.values())
        rows.append(
            (heavy, *draw(st.sampled_from([(None, total // 2), (total // 3, None), (total // 3, total)])))
        )
    costs = {j: draw(st.integers(-2_000, 9_000)) for j in range(n)}
    return Small([0] * n, [1] * n, rows, [], costs)


SHAPES = st.one_of(general(), reported())


def told(ask):
    """What a question is answered, or None when it is refused because the solvers contradict each other."""
    try:
        return ask()
    except pg.RefusedError as refusal:
        if refusal.code != "solver.disagree":
            raise
        return None


class Best(NamedTuple):
    """The largest value found with its point, and a proved bound; ``none`` when it is proved that there is no point."""

    lower: int | None
    upper: int
    point: tuple[int, ...] | None
    none: bool = False


def best_of(program: Program, objective: dict[int, int], effort: Effort | None = None) -> Best:
    """Climb by ``better`` until there is nothing better, then ask for the ``bound``, as the searches do."""
    effort = Effort.of(effort, usual=solver.USUAL)
    point = best = None
    while True:
        found = program.better(objective, None if best is None else best + 1, effort.share(1, 2))
        if found.status == "none":
            return Best(best, -1 if best is None else best, point, none=best is None)
        if found.point is None:
            return Best(best, program.bound(objective, effort, best), point)
        point, best = found.point, sum(w * found.point[j] for j, w in objective.items())


def right(small: Small) -> None:
    """Both questions are answered as by listing, or left open in a sound way, or refused."""
    points = small.points()
    if (answer := told(small.program().find)) is not None:
        assert answer.status == "unknown" or (answer.status == "found") == bool(points)
        assert answer.point is None or answer.point in points
    if (best := told(lambda: best_of(small.program(), small.objective))) is not None:
        assert not (best.none and points)
        assert best.point is None or (best.point in points and small.value(best.point) == best.lower)
        assert all(small.value(x) <= best.upper for x in points)


@given(small=SHAPES)
@settings(max_examples=600, deadline=None, suppress_health_check=QUIET)
def test_answers_are_those_of_listing(small):
    points = small.points()
    answer = small.program().find()
    assert answer.status == ("found" if points else "none")
    assert (answer.point in points) == bool(points)
    assert answer.proof == ("" if points else "search")


@given(small=SHAPES)
@settings(max_examples=200, deadline=None, suppress_health_check=QUIET)
def test_optima_are_those_of_listing(small):
    points = small.points()
    best = best_of(small.program(), small.objective)
    if not points:
        assert best.none
        assert best.point is None
    else:
        assert best.point in points
        assert best.lower == best.upper == max(map(small.value, points)) == small.value(best.point)


@given(small=SHAPES)
@settings(max_examples=100, deadline=None, suppress_health_check=QUIET)
def test_solvers_are_asked_where_the_search_is_too_long(small, monkeypatch):
    monkeypatch.setattr(solver, "search", lambda program, effort: ("unknown", None))
    points = small.points()
    answer = small.program().find()
    assert answer.status == ("found" if points else "none")
    assert answer.proof in ([""] if points else ["two solvers", "search"])  # a row alone can show it


@pytest.mark.parametrize("liar", LIARS)
@given(small=SHAPES)
@settings(max_examples=50, deadline=None, suppress_health_check=QUIET)
def test_a_lying_cp_sat_makes_no_wrong_answer(liar, small, monkeypatch):
    monkeypatch.setattr(cp_model, "CpSolver", liar)
    right(small)
    monkeypatch.setattr(solver, "FIRST", 0)
    right(small)


@pytest.mark.parametrize("liar", LIARS)
@given(small=SHAPES)
@settings(max_examples=40, deadline=None, suppress_health_check=QUIET)
def test_a_lying_cp_sat_is_caught_by_the_second_solver_alone(liar, small, monkeypatch):
    monkeypatch.setattr(solver, "search", lambda program, effort: ("unknown", None))
    monkeypatch.setattr(cp_model, "CpSolver", liar)
    right(small)


@pytest.mark.parametrize("liar", [infeasible_milp, zero_milp])
@given(small=SHAPES)
@settings(max_examples=40, deadline=None, suppress_health_check=QUIET)
def test_a_lying_highs_is_caught_by_cp_sat_alone(liar, small, monkeypatch):
    monkeypatch.setattr(solver, "search", lambda program, effort: ("unknown", None))
    monkeypatch.setattr(optimize, "milp", liar)
    right(small)


@given(small=SHAPES)
@settings(max_examples=150, deadline=None, suppress_health_check=QUIET)
def test_garbage_from_the_linear_programs_makes_no_wrong_answer(small, monkeypatch):
    monkeypatch.setattr(solver_layers, "Relaxation", GarbageRelaxation)
    points = small.points()
    answer = small.program().find()
    assert answer.status == ("found" if points else "none")
    right(small)


@given(
    small=SHAPES,
    duals=st.lists(st.integers(-(10**6), 10**6), min_size=8, max_size=8),
    scale=st.integers(1, 99),
)
@settings(max_examples=300, deadline=None, suppress_health_check=QUIET)
def test_any_duals_make_a_bound_that_holds(small, duals, scale):
    program = Compiled(small.lower, small.upper, small.rows, [tuple(c) for c in small.clauses])
    bound = dual_bound(program, program.lower, program.upper, duals, small.objective, scale)
    assert all(small.value(x) <= bound for x in small.points())


def test_a_lie_is_told_with_its_code(monkeypatch):
    monkeypatch.setattr(cp_model, "CpSolver", AlwaysInfeasible)
    monkeypatch.setattr(solver, "FIRST", 0)
    with pytest.raises(pg.RefusedError, match="contradict each other") as refused:
        Program([0, 0], [3, 3]).find()
    assert refused.value.code == "solver.disagree"


def test_large_numbers_are_exact():
    """Sums beyond 64 bits, where floats cannot tell neighbours apart."""
    huge = 10**25
    program = Program([0, 0], [2, 2])
    program.add({0: huge, 1: huge + 1}, 2 * huge + 1, 2 * huge + 1)
    assert program.find().point == (1, 1)
    program.add({0: 1}, 2, None)
    assert program.find().status == "none"


def test_no_upper_bound_leaves_none_open():
    endless = Program([0, 0], [None, None])
    endless.add({0: 2, 1: -2}, 1, 1)
    assert endless.find().status == "none"  # one row alone shows it
    endless = Program([0, 0], [None, None])
    endless.add({0: 1, 1: -3}, 1, 1)
    endless.add({0: 1, 1: -3}, 2, 2)
    assert endless.find().status == "unknown"
    assert endless.bound({0: 1}) is None  # no number is told as a bound where nothing limits the sum
    found = Program([0, 0], [None, None])
    found.add({0: 1, 1: 1}, 3, 3)
    assert found.find().status == "found"


def knapsack(n: int) -> Program:
    """Even weights, an odd total and one small odd piece that is not allowed: no dual shows it, only branching."""
    program = Program([0] * n, [1] * n)
    program.add({j: 2 * (j % 5 + 3) for j in range(n - 1)} | {n - 1: 3}, 2 * n + 1, 2 * n + 1)
    program.require([(n - 1, "<=", 0)])
    return program


def test_little_work_leaves_the_question_open_and_bounds_hold():
    objective = {j: j % 3 + 1 for j in range(30)}
    for work in (0, 1, 100, 1_000, 10_000):
        program = Program([0] * 30, [2] * 30)
        program.add({j: j % 7 + 2 for j in range(30)}, None, 40)
        program.add({j: j % 4 + 1 for j in range(30)}, 11, 17)
        best = best_of(program, objective, Effort(work))
        full = best_of(program, objective)
        assert full.lower == full.upper
        assert best.upper >= full.upper
        assert best.lower is None or best.lower <= full.lower
    assert Program([0], [1]).find(Effort(0)).status == "unknown"


def test_the_same_work_gives_the_same_answer():
    spent = []
    for _ in range(2):
        effort = Effort(SECOND)
        answer = knapsack(14).find(effort)
        spent.append((answer, effort.spent))
    assert spent[0] == spent[1]
    assert spent[0][0].status == "none"


ALLOWED = {
    "solver/layers.py": "the one place that asks",
    "mechanisms/cube/cover.py": "chooses what to measure; the noise is fitted to the choice",
    "attacks/games.py": "any weights bound a discriminant, and the bound is worked out exactly from them",
}
"""Files outside of ``estimation`` that call CP-SAT, HiGHS or GLOP."""
FOREIGN = {"cp_model", "milp", "linprog", "pywraplp", "linear_solver", "model_builder"}


def test_no_other_file_asks_a_solver():
    asking = set()
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith("estimation/"):
            continue  # sees noisy numbers only
        text = path.read_text(encoding="utf-8")
        if not any(word in text for word in FOREIGN):
            continue
        for node in ast.walk(ast.parse(text)):
            names = [a.name for a in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            if FOREIGN & {part for each in names for part in each.split(".")}:
                asking.add(name)
    assert asking == set(ALLOWED)
