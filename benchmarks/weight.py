"""What an installation weighs and how long the command takes to start.

    python benchmarks/weight.py                 print the numbers
    python benchmarks/weight.py --write         write them into README.md, between its markers

Makes a virtual environment of its own, installs this checkout with its dependencies, adds up the bytes of its packages, and takes the
processor time of the command in new processes (the least of --runs).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import record

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = {
    "policygraph --help": ["--help"],
    "policygraph sensitivity census-margins.toml": ["sensitivity", "census-margins.toml"],
    "policygraph release census-margins.toml --data people.csv ...": [
        "release", "census-margins.toml", "--data", "people.csv", "--epsilon", "1", "--out", "out", "--overwrite",
    ],
}  # fmt: skip


def install(folder: Path) -> Path:
    """Make an environment with this checkout and its dependencies, and nothing else."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT)], check=True)
    return python


def sizes(python: Path) -> dict[str, float]:
    """Megabytes of each installed package, by the files that it lists."""
    program = (
        "import json, importlib.metadata as m\n"
        "print(json.dumps({d.metadata['Name']: sum(f.locate().stat().st_size for f in d.files or () if f.locate().is_file()) "
        "for d in m.distributions()}))"
    )
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    found = {
        name: size / 1e6
        for name, size in json.loads(done.stdout).items()
        if name not in ("pip", "setuptools")
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def spent() -> float:
    """Processor time of the processes that have ended, which other work on the machine hardly changes."""
    used = os.times()
    return used.children_user + used.children_system


def starts(python: Path, folder: Path, runs: int) -> dict[str, float]:
    """Seconds of processor time of each command in a new process: the least of several."""
    (folder / "census-margins.toml").write_text((ROOT / "policies" / "census-margins.toml").read_text())
    rows = [f"{'FM'[n % 2]},{n % 7},{n % 5}" for n in range(1000)]
    (folder / "people.csv").write_text("\n".join(["sex,age,salary", *rows]) + "\n")
    found = {}
    for name, words in COMMANDS.items():
        times = []
        for _ in range(runs):
            start = spent()
            subprocess.run([python, "-m", "policygraph", *words], cwd=folder, capture_output=True, check=True)
            times.append(spent() - start)
        found[name] = min(times)
    return found


def text(found: dict[str, Any]) -> str:
    """The lines for the README."""
    largest = ", ".join(f"{name} {size:.0f}" for name, size in list(found["packages"].items())[:5])
    lines = [
        "",
        f"An installation takes {found['megabytes']:.0f} MB with all dependencies ({largest}). Nothing is imported before it is needed:",
        "",
        "| command, in a new process | seconds of processor time |",
        "|---|---|",
        *(f"| `{name}` | {seconds:.1f} |" for name, seconds in found["seconds"].items()),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the numbers into README.md")
    parser.add_argument(
        "--python", type=Path, help="an environment that has only policygraph; default: make one"
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = options.python or install(folder / "environment")
        packages = sizes(python)
        found = {
            "megabytes": sum(packages.values()),
            "packages": packages,
            "seconds": starts(python.absolute(), folder, options.runs),
        }
    record.figure("installed, MB", found["megabytes"])
    for name, seconds in found["seconds"].items():
        record.figure(f"{name}, s", seconds)
    record.save("weight")
    if options.write:
        record.put(ROOT / "README.md", "weight", text(found))
    print(json.dumps(found, indent=2) if options.json else text(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
