"""Exact linear algebra over the integers: reading matrices, row spaces, rank, integer null space, equal columns, residues.

Owns every elimination of the package but those of the independent check. Numbers that may grow are Python integers, so that
nothing overflows; what is found modulo a prime is confirmed over the integers before anybody relies on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError

__all__ = [
    "PRIME",
    "ColumnClasses",
    "RowSpace",
    "as_integer_matrix",
    "column_classes",
    "combined",
    "elimination",
    "independent_rows",
    "kernel_basis",
    "modular_echelon",
    "pivoted_kernel",
    "primitive",
    "rank",
    "read_integers",
    "read_only",
    "small_fraction",
]

Ints = npt.NDArray[np.int64]
Objects = npt.NDArray[np.object_]

PRIME = (1 << 31) - 1
"""Residues modulo it have products that fit into 64 bits."""
SMALL = 1 << 30
"""Numbers below it are eliminated in 64 bits, larger ones with Python integers."""


def as_integer_matrix(matrix: npt.ArrayLike, columns: int | None = None) -> Objects:
    """Return the matrix as a two-dimensional array of Python integers.

    Parameters
    ----------
    matrix
        Integers, m rows and n columns; m may be 0 when ``columns`` or a shape ``(0, n)`` says what n is.
    columns
        The number of columns that is expected, if it is known.

    Returns
    -------
    numpy.ndarray
        Dtype object, every entry an ``int``.

    Raises
    ------
    InputError
        If the entries are not integers, or the shape is not that of a matrix.

    Examples
    --------
    >>> as_integer_matrix([[1, 1], [0, 2]]).tolist()
    [[1, 1], [0, 2]]
    """
    return read_integers(matrix, columns).astype(object)


def read_integers(
    matrix: npt.ArrayLike, columns: int | None = None, *, name: str = "matrix", code: str | None = None
) -> npt.NDArray[Any]:
    """Read an integer matrix as somebody wrote it, and refuse anything that is not one.

    Parameters
    ----------
    matrix
        Lists or an array of integers; floats with whole values that they hold exactly count as integers.
    columns
        The number of columns that is expected, if it is known.
    name
        What the matrix is called in messages.
    code
        Code of the error; by default one for the shape and one for the entries.

    Returns
    -------
    numpy.ndarray
        Arrays of machine integers as they are, everything else as Python integers of dtype object.

    Raises
    ------
    InputError
        If the entries are not integers, or the shape is not that of a matrix.

    Examples
    --------
    >>> read_integers([[1.0, 2**70]]).tolist()
    [[1, 1180591620717411303424]]
    """
    # Lists are read entry by entry: numpy would turn integers of more than 63 bits into floats.
    array = matrix if isinstance(matrix, np.ndarray) else np.array(matrix, dtype=object)
    if array.size == 0 and array.ndim == 1 and columns is not None:
        array = array.reshape(0, columns)
    if array.ndim != 2 or (columns is not None and array.shape[1] != columns):
        raise InputError(
            f"{name} of shape {array.shape}: expected m x {'n' if columns is None else columns}. "
            "Give one row for each constraint and one column for each cell.",
            code=code or "moves.matrix-shape",
            shape=array.shape,
        )
    if array.dtype.kind in "iu":
        return array
    out = np.empty(array.shape, dtype=object)
    flat = out.reshape(-1)
    for position, entry in enumerate(array.reshape(-1).tolist()):
        value = entry.item() if isinstance(entry, np.generic) else entry
        if type(value) is not int:
            exact = isinstance(value, (bool, float)) and value == value and abs(value) < 2**53
            if not exact or int(value) != value:
                raise InputError(
                    f"{name} entry {value!r}: expected an integer. Multiply the row by its denominators.",
                    code=code or "moves.matrix-entry",
                    value=value,
                )
            value = int(value)
        flat[position] = value
    return out


def read_only(matrix: Any) -> Any:
    """Forbid writing into an array, or into the arrays of a sparse matrix, and return it.

    Sensitivities, fingerprints and certificates of a policy or a query are computed once and kept: the numbers that they
    were computed from must stay as they are.

    Examples
    --------
    >>> read_only(np.arange(3))[0] = 5
    Traceback (most recent call last):
    ValueError: assignment destination is read-only
    """
    parts = [matrix] if isinstance(matrix, np.ndarray) else [matrix.data, matrix.indices, matrix.indptr]
    for part in parts:
        part.setflags(write=False)
    return matrix


def elimination(rows: int, columns: int) -> int:
    """Work of bringing a matrix of this shape to echelon form, in units of :class:`~policygraph.effort.Effort`.

    Examples
    --------
    >>> elimination(2, 100)
    35
    """
    # about thirty operations on Python integers a microsecond, and some for each row
    return 5 * rows + 5 + min(rows, columns) * rows * columns // 20


def _echelon(rows: Objects, pivots: Sequence[int]) -> list[tuple[int, int]]:
    """Bring ``rows`` to echelon form in place by unimodular row steps; return (row, column) of each pivot."""
    done = 0
    where: list[tuple[int, int]] = []
    for column in pivots:
        while True:
            live = [i for i in range(done, rows.shape[0]) if rows[i, column] != 0]
            if not live:
                break
            best = min(live, key=lambda i: (abs(rows[i, column]), np.count_nonzero(rows[i])))
            if best != done:
                rows[[done, best]] = rows[[best, done]]
            if rows[done, column] < 0:
                rows[done] = -rows[done]
            rest = [i for i in range(done + 1, rows.shape[0]) if rows[i, column] != 0]
            if not rest:
                where.append((done, column))
                done += 1
                break
            for i in rest:
                rows[i] = rows[i] - (rows[i, column] // rows[done, column]) * rows[done]
        if done == rows.shape[0]:
            break
    return where


def rank(matrix: npt.ArrayLike) -> int:
    """Return the rank over the rationals, exactly.

    Parameters
    ----------
    matrix
        Integer matrix.

    Returns
    -------
    int
        The rank.

    Examples
    --------
    >>> rank([[1, 1, 0], [0, 1, 1], [1, 2, 1]])
    2
    """
    return len(independent_rows(matrix))


def independent_rows(matrix: npt.ArrayLike) -> list[int]:
    """Return the indices of the first rows that span the row space.

    Parameters
    ----------
    matrix
        Integer matrix.

    Returns
    -------
    list of int
        Row i is listed if it is no rational combination of the rows before it.

    Examples
    --------
    >>> independent_rows([[1, 1], [2, 2], [0, 1]])
    [0, 2]
    """
    space = RowSpace()
    return [index for index, row in enumerate(as_integer_matrix(matrix)) if space.add(row)]


class RowSpace:
    """The rational span of integer rows, kept in echelon form.

    Examples
    --------
    >>> space = RowSpace([[1, 1, 0], [0, 1, 1]])
    >>> [1, 2, 1] in space, [1, 0, 0] in space
    (True, False)
    """

    def __init__(self, rows: Iterable[npt.ArrayLike] = ()) -> None:
        self._echelon: list[tuple[int, npt.NDArray[Any]]] = []
        for row in rows:
            self.add(row)

    def add(self, row: npt.ArrayLike) -> bool:
        """Take a row in, and say whether it was no combination of those before."""
        rest = self._rest(row)
        lead = np.flatnonzero(rest)
        if len(lead):
            self._echelon.append((int(lead[0]), rest))
        return bool(len(lead))

    def __contains__(self, row: npt.ArrayLike) -> bool:
        return not np.any(self._rest(row))

    def _rest(self, row: npt.ArrayLike) -> npt.NDArray[Any]:
        """What is left of a multiple of a row after elimination."""
        rest = primitive(np.array(row, dtype=object))
        if max(map(abs, rest.tolist()), default=0) < SMALL:
            rest = rest.astype(np.int64)
        for place, base in self._echelon:
            if not rest[place]:
                continue
            if max(int(abs(rest).max()), int(abs(base).max())) >= SMALL:
                # two products of numbers below 2^30 fit into 64 bits; others are taken with Python integers
                rest, base = rest.astype(object), base.astype(object)
            rest = primitive(rest * base[place] - base * rest[place])
        return rest


def primitive(row: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Divide a row by the greatest common divisor of its entries.

    Examples
    --------
    >>> primitive(np.array([4, -6])).tolist()
    [2, -3]
    """
    divisor = int(np.gcd.reduce(row)) if row.size else 0
    return row // divisor if divisor > 1 else row


