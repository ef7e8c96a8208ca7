"""Wide tables: mean total variation distance of adaptive cubes, of least squares, and of AIM and MST where they are at hand.

    python benchmarks/adaptive_cube.py [--runs 1] [--only "Adult-14, 2-way" ...] [--write]
    python benchmarks/adaptive_cube.py --peers PYTHON FOLDER [--aim]

Reads ``tables/adult14.csv`` and ``tables/nltcs.csv`` in the folder ``POLICYGRAPH_DATA`` (default: ``../shared/data`` beside the repository). Peers are not on PyPI:
PYTHON is an interpreter with what mbi needs (``pip install jax==0.4.38 jaxlib==0.4.38 chex==0.1.88 optax==0.2.4 pandas==2.2.3 scipy networkx matplotlib``: later ones break its code), FOLDER a checkout of ryan112358/private-pgm, whose ``src`` and ``mechanisms`` are used. ``--aim`` runs AIM too, which takes long.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import record

import policygraph as pg
from policygraph.curator import gate
from policygraph.curator.counting import read_data

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
DATA = (
    Path(os.environ.get("POLICYGRAPH_DATA") or Path(__file__).parent.parent.parent / "shared" / "data")
    / "tables"
)
TASKS = {"Adult-14, 2-way": ("adult14", 2), "NLTCS, 3-way": ("nltcs", 3), "Adult-14, 3-way": ("adult14", 3)}
HELD = {"Adult-14, 2-way": 0.038}
EPSILON, DELTA = 1, "1e-9"
PEER = """
import json, sys, time, itertools, numpy as np
sys.path[:0] = [sys.argv[1] + "/src", sys.argv[1] + "/mechanisms"]
method, source, sizes, degree, seed = sys.argv[2], sys.argv[3], json.loads(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6])
np.random.seed(seed)
import pandas as pd
from mbi import Dataset, Domain
rows = np.loadtxt(source, delimiter=",", skiprows=1, dtype=np.int64)
domain = Domain(list(sizes), list(sizes.values()))
data = Dataset(pd.DataFrame(rows, columns=list(sizes)), domain)
workload = list(itertools.combinations(sizes, degree))
start = time.process_time()
if method == "AIM":
    from aim import AIM
    made = AIM(1.0, 1e-9, max_model_size=1, max_iters=200).run(data, [(cl, 1.0) for cl in workload])
    made = made[1] if isinstance(made, tuple) else made
else:
    from mst import MST
    made = MST(data, 1.0, 1e-9)
seconds = time.process_time() - start
off = []
for cl in workload:
    real, fake = data.project(list(cl)).datavector(), made.project(list(cl)).datavector()
    off.append(0.5 * float(np.abs(real / real.sum() - fake / fake.sum()).sum()))
