"""Progress: a line on a terminal after a while, one line per stage with --verbose, nothing in a pipe."""

from __future__ import annotations

import os
import pty
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from policygraph.cli import progress
from policygraph.cli.app import run as main


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "p.toml"
    path.write_text('[domain]\nsex = ["F", "M"]\n')
    return path


def test_verbose_says_each_stage_on_a_line(
    policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "p.csv"
    data.write_text("sex\nF\nM\n")
    command = ["release", str(policy), "--data", str(data), "--epsilon", "1", "--out", str(tmp_path / "out")]
    assert main([*command, "--verbose"]) == 0
    said = [line.partition("] ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said[1:] == [
        "starting",
        "computing the sensitivity",
        "counting the records",
        "checking the public facts",
        "drawing the noise",
        "done",
    ]
    assert main([*command, "--overwrite"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "no --ledger: what is spent here is not recorded anywhere"
    ]


def terminal(monkeypatch: pytest.MonkeyPatch) -> tuple[int, Any]:
    """A terminal as standard error: what to read from, and the stream."""
    master, slave = pty.openpty()
    stream = os.fdopen(slave, "w", encoding="utf-8")
    monkeypatch.setattr(sys, "stderr", stream)
    return master, stream


def test_a_terminal_shows_what_is_done_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SOON", 0.0)
    monkeypatch.setattr(progress, "OFTEN", 0.01)
    master, stream = terminal(monkeypatch)
    seen = b""
    with suppress(KeyboardInterrupt), progress.stage("starting") as tell:
        tell("counting the records")
        while b"counting the records (step 2 of 6), " not in seen:
            seen += os.read(master, 4096)
        raise KeyboardInterrupt
    stream.flush()
    while b"\x1b[?25h" not in seen:  # the cursor is there again
        seen += os.read(master, 4096)
    stream.close()
    os.close(master)


def test_a_short_step_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    master, stream = terminal(monkeypatch)
    monkeypatch.setattr(progress, "SOON", 60.0)
    with progress.stage("starting") as tell:
        tell("counting the records")
    stream.write("end")
    stream.flush()
    assert os.read(master, 4096) == b"end"
    stream.close()
    os.close(master)
