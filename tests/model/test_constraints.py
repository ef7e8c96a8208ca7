import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.errors import ConstraintError, InputError
from policygraph.model.constraints import (
    Cell,
    Cells,
    Cuboid,
    Degrees,
    LinearCount,
    StructuralZero,
    Total,
    count,
)
from policygraph.model.domain import Domain, Network
from policygraph.model.policy import Policy
from policygraph.model.system import System
from tests.oracles.sensitivity import cells, margin_rows

DOMAIN = Domain({"a": ["x", "y"], "b": 3, "c": 2})


def dense(constraint, domain):
    rows = constraint.rows(domain)
    out = np.zeros((rows.height, domain.size), dtype=int)
    np.add.at(out, (rows.row, rows.cell), rows.coefficient)
    return out


FACTS = [
    Total(),
    Cuboid(),
    Cuboid("a"),
    Cuboid("c", "a"),
    Cuboid("a", "b", "c"),
    Cells(["b"], [0, 2]),
    Cells(["c", "a"], [[1, "x"], [0, "y"]]),
    Cell(a="x", b=1),
    count({"a": "x", "b": [0, 1]}),
    LinearCount([({"a": "x"}, 2), (["y", 1, 1], -3)]),
    StructuralZero([["x", 0, 0], {"b": 2, "c": 1}]),
]


@pytest.mark.parametrize("fact", FACTS, ids=lambda f: str(f.to_spec()))
def test_rows_over_some_cells_are_the_same_rows(fact):
    at = np.array([11, 3, 7, 0, 2])
    some = fact.rows_on(DOMAIN, at)
    out = np.zeros((some.height, len(at)), dtype=int)
    np.add.at(out, (some.row, some.cell), some.coefficient)
    assert (out == dense(fact, DOMAIN)[:, at]).all()
    table = np.arange(12)
    assert (fact.sums(DOMAIN, table) == dense(fact, DOMAIN) @ table).all()


def test_rows_of_margins_are_the_literal_ones():
    for names in [("a",), ("a", "c"), ("b", "c"), ("a", "b", "c")]:
        assert dense(Cuboid(*names), DOMAIN).tolist() == margin_rows(DOMAIN, names)
    assert dense(Total(), DOMAIN).tolist() == [[1] * 12]


def test_rows_of_counts_and_cells_are_the_literal_ones():
    records = cells(DOMAIN)
    assert dense(FACTS[6], DOMAIN).tolist() == [
        [int(r["c"] == 1 and r["a"] == "x") for r in records],
        [int(r["c"] == 0 and r["a"] == "y") for r in records],
    ]
    assert dense(FACTS[9], DOMAIN).tolist() == [
        [2 * (r["a"] == "x") - 3 * (r == {"a": "y", "b": 1, "c": 1}) for r in records]
    ]
    assert FACTS[10].forbidden(DOMAIN).tolist() == [
        i for i, r in enumerate(records) if r == {"a": "x", "b": 0, "c": 0} or (r["b"] == 2 and r["c"] == 1)
    ]


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_degrees_count_ends(directed, loops):
    network = Network(4, directed=directed, loops=loops)
    sides = ["in", "out"] if directed else ["both"]
    for side in sides:
        rows = dense(Degrees([2, 0], side=side), network)
        for cell in range(network.size):
            u, v = network.cell(cell)
            ends = {"both": [u, v], "out": [u], "in": [v]}[side]
            assert rows[:, cell].tolist() == [ends.count(2), ends.count(0)]


