"""A table with one or two published margins that contains given records, made directly. Owns :func:`table_with_margins`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from policygraph.errors import InputError

__all__ = ["table_with_margins"]

Codes = tuple[int, ...]
Margin = tuple[Sequence[int], Any]
"""Axes of a margin, ascending, and its values as an array over them."""


def table_with_margins(
    axes: int, margins: Sequence[Margin], contained: Mapping[Codes, int]
) -> dict[Codes, int] | None:
    """Make a table with at most two published margins that contains given records.

    Parameters
    ----------
    axes
        Number of attributes.
    margins
        Axes and values of each margin.
    contained
        Records that the table must hold: counts by the codes of a cell.

    Returns
    -------
    dict or None
        Counts of the cells that are not empty; None when no table with these margins contains the records, which is then proved.

    Raises
    ------
    InputError
        For more than two margins, of which a table need not exist although they agree.

    Examples
    --------
    >>> table_with_margins(2, [((0,), [2, 1]), ((1,), [1, 2])], {(0, 1): 1})
    {(0, 1): 1, (0, 0): 1, (1, 1): 1}
    >>> table_with_margins(2, [((0,), [2, 1]), ((1,), [3, 0])], {(0, 1): 1}) is None
    True

    Notes
    -----
    What is left of the margins after the records are taken away is filled slice by slice of the common attributes, row by row, each cell with as much as
    its row and its column still need (``docs/explanation/proofs/published-values.md``, section 5). The work is linear in the margins.
    """
    if len(margins) > 2:
        raise InputError(
            f"{len(margins)} margins: expected at most two, of which a table can be made directly.",
            code="values.margins",
        )
    rest = []
    for names, values in margins:
        # Python integers: published numbers may be of any size
        left = np.array(values, dtype=object)
        for codes, count in contained.items():
            left[tuple(codes[axis] for axis in names)] -= count
        if left.size and min(left.ravel()) < 0:
            return None
        rest.append((tuple(names), left))
    table = {codes: count for codes, count in contained.items() if count}
    while len(rest) < 2:
        # nothing is said of other attributes: a margin over no attribute, with the total that is given
        rest.append(((), np.array(rest[0][1].sum() if rest else 0, dtype=object)))
    (first, left), (second, right) = rest
    shared = [axis for axis in first if axis in second]
    rows, columns = _slices(first, left, shared), _slices(second, right, shared)
    for key in rows:
        filled = _fill(rows[key], columns[key])
        if filled is None:
            return None
        for row, column, count in filled:
            cell = [0] * axes
            for names, at in ((first, row), (second, column)):
                for axis, code in zip(names, at, strict=True):
                    cell[axis] = code
            table[tuple(cell)] = table.get(tuple(cell), 0) + count
    return table


def _slices(names: Codes, values: Any, shared: list[int]) -> dict[Codes, list[tuple[Codes, int]]]:
    """Cells of a margin that are left to fill, by the values of the shared attributes."""
    keep = [names.index(axis) for axis in shared]
    out: dict[Codes, list[tuple[Codes, int]]] = {
        codes: [] for codes in np.ndindex(*(values.shape[at] for at in keep))
    }
    for codes in np.ndindex(*values.shape):
        if values[codes]:
            out[tuple(codes[at] for at in keep)].append((codes, int(values[codes])))
    return out


def _fill(
    rows: list[tuple[Codes, int]], columns: list[tuple[Codes, int]]
) -> list[tuple[Codes, Codes, int]] | None:
    """North-west corner rule: a two-way table with these sums, which exists exactly when both add up to the same."""
    if sum(count for _, count in rows) != sum(count for _, count in columns):
        return None
    out = []
    below, across = [count for _, count in rows], [count for _, count in columns]
    i = j = 0
    while i < len(rows):
        count = min(below[i], across[j])
        out.append((rows[i][0], columns[j][0], count))
        below[i] -= count
        across[j] -= count
        i, j = i + (not below[i]), j + (not across[j])
    return out
