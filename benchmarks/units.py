"""A platform: ten million records of a hundred thousand people; counting with a bound for each person, against the plain count.

    python benchmarks/units.py [parquet] [text] [csv] [--rows N] [--write]

``parquet``: people are numbers. ``text``: people are texts. ``csv``: as ``parquet``, as text files. A record is a visit to one of 50 items at one of 168 hours of the week; of each person 20 records count, at
most 2 in one cell. Each figure is the least of three runs; plain and bounded runs take turns, fingerprint of the file included in both. ``--write`` puts the table into docs/benchmarks.md. The exit status is 1 if a
bounded count takes more than 3 times the plain one, in processor seconds, or the peak reaches 2 GB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import record
from engines import make, taken

sys.path.insert(0, str(Path(__file__).parents[1]))
ROUNDS = 3
MOST_TIMES, MOST_MEMORY = 3.0, 2_000.0
ROWS, PEOPLE = 10**7, 10**5
KINDS = ("parquet", "text", "csv")
COLUMNS = "CAST(floor(pow(random(), 2) * 50) AS INTEGER) AS item, CAST(floor(random() * 168) AS INTEGER) AS week_hour"
PERSON = f"CAST(floor(pow(random(), 1.5) * {PEOPLE}) AS INTEGER)"


def run(path: str) -> dict[str, float]:
    import resource

    import policygraph as pg
    from policygraph.curator.counting import count_cells, read_data

    domain = pg.Domain({"item": 50, "week_hour": 168})
    unit = pg.Unit(pg.Policy(domain), "person", 20, 2)

    def plain() -> None:
        count_cells(path, domain)

    def bounded() -> None:
        read_data(path, unit)

    plain(), bounded()
    pairs = [(taken(plain), taken(bounded)) for _ in range(ROUNDS)]
    return {
        f"{name} {what}": min(pair[at][unit_of] for pair in pairs)
        for at, name in enumerate(("plain", "bounded"))
        for unit_of, what in enumerate(("wall", "processor"))
    } | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}


def main() -> int:
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if words[:1] == ["run"]:
        print(json.dumps(run(words[1])))
        return 0
    rows = int(sys.argv[sys.argv.index("--rows") + 1]) if "--rows" in sys.argv else ROWS
    lines = [
        "| data | records | people | plain count, s | bounded, s | ratio, wall | ratio, processor | peak, MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    good = True
    for kind in [word for word in words if word in KINDS] or list(KINDS):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"visits.{'csv' if kind == 'csv' else 'parquet'}"
            person = f"'p' || {PERSON}" if kind == "text" else PERSON
            make(path, rows, f"{person} AS person, {COLUMNS}")
            command = [sys.executable, __file__, "run", str(path)]
            found = json.loads(
                subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
            )
        wall = found["bounded wall"] / found["plain wall"]
        work = found["bounded processor"] / found["plain processor"]
        record.ratio(f"{kind}, of the plain count", work)
        record.figure(f"{kind}, s", found["bounded wall"])
        record.figure(f"{kind}, peak, MB", found["peak"])
        good = good and work <= MOST_TIMES and found["peak"] < MOST_MEMORY
        lines.append(
            f"| {kind} | {rows:,} | {PEOPLE:,} | {found['plain wall']:.2f} | {found['bounded wall']:.2f} | {wall:.2f} | {work:.2f} | {found['peak']:.0f} |"
        )
        print(lines[-1], flush=True)
    record.save("units")
    if "--write" in sys.argv:
        record.put(Path(__file__).parents[1] / "docs" / "benchmarks.md", "units", "\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
