"""Public sums of a table. Owns ``Total``, ``Cuboid``, ``Cells``, ``LinearCount``, ``StructuralZero`` and ``count``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from policygraph.errors import ConstraintError, InputError
from policygraph.model.constraints.base import (
    AnyDomain,
    Constraint,
    Ints,
    Rows,
    Where,
    freeze,
    freeze_where,
    listable,
    select,
    stack,
    table_only,
    thaw,
    whole,
    wholes,
)
from policygraph.model.domain import Label

LARGEST_COEFFICIENT = 1 << 31


@dataclass(frozen=True)
class Total(Constraint):
    """The number of records (or edges) is public.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> Total().rows(Domain({"a": 3})).cell.tolist()
    [0, 1, 2]
    """

    equals: int | None = None

    def n_rows(self, domain: AnyDomain) -> int:
        return 1

    def rows(self, domain: AnyDomain) -> Rows:
        listable(domain.size, "the total")
        cells = np.arange(domain.size, dtype=np.int64)
        return Rows(1, np.zeros_like(cells), cells, np.ones_like(cells))

    def rows_on(self, domain: AnyDomain, cells: Ints) -> Rows:
        place = np.arange(len(cells), dtype=np.int64)
        return Rows(1, np.zeros_like(place), place, np.ones_like(place))

    def values(self, domain: AnyDomain) -> tuple[int, ...] | None:
        return None if self.equals is None else (whole(self.equals, "total"),)

    def row_name(self, domain: AnyDomain, row: int) -> str:
        return "the total"

    def to_spec(self) -> dict[str, Any]:
        return {"total": True} | ({} if self.equals is None else {"equals": self.equals})


@dataclass(frozen=True, init=False)
class Cuboid(Constraint):
    """A whole table of margins is public.

    Parameters
    ----------
    names
        The attributes of the margin.
    equals
        Its published values, in the order of the domain's attributes, if the engine may use them.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> Cuboid("sex").n_rows(Domain({"sex": ["F", "M"], "age": 7}))
    2
    """

    names: tuple[str, ...]
    equals: Any

    def __init__(self, *names: Any, equals: Any = None) -> None:
        if len(names) == 1 and isinstance(names[0], (list, tuple)):
            names = tuple(names[0])
        for name in names:
            if not isinstance(name, str):
                raise InputError(
                    f"cuboid {names!r}: expected names of attributes.", code="constraint.cuboid", value=names
                )
        if len(set(names)) != len(names):
            raise InputError(
                f"cuboid {names!r} names an attribute twice.", code="constraint.cuboid", value=names
            )
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "equals", freeze(equals))

    def axes(self, domain: AnyDomain) -> tuple[int, ...]:
        """Positions of the margin's attributes in the domain, ascending."""
        table = table_only(domain, f"cuboid {list(self.names)}")
        return tuple(sorted(table.axis(name) for name in self.names))

    def n_rows(self, domain: AnyDomain) -> int:
        table = table_only(domain, f"cuboid {list(self.names)}")
        return (
            int(np.prod([table.shape[axis] for axis in self.axes(domain)], dtype=object)) if self.names else 1
        )

    def rows(self, domain: AnyDomain) -> Rows:
        table = table_only(domain, "a cuboid")
        listable(table.size, f"cuboid {list(self.names)}")
        axes = self.axes(domain)
        grid = np.arange(self.n_rows(domain), dtype=np.int64).reshape([table.shape[axis] for axis in axes])
        for axis in range(len(table.shape)):
            if axis not in axes:
                grid = np.expand_dims(grid, axis)
        row = np.broadcast_to(grid, table.shape).ravel()
        cells = np.arange(table.size, dtype=np.int64)
        return Rows(self.n_rows(domain), row, cells, np.ones_like(cells))

    def rows_on(self, domain: AnyDomain, cells: Ints) -> Rows:
        table = table_only(domain, "a cuboid")
        codes = table.codes(cells)
        row = np.zeros(len(cells), dtype=np.int64)
        for axis in self.axes(domain):
            row = row * table.shape[axis] + codes[axis]
        return Rows(self.n_rows(domain), row, np.arange(len(cells), dtype=np.int64), np.ones_like(row))

    def sums(self, domain: AnyDomain, table: Any) -> Ints:
        flat = np.asarray(table, dtype=np.int64)
        shape = table_only(domain, "a cuboid").shape
        others = tuple(axis for axis in range(len(shape)) if axis not in self.axes(domain))
        out: Ints = flat.reshape(shape).sum(axis=others).ravel()
        return out

    def values(self, domain: AnyDomain) -> tuple[int, ...] | None:
        return wholes(thaw(self.equals), self.n_rows(domain), f"cuboid {list(self.names)}")

    def row_name(self, domain: AnyDomain, row: int) -> str:
        table = table_only(domain, "a cuboid")
        if not self.names:
            return "the total"
        part = table.project(self.names)
        return " and ".join(f"{n} = {v}" for n, v in zip(part.names, part.cell(row), strict=True))

    def to_spec(self) -> dict[str, Any]:
        return {"cuboid": list(self.names)} | ({} if self.equals is None else {"equals": thaw(self.equals)})