def test_redundant_facts_are_found():
    system = System(DOMAIN, [Cuboid("a"), Cuboid("a", "b"), Total(), Cells(["b"], [0]), Cuboid("a")])
    assert [c.to_spec() for c in system.needed] == [{"cuboid": ["a", "b"]}]
    assert System(DOMAIN, [Total(), Cuboid()]).matrix().shape[0] == 1
    assert len(System(Network(3), [Degrees(), Degrees([1]), Total()]).needed) == 1


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(FACTS[:10]), min_size=1, max_size=4, unique=True))
def test_dropping_redundant_facts_keeps_the_kernel(facts):
    system = System(DOMAIN, facts)
    full = np.concatenate([dense(f, DOMAIN) for f in facts])
    kept = system.matrix().toarray()
    both = np.concatenate([full, kept])
    assert np.linalg.matrix_rank(kept) == np.linalg.matrix_rank(full) == np.linalg.matrix_rank(both)


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        ([Total(equals=3), Cuboid("a", equals=[1, 1])], 2),
        (
            [
                Cuboid("a", "b", equals=[[1, 1, 1], [1, 1, 1]]),
                Cuboid("c", equals=[2, 4]),
                Cuboid("b", "c", equals=[[1, 0], [1, 2], [0, 2]]),
            ],
            2,
        ),
        ([Total(equals=1), Cell(a="x", b=0, equals=2)], 2),
        ([Cell(a="x", equals=1), Total(equals=9), count({"a": "x", "b": [0, 1, 2]}, equals=2)], 2),
        ([LinearCount([({"a": "x"}, 2), ({"a": "y"}, 2)], equals=3), Total(equals=9)], 1),
        ([StructuralZero([{"a": "x"}]), Cuboid("a", equals=[1, 0])], 1),
    ],
)
def test_contradictions_name_a_smallest_set(facts, named):
    with pytest.raises(ConstraintError) as caught:
        Policy(DOMAIN, constraints=facts)
    assert caught.value.code == "constraint.contradiction"
    assert len(caught.value.details["constraints"]) == named


@pytest.mark.parametrize(
    ("degrees", "fits"),
    [
        ([1, 1, 1, 1], True),
        ([3, 1, 1, 1], True),
        ([3, 3, 1, 1], False),
        ([1, 1, 1, 0], False),
        ([4, 1, 1, 2], False),
    ],
)
def test_degree_sequences_must_be_those_of_a_graph(degrees, fits):
    if fits:
        Policy(Network(4), constraints=[Degrees(equals=degrees)])
        return
    with pytest.raises(ConstraintError):
        Policy(Network(4), constraints=[Degrees(equals=degrees)])


def test_consistent_values_are_accepted_and_data_are_checked():
    policy = Policy(DOMAIN, constraints=[Cuboid("a", equals=[2, 1]), Total(equals=3)])
    table = np.zeros(12, dtype=int)
    table[[0, 1, 6]] = 1
    policy.system.check(table)
    table[6], table[5] = 0, 1
    with pytest.raises(ConstraintError) as caught:
        policy.system.check(table)
    assert "a = x is not the published 2" in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cuboid("a", "a"),
        lambda: Cells([], [[]]),
        lambda: Cells(["a"], []),
        lambda: Cells(["a"], ["x", "x"]),
        lambda: LinearCount([]),
        lambda: LinearCount([({"a": "x"}, 1.5)]),
        lambda: StructuralZero([]),
        lambda: Degrees([]),
        lambda: Degrees("some"),
        lambda: Policy(DOMAIN, constraints=[Cuboid("z")]),
        lambda: Policy(DOMAIN, constraints=[Cells(["a"], ["z"])]),
        lambda: Policy(DOMAIN, constraints=[Degrees()]),
        lambda: Policy(Network(3), constraints=[Cuboid("a")]),
        lambda: Policy(Network(3, directed=True), constraints=[Degrees()]),
        lambda: Policy(Network(3), constraints=[Degrees(side="in")]),
        lambda: Policy(DOMAIN, constraints=[Cuboid("a", equals=[1])]),
        lambda: Policy(DOMAIN, constraints=[Cuboid("a", equals=[1, -1])]),
        lambda: Policy(DOMAIN, constraints=[Total(equals=1.5)]),
        lambda: Policy(DOMAIN, strength="weak"),
        lambda: Policy(DOMAIN, at_most_records=0),
        lambda: Policy(DOMAIN, constraints=["sex"]),
        lambda: Policy(DOMAIN, unknown="skip"),
        lambda: Policy(DOMAIN, unknown={"a": "z"}),
    ],
)
def test_bad_facts_are_errors_when_they_are_made(make):
    with pytest.raises(InputError):
        make()
