"""A graphical model of a table. Owns :class:`Evidence`, :class:`Model` and :func:`fit`.

A model is a distribution over the cells of a domain that is a product of factors, one for each table that was measured or is known; any table of it can be
computed without listing the cells of the domain. All of it is post-processing of noisy and public numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from policygraph.estimation.graphical.tree import Floats, JunctionTree, axes_of

NEVER = -1e5
"""Logarithm of the weight of a cell that holds nothing: its exponential is 0, and sums and differences of it are numbers."""
MEMORY = 12
"""Pairs of steps that L-BFGS remembers."""
SWEEPS = 200
"""Most rounds of proportional fitting to exact tables after the fit."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of one table.

    Attributes
    ----------
    mask
        Its attributes.
    counts
        The noisy, or exact, counts.
    variance
        Variance of the noise of each count; 0 where they are exact.
    """

    mask: int
    counts: Floats
    variance: float


def combined(evidence: Sequence[Evidence]) -> list[Evidence]:
    """One piece of evidence for each table: exact counts where there are any, else the average by precision."""
    by_mask: dict[int, list[Evidence]] = {}
    for piece in evidence:
        by_mask.setdefault(piece.mask, []).append(piece)
    out = []
    for mask, pieces in by_mask.items():
        exact = [piece for piece in pieces if piece.variance == 0]
        if exact or len(pieces) == 1:
            out.append((exact or pieces)[0])
            continue
        precision = sum(1 / piece.variance for piece in pieces)
        mean = sum(piece.counts / piece.variance for piece in pieces) / precision
        out.append(Evidence(mask, np.asarray(mean), 1 / precision))
    return out


def total_of(evidence: Sequence[Evidence]) -> float:
    """The number of records: exact where a table is, else the average of the sums of the tables by their precision; at least 1.

    Examples
    --------
    >>> total_of([Evidence(1, np.array([4.0, 6.0]), 1.0), Evidence(0, np.array([13.0]), 1.0)])
    12.0
    """
    for piece in evidence:
        if piece.variance == 0:
            return max(1.0, float(piece.counts.sum()))
    precisions = [1 / (piece.variance * piece.counts.size) for piece in evidence]
    sums = [float(piece.counts.sum()) for piece in evidence]
    if not sums:
        return 1.0
    return max(1.0, sum(p * s for p, s in zip(precisions, sums, strict=True)) / sum(precisions))


@dataclass(frozen=True, eq=False)
class Model:
    """A distribution over the cells of a domain, as the tables of the cliques of a junction tree.

    Attributes
    ----------
    tree
        The junction tree.
    tables
        The distribution of each clique; they agree on what they share.
    total
        Number of records.
    factors
        Logarithm of the factor of each table, for a start of the next fit.
    steps
        Passes over the tree that the fit took.
    gap
        How far the objective of the fit is from its optimum at most.

    Examples
    --------
    >>> model = fit((2, 2), [Evidence(1, np.array([6.0, 4.0]), 0.0), Evidence(2, np.array([5.0, 5.0]), 1.0)])
    >>> model.table(3).round(3).tolist()
    [[3.0, 3.0], [2.0, 2.0]]
    """

    tree: JunctionTree
    tables: tuple[Floats, ...]
    total: float
    factors: Mapping[int, Floats] = field(default_factory=dict)
    steps: int = 0
    gap: float = 0.0

    def table(self, mask: int) -> Floats:
        """The table of some attributes, in counts, whether a clique contains them or not."""
        return next(self.each([mask]))

    def each(self, masks: Iterable[int]) -> Iterator[Floats]:
        """One table after the other, in counts; what several of them need is computed once.

        Examples
        --------
        >>> model = fit((2, 2, 2), [Evidence(3, np.array([4.0, 0.0, 1.0, 5.0]), 0.0), Evidence(6, np.array([2.0, 3.0, 5.0, 0.0]), 0.0)])
        >>> [table.round(3).tolist() for table in model.each([0b101, 0b100])]
        [[[1.6, 2.4], [5.4, 0.6]], [7.0, 3.0]]
        """
        walk = _Sums(self.tree, self.tables)
        return (np.asarray(walk.chances(mask) * self.total) for mask in masks)


class _Sums:
    """Tables of a model, with the parts that subtrees give them kept."""

    def __init__(self, tree: JunctionTree, tables: Sequence[Floats]) -> None:
        self.tree, self.tables = tree, tables
        self.parts: dict[tuple[int, int], tuple[Floats, int]] = {}
        self.sums: dict[tuple[int, int], Floats] = {}

    def chances(self, mask: int) -> Floats:
        """The distribution of some attributes."""
        holder = self.tree.holder(mask)
        if holder is not None:
            return project(self.tables[holder], self.tree.cliques[holder], mask)
        at = 0
        while True:
            lower = [child for child in self.tree.children[at] if mask & ~self.tree.below[child] == 0]
            if not lower:
                break
            at = lower[0]
        made, held = self.upwards(at, mask, 0)
        return project(made, held, mask)

    def upwards(self, at: int, mask: int, separator: int) -> tuple[Floats, int]:
        """The distribution of a clique together with the wanted attributes of its subtree, and which attributes that are.

        Each needed child gives its wanted attributes given its separator; a matrix product sums what nobody needs any more.
        """
        clique = self.tree.cliques[at]
        needed = [c for c in self.tree.children[at] if mask & self.tree.below[c] & ~clique]
        keep = (separator | mask) & clique
        held = keep
        for child in needed:
            held |= self.tree.separators[child]
        if (at, held) not in self.sums:
            self.sums[at, held] = project(self.tables[at], clique, held)
        made = self.sums[at, held]
        for place, child in enumerate(needed):
            part, owned = self.given(child, mask & self.tree.below[child])
            later = keep
            for other in needed[place + 1 :]:
                later |= self.tree.separators[other]
            made, held = product(made, held, part, owned, later | (mask & (held | owned)))
        return made, held

    def given(self, child: int, mask: int) -> tuple[Floats, int]:
        """Wanted attributes of a subtree, given what it shares with the rest."""
        found = self.parts.get((child, mask))
        if found is None:
            shared = self.tree.separators[child]
            part, held = self.upwards(child, mask, shared)
            owned = shared | mask
            part = project(part, held, owned)
            base = project(part, owned, shared)
            wide = [
                n if shared >> axis & 1 else 1 for axis, n in zip(axes_of(owned), part.shape, strict=True)
            ]
            found = part / np.where(base > 0, base, 1.0).reshape(wide), owned
            self.parts[child, mask] = found
        return found


def project(table: Floats, held: int, wanted: int) -> Floats:
    """Sum a table over the attributes that are not wanted."""
    rest = tuple(at for at, axis in enumerate(axes_of(held)) if not wanted >> axis & 1)
    return np.asarray(table.sum(axis=rest)) if rest else table


def product(one: Floats, held: int, other: Floats, owned: int, keep: int) -> tuple[Floats, int]:
    """Multiply two tables along shared attributes and sum over those that are not kept.

    Examples
    --------
    >>> made, held = product(np.array([[1.0, 2.0]]), 0b011, np.array([[1.0], [10.0]]), 0b110, 0b101)
    >>> made.tolist(), held
    ([[21.0]], 5)
    """
    both = held & owned
    batch, summed = both & keep, both & ~keep
    mine, theirs = held & keep & ~both, owned & keep & ~both
    one, other = project(one, held, both | keep), project(other, owned, both | keep)
    dims = dict(zip(axes_of(held & (both | keep)), one.shape, strict=True))
    dims.update(zip(axes_of(owned & (both | keep)), other.shape, strict=True))
    left = _arranged(one, held & (both | keep), (batch, mine, summed), dims)
    right = _arranged(other, owned & (both | keep), (batch, summed, theirs), dims)
    made = np.matmul(left, right)
    axes = axes_of(batch) + axes_of(mine) + axes_of(theirs)
    table = made.reshape([dims[axis] for axis in axes])
    ordered = sorted(range(len(axes)), key=axes.__getitem__)
    return np.ascontiguousarray(table.transpose(ordered)), batch | mine | theirs


def _arranged(table: Floats, held: int, groups: Sequence[int], dims: Mapping[int, int]) -> Floats:
    """A table with its attributes in three groups, one axis for each group."""
    places = {axis: at for at, axis in enumerate(axes_of(held))}
    order = [places[axis] for group in groups for axis in axes_of(group)]
    sizes = [prod([dims[axis] for axis in axes_of(group)]) for group in groups]
    return table.transpose(order).reshape(sizes)


class Propagation:
    """Belief propagation on one tree, with the places of the axes worked out once."""

    def __init__(self, tree: JunctionTree, masks: Sequence[int]) -> None:
        self.tree = tree
        self.masks = list(masks)
        self.homes = []
        for mask in masks:
            home = tree.holder(mask)
            if home is None:
                raise ValueError(f"table {mask:b} is in no clique")
            self.homes.append(home)
        self._dims = [tree.dims(clique) for clique in tree.cliques]
        self._out = [
            _rest(clique, shared) for clique, shared in zip(tree.cliques, tree.separators, strict=True)
        ]
        self._out_above = [
            _rest(tree.cliques[parent], shared) if parent >= 0 else ()
            for parent, shared in zip(tree.parents, tree.separators, strict=True)
        ]
        self._wide = [
            _widened(tree, clique, shared)
            for clique, shared in zip(tree.cliques, tree.separators, strict=True)
        ]
        self._wide_above = [
            _widened(tree, tree.cliques[parent], shared) if parent >= 0 else ()
            for parent, shared in zip(tree.parents, tree.separators, strict=True)
        ]
        self._wide_mask = [
            _widened(tree, tree.cliques[home], mask) for mask, home in zip(masks, self.homes, strict=True)
        ]
        self._out_mask = [
            _rest(tree.cliques[home], mask) for mask, home in zip(masks, self.homes, strict=True)
        ]

    def run(self, factors: Sequence[Floats]) -> tuple[float, list[Floats], list[Floats]]:
        """Logarithm of the sum of all weights, the distribution of each clique, and that of each table of ``masks``."""
        tree = self.tree
        logs = [np.zeros(dims) for dims in self._dims]
        for home, wide, factor in zip(self.homes, self._wide_mask, factors, strict=True):
            logs[home] += factor.reshape(wide)
        # Upwards each clique becomes a distribution given its separator, but for a factor of each value of it; so one exponential of a cell is enough.
        sums: list[Floats] = [np.zeros(())] * len(logs)
        for at in range(len(logs) - 1, 0, -1):
            sums[at], upward = _exponentials(logs[at], self._out[at])
            logs[tree.parents[at]] += upward.reshape(self._wide_above[at])
        whole, size = _exponentials(logs[0], tuple(range(logs[0].ndim)))
        tables = logs
        tables[0] /= whole
        for at in range(1, len(logs)):
            above = tables[tree.parents[at]]
            shared = above.sum(axis=self._out_above[at]) if self._out_above[at] else above
            tables[at] *= (shared / sums[at]).reshape(self._wide[at])
        wanted = [
            tables[home].sum(axis=out) if out else tables[home]
            for home, out in zip(self.homes, self._out_mask, strict=True)
        ]
        return float(size), tables, wanted


def _exponentials(logs: Floats, axes: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Put exponentials in the place of logarithms, with 1 as the largest along some axes; return their sums over these, and the logarithms of the sums as they were."""
    top = logs.max(axis=axes, keepdims=True)
    logs -= top
    np.exp(logs, out=logs)
    sums = np.asarray(logs.sum(axis=axes))
    return sums, np.log(sums) + top.reshape(sums.shape)


