"""Tests and statistics from released numbers. Owns :func:`chi_squared`, :func:`moments`, :class:`Moments` and :class:`Estimate`.

Post-processing: everything here sees published and noisy numbers only. Users reach this module as ``policygraph.statistics``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from policygraph.distributions.noise import GAUSSIAN, LAPLACE, Noise, gaussian_noise, laplace_noise
from policygraph.distributions.replay import Replay
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.measures import MeasureRelease
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.policy import Policy
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.queries.statistics import ChiSquaredRoot, chi_squared_root
from policygraph.release.release import Release, Table

__all__ = ["ChiSquared", "Estimate", "Moments", "chi_squared", "moments"]

Floats = npt.NDArray[np.float64]
ADDITIVE = ("Laplace", "Gaussian")
"""Mechanisms that add independent noise of one distribution to every count."""
LEVEL = 0.97
"""What ranges of statistics cover in simulation: in the middle between 95 and 99 %, since the simulation is around an estimate and not around the truth."""
RUNS = 1_000
MOST_RUNS = 10_000_000
AT_ONCE = 4_000_000
"""Most numbers of simulated tables that are held at once."""
MOST_FACTS = 20_000_000
"""Most cells times public sums of which the sums are used."""


@dataclass(frozen=True)
class ChiSquared:
    """A test of independence.

    Attributes
    ----------
    statistic
        Noisy root of chi-squared, or the quadratic form of a noisy table (see :func:`chi_squared`).
    degrees
        Degrees of freedom of the table.
    p_value
        Probability of a statistic at least as large for independent attributes with these margins and this noise, from simulation: it is valid
        for every number of runs, P(p <= alpha) <= alpha.
    runs
        Simulated releases.
    """

    statistic: float
    degrees: int
    p_value: float
    runs: int

    @property
    def error(self) -> float:
        """Standard error of the p-value that is due to the simulation."""
        return float(np.sqrt(self.p_value * (1 - self.p_value) / self.runs))

    def __str__(self) -> str:
        return (
            f"independence: p = {self.p_value:.4g} (simulation error {self.error:.2g}), {self.degrees} degrees of freedom, statistic "
            f"{self.statistic:.4g}; noise accounted for"
        )


def chi_squared(release: Release, *, runs: int = 9_999) -> ChiSquared:
    """Test whether two attributes with public margins are independent, from a release.

    Parameters
    ----------
    release
        Of :func:`policygraph.queries.chi_squared_root`; or of the table of two attributes by ``pg.Laplace`` or
        ``pg.Gaussian``, under a policy that publishes both margins with their values.
    runs
        Simulated releases of independent attributes.

    Notes
    -----
    Given the margins, the table of independent attributes has the multiple hypergeometric distribution, which has no unknown parameter. Tables are
    drawn from it, given the noise of the release, and p = (1 + number of statistics at least as large) / (1 + runs): valid whatever
    the noise and however small the counts are. The statistic of a noisy table is the quadratic form of its difference to the expected counts
    in the inverse of the covariance of table and noise together, which is chi-squared (n - 1) / n where there is no noise.

    Raises
    ------
    RefusedError
        For other releases.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"sex": ["F", "M"], "pay": ["low", "high"]})
    >>> facts = [pg.Cuboid("sex", equals=[500, 500]), pg.Cuboid("pay", equals=[600, 400])]
    >>> policy = pg.Policy(domain, constraints=facts)
    >>> query = pg.queries.chi_squared_root(policy, "sex", "pay")
    >>> made = pg.release(query, policy, [350, 150, 250, 250], epsilon=1, rng=pg.SeededRng(1))
    >>> pg.statistics.chi_squared(made).p_value < 0.001
    True
    """
    if isinstance(runs, bool) or not isinstance(runs, (int, np.integer)) or not 1 <= runs <= MOST_RUNS:
        raise InputError(
            f"runs={runs!r}: expected a whole number from 1 to {MOST_RUNS:,}.",
            code="statistics.runs",
            value=runs,
        )
    query, test = _test_of(release)
    replay = Replay(
        "chi-squared", np.asarray(release.values(0)), str(sorted(query.to_spec()["margins"].items()))
    )
    seen = float(test(np.asarray(release.values(0), dtype=np.float64)[None])[0])
    above = 0
    for tables in null_tables(query, int(runs), replay):
        above += int((test(_released(query, release, tables, replay)) >= seen * (1 - 1e-12)).sum())
    return ChiSquared(seen, query.degrees, (1 + above) / (1 + runs), int(runs))


Test = Callable[[Floats], Floats]


def _test_of(release: Release) -> tuple[ChiSquaredRoot, Test]:
    """Margins of a release, and the statistic of released values, one row for each release."""
    query, policy = release.query, release.policy
    if isinstance(query, ChiSquaredRoot):
        return query, lambda values: values[:, 0]
    names = query.sets[0] if isinstance(query, CuboidQuery) and len(query.sets) == 1 else ()
    if len(names) != 2 or not isinstance(policy, Policy):
        raise RefusedError(
            "no test of independence of this release: expected one of the chi-squared statistic ([[release]] statistic = 'chi-squared' in the policy file, pg.queries.chi_squared_root in Python), or of the table of two attributes.",
            code="statistics.release",
        )
    root = chi_squared_root(policy, *names)
    deviation = _additive(release, release.tables[0])
    return root, quadratic_form(root, float(np.max(deviation)) ** 2)


def quadratic_form(query: ChiSquaredRoot, variance: float) -> Test:
    """The statistic of noisy tables: differences to expected counts, weighed by the covariance of a table of independent attributes plus noise.

    Notes
    -----
    Given the margins the covariance of the counts is (diag(r) - r r' / n) x (diag(c) - c c' / n) / (n - 1), a Kronecker product; noise adds a
    multiple of the identity, so that the eigenvectors of both factors make it diagonal. The sums of rows and columns carry noise only, and are left out.
    """
    n = query.total
    r, c = (np.array(margin, dtype=np.float64) for margin in (query.rows, query.sums))
    expected = np.outer(r, c) / n
    rows, columns = np.flatnonzero(r), np.flatnonzero(c)
    (one, u), (other, v) = (_eigen(margin[margin > 0], n) for margin in (r, c))
    weight = 1.0 / (np.outer(one, other) / max(n - 1, 1) + variance)

    def form(values: Floats) -> Floats:
        off = values.reshape(-1, *expected.shape) - expected
        inside = u.T @ off[:, rows][:, :, columns] @ v
        made: Floats = (np.square(inside) * weight).sum(axis=(1, 2))
        return made

    return form


def _eigen(margin: Floats, n: int) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of diag(r) - r r' / n but for the vector of ones, whose eigenvalue is 0."""
    values, vectors = np.linalg.eigh(np.diag(margin) - np.outer(margin, margin) / n)
    made: Floats = np.asarray(np.maximum(values[1:], 0.0), dtype=np.float64)
    return made, np.asarray(vectors[:, 1:], dtype=np.float64)


