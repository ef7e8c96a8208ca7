"""Whole non-negative histograms that adapt to the shape of the data, from noisy numbers alone. Owns :func:`adaptive`.

Candidates are the nearest non-negative cells; on lines and trees means over segmentations of the noisy sums for several penalties, cells whose differences within nested runs are
shrunk level by level, and cells that are all alike; on grids means of the nearest non-negative cells over blocks, wherever these begin. The mixture of them is published whose error is
least in releases that are simulated around what the noisy numbers bear out (``docs/explanation/proofs/adaptive-histograms.md``). Sees noisy numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.distributions.noise import NONE, Noise
from policygraph.distributions.replay import Replay
from policygraph.estimation.buckets import fewest, nearby, pooled, stretches
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

PENALTIES = 3
"""Penalties of a piece: 2 log n and its halves, n being the number of noisy sums."""
DROP = 20.0
"""Segmentations lighter than exp(-20) of others at the same place are left out."""
MOST = 1 << 22
"""Most noisy sums over which segmentations are averaged; beyond, the nearest non-negative cells are taken."""
SPREAD = 6.0
"""Var(n^2) / Var(n)^2 of Laplace noise, which is 5, and one more for neighbouring cells that share noise; for Gaussian noise it is less."""
JOINED = 2
"""Pieces are joined for so many of the penalties, the largest ones: small penalties leave short pieces, whose ends are not known any better from what is beside them."""
KEPT = (*range(PENALTIES, PENALTIES + JOINED), *range(JOINED, PENALTIES))
"""Which of the means over segmentations are candidates, of those for each penalty and of those with joined pieces: where pieces are joined, the means without are no better."""
SAMPLES = 16
"""Segmentations that are drawn for it: their mean errs by a sixteenth more than all of them. For very long sequences it is a quarter of that, since errors of pieces average out."""
SHORTEST = 3
"""Sequences of fewer sums have no piece worth a penalty."""
SIMULATED = 1 << 14
"""Releases of so many sums in all are simulated in a round: 1 to 8, since the errors of many cells average out within one."""
ROUNDS = 2
"""Rounds of simulation on lines and trees, the second around the mixture that the first one found; one on grids, whose candidates are all smoother than the noisy cells."""
ON_GRIDS = 4
"""Releases of a grid that are simulated at least, since what differs by chance between them is used there."""
PRICES, STEPS = (-6.0, 9.0), 40
"""Powers of ten between which the price of errors of boxes is found, and by how many halvings."""
WINDOW = 8
"""Sums on each side from which lines are found: so many say what is beside them better than a noisy value does."""
SURE = 5.0
"""Beyond log n and this many scales there is a noise in one of 150 sequences of n values only."""
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
        Weight of each candidate: the nearest non-negative cells first, then on lines and trees segmentations with joined pieces for the two largest penalties, a mean over segmentations
        for the smallest, nested runs, and cells that are all alike; on grids means over blocks of 2, 4, 8, ... cells along each axis, and of all.
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

    Which candidates to believe is found by public noise w of the same distribution that is added and subtracted: given z + w, noise z - w has mean 0, because z and w can be exchanged. So noisy sums - w
    are fresh sums for an estimate from noisy cells + w, and their likelihood weighs the candidates. Releases are then simulated with the mixture by these weights in place of the truth, and
    the mixture is taken whose errors are least there: those of cells, as a share of the least of any candidate, and those of the coordinates, as a share of the noise. On lines and trees this is done once more
    around the mixture that was found. On grids the distances between candidates are as they are seen, not as they are simulated, and boxes err no more than those of the nearest cells.

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
    ([0, 0, 0, 1, 991, 0, 0, 0], 6)
    """
    cells = np.asarray(noisy, dtype=np.int64).reshape(-1)
    family = None if noise.distribution == NONE else candidates_of(reduction)
    if family is None:
        return Adapted(mixed(reduction, cells, noise, np.ones(1)), np.ones(1))
    found = family.made(cells, noise.variance)
    weights = _weights(reduction, family, cells, noise, found)
    return Adapted(rounded(reduction, weights @ found, cells), weights)


