"""The contract of cube strategies. Owns :func:`check_strategy`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from policygraph.conformance.mechanisms import check_mechanism
from policygraph.conformance.report import CheckedRule, Conformance, Trial, tried
from policygraph.mechanisms.cube.mechanism import Cube
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries import all_cuboids
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.transforms.cuboids.choose import Choice, Strategy

__all__ = ["check_strategy"]


def check_strategy(
    strategy: Strategy,
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


def _computable(strategy: Strategy, query: Query, policy: Policy, loss: Loss) -> str | None:
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
