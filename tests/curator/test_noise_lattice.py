"""Real-valued queries on a lattice: the matrix is rounded, not the answers, and nothing wraps."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from policygraph.curator.noise import SeededRng, discrete_gaussian, discrete_laplace
from policygraph.curator.noise.lattice import gaussian_on_lattice, laplace_on_lattice, round_to_lattice
from policygraph.errors import InputError, RefusedError

matrices = arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(1, 4)), elements=st.floats(-1e6, 1e6))
steps = st.fractions(min_value=Fraction(1, 10**6), max_value=10, max_denominator=10**6).filter(
    lambda x: x > 0
)


@given(matrices, steps)
def test_each_entry_is_the_nearest_step(matrix, step):
    rounded, unit = round_to_lattice(matrix, step)
    assert unit == step
    assert rounded.dtype == np.int64
    assert rounded.shape == matrix.shape
    for n, x in zip(rounded.ravel().tolist(), matrix.ravel().tolist()):
        assert abs(n * unit - Fraction(x)) <= unit / 2


def test_integers_beyond_the_precision_of_floats_stay_exact():
    matrix = np.array([[2**60 + 1, -3]])
    assert round_to_lattice(matrix, 1)[0].tolist() == matrix.tolist()


def test_rounding_answers_would_change_the_sensitivity():
    """W = (0.6): neighbouring answers, rounded, can differ by 1 > 0.6; the rounded matrix says 1 by itself."""
    answers = [round(0.6 * x) for x in range(10)]
    assert max(b - a for a, b in pairwise(answers)) == 1
    rounded, unit = round_to_lattice([[0.6]], 1)
    assert int(np.abs(rounded).max()) * unit == 1


def test_sensitivity_of_the_rounded_matrix_may_be_larger_and_is_the_one_to_use():
    matrix = np.full((4, 2), 0.3)
    matrix[:, 1] = -0.3
    rounded, unit = round_to_lattice(matrix, "1/2")
    move = np.array([1, -1])
    assert int(np.abs(rounded @ move).sum()) * unit == 4
    assert float(np.abs(matrix @ move).sum()) < 2.5


@pytest.mark.parametrize("bad", [[[np.nan]], [[np.inf]], [["a"]], [[1j]], [[True]]])
def test_entries_that_are_not_real_are_refused(bad):
    with pytest.raises(InputError, match="expected real numbers"):
        round_to_lattice(bad, 1)


@pytest.mark.parametrize("step", [0, -1, float("nan")])
def test_bad_steps_are_refused(step):
    with pytest.raises(InputError):
        round_to_lattice([[1.0]], step)
    with pytest.raises(InputError):
        laplace_on_lattice(np.array([1]), step, 1)


def test_a_step_too_fine_for_the_integers_is_refused():
    assert round_to_lattice([[float(2**62)]], 1)[0].tolist() == [[2**62]]
    with pytest.raises(RefusedError) as caught:
        round_to_lattice([[1e10]], Fraction(1, 10**12))
    assert caught.value.code == "lattice.too-fine"


def test_noise_is_drawn_in_steps_of_the_unit():
    values = np.array([[5, -7], [0, 10**6]])
    unit = Fraction(1, 300)
    noisy = laplace_on_lattice(values, unit, 2, SeededRng(4))
    assert (noisy - values == discrete_laplace(600, values.shape, SeededRng(4))).all()
    noisy = gaussian_on_lattice(values, unit, 2, SeededRng(4))
    assert (noisy - values == discrete_gaussian(2 * 300**2, values.shape, SeededRng(4))).all()


def test_values_that_could_wrap_or_are_no_integers_are_refused():
    top = np.array([2**62, -(2**62)])
    noisy = laplace_on_lattice(top, 1, 2**40, SeededRng(1))
    assert noisy[0] > 0 > noisy[1]
    for bad in (
        np.array([2**62 + 1]),
        np.array([-(2**62) - 1]),
        np.array([2**63], np.uint64),
        np.array([0.5]),
    ):
        with pytest.raises(InputError):
            laplace_on_lattice(bad, 1, 1)
        with pytest.raises(InputError):
            gaussian_on_lattice(bad, 1, 1)


def test_values_are_left_as_they_were():
    values = np.zeros(3, np.int64)
    laplace_on_lattice(values, 1, 100, SeededRng(1))
    assert not values.any()
