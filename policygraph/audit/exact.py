"""Exact checks of additive noise. Owns :class:`ExactReport`, :func:`exact_loss` and :func:`exact_check`.

Additive discrete noise has a closed form over the moves, in rationals; :mod:`.enumeration` checks the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from policygraph.audit.pairs import Ints, Pair
from policygraph.errors import InputError, RefusedError
from policygraph.exact import show
from policygraph.mechanisms.additive import Additive
from policygraph.model.loss import Epsilon
from policygraph.model.policy import Policy

__all__ = ["ExactReport", "exact_check", "exact_epsilon", "exact_loss"]


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


def exact_check(ready: Additive, policy: Policy | None = None, *, limit: int = 100_000) -> ExactReport:
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
    for move in asked.moves(limit=limit + 1):
        count += 1
        if count > limit:
            raise RefusedError(
                f"more than {limit} moves: a check of some of them would prove nothing. Raise the limit.",
                code="audit.limit",
            )
        before: Ints = np.zeros(asked.domain.size, dtype=np.int64)
        before[move.cells] = np.maximum(-move.amounts, 0)
        after = before.copy()
        after[move.cells] += move.amounts
        pair = Pair(before, after, "a move, few records", asked.domain)
        lost = exact_loss(ready, pair)
        if worst is None or lost > value:
            worst, value = pair, lost
    words = "nothing can change" if worst is None else f"the worst loses exactly {show(value)}"
    return ExactReport(value <= ready.loss.value, str(ready.loss), count, worst, value, words)
