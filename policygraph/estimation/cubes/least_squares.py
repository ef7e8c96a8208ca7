"""Least-squares estimates of cuboids, with whole public tables and with other public sums. Owns :func:`fit`, :func:`fit_with_facts`.

Whole tables are estimated block by block. Other public sums are a few linear conditions on tables whose covariance is known in closed form: the
estimate moves along the covariance of the conditions (``docs/explanation/proofs/cubes-consistency.md``, section 1), and is then rounded so
that it meets them exactly. Sees noisy numbers and public values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from math import gcd, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.estimation.cubes.cells import Fact, all_sums, zeros_below
from policygraph.transforms.cuboids.blocks import Tables, join, project, settle, split
from policygraph.transforms.cuboids.choose import Choice, measured_precisions
from policygraph.transforms.cuboids.costs import block_variances, known_blocks
from policygraph.transforms.cuboids.lattice import Family, Floats, Ints, Lattice

MOST_ENTRIES = 40_000_000
LARGEST = 1 << 31
BITS = 49
MOST_FACTS = 4_000
"""Conditions of one fit, structural zeros counted in the largest published tables."""
DENSE_WORK = 40_000_000
"""Conditions times cells up to which variances of single cells are computed; beyond, those without the facts bound them."""
TINY = 1e-10
STEPS = 400


def coordinates(lattice: Lattice, fact: Fact) -> dict[int, Ints]:
    """A fact in terms of the cells away from the first labels of its table and all smaller ones.

    Examples
    --------
    The first cell of two by two is the total less the two other margins plus the last cell:

    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 2}))
    >>> made = coordinates(lattice, Fact(3, np.array([0]), np.array([1])))
    >>> {mask: table.tolist() for mask, table in sorted(made.items())}
    {0: 1, 1: [0, -1], 2: [0, -1], 3: [[0, 0], [0, 1]]}
    """
    row = np.zeros(lattice.size(fact.mask), dtype=np.int64)
    row[fact.cells] = fact.coefficients
    made = {fact.mask: row.reshape(lattice.shape(fact.mask))}
    for axis in lattice.axes(fact.mask):
        for mask in list(made):
            position = Lattice.level(mask & ((1 << axis) - 1))
            table = made[mask]
            first = table[(slice(None),) * position + (0,)].copy()
            # The cell at the first label is the table without the attribute less all other labels.
            table -= np.expand_dims(first, position)
            low = mask ^ (1 << axis)
            made[low] = made[low] + first if low in made else first
    return made


def meet(family: Family, tables: Tables, exact: Tables, facts: Sequence[Fact]) -> None:
    """Move tables, in place and by less than rounding, so that facts hold exactly once first labels are filled up.

    Parameters
    ----------
    tables
        Tables that meet the facts up to float errors.
    exact
        Known tables, whose cells do not move.

    Raises
    ------
    RefusedError
        When the facts contradict the known tables, or have no solution that pivots of 1 can reach.
    """
    lattice = family.lattice
    masks = family.masks.tolist()
    starts = dict(zip(masks, np.concatenate([[0], np.cumsum([lattice.size(m) for m in masks])]).tolist()))
    free = [mask for mask in masks if mask not in exact]
    rows: list[npt.NDArray[np.int64]] = []
    used: list[npt.NDArray[np.int64]] = []
    goals: list[int] = []
    for fact in facts:
        spread = coordinates(lattice, fact)
        goal = int(fact.value or 0)
        places, entries = [], []
        for mask, table in spread.items():
            if mask in exact:
                goal -= int((table * exact[mask].astype(np.int64)).sum())
                continue
            flat = table.reshape(-1)
            at = np.flatnonzero(flat)
            places.append(at + starts[mask])
            entries.append(flat[at])
        used.append(np.concatenate(places) if places else np.zeros(0, dtype=np.int64))
        rows.append(np.concatenate(entries) if entries else np.zeros(0, dtype=np.int64))
        goals.append(goal)
    columns = np.unique(np.concatenate(used)) if used else np.zeros(0, dtype=np.int64)
    if len(facts) * len(columns) > MOST_ENTRIES:
        raise RefusedError(
            f"{len(facts):,} public sums that meet {len(columns):,} cells are too many to be met exactly: expected a product of at most "
            f"{MOST_ENTRIES:,}. State fewer, or use nonnegative=True.",
            code="cubes.public-sums",
        )
    matrix = np.zeros((len(facts), len(columns)), dtype=np.int64)
    for index, (place, entry) in enumerate(zip(used, rows, strict=True)):
        matrix[index, np.searchsorted(columns, place)] = entry
    pivots = _eliminate(matrix, goals)
    laid = np.concatenate([tables[mask].reshape(-1) for mask in free]) if free else np.zeros(0)
    base = np.concatenate([[0], np.cumsum([lattice.size(m) for m in free])]).tolist()
    where = dict(zip(free, base, strict=False))
    owner = np.searchsorted(np.array([starts[m] for m in masks]), columns, side="right") - 1
    shift = np.array([where.get(m, 0) - starts[m] for m in masks])
    places_in = columns + shift[owner]
    top = float(np.abs(laid).max(initial=1.0)) * max(
        (max(lattice.shape(m), default=1) for m in masks), default=1
    )
    bits = min(38, BITS - int(np.ceil(np.log2(max(top, 1.0)))))
    if bits < 0:
        raise RefusedError("the counts are too large to meet public sums exactly.", code="cubes.overflow")
    scale = 1 << bits
    theta = np.rint(laid[places_in] * scale).astype(np.int64)
    for index, column in reversed(pivots):
        row = matrix[index]
        others = int((row.astype(object) * theta.astype(object)).sum()) - int(row[column]) * int(
            theta[column]
        )
        theta[column] = int(row[column]) * (goals[index] * scale - others)
    _write(tables, free, base, laid, places_in, theta, scale)


def _write(
    tables: Tables, free: list[int], base: list[int], laid: Floats, places: Ints, theta: Ints, scale: int
) -> None:
    laid[places] = theta.astype(np.float64) / scale
    for mask, start in zip(free, base, strict=False):
        table = tables[mask]
        table[...] = laid[start : start + table.size].reshape(table.shape)


def _eliminate(matrix: Ints, goals: list[int]) -> list[tuple[int, int]]:
    """Bring integer equations into echelon form with pivots 1 or -1, in place; rows and columns of the pivots."""
    pivots: list[tuple[int, int]] = []
    for at in range(len(matrix)):
        row = matrix[at]
        filled = np.flatnonzero(row)
        if not len(filled):
            if goals[at]:
                raise _contradiction()
            continue
        common = gcd(*(int(v) for v in row[filled]))
        if common > 1:
            if goals[at] % common:
                raise _contradiction()
            row //= common
            goals[at] //= common
        ones = filled[np.abs(row[filled]) == 1]
        if not len(ones):
            raise RefusedError(
                "the coefficients of the public counts leave no cell that could take up the rest: expected counts with coefficients 1. "
                "State them apart, or use nonnegative=True.",
                code="cubes.public-sums",
            )
        column = int(ones[-1])
        pivots.append((at, column))
        below = at + 1 + np.flatnonzero(matrix[at + 1 :, column])
        factors = matrix[below, column] * row[column]
        matrix[below] -= factors[:, None] * row[None, :]
        for index, factor in zip(below.tolist(), factors.tolist(), strict=True):
            goals[index] -= factor * goals[at]
        if len(below) and int(np.abs(matrix[below]).max()) > LARGEST:
            raise RefusedError(
                "the public counts are too entangled to be met exactly.", code="cubes.public-sums"
            )
    return pivots


def _contradiction() -> RefusedError:
    return RefusedError(
        "the public sums contradict each other or the known tables: no counts have all of them.",
        code="cubes.contradiction",
    )


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
                    f"the interaction of {list(lattice.names(mask))} cannot be estimated from what was measured.",
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


def best_sums(
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
    >>> made = best_sums(lattice, Choice((("a", "b"), ("a",)), (1, 1)), {3: [4, 1, 2, 3], 1: [6, 4]}, [1, 2])
    >>> made[1].tolist(), made[2].tolist()
    ([6.0, 4.0], [6.0, 4.0])
    """
    exact = below_known(lattice, known or {})
    weights = {lattice.mask(names): weight for names, weight in zip(choice.sets, choice.weights, strict=True)}
    tables: Tables = {mask: exact[mask] for mask in wanted if mask in exact}
    groups: dict[int, list[int]] = {}
    for mask in wanted:
        if mask not in exact:
            groups.setdefault(_best_parent(lattice, weights, mask), []).append(mask)
    for parent, masks in groups.items():
        table = np.asarray(measured[parent], dtype=np.int64).reshape(lattice.shape(parent))
        sums = all_sums(lattice, table, parent, masks)
        for mask in masks:
            tables[mask] = sums[mask].astype(np.float64) / weights[parent]
    return tables


