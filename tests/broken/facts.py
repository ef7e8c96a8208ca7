"""Mechanisms that keep public facts, with too little noise; and a cube and a statistic scaled to a part of what they tell."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import policygraph as pg
from policygraph.mechanisms import Exponential, Fitted, Kernel
from policygraph.mechanisms.statistics import StatisticNoise
from policygraph.model.queries.network_statistics import Triangles

__all__ = [
    "first_table_only",
    "half_fitted",
    "half_kernel",
    "one_cell",
    "one_residual",
    "one_triangle",
    "twice_the_rate",
]

SQUARE = pg.Domain({"a": 2, "b": 2})
MARGINS = pg.Policy(SQUARE, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
CELLS = pg.queries.identity(SQUARE)


def _smaller(ready, factor):
    proof = ready.sensitivity
    return replace(
        ready, sensitivity=replace(proof, power=proof.power * factor, lower_power=proof.lower_power * factor)
    )


def half_kernel():
    ready = Kernel().calibrate(CELLS, MARGINS, pg.Epsilon(1))
    return _smaller(ready, Fraction(1, 2)), MARGINS, CELLS


def half_fitted():
    """The fit averages four noises, so that this looks like much noise, and the events that tell are rare."""
    ready = Fitted().calibrate(CELLS, MARGINS, pg.Epsilon(2))
    return _smaller(ready, Fraction(1, 2)), MARGINS, CELLS


def twice_the_rate():
    """A rate of twice epsilon, where even all of epsilon would be too much for tables that have unequal numbers of others near."""
    facts = [pg.Cuboid("a", equals=[6, 6]), pg.Cuboid("b", equals=[6, 6])]
    policy = pg.Policy(SQUARE, constraints=facts)
    ready = Exponential().calibrate(CELLS, policy, pg.Epsilon(1))
    return replace(ready, rate=2 * pg.Epsilon(1).value), policy, CELLS


def whole_rate_along_a_line():
    """All of epsilon as the rate, where the tables of records on a line have unequal numbers of others near."""
    domain = pg.Domain({"r": 4})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain), [pg.Total(equals=3)])
    query = pg.queries.identity(domain)
    ready = Exponential().calibrate(query, policy, pg.Epsilon(1))
    return replace(ready, rate=pg.Epsilon(2).value), policy, query


def whole_rate_count_by_count():
    """The same, and more, where tables are drawn count by count."""
    domain = pg.Domain({"r": 3})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain), [pg.Total(equals=2)])
    query = pg.queries.identity(domain)
    ready = Exponential(limit=2).calibrate(query, policy, pg.Epsilon(1))
    return replace(ready, rate=pg.Epsilon(3).value), policy, query


def whole_rate_cell_by_cell():
    """Counts drawn cell by cell as if neighbours differed by one record, where a cycle of a 3 x 3 table changes six."""
    domain = pg.Domain({"a": 3, "b": 3})
    policy = pg.Policy(
        domain, constraints=[pg.Cuboid("a", equals=[2, 1, 1]), pg.Cuboid("b", equals=[1, 1, 2])]
    )
    query = pg.queries.identity(domain)
    ready = Exponential(limit=2).calibrate(query, policy, pg.Epsilon(1))
    return replace(ready, rate=pg.Epsilon("1/2").value), policy, query


def first_table_only():
    """A cube whose noise is scaled to one of the tables that it measures."""
    domain = pg.Domain({"a": 2, "b": 2})
    query = pg.queries.all_cuboids(domain)
    policy = pg.Policy(domain)
    ready = pg.Cube("all").calibrate(query, policy, pg.Epsilon(1))
    return _smaller(ready, Fraction(1, 4)), policy, query


def one_triangle():
    """Noise for one triangle, where an edge of a network of five nodes closes three."""
    network = pg.Network(5)
    policy, query = pg.Policy(network), Triangles(network)
    ready = StatisticNoise().calibrate(query, policy, pg.Epsilon(1))
    return replace(ready, bound=replace(ready.bound, power=1)), policy, query


def one_cell():
    """The root of chi-squared with noise for one cell, where a swap of two records changes four."""
    domain = pg.Domain({"a": 2, "b": 2})
    facts = [pg.Cuboid("a", equals=[6, 6]), pg.Cuboid("b", equals=[6, 6])]
    policy = pg.Policy(domain, constraints=facts)
    query = pg.queries.chi_squared_root(policy, "a", "b")
    ready = StatisticNoise().calibrate(query, policy, pg.Epsilon(1))
    return replace(ready, bound=replace(ready.bound, power=ready.bound.power // 4)), policy, query


def one_residual():
    """Residuals whose noise is scaled to the sum alone, as if the prefixes did not change with it."""
    domain = pg.Domain({"age": 4})
    query, policy = pg.queries.marginals(domain, 1, prefix="age"), pg.Policy(domain)
    ready = pg.Residuals().calibrate(query, policy, pg.Rho("1/2"))
    return _smaller(ready, Fraction(1, 4)), policy, query
