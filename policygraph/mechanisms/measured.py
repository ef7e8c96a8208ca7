"""Sums and averages of a measure. Owns :class:`Measured` and :class:`MeasuredNoise`.

Sums (and counts, for averages) of well chosen tables get noise scaled to one certificate; published tables are their
least-squares estimates, and averages are quotients of published numbers. Proofs in ``docs/explanation/proofs/measures.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from policygraph.distributions.sums import linear_within
from policygraph.errors import DataError, InputError, RefusedError
from policygraph.estimation.cubes.errors import factors_at
from policygraph.estimation.cubes.least_squares import fit
from policygraph.estimation.measures import MeasureRelease, average_table
from policygraph.exact import show
from policygraph.mechanisms.additive import Additive, BuiltOnAdditive
from policygraph.mechanisms.base import (
    Floats,
    Ints,
    Mechanism,
    certified,
    check_drawable,
)
from policygraph.mechanisms.cube.strategies import strategy_named
from policygraph.mechanisms.members import sums_in_all
from policygraph.model.grouped import Grouped, records_of
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query, fingerprint
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.units import Unit
from policygraph.release.release import Randomness, Table
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.transforms.cuboids.choose import Choice, CubeStrategy
from policygraph.transforms.cuboids.costs import known_cuboids
from policygraph.transforms.cuboids.lattice import Lattice

MOST_WEIGHT = 256
"""Weights of tables are rounded to at most this, which costs less than 1 % of accuracy."""
FIT_BITS = 40
"""Noisy numbers are scaled below 2 to this before the fit, by a power of two, so that its whole numbers never overflow."""


@dataclass(frozen=True)
class MeasuredNoise(BuiltOnAdditive):
    """Noise on sums (and counts) of what a strategy chose; published tables are made of it.

    Attributes
    ----------
    query
        The published sums or averages.
    rows
        What is measured, in integers.
    sensitivity
        The certificate of ``rows``.
    choice
        The measured tables with their weights.
    known
        Tables of counts that are the same for all neighbours, and are used as they are.
    """

    mechanism: str
    query: MeasureQuery
    policy: Any
    loss: Loss
    sensitivity: Sensitivity
    rows: MeasureQuery
    choice: Choice
    known: tuple[int, ...] = ()

    @cached_property
    def lattice(self) -> Lattice:
        """The tables of the domain."""
        return Lattice(self.query.domain)

    @cached_property
    def published(self) -> list[int]:
        """The published tables."""
        return [self.lattice.mask(names) for names in self.query.sets]

    @cached_property
    def inner(self) -> Additive:
        """The additive mechanism on what is measured."""
        return Additive(self.mechanism, self.rows, self.policy, self.loss, self.sensitivity)

    @cached_property
    def _squares(self) -> tuple[Floats, Floats]:
        """Squared lengths of the combinations of noises behind a centred sum and a count of each table, in users' units."""
        sums = factors_at(self.lattice, self.choice, (), self.published, consistent=True)
        sums = sums * float(self.rows.sum_unit / self.rows.sum_weight) ** 2
        if self.rows.count_weight == 0:
            return sums, np.zeros_like(sums)
        counts = factors_at(self.lattice, self.choice, self.known, self.published, consistent=True)
        return sums, counts / float(self.rows.count_weight) ** 2

    def _square(self, part: int) -> float:
        """That of a published sum or count."""
        step = 2 if self.query.kind == "averages" else 1
        at, counting = divmod(part, step)
        sums, counts = self._squares
        if counting:
            return float(counts[at])
        shift = float(self.query.measure.middle) if self.rows.centred else 0.0
        return float(sums[at]) + shift**2 * float(counts[at])

    def deviation(self, part: int) -> float:
        return float(np.sqrt(self._square(part) * self.noise.variance))

    def within_95(self, part: int) -> float:
        return self._reach(self._square(part))

    def _reach(self, square: float) -> float:
        """What 95 % of a combination of noises of this squared length stays within: proportional to its length."""
        laplace = isinstance(self.loss, Epsilon)
        return float(linear_within(square, float(self.inner.parameter), laplace=laplace))

    def factor(self, part: int) -> Fraction:
        return Fraction(1)

    @property
    def measure(self) -> Query:
        return self.rows

    @cached_property
    def exact(self) -> tuple[Query, ...]:
        """The counts of tables that no move changes."""
        if not self.known:
            return ()
        return (CuboidQuery(self.query.domain, [self.lattice.names(mask) for mask in self.known]),)

    @cached_property
    def most_records(self) -> int:
        top = max(self.choice.weights) * max(
            self.rows.sum_weight * max(map(abs, self.rows.ends)), self.rows.count_weight
        )
        return ((1 << 61) - 1) // top

    def too_many_records(self) -> DataError:
        return DataError(
            f"weighted sums of {self.query.measure.column} do not fit 64 bits: expected a coarser unit.",
            code="measure.reach",
        )

    def estimates(self, points: Ints) -> tuple[dict[int, Floats], dict[int, Floats]]:
        """Least-squares estimates of the (centred) sums and of the counts of all published tables (post-processing)."""
        masks = [self.lattice.mask(names) for names in self.rows.sets]
        kinds: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
        start = 0
        for at, part in enumerate(self.rows.parts):
            step = 2 if self.rows.kind == "averages" else 1
            table = points[start : start + part.height]
            kinds[at % step][masks[at // step]] = table.astype(np.float64) / float(
                part.weight // self.choice.weights[at // step]
            )
            start += part.height
        exact: dict[int, Ints] = {}
        for mask in self.known:
            exact[mask] = points[start : start + self.lattice.size(mask)]
            start += self.lattice.size(mask)
        sums = {mask: x * float(self.rows.sum_unit) for mask, x in self._fit(kinds[0], {}).items()}
        if self.rows.kind == "averages":
            return sums, self._fit(kinds[1], exact)
        if not self.rows.centred:
            return sums, {}
        empty = Choice((), ())
        return sums, dict(fit(self.lattice, empty, {}, self.published, exact))

    def _fit(self, measured: dict[int, Any], exact: dict[int, Ints]) -> dict[int, Floats]:
        largest = max((float(np.abs(x).max(initial=0)) for x in measured.values()), default=0.0)
        largest *= max(self.query.domain.shape) * max(self.choice.weights)
        if exact or largest < 2.0**FIT_BITS:
            return dict(fit(self.lattice, self.choice, measured, self.published, exact))
        scale = 2.0 ** (FIT_BITS - int(np.ceil(np.log2(largest))))
        made = fit(self.lattice, self.choice, {m: x * scale for m, x in measured.items()}, self.published)
        return {mask: table / scale for mask, table in made.items()}

    def publish(self, points: Ints, randomness: Randomness) -> MeasureRelease:
        sums, counts = self.estimates(points)
        middle = float(self.query.measure.middle)
        reach = self._reach(1.0)
        tables: list[Table] = []
        parts: list[dict[str, Any]] = []

        def add(table: Table, kind: str, **more: Any) -> None:
            tables.append(table)
            errors = (
                {}
                if kind == "average"
                else {
                    "standard_deviation": table.deviation,
                    "within_95": table.within_95,
                    "errors": table.errors,
                }
            )
            parts.append(
                {
                    "name": table.name,
                    "columns": list(table.columns),
                    "height": len(table.values),
                    "integer": False,
                    "kind": kind,
                    **errors,
                    **more,
                }
            )

        step = 2 if self.query.kind == "averages" else 1
        for at, mask in enumerate(self.published):
            off = sums[mask].ravel()
            whole = off + middle * counts[mask].ravel() if self.rows.centred else off
            add(self._table(step * at, whole), "sum")
            if step == 2:
                counted = self._table(step * at + 1, counts[mask].ravel())
                add(counted, "count")
                roots = [float(np.sqrt(squares[at])) for squares in self._squares]
                spread = (roots[0] * self.noise.variance**0.5, roots[1] * self.noise.variance**0.5)
                reaches = (roots[0] * reach, roots[1] * reach)
                # From the published numbers alone, so that a release that is read back gives the same.
                off = whole - middle * counted.values
                made = average_table(self.query.measure, counted, off, spread, reaches)
                add(made, "average", spread=list(spread), reach=list(reaches))
        return MeasureRelease(tuple(tables), self.record(randomness, parts))

    def _table(self, part: int, values: Floats) -> Table:
        shown = self.query.parts[part]
        labels = tuple(self.query.part_labels(part))
        stated = self.deviation(part), self.within_95(part)
        return Table(shown.name, shown.columns, labels, values, *stated, errors="exact")

    def record(self, randomness: Randomness, parts: list[dict[str, Any]]) -> dict[str, Any]:
        made = super().record(randomness, parts)
        made["measure"] = {
            "rule": self.query.measure.rule(),
            "measured": [list(names) for names in self.rows.sets],
            "weights": list(self.rows.weights),
            "sum_weight": self.rows.sum_weight,
            "count_weight": self.rows.count_weight,
            "centred": self.rows.centred,
            "known_counts": [list(self.lattice.names(mask)) for mask in self.known],
        }
        return made

    def stages(self) -> Sequence[str]:
        measure = self.query.measure
        if isinstance(self.policy, Unit):
            hidden = f"Secret is everything of one {self.policy.column}, {self.policy.words}, with their values: it may be there or not."
            return [measure.rule(), hidden, *self._stages_of_noise()]
        alone = self.policy.definition == "induced" and not self.policy.system.needed
        lines = [
            measure.rule(),
            "Secret are the cell of a record, as the policy says, and its value: "
            + (
                "a record with its value may be there or not."
                if alone
                else "any two values of a record in the same cell must not be told apart, and where its cell may change its value may change "
                "with it."
            ),
        ]
        return [*lines, *self._stages_of_noise()]

    def _stages_of_noise(self) -> list[str]:
        measure, lines = self.query.measure, []
        if self.choice.reason:
            lines.append(self.choice.reason)
        if self.rows.centred:
            lines.append(
                f"The middle of the range, {show(measure.middle)}, was subtracted from every value before the noise, and added again times the "
                "count afterwards."
            )
        lines += [line.replace("the answers", "the measured numbers") for line in self.inner.stages()]
        if self.known:
            named = "; ".join(" x ".join(self.lattice.names(mask)) or "the total" for mask in self.known)
            lines.append(f"No neighbour step changes these tables of counts, which are exact: {named}.")
        lines.append(
            "The published sums are least-squares estimates from all that was measured; they agree with each other."
        )
        if self.query.kind == "averages":
            lines.append(
                "An average is a published sum over a published count; its interval covers the true average of the clipped values with "
                "probability at least 0.95, and where the count is not clearly positive there is none."
            )
        return lines


@dataclass(frozen=True)
class Measured(Mechanism):
    """Sums or averages of a measure under one loss, consistent over all tables.

    Parameters
    ----------
    strategy
        Which tables to measure, and how well: the name of a strategy for cubes, or a strategy that measures tables. None:
        the one table that is asked for, or ``"bmax"`` for several, which always ends the same way.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"sex": ["F", "M"]})
    >>> query = pg.queries.averages(domain, [["sex"]], pg.Measure("income", 0, 1000))
    >>> ready = Measured().calibrate(query, pg.Policy(domain), pg.Epsilon(1))
    >>> ready.sensitivity.value, round(ready.deviation(1), 2)
    (Fraction(2000, 1), 2.83)
    """

    strategy: CubeStrategy | str | None = None
    name: str = "Measured"

    def calibrate(
        self, query: Query, policy: Policy | Unit, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> MeasuredNoise:
        if not isinstance(query, MeasureQuery):
            raise InputError(
                f"{query!r}: expected sums or averages of a measure, such as pg.queries.averages(domain, sets, measure).",
                code="measure.query",
                value=query,
            )
        query.check_domain(policy.domain)
        if isinstance(policy, Grouped) and not (isinstance(policy, Unit) and sums_in_all(query)):
            raise policy.refused()
        records = records_of(policy)
        _check_drop(query, records)
        lattice = Lattice(query.domain)
        known = tuple(known_cuboids(lattice, records))
        masks = [lattice.mask(names) for names in query.sets]
        rows = query
        if query.kind == "sums":
            settled = all(any(lattice.computable(mask, of=k) for k in known) for mask in masks)
            rows = query.in_the_middle() if settled else query
            known = known if settled else ()
        choice, label = self._choose(query, loss)
        rows = rows.measured_with(choice.sets, choice.weights)
        proof = certified(rows, policy, loss, sensitivity, values=True)
        # Two choices of one strategy are different requests to a ledger, so that the name tells them apart.
        mark = fingerprint([list(choice.sets), list(choice.weights), rows.to_spec()])[:8]
        name = f"{self.name} {label} {mark}"
        made = MeasuredNoise(name, query, policy, loss, proof, rows, choice, known)
        check_drawable(made)
        return made

    def _choose(self, query: MeasureQuery, loss: Loss) -> tuple[Choice, str]:
        strategy = self.strategy
        if strategy is None:
            strategy = "all" if len(query.sets) == 1 else "bmax"
        if isinstance(strategy, str):
            strategy = strategy_named(strategy)
        strategy = strategy.suited(consistent=True)
        importance = [float(weight * weight) for weight in query.weights]
        # Whatever the policy, a value that changes changes the sums of all tables, as one record more or less does.
        choice = strategy.choose(query.domain, query.sets, importance, Policy(query.domain), loss)
        if choice.kind != "cuboids":
            raise InputError(
                f"strategy {strategy.name!r} measures interactions at this loss: expected one that measures tables, such as 'bmax'.",
                code="measure.strategy",
                value=strategy.name,
            )
        return replace(choice, weights=_coarser(choice.weights)), strategy.name


def _coarser(weights: Sequence[int]) -> tuple[int, ...]:
    """Weights in about the same ratios, so small that the lattice of sums stays within reach of exact noise."""
    top = max(weights)
    if top <= MOST_WEIGHT:
        return tuple(weights)
    return tuple(max(1, (2 * MOST_WEIGHT * weight + top) // (2 * top)) for weight in weights)


def _check_drop(query: MeasureQuery, policy: Policy) -> None:
    hidden = policy.graph is None or policy.graph.bottom == "all"
    if query.measure.missing == "drop" and (policy.constraints or not hidden):
        raise RefusedError(
            f"missing='drop' would leave out records of {query.measure.column} under a policy that does not hide whether a record is there, "
            "or whose public facts count all records. Give the value that a missing one counts with, such as missing=0.",
            code="measure.drop",
        )
