"""Moves of a policy. Owns :class:`Move`, :class:`Verdict` and the listing of a policy's moves.

A move is an integer change of cells that takes a table to a neighbour. Everything here works on the support of a
change, so that its cost does not grow with the domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.moves.degrees.secret_pairs import find_repair, secret_cells, touches

if TYPE_CHECKING:
    from policygraph.model.policy import Policy

__all__ = ["Move", "Verdict", "moves", "verdict"]

MATCHED_RECORDS, MATCHED_CELLS = 6, 64
"""Sizes up to which every matching of the records of two data sets is tried."""


@dataclass(frozen=True)
class Verdict:
    """Whether two tables are neighbours, and why; usable as a condition."""

    neighbours: bool
    reason: str
    smaller: Move | None = None

    def __bool__(self) -> bool:
        return self.neighbours


@dataclass(frozen=True)
class Move:
    """An integer change of cells under a policy.

    Attributes
    ----------
    policy
        The policy whose public facts the change must keep.
    change
        Pairs of a cell index and a non-zero amount, in order of the cells.

    Examples
    --------
    >>> from policygraph.model.constraints import Cuboid
    >>> from policygraph.model.domain import Domain
    >>> from policygraph.model.policy import Policy
    >>> policy = Policy(Domain({"a": 2, "b": 4}), constraints=[Cuboid("a"), Cuboid("b")])
    >>> move = Move.of(policy, {0: 1, 1: -1, 4: -1, 5: 1, 2: 1, 3: -1, 6: -1, 7: 1})
    >>> move.is_minimal
    False
    >>> for part in move.decompose():
    ...     print(part)
    +(0, 0) -(0, 1) -(1, 0) +(1, 1)
    +(0, 2) -(0, 3) -(1, 2) +(1, 3)
    """

    policy: Policy
    change: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, policy: Policy, change: dict[int, int]) -> Move:
        """Make a move from a mapping of cell index to amount."""
        listed = tuple(sorted((int(cell), int(amount)) for cell, amount in change.items() if amount))
        for cell, _ in listed:
            if not 0 <= cell < policy.domain.size:
                raise InputError(
                    f"cell {cell}: expected 0 to {policy.domain.size - 1}.", code="move.cell", value=cell
                )
        return cls(policy, listed)

    @classmethod
    def between(cls, policy: Policy, a: Any, b: Any) -> Move:
        """Make the move that leads from one table to another."""
        change = np.asarray(b, dtype=np.int64).ravel() - np.asarray(a, dtype=np.int64).ravel()
        return cls.of(policy, {int(cell): int(change[cell]) for cell in np.flatnonzero(change)})

    @property
    def cells(self) -> Any:
        """Cells that change."""
        return np.array([cell for cell, _ in self.change], dtype=np.int64)

    @property
    def amounts(self) -> Any:
        """Amounts by which they change."""
        return np.array([amount for _, amount in self.change], dtype=np.int64)

    @property
    def size(self) -> int:
        """Number of single additions and removals of records."""
        return sum(abs(amount) for _, amount in self.change)

    @property
    def added(self) -> int:
        """Number of records added."""
        return sum(amount for _, amount in self.change if amount > 0)

    @property
    def removed(self) -> int:
        """Number of records removed."""
        return -sum(amount for _, amount in self.change if amount < 0)

    @property
    def keeps_facts(self) -> bool:
        """Whether the change leaves every public fact as it is."""
        return not np.any(self._matrix() @ self.amounts) and not np.any(
            np.isin(self.cells, self.policy.system.zeros)
        )

    @property
    def is_minimal(self) -> bool:
        """Whether the change keeps the facts and no smaller part of it does."""
        return bool(self.change) and self.keeps_facts and self.smaller() is None

    def smaller(self) -> Move | None:
        """Return a smaller part of the change that keeps the public facts by itself, if there is one."""
        from policygraph.moves.graver.basis import find_smaller

        part = find_smaller(self._matrix(), self.amounts)
        return None if part is None else self._part(part)

    def decompose(self) -> list[Move]:
        """Split the change into minimal moves that never undo each other."""
        from policygraph.moves.graver.basis import decompose

        if not self.keeps_facts:
            raise InputError(
                "the change does not keep the public facts, so that it is no sum of moves.",
                code="move.facts",
                value=self,
            )
        parts = [self._part(part) for part in decompose(self._matrix(), self.amounts)]
        return sorted(parts, key=lambda part: part.change)

    def draw(self, target: Any) -> Any:
        """Draw a small move into a picture file or into matplotlib axes; return the axes."""
        from policygraph.moves.drawing import draw

        return draw(self, target)

    def _matrix(self) -> Any:
        return self.policy.system.matrix_on(self.cells)

    def _part(self, amounts: Any) -> Move:
        return Move.of(self.policy, dict(zip(self.cells.tolist(), np.asarray(amounts).tolist(), strict=True)))

    def __str__(self) -> str:
        words = []
        for cell, amount in self.change:
            labels = ", ".join(str(label) for label in self.policy.domain.cell(cell))
            times = "" if abs(amount) == 1 else f"{abs(amount)} x "
            words.append(f"{'+' if amount > 0 else '-'}{times}({labels})")
        return " ".join(words)


def verdict(policy: Policy, a: Any, b: Any) -> Verdict:
    """Decide by the definition whether two tables of counts are neighbours under a policy."""
    move = Move.between(policy, a, b)
    if not move.change:
        return Verdict(False, "the tables are equal")
    if policy.definition == "edges":
        return _along_edges(policy, move)
    for name, table in (("first", a), ("second", b)):
        try:
            policy.system.check(table)
        except InputError as error:
            return Verdict(False, f"the {name} table breaks the public facts: {error}")
    if not move.keeps_facts:
        return Verdict(False, "the tables differ in a public fact")
    if policy.at_most_records is not None and max(move.added, move.removed) > policy.at_most_records:
        return Verdict(False, f"the change has more than {policy.at_most_records} records on a side")
    secret = secret_cells(policy)
    if policy.definition == "blowfish" and secret is None:
        return _blowfish(policy, a, b)
    smaller = move.smaller()
    if smaller is not None:
        return Verdict(False, f"a smaller change keeps the public facts: {smaller}", smaller)
    if secret is not None:
        return _secret_edges(policy, a, move, secret)
    return _strength(policy, a, move)


def _secret_edges(policy: Policy, table: Any, move: Move, secret: Any) -> Verdict:
    changed = touches(dict(move.change), secret)
    if not changed:
        return Verdict(False, "no secret edge changes")
    present = {int(cell): 1 for cell in np.flatnonzero(table)}
    if find_repair(policy, present, changed, secret):
        return Verdict(
            False,
            "some of the secret edges could change alone, edges that are not secret repairing the facts",
        )
    return Verdict(True, "a minimal change with as few secret edges as the public facts allow")


def _along_edges(policy: Policy, move: Move) -> Verdict:
    from policygraph.model.graphs import BOTTOM

    graph = policy.graph
    if graph is None:
        raise InputError("a policy without graph has no edges.", code="move.graph")
    if policy.at_most_records is not None and max(move.added, move.removed) > policy.at_most_records:
        return Verdict(False, "the change is above the cap on records")
    if move.added <= 1 and move.removed <= 1:
        ends: list[Any] = [cell for cell, _ in move.change]
        pair = ends if len(ends) == 2 else [ends[0], BOTTOM]
        if graph.has_edge(*pair):
            return Verdict(True, "one record changes along an edge of the policy graph")
        return Verdict(False, "one record changes, but along no edge of the policy graph")
    return Verdict(False, "more than one record changes")


def _strength(policy: Policy, table: Any, move: Move) -> Verdict:
    if policy.strength == "markov":
        short = len(move.change) <= 4 and all(abs(amount) == 1 for _, amount in move.change)
        return Verdict(
            short, "a minimal move of at most four single changes" if short else "more than four changes"
        )
    if policy.strength == "positive":
        from policygraph.moves.strengths.overview import is_positive

        # Alternatives may use any cell, so this one definition needs the whole matrix.
        matrix = policy.system.matrix().toarray()
        change = np.zeros(policy.domain.size, dtype=np.int64)
        change[move.cells] = move.amounts
        keep = np.setdiff1d(np.arange(policy.domain.size), policy.system.zeros)
        # Alternatives are shorter than the change, so that more records than this in a cell make no difference.
        held = np.minimum(np.asarray(table)[keep], 2 * move.size)
        positive, reason = is_positive(matrix[:, keep], held, change[keep], capacity=policy.domain.capacity)
        return Verdict(
            bool(positive), f"positive neighbours: {reason}" if positive else f"not positive: {reason}"
        )
    return Verdict(True, "the change is minimal: no smaller part of it keeps the public facts")


def _blowfish(policy: Policy, a: Any, b: Any) -> Verdict:
    """Some matching of the records must make the two data sets neighbours; every matching is tried."""
    from policygraph.moves.blowfish.problem import blowfish_problem, dense_problem
    from policygraph.moves.blowfish.records import decide, matchings

    matrix, adjacency, keep = dense_problem(policy)
    bottom = policy.graph is not None and policy.graph.bottom != "none"
    first, second = (
        [at for at, cell in enumerate(keep) for _ in range(int(table[cell]))] for table in (a, b)
    )
    most = max(len(first), len(second))
    if most > MATCHED_RECORDS or policy.domain.size > MATCHED_CELLS:
        raise RefusedError(
            f"{most} records in {policy.domain.size} cells: every matching of the records would have to be tried (at most "
            f"{MATCHED_RECORDS} in {MATCHED_CELLS}). Ask about the records that change, or use are_neighbours_records.",
            code="move.matchings",
        )
    if len(first) != len(second) and not bottom:
        return Verdict(False, "the data sets have different sizes, and records neither appear nor vanish")
    problem = blowfish_problem(matrix, adjacency, bottom=bottom)
    reason = "no matching of the records has a secret pair"
    for pairs in matchings(first, second, len(keep) if bottom else None):
        found = decide(problem, [x for x, _ in pairs], [y for _, y in pairs])
        if found.neighbours:
            return Verdict(True, found.reason)
        reason = found.reason
    return Verdict(False, f"no matching of the records makes them neighbours; for the last one: {reason}")


def moves(policy: Policy, *, limit: int | None = None) -> Iterator[Move]:
    """List the moves of a policy lazily, one of each pair of opposite moves.

    Raises
    ------
    RefusedError
        When the moves cannot be listed (a huge domain, or too many minimal moves).
    """
    return islice(_moves(policy), limit)


def _moves(policy: Policy) -> Iterator[Move]:
    if policy.definition == "edges":
        yield from _edge_moves(policy)
    elif policy.definition == "blowfish":
        yield from _blowfish_moves(policy)
    else:
        yield from _induced_moves(policy)


def _edge_moves(policy: Policy) -> Iterator[Move]:
    from policygraph.model.graphs import Bottom

    if policy.graph is None:
        return
    for u, v in policy.graph.edges():
        yield Move.of(policy, {u: 1} if isinstance(v, Bottom) else {u: -1, v: 1})


def _induced_moves(policy: Policy) -> Iterator[Move]:
    from policygraph.moves.graver.basis import graver_basis
    from policygraph.moves.strengths.overview import positive_moves

    matrix = policy.system.matrix().toarray()
    keep = np.setdiff1d(np.arange(policy.domain.size), policy.system.zeros)
    basis = graver_basis(matrix[:, keep], capacity=policy.domain.capacity)
    if policy.strength == "markov":
        basis = basis[(np.count_nonzero(basis, axis=1) <= 4) & (np.abs(basis).max(axis=1, initial=0) <= 1)]
    elif policy.strength == "positive":
        basis = positive_moves(matrix[:, keep], basis, capacity=policy.domain.capacity, basis=basis)
    for row in basis:
        move = Move.of(policy, {int(keep[at]): int(row[at]) for at in np.flatnonzero(row)})
        cap = policy.at_most_records
        if cap is None or max(move.added, move.removed) <= cap:
            yield move


def _blowfish_moves(policy: Policy) -> Iterator[Move]:
    from policygraph.moves.blowfish.longest import blowfish_moves
    from policygraph.moves.blowfish.problem import dense_problem

    if (secret := secret_cells(policy)) is not None:
        # Some of these may lead to no neighbour of any network; none is left out.
        yield from (move for move in _induced_moves(policy) if touches(dict(move.change), secret))
        return
    matrix, adjacency, keep = dense_problem(policy)
    if not len(keep):
        return  # every cell is structurally empty
    bottom = policy.graph is not None and policy.graph.bottom != "none"
    seen = set()
    for found in blowfish_moves(matrix, adjacency, bottom=bottom, at_most_records=policy.at_most_records):
        change = tuple((int(keep[int(cell)]), int(x)) for cell, x in found.change)  # type: ignore[call-overload]
        if tuple((cell, -x) for cell, x in change) not in seen:
            seen.add(change)
            yield Move.of(policy, dict(change))