def null_tables(query: ChiSquaredRoot, runs: int, replay: Replay) -> Iterator[Floats]:
    """Tables of independent attributes with the margins of a query, in batches of rows."""
    from scipy.stats import random_table

    r, c = np.array(query.rows, dtype=np.int64), np.array(query.sums, dtype=np.int64)
    rng = np.random.default_rng(int(replay.uniform((1,))[0] * 2**53))
    law = random_table(r[r > 0], c[c > 0])
    batch = max(1, AT_ONCE // (len(r) * len(c)))
    for start in range(0, runs, batch):
        many = min(batch, runs - start)
        made = np.zeros((many, len(r), len(c)))
        made[np.ix_(np.arange(many), np.flatnonzero(r), np.flatnonzero(c))] = np.asarray(
            law.rvs(size=many, random_state=rng)
        ).reshape(many, int((r > 0).sum()), int((c > 0).sum()))
        yield made.reshape(many, -1)


def _released(query: ChiSquaredRoot, release: Release, tables: Floats, replay: Replay) -> Floats:
    """What would have been released of tables, with noise drawn again in public."""
    noise = noise_of(release)
    if isinstance(release.query, ChiSquaredRoot):
        answers = np.floor(roots(query, tables) * float(1 << query.bits))[:, None]
    else:
        answers = tables
    made: Floats = np.asarray(
        (answers + replay.draws(noise, answers.shape)) * float(release.query.unit), dtype=np.float64
    )
    return made


def roots(query: ChiSquaredRoot, tables: Any) -> Floats:
    """Roots of chi-squared of tables, one in each row, in floating point."""
    expected = (np.outer(query.rows, query.sums) / query.total).ravel()
    there = expected > 0
    off = np.asarray(tables, dtype=np.float64)[:, there] - expected[there]
    made: Floats = np.sqrt((np.square(off) / expected[there]).sum(axis=1))
    return made


def noise_of(release: Release) -> Noise:
    """The distribution of the noise of one whole number, as the record of a release has it."""
    stated = release.record["noise"]
    parameter = Fraction(stated["parameter"])
    if stated["distribution"] == GAUSSIAN:
        return gaussian_noise(parameter)
    return laplace_noise(parameter if stated["distribution"] == LAPLACE else Fraction(0))


def _additive(release: Release, table: Table) -> Floats:
    """Standard deviation of each value of a table whose noise is independent."""
    if release.record["mechanism"] not in ADDITIVE:
        raise RefusedError(
            f"a release by {release.record['mechanism']}: the errors of its values depend on each other, and how is not recorded. Expected independent noise "
            "on every count: release with mechanism=pg.Laplace() or pg.Gaussian().",
            code="statistics.mechanism",
            value=release.record["mechanism"],
        )
    return np.broadcast_to(np.asarray(table.deviation, dtype=np.float64), (len(table.values),))


@dataclass(frozen=True)
class Estimate:
    """A statistic with its error.

    Attributes
    ----------
    value
        The statistic of the released numbers.
    deviation
        Its standard error, by the delta method.
    low, high
        Ends of a range that covers the true value in 95 to 99 of 100 releases.
    """

    value: float
    deviation: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.5g} ({self.low:.5g} to {self.high:.5g})"


