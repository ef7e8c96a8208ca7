"""Literal, slow readings of the three strengths; they share no code with the library.

Everything here lists integer vectors one by one. Use it on a handful of cells only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement, product

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


@lru_cache(maxsize=64)
def _additions(matrix: tuple[Vector, ...], cells: int, most: int) -> dict[Vector, list[Vector]]:
    """All multisets of at most so many added records, by what they add to the margins."""
    found: dict[Vector, list[Vector]] = {}
    for count in range(most + 1):
        for records in combinations_with_replacement(range(cells), count):
            margin = tuple(sum(row[j] for j in records) for row in matrix)
            found.setdefault(margin, []).append(records)
    return found


def alternatives(
    matrix: Sequence[Sequence[int]],
    table: Sequence[int],
    most: int,
    capacity: int | None = None,
    most_added: int | None = None,
) -> list[Vector]:
    """All changes of at most so many records that lead from the table to a valid one.

    ``most_added`` saves time where it follows from the matrix, as half of all with a known total.
    """
    rows = tuple(tuple(int(a) for a in row) for row in matrix)
    added = _additions(rows, len(table), most if most_added is None else most_added)
    found = []
    for removed in product(*(range(x + 1) for x in table)):
        if sum(removed) > most:
            continue
        margin = tuple(sum(a * r for a, r in zip(row, removed, strict=True)) for row in rows)
        for records in added.get(margin, ()):
            change = [-r for r in removed]
            for j in records:
                change[j] += 1
            if sum(removed) + len(records) <= most and fits(table, change, capacity):
                found.append(tuple(change))
    return found


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
    shorter = alternatives(matrix, table, size(move) - 1, capacity)
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
