"""The ledger file: opening, creating, transactions, and every failure as a ``LedgerError``.

Owns the SQLite connection. May import ``errors`` and ``schema``.

A connection lives for one call. One lock of the process is held while it is open and is taken around a fork,
so that no connection is ever shared by threads or inherited by a child; between processes SQLite's own file
locks decide. ``synchronous=EXTRA`` makes a commit wait until the data, and the removal of the rollback
journal that makes it final, are on the disk.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from policygraph.curator.ledger.schema import APPLICATION_ID, OLD, VERSION, Connection, create_tables, upgrade
from policygraph.errors import LedgerError

BUSY_SECONDS = 30.0
ASKING_SECONDS = 600.0
"""How long an online question waits for another process that is asking on the same ledger."""
PRAGMAS = ("synchronous=EXTRA", "fullfsync=ON", "foreign_keys=ON", "temp_store=MEMORY", "secure_delete=ON")
SLACK = 1 << 18
"""Room for a charge, for the journals of two transactions and for pages that are only partly filled."""
GUARD = threading.RLock()
"""Held while any connection is open, and around a fork."""

if hasattr(os, "register_at_fork"):  # pragma: no branch
    os.register_at_fork(before=GUARD.acquire, after_in_parent=GUARD.release, after_in_child=GUARD.release)

_ADVICE = {
    sqlite3.SQLITE_READONLY: (
        "read-only",
        "The file or its folder cannot be written. Check their permissions.",
    ),
    sqlite3.SQLITE_PERM: ("read-only", "The file or its folder cannot be written. Check their permissions."),
    sqlite3.SQLITE_FULL: ("full", "The disk is full. Make room and ask again."),
    sqlite3.SQLITE_IOERR: ("write", "The disk failed or is full. Check it and ask again."),
    sqlite3.SQLITE_BUSY: ("busy", f"Another process held it for {BUSY_SECONDS:g} seconds. Ask again."),
    sqlite3.SQLITE_LOCKED: ("busy", "Another call holds it. Ask again."),
    sqlite3.SQLITE_CORRUPT: ("damaged", "It is damaged. Restore the latest copy of the file."),
    sqlite3.SQLITE_NOTADB: ("not-a-ledger", "It is not a ledger. Name another path."),
    sqlite3.SQLITE_CANTOPEN: ("unreadable", "It cannot be opened. Check the path and its permissions."),
    sqlite3.SQLITE_TOOBIG: ("too-big", "The record is larger than the file can hold. Store less."),
}


def _failure(path: Path, cause: sqlite3.Error) -> LedgerError:
    # A text that is no text is found by Python and not by SQLite, so that it carries no code.
    unknown = sqlite3.SQLITE_CORRUPT if isinstance(cause, sqlite3.OperationalError) else sqlite3.SQLITE_ERROR
    number = getattr(cause, "sqlite_errorcode", unknown) & 0xFF
    case, advice = _ADVICE.get(number, ("failed", "The ledger could not do it."))
    return LedgerError(
        f"Ledger {path}: {cause}. {advice} Nothing may be released without a recorded charge.",
        code=f"ledger.{case}",
        path=path,
    )


@contextmanager
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing file for one call; it is never created here.

    Raises
    ------
    LedgerError
        For whatever goes wrong with the file while it is open.
    """
    with GUARD:
        try:
            opened = sqlite3.connect(
                f"{path.as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None
            )
            try:
                for pragma in PRAGMAS:
                    opened.execute(f"PRAGMA {pragma}")
                yield opened
            finally:
                opened.close()
        except sqlite3.Error as cause:
            raise _failure(path, cause) from cause
        except UnicodeDecodeError as cause:
            # The text of SQLite's own message can quote damaged bytes of the file.
            raise LedgerError(
                f"Ledger {path}: its text cannot be read. It is damaged. Restore the latest copy of the file.",
                code="ledger.damaged",
                path=path,
            ) from cause


