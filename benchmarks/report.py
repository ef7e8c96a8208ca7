"""The page of a release of all 256 cuboids of Adult: its size, how long it takes to make and to open, and what axe-core finds.

    python benchmarks/report.py            print the figures
    python benchmarks/report.py --write    write them into docs/benchmarks.md, between its markers

Reads ``adult/adult.data`` in the folder ``POLICYGRAPH_DATA`` (default: ``../shared/data`` beside the repository). Needs Debian's chromium and
chromium-driver, and npm for axe-core.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import record
from cubes import adult_counts, adult_domain

import policygraph as pg

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- report: begin -->", "<!-- report: end -->"
WIDTHS = (1400, 390)
RUNS = 5


def made(folder: Path) -> tuple[Path, float, float]:
    """The page, the processor time of the release and that of the page."""
    counts = adult_counts()
    if counts is None:
        raise SystemExit("adult.data not found: set POLICYGRAPH_DATA.")
    domain = adult_domain()
    begin = time.process_time()
    release = pg.release(pg.queries.all_cuboids(domain), pg.Policy(domain), counts, epsilon=1)
    middle = time.process_time()
    pg.report(release, folder / "report.html")
    return folder / "report.html", middle - begin, time.process_time() - middle


def opened(page: Path, folder: Path) -> tuple[dict[int, float], list[str]]:
    """Largest time to open at each width, until the page has loaded and is drawn; and serious findings of axe-core."""
    sys.path.insert(0, str(ROOT))
    from tests.report import browser

    longest: dict[int, float] = {}
    with browser.chromium(folder) as driver:
        driver.set_script_timeout(120)
        for width in WIDTHS:
            browser.size(driver, width)
            for _ in range(RUNS):
                driver.get("about:blank")
                begin = time.perf_counter()
                driver.get(page.as_uri())
                driver.execute_async_script(
                    "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
                )
                longest[width] = max(longest.get(width, 0.0), time.perf_counter() - begin)
        return longest, browser.grave(driver, browser.axe(folder))


def main() -> None:
    """Make the page, open it and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        page, releasing, paging = made(folder)
        megabytes = page.stat().st_size / 1e6
        longest, found = opened(page, folder)
    record.figure("page, MB", megabytes)
    record.figure("page, s of processor", paging)
    for width, seconds in longest.items():
        record.figure(f"opened at {width} px, s", seconds)
    rows = [
        ("size of the file", f"{megabytes:.1f} MB", "10 MB"),
        ("processor time of the release", f"{releasing:.1f} s", ""),
        ("processor time of the page", f"{paging:.1f} s", ""),
        *(
            (f"opened at {width} pixels, longest of {RUNS}", f"{seconds:.1f} s", "3 s")
            for width, seconds in longest.items()
        ),
        ("serious findings of axe-core", str(len(found)), "0"),
    ]
    text = "\n".join(["| | | at most |", "|---|---|---|", *(f"| {a} | {b} | {c} |" for a, b, c in rows)])
    print(text)
    for each in found:
        print(each)
    record.save("report")
    if given.write:
        whole = PAGE.read_text(encoding="utf-8")
        head, _, rest = whole.partition(BEGIN)
        _, _, tail = rest.partition(END)
        PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