def modular_echelon(matrix: npt.NDArray[Any], *beside: Ints) -> tuple[Ints, list[int], list[Ints]]:
    """Reduced echelon form modulo ``PRIME``.

    Parameters
    ----------
    matrix
        Integer matrix.
    beside
        Matrices of as many rows, on which the same row steps are done.

    Returns
    -------
    echelon
        The reduced matrix, all its rows; pivots are 1, and other entries of their columns 0.
    pivots
        Column of the pivot of each of the first rows.
    beside
        The other matrices after the same steps.

    Examples
    --------
    >>> modular_echelon(np.array([[2, 2], [1, 1]]), np.eye(2, dtype=np.int64))[1]
    [0]
    """
    tables = [np.asarray(table % PRIME, dtype=np.int64) for table in (matrix, *beside)]
    rest = tables[0]
    pivots: list[int] = []
    for column in range(rest.shape[1]):
        top = len(pivots)
        if top == rest.shape[0]:
            break
        lead = np.flatnonzero(rest[top:, column])
        if not len(lead):
            continue
        at = top + int(lead[0])
        inverse = pow(int(rest[at, column]), -1, PRIME)
        factor = rest[:, column].copy()
        factor[at] = factor[top]
        factor[top] = 0
        used = np.flatnonzero(factor)
        for table in tables:
            table[[top, at]] = table[[at, top]]
            table[top] = table[top] * inverse % PRIME
            table[used] = (table[used] - factor[used, None] * table[top]) % PRIME
        pivots.append(column)
    return rest, pivots, tables[1:]


