"""How charges add up, when one more fits a limit, and what remains protected: exact arithmetic, no file.

Owns the composition rules of the ledger. ``docs/explanation/proofs/composition.md`` proves those for sums and several policies,
``docs/explanation/proofs/parallel-composition.md`` the one for parts of a table that no move touches together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from policygraph.errors import BudgetError, InputError, PolicyGraphError
from policygraph.exact import sqrt_down
from policygraph.model.loss import Epsilon, EpsilonDelta, Loss, Rho, Target

if TYPE_CHECKING:
    from policygraph.sensitivity.coupling import MoveCover

MOST_RUNS = 10_000
"""Most runs of cells that a part is written with."""


@dataclass(frozen=True)
class Spending:
    """The exact sums of a series of charges, in both kinds.

    Parameters
    ----------
    pure
        The sum of the epsilons, or None as soon as one charge is a rho, which implies no epsilon.
    rho
        The sum of the rhos, in which an epsilon counts as epsilon**2 / 2.

    Examples
    --------
    >>> spending = tally([(Epsilon(1), 2), (Rho(0.5), 1)])
    >>> spending.pure, spending.rho
    (None, Fraction(3, 2))
    """

    pure: Fraction | None
    rho: Fraction

    def __add__(self, other: Spending) -> Spending:
        pure = None if self.pure is None or other.pure is None else self.pure + other.pure
        return Spending(pure, self.rho + other.rho)

    def over(self, steps: int) -> Spending:
        """Give the loss between data sets ``steps`` neighbours apart (group privacy)."""
        return Spending(None if self.pure is None else self.pure * steps, self.rho * steps * steps)

    @property
    def loss(self) -> Loss | None:
        """The sum as a loss: an epsilon if it can be one, else a rho; None if nothing was spent."""
        if self.rho == 0:
            return None
        return Rho.at_least(self.rho) if self.pure is None else Epsilon.at_least(self.pure)


NOTHING = Spending(Fraction(0), Fraction(0))


def tally(charges: Iterable[tuple[Loss, int]]) -> Spending:
    """Add up losses, each with how many times it was charged."""
    total = NOTHING
    for loss, times in charges:
        pure = loss.value if isinstance(loss, Epsilon) else None
        rho = loss.value * loss.value / 2 if isinstance(loss, Epsilon) else loss.value
        total += Spending(None if pure is None else pure * times, rho * times)
    return total


@dataclass(frozen=True)
class ChargedPart:
    """The cells that a release looked at, of data that were read in one way.

    Attributes
    ----------
    reading
        What the data and the way they were read are known by: charges on other data, or on the same data read differently, add up
        with this one whatever their cells are, since one person may be in both.
    cells
        First and last cell of each run of neighbouring cells, as JSON.
    """

    reading: str
    cells: str

    @classmethod
    def of(cls, reading: str, cells: Iterable[int]) -> ChargedPart | None:
        """Write down a part; None for no cells or for too many runs of cells, and then the charge counts for all cells.

        Examples
        --------
        >>> ChargedPart.of("", [3, 1, 2, 7])
        ChargedPart(reading='', cells='[[1,3],[7,7]]')
        """
        import numpy as np

        listed = np.unique(np.asarray(list(cells), dtype=np.int64))
        starts = np.flatnonzero(np.diff(listed, prepend=-2) > 1)
        if not 0 < len(starts) <= MOST_RUNS:
            return None
        ends = np.append(starts[1:], len(listed)) - 1
        runs = [[int(listed[a]), int(listed[b])] for a, b in zip(starts, ends, strict=True)]
        return cls(reading, json.dumps(runs, separators=(",", ":")))

    @property
    def runs(self) -> list[tuple[int, int]]:
        """First and last cell of each run."""
        return [(int(first), int(last)) for first, last in json.loads(self.cells)]

    @property
    def indices(self) -> Any:
        """The cells as an array."""
        import numpy as np

        return np.concatenate([np.arange(first, last + 1) for first, last in self.runs])

    def __str__(self) -> str:
        runs = self.runs
        named = [str(first) if first == last else f"{first} to {last}" for first, last in runs[:3]]
        more = [f"{len(runs) - 3} more runs"] if len(runs) > 3 else []
        return ("cell " if runs == [(runs[0][0],) * 2] else "cells ") + ", ".join([*named, *more])


@dataclass(frozen=True)
class Posted:
    """Equal charges under one policy: their loss, how many there are, and the part that they looked at (None: any cell)."""

    loss: Loss
    times: int = 1
    part: ChargedPart | None = None


def same_cells(description: str, other: str) -> bool:
    """Whether two descriptions of one policy number its cells alike, that is, list the attributes in one order.

    Examples
    --------
    >>> same_cells('{"domain":{"age":2,"sex":2}}', '{"domain":{"sex":2,"age":2}}')
    False
    """
    first, second = (json.dumps(json.loads(text).get("domain")) for text in (description, other))
    return first == second


@lru_cache(maxsize=4)
def cover_of(policy: str, description: str) -> MoveCover | None:
    """Which cells can change together under a policy that the ledger has on record; None when that cannot be told.

    Parameters
    ----------
    policy
        Fingerprint of the policy; a description that is of another one is not used.
    description
        The policy as JSON.
    """
    from policygraph.model.policy import Policy
    from policygraph.sensitivity.coupling import MoveCover

    try:
        made = Policy.from_spec(json.loads(description))
        return MoveCover.of(made) if made.fingerprint == policy else None
    except (PolicyGraphError, LookupError, TypeError, ValueError, AttributeError):
        return None


def compose(
    charges: Sequence[Posted], policy: str, description: str, at: ChargedPart | None = None
) -> Spending:
    """What charges under one policy come to: the largest sum over charges that one move can touch.

    Parameters
    ----------
    charges
        All charges under the policy.
    policy, description
        Fingerprint of the policy, and the policy as JSON.
    at
        Only what a further charge on this part would be added to.

    Notes
    -----
    Charges without a part, and charges on parts of different data, are taken to be touched by every move.
    """
    total = tally((each.loss, each.times) for each in charges if each.part is None)
    readings: dict[str, list[Posted]] = {}
    for each in charges:
        if each.part is not None:
            readings.setdefault(each.part.reading, []).append(each)
    for reading, mine in readings.items():
        here = at if at is not None and at.reading == reading else None
        total += _largest(mine, here, policy, description)
    return total


def _largest(charges: Sequence[Posted], at: ChargedPart | None, policy: str, description: str) -> Spending:
    """The largest sum over charges on parts of one table that one move can touch, of moves that touch a given part."""
    parts = list(dict.fromkeys(each.part for each in charges if each.part is not None))
    compared = parts if at is None or at in parts else [*parts, at]
    cover = cover_of(policy, description) if len(compared) > 1 else None
    if cover is None:
        return tally((each.loss, each.times) for each in charges)
    sums = [NOTHING]
    for group in cover.together([part.indices for part in compared]):
        touched = [compared[place] for place in group]
        if at is None or at in touched:
            sums.append(tally((each.loss, each.times) for each in charges if each.part in touched))
    # A loss in rho has no epsilon, and neither has a maximum over sums of which one is in rho.
    pure = [each.pure for each in sums if each.pure is not None]
    all_pure = all(isinstance(each.loss, Epsilon) for each in charges)
    return Spending(max(pure) if all_pure else None, max(each.rho for each in sums))


@dataclass(frozen=True)
class Limit:
    """What the charges on one data set may come to.

    Parameters
    ----------
    target
        The limit as it was set.
    certified
        For an (epsilon, delta) limit, the largest rho that is certified to keep it.

    Notes
    -----
    A pure limit admits pure charges only. A rho limit admits both kinds. An (epsilon, delta) limit holds if
    all charges are pure and their sum is at most epsilon, or if the sum in rho is at most ``certified``; that
    the choice between the two may depend on earlier answers is shown in ``docs/explanation/proofs/composition.md``.
    """

    target: Target
    certified: Rho | None = None

    @classmethod
    def of(cls, target: Target) -> Limit:
        """Make a limit, converting an (epsilon, delta) target once and for all."""
        return cls(target, target.to_rho() if isinstance(target, EpsilonDelta) else None)

    @property
    def _rho(self) -> Fraction | None:
        if isinstance(self.target, Rho):
            return self.target.value
        return None if self.certified is None else self.certified.value

    @property
    def _pure(self) -> Fraction | None:
        if isinstance(self.target, Epsilon):
            return self.target.value
        return self.target.epsilon if isinstance(self.target, EpsilonDelta) else None

    def require_comparable(self, spending: Spending) -> None:
        """Refuse charges whose kind says nothing about this limit.

        Raises
        ------
        BudgetError
            If a rho meets a pure limit.
        """
        if isinstance(self.target, Epsilon) and spending.pure is None:
            raise BudgetError(
                f"The limit of this data set is pure ({self.target}), and a zCDP loss (rho, Gaussian noise) "
                "implies no pure epsilon, however small it is. Use Laplace noise with an epsilon, or set "
                "a limit in rho or in (epsilon, delta).",
                code="budget.kind",
                limit=self.target,
            )

    def admits(self, spending: Spending) -> bool:
        """Say whether charges of this sum keep the limit."""
        self.require_comparable(spending)
        if self._pure is not None and spending.pure is not None and spending.pure <= self._pure:
            return True
        return self._rho is not None and spending.rho <= self._rho

    def spent(self, spending: Spending) -> Target | None:
        """State a sum in the kind of the limit, or None for nothing."""
        self.require_comparable(spending)
        if spending.rho == 0:
            return None
        if isinstance(self.target, Epsilon):
            return spending.loss
        total = Rho.at_least(spending.rho)
        if isinstance(self.target, Rho):
            return total
        best = total.to_epsilon_delta(self.target.delta).epsilon
        if spending.pure is not None:
            best = min(best, Epsilon.at_least(spending.pure).value)
        if self.admits(spending):
            best = min(best, self.target.epsilon)
        return EpsilonDelta(best, self.target.delta)

    def left(self, spending: Spending, kind: type[Loss] | None = None) -> Loss | None:
        """Give the largest loss of a kind that still fits, or None if nothing does.

        Parameters
        ----------
        spending
            What has been charged.
        kind
            ``Epsilon`` or ``Rho``; by default ``Epsilon`` for a pure limit and ``Rho`` for the others.
        """
        self.require_comparable(spending)
        if kind is None:
            kind = Epsilon if isinstance(self.target, Epsilon) else Rho
        if kind is Rho:
            self.require_comparable(Spending(None, spending.rho))
        rho = Fraction(0) if self._rho is None else max(self._rho - spending.rho, Fraction(0))
        if kind is Rho:
            return Rho.at_most(rho) if rho > 0 else None
        pure = Fraction(0)
        if self._pure is not None and spending.pure is not None:
            pure = self._pure - spending.pure
        best = max(pure, sqrt_down(2 * rho))
        return Epsilon.at_most(best) if best > 0 else None


Stretch = Mapping[tuple[str, str], int | None]
"""For policies (P, Q): the most steps of Q that lie between P-neighbours, or None if some have no path."""


@dataclass(frozen=True)
class Statement:
    """The loss on a data set, for each policy, for their common pairs, and for all pairs.

    Parameters
    ----------
    dataset, name
        The keyed name in the ledger and the human one.
    limit
        The limit that is set, if any.
    per_policy
        For each policy fingerprint the loss of the releases made under it, seen alone.
    intersection
        The loss of all releases together for pairs that are secret under every one of the policies.
    union
        The same for pairs that are secret under at least one policy, or None: no bound is known, because a
        release under one policy may tell apart a pair that is secret under another only.
    """

    dataset: str
    name: str | None
    limit: Target | None
    per_policy: Mapping[str, Loss]
    intersection: Loss | None
    union: Loss | None

    def __str__(self) -> str:
        title = self.name or self.dataset
        if self.intersection is None:
            return f"Data set {title}: nothing was released."
        if len(self.per_policy) == 1:
            (policy,) = self.per_policy
            return f"Data set {title}: {self.intersection} for the secret pairs of policy {policy}."
        lines = [f"Data set {title} was released under {len(self.per_policy)} policies."]
        lines += [f"  Releases under {policy} alone: {loss}." for policy, loss in self.per_policy.items()]
        lines.append(f"  All releases, for pairs secret under every one of them: {self.intersection}.")
        if self.union is None:
            lines.append(
                "  All releases, for pairs secret under only some of them: no guarantee. The releases under "
                "a policy that does not protect a pair may tell its two sides apart."
            )
        else:
            lines.append(f"  All releases, for pairs secret under at least one of them: {self.union}.")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Write the statement as plain JSON values."""
        return {
            "dataset": self.dataset,
            "name": self.name,
            "limit": self.limit and self.limit.to_json(),
            "per_policy": {policy: loss.to_json() for policy, loss in self.per_policy.items()},
            "intersection": self.intersection and self.intersection.to_json(),
            "union": self.union and self.union.to_json(),
            "text": str(self),
        }


