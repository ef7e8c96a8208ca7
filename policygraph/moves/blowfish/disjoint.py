"""Disjoint known counts (one cuboid, a partition, some cells): moves are cycles through the counted classes.

Owns :class:`ClassFacts`, what has to be known of a huge domain, and :func:`longest_disjoint`, the histogram's
sensitivity from it without a matrix of cells. May import :mod:`policygraph.effort`, :mod:`policygraph.errors` and ``blowfish_`` modules.
Theorems: ``docs/explanation/proofs/blowfish-constraints.md``, sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from policygraph.effort import Effort
from policygraph.errors import InputError
from policygraph.moves.blowfish.problem import BlowfishMove
from policygraph.moves.bracket import Bracket

__all__ = ["ClassFacts", "longest_disjoint"]

Vertex = Hashable
_LOOK = 12
_EDGES = 64


@dataclass(frozen=True)
class ClassFacts:
    """The classes of a domain under disjoint counts, and the secret pairs as a rule.

    Parameters
    ----------
    sizes
        Number of cells of every class. The cells in no count, with bottom, form one class.
    members
        Lists the vertices of a class, lazily; bottom is listed in its class.
    is_edge
        Whether two different vertices are a secret pair.
    crossing
        Lists the secret pairs between different classes, lazily. A list that ends must have been complete.
    inside
        Lists the secret pairs within classes, lazily and complete in the same sense.
    complete
        Whether every two vertices are a secret pair.
    bottom
        The vertex without a cell, or None. The class it is in is ``bottom_class``.
    bottom_class
        See ``bottom``.
    """

    sizes: tuple[int, ...]
    members: Callable[[int], Iterable[Vertex]]
    is_edge: Callable[[Vertex, Vertex], bool]
    crossing: Callable[[], Iterable[tuple[Vertex, Vertex]]]
    inside: Callable[[], Iterable[tuple[Vertex, Vertex]]]
    label: Callable[[Vertex], int]
    complete: bool = False
    bottom: Vertex | None = None
    bottom_class: int | None = None

    def gain(self, label: int) -> int:
        """Most that one record leaving a class and one entering it can change the histogram there."""
        if self.sizes[label] >= 2:
            return 2
        return 1 if label == self.bottom_class and self.sizes[label] == 1 else 0


def longest_disjoint(
    facts: ClassFacts, *, at_most_records: int | None = None, effort: Effort | None = None
) -> Bracket[BlowfishMove]:
    """Bracket the L1 change (which is the squared L2 change too) of the histogram between neighbours.

    Parameters
    ----------
    facts
        The classes and the secret pairs.
    at_most_records
        Count only neighbours whose histograms differ by at most so many added and at most so many removed records.
    effort
        Work that may be spent; None for no end.

    Returns
    -------
    Bracket
        Exact when the cycle through all classes that can gain exists, and for complete graphs.

    Raises
    ------
    InputError
        If ``at_most_records`` is below 1 or a size is negative.

    Examples
    --------
    One attribute of 1000 values is published, the cells are 1000 x 1000, and any two values are a secret pair.

    >>> facts = ClassFacts(
    ...     sizes=(1000,) * 1000,
    ...     members=lambda c: ((c, j) for j in range(1000)),
    ...     is_edge=lambda x, y: x != y,
    ...     crossing=lambda: (((0, 0), (c, 0)) for c in range(1, 1000)),
    ...     inside=lambda: (((0, 0), (0, j)) for j in range(1, 1000)),
    ...     label=lambda x: x[0],
    ...     complete=True,
    ... )
    >>> bracket = longest_disjoint(facts)
    >>> bracket.lower, bracket.upper
    (2000, 2000)

    Notes
    -----
    A minimal multiset of transitions is a simple cycle through classes, or one transition inside a class. A
    class on the cycle is left by one record and entered by one, so it changes at most two cells by one each: the
    upper bound is the sum of the gains of the classes, or twice the cap where that is less. With exactly one secret
    pair on the cycle nothing else is asked; in a complete graph every cycle is a neighbour pair.
    """
    if any(size < 0 for size in facts.sizes):
        raise InputError(f"sizes={facts.sizes}: expected numbers >= 0.", code="blowfish.sizes")
    cap = read_cap(at_most_records)
    work = Effort.of(effort)
    alone = _inside(facts)
    first = next(iter(facts.crossing()), None)
    if first is None:
        value = _value(facts, alone)
        return Bracket(
            value,
            value,
            _move(facts, alone) if alone else None,
            "edges",
            "No secret pair joins two classes, so a single record changes inside its class.",
        )
    gains = sorted((c for c in range(len(facts.sizes)) if facts.gain(c)), key=lambda c: -facts.gain(c))
    ceiling = sum(map(facts.gain, gains))
    if cap is not None:
        ceiling = min(ceiling, 2 * cap)
    if facts.complete:
        best = max([_complete_cycle(facts, gains[:cap], first), alone], key=lambda m: _value(facts, m))
        reason = (
            "Complete graph: every cycle through classes is a neighbour pair, and a class gains at most two."
        )
        upper = ceiling
    else:
        best = alone
        for edge in islice(facts.crossing(), _EDGES):
            found = _Cycle(facts, cap, work).through(edge, gains)
            best = max([best, found], key=lambda m: _value(facts, m))
            if _value(facts, best) >= ceiling or work.done:
                break
        upper = ceiling
        reason = "Moves are cycles through classes; a class on the cycle gains at most two."
    value = _value(facts, best)
    return Bracket(upper, value, _move(facts, best) if best else None, "disjoint counts", reason)


def read_cap(at_most_records: int | None) -> int | None:
    """Read the cap on records added and on records removed: None, or an integer >= 1."""
    if at_most_records is not None and at_most_records < 1:
        raise InputError(
            f"at_most_records={at_most_records}: expected an integer >= 1, or None for no cap.",
            code="blowfish.cap",
            at_most_records=at_most_records,
        )
    return at_most_records


Moves = tuple[tuple[Vertex, Vertex], ...]


def _inside(facts: ClassFacts) -> Moves:
    """One secret pair inside a class, one without bottom if there is any."""
    best: Moves = ()
    for pair in facts.inside():
        if facts.bottom is None or facts.bottom not in pair:
            return (pair,)
        best = (pair,)
    return best


def _complete_cycle(facts: ClassFacts, chosen: list[int], first: tuple[Vertex, Vertex]) -> Moves:
    """Close a cycle through the chosen classes, each left and entered at different cells where it has two."""
    labels = list(chosen)
    # a class that is only passed through is entered and left at the same cell
    for end in first:
        if len(labels) < 2 and facts.label(end) not in labels:
            labels.append(facts.label(end))
    doors = []
    for c in labels:
        two = list(islice(facts.members(c), 3))
        cells = [v for v in two if v != facts.bottom] + [v for v in two if v == facts.bottom]
        doors.append((cells[0], cells[1] if len(cells) > 1 and c in chosen else cells[0]))
    return tuple((doors[i][0], doors[(i + 1) % len(doors)][1]) for i in range(len(doors)))


class _Cycle:
    """A greedy cycle with one secret pair and otherwise non-edges, with a little backtracking."""

    def __init__(self, facts: ClassFacts, cap: int | None, effort: Effort) -> None:
        self.facts, self.cap, self.effort = facts, cap, effort
        self.cells: dict[int, tuple[Vertex, ...]] = {}
        self.steps_left = 0

    def look(self, label: int) -> tuple[Vertex, ...]:
        """Some members of a class."""
        if label not in self.cells:
            self.cells[label] = tuple(islice(self.facts.members(label), _LOOK))
        return self.cells[label]

    def through(self, edge: tuple[Vertex, Vertex], gains: list[int]) -> Moves:
        """Extend a secret pair between two classes to a long cycle; empty if none was found."""
        best: Moves = ()
        for x, y in (edge, edge[::-1]):
            home, start = self.facts.label(x), self.facts.label(y)
            others = [c for c in gains if c not in (home, start)]
            if self.cap == 1:
                best = max([best, self._there_and_back(x, y)], key=lambda m: _value(self.facts, m))
                continue
            room = len(others) if self.cap is None else min(len(others), self.cap - 2)
            for keep in dict.fromkeys((room, room - 1, room // 2, 1, 0)):
                if 0 <= keep <= room:
                    self.steps_left = 64 * (keep + 4)
                    walk = self._extend([(x, y)], others[:keep], home, x)
                    if walk is not None:
                        best = max([best, tuple(walk)], key=lambda m: _value(self.facts, m))
                        break
        return best

    def _there_and_back(self, x: Vertex, y: Vertex) -> Moves:
        """Close a secret pair by a non-edge so that one of its two classes is entered and left at one vertex."""
        for z in self.look(self.facts.label(x)):
            if z != x and not self.facts.is_edge(y, z):
                return ((x, y), (y, z))
        for z in self.look(self.facts.label(y)):
            if z != y and not self.facts.is_edge(z, x):
                return ((x, y), (z, x))
        return ()

    def _extend(
        self, walk: list[tuple[Vertex, Vertex]], others: list[int], home: int, x: Vertex
    ) -> list[tuple[Vertex, Vertex]] | None:
        """Walk through all the other classes and back home along non-edges; None if the look-around fails."""
        order = list(others)
        iterators = [self._steps(walk[-1][1], order, 0, home, x)]
        swaps: list[tuple[int, int]] = []
        while iterators:
            self.steps_left -= 1
            self.effort.spend(10)
            if self.steps_left < 0 or self.effort.done:
                return None
            step = next(iterators[-1], None)
            if step is None:
                iterators.pop()
                if swaps:
                    i, j = swaps.pop()
                    order[i], order[j] = order[j], order[i]
                    walk.pop()
                continue
            j, out, into = step
            walk.append((out, into))
            if j < 0:
                return walk
            i = len(swaps)
            order[i], order[j] = order[j], order[i]
            swaps.append((i, j))
            iterators.append(self._steps(into, order, i + 1, home, x))
        return None

    def _steps(
        self, here: Vertex, order: list[int], place: int, home: int, x: Vertex
    ) -> Iterator[tuple[int, Vertex, Vertex]]:
        """Ways to leave the class of ``here`` at another vertex, along a non-edge, into a class not yet met."""
        outs = [v for v in self.look(self.facts.label(here)) if v != here] or [here]
        near = range(place, min(place + _LOOK, len(order))) if place < len(order) else [-1]
        for j in near:
            target = home if j < 0 else order[j]
            intos = [v for v in self.look(target) if j >= 0 or v != x] or [x]
            for out in outs:
                for into in intos:
                    if not self.facts.is_edge(out, into):
                        yield j, out, into


def _value(facts: ClassFacts, moves: Moves) -> int:
    return sum(abs(v) for _, v in _change(facts, moves))


def _change(facts: ClassFacts, moves: Moves) -> tuple[tuple[Vertex, int], ...]:
    total: dict[Vertex, int] = {}
    for x, y in moves:
        total[x] = total.get(x, 0) - 1
        total[y] = total.get(y, 0) + 1
    return tuple((v, n) for v, n in total.items() if n and (facts.bottom is None or v != facts.bottom))


def _move(facts: ClassFacts, moves: Moves) -> BlowfishMove:
    return BlowfishMove(moves, _change(facts, moves))
