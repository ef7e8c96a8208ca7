"""Compare two recorded runs of a benchmark.

    python -m benchmarks.compare OLD.json NEW.json [--within 0.1]

Every figure is shown with new / old. The exit status is 1 if a ratio (what should not depend on the machine) changed by
more than ``--within`` of itself or is missing; seconds and megabytes are shown and not judged, unless with ``--strict``.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def changed(old: float | None, new: float | None, within: float) -> bool:
    """Whether the two differ by more than this part of the old one."""
    if old is None or new is None:
        return old is not new
    if math.isnan(old) or math.isnan(new):
        return math.isnan(old) != math.isnan(new)
    return abs(new - old) > within * abs(old)


def lines(old: Mapping[str, float], new: Mapping[str, float], within: float) -> tuple[list[str], int]:
    """A line for each name, and how many changed."""
    out, many = [], 0
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        differs = changed(before, after, within)
        many += differs
        times = f"{after / before:8.3f}" if before and after is not None else " " * 8
        shown = [f"{x:14.6g}" if x is not None else f"{'-':>14}" for x in (before, after)]
        out.append(f"{name:60}{shown[0]}{shown[1]}{times}{'  *' if differs else ''}")
    return out, many


def compare(old: Mapping[str, Any], new: Mapping[str, Any], within: float, *, strict: bool) -> int:
    """Print the comparison and return the exit status."""
    if old["name"] != new["name"]:
        print(f"two benchmarks: {old['name']} and {new['name']}")
        return 2
    moved = {
        package: (old["versions"].get(package), new["versions"].get(package))
        for package in {**old["versions"], **new["versions"]}
        if old["versions"].get(package) != new["versions"].get(package)
    }
    for package, (before, after) in sorted(moved.items()):
        print(f"{package}: {before} -> {after}")
    judged = 0
    for part in ("ratios", "figures"):
        found, many = lines(old[part], new[part], within)
        if found:
            print(f"{part:60}{'old':>14}{'new':>14}{'new/old':>8}", *found, sep="\n")
        judged += many if part == "ratios" or strict else 0
    return 1 if judged else 0


def main(words: Sequence[str] | None = None) -> int:
    """Read the two files and compare them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--within", type=float, default=0.1, help="part of the old value that may change")
    parser.add_argument("--strict", action="store_true", help="judge seconds and megabytes as well")
    given = parser.parse_args(words)
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (given.old, given.new))
    return compare(old, new, given.within, strict=given.strict)


if __name__ == "__main__":
    raise SystemExit(main())
