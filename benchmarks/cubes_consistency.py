"""Non-negative and whole cubes of Adult beside private-PGM, and the times of linear programs.

    python benchmarks/cubes_consistency.py [--peer] [--programs] [--seeds 3]

Reads ``adult/adult.data`` in the folder ``POLICYGRAPH_DATA`` (default: ``../shared/data`` beside the repository). ``--peer`` also fits
the graphical model of ``mbi`` to the same noisy tables (150 steps of mirror descent, some minutes each) where it is installed.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import record
from cubes import adult_counts, adult_domain, level

import policygraph as pg
from policygraph.curator.gate import draw, histogram
from policygraph.estimation.cubes.cells import all_sums
from policygraph.mechanisms.cube.mechanism import CubeNoise
from policygraph.transforms.cuboids.lattice import Lattice

STEPS = 150


def rmse(made: dict[int, np.ndarray], true: dict[int, np.ndarray], masks: list[int]) -> float:
    squares = sum(float(((made[m] - true[m]) ** 2).sum()) for m in masks)
    return float(np.sqrt(squares / sum(true[m].size for m in masks)))


class Clock:
    """Seconds of the clock and of the processors, since other work may share them."""

    def __init__(self) -> None:
        self.wall, self.busy = time.perf_counter(), time.process_time()

    def __str__(self) -> str:
        return f"{time.perf_counter() - self.wall:.1f} s ({time.process_time() - self.busy:.1f} busy)"


def peer(ready: CubeNoise, points: np.ndarray) -> tuple[dict[int, np.ndarray], str] | None:
    """The graphical model with the marginals nearest to the measured tables, after a fixed number of steps."""
    try:
        import mbi
        from mbi import estimation
    except ImportError:
        return None
    domain, lattice, start, tables = ready.query.domain, ready.lattice, 0, []
    for names, weight in zip(ready.choice.sets, ready.choice.weights, strict=True):
        size = lattice.size(lattice.mask(names))
        noisy = points[start : start + size] / weight
        start += size
        tables.append(mbi.LinearMeasurement(noisy, tuple(names), float(ready.noise.variance) ** 0.5 / weight))
    clock = Clock()
    model = estimation.MirrorDescent().estimate(mbi.Domain(domain.names, domain.shape), tables, iters=STEPS)
    made = {}
    for mask in ready.published:
        values = np.asarray(model.project(lattice.names(mask)).datavector())
        made[mask] = values.reshape(lattice.shape(mask))
    return made, str(clock)


def adult(low: int, high: int, seeds: int, *, with_peer: bool) -> None:
    counts = adult_counts()
    if counts is None:
        print("adult.data is not there: left out")
        return
    domain = adult_domain()
    lattice, policy = Lattice(domain), pg.Policy(domain)
    query = pg.queries.cuboids(domain, level(domain, low, high))
    masks = [lattice.mask(names) for names in query.sets]
    true = all_sums(lattice, counts.reshape(domain.shape), lattice.base, masks)
    print(f"\nAdult, {low}- to {high}-way tables: root mean squared error of a cell / time after the noise")
    losses = (("epsilon = 1", pg.Epsilon(1)), ("rho = 1/2", pg.Rho("1/2")))
    for said, loss in losses if high < 8 else losses[:1]:
        for strategy in ("all", "unequal") if high < 8 else ("unequal",):
            first = pg.Cube(strategy).calibrate(query, policy, loss)
            for seed in range(seeds):
                points = draw(first, histogram(first, counts), pg.SeededRng(seed))[0]
                line = f"{said:12}{strategy:9}seed {seed}"
                for name, wishes in (
                    ("least squares", {}),
                    ("non-negative", {"nonnegative": True}),
                    ("and whole", {"nonnegative": True, "whole": True}),
                ):
                    ready = pg.Cube(strategy, **wishes).on(
                        first.choice, query, policy, loss, first.sensitivity
                    )
                    clock = Clock()
                    made = ready.tables(points)
                    error, took = rmse(made, true, masks), str(clock)
                    record.ratio(
                        f"{low}- to {high}-way, {said}, {strategy}, seed {seed}, {name}, error", error
                    )
                    line += f"   {name} {error:.2f} / {took}"
                print(line, flush=True)
                if with_peer and seed == 0 and first.choice.kind == "cuboids":
                    found = peer(first, points)
                    print(
                        "            private-PGM on the same tables: "
                        + (
                            "mbi is not installed"
                            if found is None
                            else f"{rmse(found[0], true, masks):.2f} / {found[1]}"
                        ),
                        flush=True,
                    )


def programs() -> None:
    print("\nlinear programs, 14 attributes of two values (16,384 cells), tables of up to two attributes")
    domain = pg.Domain({f"a{i}": 2 for i in range(14)})
    draws = np.random.default_rng(0)
    counts = draws.multinomial(20_000, draws.dirichlet(np.full(domain.size, 0.05)))
    low = pg.queries.all_cuboids(domain, up_to=2)
    base = pg.queries.cuboids(domain, [*low.sets, domain.names])
    for query, strategy in ((low, "all"), (low, "unequal"), (low, "fourier"), (base, "all")):
        for method in ("least-absolute", "least-maximum"):
            for nonnegative in (False, True):
                cube = pg.Cube(strategy, consistency=method, nonnegative=nonnegative, whole=nonnegative)
                ready = cube.calibrate(query, pg.Policy(domain), pg.Epsilon(1))
                points = draw(ready, histogram(ready, counts), pg.SeededRng(1))[0]
                clock = Clock()
                ready.tables(points)
                rows = 0 if ready.measured is None else ready.measured.height
                print(
                    f"{strategy:9}{rows:7,} rows  {method:15}{'>= 0, whole' if nonnegative else 'free':12}"
                    f"{clock}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    adult(1, 3, given.seeds, with_peer=given.peer)
    adult(0, 8, 1, with_peer=False)
    if given.programs:
        programs()
    record.save("cubes_consistency")


if __name__ == "__main__":
    main()
