"""Numbers that are not linear in the counts. Owns :class:`NonlinearQuery`, and :class:`ChiSquaredRoot` for tables.

They are released with bounds of their own (``sensitivity.statistics``), never with the sensitivity of a linear query: asking for columns is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.model.constraints.tables import Cuboid
from policygraph.model.domain import Domain
from policygraph.model.queries.base import Ints, Part, Query

if TYPE_CHECKING:
    from policygraph.model.policy import Policy

FINE = 1 << 10
"""One neighbour step changes the released whole number by at least this many units, so that rounding costs a part in a thousand at most."""
GUARD = 64
"""Bits that squares are computed with beyond those of the result: what is cut off is then less than one unit in all."""
MOST_CELLS = 1 << 20
MOST_RECORDS = 1 << 40


class NonlinearQuery(Query):
    """Whole numbers that follow from the counts of cells, not linearly."""

    def columns(self, cells: Any) -> NoReturn:
        raise RefusedError(
            f"{self!r} is not linear in the counts, so that it has no sensitivity over moves alone. Release it without naming a "
            "mechanism, or with pg.StatisticNoise(), which scale the noise to a bound of its own.",
            code="query.not-linear",
        )


class ChiSquaredRoot(NonlinearQuery):
    """The root of the chi-squared statistic of two attributes whose margins are public.

    Parameters
    ----------
    domain
        The table.
    margins
        For each of the two attributes its public counts, in the order of its labels.

    Notes
    -----
    With public margins the expected counts e = r c / n are constants, and chi-squared = sum (x - e)^2 / e is the square of a norm of x - e. Its root
    changes by at most the norm of the change of the table, whatever the table is; chi-squared itself changes the more the larger it is.
    What is computed is the whole number floor(root / unit), or one less, where the unit is a power of two that follows from the margins
    (``docs/explanation/proofs/chi-squared.md``).

    Examples
    --------
    >>> query = ChiSquaredRoot(Domain({"sex": ["F", "M"], "pay": ["low", "high"]}), {"sex": [50, 50], "pay": [50, 50]})
    >>> float(query.answer([30, 20, 20, 30])[0] * query.unit)
    2.0
    """

    domain: Domain

    def __init__(self, domain: Domain, margins: Any) -> None:
        if not isinstance(domain, Domain):
            raise InputError("chi-squared needs a table, not a network.", code="query.domain", value=domain)
        if not hasattr(margins, "items") or len(margins) != 2:
            raise InputError(
                f"margins={margins!r}: expected two attributes with their public counts.",
                code="query.margins",
                value=margins,
            )
        found = sorted(
            (domain.axis(name), name, _counts(domain, name, given)) for name, given in margins.items()
        )
        self.attributes: tuple[str, str] = (found[0][1], found[1][1])
        self.rows, self.sums = found[0][2], found[1][2]
        if sum(self.rows) != sum(self.sums) or not 0 < sum(self.rows) <= MOST_RECORDS:
            raise InputError(
                f"the counts of {self.attributes[0]} sum to {sum(self.rows):,} and those of {self.attributes[1]} to {sum(self.sums):,}: expected "
                f"one total from 1 to {MOST_RECORDS:,}.",
                code="query.margins",
                value=margins,
            )
        if len(self.rows) * len(self.sums) > MOST_CELLS:
            raise RefusedError(
                f"chi-squared of {len(self.rows):,} x {len(self.sums):,} cells: expected at most {MOST_CELLS:,}. Merge values.",
                code="query.size",
                value=len(self.rows) * len(self.sums),
            )
        self.sets = (self.attributes,)
        super().__init__(domain, Fraction(1, 1 << self.bits))

    @property
    def total(self) -> int:
        """The public number of records."""
        return sum(self.rows)

    @property
    def longest(self) -> int:
        """Half of the cells of the longest cycle: rows, or columns, that have records."""
        return min(sum(r > 0 for r in self.rows), sum(c > 0 for c in self.sums))

    @property
    def degrees(self) -> int:
        """Degrees of freedom."""
        return (sum(r > 0 for r in self.rows) - 1) * (sum(c > 0 for c in self.sums) - 1)

    def cycle(self, half: int) -> Fraction:
        """The largest sum of 1 / e over the cells of a cycle through so many rows and columns (Lemma 2 of the proof page).

        Examples
        --------
        >>> query = ChiSquaredRoot(Domain({"a": 2, "b": 2}), {"a": [10, 10], "b": [10, 10]})
        >>> query.cycle(2)
        Fraction(4, 5)
        """
        a, b = (
            [Fraction(1, count) for count in sorted(margin) if count][:half]
            for margin in (self.rows, self.sums)
        )
        if half < 2 or min(len(a), len(b)) < half:
            return Fraction(0)
        pairs = [(0, 0), (0, 1), (half - 1, half - 2), (half - 1, half - 1)]
        pairs += [(i, j) for i in range(1, half - 1) for j in (i - 1, i + 1)]
        return self.total * sum((a[i] * b[j] for i, j in pairs), Fraction(0))

    @cached_property
    def bits(self) -> int:
        """The unit is 2 to minus this."""
        largest = self.cycle(self.longest)
        bits = 0
        while 0 < largest * 4**bits < FINE**2:
            bits += 1
        return bits

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part(f"root of chi-squared of {self.attributes[0]} and {self.attributes[1]}", (), 1),)

    def part_labels(self, part: int) -> list[Any]:
        return []

    def most_answer(self, records: int) -> int:
        # Chi-squared is at most the total times the smaller number of values less one.
        return isqrt(self.total * self.longest << (2 * self.bits)) + 1

    def answer(self, table: Any) -> Ints:
        counts = np.asarray(table, dtype=np.int64).reshape(self.domain.shape)
        axes = [self.domain.axis(name) for name in self.attributes]
        others = tuple(axis for axis in range(counts.ndim) if axis not in axes)
        return self.from_tables([counts.sum(axis=others).ravel()])

    def answer_sparse(self, cells: Any, amounts: Any) -> Ints:
        codes = self.domain.codes(np.asarray(cells, dtype=np.int64))
        one, other = (codes[self.domain.axis(name)] for name in self.attributes)
        table = np.zeros((len(self.rows), len(self.sums)), dtype=np.int64)
        np.add.at(table, (one, other), np.asarray(amounts, dtype=np.int64))
        return self.from_tables([table.ravel()])

    def check_fits(self, counts: Any) -> None:
        """Nothing can overflow: squares are Python integers, and the root is bounded by the margins."""

    def from_tables(self, tables: Sequence[Ints]) -> Ints:
        """The whole number of a table of counts of the two attributes."""
        n, square = self.total, 0
        cells = iter(np.asarray(tables[0]).tolist())
        scale = 1 << (2 * self.bits + GUARD)
        for row in self.rows:
            for column in self.sums:
                off = n * next(cells) - row * column
                if row and column:
                    square += off * off * scale // (n * row * column)
        return np.array([isqrt(square) >> (GUARD // 2)], dtype=np.int64)

    def to_spec(self) -> dict[str, Any]:
        margins = {self.attributes[0]: list(self.rows), self.attributes[1]: list(self.sums)}
        return {"statistic": "chi-squared root", "margins": margins}

    def __repr__(self) -> str:
        return f"ChiSquaredRoot({self.attributes[0]} x {self.attributes[1]})"


def _counts(domain: Domain, name: str, given: Any) -> tuple[int, ...]:
    size = len(domain.labels(name))
    counts = list(given) if isinstance(given, (list, tuple, np.ndarray)) else []
    fits = [
        isinstance(x, (int, np.integer)) and not isinstance(x, bool) and 0 <= x <= MOST_RECORDS
        for x in counts
    ]
    if len(counts) != size or not all(fits):
        raise InputError(
            f"counts of {name}: {given!r}: expected {size} whole numbers >= 0, one for each of its values.",
            code="query.margins",
            value=given,
        )
    return tuple(int(x) for x in counts)


def public_margin(policy: Policy, name: str) -> tuple[int, ...] | None:
    """The published counts of an attribute, if the policy states them."""
    for fact in policy.constraints:
        if isinstance(fact, Cuboid) and fact.names == (name,):
            values = fact.values(policy.domain)
            if values is not None:
                return tuple(int(value) for value in values)
    return None


def chi_squared_root(policy: Policy, one: str, other: str) -> ChiSquaredRoot:
    """The root of the chi-squared statistic of two attributes, with the margins that a policy publishes.

    Parameters
    ----------
    policy
        It states both margins with their values: ``pg.Cuboid("sex", equals=[...])``.
    one, other
        The two attributes.

    Raises
    ------
    InputError
        When a margin is not public, or has no values.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"sex": ["F", "M"], "pay": ["low", "high"]})
    >>> facts = [pg.Cuboid("sex", equals=[50, 50]), pg.Cuboid("pay", equals=[60, 40])]
    >>> policy = pg.Policy(domain, constraints=facts)
    >>> made = pg.release(chi_squared_root(policy, "sex", "pay"), policy, [35, 15, 25, 25], epsilon=1, rng=pg.SeededRng(1))
    >>> pg.statistics.chi_squared(made).degrees
    1
    """
    margins = {}
    for name in (one, other):
        values = public_margin(policy, name)
        if values is None:
            raise InputError(
                f"the counts of {name} are not published by this policy: expected a fact Cuboid({name!r}, equals=[...]). Without public margins release "
                "the table, and work from its noisy counts.",
                code="query.margins",
                value=name,
            )
        margins[name] = values
    return ChiSquaredRoot(policy.domain, margins)  # type: ignore[arg-type]
