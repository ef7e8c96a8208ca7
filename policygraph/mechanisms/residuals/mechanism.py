"""Marginals by prefixes and ranges from residuals. Owns :class:`Residuals` and :class:`ResidualNoise`.

What is measured is chosen without data; the noise is scaled to the certified sensitivity of the measured integers; everything after the noisy
numbers is post-processing (``docs/explanation/proofs/residuals.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from policygraph.distributions.sums import linear_within
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.cubes.least_squares import below_known
from policygraph.mechanisms.additive import BuiltOnAdditive
from policygraph.mechanisms.base import Floats, Mechanism, certified, check_drawable, check_loss
from policygraph.mechanisms.residuals.plan import Names, ResidualPlan, plan
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query, fingerprint
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.products import ProductQuery
from policygraph.release.release import Randomness, Release
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.proofs import shared_proofs
from policygraph.transforms.cuboids.blocks import Tables, settle
from policygraph.transforms.cuboids.lattice import Family, Lattice


@dataclass(frozen=True)
class ResidualNoise(BuiltOnAdditive):
    """Noise on residuals; published answers are linear in them.

    Attributes
    ----------
    query
        The published tables.
    plan
        What is measured, with integer weights, and in which bases.
    sensitivity
        The certificate of what is measured.
    """

    mechanism: str
    query: ProductQuery
    policy: Policy
    loss: Loss
    sensitivity: Sensitivity
    plan: ResidualPlan

    most_reach = 1 << 61

    @cached_property
    def measured(self) -> ProductQuery | None:
        """What is measured, as one query; None when everything published is known."""
        return self.plan.query(self.query)

    @property
    def measure(self) -> Query | None:
        return self.measured

    @property
    def centre(self) -> Query | None:
        return self.measured

    @cached_property
    def exact(self) -> tuple[Query, ...]:
        """Tables of the largest known sets, from which the known residuals follow."""
        if not self._known_tables:
            return ()
        return (CuboidQuery(self.query.domain, self._known_tables),)

    @cached_property
    def _known_tables(self) -> tuple[Names, ...]:
        known = [frozenset(names) for names in self.plan.known]
        return tuple(
            names
            for names, mine in zip(self.plan.known, known, strict=True)
            if not any(mine < other for other in known)
        )

    def factor(self, part: int) -> Fraction:
        return Fraction(1)

    @cached_property
    def factors(self) -> list[Floats]:
        """Variance of each answer of each published table, in units of the noise variance."""
        weight = dict(zip(self.plan.sets, self.plan.weights, strict=True))
        out = []
        for names in self.query.sets:
            shape = [self.query.factors[name].height for name in names]
            made = np.zeros(shape)
            for size in range(len(names) + 1):
                for some in combinations(names, size):
                    if some not in weight:
                        continue
                    piece: Any = np.ones((1,) * len(names)) / float(weight[some]) ** 2
                    for axis, name in enumerate(names):
                        noise, spread = self.plan.bases[name].by_row
                        along = [1] * len(names)
                        along[axis] = shape[axis]
                        piece = piece * (noise if name in some else spread).reshape(along)
                    made += piece
            out.append(made.ravel())
        return out

    def deviation(self, part: int) -> Floats:
        made: Floats = np.sqrt(self.factors[part] * self.noise.variance)
        return made

    def within_95(self, part: int) -> Floats:
        made: Floats = linear_within(
            self.factors[part], float(self.parameter), laplace=isinstance(self.loss, Epsilon)
        )
        return made

    def to_answers(self, points: Any) -> Floats:
        """The published answers from the noisy residuals and the known tables (post-processing)."""
        tables, exact = self._residuals(points)
        family = Family(self.lattice, [self.lattice.mask(names) for names in self.query.sets])
        made = {mask: tables.get(mask, np.zeros(self.lattice.shape(mask))) for mask in family.masks.tolist()}
        self._join(family, made)
        with suppress(
            RefusedError
        ):  # numbers beyond 2^51: tables agree up to rounding, and the noise is paid for
            settle(family, made, exact)
        out = []
        for names in self.query.sets:
            table = made[self.lattice.mask(names)]
            for axis, name in enumerate(names):
                table = self._rows(name, table, axis)
            out.append(table.ravel())
        return np.concatenate(out)

    @cached_property
    def lattice(self) -> Lattice:
        """The sets of attributes of the domain."""
        return Lattice(self.query.domain)

    def _residuals(self, points: Any) -> tuple[Tables, Tables]:
        """What each set of attributes says beyond its smaller ones, and the exact tables of those that are known."""
        measured, start = self.measured, 0
        tables: Tables = {}
        for at, (names, weight) in enumerate(zip(self.plan.sets, self.plan.weights, strict=True)):
            height = measured.parts[at].height if measured is not None else 0
            tables[self.lattice.mask(names)] = self._back(
                names, np.asarray(points[start : start + height], dtype=np.float64) / weight
            )
            start += height
        known: dict[int, Floats] = {}
        for names in self._known_tables:
            mask = self.lattice.mask(names)
            known[mask] = np.asarray(points[start : start + self.lattice.size(mask)], dtype=np.float64)
            start += self.lattice.size(mask)
        exact = below_known(self.lattice, known)
        for names in self.plan.known:
            made = exact[self.lattice.mask(names)]
            for axis, name in enumerate(names):
                made = np.moveaxis(np.tensordot(self.plan.bases[name].rows, made, axes=(1, axis)), 0, axis)
            tables[self.lattice.mask(names)] = self._back(names, np.asarray(made).ravel())
        return tables, exact

    def _back(self, names: Names, values: Floats) -> Floats:
        """Counts that the residual of a set says beyond all smaller ones."""
        made: Floats = values.reshape([len(self.plan.bases[name].rows) for name in names])
        for axis, name in enumerate(names):
            made = np.moveaxis(np.tensordot(self.plan.bases[name].back, made, axes=(1, axis)), 0, axis)
        return made

    def _join(self, family: Family, tables: Tables) -> None:
        """Turn residuals into tables of counts, in place: each is spread along the attributes that it lacks."""
        masks = family.masks.tolist()
        for axis, _, low, high in family.pairs:
            even = self.plan.bases[self.query.domain.names[axis]].even
            for a, b in zip(low.tolist(), high.tolist(), strict=True):
                mask = masks[b]
                position = Lattice.level(mask & ((1 << axis) - 1))
                along = [1] * Lattice.level(mask)
                along[position] = len(even)
                tables[mask] = tables[mask] + np.expand_dims(tables[masks[a]], position) * even.reshape(along)

    def _rows(self, name: str, table: Floats, axis: int) -> Floats:
        factor = self.query.factors[name]
        if factor.kind == "values":
            return table
        sums: Floats = np.cumsum(table, axis=axis)
        if factor.kind == "prefix":
            return sums
        low, high = factor.ends
        padded = np.concatenate([np.zeros_like(sums.take([0], axis)), sums], axis=axis)
        return np.asarray(padded.take(high + 1, axis) - padded.take(low, axis), dtype=np.float64)

    def publish(self, points: Any, randomness: Randomness) -> Release:
        return self.released(self.to_answers(points), randomness, self.errors_of(points))

    def record(self, randomness: Randomness, parts: list[dict[str, Any]]) -> dict[str, Any]:
        made = super().record(randomness, parts)
        made["residuals"] = {
            "measured": [list(names) for names in self.plan.sets],
            "weights": list(self.plan.weights),
            "known": [list(names) for names in self.plan.known],
            "objective": self.plan.objective,
            "bound": self.plan.bound,
        }
        return made

    def stages(self) -> Sequence[str]:
        lines = []
        if self._known_tables:
            named = "; ".join(" x ".join(names) or "the total" for names in self._known_tables)
            lines.append(f"No neighbour step changes these tables, which are exact: {named}.")
        if self.plan.sets:
            lines.append(
                f"{len(self.plan.sets)} residuals (what a set of attributes says beyond its smaller sets) were measured in bases that are "
                "fitted to how each attribute is asked, with unequal noise, for the least total variance of all answers."
            )
        lines += [
            line.replace("the answers", "the measured numbers").replace("each answer", "each measured number")
            for line in self.inner.stages()
        ]
        lines.append(
            "The published numbers are linear in the measured ones, and agree with each other and with what is known exactly."
        )
        return lines


@dataclass(frozen=True)
class Residuals(Mechanism):
    """Publish marginals by prefixes, ranges and values from residuals with the least total variance.

    Parameters
    ----------
    per_answer
        Whether every published answer counts alike (the least root mean squared error over all answers), or every table.

    Notes
    -----
    For zCDP this is the mechanism of ResidualPlanner+ (Xiao, He, Zhang and Kifer) on integers, with bases that are fitted to the whole set of tables
    instead of each attribute alone, and under any policy that has a proved sensitivity.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"sex": ["F", "M"], "age": 100})
    >>> query = pg.queries.marginals(domain, [["age"], ["sex", "age"]], prefix=["age"])
    >>> ready = Residuals().calibrate(query, pg.Policy(domain), pg.Rho("1/2"))
    >>> plain = pg.Gaussian().calibrate(query, pg.Policy(domain), pg.Rho("1/2"))
    >>> round((ready.total_error / query.height) ** 0.5, 1), round((plain.total_error / query.height) ** 0.5, 1)
    (2.5, 14.1)
    """

    per_answer: bool = True
    name: str = "Residuals"

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> ResidualNoise:
        if isinstance(query, CuboidQuery):
            query = ProductQuery(query.domain, query.sets, {}, query.weights)
        if not isinstance(query, ProductQuery) or any(f.kind == "rows" for f in query.factors.values()):
            raise InputError(
                f"{query!r}: expected tables by values, prefixes or ranges, for example pg.queries.marginals(domain, 2, prefix=['age']).",
                code="residuals.query",
                value=query,
            )
        query.check_domain(policy.domain)
        check_loss(loss)
        with shared_proofs():
            made = plan(query, policy, loss, per_answer=self.per_answer)
            asked = made.query(query)
            proof = certified(query if asked is None else asked, policy, loss, sensitivity)
        # Two plans are different requests to a ledger, so that the name tells them apart.
        spec = [
            [list(names) for names in made.sets],
            list(made.weights),
            {} if asked is None else asked.asked,
        ]
        ready = ResidualNoise(f"{self.name} {fingerprint(spec)[:8]}", query, policy, loss, proof, made)
        check_drawable(ready)
        return ready
