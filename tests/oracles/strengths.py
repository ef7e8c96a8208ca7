"""Literal, slow readings of the three strengths; they share no code with the library.

Everything here lists integer vectors one by one. Use it on a handful of cells only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

Vector = tuple[int, ...]


def in_kernel(matrix: Sequence[Sequence[int]], vector: Sequence[int]) -> bool:
    return all(sum(int(a) * int(v) for a, v in zip(row, vector, strict=True)) == 0 for row in matrix)


def size(vector: Sequence[int]) -> int:
    """Record changes: single additions and removals."""
    return sum(abs(v) for v in vector)


def vectors_up_to(cells: int, changes: int) -> Iterator[Vector]:
    """All integer vectors with at most so many record changes."""
    if cells == 0:
        yield ()
        return
    for first in range(-changes, changes + 1):
        for rest in vectors_up_to(cells - 1, changes - abs(first)):
            yield (first, *rest)


def kernel_up_to(matrix: Sequence[Sequence[int]], cells: int, changes: int) -> list[Vector]:
    """All non-zero kernel vectors with at most so many record changes."""
    return [v for v in vectors_up_to(cells, changes) if any(v) and in_kernel(matrix, v)]


def below(small: Sequence[int], large: Sequence[int]) -> bool:
    """``small`` has nowhere another sign and is nowhere larger."""
    return all(s * g >= 0 and abs(s) <= abs(g) for s, g in zip(small, large, strict=True))


def minimal_up_to(matrix: Sequence[Sequence[int]], cells: int, changes: int) -> list[Vector]:
    """Minimal moves with at most so many record changes, both signs."""
    kernel = kernel_up_to(matrix, cells, changes)
    return [g for g in kernel if not any(h != g and below(h, g) for h in kernel)]


def is_minimal(matrix: Sequence[Sequence[int]], move: Sequence[int]) -> bool:
    """No other non-zero kernel vector lies between 0 and the move."""
    ranges = [range(min(0, v), max(0, v) + 1) for v in move]
    parts = [h for h in product(*ranges) if any(h) and in_kernel(matrix, h)]
    return parts == [tuple(int(v) for v in move)]


def is_markov(matrix: Sequence[Sequence[int]], move: Sequence[int]) -> bool:
    return is_minimal(matrix, move) and size(move) <= 4 and all(abs(v) <= 1 for v in move)


def fits(table: Sequence[int], move: Sequence[int], capacity: int | None) -> bool:
    after = [x + v for x, v in zip(table, move, strict=True)]
    return all(v >= 0 and (capacity is None or v <= capacity) for v in (*table, *after))


def is_positive_from(
    matrix: Sequence[Sequence[int]], table: Sequence[int], move: Sequence[int], capacity: int | None = None
) -> bool:
    """The definition of theory section 4, read from the first table only."""
    if not is_minimal(matrix, move):
        return False
    removed = [j for j, v in enumerate(move) if v < 0]
    added = [j for j, v in enumerate(move) if v > 0]
    if not removed or not added:
        return True
    shorter = [
        m for m in kernel_up_to(matrix, len(move), size(move) - 1) if fits(table, m, capacity)
    ]
    return any(not any(m[t] < 0 < m[u] for m in shorter) for t in removed for u in added)


def is_positive_pair(
    matrix: Sequence[Sequence[int]], table: Sequence[int], move: Sequence[int], capacity: int | None = None
) -> bool:
    """Positive from either of the two tables, or a Markov move."""
    other = [x + v for x, v in zip(table, move, strict=True)]
    back = [-v for v in move]
    return (
        is_markov(matrix, move)
        or is_positive_from(matrix, table, move, capacity)
        or is_positive_from(matrix, other, back, capacity)
    )


def weight(query: Sequence[Sequence[int]] | None, move: Sequence[int], norm: str) -> int:
    """L1 norm, or the square of the L2 norm, of the query's answer to a move."""
    answer = (
        list(move)
        if query is None
        else [sum(int(w) * int(v) for w, v in zip(row, move, strict=True)) for row in query]
    )
    return sum(abs(v) for v in answer) if norm == "l1" else sum(v * v for v in answer)
