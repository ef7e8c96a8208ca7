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
from typing import Any

import numpy as np

from policygraph.distributions.sums import real_within, sum_within
from policygraph.effort import SECOND
from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.additive import BuiltOnAdditive
from policygraph.mechanisms.base import (
    Floats,
    Ints,
    Mechanism,
    certified,
    check_loss,
)
from policygraph.mechanisms.constrained.free_lattice import FreeLattice, free_lattice, measured
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Part, Query
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.release.release import Randomness
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.proofs import proved, shared_proofs

NEGATIVE = "The released numbers fit every public fact exactly; single counts may be negative or above what is possible."
FREE_WORK = 20 * SECOND
"""For the sensitivity of the free numbers: beyond it other noise is rarely worse."""
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

    @cached_property
    def basis(self) -> Ints:
        """The basis of the free lattice, one row for each answer."""
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
    """Independent noise on the answers, which are then moved to the nearest whole answers that fit the facts."""

    @cached_property
    def fit(self) -> Floats:
        """Least-squares coefficients of a vector of answers in the basis (floats: post-processing)."""
        return np.linalg.pinv(self.basis.astype(np.float64))

    @cached_property
    def exact(self) -> tuple[Query, ...]:
        """The origin, which is the same for all tables with the same public facts (Lemma 1)."""
        return (Origin(self.query, self.free),)

    def decode(self, noisy: Ints, exact: Ints) -> Ints:
        """Move noisy answers to the nearest whole ones that fit the facts."""
        nearest = np.rint((noisy - exact).astype(np.float64) @ self.fit.T)
        if nearest.size and float(np.abs(nearest).max()) > 2.0**52:
            raise RefusedError(
                "the noisy answers are too large to be fitted exactly.", code="kernel.overflow"
            )
        return _steps(nearest.astype(np.int64), self.basis, int(np.abs(exact).max(initial=0))) + exact

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
            with shared_proofs(self.time_limit):
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
