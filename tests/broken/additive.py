"""Exact noise of the wrong scale: half of it, or scaled to too few moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import policygraph as pg
from policygraph.curator.noise import discrete_laplace

__all__ = [
    "edges_only",
    "half_gaussian",
    "half_laplace",
    "one_member",
    "one_record_under_margins",
    "parallel_across_margin",
]


def half_laplace():
    """The certificate of half the query, smuggled past the check that the certificate is for this query."""
    domain = pg.Domain({"age": 8})
    query, policy = pg.queries.identity(domain), pg.Policy(domain, pg.PolicyGraph.full(domain))
    ready = pg.Laplace().calibrate(query, policy, pg.Epsilon(1))
    proof = ready.sensitivity
    halved = replace(proof, power=proof.power / 2, lower_power=proof.lower_power / 2)
    return replace(ready, sensitivity=halved), policy, query


def half_gaussian():
    domain = pg.Domain({"age": 8})
    query, policy = pg.queries.identity(domain), pg.Policy(domain)
    ready = pg.Gaussian().calibrate(query, policy, pg.Rho("1/2"))
    proof = ready.sensitivity
    halved = replace(proof, power=proof.power / 4, lower_power=proof.lower_power / 4)
    return replace(ready, sensitivity=halved), policy, query


def edges_only():
    """Calibrated to the edges of the line alone (2), where the known count of {0, 1} makes it 4.

    A record that crosses from 1 to 2 must be made up for by another that goes back, along no edge: 3 to 0.
    """
    domain = pg.Domain({"age": 4})
    query, line = pg.queries.identity(domain), pg.PolicyGraph.line(domain)
    ready = pg.Laplace().calibrate(query, pg.Policy(domain, line), pg.Epsilon(1))
    return ready, pg.Policy(domain, line, [pg.count({"age": [0, 1]})]), query


def one_record_under_margins():
    """Calibrated to one record that changes (2), where both margins of a 2 x 2 table are known (4)."""
    domain = pg.Domain({"a": 2, "b": 2})
    query = pg.queries.identity(domain)
    ready = pg.Laplace().calibrate(query, pg.Policy(domain, pg.PolicyGraph.full(domain)), pg.Epsilon(1))
    return ready, pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")]), query


def one_member():
    """Calibrated to one record, where families of three share their value and change together."""
    domain = pg.Domain({"age": 4})
    query, records = pg.queries.identity(domain), pg.Policy(domain)
    return pg.Laplace().calibrate(query, records, pg.Epsilon(1)), pg.Families(records, 3), query


def parallel_across_margin():
    """Two columns released at epsilon each as if they were disjoint, where known row sums couple them.

    A move changes each column by 1, so that noise of scale 1 / epsilon is right for either column alone; but a record that
    leaves one column enters the other, and both are told.
    """
    domain = pg.Domain({"a": 2, "b": 2})
    return _columns, pg.Policy(domain, constraints=[pg.Cuboid("a")]), pg.queries.identity(domain)


def _columns(table, n, source):
    out = np.empty((n, 4), dtype=np.int64)
    for column in ([0, 2], [1, 3]):
        out[:, column] = table[column] + discrete_laplace(1, (n, 2), source)
    return out