print("PEER", float(np.mean(off)), seconds)
"""


def loaded(name: str):
    """Domain and records of a set, attributes in the order of the file."""
    path = DATA / f"{name}.csv"
    with path.open(encoding="utf-8") as lines:
        names = next(csv.reader(lines))
    sizes = json.loads((DATA / f"{name}-domain.json").read_text())
    sizes = {each: sizes[each] for each in names}
    return pg.Domain(sizes), np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64), sizes


def true_table(rows, domain, names):
    axes = [domain.axis(name) for name in names]
    shape = [domain.shape[axis] for axis in axes]
    at = np.ravel_multi_index(rows[:, axes].T, shape)
    return np.bincount(at, minlength=int(np.prod(shape))) / len(rows)


def distance(rows, domain, sets, table_of) -> float:
    """Mean total variation distance of tables."""
    off = []
    for names in sets:
        made = np.asarray(table_of(names), dtype=np.float64).ravel()
        off.append(0.5 * np.abs(true_table(rows, domain, names) - made / made.sum()).sum())
    return float(np.mean(off))


def adaptive(task: str, seed: int) -> tuple[float, float, str]:
    """Distance, processor seconds, and what the model is like."""
    name, degree = TASKS[task]
    domain, rows, _ = loaded(name)
    sets = list(combinations(domain.names, degree))
    policy, loss = pg.Policy(domain), pg.EpsilonDelta(EPSILON, DELTA).to_rho()
    data = read_data(DATA / f"{name}.csv", policy, None, None)
    start = time.process_time()
    ready = pg.AdaptiveCube().calibrate(pg.queries.cuboids(domain, sets), policy, loss)
    points = gate.draw(ready, data, pg.SeededRng(seed))[0]
    model = ready.model(points)
    seconds = time.process_time() - start
    rounds = sum(code >= 0 for code, _, _ in ready.read(points))
    off = distance(rows, domain, sets, lambda names: model.table(ready.lattice.mask(names)))
    return off, seconds, f"{rounds} rounds, {model.tree.cells:,} cells"


def independent(task: str) -> float:
    """Distance of the product of the true single attributes, without any noise: what measuring no table of several attributes gives."""
    name, degree = TASKS[task]
    domain, rows, _ = loaded(name)
    ones = {one: true_table(rows, domain, [one]) for one in domain.names}

    def product(names):
        made = np.ones(1)
        for each in names:
            made = np.multiply.outer(made, ones[each])
        return made

    return distance(rows, domain, list(combinations(domain.names, degree)), product)


def peer(task: str, method: str, python: str, folder: str, seed: int) -> tuple[float, float] | None:
    name, degree = TASKS[task]
    _, _, sizes = loaded(name)
    call = [
        python,
        "-c",
        PEER,
        folder,
        method,
        str(DATA / f"{name}.csv"),
        json.dumps(sizes),
        str(degree),
        str(seed),
    ]
    made = subprocess.run(call, capture_output=True, text=True, check=False)
    found = [line.split() for line in made.stdout.splitlines() if line.startswith("PEER")]
    if not found:
        print(made.stderr[-2000:], file=sys.stderr)
        return None
    return float(found[0][1]), float(found[0][2])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(TASKS))
    parser.add_argument("--peers", nargs=2, metavar=("PYTHON", "FOLDER"))
    parser.add_argument("--aim", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    lines = []
    for task in given.only:
        base = independent(task)
        made = [adaptive(task, seed) for seed in range(given.runs)]
        offs, seconds = [m[0] for m in made], [m[1] for m in made]
        print(task, "independent", base, "adaptive", made, flush=True)
        record.ratio(f"{task}, adaptive cube, distance", float(np.mean(offs)))
        record.figure(f"{task}, adaptive cube, s", float(np.mean(seconds)))
        shown = [
            f"{base:.4f}",
            f"{np.mean(offs):.4f}" + (f" ({min(offs):.4f} to {max(offs):.4f})" if len(offs) > 1 else ""),
        ]
        for method in ("MST", "AIM"):
            found = None
            if given.peers and (method == "MST" or given.aim):
                found = peer(task, method, *given.peers, seed=0)
                print(task, method, found, flush=True)
            if found is not None:
                record.ratio(f"{task}, {method}, distance", found[0])
            shown.append("not run" if found is None else f"{found[0]:.4f} ({found[1]:.0f} s)")
        held = f"{HELD[task]}" if task in HELD else ""
        lines.append(f"| {task} | {' | '.join(shown)} | {np.mean(seconds):.0f} | {made[0][2]} | {held} |")
    record.save("adaptive_cube")
    if given.write:
        record.put(PAGE, "adaptive cubes", section(lines, given.runs))


def section(lines: list[str], runs: int) -> str:
    return "\n".join(
        [
            "## Wide tables",
            "",
            "Made by `python benchmarks/adaptive_cube.py --write` (`--only` for some of the sets), with `--peers PYTHON FOLDER` (and `--aim`) for MST and AIM of a checkout of private-pgm (PyPI has mbi 2.0.0, without these mechanisms). "
            f"All tables of two or three attributes, epsilon {EPSILON}, delta {DELTA}, one record more or less; mean total variation distance of a table, {runs} "
            f"{'run' if runs == 1 else 'runs'} of the adaptive cube and one of each peer, processor seconds. "
            "*Independent* is the product of the true single attributes, without noise.",
            "",
            "| tables | independent | `pg.AdaptiveCube()` | MST | AIM (1 MB, 200 iterations) | seconds | model | held to |",
            "|---|---|---|---|---|---|---|---|",
            *lines,
        ]
    )


if __name__ == "__main__":
    main()
