"""Two linked tables: counted and bounded unit by unit, released under one loss, and made to agree."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.cli.app import run
from policygraph.curator.counting.linked import count_linked
from policygraph.curator.requests import count_part
from policygraph.demo import made_up
from policygraph.estimation import linked as estimation
from policygraph.files import dumps, loads
from tests.broken import linked as broken
from tests.curator.test_engines import load
from tests.oracles import linked as oracle
from tests.oracles.units import place

SPEC = {
    "dwellings": {"key": "id", "attributes": {"area": ["n", "s"]}},
    "persons": {"in": "dwellings", "foreign_key": "home", "at_most": 2, "attributes": {"age": ["c", "a"]}},
}
HOMES = pg.LinkedTables(SPEC)
QUERY = pg.queries.linked(HOMES, [("dwellings", ["area", "persons"]), ("persons", ["area", "age"])])
IDS = ["1", "b", "é", "e\u0301"]


TEXT = pa.string()


def tables_of(dwellings, persons, kind=TEXT):
    ids, areas = zip(*dwellings, strict=True) if dwellings else ([], [])
    whose, ages = zip(*persons, strict=True) if persons else ([], [])
    return {
        "dwellings": pa.table({"id": pa.array(ids, kind), "area": pa.array(areas, pa.string())}),
        "persons": pa.table({"home": pa.array(whose, kind), "age": pa.array(ages, pa.string())}),
    }


def literal(dwellings, persons, policy):
    """What is counted, straight from the definition: the rule first, then each unit by itself."""
    key = hashlib.sha256(f"policygraph linked tables {policy.fingerprint}".encode()).hexdigest()
    most = policy.tables.at_most
    units = []
    for name, area in dwellings:
        if area == "?":
            continue
        rows = ["ca".index(age) for whose, age in persons if whose == name and age != "?"]
        order = {(c, j): place(key, name, c, j, most) for c in (0, 1) for j in range(len(rows))}
        # No more than so many of one value can count; which of them is all the same.
        few = [value for value in (0, 1) for _ in range(min(rows.count(value), most))]
        units.append((("n", "s").index(area), oracle.bounded(few, most, order)))
    return oracle.counted(units, 2, 2, most)


HOUSES = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from("ns?")), unique_by=lambda row: row[0])
PERSONS = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from("ca?")), max_size=14)


@given(dwellings=HOUSES, persons=PERSONS, most=st.integers(1, 3))
@settings(max_examples=15)
def test_each_unit_is_bounded_by_itself(dwellings, persons, most):
    persons = [row for row in persons if row[0] in dict(dwellings)]
    tables = pg.LinkedTables({**SPEC, "persons": {**SPEC["persons"], "at_most": most}})
    policy = pg.LinkedUnit(tables, unknown="drop")
    counts = count_linked(tables_of(dwellings, persons), policy).vector()
    assert counts.tolist() == literal(dwellings, persons, policy)
    policy.check_table(counts)
    # One unit more or less changes its own counts and no others.
    for at in range(len(dwellings))[:2]:
        rest = dwellings[:at] + dwellings[at + 1 :]
        fewer = [row for row in persons if row[0] != dwellings[at][0]]
        less = count_linked(tables_of(rest, fewer), policy).vector()
        assert np.array_equal(less, counts) or policy.are_neighbours(counts, less)


def test_keys_that_are_numbers_and_texts_are_one():
    rows = [("1", "n"), ("2", "s")], [("1", "c"), ("1", "a"), ("1", "a"), ("2", "a")]
    texts = tables_of(*rows)
    numbers = tables_of(*([(int(k), v) for k, v in side] for side in rows), pa.int32())
    mixed = {"dwellings": texts["dwellings"], "persons": numbers["persons"]}
    policy = pg.LinkedUnit(HOMES)
    counted = [count_linked(each, policy).vector().tolist() for each in (texts, numbers, mixed)]
    assert counted[0] == counted[1] == counted[2]


def test_tables_on_a_server_are_counted_as_in_memory(postgres_server):
    """Rows that fit no cell too; the same rows of a unit are kept, and the requests are one."""
    tables = tables_of(
        [(key, value) for key, value in zip(IDS, ["n", "s", "s", "elsewhere"], strict=True)],
        [(key, age) for key in (*IDS, "1", "1", "é") for age in ("c", "a", "none")],
    )
    served = {
        name: load(postgres_server, name, table, ["text"] * table.num_columns)
        for name, table in tables.items()
    }
    policy = pg.LinkedUnit(HOMES, unknown="drop")
    here, there = (count_linked(data, policy) for data in (tables, served))
    assert here.vector().any()
    assert there.vector().tolist() == here.vector().tolist()
    assert there.fingerprint == here.fingerprint
    with pytest.raises(pg.DataError) as refusal:
        count_linked(served, pg.LinkedUnit(HOMES))
    assert refusal.value.code == "data.unknown-value"


@pytest.mark.parametrize(
    ("dwellings", "persons", "code"),
    [
        ([("1", "n"), ("1", "s")], [], "linked.key"),
        ([("1", "n")], [("2", "c")], "linked.foreign-key"),
        ([("1", "n")], [(None, "c")], "unit.missing"),
        ([(None, "n")], [], "unit.missing"),
        ([("1", "x")], [], "data.unknown-value"),
        ([("1", "n")], [("1", "x")], "data.unknown-value"),
        ([("1", "n")] * 0, [("1", "c")], "linked.foreign-key"),
    ],
)
def test_bad_data_are_one_sentence_and_nothing_is_charged(dwellings, persons, code, tmp_path):
    book = pg.Ledger(tmp_path / "budget.db")
    with pytest.raises(pg.DataError) as refusal:
        pg.release(
            QUERY,
            pg.LinkedUnit(HOMES),
            tables_of(dwellings, persons),
            epsilon=1,
            ledger=book,
            dataset="town",
            rng=pg.SeededRng(1),
        )
    assert refusal.value.code == code
    assert all(not account.charges for account in book.datasets())


def test_more_bad_data():
    policy = pg.LinkedUnit(HOMES)
    good = tables_of([("1", "n")], [("1", "c")])
    for data, code in (
        ({"dwellings": good["dwellings"]}, "linked.data"),
        ([0] * HOMES.domain.size, "linked.data"),
        ({**good, "persons": good["dwellings"]}, "data.missing-column"),
        ({**good, "persons": pa.table({"home": [1.5], "age": ["c"]})}, "unit.type"),
    ):
        with pytest.raises(pg.PolicyGraphError) as refusal:
            pg.release(QUERY, policy, data, epsilon=1, rng=pg.SeededRng(1))
        assert refusal.value.code == code
    for wrong in ({"dwellings": 2}, {"persons": 2}):
        with pytest.raises(pg.ConstraintError) as broken_total:
            pg.release(QUERY, pg.LinkedUnit(HOMES, wrong), good, epsilon=1, rng=pg.SeededRng(1))
        assert broken_total.value.code == "linked.total"
    with pytest.raises(pg.RefusedError) as parts:
        count_part(good, QUERY, policy)
    assert parts.value.code == "linked.records"


TOWN = tables_of(
    [(str(n), "ns"[n % 2]) for n in range(60)], [(str(n % 50), "ca"[n % 3 > 0]) for n in range(90)]
)


def test_a_release_says_what_a_unit_and_a_single_person_lose(tmp_path):
    book = pg.Ledger(tmp_path / "budget.db")
    policy = pg.LinkedUnit(HOMES)
    made = pg.release(QUERY, policy, TOWN, epsilon=1, ledger=book, dataset="town", rng=pg.SeededRng(1))
    assert made.policy == policy
    assert made.query == QUERY
    assert made.record["unit"]["loss"] == pg.Epsilon(1).to_json()
    assert made.record["unit"]["loss_of_one_member"] == pg.Epsilon(1).to_json()
    assert "a single one of the persons is hidden at" in " ".join(made.sentences)
    alone = pg.queries.linked(HOMES, [("dwellings", ["area"]), ("persons", ["age"])])
    squared = pg.release(alone, policy, TOWN, rho=1, rng=pg.SeededRng(1))
    assert squared.record["unit"]["loss_of_one_member"] == pg.Rho("2/5").to_json()
    assert (
        squared.record["unit"]["loss_of_one_member_in_other_terms"]
        == pg.Rho("2/5").to_epsilon_delta("1e-6").to_json()
    )
    # The same request is on record, whatever order the tables are given in; another loss is another one.
    again = pg.release(
        QUERY,
        policy,
        dict(reversed(TOWN.items())),
        epsilon=1,
        ledger=book,
        dataset="town",
        rng=pg.SeededRng(1),
    )
    assert again.values(0).tolist() == made.values(0).tolist()
    assert [each.charges for each in book.datasets()] == [1]
    with pytest.raises(pg.PolicyGraphError):
        pg.release(
            pg.queries.identity(HOMES.domain),
            pg.LinkedUnit(HOMES, {"dwellings": 60}),
            TOWN,
            epsilon=1,
            ledger=book,
            dataset="town",
            rng=pg.SeededRng(1),
        )
    assert [each.charges for each in book.datasets()] == [1]


@pytest.mark.parametrize("make", [pg.Adaptive, pg.Exponential])
def test_other_mechanisms_refuse_in_a_sentence(make):
    with pytest.raises(pg.PolicyGraphError) as refusal:
        pg.release(
            pg.queries.identity(HOMES.domain),
            pg.LinkedUnit(HOMES),
            TOWN,
            epsilon=1,
            mechanism=make(),
            rng=pg.SeededRng(1),
        )
    assert "linked tables" in str(refusal.value)


@given(seed=st.integers(0, 10**6), known=st.sets(st.sampled_from(["dwellings", "persons"])))
@settings(max_examples=10)
def test_published_tables_agree_everywhere(seed, known):
    """As many persons as the dwellings say, in every area, whole, not negative, with the public totals."""
    counts = count_linked(TOWN, pg.LinkedUnit(HOMES)).vector()
    own = {"dwellings": int(counts[: HOMES.rows].sum()), "persons": int(counts[HOMES.rows :].sum())}
    policy = pg.LinkedUnit(HOMES, {name: own[name] for name in known})
    query = pg.queries.linked(
        HOMES,
        [
            ("dwellings", ["area"]),
            ("dwellings", ["persons"]),
            ("dwellings", ["area", "persons"]),
            ("persons", ["area"]),
            ("persons", ["age"]),
        ],
        [1, 1, 1, 2, 1],
    )
    noisy = pg.release(query, policy, TOWN, epsilon="1/4", rng=pg.SeededRng(seed))
    made = pg.agreeing(noisy)
    area, size, both, persons, age = (np.asarray(table.values) for table in made.tables)
    assert all(table.values.dtype.kind == "i" and (table.values >= 0).all() for table in made.tables)
    by_area = both.reshape(2, 3)
    assert by_area.sum(axis=1).tolist() == area.tolist()
    assert by_area.sum(axis=0).tolist() == size.tolist()
    assert (by_area @ [0, 1, 2]).tolist() == persons.tolist()
    assert persons.sum() == age.sum()
    assert "dwellings" not in known or area.sum() == own["dwellings"]
    assert "persons" not in known or age.sum() == own["persons"]
    # Stated errors are what the noise alone was said to be off, and how far the numbers were moved.
    for before, after in zip(noisy.tables, made.tables, strict=True):
        moved = np.abs(after.values - np.asarray(before.values))
        assert np.allclose(after.within_95, moved + before.within_95)
        assert after.errors == "bound"
    assert pg.agreeing(made) is made


def test_what_cannot_agree_is_told(monkeypatch):
    plain = pg.Policy(pg.Domain({"a": 2}))
    other = pg.release(pg.queries.identity(plain.domain), plain, [1, 2], epsilon=1, rng=pg.SeededRng(1))
    with pytest.raises(pg.InputError) as refusal:
        pg.agreeing(other)
    assert refusal.value.code == "agree.release"
    made = pg.release(QUERY, pg.LinkedUnit(HOMES), TOWN, epsilon=1, rng=pg.SeededRng(1))
    monkeypatch.setattr(estimation, "MOST_CELLS", 3)
    with pytest.raises(pg.RefusedError) as size:
        pg.agreeing(made)
    assert size.value.code == "agree.size"


FILE = """
[tables.dwellings]
key = "id"
attributes = {area = ["n", "s"], rooms = {bins = [1, 3]}, kind = 2}
total = 40

