"""Which cells can change together under a policy. Owns :class:`MoveCover`, :class:`Coupling` and :class:`Circuits`.

A cover of a policy is a family of sets of cells such that the cells of every move lie in one of the sets. Releases that look at
parts of the table which no set of the cover meets both do not add up; the ledger takes :meth:`MoveCover.together` for this
(``docs/explanation/proofs/parallel-composition.md``). A cover has no data in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import gcd, lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND, Effort
from policygraph.errors import RefusedError
from policygraph.linalg import Objects, as_integer_matrix, primitive
from policygraph.model.policy import Policy
from policygraph.moves.move import Move
from policygraph.sensitivity.certificate import Witness

CELLS, EDGES = 4_000_000, 2_000_000
"""Most cells, and most edges of a policy graph, that are looked at one by one."""
WORK = 20_000_000
"""Most steps (rows times rows times cells) for reducing the public facts exactly."""
LISTED_CELLS, MOVES, LISTING = 400, 20_000, 2 * SECOND
"""Where moves must be listed: most cells, most moves, and most work for it."""

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Coupling:
    """Whether a move can touch two parts of a table, and why.

    Attributes
    ----------
    coupled
        False: no move touches both parts. True: one does, or it could not be ruled out.
    reason
        Why.
    move, witness
        A move that touches both parts, and two neighbouring data sets that differ by it; None where none is known.
    """

    coupled: bool
    reason: str
    move: Move | None = None
    witness: Witness | None = None

    def __bool__(self) -> bool:
        return self.coupled

    @property
    def look_alikes(self) -> str | None:
        """The two neighbouring data sets in words."""
        if self.move is None:
            return None
        if self.witness is None:
            return f"the move {self.move}"
        policy = self.move.policy
        before, after = (
            " ".join(f"{count} in {_cell(policy, cell)}" for cell, count in table) or "no record"
            for table in (self.witness.before, self.witness.after)
        )
        return f"neighbours: {before}; {after}"


@dataclass(frozen=True, eq=False)
class MoveCover:
    """Sets of cells such that every move of a policy lies in one of them.

    Attributes
    ----------
    policy
        Whose moves.
    sets
        One row for each set, one column for each cell, as a sparse matrix.
    rule
        What the sets are: ``edges``, ``circuits``, ``sums``, ``moves`` or ``all``.
    reason
        Why every move lies in one of them.
    listed
        Changes and tables they start from, where all moves were listed.

    Examples
    --------
    Rows of a table whose row sums are public change one at a time; with public column sums they change together.

    >>> import policygraph as pg
    >>> domain = pg.Domain({"row": 2, "column": 2})
    >>> rows, columns = (MoveCover.of(pg.Policy(domain, constraints=[pg.Cuboid(name)])) for name in domain.names)
    >>> rows.together([[0, 1], [2, 3]]), columns.together([[0, 1], [2, 3]])
    ([(0,), (1,)], [(0, 1)])
    >>> print(columns.coupling([0, 1], [2, 3]).move)
    -(0, 0) +(1, 0)
    """

    policy: Policy
    sets: Any
    rule: str
    reason: str
    listed: tuple[tuple[dict[int, int], dict[int, int] | None], ...] = ()

    @classmethod
    def of(cls, policy: Policy) -> MoveCover:
        """Find a cover, as fine as limits of work allow; a single set of all cells always is one.

        Raises
        ------
        RefusedError
            When the domain is too large to look at its cells.
        """
        if policy.domain.size > CELLS:
            raise RefusedError(
                f"the domain has {policy.domain.size:,} cells: parts of it are compared for at most {CELLS:,}.",
                code="coupling.size",
            )
        if policy.definition == "edges":
            return _edges(policy)
        return _blowfish(policy) if policy.definition == "blowfish" else _induced(policy)

    def touched(self, cells: npt.ArrayLike) -> Bools:
        """Which sets have one of these cells."""
        chosen = np.zeros(self.policy.domain.size, dtype=np.int64)
        chosen[np.asarray(cells, dtype=np.int64)] = 1
        return np.asarray(self.sets @ chosen > 0)

    def meet(self, first: npt.ArrayLike, second: npt.ArrayLike) -> bool:
        """Whether one set has cells of both parts; if not, no move touches both."""
        return bool(np.any(self.touched(first) & self.touched(second)))

    def together(self, parts: Sequence[npt.ArrayLike]) -> list[tuple[int, ...]]:
        """The distinct sets of parts that one set of the cover meets; no move touches parts that are in none of them together.

        Examples
        --------
        >>> import policygraph as pg
        >>> domain = pg.Domain({"age": 6})
        >>> MoveCover.of(pg.Policy(domain, pg.PolicyGraph.line(domain))).together([[0, 1], [2, 3], [4, 5]])
        [(0,), (0, 1), (1,), (1, 2), (2,)]
        """
        marks = np.stack([self.touched(part) for part in parts], axis=1)
        packed = np.packbits(marks[marks.any(axis=1)], axis=1)
        kinds = np.unique(packed.view(np.dtype((np.void, packed.shape[1]))).ravel())
        rows = np.unpackbits(kinds.view(np.uint8).reshape(len(kinds), -1), axis=1)
        return sorted(tuple(np.flatnonzero(row).tolist()) for row in rows)

    def coupling(self, first: npt.ArrayLike, second: npt.ArrayLike) -> Coupling:
        """Whether a move can touch two parts, with a move that does where one is known."""
        one, other = (np.unique(np.asarray(part, dtype=np.int64)) for part in (first, second))
        shared = np.intersect1d(one, other)
        if shared.size:
            return Coupling(True, f"both look at the cell {_cell(self.policy, int(shared[0]))}")
        both = np.flatnonzero(self.touched(one) & self.touched(other))
        if not both.size:
            return Coupling(False, self.reason)
        if self.rule == "edges":
            row = self.sets.indices[self.sets.indptr[both[0]] : self.sets.indptr[both[0] + 1]]
            change = {int(row[0]): -1, int(row[1]): 1}
            return self._shown(change, "an edge of the policy graph leads from one part to the other")
        if self.rule == "moves":
            change, table = self.listed[int(both[0]) - self.policy.domain.size]
            why = "records are repaired across the parts so that the public facts hold"
            return self._shown(change, why, table)
        if self.rule == "circuits":
            return self._by_circuit(one, other)
        return Coupling(True, f"it was not ruled out that a move touches both parts ({self.reason})")

    def _shown(self, change: dict[int, int], why: str, table: dict[int, int] | None = None) -> Coupling:
        move = Move.of(self.policy, change)
        if self.policy.system.has_values:
            return Coupling(True, f"{why}, unless the published values forbid it", move)
        return Coupling(True, why, move, Witness.of_change(change, table))

    @cached_property
    def _circuits(self) -> tuple[Ints, Circuits]:
        cells, matrix = _open(self.policy)
        return cells, Circuits.of(matrix)

    def _by_circuit(self, one: Ints, other: Ints) -> Coupling:
        cells, circuits = self._circuits
        labels = np.full(len(cells), -1, dtype=np.int64)
        labels[np.isin(cells, one)], labels[np.isin(cells, other)] = 0, 1
        circuit = circuits.between(labels)
        change = {} if circuit is None else {int(cells[c]): x for c, x in circuit.items()}
        unsure = Coupling(True, "it was not ruled out that a move touches both parts")
        if not change or self.policy.strength == "positive" or not _allowed(self.policy, change):
            return unsure
        table = _table_with(self.policy, change) if self.policy.system.has_values else None
        if self.policy.system.has_values and table is None:
            return unsure
        why = "a minimal change that keeps the public facts touches both parts"
        return Coupling(True, why, Move.of(self.policy, change), Witness.of_change(change, table))


def _cell(policy: Policy, cell: int) -> str:
    return str(Move.of(policy, {cell: 1}))[1:]


def _rows(lists: Sequence[npt.ArrayLike], size: int) -> Any:
    """Every cell on its own, then the listed sets, as rows of a sparse matrix.

    A set of one cell inside another one changes no maximum; with it every part meets some set, also cells that never change.
    """
    from scipy import sparse

    lengths = [np.size(cells) for cells in lists]
    rows = np.concatenate([np.arange(size), np.repeat(np.arange(len(lists)) + size, lengths)])
    columns = np.concatenate([np.arange(size), *(np.asarray(cells, dtype=np.int64) for cells in lists)])
    ones = np.ones(len(rows), dtype=np.int64)
    return sparse.csr_array((ones, (rows, columns)), shape=(size + len(lists), size))


def _blocks(labels: Ints) -> Any:
    """The blocks of a partition as rows of a sparse matrix."""
    from scipy import sparse

    found, row = np.unique(labels, return_inverse=True)
    return sparse.csr_array(
        (np.ones(len(labels), dtype=np.int64), (row, np.arange(len(labels)))), shape=(len(found), len(labels))
    )


def _whole(policy: Policy, why: str) -> MoveCover:
    return MoveCover(policy, _blocks(np.zeros(policy.domain.size, dtype=np.int64)), "all", why)


def _edges(policy: Policy) -> MoveCover:
    """The ends of each edge; where there are too many edges, the components of the policy graph."""
    from scipy import sparse

    if policy.graph is None:
        raise RefusedError("a policy without graph has no edges.", code="coupling.graph")
    graph = policy.graph.without_bottom()
    if graph.n_edges > EDGES:
        why = "the policy graph has too many edges to look at each, so that its components are compared"
        return MoveCover(policy, _blocks(graph.components()), "components", why)
    size = policy.domain.size
    chunks = [np.stack([u, v], axis=1) for u, v in graph.edge_chunks()]
    ends = np.concatenate(chunks) if chunks else np.zeros((0, 2), dtype=np.int64)
    rows = np.concatenate([np.arange(size), np.repeat(np.arange(len(ends)) + size, 2)])
    columns = np.concatenate([np.arange(size), ends.ravel()])
    sets = sparse.csr_array(
        (np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=(size + len(ends), size)
    )
    return MoveCover(policy, sets, "edges", "no edge of the policy graph leads from one part to the other")


def _open(policy: Policy) -> tuple[Ints, Ints]:
    """Cells that can change as far as zeros and published values say, and the public facts over them."""
    from policygraph.moves.values.presolve import presolve_values

    rows, values = policy.system.full_rows()
    cells = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
    matrix = np.asarray(rows[:, cells].toarray(), dtype=np.int64).reshape(-1, len(cells))
    if policy.system.has_values:
        kept = list(presolve_values(matrix, values, policy.domain.capacity).kept)
        matrix, cells = matrix[:, kept], cells[kept]
    return cells, matrix


def _induced(policy: Policy) -> MoveCover:
    """Connected components of the fundamental circuits of the public facts; coarser, cells joined by sums that share cells."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    size = policy.domain.size
    rows, _ = policy.system.full_rows()
    labels = np.arange(size, dtype=np.int64)
    if not rows.shape[0]:
        return MoveCover(
            policy, _blocks(labels), "circuits", "one record changes one cell, and no public fact joins two"
        )
    if rows.shape[0] ** 2 * size <= WORK:
        cells, matrix = _open(policy)
        circuits = Circuits.of(matrix)
        pairs = [
            (cells[one], cells[other]) for one, joined in enumerate(circuits.neighbours()) for other in joined
        ]
        u, v = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        graph = sparse.coo_array((np.ones(len(u), dtype=np.int8), (u, v)), shape=(size, size))
        labels = connected_components(graph, directed=False)[1].astype(np.int64)
        why = "the public facts split over the parts: no minimal change that keeps them touches both"
        return MoveCover(policy, _blocks(labels), "circuits", why)
    cells = np.setdiff1d(labels, policy.system.zeros)
    found = rows[:, cells].tocoo()
    graph = sparse.coo_array(
        (np.ones(len(found.row), dtype=np.int8), (found.row + size, cells[found.col])),
        shape=(size + rows.shape[0], size + rows.shape[0]),
    )
    labels = connected_components(graph, directed=False)[1][:size].astype(np.int64)
    why = "no public sum is about both parts, directly or through other sums"
    return MoveCover(policy, _blocks(labels), "sums", why)


