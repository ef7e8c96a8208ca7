"""Non-negative tables that agree with each other, as an optimum that is reached. Owns :class:`NonnegativeFit` and :func:`nonnegative_tables`.

The finest table is never built. Unknowns are the interaction blocks, in which the distance to the least-squares estimate is diagonal; each of the largest tables has to be
non-negative. The alternating direction method of multipliers needs one pass down and one pass up the cuboid lattice for a step, and its multipliers are non-negative, so
that they prove a lower bound: it stops when the bound is near (``docs/explanation/proofs/cubes-consistency.md``, section 2). Sees noisy numbers only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from policygraph.distributions.replay import Replay
from policygraph.errors import RefusedError
from policygraph.estimation.cubes.cells import spread, summed
from policygraph.transforms.cuboids.blocks import Tables, join, project, split
from policygraph.transforms.cuboids.costs import block_precisions, cells_of_blocks
from policygraph.transforms.cuboids.lattice import Family, Floats

GAP = 1e-3
"""The duality gap to reach, as a share of what least squares is expected to miss the truth by."""
WORK = 400_000_000
"""Cells of all tables times steps of one fit."""
FEWEST, MOST = 20, 400
"""Steps of one fit."""
RELAXED = 1.7
CHECKED = 5
"""Steps between two looks at the gap."""
STRENGTHS = (1 / 64, 1 / 16, 1 / 4, 1.0)
"""Weights of a relative entropy that are compared: 1 is that of counts that are Poisson around the smooth table."""
SMOOTHED = 1 << 20
"""Cells of all tables up to which smoother tables are considered."""
PASSES = 2
"""How often the smooth table is made anew from the fitted one."""
SHARE = 0.5
"""Of the noise that is added to choose: the rest of the noisy numbers has noise of one over this."""
SCALINGS = 10
SLACK = 1e-4
"""Share of an even table that cells keep at least where exactly known tables leave no even table to mix with."""


@dataclass(frozen=True, eq=False)
class NonnegativeFit:
    """Non-negative tables, and how near to the optimum they are.

    Attributes
    ----------
    tables
        A table of every cuboid of the family. They agree with each other up to float errors.
    value, bound
        The objective at the tables, and what no non-negative tables can beat.
    scale
        What the distance part of the objective is expected to be at the truth.
    steps
        Steps that were taken.
    smoothing
        Weight of the relative entropy to a smooth table; 0: the nearest tables.
    program, smooth
        What was minimised.
    """

    tables: Tables
    value: float
    bound: float
    scale: float
    steps: int
    smoothing: float = 0.0
    program: Projection | None = None
    smooth: Tables | None = None

    def gap_at(self, tables: Mapping[int, Any]) -> float:
        """The gap of other tables than these, which agree as well."""
        if self.program is None:
            return 0.0
        return max(self.program.objective(tables, self.smoothing, self.smooth) - self.bound, 0.0) / self.scale

    @property
    def gap(self) -> float:
        """Objective less bound, as a share of what is expected at the truth."""
        return max(self.value - self.bound, 0.0) / self.scale


def balanced(family: Family, precisions: Floats, free: Any, published: Sequence[int]) -> Floats:
    """Weights of the blocks in a distance that counts the noise and the published cells alike.

    Parameters
    ----------
    precisions
        One over the variance of each block after least squares, along the family.
    free
        Which blocks are estimated.
    published
        Cuboids whose cells count.

    Notes
    -----
    The squared error of least squares is expected to be as large in the norm of the noise as in the (scaled) norm of the published cells; the weights are the mean of
    both. Blocks below no published cuboid count by their noise alone.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> from policygraph.transforms.cuboids.lattice import Lattice
    >>> family = Family(Lattice(Domain({"a": 2, "b": 2})), [3])
    >>> balanced(family, np.array([1.0, 1.0, 1.0, 1.0]), np.ones(4, dtype=bool), [3]).round(3).tolist()
    [0.722, 0.944, 0.944, 1.389]
    """
    lattice = family.lattice
    dims = dimensions(family)
    cells = block_precisions(family, family.spread(list(dict.fromkeys(published)), 1.0))
    known = np.where(free, precisions, np.inf)
    expected = float((dims * cells / known).sum())
    if expected <= 0.0 or not lattice.order:
        return precisions
    made: Floats = (precisions + cells * float(dims[free].sum()) / expected) / 2
    return made


def dimensions(family: Family) -> Floats:
    """Dimension of every block."""
    made = np.ones(len(family))
    for axis, n in enumerate(family.lattice.domain.shape):
        made *= np.where((family.masks >> axis) & 1, n - 1.0, 1.0)
    return made


class Projection:
    """Tables that are non-negative and near to given ones, in a distance that is diagonal in blocks.

    Parameters
    ----------
    family
        All cuboids that have a block.
    weights
        Of the squared distance of each block, along the family.
    fixed
        Which blocks are known exactly.
    tables
        The given tables, of every cuboid of the family; they agree.
    closed
        Cells of the largest tables that are empty, by cuboid.
    rough
        Whether tables may end a little below 0, because exact ones are made of them afterwards.
    """

    def __init__(
        self,
        family: Family,
        weights: Floats,
        fixed: Any,
        tables: Mapping[int, Any],
        closed: Mapping[int, Any] | None = None,
        *,
        rough: bool = False,
    ) -> None:
        self.family, self.lattice = family, family.lattice
        self.closed, self.rough = dict(closed or {}), rough
        self.masks: list[int] = family.masks.tolist()
        self.fixed = {mask: bool(f) for mask, f in zip(self.masks, fixed, strict=True)}
        self.weights = dict(zip(self.masks, weights.tolist(), strict=True))
        dims = dimensions(family)
        self.scale = max(float(dims[~np.asarray(fixed)].sum()) / 2, 0.5)
        self.centre: Tables = {mask: project(np.asarray(tables[mask])) for mask in self.masks}
        variances = np.where(fixed, 0.0, 1.0 / weights)
        spreads = cells_of_blocks(family, np.where(dims > 0, variances, 0.0))
        places = family.index
        self.tops = [m for m in self.lattice.maximal(self.masks) if spreads[places[m]] > 0]
        self.penalty = {mask: 1.0 / float(spreads[places[mask]]) for mask in self.tops}
        self.cells = int(sum(self.lattice.size(mask) for mask in self.masks))
        self.most = int(np.clip(WORK // max(self.cells, 1), FEWEST, MOST))

    def with_centre(self, centre: Tables) -> Projection:
        """The same program around other blocks."""
        made = object.__new__(Projection)
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k != "given"})
        made.centre = centre
        return made

    @cached_property
    def given(self) -> Tables:
        """The tables that are approached."""
        return self.joined(self.centre)

    @property
    def only_total(self) -> bool:
        """Whether nothing but the total is known exactly, so that an even table fulfils all that is known."""
        return not any(
            known and mask and all(n > 1 for n in self.lattice.shape(mask))
            for mask, known in self.fixed.items()
        )

    def joined(self, blocks: Tables) -> Tables:
        """The tables with some blocks."""
        made = {mask: np.array(block) for mask, block in blocks.items()}
        join(self.family, made)
        return made

    def distance(self, blocks: Tables) -> float:
        """Half the weighted squared distance of some blocks to the given ones."""
        parts = [
            0.5 * self.weights[mask] * float(np.square(blocks[mask] - self.centre[mask]).sum())
            for mask in self.masks
            if not self.fixed[mask]
        ]
        return float(sum(parts))

    def objective(self, tables: Mapping[int, Any], strength: float, smooth: Tables | None) -> float:
        """What is minimised: the distance of tables plus a weight times their relative entropy to smooth ones."""
        value = self.distance({mask: project(np.asarray(tables[mask])) for mask in self.masks})
        if strength and smooth is not None:
            value += strength * sum(_entropy(tables[mask], smooth[mask]) for mask in self.tops)
        return value

    def lower_bound(self, multipliers: Tables) -> float:
        """What the distance less the multipliers times the tables is at least."""
        linear = sum(float((multipliers[mask] * self.given[mask]).sum()) for mask in self.tops)
        pushed = {mask: np.array(table) for mask, table in multipliers.items()}
        split(self.family, pushed)
        square = [
            float(np.square(pushed[mask]).sum()) / self.weights[mask]
            for mask in self.masks
            if mask in pushed and not self.fixed[mask]
        ]
        return -linear - float(sum(square)) / 2

    def even(self, total: float) -> Tables:
        """Tables of equal cells."""
        return {
            mask: np.full(self.lattice.shape(mask), total / self.lattice.size(mask)) for mask in self.masks
        }

    def floors(self) -> Tables:
        """A small part of every cell that known tables leave room for: 0 where one of them has a 0."""
        made: Tables = {}
        for top in self.tops:
            least = np.full(self.lattice.shape(top), max(float(self.given[0]), 0.0) / self.lattice.size(top))
            for mask in self.masks:
                if self.fixed[mask] and mask and self.lattice.computable(mask, of=top):
                    part = np.maximum(self.given[mask], 0.0) / self.lattice.size(top & ~mask)
                    least = np.minimum(least, spread(self.lattice, part, mask, top))
            made[top] = SLACK * least
        return made

    def solve(self, strength: float = 0.0, smooth: Tables | None = None) -> NonnegativeFit:
        """Non-negative tables at the least distance plus a relative entropy to smooth tables.

        Parameters
        ----------
        strength
            Weight of the relative entropy.
        smooth
            Positive tables of the largest cuboids.
        """
        if not self.tops:
            return NonnegativeFit(self.given, 0.0, 0.0, self.scale, 0)
        low = None if self.only_total or self.rough else self.floors()
        penalty = dict(self.penalty)
        near = self._near(penalty)
        z = {mask: np.maximum(self.given[mask], 0.0) for mask in self.tops}
        u = {mask: np.zeros_like(table) for mask, table in z.items()}
        best: NonnegativeFit | None = None
        for step in range(1, self.most + 1):
            pulled = {mask: penalty[mask] * (z[mask] - u[mask]) for mask in self.tops}
            split(self.family, pulled)
            blocks = {mask: self._block(mask, pulled, near) for mask in self.masks}
            x = self.joined(blocks)
            apart = moved = 0.0
            for mask in self.tops:
                aim = RELAXED * x[mask] + (1 - RELAXED) * z[mask] + u[mask]
                if strength and smooth is not None:
                    new = _near_smooth(aim, smooth[mask], strength / penalty[mask])
                else:
                    new = np.maximum(aim, 0.0 if low is None else low[mask])
                if mask in self.closed:
                    new = np.where(self.closed[mask], 0.0, new)
                apart += penalty[mask] * float(np.square(x[mask] - new).sum())
                moved += penalty[mask] * float(np.square(new - z[mask]).sum())
                u[mask], z[mask] = aim - new, new
            if step % CHECKED and step < self.most:
                continue
            multipliers = {mask: -penalty[mask] * u[mask] for mask in self.tops}
            made = self._checked(x, multipliers, strength, smooth, step)
            if made is not None and (best is None or made.value - made.bound < best.value - best.bound):
                best = made
            if best is not None and best.gap <= GAP:
                break
            factor = 2.0 if apart > 10 * moved else 0.5 if moved > 10 * apart else 1.0
            if factor != 1.0 and 2 * step <= self.most:
                penalty = {mask: p * factor for mask, p in penalty.items()}
                near = self._near(penalty)
                u = {mask: table / factor for mask, table in u.items()}
        if best is None:
            raise RefusedError(
                f"no non-negative tables with the known ones were found within {self.most} steps. Publish tables whose attributes have a finest table "
                "that can be held, state fewer known tables, or leave out nonnegative.",
                code="cubes.nonnegative",
            )
        return best

    def _near(self, penalty: Mapping[int, float]) -> dict[int, float]:
        sums = block_precisions(self.family, self.family.spread(self.tops, [penalty[m] for m in self.tops]))
        return dict(zip(self.masks, sums.tolist(), strict=True))

    def _block(self, mask: int, pulled: Tables, near: Mapping[int, float]) -> Floats:
        if self.fixed[mask] or mask not in pulled:
            return self.centre[mask]
        weight = self.weights[mask]
        made: Floats = (weight * self.centre[mask] + pulled[mask]) / (weight + near[mask])
        return made

    def _checked(
        self, x: Tables, multipliers: Tables, strength: float, smooth: Tables | None, steps: int
    ) -> NonnegativeFit | None:
        """The tables made exactly non-negative, with the bound that the multipliers prove; None where that cannot be."""
        total = float(x[0])
        least = min(float(x[mask].min()) for mask in self.tops)
        if least < 0 and not self.rough:
            if not self.only_total:
                return None
            even = self.even(max(total, 0.0))
            share = 1.0
            if total > 0:
                lows = {m: np.minimum(x[m], 0.0) for m in self.tops}
                share = max(float((-low / (even[m] - low)).max()) for m, low in lows.items())
                share = min(share * (1 + 1e-9) + 1e-12, 1.0)
            x = {mask: (1 - share) * x[mask] + share * even[mask] for mask in self.masks}
        value = self.objective(x, strength, smooth)
        if strength and smooth is not None:
            bound = self.lower_bound(multipliers)
            with np.errstate(over="ignore"):  # infinite where the multipliers prove nothing
                for mask in self.tops:
                    grown = smooth[mask] * np.expm1(-multipliers[mask] / strength)
                    bound -= strength * float(grown.sum())
            bound = max(bound, 0.0)  # the distance and the entropy are never negative
        else:
            bound = self.lower_bound(
                {
                    m: np.where(self.closed.get(m, False), t, np.maximum(t, 0.0))
                    for m, t in multipliers.items()
                }
            )
        return NonnegativeFit(x, value, bound, self.scale, steps, strength, self, smooth)

    def smoothed(self, tables: Tables) -> Tables:
        """Positive tables of the largest cuboids with the margins of some tables and no higher interactions: pairs of attributes, or single ones in tables of two."""
        total = max(float(tables[0]), 1e-9)
        single: dict[int, Floats] = {}
        made: Tables = {}
        for axis, n in enumerate(self.lattice.domain.shape):
            if 1 << axis in tables:
                raised = np.maximum(tables[1 << axis], min(1.0, total / n))
                single[axis] = raised / raised.sum()
        for top in self.tops:
            axes = self.lattice.axes(top)
            x = np.full((), total)
            for axis in axes:
                x = np.multiply.outer(x, single[axis])
            pairs = [(1 << a) | (1 << b) for a in axes for b in axes if a < b] if len(axes) > 2 else []
            goals = []
            for pair in pairs:
                first, second = self.lattice.axes(pair)
                goal = np.maximum(tables[pair], 0.0) + 1e-3 * total * np.multiply.outer(
                    single[first], single[second]
                )
                goals.append(goal * (total / goal.sum()))
            for _ in range(SCALINGS):
                for pair, goal in zip(pairs, goals, strict=True):
                    x = x * spread(self.lattice, goal / summed(self.lattice, x, top, pair), pair, top)
            made[top] = np.maximum(x, 1e-12 * total)
        return made

    def estimate(self, strength: float, first: NonnegativeFit) -> NonnegativeFit:
        """The fit of one strength: around smooth tables that are made of the nearest ones, and anew of what was fitted."""
        made = first
        for _ in range(PASSES if strength else 0):
            made = self.solve(strength, self.smoothed(made.tables))
        return made


def _near_smooth(aim: Floats, smooth: Floats, weight: float) -> Floats:
    """The least of ``weight KL(z | smooth) + (z - aim)^2 / 2`` in every cell, by Newton's method for log z from the right.

    With s = log z it solves ``weight s + exp(s) = aim + weight log(smooth)``, whose left side grows and is convex.
    """
    goal = aim + weight * np.log(smooth)
    s = np.minimum(goal / weight, np.log(np.maximum(goal, 1.0)))
    for _ in range(40):
        grown = np.exp(s)
        change = (weight * s + grown - goal) / (weight + grown)
        s -= change
        if float(np.abs(change).max(initial=0.0)) < 1e-9:
            break
    return np.exp(s)


def _entropy(x: Floats, smooth: Floats) -> float:
    held = np.maximum(x, 0.0)
    return float((held * np.log(np.maximum(held, 1e-300) / smooth) - held + smooth).sum())


def nonnegative_tables(
    family: Family,
    precisions: Floats,
    fixed: Any,
    tables: Mapping[int, Any],
    published: Sequence[int],
    closed: Mapping[int, Any] | None = None,
    *,
    rough: bool = False,
    smoothing: float | None = None,
) -> NonnegativeFit:
    """Non-negative tables near to least-squares ones; smoother than the nearest where the noisy numbers say that this is better.

    Parameters
    ----------
    family
        The measured and published cuboids with all below them.
    precisions
        One over the variance of each of their blocks after least squares.
    fixed
        Which blocks are known exactly.
    tables
        The least-squares tables, of every cuboid of the family.
    published
        Cuboids to be published.
    closed, rough
        As in :class:`Projection`.
    smoothing
        The weight of the relative entropy; None: chosen from the noisy numbers.

    Raises
    ------
    RefusedError
        When exactly known tables leave no non-negative tables that could be found.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> from policygraph.transforms.cuboids.lattice import Lattice
    >>> family = Family(Lattice(Domain({"a": 2, "b": 2})), [3])
    >>> tables = {3: np.array([[9.0, -2.0], [1.0, 4.0]]), 1: np.array([7.0, 5.0]), 2: np.array([10.0, 2.0]), 0: np.array(12.0)}
    >>> made = nonnegative_tables(family, np.array([0.25, 0.5, 0.5, 1.0]), np.zeros(4, dtype=bool), tables, [3])
    >>> made.tables[3].round(2).tolist(), made.gap < 0.001
    ([[9.0, 0.0], [1.0, 4.0]], True)
    """
    dims = dimensions(family)
    free = ~np.asarray(fixed) & (dims > 0)
    held = np.where(free & np.isfinite(precisions) & (precisions > 0), precisions, 1.0)
    program = Projection(family, balanced(family, held, free, published), ~free, tables, closed, rough=rough)
    first = program.solve()
    if first.value <= GAP * first.scale or program.cells > SMOOTHED or not program.only_total or closed:
        return first
    strength = _chosen(program, held, free) if smoothing is None else smoothing
    return program.estimate(strength, first)


def _chosen(program: Projection, precisions: Floats, free: Any) -> float:
    """The weight of the relative entropy that the noisy numbers speak for; 0 unless a larger one is better beyond doubt.

    Notes
    -----
    With w drawn like the noise, the estimate from ``y + a w`` is compared with ``y - w / a``. The noises of the two are uncorrelated (independent if they are Gaussian), so
    that the difference of two squared distances estimates the difference of the two errors without bias. Its standard deviation is at most ``2 sqrt(1 + 1/a^2)`` times the
    distance of the two estimates in the norm of the squared weights over precisions.
    """
    from scipy.special import ndtri

    replay = Replay(*(program.given[mask] for mask in program.tops))
    exact = dict(
        zip(program.masks, zip(precisions.tolist(), np.asarray(free).tolist(), strict=True), strict=True)
    )
    there, seen = dict(program.centre), dict(program.centre)
    for mask, (precision, estimated) in exact.items():
        if estimated:
            noise = project(ndtri(replay.uniform(program.lattice.shape(mask)))) / precision**0.5
            there[mask] = program.centre[mask] + SHARE * noise
            seen[mask] = program.centre[mask] - noise / SHARE
    other = program.with_centre(there)
    nearest = other.solve()
    before = {mask: project(nearest.tables[mask]) for mask in program.masks}
    best, strength = 0.0, 0.0
    for tried in STRENGTHS:
        after = other.estimate(tried, nearest).tables
        sums = np.zeros((2, 2))
        for mask, (precision, estimated) in exact.items():
            if not estimated:
                continue
            made = project(after[mask])
            apart = float(np.square(made - before[mask]).sum())
            gain = float((np.square(made - seen[mask]) - np.square(before[mask] - seen[mask])).sum())
            # In the norm of the noise, and in that of the balanced weights.
            for at, weight in enumerate((precision, program.weights[mask])):
                sums[at] += weight * gain, 4 * (1 + SHARE**-2) * weight**2 / precision * apart
        doubt = sums[:, 0] + np.sqrt(sums[:, 1])
        if float(doubt.max()) < 0 and float(doubt[1]) < best:
            best, strength = float(doubt[1]), tried
    return strength
