"""Marginals by prefixes, ranges and rows of matrices, against rows written out record by record."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.model.queries.products import LARGEST_FACTOR, AxisRows, ProductQuery
from tests.oracles import products as oracle
from tests.oracles.sensitivity import over_edges


@st.composite
def product_queries(draw, most=4):
    """A small domain, some tables of it, and a way to ask each attribute."""
    sizes = draw(st.lists(st.integers(1, most), min_size=1, max_size=3))
    domain = pg.Domain({f"a{at}": n for at, n in enumerate(sizes)})
    every = list(_subsets(domain.names))
    sets = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    asked = {}
    for name, n in zip(domain.names, sizes, strict=True):
        kind = draw(st.sampled_from(["values", "prefix", "ranges", "rows"]))
        height = draw(st.integers(1, 4))
        entries = st.lists(st.integers(-3, 3), min_size=n, max_size=n)
        asked[name] = draw(st.lists(entries, min_size=height, max_size=height)) if kind == "rows" else kind
    weights = draw(st.lists(st.integers(1, 3), min_size=len(sets), max_size=len(sets)))
    return domain, sets, asked, weights


def _subsets(names):
    return [tuple(n for at, n in enumerate(names) if mask >> at & 1) for mask in range(1 << len(names))]


@given(product_queries(), st.randoms(use_true_random=False))
@settings(max_examples=80)
def test_answers_columns_and_norms_are_those_of_the_rows(given_query, rng):
    domain, sets, asked, weights = given_query
    query = ProductQuery(domain, sets, asked, weights)
    rows = oracle.rows(domain, query.sets, asked, weights)
    counts = np.array([rng.randint(0, 9) for _ in range(domain.size)])
    assert query.height == len(rows)
    assert query.answer(counts).tolist() == (rows @ counts).tolist()
    every = np.arange(domain.size)
    assert np.array_equal(query.columns(every).toarray(), rows)
    assert query.largest_entry >= np.abs(rows).max(initial=0)
    u, v = (np.array([rng.randrange(domain.size) for _ in range(6)]) for _ in "uv")
    for norm, size in (("l1", np.abs), ("l2", np.square)):
        assert query.column_norms(every, norm).tolist() == size(rows).sum(axis=0).tolist()
        assert query.pair_norms(u, v, norm).tolist() == size(rows[:, u] - rows[:, v]).sum(axis=0).tolist()
        value, cell = query.longest_column(norm)
        assert value == size(rows).sum(axis=0).max() == size(rows[:, cell]).sum()
    again = pg.queries.from_spec(domain, query.to_spec())
    assert again == query
    assert again.answer(counts).tolist() == query.answer(counts).tolist()


def test_labels_say_what_is_counted():
    domain = pg.Domain({"sex": ["F", "M"], "age": [20, 30, 40], "hours": 2})
    query = pg.queries.marginals(domain, [["age", "sex"], ["hours"]], prefix="age", ranges=["hours"])
    assert query.parts[0].columns == ("sex", "age up to")
    sexes, ages = query.part_labels(0)
    assert list(zip(sexes.tolist(), ages.tolist(), strict=True)) == [
        (s, a) for s in "FM" for a in (20, 30, 40)
    ]
    assert query.parts[1].columns == ("first hours", "last hours")
    assert [column.tolist() for column in query.part_labels(1)] == [[0, 0, 1], [0, 1, 1]]
    assert pg.queries.marginals(domain, 2, prefix="age").sets == (
        ("sex", "age"),
        ("sex", "hours"),
        ("age", "hours"),
    )


def test_without_an_order_these_are_cuboids():
    domain = pg.Domain({"sex": 2, "age": 3})
    assert pg.queries.marginals(domain, [["sex"]]) == pg.queries.cuboids(domain, [["sex"]])


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda d: pg.queries.marginals(d, [["sex"]], prefix=["ages"]), "domain.unknown-attribute"),
        (lambda d: pg.queries.marginals(d, [["sex"]], prefix="age", ranges="age"), "query.asked"),
        (lambda d: pg.queries.marginals(d, 3, prefix="age"), "query.up-to"),
        (lambda d: ProductQuery(d, [["age"]], {"age": "suffix"}), "query.asked"),
        (lambda d: ProductQuery(d, [["age"]], {"age": [[1, 2]]}), "query.asked"),
        (lambda d: ProductQuery(d, [["age"]], {"age": [[1.5, 2, 3]]}), "query.asked"),
        (lambda d: ProductQuery(d, [["age"]], {"age": [[1, 2, 3], [1]]}), "query.asked"),
        (lambda d: ProductQuery(d, [["age"]], {"age": [[1, 2, LARGEST_FACTOR]]}), "query.entries"),
        (lambda d: ProductQuery(d, [["age"]], {"age": "prefix"}, [1 << 53]), "query.weights"),
        (lambda d: ProductQuery(d, [["age", "age"]], {"age": "prefix"}), "query.duplicate"),
        (lambda d: ProductQuery(d, [], {"age": "prefix"}), "query.empty"),
        (lambda d: AxisRows(1 << 15, "prefix"), "query.too-large"),
    ],
)
def test_what_does_not_fit_is_refused(make, code):
    with pytest.raises(pg.InputError) as caught:
        make(pg.Domain({"sex": 2, "age": 3}))
    assert caught.value.code == code


GRAPHS = {
    "full": pg.PolicyGraph.full,
    "attribute": pg.PolicyGraph.attribute,
    "grid": pg.PolicyGraph.grid,
    "threshold": lambda domain: pg.PolicyGraph.threshold(domain, 2),
    "euclidean": lambda domain: pg.PolicyGraph.threshold(domain, "1.5", metric="euclidean"),
    "blocks": lambda domain: pg.PolicyGraph.partition(domain, np.arange(domain.size) % 2),
    "bottom": lambda domain: pg.PolicyGraph.from_edges(domain, []).with_bottom(),
    "attribute and bottom": lambda domain: pg.PolicyGraph.attribute(domain).with_bottom(),
}


@given(product_queries(3), st.sampled_from(sorted(GRAPHS)), st.sampled_from(["l1", "l2"]), st.booleans())
@settings(max_examples=150)
def test_sensitivities_bound_every_edge(given_query, kind, norm, listed):
    """With and without looking at every edge: never below the truth, attained by the witness, exact where one attribute changes."""
    from policygraph.sensitivity.rungs import products

    domain, sets, asked, weights = given_query
    graph = GRAPHS[kind](domain)
    query = ProductQuery(domain, sets, asked, weights)
    rows = oracle.rows(domain, query.sets, asked, weights)
    edges = [(u, None if v is pg.BOTTOM else v) for u, v in graph.edges()]
    truth = over_edges(rows, edges, norm)
    with pytest.MonkeyPatch.context() as patch:
        if not listed:
            patch.setattr(products, "FEW_EDGES", -1)
        found = pg.sensitivity(query, pg.Policy(domain, graph), norm=norm)
    assert found.lower_power <= truth <= found.power
    assert not found.verify().failed
    if listed or kind in ("attribute", "grid", "bottom", "attribute and bottom"):
        assert found.power == truth


@given(product_queries(3), st.sampled_from(["l1", "l2"]))
@settings(max_examples=40)
def test_each_table_may_take_its_own_worst_change(given_query, norm):
    """The bound for very many sets of attributes is one, too."""
    from policygraph.sensitivity.rungs import products

    domain, sets, asked, weights = given_query
    graph = pg.PolicyGraph.full(domain)
    query = ProductQuery(domain, sets, asked, weights)
    truth = over_edges(oracle.rows(domain, query.sets, asked, weights), list(graph.edges()), norm)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "FEW_EDGES", -1)
        patch.setattr(products, "MOST_TERMS", -1)
        found = pg.sensitivity(query, pg.Policy(domain, graph), norm=norm)
    assert found.power >= truth


@given(product_queries(3), st.sampled_from(["l1", "l2"]), st.booleans())
@settings(max_examples=30)
def test_public_facts_are_kept_in_mind(given_query, norm, both):
    """Induced neighbours: the longest minimal move bounds the change, by the list of all of them."""
    from tests.oracles.sensitivity import longest, margin_rows

    domain, sets, asked, weights = given_query
    facts = [domain.names[:1], domain.names[-1:]] if both else [()]
    query = ProductQuery(domain, sets, asked, weights)
    policy = pg.Policy(domain, constraints=[pg.Cuboid(*n) if n else pg.Total() for n in dict.fromkeys(facts)])
    matrix = np.array([row for names in facts for row in margin_rows(domain, tuple(names))])
    found = pg.sensitivity(query, policy, norm=norm)
    truth = longest(matrix, oracle.rows(domain, query.sets, asked, weights), norm)
    assert found.lower_power <= truth <= found.power
    assert not found.verify().failed


def test_a_domain_of_any_size_has_a_closed_form():
    domain = pg.Domain({f"a{at}": 100 for at in range(14)})
    query = pg.queries.marginals(domain, 2, prefix=["a0", "a1"], ranges=["a2"])
    alone = pg.sensitivity(query, pg.Policy(domain), norm="l2")
    assert alone.exact
    assert alone.power == 55 + 2 * 100 * 11 + 100 * 100 + 2550 * (11 + 200)
    one = pg.sensitivity(query, pg.Policy(domain, pg.PolicyGraph.attribute(domain)), norm="l2")
    # The first attribute changes from its last to its first value: beside 11 tables by value, one of prefixes and one of ranges.
    assert one.exact
    assert one.power >= 99 * (11 + 100 + 2550)
