"""Consistent tables from noisy ones. Owns :func:`fit` (least squares) and :func:`best_sources` (sums without it).

Both see noisy numbers and publicly known tables only. Least squares needs no matrix: each interaction block is the
average of its estimates, weighted by their precisions (Theorem 2 of ``docs/explanation/proofs/cubes.md``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.transforms.cuboids.blocks import Tables, join, project, settle, split
from policygraph.transforms.cuboids.choose import Choice
from policygraph.transforms.cuboids.lattice import Family, Lattice
from policygraph.transforms.cuboids.variances import block_variances

__all__ = ["below_known", "best_sources", "fit"]


def fit(
    lattice: Lattice,
    choice: Choice,
    measured: Mapping[int, Any],
    wanted: Sequence[int],
    known: Mapping[int, Any] | None = None,
) -> Tables:
    """Estimate tables by least squares from measured ones, with some of them known exactly.

    Parameters
    ----------
    lattice
        The cuboids.
    choice
        What was measured, and with which weights.
    measured
        The noisy numbers of each measured cuboid (or interaction), still times their weight.
    wanted
        Cuboids to estimate; all that can be computed from them come along.
    known
        Exact whole numbers of cuboids.

    Returns
    -------
    dict
        A table for every cuboid below a wanted one. They agree with each other and with the known ones to the last
        bit: values are multiples of a power of two, and summing them as floats makes no error.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 2}))
    >>> made = fit(lattice, Choice((("a", "b"),), (1,)), {3: [4, 1, 2, 3]}, [3], {1: [6, 4]})
    >>> made[3].tolist(), made[1].tolist(), made[2].tolist()
    ([[4.5, 1.5], [1.5, 2.5]], [6.0, 4.0], [6.0, 4.0])
    """
    exact = below_known(lattice, known or {})
    masks = [lattice.mask(names) for names in choice.sets]
    out = Family(lattice, wanted)
    if choice.kind == "cuboids":
        tables = _averages(lattice, choice, masks, measured, out)
    else:
        tables = _interactions(lattice, choice, masks, measured, out)
    for mask in out.masks.tolist():
        if mask in exact:
            tables[mask] = project(exact[mask])
        elif mask not in tables:
            if all(n > 1 for n in lattice.shape(mask)):
                raise InputError(
                    f"nothing that was measured tells the interaction of {list(lattice.names(mask))}.",
                    code="cubes.not-computable",
                    value=lattice.names(mask),
                )
            tables[mask] = np.zeros(lattice.shape(mask))
    join(out, tables)
    settle(out, tables, exact)
    return tables


def _averages(
    lattice: Lattice, choice: Choice, masks: Sequence[int], measured: Mapping[int, Any], out: Family
) -> Tables:
    """Blocks below the wanted cuboids, averaged over all measured cuboids above them."""
    if not masks:
        return {}
    family = Family(lattice, masks)
    tables: Tables = {}
    for mask, weight in zip(masks, choice.weights, strict=True):
        # The estimate y / w has precision w^2, and enters with that weight.
        tables[mask] = np.array(measured[mask], dtype=np.float64).reshape(lattice.shape(mask))
        tables[mask] *= float(weight)
    split(family, tables)
    precisions = family.spread(masks, np.square(np.array(choice.weights, dtype=np.float64)))
    variances = block_variances(family, precisions)
    for mask, variance in zip(family.masks.tolist(), variances.tolist(), strict=True):
        if mask in out.index:
            tables[mask] *= variance
        else:
            del tables[mask]
    return tables


def _interactions(
    lattice: Lattice, choice: Choice, masks: Sequence[int], measured: Mapping[int, Any], out: Family
) -> Tables:
    """Blocks from interactions that were measured directly."""
    tables: Tables = {}
    for mask, weight in zip(masks, choice.weights, strict=True):
        if mask not in out.index:
            continue
        shape = lattice.shape(mask)
        rows = np.array(measured[mask], dtype=np.float64).reshape([1 if n == 2 else n for n in shape])
        rows /= weight * prod(shape)
        for position, n in enumerate(shape):
            if n == 2:
                rows = np.concatenate([rows, -rows], axis=position)
        tables[mask] = project(rows)
    return tables


def below_known(lattice: Lattice, known: Mapping[int, Any]) -> Tables:
    """Exact tables of everything that can be computed from the known ones.

    Raises
    ------
    InputError
        When two known tables disagree about a third.
    """
    exact: Tables = {}
    for mask, values in known.items():
        table = np.array(values, dtype=np.float64).reshape(lattice.shape(mask))
        axes = lattice.axes(mask)
        for low in lattice.below(mask):
            gone = tuple(at for at, axis in enumerate(axes) if not low >> axis & 1)
            made = np.asarray(table.sum(axis=gone)) if gone else table
            if low in exact and not np.array_equal(exact[low], made):
                raise InputError(
                    f"the known cuboids disagree about {list(lattice.names(low))}: expected equal sums.",
                    code="cubes.known",
                    value=lattice.names(low),
                )
            exact.setdefault(low, made)
    return exact


def best_sources(
    lattice: Lattice,
    choice: Choice,
    measured: Mapping[int, Any],
    wanted: Sequence[int],
    known: Mapping[int, Any] | None = None,
) -> Tables:
    """Each wanted table as a sum of the measured one that gives it with least noise; they need not agree.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 2}))
    >>> made = best_sources(lattice, Choice((("a", "b"), ("a",)), (1, 1)), {3: [4, 1, 2, 3], 1: [6, 4]}, [1, 2])
    >>> made[1].tolist(), made[2].tolist()
    ([6.0, 4.0], [6.0, 4.0])
    """
    exact = below_known(lattice, known or {})
    weights = {lattice.mask(names): weight for names, weight in zip(choice.sets, choice.weights, strict=True)}
    tables: Tables = {mask: exact[mask] for mask in wanted if mask in exact}
    groups: dict[int, list[int]] = {}
    for mask in wanted:
        if mask not in exact:
            groups.setdefault(source_of(lattice, weights, mask), []).append(mask)
    for source, masks in groups.items():
        have = {source: np.asarray(measured[source], dtype=np.int64).reshape(lattice.shape(source))}
        for mask, start in lattice.route(masks, source):
            gone = tuple(at for at, axis in enumerate(lattice.axes(start)) if not mask >> axis & 1)
            have[mask] = np.asarray(have[start].sum(axis=gone) if gone else have[start], dtype=np.int64)
        for mask in masks:
            tables[mask] = have[mask].astype(np.float64) / weights[source]
    return tables


def source_of(lattice: Lattice, weights: Mapping[int, int], mask: int) -> int:
    """The measured cuboid that gives another with least variance."""
    found = [c for c in weights if lattice.computable(mask, of=c)]
    if not found:
        raise InputError(
            f"cuboid {list(lattice.names(mask))} cannot be computed from what was measured.",
            code="cubes.not-computable",
            value=lattice.names(mask),
        )
    return min(found, key=lambda c: (lattice.size(c) / weights[c] ** 2, c))
