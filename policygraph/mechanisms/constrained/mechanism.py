"""Noise that keeps the public facts by itself. Owns :class:`Kernel` and :class:`Fitted`.

Two tables that fit the same facts differ by a point of the kernel lattice. Either its free coordinates are measured
(:class:`Kernel`), or the answers are, and the noisy answers are then moved to the nearest ones that fit (:class:`Fitted`).
Both give whole numbers that fit every public fact exactly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from policygraph.curator.noise import Rng, discrete_gaussian, discrete_laplace
from policygraph.distributions.sums import real_within, sum_within
from policygraph.effort import SECOND
from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.additive import Additive
from policygraph.mechanisms.base import (
    Calibrated,
    Floats,
    Ints,
    Mechanism,
    Noise,
    certified,
    check_loss,
)
from policygraph.mechanisms.constrained.coordinates import measured
from policygraph.mechanisms.constrained.free_lattice import FreeLattice, free_lattice
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.request import asking, proved

__all__ = ["Confined", "Fitted", "FittedNoise", "Kernel", "KernelNoise", "coordinate_rows"]

NEGATIVE = "The released numbers fit every public fact exactly; single counts may be negative or above what is possible."
FREE_WORK = 20 * SECOND
"""For the sensitivity of the free numbers: beyond it other noise is rarely worse."""
SHOWN = 20_000
"""Bases with at most so many entries are written into the record of a release."""


@dataclass(frozen=True)
class Confined(Calibrated):
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

    @cached_property
    def inner(self) -> Additive:
        """The additive mechanism whose noise is used: on the coordinates, or on the answers."""
        return Additive(self.mechanism, self.sensitivity.query, self.policy, self.loss, self.sensitivity)

    @property
    def parameter(self) -> Fraction:
        """Scale, or variance parameter, of the noise of one measured number."""
        return self.inner.parameter

    @property
    def noise(self) -> Noise:
        return self.inner.noise

    @cached_property
    def basis(self) -> Ints:
        """The basis of the free lattice, one row for each answer."""
        return _int64(self.free.basis)

    def drawn(self, shape: tuple[int, ...], source: Rng) -> Ints:
        """Independent noise of the measured numbers."""
        if self.parameter == 0:
            return np.zeros(shape, dtype=np.int64)
        draw = discrete_laplace if isinstance(self.loss, Epsilon) else discrete_gaussian
        made: Ints = draw(self.parameter, shape, source)
        return made

    def reach(self, records: int) -> int:
        # An answer feels each free coordinate with its noise times an entry of the basis.
        steps = max((sum(abs(int(x)) for x in row) for row in self.free.basis.tolist()), default=0)
        most = super().reach(records)
        return max(
            most + steps * self.most_noise(), self.inner.query.most_answer(records) + self.most_noise()
        )

    def checked(self, table: Any) -> Ints:
        """The counts of the cells; a table that does not fit the facts has no neighbours, and is an error."""
        counts = np.asarray(table.vector() if hasattr(table, "vector") else table).ravel()
        self.policy.system.check(counts)
        return counts

    def noisy(self, table: Any, source: Rng) -> Ints:
        made: Ints = self.noisy_many(table, 1, source)[0]
        return made

    @abstractmethod
    def noisy_many(self, table: Any, n: int, source: Rng) -> Ints:
        """Return n independent outputs, one in each row."""

    @cached_property
    @abstractmethod
    def errors(self) -> tuple[Floats, Floats]:
        """Standard deviation and 95 % range of each answer, in lattice units."""

    def deviation(self, part: int) -> float | Floats:
        return self._of_part(self.errors[0], part)

    def within_95(self, part: int) -> float | Floats:
        return self._of_part(self.errors[1], part)

    def record(self, source: Rng, parts: list[dict[str, Any]]) -> dict[str, Any]:
        made = super().record(source, parts)
        if self.free.basis.size <= SHOWN:
            made["free_basis"] = self.basis.T.tolist()
        return made


@dataclass(frozen=True)
class KernelNoise(Confined):
    """Independent noise on the free coordinates; the answers move along the basis."""

    def noisy_many(self, table: Any, n: int, source: Rng) -> Ints:
        counts = self.checked(table)
        answers = self.query.answer(counts)
        noise = self.drawn((n, self.free.rank), source)
        return _sum(answers, noise, self.basis)

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
    """Independent noise on the answers, which are then moved to the nearest whole answers that fit the facts."""

    @cached_property
    def fit(self) -> Floats:
        """Least-squares coefficients of a vector of answers in the basis (floats: post-processing)."""
        return np.linalg.pinv(self.basis.astype(np.float64))

    def noisy_many(self, table: Any, n: int, source: Rng) -> Ints:
        counts = self.checked(table)
        answers = self.query.answer(counts)
        noisy = self.drawn((n, len(answers)), source) + answers
        # The origin is the same for all tables with the same public facts (Lemma 1), so that what
        # follows uses the noisy answers and public numbers only.
        shares = self.free.coordinates @ counts.astype(object)
        origin = _int64(answers - self.free.basis @ shares)
        nearest = np.rint((noisy - origin).astype(np.float64) @ self.fit.T)
        if nearest.size and float(np.abs(nearest).max()) > 2.0**52:
            raise RefusedError(
                "the noisy answers are too large to be fitted exactly.", code="kernel.overflow"
            )
        return _sum(origin, nearest.astype(np.int64), self.basis)

    @cached_property
    def errors(self) -> tuple[Floats, Floats]:
        if self.parameter == 0:
            nothing = np.zeros(len(self.basis))
            return nothing, nothing
        laplace = isinstance(self.loss, Epsilon)
        onto = self.basis.astype(np.float64) @ self.fit
        norms = np.sqrt((onto**2).sum(axis=1))
        rounding = np.abs(self.basis).sum(axis=1) / 2
        real = float(np.sqrt(2) * self.parameter) if laplace else float(self.parameter) ** 0.5
        floors = np.abs(onto).sum(axis=1) if laplace else np.zeros(len(onto))
        within = norms * real_within(real, laplace=laplace) + floors + rounding
        return norms * float(np.sqrt(self.noise.variance)) + rounding, within

    def stages(self) -> Sequence[str]:
        last = (
            "The noisy answers were moved to whole numbers that fit the public facts, next to their least-squares "
            "projection; the stated errors are upper bounds."
        )
        return [*self.inner.stages(), last, NEGATIVE]


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
        check_loss(loss)
        free = measured(_lattice(query, policy), query, policy, loss.norm)
        return self.on(free, query, policy, loss, sensitivity)

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
            with asking(self.time_limit):
                sensitivity = proved(rows, policy, loss.norm, FREE_WORK)
        return KernelNoise(self.name, query, policy, loss, certified(rows, policy, loss, sensitivity), free)


@dataclass(frozen=True)
class Fitted(Mechanism):
    """Noise on every answer, moved to the nearest whole answers that fit the public facts.

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

    name: str = "Fitted"

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> FittedNoise:
        free = _lattice(query, policy, stepwise=True)
        proof = certified(query, policy, loss, sensitivity)
        return FittedNoise(self.name, query, policy, loss, proof, free)


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


def coordinate_rows(free: FreeLattice, policy: Policy) -> MatrixQuery:
    """The free coordinates as a query over the cells."""
    return MatrixQuery(policy.domain, _int64(free.coordinates), name="free coordinates")


def _int64(values: Any) -> Ints:
    """Python integers as int64, refused where they would wrap."""
    whole = np.asarray(values, dtype=object)
    if whole.size and max(abs(int(whole.max())), abs(int(whole.min()))) >= 1 << 62:
        raise RefusedError("numbers of more than 62 bits: expected smaller counts.", code="kernel.overflow")
    return whole.astype(np.int64)


def _sum(start: Ints, steps: Ints, basis: Ints) -> Ints:
    """Rows start + basis @ steps[i], refused where they would wrap."""
    reach = int(np.abs(steps).max(initial=0)) * int(np.abs(basis).sum(axis=1).max(initial=0))
    if reach + int(np.abs(start).max(initial=0)) >= 1 << 62:
        raise RefusedError("a released number would have more than 62 bits.", code="kernel.overflow")
    made: Ints = start + steps @ basis.T
    return made
