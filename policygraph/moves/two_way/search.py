"""The longest minimal move over a short list of cells, by listing all cycles of the move graph.

Owns the exhaustive search that settles what is too small for a closed form.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from policygraph.moves.degrees.reading import Move

__all__ = ["longest_cycle"]


def longest_cycle(
    cells: Sequence[tuple[int, int]],
    known_left: Collection[int],
    known_right: Collection[int],
    total_known: bool,
) -> Move:
    """Longest cycle of the move graph on the given cells; its time is exponential in the number of known vertices.

    Parameters
    ----------
    cells
        The cells (left, right) that may change.
    known_left, known_right
        Vertices with a known sum.
    total_known
        Whether the sum of all cells is known.

    Returns
    -------
    list of (left, right, +1 or -1)
        A longest minimal move, empty when there is none.

    Examples
    --------
    >>> longest_cycle([(0, 1), (0, 2)], {0}, set(), False)
    [(0, 1, 1), (0, 2, -1)]
    """
    ground_left = ("ground", 0)
    ground_right = ("ground", 1) if total_known else ground_left
    graph: dict[tuple[str, int], dict[tuple[str, int], list[tuple[int, int]]]] = {}
    for a, b in cells:
        u = ("left", a) if a in known_left else ground_left
        v = ("right", b) if b in known_right else ground_right
        # A cycle uses one cell between two vertices, or two when it has no other vertex.
        for x, y in dict.fromkeys([(u, v), (v, u)]):
            parallel = graph.setdefault(x, {}).setdefault(y, [])
            if len(parallel) < 2:
                parallel.append((a, b))

    best: list[tuple[int, int]] = []
    path: list[tuple[int, int]] = []
    seen: set[tuple[str, int]] = set()

    def walk(start: tuple[str, int], here: tuple[str, int]) -> None:
        nonlocal best
        for there, parallel in graph[here].items():
            if there == start:
                cell = next((c for c in parallel if c not in path), None)
                if cell is not None and len(path) + 1 > len(best):
                    best = [*path, cell]
            elif there > start and there not in seen:
                seen.add(there)
                path.append(parallel[0])
                walk(start, there)
                path.pop()
                seen.remove(there)

    for start in sorted(graph):
        walk(start, start)
    # A shared ground vertex comes first in the order, so it can only be the start, where signs are free; at every
    # other vertex the two cells of the cycle cancel.
    return [(a, b, 1 if i % 2 == 0 else -1) for i, (a, b) in enumerate(best)]
