"""Pairs of data sets that have the published values, against listing every table with these values."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.moves.values.longest import presolve_values
from policygraph.moves.values.margins import table_with_margins
from tests.oracles import fibres, strengths
from tests.oracles.sensitivity import margin_rows, query_rows

SHAPES = [(2, 2), (2, 3), (3, 3), (2, 2, 2)]
STRENGTHS = [("worst-case", None), ("markov", None), ("worst-case", 1), ("worst-case", 2), ("positive", None)]


@st.composite
def published(draw):
    """A domain, public tables with the values of a small table, and every table that has them."""
    shape = draw(st.sampled_from(SHAPES))
    domain = pg.Domain({f"a{at}": size for at, size in enumerate(shape)})
    inside = [names for k in range(1, len(shape)) for names in itertools.combinations(domain.names, k)]
    public = draw(st.lists(st.sampled_from(inside), min_size=1, max_size=3, unique=True))
    entries = st.sampled_from([0, 0, 1, 1, 2] if domain.size < 8 else [0, 0, 0, 1])
    table = np.array(draw(st.lists(entries, min_size=domain.size, max_size=domain.size)))
    hidden = draw(st.sampled_from([None, None, *range(len(public))]))
    matrix, values, facts = [], [], []
    for at, names in enumerate(public):
        rows = margin_rows(domain, names)
        known = [int(np.dot(row, table)) for row in rows]
        matrix += rows
        values += [None] * len(rows) if at == hidden else known
        facts.append(pg.Cuboid(*names, equals=None if at == hidden else known))
    bounds = presolve_values(matrix, values)
    # complete only when the values bound every cell, and quick only when they do so by little
    assume(all(most is not None for most in bounds.upper))
    assume(np.prod([most + 1 for most in bounds.upper], dtype=object) <= 20_000)
    listed = [
        x
        for x in itertools.product(*(range(most + 1) for most in bounds.upper))
        if all(b is None or int(np.dot(row, x)) == b for row, b in zip(matrix, values, strict=True))
    ]
    assume(len(listed) <= 60)
    sets = draw(st.lists(st.sampled_from([*inside, domain.names]), min_size=1, max_size=3, unique=True))
    return domain, facts, matrix, listed, sets


@given(published(), st.sampled_from(["l1", "l2"]), st.sampled_from(STRENGTHS))
@settings(max_examples=60, deadline=None)
def test_a_bracket_with_values_holds_and_its_pair_has_them(case, norm, asked):
    domain, facts, matrix, listed, sets = case
    strength, cap = asked
    rows = query_rows(domain, sets).tolist()
    truth = 0
    for before, after in fibres.neighbour_pairs(matrix, listed):
        move = [int(b - a) for a, b in zip(before, after, strict=True)]
        records = max(sum(v for v in move if v > 0), -sum(v for v in move if v < 0))
        if cap is not None and records > cap:
            continue
        if strength == "markov" and not strengths.is_markov(matrix, move):
            continue
        if strength == "positive" and not strengths.is_positive_pair(matrix, before, move):
            continue
        truth = max(truth, strengths.weight(rows, move, norm))
    policy = pg.Policy(domain, constraints=facts, strength=strength, at_most_records=cap)
    found = pg.sensitivity(pg.queries.cuboids(domain, sets), policy, norm=norm)
    assert found.lower_power <= truth <= found.power
    assert found.exact <= (found.power == truth)
    if found.witness is not None:
        assert {tuple(found.table("before").tolist()), tuple(found.table("after").tolist())} <= set(listed)
        assert not found.verify().failed


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_a_table_is_made_exactly_when_there_is_one(data):
    shape = data.draw(st.sampled_from([(2, 2), (2, 3), (2, 2, 2)]))
    cells = list(itertools.product(*map(range, shape)))
    subsets = [axes for k in range(len(shape) + 1) for axes in itertools.combinations(range(len(shape)), k)]
    chosen = data.draw(st.lists(st.sampled_from(subsets), max_size=2, unique=True))
    counts = st.lists(st.integers(0, 2), min_size=len(cells), max_size=len(cells))
    table = np.array(data.draw(counts)).reshape(shape)
    contained = {
        cell: n for cell, n in zip(cells, data.draw(counts), strict=True) if n and data.draw(st.booleans())
    }
    margins = [
        (axes, table.sum(axis=tuple(a for a in range(len(shape)) if a not in axes))) for axes in chosen
    ]
    made = table_with_margins(len(shape), margins, contained)
    taken = np.zeros(shape, dtype=int)
    for cell, count in contained.items():
        taken[cell] = count
    rest = [
        values - taken.sum(axis=tuple(a for a in range(len(shape)) if a not in axes))
        for axes, values in margins
    ]
    # any table with what is left of the margins: listed, cell by cell up to the largest
    largest = max((int(np.max(values)) for values in rest), default=0)
    possible = all(np.min(values) >= 0 for values in rest) and any(
        all(
            np.array_equal(
                np.array(x).reshape(shape).sum(axis=tuple(a for a in range(len(shape)) if a not in axes)),
                values,
            )
            for (axes, _), values in zip(margins, rest, strict=True)
        )
        for x in itertools.product(range(min(largest, 2) + 1), repeat=len(cells))
    )
    if possible:
        assert made is not None
    if made is not None:
        filled = np.zeros(shape, dtype=int)
        for cell, count in made.items():
            assert count > 0
            filled[cell] += count
        assert np.all(filled >= taken)
        for axes, values in margins:
            assert np.array_equal(
                filled.sum(axis=tuple(a for a in range(len(shape)) if a not in axes)), values
            )
    elif margins:
        assert any(np.min(values) < 0 for values in rest)


def test_three_margins_are_not_made_directly():
    with pytest.raises(pg.InputError) as refusal:
        table_with_margins(3, [((0,), [1]), ((1,), [1]), ((2,), [1])], {})
    assert refusal.value.code == "values.margins"


def two_tables(smallest, places=12, bins=5):
    """A policy with two large published tables, as a statistical office has them."""
    domain = pg.Domain({"place": places, "sex": 2, "age": bins, "income": 4})
    by_place = np.full((places, 2), smallest)
    by_age = np.full(bins, 2 * places * smallest // bins)
    by_age[0] += 2 * places * smallest - int(by_age.sum())
    facts = [pg.Cuboid("place", "sex", equals=by_place.tolist()), pg.Cuboid("age", equals=by_age.tolist())]
    return domain, facts


@pytest.mark.parametrize(
    ("strength", "cap", "value"), [("worst-case", None, 58), ("markov", None, 24), ("worst-case", 3, 34)]
)
def test_large_published_values_change_nothing(strength, cap, value):
    """Five bins of age: place x age changes by 10, sex x age by 8 since five records cannot alternate, four tables with income by 10."""
    domain, facts = two_tables(1000)
    query = pg.queries.all_cuboids(domain, up_to=2)
    policy = pg.Policy(domain, constraints=facts, strength=strength, at_most_records=cap)
    found = pg.sensitivity(query, policy)
    assert (found.power, found.exact) == (value, True)
    table = found.table("before").reshape(domain.shape)
    assert table.sum(axis=(2, 3)).tolist() == np.full((12, 2), 1000).tolist()
    assert not found.verify().failed
    assert policy.are_neighbours(found.table("before"), found.table("after"))


def test_positive_neighbours_keep_only_a_pair_that_is_one():
    domain, facts = two_tables(1000, places=3, bins=2)
    found = pg.sensitivity(
        pg.queries.all_cuboids(domain, up_to=2), pg.Policy(domain, constraints=facts, strength="positive")
    )
    assert found.power == 24
    assert found.exact
    domain, facts = two_tables(1000)
    found = pg.sensitivity(
        pg.queries.all_cuboids(domain, up_to=2), pg.Policy(domain, constraints=facts, strength="positive")
    )
    assert (found.power, found.lower_power, found.witness) == (58, 0, None)


def test_a_pair_avoids_labels_that_nobody_has():
    """The first places are empty: the same move between the largest labels has the published values."""
    domain = pg.Domain({"place": 30, "age": 4})
    by_place = [0] * 20 + [50] * 10
    facts = [pg.Cuboid("place", equals=by_place), pg.Cuboid("age", equals=[125] * 4)]
    found = pg.sensitivity(pg.queries.identity(domain), pg.Policy(domain, constraints=facts))
    assert (found.power, found.exact) == (8, True)
    assert min(cell // 4 for cell, _ in found.witness.before) >= 20


def test_small_values_beside_many_moves_leave_a_bound():
    """One record in all of each age: no cycle is excluded one by one, and the bound of large values stays one."""
    domain = pg.Domain({"place": 30, "age": 8})
    facts = [pg.Cuboid("place", equals=[8] + [0] * 29), pg.Cuboid("age", equals=[1] * 8)]
    found = pg.sensitivity(pg.queries.identity(domain), pg.Policy(domain, constraints=facts))
    assert found.power == 0
    facts = [pg.Cuboid("place", equals=[4, 1, 1, 1, 1] + [0] * 25), pg.Cuboid("age", equals=[1] * 8)]
    found = pg.sensitivity(pg.queries.identity(domain), pg.Policy(domain, constraints=facts))
    assert 4 <= found.lower_power <= found.power <= 16


def test_published_values_of_a_million_cells():
    """The table is made from the margins, however many cells it has."""
    domain = pg.Domain({"place": 400, "sex": 2, "age": 100, "income": 20})
    facts = [
        pg.Cuboid("place", "sex", equals=np.full((400, 2), 700).tolist()),
        pg.Cuboid("age", equals=[5600] * 100),
    ]
    found = pg.sensitivity(pg.queries.cuboid(domain, "place", "age"), pg.Policy(domain, constraints=facts))
    assert (found.power, found.exact) == (200, True)


def test_a_cap_beside_two_margins_against_all_minimal_moves():
    domain = pg.Domain({"a": 3, "b": 3, "c": 2})
    public = [("a",), ("b",)]
    matrix = np.array([row for names in public for row in margin_rows(domain, names)])
    from tests.oracles.sensitivity import graver_basis

    moves = graver_basis(matrix)
    for k, sets in itertools.product(
        range(1, 4), ([("a", "b")], [("a", "c"), ("b",), ("c",)], [("a", "b", "c")])
    ):
        few = moves[np.maximum(moves, 0).sum(axis=1) <= k]
        answers = few @ query_rows(domain, sets).T
        policy = pg.Policy(domain, constraints=[pg.Cuboid(*n) for n in public], at_most_records=k)
        for norm, sizes in (("l1", np.abs(answers).sum(axis=1)), ("l2", (answers**2).sum(axis=1))):
            found = pg.sensitivity(pg.queries.cuboids(domain, sets), policy, norm=norm)
            assert found.power == sizes.max(initial=0)
