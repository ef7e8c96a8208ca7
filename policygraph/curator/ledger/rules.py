"""How charges add up, when one more fits a limit, and what remains protected: exact arithmetic, no file.

Owns the composition rules of the ledger. ``docs/explanation/proofs/composition.md`` proves those for sums and several policies,
``docs/explanation/proofs/parallel-composition.md`` the one for parts of a table that no move touches together, ``stretch.md`` there the one for policies
whose graphs stretch each other, ``many-charges.md`` the one for many charges of one size.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from policygraph.errors import BudgetError, InputError, PolicyGraphError
from policygraph.exact import sqrt_down
from policygraph.model.loss import Epsilon, EpsilonDelta, Loss, Rho, Target

if TYPE_CHECKING:
    from policygraph.distributions.pure_composition import Sizes
    from policygraph.sensitivity.coupling import MoveCover

WIDEST = 1000
"""Largest epsilon of a limit on many charges: the digits of exact composition grow with it, and beyond there is nothing left to protect."""
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
    sizes
        The epsilons, the largest first, and how many charges there are of each; those in rho count as 0.

    Examples
    --------
    >>> spending = tally([(Epsilon(1), 2), (Rho(0.5), 1)])
    >>> spending.pure, spending.rho
    (None, Fraction(3, 2))
    """

    pure: Fraction | None
    rho: Fraction
    sizes: Sizes = ()

    def __add__(self, other: Spending) -> Spending:
        pure = None if self.pure is None or other.pure is None else self.pure + other.pure
        return Spending(pure, self.rho + other.rho, _listed([*self.sizes, *other.sizes]))

    def over(self, steps: int) -> Spending:
        """Give the loss between data sets ``steps`` neighbours apart (group privacy)."""
        pure = None if self.pure is None else self.pure * steps
        sizes = tuple((size * steps, times) for size, times in self.sizes)
        return Spending(pure, self.rho * steps * steps, sizes)

    @property
    def loss(self) -> Loss | None:
        """The sum as a loss: an epsilon if it can be one, else a rho; None if nothing was spent."""
        if self.rho == 0:
            return None
        return Rho.at_least(self.rho) if self.pure is None else Epsilon.at_least(self.pure)


NOTHING = Spending(Fraction(0), Fraction(0))


def _listed(sizes: Iterable[tuple[Fraction, int]]) -> Sizes:
    """How many charges there are of each size, the largest first."""
    found: Counter[Fraction] = Counter()
    for size, times in sizes:
        found[size] += times
    return tuple(sorted(found.items(), reverse=True))


def tally(charges: Iterable[tuple[Loss, int]]) -> Spending:
    """Add up losses, each with how many times it was charged."""
    pure: Fraction | None = Fraction(0)
    rho = Fraction(0)
    sizes: list[tuple[Fraction, int]] = []
    for loss, times in charges:
        plain = isinstance(loss, Epsilon)
        pure = pure + loss.value * times if plain and pure is not None else None
        rho += (loss.value * loss.value / 2 if plain else loss.value) * times
        sizes.append((loss.value if plain else Fraction(0), times))
    return Spending(pure, rho, _listed(sizes))


def largest_of(sums: Sequence[Spending]) -> Spending:
    """The largest of some sums, in each figure; it has an epsilon if all of them have one."""
    pure = [each.pure for each in sums if each.pure is not None]
    return Spending(
        max(pure) if len(pure) == len(sums) else None,
        max(each.rho for each in sums),
        _at_least([each.sizes for each in sums]),
    )


def _at_least(several: Sequence[Sizes]) -> Sizes:
    """Charges of which there are at least as many from every size on as among any of the given ones.

    Examples
    --------
    >>> _at_least([((3, 1), (1, 2)), ((2, 2),)])
    ((3, 1), (2, 1), (1, 1))
    """
    found: list[tuple[Fraction, int]] = []
    counts, above = [0] * len(several), 0
    listed = sorted(
        ((size, at, times) for at, sizes in enumerate(several) for size, times in sizes), reverse=True
    )
    for size, here in groupby(listed, key=lambda each: each[0]):
        for _, at, times in here:
            counts[at] += times
        if max(counts) > above:
            found.append((size, max(counts) - above))
            above = max(counts)
    return tuple(found)


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
    whole = tally((each.loss, each.times) for each in charges)
    return Spending(
        max(pure) if whole.pure is not None else None,
        max(each.rho for each in sums),
        whole.sizes,
    )


