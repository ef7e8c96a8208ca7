"""Sums and averages of a measure: sensitivities against the engine on records with values, and against the definitions."""

from fractions import Fraction
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.errors import InputError, RefusedError
from policygraph.model.queries.measures import MeasureQuery
from policygraph.sensitivity.rungs import measures
from tests.oracles import measures as oracle

SHAPES = [(2,), (3,), (1,), (2, 2), (1, 2)]


def domain_of(shape):
    return pg.Domain({f"a{at}": n for at, n in enumerate(shape)})


@st.composite
def queries(draw, shapes=tuple(SHAPES), most=3):
    domain = domain_of(draw(st.sampled_from(shapes)))
    low = draw(st.integers(-3, 3))
    unit = draw(st.sampled_from(["1", "1/2", "3"]))
    span = draw(st.integers(1, most))
    step = Fraction(unit)
    measure = pg.Measure("x", low * step, (low + span) * step, unit=step)
    every = [s for k in range(len(domain.names) + 1) for s in combinations(domain.names, k)]
    sets = draw(st.lists(st.sampled_from(every), unique=True, min_size=1, max_size=3))
    weights = draw(st.lists(st.integers(1, 3), min_size=len(sets), max_size=len(sets)))
    kind = draw(st.sampled_from(["sums", "averages"]))
    return MeasureQuery(
        domain,
        measure,
        sets,
        kind,
        weights=weights,
        balance=draw(st.sampled_from(["1", "1/2", "2/3", "3"])),
        centred=draw(st.booleans()),
    )


def graphs(domain):
    made = [pg.PolicyGraph.full(domain), pg.PolicyGraph.attribute(domain), pg.PolicyGraph.grid(domain)]
    made.append(pg.PolicyGraph.from_edges(domain, [(0, pg.BOTTOM)]))
    made.append(pg.PolicyGraph.from_edges(domain, []))
    if domain.size > 1:
        made.append(pg.PolicyGraph.from_edges(domain, [(0, domain.size - 1)]))
    return made + [graph.with_bottom() for graph in made[:2]]


def compare(found, truth, query, exact=True):
    """The bound holds, what is claimed to be attained is, and an exact value is the true one."""
    assert found.lower_power <= truth <= found.power
    if found.exact:
        assert found.power == truth
    assert found.exact or not exact
    if found.witness is not None:
        assert query.change_norm(found.witness.change, found.norm) == found.lower_power
    report = found.verify()
    assert not report.failed, str(report)
    again = pg.Sensitivity.from_dict(found.to_dict())
    assert again == found


@settings(max_examples=150, deadline=None)
@given(queries(), st.data(), st.sampled_from(["l1", "l2"]))
def test_without_facts_the_closed_forms_are_exact(query, data, norm):
    graph = data.draw(st.sampled_from([None, *graphs(query.domain)]))
    policy = pg.Policy(query.domain, graph)
    found = pg.sensitivity(query, policy, norm=norm)
    assert found.power == oracle.engine(query, policy, norm).power
    compare(found, oracle.literal(query, policy, norm, 1), query)


def facts_of(domain, data):
    names = domain.names
    options = [[pg.Total()], [pg.Cuboid(names[0])], [pg.count({names[0]: [0]})]]
    if domain.shape[0] > 1:
        first, second = ({names[0]: [at]} for at in (0, 1))
        options += [[pg.LinearCount([(first, 1), (second, factor)])] for factor in (-1, 2, -2)]
    if len(names) > 1:
        options += [[pg.Cuboid(names[1])], [pg.Cuboid(names[0]), pg.Cuboid(names[1])], [pg.Cuboid(*names)]]
        options += [[pg.Cuboid(names[0]), pg.StructuralZero([{names[0]: [0], names[1]: [0]}])]]
    return data.draw(st.sampled_from(options))


