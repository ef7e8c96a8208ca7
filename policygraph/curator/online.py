"""Cuboids asked for one by one. Owns :class:`OnlineCube`, :class:`OnlineAnswer` and :class:`OnlineRule`.

Each question is answered from what was released already, when that is accurate enough, or from the data at a price that
the ledger charges, by a rule that never looks at the data (``docs/how-to/online.md``). All that a session knows is in the
ledger, so that another process goes on where one stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from policygraph.curator.histogram import Data
from policygraph.curator.ledger import Ledger
from policygraph.curator.noise import Rng
from policygraph.curator.releasing import find_account, perform, rng_of
from policygraph.curator.requests import Identity, Request, identify, read, request_of
from policygraph.distributions import gaussian_variance, laplace_variance
from policygraph.errors import InputError, LedgerError, RefusedError, shown
from policygraph.estimation.cubes.release import cube_table
from policygraph.estimation.online import Measurement, combine, reach_95, variance_of
from policygraph.exact import Exact, as_fraction
from policygraph.mechanisms.additive import Additive, Gaussian, Laplace
from policygraph.mechanisms.base import Mechanism
from policygraph.model.domain import Domain
from policygraph.model.grouped import records_of
from policygraph.model.loss import Epsilon, Loss, Rho
from policygraph.model.policy import Policy
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.units import Unit
from policygraph.release.release import NOT_PRIVATE, Errors, Release, Table
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.proofs import proved
from policygraph.transforms.cuboids.blocks import Tables
from policygraph.transforms.cuboids.costs import known_cuboids
from policygraph.transforms.cuboids.lattice import Lattice

ENTRY = Fraction(1, 10**9)
"""What the first table of a policy costs in an account when it is exact: the ledger must know under which policies data were told."""

LARGEST_DEVIATION = 10**18
"""More noise than this on a count is no question, and its square would have to fit into a floating-point number."""


@dataclass(frozen=True)
class _Named:
    """A query of which only the fingerprint is needed."""

    fingerprint: str


def _noises(measured: list[Measurement]) -> list[tuple[int, float]]:
    return [(each.mask, each.variance) for each in measured]


@dataclass(frozen=True)
class OnlineAnswer:
    """The answer to one question.

    Attributes
    ----------
    table
        The cuboid: labels, noisy counts, standard deviation of each, and what 95 % of the noise stays within.
    spent
        What the ledger was charged for this answer; None when it came from what was released already.
    sentences
        How it was made, one sentence for each step.
    private
        False when noise came from a seeded rng.
    """

    table: Table
    spent: Loss | None
    sentences: tuple[str, ...]
    private: bool = True

    @property
    def values(self) -> Any:
        """The noisy counts."""
        return self.table.values

    @property
    def deviation(self) -> float:
        """Standard deviation of each."""
        return float(np.asarray(self.table.deviation))

    def arrow(self) -> Any:
        """The answer as an Arrow table (``.to_pandas()`` makes a data frame)."""
        return Release((self.table,), {"private": self.private})._arrow([self.table], named=False)

    def __str__(self) -> str:
        head = [] if self.private else [NOT_PRIVATE]
        end = f"{self.table.name}: {len(self.table.values):,} values, standard deviation {self.deviation:.4g}"
        return "\n".join([*head, *self.sentences, end])


@dataclass(frozen=True)
class OnlineCube:
    """Questions about cuboids, one by one, on one data set under one policy.

    Parameters
    ----------
    policy
        What must be hidden; the same for all questions.
    data
        As in :func:`policygraph.release`; counted once, when it is first needed.
    ledger
        A ledger or its path. Every noisy table is on record there before it is used.
    dataset
        The name of the account in the ledger.
    kind
        ``"epsilon"`` (Laplace noise) or ``"rho"`` (Gaussian noise).
    most
        The most that one question may cost, in that kind.
    columns
        Column of each attribute, where they have other names.
    rng
        Where the randomness comes from; secure by default.
    compose_policies
        Allow data that was released under another policy before.
    engine
        What counts the records: ``"duckdb"``, ``"spark"`` or a session of Spark, ``"postgres"``; by default what the data are in.

    Examples
    --------
    >>> import tempfile
    >>> import policygraph as pg
    >>> domain = pg.Domain({"sex": ["F", "M"], "age": 3})
    >>> folder = tempfile.TemporaryDirectory()
    >>> cube = pg.OnlineCube(pg.Policy(domain), [5, 0, 2, 4, 1, 9], f"{folder.name}/budget.db")
    >>> print(cube.ask("sex", "age", deviation=4).spent)
    epsilon = 0.352
    >>> print(cube.ask("age", deviation=6).spent, cube.cost("sex", deviation=4))
    None epsilon = 0.288
    >>> folder.cleanup()

    Notes
    -----
    The rule: (1) A cuboid that no neighbour step changes is given exactly; it costs nothing, but for an entry of 10^-9 if it is the first
    table under this policy, since a table that is exact under one policy may be secret under another one of the same account. (2) All tables on record that were made from this very
    data, under this policy, with noise of this kind, are combined by least squares. If the deviation that results (known without
    data) is no larger than the one asked for, or than that of a fresh table at the loss asked for, this is the answer and costs
    nothing. (3) Otherwise the cuboid itself is measured, at the least loss (rounded up to three digits) with which the combination
    has the deviation asked for, or at the loss asked for; the answer is the combination. Nothing in the rule depends on
    true values, and the losses add up (``docs/explanation/proofs/online.md``).
    """

    policy: Policy
    data: Any = field(repr=False)
    ledger: Ledger | str | Path
    dataset: str | None = None
    kind: Literal["epsilon", "rho"] = "epsilon"
    most: Exact = 1
    columns: Mapping[str, str] | None = None
    rng: Rng | None = None
    compose_policies: bool = False
    source: Rng | None = None
    """The former name of ``rng``."""
    engine: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # Its arguments are checked when it is made, and not when a first question is asked.
        _ = self.rule

    @cached_property
    def book(self) -> Ledger:
        """The ledger."""
        return self.ledger if isinstance(self.ledger, Ledger) else Ledger(self.ledger)

    @cached_property
    def rule(self) -> OnlineRule:
        """What decides between released tables and the data; it is given neither data nor noisy values."""
        return OnlineRule(self.policy, self.kind, self.most)

    @property
    def lattice(self) -> Lattice:
        """The cuboids of the domain."""
        return self.rule.lattice

    @cached_property
    def _identity(self) -> Identity:
        return identify(self.data, None, self.policy, self.columns, engine=self.engine)

    @cached_property
    def _counts(self) -> Data:
        known = self._identity
        counts = (
            known.counts
            if known.counts is not None
            else read(known.records or self.data, None, self.policy, self.columns, engine=self.engine)
        )
        known.check(counts)
        return counts

    @cached_property
    def _plain(self) -> Mechanism:
        return Laplace() if self.kind == "epsilon" else Gaussian()

    @cached_property
    def _random(self) -> Rng:
        return rng_of(self.rng, self.source)

    @cached_property
    def _read(self) -> dict[int, list[Measurement]]:
        """Releases of the ledger that were looked at, by the number of their charge."""
        return {}

    @cached_property
    def _made(self) -> dict[tuple[int, ...], Tables]:
        return {}

    @property
    def _distribution(self) -> str:
        return "discrete Laplace" if self.kind == "epsilon" else "discrete Gaussian"

    def released(self) -> list[Measurement]:
        """All tables on record that answers are combined from, in the order of their charges."""
        account = find_account(self.book, self._identity.account, self.dataset)
        for number, request, body in self.book.releases(account, self.policy.fingerprint, self._read):
            self._read[number] = self._measurements(request, body)
        return [each for number in sorted(self._read) for each in self._read[number]]

    def _measurements(self, request: str, body: bytes) -> list[Measurement]:
        """The tables of a release, if it is plain noise of this kind on cuboids of this very data; otherwise none."""
        made = Release.from_parquet(body)
        record = made.record
        sets = record["query"].get("cuboids")
        plain = record["mechanism"] in ("Laplace", "Gaussian") and "cube" not in record
        if sets is None or not plain or record["noise"]["distribution"] != self._distribution:
            return []
        # Fingerprints are the same for every order of the attributes, and the axes of the tables follow it.
        if list(record["policy"]["domain"]) != list(self.policy.domain.to_spec()):
            return []
        query = _Named(record["query_fingerprint"])
        # A table may have been asked for by this name, or have been what was best.
        expected = [
            request_of(query, self.policy, made.loss, asked, self._random, self._identity)
            for asked in (self._plain, None)
        ]
        if request not in [self.book.keyed(each) for each in expected if each is not None]:
            return []
        weights = record["query"].get("weights") or [1] * len(sets)
        parameter = Fraction(record["noise"]["parameter"])
        scale = float(parameter) if self.kind == "epsilon" else float(parameter) ** 0.5
        # A large loss leaves noise of variance 0 to a float, and least squares divide by variances.
        variance = max(float(record["noise"]["variance"]), LEAST)
        return [
            Measurement(
                self.lattice.mask(names), np.asarray(table.values), variance / w**2, 1.0 / w, scale / w
            )
            for names, table, w in zip(sets, made.tables, weights, strict=True)
        ]

    def cost(
        self,
        *names: str,
        deviation: Exact | None = None,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
    ) -> Loss | None:
        """What a question would cost now; None for nothing. Nothing is charged or drawn.

        Raises
        ------
        RefusedError
            When it would cost more than ``most``.
        """
        mask = self.lattice.mask(names)
        now, loss = self.rule.decide(mask, _noises(self.released()), *self._target(deviation, epsilon, rho))
        return self._entry() if now == 0 else loss

    def _entry(self) -> Loss | None:
        """What an exact table costs: nothing once the account has an entry under this policy.

        Notes
        -----
        A table that no step of this policy changes can be secret under another policy: the total, for example. Given out without a line in the
        ledger, it would escape the refusal of a further policy, now and later.
        """
        account = find_account(self.book, self._identity.account, self.dataset)
        known = {entry.policy for entry in self.book.history(account)}
        return None if self.policy.fingerprint in known else self.rule.loss(ENTRY)

    def ask(
        self,
        *names: str,
        deviation: Exact | None = None,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
    ) -> OnlineAnswer:
        """Answer with the counts of one cuboid.

        Parameters
        ----------
        names
            Its attributes; none for the total.
        deviation
            The standard deviation that the counts may have.
        epsilon, rho
            In place of it, what a new measurement costs, if one is needed.

        Raises
        ------
        RefusedError
            When the question would cost more than ``most``.
        BudgetError
            When the ledger does not allow it, or the data were released under another policy. Nothing is charged.
        """
        mask = self.lattice.mask(names)
        target, fixed = self._target(deviation, epsilon, rho)
        with self.book.asking():
            measured = self.released()
            variance, loss = self.rule.decide(mask, _noises(measured), target, fixed)
            exact = variance == 0
            if exact:
                loss = self._entry()
            if loss is not None:
                query = CuboidQuery(self.lattice.domain, [self.lattice.names(mask)])
                perform(
                    Request(query, self.policy, loss, self._plain, self._counts, self.columns),
                    ledger=self.book,
                    dataset=self.dataset,
                    rng=self._random,
                    compose_policies=self.compose_policies,
                    reuse=False,
                    resume=True,
                    identity=replace(self._identity, counts=self._counts),
                )
                before, measured = len(measured), self.released()
                if len(measured) == before and not exact:
                    raise LedgerError(
                        "the table that was just measured is not on record: nothing was answered.",
                        code="online.record",
                    )
                variance = self.rule.variance(mask, _noises(measured))
        return self._answer(mask, measured, variance, loss)

    def _target(
        self, deviation: Exact | None, epsilon: Exact | None, rho: Exact | None
    ) -> tuple[float | None, Loss | None]:
        given = {"deviation": deviation, "epsilon": epsilon, "rho": rho}
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1 or named[0] not in ("deviation", self.kind):
            raise InputError(
                f"{' and '.join(named) or 'neither deviation nor loss'} {'were' if len(named) > 1 else 'was'} given: expected one of deviation "
                f"and {self.kind}, such as deviation 5 or {self.kind} 0.1.",
                code="online.asked",
                value=named,
            )
        if deviation is None:
            return None, self.rule.loss(given[self.kind])  # type: ignore[arg-type]
        exact = as_fraction(deviation, "deviation")
        if not 0 < exact <= LARGEST_DEVIATION:
            raise InputError(
                f"deviation={shown(deviation)}: expected a number > 0 and at most 10^18.",
                code="online.deviation",
                value=deviation,
            )
        return float(exact), None

    def _answer(
        self, mask: int, measured: list[Measurement], variance: float, loss: Loss | None
    ) -> OnlineAnswer:
        names = self.lattice.names(mask)
        values = np.array(self._estimates(measured)[mask]).reshape(-1)
        reach = reach_95(variance, measured, self._distribution) if measured else 0.0
        table = cube_table(self.lattice.domain, names, values, Errors(float(variance**0.5), reach))
        lines = []
        if variance == 0 and loss is None:
            lines.append("No neighbour step changes this table, so that it is exact and costs nothing.")
        elif variance == 0:
            lines.append(
                f"No neighbour step changes this table, so that it is exact; {loss} was charged, once, to enter the policy in the ledger."
            )
        elif loss is None:
            lines.append("What was released already is accurate enough, so that nothing was charged.")
        else:
            lines.append(f"The table was measured with {self._distribution} noise, for a loss of {loss}.")
        if variance:
            lines.append(
                f"The counts are the least-squares estimates from {len(measured)} released table{'s' if len(measured) > 1 else ''}; answers from the same releases agree "
                "with each other, and later ones may be closer to the truth."
            )
        return OnlineAnswer(table, loss, tuple(lines), self._random.private or variance == 0)

    def _estimates(self, measured: list[Measurement]) -> Tables:
        """All cuboids below what is on record, kept until something is added."""
        state = tuple(map(id, measured))
        if state not in self._made:
            exact = {m: np.asarray(self._counts.cuboid(self.lattice.names(m))) for m in self.rule.known}
            self._made.clear()
            self._made[state] = combine(self.lattice, measured, exact)
        return self._made[state]


Noises = Sequence[tuple[int, float]]

DIGITS = 3
"""A loss that is worked out from a deviation is rounded up to so many decimal digits."""
SAME = 1e-9
"""Variances that differ by less than this share count as equal."""
LEAST = 1e-200
"""Noise of a smaller variance than this is none for floats."""
RANGE = 2**40
"""Losses are looked for between the most that a question may cost, divided and multiplied by this."""


@dataclass(frozen=True)
class OnlineRule:
    """When to measure, and at which loss.

    Parameters
    ----------
    policy
        What must be hidden.
    kind
        ``"epsilon"`` or ``"rho"``.
    most
        The most that one question may cost.

    Examples
    --------
    >>> domain = Domain({"sex": 2, "age": 3})
    >>> rule = OnlineRule(Policy(domain), "epsilon", 1)
    >>> rule.decide(0b01, [(0b11, 8.0)], 5.0, None), str(rule.decide(0b01, [(0b11, 8.0)], 4.0, None)[1])
    ((24.0, None), 'epsilon = 0.204')
    """

    policy: Policy
    kind: Literal["epsilon", "rho"]
    most: Exact

    def __post_init__(self) -> None:
        if self.kind not in ("epsilon", "rho"):
            raise InputError(
                f"kind={self.kind!r}: expected 'epsilon' or 'rho'.", code="online.kind", value=self.kind
            )
        if not isinstance(self.policy, (Policy, Unit)) or not isinstance(self.policy.domain, Domain):
            raise InputError(
                f"policy={self.policy!r}: expected a policy over a table.",
                code="online.policy",
                value=self.policy,
            )
        self.loss(self.most)

    def loss(self, value: Exact) -> Loss:
        """A loss of this kind."""
        return Epsilon(value) if self.kind == "epsilon" else Rho(value)

    @cached_property
    def lattice(self) -> Lattice:
        """The cuboids of the domain."""
        return Lattice(self.policy.domain)  # type: ignore[arg-type]

    @cached_property
    def known(self) -> list[int]:
        """Cuboids that no neighbour step changes."""
        return known_cuboids(self.lattice, records_of(self.policy))

    @cached_property
    def _proofs(self) -> dict[int, Sensitivity]:
        return {}

    def variance(self, mask: int, released: Noises) -> float:
        """Variance of a cell of a cuboid after least squares over what was released; infinite where that does not tell it."""
        return variance_of(self.lattice, mask, released, self.known)

    def fresh(self, mask: int, loss: Loss) -> float:
        """Variance of the noise of a cuboid that is measured at a loss."""
        if mask not in self._proofs:
            query = CuboidQuery(self.lattice.domain, [self.lattice.names(mask)])
            self._proofs[mask] = proved(query, self.policy, loss.norm)
        proof = self._proofs[mask]
        parameter = Additive("", proof.query, self.policy, loss, proof).parameter
        made = laplace_variance(parameter) if self.kind == "epsilon" else gaussian_variance(parameter)
        return max(made, LEAST)

    def decide(
        self, mask: int, released: Noises, deviation: float | None, fixed: Loss | None
    ) -> tuple[float, Loss | None]:
        """The variance there is now, and the loss to measure the cuboid with, or None when what was released is enough.

        Parameters
        ----------
        mask
            The cuboid asked for.
        released
            Cuboids on record with the variance of their noise.
        deviation
            The standard deviation asked for.
        fixed
            In place of it, the loss of a new measurement.

        Raises
        ------
        RefusedError
            When it would cost more than ``most``.
        """
        now = self.variance(mask, released)
        if now == 0:
            return now, None
        if fixed is not None:
            loss = None if now <= self.fresh(mask, fixed) * (1 + SAME) else fixed
        else:
            variance_allowed = (deviation or 0.0) ** 2 * (1 + SAME)
            loss = None if now <= variance_allowed else self._least(mask, released, variance_allowed)
        limit = self.loss(self.most)
        if loss is not None and loss.value > limit.value:
            raise RefusedError(
                f"cuboid {list(self.lattice.names(mask))} would cost {loss}, and one question may cost at most {limit}. Ask for a "
                "larger deviation, or raise most.",
                code="online.most",
                cost=loss,
            )
        return now, loss

    def _least(self, mask: int, released: Noises, variance_allowed: float) -> Loss:
        """The least loss of three digits with which one more table of the cuboid brings its variance down to a bound."""
        top = self.loss(self.most).value

        def enough(value: Fraction) -> bool:
            more = (mask, self.fresh(mask, self.loss(value)))
            return self.variance(mask, [*released, more]) <= variance_allowed

        low, high = top / RANGE, top
        while not enough(high) and high < top * RANGE:
            low, high = high, high * 2
        # First to a factor of two, then among the numbers of three digits in between.
        while high > 2 * low:
            middle = low * 2 if high < 16 * low else low * 4
            low, high = (low, middle) if enough(middle) else (middle, high)
        found, end = _rounded(low), _rounded(high)
        while found < end:
            middle = _rounded((found + end) / 2)
            middle = middle if middle < end else found
            if enough(middle):
                end = middle
            else:
                found = _rounded(middle + middle / 1000)
        # The most that is allowed need not be a number of three digits.
        return self.loss(top if end > top and enough(top) else end)


def _rounded(value: Fraction) -> Fraction:
    """The number rounded up to a few decimal digits."""
    power = Fraction(1)
    while value * power < 10 ** (DIGITS - 1):
        power *= 10
    while value * power >= 10**DIGITS:
        power /= 10
    scaled = value * power
    return Fraction(-(-scaled.numerator // scaled.denominator)) / power
