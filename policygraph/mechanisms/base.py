"""What every mechanism is. Owns :class:`Mechanism` (configuration only) and :class:`Calibrated` (ready to run).

Nothing in this room sees data or randomness: a calibrated mechanism says what is to be answered, which noise it gets and what is made of it, and
``policygraph.curator.gate`` is the one place where a true answer meets noise.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from fractions import Fraction
from functools import cached_property
from math import ceil, isqrt
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from policygraph.distributions.noise import (
    GAUSSIAN,
    LAPLACE,
    MAX_SCALE,
    MAX_SIGMA_SQUARED,
    Noise,
    gaussian_noise,
    laplace_noise,
)
from policygraph.effort import SECOND
from policygraph.errors import InputError, PolicyGraphError, RefusedError
from policygraph.model.grouped import Grouped, records_of
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.loss import Epsilon, Loss, Rho
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery, SetQuery
from policygraph.model.units import Unit, other_terms
from policygraph.release.release import Basis, Errors, Randomness, Release, Table, scaled, share_of
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.linked import member_loss, member_words
from policygraph.sensitivity.proofs import CUT_SHORT, Proofs, current, proved
from policygraph.version import __version__

__all__ = [
    "Calibrated",
    "Mechanism",
    "Noise",
    "answer_parts",
    "answers_of",
    "certified",
    "check_answers",
    "check_drawable",
    "check_loss",
    "chosen",
    "counts_only",
    "marked",
    "noise_for",
]

MOST_ANSWERS = 100_000_000
"""Most answers of one release."""

MOST_CUBE_CELLS = 500_000_000
"""Most measured cells of a cube (each takes up to 40 bytes on the way)."""

RECORD_WORK = 5 * SECOND
"""For the certificate of the query itself in a record, where no noise is scaled to it: a bound will do."""

MOST_LOOKED_AT = 10_000_000
"""Entries of a query that are looked at to see whether one is negative."""
MOST_LISTED = 100_000
"""Up to so many rows of a release are taken to share no labels."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


Made = TypeVar("Made", bound="Calibrated")


class Runs(Protocol):
    """What :meth:`Calibrated.run` is given: randomness that takes a mechanism and data through the gate of the curator."""

    def run(self, ready: Calibrated, data: Any, /) -> Release:
        """Draw the noise and make the release."""


