"""Noise that keeps the public facts by itself. Owns :class:`Kernel` and :class:`Fitted`.

Two tables that fit the same facts differ by a point of the kernel lattice. Either its free coordinates are measured
(:class:`Kernel`), or the answers are, and the noisy answers are then moved to the nearest ones that fit (:class:`Fitted`).
Both give whole numbers that fit every public fact exactly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from policygraph.distributions import gaussian_variance, laplace_variance
from policygraph.distributions.replay import Replay
from policygraph.distributions.sums import linear_within, sum_within
from policygraph.effort import SECOND
from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.additive import BuiltOnAdditive
from policygraph.mechanisms.base import (
    Calibrated,
    Floats,
    Ints,
    Mechanism,
    certified,
    check_loss,
)
from policygraph.mechanisms.constrained.free_lattice import (
    FreeLattice,
    answer_factors,
    free_lattice,
    measured,
)
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries import identity
from policygraph.model.queries.base import Part, Query
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.release.release import Basis, Randomness
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.proofs import proved, shared_proofs

Over = Literal["answers", "cells"]

NEGATIVE = "The released numbers fit every public fact exactly; single counts may be negative or above what is possible."
FREE_WORK = 20 * SECOND
"""For the sensitivity of the free numbers: beyond it other noise is rarely worse."""
GRID = 1 << 20
"""Coordinates are settled to multiples of one over this before they are rounded."""
RUN_WORK, LEAST_RUNS, MOST_RUNS, SEEN = 1 << 26, 256, 4096, 200
"""Products of public draws with matrices, and the numbers of draws, behind the stated errors of a fit. With so little noise that these would not show so many draws
other than 0, a bound is stated."""
SHARE = 0.95
SHOWN = 20_000
"""Bases with at most so many entries are written into the record of a release."""


@dataclass(frozen=True)
class Confined(BuiltOnAdditive):
    """Noise inside the lattice that the public facts leave free.

    Attributes
    ----------
    free
        The lattice of differences of answers, with coordinates.
    why
        A sentence on how the mechanism was chosen, if it was.
    """

    mechanism: str
    query: Query
    policy: Policy
    loss: Loss
    sensitivity: Sensitivity
    free: FreeLattice
    why: str = ""

    @property
    def keeps_facts(self) -> bool:
        return True

    @cached_property
    def basis(self) -> Ints:
        """The basis of the free lattice, one row for each measured answer."""
        return _int64(self.free.basis)

    def reach(self, records: int) -> int:
        # An answer feels each free coordinate with its noise times an entry of the basis.
        steps = max((sum(abs(int(x)) for x in row) for row in self.free.basis.tolist()), default=0)
        most = super().reach(records)
        return max(
            most + steps * self.most_noise(), self.inner.query.most_answer(records) + self.most_noise()
        )

    @cached_property
    @abstractmethod
    def errors(self) -> tuple[Floats, Floats]:
        """Standard deviation and 95 % range of each answer, in units of the query."""

    def deviation(self, part: int) -> float | Floats:
        return self._of_part(self.errors[0], part)

    def within_95(self, part: int) -> float | Floats:
        return self._of_part(self.errors[1], part)

    def record(self, randomness: Randomness, parts: list[dict[str, Any]]) -> dict[str, Any]:
        made = super().record(randomness, parts)
        if self.free.basis.size <= SHOWN:
            made["free_basis"] = self.basis.T.tolist()
        return made


@dataclass(frozen=True)
class KernelNoise(Confined):
    """Independent noise on the free coordinates; the answers move along the basis."""

    @property
    def width(self) -> int:
        return self.free.rank

    def spread(self, draws: Ints) -> Ints:
        return _steps(draws, self.basis)

    @cached_property
    def errors(self) -> tuple[Floats, Floats]:
        if self.parameter == 0:
            nothing = np.zeros(len(self.basis))
            return nothing, nothing
        norms = np.sqrt((self.basis.astype(np.float64) ** 2).sum(axis=1))
        known: dict[tuple[int, ...], float] = {}
        within = np.zeros(len(self.basis))
        for at, row in enumerate(self.basis):
            key = tuple(sorted(abs(x) for x in row.tolist() if x))
            if key not in known:
                known[key] = float(sum_within(key, self.parameter, laplace=isinstance(self.loss, Epsilon)))
            within[at] = known[key]
        return norms * float(np.sqrt(self.noise.variance)), within

    def stages(self) -> Sequence[str]:
        first, *rest = self.inner.stages()
        start = f"The public facts leave {self.free.rank} numbers of {self.query.height} answers free, and these were measured. "
        first = start + first.replace("the answers", "the free numbers")
        rest = [line.replace("each answer", "each free number") for line in rest]
        return [first, *rest, NEGATIVE]


@dataclass(frozen=True)
class FittedNoise(Confined):
    """Independent noise on the answers, or on the cells, which are then moved to near whole ones that fit the facts.

    Attributes
    ----------
    free
        The lattice of what is measured.
    over
        What is measured: the ``"answers"``, or the ``"cells"`` that they are sums of.
    """

    over: Over = "answers"

    @cached_property
    def measure(self) -> Query:
        return self.query if self.over == "answers" else identity(self.policy.domain)

    @cached_property
    def _triangle(self) -> tuple[Floats, Floats]:
        """Orthonormal columns and an upper triangle whose product is the basis (floats: post-processing)."""
        columns, triangle = np.linalg.qr(self.basis.astype(np.float64))
        return columns, triangle

    @cached_property
    def published(self) -> Ints:
        """The basis as it is seen in the answers."""
        if self.over == "answers":
            return self.basis
        cells = np.arange(self.policy.domain.size, dtype=np.int64)
        return np.asarray(self.query.columns(cells) @ self.basis, dtype=np.int64)

    @cached_property
    def exact(self) -> tuple[Query, ...]:
        """The origin, which is the same for all tables with the same public facts (Lemma 1)."""
        return (Origin(self.measure, self.free),)

    def reach(self, records: int) -> int:
        if self.over == "answers":
            return super().reach(records)
        steps = sum(abs(int(x)) for x in self.free.basis.ravel().tolist())
        most = self.query.most_answer(records + steps * self.most_noise())
        return most * max(self.factor(at).numerator for at in range(len(self.query.parts)))

    def nearest(self, points: Floats) -> Floats:
        """Whole coordinates of lattice points near given points, one in each row: the nearest plane, coordinate by coordinate.

        Notes
        -----
        Babai (1986). The rounding error lies in a box whose sides are the lengths of the orthogonalised basis vectors. Ties are broken by the sign of what the
        projection takes away, which no lattice point has any of: so the result moves with the lattice, and errors depend on the noise alone.
        Numbers are settled to a dyadic grid first, so that the last digits of floating-point numbers decide no tie.
        """
        columns, triangle = self._triangle
        rest = points @ columns
        away = np.rint((points - rest @ columns.T) * GRID)
        first = np.argmax(away != 0, axis=1)
        up = away[np.arange(len(away)), first] > 0
        steps = np.empty_like(rest)
        for at in range(rest.shape[1] - 1, -1, -1):
            settled = np.rint(rest[:, at] / triangle[at, at] * GRID) / GRID
            low = np.floor(settled)
            steps[:, at] = np.where(settled - low == 0.5, low + up, np.rint(settled))
            rest[:, :at] -= np.outer(steps[:, at], triangle[:at, at])
        return steps

    def decode(self, noisy: Ints, exact: Ints) -> Ints:
        """Move noisy numbers to near whole ones that fit the facts, and answer the query from them."""
        steps = self.nearest((noisy - exact).astype(np.float64))
        if steps.size and float(np.abs(steps).max()) > 2.0**52:
            raise RefusedError(
                "the noisy answers are too large to be fitted exactly.", code="kernel.overflow"
            )
        fitted = _steps(steps.astype(np.int64), self.basis, int(np.abs(exact).max(initial=0))) + exact
        return fitted if self.over == "answers" else np.stack([self.query.answer(row) for row in fitted])

    @property
    def rests_on(self) -> Basis:
        if self.parameter == 0:
            return "exact"
        return "simulated" if self._runs else "bound"

    @cached_property
    def _runs(self) -> int:
        """How often the noise is drawn again in public; 0 where that would too rarely show any noise."""
        size = self.published.size + len(self.published) * len(self.basis)
        runs = min(MOST_RUNS, max(LEAST_RUNS, RUN_WORK // max(1, size)))
        return runs if self.noise.variance * runs >= SEEN else 0

    @cached_property
    def errors(self) -> tuple[Floats, Floats]:
        """Errors of the answers: the variance of projected noise is exact, and what rounding changes is seen in public draws of the noise.

        Notes
        -----
        The error is a function of the noise alone, so that no data are needed. Where the noise is next to nothing, the side of the box of rounding errors that an
        answer sees is added to its deviation (Minkowski's inequality): a bound.
        """
        if self.parameter == 0:
            return np.zeros(len(self.published)), np.zeros(len(self.published))
        columns, triangle = self._triangle
        seen = self.published.astype(np.float64)
        sides = np.linalg.solve(triangle.T, seen.T).T
        onto = sides @ columns.T
        exact = (onto**2).sum(axis=1)
        if not self._runs:
            rounding = np.abs(sides * np.diag(triangle)).sum(axis=1) / 2
            within = linear_within(exact, float(self.parameter), laplace=isinstance(self.loss, Epsilon))
            return np.sqrt(exact * self.noise.variance) + rounding, within + rounding
        replay = Replay("fitted", str(self.noise.parameter), self.query.fingerprint)
        draws = replay.draws(self.noise, (self._runs, len(self.basis))).astype(np.float64)
        error = self.nearest(draws) @ seen.T
        surplus = (error**2 - (draws @ onto.T) ** 2).mean(axis=0)
        squares = exact * self.noise.variance + surplus
        # Further out than the sample says, by two of its standard errors.
        at = int(SHARE * self._runs + 2 * np.sqrt(SHARE * (1 - SHARE) * self._runs))
        return np.sqrt(np.maximum(squares, 0.0)), np.sort(np.abs(error), axis=0)[at]

    def stages(self) -> Sequence[str]:
        what = "answers" if self.over == "answers" else "cells"
        last = (
            f"The noisy {what} were moved to whole numbers that fit the public facts, next to their least-squares projection. "
            + (
                "In the stated errors the share of rounding was simulated with public draws of the noise, on which alone it depends."
                if self.rests_on == "simulated"
                else "The stated errors are upper bounds."
            )
        )
        first = [line.replace("answer", "cell") for line in self.inner.stages()]
        made = (
            self.inner.stages()
            if self.over == "answers"
            else [*first, "The answers are sums of these cells."]
        )
        return [*made, last, NEGATIVE]


@dataclass(frozen=True)
class Kernel(Mechanism):
    """Measure only what the public facts leave free, so that every release fits them exactly.

    Parameters
    ----------
    time_limit
        Seconds after which the search for the sensitivity of the free numbers also ends; None, the usual, for no clock.

    Examples
    --------
    A 2 x 2 table with both margins public has one free number, and a neighbour step changes it by one.

    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 2})
    >>> facts = [pg.Cuboid("a", equals=[7, 5]), pg.Cuboid("b", equals=[6, 6])]
    >>> policy = pg.Policy(domain, constraints=facts)
    >>> ready = Kernel().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
    >>> ready.parameter, ready.free.rank
    (Fraction(1, 1), 1)
    >>> made = ready.run([4, 3, 2, 3], pg.SeededRng(1)).values().reshape(2, 2)
    >>> made.sum(axis=1).tolist(), made.sum(axis=0).tolist()
    ([7, 5], [6, 6])

    Notes
    -----
    A given certificate must be for the free numbers themselves: ``calibrate(...).sensitivity`` is one.
    """

    name: str = "Kernel"
    time_limit: float | None = None

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> KernelNoise:
        return self.on(self.lattice(query, policy, loss), query, policy, loss, sensitivity)

    def lattice(self, query: Query, policy: Policy, loss: Loss) -> FreeLattice:
        """The free numbers that are measured: those of least expected error that a search finds."""
        check_loss(loss)
        return measured(_lattice(query, policy), query, policy, loss.norm)

    def on(
        self,
        free: FreeLattice,
        query: Query,
        policy: Policy,
        loss: Loss,
        sensitivity: Sensitivity | None = None,
    ) -> KernelNoise:
        """Fix the noise on given coordinates of the free lattice of this query and policy."""
        rows = coordinate_rows(free, policy)
        if sensitivity is None:
            with shared_proofs(self.time_limit):
                sensitivity = proved(rows, policy, loss.norm, FREE_WORK)
        return KernelNoise(self.name, query, policy, loss, certified(rows, policy, loss, sensitivity), free)


@dataclass(frozen=True)
class Fitted(Mechanism):
    """Noise on every answer, moved to the nearest whole answers that fit the public facts.

    Parameters
    ----------
    over
        What gets noise: the ``"answers"``, or the ``"cells"`` that they are sums of.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 3})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("a")])
    >>> ready = Fitted().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
    >>> made = ready.run([4, 3, 2, 3, 0, 1], pg.SeededRng(1)).values().reshape(2, 3)
    >>> made.sum(axis=1).tolist()
    [9, 4]
    """

    over: Over = "answers"
    name: str = "Fitted"

    def __post_init__(self) -> None:
        if self.over not in ("answers", "cells"):
            raise InputError(
                f"over={self.over!r}: expected 'answers' or 'cells'.", code="kernel.over", value=self.over
            )

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> FittedNoise:
        query.check_domain(policy.domain)
        cells = self.over == "cells" and not query.is_identity
        rows = identity(policy.domain) if cells else query
        free = _lattice(rows, policy, stepwise=True)
        proof = certified(rows, policy, loss, sensitivity)
        name = f"{self.name} on cells" if cells else self.name
        return FittedNoise(name, query, policy, loss, proof, free, over="cells" if cells else "answers")


def _lattice(query: Query, policy: Policy, *, stepwise: bool = False) -> FreeLattice:
    query.check_domain(policy.domain)
    if policy.definition == "edges":
        raise InputError(
            "this policy has no public facts, so that nothing is to be kept: expected constraints. Use Laplace or Gaussian.",
            code="kernel.facts",
        )
    free = free_lattice(query, policy, stepwise=stepwise)
    if free.rank == 0:
        raise InputError(
            "the public facts determine all answers: expected something to be free. Use Laplace or Gaussian, "
            "which release such answers as they are.",
            code="kernel.determined",
        )
    return free


def hopeless(free: FreeLattice, others: Sequence[Calibrated], policy: Policy) -> bool:
    """Whether a pair of neighbours that is known already makes noise on the free numbers worse than other mechanisms."""
    known = [each.sensitivity.witness for each in others if each.sensitivity is not None]
    rows, loss, query = coordinate_rows(free, policy), others[0].loss, others[0].query
    change = max((rows.change_norm(each.change, loss.norm) for each in known if each is not None), default=0)
    if change == 0:
        return False
    laplace = isinstance(loss, Epsilon)
    variance = (
        laplace_variance(change / loss.value) if laplace else gaussian_variance(change / (2 * loss.value))
    )
    factors = np.array([float(factor) for factor in answer_factors(query)])
    spread = float(((np.asarray(free.basis, dtype=np.float64) * factors[:, None]) ** 2).sum())
    return variance * spread >= min(each.total_error for each in others)


def coordinate_rows(free: FreeLattice, policy: Policy) -> MatrixQuery:
    """The free coordinates as a query over the cells."""
    return MatrixQuery(policy.domain, _int64(free.coordinates), name="free coordinates")


def _int64(values: Any) -> Ints:
    """Python integers as int64, refused where they would wrap."""
    whole = np.asarray(values, dtype=object)
    if whole.size and max(abs(int(whole.max())), abs(int(whole.min()))) >= 1 << 62:
        raise RefusedError("numbers of more than 62 bits: expected smaller counts.", code="kernel.overflow")
    return whole.astype(np.int64)


def _steps(steps: Ints, basis: Ints, start: int = 0) -> Ints:
    """Rows basis @ steps[i], refused where they would wrap when numbers of up to ``start`` are added."""
    reach = int(np.abs(steps).max(initial=0)) * int(np.abs(basis).sum(axis=1).max(initial=0))
    if reach + start >= 1 << 62:
        raise RefusedError("a released number would have more than 62 bits.", code="kernel.overflow")
    made: Ints = steps @ basis.T
    return made


class Origin(Query):
    """Answers less their free part, W x - B C x: equal for all tables with the same public facts, by Lemma 1 of ``docs/explanation/proofs/kernel-noise.md``."""

    def __init__(self, query: Query, free: FreeLattice) -> None:
        super().__init__(query.domain, query.unit)
        self.query, self.free = query, free

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.query.parts

    def part_labels(self, part: int) -> list[Any]:
        return self.query.part_labels(part)

    def answer(self, table: Any) -> Ints:
        shares = self.free.coordinates @ np.asarray(table).astype(object)
        return _int64(self.query.answer(table) - self.free.basis @ shares)

    def columns(self, cells: Any) -> Any:
        from scipy import sparse

        at = np.asarray(cells, dtype=np.int64)
        return sparse.csc_matrix(
            _int64(self.query.columns(at).toarray() - self.free.basis @ self.free.coordinates[:, at])
        )

    def to_spec(self) -> dict[str, Any]:
        return {
            "origin": self.query.to_spec(),
            "basis": self.free.basis.tolist(),
            "coordinates": self.free.coordinates.tolist(),
        }
