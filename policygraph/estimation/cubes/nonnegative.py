"""Non-negative tables that agree with each other, as an optimum that is reached. Owns :class:`NonnegativeFit` and :func:`nonnegative_tables`.

The finest table is never built. Unknowns are the interaction blocks, in which the distance to the least-squares estimate is diagonal; each of the largest tables has to be
non-negative. The alternating direction method of multipliers needs one pass down and one pass up the cuboid lattice for a step, and its multipliers are non-negative, so
that they prove a lower bound: it stops when the bound is near (``docs/explanation/proofs/cubes-consistency.md``, section 2). Sees noisy numbers only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from policygraph.distributions.replay import Replay
from policygraph.errors import RefusedError
from policygraph.estimation.cubes.cells import spread, summed
from policygraph.ties import SAME, clearly_less
from policygraph.transforms.cuboids.blocks import Tables, join, project, split
from policygraph.transforms.cuboids.costs import block_precisions, cells_of_blocks
from policygraph.transforms.cuboids.lattice import Family, Floats, Lattice

GAP = 1e-3
"""The duality gap to reach, as a share of what least squares is expected to miss the truth by: by Theorem 1a it costs at most a root of it, 3 %, and mostly far less."""
WORK = 400_000_000
"""Cells of all tables times steps of one fit: a bound on time alone, since the gap that was reached is stated."""
FEWEST, MOST = 20, 400
"""Steps of one fit, for the same reason."""
RELAXED = 1.7
"""Over-relaxation of a step: the method converges for every number between 0 and 2, and this one changes the speed only."""
CHECKED = 5
"""Steps between two looks at the gap, so that looking takes a small part of the time."""
SMOOTHED = 1 << 20
"""Cells of all tables up to which a prior is considered: a bound on time."""
PASSES = 4
"""How often the prior of the largest tables is made at most: of the fitted pairs of attributes, then of the fit itself. How often is chosen from the noisy numbers."""
SHARE = 0.5
"""Of the noise that is added to choose: the estimate is judged at 1 + 1/4 of the variance, against numbers of 1 + 4 of it."""
SCALINGS = 10
"""Sweeps of scaling to pairs: the result is the centre of a prior, which need not be met exactly."""
TRACE = 1.0
"""Records that are added to every pair in the centre of a prior, spread like independent attributes, so that no cell is closed for good."""
MULTIPLES, SQUARES = 2.0 ** np.arange(13), np.concatenate([[2.0**-40], 2.0 ** np.arange(-12, 7)])
"""Variances a p + b p^2 of a count around its centre p that are compared: from Poisson (a = 1, b = 0) to so wide that the prior says nothing; neighbours differ by a factor of
2, to which the estimate is insensitive."""
BINS = 8
"""Centres within a factor of 2^(1/8) share one place in the likelihood."""
SLACK = 1e-4
"""Share of an even table that cells keep at least where exactly known tables leave no even table to mix with."""
LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class Prior:
    """Counts of some tables as they are expected before the noisy numbers of these tables are seen.

    Attributes
    ----------
    centres
        Positive tables p.
    multiples, squares
        The count of a cell is expected to vary around p with variance ``a p + b p^2``: a and b of each table.
    """

    centres: Tables
    multiples: Mapping[int, float]
    squares: Mapping[int, float]

    def near(self, mask: int, aim: Floats, penalty: float, start: Floats) -> Floats:
        """The least of the deviance plus ``penalty (z - aim)^2 / 2`` in every cell, by Newton's method.

        It solves ``log(z / (1 + c z)) + k z = log(p / (1 + c p)) + k aim`` with c = b / a and k = a times the penalty. The left side grows and is concave, so that steps
        from the left never pass the root; steps that would leave the positive numbers, and those between small numbers, are made in log z.
        """
        a, c = self.multiples[mask], self.squares[mask] / self.multiples[mask]
        p, k = self.centres[mask].ravel(), a * penalty
        goal = np.log(p / (1 + c * p)) + k * aim.ravel()
        made: Floats = np.maximum(start.ravel(), LEAST)
        live = np.arange(made.size)
        for _ in range(100):
            z = made[live]
            grown = 1 + c * z
            step = (np.log(z / grown) + k * z - goal[live]) * grown / (1 + k * z * grown)
            bold = z * np.exp(-np.clip(step, -600.0, 600.0))
            new = np.where(step < 0.9, np.maximum(z * (1 - step), np.minimum(bold, 1 / (c + k))), bold)
            made[live] = np.maximum(new, LEAST)
            live = live[np.abs(step) > 1e-9]
            if not live.size:
                break
        return made.reshape(aim.shape)

    def slopes(self, mask: int, z: Floats) -> Floats:
        """Minus the derivative of the deviance: the multipliers for which z is the least of the deviance plus their product."""
        a, c, p = self.multiples[mask], self.squares[mask] / self.multiples[mask], self.centres[mask]
        made: Floats = (np.log(p) - np.log(z) - np.log1p(c * p) + np.log1p(c * z)) / a
        return made

    def conjugate(self, mask: int, z: Floats) -> float:
        """The least of the deviance plus the product with the slopes at z, summed over all cells."""
        a, c, p = self.multiples[mask], self.squares[mask] / self.multiples[mask], self.centres[mask]
        return float((np.log1p(c * p) - np.log1p(c * z)).sum()) / (a * c)

    def deviance(self, mask: int, x: Floats) -> float:
        """How far a table is from the centre: the deviance of a negative binomial distribution, divided by a."""
        a, c, p = self.multiples[mask], self.squares[mask] / self.multiples[mask], self.centres[mask]
        held = np.maximum(x, 0.0)
        parts = held * (np.log(np.maximum(held, LEAST)) - np.log(p)) - (held + 1 / c) * (
            np.log1p(c * held) - np.log1p(c * p)
        )
        return float(parts.sum()) / a


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
    program, prior
        What was minimised; without a prior they are the nearest tables.
    passes
        How often a prior was made.
    """

    tables: Tables
    value: float
    bound: float
    scale: float
    steps: int
    program: Projection | None = None
    prior: Prior | None = None
    passes: int = 0

    def gap_at(self, tables: Mapping[int, Any]) -> float:
        """The gap of other tables than these, which agree as well."""
        if self.program is None:
            return 0.0
        return max(self.program.objective(tables, self.prior) - self.bound, 0.0) / self.scale

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
    precisions
        One over the variance of each block; None: the weights.
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
        precisions: Floats | None = None,
    ) -> None:
        self.family, self.lattice = family, family.lattice
        self.closed, self.rough = dict(closed or {}), rough
        self.masks: list[int] = family.masks.tolist()
        self.fixed = {mask: bool(f) for mask, f in zip(self.masks, fixed, strict=True)}
        self.weights = dict(zip(self.masks, weights.tolist(), strict=True))
        held = weights if precisions is None else precisions
        self.precisions = dict(zip(self.masks, held.tolist(), strict=True))
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

    def with_noise(self, blocks: Tables, share: float) -> Projection:
        """The same program around blocks that have so much more noise."""
        made = object.__new__(Projection)
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k != "given"})
        made.centre = {
            mask: block + share * blocks[mask] if mask in blocks else block
            for mask, block in self.centre.items()
        }
        grown = 1 + share**2
        made.weights = {mask: weight / grown for mask, weight in self.weights.items()}
        made.precisions = {mask: precision / grown for mask, precision in self.precisions.items()}
        made.penalty = {mask: penalty / grown for mask, penalty in self.penalty.items()}
        return made

    def below(self, level: int) -> Projection:
        """The program of the tables of so many attributes at most, as if these were published."""
        masks = [mask for mask in self.masks if Lattice.level(mask) <= level]
        family = Family(self.lattice, self.lattice.maximal(masks))
        listed = family.masks.tolist()
        precisions = np.array([self.precisions[m] for m in listed])
        fixed = np.array([self.fixed[m] for m in listed])
        weights = balanced(family, precisions, ~fixed, self.lattice.maximal(masks))
        return Projection(family, weights, fixed, self.given, rough=self.rough, precisions=precisions)

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

    def objective(self, tables: Mapping[int, Any], prior: Prior | None) -> float:
        """What is minimised: the distance of tables plus their deviance from a prior."""
        value = self.distance({mask: project(np.asarray(tables[mask])) for mask in self.masks})
        if prior is not None:
            value += sum(prior.deviance(mask, tables[mask]) for mask in self.tops if mask in prior.centres)
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

    def solve(self, prior: Prior | None = None, start: Tables | None = None) -> NonnegativeFit:
        """Non-negative tables at the least distance, plus the deviance from a prior if there is one; from tables near the optimum it takes fewer steps."""
        if not self.tops:
            return NonnegativeFit(self.given, 0.0, 0.0, self.scale, 0)
        held = {} if prior is None else prior.centres
        low = None if self.only_total or self.rough else self.floors()
        penalty = dict(self.penalty)
        near = self._near(penalty)
        z = {mask: np.maximum(self.given[mask], held.get(mask, 0.0)) for mask in self.tops}
        u = {mask: np.zeros_like(table) for mask, table in z.items()}
        if prior is not None and start is not None:
            z |= {mask: np.maximum(start[mask], LEAST) for mask in held}
            u |= {mask: -prior.slopes(mask, z[mask]) / penalty[mask] for mask in held}
        best: NonnegativeFit | None = None
        for step in range(1, self.most + 1):
            pulled = {mask: penalty[mask] * (z[mask] - u[mask]) for mask in self.tops}
            split(self.family, pulled)
            blocks = {mask: self._block(mask, pulled, near) for mask in self.masks}
            x = self.joined(blocks)
            apart = moved = 0.0
            for mask in self.tops:
                aim = RELAXED * x[mask] + (1 - RELAXED) * z[mask] + u[mask]
                if prior is not None and mask in held:
                    new = prior.near(mask, aim, penalty[mask], z[mask])
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
            for mask in held:
                multipliers[mask] = prior.slopes(mask, z[mask]) if prior is not None else multipliers[mask]
            made = self._checked(x, z, multipliers, prior, step)
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
        self, x: Tables, z: Tables, multipliers: Tables, prior: Prior | None, steps: int
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
        value = self.objective(x, prior)
        held = {} if prior is None else prior.centres
        bound = self.lower_bound(
            {
                m: t if m in held else np.where(self.closed.get(m, False), t, np.maximum(t, 0.0))
                for m, t in multipliers.items()
            }
        )
        if prior is not None:
            bound += sum(prior.conjugate(mask, z[mask]) for mask in held)
            bound = max(bound, 0.0)  # the distance and the deviance are never negative
        return NonnegativeFit(x, value, bound, self.scale, steps, self, prior)

    def prior(self, tables: Tables) -> Prior:
        """A prior of the largest tables: centres from smaller tables, and how far the noisy numbers say that counts are from these.

        Notes
        -----
        The centre of a table has the pairs of attributes of the given tables and no higher interactions; in a table of two attributes it has independent ones. The residual of the
        least-squares table, all of whose lower interactions are removed, is the deviation of the counts plus noise of known variance v: a and b are those of the largest
        (normal) likelihood of the residuals with variance ``v + a p + b p^2``. Tables of one attribute have no prior.
        """
        made: Tables = {}
        multiples: dict[int, float] = {}
        squares: dict[int, float] = {}
        for top, centre in self.centres(tables).items():
            kept = float(np.prod([1 - 1 / n for n in centre.shape]))
            place = np.rint(BINS * np.log2(centre)).ravel()
            values, at = np.unique(place, return_inverse=True)
            p, many = 2.0 ** (values / BINS), np.bincount(at)
            residual = np.square(self.centre[top] - project(centre)).ravel() / kept
            sums = np.bincount(at, weights=residual)
            first, second = np.meshgrid(MULTIPLES, SQUARES, indexing="ij")
            variances = 1 / self.precisions[top] + first[..., None] * p + second[..., None] * p**2
            costs = (many * np.log(variances) + sums / variances).sum(axis=-1).ravel()
            best = float(costs.min())
            # The last digits of floats differ between processors and must not decide.
            chosen = int(np.flatnonzero(costs <= best + SAME * max(abs(best), 1.0))[0])
            made[top], multiples[top], squares[top] = (
                centre,
                float(first.flat[chosen]),
                float(second.flat[chosen]),
            )
        return Prior(made, multiples, squares)

    def centres(self, tables: Tables) -> Tables:
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
            if self.fixed[top] or len(axes) < 2:
                continue
            x = np.full((), total)
            for axis in axes:
                x = np.multiply.outer(x, single[axis])
            pairs = [(1 << a) | (1 << b) for a in axes for b in axes if a < b] if len(axes) > 2 else []
            goals = []
            for pair in pairs:
                first, second = self.lattice.axes(pair)
                goal = np.maximum(tables[pair], 0.0) + TRACE * np.multiply.outer(
                    single[first], single[second]
                )
                goals.append(goal * (total / goal.sum()))
            for _ in range(SCALINGS):
                for pair, goal in zip(pairs, goals, strict=True):
                    x = x * spread(self.lattice, goal / summed(self.lattice, x, top, pair), pair, top)
            made[top] = np.maximum(x, 1e-12 * total)
        return made

    def estimates(self) -> Iterator[NonnegativeFit]:
        """Fits with a prior, from small tables to large ones: single attributes, pairs around these, the largest tables around pairs, then again around the fit itself."""
        level = max(Lattice.level(mask) for mask in self.masks)
        made = self.below(1).solve()
        if level > 2:
            pairs = self.below(2)
            made = pairs.solve(pairs.prior(made.tables))
        start: Tables | None = None
        for _ in range(PASSES):
            made = self.solve(self.prior(made.tables), start)
            start = made.tables
            yield made


