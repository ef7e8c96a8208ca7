"""Exact checks. Owns :class:`ExactReport`, :func:`exact_loss` and :func:`exact_check` for additive noise, :func:`exact_audit` for listed outputs.

Additive discrete noise has a closed form over the moves, in rationals. Everything else is checked by listing outputs and tables, and a comparison with
exp(epsilon) is decided by enclosures.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import comb
from typing import Any

import numpy as np

from policygraph.audit.pairs import Ints, Pair
from policygraph.distributions.enclosure import exp_neg
from policygraph.errors import InputError, RefusedError
from policygraph.exact import Exact, as_fraction, show
from policygraph.mechanisms.additive import Additive
from policygraph.model.grouped import Grouped, records_of
from policygraph.model.linked_units import LinkedUnit, listed_units
from policygraph.model.loss import Epsilon, EpsilonDelta
from policygraph.model.policy import Policy
from policygraph.model.units import Unit


@dataclass(frozen=True, eq=False)
class ExactReport:
    """The worst that was found over all pairs that were enumerated.

    Attributes
    ----------
    passed
        Whether every pair keeps the claim; None when the given probabilities are too coarse to tell.
    claim
        What is claimed.
    pairs
        How many pairs were compared.
    worst
        The pair that shows most, and what it shows in words.
    value
        The largest loss: exact for additive noise; for enumerated outputs the largest ratio of probabilities
        (None when it is infinite) or, with a delta, the largest delta that is needed.
    """

    passed: bool | None
    claim: str
    pairs: int
    worst: Pair | None
    value: Fraction | None
    words: str

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "passed": self.passed,
            "claim": self.claim,
            "pairs": self.pairs,
            "worst": None if self.worst is None else self.worst.to_dict(),
            "value": None if self.value is None else str(self.value),
            "words": self.words,
        }

    def __str__(self) -> str:
        head = {True: "holds exactly", False: "LEAK", None: "undecided: give narrower probabilities"}[
            self.passed
        ]
        return f"{head}: {self.claim} over {self.pairs} pair{'s' * (self.pairs != 1)} of neighbours; {self.words}"


def exact_loss(ready: Additive, pair: Pair | Iterable[Any]) -> Fraction:
    """Compute what additive noise loses on one pair of tables: epsilon for Laplace noise, rho for Gaussian.

    Parameters
    ----------
    ready
        A mechanism with independent discrete noise on every answer.
    pair
        Two tables.

    Returns
    -------
    Fraction
        The loss, not rounded.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> ready = pg.Laplace().calibrate(pg.queries.identity(domain), pg.Policy(domain), pg.Epsilon("1/2"))
    >>> exact_loss(ready, ([5, 0, 2], [4, 0, 3]))
    Fraction(1, 1)

    Notes
    -----
    Let the answers differ by the integer vector m. For discrete Laplace noise of scale s the log-ratio of the
    probabilities of an output is a sum over answers of (|o - b| - |o - a|) / s, at most |m_i| / s each, and all attain that
    at once on the outputs beyond both answers: the largest is exactly ||m||_1 / s. For discrete Gaussian noise the Renyi
    divergence of order a is a ||m||_2^2 / (2 sigma^2) plus a logarithm of a quotient of two sums of one Gaussian over
    shifted integers, which is largest, and 0, when the shift a m is whole (Canonne, Kamath and Steinke 2020). Every
    integer a attains it, so the least rho is exactly ||m||_2^2 / (2 sigma^2).
    """
    if not isinstance(ready, Additive):
        raise InputError(
            f"{type(ready).__name__}: expected additive noise. Use exact_audit with the exact output probabilities.",
            code="audit.not-additive",
        )
    a, b = (pair.before, pair.after) if isinstance(pair, Pair) else pair
    moved = [int(x) for x in ready.query.answer(b) - ready.query.answer(a)]
    if not any(moved):
        return Fraction(0)
    if ready.parameter == 0:
        raise InputError(
            "the answers differ and there is no noise at all: the loss is infinite.", code="audit.no-noise"
        )
    if isinstance(ready.loss, Epsilon):
        return sum(abs(x) for x in moved) / ready.parameter
    return sum(x * x for x in moved) / (2 * ready.parameter)


def exact_epsilon(ready: Additive, pair: Pair | Iterable[Any]) -> Fraction:
    """Compute the pure epsilon that discrete Laplace noise loses on one pair of tables.

    Raises
    ------
    InputError
        For Gaussian noise, which has no pure epsilon.
    """
    if not isinstance(ready.loss, Epsilon):
        raise InputError(
            "Gaussian noise has no pure epsilon: its log-ratio is unbounded. Use exact_loss for rho.",
            code="audit.no-epsilon",
        )
    return exact_loss(ready, pair)


def exact_check(
    ready: Additive, policy: Policy | Grouped | None = None, *, limit: int = 100_000
) -> ExactReport:
    """Check additive noise against every move of a policy.

    Parameters
    ----------
    ready
        A mechanism with independent discrete noise on every answer.
    policy
        Whose moves count; the mechanism's own when absent.
    limit
        Refuse beyond so many moves, since a part of them proves nothing.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 3, "b": 3})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    >>> ready = pg.Laplace().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
    >>> print(exact_check(ready))
    holds exactly: epsilon = 1 over 15 pairs of neighbours; the worst loses exactly 1

    Notes
    -----
    The loss depends on the move alone and not on the table, so that the moves cover all pairs of neighbours.
    """
    asked = ready.policy if policy is None else policy
    worst, value, count = None, Fraction(0), 0
    for before, after in _steps(asked, limit + 1):
        count += 1
        if count > limit:
            raise RefusedError(
                f"more than {limit} moves: a check of some of them would prove nothing. Raise the limit.",
                code="audit.limit",
            )
        pair = Pair(before, after, "a move, few records", asked.domain)
        lost = exact_loss(ready, pair)
        if worst is None or lost > value:
            worst, value = pair, lost
    words = "nothing can change" if worst is None else f"the worst loses exactly {show(value)}"
    return ExactReport(value <= ready.loss.value, str(ready.loss), count, worst, value, words)


def _steps(policy: Policy | Grouped, limit: int) -> Iterator[tuple[Ints, Ints]]:
    """The tables that a step leads from and to, without what it leaves as it is; of a step and its reverse one is enough."""
    if isinstance(policy, LinkedUnit):
        yield from _of_linked(policy, limit)
        return
    moves = (policy.moves_of_records if isinstance(policy, Unit) else records_of(policy)).moves(limit=limit)
    times = policy.members if isinstance(policy, Grouped) else 1
    pairs = ((_table(policy, move, -1), _table(policy, move, 1)) for move in moves)
    if not isinstance(policy, Unit) or policy.cap == times:
        yield from ((times * before, times * after) for before, after in pairs)
        return
    single = list(pairs)
    # Without a graph all records of a unit appear; with one each may go either way.
    both = (
        [*single, *((after, before) for before, after in single)]
        if policy.records.graph is not None
        else single
    )
    if comb(len(both) + times, times) > 10 * limit:
        raise RefusedError(
            f"more than {limit} steps of a unit: a check of some of them would prove nothing. Raise the limit.",
            code="audit.limit",
        )
    for size in range(1, times + 1):
        for chosen in combinations_with_replacement(both, size):
            before, after = (np.sum([pair[side] for pair in chosen], axis=0) for side in (0, 1))
            if max(before.max(), after.max()) <= policy.cap:
                yield before, after


def _of_linked(policy: LinkedUnit, limit: int) -> Iterator[tuple[Ints, Ints]]:
    """Units with all of their rows in one cell, or two such in each other's place: norms are convex, so that no others change more."""
    if policy.tables.child in policy.known:
        raise RefusedError(
            f"exchanges of units that keep the number of {policy.tables.child} are not listed. Check the certificate, whose bound is proved.",
            code="linked.undecided",
        )
    listed = []
    for unit in listed_units(policy, limit):
        listed.append(np.zeros(policy.domain.size, dtype=np.int64))
        listed[-1][list(unit)] = list(unit.values())
    if policy.totals:
        yield from combinations(listed, 2)
    else:
        yield from ((np.zeros_like(unit), unit) for unit in listed)


