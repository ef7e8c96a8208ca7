"""The contract of mechanisms. Owns :func:`check_mechanism`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from policygraph.audit import audit, neighbour_pairs
from policygraph.conformance.report import Conformance, Trial, refused, tried
from policygraph.curator.noise import SeededRng
from policygraph.distributions.noise import NONE
from policygraph.errors import InputError
from policygraph.mechanisms.base import Calibrated, Mechanism
from policygraph.model.domain import Domain
from policygraph.model.loss import EpsilonDelta, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries import identity
from policygraph.model.queries.base import Query
from policygraph.release.release import Release
from policygraph.sensitivity import sensitivity
from policygraph.sensitivity.request import proved

__all__ = ["check_mechanism"]

RUNS = 60
"""Runs from which stated errors are judged."""
DEVIATIONS = 6.0
"""How far a measured error may lie above the stated one, in standard errors."""


def check_mechanism(
    mechanism: Mechanism,
    query: Query,
    policy: Policy,
    loss: Loss,
    *,
    samples: int = 4_000,
) -> Conformance:
    """Try whether a mechanism keeps the contract of the library, on one query, policy and loss.

    Parameters
    ----------
    mechanism
        The plug-in.
    query, policy, loss
        A small case that it accepts.
    samples
        Runs of the audit on each table; 0 leaves the audit out.

    Returns
    -------
    Conformance
        ``passed``, and what was found for each rule.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 4})
    >>> found = check_mechanism(pg.Laplace(), pg.queries.identity(domain), pg.Policy(domain), pg.Epsilon(1))
    >>> found.passed, len(found.checks)
    (True, 14)
    """
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"{mechanism!r}: expected a Mechanism.", code="conformance.subject", value=mechanism)
    ready = mechanism.calibrate(query, policy, loss)
    pairs = neighbour_pairs(policy, query, most=4)
    table = pairs[0].after if pairs else np.zeros(query.domain.size, dtype=np.int64)

    def trials() -> Iterator[tuple[str, Trial]]:
        yield "calibrates for what was asked", lambda: _asked(ready, query, policy, loss)
        yield "calibrates alike every time", lambda: _same_twice(mechanism, ready)
        yield "refuses a query of another domain", lambda: _other_domain(mechanism, policy, loss)
        yield (
            "refuses a loss that no noise has",
            lambda: refused(
                lambda: mechanism.calibrate(query, policy, EpsilonDelta(1, Fraction(1, 10**6))),  # type: ignore[arg-type]
                "an (epsilon, delta) target",
            ),
        )
        yield (
            "refuses a bare number for a sensitivity",
            lambda: refused(lambda: mechanism.calibrate(query, policy, loss, 1.0), "1.0"),  # type: ignore[arg-type]
        )
        yield (
            "refuses a certificate of another query",
            lambda: _other_certificate(mechanism, query, policy, loss),
        )
        yield "answers without noise only what no move changes", lambda: _public(ready)
        yield "runs on neighbouring tables of all kinds", lambda: _runs(ready, [p.before for p in pairs])
        yield "leaves the table as it is", lambda: _table_kept(ready, table)
        yield "draws from its rng alone", lambda: _seeded(ready, table)
        yield "says what it did in a record without data", lambda: _record(ready, table)
        yield "its release can be stored", lambda: _stored(ready, table)
        yield "its errors are as stated", lambda: _errors(ready, table)
        if samples:
            yield "passes the audit", lambda: _audited(ready, pairs, samples)

    return tried(f"{type(mechanism).__name__} on {query!r}", trials())


def _asked(ready: Any, query: Query, policy: Policy, loss: Loss) -> str | None:
    if not isinstance(ready, Calibrated):
        return f"calibrate returned {type(ready).__name__}, expected a Calibrated"
    if ready.query != query or ready.policy != policy or ready.loss != loss:
        return "the calibrated mechanism is for another query, policy or loss"
    if not isinstance(ready.noise.parameter, Fraction):
        return f"the noise parameter is a {type(ready.noise.parameter).__name__}, expected a Fraction"
    return None


def _same_twice(mechanism: Mechanism, ready: Calibrated) -> str | None:
    again = mechanism.calibrate(ready.query, ready.policy, ready.loss)
    same = (again.mechanism, again.noise, list(again.stages())) == (
        ready.mechanism,
        ready.noise,
        list(ready.stages()),
    )
    return (
        None
        if same
        else "a second calibration differs: a configuration keeps no state and draws no randomness"
    )


def _other_domain(mechanism: Mechanism, policy: Policy, loss: Loss) -> str | None:
    other = Domain({"somewhere else": 3})
    if policy.domain == other:
        return None
    return refused(
        lambda: mechanism.calibrate(identity(other), policy, loss),
        "a query of a domain the policy is not about",
    )


def _other_certificate(mechanism: Mechanism, query: Query, policy: Policy, loss: Loss) -> str | None:
    other = Domain({"somewhere else": 3})
    proof = sensitivity(identity(other), Policy(other), norm=loss.norm)
    return refused(lambda: mechanism.calibrate(query, policy, loss, proof), "a certificate of another query")


def _public(ready: Calibrated) -> str | None:
    """What is answered without noise must have a proved sensitivity of 0."""
    silent = ready.noise.distribution == NONE and not ready.runner and ready.measure is not None
    for query in (*([ready.measure] if silent and ready.measure else []), *ready.exact):
        power = proved(query, ready.policy, ready.loss.norm).power
        if power != 0:
            return f"{query!r} is answered without noise, and a move may change it by {power}"
    return None


def _runs(ready: Calibrated, tables: Sequence[Any]) -> str | None:
    for at, table in enumerate(tables):
        made = ready.run(table.copy(), SeededRng(at))
        if not isinstance(made, Release):
            return f"run returned {type(made).__name__}, expected a Release"
        if not all(np.all(np.isfinite(np.asarray(part.values, dtype=np.float64))) for part in made.tables):
            return f"a value that is no finite number on the table {table.tolist()}"
    return None


def _table_kept(ready: Calibrated, table: Any) -> str | None:
    given = table.copy()
    ready.run(given, SeededRng(0))
    return None if np.array_equal(given, table) else "run changed the table that it was given"


def _values(made: Release) -> list[float]:
    return [float(value) for part in made.tables for value in np.asarray(part.values).ravel()]


def _seeded(ready: Calibrated, table: Any) -> str | None:
    before = str(np.random.get_state())
    runs = [_values(ready.run(table.copy(), SeededRng(seed))) for seed in (1, 1, *range(2, 10))]
    if str(np.random.get_state()) != before:
        return "the global random state of numpy was used"
    if runs[0] != runs[1]:
        return "the same seed gave two results: some randomness does not come from the rng"
    if ready.noise.distribution != "none" and all(run == runs[0] for run in runs):
        return "different seeds gave the same result: the noise does not come from the rng"
    return None


def _record(ready: Calibrated, table: Any) -> str | None:
    made = ready.run(table.copy(), SeededRng(3))
    record = json.loads(json.dumps(dict(made.record)))
    if record["private"] is not False or not record["warning"]:
        return "a release of a seeded rng does not say that it is not private"
    if record["loss"] != ready.loss.to_json() or record["policy_fingerprint"] != ready.policy.fingerprint:
        return "the record names another loss or policy"
    if not record["stages"] or not all(isinstance(line, str) and line for line in record["stages"]):
        return "the stages are not sentences"
    return None


def _stored(ready: Calibrated, table: Any) -> str | None:
    made = ready.run(table.copy(), SeededRng(4))
    back = Release.from_parquet(made.to_bytes())
    if _values(back) != _values(made) or dict(back.record) != json.loads(json.dumps(dict(made.record))):
        return "reading the stored bytes gives another release"
    return None


def _errors(ready: Calibrated, table: Any) -> str | None:
    """Stated deviations against runs; smaller errors are welcome, since clever post-processing need not state them."""
    if ready.centre is None:
        # Buckets that are spread and cells that are left out err by what depends on the data, and cannot be stated.
        return None
    truth = np.asarray(ready.query.answer(table), dtype=np.float64)
    unit = float(ready.query.unit)
    start, stated, exact = 0, [], []
    for at, part in enumerate(ready.query.parts):
        spread = np.broadcast_to(np.asarray(ready.deviation(at), dtype=np.float64), (part.height,))
        within = np.broadcast_to(np.asarray(ready.within_95(at), dtype=np.float64), (part.height,))
        if not (np.all(np.isfinite(spread)) and np.all(spread >= 0) and np.all(within >= 0)):
            return f"the errors stated for {part.name} are no non-negative numbers"
        exact.append(truth[start : start + part.height] * unit / float(part.weight))
        stated.append(spread**2)
        start += part.height
    squares = []
    for seed in range(RUNS):
        got = np.array(_values(ready.run(table.copy(), SeededRng(f"errors {seed}"))))
        squares.append(float(np.mean((got - np.concatenate(exact)) ** 2)))
    mean, error = float(np.mean(squares)), float(np.std(squares) / np.sqrt(RUNS))
    claimed = float(np.mean(np.concatenate(stated)))
    if mean - DEVIATIONS * error > claimed * 1.001:
        return f"the mean squared error of {RUNS} runs is {mean:.4g} (standard error {error:.2g}), stated is {claimed:.4g}"
    return None


def _audited(ready: Calibrated, pairs: Sequence[Any], samples: int) -> str | None:
    if not pairs:
        return None
    report = audit(ready, pairs=pairs, samples=samples, rng=SeededRng("conformance"))
    return None if report.passed else str(report)