[tables.persons]
in = "dwellings"
foreign_key = "home"
at_most = 3
attributes = {age = {bins = [0, 18]}}

[[release]]
table = "dwellings"
by = ["area", "persons"]
weight = 2

[[release]]
table = "persons"
by = ["area", "age"]
"""


def test_files_state_linked_tables():
    file = loads(FILE)
    assert isinstance(file.policy, pg.LinkedUnit)
    assert file.policy.totals == (("dwellings", 40),)
    assert file.query == pg.queries.linked(
        file.policy.tables, [("dwellings", ["area", "persons"]), ("persons", ["area", "age"])], [2, 1]
    )
    again = loads(dumps(file.policy, file.releases))
    assert (again.policy, again.query) == (file.policy, file.query)
    every = loads(FILE.partition("[[release]]")[0])
    assert [part.name for part in every.query.parts] == [
        "dwellings by area x rooms x kind x persons",
        "persons by area x rooms x kind x age",
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('in = "dwellings"', 'in = "streets"'), "points nowhere"),
        (("at_most = 3", "at_most = 0"), "at least 1"),
        (('table = "persons"', 'table = "streets"'), "'streets': expected 'dwellings' or 'persons'"),
        (('by = ["area", "age"]', 'by = ["age", "sex"]'), "expected some of area, rooms, kind, age"),
        (("[[release]]", "[neighbours]\ngraph = 'line'\n[[release]]"), "has only [[release]] and [data]"),
        (('table = "persons"', 'cuboid = ["age"]'), "expected table, by, weight and mechanism"),
        (('key = "id"', 'key = "area"'), "is also an attribute"),
    ],
)
def test_mistakes_in_files_are_named(change, words):
    with pytest.raises(pg.InputError) as refusal:
        loads(FILE.replace(*change, 1))
    assert words in str(refusal.value)


def test_made_up_records_and_further_facts_are_not_for_linked_tables():
    with pytest.raises(pg.RefusedError) as refusal:
        made_up(loads(FILE), 10)
    assert refusal.value.code == "linked.records"
    assert "one row of dwellings" in str(pg.attack(QUERY, pg.LinkedUnit(HOMES), 1))


def test_the_command_releases_linked_tables_that_agree(tmp_path, capsys):
    (tmp_path / "policy.toml").write_text(FILE.replace("rooms = {bins = [1, 3]}, kind = 2", "rooms = 2"))
    homes = "id,area,rooms\n" + "".join(f"{n},{'ns'[n % 2]},{n % 2}\n" for n in range(40))
    (tmp_path / "homes.csv").write_text(homes)
    (tmp_path / "people.csv").write_text("home,age\n" + "".join(f"{n % 40},{n}\n" for n in range(70)))
    data = f"dwellings={tmp_path}/homes.csv,persons={tmp_path}/people.csv"
    made_by = ["release", str(tmp_path / "policy.toml"), "--data", data, "--epsilon", "1", "--seed", "1"]
    assert run([*made_by, "--agreeing", "--out", str(tmp_path / "out"), "--report"]) == 0
    capsys.readouterr()
    made = json.loads((tmp_path / "out" / "release.json").read_text())
    first, second = (np.array(table["values"]) for table in made["tables"])
    assert (first.reshape(2, 4) @ [0, 1, 2, 3]).tolist() == second.reshape(2, 2).sum(axis=1).tolist()
    assert first.sum() == 40
    assert run(["sensitivity", str(tmp_path / "policy.toml"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["unit"], told["at_most"]) == ("dwellings", 4)
    assert run(["explain", str(tmp_path / "policy.toml")]) == 0
    assert "two tables, dwellings (id says which)" in capsys.readouterr().out


def test_the_audit_passes_one_loss_for_both_tables():
    mechanism, policy, query = broken.sound()
    how = {"loss": pg.Epsilon(1), "samples": 4000, "rng": pg.SeededRng(1)}
    assert pg.audit(mechanism, policy, query, **how, **broken.OPTIONS).passed


def test_linked_tables_do_not_escape_the_accounts_of_their_tables(tmp_path):
    """A table that has an account of its own is charged there, or nowhere."""
    book, policy = pg.Ledger(tmp_path / "budget.db"), pg.LinkedUnit(HOMES)
    with pytest.raises(pg.InputError) as unnamed:
        pg.release(QUERY, policy, TOWN, epsilon=1, ledger=book)
    assert unnamed.value.code == "linked.dataset"
    persons = pg.Domain({"age": ["c", "a"]})
    pg.release(
        pg.queries.identity(persons),
        pg.Policy(persons),
        TOWN["persons"],
        epsilon=1,
        ledger=book,
        dataset="people",
    )
    book.set_limit("people", pg.Epsilon(1))
    with pytest.raises(pg.InputError) as other:
        pg.release(QUERY, policy, TOWN, epsilon=50, ledger=book, dataset="town")
    assert other.value.code == "linked.dataset"
    with pytest.raises(pg.BudgetError):
        pg.release(QUERY, policy, TOWN, epsilon=50, ledger=book, dataset="people")
    assert [each.charges for each in book.datasets()] == [1]


@pytest.mark.parametrize("on_server", [False, True])
def test_one_of_two_linked_tables_has_no_account_of_its_own_afterwards(on_server, tmp_path, request):
    """Whoever is asked for first, what is spent on the persons alone and on both tables adds up."""
    place = tmp_path / "budget.db"
    if on_server:
        place = request.getfixturevalue("postgres_server").url(ledger="linked_members")
    book, policy = pg.Ledger(place), pg.LinkedUnit(HOMES)
    pg.release(QUERY, policy, TOWN, epsilon=1, ledger=book, dataset="town")
    book.set_limit("town", pg.Epsilon(1))
    persons = pg.Domain({"age": ["c", "a"]})
    query, records = pg.queries.identity(persons), pg.Policy(persons)
    with pytest.raises(pg.BudgetError):
        pg.release(query, records, TOWN["persons"], epsilon=1, ledger=book)
    with pytest.raises(pg.BudgetError):
        pg.release(query, records, TOWN["persons"], epsilon=1, ledger=book, compose_policies=True)
    with pytest.raises(pg.BudgetError):
        pg.release(query, records, TOWN["persons"], epsilon=1, ledger=book, dataset="people")
    # Neither do the same persons in other dwellings.
    elsewhere = pa.table({"id": TOWN["dwellings"]["id"], "area": TOWN["dwellings"]["area"].to_pylist()[::-1]})
    moved = {**TOWN, "dwellings": elsewhere}
    with pytest.raises(pg.InputError) as again:
        pg.release(QUERY, policy, moved, epsilon=1, ledger=book, dataset="village")
    assert again.value.code == "linked.dataset"
    with pytest.raises(pg.BudgetError):
        pg.release(QUERY, policy, moved, epsilon=1, ledger=book, dataset="town")
    assert [(each.name, each.charges) for each in book.datasets()] == [("town", 1)]
    book.set_limit("town", pg.Epsilon(2))
    pg.release(QUERY, policy, moved, epsilon="1/2", ledger=book, dataset=book.open_account("health", "town"))
    assert book.account("town").spent == pg.Epsilon("3/2")
    book.set_limit("town", pg.Epsilon(9))
    with pytest.raises(pg.InputError) as other:
        pg.release(
            query, records, TOWN["persons"], epsilon=1, ledger=book, dataset="people", compose_policies=True
        )
    assert other.value.code == "ledger.name"
    assert pg.Ledger(place).history("town")[-1].name == "town"


def test_linked_tables_have_no_edges():
    with pytest.raises(pg.InputError) as refusal:
        pg.release(QUERY, pg.LinkedUnit(HOMES), TOWN, epsilon=1, edges={"loops": "drop"})
    assert refusal.value.code == "release.edges"


def test_another_rule_for_unknown_values_is_another_policy(tmp_path):
    """A release that left rows out must not be given to somebody who asked for none to be."""
    strict, lax = (pg.LinkedUnit(HOMES, unknown=rule) for rule in ("error", "drop"))
    assert strict.fingerprint != lax.fingerprint
    book = pg.Ledger(tmp_path / "budget.db")
    odd = {**TOWN, "persons": pa.table({"home": ["0", "0"], "age": ["c", "?"]})}
    pg.release(QUERY, lax, odd, epsilon=1, ledger=book, dataset="town")
    with pytest.raises(pg.DataError):
        pg.release(QUERY, strict, odd, epsilon=1, ledger=book, dataset="town")


def test_attributes_in_another_order_are_other_tables():
    """Cells are numbered in the order of the attributes: a query over the other order would be published under wrong names."""
    one, two = (
        pg.LinkedTables(
            {
                "d": {"key": "id", "attributes": {"area": 2}},
                "p": {"in": "d", "foreign_key": "home", "at_most": 2, "attributes": attributes},
            }
        )
        for attributes in ({"sex": 2, "ill": 2}, {"ill": 2, "sex": 2})
    )
    queries = [pg.queries.linked(tables, [("p", ["sex"])]) for tables in (one, two)]
    assert queries[0] != queries[1]
    assert pg.LinkedUnit(one).fingerprint != pg.LinkedUnit(two).fingerprint
    with pytest.raises(pg.InputError) as refusal:
        pg.sensitivity(queries[1], pg.LinkedUnit(one))
    assert refusal.value.code == "linked.other"
