"""Which cells can change together under exact public facts: circuits of an integer matrix. Owns :class:`Circuits`.

A circuit is a change of cells that keeps the facts and whose set of cells is as small as possible; every circuit is a minimal
move. Exact: integers only.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

from policygraph.linalg import Objects, as_integer_matrix

__all__ = ["Circuits"]

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Circuits:
    """The fundamental circuits of a matrix for one choice of independent columns.

    Attributes
    ----------
    reduced
        Rows of the reduced echelon form, each with whole entries and one pivot.
    pivots
        The column of the pivot of each row; every other row is zero there.
    """

    reduced: Objects
    pivots: tuple[int, ...]

    @classmethod
    def of(cls, matrix: npt.ArrayLike) -> Circuits:
        """Reduce a matrix.

        Examples
        --------
        >>> found = Circuits.of([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
        >>> found.pivots, found.circuit(3)
        ((0, 1, 2), {0: 1, 1: -1, 2: -1, 3: 1})
        """
        rows = as_integer_matrix(matrix).copy()
        pivots: list[int] = []
        for column in range(rows.shape[1]):
            done = len(pivots)
            live = [i for i in range(done, rows.shape[0]) if rows[i, column]]
            if not live:
                continue
            rows[[done, live[0]]] = rows[[live[0], done]]
            for i in range(rows.shape[0]):
                if i != done and rows[i, column]:
                    rows[i] = _primitive(rows[i] * rows[done, column] - rows[done] * rows[i, column])
            pivots.append(column)
            if len(pivots) == rows.shape[0]:
                break
        return cls(rows[: len(pivots)], tuple(pivots))

    def circuit(self, column: int) -> dict[int, int]:
        """The circuit of a column that is no pivot: it, and the pivots that make up for it."""
        return _whole({c: f for c, f in self._fractions(column).items() if f})

    def _fractions(self, column: int) -> dict[int, Fraction]:
        out = {column: Fraction(1)}
        for row, pivot in enumerate(self.pivots):
            if self.reduced[row, column]:
                out[pivot] = Fraction(-int(self.reduced[row, column]), int(self.reduced[row, pivot]))
        return out

    def neighbours(self) -> list[list[int]]:
        """For each column the columns of the other kind (pivot or not) that share a fundamental circuit with it."""
        n = self.reduced.shape[1]
        out: list[list[int]] = [[] for _ in range(n)]
        for row, pivot in enumerate(self.pivots):
            for column in np.flatnonzero(self.reduced[row] != 0).tolist():
                if column != pivot:
                    out[pivot].append(column)
                    out[column].append(pivot)
        return out

    def between(self, labels: Labels) -> dict[int, int] | None:
        """A circuit that holds cells of two different labels >= 0, or None when there is none at all.

        Examples
        --------
        >>> Circuits.of([[1, 1, 0, 0], [0, 0, 1, 1]]).between(np.array([0, 0, 1, 1])) is None
        True
        >>> Circuits.of([[1, 1, 1]]).between(np.array([0, -1, 1]))
        {0: -1, 2: 1}
        """
        joined = self.neighbours()
        for label in np.unique(labels[labels >= 0]).tolist():
            path = _shortest(joined, labels, label)
            if path is not None:
                return self._along(path)
        return None

    def _along(self, path: list[int]) -> dict[int, int]:
        """Add up the fundamental circuits of the non-pivots on an induced path so that its inner pivots cancel."""
        pivots = set(self.pivots)
        free = [c for c in path if c not in pivots]
        total = self._fractions(free[0])
        for before, after in pairwise(free):
            shared = path[path.index(before) + 1]
            step = self._fractions(after)
            factor = -total[shared] / step[shared]
            for column, value in step.items():
                total[column] = total.get(column, Fraction(0)) + factor * value
        return _whole({c: f for c, f in total.items() if f})


def _shortest(joined: list[list[int]], labels: Labels, label: int) -> list[int] | None:
    """A shortest path from the cells of a label to a cell of another one."""
    starts = np.flatnonzero(labels == label).tolist()
    came: dict[int, int] = dict.fromkeys(starts, -1)
    queue = deque(starts)
    while queue:
        here = queue.popleft()
        for there in joined[here]:
            if there in came:
                continue
            came[there] = here
            if labels[there] >= 0:
                path = [there]
                while came[path[-1]] >= 0:
                    path.append(came[path[-1]])
                return path[::-1]
            queue.append(there)
    return None


def _primitive(row: Objects) -> Objects:
    divisor = gcd(*(int(x) for x in row)) or 1
    out: Objects = row // divisor
    return out


def _whole(change: dict[int, Fraction]) -> dict[int, int]:
    """Scale a rational change to whole numbers without a common factor."""
    bottom = lcm(*(f.denominator for f in change.values()))
    tops = {c: int(f * bottom) for c, f in sorted(change.items())}
    shared = gcd(*tops.values())
    return {c: x // shared for c, x in tops.items()}
