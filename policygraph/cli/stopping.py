"""Ctrl-C ends the command with status 130, wherever it is. Owns ``guarded``, ``asked`` and ``leave``.

Python turns the signal into an exception at its next line, which is too late inside a long call of another library, and some
of them keep the signal for themselves: a solver would stop, say "unknown", and the command would go on with a worse bound.
So the signal is kept away from them all. A thread waits for it, asks for the exception, and ends the process when that has not
ended it soon. Nothing half is left: a charge is one transaction, and files are renamed when they are whole.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

STOPPED = 130
"""Exit status after Ctrl-C, as shells have it."""

GRACE_SECONDS = 2.0
"""How long the command may take to clean up; a call of another library that lasts longer is cut off."""

SEARCH = "studio-search"
"""The name of the threads that the studio computes in."""

_asked = threading.Event()
_over = threading.Event()


def asked() -> bool:
    """Whether Ctrl-C was pressed while a command is guarded."""
    return _asked.is_set()


def guarded(work: Callable[[], int]) -> int:
    """Run a command and return its exit status: 130 when Ctrl-C was pressed, whatever came of it.

    Signals are as they were when it returns, but for Ctrl-C, which is ignored from then on: the status is settled.
    """
    _asked.clear()
    _over.clear()
    try:
        _install()
        status = work()
    except KeyboardInterrupt:
        status = STOPPED
    _over.set()
    if signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return STOPPED if asked() else status


def leave(status: int) -> NoReturn:
    """Exit with a status. Where the studio still computes in a thread, the program is not taken apart around it."""
    if any(each.name == SEARCH for each in threading.enumerate()):
        with suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _install() -> None:
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        return  # started in the background of a script: Ctrl-C is for somebody else
    # Threads that libraries start from here on keep the signal blocked as well, so that it waits for ours.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _unraisable
    # A thread that was there before has the signal unblocked: what reaches Python through it is told by a byte in a pipe.
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for wait in (lambda: signal.sigwait({signal.SIGINT}), lambda: _told(read)):
        threading.Thread(target=_wait, args=(wait,), name="ctrl-c", daemon=True).start()


def _wait(wait: Callable[[], object]) -> None:
    wait()
    if _asked.is_set():
        return
    _asked.set()
    signal_main()
    if not _over.wait(GRACE_SECONDS):
        # A line of progress hides the cursor.
        os.write(2, (b"\x1b[?25h" if os.isatty(2) else b"") + b"policygraph: stopped\n")
        os._exit(STOPPED)


def _told(read: int) -> None:
    """Wait for the byte of Ctrl-C; other signals that Python handles write theirs, too."""
    while os.read(read, 1) != bytes([signal.SIGINT]):
        pass


def signal_main() -> None:
    """Have the main thread run the handler at its next line."""
    import _thread

    _thread.interrupt_main()


def _interrupt(number: int, frame: Any) -> None:
    if not _over.is_set():
        raise KeyboardInterrupt


def _unraisable(caught: sys.UnraisableHookArgs) -> None:
    """An exception in a callback is printed and forgotten by Python: ask again for the one of Ctrl-C, print the others as usual."""
    if isinstance(caught.exc_value, KeyboardInterrupt) or asked():
        signal_main()
    else:
        sys.__unraisablehook__(caught)
