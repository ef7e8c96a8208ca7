"""Solvers that lie: each replaces the real one and says something false in a way that has been reported of real ones."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model
from scipy import optimize

HONEST = cp_model.CpSolver


class AlwaysInfeasible(HONEST):
    """Says that there is nothing, as in google/or-tools 5274."""

    def solve(self, model, *rest):
        super().solve(model, *rest)
        return cp_model.INFEASIBLE


class FirstIsOptimal(HONEST):
    """Stops at its first point and calls it optimal, as in google/or-tools 5293."""

    def solve(self, model, *rest):
        self.parameters.stop_after_first_solution = True
        status = super().solve(model, *rest)
        return cp_model.OPTIMAL if status == cp_model.FEASIBLE else status

    @property
    def best_objective_bound(self):
        return self.objective_value


class WrongPoint(HONEST):
    """Returns numbers that are one too large."""

    def value(self, expression):
        return super().value(expression) + 1

    def boolean_value(self, literal):
        return not super().boolean_value(literal)


class AlwaysOptimal(WrongPoint):
    """Says that everything is solved, by zeros."""

    def solve(self, model, *rest):
        super().solve(model, *rest)
        return cp_model.OPTIMAL

    def value(self, expression):
        return 0

    def boolean_value(self, literal):
        return False

    @property
    def best_objective_bound(self):
        return 0.0


LIARS = [AlwaysInfeasible, FirstIsOptimal, WrongPoint, AlwaysOptimal]


def infeasible_milp(c, **options):
    """HiGHS, saying that there is nothing."""
    return optimize.OptimizeResult(status=2, x=None, mip_node_count=0)


def zero_milp(c, **options):
    """HiGHS, with a point of zeros."""
    return optimize.OptimizeResult(status=0, x=np.zeros(len(c)), mip_node_count=0)


class GarbageRelaxation:
    """A linear programming solver whose cost, points and duals are random, huge or no numbers."""

    def __init__(self, program, objective=None):
        self.rows, self.size = sum(1 for _ in program.rows()), program.size
        self.random = np.random.default_rng(self.rows)

    def solve(self, lower, upper):
        def some(n):
            values = self.random.normal(size=n) * 10.0 ** self.random.integers(-9, 20)
            return np.where(
                self.random.random(n) < 0.1, np.nan, np.where(self.random.random(n) < 0.1, np.inf, values)
            )

        if self.random.random() < 0.1:
            return None
        return float(self.random.normal()), some(self.size), some(self.rows), 1
