"""Measure other rows than those asked for. Owns :class:`MatrixMechanism`.

An integer matrix A is measured with noise, and the answers are W A^+ of the noisy measurements: post-processing. The argument is
``docs/explanation/proofs/strategies.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from policygraph.distributions import gaussian_variance, laplace_variance
from policygraph.distributions.sums import Terms, combination_within, gathered, linear_within
from policygraph.errors import InputError, RefusedError
from policygraph.exact import show
from policygraph.mechanisms.additive import Additive, BuiltOnAdditive
from policygraph.mechanisms.base import (
    Floats,
    Ints,
    Mechanism,
    answer_parts,
    certified,
    check_loss,
    marked,
)
from policygraph.mechanisms.strategy import Strategy, Workload, optimise, plain_strategies, weigh
from policygraph.mechanisms.strategy.plain import Kind, Over
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.release.release import Randomness, Release
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.proofs import proved, shared_proofs
from policygraph.ties import least

WIDE = 16.0
"""Laplace noise of this scale, and Gaussian noise of half this deviation, is as good as continuous."""
LISTED_COEFFICIENTS, FINE = 1 << 16, 1 << 20
"""Coefficients that are listed where noise is narrower, and the unit that they are found with."""
SHOWN = 20_000
"""Strategies whose plain form has at most so many numbers are written into the record of a release."""


def noise_variance(power: Fraction, loss: Loss) -> float:
    """Variance of one measurement when one move changes all of them by this much (squared for zCDP)."""
    if power == 0:
        return 0.0
    if isinstance(loss, Epsilon):
        return laplace_variance(power / loss.value)
    return gaussian_variance(power / (2 * loss.value))


@dataclass(frozen=True)
class StrategyNoise(BuiltOnAdditive):
    """Independent noise on the rows of a strategy; the answers follow by least squares.

    Attributes
    ----------
    strategy
        The rows that are measured.
    why
        A sentence on how it was chosen, if it was.
    """

    mechanism: str
    query: Query
    policy: Policy
    loss: Loss
    sensitivity: Sensitivity
    """Certificate of the strategy, not of the query."""
    strategy: Strategy
    why: str = ""

    @property
    def centre(self) -> Query:
        return self.strategy

    @property
    def keeps_facts(self) -> bool:
        """Over the edges of a graph that keep the facts, with exact totals."""
        return self.strategy.base.fixed is not None

    @cached_property
    def inner(self) -> Additive:
        """The additive mechanism on the rows of the strategy."""
        return Additive(self.mechanism, self.strategy, self.policy, self.loss, self.sensitivity)

    @property
    def measure(self) -> Query:
        return self.strategy

    @property
    def exact(self) -> tuple[Query, ...]:
        known = self.strategy.base.fixed
        return () if known is None else (known,)

    def cells(self, points: Ints) -> Floats:
        """Return least-squares cells from an output of the gate."""
        height = self.strategy.height
        return self.strategy.estimate(points[:height], points[height:])

    def answers(self, points: Ints) -> Floats:
        """Return W A^+ of an output of the gate, in units of the query."""
        return answer_parts(self.query, self.cells(points))

    def to_answers(self, points: Any) -> Floats:
        return self.answers(points)

    def publish(self, points: Ints, randomness: Randomness) -> Release:
        """Make a release of an output of the gate (post-processing)."""
        return super().publish(self.answers(points), randomness)

    @cached_property
    def workload(self) -> Workload:
        """The query in the coordinates of the strategy."""
        return Workload(self.query, self.strategy.base)

    @cached_property
    def variances(self) -> Floats:
        """Variance of each answer, in units of the query."""
        return self.workload.variances(self.strategy) * self.noise.variance

    @cached_property
    def total_error(self) -> float:
        """Expected sum of squared errors over the answers, in the units users see; without a list of the answers."""
        return self.workload.total(self.strategy) * self.noise.variance if self.parameter else 0.0

    def deviation(self, part: int) -> float | Floats:
        return self._of_part(np.sqrt(self.variances), part)

    @cached_property
    def _ranges(self) -> Floats:
        """What 95 % of the noise of each answer stays within, in units of the query."""
        laplace, parameter = isinstance(self.loss, Epsilon), float(self.parameter)
        squares = self.variances / self.noise.variance
        bound = np.asarray(linear_within(squares, parameter, laplace=laplace))
        wide = parameter >= (WIDE if laplace else WIDE**2 / 4)
        if wide or self.strategy.height * self.query.height > LISTED_COEFFICIENTS:
            return bound
        fixed = self.strategy.base.fixed
        points = np.zeros(self.strategy.height + (fixed.height if fixed is not None else 0), dtype=np.int64)
        rows = []
        for at in range(self.strategy.height):
            points[at] = FINE
            rows.append(self.answers(points) / FINE)
            points[at] = 0
        known: dict[bytes, float] = {}
        for at, row in enumerate(np.stack(rows, axis=1)):
            sizes, counts = gathered(np.round(row, 9), np.ones(len(row)))
            key = sizes.tobytes() + counts.tobytes()
            if key not in known:
                known[key] = combination_within([Terms(sizes, counts, parameter, laplace)]) * (1 + 1e-6)
            bound[at] = min(bound[at], known[key])
        return bound

    def within_95(self, part: int) -> float | Floats:
        """The distribution of the combination of noises for narrow noise and few answers, a bound by its variance otherwise."""
        return self._of_part(self._ranges, part) if self.parameter else 0.0

    def stages(self) -> Sequence[str]:
        kind = "exactly" if self.sensitivity.exact else "at most"
        size = "the root of " if self.sensitivity.norm == "l2" else ""
        out = [
            f"Not the answers but {self.strategy.height:,} other numbers were measured, {self.strategy.describe()}; one neighbour "
            f"step changes them by {kind} {size}{show(self.sensitivity.power)} in all "
            f"({self.sensitivity.norm.upper()}; {self.sensitivity.definition})."
        ]
        if self.parameter:
            kind_of = "scale" if isinstance(self.loss, Epsilon) else "variance parameter"
            out.append(
                f"Independent {self.noise.distribution} noise of {kind_of} {show(self.parameter)} was added to each of them, for a "
                f"loss of {self.loss}."
            )
        known = self.strategy.base.fixed
        if known is not None:
            many = "The number of records was" if known.height == 1 else f"{known.height:,} totals were"
            out.append(
                f"{many} released exactly: no move of this policy changes it, so that the policy does not hide it."
            )
        out.append(
            "The answers are those of least squares from the noisy measurements; they need not be whole numbers."
        )
        return out

    def record(self, randomness: Randomness, parts: list[dict[str, Any]]) -> dict[str, Any]:
        for part in parts:
            part["integer"] = False
        made = super().record(randomness, parts)
        spec = self.strategy.to_spec()["strategy"]
        small = len(spec["base"].get("parent", ())) <= SHOWN
        made["strategy"] = spec if small else {"name": spec["name"], "factors": spec["factors"]}
        return made


@dataclass(frozen=True)
class MatrixMechanism(Mechanism):
    """Measure a strategy and answer the query from it.

    Parameters
    ----------
    strategy
        ``"optimised"``: the least expected error for this query, after a search; ``"identity"``, ``"tree"`` or ``"wavelet"``: the
        plain one of this kind with the least expected error; or a :class:`~policygraph.mechanisms.strategy.Strategy`.
    over
        ``"cells"``, or ``"edges"`` for the transformed domain of the policy graph (prefix sums on a line, subtree sums on a
        forest); None: what is expected to be better.
    branching
        Of a tree; None: the best of 2, 4, 8 and 16.
    evaluations
        Effort of the search for ``"optimised"``: how often an expected error may be computed.
    time_limit
        Seconds after which this search also ends, where a limit in time is wanted: the result may then differ from run to
        run, and says so when it was cut short.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 64})
    >>> ready = MatrixMechanism("tree").calibrate(pg.queries.all_ranges(domain), pg.Policy(domain), pg.Epsilon(1))
    >>> ready.mechanism, ready.parameter
    ('MatrixMechanism(tree of 16 over the cells)', Fraction(3, 1))

    Notes
    -----
    A given certificate must be for the strategy itself: ``calibrate(...).sensitivity`` is one.
    """

    strategy: Strategy | Kind | Literal["optimised"] = "optimised"
    over: Over | None = None
    branching: int | None = None
    evaluations: int = 600
    time_limit: float | None = None
    name: str = "MatrixMechanism"

    def __post_init__(self) -> None:
        kinds = ("optimised", "identity", "tree", "wavelet")
        if not isinstance(self.strategy, Strategy) and self.strategy not in kinds:
            raise InputError(
                f"strategy={self.strategy!r}: expected a Strategy, or one of {', '.join(map(repr, kinds))}.",
                code="strategy.kind",
                value=self.strategy,
            )
        if self.over not in (None, "cells", "edges"):
            raise InputError(
                f"over={self.over!r}: expected 'cells', 'edges' or None.",
                code="strategy.over",
                value=self.over,
            )
        for name, lowest in (("branching", 2), ("evaluations", 1)):
            value = getattr(self, name)
            if value is None and name == "branching":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
                raise InputError(
                    f"{name}={value!r}: expected a whole number >= {lowest}.",
                    code="strategy.setting",
                    value=value,
                )

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> StrategyNoise:
        query.check_domain(policy.domain)
        check_loss(loss)
        if isinstance(self.strategy, Strategy):
            chosen = self.strategy
            proof = certified(chosen, policy, loss, sensitivity)
        elif sensitivity is not None:
            raise InputError(
                "a sensitivity without a strategy: expected none, since the certificate is for the rows that are chosen.",
                code="mechanism.sensitivity",
            )
        else:
            with shared_proofs(self.time_limit) as proofs:
                chosen, proof = self._chosen(query, policy, loss)
                return marked(self._on(chosen, proof, query, policy, loss), proofs)
        return self._on(chosen, proof, query, policy, loss)

    def _on(
        self, chosen: Strategy, proof: Sensitivity, query: Query, policy: Policy, loss: Loss
    ) -> StrategyNoise:
        _check_fixed(chosen, policy, loss)
        Workload(query, chosen.base)  # what cannot be weighed is refused now, not after data were read
        return StrategyNoise(f"{self.name}({chosen.describe()})", query, policy, loss, proof, chosen)

    def _chosen(self, query: Query, policy: Policy, loss: Loss) -> tuple[Strategy, Sensitivity]:
        def variance(power: Fraction) -> float:
            return noise_variance(power, loss)

        if self.strategy == "optimised":
            found = optimise(
                query,
                policy,
                norm=loss.norm,
                variance=variance,
                over=self.over,
                evaluations=self.evaluations,
            ).best
        else:
            rivals = plain_strategies(policy, over=self.over, kind=self.strategy, branching=self.branching)  # type: ignore[arg-type]
            found = least(
                weigh(query, policy, rivals, loss.norm, variance), key=lambda candidate: candidate.error
            )
        return found.strategy, found.sensitivity


def _check_fixed(strategy: Strategy, policy: Policy, loss: Loss) -> None:
    """Refuse a strategy whose exact numbers some move changes."""
    known = strategy.base.fixed
    if known is None:
        return
    proof = proved(known, policy, loss.norm)
    if proof.power != 0:
        raise RefusedError(
            f"{strategy.describe()} releases totals exactly, and this policy protects them: one neighbour step changes them by "
            f"{show(proof.power)}. Use a base without exact totals.",
            code="strategy.fixed",
            value=proof.power,
        )
