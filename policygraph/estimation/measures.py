"""Released sums and averages. Owns :class:`MeasureRelease`, :class:`AverageTable` and :func:`ratio_intervals`.

An average is a noisy sum over a noisy count, worked out from released numbers only, with an interval that covers the true
average of the clipped values at least 95 times in 100; where the count is not clearly positive there is no average, and
the tables say so. Proofs in ``docs/explanation/proofs/measures.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.arrow import to_numpy
from policygraph.errors import InputError
from policygraph.model.measure import Measure
from policygraph.release.release import Release, Table
from policygraph.release.sheets import free

Floats = npt.NDArray[np.float64]
UNDEFINED = "undefined: the count is not clearly positive"
TINY = 1e-60
"""Squares below this are nothing to divide by."""


@dataclass(frozen=True)
class AverageTable(Table):
    """Averages with their intervals.

    Attributes
    ----------
    low_95, high_95
        Ends of an interval that covers the true average of the clipped values with probability 0.95 at least.
    defined
        Where the count is clearly positive; elsewhere value and interval are not a number, and outputs say why.
    """

    low_95: Floats = field(default_factory=lambda: np.zeros(0))
    high_95: Floats = field(default_factory=lambda: np.zeros(0))
    defined: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    @property
    def _notes(self) -> list[str | None]:
        return [None if known else UNDEFINED for known in self.defined.tolist()]

    def to_dict(self) -> dict[str, Any]:
        plain = super().to_dict()
        ends = {"values": self.values, "low_95": self.low_95, "high_95": self.high_95}
        kept = {key: plain[key] for key in ("name", "columns")}
        return kept | {key: _or_none(values) for key, values in ends.items()} | {"note": self._notes}

    def summary(self) -> str:
        gone = int((~self.defined).sum())
        noise = "none"
        if gone < len(self.defined):
            noise = f"95 % within {np.nanmin(self.within_95):.4g} to {np.nanmax(self.within_95):.4g}"
        note = f"; {gone:,} undefined, since the count is not clearly positive" if gone else ""
        return f"{self.name}: {len(self.values):,} values, {noise}{note}"


def _or_none(values: Any) -> list[Any]:
    """Numbers as a list, None where there is none."""
    return [None if x != x else x for x in np.asarray(values).tolist()]


def ratio_intervals(
    sums: Any, counts: Any, reach_sum: float, reach_count: float
) -> tuple[Floats, Floats, Any]:
    """Intervals for ratios of two numbers with noise, after Fieller.

    Parameters
    ----------
    sums, counts
        Noisy numerators and denominators.
    reach_sum, reach_count
        Such that the noise of sum - m count is within sqrt(reach_sum^2 + m^2 reach_count^2) with probability 0.95 for every m.

    Returns
    -------
    tuple
        Lower ends, upper ends, and where the denominator is clearly positive; elsewhere the ends are not a number.

    Notes
    -----
    At the true ratio m the combination sum - m count is noise alone, so that the set of all m with |sum - m count| within its
    reach covers the true one with the stated probability. It is an interval exactly if the count is beyond its own reach.

    Examples
    --------
    >>> low, high, defined = ratio_intervals([100.0, 3.0], [50.0, 2.0], 5.0, 3.0)
    >>> low.round(3).tolist(), high.round(3).tolist(), defined.tolist()
    ([1.851, nan], [2.164, nan], [True, False])
    """
    total, many = np.asarray(sums, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    # A count that only just exceeds its reach, or is next to nothing, gives no quotient of floats; it is not clearly positive then.
    defined = (many > reach_count) & ((many - reach_count) * (many + reach_count) >= TINY)
    safe = np.where(defined, many, 1.0 + reach_count)
    square = (safe - reach_count) * (safe + reach_count)
    under = reach_sum**2 * square + (reach_count * total) ** 2
    root = np.sqrt(np.maximum(under, 0.0))
    low = np.where(defined, (total * safe - root) / square, np.nan)
    high = np.where(defined, (total * safe + root) / square, np.nan)
    return low, high, defined


def average_table(
    measure: Measure, counts: Table, centred: Any, spread: tuple[float, float], reach: tuple[float, float]
) -> AverageTable:
    """Averages from counts and from sums of distances to the middle of the range.

    Parameters
    ----------
    counts
        The table of counts.
    centred
        Sums of (value - middle), noisy.
    spread
        Standard deviations of the noise of sums and of counts.
    reach
        Their 95 % reaches, as in :func:`ratio_intervals`.
    """
    middle, low, high = float(measure.middle), float(measure.low), float(measure.high)
    off, many = np.asarray(centred, dtype=np.float64), np.asarray(counts.values, dtype=np.float64)
    start, end, defined = ratio_intervals(off, many, *reach)
    safe = np.where(defined, many, 1.0)
    mean = np.where(defined, off / safe, np.nan)
    # The true average lies in the declared range, so that everything is cut to it; that can only shorten an interval.
    value, start, end = (np.clip(middle + x, low, high) for x in (mean, start, end))
    first_order = np.sqrt(spread[0] ** 2 + (np.where(defined, value - middle, 0.0) * spread[1]) ** 2)
    deviation = np.where(defined, first_order / safe, np.nan)
    name = counts.name.replace("count", f"average of {measure.column}", 1)
    within = np.maximum(end - value, value - start)
    return AverageTable(
        name,
        counts.columns,
        counts.labels,
        value,
        deviation,
        within,
        errors="bound",
        low_95=start,
        high_95=end,
        defined=defined,
    )


@dataclass(frozen=True, repr=False)
class MeasureRelease(Release):
    """Noisy sums of a measure, and for averages their counts and quotients.

    Examples
    --------
    >>> import policygraph as pg
    >>> from policygraph.curator.histogram import MeasuredCounts
    >>> domain = pg.Domain({"sex": ["F", "M"]})
    >>> income = pg.Measure("income", low=0, high=100)
    >>> data = MeasuredCounts.from_vectors(domain, income, [4000, 3], [160_000, 90])
    >>> query = pg.queries.averages(domain, [["sex"]], income)
    >>> made = pg.release(query, pg.Policy(domain), data, epsilon=1, rng=pg.SeededRng(1))
    >>> averages = made.average("sex")
    >>> averages.defined.tolist(), bool(averages.low_95[0] < 40 < averages.high_95[0])
    ([True, False], True)
    """

    def sum(self, *names: str) -> Table:
        """The sums for each combination of some attributes."""
        return self._of("sum", names)

    def count(self, *names: str) -> Table:
        """The counts for each combination of some attributes."""
        return self._of("count", names)

    def average(self, *names: str) -> AverageTable:
        """The averages for each combination of some attributes, with intervals."""
        found = self._of("average", names)
        if not isinstance(found, AverageTable):
            raise InputError("this release has no averages.", code="release.table")
        return found

    def _of(self, kind: str, names: tuple[str, ...]) -> Table:
        for table, part in zip(self.tables, self.record["parts"], strict=True):
            if part["kind"] == kind and set(table.columns) == set(names):
                return table
        shown = ", ".join(repr(t.name) for t in self.tables)
        raise InputError(
            f"{kind} by {list(names)}: expected one of {shown}.", code="release.table", value=names
        )

    def _arrow(self, tables: list[Table], *, named: bool) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        made = super()._arrow(tables, named=named)
        names = list(dict.fromkeys(column for table in tables for column in table.columns))
        for column in ("value", "standard_deviation", "within_95"):
            at = made.schema.get_field_index(free(column, names))
            held = made.column(at)
            held = pc.if_else(pc.is_nan(held), pa.scalar(None, held.type), held)
            made = made.set_column(at, made.schema.field(at).name, held)
        if not any(isinstance(table, AverageTable) for table in tables):
            return made
        ends: dict[str, list[Any]] = {"low_95": [], "high_95": [], "note": []}
        for table in tables:
            height = len(table.values)
            if isinstance(table, AverageTable):
                ends["low_95"] += _or_none(table.low_95)
                ends["high_95"] += _or_none(table.high_95)
                ends["note"] += table._notes
            else:
                for listed in ends.values():
                    listed += [None] * height
        for column, values in ends.items():
            kind = pa.string() if column == "note" else pa.float64()
            made = made.append_column(free(column, names), pa.array(values, kind))
        return made

    @classmethod
    def of_table(cls, table: Any, record: Mapping[str, Any]) -> MeasureRelease:
        """Read a release back from its Arrow table; averages are worked out again from sums and counts."""
        measure = Measure.from_spec(dict(record["query"]["measure"]))
        names = list(dict.fromkeys(c for part in record["parts"] for c in part["columns"]))
        value = free("value", names)
        tables: list[Table] = []
        start = 0
        for part in record["parts"]:
            piece = table.slice(start, part["height"])
            start += part["height"]
            if part["kind"] == "average":
                sums, counts = tables[-2], tables[-1]
                off = sums.values - float(measure.middle) * counts.values
                tables.append(
                    average_table(measure, counts, off, tuple(part["spread"]), tuple(part["reach"]))
                )
                continue
            values = to_numpy(piece.column(value))
            labels = tuple(to_numpy(piece.column(c)) for c in part["columns"])
            errors = part["standard_deviation"], part["within_95"]
            columns, basis = tuple(part["columns"]), part.get("errors")
            tables.append(Table(part["name"], columns, labels, values, *errors, errors=basis))
        return cls(tuple(tables), record)
