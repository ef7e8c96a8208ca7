"""What asks the solvers stays sound when one of them lies: no bound below the true value, no false verdict."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from ortools.sat.python import cp_model
from scipy import optimize

import policygraph as pg
from policygraph.moves.graver import minimal as graver_minimal
from policygraph.moves.graver.basis import graver_basis
from policygraph.moves.strengths import capped as strengths_capped
from policygraph.moves.strengths.capped import longest_capped
from policygraph.moves.strengths.positive import longest_positive
from policygraph.moves.two_way.forbidden import longest_circuit
from policygraph.moves.values.longest import longest_with_values
from policygraph.sensitivity.verify import neighbours as checking
from policygraph.solver import layers as solver_layers
from policygraph.solver import program as solver
from tests.broken.solvers import LIARS, GarbageRelaxation, infeasible_milp, zero_milp
from tests.oracles.graver import margins

THREE = margins((2, 2, 3), [(0,), (1,), (2,)])
DOUBLE = margins((3, 3, 2), [(0, 1), (1, 2), (0, 2)])
CROSS = {"a": 3, "b": 3}


def told(shape, cuboids, table):
    matrix = margins(shape, cuboids)
    return matrix, (matrix @ np.array(table)).tolist()


def policy_value(**more):
    domain = pg.Domain(CROSS)
    known = [pg.Cuboid("a"), pg.Cuboid("b"), *more.pop("constraints", ())]
    policy = pg.Policy(domain, constraints=known, **more)
    return pg.sensitivity(pg.queries.identity(domain), policy).power


def few_records():
    """Three public margins, which have no closed form beside a cap."""
    domain = pg.Domain({"a": 2, "b": 2, "c": 3})
    policy = pg.Policy(
        domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b"), pg.Cuboid("c")], at_most_records=2
    )
    return pg.sensitivity(pg.queries.identity(domain), policy)


def forbidden_cells():
    """A sparse table of 6 x 6 in which no bound meets the longest cycle, so that the solvers are asked."""
    domain = pg.Domain({"a": 6, "b": 6})
    empty = {0: [4], 1: [0, 1, 3, 5], 2: [4], 3: [0, 2, 3, 5], 4: [1, 2, 3, 4], 5: [0, 3, 5]}
    zeros = pg.StructuralZero([(a, b) for a, row in empty.items() for b in row])
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b"), zeros])
    return pg.sensitivity(pg.queries.identity(domain), policy).power


def loops():
    network = pg.Network(4, loops=True)
    policy = pg.Policy(network, constraints=[pg.Degrees()], strength="positive")
    return pg.sensitivity(pg.queries.identity(network), policy).power


def secret_network():
    network = pg.Network(5)
    graph = pg.secret_edges(network, [0, 0, 0, 1, 1], inside=True)
    policy = pg.Policy(network, graph, constraints=[pg.Degrees()])
    return pg.sensitivity(pg.queries.identity(network), policy).power


def sparse_cycle():
    """Eight vertices on a ring with two chords that make no longer cycle, and a tail of triangles."""
    edges = [(i, (i + 1) % 8) for i in range(8)] + [(0, 4), (8, 0), (8, 9), (9, 0), (9, 2)]
    graph = {v: set() for v in range(10)}
    for u, v in edges:
        graph[u].add(v)
        graph[v].add(u)
    return longest_circuit(graph, 3, len)[1]


CROSS_TOLD = told((2, 2, 2), [(0,), (1,), (2,)], [1, 0, 1, 1, 0, 2, 0, 1])
USERS = {
    "cap": lambda: longest_capped([[1, 1, 1], [0, 1, 2]], 5).upper,
    "cap, three cuboids": lambda: longest_capped(DOUBLE, 6).upper,
    "cap, query": lambda: longest_capped(THREE, 3, np.eye(12, dtype=int)[:5] * 3).upper,
    "cap, capacity": lambda: longest_capped(THREE, 5, capacity=1).upper,
    "positive": lambda: longest_positive(THREE, graver_basis(THREE)).upper,
    "positive, capacity": lambda: longest_positive(THREE, graver_basis(THREE), capacity=2).upper,
    "told": lambda: longest_with_values(*CROSS_TOLD).upper,
    "told, positive": lambda: longest_with_values(*CROSS_TOLD, strength="positive").upper,
    "told, markov": lambda: longest_with_values(*CROSS_TOLD, strength="markov").upper,
    "cycles": sparse_cycle,
    "policy, zeros": lambda: policy_value(constraints=[pg.StructuralZero([(0, 0), (1, 1)])]),
    "policy, cap": lambda: few_records().power,
    "policy, positive": lambda: policy_value(strength="positive"),
    "policy, sparse": forbidden_cells,
    "policy, loops": loops,
    "secret edges": secret_network,
}


def answer(ask):
    """What is answered, or None when it is refused."""
    try:
        return ask()
    except pg.RefusedError:
        return None


@pytest.fixture(autouse=True)
def _solvers_are_asked(monkeypatch):
    """Listings and searches that would come first, and so hide a lie, are left out."""
    monkeypatch.setattr(strengths_capped, "FEW_SUMS", 0)
    monkeypatch.setattr(graver_minimal, "HALF_LIMIT", 0)
    monkeypatch.setattr(checking, "SUBSETS", 0)
    monkeypatch.setattr(solver, "FIRST", 0)


@pytest.fixture(scope="module")
def honest():
    return {name: ask() for name, ask in USERS.items()}


def test_the_true_values(honest):
    names = (
        "cap",
        "positive",
        "policy, cap",
        "policy, positive",
        "policy, sparse",
        "policy, loops",
        "secret edges",
    )
    assert [honest[name] for name in names] == [4, 6, 4, 6, 10, 8, 6]


@pytest.mark.parametrize("ask", [forbidden_cells, loops, secret_network, few_records])
def test_the_solvers_are_reached_through_policies(ask, monkeypatch):
    """A lie that is never told proves nothing."""
    asked = []
    honest_answer = solver_layers.ask_cp_sat
    monkeypatch.setattr(solver_layers, "ask_cp_sat", lambda *given: asked.append(1) or honest_answer(*given))
    ask()
    assert asked


def test_a_bound_that_rests_on_two_solvers_says_so(monkeypatch):
    proved = few_records()
    monkeypatch.setattr(solver, "search", lambda program, effort: ("unknown", None))
    agreed = few_records()
    assert agreed.power == proved.power
    assert "CP-SAT and HiGHS agreeing" not in proved.reason
    assert "CP-SAT and HiGHS agreeing" in agreed.reason


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize("liar", LIARS)
def test_no_bound_falls_below_the_truth_when_cp_sat_lies(name, liar, honest, monkeypatch):
    monkeypatch.setattr(cp_model, "CpSolver", liar)
    found = answer(USERS[name])
    assert found is None or found >= honest[name]


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize("liar", LIARS)
def test_the_second_solver_alone_catches_it(name, liar, honest, monkeypatch):
    monkeypatch.setattr(cp_model, "CpSolver", liar)
    monkeypatch.setattr(solver, "search", lambda program, effort: ("unknown", None))
    found = answer(USERS[name])
    assert found is None or found >= honest[name]


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize("liar", [infeasible_milp, zero_milp])
def test_no_bound_falls_below_the_truth_when_highs_lies(name, liar, honest, monkeypatch):
    monkeypatch.setattr(optimize, "milp", liar)
    monkeypatch.setattr(solver, "search", lambda program, effort: ("unknown", None))
    found = answer(USERS[name])
    assert found is None or found >= honest[name]


@pytest.mark.parametrize("name", USERS)
def test_no_bound_falls_below_the_truth_when_duals_are_garbage(name, honest, monkeypatch):
    monkeypatch.setattr(solver_layers, "Relaxation", GarbageRelaxation)
    found = answer(USERS[name])
    assert found is None or found >= honest[name]


@pytest.mark.parametrize("liar", LIARS)
def test_minimal_moves_are_told_from_others(liar, monkeypatch):
    """Neither verdict is wrong; an open or refused question is none."""
    basis = graver_basis(THREE)
    sums = [a + b for a, b in product(basis[:6], basis[:6]) if np.all(a * b >= 0)]
    monkeypatch.setattr(cp_model, "CpSolver", liar)
    for move in basis[:40]:
        assert answer(lambda move=move: graver_minimal.is_minimal(THREE, move)) in (True, None)
    assert sums
    for move in sums:
        assert answer(lambda move=move: graver_minimal.is_minimal(THREE, move)) in (False, None)


@pytest.mark.parametrize("strength", ["worst-case", "positive"])
@pytest.mark.parametrize("liar", LIARS)
def test_true_certificates_are_not_called_false(liar, strength, monkeypatch):
    domain = pg.Domain(CROSS)
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")], strength=strength)
    proof = pg.sensitivity(pg.queries.identity(domain), policy)
    monkeypatch.setattr(cp_model, "CpSolver", liar)
    assert answer(lambda: proof.verify().ok) in (True, None)


@pytest.mark.parametrize("liar", LIARS)
def test_changes_that_are_no_moves_are_not_called_minimal(liar, monkeypatch):
    domain = pg.Domain({"a": 4, "b": 4})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    one = {0: 1, 1: -1, 4: -1, 5: 1}
    two = {**one, 10: 1, 11: -1, 14: -1, 15: 1}
    monkeypatch.setattr(cp_model, "CpSolver", liar)
    assert answer(lambda: checking._is_minimal(policy, one)) in (True, None)
    assert answer(lambda: checking._is_minimal(policy, two)) in (False, None)


@pytest.mark.parametrize("liar", LIARS)
def test_facts_that_fit_are_not_called_contradictory(liar, monkeypatch):
    monkeypatch.setattr(cp_model, "CpSolver", liar)
    domain = pg.Domain({"a": 2, "b": 2, "c": 2})
    facts = [pg.Cuboid("a", "b", equals=[1, 1, 1, 0]), pg.Cuboid("b", "c", equals=[1, 1, 0, 1])]
    made = answer(lambda: pg.Policy(domain, constraints=facts).system)
    assert made is None or made.has_values
    # more records than 40 bits in one cell
    large = [pg.Cuboid("a", "b", equals=[2**45, 1, 1, 0]), pg.Total(2**45 + 2)]
    assert answer(lambda: pg.Policy(domain, constraints=large).system.has_values) in (True, None)
