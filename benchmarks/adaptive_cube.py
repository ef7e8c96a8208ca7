"""Wide tables: mean total variation distance of adaptive cubes, of least squares, and of AIM and MST where they are at hand.

    python benchmarks/adaptive_cube.py [--runs 1] [--only "Adult-14, 2-way" ...] [--write]
    python benchmarks/adaptive_cube.py --peers PYTHON FOLDER [--seconds 300]
    python benchmarks/adaptive_cube.py --generated 14 30 60 [--write]

Reads ``tables/adult14.csv`` and ``tables/nltcs.csv`` in the folder ``POLICYGRAPH_DATA`` (default: ``../shared/data`` beside the repository). Peers are not on PyPI:
PYTHON is an interpreter with what mbi needs (``pip install jax==0.4.38 jaxlib==0.4.38 chex==0.1.88 optax==0.2.4 attrs pandas==2.2.3 scipy networkx matplotlib``: later ones break its code), FOLDER a checkout of ryan112358/private-pgm, whose ``src`` and ``mechanisms`` are used. AIM takes hours with
its own settings, and is run for tasks that are held to a figure only: a peer is stopped after so many seconds of a processor, and the table then says which part of its budget it had spent. ``--runs`` is for what is held to a figure; other tasks are run once. ``--generated`` takes generated records of so many attributes instead: a whole release with its stated errors, and synthetic records from it.
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
import pyarrow as pa

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import record  # noqa: E402

import policygraph as pg  # noqa: E402
from policygraph.curator import gate  # noqa: E402
from policygraph.curator.counting import read_data  # noqa: E402
from tests.oracles import wide  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
DATA = Path(os.environ.get("POLICYGRAPH_DATA") or ROOT.parent / "shared" / "data") / "tables"
TASKS = {"Adult-14, 2-way": ("adult14", 2), "NLTCS, 3-way": ("nltcs", 3), "Adult-14, 3-way": ("adult14", 3)}
HELD = {"Adult-14, 2-way": 0.038}
EPSILON, DELTA = 1, "1e-9"
FIRST = 100
"""The first seed; smaller ones were looked at while the mechanism was made."""
PEER = """
import json, resource, sys, time, itertools, numpy as np
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[7]), int(sys.argv[7])))
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
    off = wide.distance(rows, domain, sets, lambda names: model.table(ready.lattice.mask(names)))
    return off, seconds, f"{rounds} rounds, {model.tree.cells:,} cells"


def independent(task: str) -> float:
    """Distance of the product of the true single attributes, without any noise: what measuring no table of several attributes gives."""
    name, degree = TASKS[task]
    domain, rows, _ = loaded(name)
    return wide.independent(rows, domain, list(combinations(domain.names, degree)))


def generated(attributes: int) -> str:
    """A row: a whole release of all pairs of generated attributes, where each depends on one before it, and synthetic records from it."""
    domain, rows = wide.records("tree", wide.mixed_sizes(attributes, 8, FIRST), 20_000, FIRST)
    sets = list(combinations(domain.names, 2))
    data = pa.table({name: rows[:, at] for at, name in enumerate(domain.names)})
    rho = pg.EpsilonDelta(EPSILON, DELTA).to_rho().value
    query, policy = pg.queries.cuboids(domain, sets), pg.Policy(domain)
    start = time.process_time()
    made = pg.release(query, policy, data, rho=rho, mechanism=pg.AdaptiveCube(), rng=pg.SeededRng(FIRST))
    released = time.process_time() - start
    start = time.process_time()
    records = pg.synthetic_records(made)
    synthesised = time.process_time() - start
    tables = {table.columns: table.values for table in made.tables}
    figures = [
        wide.independent(rows, domain, sets),
        wide.distance(rows, domain, sets, lambda names: tables[tuple(names)]),
        wide.distance(rows, domain, sets, lambda names: records.counts(*names)),
    ]
    for what, figure in zip(("independent", "adaptive cube", "records"), figures, strict=True):
        record.ratio(f"{attributes} generated attributes, {what}, distance", figure)
    record.figure(f"{attributes} generated attributes, release, s", released)
    record.figure(f"{attributes} generated attributes, records, s", synthesised)
    rounds = len(made.record["adaptive"]["measured"])
    shown = " | ".join(f"{figure:.4f}" for figure in figures)
    return f"| {attributes} | {len(sets):,} | {shown} | {rounds} | {released:.0f} | {synthesised:.0f} |"


