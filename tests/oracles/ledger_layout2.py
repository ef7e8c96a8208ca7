"""A ledger as the layout before wrote it, statement by statement: what an upgrade has to read."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3

TABLES = (
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


def seal(previous, line):
    text = json.dumps([previous, *line], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write(path, dataset, name, losses, request, bodies):
    """Write a book with one data set under one policy: a charge for each loss, a release for each of the first bodies.

    ``dataset`` and ``request`` say what is stored, given the key of the ledger.
    """
    db = sqlite3.connect(path, isolation_level=None)
    for statement in TABLES:
        db.execute(statement)
    secret, when = secrets.token_bytes(32), "2024-02-29T12:00:00.000+00:00"
    db.execute("INSERT INTO ledger VALUES (1, ?, ?, ?, ?)", ("identity", secret, when, "0.1.0"))
    db.execute("INSERT INTO datasets VALUES (?, ?)", (dataset(secret), name))
    db.execute("INSERT INTO policies VALUES ('policy-p', '{\"a\":1}')")
    previous = seal("", ("identity", secret.hex().upper(), when, "0.1.0"))
    for number, loss in enumerate(losses, 1):
        line = (number, "charge", dataset(secret), "policy-p", loss, None, request(secret, number), None, 0, "", when, "0.1.0")  # fmt: skip
        previous = seal(previous, line)
        db.execute(f"INSERT INTO entries VALUES ({', '.join('?' * 13)})", (*line, previous))
    for number, body in enumerate(bodies, 1):
        digest = hashlib.sha256(body).hexdigest()
        db.execute("INSERT INTO releases VALUES (?, ?, ?, ?)", (number, when, body, digest))
    db.execute("PRAGMA application_id = 1346849860")
    db.execute("PRAGMA user_version = 2")
    db.close()
