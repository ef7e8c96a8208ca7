"""No release without a recorded charge: damage, foreign files, full and read-only disks, kills, races."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from policygraph.curator.ledger import ChargedPart, Ledger, schema, store
from policygraph.errors import BudgetError, LedgerError
from policygraph.model.loss import Epsilon, Rho
from tests.paths import ROOT, unrecorded

DATA, P = "ab" * 32, "policy-p"
BENCHMARK = ROOT / "benchmarks" / "ledger.py"
on_posix = pytest.mark.skipif(os.name != "posix", reason="needs fork, signals and file permissions")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The bytes of a ledger with eight charges."""
    ledger = Ledger(tmp_path_factory.mktemp("written") / "budget.db")
    ledger.set_limit(DATA, Epsilon(5), name="people")
    for number in range(8):
        charge = ledger.charge(DATA, P, Epsilon("1/3"), f"r{number}", note="x" * 200)
        ledger.complete(charge, bytes(300))
    return ledger.path.read_bytes()


@pytest.fixture
def path(tmp_path, written):
    (tmp_path / "budget.db").write_bytes(written)
    return tmp_path / "budget.db"


def refuse(path, code=None):
    """Open must fail and leave the file and its folder as they are."""
    before = path.read_bytes() if path.is_file() else None
    files = sorted(os.listdir(path.parent))
    with pytest.raises(LedgerError) as problem:
        Ledger(path)
    assert sorted(os.listdir(path.parent)) == files
    if before is not None:
        assert path.read_bytes() == before
    if code:
        assert problem.value.code == code
    assert str(path) in str(problem.value) or "damaged" in str(problem.value)
    return problem.value