@lru_cache(maxsize=64)
def stretch_between(policy: str, description: str, other: str, other_description: str) -> int | None:
    """The most steps of the second policy between neighbours of the first; None where nothing is proved.

    Parameters
    ----------
    policy, description, other, other_description
        Fingerprints and descriptions as the ledger has them on record; a description that is of another policy is not used.

    Notes
    -----
    Proved for policies without public facts, caps and strengths on tables of records over one domain, its attributes in one order, with records outside of
    it treated alike: the record that changes walks along the other graph, and every table on the way is allowed. For units, those over different domains included, see
    ``units.md``, Theorem 7.
    """
    from policygraph.model.units import Unit, any_policy, steps_between

    try:
        first, second = (any_policy(json.loads(text)) for text in (description, other_description))
        if not same_cells(description, other_description) and not (
            isinstance(first, Unit) and isinstance(second, Unit)
        ):
            return None
        known = (first.fingerprint, second.fingerprint) == (policy, other)
        return steps_between(first, second) if known else None
    except (PolicyGraphError, LookupError, TypeError, ValueError, AttributeError):
        return None


def stretches(descriptions: Mapping[str, str]) -> dict[tuple[str, str], int] | None:
    """The stretch of each policy over each other one; None if one of them is not proved."""
    found: dict[tuple[str, str], int] = {}
    for policy, text in descriptions.items():
        for other, about in descriptions.items():
            steps = 1 if policy == other else stretch_between(policy, text, other, about)
            if steps is None:
                return None
            found[policy, other] = steps
    return found


def under_stretch(
    posted: Mapping[str, Sequence[Posted]],
    spendings: Mapping[str, Spending],
    stretch: Mapping[tuple[str, str], int],
) -> Spending:
    """The largest loss of all charges for a pair that is secret under one of the policies.

    A pair that is a neighbour under both policies loses what the other policy's releases come to; one that is some steps away loses so many times
    their plain sum, parts of the table or not.
    """
    return largest_of(
        [
            sum(
                (
                    spendings[other]
                    if stretch[policy, other] == 1
                    else tally((each.loss, each.times) for each in posted[other]).over(stretch[policy, other])
                    for other in posted
                ),
                NOTHING,
            )
            for policy in posted
        ]
    )


