"""The Eulerian walk that takes minimal moves out of a change, in time linear in the changed cells.

Owns :class:`MoveGraph` (public sums as vertices, changed cells as edges) and :func:`peel` (the walk with sub-cycle detection).
Two cuboids, parts of their margins, totals, directed and undirected degrees all lead to such a graph; the theorems are in
``docs/explanation/proofs/two-cuboids.md`` (section 1) and ``docs/explanation/proofs/degrees.md`` (section 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.model.system import System

Ints = npt.NDArray[np.int64]

LAYERS = 8
"""Most families of disjoint sums that are compared with each other."""
SHORT_KEYS = 1 << 16
"""Keys below this are sorted in linear time."""


@dataclass(frozen=True, eq=False)
class MoveGraph:
    """Cells as edges between the public sums that count them.

    Attributes
    ----------
    tail, head
        The two vertices of each cell. A cell that one public sum counts twice (a loop and the degree of its node) has that
        vertex at both ends.
    sums
        The public sum behind each vertex: the number of its constraint among ``system.needed``, the number of its row, and
        whether only the rest is meant that other vertices leave of it.

    Notes
    -----
    One more vertex, the ground, stands for everything that is not public; nothing is kept there. A cell counted by no public
    sum is an edge from the ground to itself, one counted once an edge to the ground.
    """

    tail: Ints
    head: Ints
    sums: tuple[tuple[int, int, bool], ...]

    @property
    def ground(self) -> int:
        """The vertex at which nothing is kept."""
        return len(self.sums)

    @classmethod
    def of(cls, system: System, cells: Any) -> MoveGraph | None:
        """Read the public facts over some cells as a graph; None if they have another shape.

        Examples
        --------
        >>> from policygraph.model.constraints import Cells, Cuboid, Total
        >>> from policygraph.model.domain import Domain
        >>> domain = Domain({"a": 2, "b": 2, "c": 2})
        >>> MoveGraph.of(System(domain, [Cuboid("a", "b"), Cuboid("b", "c")]), [0, 1]).tail.tolist()
        [0, 0]
        >>> MoveGraph.of(System(domain, [Cuboid("a"), Cuboid("b"), Cuboid("c")]), range(8)) is None
        True
        >>> partly = MoveGraph.of(System(domain, [Cells("a", [0]), Cells("b", [0]), Total()]), range(8))
        >>> partly.sums
        ((0, 0, False), (1, 0, False), (2, 0, True))

        Notes
        -----
        Every cell must be counted at most twice. Where it is counted more often, a sum that consists of finer public sums and
        a rest is replaced by the rest (a total becomes what the known rows leave of it). That keeps the row space over the
        rationals, and with it the moves.
        """
        at = np.asarray(cells, dtype=np.int64)
        entries = _Entries.read(system, at)
        if np.any((entries.times < 1) | (entries.times > 2)):
            return None
        coarse: set[int] = set()
        if int(entries.counted().max(initial=0)) > 2:
            simpler = _without_coarse(entries)
            if simpler is None:
                return None
            entries, coarse = simpler
        end, owner = np.repeat(entries.vertex, entries.times), np.repeat(entries.cell, entries.times)
        pair = np.full((2, len(at)), len(entries.sums), dtype=np.int64)
        # Written forwards the last end of a cell stays, written backwards the first one; a single end is both.
        pair[1, owner] = end
        pair[0, owner[::-1]] = end[::-1]
        pair[1, np.bincount(owner, minlength=len(at)) == 1] = len(entries.sums)
        named = tuple((which, row, vertex in coarse) for vertex, (which, row) in enumerate(entries.sums))
        return cls(pair[0], pair[1], named)

    def parts(self, amounts: Any) -> Iterator[tuple[int, dict[int, int]]]:
        """Minimal moves that add up to a change that keeps the public facts, lazily.

        Parameters
        ----------
        amounts
            The change of each cell, none of them 0.

        Yields
        ------
        tuple
            How often the move is taken, and the move as place of a cell -> units, with the sign of the change there.
        """
        return peel(self.tail, self.head, amounts, [False] * self.ground + [True])


@dataclass(frozen=True, eq=False)
class _Entries:
    """Which sum counts which cell how often; sums are numbered over all constraints."""

    vertex: Ints
    cell: Ints
    times: Ints
    block: Ints
    sums: list[tuple[int, int]]
    cells: int

    @classmethod
    def read(cls, system: System, cells: Ints) -> _Entries:
        """The needed public facts over some cells."""
        nothing = np.zeros(0, dtype=np.int64)
        columns: list[list[Ints]] = [[nothing], [nothing], [nothing], [nothing]]
        sums: list[tuple[int, int]] = []
        for which, constraint in enumerate(system.needed):
            rows = constraint.rows_on(system.domain, cells)
            used, place = compact(rows.row)
            block = np.full(len(place), which, dtype=np.int64)
            for column, more in zip(
                columns, (place + len(sums), rows.cell, rows.coefficient, block), strict=True
            ):
                column.append(more)
            sums += [(which, row) for row in used.tolist()]
        vertex, cell, times, block = (np.concatenate(column) for column in columns)
        return cls(vertex, cell, times, block, sums, len(cells))

    def only(self, held: Any) -> _Entries:
        """Some of the entries."""
        return _Entries(
            self.vertex[held], self.cell[held], self.times[held], self.block[held], self.sums, self.cells
        )

    def counted(self) -> Ints:
        """How often each cell is counted."""
        found = np.zeros(self.cells, dtype=np.int64)
        np.add.at(found, self.cell, self.times)
        return found


def compact(rows: Ints) -> tuple[Ints, Ints]:
    """Row numbers that occur, and the place of each entry among them."""
    top = int(rows.max(initial=-1)) + 1
    if top > 4 * len(rows) + 64:
        used, places = np.unique(rows, return_inverse=True)
        return used, places
    seen = np.zeros(top, dtype=np.bool_)
    seen[rows] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[rows]


def _without_coarse(entries: _Entries) -> tuple[_Entries, set[int]] | None:
    """The same row space with sums replaced by what finer ones leave of them, until no cell is counted three times.

    Returns
    -------
    tuple or None
        The entries, and the vertices that stand for a rest; None if no such form was found.

    Notes
    -----
    If K is a sum and L_1, L_2, ... are disjoint sums inside it, K - L_1 - L_2 - ... may stand for K. If every cell lies in K and
    d is the sum of all known degrees, 2 K - d may: it counts an edge as often as it has ends with unknown degree.
    """
    layers: list[Ints] = []
    double = np.zeros(len(entries.vertex), dtype=np.bool_)
    for which in np.unique(entries.block).tolist():
        held = entries.block == which
        part = entries.only(held)
        if int(part.counted().max()) > 1:
            double |= held
            continue
        home = next((layer for layer in layers if np.all(layer[part.cell] < 0)), None)
        if home is None:
            if len(layers) == LAYERS:
                return None
            layers.append(home := np.full(entries.cells, -1, dtype=np.int64))
        home[part.cell] = part.vertex
    if np.any(double):
        twice = entries.only(double)
        often = twice.counted()
        total = layers[0] if len(layers) == 1 else np.zeros(0, dtype=np.int64)
        if int(often.max()) > 2 or not len(total) or total[0] < 0 or np.any(total != total[0]):
            return None
        rest = np.flatnonzero(often < 2)
        return _joined(entries, twice, np.full(len(rest), total[0]), rest, 2 - often[rest]), {int(total[0])}
    coarse: set[int] = set()
    while int(np.sum([layer >= 0 for layer in layers], axis=0).max()) > 2:
        for one, other in permutations(layers, 2):
            shared = (one >= 0) & (other >= 0)
            if np.any(shared) and _inside(other, one):
                coarse.update(np.unique(one[shared]).tolist())
                one[shared] = -1
                break
        else:
            return None
    nothing = entries.only(np.zeros(0, dtype=np.int64))
    held = [np.flatnonzero(layer >= 0) for layer in layers]
    vertex = np.concatenate([layer[at] for layer, at in zip(layers, held, strict=True)])
    cell = np.concatenate(held)
    return _joined(entries, nothing, vertex, cell, np.ones_like(cell)), coarse


def _joined(entries: _Entries, kept: _Entries, vertex: Ints, cell: Ints, times: Ints) -> _Entries:
    """Entries that are kept, and new ones."""
    vertex, cell, times = (
        np.concatenate(pair) for pair in ((kept.vertex, vertex), (kept.cell, cell), (kept.times, times))
    )
    return _Entries(vertex, cell, times, np.zeros_like(vertex), entries.sums, entries.cells)


def _inside(fine: Ints, coarse: Ints) -> bool:
    """Whether every sum of one family lies inside one sum of the other, or outside all of them."""
    held = np.flatnonzero(fine >= 0)
    around = np.empty(int(fine.max()) + 1, dtype=np.int64)
    around[fine[held]] = coarse[held]
    return bool(np.all(coarse[held] == around[fine[held]]))


class _Trail:
    """An alternating trail in which every bound vertex occurs at most twice and no two vertices cross."""

    def __init__(self, vertices: int) -> None:
        self.vertex: list[int] = []
        self.edge: list[int] = []
        self.first = [-1] * vertices
        self.second = [-1] * vertices

    def register(self) -> None:
        """Note the visit at the end of the trail."""
        x, position = self.vertex[-1], len(self.vertex) - 1
        if self.first[x] < 0:
            self.first[x] = position
        else:
            self.second[x] = position

    def cut(self, position: int) -> None:
        """Forget everything after ``position``."""
        for q in range(len(self.vertex) - 1, position, -1):
            x = self.vertex[q]
            if self.second[x] == q:
                self.second[x] = -1
            elif self.first[x] == q:
                self.first[x] = -1
        del self.vertex[position + 1 :]
        del self.edge[position:]

    def crossing(self, start: int) -> int:
        """Latest vertex met inside the open segment after ``start`` and before it as well, or -1.

        Closed segments inside are jumped over, so that over a whole walk each position is looked at once
        before it disappears in a segment of its own.
        """
        q = len(self.vertex) - 2
        while q > start:
            x = self.vertex[q]
            if self.second[x] == q:
                if self.first[x] < start:
                    return x
                q = self.first[x]
            q -= 1
        return -1

    def arrive(self) -> list[int] | None:
        """Handle the visit of a bound vertex at the end of the trail; return the edges of a minimal move.

        The move is cut out of the trail, and the rest is again a trail of this kind.
        """
        u, end = self.vertex[-1], len(self.vertex) - 1
        i, j = self.first[u], self.second[u]
        if i < 0:
            self.first[u] = end
            return None
        if j >= 0:
            start = j if (end - j) % 2 == 0 else i
        elif (end - i) % 2 == 0:
            start = i
        else:
            v = self.crossing(i)
            if v >= 0:
                return self._uncross(v, i, end)
            self.second[u] = end
            return None
        move = self.edge[start:]
        self.cut(start)
        return move

    def _uncross(self, v: int, i: int, end: int) -> list[int]:
        """Take out the first and third part of v .. u .. v .. u, and walk the second one backwards."""
        v1, v2 = self.first[v], self.second[v]
        move = self.edge[v1:i] + self.edge[v2:end]
        back_edges, back_vertices = self.edge[i:v2][::-1], self.vertex[i:v2][::-1]
        self.cut(v1)
        for edge, vertex in zip(back_edges, back_vertices):
            self.edge.append(edge)
            self.vertex.append(vertex)
            self.register()
        return move


def _view(values: Ints) -> memoryview[int]:
    array: Any = np.ascontiguousarray(values, dtype=np.int64)
    return memoryview(array)


def peel(
    tail: Sequence[int] | Ints, head: Sequence[int] | Ints, value: Sequence[int] | Ints, free: Sequence[bool]
) -> Iterator[tuple[int, dict[int, int]]]:
    """Yield minimal moves that add up, without cancellation, to a balanced change.

    Parameters
    ----------
    tail, head
        Ends of each edge, vertices ``0 .. len(free) - 1``; parallel edges and loops (``tail == head``, counting
        twice) are allowed.
    value
        Non-zero change of each edge.
    free
        Vertices whose sum is not bound; at all others the values of the incident edges add up to 0.

    Yields
    ------
    tuple
        A multiplicity and a minimal move, as edge -> units (1 or 2, to be read with the sign of the edge).

    Raises
    ------
    InputError
        When some bound vertex is not balanced.

    Examples
    --------
    >>> list(peel([0, 1, 2, 3], [1, 2, 3, 0], [5, -5, 5, -5], [False] * 4)) == [(5, {0: 1, 1: 1, 2: 1, 3: 1})]
    True

    Notes
    -----
    Arriving at a bound vertex over a + edge the walk leaves over a - edge, so it can stop at a free vertex only.
    A return to a vertex after an even number of edges closes a balanced part. A return after an odd number does
    not, a second one does; two vertices that cross (v, u, v, u) hold a balanced part too. What is cut out first is
    minimal (``docs/explanation/proofs/degrees.md``, Theorem 2). The first move appears after O(edges) steps. A whole
    decomposition takes O(edges) steps, the size of the output, and O(vertices) for each uncrossing; on a
    bipartite graph every return is even and nothing is ever uncrossed.
    """
    ends, changes = np.asarray([tail, head], dtype=np.int64), np.asarray(value, dtype=np.int64)
    signs = changes > 0
    # A view answers with Python integers and costs nothing to make, where the first move is often all that is asked for.
    sign, left, first, second = map(_view, (np.where(signs, 1, -1), np.abs(changes), ends[0], ends[1]))
    # Half-edges sorted by vertex and sign: those of slot 2 * vertex + (sign > 0) lie in one run.
    # A loop has one, since taking it uses up both of its ends.
    proper = ends[0] != ends[1]
    slots = np.concatenate([2 * ends[0] + signs, (2 * ends[1] + signs)[proper]])
    owners = np.concatenate([np.arange(len(signs)), np.flatnonzero(proper)])
    order = np.argsort(slots.astype(np.uint16) if 2 * len(free) < SHORT_KEYS else slots, kind="stable")
    incident = _view(owners[order])
    bounds = np.searchsorted(slots[order], np.arange(2 * len(free) + 1))
    top, bottom = bounds[1:].tolist(), bounds[:-1].tolist()

    def available(vertex: int, wanted: int) -> int:
        slot = 2 * vertex + (wanted > 0)
        at, end = top[slot], bottom[slot]
        while at > end and not left[incident[at - 1]]:
            at -= 1
        top[slot] = at
        return incident[at - 1] if at > end else -1

    def counted(edges: list[int]) -> tuple[int, dict[int, int]]:
        units: dict[int, int] = {}
        for edge in edges:
            units[edge] = units.get(edge, 0) + 1
        more = min(left[edge] // count for edge, count in units.items())
        if more:
            for edge, count in units.items():
                left[edge] -= more * count
        return 1 + more, units

    trail = _Trail(len(free))
    # Free vertices first: once their edges are used up, no walk can end at one.
    starts = [v for v, is_free in enumerate(free) if is_free] + [v for v, f in enumerate(free) if not f]
    for start in starts:
        while True:
            edge = max(available(start, 1), available(start, -1))
            if edge < 0:
                break
            trail.vertex.append(start)
            if not free[start]:
                trail.register()
            while True:
                x = trail.vertex[-1]
                left[edge] -= 1
                trail.edge.append(edge)
                trail.vertex.append(second[edge] if first[edge] == x else first[edge])
                if free[trail.vertex[-1]]:
                    move: list[int] | None = trail.edge[:]
                    trail.cut(0)
                else:
                    move = trail.arrive()
                if move:
                    yield counted(move)
                if not trail.edge:
                    break
                edge = available(trail.vertex[-1], -sign[trail.edge[-1]])
                if edge < 0:
                    raise InputError(
                        f"change: vertex {trail.vertex[-1]} is known but its changes do not add up to 0.",
                        code="moves.unbalanced",
                        vertex=trail.vertex[-1],
                    )
            trail.first[start] = trail.second[start] = -1
            trail.vertex.clear()
