"""Nested buckets from fine to coarse, ending with given ones. Owns :func:`nested` and :func:`apart`.

They depend on released partitions alone. An estimate may stop at any of them (``policygraph.estimation.buckets``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from policygraph.estimation.buckets import stretches
from policygraph.mechanisms.partitioned.partition import Ints, Partition


def nested(history: Sequence[Partition], order: Ints | None) -> Iterator[Ints]:
    """Labels of nested buckets: those of each round or, after one round, stretches of 2, 4, 8, ... cells of each bucket.

    Parameters
    ----------
    history
        Partitions after each round, each a union of buckets of the one before.
    order
        The cells in the order in which buckets are cut into stretches; by index when absent.

    Examples
    --------
    >>> [labels.tolist() for labels in nested([Partition([0, 0, 0, 0, 1, 1])], None)]
    [[0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> [labels.tolist() for labels in nested([Partition([0, 0, 1, 2]), Partition([0, 0, 1, 0])], None)]
    [[0, 0, 1, 2], [0, 0, 1, 0]]
    """
    if len(history) > 1:
        yield from (partition.labels for partition in history)
        return
    [partition] = history
    along = np.arange(partition.size) if order is None else np.argsort(order)
    yield from stretches(partition.labels, np.lexsort((along, partition.labels)))


def apart(labels: Ints, aside: npt.NDArray[np.bool_]) -> Ints:
    """The same buckets without some cells, each of which is one by itself; numbers have no gaps.

    Examples
    --------
    >>> apart(np.array([0, 0, 1, 1]), np.array([False, True, True, True])).tolist()
    [0, 1, 2, 3]
    """
    left = np.bincount(labels[~aside], minlength=int(labels.max()) + 1) > 0
    number = np.cumsum(left) - 1
    out = number[labels]
    out[aside] = int(left.sum()) + np.arange(int(aside.sum()))
    return np.asarray(out, dtype=np.int64)
