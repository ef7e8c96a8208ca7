"""Estimates made on the finest table: non-negative ones, and least deviations. Owns :func:`nonnegative_cells`, :func:`program_cells`.

A non-negative finest table with given sums is made by scaling, which keeps every cell positive. Least absolute and least maximal deviations are linear programs,
solved by the dual simplex method, which ends in a vertex: so few cells are not zero that rounding them moves every sum by little.
Interior points do not have this. ``docs/explanation/proofs/cubes-consistency.md``, sections 2 and 3. Sees noisy numbers only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from policygraph.errors import RefusedError
from policygraph.estimation.cubes.cells import Fact, all_sums, places, spread, summed
from policygraph.transforms.cuboids.choose import Choice
from policygraph.transforms.cuboids.lattice import ROOM, Floats, Ints, Lattice, grouped

SCALINGS = 500
SCALED_CELLS = 1_500_000_000
"""Cells of the finest table times groups of tables times sweeps of scaling."""
SETTLED = 1e-11
NEAR = 1e-3
"""Distance of all cells to their goals, in records, at which scaling ends."""
SLOWEST = 0.999
TRACE = 1e-7
PROGRAM_BASE = 1 << 14
"""Cells up to which deviations are minimised by one linear program over all of them."""
GENERATED_BASE, GENERATED_ROWS = 1 << 18, 1 << 12
"""Cells of the finest table and measured numbers up to which deviations are minimised by linear programs at all; beyond the first limit cells are added where they are needed."""
PROGRAM_ENTRIES = 6_000_000
"""Non-zero coefficients of such a program."""
ITERATIONS = 200_000
"""Steps of the simplex method, some minutes for the largest programs; a program that takes more is refused, on every machine alike."""


def nonnegative_cells(
    lattice: Lattice,
    top: int,
    tables: Mapping[int, Floats],
    known: Mapping[int, Any],
    facts: Sequence[Fact] = (),
) -> Floats:
    """A non-negative finest table whose sums are given tables as nearly as that can be, and meet known ones.

    Parameters
    ----------
    top
        The finest cuboid.
    tables
        Tables that are (nearly) non-negative and agree: the largest ones with all below them.
    known, facts
        What is known exactly.

    Notes
    -----
    Iterative proportional fitting from independent attributes: it ends at the table of largest entropy with these sums if there is one, and circles closely around
    the nearest ones if not. Tables are scaled in groups, on a sum of the finest table that has all of their attributes.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 2}))
    >>> tables = {1: np.array([7.0, 5.0]), 2: np.array([9.0, 3.0]), 0: np.array(12.0)}
    >>> nonnegative_cells(lattice, 3, tables, {}).round(2).tolist()
    [[5.25, 1.75], [3.75, 1.25]]
    """
    exact = {mask: np.asarray(table, dtype=np.float64) for mask, table in known.items()}
    total = max([0.0, float(tables[0]), *(fact.least_total for fact in facts)])
    x = np.full(lattice.shape(top), total)
    for axis in lattice.axes(top):
        if 1 << axis not in tables:
            x /= lattice.size(1 << axis)
            continue
        single = np.maximum(tables[1 << axis], min(1.0, total / lattice.size(1 << axis)))
        x *= spread(lattice, single / max(float(single.sum()), 1e-300), 1 << axis, top)
    for fact in facts:
        if fact.empty:
            view = x.reshape(-1)
            view[fact.cells_in(lattice, top)] = 0.0
    if total == 0.0:
        return x
    tops = lattice.maximal(tables)
    goals = all_sums(lattice, x, top, tops)
    # A trace of the first table keeps every cell open, so that known sums can be met.
    goals = {mask: np.maximum((1 - TRACE) * tables[mask], 0.0) + TRACE * goals[mask] for mask in tops}
    room = max(ROOM, lattice.size(top) // 16)
    groups = [
        (lattice.mask_of(group.axes), [lattice.mask_of(axes) for axes in group.wanted])
        for group in grouped(lattice.domain.shape, [lattice.axes(mask) for mask in tops], room)
    ]
    scale_to(lattice, top, x, exact, facts, 1)
    before = np.inf
    sweeps = int(np.clip(SCALED_CELLS // (x.size * len(groups)), 4, SCALINGS))
    for _ in range(sweeps):
        worst = 0.0
        for whole, parts in groups:
            sums = summed(lattice, x, top, whole)
            made = sums.copy()
            for mask in parts:
                here = summed(lattice, made, whole, mask)
                worst = max(worst, float(np.abs(here - goals[mask]).max()))
                with np.errstate(divide="ignore", invalid="ignore"):
                    made *= spread(lattice, np.where(here > 0, goals[mask] / here, 0.0), mask, whole)
            with np.errstate(divide="ignore", invalid="ignore"):
                x *= spread(lattice, np.where(sums > 0, made / sums, 0.0), whole, top)
        scale_to(lattice, top, x, exact, facts, 1)
        if worst < NEAR or (worst > SLOWEST * before and not facts):
            break
        before = worst
    scale_to(lattice, top, x, exact, facts, SCALINGS)
    return x


def scale_to(
    lattice: Lattice, top: int, x: Floats, known: Mapping[int, Floats], facts: Sequence[Fact], rounds: int
) -> None:
    """Scale a table, in place, until exactly known sums are met as well as floats can."""
    for _ in range(rounds):
        worst = 0.0
        for mask, table in known.items():
            sums = summed(lattice, x, top, mask)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(sums > 0, table / sums, 0.0)
            x *= spread(lattice, ratio, mask, top)
            worst = max(worst, float(np.abs(np.where(sums > 0, ratio - 1.0, 0.0)).max(initial=0.0)))
        for fact in facts:
            if not fact.empty:
                worst = max(worst, fact.scale(lattice, top, x))
        if worst < SETTLED:
            return


def away(lattice: Lattice, top: int, masks: Iterable[int]) -> Ints:
    """Cells of a table whose labels other than first ones are all in one of some cuboids.

    These determine, and are determined by, the tables of the cuboids; other cells can stay 0 where signs are free.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> away(Lattice(Domain({"a": 2, "b": 3})), 3, [1, 2]).tolist()
    [0, 1, 2, 3]
    """
    axes = lattice.axes(top)
    changed = np.zeros(lattice.shape(top), dtype=np.int64)
    for position, axis in enumerate(axes):
        shape = [1] * len(axes)
        shape[position] = -1
        labels = np.arange(lattice.domain.shape[axis]).reshape(shape)
        changed += np.where(labels > 0, np.int64(1) << axis, 0)
    flat = changed.reshape(-1)
    kept = np.zeros(len(flat), dtype=bool)
    for mask in lattice.maximal(masks):
        kept |= (flat & ~np.int64(mask)) == 0
    return np.flatnonzero(kept).astype(np.int64)


def program_cells(
    method: str,
    lattice: Lattice,
    top: int,
    choice: Choice,
    measured: Mapping[int, Any],
    known: Mapping[int, Any],
    facts: Sequence[Fact] = (),
    *,
    nonnegative: bool,
) -> Floats:
    """A finest table with the least sum, or the least largest, of absolute deviations from the noisy numbers.

    Parameters
    ----------
    method
        ``"least-absolute"`` or ``"least-maximum"``.
    top
        The finest cuboid.
    measured
        Noisy numbers of each measured cuboid or interaction, times their weight: so all have equal noise, and precise ones weigh more.
    known, facts
        What is known exactly.
    nonnegative
        Whether cells have to be >= 0.

    Returns
    -------
    ndarray
        A vertex of the optimal tables: the columns of its non-zero cells are linearly independent.

    Raises
    ------
    RefusedError
        When the program is too large, is not solved in as many steps as are allowed, or nothing meets what is known.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2}))
    >>> choice = Choice((("a",), ()), (1, 1))
    >>> program_cells("least-maximum", lattice, 1, choice, {1: [4, -2], 0: [5]}, {}, nonnegative=True).tolist()
    [3.0, 0.0]
    """
    from scipy.optimize import linprog

    sparse = _sparse()
    empty = [fact.cells_in(lattice, top) for fact in facts if fact.empty]
    facts = [fact for fact in facts if not fact.empty]
    if lattice.size(top) > GENERATED_BASE:
        raise _too_large(
            f"{lattice.size(top):,} cells in the finest table: expected at most {GENERATED_BASE:,}"
        )
    cells = np.arange(lattice.size(top))
    if empty:
        cells = np.setdiff1d(cells, np.concatenate(empty))
    elif not nonnegative:
        masks = [lattice.mask(names) for names in choice.sets]
        cells = away(lattice, top, [*masks, *known, *(fact.mask for fact in facts)])
    if not len(cells):
        return np.zeros(lattice.shape(top))
    parts = [np.asarray(measured[lattice.mask(names)], dtype=np.float64).ravel() for names in choice.sets]
    targets = np.concatenate([np.zeros(0), *parts])
    if nonnegative and len(cells) > PROGRAM_BASE:
        return _generated(method, lattice, top, choice, targets, known, facts, cells)
    if len(cells) > PROGRAM_BASE:
        raise _too_large(f"{len(cells):,} cells of either sign: expected at most {PROGRAM_BASE:,}")
    rows = _measured_rows(lattice, top, choice, cells)
    held, values = _exact_rows(lattice, top, known, facts, cells)
    if rows.nnz + held.nnz > PROGRAM_ENTRIES:
        raise _too_large(f"{rows.nnz + held.nnz:,} coefficients: expected at most {PROGRAM_ENTRIES:,}")
    place = _finest(lattice, top, choice)
    if method == "least-absolute" and not nonnegative and place is not None:
        made = np.zeros(lattice.size(top))
        made[cells] = _beside_finest(rows, targets, held, values, place, cells)
        return made.reshape(lattice.shape(top))
    height, width = rows.shape
    sign = (0, None) if nonnegative else (None, None)
    if method == "least-absolute":
        each = sparse.identity(height, format="csr")
        none = sparse.csr_matrix((held.shape[0], 2 * height))
        equal = sparse.vstack([sparse.hstack([rows, -each, each]), sparse.hstack([held, none])], format="csc")
        solved = linprog(
            np.concatenate([np.zeros(width), np.ones(2 * height)]),
            A_eq=equal,
            b_eq=np.concatenate([targets, values]),
            bounds=[sign] * width + [(0, None)] * (2 * height),
            method="highs-ds",
            options={"maxiter": ITERATIONS},
        )
    else:
        ones = np.ones((height, 1))
        below = sparse.vstack([sparse.hstack([rows, -ones]), sparse.hstack([-rows, -ones])], format="csc")
        exact = sparse.hstack([held, np.zeros((held.shape[0], 1))], format="csc")
        solved = linprog(
            np.concatenate([np.zeros(width), [1.0]]),
            A_ub=below,
            b_ub=np.concatenate([targets, -targets]),
            A_eq=exact if held.shape[0] else None,
            b_eq=values if held.shape[0] else None,
            bounds=[*([sign] * width), (0, None)],
            method="highs-ds",
            options={"maxiter": ITERATIONS},
        )
    made = np.zeros(lattice.size(top))
    made[cells] = _solution(solved, method)[:width]
    if nonnegative:
        np.maximum(made, 0.0, out=made)
    return made.reshape(lattice.shape(top))


def _solution(solved: Any, method: str) -> Floats:
    if solved.status != 0:
        raise RefusedError(
            f"the linear program of {method} deviations was not solved ({solved.message}). Use consistency='least-squares', or nonnegative=True, which is faster.",
            code="cubes.program",
        )
    return np.asarray(solved.x, dtype=np.float64)


def _finest(lattice: Lattice, top: int, choice: Choice) -> tuple[slice, int] | None:
    """The rows of the finest table and its weight, when it is measured itself."""
    if choice.kind != "cuboids":
        return None
    start = 0
    for names, weight in zip(choice.sets, choice.weights, strict=True):
        mask = lattice.mask(names)
        if mask == top:
            return slice(start, start + lattice.size(mask)), weight
        start += lattice.size(mask)
    return None


def _beside_finest(
    rows: Any, targets: Floats, held: Any, values: Floats, place: tuple[slice, int], cells: Ints
) -> Floats:
    """Least absolute deviations with free signs, by the deviations of the measured finest table themselves.

    Each cell is its noisy value plus a deviation that costs its weight, so that only the coarser tables are rows of the program.
    """
    from scipy.optimize import linprog

    sparse = _sparse()
    finest, weight = place
    others = np.delete(np.arange(rows.shape[0]), finest)
    noisy = targets[finest][cells] / weight
    upper, height, width = rows[others], len(others), len(cells)
    each = sparse.identity(height, format="csr")
    none = sparse.csr_matrix((held.shape[0], 2 * height))
    equal = sparse.vstack(
        [sparse.hstack([upper, -upper, -each, each]), sparse.hstack([held, -held, none])], format="csc"
    )
    if not equal.shape[0]:
        return np.asarray(noisy)
    solved = linprog(
        np.concatenate([np.full(2 * width, float(weight)), np.ones(2 * height)]),
        A_eq=equal,
        b_eq=np.concatenate([targets[others] - upper @ noisy, values - held @ noisy]),
        bounds=(0, None),
        method="highs-ds",
        options={"maxiter": ITERATIONS},
    )
    found = _solution(solved, "least-absolute")
    return np.asarray(noisy + found[:width] - found[width : 2 * width])


def _measured_rows(lattice: Lattice, top: int, choice: Choice, cells: Ints) -> Any:
    """The measured numbers as rows over some finest cells."""
    sparse = _sparse()
    if not choice.sets:
        return sparse.csr_matrix((0, len(cells)))
    query = choice.query(lattice.domain.project(list(lattice.names(top))))
    # A cell counts in one cell of each measured cuboid, but in all rows of an interaction.
    each = len(choice.sets) if choice.kind == "cuboids" else query.height
    if len(cells) * each > PROGRAM_ENTRIES:
        raise _too_large(f"{len(cells) * each:,} coefficients: expected at most {PROGRAM_ENTRIES:,}")
    return sparse.csr_matrix(query.columns(cells), dtype=np.float64)


def _generated(
    method: str,
    lattice: Lattice,
    top: int,
    choice: Choice,
    noisy: Floats,
    known: Mapping[int, Any],
    facts: Sequence[Fact],
    cells: Ints,
) -> Floats:
    """Many non-negative cells: by column generation."""
    from policygraph.estimation.cubes.columns import Columns, generated_cells

    if not 0 < len(noisy) <= GENERATED_ROWS:
        raise _too_large(
            f"{len(cells):,} cells and {len(noisy):,} measured numbers: expected at most {PROGRAM_BASE:,} cells, or {GENERATED_ROWS:,} numbers"
        )
    masks = [lattice.mask(names) for names in choice.sets]
    held, values = _exact_rows(lattice, top, known, facts, cells)
    query = choice.query(lattice.domain.project(list(lattice.names(top))))
    program = Columns(
        lattice, top, choice, query, noisy, cells, held, values, absolute=method == "least-absolute"
    )
    first = np.flatnonzero(np.isin(cells, away(lattice, top, [*masks, *known])))
    made = np.zeros(lattice.size(top))
    made[cells] = generated_cells(program, first)
    return made.reshape(lattice.shape(top))


def _exact_rows(
    lattice: Lattice, top: int, known: Mapping[int, Any], facts: Sequence[Fact], cells: Ints
) -> tuple[Any, Floats]:
    sparse = _sparse()
    blocks, values = [], []
    for mask in lattice.maximal(known):
        rows = sparse.csr_matrix(
            (np.ones(lattice.size(top)), (places(lattice, top, mask), np.arange(lattice.size(top)))),
            shape=(lattice.size(mask), lattice.size(top)),
        )
        blocks.append(rows[:, cells])
        values.append(np.asarray(known[mask], dtype=np.float64).reshape(-1))
    for fact in facts:
        weights = fact.row(lattice).reshape(-1)[places(lattice, top, fact.mask)]
        blocks.append(sparse.csr_matrix(weights[None, :])[:, cells])
        values.append(np.array([float(fact.value or 0)]))
    if not blocks:
        return sparse.csr_matrix((0, len(cells))), np.zeros(0)
    return sparse.vstack(blocks, format="csr"), np.concatenate(values)


def _too_large(what: str) -> RefusedError:
    return RefusedError(
        f"a linear program over {what}. Use consistency='least-squares', which has no such limit.",
        code="cubes.program-size",
    )


def _sparse() -> Any:
    from scipy import sparse

    return sparse
