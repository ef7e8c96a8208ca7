"""A question put to the ladder. Owns :class:`Problem`, :class:`Rung` and how the ladder is climbed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Norm, Query
from policygraph.moves.bracket import Bracket, Witness

__all__ = ["Problem", "Rung"]


class Rung:
    """One way to answer: a name, a function, and the definitions of neighbours that it knows.

    Parameters
    ----------
    name
        What it does, in a few words.
    answer
        Takes a problem and returns a bracket, or None when the problem is not one for it. It may raise
        :class:`~policygraph.errors.RefusedError` to end the climb.
    neighbours
        ``"edges"``, ``"induced"``, ``"blowfish"``; all of them when none is named.
    """

    def __init__(
        self, name: str, answer: Callable[[Problem], Bracket[Witness] | None], *neighbours: str
    ) -> None:
        self.name, self.answer = name, answer
        self.neighbours = neighbours or ("edges", "induced", "blowfish")


@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked: how much one neighbour step of a policy can change a query.

    Attributes
    ----------
    query, policy, norm
        The question; brackets are in integer units of the query, squared for l2.
    effort
        Work that the climb may spend.
    rungs
        The ladder.
    notes
        What rungs found out for the rungs below them, among it the best bracket so far.
    """

    query: Query
    policy: Policy
    norm: Norm
    effort: Effort
    rungs: tuple[Rung, ...]
    notes: dict[str, Any] = field(default_factory=dict)

    def climb(self) -> Bracket[Witness]:
        """Return what the first rung answers that takes the problem."""
        for rung in self.rungs:
            if self.policy.definition in rung.neighbours and (found := rung.answer(self)) is not None:
                return found
        raise RefusedError(
            f"no rung of the ladder takes {self.query!r} under {self.policy!r}.", code="sensitivity.refused"
        )

    def but(self, without: str | None = None, **changes: Any) -> Problem:
        """Return the problem with some parts changed, for a ladder without one of its rungs."""
        rungs = tuple(rung for rung in self.rungs if rung.name != without)
        return replace(self, rungs=rungs, notes={}, **changes)

    @property
    def whole(self) -> bool:
        """Whether every minimal move counts: the worst case without a cap."""
        return self.policy.strength == "worst-case" and self.policy.at_most_records is None

    def settle(self, found: Bracket[Witness]) -> Bracket[Witness] | None:
        """Return a bracket for all minimal moves if it answers the problem; else keep it as a bound for the rungs below."""
        if found.exact and (self.whole or found.upper == 0):
            return found
        self.notes.setdefault("bound", found)
        return None
