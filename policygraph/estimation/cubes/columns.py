"""Linear programs over more finest cells than can be written out, by column generation. Owns :func:`generated_cells`.

The program is solved over few cells; its dual solution prices all the others, by sums over tables and without a matrix, and cells that would lower the objective are added until a bound in
whole numbers proves that none can by more than a trace (``docs/explanation/proofs/cubes-consistency.md``, section 3). Sees noisy numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from policygraph.errors import RefusedError
from policygraph.estimation.cubes.cells import spread
from policygraph.model.queries.base import Query
from policygraph.transforms.cuboids.choose import Choice
from policygraph.transforms.cuboids.lattice import Floats, Ints, Lattice

ROUNDS = 100
"""Most programs that are solved."""
ADDED = 400
"""Most cells that one of them adds."""
ITERATIONS = 200_000
MOST_ENTRIES = 6_000_000
"""Most coefficients of one of them."""
NEAR = 1e-6
"""The objective is proved to be within this share of the optimum."""
BITS = 50
"""Dual solutions are rounded to multiples of 2 to the minus this for the proof, or of more where prices would leave 64 bits."""
PENALTIES = (1e2, 1e4, 1e6)
"""What a unit of a known sum that is missed costs, in weights of a table, tried in turn; in the end none may be missed."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The program: what is measured over the finest cells, the noisy numbers, and what is known exactly.

    Attributes
    ----------
    top
        The finest cuboid.
    query
        What is measured, over its attributes.
    targets
        The noisy numbers.
    cells
        Finest cells that may hold something.
    held, values
        Exactly known sums: rows over these cells, and their values.
    absolute
        Whether the sum of absolute deviations is minimised, or their maximum.
    """

    lattice: Lattice
    top: int
    choice: Choice
    query: Query
    targets: Floats
    cells: Ints
    held: Any
    values: Floats
    absolute: bool

    def priced(self, duals: Any, known: Any) -> Any:
        """Dual values of the measured and the known numbers, summed over the rows of each cell; whole numbers stay whole."""
        lattice, start = self.lattice, 0
        made = np.zeros(lattice.shape(self.top), dtype=np.asarray(duals).dtype)
        for names, weight, part in zip(self.choice.sets, self.choice.weights, self.query.parts, strict=True):
            mask = lattice.mask(names)
            table = duals[start : start + part.height] * weight
            start += part.height
            if self.choice.kind == "interactions":
                sizes = [lattice.domain.shape[axis] for axis in lattice.axes(mask)]
                table = table.reshape([1 if n == 2 else n for n in sizes])
                for place, n in enumerate(sizes):
                    table = (
                        np.concatenate([table, -table], axis=place)
                        if n == 2
                        else n * table - table.sum(axis=place, keepdims=True)
                    )
            made += spread(lattice, table, mask, self.top)
        flat = made.reshape(-1)[self.cells]
        return flat + self.held.T.astype(flat.dtype) @ known if self.held.shape[0] else flat

    @cached_property
    def total(self) -> tuple[Fraction, Fraction] | None:
        """Numbers a, b such that no optimal table has more than a + b times the optimum in all; None where nothing says so."""
        lattice, start, best = self.lattice, 0, None
        if self.held.shape[0]:
            # Every cell is in a known sum where the known sums are whole tables.
            columns = np.asarray(self.held.sum(axis=0)).ravel()
            if columns.min() >= 1 and self.held.data.min() >= 0:
                return Fraction(int(self.values.sum())), Fraction(0)
        for names, weight, part in zip(self.choice.sets, self.choice.weights, self.query.parts, strict=True):
            seen = Fraction(int(self.targets[start : start + part.height].sum()), weight)
            start += part.height
            if self.choice.kind == "cuboids" or not names:
                size = 1 if self.absolute else lattice.size(lattice.mask(names))
                found = max(seen, Fraction(0)), Fraction(size, weight)
                best = found if best is None or sum(found) < sum(best) else best
        return best

    def bound(self, duals: Floats, known: Floats) -> Fraction | None:
        """A number that no table comes below, from any dual values: in whole numbers and fractions."""
        largest = max(self.query.largest_entry, int(abs(self.held.data).max()) if self.held.nnz else 1)
        high = float(np.abs(duals).sum() + np.abs(known).sum()) + 1.0
        bits = min(BITS, 60 - int(np.ceil(np.log2(high * largest))))
        if bits < 8:
            return None
        size = float(np.abs(duals).max() if self.absolute else np.abs(duals).sum())
        fine = duals * (2.0**bits * (1 - 1e-9) / max(1.0, size))
        whole = np.trunc(fine).astype(np.int64)
        also = np.rint(known * 2.0**bits).astype(np.int64)
        over = max(0, int(self.priced(whole, also).max()))
        value = sum(
            int(u) * int(y)
            for u, y in zip(
                [*whole.tolist(), *also.tolist()],
                [*self.targets.tolist(), *self.values.tolist()],
                strict=True,
            )
        )
        if not over:
            return Fraction(value, 1 << bits)
        if self.total is None:
            return None
        most, slope = self.total
        return (Fraction(value, 1 << bits) - Fraction(over, 1 << bits) * most) / (
            1 + Fraction(over, 1 << bits) * slope
        )

    def solved(self, chosen: Ints, penalty: float) -> tuple[Floats, Floats, Floats, float, float]:
        """The program over some cells: their values, dual values of the measured and the known numbers, the objective, and by how much known sums are missed."""
        linprog, sparse = _scipy()
        rows = sparse.csr_matrix(self.query.columns(self.cells[chosen]), dtype=np.float64)
        held = self.held[:, chosen]
        height, width, sums = rows.shape[0], len(chosen), held.shape[0]
        slack = sparse.identity(sums, format="csr")
        missed = np.full(2 * sums, penalty)
        if self.absolute:
            each = sparse.identity(height, format="csr")
            equal = sparse.vstack(
                [
                    sparse.hstack([rows, -each, each, sparse.csr_matrix((height, 2 * sums))]),
                    sparse.hstack([held, sparse.csr_matrix((sums, 2 * height)), slack, -slack]),
                ],
                format="csc",
            )
            solved = linprog(
                np.concatenate([np.zeros(width), np.ones(2 * height), missed]),
                A_eq=equal,
                b_eq=np.concatenate([self.targets, self.values]),
                bounds=(0, None),
                method="highs-ds",
                options={"maxiter": ITERATIONS},
            )
        else:
            ones, none = np.ones((height, 1)), sparse.csr_matrix((height, 2 * sums))
            solved = linprog(
                np.concatenate([np.zeros(width), [1.0], missed]),
                A_ub=sparse.vstack(
                    [sparse.hstack([rows, -ones, none]), sparse.hstack([-rows, -ones, none])], format="csc"
                ),
                b_ub=np.concatenate([self.targets, -self.targets]),
                A_eq=sparse.hstack([held, np.zeros((sums, 1)), slack, -slack], format="csc")
                if sums
                else None,
                b_eq=self.values if sums else None,
                bounds=(0, None),
                method="highs-ds",
                options={"maxiter": ITERATIONS},
            )
        if solved.status != 0:
            raise _unsolved(str(solved.message))
        if self.absolute:
            duals, known = solved.eqlin.marginals[:height], solved.eqlin.marginals[height:]
        else:
            duals = solved.ineqlin.marginals[:height] - solved.ineqlin.marginals[height:]
            known = solved.eqlin.marginals if sums else np.zeros(0)
        lost = float(solved.x[len(solved.x) - 2 * sums :].sum())
        return np.asarray(solved.x[:width]), np.asarray(duals), np.asarray(known), float(solved.fun), lost


def generated_cells(program: Columns, first: Ints) -> Floats:
    """Non-negative cells of an optimal vertex of the program, and 0 elsewhere.

    Parameters
    ----------
    program
        The program.
    first
        Cells to begin with, as positions in those of the program.

    Returns
    -------
    ndarray
        One number for each cell of the program.

    Raises
    ------
    RefusedError
        When the optimum is not proved in as many rounds as are allowed, or nothing has the known sums.
    """
    largest = float(max(program.choice.weights, default=1))
    each = len(program.choice.sets) if program.choice.kind == "cuboids" else program.query.height
    chosen = np.unique(first)
    for penalty in PENALTIES:
        for _ in range(ROUNDS):
            x, duals, known, value, lost = program.solved(chosen, penalty * largest)
            bound = program.bound(duals, known)
            if bound is not None and value - float(bound) <= NEAR * max(1.0, abs(value)):
                break
            prices = program.priced(duals, known)
            prices[chosen] = 0.0
            better = np.flatnonzero(prices > 1e-12)
            if not len(better):
                raise _unsolved("no cell is left to add, and the bound does not prove the optimum")
            if len(better) > ADDED:
                better = better[np.argpartition(-prices[better], ADDED)[:ADDED]]
            chosen = np.union1d(chosen, better)
            if len(chosen) * each > MOST_ENTRIES:
                raise _unsolved(
                    f"{len(chosen):,} cells are needed, with more than {MOST_ENTRIES:,} coefficients"
                )
        else:
            raise _unsolved(f"{ROUNDS} rounds of new cells did not reach the proved optimum")
        if lost <= 1e-7 * max(1.0, float(np.abs(program.values).max(initial=0.0))):
            made = np.zeros(len(program.cells))
            made[chosen] = np.maximum(x, 0.0)
            return made
    raise _unsolved("no non-negative table has the exactly known sums")


def _scipy() -> tuple[Any, Any]:
    from scipy import sparse
    from scipy.optimize import linprog

    return linprog, sparse


def _unsolved(why: str) -> RefusedError:
    return RefusedError(
        f"the linear program was not solved ({why}). Use consistency='least-squares', or nonnegative=True, which is faster.",
        code="cubes.program",
    )
