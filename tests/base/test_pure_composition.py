"""Many pure charges: bounds of delta against the sum over all answers, and never below it."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.distributions.pure_composition import delta_up, delta_up_of, most_charges, outcomes
from tests.oracles.losses import decimal, delta_of_randomised_responses

SIZES = st.fractions(Fraction(1, 50), Fraction(2), max_denominator=50)
TOTALS = st.fractions(Fraction(-2), Fraction(5), max_denominator=20)


def close(bound: Fraction, exact: Decimal) -> bool:
    """Not below the exact value, but for its last digits, and hardly above it."""
    with localcontext(prec=100):
        value = decimal(bound)
        return exact - Decimal("1e-70") <= value <= exact * (1 + Decimal("1e-40")) + Decimal("1e-50")


@settings(max_examples=60)
@given(SIZES, st.integers(0, 7), TOTALS)
def test_charges_of_one_size(each, times, epsilon):
    assert close(delta_up(each, times, epsilon), delta_of_randomised_responses([each] * times, epsilon))


@settings(max_examples=60)
@given(SIZES, st.integers(0, 4), st.lists(st.tuples(SIZES, st.integers(1, 2)), max_size=2), TOTALS)
def test_charges_of_several_sizes(each, times, larger, epsilon):
    listed = [each] * times + [size for size, many in larger for _ in range(many)]
    bound = delta_up_of(each, times, tuple(larger), epsilon)
    assert close(bound, delta_of_randomised_responses(listed, epsilon))


@given(st.integers(0, 30), st.integers(0, 5))
def test_a_size_that_is_written_twice_is_one(times, more):
    each = Fraction(1, 10)
    both = delta_up(each, times + more, Fraction(1)), delta_up_of(each, times, ((each, more),), Fraction(1))
    assert abs(both[0] - both[1]) < Fraction(1, 10**40)


def test_as_many_as_are_certified_and_no_more():
    each, epsilon, delta = Fraction(1, 20), Fraction(1), Fraction(1, 10**6)
    larger = ((Fraction(1, 4), 2), (Fraction(1, 10), 1))
    most = most_charges(each, epsilon, delta, larger)
    assert outcomes(larger) == 6
    assert delta_up_of(each, most, larger, epsilon) <= delta < delta_up_of(each, most + 1, larger, epsilon)
    # Never fewer than by the sum, and fewer than without the larger ones.
    assert 8 <= most < most_charges(each, epsilon, delta)
    assert most_charges(each, epsilon, delta, ((Fraction(1), 1),)) == 0
    assert most_charges(each, epsilon, delta, ((Fraction(1), 2),)) == -1
