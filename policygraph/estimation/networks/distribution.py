"""Noisy counts of nodes by degree made usable. Owns :func:`degree_counts`: whole, falling, and as a histogram.

Post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError

__all__ = ["DegreeCounts", "degree_counts"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DegreeCounts:
    """How many nodes have each degree.

    Attributes
    ----------
    at_least
        Number of nodes with a degree of at least 1, 2, ...
    exactly
        Number of nodes with degree 0, 1, 2, ...; the last stands for it and all larger ones.
    """

    at_least: Ints
    exactly: Ints


def degree_counts(noisy: Any, nodes: int) -> DegreeCounts:
    """The nearest falling sequence to noisy counts of nodes by least degree, in whole numbers from 0 to the number of nodes.

    Parameters
    ----------
    noisy
        Noisy numbers of nodes with degree at least 1, 2, ..., as a release of ``DegreeTail`` has them.
    nodes
        The public number of nodes.

    Examples
    --------
    >>> made = degree_counts([9, 4, 6, -1], 8)
    >>> made.at_least.tolist(), made.exactly.tolist()
    ([8, 5, 5, 0], [0, 3, 0, 5, 0])

    Notes
    -----
    Isotonic regression (least squares among falling sequences) by pooling neighbours, then cut to the limits, which keeps it the
    least-squares solution, and rounded, which keeps it falling.
    """
    values = np.asarray(noisy, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.all(np.isfinite(values)) or nodes < 0:
        raise InputError(
            f"noisy counts of shape {values.shape}: expected a row of numbers, and a number of nodes >= 0.",
            code="networks.counts",
        )
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] < means[-1]:
            total = means[-2] * sizes[-2] + means[-1] * sizes[-1]
            size = sizes[-2] + sizes[-1]
            means[-2:], sizes[-2:] = [total / size], [size]
    falling = np.clip(np.repeat(means, sizes), 0, nodes)
    at_least = np.rint(falling).astype(np.int64)
    exactly = -np.diff(np.concatenate([[nodes], at_least, [0]]))
    return DegreeCounts(at_least, exactly.astype(np.int64))
