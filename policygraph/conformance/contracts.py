"""The contracts of plug-ins, as checks that run. Owns :func:`check_mechanism`, :func:`check_partitioner`, :func:`check_reduction` and :func:`check_strategy`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from policygraph.audit import audit, neighbour_pairs
from policygraph.conformance.report import CheckedRule, Conformance, Trial, refused, tried
from policygraph.curator.histogram import Histogram, Ints
from policygraph.curator.noise import Rng, SeededRng
from policygraph.curator.runners.partitioned import choose
from policygraph.distributions.noise import NONE
from policygraph.errors import InputError
from policygraph.mechanisms.base import Calibrated, Mechanism
from policygraph.mechanisms.cube.mechanism import Cube
from policygraph.mechanisms.partitioned import Partition
from policygraph.mechanisms.partitioned.partitioners.base import Partitioner
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon, EpsilonDelta, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries import all_cuboids, identity
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.release.release import Release
from policygraph.sensitivity import sensitivity
from policygraph.sensitivity.proofs import proved
from policygraph.transforms.cuboids.choose import Choice, CubeStrategy
from policygraph.transforms.incidence import Reduction

SEEDS = 1_000
"""Seeds that are tried before noise is taken to be always the same."""
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
    runs: int = RUNS,
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
    runs
        Releases from which stated errors are judged; fewer for a mechanism whose releases take long.

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
        yield "calibrates for what was asked", lambda: _fits_request(ready, query, policy, loss)
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
        yield "its errors are as stated", lambda: _errors(ready, table, runs)
        if samples:
            yield "passes the audit", lambda: _audited(ready, pairs, samples)

    return tried(f"{type(mechanism).__name__} on {query!r}", trials())


def _fits_request(ready: Any, query: Query, policy: Policy, loss: Loss) -> str | None:
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
            return f"a value that is not a finite number on the table {table.tolist()}"
    return None


def _table_kept(ready: Calibrated, table: Any) -> str | None:
    given = table.copy()
    ready.run(given, SeededRng(0))
    return None if np.array_equal(given, table) else "run changed the table that it was given"


def _values(made: Release) -> list[float]:
    return [float(value) for part in made.tables for value in np.asarray(part.values).ravel()]


def _seeded(ready: Calibrated, table: Any) -> str | None:
    before = str(np.random.get_state())

    def numbers(seed: int) -> list[Any]:
        made = ready.run(table.copy(), SeededRng(seed))
        # Estimates of small tables may be the same whatever the noise, which the unbiased numbers beside them then show.
        return [
            _values(made),
            [np.asarray(each.unbiased).tolist() for each in made.tables if each.unbiased is not None],
        ]

    first, again = numbers(1), numbers(1)
    if str(np.random.get_state()) != before:
        return "the global random state of numpy was used"
    if first != again:
        return "the same seed gave two results: some randomness does not come from the rng"
    # Small noise is often none at all, so that many seeds are tried before that is held against a mechanism.
    if ready.noise.distribution != "none" and all(numbers(seed) == first for seed in range(2, SEEDS)):
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


def _errors(ready: Calibrated, table: Any, runs: int) -> str | None:
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
            return f"the errors stated for {part.name} are not non-negative numbers"
        exact.append(truth[start : start + part.height] * unit / float(part.weight))
        stated.append(spread**2)
        start += part.height
    squares = []
    for seed in range(runs):
        got = np.array(_values(ready.run(table.copy(), SeededRng(f"errors {seed}"))))
        squares.append(float(np.mean((got - np.concatenate(exact)) ** 2)))
    mean, error = float(np.mean(squares)), float(np.std(squares) / np.sqrt(runs))
    claimed = float(np.mean(np.concatenate(stated)))
    if mean - DEVIATIONS * error > claimed * 1.001:
        return f"the mean squared error of {runs} runs is {mean:.4g} (standard error {error:.2g}), stated is {claimed:.4g}"
    return None


def _audited(ready: Calibrated, pairs: Sequence[Any], samples: int) -> str | None:
    if not pairs:
        return None
    report = audit(ready, pairs=pairs, samples=samples, rng=SeededRng("conformance"))
    return None if report.passed else str(report)


def check_partitioner(
    partitioner: Partitioner, *, size: int = 6, loss: Epsilon | None = None, samples: int = 2_000
) -> Conformance:
    """Try whether a private partitioner keeps its contract: every cell in one bucket, drawn from its rng, within its loss.

    Parameters
    ----------
    partitioner
        The plug-in.
    size
        Number of cells of the tables that are tried.
    loss
        What the choice of the partition claims to spend; epsilon 1 by default.
    samples
        Runs of the audit on each table; 0 leaves the audit out.

    Examples
    --------
    >>> import policygraph as pg
    >>> check_partitioner(pg.Intervals(), samples=0).passed
    True
    """
    spent = loss or Epsilon(1)
    domain = Domain({"value": size})
    policy = Policy(domain)
    ready = partitioner.calibrate(size, Fraction(1), spent, 1.0)
    pairs = neighbour_pairs(policy, most=4)

    def chosen(table: Ints, rng: Rng) -> Partition:
        return choose(ready, Histogram.of(domain, table), rng)[0]

    def labels(table: Ints, rng: Rng) -> tuple[int, ...]:
        return tuple(chosen(table, rng).labels.tolist())

    def covers() -> str | None:
        for at, pair in enumerate(pairs):
            made = chosen(pair.before.copy(), SeededRng(at))
            if not isinstance(made, Partition) or made.labels.size != size:
                return "the choice is not a partition of all cells"
        return None

    def seeded() -> str | None:
        table = pairs[-1].before
        kept = table.copy()
        runs = [labels(table, SeededRng(seed)) for seed in (1, 1)]
        if not np.array_equal(kept, table):
            return "the choice changed the table that it was given"
        return None if runs[0] == runs[1] else "the same seed gave two partitions"

    def private() -> str | None:
        report = audit(labels, policy, loss=spent, pairs=pairs, samples=samples, rng=SeededRng("partition"))
        return None if report.passed else str(report)

    def trials() -> Iterator[tuple[str, Trial]]:
        yield (
            "spends what it was given",
            lambda: None if ready.loss == spent else f"{ready.loss} instead of {spent}",
        )
        yield "puts every cell into one bucket", covers
        yield "draws from its rng alone", seeded
        yield "says what it did", lambda: None if list(ready.stages()) else "no stages"
        if samples:
            yield "passes the audit", private

    return tried(type(partitioner).__name__, trials())


def check_reduction(reduction: Reduction, *, tables: int = 5) -> Conformance:
    """Try whether a reduction is the exact linear map that it says, and whether each edge changes as few coordinates as it says.

    Parameters
    ----------
    reduction
        The plug-in, made for a small policy whose moves are the edges of its graph.
    tables
        How many random tables to try.

    Examples
    --------
    >>> import policygraph as pg
    >>> from policygraph.transforms.incidence import transform
    >>> line = pg.Domain({"age": 5})
    >>> check_reduction(transform(pg.Policy(line, pg.PolicyGraph.line(line)))).passed
    True
    """
    size = reduction.policy.domain.size
    rng = np.random.default_rng(0)
    matrix = np.asarray(reduction.matrix().toarray())

    def round_trip() -> str | None:
        for _ in range(tables):
            cells = rng.integers(0, 50, size)
            if not np.array_equal(reduction.invert(reduction.apply(cells)), cells):
                return f"invert(apply(x)) is not x for {cells.tolist()}"
        return None

    def linear() -> str | None:
        if matrix.dtype.kind != "i" or matrix.shape != (size, reduction.width):
            return f"a matrix of {matrix.shape} and {matrix.dtype}: expected integers of {(size, reduction.width)}"
        for _ in range(tables):
            y = rng.integers(-9, 10, reduction.width)
            if not np.array_equal(reduction.invert(y), matrix @ y):
                return f"invert(y) is not the matrix times y for {y.tolist()}"
        return None

    def unique() -> str | None:
        if reduction.valid_for == "any" and np.linalg.matrix_rank(matrix) < reduction.width:
            return "said to be valid for any mechanism, but the coordinates are not unique"
        return None

    def trials() -> Iterator[tuple[str, Trial]]:
        yield (
            "accepts the policy it was made for",
            lambda: None if type(reduction).accepts(reduction.policy) else "accepts says no",
        )
        yield "apply and invert fit exactly", round_trip
        yield "invert is its integer matrix", linear
        yield "coordinates are unique where any mechanism may run", unique
        yield "an edge changes at most stretch coordinates, by 1", lambda: _stretch(reduction, matrix)

    return tried(type(reduction).__name__, trials())


def _stretch(reduction: Reduction, matrix: Any) -> str | None:
    from policygraph.transforms.incidence.base import graph_of

    graph = graph_of(reduction.policy)
    size = reduction.policy.domain.size
    for u, v in graph.edges():
        move = np.zeros(size, dtype=np.int64)
        for end, amount in ((u, 1), (v, -1)):
            if isinstance(end, int):
                move[end] = amount
        if reduction.valid_for == "any":
            changed = reduction.apply(move)
        else:
            changed = np.array([np.array_equal(c, move) or np.array_equal(c, -move) for c in matrix.T], int)
            changed = changed * (np.cumsum(changed) == 1)
        if not changed.any() or np.abs(changed).sum() > reduction.stretch or np.abs(changed).max() > 1:
            return f"the edge {(u, v)} changes the coordinates by {changed[changed != 0].tolist()}, stretch {reduction.stretch}"
        if changed[reduction.fixed].any():
            return f"the edge {(u, v)} changes a coordinate that is said to be fixed"
    return None


def check_strategy(
    strategy: CubeStrategy,
    domain: Domain | None = None,
    published: Sequence[tuple[str, ...]] | None = None,
    policy: Policy | None = None,
    loss: Loss | None = None,
    *,
    samples: int = 2_000,
) -> Conformance:
    """Try whether a cube strategy keeps its contract: a choice without data, from which all tables can be computed.

    Parameters
    ----------
    strategy
        The plug-in.
    domain, published, policy, loss
        The case; by default all cuboids of 2 x 3 x 2 under one record more or less at epsilon 1.
    samples
        Runs of the audit on each table; 0 leaves the audit out.

    Examples
    --------
    >>> import policygraph as pg
    >>> check_strategy(pg.cubes.BMax(), samples=0).passed
    True
    """
    where = domain or Domain({"a": 2, "b": 3, "c": 2})
    sets = list(published) if published is not None else list(all_cuboids(where).sets)
    hidden, spent = policy or Policy(where), loss or Epsilon(1)
    query = CuboidQuery(where, sets)

    def choose() -> Choice:
        return strategy.choose(where, sets, [1.0] * len(sets), hidden, spent)

    def trials() -> Iterator[tuple[str, Trial]]:
        yield "chooses alike every time", lambda: _chosen_twice(choose(), choose())
        yield "weights are positive integers", lambda: _weights(choose())
        yield "objective and bound are numbers", lambda: _bound(choose())
        yield "every published cuboid can be computed", lambda: _computable(strategy, query, hidden, spent)

    title = f"{type(strategy).__name__} ({strategy.name})"
    alone = tried(title, trials())
    if not alone.passed:
        return alone
    made = check_mechanism(Cube(strategy), query, hidden, spent, samples=samples)
    return Conformance(
        title, (*alone.checks, *(CheckedRule(f"as a cube, {c.rule}", c.fault) for c in made.checks))
    )


def _computable(strategy: CubeStrategy, query: Query, policy: Policy, loss: Loss) -> str | None:
    Cube(strategy).calibrate(query, policy, loss)
    return None


def _chosen_twice(one: Choice, other: Choice) -> str | None:
    same = (one.sets, one.weights, one.kind) == (other.sets, other.weights, other.kind)
    return None if same else "a second choice differs"


def _weights(choice: Choice) -> str | None:
    if len(choice.weights) != len(choice.sets):
        return f"{len(choice.weights)} weights for {len(choice.sets)} cuboids"
    wrong = [weight for weight in choice.weights if type(weight) is not int or weight < 1]
    return f"weights {wrong}: expected integers of 1 or more" if wrong else None


def _bound(choice: Choice) -> str | None:
    if choice.objective is None or choice.bound is None:
        return None
    both = sorted([float(choice.objective), float(choice.bound)])
    return None if np.all(np.isfinite(both)) else f"objective {choice.objective}, bound {choice.bound}"
