"""All public facts of a policy taken together. Owns :class:`System`: rows, redundancy, contradictions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from policygraph.effort import SECOND, Effort
from policygraph.errors import ConstraintError, RefusedError
from policygraph.linalg import independent_rows, read_only
from policygraph.model.constraints.base import AnyDomain, Constraint, Ints
from policygraph.model.constraints.networks import Degrees, digraphical, graphical
from policygraph.model.constraints.sums import Sums
from policygraph.model.constraints.tables import Cells, Cuboid, StructuralZero, Total
from policygraph.model.domain import Domain, Network
from policygraph.solver.program import Program

__all__ = ["MATRIX_CELLS", "System"]

MATRIX_CELLS = 4_000_000
"""Above this many cells the rows are never listed; only structure is used."""
EXACT_ENTRIES = 40_000
"""Up to this many entries linearly dependent rows are found by exact elimination."""
PROGRAM_CELLS = 20_000
"""Above this many cells feasibility is not decided by a mathematical program."""
FEASIBLE = 10 * SECOND
"""Work of such a program."""


class System:
    """The public facts of a policy, as one integer system over the cells.

    Parameters
    ----------
    domain
        What a record can be.
    constraints
        The public facts.

    Raises
    ------
    ConstraintError
        When the published values contradict each other; the message names the smallest set found.

    Examples
    --------
    >>> system = System(Domain({"a": 2, "b": 2}), [Cuboid("a"), Cuboid("a", "b"), Total()])
    >>> [constraint.to_spec() for constraint in system.redundant]
    [{'cuboid': ['a']}, {'total': True}]
    >>> System(Domain({"a": 2}), [Total(equals=3), Cuboid("a", equals=[1, 1])])
    Traceback (most recent call last):
    ...
    policygraph.errors.ConstraintError: these public facts contradict each other: total = 3; cuboid a ...
    """

    def __init__(self, domain: AnyDomain, constraints: Sequence[Constraint]) -> None:
        self.domain = domain
        self.constraints = tuple(constraints)
        for constraint in self.constraints:
            constraint.n_rows(domain)
            constraint.values(domain)
        self._check_margins()
        self._check_degrees()
        self._check_program()

    @cached_property
    def zeros(self) -> Ints:
        """Cells that are structurally empty."""
        found = [c.forbidden(self.domain) for c in self.constraints if isinstance(c, StructuralZero)]
        made: Ints = np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)
        read_only(made)
        return made

    @cached_property
    def derived(self) -> dict[Any, Any]:
        """What other modules derive from the facts and keep for the next question, by name."""
        return {}

    @cached_property
    def sums(self) -> tuple[Constraint, ...]:
        """Constraints other than structural zeros."""
        return tuple(c for c in self.constraints if not isinstance(c, StructuralZero))

    @cached_property
    def redundant(self) -> tuple[Constraint, ...]:
        """Constraints that follow from others and can be dropped without changing any neighbour."""
        dropped = [
            c for c in self.sums if any(self._follows(c, other) for other in self.sums if other is not c)
        ]
        # Of two constraints that follow from each other one must stay: the first.
        out: list[Constraint] = []
        for c in dropped:
            keepers = [o for o in self.sums if o is not c and not any(o is gone for gone in out)]
            if any(self._follows(c, other) for other in keepers):
                out.append(c)
        return tuple(out)

    def _follows(self, one: Constraint, other: Constraint) -> bool:
        if isinstance(other, Cuboid):
            if isinstance(one, Total):
                return True
            if isinstance(one, Cuboid):
                return set(one.names) <= set(other.names)
            if isinstance(one, Cells):
                return set(one.of) <= set(other.names)
        if isinstance(other, Total) and (
            isinstance(one, Total) or (isinstance(one, Cuboid) and not one.names)
        ):
            return True
        if isinstance(one, Cells) and isinstance(other, Cells) and one.of == other.of:
            return set(one.cells) <= set(other.cells)
        if isinstance(one, Degrees) and isinstance(other, Degrees) and one.side == other.side:
            return set(one.positions(self.domain).tolist()) <= set(other.positions(self.domain).tolist())
        if isinstance(one, Total) and isinstance(other, Degrees):
            return other.n_rows(self.domain) == self._order()
        return type(one) is type(other) and one == other

    def _order(self) -> int:
        return self.domain.order if isinstance(self.domain, Network) else -1

    @cached_property
    def needed(self) -> tuple[Constraint, ...]:
        """Constraints left after dropping the redundant ones and the structural zeros."""
        return tuple(c for c in self.sums if not any(c is gone for gone in self.redundant))

    @property
    def has_values(self) -> bool:
        """Whether any published value is known to the engine."""
        return any(c.values(self.domain) is not None for c in self.sums)

    @cached_property
    def _needed_rows(self) -> tuple[Any, list[int | None]]:
        """Rows and values of the needed facts, linearly dependent rows dropped where that is cheap to decide."""
        matrix, values = self._rows(self.needed)
        if matrix.shape[0] < 2 or matrix.shape[0] * matrix.shape[1] > EXACT_ENTRIES:
            return read_only(matrix), values
        keep = independent_rows(matrix.toarray())
        return read_only(matrix[keep]), [values[row] for row in keep]

    def matrix(self) -> Any:
        """Return the needed rows as a sparse integer matrix (rows x cells), redundant rows dropped.

        Raises
        ------
        RefusedError
            When the domain is too large to list its cells.
        """
        return self._needed_rows[0]

    def values(self) -> list[int | None]:
        """Return the published value of each row of :meth:`matrix`, None where it was not given."""
        return self._needed_rows[1]

    def stacked(self) -> tuple[Any, list[int | None]]:
        """Return all rows and values as they are stated, repeated ones included."""
        return self._stacked(self.sums)

    def full_rows(self) -> tuple[Any, list[int | None]]:
        """Return all rows and values, redundant ones included (a dropped fact may still carry values)."""
        return self._rows(self.sums)

    def _stacked(self, constraints: Sequence[Constraint]) -> tuple[Any, list[int | None]]:
        from scipy import sparse

        if self.domain.size > MATRIX_CELLS:
            raise RefusedError(
                f"the domain has {self.domain.size:,} cells, and these public facts have no structure that could be "
                f"used instead of listing them (at most {MATRIX_CELLS:,}). Coarsen an attribute or state fewer facts.",
                code="system.size",
                size=self.domain.size,
            )
        blocks: list[Any] = []
        values: list[int | None] = []
        for constraint in constraints:
            rows = constraint.rows(self.domain)
            blocks.append(
                sparse.csr_matrix(
                    (rows.coefficient, (rows.row, rows.cell)),
                    shape=(rows.height, self.domain.size),
                    dtype=np.int64,
                )
            )
            known = constraint.values(self.domain)
            values.extend(known if known is not None else [None] * rows.height)
        if not blocks:
            return sparse.csr_matrix(np.zeros((0, self.domain.size), dtype=np.int64)), []
        return sparse.vstack(blocks, format="csr"), values

    def _rows(self, constraints: Sequence[Constraint]) -> tuple[Any, list[int | None]]:
        stacked, values = self._stacked(constraints)
        keep: list[int] = []
        seen: dict[bytes, int] = {}
        for row in range(stacked.shape[0]):
            part = slice(stacked.indptr[row], stacked.indptr[row + 1])
            order = np.argsort(stacked.indices[part], kind="stable")
            key = stacked.indices[part][order].tobytes() + b"|" + stacked.data[part][order].tobytes()
            first = seen.setdefault(key, row)
            if first != row and values[first] is None:
                values[first] = values[row]
            # A repeated row with another value stays, so that the contradiction is seen.
            if first == row or values[row] not in (None, values[first]):
                keep.append(row)
        return stacked[keep], [values[row] for row in keep]

    def matrix_on(self, cells: Any) -> Any:
        """Return the needed rows over some cells only, as a dense integer matrix without empty rows.

        The work is proportional to the number of cells given, whatever the size of the domain.
        """
        at = np.asarray(cells, dtype=np.int64)
        blocks = []
        for constraint in self.needed:
            rows = constraint.rows_on(self.domain, at)
            used, row = np.unique(rows.row, return_inverse=True)
            block = np.zeros((len(used), len(at)), dtype=np.int64)
            block[row, rows.cell] = rows.coefficient
            blocks.append(block)
        return np.concatenate(blocks) if blocks else np.zeros((0, len(at)), dtype=np.int64)

    def check(self, table: Any) -> None:
        """Raise when a table does not have the published values or fills a structural zero."""
        for constraint in self.constraints:
            constraint.check(self.domain, table)

    def check_sparse(self, cells: Ints, amounts: Ints) -> None:
        """Do the same as :meth:`check` for counts that are given by their non-empty cells only."""
        for constraint in self.constraints:
            constraint.check_sparse(self.domain, cells, amounts)

    # Contradictions -----------------------------------------------------------------------------------------------

    def _check_margins(self) -> None:
        """Cuboids must agree on the margins they share."""
        valued = [
            c for c in self.sums if isinstance(c, (Cuboid, Total)) and c.values(self.domain) is not None
        ]
        if not isinstance(self.domain, Domain):
            return
        tables = []
        for c in valued:
            axes = c.axes(self.domain) if isinstance(c, Cuboid) else ()
            shape = [self.domain.shape[axis] for axis in axes]
            tables.append((c, axes, np.array(c.values(self.domain), dtype=object).reshape(shape)))
        for i, (one, axes, table) in enumerate(tables):
            for other, other_axes, other_table in tables[:i]:
                shared = set(axes) & set(other_axes)
                left = table.sum(axis=tuple(k for k, axis in enumerate(axes) if axis not in shared))
                right = other_table.sum(
                    axis=tuple(k for k, axis in enumerate(other_axes) if axis not in shared)
                )
                if not np.array_equal(np.asarray(left), np.asarray(right)):
                    self._contradiction([other, one], "their common margin differs")

    def _check_degrees(self) -> None:
        """Degree sequences must be those of a graph, as far as a formula tells."""
        if not isinstance(self.domain, Network):
            return
        for c in self.sums:
            if not isinstance(c, Degrees) or (degrees := c.values(self.domain)) is None:
                continue
            v = self.domain.order
            most = v if self.domain.directed and self.domain.loops else v - 1 + 2 * int(self.domain.loops)
            if not self.domain.multiple and max(degrees) > most:
                name = c.row_name(self.domain, degrees.index(max(degrees)))
                self._contradiction([c], f"the {name}, {max(degrees)}, does not fit {v} nodes")
            if len(degrees) == v and not self.domain.directed:
                if sum(degrees) % 2:
                    self._contradiction([c], "the degrees have an odd sum")
                if not self.domain.multiple and not self.domain.loops and not graphical(degrees):
                    self._contradiction([c], "no simple graph has these degrees")
        sides = {
            c.side: sum(c.values(self.domain) or ())
            for c in self.sums
            if isinstance(c, Degrees)
            and c.values(self.domain) is not None
            and c.n_rows(self.domain) == self.domain.order
        }
        if "in" in sides and "out" in sides and sides["in"] != sides["out"]:
            both = [c for c in self.sums if isinstance(c, Degrees)]
            self._contradiction(both, "in-degrees and out-degrees have different sums")
        if len(sides) == 2 and not self.domain.multiple:
            both = [
                c for c in self.sums if isinstance(c, Degrees) and c.n_rows(self.domain) == self.domain.order
            ]
            sums = {}
            for c in both:
                if (degrees := c.values(self.domain)) is not None:
                    sums[c.side] = np.zeros(self.domain.order, dtype=np.int64)
                    sums[c.side][c.positions(self.domain)] = degrees
            if not digraphical(sums["out"], sums["in"], loops=self.domain.loops):
                self._contradiction(both, "no directed graph has these degrees")

    def _check_program(self) -> None:
        """Some table of whole numbers must have the published values (decided on domains of moderate size)."""
        valued = [c for c in self.sums if c.values(self.domain) is not None]
        if not valued or self.domain.size > PROGRAM_CELLS:
            return
        if self._feasible(valued):
            return
        # Deletion filter: what remains is a set of facts none of which can be left out.
        core = list(valued)
        for c in list(core):
            rest = [o for o in core if o is not c]
            if not self._feasible(rest):
                core = rest
        self._contradiction(core, "no table of counts has all these values")

    def _feasible(self, constraints: Sequence[Constraint]) -> bool:
        matrix, values = self._rows(constraints)
        known = [row for row, value in enumerate(values) if value is not None]
        if not known:
            return True
        if matrix[known].nnz and int(matrix[known].data.min()) < 0:
            # With negative coefficients nothing bounds a cell, so that no search in a box can show a contradiction.
            return True
        largest = sum(abs(int(values[row] or 0)) for row in known) + 1
        top = self.domain.capacity if self.domain.capacity is not None else largest
        empty = set(self.zeros.tolist())
        cells = self.domain.size
        program = Program([0] * cells, [0 if cell in empty else top for cell in range(cells)])
        for row in known:
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            value = int(values[row] or 0)
            program.add(zip(matrix.indices[part].tolist(), matrix.data[part].tolist()), value, value)
        # An undecided program is no contradiction; the data are checked against the values before any release.
        return program.find(Effort(FEASIBLE)).status != "none"

    def _contradiction(self, constraints: Sequence[Constraint], why: str) -> None:
        named = "; ".join(describe(c, self.domain) for c in constraints)
        alone = len(constraints) == 1
        raise ConstraintError(
            f"this public fact cannot hold: {named} ({why}). Correct or drop it."
            if alone
            else f"these public facts contradict each other: {named} ({why}). Correct or drop one of them.",
            code="constraint.contradiction",
            constraints=tuple(constraints),
        )


def describe(constraint: Constraint, domain: AnyDomain) -> str:
    """Name a public fact in a few words, with its values when they are short.

    Examples
    --------
    >>> describe(Cuboid("a", equals=[1, 2]), Domain({"a": 2}))
    'cuboid a = [1, 2]'
    """
    name, values = name_of(constraint, domain), constraint.values(domain)
    if values is None or isinstance(constraint, StructuralZero):
        return name
    return f"{name} = {values[0]}" if len(values) == 1 else f"{name} = {_short(list(values))}"


def name_of(constraint: Constraint, domain: AnyDomain) -> str:
    """Name a public fact in a few words, without its values.

    Examples
    --------
    >>> name_of(Cuboid("a", equals=[1, 2]), Domain({"a": 2}))
    'cuboid a'
    """
    if isinstance(constraint, Total):
        return "total"
    if isinstance(constraint, Cuboid):
        return "cuboid " + " x ".join(constraint.names)
    if isinstance(constraint, Cells):
        return f"{len(constraint.cells)} cells of " + " x ".join(constraint.of)
    if isinstance(constraint, Sums):
        return f"{constraint.n_rows(domain):,} sums of cells"
    if isinstance(constraint, StructuralZero):
        return f"{constraint.n_rows(domain)} structural zeros"
    if isinstance(constraint, Degrees):
        kind = {"both": "degrees", "in": "in-degrees", "out": "out-degrees"}[constraint.side]
        some = constraint.n_rows(domain)
        return f"{kind} of {'all' if some == getattr(domain, 'order', -1) else some} nodes"
    return constraint.row_name(domain, 0)


def _short(values: list[int]) -> str:
    return str(values) if len(values) <= 12 else str(values[:10])[:-1] + ", ...]"
