"""Unequal noise. Owns :class:`Unequal`, :class:`Fourier`, and :func:`least_value`, which no unequal noise can beat.

Least total or least maximal variance after least squares, and interactions measured directly. For zCDP without public facts the optimum over all interactions has a closed form at given multipliers, and the
multipliers solve a concave problem, so that a proved bound comes with it (Theorem 4 of ``docs/explanation/proofs/cubes.md``).
Otherwise cuboids are weighed (``weighing``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from policygraph.effort import SECOND
from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.cube.cover import BMax
from policygraph.mechanisms.cube.precisions import optimal_precisions
from policygraph.mechanisms.cube.weighing import Goal, Weighing, minimise, rounded, soft_max
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.cuboids import BlockQuery, contrast_gain
from policygraph.sensitivity.proofs import current
from policygraph.sensitivity.rungs.edges import all_difference_sets, subsets_that_differ
from policygraph.sensitivity.rungs.interactions import Exchangeable, Steps
from policygraph.ties import order, settled
from policygraph.transforms.cuboids.choose import Choice, CubeStrategy, Sets, Task, allowed
from policygraph.transforms.cuboids.costs import (
    cell_shares,
    cell_variances_adjoint,
    changed_sets,
    known_blocks,
)
from policygraph.transforms.cuboids.lattice import Family, Floats, Ints

SEARCH = 3 * SECOND
"""Units of work for a local search: on up to seven attributes all starts are done before, on eight more gains little."""
LARGEST = 1 << 12
"""Weights of cuboids are rounded to integers up to this."""
SMALLEST = 4096.0
LARGEST_BLOCK = 1 << 33
"""Rows times weight of an interaction stay below this, so that answers over 2^28 records fit 62 bits, and variances the sampler."""
MOST_FORMS = 4096
MOST_ALONE = 1024
"""Up to so many interactions each has a precision of its own; beyond, exchangeable ones share one where there are any."""


class _Weighed(NamedTuple):
    """Integer weights of the candidates, their objective, what no weights come below, and whether a clock ended the search."""

    weights: Ints
    value: float
    bound: float | None
    cut_short: bool


@dataclass(frozen=True)
class Unequal(CubeStrategy):
    """Unequal noise, optimised for what is published after least squares.

    Parameters
    ----------
    goal
        ``"total"``: least weighted sum of variances; ``"max"``: least maximal weighted variance.
    cells
        Whether a cuboid counts once for each of its cells; ``True`` gives the least error over all published cells.
    seconds
        Where a limit in time is wanted: seconds for the search, for pure epsilon, in place of the usual work. What it cuts short
        may differ from run to run, and says so.
    work
        Units of work for the search, about a million a second; 0 for the shortest one.

    Examples
    --------
    >>> from itertools import combinations
    >>> from policygraph.model.loss import Rho
    >>> domain = Domain({"sex": 2, "age": 7, "salary": 5})
    >>> sets = [s for k in range(4) for s in combinations(domain.names, k)]
    >>> made = Unequal("max").choose(domain, sets, [1] * 8, Policy(domain), Rho("1/2"))
    >>> made.kind, round(made.objective, 2), made.gap < 1e-3
    ('interactions', 3.89, True)
    """

    goal: Goal = "total"
    cells: bool = False
    seconds: float | None = None
    name: str = "unequal"
    work: int | None = None

    def __post_init__(self) -> None:
        if self.goal not in ("total", "max"):
            raise InputError(
                f"goal={self.goal!r}: expected 'total' or 'max'.", code="cubes.goal", value=self.goal
            )

    def choose(
        self, domain: Domain, published: Sets, weights: Sequence[float], policy: Policy, loss: Loss
    ) -> Choice:
        task = Task(domain, published, self.counted(domain, published, weights), policy, loss)
        if not task.wanted:
            return task.choice([], reason="Everything that is published is known exactly.")
        if not isinstance(loss, Epsilon) and changed_sets(task.lattice, policy) is not None:
            try:
                return optimal_blocks(task, self.goal)
            except RefusedError:
                pass  # too many interactions, or too many sets of attributes that can change: weigh cuboids
        return self._cuboids(task, published, policy, loss)

    def counted(self, domain: Domain, published: Sets, weights: Sequence[float]) -> list[float]:
        """Importance of each published cuboid, times its cells if these count."""
        sizes = (float(np.prod([len(domain.labels(n)) for n in names])) for names in published)
        return [w * (n if self.cells else 1.0) for w, n in zip(weights, sizes, strict=True)]

    def _cuboids(self, task: Task, published: Sets, policy: Policy, loss: Loss) -> Choice:
        weighing = Weighing(task, self.goal)
        if not weighing.total.size:
            reason = "All that is published follows from known tables, but for attributes of one value."
            return task.choice(task.lattice.maximal(task.wanted), reason=reason)
        # The best weights are the same for every epsilon, and plans ask for many.
        asked = tuple(task.published), tuple(task.importance.tolist()), policy.fingerprint, loss.norm
        found = current().once(
            (task.lattice.domain, asked, self), lambda: self._weighed(task, weighing, published, policy, loss)
        )
        chosen = np.flatnonzero(found.weights)
        reason = (
            f"{len(chosen)} of {len(task.candidates)} cuboids were measured with unequal noise, for the least "
            f"{'maximal' if self.goal == 'max' else 'total'} variance after least squares by local search"
            + (
                "."
                if not found.bound
                else f", within a factor of {max(1.0, found.value / found.bound):.3g} of a proved bound."
            )
        )
        return task.choice(
            [task.candidates[at] for at in chosen],
            [int(found.weights[at]) for at in chosen],
            objective=found.value * task.unit if task.costs.exact else None,
            bound=min(found.bound, found.value) * task.unit if found.bound else None,
            reason=reason,
            cut_short=found.cut_short,
        )

    def _weighed(
        self, task: Task, weighing: Weighing, published: Sets, policy: Policy, loss: Loss
    ) -> _Weighed:
        """The best weights that a search finds, in units of the noise."""
        try:
            greedy = BMax(work=0).choose(
                task.lattice.domain, published, task.importance.tolist(), policy, loss
            )
            masks = [task.lattice.mask(names) for names in greedy.sets]
        except RefusedError:
            tops = set(task.lattice.maximal(task.wanted))
            masks = [mask for mask in task.candidates if mask in tops]
        first = task.weights_of(masks, [1.0] * len(masks))
        effort = allowed(self.work, self.seconds, SEARCH)
        _, weights = weighing.search([first, np.ones(len(task.candidates))], effort)
        trials = [rounded(weights, largest) for largest in (LARGEST, LARGEST // 3, 256)]
        trials.append(first.astype(np.int64))
        values = weighing.value(np.stack(trials, axis=1).astype(np.float64))
        best = int(order(values)[0])
        bound = self._proved(task, weighing, weights) if task.costs.exact else None
        return _Weighed(trials[best], float(values[best]), bound, effort.cut_short)

    def _proved(self, task: Task, weighing: Weighing, weights: Floats) -> float | None:
        """What no weights come below: for L1 the better of two bounds, none for L2 (where interactions do better)."""
        if task.loss.norm != "l1":
            return None
        made = least_value(weighing, weights)
        try:
            _, cells, forms, _ = block_problem(task, self.goal)
        except RefusedError:
            return made
        # (sum a w)^2 >= min a * sum a w^2, the squared L2 sensitivity, and interactions are at least as good there.
        least = float(task.costs.forms[task.costs.forms > 0].min())
        return max(made, least * optimal_precisions(cells, forms, self.goal)[0] * (1 - 1e-9))


def block_forms(task: Task, family: Family, masks: Sequence[int]) -> Floats:
    """What a unit of precision of each interaction costs under the policy in squared L2, one row for each kind of step."""
    domain, lattice, policy = task.lattice.domain, task.lattice, task.policy
    shape = domain.shape
    queries = [BlockQuery(domain, [lattice.names(mask)]) for mask in masks]
    gains = np.array(
        [float(np.prod([float(contrast_gain(shape[a])) for a in lattice.axes(m)])) for m in masks]
    )
    rows = []
    sets = changed_sets(lattice, policy)
    if sets is None:
        raise RefusedError("public facts couple the records.", code="sensitivity.sets")
    if -1 in sets:
        rows.append([float(query.column_norms(np.zeros(1, dtype=np.int64), "l2")[0]) for query in queries])
    if sets != [-1]:
        changes = (
            all_difference_sets(policy.graph)
            if policy.definition == "edges" and policy.graph is not None
            else _inside(task, sets[0], masks)
        )
        if len(changes) > MOST_FORMS:
            raise RefusedError("too many sets of attributes can change at once.", code="sensitivity.sets")
        for names in changes:
            rows.append([float(query.difference_norm(names, "l2")) for query in queries])
    made: Floats = np.array(rows, dtype=np.float64) / gains[None, :]
    return made


def _inside(task: Task, changed: int, masks: Sequence[int]) -> list[frozenset[str]]:
    """All sets of attributes that a record can change beside one public margin, as far as the interactions see them."""
    used = 0
    for mask in masks:
        used |= mask
    shape = task.lattice.domain.shape
    free = [axis for axis in task.lattice.axes(changed & used) if shape[axis] > 1]
    if 1 << len(free) > MOST_FORMS:
        raise RefusedError("too many sets of attributes can change at once.", code="sensitivity.sets")
    free_mask = task.lattice.mask_of(free)
    return [frozenset(task.lattice.names(some)) for some in task.lattice.below(free_mask) if some]


def block_problem(task: Task, goal: Goal) -> tuple[list[int], Any, Floats, Ints]:
    """The interactions of what is wanted, the variances that their precisions give, what these cost in squared L2, and which interactions share a precision.

    Where there are many interactions, or many sets of attributes that can change, those that exchanging attributes takes into each other share one: the optimum is
    symmetric where the problem is (Theorem 4 of ``docs/explanation/proofs/interactions.md``).
    """
    family = Family(task.lattice, task.wanted)
    several = np.array(
        [all(task.lattice.domain.shape[a] > 1 for a in task.lattice.axes(m)) for m in family.masks.tolist()]
    )
    free = several & ~known_blocks(family, task.known)
    masks = [int(m) for m in family.masks[free]]
    alike = None
    if len(masks) > MOST_ALONE or (reach := _reach(task)) is None or reach.number > MOST_FORMS:
        alike = _by_kind(task, masks)
    groups = np.arange(len(masks)) if alike is None else alike[0]
    forms = block_forms(task, family, masks) if alike is None else alike[1]
    if goal == "total":
        # Of a sum only the sums over cuboids matter, which takes one vector however many there are.
        spread = family.spread(task.wanted, task.wanted_importance)
        cells: Any = cell_variances_adjoint(family, spread)[free][None, :]
    else:
        shown = np.arange(len(task.wanted)) if alike is None else alike[2]
        wanted = family.at([task.wanted[at] for at in shown])
        cells = cell_shares(family, family.masks[free], wanted, task.wanted_importance[shown])
    if alike is not None:
        kinds = np.zeros((len(masks), int(groups.max()) + 1))
        kinds[np.arange(len(masks)), groups] = 1.0
        cells = np.asarray(cells @ kinds)
    return masks, cells, forms, groups


def _reach(task: Task) -> Steps | None:
    """The sets of attributes that one record can change at once, where these are all small subsets of some attributes."""
    sets, policy = changed_sets(task.lattice, task.policy), task.policy
    if sets is None or sets == [-1]:
        return Steps((), 0)
    if policy.definition == "edges" and policy.graph is not None:
        return subsets_that_differ(policy.graph)
    names = task.lattice.names(sets[0])
    return Steps(tuple(names), len(names))


def _by_kind(task: Task, masks: Sequence[int]) -> tuple[Ints, Floats, Ints] | None:
    """Kinds of interactions, what a unit of precision of all of one kind costs, and a published cuboid of each kind; None where attributes differ too much."""
    sets, steps, domain = changed_sets(task.lattice, task.policy), _reach(task), task.lattice.domain
    if sets is None or steps is None:
        return None
    counts = dict.fromkeys(masks, 0.0) | dict(zip(task.wanted, task.wanted_importance.tolist(), strict=True))
    inside = set(masks)
    classes = Exchangeable(
        domain, {mask: (weight, mask in inside) for mask, weight in counts.items()}, steps.names
    )
    if prod(classes.shape) > MOST_FORMS:
        return None
    kinds = list(dict.fromkeys(map(classes.kind, masks)))
    place = {kind: at for at, kind in enumerate(kinds)}
    groups = np.array([place[classes.kind(mask)] for mask in masks])
    gains = [
        prod(contrast_gain(n) ** number for n, number in zip(classes.sizes, kind, strict=True))
        for kind in kinds
    ]
    rows = [[float(classes.column(kind, "l2")) for kind in kinds]] if -1 in sets else []
    if sets != [-1]:
        changes = np.stack([classes.changes({kind: 1}, "l2").ravel() for kind in kinds], axis=1)
        numbers = np.indices(classes.shape).reshape(len(classes.shape), -1).sum(axis=0)
        rows += changes[(numbers > 0) & (numbers <= steps.most)].astype(np.float64).tolist()
    forms: Floats = np.array(rows, dtype=np.float64) / np.array(gains, dtype=np.float64)
    first: dict[tuple[int, ...], int] = {}
    for at, mask in enumerate(task.wanted):
        first.setdefault(classes.kind(mask), at)
    return groups, forms, np.array(list(first.values()))


def optimal_blocks(task: Task, goal: Goal) -> Choice:
    """The best precisions of all interactions for zCDP, with a proved bound."""
    masks, cells, forms, groups = block_problem(task, goal)
    bound, q = optimal_precisions(cells, forms, goal)
    weights = _block_weights(task, masks, q[groups])
    shape = task.lattice.domain.shape
    scale = [float(np.prod([float(contrast_gain(shape[a])) for a in task.lattice.axes(m)])) for m in masks]
    real = np.zeros(len(q))
    real[groups] = np.square(weights.astype(np.float64)) * np.array(scale)
    variances = (cells @ (1.0 / real)) * float((forms @ real).max())
    value = float(variances.max() if goal == "max" else variances.sum())
    gap = 100 * max(0.0, value / bound - 1)
    return task.choice(
        masks,
        [int(w) for w in weights],
        kind="interactions",
        objective=value * task.unit,
        bound=min(bound, value) * task.unit,
        reason=f"{len(masks)} interactions were measured with unequal noise, for the least "
        f"{'maximal' if goal == 'max' else 'total'} variance, within {_percent(gap)} % of a proved bound.",
    )


def _percent(gap: float) -> str:
    """A small share in words that do not hang on the last digits of floats."""
    return "0.001" if gap < 1e-3 else f"{gap:.2g}"


def _block_weights(task: Task, masks: Sequence[int], q: Floats) -> Ints:
    """Integers w_S with w_S^2 times the gain of the rows of S in proportion to the precisions."""
    shape = task.lattice.domain.shape
    logs = np.array(
        [sum(np.log(float(contrast_gain(shape[a]))) for a in task.lattice.axes(m)) for m in masks]
    )
    asked = 0.5 * (np.log(q) - logs)
    ideal = np.exp(settled(asked - asked.max()))
    reach = np.exp(0.5 * logs)
    # As fine as the sizes allow: SMALLEST for the smallest weight, while no row entry times weight passes the limit.
    scale = min(
        max(SMALLEST / float(ideal.min()), float(LARGEST)), LARGEST_BLOCK / float((ideal * reach).max())
    )
    if scale * float(ideal.min()) < 4:
        raise RefusedError("interactions of this many values leave 64-bit integers.", code="query.overflow")
    made: Ints = np.rint(ideal * scale).astype(np.int64)
    return made


@dataclass(frozen=True)
class Fourier(CubeStrategy):
    """Measure the interactions of all published cuboids directly, alike or with a given emphasis.

    On binary attributes these are the Fourier coefficients. Rows of attributes with more values are n I - J.

    Parameters
    ----------
    even
        True: the same weight for each interaction. False: precisions as :class:`Unequal` would choose them in L2.

    Notes
    -----
    What the public facts determine is not measured. Interactions that attributes of one kind can be exchanged in, for example all up to an order, have a sensitivity in
    closed form for any number of attributes (``docs/explanation/proofs/interactions.md``).

    Examples
    --------
    >>> domain = Domain({"a": 2, "b": 2})
    >>> made = Fourier().choose(domain, [("a",), ("b",)], [1, 1], Policy(domain), Epsilon(1))
    >>> made.sets
    (('a',), ('b',), ())
    """

    even: bool = True
    name: str = "fourier"

    def choose(
        self, domain: Domain, published: Sets, weights: Sequence[float], policy: Policy, loss: Loss
    ) -> Choice:
        task = Task(domain, published, weights, policy, loss)
        if not task.wanted:
            return task.choice([], reason="Everything that is published is known exactly.")
        if not self.even and changed_sets(task.lattice, policy) is None:
            raise InputError(
                "the best precisions of interactions are known without public facts, and beside one public margin: expected no others. Use even=True, or cuboids.",
                code="cubes.facts",
            )
        if not self.even:
            return optimal_blocks(task, "total")
        family = Family(task.lattice, task.wanted)
        masks = [
            int(mask)
            for mask in family.masks
            if not task.is_known(int(mask)) and all(domain.shape[a] > 1 for a in task.lattice.axes(int(mask)))
        ]
        return task.choice(
            masks, kind="interactions", reason=f"{len(masks)} interactions were measured directly, alike."
        )


SHARPNESS = (30.0, 300.0, 3000.0)
STEPS = 300
ROUNDING = 1 - 1e-9
TINY = 1e-250
COARSE = 1 << 8
"""Logarithms of weights at which the bound is computed are multiples of one over this."""


def least_value(weighing: Weighing, start: Floats) -> float:
    """A number that no weights of the candidates come below, in the units of :meth:`Weighing.value`, for the L1 norm.

    Parameters
    ----------
    weighing
        The problem.
    start
        Weights to begin at; the better they are, the sooner the bound is good. Any give a valid one.

    Notes
    -----
    The program walks down the convex problem; every point that it stops at gives a bound, and the largest is returned.
    """
    matrix = (
        weighing.from_weights.sqrt()
        if hasattr(weighing.from_weights, "sqrt")
        else np.sqrt(weighing.from_weights)
    )
    total = weighing.total.reshape(1, -1)
    best = _walked(matrix, total, weighing.forms, start)
    if weighing.goal == "max":
        # A maximum is at least the mean.
        best = max(
            best / weighing.to_cells.shape[0], _walked(matrix, weighing.to_cells, weighing.forms, start)
        )
    return best * ROUNDING


def _walked(matrix: Any, cells: Any, forms: Floats, start: Floats) -> float:
    """The best bound of the points where a descent of the convex problem stops."""
    theta = np.log(np.maximum(start / start.max(), 1e-3))
    best = 0.0
    for sharpness in SHARPNESS:
        step = partial(_smooth, matrix=matrix, cells=cells, forms=forms, sharpness=sharpness)
        _, theta = minimise(step, theta, STEPS, 1e-12)
        theta = np.maximum(theta - theta.max(), -40.0)
        # The bound is flat where it is best: a coarse grid costs little, and other last digits lead to the same point of it.
        weights = np.exp(settled(theta, COARSE))
        roots = np.maximum(matrix @ weights, TINY)
        parts, costs = np.maximum(cells @ roots**-2, TINY), np.maximum(forms @ weights, TINY)
        for c in (
            soft_max(np.log(parts), sharpness)[1] / parts,
            soft_max(np.log(parts), 10 * sharpness)[1] / parts,
        ):
            prices = soft_max(np.log(costs), sharpness)[1] / costs
            shares, prices = c / c.sum(), prices / prices.sum()
            with np.errstate(over="ignore"):
                y = np.asarray(shares @ cells) * roots**-3
            best = max(best, bound_at(matrix, cells, forms, shares, prices, y))
    return best


def bound_at(matrix: Any, cells: Any, forms: Floats, shares: Floats, prices: Floats, y: Floats) -> float:
    """The bound that some shares of cuboids, prices of forms and multipliers of blocks prove.

    Examples
    --------
    Two tables of one value each, wanted alike: equal weights are best, and reach 2 * (1 + 1)^2.

    >>> one, even = np.eye(2), np.array([1.0, 1.0])
    >>> round(bound_at(one, even.reshape(1, 2), even.reshape(1, 2), np.ones(1), np.ones(1), even), 9)
    8.0
    """
    if not np.all(np.isfinite(y)) or y.max() <= 0:
        return 0.0
    y = y / y.max()
    g, price = np.asarray(shares @ cells), prices @ forms
    worth = np.asarray(y @ matrix)
    largest = float((worth[price > 0] / price[price > 0]).max(initial=0.0))
    if np.any(worth[price <= 0] > 0) or largest <= 0:
        return 0.0
    return float((np.sum(np.cbrt(g * y * y)) ** 1.5 / largest) ** 2)


def _smooth(theta: Floats, matrix: Any, cells: Any, forms: Floats, sharpness: float) -> tuple[float, Floats]:
    """Logarithm of the convex objective with soft maxima, and its slopes, at logarithms of weights."""
    weights = np.exp(np.clip(theta - theta.max(), -40.0, 0.0))
    roots = np.maximum(matrix @ weights, 1e-100)
    parts = np.maximum(cells @ roots**-2, TINY)
    high, soft = soft_max(np.log(parts), sharpness)
    by_roots = -2 * np.asarray((soft / parts) @ cells) * roots**-3
    costs = np.maximum(forms @ weights, TINY)
    dear, paid = soft_max(np.log(costs), sharpness)
    slopes = (np.asarray(by_roots @ matrix) + 2 * ((paid / costs) @ forms)) * weights
    return float(high + 2 * dear), slopes
