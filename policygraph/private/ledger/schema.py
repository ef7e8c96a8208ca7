"""The tables of a ledger file, the seals of its entries, and the checks that trust rests on.

Owns the layout (``VERSION``) and its verification. May import ``errors`` and ``records``; gets an open
connection from ``store``.

The entries are append-only. Each carries a digest over its own content and the digest before it, so that a
changed, reordered or missing line is noticed. The seals guard against accidents, not against an owner who
rewrites the whole file: a ledger is only as honest as its keeper.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from policygraph.errors import LedgerError
from policygraph.private.ledger.records import canonical_json

__all__ = [
    "APPLICATION_ID",
    "ENTRY_COLUMNS",
    "VERSION",
    "append",
    "create_tables",
    "library_version",
    "now",
    "verify",
]

APPLICATION_ID = 0x50474C44
VERSION = 2
ENTRY_COLUMNS = (
    "number, what, dataset, policy, loss, certified, request, content, composed, note, time, version, seal"
)

_TABLES = (
    """CREATE TABLE ledger (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        identity TEXT NOT NULL, secret BLOB NOT NULL, created TEXT NOT NULL, version TEXT NOT NULL)""",
    """CREATE TABLE datasets (dataset TEXT PRIMARY KEY NOT NULL, name TEXT UNIQUE)""",
    """CREATE TABLE policies (policy TEXT PRIMARY KEY NOT NULL, description TEXT NOT NULL)""",
    """CREATE TABLE entries (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        what TEXT NOT NULL CHECK (what IN ('limit', 'charge')),
        dataset TEXT NOT NULL REFERENCES datasets (dataset),
        policy TEXT REFERENCES policies (policy) CHECK ((policy IS NOT NULL) = (what = 'charge')),
        loss TEXT NOT NULL, certified TEXT,
        request TEXT CHECK ((request IS NOT NULL) = (what = 'charge')),
        content TEXT CHECK (content IS NULL OR what = 'charge'),
        composed INTEGER NOT NULL CHECK (composed IN (0, 1)),
        note TEXT NOT NULL, time TEXT NOT NULL, version TEXT NOT NULL, seal TEXT NOT NULL)""",
    """CREATE TABLE releases (
        number INTEGER PRIMARY KEY REFERENCES entries (number),
        time TEXT NOT NULL, body BLOB NOT NULL, digest TEXT NOT NULL)""",
    """CREATE INDEX entries_by_dataset ON entries (dataset, what, policy, loss)""",
    """CREATE INDEX entries_by_request ON entries (request)""",
    """CREATE INDEX entries_by_content ON entries (content)""",
    *(
        f"""CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table}
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"""
        for table in ("entries", "releases")
        for verb in ("UPDATE", "DELETE")
    ),
)


def now() -> str:
    """Tell the time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@cache
def library_version() -> str:
    """Name the version of the library that writes."""
    try:
        return version("policygraph")
    except PackageNotFoundError:
        return "unknown"


def create_tables(connection: sqlite3.Connection) -> None:
    """Lay out an empty ledger, inside a transaction of the caller."""
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(
        "INSERT INTO ledger VALUES (1, ?, ?, ?, ?)",
        (secrets.token_hex(16), secrets.token_bytes(32), now(), library_version()),
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _seal(previous: str, line: tuple[object, ...]) -> str:
    return hashlib.sha256(canonical_json([previous, *line], "entry").encode()).hexdigest()


def _first_seal(connection: sqlite3.Connection) -> str:
    """Seal the identity and the key, without which every data set would look unspent."""
    identity, secret, created, version = connection.execute(
        "SELECT identity, hex(secret), created, version FROM ledger"
    ).fetchone()
    return _seal("", (identity, secret, created, version))


def append(
    connection: sqlite3.Connection,
    *,
    what: str,
    dataset: str,
    loss: str,
    note: str,
    policy: str | None = None,
    certified: str | None = None,
    request: str | None = None,
    content: str | None = None,
    composed: bool = False,
) -> tuple[int, str, str]:
    """Add a sealed entry inside a transaction of the caller; return its number, time and seal."""
    last = connection.execute("SELECT number, seal FROM entries ORDER BY number DESC LIMIT 1").fetchone()
    number, previous = (last[0] + 1, last[1]) if last else (1, _first_seal(connection))
    time = now()
    line = (
        number, what, dataset, policy, loss, certified, request, content, int(composed), note, time, library_version()
    )  # fmt: skip
    seal = _seal(previous, line)
    places = ", ".join("?" * (len(line) + 1))
    connection.execute(f"INSERT INTO entries ({ENTRY_COLUMNS}) VALUES ({places})", (*line, seal))
    return number, time, seal


def verify(connection: sqlite3.Connection) -> None:
    """Check a whole ledger: pages, layout, references, seals, and that no entry is missing.

    Raises
    ------
    LedgerError
        With the first few faults found.
    """
    faults = list(_faults(connection))[:5]
    if faults:
        raise LedgerError(
            f"The ledger is damaged: {'; '.join(faults)}. Nothing was changed. Restore the latest copy of the "
            "file, and count what was released since as spent.",
            code="ledger.damaged",
            faults=faults,
        )


def _faults(connection: sqlite3.Connection) -> Iterator[str]:
    layout = {_squeeze(sql) for (sql,) in connection.execute("SELECT sql FROM sqlite_master") if sql}
    expected = {_squeeze(sql) for sql in _TABLES} | {_squeeze("CREATE TABLE sqlite_sequence(name,seq)")}
    if layout != expected:
        yield "its tables are not those of a ledger"
        return
    # The full check and not the quick one: the sums are read from an index, which must agree with its table.
    for (report,) in connection.execute("PRAGMA integrity_check(3)"):
        if report != "ok":
            yield str(report)
            return
    for table, *_ in connection.execute("PRAGMA foreign_key_check"):
        yield f"a line of {table} refers to a missing one"
    if connection.execute("SELECT count(*) FROM ledger").fetchone() != (1,):
        yield "its identity is missing"
        return
    previous, count = _first_seal(connection), 0
    for row in connection.execute(f"SELECT {ENTRY_COLUMNS} FROM entries ORDER BY number"):
        count += 1
        if row[0] != count:
            yield f"entry {count} is missing"
            return
        # Damage can turn a text into bytes, which have no place in a seal.
        if any(isinstance(value, bytes) for value in row) or row[-1] != _seal(previous, row[:-1]):
            yield f"entry {count} does not match its seal"
            return
        previous = row[-1]
    sequence = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
    if (sequence[0] if sequence else 0) != count:
        yield f"entries after {count} are missing"


def _squeeze(sql: str) -> str:
    return "".join(sql.split())
