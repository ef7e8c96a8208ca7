"""Noise on the edges of the policy graph, then an estimate that adapts to the shape of the data. Owns :class:`Adaptive`.

All that is spent is spent on the edges; the rest is post-processing (``docs/explanation/proofs/adaptive-histograms.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policygraph.estimation.adaptive import adaptive, mixed
from policygraph.mechanisms.base import Ints, Mechanism
from policygraph.mechanisms.transformed.mechanism import (
    EdgeNoise,
    Estimator,
    Route,
    calibrate_edges,
    check_settings,
)
from policygraph.model.loss import Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.transforms.incidence import Totals

ESTIMATE = (
    "The noisy cells were replaced by whole non-negative ones, with the known totals: a mixture of the nearest ones, on lines and trees of means over ways to cut the noisy sums "
    "into pieces, of cells whose differences within nested runs were shrunk by what noise explains of them, and of cells that are all alike, on grids of means of the nearest ones over blocks. "
    "It is the mixture with the least error in releases that were simulated around what the noisy numbers bear out, on grids of those whose sums over boxes err no more than those of the nearest ones. The noisy counts stand beside them, unbiased; "
    "stated errors are those of the published counts."
)


@dataclass(frozen=True)
class AdaptiveEdges(EdgeNoise):
    """Independent noise on the edges of a policy graph, and what an adaptive estimate makes of the noisy cells."""

    consistent: bool = True
    smooth = True

    def _fitted(self, noisy: Ints) -> Ints:
        return np.stack([adaptive(self.reduction, row, self.noise).cells for row in noisy])

    def _estimated(self, points: Ints) -> tuple[Ints, Estimator]:
        # What is run again to see how far it errs keeps the weights that were found.
        made = adaptive(self.reduction, points, self.noise)
        return made.cells, lambda noisy: mixed(self.reduction, noisy, self.noise, made.weights)

    def stages(self) -> Sequence[str]:
        # The last of the others is on the nearest cells, which are but one of the candidates here.
        return [*list(super().stages())[:-1], ESTIMATE]


@dataclass(frozen=True)
class Adaptive(Mechanism):
    """Noise on every edge with the whole loss, then whole non-negative cells that adapt to smooth, sparse, spiky and dense data.

    Parameters
    ----------
    totals, route
        See :class:`~policygraph.mechanisms.transformed.mechanism.TransformedLaplace`.

    Notes
    -----
    Laplace noise for epsilon, Gaussian noise for rho. On lines and trees the estimate averages over segmentations of the noisy sums and over nested runs of cells, on grids over blocks; on other graphs it is that of
    :class:`~policygraph.mechanisms.transformed.mechanism.TransformedConsistent`.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 100})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    >>> ready = Adaptive().calibrate(pg.queries.identity(domain), policy, pg.Epsilon("1/10"))
    >>> made = ready.run([40] * 50 + [0] * 50, pg.SeededRng(3)).values()
    >>> int(made.sum()), bool((made >= 0).all()), bool(made[60:].sum() < 10)
    (2000, True, True)
    """

    totals: Totals = "auto"
    route: Route = "auto"
    name: str = "Adaptive"

    def __post_init__(self) -> None:
        check_settings(self.totals, self.route)

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> EdgeNoise:
        return calibrate_edges(
            self, query, policy, loss, sensitivity, kind=AdaptiveEdges, totals=self.totals, route=self.route
        )
