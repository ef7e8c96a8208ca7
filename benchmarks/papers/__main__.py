"""The one command: run scripts of this folder, write their numbers and pictures, and their rows into the page."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path

from benchmarks import record
from benchmarks.papers import data, page
from benchmarks.papers.registry import Entry, Result, entries

FOLDER = Path(os.environ.get("BENCHMARK_RESULTS") or record.FOLDER) / "papers"


def save(entry: Entry, result: Result, small: bool, folder: Path) -> Path | None:
    """Write the JSON file of a run, and its picture; return the picture."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{entry.name}-small" if small else entry.name
    content = {
        "name": entry.name,
        "paper": entry.script.paper,
        "setting": "small" if small else "full",
        "note": result.note,
        "rows": [{**vars(row), "holds": row.met} for row in result.rows],
        "values": result.values,
        "versions": record.versions(),
    }
    text = json.dumps(content, indent=1, default=lambda value: value.tolist())
    (folder / f"{stem}.json").write_text(text + "\n", encoding="utf-8")
    if entry.plot is None:
        return None
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = entry.plot(json.loads(text)["values"])
    path = folder / f"{stem}.png"
    figure.savefig(path, dpi=80)
    pyplot.close(figure)
    return path


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scripts, or papers; all by default")
    parser.add_argument(
        "--small", action="store_true", help="the setting of the tests: quick, generated data"
    )
    parser.add_argument("--write", action="store_true", help="put rows and pictures into the page")
    parser.add_argument("--list", action="store_true", help="list the scripts and end")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the JSON files and pictures")
    chosen = parser.parse_args(arguments)
    every = entries()
    known = {entry.name for entry in every} | {entry.script.paper for entry in every}
    if unknown := sorted(set(chosen.names) - known):
        parser.error(f"no script or paper named {', '.join(unknown)}; --list shows all")
    if chosen.small and chosen.write:
        parser.error("the page shows the full setting: leave out --small")
    wanted = [
        entry
        for entry in every
        if not chosen.names or entry.name in chosen.names or entry.script.paper in chosen.names
    ]
    if chosen.list:
        for entry in wanted:
            print(f"{entry.name:44} {entry.summary}")
        return 0
    if chosen.write and any(entry.script.needs_data for entry in wanted):
        data.require()
    missed = 0
    for entry in wanted:
        start = time.perf_counter()
        result = entry.run(chosen.small)
        picture = save(entry, result, chosen.small, chosen.out)
        print(f"{entry.name} ({time.perf_counter() - start:.1f} s)  {result.note}")
        for row in result.rows:
            mark = "  " if row.met else "! "
            print(f"  {mark}{row.place}: {row.what}: published {row.published or '-'}, ours {row.ours}")
            missed += not row.met and not row.reason
        sys.stdout.flush()
        if chosen.write:
            if picture is not None:
                page.FIGURES.mkdir(parents=True, exist_ok=True)
                shutil.copy(picture, page.FIGURES / f"{entry.name}.png")
            page.write(every, {entry.name: page.block(entry, result)})
    if missed:
        print(f"{missed} rows differ from the paper without a reason")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
