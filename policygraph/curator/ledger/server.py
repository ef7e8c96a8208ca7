"""A ledger on a Postgres server: the same tables, seals and rules as in a file, for teams that share one budget.

Owns :class:`ServerStore`. A connection lives for one call, and a writer holds the ledger for itself before it reads a sum, so that no two processes
can both see room. A commit returns when the server has written it to its disk; where the server goes away before it has answered, whether
the charge is on record is not known, nothing is released, and the same request asked again finds the charge with its key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from policygraph.curator.ledger.schema import (
    APPEND_ONLY,
    APPLICATION_ID,
    VERSION,
    Connection,
    fill,
    verify_old,
)
from policygraph.curator.ledger.store import ASKING_SECONDS, BUSY_SECONDS, GUARD, not_asked
from policygraph.errors import InputError, LedgerError

SCHEMES = ("postgresql://", "postgres://")
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
CONNECT_SECONDS = 10
"""How long a server may take to answer a call for a connection; a limit of the network, on which no result depends."""

_ENTRY, _ACCOUNT = "REFERENCES entries (number)", "REFERENCES datasets (dataset)"
_MARKED = "CHECK (what IN ('dataset', 'policy', 'part', 'detail', 'parent', 'reservation', 'closing', 'key', 'release'))"
_SINCE_5 = ("details", "parents", "reservations", "closings")
COLUMNS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "layout": (("application", "bigint", "PRIMARY KEY"), ("version", "bigint", "NOT NULL")),
    "ledger": (
        ("only_row", "bigint", "PRIMARY KEY CHECK (only_row = 1)"),
        ("identity", "text", "NOT NULL"),
        ("secret", "bytea", "NOT NULL"),
        ("created", "text", "NOT NULL"),
        ("version", "text", "NOT NULL"),
    ),
    "datasets": (("dataset", "text", "PRIMARY KEY"), ("name", "text", "UNIQUE")),
    "policies": (("policy", "text", "PRIMARY KEY"), ("description", "text", "NOT NULL")),
    "entries": (
        ("number", "bigint", "PRIMARY KEY"),
        ("what", "text", "NOT NULL CHECK (what IN ('limit', 'charge'))"),
        ("dataset", "text", "NOT NULL REFERENCES datasets (dataset)"),
        ("policy", "text", "REFERENCES policies (policy) CHECK ((policy IS NOT NULL) = (what = 'charge'))"),
        ("loss", "text", "NOT NULL"),
        ("certified", "text", ""),
        ("request", "text", "CHECK ((request IS NOT NULL) = (what = 'charge'))"),
        ("content", "text", "CHECK (content IS NULL OR what = 'charge')"),
        ("composed", "bigint", "NOT NULL CHECK (composed IN (0, 1))"),
        ("note", "text", "NOT NULL"),
        ("time", "text", "NOT NULL"),
        ("version", "text", "NOT NULL"),
        ("seal", "text", "NOT NULL"),
    ),
    "stored": (
        ("number", "bigint", f"PRIMARY KEY {_ENTRY}"),
        ("time", "text", "NOT NULL"),
        ("bytes", "bigint", "NOT NULL"),
        ("digest", "text", "NOT NULL"),
    ),
    "chunks": (
        ("number", "bigint", "NOT NULL REFERENCES stored (number)"),
        ("place", "bigint", "NOT NULL"),
        ("body", "bytea", "NOT NULL"),
    ),
    "parts": (
        ("number", "bigint", f"PRIMARY KEY {_ENTRY}"),
        ("reading", "text", "NOT NULL"),
        ("cells", "text", "NOT NULL"),
    ),
    "details": (("number", "bigint", f"PRIMARY KEY {_ENTRY}"), ("content", "text", "NOT NULL")),
    "parents": (
        ("dataset", "text", f"PRIMARY KEY {_ACCOUNT}"),
        ("parent", "text", f"NOT NULL {_ACCOUNT}"),
        ("kind", "text", "NOT NULL CHECK (kind IN ('share', 'group'))"),
    ),
    "reservations": (
        ("number", "bigint", "PRIMARY KEY"),
        ("dataset", "text", f"NOT NULL {_ACCOUNT}"),
        ("loss", "text", "NOT NULL"),
        ("until", "text", ""),
        ("content", "text", "NOT NULL"),
        ("time", "text", "NOT NULL"),
    ),
    "closings": (
        ("number", "bigint", "PRIMARY KEY REFERENCES reservations (number)"),
        ("content", "text", "NOT NULL"),
        ("time", "text", "NOT NULL"),
    ),
    "keys": (("number", "bigint", f"PRIMARY KEY {_ENTRY}"), ("key", "bytea", "NOT NULL")),
    "marks": (
        ("number", "bigint", "PRIMARY KEY"),
        ("what", "text", f"NOT NULL CONSTRAINT marks_what_check {_MARKED}"),
        ("subject", "text", "NOT NULL"),
        ("digest", "text", "NOT NULL"),
        ("seal", "text", "NOT NULL"),
    ),
    "head": (
        ("only_row", "bigint", "PRIMARY KEY CHECK (only_row = 1)"),
        ("entries", "bigint", "NOT NULL"),
        ("entry_seal", "text", "NOT NULL"),
        ("marks", "bigint", "NOT NULL"),
        ("mark_seal", "text", "NOT NULL"),
        ("seal", "text", "NOT NULL"),
    ),
}
"""Tables, columns, their types and conditions. Text is compared byte by byte, as in a file."""
INDEXES = (
    "ALTER TABLE chunks ADD PRIMARY KEY (number, place)",
    "CREATE INDEX entries_by_dataset ON entries (dataset, what, policy, loss)",
    "CREATE INDEX entries_by_request ON entries (request)",
    "CREATE INDEX entries_by_content ON entries (content)",
)
BYTEWISE = 'COLLATE pg_catalog."C"'
REFUSAL = " BEGIN RAISE EXCEPTION 'the ledger is append-only'; END "


def on_server(path: object) -> TypeGuard[str]:
    """Whether a place is the address of a server."""
    return isinstance(path, str) and path.startswith(SCHEMES)


class Wire:
    """A connection to a server that takes statements as a file does, with ``?`` for values."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        """Run a statement and give its cursor."""
        import psycopg

        cursor = psycopg.ClientCursor(self.raw)
        return cursor.execute(statement.replace("?", "%s") if values else statement, values or None)


@dataclass(frozen=True)
class ServerRoom:
    """Room for a release on a server, which nobody can hold from outside: a release that finds the disk full waits with its key."""

    size: int

    def fits(self, opened: Connection) -> None:
        """Nothing to compare."""

    def let_go(self) -> None:
        """Nothing to give back."""


class ServerStore:
    """A ledger in a schema of its own on a Postgres server.

    Parameters
    ----------
    address
        ``postgresql://user@host/database?ledger=name``; without a name, ``ledger``. All else is for libpq, which also knows service
        files and password files.

    Raises
    ------
    InputError
        If the address or the name of the ledger cannot be read, or psycopg is not installed.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        given = parse_qsl(parts.query, keep_blank_values=True)
        names = [value for key, value in given if key == "ledger"] or ["ledger"]
        if len(names) > 1 or not NAME.fullmatch(names[0]):
            raise InputError(
                f"ledger={names[-1]!r}: expected one name of small letters, digits and _ that begins with a letter, as in "
                "postgresql://host/database?ledger=team.",
                code="ledger.address",
                value=names[-1],
            )
        self.name = names[0]
        rest = urlencode([(key, value) for key, value in given if key != "ledger"])
        self._address = urlunsplit(parts._replace(query=rest))
        _ = self._settings

    @property
    def schema(self) -> str:
        """The schema that the tables are in."""
        return f"policygraph_{self.name}"

    @cached_property
    def _settings(self) -> dict[str, Any]:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as cause:
            raise InputError(
                'a ledger on a server needs psycopg: pip install "policygraph[postgres]".',
                code="ledger.no-psycopg",
            ) from cause
        try:
            found = dict(conninfo_to_dict(self._address))
        except psycopg.ProgrammingError as cause:
            raise InputError(
                "the address of the ledger cannot be read: expected postgresql://user@host/database?ledger=name.",
                code="ledger.address",
            ) from cause
        # libpq's own messages name the host and the user, never the password.
        limits = {"connect_timeout": CONNECT_SECONDS, "tcp_user_timeout": int(BUSY_SECONDS * 1000)}
        return {**limits, **found, "application_name": "policygraph"}

    def __str__(self) -> str:
        """The address without the password."""
        found = self._settings
        user = f"{quote(str(found['user']), safe='')}@" if "user" in found else ""
        port = f":{found['port']}" if "port" in found else ""
        host, name = (quote(str(found.get(key, "")), safe="") for key in ("host", "dbname"))
        return f"postgresql://{user}{host}{port}/{name}?ledger={self.name}"

    @property
    def path(self) -> str:
        """The address as people are told."""
        return str(self)

    def exists(self) -> bool:
        """Whether the schema is there."""
        with self._connected() as db:
            return self._there(db)

    @contextmanager
    def _connected(self) -> Iterator[Wire]:
        import psycopg

        with GUARD:
            try:
                raw = psycopg.connect(**self._settings, autocommit=True)
                try:
                    yield Wire(raw)
                finally:
                    raw.close()
            except psycopg.Error as cause:
                raise self._failure(cause) from cause

    def _failure(self, cause: Any) -> LedgerError:
        import psycopg

        state = cause.sqlstate or ""
        lost = isinstance(cause, psycopg.OperationalError) and not state
        known = [(case, advice) for start, case, advice in _ADVICE if state.startswith(start)]
        case, advice = known[0] if known else _LOST if lost else ("failed", "The ledger could not do it.")
        said = " ".join(str(cause).split()).rstrip(".?!") or type(cause).__name__
        return LedgerError(
            f"Ledger {self}: {said}. {advice} Nothing may be released without a recorded charge.",
            code=f"ledger.{case}",
            path=str(self),
        )

    @contextmanager
    def _transaction(self, db: Wire, begin: str) -> Iterator[None]:
        import psycopg

        db.execute(begin)
        try:
            db.execute(f'SET LOCAL search_path TO pg_catalog, "{self.schema}", pg_temp')
            db.execute(f"SET LOCAL lock_timeout TO '{int(BUSY_SECONDS)}s'")
            yield
        except BaseException:
            with suppress(psycopg.Error):
                db.execute("ROLLBACK")
            raise
        try:
            ended = db.execute("COMMIT").statusmessage
        except psycopg.OperationalError as cause:
            raise LedgerError(
                f"Ledger {self}: the server went away before it said that the transaction is on record. Nothing was released. Ask again: "
                "a request that was charged is found and completed at no further cost.",
                code="ledger.uncertain",
                path=str(self),
            ) from cause
        if ended != "COMMIT":  # pragma: no cover
            raise LedgerError(
                f"Ledger {self}: the server did not keep the transaction ({ended}).",
                code="ledger.failed",
                path=str(self),
            )

    def prepare(self, *, create: bool) -> None:
        """Check that a ledger of this layout is there, or start one.

        Raises
        ------
        LedgerError
            If the server cannot be reached, does not wait for its disk, or has something else under this name.
        """
        with self._connected() as db:
            for setting in ("fsync", "full_page_writes"):
                if db.execute(f"SHOW {setting}").fetchone() != ("on",):
                    raise LedgerError(
                        f"Ledger {self}: the server runs with {setting} = off, and would lose charges in a crash. Switch it on.",
                        code="ledger.not-durable",
                        path=str(self),
                    )
            # Whatever the server's default is: who waited for another process has to see what that one made.
            with self._transaction(db, "BEGIN ISOLATION LEVEL READ COMMITTED"):
                if create and not self._there(db):
                    # One process makes it; the others wait here, and then find it.
                    db.execute("SELECT pg_advisory_xact_lock(?, hashtext(?))", (APPLICATION_ID, self.schema))
                    if not self._there(db):
                        self._create(db)
                if not self._there(db):
                    raise LedgerError(
                        f"Ledger {self}: there is no ledger of this name on the server. Check the name, or start one with: policygraph budget set.",
                        code="ledger.unreadable",
                        path=str(self),
                    )
                self._check_layout(db)

    def _there(self, db: Wire) -> bool:
        return (
            db.execute("SELECT 1 FROM pg_namespace WHERE nspname = ?", (self.schema,)).fetchone() is not None
        )

    def _create(self, db: Wire) -> None:
        db.execute(f'CREATE SCHEMA "{self.schema}"')
        db.execute(f'SET LOCAL search_path TO "{self.schema}", pg_catalog, pg_temp')
        for table in COLUMNS:
            _create_table(db, table)
        for statement in INDEXES:
            db.execute(statement)
        db.execute(f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $${REFUSAL}$$")
        for table in APPEND_ONLY:
            _guard(db, table)
        db.execute("INSERT INTO layout VALUES (?, ?)", (APPLICATION_ID, VERSION))
        fill(db)

    def _upgrade(self, db: Wire) -> None:
        """Bring a ledger of layout 4 to the present one, in the transaction of the caller; only the owner of the schema can."""
        db.execute("LOCK TABLE ledger IN EXCLUSIVE MODE")
        # Another process may have done it while this one waited.
        if db.execute("SELECT version FROM layout").fetchall() != [(4,)]:
            return
        if list(self.faults(db, without=_SINCE_5)):
            raise LedgerError(
                f"Ledger {self}: it is damaged: its tables are not those of a ledger. It was not changed.",
                code="ledger.damaged",
                path=str(self),
            )
        verify_old(db)
        db.execute(f'SET LOCAL search_path TO "{self.schema}", pg_catalog, pg_temp')
        for table in _SINCE_5:
            _create_table(db, table)
            _guard(db, table)
        db.execute("ALTER TABLE marks DROP CONSTRAINT marks_what_check")
        db.execute(f"ALTER TABLE marks ADD CONSTRAINT marks_what_check {_MARKED}")
        db.execute("UPDATE layout SET version = ?", (VERSION,))
        db.execute(f'SET LOCAL search_path TO pg_catalog, "{self.schema}", pg_temp')

    def _check_layout(self, db: Wire) -> None:
        found = self._columns(db).get("layout")
        if found is None or db.execute(
            f'SELECT 1 FROM "{self.schema}".layout WHERE application = ?', (APPLICATION_ID,)
        ).fetchone() != (1,):
            raise LedgerError(
                f"Ledger {self}: the schema {self.schema} is not a policygraph ledger. It was not changed. Give another name.",
                code="ledger.not-a-ledger",
                path=str(self),
            )
        ((version,),) = db.execute(f'SELECT version FROM "{self.schema}".layout').fetchall()
        if version == 4:
            self._upgrade(db)
        elif version != VERSION:
            raise LedgerError(
                f"Ledger {self}: layout {version}, expected {VERSION}. It was not changed. Use the version of policygraph that wrote it.",
                code="ledger.version",
                path=str(self),
                version=version,
            )

    @contextmanager
    def open(self, *, write: bool) -> Iterator[Connection]:
        """One transaction: durable when it ends well, without a trace when it does not; a writer is alone."""
        # A reader sees one moment. Statements of a writer see what the writer before has committed, since they come after the lock.
        begin = "READ COMMITTED" if write else "REPEATABLE READ READ ONLY"
        with self._connected() as db, self._transaction(db, f"BEGIN ISOLATION LEVEL {begin}"):
            if write:
                if db.execute("SHOW synchronous_commit").fetchone()[0] in ("off", "local"):
                    db.execute("SET LOCAL synchronous_commit TO on")
                db.execute("LOCK TABLE ledger IN EXCLUSIVE MODE")
            yield db

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Hold a lock of the server for a series of transactions; it ends with the connection."""
        import psycopg

        with self._connected() as db:
            # In a transaction of its own, so that a pooler in between gives the connection to nobody else meanwhile.
            db.execute("BEGIN READ ONLY")
            db.execute("SET LOCAL idle_in_transaction_session_timeout TO 0")
            db.execute(f"SET LOCAL lock_timeout TO '{int(ASKING_SECONDS)}s'")
            try:
                db.execute(
                    "SELECT pg_advisory_xact_lock(?, hashtext(?))",
                    (APPLICATION_ID, f"{self.schema} asking"),
                )
            except psycopg.errors.LockNotAvailable as cause:
                raise not_asked(str(self), "the others took too long") from cause
            yield

    def check_whole(self, db: Connection) -> None:
        """Pages are the business of the server."""

    def layout(self, db: Connection) -> list[int]:
        """What the file is and which layout it has."""
        rows = db.execute("SELECT application, version FROM layout").fetchall()
        return list(rows[0]) if len(rows) == 1 else []

    def faults(self, db: Connection, without: Sequence[str] = ()) -> Iterator[str]:
        """Compare tables, columns and guards with those of a ledger; the seals are checked elsewhere."""
        expected = {
            table: [(name, kind) for name, kind, _ in columns]
            for table, columns in COLUMNS.items()
            if table not in without
        }
        guards = db.execute(
            "SELECT c.relname, t.tgtype, t.tgenabled, p.prosrc FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_proc p ON p.oid = t.tgfoid WHERE n.nspname = ? AND NOT t.tgisinternal",
            (self.schema,),
        ).fetchall()
        # Before (2), delete (8), update (16), truncate (32), for each statement.
        wanted = {(table, 58, "A", REFUSAL) for table in APPEND_ONLY if table not in without}
        if (
            self._columns(db) != expected
            or {
                (table, kind, on if isinstance(on, str) else on.decode(), text)
                for table, kind, on, text in guards
            }
            != wanted
            or self._odd(db)
        ):
            yield "its tables are not those of a ledger"

    def _odd(self, db: Connection) -> bool:
        """Whether something in the schema keeps or shows less than is written: a view, a table that a crash empties, a rule, row security, a table below."""
        found = db.execute(
            "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND ("
            "c.relkind IN ('v', 'm', 'p', 'f') OR c.relkind = 'r' AND (c.relpersistence <> 'p' OR c.relrowsecurity "
            "OR EXISTS (SELECT 1 FROM pg_rewrite w WHERE w.ev_class = c.oid) OR EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhparent = c.oid))) LIMIT 1",
            (self.schema,),
        )
        return found.fetchone() is not None

    def _columns(self, db: Connection) -> dict[str, list[tuple[str, str]]]:
        rows = db.execute(
            "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "JOIN pg_attribute a ON a.attrelid = c.oid WHERE n.nspname = ? AND c.relkind IN ('r', 'v', 'm', 'p', 'f') AND a.attnum > 0 "
            "AND NOT a.attisdropped ORDER BY c.relname, a.attnum",
            (self.schema,),
        ).fetchall()
        found: dict[str, list[tuple[str, str]]] = {}
        for table, column, kind in rows:
            found.setdefault(table, []).append((column, kind))
        return found

    def login(self, db: Connection) -> str:
        """The user as the server knows it."""
        return str(db.execute("SELECT session_user").fetchone()[0])

    def room(self, size: int) -> ServerRoom:
        """Room for a release of some bytes."""
        return ServerRoom(size)


def _create_table(db: Wire, table: str) -> None:
    listed = ", ".join(
        " ".join((name, kind, BYTEWISE if kind == "text" else "", rule))
        for name, kind, rule in COLUMNS[table]
    )
    db.execute(f"CREATE TABLE {table} ({listed})")


def _guard(db: Wire, table: str) -> None:
    """Let a table be added to only."""
    db.execute(
        f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
    )
    db.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only")


_LOST = (
    "unreachable",
    "The server cannot be reached, or went away. Check the address and the server, and ask again.",
)
_ADVICE = (
    ("53100", "full", "The disk of the server is full. Make room and ask again."),
    ("55P03", "busy", f"Another process held it for {BUSY_SECONDS:g} seconds. Ask again."),
    (
        "25006",
        "read-only",
        "The server takes no changes: it is a standby, or set to read only. Name the primary server.",
    ),
    (
        "42501",
        "read-only",
        "The user of the address may not do it. Check the user's privileges on the schema.",
    ),
    ("28", "unreachable", "The server refused the user or the password."),
    ("3D", "unreachable", "There is no such database on the server."),
    ("57P", "unreachable", "The server is stopping or starting. Ask again."),
    ("08", *_LOST),
    ("53300", "busy", "The server has no free connection. Ask again."),
)
"""Beginnings of the codes of Postgres, the case, and what to do."""
