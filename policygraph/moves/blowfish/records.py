"""The neighbour test for two data sets of named records, with the data set that rules a pair out.

Owns :func:`are_neighbours_records` with its :class:`RecordVerdict`, and the search for a repair that condition (a) of
He, Machanavajjhala & Ding (2014), Def. 4.1 asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from policygraph.errors import InputError
from policygraph.moves.blowfish.minimal import differences, length_bound
from policygraph.moves.blowfish.problem import BlowfishProblem, Transition, Vector, blowfish_problem


@dataclass(frozen=True)
class RecordVerdict:
    """Whether two data sets are neighbours, why, and the third data set that shows why not.

    Parameters
    ----------
    neighbours
        The answer.
    reason
        One sentence.
    instead
        A valid data set nearer to the first one, where there is one.
    """

    neighbours: bool
    reason: str
    instead: tuple[int, ...] | None = None


def are_neighbours_records(
    d1: Sequence[int], d2: Sequence[int], matrix: Any, adjacency: Any, *, bottom: bool = False
) -> RecordVerdict:
    """Decide whether (D1, D2) is a neighbour pair under secret pairs and exact public facts.

    The relation is not symmetric: it asks what else D1 could have become.

    Parameters
    ----------
    d1, d2
        The value (vertex) of every record; with ``bottom`` the last vertex stands for an absent record.
    matrix, adjacency, bottom
        As in :func:`~policygraph.moves.blowfish.problem.blowfish_problem`.

    Returns
    -------
    RecordVerdict
        With a third data set where one rules the pair out.

    Raises
    ------
    InputError
        If the data sets differ in length or name a vertex that does not exist.

    Examples
    --------
    >>> line = [[abs(i - j) == 1 for j in range(4)] for i in range(4)]
    >>> are_neighbours_records([1, 3], [2, 0], [[1, 1, 0, 0]], line).neighbours
    True
    >>> are_neighbours_records([1, 2], [2, 1], [[1, 1, 0, 0]], line)
    RecordVerdict(neighbours=False, reason='... a smaller set of secret pairs.', instead=(3, 1))

    Notes
    -----
    Condition (a) asks for a non-empty proper part of the changed secret pairs that the other records can
    complete by staying or moving along non-edges. Sums of constraint columns are carried record by record
    (with the two bits "some pair kept", "some pair dropped"), so the time is the number of distinct sums, not
    the number of data sets.
    """
    return decide(blowfish_problem(matrix, adjacency, bottom=bottom), d1, d2)


def decide(problem: BlowfishProblem, d1: Sequence[int], d2: Sequence[int]) -> RecordVerdict:
    """Decide the same for a problem that has been read; see :func:`are_neighbours_records`."""
    first, second = _values(d1, problem, "d1"), _values(d2, problem, "d2")
    if len(first) != len(second):
        raise InputError(
            f"d1 has {len(first)} records and d2 has {len(second)}: expected the same records in both. Use bottom"
            " for records that appear or vanish.",
            code="blowfish.records",
        )
    changed = [i for i, (x, y) in enumerate(zip(first, second)) if x != y]
    moves = [(first[i], second[i]) for i in changed]
    if any(sum(parts) for parts in zip(*(problem.difference(move) for move in moves))):
        return RecordVerdict(False, "The two data sets differ in a public fact.")
    if not any(problem.adjacency[move] for move in moves):
        return RecordVerdict(False, "No record changes along a secret pair.")
    idle = [i for i in range(len(first)) if first[i] == second[i]]
    repair = find_repair(problem, moves, [first[i] for i in idle])
    if repair is not None:
        third = list(first)
        for place, vertex in zip([*changed, *idle], repair):
            third[place] = vertex
        return RecordVerdict(
            False,
            "Another data set with the same public facts changes a smaller set of secret pairs.",
            tuple(third),
        )
    rest = [i for i in changed if not problem.adjacency[first[i], second[i]]]
    part = zero_part(problem, [(first[i], second[i]) for i in rest])
    if part is not None:
        undone = {rest[j] for j in part}
        third = [x if i in undone else y for i, (x, y) in enumerate(zip(first, second))]
        return RecordVerdict(
            False,
            "The same secret pairs change, with fewer other records, in another data set with the same public"
            " facts.",
            tuple(third),
        )
    return RecordVerdict(True, "The changed secret pairs are minimal, and so are the repairs.")


def matchings(
    first: Sequence[int], second: Sequence[int], absent: int | None = None
) -> Iterator[list[Transition]]:
    """List the ways to match the records of two data sets, each as pairs of an old and a new value, once.

    Parameters
    ----------
    first, second
        The values of the records that are present, in any order.
    absent
        The vertex of an absent record, where records may appear and vanish: any record of the first data set may be absent
        from the second, also while another one appears. None: all records stay.

    Examples
    --------
    >>> list(matchings([0, 0], [0, 1]))
    [[(0, 0), (0, 1)]]
    >>> list(matchings([0], [1], absent=2))
    [[(0, 1)], [(0, 2), (2, 1)]]

    Notes
    -----
    Records that are absent from both data sets are left out: they can only help a third data set, so that with more of them
    fewer pairs are neighbours (docs/explanation/proofs/blowfish-constraints.md, section 8).
    """
    old = sorted(first)
    left = dict(sorted(Counter(second).items()))

    def grow(place: int, chosen: list[Transition]) -> Iterator[list[Transition]]:
        if place == len(old):
            rest = [y for y, n in left.items() for _ in range(n)]
            if absent is not None:
                yield [*chosen, *((absent, y) for y in rest)]
            elif not rest:
                yield list(chosen)
            return
        x = old[place]
        # records of one value are exchangeable: their new values are taken in order
        least = chosen[-1][1] if chosen and chosen[-1][0] == x else -1
        for y in [*left, absent]:
            if y is None or y < least or (y != absent and not left[y]):
                continue
            if y != absent:
                left[y] -= 1
            yield from grow(place + 1, [*chosen, (x, y)])
            if y != absent:
                left[y] += 1

    if absent is not None or len(old) == len(second):
        yield from grow(0, [])


def find_repair(
    problem: BlowfishProblem, moves: Sequence[Transition], idle: Sequence[int] = ()
) -> Vector | None:
    """Find the new values of a data set that keeps some but not all of the changed secret pairs.

    Parameters
    ----------
    problem
        The facts and the secret pairs.
    moves
        The records that change.
    idle
        The values of the records that do not; the third data set may change them along non-edges.

    Returns
    -------
    tuple of int or None
        A new value for each of ``moves`` and then of ``idle``; None if condition (a) holds.

    Examples
    --------
    >>> line = [[abs(i - j) == 1 for j in range(4)] for i in range(4)]
    >>> problem = blowfish_problem([[1, 1, 0, 0]], line)
    >>> find_repair(problem, [(1, 2), (3, 0)]) is None, find_repair(problem, [(1, 2), (2, 1)])
    (True, (3, 1))
    """
    secret = [i for i, move in enumerate(moves) if problem.adjacency[move]]
    if len(secret) < 2:
        return None
    order = [*secret, *(i for i in range(len(moves)) if i not in set(secret))]
    useful = _useful(problem, idle, len(secret))
    sources = [moves[i][0] for i in order] + [idle[i] for i in useful]
    codes = problem.codes(len(sources))
    code = [codes[label] for label in problem.labels]
    choices: list[list[tuple[int, int, int]]] = []
    for place, x in enumerate(sources):
        free = [(codes[c] - code[x], 2, -1 - c) for c in sorted(problem.reach[x])]
        if place < len(secret):
            y = moves[order[place]][1]
            free.append((code[y] - code[x], 1, y))
        else:
            free = [(step, 0, target) for step, _, target in free]
        choices.append(free)
    least = [0] * (len(sources) + 1)
    most = [0] * (len(sources) + 1)
    for place in range(len(sources) - 1, -1, -1):
        steps = [step for step, _, _ in choices[place]]
        least[place] = least[place + 1] + min(steps)
        most[place] = most[place + 1] + max(steps)
    # one layer per record: (sum, bits) -> (previous state, chosen target); bit 1 kept a pair, bit 2 dropped one
    layers: list[dict[tuple[int, int], tuple[tuple[int, int], int]]] = []
    states: list[tuple[int, int]] = [(0, 0)]
    for place, free in enumerate(choices):
        layer: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}
        low, high = -most[place + 1], -least[place + 1]
        settled = place + 1 >= len(secret)
        for state in states:
            total, bits = state
            for step, bit, target in free:
                key = (total + step, bits | bit)
                if low <= key[0] <= high and key not in layer and not (settled and key[1] != 3):
                    layer[key] = (state, target)
        layers.append(layer)
        states = list(layer)
    if (0, 3) not in (layers[-1] if layers else {}):
        return None
    targets = []
    state = (0, 3)
    for layer in reversed(layers):
        state, target = layer[state]
        targets.append(target)
    targets.reverse()
    answer = [_vertex(problem, x, target) for x, target in zip(sources, targets)]
    placed = [0] * len(moves)
    for place, i in enumerate(order):
        placed[i] = answer[place]
    rest = list(idle)
    for i, vertex in zip(useful, answer[len(moves) :]):
        rest[i] = vertex
    return (*placed, *rest)


def _useful(problem: BlowfishProblem, idle: Sequence[int], secret: int) -> list[int]:
    """Pick as many idle records of each kind as a repair can need.

    A repair is a sum of minimal zero-sum multisets; those without a kept secret pair can be undone, so at most
    ``secret - 1`` of them are left, each no longer than the length bound.
    """
    if len(idle) <= 32:
        return list(range(len(idle)))
    most = (secret - 1) * length_bound(differences(problem.class_columns))[0]
    met: dict[tuple[int, frozenset[int]], int] = {}
    kept = []
    for i, vertex in enumerate(idle):
        kind = (problem.labels[vertex], problem.reach[vertex])
        met[kind] = met.get(kind, 0) + 1
        if met[kind] <= most:
            kept.append(i)
    return kept


def zero_part(problem: BlowfishProblem, moves: Sequence[Transition]) -> list[int] | None:
    """Find a non-empty set of transitions that changes no public fact; None if there is none.

    Examples
    --------
    >>> line = [[abs(i - j) == 1 for j in range(4)] for i in range(4)]
    >>> zero_part(blowfish_problem([[1, 1, 0, 0]], line), [(0, 2), (0, 3), (2, 0)])
    [0, 2]
    """
    codes = problem.codes(len(moves))
    made: dict[int, tuple[int, int | None]] = {}
    for i, (x, y) in enumerate(moves):
        step = codes[problem.labels[y]] - codes[problem.labels[x]]
        fresh: dict[int, tuple[int, int | None]] = {step: (i, None)}
        for total in made:
            fresh.setdefault(total + step, (i, total))
        for total, origin in fresh.items():
            made.setdefault(total, origin)
        if 0 in made:
            part = []
            current: int | None = 0
            while current is not None:
                place, current = made[current]
                part.append(place)
            return sorted(part)
    return None


def is_minimal(problem: BlowfishProblem, moves: Sequence[Transition]) -> bool:
    """Say whether transitions keep all public facts and no non-empty proper part of them does.

    Examples
    --------
    >>> line = [[abs(i - j) == 1 for j in range(4)] for i in range(4)]
    >>> problem = blowfish_problem([[1, 1, 0, 0]], line)
    >>> is_minimal(problem, [(1, 2), (3, 0)]), is_minimal(problem, [(1, 2), (3, 0), (2, 3)])
    (True, False)
    """
    total = [sum(parts) for parts in zip(*(problem.difference(move) for move in moves))]
    return bool(moves) and not any(total) and zero_part(problem, moves[:-1]) is None


def _vertex(problem: BlowfishProblem, x: int, target: int) -> int:
    """Turn a chosen target (a vertex, or -1 - class reached by staying or along a non-edge) into a vertex."""
    if target >= 0:
        return target
    label = -1 - target
    if problem.labels[x] == label:
        return x
    return next(z for z in problem.members[label] if not problem.adjacency[x, z])


def _values(data: Sequence[int], problem: BlowfishProblem, name: str) -> tuple[int, ...]:
    """Read a data set."""
    answer = tuple(int(v) for v in data)
    wrong = [v for v in answer if not 0 <= v < problem.vertices]
    if wrong:
        raise InputError(
            f"{name} has a record at {wrong[0]}: expected a vertex from 0 to {problem.vertices - 1}.",
            code="blowfish.records",
            vertex=wrong[0],
        )
    return answer
