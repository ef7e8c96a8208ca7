"""True counts. Owns :class:`Histogram`, and :class:`MeasuredCounts` for records with a measure.

What is in here is private: nothing of it may reach a release but through a mechanism. Its printed form
shows no number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from policygraph.errors import DataError, InputError, RefusedError
from policygraph.model.domain import Domain, Network
from policygraph.model.measure import Measure
from policygraph.model.queries.base import Query
from policygraph.model.queries.measures import MeasureQuery
from policygraph.transforms.cuboids.lattice import MOST_ATTRIBUTES, Lattice, batches, grouped

Ints = npt.NDArray[np.int64]
DENSE = 10**8
"""Most cells of a vector that is held in memory (800 MB)."""


@runtime_checkable
class FromTables(Protocol):
    """A query that is computed from the tables of some cuboids."""

    sets: tuple[tuple[str, ...], ...]

    def from_tables(self, tables: Sequence[Ints]) -> Ints:
        """Return the exact integer answers from the tables of ``sets``, in this order."""

    def check_fits(self, counts: Any) -> None:
        """Refuse counts whose answers could leave 64-bit integers."""


class Held(Protocol):
    """The counts of a cuboid, held where they were counted. Private."""

    def check(self, make: Any, folder: str) -> None:
        """Refuse, before anything is charged, what could not be written into a folder later."""

    def write(self, make: Any, folder: str) -> None:
        """Write the values that ``make`` (a function of the number of a block, its cells that hold records, and their counts) gives for every block."""


@dataclass(frozen=True, eq=False, repr=False)
class Histogram:
    """How many records are in each cell.

    Attributes
    ----------
    domain
        The domain of the records.
    fingerprint
        Name of the data set in the budget ledger; :meth:`Source.fingerprint` says what it is made of.
    rows
        Number of records counted. Private.
    dropped
        Number of records left out by the rule ``unknown="drop"``. For the curator; private.

    Examples
    --------
    >>> counts = Histogram.from_vector(Domain({"sex": ["F", "M"], "age": 2}), [1, 2, 3, 4])
    >>> counts.cuboid(["age"]).tolist(), counts.rows
    ([4, 6], 10)
    >>> counts
    Histogram(Domain(sex: 2, age: 2), private)
    """

    domain: Domain | Network
    fingerprint: str
    rows: int
    dropped: int = 0
    _vector: Ints | None = None
    _pairs: tuple[Ints, Ints] | None = None
    _tally: Callable[[Sequence[tuple[str, ...]]], list[Ints]] | None = None
    _filled: Callable[[tuple[str, ...]], tuple[Ints, Ints]] | None = None
    _held: Callable[[tuple[str, ...]], Held] | None = None

    def __post_init__(self) -> None:
        for array in (self._vector, *(self._pairs or ())):
            if array is not None:
                array.setflags(write=False)

    @classmethod
    def from_vector(cls, domain: Domain | Network, array: Any, *, name: str | None = None) -> Histogram:
        """Take counts that were made elsewhere.

        Parameters
        ----------
        domain
            The domain; its cells in order, the last attribute running fastest.
        array
            One whole number >= 0 for each cell, flat or in the shape of the domain.
        name
            Name of the data set in the ledger, in place of the fingerprint of the counts.

        Raises
        ------
        DataError
            When the array has another size, a negative or broken number, or more than a cell can hold.
        """
        return cls._read_vector(domain, array, None if name is None else named(name))

    @classmethod
    def _read_vector(cls, domain: Domain | Network, array: Any, fingerprint: str | None) -> Histogram:
        given = np.asarray(array)
        if given.size != domain.size or (given.ndim > 1 and given.shape != getattr(domain, "shape", None)):
            met = f"{given.size:,} numbers" + (f" in the shape {given.shape}" if given.ndim > 1 else "")
            shape = f", or the shape {domain.shape}" if isinstance(domain, Domain) and given.ndim > 1 else ""
            raise DataError(
                f"{met} for {domain.size:,} cells: expected the count of every cell, in order{shape}.",
                code="counts.size",
                value=given.shape,
            )
        if given.dtype.kind not in "iufb" and given.dtype != object:
            raise _no_count(given.dtype)
        try:
            with np.errstate(invalid="ignore"):
                whole = np.array(given, dtype=np.int64).ravel()
        except (TypeError, ValueError, OverflowError) as cause:
            raise _no_count(cause) from cause
        wrong = np.flatnonzero((given.ravel() != whole) | (whole < 0))
        if len(wrong):
            raise _no_count(given.ravel()[wrong[0]], int(wrong[0]))
        return cls.checked(domain, whole, _content(domain, whole) if fingerprint is None else fingerprint)

    @classmethod
    def of(cls, domain: Domain | Network, table: Any) -> Histogram:
        """Take counts as :meth:`from_vector` does, or a histogram as it is, for a run that no ledger knows; the data get no fingerprint."""
        return table if isinstance(table, Histogram) else cls._read_vector(domain, table, "")

    @classmethod
    def derived(cls, domain: Domain | Network, values: Ints) -> Histogram:
        """Whole numbers that were computed from the counts of another domain, and may be negative."""
        size = np.abs(values).sum(dtype=np.float64)
        if size > 2.0**62:
            raise DataError("the transformed counts do not fit 62 bits.", code="counts.size")
        return cls(domain, "", int(np.abs(values).sum()), 0, np.asarray(values, dtype=np.int64))

    @classmethod
    def checked(cls, domain: Domain | Network, whole: Ints, fingerprint: str, dropped: int = 0) -> Histogram:
        capacity = domain.capacity
        if capacity is not None and len(whole) and int(whole.max()) > capacity:
            at = int(np.flatnonzero(whole > capacity)[0])
            raise DataError(
                f"cell {domain.cell(at)} holds {int(whole[at])} records: expected at most {capacity}.",
                code="counts.capacity",
                cell=at,
            )
        # Sums of cells must fit 64 bits as well; in floats the bound is met with room to spare.
        if float(whole.sum(dtype=np.float64)) > 2.0**62:
            raise DataError(
                "the histogram counts more than 2^62 records: expected fewer.", code="counts.size"
            )
        return cls(domain, fingerprint, int(whole.sum()), dropped, whole)

    def vector(self) -> Ints:
        """Return the count of every cell, read-only.

        Raises
        ------
        InputError
            When the domain has more than 10^8 cells.
        """
        if self._vector is None:
            raise InputError(
                f"a domain of {self.domain.size:,} cells is too large for one vector: expected at most {DENSE:,}. Ask for "
                "cuboids of fewer attributes.",
                code="counts.too-large",
                value=self.domain.size,
            )
        return self._vector

    def answers(self, queries: Sequence[Query]) -> list[Ints]:
        """Return the exact integer answers of some queries; what they need of the records is counted together.

        Notes
        -----
        Queries that are computed from cuboids (those with ``from_tables``) share one plan: each cuboid is summed from the smallest one that
        is there, or, beyond 10^8 cells, the records are read once for all of them.

        Examples
        --------
        >>> from policygraph.model.queries.cuboids import all_cuboids, cuboid
        >>> domain = Domain({"sex": ["F", "M"], "age": 2})
        >>> counts = Histogram.from_vector(domain, [1, 2, 3, 4])
        >>> [made.tolist() for made in counts.answers([cuboid(domain, "age"), all_cuboids(domain, up_to=1)])]
        [[4, 6], [10, 3, 7, 4, 6]]
        """
        if not isinstance(self.domain, Domain):
            cells, amounts = self.sparse()
            return [query.answer_sparse(cells, amounts) for query in queries]
        tables = self.cuboids(dict.fromkeys(names for query in queries for names in _cuboids_of(query)))
        out = []
        for query in queries:
            if not isinstance(query, FromTables):
                out.append(query.answer(self.vector()))
                continue
            query.check_fits([self.rows])
            out.append(query.from_tables([tables[names] for names in query.sets]))
        return out

    def check_sizes(self, queries: Sequence[Query]) -> None:
        """Refuse cuboids that are too large to be counted, before anything is charged."""
        if self._vector is not None or not isinstance(self.domain, Domain):
            return
        if not all(isinstance(query, FromTables) for query in queries):
            self.vector()
        for names in (names for query in queries for names in _cuboids_of(query)):
            size = prod(len(self.domain.labels(name)) for name in names)
            if size > DENSE:
                raise RefusedError(
                    f"cuboid {list(names)} has {size:,} cells to be counted: expected at most {DENSE:,}. Ask for fewer attributes.",
                    code="counts.too-large",
                    value=names,
                )

    def sparse(self) -> tuple[Ints, Ints]:
        """Return the indices of the cells that hold a record, ascending, and their counts.

        Examples
        --------
        >>> [part.tolist() for part in Histogram.from_vector(Domain({"a": 3}), [0, 5, 0]).sparse()]
        [[1], [5]]
        """
        if self._pairs is not None:
            return self._pairs
        whole = self.vector()
        at = np.flatnonzero(whole)
        return at, whole[at]

    def cuboid(self, names: Sequence[str]) -> Ints:
        """Return the counts for each combination of some attributes, in the order of the domain.

        Beyond 10^8 cells of the domain the records are counted again, inside the engine, for these attributes only.
        """
        if not isinstance(self.domain, Domain):
            raise InputError("cuboids need a table, not a network.", code="counts.domain", value=self.domain)
        listed = [names] if isinstance(names, str) else list(names)
        axes = sorted({self.domain.axis(name) for name in listed})
        if self._vector is not None:
            rest = tuple(axis for axis in range(len(self.domain.shape)) if axis not in axes)
            return np.asarray(self._vector.reshape(self.domain.shape).sum(axis=rest), dtype=np.int64).ravel()
        if not axes:
            return np.array([self.rows], dtype=np.int64)
        return self._read(self.domain, [tuple(self.domain.names[axis] for axis in axes)])[0]

    def _read(self, domain: Domain, sets: Sequence[tuple[str, ...]]) -> list[Ints]:
        """Histogram over some sets of attributes, from the records."""
        for names in sets:
            size = prod(len(domain.labels(name)) for name in names)
            if size > DENSE or self._tally is None:
                raise InputError(
                    f"a cuboid of {size:,} cells: expected at most {DENSE:,}. Ask for fewer attributes.",
                    code="counts.too-large",
                    value=list(names),
                )
        found = self._tally(sets) if self._tally is not None else []
        if any(int(table.sum()) != self.rows for table in found):
            raise changed()
        return found

    def cuboids(self, sets: Iterable[Sequence[str]]) -> dict[tuple[str, ...], Ints]:
        """Return the counts of many cuboids, by their attributes in the order of the domain.

        Beyond 10^8 cells of the domain small cuboids share a reading of the records (``transforms.cuboids.groups``); the base is never built.

        Examples
        --------
        >>> counts = Histogram.from_vector(Domain({"sex": ["F", "M"], "age": 2}), [1, 2, 3, 4])
        >>> {names: table.tolist() for names, table in counts.cuboids([["age"], []]).items()}
        {('age',): [4, 6], (): [10]}
        """
        if not isinstance(self.domain, Domain):
            raise InputError("cuboids need a table, not a network.", code="counts.domain", value=self.domain)
        domain = self.domain
        asked = [tuple(sorted({domain.axis(name) for name in names})) for names in sets]
        named_by = {axes: tuple(domain.names[axis] for axis in axes) for axes in asked}
        if len(domain.names) > MOST_ATTRIBUTES:
            return {names: self.cuboid(names) for names in named_by.values()}
        if self._vector is not None:
            return _summed(Lattice(domain), self._vector, list(named_by.values()))
        out: dict[tuple[str, ...], Ints] = {}
        if () in named_by:
            out[()] = np.array([self.rows], dtype=np.int64)
        for groups in batches(grouped(domain.shape, [axes for axes in named_by if axes]), domain.shape):
            counted = self._read(domain, [tuple(domain.names[axis] for axis in made.axes) for made in groups])
            for made, table in zip(groups, counted, strict=True):
                cube = table.reshape([domain.shape[axis] for axis in made.axes])
                for axes in made.wanted:
                    rest = tuple(at for at, axis in enumerate(made.axes) if axis not in axes)
                    out[named_by[axes]] = np.asarray(cube.sum(axis=rest), dtype=np.int64).ravel()
        return {names: out[names] for names in named_by.values()}

    def held(self, names: Sequence[str]) -> Held:
        """Count a cuboid of any size, and hold its counts where they are.

        Raises
        ------
        InputError
            When these counts did not come from records.
        """
        if self._held is None or not isinstance(self.domain, Domain):
            raise InputError(
                "parts need records that an engine can count: expected a table, a file or a frame.",
                code="counts.domain",
            )
        return self._held(tuple(sorted(names, key=self.domain.axis)))

    def filled(self, names: Sequence[str]) -> tuple[Ints, Ints]:
        """Return the cells of a cuboid that hold a record, and their counts, however many cells it has.

        Returns
        -------
        cells, counts
            One row of positions for each cell, attributes in the order of the domain; rows in any order.

        Examples
        --------
        >>> counts = Histogram.from_vector(Domain({"sex": ["F", "M"], "age": 2}), [0, 2, 3, 0])
        >>> [part.tolist() for part in counts.filled(["age", "sex"])]
        [[[0, 1], [1, 0]], [2, 3]]
        """
        if not isinstance(self.domain, Domain):
            raise InputError("cuboids need a table, not a network.", code="counts.domain", value=self.domain)
        listed = [names] if isinstance(names, str) else list(names)
        axes = sorted({self.domain.axis(name) for name in listed})
        if self._vector is not None or self._filled is None or not axes:
            table = self.cuboid(listed)
            at = np.flatnonzero(table)
            shape = tuple(self.domain.shape[axis] for axis in axes)
            cells = np.stack(np.unravel_index(at, shape), axis=1) if axes else np.zeros((len(at), 0))
            return cells.astype(np.int64), table[at]
        cells, counts = self._filled(tuple(self.domain.names[axis] for axis in axes))
        if int(counts.sum()) != self.rows:
            raise changed()
        return cells, counts

    def __repr__(self) -> str:
        return f"Histogram({self.domain!r}, private)"


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredCounts:
    """How many records are in each cell, and the sums of their values in units of the measure. Private.

    Attributes
    ----------
    counts
        The counts of the records that have a value.
    measure
        The measure.

    Examples
    --------
    >>> domain = Domain({"sex": ["F", "M"]})
    >>> made = MeasuredCounts.from_vectors(domain, Measure("income", 0, 10), [2, 1], [12, 3])
    >>> made.sums([]).tolist(), made.cuboid(["sex"]).tolist(), made
    ([15], [2, 1], MeasuredCounts(Domain(sex: 2), income, private))
    """

    counts: Histogram
    measure: Measure
    _sums: Ints | None = None
    _tally: Callable[[tuple[str, ...]], Ints] | None = None

    @classmethod
    def from_vectors(
        cls, domain: Domain, measure: Measure, counts: Any, sums: Any, *, name: str | None = None
    ) -> MeasuredCounts:
        """Take counts and sums that were made elsewhere.

        Parameters
        ----------
        counts
            How many records are in each cell.
        sums
            The sum of their values in each cell, in units of the measure: whole numbers, of values already within the range.
        name
            Name of the data set in the ledger, in place of the fingerprint of the numbers.

        Raises
        ------
        DataError
            When a sum cannot be one of so many values within the range.
        """
        made = Histogram.from_vector(domain, counts, name=name)
        given = np.asarray(sums)
        if given.size != domain.size or given.dtype.kind not in "iu":
            raise DataError(
                f"{given.size:,} sums of kind {given.dtype} for {domain.size:,} cells: expected one whole number for each cell, in units.",
                code="measure.sums",
            )
        whole = given.astype(np.int64).ravel()
        check_sums(made.rows, measure)
        low, high = (made.vector() * end for end in (measure.lowest, measure.highest))
        if np.any(whole < low) or np.any(whole > high):
            at = int(np.flatnonzero((whole < low) | (whole > high))[0])
            raise DataError(
                f"cell {at}: the sum is outside what its records can have within the range of {measure}. Clip the values first.",
                code="measure.sums",
                cell=at,
            )
        if name is None:
            raw = made.fingerprint.encode() + repr(measure.to_spec()).encode() + whole.astype("<i8").tobytes()
            made = replace(made, fingerprint=hashlib.sha256(b"sums" + raw).hexdigest())
        return cls(made, measure, whole)

    @property
    def domain(self) -> Domain:
        """The domain of the records."""
        return self.counts.domain  # type: ignore[return-value]

    @property
    def fingerprint(self) -> str:
        """Name of the data set in the budget ledger, which is that of its counts."""
        return self.counts.fingerprint

    @property
    def rows(self) -> int:
        """Number of records that have a value. Private."""
        return self.counts.rows

    def answers(self, queries: Sequence[Query]) -> list[Ints]:
        """Return the exact integer answers of queries about counts and values."""
        return [
            query.answer_from(
                {at: self.cuboid(names) for at, names in enumerate(query.sets)},
                {at: self.sums(names) for at, names in enumerate(query.sets)},
            )
            if isinstance(query, MeasureQuery)
            else self.counts.answers([query])[0]
            for query in queries
        ]

    def vector(self) -> Ints:
        """Return the count of every cell."""
        return self.counts.vector()

    def cuboid(self, names: Sequence[str]) -> Ints:
        """Return the counts for each combination of some attributes."""
        return self.counts.cuboid(names)

    def sums(self, names: Sequence[str]) -> Ints:
        """Return the sums of values, in units, for each combination of some attributes."""
        domain = self.domain
        axes = sorted({domain.axis(name) for name in names})
        if self._sums is not None:
            rest = tuple(axis for axis in range(len(domain.shape)) if axis not in axes)
            return np.asarray(self._sums.reshape(domain.shape).sum(axis=rest), dtype=np.int64).ravel()
        if self._tally is None:
            raise InputError("these counts have no sums.", code="measure.sums")
        return self._tally(tuple(domain.names[axis] for axis in axes))

    def __repr__(self) -> str:
        return f"MeasuredCounts({self.domain!r}, {self.measure.column}, private)"


def check_sums(rows: int, measure: Measure) -> None:
    """Refuse a measure whose sums over so many records do not fit 64 bits."""
    if 2 * rows * max(abs(measure.lowest), abs(measure.highest)) >= 1 << 62:
        raise DataError(
            f"sums of {measure.column} do not fit 64 bits: expected a coarser unit.", code="measure.reach"
        )


def named(name: str) -> str:
    """Fingerprint of a data set that its curator has named.

    Examples
    --------
    >>> named("survey 2024") == named("survey 2024") != named("survey 2025")
    True
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(
            f"name={name!r}: expected the name of the data set as text.", code="data.name", value=name
        )
    return digest("name", name)


