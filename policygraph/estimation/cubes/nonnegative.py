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
from policygraph.transforms.cuboids.blocks import Tables, project
from policygraph.transforms.cuboids.coordinates import TableCoordinates
from policygraph.transforms.cuboids.costs import block_precisions, cells_of_blocks
from policygraph.transforms.cuboids.lattice import Family, Floats, Lattice

GAP = 1e-3
"""The duality gap to reach, as a share of what least squares is expected to miss the truth by: by Theorem 1a it costs at most a root of it, 3 %, and mostly far less."""
LOOSE = 1e-2
"""The largest gap of a fit with a prior that is used: where it is not reached, the nearest tables are, which converge faster."""
WORK = 400_000_000
"""Cells of the largest tables times steps of one fit: a bound on time alone, since the gap that was reached is stated."""
FEWEST, MOST = 20, 400
"""Steps of one fit, for the same reason."""
RELAXED = 1.7
"""Over-relaxation of a step: the method converges for every number between 0 and 2, and this one changes the speed only."""
BALANCED = 3.0
"""The two squared residuals may differ by this factor before the penalty is doubled or halved: it changes the speed only."""
CHECKED = 5
"""Steps between two looks at the gap, so that looking takes a small part of the time."""
SMOOTHED = 1 << 20
"""Cells of all tables up to which a prior is considered: a bound on time."""
PASSES = 4
"""How often the prior of the largest tables is made at most: of the fitted pairs of attributes, then of the fit itself. How often is chosen from the noisy numbers."""
SHARE = 0.5
"""Of the noise that is added to choose: the estimate is judged at 1 + 1/4 of the variance, against numbers of 1 + 4 of it."""
DRAWS, DRAWN = 8, 1 << 17
"""Draws of that noise, and cells of all tables of all draws: more draws doubt less, and a bound on time."""
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
        Positive counts p of cells.
    multiples, squares
        The count of a cell is expected to vary around p with variance ``a p + b p^2``: a and b of each cell.
    held
        Which of all cells of a program they are of.
    """

    centres: Floats
    multiples: Floats
    squares: Floats
    held: Any = None

    @property
    def shapes(self) -> tuple[Floats, Floats, Floats]:
        """a, c = b / a, and p."""
        return self.multiples, self.squares / self.multiples, self.centres

    def near(self, aim: Floats, penalty: Floats, start: Floats) -> Floats:
        """The least of the deviance plus ``penalty (z - aim)^2 / 2`` in every cell, by Newton's method.

        It solves ``log(z / (1 + c z)) + k z = log(p / (1 + c p)) + k aim`` with c = b / a and k = a times the penalty. The left side grows and is concave, so that steps
        from the left never pass the root; steps that would leave the positive numbers, and those between small numbers, are made in log z.
        """
        a, c, p = self.shapes
        k = a * penalty
        goal = np.log(p / (1 + c * p)) + k * aim
        made: Floats = np.maximum(start, LEAST)
        live = np.arange(made.size)
        for _ in range(100):
            z, cs, ks = made[live], c[live], k[live]
            grown = 1 + cs * z
            step = (np.log(z / grown) + ks * z - goal[live]) * grown / (1 + ks * z * grown)
            bold = z * np.exp(-np.clip(step, -600.0, 600.0))
            new = np.where(step < 0.9, np.maximum(z * (1 - step), np.minimum(bold, 1 / (cs + ks))), bold)
            made[live] = np.maximum(new, LEAST)
            # Counts that are 0 to all digits of a float stay so.
            live = live[(np.abs(step) > 1e-9) & ((new > LEAST) | (step < 0))]
            if not live.size:
                break
        return made

    def slopes(self, z: Floats) -> Floats:
        """Minus the derivative of the deviance: the multipliers for which z is the least of the deviance plus their product."""
        a, c, p = self.shapes
        made: Floats = (np.log(p) - np.log(z) - np.log1p(c * p) + np.log1p(c * z)) / a
        return made

    def conjugate(self, z: Floats) -> float:
        """The least of the deviance plus the product with the slopes at z, summed over all cells."""
        a, c, p = self.shapes
        return float(((np.log1p(c * p) - np.log1p(c * z)) / (a * c)).sum())

    def deviance(self, x: Floats) -> float:
        """How far counts are from the centre: the deviance of negative binomial distributions, divided by a."""
        a, c, p = self.shapes
        kept = np.maximum(x, 0.0)
        parts = kept * (np.log(np.maximum(kept, LEAST)) - np.log(p)) - (kept + 1 / c) * (
            np.log1p(c * kept) - np.log1p(c * p)
        )
        return float((parts / a).sum())


@dataclass(frozen=True, eq=False)
class NonnegativeFit:
    """Non-negative tables, and how near to the optimum they are.

    Attributes
    ----------
    program
        What was minimised.
    vector
        The coordinates of the tables.
    value, bound
        The objective at the tables, and what no non-negative tables can beat.
    steps
        Steps that were taken.
    prior
        Without one they are the nearest tables.
    passes
        How often a prior was made.
    given
        The tables to the last bit, where nothing had to be changed.
    cells
        The cells of the only largest table to the last bit, where there is one that all others are sums of.
    """

    program: Projection
    vector: Floats
    value: float
    bound: float
    steps: int
    prior: Prior | None = None
    passes: int = 0
    given: Tables | None = None
    cells: Floats | None = None

    @cached_property
    def tables(self) -> Tables:
        """A table of every cuboid of the family. They agree with each other up to float errors."""
        if self.given is not None:
            return self.given
        coordinates = self.program.coordinates
        return coordinates.tables(self.vector) if self.cells is None else coordinates.sums(self.cells)

    @property
    def scale(self) -> float:
        """What the distance part of the objective is expected to be at the truth."""
        return self.program.scale

    def gap_at(self, tables: Mapping[int, Any]) -> float:
        """The gap of other tables than these, which agree as well."""
        coordinates = self.program.coordinates
        value = self.program.objective(coordinates.of_cells(coordinates.flat(tables)), self.prior)
        return max(value - self.bound, 0.0) / self.scale

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
        The given tables, of every cuboid of the family that is below no other; they agree.
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
        self.fixed = np.asarray(fixed, dtype=np.bool_)
        self.by_block = weights if precisions is None else precisions
        self.coordinates = TableCoordinates(family)
        block = self.coordinates.block
        self.free = ~self.fixed[block]
        self.weights, self.precisions = weights[block], self.by_block[block]
        dims = dimensions(family)
        self.scale = max(float(dims[~self.fixed].sum()) / 2, 0.5)
        self.centre = self.coordinates.of_cells(self.coordinates.flat(tables))
        variances = np.where(self.fixed, 0.0, 1.0 / weights)
        spreads = cells_of_blocks(family, np.where(dims > 0, variances, 0.0))
        places = family.index
        self.tops = [m for m in self.coordinates.largest if spreads[places[m]] > 0]
        # A table that is known has no penalty, and no multipliers.
        penalty = {
            m: self._penalty(m, float(spreads[places[m]])) if m in set(self.tops) else 0.0
            for m in self.coordinates.largest
        }
        self.penalty = self._each(penalty)
        self.cells = int(sum(self.lattice.size(mask) for mask in self.masks))
        self.most = int(np.clip(WORK // max(self.penalty.size, 1), FEWEST, MOST))

    def _penalty(self, mask: int, variance: float) -> float:
        """The precision of the copy of a largest table in the first steps. It changes the number of steps only.

        If no cell were held at 0, steps would be fewest at one over the geometric mean of the least and the largest variance of a direction; if cells did not depend on each other, at one over
        the variance of a cell. The geometric mean of the two is taken.
        """
        at = self.coordinates.places[mask]
        rows = self.coordinates.rows[at]
        spread = (self.coordinates.scales[at] ** 2 / self.weights[rows])[self.free[rows]]
        return float((spread.min() * spread.max()) ** -0.25 * variance**-0.5)

    def _each(self, values: Mapping[int, float]) -> Floats:
        """A number of each largest table, for each of its cells."""
        listed = self.coordinates.largest
        return np.repeat([float(values[m]) for m in listed], [self.lattice.size(m) for m in listed])

    def with_noise(self, noise: Floats, share: float) -> Projection:
        """The same program around coordinates that have so much more noise."""
        made = object.__new__(Projection)
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k not in ("given", "near_given")})
        grown = 1 + share**2
        made.centre = self.centre + share * noise
        made.weights, made.precisions = self.weights / grown, self.precisions / grown
        made.by_block = self.by_block / grown
        made.penalty = self.penalty / grown
        return made

    def below(self, level: int) -> Projection:
        """The program of the tables of so many attributes at most, as if these were published."""
        masks = [mask for mask in self.masks if Lattice.level(mask) <= level]
        family = Family(self.lattice, self.lattice.maximal(masks))
        at = self.family.at(family.masks.tolist())
        precisions, fixed = self.by_block[at], self.fixed[at]
        weights = balanced(family, precisions, ~fixed, self.lattice.maximal(masks))
        return Projection(family, weights, fixed, self.given, rough=self.rough, precisions=precisions)

    @cached_property
    def given(self) -> Tables:
        """The tables that are approached."""
        return self.coordinates.tables(self.centre)

    @cached_property
    def near_given(self) -> Floats:
        """The cells of the largest of them."""
        return self.coordinates.cells(self.centre)

    @property
    def only_total(self) -> bool:
        """Whether nothing but the total is known exactly, so that an even table fulfils all that is known."""
        return not any(
            known and mask and all(n > 1 for n in self.lattice.shape(mask))
            for mask, known in zip(self.masks, self.fixed.tolist(), strict=True)
        )

    def objective(self, vector: Floats, prior: Prior | None, cells: Floats | None = None) -> float:
        """What is minimised: the distance of tables plus their deviance from a prior."""
        free = self.free
        value = float((self.weights[free] * np.square((vector - self.centre)[free])).sum()) / 2
        if prior is not None:
            x = self.coordinates.cells(vector) if cells is None else cells
            value += prior.deviance(x[prior.held])
        return value

    def lower_bound(self, multipliers: Floats) -> float:
        """What the distance less the multipliers times the cells is at least."""
        pushed = self.coordinates.pulled(multipliers)[self.free]
        square = float((np.square(pushed) / self.weights[self.free]).sum())
        return -float((multipliers * self.near_given).sum()) - square / 2

    def floors(self) -> Floats:
        """A small part of every cell that known tables leave room for: 0 where one of them has a 0."""
        made = np.zeros_like(self.near_given)
        for top in self.coordinates.largest:
            least = np.full(self.lattice.shape(top), max(float(self.given[0]), 0.0) / self.lattice.size(top))
            for mask, known in zip(self.masks, self.fixed.tolist(), strict=True):
                if known and mask and self.lattice.computable(mask, of=top):
                    part = np.maximum(self.given[mask], 0.0) / self.lattice.size(top & ~mask)
                    least = np.minimum(least, spread(self.lattice, part, mask, top))
            made[self.coordinates.places[top]] = SLACK * least.ravel()
        return made

    def solve(self, prior: Prior | None = None, start: Floats | None = None) -> NonnegativeFit:
        """Non-negative tables at the least distance, plus the deviance from a prior if there is one; from coordinates near the optimum it takes fewer steps."""
        if not self.tops:
            return NonnegativeFit(self, self.centre, 0.0, 0.0, 0)
        low = 0.0 if self.only_total or self.rough else self.floors()
        penalty, maps = self.penalty, self.coordinates
        empty = self._empty()
        z = np.maximum(self.near_given, 0.0)
        u = np.zeros_like(z)
        if prior is not None:
            held = prior.held
            z[held] = np.maximum(z[held], prior.centres)
            if start is not None:
                z[held] = np.maximum(maps.cells(start)[held], LEAST)
                u[held] = -prior.slopes(z[held]) / penalty[held]
        near = self._near(penalty)
        best: NonnegativeFit | None = None
        bound = -np.inf
        pull = self.weights * self.centre
        for step in range(1, self.most + 1):
            looked = step % CHECKED == 0 or step == self.most
            aim = z - u
            aim *= penalty
            vector = maps.pulled(aim)
            vector += pull
            vector /= self.weights + near
            vector[~self.free] = self.centre[~self.free]
            x = maps.cells(vector)
            np.multiply(x, RELAXED, out=aim)
            u += (1 - RELAXED) * z
            aim += u
            new = np.maximum(aim, low)
            if prior is not None:
                new[held] = prior.near(aim[held], penalty[held], z[held])
            if empty is not None:
                new[empty] = 0.0
            if looked:
                apart = float((penalty * np.square(x - new)).sum())
                moved = float((penalty * np.square(new - z)).sum())
            np.subtract(aim, new, out=u)
            z = new
            if not looked:
                continue
            multipliers = -penalty * u
            if prior is not None:
                multipliers[held] = prior.slopes(z[held])
            bound = max(bound, self._bound(multipliers, z, prior))
            made = self._feasible(vector, x, z, prior)
            if made is not None and (best is None or made.value < best.value):
                best = made
            if best is not None:
                best = replace(best, bound=bound, steps=step)
                if best.gap <= GAP:
                    break
            factor = 2.0 if apart > BALANCED * moved else 0.5 if moved > BALANCED * apart else 1.0
            if factor != 1.0 and 2 * step <= self.most:
                penalty = penalty * factor
                near = self._near(penalty)
                u = u / factor
        if best is None:
            raise RefusedError(
                f"no non-negative tables with the known ones were found within {self.most} steps. Publish tables whose attributes have a finest table "
                "that can be held, state fewer known tables, or leave out nonnegative.",
                code="cubes.nonnegative",
            )
        return best

    def _empty(self) -> Any:
        """Which cells are empty by a public fact; None: none is known to be."""
        if not self.closed:
            return None
        made = np.zeros(self.near_given.size, dtype=np.bool_)
        for mask, cells in self.closed.items():
            made[self.coordinates.places[mask]] = np.ravel(cells)
        return made

    def _near(self, penalty: Floats) -> Floats:
        """What copies of this precision add to the precision of each coordinate."""
        return self.coordinates.gathered(penalty * self.coordinates.scales**2)

    def _feasible(self, vector: Floats, x: Floats, z: Floats, prior: Prior | None) -> NonnegativeFit | None:
        """Exactly non-negative tables near those of a step; None where there are none. Nothing is proved of them yet."""
        total = max(float(vector[0]), 0.0)
        if self.only_total and len(self.coordinates.largest) == 1:
            # A single table agrees with itself: its copy is never negative, and lacks the right total only.
            held = float(z.sum())
            cells = z * (total / held) if held > 0 else np.full_like(z, total / z.size)
            vector = self.coordinates.of_cells(cells)
            value = self.objective(vector, prior, cells)
            return NonnegativeFit(self, vector, value, -np.inf, 0, prior, cells=cells)
        shown = x[self.penalty > 0]
        if not self.rough and float(shown.min()) < 0:
            if not self.only_total:
                return None
            even = np.zeros_like(vector)
            even[0] = total
            share = 1.0
            if total > 0:
                low = np.minimum(x, 0.0)
                share = float((-low / (self.coordinates.cells(even) - low)).max())
                share = min(share * (1 + 1e-9) + 1e-12, 1.0)
            vector = (1 - share) * vector + share * even
            x = self.coordinates.cells(vector)
        return NonnegativeFit(self, vector, self.objective(vector, prior, x), -np.inf, 0, prior)

    def _bound(self, multipliers: Floats, z: Floats, prior: Prior | None) -> float:
        """What no non-negative tables can beat, as multipliers prove."""
        proved = np.maximum(multipliers, 0.0)
        empty = self._empty()
        if empty is not None:
            proved[empty] = multipliers[empty]
        if prior is not None:
            proved[prior.held] = multipliers[prior.held]
        bound = self.lower_bound(proved)
        # The distance and the deviance are never negative.
        return bound if prior is None else max(bound + prior.conjugate(z[prior.held]), 0.0)

    def prior(self, tables: Tables) -> Prior:
        """A prior of the largest tables: centres from smaller tables, and how far the noisy numbers say that counts are from these.

        Notes
        -----
        The centre of a table has the pairs of attributes of the given tables and no higher interactions; in a table of two attributes it has independent ones. The residual of the
        least-squares table, all of whose lower interactions are removed, is the deviation of the counts plus noise of known variance v: a and b are those of the largest
        (normal) likelihood of the residuals with variance ``v + a p + b p^2``. Tables of one attribute have no prior.
        """
        size = self.near_given.size
        p, a, b, held = np.ones(size), np.ones(size), np.ones(size), np.zeros(size, dtype=np.bool_)
        for top, centre in self.centres(tables).items():
            at = self.coordinates.places[top]
            residual = project(self.coordinates.table(self.near_given, top) - centre)
            noise = 1 / float(self.by_block[self.family.index[top]])
            a[at], b[at] = _spread_of(residual, centre, noise)
            p[at], held[at] = centre.ravel(), True
        return Prior(p[held], a[held], b[held], held)

    def centres(self, tables: Tables) -> Tables:
        """Positive tables of the largest cuboids with the margins of some tables and no higher interactions: pairs of attributes, or single ones in tables of two."""
        total = max(float(tables[0]), 1e-9)
        known = dict(zip(self.masks, self.fixed.tolist(), strict=True))
        single: dict[int, Floats] = {}
        made: Tables = {}
        for axis, n in enumerate(self.lattice.domain.shape):
            if 1 << axis in tables:
                raised = np.maximum(tables[1 << axis], min(1.0, total / n))
                single[axis] = raised / raised.sum()
        for top in self.tops:
            axes = self.lattice.axes(top)
            if known[top] or len(axes) < 2:
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
        start: Floats | None = None
        for _ in range(PASSES):
            made = self.solve(self.prior(made.tables), start)
            start = made.vector
            yield made


def _spread_of(residual: Floats, centre: Floats, noise: float) -> tuple[float, float]:
    """The a and b of the largest likelihood of residuals without lower interactions, around a centre p, with variance ``noise + a p + b p^2``."""
    kept = float(np.prod([1 - 1 / n for n in centre.shape]))
    place = np.rint(BINS * np.log2(centre)).ravel()
    values, at = np.unique(place, return_inverse=True)
    p, many = 2.0 ** (values / BINS), np.bincount(at)
    sums = np.bincount(at, weights=np.square(residual).ravel() / max(kept, LEAST))
    first, second = np.meshgrid(MULTIPLES, SQUARES, indexing="ij")
    variances = noise + first[..., None] * p + second[..., None] * p**2
    costs = (many * np.log(variances) + sums / variances).sum(axis=-1).ravel()
    best = float(costs.min())
    # The last digits of floats differ between processors and must not decide.
    chosen = int(np.flatnonzero(costs <= best + SAME * max(abs(best), 1.0))[0])
    return float(first.flat[chosen]), float(second.flat[chosen])


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
    nearest: bool = False,
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
    nearest
        Take the nearest tables in the norm of the noise, without a prior.

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
    weights = held if nearest else balanced(family, held, free, published)
    program = Projection(family, weights, ~free, tables, closed, rough=rough, precisions=held)
    if not closed and all(float(np.asarray(tables[mask]).min()) >= 0 for mask in program.tops):
        same = {mask: np.asarray(tables[mask]) for mask in program.masks}
        return NonnegativeFit(program, program.centre, 0.0, 0.0, 0, given=same)
    possible = not nearest and program.cells <= SMOOTHED and (program.only_total or rough) and not closed
    passes = 0
    if possible:
        passes = _chosen(program) if smoothing is None else smoothing
    if not passes:
        return program.solve()
    made = next(islice(program.estimates(), passes - 1, None))
    return replace(made, passes=passes) if made.gap <= LOOSE else program.solve()


def _chosen(program: Projection) -> int:
    """How often a prior is made: as the noisy numbers say; 0 unless it is better than the nearest tables beyond doubt.

    Notes
    -----
    With w drawn like the noise, the estimate from ``y + a w`` is compared with ``y - w / a``. The noises of the two are uncorrelated (independent if they are Gaussian), so
    that the difference of two squared distances estimates the difference of the two errors without bias. The mean over some draws of w is taken. Its standard deviation is at most about
    ``2 sqrt(1 + 1/(a^2 draws))`` times the distance of the two estimates in the norm of the squared weights over precisions. A prior is taken if it is better by more than that, in the
    norm of the noise and in that of the balanced weights; it is made again while that is estimated to be better still.
    """
    from scipy.special import ndtri

    free, precisions = program.free, program.precisions
    replay = Replay(*(program.given[mask] for mask in program.tops))
    draws = int(np.clip(DRAWN // max(program.cells, 1), 1, DRAWS))
    tried = []
    for _ in range(draws):
        drawn = np.where(free, ndtri(replay.uniform((free.size,))) / np.sqrt(precisions), 0.0)
        other = program.with_noise(drawn, SHARE)
        tried.append((program.centre - drawn / SHARE, other.solve().vector, other.estimates()))
    norms = (precisions[free], program.weights[free])
    best, passes = 0.0, 0
    for count in range(1, PASSES + 1):
        gains, apart, loose = np.zeros(2), np.zeros(2), False
        for seen, before, estimates in tried:
            fit = next(estimates)
            made, loose = fit.vector, loose or fit.gap > LOOSE
            closer = (np.square(made - seen) - np.square(before - seen))[free]
            moved = np.square(made - before)[free]
            for at, norm in enumerate(norms):
                gains[at] += float((norm * closer).sum()) / draws
                apart[at] += float((norm**2 / norms[0] * moved).sum()) / draws
        doubt = gains + 2 * np.sqrt((1 + 1 / (SHARE**2 * draws)) * apart)
        if loose or float(doubt.max()) >= 0 or (passes and not clearly_less(-best, -float(doubt[1]))):
            break
        best, passes = float(doubt[1]), count
    return passes