def _rest(clique: int, kept: int) -> tuple[int, ...]:
    return tuple(at for at, axis in enumerate(axes_of(clique)) if not kept >> axis & 1)


def _widened(tree: JunctionTree, clique: int, mask: int) -> tuple[int, ...]:
    return tuple(tree.shape[axis] if mask >> axis & 1 else 1 for axis in axes_of(clique))


def fit(
    shape: Sequence[int],
    evidence: Sequence[Evidence],
    *,
    strength: float = 1.0,
    start: Model | None = None,
    steps: int = 200,
    accuracy: float = 1e-3,
) -> Model:
    """Fit a model to noisy and exact tables.

    Parameters
    ----------
    shape
        Number of values of each attribute.
    evidence
        The tables; those with variance 0 are met, the others in the norm of their noise.
    strength
        Weight of the entropy: the model has the least sum of squared differences over twice their variances, less ``strength`` times the number of records
        times its entropy. At 1 it is the most likely table of records that were drawn evenly; small weights decide only what the evidence leaves open.
    start
        An earlier model, whose factors are used as a start.
    steps
        Most steps of L-BFGS.
    accuracy
        The slope at which the fit ends.

    Notes
    -----
    By duality the optimum is a product of one factor for each piece of evidence, and the logarithms of the factors minimise
    total * log Z - sum of factor * count + sum of strength * variance * factor^2 / 2, a smooth and, along noisy tables, strongly convex function without constraints. Its
    slope takes one pass of belief propagation.

    Examples
    --------
    >>> model = fit((2, 2), [Evidence(3, np.array([4.0, 0.0, 1.0, 5.0]), 0.0)])
    >>> model.table(3).round(6).tolist()
    [[4.0, 0.0], [1.0, 5.0]]
    """
    pieces = combined(evidence)
    total = total_of(pieces)
    tree = JunctionTree.of(shape, [piece.mask for piece in pieces])
    problem = _Dual(tree, pieces, total, strength)
    point = problem.start(start)
    found, passes = minimised(problem.value, point, steps, accuracy)
    return problem.model(found, passes)


