"""The foreign solvers behind :mod:`policygraph.solver.program`, one function each: CP-SAT, HiGHS and the linear programs of GLOP.

What they say is never believed here or elsewhere: points are checked by whole numbers, duals become bounds that hold for
any duals, and "none" is an opinion. A test replaces these functions by liars.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from policygraph.effort import Effort

if TYPE_CHECKING:
    from policygraph.solver.search import Compiled

__all__ = ["Opinion", "Relaxation", "ask_circuit", "ask_cp_sat", "ask_highs"]

Floats = npt.NDArray[np.float64]
CP_SAT_ROOM = 2**53
"""A sum of a row may come so far; CP-SAT refuses models beyond its 64 bits, and floats are exact up to here."""
HIGHS_ROOM = 2**24
"""The same for HiGHS, whose rows hold up to a tolerance of 1e-6: a whole number more or less is far above it."""
WIDE = 2**16
"""Without presolve CP-SAT narrows wide ranges step by step, which its deterministic time does not count."""
LARGE = 25_000
"""Entries of a program for each of which a second of CP-SAT's deterministic time takes one more second, up to four."""
ITERATIONS = 50_000
"""Steps of the simplex method in one linear program; a program that needs more tells nothing."""


class Opinion(NamedTuple):
    """What a solver says: a point, that there is none, or nothing."""

    status: Literal["found", "none", "unknown"]
    point: tuple[int, ...] | None = None


