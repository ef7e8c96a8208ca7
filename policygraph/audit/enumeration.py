"""Exact checks by listing outputs and tables. Owns :func:`exact_audit` and :func:`small_tables`.

Everything is rational, and a comparison with exp(epsilon) is decided by enclosures.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

from policygraph.audit.exact import ExactReport
from policygraph.audit.pairs import Ints, Pair
from policygraph.distributions.enclosure import exp_neg
from policygraph.errors import InputError, RefusedError
from policygraph.exact import Exact, as_fraction, show
from policygraph.model.loss import Epsilon, EpsilonDelta
from policygraph.model.policy import Policy

__all__ = ["exact_audit", "small_tables"]

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
        Who may not be told apart.
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
    laws = [_law(distribution(table.copy()), table) for table in listed]
    worst = _Worst()
    count = 0
    for i, j in combinations(range(len(listed)), 2):
        if not policy.are_neighbours(listed[i], listed[j]):
            continue
        count += 1
        pair = Pair(listed[i], listed[j], "enumerated", policy.domain)
        for way, (p, q) in (("first", (laws[i], laws[j])), ("second", (laws[j], laws[i]))):
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


Law = dict[Hashable, tuple[Fraction, Fraction]]


def _law(given: Distribution, table: Ints) -> Law:
    law: Law = {}
    for output, mass in given.items():
        low, high = mass if isinstance(mass, tuple) else (Fraction(mass), Fraction(mass))
        if isinstance(mass, float) or not 0 <= low <= high:
            raise InputError(
                f"probability {mass!r} of output {output!r}: expected a Fraction >= 0 or a pair of them, never a float.",
                code="audit.probability",
                value=mass,
            )
        law[output] = (Fraction(low), Fraction(high))
    if not sum(low for low, _ in law.values()) <= 1 <= sum(high for _, high in law.values()):
        raise InputError(
            f"the probabilities on table {table.tolist()} do not add up to 1: expected all outputs to be listed.",
            code="audit.probabilities",
            table=table,
        )
    return law


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


def _compare(worst: _Worst, pair: Pair, way: str, p: Law, q: Law, level: Fraction) -> None:
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


def _needs(worst: _Worst, pair: Pair, way: str, p: Law, q: Law, level: Fraction, share: Fraction) -> None:
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