class _Dual:
    """The dual of the fit: one number for each cell of the evidence, without constraints, smooth and strongly convex but for exact tables."""

    def __init__(self, tree: JunctionTree, pieces: Sequence[Evidence], total: float, strength: float) -> None:
        self.tree, self.pieces, self.total = tree, pieces, total
        self.walk = Propagation(tree, [piece.mask for piece in pieces])
        noisy = [piece.variance for piece in pieces if piece.variance > 0]
        least = min(noisy, default=1.0)
        # Curvature of the dual along each number: its own, and that of the sum of all weights, which is about the count.
        self.held = [strength * piece.variance for piece in pieces]
        self.scales = [
            np.sqrt(held + np.maximum(piece.counts, least**0.5)).reshape(tree.dims(piece.mask))
            for piece, held in zip(pieces, self.held, strict=True)
        ]
        self.closed = [
            np.where(piece.counts.reshape(tree.dims(piece.mask)) <= 0, NEVER, 0.0)
            if piece.variance == 0
            else None
            for piece in pieces
        ]
        self.ends = np.cumsum([0, *(piece.counts.size for piece in pieces)])
        self.targets = [piece.counts.reshape(tree.dims(piece.mask)) for piece in pieces]

    def split(self, point: Floats) -> list[Floats]:
        return [
            point[low:high].reshape(target.shape)
            for low, high, target in zip(self.ends[:-1], self.ends[1:], self.targets, strict=True)
        ]

    def factors(self, point: Floats) -> list[Floats]:
        out = []
        for psi, scale, closed in zip(self.split(point), self.scales, self.closed, strict=True):
            factor = psi / scale
            out.append(factor if closed is None else factor + closed)
        return out

    def start(self, earlier: Model | None) -> Floats:
        point = np.zeros(int(self.ends[-1]))
        if earlier is not None:
            for at, (piece, scale) in enumerate(zip(self.pieces, self.scales, strict=True)):
                known = earlier.factors.get(piece.mask)
                if known is not None:
                    part = np.where(known <= NEVER / 2, 0.0, known)
                    point[self.ends[at] : self.ends[at + 1]] = (part * scale).ravel()
        return point

    def value(self, point: Floats) -> tuple[float, Floats]:
        size, _, tables = self.walk.run(self.factors(point))
        value, slope = self.total * size, np.empty_like(point)
        for at, (psi, scale, held, target, table) in enumerate(
            zip(self.split(point), self.scales, self.held, self.targets, tables, strict=True)
        ):
            theta = psi / scale
            value += 0.5 * held * float(np.vdot(theta, theta)) - float(np.vdot(theta, target))
            part = (self.total * table - target + held * theta) / scale
            slope[self.ends[at] : self.ends[at + 1]] = part.ravel()
        return value, slope

    def gap(self, point: Floats) -> float:
        """A bound on how far the objective is above its least value, along the numbers of noisy tables: it is as convex there as their squares."""
        _, slope = self.value(point)
        return sum(
            float(np.square(part * scale).sum()) / (2 * held)
            for part, scale, held in zip(self.split(slope), self.scales, self.held, strict=True)
            if held > 0
        )

    def model(self, point: Floats, passes: int) -> Model:
        factors = self.factors(point)
        exact = [at for at, piece in enumerate(self.pieces) if piece.variance == 0]
        _, tables, wanted = self.walk.run(factors)
        for _ in range(SWEEPS if exact else 0):
            off = max(float(np.abs(self.total * wanted[at] - self.targets[at]).max()) for at in exact)
            if off <= 1e-9 * self.total:
                break
            for at in exact:
                ratio = self.targets[at] / np.maximum(self.total * wanted[at], 1e-300)
                factors[at] = factors[at] + np.log(
                    np.where(self.targets[at] > 0, np.maximum(ratio, 1e-300), 1.0)
                )
                _, tables, wanted = self.walk.run(factors)
                passes += 1
        named = {piece.mask: factor for piece, factor in zip(self.pieces, factors, strict=True)}
        return Model(self.tree, tuple(tables), self.total, named, passes, self.gap(point))


def minimised(function: Any, point: Floats, steps: int, accuracy: float) -> tuple[Floats, int]:
    """Minimise a smooth convex function by L-BFGS; return the point and how often the function was computed."""
    from scipy.optimize import minimize

    found = minimize(
        function,
        point,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": MEMORY, "gtol": accuracy, "ftol": 1e-12},
    )
    return np.asarray(found.x), int(found.nfev)