@dataclass(frozen=True, init=False)
class Cells(Constraint):
    """Some cells of a margin are public, the others are not.

    Parameters
    ----------
    of
        The attributes of the margin.
    cells
        The labels of each public cell, in the order of ``of``.
    equals
        The published values, one for each cell.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> domain = Domain({"sex": ["F", "M"], "age": 3})
    >>> Cells(["sex", "age"], [["F", 0], ["M", 2]]).rows(domain).cell.tolist()
    [0, 5]
    """

    of: tuple[str, ...]
    cells: tuple[tuple[Label, ...], ...]
    equals: Any

    def __init__(self, of: Sequence[str] | str, cells: Iterable[Any], *, equals: Any = None) -> None:
        names = (of,) if isinstance(of, str) else tuple(of)
        listed = tuple(tuple(c) if isinstance(c, (list, tuple)) else (c,) for c in cells)
        if not names or not listed:
            raise InputError(
                f"cells of {list(names)}: expected at least one attribute and one cell.",
                code="constraint.cells",
            )
        for cell in listed:
            if len(cell) != len(names):
                raise InputError(
                    f"cell {list(cell)!r}: expected one label for each of {', '.join(names)}.",
                    code="constraint.cells",
                    value=cell,
                )
        if len(set(listed)) != len(listed):
            raise InputError(f"cells of {list(names)}: a cell is listed twice.", code="constraint.cells")
        object.__setattr__(self, "of", names)
        object.__setattr__(self, "cells", listed)
        object.__setattr__(self, "equals", freeze(equals))

    def n_rows(self, domain: AnyDomain) -> int:
        table = table_only(domain, f"cells of {list(self.of)}")
        for cell in self.cells:
            for name, label in zip(self.of, cell, strict=True):
                table.code(name, label)
        return len(self.cells)

    def rows(self, domain: AnyDomain) -> Rows:
        self.n_rows(domain)
        picked = [select(domain, dict(zip(self.of, cell, strict=True))) for cell in self.cells]
        return stack(picked, [1] * len(picked))

    def rows_on(self, domain: AnyDomain, cells: Ints) -> Rows:
        table = table_only(domain, f"cells of {list(self.of)}")
        codes, axes = table.codes(cells), [table.axis(name) for name in self.of]
        width = prod(table.shape[axis] for axis in axes)
        kind: Any = np.int64 if width < 1 << 62 else object
        key = np.zeros(len(cells), dtype=kind)
        public = np.zeros(len(self.cells), dtype=kind)
        for at, (name, axis) in enumerate(zip(self.of, axes, strict=True)):
            key = key * table.shape[axis] + codes[axis]
            public = public * table.shape[axis] + [table.code(name, cell[at]) for cell in self.cells]
        order = np.argsort(public, kind="stable")
        place = np.minimum(np.searchsorted(public[order], key), len(public) - 1)
        held = np.flatnonzero(public[order][place] == key)
        return Rows(len(self.cells), order[place[held]], held, np.ones_like(held))

    def values(self, domain: AnyDomain) -> tuple[int, ...] | None:
        return wholes(thaw(self.equals), len(self.cells), f"cells of {list(self.of)}")

    def row_name(self, domain: AnyDomain, row: int) -> str:
        return " and ".join(f"{n} = {v}" for n, v in zip(self.of, self.cells[row], strict=True))

    def to_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"cells": {"of": list(self.of), "values": [list(cell) for cell in self.cells]}}
        return spec | ({} if self.equals is None else {"equals": thaw(self.equals)})


def Cell(equals: int | None = None, **labels: Label) -> Cells:  # noqa: N802
    """Return the constraint that one cell of a margin is public.

    Examples
    --------
    >>> Cell(sex="F", age=0).to_spec()
    {'cells': {'of': ['sex', 'age'], 'values': [['F', 0]]}}
    """
    return Cells(list(labels), [list(labels.values())], equals=None if equals is None else [equals])


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
