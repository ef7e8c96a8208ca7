"""The published bound by the graph over the constraints, with its conditions checked and its repaired form.

Owns :func:`published_bound`: He, Machanavajjhala & Ding (2014), section 8, twice the longest cycle or path in the
graph over sparse count queries. Proofs and counter-examples: ``docs/explanation/proofs/blowfish-constraints.md``, section 7.
No part of the package: readers of the paper meet its number in the tests and the docs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.moves.blowfish.problem import BlowfishProblem, Vector, blowfish_problem

__all__ = ["PublishedBound", "published_bound"]

_EXACT_QUERIES = 14


@dataclass(frozen=True)
class PublishedBound:
    """The number a reader of the paper computes, and the one that is proved.

    Parameters
    ----------
    published
        2 max(alpha, xi) over the secret pairs; None if the counts are not sparse for the secret pairs.
    cycle, path
        alpha and xi of that graph (upper bounds of them when ``lengths_exact`` is False).
    proved
        2 max(alpha, xi) over **all** pairs of values; None if the counts are not sparse for all pairs.
    lengths_exact
        Whether longest cycles and paths were computed, or bounded by the number of queries.
    reason
        What holds.
    """

    published: int | None
    cycle: int | None
    path: int | None
    proved: int | None
    lengths_exact: bool
    reason: str

    @property
    def safe(self) -> bool:
        """Whether the published number itself is proved to be an upper bound of the L1 sensitivity."""
        return self.published is not None and self.proved is not None and self.published >= self.proved


def published_bound(matrix: Any, adjacency: Any, *, bottom: bool = False) -> PublishedBound:
    """Compute the sufficient bound for sparse count queries on the histogram, L1.

    Parameters
    ----------
    matrix
        0/1 rows, each a count query; equal rows are taken once.
    adjacency, bottom
        As in :func:`~policygraph.moves.blowfish.problem.blowfish_problem`.

    Returns
    -------
    PublishedBound
        Use ``proved``; ``published`` is there to explain the difference.

    Raises
    ------
    InputError
        If a row is not a count (entries other than 0 and 1).

    Examples
    --------
    Counts of {0, 1} and {2, 3} on a line of 6. The published graph misses the repair along a non-edge; the exact
    value is 6.

    >>> line = [[abs(i - j) == 1 for j in range(6)] for i in range(6)]
    >>> bound = published_bound([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]], line)
    >>> bound.published, bound.proved, bound.safe
    (4, 6, False)

    Notes
    -----
    Counts are sparse for a set of pairs when each pair raises at most one count and lowers at most one. Take the
    counts and two ends as vertices and an arc from the lowered to the raised count for each pair of values (the
    missing side is an end). If the counts are sparse for *all* pairs, a minimal multiset of transitions is a simple
    cycle or a simple path between the ends, and every record on it changes two cells by one.
    """
    problem = blowfish_problem(matrix, adjacency, bottom=bottom)
    rows = list(dict.fromkeys(zip(*problem.columns)))
    if any(v not in (0, 1) for row in rows for v in row):
        raise InputError(
            "matrix: expected count queries (entries 0 and 1); use longest_blowfish for other facts.",
            code="blowfish.not-counts",
        )
    columns = [tuple(row[m[0]] for row in rows) for m in problem.members]
    size = len(rows)
    if not problem.adjacency.any():
        return PublishedBound(0, 0, 0, 0, True, "Without secret pairs no two data sets are neighbours.")
    secret = _arcs(columns, _joined(problem))
    everything = [(c, e) for c in range(len(columns)) for e in range(len(columns)) if c != e]
    whole = _arcs(columns, everything)
    exact = size <= _EXACT_QUERIES
    cycle, path = _longest(secret, size, exact) if secret is not None else (None, None)
    published = None if cycle is None or path is None else 2 * max(cycle, path)
    proved = None if whole is None else 2 * max(_longest(whole, size, exact))
    if proved is None:
        reason = (
            "Some pair of values that is not secret changes several counts; a repair along it is not a step of the"
            " graph, so nothing is proved by it."
        )
    elif published is None or published < proved:
        reason = "Proved for the graph of all pairs of values; the graph of the secret pairs misses repairs."
    else:
        reason = "The graph of the secret pairs is as long as the graph of all pairs, so both bounds hold."
    return PublishedBound(published, cycle, path, proved, exact, reason)


def _joined(problem: BlowfishProblem) -> list[tuple[int, int]]:
    """Ordered pairs of different classes with a secret pair between them."""
    labels = np.array(problem.labels, dtype=np.int64)
    xs, ys = np.nonzero(problem.adjacency)
    pairs = np.unique(np.stack([labels[xs], labels[ys]]), axis=1)
    return [(int(c), int(e)) for c, e in pairs.T if c != e]


def _arcs(columns: list[Vector], pairs: Iterable[tuple[int, int]]) -> set[tuple[int, int]] | None:
    """Arcs lowered -> raised, -1 for the missing side; None if a pair changes too many counts."""
    arcs = {(-1, -1)}
    for c, e in pairs:
        raised = [q for q, (a, b) in enumerate(zip(columns[c], columns[e])) if b > a]
        lowered = [q for q, (a, b) in enumerate(zip(columns[c], columns[e])) if b < a]
        if len(raised) > 1 or len(lowered) > 1:
            return None
        arcs.add((lowered[0] if lowered else -1, raised[0] if raised else -1))
    return arcs


def _longest(arcs: set[tuple[int, int]], size: int, exact: bool) -> tuple[int, int]:
    """Longest simple cycle among the counts, and longest simple path from end to end, in arcs."""
    between = [(a, b) for a, b in arcs if a >= 0 and b >= 0]
    starts = {b for a, b in arcs if a < 0 <= b}
    ends = {a for a, b in arcs if b < 0 <= a}
    if not exact:
        return (size if between else 0), (size + 1 if starts else 1)
    after = [0] * size
    for a, b in between:
        after[a] |= 1 << b
    # layers of (visited set, last vertex) for paths from a fixed least vertex (cycles) or from the end
    cycle = max((_grow({(1 << s, s)}, after, -1 << s, {s})[1] for s in range(size)), default=0)
    path = _grow({(1 << s, s) for s in starts}, after, -1, ends)[0]
    return cycle, max(1, path)


def _grow(layer: set[tuple[int, int]], after: list[int], allowed: int, goals: set[int]) -> tuple[int, int]:
    """Longest path (in arcs, with one before and one behind) to a goal, and longest cycle back to it."""
    path = cycle = 0
    length = 1
    while layer:
        if any(last in goals for _, last in layer):
            path = length + 1
        if length >= 2 and any(after[last] >> goal & 1 for _, last in layer for goal in goals):
            cycle = length
        wider = set()
        for visited, last in layer:
            free = after[last] & ~visited & allowed
            while free:
                bit = free & -free
                free ^= bit
                wider.add((visited | bit, bit.bit_length() - 1))
        layer, length = wider, length + 1
    return path, cycle
