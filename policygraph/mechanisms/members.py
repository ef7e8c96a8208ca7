"""Mechanisms for single records, at a share of the loss, where a policy hides all records of a unit. Owns :class:`OnMembers`.

Up to k steps of the policy for records lead from a data set to its neighbour, and every data set on the way is one that this policy allows: losses add up to k
times epsilon, or k^2 times rho (``docs/explanation/proofs/units.md``, Theorem 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy.typing as npt

from policygraph.distributions.noise import Noise
from policygraph.mechanisms.additive import Gaussian, Laplace
from policygraph.mechanisms.base import Calibrated, Floats, Mechanism, check_loss
from policygraph.model.grouped import Grouped
from policygraph.model.loss import Epsilon, Loss, Rho
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.units import Unit
from policygraph.release.release import Errors, Randomness, Release

__all__ = ["OnMembers", "calibrated_under", "fits_members", "for_unit", "share_of_record", "sums_in_all"]


def share_of_record(loss: Loss, members: int) -> Loss:
    """The loss of one record that adds up to a loss over so many of them.

    Examples
    --------
    >>> print(share_of_record(Epsilon(1), 4), share_of_record(Rho(1), 4))
    epsilon = 0.25 rho = 0.0625
    """
    check_loss(loss)
    if isinstance(loss, Epsilon):
        return Epsilon(Fraction(loss.value) / members)
    return Rho(Fraction(loss.value) / members**2)


def for_unit(mechanism: Mechanism, query: Query, policy: Unit, loss: Loss) -> Calibrated:
    """Calibrate a mechanism under a policy that hides units: noise on every answer by the unit's own certificate, any other by its records."""
    if isinstance(mechanism, (Laplace, Gaussian)) or sums_in_all(query):
        return mechanism.calibrate(query, policy, loss)  # type: ignore[arg-type]
    inner = mechanism.calibrate(query, policy.records, share_of_record(loss, policy.at_most))
    return OnMembers(inner, policy, loss)


def calibrated_under(mechanism: Mechanism, query: Query, policy: Policy | Grouped, loss: Loss) -> Calibrated:
    """Calibrate a mechanism under a policy for records, or for units as :func:`for_unit` does.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"shop": 4})
    >>> query, people = pg.queries.all_ranges(domain), Unit(pg.Policy(domain), "person", 3)
    >>> print(calibrated_under(pg.MatrixMechanism("tree"), query, people, pg.Epsilon(3)).inner.loss)
    epsilon = 1
    """
    if isinstance(policy, Unit):
        return for_unit(mechanism, query, policy, loss)
    return mechanism.calibrate(query, policy, loss)  # type: ignore[arg-type]


def sums_in_all(query: Query) -> bool:
    """Whether these are sums to which all records of a unit add at most so much together: noise then follows from the certificate of the unit, not of a record."""
    return isinstance(query, MeasureQuery) and query.measure.in_all is not None


def fits_members(ready: OnMembers) -> bool:
    """Whether the parts of a copy belong together: the mechanism is for the records of the unit, at their share of the loss."""
    share = share_of_record(ready.loss, ready.policy.at_most)
    return bool(ready.inner.policy == ready.policy.records and ready.inner.loss == share)


@dataclass(frozen=True)
class OnMembers(Calibrated):
    """A mechanism for single records that hides all records of a unit.

    Attributes
    ----------
    inner
        The mechanism under the policy for records, at the share of one record.
    """

    inner: Calibrated
    policy: Any
    loss: Loss

    runner = "members"
    sensitivity = None

    @property
    def mechanism(self) -> str:  # type: ignore[override]
        """Its name."""
        return self.inner.mechanism

    @property
    def query(self) -> Query:  # type: ignore[override]
        """What is asked."""
        return self.inner.query

    @property
    def noise(self) -> Noise:
        return self.inner.noise

    @property
    def measure(self) -> Query | None:
        return self.inner.measure

    @property
    def centre(self) -> Query | None:
        return self.inner.centre

    @property
    def keeps_facts(self) -> bool:
        return self.inner.keeps_facts

    @property
    def most_records(self) -> int:
        """As many as the mechanism itself can take."""
        return self.inner.most_records

    def comparable(self, outputs: Any) -> npt.NDArray[Any]:
        return self.inner.comparable(outputs)

    def to_answers(self, points: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return self.inner.to_answers(points)

    def deviation(self, part: int) -> float | Floats:
        return self.inner.deviation(part)

    def within_95(self, part: int) -> float | Floats:
        return self.inner.within_95(part)

    def joint_bound(self, delta: Any) -> list[float | Floats]:
        return self.inner.joint_bound(delta)

    @property
    def total_error(self) -> float:
        return self.inner.total_error

    def errors_of(self, points: Any) -> Sequence[Errors]:
        return self.inner.errors_of(points)

    def most_bytes(self, rows: int, randomness: Randomness) -> int:
        return super().most_bytes(rows, randomness) + self.inner.most_bytes(rows, randomness)

    def stages(self) -> Sequence[str]:
        k = self.policy.at_most
        return [
            f"Everything of one {self.policy.column} is hidden, {self.policy.words}: the mechanism hides each of {k} records at {self.inner.loss}, and so all of them at {self.loss}.",
            *self.inner.sentences(),
        ]

    def publish(self, points: Any, randomness: Randomness) -> Release:
        """Make the release of the mechanism, under the policy and the loss of the unit (post-processing)."""
        made = self.inner.publish(points, randomness)
        mine = self.record(randomness, [])
        own = ("stages", "loss", "unit", "policy", "policy_fingerprint", "certificate", "certificate_of")
        return replace(made, record={**made.record, **{key: mine[key] for key in own}})
