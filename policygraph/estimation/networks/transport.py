"""Whole tables with given sums near a target, by minimum-cost flow. Owns :func:`transport`, :func:`symmetric_transport`.

Works on plain arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["SCALE", "symmetric_transport", "transport"]

Ints = npt.NDArray[np.int64]
SCALE = 1000
"""Distances are measured in thousandths."""


def transport(target: Any, rows: Any, columns: Any, low: Ints, high: Ints) -> Ints | None:
    """Whole table with given row and column sums and limits, of least total distance to a target; None if there is none.

    Examples
    --------
    >>> limits = np.zeros((2, 2), dtype=np.int64), np.full((2, 2), 9)
    >>> transport([[2.2, 0.9], [0.1, 3.0]], [3, 3], [2, 4], *limits).tolist()
    [[2, 1], [0, 3]]

    Notes
    -----
    The distance of a cell is convex in its count: steps below the target gain, the step across it is mixed, steps beyond
    cost. One arc for each slope makes it a minimum-cost flow, and flows with whole data have whole optima.
    """
    from ortools.graph.python import min_cost_flow

    wanted = np.asarray(target, dtype=np.float64)
    supply, demand = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
    if np.any(low > high) or int(supply.sum()) != int(demand.sum()):
        return None
    tail, head = (side.ravel() for side in np.indices(wanted.shape))
    least, most = low.ravel(), high.ravel()
    near = np.clip(np.floor(wanted.ravel()), least, most).astype(np.int64)
    part = np.clip(np.rint((wanted.ravel() - near) * SCALE), 0, SCALE).astype(np.int64)
    # What a cell must hold is taken off both sums beforehand.
    given = np.zeros(wanted.shape, dtype=np.int64)
    given[tail, head] = least
    supply, demand = supply - given.sum(axis=1), demand - given.sum(axis=0)
    if np.any(supply < 0) or np.any(demand < 0):
        return None
    pieces = (
        (near - least, np.full(len(near), -SCALE)),
        (np.minimum(most - near, 1), SCALE - 2 * part),
        (np.maximum(most - near - 1, 0), np.full(len(near), SCALE)),
    )
    flow = min_cost_flow.SimpleMinCostFlow()
    n, used = len(supply), []
    for room, cost in pieces:
        cells = np.flatnonzero(room > 0)
        used.append(cells)
        flow.add_arcs_with_capacity_and_unit_cost(
            tail[cells].astype(np.int32),
            (n + head[cells]).astype(np.int32),
            room[cells],
            cost[cells].astype(np.int64),
        )
    flow.set_nodes_supplies(
        np.arange(n + len(demand), dtype=np.int32), np.concatenate([supply, -demand]).astype(np.int64)
    )
    if flow.solve() != flow.OPTIMAL:
        return None
    cells = np.concatenate(used)
    made = given.copy()
    np.add.at(made, (tail[cells], head[cells]), flow.flows(np.arange(len(cells), dtype=np.int32)))
    return made


def symmetric_transport(target: Any, sums: Ints, low: Ints, high: Ints) -> tuple[Ints, bool] | None:
    """Whole symmetric table near a target, given above the diagonal, with twice the diagonal plus the rest of a row known.

    Parameters
    ----------
    target, low, high
        In the order of ``numpy.triu_indices``.
    sums
        For each row, twice its diagonal entry plus its other entries.

    Returns
    -------
    tuple or None
        The table in the same order, and whether it is surely the nearest; None when rounding met a limit.

    Examples
    --------
    >>> free = np.zeros(6, dtype=np.int64), np.full(6, 9)
    >>> symmetric_transport([0, 1, 1, 0, 1, 0], np.array([2, 2, 2]), *free)[0].tolist()
    [0, 1, 1, 0, 1, 0]

    Notes
    -----
    Both orders of each pair as cells of a table with equal row and column sums make a flow. Halving it gives the optimum of the
    relaxed problem in half-integers. In each row the number of halves beside the diagonal is even, so they form closed
    walks, which are rounded up and down in turn. What an odd walk, or half on the diagonal, leaves over at a row is brought together in
    pairs of rows.
    """
    k = len(sums)
    a, b = np.triu_indices(k)
    square = np.zeros((3, k, k))
    for layer, values in enumerate((target, low, high)):
        square[layer, a, b] = square[layer, b, a] = values
    square[:, np.arange(k), np.arange(k)] *= 2
    flow = transport(square[0], sums, sums, square[1].astype(np.int64), square[2].astype(np.int64))
    if flow is None:
        return None
    double = flow + flow.T
    double[np.arange(k), np.arange(k)] = np.diag(flow)
    whole, odd = double // 2, double % 2
    nearest = not odd.any()
    open_rows: list[int] = []
    for walk in _closed_walks(odd):
        start = next((at for at, v in enumerate(walk) if odd[v, v]), 0)
        walk = walk[start:] + walk[:start]
        for step, v in enumerate(walk):
            w = walk[(step + 1) % len(walk)]
            whole[v, w] += step % 2 == 0
            whole[w, v] = whole[v, w]
        if len(walk) % 2:
            open_rows.append(walk[0])
    # An odd walk has rounded up once too often at its start; half of a diagonal, rounded down, makes up for it.
    for v in np.flatnonzero(np.diag(odd)).tolist():
        if v in open_rows:
            open_rows.remove(v)
        else:
            whole[v, v] += 1
            open_rows.append(v)
    top = np.zeros((k, k), dtype=np.int64)
    base = top.copy()
    top[a, b] = top[b, a] = high
    base[a, b] = base[b, a] = low
    if not _close(open_rows, whole, base, top):
        return None
    values = whole[a, b]
    rows = whole.sum(axis=1) + np.diag(whole)
    if np.any(rows != sums) or np.any(values < low) or np.any(values > high):
        return None
    return values, nearest


def _closed_walks(odd: Ints) -> Iterator[list[int]]:
    """Split the odd entries beside the diagonal into closed walks, one for each connected part."""
    links = {v: set(np.flatnonzero(odd[v]).tolist()) - {v} for v in range(len(odd))}
    for first in links:
        if not links[first]:
            continue
        stack, walk = [first], []
        while stack:  # Hierholzer
            v = stack[-1]
            if links[v]:
                w = links[v].pop()
                links[w].discard(v)
                stack.append(w)
            else:
                walk.append(stack.pop())
        yield walk[:-1]


def _close(rows: list[int], whole: Ints, base: Ints, top: Ints) -> bool:
    """Take one off between pairs of rows that have one too many; whether that was possible."""
    rest = list(rows)
    while rest:
        v = rest.pop()
        for at, w in enumerate(rest):
            if whole[v, w] > base[v, w]:
                whole[v, w] -= 1
                whole[w, v] = whole[v, w]
            elif not _detour(v, w, whole, base, top):
                continue
            rest.pop(at)
            break
        else:
            return False
    return True


def _detour(v: int, w: int, whole: Ints, base: Ints, top: Ints) -> bool:
    """Take one off between v and x and between y and w, and put one between x and y."""
    for x in np.flatnonzero(whole[v] > base[v]).tolist():
        for y in np.flatnonzero((whole[w] > base[w]) & (whole[x] < top[x])).tolist():
            if len({v, w, x, y}) == 4:
                for a, b, change in ((v, x, -1), (x, y, 1), (y, w, -1)):
                    whole[a, b] += change
                    whole[b, a] = whole[a, b]
                return True
    return False
