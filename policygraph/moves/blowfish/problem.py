"""A policy graph and exact public facts at matrix level: cells, classes, secret pairs, caps on records.

Owns :class:`BlowfishProblem`, the checked input of every ``blowfish`` function, :func:`dense_problem`, which writes a policy out in
this form, and :class:`BlowfishMove`, the records that change.

The vertices are the cells 0 .. k-1 and, when records may appear and vanish, bottom as vertex k. Bottom counts in
no constraint and has no cell in the histogram. Under a cap at most m records are added to the histogram and at most m removed. The
records behind such a change can be more than m: a record that leaves a cell and another that enters it do not show
(``docs/explanation/proofs/blowfish-constraints.md``, section 8).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.linalg import read_integers

if TYPE_CHECKING:
    from policygraph.model.policy import Policy

__all__ = [
    "BlowfishMove",
    "BlowfishProblem",
    "Transition",
    "Vector",
    "blowfish_problem",
    "capped_ceiling",
    "capped_changes",
    "dense_problem",
    "within",
]

Transition = tuple[int, int]
"""One record goes from the first vertex to the second."""

Vector = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BlowfishProblem:
    """Checked input: constraint columns, secret pairs and query weights of every vertex.

    Parameters
    ----------
    cells
        Number of cells k.
    columns
        Constraint column of every vertex.
    adjacency
        Secret pairs: symmetric, no loops.
    query
        Query column of every cell as (row, value) pairs, or None for the histogram itself.
    """

    cells: int
    columns: tuple[Vector, ...]
    adjacency: npt.NDArray[np.bool_]
    query: tuple[tuple[tuple[int, int], ...], ...] | None

    @property
    def vertices(self) -> int:
        """Number of cells, plus one with bottom."""
        return len(self.columns)

    @cached_property
    def class_columns(self) -> tuple[Vector, ...]:
        """The distinct columns; vertices with equal columns form a class."""
        return tuple(sorted(set(self.columns)))

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """The class of every vertex."""
        number = {column: c for c, column in enumerate(self.class_columns)}
        return tuple(number[column] for column in self.columns)

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """The vertices of every class."""
        lists: list[list[int]] = [[] for _ in self.class_columns]
        for vertex, label in enumerate(self.labels):
            lists[label].append(vertex)
        return tuple(tuple(members) for members in lists)

    @cached_property
    def reach(self) -> tuple[frozenset[int], ...]:
        """Classes that a record can be in after staying at a vertex or leaving it along a non-edge."""
        labels = np.array(self.labels, dtype=np.int64)
        answer = []
        for vertex in range(self.vertices):
            free = ~self.adjacency[vertex]
            answer.append(frozenset(int(c) for c in np.unique(labels[free])))
        return tuple(answer)

    def difference(self, move: Transition) -> Vector:
        """Change of the constraint values by one transition."""
        return tuple(b - a for a, b in zip(self.columns[move[0]], self.columns[move[1]]))

    def weight(self, vertex: int) -> tuple[tuple[int, int], ...]:
        """Answers that one record at this vertex adds to, with what it adds."""
        if vertex >= self.cells:
            return ()
        return ((vertex, 1),) if self.query is None else self.query[vertex]

    def answer_change(self, moves: Sequence[Transition]) -> dict[int, int]:
        """Change of the query answers by transitions; zeros are left out."""
        total: dict[int, int] = {}
        for x, y in moves:
            for vertex, sign in ((y, 1), (x, -1)):
                for row, value in self.weight(vertex):
                    total[row] = total.get(row, 0) + sign * value
        return {row: value for row, value in total.items() if value}

    def histogram_change(self, moves: Sequence[Transition]) -> Vector:
        """Change of the histogram by transitions."""
        total = [0] * self.cells
        for x, y in moves:
            if y < self.cells:
                total[y] += 1
            if x < self.cells:
                total[x] -= 1
        return tuple(total)

    def value(self, moves: Sequence[Transition], norm: str) -> int:
        """L1 norm, or squared L2 norm, of the change of the query answers."""
        answers = self.answer_change(moves).values()
        return sum(abs(v) for v in answers) if norm == "l1" else sum(v * v for v in answers)

    def codes(self, records: int) -> tuple[int, ...]:
        """Encode every class column as one integer, faithfully for sums of up to ``records`` differences."""
        answer = [0] * len(self.class_columns)
        for row in range(len(self.class_columns[0])):
            entries = [column[row] for column in self.class_columns]
            low, width = min(entries), max(entries) - min(entries)
            base = 2 * records * width + 1
            answer = [code * base + entry - low for code, entry in zip(answer, entries)]
        return tuple(answer)


def dense_problem(policy: Policy) -> tuple[Any, Any, Any]:
    """Constraint matrix, adjacency (bottom last, if there is one) and the cells they are over, zeros left out."""
    graph = policy.graph
    if graph is None:
        raise RefusedError("a policy without graph is not a Blowfish policy.", code="sensitivity.graph")
    keep = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
    matrix = policy.system.matrix()[:, keep].toarray()
    adjacency = graph.without_bottom().adjacent(keep[:, None], keep[None, :])
    if graph.bottom != "none":
        joined = np.isin(keep, np.fromiter(graph.bottom_cells, dtype=np.int64))
        adjacency = np.pad(adjacency, ((0, 1), (0, 1)))
        adjacency[-1, :-1] = adjacency[:-1, -1] = joined
    return matrix, adjacency, keep


def blowfish_problem(
    matrix: Any, adjacency: Any, *, bottom: bool = False, query: Any | None = None, norm: str = "l1"
) -> BlowfishProblem:
    """Check a constraint matrix, the secret pairs and a query, and put them together.

    Parameters
    ----------
    matrix
        Integer constraints, one row each, one column per cell; may have no rows.
    adjacency
        Symmetric boolean matrix of the secret pairs, without loops; with ``bottom`` its last row and column
        speak of bottom.
    bottom
        Whether records may appear and vanish.
    query
        Integer query matrix, one column per cell; None for the histogram.
    norm
        ``"l1"`` or ``"l2"``.

    Raises
    ------
    InputError
        If shapes do not fit, entries are not integers, the pairs are not symmetric or contain a loop.

    Examples
    --------
    >>> line = [[abs(i - j) == 1 for j in range(4)] for i in range(4)]
    >>> blowfish_problem([[1, 1, 0, 0]], line).members
    ((2, 3), (0, 1))
    """
    pairs = np.asarray(adjacency)
    if pairs.ndim != 2 or pairs.shape[0] != pairs.shape[1] or pairs.shape[0] <= int(bottom):
        raise InputError(
            f"adjacency of shape {pairs.shape}: expected a square matrix with a row for every cell"
            + (" and a last one for bottom." if bottom else "."),
            code="blowfish.adjacency",
        )
    if pairs.dtype != np.bool_:
        if not np.isin(pairs, (0, 1)).all():
            raise InputError("adjacency: expected only True and False.", code="blowfish.adjacency")
        pairs = pairs.astype(np.bool_)
    if not (pairs == pairs.T).all() or pairs.diagonal().any():
        raise InputError(
            "adjacency: expected a symmetric matrix without loops; a secret pair is two different values.",
            code="blowfish.adjacency",
        )
    if norm not in ("l1", "l2"):
        raise InputError(f"norm={norm!r}: expected 'l1' or 'l2'.", code="blowfish.norm", norm=norm)
    cells = pairs.shape[0] - int(bottom)
    facts = [row for row in _rows(matrix, cells, "matrix") if any(row)]
    columns = [tuple(row[cell] for row in facts) for cell in range(cells)]
    weights = None
    if query is not None:
        rows = _rows(query, cells, "query")
        weights = tuple(
            tuple((r, row[cell]) for r, row in enumerate(rows) if row[cell]) for cell in range(cells)
        )
    if bottom:
        columns.append((0,) * len(facts))
    return BlowfishProblem(cells, tuple(columns), pairs, weights)


def _rows(matrix: Any, cells: int, name: str) -> list[list[int]]:
    """Read an integer matrix with one column for every cell; it may have no rows."""
    if not len(matrix):
        return []
    rows: list[list[int]] = read_integers(matrix, cells, name=name, code=f"blowfish.{name}").tolist()
    return rows


@dataclass(frozen=True)
class BlowfishMove:
    """Records that change between two neighbours, and what the histogram shows of it.

    Parameters
    ----------
    transitions
        One pair (old vertex, new vertex) for every record that changes; all other records are absent.
    change
        New histogram minus old one, as (cell, difference) pairs without zeros.
    """

    transitions: tuple[tuple[Hashable, Hashable], ...]
    change: tuple[tuple[Hashable, int], ...]

    def dense(self, cells: int) -> tuple[int, ...]:
        """Write the change with one entry for every one of the cells 0 .. ``cells`` - 1.

        Examples
        --------
        >>> BlowfishMove(((0, 2),), ((0, -1), (2, 1))).dense(3)
        (-1, 0, 1)
        """
        entries = dict(self.change)
        return tuple(entries.get(cell, 0) for cell in range(cells))


_LISTED = 20_000
"""Most multisets of records that are listed."""
_COMPARED = 200_000
"""Most pairs of multisets that are compared."""


def within(change: Iterable[int], cap: int | None) -> bool:
    """Say whether a histogram change adds at most ``cap`` records and removes at most ``cap``.

    Examples
    --------
    >>> within([1, 1, -2], 2), within([1, 1, -2], 1), within([1, 1, -2], None)
    (True, False, True)
    """
    if cap is None:
        return True
    added = removed = 0
    for amount in change:
        if amount > 0:
            added += amount
        else:
            removed -= amount
    return max(added, removed) <= cap


def capped_changes(problem: BlowfishProblem, cap: int) -> set[Vector] | None:
    """List the non-zero histogram changes within a cap that keep the facts; None if they are too many.

    Parameters
    ----------
    problem
        Facts and secret pairs; only the facts matter here.
    cap
        At most so many records added and as many removed.

    Examples
    --------
    >>> from policygraph.moves.blowfish.problem import blowfish_problem
    >>> line = [[abs(i - j) == 1 for j in range(3)] for i in range(3)]
    >>> sorted(capped_changes(blowfish_problem([[0, 1, 0]], line), 1))
    [(-1, 0, 1), (1, 0, -1)]
    """
    if comb(problem.vertices + cap, cap) > _LISTED:
        return None
    # Without bottom both sides have equally many records; with it a side is filled up with absent ones.
    groups: dict[Vector, list[tuple[int, ...]]] = {}
    for records in combinations_with_replacement(range(problem.vertices), cap):
        image = tuple(map(sum, zip(*(problem.columns[v] for v in records))))
        groups.setdefault(image, []).append(records)
    if sum(len(group) ** 2 for group in groups.values()) > _COMPARED:
        return None
    found = {
        problem.histogram_change(list(zip(one, two)))
        for group in groups.values()
        for one in group
        for two in group
    }
    found.discard((0,) * problem.cells)
    return found


def capped_ceiling(problem: BlowfishProblem, norm: str, cap: int) -> tuple[int, str]:
    """Bound the answer over all histogram changes within the cap that keep the facts, edges or not.

    Parameters
    ----------
    problem
        Facts, secret pairs and query.
    norm
        ``"l1"`` or ``"l2"`` (squared).
    cap
        At most so many records added and as many removed.

    Returns
    -------
    tuple of int and str
        The bound and the argument for it.

    Examples
    --------
    >>> from policygraph.moves.blowfish.problem import blowfish_problem
    >>> line = [[abs(i - j) == 1 for j in range(3)] for i in range(3)]
    >>> capped_ceiling(blowfish_problem([[0, 1, 0]], line), "l1", 1)[0]
    2
    """
    listed = capped_changes(problem, cap)
    if listed is not None:
        best = max((_of_change(problem, change, norm) for change in listed), default=0)
        return best, f"All changes of at most {cap} records on each side that keep the facts were listed."
    widest = _widest(problem, norm)
    return (
        widest * (cap if norm == "l1" else cap * cap),
        f"At most {cap} records are added and {cap} removed, each pair changes the answer by a bounded part.",
    )


def _of_change(problem: BlowfishProblem, change: Vector, norm: str) -> int:
    answer: dict[int, int] = {}
    for cell, amount in enumerate(change):
        if amount:
            for row, entry in problem.weight(cell):
                answer[row] = answer.get(row, 0) + amount * entry
    return _norm(answer, norm)


def _norm(answer: dict[int, int], norm: str) -> int:
    return sum(abs(v) for v in answer.values()) if norm == "l1" else sum(v * v for v in answer.values())


def _widest(problem: BlowfishProblem, norm: str) -> int:
    """Largest change by one record added and one removed, or by one of them alone where records come and go."""
    if problem.query is None:
        return 2 if problem.cells > 1 else problem.vertices - problem.cells
    if problem.vertices**2 <= _COMPARED:
        pairs = ((x, y) for x in range(problem.vertices) for y in range(x + 1, problem.vertices))
        return max((problem.value([pair], norm) for pair in pairs), default=0)
    most = max(_norm(dict(problem.weight(cell)), norm) for cell in range(problem.cells))
    # |u - v| <= |u| + |v|; the square of that is at most 4 times the larger square
    return 2 * most if norm == "l1" else 4 * most
