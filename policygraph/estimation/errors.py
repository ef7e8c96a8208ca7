"""Errors of published values that are biased. Owns :class:`Seen`, :func:`bounded` and :func:`simulated`.

Values that were made non-negative, whole or smooth err otherwise than the unbiased numbers that they were made of. Of the noise everything is known, so that
both kinds of errors can be had from published numbers alone: a bound that is proved, and simulation: noise is drawn again in public around the published
values, the estimator is run again, and what it then misses is known (``docs/explanation/proofs/stated-errors.md``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.release.release import Errors

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEVEL = 0.98
"""What ranges are to cover in simulation: between 95 and 99 %, since the simulation is around an estimate and not around the truth."""
SAMPLES, MOST_RUNS, FEWEST_RUNS = 20_000, 200, 2
"""As many runs as give this number of simulated values, within these limits."""
MOST_STRATA, IN_STRATUM = 8, 64
"""Values of similar size share what is simulated: at most so many strata, of at least so many values."""
TINY = 1e-12
HIDDEN = 1.645
"""Standard errors that an excess which noise hides is given, where a published value may be much smoother than the truth: a normal variable exceeds its mean by more in 5 % of all cases."""


@dataclass(frozen=True)
class Seen:
    """Published values, and what is known of the unbiased ones.

    Attributes
    ----------
    values
        What is published.
    unbiased
        Unbiased estimates of the same.
    deviation
        Standard deviation of each of these.
    width
        The truth is within this of an unbiased estimate with probability 0.95 at least.
    nonnegative
        Whether no true value is negative.
    """

    values: Floats
    unbiased: Floats
    deviation: Floats
    width: Floats
    nonnegative: bool = True

    @classmethod
    def of(
        cls,
        values: Any,
        unbiased: Any,
        deviation: float | Floats,
        width: float | Floats,
        *,
        nonnegative: bool = True,
    ) -> Seen:
        """From arrays of any kind; deviation and width may be one number for all."""
        shown = np.asarray(values, dtype=np.float64).ravel()
        spread = [np.broadcast_to(np.asarray(e, dtype=np.float64), shown.shape) for e in (deviation, width)]
        beside = np.asarray(unbiased, dtype=np.float64).ravel()
        return cls(shown, beside, spread[0], spread[1], nonnegative)

    @property
    def reach(self) -> Floats:
        """A proved range: the largest distance of a published value to a truth that its unbiased estimate allows.

        Notes
        -----
        Of truths that are not negative an unbiased estimate below 0 counts as 0. The range without that is proved as well, but the further noise took an
        estimate below 0, the narrower it would be, down to nothing.

        Examples
        --------
        >>> Seen.of([0.0, 7.0], [-4.0, 6.0], 2.0, 5.0).reach.tolist()
        [5.0, 6.0]
        """
        low, high = self.unbiased - self.width, self.unbiased + self.width
        if self.nonnegative:
            low, high = np.maximum(low, 0.0), np.maximum(self.unbiased, 0.0) + self.width
        made: Floats = np.maximum(np.abs(self.values - low), np.abs(self.values - high))
        return made

    def again(self, values: Floats, unbiased: Floats) -> Seen:
        """The same of a simulated run."""
        return Seen(values, unbiased, self.deviation, self.width, self.nonnegative)


def runs_for(cells: int) -> int:
    """How often an estimator of so many values is run again.

    Examples
    --------
    >>> runs_for(10), runs_for(1000), runs_for(10**6)
    (200, 20, 2)
    """
    return max(FEWEST_RUNS, min(MOST_RUNS, -(-SAMPLES // max(1, cells))))


def bounded(seen: Seen) -> Errors:
    """Errors without simulation: ranges are proved; the mean squared error is taken as variance plus squared distance from the unbiased estimate.

    Notes
    -----
    E (p - t)^2 = E (p - u)^2 + 2 cov(p, u) - var(u) <= E (p - u)^2 + var(u) as long as cov(p, u) <= var(u), as for every estimate that shrinks noise.

    Examples
    --------
    >>> bounded(Seen.of([0.0], [-3.0], 4.0, 8.0)).deviation.tolist()
    [5.0]
    """
    return Errors(np.hypot(seen.values - seen.unbiased, seen.deviation), seen.reach, "bound")


def simulated(
    seen: Seen,
    runs: Iterable[tuple[Floats, Floats]],
    truth: Floats | None = None,
    *,
    smooth: bool = False,
) -> Errors:
    """Errors from runs of the estimator on noise that was drawn again around the published values.

    Parameters
    ----------
    seen
        What is published.
    runs
        Of each run the published and the unbiased values.
    truth
        What the runs were drawn around; the published values by default.
    smooth
        Whether published values may be far smoother than the truth, as means over pieces and levels are. Simulation around them says next to nothing then, and ranges allow for all roughness that the noise may hide.

    Notes
    -----
    Values of similar size, in deviations of the unbiased estimates, form a stratum. Its range is the proved one times the factor that covers 98 % of the
    simulated errors of the stratum; the factor 1 is proved, and is never exceeded. Published values may be smoother than the truth, so that simulation around
    them errs too little. What it misses shows in the distances of published and unbiased values: by the identity (p - t)^2 = (p - u)^2 - (u - t)^2 + 2 (p - t)(u - t)
    the mean squared error of a stratum is the simulated one plus what the observed mean of (p - u)^2 exceeds the simulated mean of it by; ranges take the part of that beyond its own standard error,
    and of smooth values all that noise may hide of it: 1.645 standard errors more than is seen.
    """
    scale = np.where(seen.deviation > 0, seen.deviation, 1.0)
    cuts = _cuts(seen.values / scale)
    mine = np.searchsorted(cuts, seen.values / scale)
    strata = len(cuts) + 1
    centre = seen.values if truth is None else truth
    errors, apart, counted = np.zeros(strata), np.zeros(strata), np.zeros(strata)
    ratios: list[list[Floats]] = [[] for _ in range(strata)]
    means: list[float] = []
    for values, unbiased in runs:
        place = np.searchsorted(cuts, values / scale)
        off, reach = np.abs(values - centre), seen.again(values, unbiased).reach
        share = np.where(reach > 0, off / np.where(reach > 0, reach, 1.0), 0.0)
        for stratum in range(strata):
            ratios[stratum].append(share[place == stratum])
        errors += np.bincount(place, (off / scale) ** 2, strata)
        away = np.bincount(place, ((values - unbiased) / scale) ** 2, strata)
        here = np.bincount(place, minlength=strata)
        means.append(float(away.sum() / max(1, len(values))))
        apart += away
        counted += here
    factors = np.array([_factor(np.concatenate(each)) if each else 1.0 for each in ratios])
    inside = np.maximum(np.bincount(mine, minlength=strata), 1)
    distances = ((seen.values - seen.unbiased) / scale) ** 2
    observed = np.bincount(mine, distances, strata) / inside
    spread = np.bincount(mine, distances**2, strata) / inside - observed**2
    plain = errors / np.maximum(counted, 1)
    excess = observed - apart / np.maximum(counted, 1)
    deviation = seen.deviation * np.sqrt(plain + np.maximum(excess, 0.0))[mine]
    unsure = np.sqrt(np.maximum(spread, 0.0) / inside)
    margin = HIDDEN * np.sqrt(_shared(means, distances)) * unsure if smooth else -unsure
    sure = plain + np.maximum(excess + margin, 0.0)
    if not smooth:
        # The excess of smooth values is not shaped like the little that simulation finds: two deviations of both together cover it.
        factors = factors * np.sqrt(sure / np.maximum(plain, TINY))
    factors = np.minimum(factors, 1.0)
    bound = seen.reach
    within = np.minimum(bound, np.maximum(factors[mine] * bound, 2 * seen.deviation * np.sqrt(sure)[mine]))
    return Errors(deviation, within, "simulated")


def _cuts(sizes: Floats) -> Floats:
    """Where strata of values of similar size end."""
    count = max(1, min(MOST_STRATA, len(sizes) // IN_STRATUM))
    if count == 1:
        return np.zeros(0)
    made: Floats = np.unique(np.quantile(sizes, np.arange(1, count) / count, method="lower"))
    return made


def _shared(means: list[float], distances: Floats) -> float:
    """How often as large the variance of a mean of squared distances is as if all were independent: of cells with noise on edges at most twice, of answers that share much noise as often as runs show.

    Notes
    -----
    The noise of an edge e enters two cells, whose squares have a covariance of at most k_e = Var(Z_e^2), and the square of a cell has a variance of at least the sum of k_e over its edges. So the covariances add at most the sum of all variances.
    """
    single = float(np.var(distances)) / max(1, len(distances))
    if len(means) < 2 or single <= 0:
        return 2.0
    return max(2.0, float(np.var(means, ddof=1)) / single)


def _factor(ratios: Floats) -> float:
    """The factor of the proved range that covers the wanted share of simulated errors; 1 where there are none."""
    if not len(ratios):
        return 1.0
    return float(np.quantile(np.minimum(ratios, 1.0), LEVEL, method="higher"))
