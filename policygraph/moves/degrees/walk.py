"""The walk that takes minimal moves out of a balanced change, whatever graph it lives on.

Owns one algorithm, used for bipartite and for undirected move graphs alike; imports
:mod:`policygraph.errors` only. The theorem behind it is section 2 of ``docs/explanation/proofs/degrees.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from policygraph.errors import InputError

__all__ = ["peel"]


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


def peel(
    tail: Sequence[int], head: Sequence[int], value: Sequence[int], free: Sequence[bool]
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
    ends, signs = np.asarray([tail, head], dtype=np.int64), np.asarray(value, dtype=np.int64) > 0
    sign, left = np.where(signs, 1, -1).tolist(), [abs(v) for v in value]
    # Half-edges sorted by vertex and sign: those of slot 2 * vertex + (sign > 0) lie in one run.
    # A loop has one, since taking it uses up both of its ends.
    proper = ends[0] != ends[1]
    slots = np.concatenate([2 * ends[0] + signs, (2 * ends[1] + signs)[proper]])
    owners = np.concatenate([np.arange(len(signs)), np.flatnonzero(proper)])
    order = np.argsort(slots, kind="stable")
    incident = owners[order].tolist()
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
                trail.vertex.append(head[edge] if tail[edge] == x else tail[edge])
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