def small_fraction(residue: int) -> Fraction | None:
    """The fraction with small numerator and denominator that is a residue modulo ``PRIME``, if there is one.

    Examples
    --------
    >>> small_fraction(3), small_fraction(pow(2, -1, PRIME)), small_fraction(PRIME // 5)
    (Fraction(3, 1), Fraction(1, 2), Fraction(-2, 5))
    """
    most = isqrt(PRIME // 2)
    high, low, last, now = PRIME, residue, 0, 1
    while low > most:
        times = high // low
        high, low, last, now = low, high - times * low, now, last - times * now
    return Fraction(low, now) if 0 < abs(now) <= most else None


def combined(matrix: npt.ArrayLike, weights: Sequence[Fraction]) -> tuple[list[int], int]:
    """The combination of the rows of a matrix with fractions as weights, as integers over one denominator.

    Examples
    --------
    >>> combined([[1, 1], [0, 2]], [Fraction(1, 2), Fraction(1, 4)])
    ([2, 4], 4)
    """
    bottom = lcm(*(weight.denominator for weight in weights))
    rows = as_integer_matrix(matrix)
    total = [0] * rows.shape[1]
    for row, weight in zip(rows.tolist(), weights, strict=True):
        if weight:
            times = int(weight * bottom)
            total = [a + times * b for a, b in zip(total, row, strict=True)]
    return total, bottom


def kernel_basis(matrix: npt.ArrayLike) -> Objects:
    """Return a basis of the integer vectors g with ``matrix @ g = 0``.

    Parameters
    ----------
    matrix
        Integer matrix, m x n.

    Returns
    -------
    numpy.ndarray
        One basis vector per row, dtype object (Python integers); shape (n - rank, n).

    Examples
    --------
    >>> kernel_basis([[1, 1, 2]]).tolist()
    [[-1, 1, 0], [-2, 0, 1]]

    Notes
    -----
    The rows of ``[A^T | I]`` are transformed by unimodular row steps until the left part is in echelon form. The
    transformation on the right is unimodular, so its rows beside the zero rows on the left are a basis of *all*
    integer solutions, not only of a sublattice.
    """
    rows = as_integer_matrix(matrix)
    rows = rows[independent_rows(rows)]
    m, n = rows.shape
    work = np.zeros((n, m + n), dtype=object)
    work[:, :m] = rows.T
    for i in range(n):
        work[i, m + i] = 1
    done = len(_echelon(work, range(m)))
    basis: Objects = work[done:, m:].copy()
    return basis


def pivoted_kernel(matrix: npt.ArrayLike) -> tuple[Objects, list[int]]:
    """Return a kernel basis that is triangular on some columns, and these columns.

    Parameters
    ----------
    matrix
        Integer matrix, m x n.

    Returns
    -------
    basis : numpy.ndarray
        Kernel basis, d rows; row i is zero on the pivot columns of the rows before it, and its own pivot is positive.
    pivots : list of int
        The d pivot columns. Columns with pivot 1 are preferred; such a row is zero on all other pivot columns too.

    Examples
    --------
    >>> basis, pivots = pivoted_kernel([[1, 1, 1]])
    >>> basis[:, pivots].tolist()
    [[1, 0], [0, 1]]
    """
    rows = as_integer_matrix(matrix)
    unit = _unit_kernel(rows)
    if unit is not None:
        return unit
    basis = kernel_basis(rows)
    d, n = basis.shape
    pivots: list[int] = []
    for step in range(d):
        free = [c for c in range(n) if c not in pivots and np.any(basis[step:, c] != 0)]
        column = min(
            free, key=lambda c: (int(np.gcd.reduce(basis[step:, c])), int(np.count_nonzero(basis[:, c])))
        )
        _echelon(basis[step:], [column])
        pivots.append(column)
        for i in range(step):
            quotient = basis[i, column] // basis[step, column]
            if quotient:
                basis[i] = basis[i] - quotient * basis[step]
    return basis, pivots


def _unit_kernel(rows: Objects) -> tuple[Objects, list[int]] | None:
    """Return a kernel basis that is the identity on its pivot columns, or None when pivots 1 do not suffice.

    The rows are brought to the form [identity | M] on some order of the columns; the kernel is then [-M^T | identity].
    Dividing a row by a common factor of its entries keeps the kernel.
    """
    work = rows[independent_rows(rows)].copy()
    r, n = work.shape
    basic: list[int] = []
    open_rows = list(range(r))
    order: list[int] = []
    while open_rows:
        for i in open_rows:
            work[i] = primitive(work[i])
        units = [(np.count_nonzero(work[i]), i) for i in open_rows if np.any(np.abs(work[i]) == 1)]
        if not units:
            return None
        _, row = min(units)
        candidates = np.flatnonzero(np.abs(work[row]) == 1)
        column = int(min(candidates, key=lambda c: (-np.count_nonzero(work[:, c]), int(c))))
        work[row] = work[row] * work[row, column]
        for i in range(r):
            if i != row and work[i, column] != 0:
                work[i] = work[i] - work[i, column] * work[row]
        basic.append(column)
        order.append(row)
        open_rows.remove(row)
    free = [c for c in range(n) if c not in set(basic)]
    basis = np.zeros((len(free), n), dtype=object)
    for i, c in enumerate(free):
        basis[i, c] = 1
        basis[i, basic] = -work[order, c]
    return basis, free


@dataclass(frozen=True)
class ColumnClasses:
    """Cells whose columns agree up to sign, gathered so that each class is one column.

    Parameters
    ----------
    zero
        Cells with a zero column.
    members
        For each class, its cells.
    signs
        For each class, +1 or -1 for each of its cells: the sign of its column against the class column.
    matrix
        One column for each class.
    """

    zero: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]
    signs: tuple[tuple[int, ...], ...]
    matrix: Objects


