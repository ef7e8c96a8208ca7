"""Figures of a benchmark run, written as one JSON file.

A script calls ``figure`` for what depends on the machine (seconds, megabytes), ``ratio`` for what should not (times as
fast, errors, counts), and ``save`` at its end. ``python -m benchmarks.compare OLD.json NEW.json`` compares two runs.
"""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

FOLDER = Path(__file__).parent / "results"
PACKAGES = (
    "policygraph",
    "duckdb",
    "networkx",
    "numba",
    "numpy",
    "ortools",
    "pyarrow",
    "scipy",
    "mbi",
    "opendp",
)
FIGURES: dict[str, float] = {}
RATIOS: dict[str, float] = {}


def figure(name: str, value: float) -> None:
    """Note something that depends on the machine, with its unit in the name: ``"counting, s"``."""
    FIGURES[name] = float(value)


def ratio(name: str, value: float) -> None:
    """Note something that does not depend on the machine, or only a little."""
    RATIOS[name] = float(value)


def versions() -> dict[str, str]:
    """Python and the installed libraries that the figures depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def save(name: str, folder: Path | None = None) -> Path:
    """Write what was noted to a new file, in the folder ``BENCHMARK_RESULTS`` or ``benchmarks/results``."""
    folder = folder or Path(os.environ.get("BENCHMARK_RESULTS") or FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    content = {"name": name, "figures": FIGURES, "ratios": RATIOS, "versions": versions()}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"recorded {path}")
    return path


def put(page: Path, name: str, text: str) -> None:
    """Replace what stands between ``<!-- name: begin -->`` and ``<!-- name: end -->`` in a page."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{page} has no lines {begin} and {end}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
