"""Triangles and clustering of a synthetic graph brought near to given numbers. Owns :func:`close_triangles`.

Post-processing: sees a graph that was made of released numbers, and more released numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.estimation.networks.synthetic import Approached, SyntheticGraph
from policygraph.model.queries.network_statistics import Clustering, triangles_at
from policygraph.model.queries.networks import MixingQuery

Ints = npt.NDArray[np.int64]
PROPOSALS = 300
"""Most proposed switches for each edge."""
MOST_PROPOSALS = 60_000_000
"""Most in all: some minutes for a million edges."""
ENOUGH = 1e-3
"""Switching ends when triangles and clustering are off by less than this share of their targets: the root of the sum of squares."""


def close_triangles(
    made: SyntheticGraph,
    query: MixingQuery,
    *,
    triangles: float | None,
    clustering: Clustering | None = None,
    sums: Any = (),
    seed: int | None = None,
    proposals: int = PROPOSALS,
) -> SyntheticGraph:
    """Switch edges until a graph has so many triangles and so much clustering; its degrees and group counts stay.

    Parameters
    ----------
    made
        A simple undirected graph.
    query
        The groups between which the numbers of edges are kept.
    triangles
        How many triangles it should have; None if only its clustering is known.
    clustering, sums
        A query, and the sums of local clustering that the graph should have, in its units: noisy ones will do.
    seed
        Seed of the switches; None takes a fresh one. Privacy does not depend on it.
    proposals
        Most proposed switches for each edge.

    Returns
    -------
    SyntheticGraph
        With what was wanted and reached in ``approached``.

    Examples
    --------
    >>> from policygraph.estimation.networks import PublicDegrees, synthetic_graph
    >>> from policygraph.model.domain import Network
    >>> network = Network(12)
    >>> query = MixingQuery(network, ["all"] * 12)
    >>> start = synthetic_graph([12], query, PublicDegrees.of(network, [2] * 12), seed=1)
    >>> close_triangles(start, query, triangles=4, seed=1).approached
    (Approached(name='triangles', wanted=4.0, reached=4.0),)

    Notes
    -----
    A switch u x, w y to u w, x y where u and w have a common neighbour closes a triangle. It is made if it brings the numbers nearer to the targets: the
    sum of the squares of the shares by which they are off never rises. Whether a graph with these numbers exists is not known, so that the targets are approached and not promised.
    """
    from policygraph.estimation.networks._compiled_triangles import close_wedges

    network = made.network
    if network.directed or network.loops or network.multiple:
        raise InputError(
            f"{network!r}: expected an undirected network without loops and multiple edges; triangles are not approached in others.",
            code="networks.kind",
            value=network,
        )
    n = network.order
    degree = made.degrees()[0]
    tail, head = np.concatenate([made.tail, made.head]), np.concatenate([made.head, made.tail])
    near = np.ascontiguousarray(head[np.lexsort((head, tail))])
    start = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    if clustering is None:
        weight, kind = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        wanted = np.zeros(0)
    else:
        weight, kind = clustering.weight(degree), clustering.class_of(degree)
        wanted = np.asarray(sums, dtype=np.float64) / float(clustering.unit)
        if wanted.shape != (clustering.height,) or not np.all(np.isfinite(wanted)):
            raise InputError(
                f"sums of shape {wanted.shape}: expected {clustering.height} numbers, one for each class of degrees.",
                code="networks.counts",
            )
    here = triangles_at(made.tail, made.head, n)
    classes = max(len(wanted), 1)
    found = np.zeros(1 + classes, dtype=np.int64)
    found[0] = int(here.sum()) // 3
    np.add.at(found, 1 + kind, here * weight)
    # No graph with these degrees has more, nor fewer than none.
    pairs = degree * (degree - 1) // 2
    most = np.zeros(1 + classes)
    most[0] = float(pairs.sum()) / 3
    np.add.at(most, 1 + kind, (pairs * weight).astype(np.float64))
    aim = most[0] if triangles is None else float(triangles)
    target = np.clip(np.concatenate([[aim], wanted if len(wanted) else [0.0]]), 0, most)
    scale = np.zeros(1 + classes)
    if triangles is not None:
        scale[0] = 1 / max(target[0], 1.0)
    if len(wanted):
        scale[1:] = 1 / max(float(target[1:].sum()), 1.0)
    size = 1 << max(10, int(np.ceil(np.log2(max(8 * len(made.tail), 1)))))
    state = np.random.default_rng(seed).integers(1, 1 << 63, 1, dtype=np.uint64)
    tried, switched = close_wedges(
        start,
        near,
        weight,
        kind,
        query.codes,
        found,
        target,
        scale,
        ENOUGH * ENOUGH,
        min(proposals * len(made.tail), MOST_PROPOSALS),
        state,
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.int32),
    )
    owner = np.repeat(np.arange(n, dtype=np.int64), degree)
    kept = owner < near
    tail, head = owner[kept], near[kept]
    order = np.lexsort((head, tail))
    tail, head = tail[order], head[order]
    counts = np.bincount(query.row_of(tail, head), minlength=query.height)
    report = [] if triangles is None else [Approached("triangles", float(triangles), float(found[0]))]
    if clustering is not None:
        unit = float(clustering.unit)
        for label, aim, got in zip(clustering.part_labels(0)[0].tolist(), wanted, found[1:], strict=True):
            name = "sum of local clustering" + (
                f", degrees from {label} on" if len(clustering.classes) else ""
            )
            report.append(Approached(name, float(aim) * unit, float(got) * unit))
    note = f"{switched:,} of {tried:,} proposed switches brought it to the released triangles and clustering; degrees and counts stayed."
    return replace(
        made, tail=tail, head=head, counts=counts, notes=(*made.notes, note), approached=tuple(report)
    )
