"""The contract of private partitioners. Owns :func:`check_partitioner`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from policygraph.audit import audit, neighbour_pairs
from policygraph.conformance.report import Conformance, Trial, tried
from policygraph.curator.histogram import Histogram, Ints
from policygraph.curator.noise import Rng, SeededRng
from policygraph.curator.runners.partitioned import choose
from policygraph.mechanisms.partitioned import Partition
from policygraph.mechanisms.partitioned.partitioners.base import Partitioner
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon
from policygraph.model.policy import Policy

__all__ = ["check_partitioner"]


def check_partitioner(
    partitioner: Partitioner, *, size: int = 6, loss: Epsilon | None = None, samples: int = 2_000
) -> Conformance:
    """Try whether a private partitioner keeps its contract: every cell in one bucket, drawn from its rng, within its loss.

    Parameters
    ----------
    partitioner
        The plug-in.
    size
        Number of cells of the tables that are tried.
    loss
        What the choice of the partition claims to spend; epsilon 1 by default.
    samples
        Runs of the audit on each table; 0 leaves the audit out.

    Examples
    --------
    >>> import policygraph as pg
    >>> check_partitioner(pg.Intervals(), samples=0).passed
    True
    """
    spent = loss or Epsilon(1)
    domain = Domain({"value": size})
    policy = Policy(domain)
    ready = partitioner.calibrate(size, Fraction(1), spent, 1.0)
    pairs = neighbour_pairs(policy, most=4)

    def chosen(table: Ints, rng: Rng) -> Partition:
        return choose(ready, Histogram.of(domain, table), rng)[0]

    def labels(table: Ints, rng: Rng) -> tuple[int, ...]:
        return tuple(chosen(table, rng).labels.tolist())

    def covers() -> str | None:
        for at, pair in enumerate(pairs):
            made = chosen(pair.before.copy(), SeededRng(at))
            if not isinstance(made, Partition) or made.labels.size != size:
                return "the choice is no partition of all cells"
        return None

    def seeded() -> str | None:
        table = pairs[-1].before
        kept = table.copy()
        runs = [labels(table, SeededRng(seed)) for seed in (1, 1)]
        if not np.array_equal(kept, table):
            return "the choice changed the table that it was given"
        return None if runs[0] == runs[1] else "the same seed gave two partitions"

    def private() -> str | None:
        report = audit(labels, policy, loss=spent, pairs=pairs, samples=samples, rng=SeededRng("partition"))
        return None if report.passed else str(report)

    def trials() -> Iterator[tuple[str, Trial]]:
        yield (
            "spends what it was given",
            lambda: None if ready.loss == spent else f"{ready.loss} instead of {spent}",
        )
        yield "puts every cell into one bucket", covers
        yield "draws from its rng alone", seeded
        yield "says what it did", lambda: None if list(ready.stages()) else "no stages"
        if samples:
            yield "passes the audit", private

    return tried(type(partitioner).__name__, trials())
