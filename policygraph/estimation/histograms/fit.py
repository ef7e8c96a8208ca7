"""The nearest histogram to noisy cells, for every transform. Owns :func:`consistent`.

Sees noisy cells only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.estimation.histograms.line import isotonic_lines
from policygraph.estimation.histograms.obstacle import nearest_forest, nearest_graph
from policygraph.estimation.histograms.rounding import round_in_order
from policygraph.transforms.incidence import (
    EdgeTransform,
    ForestTransform,
    GridTransform,
    LineTransform,
    Reduction,
)
from policygraph.transforms.incidence.base import graph_of

__all__ = ["consistent"]

Ints = npt.NDArray[np.int64]


def consistent(reduction: Reduction, noisy: Any) -> Ints:
    """Find whole non-negative cells near noisy ones, measured by the least change of the noisy coordinates.

    Parameters
    ----------
    reduction
        The transform whose coordinates got the noise.
    noisy
        Noisy cells; where totals are fixed they sum to them.

    Returns
    -------
    numpy.ndarray
        Cells >= 0 with the same fixed totals.

    Notes
    -----
    With independent noise z of equal variance on the coordinates, the noisy cells are x + M z. Returned is the rounding
    of the projection: the cells x + M (z + w) >= 0 with the least sum of squares of w over the coordinates that got noise.
    On a line that is isotonic regression of the prefix sums, clipped to 0 and the known total.

    Examples
    --------
    >>> import policygraph as pg
    >>> from policygraph.transforms.incidence import transform
    >>> domain = pg.Domain({"age": 5})
    >>> line = transform(pg.Policy(domain, pg.PolicyGraph.line(domain)))
    >>> consistent(line, [3, -2, 4, -1, 2]).tolist()
    [2, 0, 3, 0, 1]
    """
    cells = np.asarray(noisy, dtype=np.int64).reshape(-1)
    if isinstance(reduction, LineTransform):
        return isotonic_lines(cells, reduction.shape, exact_total=reduction.exact_totals)
    if isinstance(reduction, ForestTransform):
        found = nearest_forest(cells, reduction.order, reduction.above, reduction.fixed)
        order = reduction.post_order
        ends = reduction.parent[order] < 0
        pieces = np.concatenate([[0], np.cumsum(ends)[:-1]])
        kept = np.isin(order[ends], reduction.fixed)
        return round_in_order(found, order, pieces, _totals(cells[order], pieces, kept))
    if isinstance(reduction, (EdgeTransform, GridTransform)):
        u, v = (reduction.u, reduction.v) if isinstance(reduction, EdgeTransform) else reduction.edges()
        lone = reduction.lone if isinstance(reduction, EdgeTransform) else reduction.roots[:0]
        loose = reduction.roots[:0] if reduction.exact_totals else reduction.roots
        planar = isinstance(reduction, GridTransform) and len(reduction.axes) == 2
        found = nearest_graph(cells, u, v, np.concatenate([lone, loose]), planar=planar)
        labels = graph_of(reduction.policy).components()
        order = np.argsort(labels, kind="stable")
        kept = np.isin(np.arange(labels.max() + 1), labels[reduction.roots]) & reduction.exact_totals
        return round_in_order(found, order, labels[order], _totals(cells[order], labels[order], kept))
    raise InputError(
        f"{type(reduction).__name__}: expected a transform of a policy graph.", code="consistency.reduction"
    )


def _totals(laid: Ints, pieces: Ints, kept: npt.NDArray[np.bool_]) -> Ints:
    """Exact totals of the pieces that have one, -1 for the others."""
    sums = np.add.reduceat(laid, np.flatnonzero(np.diff(pieces, prepend=-1)))
    return np.where(kept, np.maximum(sums, 0), -1)