def column_classes(matrix: npt.ArrayLike) -> ColumnClasses:
    """Gather cells with equal or opposite columns.

    Parameters
    ----------
    matrix
        Integer matrix.

    Returns
    -------
    ColumnClasses
        The classes in order of their first cells.

    Examples
    --------
    >>> column_classes([[1, 0, 1, -1]]).members
    ((0, 2, 3),)
    """
    rows = as_integer_matrix(matrix)
    zero: list[int] = []
    found: dict[tuple[Any, ...], int] = {}
    members: list[list[int]] = []
    signs: list[list[int]] = []
    for cell in range(rows.shape[1]):
        column = tuple(rows[:, cell].tolist())
        first = next((value for value in column if value), 0)
        if not first:
            zero.append(cell)
            continue
        sign = 1 if first > 0 else -1
        key = tuple(sign * value for value in column)
        if key not in found:
            found[key] = len(members)
            members.append([])
            signs.append([])
        members[found[key]].append(cell)
        signs[found[key]].append(sign)
    reduced = np.empty((rows.shape[0], len(members)), dtype=object)
    for key, index in found.items():
        reduced[:, index] = key
    return ColumnClasses(
        zero=tuple(zero),
        members=tuple(tuple(cells) for cells in members),
        signs=tuple(tuple(values) for values in signs),
        matrix=reduced,
    )
