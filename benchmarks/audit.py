"""How surely the audit catches what is broken and lets pass what is sound, and how long it takes.

Run: PYTHONPATH=. python benchmarks/audit.py [repeats]
"""

from __future__ import annotations

import sys
import time
from statistics import median

import record

import policygraph as pg
from policygraph.audit import audit, neighbour_pairs
from tests.audit.audited import MECHANISMS
from tests.broken import BROKEN


def measure(name, repeats, run):
    reports, start = [], time.perf_counter()
    for seed in range(repeats):
        reports.append(run(pg.SeededRng(f"{name} {seed}")))
    seconds = (time.perf_counter() - start) / repeats
    bounds = [report.lower_bound for report in reports]
    refuted = sum(not report.passed for report in reports)
    record.figure(f"{name}, s", seconds)
    record.ratio(f"{name}, refuted", refuted / repeats)
    print(
        f"{name:38} {reports[0].claim!s:14} refuted {refuted:4}/{repeats}  lower bound "
        f"{min(bounds):.2f} / {median(bounds):.2f} / {max(bounds):.2f}  {seconds:.3f} s"
    )


def main(repeats: int) -> None:
    print("least / median / greatest lower bound; seconds for one audit")
    for case in MECHANISMS:
        given = case.subject(case.ready())
        measure(
            case.name,
            repeats,
            lambda source, g=given, c=case: audit(**g, loss=c.loss, samples=c.samples, source=source),
        )
    for case in BROKEN:
        mechanism, policy, query = case.make()
        options = {"most_pairs": 4} | case.options
        options.setdefault("pairs", neighbour_pairs(policy, query, most=options["most_pairs"]))
        measure(
            case.name,
            repeats,
            lambda source, m=mechanism, p=policy, q=query, c=case, o=options: audit(
                m, p, q, loss=c.loss, samples=c.samples, source=source, **o
            ),
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    record.save("audit")