def script(code, *arguments):
    """Run a program of its own; the ledger is imported before anything else happens to it."""
    head = "import os, sys\nfrom policygraph.errors import *\nfrom policygraph.curator.ledger import *\n"
    head += "from policygraph.model.loss import *\n"
    command = [sys.executable, "-W", "error", "-c", head + textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_a_missing_folder_and_a_missing_file(tmp_path):
    with pytest.raises(LedgerError) as problem:
        Ledger(tmp_path / "nowhere" / "budget.db")
    assert problem.value.code == "ledger.no-folder"
    with pytest.raises(LedgerError) as problem:
        Ledger(tmp_path / "budget.db", create=False)
    assert problem.value.code == "ledger.unreadable"
    assert not (tmp_path / "budget.db").exists()


def test_files_that_are_no_ledger_are_refused_unchanged(tmp_path):
    (tmp_path / "text").write_text("sex,age\nF,7\n" * 100)
    (tmp_path / "noise").write_bytes(random.Random(1).randbytes(10000))
    (tmp_path / "short").write_bytes(b"SQLite format 3\0")
    with sqlite3.connect(tmp_path / "foreign") as other:
        other.execute("CREATE TABLE entries (number)")
    other.close()
    for name in ("text", "noise", "short", "foreign"):
        refuse(tmp_path / name, "ledger.not-a-ledger")
    (tmp_path / "folder").mkdir()
    refuse(tmp_path / "folder", "ledger.not-a-ledger")
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    refuse(tmp_path / "dangling", "ledger.unreadable")
    os.mkfifo(tmp_path / "pipe")
    refuse(tmp_path / "pipe", "ledger.not-a-ledger")


def test_an_emptied_ledger_is_not_taken_for_a_new_one(path):
    path.write_bytes(b"")
    refuse(path, "ledger.damaged")


def test_a_newer_layout_is_refused_unchanged(path):
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    db.close()
    assert refuse(path, "ledger.version").details["version"] == schema.VERSION + 1


@contextmanager
def unsealed(path):
    """Let a hand into the file: the triggers are gone meanwhile and come back, so that only the change is left to be noticed."""
    db = sqlite3.connect(path)
    triggers = [sql for sql in schema.TABLES if "TRIGGER" in sql]
    for sql in triggers:
        db.execute(f"DROP TRIGGER {sql.split()[2]}")
    yield db
    for sql in triggers:
        db.execute(sql)
    db.commit()
    db.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET loss = replace(loss, '1/3', '1/9') WHERE number = 4",
        "UPDATE entries SET dataset = 'd:other' WHERE number = 4",
        "DELETE FROM entries WHERE number = 4",
        "DELETE FROM entries WHERE number = 9",
        "DELETE FROM entries",
        "UPDATE entries SET number = 20 WHERE number = 9",
        "UPDATE entries SET note = x'ff00' WHERE number = 2",
        "UPDATE ledger SET secret = randomblob(32)",
        "UPDATE ledger SET secret = 'text'",
        "UPDATE ledger SET identity = CAST(identity AS BLOB)",
        "UPDATE ledger SET created = CAST(created AS BLOB)",
        "UPDATE ledger SET version = CAST(version AS BLOB)",
        "DELETE FROM ledger",
        "DELETE FROM datasets",
        "CREATE TRIGGER spy AFTER INSERT ON entries BEGIN DELETE FROM stored; END",
        "DROP INDEX entries_by_request",
        "UPDATE datasets SET name = 'others'",
        "UPDATE datasets SET name = NULL",
        "UPDATE datasets SET name = x'00'",
        "INSERT INTO datasets VALUES ('d:new', 'new')",
        "UPDATE policies SET description = '{\"a\":1}'",
        "INSERT INTO policies VALUES ('another', '{}')",
        "UPDATE chunks SET body = x'00' WHERE number = 3",
        "UPDATE chunks SET body = zeroblob(299) WHERE number = 3",
        "DELETE FROM chunks WHERE number = 9",
        "UPDATE chunks SET place = 7 WHERE number = 3; INSERT INTO chunks VALUES (3, 0, x'00')",
        "INSERT INTO chunks VALUES (3, 1, x'00')",
        "UPDATE stored SET digest = '00' WHERE number = 3",
        "UPDATE stored SET time = '2000' WHERE number = 3",
        "DELETE FROM chunks WHERE number = 9; DELETE FROM stored WHERE number = 9",
        "UPDATE keys SET key = zeroblob(32)",
        "DELETE FROM keys",
        "INSERT INTO keys VALUES (3, zeroblob(32))",
        "UPDATE parts SET cells = '[[0,1]]'",
        "DELETE FROM parts",
        "INSERT INTO parts VALUES (1, 'x', '[[0,0]]')",
        "UPDATE marks SET digest = '00' WHERE number = 2",
        "DELETE FROM marks WHERE number = (SELECT max(number) FROM marks)",
        "DELETE FROM marks",
        "DELETE FROM head",
        "UPDATE head SET entries = 8",
        # The end of the book, cut off as carefully as can be without its key.
        "DELETE FROM keys WHERE number = 10; DELETE FROM entries WHERE number = 10; "
        "DELETE FROM marks WHERE number = (SELECT max(number) FROM marks); "
        "UPDATE sqlite_sequence SET seq = seq - 1; UPDATE head SET entries = entries - 1, marks = marks - 1, "
        "entry_seal = (SELECT seal FROM entries ORDER BY number DESC LIMIT 1), "
        "mark_seal = (SELECT seal FROM marks ORDER BY number DESC LIMIT 1)",
    ],
)
def test_changed_content_breaks_a_seal(path, change):
    part = ChargedPart.of("read", [1, 2])
    Ledger(path).begin(DATA, P, Epsilon("1/3"), "waiting", key=bytes(range(32)), part=part)
    with unsealed(path) as db:
        for each in change.split("; "):
            if "CREATE TRIGGER" in change:
                each = change
            db.execute(each)
            if each == change:
                break
    refuse(path, "ledger.damaged")


