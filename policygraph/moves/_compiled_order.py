"""Compiled loops over sparse rows of public facts: an order in which they determine cells, and substitution along it."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def triangular_order(indptr, indices, columns_ptr, columns_row):  # type: ignore[no-untyped-def]
    """Split the cells into free ones and ones that a row determines from cells before them.

    A row with one undetermined cell determines it. Where there is none, the first row with several makes all but its last cell free.

    Returns
    -------
    order, pivots, free
        Rows that determine a cell, in order; the place of that cell among the entries; and the free cells.
    """
    rows, cells = len(indptr) - 1, len(columns_ptr) - 1
    left = np.diff(indptr)
    done = np.zeros(cells, dtype=np.bool_)
    used = np.zeros(rows, dtype=np.bool_)
    order, pivots = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    free = np.empty(cells, dtype=np.int64)
    waiting = np.empty(rows, dtype=np.int64)
    found, loose, head, tail, first = 0, 0, 0, 0, 0
    for row in range(rows):
        if left[row] == 1:
            waiting[tail] = row
            tail += 1
    while True:
        if head < tail:
            row = waiting[head]
            head += 1
            if left[row] != 1:
                continue
        else:
            while first < rows and (used[first] or left[first] < 2):
                first += 1
            if first == rows:
                break
            row = first
        for at in range(indptr[row], indptr[row + 1]):
            cell = indices[at]
            if done[cell]:
                continue
            done[cell] = True
            if left[row] > 1:
                free[loose] = cell
                loose += 1
            else:
                order[found], pivots[found] = row, at
                used[row] = True
                found += 1
            for k in range(columns_ptr[cell], columns_ptr[cell + 1]):
                other = columns_row[k]
                left[other] -= 1
                if left[other] == 1 and other != row and not used[other]:
                    waiting[tail] = other
                    tail += 1
            if used[row]:
                break
    for cell in range(cells):
        if not done[cell]:
            free[loose] = cell
            loose += 1
    return order[:found], pivots[:found], free[:loose]


@numba.njit(cache=True, nogil=True)
def substitute(indptr, indices, data, order, pivots, values, table):  # type: ignore[no-untyped-def]
    """Fill in the determined cells of every column of a table whose free cells are set, so that the rows sum to the values."""
    wide = table.shape[1]
    for step in range(len(order)):
        row, place = order[step], pivots[step]
        cell = indices[place]
        for column in range(wide):
            rest = values[row, column]
            for at in range(indptr[row], indptr[row + 1]):
                if at != place:
                    rest -= data[at] * table[indices[at], column]
            table[cell, column] = rest / data[place]