@dataclass(frozen=True)
class Limit:
    """What the charges on one data set may come to.

    Parameters
    ----------
    target
        The limit as it was set.
    certified
        For an (epsilon, delta) limit, the largest rho that is certified to keep it.
    each, most
        For an (epsilon, delta) limit on pure charges of at most ``each``: how many of them are certified to keep it. Then charges in rho are refused.
    larger
        Larger charges that are certified beside these: their sizes, the largest first, and how many there may be of each.

    Notes
    -----
    A pure limit admits pure charges only. A rho limit admits both kinds. An (epsilon, delta) limit holds if
    all charges are pure and their sum is at most epsilon, or if the sum in rho is at most ``certified``; that
    the choice between the two may depend on earlier answers is shown in ``docs/explanation/proofs/composition.md``.
    """

    target: Target
    certified: Rho | None = None
    each: Epsilon | None = None
    most: int | None = None
    larger: Sizes = ()

    @classmethod
    def of(
        cls, target: Target, each: Epsilon | None = None, larger: Mapping[Epsilon, int] | None = None
    ) -> Limit:
        """Make a limit, converting an (epsilon, delta) target once and for all."""
        if larger and each is None:
            raise InputError(
                "larger charges need a size of the others: expected each as well.", code="ledger.each"
            )
        if not isinstance(target, EpsilonDelta):
            if each is not None:
                raise InputError(
                    f"a limit on charges of at most {each} needs a delta: expected a limit in (epsilon, delta).",
                    code="ledger.each",
                )
            return cls(target)
        if each is None:
            return cls(target, target.to_rho())
        from policygraph.distributions.pure_composition import most_charges

        sizes = _checked_sizes(each, larger or {})
        largest = sizes[0][0] if sizes else each.value
        if not largest <= target.epsilon <= WIDEST:
            raise InputError(
                f"charges of up to {Epsilon(largest)} under a limit of {target}: expected none above the epsilon of the limit, and a limit of at most {WIDEST:,}.",
                code="ledger.each",
            )
        most = most_charges(each.value, target.epsilon, target.delta, sizes)
        if most < 0:
            raise InputError(
                f"the larger charges alone do not keep {target}: expected fewer or smaller ones.",
                code="ledger.each",
            )
        return cls(target, None, each, most, sizes)

    def __str__(self) -> str:
        if self.each is None:
            return str(self.target)
        more = "".join(f", and {times:,} of at most {Epsilon(size)}" for size, times in self.larger)
        return f"{self.target}, for at most {self.most:,} charges of at most {self.each} each{more}"

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
        if self.each is not None and spending.pure is None:
            raise BudgetError(
                f"The limit of this data set is for pure charges of at most {self.each} each, and a zCDP loss (rho, Gaussian noise) is not one. Use "
                "Laplace noise with an epsilon, or set a limit without --each.",
                code="budget.kind",
                limit=self.target,
            )
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
        if self.each is not None and spending.pure is not None and self._taken(spending) <= 1:
            return True
        return self._rho is not None and spending.rho <= self._rho

    def _slots(self) -> Sizes:
        """How many charges there may be, by size."""
        return () if self.each is None else (*self.larger, (self.each.value, self.most or 0))

    def _taken(self, spending: Spending) -> Fraction:
        """The share of the allowed charges that is taken; at most 1 if and only if each charge has a place of its own that is large enough.

        There are places for all charges if from every size on there are at least as many places as charges (Hall), and it is enough to look
        at the sizes of charges.
        """
        slots = self._slots()
        share, charges = Fraction(0), 0
        for size, times in spending.sizes:
            charges += times
            places = sum(many for slot, many in slots if slot >= size)
            share = max(share, Fraction(charges, places) if places else Fraction(charges + 1))
        return share

    def used(self, spending: Spending) -> Fraction:
        """The share of the limit that charges of this sum take, by the rule that leaves most."""
        self.require_comparable(spending)
        shares = []
        if self._pure is not None and spending.pure is not None:
            shares.append(spending.pure / self._pure)
        if self._rho is not None:
            shares.append(spending.rho / self._rho)
        if self.each is not None and spending.pure is not None:
            shares.append(self._taken(spending))
        return min(shares)

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

    def left(self, spending: Spending, kind: type[Loss] | None = None, steps: int = 1) -> Loss | None:
        """Give the largest loss of a kind that still fits, or None if nothing does.

        Parameters
        ----------
        spending
            What has been charged.
        kind
            ``Epsilon`` or ``Rho``; by default ``Epsilon`` for a pure limit and ``Rho`` for the others.
        steps
            How many times its loss a charge counts at most.
        """
        self.require_comparable(spending)
        if kind is None:
            kind = Epsilon if isinstance(self.target, Epsilon) or self.each is not None else Rho
        if kind is Rho:
            self.require_comparable(Spending(None, spending.rho))
        rho = Fraction(0) if self._rho is None else max(self._rho - spending.rho, Fraction(0))
        if kind is Rho:
            return Rho.at_most(rho / steps**2) if rho > 0 else None
        pure = Fraction(0)
        if self._pure is not None and spending.pure is not None:
            pure = self._pure - spending.pure
        if spending.pure is not None:
            fitting = [
                size for size, _ in self._slots() if self._taken(spending + tally([(Epsilon(size), 1)])) <= 1
            ]
            pure = max([pure, *fitting])
        best = max(pure, sqrt_down(2 * rho)) / steps
        return Epsilon.at_most(best) if best > 0 else None


def _checked_sizes(each: Epsilon, larger: Mapping[Epsilon, int]) -> Sizes:
    """Sizes and numbers of larger charges, the largest first."""
    from policygraph.distributions.pure_composition import OUTCOMES, outcomes

    for loss, times in larger.items():
        if not isinstance(loss, Epsilon) or loss.value <= each.value or type(times) is not int or times < 1:
            raise InputError(
                f"larger charges {times!r} times {loss}: expected sizes above {each}, and how many of each, from 1 on.",
                code="ledger.each",
            )
    sizes = _listed((loss.value, times) for loss, times in larger.items())
    if outcomes(sizes) > OUTCOMES:
        raise InputError(
            f"the larger charges can fall in {outcomes(sizes):,} ways: expected at most {OUTCOMES:,}. Give fewer of them, or fewer sizes.",
            code="ledger.each",
        )
    return sizes


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
        union = largest_of(per_pair).loss
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
