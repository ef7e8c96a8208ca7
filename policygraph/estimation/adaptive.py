"""Whole non-negative histograms that adapt to the shape of the data, from noisy numbers alone. Owns :func:`adaptive`.

Candidates are the nearest non-negative cells; on lines and trees means over all segmentations of the noisy sums for several penalties, the same with joined pieces, and cells whose
differences within nested runs are shrunk level by level; on grids means of the nearest non-negative cells over blocks. They are averaged with weights that follow from an unbiased
estimate of their errors and from how many numbers they follow (``docs/explanation/proofs/adaptive-histograms.md``). Sees noisy numbers only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.distributions.noise import NONE, Noise
from policygraph.distributions.replay import Replay
from policygraph.estimation.buckets import fewest, nearby, pooled, stretches, together
from policygraph.estimation.histograms import (
    lines_of,
    nearest_lines,
    projection,
    rounded,
)
from policygraph.transforms.incidence import ForestTransform, GridTransform, LineTransform, Reduction
from policygraph.transforms.incidence.base import graph_of
from policygraph.transforms.incidence.grid import graph_laplacian

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PENALTIES = 5
"""Penalties of a piece: 2 log n and its halves, n being the number of noisy sums."""
DROP = 20.0
"""Segmentations lighter than exp(-20) of others at the same place are left out."""
MOST = 1 << 22
"""Most noisy sums over which segmentations are averaged; beyond, the nearest non-negative cells are taken."""
SPREAD = 6.0
"""Var(n^2) / Var(n)^2 of Laplace noise, which is 5, and one more for neighbouring cells that share noise; for Gaussian noise it is less."""
JOINED = 2
"""Pieces are joined for so many of the penalties, the largest ones: small penalties leave short pieces, whose ends are not known any better from what is beside them."""
SAMPLES = 16
"""Segmentations that are drawn for it: their mean errs by a sixteenth more than all of them. For very long sequences it is a quarter of that, since errors of pieces average out."""
SHORTEST = 3
"""Sequences of fewer sums have no piece worth a penalty."""
REPEATS = 1 << 14
"""Risks are estimated so often that candidates are found for so many sums in all: for one to four draws and their negatives."""
LONG = 1 << 17
"""Beyond so many coordinates pieces are found by coarser steps, and blocks of grids are not averaged."""


@dataclass(frozen=True)
class Adapted:
    """An adaptive estimate.

    Attributes
    ----------
    cells
        Whole cells >= 0, with the totals that are known.
    weights
        Weight of each candidate: the nearest non-negative cells first, then on lines and trees a mean over segmentations for each penalty, those with joined pieces, and nested runs with
        one factor for each level and with factors for parts of a level; on grids means over blocks of 2, 4, 8, ... cells along each axis.
    """

    cells: Ints
    weights: Floats


def adaptive(reduction: Reduction, noisy: Any, noise: Noise) -> Adapted:
    """Find whole non-negative cells that are near the true ones, whatever their shape.

    Parameters
    ----------
    reduction
        The transform whose coordinates got the noise.
    noisy
        Noisy cells; where totals are fixed they sum to them.
    noise
        The distribution of the noise of a coordinate.

    Notes
    -----
    On a line the noisy prefix sums are cut into pieces that are constant or rise evenly, on a tree the subtree sums along heavy paths, and where every cell has noise
    of its own the cells themselves, into constant pieces. In the same order cells form runs of 2, 4, 8, ..., and differences between the means of halves are shrunk by the
    share of their squares that noise explains. On grids the nearest non-negative cells are averaged over blocks. On other graphs they are the only candidate.

    Public noise w of the same distribution is added and subtracted: given z + w, noise z - w has mean 0, because z and w can be exchanged. So the squared distance of
    an estimate from noisy cells + w to noisy cells - w is its squared error plus a number that is the same for all candidates. Each w is used with its negative, so that
    what is linear in w cancels. Weights are (1 + d)^-2 exp(-risk / (4 v)), where d is the number of degrees of freedom, found from the same draws, and v is the norm of the covariance of the noise of the cells along a sequence: 4 variances on a line,
    where neighbouring cells share noise. A candidate whose coordinates err more than twice as much as those of the nearest non-negative cells loses weight for this as well: ranges are
    differences of few coordinates, and cells that are near the true ones may have sums that are not.

    Examples
    --------
    >>> import policygraph as pg
    >>> from fractions import Fraction
    >>> from policygraph.distributions.noise import laplace_noise
    >>> from policygraph.transforms.incidence import transform
    >>> domain = pg.Domain({"age": 8})
    >>> line = transform(pg.Policy(domain, pg.PolicyGraph.line(domain)))
    >>> made = adaptive(line, [2, -1, 0, 1, 990, 3, -4, 1], laplace_noise(Fraction(2)))
    >>> made.cells.tolist(), len(made.weights)
    ([1, 0, 0, 0, 991, 0, 0, 0], 10)
    """
    cells = np.asarray(noisy, dtype=np.int64).reshape(-1)
    family = None if noise.distribution == NONE else candidates_of(reduction)
    if family is None:
        return Adapted(mixed(reduction, cells, noise, np.ones(1)), np.ones(1))
    weights = _weights(reduction, family, cells, noise)
    return Adapted(mixed(reduction, cells, noise, weights), weights)


def mixed(reduction: Reduction, noisy: Any, noise: Noise, weights: Floats) -> Ints:
    """Whole cells >= 0 with weights of the candidates that were found before."""
    cells = np.asarray(noisy, dtype=np.int64).reshape(-1)
    family = candidates_of(reduction) if len(weights) > 1 else None
    found = projection(reduction, cells)[None, :] if family is None else family.made(cells, noise.variance)
    return rounded(reduction, np.tensordot(weights, found, axes=1), cells)


@dataclass(frozen=True)
class Estimators:
    """The candidates for a transform.

    Attributes
    ----------
    made
        Candidates, a row of non-negative cells for each, from noisy cells and the variance of the noise of a coordinate.
    norm
        The norm of the covariance of the noise of cells, in variances of a coordinate: twice the largest number of noises in a cell, or 1 where no two cells share one.
    measured
        The coordinates with noise, of rows of cells, in which errors and followed numbers are counted.
    noises
        Noises in all these coordinates together.
    allowed
        How many times the errors of the first candidate in these coordinates others may have before they lose weight for it: twice, or once on grids, where the errors along the whole
        border of a region add up.
    """

    made: Callable[[Ints, float], Floats]
    norm: int
    measured: Callable[[Floats], Floats]
    noises: int
    allowed: int = 2


def candidates_of(reduction: Reduction) -> Estimators | None:
    """The candidates for a transform; None where the nearest non-negative cells are the only one."""
    if reduction.width > MOST:
        return None
    if isinstance(reduction, LineTransform):
        return _on_lines(reduction) if reduction.shape[1] > SHORTEST else None
    if isinstance(reduction, GridTransform):
        return _on_grid(reduction)
    return _on_forest(reduction) if isinstance(reduction, ForestTransform) else None


def _applied(reduction: Reduction, rows: Floats) -> Floats:
    """All coordinates of rows of cells. Transforms are applied to whole numbers: in steps of 1/1024, or as fine as they can be."""
    steps = min(1024.0, 2.0**61 / max(float(np.abs(rows).sum(axis=-1).max()), 1.0))
    whole = np.rint(rows * steps).astype(np.int64)
    return np.stack([reduction.apply(row) for row in whole]) / steps


def _on_coordinates(reduction: Reduction) -> Callable[[Floats], Floats]:
    """Coordinates with noise of rows of cells."""
    free = np.ones(reduction.width, dtype=bool)
    free[reduction.fixed] = False
    return lambda rows: _applied(reduction, rows)[:, free]


def penalties(count: int) -> Floats:
    """Penalties of a piece of so many noisy sums."""
    return np.asarray(2.0 * np.log(max(count, 2)) * 0.5 ** np.arange(PENALTIES))


def tamed(sums: Floats, nearest: Floats, variance: float) -> Floats:
    """Noisy sums, no farther from those of the nearest non-negative cells than the largest of as many Gaussian noises.

    Residuals of pieces are squared as if noise were Gaussian. Laplace noise has values that are too large for that, which would be worth pieces of their own.
    """
    reach = np.sqrt(2.0 * variance * np.log(max(sums.size, 2)))
    return np.asarray(nearest + np.clip(sums - nearest, -reach, reach))


def _finest(count: int) -> int:
    """Pieces up to 2^(this + 1) start anywhere: fewer for long sequences, so that the work stays linear with a small factor."""
    return 6 if count <= 1 << 14 else 5 if count <= LONG else 4


def _means(
    sequences: list[Floats], variance: float, *, sloped: bool, tops: list[float] | None = None
) -> list[Floats]:
    """Means over segmentations of each sequence, a row for each penalty; sums rise from 0 and, where it is known, to a total."""
    from policygraph.estimation._compiled_segments import segment_means

    count = sum(len(each) for each in sequences)
    listed, bits = penalties(count), _finest(count)
    samples = SAMPLES if count <= LONG else SAMPLES // 4
    known = tops if tops is not None else [float("nan")] * len(sequences)
    return [
        segment_means(each, variance, listed, sloped, bits, DROP, (0.0, top), samples, JOINED)
        for each, top in zip(sequences, known, strict=True)
    ]


@dataclass(frozen=True)
class _Runs:
    """Nested runs of cells, and which noises enter their sums."""

    pieces: Ints
    """Cells that may share a run, as a label for each cell."""
    laid: Ints
    """All cells, piece after piece."""
    edges: tuple[Ints, Ints]
    """Ends of the edges with noise."""
    ends: Ints
    """Cells with a noise that no other cell shares."""

    @classmethod
    def of(cls, pieces: Ints, laid: Ints, parent: Ints, fixed: Ints) -> _Runs:
        free = np.ones(len(parent), dtype=bool)
        free[fixed] = False
        inner = np.flatnonzero(free & (parent >= 0))
        return cls(pieces, laid, (inner, parent[inner]), np.flatnonzero(free & (parent < 0)))

    def noises(self, labels: Ints) -> Floats:
        """Number of noises in the sum of each run: those of edges that leave it."""
        count = int(labels.max()) + 1
        u, v = (labels[ends] for ends in self.edges)
        cut = u != v
        sides = np.concatenate([u[cut], v[cut], labels[self.ends]])
        return np.bincount(sides, minlength=count).astype(np.float64)

    def shrunk(self, cells: Ints, variance: float) -> list[Floats]:
        """Cells after shrinkage of differences within runs: one factor for each level, and factors for parts of a level."""
        given = cells.astype(np.float64)
        least = fewest(len(cells), SPREAD)
        return [
            pooled(
                given,
                stretches(self.pieces, self.laid),
                lambda labels: self.noises(labels) * variance,
                spread=SPREAD,
                groups=groups,
            )
            for groups in (together, lambda numbers: nearby(numbers, self.laid, least))
        ]


def _on_lines(reduction: LineTransform) -> Estimators:
    length = reduction.shape[1]
    measured = length - reduction.exact_totals
    at = np.arange(reduction.width, dtype=np.int64).reshape(reduction.shape)
    laid = np.moveaxis(at, 1, 2).reshape(-1)
    parent = np.full(reduction.shape, -1, dtype=np.int64)
    parent[:, :-1, :] = at[:, 1:, :]
    pieces = np.empty_like(laid)
    pieces[laid] = np.arange(reduction.width) // length
    runs = _Runs.of(pieces, laid, parent.reshape(-1), reduction.fixed)

    def made(cells: Ints, variance: float) -> Floats:
        sums = lines_of(cells, reduction.shape).astype(np.float64)
        tops = sums[:, -1].tolist() if reduction.exact_totals else None
        nearest = nearest_lines(sums, reduction)
        kept = tamed(sums, np.cumsum(nearest[laid].reshape(sums.shape), axis=1), variance)
        means = _means([row[:measured].copy() for row in kept], variance, sloped=True, tops=tops)
        runs_of = [np.cumsum(each[laid].reshape(sums.shape), axis=1) for each in runs.shrunk(cells, variance)]
        return np.stack(
            [nearest]
            + [
                nearest_lines(np.concatenate([each, sums[:, measured:]], axis=1), reduction)
                for each in [
                    *(np.stack([line[k] for line in means]) for k in range(PENALTIES + JOINED)),
                    *(each[:, :measured] for each in runs_of),
                ]
            ]
        )

    noises = reduction.width - len(reduction.fixed)
    return Estimators(made, 4, _on_coordinates(reduction), noises)


def _on_grid(reduction: GridTransform) -> Estimators | None:
    """The nearest non-negative cells, and their means over blocks of 2, 4, 8, ... cells along every axis of the graph."""
    if reduction.width > LONG:
        return None
    at = np.indices(reduction.shape).reshape(len(reduction.shape), -1)
    longest = max(reduction.shape[axis] for axis in reduction.axes)
    blocks = []
    for level in range(1, (longest - 1).bit_length() + 1):
        parts = [at[axis] >> level if axis in reduction.axes else at[axis] for axis in range(len(at))]
        label = np.ravel_multi_index(parts, reduction.shape)
        blocks.append(np.unique(label, return_inverse=True)[1].reshape(-1))
    u, v = reduction.edges()
    degrees = np.bincount(np.concatenate([u, v]), minlength=at.shape[1])

    def made(cells: Ints, variance: float) -> Floats:
        nearest = np.maximum(projection(reduction, cells), 0.0)
        means = [(np.bincount(each, nearest) / np.bincount(each))[each] for each in blocks]
        return np.stack([nearest, *means])

    noises = len(degrees) - len(reduction.fixed)
    return Estimators(made, 2 * int(degrees.max()), _least_flows(reduction, u, v), noises, 1)


def _least_flows(reduction: GridTransform, u: Ints, v: Ints) -> Callable[[Floats], Floats]:
    """The shortest coordinates of rows of cells, since those of a grid are not unique: the flow with the least sum of squares, by a factorisation of the Laplacian."""
    from scipy.sparse.linalg import splu

    size = int(np.prod(reduction.shape))
    tops = reduction.roots[:0] if reduction.exact_totals else reduction.roots
    kept = np.ones(size, dtype=bool)
    kept[reduction.roots] = not reduction.exact_totals
    laplacian = graph_laplacian(size, u, v, tops).tocsr()[kept, :][:, kept]
    options = {"SymmetricMode": True}
    factor = splu(laplacian.tocsc(), permc_spec="MMD_AT_PLUS_A", options=options)

    def measured(rows: Floats) -> Floats:
        found = np.zeros((len(rows), size))
        found[:, kept] = factor.solve(np.ascontiguousarray(rows[:, kept].T, dtype=np.float64)).T
        return np.concatenate([found[:, v] - found[:, u], found[:, tops]], axis=1)

    return measured


def _on_forest(reduction: ForestTransform) -> Estimators | None:
    from policygraph.estimation._compiled_segments import heavy_paths

    lone = not len(reduction.fixed) and bool((reduction.parent < 0).all())
    laid = np.arange(reduction.width, dtype=np.int64)
    if lone:
        cuts = [laid]
    else:
        sizes = reduction.apply(np.ones(reduction.width, dtype=np.int64))
        laid, starts = heavy_paths(reduction.order, reduction.parent, sizes)
        free = np.ones(reduction.width, dtype=bool)
        free[reduction.fixed] = False
        paths = (laid[a:b] for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
        cuts = [path[free[path]] for path in paths]
    cuts = [path for path in cuts if len(path) >= SHORTEST]
    if not cuts:
        return None
    # A path that ends below a total that is known rises to it; no other end is known.
    held = np.isin(reduction.parent, reduction.fixed)
    after = [int(reduction.parent[path[-1]]) if held[path[-1]] and not lone else -1 for path in cuts]
    runs = _Runs.of(np.zeros_like(laid), laid, reduction.parent, reduction.fixed)
    whole = graph_of(reduction.policy).components() if len(reduction.fixed) else None

    def totalled(found: Floats, cells: Ints) -> Floats:
        if whole is None:
            return found
        missing = np.bincount(whole, cells - found) / np.bincount(whole)
        return found + missing[whole]

    def made(cells: Ints, variance: float) -> Floats:
        sums = reduction.apply(cells).astype(np.float64)
        tops = [float(sums[above]) if above >= 0 else float("nan") for above in after]
        out = [projection(reduction, cells)]
        kept = tamed(sums, _applied(reduction, out[0][None, :])[0], variance)
        means = _means([kept[path] for path in cuts], variance, sloped=not lone, tops=tops)
        for k in range(PENALTIES + JOINED):
            moved = sums.copy()
            for path, each in zip(cuts, means, strict=True):
                moved[path] = each[k]
            out.append(projection(reduction, reduction.invert(moved)))
        out += [projection(reduction, totalled(each, cells)) for each in runs.shrunk(cells, variance)]
        return np.stack(out)

    noises = reduction.width - len(reduction.fixed)
    return Estimators(made, 1 if lone else 4, _on_coordinates(reduction), noises)


def _weights(reduction: Reduction, family: Estimators, cells: Ints, noise: Noise) -> Floats:
    """Weights of the candidates by the unbiased estimate of their errors, and by how many numbers they follow."""
    replay = Replay("adaptive", cells)
    pairs = min(4, max(1, REPEATS // max(1, 2 * reduction.width)))
    risks: Any = 0.0
    sums: Any = 0.0
    numbers: Any = 0.0
    for _ in range(pairs):
        drawn = replay.draws(noise, (reduction.width,))
        drawn[reduction.fixed] = 0
        once = reduction.invert(drawn)
        for shift in (once, -once):
            found = family.made(cells + shift, 2 * noise.variance)
            other = found - (cells - shift)
            risks = risks + (other**2).sum(axis=1) / (2 * pairs)
            sums = sums + np.square(family.measured(other)).sum(axis=1) / (2 * pairs)
            followed = family.measured(found) @ family.measured(shift[None, :])[0]
            numbers = numbers + followed / (2 * pairs * noise.variance)
    errors = sums - 2 * noise.variance * family.noises
    against = risks / family.norm + np.maximum(errors - family.allowed * max(errors[0], 0.0), 0.0)
    made = -against / (4 * noise.variance) - 2 * np.log1p(np.maximum(numbers, 0.0))
    made = np.exp(made - made.max())
    return np.asarray(made / made.sum())