def _table(policy: Policy | Grouped, move: Any, sign: int) -> Ints:
    """The records that a move takes away, or those that it brings."""
    table: Ints = np.zeros(policy.domain.size, dtype=np.int64)
    table[move.cells] = np.maximum(sign * move.amounts, 0)
    return table


Probability = Fraction | int | tuple[Fraction, Fraction]
Distribution = Mapping[Hashable, Probability]

MOST_TABLES = 2000
PRECISIONS = (64, 256, 1024, 4096)


def exact_audit(
    distribution: Callable[[Ints], Distribution],
    policy: Policy,
    *,
    epsilon: Exact,
    delta: Exact | None = None,
    tables: Iterable[Any] | None = None,
    largest: int = 2,
) -> ExactReport:
    """Check any mechanism with finitely many outputs on all pairs of neighbours among small tables.

    Parameters
    ----------
    distribution
        From a table to the probabilities of its outputs: each a rational, or a pair of rationals that enclose it.
    policy
        Who must not be told apart.
    epsilon, delta
        What is claimed.
    tables
        The tables to compare; all that fit the public facts and have counts up to ``largest`` when absent.
    largest
        Largest count of a cell.

    Returns
    -------
    ExactReport
        Proved for these tables, and silent about others.

    Raises
    ------
    InputError
        When the probabilities of a table cannot add up to 1.
    RefusedError
        When there are too many tables.

    Examples
    --------
    Randomised response on one record of two values, with odds of 3 to 1:

    >>> import policygraph as pg
    >>> domain = pg.Domain({"answer": ["no", "yes"]})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.full(domain))
    >>> def response(table):
    ...     yes = Fraction(1 + 2 * int(table[1]), 4)
    ...     return {"yes": yes, "no": 1 - yes}
    >>> exact_audit(response, policy, epsilon="1.1", tables=[[1, 0], [0, 1]]).value
    Fraction(3, 1)
    >>> print(exact_audit(response, policy, epsilon=1, tables=[[1, 0], [0, 1]]))
    LEAK: epsilon = 1 over 1 pair of neighbours; output 'no' is 3 times as likely on the first table

    Notes
    -----
    An event is a set of outputs, so the largest ratio over events is attained on a single output. exp(epsilon) is irrational
    for rational epsilon > 0, so that enclosures of rising precision decide each comparison with a rational.
    """
    claim = Epsilon(epsilon) if delta is None else EpsilonDelta(epsilon, delta)
    share = None if delta is None else as_fraction(delta, "delta")
    level = as_fraction(epsilon, "epsilon")
    listed = [
        np.asarray(t, dtype=np.int64).ravel()
        for t in (small_tables(policy, largest) if tables is None else tables)
    ]
    found = [_probabilities(distribution(table.copy()), table) for table in listed]
    worst = _Worst()
    count = 0
    for i, j in combinations(range(len(listed)), 2):
        if not policy.are_neighbours(listed[i], listed[j]):
            continue
        count += 1
        pair = Pair(listed[i], listed[j], "enumerated", policy.domain)
        for way, (p, q) in (("first", (found[i], found[j])), ("second", (found[j], found[i]))):
            if share is None:
                _compare(worst, pair, way, p, q, level)
            else:
                _needs(worst, pair, way, p, q, level, share)
    return ExactReport(worst.verdict, str(claim), count, worst.pair, worst.value, worst.words)


