"""Variances of cuboids that are made from measured ones. Owns :func:`plain_factors` and :func:`fitted_factors`.

All of it is free of data: the variance of a cell of a published cuboid is the variance of the noise times a factor that
depends on sizes, weights and what is known exactly. Theorems 1 and 2 of ``docs/explanation/proofs/cubes.md``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from policygraph.transforms.cuboids.lattice import Family, Floats

__all__ = [
    "block_precisions",
    "block_variances",
    "cell_variances",
    "cell_variances_adjoint",
    "cells_of_blocks",
    "fitted_factors",
    "known_blocks",
    "plain_factors",
]


def block_precisions(family: Family, precisions: Floats) -> Floats:
    """Precision of every interaction block from the precisions of the measured cuboids.

    Parameters
    ----------
    precisions
        One over the variance of a cell of each measured cuboid; 0 where nothing is measured.

    Returns
    -------
    ndarray
        q_S, the sum over all C above S of the precision of C / number of cells of C without S.
    """
    q = precisions.astype(np.float64, copy=True)
    for _, n, low, high in family.pairs:
        q[low] += q[high] / n
    return q


def cell_variances(family: Family, blocks: Floats) -> Floats:
    """Variance of a cell of every cuboid from the variances of the interaction blocks."""
    v = blocks.astype(np.float64, copy=True)
    for _, n, low, high in family.pairs:
        v[high] *= (n - 1) / n
        v[high] += v[low] / n**2
    return v


def cell_variances_adjoint(family: Family, slopes: Floats) -> Floats:
    """Slopes by variances of blocks, from slopes by variances of cells."""
    out = slopes.astype(np.float64, copy=True)
    for _, n, low, high in family.pairs:
        out[low] += out[high] / n**2
        out[high] *= (n - 1) / n
    return out


def known_blocks(family: Family, known: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which blocks lie below an exactly known cuboid."""
    out = np.zeros(len(family), dtype=np.bool_)
    for mask in known:
        out |= (family.masks & ~np.int64(mask)) == 0
    return out


def block_variances(family: Family, precisions: Floats, known: Iterable[int] = ()) -> Floats:
    """Variance of every interaction block after least squares: 0 where it is known, infinite where nothing tells it."""
    q = block_precisions(family, precisions)
    with np.errstate(divide="ignore"):
        out: Floats = 1.0 / q
    out[known_blocks(family, known)] = 0.0
    return out


def fitted_factors(family: Family, precisions: Floats, known: Iterable[int] = ()) -> Floats:
    """Variance of a cell of every cuboid of the family after least squares, in units of the noise variance.

    Parameters
    ----------
    family
        The published and measured cuboids with all below them.
    precisions
        Squared weight of each measured cuboid, 0 elsewhere, along ``family.masks``.
    known
        Cuboids that are known exactly.

    Examples
    --------
    Two tables of one attribute with 2 and 3 values, and their joint table, each measured with noise of variance 1:

    >>> from policygraph.transforms.cuboids.lattice import Lattice
    >>> from policygraph.model.domain import Domain
    >>> family = Family(Lattice(Domain({"a": 2, "b": 3})), [0b11])
    >>> fitted_factors(family, np.array([0.0, 1.0, 1.0, 1.0])).round(4).tolist()
    [1.0, 0.625, 0.5556, 0.5139]
    """
    return cells_of_blocks(family, block_variances(family, precisions, known))


def cells_of_blocks(family: Family, blocks: Floats) -> Floats:
    """Variance of a cell of every cuboid from the variances of the blocks, some of which may be infinite."""
    if np.all(np.isfinite(blocks)):
        return cell_variances(family, blocks)
    # 0 * inf: an attribute of one value has an empty interaction block, which needs no estimate.
    out = cell_variances(family, np.where(np.isfinite(blocks), blocks, 0.0))
    reached = cell_variances(family, np.where(np.isfinite(blocks), 0.0, 1.0))
    out[reached > 0] = np.inf
    return out


def plain_factors(family: Family, precisions: Floats, known: Iterable[int] = ()) -> Floats:
    """Variance of a cell of every cuboid when each is summed from its best measured source, in units of the noise.

    Examples
    --------
    >>> from policygraph.transforms.cuboids.lattice import Lattice
    >>> from policygraph.model.domain import Domain
    >>> family = Family(Lattice(Domain({"a": 2, "b": 3})), [0b11])
    >>> plain_factors(family, np.array([0.0, 0.0, 0.0, 1.0])).tolist()
    [6.0, 3.0, 2.0, 1.0]
    """
    with np.errstate(divide="ignore"):
        out: Floats = 1.0 / precisions
    for _, n, low, high in family.pairs:
        out[low] = np.minimum(out[low], out[high] * n)
    out[known_blocks(family, known)] = 0.0
    return out
