"""Partition privately, count the buckets, spread the counts. Owns :class:`Partitioned`.

Step 1 chooses buckets with a part of epsilon, step 2 releases their counts under the merged policy with the rest, step 3
gives every cell of a bucket the same share. The arguments are ``docs/explanation/proofs/supervertices.md`` and the page of the
partitioner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.exact import Exact, as_fraction, show
from policygraph.mechanisms.base import (
    Calibrated,
    Floats,
    Ints,
    Mechanism,
    Noise,
    answer_parts,
    certified,
)
from policygraph.mechanisms.partitioned import Partition, merge_policy
from policygraph.mechanisms.partitioned.partitioners import Chooser, Intervals, Partitioner
from policygraph.mechanisms.partitioned.second_step import (
    MOST_ENTRIES,
    check_then,
    noise_of_answers,
    second_step,
    total_of,
)
from policygraph.mechanisms.transformed.mechanism import OnTransformed
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries import identity
from policygraph.model.queries.base import Query
from policygraph.release.release import Randomness, Release
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.transforms.incidence.base import Totals, check_cells, graph_of, totals_are_exact

MEAN = 0.75
"""Mean absolute value over standard deviation: 0.71 for a Laplace variable, 0.75 for the difference of two."""
SHOWN = 1_000_000
"""Partitions of at most so many cells are written into the record of a release."""
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

    def stages(self) -> Sequence[str]:
        return [
            *self.first,
            f"The {self.partition.size:,} cells form {self.partition.n_buckets:,} buckets, whose counts were released under the "
            "merged policy graph.",
            *self.inner.stages(),
            "The cells of a bucket were given equal shares of its count. How far they are from equal is not known: stated "
            "deviations are those of the noise only, and the error of spreading comes on top.",
        ]

    def record(self, randomness: Randomness, parts: list[dict[str, Any]]) -> dict[str, Any]:
        for part in parts:
            part["integer"] = False
        made = super().record(randomness, parts)
        made["partition"] = {"buckets": self.partition.n_buckets}
        if self.partition.size <= SHOWN:
            made["partition"]["labels"] = self.partition.labels.tolist()
        return made


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
    second_loss: Epsilon
    totals: Totals = "auto"
    """Whether step 2 may release totals of components exactly, which the merged graph alone does not tell."""
    about: str = ""
    """What else the partitioner was told, for :attr:`settings`."""
    runner = "partitioned"

    _ready: dict[Partition, BucketNoise] = field(default_factory=dict, repr=False, compare=False)

    def on(self, partition: Partition) -> BucketNoise:
        """Steps 2 and 3 for a partition, calibrated without data."""
        if partition not in self._ready:
            if len(self._ready) >= KEPT:
                self._ready.clear()
            merged = merge_policy(self.policy, partition)
            given = isinstance(self.chooser, Partition)
            second = second_step(merged, self.second_loss, self.then, self.totals, strict=given)
            known = ["The buckets were given beforehand and do not depend on the data."]
            said = tuple(known if isinstance(self.chooser, Partition) else self.chooser.stages())
            self._ready[partition] = BucketNoise(
                self.mechanism,
                self.query,
                self.policy,
                self.loss,
                self.sensitivity,
                partition,
                second,
                said,
            )
        return self._ready[partition]

    @property
    def centre(self) -> None:
        """An output starts with the buckets."""

    @cached_property
    def finest(self) -> BucketNoise:
        """What the noise would be if every cell were a bucket of its own."""
        return self.on(Partition.singletons(self.policy.domain.size))

    @property
    def noise(self) -> Noise:
        return self._expected.noise

    def deviation(self, part: int) -> float | Floats:
        """Noise of the finest partition; buckets have less, but an error of spreading that depends on the data."""
        return self._expected.deviation(part)

    def within_95(self, part: int) -> float | Floats:
        """Noise of the finest partition; see :meth:`deviation`."""
        return self._expected.within_95(part)

    @property
    def _expected(self) -> BucketNoise:
        return self.on(self.chooser) if isinstance(self.chooser, Partition) else self.finest

    def outputs(self, chosen: Sequence[Partition], counts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """One row for each run: for each cell the number of its bucket, then for each cell the count of its bucket."""
        kind = np.result_type(np.int64, *(found.dtype for found in counts))
        out = np.empty((len(chosen), 2, self.policy.domain.size), dtype=kind)
        for row, partition, found in zip(out, chosen, counts, strict=True):
            row[0], row[1] = partition.labels, found[partition.labels]
        return out.reshape(len(chosen), -1)

    def _bucketed(self, points: npt.NDArray[Any]) -> tuple[BucketNoise, npt.NDArray[Any]]:
        """Steps 2 and 3 for the partition of an output, and the counts of its buckets."""
        size = self.policy.domain.size
        partition = Partition(points[:size].astype(np.int64))
        return self.on(partition), points[size:][np.unique(partition.labels, return_index=True)[1]]

    def to_answers(self, points: Any) -> Floats:
        ready, counts = self._bucketed(points)
        return ready.answers(counts)

    def publish(self, points: Any, randomness: Randomness) -> Release:
        ready, counts = self._bucketed(points)
        return ready.publish(ready.answers(counts), randomness)

    def reach(self, records: int) -> int:
        return max(super().reach(records), self._expected.inner.reach(records))

    def stages(self) -> Sequence[str]:
        return self._expected.stages()


@dataclass(frozen=True)
class Partitioned(Mechanism):
    """Choose buckets privately, release their counts, and spread these evenly.

    Parameters
    ----------
    partitioner
        How buckets are chosen, :class:`~policygraph.mechanisms.partitioned.partitioners.Intervals` by default; or a
        :class:`~policygraph.mechanisms.partitioned.Partition`, which must not depend on the data and costs nothing.
    share
        Part of epsilon for the choice: a number between 0 and 1, or ``"auto"`` for a formula without data. The default
        of one half was the best or close to it on public benchmark tables and simulated ones.
    then
        The mechanism for the counts of the buckets. None: Laplace noise on the buckets or on the edges of the merged
        graph, whichever is expected to be smaller.

    Notes
    -----
    Losses of the two steps add up, since the second is private for every partition that the first may release. Valid for
    every policy graph: the partition comes before the transform. The formula for the share takes the cost of one more
    bucket to be A / epsilon_2 of noise, and the loss from one bucket too few to be B / epsilon_1, which is what the noise
    on the costs hides; the sum is least at epsilon_1 : epsilon_2 = sqrt(B) : sqrt(A).

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
    [0, 0, 0, 0, 1, 1, 1, 1]
    """

    partitioner: Partitioner | Partition = field(default_factory=Intervals)
    share: Exact | Literal["auto"] = Fraction(1, 2)
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
                made, query, policy, loss, proof, self.partitioner, self.then, loss, totals, about
            )
            ready.on(self.partitioner)  # what cannot be released is refused now, not after data were read
            return ready
        check_then(self.then, self.partitioner, graph)
        changes = proof.power
        # The noise of a bucket is inversely proportional to epsilon, but for the rounding of discrete distributions.
        whole = MEAN * float(np.sqrt(total_of(second_step(plain, loss, self.then, totals)) / size))
        share = self._share(changes, whole * float(loss.value))
        first, rest = loss.split([share, 1 - share])
        chooser = self.partitioner.calibrate(size, changes, first, whole / float(1 - share))
        if chooser.size != size or chooser.changes < changes or chooser.loss.value > first.value:
            raise InputError(
                f"{self.partitioner.name} was calibrated for other cells, fewer changes or a larger loss than asked.",
                code="partition.partitioner",
                value=self.partitioner,
            )
        made = f"{self.name}({self.partitioner.name}, share {show(share)})"
        about = self.partitioner.settings
        return PartitionedNoise(made, query, policy, loss, proof, chooser, self.then, rest, totals, about)

    def _share(self, changes: Fraction, noise: float) -> Fraction:
        if self.share != "auto":
            return as_fraction(self.share, "share")
        missed = (
            self.partitioner.weight * float(changes) if isinstance(self.partitioner, Partitioner) else 0.0
        )
        if not missed or not noise:
            return Fraction(1, 2)
        found = np.sqrt(missed) / (np.sqrt(missed) + np.sqrt(noise))
        return min(max(Fraction(round(64 * float(found)), 64), Fraction(1, 8)), Fraction(7, 8))


def _moves_are_edges(policy: Policy) -> Policy:
    """The policy without facts that every edge keeps; refused when other facts are public."""
    graph = graph_of(policy)
    return Policy(policy.domain, graph) if policy.constraints else policy
