"""Least squares with public facts that are less than whole tables. Owns :func:`fit_with_facts`, :func:`factors_with_facts`.

A few linear conditions on tables whose covariance is known in closed form: the estimate moves along the covariance of the
conditions. ``docs/explanation/proofs/cubes-consistency.md``, section 1. Sees noisy numbers and public values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from policygraph.errors import RefusedError
from policygraph.estimation.cubes.exactly import meet
from policygraph.estimation.cubes.facts import Fact, zeros_below
from policygraph.estimation.cubes.fit import below_known, fit
from policygraph.transforms.cuboids.blocks import Tables, join, settle, split
from policygraph.transforms.cuboids.choose import Choice, measured_precisions
from policygraph.transforms.cuboids.lattice import Family, Floats, Lattice
from policygraph.transforms.cuboids.variances import block_variances, known_blocks

__all__ = ["MOST_FACTS", "Conditions", "factors_with_facts", "fit_with_facts", "usable"]

MOST_FACTS = 4_000
"""Conditions of one fit, structural zeros counted in the largest published tables."""
DENSE_WORK = 40_000_000
"""Conditions times cells up to which variances of single cells are computed; beyond, those without the facts bound them."""
TINY = 1e-10
STEPS = 400


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
    told: dict[int, bool] = {}

    def tells(mask: int) -> bool:
        if mask not in told:
            told[mask] = mask in family.index and all(
                np.isfinite(blocks[family.index[low]]) or 1 in lattice.shape(low)
                for low in lattice.below(mask)
            )
        return told[mask]

    made = [f for f in zeros_below(lattice, facts, lattice.maximal(published), MOST_FACTS) if tells(f.mask)]
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
        """The inverse of that on what the facts tell; those that follow from known tables or others count once."""
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
