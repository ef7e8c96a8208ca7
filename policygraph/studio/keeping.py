"""Where what was sent lies, and that it goes. Owns :class:`Kept`, a private folder, and :func:`ended`, which lets signals end a program in order."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

try:
    import fcntl
except ImportError:  # Windows has neither these locks nor other users in the folder for temporary files
    fcntl = None  # type: ignore[assignment]

PREFIX = "policygraph-studio-"


class Kept:
    """A folder that only its owner can read. It is locked while its process lives, and folders of processes that are gone are removed first."""

    def __init__(self) -> None:
        sweep()
        while True:
            self._folder = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
            self.path = Path(self._folder.name)
            self._lock = _locked(self.path, wait=True)
            # Between making and locking it, another process may have taken it for an abandoned one.
            if self.path.exists():
                return
            self.remove()

    def remove(self) -> None:
        """Remove the folder with all that is in it. What a thread puts there meanwhile is removed by the next start."""
        self._folder.cleanup()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sweep() -> None:
    """Remove folders of this user whose process is gone: killed, or cut off with the machine."""
    if fcntl is None:
        return
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            found = path.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            lock = _locked(path, wait=False)
        except OSError:
            continue
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _locked(path: Path, *, wait: bool) -> int | None:
    """The descriptor of a folder that is locked by it; None where it cannot be. The system lets go of the lock when the process ends, however it ends."""
    if fcntl is None:
        return None
    opened = None
    try:
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(opened, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        if opened is not None:
            os.close(opened)
        return None
    return opened


@contextmanager
def ended() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the program by an exception, so that what is open is closed and removed; a second one is ignored meanwhile.

    A signal that somebody handles or ignores already (``nohup``) stays as it is.
    """
    ours = []
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                ours.append(number)

    def end(number: int, frame: FrameType | None) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
