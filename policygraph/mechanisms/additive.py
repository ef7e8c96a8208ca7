"""Noise on the answers themselves: discrete Laplace for pure epsilon, discrete Gaussian for zCDP.

Owns :class:`Laplace` and :class:`Gaussian`; their argument is ``docs/explanation/proofs/additive-noise.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.exact import show
from policygraph.mechanisms.base import Calibrated, Floats, Mechanism, Noise, certified, noise_for
from policygraph.model.grouped import Grouped
from policygraph.model.loss import Epsilon, Loss, Rho
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.release.release import Randomness, Release, Table, joint_quantile, share_of
from policygraph.sensitivity.certificate import DETERMINED, Sensitivity


@dataclass(frozen=True)
class Additive(Calibrated):
    """Independent noise of one distribution on every answer."""

    mechanism: str
    query: Query
    policy: Any
    loss: Loss
    sensitivity: Sensitivity

    most_reach = 1 << 61

    @cached_property
    def parameter(self) -> Fraction:
        """Scale Delta / epsilon of Laplace noise, or variance Delta^2 / (2 rho) of Gaussian noise."""
        power = self.query.unit if self.sensitivity.norm == "l1" else self.query.unit**2
        units = self.sensitivity.power / power
        return units / self.loss.value if isinstance(self.loss, Epsilon) else units / (2 * self.loss.value)

    @cached_property
    def noise(self) -> Noise:
        return noise_for(self.loss, self.parameter)

    def joint_bound(self, delta: Any) -> list[float | Floats]:
        """By the quantile of one draw at delta over the number of answers (union bound)."""
        chance = share_of(delta) / max(1, self.query.height)
        each = joint_quantile(self.noise.distribution, self.parameter, chance)
        return [float(each * self.factor(at)) for at in range(len(self.query.parts))]

    def published_in_parts(self, block: int, randomness: Randomness) -> Release:
        """A release that lists the parts of a table that was written elsewhere, with how many of its cells each has."""
        cells = self.query.height
        sizes = np.array([min(block, cells - start) for start in range(0, cells, block)], dtype=np.int64)
        table = Table("parts", ("block",), (np.arange(len(sizes)),), sizes, 0.0, 0.0)
        part = {
            "name": "parts",
            "columns": ["block"],
            "height": len(sizes),
            "integer": True,
            "standard_deviation": 0.0,
            "within_95": 0.0,
        }
        record = self.record(randomness, [part])
        said = f"The table has {cells:,} cells and was written in parts; each value has a standard deviation of {self.deviation(0):.4g}. Listed here is how many cells each block of it has."
        # Another name, so that nobody takes the list of parts for the table.
        return Release(
            (table,),
            {**record, "mechanism": f"{self.mechanism}, in parts", "stages": [*record["stages"], said]},
        )

    def stages(self) -> Sequence[str]:
        kind = "exactly" if self.sensitivity.exact else "at most"
        size = "the root of " if self.sensitivity.norm == "l2" else ""
        first = (
            f"One neighbour step changes the answers by {kind} {size}{show(self.sensitivity.power)} "
            f"({self.sensitivity.norm.upper()}; {self.sensitivity.definition})."
        )
        if self.parameter == 0:
            why = (
                "The public facts determine the answers"
                if self.sensitivity.method == DETERMINED
                else "The policy does not hide the answers"
            )
            return [first, f"{why}, so no noise was added."]
        kind_of = "scale" if isinstance(self.loss, Epsilon) else "variance parameter"
        unit = "" if self.query.unit == 1 else f" (in units of {show(self.query.unit)})"
        return [
            first,
            f"Independent {self.noise.distribution} noise of {kind_of} {show(self.parameter)}{unit} "
            f"was added to each answer, for a loss of {self.loss}.",
        ]


class BuiltOnAdditive(Calibrated):
    """A mechanism whose noise is that of an additive one, on the query of its certificate."""

    sensitivity: Sensitivity

    @cached_property
    def inner(self) -> Additive:
        """The additive mechanism on what is measured."""
        return Additive(self.mechanism, self.sensitivity.query, self.policy, self.loss, self.sensitivity)

    @property
    def parameter(self) -> Fraction:
        """Scale, or variance parameter, of the noise of one measured number."""
        return self.inner.parameter

    @property
    def noise(self) -> Noise:
        return self.inner.noise


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Discrete Laplace noise of scale sensitivity / epsilon.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> query = pg.queries.identity(domain)
    >>> ready = Laplace().calibrate(query, pg.Policy(domain), pg.Epsilon("1/2"))
    >>> ready.parameter
    Fraction(2, 1)
    """

    name: str = "Laplace"

    def calibrate(
        self, query: Query, policy: Policy | Grouped, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> Additive:
        if not isinstance(loss, Epsilon):
            raise InputError(
                f"Laplace noise spends epsilon, not {loss}: expected Epsilon.", code="mechanism.loss"
            )
        return Additive(self.name, query, policy, loss, certified(query, policy, loss, sensitivity))


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Discrete Gaussian noise of variance sensitivity^2 / (2 rho).

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> query = pg.queries.identity(domain)
    >>> Gaussian().calibrate(query, pg.Policy(domain), pg.Rho("1/2")).parameter
    Fraction(1, 1)
    """

    name: str = "Gaussian"

    def calibrate(
        self, query: Query, policy: Policy | Grouped, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> Additive:
        if not isinstance(loss, Rho):
            raise InputError(f"Gaussian noise spends rho, not {loss}: expected Rho.", code="mechanism.loss")
        return Additive(self.name, query, policy, loss, certified(query, policy, loss, sensitivity))


def for_loss(loss: Loss) -> Laplace | Gaussian:
    """The additive mechanism that spends a kind of loss."""
    return Laplace() if isinstance(loss, Epsilon) else Gaussian()
