"""How noisy numbers become published tables. Owns :class:`Finish` and :func:`finished`.

Everything here is post-processing: it sees noisy numbers and exactly known ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from policygraph.errors import InputError
from policygraph.estimation.cubes.cells import Fact, all_sums, finest, from_tables, union
from policygraph.estimation.cubes.errors import factors_at
from policygraph.estimation.cubes.finest import nonnegative_cells, program_cells
from policygraph.estimation.cubes.least_squares import best_sums, factors_with_facts, fit, fit_with_facts
from policygraph.estimation.cubes.rounding import controlled
from policygraph.transforms.cuboids.blocks import Tables
from policygraph.transforms.cuboids.choose import Choice
from policygraph.transforms.cuboids.lattice import Floats, Lattice

Method = Literal["least-squares", "least-absolute", "least-maximum"]

GRID_BITS = 20
"""Non-negative tables are multiples of 2 to the minus this, so that their sums are exact."""
MOST_BITS = 45
LOW_LEVEL = 3
FAR = 32
MOST_LOW = 128
"""Non-negative tables are also fitted to so many least-squares tables, of so many attributes, that sum so many measured cells."""


@dataclass(frozen=True)
class Finish:
    """What published tables have to fulfil, and in which sense they are near the noisy numbers.

    Attributes
    ----------
    consistency
        ``"least-squares"``, ``"least-absolute"``, ``"least-maximum"``, or None: tables need not agree.
    nonnegative
        No count is negative.
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
    nonnegative: bool = False
    whole: bool = False
    offset: Fraction | None = None

    def __post_init__(self) -> None:
        if self.consistency is not None and self.consistency not in get_args(Method):
            raise InputError(
                f"consistency={self.consistency!r}: expected one of {', '.join(get_args(Method))}, or None.",
                code="cubes.consistency",
                value=self.consistency,
            )
        for option in ("nonnegative", "whole"):
            if not isinstance(getattr(self, option), bool):
                raise InputError(
                    f"{option}={getattr(self, option)!r}: expected True or False.",
                    code="cubes.wish",
                    value=getattr(self, option),
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
        said += ["non-negative"] * self.nonnegative + ["whole"] * self.whole
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
                "The published tables are sums of one non-negative table that was fitted to the least-squares estimates in a few "
                "proximal steps from independent attributes"
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
                "The standard deviation is that of the least-squares estimate, which the release also has; the 95 % range says where "
                "the true count lies, seen from the published one."
            )
        return lines


PLAIN = Finish()
"""Least squares and nothing else."""


def finished(
    finish: Finish,
    lattice: Lattice,
    choice: Choice,
    measured: Mapping[int, Any],
    published: Sequence[int],
    known: Mapping[int, Any],
    facts: Sequence[Fact],
    variance: float,
) -> tuple[Tables, Tables | None]:
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

    Returns
    -------
    tables, fitted
        The published tables; and the least-squares estimates where the published ones are not linear in the noise.
    """
    if finish.consistency is None:
        return best_sums(lattice, choice, measured, published, known), None
    if finish.plain:
        return _least_squares(lattice, choice, measured, published, known, facts), None
    masks = [lattice.mask(names) for names in choice.sets]
    # The total alone is a table without attributes, which programs cannot be written over: one attribute more does no harm.
    top = finest(lattice, [*masks, *published]) or 1
    inside: dict[int, Floats] = {}
    for mask, table in known.items():
        shape = np.asarray(table, dtype=np.int64).reshape(lattice.shape(mask))
        inside[mask & top] = all_sums(lattice, shape, mask, [mask & top])[mask & top]
    held = [fact for fact in facts if lattice.computable(fact.mask, of=top)]
    fitted = fit(lattice, choice, measured, published, known)
    if finish.consistency != "least-squares":
        x = program_cells(
            finish.consistency, lattice, top, choice, measured, inside, held, nonnegative=finish.nonnegative
        )
    elif finish.nonnegative:
        x = _nonnegative(lattice, top, choice, measured, published, known, inside, held, variance)
    else:
        x = from_tables(lattice, _least_squares(lattice, choice, measured, published, known, facts), top)
    return _on_grid(finish, lattice, top, x, published, inside, held), fitted


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


def _nonnegative(
    lattice: Lattice,
    top: int,
    choice: Choice,
    measured: Mapping[int, Any],
    published: Sequence[int],
    known: Mapping[int, Any],
    inside: Mapping[int, Any],
    facts: Sequence[Fact],
    variance: float,
) -> Floats:
    if choice.kind == "cuboids":
        near = {lattice.mask(s): variance / w**2 for s, w in zip(choice.sets, choice.weights, strict=True)}
    else:
        masks = lattice.maximal(published)
        factors = factors_at(lattice, choice, list(known), masks, consistent=True)
        near = {mask: variance * float(f) for mask, f in zip(masks, factors, strict=True)}
    low = _far_below(lattice, list(near), [*near, *published])
    factors = factors_at(lattice, choice, list(known), low, consistent=True)
    near |= {mask: variance * float(f) for mask, f in zip(low, factors, strict=True)}
    near = {mask: max(v, 1e-9) for mask, v in near.items()}
    singles = [1 << axis for axis in lattice.axes(union([*near, *published]))]
    fitted = fit(lattice, choice, measured, [*near, *published, *singles], known)
    return nonnegative_cells(lattice, top, fitted, near, inside, facts)


def _far_below(lattice: Lattice, near: Sequence[int], masks: Sequence[int]) -> list[int]:
    """Small tables that sum many cells of every fitted one, so that fitting that one alone would say little about them."""
    found: dict[int, int] = {}
    for top in lattice.maximal(masks):
        for mask in lattice.below(top):
            if 1 <= lattice.level(mask) <= LOW_LEVEL and mask not in near and mask not in found:
                above = [lattice.size(c & ~mask) for c in near if lattice.computable(mask, of=c)]
                found[mask] = min(above, default=0)
    far = [mask for mask, cells in found.items() if cells >= FAR]
    return sorted(far, key=lambda mask: (-found[mask], mask))[:MOST_LOW]


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
