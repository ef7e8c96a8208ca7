"""The counts of a data set over its domain. Owns :class:`Counts`.

What is in here is private: nothing of it may reach a release but through a mechanism. Its printed form
shows no number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.curator.counting.source import named
from policygraph.errors import DataError, InputError
from policygraph.model.domain import Domain, Network
from policygraph.transforms.cuboids.groups import batches, grouped

__all__ = ["DENSE", "Counts", "Ints"]

Ints = npt.NDArray[np.int64]
DENSE = 10**8
"""Most cells of a vector that is held in memory (800 MB)."""
MOST_ATTRIBUTES = 62
"""Up to so many attributes a set of them is one 64-bit integer."""


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
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
    >>> counts = Counts.from_vector(Domain({"sex": ["F", "M"], "age": 2}), [1, 2, 3, 4])
    >>> counts.cuboid(["age"]).tolist(), counts.rows
    ([4, 6], 10)
    >>> counts
    Counts(Domain(sex: 2, age: 2), private)
    """

    domain: Domain | Network
    fingerprint: str
    rows: int
    dropped: int = 0
    _vector: Ints | None = None
    _pairs: tuple[Ints, Ints] | None = None
    _tally: Callable[[Sequence[tuple[str, ...]]], list[Ints]] | None = None
    _filled: Callable[[tuple[str, ...]], tuple[Ints, Ints]] | None = None

    def __post_init__(self) -> None:
        for array in (self._vector, *(self._pairs or ())):
            if array is not None:
                array.setflags(write=False)

    @classmethod
    def from_vector(cls, domain: Domain | Network, array: Any, *, name: str | None = None) -> Counts:
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
        return cls._checked(domain, whole, _content(domain, whole) if name is None else named(name))

    @classmethod
    def _checked(cls, domain: Domain | Network, whole: Ints, fingerprint: str, dropped: int = 0) -> Counts:
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

    def sparse(self) -> tuple[Ints, Ints]:
        """Return the indices of the cells that hold a record, ascending, and their counts.

        Examples
        --------
        >>> [part.tolist() for part in Counts.from_vector(Domain({"a": 3}), [0, 5, 0]).sparse()]
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
        """Counts over some sets of attributes, from the records."""
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
            raise _changed()
        return found

    def cuboids(self, sets: Iterable[Sequence[str]]) -> dict[tuple[str, ...], Ints]:
        """Return the counts of many cuboids, by their attributes in the order of the domain.

        Beyond 10^8 cells of the domain small cuboids share a reading of the records (``transforms.cuboids.groups``); the base is never built.

        Examples
        --------
        >>> counts = Counts.from_vector(Domain({"sex": ["F", "M"], "age": 2}), [1, 2, 3, 4])
        >>> {names: table.tolist() for names, table in counts.cuboids([["age"], []]).items()}
        {('age',): [4, 6], (): [10]}
        """
        if not isinstance(self.domain, Domain):
            raise InputError("cuboids need a table, not a network.", code="counts.domain", value=self.domain)
        domain = self.domain
        asked = [tuple(sorted({domain.axis(name) for name in names})) for names in sets]
        named_by = {axes: tuple(domain.names[axis] for axis in axes) for axes in asked}
        if self._vector is not None or len(domain.names) > MOST_ATTRIBUTES:
            return {names: self.cuboid(names) for names in named_by.values()}
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

    def filled(self, names: Sequence[str]) -> tuple[Ints, Ints]:
        """Return the cells of a cuboid that hold a record, and their counts, however many cells it has.

        Returns
        -------
        cells, counts
            One row of positions for each cell, attributes in the order of the domain; rows in any order.

        Examples
        --------
        >>> counts = Counts.from_vector(Domain({"sex": ["F", "M"], "age": 2}), [0, 2, 3, 0])
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
            raise _changed()
        return cells, counts

    def __repr__(self) -> str:
        return f"Counts({self.domain!r}, private)"


def _changed() -> DataError:
    return DataError(
        "the records changed since they were counted: expected them at rest. Count them again.",
        code="data.changed",
    )


def _no_count(met: Any, at: int | None = None) -> DataError:
    where = "" if at is None else f" in cell {at}"
    met = met.item() if isinstance(met, np.generic) else met
    return DataError(
        f"the histogram has {met!r}{where}: expected whole numbers >= 0.", code="counts.value", value=met
    )


def _content(domain: Domain | Network, whole: Ints) -> str:
    return hashlib.sha256(
        b"histogram" + repr(domain.to_spec()).encode() + whole.astype("<i8").tobytes()
    ).hexdigest()
