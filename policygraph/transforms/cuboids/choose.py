"""What to measure so that some cuboids can be published well. Owns :class:`CubeStrategy`, :class:`Choice`, :class:`Task`.

A strategy sees the domain, the published cuboids with their importance, the policy and the loss, and never any data. It
returns cuboids (or interactions) with integer weights; noise is then scaled to the certified sensitivity of these. A user
can write one: subclass :class:`CubeStrategy` and give it a ``choose``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor, log10
from typing import Literal, get_args

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import InputError
from policygraph.model.domain import Domain
from policygraph.model.loss import Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query, whole_weights
from policygraph.model.queries.cuboids import BlockQuery, CuboidQuery, contrast_gain
from policygraph.sensitivity.proofs import current
from policygraph.ties import figures
from policygraph.transforms.cuboids.costs import (
    Costs,
    cells_of_blocks,
    costs_of,
    fitted_factors,
    known_blocks,
    known_cuboids,
    plain_factors,
    unit_variance,
)
from policygraph.transforms.cuboids.lattice import Family, Floats, Lattice, grouped

Kind = Literal["cuboids", "interactions"]
Sets = Sequence[tuple[str, ...]]

DIGITS = 6
"""Of stated bounds, which searches find; objectives follow from what is chosen, and have more."""
WHOLE_LATTICE = 1 << 12
"""Up to so many subsets of the published attributes all of them may be measured, beyond only what is published."""
ROOMS = 10
"""Beyond that, larger cuboids of twice, four times, ... as many cells as the largest published one may be measured, too."""
MOST_GROUPED = 4096
MOST_LEVEL = 12
MOST_CELLS = 10**8
"""A cuboid with more cells is never measured."""


@dataclass(frozen=True)
class Choice:
    """What to measure, with what share of the accuracy.

    Attributes
    ----------
    sets
        The attributes of each measured cuboid or interaction.
    weights
        A positive integer for each: weight 2 means half the noise of weight 1.
    kind
        ``"cuboids"`` or ``"interactions"``.
    objective
        What was minimised (or maximised), at the loss asked for, with continuous noise; None where public facts
        leave the sensitivity of other choices open, so that there is nothing to compare.
    bound
        What no choice of this kind can beat, if that was proved.
    reason
        One sentence on how it was chosen.
    cut_short
        Whether a limit in seconds that the caller set ended the search, so that another run may choose otherwise.
    """

    sets: tuple[tuple[str, ...], ...]
    weights: tuple[int, ...]
    kind: Kind = "cuboids"
    objective: float | None = None
    bound: float | None = None
    reason: str = ""
    cut_short: bool = False

    def __post_init__(self) -> None:
        # Noise is scaled to these very weights: one that is cut to a whole number somewhere would be measured with too little.
        object.__setattr__(self, "weights", whole_weights(self.weights, len(self.sets)))
        object.__setattr__(self, "sets", tuple(tuple(names) for names in self.sets))
        if self.kind not in get_args(Kind):
            raise InputError(
                f"kind={self.kind!r}: expected 'cuboids' or 'interactions'.",
                code="cubes.kind",
                value=self.kind,
            )

    @property
    def gap(self) -> float | None:
        """Relative distance of objective and bound; 0 when the choice is proved best, None when nothing is proved."""
        if self.objective is None or self.bound is None:
            return None
        return abs(self.objective - self.bound) / max(abs(self.objective), 1e-300)

    def query(self, domain: Domain) -> Query:
        """The measured numbers as one query with integer rows."""
        if self.kind == "cuboids":
            return CuboidQuery(domain, self.sets, self.weights)
        return BlockQuery(domain, self.sets, self.weights)


class CubeStrategy(ABC):
    """A way to choose what to measure."""

    name: str

    @abstractmethod
    def choose(
        self, domain: Domain, published: Sets, weights: Sequence[float], policy: Policy, loss: Loss
    ) -> Choice:
        """Choose what to measure.

        Parameters
        ----------
        domain
            The domain of the records.
        published
            The cuboids to be published.
        weights
            How much the variance of each of them counts, positive numbers.
        policy, loss
            What must be hidden, and how well.
        """

    def suited(self, *, consistent: bool) -> CubeStrategy:
        """The strategy for a cube whose tables are made consistent, or not; by default the same for both."""
        return self


class Task:
    """The problem of a strategy with what all of them need: lattice, candidates, costs, variances.

    Parameters
    ----------
    domain, published, weights, policy, loss
        As given to :meth:`CubeStrategy.choose`.

    Examples
    --------
    >>> domain = Domain({"sex": 2, "age": 7})
    >>> from policygraph.model.loss import Epsilon
    >>> task = Task(domain, [("sex",), ("sex", "age")], [1, 1], Policy(domain), Epsilon(1))
    >>> task.candidates, task.plain([3], [1]).tolist()
    ([0, 1, 2, 3], [14.0, 2.0])
    """

    def __init__(
        self, domain: Domain, published: Sets, weights: Sequence[float], policy: Policy, loss: Loss
    ) -> None:
        self.lattice = Lattice(domain)
        self.policy, self.loss = policy, loss
        self.published = [self.lattice.mask(names) for names in published]
        self.importance: Floats = np.array(weights, dtype=np.float64)
        if len(self.importance) != len(self.published) or not np.all(self.importance > 0):
            raise InputError(
                f"weights={list(weights)}: expected a positive number for each of {len(self.published)} cuboids.",
                code="cubes.weights",
                value=weights,
            )
        self.known = known_cuboids(self.lattice, policy)
        self.unit = unit_variance(loss)

    @cached_property
    def top(self) -> int:
        """The smallest cuboid from which all published ones can be computed."""
        top = 0
        for mask in self.published:
            top |= mask
        return top

    def is_known(self, mask: int) -> bool:
        """Whether a cuboid follows from an exactly known one."""
        return any(self.lattice.computable(mask, of=known) for known in self.known)

    @cached_property
    def candidates(self) -> list[int]:
        """Cuboids that may be measured, ascending."""
        few = 1 << self.lattice.level(self.top) <= WHOLE_LATTICE
        found = set(Family(self.lattice, [self.top] if few else self.published).masks.tolist())
        for masks in self.groupings:
            found.update(masks)
        return [mask for mask in sorted(found) if self._allowed(mask)]

    def _allowed(self, mask: int) -> bool:
        return self.lattice.size(mask) <= MOST_CELLS and not self.is_known(mask)

    @cached_property
    def groupings(self) -> list[list[int]]:
        """Of too many attributes to list all sets: larger cuboids that contain the largest published ones, from small to large."""
        tops = [self.lattice.axes(mask) for mask in self.lattice.maximal(self.published)]
        if 1 << self.lattice.level(self.top) <= WHOLE_LATTICE or len(tops) > MOST_GROUPED:
            return []
        widest = max(self.lattice.size(self.lattice.mask_of(axes)) for axes in tops)
        made: list[list[int]] = []
        for step in range(ROOMS + 1):
            groups = grouped(self.lattice.domain.shape, tops, min(widest << step, MOST_CELLS))
            masks = [self.lattice.mask_of(group.axes) for group in groups]
            if all(self.lattice.level(mask) <= MOST_LEVEL for mask in masks):
                made.append([mask for mask in masks if self._allowed(mask)])
        return [[m for m in self.lattice.maximal(self.published) if self._allowed(m)], *made]

    @cached_property
    def family(self) -> Family:
        """Everything below what is published or may be measured."""
        return Family(self.lattice, [*self.candidates, *self.published])

    @cached_property
    def wanted(self) -> list[int]:
        """Published cuboids that are not known exactly."""
        return [mask for mask in self.published if not self.is_known(mask)]

    @cached_property
    def wanted_importance(self) -> Floats:
        """Importance of the published cuboids that are not known exactly."""
        kept = [x for mask, x in zip(self.published, self.importance, strict=True) if not self.is_known(mask)]
        return np.array(kept, dtype=np.float64)

    @cached_property
    def costs(self) -> Costs:
        """What measuring each candidate costs."""
        return costs_of(self.lattice, self.candidates, self.policy, self.loss.norm)

    def weights_of(self, masks: Iterable[int], weights: Iterable[float]) -> Floats:
        """Weights along the candidates."""
        place = {mask: at for at, mask in enumerate(self.candidates)}
        out = np.zeros(len(self.candidates))
        for mask, weight in zip(masks, weights, strict=True):
            out[place[mask]] = weight
        return out

    def _of_measured(
        self, masks: Sequence[int], weights: Sequence[float], *, fitted: bool, at: Sequence[int]
    ) -> Floats:
        family = Family(self.lattice, [*masks, *at])
        precisions = family.spread(masks, np.square(np.array(weights, dtype=np.float64)))
        factors = (fitted_factors if fitted else plain_factors)(family, precisions, self.known)
        noise = self.unit * self.costs.noise(self.weights_of(masks, weights))
        made: Floats = noise * factors[family.at(at)]
        return made

    def plain(self, masks: Sequence[int], weights: Sequence[float]) -> Floats:
        """Variance of a cell of each published cuboid, summed from its best measured parent."""
        return self._of_measured(masks, weights, fitted=False, at=self.published)

    def fitted(
        self, masks: Sequence[int], weights: Sequence[float], at: Sequence[int] | None = None
    ) -> Floats:
        """Variance of a cell of each published cuboid, or of some others, after least squares."""
        return self._of_measured(masks, weights, fitted=True, at=self.published if at is None else at)

    def choice(
        self,
        masks: Sequence[int],
        weights: Sequence[int] | None = None,
        *,
        kind: Kind = "cuboids",
        objective: float | None = None,
        bound: float | None = None,
        reason: str = "",
        cut_short: bool = False,
    ) -> Choice:
        """Write a choice with names, the largest cuboids first."""
        objective, bound = stated(objective, bound)
        given = [1] * len(masks) if weights is None else [int(w) for w in weights]
        order = sorted(range(len(masks)), key=lambda i: (-self.lattice.level(masks[i]), masks[i]))
        sets = tuple(self.lattice.names(masks[i]) for i in order)
        return Choice(sets, tuple(given[i] for i in order), kind, objective, bound, reason, cut_short)


def stated(objective: float | None, bound: float | None) -> tuple[float | None, float | None]:
    """An objective and its bound to as many digits as every processor agrees on; a bound that is apart is rounded away from it.

    Examples
    --------
    >>> stated(2.15267123456789, 2.1526695), stated(64.0, 64.0)
    ((2.15267123457, 2.15266), (64.0, 64.0))
    """
    if objective is None or bound is None or not bound:
        return None if objective is None else figures(objective, 12), bound
    near = abs(bound - objective) <= 1e-12 * abs(objective)
    if near:
        return figures(objective, 12), figures(objective, 12)
    step = 10.0 ** (floor(log10(abs(bound))) - DIGITS + 1)
    shown, sign = figures(bound, DIGITS), 1 if bound > objective else -1
    return figures(objective, 12), shown if sign * (shown - bound) >= 0 else figures(
        shown + sign * step, DIGITS
    )


def allowed(work: int | None, seconds: float | None, usual: int) -> Effort:
    """The effort of a search: a number of units or seconds that were asked for, else the usual work; under the clock of the request.

    Examples
    --------
    >>> allowed(None, None, 5).left, allowed(7, None, 5).left, allowed(None, 1.0, 5).left
    (5, 7, None)
    """
    if seconds is not None and work is None:
        return Effort(0 if seconds == 0 else None, seconds=seconds)
    if seconds is not None:
        return Effort(work, seconds=seconds)
    return current().within(usual if work is None else work)


def measured_precisions(choice: Choice, family: Family) -> Floats:
    """Precision of the noise of each measured cuboid or interaction, in units of the noise, along a family."""
    lattice = family.lattice
    masks = [lattice.mask(names) for names in choice.sets]
    squares = np.square(np.array(choice.weights, dtype=np.float64))
    if choice.kind == "interactions":
        shape = lattice.domain.shape
        gains = [
            float(np.prod([float(contrast_gain(shape[axis])) for axis in lattice.axes(m)])) for m in masks
        ]
        squares = squares * np.array(gains)
    return family.spread(masks, squares)


def fitted_of(choice: Choice, family: Family, known: Sequence[int]) -> Floats:
    """Variance of a cell of every cuboid of a family after least squares, in units of the noise."""
    precisions = measured_precisions(choice, family)
    if choice.kind == "cuboids":
        return fitted_factors(family, precisions, known)
    with np.errstate(divide="ignore"):
        blocks: Floats = 1.0 / precisions
    blocks[known_blocks(family, known)] = 0.0
    return cells_of_blocks(family, blocks)
