"""The best strategy for a workload under a policy. Owns :func:`optimise`.

Data-free. The plain strategies are compared first; then the weights of their levels are improved in whole numbers, with the
sensitivity over the moves taken from a sample of move types; what comes out is certified exactly and kept only if its
expected error is the smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any

from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.strategy.factors import Haar
from policygraph.mechanisms.strategy.plain import Over, plain_strategies
from policygraph.mechanisms.strategy.strategy import Strategy
from policygraph.mechanisms.strategy.workload import Profiles, Workload
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Norm, Query
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.proofs import current, proved, shared_proofs
from policygraph.ties import clearly_less, least, ranked

Variance = Callable[[Fraction], float]
Weights = tuple[tuple[int, ...], ...]

FINE = 16
"""Weights start at so many times those of a plain strategy, so that whole numbers are fine enough."""
HEAVIEST = 512
REFINED = 3
"""Structures whose weights are improved."""


@dataclass(frozen=True, eq=False)
class WeighedStrategy:
    """A strategy with its certificate and the expected sum of squared errors of the workload."""

    strategy: Strategy
    sensitivity: Sensitivity
    error: float


@dataclass(frozen=True, eq=False)
class Optimised:
    """The best strategy that was found, and what it was compared with."""

    best: WeighedStrategy
    plain: tuple[WeighedStrategy, ...]
    refined: bool
    """Whether its weights are others than 1."""


def weigh(
    query: Query,
    policy: Policy,
    strategies: Iterator[Strategy],
    norm: Norm,
    variance: Variance,
    works: dict[Any, Workload] | None = None,
) -> list[WeighedStrategy]:
    """Certify strategies and compute their expected errors, until a clock that the caller set runs out; at least one.

    What is prepared for each base is kept in ``works``.
    """
    works = {} if works is None else works
    found: list[WeighedStrategy] = []
    refusal: RefusedError | None = None
    for strategy in strategies:
        if found and current().effort.done:
            break
        try:
            if strategy.base not in works:
                works[strategy.base] = Workload(query, strategy.base)
            proof = proved(strategy, policy, norm)
        except RefusedError as error:
            refusal = refusal or error
            continue
        found.append(_candidate(works[strategy.base], strategy, proof, variance))
    if not found:
        raise refusal or RefusedError("no strategy fits this query and policy.", code="strategy.none")
    return found


def _candidate(work: Workload, strategy: Strategy, proof: Sensitivity, variance: Variance) -> WeighedStrategy:
    return WeighedStrategy(
        strategy, proof, work.total(strategy) * variance(proof.power) if proof.power else 0.0
    )


def optimise(
    query: Query,
    policy: Policy,
    *,
    norm: Norm = "l1",
    variance: Variance | None = None,
    over: Over | None = None,
    evaluations: int = 600,
    time_limit: float | None = None,
) -> Optimised:
    """Find the rows to measure that give the least expected sum of squared errors.

    Parameters
    ----------
    query, policy
        What is to be answered, and what is to be hidden.
    norm
        ``"l1"`` for Laplace noise, ``"l2"`` for Gaussian noise.
    variance
        Variance of one measurement as a function of the sensitivity (squared for ``"l2"``); by default that of epsilon = 1
        in the continuous limit.
    over
        Only strategies over the ``"cells"`` or the ``"edges"``.
    evaluations
        How often the error of changed weights may be computed.
    time_limit
        Seconds, where a limit in time is wanted; plain strategies that were not reached, and further improvements, are left
        out, and the result may differ from run to run.

    Returns
    -------
    Optimised
        The best candidate, certified; never worse than any plain strategy that was compared.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 64})
    >>> found = optimise(pg.queries.all_ranges(domain), pg.Policy(domain))
    >>> found.best.error < min(each.error for each in found.plain)
    True

    Notes
    -----
    For fixed levels the error is S(w)^2 tr(W G(w)^-1 W^T), G(w) = sum of w_l^2 B_l^T B_l: convex in the squared weights for
    a given sensitivity. Coordinate steps in whole numbers need no rounding afterwards. The search may misjudge S, as it looks at
    a sample of moves; the certificate does not, and decides.
    """
    if norm not in ("l1", "l2"):
        raise InputError(f"norm={norm!r}: expected 'l1' or 'l2'.", code="sensitivity.norm", value=norm)
    cost = variance or (lambda power: 2.0 * float(power) ** 2 if norm == "l1" else float(power))
    with shared_proofs(time_limit):
        return _optimised(query, policy, norm, cost, over, evaluations)


def _optimised(
    query: Query, policy: Policy, norm: Norm, cost: Variance, over: Over | None, evaluations: int
) -> Optimised:
    works: dict[Any, Workload] = {}
    plain = weigh(query, policy, plain_strategies(policy, over=over), norm, cost, works)
    best = least(plain, key=lambda each: each.error)
    if best.error == 0.0:
        return Optimised(best, tuple(plain), refined=False)
    refined = False
    starts = [(each, weights) for each in _structures(plain) for weights in _starts(each.strategy)]
    for start, weights in starts:
        if current().effort.done:
            break
        strategy = start.strategy
        work = works[strategy.base]
        try:
            profiles = Profiles.of(strategy, policy, norm)
            found = _descend(strategy, weights, work, profiles, cost, evaluations // len(starts))
            made = strategy.weighted(_reduced(found), f"weighted {strategy.name}")
            proof = proved(made, policy, norm)
        except RefusedError:
            continue
        candidate = _candidate(work, made, proof, cost)
        if clearly_less(candidate.error, best.error):
            best, refined = candidate, True
    return Optimised(best, tuple(plain), refined)


def _structures(plain: list[WeighedStrategy]) -> list[WeighedStrategy]:
    """The best trees and wavelets, at least one over each base."""
    levelled = [c for c in plain if any(len(f.weights) - f.weights.count(0) > 1 for f in c.strategy.factors)]
    levelled = ranked(levelled, key=lambda each: each.error)
    first = {id(c.strategy.base): c for c in reversed(levelled)}
    rest = [c for c in levelled if c not in first.values()]
    return (
        ranked(first.values(), key=lambda each: each.error)[:REFINED] + rest[: max(0, REFINED - len(first))]
    )


def _starts(strategy: Strategy) -> list[Weights]:
    even = tuple(tuple(FINE * max(w, 0) for w in f.weights) for f in strategy.factors)
    steep: Weights = tuple(
        even[k] if isinstance(f, Haar) else (*(min(w, 1) for w in f.weights[:-1]), 4 * FINE)
        for k, f in enumerate(strategy.factors)
    )
    return [even] if steep == even else [even, steep]


def _descend(
    strategy: Strategy,
    weights: Weights,
    work: Workload,
    profiles: Profiles,
    cost: Variance,
    evaluations: int,
) -> Weights:
    """Change one weight at a time while that lowers the error."""

    def error(at: Weights) -> float:
        return work.total(strategy.weighted(at)) * cost(Fraction(profiles.largest(at)))

    now, best, done = weights, error(weights), 1
    moved = True
    while moved:
        moved = False
        for axis, factor in enumerate(strategy.factors):
            for level in range(len(factor.weights)):
                if level == 0 and factor.weights[0] == 0:
                    continue  # a root that the plain strategy leaves out stays out
                lowest = 1 if isinstance(factor, Haar) or level == len(factor.weights) - 1 else 0
                for value in _steps(now[axis][level], lowest):
                    if done >= evaluations or current().effort.done:
                        return now
                    done += 1
                    line = (*now[axis][:level], value, *now[axis][level + 1 :])
                    then = (*now[:axis], line, *now[axis + 1 :])
                    found = error(then)
                    if found < best * (1 - 1e-6):
                        now, best, moved = then, found, True
    return now


def _steps(value: int, lowest: int) -> list[int]:
    wanted = {
        value * 2,
        value * 3 // 2,
        value * 9 // 8,
        value + 1,
        value - 1,
        value * 7 // 8,
        value * 2 // 3,
        value // 2,
        0,
    }
    return sorted({min(max(each, lowest), HEAVIEST) for each in wanted} - {value})


def _reduced(weights: Weights) -> Weights:
    return tuple(tuple(w // max(1, gcd(*line)) for w in line) for line in weights)
