"""What a command is doing, for whoever waits. Owns ``stage`` and the option ``--verbose``.

On a terminal a line appears after a second, with the stage, its number where there are several, and the seconds. In a pipe nothing is said, unless ``--verbose`` asks for one line per stage.
A thread shows the line, so that a short command neither waits for it nor loads what draws it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SOON = 1.0
"""Seconds after which a terminal shows what is being done."""
OFTEN = 0.25
STAGES = (
    "computing the sensitivity",
    "counting the records",
    "checking the public facts",
    "charging the ledger",
    "drawing the noise",
    "recording the release",
)
"""The stages of a release in their order; those in the ledger are left out without one."""

_verbose = False


def set_verbose(wanted: bool) -> None:
    """Say each stage on a line of its own, from now on."""
    global _verbose
    _verbose = wanted


@contextmanager
def stage(text: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done; what is given out is called with the words for each further step."""
    started = time.monotonic()
    if _verbose:

        def say(now: str) -> None:
            sys.stderr.write(f"[{time.monotonic() - started:7.1f} s] {now}\n")
            sys.stderr.flush()

        say(text)
        yield say
        say("done")
        return
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    shown = _Line(text, started)
    try:
        yield shown.tell
    finally:
        shown.end()


def numbered(now: str) -> str:
    """The words of a stage with its place among those of a release.

    Examples
    --------
    >>> numbered("counting the records"), numbered("looking at age (3 of 7)")
    ('counting the records (step 2 of 6)', 'looking at age (3 of 7)')
    """
    return f"{now} (step {STAGES.index(now) + 1} of {len(STAGES)})" if now in STAGES else now


class _Line:
    """One line at the foot of a terminal, from a second after the start until the end."""

    def __init__(self, text: str, started: float) -> None:
        self.text, self.started = text, started
        self.over = threading.Event()
        self.stream = sys.stderr
        self.thread = threading.Thread(target=self._show, name="progress", daemon=True)
        self.thread.start()

    def tell(self, now: str) -> None:
        """Change the words."""
        self.text = numbered(now)

    def end(self) -> None:
        """Take the line away."""
        self.over.set()
        self.thread.join()

    def _show(self) -> None:
        if self.over.wait(SOON):
            return
        from rich.console import Console

        with Console(file=self.stream).status(self._words()) as status:
            while not self.over.wait(OFTEN):
                status.update(self._words())

    def _words(self) -> Any:
        from rich.text import Text

        # As text and not as markup, which would swallow brackets.
        return Text(f"{self.text}, {time.monotonic() - self.started:.0f} s")
