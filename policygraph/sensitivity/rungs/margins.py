"""Closed forms for public whole margins of a table: none, one, two of them after reduction.

Theorems 1 to 3 of ``docs/explanation/proofs/reductions.md`` and ``docs/explanation/proofs/two-cuboids.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from policygraph.model.queries.base import Norm
from policygraph.moves.bracket import Bracket, Witness
from policygraph.sensitivity.rungs.reduce import Reduced

__all__ = ["change_norm", "closed_form", "witness"]

Change = Mapping[tuple[int, ...], int]


def change_norm(reduced: Reduced, change: Change, norm: Norm) -> int:
    """Norm (squared for l2) of what a change of reduced cells does to the margins that are asked for."""
    total = 0
    for names, weight in reduced.asked:
        kept = sorted(names)
        sums: dict[tuple[int, ...], int] = {}
        for cell, amount in change.items():
            key = tuple(cell[axis] for axis in kept)
            sums[key] = sums.get(key, 0) + amount
        if norm == "l1":
            total += weight * sum(abs(x) for x in sums.values())
        else:
            total += weight * weight * sum(x * x for x in sums.values())
    return total


def witness(reduced: Reduced, change: Change) -> Witness:
    """Two neighbouring tables of the domain from a change of reduced cells."""
    return Witness.of_change({reduced.lift(cell): amount for cell, amount in change.items()})


def closed_form(reduced: Reduced, norm: Norm) -> Bracket[Witness] | None:
    """Answer from a formula; None when there are three or more public margins left."""
    if not reduced.asked:
        return Bracket(
            0,
            0,
            None,
            "reduction",
            "the public facts determine every number that is asked for",
            reduced.steps,
        )
    if len(reduced.known) == 1:
        return _one_total(reduced, norm)
    if len(reduced.known) == 2:
        return _two_margins(reduced, norm)
    return None


def _one_total(reduced: Reduced, norm: Norm) -> Bracket[Witness]:
    """One public margin splits the table into parts of known total: a record moves inside its part."""
    ones = (1,) * len(reduced.axes)
    change = {(0,) * len(reduced.axes): -1, ones: 1}
    value = change_norm(reduced, change, norm)
    return Bracket(
        value,
        value,
        witness(reduced, change),
        "closed form, one public margin",
        "inside a part whose total is public a minimal move takes one record from a cell to another; it changes two "
        "cells of each table that is not public, and the pair shown changes all of them",
        reduced.steps,
    )


def _two_margins(reduced: Reduced, norm: Norm) -> Bracket[Witness]:
    from policygraph.moves.two_way.closed_form import longest_bipartite_move

    left, right = (sorted(names) for names in reduced.known)
    rows, columns = prod(reduced.shape[a] for a in left), prod(reduced.shape[a] for a in right)
    length, walk = longest_bipartite_move(rows, columns, rows, columns)
    change: dict[tuple[int, ...], int] = {}
    for row, column, sign in walk:
        cell = [0] * len(reduced.axes)
        for axes, code in ((left, row), (right, column)):
            rest = int(code)
            for axis in reversed(axes):
                rest, cell[axis] = divmod(rest, reduced.shape[axis])
        for axis in range(len(reduced.axes)):
            if axis not in left and axis not in right:
                # Added and removed records differ on the attributes that are in no public margin.
                cell[axis] = 1 if sign > 0 else 0
        change[tuple(cell)] = change.get(tuple(cell), 0) + sign
    lower = change_norm(reduced, change, norm)
    upper = 0
    for names, weight in reduced.asked:
        # The margin of a cycle over all left (or all right) attributes has entries 0 and +-1 only; other margins may
        # pile up at most half of the cycle on one cell.
        spread = length if set(left) <= names or set(right) <= names else length * length // 2
        upper += weight * length if norm == "l1" else weight * weight * spread
    return Bracket(
        max(upper, lower),
        lower,
        witness(reduced, change),
        "closed form, two public margins" if upper == lower else "bound by two public margins",
        f"a minimal move is a simple cycle in the complete bipartite graph of {rows} x {columns} margin cells, so it has "
        f"at most {length} changes, each of one record; no table changes by more than the cells do",
        reduced.steps,
    )