def peer(task: str, method: str, python: str, folder: str, seed: int, seconds: int) -> str:
    """What a peer reached: distance and seconds, or the part of its budget that it had spent when it was stopped."""
    name, degree = TASKS[task]
    _, _, sizes = loaded(name)
    call = [
        python,
        "-u",
        "-c",
        PEER,
        folder,
        method,
        str(DATA / f"{name}.csv"),
        json.dumps(sizes),
        str(degree),
        str(seed),
        str(seconds),
    ]
    made = subprocess.run(call, capture_output=True, text=True, check=False)
    found = [line.split() for line in made.stdout.splitlines() if line.startswith("PEER")]
    if found:
        record.ratio(f"{task}, {method}, distance", float(found[0][1]))
        return f"{float(found[0][1]):.4f} ({float(found[0][2]):.0f} s)"
    print(made.stderr[-2000:], file=sys.stderr)
    spent = [line.split() for line in made.stdout.splitlines() if line.startswith("Budget Used")]
    part = f", {100 * float(spent[-1][2]) / float(spent[-1][4]):.0f} % of its budget spent" if spent else ""
    return f"stopped after {seconds} s{part}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(TASKS))
    parser.add_argument("--peers", nargs=2, metavar=("PYTHON", "FOLDER"))
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--generated", nargs="+", type=int)
    given = parser.parse_args()
    lines: list[str] = []
    if given.generated:
        for attributes in given.generated:
            lines.append(generated(attributes))
            print(lines[-1], flush=True)
        if given.write:
            record.put(PAGE, "generated wide tables", generated_section(lines))
        record.save("adaptive_cube")
        return
    for task in given.only:
        base = independent(task)
        runs = given.runs if task in HELD else 1
        made = [adaptive(task, FIRST + run) for run in range(runs)]
        offs, seconds = [m[0] for m in made], [m[1] for m in made]
        print(task, "independent", base, "adaptive", made, flush=True)
        record.ratio(f"{task}, adaptive cube, distance", float(np.mean(offs)))
        record.figure(f"{task}, adaptive cube, s", float(np.mean(seconds)))
        shown = [
            f"{base:.4f}",
            f"{np.mean(offs):.4f}"
            + (f" ({min(offs):.4f} to {max(offs):.4f}, {len(offs)} runs)" if len(offs) > 1 else ""),
        ]
        for method in ("MST", "AIM"):
            found = "not run"
            if given.peers and (method == "MST" or task in HELD):
                found = peer(task, method, *given.peers, seed=FIRST, seconds=given.seconds)
                print(task, method, found, flush=True)
            shown.append(found)
        held = f"{HELD[task]}" if task in HELD else ""
        lines.append(f"| {task} | {' | '.join(shown)} | {np.mean(seconds):.0f} | {made[0][2]} | {held} |")
        if given.write:
            record.put(PAGE, "adaptive cubes", section(lines, given.runs))
    record.save("adaptive_cube")


def section(lines: list[str], runs: int) -> str:
    """The section with these rows, and with those that the page has of other tasks."""
    page = PAGE.read_text(encoding="utf-8").partition("<!-- adaptive cubes: begin -->")[2]
    old = page.partition("<!-- adaptive cubes: end -->")[0].splitlines()
    rows = {row.split(" | ")[0]: row for row in [*old, *lines]}
    lines = [rows[f"| {task}"] for task in TASKS if f"| {task}" in rows]
    return "\n".join(
        [
            "## Wide tables",
            "",
            f"Made by `python benchmarks/adaptive_cube.py --write --runs {runs}` (`--only` for some of the sets), with `--peers PYTHON FOLDER` for MST and AIM of a checkout of private-pgm (PyPI has mbi 2.0.0, without these mechanisms). "
            f"All tables of two or three attributes, epsilon {EPSILON}, delta {DELTA}, one record more or less; mean total variation distance of a table, one run where no number is said, "
            "processor seconds. A peer that takes too long is stopped, and what it had spent of its budget is said. "
            "*Independent* is the product of the true single attributes, without noise.",
            "",
            "| tables | independent | `pg.AdaptiveCube()` | MST | AIM (1 MB, 200 iterations) | seconds | model | held to |",
            "|---|---|---|---|---|---|---|---|",
            *lines,
        ]
    )


def generated_section(lines: list[str]) -> str:
    """The section on generated records."""
    return "\n".join(
        [
            f"Made by `python benchmarks/adaptive_cube.py --generated 14 30 60 --write`. Generated records, 20,000 of each: attributes of 2 to 8 values, each of which depends on one before it; all tables of two attributes, epsilon {EPSILON}, "
            f"delta {DELTA}, one record more or less. Mean total variation distance of a table: of the product of the true single attributes, of `pg.AdaptiveCube()`, and of `pg.synthetic_records` from it; "
            "processor seconds of the whole release, with calibration, counting and stated errors, and of the records. One run.",
            "",
            "| attributes | tables | independent | released tables | synthetic records | rounds | release, s | records, s |",
            "|---|---|---|---|---|---|---|---|",
            *lines,
        ]
    )


if __name__ == "__main__":
    main()
