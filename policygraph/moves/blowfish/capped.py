"""A cap on the records that two histograms may differ in. Owns :func:`within`, :func:`capped_changes`, :func:`capped_ceiling`.

At most m records are added to the histogram and at most m removed. The records behind such a change can be more than m: a
record that leaves a cell and another that enters it do not show. May import ``blowfish_problem``. Proof:
``docs/explanation/proofs/blowfish-constraints.md``, section 8.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations_with_replacement
from math import comb

from policygraph.moves.blowfish.problem import BlowfishProblem, Vector

__all__ = ["capped_ceiling", "capped_changes", "within"]

_LISTED = 20_000
"""Most multisets of records that are listed."""
_COMPARED = 200_000
"""Most pairs of multisets that are compared."""


def within(change: Iterable[int], cap: int | None) -> bool:
    """Say whether a histogram change adds at most ``cap`` records and removes at most ``cap``.

    Examples
    --------
    >>> within([1, 1, -2], 2), within([1, 1, -2], 1), within([1, 1, -2], None)
    (True, False, True)
    """
    if cap is None:
        return True
    added = removed = 0
    for amount in change:
        if amount > 0:
            added += amount
        else:
            removed -= amount
    return max(added, removed) <= cap


def capped_changes(problem: BlowfishProblem, cap: int) -> set[Vector] | None:
    """List the non-zero histogram changes within a cap that keep the facts; None if they are too many.

    Parameters
    ----------
    problem
        Facts and secret pairs; only the facts matter here.
    cap
        At most so many records added and as many removed.

    Examples
    --------
    >>> from policygraph.moves.blowfish.problem import blowfish_problem
    >>> line = [[abs(i - j) == 1 for j in range(3)] for i in range(3)]
    >>> sorted(capped_changes(blowfish_problem([[0, 1, 0]], line), 1))
    [(-1, 0, 1), (1, 0, -1)]
    """
    if comb(problem.vertices + cap, cap) > _LISTED:
        return None
    # Without bottom both sides have equally many records; with it a side is filled up with absent ones.
    groups: dict[Vector, list[tuple[int, ...]]] = {}
    for records in combinations_with_replacement(range(problem.vertices), cap):
        image = tuple(map(sum, zip(*(problem.columns[v] for v in records))))
        groups.setdefault(image, []).append(records)
    if sum(len(group) ** 2 for group in groups.values()) > _COMPARED:
        return None
    found = {
        problem.histogram_change(list(zip(one, two)))
        for group in groups.values()
        for one in group
        for two in group
    }
    found.discard((0,) * problem.cells)
    return found


def capped_ceiling(problem: BlowfishProblem, norm: str, cap: int) -> tuple[int, str]:
    """Bound the answer over all histogram changes within the cap that keep the facts, edges or not.

    Parameters
    ----------
    problem
        Facts, secret pairs and query.
    norm
        ``"l1"`` or ``"l2"`` (squared).
    cap
        At most so many records added and as many removed.

    Returns
    -------
    tuple of int and str
        The bound and the argument for it.

    Examples
    --------
    >>> from policygraph.moves.blowfish.problem import blowfish_problem
    >>> line = [[abs(i - j) == 1 for j in range(3)] for i in range(3)]
    >>> capped_ceiling(blowfish_problem([[0, 1, 0]], line), "l1", 1)[0]
    2
    """
    listed = capped_changes(problem, cap)
    if listed is not None:
        best = max((_of_change(problem, change, norm) for change in listed), default=0)
        return best, f"All changes of at most {cap} records on each side that keep the facts were listed."
    widest = _widest(problem, norm)
    return (
        widest * (cap if norm == "l1" else cap * cap),
        f"At most {cap} records are added and {cap} removed, each pair changes the answer by a bounded part.",
    )


def _of_change(problem: BlowfishProblem, change: Vector, norm: str) -> int:
    answer: dict[int, int] = {}
    for cell, amount in enumerate(change):
        if amount:
            for row, entry in problem.weight(cell):
                answer[row] = answer.get(row, 0) + amount * entry
    return _norm(answer, norm)


def _norm(answer: dict[int, int], norm: str) -> int:
    return sum(abs(v) for v in answer.values()) if norm == "l1" else sum(v * v for v in answer.values())


def _widest(problem: BlowfishProblem, norm: str) -> int:
    """Largest change by one record added and one removed, or by one of them alone where records come and go."""
    if problem.query is None:
        return 2 if problem.cells > 1 else problem.vertices - problem.cells
    if problem.vertices**2 <= _COMPARED:
        pairs = ((x, y) for x in range(problem.vertices) for y in range(x + 1, problem.vertices))
        return max((problem.value([pair], norm) for pair in pairs), default=0)
    most = max(_norm(dict(problem.weight(cell)), norm) for cell in range(problem.cells))
    # |u - v| <= |u| + |v|; the square of that is at most 4 times the larger square
    return 2 * most if norm == "l1" else 4 * most