def test_every_text_of_the_file_is_under_seal(path):
    """Any value of any row, changed by itself, is noticed; the row of the identity is under the seal of all."""
    part = ChargedPart.of("read", [1, 2])
    Ledger(path).begin(DATA, P, Epsilon("1/3"), "waiting", key=bytes(range(32)), part=part)
    good = path.read_bytes()
    tables = (
        "ledger",
        "datasets",
        "policies",
        "entries",
        "stored",
        "chunks",
        "parts",
        "keys",
        "marks",
        "head",
    )
    tried = 0
    with sqlite3.connect(path) as db:
        columns = {table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")] for table in tables}
    db.close()
    for table, names in columns.items():
        for name in names:
            path.write_bytes(good)
            with unsealed(path) as db:
                (last,) = db.execute(f"SELECT max(rowid) FROM {table}").fetchone()
                kind, value = db.execute(
                    f"SELECT typeof({name}), {name} FROM {table} WHERE rowid = ?", (last,)
                ).fetchone()
                other = {"integer": lambda x: x + 1, "blob": lambda x: x + b"x", "null": lambda x: "x"}.get(
                    kind, lambda x: x + "x"
                )(value)
                try:
                    db.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = ?", (other, last))
                except sqlite3.IntegrityError:
                    continue
            tried += 1
            with pytest.raises(LedgerError) as problem:
                Ledger(path)
            assert problem.value.code == "ledger.damaged", (table, name)
    assert tried > 25


def test_entries_cannot_be_rewritten_by_mistake(path):
    db = sqlite3.connect(path)
    for change in (
        "DELETE FROM entries",
        "UPDATE entries SET loss = ''",
        "DELETE FROM stored",
        "DELETE FROM chunks",
        "DELETE FROM marks",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute(change)
    db.close()
    assert len(Ledger(path).history()) == 9


def test_flipped_bytes_never_lower_what_is_spent(path):
    """Wherever a byte is damaged, the file is refused or tells the same sum."""
    good = path.read_bytes()
    rng = random.Random(7)
    refused = 0
    for _ in range(250):
        damaged = bytearray(good)
        for _ in range(rng.choice([1, 1, 8])):
            damaged[rng.randrange(len(good))] ^= rng.randrange(1, 256)
        path.write_bytes(damaged)
        try:
            assert Ledger(path).spent(DATA) == Epsilon("8/3")
        except LedgerError:
            refused += 1
            assert path.read_bytes() == damaged
    assert refused > 50


def test_a_cut_file_is_refused(path):
    good = path.read_bytes()
    rng = random.Random(7)
    few = [len(good) - k for k in (1, 2, 3, 10, 100, 1000, 4095, 4096)]
    for size in [*few, *range(4096, len(good), 4096), *(rng.randrange(1, len(good)) for _ in range(40))]:
        path.write_bytes(good[:size])
        refuse(path)
    path.write_bytes(good)
    Ledger(path)


def test_a_ledger_that_is_cut_while_it_is_in_use_is_refused(path):
    ledger = Ledger(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(LedgerError) as problem:
        ledger.charge(DATA, P, Epsilon(1), "r")
    assert problem.value.code == "ledger.damaged"


def test_a_release_that_is_damaged_while_the_ledger_is_in_use_is_not_returned(path):
    ledger = Ledger(path)
    with unsealed(path) as db:
        db.execute("UPDATE chunks SET body = x'01' WHERE number = 2")
    with pytest.raises(LedgerError) as problem:
        ledger.recorded("r0")
    assert problem.value.code == "ledger.damaged"
    assert ledger.recorded("r1") == bytes(300)
    refuse(path, "ledger.damaged")


def test_a_file_that_vanishes_or_is_replaced_is_noticed(path, tmp_path):
    ledger = Ledger(path)
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(LedgerError) as problem:
        ledger.charge(DATA, P, Epsilon(1), "r")
    assert problem.value.code == "ledger.unreadable"
    assert not path.exists()
    Ledger(path)
    with pytest.raises(LedgerError) as problem:
        ledger.charge(DATA, P, Epsilon(1), "r")
    assert problem.value.code == "ledger.replaced"
    assert Ledger(path).history() == []


def test_every_commit_waits_for_the_disk(path):
    """EXTRA is 3: the data and the removal of the journal are synchronised before a commit returns."""
    with store.connection(path) as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (3,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_ledger_in_use_elsewhere_is_waited_for_and_then_given_up(path, monkeypatch):
    ledger = Ledger(path)
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.2)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError) as problem:
        ledger.charge(DATA, P, Epsilon(1), "r")
    assert problem.value.code == "ledger.busy"
    assert ledger.spent(DATA) == Epsilon("8/3")
    holder.execute("ROLLBACK")
    holder.close()
    ledger.charge(DATA, P, Epsilon(1), "r")


def test_a_full_disk_gives_no_charge(path, monkeypatch):
    """SQLite's own limit of pages stands for the disk: the insertion fails inside the transaction."""
    ledger = Ledger(path)
    connect = sqlite3.connect

    def full(*arguments, **options):
        opened = connect(*arguments, **options)
        pages = opened.execute("PRAGMA page_count").fetchone()[0]
        opened.execute(f"PRAGMA max_page_count = {pages}")
        return opened

    with monkeypatch.context() as patch:
        patch.setattr(store.sqlite3, "connect", full)
        with pytest.raises(LedgerError) as problem:
            ledger.charge(DATA, P, Epsilon("1/3"), "r", note="x" * 10**6)
    assert problem.value.code == "ledger.full"
    assert "Nothing may be released" in str(problem.value)
    assert Ledger(path).spent(DATA) == Epsilon("8/3")


@on_posix
def test_a_disk_that_stops_taking_bytes_gives_no_charge(path):
    """A limit on the size of files cuts writes off at every possible place of a charge."""
    outcome = script(
        """
        import resource
        ledger = Ledger(sys.argv[1])
        released, refused, (_, hard) = 0, 0, resource.getrlimit(resource.RLIMIT_FSIZE)
        for size in range(0, 150000, 1021):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
            try:
                ledger.charge("ab" * 32, "policy-p", Rho("1/7"), "r")
                released += 1
            except LedgerError:
                refused += 1
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        recorded = len(Ledger(sys.argv[1]).history())
        print(released, refused, recorded)
        """,
        path.with_name("fresh.db"),
    )
    assert outcome.returncode == 0, outcome.stderr
    released, refused, recorded = map(int, outcome.stdout.split())
    assert refused > 5
    assert released > 5
    assert released == recorded


@on_posix
@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="mounting needs root; the limits above do not"
)
def test_a_disk_that_is_really_full_gives_no_charge():
    folder = Path(tempfile.mkdtemp())
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=192k", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("this container may not mount")
    try:
        ledger = Ledger(folder / "budget.db")
        released, code = 0, ""
        try:
            for number in range(1000):
                ledger.charge(DATA, P, Rho(1), f"r{number}", note="x" * 1000)
                released += 1
        except LedgerError as problem:
            code = problem.code
        assert code in ("ledger.full", "ledger.write")
        assert 5 < released < 1000
        assert len(Ledger(folder / "budget.db").history()) == released
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        with pytest.raises(LedgerError) as problem:
            ledger.charge(DATA, P, Rho(1), "r")
        assert problem.value.code == "ledger.read-only"
        assert len(ledger.history()) == released
        with pytest.raises(LedgerError):
            Ledger(folder / "new.db")
    finally:
        subprocess.run(["umount", folder], check=True)
        folder.rmdir()


@on_posix
def test_a_read_only_file_can_be_read_and_not_charged():
    """Root ignores permissions, so the program gives up being root before it tries."""
    folder = Path(tempfile.mkdtemp())
    try:
        Ledger(folder / "budget.db").charge(DATA, P, Epsilon(1), "r")
        (folder / "secret.db").write_bytes((folder / "budget.db").read_bytes())
        (folder / "budget.db").chmod(0o444)
        (folder / "secret.db").chmod(0o000)
        folder.chmod(0o555)
        outcome = script(
            """
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            ledger = Ledger(sys.argv[1] + "/budget.db")
            print(ledger.spent("ab" * 32))
            for call in (
                lambda: ledger.charge("ab" * 32, "policy-p", Epsilon(1), "r"),
                lambda: ledger.set_limit("ab" * 32, Epsilon(1)),
                lambda: Ledger(sys.argv[1] + "/new.db"),
                lambda: Ledger(sys.argv[1] + "/secret.db"),
            ):
                try:
                    call()
                except LedgerError as problem:
                    print(problem.code)
            """,
            folder,
        )
        assert outcome.returncode == 0, outcome.stderr
        assert outcome.stdout.splitlines() == [
            "epsilon = 1", "ledger.read-only", "ledger.read-only", "ledger.not-created", "ledger.unreadable"
        ]  # fmt: skip
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def pages_in(journal):
    """The pages that a rollback journal can restore: segments of a header and its counted records."""
    pages, place = [], 0
    while journal[place : place + 8] == bytes.fromhex("d9d505f920a163d7"):
        count, _, _, sector, size = (
            int.from_bytes(journal[place + k : place + k + 4], "big") for k in range(8, 28, 4)
        )
        assert size == 4096
        place += sector
        for _ in range(count):
            pages.append(int.from_bytes(journal[place : place + 4], "big"))
            place += size + 8
        place = -(-place // sector) * sector
    return pages


@on_posix
def test_power_that_fails_while_pages_are_written_costs_no_charge(path):
    """The journal is on the disk, the pages it can restore are half written: the opening repairs them."""
    outcome = script(
        """
        from policygraph.curator.ledger import store
        from pathlib import Path
        with store.connection(Path(sys.argv[1])) as db:
            db.execute("PRAGMA foreign_keys = OFF")
            db.execute("PRAGMA cache_size = 1")
            db.execute("BEGIN IMMEDIATE")
            db.execute("DROP TRIGGER entries_delete")
            db.execute("DELETE FROM entries")
            for _ in range(40):
                db.execute("INSERT INTO policies VALUES (hex(randomblob(8)), hex(randomblob(2000)))")
            os._exit(7)
        """,
        path,
    )
    assert outcome.returncode == 7, outcome.stderr
    journal = path.with_name("budget.db-journal").read_bytes()
    pages = pages_in(journal)
    assert len(pages) > 3
    with path.open("r+b") as file:
        for page in pages:
            if page > 1:
                file.seek((page - 1) * 4096)
                file.write(random.Random(page).randbytes(2048))
    without_journal = path.with_name("copy.db")
    without_journal.write_bytes(path.read_bytes())
    refuse(without_journal, "ledger.damaged")
    ledger = Ledger(path)
    assert ledger.spent(DATA) == Epsilon("8/3")
    assert len(ledger.history()) == 9


def test_an_interrupted_creation_leaves_no_half_ledger(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "create_tables", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Ledger(tmp_path / "budget.db")
    assert os.listdir(tmp_path) == []
    ledger = Ledger(tmp_path / "budget.db")
    monkeypatch.setattr(schema, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.charge(DATA, P, Epsilon(1), "r")
    assert Ledger(ledger.path).datasets() == []
    assert os.stat(ledger.path).st_mode & 0o077 == 0


def test_paths_with_awkward_names(tmp_path):
    for name in ("a b?c#d%20.db", ":memory:", "ünï.db", "mode=ro"):
        Ledger(tmp_path / name).charge(DATA, P, Epsilon(1), "r")
        assert (tmp_path / name).is_file()
        assert Ledger(tmp_path / name).spent(DATA) == Epsilon(1)


def test_a_relative_path_survives_a_change_of_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("budget.db")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    ledger.charge(DATA, P, Epsilon(1), "r")
    assert os.listdir() == []


def test_threads_share_a_ledger_and_never_overspend(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.set_limit(DATA, Epsilon(1))
    charged = []

    def spend():
        while True:
            try:
                charged.append(ledger.charge(DATA, P, Epsilon("1/12"), "r").number)
            except BudgetError:
                return
            Ledger(tmp_path / "budget.db")

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(charged) == list(range(2, 14))
    assert ledger.spent(DATA) == Epsilon(1)


@on_posix
def test_a_fork_in_the_middle_of_a_charge_harms_neither_side(tmp_path):
    outcome = script(
        """
        import threading
        ledger = Ledger(sys.argv[1])
        stop, mine = threading.Event(), []
        def spend():
            while not stop.is_set():
                mine.append(ledger.charge("ab" * 32, "policy-p", Epsilon(1), "parent").number)
                time.sleep(0.003)
        thread = threading.Thread(target=spend)
        thread.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    ledger.charge("ab" * 32, "policy-p", Epsilon(1), "child")
                    code = 0
                finally:
                    os._exit(code)
            if os.waitpid(child, 0)[1]:
                stop.set()
                sys.exit("a child failed")
        stop.set()
        thread.join()
        print(len(mine) + 20, len(Ledger(sys.argv[1]).history()))
        """.replace(
            "import threading", "import threading, time, warnings\n        warnings.simplefilter('ignore')", 1
        ),
        tmp_path / "budget.db",
    )
    assert outcome.returncode == 0, outcome.stderr
    expected, recorded = map(int, outcome.stdout.split())
    assert expected == recorded > 20


@on_posix
def test_kills_at_random_points_and_a_race_for_the_rest():
    command = [sys.executable, BENCHMARK, "--kills", "50", "--races", "2", "--charges", "0", "--json"]
    outcome = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, env=unrecorded()
    )
    assert outcome.returncode == 0, outcome.stderr
    report = json.loads(outcome.stdout)
    assert report["kills"]["kills"] == 50
    assert report["kills"]["lost"] == report["kills"]["unreadable"] == 0
    assert report["kills"]["interrupted_commits"] > 0
    assert report["kills"]["released"] > 0
    again = report["release_kills"]
    assert again["kills"] == 50
    assert again["charges_lost"] == again["releases_lost"] == again["charged_twice"] == 0
    assert again["before_the_charge"] + again["waiting"] + again["completed"] == 50
    assert report["races"] == {"races": 2, "workers": 8, "overspent": 0, "not_exactly_spent": 0}


@on_posix
def test_processes_that_create_one_ledger_together_share_it(tmp_path):
    code = """
    ledger = Ledger(sys.argv[1])
    ledger.charge("ab" * 32, "policy-p", Epsilon(1), "r")
    """
    with_threads = [threading.Thread(target=script, args=(code, tmp_path / "budget.db")) for _ in range(4)]
    for thread in with_threads:
        thread.start()
    for thread in with_threads:
        thread.join()
    assert Ledger(tmp_path / "budget.db").spent(DATA) == Epsilon(4)
    assert os.listdir(tmp_path) == ["budget.db"]
