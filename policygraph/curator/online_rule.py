"""The rule of questions asked one by one. Owns :class:`Rule`.

It decides whether a cuboid is answered from what was released or from the data, and at which loss. It is given the policy and
which tables were released with how much noise, never a value of them and never the data, so that what it decides
tells nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from policygraph.distributions import gaussian_variance, laplace_variance
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.online import variance_of
from policygraph.exact import Exact
from policygraph.mechanisms.additive import Additive
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon, Loss, Rho
from policygraph.model.policy import Policy
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.request import proved
from policygraph.transforms.cuboids.costs import known_cuboids
from policygraph.transforms.cuboids.lattice import Lattice

__all__ = ["Rule"]

Noises = Sequence[tuple[int, float]]

DIGITS = 3
"""A loss that is worked out from a deviation is rounded up to so many decimal digits."""
SAME = 1e-9
"""Variances that differ by less than this share count as equal."""
LEAST = 1e-200
"""Noise of a smaller variance than this is none for floats."""
RANGE = 2**40
"""Losses are looked for between the most that a question may cost, divided and multiplied by this."""


@dataclass(frozen=True)
class Rule:
    """When to measure, and at which loss.

    Parameters
    ----------
    policy
        What must be hidden.
    kind
        ``"epsilon"`` or ``"rho"``.
    most
        The most that one question may cost.

    Examples
    --------
    >>> domain = Domain({"sex": 2, "age": 3})
    >>> rule = Rule(Policy(domain), "epsilon", 1)
    >>> rule.decide(0b01, [(0b11, 8.0)], 5.0, None), str(rule.decide(0b01, [(0b11, 8.0)], 4.0, None)[1])
    ((24.0, None), 'epsilon = 0.204')
    """

    policy: Policy
    kind: Literal["epsilon", "rho"]
    most: Exact

    def __post_init__(self) -> None:
        if self.kind not in ("epsilon", "rho"):
            raise InputError(
                f"kind={self.kind!r}: expected 'epsilon' or 'rho'.", code="online.kind", value=self.kind
            )
        if not isinstance(self.policy, Policy) or not isinstance(self.policy.domain, Domain):
            raise InputError(
                f"policy={self.policy!r}: expected a policy over a table.",
                code="online.policy",
                value=self.policy,
            )
        self.loss(self.most)

    def loss(self, value: Exact) -> Loss:
        """A loss of this kind."""
        return Epsilon(value) if self.kind == "epsilon" else Rho(value)

    @cached_property
    def lattice(self) -> Lattice:
        """The cuboids of the domain."""
        return Lattice(self.policy.domain)  # type: ignore[arg-type]

    @cached_property
    def known(self) -> list[int]:
        """Cuboids that no neighbour step changes."""
        return known_cuboids(self.lattice, self.policy)

    @cached_property
    def _proofs(self) -> dict[int, Sensitivity]:
        return {}

    def variance(self, mask: int, released: Noises) -> float:
        """Variance of a cell of a cuboid after least squares over what was released; infinite where that does not tell it."""
        return variance_of(self.lattice, mask, released, self.known)

    def fresh(self, mask: int, loss: Loss) -> float:
        """Variance of the noise of a cuboid that is measured at a loss."""
        if mask not in self._proofs:
            query = CuboidQuery(self.lattice.domain, [self.lattice.names(mask)])
            self._proofs[mask] = proved(query, self.policy, loss.norm)
        proof = self._proofs[mask]
        parameter = Additive("", proof.query, self.policy, loss, proof).parameter
        made = laplace_variance(parameter) if self.kind == "epsilon" else gaussian_variance(parameter)
        return max(made, LEAST)

    def decide(
        self, mask: int, released: Noises, deviation: float | None, fixed: Loss | None
    ) -> tuple[float, Loss | None]:
        """The variance there is now, and the loss to measure the cuboid with, or None when what was released is enough.

        Parameters
        ----------
        mask
            The cuboid asked for.
        released
            Cuboids on record with the variance of their noise.
        deviation
            The standard deviation asked for.
        fixed
            In place of it, the loss of a new measurement.

        Raises
        ------
        RefusedError
            When it would cost more than ``most``.
        """
        now = self.variance(mask, released)
        if now == 0:
            return now, None
        if fixed is not None:
            loss = None if now <= self.fresh(mask, fixed) * (1 + SAME) else fixed
        else:
            wanted = (deviation or 0.0) ** 2 * (1 + SAME)
            loss = None if now <= wanted else self._least(mask, released, wanted)
        limit = self.loss(self.most)
        if loss is not None and loss.value > limit.value:
            raise RefusedError(
                f"cuboid {list(self.lattice.names(mask))} would cost {loss}, and one question may cost at most {limit}. Ask for a "
                "larger deviation, or raise most.",
                code="online.most",
                cost=loss,
            )
        return now, loss

    def _least(self, mask: int, released: Noises, wanted: float) -> Loss:
        """The least loss of three digits with which one more table of the cuboid brings its variance down to a bound."""
        top = self.loss(self.most).value

        def enough(value: Fraction) -> bool:
            more = (mask, self.fresh(mask, self.loss(value)))
            return self.variance(mask, [*released, more]) <= wanted

        low, high = top / RANGE, top
        while not enough(high) and high < top * RANGE:
            low, high = high, high * 2
        # First to a factor of two, then among the numbers of three digits in between.
        while high > 2 * low:
            middle = low * 2 if high < 16 * low else low * 4
            low, high = (low, middle) if enough(middle) else (middle, high)
        found, end = _rounded(low), _rounded(high)
        while found < end:
            middle = _rounded((found + end) / 2)
            middle = middle if middle < end else found
            if enough(middle):
                end = middle
            else:
                found = _rounded(middle + middle / 1000)
        # The most that is allowed need not be a number of three digits.
        return self.loss(top if end > top and enough(top) else end)


def _rounded(value: Fraction) -> Fraction:
    """The number rounded up to a few decimal digits."""
    power = Fraction(1)
    while value * power < 10 ** (DIGITS - 1):
        power *= 10
    while value * power >= 10**DIGITS:
        power /= 10
    scaled = value * power
    return Fraction(-(-scaled.numerator // scaled.denominator)) / power
