"""What every public fact is: integer rows over the cells. Owns :class:`Constraint`, :class:`Rows`, ``select``.

A constraint says which sums of cells are public, and may say what they are (``equals``). Whether several of
them agree is the business of :mod:`policygraph.model.system`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from policygraph.errors import ConstraintError, InputError, shown
from policygraph.model.domain import Domain, Label, Network

Where = Mapping[str, Label | Sequence[Label]]
AnyDomain = Domain | Network
Ints = npt.NDArray[np.int64]
MAX_ENTRIES = 50_000_000
LARGEST_VALUE = 1 << 62
"""Largest published value: what no data set can hold is a slip of the keyboard, and sums of values must not wrap."""


class Rows(NamedTuple):
    """Integer rows in coordinate form: ``coefficient`` stands in row ``row`` at cell ``cell``."""

    height: int
    row: Ints
    cell: Ints
    coefficient: Ints


def select(domain: AnyDomain, where: Where | Sequence[Label]) -> Ints:
    """Indices of the cells that a condition names.

    Parameters
    ----------
    where
        A label, or a list of labels, for some attributes; or the labels of one cell (the two nodes of a network).

    Examples
    --------
    >>> select(Domain({"sex": ["F", "M"], "age": 3}), {"age": [0, 2]}).tolist()
    [0, 2, 3, 5]
    >>> select(Network(3), (1, 2)).tolist()
    [2]
    """
    if not isinstance(where, Mapping):
        return np.array([domain.index(where)], dtype=np.int64)
    if isinstance(domain, Network):
        raise InputError(
            f"condition {dict(where)!r}: expected a pair of nodes, since a network has no attributes.",
            code="constraint.where",
            value=where,
        )
    if domain.size > MAX_ENTRIES:
        raise InputError(
            f"a condition over {domain.size:,} cells is too large to list: expected at most {MAX_ENTRIES:,}.",
            code="constraint.size",
            value=domain.size,
        )
    picked: list[Ints] = []
    for name in where:
        domain.axis(name)
    for name, size in zip(domain.names, domain.shape, strict=True):
        if name not in where:
            picked.append(np.arange(size, dtype=np.int64))
            continue
        labels = where[name]
        chosen = list(labels) if isinstance(labels, (list, tuple, set, frozenset, range)) else [labels]
        codes = {domain.code(name, label) for label in chosen}  # type: ignore[arg-type]
        picked.append(np.array(sorted(codes), dtype=np.int64))
    cells = np.zeros(1, dtype=np.int64)
    for size, codes_of in zip(domain.shape, picked, strict=True):
        cells = (cells[:, None] * size + codes_of[None, :]).ravel()
    return cells


def whole(value: Any, where: str) -> int:
    """Check that a published value is a whole number from 0 to 2^62."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value <= LARGEST_VALUE:
        raise ConstraintError(
            f"{where}: the published value is {shown(value)}, expected a whole number from 0 to 2^62.",
            code="constraint.value",
            value=value,
        )
    return int(value)


def wholes(values: Any, expected: int, where: str) -> tuple[int, ...] | None:
    """Check published values, one for each public sum."""
    if values is None:
        return None
    flat = np.asarray(values, dtype=object).ravel().tolist() if not isinstance(values, int) else [values]
    if len(flat) != expected:
        raise ConstraintError(
            f"{where}: {len(flat)} published values for {expected} sums: expected one for each.",
            code="constraint.values",
            value=values,
        )
    return tuple(whole(value, where) for value in flat)