@settings(max_examples=120, deadline=None)
@given(queries(), st.data(), st.sampled_from(["l1", "l2"]), st.sampled_from([None, None, 1]))
def test_under_public_facts_the_bounds_hold_and_exact_ones_are_true(query, data, norm, cap):
    policy = pg.Policy(query.domain, None, facts_of(query.domain, data), at_most_records=cap)
    found = pg.sensitivity(query, policy, norm=norm)
    truth = oracle.engine(query, policy, norm)
    assert truth.exact
    compare(found, truth.power, query, exact=False)
    if cap is None and not len(policy.system.zeros):
        assert truth.power == oracle.literal(query, policy, norm, 0)


@settings(max_examples=100, deadline=None)
@given(queries(((2,), (2, 2), (2, 3), (3, 3), (2, 2, 2)), 1), st.data(), st.sampled_from(["l1", "l2"]))
def test_the_bounds_hold_without_the_search_that_closes_them(query, data, norm):
    policy = pg.Policy(query.domain, None, facts_of(query.domain, data))
    truth = oracle.engine(query, policy, norm)
    assume(truth.exact)
    with patch.object(measures, "FACT_CELLS", 0):
        compare(pg.sensitivity(query, policy, norm=norm), truth.power, query, exact=False)
    small = pg.sensitivity(query, policy, norm=norm, effort=30_000_000)
    assert small.exact
    assert small.power == truth.power


@settings(max_examples=40, deadline=None)
@given(queries(((2,), (2, 2), (3,))), st.data())
def test_centred_sums_under_public_facts_are_exact_in_l1(query, data):
    assume(query.centred)
    policy = pg.Policy(query.domain, None, facts_of(query.domain, data))
    found = pg.sensitivity(query, policy)
    assert found.exact
    assert found.power == oracle.engine(query, policy, "l1").power


@settings(max_examples=60, deadline=None)
@given(
    queries(((2,), (3,), (2, 2)), 2), st.data(), st.sampled_from(["l1", "l2"]), st.sampled_from([None, 1, 2])
)
def test_with_a_graph_and_facts_two_values_are_enough(query, data, norm, cap):
    graph = data.draw(st.sampled_from(graphs(query.domain)))
    policy = pg.Policy(query.domain, graph, facts_of(query.domain, data), at_most_records=cap)
    found = pg.sensitivity(query, policy, norm=norm, effort=30_000_000)
    truth = oracle.engine(query, policy, norm)
    assume(truth.exact)
    compare(found, truth.power, query)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("at", range(4))
def test_with_a_graph_and_facts_the_literal_definition_agrees(norm, at):
    """Records compared one by one, in every way, up to three of them: as many as there are classes of the fact."""
    domain = pg.Domain({"a": 2, "b": 2}) if at == 3 else pg.Domain({"a": 3})
    measure = pg.Measure("x", 0, 1) if at == 3 else pg.Measure("x", -1, 1)
    graph = [
        pg.PolicyGraph.line(domain, "a"),
        pg.PolicyGraph.full(domain),
        pg.PolicyGraph.from_edges(domain, [(0, 1), (2, pg.BOTTOM)]),
        pg.PolicyGraph.attribute(domain),
    ][at]
    facts = [[pg.count({"a": [0, 1]})], [pg.Cuboid("a")], [pg.count({"a": [0]})], [pg.Cuboid("a")]][at]
    policy = pg.Policy(domain, graph, facts)
    for query in (
        pg.queries.sums(domain, [["a"], []], measure),
        pg.queries.averages(domain, [["a"]], measure),
    ):
        found = pg.sensitivity(query, policy, norm=norm)
        assert found.exact
        assert found.power == oracle.literal(query, policy, norm, 3 if at != 3 else 2)


def test_two_records_that_come_together_count_twice():
    """As many records of the first kind as of the second are public: one of each comes, into one cell of the total."""
    domain = pg.Domain({"a": 2})
    policy = pg.Policy(domain, constraints=[pg.LinearCount([({"a": [0]}, 1), ({"a": [1]}, -1)])])
    query = pg.queries.averages(domain, [[]], pg.Measure("x", 0, 10))
    found = pg.sensitivity(query, policy, norm="l2")
    # Two values of 10 half units from the middle, and two records of weight 10.
    assert oracle.literal(query, policy, "l2", 0) == 20**2 + 20**2
    assert found.power >= 800
    assert pg.sensitivity(query, policy).power == 40