def _allowed(policy: Policy, change: dict[int, int]) -> bool:
    """Whether a minimal change is within the capacity, the cap and the strength (worst-case or Markov)."""
    sizes = [abs(x) for x in change.values()]
    most = max(sum(x for x in change.values() if x > 0), -sum(x for x in change.values() if x < 0))
    if policy.domain.capacity is not None and max(sizes) > policy.domain.capacity:
        return False
    if policy.at_most_records is not None and most > policy.at_most_records:
        return False
    return policy.strength != "markov" or (len(sizes) <= 4 and max(sizes) == 1)


def _table_with(policy: Policy, change: dict[int, int]) -> dict[int, int] | None:
    """A table with the published values from which a change can start; None when none was found."""
    from policygraph.moves.values.longest import occurs

    rows, values = policy.system.full_rows()
    cells = np.setdiff1d(np.arange(policy.domain.size), policy.system.zeros)
    full = np.zeros(policy.domain.size, dtype=np.int64)
    full[list(change)] = list(change.values())
    found = occurs(
        rows[:, cells].toarray(), values, full[cells], policy.domain.capacity, effort=Effort(LISTING)
    )
    if found.table is None:
        return None
    return {int(c): int(x) for c, x in zip(cells, found.table, strict=True) if x}


def _blowfish(policy: Policy) -> MoveCover:
    """The edges, if all of them keep the public facts, since they are the only moves then; otherwise all moves, listed."""
    from policygraph.moves.blowfish.longest import blowfish_moves
    from policygraph.moves.blowfish.problem import dense_problem

    if policy.graph is None:
        raise RefusedError("a policy without graph is not a Blowfish policy.", code="coupling.graph")
    size = policy.domain.size
    if policy.domain.capacity is not None or size > LISTED_CELLS:
        return _whole(
            policy,
            f"with a policy graph and public facts together parts are told apart in tables of at most {LISTED_CELLS} cells",
        )
    matrix, adjacency, keep = dense_problem(policy)
    bottom = policy.graph.bottom != "none"
    ends = np.argwhere(np.triu(adjacency, 1))
    # bottom, the last vertex, counts in no fact and is in no part
    columns = np.pad(matrix, ((0, 0), (0, int(bottom))))
    if np.array_equal(columns[:, ends[:, 0]], columns[:, ends[:, 1]]):
        inner = ends[ends[:, 1] < len(keep)]
        why = "every edge keeps the public facts, so that edges are the only moves; none leads from one part to the other"
        return MoveCover(policy, _rows([keep[pair] for pair in inner], size), "edges", why)
    listed: list[tuple[dict[int, int], dict[int, int] | None]] = []
    try:
        for found in blowfish_moves(
            matrix,
            adjacency,
            bottom=bottom,
            at_most_records=policy.at_most_records,
            effort=Effort(LISTING),
            max_moves=MOVES,
        ):
            moved = np.asarray(found.dense(len(keep)))
            # the table holds also the records whose changes do not show in the histogram
            table: dict[int, int] = {}
            for x, _ in found.transitions:
                if int(x) < len(keep):  # type: ignore[call-overload]
                    cell = int(keep[int(x)])  # type: ignore[call-overload]
                    table[cell] = table.get(cell, 0) + 1
            listed.append(({int(keep[c]): int(moved[c]) for c in np.flatnonzero(moved)}, table))
    except RefusedError:
        return _whole(
            policy, "the moves of a policy graph with public facts could not be listed within the limits"
        )
    supports = [np.array(sorted(change), dtype=np.int64) for change, _ in listed]
    why = "all moves of the policy were listed, and none touches both parts"
    return MoveCover(policy, _rows(supports, size), "moves", why, tuple(listed))


