"""Draws follow their law: chi-square against the exact probabilities, and wrong scales are seen by the same test."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from policygraph.curator.noise import SeededRng, discrete_gaussian, discrete_laplace
from policygraph.distributions.noise import MAX_SCALE, MAX_SIGMA_SQUARED
from policygraph.errors import InputError, RefusedError
from tests.oracles import noise as oracle

SCALES = [
    Fraction(1, 3),
    Fraction(1),
    Fraction(7, 2),
    Fraction(10),
    Fraction(64),
    Fraction(100),
    Fraction(1000),
]
LARGE = [Fraction(10**5), Fraction(10**6), Fraction(10**12)]
SIGMAS = [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(100), Fraction(129), Fraction(1000)]
PINNED_LAPLACE = [19, 16, -3, 2, 9]
PINNED_LARGE_LAPLACE = [1870707, 1588939, -321238, 181978, 945504]
PINNED_GAUSSIAN = [14, 13, -4, 2, 9]
PINNED_LARGE_GAUSSIAN = [1770315, -1636043, -469319, -817910, 1296816]


def p_value(observed, expected):
    """Chi-square of counts against expected counts; thin cells are put together."""
    thick = expected >= 20
    seen = np.append(observed[thick], observed[~thick].sum())
    wanted = np.append(expected[thick], expected[~thick].sum())
    if wanted[-1] < 5:
        seen, wanted = seen[:-1], wanted[:-1]
    return float(chi2.sf(float(((seen - wanted) ** 2 / wanted).sum()), wanted.size - 1))


def value_by_value(draws, probabilities):
    """Chi-square of every value from -reach to reach and of what lies beyond, in doubles of the probabilities."""
    reach = probabilities.size // 2
    inside = draws[np.abs(draws) <= reach] + reach
    observed = np.append(np.bincount(inside, minlength=2 * reach + 1), draws.size - inside.size)
    beyond = max(0.0, 1 - float(probabilities.sum()))
    return p_value(observed, np.append(probabilities, beyond) * draws.size)


def laplace_values(scale, n):
    reach = int(float(scale) * math.log(n)) + 2
    rate = float(1 / scale)
    return math.tanh(rate / 2) * np.exp(-rate * np.abs(np.arange(-reach, reach + 1)))


def gaussian_values(sigma, n):
    k = np.arange(int(-12 * sigma) - 2, int(12 * sigma) + 3)
    weights = np.exp(-(k**2) / (2 * float(sigma) ** 2))
    return weights / weights.sum()


def laplace_blocks(draws, scale):
    """Chi-square over 400 blocks of equal width, by the exact distribution function at their ends."""
    width = int(float(scale) / 16)
    rate = 1 / float(scale)
    edges = np.arange(-200, 201) * width
    # P(X < k) = q**(1-k) / (1+q) for k <= 0, and 1 - q**k / (1+q) for k >= 0
    q = math.exp(-rate)
    below = np.where(edges <= 0, np.exp(-rate * (1 - np.minimum(edges, 0))), 0) / (1 + q)
    below = np.where(edges > 0, 1 - np.exp(-rate * np.maximum(edges, 0)) / (1 + q), below)
    shares = np.diff(np.concatenate([[0], below, [1]]))
    observed = np.bincount(np.searchsorted(edges, draws, "right"), minlength=shares.size)
    return p_value(observed, shares * draws.size)


def laplace_residues(draws, scale, base):
    """Chi-square of the draws modulo a base, for negative and other draws apart: sees a wrong low digit."""
    rate = 1 / float(scale)
    r = np.arange(base)
    digit = np.exp(-rate * r) * -math.expm1(-rate) / -math.expm1(-rate * base)
    plus = 1 / (1 + math.exp(-rate))
    # -1 - G has the residue base - 1 - (G mod base)
    shares = np.concatenate([digit * plus, digit[::-1] * (1 - plus)])
    observed = np.bincount(draws % base + base * (draws < 0), minlength=2 * base)
    return p_value(observed, shares * draws.size)


def gaussian_blocks(draws, sigma):
    """Chi-square over blocks of equal width by the normal distribution function, whose error is below 1 / sigma**2."""
    width = sigma / 16
    edges = np.round(np.arange(-80, 81) * width)
    below = np.array([math.erfc(-(e - 0.5) / (sigma * math.sqrt(2))) / 2 for e in edges])
    shares = np.diff(np.concatenate([[0], below, [1]]))
    observed = np.bincount(np.searchsorted(edges, draws, "right"), minlength=shares.size)
    return p_value(observed, shares * draws.size)


def check_laplace(scale, n, seed):
    draws = discrete_laplace(scale, n, SeededRng(seed))
    if scale <= 1000:
        accepted = value_by_value(draws, laplace_values(scale, n))
        wrong = [
            value_by_value(draws, laplace_values(scale * f, n)) for f in (Fraction(7, 10), Fraction(13, 10))
        ]
    else:
        accepted = min(laplace_blocks(draws, scale), laplace_residues(draws, scale, 256))
        wrong = [laplace_blocks(draws, scale * f) for f in (Fraction(7, 10), Fraction(13, 10))]
    assert accepted > 1e-4
    assert max(wrong) < 1e-12


def check_gaussian(sigma, n, seed):
    draws = discrete_gaussian(sigma**2, n, SeededRng(seed))
    if sigma <= 1000:
        accepted = value_by_value(draws, gaussian_values(sigma, n))
        wrong = [
            value_by_value(draws, gaussian_values(sigma * f, n)) for f in (Fraction(7, 10), Fraction(13, 10))
        ]
    else:
        accepted = gaussian_blocks(draws, float(sigma))
        wrong = [gaussian_blocks(draws, float(sigma) * f) for f in (0.7, 1.3)]
    assert accepted > 1e-4
    assert max(wrong) < 1e-12


@pytest.mark.parametrize("scale", [*SCALES, *LARGE])
def test_laplace_follows_its_law_and_no_other(scale):
    check_laplace(scale, 10**5, "usual")


@pytest.mark.parametrize("sigma", [*SIGMAS, *LARGE])
def test_gaussian_follows_its_law_and_no_other(sigma):
    check_gaussian(sigma, 10**5, "usual")


@pytest.mark.slow
@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(100), Fraction(1000), Fraction(10**6)]
)
def test_laplace_follows_its_law_at_ten_million_draws(scale):
    check_laplace(scale, 10**7, "long")


@pytest.mark.slow
@pytest.mark.parametrize(
    "sigma", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(100), Fraction(1000), Fraction(10**6)]
)
def test_gaussian_follows_its_law_at_ten_million_draws(sigma):
    check_gaussian(sigma, 10**7, "long")


def test_the_doubles_of_the_chi_square_are_the_probabilities_of_the_definition():
    exact = oracle.normalised(oracle.laplace_weights(Fraction(7, 2), 300))
    found = laplace_values(Fraction(7, 2), 1000)
    reach = found.size // 2
    assert all(math.isclose(found[k + reach], exact[k], rel_tol=1e-12) for k in range(-reach, reach + 1))
    exact = oracle.normalised(oracle.gaussian_weights(Fraction(9), 60))
    found = gaussian_values(Fraction(3), 1000)
    reach = found.size // 2
    assert all(math.isclose(found[k + reach], exact[k], rel_tol=1e-12) for k in range(-reach, reach + 1))


def test_a_tiny_scale_gives_zero_nearly_always():
    assert not discrete_laplace(Fraction(1, 100), 10**5, SeededRng(1)).any()
    assert not discrete_laplace(Fraction(1, 10**9), 10**3, SeededRng(1)).any()
    assert not discrete_gaussian(Fraction(1, 100), 10**5, SeededRng(1)).any()


def test_draws_are_reproducible_and_depend_on_the_seed():
    for draw, scale in ((discrete_laplace, Fraction(1000)), (discrete_gaussian, Fraction(10**6))):
        a, b, c = (draw(scale, 200000, SeededRng(s)) for s in (1, 1, 2))
        assert (a == b).all()
        assert (a != c).mean() > 0.9
    assert discrete_laplace(10, 5, SeededRng(9)).tolist() == PINNED_LAPLACE
    assert discrete_laplace(10**6, 5, SeededRng(9)).tolist() == PINNED_LARGE_LAPLACE
    assert discrete_gaussian(100, 5, SeededRng(9)).tolist() == PINNED_GAUSSIAN
    assert discrete_gaussian(10**12, 5, SeededRng(9)).tolist() == PINNED_LARGE_GAUSSIAN


def test_neighbouring_draws_are_uncorrelated():
    for draws in (
        discrete_laplace(1000, 10**6, SeededRng(3)),
        discrete_gaussian(10**6, 10**6, SeededRng(3)),
    ):
        x = draws - draws.mean()
        for lag in (1, 2, 65536):
            assert abs(float((x[lag:] * x[:-lag]).mean() / x.var())) < 5e-3


def test_shapes_and_the_default_source():
    assert discrete_laplace(2, (3, 4)).shape == (3, 4)
    assert discrete_gaussian(2, ()).shape == ()
    assert discrete_laplace(2, 0).size == 0
    assert discrete_gaussian(10**10, 0).size == 0
    assert (discrete_laplace(10**6, 50) != discrete_laplace(10**6, 50)).any()


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("bad", [0, -1, Fraction(-1, 3), float("nan"), float("inf"), "x", True, None])
def test_bad_scales_are_refused(draw, bad):
    with pytest.raises(InputError):
        draw(bad, 3)


@pytest.mark.parametrize(
    ("draw", "most"), [(discrete_laplace, MAX_SCALE), (discrete_gaussian, MAX_SIGMA_SQUARED)]
)
def test_scales_that_could_overflow_are_refused_with_the_bound(draw, most):
    assert np.abs(draw(most, 1000, SeededRng(1))).max() < 2**62
    with pytest.raises(RefusedError, match=r"at most 2\*\*") as caught:
        draw(most + 1, 3)
    assert caught.value.code == "noise.scale-too-large"
    assert caught.value.details["bound"] == most


@pytest.mark.parametrize("size", [-1, (2, -1), 1.5, (2, 1.5), True, "3"])
def test_bad_sizes_are_refused(size):
    with pytest.raises(InputError):
        discrete_laplace(1, size)


def test_memory_beside_the_result_stays_small():
    import tracemalloc

    discrete_laplace(1000, 10, SeededRng(1))
    discrete_gaussian(10**6, 10, SeededRng(1))
    for draw, scale in ((discrete_laplace, 1000), (discrete_gaussian, 10**6)):
        tracemalloc.start()
        result = draw(scale, 3 * 10**6, SeededRng(1))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < result.nbytes + 16 * 2**20
