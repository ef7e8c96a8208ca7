"""How large the noise of spread bucket counts is. Owns :func:`noise_of_answers`; for reports only."""

from __future__ import annotations

import numpy as np

from policygraph.mechanisms.additive import Additive
from policygraph.mechanisms.base import Calibrated, Floats
from policygraph.mechanisms.partitioned import Partition
from policygraph.mechanisms.transformed.mechanism import EdgeNoise
from policygraph.model.queries.base import Query

__all__ = ["MOST_ENTRIES", "noise_of_answers"]

MOST_ENTRIES = 200_000_000
"""Answers times cells up to which the entries of a query are listed."""
BEYOND = 0.05


def noise_of_answers(query: Query, partition: Partition, second: Calibrated) -> tuple[Floats, Floats]:
    """Standard deviation and 95 % range of the noise in answers from spread bucket counts, in lattice units.

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
