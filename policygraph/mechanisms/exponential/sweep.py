"""Tables with published sums that are too many to list, cell by cell. Owns :class:`Sweep` and :func:`sweep_of`.

What the cells so far leave of each published sum is all that the cells after them depend on, so that sums over these states (transfer matrices) count the tables
at each distance from a true one (section 6 of ``docs/explanation/proofs/exponential-tables.md``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, permutations

import numpy as np

from policygraph.mechanisms.base import Ints
from policygraph.moves.values.presolve import CellBounds

__all__ = ["Sweep", "sweep_of"]

MOST_STEPS = 200_000
"""Most steps of a sweep: values that a cell can have, over all states."""
MOST_ORDERS = 6
"""Most orders of the attributes that are tried; the number of states depends on it."""
Steps = list[list[dict[int, int]]]


@dataclass(frozen=True, eq=False)
class Sweep:
    """Tables with published sums as walks through states.

    Attributes
    ----------
    cells
        The cells that can hold records, in the order of the sweep.
    size
        Number of cells of the whole table; the others are empty.
    steps
        For each cell and state the values that the cell can have, with the state after each. Every state leads to a table.
    """

    cells: tuple[int, ...]
    size: int
    steps: tuple[tuple[dict[int, int], ...], ...] = field(repr=False)

    @cached_property
    def spans(self) -> tuple[int, ...]:
        """By how much each cell can differ from table to table."""
        seen = [{value for after in states for value in after} for states in self.steps]
        return tuple(max(values) - min(values) for values in seen)

    @property
    def farthest(self) -> int:
        """A bound on the sum of the differences of two tables."""
        return sum(self.spans)

    def counts(self, table: Ints) -> list[int]:
        """The counts of a table, in the order of the sweep."""
        return [int(table[cell]) for cell in self.cells]

    def tables(self, counts: Ints) -> Ints:
        """Tables with these counts, one in each row."""
        made = np.zeros((len(counts), self.size), dtype=np.int64)
        made[:, list(self.cells)] = counts
        return made

    @property
    def length(self) -> int:
        """Number of cells."""
        return len(self.cells)

    @cached_property
    def number_bits(self) -> int:
        """Bits that the number of tables fits in."""
        ways = [1] * self.states(self.length)
        for states in reversed(self.steps):
            ways = [sum(ways[state] for state in after.values()) for after in states]
        return ways[0].bit_length()

    def states(self, step: int) -> int:
        """Number of states before a cell."""
        if step < self.length:
            return len(self.steps[step])
        return 1 + max(state for after in self.steps[-1] for state in after.values())

    def options(self, step: int, state: int) -> Iterable[tuple[int, int]]:
        """Values that a cell can have, with the state after each."""
        return self.steps[step][state].items()

    def marks(self, truth: Sequence[int]) -> list[int]:
        """The counts of a true table."""
        return list(truth)

    def cost(self, state: int, value: int, mark: int) -> int:
        """By how much a value differs from the true one."""
        return abs(value - mark)

    def fits(self, counts: Sequence[int]) -> bool:
        """Whether these are the counts of a table with the published sums."""
        state = 0
        for step, value in enumerate(counts):
            if value not in self.steps[step][state]:
                return False
            state = self.steps[step][state][value]
        return True


def sweep_of(
    rows: Ints, values: Sequence[int], bounds: CellBounds, cells: Ints, shape: Sequence[int]
) -> Sweep | None:
    """The sweep over all tables with published sums, in the order of attributes with the fewest steps; None where these are too many.

    Parameters
    ----------
    rows, values
        The published sums, a column for each of ``cells``.
    bounds
        Between what each of these cells lies in every table.
    cells
        Their numbers in the table.
    shape
        Shape of the table.

    Examples
    --------
    >>> from policygraph.moves.values.presolve import presolve_values
    >>> rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    >>> made = sweep_of(rows, [1, 2, 2, 1], presolve_values(rows, [1, 2, 2, 1]), np.arange(4), (2, 2))
    >>> made.cells, [len(states) for states in made.steps], made.farthest
    ((0, 1, 2, 3), [1, 2, 2, 2], 4)
    """
    if any(high is None for high in bounds.upper):
        return None
    lows = np.array(bounds.lower, dtype=np.int64)
    highs = np.array([high or 0 for high in bounds.upper], dtype=np.int64)
    places = np.stack(np.unravel_index(cells, tuple(shape)))
    best, most = None, MOST_STEPS
    for order in islice(permutations(range(len(shape))), MOST_ORDERS):
        chosen = np.lexsort([places[axis] for axis in reversed(order)])
        made = _steps(rows[:, chosen], values, lows[chosen], highs[chosen], most)
        if made is None:
            continue
        most = sum(len(after) for states in made for after in states) - 1
        size = int(np.prod([int(n) for n in shape]))
        best = Sweep(
            tuple(int(cell) for cell in cells[chosen]), size, tuple(tuple(states) for states in made)
        )
    return best


def _steps(rows: Ints, values: Sequence[int], lows: Ints, highs: Ints, most: int) -> Steps | None:
    """States and steps in the order of the columns; None where there are more than so many steps."""
    small, large = np.minimum(rows * lows, rows * highs), np.maximum(rows * lows, rows * highs)
    # What the cells from a position on can still add to each sum.
    ends = np.zeros((len(rows), 1), dtype=np.int64)
    least = np.concatenate([np.cumsum(small[:, ::-1], axis=1)[:, ::-1], ends], axis=1)
    largest = np.concatenate([np.cumsum(large[:, ::-1], axis=1)[:, ::-1], ends], axis=1)
    states: dict[tuple[int, ...], int] = {tuple(int(v) for v in values): 0}
    steps: Steps = []
    seen = 0
    for at in range(rows.shape[1]):
        column = [int(a) for a in rows[:, at]]
        lowest, highest = least[:, at + 1].tolist(), largest[:, at + 1].tolist()
        after: dict[tuple[int, ...], int] = {}
        here: list[dict[int, int]] = []
        for state in states:
            found: dict[int, int] = {}
            for value in range(int(lows[at]), int(highs[at]) + 1):
                seen += 1
                left = tuple(have - a * value for have, a in zip(state, column, strict=True))
                if all(low <= x <= high for low, x, high in zip(lowest, left, highest, strict=True)):
                    found[value] = after.setdefault(left, len(after))
            here.append(found)
            if seen > 4 * most:
                return None
        states = after
        steps.append(here)
    return _alive(steps, most)


def _alive(steps: Steps, most: int) -> Steps | None:
    """Leave out states that lead to no table, from the end to the beginning; None where too many steps are left, or none."""
    good: set[int] | None = None
    for states in reversed(steps):
        for at, after in enumerate(states):
            if good is not None:
                states[at] = {value: state for value, state in after.items() if state in good}
        good = {at for at, after in enumerate(states) if after}
    if not good or sum(len(after) for states in steps for after in states) > most:
        return None
    return steps
