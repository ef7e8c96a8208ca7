"""Interactions by their definition: products of contrasts of each attribute, one number after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence


def column(
    shape: Sequence[int], sets: Iterable[Sequence[int]], weights: Iterable[int], cell: Sequence[int]
) -> list[int]:
    """What one record in a cell adds to each number: +1 or -1 for two values, n - 1 or -1 for each of n values."""
    out = []
    for axes, weight in zip(sets, weights):
        rows = [
            [1 - 2 * cell[a]] if shape[a] == 2 else [shape[a] * (v == cell[a]) - 1 for v in range(shape[a])]
            for a in axes
        ]
        for some in itertools.product(*rows):
            value = weight
            for factor in some:
                value *= factor
            out.append(value)
    return out


def largest_change(
    shape: Sequence[int],
    sets: Sequence[Sequence[int]],
    weights: Sequence[int],
    free: Iterable[int],
    most: int,
    norm: str,
) -> int:
    """The largest norm (squared for l2) of a difference of the columns of two cells that differ on at most some of the free axes only."""
    cells = list(itertools.product(*map(range, shape)))
    columns = {cell: column(shape, sets, weights, cell) for cell in cells}
    best, may = 0, set(free)
    for u, v in itertools.combinations(cells, 2):
        differing = {a for a in range(len(shape)) if u[a] != v[a]}
        if differing <= may and len(differing) <= most:
            apart = [x - y for x, y in zip(columns[u], columns[v])]
            best = max(best, sum(abs(x) if norm == "l1" else x * x for x in apart))
    return best
