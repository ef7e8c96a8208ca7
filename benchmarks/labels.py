"""Counting into 100,000 labels: seconds, and memory beyond that of the imports and of a table with two labels.

Run as ``python benchmarks/labels.py``; ``--labels`` and ``--rows`` change the sizes.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import record


def measure(labels: int, rows: int, kind: str) -> None:
    """Count in this process and print seconds and peak memory in MB."""
    import numpy as np
    import pyarrow as pa

    from policygraph.curator.counting import count_cells
    from policygraph.model.domain import Domain

    codes = np.random.default_rng(1).integers(0, labels, size=rows)
    table = pa.table({"a": pa.array(codes if kind == "numbers" else [f"label {code:06d}" for code in codes])})
    begin = time.perf_counter()
    names = (
        [3 * code for code in range(labels)]
        if kind == "numbers"
        else [f"label {code:06d}" for code in range(labels)]
    )
    count_cells(table, Domain({"a": names}), unknown="drop")
    seconds = time.perf_counter() - begin
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    """Compare many labels with two, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--only", choices=["texts", "numbers"])
    given = parser.parse_args()
    if given.only:
        measure(given.labels, given.rows, given.only)
        return
    for kind in ("texts", "numbers"):
        found = []
        for labels in (2, given.labels):
            command = [
                sys.executable,
                __file__,
                "--only",
                kind,
                "--labels",
                str(labels),
                "--rows",
                str(given.rows),
            ]
            found.append(
                [
                    float(x)
                    for x in subprocess.run(
                        command, capture_output=True, text=True, check=True
                    ).stdout.split()
                ]
            )
        (_, base), (seconds, peak) = found
        record.figure(f"{given.labels} {kind}, s", seconds)
        record.figure(f"{given.labels} {kind}, MB more than with two", peak - base)
        print(
            f"{given.labels:,} {kind}: {seconds:.1f} s, {peak - base:.0f} MB more than with two ({peak:.0f} MB)"
        )
    record.save("labels")


if __name__ == "__main__":
    main()