def _best_parent(lattice: Lattice, weights: Mapping[int, int], mask: int) -> int:
    """The measured cuboid whose sums give another with least variance."""
    found = [c for c in weights if lattice.computable(mask, of=c)]
    if not found:
        raise InputError(
            f"cuboid {list(lattice.names(mask))} cannot be computed from what was measured.",
            code="cubes.not-computable",
            value=lattice.names(mask),
        )
    return min(found, key=lambda c: (lattice.size(c) / weights[c] ** 2, c))


def _blocks(choice: Choice, family: Family, known: Iterable[int]) -> Floats:
    precisions = measured_precisions(choice, family)
    if choice.kind == "cuboids":
        return block_variances(family, precisions, known)
    with np.errstate(divide="ignore"):
        made: Floats = 1.0 / precisions
    made[known_blocks(family, known)] = 0.0
    return made


def usable(
    lattice: Lattice, choice: Choice, known: Sequence[int], published: Sequence[int], facts: Sequence[Fact]
) -> list[Fact]:
    """The conditions that a least-squares fit can take: those about tables that can be estimated.

    Raises
    ------
    RefusedError
        When there are too many.
    """
    masks = [lattice.mask(names) for names in choice.sets]
    family = Family(lattice, [*masks, *published, *known])
    blocks = _blocks(choice, family, known)

    @cache
    def estimable(mask: int) -> bool:
        return mask in family.index and all(
            np.isfinite(blocks[family.index[low]]) or 1 in lattice.shape(low) for low in lattice.below(mask)
        )

    made = [
        f for f in zeros_below(lattice, facts, lattice.maximal(published), MOST_FACTS) if estimable(f.mask)
    ]
    if len(made) > MOST_FACTS:
        raise RefusedError(
            f"{len(made):,} or more public sums of cells: expected at most {MOST_FACTS:,} in one least-squares fit. With nonnegative=True "
            "structural zeros cost nothing; with consistency=None the tables do not use them.",
            code="cubes.public-sums",
            value=len(made),
        )
    return made


