"""What remains protected when one data set was released under one or several policies.

Owns ``Statement``. May import ``errors``, ``model.loss`` and ``rules``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from policygraph.curator.ledger.rules import NOTHING, Spending
from policygraph.errors import InputError
from policygraph.model.loss import Loss, Target

__all__ = ["Statement", "Stretch", "state"]

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
