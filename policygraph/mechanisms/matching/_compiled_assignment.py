"""Compiled assignment in whole numbers; imported only when a matching is asked for.

Owns :func:`potentials_of`, which proves an optimal assignment by potentials, and :func:`assign` for costs beyond what a library
takes: shortest augmenting paths on a dense matrix (Jonker and Volgenant 1987), which ends with potentials of its own.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _reduce(cost: Ints, column_of: Ints, row_of: Ints, v: Ints) -> None:
    """Start: each column gets its least entry as potential, and rows take columns that nobody else wants."""
    n = cost.shape[0]
    least = cost[0].copy()
    where = np.zeros(n, dtype=np.int64)
    for i in range(1, n):
        row = cost[i]
        for j in range(n):
            if row[j] < least[j]:
                least[j] = row[j]
                where[j] = i
    for j in range(n - 1, -1, -1):
        v[j] = least[j]
        i = where[j]
        if column_of[i] < 0:
            column_of[i] = j
            row_of[j] = i


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def _bid(cost: Ints, column_of: Ints, row_of: Ints, v: Ints, free: Ints, count: int, most: int) -> int:
    """Rows without a column take their best one and lower its potential to the second best; return how many are left."""
    n = cost.shape[0]
    left = 0
    at = 0
    steps = 0
    while at < count:
        i = free[at]
        at += 1
        row = cost[i]
        first, second = row[0] - v[0], np.int64(0)
        j1, j2, seen = 0, -1, False
        for j in range(1, n):
            value = row[j] - v[j]
            if not seen or value < second:
                if value < first:
                    second, j2 = first, j1
                    first, j1 = value, j
                else:
                    second, j2 = value, j
                seen = True
        other = row_of[j1]
        lower = seen and first < second
        if lower:
            v[j1] -= second - first
        elif other >= 0 and seen:
            j1 = j2
            other = row_of[j1]
        row_of[j1] = i
        column_of[i] = j1
        if other >= 0:
            column_of[other] = -1
            steps += 1
            if lower and steps < most:
                at -= 1
                free[at] = other
            else:
                free[left] = other
                left += 1
    return left


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def assign(cost: Ints, column_of: Ints, u: Ints, v: Ints) -> None:
    """Fill ``column_of`` with a cheapest permutation, and u, v with potentials: u[i] + v[j] <= cost[i, j], equal where used.

    Notes
    -----
    Whole numbers throughout. While some column is free its potential is the least entry of the column, and the potential
    of a used row is at most its entry there minus that; so potentials stay within three times the range of the entries.
    """
    n = cost.shape[0]
    row_of = np.full(n, -1, dtype=np.int64)
    column_of[:] = -1
    _reduce(cost, column_of, row_of, v)
    free = np.empty(n, dtype=np.int64)
    count = 0
    for i in range(n):
        if column_of[i] < 0:
            free[count] = i
            count += 1
    for _ in range(2):
        count = _bid(cost, column_of, row_of, v, free, count, 4 * n)
    distance = np.empty(n, dtype=np.int64)
    before = np.empty(n, dtype=np.int64)
    columns = np.arange(n)
    for at in range(count):
        start = free[at]
        for j in range(n):
            distance[j] = cost[start, j] - v[j]
            before[j] = start
            columns[j] = j
        low = high = done = 0
        least = np.int64(0)
        end = -1
        while end < 0:
            if low == high:
                done = low
                least = distance[columns[high]]
                high += 1
                for k in range(high, n):
                    j = columns[k]
                    if distance[j] <= least:
                        if distance[j] < least:
                            high = low
                            least = distance[j]
                        columns[k] = columns[high]
                        columns[high] = j
                        high += 1
                for k in range(low, high):
                    if row_of[columns[k]] < 0:
                        end = columns[k]
                        break
                if end >= 0:
                    break
            j1 = columns[low]
            low += 1
            i = row_of[j1]
            row = cost[i]
            back = row[j1] - v[j1] - least
            for k in range(high, n):
                j = columns[k]
                value = row[j] - v[j] - back
                if value < distance[j]:
                    before[j] = i
                    if value == least:
                        if row_of[j] < 0:
                            end = j
                            break
                        columns[k] = columns[high]
                        columns[high] = j
                        high += 1
                    distance[j] = value
        for k in range(done):
            j = columns[k]
            v[j] += distance[j] - least
        j = end
        while True:
            i = before[j]
            row_of[j] = i
            j, column_of[i] = column_of[i], j
            if i == start:
                break
    for i in range(n):
        u[i] = cost[i, column_of[i]] - v[column_of[i]]


@numba.njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
def potentials_of(cost: Ints, target: Ints, rows: Ints, columns: Ints) -> bool:
    """Find potentials that are tight on an assignment and nowhere above the costs; False when it is not optimal.

    Shortest paths from a vertex joined to all columns by arcs of length 0, along i's column, then any other column of i; a queue of
    the columns that changed. Without negative cycles no column is lowered along more than n arcs.
    """
    n = cost.shape[0]
    row_of = np.empty(n, dtype=np.int64)
    for i in range(n):
        row_of[target[i]] = i
    columns[:] = 0
    queue = np.arange(n)
    waiting = np.ones(n, dtype=np.bool_)
    lowered = np.zeros(n, dtype=np.int64)
    head, size = 0, n
    while size:
        j0 = queue[head]
        head = head + 1 if head + 1 < n else 0
        size -= 1
        waiting[j0] = False
        i = row_of[j0]
        row = cost[i]
        start = columns[j0] - row[j0]
        for j in range(n):
            value = start + row[j]
            if value < columns[j]:
                columns[j] = value
                if not waiting[j]:
                    lowered[j] += 1
                    if lowered[j] > n:
                        return False
                    waiting[j] = True
                    queue[(head + size) % n] = j
                    size += 1
    for i in range(n):
        rows[i] = cost[i, target[i]] - columns[target[i]]
    return True
