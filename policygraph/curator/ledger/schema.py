"""The tables of a ledger file, the seals of its lines, the checks that trust rests on, and the layouts before.

Owns the layout (``VERSION``), its verification, and :func:`upgrade`; gets an open connection from ``store`` (a file) or ``server``.

Entries and marks are append-only. An entry is a limit or a charge; a mark says what a data set is called, how a policy reads,
which cells a charge is for, who made an entry and what for, which account is inside which, what is reserved, which key a charge waits with, and
which release it was completed with. Each carries a digest over its own content and
the digest before it, and the head says how many of each there are and how they end, under the key of the ledger: a changed, reordered, added or
missing line is noticed. The seals guard against accidents and careless hands, not against an owner who
rewrites the whole file or brings back an old copy: a ledger is only as honest as its keeper.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from policygraph.errors import InputError, LedgerError
from policygraph.version import __version__


class Connection(Protocol):
    """What statements are run on: a file of SQLite, or a server."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Any: ...


APPLICATION_ID = 0x50474C44
VERSION = 5
OLD = (2, 3, 4)
"""Layouts that :func:`upgrade` reads."""
CHUNK = 1 << 24
"""Bytes of a release in one row: one value of the file cannot hold more than some 10^9."""
APPEND_ONLY = (
    "entries",
    "stored",
    "chunks",
    "parts",
    "details",
    "parents",
    "reservations",
    "closings",
    "marks",
)
ENTRY_COLUMNS = (
    "number, what, dataset, policy, loss, certified, request, content, composed, note, time, version, seal"
)

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
    """CREATE TABLE stored (
        number INTEGER PRIMARY KEY REFERENCES entries (number),
        time TEXT NOT NULL, bytes INTEGER NOT NULL, digest TEXT NOT NULL)""",
    """CREATE TABLE chunks (
        number INTEGER NOT NULL REFERENCES stored (number), place INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (number, place))""",
    """CREATE TABLE parts (
        number INTEGER PRIMARY KEY REFERENCES entries (number), reading TEXT NOT NULL, cells TEXT NOT NULL)""",
    """CREATE TABLE details (number INTEGER PRIMARY KEY REFERENCES entries (number), content TEXT NOT NULL)""",
    """CREATE TABLE parents (
        dataset TEXT PRIMARY KEY NOT NULL REFERENCES datasets (dataset),
        parent TEXT NOT NULL REFERENCES datasets (dataset), kind TEXT NOT NULL CHECK (kind IN ('share', 'group')))""",
    """CREATE TABLE reservations (
        number INTEGER PRIMARY KEY, dataset TEXT NOT NULL REFERENCES datasets (dataset),
        loss TEXT NOT NULL, until TEXT, content TEXT NOT NULL, time TEXT NOT NULL)""",
    """CREATE TABLE closings (number INTEGER PRIMARY KEY REFERENCES reservations (number), content TEXT NOT NULL, time TEXT NOT NULL)""",
    """CREATE TABLE keys (number INTEGER PRIMARY KEY REFERENCES entries (number), key BLOB NOT NULL)""",
    """CREATE TABLE marks (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        what TEXT NOT NULL CHECK (what IN ('dataset', 'policy', 'part', 'detail', 'parent', 'reservation', 'closing', 'key', 'release')),
        subject TEXT NOT NULL, digest TEXT NOT NULL, seal TEXT NOT NULL)""",
    """CREATE TABLE head (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        entries INTEGER NOT NULL, entry_seal TEXT NOT NULL,
        marks INTEGER NOT NULL, mark_seal TEXT NOT NULL, seal TEXT NOT NULL)""",
    """CREATE INDEX entries_by_dataset ON entries (dataset, what, policy, loss)""",
    """CREATE INDEX entries_by_request ON entries (request)""",
    """CREATE INDEX entries_by_content ON entries (content)""",
    *(
        f"""CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table}
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"""
        for table in APPEND_ONLY
        for verb in ("UPDATE", "DELETE")
    ),
)


_SINCE = {
    3: ("stored", "chunks", "keys", "marks", "head"),
    4: ("parts",),
    5: ("details", "parents", "reservations", "closings"),
}
"""Tables that a layout brought."""
_MARKS = {3: "'policy', 'key'", 4: "'policy', 'part', 'key'"}
"""What the marks of an older layout could say, in the middle of their condition."""
_RELEASES = (
    """CREATE TABLE releases (
        number INTEGER PRIMARY KEY REFERENCES entries (number),
        time TEXT NOT NULL, body BLOB NOT NULL, digest TEXT NOT NULL)""",
    *(
        f"""CREATE TRIGGER releases_{verb.lower()} BEFORE {verb} ON releases
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"""
        for verb in ("UPDATE", "DELETE")
    ),
)


