"""Tables whose attributes are asked by values, prefixes, ranges or rows of a matrix. Owns :class:`ProductQuery` and :func:`marginals`.

The table of a set of attributes is a Kronecker product: one small integer matrix for each attribute of the set, a sum over all values of the
others. Nothing larger than these factors is ever built: answers go through the table of counts of the set axis by axis, and norms of columns
and of their differences are products over attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np

from policygraph.errors import InputError, RefusedError, shown
from policygraph.linalg import read_only
from policygraph.model.domain import Domain
from policygraph.model.queries.base import Ints, Norm, Part, Query
from policygraph.model.queries.cuboids import MOST_ENTRIES, CuboidQuery, SetQuery, as_names

Kind = Literal["values", "prefix", "ranges"]
KINDS: tuple[Kind, ...] = ("values", "prefix", "ranges")
LARGEST_ENTRY = 1 << 52
"""Entries of the rows stay below this, so that differences and sums of columns never leave 64 bits."""
LARGEST_FACTOR = 1 << 24
"""Entries of the matrix of one attribute stay below this, so that products of its columns are exact in 64 bits."""
MOST_VALUES = 1 << 14
"""Most values of an attribute that is asked by prefixes, ranges or a matrix: norms compare all pairs of them."""


class AxisRows:
    """How one attribute is asked: an integer matrix with a column for each of its values.

    Parameters
    ----------
    n
        Number of values.
    asked
        ``"values"``, ``"prefix"`` (from the first value up to each), ``"ranges"`` (from each value up to each later one), or the matrix.

    Examples
    --------
    >>> AxisRows(3, "prefix").matrix.tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> AxisRows(3, "ranges").sums("l1").tolist(), AxisRows(3, "ranges").height
    ([3, 4, 3], 6)
    """

    def __init__(self, n: int, asked: Any = "values") -> None:
        self.n = n
        self.kind: Kind | Literal["rows"] = "rows"
        self._rows: Ints | None = None
        if isinstance(asked, str):
            if asked not in KINDS:
                raise InputError(
                    f"asked={shown(asked)}: expected one of {', '.join(KINDS)}, or the rows of an integer matrix.",
                    code="query.asked",
                    value=asked,
                )
            self.kind = asked
        else:
            self._rows = _checked(n, asked)
        if self.kind != "values" and n > MOST_VALUES:
            raise InputError(
                f"an attribute of {n:,} values by {self.kind}: expected at most {MOST_VALUES:,} values. Coarsen it.",
                code="query.too-large",
                value=n,
            )

    @property
    def height(self) -> int:
        """Number of rows."""
        if self._rows is not None:
            return len(self._rows)
        return self.n * (self.n + 1) // 2 if self.kind == "ranges" else self.n

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """First and last position of each row that counts a range."""
        at = np.arange(self.n, dtype=np.int64)
        if self.kind == "ranges":
            low, high = np.triu_indices(self.n)
            return low.astype(np.int64), high.astype(np.int64)
        return (at if self.kind == "values" else np.zeros_like(at)), at

    @cached_property
    def matrix(self) -> Ints:
        """The rows."""
        if self._rows is not None:
            return self._rows
        if self.height * self.n > MOST_ENTRIES:
            raise RefusedError(
                f"{self.height:,} rows over {self.n:,} values are too many for a matrix.",
                code="query.too-large",
            )
        at = np.arange(self.n, dtype=np.int64)
        low, high = self.ends
        return ((low[:, None] <= at) & (at <= high[:, None])).astype(np.int64)

    @cached_property
    def largest(self) -> int:
        """Largest absolute entry, at least 1."""
        return 1 if self._rows is None else max(1, int(np.abs(self._rows).max()))

    @property
    def unsigned(self) -> bool:
        """Whether all entries are 0 or 1, so that the L1 norm of a difference of columns is its squared L2 norm."""
        return self._rows is None

    def apply(self, table: Ints, axis: int) -> Ints:
        """The rows along one axis of a table."""
        if self.kind == "values":
            return table
        if self._rows is not None:
            made: Ints = np.moveaxis(np.tensordot(self._rows, table, axes=(1, axis)), 0, axis)
            return made
        sums: Ints = np.cumsum(table, axis=axis)
        if self.kind == "prefix":
            return sums
        low, high = self.ends
        padded = np.concatenate([np.zeros_like(sums.take([0], axis)), sums], axis=axis)
        return np.asarray(padded.take(high + 1, axis) - padded.take(low, axis), dtype=np.int64)

    def sums(self, norm: Norm) -> Ints:
        """Norm (squared for l2) of each column."""
        at = np.arange(self.n, dtype=np.int64)
        if self._rows is not None:
            return np.asarray(np.abs(self._rows).sum(axis=0) if norm == "l1" else (self._rows**2).sum(axis=0))
        if self.kind == "values":
            return np.ones(self.n, dtype=np.int64)
        return self.n - at if self.kind == "prefix" else (at + 1) * (self.n - at)

    def products(self, u: Ints, v: Ints) -> Ints:
        """Inner products of columns, pair by pair."""
        if self.kind == "values":
            return np.equal(u, v).astype(np.int64)
        if self._rows is not None:
            return np.asarray(self._gram[u, v])
        low, high = np.minimum(u, v), np.maximum(u, v)
        return self.n - high if self.kind == "prefix" else (low + 1) * (self.n - high)

    @cached_property
    def _gram(self) -> Ints:
        return np.asarray(self.matrix.T @ self.matrix)

    def apart(self, u: Ints, v: Ints, norm: Norm) -> Ints:
        """Norm (squared for l2) of differences of columns, pair by pair."""
        if norm == "l2" or self.unsigned:
            sums = self.sums("l2")
            return np.asarray(sums[u] + sums[v] - 2 * self.products(u, v))
        step = max(1, MOST_ENTRIES // max(1, self.height))
        found = [
            np.abs(self.matrix[:, u[s : s + step]] - self.matrix[:, v[s : s + step]]).sum(axis=0)
            for s in range(0, len(u), step)
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *found]).astype(np.int64)

    def to_spec(self) -> Any:
        """Plain form."""
        return self.kind if self._rows is None else self._rows.tolist()


def _checked(n: int, asked: Any) -> Ints:
    """Rows that somebody gave, as a read-only integer matrix."""
    try:
        given = np.asarray(asked)
    except ValueError:
        given = np.asarray(None)
    if given.ndim != 2 or given.shape[0] < 1 or given.shape[1] != n or given.dtype.kind not in "iu":
        raise InputError(
            f"asked={shown(asked)}: expected one of {', '.join(KINDS)}, or rows of {n} whole numbers each.",
            code="query.asked",
            value=asked,
        )
    if int(given.max()) >= LARGEST_FACTOR or int(given.min()) <= -LARGEST_FACTOR:
        raise InputError(
            f"rows of an attribute with entries beyond {LARGEST_FACTOR:,}: expected smaller ones, only their ratios matter.",
            code="query.entries",
        )
    made = given.astype(np.int64)
    if made.size * int(np.abs(made).max()) ** 2 >= 1 << 62:
        raise InputError(
            "rows of an attribute whose squares do not add up in 64 bits: expected fewer or smaller ones.",
            code="query.entries",
        )
    read_only(made)
    return made


class ProductQuery(SetQuery):
    """Tables of some sets of attributes, each attribute asked by its values, by prefixes, by ranges, or by rows of a matrix.

    Parameters
    ----------
    domain
        The domain of the records.
    sets
        The attributes of each table; the empty set is the total.
    asked
        How attributes are asked, by name: ``"values"``, ``"prefix"``, ``"ranges"``, or an integer matrix with a column for each value.
        Attributes that are not named are asked by values.
    weights
        A positive integer for each table, by which its answers are scaled before noise is added.

    Examples
    --------
    >>> domain = Domain({"sex": ["F", "M"], "age": 3})
    >>> query = ProductQuery(domain, [["sex", "age"], ["age"]], {"age": "prefix"})
    >>> query.answer(np.arange(6)).tolist()
    [0, 1, 3, 3, 7, 12, 3, 8, 15]
    """

    noun = "table"

    def __init__(
        self,
        domain: Domain,
        sets: Iterable[Sequence[str]],
        asked: Mapping[str, Any] | None = None,
        weights: Sequence[int] | None = None,
    ) -> None:
        super().__init__(domain, map(as_names, sets), weights)
        used = {name for names in self.sets for name in names}
        given = dict(asked or {})
        for name in given:
            domain.axis(name)
        self.factors: dict[str, AxisRows] = {
            name: AxisRows(len(domain.labels(name)), given.get(name, "values"))
            for name in domain.names
            if name in used
        }
        if self.largest_entry >= LARGEST_ENTRY:
            raise InputError(
                f"the rows have entries up to {self.largest_entry:,}: expected less than {LARGEST_ENTRY:,}, so that sums of them are exact "
                "in 64 bits. Only the ratios of weights matter: take smaller ones.",
                code="query.weights",
                value=weights,
            )
        self._parts = tuple(
            Part(
                " x ".join(names) or "total",
                tuple(column for name in names for column in _columns(name, self.factors[name])),
                prod(self.factors[name].height for name in names),
                weight,
            )
            for names, weight in zip(self.sets, self.weights, strict=True)
        )

    @property
    def asked(self) -> dict[str, Any]:
        """How attributes are asked that are not asked by values, in plain form."""
        return {name: made.to_spec() for name, made in self.factors.items() if made.kind != "values"}

    @property
    def parts(self) -> tuple[Part, ...]:
        return self._parts

    @property
    def is_identity(self) -> bool:
        return self.sets == (self.domain.names,) and self.weights == (1,) and not self.asked

    def part_labels(self, part: int) -> list[Any]:
        names = self.sets[part]
        if not names:
            return []
        places = np.unravel_index(
            np.arange(self._parts[part].height), [self.factors[name].height for name in names]
        )
        out: list[Any] = []
        for name, place in zip(names, places, strict=True):
            factor = self.factors[name]
            if factor.kind == "rows":
                out.append(place)
                continue
            labels = self.domain.labels(name)
            low, high = factor.ends
            for ends in (low, high) if factor.kind == "ranges" else (high,):
                at = ends[place]
                if not isinstance(labels, range):
                    kinds = {type(label) for label in labels}
                    at = np.array(labels, dtype=object if len(kinds) > 1 or kinds == {str} else None)[at]
                out.append(at)
        return out

    @cached_property
    def largest_entry(self) -> int:
        return max(
            weight * prod(self.factors[name].largest for name in names)
            for names, weight in zip(self.sets, self.weights, strict=True)
        )

    def from_tables(self, tables: Sequence[Ints]) -> Ints:
        blocks = []
        for names, weight, table in zip(self.sets, self.weights, tables, strict=True):
            made: Ints = np.asarray(table, dtype=np.int64).reshape([self.factors[n].n for n in names])
            for axis, name in enumerate(names):
                made = self.factors[name].apply(made, axis)
            blocks.append(made.ravel() * weight)
        return np.concatenate(blocks)

    def columns(self, cells: Any) -> Any:
        return self._products(cells, lambda name: self.factors[name].matrix)

    def column_norms(self, cells: Any, norm: Norm) -> Ints:
        codes = self.domain.codes(np.asarray(cells, dtype=np.int64))
        each = {n: f.sums(norm)[codes[self.domain.axis(n)]] for n, f in self.factors.items()}
        return self._added(len(np.asarray(cells)), norm, lambda names: [each[name] for name in names])

    def pair_norms(self, u: Any, v: Any, norm: Norm) -> Ints:
        if norm == "l1" and not all(factor.unsigned for factor in self.factors.values()):
            return super().pair_norms(u, v, norm)
        a, b = (self.domain.codes(np.asarray(x, dtype=np.int64)) for x in (u, v))
        here, there, both = {}, {}, {}
        for name, factor in self.factors.items():
            axis, sums = self.domain.axis(name), factor.sums("l2")
            here[name], there[name] = sums[a[axis]], sums[b[axis]]
            both[name] = factor.products(a[axis], b[axis])
        size = len(np.asarray(u))
        added = [
            self._added(size, norm, lambda names, each=each: [each[n] for n in names]).astype(object)
            for each in (here, there, both)
        ]
        return _narrow(added[0] + added[1] - 2 * added[2])

    def _added(self, size: int, norm: Norm, factors: Any) -> Ints:
        """Sum over the tables of their weights (squared for l2) times a product over their attributes."""
        power = 1 if norm == "l1" else 2
        out = np.zeros(size, dtype=object)
        for names, weight in zip(self.sets, self.weights, strict=True):
            made = np.full(size, weight**power, dtype=object)
            for each in factors(names):
                made = made * each.astype(object)
            out = out + made
        return _narrow(out)

    def longest_column(self, norm: Norm) -> tuple[int, int]:
        """Norm (squared for l2) of the longest column, and a cell that has it.

        Notes
        -----
        A column is a sum over tables of products of lengths of columns of the factors, none of which is negative: it is longest where
        every factor is. This holds for any domain, however large.
        """
        sums = {name: factor.sums(norm) for name, factor in self.factors.items()}
        at = {name: int(np.argmax(found)) for name, found in sums.items()}
        power = 1 if norm == "l1" else 2
        value = sum(
            weight**power * prod(int(sums[name][at[name]]) for name in names)
            for names, weight in zip(self.sets, self.weights, strict=True)
        )
        cell = 0
        for name, n in zip(self.domain.names, self.domain.shape, strict=True):
            cell = cell * n + at.get(name, 0)
        return value, cell

    def to_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"marginals": [list(names) for names in self.sets], "asked": self.asked}
        return spec | ({} if set(self.weights) == {1} else {"weights": list(self.weights)})

    def __repr__(self) -> str:
        kinds = [f"{name} by {made.kind}" for name, made in self.factors.items() if made.kind != "values"]
        return f"ProductQuery({len(self.sets)} tables, {self.height:,} answers; {', '.join(kinds) or 'by values'})"


def _narrow(values: Any) -> Ints:
    """Python integers as 64-bit ones where they fit."""
    return values.astype(np.int64) if not len(values) or max(map(abs, values)) < 1 << 62 else values  # type: ignore[no-any-return]


def _columns(name: str, factor: AxisRows) -> tuple[str, ...]:
    if factor.kind == "ranges":
        return f"first {name}", f"last {name}"
    return (f"{name} up to",) if factor.kind == "prefix" else (name,)


def marginals(
    domain: Domain,
    sets: Iterable[Sequence[str]] | int,
    *,
    prefix: str | Iterable[str] = (),
    ranges: str | Iterable[str] = (),
    weights: Sequence[int] | None = None,
) -> Query:
    """Tables of counts in which ordered attributes are asked by prefixes or ranges, and the others by values.

    Parameters
    ----------
    domain
        The domain of the records.
    sets
        The attributes of each table, or a number: all tables of so many attributes.
    prefix
        Attributes of which the table has, for each value, the records up to it.
    ranges
        Attributes of which the table has every range of values.
    weights
        A positive integer for each table: how much it counts when strategies choose what to measure.

    Returns
    -------
    Query
        A :class:`CuboidQuery` where all attributes are asked by values, else a :class:`ProductQuery`.

    Examples
    --------
    How many women and men are at most so old:

    >>> domain = Domain({"sex": ["F", "M"], "age": 4})
    >>> query = marginals(domain, [["sex", "age"]], prefix=["age"])
    >>> query.parts[0].columns, query.answer([1, 2, 3, 4, 5, 6, 7, 8]).tolist()
    (('sex', 'age up to'), [1, 3, 6, 10, 5, 11, 18, 26])
    >>> marginals(domain, 1, ranges=["age"]).height
    12
    """
    from itertools import combinations

    asked: dict[str, Any] = {}
    for kind, names in (("prefix", prefix), ("ranges", ranges)):
        for name in [names] if isinstance(names, str) else names:
            domain.axis(name)
            if name in asked:
                raise InputError(
                    f"attribute {name!r} is asked by prefixes and by ranges: expected one of them.",
                    code="query.asked",
                    value=name,
                )
            asked[name] = kind
    if isinstance(sets, int):
        if isinstance(sets, bool) or not 0 <= sets <= len(domain.names):
            raise InputError(
                f"tables of {sets} attributes: expected 0 to {len(domain.names)}.",
                code="query.up-to",
                value=sets,
            )
        sets = list(combinations(domain.names, sets))
    listed = list(sets)
    if not asked:
        return CuboidQuery(domain, listed, weights)
    return ProductQuery(domain, listed, asked, weights)
