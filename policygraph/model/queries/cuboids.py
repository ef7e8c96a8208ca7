"""Cross-tabulations and interactions of attributes. Owns :class:`SetQuery`, :class:`CuboidQuery`, :class:`BlockQuery` and the functions that make one.

A set of cuboids is never turned into a matrix: answers are sums over axes, and the norm of a change of one record
depends only on which attributes it changes. The interaction block of a set of attributes is what their table says beyond all smaller
tables: on binary attributes a Fourier coefficient. Rows are integers: (1, -1) on an attribute of two values, n I - J on one of n values,
sums over the others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import comb, prod
from typing import Any, ClassVar

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.exact import brief
from policygraph.model.domain import Domain
from policygraph.model.queries.base import Ints, Norm, Part, Query, whole_weights

SHOWN = 16
MOST_TABLES = 1 << 16
"""Most tables that :func:`all_cuboids` lists."""
MOST_ENTRIES = 50_000_000
"""Most entries of a matrix that is written out for a query."""
LARGEST_ENTRY = 1 << 52
"""Entries of the rows stay below this, so that differences and sums of columns never leave 64 bits."""


class SetQuery(Query):
    """Integer answers about sets of attributes, each worked out from the table of counts of its set."""

    domain: Domain
    noun: ClassVar[str]

    def __init__(
        self, domain: Domain, sets: Iterable[Sequence[str]], weights: Sequence[int] | None = None
    ) -> None:
        super().__init__(domain)
        noun = self.noun
        if not isinstance(domain, Domain):
            raise InputError(f"{noun}s need a table, not a network.", code="query.domain", value=domain)
        self.sets: tuple[tuple[str, ...], ...] = tuple(
            tuple(sorted(dict.fromkeys([names] if isinstance(names, str) else names), key=domain.axis))
            for names in sets
        )
        if not self.sets:
            raise InputError(f"{noun}s = []: expected at least one set of attributes.", code="query.empty")
        if len(set(self.sets)) != len(self.sets):
            raise InputError(
                f"the same {noun} is asked for twice: expected each once.", code="query.duplicate"
            )
        self.weights = whole_weights((1,) * len(self.sets) if weights is None else weights, len(self.sets))

    @abstractmethod
    def from_tables(self, tables: Sequence[Ints]) -> Ints:
        """Return the exact integer answers from the tables of ``sets``, in this order; they are not written to."""

    def answer(self, table: Any) -> Ints:
        cube = np.asarray(table, dtype=np.int64).reshape(self.domain.shape)
        self.check_fits(cube)
        tables = []
        for names in self.sets:
            keep = {self.domain.axis(name) for name in names}
            rest = tuple(axis for axis in range(cube.ndim) if axis not in keep)
            tables.append(cube.sum(axis=rest) if rest else cube.copy())
        return self.from_tables(tables)

    def _products(self, cells: Any, rows_of: Callable[[str], Ints]) -> Any:
        """Columns of these cells where the rows of a set are all products of rows of its attributes, which are given."""
        from scipy import sparse

        at = np.asarray(cells, dtype=np.int64)
        if self.height * max(1, len(at)) > MOST_ENTRIES:
            raise RefusedError(
                f"{self.noun}s with {self.height:,} rows are too large for a matrix over {len(at):,} cells.",
                code="query.too-large",
            )
        codes = self.domain.codes(at)
        blocks = []
        for names, weight in zip(self.sets, self.weights, strict=True):
            made: Ints = np.full((1, len(at)), weight, dtype=np.int64)
            for name in names:
                rows = rows_of(name)[:, codes[self.domain.axis(name)]]
                made = (made[:, None, :] * rows[None, :, :]).reshape(-1, len(at))
            blocks.append(made)
        return sparse.csc_matrix(np.concatenate(blocks))


class CuboidQuery(SetQuery):
    """The tables of counts of some sets of attributes.

    Parameters
    ----------
    domain
        The domain of the records.
    sets
        The attributes of each table; the empty set is the total.
    weights
        A positive integer for each table, by which its answers are scaled before noise is added, so that a
        table of weight 2 gets half the noise of a table of weight 1.

    Examples
    --------
    >>> domain = Domain({"sex": ["F", "M"], "age": 3})
    >>> query = CuboidQuery(domain, [["sex"], ["age"]])
    >>> query.answer(np.arange(6)).tolist()
    [3, 12, 3, 5, 7]
    """

    noun = "cuboid"

    def __init__(
        self, domain: Domain, sets: Iterable[Sequence[str]], weights: Sequence[int] | None = None
    ) -> None:
        super().__init__(domain, map(as_names, sets), weights)
        if 2 * sum(weight * weight for weight in self.weights) >= 1 << 62:
            raise InputError(
                "the weights are too large for exact 64-bit sums: expected smaller ones, only their ratios matter.",
                code="query.weights",
                value=weights,
            )
        self._parts = tuple(
            Part(
                " x ".join(names) or "total", names, prod(domain.shape[domain.axis(n)] for n in names), weight
            )
            for names, weight in zip(self.sets, self.weights, strict=True)
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        return self._parts

    @property
    def is_identity(self) -> bool:
        return self.sets == (self.domain.names,) and self.weights == (1,)

    def part_labels(self, part: int) -> list[Any]:
        names = self.sets[part]
        if not names:
            return []
        sub = self.domain.project(names)
        codes = np.unravel_index(np.arange(sub.size), sub.shape)
        out = []
        for name, code in zip(names, codes, strict=True):
            labels = sub.labels(name)
            if isinstance(labels, range):
                out.append(code)
            else:
                kinds = {type(label) for label in labels}
                values = np.array(labels, dtype=object if len(kinds) > 1 or kinds == {str} else None)
                out.append(values[code])
        return out

    @property
    def largest_entry(self) -> int:
        return max(self.weights)

    def from_tables(self, tables: Sequence[Ints]) -> Ints:
        blocks = [
            np.asarray(table, dtype=np.int64).ravel() * weight if weight > 1 else np.asarray(table).ravel()
            for table, weight in zip(tables, self.weights, strict=True)
        ]
        return np.concatenate(blocks) if len(blocks) > 1 else blocks[0]

    def columns(self, cells: Any) -> Any:
        from scipy import sparse

        at = np.asarray(cells, dtype=np.int64)
        codes = self.domain.codes(at)
        rows, start = [], 0
        for names, part in zip(self.sets, self._parts, strict=True):
            row = np.zeros(len(at), dtype=np.int64)
            for name in names:
                axis = self.domain.axis(name)
                row = row * self.domain.shape[axis] + codes[axis]
            rows.append(row + start)
            start += part.height
        data = np.repeat(np.array(self.weights, dtype=np.int64), len(at))
        column = np.tile(np.arange(len(at), dtype=np.int64), len(self.sets))
        return sparse.csc_matrix(
            (data, (np.concatenate(rows), column)), shape=(start, len(at)), dtype=np.int64
        )

    def column_norms(self, cells: Any, norm: Norm) -> Ints:
        each = sum(self.weights) if norm == "l1" else sum(weight * weight for weight in self.weights)
        return np.full(len(np.asarray(cells)), each, dtype=np.int64)

    def pair_norms(self, u: Any, v: Any, norm: Norm) -> Ints:
        a, b = self.domain.codes(u), self.domain.codes(v)
        differs = [np.not_equal(x, y) for x, y in zip(a, b, strict=True)]
        out = np.zeros(len(np.asarray(u)), dtype=np.int64)
        for names, weight in zip(self.sets, self.weights, strict=True):
            changed = np.zeros(len(out), dtype=bool)
            for name in names:
                changed |= differs[self.domain.axis(name)]
            out += 2 * (weight if norm == "l1" else weight * weight) * changed
        return out

    def difference_norm(self, differing: frozenset[str], norm: Norm) -> int:
        """Norm (squared for l2) of replacing a record by one that differs on exactly these attributes.

        Examples
        --------
        >>> domain = Domain({"sex": ["F", "M"], "age": 3})
        >>> CuboidQuery(domain, [["sex"], ["age"], ["sex", "age"]]).difference_norm(frozenset({"age"}), "l1")
        4
        """
        return sum(
            2 * (weight if norm == "l1" else weight * weight)
            for names, weight in zip(self.sets, self.weights, strict=True)
            if not differing.isdisjoint(names)
        )

    def to_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"cuboids": [list(names) for names in self.sets]}
        return spec | ({} if set(self.weights) == {1} else {"weights": list(self.weights)})

    def __repr__(self) -> str:
        shown = ["{" + ", ".join(names) + "}" for names in self.sets[:SHOWN]]
        more = len(self.sets) - SHOWN
        return f"CuboidQuery({', '.join(shown)}{f', and {more} more' if more > 0 else ''})"


def as_names(names: Any) -> tuple[str, ...]:
    """The attributes of one table, each named once; one of them may stand for itself."""
    if isinstance(names, str):
        return (names,)
    out = tuple(names)
    if len(set(out)) != len(out):
        raise InputError(f"cuboid {list(out)!r} names an attribute twice.", code="query.duplicate", value=out)
    return out


def cuboid(domain: Domain, *names: str | Sequence[str]) -> CuboidQuery:
    """Counts of records for each combination of some attributes, given one by one or as a list.

    Examples
    --------
    >>> cuboid(Domain({"sex": ["F", "M"], "age": 3}), "sex").height
    2
    """
    if len(names) == 1 and not isinstance(names[0], str):
        names = tuple(names[0])
    return CuboidQuery(domain, [names])  # type: ignore[list-item]


def cuboids(
    domain: Domain, sets: Iterable[Sequence[str]], weights: Sequence[int] | None = None
) -> CuboidQuery:
    """Several tables of counts at once.

    Examples
    --------
    >>> cuboids(Domain({"sex": ["F", "M"], "age": 3}), [["sex"], ["age"]]).height
    5
    """
    return CuboidQuery(domain, sets, weights)


def all_cuboids(domain: Domain, *, up_to: int | None = None) -> CuboidQuery:
    """All tables of counts, or all of at most ``up_to`` attributes, the total included.

    Examples
    --------
    >>> len(all_cuboids(Domain({"a": 2, "b": 2, "c": 2})).sets)
    8
    """
    most = len(domain.names) if up_to is None else up_to
    if not isinstance(most, int) or isinstance(most, bool) or most < 0:
        raise InputError(
            f"up_to={up_to!r}: expected how many attributes a table has at most, a whole number >= 0.",
            code="query.up-to",
            value=up_to,
        )
    most = min(most, len(domain.names))
    number = sum(comb(len(domain.names), k) for k in range(most + 1))
    if number > MOST_TABLES:
        raise InputError(
            f"{brief(number)} tables of {len(domain.names)} attributes are too many to list: expected at most {MOST_TABLES:,}. "
            "Ask for those of few attributes: up_to=2.",
            code="query.too-large",
            value=number,
        )
    return CuboidQuery(domain, [s for k in range(most + 1) for s in combinations(domain.names, k)])


def contrast(n: int) -> Ints:
    """Integer rows that see everything about one attribute but its total.

    Examples
    --------
    >>> contrast(2).tolist(), contrast(3).tolist()
    ([[1, -1]], [[2, -1, -1], [-1, 2, -1], [-1, -1, 2]])
    """
    if n == 2:
        return np.array([[1, -1]], dtype=np.int64)
    return n * np.eye(n, dtype=np.int64) - np.ones((n, n), dtype=np.int64)


def contrast_gain(n: int) -> int:
    """What the rows multiply squared orthonormal contrasts by: 2 for two values, n^2 otherwise."""
    return 2 if n == 2 else n * n


class BlockQuery(SetQuery):
    """The interactions of some sets of attributes.

    Parameters
    ----------
    domain
        The domain of the records.
    sets
        The attributes of each interaction; the empty set is the total.
    weights
        A positive integer for each, by which its rows are scaled.

    Examples
    --------
    >>> domain = Domain({"sex": ["F", "M"], "age": 3})
    >>> query = BlockQuery(domain, [[], ["sex"], ["age"]])
    >>> query.answer(np.arange(6)).tolist()
    [15, -9, -6, 0, 6]
    """

    noun = "interaction"

    def __init__(
        self, domain: Domain, sets: Iterable[Sequence[str]], weights: Sequence[int] | None = None
    ) -> None:
        super().__init__(domain, sets, weights)
        for names in self.sets:
            for name in names:
                if len(domain.labels(name)) == 1:
                    raise InputError(
                        f"interaction {list(names)}: {name} has one value only, so that it interacts with nothing.",
                        code="query.one-value",
                        value=name,
                    )
        if self.largest >= LARGEST_ENTRY:
            raise InputError(
                f"the rows of the interactions have entries up to {self.largest:,}: expected less than {LARGEST_ENTRY:,}, so that sums of "
                "them are exact in 64 bits. Only the ratios of weights matter: take smaller ones.",
                code="query.weights",
                value=weights,
            )
        self._parts = tuple(
            Part("interaction " + (" x ".join(names) or "total"), shown, prod(self._rows(names)), weight)
            for names, shown, weight in zip(self.sets, map(self._shown, self.sets), self.weights, strict=True)
        )

    @property
    def largest(self) -> int:
        """A bound on the entries of the rows: what one record can add to a number on the way to an answer."""
        return max(
            weight * prod(self._rows(names)) for names, weight in zip(self.sets, self.weights, strict=True)
        )

    def _shown(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if len(self.domain.labels(name)) > 2)

    def _rows(self, names: tuple[str, ...]) -> list[int]:
        """How many rows each attribute of a set contributes."""
        sizes = (len(self.domain.labels(name)) for name in names)
        return [1 if n == 2 else n for n in sizes]

    @property
    def parts(self) -> tuple[Part, ...]:
        return self._parts

    def part_labels(self, part: int) -> list[Any]:
        names = self._shown(self.sets[part])
        if not names:
            return []
        sub = self.domain.project(names)
        codes = np.unravel_index(np.arange(sub.size), sub.shape)
        return [
            np.array(list(sub.labels(name)), dtype=object)[code]
            for name, code in zip(names, codes, strict=True)
        ]

    def block(self, at: int, margin: Any) -> Ints:
        """Integer answers of one interaction from the table of its attributes."""
        names = self.sets[at]
        made = np.asarray(margin, dtype=np.int64).reshape([len(self.domain.labels(name)) for name in names])
        for axis, name in enumerate(names):
            n = len(self.domain.labels(name))
            if n == 2:
                made = made.take([0], axis) - made.take([1], axis)
            else:
                made = n * made - made.sum(axis=axis, keepdims=True)
        return made.ravel() * self.weights[at]

    @property
    def largest_entry(self) -> int:
        return self.largest

    def from_tables(self, tables: Sequence[Ints]) -> Ints:
        return np.concatenate([self.block(at, table) for at, table in enumerate(tables)])

    def columns(self, cells: Any) -> Any:
        return self._products(cells, lambda name: contrast(len(self.domain.labels(name))))

    def _column(self, names: tuple[str, ...], norm: Norm) -> int:
        """Norm (squared for l2) of the rows of a set at one cell, which is the same for all cells."""
        sizes = [len(self.domain.labels(name)) for name in names]
        if norm == "l1":
            return prod(1 if n == 2 else 2 * (n - 1) for n in sizes)
        return prod(1 if n == 2 else n * (n - 1) for n in sizes)

    def column_norms(self, cells: Any, norm: Norm) -> Ints:
        each = sum(
            (weight if norm == "l1" else weight * weight) * self._column(names, norm)
            for names, weight in zip(self.sets, self.weights, strict=True)
        )
        return np.full(len(np.asarray(cells)), each, dtype=np.int64 if each < 1 << 62 else object)

    def pair_norms(self, u: Any, v: Any, norm: Norm) -> Ints:
        a, b = self.domain.codes(u), self.domain.codes(v)
        differs = np.zeros(len(np.asarray(u)), dtype=np.int64)
        for axis, (x, y) in enumerate(zip(a, b, strict=True)):
            differs |= np.not_equal(x, y).astype(np.int64) << axis
        found, inverse = np.unique(differs, return_inverse=True)
        norms = [
            self.difference_norm(
                frozenset(name for axis, name in enumerate(self.domain.names) if mask >> axis & 1), norm
            )
            for mask in found.tolist()
        ]
        kind: Any = np.int64 if max(norms) < 1 << 62 else object
        return np.array(norms, dtype=kind)[inverse]

    def difference_norm(self, differing: frozenset[str], norm: Norm) -> int:
        """Norm (squared for l2) of replacing a record by one that differs on exactly these attributes.

        Notes
        -----
        Permuting the values of an attribute permutes (or negates) its rows, so that only the set matters. Rows that
        agree multiply; on the differing attributes the pairs of entries are (n-1, -1), (-1, n-1) and n-2 times (-1, -1),
        or (1, -1) for two values.

        Examples
        --------
        >>> domain = Domain({"a": 2, "b": 2})
        >>> query = BlockQuery(domain, [["a", "b"]])
        >>> query.difference_norm(frozenset("a"), "l1"), query.difference_norm(frozenset("ab"), "l1")
        (2, 0)
        """
        total = 0
        for names, weight in zip(self.sets, self.weights, strict=True):
            here = tuple(name for name in names if name in differing)
            if not here:
                continue
            same = self._column(tuple(name for name in names if name not in differing), norm)
            pairs = {(1, 1): 1}
            for name in here:
                n = len(self.domain.labels(name))
                steps = [(1, -1, 1)] if n == 2 else [(n - 1, -1, 1), (-1, n - 1, 1), (-1, -1, n - 2)]
                following: dict[tuple[int, int], int] = {}
                for (x, y), count in pairs.items():
                    for a, b, times in steps:
                        key = (x * a, y * b)
                        following[key] = following.get(key, 0) + count * times
                pairs = following
            if norm == "l1":
                total += weight * same * sum(abs(x - y) * count for (x, y), count in pairs.items())
            else:
                total += weight * weight * same * sum((x - y) ** 2 * count for (x, y), count in pairs.items())
        return total

    def to_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactions": [list(names) for names in self.sets]}
        return spec | ({} if set(self.weights) == {1} else {"weights": list(self.weights)})

    def __repr__(self) -> str:
        return f"BlockQuery({len(self.sets)} interactions)"
