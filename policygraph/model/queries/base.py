"""What every query is: a linear operator with integer entries on cells. Owns :class:`Query` and :class:`Part`.

The answer is ``unit * integers``, so that a sensitivity is exact and noise is drawn in integers.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.model.domain import Domain, Network

AnyDomain = Domain | Network
Ints = npt.NDArray[np.int64]
Norm = Literal["l1", "l2"]
ENTRIES_AT_ONCE = 1 << 14


def fingerprint(spec: Any) -> str:
    """Short stable name of a plain value: a SHA-256 of its canonical JSON.

    Examples
    --------
    >>> fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1})
    True
    """
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


BY_NAME = frozenset({"cuboids", "interactions", "marginals", "measure"})
"""Plain forms of queries with one of these keys name the attributes of every table, so that the order of the attributes does not change their meaning."""


def order_of(domain: AnyDomain, *, by_name: bool) -> dict[str, list[str]]:
    """What a fingerprint says of the order of attributes: nothing where it is alphabetical, or where all is said by name.

    Fingerprints sort the attributes. A matrix over the cells, say, means something else when the cells are numbered in another order.

    Examples
    --------
    >>> domain = Domain({"b": 2, "a": 2})
    >>> order_of(domain, by_name=False), order_of(domain, by_name=True)
    ({'order': ['b', 'a']}, {})
    """
    names = list(domain.names) if isinstance(domain, Domain) else []
    return {} if by_name or names == sorted(names) else {"order": names}


def whole_weights(weights: Any, count: int) -> tuple[int, ...]:
    """Check that there is a positive whole number for each of so many tables; nothing is rounded.

    Examples
    --------
    >>> whole_weights([1, np.int64(3)], 2)
    (1, 3)
    >>> whole_weights([1.5], 1)
    Traceback (most recent call last):
    ...
    policygraph.errors.InputError: weights=[1.5]: expected a positive integer for each of 1 tables.
    """
    given = tuple(weights)
    kept = [w for w in given if isinstance(w, (int, np.integer)) and not isinstance(w, bool) and w >= 1]
    if len(kept) != len(given) or len(given) != count:
        raise InputError(
            f"weights={list(given)}: expected a positive integer for each of {count} tables.",
            code="query.weights",
            value=weights,
        )
    return tuple(int(w) for w in kept)


@dataclass(frozen=True)
class Part:
    """A block of the answer that is shown as one table.

    Attributes
    ----------
    name
        Its name in outputs.
    columns
        Names of the label columns.
    height
        Number of answers.
    weight
        Integer factor of this block inside the query (it is divided out again in what users see).
    """

    name: str
    columns: tuple[str, ...]
    height: int
    weight: int = 1


class Query(ABC):
    """A linear query with integer entries over the cells of a domain."""

    needs_values: bool = False
    """Whether it is about values of records beyond their cells, so that counts of cells do not answer it."""

    def __init__(self, domain: AnyDomain, unit: Fraction = Fraction(1)) -> None:
        self.domain = domain
        self.unit = unit

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """Return the tables that make up the answer, in order."""

    @property
    def height(self) -> int:
        """Number of answers."""
        return sum(part.height for part in self.parts)

    @property
    def is_identity(self) -> bool:
        """Whether the answer is the vector of cells itself."""
        return False

    @abstractmethod
    def part_labels(self, part: int) -> list[Any]:
        """Return the label columns of a part: one sequence for each of its columns."""

    @abstractmethod
    def answer(self, table: Any) -> Ints:
        """Return the exact integer answers for a table of counts (times ``unit`` is the value)."""

    @property
    def largest_entry(self) -> int:
        """A bound on the absolute values of the entries: what one record can add to an answer, or to a number on the way to it."""
        top = 0
        for start in range(0, self.domain.size, ENTRIES_AT_ONCE):
            cells = np.arange(start, min(start + ENTRIES_AT_ONCE, self.domain.size), dtype=np.int64)
            entries = self.columns(cells).data
            if len(entries):
                top = max(top, abs(int(entries.max())), abs(int(entries.min())))
        return top

    def most_answer(self, records: int) -> int:
        """A bound on the absolute values of answers for so many records, in exact integers."""
        return self.largest_entry * records

    def check_fits(self, counts: Any) -> None:
        """Refuse counts whose answers could leave 64-bit integers, before any product is formed.

        Raises
        ------
        RefusedError
            With the code ``query.overflow``.
        """
        # In floats a sum cannot wrap, and is too small by less than a part in a thousand.
        total = float(np.abs(np.asarray(counts)).sum(dtype=np.float64))
        if total < 1 << 20 and self.largest_entry <= 1 << 41:
            return
        if not np.isfinite(total) or self.most_answer(int(total * 1.001) + 1) >= 1 << 62:
            raise RefusedError(
                f"{self!r} of so many records leaves 64-bit integers: expected answers below 2**62. Use a coarser unit or smaller weights.",
                code="query.overflow",
            )

    def answer_sparse(self, cells: Any, amounts: Any) -> Ints:
        """Return the exact integer answers for counts that are given by their non-empty cells only."""
        at, counts = np.asarray(cells, dtype=np.int64), np.asarray(amounts, dtype=np.int64)
        self.check_fits(counts)
        return np.asarray(self.columns(at) @ counts, dtype=np.int64).ravel()

    @abstractmethod
    def columns(self, cells: Any) -> Any:
        """Return the columns of some cells as a sparse integer matrix (height x number of cells)."""

    @abstractmethod
    def to_spec(self) -> dict[str, Any]:
        """Return the plain form for policy files and fingerprints."""

    def column_norms(self, cells: Any, norm: Norm) -> Ints:
        """Norm (squared for l2) of single columns, over integers."""
        return _norms(self.columns(np.asarray(cells, dtype=np.int64)), norm)

    def pair_norms(self, u: Any, v: Any, norm: Norm) -> Ints:
        """Norm (squared for l2) of the difference of two columns, pair by pair, over integers."""
        a, b = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
        return _norms(self.columns(a) - self.columns(b), norm)

    def change_norm(self, change: dict[int, int], norm: Norm) -> int:
        """Norm (squared for l2) of the answer to a change of cells, over integers."""
        cells = np.array(list(change), dtype=np.int64)
        entries = self.columns(cells).tocoo()
        amounts = list(change.values())
        moved: dict[int, int] = {}
        for row, column, entry in zip(
            entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True
        ):
            moved[row] = moved.get(row, 0) + entry * amounts[column]
        return sum(abs(x) if norm == "l1" else x * x for x in moved.values())

    def cell(self, index: int) -> tuple[Any, ...]:
        """Labels of what a record can be, by the index that moves and witnesses use."""
        return self.domain.cell(index)

    def __matmul__(self, table: Any) -> Ints:
        return self.answer(table)

    def check_domain(self, domain: AnyDomain) -> None:
        """Raise when a policy or table is over another domain."""
        if domain != self.domain:
            raise InputError(
                f"the query is over {self.domain!r}, the policy over {domain!r}: expected one domain for both.",
                code="query.domain",
                query=self.domain,
                other=domain,
            )

    @property
    def fingerprint(self) -> str:
        """Stable name of the query together with its domain."""
        spec = self.to_spec()
        order = order_of(self.domain, by_name=not BY_NAME.isdisjoint(spec))
        return fingerprint({"domain": self.domain.to_spec(), "query": spec, **order})

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        # A fingerprint is the same for every order of the attributes, and the numbers of the cells are not.
        return (
            isinstance(other, Query) and self.domain == other.domain and self.fingerprint == other.fingerprint
        )

    def __hash__(self) -> int:
        return hash(self.fingerprint)


def _norms(matrix: Any, norm: Norm) -> Ints:
    """Column norms of a sparse integer matrix; in Python integers where 64 bits could overflow."""
    columns = matrix.tocsc()
    columns.sum_duplicates()
    top = max((abs(int(columns.data.max())), abs(int(columns.data.min()))) if columns.nnz else (0, 0))
    tallest = int(np.diff(columns.indptr).max(initial=0))
    if tallest * (top if norm == "l1" else top * top) < 1 << 62:
        sizes = abs(columns) if norm == "l1" else columns.multiply(columns)
        return np.asarray(sizes.sum(axis=0), dtype=np.int64).ravel()
    out = np.zeros(columns.shape[1], dtype=object)
    for at in range(columns.shape[1]):
        entries = columns.data[columns.indptr[at] : columns.indptr[at + 1]].tolist()
        out[at] = sum(abs(x) if norm == "l1" else x * x for x in entries)
    return out
