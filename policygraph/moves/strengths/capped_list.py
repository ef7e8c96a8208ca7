"""Minimal zero sums of distinct columns with at most so many records on each side.

Owns the join of equal sums that ``strengths_capped`` spreads over the cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from math import comb

import numpy as np
import numpy.typing as npt

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.exact import brief
from policygraph.moves.strengths.columns import Ints, linear_hash

MOST_SUMS = 2_000_000
"""Multisets of columns that are held at once."""


MOST_MATCHES = 20_000_000
"""Pairs of multisets with equal sums that are looked at."""

FEW_RECORDS = 10
"""Up to so many records the parts of a move are compared directly; beyond it smaller moves are looked for in it."""

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Limits:
    """Most moves and most work of a listing.

    Examples
    --------
    >>> Limits(10).check(10)
    """

    moves: int | None = None
    effort: Effort = field(default_factory=Effort)

    def check(self, found: int, work: int = 0) -> None:
        """Count work, and refuse to go on when a limit is passed."""
        self.effort.spend(work)
        if self.effort.done:
            raise RefusedError(
                f"Not all moves under the cap were listed: {self.effort.ended_by}. Allow more effort, lower the cap, "
                "or ask for a bound.",
                code="moves.cap-deadline",
                found=found,
            )
        if self.moves is not None and found > self.moves:
            raise RefusedError(
                f"More than {self.moves} moves under the cap. Raise max_moves, lower the cap, or ask for a bound.",
                code="moves.cap-moves",
                found=found,
            )


def sums_under(columns: int, cap: int, most: int = MOST_SUMS) -> int:
    """Count the multisets of at most ``cap`` columns, at least one; beyond ``most`` some number above it.

    Examples
    --------
    >>> sums_under(3, 2)
    9
    >>> sums_under(20_000, 10**9) > MOST_SUMS
    True
    """
    count = 1
    for i in range(1, min(columns, cap) + 1):
        # (a + 1) (a + 2) ... (a + i) / i! with a the larger of both is whole and grows with i
        count = count * (max(columns, cap) + i) // i
        if count - 1 > most:
            break
    return count - 1


def too_many_sums(columns: int, cap: int) -> RefusedError:
    """Say that a listing is not begun."""
    return RefusedError(
        f"{columns:,} distinct columns and a cap of {brief(cap)} make more than {MOST_SUMS:,} sums, too many to list. "
        "Lower the cap, reduce the table, or ask for a bound.",
        code="moves.cap-sums",
    )


def class_moves(
    columns: Ints, cap: int, balanced: bool, limits: Limits
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """List minimal moves of distinct non-zero columns as (removed, added) multisets, fewer records first.

    Examples
    --------
    >>> list(class_moves(np.array([[1, 0], [1, 1], [1, 2]]), 3, True, Limits()))
    [((0, 2), (1, 1))]

    Raises
    ------
    RefusedError
        When there are too many sums or pairs of equal sums, or a limit is passed.
    """
    count = len(columns)
    if count == 0:
        return
    if sums_under(count, cap) > MOST_SUMS:
        raise too_many_sums(count, cap)
    hashes = linear_hash(columns)
    sides = []
    for s in range(cap + 1):
        limits.check(0, comb(count + s - 1, s) * (s + 2) // 4)
        listed = list(combinations_with_replacement(range(count), s))
        picked = np.array(listed, dtype=np.int32).reshape(len(listed), s)
        sides.append(_Side(picked, hashes))
    budget = MOST_MATCHES
    found: list[tuple[list[int], list[int]]] = []
    for b in range(1, cap + 1):
        for a in range(b + 1):
            if balanced and a != b:
                continue
            for left, right, looked in _matches(sides[a], sides[b], a == b):
                budget -= looked
                limits.check(0, 50 + looked * (a + b + 1) // 20)
                if budget < 0:
                    raise RefusedError(
                        f"More than {MOST_MATCHES} pairs of equal sums under a cap of {cap}. Lower the cap, reduce "
                        "the table, or ask for a bound.",
                        code="moves.cap-matches",
                    )
                first, second = sides[a].picked[left], sides[b].picked[right]
                if a + b <= FEW_RECORDS:
                    limits.check(0, 10 * (1 << (a + b)) + len(first) * (1 << (a + b)) // 100)
                    good = _minimal(columns, hashes, first, second)
                else:
                    good = _holds_none(columns, first, second, found, limits)
                for r, s in zip(first[good].tolist(), second[good].tolist()):
                    found.append((r, s))
                    limits.effort.spend(3)
                    yield tuple(r), tuple(s)


class _Side:
    """Multisets of one size, in the order of the hashes of their sums."""

    def __init__(self, picked: npt.NDArray[np.int32], hashes: npt.NDArray[np.uint64]) -> None:
        sums: npt.NDArray[np.uint64] = hashes[picked].sum(axis=1, dtype=np.uint64)
        order = np.argsort(sums, kind="stable")  # the order of equal sums must not depend on the machine
        self.picked = picked[order]
        self.sums = sums[order]


def _matches(
    left: _Side, right: _Side, same: bool, most: int = 1 << 16
) -> Iterator[tuple[Indices, Indices, int]]:
    """Positions with equal hashes and no common column, in chunks; each unordered pair once when both sides are one."""
    start = np.searchsorted(right.sums, left.sums, side="left")
    if same:
        start = np.arange(1, len(left.sums) + 1)
    end = np.searchsorted(right.sums, left.sums, side="right")
    many = np.maximum(end - start, 0)
    ends = np.cumsum(many)
    position = 0
    while position < len(many):
        stop = int(np.searchsorted(ends, (ends[position - 1] if position else 0) + most, side="right"))
        stop = max(stop, position + 1)
        here = np.repeat(np.arange(position, stop), many[position:stop])
        offset = np.arange(len(here)) - np.repeat(
            np.concatenate([[0], np.cumsum(many[position:stop])[:-1]]), many[position:stop]
        )
        there = start[here] + offset
        apart = np.ones(len(here), dtype=bool)
        for x in range(left.picked.shape[1]):
            for y in range(right.picked.shape[1]):
                apart &= left.picked[here, x] != right.picked[there, y]
        yield here[apart], there[apart], len(here)
        position = stop


def _minimal(
    columns: Ints, hashes: npt.NDArray[np.uint64], first: npt.NDArray[np.int32], second: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Rows where both sides have equal sums and no other parts do; hashes decide "no", sums decide "yes"."""
    good: npt.NDArray[np.bool_] = (columns[first].sum(axis=1) == columns[second].sum(axis=1)).all(axis=1)
    parts = [_part_sums(hashes, side) for side in (first, second)]
    whole = [p.shape[1] - 1 for p in parts]
    for i in range(whole[0] + 1):
        for j in range(whole[1] + 1):
            if (i, j) in ((0, 0), (whole[0], whole[1])):
                continue
            suspect = np.flatnonzero(good & (parts[0][:, i] == parts[1][:, j]))
            if len(suspect):
                a = columns[first[suspect][:, _bits(i, first.shape[1])]].sum(axis=1)
                b = columns[second[suspect][:, _bits(j, second.shape[1])]].sum(axis=1)
                good[suspect[(a == b).all(axis=1)]] = False
    return good


