"""From minimal changes of the public sums to the records that make them, and the best of those.

Owns :class:`Realiser`: for a minimal zero-sum multiset of constraint differences it lists, or maximises over, the choices of
cells that contain a secret pair and meet condition (a) of the definition. Owns :func:`longest_relation` for facts that tell
all cells apart up to one relation (all (d-1)-way margins of d binary attributes, or both margins of a 2 x 2 table): the only
possible change is then that relation (``docs/explanation/proofs/blowfish-constraints.md``, section 6 (vi)).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import isqrt

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.linalg import independent_rows, kernel_basis
from policygraph.moves.blowfish.problem import BlowfishMove, BlowfishProblem, Transition, Vector, within
from policygraph.moves.blowfish.records import find_repair
from policygraph.moves.bracket import Bracket

_SHIFT = 20


def root_up(value: int) -> int:
    """Square root times 2**20, rounded up.

    Examples
    --------
    >>> root_up(4) == 2 << 20, root_up(2)
    (True, 1482911)
    """
    scaled = value << (2 * _SHIFT)
    root = isqrt(scaled)
    return root if root * root == scaled else root + 1


@dataclass
class Best:
    """The best neighbour pair so far."""

    value: int = -1
    moves: tuple[Transition, ...] | None = None


@dataclass(frozen=True)
class _Option:
    move: Transition
    edge: bool
    delta: tuple[tuple[int, int], ...]


class Realiser:
    """Choices of cells for multisets of differences.

    Parameters
    ----------
    problem
        Facts, secret pairs, query.
    norm
        ``"l1"`` or ``"l2"`` (squared).
    per_class
        Use at most this many vertices of each class. ``complete`` says whether that left any out.
    cap
        Look only at histogram changes of at most so many added and at most so many removed records.
    """

    def __init__(
        self, problem: BlowfishProblem, norm: str, *, per_class: int = 48, cap: int | None = None
    ) -> None:
        self.problem, self.norm, self.cap = problem, norm, cap
        self.members = [_sample(problem, members, per_class) for members in problem.members]
        self.complete = all(len(a) == len(b) for a, b in zip(self.members, problem.members))

    @cached_property
    def pairs(self) -> dict[Vector, list[tuple[int, int]]]:
        """The ordered pairs of classes behind every difference; classes with themselves behind zero."""
        answer: dict[Vector, list[tuple[int, int]]] = {}
        points = self.problem.class_columns
        for c, p in enumerate(points):
            for e, q in enumerate(points):
                answer.setdefault(tuple(b - a for a, b in zip(p, q)), []).append((c, e))
        return answer

    def options(self, difference: Vector) -> list[_Option]:
        """The transitions with this difference, non-edges first, heavy ones first."""
        if difference not in self._options:
            found = []
            for c, e in self.pairs[difference]:
                for x in self.members[c]:
                    for y in self.members[e]:
                        if x != y:
                            delta = tuple(sorted(self.problem.answer_change([(x, y)]).items()))
                            found.append(_Option((x, y), bool(self.problem.adjacency[x, y]), delta))
            found.sort(key=lambda o: (o.edge, -self._size(o.delta), o.move))
            self._options[difference] = found
        return self._options[difference]

    @cached_property
    def _options(self) -> dict[Vector, list[_Option]]:
        return {}

    def _size(self, delta: tuple[tuple[int, int], ...]) -> int:
        return sum(abs(v) for _, v in delta) if self.norm == "l1" else sum(v * v for _, v in delta)

    def heaviest(self, difference: Vector) -> int:
        """Bound the norm (for L2 the root times 2**20, rounded up) of one transition with this difference."""
        if difference not in self._heaviest:
            # every cell counts here, also those that the sample of members left out
            best = 0
            for c, e in self.pairs[difference]:
                best = max(best, self._heaviest_between(c, e))
            self._heaviest[difference] = best if self.norm == "l1" else root_up(best)
        return self._heaviest[difference]

    @cached_property
    def _heaviest(self) -> dict[Vector, int]:
        return {}

    def _heaviest_between(self, c: int, e: int) -> int:
        problem = self.problem
        if problem.query is None:
            return 2
        cells = [problem.members[k] for k in (c, e)]
        if len(cells[0]) * len(cells[1]) <= 4096:
            sizes = (
                self._size(tuple(problem.answer_change([(x, y)]).items())) for x in cells[0] for y in cells[1]
            )
            return max(sizes)
        parts = [max(self._size(problem.weight(v)) for v in side) for side in cells]
        return sum(parts) if self.norm == "l1" else 2 * sum(parts)

    def bound(self, multiset: Sequence[Vector]) -> int:
        """Bound the value of every realisation of a multiset by the triangle inequality."""
        total = sum(self.heaviest(difference) for difference in multiset)
        return total if self.norm == "l1" else (total * total) >> (2 * _SHIFT)

    def all_moves(self, multiset: Sequence[Vector], effort: Effort) -> Iterator[tuple[Transition, ...]]:
        """List the neighbour pairs behind a multiset, as transitions, records of one difference unordered."""
        flat = sorted(multiset)
        chosen: list[Transition] = []

        def grow(place: int, least: int) -> Iterator[tuple[Transition, ...]]:
            effort.spend(2)
            if effort.done:
                raise RefusedError(f"Not all moves were listed: {effort.ended_by}.", code="blowfish.deadline")
            if place == len(flat):
                edges = sum(bool(self.problem.adjacency[m]) for m in chosen)
                effort.spend(2 * len(chosen) + (100 + 20 * len(chosen) if edges > 1 else 0))
                if edges and find_repair(self.problem, chosen) is None:
                    yield tuple(chosen)
                return
            again = place > 0 and flat[place] == flat[place - 1]
            options = self.options(flat[place])
            for number in range(least if again else 0, len(options)):
                chosen.append(options[number].move)
                yield from grow(place + 1, number)
                chosen.pop()

        yield from grow(0, 0)

    def improve(self, multiset: Sequence[Vector], best: Best, effort: Effort) -> bool:
        """Search the realisations of a multiset for one above ``best``; say whether the search was exhaustive.

        First with exactly one secret pair, where condition (a) is empty, then with two or more.
        """
        flat = sorted(multiset)
        for lead in sorted(set(flat)):
            rest = list(flat)
            rest.remove(lead)
            if not any(o.edge for o in self.options(lead)):
                continue
            if not all(any(not o.edge for o in self.options(d)) for d in rest):
                continue
            if not _Climb(self, [lead, *rest], True, best, effort).run():
                return False
        if len(flat) >= 2 and self.bound(flat) > best.value:
            return _Climb(self, flat, False, best, effort).run()
        return True


class _Climb:
    """Depth-first branch and bound over the cells of one multiset."""

    def __init__(
        self, realiser: Realiser, flat: list[Vector], single: bool, best: Best, effort: Effort
    ) -> None:
        self.r, self.flat, self.single, self.best, self.effort = realiser, flat, single, best, effort
        self.lists = []
        for place, difference in enumerate(flat):
            options = realiser.options(difference)
            if single:
                options = [o for o in options if o.edge == (place == 0)]
            self.lists.append(options)
        self.left = [0] * (len(flat) + 1)
        for place in range(len(flat) - 1, -1, -1):
            self.left[place] = self.left[place + 1] + realiser.heaviest(flat[place])
        self.state: dict[int, int] = {}
        self.chosen: list[Transition] = []
        self.nodes = 0
        self.histogram = [0] * realiser.problem.vertices
        self.added = self.removed = 0
        effort.spend(10 + len(flat))

    def run(self) -> bool:
        """Search; False when the effort was spent first."""
        return self._grow(0, 0, 0, 0)

    def _ceiling(self, value: int, place: int) -> int:
        if self.r.norm == "l1":
            return value + self.left[place]
        total = root_up(value) + self.left[place]
        return (total * total) >> (2 * _SHIFT)

    def _grow(self, place: int, least: int, value: int, edges: int) -> bool:
        self.nodes += 1
        if self.nodes % 256 == 0:
            self.effort.spend(1024)
            if self.effort.done:
                return False
        if place == len(self.flat):
            if (
                value > self.best.value
                and self._can_fit(place)
                and (self.single or (edges >= 2 and self._minimal_pairs()))
            ):
                self.best.value, self.best.moves = value, tuple(self.chosen)
            return True
        if self._ceiling(value, place) <= self.best.value:
            return True
        if not self._can_fit(place):
            return True
        if not self.single and edges >= 2 and not self._minimal_pairs():
            return True
        if not self.single and edges + len(self.flat) - place < 2:
            return True
        first = 1 if self.single else 0
        again = place > first and self.flat[place] == self.flat[place - 1]
        options = self.lists[place]
        for number in range(least if again else 0, len(options)):
            option = options[number]
            gain = self._apply(option.delta, 1)
            self._move(option.move, 1)
            self.chosen.append(option.move)
            done = self._grow(place + 1, number, value + gain, edges + option.edge)
            self.chosen.pop()
            self._move(option.move, -1)
            self._apply(option.delta, -1)
            if not done:
                return False
            if self._ceiling(value, place) <= self.best.value:
                return True
        return True

    def _move(self, move: Transition, sign: int) -> None:
        for vertex, amount in ((move[1], sign), (move[0], -sign)):
            if vertex < self.r.problem.cells:
                old = self.histogram[vertex]
                new = self.histogram[vertex] = old + amount
                self.added += max(new, 0) - max(old, 0)
                self.removed += max(-new, 0) - max(-old, 0)

    def _can_fit(self, place: int) -> bool:
        # each record that is still to be chosen takes back at most one that was added and one that was removed
        cap = self.r.cap
        return cap is None or max(self.added, self.removed) - (len(self.flat) - place) <= cap

    def _apply(self, delta: tuple[tuple[int, int], ...], sign: int) -> int:
        gain = 0
        for row, change in delta:
            old = self.state.get(row, 0)
            new = old + sign * change
            gain += abs(new) - abs(old) if self.r.norm == "l1" else new * new - old * old
            self.state[row] = new
        return gain

    def _minimal_pairs(self) -> bool:
        self.effort.spend(50 + 10 * len(self.chosen))
        # sound on a part of the records too: further records only give the third data set more room
        return find_repair(self.r.problem, self.chosen) is None


def _sample(problem: BlowfishProblem, members: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Take some vertices of a class: all if few, else ends of secret pairs to other classes and some others."""
    if len(members) <= most:
        return members
    label = problem.labels[members[0]]
    outside = [v for v in range(problem.vertices) if problem.labels[v] != label]
    crossing = [v for v in members if bool(problem.adjacency[v][outside].any())][: most // 2]
    step = max(1, len(members) // (most // 2))
    return tuple(sorted({*crossing, *members[::step][: most // 2], members[-1]}))[: most + 1]


_PAIRINGS = 7


def single_relation(problem: BlowfishProblem) -> Vector | None:
    """Find the primitive integer relation between distinct columns when there is exactly one up to sign.

    Examples
    --------
    >>> from policygraph.moves.blowfish.problem import blowfish_problem
    >>> square = [[i != j for j in range(4)] for i in range(4)]
    >>> single_relation(blowfish_problem([[1, 1, 0, 0], [1, 0, 1, 0]], square))
    (1, -1, -1, 1)
    >>> single_relation(blowfish_problem([[1, 1, 0, 0]], square)) is None
    True
    """
    if len(problem.class_columns) != problem.vertices:
        return None
    columns = [(1, *column) for column in problem.columns]
    if len(independent_rows(columns)) != len(columns) - 1:
        return None
    (relation,) = kernel_basis(np.array(columns, dtype=object).T).tolist()
    lead = next(v for v in relation if v)
    return tuple(v if lead > 0 else -v for v in relation)


def longest_relation(
    problem: BlowfishProblem, relation: Vector, norm: str, cap: int | None, effort: Effort
) -> Bracket[BlowfishMove]:
    """Bracket the sensitivity when the histogram can only change by plus or minus one relation.

    Parameters
    ----------
    problem
        Facts whose columns are all different.
    relation
        Result of :func:`single_relation`.
    norm
        ``"l1"`` or ``"l2"`` (squared).
    cap
        At most so many records are added to the histogram and at most so many removed.
    effort
        Work that the pairings may spend.

    Returns
    -------
    Bracket
        Its upper value is the norm of the relation, or 0 under a cap it does not fit.

    Notes
    -----
    Change t times the relation with t >= 2: the transitions, read as a bipartite multigraph of sources and targets,
    contain the relation itself (a t-th part of a flow can be rounded to a flow), so they are not minimal.
    """
    reason = (
        "The facts leave one relation between cells; a minimal change is that relation or no change at all."
    )
    if not within(relation[: problem.cells], cap):
        return Bracket(0, 0, None, "single relation", reason)
    best: tuple[Transition, ...] | None = None
    for sign in (1, -1):
        old = [v for v, n in enumerate(relation) for _ in range(max(0, -sign * n))]
        new = [v for v, n in enumerate(relation) for _ in range(max(0, sign * n))]
        best = best or _one_pair(problem, old, new) or _pairing(problem, old, new, effort)
    value = problem.value([(x, y) for x, y in zip(*_ends(relation))], norm)
    if best is None:
        return Bracket(value, 0, None, "single relation", reason)
    change = problem.histogram_change(best)
    witness = BlowfishMove(best, tuple((cell, v) for cell, v in enumerate(change) if v))
    return Bracket(value, value, witness, "single relation", reason)


def _ends(relation: Vector) -> tuple[list[int], list[int]]:
    old = [v for v, n in enumerate(relation) for _ in range(max(0, -n))]
    new = [v for v, n in enumerate(relation) for _ in range(max(0, n))]
    return old, new


def _one_pair(problem: BlowfishProblem, old: list[int], new: list[int]) -> tuple[Transition, ...] | None:
    """Match old and new values along non-edges but for one secret pair, by augmenting paths."""
    for i, x in enumerate(old):
        for j, y in enumerate(new):
            if problem.adjacency[x, y]:
                lefts, rights = old[:i] + old[i + 1 :], new[:j] + new[j + 1 :]
                match = _matching(problem, lefts, rights)
                if match is not None:
                    return ((x, y), *((lefts[a], rights[b]) for b, a in match.items()))
    return None


def _matching(problem: BlowfishProblem, lefts: list[int], rights: list[int]) -> dict[int, int] | None:
    """A perfect matching along non-edges, right index to left index; None if there is none."""
    owner: dict[int, int] = {}

    def augment(a: int, tried: set[int]) -> bool:
        for b, y in enumerate(rights):
            if b not in tried and not problem.adjacency[lefts[a], y]:
                tried.add(b)
                if b not in owner or augment(owner[b], tried):
                    owner[b] = a
                    return True
        return False

    return owner if all(augment(a, set()) for a in range(len(lefts))) else None


def _pairing(
    problem: BlowfishProblem, old: list[int], new: list[int], effort: Effort
) -> tuple[Transition, ...] | None:
    """Try all pairings with several secret pairs; every one of them is minimal."""
    if len(old) > _PAIRINGS:
        return None
    for order in permutations(new):
        effort.spend(20)
        if effort.done:
            return None
        moves = list(zip(old, order))
        if any(problem.adjacency[m] for m in moves) and find_repair(problem, moves) is None:
            return tuple(moves)
    return None
