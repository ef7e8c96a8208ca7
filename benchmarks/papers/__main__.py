"""The one command: run scripts of this folder, write their numbers and pictures, and their rows into the page."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.papers import data, page
from benchmarks.papers.registry import Entry, Result, Row, entries

FOLDER = Path(os.environ.get("BENCHMARK_RESULTS") or record.FOLDER) / "papers"


def stem(entry: Entry, small: bool) -> str:
    return f"{entry.name}-small" if small else entry.name


def made_with(entry: Entry, small: bool) -> dict[str, Any]:
    """What the figures of a run depend on besides the script: the files of data that were missing, and the versions of libraries."""
    absent = data.missing() if entry.script.needs_data and not small else []
    return {"missing data": absent, "versions": record.versions()}


def save(entry: Entry, result: Result, small: bool, folder: Path, seconds: float = 0.0) -> Path | None:
    """Write the JSON file of a run, and its picture; return the picture."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "name": entry.name,
        "paper": entry.script.paper,
        "setting": "small" if small else "full",
        "note": result.note,
        "rows": [{**vars(row), "holds": row.met} for row in result.rows],
        "values": result.values,
        "processor seconds": round(seconds, 1),
        **made_with(entry, small),
    }
    text = json.dumps(content, indent=1, default=lambda value: value.tolist())
    path = folder / f"{stem(entry, small)}.json"
    draft = path.with_suffix(".part")
    draft.write_text(text + "\n", encoding="utf-8")
    os.replace(draft, path)  # a file that is there is whole, also after a run that was ended
    return draw(entry, json.loads(text)["values"], path.with_suffix(".png"))


def draw(entry: Entry, values: dict[str, Any], path: Path) -> Path | None:
    """Draw the picture of a script from its values; None where it has none."""
    if entry.plot is None:
        return None
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = entry.plot(values)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)
    return path


def kept(entry: Entry, small: bool, folder: Path) -> tuple[Result, float] | None:
    """What an earlier run wrote, and its seconds of processor; None where there is nothing, or it was made with other data or versions."""
    path = folder / f"{stem(entry, small)}.json"
    if not path.exists():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    if any(content.get(key) != value for key, value in made_with(entry, small).items()):
        return None
    names = Row.__dataclass_fields__
    rows = [Row(**{key: value for key, value in row.items() if key in names}) for row in content["rows"]]
    return Result(rows, content["values"], content["note"]), content.get("processor seconds", 0.0)


def processor() -> float:
    """Seconds of processor of this process and of those it has started."""
    return sum(os.times()[:4])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scripts, or papers; all by default")
    parser.add_argument(
        "--small", action="store_true", help="the setting of the tests: quick, generated data"
    )
    parser.add_argument("--write", action="store_true", help="put rows and pictures into the page")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="keep what an earlier run has left in the folder, and run the rest",
    )
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
    missed, failed, total = 0, [], 0.0
    for entry in wanted:
        found = kept(entry, chosen.small, chosen.out) if chosen.resume else None
        try:
            if found is not None:
                result, seconds = found
                picture = draw(entry, result.values, chosen.out / f"{stem(entry, chosen.small)}.png")
            else:
                start = processor()
                result = entry.run(chosen.small)
                seconds = processor() - start
                picture = save(entry, result, chosen.small, chosen.out, seconds)
        except Exception:  # the others are still run; the command fails at its end
            traceback.print_exc()
            failed.append(entry.name)
            continue
        total += seconds
        print(f"{entry.name} ({seconds:.1f} s of processor{', kept' if found else ''})  {result.note}")
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
    print(f"{len(wanted) - len(failed)} scripts, {total:.0f} s of processor")
    if missed:
        print(f"{missed} rows differ from the paper without a reason")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(missed > 0 or bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
