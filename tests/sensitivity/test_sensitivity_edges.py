"""Policies without public facts: every rule of graphs, every kind of query, both norms, against all edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.effort import Effort
from policygraph.model.graphs import BOTTOM
from tests.oracles.sensitivity import over_edges

DOMAINS = {
    "two": pg.Domain({"a": 2, "b": 3}),
    "one value": pg.Domain({"a": 3, "b": 1, "c": 2}),
    "one cell": pg.Domain({"a": 1}),
    "line": pg.Domain({"a": 5}),
    "binary": pg.Domain({"a": 2, "b": 2, "c": 2}),
}


def graphs(domain):
    first = domain.names[0]
    made = {
        "full": pg.PolicyGraph.full(domain),
        "attribute": pg.PolicyGraph.attribute(domain),
        "bit": pg.PolicyGraph.bit(domain),
        "grid": pg.PolicyGraph.grid(domain),
        "line": pg.PolicyGraph.line(domain, first),
        "threshold": pg.PolicyGraph.threshold(domain, 2),
        "euclidean": pg.PolicyGraph.threshold(domain, "1.5", metric="euclidean"),
        "threshold of one": pg.PolicyGraph.threshold(domain, 2, first),
        "blocks": pg.PolicyGraph.partition(domain, np.arange(domain.size) % 2),
        "edges": pg.PolicyGraph.from_edges(
            domain, np.array([[0, domain.size - 1]]) if domain.size > 1 else []
        ),
    }
    return made | {f"{name} with bottom": graph.with_bottom() for name, graph in made.items()}


def asked(domain):
    n = domain.size
    yield pg.queries.identity(domain)
    yield pg.queries.all_cuboids(domain)
    yield pg.queries.cuboids(
        domain, [domain.names[:1], domain.names[-1:]] if len(domain.names) > 1 else [domain.names], None
    )
    yield pg.queries.matrix(domain, np.tri(n, dtype=int))
    yield pg.queries.matrix(domain, (np.arange(3 * n).reshape(3, n) * 7) % 5 - 2)


CASES = [
    pytest.param(domain, graph, query, id=f"{name}-{kind}-{at}")
    for name, domain in DOMAINS.items()
    for kind, graph in graphs(domain).items()
    for at, query in enumerate(asked(domain))
]


@pytest.mark.parametrize(("domain", "graph", "query"), CASES)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_value_is_the_largest_over_all_edges(domain, graph, query, norm):
    policy = pg.Policy(domain, graph=graph)
    certificate = pg.sensitivity(query, policy, norm=norm)
    matrix = query.columns(np.arange(domain.size)).toarray()
    edges = [(u, None if v is BOTTOM else v) for u, v in graph.edges()]
    assert certificate.power == over_edges(matrix, edges, norm)
    assert certificate.exact
    report = certificate.verify()
    assert report.complete, str(report)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_full_graph_with_random_rows(data):
    n = data.draw(st.integers(2, 7))
    rows = data.draw(st.integers(1, 4))
    entries = data.draw(st.lists(st.integers(-3, 3), min_size=n * rows, max_size=n * rows))
    domain = pg.Domain({"a": n})
    query = pg.queries.matrix(domain, np.array(entries).reshape(rows, n))
    for norm in ("l1", "l2"):
        found = pg.sensitivity(query, pg.Policy(domain, graph=pg.PolicyGraph.full(domain)), norm=norm)
        edges = [(u, v) for u in range(n) for v in range(u)]
        assert found.power == over_edges(np.array(entries).reshape(rows, n), edges, norm)
        assert found.exact


def test_many_columns_give_a_bracket_that_holds():
    rng = np.random.default_rng(5)
    domain = pg.Domain({"a": 6000})
    matrix = rng.integers(-3, 4, size=(6, 6000))
    found = pg.sensitivity(
        pg.queries.matrix(domain, matrix), pg.Policy(domain, graph=pg.PolicyGraph.full(domain))
    )
    assert found.kind == "upper"
    assert 0 < found.lower <= found.value <= 36
    assert not found.verify().failed


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda d: pg.PolicyGraph.full(d), 2 * 255),
        (lambda d: pg.PolicyGraph.full(d).with_bottom(), 2 * 255),
        (lambda d: pg.PolicyGraph.attribute(d), 2 * 128),
        (lambda d: pg.PolicyGraph.threshold(d, 3), 2 * (256 - 32)),
    ],
    ids=["full", "full with bottom", "attribute", "threshold 3"],
)
def test_all_256_cuboids_of_a_table_of_two_million_cells(make, value):
    domain = pg.Domain(
        {
            "workclass": 9,
            "education": 16,
            "marital": 7,
            "occupation": 15,
            "relationship": 6,
            "race": 5,
            "sex": 2,
            "salary": 2,
        }
    )
    effort = Effort()
    found = pg.sensitivity(
        pg.queries.all_cuboids(domain), pg.Policy(domain, graph=make(domain)), effort=effort
    )
    assert found.value == value
    assert effort.spent < 1_000_000  # edges were not listed


def test_policy_without_graph_and_facts_is_one_record_more_or_less():
    domain = pg.Domain({"a": 2, "b": 3})
    found = pg.sensitivity(pg.queries.all_cuboids(domain), pg.Policy(domain))
    assert found.value == 4
    assert "one record more or less" in found.definition


def test_units_scale_the_sensitivity():
    from fractions import Fraction

    domain = pg.Domain({"a": 2})
    query = pg.queries.matrix(domain, [[Fraction(1, 2), Fraction(1, 3)]])
    assert pg.sensitivity(query, pg.Policy(domain)).value == Fraction(1, 2)
    assert pg.sensitivity(query, pg.Policy(domain), norm="l2").power == Fraction(1, 4)


def test_other_domain_is_refused():
    with pytest.raises(pg.InputError, match="expected one domain"):
        pg.sensitivity(pg.queries.identity(pg.Domain({"a": 2})), pg.Policy(pg.Domain({"a": 3})))
