"""What a release does to the odds of two data sets. Owns :func:`log_odds`, :func:`posterior` and :func:`effective_epsilon`.

None of it sees data: the data sets are chosen by whoever asks. Probabilities are enclosed by integers, so that a stated digit is right
(``docs/explanation/attacks.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.distributions.enclosure import exp_neg, gaussian_weights
from policygraph.distributions.integers import DiscreteGaussian
from policygraph.distributions.noise import GAUSSIAN, LAPLACE
from policygraph.errors import InputError, PolicyGraphError, RefusedError
from policygraph.exact import Exact, as_fraction, show
from policygraph.mechanisms.base import Calibrated
from policygraph.mechanisms.exponential.mechanism import list_tables
from policygraph.model.families import Families
from policygraph.model.grouped import Grouped, records_of
from policygraph.model.loss import Epsilon
from policygraph.model.policy import Policy
from policygraph.model.queries import identity
from policygraph.model.queries.base import Query
from policygraph.moves.values.presolve import presolve_values
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.proofs import proved, shared_proofs

__all__ = [
    "EffectiveEpsilon",
    "LogOdds",
    "LossBound",
    "Posterior",
    "effective_epsilon",
    "fibre",
    "log_odds",
    "loss_bound",
    "posterior",
]

Ints = npt.NDArray[np.int64]
BITS = 128
"""Scale of the enclosures of probabilities."""
LONGEST = 20_000
"""Most values that the log-odds may take."""
TABLES = 10_000
"""Most tables that a posterior is computed over."""


@dataclass(frozen=True)
class EffectiveEpsilon:
    """What Laplace noise loses against somebody who knows the public facts, when it was scaled without them and when with them.

    Attributes
    ----------
    epsilon
        The loss that the noise was scaled for.
    plain
        Sensitivity without the facts: what the noise of the plain release is scaled to.
    known
        Sensitivity under the facts: what one neighbour step of the policy can change.
    every
        For a policy that hides fewer changes than the facts leave (a cap, Markov or positive neighbours): the sensitivity of all of them. None where
        no bound is known, and for other policies, whose own sensitivity it is.
    """

    epsilon: Fraction
    plain: Sensitivity
    known: Sensitivity
    every: Sensitivity | None = None

    @property
    def weaker(self) -> bool:
        """Whether the policy hides fewer changes than the facts leave. A plain release knows of no such promise, nor do those who know the facts."""
        return hides_less(self.known.policy)

    @property
    def changes(self) -> Sensitivity | None:
        """The sensitivity over all minimal changes that keep the facts; None where no bound is known."""
        return self.every if self.weaker else self.known

    @property
    def without_facts(self) -> Fraction | None:
        """The loss of the plain release; exact if the sensitivities are, otherwise at most this; None where no bound is known."""
        return None if self.changes is None else self._ratio(self.changes.power, self.plain.lower_power)

    @property
    def without_facts_lower(self) -> Fraction:
        """What the pair of the certificate shows at least."""
        return self._ratio(self._least, self.plain.power)

    @property
    def with_facts(self) -> Fraction:
        """The loss of the release under the policy: what it was scaled for, or 0 where nothing that the policy hides changes an answer."""
        return self.epsilon if self.known.power else Fraction(0)

    @property
    def with_facts_lower(self) -> Fraction:
        """What the pair of the certificate shows at least: less than the loss where the sensitivity is only bounded."""
        return self.epsilon * self.known.lower_power / self.known.power if self.known.power else Fraction(0)

    @property
    def beyond_policy(self) -> Fraction | None:
        """The loss of the release under a weaker policy between data sets that it does not hide, at most; None where there is no bound: they may be told apart with certainty."""
        if self.changes is None:
            return None
        if not self.changes.power:
            return Fraction(0)
        return self.epsilon * self.changes.power / self.known.power if self.known.power else None

    @property
    def exact(self) -> bool:
        """Whether bounds and shown values are the same."""
        return self.plain.exact and self.known.exact and self.changes is not None and self.changes.exact

    @property
    def _least(self) -> Fraction:
        """What a pair of data sets with the same facts is known to change."""
        return max(self.known.lower_power, self.every.lower_power if self.every else Fraction(0))

    def _ratio(self, top: Fraction, bottom: Fraction) -> Fraction:
        if not top:
            return Fraction(0)
        if not bottom:
            raise RefusedError(
                "no pair of neighbours is known for the release without the facts, so that its noise cannot be told.",
                code="attacks.plain",
            )
        return self.epsilon * top / bottom

    def __str__(self) -> str:
        most = self.without_facts
        told = (
            f">= {show(self.without_facts_lower)}"
            if most is None
            else f"{'=' if self.exact else '<='} {show(most)}"
        )
        return (
            f"noise for epsilon = {show(self.epsilon)} without the facts: epsilon {told} against somebody who knows them; "
            f"under the policy: epsilon = {show(self.with_facts)}"
        )


def effective_epsilon(
    query: Query, policy: Policy | Grouped, epsilon: Exact, *, work: int | None = None
) -> EffectiveEpsilon:
    """The loss that a release calibrated without the public facts really has against somebody who knows them.

    Parameters
    ----------
    query
        What is released, every answer with Laplace noise.
    policy
        The public facts, and who must not be told apart.
    epsilon
        The loss that the noise is scaled for.
    work
        Units of work for each sensitivity; None for the usual number.

    Returns
    -------
    EffectiveEpsilon
        Exact fractions, with bounds where a sensitivity is only bounded.

    Raises
    ------
    InputError
        When the policy states no public fact.

    Examples
    --------
    The sums of consecutive values are public. All counts change together, and noise for one of them hides little:

    >>> import policygraph as pg
    >>> domain = pg.Domain({"r": 8})
    >>> policy = pg.Policy(domain, constraints=[pg.count({"r": [i, i + 1]}) for i in range(7)])
    >>> print(effective_epsilon(pg.queries.identity(domain), policy, "1/2"))
    noise for epsilon = 0.5 without the facts: epsilon = 4 against somebody who knows them; under the policy: epsilon = 0.5

    Notes
    -----
    Laplace noise of scale s shows a change m of the table with a log-ratio of up to ||W m||_1 / s, attained at once on all answers, so that the largest
    over the moves is Delta / s, where Delta is the sensitivity under the facts. Noise for the plain sensitivity Delta_0 has s = Delta_0 / epsilon. Without the facts
    means: the same policy graph, or one record more or less where there is none. A policy may hide fewer changes than the facts leave (at_most_records, a weaker strength); the
    loss of the plain release is over all of them.
    """
    level = Epsilon(epsilon).value
    check_facts(policy)
    with shared_proofs():
        plain = proved(query, without_facts(policy), work=work)
        known = proved(query, policy, work=work)
        return EffectiveEpsilon(level, plain, known, every_change(query, policy, work))


def hides_less(policy: Policy | Grouped) -> bool:
    """Whether a policy hides fewer changes than its facts leave: only small ones, or those of a weaker strength."""
    records = records_of(policy)
    return records.at_most_records is not None or records.strength != "worst-case"


def every_change(query: Query, policy: Policy | Grouped, work: int | None = None) -> Sensitivity | None:
    """The sensitivity over all minimal changes that keep the facts, for a policy that hides fewer; None for others, and where no bound is known."""
    if not hides_less(policy) or not isinstance(policy, Policy):
        return None
    try:
        whole = Policy(policy.domain, policy.graph, policy.constraints, unknown=policy.unknown)
        return proved(query, whole, work=work)
    except PolicyGraphError:
        return None


def check_facts(policy: Any) -> None:
    """Refuse a policy that states no public fact: then nobody knows more than the release assumes."""
    if isinstance(policy, Grouped):
        return  # that records change together is what the attacker knows
    if not isinstance(policy, Policy):
        raise InputError(
            f"{type(policy).__name__}: expected a Policy, whose public facts are what the attacker knows.",
            code="attacks.policy",
        )
    if not policy.constraints:
        raise InputError(
            "the policy states no public facts, so that an attacker who knows them knows nothing: a release without facts is the release under this policy. "
            "State what is public ([[public]] in a file, constraints=[...] in Python).",
            code="attacks.no-facts",
        )


def without_facts(policy: Policy | Grouped) -> Policy:
    """The policy of somebody who knows neither the facts nor families or units: the same policy graph, or one record more or less.

    Examples
    --------
    >>> import policygraph as pg
    >>> without_facts(pg.Policy(pg.Domain({"a": 2}), constraints=[pg.Total()])).constraints
    ()
    """
    return Policy(policy.domain, records_of(policy).graph, unknown=policy.unknown)


@dataclass(frozen=True)
class LossBound:
    """What a release loses at most against somebody who knows public facts that it was not made for.

    Attributes
    ----------
    value
        The loss.
    how
        Which argument bounds it, in words.
    sensitivity
        Of what is measured, or of all cells, under the facts: with the pair of data sets that changes most.
    """

    value: Fraction
    how: str
    sensitivity: Sensitivity

    def __str__(self) -> str:
        return f"epsilon <= {show(self.value)} against somebody who knows the facts: {self.how}"


def loss_bound(ready: Calibrated, policy: Policy | Grouped, *, work: int | None = None) -> LossBound:
    """Bound what a calibrated mechanism loses against somebody who knows the public facts of a policy, by the moves that the facts leave open.

    :func:`policygraph.audit` with the same two arguments gives a lower bound, with confidence.

    Parameters
    ----------
    ready
        A mechanism that was calibrated without these facts: for a policy without any, and a loss epsilon.
    policy
        The public facts, and which records belong together.
    work
        Units of work for the sensitivity; None for the usual number.

    Raises
    ------
    InputError
        When the mechanism has facts of its own, another loss, or another domain or policy graph, or the policy states no fact.
    RefusedError
        When no bound on the changes is known.

    Examples
    --------
    Counts up to each value, and all counts by a partition that is chosen privately, seen by somebody who knows the sums of neighbours:

    >>> import policygraph as pg
    >>> domain = pg.Domain({"r": 8})
    >>> facts = pg.Policy(domain, constraints=[pg.count({"r": [i, i + 1]}) for i in range(7)])
    >>> line = pg.queries.prefix(domain, "r")
    >>> print(loss_bound(pg.Laplace().calibrate(line, pg.Policy(domain), pg.Epsilon(1)), facts))
    epsilon <= 0.5 against somebody who knows the facts: the noise on what is measured
    >>> ready = pg.Partitioned().calibrate(pg.queries.identity(domain), pg.Policy(domain), pg.Epsilon(1))
    >>> print(loss_bound(ready, facts))
    epsilon <= 8 against somebody who knows the facts: 8 neighbour steps of the mechanism's own policy

    Notes
    -----
    Independent Laplace noise of scale s on measured numbers W x shows a change m with log-odds of up to ||W m||_1 / s, and what is made from the noisy numbers tells no more. Any other mechanism loses at most epsilon with
    each neighbour step of its own policy: ||m||_1 steps where one record more or less makes a step, half as many where a record takes any other value.
    """
    check_facts(policy)
    own = ready.policy
    if (
        not isinstance(own, Policy)
        or own.constraints
        or own.domain != policy.domain
        or own.graph != records_of(policy).graph
    ):
        raise InputError(
            "expected a mechanism that was calibrated without public facts, over the same domain and with the same policy graph.",
            code="attacks.mechanism",
        )
    if not isinstance(ready.loss, Epsilon):
        raise InputError(
            f"a loss of {ready.loss}: expected an epsilon, which adds up along neighbour steps.",
            code="attacks.mechanism",
        )
    try:
        measured: Query | None = noisy_numbers(ready) if not ready.exact else None
    except InputError:
        measured = None
    if measured is not None and ready.noise.distribution == LAPLACE:
        found = _of_all_changes(measured, policy, work)
        return LossBound(
            found.value / measured.unit / ready.noise.parameter, "the noise on what is measured", found
        )
    cells, graph = own.domain.size, own.graph
    whole = graph is not None and graph.bottom == "none" and graph.n_edges == cells * (cells - 1) // 2
    if graph is not None and not whole:
        raise RefusedError(
            "the policy graph hides some changes of a record only: how many of its steps a change by the facts takes is not known. pg.audit(ready, policy) measures it.",
            code="attacks.plain",
        )
    found = _of_all_changes(identity(own.domain), policy, work)
    steps = found.value / 2 if whole else found.value
    return LossBound(
        steps * ready.loss.value, f"{show(steps)} neighbour steps of the mechanism's own policy", found
    )


def _of_all_changes(query: Query, policy: Policy | Grouped, work: int | None) -> Sensitivity:
    """The sensitivity of all changes that the facts leave open, whether the policy hides them or not."""
    if not hides_less(policy):
        return proved(query, policy, work=work)
    every = every_change(query, policy, work)
    if every is None:
        raise RefusedError(
            "no bound is known for all changes that the facts leave open, of which the policy hides some only.",
            code="attacks.plain",
        )
    return every


@dataclass(frozen=True, eq=False)
class LogOdds:
    """The distribution of log(P(output | first) / P(output | second)), when the first data set is the true one.

    Attributes
    ----------
    step
        The log-odds are ``step`` times whole numbers from ``-reach`` to ``reach``.
    reach
        Largest of these numbers that is listed.
    lows, highs
        Integers that enclose the probability of each, times 2**128.
    missing
        Bound on the probability of larger ones, times 2**128; 0 for Laplace noise, whose log-odds are bounded.
    """

    step: Fraction
    reach: int
    lows: tuple[int, ...] = field(repr=False)
    highs: tuple[int, ...] = field(repr=False)
    missing: int

    @property
    def largest(self) -> Fraction | None:
        """The largest log-odds, which is the effective epsilon of the pair; None where they are not bounded (Gaussian noise)."""
        if self.missing:
            return None
        at = max(k for k in range(-self.reach, self.reach + 1) if self.highs[k + self.reach])
        return self.step * at

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The values that the log-odds take."""
        return np.asarray(float(self.step) * np.arange(-self.reach, self.reach + 1), dtype=np.float64)

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """Their probabilities, to the precision of a float."""
        return np.array(
            [(low + high) / 2 ** (BITS + 1) for low, high in zip(self.lows, self.highs, strict=True)]
        )

    def above(self, level: Exact) -> tuple[Fraction, Fraction]:
        """Enclose the probability that the log-odds are at least so large."""
        least = as_fraction(level, "level") / self.step
        kept = [k + self.reach for k in range(-self.reach, self.reach + 1) if k >= least]
        low, high = sum(self.lows[k] for k in kept), sum(self.highs[k] for k in kept) + self.missing
        return Fraction(low, 1 << BITS), min(Fraction(1), Fraction(high, 1 << BITS))

    @property
    def success(self) -> tuple[Fraction, Fraction]:
        """Enclose the probability that the likelier of the two data sets is the true one; for both the same, with a coin where they are equal.

        Notes
        -----
        It is the best that anybody can do who holds both for equally likely: (1 + total variation) / 2.
        """
        low, high = self.above(self.step)
        at = self.reach
        return low + Fraction(self.lows[at], 1 << (BITS + 1)), min(
            Fraction(1), high + Fraction(self.highs[at], 1 << (BITS + 1))
        )

    def __str__(self) -> str:
        top = "not bounded" if self.largest is None else f"at most {show(self.largest)}"
        return f"log-odds {top}; the true data set is the likelier one with probability {float(self.success[0]):.6g}"