def nonnegative_tables(
    family: Family,
    precisions: Floats,
    fixed: Any,
    tables: Mapping[int, Any],
    published: Sequence[int],
    closed: Mapping[int, Any] | None = None,
    *,
    rough: bool = False,
    smoothing: int | None = None,
) -> NonnegativeFit:
    """Non-negative tables near to least-squares ones; with a prior where the noisy numbers say that this is better.

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
        How often a prior is made, 0 for none; None: chosen from the noisy numbers.

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
    weights = balanced(family, held, free, published)
    program = Projection(family, weights, ~free, tables, closed, rough=rough, precisions=held)
    if not closed and all(float(np.asarray(tables[mask]).min()) >= 0 for mask in program.tops):
        return NonnegativeFit(
            {mask: np.asarray(tables[mask]) for mask in program.masks}, 0.0, 0.0, program.scale, 0, program
        )
    possible = program.cells <= SMOOTHED and (program.only_total or rough) and not closed
    passes = 0
    if possible:
        passes = _chosen(program) if smoothing is None else smoothing
    if not passes:
        return program.solve()
    return replace(next(islice(program.estimates(), passes - 1, None)), passes=passes)


def _chosen(program: Projection) -> int:
    """How often a prior is made: as the noisy numbers say; 0 unless it is better than the nearest tables beyond doubt.

    Notes
    -----
    With w drawn like the noise, the estimate from ``y + a w`` is compared with ``y - w / a``. The noises of the two are uncorrelated (independent if they are Gaussian), so
    that the difference of two squared distances estimates the difference of the two errors without bias. Its standard deviation is at most ``2 sqrt(1 + 1/a^2)`` times the
    distance of the two estimates in the norm of the squared weights over precisions. A prior is taken if it is better by more than that, in the norm of the noise and in that of
    the balanced weights; it is made again while that is estimated to be better still.
    """
    from scipy.special import ndtri

    replay = Replay(*(program.given[mask] for mask in program.tops))
    drawn: Tables = {}
    for mask in program.masks:
        if not program.fixed[mask]:
            noise = project(ndtri(replay.uniform(program.lattice.shape(mask))))
            drawn[mask] = noise / program.precisions[mask] ** 0.5
    other = program.with_noise(drawn, SHARE)
    before = {mask: project(table) for mask, table in other.solve().tables.items()}
    best, passes = 0.0, 0
    for count, fit in enumerate(other.estimates(), 1):
        sums = np.zeros((2, 2))
        for mask, noise in drawn.items():
            seen, precision = program.centre[mask] - noise / SHARE, program.precisions[mask]
            made = project(fit.tables[mask])
            apart = float(np.square(made - before[mask]).sum())
            gain = float((np.square(made - seen) - np.square(before[mask] - seen)).sum())
            for at, weight in enumerate((precision, program.weights[mask])):
                sums[at] += weight * gain, 4 * (1 + SHARE**-2) * weight**2 / precision * apart
        doubt = sums[:, 0] + np.sqrt(sums[:, 1])
        if float(doubt.max()) >= 0 or (passes and not clearly_less(-best, -float(doubt[1]))):
            break
        best, passes = float(doubt[1]), count
    return passes
