"""Queries given row by row. Owns :class:`MatrixQuery`, ``matrix``, ``ranges``, ``prefix``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from policygraph.errors import InputError, shown
from policygraph.exact import as_fraction, brief, common_denominator
from policygraph.linalg import read_only
from policygraph.model.domain import Domain
from policygraph.model.queries.base import AnyDomain, Ints, Part, Query

LARGEST_ENTRY = 1 << 40
MOST_ROWS = 1 << 31


class MatrixQuery(Query):
    """Any sparse integer matrix over the cells, times a unit.

    Examples
    --------
    >>> query = matrix(Domain({"age": 3}), [[1, 1, 0], [0, 1, 1]])
    >>> query.answer([5, 6, 7]).tolist()
    [11, 13]
    """

    def __init__(
        self,
        domain: AnyDomain,
        entries: Any,
        *,
        unit: Fraction = Fraction(1),
        name: str = "rows",
        row_names: Sequence[str] | None = None,
    ) -> None:
        from scipy import sparse

        super().__init__(domain, unit)
        given = sparse.csc_matrix(entries)
        if given.shape[1] != domain.size:
            raise InputError(
                f"the matrix has {given.shape[1]} columns: expected one for each of the {domain.size} cells.",
                code="query.shape",
                value=given.shape,
            )
        if given.shape[0] == 0:
            raise InputError("the matrix has no rows: expected at least one.", code="query.empty")
        if given.dtype.kind not in "iub":
            raise InputError(
                f"the matrix has entries of type {given.dtype}: expected integers, or fractions through "
                "queries.matrix. Real-valued rows must be rounded to multiples of a unit first.",
                code="query.entries",
                value=str(given.dtype),
            )
        _check_entries(given)
        self.matrix = given.astype(np.int64)
        self.matrix.sum_duplicates()
        _check_entries(self.matrix)
        self.matrix.eliminate_zeros()
        read_only(self.matrix)
        self.row_names = None if row_names is None else tuple(row_names)
        if self.row_names is not None and len(self.row_names) != given.shape[0]:
            raise InputError(
                f"{len(self.row_names)} row names for {given.shape[0]} rows: expected one for each.",
                code="query.shape",
            )
        self._part = Part(name, ("row",), int(given.shape[0]))

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self._part,)

    def part_labels(self, part: int) -> list[Any]:
        if self.row_names is None:
            return [np.arange(self._part.height)]
        return [np.array(self.row_names, dtype=object)]

    def answer(self, table: Any) -> Ints:
        flat = np.asarray(table, dtype=np.int64).ravel()
        if len(flat) != self.domain.size:
            raise InputError(
                f"a table of {len(flat)} cells: expected {self.domain.size}.",
                code="query.shape",
                value=len(flat),
            )
        self.check_fits(flat)
        return np.asarray(self.matrix @ flat, dtype=np.int64).ravel()

    @cached_property
    def largest_entry(self) -> int:
        data = self.matrix.data
        return max(abs(int(data.max())), abs(int(data.min()))) if len(data) else 0

    def columns(self, cells: Any) -> Any:
        return self.matrix[:, np.asarray(cells, dtype=np.int64)]

    def to_spec(self) -> dict[str, Any]:
        coo = self.matrix.tocoo()
        order = np.lexsort((coo.col, coo.row))
        spec: dict[str, Any] = {
            "matrix": {
                "rows": int(coo.shape[0]),
                "entries": np.stack([coo.row, coo.col, coo.data])[:, order].T.tolist(),
            },
            "name": self._part.name,
        }
        if self.row_names is not None:
            spec["row_names"] = list(self.row_names)
        return spec | ({} if self.unit == 1 else {"unit": str(self.unit)})

    def __repr__(self) -> str:
        return f"MatrixQuery({self._part.name}: {self._part.height} x {self.domain.size})"


def _check_entries(entries: Any) -> None:
    """Refuse entries beyond 2^40, looked at before any conversion could wrap them around."""
    if entries.nnz and (int(entries.data.max()) > LARGEST_ENTRY or int(entries.data.min()) < -LARGEST_ENTRY):
        raise InputError("the matrix has entries beyond 2^40: expected a coarser unit.", code="query.entries")


def matrix_from_spec(domain: AnyDomain, spec: dict[str, Any]) -> MatrixQuery:
    """Make a matrix query from its plain form, whose numbers are looked at before they are put into arrays.

    Examples
    --------
    >>> query = matrix(Domain({"age": 3}), [[1, 1, 0], [0, 1, 1]])
    >>> matrix_from_spec(query.domain, query.to_spec()) == query
    True
    """
    from scipy import sparse

    rows, entries = spec["matrix"]["rows"], spec["matrix"]["entries"]
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST_ROWS:
        raise InputError(
            f"rows={shown(rows)}: expected a whole number of rows, from 1 to 2^31.",
            code="query.empty",
            value=rows,
        )
    for entry in entries:
        if len(entry) != 3 or any(
            isinstance(number, bool) or not isinstance(number, int) for number in entry
        ):
            raise InputError(
                f"matrix entry {shown(entry)}: expected three whole numbers: row, cell and factor.",
                code="query.entries",
                value=entry,
            )
        if not (0 <= entry[0] < rows and 0 <= entry[1] < domain.size and abs(entry[2]) <= LARGEST_ENTRY):
            raise InputError(
                f"matrix entry {shown(entry)}: expected a row from 0 to {rows - 1}, a cell from 0 to {brief(domain.size - 1)}, and a "
                "factor of at most 2^40.",
                code="query.entries",
                value=entry,
            )
    if domain.size > MOST_ROWS:
        raise InputError(
            f"a matrix over {brief(domain.size)} cells: expected at most 2^31 of them. Release cuboids, or coarser attributes.",
            code="query.size",
            value=domain.size,
        )
    listed = np.array(entries, dtype=np.int64).reshape(-1, 3)
    whole = sparse.csc_matrix((listed[:, 2], (listed[:, 0], listed[:, 1])), shape=(rows, domain.size))
    return MatrixQuery(
        domain,
        whole,
        unit=as_fraction(spec.get("unit", "1"), "unit"),
        name=spec.get("name", "rows"),
        row_names=spec.get("row_names"),
    )


def matrix(
    domain: AnyDomain, rows: Any, *, unit: Fraction = Fraction(1), name: str = "rows", row_names: Any = None
) -> MatrixQuery:
    """A query given by its rows of integers or fractions over the cells, or by a sparse integer matrix.

    Examples
    --------
    >>> query = matrix(Domain({"age": 2}), [[Fraction(1, 2), Fraction(1, 3)]])
    >>> query.answer([2, 3]).tolist(), query.unit
    ([12], Fraction(1, 6))
    """
    if hasattr(rows, "tocsc") or isinstance(rows, np.ndarray):
        return MatrixQuery(domain, rows, unit=unit, name=name, row_names=row_names)
    listed = [list(row) for row in rows]
    flat = [value for row in listed for value in row]
    if any(isinstance(value, float) for value in flat):
        raise InputError("the rows have floats: expected integers or fractions.", code="query.entries")
    tops, bottom = common_denominator([Fraction(value) for value in flat])
    width = len(listed[0]) if listed else 0
    whole = np.array(tops, dtype=np.int64).reshape(len(listed), width)
    return MatrixQuery(domain, whole, unit=unit / bottom, name=name, row_names=row_names)


def ranges(domain: Domain, pairs: Sequence[tuple[int, int]], attribute: str | None = None) -> MatrixQuery:
    """Counts of records whose value of an ordered attribute lies between two positions, both included.

    Examples
    --------
    >>> ranges(Domain({"age": 4}), [(0, 1), (1, 3)]).answer([1, 2, 3, 4]).tolist()
    [3, 9]
    """
    from scipy import sparse

    name = _ordered_attribute(domain, attribute)
    axis, n = domain.axis(name), domain.shape[domain.axis(name)]
    codes = domain.codes(np.arange(domain.size))[axis]
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(n + 1))
    cells, lengths = [], []
    for low, high in pairs:
        if not 0 <= low <= high < n:
            raise InputError(
                f"range ({low}, {high}): expected positions 0 <= low <= high <= {n - 1}.",
                code="query.range",
                value=(low, high),
            )
        cells.append(order[starts[low] : starts[high + 1]])
        lengths.append(len(cells[-1]))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    column = np.concatenate(cells) if cells else np.zeros(0, dtype=np.int64)
    entries = sparse.csr_matrix(
        (np.ones(len(column), dtype=np.int64), column, indptr), shape=(len(lengths), domain.size)
    )
    labels = domain.labels(name)
    names = [f"{labels[low]} to {labels[high]}" for low, high in pairs]
    return MatrixQuery(domain, entries, name=f"ranges of {name}", row_names=names)


def prefix(domain: Domain, attribute: str | None = None) -> MatrixQuery:
    """Counts of records up to each value of an ordered attribute.

    Examples
    --------
    >>> prefix(Domain({"age": 3})).answer([1, 2, 3]).tolist()
    [1, 3, 6]
    """
    name = _ordered_attribute(domain, attribute)
    return ranges(domain, [(0, high) for high in range(domain.shape[domain.axis(name)])], name)


def _ordered_attribute(domain: Domain, attribute: str | None) -> str:
    if attribute is None:
        if len(domain.names) != 1:
            raise InputError(
                f"ranges over {domain!r}: expected the attribute to be named.",
                code="query.attribute",
                value=domain,
            )
        return domain.names[0]
    domain.axis(attribute)
    return attribute
