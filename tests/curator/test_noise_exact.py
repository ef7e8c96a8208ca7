"""The samplers are exact: enclosures, thresholds, refinement, tails, digits and the rejection, against decimals."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.curator.noise import discrete, inversion
from policygraph.curator.noise.inversion import InversionTable
from policygraph.curator.noise.rng import SeededRng
from policygraph.distributions import integers
from policygraph.distributions.enclosure import Weights, exp_neg, gaussian_weights, geometric_weights
from policygraph.distributions.integers import (
    DiscreteGaussian,
    TruncatedGeometric,
    TwoSidedGeometric,
    thresholds,
)
from policygraph.distributions.noise import NOISE_BITS
from policygraph.errors import RefusedError
from tests.oracles import noise as oracle

WORD = 1 << 64
rationals = st.fractions(min_value=0, max_value=300, max_denominator=10**6)


def laplace_law(scale, reach):
    return oracle.normalised(oracle.laplace_weights(scale, reach))


def gaussian_law(square, reach):
    return oracle.normalised(oracle.gaussian_weights(square, reach))


def digit_law(rate, base):
    return oracle.normalised({h: oracle.exp_neg(rate * h) for h in range(base)})


# Each entry: a law of the product, and its probabilities by definition, far enough out that 10**-150 is missing.
LAWS = {
    "laplace 1/100": (TwoSidedGeometric(Fraction(100), Fraction(100)), laplace_law(Fraction(1, 100), 6)),
    "laplace 1/3": (TwoSidedGeometric(Fraction(3), Fraction(3)), laplace_law(Fraction(1, 3), 150)),
    "laplace 1": (TwoSidedGeometric(Fraction(1), Fraction(1)), laplace_law(Fraction(1), 400)),
    "laplace 7/2": (TwoSidedGeometric(Fraction(2, 7), Fraction(2, 7)), laplace_law(Fraction(7, 2), 1300)),
    "digit 2": (TruncatedGeometric(Fraction(1, 100), 2), digit_law(Fraction(1, 100), 2)),
    "digit 16": (TruncatedGeometric(Fraction(1, 1000), 16), digit_law(Fraction(1, 1000), 16)),
    "digit of a huge scale": (
        TruncatedGeometric(Fraction(1, 10**12), 32),
        digit_law(Fraction(1, 10**12), 32),
    ),
    "gaussian 1/100": (DiscreteGaussian(Fraction(50)), gaussian_law(Fraction(1, 100), 4)),
    "gaussian 1": (DiscreteGaussian(Fraction(1, 2)), gaussian_law(Fraction(1), 30)),
    "gaussian 200/7": (DiscreteGaussian(Fraction(7, 400)), gaussian_law(Fraction(200, 7), 150)),
    "half gaussian": (
        DiscreteGaussian(Fraction(1, 50), two_sided=False),
        oracle.normalised({h: oracle.exp_neg(Fraction(h * h, 50)) for h in range(150)}),
    ),
}
named = pytest.mark.parametrize("name", LAWS)


@given(rationals, st.integers(4, 500))
def test_exp_is_enclosed(x, bits):
    low, high = exp_neg(x, bits)
    assert low <= oracle.exp_neg(x) * 2**bits <= high <= low + 2


@given(st.fractions(min_value=Fraction(1, 10**15), max_value=Fraction(1, 10**9)), st.integers(64, 300))
def test_exp_of_tiny_numbers_is_enclosed(x, bits):
    low, high = exp_neg(x, bits)
    assert low <= oracle.exp_neg(x) * 2**bits <= high <= low + 2


@given(
    st.fractions(min_value=Fraction(1, 20), max_value=90, max_denominator=1000),
    st.integers(1, 60),
    st.integers(64, 200),
)
@settings(max_examples=30, deadline=None)
def test_weights_and_tails_are_enclosed(rate, count, bits):
    ratio = oracle.exp_neg(rate)
    found = geometric_weights(rate, count, bits, endless=True)
    for h in range(count):
        assert found.lows[h] <= oracle.exp_neg(rate * h) * 2**bits <= found.highs[h]
    assert found.tail_low <= oracle.exp_neg(rate * count) / (1 - ratio) * 2**bits <= found.tail_high
    found = gaussian_weights(rate, count, bits)
    for h in range(count):
        assert found.lows[h] <= oracle.exp_neg(rate * h * h) * 2**bits <= found.highs[h]
    # 100 terms on, exp(-rate * h**2) < 10**-200 for rate >= 1/20.
    tail = sum(oracle.exp_neg(rate * h * h) for h in range(count, count + 100))
    assert found.tail_low <= tail * 2**bits <= found.tail_high


@named
def test_words_enclose_the_distribution_function_to_one_unit(name):
    law, probabilities = LAWS[name]
    table = InversionTable(law, limit=2**62)
    below = oracle.below(probabilities)
    assert table.words.tolist() == sorted(table.words.tolist())
    for i, word in enumerate(table.words.tolist()):
        assert word <= below(table.first + i) * WORD <= word + 1


@named
def test_probability_of_each_value_equals_its_definition_to_one_unit_before_refinement(name):
    law, probabilities = LAWS[name]
    table = InversionTable(law, limit=2**62)
    words = table.words.tolist()
    if not law.two_sided:
        words, first = [0, *words], table.first - 1
    else:
        first = table.first
    if not law.endless:
        words = [*words, WORD]
    # Values outside the list have less than one unit each and share the words 0 and 2**64 - 1.
    for k, (word, following) in enumerate(pairwise(words), first):
        assert abs(Fraction(following - word, WORD) - probabilities[k]) <= Fraction(1, WORD)
    listed = range(first, first + len(words) - 1)
    assert sum(p for k, p in probabilities.items() if k not in listed) <= Fraction(2, WORD)


@named
@pytest.mark.parametrize("bits", [64, 128, 256])
def test_mass_decided_by_n_bits_grows_to_the_exact_probability(name, bits):
    """Of the 2**bits beginnings of U, those decided for k number P(k) 2**bits, less at most four and never more."""
    law, probabilities = LAWS[name]
    first, lows, highs = thresholds(law, bits, bits + 32)
    if not law.two_sided:
        first, lows, highs = first - 1, [0, *lows], [0, *highs]
    if not law.endless:
        lows, highs = [*lows, 1 << (bits + 32)], [*highs, 1 << (bits + 32)]
    for k, (high, low) in enumerate(zip(highs, lows[1:]), first):
        decided = max(0, (low >> 32) - -(-high >> 32))
        assert decided <= probabilities[k] * 2**bits <= decided + 4


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_refinement_agrees_with_literal_inversion(data):
    law, probabilities = LAWS[data.draw(st.sampled_from(sorted(LAWS)))]
    table = InversionTable(law, limit=2**62)
    below = oracle.below(probabilities)
    threshold = table.first + data.draw(st.integers(0, table.words.size - 1))
    depth = data.draw(st.integers(1, 4))
    # The first words of the threshold itself force ties; the last word leaves it on either side.
    value = int(below(threshold) * WORD ** (depth + 1))
    value += data.draw(st.sampled_from([-(2**70), -5, -1, 0, 1, 2, 5, 2**70]))
    value = min(max(value, 0), WORD ** (depth + 1) - 1)
    words = [value >> (64 * i) & (WORD - 1) for i in range(depth, -1, -1)]
    expected = oracle.invert(words, below, min(probabilities), max(probabilities))
    source = oracle.ScriptedSource(words)
    if expected is None:
        with pytest.raises(LookupError):
            table.draw(1, source)
    else:
        try:
            assert table.draw(1, source).tolist() == [expected]
        except LookupError:
            # The product encloses thresholds to 2**-32 of a unit and may ask for a word the oracle can spare.
            distances = [abs(below(k) * WORD ** (depth + 1) - value) for k in (expected, expected + 1)]
            assert min(distances) < 2


@pytest.mark.parametrize("step", [-30, -3, -1, 0, 1, 3, 30])
def test_wide_enclosures_only_ask_for_more_bits(step):
    """Near a threshold whose enclosure covers many words, the true side is found with the words that follow."""

    class Wide(TruncatedGeometric):
        def weigh(self, count, bits):
            left, right = super().weigh(count, bits)
            spread = 1 << 40 if bits < 224 else 0
            lows, highs = [w - spread for w in right.lows], [w + spread for w in right.highs]
            return left, Weights(lows, highs, 0, 0)

    law = Wide(Fraction(1, 10), 4)
    below = oracle.below(digit_law(law.rate, 4))
    table = InversionTable(law, limit=10)
    for k in (1, 2, 3):
        # Two words that 128 bits leave open, with the threshold between them and the steps away from it.
        value = (int(below(k) * WORD**2) + step) * WORD + 5
        words = [value >> 128, value >> 64 & (WORD - 1), value & (WORD - 1)]
        source = oracle.ScriptedSource(words)
        assert table.draw(1, source).tolist() == [k - (Fraction(value, WORD**3) < below(k))]
        assert source.used == 3


def test_ties_really_reach_refinement():
    law, _ = LAWS["laplace 1"]
    table = InversionTable(law, limit=2**62)
    for word in table.words.tolist():
        source = oracle.ScriptedSource([word, 12345, 678, 9])
        table.draw(1, source)
        assert source.used >= 2


@pytest.mark.parametrize("name", ["laplace 1/3", "laplace 7/2", "gaussian 1", "half gaussian"])
@pytest.mark.parametrize("side", [0, WORD - 1])
@pytest.mark.parametrize("ends", [1, 2, 3])
def test_tails_beyond_the_table_are_exact(name, side, ends):
    law, probabilities = LAWS[name]
    table = InversionTable(law, limit=2**62)
    below = oracle.below(probabilities)
    for word in (WORD // 3, WORD // 2 + 17, 5 * (WORD // 7)):
        words = [side] * ends + [word]
        expected = oracle.invert(words, below, min(probabilities), max(probabilities))
        assert table.draw(1, oracle.ScriptedSource(words)).tolist() == [expected]
        if law.two_sided:
            assert expected != 0
            assert (expected > 0) == (side > 0)


def test_a_draw_beyond_the_limit_is_refused_and_not_wrapped():
    table = InversionTable(TwoSidedGeometric(Fraction(1), Fraction(1)), limit=60)
    with pytest.raises(RefusedError) as caught:
        table.draw(1, oracle.ScriptedSource([0, 0, WORD // 5]))
    assert caught.value.code == "noise.overflow"
    assert abs(int(table.draw(1, oracle.ScriptedSource([WORD // 2]))[0])) <= 60


@pytest.mark.parametrize("scale", [Fraction(65), Fraction(100), Fraction(1000), Fraction(40000, 3)])
def test_digits_multiply_to_the_law(scale):
    """P(k) from the words of the digit tables equals the definition to 2**-64, value by value."""
    plan = discrete._laplace_plan(scale)
    assert plan.low_bits > 0
    digit_words = [(place, [0, *t.words.tolist(), WORD]) for place, t in plan.low]
    high = plan.high.words.tolist()
    q = oracle.exp_neg(1 / scale)
    for k in [*range(-300, 300), *range(int(-40 * scale), int(40 * scale), 997)]:
        g, place = (k, k >> plan.low_bits) if k >= 0 else (-1 - k, k >> plan.low_bits)
        i = place - plan.high.first
        found = Fraction(high[i + 1] - high[i], WORD)
        for shift, words in digit_words:
            h = g >> shift & (len(words) - 2)
            found *= Fraction(words[h + 1] - words[h], WORD)
        exact = (1 - q) / (1 + q) * oracle.exp_neg(abs(k) / scale)
        assert abs(found - exact) <= Fraction(1, WORD)


@given(st.fractions(min_value=Fraction(65), max_value=10**6, max_denominator=50), st.data())
@settings(max_examples=40, deadline=None)
def test_digits_are_put_together_as_written(scale, data):
    plan = discrete._laplace_plan(scale)
    words = [data.draw(st.integers(1 << 50, WORD - (1 << 50))) for _ in range(1 + len(plan.low))]
    high = int(plan.high.draw(1, oracle.ScriptedSource(words[:1]))[0])
    low = sum(int(t.draw(1, oracle.ScriptedSource([w]))[0]) << p for (p, t), w in zip(plan.low, words[1:]))
    h, m = (high, 1 << plan.low_bits) if high >= 0 else (-1 - high, 1 << plan.low_bits)
    expected = m * h + low if high >= 0 else -1 - (m * h + low)
    assert plan.draw(1, oracle.ScriptedSource(words)).tolist() == [expected]


@pytest.mark.parametrize(
    "square", [Fraction(2**14 + 1), Fraction(10**6), Fraction(10**12, 7), Fraction(2**80)]
)
def test_gaussian_rejection_weighs_every_integer_right(square):
    """Proposal weight times acceptance is the Gaussian weight, and every integer has one spelling."""
    plan = discrete.GaussianPlan(square)
    m = 1 << plan.bits
    assert 64**2 < square / m**2 <= 128**2
    spelled = []
    for high in range(5):
        for minus in (0, 1):
            for rest in (0, 1, 2, m // 3, m - 1) if m > 64 else range(m):
                k = (high * m + rest + minus) * (-1 if minus else 1)
                spelled.append(k)
                r = rest + minus
                z = Fraction(2 * m * high * r + r * r) / (2 * square)
                assert z >= 0
                assert Fraction((high * m) ** 2) / (2 * square) + z == Fraction(k * k) / (2 * square)
    assert len(set(spelled)) == len(spelled)
    if m <= 64:
        assert sorted(spelled) == list(range(-5 * m, 5 * m))


@given(st.fractions(min_value=2**14 + 1, max_value=2**80, max_denominator=100), st.data())
@settings(max_examples=60, deadline=None)
def test_z_is_enclosed(square, data):
    plan = discrete._gaussian_plan(square)
    m = 1 << plan.bits
    high = data.draw(st.integers(0, plan.high_most))
    rest = data.draw(st.one_of(st.integers(0, m), st.sampled_from([0, 1, m - 1, m])))
    low = int(plan.below_z(np.array([high]), np.array([rest]))[0])
    assert low <= Fraction(2 * m * high * rest + rest * rest) / (2 * square) * 2**32 <= low + plan.slack


@given(st.sampled_from([Fraction(2**14 + 1), Fraction(10**12), Fraction(10**20, 3)]), st.data())
@settings(max_examples=150, deadline=None)
def test_acceptance_agrees_with_the_literal_comparison(square, data):
    plan = discrete._gaussian_plan(square)
    m = 1 << plan.bits
    high = data.draw(
        st.one_of(st.integers(0, plan.high_most), st.integers(plan.high_most, 10 * plan.high_most))
    )
    rest = data.draw(st.integers(0, m))
    probability = oracle.exp_neg(Fraction(2 * m * high * rest + rest * rest) / (2 * square))
    words = data.draw(st.integers(1, 3))
    far = st.integers(-(2 ** (64 * words)), 2 ** (64 * words))
    near = st.integers(-(2 ** (64 * words - 25)), 2 ** (64 * words - 25))
    u = int(probability * WORD**words) + data.draw(st.one_of(far, near, st.integers(-3, 3)))
    u = min(max(u, 0), WORD**words - 1)
    # Two further words keep a comparison going that the first ones leave open.
    script = [u >> (64 * i) & (WORD - 1) for i in range(words - 1, -1, -1)] + [77, 99]
    value = Fraction((u * WORD + 77) * WORD + 99, WORD ** (words + 2))
    source = oracle.ScriptedSource(script)
    answer = plan.accept(np.array([high]), np.array([rest]), source.words(1), source)
    assert answer.tolist() == [value < probability]


def test_a_law_too_wide_for_one_table_is_refused(monkeypatch):
    """With a smaller limit, as millions of weights take a minute."""
    monkeypatch.setattr(integers, "_MOST_WEIGHTS", 1 << 14)
    with pytest.raises(RefusedError, match="digits"):
        thresholds(TwoSidedGeometric(Fraction(1, 100), Fraction(1, 100)), 64, 40)


def test_gaussian_draws_are_put_together_as_written():
    plan = discrete._gaussian_plan(Fraction(10**6))
    m = 1 << plan.bits
    for minus in (0, 1):
        high, rest = 40, 3
        words = plan.table.words.tolist()
        middle = (words[high - 1] + words[high]) // 2
        low_word = rest << (64 - plan.bits) | minus
        n = 1 + 8
        source = oracle.ScriptedSource([middle] * n + [low_word] * n + [0] * n)
        expected = (m * high + rest + minus) * (-1 if minus else 1)
        assert plan.draw(1, source).tolist() == [expected]


def test_rejection_is_rare_and_only_what_is_left_open_draws_more():
    class Counting(SeededRng):
        single = 0

        def words(self, n):
            self.single += n == 1
            return super().words(n)

    plan, source = discrete._gaussian_plan(Fraction(10**8)), Counting(4)
    kept = sum(plan._propose(60000, source).size for _ in range(5))
    assert kept > 300000 * 0.985
    assert source.single < 5


def test_a_rejection_whose_enclosure_would_leave_64_bits_is_refused(monkeypatch):
    assert discrete.GaussianPlan(Fraction(1 << 20)).slack < 1 << 12
    monkeypatch.setattr(discrete, "_FINE", 31)
    with pytest.raises(RefusedError, match="would leave 64-bit integers") as caught:
        discrete.GaussianPlan(Fraction(1 << 20))
    assert caught.value.code == "noise.threshold"


def test_a_threshold_that_no_precision_tells_from_a_word_is_refused(monkeypatch):
    """One half exactly, enclosed from both sides at every precision: the word before and the word after it stay possible."""
    asked = []

    def around(distribution, window, bits):
        asked.append(bits)
        return 0, [(1 << (bits - 1)) - 1], [(1 << (bits - 1)) + 1]

    monkeypatch.setattr(inversion, "thresholds", around)
    with pytest.raises(RefusedError, match="at 4,096 further bits") as caught:
        InversionTable(TruncatedGeometric(Fraction(1), base=2), limit=2)
    assert caught.value.code == "noise.threshold"
    assert asked[-1] == 64 + 4096


@pytest.mark.parametrize(
    "square", [Fraction(1 << 14) + 1, Fraction(10**7, 3), Fraction(1 << 40), Fraction(1 << 80)]
)
def test_no_draw_of_a_large_gaussian_can_leave_62_bits(square):
    plan = discrete.GaussianPlan(square)
    assert (plan.table.limit + 2) << plan.bits == 1 << NOISE_BITS


def test_the_slack_of_the_rejection_is_the_one_of_the_proof():
    """Each term of docs/explanation/proofs/discrete-noise.md, rounded up."""
    met = set()
    for step in range(60):
        plan = discrete.GaussianPlan(Fraction(1 << 14) * (1 + Fraction(3 * step + 1, 61)))
        most = 2 * plan.high_most
        terms = [plan.kappa * (most + 3) * 256, plan.kappa * 4096, Fraction(most + 1, 4096)]
        assert plan.slack == int(sum(terms)) + 3
        met.add(plan.slack)
    assert len(met) > 1


@pytest.mark.parametrize("end", [0, WORD - 1])
@pytest.mark.parametrize("more", [1, 2, 3])
def test_words_at_the_very_end_are_refined_until_they_are_left(end, more):
    """After words of zeros (or ones) the value is still far out, and not the last one of the table."""
    table = InversionTable(TwoSidedGeometric(Fraction(1), Fraction(1)), limit=(1 << 62) - 1)
    # Far inside the tail of what the first words leave open: U, or 1 - U, is about 2**-(64 (more + 2)).
    last = 1 if end == 0 else WORD - 2
    value = table.refine(end, oracle.ScriptedSource([end] * more + [last] + [WORD // 2] * 3))
    # P(X < -g) = q**g / (1 + q) with q = 1 / e.
    assert abs(abs(value) - 64 * (more + 2) * math.log(2)) <= 3
    assert (value < 0) == (end == 0)
