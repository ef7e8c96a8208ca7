"""Sums and averages over records written out: a record is a cell with a value, the domain has one more attribute for it.

Nothing here knows of closed forms, of ends of a range or of middles: the policy is extended by the definition, and the
existing engine, or the literal lists of neighbours, do the rest on ranges of a few values.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np

import policygraph as pg
from tests.oracles import blowfish
from tests.oracles.sensitivity import longest, over_edges

VALUE = "the value"


def extended_domain(query: Any) -> pg.Domain:
    """The domain with the measure as its last attribute."""
    attributes = {name: list(query.domain.labels(name)) for name in query.domain.names}
    return pg.Domain({**attributes, VALUE: query.measure.levels})


def extended_policy(query: Any, policy: pg.Policy) -> pg.Policy:
    """The same policy over records with values: any values at both ends of an edge, and any two values in one cell."""
    domain, levels = extended_domain(query), query.measure.levels
    graph = None
    if policy.graph is not None:
        edges: list[tuple[Any, Any]] = []
        for u, v in policy.graph.edges():
            if v is pg.BOTTOM:
                edges += [(u * levels + a, pg.BOTTOM) for a in range(levels)]
            else:
                edges += [(u * levels + a, v * levels + b) for a, b in product(range(levels), repeat=2)]
        for cell in range(policy.domain.size):
            edges += [(cell * levels + a, cell * levels + b) for a, b in combinations(range(levels), 2)]
        graph = pg.PolicyGraph.from_edges(domain, edges)
    return pg.Policy(domain, graph, policy.constraints, policy.strength, policy.at_most_records)


def matrix(query: Any) -> np.ndarray:
    """The integer rows of the query over records with values, written out from its definition."""
    domain, measure = extended_domain(query), query.measure
    records = [domain.cell(at) for at in range(domain.size)]
    rows = []
    for names, weight in zip(query.sets, query.weights):
        places = list(product(*(query.domain.labels(name) for name in names)))
        axes = [query.domain.axis(name) for name in names]
        sums, counts = [], []
        for place in places:
            here = [all(record[axis] == label for axis, label in zip(axes, place)) for record in records]
            values = []
            for record in records:
                value = (measure.low + record[-1] * measure.unit) / measure.unit
                if query.centred:
                    value = 2 * (value - (measure.low + measure.high) / measure.unit / 2)
                assert value.denominator == 1
                values.append(int(value))
            sums.append([weight * query.sum_weight * x * inside for x, inside in zip(values, here)])
            counts.append([weight * query.count_weight * inside for inside in here])
        rows += sums + (counts if query.kind == "averages" else [])
    return np.array(rows, dtype=np.int64)


def engine(query: Any, policy: pg.Policy, norm: str) -> pg.Sensitivity:
    """The certificate of the existing engine for the rows over records with values."""
    made = pg.queries.matrix(extended_domain(query), matrix(query))
    return pg.sensitivity(made, extended_policy(query, policy), norm=norm, effort=30_000_000)


def literal(query: Any, policy: pg.Policy, norm: str, records: int) -> int:
    """The largest change over neighbours by the definitions alone; with facts and a graph over so many records."""
    whole, wide = matrix(query), extended_policy(query, policy)
    facts = wide.system.matrix().toarray()
    if policy.definition == "induced":
        if not len(facts):
            return max(int(np.abs(c).sum() if norm == "l1" else (c**2).sum()) for c in whole.T)
        return longest(facts, whole, norm)
    if policy.definition == "edges":
        edges = [(u, None if v is pg.BOTTOM else v) for u, v in wide.graph.edges()]
        return over_edges(whole, edges, norm)
    size = wide.domain.size
    joined = [[u != v and wide.graph.has_edge(u, v) for v in range(size)] for u in range(size)]
    bottom = wide.graph.bottom != "none"
    if bottom:
        down = [wide.graph.has_edge(u, pg.BOTTOM) for u in range(size)]
        joined = [[*row, down[u]] for u, row in enumerate(joined)] + [[*down, False]]
    return max(
        blowfish.sensitivity(facts.tolist(), joined, n, bottom=bottom, query=whole.tolist(), norm=norm)
        for n in range(1, records + 1)
    )


def answers(query: Any, records: list[tuple[int, int]]) -> np.ndarray:
    """Exact integer answers to the query for a list of records, each a cell and a level."""
    table = np.zeros(query.domain.size * query.measure.levels, dtype=np.int64)
    for cell, level in records:
        table[cell * query.measure.levels + level] += 1
    return matrix(query) @ table
