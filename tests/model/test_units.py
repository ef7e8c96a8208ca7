"""Units: everything of one person as one secret; neighbours, sensitivities, certificates against data sets that are listed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph import check as checker
from policygraph.audit.exact import exact_check
from policygraph.explain import explain
from policygraph.model import units as model_units
from policygraph.moves.bracket import Witness
from policygraph.sensitivity import Sensitivity, units
from tests.oracles import units as oracle
from tests.oracles.families import largest

LINE = pg.Domain({"r": 3})
SQUARE = pg.Domain({"a": 2, "b": 2})
EDGES = {
    "open": None,
    "full": [(0, 1), (0, 2), (1, 2)],
    "line": [(0, 1), (1, 2)],
    "line and bottom": [(0, 1), (1, 2), (0, None), (1, None), (2, None)],
    "full and bottom": [(0, 1), (0, 2), (1, 2), (0, None), (1, None), (2, None)],
    "some bottom": [(0, 1), (1, None)],
}


def graph_of(kind, domain=LINE):
    full, line = pg.PolicyGraph.full(domain), pg.PolicyGraph.line(LINE)
    made = {
        "open": None,
        "full": full,
        "line": line,
        "line and bottom": line.with_bottom(),
        "full and bottom": full.with_bottom(),
    }
    if kind == "some bottom":
        return pg.PolicyGraph.from_edges(LINE, [(0, 1), (1, pg.BOTTOM)])
    return made[kind]


def rows_of(query):
    return query.columns(range(query.domain.size)).toarray().tolist()


def queries_of(domain, data):
    """Every kind of query: cells, tables, sets of tables, prefixes, ranges, boxes, any matrix."""
    names = list(domain.names)
    entry = st.integers(-2, 2)
    matrix = data.draw(
        st.lists(st.lists(entry, min_size=domain.size, max_size=domain.size), min_size=1, max_size=3)
    )
    made = [
        pg.queries.identity(domain),
        pg.queries.cuboid(domain, names[0]),
        pg.queries.all_cuboids(domain),
        pg.queries.matrix(domain, matrix if any(map(any, matrix)) else [[1] * domain.size]),
    ]
    if len(names) == 1:
        made += [pg.queries.prefix(domain), pg.queries.all_ranges(domain)]
    else:
        made.append(pg.queries.cuboids(domain, [["a"], ["b"]], weights=[1, 2]))
    return data.draw(st.sampled_from(made))


@given(data=st.data(), most=st.integers(1, 4), norm=st.sampled_from(["l1", "l2"]))
@settings(max_examples=150)
def test_the_sensitivity_is_the_largest_change_over_all_data_sets_of_three_units(data, most, norm):
    kind = data.draw(st.sampled_from([*EDGES, "square"]))
    domain = SQUARE if kind == "square" else LINE
    per_cell = data.draw(st.one_of(st.none(), st.integers(1, most)))
    zero = kind in ("open", "line") and data.draw(st.booleans())
    cells = [1, 2] if zero else list(range(domain.size))
    edges = EDGES.get(kind)
    if zero and edges is not None:
        edges = [(u, v) for u, v in edges if u and v]
    facts = [pg.StructuralZero([[0]])] if zero else []
    policy = pg.Unit(
        pg.Policy(domain, None if kind == "square" else graph_of(kind), facts), "person", most, per_cell
    )
    query = queries_of(domain, data)
    found = pg.sensitivity(query, policy, norm=norm)
    units = 2 if kind == "square" else 3
    pairs = set(oracle.neighbours(cells, domain.size, most, per_cell or most, edges, units))
    best = largest(iter(pairs), rows_of(query), norm)
    assert found.exact
    assert found.power == best
    checked = found.verify()
    assert checked.ok, str(checked)
    assert not checked.failed, str(checked)
    assert Sensitivity.from_json(found.to_json()) == found
    assert (found.to_dict()["unit"], found.to_dict()["at_most"]) == ("person", most)
    for a, b in sorted(pairs)[:: max(1, len(pairs) // 15)]:
        if a != b:
            assert policy.are_neighbours(a, b), (a, b)
    if found.witness is not None:
        assert policy.are_neighbours(found.table("before"), found.table("after"))


def _cut_off(values, most):
    """What each of some values in their order adds to the sums of a unit."""
    out, left = [], most
    for value in values:
        out.append(max(-left, min(left, value)))
        left -= abs(out[-1])
    return out


@given(
    ends=st.sampled_from([(0, 3), (-2, 3), (-3, 1), (1, 3), (2, 3), (-3, 0)]),
    together=st.integers(3, 8),
    most=st.integers(1, 3),
    sets=st.sampled_from([[["a", "b"]], [["a"]], [[]], [["a"], ["b"]], [[], ["a"], ["a", "b"]]]),
    norm=st.sampled_from(["l1", "l2"]),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_sums_that_a_unit_makes_together_change_by_no_more_than_all_units_listed(
    ends, together, most, sets, norm, data
):
    """Every unit, and every order in which its records may be cut off."""
    per_cell = data.draw(st.one_of(st.none(), st.integers(1, most)))
    zero = data.draw(st.booleans())
    facts = [pg.StructuralZero([[0, 0]])] if zero else []
    weights = data.draw(st.lists(st.integers(1, 3), min_size=len(sets), max_size=len(sets)))
    query = pg.queries.sums(SQUARE, sets, pg.Measure("pay", *ends, in_all=together), weights)
    found = pg.sensitivity(
        query, pg.Unit(pg.Policy(SQUARE, None, facts), "person", most, per_cell), norm=norm
    )
    cells = [(0, 1), (1, 0), (1, 1)] if zero else [(0, 0), (0, 1), (1, 0), (1, 1)]
    records = [(cell, value) for cell in cells for value in range(ends[0], ends[1] + 1)]
    best = 0
    for count in range(most + 1):
        # The order of cells and values is any one, so that all orders are among the products.
        for own in product(records, repeat=count):
            if any(sum(cell == each for cell, _ in own) > (per_cell or most) for each in cells):
                continue
            parts = _cut_off([value for _, value in own], together)
            size = 0
            for names, weight in zip(sets, weights, strict=True):
                table = {}
                for (cell, _), part in zip(own, parts, strict=True):
                    place = tuple(cell["ab".index(name)] for name in names)
                    table[place] = table.get(place, 0) + weight * part
                size += sum(abs(x) if norm == "l1" else x * x for x in table.values())
            best = max(best, size)
    assert found.lower_power <= best <= found.power
    if norm == "l1" and ends[0] <= 0 <= ends[1]:
        assert found.exact
    checked = found.verify()
    assert checked.ok, str(checked)
    assert not replace(found, power=found.power - 1, lower_power=0, witness=None, kind="upper").verify().ok
    assert Sensitivity.from_json(found.to_json()) == found


@given(data=st.data(), kind=st.sampled_from(list(EDGES)), most=st.integers(1, 3))
@settings(max_examples=40)
def test_tables_are_neighbours_only_if_one_unit_makes_the_difference(data, kind, most):
    per_cell = data.draw(st.one_of(st.none(), st.integers(1, most)))
    policy = pg.Unit(pg.Policy(LINE, graph_of(kind)), "person", most, per_cell)
    # Units of one record fill up any table, so that tables of two records beside the unit are all there is to know.
    pairs = set(oracle.neighbours(range(3), 3, most, per_cell or most, EDGES[kind], 3, 4))
    tables = data.draw(st.tuples(*[st.tuples(*[st.integers(0, 2)] * 3)] * 2))
    if sum(tables[0]) <= 3 and sum(tables[1]) <= 3:
        known = tables in pairs or tables[::-1] in pairs
        assert bool(policy.are_neighbours(*tables)) == known, tables


@given(data=st.data(), most=st.integers(2, 4), norm=st.sampled_from(["l1", "l2"]))
@settings(max_examples=80)
def test_bounds_hold_and_pairs_are_attained_where_not_all_steps_are_gone_through(data, most, norm):
    """The search is left out, so that bounds and greedy steps stand alone."""
    kind = data.draw(st.sampled_from([*EDGES, "square"]))
    domain = SQUARE if kind == "square" else LINE
    per_cell = data.draw(st.integers(1, most - 1))
    edges = EDGES.get(kind)
    policy = pg.Unit(
        pg.Policy(domain, None if kind == "square" else graph_of(kind)), "person", most, per_cell
    )
    query = queries_of(domain, data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(units, "SEARCHED", 0)
        if data.draw(st.booleans()):
            patch.setattr(units, "LISTED", 0)
        found = pg.sensitivity(query, policy, norm=norm)
    pairs = oracle.neighbours(range(domain.size), domain.size, most, per_cell, edges, 1)
    best = largest(pairs, rows_of(query), norm)
    assert found.lower_power <= best <= found.power
    assert not found.verify().failed


@given(data=st.data(), most=st.integers(1, 4), norm=st.sampled_from(["l1", "l2"]))
@settings(max_examples=100)
def test_the_checker_proves_no_less_than_what_units_do(data, most, norm):
    kind = data.draw(st.sampled_from([*EDGES, "square"]))
    domain = SQUARE if kind == "square" else LINE
    per_cell = data.draw(st.one_of(st.none(), st.integers(1, most)))
    policy = pg.Unit(
        pg.Policy(domain, None if kind == "square" else graph_of(kind)), "person", most, per_cell
    )
    query = queries_of(domain, data)
    pairs = oracle.neighbours(range(domain.size), domain.size, most, per_cell or most, EDGES.get(kind), 1)
    best = largest(pairs, rows_of(query), norm)
    certificate = json.loads(pg.sensitivity(query, policy, norm=norm).to_json())
    report = checker.check(certificate)
    assert report["holds"], report
    asked = checker.Question(certificate["policy"], certificate["query"], norm)
    for name in checker.UNITS:
        try:
            proved = checker._of_unit(asked, {"kind": "theorem", "theorem": name})[0]
        except checker.OpenError:
            continue
        assert proved >= best, name
    if best:
        with pytest.raises(checker.OpenError):
            checker.found_proof(asked, Fraction(best) - 1)


@given(data=st.data(), kind=st.sampled_from(list(EDGES)), most=st.integers(1, 4))
@settings(max_examples=100)
def test_the_checker_knows_what_one_unit_can_become(data, kind, most):
    per_cell = data.draw(st.one_of(st.none(), st.integers(1, most)))
    policy = pg.Unit(pg.Policy(LINE, graph_of(kind)), "person", most, per_cell)
    cells = st.lists(st.integers(0, 2), max_size=most + 1).map(sorted).map(tuple)
    before, after = data.draw(cells), data.draw(cells)
    asked = checker.Question(policy.to_spec(), pg.queries.identity(LINE).to_spec(), "l1")
    whole = oracle.possible(range(3), most, per_cell or most)
    known = before in whole and after in whole
    if known and kind == "open":
        known = bool(before) != bool(after)
    elif known:
        known = after in {*oracle.changes(before, most, per_cell or most, EDGES[kind]), before}
    try:
        checker._one_unit(asked, Counter(before), Counter(after))
    except checker.FailedError:
        assert not known
    else:
        assert known


@pytest.mark.parametrize(
    "unit",
    [
        {"column": "person", "at_most": 0},
        {"column": "person", "at_most": 2, "per_cell": 3},
        {"column": "", "at_most": 2},
        {"column": "person", "at_most": 2, "more": 1},
        {"column": "person", "at_most": True},
    ],
)
def test_the_checker_leaves_units_open_that_it_does_not_know(unit):
    spec = {**pg.Policy(LINE).to_spec(), "unit": unit}
    with pytest.raises((checker.OpenError, checker.FailedError)):
        checker.Question(spec, pg.queries.identity(LINE).to_spec(), "l1")
    facts = pg.Policy(LINE, constraints=[pg.Total()]).to_spec()
    with pytest.raises(checker.OpenError, match="beside public sums"):
        checker.Question(
            {**facts, "unit": {"column": "person", "at_most": 2}}, pg.queries.identity(LINE).to_spec(), "l1"
        )


def test_a_proof_is_about_the_unit_that_is_stated():
    policy = pg.Unit(RECORDS, "person", 4, 2)
    good = json.loads(pg.sensitivity(pg.queries.identity(LINE), policy, norm="l2").to_json())
    assert good["proof"] == {"kind": "theorem", "theorem": "unit-tables"}
    for change in (
        {"at_most": 3},
        {"unit": "family"},
        {"policy": {**good["policy"], "unit": {"column": "person", "at_most": 5, "per_cell": 2}}},
        {"proof": {"kind": "theorem", "theorem": "one-record"}},
        {"definition": good["definition"].replace("4 records", "3 records")},
    ):
        assert not checker.check({**good, **change})["holds"], change
    # for single records, or for families, nothing of it is a theorem
    for other in (RECORDS, pg.Families(RECORDS, 4)):
        single = json.loads(pg.sensitivity(pg.queries.identity(LINE), other).to_json())
        assert not checker.check({**single, "proof": {"kind": "theorem", "theorem": "unit-rows"}})["holds"]


def test_releases_of_units_can_require_proofs():
    people = pg.Unit(RECORDS, "person", 2, 1)
    data = pyarrow.table({"person": [1, 1, 2], "r": [0, 0, 2]})
    made = pg.release(pg.queries.identity(LINE), people, data, rho=1, require_proof=True)
    assert made.certificate.proved


@pytest.mark.parametrize(
    ("sets", "shape", "most", "per_cell", "power"),
    [
        ([["a", "b"]], (100, 100), 7, 1, 7),
        ([["a", "b"]], (100, 100), 7, 3, 9 + 9 + 1),
        ([["a"]], (100, 100), 7, 1, 49),
        ([["a"]], (100, 4), 7, 1, 16 + 9),
        ([[], ["a"], ["a", "b"]], (100, 4), 7, 1, 49 + 16 + 9 + 7),
    ],
)
def test_tables_of_a_chain_have_a_closed_form_on_any_domain(sets, shape, most, per_cell, power):
    domain = pg.Domain(dict(zip("ab", shape, strict=True)))
    unit = pg.Unit(pg.Policy(domain), "person", most, per_cell)
    query = pg.queries.cuboids(domain, sets)
    found = pg.sensitivity(query, unit, norm="l2")
    assert (found.power, found.kind) == (power, "exact")
    assert not found.verify().failed
    assert pg.sensitivity(query, unit).value == most * len(sets)


def test_the_l2_sensitivity_of_crossed_tables_is_a_bound_with_a_pair():
    """Records of one row are in different columns: rows and columns cannot both be the worst."""
    domain = pg.Domain({"a": 100, "b": 100})
    unit = pg.Unit(pg.Policy(domain), "person", 4, 1)
    found = pg.sensitivity(pg.queries.cuboids(domain, [["a"], ["b"]]), unit, norm="l2")
    assert found.kind == "upper"
    assert found.lower_power == 16 + 4 <= found.power < 2 * 16 + 1


def test_prefixes_of_a_line_hide_a_unit_at_the_root_of_its_records():
    domain = pg.Domain({"age": 100})
    unit = pg.Unit(pg.Policy(domain, pg.PolicyGraph.line(domain)), "person", 10, 2)
    found = pg.sensitivity(pg.queries.prefix(domain), unit, norm="l2")
    assert (found.power, found.kind) == (5 * 4, "exact")
    assert pg.sensitivity(pg.queries.prefix(domain), unit).value == 10


RECORDS = pg.Policy(LINE)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: pg.Unit(LINE, "person", 2), "unit.policy"),
        (lambda: pg.Unit(pg.Policy(pg.Network(4)), "person", 2), "unit.policy"),
        (lambda: pg.Unit(RECORDS, "", 2), "unit.column"),
        (lambda: pg.Unit(RECORDS, "r", 2), "unit.column"),
        (lambda: pg.Unit(RECORDS, "person", 2, within="r"), "unit.column"),
        (lambda: pg.Unit(RECORDS, "person", 2, within="person"), "unit.column"),
        (lambda: pg.Unit(RECORDS, "person", 0), "unit.bound"),
        (lambda: pg.Unit(RECORDS, "person", True), "unit.bound"),
        (lambda: pg.Unit(RECORDS, "person", 2, 0), "unit.bound"),
        (lambda: pg.Unit(RECORDS, "person", 2, 3), "unit.bound"),
        (lambda: pg.Unit(pg.Policy(LINE, at_most_records=2), "person", 2), "unit.facts"),
        (lambda: pg.Unit(pg.Policy(LINE, constraints=[pg.Total()]), "person", 2), "unit.facts"),
        (lambda: pg.Unit(pg.Policy(LINE, graph_of("line and bottom"), [pg.Total()]), "person", 2), "unit.facts"),
        (lambda: pg.Unit(pg.Policy(LINE, graph_of("line"), [pg.count({"r": [0]})]), "person", 2), "unit.facts"),
        (lambda: pg.Policy.from_spec(pg.Unit(RECORDS, "person", 2).to_spec()), "policy.unit"),
        (lambda: pg.Unit(RECORDS, "person", 2).moves(), "unit.records"),
    ],
)  # fmt: skip
def test_what_is_no_unit_is_told(make, code):
    with pytest.raises(pg.PolicyGraphError) as refusal:
        make()
    assert refusal.value.code == code


def test_facts_that_every_step_keeps_change_nothing():
    """The total under the line, and the count of a block of a graph in blocks."""
    blocks = pg.PolicyGraph.partition(LINE, [[0, 1], [2]])
    query = pg.queries.identity(LINE)
    for graph, fact in ((graph_of("line"), pg.Total()), (blocks, pg.count({"r": [0, 1]}))):
        told = pg.Unit(pg.Policy(LINE, graph, [fact]), "person", 3, 1)
        plain = pg.Unit(pg.Policy(LINE, graph), "person", 3, 1)
        assert pg.sensitivity(query, told).power == pg.sensitivity(query, plain).power
        assert pg.sensitivity(query, told).verify().ok
        assert not told.enforced
        assert told.are_neighbours([1, 1, 1], [0, 2, 1])
    valued = pg.Unit(pg.Policy(LINE, graph_of("line"), [pg.Total(equals=9)]), "person", 3, 1)
    found = pg.sensitivity(query, valued)
    assert (found.kind, found.lower_power, found.witness) == ("upper", 0, None)
    assert not found.verify().failed
    assert not valued.are_neighbours([1, 1, 1], [0, 2, 1])


def test_sums_of_more_records_of_a_family_are_what_units_without_facts_would_leave_open():
    """Two units of three in one cell against three units of two in the other: the same total, and 12 counts change where 3 records change 6."""
    before, after = [6, 0], [0, 6]
    assert sum(before) == sum(after)
    assert sum(abs(a - b) for a, b in zip(before, after, strict=True)) == 12


def test_a_changed_certificate_is_found_out():
    unit = pg.Unit(RECORDS, "person", 3, 1)
    found = pg.sensitivity(pg.queries.identity(LINE), unit, norm="l2")
    assert found.power == 3
    for change in (
        {"power": found.power - 1, "lower_power": found.power - 1},
        {"lower_power": found.power, "witness": None},
    ):
        assert replace(found, **change).verify().failed
    two = Witness.of_tables({}, {0: 2, 1: 1})
    assert replace(found, witness=two, power=Fraction(5), lower_power=Fraction(5)).verify().failed
    # Three records in one cell are 9 in the square: whoever claims less, without a pair, is found out by the bound alone.
    crowded = pg.sensitivity(pg.queries.identity(LINE), pg.Unit(RECORDS, "person", 3), norm="l2")
    assert crowded.power == 9
    assert [check.name for check in crowded.verify().checks][-1] == "bound"
    less = replace(crowded, kind="upper", power=Fraction(8), lower_power=Fraction(0), witness=None).verify()
    assert [check.name for check in less.checks if check.passed is False] == ["bound"]
    line = pg.sensitivity(pg.queries.identity(LINE), pg.Unit(pg.Policy(LINE, graph_of("line")), "person", 1))
    far = Witness.of_tables({0: 1}, {2: 1})
    assert replace(line, witness=far).verify().failed


def test_far_too_many_records_have_a_bound_with_a_pair():
    unit = pg.Unit(pg.Policy(LINE, graph_of("line")), "person", 10**12, 10**6)
    found = pg.sensitivity(pg.queries.prefix(LINE), unit, norm="l2")
    assert found.kind == "upper"
    assert found.power == 10**24
    assert found.lower_power == 10**12


def test_explanations_plans_and_attacks_name_the_unit():
    query = pg.queries.identity(LINE)
    unit = pg.Unit(RECORDS, "person", 4, 2, within="household")
    told = str(explain(query, unit))
    assert "everything of one person" in told
    assert "a household of n persons is hidden at n times epsilon" in told
    assert "at most 2 records of one person" in told
    held = pg.Unit(pg.Policy(LINE, graph_of("line")), "person", 4)
    assert "data with more are refused" in str(explain(query, held))
    assert "a household of n persons" in str(pg.plan(query, unit, error=50))
    assert pg.attacks.effective_epsilon(query, unit, 1).without_facts == 4
    assert "one person" in str(pg.attack(query, unit, 1))


def test_exact_audits_of_units():
    query = pg.queries.identity(LINE)
    ready = pg.Laplace().calibrate(query, pg.Unit(RECORDS, "person", 4), pg.Epsilon(1))
    assert exact_check(ready).passed
    plain = pg.Laplace().calibrate(query, RECORDS, pg.Epsilon(1))
    assert not exact_check(plain, pg.Unit(RECORDS, "person", 4)).passed
    for kind in EDGES:
        unit = pg.Unit(pg.Policy(LINE, graph_of(kind)), "person", 3, 1)
        checked = exact_check(pg.Laplace().calibrate(query, unit, pg.Epsilon(1)))
        assert checked.passed
        assert checked.value == 1
    with pytest.raises(pg.RefusedError) as refusal:
        exact_check(pg.Laplace().calibrate(query, pg.Unit(RECORDS, "person", 99, 1), pg.Epsilon(1)), limit=10)
    assert refusal.value.code == "audit.limit"


def test_graphs_with_too_many_edges_leave_neighbours_open(monkeypatch):
    unit = pg.Unit(pg.Policy(LINE, graph_of("line")), "person", 2)
    monkeypatch.setattr(model_units, "MOST_EDGES", 1)
    with pytest.raises(pg.RefusedError) as refusal:
        unit.are_neighbours([1, 0, 0], [0, 1, 0])
    assert refusal.value.code == "unit.too-large"


def test_products_beyond_64_bits_make_no_bound():
    # Rows that no step changes, and whose squares sum to 2^64 - 8000: what is left of a product would be too small.
    domain = pg.Domain({"a": 100})
    constant = [4294967292, 185356, 1596, 580]
    assert sum(x * x for x in constant) == 2**64 - 8000
    query = pg.queries.matrix(domain, [*([x] * 100 for x in constant), list(range(100))])
    unit = pg.Unit(pg.Policy(domain, pg.PolicyGraph.full(domain)), "person", at_most=3, per_cell=1)
    # Records in 0, 1 and 2 go to 97, 98 and 99.
    assert pg.sensitivity(query, unit, norm="l2").power >= (3 * 97) ** 2


@pytest.mark.parametrize(
    "unit",
    [{}, {"column": "person", "at_most": 2, "exactly": True}, {"family": 2, "per_cell": 1}, {"at_most": 2}],
)
def test_an_unknown_form_of_a_unit_is_no_policy_for_records(unit):
    with pytest.raises(pg.InputError) as refused:
        model_units.any_policy({"domain": {"a": 2}, "unit": unit})
    assert refused.value.code == "unit.form"
