"""The space that public facts leave free, as a lattice with coordinates. Owns :class:`FreeLattice`, and :func:`measured`, which searches coordinates for it.

Data-free: it looks at the public facts and the query only. Everything is done with Python integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND
from policygraph.errors import RefusedError
from policygraph.linalg import Objects, kernel_basis, modular_echelon
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Ints, Norm, Query
from policygraph.moves.graver.basis import graver_basis
from policygraph.moves.values.presolve import presolve_values
from policygraph.sensitivity.proofs import current
from policygraph.ties import clearly_less, order

CELLS = 2_000
"""Most cells for which a basis is computed."""
ANSWERS = 5_000
"""Most answers of a query whose noise is confined."""
SHORTENED = 100
"""Most columns that are shortened pair by pair."""


@dataclass(frozen=True)
class FreeLattice:
    """What the public facts leave free of the answers to a query.

    Attributes
    ----------
    basis
        One row for each answer, one column for each free coordinate: two tables that fit the same facts have
        answers that differ by a sum of columns with whole coefficients, and only by those.
    coordinates
        One row for each free coordinate, one column for each cell of the domain: the coefficients of such a difference
        of tables.
    """

    basis: Objects
    coordinates: Objects

    @property
    def rank(self) -> int:
        """Number of free coordinates."""
        return int(self.basis.shape[1])

    def changed(self, target: int, other: int, sign: int) -> FreeLattice:
        """Add plus or minus one column of the basis to another, which leaves the lattice as it is."""
        basis, coordinates = self.basis.copy(), self.coordinates.copy()
        basis[:, target] = basis[:, target] + sign * basis[:, other]
        coordinates[other] = coordinates[other] - sign * coordinates[target]
        return FreeLattice(basis, coordinates)


def open_cells(policy: Policy) -> tuple[Ints, Ints]:
    """Cells that can differ between two tables with the public facts, and the rows of the facts over them.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 2})
    >>> cells, rows = open_cells(pg.Policy(domain, constraints=[pg.Cuboid("a", equals=[0, 3])]))
    >>> cells.tolist(), rows.tolist()
    ([2, 3], [[1, 1]])

    Notes
    -----
    Left out are structural zeros and cells that the published values determine: they are the same in every table that
    fits, so that no two such tables differ there.
    """
    system = policy.system
    keep = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), system.zeros)
    rows, values = system.full_rows()
    matrix = np.asarray(rows[:, keep].toarray(), dtype=np.int64)
    if system.has_values:
        kept = list(presolve_values(matrix, values, policy.domain.capacity).kept)
        keep, matrix = keep[kept], matrix[:, kept]
    return keep, matrix[np.any(matrix, axis=1)]


def free_lattice(query: Query, policy: Policy, *, stepwise: bool = False) -> FreeLattice:
    """Give the lattice in which the answers to a query can differ while the public facts stay as they are.

    Parameters
    ----------
    query, policy
        What is asked, and whose public facts stay.
    stepwise
        Under public margins, let the basis compare each value with the one before instead of the first one: no answer
        then has a large row, which keeps roundings small.

    Raises
    ------
    RefusedError
        When the domain or the query is too large for exact linear algebra.

    Examples
    --------
    A 2 x 2 table with both margins public has one free number.

    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 2})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    >>> free = free_lattice(pg.queries.identity(domain), policy)
    >>> free.basis.T.tolist(), free.coordinates.tolist()
    ([[1, -1, -1, 1]], [[0, 0, 0, 1]])
    """
    size = policy.domain.size
    if size > CELLS or query.height > ANSWERS:
        raise RefusedError(
            f"{size:,} cells and {query.height:,} answers: noise inside the space that the public facts leave free is "
            f"computed for at most {CELLS:,} cells and {ANSWERS:,} answers. Use Laplace or Gaussian, or coarsen.",
            code="kernel.size",
            size=size,
        )
    cells, kernel, inverse = kernel_pair(policy, stepwise=stepwise)
    asked = np.asarray(query.columns(cells).toarray(), dtype=object)
    images = _product(asked, kernel)
    basis, share = _image(images)
    coordinates = np.zeros((basis.shape[1], size), dtype=object)
    coordinates[:, cells] = _product(share, inverse)
    return _shortened(FreeLattice(basis, coordinates))


def kernel_pair(policy: Policy, *, stepwise: bool = False) -> tuple[Ints, Objects, Objects]:
    """Open cells, a basis of the integer kernel of the facts over them (as columns), and an integer left inverse."""
    cells, rows = open_cells(policy)
    corner = _corner(policy, stepwise) if len(cells) == policy.domain.size else None
    if corner is not None:
        return (cells, *corner)
    if not len(cells):
        nothing = np.zeros((0, 0), dtype=object)
        return cells, nothing, nothing
    basis = kernel_basis(rows.reshape(-1, len(cells))).T
    return cells, basis, left_inverse(basis)


def _corner(policy: Policy, stepwise: bool) -> tuple[Objects, Objects] | None:
    """Basis of a table under public margins with the first value of each attribute as reference.

    A block S is a set of attributes; v gives each of them a value other than the first. The vector of (S, v) is the
    product of (e_v - e_0) over S and e_0 elsewhere; its coordinate is the count of records with the values v on S.
    Stepwise: e_v - e_(v-1) instead, and the count of records with values v or later.
    """
    domain, facts = policy.domain, policy.system.needed
    if not isinstance(domain, Domain) or not all(isinstance(f, (Cuboid, Total)) for f in facts):
        return None
    known = [frozenset(f.axes(domain)) if isinstance(f, Cuboid) else frozenset[int]() for f in facts]
    columns, rows = [], []
    for codes in product(*(range(n) for n in domain.shape)):
        block = frozenset(axis for axis, code in enumerate(codes) if code)
        if any(block <= names for names in known):
            continue
        vector: Any = np.ones(1, dtype=object)
        count: Any = np.ones(1, dtype=object)
        for axis, n in enumerate(domain.shape):
            step, look = np.zeros(n, dtype=object), np.zeros(n, dtype=object)
            step[codes[axis]] += 1
            if axis in block:
                step[codes[axis] - 1 if stepwise else 0] -= 1
                look[codes[axis] : n if stepwise else codes[axis] + 1] = 1
            else:
                look[:] = 1
            vector, count = np.kron(vector, step), np.kron(count, look)
        columns.append(vector)
        rows.append(count)
    size = prod(domain.shape)
    if not columns:
        return np.zeros((size, 0), dtype=object), np.zeros((0, size), dtype=object)
    return np.array(columns, dtype=object).T, np.array(rows, dtype=object)


def _echelon(work: Objects, width: int) -> list[tuple[int, int]]:
    """Bring the first columns to echelon form in place by unimodular row steps; (row, column) of each pivot."""
    done, where = 0, []
    for column in range(width):
        while True:
            live = [i for i in range(done, work.shape[0]) if work[i, column]]
            if not live:
                break
            best = min(live, key=lambda i: abs(work[i, column]))
            work[[done, best]] = work[[best, done]]
            if work[done, column] < 0:
                work[done] = -work[done]
            rest = [i for i in range(done + 1, work.shape[0]) if work[i, column]]
            if not rest:
                where.append((done, column))
                done += 1
                break
            for i in rest:
                work[i] = work[i] - (work[i, column] // work[done, column]) * work[done]
    return where


def left_inverse(basis: Objects) -> Objects:
    """Integer matrix U with U @ basis = I, for columns that are a basis of all integer points of their span.

    Examples
    --------
    >>> B = np.array([[2], [3]], dtype=object)
    >>> U = left_inverse(B)
    >>> (U @ B).tolist()
    [[1]]

    Notes
    -----
    Unimodular row steps E bring the basis to an upper triangle H over zeros. The columns span a lattice that contains
    every integer point of its span, so H has diagonal 1, and U = H^-1 E[:d] has whole entries.
    """
    n, d = basis.shape
    work = np.zeros((n, d + n), dtype=object)
    work[:, :d] = basis
    work[np.arange(n), d + np.arange(n)] = 1
    pivots = _echelon(work, d)
    if len(pivots) != d or any(work[i, c] != 1 for i, c in pivots):
        raise RefusedError(
            "the columns are not a basis of all integer points of their span.", code="kernel.basis"
        )
    for at in range(d - 1, -1, -1):
        for i in range(at):
            if work[i, at]:
                work[i] = work[i] - work[i, at] * work[at]
    inverse: Objects = work[:d, d:]
    return inverse


def _image(images: Objects) -> tuple[Objects, Objects]:
    """Basis C of the lattice spanned by columns V, and whole T with V = C T."""
    d = images.shape[1]
    used = [j for j in range(d) if np.any(images[:, j])]
    work = images[:, used].T.copy()
    pivots = [] if _independent(work) else _echelon(work, work.shape[1])
    if len(pivots) in (0, len(used)):
        # Independent columns are a basis as they are, and their structure is worth keeping.
        share = np.zeros((len(used), d), dtype=object)
        share[np.arange(len(used)), used] = 1
        return images[:, used], share
    basis = work[: len(pivots)].T
    share = np.zeros((len(pivots), d), dtype=object)
    for i, row in pivots:
        rest = images[row] - basis[row, :i] @ share[:i]
        share[i] = rest // basis[row, i]
    return basis, share


def _product(left: Objects, right: Objects) -> Objects:
    """Exact product, in machine integers where they cannot wrap."""
    reach = max((abs(x) for x in left.ravel().tolist()), default=0) * max(left.shape[1], 1)
    reach *= max((abs(x) for x in right.ravel().tolist()), default=0)
    if reach < 1 << 62:
        small: Objects = (left.astype(np.int64) @ right.astype(np.int64)).astype(object)
        return small
    exact: Objects = left @ right
    return exact


def _independent(rows: Objects) -> bool:
    """Whether rows are independent modulo a prime, which implies that they are independent; quick."""
    return len(modular_echelon(rows)[1]) == len(rows)


def _shortened(free: FreeLattice) -> FreeLattice:
    """Shorten the columns pair by pair while that helps; the lattice stays the same."""
    if free.rank > SHORTENED:
        return free
    gram = free.basis.T @ free.basis
    for _ in range(20 * free.rank):
        twice = np.diag(gram)[None, :] - 2 * abs(gram)
        np.fill_diagonal(twice, 0)
        i, j = divmod(int(np.argmin(twice)), max(free.rank, 1))
        if twice[i, j] >= 0:
            break
        sign = -1 if gram[i, j] > 0 else 1
        free = free.changed(i, j, sign)
        gram[i] = gram[i] + sign * gram[j]
        gram[:, i] = gram[:, i] + sign * gram[:, j]
    return free


MOVES, LISTING = 20_000, 5 * SECOND
"""Most minimal moves, and most work to list them, for a search over bases."""
STEPS = 200
RANK = 60

Floats = npt.NDArray[np.float64]


def answer_factors(query: Query) -> list[Fraction]:
    """What each integer answer is multiplied by in the end."""
    return [query.unit / part.weight for part in query.parts for _ in range(part.height)]


def measured(free: FreeLattice, query: Query, policy: Policy, norm: Norm) -> FreeLattice:
    """Change the basis of a free lattice step by step while the expected squared error falls.

    Parameters
    ----------
    free
        Where to start.
    query, policy
        What is released and what must be hidden.
    norm
        ``"l1"`` or ``"l2"``: the norm of the loss.

    Returns
    -------
    FreeLattice
        The same lattice in coordinates that are no worse for the moves that could be listed.

    Notes
    -----
    With one noise distribution for all coordinates the total squared error is the square of the largest norm of a move's
    coordinates, times the sum of the squared entries of the basis (in the units of the answers), up to a factor that
    does not depend on the basis. Adding a column to another changes one column of the basis and one coordinate.
    """
    if policy.definition != "induced" or not 0 < free.rank <= RANK:
        return free
    moves = _listed(policy)
    if moves is None:
        return free
    factors = np.array([float(f) for f in answer_factors(query)])
    cells, listed = moves
    share = np.asarray(free.coordinates[:, cells], dtype=np.float64)
    coordinates = listed.astype(np.float64) @ share.T
    basis = np.asarray(free.basis, dtype=np.float64) * factors[:, None]
    now = _error(coordinates, basis, norm)
    for _ in range(STEPS):
        best, step = _best_step(coordinates, basis, norm)
        if best >= now * (1 - 1e-9):
            break
        i, j, sign = step
        free = free.changed(i, j, sign)
        basis[:, i] += sign * basis[:, j]
        coordinates[:, j] -= sign * coordinates[:, i]
        now = best
    return free


def _listed(policy: Policy) -> tuple[Ints, Any] | None:
    cells, rows = open_cells(policy)
    try:
        found = graver_basis(
            rows.reshape(-1, len(cells)),
            capacity=policy.domain.capacity,
            max_moves=MOVES,
            effort=current().within(LISTING),
        )
    except RefusedError:
        return None
    if policy.strength == "markov":
        found = found[(np.count_nonzero(found, axis=1) <= 4) & (np.abs(found).max(axis=1, initial=0) <= 1)]
    cap = policy.at_most_records
    if cap is not None:
        sizes = np.maximum(np.maximum(found, 0).sum(axis=1), np.maximum(-found, 0).sum(axis=1))
        found = found[sizes <= cap]
    return (cells, found) if len(found) else None


def _error(coordinates: Floats, basis: Floats, norm: Norm) -> float:
    power = np.abs(coordinates) if norm == "l1" else coordinates**2
    largest = float(power.sum(axis=1).max())
    return (largest**2 if norm == "l1" else largest) * float((basis**2).sum())


def _best_step(coordinates: Floats, basis: Floats, norm: Norm) -> tuple[float, tuple[int, int, int]]:
    """The column addition with the smallest error after it."""
    power = np.abs(coordinates) if norm == "l1" else coordinates**2
    sizes, gram = power.sum(axis=1), basis.T @ basis
    whole = float(np.trace(gram))
    best, step = np.inf, (0, 0, 1)
    for i in range(basis.shape[1]):
        for sign in (1, -1):
            changed = coordinates - sign * coordinates[:, [i]]
            fresh = np.abs(changed) if norm == "l1" else changed**2
            longest = (sizes[:, None] - power + fresh).max(axis=0)
            spread = whole + np.diag(gram) + 2 * sign * gram[i]
            errors = (longest**2 if norm == "l1" else longest) * spread
            errors[i] = np.inf
            j = int(order(errors)[0])
            if clearly_less(errors[j], best):
                best, step = float(errors[j]), (i, j, sign)
    return best, step
