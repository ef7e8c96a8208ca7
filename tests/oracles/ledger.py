"""The literal ledger: a list of charges, added up anew for every question."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from policygraph.model.loss import Epsilon, EpsilonDelta, Rho


@dataclass
class Book:
    """Charges and limits of one data set, with the rules as sentences."""

    limit: Epsilon | Rho | EpsilonDelta | None = None
    charges: list[tuple[str, Epsilon | Rho]] = field(default_factory=list)

    def all_pure(self) -> bool:
        return all(isinstance(loss, Epsilon) for _, loss in self.charges)

    def sum_of_epsilons(self) -> Fraction:
        return sum((loss.value for _, loss in self.charges), Fraction(0))

    def sum_of_rhos(self) -> Fraction:
        return sum(
            (loss.value**2 / 2 if isinstance(loss, Epsilon) else loss.value for _, loss in self.charges),
            Fraction(0),
        )

    def kept(self) -> bool:
        """Whether the charges keep the limit."""
        match self.limit:
            case None:
                return True
            case Epsilon(value=value):
                return self.all_pure() and self.sum_of_epsilons() <= value
            case Rho(value=value):
                return self.sum_of_rhos() <= value
            case EpsilonDelta(epsilon=epsilon):
                by_sum = self.all_pure() and self.sum_of_epsilons() <= epsilon
                return by_sum or self.sum_of_rhos() <= self.limit.to_rho().value

    def charge(self, policy: str, loss: Epsilon | Rho, compose: bool) -> bool:
        """Enter a charge if that is allowed; say whether it was."""
        policies = {name for name, _ in self.charges}
        if policies and policy not in policies and not compose:
            return False
        self.charges.append((policy, loss))
        if self.kept():
            return True
        self.charges.pop()
        return False

    def set_limit(self, limit: Epsilon | Rho | EpsilonDelta) -> bool:
        if isinstance(limit, Epsilon) and not self.all_pure():
            return False
        self.limit = limit
        return True
