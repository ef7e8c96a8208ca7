"""Time and value of the sensitivity of the histogram under a policy graph and exact public facts.

Run ``PYTHONPATH=. python benchmarks/blowfish.py``; every line is one policy, one set of facts, one bracket. The last lines compare
the search with the literal definition on the same case in the same run.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence

import record

from policygraph.effort import SECOND, Effort
from policygraph.moves.blowfish.longest import Bracket, ClassFacts, longest_blowfish, longest_disjoint
from tests.oracles import blowfish as oracle

Matrix = list[list[int]]
Graph = list[list[bool]]


def line(k: int, theta: int = 1) -> Graph:
    return [[0 < abs(i - j) <= theta for j in range(k)] for i in range(k)]


def full(k: int) -> Graph:
    return [[i != j for j in range(k)] for i in range(k)]


def attribute(shape: Sequence[int]) -> Graph:
    cells = list(itertools.product(*map(range, shape)))
    return [[sum(a != b for a, b in zip(x, y)) == 1 for y in cells] for x in cells]


def margins(shape: Sequence[int], cuboids: Sequence[Sequence[int]]) -> Matrix:
    cells = list(itertools.product(*map(range, shape)))
    return [
        [int(all(cell[a] == v for a, v in zip(cuboid, values))) for cell in cells]
        for cuboid in cuboids
        for values in itertools.product(*(range(shape[a]) for a in cuboid))
    ]


def million(kind: str, side: int = 1000) -> ClassFacts:
    """A table of side x side cells with the first margin known."""
    return ClassFacts(
        sizes=(side,) * side,
        members=lambda c: ((c, j) for j in range(side)),
        is_edge=lambda x, y: kind == "full" or (x[0] == y[0]) != (x[1] == y[1]),  # type: ignore[index]
        crossing=lambda: (((a, j), (a + 1, j)) for a in range(side - 1) for j in range(side)),
        inside=lambda: (((a, 0), (a, 1)) for a in range(side)),
        label=lambda x: x[0],  # type: ignore[index]
        complete=kind == "full",
    )


def show(name: str, run: Callable[[], Bracket]) -> None:
    start = time.perf_counter()
    bracket = run()
    seconds = time.perf_counter() - start
    value = str(bracket.lower) if bracket.exact else f"{bracket.lower} .. {bracket.upper}"
    record.figure(f"{name}, s", seconds)
    record.ratio(f"{name}, upper bound", bracket.upper)
    print(f"{name:46} {value:>12}  {bracket.method:18} {seconds:8.3f} s")


def main() -> None:
    two = [[1] * 100 + [0] * 100, [0] * 50 + [1] * 100 + [0] * 50]
    for name, matrix, graph, work in (
        ("2x2x2 attribute, A and B", margins((2, 2, 2), [[0], [1]]), attribute((2, 2, 2)), None),
        ("2x2x2 attribute, A and B and C", margins((2, 2, 2), [[0], [1], [2]]), attribute((2, 2, 2)), None),
        ("2x2x2 full, A and B and C", margins((2, 2, 2), [[0], [1], [2]]), full(8), None),
        (
            "2x2x2 attribute, AB and BC and AC",
            margins((2, 2, 2), [[0, 1], [1, 2], [0, 2]]),
            attribute((2, 2, 2)),
            None,
        ),
        ("2x3 attribute, A and B", margins((2, 3), [[0], [1]]), attribute((2, 3)), None),
        ("line of 200, two overlapping ranges", two, line(200), None),
        (
            "2x2x2 attribute, AB and BC, 10^7 units",
            margins((2, 2, 2), [[0, 1], [1, 2]]),
            attribute((2, 2, 2)),
            10 * SECOND,
        ),
        ("3x3 attribute, A and B, 10^7 units", margins((3, 3), [[0], [1]]), attribute((3, 3)), 10 * SECOND),
    ):
        show(name, lambda m=matrix, g=graph, s=work: longest_blowfish(m, g, effort=s and Effort(s)))  # type: ignore[misc]
    for kind in ("full", "attribute"):
        show(f"10^6 cells, {kind}, A", lambda k=kind: longest_disjoint(million(k)))  # type: ignore[misc]
    matrix, graph = margins((2, 2, 2), [[0], [1]]), attribute((2, 2, 2))
    start = time.perf_counter()
    literal = oracle.sensitivity(matrix, graph, 4)
    slow = time.perf_counter() - start
    start = time.perf_counter()
    bracket = longest_blowfish(matrix, graph)
    fast = time.perf_counter() - start
    record.ratio("literal definition, times slower", slow / fast)
    print(
        f"literal definition, 4 records: {literal} in {slow:.3f} s; all sizes: {bracket.upper}, {slow / fast:.0f} times faster"
    )


if __name__ == "__main__":
    main()
    record.save("blowfish")