def test_a_cell_left_by_one_record_and_entered_by_another_counts():
    """Counts of a public margin cannot change, sums over it can: the records that swap cells carry their values."""
    domain = pg.Domain({"a": 3})
    policy = pg.Policy(domain, pg.PolicyGraph.full(domain), [pg.Cuboid("a")])
    assert pg.sensitivity(pg.queries.cuboid(domain, "a"), policy).value == 0
    found = pg.sensitivity(pg.queries.sums(domain, [["a"]], pg.Measure("x", 0, 10)), policy)
    assert (found.value, found.exact) == (30, True)


def test_published_values_leave_a_bound():
    domain = pg.Domain({"a": 2, "b": 2})
    query = pg.queries.averages(domain, [["a"], ["b"]], pg.Measure("x", 0, 10))
    told = pg.Policy(domain, constraints=[pg.Cuboid("a", equals=[3, 2])])
    untold = pg.Policy(domain, constraints=[pg.Cuboid("a")])
    assert pg.sensitivity(query, told).power <= pg.sensitivity(query, untold).power
    graph = pg.PolicyGraph.full(domain)
    told = pg.Policy(domain, graph, [pg.Cuboid("a", equals=[3, 2])])
    found = pg.sensitivity(query, told)
    assert found.witness is None
    assert found.kind == "upper"
    assert found.power == pg.sensitivity(query, pg.Policy(domain, graph, [pg.Cuboid("a")])).power
    total = pg.sensitivity(query, pg.Policy(domain, graph, [pg.Total(equals=4)]))
    assert total.kind == "upper"
    assert total.power == pg.sensitivity(query, pg.Policy(domain, graph)).power


def test_large_ranges_and_domains_need_no_lists():
    domain = pg.Domain({"a": 1000, "b": 1000})
    income = pg.Measure("income", 0, 100_000_000)
    sums = pg.queries.sums(domain, [["a"], ["b"]], income)
    assert pg.sensitivity(sums, pg.Policy(domain)).value == 2 * 10**8
    assert pg.sensitivity(sums, pg.Policy(domain, pg.PolicyGraph.full(domain))).value == 4 * 10**8
    one = pg.Policy(domain, pg.PolicyGraph.full(domain), [pg.Cuboid("a")])
    assert pg.sensitivity(sums, one).value == 2 * 1000 * 2 * 10**8
    capped = pg.Policy(
        domain, pg.PolicyGraph.full(domain), [pg.Cuboid("a"), pg.Cuboid("b")], at_most_records=3
    )
    assert pg.sensitivity(sums, capped).value == 2 * 3 * 2 * 10**8
    with pytest.raises(RefusedError) as caught:
        pg.sensitivity(sums, pg.Policy(domain, pg.PolicyGraph.full(domain), [pg.Cuboid("a"), pg.Cuboid("b")]))
    assert caught.value.code == "measure.refused"


def test_the_bound_by_records_is_one():
    """Against the search on a domain that is small enough for both."""
    from policygraph.sensitivity.rungs import measures as module

    domain = pg.Domain({"a": 2, "b": 2})
    query = pg.queries.averages(domain, [["b"], []], pg.Measure("x", -2, 3))
    for graph in graphs(domain):
        policy = pg.Policy(domain, graph, [pg.Cuboid("a")])
        for norm in ("l1", "l2"):
            exact = pg.sensitivity(query, policy, norm=norm)
            most = module._most_records(policy)
            value, _ = module._single(query, norm)
            assert exact.power <= (2 * most * value if norm == "l1" else (2 * most) ** 2 * value)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"low": 5, "high": 5}, "measure.range"),
        ({"unit": 0}, "measure.unit"),
        ({"unit": 3}, "measure.unit"),
        ({"high": 10**10}, "measure.levels"),
        ({"missing": 11}, "measure.missing"),
        ({"missing": "0.5"}, "measure.missing"),
        ({"column": " "}, "measure.column"),
        ({"missing": "maybe"}, "number.not-exact"),
    ],
)
def test_a_measure_is_checked_when_it_is_declared(change, code):
    with pytest.raises(InputError) as caught:
        pg.Measure(**{"column": "x", "low": 0, "high": 10, **change})
    assert caught.value.code == code


