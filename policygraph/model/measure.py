"""A number that every record carries besides its cell, such as an income. Owns :class:`Measure`.

A measure has a declared range and a granularity: each value is clipped into the range and rounded to the unit, record by
record and whatever the other records are, so that it is one of finitely many levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from policygraph.errors import InputError
from policygraph.exact import Exact, as_fraction, show

MOST_LEVELS = 10**9
"""Most units between 0 and an end of the range; sums of levels then fit 64 bits for billions of records."""

FINEST = 10**100
"""Units and their inverses are at most this, so that values in units are floats."""


@dataclass(frozen=True, init=False)
class Measure:
    """A numeric column with a declared range.

    Parameters
    ----------
    column
        Name of the column in the data.
    low, high
        The declared range; values outside count as its nearer end. It must not be taken from the data: choose it from what
        everybody knows about such values.
    unit
        Granularity: values are rounded to its multiples. ``low`` and ``high`` are multiples of it.
    missing
        What to do with a record that has no number here: ``"error"``, ``"drop"`` (leave the record out), or the value that
        it counts with.
    in_all
        Under a :class:`~policygraph.model.units.Unit`: the most, in absolute value, that all records of one unit add to a sum together;
        None: as many records as count, each within the range.

    Examples
    --------
    >>> income = Measure("income", low=0, high=100_000, unit=100)
    >>> income.lowest, income.highest, income.span
    (0, 1000, 1000)
    >>> print(income)
    income, clipped to 0 ... 100000 and rounded to multiples of 100
    >>> Measure("income", 10, 0)
    Traceback (most recent call last):
    ...
    policygraph.errors.InputError: low=10, high=0: expected low < high. ...
    """

    column: str
    low: Fraction
    high: Fraction
    unit: Fraction = Fraction(1)
    missing: Literal["error", "drop"] | Fraction = "error"
    in_all: Fraction | None = None

    def __init__(
        self,
        column: str,
        low: Exact,
        high: Exact,
        unit: Exact = 1,
        missing: str | Exact = "error",
        in_all: Exact | None = None,
    ) -> None:
        if not isinstance(column, str) or not column.strip():
            raise InputError(
                f"column={column!r}: expected the name of a column.", code="measure.column", value=column
            )
        start, end, step = as_fraction(low, "low"), as_fraction(high, "high"), as_fraction(unit, "unit")
        if not Fraction(1, FINEST) <= step <= FINEST:
            raise InputError(
                f"unit={show(step)}: expected a number > 0, such as 1 or 0.01, from 10^-100 to 10^100.",
                code="measure.unit",
                value=unit,
            )
        if start >= end:
            raise InputError(
                f"low={show(start)}, high={show(end)}: expected low < high. The range is declared, and not taken from the data.",
                code="measure.range",
                low=start,
                high=end,
            )
        for name, number in (("low", start), ("high", end)):
            if (number / step).denominator != 1:
                raise InputError(
                    f"{name}={show(number)}: expected a multiple of the unit {show(step)}. Widen the range, or take a finer unit.",
                    code="measure.unit",
                    value=number,
                )
            if abs(number / step) > MOST_LEVELS:
                raise InputError(
                    f"{name}={show(number)} with unit={show(step)}: expected at most {MOST_LEVELS:,} units from 0. Take a coarser unit.",
                    code="measure.levels",
                    value=number,
                )
        rule: Any = missing
        if missing not in ("error", "drop"):
            rule = as_fraction(missing, "missing")
            if not start <= rule <= end or (rule / step).denominator != 1:
                raise InputError(
                    f"missing={show(rule)}: expected 'error', 'drop', or a multiple of {show(step)} from {show(start)} to {show(end)}.",
                    code="measure.missing",
                    value=missing,
                )
        together = None if in_all is None else as_fraction(in_all, "in_all")
        far = max(abs(start), abs(end))
        if together is not None and (
            together < far or (together / step).denominator != 1 or together / step > MOST_LEVELS**2
        ):
            raise InputError(
                f"in_all={show(together)}: expected the most that all records of one unit add to a sum together, a multiple of {show(step)} that is at least {show(far)}, "
                f"which one record can have, and at most {MOST_LEVELS**2:,} units. For a smaller one narrow the range.",
                code="measure.in-all",
                value=in_all,
            )
        for field, value in (
            ("column", column),
            ("low", start),
            ("high", end),
            ("unit", step),
            ("missing", rule),
            ("in_all", together),
        ):
            object.__setattr__(self, field, value)

    @property
    def lowest(self) -> int:
        """The low end in units."""
        return int(self.low / self.unit)

    @property
    def highest(self) -> int:
        """The high end in units."""
        return int(self.high / self.unit)

    @property
    def together(self) -> int | None:
        """The most that all records of one unit add to a sum together, in units of the measure; None: any number."""
        return None if self.in_all is None else int(self.in_all / self.unit)

    @property
    def span(self) -> int:
        """Length of the range in units."""
        return self.highest - self.lowest

    @property
    def levels(self) -> int:
        """How many values there are."""
        return self.span + 1

    @property
    def middle(self) -> Fraction:
        """The middle of the range."""
        return (self.low + self.high) / 2

    def value(self, level: int) -> int | float:
        """The value of a level, counted from 0 at the low end, as a plain number."""
        exact = self.low + level * self.unit
        return int(exact) if exact.denominator == 1 else float(exact)

    def to_spec(self) -> dict[str, Any]:
        """Plain form for policy files and fingerprints."""
        spec: dict[str, Any] = {"column": self.column, "low": _plain(self.low), "high": _plain(self.high)}
        if self.unit != 1:
            spec["unit"] = _plain(self.unit)
        if self.missing != "error":
            spec["missing"] = self.missing if isinstance(self.missing, str) else _plain(self.missing)
        if self.in_all is not None:
            spec["in_all"] = _plain(self.in_all)
        return spec

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Measure:
        """Make a measure from its plain form (the inverse of :meth:`to_spec`).

        Examples
        --------
        >>> bill = Measure("bill", 0, 50, "0.01", missing=0)
        >>> Measure.from_spec(bill.to_spec()) == bill
        True
        """
        return cls(**spec)

    def rule(self) -> str:
        """Say in one sentence what is done to the values; nothing in it depends on the data."""
        missing = {
            "error": "every record must have a value",
            "drop": "records without a value are left out",
        }.get(str(self.missing))
        if missing is None and isinstance(self.missing, Fraction):
            missing = f"records without a value count with {show(self.missing)}"
        whole = (
            ""
            if self.in_all is None
            else f" What all records of one unit add to a sum was cut off at {show(self.in_all)}."
        )
        return (
            f"Values of {self.column} were clipped to the declared range from {show(self.low)} to {show(self.high)} and rounded to "
            f"multiples of {show(self.unit)}; {missing}.{whole} How many were clipped is not said."
        )

    def __str__(self) -> str:
        whole = "" if self.in_all is None else f", at most {show(self.in_all)} for one unit in all"
        return f"{self.column}, clipped to {show(self.low)} ... {show(self.high)} and rounded to multiples of {show(self.unit)}{whole}"


def _plain(number: Fraction) -> int | str:
    return number.numerator if number.denominator == 1 else str(number)