@contextmanager
def transaction(opened: sqlite3.Connection, *, write: bool) -> Iterator[None]:
    """Run a block as one transaction: durable when it ends well, without a trace when it does not."""
    # IMMEDIATE takes the write lock before the sums are read, so that two processes cannot both see room.
    opened.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield
        opened.execute("COMMIT")
    except BaseException:
        # SQLite may have rolled back by itself, and what it cannot undo now it undoes at the next opening.
        with suppress(sqlite3.Error):
            opened.execute("ROLLBACK")
        raise


def check_header(path: Path) -> None:
    """Refuse what is not a ledger of a known version, from the first bytes and without opening it.

    Raises
    ------
    LedgerError
        If the file is missing, unreadable, empty, foreign, damaged or newer. The file is not changed.
    """
    # Reading past SQLite needs the guard: closing any descriptor of a file drops the process's locks on it.
    with GUARD:
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise LedgerError(
                    f"Ledger {path}: expected an ordinary file.", code="ledger.not-a-ledger", path=path
                )
            with path.open("rb") as file:
                head = file.read(100)
        except OSError as cause:
            raise LedgerError(
                f"Ledger {path}: cannot be read ({cause.strerror}). Check the path and its permissions.",
                code="ledger.unreadable",
                path=path,
            ) from cause
    if not head:
        raise LedgerError(
            f"Ledger {path}: the file is empty, and an empty ledger is not: it was cut off or never was one. "
            "Restore the latest copy, or name a path that does not exist to start a new ledger.",
            code="ledger.damaged",
            path=path,
        )
    if len(head) < 100 or head[:16] != b"SQLite format 3\0" or _number(head, 68) != APPLICATION_ID:
        raise LedgerError(
            f"Ledger {path}: the file is not a policygraph ledger. It was not changed. Name another path.",
            code="ledger.not-a-ledger",
            path=path,
        )
    if _number(head, 60) not in (*OLD, VERSION):
        raise LedgerError(
            f"Ledger {path}: layout {_number(head, 60)}, expected {VERSION}. It was not changed. Use the version "
            f"of policygraph that wrote it{', or a newer one' if _number(head, 60) > VERSION else ''}.",
            code="ledger.version",
            path=path,
            version=_number(head, 60),
        )


