"""How charges add up and when one more fits a limit: exact arithmetic, no file.

Owns the composition rules of the ledger; ``docs/explanation/proofs/composition.md`` proves them. May import ``errors``,
``exact`` and ``model.loss``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from policygraph.errors import BudgetError
from policygraph.exact import sqrt_down
from policygraph.model.loss import Epsilon, EpsilonDelta, Loss, Rho, Target

__all__ = ["NOTHING", "Limit", "Spending", "tally"]


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
