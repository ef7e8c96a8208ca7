"""What choosing by exact costs gains beside one and two public margins: expected errors of cubes, exact and without data.

    python benchmarks/public_facts.py [--write]

Compared with even shares of the sensitivity, which is how cuboids were weighed before. With ``--write`` the table goes into ``docs/benchmarks.md``.
"""

from __future__ import annotations

import sys
import time
from itertools import combinations
from pathlib import Path
from unittest.mock import patch

import numpy as np
import record

import policygraph as pg
from policygraph.mechanisms.cube import unequal
from policygraph.transforms.cuboids import choose, costs

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
DOMAINS = {
    "sex 2, age 7, salary 5, region 4": {"sex": 2, "age": 7, "salary": 5, "region": 4},
    "8 x 8 x 3 x 3": {"a": 8, "b": 8, "c": 3, "d": 3},
    "six of 3": {f"a{at}": 3 for at in range(6)},
}
LOSSES = {"rho = 1/2": pg.Rho("1/2"), "epsilon = 1": pg.Epsilon(1)}


def even(lattice, masks, policy, norm):
    """Even shares of the sensitivity of all candidates."""
    query = pg.queries.cuboids(lattice.domain, [lattice.names(mask) for mask in masks])
    power = float(pg.sensitivity(query, policy, norm=norm).power)
    return costs.Costs(tuple(masks), np.full((1, len(masks)), power / len(masks)), norm, exact=False)


def error(query, policy, loss):
    return (pg.Cube().calibrate(query, policy, loss).total_error / query.height) ** 0.5


def main() -> int:
    rows = []
    for words, shape in DOMAINS.items():
        domain = pg.Domain(shape)
        first, second = domain.names[:2]
        facts = {
            "the total": [pg.Total()],
            f"the table of {first}": [pg.Cuboid(first)],
            f"the tables of {first} and of {second}": [pg.Cuboid(first), pg.Cuboid(second)],
        }
        query = pg.queries.cuboids(domain, [s for k in (1, 2) for s in combinations(domain.names, k)])
        for public, listed in facts.items():
            policy = pg.Policy(domain, constraints=listed)
            for said, loss in LOSSES.items():
                start = time.process_time()
                new = error(query, policy, loss)
                seconds = time.process_time() - start
                with (
                    patch.object(choose, "costs_of", even),
                    patch.object(unequal, "changed_sets", lambda *_: None),
                ):
                    old = error(query, policy, loss)
                record.ratio(f"{words}, {public}, {said}", new / old)
                row = f"| {words} | {public} | {said} | {old:.3f} | {new:.3f} | {new / old:.3f} |"
                rows.append(row)
                print(row, f"{seconds:.1f} s", flush=True)
    text = "\n".join(
        [
            "## Cubes beside public margins",
            "",
            "Made by `python benchmarks/public_facts.py --write`; no data are needed. All tables of one and two attributes by `pg.Cube()`: root mean squared error of an answer where what is measured is chosen by even shares of the "
            "sensitivity, as before, and by the exact cost of each table. Both have the certificates of today, which are sharper for two margins than they were.",
            "",
            "| domain | public | loss | even shares | exact costs | ratio |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )
    if "--write" in sys.argv:
        record.put(PAGE, "public facts", text)
    record.save("public_facts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
