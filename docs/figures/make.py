"""Pictures of the documents: ``python -m docs.figures.make`` makes them all again (needs Debian's chromium and chromium-driver)."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import policygraph as pg
from tests.report import browser

HERE = Path(__file__).parent


def town() -> pg.Release:
    """An invented town: the tables of district and of age are public, work is released by both."""
    domain = pg.Domain(
        {
            "district": ["harbour", "old town", "hills"],
            "age": ["0-17", "18-39", "40-64", "65+"],
            "work": ["full-time", "part-time", "none"],
        }
    )
    policy = pg.Policy(domain, constraints=[pg.Cuboid("district"), pg.Cuboid("age")])
    share = np.einsum(
        "i,j,jk->ijk",
        [0.5, 0.3, 0.2],
        [0.2, 0.3, 0.3, 0.2],
        [[0, 0.02, 0.98], [0.55, 0.2, 0.25], [0.6, 0.2, 0.2], [0.02, 0.08, 0.9]],
    )
    counts = np.random.default_rng(2024).multinomial(6_000, (share / share.sum()).ravel())
    query = pg.queries.cuboid(domain, "district", "age", "work")
    return pg.release(query, policy, counts, epsilon=1)


def shot(driver: Any, path: Path, width: int, height: int, top: int = 0) -> None:
    """A picture of a part of the page."""
    browser.size(driver, width, height)
    clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
    made = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    path.write_bytes(base64.b64decode(made["data"]))


def part(driver: Any, path: Path, selector: str, width: int, height: int) -> None:
    """A picture of the page from one of its elements on."""
    browser.size(driver, width)
    box = driver.execute_script(
        "const box = document.querySelector(arguments[0]).getBoundingClientRect(); return [box.left + scrollX, box.top + scrollY, box.width]",
        selector,
    )
    clip = {"x": box[0] - 16, "y": box[1] + 16, "width": box[2] + 32, "height": height, "scale": 1}
    made = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    path.write_bytes(base64.b64decode(made["data"]))


def main() -> None:
    """Make every picture."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        pg.report(town(), folder / "town.html")
        with browser.chromium(folder) as driver:
            browser.colours(driver, "light")
            driver.get((folder / "town.html").as_uri())
            browser.size(driver, 1200)
            shot(driver, HERE / "report-light.png", 1200, 1500)
            part(driver, HERE / "result.png", "#results", 980, 640)
            browser.colours(driver, "dark")
            browser.size(driver, 420)
            driver.get((folder / "town.html").as_uri())
            shot(driver, HERE / "report-dark.png", 420, 1400)


if __name__ == "__main__":
    main()
