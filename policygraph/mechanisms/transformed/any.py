"""Any mechanism on the edges of a forest. Owns :class:`Transformed`.

On a forest the cells are a bijective image of the edge values, and one move changes one edge value by 1: any mechanism that
hides one record more or less may run on the edge values.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.mechanisms.additive import Additive
from policygraph.mechanisms.base import (
    Calibrated,
    Floats,
    Ints,
    Mechanism,
    Noise,
    answer_parts,
    check_answers,
    check_loss,
)
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon, Loss, Rho
from policygraph.model.policy import Policy
from policygraph.model.queries import identity
from policygraph.model.queries.base import Query
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.transforms.incidence import Reduction, Totals, transform
from policygraph.transforms.incidence.base import check_totals

__all__ = ["OnForest", "OnTransformed", "Transformed"]


class OnTransformed(Calibrated):
    """A mechanism that runs on whole numbers computed from the counts.

    Attributes
    ----------
    inner
        The mechanism on these numbers.
    """

    runner = "transformed"
    inner: Calibrated

    @abstractmethod
    def transform(self, cells: Ints) -> tuple[Ints, Ints]:
        """Numbers that the inner mechanism runs on, and numbers that no move of the policy changes; a fixed function of the counts."""


@dataclass(frozen=True)
class OnForest(OnTransformed):
    """A mechanism that runs on the subtree sums of a forest.

    Attributes
    ----------
    reduction
        The transform, whose coordinates are unique.
    inner
        The mechanism on the coordinates that are not fixed, at the loss divided among the stretch.
    """

    mechanism: str
    query: Query
    policy: Policy
    loss: Loss
    reduction: Reduction
    inner: Calibrated
    sensitivity: Sensitivity | None = None

    @property
    def noise(self) -> Noise:
        return self.inner.noise

    @cached_property
    def _free(self) -> npt.NDArray[np.bool_]:
        """Which coordinates some move changes."""
        free = np.ones(self.reduction.width, dtype=bool)
        free[self.reduction.fixed] = False
        return free

    def transform(self, cells: Ints) -> tuple[Ints, Ints]:
        values = self.reduction.apply(cells)
        return values[self._free], values[~self._free]

    def decode(self, noisy: npt.NDArray[Any], exact: Ints) -> npt.NDArray[Any]:
        """Answers from noisy edge values and the exact totals."""
        count = int(self._free.sum())
        if noisy.shape[1:] != (count,):
            raise InputError(
                f"{self.inner.mechanism} returned an array of shape {noisy.shape[1:]}: expected one number for each of {count} edges.",
                code="mechanism.inner",
            )
        whole, out = noisy.dtype.kind in "iu", []
        for row in noisy:
            laid = np.empty(self.reduction.width, dtype=noisy.dtype)
            laid[self._free], laid[~self._free] = row, exact
            cells = self.reduction.invert(laid)
            out.append(self.query.answer(cells) if whole else answer_parts(self.query, cells))
        return np.stack(out)

    def reach(self, records: int) -> int:
        return max(super().reach(records), self.inner.reach(records))

    @property
    def settings(self) -> str:
        return self.inner.settings

    @cached_property
    def _deviations(self) -> Floats:
        one = float(np.max(self.inner.deviation(0)))
        if isinstance(self.inner, Additive):
            return np.asarray(np.sqrt(self.reduction.squares(self.query)) * one)
        # Nothing is known of how the errors of another mechanism hang together: deviations add up at most.
        sums = abs(self.reduction.coefficients(self.query)).sum(axis=1)
        return np.asarray(sums, dtype=np.float64).ravel() * one

    def deviation(self, part: int) -> float | Floats:
        return self._of_part(self._deviations, part)

    def within_95(self, part: int) -> float | Floats:
        """Chebyshev: 95 % lie within the root of 20 deviations, whatever the law."""
        return self.deviation(part) * float(np.sqrt(20.0))

    def stages(self) -> Sequence[str]:
        out = [
            self.reduction.describe(),
            f"On these numbers ran {self.inner.mechanism}, at {self.inner.loss}:",
        ]
        if len(self.reduction.fixed):
            out.append(
                f"{len(self.reduction.fixed):,} totals that no move of this policy changes were released exactly."
            )
        return [*out, *self.inner.stages()]


@dataclass(frozen=True)
class Transformed(Mechanism):
    """Run a mechanism for one record more or less on the edge values of a forest.

    Parameters
    ----------
    inner
        The mechanism; it is given the identity query over one value for each edge.
    totals
        See :class:`~policygraph.mechanisms.transformed.mechanism.TransformedLaplace`.
    spanning
        Take a spanning forest of a graph with cycles, at its stretch.

    Raises
    ------
    RefusedError
        When the policy graph has a cycle and ``spanning`` is false.

    Notes
    -----
    With a spanning forest of stretch l one move is at most l steps of the inner neighbours, through valid tables, so that
    epsilon / l (group privacy) or rho / l^2 (Bun and Steinke 2016) on the edges is the loss that is asked for.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 4})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    >>> ready = Transformed(pg.Laplace()).calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
    >>> int(ready.run([3, 0, 4, 1], pg.SeededRng(3)).values().sum())
    8
    """

    inner: Mechanism
    totals: Totals = "auto"
    spanning: bool = False
    name: str = "Transformed"

    def __post_init__(self) -> None:
        check_totals(self.totals)
        if not isinstance(self.inner, Mechanism):
            raise InputError(
                f"inner={self.inner!r}: expected a mechanism such as pg.Laplace().",
                code="release.mechanism",
                value=self.inner,
            )

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> OnForest:
        query.check_domain(policy.domain)
        check_loss(loss)
        if sensitivity is not None:
            raise InputError(
                "a sensitivity of the query: expected none. The inner mechanism runs on edges, not on the answers.",
                code="mechanism.sensitivity",
            )
        reduction = transform(policy, totals=self.totals, spanning=self.spanning, data_dependent=True)
        count = reduction.width - len(reduction.fixed)
        if count == 0:
            raise InputError(
                "the policy graph has no edge: expected one at least, or there is nothing to hide.",
                code="mechanism.no-edges",
            )
        edges = Domain({"edge": count})
        part: Loss
        if isinstance(loss, Epsilon):
            part = Epsilon(loss.value / reduction.stretch)
        else:
            part = Rho(loss.value / reduction.stretch**2)
        inner = check_answers(self.inner.calibrate(identity(edges), Policy(edges), part))
        name = f"{self.name}({inner.mechanism}, stretch {reduction.stretch}, {len(reduction.fixed)} exact totals)"
        return OnForest(name, query, policy, loss, reduction, inner)
