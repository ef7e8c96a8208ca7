"""Totals, margins and single cells of margins. Owns ``Total``, ``Cuboid``, ``Cells``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.model.constraints.base import (
    AnyDomain,
    Constraint,
    Ints,
    Rows,
    freeze,
    listable,
    select,
    stack,
    table_only,
    thaw,
    whole,
    wholes,
)
from policygraph.model.domain import Label


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
