"""The automatic choice over many small policies: what a comparison lists as better is taken, or the release says why not; public facts are kept at no cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.compare import standard_methods
from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms import Fitted, MatrixMechanism
from policygraph.mechanisms.auto import CLEARLY, choose
from policygraph.mechanisms.candidates import CANDIDATES, Candidate
from policygraph.mechanisms.constrained.free_lattice import free_lattice
from policygraph.sensitivity.proofs import shared_proofs

GRAPHS = {
    "grid": pg.PolicyGraph.grid,
    "none": lambda domain: None,
    "line": lambda domain: pg.PolicyGraph.line(domain, "a"),
    "threshold": lambda domain: pg.PolicyGraph.threshold(domain, 2),
    "full": pg.PolicyGraph.full,
    "attribute": pg.PolicyGraph.attribute,
    "bottom": lambda domain: pg.PolicyGraph.full(domain).with_bottom(),
}
DATA_DEPENDENT = ("edges, consistent", "partition", "partition, consistent", "matching", "adaptive")
"""Their errors depend on the data, so that nothing can be expected of them beforehand."""


@st.composite
def requests(draw):
    shape = draw(st.sampled_from([(3,), (6,), (2, 3), (2, 2, 2), (8,)]))
    domain = pg.Domain(dict(zip("abc", shape, strict=False)))
    graph = GRAPHS[draw(st.sampled_from(sorted(GRAPHS)))](domain)
    facts = {
        "no": [],
        "total": [pg.Total()],
        "one": [pg.Cuboid("a")] if len(shape) > 1 else [pg.Total()],
        "two": [pg.Cuboid("a"), pg.Cuboid("b")] if len(shape) > 1 else [pg.Total()],
        "count": [pg.LinearCount([(domain.cell(at), 1) for at in range(domain.size // 2)])],
    }[draw(st.sampled_from(["no", "total", "one", "two", "count"]))]
    asked = draw(st.sampled_from(["cells", "margin", "tables", "ranges", "matrix"]))
    if asked == "cells":
        query = pg.queries.identity(domain)
    elif asked == "margin":
        query = pg.queries.cuboid(domain, domain.names[-1])
    elif asked == "tables":
        query = pg.queries.cuboids(domain, [[name] for name in domain.names])
    elif asked == "ranges":
        query = pg.queries.random_boxes(domain, 6, seed=draw(st.integers(0, 9)))
    else:
        row = st.lists(st.integers(-1, 2), min_size=domain.size, max_size=domain.size)
        rows = draw(st.lists(row, min_size=1, max_size=5))
        assume(any(any(each) for each in rows))
        # A search for the sensitivity of any matrix under a graph with facts can take minutes.
        query = pg.queries.matrix(domain, rows)
        graph = None if facts else graph
    loss = draw(st.sampled_from([pg.Epsilon(1), pg.Epsilon("1/10"), pg.Epsilon(5), pg.Rho("1/2")]))
    return query, pg.Policy(domain, graph, facts), loss


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_what_is_listed_as_better_is_taken_or_the_reason_is_said(request):
    query, policy, loss = request
    # Facts that say nothing about the answers are kept by any noise on them.
    binding = bool(policy.constraints) and free_lattice(query, policy).rank < query.height
    with shared_proofs():
        ready = choose(query, policy, loss)
        for name, mechanism in standard_methods(query, policy, loss).items():
            if name in DATA_DEPENDENT:
                continue
            try:
                rival = mechanism.calibrate(query, policy, loss)
            except (RefusedError, InputError):
                continue
            better = rival.total_error < CLEARLY * ready.total_error
            assert not better or f"{name!r}" in ready.why.partition("Not compared:")[2], (name, ready.why)
            if binding and rival.keeps_facts and ready.noise.distribution != "none":
                assert ready.keeps_facts or rival.total_error > ready.total_error


def test_a_simpler_one_that_is_hardly_worse_is_said_to_be():
    domain = pg.Domain({"sex": 2, "age": 7, "salary": 5})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")])
    ready = choose(pg.queries.identity(domain), policy, pg.Epsilon(1))
    assert ready.keeps_facts
    assert "Of errors within 1 % of the least, the simplest was taken." in ready.why


def test_a_new_entry_is_considered_without_further_code(monkeypatch):
    domain = pg.Domain({"a": 3})
    query, policy = pg.queries.identity(domain), pg.Policy(domain)
    entry = Candidate(
        "fewer", lambda *_: pg.Laplace(), lambda *_: False, lambda *_: True, left_out=lambda *_: "of no use"
    )
    monkeypatch.setattr("policygraph.mechanisms.candidates.CANDIDATES", (*CANDIDATES, entry))
    assert choose(query, policy, pg.Epsilon(1)).why.endswith("Not compared: 'fewer' (of no use).")


def test_the_spanning_forest_of_a_graph_with_many_edges_is_considered():
    """All edges would not fit memory; a spanning forest of stretch 3 answers prefix sums."""
    domain = pg.Domain({"x": 1100})
    policy = pg.Policy(domain, pg.PolicyGraph.threshold(domain, 300))
    query = pg.queries.prefix(domain)
    edges = pg.TransformedLaplace().calibrate(query, policy, pg.Epsilon(1))
    assert edges.reduction.stretch == 3
    entries = {each.name: each for each in CANDIDATES}
    assert entries["edges"].accepts(query, policy, pg.Epsilon(1))
    left = entries["optimised strategy"].reason(query, policy, pg.Epsilon(1))
    assert left == "searched at length for at most 1,024 cells and 20,000 edges"


def test_a_comparison_prints_why_auto_left_something_out():
    domain = pg.Domain({"a": 7, "b": 6})
    policy = pg.Policy(domain, constraints=[pg.Total()])
    found = pg.compare(pg.queries.random_boxes(domain, 30, seed=1), policy, pg.Epsilon(1), ["auto", "tree"])
    assert "certified under such public facts for at most 36 cells" in found.why
    assert found.to_dict()["why"] == found.why


@pytest.mark.parametrize("over", ["rows", None])
def test_a_fit_is_of_answers_or_cells(over):
    with pytest.raises(InputError) as caught:
        Fitted(over)
    assert caught.value.code == "kernel.over"


def test_tables_of_a_large_domain_keep_the_facts_that_are_published():
    """Two public tables, all tables of one and two attributes: their own sensitivity would need a search, that of the cells does not."""
    domain = pg.Domain({"place": 26, "age": 4, "sex": 2, "work": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("place"), pg.Cuboid("age", "sex")])
    query = pg.queries.all_cuboids(domain, up_to=2)
    ready = choose(query, policy, pg.Epsilon(1))
    plain = MatrixMechanism("identity", over="cells").calibrate(query, policy, pg.Epsilon(1))
    assert ready.keeps_facts
    assert ready.sensitivity.power == plain.sensitivity.power
    assert ready.total_error < CLEARLY * plain.total_error
    assert "would need a search" in ready.why
    known = {"total", "place", "age", "sex", "age x sex"}
    exact = {part.name for at, part in enumerate(query.parts) if np.max(ready.deviation(at)) == 0}
    assert exact == known
    counts = np.arange(domain.size) % 23
    made = ready.run(counts, pg.SeededRng(1))
    truth = query.answer(counts)
    starts = np.cumsum([0, *(part.height for part in query.parts)])
    for at, part in enumerate(query.parts):
        if part.name in known:
            assert made.tables[at].values.tolist() == truth[starts[at] : starts[at + 1]].tolist()
