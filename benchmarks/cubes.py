"""Cubes of Adult: expected errors of every strategy beside the figures of peers, and times.

    python benchmarks/cubes.py [--quick]

Expected errors need no data; times read ``adult/adult.data`` in the folder ``POLICYGRAPH_DATA`` (default: ``../shared/data`` beside
the repository) and are left out when it is absent. Measured errors: ``cubes_errors.py``; larger cubes: ``cubes_large.py``.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import combinations
from math import prod, sqrt
from pathlib import Path

import numpy as np
import record

import policygraph as pg
from policygraph.mechanisms.cube.strategies import All, Base, BMax, PMost, Unequal
from policygraph.transforms.cuboids.choose import Choice, Task

DATA = Path(os.environ.get("POLICYGRAPH_DATA", Path(__file__).parents[2] / "shared" / "data"))
ADULT = {
    "workclass": (1, 9),
    "education": (3, 16),
    "marital": (5, 7),
    "occupation": (6, 15),
    "relationship": (7, 6),
    "race": (8, 5),
    "sex": (9, 2),
    "salary": (14, 2),
}


def adult_domain() -> pg.Domain:
    return pg.Domain({name: n for name, (_, n) in ADULT.items()})


def adult_counts() -> np.ndarray | None:
    path = DATA / "adult" / "adult.data"
    if not path.exists():
        return None
    rows = [
        line.strip().split(", ") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    codes = []
    for column, n in ADULT.values():
        labels = sorted({row[column] for row in rows})
        assert len(labels) == n
        place = {label: at for at, label in enumerate(labels)}
        codes.append(np.array([place[row[column]] for row in rows]))
    shape = adult_domain().shape
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=prod(shape))


def level(domain: pg.Domain, low: int, high: int) -> list[tuple[str, ...]]:
    return [names for k in range(low, high + 1) for names in combinations(domain.names, k)]


def variances(task: Task, choice: Choice) -> tuple[np.ndarray, np.ndarray]:
    masks = [task.lattice.mask(names) for names in choice.sets]
    weights = [float(w) for w in choice.weights]
    return task.plain(masks, weights), task.fitted(masks, weights)


def expected(policy: pg.Policy, title: str) -> float:
    domain = policy.domain
    sets = level(domain, 0, 8)
    ones = [1.0] * len(sets)
    loss = pg.Epsilon(1)
    task = Task(domain, sets, ones, policy, loss)
    print(f"\n{title}: variance of a cell at epsilon = 1, maximum / mean over the {len(sets)} cuboids")
    print(f"{'':26}{'measured':>9}{'plain':>24}{'with consistency':>24}{'seconds':>9}")
    strategies = [
        ("All", All()),
        ("Base", Base()),
        ("BMax", BMax()),
        ("BMax after least squares", BMax(fitted=True)),
    ]
    half, best = 0.0, np.inf
    for name, strategy in strategies:
        start = time.perf_counter()
        choice = strategy.choose(domain, sets, ones, policy, loss)
        plain, fitted = variances(task, choice)
        _line(title, name, choice, plain, fitted, time.perf_counter() - start)
        half = choice.objective / 2 if name == "BMax" else half
    for name, strategy in [
        ("PMost, half of BMax", PMost(bound=half)),
        ("PMost after least squares", PMost(bound=half, fitted=True)),
        ("Unequal, mean", Unequal("total")),
        ("Unequal, maximum", Unequal("max")),
    ]:
        start = time.perf_counter()
        choice = strategy.choose(domain, sets, ones, policy, loss)
        plain, fitted = variances(task, choice)
        _line(title, name, choice, plain, fitted, time.perf_counter() - start)
        best = min(best, float(fitted.mean()))
    return best


def _line(
    title: str, name: str, choice: Choice, plain: np.ndarray, fitted: np.ndarray, seconds: float
) -> None:
    record.figure(f"{title}, {name}, s", seconds)
    record.ratio(f"{title}, {name}, mean variance", fitted.mean())
    record.ratio(f"{title}, {name}, largest variance", fitted.max())
    print(
        f"{name:26}{len(choice.sets):9}{plain.max():14,.0f} /{plain.mean():8,.0f}"
        f"{fitted.max():14,.0f} /{fitted.mean():8,.0f}{seconds:9.1f}"
        + (f"   gap {100 * choice.gap:.1f} %" if choice.gap is not None else "")
    )


def workloads() -> None:
    domain = adult_domain()
    policies = {
        "add or remove one record": pg.Policy(domain),
        "attribute policy": pg.Policy(domain, pg.PolicyGraph.attribute(domain)),
        "full policy (any one record changes)": pg.Policy(domain, pg.PolicyGraph.full(domain)),
    }
    peers = {
        "1-way": (9.16, 2.396),
        "2-way": (25.39, 3.855),
        "3-way": (39.51, 4.791),
        "1- to 3-way": (41.43, 5.038),
        "all 256": (10.563, 3.232),
    }
    sets = {
        "1-way": level(domain, 1, 1),
        "2-way": level(domain, 2, 2),
        "3-way": level(domain, 3, 3),
        "1- to 3-way": level(domain, 1, 3),
        "all 256": level(domain, 0, 8),
    }
    for title, policy in policies.items():
        print(f"\n{title}: root mean squared error of a cell over the workload, unequal noise")
        print(
            f"{'':14}{'eps = 1':>9}{'HDMM':>9}{'rho = 0.5':>11}{'ResidualPl.':>12}{'gap':>9}{'least max':>11}"
        )
        for name, asked in sets.items():
            ones = [1.0] * len(asked)
            cells = sum(prod(len(domain.labels(n)) for n in names) for names in asked)
            pure = Unequal(cells=True).choose(domain, asked, ones, policy, pg.Epsilon(1))
            gauss = Unequal(cells=True).choose(domain, asked, ones, policy, pg.Rho("1/2"))
            top = Unequal("max").choose(domain, asked, ones, policy, pg.Rho("1/2"))
            record.ratio(f"{title}, {name}, error at epsilon 1", sqrt(pure.objective / cells))
            record.ratio(f"{title}, {name}, error at rho 1/2", sqrt(gauss.objective / cells))
            peer = peers[name] if title.startswith("add") else (float("nan"), float("nan"))
            print(
                f"{name:14}{sqrt(pure.objective / cells):9.3f}{peer[0]:9.2f}{sqrt(gauss.objective / cells):11.4f}"
                f"{peer[1]:12.3f}{gauss.gap or 0:9.1e}{sqrt(top.objective):11.4f}"
            )


def times() -> None:
    counts = adult_counts()
    if counts is None:
        return
    domain = adult_domain()
    query = pg.queries.all_cuboids(domain)
    print(
        "\npublishing all 256 cuboids of Adult consistently, with exact noise: seconds of choosing, of publishing"
    )
    for name in ("all", "bmax", "unequal"):
        start, worked = time.perf_counter(), time.process_time()
        ready = pg.Cube(name).calibrate(query, pg.Policy(domain), pg.Epsilon(1))
        chosen, labour = time.perf_counter() - start, time.process_time() - worked
        start, worked = time.perf_counter(), time.process_time()
        ready.run(counts, pg.SecureRng())
        record.figure(f"choosing, {name}, s", chosen)
        record.figure(f"publishing, {name}, s", time.perf_counter() - start)
        print(
            f"  {name:8} {len(ready.choice.sets):4} measured   {chosen:6.2f} s ({labour:.2f} s of a processor)   "
            f"{time.perf_counter() - start:6.2f} s ({time.process_time() - worked:.2f} s)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="expected errors only")
    chosen = parser.parse_args()
    domain = adult_domain()
    free = expected(pg.Policy(domain), "add or remove one record")
    full = expected(pg.Policy(domain, pg.PolicyGraph.full(domain)), "full policy")
    attribute = expected(pg.Policy(domain, pg.PolicyGraph.attribute(domain)), "attribute policy")
    print(
        f"\nleast mean variance: attribute policy {attribute:,.0f}, full policy {full:,.0f} ({full / attribute:.2f} times), "
        f"add or remove {free:,.0f}"
    )
    workloads()
    if not chosen.quick:
        times()
    record.save("cubes")


if __name__ == "__main__":
    main()