@dataclass(frozen=True, eq=False)
class Circuits:
    """The fundamental circuits of an integer matrix for one choice of independent columns, in exact arithmetic.

    A circuit is a change of cells that keeps the facts and whose set of cells is as small as possible; every circuit is a
    minimal move.

    Attributes
    ----------
    reduced
        Rows of the reduced echelon form, each with whole entries and one pivot.
    pivots
        The column of the pivot of each row; every other row is zero there.
    """

    reduced: Objects
    pivots: tuple[int, ...]

    @classmethod
    def of(cls, matrix: npt.ArrayLike) -> Circuits:
        """Reduce a matrix.

        Examples
        --------
        >>> found = Circuits.of([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
        >>> found.pivots, found.circuit(3)
        ((0, 1, 2), {0: 1, 1: -1, 2: -1, 3: 1})
        """
        rows = as_integer_matrix(matrix).copy()
        pivots: list[int] = []
        for column in range(rows.shape[1]):
            done = len(pivots)
            live = [i for i in range(done, rows.shape[0]) if rows[i, column]]
            if not live:
                continue
            rows[[done, live[0]]] = rows[[live[0], done]]
            for i in range(rows.shape[0]):
                if i != done and rows[i, column]:
                    rows[i] = primitive(rows[i] * rows[done, column] - rows[done] * rows[i, column])
            pivots.append(column)
            if len(pivots) == rows.shape[0]:
                break
        return cls(rows[: len(pivots)], tuple(pivots))

    def circuit(self, column: int) -> dict[int, int]:
        """The circuit of a column that is no pivot: it, and the pivots that make up for it."""
        return _integral({c: f for c, f in self._fractions(column).items() if f})

    def _fractions(self, column: int) -> dict[int, Fraction]:
        out = {column: Fraction(1)}
        for row, pivot in enumerate(self.pivots):
            if self.reduced[row, column]:
                out[pivot] = Fraction(-int(self.reduced[row, column]), int(self.reduced[row, pivot]))
        return out

    def neighbours(self) -> list[list[int]]:
        """For each column the columns of the other kind (pivot or not) that share a fundamental circuit with it."""
        n = self.reduced.shape[1]
        out: list[list[int]] = [[] for _ in range(n)]
        for row, pivot in enumerate(self.pivots):
            for column in np.flatnonzero(self.reduced[row] != 0).tolist():
                if column != pivot:
                    out[pivot].append(column)
                    out[column].append(pivot)
        return out

    def between(self, labels: Ints) -> dict[int, int] | None:
        """A circuit that holds cells of two different labels >= 0, or None when there is none at all.

        Examples
        --------
        >>> Circuits.of([[1, 1, 0, 0], [0, 0, 1, 1]]).between(np.array([0, 0, 1, 1])) is None
        True
        >>> Circuits.of([[1, 1, 1]]).between(np.array([0, -1, 1]))
        {0: -1, 2: 1}
        """
        joined = self.neighbours()
        for label in np.unique(labels[labels >= 0]).tolist():
            path = _shortest(joined, labels, label)
            if path is not None:
                return self._along(path)
        return None

    def _along(self, path: list[int]) -> dict[int, int]:
        """Add up the fundamental circuits of the non-pivots on an induced path so that its inner pivots cancel."""
        pivots = set(self.pivots)
        free = [c for c in path if c not in pivots]
        total = self._fractions(free[0])
        for before, after in pairwise(free):
            shared = path[path.index(before) + 1]
            step = self._fractions(after)
            factor = -total[shared] / step[shared]
            for column, value in step.items():
                total[column] = total.get(column, Fraction(0)) + factor * value
        return _integral({c: f for c, f in total.items() if f})


def _shortest(joined: list[list[int]], labels: Ints, label: int) -> list[int] | None:
    """A shortest path from the cells of a label to a cell of another one."""
    starts = np.flatnonzero(labels == label).tolist()
    came: dict[int, int] = dict.fromkeys(starts, -1)
    queue = deque(starts)
    while queue:
        here = queue.popleft()
        for there in joined[here]:
            if there in came:
                continue
            came[there] = here
            if labels[there] >= 0:
                path = [there]
                while came[path[-1]] >= 0:
                    path.append(came[path[-1]])
                return path[::-1]
            queue.append(there)
    return None


def _integral(change: dict[int, Fraction]) -> dict[int, int]:
    """Scale a rational change to whole numbers without a common factor."""
    bottom = lcm(*(f.denominator for f in change.values()))
    tops = {c: int(f * bottom) for c, f in sorted(change.items())}
    shared = gcd(*tops.values())
    return {c: x // shared for c, x in tops.items()}
