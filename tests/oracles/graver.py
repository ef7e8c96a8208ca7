"""Minimal moves by their definition: list every integer vector of a box, keep the conformally minimal ones."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt


def below(h: tuple[int, ...], g: tuple[int, ...]) -> bool:
    """Same sign (or zero) and no larger, cell by cell."""
    return all(0 <= a <= b or b <= a <= 0 for a, b in zip(h, g))


def minimal_moves(matrix: npt.ArrayLike, box: int) -> set[tuple[int, ...]]:
    """All minimal moves with entries in [-box, box], one of each pair (first non-zero entry positive)."""
    rows = np.asarray(matrix, dtype=object)
    n = rows.shape[1]
    kernel = [
        g
        for g in itertools.product(range(-box, box + 1), repeat=n)
        if any(g) and all(sum(int(a) * x for a, x in zip(row, g)) == 0 for row in rows)
    ]
    # What lies below a vector of the box is in the box, so the box is large enough to judge its own vectors.
    kernel.sort(key=lambda g: sum(map(abs, g)))
    found: list[tuple[int, ...]] = []
    for g in kernel:
        if not any(below(h, g) for h in found):
            found.append(g)
    return {g for g in found if next(x for x in g if x) > 0}


def margins(shape: tuple[int, ...], cuboids: list[tuple[int, ...]]) -> npt.NDArray[np.int64]:
    """The 0/1 matrix of the margins of a table; cells in row-major order."""
    cells = list(itertools.product(*map(range, shape)))
    rows = [
        [int(all(cell[axis] == value for axis, value in zip(cuboid, values))) for cell in cells]
        for cuboid in cuboids
        for values in itertools.product(*(range(shape[axis]) for axis in cuboid))
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, len(cells))


def table_symmetries(shape: tuple[int, ...], cuboids: list[tuple[int, ...]]) -> npt.NDArray[np.int64]:
    """Generators: swaps of neighbouring values of an axis, swaps of like axes that keep the set of cuboids."""
    cells = list(itertools.product(*map(range, shape)))
    place = {cell: index for index, cell in enumerate(cells)}
    result = []
    for axis, size in enumerate(shape):
        for value in range(size - 1):
            swap = {value: value + 1, value + 1: value}
            result.append(
                [
                    place[tuple(swap.get(x, x) if i == axis else x for i, x in enumerate(cell))]
                    for cell in cells
                ]
            )
    facts = {frozenset(cuboid) for cuboid in cuboids}
    for i, k in itertools.combinations(range(len(shape)), 2):
        trade = {i: k, k: i}
        if shape[i] == shape[k] and {frozenset(trade.get(a, a) for a in fact) for fact in facts} == facts:
            result.append([place[tuple(cell[trade.get(a, a)] for a in range(len(shape)))] for cell in cells])
    return np.array(result, dtype=np.int64).reshape(-1, len(cells))