class Conditions:
    """Conditions on tables that were estimated by least squares.

    Parameters
    ----------
    masks
        Cuboids that are wanted.
    facts
        Conditions from :func:`usable`.
    """

    def __init__(
        self,
        lattice: Lattice,
        choice: Choice,
        known: Sequence[int],
        masks: Sequence[int],
        facts: Sequence[Fact],
    ) -> None:
        self.lattice, self.facts = lattice, list(facts)
        self.family = Family(lattice, [*masks, *(fact.mask for fact in facts)])
        measured = [lattice.mask(names) for names in choice.sets]
        wide = Family(lattice, [*measured, *self.family.masks.tolist(), *known])
        blocks = _blocks(choice, wide, known)[wide.at(self.family.masks.tolist())]
        self.blocks: Floats = np.where(np.isfinite(blocks), blocks, 0.0)
        self.cells = int(sum(lattice.size(mask) for mask in self.family.masks.tolist()))

    def covariance(self, weights: Mapping[int, Any]) -> Tables:
        """Covariances of all cells with the sum of some facts times weights, in units of the noise variance."""
        tables: Tables = {}
        for at, weight in weights.items():
            fact = self.facts[at]
            if fact.mask not in tables:
                tables[fact.mask] = np.zeros(self.lattice.shape(fact.mask))
            view = tables[fact.mask].reshape(-1)
            view[fact.cells] += weight * fact.coefficients
        split(self.family, tables)
        for mask, variance in zip(self.family.masks.tolist(), self.blocks.tolist(), strict=True):
            if mask in tables:
                tables[mask] *= variance
            else:
                tables[mask] = np.zeros(self.lattice.shape(mask))
        join(self.family, tables)
        return tables

    def values(self, tables: Mapping[int, Any]) -> Floats:
        """The sums of the facts in some tables."""
        return np.array([fact.of(tables[fact.mask]) for fact in self.facts], dtype=np.float64)

    @cached_property
    def dense(self) -> Floats | None:
        """Covariances of the facts with each other; None when they are too many."""
        if len(self.facts) * self.cells > DENSE_WORK:
            return None
        rows = [self.values(self.covariance({at: 1.0})) for at in range(len(self.facts))]
        return np.array(rows).reshape(len(rows), len(rows))

    @cached_property
    def inverse(self) -> Floats | None:
        """The pseudo-inverse of :attr:`dense`: facts that follow from known tables or from others count once."""
        if self.dense is None:
            return None
        sizes, vectors = np.linalg.eigh((self.dense + self.dense.T) / 2)
        kept = sizes > TINY * max(float(sizes.max(initial=0.0)), 1e-300)
        made: Floats = (vectors[:, kept] / sizes[kept]) @ vectors[:, kept].T
        return made

    def weights(self, missing: Floats) -> Floats:
        """Solve for how far to move along each fact."""
        if self.inverse is not None:
            first: Floats = self.inverse @ missing
            again = missing - np.asarray(self.dense) @ first
            return first + self.inverse @ again
        return _conjugate(lambda v: self.values(self.covariance(dict(enumerate(v.tolist())))), missing)

    def corrections(self, masks: Sequence[int]) -> dict[int, Floats] | None:
        """How much the facts take off the variance of each cell, in units of the noise variance; None when too many."""
        if self.inverse is None:
            return None
        columns = [self.covariance({at: 1.0}) for at in range(len(self.facts))]
        made = {}
        for mask in masks:
            wide = np.zeros((self.lattice.size(mask), len(columns)))
            for at, column in enumerate(columns):
                wide[:, at] = column[mask].reshape(-1)
            made[mask] = np.einsum("ij,ij->i", wide @ self.inverse, wide)
        return made


