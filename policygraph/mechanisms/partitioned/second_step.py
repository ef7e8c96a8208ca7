"""How the counts of buckets are released, and how large their noise is. Owns :func:`second_step`, :func:`check_then` and :func:`noise_of_answers`.

Data-free: the noise is fixed for a merged policy.
"""

from __future__ import annotations

from dataclasses import replace
from types import NoneType

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.additive import Additive, Laplace
from policygraph.mechanisms.base import Calibrated, Floats, Mechanism, check_answers
from policygraph.mechanisms.partitioned import Partition
from policygraph.mechanisms.partitioned.partitioners import Intervals, Partitioner
from policygraph.mechanisms.transformed.mechanism import (
    EdgeNoise,
    Transformed,
    TransformedConsistent,
    TransformedLaplace,
)
from policygraph.model.graphs import Path, PolicyGraph
from policygraph.model.loss import Epsilon
from policygraph.model.policy import Policy
from policygraph.model.queries import identity
from policygraph.model.queries.base import Query
from policygraph.transforms.incidence import LineTransform
from policygraph.transforms.incidence.base import Totals, graph_of
from policygraph.transforms.incidence.tree import is_forest


def second_step(
    policy: Policy, loss: Epsilon, then: Mechanism | None, totals: Totals, *, strict: bool = True
) -> Calibrated:
    """Fix the noise on the cells of a (merged) policy: by a given mechanism, or the better of two without data.

    Parameters
    ----------
    policy
        Over the buckets.
    loss
        Of this step.
    then
        The mechanism, or None.
    totals
        ``"noisy"`` where the graph before merging has components whose totals are not public: the merged graph may join them,
        or have no edge left, and would then seem to allow exact counts.
    strict
        Whether a mechanism that does not apply is refused; otherwise the better of the two takes its place, for merged policies that
        are known only after step 1 is spent.

    Notes
    -----
    On the edges a cell gets the noise of as many edges as it has, of variance 2 / epsilon^2 each; by itself it gets at most
    8 / epsilon^2. So edges are tried where a cell has fewer than four on average.
    """
    query = identity(policy.domain)
    edges = TransformedLaplace(totals, "edges")
    if then is not None:
        if (
            isinstance(then, (TransformedLaplace, TransformedConsistent, Transformed))
            and then.totals == "auto"
        ):
            then = replace(then, totals=totals)
        try:
            given = check_answers(then.calibrate(query, policy, loss), query, policy, loss)
            return edges.calibrate(query, policy, loss) if totals == "noisy" and _silent(given) else given
        except (InputError, RefusedError):
            if strict:
                raise
    plain = Laplace().calibrate(query, policy, loss)
    graph = graph_of(policy)
    if not is_forest(graph) and graph.n_edges >= 2 * graph.size:
        return plain
    rival = edges.calibrate(query, policy, loss)
    return rival if totals == "noisy" and _silent(plain) else min((rival, plain), key=total_of)


def unbiased(then: Mechanism | None) -> Mechanism | None:
    """The mechanism for counts from which cells are estimated: without consistency, which comes after the estimate."""
    return TransformedLaplace(then.totals, then.route) if isinstance(then, TransformedConsistent) else then


def plain_noise(then: Mechanism | None) -> Mechanism | None:
    """The mechanism for the counts of the cells: the given one if it adds independent noise to cells or edges, and the better of the two otherwise."""
    found = unbiased(then)
    return found if isinstance(found, (Laplace, TransformedLaplace)) else None


def counts_buckets(cells: Calibrated, partitioner: Partitioner, then: Mechanism | None) -> bool:
    """Whether noisy cells count every bucket that may be chosen as well as the merged policy graph would at the same loss.

    Notes
    -----
    On a line the noisy cells are differences of noisy prefix sums, and the count of a run is the difference of two of them: the edges of the merged line are
    edges of the line. So noise on all edges gives the counts of the buckets the very distribution that noise on the merged graph would give them.
    """
    return (
        isinstance(then, (TransformedLaplace, TransformedConsistent, NoneType))
        and isinstance(cells, EdgeNoise)
        and isinstance(cells.reduction, LineTransform)
        and cells.reduction.shape[0] == cells.reduction.shape[2] == 1
        and isinstance(partitioner, Intervals)
        and partitioner.order is None
    )


def _silent(ready: Calibrated) -> bool:
    return ready.noise.distribution == "none"


def total_of(ready: Calibrated) -> float:
    """Sum of the variances of the noise of all answers."""
    squares = np.square(ready.deviation(0))
    return float(np.sum(np.broadcast_to(squares, (ready.query.height,))))


def check_then(then: Mechanism | None, partitioner: Partitioner, graph: PolicyGraph) -> None:
    """Refuse a data-dependent second step on whose merged graph a partition might close a cycle.

    Raises
    ------
    RefusedError
        Before data are read, whichever partition would come out. Runs of a line form a line, and buckets of cells that are joined
        to bottom only form a star; other merged graphs may have cycles.
    """
    if not isinstance(then, Transformed) or then.spanning or graph.rule.n_edges == 0:
        return
    line = isinstance(graph.rule, Path) and graph.rule.theta == 1
    if not (line and isinstance(partitioner, Intervals) and partitioner.order is None):
        raise RefusedError(
            "a merged policy graph may have a cycle, and the coordinates of a mechanism that depends on the data would not be "
            "unique. Expected Transformed(..., spanning=True), which runs on a spanning forest and pays its stretch where there is one.",
            code="partition.cycle",
        )


MOST_ENTRIES = 200_000_000
"""Answers times cells up to which the entries of a query are listed."""
BEYOND = 0.05


def noise_of_answers(query: Query, partition: Partition, second: Calibrated) -> tuple[Floats, Floats]:
    """Standard deviation and 95 % range of the noise in answers from spread bucket counts, in units of the query.

    Parameters
    ----------
    query
        Over the cells.
    partition
        The buckets.
    second
        The mechanism for the counts of the buckets.

    Returns
    -------
    deviation, within
        One number for each answer. Exact deviations for independent noise on buckets or on edges; for other mechanisms
        the triangle inequality. Ranges of single cells are those of the mechanism, others follow from the deviations
        (Chebyshev).
    """
    height = partition.n_buckets
    apart = np.broadcast_to(np.asarray(second.deviation(0), dtype=np.float64), (height,))
    if query.is_identity:
        ranges = np.broadcast_to(np.asarray(second.within_95(0), dtype=np.float64), (height,))
        return (apart / partition.sizes)[partition.labels], (ranges / partition.sizes)[partition.labels]
    from scipy import sparse

    cells = np.arange(partition.size, dtype=np.int64)
    shares = sparse.csr_array(
        (1.0 / partition.sizes[partition.labels], (cells, partition.labels)), shape=(partition.size, height)
    )
    rows = sparse.csr_array(query.columns(cells)) @ shares
    if isinstance(second, EdgeNoise):
        reduction = second.reduction
        keep = np.ones(reduction.width)
        keep[reduction.fixed] = 0
        felt = rows @ (reduction.matrix() @ sparse.diags_array(keep))
        deviation = np.sqrt(np.asarray(felt.power(2).sum(axis=1)).ravel() * second.noise.variance)
    elif isinstance(second, Additive):
        deviation = np.sqrt(np.asarray(rows.power(2) @ np.square(apart)).ravel())
    else:
        deviation = np.asarray(abs(rows) @ apart).ravel()
    return deviation, deviation / np.sqrt(BEYOND)
