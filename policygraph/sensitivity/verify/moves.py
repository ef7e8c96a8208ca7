"""Minimal moves by the plainest completion procedure, for the verification of small certificates.

Pottier's algorithm in pure Python on integer rows; shares no code with the search.
"""

from __future__ import annotations

from heapq import heappop, heappush

__all__ = ["naive_moves"]

Vector = tuple[int, ...]


STEPS = 15_000_000
"""The procedure is quadratic and worse: after so many comparisons of two vectors it gives up."""


def naive_moves(rows: list[list[int]], width: int, most: int | None = None) -> list[Vector] | None:
    """List the conformally minimal integer vectors of the kernel of some rows, both signs; None when that takes too many steps.

    Examples
    --------
    >>> sorted(naive_moves([[1, 1]], 2))
    [(-1, 1), (1, -1)]

    Notes
    -----
    A set of kernel vectors that spans the kernel and is closed under sign holds all minimal ones as soon as every sum of two of
    them reduces to zero by the set (Pottier 1996). A sum without cancellation reduces at once, and a pair and its opposite
    reduce alike, so that these are not looked at. Short sums come first.
    """
    known: list[Vector] = []
    queue: list[tuple[int, Vector]] = []
    steps = 0

    def add(vector: Vector) -> None:
        for other in known:
            for one in (other, tuple(-x for x in other)):
                if any(a * b < 0 for a, b in zip(vector, one, strict=True)):
                    made = tuple(a + b for a, b in zip(vector, one, strict=True))
                    heappush(queue, (sum(map(abs, made)), made))
        known.append(vector)

    for vector in _kernel(rows, width):
        add(tuple(vector))
        steps += 2 * len(known)
    while queue:
        rest = heappop(queue)[1]
        while any(rest):
            steps += 2 * len(known)
            if steps > (STEPS if most is None else most):
                return None
            part = next((h for g in known for h in (g, _opposite(g)) if _below(h, rest)), None)
            if part is None:
                add(rest)
                break
            rest = tuple(a - b for a, b in zip(rest, part, strict=True))
    both = [h for g in known for h in (g, _opposite(g))]
    return [g for g in both if not any(h != g and _below(h, g) for h in both)]


def _opposite(g: Vector) -> Vector:
    return tuple(-x for x in g)


def _below(h: Vector, g: Vector) -> bool:
    return all(0 <= a <= b or b <= a <= 0 for a, b in zip(h, g, strict=True))


def _kernel(rows: list[list[int]], width: int) -> list[list[int]]:
    """Integer kernel by unimodular column operations."""
    columns = [[row[j] for row in rows] + [int(i == j) for i in range(width)] for j in range(width)]
    start = 0
    for r in range(len(rows)):
        while True:
            live = [j for j in range(start, width) if columns[j][r]]
            if len(live) <= 1:
                break
            pivot = min(live, key=lambda j: abs(columns[j][r]))
            for j in live:
                if j != pivot:
                    times = columns[j][r] // columns[pivot][r]
                    columns[j] = [a - times * b for a, b in zip(columns[j], columns[pivot], strict=True)]
        if live:
            columns[start], columns[live[0]] = columns[live[0]], columns[start]
            start += 1
    return [column[len(rows) :] for column in columns[start:]]