def log_odds(ready: Calibrated, first: Any, second: Any) -> LogOdds:
    """The exact distribution of the log-odds of two data sets after a release of the first.

    Parameters
    ----------
    ready
        A mechanism with independent discrete Laplace or Gaussian noise on each measured number.
    first, second
        Two tables of counts.

    Raises
    ------
    InputError
        When the mechanism has other noise.
    RefusedError
        When the log-odds take too many values.

    Examples
    --------
    The family of Example 2.1 of *No Free Lunch in Data Privacy*: all ten are sick, or none. Noise for one of them leaves odds of up to exp(10 epsilon):

    >>> import policygraph as pg
    >>> domain = pg.Domain({"sick": ["no", "yes"]})
    >>> sick = pg.queries.matrix(domain, [[0, 1]])
    >>> ready = pg.Laplace().calibrate(sick, pg.Policy(domain), pg.Epsilon(1))
    >>> family = log_odds(ready, [0, 10], [10, 0])
    >>> family.largest, round(float(family.success[0]), 6)
    (Fraction(10, 1), 0.996631)

    Notes
    -----
    The answers differ by integers m_i. For Laplace noise of scale s the log-odds are the sum of ``(|z + m_i| - |z|) / s`` over independent z, which takes the values m, m - 2, ..., -m over s
    with probabilities 1 / (1 + q), q^j (1 - q) / (1 + q), q^m / (1 + q), where q = exp(-1/s) and ``m = |m_i|``. For Gaussian noise they are (2 m'z + m'm) / (2 sigma^2). Both distributions are convolved in integers that are rounded down, and up.
    What is published is made from the noisy numbers, so that it tells at most this much; and exactly this much where the noisy numbers themselves are published.
    """
    query, noise = noisy_numbers(ready), ready.noise
    one, two = listed_tables(ready, [first, second])
    moved = np.abs(
        np.asarray(query.answer(two), dtype=np.int64) - np.asarray(query.answer(one), dtype=np.int64)
    )
    sizes, counts = np.unique(moved[moved > 0], return_counts=True)
    pairs = list(zip(sizes.tolist(), counts.tolist(), strict=True))
    if noise.distribution == LAPLACE:
        reach = sum(size * count for size, count in pairs)
        _check_length(reach)
        made = _product([(_laplace_step(size, noise.parameter), count) for size, count in pairs])
        return LogOdds(1 / noise.parameter, reach, tuple(made[0]), tuple(made[1]), 0)
    return _gaussian_odds(pairs, noise.parameter)