def mixed(reduction: Reduction, noisy: Any, noise: Noise, weights: Floats) -> Ints:
    """Whole cells >= 0 with weights of the candidates that were found before."""
    cells = np.asarray(noisy, dtype=np.int64).reshape(-1)
    family = candidates_of(reduction) if len(weights) > 1 else None
    found = projection(reduction, cells)[None, :] if family is None else family.made(cells, noise.variance)
    return rounded(reduction, weights @ found, cells)


@dataclass(frozen=True)
class Estimators:
    """The candidates for a transform.

    Attributes
    ----------
    made
        Candidates, a row of non-negative cells for each, from noisy cells and the variance of the noise of a coordinate.
    measured
        The coordinates with noise, of rows of cells.
    noises
        Noises in all these coordinates together.
    boxes
        On grids, where ranges are no differences of two coordinates: sums over all boxes that begin at the first cell, of rows of cells. Their errors and those of the coordinates
        count as much as those of cells there, and are no larger than those of the nearest cells.
    """

    made: Callable[[Ints, float], Floats]
    measured: Callable[[Floats], Floats]
    noises: int
    boxes: Callable[[Floats], Floats] | None = None


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


@lru_cache(maxsize=4 * WINDOW)
def _line_beside(before: int, after: int) -> tuple[Floats, Floats]:
    """What the least-squares line through so many values before and after a place says of it, and what the values differ from that line, as factors of the values."""
    at = np.concatenate([np.arange(-before, 0.0), np.arange(1.0, after + 1)])
    line = np.stack([np.ones(len(at)), at], axis=1)
    fit = np.linalg.pinv(line)
    return fit[0], np.eye(len(at)) - (line @ fit).T


def settled(sums: Floats, variance: float, top: float = float("nan")) -> Floats:
    """Noisy sums without single values that stand out of two lines that meet there.

    Parameters
    ----------
    sums
        Noisy sums, which rise from 0.
    variance
        Variance of the noise.
    top
        What they rise to, or nan.

    Notes
    -----
    Where the values on each side of a sum are a line but for the noise, the sum is brought as near to what the two lines say of it as the largest of as many Gaussian noises would be,
    unless it is farther away than Laplace noise is likely to bring any of them. A jump is left alone, since one of the two lines follows it, and so are sums that are rough. Near an end it is
    one line, through what is known of the end.

    Examples
    --------
    >>> rising = 100.0 * np.arange(1, 101)
    >>> rising[50] += 6
    >>> bool(settled(rising, 1.0)[50] - 5100 < 4)
    True
    >>> jump = np.where(np.arange(100) < 50, 0.0, 7.0)
    >>> bool((settled(jump, 1.0) == jump).all())
    True
    """
    count = len(sums)
    if count <= 2 * WINDOW:
        return sums
    low, high, rest = (np.zeros(count) for _ in range(3))
    free = np.full(count, 2.0 * WINDOW - 4)
    inner = sums[WINDOW:-WINDOW]
    seen = np.lib.stride_tricks.sliding_window_view(sums, WINDOW)
    sides = [seen[: len(inner)] - inner[:, None], seen[WINDOW + 1 :] - inner[:, None]]
    fits = [_line_beside(WINDOW, 0), _line_beside(0, WINDOW)]
    lines = [side @ ahead for side, (ahead, _) in zip(sides, fits, strict=True)]
    low[WINDOW:-WINDOW], high[WINDOW:-WINDOW] = np.minimum(*lines), np.maximum(*lines)
    rest[WINDOW:-WINDOW] = sum(
        np.square(side @ off).sum(axis=1) for side, (_, off) in zip(sides, fits, strict=True)
    )
    known = np.concatenate([[0.0], sums, [] if np.isnan(top) else [top]])
    for place in (*range(WINDOW), *range(count - WINDOW, count)):
        before, after = min(place + 1, WINDOW), min(len(known) - place - 2, WINDOW)
        near = known[place + 1 - before : place + 2 + after] - sums[place]
        ahead, off = _line_beside(before, after)
        away = np.delete(near, before)
        low[place] = high[place] = away @ ahead
        rest[place], free[place] = np.square(away @ off).sum(), before + after - 2.0
    reach = np.sqrt(2.0 * variance * np.log(count))
    likely = np.sqrt(variance / 2) * (np.log(count) + SURE)
    smooth = rest <= variance * (free + 2 * np.sqrt((SPREAD - 1) * free))
    out = ((low > reach) & (low < likely)) | ((high < -reach) & (high > -likely))
    return np.asarray(sums + np.where(smooth & out, np.where(low > 0, low - reach, high + reach), 0.0))


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

    def shrunk(self, cells: Ints, variance: float) -> Floats:
        """Cells after shrinkage of differences within runs, by factors for parts of a level."""
        least = fewest(len(cells), SPREAD)
        return pooled(
            cells.astype(np.float64),
            stretches(self.pieces, self.laid),
            lambda labels: self.noises(labels) * variance,
            spread=SPREAD,
            groups=lambda numbers: nearby(numbers, self.laid, least),
        )


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
        ends = [float("nan")] * len(sums) if tops is None else tops
        cut = [settled(row[:measured], variance, top) for row, top in zip(kept, ends, strict=True)]
        means = _means(cut, variance, sloped=True, tops=tops)
        flat = sums[:, -1:] * np.arange(1, length + 1) / length
        runs_of = np.cumsum(runs.shrunk(cells, variance)[laid].reshape(sums.shape), axis=1)
        return np.stack(
            [nearest]
            + [
                nearest_lines(np.concatenate([each, sums[:, measured:]], axis=1), reduction)
                for each in [
                    *(np.stack([line[k] for line in means]) for k in KEPT),
                    runs_of[:, :measured],
                    flat[:, :measured],
                ]
            ]
        )

    noises = reduction.width - len(reduction.fixed)
    return Estimators(made, _on_coordinates(reduction), noises)


