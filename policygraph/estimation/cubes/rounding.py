"""Whole numbers near a table that keep exactly known sums. Owns :func:`controlled`.

Every cell becomes one of the two whole numbers around it where that is possible. One known table needs running sums only, two
are a flow problem, which has a whole solution whenever it has any, and a chain of them is a chain of flows. Other
combinations are decided by CP-SAT while they are small. ``docs/explanation/proofs/cubes-consistency.md``, section 4. Sees noisy
numbers only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND, Effort
from policygraph.errors import RefusedError
from policygraph.estimation.cubes.cells import Fact, places, summed, union
from policygraph.estimation.optimise import cp_solver, flow_between
from policygraph.transforms.cuboids.lattice import Floats, Ints, Lattice

Bools = npt.NDArray[np.bool_]

FLOW_CELLS = 2_000_000
"""Cells up to which two known tables are kept by one flow."""
PROGRAM_CELLS = 5_000
"""Cells up to which other combinations of known sums are kept, by a program."""
PREFERENCE = 1_000
WIDER = (0, 1, 3, 30)
"""How far from the two nearest whole numbers a cell may go, tried in turn."""
SEARCHED = 30 * SECOND
"""Units of work of the solver: the same tables are found on every machine."""


def controlled(
    lattice: Lattice, top: int, values: Floats, known: Mapping[int, Any], facts: Sequence[Fact] = ()
) -> Ints:
    """Round a table to whole numbers with exactly known sums.

    Parameters
    ----------
    top
        The cuboid of the table.
    values
        Its cells, whose sums are the known ones up to float errors.
    known
        Whole tables of cuboids below it.
    facts
        Other known sums.

    Returns
    -------
    ndarray
        Whole cells; none is negative where the value was not.

    Raises
    ------
    RefusedError
        When the known sums are neither a chain of tables nor few enough to be searched, or no whole table has them.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 3}))
    >>> values = np.array([[0.5, 1.25, 1.25], [1.5, 0.75, 0.75]])
    >>> controlled(lattice, 3, values, {1: [3, 3], 2: [2, 2, 2]}).tolist()
    [[1, 1, 1], [1, 1, 1]]
    >>> int(controlled(lattice, 3, values, {}).sum())
    6
    """
    tables = {mask: np.asarray(table, dtype=np.int64) for mask, table in known.items()}
    kept = lattice.maximal(tables)
    closed = np.zeros(lattice.shape(top), dtype=np.bool_)
    for fact in facts:
        if fact.empty:
            closed.reshape(-1)[fact.cells_in(lattice, top)] = True
    values = np.where(closed, 0.0, values)
    rows = [fact for fact in facts if not fact.empty]
    if rows:
        at, found = _searched(lattice, top, values, closed, kept, tables, rows)
    elif not kept:
        at, found = 0, np.asarray(np.rint(values.sum()), dtype=np.int64)
    else:
        order = chain(kept)
        if order is None:
            at, found = _searched(lattice, top, values, closed, kept, tables, rows)
        else:
            at, found = order[0], tables[order[0]].reshape(lattice.shape(order[0]))
            for mask in order[1:]:
                found = _joined(lattice, top, values, closed, (at, found), (mask, tables[mask]))
                at |= mask
    return _within(lattice, top, values, closed, at, found)


def chain(masks: Sequence[int]) -> list[int] | None:
    """An order in which each table meets the ones before it inside one of them; None when there is none.

    Examples
    --------
    >>> chain([0b011, 0b110, 0b1100]), chain([0b011, 0b110, 0b101])
    ([3, 6, 12], None)
    """
    for start in masks:
        order, together = [start], start
        rest = [mask for mask in masks if mask != start]
        while rest:
            fits = [mask for mask in rest if any(mask & together & ~before == 0 for before in order)]
            if not fits:
                break
            order.append(fits[0])
            together |= fits[0]
            rest.remove(fits[0])
        if not rest:
            return order
    return None


def _within(
    lattice: Lattice, top: int, values: Floats, closed: Bools, at: int, sums: npt.NDArray[Any]
) -> Ints:
    """Round a table whose sums to one cuboid are given, by running sums inside each cell of that."""
    axes = lattice.axes(top)
    inside = [i for i, axis in enumerate(axes) if at >> axis & 1]
    order = inside + [i for i in range(len(axes)) if i not in inside]
    moved = np.ascontiguousarray(np.transpose(values, order)).reshape(lattice.size(at), -1)
    low = np.floor(moved)
    share = moved - low
    goal = sums.reshape(-1).astype(np.int64)
    left = goal - low.astype(np.int64).sum(axis=1)
    running = np.cumsum(share, axis=1)
    whole = np.floor(running[:, -1])
    # Starting the running sum a little later or earlier makes it end at either of the two whole numbers around it.
    start = np.where(left > whole, 1.0 - (running[:, -1] - whole) / 2, 0.0)
    steps = np.floor(running + start[:, None])
    made: Ints = (low + np.diff(steps, axis=1, prepend=np.floor(start)[:, None])).astype(np.int64)
    off = goal - made.sum(axis=1)
    if np.any(off):
        shut = np.transpose(closed, order).reshape(moved.shape)
        for row in np.flatnonzero(off).tolist():
            _absorb(made[row], moved[row], shut[row], int(off[row]))
    shape = [values.shape[i] for i in order]
    back: Ints = np.transpose(made.reshape(shape), np.argsort(order))
    return np.ascontiguousarray(back)


def _absorb(row: Ints, values: Floats, closed: Bools, off: int) -> None:
    """Put what is missing where it is nearest, without making a cell negative that was not."""
    while off:
        if off > 0:
            gap, may = values - row, ~closed
        else:
            gap, may = row - values, ~closed & ((row > 0) | (values < 0))
        if not np.any(may):
            raise _no_table()
        gap = np.where(may, gap, -np.inf)
        count = min(abs(off), int(may.sum()))
        chosen = np.argsort(-gap, kind="stable")[:count]
        row[chosen] += 1 if off > 0 else -1
        off -= count if off > 0 else -count


def _ranges(pooled: Floats, closed: Bools, wider: int) -> tuple[Ints, Ints]:
    """Between which whole numbers a cell may go; empty cells stay empty at first, and closed ones always."""
    low = np.floor(pooled) - wider
    low = np.where(pooled >= 0, np.maximum(low, 0), low)
    high = np.ceil(pooled) + wider
    return np.where(closed, 0, low).astype(np.int64), np.where(closed, 0, high).astype(np.int64)


def _costs(pooled: Floats) -> Ints:
    """What rounding each cell up costs, in thousandths: least where that is nearest."""
    return np.asarray(np.rint(PREFERENCE * (1 - 2 * (pooled - np.floor(pooled)))), dtype=np.int64)


def _pooled(lattice: Lattice, top: int, values: Floats, closed: Bools, together: int) -> tuple[Floats, Bools]:
    """Sums to a cuboid, and which of its cells are closed. Float errors of a whole number must not open it to rounding."""
    made = summed(lattice, values, top, together).reshape(-1)
    nearest = np.rint(made)
    shut = summed(lattice, (~closed).astype(np.int64), top, together).reshape(-1) == 0
    return np.where(np.abs(made - nearest) < 1e-6, nearest, made), shut


def _joined(
    lattice: Lattice, top: int, values: Floats, closed: Bools, one: tuple[int, Ints], other: tuple[int, Ints]
) -> Ints:
    """The table of all attributes of two tables with exactly these two as its sums, by a flow."""
    together = one[0] | other[0]
    if lattice.size(together) > FLOW_CELLS:
        raise RefusedError(
            f"keeping the known tables {list(lattice.names(one[0]))} and {list(lattice.names(other[0]))} needs a flow over "
            f"{lattice.size(together):,} cells: expected at most {FLOW_CELLS:,}. State fewer known tables, or leave out nonnegative and whole.",
            code="cubes.flow",
            value=lattice.size(together),
        )
    pooled, shut = _pooled(lattice, top, values, closed, together)
    tails = places(lattice, together, one[0])
    heads = places(lattice, together, other[0])
    heights = lattice.size(one[0]), lattice.size(other[0])
    for wider in WIDER:
        low, high = _ranges(pooled, shut, wider)
        open_ = np.flatnonzero(high > low)
        need = one[1].reshape(-1) - np.bincount(tails, weights=low, minlength=heights[0]).astype(np.int64)
        take = other[1].reshape(-1) - np.bincount(heads, weights=low, minlength=heights[1]).astype(np.int64)
        if need.sum() != take.sum():
            raise _no_table()
        if np.any(need < 0) or np.any(take < 0):
            continue
        if len(open_) or need.any():
            flow = flow_between(
                tails[open_], heads[open_], (high - low)[open_], _costs(pooled)[open_], need, take
            )
            if flow is None:
                continue
            low[open_] += flow
        return low.reshape(lattice.shape(together))
    raise _no_table()


def _searched(
    lattice: Lattice,
    top: int,
    values: Floats,
    closed: Bools,
    kept: Sequence[int],
    tables: Mapping[int, Ints],
    facts: Sequence[Fact],
) -> tuple[int, Ints]:
    """Keep any known sums, by CP-SAT over the cells of the attributes they have."""
    from ortools.sat.python import cp_model

    together = union([*kept, *(fact.mask for fact in facts)])
    if lattice.size(together) > PROGRAM_CELLS:
        raise RefusedError(
            f"the known sums over {list(lattice.names(together))} form no chain of tables, and their {lattice.size(together):,} cells are "
            f"too many to search for whole numbers: expected at most {PROGRAM_CELLS:,}. State fewer known sums, or leave out "
            "nonnegative and whole.",
            code="cubes.search",
            value=lattice.size(together),
        )
    pooled, shut = _pooled(lattice, top, values, closed, together)
    for wider in WIDER:
        model = cp_model.CpModel()
        low, high = _ranges(pooled, shut, wider)
        cells = [model.new_int_var(int(a), int(b), "") for a, b in zip(low, high, strict=True)]
        for mask in kept:
            place = places(lattice, together, mask)
            for row, value in enumerate(tables[mask].reshape(-1).tolist()):
                model.add(sum(cells[i] for i in np.flatnonzero(place == row).tolist()) == value)
        for fact in facts:
            place = places(lattice, together, fact.mask)
            terms = [
                coefficient * sum(cells[i] for i in np.flatnonzero(place == cell).tolist())
                for cell, coefficient in zip(fact.cells.tolist(), fact.coefficients.tolist(), strict=True)
            ]
            model.add(sum(terms) == int(fact.value or 0))
        if wider == 0:
            model.minimize(
                sum(cost * cell for cost, cell in zip(_costs(pooled).tolist(), cells, strict=True))
            )
        solver = cp_solver()
        solver.parameters.relative_gap_limit = 0.01
        if Effort(SEARCHED).solve(solver, model) in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            made = np.array([solver.value(cell) for cell in cells], dtype=np.int64)
            return together, made.reshape(lattice.shape(together))
    raise _no_table()


def _no_table() -> RefusedError:
    return RefusedError(
        "no table of whole numbers with the known sums was found near the estimate. Leave out nonnegative and whole, or state fewer "
        "known sums.",
        code="cubes.no-whole-table",
    )
