"""Sums and averages of a measure over cross-tabulations. Owns :class:`MeasureQuery`, :func:`sums`, :func:`averages`.

A record is here a cell of the domain together with a level of the measure, and the query is linear in how many records
there are of each kind. It cannot be answered from the counts of cells, and refuses to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd
from typing import Any, Literal

import numpy as np

from policygraph.errors import InputError
from policygraph.exact import Exact, as_fraction, show
from policygraph.model.domain import Domain
from policygraph.model.measure import Measure
from policygraph.model.queries.base import Ints, Norm, Part, Query
from policygraph.model.queries.cuboids import CuboidQuery

Kind = Literal["sums", "averages"]


class MeasureQuery(Query):
    """Tables of sums of a measure, alone or with the counts that make averages of them.

    Parameters
    ----------
    domain
        The domain of the records, without the measure.
    measure
        The measure.
    sets
        The attributes of each table.
    kind
        ``"sums"``, or ``"averages"``: sums and counts under one loss.
    weights
        A positive integer for each table: weight 2 means half the noise of weight 1.
    balance
        For averages: how the accuracy is shared. With 1 a count is as accurate as a sum is in units of half the range;
        with a larger number counts are more accurate.
    centred
        For sums: whether the middle of the range is subtracted from every value. Averages always do.

    Notes
    -----
    The integers that noise is added to: for a table of weight t the sum over its records of t p (f y - o), with y the value in
    units; plain sums have p = f = 1 and o = 0, centred ones f = 2 and o = lowest + highest (half units, so that the middle
    is a whole number). Averages have t q times the count beside it, with q / p = balance times the span. With balance 1 the
    worst first-order variance of an average over all averages within the range is least (``docs/explanation/proofs/measures.md``).

    Examples
    --------
    >>> query = averages(Domain({"sex": ["F", "M"]}), [["sex"]], Measure("income", 0, 1000, unit=100))
    >>> [part.name for part in query.parts], query.sum_weight, query.count_weight
    (['sum of income by sex', 'count by sex'], 1, 10)
    """

    domain: Domain
    needs_values = True

    def __init__(
        self,
        domain: Domain,
        measure: Measure,
        sets: Iterable[Sequence[str]],
        kind: Kind = "sums",
        *,
        weights: Sequence[int] | None = None,
        balance: Exact = 1,
        centred: bool = False,
    ) -> None:
        super().__init__(domain)
        if not isinstance(measure, Measure):
            raise InputError(
                f"measure={measure!r}: expected a measure such as pg.Measure('income', low=0, high=100_000).",
                code="measure.measure",
                value=measure,
            )
        if kind not in ("sums", "averages"):
            raise InputError(
                f"kind={kind!r}: expected 'sums' or 'averages'.", code="measure.kind", value=kind
            )
        self.counted = CuboidQuery(domain, sets, weights)
        self.measure, self.kind, self.sets, self.weights = (
            measure,
            kind,
            self.counted.sets,
            self.counted.weights,
        )
        self.balance = as_fraction(balance, "balance")
        if not Fraction(1, 1000) <= self.balance <= 1000:
            raise InputError(
                f"balance={show(self.balance)}: expected a number from 1/1000 to 1000.",
                code="measure.balance",
                value=balance,
            )
        self.centred = centred or kind == "averages"
        # q / p = balance * span, in lowest terms.
        up, down = self.balance.numerator * measure.span, self.balance.denominator
        common = gcd(up, down)
        self.sum_weight = down // common if kind == "averages" else 1
        self.count_weight = up // common if kind == "averages" else 0
        self._parts = tuple(part for at in range(len(self.sets)) for part in self._parts_of(at))

    def _parts_of(self, at: int) -> list[Part]:
        part, by = self.counted.parts[at], " x ".join(self.sets[at])
        beside = f" by {by}" if by else ""
        weight = self.weights[at]
        out = [
            Part(f"sum of {self.measure.column}{beside}", part.columns, part.height, weight * self.sum_weight)
        ]
        if self.kind == "averages":
            out.append(Part(f"count{beside}", part.columns, part.height, weight * self.count_weight))
        return out

    @property
    def parts(self) -> tuple[Part, ...]:
        return self._parts

    def part_labels(self, part: int) -> list[Any]:
        return self.counted.part_labels(part // (2 if self.kind == "averages" else 1))

    @property
    def ends(self) -> tuple[int, int]:
        """What the lowest and the highest value add to a sum of weight 1, in units of the query."""
        low, high = self.measure.lowest, self.measure.highest
        return (-self.measure.span, self.measure.span) if self.centred else (low, high)

    @property
    def sum_unit(self) -> Fraction:
        """The unit of sums of weight 1, in the units of the measure."""
        return self.measure.unit / (2 if self.centred else 1)

    def measured_with(self, sets: Iterable[Sequence[str]], weights: Sequence[int]) -> MeasureQuery:
        """The same kind of rows for other tables."""
        return MeasureQuery(
            self.domain, self.measure, sets, self.kind, weights=weights, balance=self.balance, centred=self.centred
        )  # fmt: skip

    def in_the_middle(self) -> MeasureQuery:
        """The same sums with the middle of the range subtracted from every value."""
        return MeasureQuery(
            self.domain, self.measure, self.sets, self.kind, weights=self.weights, balance=self.balance, centred=True
        )  # fmt: skip

    def for_records(self) -> MeasureQuery:
        """The same for single records: without a bound on what all records of one unit add together."""
        if self.measure.in_all is None:
            return self
        spec = {key: value for key, value in self.measure.to_spec().items() if key != "in_all"}
        return MeasureQuery(
            self.domain, Measure.from_spec(spec), self.sets, self.kind, weights=self.weights, balance=self.balance, centred=self.centred
        )  # fmt: skip

    def answer_from(self, counts: Mapping[int, Ints], totals: Mapping[int, Ints]) -> Ints:
        """Exact integer answers from the counts of each table and the sums of its levels in units.

        Parameters
        ----------
        counts, totals
            For the position of each table its counts, and its sums of values in units.
        """
        blocks = []
        for at, weight in enumerate(self.weights):
            whole = np.asarray(totals[at], dtype=np.int64)
            many = np.asarray(counts[at], dtype=np.int64)
            middle = self.measure.lowest + self.measure.highest
            rows = 2 * whole - middle * many if self.centred else whole
            blocks.append(rows * (weight * self.sum_weight))
            if self.kind == "averages":
                blocks.append(many * (weight * self.count_weight))
        return np.concatenate(blocks)

    def cell(self, index: int) -> tuple[Any, ...]:
        cell, level = divmod(int(index), self.measure.levels)
        return (*self.domain.cell(cell), self.measure.value(level))

    def change_norm(self, change: dict[int, int], norm: Norm) -> int:
        """Norm (squared for l2) of the answer to a change of records, each a cell times the levels plus a level."""
        low, high = self.ends
        moved: dict[tuple[int, bool, tuple[int, ...]], int] = {}
        for index, amount in change.items():
            cell, level = divmod(index, self.measure.levels)
            code = [int(axis[0]) for axis in self.domain.codes(np.array([cell]))]
            value = low + level * (high - low) // self.measure.span
            for at, (names, weight) in enumerate(zip(self.sets, self.weights, strict=True)):
                place = tuple(code[self.domain.axis(name)] for name in names)
                for counting, entry in ((False, self.sum_weight * value), (True, self.count_weight)):
                    key = (at, counting, place)
                    moved[key] = moved.get(key, 0) + weight * entry * amount
        return sum(abs(x) if norm == "l1" else x * x for x in moved.values())

    def answer(self, table: Any) -> Ints:
        raise self._no_cells()

    def answer_sparse(self, cells: Any, amounts: Any) -> Ints:
        raise self._no_cells()

    def columns(self, cells: Any) -> Any:
        raise self._no_cells()

    def _no_cells(self) -> InputError:
        return InputError(
            f"{self!r} is about the values of records, which counts of cells do not tell: expected pg.release with mechanism "
            "None or pg.Measured().",
            code="measure.cells",
        )

    def to_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {
            self.kind: [list(names) for names in self.sets],
            "measure": self.measure.to_spec(),
        }
        if set(self.weights) != {1}:
            spec["weights"] = list(self.weights)
        if self.balance != 1:
            spec["balance"] = str(self.balance)
        if self.centred and self.kind == "sums":
            spec["centred"] = True
        return spec

    @classmethod
    def from_spec(cls, domain: Domain, spec: dict[str, Any]) -> MeasureQuery:
        """Make the query from its plain form (the inverse of :meth:`to_spec`)."""
        kind: Kind = "sums" if "sums" in spec else "averages"
        return cls(
            domain,
            Measure.from_spec(spec["measure"]),
            spec[kind],
            kind,
            weights=spec.get("weights"),
            balance=spec.get("balance", 1),
            centred=spec.get("centred", False),
        )

    def __repr__(self) -> str:
        shown = ", ".join("{" + ", ".join(names) + "}" for names in self.sets)
        return f"MeasureQuery({self.kind} of {self.measure.column} by {shown})"


def sums(
    domain: Domain, sets: Iterable[Sequence[str]], measure: Measure, weights: Sequence[int] | None = None
) -> MeasureQuery:
    """Sums of a measure for each combination of some attributes; the empty set is the sum over all records.

    Examples
    --------
    >>> sums(Domain({"sex": ["F", "M"]}), [["sex"], []], Measure("income", 0, 1000)).height
    3
    """
    return MeasureQuery(domain, measure, sets, "sums", weights=weights)


def averages(
    domain: Domain,
    sets: Iterable[Sequence[str]],
    measure: Measure,
    weights: Sequence[int] | None = None,
    *,
    balance: Exact = 1,
) -> MeasureQuery:
    """Averages of a measure for each combination of some attributes: sums and counts under one loss.

    Examples
    --------
    >>> averages(Domain({"sex": ["F", "M"]}), [["sex"]], Measure("income", 0, 1000)).height
    4
    """
    return MeasureQuery(domain, measure, sets, "averages", weights=weights, balance=balance)
