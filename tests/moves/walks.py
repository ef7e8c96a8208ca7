"""Changes given as lists of (first end, second end, value), asked as moves of policies over tables and networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import policygraph as pg
from policygraph.moves.degrees.reading import known_mask

Change = tuple[Any, Any, Any]


def _labels(known: Any, size: int) -> list[int]:
    if not isinstance(known, (int, np.integer)):
        known = np.array(sorted(known) if isinstance(known, set) else known)
        known = known if known.size else 0
    return np.flatnonzero(known_mask(known, size, "known")).tolist()


def _side(given: Any, ends: Any) -> int:
    """Enough vertices for the ends of a change and for what is known."""
    if isinstance(given, (int, np.integer)):
        return max(int(given), max(ends, default=0) + 1)
    listed = list(given)
    flags = bool(listed) and isinstance(listed[0], (bool, np.bool_))
    top = len(listed) if flags else max(listed, default=-1) + 1
    return max(int(top), max(ends, default=0) + 1)


def table(
    change: Change, left: Any, right: Any, total: bool = False
) -> tuple[pg.Policy, Callable[[int, int], int]]:
    """A table of rows and columns of which some sums are public."""
    rows, columns = _side(left, change[0]), _side(right, change[1])
    domain = pg.Domain({"l": rows, "r": columns})
    facts: list[Any] = [pg.Total()] if total else []
    for name, known, size in (("l", left, rows), ("r", right, columns)):
        if listed := _labels(known, size):
            facts.append(pg.Cuboid(name) if len(listed) == size else pg.Cells(name, listed))
    return pg.Policy(domain, constraints=facts), lambda a, b: int(a) * columns + int(b)


def degrees(change: Change, known: Any) -> tuple[pg.Policy, Callable[[int, int], int]]:
    """A multigraph with loops of which some degrees are public."""
    order = _side(known, [*change[0], *change[1]])
    network = pg.Network(order, loops=True, multiple=True)
    listed = _labels(known, order)
    facts = [pg.Degrees(listed)] if listed else []
    return pg.Policy(network, constraints=facts), lambda a, b: int(network.pair_index(a, b))


def move_of(make: Any, change: Change, *public: Any) -> pg.Move:
    """The change as a move of a policy with these public facts."""
    policy, index = make(change, *public)
    sums: dict[int, int] = {}
    for a, b, x in zip(*change, strict=True):
        cell = index(a, b)
        sums[cell] = sums.get(cell, 0) + int(x)
    return pg.Move.of(policy, sums)


def written(move: pg.Move) -> list[tuple[int, int, int]]:
    """A move as a list of (first end, second end, value)."""
    domain = move.policy.domain
    ends = domain.pairs(move.cells) if isinstance(domain, pg.Network) else domain.codes(move.cells)
    return list(zip(ends[0].tolist(), ends[1].tolist(), move.amounts.tolist(), strict=True))


def is_minimal(make: Any, change: Change, *public: Any) -> bool:
    """Whether a change is a minimal move."""
    return move_of(make, change, *public).is_minimal


def find_submove(make: Any, change: Change, *public: Any) -> list[tuple[int, int, int]] | None:
    """A smaller move inside a change."""
    found = move_of(make, change, *public).smaller()
    return None if found is None else written(found)


def decompose(make: Any, change: Change, *public: Any) -> list[tuple[int, list[tuple[int, int, int]]]]:
    """Minimal moves of a change and how often each occurs."""
    return [(times, written(part)) for times, part in move_of(make, change, *public).parts()]
