"""The two plain choices. Owns :class:`All` (measure what is published) and :class:`Base` (measure one cuboid)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policygraph.model.domain import Domain
from policygraph.model.loss import Loss
from policygraph.model.policy import Policy
from policygraph.transforms.cuboids.choose import Choice, CubeStrategy, Sets, Task


@dataclass(frozen=True)
class All(CubeStrategy):
    """Measure every published cuboid that is not known exactly.

    Examples
    --------
    >>> from policygraph.model.loss import Epsilon
    >>> domain = Domain({"sex": 2, "age": 7})
    >>> All().choose(domain, [("sex",), ("age",)], [1, 1], Policy(domain), Epsilon(1)).sets
    (('sex',), ('age',))
    """

    name: str = "all"

    def choose(
        self, domain: Domain, published: Sets, weights: Sequence[float], policy: Policy, loss: Loss
    ) -> Choice:
        task = Task(domain, published, weights, policy, loss)
        many = len(task.wanted)
        reason = (
            "The one published cuboid that is not known exactly was measured."
            if many == 1
            else f"All {many} published cuboids that are not known exactly were measured alike."
        )
        return task.choice(task.wanted, reason=reason)


@dataclass(frozen=True)
class Base(CubeStrategy):
    """Measure the one cuboid from which all published ones can be computed.

    Examples
    --------
    >>> from policygraph.model.loss import Epsilon
    >>> domain = Domain({"sex": 2, "age": 7})
    >>> Base().choose(domain, [("sex",), ("age",)], [1, 1], Policy(domain), Epsilon(1)).sets
    (('sex', 'age'),)
    """

    name: str = "base"

    def choose(
        self, domain: Domain, published: Sets, weights: Sequence[float], policy: Policy, loss: Loss
    ) -> Choice:
        task = Task(domain, published, weights, policy, loss)
        top = 0
        for mask in task.wanted:
            top |= mask
        return task.choice(
            [top] if task.wanted else [], reason="One cuboid was measured, and the others are sums of it."
        )
