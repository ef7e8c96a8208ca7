"""Debian's Chromium, driven by selenium, and axe-core from npm."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-prefers-reduced-motion",
)


PATIENCE = 600
"""Seconds after which a browser that does not answer is given up: a limit for what hangs, not for a slow machine."""


@contextmanager
def chromium(folder: Path, width: int = 1400, height: int = 1000) -> Iterator[Any]:
    """A new browser with a profile of its own; what it downloads goes into the folder."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs Debian's chromium and chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--window-size={width},{height}", f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        driver.set_page_load_timeout(PATIENCE)
        driver.set_script_timeout(PATIENCE)
        driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
        )
        yield driver
    finally:
        driver.quit()


def downloaded(folder: Path, pattern: str, before: Collection[Path] = ()) -> Path:
    """The file that the browser downloads, once it is whole: until then the browser keeps its name with an empty file."""
    for _ in range(10 * PATIENCE):
        for file in folder.glob(pattern):
            if file not in before and file.stat().st_size:
                return file
        time.sleep(0.1)
    raise AssertionError(f"nothing was downloaded as {pattern}")


def size(driver: Any, width: int, height: int = 1000) -> None:
    """Give the page another width."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def colours(driver: Any, scheme: str) -> None:
    """Say what colours the reader prefers."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def axe(folder: Path) -> str:
    """The source of axe-core; skipped where there is no npm, unless the checks before landing run."""
    npm = shutil.which("npm")
    if npm is None:
        assert not os.environ.get("CI"), "npm is missing"
        pytest.skip("needs npm for axe-core")
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), "axe-core@4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        assert not os.environ.get("CI"), done.stderr
        pytest.skip("npm could not install axe-core")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def grave(driver: Any, source: str) -> list[str]:
    """What axe-core finds on the page that is serious or critical."""
    driver.execute_script(source)
    found = driver.execute_async_script("const done = arguments[0]; axe.run(document).then(done);")
    return [
        f"{each['id']}: {node['html'][:120]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
