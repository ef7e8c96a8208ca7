"""Minimal moves by the plainest completion procedure, for the verification of small certificates.

Pottier's algorithm in pure Python on integer rows; shares no code with the search. Imports nothing of ours.
"""

from __future__ import annotations

__all__ = ["naive_moves"]

Vector = tuple[int, ...]


STEPS = 15_000_000
"""The procedure is quadratic and worse: after so many comparisons of two vectors it gives up."""


def naive_moves(rows: list[list[int]], width: int) -> list[Vector] | None:
    """List the conformally minimal integer vectors of the kernel of some rows, both signs; None when that takes too many steps.

    Examples
    --------
    >>> sorted(naive_moves([[1, 1]], 2))
    [(-1, 1), (1, -1)]
    """
    basis = _kernel(rows, width)
    known = {vector for b in basis for vector in (tuple(b), tuple(-x for x in b))}
    queue = [(f, g) for f in known for g in known]
    steps = len(queue)
    while queue:
        steps += len(known)
        if steps > STEPS:
            return None
        f, g = queue.pop()
        rest = _normal_form(tuple(a + b for a, b in zip(f, g, strict=True)), known)
        if any(rest):
            opposite = tuple(-x for x in rest)
            known |= {rest, opposite}
            queue += [(rest, h) for h in known] + [(opposite, h) for h in known]
    return [g for g in known if not any(h != g and _below(h, g) for h in known)]


def _below(h: tuple[int, ...], g: tuple[int, ...]) -> bool:
    return all(a * b >= 0 and abs(a) <= abs(b) for a, b in zip(h, g, strict=True))


def _normal_form(vector: tuple[int, ...], known: set[tuple[int, ...]]) -> tuple[int, ...]:
    while any(vector):
        for h in known:
            if any(h) and _below(h, vector):
                vector = tuple(a - b for a, b in zip(vector, h, strict=True))
                break
        else:
            return vector
    return vector


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
