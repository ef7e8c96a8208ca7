"""How often stated 95 % ranges cover the truth, for every kind of release.

    python benchmarks/ranges.py [runs] [--only "KIND"] [--write]

Truths are drawn anew for each run: sparse, spread and dense ones. With ``--write`` the table goes into ``docs/benchmarks.md`` as well; of ``--only`` one kind its row, and the other rows stay.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import record  # noqa: E402

from tests.mechanisms.test_coverage import KINDS, TRIALS, WIDE, coverage  # noqa: E402

LOSSES = ("1/10", "1", "4")


def main() -> None:
    """Print the table, and write it where that is asked for."""
    runs = next((int(a) for a in sys.argv[1:] if a.isdigit()), 40)
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else None
    head = "| kind of release | rests on | " + " | ".join(f"loss {e}: covered (right)" for e in LOSSES)
    lines = [head + " | stated / found error |", "|---|---|" + "---|" * (len(LOSSES) + 1)]
    kinds = [kind for kind in [*KINDS, *TRIALS] if only in (None, kind)]
    if not kinds:
        raise SystemExit(f"{only!r} is not a kind of release; kinds are: {', '.join([*KINDS, *TRIALS])}.")
    for kind in kinds:
        cells, bases, ratios = [], set(), []
        for loss in LOSSES:
            covered, right, ratio, basis, _ = coverage(kind, loss, runs)
            record.ratio(f"{kind}, loss {loss}, covered", covered)
            cells.append(f"{100 * covered:.1f} % ({100 * right:.0f} %)")
            bases |= {str(b) for b in basis}
            ratios.append(f"{ratio:.2f}")
        lines.append(f"| {kind} | {', '.join(sorted(bases))} | {' | '.join(cells)} | {', '.join(ratios)} |")
        print(lines[-1], flush=True)
    record.save("ranges" if only is None else f"ranges-{only.replace(' ', '-')}")
    if "--write" in sys.argv and only is not None:
        page = ROOT / "docs" / "benchmarks.md"
        text = page.read_text(encoding="utf-8")
        rows = [line for line in text.splitlines() if line.startswith(f"| {only} | ")]
        page.write_text(text.replace(rows[0], lines[-1]), encoding="utf-8")
    elif "--write" in sys.argv:
        said = (
            f"Made by `python benchmarks/ranges.py {runs} --write`: {runs} releases of each of three truths (5 % of cells filled, exponential counts of mean 12, Poisson counts of "
            "mean 80), coverage of the stated 95 % ranges averaged over values and releases, and in brackets the share of values that are right to the last digit."
        )
        why = "; ".join(f"*{kind}*: {reason}" for kind, reason in WIDE.items())
        last = (
            f"More than 99 % are covered, by kind: {why}. At high loss, and for lists, forests and consistent histograms of sparse truths, most values are exactly right (the share in brackets), and "
            "a range that holds a whole number of records cannot cover less."
        )
        record.put(ROOT / "docs" / "benchmarks.md", "coverage", "\n".join([said, "", *lines, "", last]))


if __name__ == "__main__":
    main()
