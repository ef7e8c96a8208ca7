"""Noise on the edges of the policy graph. Owns :class:`TransformedLaplace`, :class:`TransformedGaussian`, :class:`TransformedConsistent` and :class:`Transformed`.

Each edge gets noise of its own that leaves one cell and enters the other, so that one neighbour step is hidden by the
noise of one edge. On a forest the cells are a bijective image of the edge values, and one move changes one edge value by 1: any mechanism that hides one record
more or less may run on the edge values.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import ceil
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from policygraph.distributions.replay import Replay
from policygraph.distributions.sums import Terms, combination_within, linear_within, sum_within
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.errors import Seen, bounded, runs_for, simulated
from policygraph.estimation.histograms import consistent, isotonic_lines
from policygraph.exact import show
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
    counts_only,
    noise_for,
)
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon, Loss, Rho
from policygraph.model.policy import Policy
from policygraph.model.queries import identity
from policygraph.model.queries.base import Query
from policygraph.release.release import Basis, Errors, Randomness, Release, share_of
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.transforms.incidence import LineTransform, Reduction, Totals, transform
from policygraph.transforms.incidence.base import bounded_roots, check_totals, graph_of
from policygraph.transforms.incidence.transform import EdgeTransform

MOST_SIMULATED = 1 << 20
"""Runs times numbers of one up to which the errors of consistent counts are simulated."""
PATTERNS = 64
"""Most different rows of coefficients whose 95 % range is computed; more are bounded."""
FEW = 64
"""Up to so many noises the range of their sum is computed to the unit."""
LISTED = 10_000_000
"""Most coefficients of all answers that are looked at for it."""

HEAVY = 200_000
"""Beyond so many edges sums of cells are answered from a spanning forest, unless all edges are asked for."""

Route = Literal["auto", "edges", "spanning"]
Estimator = Callable[[Ints], Ints]
"""Cells to publish from noisy cells."""


@dataclass(frozen=True)
class EdgeNoise(Calibrated):
    """Independent noise on the coordinates of a transform; the answers follow.

    Attributes
    ----------
    reduction
        The transform x = M y; noise z on y gives the cells x + M z.
    consistent
        Whether noisy cells are replaced by the nearest whole non-negative ones.
    """

    mechanism: str
    query: Query
    policy: Policy
    loss: Loss
    reduction: Reduction
    consistent: bool = False
    sensitivity: Sensitivity | None = None

    smooth: ClassVar[bool] = False
    """Whether published cells may be far smoother than the true ones, so that stated ranges allow for what noise hides."""

    @cached_property
    def parameter(self) -> Fraction:
        """Scale stretch / epsilon of Laplace noise, or variance stretch / (2 rho) of Gaussian noise."""
        if isinstance(self.loss, Epsilon):
            return self.reduction.stretch / self.loss.value
        return self.reduction.stretch / (2 * self.loss.value)

    @cached_property
    def noise(self) -> Noise:
        nothing = self.reduction.width == len(self.reduction.fixed)
        return noise_for(self.loss, Fraction(0) if nothing else self.parameter)

    def reach(self, records: int) -> int:
        # An edge adds its noise to one cell and takes it from another, so that all cells together have at most twice all of it.
        spread = 2 * self.reduction.width * max(1, ceil(self.reduction.stretch)) * self.most_noise()
        most = self.query.most_answer(records + spread)
        return most * max(self.factor(at).numerator for at in range(len(self.query.parts)))

    @property
    def most_reach(self) -> int:  # type: ignore[override]
        """Whole numbers are added to whole numbers; a consistent fit works with floating-point numbers."""
        return Calibrated.most_reach if self.consistent else 1 << 61

    @cached_property
    def measure(self) -> Query:
        """All cells: what every answer is computed from."""
        return self.query if self.query.is_identity else identity(self.policy.domain)

    @property
    def width(self) -> int:
        return self.reduction.width

    def spread(self, draws: Ints) -> Ints:
        """Noise M z of the cells from noise z of the edges; totals that no move changes have none."""
        draws[..., self.reduction.fixed] = 0
        if len(draws) == 1:
            # The same product as below, without a matrix, for domains of any size.
            return self.reduction.invert(draws[0])[None, :]
        return np.asarray((self.reduction.matrix() @ draws.T).T)

    @property
    def centre(self) -> Query | None:
        return self.measure if self.consistent else self.query

    def decode(self, noisy: Ints, exact: Ints) -> Ints:
        """Noisy cells where they are to be made consistent, answers of the query otherwise."""
        return noisy if self.consistent else self._answered(noisy)

    def to_answers(self, points: Ints) -> Ints:
        """Make noisy cells consistent, if that is asked for, and answer the query from them."""
        return self._answered(self._fitted(points[None, :]))[0] if self.consistent else points

    def _answered(self, cells: Ints) -> Ints:
        return cells if self.query.is_identity else np.stack([self.query.answer(row) for row in cells])

    def publish(self, points: Ints, randomness: Randomness) -> Release:
        """Make a release of an output of the gate; consistent answers with the noisy ones beside, and errors of their own (post-processing)."""
        if not self.consistent:
            return super().publish(points, randomness)
        cells, again = self._estimated(points)
        values, beside = self._answered(cells[None, :])[0], self._answered(points[None, :])[0]
        errors = self._errors(points, cells, values, beside, again)
        return self.released(values, randomness, errors, beside)

    def _estimated(self, points: Ints) -> tuple[Ints, Estimator]:
        """Cells to publish, and how to estimate them again from other noisy cells."""
        return self._fitted(points[None, :])[0], lambda noisy: self._fitted(noisy[None, :])[0]

    def _errors(
        self, points: Ints, cells: Ints, values: Ints, beside: Ints, again: Estimator
    ) -> list[Errors]:
        """Errors of consistent answers, in the units users see."""
        deviation = np.sqrt(self.variances)
        seen = Seen.of(values, beside, deviation, self._within, nonnegative=counts_only(self.query))
        runs = runs_for(len(values))
        if runs * (self.reduction.width + len(cells)) > MOST_SIMULATED or not self.parameter:
            made = bounded(seen)
        else:
            drawn = self._again(Replay(self.mechanism, points), cells, again, runs)
            made = simulated(seen, drawn, smooth=self.smooth)
        return self._by_part(made)

    def _again(
        self, replay: Replay, cells: Ints, estimator: Estimator, runs: int
    ) -> Iterator[tuple[Floats, Floats]]:
        """Consistent and noisy answers of noise that is drawn again around published cells."""
        for _ in range(runs):
            draws = replay.draws(self.noise, (1, self.reduction.width))
            noisy = self.spread(draws) + cells
            fitted = self._answered(estimator(noisy[0])[None, :])[0]
            yield fitted.astype(np.float64), self._answered(noisy)[0].astype(np.float64)

    def _fitted(self, noisy: Ints) -> Ints:
        n = len(noisy)
        if n > 1 and isinstance(self.reduction, LineTransform):
            outer, length, inner = self.reduction.shape
            exact = self.reduction.exact_totals
            return isotonic_lines(noisy, (n * outer, length, inner), exact_total=exact).reshape(n, -1)
        return np.stack([consistent(self.reduction, row) for row in noisy])

    @property
    def keeps_facts(self) -> bool:
        """Facts that no edge breaks are sums of totals of components."""
        return len(self.reduction.fixed) == len(bounded_roots(graph_of(self.policy)))

    @cached_property
    def squares(self) -> Floats:
        """Number of edges that an answer feels, each counted with its squared coefficient."""
        return self.reduction.squares(self.query)

    @cached_property
    def variances(self) -> Floats:
        """Variance of the noise of each answer, in units of the query."""
        return np.asarray(self.squares * self.noise.variance)

    def deviation(self, part: int) -> float | Floats:
        return self._of_part(np.sqrt(self.variances), part)

    def within_95(self, part: int) -> float | Floats:
        return self._of_part(self._within, part)

    @cached_property
    def _within(self) -> Floats:
        laplace = isinstance(self.loss, Epsilon)
        counts, which = np.unique(self.squares, return_inverse=True)
        bound = np.ceil(linear_within(counts, float(self.parameter), laplace=laplace))
        if len(counts) <= PATTERNS and self.squares.sum() <= LISTED and self._unit_rows:
            bound = np.minimum(bound, [self._sum_within(int(c), laplace) for c in counts])
        return np.asarray(bound[which])

    def _sum_within(self, count: int, laplace: bool) -> float:
        """What 95 % of the sum of so many noises stays within: to the unit for few of them, and up to 0.06 deviations more for many."""
        if count <= FEW:
            return float(sum_within([1] * count, self.parameter, laplace=laplace))
        one = np.ones(1)
        return float(np.ceil(combination_within([Terms(one, count * one, float(self.parameter), laplace)])))

    def joint_bound(self, delta: Any) -> list[float | Floats]:
        """For answers that are linear in the noise: by a union bound over all answers."""
        if self.consistent:
            return super().joint_bound(delta)
        chance = float(share_of(delta) / max(1, self.query.height))
        laplace = isinstance(self.loss, Epsilon)
        wide = np.asarray(linear_within(self.squares, float(self.parameter), laplace=laplace, chance=chance))
        return [self._of_part(wide, at) for at in range(len(self.query.parts))]

    @cached_property
    def _unit_rows(self) -> bool:
        """Whether every edge enters every answer with coefficient 0, 1 or -1, so that squares count edges."""
        return self.query.is_identity or bool(
            self.query.height <= 100_000
            and np.abs(self.reduction.coefficients(self.query).data).max(initial=0) <= 1
        )

    def stages(self) -> Sequence[str]:
        kind = "scale" if isinstance(self.loss, Epsilon) else "variance parameter"
        out = []
        if self.noise.distribution != "none":
            out = [
                self.reduction.describe(),
                f"Independent {self.noise.distribution} noise of {kind} {show(self.parameter)} was added to each of them, for "
                f"a loss of {self.loss}.",
            ]
        if len(self.reduction.fixed):
            count = len(self.reduction.fixed)
            what = (
                "The number of records was"
                if graph_of(self.policy).is_connected
                else f"The total of {count:,} component{'s' * (count > 1)} of the policy graph was"
            )
            out.append(
                f"{what} released exactly: no move of this policy changes it, so that the policy does not hide it."
            )
        if self.consistent:
            out.append(
                "The noisy cells were replaced by whole non-negative ones, changing the noisy coordinates as little as "
                "possible (on large grids after a bounded effort), which does not increase the sum of squared errors of the coordinates but for rounding. The noisy "
                "counts stand beside them, unbiased. Stated errors are those of the published counts: simulated with public draws of noise around them, or, where there "
                "are very many, bounded."
            )
        return out

    def record(self, randomness: Randomness, parts: list[dict[str, Any]]) -> dict[str, Any]:
        made = super().record(randomness, parts)
        made["transform"] = {
            "stretch": self.reduction.stretch,
            "coordinates": self.reduction.width,
            "exact_totals": len(self.reduction.fixed),
            "valid_for": self.reduction.valid_for,
        }
        return made


@dataclass(frozen=True)
class TransformedLaplace(Mechanism):
    """Discrete Laplace noise of scale 1 / epsilon on every edge of the policy graph.

    Parameters
    ----------
    totals
        Totals of components without bottom, which no move changes: ``"exact"``, ``"noisy"``, or ``"auto"``: exact for a
        connected graph and for totals that are public facts, noisy otherwise.
    route
        For graphs with cycles: noise on all ``"edges"``, on those of a ``"spanning"`` forest at its stretch, or
        ``"auto"``: the smaller expected error of the query, which depends on no data.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 4})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    >>> ready = TransformedLaplace().calibrate(pg.queries.identity(domain), policy, pg.Epsilon("1/2"))
    >>> ready.parameter, ready.squares.tolist()
    (Fraction(2, 1), [1.0, 2.0, 2.0, 1.0])

    Notes
    -----
    A cell of a line has the noise of its two edges: variance 4 / epsilon^2 against 8 / epsilon^2 of noise on the cells
    themselves. A range has the noise of two edges whatever its length.
    """

    totals: Totals = "auto"
    route: Route = "auto"
    name: str = "TransformedLaplace"

    def __post_init__(self) -> None:
        check_settings(self.totals, self.route)

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> EdgeNoise:
        if not isinstance(loss, Epsilon):
            raise InputError(
                f"Laplace noise spends epsilon, not {loss}: expected Epsilon.", code="mechanism.loss"
            )
        return _of(self, query, policy, loss, sensitivity, consistent=False)


@dataclass(frozen=True)
class TransformedGaussian(Mechanism):
    """Discrete Gaussian noise of variance 1 / (2 rho) on every edge of the policy graph.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 4})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    >>> TransformedGaussian().calibrate(pg.queries.identity(domain), policy, pg.Rho("1/8")).parameter
    Fraction(4, 1)
    """

    totals: Totals = "auto"
    route: Route = "auto"
    name: str = "TransformedGaussian"

    def __post_init__(self) -> None:
        check_settings(self.totals, self.route)

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> EdgeNoise:
        if not isinstance(loss, Rho):
            raise InputError(f"Gaussian noise spends rho, not {loss}: expected Rho.", code="mechanism.loss")
        return _of(self, query, policy, loss, sensitivity, consistent=False)


@dataclass(frozen=True)
class TransformedConsistent(Mechanism):
    """Noise on every edge, then the nearest whole non-negative cells: isotonic regression on a line.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 5})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    >>> ready = TransformedConsistent().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
    >>> made = ready.run([3, 0, 0, 0, 9], pg.SeededRng(3)).values()
    >>> int(made.sum()), bool((made >= 0).all())
    (12, True)
    """

    totals: Totals = "auto"
    route: Route = "auto"
    name: str = "TransformedConsistent"

    def __post_init__(self) -> None:
        check_settings(self.totals, self.route)

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> EdgeNoise:
        return _of(self, query, policy, loss, sensitivity, consistent=True)


def _of(
    asked: TransformedLaplace | TransformedGaussian | TransformedConsistent,
    query: Query,
    policy: Policy,
    loss: Loss,
    sensitivity: Sensitivity | None,
    *,
    consistent: bool,
) -> EdgeNoise:
    kind = partial(EdgeNoise, consistent=consistent)
    return calibrate_edges(
        asked, query, policy, loss, sensitivity, kind=kind, totals=asked.totals, route=asked.route
    )


def check_settings(totals: object, route: object) -> None:
    """Refuse what says nothing about totals or routes."""
    if route not in ("auto", "edges", "spanning"):
        raise InputError(
            f"route={route!r}: expected 'auto', 'edges' or 'spanning'.",
            code="mechanism.route",
            value=route,
        )
    check_totals(totals)


def calibrate_edges(
    asked: Mechanism,
    query: Query,
    policy: Policy,
    loss: Loss,
    sensitivity: Sensitivity | None,
    *,
    kind: Callable[[str, Query, Policy, Loss, Reduction], EdgeNoise],
    totals: Totals,
    route: Route,
) -> EdgeNoise:
    """Noise on the edges of a policy graph, by the route of the smaller expected error of the query.

    Parameters
    ----------
    kind
        What is made of a name, a query, a policy, a loss and a transform.
    """
    query.check_domain(policy.domain)
    check_loss(loss)
    if sensitivity is not None:
        raise InputError(
            "a sensitivity of the query: expected none. Noise on edges needs none, since a move changes one edge by 1.",
            code="mechanism.sensitivity",
        )

    def ready(reduction: Reduction) -> EdgeNoise:
        kept = "exact" if len(reduction.fixed) else "noisy"
        way = "" if reduction.stretch == 1 else f", stretch {reduction.stretch}"
        return kind(f"{asked.name}(totals {kept}{way})", query, policy, loss, reduction)

    # The answers of many edges each would not fit memory, and are noisier than those of a spanning forest.
    heavy = not query.is_identity and route == "auto" and graph_of(policy).n_edges > HEAVY
    many = heavy or not EdgeTransform.accepts(policy)
    options: list[EdgeNoise] = []
    if route != "spanning" and not many:
        options.append(ready(transform(policy, totals=totals)))
    if route == "spanning" or (route == "auto" and (many or options[0].reduction.valid_for != "any")):
        try:
            options.append(ready(transform(policy, totals=totals, spanning=True)))
        except RefusedError:
            if not options and not heavy:
                raise
    if not options:
        options.append(ready(transform(policy, totals=totals)))
    if len(options) == 1:
        return options[0]
    return min(options, key=lambda option: float(option.variances.sum()))


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
        """By the distribution of the noise where the inner mechanism adds it to each number; by Chebyshev's inequality otherwise."""
        if isinstance(self.inner, Additive):
            squares = np.asarray(self.reduction.squares(self.query), dtype=np.float64)
            laplace = isinstance(self.loss, Epsilon)
            wide = linear_within(squares, float(self.inner.parameter), laplace=laplace)
            return self._of_part(np.asarray(wide), part)
        return self.deviation(part) * float(np.sqrt(20.0))

    @property
    def rests_on(self) -> Basis:
        return "exact" if isinstance(self.inner, Additive) else "bound"

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
        request = identity(edges), Policy(edges), part
        inner = check_answers(self.inner.calibrate(*request), *request)
        name = f"{self.name}({inner.mechanism}, stretch {reduction.stretch}, {len(reduction.fixed)} exact totals)"
        return OnForest(name, query, policy, loss, reduction, inner)
