"""A whole table drawn at random, tables close to the true one more often. Owns :class:`Exponential`.

The exponential mechanism over the tables that fit the public facts, closeness counted in neighbour steps. Exact, for few
tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil

import numpy as np

from policygraph.distributions.enclosure import Weights, exp_neg
from policygraph.distributions.integers import NOTHING, Distribution
from policygraph.errors import InputError
from policygraph.exact import show
from policygraph.mechanisms.base import Calibrated, Floats, Ints, Mechanism, Noise
from policygraph.mechanisms.exponential.fibre import TableGraph, table_graph
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.sensitivity.certificate import Sensitivity

__all__ = ["Exponential", "Layers", "TableNoise"]

LIMIT = 1_000
"""Most tables that the mechanism is computed over."""
SORTED = 50_000_000
"""Up to so many numbers the 95 % ranges are computed; beyond, the whole range of an answer is stated."""


@dataclass(frozen=True)
class Layers(Distribution):
    """Distance d weighs counts[d] * exp(-rate * d)."""

    rate: Fraction
    counts: tuple[int, ...]
    two_sided: bool = field(default=False, init=False)
    endless: bool = field(default=False, init=False)

    def reach(self, window: int, bits: int) -> int:
        """Return the number of weights."""
        return len(self.counts)

    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the weights; the left side is empty."""
        ends = [exp_neg(self.rate * d, bits) for d in range(len(self.counts))]
        lows = [n * low for n, (low, _) in zip(self.counts, ends)]
        highs = [n * high for n, (_, high) in zip(self.counts, ends)]
        return NOTHING, Weights(lows, highs, 0, 0)


@dataclass(frozen=True, eq=False)
class TableNoise(Calibrated):
    """The exponential mechanism over the tables of one policy.

    Attributes
    ----------
    graph
        The tables and their distances.
    rate
        A table at distance d is drawn with probability proportional to exp(-rate * d).
    """

    mechanism: str
    query: Query
    policy: Policy
    loss: Loss
    graph: TableGraph
    rate: Fraction
    sensitivity: Sensitivity | None = None

    runner = "exponential"

    @cached_property
    def answers(self) -> Ints:
        """The answers of every table, one in each row."""
        return np.stack([self.query.answer(table) for table in self.graph.tables])

    @cached_property
    def places(self) -> dict[bytes, int]:
        """Where each table stands in the list."""
        return {table.tobytes(): at for at, table in enumerate(self.graph.tables)}

    def distances_from(self, at: int) -> Layers:
        """The distribution of the distance of the drawn table from one of them."""
        return Layers(self.rate, tuple(self.graph.layers(at)))

    @cached_property
    def errors(self) -> tuple[Floats, Floats]:
        """Root mean square error and 95 % range of each answer, for the table where they are largest."""
        n, height = self.answers.shape
        worst, within = np.zeros(height), np.zeros(height)
        ranged = n * n * height <= SORTED
        for at in range(n):
            weights = np.exp(-float(self.rate) * self.graph.distances[at].astype(np.float64))
            chances = weights / weights.sum()
            off = np.abs(self.answers - self.answers[at]).astype(np.float64)
            worst = np.maximum(worst, chances @ off**2)
            if ranged:
                order = np.argsort(off, axis=0)
                inside = np.cumsum(chances[order], axis=0)
                first = np.minimum((inside < 0.95 + 1e-9).sum(axis=0), n - 1)
                within = np.maximum(within, np.take_along_axis(off, order, axis=0)[first, np.arange(height)])
        if not ranged:
            within = (self.answers.max(axis=0) - self.answers.min(axis=0)).astype(np.float64)
        return np.sqrt(worst), within

    @cached_property
    def noise(self) -> Noise:
        worst, within = self.errors
        return Noise("exponential over tables", self.rate, float(worst.max() ** 2), ceil(float(within.max())))

    def deviation(self, part: int) -> float | Floats:
        return self._of_part(self.errors[0], part)

    def within_95(self, part: int) -> float | Floats:
        return self._of_part(self.errors[1], part)

    def stages(self) -> Sequence[str]:
        if len(self.graph.tables) == 1:
            return ["Only one table fits the published values, so that its answers are public."]
        why = (
            "every table has equally many tables at each distance, so that the loss is the rate itself"
            if self.graph.regular
            else "the loss is twice the rate: a neighbour step changes a distance by at most one, and the sum of the weights "
            "by at most the same factor"
        )
        return [
            f"{len(self.graph.tables)} tables fit the published values; neighbour steps lead from each to each other in at "
            f"most {int(self.graph.distances.max())} steps.",
            f"One of them was drawn, with probability proportional to exp(-{show(self.rate)} d) at d steps from the true table, "
            f"for a loss of {self.loss} ({why}).",
            "The released table is a table of counts that fits every public fact; the stated errors are root mean squares for "
            "the table for which they are largest.",
        ]


@dataclass(frozen=True)
class Exponential(Mechanism):
    """Draw one of the tables that fit the public facts, with probability falling in neighbour steps from the true one.

    Parameters
    ----------
    limit
        Most tables that are listed.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 2})
    >>> facts = [pg.Cuboid("a", equals=[3, 2]), pg.Cuboid("b", equals=[4, 1])]
    >>> policy = pg.Policy(domain, constraints=facts)
    >>> ready = Exponential().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
    >>> len(ready.graph.tables), ready.rate
    (2, Fraction(1, 1))
    >>> made = ready.run([2, 1, 2, 0], pg.SeededRng(1))
    >>> int(made.values().sum()), int(made.values().min()) >= 0
    (5, True)

    Notes
    -----
    With rate r the loss is at most 2 r, so that half the asked epsilon is used as the rate; if every table has equally many
    tables at each distance, the loss is r and all of it is used (``docs/explanation/proofs/exponential-tables.md``).
    """

    limit: int = LIMIT
    name: str = "Exponential"

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> TableNoise:
        if not isinstance(loss, Epsilon):
            raise InputError(
                f"the exponential mechanism spends epsilon, not {loss}: expected Epsilon.",
                code="mechanism.loss",
            )
        if sensitivity is not None:
            raise InputError(
                "the exponential mechanism is scaled to distances of tables: expected no sensitivity.",
                code="mechanism.sensitivity",
            )
        query.check_domain(policy.domain)
        graph = table_graph(policy, self.limit)
        rate = loss.value if graph.regular else loss.value / 2
        return TableNoise(self.name, query, policy, loss, graph, rate)
