"""How far two tables are apart: the length of a shortest chain of neighbours. Owns :func:`distance` and :class:`Distance`.

A release for a loss of epsilon may tell tables at distance d apart with at most d times epsilon, so that the distance says what a policy promises for pairs
that are no neighbours. Along edges it is the cheapest way to carry the records over; under public facts it is searched among the tables between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import InputError, PolicyGraphError, RefusedError
from policygraph.model.policy import Policy
from policygraph.moves.graver.basis import graver_basis
from policygraph.moves.move import Move
from policygraph.moves.neighbours import decompose, moves, verdict

__all__ = ["Distance", "distance"]

RECORDS = 1_000
"""Most records that change for which the cheapest way along edges is computed."""
TABLES = 20_000
"""Most tables that a search for a shorter chain meets."""
LISTED_CELLS = 64
"""Most cells of a domain whose minimal moves are listed for that search."""
FEW_CELLS = 9
"""The same for neighbours that depend on more than their difference."""
MOVES = 20_000
"""Most moves of it."""
USUAL = 20_000_000
"""Work for listing and searching when the caller names none."""

Table = tuple[int, ...]


@dataclass(frozen=True)
class Distance:
    """The length of a shortest chain of neighbours, or bounds on it.

    Attributes
    ----------
    lower
        No chain is shorter.
    upper
        Some chain is as long as this; None where none was found.
    chain
        Tables from the first to the last, each a neighbour of the next; empty where they were not listed.
    reason
        Why, in a sentence.
    connected
        False where it is proved that no chain exists.
    """

    lower: int
    upper: int | None
    chain: tuple[Table, ...]
    reason: str
    connected: bool = True

    @property
    def exact(self) -> bool:
        """Whether the length of a shortest chain is known."""
        return self.lower == self.upper

    def __str__(self) -> str:
        if not self.connected:
            return f"no chain ({self.reason})"
        far = (
            str(self.lower) if self.exact else f"{self.lower} to {'?' if self.upper is None else self.upper}"
        )
        return f"distance {far} ({self.reason})"


def distance(policy: Policy, a: Any, b: Any, *, effort: Effort | int | None = None) -> Distance:
    """How many neighbour steps lead from one table to another.

    Parameters
    ----------
    policy
        Who must not be told apart, given what everybody knows.
    a, b
        Tables of counts; both must have the public facts.
    effort
        Work that the search may spend; None for the usual 20 million units.

    Returns
    -------
    Distance
        Exact along edges, and where the tables between can be searched; bounds elsewhere.

    Raises
    ------
    InputError
        If a table is none of the policy's, or breaks its facts.
    RefusedError
        If so many records change along edges that the cheapest way is not computed.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 5})
    >>> line = pg.Policy(domain, pg.PolicyGraph.line(domain))
    >>> print(distance(line, [1, 0, 0, 0, 2], [0, 0, 0, 1, 2]))
    distance 3 (the cheapest way to carry the records over along edges)
    >>> square = pg.Domain({"a": 2, "b": 2})
    >>> margins = pg.Policy(square, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    >>> distance(margins, [2, 0, 0, 2], [0, 2, 2, 0]).lower
    2

    Notes
    -----
    Every step changes the table by at most the sensitivity S of all cells, so that no chain is shorter than the L1 distance over S; a minimal change of the
    public facts that is taken out of the difference leads to a table between both, so that no shortest chain is longer than the difference has parts.
    """
    first, second = (tuple(int(x) for x in policy._table(table)) for table in (a, b))
    for table in (first, second):
        policy.check_table(table)
    if first == second:
        return Distance(0, 0, (first,), "the tables are equal")
    if policy.definition == "edges":
        return _along_edges(policy, first, second)
    move = Move.between(policy, first, second)
    if not move.keeps_facts:
        return Distance(0, None, (), "the tables differ in a public fact", connected=False)
    work = Effort.of(effort, usual=USUAL)
    whole = (
        policy.definition == "induced" and policy.strength == "worst-case" and policy.at_most_records is None
    )
    known = _one_step(policy, first, second)
    if known:
        return Distance(1, 1, (first, second), "they are neighbours")
    chain = _parts(policy, first, second) if whole else ()
    lower = 1 if known is None else 2
    upper = len(chain) - 1 if chain else None
    if upper == lower:
        return Distance(
            lower, upper, chain, "they are no neighbours, and the difference has two minimal parts"
        )
    steps = _steps(policy, work)
    if steps is None:
        return Distance(
            lower, upper, chain, "the moves are too many to list; the parts of the difference bound it"
        )
    widest = max((int(np.abs(step).sum()) for step in steps), default=1)
    lower = max(lower, -(-int(np.abs(np.subtract(first, second)).sum()) // widest))
    found, met, closed, sure = _search(policy, first, second, steps, upper, work)
    if not sure:
        best = found or chain
        return Distance(
            lower, len(best) - 1 if best else None, best, "whether some tables are neighbours is not decided"
        )
    if found:
        return Distance(met, met, found, "all chains of fewer neighbours were tried")
    if upper is not None and met >= upper:
        return Distance(upper, upper, chain, "all chains of fewer neighbours were tried")
    if closed:
        return Distance(met, None, (), "all tables that chains lead to were met", connected=False)
    return Distance(max(lower, met), upper, chain, "too many tables lie between for all chains to be tried")


def _one_step(policy: Policy, a: Table, b: Table) -> bool | None:
    """Whether they are neighbours in one of the two orders; None where that is not decided."""
    try:
        return bool(verdict(policy, np.array(a), np.array(b)) or verdict(policy, np.array(b), np.array(a)))
    except RefusedError:
        return None


def _parts(policy: Policy, a: Table, b: Table) -> tuple[Table, ...]:
    """The tables that the minimal parts of the difference lead through."""
    here, chain = np.array(a, dtype=np.int64), [a]
    for part in decompose(policy, np.array(a), np.array(b)):
        here = here.copy()
        here[part.cells] += part.amounts
        chain.append(tuple(here.tolist()))
    return tuple(chain)


def _steps(policy: Policy, effort: Effort) -> list[np.ndarray[Any, Any]] | None:
    """All moves and their opposites as vectors; None where they are too many."""
    made = []
    try:
        if policy.definition == "induced" and policy.strength == "worst-case":
            if policy.domain.size > LISTED_CELLS:
                return None
            keep = np.setdiff1d(np.arange(policy.domain.size), policy.system.zeros)
            rows = policy.system.matrix().toarray()[:, keep]
            basis = graver_basis(
                rows, capacity=policy.domain.capacity, max_moves=MOVES, effort=effort.share(1, 2)
            )
            cap = policy.at_most_records
            for row in basis:
                if cap is None or max(row[row > 0].sum(), -row[row < 0].sum()) <= cap:
                    vector = np.zeros(policy.domain.size, dtype=np.int64)
                    vector[keep] = row
                    made += [vector, -vector]
        elif policy.domain.size <= FEW_CELLS:
            for move in moves(policy, limit=MOVES):
                vector = np.zeros(policy.domain.size, dtype=np.int64)
                vector[move.cells] = move.amounts
                made += [vector, -vector]
    except PolicyGraphError:
        return None
    return made if made and len(made) < 2 * MOVES else None


def _search(
    policy: Policy, a: Table, b: Table, steps: list[Any], upper: int | None, effort: Effort
) -> tuple[tuple[Table, ...], int, bool, bool]:
    """A shortest chain, found breadth first, how many steps every chain has at least, whether no table is left, and whether all was decided."""
    alike = policy.definition == "induced" and policy.strength == "worst-case"
    sure = True
    top = policy.domain.capacity
    came: dict[Table, Table | None] = {a: None}
    layer, depth = [a], 0
    while layer:
        if upper is not None and depth + 1 >= upper:
            return (), upper, False, sure
        following = []
        for table in layer:
            here = np.array(table, dtype=np.int64)
            for step in steps:
                effort.spend(2)
                there = here + step
                if there.min() < 0 or (top is not None and there.max() > top):
                    continue
                key = tuple(there.tolist())
                if key in came:
                    continue
                if not alike:
                    near = _one_step(policy, table, key)
                    sure &= near is not None
                    if not near:
                        continue
                came[key] = table
                if key == b:
                    return _back(came, b), depth + 1, False, sure
                following.append(key)
            if effort.done or len(came) > TABLES:
                return (), depth + 1, False, sure
        layer, depth = following, depth + 1
    return (), depth, True, sure


def _back(came: dict[Table, Table | None], end: Table) -> tuple[Table, ...]:
    chain: list[Table] = []
    at: Table | None = end
    while at is not None:
        chain.append(at)
        at = came[at]
    return tuple(reversed(chain))


def _along_edges(policy: Policy, a: Table, b: Table) -> Distance:
    """Records are carried over along edges: an assignment of least cost, bottom being a place without a count."""
    from scipy.optimize import linear_sum_assignment

    from policygraph.model.graphs import BOTTOM

    graph = policy.graph
    if graph is None:
        raise InputError("a policy without graph has no edges.", code="move.graph")
    gone: list[Any] = [
        cell for cell, (x, y) in enumerate(zip(a, b, strict=True)) for _ in range(max(0, x - y))
    ]
    new: list[Any] = [
        cell for cell, (x, y) in enumerate(zip(a, b, strict=True)) for _ in range(max(0, y - x))
    ]
    if max(len(gone), len(new)) > RECORDS:
        raise RefusedError(
            f"{max(len(gone), len(new)):,} records change: expected at most {RECORDS:,} for the distance along edges. Ask about tables that differ less.",
            code="move.matchings",
        )
    if graph.bottom == "none" and len(gone) != len(new):
        return Distance(0, None, (), "records neither appear nor vanish", connected=False)
    if graph.bottom != "none":
        gone, new = gone + [BOTTOM] * len(new), new + [BOTTOM] * len(gone)
    known: dict[tuple[Any, Any], int | None] = {}
    for pair in {(u, v) for u in gone for v in new}:
        known[pair] = 0 if pair[0] == pair[1] else graph.distance(*pair)
    # far apart costs more than everything else together
    most = (max((d for d in known.values() if d is not None), default=0) + 1) * (len(gone) + 1)
    cost = np.array([[most if (d := known[u, v]) is None else d for v in new] for u in gone], dtype=np.int64)
    rows, columns = linear_sum_assignment(cost)
    total = int(cost[rows, columns].sum())
    if total >= most:
        return Distance(
            0, None, (), "no path of edges leads from some record to where one is needed", connected=False
        )
    return Distance(total, total, (), "the cheapest way to carry the records over along edges")