@dataclass(frozen=True)
class Moments:
    """Sums of released counts times scores and their products, from which means, covariances and regressions follow with their errors.

    Attributes
    ----------
    attributes
        The attributes, each with a number for every value.
    sums
        Total, sums and sums of products of centred scores, row by row of the upper triangle of a matrix of moments.
    noise
        Their covariance that is due to the noise.
    sampling
        Their covariance that is due to sampling, where the records are a sample; else 0.
    """

    attributes: tuple[str, ...]
    sums: Floats
    noise: Floats
    sampling: Floats
    _centre: Floats = field(repr=False)
    _scale: Floats = field(repr=False)
    _draws: Callable[[int], Floats] = field(repr=False)
    measured: str = ""
    """The measure, where the release is of its sums; of its squares nothing is known."""

    def total(self) -> Estimate:
        """The number of records."""
        return self._estimate(lambda g: g[..., 0, 0])

    def mean(self, name: str) -> Estimate:
        """The mean of an attribute."""
        at = self._at(name)
        return self._estimate(lambda g: self._means(g)[..., at - 1])

    def variance(self, name: str) -> Estimate:
        """The variance of an attribute: the mean squared distance to the mean."""
        return self.covariance(name, name)

    def covariance(self, one: str, other: str) -> Estimate:
        """The covariance of two attributes."""
        i, j = self._at(one) - 1, self._at(other) - 1
        if i == j:
            self._check_squares(one)
        return self._estimate(lambda g: self._covariances(g)[..., i, j])

    def correlation(self, one: str, other: str) -> Estimate:
        """The correlation of two attributes."""
        i, j = self._at(one) - 1, self._at(other) - 1
        self._check_squares(one, other)

        def correlate(g: Floats) -> Floats:
            c = self._covariances(g)
            made: Floats = c[..., i, j] / np.sqrt(_positive(c[..., i, i]) * _positive(c[..., j, j]))
            return made

        return self._estimate(correlate)

    def regression(self, outcome: str, on: str | Sequence[str]) -> dict[str, Estimate]:
        """Coefficients of the least-squares regression of one attribute on others, and the intercept.

        Examples
        --------
        >>> import policygraph as pg
        >>> domain = pg.Domain({"age": [20, 40, 60], "pay": [1, 2, 3]})
        >>> data = [900, 400, 100, 400, 900, 400, 100, 400, 900]
        >>> made = pg.release(pg.queries.identity(domain), pg.Policy(domain), data, epsilon=1, mechanism=pg.Laplace(), rng=pg.SeededRng(1))
        >>> found = pg.statistics.moments(made).regression("pay", "age")
        >>> sorted(found), found["age"].low < 0.0286 < found["age"].high
        (['age', 'intercept'], True)
        """
        names = [on] if isinstance(on, str) else list(on)
        y, x = self._at(outcome) - 1, [self._at(name) - 1 for name in names]
        if not x or y in x or len(set(x)) != len(x):
            raise InputError(
                f"regression of {outcome!r} on {names}: expected other attributes, each once.",
                code="statistics.attribute",
                value=names,
            )
        self._check_squares(*names)

        def solve(g: Floats) -> Floats:
            c = self._covariances(g)
            inner = c[..., x, :][..., x]
            least = np.asarray(np.linalg.eigvalsh(inner).min(axis=-1))
            safe = np.where((least > 0)[..., None, None], inner, np.nan)
            made: Floats = (np.linalg.inv(safe) @ c[..., x, :][..., [y]])[..., 0]
            return made

        out = {
            name: self._estimate(lambda g, at=at: solve(g)[..., at])  # type: ignore[misc]
            for at, name in enumerate(names)
        }

        def intercept(g: Floats) -> Floats:
            m = self._means(g)
            made: Floats = m[..., y] - (solve(g) * m[..., x]).sum(axis=-1)
            return made

        return out | {"intercept": self._estimate(intercept)}

    def _check_squares(self, *names: str) -> None:
        if self.measured in names:
            raise RefusedError(
                f"squares of {self.measured} were not measured, so that its variance is not known: expected it as the outcome of a regression, or in a covariance with an "
                "attribute.",
                code="statistics.measure",
                value=self.measured,
            )

    def _at(self, name: str) -> int:
        if name not in self.attributes:
            raise InputError(
                f"{name!r}: expected one of {', '.join(self.attributes)}.",
                code="statistics.attribute",
                value=name,
            )
        return self.attributes.index(name) + 1

    def _means(self, g: Floats) -> Floats:
        made: Floats = self._centre + self._scale * g[..., 0, 1:] / _positive(g[..., 0, 0])[..., None]
        return made

    def _covariances(self, g: Floats) -> Floats:
        n = _positive(g[..., 0, 0])[..., None]
        m = g[..., 0, 1:] / n
        made: Floats = (g[..., 1:, 1:] / n[..., None] - m[..., :, None] * m[..., None, :]) * np.outer(
            self._scale, self._scale
        )
        return made

    @cached_property
    def _again(self) -> Floats:
        """Sums as they might have been released, around the released ones."""
        made = self.sums + self._draws(RUNS)
        if self.sampling.any():
            values, vectors = np.linalg.eigh(self.sampling)
            from scipy.special import ndtri

            normal = ndtri(Replay("sampling", self.sums).uniform((RUNS, len(values))))
            made = made + (normal * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return made

    def _estimate(self, function: Callable[[Floats], Floats]) -> Estimate:
        """A function of the moments, its standard error, and a range from simulated ratios of error to standard error."""
        covariance = self.noise + self.sampling
        size = len(self.attributes) + 1
        steps = 1e-3 * np.sqrt(np.maximum(np.diag(covariance), 0.0))

        def value(sums: Floats) -> Floats:
            return function(_matrix(sums, size))

        def deviation(sums: Floats) -> Floats:
            slopes = np.zeros(sums.shape)
            for at in np.flatnonzero(steps):
                step = np.zeros(sums.shape[-1])
                step[at] = steps[at]
                slopes[..., at] = (value(sums + step) - value(sums - step)) / (2 * steps[at])
            square = np.einsum("...i,ij,...j->...", slopes, covariance, slopes)
            made: Floats = np.sqrt(np.maximum(square, 0.0))
            return made

        with np.errstate(all="ignore"):
            centre, spread = float(value(self.sums)), float(deviation(self.sums))
            if spread == 0 and np.isfinite(centre):
                return Estimate(centre, 0.0, centre, centre)
            others, spreads = value(self._again), deviation(self._again)
            ratios = np.abs(others - centre) / spreads
        if not np.isfinite(centre) or not np.isfinite(ratios).all():
            raise RefusedError(
                "the noise is too large for this statistic: within it a total or a variance may as well be 0. Release with a larger loss, or with fewer "
                "and larger cells.",
                code="statistics.noise",
            )
        half = spread * float(np.quantile(ratios, LEVEL))
        return Estimate(centre, spread, centre - half, centre + half)


def _positive(values: Floats) -> Floats:
    """Not a number where a value is not positive."""
    made: Floats = np.where(values > 0, values, np.nan)
    return made


def _matrix(sums: Floats, size: int) -> Floats:
    """Symmetric matrices from their upper triangles."""
    upper = np.triu_indices(size)
    made = np.zeros((*sums.shape[:-1], size, size))
    made[..., upper[0], upper[1]] = sums
    made[..., upper[1], upper[0]] = sums
    return made


def moments(
    release: Release,
    *attributes: str,
    scores: Mapping[str, Any] | None = None,
    table: int | str = 0,
    population: bool = False,
) -> Moments:
    """Means, variances, covariances, correlations and regressions of attributes, from a released table.

    Parameters
    ----------
    release
        Counts with independent noise: by ``pg.Laplace`` or ``pg.Gaussian``. Or averages of a measure for one table (``pg.queries.averages``): the measure is then one more
        attribute, with its mean, its covariances with the others, and regressions of it on them.
    attributes
        Attributes of the table; by default all of them.
    scores
        For attributes whose labels are no numbers, and for others if wanted: a number for each label, in order, or by label.
    table
        Which table of the release.
    population
        Whether the records are a sample, and statistics of the population are wanted: errors then hold noise and sampling. By default they hold the noise
        alone, and are about the records.

    Notes
    -----
    Every statistic is a function of a few sums of counts times scores. Their noise has a known covariance, which the delta method carries on. Ranges
    are standard errors times a factor that covers 97 % of simulated ratios of error to standard error, with noise drawn
    again in public. Where the policy publishes margins of the table, with values, the part of each sum that they determine is exact.

    Raises
    ------
    RefusedError
        For noise that is not independent, and, when a statistic is asked for, where the noise leaves it undefined.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": [20, 40, 60], "vote": ["no", "yes"]})
    >>> made = pg.release(pg.queries.identity(domain), pg.Policy(domain), [90, 10, 50, 50, 20, 80], epsilon=1, mechanism=pg.Laplace(), rng=pg.SeededRng(1))
    >>> found = moments(made, scores={"vote": [0, 1]})
    >>> age = found.mean("age")
    >>> age.low < 40 < age.high, found.correlation("age", "vote").low > 0
    (True, True)
    """
    if isinstance(release, MeasureRelease):
        return _measured_moments(release, attributes, scores or {}, table, population=population)
    held = release._find(table)
    deviation = _additive(release, held)
    names = attributes or held.columns
    columns = [_scores(held, name, (scores or {}).get(name)) for name in names]
    centre = np.array([(x.min() + x.max()) / 2 for x in columns])
    scale = np.array([max(float(np.ptp(x)) / 2, 1e-300) for x in columns])
    design = np.stack(
        [np.ones(len(held.values)), *((x - m) / s for x, m, s in zip(columns, centre, scale, strict=True))]
    )
    weights = _products(design)
    values = np.asarray(held.values if held.unbiased is None else held.unbiased, dtype=np.float64)
    known, rest = _public_part(release, held, weights)
    sums = known + rest @ values
    noise = (rest * deviation**2) @ rest.T
    sampling = np.zeros_like(noise)
    if population:
        raw = weights @ values
        total = raw[0] if raw[0] > 0 else np.nan
        sampling = np.nan_to_num((weights * values) @ weights.T - np.outer(raw, raw) / total)
    return Moments(
        tuple(names), sums, noise, sampling, centre, scale, _again(release, values, deviation, rest)
    )


def _products(design: Floats) -> Floats:
    """Products of any two rows, in the order of an upper triangle."""
    upper = np.triu_indices(len(design))
    made: Floats = design[upper[0]] * design[upper[1]]
    return made


def _again(release: Release, values: Floats, deviation: Floats, rest: Floats) -> Callable[[int], Floats]:
    """Errors of sums of released values with these weights, with noise drawn again in public."""
    law = noise_of(release)
    factor = deviation / max(float(np.sqrt(law.variance)), 1e-300)

    def draws(runs: int) -> Floats:
        made = np.zeros((runs, len(rest)))
        replay = Replay("moments", values)
        batch = max(1, AT_ONCE // max(1, len(values)))
        for start in range(0, runs, batch):
            many = min(batch, runs - start)
            made[start : start + many] = (replay.draws(law, (many, len(values))) * factor) @ rest.T
        return made

    return draws


def _measured_moments(
    release: MeasureRelease,
    attributes: Sequence[str],
    scores: Mapping[str, Any],
    table: Any,
    *,
    population: bool,
) -> Moments:
    """Moments from measured sums: those of scores from the counts, and those of the measure with scores from its sums in each cell."""
    kinds = [part.get("kind") for part in release.record["parts"]]
    stated = release.record["measure"]
    if kinds != ["sum", "count", "average"] or len(stated["measured"]) != 1 or table != 0 or population:
        raise RefusedError(
            "moments of this release of a measure: expected averages for one table, pg.queries.averages(domain, [['age']], measure), whose sums and counts have independent "
            "noise, about the records themselves (population=False).",
            code="statistics.measure",
        )
    sums, counts = release.tables[0], release.tables[1]
    spread = release.record["parts"][2]["spread"]
    if stated["known_counts"] and spread[1]:
        raise RefusedError(
            "some counts behind these averages are public, so that the errors of the others depend on each other, and how is not recorded. Expected a policy without "
            "public counts, or one that publishes the whole table.",
            code="statistics.mechanism",
        )
    query = cast("MeasureQuery", release.query)
    middle, half = float(query.measure.middle), max(float(query.measure.high - query.measure.low) / 2, 1e-300)
    names = tuple(attributes) or counts.columns
    columns = [_scores(counts, name, scores.get(name)) for name in names]
    centre = np.array([*((x.min() + x.max()) / 2 for x in columns), middle])
    scale = np.array([*(max(float(np.ptp(x)) / 2, 1e-300) for x in columns), half])
    many = np.asarray(counts.values, dtype=np.float64)
    off = (np.asarray(sums.values, dtype=np.float64) - middle * many) / half
    design = np.stack(
        [np.ones(len(many)), *((x - m) / s for x, m, s in zip(columns, centre, scale, strict=False))]
    )
    # A moment without the measure is a sum of counts, one with it a sum of its sums; that of its squares was not measured.
    size = len(design) + 1
    upper = np.triu_indices(size)
    rest = np.zeros((len(upper[0]), 2 * len(many)))
    for row, (i, j) in enumerate(zip(*upper, strict=True)):
        if j < size - 1:
            rest[row, : len(many)] = design[i] * design[j]
        elif i < size - 1:
            rest[row, len(many) :] = design[i]
    values = np.concatenate([many, off])
    deviation = np.repeat([spread[1], spread[0] / half], len(many))
    made = rest @ values
    made[-1] = np.nan
    noise = (rest * deviation**2) @ rest.T
    return Moments(
        (*names, query.measure.column),
        made,
        noise,
        np.zeros_like(noise),
        centre,
        scale,
        _again(release, values, deviation, rest),
        measured=query.measure.column,
    )


def _scores(table: Table, name: str, given: Any) -> Floats:
    """The number of each cell of a table."""
    if name not in table.columns:
        raise InputError(
            f"{name!r}: expected an attribute of the table, {', '.join(table.columns)}.",
            code="statistics.attribute",
            value=name,
        )
    labels = np.asarray(table.labels[table.columns.index(name)])
    distinct = list(dict.fromkeys(labels.tolist()))
    if given is None:
        given = distinct
    pairs = given if isinstance(given, Mapping) else dict(zip(distinct, given, strict=False))
    try:
        if len(pairs) != len(distinct):
            raise KeyError(name)
        made = np.array([float(pairs[label]) for label in labels.tolist()])
    except (KeyError, TypeError, ValueError):
        made = np.array([np.nan])
    if not np.isfinite(made).all():
        raise InputError(
            f"scores of {name}: expected a number for each of its {len(distinct)} labels: scores={{{name!r}: [...]}}.",
            code="statistics.scores",
            value=name,
        )
    return made


def _public_part(release: Release, table: Table, weights: Floats) -> tuple[Floats, Floats]:
    """Split sums of counts times weights into what published margins tell exactly, and weights of the rest."""
    policy = release.policy
    nothing = np.zeros(len(weights)), weights
    if not isinstance(policy, Policy) or not isinstance(policy.domain, Domain):
        return nothing
    rows: list[Floats] = []
    values: list[float] = []
    for fact in policy.constraints:
        names = fact.names if isinstance(fact, Cuboid) else ()
        told = fact.values(policy.domain) if isinstance(fact, (Cuboid, Total)) else None
        if told is None or not set(names) <= set(table.columns) or len(told) * weights.shape[1] > MOST_FACTS:
            continue
        part = np.zeros(weights.shape[1], dtype=np.int64)
        for name in (
            (policy.domain.names[axis] for axis in cast("Cuboid", fact).axes(policy.domain)) if names else ()
        ):
            labels = list(policy.domain.labels(name))
            place = {label: at for at, label in enumerate(labels)}
            own = np.asarray(table.labels[table.columns.index(name)]).tolist()
            part = part * len(labels) + np.array([place[label] for label in own], dtype=np.int64)
        rows.append((part[None, :] == np.arange(len(told))[:, None]).astype(np.float64))
        values += [float(value) for value in told]
    if not rows or sum(len(row) for row in rows) * weights.shape[1] > MOST_FACTS:
        return nothing
    facts = np.concatenate(rows)
    shares = np.linalg.lstsq(facts.T, weights.T, rcond=None)[0].T
    rest = weights - shares @ facts
    rest[np.abs(rest) < 1e-12 * np.abs(weights).max(initial=1.0)] = 0.0
    return shares @ np.array(values), rest
