"""Bounds of cells that follow from published values, before any search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from policygraph.errors import ConstraintError, InputError
from policygraph.moves.strengths.columns import Ints, read_capacity, read_matrix

MOST_ROUNDS = 200
"""Rounds of propagation; each only tightens, so stopping early is safe."""


@dataclass(frozen=True)
class CellBounds:
    """What the published values say about each cell.

    Attributes
    ----------
    kept
        Cells that can still have two different values, ascending; all other cells are the same in every table.
    lower, upper
        Bounds of every cell; ``upper`` is None where the values set no limit.

    Examples
    --------
    >>> CellBounds((1,), (0, 0), (0, 3)).change
    (0, 3)
    """

    kept: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int | None, ...]

    @property
    def change(self) -> tuple[int | None, ...]:
        """Most records that a cell can gain or lose between two tables with these values."""
        return tuple(None if u is None else u - low for low, u in zip(self.lower, self.upper))


def read_values(values: Any, rows: int) -> tuple[int | None, ...]:
    """Read one published value for each row; None where it is not published.

    Examples
    --------
    >>> read_values([3, None], 2)
    (3, None)
    """
    listed = list(values)
    if len(listed) != rows:
        raise InputError(
            f"{len(listed)} values: expected {rows}, one for each row of the matrix (None where not published).",
            code="values.length",
            value=values,
        )
    for value in listed:
        if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__")):
            raise InputError(
                f"value {value!r}: expected an integer, or None where the value is not published.",
                code="values.not-integer",
                value=value,
            )
    return tuple(None if v is None else int(v) for v in listed)


def presolve_values(matrix: Any, values: Sequence[int | None], capacity: int | None = None) -> CellBounds:
    """Bound every cell by the published values, and drop the cells that cannot change.

    Parameters
    ----------
    matrix
        Integer constraint matrix, one column for each cell.
    values
        Published value of each row, None where it is not published.
    capacity
        Most records of a cell; None for no limit.

    Returns
    -------
    CellBounds
        Cells worth keeping and the bounds of all.

    Raises
    ------
    ConstraintError
        When no table can have these values.

    Examples
    --------
    A zero margin empties its cells; what is left of the other margins limits the rest.

    >>> presolve_values([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]], [0, 5, 3])
    CellBounds(kept=(), lower=(0, 0, 3, 2), upper=(0, 0, 3, 2))

    Notes
    -----
    A row a with value b gives, for each of its cells, a_j x_j = b - (sum over the other cells), which lies
    between the extremes of that sum; bounds are rounded to integers and repeated until they settle. A cell with
    equal bounds is the same in every table with these values, so no neighbour pair differs there, and the
    minimal moves without it are the minimal moves of the matrix without its column
    (docs/explanation/proofs/published-values.md, section 2).
    """
    read = read_matrix(matrix)
    published = read_values(values, read.shape[0])
    room = read_capacity(capacity)
    lower: list[int] = [0] * read.shape[1]
    upper: list[int | None] = [room] * read.shape[1]
    rows = [
        (b, [(int(j), int(read[i, j])) for j in read[i].nonzero()[0]])
        for i, b in enumerate(published)
        if b is not None
    ]
    for _ in range(MOST_ROUNDS):
        moved = False
        for b, cells in rows:
            moved |= _tighten(b, cells, lower, upper)
        if not moved:
            break
    kept = tuple(j for j in range(read.shape[1]) if upper[j] != lower[j])
    return CellBounds(kept, tuple(lower), tuple(upper))


def _tighten(value: int, cells: list[tuple[int, int]], lower: list[int], upper: list[int | None]) -> bool:
    """Use one row once; True when a bound moved."""
    least = most = 0
    no_least: set[int] = set()
    no_most: set[int] = set()
    for j, a in cells:
        high = upper[j]
        if high is None:
            (no_most if a > 0 else no_least).add(j)
        if a > 0:
            least += a * lower[j]
            most += 0 if high is None else a * high
        else:
            most += a * lower[j]
            least += 0 if high is None else a * high
    if (not no_least and least > value) or (not no_most and most < value):
        raise ConstraintError(
            f"value {value} of a row: its cells can only add up to "
            f"{least if not no_least else 'anything'} .. {most if not no_most else 'anything'}. "
            "No table has these values; check the published numbers.",
            code="values.infeasible",
            value=value,
        )
    moved = False
    for j, a in cells:
        high = upper[j]
        # the extremes of the other cells' sum, None when unlimited
        own_least = a * lower[j] if a > 0 else (None if high is None else a * high)
        own_most = a * lower[j] if a < 0 else (None if high is None else a * high)
        others_least = None if no_least - {j} else least - (own_least or 0)
        others_most = None if no_most - {j} else most - (own_most or 0)
        top = None if others_least is None else value - others_least
        bottom = None if others_most is None else value - others_most
        new_high = (
            top // a if a > 0 and top is not None else bottom // a if a < 0 and bottom is not None else None
        )
        new_low = -(-bottom // a) if a > 0 and bottom is not None else None
        if a < 0 and top is not None:
            new_low = -(-top // a)
        if new_high is not None and (high is None or new_high < high):
            upper[j], moved = new_high, True
        if new_low is not None and new_low > lower[j]:
            lower[j], moved = new_low, True
        if moved:
            now = upper[j]
            if now is not None and now < lower[j]:
                raise ConstraintError(
                    f"cell {j}: the values leave no count between {lower[j]} and {now}. "
                    "No table has these values; check the published numbers.",
                    code="values.infeasible",
                    cell=j,
                )
    return moved


def published_rows(matrix: Ints, values: tuple[int | None, ...]) -> tuple[Ints, list[int]]:
    """Rows whose value is published, and these values.

    Examples
    --------
    >>> published_rows(read_matrix([[1, 1], [1, 0]]), (None, 2))
    (array([[1, 0]]), [2])
    """
    where = [i for i, b in enumerate(values) if b is not None]
    return matrix[where], [b for b in values if b is not None]