def freeze(values: Any) -> Any:
    """Nested tuples of plain integers, so that a constraint can be hashed and compared."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, (list, tuple)):
        return tuple(freeze(value) for value in values)
    return int(values) if isinstance(values, np.integer) else values


def thaw(values: Any) -> Any:
    """Turn nested tuples back into lists."""
    return [thaw(value) for value in values] if isinstance(values, tuple) else values


class Constraint(ABC):
    """Sums of cells that are public and exact."""

    @abstractmethod
    def n_rows(self, domain: AnyDomain) -> int:
        """Return how many sums are public; the constraint is checked against the domain first."""

    @abstractmethod
    def rows(self, domain: AnyDomain) -> Rows:
        """Return the sums as integer rows over the cells."""

    @abstractmethod
    def values(self, domain: AnyDomain) -> tuple[int, ...] | None:
        """Return the published values, if they were given."""

    @abstractmethod
    def row_name(self, domain: AnyDomain, row: int) -> str:
        """Return a readable name of one sum."""

    @abstractmethod
    def to_spec(self) -> dict[str, Any]:
        """Return the plain form for policy files and fingerprints."""

    def rows_on(self, domain: AnyDomain, cells: Ints) -> Rows:
        """Return the rows over some cells only, entries placed by position in ``cells``; rows keep their numbers."""
        rows = self.rows(domain)
        order = np.argsort(cells, kind="stable")
        at = np.searchsorted(cells[order], rows.cell)
        found = at < len(cells)
        found[found] = cells[order][at[found]] == rows.cell[found]
        return Rows(rows.height, rows.row[found], order[at[found]], rows.coefficient[found])

    def check(self, domain: AnyDomain, table: Any) -> None:
        """Raise a :class:`ConstraintError` when a table does not have the published values."""
        if self.values(domain) is not None:
            self._compare(domain, self.sums(domain, table))

    def check_sparse(self, domain: AnyDomain, cells: Ints, amounts: Ints) -> None:
        """Do the same as :meth:`check` for counts that are given by their non-empty cells only."""
        if self.values(domain) is not None:
            rows = self.rows_on(domain, cells)
            found = np.zeros(rows.height, dtype=np.int64)
            np.add.at(found, rows.row, rows.coefficient * amounts[rows.cell])
            self._compare(domain, found)

    def _compare(self, domain: AnyDomain, found: Ints) -> None:
        values = self.values(domain) or ()
        wrong = np.flatnonzero(found != np.array(values, dtype=np.int64))
        if len(wrong):
            at = int(wrong[0])
            raise ConstraintError(
                f"the data do not have the published values: {self.row_name(domain, at)} is not the published "
                f"{values[at]}"
                + (
                    f" (and {len(wrong) - 1} more differ{'s' * (len(wrong) == 2)})."
                    if len(wrong) > 1
                    else "."
                ),
                code="constraint.data",
                row=at,
                rows=wrong.tolist(),
            )

    def sums(self, domain: AnyDomain, table: Any) -> Ints:
        """Return the public sums of a table."""
        flat = np.asarray(table, dtype=np.int64).ravel()
        rows = self.rows(domain)
        out = np.zeros(rows.height, dtype=np.int64)
        np.add.at(out, rows.row, rows.coefficient * flat[rows.cell])
        return out


def table_only(domain: AnyDomain, what: str) -> Domain:
    """Refuse a network where only a table makes sense."""
    if isinstance(domain, Network):
        raise InputError(
            f"{what}: expected a table, but the policy is over a network. Its public facts are degrees, "
            "totals, counts of pairs and structural zeros.",
            code="constraint.domain",
            value=what,
        )
    return domain


def listable(entries: int, what: str) -> None:
    """Refuse to list rows that would not fit in memory."""
    if entries > MAX_ENTRIES:
        raise InputError(
            f"{what} has {entries:,} entries, too many to list: expected at most {MAX_ENTRIES:,}.",
            code="constraint.size",
            value=entries,
        )


def stack(picked: list[Ints], coefficients: list[int]) -> Rows:
    """One row for each list of cells, all entries of a row equal."""
    if not picked:
        nothing = np.zeros(0, dtype=np.int64)
        return Rows(0, nothing, nothing, nothing)
    row = np.repeat(np.arange(len(picked), dtype=np.int64), [len(cells) for cells in picked])
    value = np.repeat(np.array(coefficients, dtype=np.int64), [len(cells) for cells in picked])
    return Rows(len(picked), row, np.concatenate(picked), value)


def freeze_where(where: Mapping[str, Any]) -> tuple[tuple[str, tuple[Label, ...]], ...]:
    """A condition as nested tuples, each attribute with the tuple of its labels."""
    return tuple(
        (name, tuple(ls) if isinstance(ls, (list, tuple, set, frozenset, range)) else (ls,))
        for name, ls in where.items()
    )
