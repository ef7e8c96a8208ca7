"""Counting on DuckDB, Spark and Postgres, each against the bare GROUP BY of the same engine.

    python benchmarks/engines.py --write                                     the whole table of docs/benchmarks.md
    python benchmarks/engines.py [duckdb] [wide] [spark] [postgres] [--rows N]

``duckdb``: ten million rows of two columns into 10^6 cells. ``wide``: a hundred million rows of eight columns into 10^6 cells. ``spark`` (local, all cores): ten million rows of eight columns into
10^6 cells. ``postgres`` (a server started for this): as ``duckdb``. Each figure is the least of three runs; bare runs and ours take turns. Processor seconds are of this process and, on Spark, of its Java; a server of
Postgres is not a child of the process, so that only wall seconds are known there. Wall seconds depend on what else runs. The data set has a name, so that no fingerprint
is made on servers; on DuckDB the fingerprint of the files is included. The exit status is 1 if a ratio (of processor seconds where they are known) is above 1.3 or the peak of this process reaches 2 GB.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import record

sys.path.insert(0, str(Path(__file__).parents[1]))
ROUNDS = 3
MOST_TIMES, MOST_MEMORY = 1.3, 2_000.0
SIZES = {"duckdb": 10**7, "wide": 10**8, "spark": 10**7, "postgres": 10**7}
EIGHT = ("wide", "spark")
TWO = "CAST(floor((random() + random()) * 500) AS INTEGER) AS x, CAST(floor(random() * 1000) AS INTEGER) AS y"
WIDE = ", ".join(
    f"CAST(floor(random() * {size}) AS INTEGER) AS c{at}"
    for at, size in enumerate((10, 10, 10, 10, 5, 5, 2, 2))
)


def make(path: Path, rows: int, columns: str) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.25)")
        connection.execute(
            f"COPY (SELECT {columns} FROM range({rows})) TO '{path}' (FORMAT {path.suffix[1:]})"
        )


def domain(kind: str) -> Any:
    import policygraph as pg

    if kind in EIGHT:
        return pg.Domain({f"c{at}": size for at, size in enumerate((10, 10, 10, 10, 5, 5, 2, 2))})
    return pg.Domain({"x": 1000, "y": 1000})


def processor() -> float:
    """Processor seconds of this process and of all that it has started and that still run."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total, parents = own.ru_utime + own.ru_stime, {os.getpid()}
    listed = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        listed.append((int(entry.parent.name), int(words[1]), int(words[11]) + int(words[12])))
    # A process has a larger number than the one that started it, but for a wrap-around that a benchmark does not live to see.
    for number, parent, ticks in sorted(listed):
        if parent in parents:
            parents.add(number)
            total += ticks / os.sysconf("SC_CLK_TCK")
    return total


def taken(function: Callable[[], Any]) -> tuple[float, float]:
    """Wall and processor seconds of a call."""
    before, start = processor(), time.perf_counter()
    function()
    return time.perf_counter() - start, processor() - before


def least(bare: Callable[[], Any], ours: Callable[[], Any]) -> dict[str, float]:
    bare(), ours()
    pairs = [(taken(bare), taken(ours)) for _ in range(ROUNDS)]
    names = ("bare", "ours")
    return {
        f"{name} {what}": min(pair[at][unit] for pair in pairs)
        for at, name in enumerate(names)
        for unit, what in enumerate(("wall", "processor"))
    } | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}


def on_duckdb(kind: str, path: str) -> dict[str, float]:
    import duckdb

    from policygraph.curator.counting import count_cells

    keys = ", ".join(domain(kind).names)
    connection = duckdb.connect()
    return least(
        lambda: connection.execute(f"SELECT {keys}, count(*) FROM '{path}' GROUP BY {keys}").fetchnumpy(),
        lambda: count_cells(path, domain(kind)),
    )


def on_spark(kind: str, path: str) -> dict[str, float]:
    from policygraph.curator.counting import count_cells
    from policygraph.curator.counting.engines.spark import local_session

    session = local_session()
    return least(
        lambda: session.read.parquet(path).groupBy(*domain(kind).names).count().toArrow(),
        lambda: count_cells(path, domain(kind), name="points", engine=session),
    )


def on_postgres(kind: str, rows: int) -> dict[str, float]:
    from policygraph.curator.counting import count_cells
    from tests.servers import Postgres

    server = Postgres(shared_buffers="1GB", work_mem="256MB", max_wal_size="8GB")
    try:
        with server.connect() as connection:
            connection.execute(
                f"CREATE UNLOGGED TABLE points AS SELECT {TWO} FROM generate_series(1, {rows})"
            )
            connection.execute("VACUUM ANALYZE points")
            return least(
                lambda: connection.execute("SELECT x, y, count(*) FROM points GROUP BY x, y").fetchall(),
                lambda: count_cells(server.address("points"), domain(kind), name="points"),
            )
    finally:
        server.remove()


def main() -> int:
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if words[:1] == ["run"]:
        kind, place = words[1], words[2]
        found = (
            on_postgres(kind, int(place))
            if kind == "postgres"
            else (on_spark if kind == "spark" else on_duckdb)(kind, place)
        )
        print(json.dumps(found))
        return 0
    if "--write" in sys.argv and (words or "--rows" in sys.argv):
        raise SystemExit("--write makes the whole table: expected no other words")
    given = int(sys.argv[sys.argv.index("--rows") + 1]) if "--rows" in sys.argv else None
    chosen = [word for word in words if word in SIZES] or list(SIZES)
    lines = [
        "| engine | rows | columns | bare GROUP BY, s | counting, s | ratio, wall | ratio, processor | peak, MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    good = True
    for kind in chosen:
        rows = given or SIZES[kind]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "points.parquet"
            if kind != "postgres":
                make(path, rows, WIDE if kind in EIGHT else TWO)
            place = str(rows) if kind == "postgres" else str(path)
            command = [sys.executable, __file__, "run", kind, place]
            found = json.loads(
                subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
            )
        wall = found["ours wall"] / found["bare wall"]
        work = found["ours processor"] / found["bare processor"]
        inside = kind != "postgres"
        record.ratio(f"{kind}, of the bare GROUP BY", work if inside else wall)
        record.figure(f"{kind}, s", found["ours wall"])
        record.figure(f"{kind}, peak, MB", found["peak"])
        good = good and (work if inside else wall) <= MOST_TIMES and found["peak"] < MOST_MEMORY
        name = {"wide": "duckdb"}.get(kind, kind)
        lines.append(
            f"| {name} | {rows:,} | {8 if kind in EIGHT else 2} | {found['bare wall']:.2f} | {found['ours wall']:.2f} | {wall:.2f} | "
            f"{f'{work:.2f}' if inside else '-'} | {found['peak']:.0f} |"
        )
        print(lines[-1], flush=True)
    record.save("engines")
    if "--write" in sys.argv:
        record.put(Path(__file__).parents[1] / "docs" / "benchmarks.md", "engines", "\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