class Calibrated(ABC):
    """A mechanism with its noise fixed for one query, policy and loss. It never sees data.

    Notes
    -----
    It says what is to be answered (:attr:`measure`, :attr:`exact`), which noise the answers get (:attr:`noise`, :attr:`width`, :meth:`spread`), and what is
    made of the noisy answers (:meth:`decode`, :meth:`publish`). The gate, ``policygraph.curator.gate``, does the rest: it alone brings true answers
    and noise together. A family that must look at data before it adds noise names a :attr:`runner` of the curator.
    """

    mechanism: str
    query: Query
    policy: Policy
    loss: Loss
    sensitivity: Sensitivity | None
    """What the noise was scaled to; None for a mechanism that scales nothing to a sensitivity."""
    why: str = ""
    """Why this mechanism was chosen among others, if it was: the first sentence of a record."""
    most_reach: ClassVar[int] = 1 << 48
    """What :meth:`reach` must stay below. Floating-point numbers are at ease with this much; mechanisms that add whole numbers only take more."""
    runner: ClassVar[str] = ""
    """The runner of the curator that draws for this family; empty for the gate itself."""

    @property
    @abstractmethod
    def noise(self) -> Noise:
        """Return the distribution of one independent draw of noise."""

    @property
    def measure(self) -> Query | None:
        """What is answered with noise, in integers; None when nothing is."""
        return self.query

    @property
    def exact(self) -> tuple[Query, ...]:
        """What is answered without noise. No move of the policy may change it; a mechanism of others is refused unless that is proved."""
        return ()

    @property
    def width(self) -> int:
        """Number of independent draws of noise."""
        return 0 if self.measure is None else self.measure.height

    def spread(self, draws: Ints) -> Ints:
        """Noise of the measured integers from independent draws, one row for each run; by default each integer has a draw of its own."""
        return draws

    def decode(self, noisy: Ints, exact: Ints) -> npt.NDArray[Any]:
        """Outputs from noisy integers, one row for each run, and the exact ones, which follow by default (post-processing)."""
        if not exact.size:
            return noisy
        return np.concatenate([noisy, np.broadcast_to(exact, (len(noisy), exact.size))], axis=1)

    def comparable(self, outputs: Any) -> npt.NDArray[Any]:
        """Outputs of several runs as an array with a row for each, which is what an audit looks at."""
        return np.asarray(outputs)

    @property
    def cut_short(self) -> bool:
        """Whether a limit in seconds that the caller set ended a search for what is calibrated here."""
        proof = self.sensitivity
        return bool(getattr(self, "_cut_short", False)) or (proof is not None and proof.cut_short)

    @property
    def keeps_facts(self) -> bool:
        """Whether what is published meets the public facts of the policy, whatever the noise is."""
        return False

    @property
    def centre(self) -> Query | None:
        """What an output starts with, but for the noise; None when that is no query."""
        return self.query

    def to_answers(self, points: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Answers of the query from an output, in units of its integers: what other mechanisms build on (post-processing)."""
        return points

    @abstractmethod
    def stages(self) -> Sequence[str]:
        """Return one sentence for each stage, for people who read the release."""

    def sentences(self) -> list[str]:
        """Return the stages, after why this mechanism was chosen among others, if it was."""
        return [*([self.why] if self.why else []), *self.stages()]

    @cached_property
    def most_records(self) -> int:
        """The most records of which no number on the way to a release can be too large; the gate refuses more, before any product is formed."""
        at_none, at_one = self.reach(0), self.reach(1)
        if at_none >= self.most_reach:
            return -1
        # For most mechanisms the reach grows by the same amount with each record; for others the limit is found by bisection.
        low = (self.most_reach - 1 - at_none) // (at_one - at_none) if at_one > at_none else 1 << 62
        if self.reach(low) < self.most_reach <= self.reach(low + 1):
            return low
        low, high = 0, 1 << 62
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.reach(middle) < self.most_reach else (low, middle)
        return low

    def too_many_records(self) -> PolicyGraphError:
        """The error for data of more than :attr:`most_records`."""
        return RefusedError(
            f"so many records, times what one of them can add to a number that {self.mechanism} works with, are too many: expected below "
            f"2**{self.most_reach.bit_length() - 1}. Nothing was charged. Use a coarser unit, smaller weights or another mechanism.",
            code="query.overflow",
        )

    def reach(self, records: int) -> int:
        """A bound on the absolute values of all numbers on the way to a release of so many records, noise included; exact integers."""
        queries = [self.query] + ([self.centre] if self.centre is not None else [])
        most = max(query.most_answer(records) for query in queries) + self.most_noise()
        return most * max((self.factor(at).numerator for at in range(len(self.query.parts))), default=1)

    def most_noise(self) -> int:
        """A bound on what noise adds to an answer, which a draw exceeds with a probability below 2**-180."""
        parameter = ceil(self.noise.parameter)
        if self.noise.distribution == GAUSSIAN:
            return 24 * (isqrt(parameter) + 1)
        return 128 * (parameter + 1) if parameter else 0

    def deviation(self, part: int) -> float | Floats:
        """Standard deviation of one value of a part in the units users see, or of each value where they differ."""
        return float(self.factor(part)) * float(np.sqrt(self.noise.variance))

    def within_95(self, part: int) -> float | Floats:
        """What 95 % of the noise of a value of a part stays within, in the units users see, or that of each value."""
        return float(self.noise.within_95 * self.factor(part))

    @property
    def total_error(self) -> float:
        """Expected sum of squared errors over all answers, in the units users see: what a choice among mechanisms compares."""
        return sum(
            float(np.sum(np.broadcast_to(np.square(self.deviation(at)), (part.height,))))
            for at, part in enumerate(self.query.parts)
        )

    def _by_part(self, errors: Errors) -> list[Errors]:
        """Errors of all answers, in their integers, part by part in the units users see."""
        both = [np.asarray(e, dtype=np.float64) for e in (errors.deviation, errors.within_95)]
        return [
            Errors(self._of_part(both[0], at), self._of_part(both[1], at), errors.basis)
            for at in range(len(self.query.parts))
        ]

    def _of_part(self, errors: Floats, part: int) -> float | Floats:
        """Errors of the values of a part, of those of all answers in their integers; one number where they are equal."""
        start = sum(p.height for p in self.query.parts[:part])
        mine = errors[start : start + self.query.parts[part].height] * float(self.factor(part))
        return float(mine[0]) if np.all(mine == mine[0]) else mine

    def factor(self, part: int) -> Fraction:
        """What an integer of a part is multiplied by in the end."""
        return self.query.unit / self.query.parts[part].weight

    def run(self, data: Any, rng: Runs) -> Release:
        """Draw the noise and make the release.

        Parameters
        ----------
        data
            Counts of the cells, or a :class:`~policygraph.curator.histogram.Histogram`. They are handed on to the gate unseen.
        rng
            Where the randomness comes from.
        """
        return rng.run(self, data)

    @property
    def rests_on(self) -> Basis:
        """What :meth:`deviation` and :meth:`within_95` rest on; ``"exact"`` by default."""
        return "exact"

    def errors_of(self, points: Any) -> Sequence[Errors]:
        """What is stated of the errors of the values of each part that are published for an output of the gate.

        Notes
        -----
        By default :meth:`deviation` and :meth:`within_95`, which know no noisy number. A mechanism whose values are biased states the errors of what
        it publishes instead (``policygraph.estimation.errors`` simulates them from the noisy numbers). Post-processing: it must never fail.
        """
        return [
            Errors(self.deviation(at), self.within_95(at), self.rests_on)
            for at in range(len(self.query.parts))
        ]

    def joint_bound(self, delta: Any) -> list[float | Floats]:
        """What all published values will be within of the truth at once, with probability at least 1 - delta; known before anything is spent.

        Parameters
        ----------
        delta
            A probability between 0 and 1.

        Returns
        -------
        list
            For each part one number, or an array with one for each value.

        Raises
        ------
        RefusedError
            For mechanisms of which no joint bound is proved.
        """
        share_of(delta)
        raise RefusedError(
            f"no joint bound is proved for {self.mechanism} before it is run: expected noise on the answers or on edges, or a cube that is linear in its noise. "
            "A released cube has one, whatever it was made of: release.joint_bound(delta).",
            code="release.joint",
            value=self.mechanism,
        )

    def publish(self, points: Any, randomness: Randomness) -> Release:
        """Make a release of one output of the gate (post-processing)."""
        return self.released(points, randomness, self.errors_of(points))

    def released(
        self, answers: Any, randomness: Randomness, errors: Sequence[Errors], unbiased: Any = None
    ) -> Release:
        """Make a release of answers, in units of their integers, with their errors; and with unbiased answers where these are biased."""
        tables, parts, start = [], [], 0
        for at, (part, stated) in enumerate(zip(self.query.parts, errors, strict=True)):
            factor, piece = self.factor(at), slice(start, start + part.height)
            values = scaled(answers[piece], factor)
            beside = None if unbiased is None else scaled(unbiased[piece], factor)
            start += part.height
            labels = tuple(self.query.part_labels(at))
            tables.append(
                Table(
                    part.name,
                    part.columns,
                    labels,
                    values,
                    stated.deviation,
                    stated.within_95,
                    beside,
                    stated.basis,
                )
            )
            parts.append(
                {
                    "name": part.name,
                    "columns": list(part.columns),
                    "height": part.height,
                    "integer": factor.denominator == 1 and np.asarray(answers).dtype.kind in "iu",
                    **stated.to_json(),
                    **({} if beside is None else {"unbiased": True}),
                }
            )
        return Release(tuple(tables), self.record(randomness, parts))

    def most_bytes(self, rows: int, randomness: Randomness) -> int:
        """The most bytes that a release of so many rows takes in the ledger, so that there is room before it is charged.

        Notes
        -----
        All that a record says beside the numbers is made here once, before the charge: what can fail in it fails now. A value takes eight bytes, and so do an
        unbiased one beside it and each of its two errors where they differ from cell to cell;
        labels and errors repeat, and are stored once and by number, but in small tables they are counted in full. Should a release be larger all the same,
        and the disk be full just then, its charge waits with its key.
        """
        record = len(json.dumps(self.record(randomness, []), ensure_ascii=False).encode())
        columns = max((len(part.columns) for part in self.query.parts), default=0)
        each = 120 + 48 * columns if rows <= MOST_LISTED else 44 + 6 * columns
        return 4 * record + (1 << 12) * (16 + len(self.query.parts)) + each * rows

    @cached_property
    def recorded_certificate(self) -> Sensitivity | None:
        """The certificate that a record holds: of the noise or, where that rests on a theorem, of the query alone."""
        if self.sensitivity is not None:
            return self.sensitivity
        return _of_query(self.query, self.policy, self.loss)

    def record(self, randomness: Randomness, parts: list[dict[str, Any]]) -> dict[str, Any]:
        """Provenance of a release: nothing in it depends on the data but through the published numbers."""
        warning = [] if randomness.private else [randomness.description]
        certificate = self.recorded_certificate
        cut = self.cut_short or current().cut_short
        return {
            "format": 1,
            "library": f"policygraph {__version__}",
            "private": randomness.private,
            "warning": "; ".join(warning) or None,
            "stages": [
                *([CUT_SHORT] if cut else []),
                *warning,
                *([certificate.warning] if certificate is not None and certificate.warning else []),
                *self.sentences(),
                *_dropping(self.policy),
                *_larger(self.policy),
                *_members(self),
            ],
            "loss": self.loss.to_json(),
            "mechanism": self.mechanism,
            "noise": {
                "distribution": self.noise.distribution,
                "parameter": str(self.noise.parameter),
                "lattice_unit": str(self.query.unit),
                "variance": self.noise.variance,
                "source": randomness.description,
            },
            "policy_fingerprint": self.policy.fingerprint,
            "query_fingerprint": self.query.fingerprint,
            "policy": self.policy.to_spec(),
            "query": self.query.to_spec(),
            "certificate": None if certificate is None else certificate.to_dict(),
            "certificate_of": "the noise"
            if self.sensitivity is not None
            else "the query alone; the stages say what the noise rests on",
            "parts": parts,
            **({"unit": self.policy.priced(self.loss)} if isinstance(self.policy, Unit) else {}),
            **({"unit": _priced(self, self.policy)} if isinstance(self.policy, LinkedUnit) else {}),
            # Named only where it is so, so that records that were stored before read as they did.
            **({"cut_short": True} if cut else {}),
        }


def marked(ready: Made, proofs: Proofs) -> Made:
    """Say of a calibrated mechanism whether the clock of the request that it was made for cut a search short."""
    if proofs.cut_short:
        object.__setattr__(ready, "_cut_short", True)
    return ready


def chosen(ready: Made, why: str) -> Made:
    """The same calibrated mechanism, with a sentence on why it was chosen among others."""
    made = copy(ready)
    object.__setattr__(made, "why", why)
    return made


class Mechanism(ABC):
    """Configuration of a mechanism; no data, no budget."""

    name: str

    @abstractmethod
    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> Calibrated:
        """Fix the noise for a query under a policy at a loss, without data.

        Parameters
        ----------
        sensitivity
            A certificate made for this query and policy; computed when absent.

        Raises
        ------
        InputError
            When the certificate is of another norm, query or policy.
        """


def noise_for(loss: Loss, parameter: Fraction) -> Noise:
    """Discrete Laplace noise of a scale for epsilon, discrete Gaussian noise of a variance parameter for rho; none for 0.

    Examples
    --------
    >>> noise_for(Rho(1), Fraction(1, 2)).distribution, noise_for(Epsilon(1), Fraction(0)).distribution
    ('discrete Gaussian', 'none')
    """
    return laplace_noise(parameter) if isinstance(loss, Epsilon) else gaussian_noise(parameter)


def check_loss(loss: Any) -> None:
    """Refuse what is not a privacy loss that noise can be scaled to.

    Raises
    ------
    InputError
        For an (epsilon, delta) target, which ``to_rho()`` turns into a loss, and for anything else.
    """
    if not isinstance(loss, (Epsilon, Rho)):
        raise InputError(
            f"loss={loss!r}: expected Epsilon or Rho. An (epsilon, delta) target becomes a Rho by to_rho().",
            code="mechanism.loss",
            value=loss,
        )


def check_drawable(ready: Calibrated) -> None:
    """Refuse noise that has too large a scale for 64-bit integers, before anything is read or charged."""
    limits = {LAPLACE: ("scale", MAX_SCALE), GAUSSIAN: ("variance", MAX_SIGMA_SQUARED)}
    word, most = limits.get(ready.noise.distribution, ("scale", None))
    if most is not None and ready.noise.parameter > most:
        raise RefusedError(
            f"the noise would have the {word} {float(ready.noise.parameter):.3g}: expected at most 2**{most.bit_length() - 1}, so that no "
            "draw can leave 64-bit integers. Nothing was read or charged. Allow a larger loss, or ask for something that changes less.",
            code="mechanism.scale",
            value=ready.noise.parameter,
        )


def _of_query(query: Query, policy: Policy, loss: Loss) -> Sensitivity | None:
    """The certificate of the query itself, for readers of a release whose noise rests on a theorem instead."""
    if not isinstance(policy, (Policy, Grouped)):
        return None
    try:
        return proved(query, policy, loss.norm, RECORD_WORK)
    except RefusedError:
        return None


def _dropping(policy: Policy) -> list[str]:
    """Say what the rule for labels outside the domain leaves unprotected."""
    if policy.unknown != "drop":
        return []
    graph = records_of(policy).graph
    hidden = graph is None or graph.bottom == "all"
    said = "hidden, since records may appear and vanish" if hidden else "NOT hidden by this policy"
    return [f"Records with labels outside the domain were left out; whether a record was left out is {said}."]


def _larger(policy: Any) -> list[str]:
    """Say what a larger unit loses, where one is named."""
    words = policy.larger_words if isinstance(policy, Unit) else None
    return [words[0].upper() + words[1:]] if words else []


def _members(ready: Calibrated) -> list[str]:
    """Say what a single row loses that belongs to one of another table."""
    proof = ready.sensitivity
    words = None if proof is None else member_words(proof, ready.loss)
    return [] if words is None else [words]


def _priced(ready: Calibrated, policy: LinkedUnit) -> dict[str, Any]:
    """What a release says of a unit of linked tables: its loss, and that of a single row that belongs to it."""
    spec = {
        **policy.unit_spec(),
        "loss": ready.loss.to_json(),
        "loss_in_other_terms": other_terms(ready.loss),
    }
    single = None if ready.sensitivity is None else member_loss(ready.sensitivity, ready.loss)
    if single is None:
        return spec
    return {
        **spec,
        "loss_of_one_member": single.to_json(),
        "loss_of_one_member_in_other_terms": other_terms(single),
    }


def answers_of(ready: Calibrated, outputs: Any) -> npt.NDArray[Any]:
    """Answers from several outputs, one in each row."""
    if type(ready).to_answers is Calibrated.to_answers:
        return np.asarray(outputs)
    return np.stack([ready.to_answers(row) for row in outputs])


def check_answers(ready: Calibrated, query: Query, policy: Policy, loss: Loss) -> Calibrated:
    """Refuse a mechanism that no other can build on: one for another request, and one from whose output no answers can be had."""
    if (ready.query, ready.policy, ready.loss) != (query, policy, loss):
        raise InputError(
            f"{ready.mechanism} was calibrated for another query, policy or loss than asked.",
            code="mechanism.inner",
            value=ready.mechanism,
        )
    if type(ready).to_answers is Calibrated.to_answers and type(ready).publish is not Calibrated.publish:
        raise InputError(
            f"{ready.mechanism} publishes more than the counts it is asked for: expected a mechanism for counts, such as "
            "Laplace, TransformedConsistent or MatrixMechanism.",
            code="mechanism.inner",
            value=ready.mechanism,
        )
    return ready


def counts_only(query: Query) -> bool:
    """Whether no answer can be negative, as far as that is seen at once: cells, tables and other sums of counts."""
    if query.is_identity or isinstance(query, CuboidQuery):
        return True
    if query.height * query.domain.size > MOST_LOOKED_AT:
        return False
    entries = query.columns(np.arange(query.domain.size))
    return not entries.nnz or bool(entries.min() >= 0)


def answer_parts(query: Query, cells: Floats) -> Floats:
    """Answer a query from cells that need not be whole, in units of the query.

    Notes
    -----
    A query answers whole numbers only, so the cells are multiplied by a power of two and rounded: post-processing, and
    finer than what a float can tell.
    """
    if query.is_identity:
        return cells
    reach = float(np.abs(cells).sum()) + 1.0
    room = 61 - int(np.ceil(np.log2(reach))) - query.largest_entry.bit_length()
    if room < 0:
        # Entries so large that whole numbers would wrap: a float holds the answers as well as it holds the cells.
        return np.asarray(query.columns(np.arange(query.domain.size)).astype(np.float64) @ cells).ravel()
    fine = 2.0 ** min(40, room, max(0, 52 - int(np.ceil(np.log2(reach)))))
    return np.asarray(query.answer(np.rint(cells * fine).astype(np.int64)) / fine)


def certified(
    query: Query,
    policy: Policy | Grouped,
    loss: Loss,
    sensitivity: Sensitivity | None,
    *,
    values: bool = False,
    listed: bool = True,
) -> Sensitivity:
    """The certificate to scale noise to: the given one if it fits, or a new one.

    ``values`` for a mechanism that knows values, ``listed=False`` for one that never lists all answers.
    """
    query.check_domain(policy.domain)
    check_loss(loss)
    if query.needs_values and not values:
        query.answer(())
    # Cuboids are held table by table and have sensitivities in closed form, so that only memory limits their number.
    most = MOST_CUBE_CELLS if isinstance(query, SetQuery) else MOST_ANSWERS
    if listed and query.height > most:
        raise RefusedError(
            f"{query!r} has {query.height:,} answers: expected at most {most:,}. Ask for sums of cells, such as "
            "mixing counts of groups of nodes, or cuboids of fewer attributes.",
            code="mechanism.answers",
            value=query.height,
        )
    if sensitivity is None:
        return proved(query, policy, loss.norm)
    if not isinstance(sensitivity, Sensitivity):
        raise InputError(
            f"sensitivity={sensitivity!r}: expected a certificate from pg.sensitivity, never a bare number.",
            code="mechanism.sensitivity",
        )
    if not sensitivity.computed:
        raise InputError(
            "this certificate was read from a file, not computed here: compute it again with pg.sensitivity before noise is "
            "scaled to it.",
            code="mechanism.certificate",
        )
    sensitivity.check_made_for(query, policy)
    if sensitivity.norm != loss.norm:
        raise InputError(
            f"a sensitivity in {sensitivity.norm} does not fit a loss in {loss}: expected {loss.norm}.",
            code="mechanism.norm",
        )
    return sensitivity
