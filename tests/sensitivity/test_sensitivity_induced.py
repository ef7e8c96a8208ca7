"""Policies with public facts: the values of the theory, and every rung against the whole list of minimal moves."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from tests.oracles.sensitivity import longest, query_rows


def table(*sizes):
    return pg.Domain({"ABCDEF"[i]: n for i, n in enumerate(sizes)})


def cells(domain, *facts, **options):
    policy = pg.Policy(domain, constraints=facts, **options)
    return pg.sensitivity(pg.queries.identity(domain), policy)


def margins(text):
    return [pg.Cuboid(*word) for word in text.split()]


SECTION_2 = [
    ((2, 2), "A", 2),
    ((3, 4), "A B", 6),
    ((5, 3), "A B", 6),
    ((2, 3, 2), "AB BC", 4),
    ((4, 2, 3), "AB BC", 6),
    ((2, 2, 2), "A B C", 6),
    ((2, 2, 3), "A B C", 8),
    ((2, 2, 4), "A B C", 8),
    ((2, 2, 5), "A B C", 8),
    ((2, 3, 3), "A B C", 12),
    ((2, 2, 2, 2), "A B C D", 10),
    ((2, 2, 2), "AB BC AC", 8),
    ((3, 3, 2), "AB BC AC", 12),
    ((3, 3, 3), "AB BC AC", 24),
    ((3, 3, 4), "AB BC AC", 36),
    ((2, 2, 2, 2), "AB CD", 8),
    ((2, 2, 2, 2), "AB BC CD", 10),
    ((2, 2), "AB", 0),
    ((2, 1, 2), "A C", 4),
    ((1, 1), "A", 0),
    ((3, 1), "A", 0),
]


@pytest.mark.parametrize(("sizes", "facts", "value"), SECTION_2, ids=lambda x: str(x))
def test_theory_section_2(sizes, facts, value):
    found = cells(table(*sizes), *margins(facts))
    assert (found.value, found.kind) == (value, "exact")
    assert not found.verify().failed


@pytest.mark.parametrize("r", [1, 2, 3, 4])
@pytest.mark.parametrize("c", [1, 2, 3])
def test_theory_section_3_partial_knowledge(r, c):
    domain = table(r, c)
    identity = np.eye(r * c, dtype=int)
    for n1 in range(r + 1):
        for n2 in range(c + 1):
            for total in (False, True):
                facts = [pg.Total()] * total
                facts += [pg.Cells("A", list(range(n1)))] if n1 else []
                facts += [pg.Cells("B", list(range(n2)))] if n2 else []
                policy = pg.Policy(domain, constraints=facts)
                expected = longest(policy.system.matrix().toarray(), identity, "l1")
                for norm in ("l1", "l2"):
                    found = pg.sensitivity(pg.queries.identity(domain), policy, norm=norm)
                    assert (found.power, found.kind) == (expected, "exact"), (n1, n2, total, norm)
                    assert not found.verify().failed


def test_theory_section_3_named_values():
    domain = table(3, 3)
    one = [pg.Cells("A", [0]), pg.Cells("B", [0])]
    assert cells(domain, *one).value == 3
    assert cells(domain, *one, pg.Total()).value == 4


DEGREES = {
    (4, 2): 3,
    (4, 3): 4,
    (4, 4): 4,
    (5, 3): 5,
    (5, 4): 6,
    (5, 5): 6,
    (6, 3): 5,
    (6, 4): 6,
    (6, 5): 7,
    (6, 6): 6,
    (7, 5): 7,
    (7, 7): 8,
}


@pytest.mark.parametrize(("nodes", "known"), DEGREES, ids=str)
def test_theory_section_3_degrees(nodes, known):
    found = cells(pg.Network(nodes), pg.Degrees(list(range(known))))
    assert (found.value, found.kind) == (DEGREES[nodes, known], "exact")
    assert not found.verify().failed


def test_one_known_in_degree_needs_two():
    assert cells(pg.Network(4, directed=True), pg.Degrees([0], side="in")).value == 2


@pytest.mark.parametrize("loops", [False, True])
def test_directed_degrees_against_the_list(loops):
    network = pg.Network(3, directed=True, loops=loops)
    identity = np.eye(network.size, dtype=int)
    for ins in range(4):
        for outs in range(4):
            facts = [pg.Degrees(list(range(ins)), side="in")] if ins else []
            facts += [pg.Degrees(list(range(3 - outs, 3)), side="out")] if outs else []
            policy = pg.Policy(network, constraints=facts)
            expected = longest(policy.system.matrix().toarray(), identity, "l1", capacity=1)
            assert cells(network, *facts).value == expected


@st.composite
def margin_problems(draw):
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4).filter(lambda s: np.prod(s) <= 16))
    domain = table(*sizes)
    every = [s for k in range(len(sizes) + 1) for s in combinations(domain.names, k)]
    known = draw(st.lists(st.sampled_from(every), max_size=3, unique=True))
    asked = draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
    weights = draw(st.lists(st.integers(1, 2), min_size=len(asked), max_size=len(asked)))
    return domain, known, asked, weights


@settings(max_examples=120, deadline=None)
@given(margin_problems(), st.sampled_from(["l1", "l2"]))
def test_reductions_and_closed_forms_against_the_list(problem, norm):
    domain, known, asked, weights = problem
    policy = pg.Policy(domain, constraints=[pg.Cuboid(*names) for names in known])
    query = pg.queries.cuboids(domain, asked, weights)
    found = pg.sensitivity(query, policy, norm=norm)
    expected = longest(policy.system.full_rows()[0].toarray(), query_rows(domain, asked, weights), norm)
    assert found.lower_power <= expected <= found.power
    assert found.exact, found
    report = found.verify()
    assert not report.failed, str(report)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_facts_against_the_list(data):
    sizes = data.draw(st.sampled_from([(2, 2), (2, 3), (4,), (2, 2, 2), (3, 3)]))
    domain = table(*sizes)
    facts = []
    for _ in range(data.draw(st.integers(1, 3))):
        kind = data.draw(st.sampled_from(["cuboid", "cells", "count", "zeros", "total"]))
        name = data.draw(st.sampled_from(domain.names))
        values = st.integers(0, domain.shape[domain.axis(name)] - 1)
        if kind == "cuboid":
            facts.append(pg.Cuboid(name))
        elif kind == "cells":
            facts.append(pg.Cells(name, data.draw(st.lists(values, min_size=1, unique=True))))
        elif kind == "count":
            other = data.draw(st.integers(0, domain.size - 1))
            terms = [
                ({name: data.draw(values)}, data.draw(st.sampled_from([1, 1, 2]))),
                (domain.cell(other), 1),
            ]
            facts.append(pg.LinearCount(terms))
        elif kind == "zeros":
            facts.append(pg.StructuralZero([domain.cell(data.draw(st.integers(0, domain.size - 1)))]))
        else:
            facts.append(pg.Total())
    policy = pg.Policy(domain, constraints=facts)
    keep = np.setdiff1d(np.arange(domain.size), policy.system.zeros)
    for query in (pg.queries.identity(domain), pg.queries.all_cuboids(domain)):
        matrix = query.columns(keep).toarray()
        for norm in ("l1", "l2"):
            found = pg.sensitivity(query, policy, norm=norm)
            expected = longest(policy.system.matrix()[:, keep].toarray(), matrix, norm)
            assert (found.power, found.kind) == (expected, "exact")
            assert not found.verify().failed


@pytest.mark.parametrize(
    "zeros", [[(0, 0)], [(0, 0), (1, 1), (2, 2)], [(0, 0), (0, 1)], [(0, 0), (0, 1), (0, 2)]]
)
def test_structural_zeros_delete_edges(zeros):
    domain = table(3, 3)
    policy = pg.Policy(domain, constraints=[pg.Cuboid("A"), pg.Cuboid("B"), pg.StructuralZero(zeros)])
    keep = np.setdiff1d(np.arange(9), policy.system.zeros)
    found = pg.sensitivity(pg.queries.identity(domain), policy)
    assert found.power == longest(
        policy.system.matrix()[:, keep].toarray(), np.eye(len(keep), dtype=int), "l1"
    )


def test_mixing_counts_under_degrees_are_bounded_and_small_ones_exact():
    network = pg.Network(5)
    policy = pg.Policy(network, constraints=[pg.Degrees()])
    query = pg.queries.mixing(network, [0, 0, 1, 1, 1])
    found = pg.sensitivity(query, policy)
    matrix = query.columns(np.arange(10)).toarray()
    assert found.exact
    assert found.value == longest(policy.system.matrix().toarray(), matrix, "l1", capacity=1)


@pytest.mark.parametrize(
    ("domain", "facts", "value"),
    [
        (table(1000, 1000), [pg.Cuboid("A"), pg.Cuboid("B")], 2000),
        (
            table(1000, 1000),
            [pg.Cells("A", list(range(600))), pg.Cells("B", list(range(600))), pg.Total()],
            1202,
        ),
        (table(100, 100, 100), [pg.Cuboid("A", "B"), pg.Cuboid("B", "C")], 200),
        (pg.Network(100_000), [pg.Degrees()], 150_000 - 2),
        (pg.Network(100_000, directed=True), [pg.Degrees(side="in"), pg.Degrees(side="out")], 200_000),
    ],
    ids=["margins", "partial", "shared", "undirected", "directed"],
)
def test_huge_problems_are_answered_from_their_structure(domain, facts, value):
    found = cells(domain, *facts)
    assert (found.value, found.kind) == (value, "exact")


def test_strengths_are_ordered_and_the_cap_bounds():
    domain = table(3, 3)
    facts = [pg.Cuboid("A"), pg.Cuboid("B")]
    worst, positive, markov = (
        cells(domain, *facts, strength=s).value for s in ("worst-case", "positive", "markov")
    )
    assert markov == 4
    assert markov <= positive <= worst == 6
    assert cells(domain, *facts, at_most_records=2).value == 4
    assert cells(domain, *facts, at_most_records=1).value == 0
    assert cells(table(3, 3, 2), *facts, at_most_records=1).value == 2
    large = table(50, 60, 70)
    three = [pg.Cuboid("A"), pg.Cuboid("B"), pg.Cuboid("C")]
    assert cells(large, *three, strength="markov").value == 4
    assert cells(large, *three, at_most_records=3).value == 6


def test_published_values_lower_the_answer():
    domain = table(3, 3)
    loose = [pg.Cuboid("A", equals=[5, 5, 5]), pg.Cuboid("B", equals=[5, 5, 5])]
    tight = [pg.Cuboid("A", equals=[5, 5, 0]), pg.Cuboid("B", equals=[5, 4, 1])]
    assert cells(domain, *loose).value == 6
    found = cells(domain, *tight)
    assert (found.value, found.kind) == (4, "exact")
    assert not found.verify().failed


def test_three_large_margins_are_refused_with_advice():
    domain = table(30, 30, 30)
    policy = pg.Policy(domain, constraints=margins("A B C"))
    with pytest.raises(pg.RefusedError, match="at_most_records"):
        pg.sensitivity(pg.queries.identity(domain), policy, effort=1_000_000)


@pytest.mark.parametrize("facts", ["A B C", "AB BC AC"])
def test_a_search_that_runs_out_is_still_a_bracket(facts):
    domain = table(3, 3, 3)
    policy = pg.Policy(domain, constraints=margins(facts))
    try:
        found = pg.sensitivity(pg.queries.identity(domain), policy, effort=0)
    except pg.RefusedError:
        return
    assert found.lower <= {"A B C": 10**6, "AB BC AC": 24}[facts]
    assert found.value >= {"A B C": 12, "AB BC AC": 24}[facts]
    assert not found.verify().failed
