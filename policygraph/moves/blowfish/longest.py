"""Policy graph and exact public facts together: the moves of He, Machanavajjhala & Ding (2014), Def. 4.1.

Open this file first. It owns :func:`blowfish_moves` (list them) and :func:`longest_blowfish` (how much can one
change a query). ``problem`` checks the input, ``records`` tests a pair of data sets, ``minimal`` lists zero-sum multisets,
``realise`` chooses cells, ``disjoint`` treats disjoint counts on huge domains. Proofs:
``docs/explanation/proofs/blowfish-constraints.md``.

Two data sets of named records are neighbours iff both meet the facts, the set T of secret pairs in which they
differ is not empty, and no third data set that meets the facts (a) differs from the first in a non-empty proper part
of T, or (b) differs in the same T and in fewer other records. Other records may change along non-edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.exact import brief
from policygraph.moves.blowfish.disjoint import ClassFacts, longest_disjoint, read_cap
from policygraph.moves.blowfish.minimal import (
    affinely_independent,
    block_bound,
    differences,
    minimal_sums,
    simple_cycles,
)
from policygraph.moves.blowfish.problem import (
    BlowfishMove,
    BlowfishProblem,
    Transition,
    Vector,
    blowfish_problem,
    capped_ceiling,
    capped_changes,
    within,
)
from policygraph.moves.blowfish.realise import Best, Realiser, longest_relation, single_relation
from policygraph.moves.blowfish.records import RecordVerdict, are_neighbours_records
from policygraph.moves.bracket import Bracket

__all__ = [
    "BlowfishMove",
    "ClassFacts",
    "RecordVerdict",
    "are_neighbours_records",
    "blowfish_moves",
    "longest_blowfish",
    "longest_disjoint",
]


def blowfish_moves(
    matrix: Any,
    adjacency: Any,
    *,
    bottom: bool = False,
    at_most_records: int | None = None,
    effort: Effort | None = None,
    max_moves: int | None = None,
) -> Iterator[BlowfishMove]:
    """List the distinct non-zero histogram changes between neighbours, each with records that make it.

    Parameters
    ----------
    matrix, adjacency, bottom
        As in :func:`~policygraph.moves.blowfish.problem.blowfish_problem`.
    at_most_records
        Only neighbours whose histograms differ by at most so many added and at most so many removed records.
    effort
        Work that may be spent; None for no end.
    max_moves
        Number of moves allowed.

    Yields
    ------
    BlowfishMove
        Short changes before long ones, in bands of lengths.

    Raises
    ------
    RefusedError
        When the effort or the number is used up before the list is complete: the list so far is no basis for a
        sensitivity (codes ``blowfish.deadline``, ``blowfish.max-moves``).

    Examples
    --------
    >>> line = [[abs(i - j) == 1 for j in range(4)] for i in range(4)]
    >>> moves = [move.dense(4) for move in blowfish_moves([[1, 1, 0, 0]], line)]
    >>> len(moves), max(sum(map(abs, m)) for m in moves)
    (6, 4)
    """
    problem = blowfish_problem(matrix, adjacency, bottom=bottom)
    work, cap = Effort.of(effort), read_cap(at_most_records)
    realiser = Realiser(problem, "l1", per_class=problem.vertices)
    seen: set[Vector] = set()
    possible = None if cap is None else capped_changes(problem, cap)
    for multiset in _multisets(problem, None, work):
        if possible is not None and len(seen) == len(possible):
            return  # no other change is within the cap
        for transitions in realiser.all_moves(multiset, work):
            change = problem.histogram_change(transitions)
            if change in seen or not any(change) or not within(change, cap):
                continue
            if max_moves is not None and len(seen) >= max_moves:
                raise RefusedError(
                    f"max_moves={max_moves}: there are more moves. Raise it, or cap the records that are added and removed.",
                    code="blowfish.max-moves",
                )
            seen.add(change)
            yield _witness(problem, transitions)


def longest_blowfish(
    matrix: Any,
    adjacency: Any,
    *,
    bottom: bool = False,
    query: Any | None = None,
    norm: str = "l1",
    at_most_records: int | None = None,
    effort: Effort | None = None,
) -> Bracket[BlowfishMove]:
    """Bracket the largest change of a query between neighbours, over data sets of every size.

    Parameters
    ----------
    matrix, adjacency, bottom, query, norm
        As in :func:`~policygraph.moves.blowfish.problem.blowfish_problem`; for ``"l2"`` the values are
        squares.
    at_most_records
        Count only neighbours whose histograms differ by at most so many added and at most so many removed records. More
        records than that may change: what one adds to a cell and another removes from it does not show.
    effort
        Work that may be spent; without it the search goes on until the value is exact.

    Returns
    -------
    Bracket
        ``lower`` with a witness, ``upper`` proved.

    Raises
    ------
    InputError
        If the input does not fit together.

    Examples
    --------
    The count of {0, 1} is public; only steps between neighbours on a line are secret. Edges alone would give 2.

    >>> line = [[abs(i - j) == 1 for j in range(4)] for i in range(4)]
    >>> longest_blowfish([[1, 1, 0, 0]], line).upper
    4

    Notes
    -----
    Neighbours correspond to minimal zero-sum multisets of transitions that contain a secret pair and meet (a)
    (theorem 1). Those multisets are finitely many and bounded in length, so the value has settled when they have all
    been looked at; where that is not feasible, length times the largest change by one record is an upper bound. A cap
    leaves those realisations whose histogram change is within it, whatever their number of records; the largest answer
    over all changes within the cap that keep the facts bounds them from above.
    """
    problem = blowfish_problem(matrix, adjacency, bottom=bottom, query=query, norm=norm)
    work, cap = Effort.of(effort), read_cap(at_most_records)
    if not problem.adjacency.any():
        return Bracket(0, 0, None, "no secret pairs", "Without secret pairs no two data sets are neighbours.")
    points = problem.class_columns
    single = _single(problem, norm)
    if len(points) == 1:
        return single
    ceiling = None if cap is None else capped_ceiling(problem, norm, cap)
    if ceiling is not None and single.lower == ceiling[0]:
        return Bracket(ceiling[0], single.lower, single.witness, "cap on records", ceiling[1])
    cycles = affinely_independent(points)
    known: Bracket[BlowfishMove] | None = None
    if cycles and query is None:
        known = longest_disjoint(_facts(problem), at_most_records=cap, effort=work)
        if known.exact or (work.done and ceiling is None):
            return known
    relation = single_relation(problem)
    if relation is not None:
        known = longest_relation(problem, relation, norm, cap, work.share(2, 5))
        if known.exact:
            return known
    if ceiling is None:
        return _search(problem, norm, None, work, known, single)
    bound: Bracket[BlowfishMove] = Bracket(ceiling[0], 0, None, "cap on records", ceiling[1])
    known = bound if known is None else _both(known, bound)
    # sets of as many records as the cap are few, and often attain the bound; only if they do not are all sets listed
    short = _search(problem, norm, cap, work.share(3, 10), known, single, longest=cap)
    if short.exact:
        return short
    return _search(problem, norm, cap, work, _both(known, short), single)


def _both(one: Bracket[BlowfishMove], two: Bracket[BlowfishMove]) -> Bracket[BlowfishMove]:
    """The better lower and the better upper value of two brackets of one number."""
    low = one if one.lower >= two.lower else two
    high = two if two.upper < one.upper else one
    return Bracket(high.upper, low.lower, low.witness, high.method, high.reason)


def _search(
    problem: BlowfishProblem,
    norm: str,
    cap: int | None,
    effort: Effort,
    known: Bracket[BlowfishMove] | None,
    single: Bracket[BlowfishMove],
    longest: int | None = None,
) -> Bracket[BlowfishMove]:
    """List the multisets, then realise them from the most promising one down until no better one is left.

    With ``longest`` only multisets of so many records are looked at, and the upper value is the known one.
    """
    realiser = Realiser(problem, norm, cap=cap)
    best = Best()
    if single.witness is not None:
        best = Best(single.lower, _transitions(single.witness))
    if known is not None and known.witness is not None and known.lower > best.value:
        best = Best(known.lower, _transitions(known.witness))
    top = None if known is None else known.upper
    found: list[tuple[int, tuple[Vector, ...]]] = []
    listed = True
    try:
        for multiset in _multisets(problem, longest, effort.share(2, 5)):
            bound = realiser.bound(multiset)
            found.append((bound if top is None else min(bound, top), multiset))
    except RefusedError:
        listed = False
    unlisted = None
    if not listed and longest is None:
        unlisted = _length_times_change(problem, realiser, norm, effort.share(1, 2))
    found.sort(reverse=True)
    if not listed:
        # a good witness first: a short look at some multisets of every length
        for _, multiset in found[:: -max(1, len(found) // 256)]:
            realiser.improve(multiset, best, effort.share(1, 100))
    ceiling = best.value
    for bound, multiset in found:
        if bound <= best.value:
            break
        if effort.done or not (realiser.improve(multiset, best, effort) and realiser.complete):
            # what was not searched to the end counts with its bound
            ceiling = max(ceiling, bound)
            if effort.done:
                break
    upper, method = max(ceiling, best.value), "exact search"
    reason = "All minimal zero-sum multisets were listed and the best choice of cells in each was found."
    if unlisted is not None:
        upper, method, reason = unlisted
        upper, reason = max(upper, best.value), f"{reason[:-1]}; {effort.ended_by}."
    elif upper > best.value:
        method = "listed multisets"
        reason = "All minimal zero-sum multisets were listed; each record changes at most its part."
        if effort.done:
            reason = f"{reason[:-1]}; {effort.ended_by}."
    if known is not None and known.upper < upper:
        upper, method, reason = known.upper, known.method, known.reason
    witness = None if best.moves is None else _witness(problem, best.moves)
    if longest is not None and known is not None:
        # longer multisets were not looked at
        upper, method, reason = known.upper, known.method, known.reason
    return Bracket(max(0, upper), max(0, best.value), witness, method, reason)


def _length_times_change(
    problem: BlowfishProblem, realiser: Realiser, norm: str, effort: Effort
) -> tuple[int, str, str]:
    """Bound a search that did not end: the longest multiset times the largest change by one record."""
    steps = differences(problem.class_columns)
    length, argument = block_bound(steps, effort)
    heaviest = max(steps, key=realiser.heaviest)
    upper = realiser.bound([heaviest]) * (length if norm == "l1" else length * length)
    return (
        upper,
        "length bound",
        f"At most {brief(length)} records change ({argument}), each changes the answer by a bounded part.",
    )


def _multisets(problem: BlowfishProblem, longest: int | None, effort: Effort) -> Iterator[tuple[Vector, ...]]:
    """List the minimal zero-sum multisets of at most ``longest`` constraint differences, the zero difference alone first."""
    points = problem.class_columns
    yield ((0,) * len(points[0]),)
    if affinely_independent(points):
        for cycle in simple_cycles(len(points), longest):
            effort.spend(2 + len(cycle) * (1 + len(points[0]) // 8))
            if effort.done:
                raise RefusedError(
                    f"Not all cycles were listed: {effort.ended_by}.", code="blowfish.deadline"
                )
            yield tuple(tuple(b - a for a, b in zip(points[c], points[e])) for c, e in cycle)
        return
    steps = differences(points)
    for chosen in minimal_sums(steps, longest=longest, effort=effort):
        yield tuple(steps[j] for j in chosen)


def _single(problem: BlowfishProblem, norm: str) -> Bracket[BlowfishMove]:
    """One record changes along a secret pair inside its class: exact, and all there is without constraints."""
    labels = np.array(problem.labels, dtype=np.int64)
    best = Best()
    for x in range(problem.vertices):
        for y in np.nonzero(problem.adjacency[x] & (labels == labels[x]))[0].tolist():
            if y > x:
                value = problem.value([(x, y)], norm)
                if value > best.value:
                    best = Best(value, ((x, y),))
    witness = None if best.moves is None else _witness(problem, best.moves)
    value = max(0, best.value)
    return Bracket(
        value, value, witness, "edges", "A single record changes along a secret pair; all were tried."
    )


def _facts(problem: BlowfishProblem) -> ClassFacts:
    """Describe a small domain in the terms of a huge one."""
    labels = problem.labels
    xs, ys = np.nonzero(np.triu(problem.adjacency))
    pairs = list(zip(xs.tolist(), ys.tolist()))
    has_bottom = problem.vertices > problem.cells
    return ClassFacts(
        sizes=tuple(sum(v < problem.cells for v in members) for members in problem.members),
        members=lambda label: problem.members[label],
        is_edge=lambda x, y: bool(problem.adjacency[x, y]),  # type: ignore[index]
        crossing=lambda: (p for p in pairs if labels[p[0]] != labels[p[1]]),
        inside=lambda: (p for p in pairs if labels[p[0]] == labels[p[1]]),
        label=lambda vertex: labels[vertex],  # type: ignore[call-overload]
        complete=len(pairs) * 2 == problem.vertices * (problem.vertices - 1),
        bottom=problem.cells if has_bottom else None,
        bottom_class=labels[problem.cells] if has_bottom else None,
    )


def _witness(problem: BlowfishProblem, transitions: tuple[Transition, ...]) -> BlowfishMove:
    change = problem.histogram_change(transitions)
    return BlowfishMove(transitions, tuple((cell, v) for cell, v in enumerate(change) if v))


def _transitions(witness: BlowfishMove) -> tuple[Transition, ...]:
    return tuple((int(x), int(y)) for x, y in witness.transitions)  # type: ignore[call-overload]