def canonical_json(value: object, name: str, *, sort_keys: bool = True) -> str:
    """Write a value as JSON in the one form that equal values share.

    Parameters
    ----------
    value, name
        The value, and what an error calls it.
    sort_keys
        Whether mappings are written in the order of their keys, or in their own.

    Raises
    ------
    InputError
        If the value is not made of JSON values.
    """
    try:
        return json.dumps(
            value, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False, ensure_ascii=True
        )
    except (TypeError, ValueError) as cause:
        raise InputError(
            f"{name}={value!r}: expected JSON values (text, whole numbers, lists, mappings).",
            code="ledger.not-json",
            value=value,
        ) from cause


def now() -> str:
    """Tell the time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def create_tables(connection: Connection) -> None:
    """Lay out an empty ledger, inside a transaction of the caller."""
    for statement in TABLES:
        connection.execute(statement)
    fill(connection)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def fill(connection: Connection) -> None:
    """Give empty tables an identity, a key and a head."""
    connection.execute(
        "INSERT INTO ledger VALUES (1, ?, ?, ?, ?)",
        (secrets.token_hex(16), secrets.token_bytes(32), now(), __version__),
    )
    seal_head(connection)


def _keyed(connection: Connection, *values: object) -> str:
    """Digest of some values under the key of the ledger."""
    (secret,) = connection.execute("SELECT secret FROM ledger").fetchone()
    # Damage can turn the key into a text; its seal then fails like any other.
    key = secret if isinstance(secret, bytes) else str(secret).encode()
    return hmac.new(key, canonical_json(list(values), "seal").encode(), hashlib.sha256).hexdigest()


def _last(connection: Connection, table: str) -> tuple[int, str]:
    row = connection.execute(f"SELECT number, seal FROM {table} ORDER BY number DESC LIMIT 1").fetchone()
    return (row[0], row[1]) if row else (0, "")


def seal_head(connection: Connection) -> None:
    """Say how many entries and marks there are now, and how they end; the last step of every transaction that writes."""
    line = (*_last(connection, "entries"), *_last(connection, "marks"))
    if connection.execute("SELECT entries, entry_seal, marks, mark_seal FROM head").fetchone() == line:
        return
    connection.execute("DELETE FROM head")
    connection.execute(
        "INSERT INTO head VALUES (1, ?, ?, ?, ?, ?)", (*line, _keyed(connection, "head", *line))
    )


def check_head(connection: Connection) -> str | None:
    """Compare the head with the ends of the two chains; give what is wrong."""
    row = connection.execute("SELECT entries, entry_seal, marks, mark_seal, seal FROM head").fetchone()
    line = (*_last(connection, "entries"), *_last(connection, "marks"))
    if row is None or any(isinstance(value, bytes) for value in (*row, *line)):
        return "its head is missing"
    if row[-1] != _keyed(connection, "head", *row[:-1]):
        return "its head does not match its seal"
    if row[:-1] != line:
        return "entries or marks at its end are missing or too many"
    return None


def mark(connection: Connection, what: str, subject: str, *content: object) -> None:
    """Put something beside the entries under seal, inside a transaction of the caller."""
    number, previous = _last(connection, "marks")
    digest = _keyed(connection, what, subject, *content)
    seal = _keyed(connection, previous, number + 1, what, subject, digest)
    connection.execute("INSERT INTO marks VALUES (?, ?, ?, ?, ?)", (number + 1, what, subject, digest, seal))


def put_part(connection: Connection, number: int, reading: str, cells: str) -> None:
    """Keep beside a charge which cells it is for, in the transaction of the charge."""
    connection.execute("INSERT INTO parts VALUES (?, ?, ?)", (number, reading, cells))
    mark(connection, "part", str(number), reading, cells)


def key_digest(key: bytes) -> str:
    """What a mark says of a key: enough to recognise it, nothing to find it by."""
    return hashlib.sha256(b"policygraph noise key" + key).hexdigest()


def put_key(connection: Connection, number: int, key: bytes) -> None:
    """Keep the key of the noise beside its charge, in the transaction of the charge."""
    connection.execute("INSERT INTO keys VALUES (?, ?)", (number, key))
    mark(connection, "key", str(number), key_digest(key))


def erase_key(connection: Connection, number: int) -> None:
    """Overwrite the key of a charge; ``secure_delete`` is on in every connection, so that its bytes are zeroed."""
    connection.execute("DELETE FROM keys WHERE number = ?", (number,))


def put_detail(connection: Connection, number: int, content: str) -> None:
    """Keep beside an entry who made it, what for, until when, and from which reservation, in the transaction of the entry."""
    connection.execute("INSERT INTO details VALUES (?, ?)", (number, content))
    mark(connection, "detail", str(number), content)


def put_parent(connection: Connection, dataset: str, parent: str, kind: str) -> None:
    """Put an account inside another, for good."""
    connection.execute("INSERT INTO parents VALUES (?, ?, ?)", (dataset, parent, kind))
    mark(connection, "parent", dataset, parent, kind)


def put_reservation(
    connection: Connection, dataset: str, loss: str, until: str | None, content: str, time: str
) -> int:
    """Enter a reservation; give its number."""
    (last,) = connection.execute("SELECT max(number) FROM reservations").fetchone()
    number = (last or 0) + 1
    line = (dataset, loss, until, content, time)
    connection.execute("INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?)", (number, *line))
    mark(connection, "reservation", str(number), *line)
    return number


def put_closing(connection: Connection, number: int, content: str, time: str) -> None:
    """Enter that a reservation was given back."""
    connection.execute("INSERT INTO closings VALUES (?, ?, ?)", (number, content, time))
    mark(connection, "closing", str(number), content, time)


def store_release(connection: Connection, number: int, body: bytes, time: str | None = None) -> None:
    """Put a release beside its charge, piece by piece, and erase its key."""
    when, digest = time or now(), hashlib.sha256(body).hexdigest()
    connection.execute("INSERT INTO stored VALUES (?, ?, ?, ?)", (number, when, len(body), digest))
    view = memoryview(body)
    for place, start in enumerate(range(0, len(body), CHUNK)):
        connection.execute(
            "INSERT INTO chunks VALUES (?, ?, ?)", (number, place, view[start : start + CHUNK])
        )
    mark(connection, "release", str(number), when, len(body), digest)
    erase_key(connection, number)


def body_of(connection: Connection, number: int) -> bytes | None:
    """Give a release on record; None if it is not what was stored."""
    size, digest = connection.execute(
        "SELECT bytes, digest FROM stored WHERE number = ?", (number,)
    ).fetchone()
    rows = connection.execute("SELECT place, body FROM chunks WHERE number = ? ORDER BY place", (number,))
    pieces = [
        piece if at == place and isinstance(piece, bytes) else b"" for at, (place, piece) in enumerate(rows)
    ]
    body = b"".join(pieces)
    return body if len(body) == size and hashlib.sha256(body).hexdigest() == digest else None


def _seal(previous: str, line: tuple[object, ...]) -> str:
    return hashlib.sha256(canonical_json([previous, *line], "entry").encode()).hexdigest()


def _first_seal(connection: Connection) -> str:
    """Seal the identity and the key, without which every data set would look unspent."""
    identity, secret, created, version = connection.execute(
        "SELECT identity, secret, created, version FROM ledger"
    ).fetchone()
    # Damage can turn the key into a text.
    key = secret if isinstance(secret, bytes) else str(secret).encode()
    return _seal("", (identity, key.hex().upper(), created, version))


def append(
    connection: Connection,
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
    time: str | None = None,
) -> tuple[int, str, str]:
    """Add a sealed entry inside a transaction of the caller; return its number, time and seal."""
    last = connection.execute("SELECT number, seal FROM entries ORDER BY number DESC LIMIT 1").fetchone()
    number, previous = (last[0] + 1, last[1]) if last else (1, _first_seal(connection))
    time = time or now()
    line = (
        number, what, dataset, policy, loss, certified, request, content, int(composed), note, time, __version__
    )  # fmt: skip
    seal = _seal(previous, line)
    places = ", ".join("?" * (len(line) + 1))
    connection.execute(f"INSERT INTO entries ({ENTRY_COLUMNS}) VALUES ({places})", (*line, seal))
    return number, time, seal


def verify(connection: Connection, structure: Iterator[str] | None = None) -> None:
    """Check a whole ledger: pages, layout, references, seals, and that no entry is missing.

    Parameters
    ----------
    connection
        An open ledger.
    structure
        What is wrong with the tables themselves, where it is no file.

    Raises
    ------
    LedgerError
        With the first few faults found.
    """
    _refuse(_faults(connection, VERSION) if structure is None else _faults_on_server(connection, structure))


def verify_old(connection: Connection) -> None:
    """Check a ledger of layout 4 on a server before it is brought to the present layout."""
    _refuse(
        fault
        for faults in (_faults_of_entries(connection), _faults_of_content(connection, 4))
        for fault in faults
    )


def _faults_on_server(connection: Connection, structure: Iterator[str]) -> Iterator[str]:
    found = list(structure)
    if found or connection.execute("SELECT count(*) FROM ledger").fetchone() != (1,):
        yield from found or ["its identity is missing"]
        return
    yield from _faults_of_entries(connection)
    yield from _faults_of_content(connection)


def _refuse(found: Iterator[str]) -> None:
    faults = list(found)[:5]
    if faults:
        raise LedgerError(
            f"The ledger is damaged: {'; '.join(faults)}. Nothing was changed. Restore the latest copy of the "
            "file, and count what was released since as spent.",
            code="ledger.damaged",
            faults=faults,
        )


def _tables(version: int) -> list[str]:
    """The statements that made a file of a layout."""
    later = _brought_after(version)
    kept = [
        sql.replace("'policy', 'part', 'detail', 'parent', 'reservation', 'closing', 'key'", _MARKS[version])
        if version in _MARKS
        else sql
        for sql in TABLES
        if not _is_of(sql, later)
    ]
    return [*kept, *_RELEASES] if version == 2 else kept


def _brought_after(version: int) -> list[str]:
    """Tables that a layout does not have."""
    return [name for since, names in _SINCE.items() if since > version for name in names]


def _is_of(statement: str, tables: Sequence[str]) -> bool:
    words = _squeeze(statement)
    return any(f"TABLE{name}(" in words or f"ON{name}BEGIN" in words for name in tables)


def _squeeze(sql: str) -> str:
    """A statement without its white space."""
    return "".join(sql.split())


def _faults(connection: Connection, version: int) -> Iterator[str]:
    """What is wrong with a file of a layout, as the version that wrote it would have found."""
    layout = {_squeeze(sql) for (sql,) in connection.execute("SELECT sql FROM sqlite_master") if sql}
    expected = {_squeeze(sql) for sql in (*_tables(version), "CREATE TABLE sqlite_sequence(name,seq)")}
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
    yield from _faults_of_entries(connection)
    (count,) = connection.execute("SELECT count(*) FROM entries").fetchone()
    sequence = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
    if (sequence[0] if sequence else 0) != count:
        yield f"entries after {count} are missing"
    if version == 2:
        for number, body, digest in connection.execute("SELECT number, body, digest FROM releases"):
            if not isinstance(body, bytes) or hashlib.sha256(body).hexdigest() != digest:
                yield f"the release of charge {number} is damaged"
        return
    yield from _faults_of_content(connection, version)


def _faults_of_content(connection: Connection, version: int = VERSION) -> Iterator[str]:
    yield from _faults_of_marks(connection, version)
    fault = check_head(connection)
    if fault is not None:
        yield fault


def upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Check a file of a layout before as its own version did, and bring it to the present one, in a transaction of the caller.

    Since layout 3 names, policies and releases are under seal, releases are kept in pieces, and charges keep their keys. Since layout 4
    a charge may be for a part of the table; those before are for all cells. Since layout 5 accounts may be inside others, entries say who made them
    and what for, and losses may be reserved.

    Raises
    ------
    LedgerError
        If the file is damaged; nothing is changed.
    """
    _refuse(_faults(connection, version))
    if version == 2:
        for statement in TABLES:
            if _is_of(statement, _brought_after(2)):
                connection.execute(statement)
        for dataset, name in connection.execute(
            "SELECT dataset, name FROM datasets ORDER BY dataset"
        ).fetchall():
            mark(connection, "dataset", dataset, name)
        for policy, text in connection.execute(
            "SELECT policy, description FROM policies ORDER BY policy"
        ).fetchall():
            mark(connection, "policy", policy, text)
        for (number,) in connection.execute("SELECT number FROM releases ORDER BY number").fetchall():
            time, body = connection.execute(
                "SELECT time, body FROM releases WHERE number = ?", (number,)
            ).fetchone()
            store_release(connection, number, bytes(body), time)
        connection.execute("DROP TABLE releases")
        seal_head(connection)
    else:
        # A check of a column can only be changed with its table; the lines and their seals stay as they are.
        marks = connection.execute("SELECT number, what, subject, digest, seal FROM marks").fetchall()
        connection.execute("DROP TABLE marks")
        for statement in TABLES:
            if _is_of(statement, [*_brought_after(version), "marks"]):
                connection.execute(statement)
        connection.executemany("INSERT INTO marks VALUES (?, ?, ?, ?, ?)", marks)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _faults_of_entries(connection: Connection) -> Iterator[str]:
    """Walk the chain of entries, which starts from the identity and the key of the ledger."""
    named = connection.execute("SELECT identity, created, version FROM ledger").fetchone()
    # Damage can turn a text into bytes, which have no place in a seal; an error about them would show the key.
    if any(isinstance(value, bytes) for value in named):
        yield "its identity is not a text"
        return
    previous = _first_seal(connection)
    rows = connection.execute(f"SELECT {ENTRY_COLUMNS} FROM entries ORDER BY number")
    for count, row in enumerate(rows, 1):
        if row[0] != count:
            yield f"entry {count} is missing"
            return
        # Damage can turn a text into bytes, which have no place in a seal.
        if any(isinstance(value, bytes) for value in row) or row[-1] != _seal(previous, row[:-1]):
            yield f"entry {count} does not match its seal"
            return
        previous = row[-1]


