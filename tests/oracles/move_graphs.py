"""Slow, literal answers about moves: kernels, conformally smaller vectors, Graver bases.

A move problem is a list of cells, each a dict row -> coefficient; a move is an integer vector over the cells that
every row sends to 0 and that no other such vector fits into, cell by cell and with its signs.
"""

from __future__ import annotations

import itertools
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence

Cell = tuple[int, int]
Rows = list[list[int]]


def table_rows(
    cells: Sequence[Cell], known_left: Iterable[int], known_right: Iterable[int], total_known: bool
) -> Rows:
    rows = [[int(left == a) for left, _ in cells] for a in known_left]
    rows += [[int(right == b) for _, right in cells] for b in known_right]
    if total_known:
        rows.append([1] * len(cells))
    return rows


def degree_rows(cells: Sequence[Cell], known: Iterable[int]) -> Rows:
    return [[(u == a) + (v == a) for u, v in cells] for a in known]


def table_cells(left: int, right: int, allowed: Callable[[int, int], bool] = lambda a, b: True) -> list[Cell]:
    return [(a, b) for a in range(left) for b in range(right) if allowed(a, b)]


def node_pairs(nodes: int, loops: bool) -> list[Cell]:
    return [(u, v) for u in range(nodes) for v in range(u if loops else u + 1, nodes)]


def in_kernel(rows: Rows, vector: Sequence[int]) -> bool:
    return all(sum(a * x for a, x in zip(row, vector)) == 0 for row in rows)


def smaller(vector: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every vector that fits into this one, cell by cell and with its signs."""
    return itertools.product(*(range(x + 1) if x >= 0 else range(x, 1) for x in vector))


def is_move(rows: Rows, vector: Sequence[int]) -> bool:
    """The definition: in the kernel, not zero, and nothing in the kernel fits in between."""
    return (
        any(vector)
        and in_kernel(rows, vector)
        and not any(
            any(part) and tuple(part) != tuple(vector) and in_kernel(rows, part) for part in smaller(vector)
        )
    )


def capped_moves(rows: Rows, cells: int, cap: int) -> list[tuple[int, ...]]:
    """All minimal moves with entries of at most ``cap``, by listing every vector."""
    kernel = [
        v for v in itertools.product(range(-cap, cap + 1), repeat=cells) if any(v) and in_kernel(rows, v)
    ]
    kernel.sort(key=lambda v: sum(map(abs, v)))
    moves: list[tuple[int, ...]] = []
    for vector in kernel:
        if not any(all(a * b >= 0 and abs(a) <= abs(b) for a, b in zip(m, vector)) for m in moves):
            moves.append(vector)
    return moves


def have_4ti2() -> bool:
    return shutil.which("4ti2-graver") is not None


def graver(rows: Rows, cells: int) -> list[tuple[int, ...]]:
    """Graver basis by an independent program, one of each pair +m, -m."""
    if cells == 0:
        return []
    rows = rows or [[0] * cells]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m"
        path.with_suffix(".mat").write_text(
            f"{len(rows)} {cells}\n" + "\n".join(" ".join(map(str, r)) for r in rows) + "\n"
        )
        subprocess.run(["4ti2-graver", "-q", str(path)], check=True, capture_output=True, timeout=600)
        lines = (pathlib.Path(folder) / "m.gra").read_text().split("\n")[1:]
    return [tuple(map(int, line.split())) for line in lines if line.strip()]


def longest(moves: Iterable[Sequence[int]], cap: int | None = None) -> int:
    norms = (sum(map(abs, m)) for m in moves if cap is None or max(map(abs, m)) <= cap)
    return max(norms, default=0)
