"""Which mechanism a release uses when none is named. Owns :func:`choose`.

Data-free and repeatable: it compares expected errors that follow from the policy, the query and the loss, with an effort that is
counted in steps, never in seconds. Policies whose public facts couple records are left to ``kernel_choice``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from policygraph.effort import SECOND
from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.additive import Additive, for_loss
from policygraph.mechanisms.base import Calibrated, marked
from policygraph.mechanisms.constrained.choice import ChosenAdditive
from policygraph.mechanisms.constrained.choice import choose as choose_with_facts
from policygraph.mechanisms.constrained.mechanism import Confined, total_error
from policygraph.mechanisms.cube.mechanism import Cube, CubeNoise
from policygraph.mechanisms.measured import Measured
from policygraph.mechanisms.statistics import StatisticNoise
from policygraph.mechanisms.strategy.mechanism import MatrixMechanism, StrategyNoise
from policygraph.mechanisms.strategy.workload import intervals
from policygraph.mechanisms.transformed.mechanism import EdgeNoise, TransformedGaussian, TransformedLaplace
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.queries.network_statistics import NetworkStatistic
from policygraph.model.queries.workloads import BoxQuery
from policygraph.sensitivity.request import asking, proved
from policygraph.ties import ranked
from policygraph.transforms.incidence.base import graph_of
from policygraph.transforms.incidence.tree import LineTransform, is_forest

__all__ = ["ChosenEdgeNoise", "choose", "expected_total", "range_like"]

EDGES = 200_000
"""Most edges of a graph with cycles on which noise is considered."""
ENTRIES = 20_000_000
"""Most numbers of answers times cells for which the error of noise on edges is computed."""
STRATEGY_CELLS = 1 << 16
EVALUATIONS = 120
PLAIN_WORK = 3 * SECOND
"""For the sensitivity of the answers themselves; a bound is computed again in full if they are measured in the end."""
CLEARLY = 0.99
"""Noise on every answer, which is the simplest, gives way to an error of at most so much of its own; so does anything to a cube."""
CUBE_TABLES = 256
CUBE_ATTRIBUTES = 8
"""Most tables, and attributes in them, for which a cube is considered: its choice takes seconds for these."""


@dataclass(frozen=True)
class ChosenEdgeNoise(EdgeNoise):
    """Noise on edges that was chosen over others."""

    why: str = ""

    def stages(self) -> Sequence[str]:
        return [self.why, *super().stages()]


@dataclass(frozen=True)
class ChosenCube(CubeNoise):
    """A cube that was chosen over others."""

    why: str = ""

    def stages(self) -> Sequence[str]:
        return [self.why, *super().stages()]


def expected_total(ready: Calibrated) -> float:
    """Expected sum of squared errors over the answers, in the units users see; without listing them where that is possible."""
    return ready.total_error if isinstance(ready, StrategyNoise) else total_error(ready)


def range_like(query: Query) -> bool:
    """Whether all answers are counts of ranges or boxes.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 4})
    >>> range_like(pg.queries.prefix(domain)), range_like(pg.queries.identity(domain))
    (True, False)
    """
    return isinstance(query, BoxQuery) or (isinstance(query, MatrixQuery) and intervals(query) is not None)


def choose(query: Query, policy: Policy, loss: Loss, *, time_limit: float | None = None) -> Calibrated:
    """Calibrate the mechanism with the smallest expected squared error, summed over the answers.

    Parameters
    ----------
    query, policy, loss
        What to release, what to hide, what it may cost.
    time_limit
        Seconds for all searches on the way, where a limit in time is wanted; when it runs out, the bounds that are proved
        count, and the choice may differ from run to run.

    Returns
    -------
    Calibrated
        Without public facts, or with facts that every edge of the policy graph keeps (the number of records, say): noise on every
        answer, noise on the edges of the policy graph (on the cells, where records only appear and vanish), or noise on a strategy:
        searched for ranges and boxes, the cells for other sums. Several tables of counts of the same weight: also a cube of
        them. Network statistics that are
        not linear: noise by their own bound. With facts that couple records see
        :func:`policygraph.mechanisms.constrained.choice.choose`; several tables are a cube there as well, if that is better.
        Where several were compared, the first sentence of its stages says so, with the figures.

    Raises
    ------
    RefusedError
        When none of them has a proved sensitivity.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 100})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    >>> print(choose(pg.queries.identity(domain), policy, pg.Epsilon("0.1")).stages()[0])
    Chosen by the expected sum of squared errors, without looking at the data: noise on the edges of the policy graph 3.957e+04,
    noise on every answer 7.998e+04.
    """
    query.check_domain(policy.domain)
    with asking(time_limit) as request:
        return marked(_chosen(query, policy, loss), request)


def _chosen(query: Query, policy: Policy, loss: Loss) -> Calibrated:
    if isinstance(query, MeasureQuery):
        return Measured().calibrate(query, policy, loss)
    if isinstance(query, NetworkStatistic):
        return StatisticNoise().calibrate(query, policy, loss)
    refusal: RefusedError | None = None
    rivals: list[tuple[str, Calibrated]] = []
    if policy.constraints:
        if not _moves_are_edges(policy):
            return _or_cube(choose_with_facts(query, policy, loss), query, policy, loss)
        try:
            kept = choose_with_facts(query, policy, loss)
            if isinstance(kept, Confined):
                rivals.append(("noise that keeps the public facts", kept))
        except RefusedError as error:
            refusal = error
    try:
        proof = proved(query, policy, loss.norm, PLAIN_WORK)
        plain = for_loss(loss).calibrate(query, policy, loss, proof)
        if plain.sensitivity is not None and plain.sensitivity.power == 0:
            return plain
        rivals.append(("noise on every answer", plain))
    except RefusedError as error:
        refusal = error
    makers = (
        ("noise on the edges of the policy graph", _edges),
        ("a strategy", _strategy),
        ("a cube of tables that agree", _cube),
    )
    for name, make in makers:
        try:
            made = make(query, policy, loss)
        except RefusedError as error:
            refusal = refusal or error
            continue
        if isinstance(made, EdgeNoise) and graph_of(policy).rule.n_edges == 0:
            name = "noise on every cell"
        if isinstance(made, StrategyNoise):
            name = f"noise on {made.strategy.height:,} other numbers ({made.strategy.describe()})"
        if made is not None:
            rivals.append((name, made))
    if not rivals:
        raise refusal or RefusedError("no mechanism applies.", code="kernel.none")
    chosen = _best(rivals)
    if isinstance(chosen, Additive) and not chosen.sensitivity.exact:
        return replace(chosen, sensitivity=proved(query, policy, loss.norm))
    return chosen


def _best(rivals: list[tuple[str, Calibrated]]) -> Calibrated:
    if len(rivals) == 1:
        return rivals[0][1]
    errors = ranked(
        ((expected_total(ready), name, ready) for name, ready in rivals), key=lambda found: found[0]
    )
    least, _, winner = errors[0]
    if isinstance(winner, CubeNoise) and errors[1][0] * CLEARLY <= least:
        least, _, winner = errors[1]
    simple = next((each for each in errors if isinstance(each[2], Additive)), None)
    if simple is not None and simple[0] * CLEARLY <= least:
        winner = simple[2]
    figures = ", ".join(f"{name} {error:.4g}" for error, name, _ in errors)
    why = f"Chosen by the expected sum of squared errors, without looking at the data: {figures}."
    if isinstance(winner, (StrategyNoise, Confined)):
        return replace(winner, why=why)
    kind: Any = ChosenEdgeNoise if isinstance(winner, EdgeNoise) else ChosenAdditive
    if isinstance(winner, CubeNoise):
        kind = ChosenCube
    known = {field.name: getattr(winner, field.name) for field in fields(winner)}  # type: ignore[arg-type]
    made: Calibrated = kind(**known, why=why)
    return made


def _cube(query: Query, policy: Policy, loss: Loss) -> CubeNoise | None:
    """The cube that ``Cube()`` is, of several tables that count alike.

    Tables count alike in it, whatever their sizes: counting cells alike would spend all accuracy on the largest table.
    """
    if not isinstance(query, CuboidQuery) or not 2 <= len(query.sets) <= CUBE_TABLES:
        return None
    attributes = {name for names in query.sets for name in names}
    if len(set(query.weights)) > 1 or len(attributes) > CUBE_ATTRIBUTES:
        return None
    try:
        return Cube().calibrate(query, policy, loss)
    except InputError:
        return None  # nobody asked for a cube: that one cannot be made is no mistake


def _or_cube(found: Calibrated, query: Query, policy: Policy, loss: Loss) -> Calibrated:
    """A cube in place of what was found under facts that couple records, where its sensitivity has a closed form as well."""
    proof = found.sensitivity
    if proof is None or proof.power == 0 or not proof.method.startswith("closed form"):
        return found
    try:
        cube = _cube(query, policy, loss)
    except RefusedError:
        return found
    name = "noise on every answer" if isinstance(found, Additive) else "noise that keeps the public facts"
    chosen = found if cube is None else _best([(name, found), ("a cube of tables that agree", cube)])
    return chosen if isinstance(chosen, CubeNoise) else found


def _moves_are_edges(policy: Policy) -> bool:
    """Whether every edge of the policy graph keeps the public facts, so that they couple no records."""
    try:
        graph_of(policy)
    except RefusedError:
        return False
    return True


def _edges(query: Query, policy: Policy, loss: Loss) -> EdgeNoise | None:
    """Noise on edges, where the graph has few of them or no cycle, and the error is cheap to compute."""
    if not isinstance(policy.domain, Domain):
        return None
    graph = graph_of(policy)
    # Where records only appear and vanish, the edges are the cells: the same noise for cells, one of the strategies for ranges.
    if graph.rule.n_edges == 0 and (query.is_identity or range_like(query)):
        return None
    if graph.n_edges > EDGES and not is_forest(graph):
        return None
    simple = query.is_identity or (isinstance(query, BoxQuery) and LineTransform.accepts(policy))
    if not simple and query.height * policy.domain.size > ENTRIES:
        return None
    mechanism = TransformedLaplace() if isinstance(loss, Epsilon) else TransformedGaussian()
    return mechanism.calibrate(query, policy, loss)


def _strategy(query: Query, policy: Policy, loss: Loss) -> StrategyNoise | None:
    """Noise on a strategy, for ranges and boxes over few cells; on the cells, for other sums of few cells."""
    if not isinstance(policy.domain, Domain) or policy.domain.size > STRATEGY_CELLS or query.is_identity:
        return None
    if not range_like(query):
        joined = graph_of(policy).rule.n_edges > 0 and query.height * policy.domain.size <= ENTRIES
        return MatrixMechanism("identity", over="cells").calibrate(query, policy, loss) if joined else None
    return MatrixMechanism(evaluations=EVALUATIONS).calibrate(query, policy, loss)
