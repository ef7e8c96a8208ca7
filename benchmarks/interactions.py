"""Interactions of many binary attributes, offsets of their counts, and linear programs over many cells.

    python benchmarks/interactions.py [--write]

Needs no data but generated ones. With ``--write`` the tables go into ``docs/benchmarks.md`` as well. The exit status is 1 if a figure misses what it is held to.
"""

from __future__ import annotations

import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import record

import policygraph as pg
from policygraph.estimation.cubes.finest import program_cells
from policygraph.mechanisms.cube.strategies import Fourier
from policygraph.transforms.cuboids.choose import Choice
from policygraph.transforms.cuboids.lattice import Lattice

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
MOST_OFFSET = 1060


def binary(k: int) -> pg.Domain:
    return pg.Domain({f"a{at}": 2 for at in range(k)})


def policies(domain: pg.Domain) -> dict[str, pg.Policy]:
    ones = [pg.Cuboid(name) for name in domain.names]
    return {
        "one record more or less": pg.Policy(domain),
        "one record changed": pg.Policy(domain, pg.PolicyGraph.full(domain)),
        "one attribute changed": pg.Policy(domain, pg.PolicyGraph.attribute(domain)),
        "a0 x a1 public": pg.Policy(domain, constraints=[pg.Cuboid("a0", "a1")]),
        "a0, a1 x a2 public": pg.Policy(domain, constraints=[pg.Cuboid("a0"), pg.Cuboid("a1", "a2")]),
        "all single ones public, at most 2 records": pg.Policy(domain, constraints=ones, at_most_records=2),
    }


def interactions() -> tuple[list[str], bool]:
    rows, good = [], True
    for k in (20, 30, 40):
        domain = binary(k)
        for order in (1, 2, 3):
            query = pg.queries.cuboids(domain, list(combinations(domain.names, order)))
            for name, policy in policies(domain).items():
                shown, seconds = [], 0.0
                for loss in (pg.Epsilon(1), pg.Rho("1/2")):
                    for even in (True, False):
                        if not even and policy.constraints and "a0 x a1" not in name:
                            shown.append("-")
                            continue
                        start = time.process_time()
                        ready = pg.Cube(Fourier(even=even)).calibrate(query, policy, loss)
                        seconds = max(seconds, time.process_time() - start)
                        if even and isinstance(loss, pg.Epsilon):
                            proof = ready.sensitivity
                            known = proof.kind == "exact" or proof.lower_power
                            power = (
                                f"{int(proof.power):,}"
                                if proof.kind == "exact"
                                else f"at most {int(proof.power):,}"
                            )
                            power += (
                                ""
                                if proof.kind == "exact" or not known
                                else f" (attained {int(proof.lower_power):,})"
                            )
                            good &= proof.kind == "exact" or bool(policy.constraints)
                        spread = [np.max(ready.deviation(part)) for part in range(len(query.parts))]
                        shown.append(f"{max(spread):.4g}")
                rows.append(f"| {k} | {order} | {name} | {power} | {' | '.join(shown)} | {seconds:.1f} |")
                print(rows[-1], flush=True)
                record.figure(f"{k}, order {order}, {name}, s", seconds)
    return rows, good


def offsets() -> tuple[list[str], bool]:
    rows, good, domain = [], True, binary(20)
    query = pg.queries.cuboids(domain, list(combinations(domain.names, 2)))
    for strategy in ("all", "fourier", "bmax", "unequal"):
        ready = pg.Cube(strategy, offset="1/100").calibrate(query, pg.Policy(domain), pg.Epsilon(1))
        added = ready.shift * 2**18
        deviation = max(float(np.max(ready.deviation(part))) for part in range(len(query.parts)))
        rows.append(f"| `{strategy}` | {deviation:.1f} | {added:,.0f} |")
        print(rows[-1], flush=True)
        record.ratio(f"offset, {strategy}", added)
        good &= added <= MOST_OFFSET
    return rows, good


def programs() -> list[str]:
    rows = []
    for k in (14, 16, 18):
        lattice = Lattice(binary(k))
        random = np.random.default_rng(k)
        records = random.random((5000, k)) < 0.1 + 0.6 * random.random((5000, 1))
        masks = [m for m in range(1 << k) if m.bit_count() == 2]
        noisy = {}
        for mask in masks:
            pair = records[:, lattice.axes(mask)] @ np.array([2, 1])
            noisy[mask] = np.bincount(pair, minlength=4) + np.rint(random.laplace(0, len(masks), 4)).astype(
                int
            )
        choice = Choice(tuple(lattice.names(m) for m in masks), (1,) * len(masks))
        for method in ("least-maximum", "least-absolute"):
            start = time.process_time()
            x = program_cells(method, lattice, lattice.base, choice, noisy, {}, nonnegative=True)
            seconds = time.process_time() - start
            rows.append(f"| {1 << k:,} | {method} | {int((x > 0).sum())} | {seconds:.1f} |")
            print(rows[-1], flush=True)
            record.figure(f"{method}, {1 << k} cells, s", seconds)
    return rows


def main() -> int:
    shifts, good = offsets()
    tables, exact = interactions()
    solved = programs()
    text = "\n".join(
        [
            "## Interactions of many attributes",
            "",
            "Made by `python benchmarks/interactions.py --write`. All tables of so many of k binary attributes, from their interactions (Fourier coefficients), with the same weight for each or the best precisions for `rho`: sensitivity in L1 for equal weights, "
            "largest standard deviation of a count, and processor seconds of the slowest calibration. No best precisions are known beside two and more public tables.",
            "",
            "| k | attributes of a table | policy | sensitivity | epsilon 1, equal | best | rho 1/2, equal | best | s |",
            "|---|---|---|---|---|---|---|---|---|",
            *tables,
            "",
            "What `offset='1/100'` adds to a count of a pair of 20 binary attributes, all 190 pairs, epsilon 1, one record more or less: with probability 99 % none of the 760 published counts is negative. Held to: at most 1,060.",
            "",
            "| strategy | standard deviation | shift |",
            "|---|---|---|",
            *shifts,
            "",
            "Non-negative tables of least maximal or least absolute deviation from all noisy pairs of 14, 16 and 18 binary attributes (5,000 generated records, epsilon 1): finest cells, cells that are not 0, processor seconds. The first is one program over all cells; the others generate "
            "their cells and prove the optimum to a millionth.",
            "",
            "| cells | deviation | not 0 | s |",
            "|---|---|---|---|",
            *solved,
        ]
    )
    if "--write" in sys.argv:
        record.put(PAGE, "interactions", text)
    record.save("interactions")
    good &= exact
    print("all as held to" if good else "MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
