"""Answers that the public facts determine have sensitivity 0 at once, and are released as they are."""

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.explain import explain
from policygraph.sensitivity.rungs.determined import follows, undetermined
from tests.strategies import SHAPES, small_policies


def rank(rows):
    """Rank by elimination with fractions."""
    left = [[Fraction(int(x)) for x in row] for row in rows]
    done = 0
    for column in range(len(left[0]) if left else 0):
        at = next((i for i in range(done, len(left)) if left[i][column]), None)
        if at is None:
            continue
        left[done], left[at] = left[at], left[done]
        for i in range(done + 1, len(left)):
            factor = left[i][column] / left[done][column]
            left[i] = [a - factor * b for a, b in zip(left[i], left[done], strict=True)]
        done += 1
    return done


@settings(max_examples=300, deadline=None)
@given(st.data(), st.integers(1, 6), st.integers(0, 4), st.sampled_from([1, 3, 60, 2**40]))
def test_rows_that_follow_are_those_of_the_row_space(data, cells, facts, most):
    entries = st.lists(st.integers(-most, most), min_size=cells, max_size=cells)
    matrix = data.draw(st.lists(entries, min_size=facts, max_size=facts))
    rows = data.draw(st.lists(entries, min_size=1, max_size=3))
    times = data.draw(st.lists(st.integers(-3, 3), min_size=facts, max_size=facts))
    rows.append([sum(t * row[c] for t, row in zip(times, matrix, strict=True)) for c in range(cells)])
    found = follows(np.array(matrix, dtype=np.int64).reshape(facts, cells), np.array(rows, dtype=np.int64))
    expected = [rank([*matrix, row]) == rank(matrix) if matrix else not any(row) for row in rows]
    assert found.tolist() == expected


def facts_of(policy):
    """The rows that are constant between neighbours, cell by cell."""
    rows = policy.system.matrix().toarray()
    if policy.graph is not None and policy.graph.bottom == "none":
        rows = np.vstack([rows, np.ones((1, policy.domain.size), dtype=np.int64)])
    return rows


@pytest.mark.parametrize("shape", range(len(SHAPES)), ids=[str(s) for s in SHAPES])
def test_combinations_of_facts_have_sensitivity_0_with_no_effort(shape):
    rng = random.Random(shape)
    for policy in small_policies(11 + shape, [SHAPES[shape]]):
        rows = facts_of(policy)
        times = np.array([[rng.randint(-2, 2) for _ in rows] for _ in range(2)], dtype=np.int64)
        query = pg.queries.matrix(policy.domain, (times @ rows).tolist())
        for norm in ("l1", "l2"):
            found = pg.sensitivity(query, policy, norm=norm, effort=0)
            assert (found.power, found.kind, found.witness) == (0, "exact", None), policy.to_spec()
            assert found.verify().ok, str(found.verify())


def test_a_public_table_is_released_as_it_is():
    domain = pg.Domain({"A": 2, "B": 5, "C": 3})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain, "B"), [pg.Cuboid("B")])
    query = pg.queries.cuboids(domain, [["B"]])
    found = pg.sensitivity(query, policy, effort=0)
    assert (found.value, found.kind) == (0, "exact")
    table = np.arange(30)
    for loss in ({"epsilon": 1}, {"rho": 1}):
        made = pg.release(query, policy, table, **loss)
        assert made.table()["value"].to_pylist() == table.reshape(2, 5, 3).sum(axis=(0, 2)).tolist()
        assert "The public facts determine the answers, so no noise was added." in made.sentences


@pytest.mark.parametrize("size", [3, 300])
def test_public_tables_are_left_out_of_a_set_of_tables(size):
    """With the other tables alone the value is the same, whatever the size of the domain."""
    domain = pg.Domain({"a": 2, "b": size, "c": size})
    policy = pg.Policy(domain, pg.PolicyGraph.full(domain), [pg.Cuboid("a", "b")])
    assert undetermined(pg.queries.cuboids(domain, [["a"], ["b"], ["a", "b"], []]), policy) is None
    left = undetermined(pg.queries.cuboids(domain, [["a"], ["c"]], [3, 2]), policy)
    assert (left.sets, left.weights) == ((("c",),), (2,))


def test_a_cap_that_no_change_meets_is_not_said_to_be_a_public_fact():
    domain = pg.Domain({"a": 2, "b": 2})
    policy = pg.Policy(
        domain, pg.PolicyGraph.full(domain), [pg.Cuboid("a"), pg.Cuboid("b")], at_most_records=1
    )
    made = pg.release(pg.queries.identity(domain), policy, [1, 2, 3, 4], epsilon=1)
    assert "The policy does not hide the answers, so no noise was added." in made.sentences
    assert made.sentences[-3].startswith(
        "WARNING: these answers are not hidden at all. No two neighbours differ"
    )
    assert made.record["stages"][0] == made.certificate.warning


@pytest.mark.parametrize(
    ("weaker", "said"),
    [
        ({"at_most_records": 1}, "at most 1 record may be added and as many removed, so that"),
        ({"strength": "markov"}, "only neighbours of markov strength count, so that"),
        (
            {"strength": "markov", "at_most_records": 2},
            "use the strength worst-case or raise at_most_records",
        ),
    ],
)
def test_a_cap_or_a_strength_that_leaves_no_neighbour_is_warned_of(weaker, said):
    domain = pg.Domain({"a": 2, "b": 2, "c": 2})
    facts = [pg.Cuboid("a", "b"), pg.Cuboid("b", "c"), pg.Cuboid("a", "c")]
    query, policy = pg.queries.identity(domain), pg.Policy(domain, constraints=facts, **weaker)
    found = pg.sensitivity(query, policy)
    assert found.power == 0
    assert said in found.warning
    assert found.warning in str(found)
    assert found.warning in str(explain(query, policy))
    assert pg.Sensitivity.from_json(found.to_json()).warning == found.warning
    for loss in ({"epsilon": 1}, {"rho": 1}):
        made = pg.release(query, policy, np.ones(8, dtype=np.int64), **loss)
        assert found.warning in str(made)
    # What the facts determine is no secret, and what the full promise does not hide was never asked to be hidden.
    public = pg.queries.cuboids(domain, [["a", "b"]])
    assert pg.sensitivity(public, policy).warning is None
    assert pg.sensitivity(query, pg.Policy(domain, constraints=facts)).warning is None
    assert pg.sensitivity(query, pg.Policy(domain, pg.PolicyGraph.from_edges(domain, []))).warning is None
