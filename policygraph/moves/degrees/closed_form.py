"""The longest minimal move of an undirected graph with some known degrees, in closed form with a witness.

Owns the formulas proved in ``docs/explanation/proofs/degrees.md`` and the graphs that attain them; imports
:mod:`policygraph.errors` and :mod:`alternating_change` only.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from policygraph.errors import InputError
from policygraph.moves.degrees.reading import Known, Move, as_count, known_mask

__all__ = ["longest_degree_move"]


class _Cactus:
    """Writes cycles hung together at cut vertices; gives each new vertex the next unused known node."""

    def __init__(self, nodes: list[int]) -> None:
        self.nodes = nodes
        self.used = 0
        self.edges: Move = []

    def take(self) -> int:
        self.used += 1
        return self.nodes[self.used - 1]

    def edge(self, u: int, v: int, value: int) -> None:
        self.edges.append((u, v, value) if u <= v else (v, u, value))

    def leaf(self, at: int, sign: int, length: int) -> None:
        """Hang an odd cycle; both its edges at the cut vertex have the given sign."""
        last = at
        for step in range(length - 1):
            vertex = self.take()
            self.edge(last, vertex, sign if step % 2 == 0 else -sign)
            last = vertex
        self.edge(last, at, sign)

    def chain(self, at: int, sign: int, blocks: int, extra: int = 0) -> None:
        """Hang ``blocks`` cycles (an odd number) with 2 * blocks + extra new vertices, extra even.

        Triangles whose three vertices are all cut vertices form the spine: one carries what came before, one a
        leaf, one the rest. A last leaf ends it and takes the extra vertices.
        """
        for _ in range(blocks // 2):
            side, onward = self.take(), self.take()
            self.edge(at, side, sign)
            self.edge(side, onward, sign)
            self.edge(onward, at, sign)
            self.leaf(side, -sign, 3)
            at, sign = onward, -sign
        self.leaf(at, sign, 3 + extra)

    def square(self, at: int, sign: int) -> int:
        """Hang a 4-cycle and return its vertex opposite to the cut vertex, which must carry ``sign`` next."""
        a, b, c = self.take(), self.take(), self.take()
        self.edge(at, a, sign)
        self.edge(a, b, -sign)
        self.edge(b, c, -sign)
        self.edge(c, at, sign)
        return b

    def path(self, start: int, length: int, end: int, cuts: int) -> list[int]:
        """Draw start - b1 - ... - b_length - end with alternating signs, equal ones at the first ``cuts``."""
        inner = [self.take() for _ in range(length)]
        sign, last = -1, start
        for step, vertex in enumerate([*inner, end]):
            self.edge(last, vertex, sign)
            sign = sign if step < cuts else -sign
            last = vertex
        return inner

    def doubled(self, at: int, sign: int, length: int) -> tuple[int, int]:
        """Hang a path of doubled edges; return its end and the sign needed there."""
        for _ in range(length):
            vertex = self.take()
            self.edge(at, vertex, 2 * sign)
            at, sign = vertex, -sign
        return at, sign


def _closed(cactus: _Cactus, n: int) -> None:
    """All degrees known, no loops, capacity 1."""
    if n < 4:
        return
    # The most cycles that fit, and the number of vertices they use up (section 4).
    k, used = max(
        ((k, n - (n - (k - 1)) % 2) for k in range(max(1, n // 2 - 2), n // 2 + 1) if n >= 2 * k + 1 + k % 2),
        key=lambda pair: sum(pair),
    )
    if k == 1:
        nodes = [cactus.take() for _ in range(used)]
        for i, node in enumerate(nodes):
            cactus.edge(node, nodes[(i + 1) % used], 1 if i % 2 == 0 else -1)
        return
    centre = cactus.take()
    cactus.leaf(centre, 1, 3)
    if k % 2 == 1:
        cactus.chain(cactus.square(centre, -1), -1, k - 2, used - (2 * k + 2))
    else:
        cactus.chain(centre, -1, k - 1, used - (2 * k + 1))


def _open(cactus: _Cactus, n: int, unknown: list[int]) -> None:
    """Some degree unknown, no loops, capacity 1."""
    if len(unknown) == 1:
        if n < 2:
            return
        h = (n - 2) // 2
    else:
        if n == 0:
            cactus.edge(unknown[0], unknown[1], 1)
            return
        h = max(h for h in range(max(0, n // 2 - 2), n // 2 + 1) if h == 0 or n >= 2 * h + 2 - h % 2)
    cuts = 0 if h == 0 else 2 - h % 2
    inner = cactus.path(unknown[0], n - 2 * h, unknown[-1], cuts)
    # The edges at the first inner vertex have sign -1, and equal signs are kept along the cut vertices.
    if cuts:
        cactus.chain(inner[0], 1, h - (cuts - 1))
    if cuts == 2:
        cactus.leaf(inner[1], 1, 3)


def _closed_multi(cactus: _Cactus, n: int) -> None:
    """All degrees known, no loops, any multiplicity."""
    if n < 5:
        _closed(cactus, n)
        return
    centre = cactus.take()
    cactus.leaf(centre, 1, 3)
    cactus.leaf(*cactus.doubled(centre, -1, n - 5), 3)


def _open_multi(cactus: _Cactus, n: int, unknown: list[int]) -> None:
    """Some degree unknown, no loops, any multiplicity."""
    if n < 3:
        _open(cactus, n, unknown)
        return
    root = cactus.take()
    if len(unknown) == 1:
        cactus.edge(unknown[0], root, -2)
    else:
        cactus.edge(unknown[0], root, -1)
        cactus.edge(unknown[1], root, -1)
    cactus.leaf(*cactus.doubled(root, 1, n - 3), 3)


def _looped(cactus: _Cactus, n: int, unknown: list[int], doubling: bool) -> None:
    """Loops allowed: every known node carries one, and a cycle or path joins them."""
    if n == 0 or (n == 1 and len(unknown) == 1 and not doubling):
        if unknown:
            cactus.edge(unknown[0], unknown[0], 1)
        return
    if not unknown and n < (2 if doubling else 3):
        return
    nodes = [cactus.take() for _ in range(n)]
    for node in nodes:
        cactus.edge(node, node, 1)
    if unknown and n == 1 and len(unknown) == 1:
        cactus.edge(nodes[0], unknown[0], -2)
    elif not unknown and n == 2:
        cactus.edge(nodes[0], nodes[1], -2)
    else:
        ring = [unknown[0], *nodes, unknown[-1]] if unknown else [*nodes, nodes[0]]
        for u, v in pairwise(ring):
            cactus.edge(u, v, -1)


def longest_degree_move(
    nodes: int, known: Known, *, loops: bool = False, capacity: int | None = 1
) -> tuple[int, Move]:
    """Most edges that two neighbouring graphs can differ in when some degrees are known exactly.

    Parameters
    ----------
    nodes
        Number of nodes.
    known
        The nodes whose degrees are known: a count (the first ones), a boolean array or indices.
    loops
        Whether an edge may join a node to itself, adding 2 to its degree.
    capacity
        Most copies of an edge: 1 for simple graphs, None for multigraphs. No minimal move changes an edge by more
        than 2, so any capacity above 1 is the same as None.

    Returns
    -------
    value : int
        Largest L1 norm of a minimal move, 0 when the degrees determine the graph.
    witness : list of (u, v, change)
        A minimal move of that norm, u <= v.

    Raises
    ------
    InputError
        When there is no node, or ``known`` or ``capacity`` does not fit.

    Examples
    --------
    >>> longest_degree_move(5, 5)[0], longest_degree_move(6, 5)[0], longest_degree_move(6, 3)[0]
    (6, 7, 5)
    >>> longest_degree_move(3, 1)
    (2, [(0, 1, -1), (0, 2, 1)])

    Notes
    -----
    A minimal move is a closed alternating walk, or one between unknown nodes, whose repeated nodes are cut vertices
    between exactly two blocks; with h blocks beside the first, n nodes carry n + h edges (closed) or n + 1 + h
    (between unknown nodes). How many blocks n nodes can hold is Theorem 3 of ``docs/explanation/proofs/degrees.md``:
    with all degrees known 6j, 6j, 6j + 2, 6j + 4 for V = 4j + 1 .. 4j + 4. Time O(nodes).
    """
    count = as_count(nodes, "nodes", 1)
    doubling = capacity is None or as_count(capacity, "capacity", 1) > 1
    if not isinstance(loops, (bool, np.bool_)):
        raise InputError(f"loops={loops!r}: expected True or False.", code="moves.loops", value=loops)
    mask = known_mask(known, count, "known")
    unknown = np.flatnonzero(~mask)[:2].tolist()
    cactus = _Cactus(np.flatnonzero(mask).tolist())
    n = len(cactus.nodes)
    if loops:
        _looped(cactus, n, unknown, doubling)
    elif unknown:
        (_open_multi if doubling else _open)(cactus, n, unknown)
    else:
        (_closed_multi if doubling else _closed)(cactus, n)
    return sum(abs(value) for _, _, value in cactus.edges), cactus.edges