def ask_cp_sat(
    program: Compiled,
    clauses: Sequence[Sequence[tuple[int, str, int]]],
    objective: Sequence[tuple[int, int]] | None,
    effort: Effort,
) -> Opinion:
    """Ask CP-SAT, without presolve, one worker, a fixed seed and a limit in its deterministic time.

    Parameters
    ----------
    program
        Rows and bounds.
    clauses
        Lists of bounds of which one must hold.
    objective
        Pairs of variable and weight to be maximised, or None for any point.
    effort
        The work that is allowed; what was done is counted.
    """
    if program.reach >= CP_SAT_ROOM or effort.done:
        return Opinion("unknown")
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x = [
        model.new_int_var(low, high, "") for low, high in zip(program.lower.tolist(), program.upper.tolist())
    ]
    for cells, weights, low, high in program.rows():
        total = cp_model.LinearExpr.weighted_sum([x[j] for j in cells], weights)
        if low == high:
            model.add(total == low)
        else:
            if low is not None:
                model.add(total >= low)
            if high is not None:
                model.add(total <= high)
    for clause in clauses:
        literals = []
        for j, side, bound in clause:
            literal = model.new_bool_var("")
            model.add(x[j] <= bound if side == "<=" else x[j] >= bound).only_enforce_if(literal)
            literals.append(literal)
        model.add_bool_or(literals)
    if objective is not None:
        model.maximize(
            cp_model.LinearExpr.weighted_sum([x[j] for j, _ in objective], [w for _, w in objective])
        )
    solver = careful(cp_model.CpSolver())
    wide = int((program.upper - program.lower).max(initial=0)) > WIDE
    # with presolve only points are of use, and "none" is no opinion
    solver.parameters.cp_model_presolve = wide
    effort.spend(1_000 + program.entries)
    status = effort.solve(solver, model, rate=1 + min(3, program.entries // LARGE))
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Opinion("found", tuple(int(solver.value(v)) for v in x))
    return Opinion("none" if status == cp_model.INFEASIBLE and not wide else "unknown")


def careful(solver: Any) -> Any:
    """Give CP-SAT the settings that every call uses; ``Effort.solve`` adds one worker and the limit."""
    solver.parameters.catch_sigint_signal = False  # a search that Ctrl-C stopped proves nothing
    # presolve is where the public reports of wrong "infeasible" and "optimal" begin (google/or-tools 5274, 5293)
    solver.parameters.cp_model_presolve = False
    solver.parameters.symmetry_level = 0
    solver.parameters.random_seed = 1
    return solver


def ask_highs(
    program: Compiled, clauses: Sequence[Sequence[tuple[int, str, int]]], effort: Effort
) -> Opinion:
    """Ask HiGHS for a point of the same program, clauses written as rows with 0/1 variables."""
    if program.reach >= HIGHS_ROOM or effort.done:
        return Opinion("unknown")
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    lower, upper = program.lower.tolist(), program.upper.tolist()
    rows: list[tuple[list[int], list[int], float, float]] = [
        (cells, weights, -np.inf if low is None else low, np.inf if high is None else high)
        for cells, weights, low, high in program.rows()
    ]
    for clause in clauses:
        chosen = []
        for j, side, bound in clause:
            z = len(lower)
            lower.append(0)
            upper.append(1)
            chosen.append(z)
            if side == "<=":
                rows.append(([j, z], [1, max(0, upper[j] - bound)], -np.inf, max(upper[j], bound)))
            else:
                rows.append(([j, z], [1, -max(0, bound - lower[j])], min(lower[j], bound), np.inf))
        rows.append((chosen, [1] * len(chosen), 1, np.inf))
    n = len(lower)
    limits = []
    if rows:
        starts = np.cumsum([0] + [len(cells) for cells, _, _, _ in rows])
        matrix = csr_array(
            (
                np.array([w for _, weights, _, _ in rows for w in weights], dtype=float),
                np.array([j for cells, _, _, _ in rows for j in cells]),
                starts,
            ),
            shape=(len(rows), n),
        )
        limits.append(LinearConstraint(matrix, [r[2] for r in rows], [r[3] for r in rows]))
    # HiGHS counts no work of its own that it tells, so a node is reckoned by the size of the program
    node = 1_000 + program.entries
    left = effort.left
    nodes = 10_000_000 if left is None else max(1, left // node)
    options: Any = {"presolve": False, "node_limit": nodes}
    if (seconds := effort.seconds) is not None:
        options["time_limit"] = seconds
    done: Any = milp(
        np.zeros(n),
        integrality=np.ones(n, dtype=np.int64),
        bounds=Bounds(lower, upper),
        constraints=limits,
        options=options,
    )
    effort.spend(node * (1 + int(getattr(done, "mip_node_count", 0) or 0)))
    if done.status == 2:
        return Opinion("none")
    if done.x is None:
        return Opinion("unknown")
    return Opinion("found", tuple(round(value) for value in done.x[: program.size]))


class Relaxation:
    """Linear programs over changing bounds, solved by GLOP from the last solution on.

    The rows may be broken at a cost of one for each unit, so that every box has a solution; where the cost is positive,
    the duals show why the box has no point.
    """

    def __init__(self, program: Compiled, objective: Sequence[tuple[int, int]] | None = None) -> None:
        from ortools.linear_solver import pywraplp

        self._solver = pywraplp.Solver("", pywraplp.Solver.GLOP_LINEAR_PROGRAMMING)
        self._solver.SetSolverSpecificParametersAsString(f"max_number_of_iterations: {ITERATIONS}")
        self._good = (pywraplp.Solver.OPTIMAL,)
        endless = self._solver.infinity()
        self.lower, self.upper = program.lower.copy(), program.upper.copy()
        self._x = [
            self._solver.NumVar(float(a), float(b), "")
            for a, b in zip(self.lower.tolist(), self.upper.tolist())
        ]
        cost = self._solver.Objective()
        cost.SetMinimization()
        self._rows = []
        for cells, weights, low, high in program.rows():
            row = self._solver.Constraint(
                -endless if low is None else float(low), endless if high is None else float(high)
            )
            for j, w in zip(cells, weights):
                row.SetCoefficient(self._x[j], float(w))
            if objective is None:
                for side, bound in ((1.0, low), (-1.0, high)):
                    if bound is not None:
                        slack = self._solver.NumVar(0.0, endless, "")
                        row.SetCoefficient(slack, side)
                        cost.SetCoefficient(slack, 1.0)
            self._rows.append(row)
        for j, w in objective or ():
            cost.SetCoefficient(self._x[j], -float(w))

    def solve(self, lower: Any, upper: Any) -> tuple[float, Floats, Floats, int] | None:
        """Cost, point, duals and number of iterations in a box; None when GLOP gives up."""
        for j in np.flatnonzero((lower != self.lower) | (upper != self.upper)).tolist():
            self._x[j].SetBounds(float(lower[j]), float(upper[j]))
        self.lower, self.upper = lower.copy(), upper.copy()
        if self._solver.Solve() not in self._good:
            return None
        point = np.array([v.solution_value() for v in self._x])
        duals = np.array([r.dual_value() for r in self._rows])
        return self._solver.Objective().Value(), point, duals, int(self._solver.iterations())


def ask_circuit(graph: Mapping[int, Collection[int]], least: int, most: int, effort: Effort) -> list[int]:
    """Ask CP-SAT for a long cycle of an undirected graph; a list of vertices that is yet to be checked, or an empty one."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    index = {vertex: i for i, vertex in enumerate(graph)}
    arcs = {(u, v): model.new_bool_var("") for u, near in graph.items() for v in sorted(near)}
    for (u, v), arc in arcs.items():
        if u < v:
            model.add_at_most_one(arc, arcs[v, u])
    skip = [(i, i, model.new_bool_var("")) for i in range(len(graph))]
    model.add_circuit([(index[u], index[v], arc) for (u, v), arc in arcs.items()] + skip)
    length = sum(arcs.values())
    model.add(length >= least)
    model.add(length <= most)
    model.maximize(length)
    solver = careful(cp_model.CpSolver())
    effort.spend(10 * len(arcs))
    status = effort.solve(solver, model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return []
    after = {u: v for (u, v), arc in arcs.items() if solver.boolean_value(arc)}
    cycle = [min(after, default=0)]
    while len(cycle) <= len(graph) and (following := after.get(cycle[-1])) not in (None, cycle[0]):
        cycle.append(following)
    return cycle
