"""The Blowfish definition over indexed records, word for word. Owns :func:`match_records`; small cases only.

Used by the verification of certificates; shares no code with the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from policygraph.model.policy import Policy

__all__ = ["Matcher", "Undecided", "Value", "match_records"]

MATCHINGS = 20_000
"""Most ways to match the records of two data sets that are tried."""
TRIALS = 1_000_000
"""Most sums of third data sets that are looked at."""
ENTRIES = 2_000_000
"""Most cells times public sums for which the change of each sum by each value is written down."""

Facts = Callable[[dict[int, int]], Any]
Value = int | None
"""The cell of a record; None where it is absent."""
Pairs = tuple[tuple[Value, Value], ...]


class Undecided(Exception):  # noqa: N818
    """More has to be tried than is done here."""


def match_records(policy: Policy, before: dict[int, int], after: dict[int, int], facts: Facts) -> bool | None:
    """Whether some matching of the records of two data sets makes them neighbours; None when too large.

    A record may be absent from one of the two data sets where the graph has bottom, also while another one appears. Records
    that are absent from both are left out: they only give other data sets more ways to be closer.
    """
    graph = policy.graph
    if graph is None:
        return False
    one = [cell for cell, count in before.items() for _ in range(count)]
    two = [cell for cell, count in after.items() for _ in range(count)]
    bottom = graph.bottom != "none"
    if len(one) != len(two) and not bottom:
        return False
    rows = sum(fact.n_rows(policy.domain) for fact in policy.constraints)
    if policy.domain.size * (1 + rows) > ENTRIES:
        return None
    matcher = Matcher(policy, facts)
    if not set(one) | set(two) <= set(matcher.values):
        return False  # a record in a cell that is structurally empty
    try:
        for number, pairs in enumerate(_matchings(one, two, bottom)):
            if number >= MATCHINGS:
                return None
            if matcher.are_neighbours(pairs):
                return True
    except Undecided:
        return None
    return False


def _matchings(one: list[int], two: list[int], bottom: bool) -> Iterator[Pairs]:
    """All different ways to pair the records; records of one value are not told apart."""
    targets: list[Value] = [*sorted(set(two)), *([None] if bottom else [])]
    left = {y: two.count(y) for y in set(two)}
    old = sorted(one)

    def grow(place: int, chosen: tuple[tuple[Value, Value], ...], least: int) -> Iterator[Pairs]:
        if place == len(old):
            rest = [y for y in sorted(left) for _ in range(left[y])]
            if bottom or not rest:
                yield (*chosen, *((None, y) for y in rest))
            return
        first = least if place and old[place] == old[place - 1] else 0
        for at in range(first, len(targets)):
            y = targets[at]
            if y is not None and not left[y]:
                continue
            if y is not None:
                left[y] -= 1
            yield from grow(place + 1, (*chosen, (old[place], y)), at)
            if y is not None:
                left[y] += 1

    yield from grow(0, (), 0)


class Matcher:
    """The definition for given pairs of old and new values of the records."""

    def __init__(self, policy: Policy, facts: Facts) -> None:
        self.policy, self.facts = policy, facts
        bottom = policy.graph is not None and policy.graph.bottom != "none"
        values: list[Value] = [c for c in range(policy.domain.size) if not self._forbidden(c)]
        self.values = [*values, None] if bottom else values
        keys: dict[Any, None] = {}
        sums = {}
        for value in self.values:
            rows = {} if value is None else self._row(value)
            keys.update(dict.fromkeys(rows))
            sums[value] = rows
        self.columns = {v: tuple(rows.get(key, 0) for key in keys) for v, rows in sums.items()}
        self.trials = 0

    def _row(self, cell: int) -> dict[Any, int]:
        return {
            (at, key): amount for at, sums in enumerate(self.facts({cell: 1})) for key, amount in sums.items()
        }

    def _forbidden(self, cell: int) -> bool:
        return any(key == "zero" for _, key in self._row(cell))

    def secret(self, x: Value, y: Value) -> bool:
        """Whether two values are a secret pair."""
        from policygraph.model.graphs import BOTTOM

        if x == y or self.policy.graph is None:
            return False
        return self.policy.graph.has_edge(BOTTOM if x is None else x, BOTTOM if y is None else y)

    def step(self, x: Value, y: Value) -> tuple[int, ...]:
        """Change of the public sums by one record."""
        return tuple(b - a for a, b in zip(self.columns[x], self.columns[y], strict=True))

    def are_neighbours(self, pairs: Sequence[tuple[Value, Value]]) -> bool:
        """The definition: no third data set changes fewer secret pairs, or the same ones and fewer other records."""
        changed = [(x, y) for x, y in pairs if x != y]
        secret = [(x, y) for x, y in changed if self.secret(x, y)]
        if not secret or any(map(sum, zip(*(self.step(x, y) for x, y in changed), strict=True))):
            return False
        others = [(x, y) for x, y in changed if not self.secret(x, y)]
        # the same secret pairs and fewer others: some of the others can be undone together
        if others and self._reaches([[self.step(x, y)] for x, y in others], nonempty=True):
            return False
        stay = [x for x, y in pairs if not self.secret(x, y)]
        for size in range(1, len(secret)):
            for kept in combinations(range(len(secret)), size):
                choices = [[self.step(*secret[i])] for i in kept]
                rest = [secret[i][0] for i in range(len(secret)) if i not in kept]
                free = [
                    [self.step(x, y) for y in self.values if not self.secret(x, y)] for x in (*rest, *stay)
                ]
                if self._reaches([*choices, *free]):
                    return False
        return True

    def _reaches(self, choices: list[list[tuple[int, ...]]], *, nonempty: bool = False) -> bool:
        """Whether one step of each record can sum to zero; with ``nonempty`` of some of the records, at least one."""
        zero = (0,) * len(next(iter(self.columns.values())))
        sums = {zero} if not nonempty else set()
        for steps in choices:
            made = {tuple(a + b for a, b in zip(s, step, strict=True)) for s in sums for step in steps}
            self.trials += len(sums) * len(steps)
            if self.trials > TRIALS:
                raise Undecided
            if nonempty:
                made |= sums | set(steps)
                if zero in made:
                    return True
            sums = made
        return zero in sums