def digest(*parts: str) -> str:
    """SHA-256 of texts, each after its length, so that no two lists of texts run into the same bytes.

    Examples
    --------
    >>> digest("ab", "c") == digest("a", "bc")
    False
    """
    whole = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        whole.update(len(raw).to_bytes(8, "big") + raw)
    return whole.hexdigest()


Data = Histogram | MeasuredCounts
"""What the gate is given: the types that hold true values."""


def _cuboids_of(query: Query) -> tuple[tuple[str, ...], ...]:
    return query.sets if isinstance(query, FromTables) else ()


def _summed(lattice: Lattice, vector: Ints, sets: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], Ints]:
    """Tables of cuboids, each summed from the smallest one that is there already."""
    out: dict[int, Ints] = {lattice.base: vector.reshape(lattice.domain.shape)}
    for mask, start in lattice.route((lattice.mask(names) for names in sets), lattice.base):
        gone = tuple(at for at, axis in enumerate(lattice.axes(start)) if not mask >> axis & 1)
        out[mask] = np.asarray(out[start].sum(axis=gone) if gone else out[start], dtype=np.int64)
    return {names: out[lattice.mask(names)].reshape(-1) for names in sets}


def changed() -> DataError:
    """The error for counts that do not add up to the records."""
    return DataError(
        "the records changed since they were counted: expected them at rest. Count them again.",
        code="data.changed",
    )


def _no_count(met: Any, at: int | None = None) -> DataError:
    """The refusal of what is no count; it says what kind of thing it is and not its value, which may be near a true one."""
    where = "" if at is None else f" in cell {at}"
    met = met.item() if isinstance(met, np.generic) else met
    what = f"a {type(met).__name__}"
    if isinstance(met, (int, float)) and not isinstance(met, bool):
        what = "a negative number" if met < 0 else "a number that is not whole or too large"
        what = what if np.isfinite(float(met)) else repr(met)
    return DataError(f"the histogram has {what}{where}: expected whole numbers >= 0.", code="counts.value")


def _content(domain: Domain | Network, whole: Ints) -> str:
    return hashlib.sha256(
        b"histogram" + repr(domain.to_spec()).encode() + whole.astype("<i8").tobytes()
    ).hexdigest()
