"""Partition privately, count buckets and cells, and let the noisy counts say how far the buckets hold. Owns :class:`Partitioned`.

Step 1 chooses buckets with a part of epsilon. Step 2 releases the counts of the cells with most of epsilon and, where this is worth it, the counts of the buckets
under the merged policy with another part. Step 3 is post-processing: the cells of a bucket get equal shares as far as their noisy counts do not speak
against it. The arguments are ``docs/explanation/proofs/supervertices.md`` and the page of the partitioner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from policygraph.distributions.noise import check_scale
from policygraph.distributions.replay import Replay
from policygraph.errors import InputError
from policygraph.estimation.buckets import Bools, least_risk, outlying, pooled
from policygraph.estimation.errors import Seen, bounded
from policygraph.estimation.histograms import consistent
from policygraph.exact import Exact, as_fraction, show
from policygraph.mechanisms.base import (
    Calibrated,
    Floats,
    Ints,
    Mechanism,
    Noise,
    answer_parts,
    certified,
    counts_only,
)
from policygraph.mechanisms.partitioned import Partition, merge_policy
from policygraph.mechanisms.partitioned.levels import apart, nested
from policygraph.mechanisms.partitioned.partitioners import Chooser, Intervals, Partitioner
from policygraph.mechanisms.partitioned.second_step import (
    MOST_ENTRIES,
    check_then,
    counts_buckets,
    noise_of_answers,
    plain_noise,
    second_step,
    total_of,
    unbiased,
)
from policygraph.mechanisms.transformed.mechanism import (
    EdgeNoise,
    OnTransformed,
    TransformedConsistent,
)
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries import identity
from policygraph.model.queries.base import Query
from policygraph.release.release import Basis, Errors, Randomness, Release
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.transforms.incidence.base import Totals, check_cells, graph_of, totals_are_exact

MARKOV = 39.0
DENSE = 4_000_000
"""Entries of a query that are looked at for the error of spreading; of larger ones it is bounded by the counts of all buckets."""
MEAN = 0.75
"""Mean absolute value over standard deviation: 0.71 for a Laplace variable, 0.75 for the difference of two."""
PARTS = {True: Fraction(1, 8), False: Fraction(1, 4)}
"""Parts of epsilon that do not go into the counts of the cells: where these count the buckets as well, and where buckets are counted by themselves."""
SHOWN = 1_000_000
"""Partitions of at most so many cells are written into the record of a release."""
REPLAYED, MOST_REPLAYS = 1 << 14, 16
"""Noisy cells that are drawn again in public to judge an estimate, and most times that all cells are."""
KEPT = 4096
"""Second steps that are kept, for those who run many times on few cells."""


@dataclass(frozen=True)
class BucketNoise(OnTransformed):
    """Steps 2 and 3 for a partition that is public by now."""

    mechanism: str
    query: Query
    policy: Policy
    loss: Loss
    sensitivity: Sensitivity
    partition: Partition
    inner: Calibrated
    """Step 2: the mechanism for the counts of the buckets."""
    first: tuple[str, ...]
    """What is to be said of step 1."""

    @property
    def centre(self) -> None:
        """An output is the counts of the buckets."""

    @property
    def noise(self) -> Noise:
        return self.inner.noise

    def transform(self, cells: Ints) -> tuple[Ints, Ints]:
        """Counts of the buckets, which are private under this policy if they are under the merged one."""
        return self.partition.sums(cells), np.zeros(0, dtype=np.int64)

    def answers(self, counts: Ints) -> Floats:
        """Spread counts of buckets over their cells and answer the query, in units of the query."""
        return answer_parts(self.query, self.partition.spread(counts))

    def to_answers(self, points: Any) -> Floats:
        return self.answers(points)

    @cached_property
    def errors(self) -> tuple[Floats, Floats]:
        """Standard deviation and 95 % range of the noise of each answer, in units of the query."""
        return noise_of_answers(self.query, self.partition, self.inner)

    def deviation(self, part: int) -> float | Floats:
        return self._of_part(self.errors[0], part)

    def within_95(self, part: int) -> float | Floats:
        return self._of_part(self.errors[1], part)

    def errors_of(self, points: Any) -> list[Errors]:
        """Errors of answers from counts of buckets: those of the noise and, on top, a bound on what even shares can miss."""
        apart, reach = self.spreading(np.asarray(points, dtype=np.float64))
        noise, width = self.errors
        return self._by_part(Errors(np.hypot(noise, apart), width + reach, "bound"))

    def spreading(self, counts: Floats) -> tuple[Floats, Floats]:
        """What even shares of buckets can miss: root mean square over the cells of a bucket at most, and a bound on it for 97.5 % of them, for each answer.

        Notes
        -----
        Counts are not negative, so that of m cells with sum c fewer than m / 40 exceed 40 c / m (Markov), none exceeds c, and the mean squared distance from
        c / m is at most (m - 1) (c / m)^2. A sum of a part of the cells of a bucket is between 0 and c.
        """
        sizes, labels = self.partition.sizes.astype(np.float64), self.partition.labels
        wide = np.broadcast_to(np.asarray(self.inner.within_95(0), dtype=np.float64), sizes.shape)
        most = np.where(sizes > 1, np.maximum(counts, 0.0) + wide, 0.0)
        if self.query.is_identity:
            share = most / sizes
            return (share * np.sqrt(sizes - 1))[labels], np.minimum(most - share, MARKOV * share)[labels]
        rows = np.zeros(self.query.height)
        size = self.partition.size
        if self.query.height * size > DENSE:
            rows += self.query.largest_entry * float(most.sum())
            return rows, rows
        entries = np.asarray(self.query.columns(np.arange(size)).toarray(), dtype=np.float64)
        for bucket in np.flatnonzero(most).tolist():
            mine = entries[:, labels == bucket]
            middle = mine.mean(axis=1)
            rows += most[bucket] * np.maximum(mine.max(axis=1) - middle, middle - mine.min(axis=1))
        return rows, rows

    def stages(self) -> Sequence[str]:
        return [
            *self.first,
            f"The {self.partition.size:,} cells form {self.partition.n_buckets:,} buckets, whose counts were released under the "
            "merged policy graph.",
            *self.inner.stages(),
            "The cells of a bucket were given equal shares of its count. How far they are from equal is not known; stated errors are bounds that hold however "
            "the count of a bucket is spread over its cells, and are wide where buckets are large.",
        ]

    def record(self, randomness: Randomness, parts: list[dict[str, Any]]) -> dict[str, Any]:
        for part in parts:
            part["integer"] = False
        made = super().record(randomness, parts)
        made["partition"] = _recorded(self.partition)
        return made


@dataclass(frozen=True)
class GuardedNoise(Calibrated):
    """Steps 2 and 3 for buckets that were chosen: counts of the cells, perhaps of the buckets, and the estimate from both."""

    mechanism: str
    query: Query
    policy: Policy
    loss: Loss
    sensitivity: Sensitivity
    history: tuple[Partition, ...]
    """The partition after each round, from fine to coarse."""
    order: Ints | None
    """The cells in the order in which buckets are halved."""
    cells: Calibrated
    """Plain noise on the cells."""
    buckets: BucketNoise | None
    """Noise on the counts of the buckets; None where the noisy cells give these as well."""
    consistent: bool
    """Whether the estimate is replaced by whole non-negative cells."""
    first: tuple[str, ...]

    @property
    def partition(self) -> Partition:
        """The buckets."""
        return self.history[-1]

    @property
    def centre(self) -> None:
        """An output starts with the buckets."""

    @property
    def noise(self) -> Noise:
        return self.cells.noise

    def estimate(self, noisy: npt.NDArray[Any], counts: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        """Cells from their noisy counts and, where there are any, noisy counts of the buckets (post-processing)."""
        if not self.noise.variance:
            return noisy
        cells = self.cells
        if not self.consistent or not isinstance(cells, EdgeNoise):
            return self._pooled(noisy, counts)

        def bucketed(given: npt.NDArray[Any]) -> Ints:
            # Running sums are rounded, so that the total is kept.
            steps = np.floor(np.cumsum(self._pooled(given, counts)) + 0.5).astype(np.int64)
            return consistent(cells.reduction, np.diff(steps, prepend=0))

        def plain(given: npt.NDArray[Any]) -> Ints:
            return consistent(cells.reduction, given)

        times = min(max(1, -(-REPLAYED // noisy.size)), MOST_REPLAYS)
        draws = Replay(noisy, "consistent cells").draws(self.noise, (times, cells.width))
        return least_risk([bucketed, plain], noisy, cells.spread(draws))

    def _pooled(self, noisy: npt.NDArray[Any], counts: npt.NDArray[Any] | None) -> Floats:
        given = np.asarray(noisy, dtype=np.float64)
        aside = outlying(given, self.partition.labels, self._draws, float(self.noise.parameter))
        levels = [apart(labels, aside) for labels in nested(self.history, self.order)]
        target = None if counts is None else _without(self.partition, counts, given, aside)
        found = pooled(given, levels, self._variances, spread=self._spread, target=target)
        return self._with_totals(found, given)

    @cached_property
    def _draws(self) -> Floats:
        """Number of independent draws in the noise of each cell."""
        if isinstance(self.cells, EdgeNoise):
            return np.asarray(self.cells.squares, dtype=np.float64)
        return np.ones(self.partition.size)

    @property
    def _spread(self) -> float:
        """Var(n^2) / Var(n)^2 of one draw, and one more for pairs of draws that share a cell."""
        q = max(float(np.exp(-1 / float(self.noise.parameter))), 1e-9)
        return (q * q + 10 * q + 1) / (2 * q)

    def _variances(self, labels: Ints) -> Floats:
        """Variance of the noise in the sum of the noisy cells of each bucket."""
        if not isinstance(self.cells, EdgeNoise):
            return np.asarray(np.bincount(labels) * self.noise.variance, dtype=np.float64)
        from scipy import sparse

        cells = np.arange(labels.size, dtype=np.int64)
        sums = sparse.csr_array((np.ones(labels.size), (labels, cells))) @ self._matrix
        return np.asarray(sums.power(2).sum(axis=1), dtype=np.float64).ravel() * self.noise.variance

    @cached_property
    def _matrix(self) -> Any:
        """How the draws enter the cells, totals without noise left out."""
        from scipy import sparse

        reduction = self.cells.reduction  # type: ignore[attr-defined]
        keep = np.ones(reduction.width)
        keep[reduction.fixed] = 0
        made = sparse.csr_array(reduction.matrix() @ sparse.diags_array(keep))
        made.eliminate_zeros()
        return made

    def _with_totals(self, found: Floats, noisy: Floats) -> Floats:
        """Keep totals that were released exactly: those of the components of the policy graph."""
        if not isinstance(self.cells, EdgeNoise) or not len(self.cells.reduction.fixed):
            return found
        pieces = graph_of(self.policy).components()
        missing = np.bincount(pieces, noisy - found) / np.bincount(pieces)
        return found + missing[pieces]

    @cached_property
    def errors(self) -> tuple[Floats, Floats]:
        """Standard deviation and 95 % range of the answers from the noisy cells alone."""
        return noise_of_answers(self.query, Partition.singletons(self.partition.size), self.cells)

    @property
    def rests_on(self) -> Basis:
        """The errors of the noisy cells, which those of the estimate stay below over all cells."""
        return "bound"

    def deviation(self, part: int) -> float | Floats:
        return self._of_part(self.errors[0], part)

    def within_95(self, part: int) -> float | Floats:
        return self._of_part(self.errors[1], part)

    def stages(self) -> Sequence[str]:
        said = [
            *self.first,
            f"The {self.partition.size:,} cells form {self.partition.n_buckets:,} buckets.",
            f"Counts of the cells, at {self.cells.loss}:",
            *self.cells.stages(),
        ]
        if self.buckets is not None:
            said += [
                f"Counts of the buckets under the merged policy graph, at {self.buckets.loss}:",
                *self.buckets.inner.stages(),
            ]
        said.append(
            "The cells of a bucket were given equal shares of its count as far as their noisy counts do not speak against it: differences between the cells of buckets of "
            "similar size were shrunk by the part of them that is expected of the noise, and cells that stand out of their bucket were taken as they are. "
            "The noisy cells stand beside them, unbiased. Stated ranges are proved from these, and wider than they need to be."
        )
        if self.consistent:
            said.append(
                "The noisy cells and this estimate were both replaced by the nearest whole non-negative cells, and the one was released whose error seems to be "
                "smaller, judged by the noisy cells and by noise drawn again in public."
            )
        return said

    def record(self, randomness: Randomness, parts: list[dict[str, Any]]) -> dict[str, Any]:
        made = super().record(randomness, parts)
        made["partition"] = _recorded(self.partition)
        return made


def _without(partition: Partition, counts: npt.NDArray[Any], noisy: Floats, aside: Bools) -> Floats:
    """Shares of the counts of buckets, after cells that are taken as they are were subtracted."""
    labels, height = partition.labels, partition.n_buckets
    gone = np.bincount(labels[aside], noisy[aside], minlength=height)
    left = partition.sizes - np.bincount(labels[aside], minlength=height)
    shares = (np.asarray(counts, dtype=np.float64) - gone) / np.maximum(left, 1)
    return np.where(aside, noisy, shares[labels])


def _recorded(partition: Partition) -> dict[str, Any]:
    """What the record of a release says of the buckets."""
    labels = {"labels": partition.labels.tolist()} if partition.size <= SHOWN else {}
    return {"buckets": partition.n_buckets, **labels}


@dataclass(frozen=True)
class PartitionedNoise(Calibrated):
    """All three steps, calibrated; the partition is not chosen yet."""

    mechanism: str
    query: Query
    policy: Policy
    loss: Epsilon
    sensitivity: Sensitivity
    """Certificate of how many records a neighbour step changes."""
    chooser: Chooser | Partition
    then: Mechanism | None
    bucket_loss: Epsilon | None
    """For the counts of the buckets; None where those of the cells give them as well."""
    cell_loss: Epsilon | None
    """For the counts of the cells, at least: what the choice leaves comes on top. None for given buckets, which are counted alone."""
    totals: Totals = "auto"
    """Whether step 2 may release totals of components exactly, which the merged graph alone does not tell."""
    about: str = ""
    """What else the partitioner was told, for :attr:`settings`."""
    runner = "partitioned"

    _ready: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def on(self, partition: Partition) -> BucketNoise:
        """Counts of the buckets of a partition, calibrated without data."""
        if self.bucket_loss is None:
            raise InputError(
                f"{self.mechanism} counts cells only: expected no counts of buckets.",
                code="partition.partitioner",
            )
        given = isinstance(self.chooser, Partition)
        merged = merge_policy(self.policy, partition)
        then = self.then if given else unbiased(self.then)
        second = second_step(merged, self.bucket_loss, then, self.totals, strict=given)
        known = ("The buckets were given beforehand and do not depend on the data.",)
        return BucketNoise(
            self.mechanism,
            self.query,
            self.policy,
            self.loss if given else self.bucket_loss,
            self.sensitivity,
            partition,
            second,
            known if given else (),
        )

    def given(self) -> BucketNoise:
        """Steps 2 and 3 for given buckets."""
        partition = cast(Partition, self.chooser)
        made: BucketNoise = self._keep(partition, lambda: self.on(partition))
        return made

    def after(self, history: tuple[Partition, ...]) -> GuardedNoise:
        """Steps 2 and 3 for buckets that were chosen, calibrated without data."""
        chooser = cast(Chooser, self.chooser)

        def made() -> GuardedNoise:
            return GuardedNoise(
                self.mechanism,
                self.query,
                self.policy,
                self.loss,
                self.sensitivity,
                history,
                chooser.order,
                self.counts(chooser.spent(history)),
                None if self.bucket_loss is None else self.on(history[-1]),
                isinstance(self.then, TransformedConsistent),
                tuple(chooser.stages()),
            )

        found: GuardedNoise = self._keep(history, made)
        return found

    def counts(self, spent: Fraction) -> Calibrated:
        """The mechanism for the counts of the cells after so much was spent on the choice."""
        chooser, least = cast(Chooser, self.chooser), cast(Epsilon, self.cell_loss)
        loss = Epsilon(least.value + chooser.loss.value - min(spent, chooser.loss.value))
        plain = _moves_are_edges(self.policy)
        found: Calibrated = self._keep(
            spent, lambda: second_step(plain, loss, plain_noise(self.then), self.totals)
        )
        return found

    def _keep(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._ready:
            if len(self._ready) >= KEPT:
                self._ready.clear()
            self._ready[key] = make()
        return self._ready[key]

    @property
    def centre(self) -> None:
        """An output starts with the buckets."""

    @cached_property
    def _expected(self) -> BucketNoise | GuardedNoise:
        """Given buckets, or every cell a bucket of its own."""
        if isinstance(self.chooser, Partition):
            return self.given()
        return self.after((Partition.singletons(self.policy.domain.size),) * self.chooser.rounds)

    @property
    def noise(self) -> Noise:
        return self._expected.noise

    def deviation(self, part: int) -> float | Floats:
        """Noise of given buckets, or of the noisy cells, which the estimate is not expected to exceed."""
        return self._expected.deviation(part)

    def within_95(self, part: int) -> float | Floats:
        """See :meth:`deviation`."""
        return self._expected.within_95(part)

    def outputs(self, runs: Sequence[CountedBuckets]) -> npt.NDArray[Any]:
        """One row for each run: for each round the bucket of each cell, then noisy counts of the cells, then for each cell that of its bucket."""
        rows = []
        for run in runs:
            row = [partition.labels for partition in run.history]
            row += [] if run.cells is None else [run.cells]
            row += [] if run.counts is None else [run.counts[run.history[-1].labels]]
            rows.append(np.concatenate(row))
        return np.stack(rows)

    def drawn(self, points: npt.NDArray[Any]) -> CountedBuckets:
        """What an output was made of."""
        size = self.policy.domain.size
        pieces = list(points.reshape(-1, size))
        rounds = 1 if isinstance(self.chooser, Partition) else self.chooser.rounds
        history = tuple(Partition(labels.astype(np.int64)) for labels in pieces[:rounds])
        cells = None if self.cell_loss is None else pieces[rounds]
        counts = None
        if self.bucket_loss is not None:
            counts = pieces[-1][np.unique(history[-1].labels, return_index=True)[1]]
        return CountedBuckets(history, cells, counts)

    def to_answers(self, points: Any) -> npt.NDArray[Any]:
        run = self.drawn(points)
        if run.cells is None:
            return self.given().answers(cast(Ints, run.counts))
        return answer_parts(self.query, self.after(run.history).estimate(run.cells, run.counts))

    def publish(self, points: Any, randomness: Randomness) -> Release:
        run = self.drawn(points)
        if run.cells is None:
            ready = self.given()
            counts = cast(Ints, run.counts)
            return ready.released(ready.answers(counts), randomness, ready.errors_of(counts))
        guarded = self.after(run.history)
        answers = answer_parts(self.query, guarded.estimate(run.cells, run.counts))
        beside = answer_parts(self.query, run.cells)
        seen = Seen.of(answers, beside, *guarded.errors, nonnegative=counts_only(self.query))
        return guarded.released(answers, randomness, guarded._by_part(bounded(seen)), beside)

    def reach(self, records: int) -> int:
        ready = self._expected
        inner = ready.inner if isinstance(ready, BucketNoise) else ready.cells
        return max(super().reach(records), inner.reach(records))

    def stages(self) -> Sequence[str]:
        return self._expected.stages()


@dataclass(frozen=True)
class CountedBuckets:
    """What one run of a partitioned mechanism released."""

    history: tuple[Partition, ...]
    cells: npt.NDArray[Any] | None
    """Noisy counts of the cells; None for given buckets."""
    counts: npt.NDArray[Any] | None
    """Noisy counts of the buckets; None where only cells were counted."""


@dataclass(frozen=True)
class Partitioned(Mechanism):
    """Choose buckets privately, count cells and buckets, and give the cells of a bucket equal shares as far as the noisy counts allow.

    Parameters
    ----------
    partitioner
        How buckets are chosen, :class:`~policygraph.mechanisms.partitioned.partitioners.Intervals` by default; or a
        :class:`~policygraph.mechanisms.partitioned.Partition`, which must not depend on the data and costs nothing.
    share
        Part of epsilon that does not go into the counts of the cells: a number between 0 and 1. ``"auto"``, the default, is 1/8 for the choice and,
        where the noisy cells do not give the counts of the buckets as well as the merged policy graph would, 1/8 for these counts. A given number is
        divided in the same way.
    then
        The mechanism for the counts of the buckets. None: Laplace noise on the buckets or on the edges of the merged
        graph, whichever is expected to be smaller. With :class:`~policygraph.mechanisms.TransformedConsistent` the estimate of the cells is made consistent.

    Notes
    -----
    Losses of the steps add up, since the later ones are private for every partition that the first may release. Valid for
    every policy graph: the partition comes before the transform.

    Whatever the data, the error is not expected to exceed that of plain noise at the part 1 - share of epsilon, but for the error of estimating a few factors from
    thousands of noisy counts (``docs/explanation/proofs/supervertices.md``). So a share costs at most 1 / (1 - share)^2: 1.31 at 1/8, 1.78 at 1/4.
    For given buckets there is no such guard: they are counted, and their counts are spread.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 8})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    >>> ready = Partitioned().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(40))
    >>> release = ready.run([5, 5, 5, 5, 0, 0, 0, 0], pg.SeededRng(1))
    >>> release.values().tolist()
    [5.0, 5.0, 5.0, 5.0, 0.0, 0.0, 0.0, 0.0]
    >>> release.record["partition"]["labels"]
    [0, 0, 0, 0, 1, 1, 2, 2]
    """

    partitioner: Partitioner | Partition = field(default_factory=Intervals)
    share: Exact | Literal["auto"] = "auto"
    then: Mechanism | None = None
    name: str = "Partitioned"

    def __post_init__(self) -> None:
        if not isinstance(self.partitioner, (Partitioner, Partition)):
            raise InputError(
                f"partitioner={self.partitioner!r}: expected a partitioner such as pg.Intervals() or pg.Matchings(), or given "
                "buckets as pg.Partition.of(domain, buckets).",
                code="partition.partitioner",
                value=self.partitioner,
            )
        if self.then is not None and not isinstance(self.then, Mechanism):
            raise InputError(
                f"then={self.then!r}: expected a mechanism such as pg.TransformedConsistent(), or None.",
                code="release.mechanism",
                value=self.then,
            )
        if self.share != "auto" and not 0 < as_fraction(self.share, "share") < 1:
            raise InputError(
                f"share={self.share!r}: expected a number between 0 and 1, both excluded, or 'auto'.",
                code="partition.share",
                value=self.share,
            )

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> PartitionedNoise:
        query.check_domain(policy.domain)
        if not isinstance(loss, Epsilon):
            raise InputError(
                f"a partition spends epsilon, not {loss}: expected Epsilon.", code="mechanism.loss"
            )
        size = policy.domain.size
        check_cells(size)
        if not query.is_identity and query.height * size > MOST_ENTRIES:
            raise InputError(
                f"a query of {query.height:,} answers over {size:,} cells: expected at most {MOST_ENTRIES:,} entries. "
                "Release all cells, and answer the query from them.",
                code="partition.query",
            )
        plain = _moves_are_edges(policy)
        graph = graph_of(policy)
        # A graph without edges hides nothing at all; one with edges does not say that totals may be known.
        exact = graph.n_edges == 0 or totals_are_exact(policy, graph, "auto")
        totals: Totals = "exact" if exact else "noisy"
        proof = certified(identity(policy.domain), plain, loss, sensitivity)
        if isinstance(self.partitioner, Partition):
            if self.partitioner.size != size:
                raise InputError(
                    f"a partition of {self.partitioner.size} cells: expected {size}.", code="partition.graph"
                )
            made = f"{self.name}(given buckets)"
            about = sha256(self.partitioner.labels.tobytes()).hexdigest()
            ready = PartitionedNoise(
                made, query, policy, loss, proof, self.partitioner, self.then, loss, None, totals, about
            )
            ready.given()  # what cannot be released is refused now, not after data were read
            return ready
        check_then(self.then, self.partitioner, graph)
        changes = proof.power
        if changes:
            check_scale(changes / loss.value)  # a larger one would be infinite as a float below
        # The noise of a bucket is inversely proportional to epsilon, but for the rounding of discrete distributions.
        counted = second_step(plain, loss, plain_noise(self.then), totals)
        second_step(
            plain, loss, unbiased(self.then), totals
        )  # a mechanism that does not apply is refused now
        whole = MEAN * float(np.sqrt(total_of(counted) / size))
        through = counts_buckets(counted, self.partitioner, self.then)
        share = PARTS[through] if self.share == "auto" else as_fraction(self.share, "share")
        parts = [share, 1 - share] if through else [share / 2, 1 - share, share / 2]
        first, cells, *buckets = loss.split(parts)
        chooser = self.partitioner.calibrate(size, changes, first, whole / float(1 - share))
        if chooser.size != size or chooser.changes < changes or chooser.loss.value > first.value:
            raise InputError(
                f"{self.partitioner.name} was calibrated for other cells, fewer changes or a larger loss than asked.",
                code="partition.partitioner",
                value=self.partitioner,
            )
        made = f"{self.name}({self.partitioner.name}, share {show(share)})"
        ready = PartitionedNoise(
            made,
            query,
            policy,
            loss,
            proof,
            chooser,
            self.then,
            buckets[0] if buckets else None,
            cells,
            totals,
            self.partitioner.settings,
        )
        ready.stages()  # what cannot be released is refused now, not after data were read
        return ready


def _moves_are_edges(policy: Policy) -> Policy:
    """The policy without facts that every edge keeps; refused when other facts are public."""
    graph = graph_of(policy)
    return Policy(policy.domain, graph) if policy.constraints else policy