def state(
    dataset: str,
    name: str | None,
    limit: Target | None,
    spendings: Mapping[str, Spending],
    stretch: Stretch | None = None,
) -> Statement:
    """Compose what was spent under each policy.

    Notes
    -----
    A P-neighbour pair that is joined by at most k steps of Q loses at most k times epsilon_Q (or k squared
    times rho_Q) through the releases under Q, so that with all stretches known the loss for the pairs of P is
    the sum over Q, and the loss for the union is the largest of these sums. Without a stretch nothing is
    assumed: a pair of P may have no Q-path at all.
    """
    steps = {(policy, policy): 1 for policy in spendings} | _checked(stretch or {})
    total = sum(spendings.values(), NOTHING)
    per_pair: list[Spending] = []
    for mine in spendings:
        parts = [(steps.get((mine, other)), spending) for other, spending in spendings.items()]
        reached = [spending.over(count) for count, spending in parts if count is not None]
        if len(reached) == len(parts):
            per_pair.append(sum(reached, NOTHING))
    union = None
    if per_pair and len(per_pair) == len(spendings):
        # Every sum ranges over all policies, so either all of them are pure or none is.
        pure = [part.pure for part in per_pair if part.pure is not None]
        union = Spending(max(pure) if pure else None, max(part.rho for part in per_pair)).loss
    losses = {policy: spending.loss for policy, spending in spendings.items()}
    shares = {policy: loss for policy, loss in losses.items() if loss is not None}
    return Statement(dataset, name, limit, shares, total.loss, union)


def _checked(stretch: Stretch) -> dict[tuple[str, str], int | None]:
    for pair, steps in stretch.items():
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
            raise InputError(
                f"stretch of {pair!r} is {steps!r}: expected a whole number of steps >= 1, or None "
                "where no path is known.",
                code="ledger.stretch",
                pair=pair,
                steps=steps,
            )
    return dict(stretch)
