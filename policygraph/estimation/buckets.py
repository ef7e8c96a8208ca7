"""Estimates of cells from noisy cells and buckets that may or may not be alike. Owns :func:`pooled`, :func:`stretches`, :func:`outlying` and :func:`least_risk`.

Buckets are a guess. Whether the cells of a bucket are alike shows in the noisy cells themselves: their squared deviations from the mean of the bucket have a
known expectation if they are. So deviations are shrunk by what is known of them, never by more, and a bad guess does no harm
(``docs/explanation/proofs/supervertices.md``). Post-processing: nothing here sees data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, exp, log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

EXCESS = 1.0
"""Squares that exceed those of the noise by more than this share of them are more than noise, however few they are: beyond, cells differ by more than the noise does, and leaving them out
would cost more than keeping all of the noise."""
ROUNDS = 8


def fewest(cells: int, spread: float) -> int:
    """Fewest numbers from which a factor is estimated, where there are so many.

    Notes
    -----
    Of d squares of noise the sum has the relative deviation sqrt(spread / d), and the largest of m such sums exceeds its expectation by about sqrt(2 log m) deviations. Returned is the d
    at which that reaches the largest excess that may be noise, for n / d groups on each of log2 n levels.

    Examples
    --------
    >>> [fewest(cells, 6.0) for cells in (64, 512, 4096, 10**6)]
    [31, 54, 78, 143]
    """
    found = 2 * spread / EXCESS**2
    for _ in range(ROUNDS):
        found = 2 * spread / EXCESS**2 * log(max(_levels(cells) * cells / found, 2.0))
    return ceil(found)


def _levels(cells: int) -> float:
    """Levels of nested runs of so many cells."""
    return max(log(max(cells, 2)) / log(2), 1.0)


def outlying(noisy: Floats, labels: Ints, edges: Floats, scale: float) -> Bools:
    """Cells that differ from the median of their bucket by more than the noise of any cell is expected to.

    Parameters
    ----------
    noisy
        Noisy cells.
    labels
        The bucket of each cell: 0, 1, ... without gaps.
    edges
        Number of independent Laplace draws in the noise of each cell.
    scale
        Scale of each draw.

    Returns
    -------
    numpy.ndarray
        Of each cell whether it stands out. Of cells that are alike at most one is expected to (Chernoff's bound, over all cells).

    Examples
    --------
    >>> outlying(np.array([1.0, -2.0, 0.0, 99.0]), np.zeros(4, dtype=np.int64), np.ones(4), 1.0).tolist()
    [False, False, False, True]
    """
    sizes = np.bincount(labels)
    by_value = noisy[np.lexsort((noisy, labels))]
    first = np.cumsum(sizes) - sizes
    median = (by_value[first + (sizes - 1) // 2] + by_value[first + sizes // 2]) / 2
    counts, which = np.unique(edges, return_inverse=True)
    most = np.array([_reach(count, len(noisy)) for count in counts.tolist()])[which.reshape(-1)]
    found: Bools = (np.abs(noisy - median[labels]) > most * scale) & (sizes[labels] > 1)
    return found


def _reach(draws: float, cells: int) -> float:
    """Where Chernoff's bound on the tail of a sum of Laplace draws of scale 1 is one in so many cells."""
    if draws <= 0:
        return 0.0
    low, high = 0.0, 4 * (log(2 * cells) + draws + 1)
    for _ in range(50):
        middle = (low + high) / 2
        at = (sqrt(draws * draws + middle * middle) - draws) / middle
        low, high = (
            (middle, high) if 2 * exp(-at * middle) * (1 - at * at) ** -draws * cells > 1 else (low, middle)
        )
    return high


def stretches(buckets: Ints, laid: Ints) -> Iterator[Ints]:
    """Labels of stretches of 2, 4, 8, ... cells of each bucket, until these are the buckets.

    Parameters
    ----------
    buckets
        The bucket of each cell: 0, 1, ... without gaps.
    laid
        All cells, bucket after bucket, in the order in which they are cut into stretches.

    Examples
    --------
    >>> [labels.tolist() for labels in stretches(np.array([0, 0, 0, 1]), np.arange(4))]
    [[0, 0, 1, 2], [0, 0, 0, 1]]
    """
    sizes = np.bincount(buckets)
    first = np.cumsum(sizes) - sizes
    place = np.arange(len(laid)) - first[buckets[laid]]
    length, longest = 1, int(sizes.max(initial=0))
    while length < longest:
        length *= 2
        labels = np.empty(len(laid), dtype=np.int64)
        labels[laid] = np.cumsum(place % length == 0) - 1
        yield labels


def nearby(numbers: Floats, laid: Ints, least: int) -> Ints:
    """Groups of cells that follow each other and hold so many numbers at least, for :func:`pooled`.

    Examples
    --------
    >>> np.bincount(nearby(np.ones(200), np.arange(200), 64)).tolist()
    [64, 64, 72]
    """
    held = numbers[laid]
    # The numbers of a run are whole, and its cells lie strictly between two whole numbers.
    running = np.cumsum(held) - held / 2
    most = max(int(round(float(held.sum()), 3) / least), 1) - 1
    out = np.empty(len(numbers), dtype=np.int64)
    out[laid] = np.minimum((running / least).astype(np.int64), most)
    return out


def pooled(
    noisy: Floats,
    levels: Iterable[Ints],
    variances: Callable[[Ints], Floats],
    *,
    spread: float = 6.0,
    target: Floats | None = None,
    groups: Callable[[Floats], Ints] | None = None,
) -> Floats:
    """Estimate cells from noisy ones and nested buckets, shrinking what the noisy cells show to be noise.

    Parameters
    ----------
    noisy
        Unbiased noisy cells.
    levels
        Buckets from fine to coarse, each a label for each cell (0, 1, ... without gaps); those of one level are unions of those before.
    variances
        For the labels of a level the variance of the noise in the sum of each bucket.
    spread
        Bound on Var(n^2) / Var(n)^2 of the noise n of a cell, neighbouring cells included.
    target
        An estimate that is constant on the coarsest buckets and independent of the noise in ``noisy``; without one their means are taken as they are.
    groups
        Which differences of a level share a factor: for the numbers that each cell holds a label for each cell (0, 1, ...). Without it those in buckets of
        similar size do.

    Returns
    -------
    numpy.ndarray
        The estimate: the coarsest means, and of each difference between the means of one level and the next a part 1 - l.

    Notes
    -----
    The differences D of a level are orthogonal to those of the others. Their squares have the expectation E + B: E from the noise, known exactly, and B from
    the cells. The best part to keep is 1 - l with l = E / (E + B), and l is estimated by E / S with S the sum of squares (James and Stein), for all buckets of
    similar size together; l is 1 where S exceeds E by no more than the noise of one of all the groups is expected to, and by no more than E.

    Examples
    --------
    >>> pairs = np.repeat(np.arange(50), 2)
    >>> noise = np.random.default_rng(1).laplace(0, 5, 100)
    >>> flat = pooled(7 + noise, [pairs], lambda labels: 50.0 * np.bincount(labels))
    >>> bool(np.allclose(flat[0::2], flat[1::2]))
    True
    >>> apart = np.tile([0.0, 500.0], 50)
    >>> rough = pooled(apart + noise, [pairs], lambda labels: 50.0 * np.bincount(labels))
    >>> bool(np.mean((rough - apart) ** 2) <= 1.01 * np.mean(noise**2))
    True
    """
    alone, least = np.arange(len(noisy), dtype=np.int64), fewest(len(noisy), spread)
    out, below = np.zeros(len(noisy)), _Level(noisy, np.ones(len(noisy)), variances(alone))
    if groups is None:
        levels = list(levels)
        reach = np.bincount(levels[-1])[levels[-1]] if levels else np.ones(len(noisy), dtype=np.int64)
        groups = partial(_alike, reach=reach, least=least)
    for labels in levels:
        above = _Level.of(noisy, labels, variances(labels))
        numbers = below.numbers - above.numbers
        apart, noise = below.means - above.means, below.noise - above.noise
        out += _kept(apart, noise, numbers, groups(numbers), spread)
        below = above
    if target is None:
        return out + below.means
    apart, groups_of = below.means - target, groups(below.numbers)
    return out + _kept(apart, below.noise, below.numbers, groups_of, spread) + target


@dataclass(frozen=True)
class _Level:
    """Buckets of one level, told cell by cell."""

    means: Floats
    """Noisy mean of the bucket."""
    numbers: Floats
    """One over the cells of the bucket: all cells together have as many numbers as there are buckets."""
    noise: Floats
    """Variance of the mean."""

    @classmethod
    def of(cls, noisy: Floats, labels: Ints, variances: Floats) -> _Level:
        sizes = np.bincount(labels)
        means = np.bincount(labels, noisy) / sizes
        return cls(means[labels], (1.0 / sizes)[labels], (variances / sizes / sizes)[labels])


def _alike(numbers: Floats, reach: Ints, least: int) -> Ints:
    """Groups of cells by the size of their coarsest bucket, in powers of two, small ones together until they hold enough numbers."""
    kind = np.ceil(np.log2(reach)).astype(np.int64)
    held = np.bincount(kind, numbers)
    group, found, waiting = np.zeros(len(held), dtype=np.int64), 0, 0.0
    for each, more in enumerate(held.tolist()):
        group[each] = found
        waiting += more
        if waiting >= least:
            found, waiting = found + 1, 0.0
    # What is left over at the end joins the last group.
    return np.minimum(group, max(found - 1, 0))[kind]


def _kept(apart: Floats, noise: Floats, numbers: Floats, groups: Ints, spread: float) -> Floats:
    """Differences without the share of their squares that noise explains, which is 1 where there is no evidence of more."""
    expected, found = np.bincount(groups, noise), np.bincount(groups, np.square(apart))
    count = np.maximum(np.bincount(groups, numbers), 1.0)
    share = np.ones(len(count))
    np.divide(expected, found, out=share, where=found > expected)
    sure = np.sqrt(2 * log(max(_levels(len(apart)) * len(count), 1.0)) * spread / count)
    share[found - expected <= expected * np.minimum(EXCESS, sure)] = 1.0
    share[(expected <= 0) | (found <= 0)] = 0.0
    return np.asarray((1.0 - share)[groups] * apart)


def least_risk(
    candidates: Sequence[Callable[[npt.NDArray[Any]], npt.NDArray[Any]]], noisy: Ints, noises: Ints
) -> npt.NDArray[Any]:
    """The estimate of the candidate whose squared error seems to be the least.

    Parameters
    ----------
    candidates
        Estimators of cells from noisy cells.
    noisy
        Noisy cells.
    noises
        Noise of the same distribution, drawn again in public: one row for each time that the candidates are tried.

    Notes
    -----
    The expected squared error of an estimator c is that of its distance from the noisy cells, plus twice the covariance of c with the noise, minus the variance
    of the noise, which is the same for all (Efron 2004). The covariance is found by running c on noise around the estimates of all candidates alike, so that none
    is judged on its own terms. Ties go to the first.

    Examples
    --------
    >>> noise = np.random.default_rng(1).integers(-9, 10, (2, 500))
    >>> flat = lambda cells: np.full(cells.shape, cells.mean())
    >>> bool(np.ptp(least_risk([np.copy, flat], 7 + noise[0], noise[1:])) == 0)
    True
    """
    found = [candidate(noisy) for candidate in candidates]
    scores = []
    for candidate, own in zip(candidates, found, strict=True):
        moved = [
            float(np.dot(noise.astype(np.float64), candidate(centre + noise) - centre))
            for centre in found
            for noise in noises
        ]
        scores.append(float(np.square(own - noisy).sum()) + 2 * float(np.mean(moved)))
    return found[int(np.argmin(scores))]