def over_blocks(cells: Floats, axes: Sequence[int], side: int) -> Floats:
    """Means over blocks of so many cells along each of some axes, wherever blocks begin: the mean of all choices.

    Parameters
    ----------
    cells
        Cells >= 0, as an array.
    axes
        Along which blocks extend.
    side
        Cells of a block along each of them.

    Notes
    -----
    Cells go on beyond each end as in a mirror. Along an axis the block of a cell holds one that is d < side cells away for side - d of the choices, and blocks along several axes are products:
    two running means along each axis. What a cell gives to another is what it gets from it, so that sums along an axis are kept.

    Examples
    --------
    >>> over_blocks(np.array([0.0, 0.0, 8.0, 0.0]), [0], 2).tolist()
    [0.0, 2.0, 4.0, 2.0]
    """
    for axis in axes:
        length = cells.shape[axis]
        wide = min(side, 1 << (length - 1).bit_length())
        beyond = [(wide - 1, wide - 1) if other == axis else (0, 0) for other in range(cells.ndim)]
        sums = np.moveaxis(np.pad(cells, beyond, mode="symmetric"), axis, 0)
        for _ in range(2):
            until = np.concatenate([np.zeros_like(sums[:1]), np.cumsum(sums, axis=0)])
            sums = (until[wide:] - until[:-wide]) / wide
        cells = np.maximum(np.moveaxis(sums, 0, axis), 0.0)
    return cells