def small_tables(policy: Policy, largest: int) -> list[Ints]:
    """List all tables with counts up to a largest one that fit the public facts.

    Raises
    ------
    RefusedError
        When there are more than 2000 to look at.
    """
    top = largest if policy.domain.capacity is None else min(largest, policy.domain.capacity)
    if (top + 1) ** policy.domain.size > MOST_TABLES:
        raise RefusedError(
            f"{policy.domain.size} cells with counts up to {top} make {(top + 1) ** policy.domain.size:,} tables: expected "
            f"at most {MOST_TABLES:,}. Give the tables to compare.",
            code="audit.tables",
        )
    return list(_fitting(policy, top))


def _fitting(policy: Policy, top: int) -> Iterator[Ints]:
    for counts in product(range(top + 1), repeat=policy.domain.size):
        table = np.array(counts, dtype=np.int64)
        try:
            policy.system.check(table)
        except InputError:
            continue
        yield table


Probabilities = dict[Hashable, tuple[Fraction, Fraction]]


def _probabilities(given: Distribution, table: Ints) -> Probabilities:
    made: Probabilities = {}
    for output, mass in given.items():
        low, high = mass if isinstance(mass, tuple) else (Fraction(mass), Fraction(mass))
        if isinstance(mass, float) or not 0 <= low <= high:
            raise InputError(
                f"probability {mass!r} of output {output!r}: expected a Fraction >= 0 or a pair of them, never a float.",
                code="audit.probability",
                value=mass,
            )
        made[output] = (Fraction(low), Fraction(high))
    if not sum(low for low, _ in made.values()) <= 1 <= sum(high for _, high in made.values()):
        raise InputError(
            f"the probabilities on table {table.tolist()} do not add up to 1: expected all outputs to be listed.",
            code="audit.probabilities",
            table=table,
        )
    return made


