"""Runs a mechanism on neighbouring tables and counts. Owns :func:`audit`.

Open this file first. The order is: pairs from the policy, outputs to choose events by, the choice, fresh outputs of the
chosen pairs, exact binomial bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from policygraph.audit.bounds import Claim, binomial_bounds
from policygraph.audit.draws import WATCHED, Ints, Outputs, RandomnessKind, Subject
from policygraph.audit.events import Event, best_events
from policygraph.audit.pairs import Pair, neighbour_pairs, read_pairs
from policygraph.audit.report import AuditReport, Finding
from policygraph.audit.statistics import Scene, Statistics, statistics
from policygraph.curator.noise import Rng
from policygraph.curator.releasing import rng_of
from policygraph.errors import InputError, shown
from policygraph.exact import Exact, as_fraction
from policygraph.mechanisms.base import Calibrated
from policygraph.model.loss import Target
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query

TESTS = 6
"""Events tested at most; few, so that each keeps most of the confidence."""
FEWEST = 200
MOST = 1_000_000_000
"""Runs of each table at least: with fewer, no event could refute anything at a useful confidence."""


def audit(
    mechanism: Calibrated | Callable[..., Any],
    policy: Policy | NodePrivacy | None = None,
    query: Query | None = None,
    *,
    epsilon: Exact | None = None,
    loss: Target | None = None,
    samples: int = 20_000,
    confidence: Exact = "0.999",
    pairs: Iterable[Any] | None = None,
    most_pairs: int = 8,
    rng: Rng | None = None,
    randomness: RandomnessKind = "rng",
    batch: bool = False,
    looks: Statistics | None = None,
    progress: Callable[[str], None] | None = None,
    source: Rng | None = None,
) -> AuditReport:
    """Look for events that are likelier on a table than its neighbour allows.

    Parameters
    ----------
    mechanism
        A calibrated mechanism of this library, or any callable ``f(table, rng)`` that returns an array of numbers or
        something hashable. Tuples and frozensets are also looked at part by part.
    policy
        Whose neighbours must look alike; that of a calibrated mechanism when absent.
    query
        What the mechanism answers, if it answers a query: the true answers then guide the choice of events.
    epsilon, loss
        What is claimed: an epsilon, or a loss (``Epsilon``, ``Rho``, ``EpsilonDelta``); that of a calibrated mechanism
        when both are absent.
    samples
        Runs of the mechanism on each table; half to choose events by, half to test them.
    confidence
        Probability with which all bounds of the report hold together.
    pairs
        Pairs of neighbouring tables to compare; made from the policy when absent.
    most_pairs
        How many pairs to make at most.
    rng
        Where the randomness comes from; secure by default.
    randomness
        What a callable is given: ``"rng"`` or ``"numpy"`` (a ``numpy.random.Generator``).
    batch
        Whether the callable is ``f(table, n, rng)`` and returns n outputs.
    looks
        More statistics to look at, by name: callables from all outputs (an array with a row for each, or a list) to one
        number for each output.
    progress
        Called with a sentence before each stage.
    source
        The former name of ``rng``.

    Returns
    -------
    AuditReport
        ``passed``, the lower bound on the loss, and the pair and event that show it.

    Raises
    ------
    InputError
        When arguments do not fit, or given tables are no neighbours.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> policy = pg.Policy(domain)
    >>> ready = pg.Laplace().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
    >>> audit(ready, samples=2000, rng=pg.SeededRng(1)).passed
    True
    >>> report = audit(ready, epsilon="1/3", samples=4000, rng=pg.SeededRng(1))
    >>> report.passed, report.lower_bound > 1 / 3
    (False, True)

    Notes
    -----
    Events are fixed before the outputs that test them are drawn, so that their counts are binomial. With k tested events
    each of the 2k bounds fails with probability at most (1 - confidence) / 2k (Clopper and Pearson), so all hold together
    with the stated confidence, however pairs and events were chosen. A claim that is refuted is false except with
    probability 1 - confidence; a claim that is not refuted is not proved: ``docs/how-to/audits.md``.
    """
    tell = progress or (lambda _: None)
    if isinstance(mechanism, Calibrated):
        policy = mechanism.policy if policy is None else policy
        query = mechanism.query if query is None else query
        if epsilon is None and loss is None:
            loss = mechanism.loss
    if policy is None:
        raise InputError("expected a policy: whose neighbours are to look alike?", code="audit.policy")
    if query is not None:
        query.check_domain(policy.domain)
    claim = Claim.read(epsilon, loss)
    half, sure = _read(samples, confidence)
    subject = Subject(mechanism, randomness, batch)
    random = rng_of(rng, source)
    tell("making pairs of neighbouring tables")
    if pairs is not None:
        compared = read_pairs(pairs, policy)
    else:
        compared = neighbour_pairs(policy, query, _proof(mechanism, policy, query), most=most_pairs)
    facts = policy.system.matrix().toarray() if policy.system.sums and policy.domain.size <= WATCHED else None
    width = _width((1 - sure) / (2 * TESTS))
    chosen: list[tuple[float, int, bool, Event]] = []
    kept: dict[int, Ints | None] = {}
    for at, pair in enumerate(compared):
        tell(f"choosing events on pair {at + 1} of {len(compared)}")
        kept[at] = _watched(mechanism.centre if isinstance(mechanism, Calibrated) else query, pair)
        first = subject.outputs(pair.before, half, random, kept[at])
        second = subject.outputs(pair.after, half, random, kept[at])
        scene = _scene(mechanism, query, pair, kept[at], first, facts, looks or {})
        ways = best_events(claim, first, second, statistics(scene, first, second), width)
        for way, choice in enumerate(ways):
            if choice is not None:
                chosen.append((choice.promise, at, way == 0, choice.event))
    chosen = sorted(chosen, key=lambda item: -item[0])[:TESTS]
    findings = []
    for at in sorted({item[1] for item in chosen}):
        tell(f"testing events on pair {at + 1} of {len(compared)}")
        pair = compared[at]
        first = subject.outputs(pair.before, half, random, kept[at])
        second = subject.outputs(pair.after, half, random, kept[at])
        for _, where, forward, event in chosen:
            if where == at:
                error = (1 - sure) / (2 * len(chosen))
                findings.append(_test(claim, pair, event, first, second, forward, error))
    findings.sort(key=lambda finding: -finding.least)
    return AuditReport(claim, sure, 2 * half, tuple(compared), tuple(findings), random.describe())


def _read(samples: int, confidence: Exact) -> tuple[int, float]:
    if isinstance(samples, bool) or not isinstance(samples, int) or not FEWEST <= samples <= MOST:
        raise InputError(
            f"samples={shown(samples)}: expected an integer from {FEWEST} to {MOST:,}. Fewer runs could not show anything.",
            code="audit.samples",
            value=samples,
        )
    sure = as_fraction(confidence, "confidence")
    if not 0 < sure < 1:
        raise InputError(
            f"confidence={confidence!r}: expected a number between 0 and 1, such as 0.999.",
            code="audit.confidence",
            value=confidence,
        )
    return samples // 2, float(sure)


def _width(error: float) -> float:
    from scipy.stats import norm

    return float(norm.isf(error))


def _proof(mechanism: Any, policy: Policy | NodePrivacy, query: Query | None) -> Any:
    """The certificate of a calibrated mechanism, when it is about this very policy and query."""
    if isinstance(mechanism, Calibrated) and mechanism.policy == policy and mechanism.query == query:
        return mechanism.sensitivity
    return None


def _watched(query: Query | None, pair: Pair) -> Ints | None:
    """The answers to keep when there are too many: the changed ones first, then others in order."""
    if query is None or query.height <= WATCHED:
        return None
    moved = np.flatnonzero(query.answer(pair.after) - query.answer(pair.before))[:WATCHED]
    rest = np.setdiff1d(np.arange(2 * WATCHED), moved)[: WATCHED - moved.size]
    kept: Ints = np.sort(np.concatenate([moved, rest[rest < query.height]]))
    return kept


def _scene(
    mechanism: Any,
    query: Query | None,
    pair: Pair,
    kept: Ints | None,
    seen: Outputs,
    facts: Ints | None,
    looks: Statistics,
) -> Scene:
    width = 0 if seen.array is None else seen.array.shape[1]
    centre = mechanism.centre if isinstance(mechanism, Calibrated) else query
    before = after = None
    if centre is not None:
        before, after = centre.answer(pair.before), centre.answer(pair.after)
        if kept is not None and before.size != width:
            before, after = before[kept], after[kept]
    elif query is None and width == pair.before.size:
        before, after = pair.before, pair.after
    if before is not None and after is not None and isinstance(mechanism, Calibrated) and before.size < width:
        # What follows the measured numbers is the same on both tables.
        rest = np.rint(np.median(seen.rows[:, before.size :], axis=0)).astype(np.int64)
        before, after = np.concatenate([before, rest]), np.concatenate([after, rest])
    return Scene(before, after, facts, looks)


def _test(
    claim: Claim, pair: Pair, event: Event, first: Outputs, second: Outputs, forward: bool, error: float
) -> Finding:
    here, there = (first, second) if forward else (second, first)
    hits, other = event.hits(here), event.hits(there)
    low, _ = binomial_bounds(hits, len(here), error)
    _, high = binomial_bounds(other, len(there), error)
    least = float(claim.least(np.array([low]), np.array([high]))[0])
    return Finding(pair, "first" if forward else "second", str(event), hits, other, len(here), least)
