"""Game, discriminant and the exponential mechanism over policy graphs against literal definitions and No Free Lunch in Data Privacy."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import comb, exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.attacks import channel, discriminant, free_lunch_bound, game, group_epsilon, log_odds
from policygraph.mechanisms.exponential.mechanism import table_graph

COIN = pg.Domain({"patient": ["no", "yes"]})
PATIENTS = pg.queries.matrix(COIN, [[0, 1]])


def person(kind: str) -> pg.Policy:
    """Bob alone, two attributes of two bits."""
    if kind == "bit":
        domain = pg.Domain({"r1": 2, "r2": 2, "r3": 2, "r4": 2})
        graph = pg.PolicyGraph.attribute(domain)
    else:
        domain = pg.Domain({"r1": 4, "r2": 4})
        graph = pg.PolicyGraph.attribute(domain) if kind == "attribute" else pg.PolicyGraph.full(domain)
    return pg.Policy(domain, graph, [pg.Total(equals=1)])


@pytest.mark.parametrize("epsilon", ["1/10", "1/2", 1])
def test_figure_1_of_no_free_lunch(epsilon: object) -> None:
    e = exp(float(Fraction(str(epsilon))))
    published = {
        "bounded": e / (15 + e),
        "attribute": e**2 / (9 + 6 * e + e**2),
        "bit": e**4 / (e**4 + 4 * e**3 + 6 * e**2 + 4 * e + 1),
    }
    for kind, value in published.items():
        policy = person(kind)
        ready = pg.Exponential().calibrate(pg.queries.identity(policy.domain), policy, pg.Epsilon(epsilon))
        told = channel(ready)
        np.testing.assert_allclose(np.diag(told.probabilities), value, rtol=1e-12)
        assert all(sum(low) <= 1 << 128 <= sum(high) for low, high in zip(told.lows, told.highs, strict=True))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_tables_along_a_policy_graph_are_neighbours_by_definition(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 4))
    domain = pg.Domain({"r": size})
    extra = data.draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=2))
    edges = {(i, i + 1) for i in range(size - 1)} | {(min(e), max(e)) for e in extra if e[0] != e[1]}
    records = data.draw(st.integers(1, 3))
    policy = pg.Policy(domain, pg.PolicyGraph.from_edges(domain, sorted(edges)), [pg.Total(equals=records)])
    found = table_graph(policy, 100)
    assert len(found.tables) == comb(records + size - 1, size - 1)
    for one, two in combinations(range(len(found.tables)), 2):
        expected = bool(policy.are_neighbours(found.tables[one], found.tables[two]))
        assert (found.distances[one, two] == 1) == expected
    epsilon = Fraction(1, 2)
    told = channel(pg.Exponential().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(epsilon)))
    p = told.probabilities
    for one, two in combinations(range(len(p)), 2):
        if found.distances[one, two] == 1:
            assert np.abs(np.log(p[one] / p[two])).max() <= float(epsilon) + 1e-12


def test_what_is_refused_over_policy_graphs() -> None:
    domain = pg.Domain({"r": 4})
    query = pg.queries.identity(domain)
    split = pg.Policy(domain, pg.PolicyGraph.from_edges(domain, [(0, 1), (2, 3)]), [pg.Total(equals=2)])
    with pytest.raises(pg.RefusedError) as refused:
        pg.Exponential().calibrate(query, split, pg.Epsilon(1))
    assert refused.value.code == "exponential.disconnected"
    for policy in (
        pg.Policy(domain, pg.PolicyGraph.full(domain)),
        pg.Policy(domain, pg.PolicyGraph.line(domain).with_bottom(), [pg.Total(equals=2)]),
        pg.Policy(domain, pg.PolicyGraph.line(domain), [pg.count({"r": [0, 1]}, equals=2)]),
    ):
        with pytest.raises(pg.InputError) as raised:
            pg.Exponential().calibrate(query, policy, pg.Epsilon(1))
        assert raised.value.code in ("exponential.policy", "exponential.values")


@pytest.mark.parametrize("records", [1, 2, 3])
def test_free_lunch_privacy_meets_its_bound(records: int) -> None:
    policy = pg.Policy(COIN, pg.PolicyGraph.full(COIN), [pg.Total(equals=records)])
    ready = pg.FreeLunch().calibrate(pg.queries.identity(COIN), policy, pg.Epsilon("3/4"))
    found = discriminant(ready, records + 1)
    low, high = free_lunch_bound("3/4", records + 1)
    assert found.exact
    assert low - Fraction(1, 2**100) <= found.lower <= high
    told = channel(ready).probabilities
    assert np.abs(np.log(told[:, None] / told[None])).max() == pytest.approx(
        0.75, rel=1e-12
    )  # every pair of data sets
    if records > 1:
        assert discriminant(ready, 2).lower < free_lunch_bound("3/4", 2)[0]


def literal(p: np.ndarray, k: int) -> float:
    """The definition: all choices of data sets, all disjoint sets of outputs."""
    best = 0.0
    for chosen in combinations(range(len(p)), k):
        for owners in product(range(k), repeat=p.shape[1]):
            best = max(
                best,
                min(
                    sum(p[t, o] for o in range(p.shape[1]) if owners[o] == at) for at, t in enumerate(chosen)
                ),
            )
    return best


@pytest.mark.parametrize("k", [2, 3])
def test_the_discriminant_is_that_of_the_definition(k: int) -> None:
    domain = pg.Domain({"r": 3})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain), [pg.Total(equals=1)])
    for epsilon in ("1/2", 2, 5):
        ready = pg.Exponential().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(epsilon))
        found = discriminant(ready, k)
        assert found.exact
        assert float(found.lower) == pytest.approx(literal(channel(ready).probabilities, k), rel=1e-12)
        shown = [
            sum(channel(ready, [t]).probabilities[0][list(channel(ready).outputs).index(o)] for o in s)
            for t, s in zip(found.tables, found.sets, strict=True)
        ]
        assert min(shown) == pytest.approx(float(found.lower))
        assert str(found).startswith(f"discriminant({k}) = ")


@pytest.mark.parametrize(
    ("k", "epsilon", "whole"), [(2, 1, 0.7310585786), (3, "1/10", 0.1403667890), (3, 2, 0.7615941559)]
)
def test_the_tails_of_a_noisy_number_are_shared_between_the_sets(
    k: int, epsilon: object, whole: float
) -> None:
    """With each tail in one piece the best sets have the probability ``whole``; pieces of it do better, and no way to share is better than the bound."""
    ready = pg.Laplace().calibrate(PATIENTS, pg.Policy(COIN), pg.Epsilon(epsilon))
    tables = [[2, 0], [1, 1], [0, 2]]
    assert literal(channel(ready, tables).probabilities, k) == pytest.approx(whole)
    found = discriminant(ready, k, tables=tables)
    assert whole + 0.01 < found.lower <= found.upper <= free_lunch_bound(2 * Fraction(str(epsilon)), k)[1]
    # every way to share nine outputs by themselves, and the rest below and above in one piece each, as a lower bound
    q = exp(-float(Fraction(str(epsilon))))
    few = range(-1, 4) if k == 3 else range(-3, 6)
    rows = []
    for answer in range(3):
        inside = [(1 - q) / (1 + q) * q ** abs(o - answer) for o in few]
        rows.append([q ** (answer - few[0] + 1) / (1 + q), *inside, q ** (few[-1] + 1 - answer) / (1 + q)])
    assert literal(np.array(rows), k) <= float(found.upper) + 1e-12
    # the sets that are named: disjoint, and as likely as stated
    told = [set(each) for each in found.sets]
    assert not any(one & two for one, two in combinations(told, 2))
    numbers = [o for each in told for o in each if isinstance(o, int)]
    first, last = min(numbers), max(numbers)
    for table, mine in zip(found.tables, told, strict=True):
        answer = int(table[1])
        chance = sum((1 - q) / (1 + q) * q ** abs(o - answer) for o in mine if isinstance(o, int))
        chance += q ** (answer - first + 1) / (1 + q) if "below" in mine else 0.0
        chance += q ** (last + 1 - answer) / (1 + q) if "above" in mine else 0.0
        assert chance >= float(found.lower) - 1e-12


def test_a_gaussian_number_and_many_tables_are_shared_by_programs() -> None:
    gauss = pg.Gaussian().calibrate(PATIENTS, pg.Policy(COIN), pg.Rho("1/8"))
    found = discriminant(gauss, 2, tables=[[0, 0], [0, 4]])
    # sigma = 2: two normal variables 2 sigma apart, and the number in the middle, of probability 0.121, is in one set only
    assert 0.841 - 0.121 / 2 - 0.01 < found.lower <= found.upper < 0.841 + 0.01
    policy = pg.Policy(COIN, pg.PolicyGraph.full(COIN), [pg.Total(equals=9)])
    lunch = pg.FreeLunch().calibrate(pg.queries.identity(COIN), policy, pg.Epsilon(1))
    two = discriminant(lunch, 2)
    # five outputs of ten for each: (e + 4) / (e + 9), whichever two tables
    assert float(two.lower) == pytest.approx((exp(1) + 4) / (exp(1) + 9))
    assert two.exact
    assert "linear program" in two.how


def test_proposition_2_1_the_laplace_mechanism_tells_data_sets_apart() -> None:
    ready = pg.Laplace().calibrate(pg.queries.identity(COIN), pg.Policy(COIN), pg.Epsilon(1))
    before = Fraction(0)
    for records in (2, 10, 40, 200):
        found = discriminant(ready, 3, records=records)
        assert before < found.lower <= found.upper <= 1
        before = found.lower
        # the witness: intervals of one noisy number around the answers, by simulation
        low, high = (int(x) for x in found.sets[1][0].split(" to "))
        assert found.tables.sum(axis=1).tolist() == [records] * 3
        chance = 1 - float(1 - found.lower)
        q = exp(-1)
        assert chance == pytest.approx(1 - 2 * q ** ((high - low) // 2 + 1) / (1 + q), rel=1e-12)
    assert before > 1 - Fraction(1, 10**15)
    gauss = pg.Gaussian().calibrate(pg.queries.identity(COIN), pg.Policy(COIN), pg.Rho("1/2"))
    assert discriminant(gauss, 2, records=30).lower > Fraction(999, 1000)


@pytest.mark.parametrize("epsilon", ["1/2", 2])
def test_theorem_2_1_the_witness_of_no_free_lunch(epsilon: object) -> None:
    """Data that make the secret uniform and a guess right with the probability of the discriminant at least."""
    ready = pg.Laplace().calibrate(PATIENTS, pg.Policy(COIN), pg.Epsilon(epsilon))
    k = 4
    found = discriminant(ready, k, records=60)
    played = game(ready, found.tables, range(k), runs=4000, seed=3)
    assert played.blind == Fraction(1, k)
    assert played.win is not None
    assert played.win[0] >= found.lower
    assert played.win[1] - played.win[0] < Fraction(1, 2**90)
    assert played.error is not None
    assert abs(played.simulated - float(played.win[0])) <= 3 * played.error
    assert "wins with probability" in str(played)


def test_games_by_hand() -> None:
    ready = pg.Laplace().calibrate(PATIENTS, pg.Policy(COIN), pg.Epsilon(1))
    # two tables: the best guess is the likelier one
    played = game(ready, [[0, 3], [0, 0]], ["sick", "well"])
    assert played.win is not None
    assert abs(played.win[0] - log_odds(ready, [0, 3], [0, 0]).success[0]) < Fraction(1, 2**90)
    # a prior that no output outweighs: nothing is learnt
    certain = game(ready, [[0, 1], [0, 0]], [1, 0], prior=[1, 99])
    assert certain.win is not None
    assert certain.blind == Fraction(99, 100)
    assert certain.win[1] < certain.blind + Fraction(1, 2**90)
    # the same secret twice
    assert game(ready, [[0, 1], [0, 0]], lambda table: "same").win[0] > 1 - Fraction(1, 2**90)  # type: ignore[index]
    # several numbers: by simulation only, and the exponential mechanism by both
    both = pg.Laplace().calibrate(pg.queries.identity(COIN), pg.Policy(COIN), pg.Epsilon(1))
    alone = game(both, [[4, 0], [0, 4]], [0, 1], runs=2000)
    assert alone.win is None
    expected = float(log_odds(both, [4, 0], [0, 4]).success[0])
    assert abs(alone.simulated - expected) <= 3 * alone.error  # type: ignore[operator]
    policy = person("attribute")
    tables = table_graph(policy, 16).tables
    bob = pg.Exponential().calibrate(pg.queries.identity(policy.domain), policy, pg.Epsilon(1))
    guessed = game(bob, tables, range(16), runs=3000)
    assert float(guessed.win[0]) == pytest.approx(exp(2) / (9 + 6 * exp(1) + exp(2)), rel=1e-12)  # type: ignore[index]
    assert abs(guessed.simulated - float(guessed.win[0])) <= 3 * guessed.error  # type: ignore[operator, index]


def test_the_family_of_example_2_1() -> None:
    """All ten are sick or none: odds of exp(10 epsilon), and a tenth of the loss hides them."""
    epsilon = Fraction(1, 2)
    plain = pg.Laplace().calibrate(PATIENTS, pg.Policy(COIN), pg.Epsilon(epsilon))
    assert log_odds(plain, [0, 10], [10, 0]).largest == 10 * epsilon
    safe = pg.Laplace().calibrate(PATIENTS, pg.Policy(COIN), group_epsilon(epsilon, 10))
    assert log_odds(safe, [0, 10], [10, 0]).largest == epsilon


def sparse() -> object:
    """A mechanism that looks at the data before it adds noise."""
    return pg.Sparse().calibrate(pg.queries.cuboid(COIN, "patient"), pg.Policy(COIN), pg.Epsilon(1))


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda r: discriminant(r, 1, records=5), "attacks.k"),
        (lambda r: discriminant(r, 3), "attacks.k"),
        (lambda r: discriminant(r, 3, tables=[[0, 1], [1, 0]]), "attacks.k"),
        (lambda r: discriminant(sparse(), 2, tables=[[1, 0], [0, 1]]), "attacks.mechanism"),
        (lambda r: discriminant(sparse(), 2, records=5), "attacks.mechanism"),
        (lambda r: free_lunch_bound(-1, 2), "attacks.k"),
        (lambda r: group_epsilon(1, 0), "attacks.k"),
        (lambda r: game(r, [[0, 1]], [1, 2]), "attacks.prior"),
        (lambda r: game(r, [[0, 1]], [1], runs=-1), "attacks.runs"),
        (lambda r: channel(r), "attacks.tables"),
        (lambda r: game(r, [], []), "attacks.tables"),
        (lambda r: game(sparse(), [[1, 0], [0, 1]], [0, 1], runs=10), "attacks.mechanism"),
    ],
)
def test_bad_input_gets_a_sentence(make, code: str) -> None:
    ready = pg.Laplace().calibrate(PATIENTS, pg.Policy(COIN), pg.Epsilon(1))
    with pytest.raises(pg.InputError) as raised:
        make(ready)
    assert raised.value.code == code


@pytest.mark.parametrize("k", [2, 3])
def test_the_sets_of_a_discriminant_have_the_stated_probability(k: int) -> None:
    """The sets that are named, summed literally: disjoint, and each at least as likely under its data set as stated."""
    epsilon = Fraction(1, 2)
    ready = pg.Laplace().calibrate(PATIENTS, pg.Policy(COIN), pg.Epsilon(epsilon))
    found = discriminant(ready, k, records=8)
    window = range(-200, 209)
    owned: set[int] = set()
    for table, (said,) in zip(found.tables, found.sets, strict=True):
        word, _, number = said.rpartition(" ")
        if word in ("at most", "at least"):
            mine = {o for o in window if (o <= int(number) if word == "at most" else o >= int(number))}
        else:
            low, high = said.split(" to ")
            mine = set(range(int(low), int(high) + 1))
        assert not mine & owned
        owned |= mine
        centre = int(table[1])
        total = sum(exp(-float(epsilon) * abs(o - centre)) for o in mine)
        all_of_them = (1 + exp(-float(epsilon))) / (1 - exp(-float(epsilon)))
        assert total / all_of_them >= float(found.lower) - 1e-12
