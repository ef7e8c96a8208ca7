"""A ledger on a Postgres server: damage, kills, races, a server that goes away; the rules themselves are in test_ledger.py, for both."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading

import pytest

import policygraph as pg
from policygraph.cli.app import run
from policygraph.curator.ledger import Ledger, place_of, schema, server, store
from policygraph.errors import BudgetError, InputError, LedgerError
from policygraph.model.loss import Epsilon
from tests.paths import ROOT

psycopg = pytest.importorskip("psycopg")

DATA, P = "ab" * 32, "policy-p"
DOMAIN = pg.Domain({"age": 5})


@pytest.fixture
def url(postgres_server):
    return postgres_server.url(ledger=f"t{secrets.token_hex(6)}")


def filled(url):
    ledger = Ledger(url)
    ledger.set_limit(DATA, Epsilon(5), name="people")
    for number in range(4):
        ledger.complete(ledger.charge(DATA, P, Epsilon("1/3"), f"r{number}", note="why"), bytes(300))
    return ledger


def by_hand(url, *statements, guarded=False):
    """Change the tables past the ledger."""
    place = server.ServerStore(url)
    with place._connected() as db:
        db.execute(f'SET search_path TO "{place.schema}"')
        for table in () if guarded else server.APPEND_ONLY:
            db.execute(f"ALTER TABLE {table} DISABLE TRIGGER append_only")
        for statement in statements:
            db.execute(statement)
        for table in () if guarded else server.APPEND_ONLY:
            db.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only")


def code_of(call, *arguments, **named):
    with pytest.raises((LedgerError, InputError, BudgetError)) as caught:
        call(*arguments, **named)
    return caught.value.code


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET loss = replace(loss, '1/3', '1/9') WHERE number = 4",
        "UPDATE entries SET note = '' WHERE number = 2",
        "DELETE FROM details WHERE number = 5; DELETE FROM chunks WHERE number = 5; DELETE FROM stored WHERE number = 5; DELETE FROM entries WHERE number = 5",
        "UPDATE ledger SET secret = '\\x00'",
        "UPDATE ledger SET identity = 'other'",
        "DELETE FROM ledger",
        "UPDATE datasets SET name = 'others'",
        "INSERT INTO datasets VALUES ('d:new', 'new')",
        "UPDATE policies SET description = '{\"a\":1}'",
        "UPDATE chunks SET body = '\\x01' WHERE number = 3",
        "DELETE FROM marks WHERE number = 3",
        "UPDATE head SET entries = 3",
        "DELETE FROM head",
        "DROP TRIGGER append_only ON entries",
        "CREATE TABLE more (number bigint)",
        "ALTER TABLE entries ADD COLUMN more text",
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE RULE nothing AS ON INSERT TO keys DO INSTEAD NOTHING",
        "CREATE RULE kept AS ON DELETE TO keys DO INSTEAD NOTHING",
        "ALTER TABLE keys SET UNLOGGED",
        "ALTER TABLE entries ENABLE ROW LEVEL SECURITY",
        "CREATE TABLE public.below_%s () INHERITS (parts)",
        "ALTER TABLE keys RENAME TO others; ALTER TABLE others SET SCHEMA public; CREATE VIEW keys AS SELECT number, key FROM public.others",
    ],
)
def test_changed_content_is_noticed(url, change):
    filled(url)
    change = change.replace("others", f"others_{secrets.token_hex(6)}").replace("%s", secrets.token_hex(6))
    by_hand(url, *(change.split("; ") if "FUNCTION" not in change else [change]), guarded="TRIGGER" in change)
    assert code_of(Ledger, url) == "ledger.damaged"


@pytest.mark.parametrize(
    "change", ["UPDATE entries SET note = ''", "DELETE FROM marks", "TRUNCATE parts", "DELETE FROM stored"]
)
def test_entries_cannot_be_rewritten_by_mistake(url, change):
    filled(url)
    with pytest.raises(LedgerError, match="append-only"):
        by_hand(url, change, guarded=True)
    Ledger(url)


def test_a_ledger_that_is_cut_or_replaced_while_it_is_in_use_is_refused(url):
    ledger = filled(url)
    by_hand(url, "DELETE FROM marks WHERE number = (SELECT max(number) FROM marks)")
    assert code_of(ledger.charge, DATA, P, Epsilon(1), "r") == "ledger.damaged"
    place = server.ServerStore(url)
    by_hand(url, f'DROP SCHEMA "{place.schema}" CASCADE', guarded=True)
    assert code_of(ledger.spent, DATA) == "ledger.failed"
    Ledger(url)
    assert code_of(ledger.spent, DATA) == "ledger.replaced"
    by_hand(url, "DELETE FROM layout", guarded=True)
    assert code_of(ledger.spent, DATA) == "ledger.replaced"


def test_what_is_no_ledger_is_refused_unchanged(url, postgres_server):
    place = server.ServerStore(url)
    assert Ledger.existing(url) is None
    assert code_of(Ledger, url, create=False) == "ledger.unreadable"
    with place._connected() as db:
        db.execute(f'CREATE SCHEMA "{place.schema}"')
    assert code_of(Ledger, url) == "ledger.not-a-ledger"
    with place._connected() as db:
        db.execute(f'CREATE TABLE "{place.schema}".layout (application bigint, version bigint)')
    assert code_of(Ledger, url) == "ledger.not-a-ledger"
    other = postgres_server.url(ledger=f"t{secrets.token_hex(6)}")
    Ledger(other)
    by_hand(other, f"UPDATE layout SET version = {schema.VERSION + 1}", guarded=True)
    assert code_of(Ledger, other) == "ledger.version"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://host/db?ledger=Team",
        "postgresql://host/db?ledger=a&ledger=b",
        "postgresql://host/db?ledger=a%22b",
        "postgresql://host/db?nonsense=1",
    ],
)
def test_addresses_that_cannot_be_read(address):
    assert code_of(Ledger, address) == "ledger.address"


def test_the_password_is_told_to_nobody(postgres_server, capsys):
    address = postgres_server.url(ledger="nobody", password="swordfish", user="stranger")
    assert "swordfish" not in place_of(address)
    with pytest.raises(LedgerError) as caught:
        Ledger(address)
    assert caught.value.code == "ledger.unreachable"
    assert "swordfish" not in str(caught.value) + repr(caught.value.details)
    assert run(["budget", "show", address, "--json"]) == 2
    shown = capsys.readouterr()
    assert "swordfish" not in shown.out + shown.err
    assert place_of("postgresql://me:swordfish@host:1/db") == "postgresql://me@host:1/db?ledger=ledger"


def test_failures_of_the_server_say_what_to_do(postgres_server, url, monkeypatch):
    ledger = filled(url)
    assert code_of(Ledger, postgres_server.url("nothing", ledger="x")) == "ledger.unreachable"
    with ledger._store.open(write=True):
        monkeypatch.setattr(server, "BUSY_SECONDS", 1)
        # The lock of this process lets its own thread through: the server keeps the second writer waiting.
        assert code_of(ledger.charge, DATA, P, Epsilon(1), "r") == "ledger.busy"
    monkeypatch.setattr(server, "ASKING_SECONDS", 1)
    with ledger.asking():
        with pytest.raises(LedgerError) as caught, ledger.asking():
            pass
        assert caught.value.code == "online.busy"
    place = server.ServerStore(url)
    with place._connected() as db:
        db.execute("CREATE ROLE ledger_reader LOGIN")
        db.execute(f'GRANT USAGE ON SCHEMA "{place.schema}" TO ledger_reader')
        db.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{place.schema}" TO ledger_reader')
    reader = Ledger(url.replace("admin@", "ledger_reader@"), create=False)
    assert reader.spent("people") == Epsilon("4/3")
    assert code_of(reader.charge, DATA, P, Epsilon(1), "r") == "ledger.read-only"
    with place._connected() as db:
        db.execute("SELECT pg_sleep(0)")
        with pytest.raises(LedgerError) as caught, place._connected() as other:
            other.execute("this is no statement")
        assert caught.value.code == "ledger.failed"


def test_commits_wait_for_the_disk_whatever_the_server_is_set_to(postgres_server, url):
    ledger = filled(url)
    with ledger._store._connected() as db:
        db.execute("ALTER ROLE admin SET synchronous_commit TO off")
    try:
        with ledger._store.open(write=True) as db:
            assert db.execute("SHOW synchronous_commit").fetchone() == ("on",)
        with ledger._store._connected() as db:
            db.execute("ALTER SYSTEM SET full_page_writes TO off")
            db.execute("SELECT pg_reload_conf()")
            while db.execute("SHOW full_page_writes").fetchone() == ("on",):
                db.execute("SELECT pg_sleep(0.01)")
        assert code_of(Ledger, url) == "ledger.not-durable"
    finally:
        with ledger._store._connected() as db:
            db.execute("ALTER ROLE admin RESET synchronous_commit")
            db.execute("ALTER SYSTEM RESET full_page_writes")
            db.execute("SELECT pg_reload_conf()")
            while db.execute("SHOW full_page_writes").fetchone() == ("off",):
                db.execute("SELECT pg_sleep(0.01)")
    Ledger(url)


def test_a_server_that_goes_away_at_any_statement_loses_nothing(postgres_server, url, monkeypatch):
    """The connection is cut before each statement of a release in turn; asked again, the release costs what one costs."""
    query, policy, counts = pg.queries.identity(DOMAIN), pg.Policy(DOMAIN), [5, 4, 3, 2, 1]
    execute, left, codes = server.Wire.execute, 0, set()

    def cut(self, statement, values=(), /):
        nonlocal left
        left -= 1
        if left == 0:
            with server.ServerStore(url)._connected() as other:
                execute(other, "SELECT pg_terminate_backend(?)", (self.raw.info.backend_pid,))
        return execute(self, statement, values)

    monkeypatch.setattr(server.Wire, "execute", cut)
    ledger, at, uncertain = Ledger(url), 0, 0
    while True:
        at += 1
        left, before = at, len(ledger.history())
        left = at

        def ask(at=at):
            return pg.release(query, policy, counts, epsilon=f"1/{at + 1}", ledger=ledger).values().tolist()

        try:
            first = ask()
        except LedgerError as problem:
            codes.add(problem.code)
            uncertain += problem.code == "ledger.uncertain"
            first = None
        done, left = left > 0, 0
        again = ask()
        entries = ledger.history()[before:]
        assert [entry.status for entry in entries] == ["completed"], at
        assert first is None or first == again
        if done:
            break
    assert codes == {"ledger.unreachable", "ledger.uncertain"}
    assert at > 30
    assert uncertain >= 2
    assert len(Ledger(url).history()) == at


def test_the_isolation_that_the_server_prefers_changes_nothing(postgres_server, url):
    """Who waits while another process makes the ledger finds it then, whatever transactions of the database see by default."""
    database = f"d{secrets.token_hex(6)}"
    with postgres_server.connect() as db:
        db.execute(f"CREATE DATABASE {database}")
        db.execute(f"ALTER DATABASE {database} SET default_transaction_isolation TO 'serializable'")
    place = postgres_server.url(database=database, ledger="shared")
    store, made = server.ServerStore(place), []
    with postgres_server.connect(dbname=database) as raw, postgres_server.connect(dbname=database) as watch:
        first = server.Wire(raw)
        first.execute("BEGIN")
        first.execute("SELECT pg_advisory_xact_lock(?, hashtext(?))", (schema.APPLICATION_ID, store.schema))
        waiting = threading.Thread(target=lambda: made.append(_made_or_problem(place)))
        waiting.start()
        while (
            not made
            and not watch.execute(
                "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            ).fetchone()
        ):
            watch.execute("SELECT pg_sleep(0.01)")
        store._create(first)
        first.execute("COMMIT")
    waiting.join()
    assert isinstance(made[0], Ledger), made
    made[0].charge("ab" * 32, "policy", Epsilon(1), "request")
    assert len(Ledger(place).history()) == 1


def _made_or_problem(place):
    try:
        return Ledger(place)
    except LedgerError as problem:
        return problem


def test_a_server_that_crashes_keeps_every_charge(postgres_server, url):
    ledger = filled(url)
    postgres_server.stop("immediate")
    assert code_of(ledger.charge, DATA, P, Epsilon(1), "r") == "ledger.unreachable"
    postgres_server.start()
    assert Ledger(url, create=False).spent("people") == Epsilon("4/3")


def test_kills_at_random_points_and_a_race_for_the_rest(postgres_server):
    command = [
        sys.executable,
        ROOT / "benchmarks" / "ledger.py",
        "--server",
        postgres_server.url(),
        "--kills",
        "20",
    ]
    command += ["--races", "1", "--workers", "16", "--charges", "0", "--json"]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert outcome.returncode == 0, outcome.stderr
    report = json.loads(outcome.stdout)
    assert report["kills"]["lost"] == report["kills"]["unreadable"] == 0
    assert report["release_kills"]["charged_twice"] == report["release_kills"]["releases_lost"] == 0
    assert report["races"] == {"races": 1, "workers": 16, "overspent": 0, "not_exactly_spent": 0}


def test_processes_that_create_one_ledger_together_share_it(url):
    code = (
        "import sys\nfrom policygraph.curator.ledger import Ledger\nfrom policygraph.model.loss import Epsilon\n"
        'Ledger(sys.argv[1]).charge("ab" * 32, "policy-p", Epsilon(1), "r")'
    )
    failed = []

    def start():
        failed.append(subprocess.run([sys.executable, "-c", code, url], check=False).returncode)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == [0] * 4
    assert Ledger(url).spent(DATA) == Epsilon(4)


def test_the_commands_and_online_questions_take_an_address(url, tmp_path, capsys):
    (tmp_path / "policy.toml").write_text('[domain]\nsex = ["F", "M"]\n[[release]]\ncuboid = ["sex"]\n')
    (tmp_path / "people.csv").write_text("sex\n" + "F\nM\n" * 20)
    policy, data = str(tmp_path / "policy.toml"), str(tmp_path / "people.csv")
    assert run(["budget", "set", url, data, "--name", "people", "--epsilon", "2"]) == 0
    capsys.readouterr()
    words = ["release", policy, "--data", data, "--dataset", "people", "--epsilon", "1", "--ledger", url]
    assert run([*words, "--out", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ledger"] == place_of(url)
    assert run(["ask", policy, "--cuboid", "sex", "--data", data, "--dataset", "people", "--epsilon", "1/2", "--ledger", url]) == 0  # fmt: skip
    capsys.readouterr()
    assert run(["budget", "show", url, "--json"]) == 0
    (account,) = json.loads(capsys.readouterr().out)["datasets"]
    # The question was answered from the release on record, at no cost.
    assert account["left"]["value"] == "1"
    assert run(["budget", "history", url, "--json"]) == 0


def test_without_psycopg_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match="pip install") as caught:
        Ledger("postgresql://host/db")
    assert caught.value.code == "ledger.no-psycopg"


def test_large_releases_are_kept_in_pieces(url, monkeypatch):
    monkeypatch.setattr(schema, "CHUNK", 1000)
    ledger, body = Ledger(url), os.urandom(2500)
    ledger.complete(ledger.charge(DATA, P, Epsilon(1), "r"), body)
    assert Ledger(url).recorded("r") == body
    assert store.ASKING_SECONDS > 1
