"""Cheapest partitions into runs of cells, exactly. Owns :func:`cheapest_trees` and :func:`cheapest_runs`, and the deviations that runs cost.

Costs are whole numbers, and of partitions of equal cost one fixed order decides, which does not depend on the costs: the
privacy of the choice rests on both. The deviation of a run is the least sum of distances of its counts from one number, which the median attains: the sum of
the upper half minus that of the lower half. One record more or less changes it by at most 1, and it is a whole number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_ROOM = 1 << 62


def cheapest_trees(costs: list[Ints], size: int) -> npt.NDArray[np.bool_]:
    """Cheapest partitions into runs of 2**j cells that start at multiples of 2**j, for many rows of costs.

    Parameters
    ----------
    costs
        For each j the costs of the full runs in order, one row for each partition; there is a cost for each single cell.
    size
        Number of cells.

    Returns
    -------
    numpy.ndarray
        Of each partition, whether a run starts at a cell.

    Notes
    -----
    Such a partition is a cut of the binary tree over the cells: a run is taken whole, or the best of its two halves is. Of
    equal costs the whole run is taken. So the order of partitions of equal cost is: at the first run, going down and
    left to right, that one takes and the other splits, the one that takes comes first.

    Examples
    --------
    >>> cheapest_trees([np.array([[1, 1], [1, 1]]), np.array([[2], [3]])], 2).tolist()
    [[True, False], [True, True]]
    """
    exact = _exact(costs, size)
    best = costs[0].astype(object) if exact else costs[0]
    rows = len(best)
    taken: list[npt.NDArray[np.bool_]] = [np.ones((rows, size), dtype=bool)]
    while best.shape[1] > 1:
        level = len(taken)
        if best.shape[1] % 2:
            best = np.concatenate([best, best[:, :1] * 0], axis=1)
        split = best[:, 0::2] + best[:, 1::2]
        whole = np.zeros(split.shape, dtype=bool)
        if level < len(costs):
            own = costs[level].astype(object) if exact else costs[level]
            full = own.shape[1]
            whole[:, :full] = own <= split[:, :full]
            split[:, :full] = np.where(whole[:, :full], own, split[:, :full])
        taken.append(whole)
        best = split
    starts = np.zeros((rows, size), dtype=bool)
    still_open = np.ones((rows, 1), dtype=bool)
    for level in range(len(taken) - 1, -1, -1):
        still_open = still_open[:, : taken[level].shape[1]]
        starts[:, :: 1 << level] |= still_open & taken[level]
        still_open = np.repeat(still_open & ~taken[level], 2, axis=1)
    return starts


def cheapest_runs(costs: list[Ints], lengths: list[int], size: int) -> list[int]:
    """Cheapest partition into runs of given lengths, anywhere.

    Parameters
    ----------
    costs
        For each length the costs of its runs by their first cell.
    lengths
        The lengths; 1 is one of them.
    size
        Number of cells.

    Returns
    -------
    list of int
        Where the runs start, and the number of cells.

    Notes
    -----
    Of partitions of equal cost the one whose last run has the earlier length in the list comes first; if these are equal,
    the run before decides, and so on.

    Examples
    --------
    >>> cheapest_runs([np.array([1, 1, 1]), np.array([1, 2])], [1, 2], 3)
    [0, 2, 3]
    """
    if _exact(costs, size):
        came = _came_from(costs, lengths, size)
    else:
        from policygraph.mechanisms.partitioned.partitioners._compiled_intervals import cheapest

        table = np.zeros((len(lengths), size), dtype=np.int64)
        for row, cost in zip(table, costs, strict=True):
            row[: cost.size] = cost
        came = np.zeros(size + 1, dtype=np.int64)
        cheapest(table, np.array(lengths, dtype=np.int64), came)
    cuts = [size]
    while cuts[-1]:
        cuts.append(cuts[-1] - lengths[came[cuts[-1]]])
    return cuts[::-1]


def _exact(costs: list[Ints], size: int) -> bool:
    """Whether sums of costs might not fit 64 bits, so that Python's integers are needed."""
    if any(cost.dtype == object for cost in costs):
        return True
    largest = max(max(abs(int(cost.max())), abs(int(cost.min()))) for cost in costs if cost.size)
    return largest * size >= _ROOM


def _came_from(costs: list[Ints], lengths: list[int], size: int) -> Ints:
    """The dynamic program in integers of any size."""
    best = [0]
    came = np.zeros(size + 1, dtype=np.int64)
    for stop in range(1, size + 1):
        ways = [
            (best[stop - length] + int(costs[j][stop - length]), j)
            for j, length in enumerate(lengths)
            if length <= stop
        ]
        least, came[stop] = min(ways)
        best.append(least)
    return came


def aligned_deviations(counts: Ints, length: int) -> Ints:
    """Deviation of each full run of ``length`` cells that starts at a multiple of ``length``.

    Examples
    --------
    >>> aligned_deviations(np.array([5, 5, 1, 9, 3]), 2).tolist()
    [0, 8]
    """
    full = counts.size // length
    if length == 1:
        return np.zeros(full, dtype=np.int64)
    rows = np.sort(counts[: full * length].reshape(full, length), axis=1)
    half = length // 2
    apart: Ints = rows[:, length - half :].sum(axis=1) - rows[:, :half].sum(axis=1)
    return apart


def sliding_deviations(counts: Ints, lengths: list[int]) -> list[Ints]:
    """Deviation of every run of each length, by its first cell.

    Examples
    --------
    >>> [found.tolist() for found in sliding_deviations(np.array([5, 5, 1, 9]), [1, 3])]
    [[0, 0, 0, 0], [4, 8]]

    Notes
    -----
    Each length takes one sweep of the window over the cells, in which a step costs a few words of a set of bits.
    """
    from policygraph.mechanisms.partitioned.partitioners._compiled_intervals import deviations

    order = np.argsort(counts, kind="stable")
    rank = np.empty(counts.size, dtype=np.int64)
    rank[order] = np.arange(counts.size)
    ascending = np.ascontiguousarray(counts[order])
    out = []
    for length in lengths:
        found = np.zeros(counts.size - length + 1, dtype=np.int64)
        if length > 1:
            deviations(rank, ascending, length, found)
        out.append(found)
    return out