def noisy_numbers(ready: Calibrated) -> Query:
    """What a mechanism measures with independent discrete Laplace or Gaussian noise on each number; others are refused."""
    query, noise = ready.measure, ready.noise
    plain = type(ready).spread is Calibrated.spread and not ready.runner
    if query is None or not plain or noise.distribution not in (LAPLACE, GAUSSIAN):
        raise InputError(
            f"{ready.mechanism} with noise {noise.distribution!r}: expected independent discrete Laplace or Gaussian noise on each measured number.",
            code="attacks.mechanism",
        )
    return query


def listed_tables(ready: Calibrated, tables: Any) -> Ints:
    """Tables as rows. Those that differ in what a mechanism publishes without noise are refused: the release tells them apart, whatever the noisy numbers say."""
    made = [ready.policy._table(table) for table in tables]
    if not made:
        raise InputError("no tables: expected at least one that was possible.", code="attacks.tables")
    for query in ready.exact:
        first, *others = (np.asarray(query.answer(table)) for table in made)
        if any(not np.array_equal(first, other) for other in others):
            raise InputError(
                f"the tables differ in {query!r}, which {ready.mechanism} publishes without noise because the public facts determine it: they are told apart with certainty. "
                "Expected tables with the same public facts.",
                code="attacks.tables",
            )
    return np.stack(made)