def test_a_query_of_values_refuses_counts_of_cells():
    domain = pg.Domain({"a": 2})
    query = pg.queries.sums(domain, [["a"]], pg.Measure("x", 0, 9))
    for ask in (lambda: query @ [1, 2], lambda: query.columns([0]), lambda: query.answer_sparse([0], [1])):
        with pytest.raises(InputError) as caught:
            ask()
        assert caught.value.code == "measure.cells"
    with pytest.raises(RefusedError) as caught:
        pg.sensitivity(query, pg.Policy(domain, constraints=[pg.Total()], strength="markov"))
    assert caught.value.code == "measure.strength"
    for wrong, code in (({"balance": 0}, "measure.balance"), ({"measure": "x"}, "measure.measure")):
        with pytest.raises(InputError) as caught:
            MeasureQuery(
                **{"domain": domain, "measure": query.measure, "sets": [["a"]], "kind": "averages", **wrong}
            )
        assert caught.value.code == code


@settings(max_examples=60, deadline=None)
@given(queries())
def test_specs_go_round(query):
    again = pg.queries.from_spec(query.domain, query.to_spec())
    assert again == query
    assert again.parts == query.parts
    assert (again.sum_weight, again.count_weight, again.ends) == (
        query.sum_weight,
        query.count_weight,
        query.ends,
    )
    # With balance r a count of weight 1 is worth r times half the range.
    if query.kind == "averages":
        assert Fraction(query.count_weight, query.sum_weight) == query.balance * query.measure.span


@settings(max_examples=60, deadline=None)
@given(queries(), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=8))
def test_answers_are_those_of_the_records_one_by_one(query, given_records):
    domain, measure = query.domain, query.measure
    records = [(cell % domain.size, level % measure.levels) for cell, level in given_records]
    counts = np.zeros(domain.shape, dtype=np.int64)
    totals = np.zeros(domain.shape, dtype=np.int64)
    for cell, level in records:
        at = np.unravel_index(cell, domain.shape)
        counts[at] += 1
        totals[at] += measure.lowest + level
    by = {}
    for table, key in ((counts, "counts"), (totals, "totals")):
        by[key] = {
            at: table.sum(axis=tuple(i for i, name in enumerate(domain.names) if name not in names)).ravel()
            for at, names in enumerate(query.sets)
        }
    assert query.answer_from(**by).tolist() == oracle.answers(query, records).tolist()


def test_a_record_that_changes_its_value_may_matter_most():
    """The bound on moves between cells is below what a value alone changes: the two are one bracket, not a contradiction."""
    domain = pg.Domain({"a0": 2, "a1": 2})
    measure = pg.Measure("x", 0, 1, unit=1)
    query = MeasureQuery(domain, measure, [(), ("a1",), ("a0", "a1")], "sums", centred=True)
    policy = pg.Policy(domain, None, [pg.count({"a0": [0]})])
    found = pg.sensitivity(query, policy, norm="l2")
    assert (found.lower_power, found.power, found.exact) == (12, 12, True)
    compare(found, oracle.engine(query, policy, "l2").power, query)


def test_records_that_change_places_with_other_values_are_not_called_wrong():
    """Two records leave each other's cells with other values: the counts of the cells stay, and the sums change by two."""
    domain = pg.Domain({"a": 2})
    policy = pg.Policy(domain, pg.PolicyGraph.full(domain), [pg.Cuboid("a")])
    found = pg.sensitivity(MeasureQuery(domain, pg.Measure("x", 0, 1), [[]]), policy)
    assert (found.power, found.exact) == (2, True)
    report = found.verify()
    assert not report.failed, str(report)
    assert next(check for check in report.checks if check.name == "neighbours").passed is not False
