"""Weighted counts and structural zeros. Owns ``LinearCount`` and ``StructuralZero``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policygraph.errors import ConstraintError, InputError
from policygraph.model.constraints.base import (
    AnyDomain,
    Constraint,
    Ints,
    Rows,
    Where,
    freeze_where,
    select,
    whole,
)
from policygraph.model.domain import Label

LARGEST_COEFFICIENT = 1 << 31


@dataclass(frozen=True, init=False)
class LinearCount(Constraint):
    """One weighted count of records is public.

    Parameters
    ----------
    terms
        Pairs of a condition and an integer coefficient; a condition gives labels for some attributes, or one
        whole cell. A cell that several conditions name gets the sum of their coefficients.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> domain = Domain({"age": 4})
    >>> LinearCount([({"age": [0, 1]}, 1), ({"age": 3}, 2)]).rows(domain).coefficient.tolist()
    [1, 1, 2]
    """

    terms: tuple[tuple[Any, int], ...]
    equals: int | None

    def __init__(
        self, terms: Iterable[tuple[Where | Sequence[Label], int]], *, equals: int | None = None
    ) -> None:
        frozen: list[tuple[Any, int]] = []
        for where, coefficient in terms:
            if isinstance(coefficient, bool) or not isinstance(coefficient, (int, np.integer)):
                raise InputError(
                    f"coefficient {coefficient!r}: expected an integer.",
                    code="constraint.coefficient",
                    value=coefficient,
                )
            if abs(int(coefficient)) > LARGEST_COEFFICIENT:
                raise InputError(
                    f"coefficient {coefficient}: expected at most {LARGEST_COEFFICIENT} in size.",
                    code="constraint.coefficient",
                    value=coefficient,
                )
            if isinstance(where, Mapping):
                frozen.append((("where", freeze_where(where)), int(coefficient)))
            else:
                frozen.append((("cell", tuple(where)), int(coefficient)))
        if not frozen:
            raise InputError("a count of nothing: expected at least one condition.", code="constraint.count")
        object.__setattr__(self, "terms", tuple(frozen))
        object.__setattr__(self, "equals", equals)

    def _conditions(self) -> list[tuple[Any, int]]:
        return [
            ({n: list(ls) for n, ls in what} if kind == "where" else list(what), c)
            for (kind, what), c in self.terms
        ]

    def n_rows(self, domain: AnyDomain) -> int:
        self.rows(domain)
        return 1

    def rows(self, domain: AnyDomain) -> Rows:
        cells, values = [], []
        for where, coefficient in self._conditions():
            picked = select(domain, where)
            cells.append(picked)
            values.append(np.full(len(picked), coefficient, dtype=np.int64))
        unique, inverse = np.unique(np.concatenate(cells), return_inverse=True)
        total = np.zeros(len(unique), dtype=np.int64)
        np.add.at(total, inverse, np.concatenate(values))  # at most 2^31 each, so that 64 bits hold the sum
        keep = total != 0
        return Rows(1, np.zeros(int(keep.sum()), dtype=np.int64), unique[keep], total[keep])

    def values(self, domain: AnyDomain) -> tuple[int, ...] | None:
        if self.equals is None:
            return None
        if any(coefficient < 0 for _, coefficient in self.terms):
            if isinstance(self.equals, bool) or not isinstance(self.equals, (int, np.integer)):
                raise ConstraintError(
                    f"count: {self.equals!r}, expected a whole number.", code="constraint.value"
                )
            return (int(self.equals),)
        return (whole(self.equals, "count"),)

    def row_name(self, domain: AnyDomain, row: int) -> str:
        parts = []
        for where, coefficient in self._conditions():
            if isinstance(where, Mapping):
                text = " and ".join(
                    f"{n} = {ls[0]}" if len(ls) == 1 else f"{n} in {{{', '.join(map(str, ls))}}}"
                    for n, ls in where.items()
                )
            else:
                text = ", ".join(str(label) for label in where)
            parts.append(text if coefficient == 1 else f"{coefficient} x ({text})")
        return "count of " + " + ".join(parts)

    def to_spec(self) -> dict[str, Any]:
        conditions = self._conditions()
        if len(conditions) == 1 and conditions[0][1] == 1 and isinstance(conditions[0][0], Mapping):
            spec: dict[str, Any] = {"count": {"where": conditions[0][0]}}
        else:
            terms = [{"where" if isinstance(w, Mapping) else "cell": w, "times": c} for w, c in conditions]
            spec = {"count": {"terms": terms}}
        return spec | ({} if self.equals is None else {"equals": int(self.equals)})


def count(where: Where, *, equals: int | None = None) -> LinearCount:
    """Return the constraint that the number of records meeting a condition is public.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> count({"age": [0, 1]}).row_name(Domain({"age": 4}), 0)
    'count of age in {0, 1}'
    """
    return LinearCount([(where, 1)], equals=equals)


@dataclass(frozen=True, init=False)
class StructuralZero(Constraint):
    """Cells that no record can be in, as everybody knows.

    Parameters
    ----------
    cells
        Each one cell (its labels), or a condition that names many.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> domain = Domain({"age": ["child", "adult"], "job": ["none", "some"]})
    >>> StructuralZero([["child", "some"]]).forbidden(domain).tolist()
    [1]
    """

    cells: tuple[Any, ...]

    def __init__(self, cells: Iterable[Where | Sequence[Label]]) -> None:
        frozen: list[Any] = []
        for cell in cells:
            if isinstance(cell, Mapping):
                frozen.append(("where", freeze_where(cell)))
            elif isinstance(cell, (list, tuple)):
                frozen.append(("cell", tuple(cell)))
            else:
                frozen.append(("cell", (cell,)))
        if not frozen:
            raise InputError("zeros = []: expected at least one cell.", code="constraint.zeros")
        object.__setattr__(self, "cells", tuple(frozen))

    def _conditions(self) -> list[Any]:
        return [
            {n: list(ls) for n, ls in what} if kind == "where" else list(what) for kind, what in self.cells
        ]

    def forbidden(self, domain: AnyDomain) -> Ints:
        """Indices of the cells that are always empty."""
        return np.unique(np.concatenate([select(domain, where) for where in self._conditions()]))

    def n_rows(self, domain: AnyDomain) -> int:
        return len(self.forbidden(domain))

    def rows(self, domain: AnyDomain) -> Rows:
        cells = self.forbidden(domain)
        return Rows(len(cells), np.arange(len(cells), dtype=np.int64), cells, np.ones_like(cells))

    def values(self, domain: AnyDomain) -> tuple[int, ...] | None:
        return (0,) * self.n_rows(domain)

    def row_name(self, domain: AnyDomain, row: int) -> str:
        return "the structural zero " + ", ".join(
            str(label) for label in domain.cell(int(self.forbidden(domain)[row]))
        )

    def to_spec(self) -> dict[str, Any]:
        return {"zeros": self._conditions()}