_BESIDE = (
    (4, "part", "number, reading, cells", "parts"),
    (5, "detail", "number, content", "details"),
    (5, "parent", "dataset, parent, kind", "parents"),
    (5, "reservation", "number, dataset, loss, until, content, time", "reservations"),
    (5, "closing", "number, content, time", "closings"),
)
"""Since which layout, what a mark calls it, and where it is: first what it is known by, then what is under seal."""


def _faults_of_marks(connection: Connection, version: int = VERSION) -> Iterator[str]:
    """Walk the chain of marks, and compare names, policies, parts, details, accounts, reservations, keys and releases with what it says of them."""
    sealed: dict[tuple[str, str], str] = {}
    previous = ""
    rows = connection.execute("SELECT number, what, subject, digest, seal FROM marks ORDER BY number")
    for count, row in enumerate(rows, 1):
        if any(isinstance(value, bytes) for value in row) or row[0] != count:
            yield f"mark {count} is missing"
            return
        if row[-1] != _keyed(connection, previous, *row[:-1]):
            yield f"mark {count} does not match its seal"
            return
        sealed[row[1], row[2]], previous = row[3], row[4]
    there: dict[tuple[str, str], Sequence[object]] = {}
    for dataset, name in connection.execute("SELECT dataset, name FROM datasets"):
        there["dataset", dataset] = (name,)
    for policy, description in connection.execute("SELECT policy, description FROM policies"):
        there["policy", policy] = (description,)
    for since, what, columns, table in _BESIDE:
        if version >= since:
            for subject, *content in connection.execute(f"SELECT {columns} FROM {table}"):
                there[what, str(subject)] = content
    for number, key in connection.execute("SELECT number, key FROM keys"):
        there["key", str(number)] = (key_digest(key) if isinstance(key, bytes) else None,)
    for number, *stored in connection.execute("SELECT number, time, bytes, digest FROM stored"):
        there["release", str(number)] = stored
    done = {subject for what, subject in sealed if what == "release"}
    expected = {each for each in sealed if each[0] != "key" or each[1] not in done}
    names = {
        "dataset": "the name of data set",
        "policy": "policy",
        "part": "the part of charge",
        "detail": "the detail of entry",
        "parent": "the place of account",
        "reservation": "reservation",
        "closing": "the end of reservation",
        "key": "the key of charge",
    }
    for what, subject in sorted({*there, *expected}, key=str):
        shown = f"{names.get(what, 'the release of charge')} {subject}"
        if (what, subject) not in there:
            yield f"{shown} is missing"
        elif (what, subject) not in expected:
            yield f"{shown} was never entered"
        elif any(isinstance(value, bytes) for value in there[what, subject]) or sealed[
            what, subject
        ] != _keyed(connection, what, subject, *there[what, subject]):
            yield f"{shown} does not match its seal"
        elif what == "release" and body_of(connection, int(subject)) is None:
            yield f"{shown} is damaged"
    (loose,) = connection.execute(
        "SELECT count(*) FROM chunks WHERE number NOT IN (SELECT number FROM stored)"
    ).fetchone()
    if loose:
        yield "pieces of releases have no charge"