def _check_length(reach: int) -> None:
    if reach > LONGEST:
        raise RefusedError(
            f"the log-odds take {2 * reach + 1:,} values: expected at most {2 * LONGEST + 1:,}. The largest is the change of the answers over the scale of the noise.",
            code="attacks.size",
            value=reach,
        )


def _laplace_step(size: int, scale: Fraction) -> tuple[list[int], list[int]]:
    """Enclose the probabilities of (|z + size| - |z|), from -size to size."""
    one = 1 << BITS
    q_low, q_high = exp_neg(1 / scale, BITS)
    powers = [exp_neg(j / scale, BITS) for j in range(size + 1)]
    lows, highs = [0] * (2 * size + 1), [0] * (2 * size + 1)
    for j, (low, high) in enumerate(powers):
        # value size - 2 j
        ends = j in (0, size)
        top_low, top_high = (
            (low << BITS, high << BITS) if ends else (low * (one - q_high), high * (one - q_low))
        )
        lows[2 * size - 2 * j] += top_low // (one + q_high)
        highs[2 * size - 2 * j] += -(-top_high // (one + q_low))
    return lows, highs


def _gaussian_odds(pairs: list[tuple[int, int]], square: Fraction) -> LogOdds:
    """Enclose the distribution of (2 m'z + m'm) / (2 sigma^2)."""
    rate = 1 / (2 * square)
    window = DiscreteGaussian(rate).reach(BITS, BITS)
    reach = sum(size * count for size, count in pairs) * window
    _check_length(reach)
    weights = gaussian_weights(rate, window + 1, BITS)
    total_low = 2 * (sum(weights.lows) + weights.tail_low) - weights.lows[0]
    total_high = 2 * (sum(weights.highs) + weights.tail_high) - weights.highs[0]
    chance_low = [(w << BITS) // total_high for w in weights.lows]
    chance_high = [-(-(w << BITS) // total_low) for w in weights.highs]
    tail = -(-(2 * weights.tail_high << BITS) // total_low)
    steps = []
    for size, count in pairs:
        lows, highs = [0] * (2 * size * window + 1), [0] * (2 * size * window + 1)
        for z in range(-window, window + 1):
            lows[(z + window) * size], highs[(z + window) * size] = chance_low[abs(z)], chance_high[abs(z)]
        steps.append(((lows, highs), count))
    lows, highs = _product(steps)
    missing = tail * sum(count for _, count in pairs)
    # (2 m'z + m'm) / (2 sigma^2): on the lattice of 1 / (2 sigma^2), shifted by m'm
    shift = sum(size * size * count for size, count in pairs)
    far = 2 * reach + shift
    _check_length(far)
    spread_low, spread_high = [0] * (2 * far + 1), [0] * (2 * far + 1)
    for k in range(-reach, reach + 1):
        spread_low[2 * k + shift + far], spread_high[2 * k + shift + far] = lows[k + reach], highs[k + reach]
    return LogOdds(rate, far, tuple(spread_low), tuple(spread_high), missing if pairs else 0)


Enclosed = tuple[list[int], list[int]]


def _product(steps: Sequence[tuple[Enclosed, int]]) -> Enclosed:
    """Convolve enclosed probabilities, each so often."""
    made: Enclosed = ([1 << BITS], [1 << BITS])
    for step, count in steps:
        power, left = step, count
        while left:
            if left & 1:
                made = _convolved(made, power)
            left >>= 1
            if left:
                power = _convolved(power, power)
    return made


def _convolved(one: Enclosed, two: Enclosed) -> Enclosed:
    """Convolve two enclosed distributions; lower ends are rounded down and upper ends up."""
    lows = [x >> BITS for x in _times(one[0], two[0])]
    highs = [-(-x >> BITS) for x in _times(one[1], two[1])]
    return lows, highs


def _times(one: list[int], two: list[int]) -> list[int]:
    """Multiply two polynomials with coefficients from 0 to 2**(BITS + 1) by multiplying two long integers."""
    width = (2 * BITS + 2 + min(len(one), len(two)).bit_length() + 7) // 8
    packed = [
        int.from_bytes(b"".join(x.to_bytes(width, "little") for x in each), "little") for each in (one, two)
    ]
    length = len(one) + len(two) - 1
    raw = (packed[0] * packed[1]).to_bytes(width * (length + 1), "little")
    return [int.from_bytes(raw[at * width : (at + 1) * width], "little") for at in range(length)]


def fibre(policy: Policy, limit: int = TABLES) -> Ints:
    """List all tables that have the published values of a policy.

    Raises
    ------
    InputError
        When the policy publishes no values.
    RefusedError
        When there are more than the limit, or infinitely many.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 2})
    >>> fibre(pg.Policy(domain, constraints=[pg.Cuboid("a", equals=[1, 1]), pg.Cuboid("b", equals=[1, 1])])).tolist()
    [[0, 1, 1, 0], [1, 0, 0, 1]]
    """
    check_facts(policy)
    cells = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
    rows, values = policy.system.full_rows()
    published = [at for at, value in enumerate(values) if value is not None]
    if not published:
        raise InputError(
            "the policy publishes no values: expected equals=... with its facts, so that the tables that fit are known.",
            code="attacks.values",
        )
    matrix = np.asarray(rows[published][:, cells].toarray(), dtype=np.int64)
    wanted = [int(values[at] or 0) for at in published]
    small = list_tables(matrix, wanted, presolve_values(matrix, list(wanted), policy.domain.capacity), limit)
    tables = np.zeros((len(small), policy.domain.size), dtype=np.int64)
    tables[:, cells] = small
    if isinstance(policy, Families) and policy.exactly:
        return tables[np.all(tables % policy.size == 0, axis=1)]
    return tables


@dataclass(frozen=True, eq=False)
class Posterior:
    """What somebody believes after a release: the probability of each table.

    Attributes
    ----------
    tables
        The tables that were possible, one in each row.
    lows, highs
        Fractions that enclose the probability of each.
    """

    tables: Ints
    lows: tuple[Fraction, ...] = field(repr=False)
    highs: tuple[Fraction, ...] = field(repr=False)

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """The probabilities, to the precision of a float."""
        return np.array([float((low + high) / 2) for low, high in zip(self.lows, self.highs, strict=True)])

    @property
    def best(self) -> Ints:
        """A table of the largest probability."""
        found: Ints = self.tables[int(np.argmax(self.probabilities))]
        return found

    def chance(self, which: Any) -> tuple[Fraction, Fraction]:
        """Enclose the probability of an event: a condition on a table of counts, as a function."""
        kept = [at for at, table in enumerate(self.tables) if which(table)]
        return sum((self.lows[at] for at in kept), Fraction(0)), min(
            Fraction(1), sum((self.highs[at] for at in kept), Fraction(0))
        )


def posterior(
    ready: Calibrated, output: Any, tables: Any = None, prior: Sequence[Exact] | None = None
) -> Posterior:
    """The exact posterior of somebody who knows the public facts and sees a release.

    Parameters
    ----------
    ready
        A mechanism with independent discrete Laplace or Gaussian noise on each measured number.
    output
        The noisy whole numbers, in units of the measured query.
    tables
        What was possible; None for all tables with the published values of the mechanism's policy.
    prior
        Probability of each of them before, in proportion; None for the same.

    Examples
    --------
    Noise that was scaled without the facts, seen by somebody who knows both margins of a 2 x 2 table:

    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 2})
    >>> facts = pg.Policy(domain, constraints=[pg.Cuboid("a", equals=[2, 2]), pg.Cuboid("b", equals=[2, 2])])
    >>> ready = pg.Laplace().calibrate(pg.queries.identity(domain), pg.Policy(domain), pg.Epsilon(1))
    >>> seen = posterior(ready, [2, 0, 0, 2], fibre(facts))
    >>> seen.best.tolist(), seen.probabilities.round(4).tolist()
    ([2, 0, 0, 2], [0.0003, 0.018, 0.9817])

    Notes
    -----
    By Bayes' rule; the likelihood of a table x is exp(-||y - W x||_1 / s), or exp(-||y - W x||_2^2 / (2 sigma^2)), times what does not depend on it. Exponents are
    rational and exact, and exponentials are enclosed by integers.
    """
    query, noise = noisy_numbers(ready), ready.noise
    seen = np.asarray(output)
    if seen.dtype.kind not in "iu" or seen.shape != (query.height,):
        raise InputError(
            f"an output of shape {seen.shape} and type {seen.dtype}: expected {query.height} whole numbers, as measured.",
            code="attacks.answers",
        )
    listed = listed_tables(ready, fibre(ready.policy) if tables is None else tables)
    weights = [Fraction(1)] * len(listed) if prior is None else [as_fraction(p, "prior") for p in prior]
    if len(weights) != len(listed) or min(weights) < 0 or not any(weights):
        raise InputError(
            f"a prior of {len(weights)} numbers for {len(listed)} tables: expected one >= 0 for each, and not only zeros.",
            code="attacks.prior",
        )
    powers = []
    for table in listed:
        off = [abs(int(x)) for x in seen - query.answer(table)]
        powers.append(
            Fraction(sum(off)) / noise.parameter
            if noise.distribution == LAPLACE
            else Fraction(sum(x * x for x in off)) / (2 * noise.parameter)
        )
    least = min(power for power, weight in zip(powers, weights, strict=True) if weight)
    scaled = [
        exp_neg(power - least, BITS) if weight else (0, 0)
        for power, weight in zip(powers, weights, strict=True)
    ]
    low = [weight * ends[0] for weight, ends in zip(weights, scaled, strict=True)]
    high = [weight * ends[1] for weight, ends in zip(weights, scaled, strict=True)]
    all_low, all_high = sum(low), sum(high)
    lows = tuple(a / (a + all_high - b) if a else Fraction(0) for a, b in zip(low, high, strict=True))
    highs = tuple(b / (b + all_low - a) if b else Fraction(0) for a, b in zip(low, high, strict=True))
    return Posterior(listed, lows, highs)


def certainty(epsilon: Fraction | float) -> float:
    """How sure somebody can become of one of two data sets that were equally likely, when the loss is at most epsilon.

    Examples
    --------
    >>> certainty(0), round(certainty(4), 4)
    (0.5, 0.982)
    """
    return 1.0 / (1.0 + exp(-min(float(epsilon), 700.0)))
