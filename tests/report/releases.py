"""Releases of many kinds whose pages tests look at; all of invented counts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

import policygraph as pg

HOSTILE = [
    "</script><script>window.hurt=1</script>",
    '"><img src=x onerror="window.hurt=2">',
    "<svg onload=window.hurt=3>",
    "'-window.hurt-'",
    "]]>--><b>bold</b>",
    "&lt;i&gt;\u2028${window.hurt=4}",
]
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ODD = [
    "\u202edesrever",
    "=cmd|' /C calc'!A0",
    "@SUM(A1)",
    "-2+3",
    "-7",
    "a very long label " * 40,
    "\u05e9\u05dc\u05d5\u05dd",
]
RNG = pg.SeededRng("pages")


def census() -> pg.Release:
    """Two public tables, a full table with noise."""
    domain = pg.Domain({"sex": ["F", "M"], "age": ["0-17", "18-64", "65+"], "work": ["yes", "no"]})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")])
    query = pg.queries.cuboid(domain, "sex", "age", "work")
    return pg.release(query, policy, 10 * np.arange(12), epsilon=1, rng=RNG)


def town() -> pg.Release:
    """Many places and two published tables: a long heat map, and two long data sets that must look alike."""
    places = [f"place {k}" for k in range(40)]
    domain = pg.Domain({"place": places, "age": ["0-14", "15-24", "25-64", "65+"], "sex": ["F", "M"]})
    counts = 5 + np.arange(domain.size).reshape(40, 4, 2) % 7
    people, groups = counts.sum(axis=(1, 2)).tolist(), counts.sum(axis=0).ravel().tolist()
    policy = pg.Policy(
        domain, constraints=[pg.Cuboid("place", equals=people), pg.Cuboid("age", "sex", equals=groups)]
    )
    query = pg.queries.cuboids(domain, [["place", "age"], ["place", "sex"]])
    return pg.release(query, policy, counts.ravel(), epsilon=1, rng=RNG, mechanism=pg.Cube("base"))


def hostile() -> pg.Release:
    """Labels, and names of attributes, that try to become code."""
    labels = HOSTILE
    domain = pg.Domain({"<b onmouseover=window.hurt=5>": labels, HOSTILE[0]: ["<u>a", "b"]})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain, "<b onmouseover=window.hurt=5>"))
    query = pg.queries.all_cuboids(domain)
    return pg.release(query, policy, 7 * np.arange(12), epsilon=1, rng=RNG, mechanism=pg.Cube())


def odd() -> pg.Release:
    """Labels that spreadsheet programs would run, that turn the direction of text, and that are very long."""
    domain = pg.Domain({"na\u202eme": ODD, "an attribute with a long name " * 5: ["x", "y"]})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("na\u202eme")])
    return pg.release(pg.queries.identity(domain), policy, 9 * np.arange(14), epsilon=1, rng=RNG)


def cube(attributes: int = 8) -> pg.Release:
    """All tables of many attributes of two values."""
    domain = pg.Domain({f"a{k}": ["no", "yes"] for k in range(attributes)})
    counts = np.arange(domain.size) % 50
    return pg.release(
        pg.queries.all_cuboids(domain), pg.Policy(domain), counts, epsilon=1, rng=RNG, mechanism=pg.Cube()
    )


def network() -> pg.Release:
    """Group counts under public degrees."""
    people = pg.Network(["ann", "bob", "cem", "dee", "eva", "fay"])
    policy = pg.Policy(people, constraints=[pg.Degrees(["ann", "bob"])])
    counts = np.arange(people.size) % 2
    return pg.release(
        pg.queries.mixing(people, ["x", "x", "x", "y", "y", "y"]), policy, counts, epsilon=1, rng=RNG
    )


def grid() -> pg.Release:
    """A map of squares."""
    domain = pg.Domain({"row": 20, "column": 20})
    policy = pg.Policy(domain, pg.PolicyGraph.grid(domain))
    return pg.release(
        pg.queries.identity(domain), policy, np.arange(400) % 60, epsilon=1, rng=RNG, mechanism=pg.Laplace()
    )


def line() -> pg.Release:
    """A long ordered attribute, Gaussian noise."""
    domain = pg.Domain({"age": 100})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    return pg.release(
        pg.queries.identity(domain), policy, np.arange(100), rho="0.5", rng=RNG, mechanism=pg.Gaussian()
    )


def ranges() -> pg.Release:
    """Rows that are no table of labels."""
    domain = pg.Domain({"age": 9})
    policy = pg.Policy(domain, pg.PolicyGraph.full(domain).with_bottom())
    return pg.release(
        pg.queries.all_ranges(domain), policy, np.arange(9), epsilon=1, rng=RNG, mechanism=pg.Laplace()
    )


def nodes() -> pg.Release:
    """Node privacy, which is no policy with facts."""
    people = pg.Network(8)
    query = pg.queries.ProjectedDegreeTail(people, 3)
    edges = [(u, v) for u, v in pairwise(range(8))]
    return pg.release(query, pg.NodePrivacy(people), edges, epsilon=1, rng=RNG)


def measures() -> pg.Release:
    """Sums, counts and averages, which have units of their own."""
    domain = pg.Domain({"sex": ["F", "M"]})
    people = pa.table({"sex": ["F", "M"] * 50, "income": list(range(0, 1000, 10))})
    query = pg.queries.averages(domain, [["sex"]], pg.Measure("income", 0, 1000))
    return pg.release(query, pg.Policy(domain), people, epsilon=1, rng=RNG)


ALL = {
    each.__name__: each
    for each in (census, town, hostile, odd, cube, network, grid, line, ranges, nodes, measures)
}
