"""Errors of biased values: what is simulated covers, what is bounded is proved, and both are what is said of published values."""

from __future__ import annotations

import numpy as np
import pytest

from policygraph.estimation.errors import LEVEL, Seen, _shared, bounded, runs_for, simulated

SIGMA = 10.0


def truths(size):
    draws = np.random.default_rng(3)
    return {
        "nothing": np.zeros(size),
        "sparse": np.where(draws.random(size) < 0.02, 300.0, 0.0),
        "small": np.full(size, 20.0),
        "spread": draws.exponential(15.0, size),
        "dense": draws.uniform(500, 1500, size),
    }


def smoothed(noisy):
    """Means of sixteen neighbours, never negative: biased where the truth is rough."""
    means = noisy.reshape(-1, 16).mean(axis=1)
    return np.maximum(np.repeat(means, 16), 0.0)


@pytest.mark.parametrize("estimator", [lambda u: np.maximum(u, 0.0), smoothed], ids=["cut", "smoothed"])
@pytest.mark.parametrize("name", ["nothing", "sparse", "small", "spread", "dense"])
def test_simulated_ranges_cover_and_deviations_are_those_of_the_published_values(estimator, name):
    """Normal noise of one deviation, 30 releases of 512 values: coverage has a standard error below 0.005 but for what values share."""
    size, draws = 512, np.random.default_rng(4)
    truth = truths(size)[name]
    covered, squares, stated = [], [], []
    for _ in range(30):
        noisy = truth + SIGMA * draws.normal(size=size)
        values = estimator(noisy)
        seen = Seen.of(values, noisy, SIGMA, 1.96 * SIGMA)
        again = [values + SIGMA * draws.normal(size=size) for _ in range(runs_for(size))]
        made = simulated(seen, ((estimator(u), u) for u in again))
        assert made.basis == "simulated"
        assert np.all(made.within_95 <= seen.reach + 1e-12)
        off = np.abs(values - truth)
        covered.append(float(np.mean(off <= made.within_95 + 1e-9)))
        squares.append(float(np.mean(off**2)))
        stated.append(float(np.mean(np.square(made.deviation))))
        assert np.mean(off <= bounded(seen).within_95 + 1e-9) > 0.9
    assert np.mean(covered) > 0.945
    # Where nothing is, most published values are right to the last digit, or nearly.
    if name not in ("nothing", "sparse"):
        assert np.mean(covered) < 0.995
    assert 0.7 * np.mean(squares) < np.mean(stated) < 1.2 * np.mean(squares) + 0.1 * SIGMA**2


def alike(noisy):
    """The mean of all values: as smooth as can be."""
    return np.full_like(noisy, noisy.mean())


@pytest.mark.parametrize("rough", [0.02, 0.1, 0.2, 0.4, 1.0])
def test_ranges_of_smooth_values_allow_for_what_noise_hides(rough):
    """True values differ by a part of the noise that 128 of them show hardly or not: simulation around their mean knows nothing of it."""
    draws, size = np.random.default_rng(7), 128
    covered, plainly = [], []
    for _ in range(30):
        truth = 500 + SIGMA * rough * draws.normal(size=size)
        noisy = truth + SIGMA * draws.normal(size=size)
        values = alike(noisy)
        seen = Seen.of(values, noisy, SIGMA, 1.96 * SIGMA)
        again = [values + SIGMA * draws.normal(size=size) for _ in range(20)]
        runs = [(alike(u), u) for u in again]
        off = np.abs(values - truth)
        made = simulated(seen, runs, smooth=True)
        covered.append(np.mean(off <= made.within_95))
        plainly.append(np.mean(off <= simulated(seen, runs).within_95))
        assert np.all(made.within_95 <= seen.reach + 1e-12)
    assert np.mean(covered) > 0.95
    if rough in (0.2, 0.4):
        assert np.mean(plainly) < 0.8


def test_values_that_share_their_noise_are_as_uncertain_as_runs_show():
    """All 100 values have one noise, so that their mean square tells no more than a single one; a few alone count as twice as uncertain as independent ones."""
    draws = np.random.default_rng(8)
    runs = [float(draws.normal() ** 2) for _ in range(200)]
    assert 60 < _shared(runs, draws.normal(size=100) ** 2) < 160
    assert _shared([1.0], draws.normal(size=100) ** 2) == 2.0
    assert _shared([1.0, 1.0], np.ones(4)) == 2.0
    alone = [float(np.mean(draws.normal(size=100) ** 2)) for _ in range(50)]
    assert 2.0 <= _shared(alone, draws.normal(size=100) ** 2) < 3.0


def test_a_bound_holds_whatever_is_published():
    draws = np.random.default_rng(5)
    truth = draws.poisson(3.0, 20_000).astype(float)
    noisy = truth + 5.0 * draws.normal(size=truth.size)
    for values in (np.zeros_like(noisy), np.maximum(noisy, 0), np.abs(noisy) + 7, noisy):
        made = bounded(Seen.of(values, noisy, 5.0, 1.96 * 5.0))
        assert made.basis == "bound"
        assert np.mean(np.abs(values - truth) <= made.within_95) >= 0.945
        assert np.mean(np.square(values - truth)) <= np.mean(np.square(made.deviation)) * 1.05


def test_few_values_and_none_are_no_special_case():
    none = simulated(Seen.of([], [], 1.0, 2.0), [])
    assert len(none.within_95) == 0
    exact = simulated(Seen.of([3.0], [3.0], 0.0, 0.0), [(np.array([3.0]), np.array([3.0]))])
    assert exact.within_95.tolist() == exact.deviation.tolist() == [0.0]
    without = simulated(Seen.of([0.0], [-4.0], 2.0, 5.0), [])
    assert without.within_95.tolist() == [5.0]
    assert 0.95 < LEVEL < 0.99
