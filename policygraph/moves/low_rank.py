"""Moves of public sums that leave two numbers open at most in each connected part. Owns :func:`circuits_of_parts`.

The changes of a part that keep its sums are then a plane of whole points, and the largest change is at one of the lines on which a cell stays as it is
(``docs/explanation/proofs/single-moves.md``, section 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm

from policygraph.effort import Effort

__all__ = ["circuits_of_parts"]

Row = dict[int, Fraction]
Circuit = dict[int, int]


def circuits_of_parts(rows: Sequence[Mapping[int, int]], cells: int, effort: Effort) -> list[Circuit] | None:
    """List the changes of fewest cells that keep all sums, one of each pair of opposites.

    Parameters
    ----------
    rows
        What each sum counts: weights by cell.
    cells
        How many cells there are.
    effort
        Work that may be spent.

    Returns
    -------
    list of dict or None
        Amounts by cell, without a common divisor; None where some part leaves three numbers open or more, or when the effort ran out.

    Examples
    --------
    >>> circuits_of_parts([{0: 1, 1: 2, 2: 3}], 3, Effort(10_000))
    [{0: 3, 2: -1}, {0: 2, 1: -1}, {1: 3, 2: -2}]
    >>> circuits_of_parts([{0: 1, 1: 1, 2: 1, 3: 1}], 4, Effort(10_000)) is None
    True
    """
    solved = _solved(rows, cells, effort)
    if solved is None:
        return None
    parts: dict[int, dict[int, Row]] = {}
    owner = _owners(solved)
    for cell, form in solved.items():
        if form:
            parts.setdefault(owner[cell], {})[cell] = form
    made: list[Circuit] = []
    for forms in parts.values():
        free = sorted({key for form in forms.values() for key in form})
        if len(free) > 2:
            return None
        lines = [(Fraction(1),)] if len(free) == 1 else _lines(forms, free)
        for line in lines:
            effort.spend(1 + len(forms) // 4)
            if effort.done:
                return None
            point = dict(zip(free, line, strict=True))
            values = {
                cell: sum((x * point[key] for key, x in form.items()), Fraction(0))
                for cell, form in forms.items()
            }
            scale = lcm(*(x.denominator for x in values.values()))
            whole = {cell: int(x * scale) for cell, x in sorted(values.items()) if x}
            shared = gcd(*whole.values())
            sign = shared if next(iter(whole.values())) > 0 else -shared
            made.append({cell: x // sign for cell, x in whole.items()})
    return made


def _lines(forms: dict[int, Row], free: list[int]) -> list[tuple[Fraction, ...]]:
    """The directions in which some cell does not change."""
    one, two = free
    seen: dict[tuple[int, int], None] = {}
    for form in forms.values():
        p, q = form.get(one, Fraction(0)), form.get(two, Fraction(0))
        scale = lcm(p.denominator, q.denominator)
        a, b = int(q * scale), int(-p * scale)
        shared = gcd(a, b) * (-1 if (a, b) < (0, 0) else 1)
        seen.setdefault((a // shared, b // shared))
    return [(Fraction(a), Fraction(b)) for a, b in seen]


def _owners(solved: dict[int, Row]) -> dict[int, int]:
    """A number for each cell that is the same for cells whose changes hang together."""
    root: dict[int, int] = {}

    def find(key: int) -> int:
        while root.setdefault(key, key) != key:
            root[key] = root[root[key]]
            key = root[key]
        return key

    for form in solved.values():
        first = next(iter(form), None)
        for key in form:
            root[find(key)] = find(first if first is not None else key)
    return {cell: find(next(iter(form))) for cell, form in solved.items() if form}


def _solved(rows: Sequence[Mapping[int, int]], cells: int, effort: Effort) -> dict[int, Row] | None:
    """Each cell in terms of free ones, by elimination with fractions."""
    count = [0] * cells
    for row in rows:
        for cell in row:
            count[cell] += 1
    pivots: dict[int, Row] = {}
    order: list[int] = []
    for row in rows:
        rest: Row = {cell: Fraction(x) for cell, x in row.items() if x}
        while (known := next((cell for cell in rest if cell in pivots), None)) is not None:
            _add(rest, pivots[known], rest.pop(known), effort)
            if effort.done:
                return None
        if rest:
            pivot = min(rest, key=lambda cell: (count[cell], cell))
            lead = rest.pop(pivot)
            pivots[pivot] = {cell: -x / lead for cell, x in rest.items()}
            order.append(pivot)
    # Later pivots hold no earlier ones, so that they are written out first.
    made: dict[int, Row] = {cell: {cell: Fraction(1)} for cell in range(cells) if cell not in pivots}
    for pivot in reversed(order):
        form: Row = {}
        for cell, x in pivots[pivot].items():
            _add(form, made[cell], x, effort)
        made[pivot] = form
        if effort.done:
            return None
    return made


def _add(row: Row, other: Row, times: Fraction, effort: Effort) -> None:
    effort.spend(1 + len(other))
    for cell, x in other.items():
        total = row.get(cell, Fraction(0)) + times * x
        if total:
            row[cell] = total
        else:
            row.pop(cell, None)