def _conjugate(apply: Any, target: Floats) -> Floats:
    """Conjugate gradients for a symmetric system that may be singular but has a solution."""
    x = np.zeros_like(target)
    rest = target.copy()
    move = rest.copy()
    size = float(rest @ rest)
    first = size
    for _ in range(STEPS):
        if size <= 1e-26 * first or size == 0.0:
            return x
        image = apply(move)
        length = size / float(move @ image)
        x += length * move
        rest -= length * image
        new = float(rest @ rest)
        move = rest + (new / size) * move
        size = new
    if size > 1e-16 * first:
        raise RefusedError(
            f"the {len(target):,} public sums could not be met within {STEPS} steps of conjugate gradients. State fewer of them, or use "
            "nonnegative=True.",
            code="cubes.public-sums",
        )
    return x


def fit_with_facts(
    lattice: Lattice,
    choice: Choice,
    measured: Mapping[int, Any],
    wanted: Sequence[int],
    known: Mapping[int, Any],
    facts: Sequence[Fact],
) -> Tables:
    """Least squares from measured tables subject to whole tables and other sums that are known exactly.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 2}))
    >>> fact = Fact(3, np.array([0]), np.array([1]), 5)
    >>> made = fit_with_facts(lattice, Choice((("a", "b"),), (1,)), {3: [4, 1, 2, 3]}, [3], {0: [10]}, [fact])
    >>> made[3].round(6).tolist()
    [[5.0, 0.666667], [1.666667, 2.666667]]
    """
    used = usable(lattice, choice, list(known), wanted, facts)
    masks = [*wanted, *dict.fromkeys(fact.mask for fact in used)]
    tables = fit(lattice, choice, measured, masks, known)
    if not used:
        return tables
    conditions = Conditions(lattice, choice, list(known), masks, used)
    missing = np.array([float(fact.value or 0) for fact in used]) - conditions.values(tables)
    moved = conditions.covariance(dict(enumerate(conditions.weights(missing).tolist())))
    for mask, change in moved.items():
        tables[mask] += change
    exact = below_known(lattice, known)
    meet(conditions.family, tables, exact, used)
    settle(conditions.family, tables, exact)
    return tables


def factors_with_facts(
    lattice: Lattice,
    choice: Choice,
    known: Sequence[int],
    masks: Sequence[int],
    facts: Sequence[Fact],
    plain: Sequence[float],
    published: Sequence[int],
) -> list[float | Floats]:
    """Variance of every cell of some cuboids after least squares with facts, in units of the noise variance.

    Parameters
    ----------
    plain
        The same without facts, one number for each cuboid.
    published
        The cuboids that were fitted together.
    """
    used = usable(lattice, choice, known, published, facts)
    if not used:
        return list(plain)
    conditions = Conditions(lattice, choice, known, [*published, *masks], used)
    taken = conditions.corrections(masks)
    if taken is None:
        return list(plain)
    return [np.maximum(before - taken[mask], 0.0) for mask, before in zip(masks, plain, strict=True)]
