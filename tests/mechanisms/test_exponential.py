"""The exponential mechanism over neighbouring tables, audited by listing all tables and all pairs."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import policygraph as pg
from policygraph.audit.harness import audit
from policygraph.curator.runners.exponential import uniform
from policygraph.distributions.integers import thresholds
from policygraph.errors import ConstraintError, InputError, RefusedError
from policygraph.mechanisms.exponential.mechanism import Exponential, Layers, table_graph
from tests.gate import noisy_many
from tests.oracles import exponential as oracle

EPS = Fraction(1, 2)


def make(shape, facts):
    domain = pg.Domain(dict(zip("abc", shape, strict=False)))
    return pg.Policy(domain, constraints=[pg.Cuboid(*names, equals=values) for names, values in facts])


CASES = {
    "one step": make((2, 2), [("a", [1, 1]), ("b", [1, 1])]),
    "path": make((2, 2), [("a", [3, 4]), ("b", [4, 3])]),
    "two by three": make((2, 3), [("a", [2, 2]), ("b", [1, 2, 1])]),
    "latin": make((3, 3), [("a", [1, 1, 1]), ("b", [1, 1, 1])]),
    "three margins": make((2, 2, 2), [("a", [2, 1]), ("b", [2, 1]), ("c", [1, 2])]),
    "one margin": make((2, 3), [("a", [2, 1])]),
    "one table": make((2, 2), [("a", [0, 2]), ("b", [1, 1])]),
    "weighted": pg.Policy(
        pg.Domain({"a": 4}),
        constraints=[pg.Total(equals=4), pg.LinearCount([((1,), 1), ((2,), 2), ((3,), 3)], equals=5)],
    ),
    "zeros": pg.Policy(
        pg.Domain({"a": 3, "b": 3}),
        constraints=[
            pg.Cuboid("a", equals=[1, 1, 1]),
            pg.Cuboid("b", equals=[1, 1, 1]),
            pg.StructuralZero([(0, 0), (1, 1), (2, 2)]),
        ],
    ),
}


def literal(policy):
    rows, values = policy.system.full_rows()
    dense = rows.toarray().tolist()
    for cell in policy.system.zeros.tolist():
        dense.append([int(at == cell) for at in range(policy.domain.size)])
        values = [*values, 0]
    largest = max(value for value in values if value is not None)
    return oracle.graph(dense, values, largest, policy.domain.size)


@pytest.mark.parametrize("name", CASES)
def test_tables_and_distances_are_those_of_the_definition(name):
    listed, _, distances = literal(CASES[name])
    found = table_graph(CASES[name], 1000)
    assert [tuple(row) for row in found.tables.tolist()] == listed
    for i, a in enumerate(listed):
        assert len(distances[a]) == len(listed), "minimal moves connect all tables"
        assert found.distances[i].tolist() == [distances[a][b] for b in listed]


@pytest.mark.parametrize("name", CASES)
def test_no_output_tells_neighbours_apart_by_more_than_asked(name):
    policy = CASES[name]
    ready = Exponential().calibrate(pg.queries.identity(policy.domain), policy, pg.Epsilon(EPS))
    listed, pairs, distances = literal(policy)
    laws = {table: oracle.law(ready.rate, distances[table]) for table in listed}
    most = oracle.exp_bounds(EPS)
    for a, b in pairs:
        for one, other in ((a, b), (b, a)):
            for table in listed:
                # the combinatorial half of the proof, exactly
                assert abs(distances[one][table] - distances[other][table]) <= 1
                low, high = laws[one][table][0], laws[other][table][1]
                assert low / high <= most[1]
                if not found_tight(ready, policy):
                    assert laws[one][table][1] / laws[other][table][0] <= most[0]


def found_tight(ready, policy):
    """Ratios that reach the bound exactly cannot be told from it by intervals."""
    return ready.graph.regular


@pytest.mark.parametrize("name", CASES)
def test_the_layers_are_drawn_with_the_law_of_the_definition(name):
    policy = CASES[name]
    ready = Exponential().calibrate(pg.queries.identity(policy.domain), policy, pg.Epsilon(EPS))
    listed, _, distances = literal(policy)
    for at, table in enumerate(listed):
        counts = tuple(ready.graph.layers(at))
        law = oracle.law(ready.rate, distances[table])
        first, lows, highs = thresholds(Layers(ready.rate, counts), 64, 128)
        assert (first, len(lows)) == (1, len(counts) - 1)
        for d, (low, high) in enumerate(zip(lows, highs, strict=True), 1):
            below = [law[t] for t in listed if distances[table][t] < d]
            exact = sum(p[0] for p in below), sum(p[1] for p in below)
            assert Fraction(low, 2**128) <= exact[1]
            assert exact[0] <= Fraction(high, 2**128)
            assert high - low < 2**40


def test_draws_have_the_law():
    policy = CASES["two by three"]
    ready = Exponential().calibrate(pg.queries.identity(policy.domain), policy, pg.Epsilon(2))
    listed, _, distances = literal(policy)
    start = listed[0]
    law = oracle.law(ready.rate, distances[start])
    made = noisy_many(ready, np.array(start), 40_000, pg.SeededRng(8))
    counts = [int((made == np.array(table)).all(axis=1).sum()) for table in listed]
    assert sum(counts) == 40_000
    expected = np.array([float(law[table][0]) for table in listed])
    assert chisquare(counts, 40_000 * expected / expected.sum()).pvalue > 1e-4
    other = Exponential().calibrate(pg.queries.identity(policy.domain), policy, pg.Epsilon(1))
    wrong = oracle.law(other.rate, distances[start])
    shifted = np.array([float(wrong[table][0]) for table in listed])
    assert chisquare(counts, 40_000 * shifted / shifted.sum()).pvalue < 1e-6


def test_half_the_loss_is_the_rate_unless_all_tables_look_alike():
    for name, regular in (("one step", True), ("path", False), ("latin", True), ("two by three", False)):
        policy = CASES[name]
        ready = Exponential().calibrate(pg.queries.identity(policy.domain), policy, pg.Epsilon(1))
        assert ready.graph.regular is regular
        assert ready.rate == (1 if regular else Fraction(1, 2))
        text = " ".join(ready.stages())
        assert ("twice the rate" in text) is not regular


def test_twice_the_rate_is_needed_somewhere():
    """On a path of tables the whole rate would lose more than the asked epsilon."""
    policy = CASES["path"]
    listed, pairs, distances = literal(policy)
    laws = {table: oracle.law(EPS, distances[table]) for table in listed}
    worst = max(
        laws[one][t][0] / laws[other][t][1]
        for a, b in pairs
        for one, other in ((a, b), (b, a))
        for t in listed
    )
    assert worst > oracle.exp_bounds(EPS)[1]


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([(2, 2), (2, 3), (3, 2)]),
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.sampled_from([("a",), ("b",), ("a", "b")]),
)
def test_random_tables_against_the_definition(shape, counts, known):
    domain = pg.Domain(dict(zip("ab", shape, strict=True)))
    cube = np.array(counts[: domain.size]).reshape(shape)
    facts = [pg.Cuboid(n, equals=cube.sum(axis=1 - "ab".index(n)).tolist()) for n in known]
    policy = pg.Policy(domain, constraints=facts)
    assume(cube.sum() <= 6)
    listed, _, distances = literal(policy)
    assume(len(listed) <= 120)
    found = table_graph(policy, 1000)
    assert [tuple(row) for row in found.tables.tolist()] == listed
    assert found.distances.tolist() == [[distances[a][b] for b in listed] for a in listed]


def test_a_release_is_a_possible_table():
    policy = CASES["three margins"]
    query = pg.queries.identity(policy.domain)
    ready = Exponential().calibrate(query, policy, pg.Epsilon(1))
    table = ready.graph.tables[3]
    made = pg.release(
        query, policy, table.tolist(), epsilon=1, mechanism=Exponential(), source=pg.SeededRng(2)
    )
    policy.system.check(made.values())
    assert made.values().min() >= 0
    assert made.record["certificate_of"].startswith("the query alone")
    assert made.certificate.query == query
    assert "released table is a table of counts" in str(made)
    assert audit(ready, samples=4000, most_pairs=3, source=pg.SeededRng(1)).passed


def test_stated_errors_are_the_worst_over_tables():
    policy = CASES["two by three"]
    query = pg.queries.cuboids(policy.domain, [["a", "b"], ["a"]])
    ready = Exponential().calibrate(query, policy, pg.Epsilon(1))
    assert ready.deviation(1) == 0.0
    worst = np.zeros(6)
    for table in ready.graph.tables:
        draws = noisy_many(ready, table, 4000, pg.SeededRng(3))[:, :6]
        off = np.abs(draws - table)
        worst = np.maximum(worst, np.sqrt((off**2).mean(axis=0)))
        assert np.all((off <= ready.within_95(0)).mean(axis=0) > 0.94)
    assert np.allclose(worst, ready.deviation(0), rtol=0.06)


def test_one_table_is_released_as_it_is():
    policy = CASES["one table"]
    ready = Exponential().calibrate(pg.queries.identity(policy.domain), policy, pg.Epsilon(1))
    assert ready.run([0, 0, 1, 1], pg.SeededRng(1)).values().tolist() == [0, 0, 1, 1]
    assert ready.stages() == ["Only one table fits the published values, so that its answers are public."]


def test_uniform_integers_redraw_words_past_the_last_multiple():
    class Words(pg.SeededRng):
        def __init__(self):
            super().__init__(0)
            self.given = [2**64 - 1, 7, 3]

        def words(self, n):
            taken, self.given = self.given[:n], self.given[n:]
            return np.array(taken, dtype=np.uint64)

    source = Words()
    # 2^64 - 1 = 3 * 5 * ... is past the last multiple of 6, so it is drawn again
    assert uniform(6, 2, source).tolist() == [3, 1]
    assert uniform(1, 3, source).tolist() == [0, 0, 0]


def test_what_is_refused():
    domain = pg.Domain({"a": 2, "b": 2})
    query = pg.queries.identity(domain)

    def code(policy, loss=None, kind=Exponential(), **more):  # noqa: B008
        with pytest.raises((InputError, RefusedError)) as error:
            kind.calibrate(query, policy, loss or pg.Epsilon(1), **more)
        return error.value.code

    good = CASES["path"]
    assert code(good, pg.Rho(1)) == "mechanism.loss"
    assert code(good, sensitivity=pg.sensitivity(query, good)) == "mechanism.sensitivity"
    wide = make((3, 10), [("a", [40, 30, 30]), ("b", [10] * 10)])
    with pytest.raises(RefusedError) as large:
        Exponential().calibrate(pg.queries.identity(wide.domain), wide, pg.Epsilon(1))
    assert large.value.code == "exponential.size"
    assert code(pg.Policy(domain, constraints=[pg.Cuboid("a")])) == "exponential.values"
    assert code(pg.Policy(domain, pg.PolicyGraph.full(domain))) == "exponential.policy"
    assert code(good.with_strength("positive")) == "exponential.policy"
    some = pg.Policy(domain, constraints=[pg.LinearCount([((0, 0), 1), ((0, 1), -1)], equals=0)])
    assert code(some) == "exponential.infinite"
    cube = pg.Policy(
        pg.Domain({"a": 3, "b": 3}),
        constraints=[
            pg.Cuboid("a", equals=[1, 1, 1]),
            pg.Cuboid("b", equals=[1, 1, 1]),
            pg.StructuralZero([(0, 0), (1, 1), (2, 2)]),
        ],
        strength="markov",
    )
    with pytest.raises(RefusedError) as apart:
        Exponential().calibrate(pg.queries.identity(cube.domain), cube, pg.Epsilon(1))
    assert apart.value.code == "exponential.disconnected"
    ready = Exponential().calibrate(query, good, pg.Epsilon(1))
    with pytest.raises(ConstraintError):
        ready.run([9, 0, 0, 0], pg.SeededRng(1))
