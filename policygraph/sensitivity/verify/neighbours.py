"""Whether two data sets of a certificate are neighbours, by the definition word for word. Owns :func:`check_neighbours`.

Node pairs of simple networks are the records where only edges are secret; indexed records are matched in every way otherwise (:class:`Matcher`); small
cases only. Shares no code with the search; of the rest it uses the definitions and ``solver``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import Any

from policygraph.effort import SECOND, Effort
from policygraph.model.constraints.tables import StructuralZero
from policygraph.model.policy import Policy
from policygraph.sensitivity.verify.moves import naive_moves
from policygraph.sensitivity.verify.tables import CheckResult, Table, difference, is_zero, public_sums
from policygraph.solver.program import Program

NETWORKS = 1 << 16
"""Most other networks that are tried one by one."""

Facts = Callable[[Table], Any]
MATCHINGS = 20_000
"""Most ways to match the records of two data sets that are tried."""
TRIALS = 1_000_000
"""Most sums of third data sets that are looked at."""
ENTRIES = 2_000_000
"""Most cells times public sums for which the change of each sum by each value is written down."""
Value = int | None
"""The cell of a record; None where it is absent."""
Pairs = tuple[tuple[Value, Value], ...]
SUBSETS = 1 << 18
BASIS_CELLS = 10
SOLVER = 20 * SECOND


def is_pairwise(policy: Policy) -> bool:
    """Whether node pairs are the records: a simple network, and a graph with edges to bottom only."""
    graph = policy.graph
    return (
        graph is not None
        and policy.domain.capacity == 1
        and graph.bottom != "none"
        and graph.without_bottom().n_edges == 0
    )


def secret_pairs_of(policy: Policy) -> set[int]:
    """The pairs whose edge is secret."""
    return set() if policy.graph is None else set(policy.graph.bottom_cells)


def pair_neighbours(policy: Policy, before: Table, change: Table, facts: Facts) -> bool | None:
    """Whether no third network changes fewer secret edges, or the same ones with fewer others; None when too many are to be tried.

    ``change`` is assumed minimal, which settles the second part.
    """
    secret = secret_pairs_of(policy)
    changed = sorted(set(change) & secret)
    if not changed:
        return False
    if len(changed) == 1:
        return True
    others = [cell for cell in range(policy.domain.size) if cell not in secret]
    if 2 ** (len(others) + len(changed)) > NETWORKS:
        return None
    goal = facts(before)
    for some in range(1, len(changed)):
        for part in combinations(changed, some):
            for many in range(len(others) + 1):
                for repair in combinations(others, many):
                    third = dict(before)
                    for cell in (*part, *repair):
                        third[cell] = 1 - third.get(cell, 0)
                    if facts({c: x for c, x in third.items() if x}) == goal:
                        return False
    return True


class UndecidedError(Exception):
    """More has to be tried than is done here."""


def match_records(policy: Policy, before: Table, after: Table, facts: Facts) -> bool | None:
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
    except UndecidedError:
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
                raise UndecidedError
            if nonempty:
                made |= sums | set(steps)
                if zero in made:
                    return True
            sums = made
        return zero in sums


def check_neighbours(policy: Policy, before: Table, after: Table) -> CheckResult:
    """Whether two data sets are neighbours under a policy, and why.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 3})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    >>> [check_neighbours(policy, {0: 1}, {to: 1}).passed for to in (1, 2)]
    [True, False]
    """
    change = difference(before, after)
    if not change:
        return CheckResult("neighbours", False, "the two data sets are equal")
    added = sum(x for x in change.values() if x > 0)
    removed = -sum(x for x in change.values() if x < 0)
    cap = policy.at_most_records
    if cap is not None and max(added, removed) > cap:
        return CheckResult("neighbours", False, f"more than {cap} records are added or removed")
    if policy.definition == "edges":
        return _one_edge(policy, change)
    if policy.definition == "blowfish":
        return _blowfish(policy, before, after)
    if policy.strength == "markov" and (len(change) > 4 or any(abs(x) > 1 for x in change.values())):
        return CheckResult("neighbours", False, "a Markov move has at most four single changes")
    minimal = _is_minimal(policy, change)
    if minimal is False:
        return CheckResult("neighbours", False, "a smaller part of the change keeps the public facts")
    if minimal and policy.strength == "positive":
        positive = _is_positive(policy, before, change)
        text = "no shorter change exchanges some removed record for some added one"
        return CheckResult("neighbours", positive, text if positive else "positivity was not shown here")
    return CheckResult(
        "neighbours",
        minimal,
        "no smaller part of the change keeps the public facts" if minimal else "not decided",
    )


def _one_edge(policy: Policy, change: Table) -> CheckResult:
    from policygraph.model.graphs import BOTTOM

    ends = sorted(change.items(), key=lambda item: item[1])
    amounts = [x for _, x in ends]
    if policy.graph is None or amounts not in ([-1, 1], [1], [-1]):
        return CheckResult("neighbours", False, "more than one record changes")
    other: Any = ends[1][0] if len(ends) == 2 else BOTTOM
    passed = policy.graph.has_edge(ends[0][0], other)
    return CheckResult(
        "neighbours", passed, "one record changes along an edge" if passed else "this pair is no edge"
    )


def _keeps(policy: Policy, change: Table) -> bool:
    return not any(public_sums(fact, policy, change) for fact in policy.constraints)


def _is_minimal(policy: Policy, change: Table) -> bool | None:
    if not _keeps(policy, change):
        return False
    cells = list(change)
    count = 1
    for cell in cells:
        count *= abs(change[cell]) + 1
    if count <= SUBSETS:
        steps = [
            range(0, change[c] + (1 if change[c] > 0 else -1), 1 if change[c] > 0 else -1) for c in cells
        ]
        sums = [[public_sums(fact, policy, {cell: 1}) for fact in policy.constraints] for cell in cells]
        for amounts in product(*steps):
            part = dict(zip(cells, amounts, strict=True))
            if any(amounts) and part != change and _zero(sums, amounts):
                return False
        return True
    parts = [(cell, 1 if amount > 0 else -1, abs(amount)) for cell, amount in change.items()]
    whole = sum(abs(amount) for amount in change.values())
    return _none(policy, parts, [(dict.fromkeys(range(len(parts)), 1), 1, whole - 1)])


def _zero(sums: list[list[dict[Any, int]]], amounts: tuple[int, ...]) -> bool:
    total: dict[tuple[int, Any], int] = {}
    for facts, amount in zip(sums, amounts, strict=True):
        if amount:
            for at, rows in enumerate(facts):
                for key, value in rows.items():
                    total[at, key] = total.get((at, key), 0) + value * amount
    return not any(total.values())


def _none(
    policy: Policy,
    parts: list[tuple[int, int, int]],
    limits: list[tuple[dict[int, int], int | None, int | None]],
) -> bool | None:
    """Whether no change made of these parts, each a cell, a sign and the most records, keeps the facts within limits on the parts.

    None when undecided; nothing is taken on the word of one solver (docs/explanation/proofs/solvers.md).
    """
    program = Program([0] * len(parts), [most for _, _, most in parts])
    rows: dict[tuple[int, Any], dict[int, int]] = {}
    for place, (cell, sign, _) in enumerate(parts):
        for at, fact in enumerate(policy.constraints):
            for key, value in public_sums(fact, policy, {cell: 1}).items():
                rows.setdefault((at, key), {})[place] = sign * value
    for terms in rows.values():
        program.add(terms, 0, 0)
    for terms, low, high in limits:
        program.add(terms, low, high)
    answer = program.find(Effort(SOLVER))
    return None if answer.status == "unknown" else answer.status == "none"


def _is_positive(policy: Policy, before: Table, change: Table) -> bool | None:
    """Whether a minimal change is positive: Markov, one-sided, or without a shorter exchange from one of its two tables."""
    if _is_simple(change):
        return True
    after = {c: before.get(c, 0) + change.get(c, 0) for c in {*before, *change}}
    moves = minimal_moves(policy) if policy.domain.size <= BASIS_CELLS else None
    answers: list[bool | None] = []
    for table, step in ((before, change), (after, {c: -x for c, x in change.items()})):
        if moves is not None:
            answers.append(_positive_from(policy, table, step, _shorter(moves, step)))
        else:
            answers.append(_positive_by_solver(policy, table, step))
    if True in answers:
        return True
    return None if None in answers else False


def _is_simple(change: Table) -> bool:
    """Whether a minimal change is positive from every table: Markov, or only adding or removing records."""
    markov = len(change) <= 4 and all(abs(x) == 1 for x in change.values())
    return markov or len({x > 0 for x in change.values()}) == 1


def _shorter(moves: list[Table], change: Table) -> list[Table]:
    """All changes that can be alternatives: minimal moves, and sums of two without cancellation, shorter than the change."""
    size = sum(abs(x) for x in change.values())
    short = [m for m in moves if sum(map(abs, m.values())) < size]
    out = list(short)
    for at, one in enumerate(short):
        for two in short[:at]:
            if sum(map(abs, one.values())) + sum(map(abs, two.values())) < size and all(
                one[c] * two[c] > 0 for c in set(one) & set(two)
            ):
                out.append({c: one.get(c, 0) + two.get(c, 0) for c in {*one, *two}})
    return out


def _positive_from(policy: Policy, table: Table, change: Table, shorter: list[Table]) -> bool:
    top = policy.domain.capacity

    def fits(move: Table) -> bool:
        rest = [table.get(c, 0) + x for c, x in move.items()]
        return all(n >= 0 and (top is None or n <= top) for n in rest)

    possible = [move for move in shorter if fits(move)]
    return any(
        not any(move.get(t, 0) < 0 < move.get(s, 0) for move in possible)
        for t, x in change.items()
        if x < 0
        for s, y in change.items()
        if y > 0
    )


def positive_somewhere(policy: Policy, change: Table, moves: list[Table]) -> bool | None:
    """Whether a minimal change is positive on some table; with a capacity every table is tried."""
    if _is_simple(change):
        return True
    back = {c: -x for c, x in change.items()}
    alternatives = _shorter(moves, change)
    top = policy.domain.capacity
    zeros = {c for f in policy.constraints for c in range(policy.domain.size) if is_zero(f, policy, c)}
    # Without a capacity the table that holds the removed records alone leaves the fewest alternatives.
    ranges = [
        range(max(0, -change.get(c, 0)), (top or 0) - max(0, change.get(c, 0)) + 1)
        if top is not None and c not in zeros
        else range(max(0, -change.get(c, 0)), max(0, -change.get(c, 0)) + 1)
        for c in range(policy.domain.size)
    ]
    tables = 1
    for each in ranges:
        tables *= len(each)
    if tables > SUBSETS:
        return None
    for counts in product(*ranges):
        table = dict(enumerate(counts))
        after = {c: n + change.get(c, 0) for c, n in table.items()}
        if _positive_from(policy, table, change, alternatives) or _positive_from(
            policy, after, back, alternatives
        ):
            return True
    return False


def _positive_by_solver(policy: Policy, before: Table, change: Table) -> bool | None:
    if policy.domain.size > 2_000:
        return None
    size = sum(abs(x) for x in change.values())
    cells, top = policy.domain.size, policy.domain.capacity
    room = [size if top is None else min(size, top - before.get(cell, 0)) for cell in range(cells)]
    parts = [(cell, 1, room[cell]) for cell in range(cells)]
    parts += [(cell, -1, min(size, before.get(cell, 0))) for cell in range(cells)]
    shorter: tuple[dict[int, int], int | None, int | None] = (
        dict.fromkeys(range(2 * cells), 1),
        None,
        size - 1,
    )
    open_ = False
    for t in (c for c, x in change.items() if x < 0):
        for s in (c for c, x in change.items() if x > 0):
            none = _none(
                policy, parts, [shorter, ({cells + t: 1, t: -1}, 1, None), ({s: 1, cells + s: -1}, 1, None)]
            )
            if none:
                return True
            open_ = open_ or none is None
    return None if open_ else False


def _blowfish(policy: Policy, before: Table, after: Table) -> CheckResult:
    """The definition over indexed records, tried for every way to match the records; small cases only."""
    if is_pairwise(policy):
        return _secret_edges(policy, before, difference(before, after))
    found = match_records(
        policy, before, after, lambda table: [public_sums(f, policy, table) for f in policy.constraints]
    )
    text = {
        True: "some matching of the records changes a minimal set of secret pairs",
        False: "no matching of the records makes them neighbours",
        None: "too many records to try every matching here",
    }
    return CheckResult("neighbours", found, text[found])


def _secret_edges(policy: Policy, before: Table, change: Table) -> CheckResult:
    minimal = _is_minimal(policy, change)
    found = minimal and pair_neighbours(
        policy, before, change, lambda table: [public_sums(f, policy, table) for f in policy.constraints]
    )
    text = {
        True: "no smaller change, and none with fewer secret edges, keeps the public facts",
        False: "a smaller change, or one with fewer secret edges, keeps the public facts, or no secret edge changes",
        None: "too many networks to try here",
    }
    return CheckResult("neighbours", found, text[found])


def listed_moves(policy: Policy) -> list[Table] | None:
    """All moves of a policy over few cells, of any strength but positive, in both directions; None when they are not listed here.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2})
    >>> listed_moves(pg.Policy(domain, constraints=[pg.Total()]))
    [{0: -1, 1: 1}, {0: 1, 1: -1}]
    """
    from policygraph.model.graphs import BOTTOM

    if policy.domain.size > BASIS_CELLS:
        return None
    if policy.definition == "edges" and policy.graph is not None:
        ends: list[Any] = list(policy.graph.edges())
        return [{u: x} if v is BOTTOM else {u: -x, v: x} for u, v in ends for x in (1, -1)]
    if policy.definition == "blowfish" and not is_pairwise(policy):
        return None
    listed = minimal_moves(policy)
    if listed is not None and policy.graph is not None:
        listed = [move for move in listed if set(move) & secret_pairs_of(policy)]
    return None if listed is None else [move for move in listed if counts(policy, move)]


def counts(policy: Policy, move: Table) -> bool:
    """Whether a minimal move is within the cap and, for Markov strength, short."""
    cap = policy.at_most_records
    added, removed = sum(x for x in move.values() if x > 0), -sum(x for x in move.values() if x < 0)
    if cap is not None and max(added, removed) > cap:
        return False
    return policy.strength != "markov" or (len(move) <= 4 and all(abs(x) == 1 for x in move.values()))


@lru_cache(maxsize=8)
def minimal_moves(policy: Policy) -> list[Table] | None:
    """Pottier's completion in its plainest form, on the cells of a small domain; None when it is too long."""
    cells = [
        c for c in range(policy.domain.size) if not any(is_zero(f, policy, c) for f in policy.constraints)
    ]
    facts = [f for f in policy.constraints if not isinstance(f, StructuralZero)]
    keys = sorted(
        {(at, repr(k)) for at, f in enumerate(facts) for c in cells for k in public_sums(f, policy, {c: 1})}
    )
    rows = [
        [
            next((v for k, v in public_sums(facts[at], policy, {c: 1}).items() if repr(k) == name), 0)
            for c in cells
        ]
        for at, name in keys
    ]
    found = naive_moves(rows, len(cells))
    if found is None:
        return None
    top = policy.domain.capacity
    fitting = (g for g in found if top is None or max(map(abs, g)) <= top)
    return [{cell: x for cell, x in zip(cells, g, strict=True) if x} for g in fitting]
