"""From layout 2 to layout 3: names, policies and releases come under seal, releases are kept in pieces, charges keep their keys.

Owns the old layout. May import ``errors`` and ``schema``; gets an open connection from ``store``, inside one transaction: a
file is of the old layout or of the new one, never in between.
"""

from __future__ import annotations

import hashlib
import sqlite3

from policygraph.curator.ledger import schema
from policygraph.errors import LedgerError

__all__ = ["OLD", "upgrade"]

OLD = 2
"""The layout that :func:`upgrade` reads."""

_RELEASES = """CREATE TABLE releases (
        number INTEGER PRIMARY KEY REFERENCES entries (number),
        time TEXT NOT NULL, body BLOB NOT NULL, digest TEXT NOT NULL)"""
_NEW = ("stored", "chunks", "keys", "marks", "head")


def _is_new(statement: str) -> bool:
    words = schema.squeeze(statement)
    return any(f"TABLE{name}(" in words or f"ON{name}BEGIN" in words for name in _NEW)


def upgrade(connection: sqlite3.Connection) -> None:
    """Check a file of the old layout as its own version did, and bring it to the new one.

    Raises
    ------
    LedgerError
        If the file is damaged; nothing is changed.
    """
    faults = _faults(connection)
    if faults:
        raise LedgerError(
            f"The ledger is damaged: {'; '.join(faults)}. Nothing was changed. Restore the latest copy of the "
            "file, and count what was released since as spent.",
            code="ledger.damaged",
            faults=faults,
        )
    for statement in schema.TABLES:
        if _is_new(statement):
            connection.execute(statement)
    for dataset, name in connection.execute("SELECT dataset, name FROM datasets ORDER BY dataset").fetchall():
        schema.mark(connection, "dataset", dataset, name)
    for policy, text in connection.execute(
        "SELECT policy, description FROM policies ORDER BY policy"
    ).fetchall():
        schema.mark(connection, "policy", policy, text)
    for (number,) in connection.execute("SELECT number FROM releases ORDER BY number").fetchall():
        time, body = connection.execute(
            "SELECT time, body FROM releases WHERE number = ?", (number,)
        ).fetchone()
        schema.store_release(connection, number, bytes(body), time)
    connection.execute("DROP TABLE releases")
    schema.seal_head(connection)
    connection.execute(f"PRAGMA user_version = {schema.VERSION}")


def _faults(connection: sqlite3.Connection) -> list[str]:
    """What the version that wrote the file would have refused, and releases that are not those that were stored."""
    kept = {schema.squeeze(statement) for statement in schema.TABLES if not _is_new(statement)}
    triggers = {
        schema.squeeze(
            f"""CREATE TRIGGER releases_{verb.lower()} BEFORE {verb} ON releases
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"""
        )
        for verb in ("UPDATE", "DELETE")
    }
    expected = (
        kept
        | triggers
        | {schema.squeeze(_RELEASES), schema.squeeze("CREATE TABLE sqlite_sequence(name,seq)")}
    )
    layout = {schema.squeeze(sql) for (sql,) in connection.execute("SELECT sql FROM sqlite_master") if sql}
    if layout != expected:
        return ["its tables are not those of a ledger"]
    for (report,) in connection.execute("PRAGMA integrity_check(3)"):
        if report != "ok":
            return [str(report)]
    found = [
        f"a line of {table} refers to a missing one"
        for table, *_ in connection.execute("PRAGMA foreign_key_check")
    ]
    if connection.execute("SELECT count(*) FROM ledger").fetchone() != (1,):
        return ["its identity is missing"]
    found += schema.faults_of_entries(connection)
    for number, body, digest in connection.execute("SELECT number, body, digest FROM releases"):
        if not isinstance(body, bytes) or hashlib.sha256(body).hexdigest() != digest:
            found.append(f"the release of charge {number} is damaged")
    return found[:5]
