"""What rows and cells cost on one core and on two, and what follows for more of both.

    python benchmarks/scale.py [duckdb] [spark] [noise] [--write]         everything if nothing is chosen; --write puts the tables into docs/how-to/scale.md

Records of eight columns are counted into 10^6 cells by DuckDB and by a local Spark, on one core and on two (the process is bound to them), at a tenth of the rows and at all of them; a table of 10^6
and of 10^7 cells is released with Laplace noise. Each run is a process of its own; each figure is the second of two. A cost per row is the slope between the two sizes, so that
starting is not in it. Processor seconds hardly depend on what else the machine does; wall seconds do. What is said of 10^9 rows and more is the slope times the rows: an extrapolation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import record
from engines import WIDE, domain, make, taken

sys.path.insert(0, str(Path(__file__).parents[1]))
ROWS = {"duckdb": 2 * 10**7, "spark": 4 * 10**6}
LARGE = (10**9, 10**11)
CELLS = (10**6, 10**7)
CLUSTER = 1000
PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "scale.md"


def counting(engine: str, cores: int, path: str) -> dict[str, float]:
    """Count on some cores; DuckDB and Java start as many threads as the process may use."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    from policygraph.curator.counting import count_cells

    session: Any = None
    if engine == "spark":
        from policygraph.curator.counting.engines.spark import LOCAL, local_session

        LOCAL["spark.master"] = f"local[{cores}]"
        session = local_session()
    return _second(lambda: count_cells(path, domain("wide"), name="points", engine=session))


def noise(cells: int) -> dict[str, float]:
    """Release a table of counts with Laplace noise."""
    import numpy as np

    import policygraph as pg

    table = pg.Domain({"cell": cells})
    query, policy, counts = pg.queries.identity(table), pg.Policy(table), np.arange(cells) % 100
    return _second(lambda: pg.release(query, policy, counts, epsilon=1, mechanism=pg.Laplace()))


def _second(work: Any) -> dict[str, float]:
    import resource

    work()
    wall, used = taken(work)
    return {
        "wall": wall,
        "processor": used,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def run(*words: Any) -> dict[str, float]:
    """One measurement in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "run", *map(str, words)], check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def shown(seconds: float) -> str:
    """Seconds in the unit that a reader would use."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def rows(engine: str, most: int, folder: Path) -> tuple[str, str]:
    """What was measured for the rows of an engine, and what follows for more of them: two tables."""
    measured = [
        "| cores | rows | wall, s | processor, s | peak of the process, MB |",
        "|---|---|---|---|---|",
    ]
    ahead = [
        "| measured on | processor, s per 10^6 rows | 10^9 rows, one core | 10^11 rows, one core | 10^11 rows, 1,000 cores |",
        "|---|---|---|---|---|",
    ]
    sizes = (most // 10, most)
    paths = [folder / f"{engine}-{size}.parquet" for size in sizes]
    for path, size in zip(paths, sizes, strict=True):
        make(path, size, WIDE)
    for cores in (1, 2):
        found = [run(engine, cores, path) for path in paths]
        for one, size in zip(found, sizes, strict=True):
            measured.append(
                f"| {cores} | {size:,} | {one['wall']:.2f} | {one['processor']:.2f} | {one['peak']:.0f} |"
            )
        slope = (found[1]["processor"] - found[0]["processor"]) / (sizes[1] - sizes[0])
        record.figure(f"{engine}, {cores} cores, processor seconds per 10^6 rows", slope * 1e6)
        one, many = (shown(slope * size) for size in LARGE)
        ahead.append(
            f"| {cores} {'core' if cores == 1 else 'cores'} | {slope * 1e6:.3f} | {one} | {many} | {shown(slope * LARGE[1] / CLUSTER) if engine == 'spark' else '-'} |"
        )
    weight = paths[1].stat().st_size / most
    ahead += [
        "",
        f"A row of these files has {weight:.1f} bytes of Parquet: 10^9 rows are {weight:.1f} GB, and 10^11 rows {weight / 10:.2f} TB.",
    ]
    return "\n".join(measured), "\n".join(ahead)


def cells() -> str:
    """What was measured for cells."""
    drawn = ["| cells | wall, s | processor, s | peak of the process, MB |", "|---|---|---|---|"]
    for size in CELLS:
        one = run("noise", size)
        drawn.append(f"| {size:,} | {one['wall']:.2f} | {one['processor']:.2f} | {one['peak']:.0f} |")
        record.figure(f"noise, {size:,} cells, s", one["processor"])
    return "\n".join(drawn)


def main() -> int:
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if words[:1] == ["run"]:
        found = noise(int(words[2])) if words[1] == "noise" else counting(words[1], int(words[2]), words[3])
        print(json.dumps(found))
        return 0
    tables: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for engine, most in ROWS.items():
            if engine in words or not words:
                tables[engine], tables[f"{engine}-ahead"] = rows(engine, most, Path(folder))
    if "noise" in words or not words:
        tables["noise"] = cells()
    for name, table in tables.items():
        print(f"{name}\n{table}\n", flush=True)
        if "--write" in sys.argv:
            record.put(PAGE, name, table)
    record.save("scale")
    return 0


if __name__ == "__main__":
    sys.exit(main())
