"""Example 4.1: power of a private chi-squared test with public margins, against the test without noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

import policygraph as pg
from benchmarks.papers.registry import Result, Row, Script
from policygraph.distributions.noise import laplace_noise
from policygraph.distributions.replay import Replay
from policygraph.estimation.statistics import null_tables, quadratic_form, roots
from policygraph.sensitivity.statistics import statistic_bound

SCRIPT = Script(
    "no-free-lunch-2011",
    "Example 4.1: chi-squared with public margins",
    "policygraph/estimation/statistics.py",
    41,
)
MARGINS = {"sex": [500, 500], "salary": [400, 300, 200, 100]}
SHIFTS = (10, 20, 30)
"""Records that change places between the first and the last salary of the two rows of an independent table."""
EPSILONS = (Fraction(1, 10), Fraction(1, 2), Fraction(1))


def run(small: bool) -> Result:
    domain = pg.Domain({"sex": 2, "salary": 4})
    facts = [pg.Cuboid(name, equals=counts) for name, counts in MARGINS.items()]
    policy = pg.Policy(domain, constraints=facts)
    query = pg.queries.chi_squared_root(policy, "sex", "salary")
    cells = int(pg.sensitivity(pg.queries.identity(domain), policy).power)
    step, replay, many = statistic_bound(query, policy).power, Replay("power"), 1_000 if small else 20_000
    null = np.concatenate(list(null_tables(query, many, replay)))
    rows, values = [], []
    for shift in SHIFTS:
        other = np.concatenate(list(null_tables(query, many, replay)))
        other = other + shift * np.array([1, 0, 0, -1, -1, 0, 0, 1])
        other = other[(other >= 0).all(axis=1)]
        plain = power(roots(query, null), roots(query, other))
        for epsilon in EPSILONS:
            on_root, on_cells = laplace_noise(step / epsilon), laplace_noise(cells / epsilon)
            root, table = (
                power(*(statistic(tables) for tables in (null, other)))
                for statistic in (
                    lambda t, n=on_root: roots(query, t) + float(query.unit) * replay.draws(n, (len(t),)),
                    lambda t, n=on_cells: quadratic_form(query, n.variance)(t + replay.draws(n, t.shape)),
                )
            )
            what = f"power at level 0.05, {shift} records moved, epsilon = {epsilon}: without noise, root released, table released"
            rows.append(Row("Example 4.1", what, "", f"{plain:.2f}, {root:.2f}, {table:.2f}", fixed=False))
            values.append([shift, float(epsilon), plain, root, table])
    return Result(
        rows, {"power": values}, f"2 x 4 table, n = 1,000; {many:,} tables for each figure, seeded."
    )


def power(null: Any, other: Any) -> float:
    """Share of statistics above the 95 % quantile of those of independent attributes."""
    return float((other > np.quantile(null, 0.95)).mean())
