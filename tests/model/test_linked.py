"""Linked tables: neighbours, sensitivities and certificates against data sets that are listed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.audit.exact import exact_check
from policygraph.explain import explain
from policygraph.sensitivity import Sensitivity
from policygraph.sensitivity import linked as engine
from policygraph.sensitivity.linked import member_loss, of_member
from tests.oracles import linked as oracle

GROUPS, VALUES, MOST = 2, 2, 2
KNOWN = {
    "none": {},
    "outer": {"dwellings": 9},
    "inner": {"persons": 12},
    "both": {"dwellings": 9, "persons": 12},
}


def homes(groups=GROUPS, values=VALUES, most=MOST):
    return pg.LinkedTables(
        {
            "dwellings": {"key": "id", "attributes": {"area": groups}},
            "persons": {
                "in": "dwellings",
                "foreign_key": "dwelling",
                "at_most": most,
                "attributes": {"age": values},
            },
        }
    )


TABLES = homes()
EVERY = [("dwellings", ()), ("dwellings", ("area",)), ("dwellings", ("persons",)), ("dwellings", ("area", "persons")),
         ("persons", ()), ("persons", ("area",)), ("persons", ("age",)), ("persons", ("area", "age"))]  # fmt: skip


@cache
def changes(known, groups=GROUPS, values=VALUES, most=MOST, units=2):
    """All changes of counts that the policy hides, as a matrix."""
    every = oracle.units(groups, values, most)
    made = oracle.exchanges(every, frozenset(known), units)
    rows = {
        tuple(
            np.array(oracle.counted(come, groups, values, most))
            - np.array(oracle.counted(gone, groups, values, most))
        )
        for gone, come in made
    }
    return np.array(sorted(rows))


def largest(query, found, norm):
    answers = np.asarray(query.columns(range(query.domain.size)).toarray()) @ found.T
    return int((np.abs(answers).sum(axis=0) if norm == "l1" else (answers * answers).sum(axis=0)).max())


def queries_of(data):
    if data.draw(st.booleans()):
        asked = data.draw(st.lists(st.sampled_from(EVERY), min_size=1, max_size=4, unique=True))
        weights = data.draw(st.lists(st.integers(1, 3), min_size=len(asked), max_size=len(asked)))
        return pg.queries.linked(TABLES, asked, weights)
    size = TABLES.domain.size
    rows = st.lists(st.integers(-2, 2), min_size=size, max_size=size)
    return pg.queries.matrix(TABLES.domain, data.draw(st.lists(rows, min_size=1, max_size=3).filter(np.any)))


@given(data=st.data(), known=st.sampled_from(["none", "outer"]), norm=st.sampled_from(["l1", "l2"]))
@settings(max_examples=60)
def test_the_sensitivity_is_the_largest_change_of_a_unit_or_of_an_exchange_of_two(data, known, norm):
    query = queries_of(data)
    policy = pg.LinkedUnit(TABLES, KNOWN[known])
    found = pg.sensitivity(query, policy, norm=norm)
    best = largest(query, changes((known,), units=1), norm)
    assert found.exact
    assert found.power == best
    checked = found.verify()
    assert checked.ok, str(checked)
    assert Sensitivity.from_json(found.to_json()) == found


@given(data=st.data(), known=st.sampled_from(["outer", "inner", "both"]), norm=st.sampled_from(["l1", "l2"]))
@settings(max_examples=25)
def test_exchanges_that_keep_public_totals_are_within_the_bound(data, known, norm):
    """Sums of up to three units on either side, of which two in one place are enough: at_most is 2."""
    names = ("outer", "inner") if known == "both" else (known,)
    query = queries_of(data)
    best = largest(query, changes(names), norm)
    for limit in (engine.WORK, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "WORK", limit)
            found = pg.sensitivity(query, pg.LinkedUnit(TABLES, KNOWN[known]), norm=norm)
        assert found.lower_power <= best <= found.power, (query, found.lower_power, best, found.power)
        assert not found.verify().failed, str(found.verify())


@pytest.mark.parametrize("known", [("inner",), ("outer", "inner")])
def test_exchanges_have_no_more_units_and_rows_than_the_theorem_says(known):
    """One value and one group: what is left are the numbers of rows, up to three; five units on each side are more than any minimal exchange has."""
    most = 3
    every = oracle.units(1, 1, most)
    sizes = [
        (len(g), len(c), sum(len(r) for _, r in g)) for g, c in oracle.exchanges(every, frozenset(known), 5)
    ]
    assert max(rows for _, _, rows in sizes) == most * (most - 1)
    if "outer" in known:
        assert max(g for g, _, _ in sizes) == most
    else:
        assert max(g + c for g, c, _ in sizes) == 2 * most - 1


def test_the_usual_tables_have_exact_values_with_public_totals():
    tables = homes(4, 3, 3)
    query = pg.queries.linked(tables, [("dwellings", ["area"]), ("persons", ["area", "age"])])
    both = pg.LinkedUnit(tables, {"dwellings": 100, "persons": 200})
    assert [pg.sensitivity(query, both).power, pg.sensitivity(query, both).kind] == [2 * 3 + 2 * 6, "exact"]
    inner = pg.LinkedUnit(tables, {"persons": 200})
    assert [pg.sensitivity(query, inner).power, pg.sensitivity(query, inner).kind] == [5 + 2 * 6, "exact"]
    squared = pg.sensitivity(query, inner, norm="l2")
    assert (squared.power, squared.kind) == (9 + 4 + 36 + 36, "exact")
    for found in (pg.sensitivity(query, both), squared):
        assert not found.verify().failed
    # With too few persons for such an exchange the bound is the same, and no pair is shown.
    few = pg.sensitivity(query, pg.LinkedUnit(tables, {"persons": 2}))
    assert (few.power, few.witness, few.verify().failed) == (17, None, False)


def test_totals_that_are_public_and_all_that_follow_are_not_hidden():
    query = pg.queries.linked(TABLES, [("dwellings", []), ("persons", [])])
    assert pg.sensitivity(query, pg.LinkedUnit(TABLES, KNOWN["both"])).power == 0
    said = np.concatenate([np.tile(np.arange(MOST + 1), GROUPS), np.zeros(GROUPS * VALUES)]).astype(int)
    assert (
        pg.sensitivity(pg.queries.matrix(TABLES.domain, [said]), pg.LinkedUnit(TABLES, KNOWN["inner"])).power
        == 0
    )


@given(data=st.data(), known=st.sampled_from(["none", "outer"]))
@settings(max_examples=80)
def test_tables_are_neighbours_only_if_one_unit_or_one_exchange_makes_the_difference(data, known):
    every = oracle.units(GROUPS, VALUES, MOST)
    one, two = (
        data.draw(st.lists(st.sampled_from(every), max_size=3), label=name) for name in ("before", "after")
    )
    if data.draw(st.booleans()) and one:
        two = [*one[1:], data.draw(st.sampled_from(every))] if known == "outer" else one[1:]
    tables = [oracle.counted(each, GROUPS, VALUES, MOST) for each in (one, two)]
    totals = {"dwellings": len(one)} if known == "outer" else {}
    found = pg.LinkedUnit(TABLES, totals).are_neighbours(*tables)
    change = np.array(tables[1]) - np.array(tables[0])
    hidden = {tuple(row) for row in changes((known,), units=1)}
    possible = tuple(change) in hidden or tuple(-change) in hidden
    if known == "outer" and len(two) != len(one):
        possible = False
    if possible and known == "outer":
        # The change is one of an exchange of units; that the units are there is looked for among all data sets with these counts.
        possible = any(
            oracle.counted([*left, gone], GROUPS, VALUES, MOST) == tables[0]
            and oracle.counted([*left, come], GROUPS, VALUES, MOST) == tables[1]
            for left in combinations_with_replacement(every, len(one) - 1)
            for gone in every
            for come in every
        )
    assert bool(found) == possible, found.reason


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_stated_loss_of_one_person_is_no_less_than_that_of_two_neighbouring_dwellings(most):
    """A dwelling with one person more is a dwelling in the place of another: sizes of households move two cells where a dwelling that comes moves one."""
    homes = pg.LinkedTables(
        {
            "dwellings": {"key": "id", "attributes": {"area": 2}},
            "persons": {"in": "dwellings", "foreign_key": "home", "at_most": most, "attributes": {"age": 2}},
        }
    )
    query = pg.queries.linked(homes, [("dwellings", ["persons"])])
    found = pg.sensitivity(query, pg.LinkedUnit(homes))
    assert found.value == 1
    assert member_loss(found, pg.Epsilon(1)) == pg.Epsilon(2)
    assert member_loss(pg.sensitivity(query, pg.LinkedUnit(homes), norm="l2"), pg.Rho(1)) == pg.Rho(2)


def test_one_person_costs_a_share_of_the_dwelling():
    """Every change of one person, after the bound, against the stated price."""
    order = {(value, j): 7 * value + 3 * j % 5 for value in range(2) for j in range(5)}
    every = [
        (group, rows)
        for group in range(GROUPS)
        for n in range(5)
        for rows in combinations_with_replacement(range(VALUES), n)
    ]
    for asked in ([("persons", ["age"])], [("dwellings", ["persons"]), ("persons", ["area", "age"])]):
        query = pg.queries.linked(TABLES, asked)
        for norm in ("l1", "l2"):
            best = 0
            for group, rows in every:
                for at in range(len(rows)):
                    kept = [
                        [(group, oracle.bounded(some, MOST, order))]
                        for some in (rows, rows[:at] + rows[at + 1 :])
                    ]
                    one, two = (np.array(oracle.counted(each, GROUPS, VALUES, MOST)) for each in kept)
                    moved = query.answer(one + 9) - query.answer(two + 9)
                    best = max(best, int(np.abs(moved).sum() if norm == "l1" else (moved * moved).sum()))
            assert of_member(query, pg.LinkedUnit(TABLES), norm) == best


def test_a_changed_certificate_is_found_out():
    query = pg.queries.linked(TABLES, [("dwellings", ["area"]), ("persons", ["age"])])
    for totals in ({}, KNOWN["outer"]):
        found = pg.sensitivity(query, pg.LinkedUnit(TABLES, totals))
        assert found.verify().ok
        assert replace(found, power=found.power - 1, lower_power=found.power - 1).verify().failed
        assert replace(found, witness=replace(found.witness, after=())).verify().failed


def test_audits_and_explanations_know_linked_tables():
    query = pg.queries.linked(TABLES, [("dwellings", ["area", "persons"]), ("persons", ["area", "age"])])
    policy = pg.LinkedUnit(TABLES)
    ready = pg.Laplace().calibrate(query, policy, pg.Epsilon(1))
    assert exact_check(ready).passed
    assert exact_check(ready).value == 1
    records = pg.Laplace().calibrate(query, pg.Policy(TABLES.domain), pg.Epsilon(1))
    assert not exact_check(records, policy).passed
    assert pg.audit(ready, policy, query, rng=pg.SeededRng(1)).passed
    told = str(explain(query, policy))
    assert "one row of dwellings with up to 2 rows of persons" in told
    assert "one of the persons" in told
    assert "one row of dwellings" in str(pg.plan(query, policy, error=50))


def _with(**changed):
    spec = TABLES.to_spec()
    for name, more in changed.items():
        spec[name] = {**spec[name], **more}
    return lambda: pg.LinkedTables(spec)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: pg.LinkedTables({}), "linked.tables"),
        (lambda: pg.LinkedTables({"a": {"key": "k", "attributes": {"x": 2}}, "b": {}}), "linked.tables"),
        (_with(persons={"in": "streets"}), "linked.tables"),
        (_with(persons={"at_most": 0}), "linked.tables"),
        (_with(persons={"foreign_key": ""}), "linked.tables"),
        (_with(persons={"attributes": {"area": 2}}), "linked.tables"),
        (_with(dwellings={"attributes": {"persons": 2}}), "linked.tables"),
        (_with(dwellings={"attributes": {"id": 2}}), "unit.column"),
        (_with(dwellings={"attributes": {"area": 2_000_000}}), "linked.tables"),
        (lambda: pg.LinkedUnit("homes"), "linked.tables"),
        (lambda: pg.LinkedUnit(TABLES, {"streets": 3}), "linked.table"),
        (lambda: pg.LinkedUnit(TABLES, {"persons": -1}), "linked.total"),
        (lambda: pg.LinkedUnit(TABLES, {"persons": 3, "dwellings": 1}), "linked.total"),
        (lambda: pg.LinkedUnit(TABLES, unknown="other"), "linked.unknown"),
        (lambda: pg.LinkedUnit(TABLES).moves(), "linked.records"),
        (lambda: pg.LinkedUnit(TABLES, {"persons": 1}).are_neighbours([0] * 10, [0] * 10), "linked.undecided"),
        (lambda: pg.queries.linked(TABLES, []), "query.empty"),
        (lambda: pg.queries.linked(TABLES, [("persons", ["kind"])]), "linked.attribute"),
        (lambda: pg.queries.linked(TABLES, [("streets", [])]), "linked.table"),
        (lambda: pg.queries.linked(TABLES, [("persons", []), ("persons", [])]), "linked.twice"),
    ],
)  # fmt: skip
def test_what_are_no_linked_tables_is_told(make, code):
    with pytest.raises(pg.PolicyGraphError) as refusal:
        make()
    assert refusal.value.code == code


def test_plain_forms_of_linked_tables_are_read_back():
    policy = pg.LinkedUnit(TABLES, {"persons": 12}, "drop")
    assert pg.LinkedUnit.from_spec(policy.to_spec()) == policy
    assert pg.LinkedUnit.from_spec({"domain": {"a": 2}}) is None
    with pytest.raises(pg.InputError):
        pg.LinkedUnit.from_spec({**policy.to_spec(), "domain": {"row": ["a"]}})
    query = pg.queries.linked(TABLES, [("persons", ["age"])], [2])
    assert pg.queries.from_spec(TABLES.domain, query.to_spec()) == query
