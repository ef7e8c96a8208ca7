"""From ten million records to a released histogram of a 1,000 x 1,000 grid: time of each stage, and peak memory.

    python benchmarks/ground_floor.py [rows] [rounds]

Each round runs the whole way once in a process of its own, whose peak memory counts, and the same GROUP BY in
bare DuckDB in another one, so that neither warms the other up. The least time of each stage over the rounds is shown.
The exit status is 1 if counting takes more than 1.5 times the bare GROUP BY or the peak reaches 1 GB.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import record

SIDE = 1000
MOST_TIMES, MOST_MEMORY = 1.5, 1_000.0


def make_data(path: Path, rows: int) -> None:
    """Write points of a square, thicker in the middle, with a column that nobody asks for."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.25)")
        connection.execute(
            f"COPY (SELECT CAST(floor((random() + random()) * {SIDE // 2}) AS INTEGER) AS x, "
            f"CAST(floor(random() * {SIDE}) AS INTEGER) AS y, CAST(random() * 1000000 AS BIGINT) AS other "
            f"FROM range({rows})) TO '{path}' (FORMAT parquet)"
        )


def bare(path: str) -> dict[str, float]:
    """Run the same GROUP BY in DuckDB alone."""
    import duckdb

    with duckdb.connect() as connection:
        start = time.perf_counter()
        connection.execute(f"SELECT x, y, count(*) FROM '{path}' GROUP BY x, y").fetchnumpy()
        return {"bare": time.perf_counter() - start}


def whole(path: str) -> dict[str, float]:
    """Run every stage of a release."""
    import duckdb  # noqa: F401
    import pyarrow  # noqa: F401

    import policygraph as pg
    from policygraph.curator.counting import count_cells
    from policygraph.mechanisms import for_loss

    times: dict[str, float] = {}
    now = time.perf_counter()

    def stage(name: str) -> None:
        nonlocal now
        times[name], now = time.perf_counter() - now, time.perf_counter()

    domain = pg.Domain({"x": SIDE, "y": SIDE})
    policy = pg.Policy(domain, pg.PolicyGraph.grid(domain))
    query = pg.queries.identity(domain)
    loss = pg.Epsilon(1)
    now = time.perf_counter()
    counts = count_cells(path, domain)
    stage("counting")
    ready = for_loss(loss).calibrate(query, policy, loss)
    stage("sensitivity")
    release = ready.run(counts, pg.SecureRng())
    stage("noise")
    release.to_parquet(Path(path).with_name("out.parquet"))
    stage("writing")
    times["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return times


def main() -> int:
    """Print the table and return 1 if a promise is missed."""
    if len(sys.argv) == 3 and sys.argv[1] in ("bare", "whole"):
        print(json.dumps({"bare": bare, "whole": whole}[sys.argv[1]](sys.argv[2])))
        return 0
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.parquet"
        make_data(path, rows)
        for _ in range(rounds):
            for part in ("bare", "whole"):
                command = [sys.executable, __file__, part, str(path)]
                found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
                for name, value in found.items():
                    pick = max if name == "peak" else min
                    best[name] = pick(best.get(name, value), value)
    print(f"{rows:,} rows, {SIDE} x {SIDE} cells")
    for name in ("counting", "sensitivity", "noise", "writing"):
        record.figure(f"{name}, s", best[name])
        print(f"{name:12} {best[name]:8.3f} s")
    times = best["counting"] / best["bare"]
    record.ratio("counting, of the bare GROUP BY", times)
    record.figure("peak, MB", best["peak"])
    record.save("ground_floor")
    good = times <= MOST_TIMES and best["peak"] < MOST_MEMORY
    print(f"counting takes {times:.2f} of the bare GROUP BY ({best['bare']:.3f} s); at most {MOST_TIMES}")
    print(f"peak memory {best['peak']:.0f} MB; below {MOST_MEMORY:.0f}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
