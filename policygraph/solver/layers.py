"""A program as arrays, and the solvers of others that are asked about it, one function each: CP-SAT, HiGHS and the linear programs of GLOP.

What they say is never believed here or elsewhere: points are checked by whole numbers, duals become bounds that hold for
any duals, and "none" is an opinion. A test replaces these functions by liars.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import gcd, lcm
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from policygraph.effort import Effort

__all__ = ["Compiled", "Literals", "Opinion", "Relaxation", "ask_circuit", "ask_cp_sat", "ask_highs"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Literals = tuple[tuple[int, Literal["<=", ">="], int], ...]
ROOM = 2**61
"""Sums that stay below it are taken in 64 bits, others by Python integers."""
PASSES = 30
"""Rounds of propagation in one box; fewer tighten less and are as sound."""
WIDE_CLAUSE = 2**20
"""A clause becomes a row of the linear program while its weights stay below."""
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


class Compiled:
    """Rows ``low <= sum of a x <= high`` over a finite box, as arrays. Built once for each question.

    Attributes
    ----------
    lower, upper
        The box.
    possible
        False when a row alone shows that there is no point.
    reach
        A bound on the absolute value of every partial sum of a row.
    """

    def __init__(
        self,
        lower: Sequence[int],
        upper: Sequence[int],
        rows: Sequence[tuple[dict[int, int], int | None, int | None]],
        clauses: Sequence[Literals],
    ) -> None:
        self.size = len(lower)
        self.possible = all(a <= b for a, b in zip(lower, upper))
        self.clauses = list(clauses)
        kept: list[tuple[list[int], list[int], int | None, int | None]] = []
        widest = [max(abs(a), abs(b)) for a, b in zip(lower, upper)]
        self.reach = max(widest, default=0)
        for terms, low, high in [*rows, *self._relaxed(lower, upper, clauses)]:
            used = {j: a for j, a in terms.items() if a}
            common = gcd(*used.values()) if used else 1
            low = None if low is None else -(-low // common)
            high = None if high is None else high // common
            if low is not None and high is not None and low > high:
                self.possible = False
            if not used:
                self.possible = self.possible and (low is None or low <= 0) and (high is None or high >= 0)
                continue
            weights = [a // common for a in used.values()]
            kept.append((list(used), weights, low, high))
            sums = sum(abs(a) * widest[j] for j, a in zip(used, weights))
            self.reach = max(self.reach, sums + abs(low or 0) + abs(high or 0))
        self._kept = kept
        kind: Any = np.int64 if self.reach < ROOM else object
        self.lower, self.upper = np.array(lower, dtype=kind), np.array(upper, dtype=kind)
        self.entries = sum(len(cells) for cells, _, _, _ in kept)
        self._index(kind)

    @staticmethod
    def _relaxed(
        lower: Sequence[int], upper: Sequence[int], clauses: Sequence[Literals]
    ) -> Iterator[tuple[dict[int, int], int | None, int | None]]:
        """A row that each clause implies: a literal that holds contributes 1 or more to the sum, others 0 or more."""
        for clause in clauses:
            spans = [upper[j] - bound if side == "<=" else bound - lower[j] for j, side, bound in clause]
            if any(span <= 0 for span in spans) or len({j for j, _, _ in clause}) < len(clause):
                continue
            if (whole := lcm(*spans)) > WIDE_CLAUSE or not clause:
                continue
            terms, least = {}, whole
            for (j, side, _), span in zip(clause, spans):
                step = whole // span
                terms[j] = -step if side == "<=" else step
                least -= step * upper[j] if side == "<=" else -step * lower[j]
            yield terms, least, None

    def _index(self, kind: Any) -> None:
        self.cells = np.array([j for cells, _, _, _ in self._kept for j in cells], dtype=np.int64)
        self.weights = np.array([a for _, weights, _, _ in self._kept for a in weights], dtype=kind)
        lengths = np.array([len(cells) for cells, _, _, _ in self._kept], dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
        self.row = np.repeat(np.arange(len(self._kept)), lengths)
        self.positive = self.weights > 0
        self.sizes = np.abs(self.weights)
        self.has_low = np.array([low is not None for _, _, low, _ in self._kept], dtype=bool)
        self.has_high = np.array([high is not None for _, _, _, high in self._kept], dtype=bool)
        self.low = np.array([low or 0 for _, _, low, _ in self._kept], dtype=kind)
        self.high = np.array([high or 0 for _, _, _, high in self._kept], dtype=kind)
        # entries by column, for the least and largest of what the rows say of a variable
        self.by_cell = np.argsort(self.cells, kind="stable")
        self.used, self.cell_starts = np.unique(self.cells[self.by_cell], return_index=True)

    def rows(self) -> Iterator[tuple[list[int], list[int], int | None, int | None]]:
        """Variables, weights and both sides of each row."""
        return iter(self._kept)

    def tighten(self, lower: Array, upper: Array) -> bool:
        """Narrow a box in place by its rows and clauses; False when it holds no point."""
        for _ in range(PASSES):
            before = (lower.copy(), upper.copy())
            if self.entries and not self._by_rows(lower, upper):
                return False
            if not self._by_clauses(lower, upper):
                return False
            if bool(np.any(lower > upper)):
                return False
            if bool(np.all(before[0] == lower)) and bool(np.all(before[1] == upper)):
                break
        return True

    def _by_rows(self, lower: Array, upper: Array) -> bool:
        a, low, high = self.weights, lower[self.cells], upper[self.cells]
        near, far = a * low, a * high
        least = np.add.reduceat(np.where(self.positive, near, far), self.starts)
        most = np.add.reduceat(np.where(self.positive, far, near), self.starts)
        if bool(np.any(self.has_high & (least > self.high))) or bool(
            np.any(self.has_low & (most < self.low))
        ):
            return False
        # how far a variable may leave the end of its range that keeps the row smallest, or largest
        up = (self.high - least)[self.row] // self.sizes
        down = (most - self.low)[self.row] // self.sizes
        span = high - low
        up = np.where(self.has_high[self.row], np.minimum(up, span), span)
        down = np.where(self.has_low[self.row], np.minimum(down, span), span)
        new_high = low + np.where(self.positive, up, down)
        new_low = high - np.where(self.positive, down, up)
        order, starts = self.by_cell, self.cell_starts
        upper[self.used] = np.minimum(upper[self.used], np.minimum.reduceat(new_high[order], starts))
        lower[self.used] = np.maximum(lower[self.used], np.maximum.reduceat(new_low[order], starts))
        return True

    def _by_clauses(self, lower: Array, upper: Array) -> bool:
        for clause in self.clauses:
            open_ones: list[tuple[int, Literal["<=", ">="], int]] = []
            for j, side, bound in clause:
                if side == "<=":
                    if upper[j] <= bound:
                        break
                    if lower[j] <= bound:
                        open_ones.append((j, side, bound))
                else:
                    if lower[j] >= bound:
                        break
                    if upper[j] >= bound:
                        open_ones.append((j, side, bound))
            else:
                if not open_ones:
                    return False
                if len(open_ones) == 1:
                    j, side, bound = open_ones[0]
                    if side == "<=":
                        upper[j] = bound
                    else:
                        lower[j] = bound
        return True

    def holds(self, point: Sequence[int]) -> bool:
        """Whether a point is in the box and keeps every row and clause; in Python integers."""
        if len(point) != self.size or not self.possible:
            return False
        if not all(a <= p <= b for a, p, b in zip(self.lower.tolist(), point, self.upper.tolist())):
            return False
        for cells, weights, low, high in self._kept:
            total = sum(a * point[j] for j, a in zip(cells, weights))
            if (low is not None and total < low) or (high is not None and total > high):
                return False
        return all(
            any(point[j] <= bound if side == "<=" else point[j] >= bound for j, side, bound in clause)
            for clause in self.clauses
        )


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