def _holds_none(
    columns: Ints,
    first: npt.NDArray[np.int32],
    second: npt.NDArray[np.int32],
    found: list[tuple[list[int], list[int]]],
    limits: Limits,
) -> npt.NDArray[np.bool_]:
    """Rows with equal sums that contain none of the smaller minimal moves, which are all found already."""
    good: npt.NDArray[np.bool_] = (columns[first].sum(axis=1) == columns[second].sum(axis=1)).all(axis=1)
    size = first.shape[1] + second.shape[1]
    here = np.flatnonzero(good)
    counts = np.zeros((2, len(columns), len(here)), dtype=np.int16)
    for side, picked in enumerate((first[here], second[here])):
        for x in range(picked.shape[1]):
            np.add.at(counts[side], (picked[:, x], np.arange(len(here))), 1)
    clear = np.ones(len(here), dtype=bool)
    limits.check(0, len(found) * (10 + len(here) // 100))
    for r, s in found:
        if len(r) + len(s) < size:
            for one, other in ((r, s), (s, r)):
                inside = clear.copy()
                for side, part in enumerate((one, other)):
                    for c, times in Counter(part).items():
                        inside &= counts[side, c] >= times
                clear &= ~inside
    good[here] = clear
    return good


def _bits(mask: int, width: int) -> list[int]:
    return [x for x in range(width) if mask >> x & 1]


def _part_sums(hashes: npt.NDArray[np.uint64], side: npt.NDArray[np.int32]) -> npt.NDArray[np.uint64]:
    sums = np.zeros((len(side), 1), dtype=np.uint64)
    for x in range(side.shape[1]):
        sums = np.hstack([sums, sums + hashes[side[:, x]][:, None]])
    return sums