def check_size(opened: Connection, path: Path) -> None:
    """Refuse a file that is shorter than its pages: what is cut off from the last one would be read as zeros.

    Inside a transaction, so that no other process is in the middle of writing, and a journal that was left behind is undone.
    """
    pages, size = (opened.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    length = path.stat().st_size
    if length < pages * size:
        raise LedgerError(
            f"Ledger {path}: the file has {length:,} bytes of {pages * size:,}: it was cut off. It is damaged. Nothing was changed. "
            "Restore the latest copy of the file, and count what was released since as spent.",
            code="ledger.damaged",
            path=path,
        )


def upgrade_file(path: Path) -> None:
    """Bring a file of a layout before to the present one, in one transaction; leave any other as it is."""
    with GUARD, path.open("rb") as file:
        head = file.read(100)
    if _number(head, 60) not in OLD:
        return
    with connection(path) as opened, transaction(opened, write=True):
        check_size(opened, path)
        # Another process may have done it while this one waited for the lock.
        (version,) = opened.execute("PRAGMA user_version").fetchone()
        if version in OLD:
            upgrade(opened, version)


class Room:
    """Room on the disk of a ledger, held by a file without a name until it is let go; a killed process holds nothing.

    Parameters
    ----------
    path
        The ledger.
    size
        Bytes that are to be written after the charge.

    Raises
    ------
    LedgerError
        If there is no such room. Nothing is charged then.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size, self._handle = path, size + size // 64 + SLACK, -1
        try:
            self._hold()
        except OSError as cause:
            self.let_go()
            raise self._full(cause.strerror or str(cause)) from cause

    def _hold(self) -> None:
        if os.name != "posix":  # pragma: no cover
            return
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if soft != resource.RLIM_INFINITY and self.path.stat().st_size + self.size > soft:
            raise self._full("files of this process may not become as large")
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", suffix=".room", dir=self.path.parent)
        self._handle = handle
        os.unlink(name)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, self.size)
        else:  # pragma: no cover
            for _ in range(0, self.size, SLACK):
                os.write(handle, bytes(SLACK))

    def fits(self, opened: Connection) -> None:
        """Compare the room with the most pages that the file may have."""
        pages, most, size = (
            opened.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "max_page_count", "page_size")
        )
        if (most - pages) * size < self.size:
            raise self._full("the file may not have as many pages")

    def let_go(self) -> None:
        """Give the room back, to the release that is stored next."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _full(self, why: str) -> LedgerError:
        return LedgerError(
            f"Ledger {self.path}: no room for the {self.size:,} bytes that the release can take ({why}). Nothing was charged. Make room "
            "and ask again.",
            code="ledger.full",
            path=self.path,
        )


@dataclass(frozen=True)
class FileStore:
    """A ledger in a file."""

    path: Path

    def exists(self) -> bool:
        """Whether anything is there."""
        return os.path.lexists(self.path)

    def prepare(self, *, create: bool) -> None:
        """Check that the file is a ledger and bring it to the present layout, or start one."""
        if create and not self.exists():
            _create(self.path)
        check_header(self.path)
        upgrade_file(self.path)

    @contextmanager
    def open(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """One transaction: durable when it ends well, without a trace when it does not."""
        with connection(self.path) as db, transaction(db, write=write):
            yield db

    def check_whole(self, db: Connection) -> None:
        """Refuse a file that was cut off."""
        check_size(db, self.path)

    def layout(self, db: Connection) -> list[int]:
        """What the file is and which layout it has."""
        return [db.execute(f"PRAGMA {key}").fetchone()[0] for key in ("application_id", "user_version")]

    def faults(self, db: Connection) -> None:
        """Files are compared with their layout together with their seals."""

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Hold a lock beside the file for a series of transactions."""
        beside = self.path.with_name(self.path.name + ".asking")
        try:
            lock = sqlite3.connect(
                beside, timeout=ASKING_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error:
                lock.close()
                raise
        except sqlite3.Error as cause:
            raise not_asked(str(beside), cause) from cause
        try:
            yield
        finally:
            lock.close()

    def login(self, db: Connection) -> None:
        """A file knows nobody."""

    def room(self, size: int) -> Room:
        """Hold room on the disk for a release of some bytes."""
        return Room(self.path, size)


def not_asked(place: str, cause: object) -> LedgerError:
    """The refusal of an online question that others kept waiting."""
    return LedgerError(
        f"{place}: questions on this ledger are asked one after the other, and this one could not wait its turn ({cause}).",
        code="online.busy",
        path=place,
    )


def _number(head: bytes, offset: int) -> int:
    return int.from_bytes(head[offset : offset + 4], "big")


def _create(path: Path) -> None:
    """Make a new ledger, or leave the one that another process makes at the same moment.

    Raises
    ------
    LedgerError
        If the folder is missing or cannot be written.

    Notes
    -----
    The file is completed under another name and then linked to its own, which fails if the name exists.
    A crash can therefore never leave half a ledger that a later opening would take for a new, unspent one.
    """
    if not path.parent.is_dir():
        raise LedgerError(
            f"Ledger {path}: the folder {path.parent} does not exist. Create it, or name another path.",
            code="ledger.no-folder",
            path=path,
        )
    draft = path.parent / f".{path.name}.{secrets.token_hex(8)}.new"
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            with connection(draft) as opened, transaction(opened, write=True):
                create_tables(opened)
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()
        _sync_folder(path.parent)
    except OSError as cause:
        raise LedgerError(
            f"Ledger {path}: cannot be created ({cause.strerror}). Check the folder's permissions, and that its "
            "file system is a local one that knows hard links.",
            code="ledger.not-created",
            path=path,
        ) from cause


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # pragma: no cover
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
