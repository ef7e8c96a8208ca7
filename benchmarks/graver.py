"""Minimal moves against 4ti2-graver, in one run.

    python benchmarks/graver.py speed     # the base-cuboid sensitivities, ours and theirs
    python benchmarks/graver.py counts    # every set of cuboids on small tables: same number, same sensitivity

``counts`` tries all antichains of cuboids (no cuboid inside another) of up to 4 attributes with 2 or 3 values and up
to 24 cells, up to renaming attributes; 4ti2 gets ``--minute`` seconds for each.
The compiled loop is compiled (or loaded from its cache) before the clock starts, and the time for that is printed.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

import numpy as np
import record

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from policygraph.moves.graver.basis import graver_basis
from policygraph.moves.graver.longest import longest_move
from tests.oracles import fourti2
from tests.oracles.graver import margins

SPEED = [
    ("3x3x4, all two-way margins", (3, 3, 4), [(0, 1), (1, 2), (0, 2)]),
    ("2x3x4, one-way margins", (2, 3, 4), [(0,), (1,), (2,)]),
    ("2x2x2x3, one-way margins", (2, 2, 2, 3), [(0,), (1,), (2,), (3,)]),
    ("3x3x3, one-way margins", (3, 3, 3), [(0,), (1,), (2,)]),
]


def warm_up() -> float:
    start = time.perf_counter()
    graver_basis(margins((2, 3, 3), [(0,), (1,), (2,)]))
    return time.perf_counter() - start


def speed(timeout: float) -> None:
    print(f"loading the compiled loop: {warm_up():.1f} s (not counted below)")
    print(
        f"{'case':30} {'S':>4} {'ours: S':>9} {'all moves':>10} {'moves':>8} {'4ti2':>9} {'ratio S':>8} {'ratio all':>9}"
    )
    for name, shape, cuboids in SPEED:
        matrix = margins(shape, cuboids)
        start = time.perf_counter()
        bracket = longest_move(matrix)
        middle = time.perf_counter()
        moves = graver_basis(matrix)
        end = time.perf_counter()
        theirs = fourti2.graver(matrix, timeout=timeout) if fourti2.PROGRAM else None
        their_time = time.perf_counter() - end
        if theirs is not None:
            same = (
                len(theirs) == len(moves)
                and np.abs(theirs).sum(axis=1).max() == bracket.lower == bracket.upper
            )
            assert same, (name, len(theirs), len(moves), bracket)
        record.figure(f"{name}: sensitivity, s", middle - start)
        record.figure(f"{name}: all moves, s", end - middle)
        record.ratio(f"{name}: minimal moves", len(moves))
        if theirs is not None:
            record.ratio(f"{name}: times as fast as 4ti2", their_time / (end - middle))
        says = f"{their_time:.2f} s" if theirs is not None else f"> {timeout:.0f} s"
        print(
            f"{name:30} {bracket.lower:>4} {middle - start:>7.2f} s {end - middle:>8.2f} s {len(moves):>8} {says:>9} "
            f"{their_time / (middle - start):>8.1f} {their_time / (end - middle):>9.1f}"
        )


def antichains(k: int) -> list[list[tuple[int, ...]]]:
    """All sets of cuboids of k attributes, the total among them, in which none lies inside another."""
    cuboids = [c for size in range(k + 1) for c in itertools.combinations(range(k), size)]
    found: list[list[tuple[int, ...]]] = [[]]
    for cuboid in cuboids:
        found += [
            [*chain, cuboid]
            for chain in found
            if not any(set(other) <= set(cuboid) or set(cuboid) <= set(other) for other in chain)
        ]
    return found


def cases() -> list[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    result = []
    seen = set()
    for k in range(1, 5):
        for shape in itertools.combinations_with_replacement((2, 3), k):
            if np.prod(shape) > 24:
                continue
            for chain in antichains(k):
                # Renaming attributes of equal size gives the same problem.
                name = min(
                    tuple(sorted(tuple(sorted(order[a] for a in cuboid)) for cuboid in chain))
                    for order in itertools.permutations(range(k))
                    if all(shape[order[a]] == shape[a] for a in range(k))
                )
                if (shape, name) not in seen:
                    seen.add((shape, name))
                    result.append((shape, [tuple(cuboid) for cuboid in name]))
    return result


def counts(minute: float, limit: int | None) -> None:
    warm_up()
    todo = cases()
    agreed = unfinished = 0
    ours_total = theirs_total = 0.0
    for shape, cuboids in todo[:limit]:
        matrix = margins(shape, cuboids)
        start = time.perf_counter()
        theirs = fourti2.graver(matrix, timeout=minute)
        middle = time.perf_counter()
        if theirs is None:
            unfinished += 1
            print(f"{shape} {cuboids}: 4ti2 did not finish in {minute:.0f} s", flush=True)
            continue
        moves = graver_basis(matrix)
        bracket = longest_move(matrix)
        end = time.perf_counter()
        theirs_total += middle - start
        ours_total += end - middle
        longest = int(np.abs(theirs).sum(axis=1).max(initial=0))
        if len(moves) != len(theirs) or (bracket.lower, bracket.upper) != (longest, longest):
            raise SystemExit(
                f"{shape} {cuboids}: {len(moves)} moves, {bracket}; 4ti2: {len(theirs)}, {longest}"
            )
        agreed += 1
        print(f"{shape} {cuboids}: {len(moves)} moves, S = {longest}", flush=True)
    record.figure("counts, s", ours_total)
    record.ratio("sets that agree with 4ti2", agreed)
    print(
        f"{agreed} sets of cuboids agree, {unfinished} not finished by 4ti2; {ours_total:.0f} s, 4ti2 {theirs_total:.0f} s"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["speed", "counts"])
    parser.add_argument("--minute", type=float, default=60.0, help="seconds for 4ti2 on each set of cuboids")
    parser.add_argument("--timeout", type=float, default=400.0, help="seconds for 4ti2 on each speed case")
    parser.add_argument("--limit", type=int, help="only the first so many sets of cuboids")
    options = parser.parse_args()
    if options.what == "speed":
        speed(options.timeout)
    else:
        counts(options.minute, options.limit)
    record.save(f"graver-{options.what}")
