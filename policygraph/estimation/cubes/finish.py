"""How noisy numbers become published tables. Owns :class:`Finish` and :func:`finished`.

Everything here is post-processing: it sees noisy numbers and exactly known ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.estimation.cubes.cells import MOST_BASE, Fact, all_sums, finest, from_tables, union
from policygraph.estimation.cubes.errors import factors_at
from policygraph.estimation.cubes.finest import nonnegative_cells, program_cells
from policygraph.estimation.cubes.least_squares import (
    below_known,
    best_sums,
    factors_with_facts,
    fit,
    fit_with_facts,
)
from policygraph.estimation.cubes.nonnegative import nonnegative_tables
from policygraph.estimation.cubes.rounding import controlled
from policygraph.ties import figures
from policygraph.transforms.cuboids.blocks import Tables, settle
from policygraph.transforms.cuboids.choose import Choice, measured_precisions
from policygraph.transforms.cuboids.costs import block_precisions, known_blocks
from policygraph.transforms.cuboids.lattice import Family, Floats, Lattice

Method = Literal["least-squares", "least-absolute", "least-maximum"]
Nonnegative = bool | Literal["nearest"]

GRID_BITS = 20
"""Non-negative tables are multiples of 2 to the minus this, so that their sums are exact."""
MOST_BITS = 45


@dataclass(frozen=True)
class Finish:
    """What published tables have to fulfil, and in which sense they are near the noisy numbers.

    Attributes
    ----------
    consistency
        ``"least-squares"``, ``"least-absolute"``, ``"least-maximum"``, or None: tables need not agree.
    nonnegative
        No count is negative; ``"nearest"``: the tables are the nearest non-negative ones in the norm of the noise, whatever the noisy numbers say of smoother ones.
    whole
        All counts are whole numbers.
    offset
        The probability with which shifted counts may still be negative; None: nothing is shifted.

    Examples
    --------
    >>> Finish(nonnegative=True).words
    'non-negative'
    >>> Finish(None, whole=True)
    Traceback (most recent call last):
    ...
    policygraph.errors.InputError: consistency=None with nonnegative, whole or offset: ...
    """

    consistency: Method | None = "least-squares"
    nonnegative: Nonnegative = False
    whole: bool = False
    offset: Fraction | None = None

    def __post_init__(self) -> None:
        if self.consistency is not None and self.consistency not in get_args(Method):
            raise InputError(
                f"consistency={self.consistency!r}: expected one of {', '.join(get_args(Method))}, or None.",
                code="cubes.consistency",
                value=self.consistency,
            )
        for option, more in (("nonnegative", ["nearest"]), ("whole", [])):
            given = getattr(self, option)
            if not isinstance(given, bool) and given not in more:
                raise InputError(
                    f"{option}={given!r}: expected True or False{', or ' * bool(more)}{''.join(map(repr, more))}.",
                    code="cubes.wish",
                    value=given,
                )
        if self.nearest and self.consistency != "least-squares":
            raise InputError(
                f"nonnegative='nearest' with consistency={self.consistency!r}: expected least squares, whose norm says what is near.",
                code="cubes.consistency",
            )
        if self.consistency is None and (self.nonnegative or self.whole or self.offset is not None):
            raise InputError(
                "consistency=None with nonnegative, whole or offset: expected a consistency, since these are made on one finest table.",
                code="cubes.consistency",
            )
        if self.offset is None:
            return
        if self.nonnegative or self.whole or self.consistency != "least-squares":
            raise InputError(
                "an offset is added to least-squares tables: expected neither nonnegative nor whole nor another consistency.",
                code="cubes.offset",
            )
        if not 0 < self.offset < 1:
            raise InputError(
                f"offset={self.offset}: expected a probability between 0 and 1.",
                code="cubes.offset",
                value=self.offset,
            )

    @property
    def nearest(self) -> bool:
        """Whether non-negative tables are the nearest ones in the norm of the noise and nothing else."""
        return self.nonnegative == "nearest"

    @property
    def agrees(self) -> bool:
        """Whether the published tables agree with each other."""
        return self.consistency is not None

    @property
    def plain(self) -> bool:
        """Whether the tables are linear in the noisy numbers, so that their variances are exact."""
        return self.consistency in (None, "least-squares") and not (self.nonnegative or self.whole)

    @property
    def words(self) -> str:
        """The options other than plain least squares, for the name of the mechanism."""
        if self.consistency is None:
            return "without consistency"
        said = [] if self.consistency == "least-squares" else [str(self.consistency)]
        said += (
            ["non-negative"] * bool(self.nonnegative) + ["nearest"] * self.nearest + ["whole"] * self.whole
        )
        return " ".join(said + ([f"offset {self.offset}"] if self.offset is not None else []))

    def to_json(self) -> dict[str, Any]:
        """Plain form for records."""
        return {
            "consistency": self.consistency,
            "nonnegative": self.nonnegative,
            "whole": self.whole,
            "offset": None if self.offset is None else str(self.offset),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finish:
        """The inverse of :meth:`to_json`."""
        offset = data["offset"]
        return cls(
            data["consistency"],
            data["nonnegative"],
            data["whole"],
            None if offset is None else Fraction(offset),
        )

    def stages(self) -> list[str]:
        """One sentence for each step, for people who read a release."""
        if self.consistency is None:
            return ["Each published table is the sum of the measured one that gives it with least noise."]
        made = {
            "least-squares": "The published tables are the least-squares estimates from all that was measured",
            "least-absolute": "The published tables have the least sum of absolute deviations from the noisy numbers",
            "least-maximum": "The published tables have the least largest deviation from the noisy numbers",
        }[self.consistency]
        if self.nonnegative and self.consistency == "least-squares":
            made = (
                "The published tables are the non-negative ones nearest to the least-squares estimates in the norm of the noise"
                if self.nearest
                else "The published tables are non-negative and near to the least-squares estimates, in a distance that counts the noise and the published cells alike"
            )
        lines = [
            f"{made}; they agree with each other and with the exact tables to the last bit."
            + ("" if self.nonnegative else " Counts may be negative.")
        ]
        if self.whole:
            lines.append(
                "The finest table was rounded to whole numbers in a way that keeps the exact tables; the published ones are its sums."
            )
        if not self.plain:
            lines.append(
                "Stated errors are those of the published counts, not of the least-squares estimates that the release also has: simulated with public draws of "
                "noise around the published tables, or proved bounds where that would be much work."
            )
        return lines


PLAIN = Finish()
"""Least squares and nothing else."""


@dataclass(frozen=True, eq=False)
class Finished:
    """Published tables, and how they came about.

    Attributes
    ----------
    tables
        The published tables.
    fitted
        The least-squares estimates where the published ones are not linear in the noise.
    gap
        For non-negative tables: how far their objective is from a proved bound, as a share of what least squares is expected to miss the truth by.
    smoothing
        How often a prior was made, chosen from the noisy numbers; 0: they are the nearest tables.
    """

    tables: Tables
    fitted: Tables | None = None
    gap: float | None = None
    smoothing: int | None = None


def reached(made: Finished) -> str:
    """One sentence on how near to the optimum non-negative tables are."""
    smooth = (
        "with a prior around smaller tables, which a comparison on the noisy numbers spoke for"
        if made.smoothing
        else "as near as non-negative tables can be"
    )
    return f"They were fitted {smooth}; the duality gap is {figures(made.gap or 0.0, 2):g} of the squared error that least squares is expected to have."


def finished(
    finish: Finish,
    lattice: Lattice,
    choice: Choice,
    measured: Mapping[int, Any],
    published: Sequence[int],
    known: Mapping[int, Any],
    facts: Sequence[Fact],
    variance: float,
    smoothing: int | None = None,
) -> Finished:
    """Make the published tables.

    Parameters
    ----------
    measured
        The noisy numbers of each measured cuboid or interaction, still times their weight.
    published
        Cuboids to be published.
    known, facts
        What is known exactly.
    variance
        Variance of one noise.
    smoothing
        How often the prior of non-negative tables is made; None: chosen from the noisy numbers.
    """
    if finish.consistency is None:
        return Finished(best_sums(lattice, choice, measured, published, known))
    if finish.plain:
        return Finished(_least_squares(lattice, choice, measured, published, known, facts))
    masks = [lattice.mask(names) for names in choice.sets]
    fitted = fit(lattice, choice, measured, published, known)
    if not needs_finest(finish, lattice, [*masks, *published], list(known), facts):
        return _local(finish, lattice, choice, measured, published, known, variance, fitted, smoothing)
    # The total alone is a table without attributes, which programs cannot be written over: one attribute more does no harm.
    top = finest(lattice, [*masks, *published]) or 1
    inside: dict[int, Floats] = {}
    for mask, table in known.items():
        shape = np.asarray(table, dtype=np.int64).reshape(lattice.shape(mask))
        inside[mask & top] = all_sums(lattice, shape, mask, [mask & top])[mask & top]
    held = [fact for fact in facts if lattice.computable(fact.mask, of=top)]
    if finish.consistency != "least-squares":
        x = program_cells(
            finish.consistency,
            lattice,
            top,
            choice,
            measured,
            inside,
            held,
            nonnegative=bool(finish.nonnegative),
        )
    elif finish.nonnegative:
        return _of_finest(
            finish,
            lattice,
            top,
            choice,
            measured,
            published,
            known,
            inside,
            held,
            variance,
            fitted,
            smoothing,
        )
    else:
        x = from_tables(lattice, _least_squares(lattice, choice, measured, published, known, facts), top)
    return Finished(_on_grid(finish, lattice, top, x, published, inside, held), fitted)


def needs_finest(
    finish: Finish, lattice: Lattice, masks: Sequence[int], known: Sequence[int], facts: Sequence[Fact]
) -> bool:
    """Whether tables are made as sums of one finest table.

    Non-negative least-squares tables that need not be whole are made without it, unless other public sums have to be met; or known tables besides the total, while the
    finest table can be held.
    """
    if finish.plain or finish.consistency is None:
        return False
    if finish.consistency != "least-squares" or finish.whole or facts:
        return True
    return any(known) and lattice.size(union(masks)) <= MOST_BASE


def _least_squares(
    lattice: Lattice,
    choice: Choice,
    measured: Mapping[int, Any],
    published: Sequence[int],
    known: Mapping[int, Any],
    facts: Sequence[Fact],
) -> Tables:
    if not facts:
        return fit(lattice, choice, measured, published, known)
    return fit_with_facts(lattice, choice, measured, published, known, facts)


def _precisions(
    lattice: Lattice, choice: Choice, family: Family, known: Mapping[int, Any], variance: float
) -> tuple[Floats, Any]:
    """One over the variance of every block after least squares, and which blocks are known."""
    measured = measured_precisions(choice, family)
    each = block_precisions(family, measured) if choice.kind == "cuboids" else measured
    return each / max(variance, 1e-12), known_blocks(family, known)


def _local(
    finish: Finish,
    lattice: Lattice,
    choice: Choice,
    measured: Mapping[int, Any],
    published: Sequence[int],
    known: Mapping[int, Any],
    variance: float,
    fitted: Tables,
    smoothing: int | None,
) -> Finished:
    """Non-negative tables that agree with each other, without a finest table."""
    masks = [lattice.mask(names) for names in choice.sets]
    family = Family(lattice, [*masks, *published])
    tables = fit(lattice, choice, measured, lattice.maximal([*masks, *published]), known)
    precisions, fixed = _precisions(lattice, choice, family, known, variance)
    made = nonnegative_tables(
        family, precisions, fixed, tables, published, smoothing=smoothing, nearest=finish.nearest
    )
    out = Family(lattice, published)
    exact = below_known(lattice, known)
    tops = lattice.maximal(published)
    share = 0.0
    while True:
        # Rounding to a common grid can take the last bits of an empty cell below 0: a trace of an even table makes room.
        total = float(exact[0]) if 0 in exact else max(float(made.tables[0]), 0.0)
        mixed = {
            mask: np.array((1 - share) * made.tables[mask] + share * total / lattice.size(mask))
            for mask in out.masks.tolist()
        }
        settle(out, mixed, exact)
        if min(float(mixed[mask].min()) for mask in tops) >= 0:
            return Finished(mixed, fitted, made.gap, made.passes)
        share = 10 * share if share else 1e-12
        if share > 1 or any(known):
            raise RefusedError(
                "the exactly known tables leave cells whose last bits cannot be kept above 0. Publish tables whose attributes have a finest table that can be held, "
                "or leave out nonnegative.",
                code="cubes.nonnegative",
            )


def _of_finest(
    finish: Finish,
    lattice: Lattice,
    top: int,
    choice: Choice,
    measured: Mapping[int, Any],
    published: Sequence[int],
    known: Mapping[int, Any],
    inside: Mapping[int, Any],
    facts: Sequence[Fact],
    variance: float,
    fitted: Tables,
    smoothing: int | None,
) -> Finished:
    """Non-negative tables as sums of one finest table."""
    masks = [lattice.mask(names) for names in choice.sets]
    tops = lattice.maximal([*masks, *published])
    family = Family(lattice, tops)
    try:
        tables = _least_squares(lattice, choice, measured, tops, known, facts)
    except RefusedError:
        # More public sums than least squares takes: the finest table meets them all the same.
        tables = fit(lattice, choice, measured, tops, known)
    precisions, fixed = _precisions(lattice, choice, family, known, variance)
    closed: dict[int, Any] = {}
    for mask in tops:
        empty = np.zeros(lattice.shape(mask), dtype=np.bool_)
        for fact in facts:
            if fact.empty and lattice.computable(fact.mask, of=mask):
                empty.reshape(-1)[fact.cells_in(lattice, mask)] = True
        if np.any(empty):
            closed[mask] = empty
    near = nonnegative_tables(
        family,
        precisions,
        fixed,
        tables,
        published,
        closed,
        rough=True,
        smoothing=smoothing,
        nearest=finish.nearest,
    )
    aims = {mask: near.tables[mask] for mask in family.masks.tolist()}
    x = nonnegative_cells(lattice, top, aims, inside, facts)
    made = _on_grid(finish, lattice, top, x, family.masks.tolist(), inside, facts)
    return Finished({mask: made[mask] for mask in published}, fitted, near.gap_at(made), near.passes)


def _on_grid(
    finish: Finish,
    lattice: Lattice,
    top: int,
    x: Floats,
    published: Sequence[int],
    known: Mapping[int, Any],
    facts: Sequence[Fact],
) -> Tables:
    """Round the finest table so that exactly known sums are met to the last integer, and sum it."""
    bits = 0
    if not finish.whole:
        room = MOST_BITS - int(np.ceil(np.log2(max(1.0, float(np.abs(x).sum())))))
        bits = max(0, min(GRID_BITS, room))
    scale = 1 << bits
    cells = controlled(
        lattice,
        top,
        x * scale,
        {mask: np.asarray(table, dtype=np.int64) * scale for mask, table in known.items()},
        [fact.with_value(int(fact.value or 0) * scale) for fact in facts],
    )
    made = all_sums(lattice, cells, top, published)
    return {mask: made[mask].astype(np.float64) / scale for mask in published}


def cell_factors(
    finish: Finish,
    lattice: Lattice,
    choice: Choice,
    known: Sequence[int],
    facts: Sequence[Fact],
    masks: Sequence[int],
    published: Sequence[int],
) -> list[float | Floats]:
    """Variance of the linear estimate behind some cuboids, in units of the noise variance.

    Returns
    -------
    list
        One number for each cuboid; an array with one for each cell where facts make them differ. For tables that are not linear in
        the noise it is that of the least-squares estimate without facts.
    """
    made: list[float | Floats] = [
        float(f) for f in factors_at(lattice, choice, known, masks, consistent=finish.agrees)
    ]
    if not facts or not finish.plain:
        return made
    plain = [float(np.max(f)) for f in made]
    return factors_with_facts(lattice, choice, known, masks, facts, plain, published)
