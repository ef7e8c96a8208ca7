"""Losses: exact numbers, composition, conversions that round towards privacy."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.errors import InputError
from policygraph.model.loss import Epsilon, EpsilonDelta, Rho, good_order, ln_up, loss_from_json
from tests.oracles.losses import decimal, gaussian_delta, zcdp_delta, zcdp_epsilon_by_grid

positive = st.fractions(min_value=Fraction(1, 10**6), max_value=1000)
kinds = st.sampled_from([Epsilon, Rho])
deltas = st.integers(1, 60).map(lambda k: Fraction(1, 10) ** k) | st.fractions(
    Fraction(1, 1000), Fraction(9, 10)
)
rhos = st.tuples(st.integers(-8, 2), st.integers(1, 99)).map(lambda p: Fraction(10) ** p[0] * p[1])


def test_floats_are_read_as_they_were_typed():
    assert Epsilon(0.1).value == Fraction(1, 10)
    assert Rho("1/3").value == Fraction(1, 3)
    assert EpsilonDelta(Decimal("0.5"), 1e-6) == EpsilonDelta("1/2", "1/1000000")
    assert sum([Epsilon(0.1)] * 9, Epsilon(0.1)) == Epsilon(1)


@pytest.mark.parametrize("kind", [Epsilon, Rho])
@pytest.mark.parametrize("bad", [0, -1, "0", float("nan"), float("inf"), True, None, "x", 1 << 64, 0.0])
def test_losses_are_positive_and_finite(kind, bad):
    with pytest.raises(InputError):
        kind(bad)


@pytest.mark.parametrize("bad", [0, 1, 1.5, -0.1, "1e-201", float("nan")])
def test_delta_lies_between_zero_and_one(bad):
    with pytest.raises(InputError):
        EpsilonDelta(1, bad)


def test_a_loss_too_fine_to_store_is_refused_and_a_sum_that_becomes_so_is_rounded_up():
    with pytest.raises(InputError) as problem:
        Epsilon(Fraction(1, 3**700))
    assert problem.value.code == "loss.too-fine"
    first, second = Fraction(1, 3**600), Fraction(1, 5**400)
    total = Epsilon(first) + Epsilon(second)
    assert first + second < total.value <= first + second + Fraction(1, 2**512)
    assert Epsilon.at_most(1 + first * second).value < 1 + first * second
    assert "about" in str(Epsilon(first))


def test_each_loss_names_the_norm_of_its_sensitivity():
    assert (Epsilon(1).norm, Rho(1).norm) == ("l1", "l2")
    assert not hasattr(EpsilonDelta(1, 1e-6), "norm")
    with pytest.raises(AttributeError):
        Epsilon(1).norm = "l2"


def test_losses_are_frozen_hashable_and_copied_by_value():
    for loss in (Epsilon(1), Rho("1/3"), EpsilonDelta(1, 1e-6)):
        with pytest.raises(AttributeError):
            loss.value = Fraction(2)
        assert {loss: 1}[pickle.loads(pickle.dumps(loss))] == 1
        assert copy.deepcopy(loss) == loss


def test_unlike_kinds_neither_add_nor_compare():
    assert Epsilon(1) != Rho(1)
    for other in (Rho(1), EpsilonDelta(1, 1e-6), 1, Fraction(1)):
        with pytest.raises(TypeError):
            Epsilon(1) + other
        with pytest.raises(TypeError):
            _ = Epsilon(1) < other


def test_order_of_pairs_is_partial():
    small, large, other = EpsilonDelta(1, 1e-9), EpsilonDelta(2, 1e-6), EpsilonDelta(3, 1e-12)
    assert small < large
    assert large > small
    assert small <= small
    assert not small < small
    assert not large <= other
    assert not other <= large
    assert small + large == EpsilonDelta(3, Fraction(1, 10**9) + Fraction(1, 10**6))


@given(kinds, positive, st.lists(positive, min_size=1, max_size=6))
def test_parts_compose_to_the_whole(kind, value, weights):
    whole = kind(value)
    parts = whole.split(weights)
    total = parts[0]
    for part in parts[1:]:
        total += part
    assert total == whole
    assert [part.value * sum(weights) for part in parts] == [value * weight for weight in weights]
    assert whole.split(3) == (kind(value / 3),) * 3


@pytest.mark.parametrize("weights", [[], 0, -2, [1, 0], [1, -1], ["x"]])
def test_bad_weights_are_refused(weights):
    with pytest.raises(InputError):
        Epsilon(1).split(weights)


@given(kinds, positive, positive)
def test_order_and_sum_follow_the_numbers(kind, a, b):
    assert (kind(a) < kind(b)) == (a < b)
    assert (kind(a) + kind(b)).value == a + b


@given(kinds, positive, deltas)
def test_json_brings_back_the_same_loss(kind, value, delta):
    for loss in (kind(value), EpsilonDelta(value, delta)):
        assert loss_from_json(json.loads(json.dumps(loss.to_json()))) == loss


@pytest.mark.parametrize(
    "record",
    [{}, {"kind": "rho"}, {"kind": "epsilon", "value": 1}, {"kind": "epsilon", "value": "0"},
     {"kind": "rho", "value": "1", "delta": "0.1"}, {"kind": "gdp", "value": "1"}],
)  # fmt: skip
def test_json_of_no_loss_is_refused(record):
    with pytest.raises(InputError):
        loss_from_json(record)


def test_texts():
    assert str(Epsilon(0.1)) == "epsilon = 0.1"
    assert str(Rho("1/3")) == "rho = 1/3"
    assert str(EpsilonDelta(1, "1e-12")) == "epsilon = 1, delta = 1e-12"
    assert str(Epsilon(Fraction(10**30 + 1, 10**30))) == "epsilon = about 1"


def test_groups():
    assert Epsilon("1/2").for_group(3) == Epsilon("3/2")
    assert Rho("1/2").for_group(3) == Rho("9/2")
    assert Epsilon("1/2").for_group(3).to_rho() == Epsilon("1/2").to_rho().for_group(3)
    for steps in (0, -1, True, 1.5):
        with pytest.raises(InputError):
            Rho(1).for_group(steps)


@given(st.fractions(Fraction(1, 10**9), 10**9))
def test_logarithm_is_bounded_from_above_and_closely(value):
    exact = decimal(value).ln(Context(prec=100))
    assert Fraction(exact) <= ln_up(value) <= Fraction(exact) + abs(Fraction(exact)) / 10**50


@given(rhos, deltas)
@settings(max_examples=60, deadline=None)
def test_conversion_is_certified_by_the_printed_formula_and_nearly_tight(rho, delta):
    stated = Rho(rho).to_epsilon_delta(delta)
    assert stated.delta == delta
    if rho > 2 * delta * delta:
        assert zcdp_delta(rho, stated.epsilon, good_order(rho, delta)) <= decimal(delta)
        assert float(stated.epsilon) <= max(zcdp_epsilon_by_grid(float(rho), float(delta)), 1e-12) * 1.001


@given(st.fractions(Fraction(1, 100), 20), deltas)
@settings(max_examples=60, deadline=None)
def test_largest_rho_is_certified_and_a_little_more_is_not(epsilon, delta):
    rho = EpsilonDelta(epsilon, delta).to_rho().value
    if rho > 2 * delta * delta:
        order = good_order(rho, delta)
        assert zcdp_delta(rho, epsilon, order) <= decimal(delta) * (1 + Decimal("1e-5"))
        assert zcdp_epsilon_by_grid(float(rho) * 1.01, float(delta)) > float(epsilon)
    else:
        assert rho * Fraction(10**11 + 1, 10**11) >= 2 * delta * delta


@given(st.fractions(Fraction(1, 100), 20), st.integers(1, 12).map(lambda k: Fraction(1, 10) ** k))
@settings(max_examples=60, deadline=None)
def test_conversions_never_promise_more_than_the_gaussian_mechanism_keeps(value, delta):
    stated = Rho(value).to_epsilon_delta(delta)
    assert gaussian_delta(float(value), float(stated.epsilon)) <= float(delta) * (1 + 1e-9)
    target = EpsilonDelta(value, delta)
    assert gaussian_delta(float(target.to_rho().value), float(value)) <= float(delta) * (1 + 1e-9)


def test_conversion_of_a_single_gaussian_is_within_a_tenth_of_its_exact_epsilon():
    """Accountants that know the distribution give 4.88655 for sigma = 1 and delta = 1e-6; zCDP alone cannot."""
    tight = 4.88655
    assert gaussian_delta(0.5, tight - 1e-4) > 1e-6 > gaussian_delta(0.5, tight + 1e-4)
    stated = float(Rho(0.5).to_epsilon_delta(1e-6).epsilon)
    assert tight < stated < tight * 1.1
    assert stated == pytest.approx(zcdp_epsilon_by_grid(0.5, 1e-6), rel=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [
        (1, "1e-6", "0.024355970351"),
        ("1/10", "1e-9", "0.000177138447128"),
        (8, "1e-5", "1.22971452441"),
        (20, "1e-12", "2.88492181299"),
        (1, "1/2", "1.01636434203"),
    ],
)
def test_conversions_stay_as_they_are(epsilon, delta, rho):
    """Requests in (epsilon, delta) are known by their rho: another digit would be another request, and be charged again."""
    assert EpsilonDelta(epsilon, delta).to_rho() == Rho(rho)


def test_pure_loss_implies_half_its_square():
    assert Epsilon("2/3").to_rho() == Rho("2/9")


def test_losses_load_without_heavy_libraries():
    code = "import sys, policygraph.model.loss; sys.exit(any(m in sys.modules for m in ('numpy', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