def _on_grid(reduction: GridTransform) -> Estimators | None:
    """The nearest non-negative cells, their means over blocks of 2, 4, 8, ... cells along every axis of the graph, and over all of them."""
    if reduction.width > LONG:
        return None
    longest = max(reduction.shape[axis] for axis in reduction.axes)
    sides = [1 << level for level in range(1, (longest - 1).bit_length())]
    u, v = reduction.edges()

    def made(cells: Ints, variance: float) -> Floats:
        nearest = np.maximum(projection(reduction, cells), 0.0)
        cells_of = nearest.reshape(reduction.shape)
        means = [over_blocks(cells_of, reduction.axes, side).reshape(-1) for side in sides]
        alike = np.broadcast_to(cells_of.mean(axis=reduction.axes, keepdims=True), reduction.shape)
        return np.stack([nearest, *means, alike.reshape(-1)])

    def boxes(rows: Floats) -> Floats:
        sums = rows.reshape(len(rows), *reduction.shape)
        for axis in reduction.axes:
            sums = np.cumsum(sums, axis=axis + 1)
        return sums.reshape(len(rows), -1)

    noises = reduction.width - len(reduction.fixed)
    return Estimators(made, _least_flows(reduction, u, v), noises, boxes)


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
    alike = np.zeros_like(laid) if whole is None else whole

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
        cut = [
            kept[path] if lone else settled(kept[path], variance, top)
            for path, top in zip(cuts, tops, strict=True)
        ]
        means = _means(cut, variance, sloped=not lone, tops=tops)
        for k in KEPT:
            moved = sums.copy()
            for path, each in zip(cuts, means, strict=True):
                moved[path] = each[k]
            out.append(projection(reduction, reduction.invert(moved)))
        means_of = np.bincount(alike, cells) / np.bincount(alike)
        out += [
            projection(reduction, totalled(each, cells))
            for each in (runs.shrunk(cells, variance), means_of[alike])
        ]
        return np.stack(out)

    noises = reduction.width - len(reduction.fixed)
    return Estimators(made, _on_coordinates(reduction), noises)


