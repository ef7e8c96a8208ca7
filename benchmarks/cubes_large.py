"""Larger cubes: ten attributes published whole, wide tables of low order, lists of large cells, and time against size.

    python benchmarks/cubes_large.py ten [all bmax unequal]
    python benchmarks/cubes_large.py wide [--rows 1000000] [--attributes 24] [--order 2] [--strategy unequal] [--rho 1/2]
    python benchmarks/cubes_large.py sparse [--rows 1000000]
    python benchmarks/cubes_large.py linear [--plot FILE.png]

Seconds are of the clock and, in brackets, of a processor. Memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import record
from cubes import ADULT

import policygraph as pg
from policygraph.curator.counting import count_cells
from policygraph.curator.gate import draw, histogram
from policygraph.transforms.cuboids.choose import Choice

SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16) * 2


@contextmanager
def timed(what: str) -> Iterator[None]:
    start, worked = time.perf_counter(), time.process_time()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    record.figure(f"{what}, s", time.perf_counter() - start)
    record.figure("peak, GB", peak)
    print(
        f"  {what:34}{time.perf_counter() - start:8.1f} s ({time.process_time() - worked:.1f} s)   peak {peak:.2f} GB",
        flush=True,
    )


def ten(strategies: list[str]) -> None:
    domain = pg.Domain({name: n for name, (_, n) in ADULT.items()} | {"ninth": 4, "tenth": 4})
    query = pg.queries.all_cuboids(domain)
    counts = np.zeros(domain.size, dtype=np.int64)
    np.add.at(counts, np.random.default_rng(0).integers(0, domain.size, 100_000), 1)
    print(f"{len(query.sets)} cuboids, {query.height:,} cells")
    for name in strategies:
        with timed(f"{name}: choosing"):
            ready = pg.Cube(name).calibrate(query, pg.Policy(domain), pg.Epsilon(1))
        with timed(f"{name}: {len(ready.choice.sets)} measured, published"):
            made = ready.run(counts, pg.SecureRng())
        base, first = made.cuboid(*domain.names).values.reshape(domain.shape), domain.names[:4]
        agree = bool(np.array_equal(base.sum(axis=tuple(range(4, 10))).ravel(), made.cuboid(*first).values))
        print(f"  tables agree to the last bit: {agree}")
        del made, base


def write_rows(path: Path, rows: int, sizes: tuple[int, ...]) -> None:
    import duckdb

    columns = ", ".join(
        f"CAST(floor({n} * pow(random(), {1 + at % 3})) AS INTEGER) AS a{at}" for at, n in enumerate(sizes)
    )
    duckdb.sql(f"COPY (SELECT {columns} FROM range({rows})) TO '{path}' (FORMAT parquet)")


def wide(rows: int, attributes: int, order: int, strategy: str, rho: str | None) -> None:
    sizes = tuple((SIZES * 3)[:attributes])
    domain = pg.Domain({f"a{at}": n for at, n in enumerate(sizes)})
    query = pg.queries.all_cuboids(domain, up_to=order)
    print(
        f"{rows:,} rows, {attributes} attributes, {domain.size:.3g} base cells; {len(query.sets):,} tables of up to {order} attributes, "
        f"{query.height:,} cells"
    )
    loss = pg.Epsilon(1) if rho is None else pg.Rho(rho)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_rows(path, rows, sizes)
        with timed("choosing"):
            ready = pg.Cube(strategy).calibrate(query, pg.Policy(domain), loss)
        with timed("checking the records"):
            counts = count_cells(str(path), domain, name="wide")
        with timed("counting and noise"):
            points = draw(ready, histogram(ready, counts), pg.SecureRng())[0]
        with timed("consistent tables"):
            made = ready.publish(points, pg.SecureRng().randomness)
    errors = [float(np.asarray(table.deviation)) for table in made.tables]
    print(
        f"  {len(ready.choice.sets):,} {ready.choice.kind} measured; standard deviations {min(errors):.3g} to {max(errors):.3g}"
    )


def sparse(rows: int) -> None:
    domain = pg.Domain({f"a{at}": n for at, n in enumerate(SIZES)})
    print(f"{rows:,} rows, the cells of {domain.size:.3g} with a noisy count above a threshold, epsilon = 1")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_rows(path, rows, SIZES)
        with timed("checking the records"):
            counts = count_cells(str(path), domain, name="wide")
        for names in (domain.names, domain.names[:12]):
            query = pg.queries.cuboids(domain, [names])
            ready = pg.Sparse(spurious=1000).calibrate(query, pg.Policy(domain), pg.Epsilon(1))
            with timed(f"{len(names)} attributes, {query.height:.3g} cells"):
                made = ready.run(counts, pg.SecureRng())
            print(
                f"  threshold {ready.threshold}: {len(made.values()):,} cells listed, {ready.spurious:.4g} expected if all were empty"
            )


def linear(plot: str | None) -> None:
    by_cells: dict[str, list[tuple[float, float]]] = {"all measured": [], "one measured": []}
    for shape in ((4,) * 5, (5,) * 6, (6,) * 6, (6,) * 7, (7,) * 7, (8,) * 7, (9,) * 7):
        domain = pg.Domain({f"a{at}": n for at, n in enumerate(shape)})
        query = pg.queries.all_cuboids(domain)
        for name, strategy in (("all measured", "all"), ("one measured", "base")):
            ready = pg.Cube(strategy).calibrate(query, pg.Policy(domain), pg.Epsilon(1))
            by_cells[name].append((float(query.height), _seconds(ready, domain)))
            record.figure(f"{name}, {query.height} cells, processor s", by_cells[name][-1][1])
            print(f"  {name}: {query.height:12,} published cells {by_cells[name][-1][1]:8.3f} s", flush=True)
    domain = pg.Domain({f"a{at}": n for at, n in enumerate((6,) * 7)})
    query = pg.queries.all_cuboids(domain)
    order = sorted(query.sets, key=len, reverse=True)
    by_measured: list[tuple[float, float]] = []
    for many in (1, 8, 16, 32, 64, 96, 128):
        choice = Choice(tuple(order[:many]), (1,) * many)
        ready = pg.Cube().on(choice, query, pg.Policy(domain), pg.Epsilon(1))
        by_measured.append((float(many), _seconds(ready, domain)))
        print(f"  {many} measured: {by_measured[-1][1]:8.3f} s", flush=True)
    for name, points in by_cells.items():
        large = np.log(np.array(points[-4:]))
        power = np.polyfit(large[:, 0], large[:, 1], 1)[0]
        record.ratio(f"{name}, power of cells that the time grows with", power)
        print(f"  {name}: time grows as cells to the power {power:.2f}")
    if plot:
        _plot(by_cells, by_measured, plot)


def _seconds(ready, domain: pg.Domain) -> float:
    """Least processor time of three runs: other work on the machine does not count."""
    counts = np.ones(domain.size, dtype=np.int64)
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        ready.run(counts, pg.SecureRng())
        best = min(best, time.process_time() - start)
    return float(best)


def _plot(by_cells, by_measured, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.2))
    for name, points in by_cells.items():
        axes[0].plot(*zip(*points, strict=True), marker="o", label=name)
    last = by_cells["all measured"][-1]
    line = np.array([point[0] for point in by_cells["all measured"]])
    axes[0].plot(line, line * last[1] / last[0], color="grey", linestyle=":", label="in proportion to cells")
    axes[0].set(xscale="log", yscale="log", xlabel="published cells", ylabel="seconds of a processor")
    axes[0].legend(frameon=False)
    axes[0].grid(alpha=0.3)
    axes[1].plot(*zip(*by_measured, strict=True), marker="o")
    axes[1].set(
        xlabel="measured cuboids, largest first (823,543 published cells)", ylabel="seconds of a processor"
    )
    axes[1].set_ylim(bottom=0)
    axes[1].grid(alpha=0.3)
    figure.suptitle("Noise and least squares for all cuboids")
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    print(f"wrote {path}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["ten", "wide", "sparse", "linear"])
    parser.add_argument("strategies", nargs="*", default=["all", "bmax", "unequal"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--attributes", type=int, default=24)
    parser.add_argument("--order", type=int, default=2)
    parser.add_argument("--strategy", default="unequal")
    parser.add_argument("--rho")
    parser.add_argument("--plot")
    chosen = parser.parse_args()
    if chosen.what == "ten":
        ten(chosen.strategies)
    elif chosen.what == "wide":
        wide(chosen.rows, chosen.attributes, chosen.order, chosen.strategy, chosen.rho)
    elif chosen.what == "sparse":
        sparse(chosen.rows)
    else:
        linear(chosen.plot)
    record.save(f"cubes_large-{chosen.what}")


if __name__ == "__main__":
    main()