class _Worst:
    """The strongest evidence so far: a leak beats doubt, doubt beats a pass, a larger value beats a smaller one."""

    def __init__(self) -> None:
        self.verdict: bool | None = True
        self.pair: Pair | None = None
        self.value: Fraction | None = Fraction(0)
        self.words = "no output differs"

    def add(self, verdict: bool | None, value: Fraction | None, pair: Pair, words: str) -> None:
        rank = {True: 0, None: 1, False: 2}
        new, old = rank[verdict], rank[self.verdict]
        larger = self.value is not None and (value is None or value > self.value)
        if new > old or (new == old and larger):
            self.verdict, self.value, self.pair, self.words = verdict, value, pair, words


def _compare(
    worst: _Worst, pair: Pair, way: str, p: Probabilities, q: Probabilities, level: Fraction
) -> None:
    nothing = (Fraction(0), Fraction(0))
    for output, (low, high) in p.items():
        other_low, other_high = q.get(output, nothing)
        if high == 0:
            continue
        if other_high == 0:
            verdict: bool | None = False if low > 0 else None
            worst.add(verdict, None, pair, f"output {output!r} is possible only on the {way} table")
            continue
        surely = _below_exp(low / other_high, level)
        at_most = other_low > 0 and _below_exp(high / other_low, level)
        verdict = False if not surely else (True if at_most else None)
        ratio = low / other_high
        words = f"output {output!r} is {show(ratio) if ratio.denominator < 10**6 else format(float(ratio), '.6g')} times as likely"
        worst.add(verdict, ratio, pair, f"{words} on the {way} table")


def _needs(
    worst: _Worst, pair: Pair, way: str, p: Probabilities, q: Probabilities, level: Fraction, share: Fraction
) -> None:
    """Enclose the sum of max(0, p - exp(epsilon) q), the delta that is needed, and compare it with the claimed one."""
    nothing = (Fraction(0), Fraction(0))
    low = high = Fraction(0)
    for bits in PRECISIONS:
        factor_low, factor_high = _exp(level, bits)
        low = sum(
            (max(Fraction(0), a - factor_high * q.get(o, nothing)[1]) for o, (a, _) in p.items()), Fraction(0)
        )
        high = sum(
            (max(Fraction(0), a - factor_low * q.get(o, nothing)[0]) for o, (_, a) in p.items()), Fraction(0)
        )
        if low > share or high <= share:
            break
    verdict = False if low > share else (True if high <= share else None)
    worst.add(verdict, low, pair, f"a delta of {float(low):.6g} is needed on the {way} table")


def _exp(level: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Enclose exp(level)."""
    work = bits + 2 * (int(level) + 1)
    low, high = exp_neg(level, work)
    return Fraction(1 << work, high), Fraction(1 << work, low)


def _below_exp(ratio: Fraction, level: Fraction) -> bool:
    """Whether a rational is at most exp(level), decided exactly."""
    if level == 0 or ratio <= 1:
        return ratio <= 1
    for bits in PRECISIONS:
        low, high = _exp(level, bits)
        if ratio <= low:
            return True
        if ratio > high:
            return False
    raise RefusedError(
        f"a ratio agrees with exp({show(level)}) to {PRECISIONS[-1]} bits: not decided.",
        code="audit.undecided",
    )
