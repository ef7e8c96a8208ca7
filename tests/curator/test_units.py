"""Records of units are bounded before they are counted, each unit by itself; releases, ledgers and everything else under units."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

import policygraph as pg
from policygraph.cli.app import run
from policygraph.compare import named_mechanism
from policygraph.curator.counting import units
from policygraph.curator.counting.units import Bounded, count_units
from policygraph.curator.histogram import Histogram
from policygraph.curator.requests import count_part, read
from policygraph.demo import made_up
from policygraph.explain import explain
from policygraph.files import dumps, loads
from policygraph.mechanisms.members import OnMembers, for_unit
from policygraph.model.units import steps_between
from tests.broken import units as broken
from tests.oracles import units as oracle

SHOPS = pg.Domain({"shop": ["a", "b", "c"], "hour": 2})
HOMES = pg.LinkedUnit(
    pg.LinkedTables(
        {
            "dwellings": {"key": "id", "attributes": {"area": 2}},
            "persons": {"in": "dwellings", "foreign_key": "home", "at_most": 2, "attributes": {"age": 2}},
        }
    )
)
VISITS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "Ann", "bob", "é", "e\u0301"]),
        st.sampled_from(["a", "b", "c", "?"]),
        st.integers(0, 1),
    ),
    max_size=40,
)


def table_of(rows):
    columns = list(zip(*rows, strict=True)) or [[], [], []]
    types = (pa.string(), pa.string(), pa.int64())
    return pa.table(
        {
            name: pa.array(column, kind)
            for name, column, kind in zip(("person", "shop", "hour"), columns, types, strict=True)
        }
    )


def people(most=3, per_cell=None, unknown="drop", graph=None, **more):
    return pg.Unit(pg.Policy(SHOPS, graph, unknown=unknown), "person", most, per_cell, **more)


def literal(rows, unit):
    """What is kept, straight from the definition: rule first, then each unit by itself."""
    key = hashlib.sha256(f"policygraph unit {unit.fingerprint}".encode()).hexdigest()
    other = dict(unit.unknown) if isinstance(unit.unknown, tuple) else {}
    out = [0] * SHOPS.size
    for person in {row[0] for row in rows}:
        own = [
            (other.get("shop", shop) if shop == "?" else shop, hour)
            for who, shop, hour in rows
            if who == person
        ]
        cells = ["abc".index(shop) * 2 + hour for shop, hour in own if shop != "?"]
        order = {
            (c, j): oracle.place(key, person, c, j, unit.cap) for c in set(cells) for j in range(unit.cap)
        }
        for cell in oracle.bounded(cells, unit.at_most, unit.cap, order):
            out[cell] += 1
    return out


@given(rows=VISITS, most=st.integers(1, 4), data=st.data())
@settings(max_examples=60)
def test_each_unit_is_bounded_by_itself(rows, most, data):
    per_cell = data.draw(st.one_of(st.none(), st.integers(1, most)))
    unit = people(most, per_cell, data.draw(st.sampled_from(["drop", {"shop": "c"}])))
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            patch.setattr(units, "AT_ONCE", 7)
        made = count_units(table_of(rows), unit).vector().tolist()
        if data.draw(st.booleans()):
            patch.setattr(Bounded, "here", Bounded.there)
            assert count_units(table_of(rows), unit).vector().tolist() == made
    assert made == literal(rows, unit)
    # Whoever leaves takes along what was counted of them, and changes nothing else.
    for person in {row[0] for row in rows}:
        others = count_units(table_of([row for row in rows if row[0] != person]), unit).vector()
        gone = np.array(made) - others
        assert gone.min() >= 0
        assert gone.max(initial=0) <= unit.cap
        assert gone.sum() <= most


@given(
    cells=st.lists(
        st.lists(st.sampled_from([0, 1, 2, 7, 2**31 + 5, 2**40]), max_size=30), min_size=1, max_size=4
    ),
    cap=st.integers(1, 4),
    more=st.integers(0, 5),
    words=st.lists(st.integers(0, units.PRIME - 1) | st.just(0), min_size=4, max_size=4),
)
@settings(max_examples=150)
def test_the_compiled_selection_is_that_of_the_definition(cells, cap, more, words):
    """Words of zeros make all records of a unit equal in the order, so that cells and numbers decide."""
    from policygraph.curator.counting._compiled_units import kept

    most = cap + more
    whole = [cell for own in cells for cell in own]
    starts = np.cumsum([0, *map(len, cells)])
    if not whole:
        return
    several = sum(len(own) > most for own in cells)
    found = kept(np.array(whole), starts, np.array([words] * several).reshape(-1, 4), cap, most)
    expected = []
    for own in cells:
        order = {}
        for cell, j in ((cell, j) for cell in set(own) for j in range(cap)):
            x, value = (cell * cap + j) % units.PRIME, 0
            for word in words:
                value = (value * x + word) % units.PRIME
            order[cell, j] = (value, cell, j)
        expected += oracle.bounded(own, most, cap, order)
    assert sorted(found.tolist()) == sorted(expected)


def test_units_that_are_numbers_far_apart_are_told_apart():
    rng = np.random.default_rng(1)
    names = rng.integers(-(2**63), 2**63 - 1, 9000)
    batches = [names[rng.integers(0, 9000, 20_000)] for _ in range(3)]
    found, codes = units._numbered(batches)
    assert all((found[code] == batch).all() for code, batch in zip(codes, batches, strict=True))
    assert len(found) == len(set(found.tolist()))


def test_numbers_texts_and_wide_numbers_name_units_alike():
    numbers = [1, 1, 1, 2, -(2**63), 2**63 - 1, 2**63 - 1]
    rest = {"shop": list("aabcabc"), "hour": [0, 1, 0, 1, 0, 0, 1]}
    unit = people(2, 1)
    kinds = [
        pa.array(numbers, pa.int64()),
        pa.array(list(map(str, numbers))),
        pa.array(list(map(str, numbers))).dictionary_encode(),
    ]
    found = [count_units(pa.table({"person": kind, **rest}), unit).vector().tolist() for kind in kinds]
    assert found[0] == found[1] == found[2]
    assert sum(found[0]) == 2 + 1 + 1 + 2
    wide = pa.table(
        {"person": pa.array([2**64 - 1, 2**64 - 1, 0], pa.uint64()), "shop": list("abc"), "hour": [0, 0, 0]}
    )
    assert count_units(wide, people(1)).rows == 2


def test_a_domain_without_a_vector_is_counted_too():
    domain = pg.Domain({"a": 10**5, "b": 10**5})
    data = pa.table({"person": [1, 1, 1, 2], "a": [7, 7, 99_999, 7], "b": [1, 1, 2, 3]})
    made = count_units(data, pg.Unit(pg.Policy(domain), "person", 2, 1))
    cells, counts = made.filled(("a",))
    assert dict(zip(cells[:, 0].tolist(), counts.tolist(), strict=True)) == {7: 2, 99_999: 1}
    far = pg.Domain(dict.fromkeys("abc", 10**7))
    with pytest.raises(pg.RefusedError) as refusal:
        count_units(data.append_column("c", pa.array([0] * 4)), pg.Unit(pg.Policy(far), "person", 2))
    assert refusal.value.code == "unit.too-large"


BAD_DATA = {
    "unit.missing": pa.table({"person": ["x", None], "shop": ["a", "b"], "hour": [0, 1]}),
    "unit.type": pandas.DataFrame({"person": [1.0, None], "shop": ["a", "b"], "hour": [0, 1]}),
    "data.missing-column": pa.table({"human": ["x"], "shop": ["a"], "hour": [0]}),
    "data.unknown-value": pa.table({"person": ["x"], "shop": ["?"], "hour": [0]}),
    "unit.counts": [1, 2, 3, 4, 5, 6],
}


@pytest.mark.parametrize("code", BAD_DATA)
def test_bad_data_are_one_sentence_and_nothing_is_charged(code, tmp_path):
    query, unit, ledger = pg.queries.identity(SHOPS), people(unknown="error"), tmp_path / "budget.db"
    with pytest.raises(pg.PolicyGraphError) as refusal:
        pg.release(query, unit, BAD_DATA[code], epsilon=1, ledger=ledger)
    assert refusal.value.code == code
    assert not pg.Ledger(ledger).datasets()


def test_more_bad_data(tmp_path):
    rows = "person,shop,hour\nx,a,0\n,b,1\n"
    (tmp_path / "visits.csv").write_text(rows)
    query = pg.queries.identity(SHOPS)
    for columns, code in ((None, "unit.missing"), ({"shop": "person"}, "unit.column")):
        with pytest.raises(pg.DataError) as refusal:
            pg.release(query, people(), str(tmp_path / "visits.csv"), epsilon=1, columns=columns)
        assert refusal.value.code == code
    with pytest.raises(pg.RefusedError) as refused:
        count_part(table_of([("ann", "a", 0)]), None, people())
    assert refused.value.code == "unit.parts"
    with pytest.raises(pg.InputError, match="edge lists"):
        pg.release(query, people(), table_of([("ann", "a", 0)]), epsilon=1, edges={"loops": "drop"})
    with pytest.raises(pg.InputError) as refusal:
        count_units(table_of([("ann", "a", 0)]), people(), engine="abacus")
    assert refusal.value.code == "engine.name"
    part = tmp_path / "counts.parquet"
    count_part(table_of([("ann", "a", 0)]), None, pg.Policy(SHOPS)).write(part)
    with pytest.raises(pg.InputError) as refusal:
        pg.release(query, people(unknown="error"), str(part), epsilon=1)
    assert refusal.value.code == "unit.counts"


@pytest.mark.parametrize("mechanism", [pg.Laplace(), pg.MatrixMechanism("tree")])
def test_a_mechanism_that_is_run_by_hand_takes_no_counts_under_a_unit(mechanism):
    """Nothing has bounded what one unit has in counts that somebody made."""
    line = pg.Domain({"shop": 4})
    unit = pg.Unit(pg.Policy(line), "person", 2)
    ready = for_unit(mechanism, pg.queries.all_ranges(line), unit, pg.Epsilon(1))
    for counts in ([90, 0, 0, 1], np.array([90, 0, 0, 1]), Histogram.of(line, [90, 0, 0, 1])):
        with pytest.raises(pg.InputError) as refusal:
            ready.run(counts, pg.SeededRng(1))
        assert refusal.value.code == "unit.counts"


def test_under_a_graph_that_forbids_it_nothing_is_left_out():
    line = pg.PolicyGraph.product(SHOPS, {"shop": "line"})
    rows = [("ann", "a", 0), ("ann", "c", 0)]
    assert count_units(table_of(rows), people(2, graph=line)).rows == 2
    for unit in (people(1, graph=line), people(2, 1, graph=line)):
        with pytest.raises(pg.DataError) as refusal:
            count_units(table_of([*rows, ("ann", "a", 0)]), unit)
        assert refusal.value.code == "unit.too-many"
    full = pg.PolicyGraph.full(SHOPS)
    assert not people(2, 1, graph=full).enforced
    assert count_units(table_of(rows), people(1, graph=full)).rows == 1
    assert count_units(table_of(rows * 2), people(3, 1, graph=full.with_bottom())).rows == 2


def test_a_release_tells_the_unit_and_nothing_of_what_was_left_out(tmp_path, caplog):
    """Ann has one record that counts, or nine copies of it: the same release, the same log."""
    said = []
    for copies in (1, 9):
        rows = [("ann", "a", 0)] * copies + [("bob", "b", 1)]
        with caplog.at_level(logging.DEBUG):
            caplog.clear()
            made = pg.release(
                pg.queries.identity(SHOPS),
                people(3, 1, within="home"),
                table_of(rows),
                epsilon=1,
                rng=pg.SeededRng(1),
            )
        said.append((json.dumps(made.record, sort_keys=True), made.values().tolist(), caplog.text))
    assert said[0] == said[1]
    record = json.loads(said[0][0])
    assert record["unit"] == {
        "column": "person", "at_most": 3, "per_cell": 1, "within": "home", "loss": {"kind": "epsilon", "value": "1"},
        "loss_of_several": {str(n): {"kind": "epsilon", "value": str(n)} for n in (2, 3, 5)},
        "loss_in_other_terms": {"kind": "rho", "value": "1/2"},
        "loss_of_several_in_other_terms": {"2": {"kind": "rho", "value": "2"}, "3": {"kind": "rho", "value": "9/2"}, "5": {"kind": "rho", "value": "25/2"}},
    }  # fmt: skip
    assert (record["certificate"]["unit"], record["certificate"]["at_most"]) == ("person", 3)
    assert any("A home of n persons" in line for line in record["stages"])


ROWS = [(f"p{at % 40}", "abc"[at * at % 3], at % 2) for at in range(400)]
MECHANISMS = {
    "chosen": None,
    "Laplace": pg.Laplace(),
    "sparse": pg.Sparse(),
    "partitioned": pg.Partitioned(),
    "matrix": pg.MatrixMechanism(),
    "cube": pg.Cube(),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_runs_under_a_unit_at_the_loss_of_its_records(name, tmp_path):
    unit, query = (
        people(3, 1),
        pg.queries.all_cuboids(SHOPS) if name == "cube" else pg.queries.identity(SHOPS),
    )
    ledger = tmp_path / "budget.db"
    how = {"epsilon": 2, "mechanism": MECHANISMS[name], "ledger": ledger}
    made = pg.release(query, unit, table_of(ROWS), **how)
    again = pg.release(query, unit, table_of(ROWS), **how)
    assert [each.values.tolist() for each in made.tables] == [each.values.tolist() for each in again.tables]
    assert (made.policy, made.loss) == (unit, pg.Epsilon(2))
    [account] = pg.Ledger(ledger).datasets()
    assert account.spent == pg.Epsilon(2)
    if name not in ("chosen", "Laplace"):
        assert "each of 3 records at epsilon = 2/3" in " ".join(made.sentences) or "0.6667" in " ".join(
            made.sentences
        )


PEOPLE = """
[domain]
shop = ["a", "b", "c"]
hour = 2
[data]
unknown = "drop"
[unit]
column = "person"
at_most = 3
per_cell = 1
[[release]]
cuboid = ["shop", "hour"]
"""


@pytest.mark.parametrize(
    "how",
    [
        ["--mechanism", "tree"],
        ["--mechanism", "partition"],
        ["--mechanism", "every answer"],
        ["--nonnegative"],
    ],
)
def test_the_command_takes_mechanisms_by_name_under_a_unit(how, tmp_path, capsys):
    file, data, ledger = tmp_path / "people.toml", tmp_path / "visits.csv", tmp_path / "budget.db"
    file.write_text(PEOPLE)
    csv.write_csv(table_of(ROWS), data)
    where = ["--data", str(data), "--out", str(tmp_path / "out"), "--ledger", str(ledger)]
    assert run(["release", str(file), *where, "--epsilon", "3", *how]) == 0
    [account] = pg.Ledger(ledger).datasets()
    assert account.spent == pg.Epsilon(3)
    record = json.loads((tmp_path / "out" / "release.json").read_text())
    assert record["unit"]["at_most"] == 3
    if how[-1] != "every answer":
        assert "each of 3 records at epsilon = 1" in " ".join(record["stages"])
    if how[0] == "--mechanism":
        assert run(["audit", str(file), *how, "--samples", "1000", "--pairs", "1", "--seed", "1"]) == 0
        assert run(["plan", str(file), *how, "--error", "100", "--brief"]) == 0


def test_comparisons_under_a_unit_are_at_the_loss_of_its_records(tmp_path, capsys):
    query, unit = pg.queries.identity(SHOPS), people(3, 1)
    found = pg.compare(query, unit, rho="0.09")
    assert found.best.name == "every answer"
    assert found["every answer"].expected == pytest.approx(
        3 / 0.18, rel=0.01
    )  # by the certificate of the unit
    records = pg.compare(query, unit.records, rho="0.01", methods=["cells", "wavelet", "tree"])
    for name in ("cells", "wavelet", "tree"):
        assert found[name].expected == records[name].expected
        assert "each of 3 records of one person at rho = 0.01" in found[name].note
    seen = pg.compare(
        query, unit, rho="0.09", methods=["every answer", "adaptive"], data=table_of(ROWS), runs=2
    )
    assert {method.name for method in seen.methods if method.measured is not None} == {
        "every answer",
        "adaptive",
    }
    with pytest.raises(pg.InputError) as refusal:
        pg.compare(query, unit, rho="0.09", data=[1, 2, 3, 4, 5, 6])
    assert refusal.value.code == "unit.counts"
    for policy in (pg.Families(unit.records, 2), HOMES):
        with pytest.raises(pg.RefusedError):
            pg.compare(query, policy, rho=1)
        with pytest.raises(pg.RefusedError):
            named_mechanism("cells", query, policy, pg.Rho(1))
    file, data = tmp_path / "people.toml", tmp_path / "visits.csv"
    file.write_text(PEOPLE)
    csv.write_csv(table_of(ROWS), data)
    assert run(["compare", str(file), "--rho", "0.09", "--data", str(data), "--runs", "2"]) == 0
    assert "each of 3 records of one person at rho = 0.01" in capsys.readouterr().out


def test_nonnegative_counts_under_a_unit():
    made = pg.release(pg.queries.identity(SHOPS), people(3), table_of(ROWS), epsilon=2, nonnegative=True)
    assert min(made.values()) >= 0


def test_a_mechanism_for_records_at_another_loss_is_refused():
    unit, query = people(3), pg.queries.identity(SHOPS)
    inner = pg.MatrixMechanism().calibrate(query, unit.records, pg.Epsilon(1))
    with pytest.raises(pg.RefusedError) as refusal:
        pg.release(query, unit, table_of(ROWS), epsilon=1, mechanism=OnMembers(inner, unit, pg.Epsilon(1)))
    assert refusal.value.code == "unit.records"
    for wrong in (
        lambda: pg.MatrixMechanism().calibrate(query, unit, pg.Epsilon(1)),
        lambda: unit.moves(),
        lambda: unit.graph,
    ):
        with pytest.raises(pg.RefusedError) as refusal:
            wrong()
        assert refusal.value.code == "unit.records"


def test_questions_one_by_one_under_a_unit(tmp_path):
    cube = pg.OnlineCube(people(3, 1), table_of(ROWS), tmp_path / "budget.db", kind="rho")
    first = cube.ask("shop", "hour", deviation=10)
    assert first.spent is not None
    assert cube.ask("shop", deviation=40).spent is None
    with pytest.raises(pg.InputError):
        pg.OnlineCube(pg.Families(pg.Policy(SHOPS), 2), table_of(ROWS), tmp_path / "budget.db")


def test_charges_under_other_bounds_of_one_unit_add_up_and_those_of_records_are_refused(tmp_path):
    ledger, query = tmp_path / "budget.db", pg.queries.identity(SHOPS)
    for most in (2, 5):
        pg.release(query, people(most), table_of(ROWS), epsilon=1, ledger=ledger)
    [account] = pg.Ledger(ledger).datasets()
    assert account.spent == pg.Epsilon(2)
    with pytest.raises(pg.BudgetError) as refusal:
        pg.release(query, pg.Policy(SHOPS, unknown="drop"), table_of(ROWS), epsilon=1, ledger=ledger)
    assert refusal.value.code == "budget.further-policy"


def test_charges_about_other_attributes_of_one_unit_add_up(tmp_path):
    """A unit vanishes from all that is counted of it; of records, and of other units, nothing is proved."""
    ledger, both = tmp_path / "budget.db", table_of(ROWS).append_column("age", pa.array([1, 2] * 200))
    ages = pg.Policy(pg.Domain({"age": 3}))
    pg.release(pg.queries.identity(SHOPS), people(2), both, epsilon=1, ledger=ledger)
    pg.release(pg.queries.identity(ages.domain), pg.Unit(ages, "person", 3), both, epsilon=2, ledger=ledger)
    [account] = pg.Ledger(ledger).datasets()
    assert account.spent == pg.Epsilon(3)
    line = pg.Policy(ages.domain, pg.PolicyGraph.line(ages.domain))
    for policy in (ages, pg.Unit(ages, "shop", 2), pg.Unit(line, "person", 20)):
        with pytest.raises(pg.BudgetError) as refusal:
            pg.release(pg.queries.identity(ages.domain), policy, both, epsilon=1, ledger=ledger)
        assert refusal.value.code == "budget.further-policy"


def test_steps_between_policies():
    records, line = pg.Policy(SHOPS), pg.PolicyGraph.product(SHOPS, {"shop": "line"})
    open_, full = (
        pg.Unit(records, "person", 5),
        pg.Unit(pg.Policy(SHOPS, pg.PolicyGraph.full(SHOPS).with_bottom()), "person", 5),
    )
    held = pg.Unit(pg.Policy(SHOPS, line), "person", 5)
    assert steps_between(open_, pg.Unit(records, "person", 2, 1)) == 1
    assert steps_between(open_, pg.Unit(records, "household", 9)) is None
    other = pg.Policy(pg.Domain({"age": 9}), unknown="drop")
    assert steps_between(open_, pg.Unit(other, "person", 2)) == 1
    assert steps_between(open_, pg.Unit(other, "household", 2)) is None
    assert (steps_between(records, open_), steps_between(open_, records)) == (2, None)
    assert (steps_between(records, full), steps_between(records, held)) == (1, None)
    assert (steps_between(held, held.records), steps_between(held, open_)) == (None, None)
    assert steps_between(pg.Policy(SHOPS, unknown="drop"), records) is None
    assert steps_between(pg.Families(records, 2), records) is None
    assert steps_between(pg.Policy(SHOPS, constraints=[pg.Total()]), records) is None
    assert steps_between(pg.Policy(SHOPS, constraints=[pg.Total()]), open_) is None


def test_a_chain_of_bounded_releases_never_shows_more_than_the_unit(tmp_path):
    """However often the data are released, the same records of a unit count, and a copy of the data under another name keeps the same ones."""
    unit = people(1)
    made = [count_units(table_of(rows), unit).vector().tolist() for rows in (ROWS, ROWS[::-1])]
    assert made[0] == made[1]
    assert Counter(row[0] for row in ROWS).most_common()[-1][1] == 10
    assert sum(made[0]) == 40


def test_made_up_data_have_units():
    open_ = loads('[domain]\nshop = 3\n[unit]\ncolumn = "person"\nat_most = 2\nwithin = "home"\n')
    held = loads('[domain]\nshop = 3\n[neighbours]\ngraph = "line"\n[unit]\ncolumn = "person"\nat_most = 2\n')
    made = made_up(open_, 50)
    assert made.column_names == ["shop", "person", "home"]
    assert count_units(made, open_.policy).rows < 50
    assert count_units(made_up(held, 50), held.policy).rows == 50


def test_the_audit_passes_a_bound_for_each_unit():
    mechanism, policy, query = broken.sound()
    assert pg.audit(
        mechanism, policy, query, loss=pg.Epsilon(1), samples=4000, rng=pg.SeededRng(1), **broken.OPTIONS
    ).passed


def test_files_state_units():
    unit = people(5, 1, within="household")
    read = loads(dumps(unit, [pg.queries.identity(SHOPS)]))
    assert read.policy == unit
    assert read.policy.fingerprint == unit.fingerprint != people(5, 1).fingerprint


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('column = "person"', "at_most"),
        ('column = "person"\nat_most = 0', "at least 1"),
        ('column = "person"\nat_most = 2\nfamily = 3', "family"),
        ('column = "person"\nat_most = 2\nexactly = true', "exactly"),
        ("family = 3\nper_cell = 1", "family alone"),
        ('column = "shop"\nat_most = 2', "also an attribute"),
        ('column = "person"\nat_most = 2\nper_cell = 3', "per_cell=3"),
        ('column = "person"\nat_most = 2\nwithin = "person"', "the unit itself"),
        ("at_most = 2", "column"),
    ],
)
def test_mistakes_in_files_are_named(body, words):
    with pytest.raises(pg.PolicyGraphError, match=words):
        loads(f"[domain]\nshop = 3\n[unit]\n{body}\n")


def test_the_ledger_has_no_price_of_records_for_a_unit_even_where_data_beyond_its_bound_are_refused(tmp_path):
    """Of one column a person has a record, of another a hundred: releases of both are in one account."""
    domain = pg.Domain({"a": 3})
    query, line = pg.queries.identity(domain), pg.Policy(domain, pg.PolicyGraph.line(domain), unknown="drop")
    held = pg.Unit(line, "person", 1)
    assert steps_between(held, line) is None
    visits = pa.table({"person": ["ann"] * 100, "all": [0] * 100, "few": [0] + [9] * 99})
    pg.release(query, held, visits, epsilon=1, columns={"a": "few"}, ledger=tmp_path / "budget.db")
    with pytest.raises(pg.BudgetError) as refusal:
        pg.release(query, line, visits, epsilon=1, columns={"a": "all"}, ledger=tmp_path / "budget.db")
    assert refusal.value.code == "budget.further-policy"


def test_a_list_of_texts_names_no_unit():
    both = pa.table({"person": [["a", "b"], ["c"]], "shop": ["a", "b"], "hour": [0, 1]})
    with pytest.raises(pg.DataError) as refusal:
        count_units(both, people())
    assert refusal.value.code == "unit.type"


PAY = pg.Measure("pay", 0, 10, missing="drop")


def paid_of(rows):
    made = table_of([row[:3] for row in rows])
    return made.append_column("pay", pa.array([row[3] for row in rows], pa.int64()))


def literal_sums(rows, unit, low=0, together=None):
    """Counts and sums of what is kept, straight from the definition: records of one cell in an order that mixes their values, then all of the unit, cut off where it has used up its sum."""
    key = hashlib.sha256(f"policygraph unit {unit.fingerprint}".encode()).hexdigest()
    counts, sums = [0] * SHOPS.size, [0] * SHOPS.size
    for person in {row[0] for row in rows}:
        words = [
            int(hashlib.md5(f"{key}:{person}".encode()).hexdigest()[at : at + 8], 16) for at in (0, 8, 16, 24)
        ]
        own = {}
        for who, shop, hour, pay in rows:
            if who == person and shop != "?" and pay is not None:
                own.setdefault("abc".index(shop) * 2 + hour, []).append(min(max(pay, low), 10))
        records = []
        for cell, values in own.items():
            mixed = sorted(
                values,
                key=lambda y: (
                    ((words[1] * (y - low) + words[3]) * (y - low) + words[2]) % oracle.PRIME * 100 + y
                ),
            )
            records += [
                (oracle.place(key, person, cell, j, unit.cap), cell, j, y)
                for j, y in enumerate(mixed[: unit.cap])
            ]
        left = together
        for _, cell, _, y in sorted(records)[: unit.at_most]:
            counts[cell] += 1
            part = y if left is None else max(-left, min(left, y))
            sums[cell] += part
            left = None if left is None else left - abs(part)
    return counts, sums


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["ann", "bob", "é"]),
            st.sampled_from(["a", "b", "?"]),
            st.integers(0, 1),
            st.one_of(st.none(), st.integers(-3, 14)),
        ),
        max_size=25,
    ),
    most=st.integers(1, 4),
    data=st.data(),
)
@settings(max_examples=25)
def test_sums_are_of_the_records_of_each_unit_that_count(rows, most, data):
    unit = people(most, data.draw(st.one_of(st.none(), st.integers(1, most))))
    made = units.sum_units(paid_of(rows), unit, PAY)
    counts, sums = literal_sums(rows, unit)
    assert made.vector().tolist() == counts
    assert made.sums(SHOPS.names).ravel().tolist() == sums
    # Which records count is the same as where no values are asked for.
    known = [row for row in rows if row[3] is not None]
    assert units.count_units(paid_of(known), unit).vector().tolist() == counts


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["ann", "bob"]),
            st.sampled_from(["a", "b"]),
            st.integers(0, 1),
            st.integers(-12, 14),
        ),
        max_size=20,
    ),
    most=st.integers(1, 5),
    together=st.integers(10, 30),
    data=st.data(),
)
@settings(max_examples=25)
def test_all_records_of_a_unit_add_no_more_than_their_sum_together(rows, most, together, data):
    unit = people(most, data.draw(st.one_of(st.none(), st.integers(1, most))))
    low = data.draw(st.sampled_from([-10, -3, 0]))
    made = units.sum_units(paid_of(rows), unit, pg.Measure("pay", low, 10, in_all=together))
    counts, sums = literal_sums(rows, unit, low, together)
    assert made.vector().tolist() == counts
    assert made.sums(SHOPS.names).ravel().tolist() == sums
    for person in ("ann", "bob"):
        alone = units.sum_units(
            paid_of([row for row in rows if row[0] == person]),
            unit,
            pg.Measure("pay", low, 10, in_all=together),
        )
        assert np.abs(alone.sums(SHOPS.names)).sum() <= together


def test_sums_of_a_unit_that_are_bounded_together_are_released(tmp_path):
    rows = [("ann", "a", 0, 9)] * 9 + [("bob", "b", 1, 3), ("cyd", "c", 0, 500)]
    measure = pg.Measure("pay", 0, 10, missing="drop", in_all=25)
    query = pg.queries.sums(SHOPS, [["shop"], []], measure)
    for mechanism in (None, pg.Measured()):
        made = pg.release(
            query, people(9), paid_of(rows), epsilon=1000, ledger=tmp_path / "budget.db", mechanism=mechanism
        )
        assert np.abs(made.values(0) - [25, 3, 10]).max() < 2
        assert made.record["certificate"]["exact_value"]["value"] == "50"
        assert (made.record["unit"]["at_most"], made.record["certificate"]["kind"]) == (9, "exact")
        assert "cut off at 25" in " ".join(made.sentences)
        assert "at most 25 for one unit in all" in str(explain(query, people(9)))
    noisy = pg.release(query, people(9), paid_of(rows), rho=1, rng=pg.SeededRng(1))
    assert noisy.record["certificate"]["exact_value"]["value"] == str(2 * 25**2)


@pytest.mark.parametrize("how", ["records", "records of a unit", "a unit as a whole"])
def test_noise_for_a_narrower_measure_is_refused(how, tmp_path):
    """A copy of a calibrated mechanism for values up to 10 is asked for values up to 1,000, or for more of each unit."""
    records, unit = pg.Policy(SHOPS, unknown="drop"), people(3)
    whole = how == "a unit as a whole"
    measures = (
        (pg.Measure("pay", 0, 10, in_all=25), pg.Measure("pay", 0, 10, in_all=1000))
        if whole
        else (pg.Measure("pay", 0, 10), pg.Measure("pay", 0, 1000))
    )
    narrow, wide = (pg.queries.sums(SHOPS, [["shop"]], measure) for measure in measures)
    policy = records if how == "records" else unit
    if how == "records of a unit":
        inner = pg.Measured().calibrate(narrow, records, pg.Epsilon(Fraction(1, 3)))
        noise = OnMembers(replace(inner, query=wide), policy, pg.Epsilon(1))
    else:
        noise = replace(pg.Measured().calibrate(narrow, policy, pg.Epsilon(1)), query=wide)
    ledger = tmp_path / "budget.db"
    with pytest.raises(pg.InputError) as refusal:
        pg.release(wide, policy, paid_of([("ann", "a", 0, 900)]), epsilon=1, mechanism=noise, ledger=ledger)
    assert refusal.value.code == "sensitivity.foreign"
    assert not ledger.exists() or not pg.Ledger(ledger).history()


@pytest.mark.parametrize(
    ("query", "policy"),
    [
        ("sums", lambda: pg.Policy(SHOPS)),
        ("sums", lambda: people(2, graph=pg.PolicyGraph.full(SHOPS).with_bottom())),
        ("averages", lambda: people(2)),
    ],
)
def test_where_sums_of_a_unit_are_not_bounded_together(query, policy):
    asked = getattr(pg.queries, query)(SHOPS, [["shop"]], pg.Measure("pay", 0, 10, in_all=25))
    for ask in (
        lambda: pg.sensitivity(asked, policy()),
        lambda: pg.release(asked, policy(), paid_of([("ann", "a", 0, 9)]), epsilon=1),
        lambda: pg.Measured().calibrate(asked, policy(), pg.Epsilon(1)),
    ):
        with pytest.raises(pg.RefusedError) as refusal:
            ask()
        assert refusal.value.code == "measure.in-all"
    counted = pg.queries.sums(SHOPS, [["shop"]], pg.Measure("pay", 0, 10))
    for unit in (people(2), pg.Families(pg.Policy(SHOPS), 2)):
        with pytest.raises(pg.RefusedError):
            pg.Measured().calibrate(counted, unit, pg.Epsilon(1))


def test_sums_and_averages_are_released_under_a_unit(tmp_path):
    rows = [("ann", "a", 0, 10)] * 9 + [("bob", "b", 1, 3), ("cyd", "c", 0, 500)]
    for make in (pg.queries.sums, pg.queries.averages):
        query = make(SHOPS, [["shop"], []], PAY)
        for norm in ("l1", "l2"):
            found = pg.sensitivity(query, people(3), norm=norm)
            single = pg.sensitivity(query, pg.Policy(SHOPS, unknown="drop"), norm=norm)
            assert found.power == single.power * (3 if norm == "l1" else 9)
            assert found.exact
            assert found.verify().ok
            few = pg.sensitivity(query, people(3, 1), norm=norm)
            assert (few.power, few.lower_power) == (found.power, single.power)
            assert not few.verify().failed
        for mechanism in (None, pg.Measured()):
            made = pg.release(
                query,
                people(3),
                paid_of(rows),
                epsilon=1000,
                ledger=tmp_path / "budget.db",
                mechanism=mechanism,
            )
            assert made.record["unit"]["at_most"] == 3
            if make is pg.queries.sums:
                assert [abs(x - y) < 9 for x, y in zip(made.values(0), [30, 3, 10], strict=True)] == [
                    True
                ] * 3


def test_sums_under_a_unit_need_records_and_values():
    query = pg.queries.sums(SHOPS, [["shop"]], pg.Measure("pay", 0, 10))
    with pytest.raises(pg.DataError) as refusal:
        read(paid_of([("ann", "a", 0, None)]), query, people(2))
    assert refusal.value.code == "measure.no-value"
    with pytest.raises(pg.InputError) as refusal:
        read(units.sum_units(paid_of([("ann", "a", 0, 1)]), people(2), PAY), query, people(2))
    assert refusal.value.code == "unit.counts"
    with pytest.raises(pg.DataError) as refusal:
        read(paid_of([("ann", "?", 0, 1)]), query, people(2, unknown="error"))
    assert refusal.value.code == "data.unknown-value"
    line = pg.PolicyGraph.product(SHOPS, {"shop": "line"})
    with pytest.raises(pg.DataError) as refusal:
        read(paid_of([("ann", "a", 0, 1)] * 3), query, people(2, graph=line))
    assert refusal.value.code == "unit.too-many"
    wide = pg.Unit(pg.Policy(pg.Domain({"shop": 1 << 20, "hour": 1 << 20})), "person", 2)
    with pytest.raises(pg.RefusedError) as refusal:
        units.sum_units(paid_of([]), wide, PAY)
    assert refusal.value.code == "unit.too-large"
    assert read(paid_of([("ann", "a", 0, 1)] * 2), query, people(2, graph=line)).sums(["shop"]).tolist() == [
        2,
        0,
        0,
    ]


def test_sums_under_a_unit_from_a_text_file(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("person,shop,hour,pay\nann,a,0,4\nann,b,1,9\nann,b,1,3\nbob,c,0,5\n")
    policy = people(3)
    assert units.sum_units(path, policy, PAY).sums(["shop"]).tolist() == [4, 12, 5]
    path.write_text("person,shop,hour,pay\nann,a,0,4\n,b,1,9\n")
    with pytest.raises(pg.DataError) as refusal:
        units.sum_units(path, policy, PAY)
    assert refusal.value.code == "unit.missing"


def test_records_that_are_lost_while_they_are_read_are_noticed(monkeypatch):
    """The engine says how many records there are, and hands over fewer."""
    whole = Bounded._arrays

    def fewer(self, *how):
        names, cells, missing = whole(self, *how)
        return names, [each[1:] for each in cells], missing

    monkeypatch.setattr(Bounded, "_arrays", lambda self, *how: fewer(self, *how))
    with pytest.raises(pg.DataError) as refusal:
        count_units(table_of([("ann", "a", 0), ("bob", "b", 1)]), people())
    assert refusal.value.code == "data.lost"