def _weights(reduction: Reduction, family: Estimators, cells: Ints, noise: Noise, found: Floats) -> Floats:
    """Weights of the mixture with the least errors in simulated releases."""
    replay = Replay("adaptive", cells)

    def drawn() -> Ints:
        made = replay.draws(noise, (reduction.width,))
        made[reduction.fixed] = 0
        return reduction.invert(made)

    releases = min(8, max(1, SIMULATED // reduction.width))
    pairs = max(1, releases // 2)
    missed = np.zeros(len(found))
    for _ in range(pairs):
        once = drawn()
        for shift in (once, -once):
            other = family.made(cells + shift, 2 * noise.variance) - (cells - shift)
            missed += np.square(family.measured(other)).sum(axis=1) / (2 * pairs)
    # The noise of what was held out has twice the variance.
    likely = np.exp((missed.min() - missed) / (4 * noise.variance))
    weights: Floats = likely / likely.sum()
    if family.boxes is not None:
        return _guarded_weights(reduction, family, cells, noise.variance, found, weights @ found, drawn)
    for _ in range(ROUNDS):
        truth = rounded(reduction, weights @ found, cells)
        errors = np.zeros((2, len(found), len(found)))
        for _ in range(releases):
            off = family.made(truth + drawn(), noise.variance) - truth
            errors += np.stack([each @ each.T for each in (off, family.measured(off))]) / releases
        # Less than one count in all is no error.
        units = [max(float(np.diag(errors[0]).min()), 1.0), noise.variance * family.noises]
        weights = best_mixture((errors / np.array(units)[:, None, None]).sum(axis=0))
    return weights


def _guarded_weights(
    reduction: Reduction,
    family: Estimators,
    cells: Ints,
    variance: float,
    found: Floats,
    mean: Floats,
    drawn: Callable[[], Ints],
) -> Floats:
    """Weights of the mixture on a grid with the least errors of cells, coordinates and boxes whose boxes err no more than those of the nearest cells."""
    truth = rounded(reduction, mean, cells)
    boxes = family.boxes if family.boxes is not None else family.measured

    def products(rows: Floats) -> Floats:
        return np.stack([each @ each.T for each in (rows, family.measured(rows), boxes(rows))])

    releases = min(8, max(ON_GRIDS, SIMULATED // reduction.width))
    made = np.stack(
        [products(family.made(truth + drawn(), variance) - truth) for _ in range(releases)], axis=1
    )
    seen = products(found - found[0])
    return guarded([borne_out(each, here) for each, here in zip(made, seen, strict=True)])


def borne_out(made: Floats, seen: Floats) -> Floats:
    """Products of the errors of candidates, simulated, with what their distances from the first one show beyond it.

    Parameters
    ----------
    made
        Products of the errors in each of some releases that were simulated, two at least.
    seen
        Products of the differences from the first candidate, of the candidates as they are.

    Notes
    -----
    The error of a candidate is that of the first one and its difference from it: |e_k|^2 = |e_0|^2 + |d_k|^2 + 2 <d_k, e_0>. The differences are seen, and need no simulation. What is smoother than the truth
    takes away what the simulation does not know of, and that shows in them. What they are beyond the simulated ones is kept but for the share of its square that chance explains, by the variance of the simulated releases.

    Examples
    --------
    >>> smooth = np.array([[4.0, 1.0], [1.0, 1.0]])
    >>> borne_out(np.array([smooth, smooth]), np.array([[0.0, 0.0], [0.0, 9.0]])).tolist()
    [[4.0, 1.0], [1.0, 7.0]]
    """
    mean = made.mean(axis=0)
    apart = made - made[:, :, :1] - made[:, :1, :] + made[:, :1, :1]
    expected = apart.mean(axis=0)
    sizes = np.sqrt(np.maximum(np.diag(expected), 1.0))
    scale = np.outer(sizes, sizes)
    beyond = seen - expected
    count = len(made)
    chance = np.square((apart - expected) / scale).sum() / (count - 1) * (1 + 1 / count)
    shown = np.square(beyond / scale).sum()
    share = max(0.0, 1.0 - chance / shown) if shown > 0 else 0.0
    return np.asarray(mean + share * beyond)


def guarded(errors: Sequence[Floats]) -> Floats:
    """The weights >= 0 with sum 1 of least errors of several kinds together, as shares of the least of each, of which the last kind is at most that of the first candidate.

    Parameters
    ----------
    errors
        For each kind the products of the errors of the candidates.

    Examples
    --------
    >>> cells, boxes = np.array([[9.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0], [1.0, 4.0]])
    >>> guarded([cells, boxes]).round(3).tolist()
    [1.0, 0.0]
    >>> guarded([cells, np.array([[1.0, 0.0], [0.0, 4.0]])]).round(3).tolist()
    [0.6, 0.4]
    """
    # Less than one count in all is no error.
    total = np.asarray(sum(each / max(float(np.diag(each).min()), 1.0) for each in errors))
    last = errors[-1] / max(float(errors[-1][0, 0]), 1.0)
    most = float(last[0, 0])
    weights = _least(total)
    if weights @ last @ weights <= most:
        return weights
    # The larger its price, the smaller the error of the last kind.
    low, high = PRICES
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        tried = _least(total + 10.0**middle * last)
        if tried @ last @ tried <= most:
            high, weights = middle, tried
        else:
            low = middle
    if weights @ last @ weights <= most:
        return weights
    return np.asarray(np.eye(len(total))[0])


def _least(products: Floats) -> Floats:
    """The best mixture for products that are semidefinite on differences of weights alone: a constant, which is the same for all weights, makes them so on all."""
    top = float(np.abs(products).max())
    added = products
    for power in range(8):
        if np.linalg.eigvalsh(added)[0] >= -1e-12 * np.abs(added).max():
            break
        added = products + top * 10.0**power
    return best_mixture(added)


def best_mixture(products: Floats) -> Floats:
    """The weights >= 0 with sum 1 of the least quadratic form.

    Parameters
    ----------
    products
        A positive semidefinite matrix, such as the products of the errors of some estimates.

    Notes
    -----
    With products P'P it is the shortest point of the convex hull of the columns of P. The non-negative solution x of least |P x|^2 + (1'x - 1)^2 is a multiple of it: for
    every sum of x the first term is least at the same weights (Lawson and Hanson, Solving Least Squares Problems, chapter 23).

    Examples
    --------
    >>> best_mixture(np.array([[1.0, 0.0], [0.0, 3.0]])).round(6).tolist()
    [0.75, 0.25]
    """
    from scipy.optimize import nnls

    # In units of the least error, so that no multiple is too small to be told.
    values, vectors = np.linalg.eigh(products / max(float(np.diag(products).min()), 1e-12))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    count = len(products)
    found, _ = nnls(np.vstack([root, np.ones(count)]), np.append(np.zeros(count), 1.0))
    return np.asarray(found / found.sum())
