"""Noise on statistics that are not linear: of networks, and of tables. Owns :class:`StatisticNoise`.

Scaled to the bounds of ``sensitivity.statistics``; the argument for the noise is that of ``docs/explanation/proofs/additive-noise.md``, where only
a bound on the change of the answers enters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from policygraph.errors import InputError, RefusedError
from policygraph.exact import show
from policygraph.mechanisms.base import (
    MOST_ANSWERS,
    Calibrated,
    Mechanism,
    Noise,
    check_drawable,
    check_loss,
    noise_for,
)
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.statistics import NonlinearQuery
from policygraph.release.release import Randomness
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.statistics import StatisticBound, statistic_bound


@dataclass(frozen=True)
class CalibratedStatistic(Calibrated):
    """Independent discrete noise on each number of a statistic."""

    mechanism: str
    query: Query
    policy: Any
    loss: Loss
    bound: StatisticBound
    sensitivity: Sensitivity | None = None

    most_reach = 1 << 61

    @cached_property
    def parameter(self) -> Fraction:
        """Scale bound / epsilon, or variance bound^2 / (2 rho)."""
        if isinstance(self.loss, Epsilon):
            return Fraction(self.bound.power) / self.loss.value
        return Fraction(self.bound.power) / (2 * self.loss.value)

    @cached_property
    def noise(self) -> Noise:
        return noise_for(self.loss, self.parameter)

    def record(self, randomness: Randomness, parts: list[dict[str, Any]]) -> dict[str, Any]:
        made = super().record(randomness, parts)
        made["bound"] = self.bound.to_dict()
        return made

    def stages(self) -> Sequence[str]:
        size = "the root of " if self.bound.norm == "l2" else ""
        unit = "" if self.query.unit == 1 else f", in units of {show(self.query.unit)}"
        first = (
            f"One neighbour step changes the answers by at most {size}{self.bound.power} ({self.bound.norm.upper()}{unit}): "
            f"{self.bound.reason}."
        )
        if self.parameter == 0:
            return [first, "No noise was added."]
        kind = "scale" if isinstance(self.loss, Epsilon) else "variance parameter"
        noise = f"Independent {self.noise.distribution} noise of {kind} {show(self.parameter)}{unit} was added to each answer"
        return [first, f"{noise}, for a loss of {self.loss}."]


@dataclass(frozen=True)
class StatisticNoise(Mechanism):
    """Discrete Laplace noise for epsilon, discrete Gaussian noise for rho, on a statistic that is not linear in the counts.

    Examples
    --------
    >>> import policygraph as pg
    >>> from policygraph.model.queries.network_statistics import DegreeTail
    >>> network = pg.Network(5)
    >>> ready = StatisticNoise().calibrate(DegreeTail(network), pg.Policy(network), pg.Epsilon("1/2"))
    >>> ready.parameter
    Fraction(4, 1)
    """

    name: str = "statistic noise"

    def calibrate(
        self,
        query: Query,
        policy: Policy | NodePrivacy,
        loss: Loss,
        sensitivity: Sensitivity | None = None,
    ) -> CalibratedStatistic:
        if not isinstance(query, NonlinearQuery):
            raise InputError(
                f"{query!r} is a linear query: expected a statistic of a network or of a table. Use Laplace or Gaussian.",
                code="statistic.linear",
                value=query,
            )
        if sensitivity is not None:
            raise InputError(
                "a statistic is scaled to its own bound: expected no sensitivity.",
                code="mechanism.sensitivity",
            )
        check_loss(loss)
        if query.height > MOST_ANSWERS:
            raise RefusedError(
                f"{query!r} has {query.height:,} answers: expected at most {MOST_ANSWERS:,}. Tell fewer degrees apart (largest=).",
                code="mechanism.answers",
                value=query.height,
            )
        ready = CalibratedStatistic(self.name, query, policy, loss, statistic_bound(query, policy, loss.norm))
        check_drawable(ready)
        return ready
