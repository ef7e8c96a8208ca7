"""Many public sums stated at once, as a sparse matrix over the cells. Owns :class:`Sums`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from policygraph.errors import ConstraintError, InputError, shown
from policygraph.exact import brief
from policygraph.linalg import read_only
from policygraph.model.constraints.base import (
    LARGEST_VALUE,
    AnyDomain,
    Constraint,
    Ints,
    Rows,
    listable,
    whole,
)
from policygraph.model.constraints.tables import LARGEST_COEFFICIENT

__all__ = ["Sums"]


class Sums(Constraint):
    """Weighted sums of cells that are public, all in one matrix.

    Parameters
    ----------
    rows
        A whole-number matrix, sparse or dense, with a row for each public sum and a column for each cell, in the order of the domain.
    equals
        The published values, one for each row.

    Examples
    --------
    The sums of consecutive values, as in Section 4.1 of *No Free Lunch in Data Privacy*:

    >>> import policygraph as pg
    >>> from scipy.sparse import diags_array
    >>> domain = pg.Domain({"r": 1000})
    >>> chain = Sums(diags_array([np.ones(999)] * 2, offsets=[0, 1], shape=(999, 1000)))
    >>> chain.n_rows(domain), chain.row_name(domain, 0)
    (999, 'sum of cells 0 + 1')
    >>> int(pg.sensitivity(pg.queries.identity(domain), pg.Policy(domain, constraints=[chain])).value)
    1000

    Notes
    -----
    It says the same as a :class:`LinearCount` for each row, without an object for each. Where the sums leave one number open, as they do in a chain, the sensitivity has a closed
    form for millions of cells (``docs/explanation/proofs/single-moves.md``); other sums are treated like single counts.
    """

    def __init__(self, rows: Any, *, equals: Any = None) -> None:
        from scipy.sparse import coo_array, csr_array

        given = rows if hasattr(rows, "tocsr") else np.asarray(rows)
        if len(given.shape) != 2 or not given.shape[0]:
            raise InputError(
                f"sums of shape {given.shape}: expected a matrix with a row for each public sum and a column for each cell.",
                code="constraint.sums",
            )
        listed: Any = coo_array(given) if given.dtype.kind in "iubf" else None
        if listed is None or (listed.dtype.kind == "f" and not np.all(listed.data == np.floor(listed.data))):
            raise InputError(
                f"sums with entries of type {given.dtype}: expected whole numbers.",
                code="constraint.coefficient",
            )
        if listed.nnz and (
            float(listed.data.max()) > LARGEST_COEFFICIENT or float(listed.data.min()) < -LARGEST_COEFFICIENT
        ):
            raise InputError(
                f"sums with coefficients beyond {LARGEST_COEFFICIENT}: expected at most that in size.",
                code="constraint.coefficient",
            )
        # Entries that are given twice are added up as 64-bit integers, not in the type that they came in.
        made: Any = csr_array(listed.astype(np.int64))
        made.sum_duplicates()
        made.eliminate_zeros()
        made.sort_indices()
        if made.nnz and int(np.abs(made.data).max()) > LARGEST_COEFFICIENT:
            raise InputError(
                f"sums with coefficients beyond {LARGEST_COEFFICIENT}: expected at most that in size.",
                code="constraint.coefficient",
            )
        if np.any(np.diff(made.indptr) == 0):
            raise InputError(
                f"sum {int(np.argmin(np.diff(made.indptr)))} counts no cell: expected a coefficient in every row.",
                code="constraint.sums",
            )
        self.matrix = read_only(made)
        self.equals = None if equals is None else self._published(equals)

    def _published(self, equals: Any) -> tuple[int, ...]:
        listed: list[Any] = np.asarray(equals, dtype=object).ravel().tolist()
        if len(listed) != self.matrix.shape[0]:
            raise ConstraintError(
                f"{len(listed)} published values for {self.matrix.shape[0]} sums: expected one for each.",
                code="constraint.values",
                value=len(listed),
            )
        if not self.matrix.nnz or int(self.matrix.data.min()) >= 0:
            return tuple(whole(value, "sums") for value in listed)
        value: Any
        for value in listed:
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, np.integer))
                or abs(int(value)) > LARGEST_VALUE
            ):
                raise ConstraintError(
                    f"sums: {shown(value)}, expected a whole number.", code="constraint.value"
                )
        return tuple(int(value) for value in listed)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        made = self.matrix
        return (
            made.shape,
            made.indptr.astype(np.int64).tobytes(),
            made.indices.astype(np.int64).tobytes(),
            made.data.tobytes(),
            self.equals,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sums) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Sums({self.matrix.shape[0]:,} sums over {self.matrix.shape[1]:,} cells)"

    def n_rows(self, domain: AnyDomain) -> int:
        if self.matrix.shape[1] != domain.size:
            raise InputError(
                f"sums over {self.matrix.shape[1]:,} cells: expected one column for each of {brief(domain.size)} cells.",
                code="constraint.sums",
            )
        return int(self.matrix.shape[0])

    def rows(self, domain: AnyDomain) -> Rows:
        height = self.n_rows(domain)
        listable(self.matrix.nnz, repr(self))
        row = np.repeat(np.arange(height, dtype=np.int64), np.diff(self.matrix.indptr))
        return Rows(height, row, self.matrix.indices.astype(np.int64), self.matrix.data)

    def rows_on(self, domain: AnyDomain, cells: Ints) -> Rows:
        part = self.matrix[:, cells].tocoo()
        return Rows(
            self.n_rows(domain),
            part.row.astype(np.int64),
            part.col.astype(np.int64),
            part.data.astype(np.int64),
        )

    def values(self, domain: AnyDomain) -> tuple[int, ...] | None:
        return self.equals

    def row_name(self, domain: AnyDomain, row: int) -> str:
        part = slice(self.matrix.indptr[row], self.matrix.indptr[row + 1])
        words = [
            f"{'' if times == 1 else f'{times} x '}{cell}"
            for cell, times in zip(
                self.matrix.indices[part].tolist(), self.matrix.data[part].tolist(), strict=True
            )
        ]
        return f"sum of cells {' + '.join(words[:8])}" + (
            f" and {len(words) - 8} more" if len(words) > 8 else ""
        )

    def to_spec(self) -> dict[str, Any]:
        made = self.matrix.tocoo()
        entries = np.stack([made.row, made.col, made.data]).T.tolist()
        spec: dict[str, Any] = {
            "sums": {"rows": int(made.shape[0]), "cells": int(made.shape[1]), "entries": entries}
        }
        return spec | ({} if self.equals is None else {"equals": list(self.equals)})

    @classmethod
    def from_spec(cls, spec: dict[str, Any], equals: Any = None) -> Sums:
        """Make the sums from their plain form, whose numbers are looked at before they are put into arrays."""
        from scipy.sparse import csr_array

        height, cells, entries = spec["rows"], spec["cells"], spec["entries"]
        for entry in entries:
            if len(entry) != 3 or any(isinstance(n, bool) or not isinstance(n, int) for n in entry):
                raise InputError(
                    f"entry {shown(entry)} of sums: expected three whole numbers: row, cell and factor.",
                    code="constraint.sums",
                    value=entry,
                )
            if not (
                0 <= entry[0] < height and 0 <= entry[1] < cells and abs(entry[2]) <= LARGEST_COEFFICIENT
            ):
                raise InputError(
                    f"entry {shown(entry)} of sums: expected a row below {height}, a cell below {cells}, and a factor of at most 2^31.",
                    code="constraint.sums",
                    value=entry,
                )
        listed = np.array(entries, dtype=np.int64).reshape(-1, 3)
        return cls(
            csr_array((listed[:, 2], (listed[:, 0], listed[:, 1])), shape=(height, cells)), equals=equals
        )
